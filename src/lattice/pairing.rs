//! Superconductivity: terms of pairs, and of spins, in a model with electrons and holes.

use std::sync::Arc;

use super::block::OrbitalBlock;
use super::lattice::Bond;
use super::model::{Hop, HopValue, Model, OfBond, OfPosition};
use super::nambu::{Holes, PairedParticles, charge, field, twice};
use super::table::BlockTable;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task::Task;

impl Model {
    /// Gives every site rows for holes after those for electrons, if it has none. Terms that are there, and those that
    /// come, act on both.
    ///
    /// # Errors
    /// Holes of another kind that are there, a strained model, too many orbitals, no memory.
    pub fn with_holes(&mut self, holes: Holes) -> Result<()> {
        match self.holes {
            Some(own) if own == holes => return Ok(()),
            Some(_) => {
                return Err(Error::input("pairs of opposite spins and pairs without spin in one model")
                    .hint(
                        "use a model with both spins as orbitals, and `spin: \"none\"` for every pairing",
                    ));
            }
            None => {}
        }
        self.unstrained("a pairing is added")?;
        let n = self.orbitals;
        let rows = self.lattice.all_sites().checked_mul(2 * n);
        if 2 * n > 4096 || rows.is_none_or(|rows| rows > i64::MAX as usize) {
            return Err(Error::input(format!("electrons and holes in {n} orbitals per site"))
                .hint("a site has 1 to 4096 rows"));
        }
        let tables = self.local.iter().map(|table| table.blocks().len());
        let hops = self.hops.iter().map(|hop| match &hop.value {
            HopValue::Uniform(_) => 1,
            HopValue::PerCell(table) => table.blocks().len(),
        });
        let blocks = tables.chain(hops).sum::<usize>() as u128;
        memory::ensure(64 * (n * n) as u128 * blocks, "the terms of electrons and holes")?;
        let both = |table: &Arc<BlockTable>| Arc::new(table.each(charge));
        self.uniform.iter_mut().for_each(|block| *block = charge(block));
        self.local.iter_mut().for_each(|table| *table = both(table));
        for hop in Arc::make_mut(&mut self.hops) {
            hop.value = match &hop.value {
                HopValue::Uniform(block) => HopValue::Uniform(charge(block)),
                HopValue::PerCell(table) => HopValue::PerCell(both(table)),
            };
        }
        if let Some(offsets) = &self.offsets {
            self.offsets = Some(Arc::new(twice(offsets, n)));
        }
        self.orbitals = 2 * n;
        self.holes = Some(holes);
        Ok(())
    }

    /// Adds the same pairing on every site; holes come with it.
    ///
    /// # Errors
    /// As [`Model::with_holes`]; a block of another size, not finite, or without the symmetry of the pair.
    pub fn pair(&mut self, block: &OrbitalBlock, kind: PairedParticles) -> Result<()> {
        block.check(self.particles(), "the pairing")?;
        // A pairing of nothing is good for holes alone.
        let pair = kind.on_site(block)?;
        self.with_holes(kind.holes())?;
        self.uniform.iter_mut().for_each(|u| u.add(&pair));
        Ok(())
    }

    /// Adds a pairing on every site that a function of its position gives.
    ///
    /// # Errors
    /// As [`Model::pair`], those of the function, interruption.
    pub fn pair_with(&mut self, term: &mut OfPosition<'_>, kind: PairedParticles, task: &Task) -> Result<()> {
        let mut next = self.clone();
        next.with_holes(kind.holes())?;
        next.local_with(term, "the pairing", &|block| kind.on_site(block), task)?;
        *self = next;
        Ok(())
    }

    /// Adds a pairing on each site, the same number for all its orbitals.
    ///
    /// # Errors
    /// As [`Model::pair`], and for a number of values that is not that of the sites.
    pub fn pair_each(&mut self, values: &[C64], kind: PairedParticles) -> Result<()> {
        let (sites, n) = (self.lattice.sites(), self.particles());
        if values.len() != sites {
            return Err(Error::input(format!("{} pairings for {sites} sites", values.len()))
                .hint("give one for each site, in the order of their numbers"));
        }
        if let Some(site) = values.iter().position(|z| !z.is_finite()) {
            return Err(Error::input(format!("the pairing of site {site} is {}", values[site]))
                .hint("look for a division by zero"));
        }
        // Only a singlet pairs an orbital with itself.
        if let Some(some) = values.iter().find(|z| **z != C64::ZERO) {
            kind.on_site(&OrbitalBlock::scalar(n, *some))?;
        }
        memory::ensure(16 * sites as u128, &format!("the pairing on {sites} sites"))?;
        self.with_holes(kind.holes())?;
        self.singlets.push(Arc::new(values.to_vec()));
        Ok(())
    }

