//! Divides walkers between the parts that move them. The random numbers of a walker depend on its number among all
//! walkers, so it moves in the same way on any part.

use std::any::Any;
use std::sync::Arc;

use super::{Helpers, SplitBackend};
use crate::backend::Device;
use crate::backend::splines::{Planes, SplineBatch, SplineShape, SplineTable, Splines};
use crate::backend::walkers::{
    DeviceWalkers, EnergySpec, MonteCarlo, Sweep, SweepResult, WalkerEnergies, WalkersSpec, monte_carlo,
};
use crate::error::{Error, Result};
use crate::ranks::weighted;

/// A table that several parts have, in their order. What is evaluated, the first of them evaluates.
struct SplitSplines {
    first: Arc<dyn Splines>,
    others: Vec<Arc<dyn Splines>>,
}

impl Splines for SplitSplines {
    fn shape(&self) -> &SplineShape {
        self.first.shape()
    }

    fn bytes(&self) -> usize {
        std::iter::once(&self.first).chain(&self.others).map(|table| table.bytes()).sum()
    }

    fn evaluate(&self, points: &[[f64; 3]], out: Planes<'_>) -> Result<()> {
        self.first.evaluate(points, out)
    }

    fn batch(&self, points: &[[f64; 3]]) -> Result<Box<dyn SplineBatch + '_>> {
        self.first.batch(points)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A table as the part has it that is number `at` of those with walkers.
fn of_part(table: &Arc<dyn Splines>, at: usize) -> Result<Arc<dyn Splines>> {
    let all = table.as_any().downcast_ref::<SplitSplines>();
    let own = all.and_then(|all| if at == 0 { Some(&all.first) } else { all.others.get(at - 1) });
    own.cloned().ok_or_else(|| Error::internal("orbitals of another backend than the walkers"))
}

/// The walkers of each part, in the order of their numbers.
struct SplitWalkers {
    parts: Vec<Box<dyn DeviceWalkers>>,
    helpers: Arc<Helpers>,
}

impl SplitWalkers {
    /// What `f` makes of the walkers of every part, all at once.
    fn at_once<R: Send>(&mut self, f: impl Fn(&mut dyn DeviceWalkers) -> Result<R> + Sync) -> Result<Vec<R>> {
        let all = self.parts.iter_mut().collect();
        self.helpers.each(true, all, |walkers: &mut Box<dyn DeviceWalkers>| f(&mut **walkers))
    }
}

impl DeviceWalkers for SplitWalkers {
    fn sweeps(
        &mut self,
        sweep: &Sweep,
        from: u64,
        count: u64,
        fresh: u64,
    ) -> Result<SweepResult<Vec<[f64; 3]>>> {
        let mut all = SweepResult { places: Vec::new(), moved: 0, error: 0.0 };
        for part in self.at_once(|walkers| walkers.sweeps(sweep, from, count, fresh))? {
            all.places.extend(part.places);
            all.moved += part.moved;
            all.error = f64::max(all.error, part.error);
        }
        Ok(all)
    }

    fn refresh(&mut self) -> Result<f64> {
        Ok(self.at_once(|walkers| walkers.refresh())?.into_iter().fold(0.0, f64::max))
    }

    fn energies(&mut self, spec: &EnergySpec) -> Result<Vec<WalkerEnergies>> {
        Ok(self.at_once(|walkers| walkers.energies(spec))?.concat())
    }

    fn product(&mut self) -> Result<()> {
        self.parts.iter_mut().try_for_each(|walkers| walkers.product())
    }
}

impl SplitBackend {
    /// The parts that have walkers, with their weights.
    fn walking(&self) -> Vec<(&Device, f64)> {
        let all = self.parts.iter().zip(self.cuts.shares.of_one_kind());
        all.filter(|(_, weight)| *weight > 0.0).collect()
    }
}

impl MonteCarlo for SplitBackend {
    fn splines(&self, table: Arc<SplineTable>) -> Result<Arc<dyn Splines>> {
        let walking = self.walking();
        let brought = walking.iter().map(|(device, _)| monte_carlo(device)?.splines(table.clone()));
        let mut brought = brought.collect::<Result<Vec<_>>>()?.into_iter();
        let first = brought.next().ok_or_else(|| Error::internal("no part for splines"))?;
        Ok(match brought.len() {
            0 => first,
            _ => Arc::new(SplitSplines { first, others: brought.collect() }),
        })
    }

    fn walkers(&self, spec: WalkersSpec) -> Result<Option<Box<dyn DeviceWalkers>>> {
        let walking = self.walking();
        if let [(device, _)] = walking[..] {
            return monte_carlo(device)?.walkers(spec);
        }
        let weights: Vec<f64> = walking.iter().map(|(_, weight)| *weight).collect();
        let starts = weighted(spec.positions.len(), &weights);
        let mut parts = Vec::new();
        for (at, (device, _)) in walking.iter().enumerate() {
            let own = starts[at]..starts[at + 1];
            if own.is_empty() {
                continue;
            }
            let spec = WalkersSpec {
                orbitals: of_part(&spec.orbitals, at)?,
                energies: spec.energies.as_ref().map(|table| of_part(table, at)).transpose()?,
                first: spec.first + own.start as u32,
                positions: spec.positions[own].to_vec(),
                ..spec.clone()
            };
            let Some(walkers) = monte_carlo(device)?.walkers(spec)? else { return Ok(None) };
            parts.push(walkers);
        }
        Ok(Some(Box::new(SplitWalkers { parts, helpers: self.helpers.clone() })))
    }
}
