//! Products, decompositions and functions of a `Matrix`, by faer.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par, Side};

use super::element::SeriesElement;
use super::format::counted;
use super::philox::{normals, words};
use super::{Arithmetic, C64, Matrix, Number, Series, complex, eigenvectors, hermitian, scalar, solve};
use crate::error::{Error, Result};

/// How far, relative to its largest element, a matrix may be from its Hermitian conjugate and still count as Hermitian.
pub const HERMITIAN: f64 = 1e-10;

/// The same of what rounding leaves in rows of zeros.
const ROUNDING: f64 = 1e-14;

/// Calls a generic function on the data of a matrix, whichever type they have.
macro_rules! each {
    ($matrix:expr, $view:ident => $body:expr) => {
        match $matrix.data() {
            Series::Real(data) => {
                let $view = MatRef::from_row_major_slice(data, $matrix.rows(), $matrix.cols());
                $body
            }
            Series::Complex(data) => {
                let $view = MatRef::from_row_major_slice(data, $matrix.rows(), $matrix.cols());
                $body
            }
        }
    };
}

fn collect<T: SeriesElement>(m: MatRef<'_, T>) -> Result<Matrix> {
    let data = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| *m.get(i, j))).collect();
    Matrix::new(m.nrows(), m.ncols(), T::series(data))
}

/// Threads cost more than they bring below some million operations.
fn par(work: usize) -> Par {
    if work < 1 << 20 { Par::Seq } else { faer::get_global_parallelism() }
}

fn product<T: SeriesElement>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Matrix> {
    let mut c = Mat::<T>::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, T::one_impl(), par(a.nrows() * a.ncols() * b.ncols()));
    collect(c.as_ref())
}

/// How many reflections are tried where an eigenproblem does not converge.
const REFLECTIONS: u64 = 3;

/// `1 - 2 v v^T` with a random unit vector.
fn reflection(n: usize, seed: u64) -> Result<Matrix> {
    let mut v: Vec<f64> = (0..n as u64).map(|i| normals(words(seed, 0, i, 0)).0).collect();
    let size = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    v.iter_mut().for_each(|x| *x /= size);
    let entry = |k: usize| f64::from(u8::from(k / n == k % n)) - 2.0 * v[k / n] * v[k % n];
    Matrix::new(n, n, Series::Real((0..n * n).map(entry).collect()))
}

fn failed(what: &str, matrix: &Matrix) -> Error {
    Error::numeric(format!("{what} of a {} matrix did not converge", matrix.shape()))
        .hint("its elements may be too far apart in size")
}

impl Matrix {
    pub(super) fn need_finite(&self, what: &str) -> Result<()> {
        let finite = match self.data() {
            Series::Real(x) => x.iter().all(|x| x.is_finite()),
            Series::Complex(z) => z.iter().all(|z| z.is_finite()),
        };
        if finite {
            Ok(())
        } else {
            Err(Error::input(format!(
                "{what}: the {} matrix has an element that is not finite",
                self.shape()
            ))
            .hint("look for a division by zero, or the logarithm of zero"))
        }
    }

    fn need_hermitian(&self, what: &str) -> Result<()> {
        self.need_square(what)?;
        self.need_finite(what)?;
        if self.is_hermitian(HERMITIAN) {
            return Ok(());
        }
        let distance = self.sub(&self.dagger())?.max_abs();
        Err(Error::input(format!(
            "{what} needs a Hermitian matrix; this {} one differs from its conjugate by up to {distance:.2e}",
            self.shape()
        ))
        .hint("`eigvals` takes any square matrix"))
    }

    /// This matrix with complex storage.
    pub fn to_complex(&self) -> Matrix {
        if self.is_complex() {
            return self.clone();
        }
        let data = self.data().to_complex();
        Matrix::from_fn(self.rows(), self.cols(), |i, j| data[i * self.cols() + j])
    }

