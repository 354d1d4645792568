//! Page-locked memory of the host, which copies at full speed and in the background, and the events that tell when it
//! may be touched again.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cust::sys;

use super::driver::check;
use crate::backend::exchange::free_queueing_turn;
use crate::error::Result;

/// Copies of at most this size go through the small slots.
const SMALL: usize = 64 << 10;

/// Slots and their sizes: for the arguments of kernels, and for pieces of large blocks.
const SMALL_SLOTS: usize = 32;
const LARGE: usize = 4 << 20;
const LARGE_SLOTS: usize = 4;

/// Memory that is page-locked for every GPU.
pub(super) struct Locked {
    first: *mut u8,
    bytes: usize,
}

// SAFETY: the memory belongs to whoever has this, on whatever thread.
unsafe impl Send for Locked {}

impl Locked {
    /// So many bytes, all zero, on the thread's GPU.
    pub fn new(bytes: usize) -> Result<Locked> {
        const PORTABLE: u32 = 1;
        let mut first = std::ptr::null_mut();
        // SAFETY: an address is written.
        let status = unsafe { sys::cuMemHostAlloc(&mut first, bytes.max(1), PORTABLE) };
        check("page-locked memory", status)?;
        // SAFETY: so many bytes were allocated just now.
        unsafe { first.cast::<u8>().write_bytes(0, bytes) };
        Ok(Locked { first: first.cast(), bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes were allocated and written by `new`, and are changed only through `self`.
        unsafe { std::slice::from_raw_parts(self.first, self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.bytes) }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: the memory came from `cuMemHostAlloc`; who copies asynchronously waits before he drops it. A failure
        // leaves it with the driver.
        let _ = unsafe { sys::cuMemFreeHost(self.first.cast()) };
    }
}

/// Memory that nobody uses any more and that cannot be freed while another thread queues passes: the driver would wait
/// for a GPU with locks that queueing needs.
#[derive(Default)]
pub(super) struct Unfreed(Mutex<Vec<Locked>>);

impl Unfreed {
    /// Frees it, and what waited before, if that can be now; the next one that comes frees it otherwise.
    pub fn add(&self, memory: Locked) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(memory);
        if let Some(_turn) = free_queueing_turn() {
            all.clear();
        }
    }
}

/// A point in a stream's work.
pub(super) struct Event(sys::CUevent);

// SAFETY: the driver takes events from any thread.
unsafe impl Send for Event {}

impl Event {
    /// An event that has happened already.
    pub fn new() -> Result<Event> {
        const DISABLE_TIMING: u32 = 2;
        let mut event = std::ptr::null_mut();
        // SAFETY: an event is written.
        check("an event", unsafe { sys::cuEventCreate(&mut event, DISABLE_TIMING) })?;
        Ok(Event(event))
    }

    /// Happens when all that is queued on the stream is done.
    pub fn record(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: event and stream live.
        check("an event", unsafe { sys::cuEventRecord(self.0, stream) })
    }

    /// Waits until it has happened.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the event lives.
        check("a computation on the GPU", unsafe { sys::cuEventSynchronize(self.0) })
    }

    /// Whether it has happened.
    pub fn happened(&self) -> Result<bool> {
        // SAFETY: the event lives.
        match unsafe { sys::cuEventQuery(self.0) } {
            sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(false),
            status => check("a computation on the GPU", status).map(|()| true),
        }
    }

