//! A matrix that every rank holds completely. Divided vectors are collected for its products.

use std::sync::Arc;

use super::Team;
use super::held::{OwnRows, own, own_mut};
use crate::backend::whole::{OperatorHome, WholeKernel};
use crate::backend::{BlockVector, Device, Kernel};
use crate::error::Result;

struct EveryRank {
    team: Team,
    device: Device,
}

pub(super) fn whole(team: Team, device: &Device, inner: Arc<dyn Kernel>) -> Arc<dyn Kernel> {
    Arc::new(WholeKernel { home: EveryRank { team, device: device.clone() }, inner })
}

impl OperatorHome for EveryRank {
    fn there<'a>(&self, v: &'a BlockVector) -> Result<Option<&'a BlockVector>> {
        Ok(own(v).is_none().then_some(v))
    }

    fn there_mut<'a>(&self, v: &'a mut BlockVector) -> Result<Option<&'a mut BlockVector>> {
        Ok(own(v).is_none().then_some(v))
    }

    fn bring(&self, v: &BlockVector) -> Result<BlockVector> {
        let Some(own) = own(v) else { return Ok(v.clone()) };
        let all = self.team.gathered(&self.device, own, v.columns)?;
        self.device.upload(v.dtype, v.rows, v.columns, &all)
    }

    fn take_back(&self, whole: BlockVector, v: &mut BlockVector) -> Result<()> {
        let columns = v.columns;
        match own_mut(v) {
            None => *v = whole,
            Some(OwnRows { cut, .. }) if cut.local() == 0 => {}
            Some(OwnRows { cut, block, .. }) => {
                let all = self.device.download(&whole)?;
                **block = self.device.upload(whole.dtype, block.rows, columns, &cut.chosen(&all, columns))?;
            }
        }
        Ok(())
    }

    fn records(&self) -> bool {
        true
    }
}
