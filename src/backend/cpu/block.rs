//! Storage of a block on the CPU: rows of lanes, real parts before imaginary ones. Rows on a lattice are folded: rows
//! of several sites are stored side by side, so one vector instruction handles all of them (see [`Fold`]).

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Threads;
use super::fold::Fold;
use super::pack::Registers;
use crate::backend::Rows;
use crate::error::{Error, Result};
use crate::number::aligned::Aligned;
use crate::number::memory::human;
use crate::number::{C64, DType, Real, Scalar};

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Bytes of all blocks alive.
pub(super) fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// A vector of reals whose bytes are accounted for.
#[derive(Debug)]
pub(in crate::backend) struct HostBuffer<F>(Aligned<F>);

impl<F> HostBuffer<F> {
    fn adopt(data: Aligned<F>) -> Self {
        IN_USE.fetch_add(data.bytes(), Ordering::Relaxed);
        HostBuffer(data)
    }
}

impl<F> std::ops::Deref for HostBuffer<F> {
    type Target = [F];
    fn deref(&self) -> &[F] {
        &self.0
    }
}

impl<F> std::ops::DerefMut for HostBuffer<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.0
    }
}

impl<F: Copy + Default> Clone for HostBuffer<F> {
    fn clone(&self) -> Self {
        Self::adopt(self.0.clone())
    }
}

impl<F> Drop for HostBuffer<F> {
    fn drop(&mut self) {
        IN_USE.fetch_sub(self.0.bytes(), Ordering::Relaxed);
    }
}

/// The two precisions a block may have.
#[derive(Debug, Clone)]
pub(in crate::backend) enum BlockData {
    Single(HostBuffer<f32>),
    Double(HostBuffer<f64>),
}

/// A block on the CPU: `stride` reals a stored row.
#[derive(Debug, Clone)]
pub(in crate::backend) struct HostBlock {
    data: BlockData,
    complex: bool,
    columns: usize,
    fold: Option<Fold>,
}

/// Reals that a block can be made of, and the way to a block's reals of that type.
pub(in crate::backend) trait BlockReal:
    Real + Registers + Scalar<Real = Self> + bytemuck::Pod
{
    fn lanes(block: &HostBlock) -> Option<&[Self]>;
    fn lanes_mut(block: &mut HostBlock) -> Option<&mut [Self]>;
}

macro_rules! lane {
    ($t:ty, $case:ident) => {
        impl BlockReal for $t {
            fn lanes(block: &HostBlock) -> Option<&[Self]> {
                match &block.data {
                    BlockData::$case(b) => Some(&b[..]),
                    _ => None,
                }
            }
            fn lanes_mut(block: &mut HostBlock) -> Option<&mut [Self]> {
                match &mut block.data {
                    BlockData::$case(b) => Some(&mut b[..]),
                    _ => None,
                }
            }
        }
    };
}

lane!(f32, Single);
lane!(f64, Double);

/// Elements that are written between two looks at the interrupt flag.
const BETWEEN_LOOKS: usize = 1 << 20;

fn touched<F: BlockReal>(threads: &Threads, count: usize, stride: usize) -> Result<HostBuffer<F>> {
    let mut data = Aligned::<F>::with_room(count).map_err(|_| {
        let bytes = count.saturating_mul(size_of::<F>());
        Error::memory(format!("vectors of {} more do not fit into the free memory", human(bytes as u128)))
            .hint("use fewer vectors at a time, or a smaller lattice")
    })?;
    // Each worker writes its own rows first, so that their pages lie in its memory.
    let rows = count / stride.max(1);
    let ranges = threads.ranges(rows, stride);
    let whole = threads.run(&ranges, stride, data.spare(count), |_, mine| {
        // Memory for the first time takes a second for some GB, more on a busy machine.
        mine.chunks_mut(BETWEEN_LOOKS).all(|piece| {
            piece.iter_mut().for_each(|slot| _ = slot.write(F::default()));
            !threads.stopped()
        })
    })?;
    if !whole.into_iter().all(|whole| whole) {
        return Err(Error::interrupted());
    }
    // SAFETY: the ranges cover all `count` reserved elements, and each was written above, as no job ended early.
    unsafe { data.written(count) };
    Ok(HostBuffer::adopt(data))
}

impl HostBlock {
    pub(super) fn zeros(threads: &Threads, dtype: DType, rows: &Rows, columns: usize) -> Result<HostBlock> {
        let complex = dtype.is_complex();
        let fold = Fold::of(rows);
        let stride = columns * if complex { 2 } else { 1 };
        let (count, stride) = (rows.local * stride, stride * fold.map_or(1, |f| f.lanes));
        let data = if dtype.is_single() {
            BlockData::Single(touched(threads, count, stride)?)
        } else {
            BlockData::Double(touched(threads, count, stride)?)
        };
        Ok(HostBlock { data, complex, columns, fold })
    }

    /// How the rows stand side by side, if they do.
    pub(super) fn fold(&self) -> Option<Fold> {
        self.fold
    }

    /// Rows side by side.
    pub(super) fn lanes(&self) -> usize {
        self.fold.map_or(1, |f| f.lanes)
    }

    /// Numbers in a stored row: those of all columns, of all rows side by side.
    pub(super) fn width(&self) -> usize {
        self.columns * self.lanes()
    }

    /// Where the real part of an entry stands.
    fn place(&self, row: usize, column: usize) -> usize {
        match self.fold {
            None => row * self.stride() + column,
            Some(fold) => {
                let (stored, lane) = fold.place(row);
                stored * self.stride() + column * fold.lanes + lane
            }
        }
    }

