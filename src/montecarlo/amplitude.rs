//! The numbers that wave functions are made of, and the dense algebra of their matrices.

use faer::linalg::matmul::matmul;
use faer::prelude::Solve;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};

use crate::error::{Error, Result};
use crate::number::{C64, Scalar};
use crate::task;

/// Matrices of at least so many rows are inverted apart, so that an interruption need not wait for the inverse.
const LARGE: usize = 1000;

/// A double-precision real or complex number.
pub trait Amplitude: Scalar<Real = f64> + ComplexField<Real = f64> + std::ops::Div<Output = Self> {
    /// From a real number.
    fn real(x: f64) -> Self;
    /// `|z|`.
    fn modulus(self) -> f64;
    /// `|z|^2`.
    fn square(self) -> f64;
    /// Whether it is a finite number.
    fn finite(self) -> bool;
}

impl Amplitude for f64 {
    fn real(x: f64) -> f64 {
        x
    }
    fn modulus(self) -> f64 {
        self.abs()
    }
    fn square(self) -> f64 {
        self * self
    }
    fn finite(self) -> bool {
        self.is_finite()
    }
}

impl Amplitude for C64 {
    fn real(x: f64) -> C64 {
        C64::new(x, 0.0)
    }
    fn modulus(self) -> f64 {
        self.norm()
    }
    fn square(self) -> f64 {
        self.norm_sqr()
    }
    fn finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
}

