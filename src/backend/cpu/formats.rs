//! The stored formats as the fused pass walks them: compressed rows, slices of padded rows, dense rows.

use std::iter::empty;
use std::ops::Range;
use std::sync::Arc;

use super::fused::{Visit, WalksRows};
use super::stored::{StoredIndex, StoredScalar};
use crate::backend::matrix::Csr;

/// Compressed rows, shared with the operator they came from.
pub(super) struct CsrRows<J> {
    pub csr: Arc<Csr>,
    pub index: std::marker::PhantomData<J>,
}

impl<T: StoredScalar, J: StoredIndex> WalksRows<T> for CsrRows<J> {
    #[inline(always)]
    fn walk<V: Visit<T>>(&self, rows: Range<usize>, visit: &mut V) {
        let (Some(columns), Some(values)) = (J::columns(&self.csr.columns), T::values(&self.csr.values))
        else {
            return;
        };
        let starts = &self.csr.row_start[rows.start..=rows.end];
        visit.compressed(rows, starts, columns, values);
    }
}

/// Slices of `chunk` rows padded together, entry-major within a slice; ELL is the case of one slice.
pub(super) struct Sliced<T, J> {
    chunk: usize,
    /// Where each slice starts in `columns` and `values`.
    slice_start: Vec<usize>,
    /// For each row, its place in the sorted order.
    place: Option<Vec<u32>>,
    /// Entries of each row in its place.
    lengths: Vec<u32>,
    columns: Vec<J>,
    values: Vec<T>,
}

impl<T: StoredScalar, J: StoredIndex> Sliced<T, J> {
    /// Pads rows together in slices of `chunk`, sorted by length within `sigma` rows.
    pub fn new(csr: &Csr, chunk: usize, sigma: usize) -> Option<Self> {
        let (columns, values) = (J::columns(&csr.columns)?, T::values(&csr.values)?);
        let start = &csr.row_start;
        let zero = columns.first().copied().unwrap_or_default();
        let length = |row: u32| start[row as usize + 1] - start[row as usize];
        let mut order: Vec<u32> = (0..csr.rows as u32).collect();
        let sorted = sigma > 1;
        if sorted {
            for window in order.chunks_mut(sigma) {
                window.sort_by_key(|&row| std::cmp::Reverse(length(row)));
            }
        }
        let mut place = vec![0u32; csr.rows];
        for (at, &row) in order.iter().enumerate() {
            place[row as usize] = at as u32;
        }
        let mut slice_start = vec![0];
        let (mut all_columns, mut all_values) = (Vec::new(), Vec::new());
        for window in order.chunks(chunk) {
            let first = all_values.len();
            let longest = window.iter().map(|&row| length(row)).max().unwrap_or(0);
            all_columns.resize(first + longest * chunk, zero);
            all_values.resize(first + longest * chunk, T::default());
            for (lane, &row) in window.iter().enumerate() {
                for (k, at) in (start[row as usize]..start[row as usize + 1]).enumerate() {
                    all_columns[first + k * chunk + lane] = columns[at];
                    all_values[first + k * chunk + lane] = values[at];
                }
            }
            slice_start.push(all_values.len());
        }
        let lengths = order.iter().map(|&row| length(row) as u32).collect();
        let place = sorted.then_some(place);
        Some(Sliced { chunk, slice_start, place, lengths, columns: all_columns, values: all_values })
    }

    /// Bytes of indices and values.
    pub fn bytes(&self) -> usize {
        self.values.len() * (size_of::<J>() + size_of::<T>())
    }
}

impl<T: StoredScalar, J: StoredIndex> WalksRows<T> for Sliced<T, J> {
    #[inline(always)]
    fn walk<V: Visit<T>>(&self, rows: Range<usize>, visit: &mut V) {
        for row in rows {
            let place = self.place.as_ref().map_or(row, |p| p[row] as usize);
            let first = self.slice_start[place / self.chunk] + place % self.chunk;
            let entries = (0..self.lengths[place] as usize).map(|k| {
                let at = first + k * self.chunk;
                // SAFETY: `new` padded every slice to `chunk` times its longest row, in both arrays.
                unsafe { (self.columns.get_unchecked(at).at(), *self.values.get_unchecked(at)) }
            });
            visit.row(row, None, entries, empty(), empty());
        }
    }
}

/// All entries, row-major.
pub(super) struct FullRows<T> {
    pub cols: usize,
    pub values: Vec<T>,
}

impl<T: StoredScalar> WalksRows<T> for FullRows<T> {
    #[inline(always)]
    fn walk<V: Visit<T>>(&self, rows: Range<usize>, visit: &mut V) {
        for row in rows {
            let entries = self.values[row * self.cols..][..self.cols].iter().copied().enumerate();
            visit.row(row, None, entries, empty(), empty());
        }
    }
}
