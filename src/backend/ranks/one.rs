//! A matrix that is on one rank only. This rank computes, and the others wait only for its numbers. Vectors with rows
//! on other ranks are copied there.

use std::borrow::Cow;
use std::sync::Arc;

use super::held::{RankDevices, local, other_cut, own, own_mut};
use super::{Ranks, Team};
use crate::backend::cut::RowCut;
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, OnePlace, Update, check_update,
};
use crate::error::Result;
use crate::number::{C64, DType};
use crate::ranks::{self, Broadcast};

/// Rows from which on work with vectors may take long enough to be watched: rank 0 shows its progress, so that of
/// another rank all have to take part in it.
const WATCHED: usize = 1 << 20;

struct OneRank {
    team: Team,
    places: RankDevices,
    /// Where the rows of its vectors are: all on one rank.
    row_cut: Arc<RowCut>,
    col_cut: Arc<RowCut>,
    shape: KernelShape,
    info: KernelInfo,
    /// On the rank that has it.
    inner: Option<Arc<dyn Kernel>>,
}

/// A matrix whose vectors have all their rows on one rank.
pub(super) fn prepare(
    ranks: &Ranks,
    shape: KernelShape,
    spec: impl FnOnce() -> Result<MatrixSpec>,
    (row_cut, col_cut): (Arc<RowCut>, Arc<RowCut>),
) -> Result<Arc<dyn Kernel>> {
    let (team, places) = (ranks.team, ranks.places.clone());
    let rank = row_cut.holders()[0];
    let own = (rank == row_cut.part).then(|| places.device.prepare(spec()?)).transpose();
    let (inner, own) = match own {
        Ok(inner) => {
            let info = inner.as_ref().map(|inner| inner.info());
            (inner, Ok(info))
        }
        Err(e) => (None, Err(e)),
    };
    let info = ranks::result_of(rank, own)?.ok_or_else(other_cut)?;
    Ok(Arc::new(OneRank { team, places, row_cut, col_cut, shape, info, inner }))
}

impl Broadcast for KernelInfo {
    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.bytes, self.entries].map(|n| (n as u64).to_le_bytes());
        [&numbers.concat(), self.format.as_bytes()].concat()
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (numbers, format) = bytes.split_at_checked(16)?;
        let (bytes, entries) = numbers.split_at(8);
        let number = |bytes| usize::try_from(u64::of(bytes)?).ok();
        Some(KernelInfo { format: String::of(format)?, bytes: number(bytes)?, entries: number(entries)? })
    }
}

/// No products: those of a rank that has no rows.
fn nothing(columns: usize) -> Dots {
    Dots { vv: vec![0.0; columns], wv: vec![0.0; columns], partial: true }
}

impl OneRank {
    /// A vector with its rows where this matrix is.
    fn brought<'a>(&self, v: &'a BlockVector, cut: &Arc<RowCut>) -> Result<Cow<'a, BlockVector>> {
        match own(v) {
            Some(own) if own.cut != *cut => {
                self.team.moved(&self.places, v, own, cut.clone()).map(Cow::Owned)
            }
            _ => Ok(Cow::Borrowed(v)),
        }
    }

    /// Whether a vector has its rows where this matrix is.
    fn has(&self, v: &BlockVector, cut: &Arc<RowCut>) -> bool {
        own(v).is_some_and(|own| own.cut == *cut)
    }

    /// One pass, with the products of this rank if they are asked for: both vectors are where the matrix is.
    fn pass(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: bool) -> Result<Option<Dots>> {
        let columns = w.columns;
        let (Some(inner), Some(v), Some(w)) = (&self.inner, own(v), own_mut(w)) else {
            return Ok(dots.then(|| nothing(columns)));
        };
        if dots {
            return inner.update_partial(c, &v.block, &mut w.block).map(Some);
        }
        inner.update(c, &v.block, &mut w.block, None).map(|()| None)
    }

    /// The same, wherever the vectors are.
    fn pass_there(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: bool,
    ) -> Result<Option<Dots>> {
        check_update(self, v, w, dots)?;
        let v = self.brought(v, &self.col_cut)?;
        if self.has(w, &self.row_cut) {
            return self.pass(c, &v, w, dots);
        }
        let mut there = self.brought(w, &self.row_cut)?.into_owned();
        let found = self.pass(c, &v, &mut there, dots)?;
        if let (Some(from), Some(to)) = (own(&there), own(w)) {
            *w = self.team.moved(&self.places, &there, from, to.cut.clone())?;
        }
        Ok(found)
    }
}

