//! Many walkers at once. Each has its own random numbers and its own thread, so that neither their number nor that of the
//! threads changes what one of them does.

use std::sync::Arc;

use rayon::prelude::*;

use super::amplitude::Amplitude;
use super::scheme::{self, Draws, Sweep};
use super::wavefunction::{Configuration, SlaterJastrow};
use crate::error::{Error, Result};
use crate::number::philox::{Stream, normals, unit, words};
use crate::task::Interrupt;

/// Sweeps after which inverse matrices are computed anew.
const FRESH: u64 = 32;
/// Starting configurations that are tried.
const TRIES: u64 = 100;

/// Where walkers of an open system start.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// Electrons are dealt out to these places in turn.
    pub centres: Vec<[f64; 3]>,
    /// Standard deviation around them, in bohr.
    pub spread: f64,
}

impl Default for Start {
    fn default() -> Start {
        Start { centres: vec![[0.0; 3]], spread: 1.0 }
    }
}

/// Walkers of one wave function; those of this process, numbered from `first` on among all.
#[derive(Clone)]
pub struct Walkers<S> {
    psi: Arc<SlaterJastrow<S>>,
    walkers: Vec<Configuration<S>>,
    seed: u64,
    first: u32,
    sweep: u64,
    moved: u64,
    tried: u64,
    error: f64,
}

/// What a file holds of walkers.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// Key of the random numbers.
    pub seed: u64,
    /// Sweeps made.
    pub sweep: u64,
    /// Positions of every walker.
    pub positions: Vec<Vec<[f64; 3]>>,
}

impl<S: Amplitude> Walkers<S> {
    /// `count` walkers at random places: anywhere in a periodic cell, or as `start` says.
    ///
    /// # Errors
    /// When the wave function vanishes wherever a walker is put.
    pub fn new(psi: Arc<SlaterJastrow<S>>, count: usize, seed: u64, start: &Start) -> Result<Walkers<S>> {
        let (up, down) = psi.electrons();
        if up + down >= scheme::Draws::MOST {
            return Err(Error::input(format!("{} electrons", up + down)).hint("there can be two million"));
        }
        if count == 0 || count > 1 << 24 {
            return Err(Error::input(format!("{count} walkers")).hint("ask for one at least"));
        }
        let place = |walker: u32| -> Result<Configuration<S>> {
            let mut last = None;
            for attempt in 0..TRIES {
                let found = psi.configuration(random_positions(&psi, seed, walker, attempt, start));
                let regular = |c: &Configuration<S>| c.determinants.iter().try_for_each(|d| d.regular());
                match found.and_then(|c| regular(&c).map(|()| c)) {
                    Ok(configuration) => return Ok(configuration),
                    Err(e) => last = Some(e),
                }
            }
            let why = last.map(|e| e.message().to_string()).unwrap_or_default();
            Err(Error::numeric(format!("no start for a walker in {TRIES} random configurations: {why}"))
                .hint("are two orbitals the same, or do they vanish where the electrons start (`centres`, `spread`)?"))
        };
        let walkers = (0..count as u32).into_par_iter().map(place).collect::<Result<_>>()?;
        Ok(Walkers { psi, walkers, seed, first: 0, sweep: 0, moved: 0, tried: 0, error: 0.0 })
    }

    /// Walkers as they were saved: they go on as if nothing had happened.
    ///
    /// # Errors
    /// When the positions are not of as many electrons, or the wave function vanishes there.
    pub fn restored(psi: Arc<SlaterJastrow<S>>, saved: Saved) -> Result<Walkers<S>> {
        let (up, down) = psi.electrons();
        if saved.positions.is_empty() || saved.positions.iter().any(|p| p.len() != up + down) {
            return Err(Error::input(format!("the positions are not those of {} electrons", up + down)));
        }
        let walkers = saved.positions.into_par_iter().map(|p| psi.configuration(p)).collect::<Result<_>>()?;
        let (seed, sweep) = (saved.seed, saved.sweep);
        Ok(Walkers { psi, walkers, seed, first: 0, sweep, moved: 0, tried: 0, error: 0.0 })
    }

    /// What is needed to go on later. Inverse matrices are computed anew, as they will be there.
    ///
    /// # Errors
    /// When a walker sits on a node.
    pub fn save(&mut self) -> Result<Saved> {
        self.refresh()?;
        let positions = self.walkers.iter().map(|w| w.positions.clone()).collect();
        Ok(Saved { seed: self.seed, sweep: self.sweep, positions })
    }

