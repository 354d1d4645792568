//! The rows that this rank has of a vector, and the backends that hold them.

use std::sync::Arc;

use crate::backend::cut::RowCut;
use crate::backend::{BlockVector, Device, Rows, Storage};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// This rank's rows of a vector.
#[derive(Debug, Clone)]
pub(in crate::backend) struct OwnRows {
    pub(super) cut: Arc<RowCut>,
    /// What its backend is called, the same on all ranks.
    pub(super) name: &'static str,
    /// The rows, as the local backend knows them: a block of its own.
    pub(super) block: Box<BlockVector>,
}

impl OwnRows {
    /// The backend that holds them.
    pub fn place(&self) -> &'static str {
        self.name
    }
}

pub(super) fn own(v: &BlockVector) -> Option<&OwnRows> {
    match &v.storage {
        Storage::Ranks(own) => Some(own),
        _ => None,
    }
}

pub(super) fn own_mut(v: &mut BlockVector) -> Option<&mut OwnRows> {
    match &mut v.storage {
        Storage::Ranks(own) => Some(own),
        _ => None,
    }
}

/// The block that the local backend knows.
pub(super) fn local(v: &BlockVector) -> &BlockVector {
    own(v).map_or(v, |own| &own.block)
}

pub(super) fn other_cut() -> Error {
    Error::internal("vectors and matrices whose rows are shared out to the ranks in different ways")
}

/// What this rank computes on.
#[derive(Clone)]
pub(super) struct RankDevices {
    pub device: Device,
    /// What has the blocks without rows, for which no card need be asked, where ranks are uneven.
    pub host: Option<Device>,
    /// What the backend of vectors is called, where that is not the device's name.
    pub name: Option<&'static str>,
}

impl RankDevices {
    /// What computes with this rank's rows.
    pub fn at(&self, cut: &RowCut) -> &Device {
        match &self.host {
            Some(host) if cut.local() == 0 => host,
            _ => &self.device,
        }
    }

    /// A block with its rows cut so, of which this is the rank's own.
    pub fn wrap(&self, cut: Arc<RowCut>, rows: Rows, block: BlockVector) -> BlockVector {
        let (dtype, columns) = (block.dtype, block.columns);
        let name = self.name.unwrap_or(self.device.name());
        let storage = Storage::Ranks(OwnRows { cut, name, block: Box::new(block) });
        BlockVector { dtype, rows, columns, storage }
    }

    /// A vector whose rows are those of one rank: with `block`, if this is it.
    pub fn of_one(
        &self,
        cut: Arc<RowCut>,
        (dtype, rows, columns): (DType, Rows, usize),
        block: Option<BlockVector>,
    ) -> Result<BlockVector> {
        let block = match block {
            Some(block) => block,
            None => self.at(&cut).zeros(dtype, cut.held(&rows), columns)?,
        };
        Ok(self.wrap(cut, rows, block))
    }

    /// This rank's rows of numbers that all ranks have.
    pub fn cut_out(
        &self,
        dtype: DType,
        rows: Rows,
        columns: usize,
        data: &[C64],
        cut: Arc<RowCut>,
    ) -> Result<BlockVector> {
        let upload = |own: &[C64]| self.at(&cut).upload(dtype, cut.held(&rows), columns, own);
        let block = match cut.start() {
            Some(start) => upload(&data[start * columns..][..cut.local() * columns])?,
            None => upload(&cut.chosen(data, columns))?,
        };
        Ok(self.wrap(cut, rows, block))
    }
}
