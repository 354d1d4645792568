//! Operators whose rows are not shared out: one part has them whole, and vectors that are not there already travel.

use std::sync::Arc;

use super::{Piece, Split, pieces, pieces_mut};
use crate::backend::{BlockVector, Device, Dots, Kernel, KernelInfo, Rows, Update, check_update};
use crate::error::Result;
use crate::number::DType;

struct Whole {
    inner: Arc<dyn Kernel>,
    part: usize,
    parts: Vec<Device>,
}

pub(super) fn prepare(split: &Split, part: usize, inner: Arc<dyn Kernel>) -> Arc<dyn Kernel> {
    Arc::new(Whole { inner, part, parts: split.parts.clone() })
}

impl Whole {
    /// The block as its part has it, if it is there.
    fn there<'a>(&self, v: &'a BlockVector) -> Result<Option<&'a BlockVector>> {
        Ok(match pieces(v)? {
            [piece] if piece.part == self.part => Some(&piece.block),
            _ => None,
        })
    }

    fn there_mut<'a>(&self, v: &'a mut BlockVector) -> Result<Option<&'a mut BlockVector>> {
        Ok(match pieces_mut(v)? {
            [piece] if piece.part == self.part => Some(&mut piece.block),
            _ => None,
        })
    }

    /// The block brought to the part.
    fn bring(&self, v: &BlockVector) -> Result<BlockVector> {
        let mut numbers = Vec::with_capacity(v.rows.local * v.columns);
        for Piece { part, block, .. } in pieces(v)? {
            numbers.extend(self.parts[*part].download(block)?);
        }
        self.parts[self.part].upload(v.dtype, v.rows, v.columns, &numbers)
    }

    /// The numbers of a block of the part to where `v` has its rows.
    fn take_back(&self, whole: &BlockVector, v: &mut BlockVector) -> Result<()> {
        let numbers = self.parts[self.part].download(whole)?;
        let (dtype, columns) = (v.dtype, v.columns);
        for piece in pieces_mut(v)? {
            let rows = piece.block.rows;
            let own = &numbers[piece.start * columns..(piece.start + rows.local) * columns];
            piece.block = self.parts[piece.part].upload(dtype, rows, columns, own)?;
        }
        Ok(())
    }
}

impl Kernel for Whole {
    fn rows(&self) -> Rows {
        self.inner.rows()
    }

    fn cols(&self) -> usize {
        self.inner.cols()
    }

    fn dtype(&self) -> DType {
        self.inner.dtype()
    }

    fn info(&self) -> KernelInfo {
        self.inner.info()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let brought = if self.there(v)?.is_none() { Some(self.bring(v)?) } else { None };
        let v = match &brought {
            Some(v) => v,
            None => self.there(v)?.unwrap_or(v),
        };
        if let Some(w) = self.there_mut(w)? {
            return self.inner.update(c, v, w, dots);
        }
        let mut to = self.bring(w)?;
        self.inner.update(c, v, &mut to, dots)?;
        self.take_back(&to, w)
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        let v = self.there(v).ok()??;
        let w = self.there_mut(w).ok()??;
        let plus: Option<Vec<_>> = plus.iter().map(|(f, x)| Some((*f, self.there(x).ok()??))).collect();
        self.inner.update_plus(c, v, w, &plus?)
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
        if let (Some(v), Some(w)) = (self.there_mut(v)?, self.there_mut(w)?) {
            return self.inner.recurrence(alpha, beta, v, w, steps, out);
        }
        let (mut x, mut y) = (self.bring(v)?, self.bring(w)?);
        self.inner.recurrence(alpha, beta, &mut x, &mut y, steps, out)?;
        self.take_back(&x, v)?;
        self.take_back(&y, w)
    }
    fn overwrites(&self) -> bool {
        self.inner.overwrites()
    }
}
