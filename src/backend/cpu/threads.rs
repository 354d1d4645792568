//! Worker threads over fixed, contiguous ranges of rows. A free worker takes the next range. Partial sums are added in
//! the order of the ranges, so a result does not depend on timing.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::task::Interrupt;

/// Rows between two looks at the interrupt flag, when rows are cheap.
const CHUNK: usize = 8192;

/// Jobs that several workers take one after the other.
struct Shared {
    next: AtomicUsize,
    /// Workers at this job; none once no more may join.
    inside: Mutex<Option<usize>>,
    left: Condvar,
    /// What a worker's job panicked with.
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
}

/// A worker's presence at a job. It ends when this is dropped, by a panic too.
struct Inside<'a>(&'a Shared);

/// Lets no more workers join and waits for those at work.
struct Close<'a>(&'a Shared);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<usize>> {
        // The lock guards a count, which a panic leaves whole.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(shared: &Shared) -> Option<Inside<'_>> {
        let mut inside = shared.lock();
        *inside = Some((*inside)? + 1);
        Some(Inside(shared))
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // The count goes only when it is zero, and this worker is still counted.
        if let Some(n) = self.0.lock().as_mut() {
            *n -= 1;
        }
        self.0.left.notify_all();
    }
}

impl Drop for Close<'_> {
    fn drop(&mut self) {
        let mut inside = self.0.lock();
        while inside.is_some_and(|n| n > 0) {
            inside = self.0.left.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        *inside = None;
    }
}

/// A pool of workers and the flag that stops them.
#[derive(Debug)]
pub(crate) struct Threads {
    /// None for a single thread: the caller then does all jobs where it is. To hand them to a worker and to wait for it
    /// takes two switches of threads a loop, which on a busy machine is far more than a small loop takes.
    pool: Option<rayon::ThreadPool>,
    interrupt: Interrupt,
}

impl Threads {
    pub(crate) fn new(count: usize, interrupt: Interrupt) -> Result<Self> {
        if count == 1 {
            return Ok(Threads { pool: None, interrupt });
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .build()
            .map_err(|e| Error::backend(format!("{count} threads cannot be started: {e}")))?;
        Ok(Threads { pool: Some(pool).filter(|pool| pool.current_num_threads() > 1), interrupt })
    }

    pub(crate) fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
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
        data: &mut [T],
        job: impl Fn(Range<usize>, &mut [T]) -> R + Sync,
    ) -> Result<Vec<R>> {
        self.run_any(ranges, stride, data, &job)
    }

    /// What [`Threads::run`] does, compiled for the types of the data and of the results instead of for each job.
    fn run_any<T: Send, R: Send>(
        &self,
        ranges: &[Range<usize>],
        stride: usize,
        data: &mut [T],
        job: &(dyn Fn(Range<usize>, &mut [T]) -> R + Sync),
    ) -> Result<Vec<R>> {
        let pieces = ranges.iter().scan(data, |data, range| {
            let (mine, rest) = std::mem::take(data).split_at_mut(range.len() * stride);
            *data = rest;
            Some((range.clone(), mine))
        });
        if self.count() == 1 || ranges.len() < 2 {
            let results = pieces.map(|(range, mine)| job(range, mine)).collect();
            self.interrupt.check()?;
            return Ok(results);
        }
        let mut results: Vec<Option<R>> = ranges.iter().map(|_| None).collect();
        let pieces: Vec<_> = pieces.zip(&mut results).map(|piece| Mutex::new(Some(piece))).collect();
        self.share(pieces.len(), &|k| {
            let piece = pieces[k].lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(((range, mine), slot)) = piece {
                *slot = Some(job(range, mine));
            }
        });
        drop(pieces);
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

    /// Runs `count` jobs, the caller among the workers. Nobody waits for a worker that has not begun: on a busy machine
    /// the caller does all of it, and a worker that comes late finds nothing left.
    pub(crate) fn share(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        let helpers = self.count().min(count).saturating_sub(1);
        let Some(pool) = self.pool.as_ref().filter(|_| helpers > 0) else {
            return (0..count).for_each(job);
        };
        // SAFETY: the reference is used by workers only between `enter` and the drop of what it gives, and `_close`
        // does not let this call end before all of those are dropped.
        let job: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(job) };
        let shared = Arc::new(Shared {
            next: AtomicUsize::new(0),
            inside: Mutex::new(Some(0)),
            left: Condvar::new(),
            panicked: Mutex::new(None),
        });
        let work = move |shared: &Shared| {
            loop {
                let k = shared.next.fetch_add(1, Ordering::Relaxed);
                if k >= count {
                    return;
                }
                job(k);
            }
        };
        for _ in 0..helpers {
            let shared = shared.clone();
            pool.spawn(move || {
                if let Some(_inside) = Shared::enter(&shared) {
                    // A panic goes on in the caller, as if the caller had done the job.
                    let ended = catch_unwind(AssertUnwindSafe(|| work(&shared)));
                    if let Err(payload) = ended {
                        *shared.panicked.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
                    }
                }
            });
        }
        let close = Close(&shared);
        work(&shared);
        drop(close);
        let panicked = shared.panicked.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(payload) = panicked {
            resume_unwind(payload);
        }
    }

    /// An error if work should stop.
    pub(crate) fn check(&self) -> Result<()> {
        self.interrupt.check()
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

#[cfg(test)]
mod tests {
    use std::thread::current;

    use super::*;

    #[test]
    fn a_single_thread_does_its_jobs_where_it_is() {
        for count in [1, 3] {
            let threads = Threads::new(count, Interrupt::default()).unwrap();
            assert_eq!(threads.count(), count);
            let (own, mut data) = (current().id(), vec![0; 10]);
            let met = threads.run(&[0..2, 2..2, 2..5], 2, &mut data, |range, mine| {
                mine.fill(range.len());
                (range.start, current().id() == own)
            });
            let met = met.unwrap();
            assert_eq!(met.iter().map(|(start, _)| *start).collect::<Vec<_>>(), [0, 2, 2]);
            assert!(count > 1 || met.iter().all(|(_, own)| *own));
            assert_eq!(data, [2, 2, 2, 2, 3, 3, 3, 3, 3, 3]);
        }
    }

    #[test]
    fn a_panic_of_a_job_goes_on_in_the_caller() {
        let threads = Threads::new(3, Interrupt::default()).unwrap();
        let one = std::sync::Barrier::new(2);
        let met = catch_unwind(AssertUnwindSafe(|| {
            // Two jobs wait for each other, so that a worker has one of them.
            threads.share(2, &|k| {
                one.wait();
                assert!(k == 0, "job {k}");
            })
        }));
        assert!(met.is_err());
        assert_eq!(threads.map(&[0..1, 1..2], |range| range.start).unwrap(), [0, 1]);
    }
}
