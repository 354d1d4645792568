//! Rows of a matrix generated one by one, and the matrix in compressed rows made of them: rows are generated twice in
//! parallel, to count and to fill.

use rayon::prelude::*;

use crate::backend::matrix::{Csr, Indices, MatrixValues, merge};
use crate::error::Result;
use crate::number::{C64, DType, Scalar, memory};
use crate::task::{Steps, Task};

/// Rows that one thread generates at a time, if they are of few terms.
const CHUNK: usize = 4096;
/// Rows, times the work of one, that it generates at a time.
const WORK: usize = 1 << 22;

/// What generates the rows of a matrix.
pub(super) trait RowSource: Send + Sync {
    /// How many rows and columns the matrix has.
    fn shape(&self) -> (usize, usize);

    /// Steps that a row takes, roughly.
    fn work(&self) -> usize;

    /// Whether some entry may be complex.
    fn complex(&self) -> bool;

    /// Calls `each` for `count` rows from `first` on, with the entries sorted and none twice.
    fn visit(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)]));

    /// As [`RowSource::visit`], but entries come in any order, and a column may come more than once.
    fn scatter(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)]));

    /// Calls `each` with the lengths of rows, or limits that are quicker to find.
    fn lengths(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, usize)) {
        self.visit(first, count, &mut |k, row| each(k, row.len()));
    }

    /// Rows for one thread at a time, and rows between two checks of progress and interruption.
    fn pieces(&self) -> (usize, usize) {
        let length = (WORK / self.work().max(1)).clamp(16, CHUNK);
        (length, 16 * length)
    }

    /// Bytes of what rows are generated from.
    fn bytes(&self) -> usize;
}

/// The matrix in compressed rows.
///
/// # Errors
/// Memory, interruption.
pub(super) fn matrix(source: &dyn RowSource, single: bool, task: &Task) -> Result<Csr> {
    match DType::of(single, source.complex()) {
        DType::F32 => assemble::<f32>(source, MatrixValues::F32, task),
        DType::F64 => assemble::<f64>(source, MatrixValues::F64, task),
        DType::C32 => assemble::<num_complex::Complex<f32>>(source, MatrixValues::C32, task),
        DType::C64 => assemble::<C64>(source, MatrixValues::C64, task),
    }
}

/// Some rows of the matrix, as pieces (first row and length of each), with the columns of all.
///
/// # Errors
/// As for [`matrix`].
pub(super) fn pieces(
    source: &dyn RowSource,
    pieces: &[(usize, usize)],
    single: bool,
    task: &Task,
) -> Result<Csr> {
    matrix(&SomeRows { source, pieces }, single, task)
}

/// Pieces of a source, as if there were no other rows.
struct SomeRows<'a> {
    source: &'a dyn RowSource,
    pieces: &'a [(usize, usize)],
}

impl SomeRows<'_> {
    /// Calls `f(row, count, before)` for what lies together of `count` rows from `first` on;
    /// `before` have come already.
    fn each(&self, first: usize, count: usize, mut f: impl FnMut(usize, usize, usize)) {
        let mut begin = 0;
        for &(row, length) in self.pieces {
            let (from, to) = (first.max(begin), (first + count).min(begin + length));
            if from < to {
                f(row + from - begin, to - from, from - first);
            }
            begin += length;
        }
    }
}

impl RowSource for SomeRows<'_> {
    fn shape(&self) -> (usize, usize) {
        (self.pieces.iter().map(|piece| piece.1).sum(), self.source.shape().1)
    }

    fn work(&self) -> usize {
        self.source.work()
    }

    fn complex(&self) -> bool {
        self.source.complex()
    }

    fn bytes(&self) -> usize {
        self.source.bytes()
    }

    fn visit(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.each(first, count, |row, count, before| {
            self.source.visit(row, count, &mut |k, entries| each(before + k, entries));
        });
    }

    fn scatter(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.each(first, count, |row, count, before| {
            self.source.scatter(row, count, &mut |k, entries| each(before + k, entries));
        });
    }

    fn lengths(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, usize)) {
        self.each(first, count, |row, count, before| {
            self.source.lengths(row, count, &mut |k, length| each(before + k, length));
        });
    }
}

