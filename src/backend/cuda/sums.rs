//! Sums over the blocks of a launch, each block's part by itself: added in a fixed order, so that they come out the same.

use std::ffi::c_void;
use std::sync::Arc;

use super::card::{Buffer, Card};
use super::{THREADS, arguments};
use crate::error::{Error, Result};

/// `count` doubles for each of `blocks` blocks, added in a fixed order.
pub(super) fn reduced(card: &Arc<Card>, sums: &Buffer, blocks: u32, count: usize) -> Result<Vec<f64>> {
    card.answer(count, |out| reduce(card, sums, (blocks, 1), count, out))
}

/// Queues adding up `count` doubles for each of `blocks` blocks, in a fixed order, for each of `groups` groups of them; they
/// are written to an address with room for all groups that the GPU reaches.
pub(super) fn reduce(
    card: &Card,
    sums: &Buffer,
    (blocks, groups): (u32, u32),
    count: usize,
    out: u64,
) -> Result<()> {
    let each = u32::try_from(count).map_err(|_| Error::input(format!("{count} sums")))?;
    if sums.bytes < 8 * groups as usize * blocks as usize * count {
        return Err(Error::internal("fewer sums than are to be added"));
    }
    let arguments: [*mut c_void; 4] = arguments![blocks, each, sums.address, out];
    // SAFETY: the kernel's arguments; `sums` holds groups * blocks * count doubles, `out` groups * count.
    unsafe { card.launch("reduce", (groups, each.min(1024)), THREADS, &arguments) }
}