    /// The wave function.
    pub fn psi(&self) -> &Arc<SlaterJastrow<S>> {
        &self.psi
    }

    /// The walkers.
    pub fn configurations(&self) -> &[Configuration<S>] {
        &self.walkers
    }

    /// Sweeps made since the start.
    pub fn sweeps(&self) -> u64 {
        self.sweep
    }

    /// The share of trial moves accepted since [`Walkers::forget`].
    pub fn acceptance(&self) -> f64 {
        if self.tried == 0 { 0.0 } else { self.moved as f64 / self.tried as f64 }
    }

    /// Forgets the acceptance so far.
    pub fn forget(&mut self) {
        (self.moved, self.tried) = (0, 0);
    }

    /// The largest error of an inverse matrix that was met when it was computed anew.
    pub fn inverse_error(&self) -> f64 {
        self.error
    }

    /// Exchanges the wave function, electrons staying where they are.
    ///
    /// # Errors
    /// When the new one has other electrons, or vanishes there.
    pub fn set_psi(&mut self, psi: Arc<SlaterJastrow<S>>) -> Result<()> {
        let positions = self.walkers.iter().map(|w| w.positions.clone()).collect();
        let saved = Saved { seed: self.seed, sweep: self.sweep, positions };
        *self = Walkers { first: self.first, ..Walkers::restored(psi, saved)? };
        Ok(())
    }

    /// `count` sweeps of every walker; returns the share of trial moves accepted in them.
    ///
    /// # Errors
    /// When the wave function is no number somewhere or the user stops the work; the walkers are then as before.
    pub fn run(&mut self, sweep: &Sweep, count: usize, interrupt: &Interrupt) -> Result<f64> {
        sweep.check()?;
        let before: Vec<Vec<[f64; 3]>> = self.walkers.iter().map(|w| w.positions.clone()).collect();
        let (psi, seed, first, start) = (self.psi.clone(), self.seed, self.first, self.sweep);
        let one = |(k, walker): (usize, &mut Configuration<S>)| -> Result<(usize, f64)> {
            let (mut moved, mut off) = (0, 0.0);
            for sweep_number in start..start + count as u64 {
                interrupt.check()?;
                let draws = Draws { seed, walker: first + k as u32, sweep: sweep_number };
                moved += scheme::run(&psi, walker, sweep, &draws, interrupt)?;
                if (sweep_number + 1) % FRESH == 0 {
                    off = f64::max(off, psi.refresh(walker)?);
                }
            }
            Ok((moved, off))
        };
        let results: Result<Vec<(usize, f64)>> = self.walkers.par_iter_mut().enumerate().map(one).collect();
        match results {
            Ok(results) => {
                let moved: usize = results.iter().map(|r| r.0).sum();
                let tried = (before.iter().map(Vec::len).sum::<usize>() * count) as u64;
                self.error = results.iter().map(|r| r.1).fold(self.error, f64::max);
                self.sweep += count as u64;
                self.moved += moved as u64;
                self.tried += tried;
                Ok(moved as f64 / tried.max(1) as f64)
            }
            Err(error) => {
                for (walker, positions) in self.walkers.iter_mut().zip(before) {
                    *walker = psi.configuration(positions)?;
                }
                Err(error)
            }
        }
    }

    /// Computes all inverse matrices anew.
    ///
    /// # Errors
    /// When a walker sits on a node.
    pub fn refresh(&mut self) -> Result<()> {
        let psi = self.psi.clone();
        let off = self.walkers.par_iter_mut().map(|w| psi.refresh(w)).collect::<Result<Vec<f64>>>()?;
        self.error = off.into_iter().fold(self.error, f64::max);
        Ok(())
    }
}

fn random_positions<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    seed: u64,
    walker: u32,
    attempt: u64,
    start: &Start,
) -> Vec<[f64; 3]> {
    let (up, down) = psi.electrons();
    let dimension = psi.orbitals().dimension();
    let place = |i: usize| {
        // Above all counters of sweeps.
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
                let centre = start.centres[i % start.centres.len().max(1)];
                let shift = [x, if dimension > 1 { y } else { 0.0 }, if dimension > 2 { z } else { 0.0 }];
                std::array::from_fn(|k| centre[k] + start.spread * shift[k])
            }
        }
    };
    (0..up + down).map(place).collect()
}
