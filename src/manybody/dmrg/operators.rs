//! The operators that a block carries, all of them here or shared out to the ranks of a run.

use std::ops::Deref;
use std::sync::Arc;

use super::spread::{All, Spread};
use crate::backend::matrix::held::Held;
use crate::backend::matrix::records::Element;
use crate::error::Result;

/// An operator of a block.
#[derive(Debug, Clone)]
pub(super) enum Carried<T> {
    /// Zero.
    Nothing,
    Identity,
    /// Dense matrices between sectors.
    Blocks(Vec<Sub<T>>),
}

/// A dense matrix from one sector to another.
#[derive(Debug, Clone)]
pub(super) struct Sub<T> {
    pub row: usize,
    pub column: usize,
    pub matrix: Arc<Held<T>>,
}

/// The operators of a block.
pub(super) enum Operators<T> {
    /// All of them are here.
    Here(Arc<Vec<Carried<T>>>),
    /// Each rank keeps some of their matrices.
    Apart {
        /// Those that are no matrices, and the sectors of the matrices of the others.
        outline: Vec<Outline>,
        matrices: Arc<Spread<T>>,
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
pub(super) struct Present<T> {
    carried: Arc<Vec<Carried<T>>>,
    _matrices: Option<Arc<All<T>>>,
}

impl<T> Deref for Present<T> {
    type Target = [Carried<T>];

    fn deref(&self) -> &[Carried<T>] {
        &self.carried
    }
}

impl<T> From<Vec<Carried<T>>> for Operators<T> {
    fn from(carried: Vec<Carried<T>>) -> Operators<T> {
        Operators::Here(Arc::new(carried))
    }
}

impl<T> Clone for Operators<T> {
    fn clone(&self) -> Operators<T> {
        match self {
            Operators::Here(carried) => Operators::Here(carried.clone()),
            Operators::Apart { outline, matrices } => {
                Operators::Apart { outline: outline.clone(), matrices: matrices.clone() }
            }
        }
    }
}

/// Operators of their outlines and matrices.
fn put_together<T>(outline: &[Outline], matrices: &All<T>) -> Vec<Carried<T>> {
    let mut next = matrices.iter();
    let of = |operator: &Outline| match operator {
        Outline::Nothing => Carried::Nothing,
        Outline::Identity => Carried::Identity,
        Outline::Blocks(places) => {
            let sub = |(&(row, column), matrix): (&(usize, usize), &Arc<Held<T>>)| Sub {
                row,
                column,
                matrix: matrix.clone(),
            };
            Carried::Blocks(places.iter().zip(next.by_ref()).map(sub).collect())
        }
    };
    outline.iter().map(of).collect()
}

impl<T: Element> Operators<T> {
    /// Operators from all their matrices, in the order of the outlines.
    pub(super) fn here(outline: &[Outline], matrices: All<T>) -> Operators<T> {
        put_together(outline, &matrices).into()
    }

    /// All of them. Ranks that have shared them out call this together.
    ///
    /// # Errors
    /// Those of MPI.
    pub(super) fn present(&self) -> Result<Present<T>> {
        let (outline, matrices) = match self {
            Operators::Here(carried) => {
                return Ok(Present { carried: carried.clone(), _matrices: None });
            }
            Operators::Apart { outline, matrices } => (outline, matrices.all()?),
        };
        let carried = put_together(outline, &matrices);
        Ok(Present { carried: Arc::new(carried), _matrices: Some(matrices) })
    }

    /// Bytes of all of them, on all ranks together.
    pub(super) fn bytes(&self) -> usize {
        let size = |m: &Held<T>| m.nrows() * m.ncols() * size_of::<T>();
        match self {
            Operators::Here(carried) => carried
                .iter()
                .map(|c| match c {
                    Carried::Blocks(blocks) => blocks.iter().map(|b| size(&b.matrix)).sum(),
                    _ => 0,
                })
                .sum(),
            Operators::Apart { matrices, .. } => matrices.bytes(),
        }
    }
}
