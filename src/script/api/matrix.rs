//! `Matrix`: dense two-dimensional data on the host, its algebra and decompositions.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, INT, Map};

use super::values::{count, element_of, to_dynamic, to_series};
use crate::error::{Error, Result};
use crate::number::{Arithmetic, C64, Matrix, Number, Series};
use crate::script::Fallible;
use crate::task;

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Matrix>("Matrix");
    engine.register_global_module(exported_module!(matrix_functions).into());
    operators(engine);
}

/// A number added to a matrix is that number times the identity, as for operators.
fn shifted(m: &Matrix, sign: f64, x: Number) -> Result<Matrix> {
    m.need_square("adding a number to a matrix")?;
    Matrix::identity(m.rows())?.scale(x).add(&m.scale(Number::Real(sign)))
}

fn operators(engine: &mut Engine) {
    engine.register_fn("+", |a: Matrix, b: Matrix| -> Fallible<Matrix> { Ok(a.add(&b)?) });
    engine.register_fn("-", |a: Matrix, b: Matrix| -> Fallible<Matrix> { Ok(a.sub(&b)?) });
    engine.register_fn("*", |a: Matrix, b: Matrix| -> Fallible<Matrix> { Ok(a.matmul(&b)?) });
    engine.register_fn("*", |a: Matrix, b: Series| -> Fallible<Series> { Ok(a.apply(&b)?) });
    engine.register_fn("**", |a: Matrix, n: INT| -> Fallible<Matrix> { Ok(a.power(n)?) });
    engine.register_fn("-", |a: Matrix| a.scale(Number::Real(-1.0)));
    engine.register_fn("+", |a: Matrix| a);
    engine.register_fn("==", |a: Matrix, b: Matrix| a == b);
    engine.register_fn("!=", |a: Matrix, b: Matrix| a != b);
    macro_rules! with {
        ($t:ty) => {
            engine.register_fn("*", |a: $t, m: Matrix| m.scale(a.into()));
            engine.register_fn("*", |m: Matrix, a: $t| m.scale(a.into()));
            engine.register_fn("/", |m: Matrix, a: $t| m.divide(a.into()));
            engine
                .register_fn("+", |m: Matrix, a: $t| -> Fallible<Matrix> { Ok(shifted(&m, 1.0, a.into())?) });
            engine
                .register_fn("+", |a: $t, m: Matrix| -> Fallible<Matrix> { Ok(shifted(&m, 1.0, a.into())?) });
            engine.register_fn("-", |a: $t, m: Matrix| -> Fallible<Matrix> {
                Ok(shifted(&m, -1.0, a.into())?)
            });
            engine.register_fn("-", |m: Matrix, a: $t| -> Fallible<Matrix> {
                let negative = Arithmetic::Mul.number(a.into(), Number::Real(-1.0));
                Ok(shifted(&m, 1.0, negative)?)
            });
        };
    }
    with!(FLOAT);
    with!(INT);
    with!(C64);
}

/// The two indices of `m[[i, j]]`.
fn pair(place: &Array) -> Result<(INT, INT)> {
    match place.as_slice() {
        [i, j] if i.is_int() && j.is_int() => {
            Ok((i.as_int().unwrap_or_default(), j.as_int().unwrap_or_default()))
        }
        _ => Err(Error::input("an element of a Matrix has two whole indices")
            .hint("write `m[[i, j]]` or `m.at(i, j)`")),
    }
}

pub(super) fn record<const N: usize>(fields: [(&str, Dynamic); N]) -> Map {
    fields.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// Runs an O(n^3) operation; if it is long, on a thread of its own, which Ctrl-C abandons.
fn long<T: Send + 'static>(
    m: &Matrix,
    work: impl FnOnce(&Matrix) -> Result<T> + Send + 'static,
) -> Result<T> {
    const SHORT: usize = 200;
    if m.rows().min(m.cols()) <= SHORT {
        return work(m);
    }
    let m = m.clone();
    task::apart(move || work(&m))
}

