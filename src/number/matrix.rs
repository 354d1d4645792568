//! `Matrix`: dense two-dimensional host data, real or complex, stored by rows. Decompositions are in `linalg.rs`.

use std::sync::Arc;

use super::format::counted;
use super::{Arithmetic, C64, ElementaryFunction, Number, Series};
use crate::error::{Error, Result};

/// A dense matrix on the host, real or complex. Clones share the data until one of them is changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    data: Arc<Series>,
}

/// The four matrices of one spin one half: the identity and sigma x, y, z.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Pauli {
    pub i: Matrix,
    pub x: Matrix,
    pub y: Matrix,
    pub z: Matrix,
}

impl Matrix {
    /// A matrix of `rows` x `cols` from its elements, row by row.
    pub fn new(rows: usize, cols: usize, data: impl Into<Series>) -> Result<Matrix> {
        let data = data.into();
        if Some(data.len()) != rows.checked_mul(cols) {
            return Err(Error::input(format!(
                "{} for a {rows} x {cols} matrix",
                counted(data.len(), "element")
            ))
            .hint(format!("it has {}", rows.saturating_mul(cols))));
        }
        Ok(Matrix { rows, cols, data: Arc::new(data) })
    }

    /// From rows of equal lengths.
    pub fn from_rows(rows: &[Series]) -> Result<Matrix> {
        let cols = rows.first().map_or(0, Series::len);
        if let Some((i, row)) = rows.iter().enumerate().find(|(_, row)| row.len() != cols) {
            return Err(Error::input(format!(
                "row {i} has {}, row 0 has {cols}",
                counted(row.len(), "element")
            ))
            .hint("the rows of a matrix have one length"));
        }
        Matrix::new(rows.len(), cols, rows.iter().flat_map(Series::iter).collect::<Series>())
    }

    /// The matrix whose element (i, j) is `f(i, j)`: for shapes that a caller has already made sure of.
    pub(crate) fn from_fn(rows: usize, cols: usize, f: impl Fn(usize, usize) -> C64) -> Matrix {
        let data: Vec<C64> = (0..rows * cols).map(|k| f(k / cols, k % cols)).collect();
        Matrix { rows, cols, data: Arc::new(Series::Complex(data)) }
    }

    pub fn zeros(rows: usize, cols: usize) -> Result<Matrix> {
        let n = rows.checked_mul(cols).filter(|&n| Vec::<f64>::new().try_reserve_exact(n).is_ok());
        let n = n.ok_or_else(|| {
            Error::memory(format!("a {rows} x {cols} matrix does not fit in memory"))
                .hint("ask for fewer rows and columns")
        })?;
        Ok(Matrix { rows, cols, data: Arc::new(Series::Real(vec![0.0; n])) })
    }

    /// The identity of `n` x `n`.
    pub fn identity(n: usize) -> Result<Matrix> {
        let mut matrix = Matrix::zeros(n, n)?;
        if let Series::Real(data) = Arc::make_mut(&mut matrix.data) {
            data.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
        }
        Ok(matrix)
    }

    /// A square matrix with these numbers on its diagonal.
    pub fn diagonal_of(values: &Series) -> Result<Matrix> {
        let mut matrix = Matrix::zeros(values.len(), values.len())?;
        for (i, value) in values.iter().enumerate() {
            matrix.set(i as i64, i as i64, value)?;
        }
        Ok(matrix)
    }

