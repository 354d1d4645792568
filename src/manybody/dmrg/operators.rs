//! The operators that a block carries, all of them here or shared out to the ranks of a run.

use std::ops::Deref;
use std::sync::Arc;

use super::spread::{SpreadMatrices, WholeMatrices};
use crate::backend::matrix::held::HeldMatrix;
use crate::backend::matrix::records::Element;
use crate::error::Result;

/// An operator of a block.
#[derive(Debug, Clone)]
pub(super) enum CarriedOperator<T> {
    /// Zero.
    Nothing,
    Identity,
    /// Dense matrices between sectors.
    Blocks(Vec<SectorBlock<T>>),
}

/// A dense matrix from one sector to another.
#[derive(Debug, Clone)]
pub(super) struct SectorBlock<T> {
    pub row: usize,
    pub column: usize,
    pub matrix: Arc<HeldMatrix<T>>,
}

/// The operators of a block.
pub(super) enum CarriedOperators<T> {
    /// All of them are here.
    Here(Arc<Vec<CarriedOperator<T>>>),
    /// Each rank keeps some of their matrices.
    Apart {
        /// Those that are no matrices, and the sectors of the matrices of the others.
        outline: Vec<Outline>,
        matrices: Arc<SpreadMatrices<T>>,
    },
}

/// An operator without its matrices.
#[derive(Clone)]
pub(super) enum Outline {
    Nothing,
    Identity,
    /// The row and the column of each matrix.
    Blocks(Vec<(usize, usize)>),
}

/// All operators of a block, here as long as this is.
pub(super) struct PresentOperators<T> {
    carried: Arc<Vec<CarriedOperator<T>>>,
    _matrices: Option<Arc<WholeMatrices<T>>>,
}

impl<T> Deref for PresentOperators<T> {
    type Target = [CarriedOperator<T>];

    fn deref(&self) -> &[CarriedOperator<T>] {
        &self.carried
    }
}

impl<T> From<Vec<CarriedOperator<T>>> for CarriedOperators<T> {
    fn from(carried: Vec<CarriedOperator<T>>) -> CarriedOperators<T> {
        CarriedOperators::Here(Arc::new(carried))
    }
}

impl<T> Clone for CarriedOperators<T> {
    fn clone(&self) -> CarriedOperators<T> {
        match self {
            CarriedOperators::Here(carried) => CarriedOperators::Here(carried.clone()),
            CarriedOperators::Apart { outline, matrices } => {
                CarriedOperators::Apart { outline: outline.clone(), matrices: matrices.clone() }
            }
        }
    }
}

/// Operators of their outlines and matrices.
fn put_together<T>(outline: &[Outline], matrices: &WholeMatrices<T>) -> Vec<CarriedOperator<T>> {
    let mut next = matrices.iter();
    let of = |operator: &Outline| match operator {
        Outline::Nothing => CarriedOperator::Nothing,
        Outline::Identity => CarriedOperator::Identity,
        Outline::Blocks(places) => {
            let sub = |(&(row, column), matrix): (&(usize, usize), &Arc<HeldMatrix<T>>)| SectorBlock {
                row,
                column,
                matrix: matrix.clone(),
            };
            CarriedOperator::Blocks(places.iter().zip(next.by_ref()).map(sub).collect())
        }
    };
    outline.iter().map(of).collect()
}

impl<T: Element> CarriedOperators<T> {
    /// Operators from all their matrices, in the order of the outlines.
    pub(super) fn here(outline: &[Outline], matrices: WholeMatrices<T>) -> CarriedOperators<T> {
        put_together(outline, &matrices).into()
    }

    /// All of them. Ranks that have shared them out call this together.
    ///
    /// # Errors
    /// Those of MPI.
    pub(super) fn present(&self) -> Result<PresentOperators<T>> {
        let (outline, matrices) = match self {
            CarriedOperators::Here(carried) => {
                return Ok(PresentOperators { carried: carried.clone(), _matrices: None });
            }
            CarriedOperators::Apart { outline, matrices } => (outline, matrices.all()?),
        };
        let carried = put_together(outline, &matrices);
        Ok(PresentOperators { carried: Arc::new(carried), _matrices: Some(matrices) })
    }

    /// Bytes of all of them, on all ranks together.
    pub(super) fn bytes(&self) -> usize {
        let size = |m: &HeldMatrix<T>| m.nrows() * m.ncols() * size_of::<T>();
        match self {
            CarriedOperators::Here(carried) => carried
                .iter()
                .map(|c| match c {
                    CarriedOperator::Blocks(blocks) => blocks.iter().map(|b| size(&b.matrix)).sum(),
                    _ => 0,
                })
                .sum(),
            CarriedOperators::Apart { matrices, .. } => matrices.bytes(),
        }
    }
}
