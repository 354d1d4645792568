//! Many walkers at once, in the continuum or on a lattice. Each has its own random numbers and is moved by one thread,
//! so its Markov chain depends neither on the number of walkers nor on that of threads. If a device takes a whole
//! ensemble, the walkers live there, and only their positions are copied back. With several ranks each has a part of
//! the walkers; all ranks know the results.

use std::borrow::Cow;
use std::sync::Arc;

use super::scheme::SweepDraws;
use crate::backend::walkers::SweepResult;
use crate::error::{Error, ErrorKind, Result};
use crate::number::memory;
use crate::ranks::{self, Broadcast};
use crate::task::{self, Interrupt, parallel};

/// The inverse matrices are computed anew after so many sweeps.
const FRESH: u64 = 32;

/// A wave function as walkers sample it.
pub trait System: Send + Sync + Sized {
    /// Positions of the electrons.
    type Places: Clone + Send + Sync + Broadcast;
    /// Positions, and the determinants and inverse matrices there.
    type State: Clone + Send + Sync;
    type Start: Sync;
    /// How a sweep is made.
    type Sweep: Sync;
    /// Walkers that live on a device.
    type Resident: Resident<Self>;

    /// Random starting configurations that are tried for a walker.
    const TRIES: u64;
    /// The hint if none of them works.
    const NO_START: &'static str;

    fn count(&self) -> usize;
    /// Bytes that the matrices of one walker take at least.
    fn bytes(&self) -> u128;
    /// Trial moves of a sweep.
    fn trials(&self) -> usize {
        self.count()
    }
    /// Random places, by the seed, the number of the walker and that of the attempt.
    fn random(&self, start: &Self::Start, seed: u64, walker: u32, attempt: u64) -> Self::Places;
    /// The state at these places.
    ///
    /// # Errors
    /// When their number is wrong, or the wave function vanishes there or is not finite.
    fn state(&self, places: Self::Places) -> Result<Self::State>;
    /// Whether a walker may start there: an error if its matrices are singular to working precision.
    ///
    /// # Errors
    /// What is wrong with it.
    fn good_start(&self, state: &Self::State) -> Result<()>;
    /// Where the electrons are.
    fn places(state: &Self::State) -> &Self::Places;
    /// Computes inverse matrices anew; returns how far the old ones were off.
    ///
    /// # Errors
    /// When the walker sits on a node.
    fn refresh(&self, state: &mut Self::State) -> Result<f64>;
    /// Makes a sweep of one walker; returns the number of moves that were accepted.
    ///
    /// # Errors
    /// When the wave function is not finite somewhere, or the user stops the work: the walker must then be set up
    /// anew.
    fn sweep(
        &self,
        state: &mut Self::State,
        sweep: &Self::Sweep,
        draws: &SweepDraws,
        interrupt: &Interrupt,
    ) -> Result<usize>;
    /// The shares of the ranks, by which walkers are given to them; none if they are equal.
    fn rank_shares(&self) -> Option<Vec<f64>> {
        None
    }
    /// Walkers on the device of the wave function, if it takes them.
    ///
    /// # Errors
    /// A failure of the device.
    fn resident(&self, places: &[Self::Places], seed: u64, first: u32) -> Result<Option<Self::Resident>>;
}

/// Walkers that live on a device.
pub trait Resident<C: System>: Send + Sync {
    /// Makes `count` sweeps from number `from` on, with inverse matrices computed anew after every sweep whose number,
    /// counted from 1, is a multiple of `fresh`.
    ///
    /// # Errors
    /// As [`System::sweep`]; the walkers are then lost.
    fn sweeps(
        &mut self,
        sweep: &C::Sweep,
        from: u64,
        count: u64,
        fresh: u64,
    ) -> Result<SweepResult<C::Places>>;
    /// Computes inverse matrices anew; returns how far the old ones were off.
    ///
    /// # Errors
    /// When a walker sits on a node.
    fn refresh(&mut self) -> Result<f64>;
}

/// Where walkers live. Those of whom only the places are known are set up when they are needed.
enum Residence<C: System> {
    Host(Vec<C::State>),
    Device(C::Resident, Vec<C::Places>),
    Places(Vec<C::Places>),
}

