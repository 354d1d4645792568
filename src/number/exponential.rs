//! The exponential of a matrix: by eigenvectors where they are orthogonal, else by scaling and squaring (A. Al-Mohy
//! and N. Higham, SIAM J. Matrix Anal. Appl. 31, 970 (2009)). The scaling follows the powers of the matrix instead of
//! its norm: more squarings than needed would lose a digit with every few squares.

use super::balance::Balanced;
use super::{C64, Matrix, Number, Series};
use crate::error::{Error, Result};

/// Coefficients of the [13/13] Pade approximant of the exponential.
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];

/// What rounding may leave in rows of zeros, relative to the largest element.
const ROUNDING: f64 = 1e-16;

/// The largest size of a matrix for which degree 13 reaches double precision.
const THETA: f64 = 4.25;

impl Matrix {
    /// The matrix exponential: by eigenvectors for Hermitian and anti-Hermitian matrices (so that `exp(-i H t)` is
    /// unitary to rounding), else by scaling, the Pade approximant of degree 13, and squaring.
    ///
    /// # Errors
    /// When an element of the result is larger than any number.
    pub fn expm(&self) -> Result<Matrix> {
        self.need_square("expm")?;
        self.need_finite("expm")?;
        let parts = parts_of(self);
        let result = if parts.len() > 1 { by_parts(self, &parts)? } else { of_one_part(self)? };
        if result.need_finite("expm").is_err() {
            return Err(Error::numeric(format!(
                "expm: elements of the exponential of this {} matrix are larger than any number",
                self.shape()
            ))
            .hint(
                "take a multiple c of the identity off first, which divides the exponential by that of c",
            ));
        }
        Ok(result)
    }
}