    pub(super) fn stride(&self) -> usize {
        self.width() * if self.complex { 2 } else { 1 }
    }

    pub(super) fn get(&self, row: usize, column: usize) -> C64 {
        fn at<F: Real>(b: &HostBuffer<F>, i: usize) -> f64 {
            b[i].to_f64()
        }
        let i = self.place(row, column);
        let part = |i| match &self.data {
            BlockData::Single(b) => at(b, i),
            BlockData::Double(b) => at(b, i),
        };
        C64::new(part(i), if self.complex { part(i + self.width()) } else { 0.0 })
    }

    pub(super) fn set(&mut self, row: usize, column: usize, value: C64) {
        let (i, width, complex) = (self.place(row, column), self.width(), self.complex);
        match &mut self.data {
            BlockData::Single(b) => {
                b[i] = value.re as f32;
                if complex {
                    b[i + width] = value.im as f32;
                }
            }
            BlockData::Double(b) => {
                b[i] = value.re;
                if complex {
                    b[i + width] = value.im;
                }
            }
        }
    }

    /// All numbers of a single column in double precision; none for other blocks and for folded ones.
    pub(super) fn single_column(&self) -> Option<Vec<C64>> {
        if self.fold.is_some() {
            return None;
        }
        match &self.data {
            BlockData::Double(b) if self.columns == 1 && self.complex => {
                Some(b.chunks_exact(2).map(|z| C64::new(z[0], z[1])).collect())
            }
            BlockData::Double(b) if self.columns == 1 => Some(b.iter().map(|&x| C64::new(x, 0.0)).collect()),
            _ => None,
        }
    }

    /// Overwrites a single column in double precision; false for other blocks and for folded ones.
    pub(super) fn set_single_column(&mut self, data: &[C64]) -> bool {
        let (columns, complex) = (self.columns, self.complex);
        if self.fold.is_some() {
            return false;
        }
        match &mut self.data {
            BlockData::Double(b) if columns == 1 && complex => {
                b.chunks_exact_mut(2).zip(data).for_each(|(x, z)| (x[0], x[1]) = (z.re, z.im));
                true
            }
            BlockData::Double(b) if columns == 1 => {
                b.iter_mut().zip(data).for_each(|(x, z)| *x = z.re);
                true
            }
            _ => false,
        }
    }

    /// Copies columns `range` of `source`, a block of the same type, over the columns from `at` on.
    pub(super) fn copy_columns(
        &mut self,
        threads: &Threads,
        at: usize,
        source: &HostBlock,
        range: Range<usize>,
    ) -> Result<()> {
        fn go<F: BlockReal>(
            threads: &Threads,
            to: &mut HostBlock,
            at: usize,
            from: &HostBlock,
            range: Range<usize>,
        ) -> Result<()> {
            let parts = if to.complex { 2 } else { 1 };
            let lanes = to.lanes();
            let (at, range) = (at * lanes, range.start * lanes..range.end * lanes);
            let (to_width, from_width) = (to.width(), from.width());
            let (to_stride, from_stride) = (to.stride(), from.stride());
            let (Some(x), Some(y)) = (F::lanes(from), F::lanes_mut(to)) else {
                return Err(Error::internal("columns of another precision"));
            };
            let ranges = threads.ranges(y.len() / to_stride.max(1), range.len());
            threads.run(&ranges, to_stride, y, |rows, y| {
                for (row, y) in rows.zip(y.chunks_exact_mut(to_stride.max(1))) {
                    for part in 0..parts {
                        let first = row * from_stride + part * from_width;
                        y[part * to_width + at..][..range.len()]
                            .copy_from_slice(&x[first + range.start..first + range.end]);
                    }
                }
            })?;
            Ok(())
        }
        match self.data {
            BlockData::Single(_) => go::<f32>(threads, self, at, source, range),
            BlockData::Double(_) => go::<f64>(threads, self, at, source, range),
        }
    }

    /// Takes over the numbers of a block of the same shape and another type.
    pub(super) fn convert_from(&mut self, threads: &Threads, source: &HostBlock) -> Result<()> {
        fn go<F: BlockReal, G: BlockReal>(
            threads: &Threads,
            to: &mut HostBlock,
            from: &HostBlock,
        ) -> Result<()> {
            let (to_stride, from_stride) = (to.stride(), from.stride());
            let (Some(x), Some(y)) = (G::lanes(from), F::lanes_mut(to)) else {
                return Err(Error::internal("conversion from another precision"));
            };
            let shared = to_stride.min(from_stride);
            let ranges = threads.ranges(y.len() / to_stride.max(1), to_stride);
            threads.run(&ranges, to_stride, y, |rows, y| {
                for (row, y) in rows.zip(y.chunks_exact_mut(to_stride.max(1))) {
                    for (y, x) in y[..shared].iter_mut().zip(&x[row * from_stride..]) {
                        *y = F::from_f64(x.to_f64());
                    }
                    y[shared..].fill(F::default());
                }
            })?;
            Ok(())
        }
        match (&self.data, &source.data) {
            (BlockData::Single(_), BlockData::Single(_)) => go::<f32, f32>(threads, self, source),
            (BlockData::Single(_), BlockData::Double(_)) => go::<f32, f64>(threads, self, source),
            (BlockData::Double(_), BlockData::Single(_)) => go::<f64, f32>(threads, self, source),
            (BlockData::Double(_), BlockData::Double(_)) => go::<f64, f64>(threads, self, source),
        }
    }
}
