//! Determinants, inverses and solutions of dense systems by LU decompositions. Rows and columns are first scaled to
//! the same size by powers of two, which rounds nothing: very small or very unequal elements do not make a matrix
//! look singular.

use faer::linalg::solvers::PartialPivLu;
use faer::prelude::Solve;
use faer::{Mat, MatRef};

use super::element::SeriesElement;
use crate::error::{Error, Result};

/// The matrix with elements of modulus at most one, and the powers of two of its rows and columns:
/// `a[i, j] = scaled[i, j] 2^(rows[i] + cols[j])`. None if a row or a column is zero.
struct Levelled<T> {
    scaled: Mat<T>,
    rows: Vec<i32>,
    cols: Vec<i32>,
}

/// Rounds of scaling rows and columns in turn; more change little.
const ROUNDS: usize = 4;

fn level<T: SeriesElement>(a: MatRef<'_, T>) -> Option<Levelled<T>> {
    let n = a.nrows();
    let sizes: Vec<Vec<Option<i32>>> =
        (0..n).map(|i| (0..n).map(|j| a.get(i, j).exponent()).collect()).collect();
    let (mut rows, mut cols) = (vec![0; n], vec![0; n]);
    for round in 0..ROUNDS {
        for i in 0..n {
            let largest = (0..n).filter_map(|j| sizes[i][j].map(|e| e - cols[j])).max()?;
            rows[i] = largest;
        }
        // The last round is one of rows, so that no element is above one.
        if round + 1 == ROUNDS {
            break;
        }
        for j in 0..n {
            let largest = (0..n).filter_map(|i| sizes[i][j].map(|e| e - rows[i])).max()?;
            cols[j] = largest;
        }
    }
    let scaled = Mat::from_fn(n, n, |i, j| a.get(i, j).times_power(-rows[i] - cols[j]));
    Some(Levelled { scaled, rows, cols })
}

fn pivots<T: SeriesElement>(lu: &PartialPivLu<T>) -> Vec<T> {
    (0..lu.U().nrows()).map(|i| *lu.U().get(i, i)).collect()
}

/// The solution of `a x = b`; refused if the matrix is singular to working precision or the solution no number.
pub(super) fn solved<T: SeriesElement>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Mat<T>> {
    let n = a.nrows();
    let singular = || {
        Error::numeric(format!("solve: the {n} x {n} matrix is singular to working precision"))
            .hint("its rows depend on one another: no solution, or many; singular values (`svd`) show which")
    };
    if n == 0 || b.ncols() == 0 {
        return Ok(Mat::zeros(n, b.ncols()));
    }
    let level = level(a).ok_or_else(singular)?;
    let lu = level.scaled.partial_piv_lu();
    let pivots: Vec<f64> = pivots(&lu).into_iter().map(SeriesElement::modulus).collect();
    let (low, high) = pivots.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &p| (l.min(p), h.max(p)));
    // A zero pivot leaves NaN behind it, which `min` passes over.
    if pivots.iter().any(|p| !p.is_finite()) || low <= high * f64::EPSILON {
        return Err(singular());
    }
    // Every right-hand side at its own size.
    let size = |j: usize| (0..n).filter_map(|i| b.get(i, j).exponent().map(|e| e - level.rows[i])).max();
    let sizes: Vec<i32> = (0..b.ncols()).map(|j| size(j).unwrap_or(0)).collect();
    let right = Mat::from_fn(n, b.ncols(), |i, j| b.get(i, j).times_power(-level.rows[i] - sizes[j]));
    let y = lu.solve(&right);
    let x = Mat::from_fn(n, b.ncols(), |i, j| y.get(i, j).times_power(sizes[j] - level.cols[i]));
    let good = (0..n).all(|i| (0..b.ncols()).all(|j| x.get(i, j).modulus().is_finite()));
    if good {
        Ok(x)
    } else {
        Err(Error::numeric("solve: the solution is larger than any number")
            .hint("bring the equations to a common scale"))
    }
}

/// The determinant; 0 of a matrix that is singular, exactly or to the last digit of elimination.
pub(super) fn determinant<T: SeriesElement>(a: MatRef<'_, T>) -> T {
    let Some(level) = level(a) else { return T::zero_impl() };
    let lu = level.scaled.partial_piv_lu();
    let mut pivots = pivots(&lu);
    // Behind a pivot of zero nothing counts any more.
    if let Some(zero) = pivots.iter().position(|p| p.modulus() == 0.0)
        && pivots[..zero].iter().all(|p| p.modulus().is_finite())
    {
        return T::zero_impl();
    }
    let mut odd = parity(lu.P().arrays().0);
    if pivots.iter().any(|p| !p.modulus().is_finite()) {
        // Reciprocals of very small pivots have overflown.
        (pivots, odd) = eliminated(level.scaled.as_ref());
    }
    let mut power: i64 = level.rows.iter().chain(&level.cols).map(|&e| i64::from(e)).sum();
    let mut product = if odd { T::zero_impl() - T::one_impl() } else { T::one_impl() };
    for p in pivots {
        product *= p;
        // A sum of exponents cannot leave the range, as a product in any order may.
        let Some(e) = product.exponent() else { return T::zero_impl() };
        product = product.times_power(-e);
        power += i64::from(e);
    }
    product.times_power(power.clamp(-5000, 5000) as i32)
}

/// Whether a permutation is odd.
fn parity(order: &[usize]) -> bool {
    let mut seen = vec![false; order.len()];
    let mut odd = false;
    for start in 0..order.len() {
        let mut k = order[start];
        seen[start] = true;
        while k != start && !seen[k] {
            seen[k] = true;
            odd = !odd;
            k = order[k];
        }
    }
    odd
}