/// The rows of the blocks that the matrix falls into, when its rows and columns are brought into their order.
fn parts_of(m: &Matrix) -> Vec<Vec<usize>> {
    let n = m.rows();
    let joined = |i: usize, j: usize| match m.data() {
        Series::Real(x) => x[i * n + j] != 0.0 || x[j * n + i] != 0.0,
        Series::Complex(z) => z[i * n + j] != C64::ZERO || z[j * n + i] != C64::ZERO,
    };
    let mut left: Vec<usize> = (0..n).collect();
    let mut parts = Vec::new();
    while let Some(first) = left.first() {
        let mut part = vec![*first];
        left.remove(0);
        let mut looked = 0;
        while looked < part.len() {
            let i = part[looked];
            part.extend(left.extract_if(.., |j| joined(i, *j)));
            looked += 1;
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

/// Block by block, since rounding of the largest one would be that of all.
fn by_parts(m: &Matrix, parts: &[Vec<usize>]) -> Result<Matrix> {
    let n = m.rows();
    let mut whole = vec![C64::ZERO; n * n];
    for part in parts {
        let size = part.len();
        let places = || part.iter().flat_map(|i| part.iter().map(move |j| i * n + j));
        let block = match m.data() {
            Series::Real(x) => Series::Real(places().map(|k| x[k]).collect()),
            Series::Complex(z) => Series::Complex(places().map(|k| z[k]).collect()),
        };
        let block = of_one_part(&Matrix::new(size, size, block)?)?;
        places().zip(block.data().to_complex()).for_each(|(k, z)| whole[k] = z);
    }
    let whole = Matrix::new(n, n, whole)?;
    Ok(if m.is_complex() { whole } else { whole.re() })
}

fn of_one_part(m: &Matrix) -> Result<Matrix> {
    if m.is_hermitian_by_rows(1e-15, ROUNDING) {
        return m.function_of_hermitian(|x| C64::new(x.exp(), 0.0));
    }
    let turned = m.scale(C64::I.into());
    if !turned.is_hermitian_by_rows(1e-15, ROUNDING) {
        return pade(m);
    }
    let result = turned.function_of_hermitian(|x| C64::new(0.0, -x).exp())?;
    Ok(if m.is_complex() { result } else { result.re() })
}

/// The largest sum of moduli of a column.
fn norm(m: &Matrix) -> f64 {
    largest(&column_sums(m, &vec![1.0; m.rows()]))
}

/// NaN if there is one.
fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |a, &b| if a.is_nan() || b <= a { a } else { b })
}

/// The sums of the moduli of every column, each row with its weight.
fn column_sums(m: &Matrix, weights: &[f64]) -> Vec<f64> {
    let n = m.cols();
    let mut sums = vec![0.0; n];
    let mut add = |k: usize, modulus: f64| sums[k % n] += weights[k / n] * modulus;
    match m.data() {
        Series::Real(data) => data.iter().enumerate().for_each(|(k, x)| add(k, x.abs())),
        Series::Complex(data) => data.iter().enumerate().for_each(|(k, z)| add(k, z.norm())),
    }
    sums
}

/// How often a matrix is to be halved, from its even powers up to the tenth.
fn halvings(a: &Matrix, a4: &Matrix, a6: &Matrix) -> Result<i32> {
    let root = |norm: f64, power: f64| norm.powf(1.0 / power);
    let d6 = root(norm(a6), 6.0);
    let d8 = root(norm(&a4.matmul(a4)?), 8.0);
    let d10 = root(norm(&a4.matmul(a6)?), 10.0);
    let size = d6.max(d8).min(d8.max(d10));
    // Powers beyond the range of numbers say nothing; the norm bounds them all.
    let size = if size.is_finite() && size > 0.0 { size } else { norm(a) };
    let first = (size / THETA).log2().ceil().max(0.0);
    if !first.is_finite() {
        return Ok(0);
    }
    // What the approximant of a matrix far from normal rounds away: the 27th power of the moduli.
    let scaled = a.scale(Number::Real(0.5f64.powi(first as i32)));
    let mut sums = vec![1.0; a.rows()];
    for _ in 0..27 {
        sums = column_sums(&scaled, &sums);
    }
    let error = largest(&sums) / (norm(&scaled) * 1.1324968810237862e35) / (0.5 * f64::EPSILON);
    let more = (error.log2() / 26.0).ceil();
    Ok((first + if more.is_finite() { more.max(0.0) } else { 0.0 }).min(1100.0) as i32)
}

/// Rows and columns of like norms first: halvings that one large element asks for would cost all others their digits.
fn pade(matrix: &Matrix) -> Result<Matrix> {
    let Balanced { matrix, powers, unit } = matrix.balanced();
    let result = pade_in_balance(&matrix.times_powers(|_, _| unit))?;
    Ok(result.times_powers(|i, j| powers[i] - powers[j]))
}

fn pade_in_balance(matrix: &Matrix) -> Result<Matrix> {
    let n = matrix.rows();
    let one = Matrix::identity(n)?;
    let a2 = matrix.matmul(matrix)?;
    let a4 = a2.matmul(&a2)?;
    let a6 = a4.matmul(&a2)?;
    let plain = (norm(matrix) / THETA).log2().ceil().clamp(0.0, 1100.0) as i32;
    let finite = a6.need_finite("expm").is_ok();
    let halvings = if plain > 0 && finite { halvings(matrix, &a4, &a6)?.min(plain) } else { plain };
    let (a, a2, a4, a6) = if finite {
        let by = |m: &Matrix, power: i32| m.scale(Number::Real(0.5f64.powi(power * halvings)));
        (by(matrix, 1), by(&a2, 2), by(&a4, 4), by(&a6, 6))
    } else {
        let a = matrix.scale(Number::Real(0.5f64.powi(halvings)));
        let a2 = a.matmul(&a)?;
        let a4 = a2.matmul(&a2)?;
        let a6 = a4.matmul(&a2)?;
        (a, a2, a4, a6)
    };
    let combine = |c: [usize; 3]| -> Result<Matrix> {
        let term = |m: &Matrix, k: usize| m.scale(Number::Real(PADE[k]));
        term(&a6, c[2]).add(&term(&a4, c[1]))?.add(&term(&a2, c[0]))
    };
    let scaled_one = |k: usize| one.scale(Number::Real(PADE[k]));
    let odd =
        a.matmul(&a6.matmul(&combine([9, 11, 13])?)?.add(&combine([3, 5, 7])?)?.add(&scaled_one(1))?)?;
    let even = a6.matmul(&combine([8, 10, 12])?)?.add(&combine([2, 4, 6])?)?.add(&scaled_one(0))?;
    let mut result = even.sub(&odd)?.solve(&even.add(&odd)?).map_err(|e| e.context("expm"))?;
    for _ in 0..halvings {
        result = result.matmul(&result)?;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize, data: &[f64]) -> Matrix {
        Matrix::new(n, n, data.to_vec()).unwrap()
    }

    #[test]
    fn what_is_larger_than_any_number_is_refused() {
        let blocks = matrix(4, &[800., 1., 0., 0., 0., 800., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0.]);
        for m in [blocks, matrix(1, &[710.0]), matrix(2, &[1e300, 1.0, 0.0, 0.0])] {
            assert!(m.expm().unwrap_err().to_string().contains("larger than any number"), "{m}");
        }
        assert_eq!(matrix(1, &[-1e300]).expm().unwrap().at(0, 0).unwrap().re(), 0.0);
    }

    #[test]
    fn blocks_have_their_own_digits() {
        let (cos, sin) = (1f64.cos(), 1f64.sin());
        for large in [-1e16, -1e3, 0.0, 3.0] {
            // The rows 0 and 2 turn; row 1 is alone.
            let e = matrix(3, &[0.0, 0.0, 1.0, 0.0, large, 0.0, -1.0, 0.0, 0.0]).expm().unwrap();
            let expected = matrix(3, &[cos, 0.0, sin, 0.0, large.exp(), 0.0, -sin, 0.0, cos]);
            assert!(e.sub(&expected).unwrap().max_abs() < 1e-14 * large.exp().max(1.0), "{large}: {e}");
        }
        // In one block with a large number that rounding would make of an element's partner, too.
        let e = matrix(3, &[-1e12, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0]).expm().unwrap();
        assert!((e.at(1, 2).unwrap().re() - sin).abs() < 1e-3, "{e}");
    }

    #[test]
    fn large_elements_off_the_diagonal_cost_no_digits() {
        // exp of [[a, b], [0, c]] is [[e^a, b (e^a - e^c) / (a - c)], [0, e^c]].
        // The tenth power of the last one takes 14 squarings, each of which may double an error.
        for (b, tolerance) in [(1e3, 2e-13), (1e8, 2e-13), (1e30, 2e-11)] {
            for (a, c) in [(1.0, -1.0), (0.5, 0.25), (-20.0, 1.0)] {
                let e = matrix(2, &[a, b, 0.0, c]).expm().unwrap();
                let (ea, ec) = (f64::exp(a), f64::exp(c));
                for (i, j, expected) in [(0, 0, ea), (1, 1, ec), (0, 1, b * (ea - ec) / (a - c))] {
                    let found = e.at(i, j).unwrap().re();
                    assert!(
                        (found / expected - 1.0).abs() < tolerance,
                        "{a} {b} {c}: {found} for {expected}"
                    );
                }
            }
        }
    }
}
