//! Disorder of a model: random energies, with and without correlations, random bonds, impurities.

use std::sync::Arc;

use super::block::OrbitalBlock;
use super::lattice::Lattice;
use super::model::Model;
use super::noise::correlated;
use super::random::{Disorder, DisorderDistribution};
use super::table::Builder;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::memory;
use crate::number::philox::{self, Stream};
use crate::task::{self, Task};

/// Lengths of correlations in a periodic sample, at least.
const AROUND: f64 = 8.0;

fn check_width(width: f64) -> Result<()> {
    if width >= 0.0 && width.is_finite() {
        return Ok(());
    }
    Err(Error::input(format!("the width of the disorder is {width}, which is no width"))
        .hint("a width is finite, zero or above"))
}

impl Model {
    /// Adds Anderson disorder: site `i` gets the energy `width * (unit(w0, w1) - 1/2)` on all its orbitals, with the
    /// words of `philox::words(seed, Stream::Disorder, i, n)` in the call that follows `n` others of any kind.
    ///
    /// # Errors
    /// When the width is negative or not finite.
    pub fn disorder(&mut self, width: f64, seed: u64) -> Result<()> {
        self.random_energies(width, seed, DisorderDistribution::Uniform)
    }

    /// The same with `width` times numbers of any distribution.
    ///
    /// # Errors
    /// As [`Model::disorder`].
    pub fn random_energies(
        &mut self,
        width: f64,
        seed: u64,
        distribution: DisorderDistribution,
    ) -> Result<()> {
        check_width(width)?;
        if width > 0.0 {
            let draw = self.next_draw();
            self.disorder.push(Disorder { width, seed, draw, distribution });
        }
        Ok(())
    }

    pub(super) fn next_draw(&mut self) -> u32 {
        self.draws += 1;
        self.draws - 1
    }

    /// Adds Gaussian random energies of standard deviation `width` with correlations `exp(-r^2/(2 length^2))`.
    ///
    /// # Errors
    /// As [`Model::disorder`]; a length that is none, or longer than an eighth of the sample where that is periodic; no
    /// memory, interruption.
    pub fn correlated_disorder(&mut self, width: f64, length: f64, seed: u64, task: &Task) -> Result<()> {
        check_width(width)?;
        if !(length > 0.0 && length.is_finite()) {
            return Err(Error::input(format!("a correlation over a length of {length}"))
                .hint("lengths are in lattice constants, above zero"));
        }
        // Sites that are gone leave the energies of the others as they are.
        let lattice = Lattice { kept: None, ..self.lattice.clone() };
        for (d, wrap) in lattice.wrap().iter().enumerate() {
            // The distance of the lattice's planes: their number over the length of the reciprocal vector.
            let slope = lattice.inverse[d].iter().map(|x| x * x).sum::<f64>().sqrt();
            let across = lattice.cells()[d] as f64 / slope;
            if *wrap != Wrap::Open && across < AROUND * length {
                return Err(Error::input(format!(
                    "a correlation over {length} in a periodic sample that is {across:.3} across"
                ))
                .hint("the sample must be eight times as long, or open"));
            }
        }
        let draw = self.next_draw();
        let noise = |point: usize| DisorderDistribution::Gaussian.number(seed, Stream::Disorder, point, draw);
        let all = correlated(&lattice, length, noise, task)?;
        let energy = |site| width * all[self.lattice.full(site)];
        let energies = (0..self.lattice.sites()).map(energy).collect();
        self.energies.push(Arc::new(energies));
        Ok(())
    }

    /// Multiplies every hopping that is there by `1 + width x`, `x` a random number for each bond.
    ///
    /// # Errors
    /// A width that is none, a strained model, no hoppings, no memory, interruption.
    pub fn bond_disorder(
        &mut self,
        width: f64,
        seed: u64,
        distribution: DisorderDistribution,
        task: &Task,
    ) -> Result<()> {
        check_width(width)?;
        self.unstrained("bond disorder is added")?;
        let cells = self.lattice.cell_count();
        let hops = self.hops.iter().filter(|hop| !hop.pairing).count();
        if hops == 0 {
            return Err(Error::input("bond disorder in a model without hoppings")
                .hint("it acts on the hoppings that are there: add them before"));
        }
        if width == 0.0 {
            return Ok(());
        }
        memory::ensure(
            8 * (hops * cells) as u128,
            &format!("the factors of {hops} hoppings in {cells} cells"),
        )?;
        let draw = self.next_draw();
        let steps = task.start("bonds", hops);
        for (k, hop) in Arc::make_mut(&mut self.hops).iter_mut().filter(|hop| !hop.pairing).enumerate() {
            if cells > 1024 || k.is_multiple_of(1024) {
                steps.advance(k)?;
            }
            let own = |cell: usize| {
                let x = distribution.number(seed, Stream::Bonds, k * cells + cell, draw);
                (1.0 + width * x) * hop.scale.as_ref().map_or(1.0, |scale| scale[cell])
            };
            hop.scale = Some(Arc::new((0..cells).map(own).collect()));
        }
        Ok(())
    }

    /// Adds an on-site term to each site with probability `fraction`: to site `i` when `unit(w0, w1) < fraction` for
    /// the words of `philox::words(seed, Stream::Impurities, i, n)` in the call that follows `n` disorders of any kind.
    /// Gives the number of sites that got it.
    ///
    /// # Errors
    /// A fraction outside 0..1; as [`Model::onsite`]; no memory.
    pub fn impurities(&mut self, fraction: f64, block: &OrbitalBlock, seed: u64) -> Result<usize> {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(Error::input(format!(
                "a fraction of impurities lies between 0 and 1, not at {fraction}"
            ))
            .hint("it is the probability that a site is one"));
        }
        let block = self.checked_onsite(block, "the term of the impurities")?;
        let none = OrbitalBlock::scalar(self.orbitals, 0.0);
        let sites = self.lattice.sites();
        memory::ensure(4 * sites as u128, &format!("a term on {sites} sites"))?;
        let draw = self.next_draw();
        let mut table = Builder::default();
        let mut count = 0;
        for site in 0..sites {
            if site.is_multiple_of(65536) {
                task::poll()?;
            }
            let w = philox::words(seed, Stream::Impurities as u32, site as u64, draw);
            let here = philox::unit(w[0], w[1]) < fraction;
            count += usize::from(here);
            table.push(Some(if here { block.clone() } else { none.clone() }))?;
        }
        self.local.push(Arc::new(table.finish()));
        Ok(count)
    }
}
