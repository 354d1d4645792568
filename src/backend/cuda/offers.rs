//! Memory to which neighbours write rows, and the information that they need for it. Before the rows there is a counter
//! for each neighbour of the rows that it has written.

use std::sync::{Arc, OnceLock};

use cust::sys;

use super::card::Card;
use super::driver::{self, SUCCESS, check};
use super::landings::MemoryHandle;
use crate::error::Result;
use crate::ranks;

/// Bytes before the rows of a landing, for each neighbour: its number has a line of the cache for itself.
pub(super) const LINE: usize = 128;

/// What a neighbour's number is raised by where its rows will not come: more passes than a run has.
pub(super) const NEVER: u32 = 1 << 30;

/// Least bytes of memory that others may write to: the driver shows other processes whole pages.
const LEAST: usize = 2 << 20;

/// Memory that neighbours write to, of a size that is a power of two.
pub(super) struct Landing {
    card: Arc<Card>,
    address: u64,
    bytes: usize,
}

impl Landing {
    /// So many bytes and more, of which the first `head` are zero. Neighbours may write as soon as they have an offer.
    pub fn new(card: &Arc<Card>, head: usize, bytes: usize) -> Result<Landing> {
        let bytes = bytes.max(head).max(LEAST).next_power_of_two();
        let address = match card.landings.take(bytes) {
            Some(address) => address,
            None => card.allocate_for_good(bytes)?,
        };
        let landing = Landing { card: card.clone(), address, bytes };
        // SAFETY: the landing holds more bytes than that.
        let status = unsafe { sys::cuMemsetD8Async(address, 0, head.max(4), card.stream()) };
        check("clearing memory of the GPU", status)?;
        card.synchronize("clearing memory of the GPU")?;
        Ok(landing)
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// What one neighbour must know: bytes from the beginning to its number, to its rows in the first half,
    /// and on to the second.
    pub fn offer(&self, number: u64, rows: u64, half: u64) -> Result<NeighbourOffer> {
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: a handle is written; the landing is an allocation of its own. Without a handle, neighbours in other
        // processes refuse the offer.
        let known = unsafe { sys::cuIpcGetMemHandle(&mut handle, self.address) } == SUCCESS;
        let handle: MemoryHandle =
            if known { bytemuck::cast(handle.reserved.map(|c| c as u8)) } else { MemoryHandle::default() };
        let ((machine, process), card) = (here(), self.card.place()?);
        let (context, landing) = (self.card.context() as u64, self.address);
        Ok(NeighbourOffer { machine, process, context, card, landing, number, rows, half, handle })
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        // All that neighbours wrote has been waited for: by the stream that whoever gets the memory next uses, too.
        self.card.landings.keep(self.bytes, self.address);
    }
}

/// What a neighbour must know to write here. It travels as words.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeighbourOffer {
    /// The machine since it was started, and the process.
    machine: u64,
    process: u64,
    context: u64,
    /// The GPU among those of the machine.
    card: u64,
    landing: u64,
    /// Bytes from the landing's beginning to the neighbour's number, to its rows in the first half,
    /// and on to the second.
    pub number: u64,
    pub rows: u64,
    pub half: u64,
    /// The landing for other processes.
    handle: MemoryHandle,
}

impl NeighbourOffer {
    pub fn written(&self) -> Vec<u8> {
        let NeighbourOffer { machine, process, context, card, landing, number, rows, half, handle } = *self;
        let mut words = vec![machine, process, context, card, landing, number, rows, half];
        words.extend(handle);
        bytemuck::cast_slice(&words).to_vec()
    }

    pub fn read(bytes: &[u8]) -> Option<NeighbourOffer> {
        let words = bytes.chunks_exact(8).map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
        let words: Vec<u64> = words.collect::<Option<_>>()?;
        let [machine, process, context, card, landing, number, rows, half, handle @ ..] = &words[..] else {
            return None;
        };
        Some(NeighbourOffer {
            machine: *machine,
            process: *process,
            context: *context,
            card: *card,
            landing: *landing,
            number: *number,
            rows: *rows,
            half: *half,
            handle: handle.try_into().ok()?,
        })
    }

    /// The address on a GPU of the landing that is offered; none if the GPU does not reach it.
    pub fn reached(&self, card: &Card) -> Result<Option<u64>> {
        let (machine, process) = here();
        if self.machine != machine {
            return Ok(None);
        }
        // Who waits for rows holds its GPU: another who shares it might never send them.
        if self.card == card.place()? {
            return Ok(None);
        }
        if self.process == process {
            return Ok(card.reaches(self.context as sys::CUcontext)?.then_some(self.landing));
        }
        if self.handle == MemoryHandle::default() {
            return Ok(None);
        }
        if let Some(address) = card.landings.opened(&self.handle) {
            return Ok(Some(address));
        }
        const WITH_PEER_ACCESS: u32 = 1;
        let bytes: [u8; 64] = bytemuck::cast(self.handle);
        let handle = sys::CUipcMemHandle { reserved: bytes.map(|b| b as std::ffi::c_char) };
        let mut address = 0;
        card.enter()?;
        // SAFETY: an address is written; the handle is one of a process of this machine, which keeps the memory.
        if unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, handle, WITH_PEER_ACCESS) } != SUCCESS {
            return Ok(None);
        }
        card.landings.remember(self.handle, address);
        Ok(Some(address))
    }
}

/// Queues telling a neighbour the pass, after what was copied there: `number` is the address of its count.
pub(super) fn tell(stream: sys::CUstream, number: u64, pass: u32) -> Result<()> {
    // SAFETY: the stream lives, says the caller, and the number lies in a neighbour's landing, which is never freed.
    let status = unsafe { driver::cuStreamWriteValue32_v2(stream, number, pass, 0) };
    check("telling another GPU", status)
}

/// What tells this machine and this process from others.
fn here() -> (u64, u64) {
    static HERE: OnceLock<(u64, u64)> = OnceLock::new();
    *HERE.get_or_init(|| {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let mut own = RandomState::new().build_hasher();
        own.write_u32(std::process::id());
        (ranks::machine(), own.finish())
    })
}
