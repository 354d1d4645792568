//! Exchange of rows on the CPU: rows in transit have the same layout as here, so they are copied unchanged.

use std::sync::Arc;

use super::algebra::{by_precision, lanes, lanes_mut};
use super::block::BlockReal;
use super::fold::Fold;
use super::{Cpu, Threads, block};
use crate::backend::exchange::{ExchangePort, Halo, PendingProducts, Staging, VectorShape};
use crate::backend::{BlockVector, Dots, Kernel, Rows, Update, Vectors};
use crate::error::{Error, Result};

/// The CPU's end of an exchange.
struct CpuPort {
    threads: Arc<Threads>,
    halo: Halo,
    /// First row of each neighbour in `rows`.
    first: Vec<usize>,
    /// The rows brought in, and what they contribute to the boundary.
    rows: BlockVector,
    change: BlockVector,
    full: Option<Vec<Staging>>,
    read: Vec<(usize, Staging)>,
}

pub(super) fn port(cpu: &Cpu, halo: &Halo, shape: VectorShape) -> Result<Box<dyn ExchangePort>> {
    let block = |rows: usize| cpu.zeros(shape.dtype, Rows::all(rows), shape.columns);
    let mut first = vec![0];
    first.extend(halo.receives.iter().scan(0, |sum, count| {
        *sum += count;
        Some(*sum)
    }));
    Ok(Box::new(CpuPort {
        threads: cpu.threads.clone(),
        rows: block(halo.receives.iter().sum())?,
        change: block(halo.boundary.len())?,
        halo: halo.clone(),
        first,
        full: None,
        read: Vec::new(),
    }))
}

/// Where the numbers of a row stand in a block, whose rows may be folded.
#[derive(Clone, Copy)]
struct RowLayout {
    fold: Option<Fold>,
    stride: usize,
    width: usize,
    columns: usize,
    rows: usize,
}

impl RowLayout {
    fn of(v: &BlockVector) -> Result<RowLayout> {
        let own = block(v)?;
        let (fold, stride, width) = (own.fold(), own.stride(), own.width());
        Ok(RowLayout { fold, stride, width, columns: v.columns, rows: v.rows.local })
    }

    /// Where the first number of a row stands. Most rows follow the one before on the same site: then the place is the
    /// next, and none of the divisions that the fold takes are made.
    #[inline(always)]
    fn start(&self, row: usize, before: &mut Option<(usize, usize)>) -> usize {
        let Some(fold) = self.fold else { return row * self.stride };
        let start = match *before {
            Some((last, start)) if row == last + 1 && !row.is_multiple_of(fold.per_site) => {
                start + self.stride
            }
            _ => {
                let (stored, lane) = fold.place(row);
                stored * self.stride + lane
            }
        };
        *before = Some((row, start));
        start
    }

    /// How far from the first number `k` of a row in transit stands.
    #[inline(always)]
    fn offset(&self, k: usize) -> usize {
        let Some(fold) = self.fold else { return k };
        k / self.columns * self.width + k % self.columns * fold.lanes
    }
}

/// Copies the listed rows, one after the other.
fn gather<F: BlockReal>(threads: &Threads, v: &BlockVector, rows: &[usize], to: &mut [u8]) -> Result<()> {
    let (places, x) = (RowLayout::of(v)?, lanes::<F>(v)?);
    let to: &mut [F] = bytemuck::cast_slice_mut(to);
    let each = to.len() / rows.len().max(1);
    threads.run(&threads.ranges(rows.len(), each), each, to, |range, to| {
        let mut before = None;
        for (&row, to) in rows[range].iter().zip(to.chunks_exact_mut(each.max(1))) {
            if places.fold.is_some() {
                let start = places.start(row, &mut before);
                to.iter_mut().enumerate().for_each(|(k, to)| *to = x[start + places.offset(k)]);
            } else {
                to.copy_from_slice(&x[row * each..][..each]);
            }
        }
    })?;
    Ok(())
}

/// Overwrites rows from `first` on.
fn spread<F: BlockReal>(threads: &Threads, from: &[u8], first: usize, v: &mut BlockVector) -> Result<()> {
    let stride = block(v)?.stride();
    let from: &[F] = bytemuck::cast_slice(from);
    let to = &mut lanes_mut::<F>(v)?[first * stride..][..from.len()];
    threads.run(&threads.ranges(from.len() / stride, stride), stride, to, |range, to| {
        to.copy_from_slice(&from[range.start * stride..range.end * stride]);
    })?;
    Ok(())
}

