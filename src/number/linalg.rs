//! Products, decompositions and functions of a `Matrix`, by faer.

use faer::linalg::matmul::matmul;
use faer::prelude::Solve;
use faer::traits::ComplexField;
use faer::{Accum, Mat, MatRef, Par, Side};

use super::{Arithmetic, C64, Matrix, Number, Series};
use crate::error::{Error, Result};

/// How far, relative to its largest element, a matrix may be from its Hermitian conjugate and still count as Hermitian.
pub const HERMITIAN: f64 = 1e-10;

/// An element type that faer and `Series` both know.
trait Element: ComplexField + Copy {
    fn series(data: Vec<Self>) -> Series;
    fn modulus(self) -> f64;
}

impl Element for f64 {
    fn series(data: Vec<f64>) -> Series {
        Series::Real(data)
    }
    fn modulus(self) -> f64 {
        self.abs()
    }
}

impl Element for C64 {
    fn series(data: Vec<C64>) -> Series {
        Series::Complex(data)
    }
    fn modulus(self) -> f64 {
        self.norm()
    }
}

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

fn collect<T: Element>(m: MatRef<'_, T>) -> Result<Matrix> {
    let data = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| *m.get(i, j))).collect();
    Matrix::new(m.nrows(), m.ncols(), T::series(data))
}

/// Threads cost more than they bring below some million operations.
fn par(work: usize) -> Par {
    if work < 1 << 20 { Par::Seq } else { faer::get_global_parallelism() }
}

fn product<T: Element>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<Matrix> {
    let mut c = Mat::<T>::zeros(a.nrows(), b.ncols());
    matmul(&mut c, Accum::Replace, a, b, T::one_impl(), par(a.nrows() * a.ncols() * b.ncols()));
    collect(c.as_ref())
}

fn failed(what: &str, matrix: &Matrix) -> Error {
    Error::numeric(format!("{what} of a {} matrix did not converge", matrix.shape()))
}

/// LU with partial pivoting, refused if a pivot says that the matrix is singular to working precision.
fn lu<T: Element>(a: MatRef<'_, T>, what: &str) -> Result<faer::linalg::solvers::PartialPivLu<T>> {
    let lu = a.to_owned().partial_piv_lu();
    let pivots: Vec<f64> = (0..a.nrows()).map(|i| lu.U().get(i, i).modulus()).collect();
    let (low, high) = pivots.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), &p| (l.min(p), h.max(p)));
    if !pivots.is_empty() && low <= high * f64::EPSILON {
        let n = a.nrows();
        return Err(Error::numeric(format!("{what}: the {n} x {n} matrix is singular to working precision")));
    }
    Ok(lu)
}

