//! `sparse`: operators from lists of entries.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine};

use super::chebyshev::as_complex;
use super::lattice::ints;
use super::model::{single_precision, storage_format};
use super::values::numbered;
use crate::error::{Error, Result};
use crate::lattice::sparse::from_triplets;
use crate::number::{C64, Series};
use crate::operator::{Operator, StoredMatrix};
use crate::script::{Fallible, Options, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(sparse_functions).into());
}

/// Indices from an array of whole numbers, a Series of them, or a range.
pub(super) fn indices(value: Dynamic, what: &str) -> Result<Vec<usize>> {
    let whole = |x: i64| numbered(x, what);
    if let Some(range) = value.clone().try_cast::<std::ops::Range<i64>>() {
        return range.map(whole).collect();
    }
    if let Some(range) = value.clone().try_cast::<std::ops::RangeInclusive<i64>>() {
        return range.map(whole).collect();
    }
    if let Some(series) = value.clone().try_cast::<Series>() {
        let int = |x: &f64| {
            if x.fract() == 0.0 {
                whole(*x as i64)
            } else {
                Err(Error::input(format!("{what} {x} is not whole")).hint("they are numbered from 0"))
            }
        };
        return series.as_real("indices of entries")?.iter().map(int).collect();
    }
    match value.try_cast::<Array>() {
        Some(array) => ints(&array, &format!("the list of {what}s"))?.into_iter().map(whole).collect(),
        None => Err(Error::input(format!("the {what}s are an array of whole numbers"))
            .hint("a Series or a range of them does too")),
    }
}

/// Values from an array of numbers or a Series.
fn entries(value: Dynamic) -> Result<Vec<C64>> {
    if let Some(series) = value.clone().try_cast::<Series>() {
        return Ok(series.to_complex());
    }
    let wrong = || {
        Error::input("the values of entries are an array of numbers or a Series")
            .hint("as many as there are rows")
    };
    let array = value.try_cast::<Array>().ok_or_else(wrong)?;
    array.iter().map(|x| as_complex(x).ok_or_else(wrong)).collect()
}

#[export_module(root = "crate::script::native")]
mod sparse_functions {
    /// An operator from its non-zero entries: rows, columns and values, in any order. Several entries at the same place
    /// are added.
    ///
    /// # Options
    /// - `shape` (array or Series, square, to the largest index): numbers of rows and columns.
    /// - `format` ("auto" or "csr" or "ell" or "sell" or "dense"): how entries are stored.
    /// - `C`, `sigma`: as for `build`.
    /// - `precision` ("double" or "single"): precision of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1, 1], [1, 0, 1], [1.0, 1.0, 0.5]);
    /// assert(h.dim == 2 && h.is_hermitian(), "two rows");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn sparse(rows: Dynamic, cols: Dynamic, values: Dynamic, o: Options) -> Fallible<Operator> {
        let (rows, cols, values) = (indices(rows, "row")?, indices(cols, "column")?, entries(values)?);
        let shape = match o.given("shape") {
            Some(shape) => match indices(shape, "size")?[..] {
                [n] => (n, n),
                [n, m] => (n, m),
                _ => {
                    return Err(Error::input("option `shape` takes two whole numbers, rows and columns")
                        .hint("like `[10, 12]`")
                        .into());
                }
            },
            None => {
                let n = rows.iter().chain(&cols).max().map_or(0, |&n| n.saturating_add(1));
                (n, n)
            }
        };
        if shape.0 == 0 || shape.1 == 0 {
            return Err(Error::input("a matrix without rows or columns").hint("name a `shape`").into());
        }
        crate::number::memory::ensure(16 * shape.0 as u128, &format!("a matrix of {} rows", shape.0))?;
        let csr = from_triplets(shape, rows, cols, values, single_precision(&o)?)?;
        let format = storage_format(&o)?;
        Ok(StoredMatrix::from_csr(&session()?.device(), csr, format)?.in_range()?)
    }
}
