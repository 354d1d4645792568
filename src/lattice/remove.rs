//! Removal of sites: shapes cut out by a predicate, and vacancies. The sites that stay are numbered consecutively.

use std::sync::Arc;

use rayon::prelude::*;

use super::lattice::{CHUNK, Lattice, Renumbering};
use crate::error::{Error, Result};
use crate::number::memory;
use crate::number::philox::{self, Stream};
use crate::task::{self, Task};

impl Lattice {
    /// The lattice without the sites for whose position `gone` is true.
    ///
    /// # Errors
    /// Those of `gone`; when no site is left; when the numbering does not fit into memory; interruption.
    pub fn remove(&self, gone: &mut dyn FnMut(&[f64]) -> Result<bool>, task: &Task) -> Result<Self> {
        let steps = task.start("removing sites", self.sites());
        let mut position = vec![0.0; self.space()];
        let basis = self.basis.len();
        let mut stays = self.all_stay()?;
        for (site, stays) in stays.iter_mut().enumerate() {
            if site.is_multiple_of(1024) {
                steps.advance(site)?;
            }
            let full = self.full(site);
            self.position_into(&self.coordinates(full / basis), full % basis, &mut position);
            *stays = !gone(&position)?;
        }
        self.keeping(&stays, self.draws())
    }

    /// The lattice without each site with probability `fraction`: site `i` (as numbered here) goes when
    /// `unit(w0, w1) < fraction` for the words of `philox::words(seed, Stream::Vacancies, i, n)` in the call that
    /// follows `n` others.
    ///
    /// # Errors
    /// When the fraction is outside 0..1, no site is left, or the numbering does not fit into memory.
    pub fn vacancies(&self, fraction: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::input(format!(
                "a fraction of vacancies lies between 0 and 1, not at {fraction}"
            ))
            .hint("it is the probability that a site goes"));
        }
        let draw = self.draws();
        let mut stays = self.all_stay()?;
        let stop = task::current();
        stays.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, stays)| {
            stop.heed();
            for (stays, site) in stays.iter_mut().zip(chunk * CHUNK..) {
                let w = philox::words(seed, Stream::Vacancies as u32, site as u64, draw);
                *stays = philox::unit(w[0], w[1]) >= fraction;
            }
        });
        self.keeping(&stays, draw + 1)
    }

    /// The lattice without some sites, as numbered before removals.
    ///
    /// # Errors
    /// As [`Lattice::remove`].
    pub(super) fn without_sites(&self, gone: &std::collections::HashSet<usize>) -> Result<Self> {
        let stays: Vec<bool> = (0..self.sites()).map(|site| !gone.contains(&self.full(site))).collect();
        self.keeping(&stays, self.draws())
    }

    pub(super) fn draws(&self) -> u32 {
        self.kept.as_ref().map_or(0, |kept| kept.draws)
    }

    /// A mark for each site.
    fn all_stay(&self) -> Result<Vec<bool>> {
        memory::ensure(17 * self.all_sites() as u128, &format!("numbering {} sites", self.all_sites()))?;
        Ok(vec![true; self.sites()])
    }

    /// The lattice with the sites that stay.
    fn keeping(&self, stays: &[bool], draws: u32) -> Result<Self> {
        let all = self.all_sites();
        let stop = task::current();
        // How many stay before each chunk.
        let mut first: Vec<usize> =
            stays.par_chunks(CHUNK).map(|c| c.iter().filter(|s| **s).count()).collect();
        let total = first.iter_mut().fold(0, |sum, n| sum + std::mem::replace(n, sum));
        if total == 0 {
            return Err(Error::input(format!("all {all} sites of the lattice were removed"))
                .hint("a lattice has one site at least"));
        }
        let mut full = vec![0; total];
        let mut parts = Vec::with_capacity(first.len());
        let mut rest = full.as_mut_slice();
        for (k, &begin) in first.iter().enumerate() {
            let end = first.get(k + 1).copied().unwrap_or(total);
            let (own, others) = std::mem::take(&mut rest).split_at_mut(end - begin);
            parts.push(own);
            rest = others;
        }
        parts.into_par_iter().zip(stays.par_chunks(CHUNK)).enumerate().for_each(|(chunk, (full, stays))| {
            stop.heed();
            let sites = (chunk * CHUNK..).zip(stays).filter(|(_, stays)| **stays);
            full.iter_mut().zip(sites).for_each(|(full, (site, _))| *full = self.full(site));
        });
        // Sites ascend before removals too: each chunk of them is a run of those that stay.
        let mut number = vec![usize::MAX; all];
        number.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, number)| {
            stop.heed();
            let (begin, end) = (chunk * CHUNK, chunk * CHUNK + number.len());
            let from = full.partition_point(|&full| full < begin);
            let here = (from..).zip(&full[from..]).take_while(|(_, full)| **full < end);
            here.for_each(|(site, full)| number[full - begin] = site);
        });
        let grown = self.kept.as_ref().is_some_and(|kept| kept.grown);
        Ok(Lattice { kept: Some(Arc::new(Renumbering { full, number, draws, grown })), ..self.clone() })
    }
}
