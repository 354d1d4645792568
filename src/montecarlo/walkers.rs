//! Walkers in the continuum: where they start, and how they are swept.

use super::amplitude::Amplitude;
use super::determinant::matrices;
use super::ensemble::{Ensemble, System};
use super::resident::{OnDevice, on_device, rank_shares};
use super::scheme::{self, Sweep, SweepDraws};
use super::wavefunction::{Configuration, SlaterJastrow};
use crate::error::{Error, Result};
use crate::number::philox::{Stream, normals, unit, words};
use crate::task::Interrupt;

/// Walkers of a Slater-Jastrow wave function.
pub type Walkers<S> = Ensemble<SlaterJastrow<S>>;

/// Where walkers of an open system start.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkerStart {
    /// Electrons are dealt out to these places in turn, each walker's from the next place on.
    pub centres: Vec<[f64; 3]>,
    /// Standard deviation around them, in bohr.
    pub spread: f64,
}

impl Default for WalkerStart {
    fn default() -> WalkerStart {
        WalkerStart { centres: vec![[0.0; 3]], spread: 1.0 }
    }
}

impl<S: Amplitude> System for SlaterJastrow<S> {
    type Places = Vec<[f64; 3]>;
    type State = Configuration<S>;
    type Start = WalkerStart;
    type Sweep = Sweep;
    type Resident = OnDevice;

    const TRIES: u64 = 100;
    const NO_START: &'static str =
        "are two orbitals the same, or do they vanish where the electrons start (`centres`, `spread`)?";

    fn count(&self) -> usize {
        let (up, down) = self.electrons();
        up + down
    }

    fn bytes(&self) -> u128 {
        let (up, down) = self.electrons();
        matrices::<S>(up * up + down * down)
    }

    fn random(&self, start: &WalkerStart, seed: u64, walker: u32, attempt: u64) -> Vec<[f64; 3]> {
        random_positions(self, seed, walker, attempt, start)
    }

    fn state(&self, places: Vec<[f64; 3]>) -> Result<Configuration<S>> {
        if places.len() != self.count() {
            return Err(Error::input(format!("the positions are not those of {} electrons", self.count()))
                .hint("give one position for each electron, those with spin up first"));
        }
        self.configuration(places)
    }

    fn good_start(&self, state: &Configuration<S>) -> Result<()> {
        state.determinants.iter().try_for_each(|d| d.regular())
    }

    fn places(state: &Configuration<S>) -> &Vec<[f64; 3]> {
        &state.positions
    }

    fn refresh(&self, state: &mut Configuration<S>) -> Result<f64> {
        SlaterJastrow::refresh(self, state)
    }

    fn sweep(
        &self,
        state: &mut Configuration<S>,
        sweep: &Sweep,
        draws: &SweepDraws,
        interrupt: &Interrupt,
    ) -> Result<usize> {
        sweep.check()?;
        scheme::run(self, state, sweep, draws, interrupt)
    }

    fn rank_shares(&self) -> Option<Vec<f64>> {
        rank_shares(self)
    }

    fn resident(&self, places: &[Vec<[f64; 3]>], seed: u64, first: u32) -> Result<Option<OnDevice>> {
        on_device(self, places, seed, first)
    }
}

fn random_positions<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    seed: u64,
    walker: u32,
    attempt: u64,
    start: &WalkerStart,
) -> Vec<[f64; 3]> {
    let (up, down) = psi.electrons();
    let dimension = psi.orbitals().dimension();
    let place = |i: usize| {
        // Counters above those of all sweeps.
        let element = |draw: u64| (1 << 63) | attempt << 24 | (i as u64) << 2 | draw;
        let draw = |k: u64| words(seed, Stream::Walkers as u32, element(k), walker);
        match psi.orbitals().cell() {
            Some(cell) => {
                let (a, b) = (draw(0), draw(1));
                let fractional = [unit(a[0], a[1]), unit(a[2], a[3]), unit(b[0], b[1])];
                cell.cartesian(fractional)
            }
            None => {
                let ((x, y), (z, _)) = (normals(draw(0)), normals(draw(1)));
                // The next walker goes on with the next place: one electron of many walkers is everywhere.
                let centre = start.centres[(i + walker as usize) % start.centres.len().max(1)];
                let shift = [x, if dimension > 1 { y } else { 0.0 }, if dimension > 2 { z } else { 0.0 }];
                std::array::from_fn(|k| centre[k] + start.spread * shift[k])
            }
        }
    };
    (0..up + down).map(place).collect()
}
