//! Corrections of eigenpairs by the diagonal of an operator.

use rayon::prelude::*;

use crate::backend::{BlockVector, RitzCorrection};
use crate::error::{Error, Result};
use crate::number::{C64, root};
use crate::operator::{DiagonalOnDevice, Operator};

/// What is known of an operator's diagonal.
pub(super) struct KnownDiagonal {
    /// On the device.
    pub(super) entries: BlockVector,
    pub(super) lowest: f64,
    /// Standard deviation.
    pub(super) spread: f64,
    /// Rows of the lowest entries; none if all entries are equal.
    pub(super) states: Vec<usize>,
}

impl KnownDiagonal {
    /// The diagonal of an operator that knows it, with the rows of its `lowest` lowest entries.
    pub(super) fn of(h: &Operator, lowest: usize) -> Result<Option<KnownDiagonal>> {
        if lowest == 0
            && let Some(DiagonalOnDevice { entries, lowest, spread }) = h.diagonal_on_device()?
        {
            return Ok(Some(KnownDiagonal { entries, lowest, spread, states: Vec::new() }));
        }
        let Some(diagonal) = h.diagonal() else { return Ok(None) };
        let mut states: Vec<usize> = Vec::with_capacity(lowest + 1);
        for (i, x) in diagonal.iter().enumerate().take(if lowest > 0 { usize::MAX } else { 0 }) {
            let place = states.partition_point(|&k| diagonal[k].re <= x.re);
            if place < lowest {
                states.insert(place, i);
                states.truncate(lowest);
            }
        }
        if diagonal.par_iter().all(|x| x.re == diagonal[0].re) {
            states.clear();
        }
        let n = diagonal.len() as f64;
        let mean = summed(&diagonal, |x| x / n);
        let spread = summed(&diagonal, |x| (x - mean).powi(2) / n).sqrt();
        let least = diagonal.par_iter().map(|x| x.re).reduce(|| f64::INFINITY, f64::min);
        let entries = h.device().upload(h.dtype().to_real(), h.rows(), 1, &diagonal)?;
        Ok(Some(KnownDiagonal { entries, lowest: least, spread, states }))
    }

    /// The smallest denominator |shift - D_i| of a correction.
    pub(super) fn floor(&self) -> f64 {
        1e-3 * if self.spread > 0.0 { self.spread.min(1.0) } else { 1.0 }
    }
}

/// The sum of a function of the real parts, in the same order on any number of threads.
fn summed(diagonal: &[C64], f: impl Fn(f64) -> f64 + Sync) -> f64 {
    let parts = diagonal.par_chunks(1 << 14).map(|part| part.iter().map(|z| f(z.re)).sum::<f64>());
    parts.collect::<Vec<f64>>().iter().sum()
}

/// Some basis states, a column each.
pub(super) fn basis_states(h: &Operator, states: &[usize]) -> Result<BlockVector> {
    let mut data = vec![C64::default(); h.dim() * states.len()];
    for (column, &state) in states.iter().enumerate() {
        data[state * states.len() + column] = C64::ONE;
    }
    h.device().upload(h.dtype(), h.rows(), states.len(), &data)
}

/// What Olsen's correction K r - (<x|K r>/<x|K x>) K x is made of, with K = (theta - D)^-1 (Olsen, Jorgensen, Simons,
/// Chem. Phys. Lett. 169 (1990) 463). It is orthogonal to x, so that it does not stagnate where K is nearly the inverse
/// of H.
pub(super) struct Olsen {
    kr: BlockVector,
    kx: BlockVector,
}

impl Olsen {
    /// Of residuals `r` of the vectors `x`.
    pub(super) fn new(
        h: &Operator,
        diagonal: &KnownDiagonal,
        theta: &[f64],
        r: &BlockVector,
        x: &BlockVector,
    ) -> Result<Olsen> {
        let device = h.device();
        let with = |v: &BlockVector| -> Result<BlockVector> {
            let mut kv = device.room(v.dtype(), v.rows(), v.columns())?;
            device.precondition(&diagonal.entries, theta, diagonal.floor(), v, &mut kv)?;
            Ok(kv)
        };
        Ok(Olsen { kr: with(r)?, kx: with(x)? })
    }

