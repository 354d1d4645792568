//! Assembly into a matrix-free stencil: possible when nothing but the real diagonal depends on the cell.

use std::collections::HashMap;
use std::sync::Arc;

use super::block::OrbitalBlock;
use super::model::{HopValue, Model};
use super::random::Disorder;
use super::table::BlockTable;
use crate::backend::matrix::{OnSite, Stencil, StencilTerm, Wrap};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Most hoppings of a model that becomes a stencil without being asked.
const MOST_HOPS: usize = 4096;

impl Model {
    /// Why the model is no stencil, or none if it is one.
    pub fn not_a_stencil(&self) -> Option<&'static str> {
        if self.lattice.has_removed() {
            Some("sites were removed")
        } else if self.holes.is_some() && self.is_twisted() {
            Some("holes gain the opposite phase at a boundary")
        } else if !self.singlets.is_empty() {
            Some("the pairing depends on position")
        } else if !self.fluxes.is_empty() {
            Some("the Peierls phases of a flux depend on position")
        } else if self.hops.iter().any(|hop| !hop.is_uniform()) {
            Some("hoppings depend on position")
        } else if self.local.iter().any(|table| !same_off_diagonal(table)) {
            Some("on-site matrices depend on position off their diagonals")
        } else {
            None
        }
    }

    /// Whether a stencil is what a format that is not named becomes: where it is one, of so few hoppings that they are
    /// no matrix themselves, as those of many atoms in one cell are.
    pub fn wants_stencil(&self) -> bool {
        self.not_a_stencil().is_none() && self.hops.len() <= MOST_HOPS
    }

    /// The matrix-free form of the commutators that [`Model::assemble_along`] makes; without axes, of the model.
    ///
    /// # Errors
    /// When the model is not translation invariant but for its diagonal.
    pub(super) fn stencil_along(&self, axes: &[usize], single: bool) -> Result<Stencil> {
        if let Some(why) = self.not_a_stencil() {
            return Err(Error::input(format!("the model is no stencil: {why}"))
                .hint("use `format: \"auto\"` or `\"csr\"`"));
        }
        let (lat, n) = (&self.lattice, self.orbitals);
        let mut terms = Terms::default();
        for hop in self.hops.iter() {
            let HopValue::Uniform(block) = &hop.value else {
                return Err(Error::internal("a hopping that depends on position in a stencil"));
            };
            let back: Vec<i64> = hop.bond.shift.iter().map(|x| -x).collect();
            for (i, j, value) in block.nonzero() {
                let (to, from) = (hop.bond.to * n + i, hop.bond.from * n + j);
                add(&mut terms, StencilTerm { shift: back.clone(), to, from, value });
                let shift = hop.bond.shift.to_vec();
                add(&mut terms, StencilTerm { shift, to: from, from: to, value: value.conj() });
            }
        }
        // what is on-site and the same everywhere, and the varying tables' common off-diagonal part
        let mut constant = self.uniform.clone();
        for table in &self.local {
            if let Some(first) = table.blocks().first() {
                let off = off_diagonal(first);
                constant.iter_mut().for_each(|block| block.add(&off));
            }
        }
        let still = vec![0; lat.dimension()];
        for (s, block) in constant.iter().enumerate() {
            for (i, j, value) in block.nonzero() {
                add(&mut terms, StencilTerm { shift: still.clone(), to: s * n + i, from: s * n + j, value });
            }
        }
        let mut terms = terms.all;
        for term in terms.iter_mut().filter(|_| !axes.is_empty()) {
            let reach = lat.reach(&term.shift, (term.to / n, term.from / n), axes);
            for (axis, x) in axes.iter().zip(reach) {
                term.value *= C64::new(0.0, x + self.beside(term.to, term.from, *axis));
            }
        }
        terms.retain(|t| t.value != C64::ZERO);
        // On-site energies have no displacement.
        let diagonal = if axes.is_empty() { self.varying_diagonal() } else { None };
        let dtype = DType::of(single, !axes.is_empty() || !self.is_real());
        Ok(Stencil {
            dtype,
            cells: lat.cells().to_vec(),
            orbitals: lat.basis().len() * n,
            wrap: lat.wrap().to_vec(),
            terms,
            diagonal,
        })
    }

    /// The part of the diagonal that differs from site to site, if there is any.
    fn varying_diagonal(&self) -> Option<OnSite> {
        if self.local.is_empty() && !self.has_site_energies() {
            return None;
        }
        let (orbitals, electrons, local) = (self.orbitals, self.particles(), self.local.clone());
        let (disorder, energies, fields) =
            (self.disorder.clone(), self.energies.clone(), self.fields.clone());
        Some(OnSite::new(self.rows(), move |first, out| {
            let mut known = (usize::MAX, SiteEnergy::default());
            for (row, x) in (first..).zip(out) {
                let (site, orbital) = (row / orbitals, row % orbitals);
                if known.0 != site {
                    known = (site, own_energy(&disorder, &energies, &fields, site));
                }
                let here = local.iter().filter_map(|table| table.get(site));
                let own = known.1.of(orbital >= electrons);
                *x = here.fold(own, |sum, block| sum + block.get(orbital, orbital).re);
            }
        }))
    }

    /// Whether sites have energies of their own, random or given, beside the blocks of tables.
    pub(super) fn has_site_energies(&self) -> bool {
        !self.disorder.is_empty() || !self.energies.is_empty() || !self.fields.is_empty()
    }

    /// Whether electrons gain a phase at a boundary that holes do not.
    pub(super) fn is_twisted(&self) -> bool {
        !self.momentum && self.lattice.wrap().iter().any(|wrap| matches!(wrap, Wrap::Phase(p) if p.im != 0.0))
    }

    /// The sum of the random energies of a site and of those given for it.
    #[inline]
    pub(super) fn site_energy(&self, site: usize) -> SiteEnergy {
        own_energy(&self.disorder, &self.energies, &self.fields, site)
    }
}