impl Kernel for OneRank {
    fn shape(&self) -> KernelShape {
        self.shape
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let found = self.pass_there(c, v, w, dots.is_some())?;
        if let (Some(dots), Some(found)) = (dots, found) {
            *dots = self.team.completed(Dots { partial: true, ..found })?;
        }
        Ok(())
    }

    /// All ranks have such a pass, whether or not the matrix has.
    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        let fits = plus.iter().all(|(_, x)| self.has(x, &self.row_cut));
        if !fits || !self.has(v, &self.col_cut) || !self.has(w, &self.row_cut) {
            return None;
        }
        let (Some(inner), Some(v), Some(w)) = (&self.inner, own(v), own_mut(w)) else { return Some(Ok(())) };
        let (v, w) = (&*v.block, &mut *w.block);
        let plus: Vec<(f64, &BlockVector)> =
            plus.iter().filter_map(|(factor, x)| Some((*factor, &*own(x)?.block))).collect();
        if let Some(done) = inner.update_plus(c, v, w, &plus) {
            return Some(done);
        }
        let one_by_one = |w: &mut BlockVector| {
            inner.update(c, v, w, None)?;
            plus.iter().try_for_each(|(factor, x)| {
                self.places.device.axpby(&[C64::new(*factor, 0.0)], x, &[C64::ONE], w)
            })
        };
        Some(one_by_one(w))
    }

    fn update_partial(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Dots> {
        let found = self.pass_there(c, v, w, true)?;
        Ok(Dots { partial: true, ..found.unwrap_or_else(|| nothing(w.columns)) })
    }

    fn recurrence(
        &self,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        check_update(self, v, w, true)?;
        let columns = v.columns;
        if !self.has(v, &self.col_cut) || !self.has(w, &self.row_cut) {
            let c = Update { alpha, beta, gamma: -1.0 };
            for _ in 0..steps {
                out.push(self.update_partial(c, v, w)?);
                std::mem::swap(v, w);
            }
            return Ok(());
        }
        let (Some(inner), Some(of_v), Some(of_w)) = (&self.inner, own_mut(v), own_mut(w)) else {
            out.extend((0..steps).map(|_| nothing(columns)));
            return Ok(());
        };
        let mut found = Vec::with_capacity(steps);
        inner.recurrence(alpha, beta, &mut of_v.block, &mut of_w.block, steps, &mut found)?;
        out.extend(found.into_iter().map(|dots| Dots { partial: true, ..dots }));
        Ok(())
    }

    fn overwrites(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.overwrites())
    }

    fn one_place(&self) -> Option<&dyn OnePlace> {
        let rank = self.row_cut.lone().filter(|_| self.row_cut == self.col_cut)?;
        (rank == 0 || self.shape.cols < WATCHED).then_some(self as &dyn OnePlace)
    }
}

impl OnePlace for OneRank {
    fn there(&self) -> Option<(&Device, &Arc<dyn Kernel>)> {
        self.inner.as_ref().map(|inner| (&self.places.device, inner))
    }

    fn bring(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        let there = self.brought(v, &self.row_cut)?;
        Ok(self.inner.as_ref().map(|_| local(&there).clone()))
    }

    fn known(&self, own: Option<BlockVector>, (dtype, columns): (DType, usize)) -> Result<BlockVector> {
        self.places.of_one(self.row_cut.clone(), (dtype, self.shape.rows, columns), own)
    }

    fn tell(&self, count: usize, own: Result<Option<Vec<f64>>>) -> Result<Vec<f64>> {
        ranks::told_by(self.row_cut.holders()[0], own.map(Option::unwrap_or_default), count)
    }
}
