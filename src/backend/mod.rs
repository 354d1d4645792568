//! Where vectors live and kernels run: the traits of a backend, and the backends. The layout of a block vector is
//! private to a backend; the host view is row-major.
//!
//! A new backend starts with the traits that all have:
//! - [`Backend`]: its name, its memory, and which of the capabilities below it has;
//! - [`Vectors`]: block vectors, made, filled and moved;
//! - [`Algebra`] and [`Lists`]: their sums and products; those of lists follow from the others;
//! - [`Matrices`]: stored formats and stencils on lattices ([`matrix`]), the Wilson-Dirac operator
//!   ([`matrix::wilson`]), superblocks of the density-matrix renormalisation group as operation records
//!   ([`matrix::records`]).
//!
//! Then, as it grows:
//! - [`Recorder`]: passes that are queued once more by a single call;
//! - [`DenseSolver`], [`MatrixKeeper`], [`Superblocks`]: dense matrices of searches, solved, kept and turned;
//! - [`MonteCarlo`]: tables of cubic B-splines ([`splines`]), walkers ([`walkers`]);
//! - [`HostExchange`], [`PeerExchange`]: what a part of another backend has ([`exchange`]);
//! - [`Distributed`]: what one of several ranks has.
//!
//! The layers above define their meaning, and the methods that use them.

mod algebra;
mod boxes;
pub mod cpu;
pub mod cuda;
mod cut;
pub mod distributed;
pub mod exchange;
mod kernel;
pub mod lone;
pub mod matrix;
pub mod open;
pub mod ranks;
mod region;
mod shared;
pub mod splines;
pub mod split;
mod vector;
pub mod walkers;
mod whole;

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, DType};
pub use algebra::{Algebra, Lists, RitzCorrection};
pub(in crate::backend) use algebra::{check_deflation, conformal};
pub use distributed::Distributed;
pub use exchange::{HostExchange, PeerExchange};
pub(crate) use kernel::step_by_step;
pub use kernel::{
    Dots, Kernel, KernelInfo, KernelShape, Matrices, MatrixSpec, OnePlace, Recorder, Recording, Update,
};
pub(in crate::backend) use kernel::{check_update, with_dots};
pub use matrix::held::MatrixKeeper;
pub use matrix::outer::Superblocks;
pub use region::Region;
pub use vector::{BlockVector, Grid, Rows, Vectors};
pub(in crate::backend) use vector::{Storage, check_runs};
pub use walkers::MonteCarlo;

/// A backend as the layers above hold it.
pub type Device = Arc<dyn Backend>;

/// The distribution of random vectors' entries, each of variance one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorDistribution {
    /// +1 or -1: the top bit of the first word.
    Sign,
    /// exp(i phi), phi = 2 pi unit(w0, w1); for complex vectors only.
    Phase,
    /// Normal (Box and Muller); complex entries have independent parts of variance 1/2.
    Gaussian,
}

/// Which random numbers fill a vector: element `(i, c)` uses counter (global row i, `first_column + c`, stream).
#[derive(Debug, Clone, Copy)]
pub struct Random {
    /// Key of the generator (Philox).
    pub seed: u64,
    /// What the numbers are for.
    pub stream: Stream,
    /// The column number of the block's first column.
    pub first_column: u32,
    pub distribution: VectorDistribution,
}

impl Random {
    /// Refuses phases for real vectors.
    fn fits(&self, dtype: DType) -> Result<()> {
        if self.distribution == VectorDistribution::Phase && !dtype.is_complex() {
            return Err(Error::input("random phases need a complex vector"));
        }
        Ok(())
    }
}

/// Memory of a device, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceMemory {
    pub total: usize,
    /// What fits at the moment of asking: the least of `shared` and `alone`.
    pub free: usize,
    /// Held by this program.
    pub used: usize,
    /// Free for all processes that use this memory together.
    pub shared: usize,
    /// Most that this process may still take.
    pub alone: usize,
    /// A number that tells this memory from others, on all machines.
    pub place: u64,
}

impl DeviceMemory {
    fn new((total, used): (usize, usize), (shared, alone): (usize, usize), place: u64) -> DeviceMemory {
        DeviceMemory { total, free: shared.min(alone), used, shared, alone, place }
    }

    /// All there is, and what fits if each takes its share of it (of all together 1), of processes or devices some of
    /// which may use the same memory.
    fn total_and_free(all: &[DeviceMemory], shares: &[f64]) -> (usize, usize) {
        let (mut total, mut free) = (0, f64::INFINITY);
        for (at, first) in all.iter().enumerate() {
            let together = || all.iter().zip(shares).filter(|(memory, _)| memory.place == first.place);
            if all[..at].iter().all(|earlier| earlier.place != first.place) {
                let most = together().map(|(memory, _)| memory.total).max().unwrap_or(0);
                let least = together().map(|(memory, _)| memory.shared).min().unwrap_or(0);
                let share: f64 = together().map(|(_, share)| share).sum();
                total += most;
                free = if share > 0.0 { free.min(least as f64 / share) } else { free };
            }
            free = if shares[at] > 0.0 { free.min(first.alone as f64 / shares[at]) } else { free };
        }
        (total, free as usize)
    }
}

