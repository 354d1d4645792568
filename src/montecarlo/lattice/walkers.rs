//! Walkers on a lattice. A sweep tries a hop of every electron to any site, or, where the other spin sits there, an exchange
//! with it.

use super::state::{Hop, LatticeState, Occupied};
use crate::error::Result;
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::ensemble::{Ensemble, Resident, Swept, System};
use crate::montecarlo::scheme::Draws;
use crate::number::philox::{Stream, unit, words};
use crate::task::Interrupt;

/// Walkers of a wave function on a lattice.
pub type LatticeWalkers<S> = Ensemble<LatticeState<S>>;

/// No device takes walkers on a lattice.
pub enum Nowhere {}

impl<S: Amplitude> Resident<LatticeState<S>> for Nowhere {
    fn sweeps(&mut self, _: &(), _: u64, _: u64, _: u64) -> Result<Swept<[Vec<u32>; 2]>> {
        match *self {}
    }

    fn refresh(&mut self) -> Result<f64> {
        match *self {}
    }
}

impl<S: Amplitude> System for LatticeState<S> {
    /// Sites of the electrons of both spins.
    type Places = [Vec<u32>; 2];
    type State = Occupied<S>;
    type Start = ();
    type Sweep = ();
    type Resident = Nowhere;

    const TRIES: u64 = 1000;
    const NO_START: &'static str =
        "are two orbitals the same? a closed shell, or a boundary that makes one, has a start";

    fn count(&self) -> usize {
        let (up, down) = self.electrons();
        up + down
    }

    fn random(&self, _: &(), seed: u64, walker: u32, attempt: u64) -> [Vec<u32>; 2] {
        random_places(self, seed, walker, attempt)
    }

    fn state(&self, [up, down]: [Vec<u32>; 2]) -> Result<Occupied<S>> {
        self.occupied(&wide(&up), &wide(&down))
    }

    fn good_start(&self, _: &Occupied<S>) -> Result<()> {
        Ok(())
    }

    fn places(state: &Occupied<S>) -> &[Vec<u32>; 2] {
        &state.places
    }

    fn refresh(&self, state: &mut Occupied<S>) -> Result<f64> {
        LatticeState::refresh(self, state)
    }

    fn sweep(&self, state: &mut Occupied<S>, _: &(), draws: &Draws, _: &Interrupt) -> Result<usize> {
        Ok(sweep_of(self, state, draws))
    }

    fn resident(&self, _: &[[Vec<u32>; 2]], _: u64, _: u32) -> Result<Option<Nowhere>> {
        Ok(None)
    }
}

fn wide(sites: &[u32]) -> Vec<usize> {
    sites.iter().map(|s| *s as usize).collect()
}

/// A sweep of one walker; the number of moves accepted.
fn sweep_of<S: Amplitude>(state: &LatticeState<S>, walker: &mut Occupied<S>, draws: &Draws) -> usize {
    let (up, down) = state.electrons();
    let mut moved = 0;
    for i in 0..up + down {
        let (spin, electron) = if i < up { (0, i) } else { (1, i - up) };
        let w = draws.words(i, 0);
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
        let w = draws.words(i, 2);
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
    attempt: u64,
) -> [Vec<u32>; 2] {
    let (up, down) = state.electrons();
    let shuffled = |salt: u64| {
        let mut order: Vec<u32> = (0..state.sites() as u32).collect();
        for k in (1..order.len()).rev() {
            // Above all counters of sweeps.
            let element = (1 << 63) | attempt << 32 | salt << 31 | k as u64;
            let w = words(seed, Stream::Walkers as u32, element, walker);
            order.swap(k, (unit(w[0], w[1]) * (k + 1) as f64) as usize);
        }
        order
    };
    let order = shuffled(0);
    let ups = order[..up].to_vec();
    let downs =
        if state.gutzwiller() == 0.0 { order[up..up + down].to_vec() } else { shuffled(1)[..down].to_vec() };
    [ups, downs]
}
