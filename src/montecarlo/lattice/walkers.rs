//! Walkers on a lattice.

use std::sync::Arc;

use rayon::prelude::*;

use super::state::{Hop, LatticeState, Occupied};
use crate::error::{Error, Result};
use crate::montecarlo::amplitude::Amplitude;
use crate::number::philox::{Stream, unit, words};
use crate::task::Interrupt;

/// Sweeps after which inverse matrices are computed anew.
const FRESH: u64 = 32;
/// Starting configurations that are tried.
const TRIES: u32 = 1000;

/// Walkers of a wave function on a lattice; those of this process, numbered from `first` on among all.
///
/// A sweep tries a hop of every electron to any site, or, where the other spin sits there, an exchange with it.
#[derive(Clone)]
pub struct LatticeWalkers<S> {
    state: Arc<LatticeState<S>>,
    walkers: Vec<Occupied<S>>,
    seed: u64,
    first: u32,
    sweep: u64,
    moved: u64,
    tried: u64,
}

impl<S: Amplitude> LatticeWalkers<S> {
    /// `count` walkers at random places.
    ///
    /// # Errors
    /// When the wave function vanishes wherever a walker is put.
    pub fn new(state: Arc<LatticeState<S>>, count: usize, seed: u64) -> Result<LatticeWalkers<S>> {
        if count == 0 || count > 1 << 24 {
            return Err(Error::input(format!("{count} walkers")).hint("ask for one at least"));
        }
        let place = |walker: u32| -> Result<Occupied<S>> {
            let mut last = None;
            for attempt in 0..TRIES {
                let (up, down) = random_places(&state, seed, walker, attempt);
                match state.occupied(&up, &down) {
                    Ok(occupied) => return Ok(occupied),
                    Err(e) => last = Some(e),
                }
            }
            let why = last.map(|e| e.message().to_string()).unwrap_or_default();
            Err(Error::numeric(format!("no start for a walker in {TRIES} random configurations: {why}"))
                .hint("are two orbitals the same? a closed shell, or a boundary that makes one, has a start"))
        };
        let walkers = (0..count as u32).into_par_iter().map(place).collect::<Result<_>>()?;
        Ok(LatticeWalkers { state, walkers, seed, first: 0, sweep: 0, moved: 0, tried: 0 })
    }

    /// Walkers as they were saved: seed, sweeps made, sites of the electrons of both spins.
    ///
    /// # Errors
    /// When the places are not of as many electrons, or the wave function vanishes there.
    pub fn restored(
        state: Arc<LatticeState<S>>,
        seed: u64,
        sweep: u64,
        places: &[[Vec<usize>; 2]],
    ) -> Result<LatticeWalkers<S>> {
        let walkers = places.iter().map(|[up, down]| state.occupied(up, down)).collect::<Result<_>>()?;
        Ok(LatticeWalkers { state, walkers, seed, first: 0, sweep, moved: 0, tried: 0 })
    }

    /// The wave function.
    pub fn state(&self) -> &Arc<LatticeState<S>> {
        &self.state
    }

    /// The walkers.
    pub fn configurations(&self) -> &[Occupied<S>] {
        &self.walkers
    }

    /// Key of the random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Sweeps made since the start.
    pub fn sweeps(&self) -> u64 {
        self.sweep
    }

    /// The share of trial moves accepted since [`LatticeWalkers::forget`].
    pub fn acceptance(&self) -> f64 {
        if self.tried == 0 { 0.0 } else { self.moved as f64 / self.tried as f64 }
    }

    /// Forgets the acceptance so far.
    pub fn forget(&mut self) {
        (self.moved, self.tried) = (0, 0);
    }

    /// Computes all inverse matrices anew.
    ///
    /// # Errors
    /// When a walker sits where the wave function vanishes.
    pub fn refresh(&mut self) -> Result<()> {
        let state = self.state.clone();
        self.walkers.par_iter_mut().try_for_each(|w| state.refresh(w).map(|_| ()))
    }

    /// Exchanges the wave function, electrons staying where they are.
    ///
    /// # Errors
    /// When the new one has other electrons, or vanishes there.
    pub fn set_state(&mut self, state: Arc<LatticeState<S>>) -> Result<()> {
        let places: Vec<[Vec<usize>; 2]> =
            self.walkers.iter().map(|w| w.places.each_ref().map(|p| wide(p))).collect();
        *self = LatticeWalkers {
            first: self.first,
            ..LatticeWalkers::restored(state, self.seed, self.sweep, &places)?
        };
        Ok(())
    }

