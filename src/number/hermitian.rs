//! Eigenvalues and eigenvectors of Hermitian matrices in any unit.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::evd;
use faer::traits::ComplexField;
use faer::{Mat, MatRef, Par};

use super::{C64, Scalar, complex};

/// Eigenvalues, ascending, and orthonormal eigenvectors (columns) of a Hermitian matrix, of which the lower triangle is
/// read; nothing where the iteration does not converge.
///
/// The matrix is divided by a power of two near its largest entry first. From 128 rows on faer halves the matrix and
/// joins the parts by comparing couplings with rounding errors of 1, whatever the unit:
/// couplings of a matrix of 1e-19 J would all be lost.
pub fn eigh<T: Scalar<Real = f64> + ComplexField>(a: MatRef<'_, T>, par: Par) -> Option<(Vec<f64>, Mat<T>)> {
    let n = a.nrows();
    let mut largest = 0.0_f64;
    for j in 0..n {
        for i in j..n {
            let z = a[(i, j)].to_c64();
            let size = z.re.abs().max(z.im.abs());
            // NaN and infinite entries set no scale: the iteration refuses them.
            if size <= f64::MAX {
                largest = largest.max(size);
            }
        }
    }
    let size = complex::exponent(C64::new(largest, 0.0)).unwrap_or(0);
    let mut scaled = Mat::<T>::zeros(n, n);
    for j in 0..n {
        for i in j..n {
            let x = complex::scale(a[(i, j)].to_c64(), -size);
            scaled[(i, j)] = T::from_c64(x);
            scaled[(j, i)] = T::from_c64(x.conj());
        }
    }
    let (mut values, mut vectors) = (Mat::<T>::zeros(n, 1), Mat::zeros(n, n));
    let request =
        evd::self_adjoint_evd_scratch::<T>(n, evd::ComputeEigenvectors::Yes, par, Default::default());
    evd::self_adjoint_evd(
        scaled.as_ref(),
        values.as_mut().col_mut(0).as_diagonal_mut(),
        Some(vectors.as_mut()),
        par,
        MemStack::new(&mut MemBuffer::new(request)),
        Default::default(),
    )
    .ok()?;
    let values = (0..n).map(|i| complex::scaled(values[(i, 0)].to_c64().re, size)).collect();
    Some((values, vectors))
}

/// Matrices of so many rows need no blocks.
const SMALL: usize = 16;

/// Whether a Hermitian matrix, given by its elements, has positive eigenvalues only: whether it has Cholesky's factors.
pub fn positive(n: usize, entry: impl Fn(usize, usize) -> C64) -> bool {
    if n > SMALL {
        let mut matrix = Mat::from_fn(n, n, entry);
        let request = llt::factor::cholesky_in_place_scratch::<C64>(n, Par::Seq, Default::default());
        let mut memory = MemBuffer::new(request);
        let (stack, more) = (MemStack::new(&mut memory), Default::default());
        return llt::factor::cholesky_in_place(matrix.as_mut(), more, Par::Seq, stack, Default::default())
            .is_ok();
    }
    let mut factor = vec![C64::ZERO; n * n];
    for i in 0..n {
        for j in 0..=i {
            let (mine, other) = (&factor[i * n..i * n + j], &factor[j * n..j * n + j]);
            let rest = entry(i, j) - mine.iter().zip(other).map(|(a, b)| a * b.conj()).sum::<C64>();
            if i > j {
                factor[i * n + j] = rest / factor[j * n + j].re;
            } else if rest.re > 0.0 {
                factor[i * n + i] = rest.re.sqrt().into();
            } else {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of n sites with hopping 1, whose phases turn by `angle` a bond: the levels are 2 cos(pi k / (n + 1)).
    fn chain<T: Scalar<Real = f64> + ComplexField>(n: usize, unit: f64, angle: f64) -> Mat<T> {
        Mat::from_fn(n, n, |i, j| {
            let hop = |turn: f64| T::from_c64(C64::from_polar(unit, turn));
            match i as i64 - j as i64 {
                1 => hop(angle),
                -1 => hop(-angle),
                _ => T::from_c64(C64::ZERO),
            }
        })
    }

    fn in_all_units<T: Scalar<Real = f64> + ComplexField>(angle: f64) {
        // Below and beyond the size from which on faer halves matrices.
        for n in [1, 2, 30, 200] {
            for unit in [1.0, 1e-6, 1e-19, 1e-300, 1e12, 1e300] {
                let h = chain::<T>(n, unit, angle);
                let (values, vectors) = eigh(h.as_ref(), Par::Seq).unwrap();
                for k in 0..n {
                    let exact = -2.0 * (std::f64::consts::PI * (k + 1) as f64 / (n + 1) as f64).cos();
                    assert!((values[k] / unit - exact).abs() < 1e-13, "{n} {unit} {k}");
                    for i in 0..n {
                        let x = |i: usize| vectors[(i, k)].to_c64();
                        let back = if i > 0 { C64::from_polar(1.0, angle) * x(i - 1) } else { C64::ZERO };
                        let ahead =
                            if i + 1 < n { C64::from_polar(1.0, -angle) * x(i + 1) } else { C64::ZERO };
                        assert!((back + ahead - exact * x(i)).norm() < 1e-12, "{n} {unit} {k} {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_unit_does_not_matter() {
        in_all_units::<f64>(0.0);
        in_all_units::<C64>(0.7);
    }

    #[test]
    fn cholesky_tells_the_lowest_level() {
        for n in [1, 2, 16, 17, 60] {
            let h = chain::<C64>(n, 1.0, 0.3);
            let lowest = -2.0 * (std::f64::consts::PI / (n + 1) as f64).cos();
            for off in [1e-9, -1e-9] {
                let shift = -lowest + off;
                let entry =
                    |i: usize, j: usize| h[(i, j)] + if i == j { C64::from(shift) } else { C64::ZERO };
                assert_eq!(positive(n, entry), off > 0.0, "{n} {off}");
            }
        }
    }
}