/// Walkers of one wave function; those of this process, numbered from `first` on among all.
pub struct Ensemble<C: System> {
    psi: Arc<C>,
    held: Residence<C>,
    /// Whether their last sweep was made by the host.
    settled: bool,
    seed: u64,
    first: u32,
    /// Walkers of all ranks.
    total: usize,
    sweep: u64,
    moved: u64,
    tried: u64,
    error: f64,
}

/// What a file holds of walkers.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedWalkers<P> {
    /// Key of the random numbers.
    pub seed: u64,
    pub sweep: u64,
    /// Where the electrons of every walker are.
    pub places: Vec<P>,
}

impl<C: System> Ensemble<C> {
    /// `count` walkers at random places.
    ///
    /// # Errors
    /// When the wave function vanishes wherever a walker is put.
    pub fn new(psi: Arc<C>, count: usize, seed: u64, start: &C::Start) -> Result<Ensemble<C>> {
        if psi.count() >= SweepDraws::MOST {
            return Err(Error::input(format!("{} electrons", psi.count())).hint("there can be two million"));
        }
        if count == 0 || count > 1 << 24 {
            return Err(Error::input(format!("{count} walkers")).hint("ask for one at least"));
        }
        let stop = task::current();
        let place = |walker: u32| -> Result<C::State> {
            let mut last = None;
            for attempt in 0..C::TRIES {
                stop.check()?;
                let found = stop.during(|| psi.state(psi.random(start, seed, walker, attempt)));
                match found.and_then(|state| psi.good_start(&state).map(|()| state)) {
                    Ok(state) => return Ok(state),
                    Err(e) if e.kind() == ErrorKind::Interrupted => return Err(e),
                    Err(e) => last = Some(e),
                }
            }
            let why = last.map(|e| e.message().to_string()).unwrap_or_default();
            let what = format!("no start for a walker in {} random configurations: {why}", C::TRIES);
            Err(Error::numeric(what).hint(C::NO_START))
        };
        let own = ranks::own_by(count, psi.rank_shares().as_deref());
        // Those kept, and what each thread inverts besides.
        let held = psi.bytes() * (own.len() + rayon::current_num_threads().min(own.len())) as u128;
        ranks::agreed(memory::ensure(held, &format!("room for the matrices of {} walkers", own.len())))?;
        let own = own.start as u32..own.end as u32;
        let walkers = ranks::agreed(parallel::try_map(own.len(), |k| place(own.start + k as u32)))?;
        Ok(Ensemble {
            psi,
            held: Residence::Host(walkers),
            settled: false,
            seed,
            first: own.start,
            total: count,
            sweep: 0,
            moved: 0,
            tried: 0,
            error: 0.0,
        })
    }

    /// Walkers as they were saved; their Markov chains continue as if never interrupted.
    ///
    /// # Errors
    /// When there are none, their places are not of as many electrons, or the wave function vanishes there.
    pub fn restored(psi: Arc<C>, saved: SavedWalkers<C::Places>) -> Result<Ensemble<C>> {
        if saved.places.is_empty() {
            return Err(Error::input("no walkers where some were saved"));
        }
        let total = saved.places.len();
        let own = ranks::own_by(total, psi.rank_shares().as_deref());
        let places = saved.places[own.clone()].to_vec();
        Self::of_own(psi, places, (own.start as u32, total), (saved.seed, saved.sweep))
    }

    /// This rank's walkers at these places, numbered from `first` on among all.
    fn of_own(
        psi: Arc<C>,
        places: Vec<C::Places>,
        (first, total): (u32, usize),
        (seed, sweep): (u64, u64),
    ) -> Result<Ensemble<C>> {
        let held = Residence::Host(ranks::agreed(states(&psi, places))?);
        Ok(Ensemble { psi, held, settled: false, seed, first, total, sweep, moved: 0, tried: 0, error: 0.0 })
    }

