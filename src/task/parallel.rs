//! Loops whose results are a list, shared by the workers of the process. The machinery of a parallel iterator is
//! compiled anew for every loop, some ten thousand lines each; here only what a loop does itself is.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::error::Result;

/// Pieces a worker: enough that none waits long for the last one, and few beside the work on an item.
const PIECES: usize = 64;

/// The pieces that a loop is cut into.
struct Pieces {
    count: usize,
    /// Items of each piece but the last.
    size: usize,
}

impl Pieces {
    fn of(count: usize) -> Pieces {
        Pieces { count, size: count.div_ceil(PIECES * rayon::current_num_threads()).max(1) }
    }

    fn len(&self) -> usize {
        self.count.div_ceil(self.size)
    }

    fn range(&self, piece: usize) -> Range<usize> {
        piece * self.size..((piece + 1) * self.size).min(self.count)
    }
}

/// Does `count` jobs.
fn share(count: usize, job: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(job);
}

fn put<T>(slot: &Mutex<T>, value: T) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

/// The results of a function at `0..count`, in order.
pub fn map<R: Send>(count: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let pieces = Pieces::of(count);
    let slots: Vec<Mutex<Vec<R>>> = (0..pieces.len()).map(|_| Mutex::default()).collect();
    share(slots.len(), &|k| put(&slots[k], pieces.range(k).map(&f).collect()));
    let mut all = Vec::with_capacity(count);
    for slot in slots {
        all.append(&mut slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    }
    all
}

/// As [`map`], for a function that may fail: then what is left is not begun.
///
/// # Errors
/// One of those of the function.
pub fn try_map<R: Send>(count: usize, f: impl Fn(usize) -> Result<R> + Sync) -> Result<Vec<R>> {
    let failed = AtomicBool::new(false);
    let pieces = Pieces::of(count);
    let slots: Vec<Mutex<Result<Vec<R>>>> = (0..pieces.len()).map(|_| Mutex::new(Ok(Vec::new()))).collect();
    share(slots.len(), &|k| {
        let mut done = Vec::with_capacity(pieces.size);
        for i in pieces.range(k) {
            if failed.load(Ordering::Relaxed) {
                return;
            }
            match f(i) {
                Ok(result) => done.push(result),
                Err(e) => {
                    failed.store(true, Ordering::Relaxed);
                    return put(&slots[k], Err(e));
                }
            }
        }
        put(&slots[k], Ok(done));
    });
    let mut all = Vec::with_capacity(count);
    for slot in slots {
        all.append(&mut slot.into_inner().unwrap_or_else(PoisonError::into_inner)?);
    }
    Ok(all)
}

/// As [`try_map`], of items that the function changes, with their numbers.
///
/// # Errors
/// One of those of the function.
pub fn try_map_mut<T: Send, R: Send>(
    items: &mut [T],
    f: impl Fn(usize, &mut T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    // Each is locked once.
    let items: Vec<Mutex<&mut T>> = items.iter_mut().map(Mutex::new).collect();
    try_map(items.len(), |i| f(i, &mut items[i].lock().unwrap_or_else(PoisonError::into_inner)))
}

/// As [`try_map`], of items that the function takes.
///
/// # Errors
/// One of those of the function.
pub fn try_map_of<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let own = |i: usize| items[i].lock().unwrap_or_else(PoisonError::into_inner).take();
    let all = try_map(items.len(), |i| own(i).map(&f).transpose())?;
    Ok(all.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_come_in_order() {
        for count in [0, 1, 7, 1000, 12_345] {
            let squares: Vec<usize> = (0..count).map(|i| i * i).collect();
            assert_eq!(map(count, |i| i * i), squares);
            assert_eq!(try_map(count, |i| Ok(i * i)).ok(), Some(squares.clone()));
            assert_eq!(try_map_of((0..count).collect(), |i| Ok(i * i)).ok(), Some(squares.clone()));
            let mut items: Vec<usize> = (0..count).collect();
            let old = try_map_mut(&mut items, |k, x| Ok((*x *= k, k).1));
            assert_eq!((old.ok(), items), (Some((0..count).collect()), squares));
        }
    }

    #[test]
    fn an_error_is_returned() {
        let one = |i: usize| if i == 500 { Err(Error::input("no")) } else { Ok(i) };
        assert_eq!(try_map(1000, one).map_err(|e| e.message().to_string()), Err("no".into()));
    }
}