    /// The squared norm of a single residual, and what [`Olsen::correction`] asks for: all that the host waits for, at
    /// once.
    pub(super) fn products(
        &self,
        h: &Operator,
        r: &BlockVector,
        x: &BlockVector,
    ) -> Result<(f64, [Vec<C64>; 2])> {
        let all = h.device().dots_with_each(&[(&[r], r), (&[&self.kr, &self.kx], x)])?;
        Ok((all[0].re, [vec![all[1].conj()], vec![all[2].conj()]]))
    }

    /// The correction from <x|K r> and <x|K x>.
    pub(super) fn correction(mut self, h: &Operator, [xr, xx]: [Vec<C64>; 2]) -> Result<BlockVector> {
        let back: Vec<C64> = xr.iter().zip(&xx).map(|(r, x)| share(*r, *x)).collect();
        h.device().axpby(&back, &self.kx, &[C64::ONE], &mut self.kr)?;
        Ok(self.kr)
    }

    /// The correction of any number of residuals of the vectors `x`.
    pub(super) fn corrections(self, h: &Operator, x: &BlockVector) -> Result<BlockVector> {
        let products = [h.device().dots(x, &self.kr)?, h.device().dots(x, &self.kx)?];
        self.correction(h, products)
    }
}

/// The factor of K x in the correction.
fn share(xr: C64, xx: C64) -> C64 {
    if xx.norm() > 1e-12 { -xr / xx } else { C64::default() }
}

/// Olsen's correction t = K r + b K x of one pair in a basis of single columns, not yet added up, with what one pass
/// over the basis and its images has found.
pub(super) struct OlsenPair {
    pub(super) kr: BlockVector,
    pub(super) kx: BlockVector,
    pub(super) b: C64,
    /// <v|t> for the vectors of the basis.
    pub(super) overlaps: Vec<C64>,
    /// <t|t>.
    pub(super) square: f64,
    /// The larger one of <Kr|Kr> and |b|^2 <Kx|Kx>: rounding of `square` and the overlaps is to be compared with it.
    pub(super) size: f64,
    /// <r|r>.
    pub(super) residual: f64,
}

impl OlsenPair {
    /// Of the pair that a correction is asked for.
    pub(super) fn new(h: &Operator, of: RitzCorrection) -> Result<OlsenPair> {
        let (device, n) = (h.device(), of.basis.len());
        let like = of.diagonal;
        let mut kr = device.room(h.dtype(), like.rows(), 1)?;
        let mut kx = device.room(h.dtype(), like.rows(), 1)?;
        let found = device.correct(of, &mut kr, &mut kx)?;
        let (with_r, with_x) = (&found[..n], &found[n..2 * n]);
        let [rr, rx, xx, residual] = found[2 * n..] else {
            return Err(Error::internal("a correction without its products"));
        };
        let with = |k: &[C64]| of.coefficients.iter().zip(k).map(|(s, k)| s.conj() * k).sum::<C64>();
        let b = share(with(with_r), with(with_x));
        let overlaps = with_r.iter().zip(with_x).map(|(r, x)| r + b * x).collect();
        let (of_x, size) = (b.norm_sqr() * xx.re, rr.re.max(b.norm_sqr() * xx.re));
        let square = rr.re + of_x + 2.0 * (b * rx).re;
        Ok(OlsenPair { kr, kx, b, overlaps, square, size, residual: residual.re })
    }
}

/// What an iteration of Davidson's method begins with.
pub(super) enum DavidsonStep {
    /// The correction of a single pair, with all its products with the basis.
    Pair(Box<OlsenPair>),
    /// That of a single pair where no pass over the basis makes these.
    Single { r: BlockVector, x: BlockVector, square: f64, olsen: Box<Olsen>, products: [Vec<C64>; 2] },
    /// Residuals and their Ritz vectors.
    Block { r: BlockVector, x: BlockVector },
}

impl DavidsonStep {
    /// The norms of the residuals.
    pub(super) fn norms(&self, h: &Operator) -> Result<Vec<f64>> {
        match self {
            DavidsonStep::Pair(pair) => Ok(vec![root(pair.residual)]),
            DavidsonStep::Single { square, .. } => Ok(vec![root(*square)]),
            DavidsonStep::Block { r, .. } => h.device().norms(r),
        }
    }
}
