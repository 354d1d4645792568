//! Corrections of eigenpairs by the diagonal of an operator.

use crate::backend::BlockVector;
use crate::error::Result;
use crate::number::C64;
use crate::operator::Operator;

/// What is known of an operator's diagonal.
pub(super) struct Diagonal {
    /// On the device.
    pub(super) entries: BlockVector,
    pub(super) lowest: f64,
    /// Standard deviation.
    pub(super) spread: f64,
    /// Rows of the lowest entries; none if all entries are equal.
    pub(super) states: Vec<usize>,
}

impl Diagonal {
    /// The diagonal of an operator that knows it, with the rows of its `lowest` lowest entries.
    pub(super) fn of(h: &Operator, lowest: usize) -> Result<Option<Diagonal>> {
        let Some(diagonal) = h.diagonal() else { return Ok(None) };
        let diagonal: Vec<f64> = diagonal.iter().map(|z| z.re).collect();
        let mut states: Vec<usize> = Vec::with_capacity(lowest + 1);
        for (i, x) in diagonal.iter().enumerate() {
            let place = states.partition_point(|&k| diagonal[k] <= *x);
            if place < lowest {
                states.insert(place, i);
                states.truncate(lowest);
            }
        }
        if diagonal.iter().all(|x| *x == diagonal[0]) {
            states.clear();
        }
        let n = diagonal.len() as f64;
        let mean = diagonal.iter().map(|x| x / n).sum::<f64>();
        let spread = diagonal.iter().map(|x| (x - mean).powi(2) / n).sum::<f64>().sqrt();
        let least = diagonal.iter().copied().fold(f64::INFINITY, f64::min);
        let data: Vec<C64> = diagonal.iter().map(|&x| C64::new(x, 0.0)).collect();
        let entries = h.device().upload(h.dtype().to_real(), h.rows(), 1, &data)?;
        Ok(Some(Diagonal { entries, lowest: least, spread, states }))
    }

    /// The smallest denominator |shift - D_i| of a correction.
    pub(super) fn floor(&self) -> f64 {
        1e-3 * if self.spread > 0.0 { self.spread.min(1.0) } else { 1.0 }
    }
}

/// Some basis states, a column each.
pub(super) fn basis_states(h: &Operator, states: &[usize]) -> Result<BlockVector> {
    let mut data = vec![C64::default(); h.dim() * states.len()];
    for (column, &state) in states.iter().enumerate() {
        data[state * states.len() + column] = C64::new(1.0, 0.0);
    }
    h.device().upload(h.dtype(), h.rows(), states.len(), &data)
}

/// Olsen's correction K r - (<x|K r>/<x|K x>) K x with K = (theta - D)^-1 (Olsen, Jorgensen, Simons, Chem. Phys.
/// Lett. 169 (1990) 463). It is orthogonal to x, so that it does not stagnate where K is nearly the inverse of H.
pub(super) fn olsen(
    h: &Operator,
    diagonal: &BlockVector,
    floor: f64,
    theta: &[f64],
    r: &BlockVector,
    x: &BlockVector,
) -> Result<BlockVector> {
    let device = h.device();
    let mut kr = device.zeros(r.dtype(), r.rows(), r.columns())?;
    let mut kx = device.zeros(r.dtype(), r.rows(), r.columns())?;
    device.precondition(diagonal, theta, floor, r, &mut kr)?;
    device.precondition(diagonal, theta, floor, x, &mut kx)?;
    let (xr, xx) = (device.dots(x, &kr)?, device.dots(x, &kx)?);
    let back: Vec<C64> =
        xr.iter().zip(&xx).map(|(a, b)| if b.norm() > 1e-12 { -a / b } else { C64::default() }).collect();
    device.axpby(&back, &kx, &[C64::new(1.0, 0.0)], &mut kr)?;
    Ok(kr)
}
