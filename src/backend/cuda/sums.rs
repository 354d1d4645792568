//! Sums over the blocks of a launch, each block's part by itself. They are added in a fixed order, so results are
//! reproducible.

use std::ffi::c_void;
use std::sync::Arc;

use super::card::{Card, CardBuffer};
use super::ledger::Ledger;
use super::{THREADS, arguments};
use crate::backend::Dots;
use crate::backend::exchange::PendingProducts;
use crate::error::{Error, Result};

/// `count` doubles for each of `blocks` blocks, added in a fixed order.
pub(super) fn reduced(card: &Arc<Card>, sums: &CardBuffer, blocks: u32, count: usize) -> Result<Vec<f64>> {
    card.answer(count, |out| reduce(card, sums, (blocks, 1), count, out))
}

/// Queues adding up `count` doubles for each of `blocks` blocks, in a fixed order, for each of `groups` groups of them;
/// they are written to an address with room for all groups that the GPU reaches.
pub(super) fn reduce(
    card: &Card,
    sums: &CardBuffer,
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

/// What `Re <w|v>` grows by where a kernel adds to w: a number of each block and lane, if somebody wants to know.
pub(super) struct DotGrowth {
    sums: Option<CardBuffer>,
    blocks: u32,
    lanes: usize,
}

impl DotGrowth {
    /// Room for the numbers of a launch of so many blocks; none unless `wanted`.
    pub fn new(card: &Arc<Card>, wanted: bool, blocks: u32, lanes: usize) -> Result<DotGrowth> {
        let room = || card.allocate(8 * blocks as usize * lanes);
        let sums = if wanted && lanes > 0 { Some(room()?) } else { None };
        Ok(DotGrowth { sums, blocks, lanes })
    }

    /// Where the kernel writes them; zero if nobody wants to know.
    pub fn address(&self) -> u64 {
        self.sums.as_ref().map_or(0, |sums| sums.address)
    }

    /// Queues adding them up, after the kernel, for each of so many columns.
    pub fn later(self, card: &Arc<Card>, ledger: &Ledger, columns: usize) -> Result<Option<PendingProducts>> {
        let DotGrowth { sums: Some(sums), blocks, lanes } = self else { return Ok(None) };
        let entry = ledger.enter(card, lanes, |out| reduce(card, &sums, (blocks, 1), lanes, out))?;
        // Real and imaginary parts are lanes of their own.
        let each = lanes / columns;
        Ok(Some(Box::new(move || {
            let wv = entry.read()?.chunks(each).map(|column| column.iter().sum()).collect();
            Ok(Dots { wv, ..Dots::default() })
        })))
    }
}
