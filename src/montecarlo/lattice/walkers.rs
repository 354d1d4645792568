//! Walkers on a lattice. A sweep tries a hop of every electron to any site. Where an electron of the other spin is
//! there, it tries to exchange the two. Where one shares the electron's own site and the two may be bound, it tries
//! to move both. Now and then it tries moves of several electrons at once, which connect all configurations.

use super::state::{ElectronHop, LatticeState, OccupiedSites, Reference};
use crate::backend::walkers::SweepResult;
use crate::error::Result;
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::determinant::matrices;
use crate::montecarlo::ensemble::{Ensemble, Resident, System};
use crate::montecarlo::scheme::SweepDraws;
use crate::number::philox::{Stream, unit, words};
use crate::task::Interrupt;

/// Walkers of a wave function on a lattice.
pub type LatticeWalkers<S> = Ensemble<LatticeState<S>>;

/// No device takes walkers on a lattice.
pub enum NoDeviceWalkers {}

impl<S: Amplitude> Resident<LatticeState<S>> for NoDeviceWalkers {
    fn sweeps(&mut self, _: &(), _: u64, _: u64, _: u64) -> Result<SweepResult<[Vec<u32>; 2]>> {
        match *self {}
    }

    fn refresh(&mut self) -> Result<f64> {
        match *self {}
    }
}

impl<S: Amplitude> System for LatticeState<S> {
    /// Sites of the electrons of both spins.
    type Places = [Vec<u32>; 2];
    type State = OccupiedSites<S>;
    type Start = ();
    type Sweep = ();
    type Resident = NoDeviceWalkers;

    const TRIES: u64 = 1000;
    const NO_START: &'static str =
        "are two orbitals the same? a closed shell, or a boundary that makes one, has a start";

    fn count(&self) -> usize {
        let (up, down) = self.electrons();
        up + down
    }

    fn bytes(&self) -> u128 {
        let (up, down) = self.electrons();
        matrices::<S>(match self.reference {
            Reference::Sea { .. } => up * up + down * down,
            Reference::Pairs { .. } => up * down,
        })
    }

    /// One for every electron, and some of several electrons at once: many where only some sites form pairs.
    fn trials(&self) -> usize {
        let count = self.count();
        let more = if count < 2 || self.full() {
            0
        } else if self.sparse {
            count.div_ceil(4)
        } else {
            1
        };
        count + more
    }

    fn random(&self, _: &(), seed: u64, walker: u32, attempt: u64) -> [Vec<u32>; 2] {
        random_places(self, seed, walker, attempt)
    }

    fn state(&self, [up, down]: [Vec<u32>; 2]) -> Result<OccupiedSites<S>> {
        self.occupied(&wide(&up), &wide(&down))
    }

    fn good_start(&self, _: &OccupiedSites<S>) -> Result<()> {
        Ok(())
    }

    fn places(state: &OccupiedSites<S>) -> &[Vec<u32>; 2] {
        &state.places
    }

    fn refresh(&self, state: &mut OccupiedSites<S>) -> Result<f64> {
        LatticeState::refresh(self, state)
    }

    fn sweep(
        &self,
        state: &mut OccupiedSites<S>,
        _: &(),
        draws: &SweepDraws,
        _: &Interrupt,
    ) -> Result<usize> {
        Ok(sweep_of(self, state, draws))
    }

    fn resident(&self, _: &[[Vec<u32>; 2]], _: u64, _: u32) -> Result<Option<NoDeviceWalkers>> {
        Ok(None)
    }
}

fn wide(sites: &[u32]) -> Vec<usize> {
    sites.iter().map(|s| *s as usize).collect()
}

/// Numbers in (0, 1) for trials beyond those of single electrons.
struct TrialDraws<'a> {
    draws: &'a SweepDraws,
    next: usize,
}

impl TrialDraws<'_> {
    fn unit(&mut self) -> f64 {
        let w = self.draws.words(SweepDraws::MOST + self.next / 4, self.next as u64 % 4);
        self.next += 1;
        unit(w[0], w[1])
    }

    /// A number from 0 to n - 1, all as likely.
    fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }
}

/// Makes the hops with Metropolis' probability.
fn decided<S: Amplitude>(
    state: &LatticeState<S>,
    walker: &mut OccupiedSites<S>,
    hops: &[ElectronHop],
    number: f64,
) -> bool {
    number < state.ratio(walker, hops).square() && state.accept(walker, hops)
}