/// A block's numbers, to be changed by several workers.
struct SharedBlock<F>(*mut F);

// SAFETY: workers are dealt disjoint lists of rows.
unsafe impl<F: Send> Sync for SharedBlock<F> {}

impl<F: BlockReal> SharedBlock<F> {
    /// Adds to a number.
    ///
    /// # Safety
    /// The number must lie in the block, and nobody else may have it now.
    unsafe fn add(&self, at: usize, x: F) {
        // SAFETY: the caller's promise.
        unsafe {
            let number = self.0.add(at);
            number.write(number.read() + x);
        }
    }
}

/// `w[rows] += change`; the sums of `change * v` of each number of a row.
fn add<F: BlockReal>(
    threads: &Threads,
    rows: &[usize],
    change: &BlockVector,
    v: Option<&BlockVector>,
    w: &mut BlockVector,
) -> Result<Vec<f64>> {
    let (places, d) = (RowLayout::of(w)?, lanes::<F>(change)?);
    let v = v.map(|v| Ok::<_, Error>((RowLayout::of(v)?, lanes::<F>(v)?))).transpose()?;
    let each = d.len() / rows.len().max(1);
    let last = rows.last().map_or(0, |row| row + 1);
    if last > places.rows || v.is_some_and(|(of_v, _)| last > of_v.rows) {
        return Err(Error::internal("a boundary row outside a vector"));
    }
    let target = SharedBlock(lanes_mut::<F>(w)?.as_mut_ptr());
    let parts = threads.map(&threads.ranges(rows.len(), 4 * each), |range| {
        let mut sums = vec![0.0; each];
        let (mut before, mut before_v) = (None, None);
        for at in range {
            let start = places.start(rows[at], &mut before);
            let v = v.map(|(of_v, v)| (of_v, &v[of_v.start(rows[at], &mut before_v)..]));
            for (k, sum) in sums.iter_mut().enumerate() {
                let change = d[at * each + k];
                // SAFETY: rows ascend and none stands twice, so that no other worker has this one;
                // it was checked above.
                unsafe { target.add(start + places.offset(k), change) };
                if let Some((of_v, v)) = v {
                    *sum += change.to_f64() * v[of_v.offset(k)].to_f64();
                }
            }
        }
        sums
    })?;
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_default();
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(s, p)| *s += p);
    }
    Ok(sums)
}

impl ExchangePort for CpuPort {
    fn collect(&mut self, v: &BlockVector, mut to: Vec<Staging>) -> Result<()> {
        for (rows, to) in self.halo.sends.iter().zip(&mut to) {
            by_precision!(v, gather(&self.threads, v, rows, to.bytes_mut()))?;
        }
        self.full = Some(to);
        Ok(())
    }

    fn collected(&mut self, _wait: bool) -> Result<Option<Vec<Staging>>> {
        Ok(self.full.take())
    }

    fn deliver(&mut self, from: usize, rows: Staging) -> Result<()> {
        by_precision!(self.rows, spread(&self.threads, rows.bytes(), self.first[from], &mut self.rows))?;
        self.read.push((from, rows));
        Ok(())
    }

    fn released(&mut self) -> Result<Vec<(usize, Staging)>> {
        Ok(std::mem::take(&mut self.read))
    }

    fn add(
        &mut self,
        alpha: f64,
        a: &dyn Kernel,
        w: &mut BlockVector,
        v: Option<&BlockVector>,
    ) -> Result<Option<PendingProducts>> {
        a.update(Update { alpha, beta: 0.0, gamma: 0.0 }, &self.rows, &mut self.change, None)?;
        let sums = by_precision!(w, add(&self.threads, &self.halo.boundary, &self.change, v, w))?;
        if v.is_none() {
            return Ok(None);
        }
        let columns = w.columns;
        let both = |c: usize| sums[c] + sums.get(columns + c).copied().unwrap_or(0.0);
        let wv = (0..columns).map(both).collect();
        Ok(Some(Box::new(move || Ok(Dots { wv, ..Dots::default() }))))
    }
}