    /// The matrix product; the columns of the first must be as many as the rows of the second.
    pub fn matmul(&self, other: &Matrix) -> Result<Matrix> {
        if self.cols() != other.rows() {
            return Err(Error::input(format!(
                "`matrix * matrix` needs inner sizes that agree, not {} and {}",
                self.shape(),
                other.shape()
            ))
            .hint("the first matrix has as many columns as the second has rows; look for a transpose"));
        }
        match (self.data(), other.data()) {
            (Series::Real(a), Series::Real(b)) => product(
                MatRef::from_row_major_slice(a, self.rows(), self.cols()),
                MatRef::from_row_major_slice(b, other.rows(), other.cols()),
            ),
            (a, b) => product(
                MatRef::from_row_major_slice(&a.to_complex(), self.rows(), self.cols()),
                MatRef::from_row_major_slice(&b.to_complex(), other.rows(), other.cols()),
            ),
        }
    }

    /// The matrix applied to a vector of as many elements as there are columns.
    pub fn apply(&self, vector: &Series) -> Result<Series> {
        if self.cols() != vector.len() {
            return Err(Error::input(format!(
                "`matrix * series`: a {} matrix acts on {}, not on {}",
                self.shape(),
                counted(self.cols(), "element"),
                vector.len()
            ))
            .hint("the series has one element for each column of the matrix"));
        }
        Ok(self.matmul(&Matrix::new(vector.len(), 1, vector.clone())?)?.data().clone())
    }

    /// Whole powers of a square matrix; negative ones invert it.
    pub fn power(&self, exponent: i64) -> Result<Matrix> {
        self.need_square("a power")?;
        let mut base = if exponent < 0 { self.inverse()? } else { self.clone() };
        let mut left = exponent.unsigned_abs();
        let mut result = Matrix::identity(self.rows())?;
        while left > 0 {
            if left & 1 == 1 {
                result = result.matmul(&base)?;
            }
            left >>= 1;
            if left > 0 {
                base = base.matmul(&base)?;
            }
        }
        Ok(result)
    }

    /// Eigenvalues, ascending, and orthonormal eigenvectors (columns) of a Hermitian matrix.
    pub fn eigh(&self) -> Result<(Series, Matrix)> {
        self.need_hermitian("eigh")?;
        let found = |matrix: &Matrix| -> Result<Option<(Series, Matrix)>> {
            each!(matrix, a => {
                let Some((values, vectors)) = hermitian::eigh(a, faer::get_global_parallelism()) else {
                    return Ok(None);
                };
                Ok(Some((Series::Real(values), collect(vectors.as_ref())?)))
            })
        };
        if let Some(pairs) = found(self)? {
            return Ok(pairs);
        }
        // Matrices that fall into blocks of very different size may defeat the iteration. A reflection mixes them and
        // keeps the eigenvalues.
        for attempt in 1..=REFLECTIONS {
            let mirror = reflection(self.rows(), attempt)?;
            if let Some((values, vectors)) = found(&mirror.matmul(self)?.matmul(&mirror)?)? {
                return Ok((values, mirror.matmul(&vectors)?));
            }
        }
        Err(failed("eigh", self))
    }

    /// The eigenvalues of any square matrix, by real then imaginary part; real if the matrix is Hermitian.
    pub fn eigvals(&self) -> Result<Series> {
        self.need_square("eigvals")?;
        self.need_finite("eigvals")?;
        if self.is_hermitian_by_rows(HERMITIAN, ROUNDING) {
            let (near_one, unit) = self.near_one();
            return each!(near_one, a => {
                match a.self_adjoint_eigenvalues(Side::Lower) {
                    Ok(values) => {
                        Ok(Series::Real(values.into_iter().map(|x| complex::scaled(x, unit)).collect()))
                    }
                    Err(_) => Ok(self.eigh()?.0),
                }
            });
        }
        let balanced = self.balanced();
        let values: Vec<C64> = match balanced.matrix.data() {
            Series::Real(data) => MatRef::from_row_major_slice(data, self.rows(), self.cols()).eigenvalues(),
            Series::Complex(data) => {
                MatRef::from_row_major_slice(data, self.rows(), self.cols()).eigenvalues()
            }
        }
        .map_err(|_| failed("eigvals", self))?;
        let mut values: Vec<C64> = values.into_iter().map(|z| complex::scale(z, balanced.unit)).collect();
        values.sort_by(|a, b| a.re.total_cmp(&b.re).then(a.im.total_cmp(&b.im)));
        Ok(Series::Complex(values))
    }