    /// Adds a pairing of site `from` of every cell with site `to` of the cell displaced by `shift`: `block` creates a
    /// pair of an electron there (rows) and one here (columns).
    ///
    /// # Errors
    /// As [`Model::pair`] and [`Model::hop_between`]; a bond over a boundary with a complex phase.
    pub fn pair_between(
        &mut self,
        shift: &[i64],
        from: usize,
        to: usize,
        block: &OrbitalBlock,
        kind: PairedParticles,
    ) -> Result<()> {
        let bond = self.paired_bond(shift, from, to)?;
        self.untwisted(shift)?;
        block.check(self.particles(), "the pairing")?;
        self.with_holes(kind.holes())?;
        let value = HopValue::Uniform(kind.on_bond(block));
        self.add_hop(Hop { bond, value, scale: None, pairing: true });
        Ok(())
    }

    /// Adds a pairing over bonds that a function of the two positions gives.
    ///
    /// # Errors
    /// As [`Model::pair_between`], those of the function, interruption.
    pub fn pair_between_with(
        &mut self,
        shift: &[i64],
        from: usize,
        to: usize,
        term: &mut OfBond<'_>,
        kind: PairedParticles,
        task: &Task,
    ) -> Result<()> {
        self.untwisted(shift)?;
        let bond = self.paired_bond(shift, from, to)?;
        let table = self.table_of_bond(&bond, term, "the pairing", &|block| kind.on_bond(block), task)?;
        self.with_holes(kind.holes())?;
        self.add_hop(Hop { bond, value: HopValue::PerCell(Arc::new(table)), scale: None, pairing: true });
        self.simplify_last();
        Ok(())
    }

    /// A bond between two sites; pairs on one site are no bond.
    fn paired_bond(&self, shift: &[i64], from: usize, to: usize) -> Result<Bond> {
        if from == to && shift.iter().all(|x| *x == 0) {
            return Err(Error::input("a pairing over no distance")
                .hint("pairs on each site are given without a displacement"));
        }
        self.checked_bond(shift, from, to)
    }

    /// An error where a bond crosses a boundary at which electrons gain a phase that is not real: a pair would gain it
    /// twice, and a uniform pairing not at all.
    pub(super) fn untwisted(&self, shift: &[i64]) -> Result<()> {
        let twisted = |(wrap, x): (&Wrap, &i64)| *x != 0 && matches!(wrap, Wrap::Phase(p) if p.im != 0.0);
        if self.lattice.wrap().iter().zip(shift).any(twisted) {
            return Err(Error::input("a pairing over a boundary with a complex phase").hint(
                "pairs need periodic, antiperiodic or open boundaries. Another phase is a flux, which acts twice on \
                 pairs: put it \
                 into the hoppings and the pairing. A momentum is not a flux; give it when the matrix is made",
            ));
        }
        Ok(())
    }

    /// The term that is added for spin up and subtracted for spin down.
    fn checked_field(&self, block: &OrbitalBlock) -> Result<OrbitalBlock> {
        block.check(self.particles(), "the Zeeman term")?;
        Ok(field(&block.hermitian("the Zeeman term")?))
    }

    fn with_spins(&self) -> Result<()> {
        match self.holes {
            Some(Holes::OtherSpin) => Ok(()),
            Some(Holes::Own) => Err(Error::input("a Zeeman term where orbitals have their own holes")
                .hint("give the model orbitals for both spins: the term is an on-site matrix then")),
            None => Err(Error::input("a Zeeman term in a model without spins")
                .hint("a pairing, even of zero, gives the model spins; or use two orbitals per site")),
        }
    }

    /// Adds a term to spin up and subtracts it from spin down, on every site.
    ///
    /// # Errors
    /// A model without holes of the other spin; as [`Model::onsite`].
    pub fn zeeman(&mut self, block: &OrbitalBlock) -> Result<()> {
        self.with_spins()?;
        let block = self.checked_field(block)?;
        self.uniform.iter_mut().for_each(|u| u.add(&block));
        Ok(())
    }

    /// The same, given by a function of the site's position.
    ///
    /// # Errors
    /// As [`Model::zeeman`] and [`Model::onsite_with`].
    pub fn zeeman_with(&mut self, term: &mut OfPosition<'_>, task: &Task) -> Result<()> {
        self.with_spins()?;
        let make = |block: &OrbitalBlock| Ok(field(&block.hermitian("the Zeeman term")?));
        self.local_with(term, "the Zeeman term", &make, task)
    }

    /// The same, one number a site.
    ///
    /// # Errors
    /// As [`Model::zeeman`] and [`Model::onsite_each`].
    pub fn zeeman_each(&mut self, energies: Vec<f64>) -> Result<()> {
        self.with_spins()?;
        let energies = self.one_a_site(energies)?;
        self.fields.push(energies);
        Ok(())
    }
}
