//! The work of one rank for all ranks, if backends differ: superblocks, their matrices and density matrices live on
//! this rank. The other ranks know only their sizes, and wait for numbers that all ranks need. A block made by this
//! rank's backend exists only there; on other ranks a vector without rows represents it.

use std::ops::Range;
use std::sync::Arc;

use super::Ranks;
use super::held::{local, own};
use crate::backend::lone::LoneRank;
use crate::backend::matrix::held::{Composed, DeviceNumbers, MatrixKeeper, Square};
use crate::backend::matrix::outer::OuterSums;
use crate::backend::matrix::records::BasisChange;
use crate::backend::{BlockVector, DenseMut, DenseSolver, Device, Rows};
use crate::error::{Error, Result};
use crate::number::DType;
use crate::ranks;

/// What the one rank has answered: an error, nothing, or something.
const ANSWERS: [f64; 3] = [0.0, 1.0, 2.0];

fn elsewhere() -> Error {
    Error::internal("work of one rank that another one was asked for")
}

impl Ranks {
    pub(super) fn lone_rank(&self) -> Option<LoneRank> {
        let rank = self.uneven.as_ref().filter(|uneven| uneven.mixed.is_some())?.shares.primary;
        Some(LoneRank { rank, here: rank == self.team.world.rank() })
    }

    /// Whether a vector lives on the one rank. Its rows may be shared out, or be on another one, where those of a
    /// matrix with as many rows are.
    fn is_lone(&self, lone: LoneRank, v: &BlockVector) -> bool {
        own(v).is_none_or(|own| own.cut.lone() == Some(lone.rank))
    }

    pub(super) fn at_one(&self, lone: LoneRank, v: &BlockVector) -> Result<Option<BlockVector>> {
        let brought = match own(v) {
            Some(own) if !self.is_lone(lone, v) => {
                let cut = Arc::new(self.undivided(own.cut.rows));
                Some(self.team.moved(&self.places, v, own, cut)?)
            }
            _ => None,
        };
        Ok(lone.here.then(|| local(brought.as_ref().unwrap_or(v)).clone()))
    }

    /// What only the one rank has found, told as far as others must know: whether it is something.
    /// Errors are those of all.
    fn answered<T>(&self, lone: LoneRank, own: Result<Option<T>>) -> Result<(bool, Option<T>)> {
        let [failed, nothing, something] = ANSWERS;
        let mine = own.as_ref().map_or(failed, |own| if own.is_some() { something } else { nothing });
        let mut answer = [mine];
        self.team.world.tell(&mut answer, lone.rank)?;
        if answer == [failed] {
            ranks::agreed(own)?;
            return Err(ranks::apart(" in what one of them does"));
        }
        Ok((answer == [something], own?))
    }

    /// A block that the one rank makes by its own backend, and what stands for it elsewhere; none where it makes none.
    fn made_by_one(
        &self,
        lone: LoneRank,
        numbers: usize,
        make: impl FnOnce(&Device) -> Result<Option<BlockVector>>,
    ) -> Result<Option<BlockVector>> {
        let own = if lone.here { make(&self.places.device) } else { Ok(None) };
        self.kept_by_one(lone, own, numbers)
    }

    pub(super) fn kept_by_one(
        &self,
        lone: LoneRank,
        own: Result<Option<BlockVector>>,
        numbers: usize,
    ) -> Result<Option<BlockVector>> {
        match self.answered(lone, own)? {
            (false, _) => Ok(None),
            (true, Some(block)) => Ok(Some(block)),
            (true, None) => self.wrapped(None, (DType::F64, Rows::all(numbers), 1)).map(Some),
        }
    }

    /// A vector whose rows the one rank has, if this is it.
    fn wrapped(&self, block: Option<BlockVector>, shape: (DType, Rows, usize)) -> Result<BlockVector> {
        self.places.of_one(Arc::new(self.undivided(shape.1.global)), shape, block)
    }

    pub(super) fn held_by_one(
        &self,
        lone: LoneRank,
        own: Result<Option<BlockVector>>,
        shape: (DType, Rows, usize),
    ) -> Result<BlockVector> {
        match self.answered(lone, own)? {
            (true, own) => self.wrapped(own, shape),
            (false, _) => Err(elsewhere()),
        }
    }

    /// The diagonal of a superblock that lives on one rank.
    pub(super) fn outer_of_one(
        &self,
        lone: LoneRank,
        sums: &OuterSums,
        range: Range<usize>,
    ) -> Result<Option<BlockVector>> {
        let rows = Rows::all(range.len());
        let make = || self.places.device.superblocks().map_or(Ok(None), |faster| faster.outer(sums, range));
        match self.answered(lone, if lone.here { make() } else { Ok(None) })? {
            (false, _) => Ok(None),
            (true, own) => self.wrapped(own, (DType::F64, rows, 1)).map(Some),
        }
    }

