//! The Green's function of a sample with its leads.

use super::opening::unresolved;
use super::slices::{SliceBlocks, Triplet};
use super::{TransportSample, subtract_leads, unreached};
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, memory};
use crate::task::Task;

impl TransportSample {
    /// The retarded Green's function: a row for each row of the sites `to`, a column for each of the sites `from`.
    ///
    /// # Errors
    /// Sites that are not there or that no lead reaches, an energy at which a lead is not resolved, or that of a level
    /// that no lead reaches; no memory; interruption.
    pub fn green(&self, to: &[usize], from: &[usize], energy: f64, task: &Task) -> Result<Matrix> {
        let (to, from) = (self.rows_of(to)?, self.rows_of(from)?);
        let openings = self.openings(energy)?.ok_or_else(|| unresolved(energy))?;
        let (slices, rows) = self.with_leads(&openings);
        let mut blocks = SliceBlocks::new(&slices, &self.h, energy);
        subtract_leads(&mut blocks, &rows, &openings);
        memory::ensure(16 * (self.h.rows * from.len()) as u128, "a Green's function from some sites")?;
        let mut b: Vec<Vec<Triplet>> = vec![Vec::new(); slices.rows.len()];
        from.iter().enumerate().for_each(|(column, &(slice, i))| b[slice].push((i, column, C64::ONE)));
        let (x, open) = blocks.solve(&b, from.len(), task)?;
        if open {
            return Err(unreached());
        }
        Ok(Matrix::from_fn(to.len(), from.len(), |i, j| x[to[i].0][(to[i].1, j)]))
    }

    /// The slice of each row of some sites, and its number there.
    fn rows_of(&self, sites: &[usize]) -> Result<Vec<(usize, usize)>> {
        let count = self.h.rows / self.orbitals;
        let mut all = Vec::with_capacity(sites.len() * self.orbitals);
        for &site in sites {
            if site >= count {
                return Err(Error::input(format!("site {site} of a sample of {count}"))
                    .hint("sites are numbered from 0, as in the lattice of the sample"));
            }
            for row in site * self.orbitals..(site + 1) * self.orbitals {
                all.push(self.slices.place(row).ok_or_else(|| {
                    Error::input(format!("site {site} belongs to a part of the sample that no lead reaches"))
                        .hint("join it to the rest, or attach a lead to it")
                })?);
            }
        }
        Ok(all)
    }
}
