//! What exchanges between GPUs that reach each other's memory have in common, in one process or in several of one
//! machine: outgoing rows are written directly to the neighbour's memory, then a counter of passes there. The
//! neighbour's boundary waits for this counter. The host does not wait.
//!
//! Incoming rows land in two halves in turn. No rows are overwritten while they are read: a GPU sends pass `k` after it
//! has added the rows of pass `k - 1`. A neighbour sent those after it had added the rows of pass `k - 2`, the last
//! ones in that half. So neighbours write to one another in every pass, even if one of them reads nothing.

use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys;

use super::card::{Card, CardBuffer};
use super::driver::check;
use super::offers::{LINE, Landing, NEVER, NeighbourOffer, tell};
use super::pinned::Event;
use crate::error::{Error, Result};

/// Most bytes that kernels write to neighbours; copy engines take more.
const SHORT: usize = 1 << 20;

/// Bytes from which copy engines take what stands together in a vector from there.
const STRAIGHT: usize = 1 << 19;

/// Bytes that stand together in a vector: where they begin, and how many.
pub(super) type ByteRun = (u64, usize);

/// What a copy engine takes: an address, or bytes from the beginning of the vector on.
#[derive(Clone, Copy)]
enum CopySource {
    Address(u64),
    Vector(u64),
}

/// What leaves for one neighbour where copy engines take it, and where it goes in even passes and in odd ones.
struct Transfer {
    from: CopySource,
    bytes: usize,
    to: [u64; 2],
}

/// What kernels write for copy engines to carry on: where it begins for each neighbour, and what they carry.
struct StagedRows {
    places: Vec<u64>,
    copies: Vec<Vec<Transfer>>,
    _leaving: CardBuffer,
}

/// What neighbours have offered.
struct NeighbourOffers {
    /// Where each of them reads, in even passes and in odd ones.
    landings: [Vec<u64>; 2],
    /// What counts passes at each of them.
    numbers: Vec<u64>,
    /// Where copies begin, if there are any.
    staged: Option<StagedRows>,
}

/// A GPU's way to its neighbours.
pub(super) struct Passage {
    card: Arc<Card>,
    offers: Vec<NeighbourOffer>,
    landing: Landing,
    /// Bytes before what comes, and of each half of it.
    pub head: usize,
    pub half: usize,
    /// Bytes that leave for each neighbour, and what of it copy engines take from the vector.
    sends: Vec<usize>,
    straight: Vec<Option<Vec<ByteRun>>>,
    ways: Option<NeighbourOffers>,
    copies: Stream,
    ready: Event,
    out: Event,
    /// Passes that were begun.
    pub pass: u32,
}

impl Passage {
    /// For so many bytes to each neighbour and from each.
    pub fn new(card: &Arc<Card>, sends: Vec<usize>, receives: &[usize]) -> Result<Passage> {
        card.enter()?;
        let head = (LINE * receives.len()).next_multiple_of(256);
        let half = receives.iter().sum::<usize>().next_multiple_of(256);
        let landing = Landing::new(card, head, head + 2 * half)?;
        let mut before = head;
        let offer = |(n, bytes): (usize, &usize)| {
            let first = before;
            before += bytes;
            landing.offer((LINE * n) as u64, first as u64, half as u64)
        };
        let offers = receives.iter().enumerate().map(offer).collect::<Result<_>>()?;
        let first = Some(i32::MIN);
        let copies = Stream::new(StreamFlags::NON_BLOCKING, first)
            .map_err(|e| Error::backend(format!("a second stream: {e}")))?;
        let (ready, out) = (Event::new()?, Event::new()?);
        Ok(Passage {
            card: card.clone(),
            offers,
            landing,
            head,
            half,
            straight: sends.iter().map(|_| None).collect(),
            sends,
            ways: None,
            copies,
            ready,
            out,
            pass: 0,
        })
    }

    /// All that leaves for some neighbours stands together in a few runs of the vector: where it is much,
    /// nothing gathers it.
    pub fn leave_from_vector(&mut self, runs: Vec<Option<Vec<ByteRun>>>) {
        if self.sends.iter().sum::<usize>() > STRAIGHT {
            self.straight = runs;
        }
    }

    /// Whether nothing leaves.
    pub fn sends_nothing(&self) -> bool {
        self.sends.iter().all(|bytes| *bytes == 0)
    }

    /// Whether copy engines take from the vector what leaves for a neighbour.
    pub fn is_straight(&self, neighbour: usize) -> bool {
        self.straight[neighbour].is_some()
    }

    /// What each neighbour must know to write here.
    pub fn offers(&self) -> Vec<Vec<u8>> {
        self.offers.iter().map(NeighbourOffer::written).collect()
    }