    pub(super) fn turned_by_one(
        &self,
        lone: LoneRank,
        turns: &[BasisChange<'_, f64>],
    ) -> Result<Option<BlockVector>> {
        let numbers = turns.iter().map(BasisChange::numbers).sum();
        self.made_by_one(lone, numbers, |device| {
            device.superblocks().map_or(Ok(None), |faster| faster.turned(turns))
        })
    }

    /// All rows of a vector that lives on the one rank, as a block of its own backend.
    pub(super) fn rows_of_one(&self, lone: LoneRank, v: &BlockVector) -> Result<Option<BlockVector>> {
        if !self.is_lone(lone, v) {
            return Ok(None);
        }
        self.made_by_one(lone, v.rows.global * v.columns, |device| device.all_rows(local(v)))
    }

    /// All numbers of a real vector that lives on the one rank, on all ranks.
    pub(super) fn reals_of_one(&self, lone: LoneRank, v: &BlockVector) -> Result<Option<Vec<f64>>> {
        if v.dtype != DType::F64 || v.rows.grid.is_some() || !self.is_lone(lone, v) {
            return Ok(None);
        }
        let (device, own) = (&self.places.device, local(v));
        let numbers = || match device.download_real(own)? {
            Some(numbers) => Ok(numbers),
            None => Ok(device.download(own)?.iter().map(|z| z.re).collect()),
        };
        lone.tell(v.rows.global * v.columns, numbers).map(Some)
    }

    pub(super) fn part_of_one(
        &self,
        lone: LoneRank,
        v: &BlockVector,
        range: Range<usize>,
    ) -> Result<Vec<f64>> {
        lone.tell(range.len(), || self.places.device.download_part(local(v), range))
    }

    /// The keeper of the one rank's backend; none on the others.
    fn own_keeper(&self, lone: LoneRank) -> Option<&dyn MatrixKeeper> {
        if lone.here { self.places.device.keeper() } else { None }
    }

    /// Whether the one rank's backend solves dense matrices, which all ranks ask together.
    /// It may still have to look for its library.
    pub(super) fn solves_alone(&self, lone: LoneRank) -> bool {
        *self.solves.get_or_init(|| {
            let own = lone.here && self.places.device.dense_solver().is_some();
            // Without an answer nothing else is answered either.
            let all = self.team.world.gather_words(vec![own.into()]).unwrap_or_default();
            all.get(lone.rank).is_some_and(|word| *word > 0)
        })
    }

    /// The one rank, where there is one that keeps matrices.
    fn lone_keeper(&self) -> Result<LoneRank> {
        self.lone_rank().ok_or_else(elsewhere)
    }
}

/// Of ranks whose backends differ, where the one that has what lives whole keeps matrices.
impl MatrixKeeper for Ranks {
    fn keep(&self, numbers: &Arc<DeviceNumbers>) -> Result<()> {
        let lone = self.lone_keeper()?;
        let own = self.own_keeper(lone).map_or(Ok(()), |keeper| keeper.keep(numbers));
        self.answered(lone, own.map(Some)).map(|_| ())
    }

    fn composed(&self, all: &[Composed<'_>]) -> Result<BlockVector> {
        let lone = self.lone_keeper()?;
        let numbers = all.iter().map(|of| of.rows * of.columns).sum();
        let own = self.own_keeper(lone).map(|keeper| keeper.composed(all)).transpose();
        self.kept_by_one(lone, own, numbers)?.ok_or_else(elsewhere)
    }

    fn squares(&self, all: &[(usize, Vec<Square<'_>>)]) -> Result<BlockVector> {
        let lone = self.lone_keeper()?;
        let numbers = all.iter().map(|(n, _)| n * n).sum();
        let own = self.own_keeper(lone).map(|keeper| keeper.squares(all)).transpose();
        self.kept_by_one(lone, own, numbers)?.ok_or_else(elsewhere)
    }

    fn replace(&self, block: &BlockVector, first: usize, numbers: &[f64]) -> Result<()> {
        let lone = self.lone_keeper()?;
        let own = self.own_keeper(lone).map_or(Ok(()), |keeper| keeper.replace(block, first, numbers));
        ranks::result_of(lone.rank, own)
    }

    /// By the one rank alone: only this asks for it.
    fn eigh(&self, rows: usize, block: &BlockVector, first: usize) -> Result<Option<Vec<f64>>> {
        let keeper = self.own_keeper(self.lone_keeper()?).ok_or_else(elsewhere)?;
        keeper.eigh(rows, block, first)
    }
}

/// Likewise: the one rank alone solves.
impl DenseSolver for Ranks {
    fn eigh(&self, n: usize, numbers: DenseMut<'_>) -> Result<Vec<f64>> {
        let here = self.lone_rank().is_some_and(|lone| lone.here);
        let solver = self.places.device.dense_solver().filter(|_| here).ok_or_else(elsewhere)?;
        solver.eigh(n, numbers)
    }
}