/// `a . b` without conjugation. Four partial sums, which a processor adds side by side.
pub fn dot<S: Amplitude>(a: &[S], b: &[S]) -> S {
    let mut sums = [S::default(); 4];
    let (head_a, tail_a) = a.split_at(a.len() & !3);
    let (head_b, tail_b) = b.split_at(head_a.len().min(b.len()));
    for (x, y) in head_a.chunks_exact(4).zip(head_b.chunks_exact(4)) {
        for k in 0..4 {
            sums[k] += x[k] * y[k];
        }
    }
    for (x, y) in tail_a.iter().zip(tail_b) {
        sums[0] += *x * *y;
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// `c = alpha a b^T + (c or 0)`, row-major: `a` is m x k, `b` n x k, `c` m x n. It runs on one thread, as other
/// walkers use the others.
pub fn times_transposed<S: Amplitude>(a: &[S], b: &[S], c: &mut [S], k: usize, alpha: S, add: bool) {
    if k == 0 {
        if !add {
            c.fill(S::default());
        }
        return;
    }
    let (m, n) = (a.len() / k, b.len() / k);
    let accumulate = if add { Accum::Add } else { Accum::Replace };
    matmul(
        MatMut::from_row_major_slice_mut(&mut c[..m * n], m, n),
        accumulate,
        MatRef::from_row_major_slice(&a[..m * k], m, k),
        MatRef::from_row_major_slice(&b[..n * k], n, k).transpose(),
        alpha,
        Par::Seq,
    );
}

/// `c = alpha a^T b + c`, row-major: `a` is k x m, `b` k x n, `c` m x n.
pub fn add_transposed_times<S: Amplitude>(a: &[S], b: &[S], c: &mut [S], k: usize, alpha: S) {
    if k == 0 {
        return;
    }
    let (m, n) = (a.len() / k, b.len() / k);
    matmul(
        MatMut::from_row_major_slice_mut(&mut c[..m * n], m, n),
        Accum::Add,
        MatRef::from_row_major_slice(&a[..m * k], k, m).transpose(),
        MatRef::from_row_major_slice(&b[..n * k], k, n),
        alpha,
        Par::Seq,
    );
}

/// What an LU decomposition gives: `ln |det|`, the phase of det, and the transposed inverse, row-major.
pub struct SlaterInverse<S> {
    /// `ln |det A|`.
    pub log: f64,
    /// `det A / |det A|`.
    pub phase: S,
    /// `(A^-1)^T`, row by row.
    pub transposed: Vec<S>,
}

/// The determinant of an n x n matrix, `(ln |det|, phase)`; `-infinity` if it is singular.
pub fn determinant<S: Amplitude>(a: &[S], n: usize) -> (f64, S) {
    let lu = MatRef::from_row_major_slice(a, n, n).partial_piv_lu();
    of_factors(&lu, n)
}

fn of_factors<S: Amplitude>(lu: &faer::linalg::solvers::PartialPivLu<S>, n: usize) -> (f64, S) {
    let (mut log, mut phase) = (0.0, S::real(1.0));
    for i in 0..n {
        let pivot = *lu.U().get(i, i);
        let size = pivot.modulus();
        if size == 0.0 {
            return (f64::NEG_INFINITY, S::default());
        }
        log += size.ln();
        phase *= pivot / S::real(size);
    }
    if lu.P().arrays().0.len() == n && odd(lu.P().arrays().0) {
        phase = -phase;
    }
    (log, phase)
}

/// Whether a permutation is odd.
fn odd(order: &[usize]) -> bool {
    let mut seen = vec![false; order.len()];
    let mut swaps = 0;
    for start in 0..order.len() {
        let mut at = start;
        let mut length = 0;
        while !seen[at] {
            seen[at] = true;
            at = order[at];
            length += 1;
        }
        swaps += if length > 0 { length - 1 } else { 0 };
    }
    swaps % 2 == 1
}

/// The error for orbitals of which one is not finite.
pub(super) fn no_orbital() -> Error {
    Error::numeric("an orbital is not a finite number")
        .hint("look for NaN among the coefficients of the orbitals")
}

/// Determinant and inverse of an n x n matrix, row-major.
///
/// # Errors
/// When the matrix is singular to working precision or an entry is not finite.
pub fn invert<S: Amplitude>(a: &[S], n: usize) -> Result<SlaterInverse<S>> {
    if a.iter().any(|x| !x.finite()) {
        return Err(no_orbital());
    }
    if n < LARGE {
        return inverse_of(a, n);
    }
    let own = a.to_vec();
    task::apart(move || inverse_of(&own, n))
}

fn inverse_of<S: Amplitude>(a: &[S], n: usize) -> Result<SlaterInverse<S>> {
    let singular = || {
        Error::numeric(format!("the {n} x {n} Slater matrix is singular"))
            .hint("two electrons stand at one place, or two orbitals are alike")
    };
    let lu = MatRef::from_row_major_slice(a, n, n).partial_piv_lu();
    let pivots = (0..n).map(|i| lu.U().get(i, i).modulus());
    let (low, high) = pivots.fold((f64::INFINITY, 0.0_f64), |(l, h), p| (l.min(p), h.max(p)));
    let (log, phase) = of_factors(&lu, n);
    if !log.is_finite() || (n > 1 && low <= high * 1e-300) {
        return Err(singular());
    }
    let inverse = lu.solve(faer::Mat::<S>::identity(n, n));
    let mut transposed = vec![S::default(); n * n];
    for i in 0..n {
        for l in 0..n {
            transposed[i * n + l] = *inverse.get(l, i);
        }
    }
    if transposed.iter().any(|x| !x.finite()) {
        return Err(singular());
    }
    Ok(SlaterInverse { log, phase, transposed })
}

/// Solves `a x = b` for the rows of `b` (n x m, row-major), `a` n x n.
pub fn solve<S: Amplitude>(a: &[S], n: usize, b: &[S]) -> Vec<S> {
    let m = b.len() / n.max(1);
    let lu = MatRef::from_row_major_slice(a, n, n).partial_piv_lu();
    let x = lu.solve(MatRef::from_row_major_slice(b, n, m));
    (0..n).flat_map(|i| (0..m).map(move |j| (i, j))).map(|(i, j)| *x.get(i, j)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_inverses_on_all_threads_end() {
        use rayon::prelude::*;
        let n = LARGE + 1;
        let mut a = vec![0.0; n * n];
        (0..n).for_each(|i| a[i * n + i] = 2.0);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let logs: Vec<f64> =
            pool.install(|| (0..3).into_par_iter().map(|_| invert(&a, n).unwrap().log).collect());
        assert!(logs.iter().all(|log| (log - n as f64 * 2f64.ln()).abs() < 1e-9));
    }

    #[test]
    fn determinants_have_signs() {
        let (log, phase) = determinant(&[0.0, 2.0, 3.0, 0.0], 2);
        assert!((log - 6f64.ln()).abs() < 1e-14 && phase == -1.0);
        let rotation = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        assert_eq!(determinant(&rotation, 3).1, 1.0);
        let i = C64::I;
        assert!((determinant(&[i, C64::ZERO, C64::ZERO, i], 2).1 + 1.0).norm() < 1e-15);
    }

    #[test]
    fn inverses_are_transposed() {
        let a = [1.0, 2.0, 3.0, 5.0];
        let inverse = invert(&a, 2).unwrap();
        let expected = [-5.0, 3.0, 2.0, -1.0];
        assert!(inverse.transposed.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-13));
        assert!(invert(&[1.0, 2.0, 2.0, 4.0], 2).is_err() && invert(&[f64::NAN], 1).is_err());
        assert!(
            solve(&a, 2, &[1.0, 0.0, 0.0, 1.0])
                .iter()
                .zip([-5.0, 2.0, 3.0, -1.0])
                .all(|(x, y)| (x - y).abs() < 1e-13)
        );
    }
}
