//! `Operator`: linear operators and their algebra; a product with a vector computes, one with an operator waits.

use rhai::plugin::*;
use rhai::{Engine, FLOAT, INT};

use super::model::storage_format;
use super::sparse::indices;
use super::vector::Vector;
use crate::error::Error;
use crate::number::{C64, Matrix, Series, complex};
use crate::operator::Operator;
use crate::script::{Fallible, Options, session};

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Operator>("Operator");
    engine.register_global_module(exported_module!(operator_functions).into());
    scalars(engine);
}

/// Products and sums with numbers of every kind.
fn scalars(engine: &mut Engine) {
    macro_rules! with {
        ($t:ty, $to:expr) => {
            engine.register_fn("*", |a: $t, h: Operator| h.scaled($to(a)));
            engine.register_fn("*", |h: Operator, a: $t| h.scaled($to(a)));
            engine.register_fn("/", |h: Operator, a: $t| h.scaled(complex::div(C64::ONE, $to(a))));
            engine.register_fn("+", |h: Operator, a: $t| -> Fallible<Operator> { Ok(h.shifted($to(a))?) });
            engine.register_fn("+", |a: $t, h: Operator| -> Fallible<Operator> { Ok(h.shifted($to(a))?) });
            engine.register_fn("-", |h: Operator, a: $t| -> Fallible<Operator> { Ok(h.shifted(-$to(a))?) });
            engine.register_fn("-", |a: $t, h: Operator| -> Fallible<Operator> {
                Ok(h.scaled(C64::new(-1.0, 0.0)).shifted($to(a))?)
            });
        };
    }
    with!(FLOAT, |a: FLOAT| C64::new(a, 0.0));
    with!(INT, |a: INT| C64::new(a as FLOAT, 0.0));
    with!(C64, |a: C64| a);
}

#[export_module(root = "crate::script::native")]
mod operator_functions {
    /// Number of rows.
    ///
    /// # Example
    /// ```rhai
    /// assert(sparse([0, 1], [1, 0], [1.0, 1.0]).dim == 2, "two rows");
    /// ```
    #[rhai_fn(global, get = "dim", pure)]
    pub fn dim(h: &mut Operator) -> INT {
        h.dim() as INT
    }

    /// The name of the storage format of the entries, like "CSR"; a few words for lazy operators.
    ///
    /// # Example
    /// ```rhai
    /// assert(sparse([0, 1], [1, 0], [1.0, 1.0]).format == "CSR", "compressed rows");
    /// ```
    #[rhai_fn(global, get = "format", pure)]
    pub fn format(h: &mut Operator) -> String {
        h.describe()
    }

    /// The precision of its numbers, "double" or "single": that of the blocks on which it acts.
    ///
    /// # Example
    /// ```rhai
    /// assert(sparse([0, 1], [1, 0], [1.0, 1.0]).precision == "double", "as for all that is not asked to be single");
    /// ```
    #[rhai_fn(global, get = "precision", pure)]
    pub fn precision(h: &mut Operator) -> String {
        if h.dtype().is_single() { "single" } else { "double" }.to_string()
    }

    /// Whether the elements of the operator are real, so it has time-reversal symmetry without spin.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8));
    /// assert(h.is_real && !h.velocity(0).is_real, "a hopping, and its velocity");
    /// ```
    #[rhai_fn(global, get = "is_real", pure)]
    pub fn is_real(h: &mut Operator) -> bool {
        !h.dtype().is_complex()
    }

    /// The reason for this storage format.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert(h.reason.contains("translation invariant"), "a stencil");
    /// ```
    #[rhai_fn(global, get = "reason", pure)]
    pub fn reason(h: &mut Operator) -> String {
        h.reason().unwrap_or("made of other operators").to_string()
    }

    /// Bytes that the operator holds on the device. All ranks and backends are summed, including their copies of the
    /// rows of others.
    #[rhai_fn(global, get = "bytes", pure)]
    pub fn bytes(h: &mut Operator) -> INT {
        h.info().bytes as INT
    }

    /// Entries that a product reads; the number does not depend on the number of ranks. A stencil counts all cells as
    /// inner cells.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert(h.entries == 16, "two neighbours each");
    /// ```
    #[rhai_fn(global, get = "entries", pure)]
    pub fn entries(h: &mut Operator) -> INT {
        h.info().entries as INT
    }

    /// The number of entries divided by the number of stored places; 1 without padding. Papers on SELL-C-sigma call it
    /// beta.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 0, 1, 2], [0, 1, 0, 2], [1.0, 2.0, 2.0, 1.0], #{ format: "sell", C: 2, sigma: 1 });
    /// assert_close(h.occupancy, 4.0 / 6.0, 1e-15);         // slices of 2 x 2 and of 2 x 1 places
    /// ```
    #[rhai_fn(global, get = "occupancy", pure)]
    pub fn occupancy(h: &mut Operator) -> FLOAT {
        h.occupancy()
    }

