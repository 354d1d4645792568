//! Threads for scripts.

use std::io::Result;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::number::memory;

/// Runs `work` on a thread of this name with a deep stack. Values of scripts may be nested some hundred thousand deep,
/// and are compared and dropped by recursive functions. Only the part of the stack that is used takes memory.
///
/// # Errors
/// When the system starts no thread, even with a smaller stack. Then nothing has run.
pub fn on_a_deep_stack<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    const LEAST: usize = 16 << 20;
    let room = usize::try_from(memory::available() / 8).unwrap_or(usize::MAX);
    let mut size = room.clamp(LEAST, 4 << 30);
    // The new thread takes it. If none starts, it stays there.
    let work = Arc::new(Mutex::new(Some(work)));
    loop {
        let waiting = work.clone();
        let begin = move || {
            let taken = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            taken.map(|work| work())
        };
        let started = Builder::new().name(name.into()).stack_size(size).spawn(move || match begin() {
            Some(result) => result,
            None => unreachable!("work is taken once"),
        });
        match started {
            Err(_) if size / 2 >= LEAST => size /= 2,
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_calls_fit() {
        fn deep(n: usize) -> usize {
            let room = std::hint::black_box([n; 128]);
            if n == 0 { 0 } else { 1 + deep(room[7] - 1) }
        }
        // Ten thousand calls of a kilobyte are more than the usual thread has.
        assert_eq!(on_a_deep_stack("deep", || deep(10_000)).unwrap().join().unwrap(), 10_000);
    }
}