/// The energies of a site beside the blocks of its tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SiteEnergy {
    /// Energy of every electron.
    charge: f64,
    /// Energy of spin up, and with the other sign of spin down.
    field: f64,
}

impl SiteEnergy {
    /// The energy of a row.
    #[inline]
    pub fn of(self, hole: bool) -> f64 {
        if hole { self.field - self.charge } else { self.charge + self.field }
    }
}

/// The sum of the random energies of a site and of those given for it.
#[inline]
fn own_energy(
    disorder: &[Disorder],
    energies: &[Arc<Vec<f64>>],
    fields: &[Arc<Vec<f64>>],
    site: usize,
) -> SiteEnergy {
    let sum = |lists: &[Arc<Vec<f64>>]| lists.iter().map(|all| all[site]).sum::<f64>();
    SiteEnergy {
        charge: disorder.iter().map(|d| d.energy(site)).sum::<f64>() + sum(energies),
        field: sum(fields),
    }
}

/// Adds a term, to one already there if both couple the same orbitals.
fn add(terms: &mut Terms, term: StencilTerm) {
    let next = terms.all.len();
    let at = *terms.seen.entry((term.to, term.from, term.shift.clone())).or_insert(next);
    match terms.all.get_mut(at) {
        Some(there) => there.value += term.value,
        None => terms.all.push(term),
    }
}

/// Terms, and where those of some orbitals and displacement are.
#[derive(Default)]
struct Terms {
    all: Vec<StencilTerm>,
    seen: HashMap<(usize, usize, Vec<i64>), usize>,
}

fn off_diagonal(block: &OrbitalBlock) -> OrbitalBlock {
    let n = block.orbitals();
    let mut minus = OrbitalBlock::scalar(n, 0.0);
    minus.add(block);
    let diagonal =
        (0..n * n).map(|k| if k / n == k % n { -block.get(k / n, k / n) } else { C64::ZERO }).collect();
    if let Ok(diagonal) = OrbitalBlock::new(n, diagonal) {
        minus.add(&diagonal);
    }
    minus
}

fn same_off_diagonal(table: &BlockTable) -> bool {
    let Some(first) = table.blocks().first() else {
        return true;
    };
    let n = first.orbitals();
    table
        .blocks()
        .iter()
        .all(|block| (0..n * n).filter(|k| k / n != k % n).all(|k| block.entries()[k] == first.entries()[k]))
}
