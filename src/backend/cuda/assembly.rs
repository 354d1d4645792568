//! Collects rows on all GPUs, of which each GPU has a range. The copy engines write each range to the memory of the
//! other GPUs, then a counter of passes, for which a kernel waits. The host does not wait. Landings have two halves,
//! used in turn; `passage.rs` gives the reason.

use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys;

use super::card::{Card, CardBuffer};
use super::driver::{check, failure};
use super::offers::{LINE, Landing, NeighbourOffer, tell};
use super::pinned::Event;
use super::{Cuda, DeviceBlock, arguments, buffer};
use crate::backend::exchange::{Assembly, Ranges, VectorShape};
use crate::backend::{BlockVector, Rows, Storage};
use crate::error::{Error, Result};

/// Threads of the block that waits for the numbers of the others.
pub(super) const WAITING: u32 = 32;

/// Where this GPU's rows go at one of the others: in even passes and in odd ones, the number there,
/// and the stream that copies.
struct OtherCard {
    to: [u64; 2],
    number: u64,
    copies: Stream,
    out: Event,
}

/// A GPU's end of the exchange.
pub(super) struct CudaAssembly {
    // Streams and events go before the last that holds the GPU.
    others: Vec<OtherCard>,
    ready: Event,
    landing: Landing,
    gpu: Cuda,
    shape: VectorShape,
    ranges: Ranges,
    /// Bytes before the rows, and of all rows.
    head: usize,
    half: usize,
    offers: Vec<NeighbourOffer>,
    pass: u32,
}

pub(super) fn assembly(gpu: &Cuda, ranges: &Ranges, shape: VectorShape) -> Result<Box<dyn Assembly>> {
    let card: &Arc<Card> = &gpu.card;
    card.enter()?;
    let row = shape.bytes(1);
    let head = (LINE * ranges.parts()).next_multiple_of(256);
    let half = (row * ranges.rows()).next_multiple_of(256);
    let landing = Landing::new(card, head, head + 2 * half)?;
    let offer = |part: usize| {
        landing.offer((LINE * part) as u64, (head + row * ranges.of(part).start) as u64, half as u64)
    };
    let offers = ranges.others().map(offer).collect::<Result<_>>()?;
    let (gpu, ranges, ready) = (gpu.clone(), ranges.clone(), Event::new()?);
    Ok(Box::new(CudaAssembly {
        gpu,
        shape,
        ranges,
        landing,
        head,
        half,
        offers,
        others: Vec::new(),
        ready,
        pass: 0,
    }))
}

impl Assembly for CudaAssembly {
    fn offers(&self) -> Vec<Vec<u8>> {
        self.offers.iter().map(NeighbourOffer::written).collect()
    }

    fn accept(&mut self, offers: &[Vec<u8>]) -> Result<bool> {
        let card = &self.gpu.card;
        card.enter()?;
        for offer in offers {
            let Some(offer) = NeighbourOffer::read(offer) else { return Ok(false) };
            let Some(landing) = offer.reached(card)? else { return Ok(false) };
            let rows = landing + offer.rows;
            let copies = Stream::new(StreamFlags::NON_BLOCKING, None)
                .map_err(|e| failure("a stream for copies", e))?;
            let (number, out) = (landing + offer.number, Event::new()?);
            self.others.push(OtherCard { to: [rows, rows + offer.half], number, copies, out });
        }
        Ok(self.others.len() + 1 == self.ranges.parts())
    }

    fn send(&mut self, own: &BlockVector) -> Result<()> {
        if VectorShape::of(own) != self.shape || own.rows.local != self.ranges.own().len() {
            return Err(Error::internal("a vector of another kind than the exchange is for"));
        }
        let card = &self.gpu.card;
        card.check_interrupt()?;
        card.enter()?;
        self.pass = self.pass.wrapping_add(1);
        let (main, x) = (card.stream(), buffer(own)?.address);
        let here = self.here();
        let (first, bytes) = (self.shape.bytes(self.ranges.own().start), self.shape.bytes(own.rows.local));
        let copy = |to: u64, stream: sys::CUstream| {
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: the vector holds as many bytes, and each landing has room for them where this part's rows belong;
            // the stream waits for the vector, and who changes that next for the copies.
            check("rows for all GPUs", unsafe { sys::cuMemcpyDtoDAsync_v2(to, x, bytes, stream) })
        };
        self.ready.record(main)?;
        for other in &self.others {
            let stream = other.copies.as_inner();
            self.ready.hold(stream)?;
            copy(other.to[(self.pass % 2) as usize], stream)?;
            tell(stream, other.number, self.pass)?;
            other.out.record(stream)?;
        }
        copy(here + first as u64, main)?;
        self.others.iter().try_for_each(|other| other.out.hold(main))
    }

    fn all(&mut self) -> Result<BlockVector> {
        let (card, here) = (&self.gpu.card, self.here());
        let (parts, own_part) = (self.ranges.parts() as u32, self.ranges.part() as u32);
        let (landing, pass) = (self.landing.address(), self.pass);
        let arguments = arguments![parts, own_part, landing, pass];
        // SAFETY: the kernel's arguments; the landing begins with a number for each part.
        unsafe { card.launch("await_parts", (1, 1), WAITING, &arguments)? };
        let rows = Rows::all(self.ranges.rows());
        let numbers = CardBuffer::lent(card, here, self.half);
        let VectorShape { dtype, columns, .. } = self.shape;
        Ok(BlockVector { dtype, rows, columns, storage: Storage::Cuda(DeviceBlock(Arc::new(numbers))) })
    }
}

impl CudaAssembly {
    /// Where the rows of this pass come together.
    fn here(&self) -> u64 {
        self.landing.address() + (self.head + (self.pass % 2) as usize * self.half) as u64
    }
}

impl Drop for CudaAssembly {
    fn drop(&mut self) {
        // What is being sent must not go; if the driver has failed, nothing is being sent any more.
        let _ = self.gpu.card.enter();
        for other in &self.others {
            let _ = other.copies.synchronize();
        }
    }
}
