//! What passes from lead to lead, kept for the energies that were asked for:
//! loops over pairs of leads ask again and again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::opening::Opening;
use super::{Particle, Sample, States};
use crate::error::{Error, Result};
use crate::task::Task;

/// Energies that are kept at most.
const MOST: usize = 4096;

/// What is known, by the bits of the energy. Copies of a sample share it.
#[derive(Debug, Clone, Default)]
pub(super) struct PassedByEnergy {
    all: Arc<Mutex<HashMap<u64, Arc<Passed>>>>,
    /// The leads at the energy that was asked for last.
    openings: Arc<Mutex<Option<(u64, Openings)>>>,
}

/// All leads of a sample at one energy.
pub(super) type Openings = Arc<Vec<Opening>>;

/// Probabilities at one energy.
#[derive(Debug, Clone)]
pub(super) struct Passed {
    /// Whether the channels of a lead are those of electrons and of holes.
    told: Vec<bool>,
    /// By the lead they come from, where that is known, and by the lead they go to: by kinds that come in and go out,
    /// electrons (or whatever there is) and holes.
    from: Vec<Option<Vec<[[f64; 2]; 2]>>>,
}

impl Particle {
    /// The kinds that are meant.
    fn kinds(self, told: bool, lead: usize) -> Result<Range<usize>> {
        match self {
            Particle::Any => Ok(0..2),
            Particle::Electron if told => Ok(0..1),
            Particle::Hole if told => Ok(1..2),
            _ => Err(Error::input(format!("channels of lead {lead} that are those of electrons or holes"))
                .hint("a normal lead beside a superconductor has a pairing of zero")),
        }
    }
}

impl Passed {
    /// From one lead to another.
    pub fn sum(&self, (from, sends): (usize, Particle), (to, takes): (usize, Particle)) -> Result<f64> {
        let (sent, taken) = (sends.kinds(self.told[from], from)?, takes.kinds(self.told[to], to)?);
        let Some(all) = &self.from[from] else {
            return Err(Error::internal("a lead that was not asked for"));
        };
        // The sum of nothing is -0.
        Ok(sent.flat_map(|s| taken.clone().map(move |t| all[to][s][t])).sum::<f64>() + 0.0)
    }

    /// Takes over what states say that come in through these leads.
    fn add(&mut self, states: &States, leads: &[usize]) {
        let kinds = |opening: &Opening| {
            let all = opening.back.nrows();
            let electrons = opening.electrons.unwrap_or(all);
            [0..electrons, electrons..all]
        };
        for (&lead, columns) in leads.iter().zip(&states.columns) {
            let to = states.out.iter().zip(&*states.openings).map(|(out, opening)| {
                let part = |sent: Range<usize>, taken: Range<usize>| -> f64 {
                    let each = |c| taken.clone().map(move |row| (row, columns.start + c));
                    sent.flat_map(each).map(|at| out[at].norm_sqr()).sum()
                };
                kinds(&states.openings[lead]).map(|s| kinds(opening).map(|t| part(s.clone(), t)))
            });
            self.from[lead] = Some(to.collect());
        }
    }
}

impl Sample {
    /// All leads at an energy, in the sample's gauge. None where one is not resolved.
    pub(super) fn openings(&self, energy: f64) -> Result<Option<Openings>> {
        let known = |new: Option<&Openings>| {
            let mut last = self.known.openings.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(new) = new {
                *last = Some((energy.to_bits(), new.clone()));
            }
            last.as_ref().filter(|(bits, _)| *bits == energy.to_bits()).map(|(_, openings)| openings.clone())
        };
        if let Some(openings) = known(None) {
            return Ok(Some(openings));
        }
        let mut openings = Vec::with_capacity(self.leads.len());
        for attached in &self.leads {
            let Some(opening) = attached.opening(energy)? else { return Ok(None) };
            openings.push(opening);
        }
        let openings = Arc::new(openings);
        known(Some(&openings));
        Ok(Some(openings))
    }

    /// What passes from a lead at an energy. All leads are solved together where their channels are no more than the
    /// rows of a slice; else the first lead that is asked for alone, the second together with all others.
    /// None where a lead is not resolved.
    pub(super) fn passed(&self, energy: f64, from: usize, task: &Task) -> Result<Option<Arc<Passed>>> {
        let known = |new: Option<Arc<Passed>>| {
            let mut all = self.known.all.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(new) = new {
                if all.len() >= MOST {
                    all.clear();
                }
                all.insert(energy.to_bits(), new);
            }
            all.get(&energy.to_bits()).cloned()
        };
        let before = known(None);
        if let Some(before) = before.as_ref().filter(|before| before.from[from].is_some()) {
            return Ok(Some(before.clone()));
        }
        let Some(openings) = self.openings(energy)? else { return Ok(None) };
        let channels: usize = openings.iter().map(|opening| opening.back.nrows()).sum();
        let (mut passed, asked): (Passed, Vec<usize>) = match before {
            Some(before) => {
                let missing = (0..self.leads.len()).filter(|lead| before.from[*lead].is_none()).collect();
                (Passed::clone(&before), missing)
            }
            None => {
                let all = (0..self.leads.len()).filter(|&lead| lead == from || channels <= self.slices().0);
                (Passed { told: Vec::new(), from: vec![None; self.leads.len()] }, all.collect())
            }
        };
        let Some(states) = self.states(energy, &asked, task)? else { return Ok(None) };
        passed.told = states.openings.iter().map(|opening| opening.electrons.is_some()).collect();
        passed.add(&states, &asked);
        Ok(known(Some(Arc::new(passed))))
    }
}
