//! Balancing of square matrices: `a = D b D^-1` with a diagonal D of powers of two, which rounds nothing, so that rows
//! and columns of b have about the same norms (B. Parlett and C. Reinsch, Numer. Math. 13, 293 (1969); with the norms
//! of R. James, J. Langou and B. Lowery, arXiv:1401.5766, which count the diagonal). Exponents are summed, not numbers:
//! elements may lie farther apart than numbers reach.

use super::{Matrix, Series, complex};

/// Rounds of rows and columns; a few are the rule.
const ROUNDS: usize = 100;

/// A step is taken where it makes the sum of both norms smaller than this share.
const WORTH: f64 = 0.95;

/// A matrix brought to rows and columns of like norms: `a[i, j] = matrix[i, j] 2^(powers[i] - powers[j] + unit)`.
pub(super) struct Balanced {
    pub matrix: Matrix,
    pub powers: Vec<i32>,
    pub unit: i32,
}

impl Matrix {
    /// The matrix with each element times a power of two, of its row and its column.
    pub(super) fn times_powers(&self, power: impl Fn(usize, usize) -> i32) -> Matrix {
        let n = self.cols();
        let data = match self.data() {
            Series::Real(x) => Series::Real(
                x.iter().enumerate().map(|(k, x)| complex::scaled(*x, power(k / n, k % n))).collect(),
            ),
            Series::Complex(z) => Series::Complex(
                z.iter().enumerate().map(|(k, z)| complex::scale(*z, power(k / n, k % n))).collect(),
            ),
        };
        self.with_data(data)
    }

    /// The balanced matrix, its largest element near one.
    pub(super) fn balanced(&self) -> Balanced {
        let n = self.rows();
        let logs: Vec<f64> = (0..n * n).map(|k| self.log2(k)).collect();
        let powers = powers(n, &logs);
        let largest = (0..n * n)
            .map(|k| logs[k] + f64::from(powers[k % n] - powers[k / n]))
            .fold(f64::NEG_INFINITY, f64::max);
        let unit = if largest.is_finite() { largest.floor() as i32 } else { 0 };
        let matrix = self.times_powers(|i, j| powers[j] - powers[i] - unit);
        Balanced { matrix, powers, unit }
    }

    /// The binary logarithm of the larger part of an element; minus infinity of zero.
    fn log2(&self, k: usize) -> f64 {
        let of = |large: f64| {
            // Of a mantissa and an exponent: the logarithm of a number beyond the normal ones has few digits.
            let (mantissa, exponent) = libm::frexp(large);
            mantissa.log2() + f64::from(exponent)
        };
        match self.data() {
            Series::Real(x) => of(x[k].abs()),
            Series::Complex(z) => of(z[k].re.abs().max(z[k].im.abs())),
        }
    }
}

/// The logarithm of the norm of numbers given by logarithms.
fn norm(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + 0.5 * logs.map(|x| (2.0 * (x - largest)).exp2()).sum::<f64>().log2()
}

