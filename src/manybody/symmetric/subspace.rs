//! A sector of conserved numbers, and of symmetries where some are named.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::basis::{BasisPath, Sector, SectorBasis};
use super::super::sites::Sites;
use super::codes::WordLayout;
use super::generators::Symmetry;
use super::group::{Generator, SymmetryGroup};
use super::orbits::Orbits;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task::{self, Task};

/// Product states that one thread looks at in one go, and between two looks whether the user has stopped the work.
const CHUNK: usize = 1 << 12;
const SLAB: usize = 1 << 16;

/// The states of a sector. Copies are cheap.
#[derive(Debug, Clone)]
pub struct Subspace {
    pub(super) plain: SectorBasis,
    pub(super) orbits: Option<Arc<Orbits>>,
    pub(super) generators: Arc<Vec<Generator>>,
}

impl Subspace {
    /// The states with the given charges that symmetries multiply with their characters.
    ///
    /// # Errors
    /// For a sector that is not there, symmetries that are none of these sites or do not go together, memory,
    /// interruption.
    pub fn new(sites: &Sites, sector: &Sector, symmetries: &[Symmetry], task: &Task) -> Result<Subspace> {
        let space = Subspace::of(SectorBasis::new(sites, sector)?, symmetries, task)?;
        if space.dim() == 0 {
            return Err(Error::input(format!("no state of {}", space.label()))
                .hint("every state of the sector vanishes with these quantum numbers; try others"));
        }
        Ok(space)
    }

    /// How many states there are with the given charges that symmetries multiply with their characters; it may be none.
    ///
    /// # Errors
    /// For charges that the sites do not have, symmetries that are none of these sites or do not go together, memory,
    /// interruption.
    pub fn count(sites: &Sites, sector: &Sector, symmetries: &[Symmetry], task: &Task) -> Result<usize> {
        Ok(Subspace::of(SectorBasis::possibly_empty(sites, sector)?, symmetries, task)?.dim())
    }

    fn of(plain: SectorBasis, symmetries: &[Symmetry], task: &Task) -> Result<Subspace> {
        let sites = plain.sites();
        if !symmetries.is_empty() {
            WordLayout::new(sites, 1)?;
        }
        let generators = symmetries.iter().map(|s| s.on(sites)).collect::<Result<Vec<_>>>()?;
        for generator in &generators {
            generator.does.stays_within(sites, plain.sector(), &generator.name)?;
        }
        if generators.is_empty() {
            return Ok(Subspace { plain, orbits: None, generators: Arc::default() });
        }
        let dims: Vec<usize> = sites.iter().map(|site| site.dim()).collect();
        let orbits = Orbits::new(&plain, SymmetryGroup::new(&generators, &dims)?, task)?;
        Ok(Subspace { plain, orbits: Some(Arc::new(orbits)), generators: Arc::new(generators) })
    }

    pub fn dim(&self) -> usize {
        self.orbits.as_ref().map_or(self.plain.dim(), |o| o.least.len())
    }

    pub fn sites(&self) -> &Sites {
        self.plain.sites()
    }

    /// The product states of the sector without symmetries.
    pub fn plain(&self) -> &SectorBasis {
        &self.plain
    }

    /// Elements of the group of symmetries.
    pub fn symmetries(&self) -> usize {
        self.orbits.as_ref().map_or(1, |o| o.actions.count())
    }

    /// The local states of state `number`, or of the first product state that it is made of.
    ///
    /// # Errors
    /// When there is no such state.
    pub fn state(&self, number: usize) -> Result<Vec<u8>> {
        let Some(orbits) = &self.orbits else { return self.plain.state(number) };
        let code = orbits.least.get(number).ok_or_else(|| {
            Error::input(format!("state {number} outside a basis of {}", self.dim()))
                .hint("states are counted from 0")
        })?;
        Ok(orbits.actions.layout.states(*code))
    }

    /// The number of the state that a product state belongs to; none if it lies outside the sector.
    ///
    /// # Errors
    /// When there is not one local state a site.
    pub fn number(&self, states: &[u8]) -> Result<Option<usize>> {
        let plain = self.plain.number(states)?;
        let Some(orbits) = &self.orbits else { return Ok(plain) };
        Ok(plain.and_then(|_| orbits.of(orbits.actions.layout.code(states))).map(|(orbit, _)| orbit))
    }

    /// The sites and the sector in a few words.
    pub fn label(&self) -> String {
        let names: Vec<&str> = self.generators.iter().map(|g| g.name.as_str()).collect();
        let more = if names.is_empty() { String::new() } else { format!(", {}", names.join(", ")) };
        format!("{}{more}", self.plain.label())
    }

    /// Vectors of this sector, row-major, over the product states of the sector without symmetries.
    ///
    /// # Errors
    /// Memory, interruption.
    pub fn unfold(&self, vectors: &[C64], columns: usize) -> Result<Vec<C64>> {
        let Some(orbits) = &self.orbits else { return Ok(vectors.to_vec()) };
        let mut all = self.room(columns)?;
        for (slab, part) in all.chunks_mut(SLAB * columns).enumerate() {
            task::poll()?;
            part.par_chunks_mut(CHUNK * columns).enumerate().for_each(|(chunk, rows)| {
                let first = slab * SLAB + chunk * CHUNK;
                self.each(orbits, first, rows.len() / columns, |k, orbit, factor| {
                    for c in 0..columns {
                        rows[k * columns + c] = vectors[orbit * columns + c] * factor;
                    }
                });
            });
        }
        Ok(all)
    }

    /// The part in this sector of vectors over the product states of the sector without symmetries.
    ///
    /// # Errors
    /// Interruption.
    pub fn fold(&self, vectors: &[C64], columns: usize) -> Result<Vec<C64>> {
        let Some(orbits) = &self.orbits else { return Ok(vectors.to_vec()) };
        let mut all = vec![C64::ZERO; self.dim() * columns];
        let dim = self.plain.dim();
        for first in (0..dim).step_by(SLAB) {
            task::poll()?;
            self.each(orbits, first, SLAB.min(dim - first), |k, orbit, factor| {
                for c in 0..columns {
                    all[orbit * columns + c] += factor.conj() * vectors[(first + k) * columns + c];
                }
            });
        }
        Ok(all)
    }

    fn room(&self, columns: usize) -> Result<Vec<C64>> {
        let rows = self.plain.dim();
        memory::ensure(16 * rows as u128 * columns as u128, &format!("{columns} vectors of {rows} states"))?;
        Ok(vec![C64::ZERO; rows * columns])
    }

    /// Calls `each` with some product states, counted from the first, the state that each belongs to, and its amplitude
    /// there.
    fn each(&self, orbits: &Orbits, first: usize, count: usize, mut each: impl FnMut(usize, usize, C64)) {
        let mut walk = BasisPath::at(&self.plain, first);
        for k in 0..count {
            if let Some((orbit, factor)) = orbits.of(orbits.actions.layout.code(&walk.states)) {
                each(k, orbit, factor * orbits.norm(orbit).sqrt());
            }
            walk.step();
        }
    }
}

impl fmt::Display for Subspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Basis of {} states: {}", self.dim(), self.label())
    }
}
