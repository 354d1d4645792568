//! Removal of sites: shapes cut out by a predicate, and vacancies. The sites that stay are numbered consecutively.

use std::sync::Arc;

use super::lattice::{Kept, Lattice};
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
        let mut at_site = |site: usize| {
            if site.is_multiple_of(1024) {
                steps.advance(site)?;
            }
            let full = self.full(site);
            self.position_into(&self.coordinates(full / basis), full % basis, &mut position);
            gone(&position)
        };
        self.without(&mut at_site, self.draws())
    }

    /// The lattice without each site with probability `fraction`: site `i` (as numbered here) goes when
    /// `unit(w0, w1) < fraction` for the words of `philox::words(seed, Stream::Vacancies, i, n)` in the call that follows `n`
    /// others.
    ///
    /// # Errors
    /// When the fraction is outside 0..1, no site is left, or the numbering does not fit into memory.
    pub fn vacancies(&self, fraction: f64, seed: u64) -> Result<Self> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::input(format!(
                "a fraction of vacancies lies between 0 and 1, not at {fraction}"
            )));
        }
        let draw = self.draws();
        let mut gone = |site: usize| {
            let w = philox::words(seed, Stream::Vacancies as u32, site as u64, draw);
            Ok(philox::unit(w[0], w[1]) < fraction)
        };
        self.without(&mut gone, draw + 1)
    }

    /// The lattice without some sites, as numbered before removals.
    ///
    /// # Errors
    /// As [`Lattice::remove`].
    pub(super) fn without_sites(&self, gone: &std::collections::HashSet<usize>) -> Result<Self> {
        self.without(&mut |site| Ok(gone.contains(&self.full(site))), self.draws())
    }

    fn draws(&self) -> u32 {
        self.kept.as_ref().map_or(0, |kept| kept.draws)
    }

    fn without(&self, gone: &mut dyn FnMut(usize) -> Result<bool>, draws: u32) -> Result<Self> {
        let all = self.all_sites();
        memory::ensure(16 * all as u128, &format!("numbering {all} sites"))?;
        let mut kept = Kept { full: Vec::new(), number: vec![usize::MAX; all], draws };
        for site in 0..self.sites() {
            if site.is_multiple_of(65536) {
                task::poll()?;
            }
            if !gone(site)? {
                let full = self.full(site);
                kept.number[full] = kept.full.len();
                kept.full.push(full);
            }
        }
        if kept.full.is_empty() {
            return Err(Error::input(format!("all {all} sites of the lattice were removed"))
                .hint("a lattice has one site at least"));
        }
        Ok(Lattice { kept: Some(Arc::new(kept)), ..self.clone() })
    }
}
