//! A small memory reserve for the report of a refusal when the system has no memory left. Blocks are taken one after
//! the other, and reused when all of them are free.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of it. Pages that nobody writes to take addresses only.
const SIZE: usize = 4 << 20;

#[repr(align(4096))]
struct Reserve(UnsafeCell<[u8; SIZE]>);

// SAFETY: only blocks that `take` hands out are touched, each by its owner.
unsafe impl Sync for Reserve {}

static BYTES: Reserve = Reserve(UnsafeCell::new([0; SIZE]));

/// How many blocks are out, in the upper half, and where the next one may begin.
static STATE: AtomicU64 = AtomicU64::new(0);

fn start() -> usize {
    BYTES.0.get().addr()
}

/// A block, or a null pointer where no room is left.
pub(super) fn take(layout: Layout) -> *mut u8 {
    let mut found = 0;
    let taken = STATE.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |state| {
        let (blocks, next) = (state >> 32, (state & u64::from(u32::MAX)) as usize);
        found = (start() + next).checked_next_multiple_of(layout.align())? - start();
        let end = found.checked_add(layout.size()).filter(|end| *end <= SIZE)?;
        Some(((blocks + 1) << 32) | end as u64)
    });
    match taken {
        Ok(_) => BYTES.0.get().cast::<u8>().wrapping_add(found),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Whether a block is one of these.
pub(super) fn owns(block: *const u8) -> bool {
    block.addr().wrapping_sub(start()) < SIZE
}

/// Takes a block back.
pub(super) fn give_back() {
    let left = |state: u64| if state >> 32 == 1 { Some(0) } else { Some(state - (1 << 32)) };
    // It never refuses.
    let _ = STATE.fetch_update(Ordering::AcqRel, Ordering::Relaxed, left);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_apart_and_come_back() {
        let layout = Layout::from_size_align(100, 64).unwrap();
        let blocks: Vec<*mut u8> = (0..3).map(|_| take(layout)).collect();
        for pair in blocks.windows(2) {
            assert!(
                pair.iter().all(|b| owns(*b) && b.addr() % 64 == 0) && pair[1].addr() - pair[0].addr() >= 100
            );
        }
        assert!(take(Layout::from_size_align(SIZE, 1).unwrap()).is_null(), "no room is left for all of it");
        let elsewhere = Box::new(1u8);
        assert!(!owns(&*elsewhere));
        blocks.iter().for_each(|_| give_back());
        assert_eq!(take(layout), blocks[0], "from the begin again");
        give_back();
    }
}
