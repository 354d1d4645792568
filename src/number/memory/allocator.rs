//! The program's allocator: the system's, with a count of what is taken. It refuses requests that do not fit. A system
//! that promises more memory than it has would kill the program without a message when the memory is used; the refusal
//! comes earlier.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use super::emergency;
use super::limits::{self, LIVE};

/// Bytes that a thread takes before it adds them to the common count.
const BATCH: i64 = 256 << 10;

/// Requests of at least this size must leave the whole reserve. Smaller ones may use three quarters of it, since
/// error reports need some memory.
const LARGE: usize = 1 << 20;

/// What small requests may take beyond that after a refusal: telling of it allocates, and a refusal there would be told
/// of in turn, until the stack ends.
const GRACE: i64 = 32 << 20;

/// Bytes from which on a block is wanted in large pages: the first touch of small ones takes longer than what is done
/// with them.
const PAGED: usize = 8 << 20;

/// More than any machine has: sums of such numbers would overflow.
const ABSURD: usize = 1 << 46;

/// Bytes that may be allocated before the system is asked again.
static ROOM: AtomicI64 = AtomicI64::new(0);

/// The state of one thread.
struct ThreadState {
    /// Bytes taken less bytes given back that are not yet in `LIVE`.
    pending: Cell<i64>,
    /// The size of a request that was refused just now, else 0.
    refused: Cell<usize>,
    /// What is left of the grace.
    grace: Cell<i64>,
    /// Whether a large request was given grace since refusals were forgotten. Work may go on after those.
    graced: Cell<bool>,
}

impl ThreadState {
    fn refuse(&self, bytes: usize) {
        self.refused.set(bytes.max(1));
        if bytes < LARGE || !self.graced.replace(true) {
            self.grace.set(GRACE);
        }
    }
}

thread_local! {
    static HERE: ThreadState = const {
        ThreadState {
            pending: Cell::new(0),
            refused: Cell::new(0),
            grace: Cell::new(0),
            graced: Cell::new(false),
        }
    };
}

/// The allocator. A refusal is a null pointer, which `try_reserve` turns into an error and everything else into an
/// abort: a program whose `abort` calls [`unwind_if_refused`] gets a panic with [`Refused`] instead.
pub struct WatchedAllocator;

/// The payload of a panic after a refused allocation.
#[derive(Debug, Clone, Copy)]
pub struct Refused {
    /// How many bytes were asked for.
    pub bytes: usize,
}

/// Panics if the last allocation of this thread was refused. The standard library's own hook for failed allocations is
/// not stable (`alloc_error_hook`); its handler of them ends in `abort`, which unwinds as well as the hook would.
pub fn unwind_if_refused() {
    let bytes = HERE.with(|here| here.refused.take());
    if bytes > 0 {
        std::panic::resume_unwind(Box::new(Refused { bytes }));
    }
}

/// Forgets a refusal that was handled, as by `try_reserve`; called before work that may end in any way. Successful
/// allocations do not forget it: the report of a refusal makes some before it ends in `abort`.
pub fn forget_refusal() {
    HERE.with(|here| {
        here.refused.set(0);
        here.grace.set(0);
        here.graced.set(false);
    });
}

/// Counts an allocation; false if there is no room for it.
fn admit(bytes: usize) -> bool {
    HERE.with(|here| {
        if bytes >= ABSURD {
            here.refuse(bytes);
            return false;
        }
        let taken = here.pending.get() + bytes as i64;
        here.pending.set(taken);
        taken < BATCH || settle(here, bytes)
    })
}

#[cold]
#[inline(never)]
fn settle(here: &ThreadState, bytes: usize) -> bool {
    let taken = here.pending.replace(0);
    LIVE.fetch_add(taken, Ordering::Relaxed);
    if ROOM.fetch_sub(taken, Ordering::Relaxed) >= taken {
        return true;
    }
    // These bytes count as promised already, but have no addresses yet.
    let Some((free, reserve)) = limits::known(bytes as u64) else { return true };
    let kept = if bytes >= LARGE { reserve } else { reserve / 4 };
    if free > kept {
        ROOM.store(((free - kept) / 4) as i64, Ordering::Relaxed);
        return true;
    }
    let left = here.grace.get() - taken;
    if bytes < LARGE && left >= 0 {
        here.grace.set(left);
        return true;
    }
    LIVE.fetch_sub(bytes as i64, Ordering::Relaxed);
    here.refuse(bytes);
    false
}

fn release(bytes: usize) {
    HERE.with(|here| {
        let taken = here.pending.get() - bytes as i64;
        if taken > -BATCH {
            here.pending.set(taken);
        } else {
            here.pending.set(0);
            LIVE.fetch_add(taken, Ordering::Relaxed);
        }
    });
}

/// Where the system has no memory even for the report of a refusal: a block of what is kept for that.
fn spare(layout: Layout) -> *mut u8 {
    let graced = HERE.with(|here| layout.size() < LARGE && here.grace.get() > 0);
    if graced { emergency::take(layout) } else { std::ptr::null_mut() }
}

/// The block that the system gave, or a spare one, or what was counted for it undone.
fn counted(block: *mut u8, layout: Layout) -> *mut u8 {
    let block = if block.is_null() { spare(layout) } else { block };
    if block.is_null() {
        release(layout.size());
        HERE.with(|here| here.refuse(layout.size()));
    }
    block
}

/// Asks the system for large pages; it may have none.
fn in_large_pages(block: *mut u8, layout: Layout) -> *mut u8 {
    #[cfg(target_os = "linux")]
    if !block.is_null() && layout.size() >= PAGED {
        const PAGE: usize = 4096;
        let skipped = block.align_offset(PAGE);
        let rest = (layout.size() - skipped) / PAGE * PAGE;
        // SAFETY: the pages lie within the block, whose numbers the advice leaves as they are.
        // What is refused stays small.
        let _ = unsafe { libc::madvise(block.add(skipped).cast(), rest, libc::MADV_HUGEPAGE) };
    }
    block
}

// SAFETY: all blocks are the system allocator's or `emergency`'s, which are told apart by their addresses; the counting
// does not touch them and does not allocate.
unsafe impl GlobalAlloc for WatchedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !admit(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises about the layout.
        counted(in_large_pages(unsafe { System.alloc(layout) }, layout), layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !admit(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        let block = counted(in_large_pages(unsafe { System.alloc_zeroed(layout) }, layout), layout);
        if emergency::owns(block) {
            // SAFETY: the block is of this size, and nobody else's.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        release(layout.size());
        if emergency::owns(block) {
            return emergency::give_back();
        }
        // SAFETY: the block came from the system allocator with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = size.saturating_sub(layout.size());
        if more > 0 && !admit(more) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises about alignment and size.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let spared = emergency::owns(block);
        let mut moved = match spared {
            // SAFETY: the caller's promises.
            true => unsafe { System.alloc(wanted) },
            // SAFETY: the block came from the system allocator with this layout.
            false => unsafe { System.realloc(block, layout, size) },
        };
        if !moved.is_null() && !spared {
            release(layout.size().saturating_sub(size));
            return moved;
        }
        if moved.is_null() {
            moved = spare(wanted);
        }
        if moved.is_null() {
            release(more);
            HERE.with(|here| here.refuse(size));
            return moved;
        }
        // SAFETY: both blocks have so many bytes, and they lie apart.
        unsafe { std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size)) };
        if spared {
            emergency::give_back();
        } else {
            // SAFETY: the block came from the system allocator with this layout.
            unsafe { System.dealloc(block, layout) };
        }
        release(layout.size().saturating_sub(size));
        moved
    }
}
