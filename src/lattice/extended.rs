//! Additional sites and moved sites: separate sublattices that exist only in some cells.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::block::OrbitalBlock;
use super::lattice::{Bond, Lattice, LatticeSite, Renumbering};
use super::model::{Hop, HopValue, Model};
use super::table::{BlockTable, Builder};
use crate::error::{Error, Result};
use crate::number::memory;

impl Lattice {
    /// The lattice with more sites in its unit cell, of which none is there yet: sites keep their numbers.
    ///
    /// # Errors
    /// Positions that do not fit, more sites than can be numbered.
    pub(super) fn with_sublattices(&self, more: Vec<LatticeSite>) -> Result<Lattice> {
        if let Some(site) = more.iter().find(|s| s.position.len() != self.space()) {
            return Err(Error::input(format!(
                "a site at {:?} in a space of {} dimensions",
                site.position,
                self.space()
            ))
            .hint("give a coordinate for each dimension"));
        }
        if more.iter().any(|s| s.position.iter().any(|x| !x.is_finite())) {
            return Err(Error::input("the position of a site is not a finite number")
                .hint("look for a division by zero"));
        }
        let old = self.basis.len();
        let new = old + more.len();
        let all = self.cell_count().checked_mul(new).filter(|n| *n <= i64::MAX as usize);
        let all =
            all.ok_or_else(|| Error::input("more sites than can be numbered").hint("take fewer cells"))?;
        memory::ensure(16 * all as u128, &format!("numbering {all} sites"))?;
        let full: Vec<usize> = (0..self.sites())
            .map(|site| {
                let full = self.full(site);
                full / old * new + full % old
            })
            .collect();
        let basis = self.basis.iter().cloned().chain(more).collect();
        Ok(Lattice { basis: Arc::new(basis), ..self.numbered(full, all, self.draws()) })
    }

    /// The lattice with some sites that were not there, as numbered before removals.
    fn with_sites(&self, more: &BTreeSet<usize>) -> Result<Lattice> {
        let all = self.all_sites();
        memory::ensure(16 * all as u128, &format!("numbering {all} sites"))?;
        let there = |full: &usize| self.number(*full).is_some() || more.contains(full);
        Ok(self.numbered((0..all).filter(there).collect(), all, self.draws()))
    }

    /// The lattice with the numbering that these sites give, of `all` that its cells have room for.
    fn numbered(&self, full: Vec<usize>, all: usize, draws: u32) -> Lattice {
        let mut number = vec![usize::MAX; all];
        full.iter().enumerate().for_each(|(site, &full)| number[full] = site);
        Lattice { kept: Some(Arc::new(Renumbering { full, number, draws, grown: true })), ..self.clone() }
    }
}

impl Model {
    /// The model with more sites in its unit cell, of which none is there yet. Where one names a sublattice, it has the
    /// terms and the orbitals' places of that.
    ///
    /// # Errors
    /// Those of the lattice, and a strained model.
    pub fn with_sublattices(&self, more: Vec<(LatticeSite, Option<usize>)>) -> Result<Model> {
        self.unstrained("a site is added")?;
        let mut model = self.clone();
        for (_, like) in &more {
            let none = || OrbitalBlock::scalar(self.orbitals, 0.0);
            model.uniform.push(like.map_or_else(none, |s| self.uniform[s].clone()));
        }
        if let Some(offsets) = &mut model.offsets {
            let offsets = Arc::make_mut(offsets);
            for (_, like) in &more {
                let places: Vec<Vec<f64>> = match like {
                    Some(s) => offsets[s * self.orbitals..(s + 1) * self.orbitals].to_vec(),
                    None => vec![vec![0.0; self.lattice.space()]; self.orbitals],
                };
                offsets.extend(places);
            }
        }
        model.lattice = self.lattice.with_sublattices(more.into_iter().map(|(site, _)| site).collect())?;
        Ok(model)
    }

    /// Puts sites into the model, and at the new places of those that move copies of them, with their terms and
    /// hoppings; all as numbered before removals. What has moved is still there where it was.
    pub(super) fn appear(&mut self, added: &BTreeSet<usize>, moved: &BTreeMap<usize, usize>) -> Result<()> {
        let more: BTreeSet<usize> = added.iter().chain(moved.values()).copied().collect();
        let lattice = self.lattice.with_sites(&more)?;
        let origin: BTreeMap<usize, usize> = moved.iter().map(|(from, to)| (*to, *from)).collect();
        let before = (0..lattice.sites()).map(|site| {
            let full = lattice.full(site);
            self.lattice.number(origin.get(&full).copied().unwrap_or(full)).unwrap_or(usize::MAX)
        });
        let before: Vec<usize> = before.collect();
        self.take_sites(&before);
        self.lattice = lattice;
        self.copy_hops(moved)
    }

    /// Gives the sites that moved the hoppings of where they were.
    fn copy_hops(&mut self, moved: &BTreeMap<usize, usize>) -> Result<()> {
        let (lattice, basis) = (&self.lattice, self.lattice.basis().len());
        let mut by_sublattice: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        moved.keys().for_each(|full| by_sublattice.entry(full % basis).or_default().push(full / basis));
        let none = Vec::new();
        let of = |sublattice: usize| by_sublattice.get(&sublattice).unwrap_or(&none);
        let mut copies: BTreeMap<(usize, usize, usize), Vec<(usize, OrbitalBlock)>> = BTreeMap::new();
        for (index, hop) in self.hops.iter().enumerate() {
            let Bond { shift, from, to } = &hop.bond;
            let reaching =
                of(*to).iter().filter_map(|&cell| lattice.land(&lattice.coordinates(cell), shift, -1));
            let cells: BTreeSet<usize> =
                of(*from).iter().copied().chain(reaching.map(|landing| landing.cell)).collect();
            for cell in cells {
                let Some(landing) = lattice.land(&lattice.coordinates(cell), shift, 1) else { continue };
                let ends = [cell * basis + from, landing.cell * basis + to];
                let now = ends.map(|full| moved.get(&full).copied().unwrap_or(full));
                if now == ends || now.iter().any(|full| lattice.number(*full).is_none()) {
                    continue;
                }
                let block = match &hop.value {
                    HopValue::Uniform(block) => block,
                    HopValue::PerCell(table) => match table.get(cell) {
                        Some(block) => block,
                        None => continue,
                    },
                };
                let scale = hop.scale.as_ref().map_or(1.0, |scale| scale[cell]);
                let block = OrbitalBlock::from_fn(self.orbitals, |i, j| block.get(i, j) * scale);
                copies.entry((index, now[0] % basis, now[1] % basis)).or_default().push((cell, block));
            }
        }
        for ((index, from, to), list) in copies {
            let mut table = Builder::of(BlockTable::absent(self.lattice.cell_count()));
            for (cell, block) in list {
                table.set(cell, Some(block))?;
            }
            let hop = &self.hops[index];
            let bond = Bond { shift: hop.bond.shift.clone(), from, to };
            let value = HopValue::PerCell(Arc::new(table.finish()));
            let pairing = hop.pairing;
            self.add_hop(Hop { bond, value, scale: None, pairing });
        }
        Ok(())
    }
}
