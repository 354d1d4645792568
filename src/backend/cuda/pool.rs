//! Memory of a GPU that is kept for the next block of the same size.

use std::collections::BTreeMap;

use cust::sys;

/// Memory not in use, by size, and how much is in use.
#[derive(Default)]
pub(super) struct Pool {
    pub free: BTreeMap<usize, Vec<u64>>,
    pub kept: usize,
    pub used: usize,
}

impl Pool {
    /// Gives what is kept back to the driver.
    pub fn release(&mut self) {
        for address in std::mem::take(&mut self.free).into_values().flatten() {
            // SAFETY: the address came from `cuMemAlloc` and nobody holds it any more. A failure here leaves the driver
            // with the memory, which the next allocation will tell.
            let _ = unsafe { sys::cuMemFree_v2(address) };
        }
        self.kept = 0;
    }
}