    /// The identity and the Pauli matrices.
    pub fn pauli() -> Pauli {
        let real = |data: [f64; 4]| Matrix { rows: 2, cols: 2, data: Arc::new(Series::Real(data.to_vec())) };
        let y = vec![C64::ZERO, -C64::I, C64::I, C64::ZERO];
        Pauli {
            i: real([1.0, 0.0, 0.0, 1.0]),
            x: real([0.0, 1.0, 1.0, 0.0]),
            y: Matrix { rows: 2, cols: 2, data: Arc::new(Series::Complex(y)) },
            z: real([1.0, 0.0, 0.0, -1.0]),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The shape as text: `2 x 3`.
    pub fn shape(&self) -> String {
        format!("{} x {}", self.rows, self.cols)
    }

    /// The elements, row by row.
    pub fn data(&self) -> &Series {
        &self.data
    }

    /// The number of rows, of columns, and the elements, which other matrices may share.
    pub fn into_parts(self) -> (usize, usize, Arc<Series>) {
        (self.rows, self.cols, self.data)
    }

    /// Whether the elements are complex.
    pub fn is_complex(&self) -> bool {
        self.data.is_complex()
    }

    /// Whether there are as many rows as columns.
    pub fn is_square(&self) -> bool {
        self.rows == self.cols
    }

    /// An error that names `what` needs a square matrix, unless this is one.
    pub(crate) fn need_square(&self, what: &str) -> Result<()> {
        if self.is_square() {
            Ok(())
        } else {
            Err(Error::input(format!("{what} needs a square matrix, this one is {}", self.shape()))
                .hint("it has as many rows as columns"))
        }
    }

    fn place(&self, i: i64, j: i64) -> Result<usize> {
        let inside = |i: i64, n: usize| {
            let place = if i < 0 { i + n as i64 } else { i };
            (0..n as i64).contains(&place).then_some(place as usize)
        };
        match (inside(i, self.rows), inside(j, self.cols)) {
            (Some(i), Some(j)) => Ok(i * self.cols + j),
            _ => Err(Error::input(format!("element ({i}, {j}) is outside a {} matrix", self.shape()))
                .hint("rows and columns are numbered from 0, and from the end by -1, -2, ...")),
        }
    }

    /// Element (i, j); negative indices count from the end.
    pub fn at(&self, i: i64, j: i64) -> Result<Number> {
        self.data.at(self.place(i, j)? as i64)
    }

    /// Replaces element (i, j); the matrix becomes complex if the number is.
    pub fn set(&mut self, i: i64, j: i64, value: Number) -> Result<()> {
        let place = self.place(i, j)? as i64;
        Arc::make_mut(&mut self.data).set(place, value)
    }

    /// Row `i` (negative from the end).
    pub fn row(&self, i: i64) -> Result<Series> {
        if self.cols == 0 {
            return Ok(Series::Real(Vec::new()));
        }
        let start = self.place(i, 0)? as i64;
        self.data.slice(start, start + self.cols as i64)
    }

    /// Replaces row `i` (negative from the end); the matrix becomes complex if the row is.
    pub fn set_row(&mut self, i: i64, row: &Series) -> Result<()> {
        if row.len() != self.cols {
            return Err(Error::input(format!(
                "a row of {} in a {} matrix",
                counted(row.len(), "element"),
                self.shape()
            ))
            .hint(format!("it has {} elements, one for each column", self.cols)));
        }
        row.iter().enumerate().try_for_each(|(j, value)| self.set(i, j as i64, value))
    }

    /// Column `j` (negative from the end).
    pub fn column(&self, j: i64) -> Result<Series> {
        self.transpose().row(j).map_err(|_| {
            Error::input(format!("no column {j} in a {} matrix", self.shape()))
                .hint("they are numbered from 0, and from the end by -1, -2, ...")
        })
    }

    /// The elements (i, i).
    pub fn diagonal(&self) -> Series {
        (0..self.rows.min(self.cols)).filter_map(|i| self.data.get(i * self.cols + i)).collect()
    }

    fn picked<T: Copy>(&self, data: &[T]) -> Vec<T> {
        (0..self.rows * self.cols).map(|k| data[(k % self.rows) * self.cols + k / self.rows]).collect()
    }

    /// Rows and columns exchanged.
    pub fn transpose(&self) -> Matrix {
        let data = match &*self.data {
            Series::Real(data) => Series::Real(self.picked(data)),
            Series::Complex(data) => Series::Complex(self.picked(data)),
        };
        Matrix { rows: self.cols, cols: self.rows, data: Arc::new(data) }
    }

    pub(super) fn with_data(&self, data: Series) -> Matrix {
        Matrix { rows: self.rows, cols: self.cols, data: Arc::new(data) }
    }

    /// The complex conjugate of every element.
    pub fn conj(&self) -> Matrix {
        self.with_data(self.data.conj())
    }

    /// The Hermitian conjugate: transposed and conjugated.
    pub fn dagger(&self) -> Matrix {
        if self.is_complex() { self.transpose().conj() } else { self.transpose() }
    }

    pub fn re(&self) -> Matrix {
        self.with_data(self.data.re())
    }

    pub fn im(&self) -> Matrix {
        self.with_data(self.data.im())
    }

    /// A function of every element (not of the matrix: that is [`Matrix::expm`] and the like).
    pub fn map(&self, function: ElementaryFunction) -> Matrix {
        self.with_data(self.data.map(function))
    }

    /// The sum of the diagonal; the matrix must be square.
    pub fn trace(&self) -> Result<Number> {
        self.need_square("the trace")?;
        Ok(self.diagonal().sum())
    }

    /// The Frobenius norm.
    pub fn norm(&self) -> f64 {
        self.data.norm()
    }

    /// The largest modulus of an element, 0 for none; NaN if any element is.
    pub fn max_abs(&self) -> f64 {
        match &*self.data {
            Series::Real(x) => largest(x.iter().map(|x| x.abs())),
            Series::Complex(z) => largest(z.iter().map(|z| z.norm())),
        }
    }

    /// Whether the matrix is its own Hermitian conjugate, to `tolerance` times its largest element.
    pub fn is_hermitian(&self, tolerance: f64) -> bool {
        self.is_hermitian_by_rows(tolerance, tolerance)
    }

    /// The same where small elements count beside large ones: an element and its partner may differ by `tolerance`
    /// times the largest element of their two rows, or by `rounding` times that of the matrix.
    pub(super) fn is_hermitian_by_rows(&self, tolerance: f64, rounding: f64) -> bool {
        if !self.is_square() {
            return false;
        }
        let n = self.rows;
        let modulus = |i: usize, j: usize| match &*self.data {
            Series::Real(x) => x[i * n + j].abs(),
            Series::Complex(z) => z[i * n + j].norm(),
        };
        let distance = |i: usize, j: usize| match &*self.data {
            Series::Real(x) => (x[i * n + j] - x[j * n + i]).abs(),
            Series::Complex(z) => (z[i * n + j] - z[j * n + i].conj()).norm(),
        };
        let rows: Vec<f64> = (0..n).map(|i| largest((0..n).map(|j| modulus(i, j)))).collect();
        let always = rounding * largest(rows.iter().copied());
        let alike = |i: usize, j: usize| distance(i, j) <= always.max(tolerance * rows[i].max(rows[j]));
        (0..n).all(|i| (0..=i).all(|j| alike(i, j)))
    }

    fn elementwise(&self, op: Arithmetic, other: &Matrix) -> Result<Matrix> {
        if (self.rows, self.cols) != (other.rows, other.cols) {
            return Err(Error::input(format!(
                "`matrix {} matrix` needs equal shapes, not {} and {}",
                op.symbol(),
                self.shape(),
                other.shape()
            ))
            .hint("they are combined element by element"));
        }
        Ok(self.with_data(self.data.zip(op, &other.data)?))
    }

    /// The sum; shapes must agree.
    pub fn add(&self, other: &Matrix) -> Result<Matrix> {
        self.elementwise(Arithmetic::Add, other)
    }

    /// The difference; shapes must agree.
    pub fn sub(&self, other: &Matrix) -> Result<Matrix> {
        self.elementwise(Arithmetic::Sub, other)
    }

    /// Every element times a number.
    pub fn scale(&self, factor: Number) -> Matrix {
        self.with_data(self.data.with(Arithmetic::Mul, factor))
    }

    /// Every element divided by a number.
    pub fn divide(&self, divisor: Number) -> Matrix {
        self.with_data(self.data.with(Arithmetic::Div, divisor))
    }

    /// The Kronecker product: block (i, j) of the result is `self[i, j] * other`.
    pub fn kron(&self, other: &Matrix) -> Result<Matrix> {
        let shape = self.rows.checked_mul(other.rows).zip(self.cols.checked_mul(other.cols));
        let (rows, cols) = shape.ok_or_else(|| {
            Error::memory(format!("kron of {} and {} is too large", self.shape(), other.shape()))
                .hint("its numbers of rows and columns are products of theirs")
        })?;
        Matrix::zeros(rows, cols)?;
        let place = |k: usize| {
            let (i, j) = (k / cols, k % cols);
            (i / other.rows * self.cols + j / other.cols, i % other.rows * other.cols + j % other.cols)
        };
        let data = match (&*self.data, &*other.data) {
            (Series::Real(a), Series::Real(b)) => Series::Real(
                (0..rows * cols)
                    .map(|k| {
                        let (p, q) = place(k);
                        a[p] * b[q]
                    })
                    .collect(),
            ),
            (a, b) => {
                let (a, b) = (a.to_complex(), b.to_complex());
                Series::Complex(
                    (0..rows * cols)
                        .map(|k| {
                            let (p, q) = place(k);
                            a[p] * b[q]
                        })
                        .collect(),
                )
            }
        };
        Matrix::new(rows, cols, data)
    }
}

/// The largest of some moduli, 0 for none; NaN if any is.
fn largest(moduli: impl Iterator<Item = f64>) -> f64 {
    moduli.fold(0.0, |a, b| if a.is_nan() || b <= a { a } else { b })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauli_algebra() {
        let s = Matrix::pauli();
        let xy = s.x.matmul(&s.y).unwrap();
        assert_eq!(xy, s.z.scale(C64::I.into()).add(&Matrix::zeros(2, 2).unwrap()).unwrap());
        assert!(s.y.is_hermitian(0.0) && !xy.is_hermitian(1e-12));
        assert_eq!(s.z.kron(&s.i).unwrap().diagonal(), Series::from(vec![1.0, 1.0, -1.0, -1.0]));
    }

    #[test]
    fn errors_name_the_operation_and_both_shapes() {
        let (a, b) = (Matrix::zeros(2, 3).unwrap(), Matrix::zeros(2, 2).unwrap());
        assert_eq!(
            a.add(&b).unwrap_err().to_string(),
            "`matrix + matrix` needs equal shapes, not 2 x 3 and 2 x 2"
        );
        assert_eq!(
            a.matmul(&b).unwrap_err().to_string(),
            "`matrix * matrix` needs inner sizes that agree, not 2 x 3 and 2 x 2"
        );
        assert!(a.trace().is_err() && a.at(2, 0).is_err() && a.row(5).is_err() && a.column(3).is_err());
        assert!(Matrix::zeros(1 << 40, 1 << 40).is_err() && Matrix::identity(1 << 40).is_err());
        assert!(Matrix::new(2, 2, vec![1.0]).is_err());
        assert!(Matrix::from_rows(&[vec![1.0].into(), vec![1.0, 2.0].into()]).is_err());
    }

    #[test]
    fn rows_columns_elements() {
        let m = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(m.row(-1).unwrap(), Series::from(vec![4.0, 5.0, 6.0]));
        assert_eq!(m.column(1).unwrap(), Series::from(vec![2.0, 5.0]));
        assert_eq!(m.transpose().at(2, 0).unwrap(), Number::Real(3.0));
        let mut n = m.clone();
        n.set(0, 0, C64::I.into()).unwrap();
        assert!(n.is_complex() && !m.is_complex());
    }
}
