//! Infinite temperature as a pure state: every site is joined with a copy that nothing acts on, in one site of all
//! pairs of states (Verstraete, García-Ripoll, Cirac, Phys. Rev. Lett. 93, 207204 (2004)). Evolution in imaginary
//! time takes it to any temperature.

use std::collections::BTreeSet;

use faer::Mat;

use super::conserved::conserved;
use super::density::Truncation;
use super::space::{ChargeLabel, Fusion, Space};
use super::state::MatrixProductState;
use super::strings::Strings;
use super::tensor::MpsTensor;
use super::train::UncompressedState;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, Sector, Sites};
use crate::task::Task;

impl MatrixProductState<f64> {
    /// The sum of all product states of a sector, each times its copy, with equal weights and norm one, on the
    /// doubled sites; and the logarithm of their number. Besides the sector's numbers, the differences between a number
    /// of the sites and that of their copies are conserved: for all numbers, or for those that a Hamiltonian conserves.
    ///
    /// # Errors
    /// For sites of too many states, a sector without states, and a Hamiltonian that does not fit the sites.
    pub fn infinite_temperature(
        sites: &Sites,
        sector: &Sector,
        of: Option<&OpSum>,
        task: &Task,
    ) -> Result<(MatrixProductState<f64>, f64)> {
        let doubled = sites.doubled()?;
        let kept = of.map(|h| Strings::conserved(h, sites)).transpose()?;
        let kept = kept.unwrap_or_else(|| sites.charges().to_vec());
        let mut numbers = sector.clone();
        numbers.extend(kept.iter().map(|name| (Sites::difference(name), 0.0)));
        // By name, as sectors of scripts are.
        numbers.sort_by(|a, b| a.0.cmp(&b.0));
        // Checked first on the sites themselves, so that errors speak of those.
        if conserved(sites, sector)?.0.spin().is_some() {
            return Err(Error::input("infinite temperature in a sector of total spin")
                .hint("name Sz in place of S; exact sectors of S have temperatures"));
        }
        let (symmetry, target) = conserved(&doubled, &numbers)?;
        let n = sites.count();
        let alike: Vec<Vec<(usize, ChargeLabel)>> = (0..n)
            .map(|i| {
                let labels = symmetry.states(&doubled, i);
                let dim = labels.len().isqrt();
                (0..dim).map(|s| (s * dim + s, labels[s * dim + s].clone())).collect()
            })
            .collect();
        // The labels that lie on a path from the first site to the last.
        let mut reached = vec![BTreeSet::from([symmetry.zero()])];
        for states in &alike {
            task.check()?;
            let last = &reached[reached.len() - 1];
            let next = last.iter().flat_map(|q| states.iter().map(|(_, s)| symmetry.add(q, s))).collect();
            reached.push(next);
        }
        reached[n] = BTreeSet::from([target.clone()]);
        for i in (0..n).rev() {
            task.check()?;
            let (front, back) = reached.split_at_mut(i + 1);
            front[i].retain(|q| alike[i].iter().any(|(_, s)| back[0].contains(&symmetry.add(q, s))));
        }
        let spaces: Vec<Space> =
            reached.into_iter().map(|all| Space::of(all.into_iter().map(|q| (q, 1)).collect())).collect();
        let make = |i: usize| -> Result<MpsTensor<f64>> {
            task.check()?;
            let labels = symmetry.states(&doubled, i);
            let fusion = Fusion::new(&symmetry, &spaces[i], &labels);
            let weight = 1.0 / (alike[i].len() as f64).sqrt();
            let fill = |sector: usize| {
                let row = fusion.space().find(spaces[i + 1].label(sector));
                let parts = row.map_or(&[][..], |row| fusion.parts(row));
                let height = parts.iter().map(|p| p.dim).sum();
                let mut column = Mat::zeros(height, 1);
                for part in parts.iter().filter(|p| alike[i].iter().any(|a| a.0 == p.state)) {
                    column[(part.offset, 0)] = weight;
                }
                column
            };
            MpsTensor::new(&symmetry, &spaces[i], &labels, &spaces[i + 1], fill)
        };
        let like = MatrixProductState::zero(&doubled, &symmetry, &target);
        let raw = UncompressedState { like: &like, target: target.clone(), tensor: &make, least: 0.0 };
        let (state, _) = raw.compressed(&Truncation::default(), task)?;
        let all: f64 = alike.iter().map(|states| (states.len() as f64).ln()).sum();
        let log_states = all + 2.0 * state.norm().ln();
        Ok((state.with_norm(1.0), log_states))
    }
}