/// A backend within another that shares rows out.
#[derive(Debug, Clone)]
pub struct BackendPart {
    pub device: Device,
    /// Its share of the rows, of all parts together 1; none if that differs from matrix to matrix and nothing is known
    /// yet.
    pub share: Option<f64>,
}

/// The numbers of a dense matrix, column-major, to be changed in place.
pub enum DenseMut<'a> {
    Real(&'a mut [f64]),
    Complex(&'a mut [C64]),
}

/// What finds all eigenvectors of a large dense matrix faster than the processor.
pub trait DenseSolver: Send + Sync {
    /// Eigenvalues, ascending, of a Hermitian matrix of `n` rows, of which the lower half is read. The eigenvectors
    /// take its place, a column each.
    ///
    /// # Errors
    /// Those of the device, and when it does not converge.
    fn eigh(&self, n: usize, numbers: DenseMut<'_>) -> Result<Vec<f64>>;
}

/// A backend. Every one has vectors, their algebra and matrices; what else there is, it tells here, each capability
/// with a trait of its own.
pub trait Backend: Vectors + Algebra + Lists + Matrices + fmt::Debug {
    /// Short name: "cpu", "cuda", "cpu+cuda".
    fn name(&self) -> &'static str;
    /// One line for people: threads and instruction set, or the card.
    fn describe(&self) -> String;
    fn memory(&self) -> DeviceMemory;
    /// Parallel workers (threads, or multiprocessors).
    fn workers(&self) -> usize;

    /// How many columns side by side a fused pass is fastest with.
    fn preferred_columns(&self) -> usize;

    /// Whether calls that give nothing to the host return before their work is done, which is queued.
    fn queues(&self) -> bool {
        false
    }

    /// Waits for all that is queued; for time to be measured.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// The backends that rows are shared out to, if this is made of others.
    fn parts(&self) -> Vec<BackendPart> {
        Vec::new()
    }

    /// The backend that this process computes on by itself, where it is one of several ranks: it has the capabilities
    /// that the ranks do not tell.
    fn alone(&self) -> Option<&Device> {
        None
    }

    /// What records passes and queues them again.
    fn recorder(&self) -> Option<&dyn Recorder> {
        self.alone()?.recorder()
    }

    /// What solves large dense matrices.
    fn dense_solver(&self) -> Option<&dyn DenseSolver> {
        self.alone()?.dense_solver()
    }

    /// What keeps dense matrices in its memory.
    fn keeper(&self) -> Option<&dyn MatrixKeeper> {
        self.alone()?.keeper()
    }

    /// What makes diagonals and operators of superblocks faster than the processor.
    fn superblocks(&self) -> Option<&dyn Superblocks> {
        None
    }

    /// Splines and walkers of Monte Carlo.
    fn monte_carlo(&self) -> Option<&dyn MonteCarlo> {
        self.alone()?.monte_carlo()
    }

    /// Exchanges of rows with other parts through the host: what a part of another backend has.
    fn host_exchange(&self) -> Option<&dyn HostExchange> {
        None
    }

    /// The same without the host.
    fn peer_exchange(&self) -> Option<&dyn PeerExchange> {
        None
    }

    /// What several ranks know of each other's rows.
    fn distributed(&self) -> Option<&dyn Distributed> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceMemory;

    #[test]
    fn what_fits_is_what_the_fullest_place_takes() {
        let of = |shared, alone, place| DeviceMemory::new((100, 1), (shared, alone), place);
        let free = |all: &[DeviceMemory], shares: &[f64]| DeviceMemory::total_and_free(all, shares);
        // Two on one machine take from one memory, whatever their shares; the least that is seen counts.
        for shares in [[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]] {
            assert_eq!(free(&[of(80, 1000, 7), of(78, 1000, 7)], &shares), (100, 78));
        }
        assert_eq!(free(&[of(80, 30, 7), of(80, 30, 7)], &[0.5, 0.5]), (100, 60));
        assert_eq!(free(&[of(80, 30, 7), of(80, 10, 7)], &[1.0, 0.0]), (100, 30));
        // Two machines: the one that is full first.
        assert_eq!(free(&[of(80, 1000, 7), of(30, 1000, 8)], &[0.5, 0.5]), (200, 60));
        assert_eq!(free(&[of(80, 1000, 7), of(30, 1000, 8)], &[0.75, 0.25]), (200, 106));
        assert_eq!(free(&[of(80, 1000, 7), of(0, 1000, 8)], &[1.0, 0.0]), (200, 80));
        // Three ranks on two GPUs.
        let third = 1.0 / 3.0;
        let all = [of(60, 1000, 1), of(60, 1000, 1), of(60, 1000, 2)];
        assert_eq!(free(&all, &[third, third, third]), (200, 90));
    }
}