    /// Eigenvalues and right eigenvectors (columns of norm one) of any square matrix, in the order of
    /// [`Matrix::eigvals`], and whether the matrix is defective: without a full set of eigenvectors, so that two
    /// columns are one to nine digits.
    pub fn eig(&self) -> Result<(Series, Matrix, bool)> {
        self.need_square("eig")?;
        self.need_finite("eig")?;
        if self.is_hermitian_by_rows(HERMITIAN, ROUNDING) {
            let (values, vectors) = self.eigh()?;
            return Ok((values, vectors, false));
        }
        let n = self.rows();
        let balanced = self.balanced();
        let elements = balanced.matrix.data().to_complex();
        let a = MatRef::from_row_major_slice(&elements, n, n);
        let e = a.eigen().map_err(|_| failed("eig", self))?;
        let values: Vec<C64> = e.S().column_vector().iter().copied().collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| {
            values[i].re.total_cmp(&values[j].re).then(values[i].im.total_cmp(&values[j].im))
        });
        let values: Vec<C64> = order.iter().map(|&i| values[i]).collect();
        let vectors = eigenvectors::repaired(a, &values, |k| (0..n).map(|i| e.U()[(i, order[k])]).collect())?;
        // In balance: rows of very different units would make any two vectors look alike.
        let defective = eigenvectors::some_parallel(&values, &vectors);
        let vectors: Vec<Vec<C64>> =
            vectors.into_iter().map(|v| eigenvectors::in_units(v, &balanced.powers)).collect();
        let values = values.into_iter().map(|z| complex::scale(z, balanced.unit)).collect();
        Ok((Series::Complex(values), Matrix::from_fn(n, n, |i, j| vectors[j][i]), defective))
    }

    /// The matrix divided by a power of two, which is given too, so that its largest element is near one: products of
    /// columns neither vanish nor overflow there.
    fn near_one(&self) -> (Matrix, i32) {
        let size = complex::exponent(C64::new(self.max_abs(), 0.0)).unwrap_or(0);
        (self.times_powers(|_, _| -size), size)
    }

    /// The thin singular value decomposition (U, s, V), `self = U diag(s) V^dagger`, s descending.
    pub fn svd(&self) -> Result<(Matrix, Series, Matrix)> {
        self.need_finite("svd")?;
        let (near_one, size) = self.near_one();
        each!(near_one, a => {
            let d = a.thin_svd().map_err(|_| failed("svd", self))?;
            let values = d.S().column_vector().iter().map(|x| complex::scaled(Number::from(*x).re(), size));
            let values = values.collect::<Vec<f64>>();
            Ok((collect(d.U())?, Series::Real(values), collect(d.V())?))
        })
    }

    /// The thin QR decomposition: orthonormal columns, and an upper triangle.
    pub fn qr(&self) -> Result<(Matrix, Matrix)> {
        self.need_finite("qr")?;
        // Every column in a unit of its own, which changes its column of the triangle only.
        let largest = |j: usize| {
            each!(self, a => (0..self.rows()).filter_map(|i| a.get(i, j).exponent()).max()).unwrap_or(0)
        };
        let sizes: Vec<i32> = (0..self.cols()).map(largest).collect();
        let near_one = self.times_powers(|_, j| -sizes[j]);
        each!(near_one, a => {
            let d = a.qr();
            let triangle = collect(d.thin_R())?.times_powers(|_, j| sizes[j]);
            Ok((collect(d.compute_thin_Q().as_ref())?, triangle))
        })
    }

    /// The `x` of `self * x = right`; `right` has as many rows as the square matrix.
    pub fn solve(&self, right: &Matrix) -> Result<Matrix> {
        self.need_square("solve")?;
        self.need_finite("solve")?;
        if self.rows() != right.rows() {
            return Err(Error::input(format!(
                "solve: a {} matrix and a {} right-hand side",
                self.shape(),
                right.shape()
            ))
            .hint("the right-hand side has as many rows as the matrix"));
        }
        if self.is_complex() != right.is_complex() {
            return self.to_complex().solve(&right.to_complex());
        }
        match (self.data(), right.data()) {
            (Series::Real(a), Series::Real(b)) => solved(self, a, right, b),
            (a, b) => solved(self, &a.to_complex(), right, &b.to_complex()),
        }
    }

    /// The inverse of a square matrix; refused if it is singular to working precision.
    pub fn inverse(&self) -> Result<Matrix> {
        self.need_square("inverse")?;
        self.solve(&Matrix::identity(self.rows())?).map_err(|e| e.context("inverse"))
    }

    /// The determinant of a square matrix, 0 if elimination meets a column without a pivot.
    pub fn det(&self) -> Result<Number> {
        self.need_square("the determinant")?;
        self.need_finite("the determinant")?;
        each!(self, a => Ok(Number::from(solve::determinant(a))))
    }

    /// `f(self)` for a Hermitian matrix, by its eigenvectors.
    pub fn function_of_hermitian(&self, f: impl Fn(f64) -> C64) -> Result<Matrix> {
        let (values, vectors) = self.eigh()?;
        let scaled: Vec<C64> = values.as_real("eigh")?.iter().map(|&x| f(x)).collect();
        let data = vectors.data().to_complex();
        let n = self.rows();
        let left = Matrix::from_fn(n, n, |i, j| data[i * n + j] * scaled[j]);
        let result = left.matmul(&vectors.dagger())?;
        let stays_real = !self.is_complex() && scaled.iter().all(|z| z.im == 0.0);
        Ok(if stays_real { result.re() } else { result })
    }
}

