//! The part that holds an undivided operator.

use std::sync::Arc;

use super::{Slab, SplitBackend, SplitRows, cut_of, pieces, pieces_mut, together};
use crate::backend::cut::RowCut;
use crate::backend::whole::{OperatorHome, WholeKernel};
use crate::backend::{BlockVector, Device, Kernel, Storage};
use crate::error::Result;

struct OnePart {
    part: usize,
    parts: Vec<Device>,
    name: &'static str,
    /// Of its rows, all of which this part has.
    cut: Arc<RowCut>,
}

pub(super) fn prepare(
    split: &SplitBackend,
    part: usize,
    cut: Arc<RowCut>,
    inner: Arc<dyn Kernel>,
) -> Arc<dyn Kernel> {
    let home = OnePart { part, parts: split.parts.clone(), name: split.name, cut };
    Arc::new(WholeKernel { home, inner })
}

impl OperatorHome for OnePart {
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

    fn bring(&self, v: &BlockVector) -> Result<BlockVector> {
        let numbers = pieces(v)?.iter().map(|Slab { part, block }| self.parts[*part].download(block));
        let numbers = together(cut_of(v)?, numbers.collect::<Result<_>>()?, v.columns);
        self.parts[self.part].upload(v.dtype, v.rows, v.columns, &numbers)
    }

    fn device(&self) -> Option<&Device> {
        self.parts.get(self.part)
    }

    fn known(&self, whole: BlockVector) -> BlockVector {
        let (dtype, rows, columns) = (whole.dtype, whole.rows, whole.columns);
        let list = vec![Slab { part: self.part, block: whole }];
        let storage = Storage::Split(SplitRows { name: self.name, cut: self.cut.clone(), list });
        BlockVector { dtype, rows, columns, storage }
    }

    fn take_back(&self, whole: BlockVector, v: &mut BlockVector) -> Result<()> {
        let numbers = self.parts[self.part].download(&whole)?;
        let (dtype, columns, cut) = (v.dtype, v.columns, cut_of(v)?.clone());
        for piece in pieces_mut(v)? {
            let rows = piece.block.rows;
            let own = cut.of(piece.part).chosen(&numbers, columns);
            piece.block = self.parts[piece.part].upload(dtype, rows, columns, &own)?;
        }
        Ok(())
    }
}
