//! Entries that the rows of a sublattice have in all cells of a model's lattice.

use super::lattice::Renumbering;
use crate::number::C64;

/// An entry that rows of a sublattice have in all cells inside, but for sites that are gone.
pub(super) struct SameEntry<'a> {
    /// From the first row of the site to the column.
    pub ahead: isize,
    /// From the site to that of the column, and the orbital there.
    pub sites: isize,
    pub orbital: usize,
    pub value: C64,
    /// A factor for each cell, and which of them is that of the row's cell.
    pub scale: Option<(&'a [f64], isize)>,
    /// Whether an energy of the site adds to it.
    pub diagonal: bool,
}

impl SameEntry<'_> {
    /// From an orbital of a site to a row of this site.
    pub fn on_site(orbital: usize, value: C64, diagonal: bool) -> Self {
        SameEntry { ahead: orbital as isize, sites: 0, orbital, value, scale: None, diagonal }
    }

    /// The column in the rows of a site, where all sites stay.
    #[inline]
    pub fn column(&self, row: usize) -> usize {
        row.wrapping_add_signed(self.ahead)
    }

    #[inline]
    pub fn value_in(&self, cell: usize) -> C64 {
        match self.scale {
            Some((all, ahead)) => self.value * all[cell.wrapping_add_signed(ahead)],
            None => self.value,
        }
    }

    /// The number of the column's site among those that stay, `usize::MAX` where it is gone.
    #[inline]
    pub fn among(&self, kept: &Renumbering, full: usize) -> usize {
        kept.number[full.wrapping_add_signed(self.sites)]
    }
}