fn solved<T: SeriesElement>(a: &Matrix, left: &[T], b: &Matrix, right: &[T]) -> Result<Matrix> {
    let left = MatRef::from_row_major_slice(left, a.rows(), a.cols());
    collect(solve::solved(left, MatRef::from_row_major_slice(right, b.rows(), b.cols()))?.as_ref())
}

/// `a b - b a`.
pub fn commutator(a: &Matrix, b: &Matrix) -> Result<Matrix> {
    a.matmul(b)?.sub(&b.matmul(a)?)
}

/// The scalar product of two vectors, weighted: `<a| m |b>`.
pub fn expectation(a: &Series, m: &Matrix, b: &Series) -> Result<Number> {
    Ok(a.conj().zip(Arithmetic::Mul, &m.apply(b)?)?.sum())
}

/// The unitary factor of an n x n matrix, row-major, whose other factor is upper triangular with a positive diagonal;
/// none where that diagonal vanishes. Its columns are those of the matrix made orthonormal one after the other.
pub fn unitary_factor(n: usize, m: &[C64]) -> Option<Vec<C64>> {
    let mut columns: Vec<Vec<C64>> = Vec::new();
    for j in 0..n {
        let mut v: Vec<C64> = (0..n).map(|i| m[i * n + j]).collect();
        let before = scalar::norm(&v);
        // Twice, so that rounding does not creep in.
        for _ in 0..2 {
            for q in &columns {
                let along: C64 = q.iter().zip(&v).map(|(q, v)| q.conj() * v).sum();
                v.iter_mut().zip(q).for_each(|(v, q)| *v -= along * q);
            }
        }
        let norm = scalar::norm(&v);
        if !(norm > 1e-12 * before) {
            return None;
        }
        v.iter_mut().for_each(|v| *v *= 1.0 / norm);
        columns.push(v);
    }
    Some((0..n * n).map(|k| columns[k % n][k / n]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matrices(n: usize) -> impl Strategy<Value = Matrix> {
        (any::<bool>(), proptest::collection::vec((-1.0..1.0, -1.0..1.0), n * n)).prop_map(
            move |(complex, data)| {
                let data = if complex {
                    Series::Complex(data.iter().map(|&(x, y): &(f64, f64)| C64::new(x, y)).collect())
                } else {
                    Series::Real(data.iter().map(|d| d.0).collect())
                };
                Matrix::new(n, n, data).unwrap()
            },
        )
    }

    fn any_matrix() -> impl Strategy<Value = Matrix> {
        (1usize..7).prop_flat_map(matrices)
    }

    fn close(a: &Matrix, b: &Matrix, tolerance: f64) -> bool {
        a.sub(b).unwrap().max_abs() <= tolerance * (1.0 + b.max_abs())
    }

    fn hermitian(m: &Matrix) -> Matrix {
        m.add(&m.dagger()).unwrap()
    }

    proptest! {
        #[test]
        fn products_agree_with_the_definition(a in matrices(5), b in matrices(5)) {
            let c = a.matmul(&b).unwrap();
            for i in 0..5 {
                for j in 0..5 {
                    let sum: C64 = (0..5).map(|k| a.at(i, k).unwrap().to_c64() * b.at(k, j).unwrap().to_c64()).sum();
                    prop_assert!((sum - c.at(i, j).unwrap().to_c64()).norm() < 1e-13);
                }
            }
        }

        #[test]
        fn the_adjoint_reverses_a_product(a in matrices(4), b in matrices(4)) {
            let ab = a.matmul(&b).unwrap().dagger();
            prop_assert!(close(&ab, &b.dagger().matmul(&a.dagger()).unwrap(), 1e-14));
        }

        #[test]
        fn kron_of_products_is_the_product_of_krons(
            a in matrices(3), b in matrices(2), c in matrices(3), d in matrices(2),
        ) {
            let left = a.kron(&b).unwrap().matmul(&c.kron(&d).unwrap()).unwrap();
            let right = a.matmul(&c).unwrap().kron(&b.matmul(&d).unwrap()).unwrap();
            prop_assert!(close(&left, &right, 1e-13));
        }

        #[test]
        fn decompositions_multiply_back(a in any_matrix()) {
            let n = a.rows();
            let one = Matrix::identity(n).unwrap();
            let (u, s, v) = a.svd().unwrap();
            let back = u.matmul(&Matrix::diagonal_of(&s).unwrap()).unwrap().matmul(&v.dagger()).unwrap();
            prop_assert!(close(&back, &a, 1e-13));
            let (q, r) = a.qr().unwrap();
            prop_assert!(close(&q.matmul(&r).unwrap(), &a, 1e-13));
            prop_assert!(close(&q.dagger().matmul(&q).unwrap(), &one, 1e-13));
            let h = hermitian(&a);
            let (values, vectors) = h.eigh().unwrap();
            let diagonal = Matrix::diagonal_of(&values).unwrap();
            let back = vectors.matmul(&diagonal).unwrap().matmul(&vectors.dagger()).unwrap();
            prop_assert!(close(&back, &h, 1e-12));
            prop_assert!(close(&vectors.dagger().matmul(&vectors).unwrap(), &one, 1e-12));
        }

        #[test]
        fn eigenvalues_sum_to_the_trace(a in any_matrix()) {
            let difference = a.eigvals().unwrap().sum().to_c64() - a.trace().unwrap().to_c64();
            prop_assert!(difference.norm() < 1e-11);
        }

        #[test]
        fn solutions_solve(a in any_matrix()) {
            // Diagonally dominant, so that no draw is singular.
            let n = a.rows();
            let a = a.add(&Matrix::identity(n).unwrap().scale(Number::Real(10.0))).unwrap();
            let x = a.inverse().unwrap();
            prop_assert!(close(&a.matmul(&x).unwrap(), &Matrix::identity(n).unwrap(), 1e-13));
            let product = Arithmetic::Mul.number(a.det().unwrap(), x.det().unwrap());
            prop_assert!((product.to_c64() - 1.0).norm() < 1e-12);
        }

        #[test]
        fn the_exponential_inverts_by_sign(a in any_matrix(), t in 0.1..8.0) {
            let n = a.rows();
            let a = a.scale(Number::Real(t));
            let both = a.expm().unwrap().matmul(&a.scale(Number::Real(-1.0)).expm().unwrap()).unwrap();
            let size = a.expm().unwrap().norm() * a.scale(Number::Real(-1.0)).expm().unwrap().norm();
            prop_assert!(both.sub(&Matrix::identity(n).unwrap()).unwrap().max_abs() < 1e-12 * size);
            let h = hermitian(&a);
            let u = h.scale(Number::Complex(-C64::I)).expm().unwrap();
            prop_assert!(close(&u.matmul(&u.dagger()).unwrap(), &Matrix::identity(n).unwrap(), 1e-12));
            let by_eigenvalues: f64 = h.eigvals().unwrap().map(crate::number::ElementaryFunction::Exp).sum().re();
            prop_assert!((h.expm().unwrap().trace().unwrap().re() / by_eigenvalues - 1.0).abs() < 1e-11);
        }

        #[test]
        fn powers_multiply(a in matrices(3)) {
            let cube = a.matmul(&a).unwrap().matmul(&a).unwrap();
            prop_assert!(close(&a.power(3).unwrap(), &cube, 1e-13));
        }
    }

    #[test]
    fn pade_agrees_with_the_series_of_a_nilpotent_matrix() {
        let mut m = Matrix::zeros(3, 3).unwrap();
        m.set(0, 1, 2.0.into()).unwrap();
        m.set(1, 2, 3.0.into()).unwrap();
        let e = m.expm().unwrap();
        let expected = Matrix::new(3, 3, vec![1.0, 2.0, 3.0, 0.0, 1.0, 3.0, 0.0, 0.0, 1.0]).unwrap();
        assert!(close(&e, &expected, 1e-15));
    }

    #[test]
    fn matrices_with_too_few_eigenvectors_have_unit_ones() {
        let jordan = |n: usize, value: f64| {
            Matrix::from_fn(n, n, |i, j| {
                C64::new(
                    if i == j {
                        value
                    } else if i + 1 == j {
                        1.0
                    } else {
                        0.0
                    },
                    0.0,
                )
            })
        };
        let mut twice = Matrix::zeros(4, 4).unwrap();
        twice.set(0, 1, 1.0.into()).unwrap();
        let cases = [
            (jordan(2, 0.0).re(), true),
            (jordan(3, 2.0), true),
            (jordan(5, -1.0).re(), true),
            (Matrix::new(2, 2, vec![1.0, 1e-200, 0.0, 1.0]).unwrap(), false),
            (twice, true),
            (Matrix::new(2, 2, vec![1.0, 1.0, 0.0, 2.0]).unwrap(), false),
            (Matrix::new(3, 3, vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0]).unwrap(), false),
        ];
        for (m, expected) in cases {
            let (values, vectors, defective) = m.eig().unwrap();
            assert_eq!(defective, expected, "{m}");
            let size = m.max_abs();
            for k in 0..m.rows() as i64 {
                let v = vectors.column(k).unwrap();
                assert!((v.norm() - 1.0).abs() < 1e-12, "{m} {vectors}");
                let image = m.apply(&v).unwrap();
                let back = v.with(Arithmetic::Mul, values.at(k).unwrap());
                assert!(image.zip(Arithmetic::Sub, &back).unwrap().norm() < 1e-8 * size, "{m} {vectors}");
            }
        }
        // Both vectors of the double eigenvalue, which is not defective.
        let m = Matrix::new(3, 3, vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0]).unwrap();
        let (_, vectors, _) = m.eig().unwrap();
        assert!(vectors.det().unwrap().abs() > 0.1);
    }

    #[test]
    fn bad_input_is_refused() {
        let m = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let e = m.eigh().unwrap_err();
        assert!(e.to_string().contains("needs a Hermitian matrix; this 2 x 2 one"), "{e}");
        assert!(Matrix::zeros(2, 3).unwrap().eigh().is_err());
        let nan = Matrix::new(1, 1, vec![f64::NAN]).unwrap();
        assert!(nan.eigh().is_err() && nan.svd().is_err() && nan.expm().is_err() && nan.eigvals().is_err());
        let singular = Matrix::new(2, 2, vec![1.0, 2.0, 2.0, 4.0]).unwrap();
        assert!(singular.inverse().unwrap_err().to_string().contains("singular"));
        assert!(m.solve(&Matrix::zeros(3, 1).unwrap()).is_err());
        assert!(m.power(-2).is_ok() && singular.power(-1).is_err());
    }

    #[test]
    fn empty_matrices_do_not_panic() {
        let none = Matrix::zeros(0, 0).unwrap();
        assert!(none.eigh().is_ok() && none.matmul(&none).is_ok() && none.expm().is_ok());
        assert!(none.svd().is_ok() && none.qr().is_ok() && none.det().is_ok() && none.inverse().is_ok());
        assert!(Matrix::zeros(3, 0).unwrap().svd().is_ok());
    }

    #[test]
    fn singular_values_have_any_unit() {
        for unit in [1e-320, 1e-200, 1.0, 1e200, 1e307] {
            // The squares of the singular values sum up to 5, their product is 2: 3 and 2 times 1, over 1.
            let a = Matrix::new(2, 2, Series::Real(vec![0.0, -2.0 * unit, unit, -unit])).unwrap();
            let (u, s, v) = a.svd().unwrap();
            let Series::Real(s) = s else { panic!() };
            let exact = [(3.0 + 5f64.sqrt()).sqrt(), (3.0 - 5f64.sqrt()).sqrt()];
            // Numbers that small have few digits.
            let digits = if unit < 1e-300 { 1e-3 } else { 1e-14 };
            assert!(s.iter().zip(exact).all(|(s, e)| (s / unit - e).abs() < digits), "{unit}: {s:?}");
            let one = Matrix::identity(2).unwrap();
            assert!(
                close(&u.dagger().matmul(&u).unwrap(), &one, 1e-14)
                    && close(&v.dagger().matmul(&v).unwrap(), &one, 1e-14)
            );
        }
    }

    #[test]
    fn the_unitary_factor_is_the_one_of_a_positive_diagonal() {
        let m: Vec<C64> =
            [(1.0, 2.0), (0.5, -1.0), (-3.0, 0.0), (2.0, 1.0)].map(|(a, b)| C64::new(a, b)).into();
        let q = unitary_factor(2, &m).unwrap();
        let r = |i: usize, j: usize| (0..2).map(|k| q[k * 2 + i].conj() * m[k * 2 + j]).sum::<C64>();
        assert!(r(1, 0).norm() < 1e-14 && r(0, 0).im.abs() < 1e-14 && r(0, 0).re > 0.0 && r(1, 1).re > 0.0);
        assert!(unitary_factor(1, &[C64::ZERO]).is_none());
        assert_eq!(unitary_factor(1, &[C64::new(-2.0, 0.0)]).unwrap(), [C64::new(-1.0, 0.0)]);
    }

    #[test]
    fn small_elements_beside_large_ones_are_not_taken_for_rounding() {
        for large in [0.0, 1e5, 1e12, -1e13] {
            let m = Matrix::new(3, 3, vec![large, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0]).unwrap();
            let (values, _, _) = m.eig().unwrap();
            for values in [m.eigvals().unwrap(), values] {
                let mut expected = [C64::new(large, 0.0), C64::I, -C64::I].to_vec();
                for z in values.to_complex() {
                    let at = expected.iter().position(|e| (e - z).norm() < 1e-14 * e.norm().max(1.0));
                    expected.remove(at.unwrap_or_else(|| panic!("{z} of {large}")));
                }
            }
            // What rounding leaves makes no matrix complex.
            let rough = [large, 1e-15, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0 + 1e-12, 0.0];
            let rough = Matrix::new(3, 3, rough.to_vec()).unwrap();
            assert!(matches!(rough.eigvals().unwrap(), Series::Real(_)), "{large}");
        }
    }
}
