//! Which row of an operator is which orbital of which site: what local densities of states and momentum-resolved
//! spectra need to know of the lattice an operator came from.

use super::lattice::Lattice;
use crate::error::{Error, Result};

/// A lattice with so many rows a site; row = site * orbitals + orbital.
#[derive(Debug, Clone)]
pub struct Geometry {
    /// The lattice.
    pub lattice: Lattice,
    /// Rows a site.
    pub orbitals: usize,
}

impl Geometry {
    /// Number of rows.
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
            return Err(Error::input(format!("orbital {orbital} outside the {} of a site", self.orbitals)));
        }
        Ok(site * self.orbitals + orbital)
    }

    /// Cartesian position of the site that a row belongs to, in lattice constants.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn position(&self, row: usize) -> Result<Vec<f64>> {
        self.lattice.position(row / self.orbitals)
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
            )));
        };
        if index >= n {
            return Err(Error::input(format!(
                "layer {index} outside the {n} layers of direction {direction}"
            )));
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
