//! Single nearest-neighbour bonds: terms that differ between bonds, and the places of their elements in matrices.

use super::block::OrbitalBlock;
use super::lattice::{Arrival, Lattice, MAX_DIMENSION};
use super::model::{Hop, HopValue, Model};
use super::nambu::PairedParticles;
use super::table::Builder;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task;

/// One bond of a lattice.
struct JoinedBond {
    /// The number of the bond of the cell.
    bond: usize,
    /// The cell that it leaves, and its coordinates.
    cell: usize,
    at: [i64; MAX_DIMENSION],
    /// The sites that it leaves and reaches.
    from: usize,
    to: usize,
    landing: Arrival,
}

/// A bond as an element of matrices: row `to`, column `from`.
#[derive(Debug, Clone)]
pub struct BondElement {
    pub from: usize,
    pub to: usize,
    /// How many boundaries are crossed on the way to `to`, in each direction of the lattice.
    pub copy: [i64; MAX_DIMENSION],
    /// The conjugate of what magnetic fields multiply the element by.
    pub factor: C64,
}

impl Lattice {
    /// Every nearest-neighbour bond once, by the site that it leaves and its number in the cell.
    fn each_joined(&self, visit: &mut dyn FnMut(&JoinedBond) -> Result<()>) -> Result<()> {
        let basis = self.basis().len();
        for from in 0..self.sites() {
            if from.is_multiple_of(1024) {
                task::poll()?;
            }
            let full = self.full(from);
            let (cell, at) = (full / basis, self.coordinates(full / basis));
            for (k, bond) in self.bonds().iter().enumerate().filter(|(_, bond)| bond.from == full % basis) {
                if let Some(landing) = self.land(&at, &bond.shift, 1)
                    && let Some(to) = self.number(landing.cell * basis + bond.to)
                {
                    visit(&JoinedBond { bond: k, cell, at, from, to, landing })?;
                }
            }
        }
        Ok(())
    }

    /// Every nearest-neighbour bond once: two sites `(i, j)` and the boundary phase of the matrix element of row `i`
    /// and column `j`. A periodic direction of two cells has each of its bonds twice,
    /// one of a single cell joins sites to themselves.
    ///
    /// # Errors
    /// No memory, interruption.
    pub fn joined(&self) -> Result<Vec<(usize, usize, C64)>> {
        let mut found = Vec::new();
        self.each_joined(&mut |bond| {
            found.push((bond.from, bond.to, self.phase(&bond.landing)));
            Ok(())
        })?;
        Ok(found)
    }
}

impl Model {
    /// Adds a hopping to each nearest-neighbour bond, and its conjugate: blocks in the order of [`Lattice::joined`],
    /// each from the site that the bond leaves to that it reaches.
    ///
    /// # Errors
    /// Another number of blocks than of bonds; a block of the wrong size or not finite.
    pub fn nearest_each(&mut self, blocks: &[OrbitalBlock]) -> Result<()> {
        self.unstrained("a hopping is added")?;
        let charged = |model: &Self, block: &OrbitalBlock| model.both(block.clone());
        self.each_nearest(blocks, "hopping", &charged, false)
    }

    /// Adds a pairing to each nearest-neighbour bond: blocks in the order of [`Lattice::joined`], rows of the site that
    /// it reaches, columns of that it leaves.
    ///
    /// # Errors
    /// As [`Model::nearest_each`] and [`Model::pair_between`].
    pub fn pair_nearest(&mut self, blocks: &[OrbitalBlock], kind: PairedParticles) -> Result<()> {
        for bond in self.nearest_bonds()? {
            self.untwisted(&bond.shift)?;
        }
        self.with_holes(kind.holes())?;
        self.each_nearest(blocks, "pairing", &|_, block| kind.on_bond(block), true)
    }

