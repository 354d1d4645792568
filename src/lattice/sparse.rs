//! Sparse matrices from lists of entries.

use sprs::{CsMatI, TriMatI};

use crate::backend::matrix::{Csr, Indices, MatrixValues};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Compressed rows from entries in any order; those that name the same place add up. Real where all entries are.
///
/// # Errors
/// When the lists differ in length, an index lies outside, or an entry is not finite.
pub fn from_triplets(
    shape: (usize, usize),
    rows: Vec<usize>,
    cols: Vec<usize>,
    values: Vec<C64>,
    single: bool,
) -> Result<Csr> {
    if rows.len() != values.len() || cols.len() != values.len() {
        return Err(Error::input(format!(
            "{} rows, {} columns and {} values do not make entries",
            rows.len(),
            cols.len(),
            values.len()
        ))
        .hint("each entry has a row, a column and a value"));
    }
    for (&i, &j) in rows.iter().zip(&cols) {
        if i >= shape.0 || j >= shape.1 {
            return Err(Error::input(format!(
                "entry ({i}, {j}) lies outside a {} x {} matrix",
                shape.0, shape.1
            ))
            .hint("rows and columns are numbered from 0"));
        }
    }
    if let Some(at) = values.iter().position(|z| !z.re.is_finite() || !z.im.is_finite()) {
        return Err(Error::input(format!("entry ({}, {}) is not a finite number", rows[at], cols[at]))
            .hint("look for a division by zero"));
    }
    let dtype = DType::of(single, values.iter().any(|z| z.im != 0.0));
    let compressed = TriMatI::<C64, usize>::from_triplets(shape, rows, cols, values).to_csr::<usize>();
    Ok(compressed_rows(compressed, dtype))
}

/// A matrix of sprs in rows, its values of the given type.
pub fn compressed_rows(matrix: CsMatI<C64, usize>, dtype: DType) -> Csr {
    let (rows, cols) = matrix.shape();
    let (row_start, columns, values) = matrix.into_raw_storage();
    let columns = Indices::of(cols, columns.into_iter().map(|c| c as u64).collect());
    let values = match dtype {
        DType::C64 => MatrixValues::C64(values),
        other => MatrixValues::C64(values).convert(other),
    };
    Csr { rows, cols, row_start, columns, values }
}
