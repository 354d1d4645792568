//! Backends whose rows are shared out to the ranks of a run.

use std::sync::Arc;

use super::lone::LoneRank;
use super::matrix::Csr;
use super::{BlockVector, Device, Dots, Kernel, MatrixSpec, Region, Rows};
use crate::error::Result;
use crate::number::{C64, DType};
use crate::ranks::AlikeRanks;

/// What the backend of one of several ranks knows of its own rows, and of the others.
pub trait Distributed {
    /// Adds up products over the rows of one rank each, all in one go.
    fn complete(&self, dots: &mut [Dots]) -> Result<()>;

    /// Local rows of this process alone, row-major: on a lattice, those of its [`Distributed::region`].
    fn download_own(&self, v: &BlockVector) -> Result<Vec<C64>>;

    /// The ranks of a run, if they compute with the same bits: what lives whole on all of them may be computed by one
    /// for all.
    fn alike(&self) -> Result<Option<AlikeRanks>>;

    /// The ranks that may solve dense matrices for one another: those,
    /// and such whose cards hand each other what they have found.
    fn solves_together(&self) -> Result<Option<AlikeRanks>>;

    /// The rank that has all that lives whole; none where every rank has it.
    fn lone(&self) -> Option<LoneRank>;

    /// A vector as the backend of the one rank knows it, brought there if its rows are elsewhere; none on the other
    /// ranks. All ranks call this together.
    ///
    /// # Errors
    /// Those of MPI and of the devices.
    fn at_lone(&self, v: &BlockVector) -> Result<Option<BlockVector>>;

    /// A vector of rows that live on the one rank, which has made it by its own backend. All ranks call this together.
    ///
    /// # Errors
    /// Those of the one rank, and of MPI.
    fn held_by_lone(
        &self,
        own: Result<Option<BlockVector>>,
        shape: (DType, Rows, usize),
    ) -> Result<BlockVector>;

    /// So many numbers that the one rank keeps, which has made them by its own backend; other ranks have their name.
    /// None where it has made none. All ranks call this together.
    ///
    /// # Errors
    /// Those of the one rank, and of MPI.
    fn kept_by_lone(&self, own: Result<Option<BlockVector>>, numbers: usize) -> Result<Option<BlockVector>>;

    /// Numbers of all ranks, of which this one has `own` in the memory of its own backend; `starts` has where each
    /// rank's begin, and how many there are. None where messages are as good.
    fn joined(&self, own: &BlockVector, starts: &[usize]) -> Result<Option<BlockVector>>;

    /// The weights by which walkers are shared out that live on devices; none if evenly.
    fn walkers(&self) -> Option<Vec<f64>>;

    /// The sites that this process has of a lattice of four directions: those whose rows its vectors of spinors have.
    ///
    /// # Errors
    /// Those of the device.
    fn region(&self, dims: [usize; 4]) -> Result<Region>;

    /// The rows that this process holds of a matrix without a lattice and with so many rows, as pieces of the whole
    /// (first row and length of each), where others hold the rest; none if it holds all of them.
    ///
    /// # Errors
    /// Those of the device.
    fn held(&self, rows: usize) -> Result<Option<Vec<(usize, usize)>>>;

    /// Prepares a square matrix of `rows` rows, of which this process has those that [`Distributed::held`] told, with
    /// the columns of all; `format` says how rows are kept.
    ///
    /// # Errors
    /// As for [`Matrices::prepare`](super::Matrices::prepare).
    fn prepare_held(
        &self,
        csr: Csr,
        rows: usize,
        format: &dyn Fn(Arc<Csr>) -> MatrixSpec,
    ) -> Result<Arc<dyn Kernel>>;
}

/// The ranks that compute with the same bits, and those that may solve dense matrices for one another;
/// none without ranks.
///
/// # Errors
/// Those of MPI and of the devices.
pub fn alike(device: &Device) -> Result<(Option<AlikeRanks>, Option<AlikeRanks>)> {
    let Some(ranks) = device.distributed() else { return Ok((None, None)) };
    Ok((ranks.alike()?, ranks.solves_together()?))
}