/// The pivots of plain elimination, and whether its exchanges were odd; zeros where a column has no pivot.
fn eliminated<T: SeriesElement>(a: MatRef<'_, T>) -> (Vec<T>, bool) {
    let n = a.nrows();
    let mut m = a.to_owned();
    let mut odd = false;
    for k in 0..n {
        let best =
            (k..n).fold(k, |best, i| if m[(i, k)].modulus() > m[(best, k)].modulus() { i } else { best });
        if m[(best, k)].modulus() == 0.0 {
            return (vec![T::zero_impl(); n], odd);
        }
        if best != k {
            odd = !odd;
            for j in 0..n {
                let held = m[(k, j)];
                m[(k, j)] = m[(best, j)];
                m[(best, j)] = held;
            }
        }
        for i in k + 1..n {
            let factor = m[(i, k)].over(m[(k, k)]);
            for j in k + 1..n {
                m[(i, j)] = m[(i, j)] - factor * m[(k, j)];
            }
        }
    }
    ((0..n).map(|i| m[(i, i)]).collect(), odd)
}

#[cfg(test)]
mod tests {
    use super::super::{Matrix, Number, Series};
    use super::*;
    use crate::number::C64;

    fn matrix(n: usize, data: &[f64]) -> Matrix {
        Matrix::new(n, n, data.to_vec()).unwrap()
    }

    #[test]
    fn determinants_of_singular_matrices_are_zero() {
        let chain = matrix(4, &[0., 1., 0., 1., 1., 0., 1., 0., 0., 1., 0., 1., 1., 0., 1., 0.]);
        for m in [
            matrix(2, &[0.0, 1.0, 0.0, 0.0]),
            matrix(2, &[0.0, 0.0, 1.0, 0.0]),
            matrix(2, &[1.0, 2.0, 2.0, 4.0]),
            matrix(1, &[0.0]),
            matrix(3, &[0.0; 9]),
            chain,
        ] {
            assert_eq!(m.det().unwrap(), Number::Real(0.0), "{m}");
            assert_eq!(m.to_complex().det().unwrap().abs(), 0.0, "{m}");
            assert!(m.inverse().is_err(), "{m}");
        }
        // A path of even length has one perfect matching, one of odd length none.
        for (n, det) in [(2, -1.0), (3, 0.0), (4, 1.0), (5, 0.0), (6, -1.0)] {
            let mut path = Matrix::zeros(n, n).unwrap();
            for i in 1..n as i64 {
                path.set(i, i - 1, 1.0.into()).unwrap();
                path.set(i - 1, i, 1.0.into()).unwrap();
            }
            assert_eq!(path.det().unwrap(), Number::Real(det));
        }
    }

    #[test]
    fn sizes_do_not_matter() {
        let m = matrix(2, &[1e-300, 2e-300, 3e300, 4e300]);
        assert!((m.det().unwrap().re() + 2.0).abs() < 1e-14);
        let tiny = matrix(2, &[1e-310, 0.0, 0.0, 1e-308]);
        assert_eq!(tiny.det().unwrap().re(), 0.0);
        assert!(tiny.inverse().unwrap_err().to_string().contains("larger than any number"));
        let tiny = matrix(2, &[2e-308, 0.0, 1e-308, 1e-308]);
        let x = tiny.inverse().unwrap();
        for (k, expected) in [5e307, 0.0, -5e307, 1e308].into_iter().enumerate() {
            assert!((x.data().at(k as i64).unwrap().re() - expected).abs() <= 1e-14 * 1e308, "{x}");
        }
        // Regular, though the pivots differ by forty orders.
        let x = matrix(2, &[1.0, 0.0, 0.0, 1e-40]).inverse().unwrap();
        assert!((x.at(1, 1).unwrap().re() / 1e40 - 1.0).abs() < 1e-15);
        let many = Matrix::diagonal_of(&Series::from(vec![1e-3; 300])).unwrap();
        assert_eq!(many.det().unwrap().re(), 0.0);
        let even = Series::from((0..300).map(|i| if i < 150 { 1e-3 } else { 1e3 }).collect::<Vec<f64>>());
        assert!((Matrix::diagonal_of(&even).unwrap().det().unwrap().re() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn exchanges_count_for_the_sign() {
        let cycle = matrix(3, &[0., 1., 0., 0., 0., 1., 1., 0., 0.]);
        assert_eq!(cycle.det().unwrap().re(), 1.0);
        let swap = matrix(3, &[0., 1., 0., 1., 0., 0., 0., 0., 1.]);
        assert_eq!(swap.det().unwrap().re(), -1.0);
        assert_eq!(swap.scale(C64::I.into()).det().unwrap().to_c64(), C64::I);
        assert!(!parity(&[0, 1, 2]) && parity(&[1, 0, 2]) && !parity(&[1, 2, 0]) && parity(&[0, 3, 2, 1]));
    }

    #[test]
    fn plain_elimination_agrees() {
        let m = matrix(3, &[2.0, 1.0, 1.0, 4.0, 3.0, 3.0, 8.0, 7.0, 9.0]);
        let Series::Real(data) = m.data() else { unreachable!() };
        let (pivots, odd) = eliminated(MatRef::from_row_major_slice(data, 3, 3));
        let product: f64 = pivots.iter().product();
        assert!((if odd { -product } else { product } - 4.0).abs() < 1e-13);
    }
}