    /// All entries as a Matrix; for small operators.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert_close(h.to_matrix().at(0, 1), -1.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn to_matrix(h: &mut Operator) -> Fallible<Matrix> {
        let mut entries = h.to_dense()?;
        let n = h.dim();
        // What rounding leaves of products need not be Hermitian, though the operator is: where all else cancels,
        // it is all there is.
        let computed = n == h.cols() && !h.row(0, &mut Vec::new());
        let mirrored = |entries: &[C64], i: usize, j: usize| entries[j * n + i].conj();
        let differ = |k: usize| entries[k] != mirrored(&entries, k / n, k % n);
        if computed && (0..entries.len()).any(differ) && h.is_hermitian()? {
            let half = |k: usize| 0.5 * (entries[k] + mirrored(&entries, k / n, k % n));
            entries = (0..entries.len()).map(half).collect();
        }
        let data = if h.dtype().is_complex() {
            Series::Complex(entries)
        } else {
            Series::Real(entries.iter().map(|z| z.re).collect())
        };
        Ok(Matrix::new(h.dim(), h.cols(), data)?)
    }

    /// The diagonal as a Series, if it is known; complex if it has imaginary parts.
    ///
    /// # Example
    /// ```rhai
    /// assert((I * sparse([0, 1], [0, 1], [1.0, 2.0])).diagonal[1] == 2.0 * I, "an imaginary diagonal");
    /// ```
    #[rhai_fn(global, get = "diagonal", pure, return_raw)]
    pub fn diagonal(h: &mut Operator) -> Fallible<Series> {
        let unknown = || {
            Error::input(format!("the diagonal of a {} is not known", h.describe()))
                .hint("`h.to_matrix().diagonal()` makes all entries of a small operator")
        };
        let series = |diagonal: Vec<C64>| match diagonal.iter().all(|z| z.im == 0.0) {
            true => Series::Real(diagonal.iter().map(|z| z.re).collect()),
            false => Series::Complex(diagonal),
        };
        let task = session()?.task(true);
        Ok(task.showing(|| h.diagonal()).map(series).ok_or_else(unknown)?)
    }

    /// The entries of an operator as one stored matrix. A sum or product of operators takes a pass over memory for each
    /// of them; as one matrix it takes one pass. With an `order`, row `order[k]` becomes row k, and the columns are
    /// reordered in the same way.
    ///
    /// # Options
    /// - `format` ("auto" or "csr" or "ell" or "sell" or "dense"): how entries are stored.
    /// - `C`, `sigma`: as for `build`.
    /// - `order` (array or Series, as they are): a permutation of all rows, like `h.cuthill_mckee()`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(6), #{ hopping: -1.0 });
    /// let second = (h * h + 0.5 * h).stored(#{ format: "csr" });
    /// let v = random_block(h, 1, #{ seed: 1 });
    /// assert_close(norm(second * v - (h * (h * v) + 0.5 * (h * v))), 0.0, 1e-14);
    /// assert(second.entries == 30, "five a row");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn stored(h: &mut Operator, o: Options) -> Fallible<Operator> {
        let format = storage_format(&o)?;
        let order = o.given("order").map(|order| indices(order, "row")).transpose()?;
        Ok(h.stored(format, order.as_deref())?)
    }

    /// An order of the rows that places coupled rows near each other (reverse Cuthill-McKee), as a Series: the row for
    /// each place. If sites were numbered at random, products are faster in this order because neighbours lie close in
    /// memory.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 3, 3, 1, 1, 2], [3, 0, 1, 3, 2, 1], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);   // a chain 0 3 1 2
    /// let order = h.cuthill_mckee();
    /// assert(order == series([0, 3, 1, 2]) || order == series([2, 1, 3, 0]), "along the chain");
    /// assert(h.stored(#{ order: order }).to_matrix().at(0, 1) == 1.0, "neighbours");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn cuthill_mckee(h: &mut Operator) -> Fallible<Series> {
        Ok(Series::Real(h.cuthill_mckee()?.into_iter().map(|row| row as f64).collect()))
    }

    /// The adjoint operator.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [I, -I]);
    /// assert(h.dagger().is_hermitian(), "the adjoint of a Hermitian operator is itself");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn dagger(h: &mut Operator) -> Fallible<Operator> {
        Ok(h.adjoint()?)
    }

    /// Whether the operator equals its adjoint, up to rounding.
    ///
    /// # Example
    /// ```rhai
    /// assert(sparse([0, 1], [1, 0], [I, -I]).is_hermitian(), "Hermitian");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn is_hermitian(h: &mut Operator) -> Fallible<bool> {
        Ok(h.is_hermitian()?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn apply(h: Operator, v: Vector) -> Fallible<Vector> {
        // A product of a large operator may take as long as a whole search with a small one.
        let task = session()?.task(true);
        Ok(task.showing(|| h.apply(&v.block)).map(|w| Vector::new(h.device(), w))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times(a: Operator, b: Operator) -> Fallible<Operator> {
        Ok(a.times(&b)?)
    }

    #[rhai_fn(name = "+", return_raw)]
    pub fn plus(a: Operator, b: Operator) -> Fallible<Operator> {
        Ok(a.plus(&b)?)
    }

    #[rhai_fn(name = "-", return_raw)]
    pub fn minus(a: Operator, b: Operator) -> Fallible<Operator> {
        Ok(a.plus(&b.scaled(C64::new(-1.0, 0.0)))?)
    }

    #[rhai_fn(name = "-")]
    pub fn negate(a: Operator) -> Operator {
        a.scaled(C64::new(-1.0, 0.0))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(h: &mut Operator) -> String {
        h.summary()
    }
}
