//! What samples on a lattice leave out: configurations beside the walkers, with local energies that no sample has.

use std::collections::BTreeMap;

use super::energy::LocalSum;
use super::state::{ElectronHop, LatticeState, OccupiedSites};
use super::walkers::LatticeWalkers;
use crate::error::Result;
use crate::montecarlo::amplitude::Amplitude;

/// Local energies are outside those of the samples from this part of their size on; nearer ones differ by rounding.
const APART: f64 = 1e-9;

/// Configurations that no sample has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Unsampled {
    /// Their probability, if that of the samples is one.
    pub weight: f64,
    /// The sum of their local energies, each times its probability.
    pub energy: f64,
}

/// So many neighbours tell how many places a configuration is seen from.
const PLACES: usize = 16;

/// Sites of each spin.
type Sites = [Vec<usize>; 2];

impl LocalSum {
    /// The configurations that the sum connects with one, and their probabilities over its own.
    fn neighbours<S: Amplitude>(
        &self,
        state: &LatticeState<S>,
        occupied: &OccupiedSites<S>,
    ) -> Vec<(Sites, f64)> {
        let after = |hops: &[ElectronHop]| {
            let mut sites = [0, 1].map(|spin| -> Vec<usize> {
                occupied.places[spin].iter().map(|site| *site as usize).collect()
            });
            hops.iter().for_each(|&(spin, electron, to)| sites[spin][electron] = to);
            // Electrons of one spin are alike.
            sites.iter_mut().for_each(|sites| sites.sort_unstable());
            sites
        };
        let mut found: BTreeMap<Sites, f64> = BTreeMap::new();
        for hops in self.moves(occupied) {
            found.entry(after(&hops)).or_insert_with(|| state.ratio(occupied, &hops).square());
        }
        found.into_iter().filter(|(_, share)| *share > 0.0).collect()
    }

    /// An estimate of what lies beyond the samples: configurations that the sum connects with the walkers, with local
    /// energies outside `sampled`, the lowest and the highest of all samples. At most `count` of them are looked at for
    /// each walker. A configuration that is seen from n configurations of the samples' energies counts as 1/n at each:
    /// so the estimate is that of the walkers' distribution, and leaves out only what none of the samples is beside.
    ///
    /// # Errors
    /// As [`LocalSum::local_values`].
    pub fn unsampled<S: Amplitude>(
        &self,
        walkers: &mut LatticeWalkers<S>,
        sampled: (f64, f64),
        count: usize,
    ) -> Result<Unsampled> {
        self.on_sites_of(walkers)?;
        let state = walkers.psi().clone();
        let (low, high) = sampled;
        let scale = self.largest().max(low.abs()).max(high.abs());
        let parts = walkers.each(|number, walker| {
            let beside = self.neighbours(&state, walker);
            let every = beside.len().div_ceil(count.max(1)).max(1);
            let looked = beside.iter().skip(number % every).step_by(every);
            let share = beside.len() as f64 / looked.clone().count().max(1) as f64;
            // The local energy, if a configuration has one: a determinant of zero within rounding has no weight.
            let energy = |[up, down]: &Sites| {
                let there = state.occupied(up, down).ok()?;
                let energy = self.local(&state, &there).re;
                Some((there, energy))
            };
            let inside = |energy: f64| {
                let apart = APART * scale.max(energy.abs());
                energy >= low - apart && energy <= high + apart
            };
            let mut found = [0.0, 0.0];
            for (sites, probability) in looked {
                let Some((there, own)) = energy(sites).filter(|(_, own)| !inside(*own)) else { continue };
                let around = self.neighbours(&state, &there);
                let every = around.len().div_ceil(PLACES).max(1);
                let seen = around
                    .iter()
                    .step_by(every)
                    .filter(|(sites, _)| energy(sites).is_some_and(|(_, energy)| inside(energy)));
                let weight = share * probability / (seen.count() * every).max(1) as f64;
                found[0] += weight;
                found[1] += weight * own;
            }
            Ok(found)
        })?;
        let sum = |k: usize| parts.iter().map(|part| part[k]).sum::<f64>() / parts.len().max(1) as f64;
        Ok(Unsampled { weight: sum(0), energy: sum(1) })
    }
}