/// Sorts the entries of a row, adds up those that meet, and drops zeros.
pub(super) fn tidy(row: &mut Vec<(u64, C64)>) {
    merge(row);
    row.retain(|e| e.1 != C64::ZERO);
}

fn assemble<T: Scalar>(source: &dyn RowSource, wrap: fn(Vec<T>) -> MatrixValues, task: &Task) -> Result<Csr> {
    let (rows, cols) = source.shape();
    memory::ensure(16 * rows as u128, &format!("a sparse matrix of {rows} rows"))?;
    let steps = task.start("matrix elements", 2 * rows);
    let mut row_start = vec![0usize; rows + 1];
    let (length, slabs) = source.pieces();
    for (slab, counts) in row_start[1..].chunks_mut(slabs).enumerate() {
        counts.par_chunks_mut(length).enumerate().for_each(|(chunk, counts)| {
            let first = slab * slabs + chunk * length;
            source.lengths(first, counts.len(), &mut |k, length| counts[k] = length);
        });
        steps.advance((slab * slabs + counts.len()).min(rows))?;
    }
    let narrow = Csr::start_rows(&mut row_start, cols, T::DTYPE)?;
    let entries = row_start[rows];
    let mut values = vec![T::default(); entries];
    let columns = if narrow {
        let mut columns = vec![0u32; entries];
        let places = (&mut columns, &mut values);
        fill(source, &mut row_start, places, |c| c as u32, &steps)?;
        Indices::U32(columns)
    } else {
        let mut columns = vec![0u64; entries];
        let places = (&mut columns, &mut values);
        fill(source, &mut row_start, places, |c| c, &steps)?;
        Indices::U64(columns)
    };
    Ok(Csr { rows, cols, row_start, columns, values: wrap(values) })
}

/// Generates all rows into the arrays; where rows are shorter than was said, those behind them move up.
fn fill<T: Scalar, I: Copy + Send + Sync>(
    source: &dyn RowSource,
    row_start: &mut [usize],
    (all_columns, all_values): (&mut Vec<I>, &mut Vec<T>),
    index: impl Fn(u64) -> I + Sync,
    steps: &Steps<'_>,
) -> Result<()> {
    let rows = row_start.len() - 1;
    let mut lengths = vec![0u32; rows];
    let (mut columns, mut values) = (&mut all_columns[..], &mut all_values[..]);
    let (length, slabs) = source.pieces();
    for slab in (0..rows).step_by(slabs) {
        let mut parts = Vec::new();
        let end = (slab + slabs).min(rows);
        for (first, lengths) in (slab..end).step_by(length).zip(lengths[slab..end].chunks_mut(length)) {
            let last = (first + length).min(end);
            let size = row_start[last] - row_start[first];
            let (c, rest_c) = columns.split_at_mut(size);
            let (v, rest_v) = values.split_at_mut(size);
            (columns, values) = (rest_c, rest_v);
            parts.push((first, lengths, c, v));
        }
        let row_start = &*row_start;
        parts.into_par_iter().for_each(|(first, lengths, columns, values)| {
            source.visit(first, lengths.len(), &mut |k, row| {
                let at = row_start[first + k] - row_start[first];
                lengths[k] = row.len() as u32;
                for (place, &(column, value)) in (at..).zip(row) {
                    columns[place] = index(column);
                    values[place] = T::from_c64(value);
                }
            });
        });
        steps.advance(rows + end)?;
    }
    let mut to = 0;
    for (row, &length) in lengths.iter().enumerate() {
        let (from, length) = (row_start[row], length as usize);
        if from != to {
            all_columns.copy_within(from..from + length, to);
            all_values.copy_within(from..from + length, to);
            row_start[row] = to;
        }
        to += length;
    }
    row_start[rows] = to;
    if to < all_columns.len() {
        all_columns.truncate(to);
        all_columns.shrink_to_fit();
        all_values.truncate(to);
        all_values.shrink_to_fit();
    }
    Ok(())
}
