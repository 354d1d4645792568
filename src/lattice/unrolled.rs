//! The matrix of a model, in parts by how often its hoppings cross the boundaries.

use std::collections::BTreeMap;

use super::lattice::MAX_DIMENSION;
use super::model::Model;
use super::plan::{ModelRows, RowPlan, crossings};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task;

/// The matrix elements `<row| H |column>` of columns in another copy of the sample.
#[derive(Debug, Clone)]
pub struct CopyElements {
    /// Which copy: how many boundaries are crossed in each direction of the lattice.
    pub copy: [i64; MAX_DIMENSION],
    /// Rows, columns and values, by row and then column.
    pub entries: Vec<(usize, usize, C64)>,
}

impl Model {
    /// The matrix in parts, one for each copy of the sample that it reaches, this one included; phases of the
    /// boundaries are left out. With axes the commutators with the positions, as [`Model::assemble_along`]
    /// makes them.
    ///
    /// # Errors
    /// When there is no memory for it, or on interruption.
    pub fn by_copy(&self, axes: &[usize]) -> Result<Vec<CopyElements>> {
        let lattice = &self.lattice;
        let mut most = [0; MAX_DIMENSION];
        for (d, (&n, wrap)) in lattice.cells().iter().zip(lattice.wrap()).enumerate() {
            if *wrap != Wrap::Open {
                let longest = self.hops.iter().map(|hop| hop.bond.shift[d].unsigned_abs()).max().unwrap_or(0);
                most[d] = longest.div_ceil(n as u64) as i64;
            }
        }
        // Rows of all copies are numbered.
        let numbers = most.iter().fold(self.rows() as u128, |n, m| n.saturating_mul(2 * *m as u128 + 1));
        if numbers > usize::MAX as u128 / 2 {
            return Err(Error::input("hoppings that cross the boundaries too often to be counted")
                .hint("a hopping is given by cells, not by places"));
        }
        let rows = self.rows();
        let mut plan = RowPlan::new(self, axes);
        plan.unrolled = Some(most);
        let mut scratch = ModelRows::new(self.orbitals);
        let mut parts: BTreeMap<usize, Vec<(usize, usize, C64)>> = BTreeMap::new();
        let mut count = 0;
        for site in 0..lattice.sites() {
            plan.site(site, &mut scratch);
            for (i, row) in scratch.rows.iter().enumerate() {
                for &(column, value) in row {
                    let entries = parts.entry(column / rows).or_default();
                    entries.push((site * self.orbitals + i, column % rows, value));
                    count += 1;
                }
            }
            if site.is_multiple_of(256) {
                task::poll()?;
                memory::ensure(64 * count as u128, &format!("{count} matrix elements"))?;
            }
        }
        Ok(parts
            .into_iter()
            .map(|(code, entries)| CopyElements { copy: crossings(code, &most), entries })
            .collect())
    }
}
