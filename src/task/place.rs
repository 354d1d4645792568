//! Where parallel loops outside the devices run: on the workers of the process, or on the thread that meets them.

use std::cell::Cell;

thread_local! {
    /// Whether this thread is a pool of its own.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// From now on, parallel loops of this thread run on it, where the process has a single worker: handing a loop to
/// another thread and waiting for that takes two switches of threads, on a busy machine milliseconds. Other threads
/// still find the worker, so that none waits for this one.
pub fn stay_in_place() {
    if rayon::current_thread_index().is_none() && rayon::current_num_threads() == 1 {
        settle();
    }
}

/// Makes this thread a pool of its own. It cannot leave that.
fn settle() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    ALONE.set(pool.map(std::mem::forget).is_ok());
}

/// Whether this thread is one of a pool's workers, for whose work others wait.
pub fn on_worker() -> bool {
    rayon::current_thread_index().is_some() && !ALONE.get()
}

#[cfg(test)]
mod tests {
    use std::thread::{self, current};

    use rayon::prelude::*;

    use super::*;

    #[test]
    fn loops_of_a_single_thread_run_where_they_are_met() {
        // Not on the thread of the test, which may be a worker or run other tests.
        let met = thread::spawn(|| {
            settle();
            let own = current().id();
            let here = (0..100).into_par_iter().all(|_| current().id() == own);
            // Another thread's loop does not wait for this one, which does nothing for the pool meanwhile.
            let other = thread::spawn(|| (0..100).into_par_iter().sum::<i32>()).join();
            (here, other.ok(), on_worker())
        });
        assert_eq!(met.join().ok(), Some((true, Some(4950), false)));
    }
}