fn powers(n: usize, logs: &[f64]) -> Vec<i32> {
    let mut powers = vec![0i32; n];
    for _ in 0..ROUNDS {
        let mut moved = false;
        for i in 0..n {
            let at = |k: usize, other: usize, sign: f64| {
                if other == i { logs[k] } else { logs[k] + sign * f64::from(powers[i] - powers[other]) }
            };
            let column = norm((0..n).map(|j| at(j * n + i, j, 1.0)));
            let row = norm((0..n).map(|j| at(i * n + j, j, -1.0)));
            if !(column.is_finite() && row.is_finite()) {
                continue;
            }
            let step = (0.5 * (row - column)).round();
            // Relative to the larger norm, of which powers of two cannot overflow.
            let large = column.max(row);
            let size = |column: f64, row: f64| (column - large).exp2() + (row - large).exp2();
            if step != 0.0 && size(column + step, row - step) < WORTH * size(column, row) {
                powers[i] += step as i32;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::super::C64;
    use super::*;

    /// A matrix without symmetry, of eigenvalues that are known by other means, in rows and columns of any unit.
    fn scaled(n: usize, complex: bool, unit: f64, spread: f64) -> (Matrix, Matrix, Vec<f64>) {
        let entry = |i: usize, j: usize| {
            let x = ((i * 7 + j * 3) % 11) as f64 - 5.0 + if i == j { i as f64 } else { 0.0 };
            C64::new(x, if complex { ((i * 5 + j) % 7) as f64 - 3.0 } else { 0.0 })
        };
        let d: Vec<f64> =
            (0..n).map(|i| 2f64.powf(spread * ((i * 5 % n) as f64 / (n - 1) as f64 - 0.5))).collect();
        let d: Vec<f64> = d.iter().map(|d| d.log2().round().exp2()).collect();
        let plain = Matrix::from_fn(n, n, entry);
        let bad = Matrix::from_fn(n, n, |i, j| entry(i, j) * unit * (d[i] / d[j]));
        if complex { (plain, bad, d) } else { (plain.re(), bad.re(), d) }
    }

    #[test]
    fn eigenvalues_and_vectors_have_their_digits_in_any_units() {
        for complex in [false, true] {
            for (n, spread, unit) in
                [(5, 60.0, 1.0), (12, 100.0, 2f64.powi(900)), (12, 100.0, 2f64.powi(-900)), (30, 50.0, 1.0)]
            {
                let (plain, bad, d) = scaled(n, complex, unit, spread);
                let expected = plain.eigvals().unwrap().to_complex();
                let size = plain.max_abs();
                let (values, vectors, defective) = bad.eig().unwrap();
                assert!(!defective);
                for values in [bad.eigvals().unwrap(), values.clone()] {
                    let mut expected = expected.clone();
                    for z in values.to_complex() {
                        let z = C64::new(z.re / unit, z.im / unit);
                        let far = |e: &C64| (e - z).norm();
                        let near = (0..expected.len())
                            .min_by(|&a, &b| far(&expected[a]).total_cmp(&far(&expected[b])));
                        let near = expected.remove(near.unwrap());
                        assert!(far(&near) < 1e-12 * size * n as f64, "{n} {spread} {unit:e}: {z} {near}");
                    }
                }
                for k in 0..n {
                    let column = vectors.column(k as i64).unwrap().to_complex();
                    assert!((column.iter().map(|z| z.norm_sqr()).sum::<f64>() - 1.0).abs() < 1e-12);
                    // In the units of the matrix that is well scaled.
                    let v: Vec<C64> = column.iter().zip(&d).map(|(z, d)| z / d).collect();
                    let large = v.iter().map(|z| z.norm()).fold(0.0, f64::max);
                    let value = values.to_complex()[k] / unit;
                    for i in 0..n {
                        let row: C64 =
                            (0..n).map(|j| plain.at(i as i64, j as i64).unwrap().to_c64() * v[j]).sum();
                        assert!(
                            (row - value * v[i]).norm() < 1e-11 * size * n as f64 * large,
                            "{n} {spread} {k} {i}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn exponentials_have_their_digits_in_any_units() {
        for complex in [false, true] {
            for (n, spread) in [(5, 60.0), (12, 100.0)] {
                let (plain, bad, d) = scaled(n, complex, 0.125, spread);
                let plain = plain.times_powers(|_, _| -3);
                let (expected, found) = (plain.expm().unwrap(), bad.expm().unwrap());
                for (i, j) in (0..n * n).map(|k| (k / n, k % n)) {
                    let at = |m: &Matrix| m.at(i as i64, j as i64).unwrap().to_c64();
                    let off = (at(&found) * (d[j] / d[i]) - at(&expected)).norm();
                    assert!(off < 1e-12 * expected.max_abs(), "{n} {spread} {i} {j}: {off:e}");
                }
            }
        }
        // cosh(1) and sinh(1) in units far from each other.
        for unit in [1e-300, 1e-170, 1e30, 1e300] {
            let e = Matrix::new(2, 2, vec![0.0, unit, 1.0 / unit, 0.0]).unwrap().expm().unwrap();
            for (i, j, expected) in
                [(0, 0, 1f64.cosh()), (0, 1, unit * 1f64.sinh()), (1, 0, 1f64.sinh() / unit)]
            {
                assert!((e.at(i, j).unwrap().re() / expected - 1.0).abs() < 1e-14, "{unit:e}: {e}");
            }
        }
    }

    #[test]
    fn the_triangle_of_a_qr_decomposition_has_any_unit() {
        for unit in [1e-320, 1e-300, 1e-200, 1.0, 1e200, 1e307] {
            for other in [1.0, unit] {
                let m = Matrix::new(3, 2, vec![3.0 * unit, other, 0.0, 2.0 * other, 4.0 * unit, 3.0 * other])
                    .unwrap();
                let (q, r) = m.qr().unwrap();
                let one = q.dagger().matmul(&q).unwrap().sub(&Matrix::identity(2).unwrap()).unwrap();
                assert!(one.max_abs() < 1e-14, "{unit:e}: {q}");
                // 5 for the first column, 3 along it of the second, and the root of 14 - 9 across.
                let digits = if unit < 1e-310 { 1e-3 } else { 1e-14 };
                for (at, expected) in
                    [((0, 0), 5.0 * unit), ((0, 1), 3.0 * other), ((1, 1), 5f64.sqrt() * other)]
                {
                    let found = r.at(at.0, at.1).unwrap().abs();
                    assert!((found / expected - 1.0).abs() < digits, "{unit:e} {at:?}: {r}");
                }
            }
        }
        let none = Matrix::zeros(3, 2).unwrap().qr().unwrap().1;
        assert_eq!(none.max_abs(), 0.0);
    }

    #[test]
    fn what_is_in_balance_stays() {
        for n in [1, 2, 6] {
            let m = Matrix::from_fn(n, n, |i, j| C64::new((i * n + j) as f64 + 1.0, 0.0));
            assert!(m.add(&m.dagger()).unwrap().balanced().powers.iter().all(|p| *p == 0), "{n}");
            assert!(Matrix::zeros(n, n).unwrap().balanced().matrix.max_abs() == 0.0);
        }
    }
}
