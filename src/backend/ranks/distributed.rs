//! What a rank knows of its own rows and of the others.

use std::sync::Arc;

use super::held::{other_cut, own};
use super::{Ranks, Uneven, kernel, one};
use crate::backend::cut::{RowDivision, share};
use crate::backend::distributed::Distributed;
use crate::backend::lone::LoneRank;
use crate::backend::matrix::Csr;
use crate::backend::matrix::wilson::COMPONENTS;
use crate::backend::shared::SharedRows;
use crate::backend::{BlockVector, Dots, Grid, Kernel, KernelShape, MatrixSpec, Region, Rows};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::ranks::AlikeRanks;

impl Distributed for Ranks {
    /// Of a lattice that is not shared out every rank has all sites, wherever its vectors are.
    fn download_own(&self, v: &BlockVector) -> Result<Vec<C64>> {
        match own(v) {
            Some(own) if !self.is_cut(v)? => self.gathered(own, v.columns),
            Some(own) => self.places.at(&own.cut).download(&own.block),
            None => self.places.device.download(v),
        }
    }

    fn complete(&self, dots: &mut [Dots]) -> Result<()> {
        self.team.complete(dots)
    }

    fn held(&self, rows: usize) -> Result<Option<Vec<(usize, usize)>>> {
        let cut = self.cut_of(&Rows::all(rows))?;
        let shared = !cut.is_whole() && rows >= self.least;
        Ok(shared.then(|| cut.runs(cut.part)))
    }

    fn region(&self, dims: [usize; 4]) -> Result<Region> {
        let cut = self.cut_of(&Rows::on(Grid { dims, per_site: COMPONENTS }))?;
        Ok(match &cut.way {
            RowDivision::Boxes(boxes) => Region::of_box(dims, Arc::new(boxes.clone()), cut.part),
            RowDivision::Whole | RowDivision::Ranges(_) => Region::whole(dims),
        })
    }

    fn prepare_held(
        &self,
        csr: Csr,
        rows: usize,
        format: &dyn Fn(Arc<Csr>) -> MatrixSpec,
    ) -> Result<Arc<dyn Kernel>> {
        let cut = self.cut_of(&Rows::all(rows))?;
        if cut.is_whole() || csr.rows != cut.local() || csr.cols != rows {
            return Err(Error::internal("rows that are not those of this rank"));
        }
        let dtype = csr.values.dtype();
        if self.uneven.is_some() && cut.lone().is_some() {
            let shape = KernelShape::square(Rows::all(rows), dtype);
            return one::prepare(self, shape, || Ok(format(Arc::new(csr))), (cut.clone(), cut));
        }
        let share = share::kept(csr, &cut, format);
        kernel::prepare(
            self.team,
            &self.places.device,
            dtype,
            share,
            (Rows::all(rows), None),
            (cut.clone(), cut),
        )
    }

    /// Where vectors live whole, each rank decides for itself by numbers of its own, such as how often a search goes
    /// on: only ranks whose backends are the same may compute for one another. A card is through with its work before
    /// what others have done has passed their hosts.
    fn alike(&self) -> Result<Option<AlikeRanks>> {
        let always = self.least == 0;
        let (same, card) = self.kinds()?;
        Ok((same && (always || !card)).then(|| AlikeRanks::new(self.team.world, always)))
    }

    fn solves_together(&self) -> Result<Option<AlikeRanks>> {
        if let Some(lone) = self.lone_rank() {
            return Ok(Some(AlikeRanks::by_one(self.team.world, lone.rank)));
        }
        let always = self.least == 0;
        let (same, card) = self.kinds()?;
        let possible = same && (always || !card || self.together.is_possible()?);
        Ok(possible.then(|| AlikeRanks::new(self.team.world, always)))
    }

    fn walkers(&self) -> Option<Vec<f64>> {
        self.uneven.as_ref().and_then(Uneven::of_walkers)
    }

    fn joined(&self, own: &BlockVector, starts: &[usize]) -> Result<Option<BlockVector>> {
        self.put_together(own, starts)
    }

    fn lone(&self) -> Option<LoneRank> {
        self.lone_rank()
    }

    fn at_lone(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        self.at_one(self.lone_rank().ok_or_else(other_cut)?, v)
    }

    fn held_by_lone(
        &self,
        own: Result<Option<BlockVector>>,
        shape: (DType, Rows, usize),
    ) -> Result<BlockVector> {
        self.held_by_one(self.lone_rank().ok_or_else(other_cut)?, own, shape)
    }

    fn kept_by_lone(&self, own: Result<Option<BlockVector>>, numbers: usize) -> Result<Option<BlockVector>> {
        self.kept_by_one(self.lone_rank().ok_or_else(other_cut)?, own, numbers)
    }
}