    /// What is needed to continue later. Inverse matrices are computed anew, as they will be then.
    ///
    /// # Errors
    /// When a walker sits on a node.
    pub fn save(&mut self) -> Result<SavedWalkers<C::Places>> {
        self.refresh()?;
        let places = self.places()?;
        Ok(SavedWalkers { seed: self.seed, sweep: self.sweep, places })
    }

    pub fn psi(&self) -> &Arc<C> {
        &self.psi
    }

    pub fn count(&self) -> usize {
        self.total
    }

    /// Where the electrons of every walker are.
    ///
    /// # Errors
    /// Those of the ranks.
    pub fn places(&self) -> Result<Vec<C::Places>> {
        ranks::joined(Ok(self.own_places()))
    }

    /// Where the electrons of the walkers of this rank are.
    fn own_places(&self) -> Vec<C::Places> {
        match &self.held {
            Residence::Host(walkers) => walkers.iter().map(|w| C::places(w).clone()).collect(),
            Residence::Device(_, places) | Residence::Places(places) => places.clone(),
        }
    }

    /// What `f` finds of every walker, given its number and what is known of the wave function there. Each rank asks
    /// its own walkers.
    ///
    /// # Errors
    /// When a walker sits on a node, those of `f`, and when the user stops the work.
    pub fn each<R: Broadcast + Send>(
        &mut self,
        f: impl Fn(usize, &C::State) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let (stop, first) = (task::current(), self.first as usize);
        let own = self.states().and_then(|states| {
            parallel::try_map(states.len(), |k| stop.check().and_then(|()| f(first + k, &states[k])))
        });
        ranks::joined(own)
    }