    /// Adds a block to each nearest-neighbour bond.
    fn each_nearest(
        &mut self,
        blocks: &[OrbitalBlock],
        what: &str,
        make: &dyn Fn(&Self, &OrbitalBlock) -> OrbitalBlock,
        pairing: bool,
    ) -> Result<()> {
        let bonds = self.nearest_bonds()?;
        let cells = self.lattice.cell_count();
        memory::ensure(
            8 * (cells * bonds.len()) as u128,
            &format!("{what}s over the bonds of {cells} cells"),
        )?;
        let mut places: Vec<Vec<usize>> = vec![vec![usize::MAX; cells]; bonds.len()];
        let mut count = 0;
        self.lattice.each_joined(&mut |bond| {
            places[bond.bond][bond.cell] = count;
            count += 1;
            Ok(())
        })?;
        if count != blocks.len() {
            return Err(Error::input(format!(
                "{what}s for {} of {count} nearest-neighbour bonds",
                blocks.len()
            ))
            .hint("give one for each bond, in the order of the lattice's bonds"));
        }
        for block in blocks {
            block.check(self.particles(), &format!("the {what}"))?;
        }
        for (bond, places) in bonds.into_iter().zip(places) {
            let mut table = Builder::default();
            for place in places {
                table.push(blocks.get(place).map(|block| make(self, block)))?;
            }
            let value = HopValue::PerCell(std::sync::Arc::new(table.finish()));
            self.add_hop(Hop { bond, value, scale: None, pairing });
            self.simplify_last();
        }
        Ok(())
    }

    /// Adds an on-site term to each site.
    ///
    /// # Errors
    /// Another number of blocks than of sites; a block of the wrong size, not finite or not Hermitian.
    pub fn onsite_blocks(&mut self, blocks: &[OrbitalBlock]) -> Result<()> {
        let sites = self.lattice.sites();
        if blocks.len() != sites {
            return Err(Error::input(format!("on-site terms of {} of {sites} sites", blocks.len()))
                .hint("give one for each site, in the order of their numbers"));
        }
        let mut table = Builder::default();
        for (site, block) in blocks.iter().enumerate() {
            let block = self.checked_onsite(block, "the on-site term");
            table.push(Some(block.map_err(|e| e.context(format!("site {site}")))?))?;
        }
        self.add_local(table.finish());
        Ok(())
    }

    /// The nearest-neighbour bonds as elements of matrices, in the order of [`Lattice::joined`].
    ///
    /// # Errors
    /// A strained model, a field on orbitals beside their sites; no memory; interruption.
    pub fn bond_elements(&self) -> Result<Vec<BondElement>> {
        let refused = |what: &str, hint: &str| Err(Error::input(format!("the bonds of {what}")).hint(hint));
        if self.strain.is_some() {
            return refused("a strained model", "give the hoppings their new values instead");
        }
        if self.offsets.is_some() && !self.fluxes.is_empty() {
            return refused(
                "orbitals that lie beside their sites, in a field",
                "make orbitals sites of the cell",
            );
        }
        self.nearest_bonds()?;
        let (lattice, d) = (&self.lattice, self.lattice.dimension());
        let places: Vec<Vec<f64>> =
            lattice.basis().iter().map(|site| lattice.cell_coordinates(&site.position)).collect();
        let mut found = Vec::new();
        lattice.each_joined(&mut |bond| {
            let ends = &lattice.bonds()[bond.bond];
            let mut factor = C64::ONE;
            if !self.fluxes.is_empty() {
                let (mut u, mut v) = ([0.0; MAX_DIMENSION], [0.0; MAX_DIMENSION]);
                for k in 0..d {
                    u[k] = bond.at[k] as f64 + places[ends.from][k];
                    v[k] = (bond.at[k] + ends.shift[k]) as f64 + places[ends.to][k];
                }
                let angles = self.fluxes.iter().map(|f| f.angle(lattice, &u, &v, &bond.landing.crossings));
                factor = C64::cis(angles.sum());
            }
            let copy = bond.landing.crossings;
            found.push(BondElement { from: bond.from, to: bond.to, copy, factor });
            Ok(())
        })?;
        Ok(found)
    }
}
