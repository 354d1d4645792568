//! A tight-binding model: orbitals on the sites of a lattice, on-site terms and hoppings. Terms are added up. Functions
//! of position are evaluated when they are added, so a model holds only numbers.

use std::fmt;

use std::sync::Arc;

use super::block::OrbitalBlock;
use super::flux::Flux;
use super::geometry::Geometry;
use super::lattice::{Bond, Lattice, check_bond};
use super::nambu::{Holes, charge, twice};
use super::random::Disorder;
use super::strained::Strained;
use super::table::{BlockTable, Builder};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task::Task;

/// A function of one position.
pub type OfPosition<'a> = dyn FnMut(&[f64]) -> Result<OrbitalBlock> + 'a;
/// A function of the positions that a hopping leaves and reaches.
pub type OfBond<'a> = dyn FnMut(&[f64], &[f64]) -> Result<OrbitalBlock> + 'a;

/// A tight-binding model. Row of the assembled operator = site * orbitals + orbital. Copies are cheap:
/// what is large is shared.
#[derive(Debug, Clone)]
pub struct Model {
    pub(super) lattice: Lattice,
    pub(super) orbitals: usize,
    /// On-site block of each sublattice.
    pub(super) uniform: Vec<OrbitalBlock>,
    /// On-site blocks that differ from site to site.
    pub(super) local: Vec<Arc<BlockTable>>,
    /// On-site energies, one a site each.
    pub(super) energies: Vec<Arc<Vec<f64>>>,
    /// Energies of spin up and, with the other sign, spin down, one a site each.
    pub(super) fields: Vec<Arc<Vec<f64>>>,
    /// Singlets on sites, a number for all orbitals of each.
    pub(super) singlets: Vec<Arc<Vec<C64>>>,
    pub(super) disorder: Vec<Disorder>,
    /// How many disorders of any kind were drawn: each has random numbers of its own.
    pub(super) draws: u32,
    pub(super) hops: Arc<Vec<Hop>>,
    pub(super) fluxes: Vec<Flux>,
    /// Where the orbitals of each sublattice lie beside its site, at `sublattice * orbitals + orbital`, if not on it.
    pub(super) offsets: Option<Arc<Vec<Vec<f64>>>>,
    pub(super) strain: Option<Arc<Strained>>,
    /// Whether the second half of a site's rows is for holes.
    pub(super) holes: Option<Holes>,
    /// Whether the phases of the boundaries are those of a momentum, which holes have as electrons have it.
    pub(super) momentum: bool,
}

/// A hopping from site `from` of every cell to site `to` of the cell displaced by `shift`; its conjugate is implied.
#[derive(Debug, Clone)]
pub struct Hop {
    pub(super) bond: Bond,
    pub(super) value: HopValue,
    /// Factor of each cell the hopping leaves, from strain and disorder.
    pub(super) scale: Option<Arc<Vec<f64>>>,
    /// Whether it makes pairs: no particle moves.
    pub(super) pairing: bool,
}

#[derive(Debug, Clone)]
pub(super) enum HopValue {
    Uniform(OrbitalBlock),
    /// One block for each cell the hopping leaves.
    PerCell(Arc<BlockTable>),
}

impl Hop {
    /// The displacement and the sites of the cell it joins.
    pub fn bond(&self) -> &Bond {
        &self.bond
    }

    /// Whether the hopping is the same everywhere.
    pub fn is_uniform(&self) -> bool {
        self.scale.is_none() && matches!(self.value, HopValue::Uniform(_))
    }
}

impl Model {
    /// A model without terms.
    ///
    /// # Errors
    /// When there are no orbitals, or too many rows to number.
    pub fn new(lattice: Lattice, orbitals: usize) -> Result<Self> {
        let rows = lattice.all_sites().checked_mul(orbitals);
        if orbitals == 0 || orbitals > 4096 || rows.is_none_or(|n| n > i64::MAX as usize) {
            return Err(Error::input(format!(
                "a model of {orbitals} orbitals on {} sites cannot be numbered",
                lattice.sites()
            ))
            .hint("a site has 1 to 4096 orbitals"));
        }
        let uniform = vec![OrbitalBlock::scalar(orbitals, 0.0); lattice.basis().len()];
        Ok(Model {
            lattice,
            orbitals,
            uniform,
            local: Vec::new(),
            energies: Vec::new(),
            fields: Vec::new(),
            singlets: Vec::new(),
            disorder: Vec::new(),
            draws: 0,
            hops: Arc::default(),
            fluxes: Vec::new(),
            offsets: None,
            strain: None,
            holes: None,
            momentum: false,
        })
    }

