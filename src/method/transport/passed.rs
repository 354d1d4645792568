//! Transmissions between leads, cached by energy, because loops over pairs of leads ask for them repeatedly.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::lead::ChannelKind;
use super::opening::Opening;
use super::{Particle, States, TransportSample};
use crate::error::{Error, Result};
use crate::number::format;
use crate::task::Task;

/// Energies that are kept at most.
const MOST: usize = 4096;

/// What is known, by the bits of the energy. Copies of a sample share it.
#[derive(Debug, Clone, Default)]
pub(super) struct PassedByEnergy {
    all: Arc<Mutex<HashMap<u64, Arc<ChannelProbabilities>>>>,
    /// The leads at the energy that was asked for last.
    openings: Arc<Mutex<Option<(u64, Openings)>>>,
    /// What is known beside the edge of a band that was asked for last.
    pub(super) edge: Arc<Mutex<Option<(u64, Arc<EdgeProbabilities>)>>>,
}

/// All leads of a sample at one energy.
pub(super) type Openings = Arc<Vec<Opening>>;

/// Probabilities at one energy.
#[derive(Debug, Clone)]
pub(super) struct ChannelProbabilities {
    /// The kinds of channels that each lead tells apart.
    told: Vec<Vec<ChannelKind>>,
    /// By the lead they come from, where that is known, and by the lead they go to: by kinds that come in and go out.
    from: Vec<Option<Vec<Vec<Vec<f64>>>>>,
}

/// What passes beside an energy, below and above, the nearest last, and by how much reflections of the leads may be
/// off.
#[derive(Debug)]
pub(super) struct EdgeProbabilities {
    pub(super) sides: [Vec<ChannelProbabilities>; 2],
    pub(super) off: [Vec<f64>; 2],
}

impl Particle {
    /// The kinds that are meant, by their numbers.
    fn kinds(self, told: &[ChannelKind], lead: usize) -> Result<Vec<usize>> {
        let of = |kind: &dyn Fn(&ChannelKind) -> bool| {
            (0..told.len()).filter(|k| kind(&told[*k])).collect::<Vec<_>>()
        };
        let found = match self {
            Particle::Any => return Ok((0..told.len()).collect()),
            Particle::Electron => of(&|kind| *kind == ChannelKind::Electrons),
            Particle::Hole => of(&|kind| *kind == ChannelKind::Holes),
            Particle::Carrying(x) => of(
                &|kind| matches!(kind, ChannelKind::Carrying(y) if (x - y).abs() <= 1e-6 * x.abs().max(1.0)),
            ),
        };
        if !found.is_empty() {
            return Ok(found);
        }
        let Particle::Carrying(x) = self else {
            return Err(Error::input(format!("lead {lead} does not distinguish electrons and holes"))
                .hint("a normal lead beside a superconductor has a pairing of zero"));
        };
        let value = |kind: &ChannelKind| {
            if let ChannelKind::Carrying(x) = kind { Some(format::real(*x, 6)) } else { None }
        };
        let values: Vec<String> = told.iter().filter_map(value).collect();
        let error = Error::input(format!("channels of lead {lead} that carry {}", format::real(x, 6)));
        Err(if values.is_empty() {
            error.hint("such a lead is made with the local matrix that it conserves")
        } else {
            error.hint(format!("the eigenvalues of its conserved matrix are {}", values.join(", ")))
        })
    }
}

impl ChannelProbabilities {
    /// From one lead to another.
    pub fn sum(&self, (from, sends): (usize, Particle), (to, takes): (usize, Particle)) -> Result<f64> {
        let (sent, taken) = (sends.kinds(&self.told[from], from)?, takes.kinds(&self.told[to], to)?);
        let Some(all) = &self.from[from] else {
            return Err(Error::internal("a lead that was not asked for"));
        };
        // The sum of nothing is -0.
        Ok(sent.iter().flat_map(|s| taken.iter().map(move |t| all[to][*s][*t])).sum::<f64>() + 0.0)
    }

    /// What states say that come in through all leads.
    pub fn of(states: &States) -> ChannelProbabilities {
        let leads: Vec<usize> = (0..states.columns.len()).collect();
        let mut all = ChannelProbabilities { told: told(&states.openings), from: vec![None; leads.len()] };
        all.add(states, &leads);
        all
    }

    /// Takes over what states say that come in through these leads.
    fn add(&mut self, states: &States, leads: &[usize]) {
        let kinds = |opening: &Opening| -> Vec<Range<usize>> {
            let mut end = 0;
            let range = |(_, count): &(ChannelKind, usize)| {
                end += count;
                end - count..end
            };
            opening.kinds.iter().map(range).collect()
        };
        for (&lead, columns) in leads.iter().zip(&states.columns) {
            let to = states.out.iter().zip(&*states.openings).map(|(out, opening)| {
                let part = |sent: Range<usize>, taken: Range<usize>| -> f64 {
                    let each = |c| taken.clone().map(move |row| (row, columns.start + c));
                    sent.flat_map(each).map(|at| out[at].norm_sqr()).sum()
                };
                let taken = kinds(opening);
                let by_taken = |s: Range<usize>| taken.iter().map(|t| part(s.clone(), t.clone())).collect();
                kinds(&states.openings[lead]).into_iter().map(by_taken).collect()
            });
            self.from[lead] = Some(to.collect());
        }
    }
}

/// The kinds of channels that each lead tells apart.
fn told(openings: &Openings) -> Vec<Vec<ChannelKind>> {
    openings.iter().map(|opening| opening.kinds.iter().map(|(kind, _)| *kind).collect()).collect()
}

impl TransportSample {
    /// Forgets what is known of energies: a self-energy has become another.
    pub fn forget(&self) {
        self.known.all.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.known.openings.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.known.edge.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

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
    pub(super) fn passed(
        &self,
        energy: f64,
        from: usize,
        task: &Task,
    ) -> Result<Option<Arc<ChannelProbabilities>>> {
        let known = |new: Option<Arc<ChannelProbabilities>>| {
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
        let (mut passed, asked): (ChannelProbabilities, Vec<usize>) = match before {
            Some(before) => {
                let missing = (0..self.leads.len()).filter(|lead| before.from[*lead].is_none()).collect();
                (ChannelProbabilities::clone(&before), missing)
            }
            None => {
                let all = (0..self.leads.len()).filter(|&lead| lead == from || channels <= self.slices().0);
                (ChannelProbabilities { told: Vec::new(), from: vec![None; self.leads.len()] }, all.collect())
            }
        };
        let Some(states) = self.states(energy, &asked, task)? else { return Ok(None) };
        passed.told = told(&states.openings);
        passed.add(&states, &asked);
        Ok(known(Some(Arc::new(passed))))
    }
}
