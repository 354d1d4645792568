//! Worker threads over fixed, contiguous ranges of rows: the same thread meets the same rows in every pass, and partial
//! sums are added in the order of the ranges, so that a result does not depend on timing.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::task::Interrupt;

/// Rows between two looks at the interrupt flag, when rows are cheap.
const CHUNK: usize = 8192;

/// A pool of workers and the flag that stops them.
#[derive(Debug)]
pub(crate) struct Threads {
    pool: rayon::ThreadPool,
    interrupt: Interrupt,
}

impl Threads {
    pub(crate) fn new(count: usize, interrupt: Interrupt) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .build()
            .map_err(|e| Error::backend(format!("{count} threads cannot be started: {e}")))?;
        Ok(Threads { pool, interrupt })
    }

    pub(crate) fn count(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The ranges that `rows` rows are dealt out in: one a worker, or a single one where the work (`rows * cost` scalar
    /// operations) is too little to share.
    pub(crate) fn ranges(&self, rows: usize, cost: usize) -> Vec<Range<usize>> {
        let parts = if rows.saturating_mul(cost) < 20_000 { 1 } else { self.count() };
        (0..parts).map(|i| rows * i / parts..rows * (i + 1) / parts).collect()
    }

    /// Runs one job a range, each with its own share of `data` (cut at `range.start * stride`), and returns what the
    /// jobs return, in order.
    pub(crate) fn run<T: Send, R: Send>(
        &self,
        ranges: &[Range<usize>],
        stride: usize,
        mut data: &mut [T],
        job: impl Fn(Range<usize>, &mut [T]) -> R + Sync,
    ) -> Result<Vec<R>> {
        if let [range] = ranges {
            let result = job(range.clone(), data);
            self.interrupt.check()?;
            return Ok(vec![result]);
        }
        let mut results: Vec<Option<R>> = ranges.iter().map(|_| None).collect();
        self.pool.scope(|scope| {
            for (range, slot) in ranges.iter().zip(&mut results) {
                let (mine, rest) = std::mem::take(&mut data).split_at_mut(range.len() * stride);
                data = rest;
                let job = &job;
                let range = range.clone();
                scope.spawn(move |_| *slot = Some(job(range, mine)));
            }
        });
        self.interrupt.check()?;
        results.into_iter().map(|r| r.ok_or_else(|| Error::internal("a worker returned nothing"))).collect()
    }

    /// As [`Threads::run`], for jobs that only read.
    pub(crate) fn map<R: Send>(
        &self,
        ranges: &[Range<usize>],
        job: impl Fn(Range<usize>) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.run::<(), R>(ranges, 0, &mut [], |range, _| job(range))
    }

    /// Whether work should stop.
    pub(crate) fn stopped(&self) -> bool {
        self.interrupt.raised()
    }

    /// Cuts a range into chunks after which a job looks whether it should stop.
    pub(crate) fn chunks(&self, range: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let end = range.end;
        range.step_by(CHUNK).take_while(|_| !self.interrupt.raised()).map(move |at| at..(at + CHUNK).min(end))
    }
}
