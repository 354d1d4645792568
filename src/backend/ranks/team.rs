//! The ranks of a run, for sums over all of them and for numbers that all of them get.

use std::sync::Arc;

use super::held::{OwnRows, RankDevices};
use crate::backend::cut::RowCut;
use crate::backend::{BlockVector, Device, Dots};
use crate::error::Result;
use crate::number::C64;
use crate::ranks::{self, World};

/// The ranks, for sums and exchanges.
#[derive(Clone, Copy)]
pub(super) struct Team {
    pub world: &'static World,
}

impl Team {
    pub fn place(self) -> (usize, usize) {
        (self.world.rank(), self.world.size())
    }

    /// Looks whether all ranks share out vectors of as many rows.
    ///
    /// # Errors
    /// They do not; those of MPI.
    pub fn same(self, rows: usize) -> Result<()> {
        let all = self.world.gather_words(vec![rows as u64])?;
        match all.iter().position(|other| *other != all[0]) {
            None => Ok(()),
            Some(rank) => Err(ranks::apart(&format!(
                ": rank 0 has vectors of {} rows where rank {rank} has some of {}",
                all[0], all[rank]
            ))),
        }
    }

    /// Numbers summed over ranks.
    pub fn total(self, mut numbers: Vec<C64>) -> Result<Vec<C64>> {
        self.world.sum(bytemuck::cast_slice_mut(&mut numbers))?;
        Ok(numbers)
    }

    /// Numbers of the one rank that has all rows, on all ranks.
    pub fn told(self, mut numbers: Vec<C64>, rank: usize) -> Result<Vec<C64>> {
        self.world.tell(bytemuck::cast_slice_mut(&mut numbers), rank)?;
        Ok(numbers)
    }

    /// Products summed over ranks, in one go.
    pub fn complete(self, dots: &mut [Dots]) -> Result<()> {
        let partial = || dots.iter().filter(|d| d.partial);
        let mut all: Vec<f64> = partial().flat_map(|d| d.vv.iter().chain(&d.wv).copied()).collect();
        if partial().next().is_none() {
            return Ok(());
        }
        self.world.sum(&mut all)?;
        let mut sums = all.into_iter();
        for dots in dots.iter_mut().filter(|d| d.partial) {
            dots.vv.iter_mut().chain(&mut dots.wv).zip(&mut sums).for_each(|(x, sum)| *x = sum);
            dots.partial = false;
        }
        Ok(())
    }

    /// The same of one pass.
    pub fn completed(self, dots: Dots) -> Result<Dots> {
        let mut dots = [dots];
        self.complete(&mut dots)?;
        let [dots] = dots;
        Ok(dots)
    }

    /// All rows of a vector, on every rank.
    pub fn gathered(self, device: &Device, own: &OwnRows, columns: usize) -> Result<Vec<C64>> {
        let mine = if own.cut.local() == 0 { Vec::new() } else { device.download(&own.block)? };
        let parts = self.world.gather(bytemuck::cast_slice(&mine).to_vec())?;
        drop(mine);
        let mut all = vec![C64::default(); own.cut.rows * columns];
        for (rank, bytes) in parts.into_iter().enumerate() {
            let mut at = 0;
            for (start, length) in own.cut.runs(rank) {
                let to: &mut [u8] =
                    bytemuck::cast_slice_mut(&mut all[start * columns..(start + length) * columns]);
                to.copy_from_slice(&bytes[at..at + to.len()]);
                at += to.len();
            }
        }
        Ok(all)
    }

    /// A vector with its rows elsewhere, by way of the hosts.
    pub fn moved(
        self,
        places: &RankDevices,
        v: &BlockVector,
        from: &OwnRows,
        cut: Arc<RowCut>,
    ) -> Result<BlockVector> {
        let all = self.gathered(&places.device, from, v.columns)?;
        places.cut_out(v.dtype, v.rows, v.columns, &all, cut)
    }
}
