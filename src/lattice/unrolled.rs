//! The matrix of a model, in parts by how often its hoppings cross the boundaries.

use std::collections::BTreeMap;

use super::lattice::MAX_DIMENSION;
use super::model::Model;
use super::plan::{Plan, Rows, copy};
use crate::backend::matrix::Wrap;
use crate::error::Result;
use crate::number::{C64, memory};
use crate::task;

/// The matrix elements `<row| H |column>` of columns in another copy of the sample.
#[derive(Debug, Clone)]
pub struct Beyond {
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
    pub fn by_copy(&self, axes: &[usize]) -> Result<Vec<Beyond>> {
        let lattice = &self.lattice;
        let mut most = [0; MAX_DIMENSION];
        for (d, (&n, wrap)) in lattice.cells().iter().zip(lattice.wrap()).enumerate() {
            if *wrap != Wrap::Open {
                let longest = self.hops.iter().map(|hop| hop.bond.shift[d].abs()).max().unwrap_or(0);
                most[d] = (longest + n as i64 - 1) / n as i64;
            }
        }
        let mut copies = BTreeMap::new();
        for code in 0..most.iter().map(|m| 2 * m + 1).product::<i64>() {
            let (mut at, mut rest) = ([0; MAX_DIMENSION], code);
            for (x, m) in at.iter_mut().zip(&most) {
                let n = 2 * m + 1;
                (*x, rest) = (rest % n, rest / n);
                *x -= if *x > *m { n } else { 0 };
            }
            copies.insert(copy(&at, &most), at);
        }
        let rows = self.rows();
        let mut plan = Plan::new(self, axes);
        plan.unrolled = Some(most);
        let mut scratch = Rows::new(self.orbitals);
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
        let part = |(code, entries)| Beyond { copy: copies.get(&code).copied().unwrap_or_default(), entries };
        Ok(parts.into_iter().map(part).collect())
    }
}