#[export_module(root = "crate::script::native")]
mod matrix_functions {
    /// A dense matrix from its rows.
    ///
    /// # Example
    /// ```rhai
    /// let m = matrix([[1, 2], [3, 4]]);
    /// assert_close((m * m).at(1, 0), 15.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn matrix(rows: Array) -> Fallible<Matrix> {
        let rows = rows
            .iter()
            .enumerate()
            .map(|(i, row)| to_series(row).map_err(|e| e.context(format_args!("row {i} of a matrix"))));
        Ok(rows.collect::<Result<Vec<Series>>>().and_then(|rows| Matrix::from_rows(&rows))?)
    }

    /// The identity matrix of `n` rows.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(identity(3).trace(), 3.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn identity(n: INT) -> Fallible<Matrix> {
        Ok(count(n, "rows").and_then(Matrix::identity)?)
    }

    /// A matrix of zeros; for an operator and a number of columns, a block vector of zeros.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(zeros(2, 3).norm(), 0.0, 1e-15);
    /// ```
    #[rhai_fn(name = "zeros", return_raw)]
    pub fn zero_matrix(rows: INT, cols: INT) -> Fallible<Matrix> {
        Ok(count(rows, "rows").and_then(|rows| Matrix::zeros(rows, count(cols, "columns")?))?)
    }

    /// A square matrix with these numbers on its diagonal; for a matrix, its diagonal as a Series.
    ///
    /// # Example
    /// ```rhai
    /// assert(diagonal([1, 2]).diagonal() == series([1, 2]), "there and back");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn diagonal(numbers: Dynamic) -> Fallible<Dynamic> {
        if let Some(m) = numbers.read_lock::<Matrix>() {
            return Ok(Dynamic::from(m.diagonal()));
        }
        Ok(to_series(&numbers).and_then(|s| Matrix::diagonal_of(&s)).map(Dynamic::from)?)
    }

    /// The identity and the Pauli matrices: a map with `i`, `x`, `y`, `z`.
    ///
    /// # Example
    /// ```rhai
    /// let s = pauli();
    /// assert_close((s.x * s.y - I * s.z).norm(), 0.0, 1e-15);
    /// ```
    pub fn pauli() -> Map {
        let s = Matrix::pauli();
        record([
            ("i", Dynamic::from(s.i)),
            ("x", Dynamic::from(s.x)),
            ("y", Dynamic::from(s.y)),
            ("z", Dynamic::from(s.z)),
        ])
    }

    /// The Kronecker product.
    ///
    /// # Example
    /// ```rhai
    /// let s = pauli();
    /// assert_close(kron(s.z, s.i).at(3, 3), -1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn kron(a: Matrix, b: Matrix) -> Fallible<Matrix> {
        Ok(a.kron(&b)?)
    }

    /// Number of rows.
    ///
    /// # Example
    /// ```rhai
    /// assert(matrix([[1, 2]]).rows == 1, "one row");
    /// ```
    #[rhai_fn(global, get = "rows", pure)]
    pub fn rows(m: &mut Matrix) -> INT {
        m.rows() as INT
    }

    /// Number of columns.
    ///
    /// # Example
    /// ```rhai
    /// assert(matrix([[1, 2]]).columns == 2, "two columns");
    /// ```
    #[rhai_fn(global, get = "columns", pure)]
    pub fn columns(m: &mut Matrix) -> INT {
        m.cols() as INT
    }

    /// Element (i, j), negative from the end; `m[[i, j]]` is the same.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[1, 2], [3, 4]]).at(1, 0), 3.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn at(m: &mut Matrix, i: INT, j: INT) -> Fallible<Dynamic> {
        Ok(m.at(i, j).map(to_dynamic)?)
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn element(m: &mut Matrix, place: Array) -> Fallible<Dynamic> {
        Ok(pair(&place).and_then(|(i, j)| m.at(i, j)).map(to_dynamic)?)
    }

    #[rhai_fn(global, index_set, return_raw)]
    pub fn set_element(m: &mut Matrix, place: Array, value: Dynamic) -> Fallible<()> {
        Ok(pair(&place).and_then(|(i, j)| m.set(i, j, element_of(&value, "a Matrix")?))?)
    }

    // `m[i][j] = x` writes the changed row back through this.
    #[rhai_fn(global, index_set, return_raw)]
    pub fn set_row(m: &mut Matrix, i: INT, row: Dynamic) -> Fallible<()> {
        Ok(to_series(&row).and_then(|row| m.set_row(i, &row))?)
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn row_of(m: &mut Matrix, i: INT) -> Fallible<Series> {
        Ok(m.row(i)?)
    }

    /// Row `i` as a Series; `m[i]` is the same.
    ///
    /// # Example
    /// ```rhai
    /// assert(matrix([[1, 2], [3, 4]]).row(0) == series([1, 2]), "the first row");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn row(m: &mut Matrix, i: INT) -> Fallible<Series> {
        Ok(m.row(i)?)
    }

    /// The rows as an array of arrays, as `matrix(..)` and positions of sites are given.
    ///
    /// # Example
    /// ```rhai
    /// let sites = matrix([[0.0, 0.0], [0.5, 0.25]]);
    /// assert(lattice::points(sites.to_array()).sites == 2, "two sites");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn to_array(m: &mut Matrix) -> Fallible<Array> {
        let row = |i| Ok(Dynamic::from_array(m.row(i as INT)?.iter().map(to_dynamic).collect()));
        (0..m.rows()).map(row).collect()
    }

    /// Column `j` as a Series.
    ///
    /// # Example
    /// ```rhai
    /// assert(matrix([[1, 2], [3, 4]]).column(-1) == series([2, 4]), "the last column");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn column(m: &mut Matrix, j: INT) -> Fallible<Series> {
        Ok(m.column(j)?)
    }

    /// Rows and columns exchanged.
    ///
    /// # Example
    /// ```rhai
    /// assert(matrix([[1, 2]]).transpose().rows == 2, "a column");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn transpose(m: &mut Matrix) -> Matrix {
        m.transpose()
    }

    /// The conjugate transpose.
    ///
    /// # Example
    /// ```rhai
    /// assert(matrix([[1, I]]).dagger().at(1, 0) == -I, "conjugated");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn dagger(m: &mut Matrix) -> Matrix {
        m.dagger()
    }

    /// The complex conjugate of every element.
    ///
    /// # Example
    /// ```rhai
    /// assert(pauli().y.conj() == -pauli().y, "purely imaginary");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn conj(m: &mut Matrix) -> Matrix {
        m.conj()
    }

    #[rhai_fn(global, get = "re", pure)]
    pub fn re(m: &mut Matrix) -> Matrix {
        m.re()
    }

    #[rhai_fn(global, get = "im", pure)]
    pub fn im(m: &mut Matrix) -> Matrix {
        m.im()
    }

    /// The sum of the diagonal of a square matrix.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[1, 2], [3, 4]]).trace(), 5.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn trace(m: &mut Matrix) -> Fallible<Dynamic> {
        Ok(m.trace().map(to_dynamic)?)
    }

    /// The Frobenius norm.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[3, 0], [0, 4]]).norm(), 5.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure)]
    pub fn norm(m: &mut Matrix) -> FLOAT {
        m.norm()
    }

    /// Whether the matrix equals its conjugate transpose, within 1e-12 of its largest element.
    ///
    /// # Example
    /// ```rhai
    /// assert(pauli().y.is_hermitian(), "so it is");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn is_hermitian(m: &mut Matrix) -> bool {
        m.is_hermitian(1e-12)
    }

    /// Eigenvalues, ascending, and orthonormal eigenvectors (columns) of a Hermitian matrix: `values`, `vectors`. For
    /// the matrix of a small operator, `h.to_matrix().eigh()`, this is exact diagonalisation.
    ///
    /// # Example
    /// ```rhai
    /// let e = pauli().x.eigh();
    /// assert_close(e.values[0], -1.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn eigh(m: &mut Matrix) -> Fallible<Map> {
        let (values, vectors) = long(m, Matrix::eigh)?;
        Ok(record([("values", Dynamic::from(values)), ("vectors", Dynamic::from(vectors))]))
    }

    /// The eigenvalues of any square matrix.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[0, 1], [-1, 0]]).eigvals()[0], -I, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn eigvals(m: &mut Matrix) -> Fallible<Series> {
        Ok(long(m, Matrix::eigvals)?)
    }

    /// Eigenvalues and right eigenvectors (columns, of norm one) of any square matrix: `values`, `vectors`, and
    /// `defective`: whether the matrix lacks a full set of eigenvectors, so columns are repeated.
    ///
    /// # Example
    /// ```rhai
    /// let m = matrix([[0, 1], [-1, 0]]);
    /// let e = m.eig();
    /// assert_close(norm(m * e.vectors.column(0) - e.values[0] * e.vectors.column(0)), 0.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn eig(m: &mut Matrix) -> Fallible<Map> {
        let (values, vectors, defective) = long(m, Matrix::eig)?;
        Ok(record([
            ("values", Dynamic::from(values)),
            ("vectors", Dynamic::from(vectors)),
            ("defective", defective.into()),
        ]))
    }

    /// The singular value decomposition, `m = u * diagonal(s) * v.dagger()`: `u`, `s` (descending), `v`.
    ///
    /// # Example
    /// ```rhai
    /// let d = matrix([[0, 2], [1, 0]]).svd();
    /// assert_close(d.s[0], 2.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn svd(m: &mut Matrix) -> Fallible<Map> {
        let (u, s, v) = long(m, Matrix::svd)?;
        Ok(record([("u", Dynamic::from(u)), ("s", Dynamic::from(s)), ("v", Dynamic::from(v))]))
    }

    /// The QR decomposition: `q` with orthonormal columns, `r` upper triangular.
    ///
    /// # Example
    /// ```rhai
    /// let m = matrix([[1, 2], [3, 4]]);
    /// let d = m.qr();
    /// assert_close((d.q * d.r - m).norm(), 0.0, 1e-13);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn qr(m: &mut Matrix) -> Fallible<Map> {
        let (q, r) = long(m, Matrix::qr)?;
        Ok(record([("q", Dynamic::from(q)), ("r", Dynamic::from(r))]))
    }

    /// The solution x of `m * x = right`, for a Series or a Matrix on the right.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[2, 0], [0, 4]]).solve(series([2, 2]))[1], 0.5, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn solve(m: &mut Matrix, right: Matrix) -> Fallible<Matrix> {
        Ok(long(m, move |m| m.solve(&right))?)
    }

    #[rhai_fn(global, name = "solve", pure, return_raw)]
    pub fn solve_vector(m: &mut Matrix, right: Series) -> Fallible<Series> {
        Ok(Matrix::new(right.len(), 1, right)
            .and_then(|right| long(m, move |m| m.solve(&right)))
            .map(|x| x.data().clone())?)
    }

    /// The inverse of a square matrix.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[2, 0], [0, 4]]).inverse().at(1, 1), 0.25, 1e-15);
    /// ```
    #[rhai_fn(global, name = "inverse", pure, return_raw)]
    pub fn inverse(m: &mut Matrix) -> Fallible<Matrix> {
        Ok(long(m, Matrix::inverse)?)
    }

    /// The determinant of a square matrix.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(matrix([[1, 2], [3, 4]]).det(), -2.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn det(m: &mut Matrix) -> Fallible<Dynamic> {
        Ok(long(m, Matrix::det).map(to_dynamic)?)
    }

    /// The exponential of a square matrix (`exp` acts on each element).
    ///
    /// # Example
    /// ```rhai
    /// let u = (-I * PI / 2.0 * pauli().x).expm();
    /// assert_close((u + I * pauli().x).norm(), 0.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn expm(m: &mut Matrix) -> Fallible<Matrix> {
        Ok(long(m, Matrix::expm)?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(m: &mut Matrix) -> String {
        m.to_string()
    }
}
