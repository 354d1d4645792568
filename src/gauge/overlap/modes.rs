//! The low modes that a sign function treats exactly.

use crate::backend::{BlockVector, Update};
use crate::error::Result;
use crate::method::{Diagonalised, hermitian_eigen, orthonormal, orthonormal_columns, rayleigh_ritz};
use crate::number::C64;
use crate::operator::Operator;

/// Spaces with Ritz residuals above this, in units of the largest |Q|, do not count as invariant.
const INVARIANT: f64 = 1e-7;

/// Values of |Q| closer than this, relatively, are one multiplet.
const MULTIPLET: f64 = 1e-3;

/// How many of these values lie below the largest relative gap among their last half.
fn cut(values: &[f64]) -> usize {
    let n = values.len();
    let gap = |m: usize| values[m] / values[m - 1].max(1e-300);
    (n.div_ceil(2).max(1)..n).max_by(|&a, &b| gap(a).total_cmp(&gap(b))).unwrap_or(n)
}

/// The low modes: eigenvectors of P Q P, and how far from eigenvectors of Q they are.
#[derive(Debug, Clone)]
pub(super) struct Low {
    pub vectors: BlockVector,
    /// nu_k, eigenvalues of P Q P.
    pub values: Vec<f64>,
    /// rho_k = |(Q - nu_k) u_k|.
    pub residuals: Vec<f64>,
}

impl Low {
    /// The |nu_k| from which on no gap separates modes from what is not projected out. It is at the largest relative
    /// gap among the last half of the modes, else at the last gap; 0 if there is none.
    pub fn edge(&self) -> f64 {
        let mut moduli: Vec<f64> = self.values.iter().map(|v| v.abs()).collect();
        moduli.sort_by(f64::total_cmp);
        let wide = |m: usize| moduli[m] > moduli[m - 1] * (1.0 + MULTIPLET);
        let best = Some(cut(&moduli)).filter(|&m| m < moduli.len() && wide(m));
        best.or_else(|| (1..moduli.len()).rev().find(|&m| wide(m))).map_or(0.0, |m| moduli[m])
    }
}

/// If the eigenvectors of Q^2 hold only one half of a pair nu, -nu, Q leads out of their space: the other half is
/// added. Other directions that Q leads to are noise of high modes, and are left out.
pub(super) fn invariant(q: &Operator, vectors: BlockVector, scale: f64) -> Result<Low> {
    let device = q.device();
    let space = orthonormal(device, &q.accept(&vectors)?.unwrap_or(vectors))?;
    let Diagonalised { values, vectors, residuals, norms } = rayleigh_ritz(q, &space)?;
    let low = Low { vectors, values, residuals: norms };
    let noise = (INVARIANT * scale).powi(2);
    let Some(outside) = orthonormal_columns(device, &residuals, noise, 0.0)? else { return Ok(low) };
    // The other half of a pair has as small a Q^2 as the modes have.
    let n = outside.columns();
    let mut image = device.zeros(outside.dtype(), outside.rows(), n)?;
    q.update(Update::PRODUCT, &outside, &mut image, None)?;
    let (squares, rotation) = hermitian_eigen(n, &device.gram(&image, &image)?, true)?;
    let norms = low.values.iter().zip(&low.residuals).map(|(v, r)| v * v + r * r);
    let largest = norms.fold(0.0, f64::max);
    let halves = squares.iter().filter(|s| **s <= 1.5 * largest).count();
    if halves == 0 {
        return Ok(low);
    }
    let first: Vec<C64> =
        (0..n).flat_map(|i| (0..halves).map(move |k| (i, k))).map(|(i, k)| rotation[i * n + k]).collect();
    let mut added = device.zeros(outside.dtype(), outside.rows(), halves)?;
    device.combine(&outside, &first, 0.0, &mut added)?;
    let wider = device.side_by_side(&[&low.vectors, &added])?;
    let closed = rayleigh_ritz(q, &orthonormal(device, &wider)?)?;
    let total = |norms: &[f64]| norms.iter().map(|r| r * r).sum::<f64>();
    if total(&closed.norms) >= total(&low.residuals) {
        return Ok(low);
    }
    Ok(Low { vectors: closed.vectors, values: closed.values, residuals: closed.norms })
}