    /// The lattice the model lives on.
    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// Rows a site.
    pub fn orbitals(&self) -> usize {
        self.orbitals
    }

    /// Orbitals of particles a site: its rows, or half of them where the others are for holes.
    pub fn particles(&self) -> usize {
        if self.holes.is_some() { self.orbitals / 2 } else { self.orbitals }
    }

    /// What the holes are holes of, if there are any.
    pub fn holes(&self) -> Option<Holes> {
        self.holes
    }

    /// A checked term as the rows have it.
    pub(super) fn both(&self, block: OrbitalBlock) -> OrbitalBlock {
        if self.holes.is_some() { charge(&block) } else { block }
    }

    /// Rows of the operator.
    pub fn rows(&self) -> usize {
        self.lattice.sites() * self.orbitals
    }

    /// Where the rows of the operator lie.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            holes: self.holes,
            offsets: self.offsets.clone(),
            strain: self.strain.clone(),
            ..Geometry::new(self.lattice.clone(), self.orbitals)
        }
    }

    /// Puts the orbitals of the sites beside them: one Cartesian displacement for every sublattice and orbital, at
    /// `sublattice * orbitals + orbital`, in lattice constants. Velocities and Peierls phases then follow the orbitals.
    ///
    /// # Errors
    /// A number of displacements that does not fit, one of another dimension or not finite, a strained model.
    pub fn place_orbitals(&mut self, offsets: Vec<Vec<f64>>) -> Result<()> {
        let (count, space) = (self.lattice.basis().len() * self.particles(), self.lattice.space());
        if offsets.len() != count {
            return Err(Error::input(format!("{} places for the {count} orbitals of a cell", offsets.len()))
                .hint("give one for each orbital of each site"));
        }
        if let Some(off) = offsets.iter().find(|x| x.len() != space || x.iter().any(|x| !x.is_finite())) {
            return Err(Error::input(format!("{off:?} is no place of an orbital in {space} dimensions"))
                .hint("an orbital's place has as many finite coordinates as the lattice's positions"));
        }
        self.unstrained("orbitals are placed")?;
        let moved = offsets.iter().flatten().any(|&x| x != 0.0);
        let offsets = match self.holes {
            None => offsets,
            Some(_) => twice(&offsets, self.particles()),
        };
        self.offsets = moved.then(|| Arc::new(offsets));
        Ok(())
    }

    /// How much farther apart two orbitals are along an axis than their sites.
    #[inline]
    pub(super) fn beside(&self, row: usize, column: usize, axis: usize) -> f64 {
        self.offsets.as_ref().map_or(0.0, |of| of[column][axis] - of[row][axis])
    }

    /// An error if the model is strained: a strain applies to all terms, so it comes last.
    pub(super) fn unstrained(&self, what: &str) -> Result<()> {
        match self.strain {
            None => Ok(()),
            Some(_) => Err(Error::input(format!("{what} after the strain")).hint("the strain comes last")),
        }
    }

    /// The same model with what crosses a periodic boundary multiplied by the phase of a momentum, in units of the
    /// sample's reciprocal vectors, one number for each direction that is not open: its matrix is the Bloch Hamiltonian
    /// of the whole sample. Phases of the boundaries' own go.
    ///
    /// # Errors
    /// A momentum of another dimension, or not finite.
    pub fn at_momentum(&self, k: &[f64]) -> Result<Model> {
        self.at_momentum_beside(None, k)
    }

    /// The same, with one direction left as it is: it takes no number of the momentum.
    ///
    /// # Errors
    /// As [`Model::at_momentum`].
    pub fn at_momentum_beside(&self, left: Option<usize>, k: &[f64]) -> Result<Model> {
        let mut model = self.clone();
        let closed = model.lattice.wrap.iter_mut().enumerate();
        let closed: Vec<&mut Wrap> = closed
            .filter(|(d, wrap)| **wrap != Wrap::Open && Some(*d) != left)
            .map(|(_, wrap)| wrap)
            .collect();
        if k.len() != closed.len() {
            let (numbers, directions) = (k.len(), closed.len());
            let s = |n: usize| if n == 1 { "" } else { "s" };
            let across = if left.is_some() { " across" } else { "" };
            return Err(Error::input(format!(
                "a momentum of {numbers} number{} for {directions} periodic direction{}{across}",
                s(numbers),
                s(directions)
            ))
            .hint("momenta are in units of the reciprocal vectors of the sample, one number per periodic direction"));
        }
        if let Some(x) = k.iter().find(|x| !x.is_finite()) {
            return Err(Error::input(format!("a momentum of {x}")).hint("look for a division by zero"));
        }
        for (wrap, k) in closed.into_iter().zip(k) {
            let turns = k - k.round();
            // Real matrices at the momenta where they are real.
            *wrap = Wrap::Phase(match turns.abs() {
                0.0 => C64::ONE,
                0.5 => -C64::ONE,
                _ => C64::cis(std::f64::consts::TAU * turns),
            });
        }
        model.momentum = true;
        Ok(model)
    }

    /// Whether the phases of the boundaries are those of a momentum.
    pub fn is_at_momentum(&self) -> bool {
        self.momentum
    }

    /// The hoppings, each without its conjugate.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Adds the same on-site term on every site.
    ///
    /// # Errors
    /// When the block has not the model's size, is not finite or not Hermitian.
    pub fn onsite(&mut self, block: &OrbitalBlock) -> Result<()> {
        let block = self.checked_onsite(block, "the on-site term")?;
        self.uniform.iter_mut().for_each(|u| u.add(&block));
        Ok(())
    }

    /// Adds an on-site term on one sublattice.
    ///
    /// # Errors
    /// As [`Model::onsite`], and when there is no such sublattice.
    pub fn sublattice(&mut self, s: usize, block: &OrbitalBlock) -> Result<()> {
        let n = self.uniform.len();
        if s >= n {
            return Err(Error::input(format!("sublattice {s} outside a unit cell of {n} sites"))
                .hint("they are numbered from 0"));
        }
        let block = self.checked_onsite(block, "the sublattice potential")?;
        self.uniform[s].add(&block);
        Ok(())
    }

    /// Adds an on-site term given by a function of the site's position.
    ///
    /// # Errors
    /// Those of the function, those of [`Model::onsite`] with the position, and interruption.
    pub fn onsite_with(&mut self, term: &mut OfPosition<'_>, task: &Task) -> Result<()> {
        let holes = self.holes.is_some();
        let make = |block: &OrbitalBlock| {
            let block = block.hermitian("the on-site term")?;
            Ok(if holes { charge(&block) } else { block })
        };
        self.local_with(term, "the on-site term", &make, task)
    }

    /// Adds what `make` makes of the blocks that a function of position gives.
    pub(super) fn local_with(
        &mut self,
        term: &mut OfPosition<'_>,
        what: &str,
        make: &dyn Fn(&OrbitalBlock) -> Result<OrbitalBlock>,
        task: &Task,
    ) -> Result<()> {
        let (lat, particles) = (&self.lattice, self.particles());
        let basis = lat.basis().len();
        memory::ensure(4 * lat.sites() as u128, &format!("a term on {} sites", lat.sites()))?;
        let mut table = Builder::default();
        let mut position = vec![0.0; lat.space()];
        let steps = task.start("on-site terms", lat.sites());
        for site in 0..lat.sites() {
            if site.is_multiple_of(1024) {
                steps.advance(site)?;
            }
            let full = lat.full(site);
            lat.position_into(&lat.coordinates(full / basis), full % basis, &mut position);
            let block = term(&position)?;
            let block = block.check(particles, what).and_then(|()| make(&block));
            table.push(Some(block.map_err(|e| e.context(format!("site {site} at {position:?}")))?))?;
        }
        drop(steps);
        self.add_local(table.finish());
        Ok(())
    }

    /// Adds an on-site block to each site. Blocks that are the same on all sites of each sublattice are no longer those
    /// of sites, as if they had been given so.
    pub(super) fn add_local(&mut self, table: BlockTable) {
        let (basis, lattice) = (self.uniform.len(), &self.lattice);
        match table.by_kind(basis, |site| lattice.full(site) % basis) {
            None => self.local.push(Arc::new(table)),
            Some(blocks) => {
                for (uniform, block) in self.uniform.iter_mut().zip(blocks) {
                    block.into_iter().for_each(|block| uniform.add(block));
                }
            }
        }
    }

    /// Adds an energy to each site.
    ///
    /// # Errors
    /// A number of energies that is not that of the sites, one that is not finite, no memory.
    pub fn onsite_each(&mut self, energies: Vec<f64>) -> Result<()> {
        let energies = self.one_a_site(energies)?;
        self.energies.push(energies);
        Ok(())
    }

    pub(super) fn one_a_site(&self, energies: Vec<f64>) -> Result<Arc<Vec<f64>>> {
        let sites = self.lattice.sites();
        if energies.len() != sites {
            return Err(Error::input(format!("{} on-site energies for {sites} sites", energies.len()))
                .hint("give one for each site, in the order of their numbers"));
        }
        if let Some(site) = energies.iter().position(|x| !x.is_finite()) {
            return Err(Error::input(format!("the energy of site {site} is {}", energies[site]))
                .hint("look for a division by zero"));
        }
        Ok(Arc::new(energies))
    }

    /// Adds a hopping by a displacement in cells, on every sublattice to itself: `block` takes a particle from cell `r`
    /// to cell `r + shift`. The Hermitian conjugate is added too.
    ///
    /// # Errors
    /// When the displacement does not fit the lattice or is zero, or the block is of the wrong size or not finite.
    pub fn hop(&mut self, shift: &[i64], block: &OrbitalBlock) -> Result<()> {
        for s in 0..self.lattice.basis().len() {
            self.hop_between(shift, s, s, block)?;
        }
        Ok(())
    }

    /// Adds a hopping from site `from` of a cell to site `to` of the cell displaced by `shift`, and its conjugate.
    ///
    /// # Errors
    /// As [`Model::hop`], and when there is no such site in the cell.
    pub fn hop_between(&mut self, shift: &[i64], from: usize, to: usize, block: &OrbitalBlock) -> Result<()> {
        let bond = Bond { shift: shift.into(), from, to };
        self.hop_over(bond, block.clone())
    }

    /// The same over a bond.
    pub(super) fn hop_over(&mut self, bond: Bond, block: OrbitalBlock) -> Result<()> {
        self.check_hop(&bond)?;
        block.check(self.particles(), "the hopping")?;
        let value = HopValue::Uniform(self.both(block));
        self.add_hop(Hop { bond, value, scale: None, pairing: false });
        Ok(())
    }

    pub(super) fn add_hop(&mut self, hop: Hop) {
        Arc::make_mut(&mut self.hops).push(hop);
    }

    /// Room for so many hoppings more.
    pub(super) fn expect_hops(&mut self, more: usize) -> Result<()> {
        memory::ensure((more * size_of::<Hop>()) as u128, &format!("{more} hoppings"))?;
        Arc::make_mut(&mut self.hops).reserve(more);
        Ok(())
    }

    /// Adds a hopping given by a function of the two positions it joins (the second lies beyond the boundary where the
    /// bond wraps around).
    ///
    /// # Errors
    /// Those of the function and of [`Model::hop_between`], and interruption.
    pub fn hop_with(
        &mut self,
        shift: &[i64],
        from: usize,
        to: usize,
        term: &mut OfBond<'_>,
        task: &Task,
    ) -> Result<()> {
        let bond = self.checked_bond(shift, from, to)?;
        let make = |block: &OrbitalBlock| self.both(block.clone());
        let table = self.table_of_bond(&bond, term, "the hopping", &make, task)?;
        self.add_hop(Hop { bond, value: HopValue::PerCell(Arc::new(table)), scale: None, pairing: false });
        self.simplify_last();
        Ok(())
    }

    /// What `make` makes of the blocks that a function of two positions gives for a bond, cell by cell.
    pub(super) fn table_of_bond(
        &self,
        bond: &Bond,
        term: &mut OfBond<'_>,
        what: &str,
        make: &dyn Fn(&OrbitalBlock) -> OrbitalBlock,
        task: &Task,
    ) -> Result<BlockTable> {
        let (lat, particles) = (&self.lattice, self.particles());
        let mut table = Builder::default();
        memory::ensure(4 * lat.cell_count() as u128, &format!("a hopping in {} cells", lat.cell_count()))?;
        lat.each_bond(bond, task, |_, span| {
            table.push(match span {
                None => None,
                Some(BondEnds { a, b }) => {
                    let block = term(a, b)?;
                    block.check(particles, what).map_err(|e| e.context(format!("from {a:?} to {b:?}")))?;
                    Some(make(&block))
                }
            })
        })?;
        Ok(table.finish())
    }

    /// Stores the last hopping as one block if it is the same wherever its bond is there.
    pub(super) fn simplify_last(&mut self) {
        let orbitals = self.orbitals;
        if let Some(Hop { value, .. }) = Arc::make_mut(&mut self.hops).last_mut()
            && let HopValue::PerCell(table) = value
        {
            match table.blocks() {
                [only] => *value = HopValue::Uniform(only.clone()),
                // A bond that no cell has.
                [] => *value = HopValue::Uniform(OrbitalBlock::scalar(orbitals, 0.0)),
                _ => {}
            }
        }
    }

    /// Adds a hopping over every nearest-neighbour bond of the lattice.
    ///
    /// # Errors
    /// As [`Model::hop`], and when the lattice has no bonds.
    pub fn nearest(&mut self, block: &OrbitalBlock) -> Result<()> {
        for bond in self.nearest_bonds()? {
            self.hop_between(&bond.shift, bond.from, bond.to, block)?;
        }
        Ok(())
    }

    /// Adds a hopping over every nearest-neighbour bond, given by a function of the positions it joins.
    ///
    /// # Errors
    /// As [`Model::hop_with`], and when the lattice has no bonds.
    pub fn nearest_with(&mut self, term: &mut OfBond<'_>, task: &Task) -> Result<()> {
        for bond in self.nearest_bonds()? {
            self.hop_with(&bond.shift, bond.from, bond.to, term, task)?;
        }
        Ok(())
    }

    /// Removes the sites for whose position `gone` is true; the others are renumbered.
    ///
    /// # Errors
    /// As [`Lattice::remove`].
    pub fn remove(&mut self, gone: &mut dyn FnMut(&[f64]) -> Result<bool>, task: &Task) -> Result<()> {
        let lattice = self.lattice.remove(gone, task)?;
        self.renumber(lattice);
        Ok(())
    }

    /// Removes each site with probability `fraction`; see [`Lattice::vacancies`].
    ///
    /// # Errors
    /// As [`Lattice::vacancies`].
    pub fn vacancies(&mut self, fraction: f64, seed: u64) -> Result<()> {
        let lattice = self.lattice.vacancies(fraction, seed)?;
        self.renumber(lattice);
        Ok(())
    }

    pub(super) fn renumber(&mut self, lattice: Lattice) {
        let lists = self.local.len() + self.energies.len() + self.fields.len() + self.singlets.len();
        if lists == 0 {
            self.lattice = lattice;
            return;
        }
        let before: Vec<usize> =
            (0..lattice.sites()).filter_map(|site| self.lattice.number(lattice.full(site))).collect();
        self.take_sites(&before);
        self.lattice = lattice;
    }

    /// Gives each site what the site of this number had; one without a number has nothing.
    pub(super) fn take_sites(&mut self, before: &[usize]) {
        fn taken<T: Copy + Default>(list: &mut Arc<Vec<T>>, before: &[usize]) {
            *list =
                Arc::new(before.iter().map(|&site| list.get(site).copied().unwrap_or_default()).collect());
        }
        self.local.iter_mut().for_each(|table| Arc::make_mut(table).select(before));
        self.energies.iter_mut().chain(&mut self.fields).for_each(|energies| taken(energies, before));
        self.singlets.iter_mut().for_each(|pairs| taken(pairs, before));
    }

    /// The bonds that [`Model::nearest`] puts hoppings on.
    ///
    /// # Errors
    /// The lattice has none.
    pub fn nearest_bonds(&self) -> Result<Vec<Bond>> {
        if self.lattice.bonds().is_empty() {
            return Err(Error::input(format!(
                "the {} lattice has no nearest-neighbour bonds",
                self.lattice.name()
            ))
            .hint("give the lattice bonds, or add hoppings by displacement or by distance"));
        }
        Ok(self.lattice.bonds().to_vec())
    }

    pub(super) fn checked_onsite(&self, block: &OrbitalBlock, what: &str) -> Result<OrbitalBlock> {
        block.check(self.particles(), what)?;
        Ok(self.both(block.hermitian(what)?))
    }

    pub(super) fn checked_bond(&self, shift: &[i64], from: usize, to: usize) -> Result<Bond> {
        let bond = Bond { shift: shift.into(), from, to };
        self.check_hop(&bond)?;
        Ok(bond)
    }

    fn check_hop(&self, bond: &Bond) -> Result<()> {
        self.unstrained("a hopping is added")?;
        check_bond(bond, self.lattice.dimension(), self.lattice.basis().len())?;
        if bond.from == bond.to && bond.shift.iter().all(|&x| x == 0) {
            return Err(
                Error::input("a hopping from a site to itself is an on-site term").hint("use `onsite`")
            );
        }
        Ok(())
    }
}