    /// Takes the neighbours' offers; false if one of them cannot be reached.
    pub fn accept(&mut self, offers: &[Vec<u8>]) -> Result<bool> {
        let (mut even, mut odd, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for offer in offers {
            let Some(offer) = NeighbourOffer::read(offer) else { return Ok(false) };
            let Some(landing) = offer.reached(&self.card)? else { return Ok(false) };
            numbers.push(landing + offer.number);
            even.push(landing + offer.rows);
            odd.push(landing + offer.rows + offer.half);
        }
        let mut staged = None;
        if !self.is_short() {
            let gathered =
                |(runs, bytes): (&Option<Vec<ByteRun>>, &usize)| if runs.is_some() { 0 } else { *bytes };
            let leaving = self.card.allocate(self.straight.iter().zip(&self.sends).map(gathered).sum())?;
            let (mut copies, mut places, mut from) = (Vec::new(), Vec::new(), leaving.address);
            for ((&bytes, runs), to) in self.sends.iter().zip(&self.straight).zip(even.iter().zip(&odd)) {
                places.push(from);
                let mut way = Vec::new();
                match runs {
                    Some(runs) => {
                        let mut before = 0;
                        for &(at, bytes) in runs {
                            way.push(Transfer {
                                from: CopySource::Vector(at),
                                bytes,
                                to: [to.0 + before, to.1 + before],
                            });
                            before += bytes as u64;
                        }
                    }
                    None => {
                        way.push(Transfer { from: CopySource::Address(from), bytes, to: [*to.0, *to.1] });
                        from += bytes as u64;
                    }
                }
                copies.push(way);
            }
            staged = Some(StagedRows { places, copies, _leaving: leaving });
        }
        self.ways = Some(NeighbourOffers { landings: [even, odd], numbers, staged });
        Ok(true)
    }

    /// Whether so little leaves that kernels write it to the neighbours.
    pub fn is_short(&self) -> bool {
        self.sends.iter().sum::<usize>() <= SHORT && self.straight.iter().all(Option::is_none)
    }

    fn ways(&self) -> Result<&NeighbourOffers> {
        self.ways.as_ref().ok_or_else(|| Error::internal("neighbours that made no offer"))
    }

    /// Where kernels write what leaves for each neighbour, in odd passes or in even ones: to where it is read, or to
    /// where copies begin.
    pub fn places(&self, odd: bool) -> Result<&[u64]> {
        match &self.ways()?.staged {
            Some(staged) => Ok(&staged.places),
            None => self.landings(odd),
        }
    }

    /// Where each neighbour reads what has come to it.
    pub fn landings(&self, odd: bool) -> Result<&[u64]> {
        Ok(&self.ways()?.landings[usize::from(odd)])
    }

    /// What counts passes at each neighbour.
    pub fn numbers(&self) -> Result<&[u64]> {
        Ok(&self.ways()?.numbers)
    }

    /// Where numbers tell that something has come.
    pub fn landing(&self) -> u64 {
        self.landing.address()
    }

    /// Where what comes in this pass stands.
    pub fn came(&self) -> u64 {
        self.landing() + (self.head + (self.pass % 2) as usize * self.half) as u64
    }

    /// The stream on which things leave, beside the work on the other.
    pub fn stream(&self) -> sys::CUstream {
        self.copies.as_inner()
    }

    /// What leaves from here on waits for all that is queued now.
    pub fn follow(&self) -> Result<()> {
        self.ready.record(self.card.stream())?;
        self.ready.hold(self.stream())
    }

    /// Queues copying what leaves, if kernels have not written it to the neighbours, and telling these the pass. `x` is
    /// where the vector begins.
    pub fn hand_over(&self, x: u64) -> Result<()> {
        let ways = self.ways()?;
        for (n, &number) in ways.numbers.iter().enumerate() {
            let copies = ways.staged.as_ref().and_then(|staged| staged.copies.get(n));
            for way in copies.into_iter().flatten() {
                let from = match way.from {
                    CopySource::Address(from) => from,
                    CopySource::Vector(at) => x + at,
                };
                let to = way.to[(self.pass % 2) as usize];
                // SAFETY: both sides hold as many bytes; what leaves is written again after `gone`.
                let status = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, way.bytes, self.stream()) };
                check("numbers for another GPU", status)?;
            }
            tell(self.stream(), number, self.pass)?;
        }
        Ok(())
    }

    /// Everything of this pass has been queued to leave.
    pub fn gone(&self) -> Result<()> {
        self.out.record(self.stream())
    }

    /// What is queued next waits until everything has left.
    pub fn wait(&self) -> Result<()> {
        self.out.hold(self.card.stream())
    }

    /// Lets neighbours go on that wait for what will not come.
    pub fn give_up(&self) {
        // What fails here fails for the neighbours, too: their GPUs are the same driver's.
        let _ = self.card.enter();
        let Some(ways) = &self.ways else { return };
        for &number in &ways.numbers {
            let _ = tell(self.stream(), number, self.pass.wrapping_add(NEVER));
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        // What is being sent must not go; if the driver has failed, nothing is being sent any more.
        let _ = self.card.enter();
        let _ = self.copies.synchronize();
    }
}
