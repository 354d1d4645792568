//! Which row of an operator is which orbital of which site, for local densities of states and momentum-resolved
//! spectra.

use std::sync::Arc;

use super::lattice::Lattice;
use super::nambu::Holes;
use super::strained::{Strained, content};
use crate::error::{Error, Result};

/// A lattice with so many rows a site; row = site * orbitals + orbital.
#[derive(Debug, Clone)]
pub struct Geometry {
    pub lattice: Lattice,
    /// Rows a site.
    pub orbitals: usize,
    /// What the second half of a site's rows is holes of, if it is for holes.
    pub holes: Option<Holes>,
    /// Displacements of the orbitals from their sites.
    pub(super) offsets: Option<Arc<Vec<Vec<f64>>>>,
    /// Where a strain has moved the sites.
    pub(super) strain: Option<Arc<Strained>>,
}

impl Geometry {
    /// Rows on the sites of a lattice.
    pub fn new(lattice: Lattice, orbitals: usize) -> Self {
        Geometry { lattice, orbitals, holes: None, offsets: None, strain: None }
    }

    /// Whether both have the same rows at the same places; boundaries may differ.
    pub fn same_places(&self, other: &Geometry) -> bool {
        let strains = match (&self.strain, &other.strain) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(a, b)
                    || (0..self.lattice.all_sites()).all(|site| {
                        // Removed sites have no position to compare.
                        let same = |(a, b): (&Vec<f64>, &Vec<f64>)| a[site] == b[site];
                        self.lattice.number(site).is_none() || a.moved.iter().zip(&b.moved).all(same)
                    })
            }
            _ => false,
        };
        self.orbitals == other.orbitals
            && self.lattice.same_sites(&other.lattice)
            && self.offsets == other.offsets
            && strains
    }

    /// The volume of the sample: cells times the volume of one, or what a strain makes of it. Removed sites count.
    ///
    /// # Errors
    /// A strain that gives no position at a corner of a cell.
    pub fn volume(&self) -> Result<f64> {
        match &self.strain {
            None => {
                let mut vectors = self.lattice.vectors().concat();
                Ok(self.lattice.cell_count() as f64 * content(&mut vectors, self.lattice.space()))
            }
            Some(strained) => strained.volume.ok_or_else(|| {
                Error::input(
                    "the strain maps a corner of the sample to no position, so that its volume is not known",
                )
                .hint("let the map give finite positions up to the corners of the last cells")
            }),
        }
    }

    pub fn rows(&self) -> usize {
        self.lattice.sites() * self.orbitals
    }

    /// The row of an orbital of a site.
    ///
    /// # Errors
    /// When there is no such site or orbital.
    pub fn row(&self, site: usize, orbital: usize) -> Result<usize> {
        self.lattice.locate(site)?;
        if orbital >= self.orbitals {
            return Err(Error::input(format!("orbital {orbital} outside the {} of a site", self.orbitals))
                .hint("they are numbered from 0"));
        }
        Ok(site * self.orbitals + orbital)
    }

    /// Cartesian position of the orbital of a row, in lattice constants, before a strain.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn position(&self, row: usize) -> Result<Vec<f64>> {
        let (site, orbital) = (row / self.orbitals, row % self.orbitals);
        let mut at = self.lattice.position(site)?;
        if let Some(offsets) = &self.offsets {
            let (_, sublattice) = self.lattice.locate(site)?;
            let beside = &offsets[sublattice * self.orbitals + orbital];
            at.iter_mut().zip(beside).for_each(|(x, off)| *x += off);
        }
        Ok(at)
    }

    /// Sites whose cell has coordinate `index` in `direction`, ascending: a layer of a slab.
    ///
    /// # Errors
    /// When the lattice has no such direction or layer.
    pub fn layer(&self, direction: usize, index: usize) -> Result<Vec<usize>> {
        let lat = &self.lattice;
        let Some(&n) = lat.cells().get(direction) else {
            return Err(Error::input(format!(
                "direction {direction} outside a lattice of {} directions",
                lat.dimension()
            ))
            .hint("they are numbered from 0"));
        };
        if index >= n {
            return Err(Error::input(format!(
                "layer {index} outside the {n} layers of direction {direction}"
            ))
            .hint("they are numbered from 0"));
        }
        let basis = lat.basis().len();
        let stride: usize = lat.cells()[..direction].iter().product();
        let block = stride * basis;
        let outer = lat.cell_count() / (stride * n);
        let inside = (0..outer).flat_map(|o| {
            let start = (o * n + index) * block;
            start..start + block
        });
        Ok(inside.filter_map(|full| lat.number(full)).collect())
    }
}
