//! Several orders of the Chebyshev recurrence in one sweep through memory. The rows are cut into levels that couple
//! only to their neighbours. While a level of order t + 1 is computed, the previous level can already take order t + 2,
//! and so on. So a row in the cache is read once for `depth` orders. Every worker sweeps its own levels and leaves out
//! one more at its inner ends for every order. The levels left out between two workers are computed together
//! afterwards.

use std::ops::Range;

use super::fused::{Visit, WalksRows};
use crate::number::Scalar;

/// Chunks that the rows are cut into before they are joined to levels.
const CHUNKS: usize = 1024;

/// Bytes of two vectors that a worker keeps in the cache.
const CACHE: usize = 6 << 20;

/// Most orders in one sweep.
const DEEPEST: usize = 8;

/// Rows in the order of their distance from the first: level l has entries in levels l - 1, l and l + 1 only.
#[derive(Debug)]
pub(super) struct RowLevels(Vec<Vec<Range<usize>>>);

/// Collects the chunks that a chunk's rows have entries in.
struct ChunkNeighbours {
    chunk: usize,
    seen: Vec<u32>,
}

impl<T: Scalar> Visit<T> for ChunkNeighbours {
    fn row(
        &mut self,
        _row: usize,
        _on_site: Option<T::Real>,
        entries: impl Iterator<Item = (usize, T)>,
        real: impl Iterator<Item = (usize, T::Real)>,
        imaginary: impl Iterator<Item = (usize, T::Real)>,
    ) {
        let columns = entries.map(|e| e.0).chain(real.map(|e| e.0)).chain(imaginary.map(|e| e.0));
        for column in columns {
            let chunk = (column / self.chunk) as u32;
            if self.seen.last() != Some(&chunk) && !self.seen.contains(&chunk) {
                self.seen.push(chunk);
            }
        }
    }
}

impl RowLevels {
    /// The levels of a matrix of `rows` rows and columns. `each` runs a job for every chunk, in parallel or not.
    pub fn new<T: Scalar, M: WalksRows<T>>(
        matrix: &M,
        rows: usize,
        each: impl FnOnce(usize, &(dyn Fn(usize) -> Vec<u32> + Sync)) -> Vec<Vec<u32>>,
    ) -> RowLevels {
        let chunk = rows.div_ceil(CHUNKS).max(64);
        let count = rows.div_ceil(chunk);
        let range = |i: usize| i * chunk..rows.min((i + 1) * chunk);
        let mut near: Vec<Vec<u32>> = each(count, &|i| {
            let mut neighbours = ChunkNeighbours { chunk, seen: Vec::new() };
            matrix.walk(range(i), &mut neighbours);
            neighbours.seen
        });
        RowLevels::of(&mut near, &range)
    }

    /// From the chunks that each chunk reads, and the rows of a chunk.
    fn of(near: &mut [Vec<u32>], range: &dyn Fn(usize) -> Range<usize>) -> RowLevels {
        let count = near.len();
        for i in 0..count {
            for at in 0..near[i].len() {
                let j = near[i][at] as usize;
                if j != i && !near[j].contains(&(i as u32)) {
                    near[j].push(i as u32);
                }
            }
        }
        let mut level_of = vec![usize::MAX; count];
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for start in 0..count {
            if level_of[start] != usize::MAX {
                continue;
            }
            level_of[start] = 0;
            let (mut front, mut depth) = (vec![start], 0);
            while !front.is_empty() {
                if levels.len() == depth {
                    levels.push(Vec::new());
                }
                levels[depth].extend(&front);
                depth += 1;
                let mut next = Vec::new();
                for &i in &front {
                    for &j in &near[i] {
                        if level_of[j as usize] == usize::MAX {
                            level_of[j as usize] = depth;
                            next.push(j as usize);
                        }
                    }
                }
                front = next;
            }
        }
        RowLevels(
            levels
                .into_iter()
                .map(|mut chunks| {
                    chunks.sort_unstable();
                    let mut ranges: Vec<Range<usize>> = Vec::new();
                    for i in chunks {
                        match ranges.last_mut() {
                            Some(last) if last.end == range(i).start => last.end = range(i).end,
                            _ => ranges.push(range(i)),
                        }
                    }
                    ranges
                })
                .collect(),
        )
    }

    fn rows(&self, level: usize) -> usize {
        self.0[level].iter().map(Range::len).sum()
    }

    /// How to sweep with so many workers and bytes a row of one vector; none if it does not pay.
    pub fn plan(&self, workers: usize, bytes: usize) -> Option<SweepPlan<'_>> {
        let count = self.0.len();
        let total: usize = (0..count).map(|l| self.rows(l)).sum();
        let widest = (0..count).map(|l| self.rows(l)).max()?;
        // Vectors that stay in the cache by themselves gain nothing.
        if 2 * total * bytes < 2 * CACHE {
            return None;
        }
        let mut bounds = vec![0];
        let mut so_far = 0;
        for level in 0..count {
            so_far += self.rows(level);
            if so_far * workers >= total * bounds.len() && bounds.len() < workers {
                bounds.push(level + 1);
            }
        }
        bounds.push(count);
        let narrowest = bounds.windows(2).map(|b| b[1] - b[0]).min()?;
        let cached = (CACHE / (2 * widest * bytes).max(1)).saturating_sub(2);
        let depth = cached.min(DEEPEST).min(narrowest / 4);
        (depth > 1).then_some(SweepPlan { levels: self, bounds, depth })
    }
}

