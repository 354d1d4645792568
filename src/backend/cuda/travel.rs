//! Numbers that stay in main memory and are copied to the GPU in windows, one during the computation with the previous
//! one.

use std::ops::Range;
use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys;

use super::card::{Card, CardBuffer};
use super::driver::check;
use super::pinned::Event;
use super::staging::Pinned;
use crate::backend::exchange::HostMemory;
use crate::error::{Error, Result};

/// Numbers in main memory and the two places on the GPU where windows of them arrive in turn.
pub(super) struct TravellingWindows {
    host: Pinned,
    places: [CardBuffer; 2],
    stream: Stream,
    /// A window has come; what is computed with it is done.
    arrived: [Event; 2],
    done: [Event; 2],
}

impl TravellingWindows {
    /// `count` numbers, of which no window has more than `longest`.
    pub fn new(
        card: &Arc<Card>,
        numbers: impl Iterator<Item = f64>,
        count: usize,
        longest: usize,
    ) -> Result<TravellingWindows> {
        let mut host = Pinned::new(card, 8 * count)?;
        let to = host.bytes_mut().chunks_exact_mut(8);
        to.zip(numbers).for_each(|(to, x)| to.copy_from_slice(&x.to_ne_bytes()));
        let places = [card.allocate(8 * longest)?, card.allocate(8 * longest)?];
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None)
            .map_err(|e| Error::backend(format!("a stream for operators: {e}")))?;
        let (arrived, done) = ([Event::new()?, Event::new()?], [Event::new()?, Event::new()?]);
        // Whoever had the memory before may still be computing with it.
        done.iter().try_for_each(|event| event.record(card.stream()))?;
        Ok(TravellingWindows { host, places, stream, arrived, done })
    }

    /// Addresses of the places: window number k arrives at the one of its parity.
    pub fn places(&self) -> [u64; 2] {
        [self.places[0].address, self.places[1].address]
    }

    /// Sends a window on its way as soon as its place is free, and lets what is queued from now on wait for it.
    pub fn send(&self, card: &Card, window: usize, numbers: &Range<usize>) -> Result<()> {
        let (k, stream) = (window % 2, self.stream.as_inner());
        self.done[k].hold(stream)?;
        let from = &self.host.bytes()[8 * numbers.start..8 * numbers.end];
        if from.len() > self.places[k].bytes {
            return Err(Error::internal("a window longer than its place"));
        }
        // SAFETY: the place holds as many bytes; the host's memory does not change,
        // and is not freed before the copy is over.
        let status = unsafe {
            sys::cuMemcpyHtoDAsync_v2(self.places[k].address, from.as_ptr().cast(), from.len(), stream)
        };
        check("copying operators to the GPU", status)?;
        self.arrived[k].record(stream)?;
        self.arrived[k].hold(card.stream())
    }

    /// Frees the place of a window once what is queued now is done.
    pub fn done(&self, card: &Card, window: usize) -> Result<()> {
        self.done[window % 2].record(card.stream())
    }
}

impl Drop for TravellingWindows {
    fn drop(&mut self) {
        // Copies that are queued end before their memory goes. Where that fails, so has the computation.
        self.arrived.iter().for_each(|event| drop(event.wait()));
    }
}
