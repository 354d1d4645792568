//! Matrices prepared for the CPU: each stored format walks its rows for the fused pass.

use std::sync::Arc;

use num_complex::Complex;

use super::block::Lane;
use super::fused::{self, Pass, Walk};
use super::{Isa, Threads};
use crate::backend::matrix::{Csr, Indices, Stencil, Values};
use crate::backend::{
    BlockVector, Dots, Kernel, KernelInfo, MatrixSpec, Rows, Storage, Update, check_update,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType, Scalar};

/// An integer that columns are stored as.
trait Index: Copy + Send + Sync + 'static {
    fn at(self) -> usize;
}

impl Index for u32 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

impl Index for u64 {
    #[inline(always)]
    fn at(self) -> usize {
        self as usize
    }
}

/// Compressed rows.
struct CsrRows<T, J> {
    start: Vec<usize>,
    columns: Vec<J>,
    values: Vec<T>,
}

impl<T: Scalar, J: Index> Walk<T> for CsrRows<T, J> {
    #[inline(always)]
    fn row(&self, row: usize, mut entry: impl FnMut(usize, T)) {
        let range = self.start[row]..self.start[row + 1];
        for (j, &value) in self.columns[range.clone()].iter().zip(&self.values[range]) {
            entry(j.at(), value);
        }
    }
}