    /// `count` sweeps of every walker; returns the share of trial moves accepted in them.
    ///
    /// # Errors
    /// When the user stops the work; the walkers are then as before.
    pub fn run(&mut self, count: usize, interrupt: &Interrupt) -> Result<f64> {
        let before: Vec<[Vec<u32>; 2]> = self.walkers.iter().map(|w| w.places.clone()).collect();
        let (state, seed, first, start) = (self.state.clone(), self.seed, self.first, self.sweep);
        let one = |(k, walker): (usize, &mut Occupied<S>)| -> Result<usize> {
            let mut moved = 0;
            for sweep in start..start + count as u64 {
                interrupt.check()?;
                moved += sweep_of(&state, walker, seed, first + k as u32, sweep);
                if (sweep + 1) % FRESH == 0 {
                    state.refresh(walker)?;
                }
            }
            Ok(moved)
        };
        let results: Result<Vec<usize>> = self.walkers.par_iter_mut().enumerate().map(one).collect();
        match results {
            Ok(moved) => {
                let (up, down) = self.state.electrons();
                let moved: usize = moved.iter().sum();
                let tried = (up + down) * self.walkers.len() * count;
                self.sweep += count as u64;
                self.moved += moved as u64;
                self.tried += tried as u64;
                Ok(moved as f64 / tried.max(1) as f64)
            }
            Err(error) => {
                for (walker, places) in self.walkers.iter_mut().zip(before) {
                    *walker = state.occupied(&wide(&places[0]), &wide(&places[1]))?;
                }
                Err(error)
            }
        }
    }
}

fn wide(sites: &[u32]) -> Vec<usize> {
    sites.iter().map(|s| *s as usize).collect()
}

/// A sweep of one walker; the number of moves accepted.
fn sweep_of<S: Amplitude>(
    state: &LatticeState<S>,
    walker: &mut Occupied<S>,
    seed: u64,
    number: u32,
    sweep: u64,
) -> usize {
    let (up, down) = state.electrons();
    let draw = |i: usize, draw: u64| {
        words(seed, Stream::Walkers as u32, sweep << 24 | (i as u64) << 2 | draw, number)
    };
    let mut moved = 0;
    for i in 0..up + down {
        let (spin, electron) = if i < up { (0, i) } else { (1, i - up) };
        let w = draw(i, 0);
        let to = ((unit(w[0], w[1]) * state.sites() as f64) as usize).min(state.sites() - 1);
        let coin = state.gutzwiller() == 0.0 || w[2] & 1 == 1;
        let from = walker.places[spin][electron] as usize;
        if walker.at(spin, to).is_some() {
            continue;
        }
        // Which move a coin allows is the same for the way there and the way back.
        let hops: [Hop; 2];
        let hops: &[Hop] = match (walker.at(1 - spin, from), walker.at(1 - spin, to)) {
            (None, Some(other)) if coin => {
                hops = [(spin, electron, to), (1 - spin, other, from)];
                &hops
            }
            (Some(_), None) if coin => continue,
            _ => {
                hops = [(spin, electron, to); 2];
                &hops[..1]
            }
        };
        let ratio = state.ratio(walker, hops).square();
        let w = draw(i, 2);
        if unit(w[0], w[1]) < ratio {
            state.accept(walker, hops);
            moved += 1;
        }
    }
    moved
}

/// Random sites for all electrons, no two of one spin on one, nor of both where that is forbidden.
fn random_places<S: Amplitude>(
    state: &LatticeState<S>,
    seed: u64,
    walker: u32,
    attempt: u32,
) -> (Vec<usize>, Vec<usize>) {
    let (up, down) = state.electrons();
    let shuffled = |salt: u64| {
        let mut order: Vec<usize> = (0..state.sites()).collect();
        for k in (1..order.len()).rev() {
            // Above all counters of sweeps.
            let element = (1 << 63) | u64::from(attempt) << 32 | salt << 31 | k as u64;
            let w = words(seed, Stream::Walkers as u32, element, walker);
            order.swap(k, (unit(w[0], w[1]) * (k + 1) as f64) as usize);
        }
        order
    };
    let order = shuffled(0);
    let ups = order[..up].to_vec();
    let downs =
        if state.gutzwiller() == 0.0 { order[up..up + down].to_vec() } else { shuffled(1)[..down].to_vec() };
    (ups, downs)
}