impl Matrix {
    fn need_finite(&self, what: &str) -> Result<()> {
        if self.data().iter().all(|x| x.to_c64().is_finite()) {
            Ok(())
        } else {
            Err(Error::input(format!(
                "{what}: the {} matrix has an element that is not finite",
                self.shape()
            )))
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
            )));
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
                "`matrix * series`: a {} matrix acts on {} elements, not on {}",
                self.shape(),
                self.cols(),
                vector.len()
            )));
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
        each!(self, a => {
            let e = a.self_adjoint_eigen(Side::Lower).map_err(|_| failed("eigh", self))?;
            let values = e.S().column_vector().iter().map(|x| Number::from(*x).re()).collect::<Vec<f64>>();
            Ok((Series::Real(values), collect(e.U())?))
        })
    }

    /// The eigenvalues of any square matrix, by real then imaginary part; real if the matrix is Hermitian.
    pub fn eigvals(&self) -> Result<Series> {
        self.need_square("eigvals")?;
        self.need_finite("eigvals")?;
        if self.is_hermitian(HERMITIAN) {
            return each!(self, a => {
                let values = a.self_adjoint_eigenvalues(Side::Lower).map_err(|_| failed("eigvals", self))?;
                Ok(Series::Real(values))
            });
        }
        let mut values: Vec<C64> = match self.data() {
            Series::Real(data) => MatRef::from_row_major_slice(data, self.rows(), self.cols()).eigenvalues(),
            Series::Complex(data) => {
                MatRef::from_row_major_slice(data, self.rows(), self.cols()).eigenvalues()
            }
        }
        .map_err(|_| failed("eigvals", self))?;
        values.sort_by(|a, b| a.re.total_cmp(&b.re).then(a.im.total_cmp(&b.im)));
        Ok(Series::Complex(values))
    }

    /// Eigenvalues and right eigenvectors (columns of norm one) of any square matrix, in the order of [`Matrix::eigvals`].
    /// A matrix without a full set of eigenvectors gives nearly parallel ones.
    pub fn eig(&self) -> Result<(Series, Matrix)> {
        self.need_square("eig")?;
        self.need_finite("eig")?;
        if self.is_hermitian(HERMITIAN) {
            return self.eigh();
        }
        let n = self.rows();
        let complex = self.data().to_complex();
        let e = MatRef::from_row_major_slice(&complex, n, n).eigen().map_err(|_| failed("eig", self))?;
        let values: Vec<C64> = e.S().column_vector().iter().copied().collect();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| {
            values[i].re.total_cmp(&values[j].re).then(values[i].im.total_cmp(&values[j].im))
        });
        let u = e.U();
        let norm = |j: usize| (0..n).map(|i| u[(i, j)].norm_sqr()).sum::<f64>().sqrt();
        let norms: Vec<f64> = (0..n).map(norm).collect();
        let vectors = Matrix::from_fn(n, n, |i, j| u[(i, order[j])] / norms[order[j]]);
        Ok((Series::Complex(order.iter().map(|&i| values[i]).collect()), vectors))
    }

    /// The thin singular value decomposition (U, s, V), `self = U diag(s) V^dagger`, s descending.
    pub fn svd(&self) -> Result<(Matrix, Series, Matrix)> {
        self.need_finite("svd")?;
        each!(self, a => {
            let d = a.thin_svd().map_err(|_| failed("svd", self))?;
            let values = d.S().column_vector().iter().map(|x| Number::from(*x).re()).collect::<Vec<f64>>();
            Ok((collect(d.U())?, Series::Real(values), collect(d.V())?))
        })
    }

    /// The thin QR decomposition: orthonormal columns, and an upper triangle.
    pub fn qr(&self) -> Result<(Matrix, Matrix)> {
        self.need_finite("qr")?;
        each!(self, a => {
            let d = a.qr();
            Ok((collect(d.compute_thin_Q().as_ref())?, collect(d.thin_R())?))
        })
    }

    /// The `x` of `self * x = right`; `right` has as many rows as the square matrix.
    pub fn solve(&self, right: &Matrix) -> Result<Matrix> {
        self.need_square("solve")?;
        self.need_finite("solve")?;
        if self.rows() != right.rows() {
            return Err(Error::input(format!(
                "solve: a {} matrix and a {} right-hand side; the rows must agree",
                self.shape(),
                right.shape()
            )));
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

    /// The determinant of a square matrix.
    pub fn det(&self) -> Result<Number> {
        self.need_square("the determinant")?;
        self.need_finite("the determinant")?;
        each!(self, a => Ok(Number::from(a.determinant())))
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

    /// The matrix exponential: by eigenvectors for Hermitian and anti-Hermitian matrices (so that `exp(-i H t)` is
    /// unitary to rounding), else by scaling, the Pade approximant of degree 13, and squaring (Higham 2005).
    pub fn expm(&self) -> Result<Matrix> {
        self.need_square("expm")?;
        self.need_finite("expm")?;
        if self.is_hermitian(1e-15) {
            return self.function_of_hermitian(|x| C64::new(x.exp(), 0.0));
        }
        let turned = self.scale(C64::I.into());
        if turned.is_hermitian(1e-15) {
            let result = turned.function_of_hermitian(|x| C64::new(0.0, -x).exp())?;
            return Ok(if self.is_complex() { result } else { result.re() });
        }
        pade(self)
    }
}

fn solved<T: Element>(a: &Matrix, left: &[T], b: &Matrix, right: &[T]) -> Result<Matrix> {
    let lu = lu(MatRef::from_row_major_slice(left, a.rows(), a.cols()), "solve")?;
    collect(lu.solve(MatRef::from_row_major_slice(right, b.rows(), b.cols())).as_ref())
}

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

fn pade(matrix: &Matrix) -> Result<Matrix> {
    let n = matrix.rows();
    let largest_column = (0..n as i64)
        .map(|j| Ok(matrix.column(j)?.iter().map(Number::abs).sum::<f64>()))
        .collect::<Result<Vec<f64>>>()?
        .into_iter()
        .fold(0.0, f64::max);
    // 5.37 is the largest norm for which degree 13 reaches double precision.
    let halvings = (largest_column / 5.371920351148152).log2().ceil().max(0.0) as i32;
    let a = matrix.scale(Number::Real(0.5f64.powi(halvings)));
    let one = Matrix::identity(n)?;
    let a2 = a.matmul(&a)?;
    let a4 = a2.matmul(&a2)?;
    let a6 = a4.matmul(&a2)?;
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

/// The matrix that is diagonal in the basis of the columns of `vectors`: `V diag(values) V^dagger`.
pub fn from_eigen(values: &Series, vectors: &Matrix) -> Result<Matrix> {
    let diagonal = Matrix::diagonal_of(values)?;
    vectors.matmul(&diagonal)?.matmul(&vectors.dagger())
}

/// `a b - b a`.
pub fn commutator(a: &Matrix, b: &Matrix) -> Result<Matrix> {
    a.matmul(b)?.sub(&b.matmul(a)?)
}

/// The scalar product of two vectors, weighted: `<a| m |b>`.
pub fn expectation(a: &Series, m: &Matrix, b: &Series) -> Result<Number> {
    Ok(a.conj().zip(Arithmetic::Mul, &m.apply(b)?)?.sum())
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
        fn kron_of_products_is_the_product_of_krons(a in matrices(3), b in matrices(2), c in matrices(3), d in matrices(2)) {
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
            prop_assert!(close(&from_eigen(&values, &vectors).unwrap(), &h, 1e-12));
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
            let by_eigenvalues: f64 = h.eigvals().unwrap().map(crate::number::Function::Exp).sum().re();
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
}
