//! Memory of a GPU that other GPUs write rows to. It is kept until the program ends,
//! since other processes may have it mapped.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A handle of the driver for memory of another process; zeros where there is none.
pub(super) type MemoryHandle = [u64; 8];

/// What is not in use, by size, and memory of other processes that was opened, by its handle.
#[derive(Default)]
pub(super) struct Landings {
    free: Mutex<BTreeMap<usize, Vec<u64>>>,
    opened: Mutex<HashMap<MemoryHandle, u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded is changed in single steps.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Landings {
    /// The address of memory of that size, if some is free.
    pub fn take(&self, bytes: usize) -> Option<u64> {
        lock(&self.free).get_mut(&bytes).and_then(Vec::pop)
    }

    /// Keeps memory for the next.
    pub fn keep(&self, bytes: usize, address: u64) {
        lock(&self.free).entry(bytes).or_default().push(address);
    }

    /// Where memory of another process was opened before.
    pub fn opened(&self, handle: &MemoryHandle) -> Option<u64> {
        lock(&self.opened).get(handle).copied()
    }

    pub fn remember(&self, handle: MemoryHandle, address: u64) {
        lock(&self.opened).insert(handle, address);
    }
}