/// Slices of `chunk` rows padded together, entry-major within a slice; ELL is the case of one slice.
struct Sliced<T, J> {
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

impl<T: Scalar, J: Index> Walk<T> for Sliced<T, J> {
    #[inline(always)]
    fn row(&self, row: usize, mut entry: impl FnMut(usize, T)) {
        let place = self.place.as_ref().map_or(row, |p| p[row] as usize);
        let first = self.slice_start[place / self.chunk] + place % self.chunk;
        for k in 0..self.lengths[place] as usize {
            let at = first + k * self.chunk;
            entry(self.columns[at].at(), self.values[at]);
        }
    }
}

/// All entries, row-major.
struct Full<T> {
    cols: usize,
    values: Vec<T>,
}

impl<T: Scalar> Walk<T> for Full<T> {
    #[inline(always)]
    fn row(&self, row: usize, mut entry: impl FnMut(usize, T)) {
        for (column, &value) in self.values[row * self.cols..][..self.cols].iter().enumerate() {
            entry(column, value);
        }
    }
}

/// The parts of a stored matrix that its format does not decide.
struct Stored<M> {
    matrix: M,
    rows: Rows,
    cols: usize,
    dtype: DType,
    info: KernelInfo,
    threads: Arc<Threads>,
    isa: Isa,
}

impl<M: Sync> Stored<M> {
    /// The pass over all local rows, given the one over a range.
    fn pass<F: Lane>(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
        rows: impl Fn(&Pass<'_, F>, std::ops::Range<usize>, usize, &mut [F], &mut [f64]) + Sync,
    ) -> Result<()> {
        let (columns, complex) = (v.columns, v.dtype.is_complex());
        let stride = columns * if complex { 2 } else { 1 };
        let Storage::Cpu(input) = &v.storage;
        let Storage::Cpu(output) = &mut w.storage;
        let (Some(input), Some(output)) = (F::lanes(input), F::lanes_mut(output)) else {
            return Err(Error::internal("vectors of another precision than the matrix"));
        };
        let pass = Pass { c, columns, complex, v: input, offset: self.rows.start, dots: dots.is_some() };
        let per_row = stride * (1 + self.info.entries / self.rows.local.max(1));
        let ranges = self.threads.ranges(self.rows.local, per_row);
        let sums = self.threads.run(&ranges, stride, output, |range, w| {
            let mut sums = vec![0.0; 2 * stride];
            let first = range.start;
            for chunk in self.threads.chunks(range) {
                rows(&pass, chunk, first, w, &mut sums);
            }
            sums
        })?;
        if let Some(dots) = dots {
            let lane = |which: usize, column: usize| {
                let mut total = 0.0;
                for part in &sums {
                    total += part[which * stride + column];
                    if complex {
                        total += part[which * stride + columns + column];
                    }
                }
                total
            };
            dots.vv = (0..columns).map(|c| lane(0, c)).collect();
            dots.wv = (0..columns).map(|c| lane(1, c)).collect();
        }
        Ok(())
    }
}

/// Implements `Kernel` for stored matrices of one scalar type.
macro_rules! kernel {
    ($t:ty, $real:ty, $rows:path) => {
        impl<M: Walk<$t> + Send> Kernel for Typed<$t, M> {
            fn rows(&self) -> Rows {
                self.0.rows
            }
            fn cols(&self) -> usize {
                self.0.cols
            }
            fn dtype(&self) -> DType {
                self.0.dtype
            }
            fn info(&self) -> KernelInfo {
                self.0.info.clone()
            }
            fn update(
                &self,
                c: Update,
                v: &BlockVector,
                w: &mut BlockVector,
                dots: Option<&mut Dots>,
            ) -> Result<()> {
                check_update(self, v, w, dots.is_some())?;
                self.0.pass::<$real>(c, v, w, dots, |pass, range, first, w, sums| {
                    $rows(self.0.isa, &self.0.matrix, pass, range, first, w, sums)
                })
            }
        }
    };
}

/// A stored matrix with its scalar type.
struct Typed<T, M>(Stored<M>, std::marker::PhantomData<T>);

kernel!(f32, f32, fused::real_rows);
kernel!(f64, f64, fused::real_rows);
kernel!(Complex<f32>, f32, fused::complex_rows);
kernel!(C64, f64, fused::complex_rows);

/// What every prepared matrix shares.
struct Common {
    threads: Arc<Threads>,
    isa: Isa,
    rows: Rows,
    cols: usize,
}

impl Common {
    fn finish<T, M>(self, matrix: M, format: String, bytes: usize, entries: usize) -> Arc<dyn Kernel>
    where
        T: Scalar,
        M: Walk<T> + Send + 'static,
        Typed<T, M>: Kernel + 'static,
    {
        let info = KernelInfo { format, bytes, entries };
        let stored = Stored {
            matrix,
            rows: self.rows,
            cols: self.cols,
            dtype: T::DTYPE,
            info,
            threads: self.threads,
            isa: self.isa,
        };
        Arc::new(Typed(stored, std::marker::PhantomData))
    }
}

/// Calls a generic function with the entries and columns of a matrix, whatever their types.
macro_rules! by_types {
    ($csr:expr, |$start:ident, $columns:ident, $values:ident| $body:expr) => {{
        let Csr { row_start: $start, columns, values, .. } = $csr;
        match (values, columns) {
            (Values::F32($values), Indices::U32($columns)) => $body,
            (Values::F64($values), Indices::U32($columns)) => $body,
            (Values::C32($values), Indices::U32($columns)) => $body,
            (Values::C64($values), Indices::U32($columns)) => $body,
            (Values::F32($values), Indices::U64($columns)) => $body,
            (Values::F64($values), Indices::U64($columns)) => $body,
            (Values::C32($values), Indices::U64($columns)) => $body,
            (Values::C64($values), Indices::U64($columns)) => $body,
        }
    }};
}

/// Pads rows together in slices of `chunk`, sorted by length within `sigma` rows.
fn slice<T: Scalar, J: Index>(
    start: &[usize],
    columns: &[J],
    values: &[T],
    zero: J,
    chunk: usize,
    sigma: usize,
) -> Sliced<T, J> {
    let rows = start.len() - 1;
    let length = |row: usize| start[row + 1] - start[row];
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let sorted = sigma > 1;
    if sorted {
        for window in order.chunks_mut(sigma) {
            window.sort_by_key(|&row| std::cmp::Reverse(length(row as usize)));
        }
    }
    let mut place = vec![0u32; rows];
    for (at, &row) in order.iter().enumerate() {
        place[row as usize] = at as u32;
    }
    let mut slice_start = vec![0];
    let (mut all_columns, mut all_values) = (Vec::new(), Vec::new());
    for window in order.chunks(chunk) {
        let first = all_values.len();
        let longest = window.iter().map(|&row| length(row as usize)).max().unwrap_or(0);
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
    let lengths = order.iter().map(|&row| length(row as usize) as u32).collect();
    let place = sorted.then_some(place);
    Sliced { chunk, slice_start, place, lengths, columns: all_columns, values: all_values }
}

/// Brings a matrix into the form its kernels read.
pub(super) fn prepare(threads: Arc<Threads>, isa: Isa, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
    match spec {
        MatrixSpec::Csr(csr) => {
            csr.validate()?;
            let common = Common { threads, isa, rows: Rows::all(csr.rows), cols: csr.cols };
            let (bytes, entries) = (csr.bytes(), csr.entries());
            Ok(by_types!((*csr).clone(), |start, columns, values| common.finish(
                CsrRows { start, columns, values },
                "CSR".into(),
                bytes,
                entries
            )))
        }
        MatrixSpec::Ell(csr) => {
            let chunk = csr.rows.max(1);
            sliced(threads, isa, csr, chunk, 1, "ELL".into())
        }
        MatrixSpec::Sell { csr, chunk, sigma } => {
            if chunk == 0 || sigma == 0 {
                return Err(Error::input("SELL-C-sigma needs C and sigma of at least 1"));
            }
            sliced(threads, isa, csr, chunk, sigma, format!("SELL-{chunk}-{sigma}"))
        }
        MatrixSpec::Dense { rows, cols, dtype, values } => {
            let common = Common { threads, isa, rows: Rows::all(rows), cols };
            let entries = rows * cols;
            let bytes = entries * dtype.bytes();
            Ok(match Values::C64(values).convert(dtype) {
                Values::F32(values) => common.finish(Full { cols, values }, "dense".into(), bytes, entries),
                Values::F64(values) => common.finish(Full { cols, values }, "dense".into(), bytes, entries),
                Values::C32(values) => common.finish(Full { cols, values }, "dense".into(), bytes, entries),
                Values::C64(values) => common.finish(Full { cols, values }, "dense".into(), bytes, entries),
            })
        }
        MatrixSpec::Stencil(stencil) => {
            let csr = Arc::new(stencil_rows(&stencil)?);
            let common = Common { threads, isa, rows: Rows::all(csr.rows), cols: csr.cols };
            let (bytes, entries) = (csr.bytes(), csr.entries());
            Ok(by_types!((*csr).clone(), |start, columns, values| common.finish(
                CsrRows { start, columns, values },
                "CSR of a stencil".into(),
                bytes,
                entries
            )))
        }
    }
}

fn sliced(
    threads: Arc<Threads>,
    isa: Isa,
    csr: Arc<Csr>,
    chunk: usize,
    sigma: usize,
    format: String,
) -> Result<Arc<dyn Kernel>> {
    csr.validate()?;
    if csr.rows > u32::MAX as usize {
        return Err(Error::input(format!("{format}: {} rows are too many for one slice order", csr.rows))
            .hint("use the CSR format or a stencil"));
    }
    let common = Common { threads, isa, rows: Rows::all(csr.rows), cols: csr.cols };
    let entries = csr.entries();
    Ok(by_types!((*csr).clone(), |start, columns, values| {
        let zero = columns.first().copied().unwrap_or_default();
        let m = slice(&start, &columns, &values, zero, chunk, sigma);
        let bytes = m.values.len() * (size_of_val(&zero) + m.values.first().map_or(0, size_of_val));
        common.finish(m, format, bytes, entries)
    }))
}

/// The entries of a stencil, in compressed rows.
fn stencil_rows(stencil: &Stencil) -> Result<Csr> {
    let dim = stencil.dim();
    let mut row_start = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut entries = Vec::new();
    for row in 0..dim {
        stencil.row(row, &mut entries);
        entries.sort_by_key(|e| e.0);
        for &(column, value) in &entries {
            if columns.len() > row_start[row] && columns.last() == Some(&(column as u64)) {
                if let Some(last) = values.last_mut() {
                    *last += value;
                }
            } else {
                columns.push(column as u64);
                values.push(value);
            }
        }
        row_start.push(columns.len());
    }
    let columns = if dim <= u32::MAX as usize {
        Indices::U32(columns.into_iter().map(|c| c as u32).collect())
    } else {
        Indices::U64(columns)
    };
    Ok(Csr { rows: dim, cols: dim, row_start, columns, values: Values::C64(values).convert(stencil.dtype) })
}