/// One bond of the lattice.
pub(super) struct BondEnds<'a> {
    /// Position of the site it leaves.
    pub a: &'a [f64],
    /// Position that it reaches, beyond the boundary where it crosses one.
    pub b: &'a [f64],
}

impl Lattice {
    /// Calls `visit` for every cell, in order, with the bond that leaves it, or with none where the bond is absent.
    fn each_bond(
        &self,
        bond: &Bond,
        task: &Task,
        mut visit: impl FnMut(usize, Option<BondEnds<'_>>) -> Result<()>,
    ) -> Result<()> {
        let (cells, basis, d) = (self.cell_count(), self.basis().len(), self.dimension());
        let (mut a, mut b) = (vec![0.0; self.space()], vec![0.0; self.space()]);
        let steps = task.start("hoppings", cells);
        for cell in 0..cells {
            if cell.is_multiple_of(1024) {
                steps.advance(cell)?;
            }
            let at = self.coordinates(cell);
            let from = cell * basis + bond.from;
            let there = self.land(&at[..d], &bond.shift, 1).is_some_and(|landing| {
                self.number(from).is_some() && self.number(landing.cell * basis + bond.to).is_some()
            });
            if !there {
                visit(cell, None)?;
                continue;
            }
            self.position_into(&at[..d], bond.from, &mut a);
            let mut end = at;
            end.iter_mut().zip(&bond.shift).for_each(|(x, s)| *x += s);
            self.position_into(&end[..d], bond.to, &mut b);
            visit(cell, Some(BondEnds { a: &a, b: &b }))?;
        }
        Ok(())
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let (orbitals, pairs) = (self.particles(), self.hops.iter().filter(|hop| hop.pairing).count());
        let hops = self.hops.len() - pairs;
        write!(f, "Model of {orbitals} orbital{} a site", plural(orbitals))?;
        match self.holes {
            None => {}
            Some(Holes::OtherSpin) => write!(f, " for electrons of spin up and holes of spin down")?,
            Some(Holes::Own) => write!(f, " for electrons and holes")?,
        }
        write!(f, ", {hops} hopping{} and conjugates, ", plural(hops))?;
        if pairs > 0 {
            write!(f, "{pairs} pairing{} over bonds, ", plural(pairs))?;
        }
        write!(f, "on a {}", self.lattice)
    }
}