    /// The states of this rank's walkers. For walkers on a device they are computed on the host.
    ///
    /// # Errors
    /// When one of them sits on a node.
    pub fn states(&mut self) -> Result<Cow<'_, [C::State]>> {
        if let Residence::Device(_, places) = &self.held {
            return Ok(Cow::Owned(states(&self.psi, places.clone())?));
        }
        Ok(Cow::Borrowed(self.home()?))
    }

    /// The walkers on the host, set up there if they are on a device.
    fn home(&mut self) -> Result<&mut [C::State]> {
        if !matches!(self.held, Residence::Host(_)) {
            self.held = Residence::Host(states(&self.psi, self.own_places())?);
        }
        match &mut self.held {
            Residence::Host(walkers) => Ok(walkers),
            _ => Err(Error::internal("walkers that did not come home")),
        }
    }

    /// The walkers on their device, and their places after the last sweep. They are set up there if it takes them,
    /// unless the host made their last sweep.
    ///
    /// # Errors
    /// A failure of the device.
    pub fn resident(&mut self) -> Result<Option<(&mut C::Resident, &mut Vec<C::Places>)>> {
        if self.settled { Ok(None) } else { self.away() }
    }

    fn away(&mut self) -> Result<Option<(&mut C::Resident, &mut Vec<C::Places>)>> {
        if !matches!(self.held, Residence::Device(..)) {
            let places = self.own_places();
            if places.is_empty() {
                return Ok(None);
            }
            match self.psi.resident(&places, self.seed, self.first)? {
                Some(resident) => self.held = Residence::Device(resident, places),
                None => return Ok(None),
            }
        }
        match &mut self.held {
            Residence::Device(resident, places) => Ok(Some((resident, places))),
            _ => Ok(None),
        }
    }

    /// Sweeps made since the start.
    pub fn sweeps(&self) -> u64 {
        self.sweep
    }

    /// The share of trial moves accepted since [`Ensemble::forget`].
    pub fn acceptance(&self) -> f64 {
        if self.tried == 0 { 0.0 } else { self.moved as f64 / self.tried as f64 }
    }

    /// Forgets the acceptance so far.
    pub fn forget(&mut self) {
        (self.moved, self.tried) = (0, 0);
    }

    /// The largest error of an inverse matrix that was found when it was computed anew.
    pub fn inverse_error(&self) -> f64 {
        self.error
    }

    /// Walkers at the same places for another wave function.
    ///
    /// # Errors
    /// When it has other electrons, or vanishes there.
    pub fn with_psi(&self, psi: Arc<C>) -> Result<Ensemble<C>> {
        let place = (self.first, self.total);
        Self::of_own(psi, self.own_places(), place, (self.seed, self.sweep))
    }

    /// `count` sweeps of every walker; returns the share of trial moves accepted in them.
    ///
    /// # Errors
    /// When the wave function is no number somewhere or the user stops the work; the walkers are then as before.
    pub fn run(&mut self, sweep: &C::Sweep, count: usize, interrupt: &Interrupt) -> Result<f64> {
        let before = self.own_places();
        let own = self.moved_by(sweep, count as u64, interrupt);
        let all = ranks::joined(own.map(|(moved, error)| vec![(moved, error)]));
        let sum = all.map(|all| all.iter().fold((0, 0.0), |(n, e), of| (n + of.0, f64::max(e, of.1))));
        match sum {
            Ok((moved, error)) => {
                let tried = (self.total * self.psi.trials() * count) as u64;
                self.error = self.error.max(error);
                self.sweep += count as u64;
                self.moved += moved;
                self.tried += tried;
                Ok(moved as f64 / tried.max(1) as f64)
            }
            Err(error) => {
                self.held = Residence::Places(before);
                Err(error)
            }
        }
    }

    /// Moves accepted in some sweeps, and the largest error of an inverse matrix.
    fn moved_by(&mut self, sweep: &C::Sweep, count: u64, interrupt: &Interrupt) -> Result<(u64, f64)> {
        let (seed, first, from) = (self.seed, self.first, self.sweep);
        if let Some((resident, places)) = self.away()? {
            let swept = resident.sweeps(sweep, from, count, FRESH)?;
            *places = swept.places;
            self.settled = false;
            return Ok((swept.moved, swept.error));
        }
        self.settled = true;
        let psi = self.psi.clone();
        let one = |k: usize, walker: &mut C::State| -> Result<(u64, f64)> {
            let (mut moved, mut off) = (0, 0.0);
            for number in from..from + count {
                interrupt.check()?;
                let draws = SweepDraws { seed, walker: first + k as u32, sweep: number };
                moved += psi.sweep(walker, sweep, &draws, interrupt)? as u64;
                if (number + 1).is_multiple_of(FRESH) {
                    off = f64::max(off, psi.refresh(walker)?);
                }
            }
            Ok((moved, off))
        };
        let all: Vec<(u64, f64)> = parallel::try_map_mut(self.home()?, one)?;
        Ok((all.iter().map(|r| r.0).sum(), all.iter().map(|r| r.1).fold(0.0, f64::max)))
    }

    /// Computes all inverse matrices anew.
    ///
    /// # Errors
    /// When a walker sits on a node.
    pub fn refresh(&mut self) -> Result<()> {
        let psi = self.psi.clone();
        let own = match &mut self.held {
            Residence::Host(walkers) => {
                let stop = task::current();
                let one =
                    |_: usize, w: &mut C::State| stop.check().and_then(|()| stop.during(|| psi.refresh(w)));
                parallel::try_map_mut(walkers, one)
            }
            Residence::Device(resident, _) => resident.refresh().map(|off| vec![off]),
            Residence::Places(_) => Ok(Vec::new()),
        };
        let largest = own.map(|all| vec![all.into_iter().fold(0.0, f64::max)]);
        self.error = ranks::joined(largest)?.into_iter().fold(self.error, f64::max);
        Ok(())
    }
}

impl<C: System> Clone for Ensemble<C> {
    /// A copy of walkers on a device is set up there when it is first moved.
    fn clone(&self) -> Ensemble<C> {
        let held = match &self.held {
            Residence::Host(walkers) => Residence::Host(walkers.clone()),
            Residence::Device(_, places) | Residence::Places(places) => Residence::Places(places.clone()),
        };
        Ensemble { psi: self.psi.clone(), held, ..*self }
    }
}

fn states<C: System>(psi: &Arc<C>, places: Vec<C::Places>) -> Result<Vec<C::State>> {
    let stop = task::current();
    let one = |p: C::Places| stop.check().and_then(|()| stop.during(|| psi.state(p)));
    parallel::try_map_of(places, one)
}