/// Which levels each worker sweeps, and how many orders at once.
#[derive(Debug)]
pub(super) struct SweepPlan<'a> {
    levels: &'a RowLevels,
    bounds: Vec<usize>,
    /// Orders in one sweep.
    pub depth: usize,
}

impl SweepPlan<'_> {
    pub fn workers(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The levels that a worker sweeps at order `t`.
    fn own(&self, worker: usize, t: usize) -> Range<usize> {
        let left = if worker > 0 { t } else { 0 };
        let right = if worker + 1 < self.workers() { t } else { 0 };
        self.bounds[worker] + left..self.bounds[worker + 1] - right
    }

    /// One worker's sweep over `depth` orders: calls `level(order, rows)` in an order that respects what depends on
    /// what, until that returns false.
    pub fn sweep(&self, worker: usize, depth: usize, mut rows: impl FnMut(usize, Range<usize>) -> bool) {
        let all = self.own(worker, 0);
        for front in 0..all.len() + depth {
            for t in 0..depth.min(front + 1) {
                let level = all.start + front - t;
                if self.own(worker, t).contains(&level) {
                    for range in &self.levels.0[level] {
                        if !rows(t, range.clone()) {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// The rows between the workers that order `t` of a sweep left out, cut into a share for each worker.
    pub fn seams(&self, t: usize) -> Vec<Vec<Range<usize>>> {
        let inner = &self.bounds[1..self.bounds.len() - 1];
        let ranges: Vec<Range<usize>> =
            inner.iter().flat_map(|&b| b - t..b + t).flat_map(|l| self.levels.0[l].iter().cloned()).collect();
        let total: usize = ranges.iter().map(Range::len).sum();
        let workers = self.workers();
        let mut shares = vec![Vec::new(); workers];
        let mut so_far = 0;
        for range in ranges {
            let mut from = range.start;
            while from < range.end {
                let worker = (so_far * workers / total.max(1)).min(workers - 1);
                let until = (total * (worker + 1)).div_ceil(workers);
                let step = (until - so_far).min(range.end - from).max(1);
                shares[worker].push(from..from + step);
                so_far += step;
                from += step;
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::formats::FullRows;

    /// A banded matrix of ones on a ring.
    fn ring(n: usize, reach: usize) -> FullRows<f64> {
        let mut values = vec![0.0; n * n];
        for i in 0..n {
            for d in 0..=reach {
                values[i * n + (i + d) % n] = 1.0;
                values[i * n + (i + n - d) % n] = 1.0;
            }
        }
        FullRows { cols: n, values }
    }

    struct NonZero<'a>(&'a mut Vec<(usize, usize)>);

    impl Visit<f64> for NonZero<'_> {
        fn row(
            &mut self,
            row: usize,
            _: Option<f64>,
            entries: impl Iterator<Item = (usize, f64)>,
            _: impl Iterator<Item = (usize, f64)>,
            _: impl Iterator<Item = (usize, f64)>,
        ) {
            self.0.extend(entries.filter(|e| e.1 != 0.0).map(|e| (row, e.0)));
        }
    }

    #[test]
    fn every_row_is_computed_once_and_after_what_it_needs() {
        let (n, reach, depth, workers) = (512, 3, 3, 3);
        let matrix = ring(n, reach);
        // Levels by hand, as the dense format would show every chunk as a neighbour of every other.
        let size = 4;
        let ring_level = |i: usize| (i / size).min((n - 1 - i) / size + 1);
        let mut levels = vec![Vec::new(); n / size / 2 + 1];
        for i in 0..n {
            levels[ring_level(i)].push(i..i + 1);
        }
        let count = levels.len();
        let levels = RowLevels(levels);
        let plan = SweepPlan { levels: &levels, bounds: vec![0, count / 3, 2 * count / 3, count], depth };
        assert_eq!(plan.workers(), workers);
        let mut entries = Vec::new();
        matrix.walk(0..n, &mut NonZero(&mut entries));
        let mut order = vec![0usize; n];
        let mut compute = |t: usize, range: Range<usize>| {
            for row in range {
                assert_eq!(order[row], t, "row {row} before its turn");
                for &(_, column) in entries.iter().filter(|e| e.0 == row) {
                    assert!(order[column] == t || order[column] == t + 1, "row {row} needs {column}");
                }
                order[row] = t + 1;
            }
            true
        };
        for worker in 0..workers {
            plan.sweep(worker, depth, &mut compute);
        }
        for t in 1..depth {
            for share in plan.seams(t) {
                for range in share {
                    compute(t, range);
                }
            }
        }
        assert!(order.iter().all(|&t| t == depth));
    }
}
