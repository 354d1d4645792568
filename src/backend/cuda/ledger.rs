//! Numbers that kernels leave on the GPU until somebody asks: many passes write to one page, and the page comes to the
//! host in one copy.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::card::{Card, CardBuffer};
use crate::error::{Error, Result};

/// Numbers of a page.
const PAGE: usize = 1 << 17;

/// A page that kernels write to.
struct LedgerPage {
    buffer: CardBuffer,
    card: Arc<Card>,
    used: Mutex<usize>,
    /// What stood there when the first number was asked for; nothing is written after that.
    read: OnceLock<Vec<f64>>,
}

/// The page that is written to now.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Option<Arc<LedgerPage>>>);

/// Numbers on a page.
pub(super) struct Booking {
    page: Arc<LedgerPage>,
    first: usize,
    count: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is guarded is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// Calls `queue` with the address of room for `count` numbers, which it must queue writing to.
    pub fn enter(
        &self,
        card: &Arc<Card>,
        count: usize,
        queue: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Booking> {
        let mut current = lock(&self.0);
        if let Some(page) = &*current {
            let mut used = lock(&page.used);
            if page.read.get().is_none() && 8 * (*used + count) <= page.buffer.bytes {
                let first = *used;
                queue(page.buffer.address + 8 * first as u64)?;
                *used += count;
                return Ok(Booking { page: page.clone(), first, count });
            }
        }
        let buffer = card.allocate(8 * count.max(PAGE))?;
        queue(buffer.address)?;
        let (used, read) = (Mutex::new(count), OnceLock::new());
        let page = Arc::new(LedgerPage { buffer, card: card.clone(), used, read });
        *current = Some(page.clone());
        Ok(Booking { page, first: 0, count })
    }
}

impl Booking {
    /// The numbers, once all that is queued is done.
    pub fn read(&self) -> Result<Vec<f64>> {
        let page = &self.page;
        let used = lock(&page.used);
        let numbers = match page.read.get() {
            Some(numbers) => numbers,
            None => {
                let numbers = page.card.download(&page.buffer, *used)?;
                page.read.get_or_init(|| numbers)
            }
        };
        let own = numbers.get(self.first..self.first + self.count);
        own.map(<[f64]>::to_vec).ok_or_else(|| Error::internal("products that were not written down"))
    }
}