/// A sweep of one walker; returns the number of moves accepted.
fn sweep_of<S: Amplitude>(
    state: &LatticeState<S>,
    walker: &mut OccupiedSites<S>,
    draws: &SweepDraws,
) -> usize {
    let (up, down) = state.electrons();
    let paired = state.sparse;
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
        // The coin selects the same kind of move for both directions, as detailed balance needs: an exchange of two
        // electrons, or a hop of both electrons of a site, where they may be bound.
        let hops: [ElectronHop; 2];
        let hops: &[ElectronHop] = match (walker.at(1 - spin, from), walker.at(1 - spin, to)) {
            (None, Some(other)) if coin => {
                hops = [(spin, electron, to), (1 - spin, other, from)];
                &hops
            }
            (Some(other), None) if coin && paired => {
                hops = [(spin, electron, to), (1 - spin, other, to)];
                &hops
            }
            (Some(_), None) if coin => continue,
            _ => {
                hops = [(spin, electron, to); 2];
                &hops[..1]
            }
        };
        let w = draws.words(i, 2);
        moved += usize::from(decided(state, walker, hops, unit(w[0], w[1])));
    }
    // Single hops in a Fermi sea connect all configurations, but not with a projector: there a move of several is
    // tried now and then.
    let more = if paired || draws.sweep.is_multiple_of(4) { state.trials() - up - down } else { 0 };
    let mut numbers = TrialDraws { draws, next: 0 };
    for _ in 0..more {
        let hops = several(state, walker, &mut numbers);
        let number = numbers.unit();
        moved += usize::from(!hops.is_empty() && decided(state, walker, &hops, number));
    }
    moved
}

/// A trial move of two electrons or more, which can connect configurations that single hops do not. They are removed
/// and put on random sites that the others leave free. Half of the moves take two, each further electron is half as
/// likely as the one before.
fn several<S: Amplitude>(
    state: &LatticeState<S>,
    walker: &OccupiedSites<S>,
    numbers: &mut TrialDraws,
) -> Vec<ElectronHop> {
    let (up, down) = state.electrons();
    let lifted = (1 + (-numbers.unit().log2()).ceil() as usize).clamp(2, up + down);
    let mut chosen: Vec<usize> = Vec::with_capacity(lifted);
    while chosen.len() < lifted {
        let electron = numbers.below(up + down);
        if !chosen.contains(&electron) {
            chosen.push(electron);
        }
    }
    let own = |spin: usize| -> Vec<usize> {
        let of = |e: &usize| if *e < up { (0, *e) } else { (1, *e - up) };
        chosen.iter().map(of).filter(|e| e.0 == spin).map(|e| e.1).collect()
    };
    let electrons = [own(0), own(1)];
    let stays =
        |spin: usize, site: usize| walker.at(spin, site).is_some_and(|e| !electrons[spin].contains(&e));
    let mut hops = Vec::new();
    let mut taken: Vec<usize> = Vec::new();
    for spin in [0, 1] {
        if state.gutzwiller() > 0.0 {
            taken.clear();
        }
        let alone = state.gutzwiller() == 0.0;
        let open =
            |site: usize| !stays(spin, site) && !(alone && (stays(1 - spin, site) || taken.contains(&site)));
        let after = some_of(state.sites(), open, electrons[spin].len(), numbers);
        taken.extend(&after);
        // Electrons of one spin are identical: those that need not move stay.
        let before: Vec<usize> = electrons[spin].iter().map(|&e| walker.places[spin][e] as usize).collect();
        let arriving = after.iter().filter(|site| !before.contains(site));
        let leaving = electrons[spin].iter().zip(&before).filter(|(_, from)| !after.contains(from));
        hops.extend(leaving.zip(arriving).map(|((electron, _), to)| (spin, *electron, *to)));
    }
    hops
}

/// A few different sites out of those that are open, at random: by trial at first, from a list where few are open.
fn some_of(sites: usize, open: impl Fn(usize) -> bool, count: usize, numbers: &mut TrialDraws) -> Vec<usize> {
    let mut found = Vec::with_capacity(count);
    for _ in 0..4 * count {
        if found.len() == count {
            return found;
        }
        let site = numbers.below(sites);
        if open(site) && !found.contains(&site) {
            found.push(site);
        }
    }
    let mut rest: Vec<usize> = (0..sites).filter(|site| open(*site) && !found.contains(site)).collect();
    while found.len() < count {
        found.push(rest.swap_remove(numbers.below(rest.len())));
    }
    found
}

/// Random sites for all electrons, no two of one spin on one site, and no two at all where that is forbidden. Every
/// other attempt draws them by the weights of orbitals or pairs.
fn random_places<S: Amplitude>(
    state: &LatticeState<S>,
    seed: u64,
    walker: u32,
    attempt: u64,
) -> [Vec<u32>; 2] {
    let (up, down) = state.electrons();
    // Counters above those of all sweeps.
    let number = |salt: u64, k: usize| {
        let element = (1 << 63) | attempt << 32 | salt << 31 | k as u64;
        let w = words(seed, Stream::Walkers as u32, element, walker);
        unit(w[0], w[1])
    };
    if attempt % 2 == 1
        && let Some(places) = state.likely(&mut |k| number(0, k))
    {
        return places;
    }
    let shuffled = |salt: u64| {
        let mut order: Vec<u32> = (0..state.sites() as u32).collect();
        for k in (1..order.len()).rev() {
            order.swap(k, (number(salt, k) * (k + 1) as f64) as usize);
        }
        order
    };
    let order = shuffled(0);
    let ups = order[..up].to_vec();
    let downs =
        if state.gutzwiller() == 0.0 { order[up..up + down].to_vec() } else { shuffled(1)[..down].to_vec() };
    [ups, downs]
}
