//! Undivided operators: they live at one place, and vectors are copied there if necessary.

use std::sync::Arc;

use super::exchange::PendingProducts;
use super::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, OnePlace, Update, check_update, with_dots,
};
use crate::error::{Error, Result};
use crate::number::DType;

/// Where such an operator lives.
pub(super) trait OperatorHome: Send + Sync {
    /// The block as this place has it, if it is there.
    fn there<'a>(&self, v: &'a BlockVector) -> Result<Option<&'a BlockVector>>;

    /// The same, to change it.
    fn there_mut<'a>(&self, v: &'a mut BlockVector) -> Result<Option<&'a mut BlockVector>>;

    /// A copy of the block, at this place.
    fn bring(&self, v: &BlockVector) -> Result<BlockVector>;

    /// The numbers of a block of this place to where `v` has its rows.
    fn take_back(&self, whole: BlockVector, v: &mut BlockVector) -> Result<()>;

    /// The device, where no other one has anything of the operator.
    fn device(&self) -> Option<&Device> {
        None
    }

    /// A block of this place as others know it.
    fn known(&self, whole: BlockVector) -> BlockVector {
        whole
    }

    /// Whether this place can record passes.
    fn records(&self) -> bool {
        false
    }
}

/// The kernel of an operator that lives at one place: it fetches what other places have, and takes results back there.
pub(super) struct WholeKernel<H> {
    pub home: H,
    pub inner: Arc<dyn Kernel>,
}

impl<H: OperatorHome> WholeKernel<H> {
    /// Both vectors as this place has them, if both are there.
    fn both<'a>(
        &self,
        v: &'a BlockVector,
        w: &'a mut BlockVector,
    ) -> Result<Option<(&'a BlockVector, &'a mut BlockVector)>> {
        Ok(self.home.there(v)?.zip(self.home.there_mut(w)?))
    }

    /// The same, to change both.
    fn both_mut<'a>(
        &self,
        v: &'a mut BlockVector,
        w: &'a mut BlockVector,
    ) -> Result<Option<(&'a mut BlockVector, &'a mut BlockVector)>> {
        Ok(self.home.there_mut(v)?.zip(self.home.there_mut(w)?))
    }
}

/// Every way of a kernel that takes vectors is one of `inner` for vectors that are there. Of links there is none: they
/// would be given vectors as the layers above hold them.
impl<H: OperatorHome> Kernel for WholeKernel<H> {
    fn shape(&self) -> KernelShape {
        self.inner.shape()
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
        let (v, w) = self.both(v, w).ok()??;
        let plus: Option<Vec<_>> = plus.iter().map(|(f, x)| Some((*f, self.home.there(x).ok()??))).collect();
        self.inner.update_plus(c, v, w, &plus?)
    }

    fn update_later(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<PendingProducts> {
        if let Some((v, w)) = self.both(v, w)? {
            return self.inner.update_later(c, v, w);
        }
        let dots = with_dots(self, c, v, w)?;
        Ok(Box::new(|| Ok(dots)))
    }

    fn update_partial(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Dots> {
        match self.both(v, w)? {
            Some((v, w)) => self.inner.update_partial(c, v, w),
            None => with_dots(self, c, v, w),
        }
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
        if let Some((v, w)) = self.both_mut(v, w)? {
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

    fn one_place(&self) -> Option<&dyn OnePlace> {
        self.home.device().map(|_| self as &dyn OnePlace)
    }
}

/// Of one process.
impl<H: OperatorHome> OnePlace for WholeKernel<H> {
    fn there(&self) -> Option<(&Device, &Arc<dyn Kernel>)> {
        self.home.device().map(|device| (device, &self.inner))
    }

    fn bring(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        self.home.there(v)?.cloned().map_or_else(|| self.home.bring(v), Ok).map(Some)
    }

    fn known(&self, own: Option<BlockVector>, _shape: (DType, usize)) -> Result<BlockVector> {
        own.map(|own| self.home.known(own)).ok_or_else(|| Error::internal("a vector of no place"))
    }

    fn tell(&self, _count: usize, own: Result<Option<Vec<f64>>>) -> Result<Vec<f64>> {
        own?.ok_or_else(|| Error::internal("numbers of no place"))
    }
}