    /// Lets a stream wait for it.
    pub fn hold(&self, stream: sys::CUstream) -> Result<()> {
        // SAFETY: event and stream live.
        check("an event", unsafe { sys::cuStreamWaitEvent(stream, self.0, 0) })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; what waits for it goes on as before.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// Slots of page-locked memory, used one after the other.
struct Ring {
    slots: Vec<(Locked, Event)>,
    next: usize,
}

impl Ring {
    fn new(slots: usize, bytes: usize) -> Result<Ring> {
        let slots = (0..slots).map(|_| Ok((Locked::new(bytes)?, Event::new()?))).collect::<Result<_>>()?;
        Ok(Ring { slots, next: 0 })
    }

    /// The slot that was used longest ago, once its copy is over.
    fn turn(&mut self) -> Result<usize> {
        let at = self.next;
        self.next = (at + 1) % self.slots.len();
        self.slots[at].1.wait()?;
        Ok(at)
    }

    /// Copies the oldest piece that travels to where it belongs.
    fn empty(&self, under_way: &mut VecDeque<(usize, &mut [u8])>) -> Result<()> {
        let Some((at, piece)) = under_way.pop_front() else { return Ok(()) };
        let (slot, event) = &self.slots[at];
        event.wait()?;
        piece.copy_from_slice(&slot.bytes()[..piece.len()]);
        Ok(())
    }
}

/// Copies between the memory of the host and that of the GPU, through page-locked slots made when first needed.
#[derive(Default)]
pub(super) struct PinnedCopies {
    small: Option<Ring>,
    large: Option<Ring>,
    answers: Option<Locked>,
}

/// The ring for copies of a size.
fn ring(copies: &mut PinnedCopies, bytes: usize) -> Result<(&mut Ring, usize)> {
    let (ring, slots, size) = match bytes {
        ..=SMALL => (&mut copies.small, SMALL_SLOTS, SMALL),
        _ => (&mut copies.large, LARGE_SLOTS, LARGE),
    };
    let made = match ring.take() {
        Some(made) => made,
        None => Ring::new(slots, size)?,
    };
    Ok((ring.insert(made), size))
}

impl PinnedCopies {
    /// Queues a copy to the GPU; the host's memory may change as soon as this returns.
    pub fn up(&mut self, stream: sys::CUstream, from: &[u8], to: u64) -> Result<()> {
        let (ring, size) = ring(self, from.len())?;
        for (piece, to) in from.chunks(size).zip((to..).step_by(size)) {
            let at = ring.turn()?;
            let (slot, event) = &mut ring.slots[at];
            slot.bytes_mut()[..piece.len()].copy_from_slice(piece);
            // SAFETY: the buffer holds as many bytes from `to` on, says the caller;
            // the slot is not touched before its event.
            let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, slot.first.cast(), piece.len(), stream) };
            check("copying to the GPU", status)?;
            event.record(stream)?;
        }
        Ok(())
    }

    /// So many numbers that the GPU itself writes to page-locked memory, whose address `work` is given: a copy of the
    /// few that a computation waits for would take as long as they do. None if they are too many.
    pub fn answer(
        &mut self,
        stream: sys::CUstream,
        count: usize,
        work: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Option<Vec<f64>>> {
        if 8 * count > SMALL {
            return Ok(None);
        }
        let memory = match self.answers.take() {
            Some(memory) => memory,
            None => Locked::new(SMALL)?,
        };
        let memory = self.answers.insert(memory);
        work(memory.first as u64)?;
        // SAFETY: the stream lives; when it is done the GPU writes no more.
        check("a computation on the GPU", unsafe { sys::cuStreamSynchronize(stream) })?;
        let numbers = memory.bytes()[..8 * count].chunks_exact(8);
        Ok(Some(numbers.map(|x| f64::from_ne_bytes(std::array::from_fn(|k| x[k]))).collect()))
    }

    /// Copies from the GPU, after all that is queued.
    pub fn down(&mut self, stream: sys::CUstream, from: u64, to: &mut [u8]) -> Result<()> {
        let (ring, size) = ring(self, to.len())?;
        // One piece travels while those before it are copied to where they belong.
        let mut under_way = VecDeque::new();
        for (piece, from) in to.chunks_mut(size).zip((from..).step_by(size)) {
            if under_way.len() == ring.slots.len() {
                ring.empty(&mut under_way)?;
            }
            let at = ring.turn()?;
            let (slot, event) = &ring.slots[at];
            // SAFETY: the buffer holds as many bytes from `from` on, says the caller; the slot is read after its event.
            let status = unsafe { sys::cuMemcpyDtoHAsync_v2(slot.first.cast(), from, piece.len(), stream) };
            check("copying from the GPU", status)?;
            event.record(stream)?;
            under_way.push_back((at, piece));
        }
        while !under_way.is_empty() {
            ring.empty(&mut under_way)?;
        }
        Ok(())
    }
}
