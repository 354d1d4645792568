//! Operators written out as one stored matrix, and the order of rows that keeps coupled ones near each other.

use rayon::prelude::*;
use sprs::linalg::ordering::{cuthill_mckee_custom, order, start};
use sprs::{CsMatI, CsMatViewI, PermOwnedI, transform_mat_papt};

use super::{MatrixFormat, Operator, StoredMatrix};
use crate::error::{Error, Result};
use crate::lattice::sparse::compressed_rows;
use crate::number::{C64, DType};
use crate::task;

/// Rows that are written out between two looks at interrupts.
const TOGETHER: usize = 1 << 14;

/// Parts of the matrix that begin at a row far from their middle; others begin at any row, as looking for one takes a
/// pass over all rows.
const LOOKED_FOR: usize = 32;

/// The rows of an operator, all of them.
struct WrittenRows {
    dtype: DType,
    matrix: CsMatI<C64, usize>,
}

impl Operator {
    /// The entries of this operator as one stored matrix: of a sum or a product, what takes a pass for each part takes
    /// one. Row number `order[k]` becomes row k, and columns follow. It knows the lattice only where the order stays.
    ///
    /// # Errors
    /// An operator whose entries are not known, or that is shared among ranks; an order that is none.
    pub fn stored(&self, format: MatrixFormat, order: Option<&[usize]>) -> Result<Operator> {
        let WrittenRows { dtype, mut matrix } = self.written()?;
        if let Some(order) = order {
            let order = permutation(order, self)?;
            matrix = transform_mat_papt(matrix.view(), order.view());
        }
        let stored = StoredMatrix::from_csr(self.device(), compressed_rows(matrix, dtype), format)?;
        Ok(if order.is_none() { stored.on(self.geometry().cloned()) } else { stored })
    }

    /// The order of rows in which coupled ones stand near each other (Cuthill and McKee, reversed):
    /// the row for each place.
    ///
    /// # Errors
    /// An operator that is not Hermitian, or as for [`Operator::stored`].
    pub fn cuthill_mckee(&self) -> Result<Vec<usize>> {
        if !self.is_hermitian()? {
            return Err(Error::input(
                "an order by couplings needs a Hermitian operator, and this one is not",
            )
            .hint("take that of A + A^+"));
        }
        let matrix = self.written()?.matrix;
        task::apart(move || {
            let found = cuthill_mckee_custom(matrix.view(), PartStart::default(), order::Reversed::new());
            Ok(found.perm.vec())
        })
    }

    fn written(&self) -> Result<WrittenRows> {
        let rows = self.rows();
        if rows.local < rows.global {
            return Err(Error::input(
                "the rows of this operator are divided between ranks, so it cannot be written out as a whole",
            )
            .hint("ask for the `format` where the operator is made"));
        }
        let interrupt = task::current();
        let chunks: Vec<usize> = (0..rows.global).step_by(TOGETHER).collect();
        let written: Result<Vec<_>> = chunks
            .into_par_iter()
            .map(|first| {
                interrupt.check()?;
                let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
                let mut entries = Vec::new();
                for row in first..rows.global.min(first + TOGETHER) {
                    if !self.row(row, &mut entries) {
                        return Err(Error::input(format!("the entries of {} are not known", self.summary()))
                            .hint(
                                "entries are known of stored matrices and stencils, and of their sums, products and \
                                 multiples",
                            ));
                    }
                    let kept = entries.iter().filter(|(_, value)| *value != C64::ZERO);
                    let before = columns.len();
                    for &(column, value) in kept {
                        columns.push(column);
                        values.push(value);
                    }
                    lengths.push(columns.len() - before);
                }
                Ok((lengths, columns, values))
            })
            .collect();
        let (mut row_start, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut end = 0;
        for (lengths, more_columns, more_values) in written? {
            row_start.extend(lengths.into_iter().map(|n| {
                end += n;
                end
            }));
            columns.extend(more_columns);
            values.extend(more_values);
        }
        let matrix = CsMatI::try_new((rows.global, self.cols()), row_start, columns, values)
            .map_err(|(.., e)| Error::internal(format!("rows that are none: {e}")))?;
        Ok(WrittenRows { dtype: self.dtype(), matrix })
    }
}

/// An order of the rows of a square operator.
fn permutation(order: &[usize], h: &Operator) -> Result<PermOwnedI<usize>> {
    let n = h.dim();
    if h.cols() != n {
        return Err(Error::input(format!("an order for {n} rows and {} columns", h.cols()))
            .hint("a square matrix has one"));
    }
    if order.len() != n {
        return Err(Error::input(format!("an order of {} rows for an operator of {n}", order.len()))
            .hint("it names every row once"));
    }
    let mut seen = vec![false; n];
    for &row in order {
        if row >= n || std::mem::replace(&mut seen[row], true) {
            let what = if row >= n { "which there is not" } else { "twice" };
            return Err(Error::input(format!("an order that names row {row}, {what}"))
                .hint("it names every row once"));
        }
    }
    Ok(PermOwnedI::new(order.to_vec()))
}

/// Where a part of the matrix begins.
#[derive(Default)]
struct PartStart {
    /// Rows before this have been visited.
    next: usize,
    parts: usize,
}

impl start::Strategy<C64, usize, usize> for PartStart {
    fn find_start_vertex(
        &mut self,
        visited: &[bool],
        degrees: &[usize],
        mat: &CsMatViewI<C64, usize>,
    ) -> usize {
        while visited.get(self.next).is_some_and(|seen| *seen) {
            self.next += 1;
        }
        self.parts += 1;
        // A row alone begins and ends its part.
        if degrees[self.next] <= 1 || self.parts > LOOKED_FOR {
            return self.next;
        }
        start::PseudoPeripheral::new().find_start_vertex(visited, degrees, mat)
    }
}
