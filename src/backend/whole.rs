//! Operators whose rows are not shared out: they live whole at one place, and vectors that are not there already travel.

use std::sync::Arc;

use super::exchange::Later;
use super::{BlockVector, Dots, Kernel, KernelInfo, Rows, Update, check_update};
use crate::error::Result;
use crate::number::DType;

/// Where such an operator lives.
pub(super) trait Home: Send + Sync {
    /// The block as this place has it, if it is there.
    fn there<'a>(&self, v: &'a BlockVector) -> Result<Option<&'a BlockVector>>;

    /// The same, to change it.
    fn there_mut<'a>(&self, v: &'a mut BlockVector) -> Result<Option<&'a mut BlockVector>>;

    /// A copy of the block, at this place.
    fn bring(&self, v: &BlockVector) -> Result<BlockVector>;

    /// The numbers of a block of this place to where `v` has its rows.
    fn take_back(&self, whole: BlockVector, v: &mut BlockVector) -> Result<()>;

    /// Whether this place can record passes.
    fn records(&self) -> bool {
        false
    }
}

/// Such an operator.
pub(super) struct Whole<H> {
    pub home: H,
    pub inner: Arc<dyn Kernel>,
}

impl<H: Home> Kernel for Whole<H> {
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
        let brought = if self.home.there(v)?.is_none() { Some(self.home.bring(v)?) } else { None };
        let v = match &brought {
            Some(v) => v,
            None => self.home.there(v)?.unwrap_or(v),
        };
        if let Some(w) = self.home.there_mut(w)? {
            return self.inner.update(c, v, w, dots);
        }
        let mut to = self.home.bring(w)?;
        self.inner.update(c, v, &mut to, dots)?;
        self.home.take_back(to, w)
    }

    fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        let v = self.home.there(v).ok()??;
        let w = self.home.there_mut(w).ok()??;
        let plus: Option<Vec<_>> = plus.iter().map(|(f, x)| Some((*f, self.home.there(x).ok()??))).collect();
        self.inner.update_plus(c, v, w, &plus?)
    }

    fn update_later(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Later> {
        if let (Some(v), Some(w)) = (self.home.there(v)?, self.home.there_mut(w)?) {
            return self.inner.update_later(c, v, w);
        }
        let mut dots = Dots::default();
        self.update(c, v, w, Some(&mut dots))?;
        Ok(Box::new(|| Ok(dots)))
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
        if let (Some(v), Some(w)) = (self.home.there_mut(v)?, self.home.there_mut(w)?) {
            return self.inner.recurrence(alpha, beta, v, w, steps, out);
        }
        let (mut x, mut y) = (self.home.bring(v)?, self.home.bring(w)?);
        self.inner.recurrence(alpha, beta, &mut x, &mut y, steps, out)?;
        self.home.take_back(x, v)?;
        self.home.take_back(y, w)
    }

    fn overwrites(&self) -> bool {
        self.inner.overwrites()
    }

    fn recordable(&self) -> bool {
        self.home.records() && self.inner.recordable()
    }
}
