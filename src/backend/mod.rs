//! Where vectors live and kernels run: what a backend must do, and the backends there are. How a backend lays a block vector
//! out is its own secret; the host view is row-major.
//!
//! A backend knows, besides block vectors and their algebra:
//! - matrices in several formats, and stencils on lattices ([`Backend::prepare`], [`matrix`]);
//! - spinors on lattices with links in SU(3): the Wilson-Dirac operator ([`matrix::wilson`]);
//! - superblocks of the density-matrix renormalisation group, as operation records ([`matrix::records`]);
//! - dense Hermitian matrices, if it solves them faster than the processor ([`Backend::dense_solver`]);
//! - tables of cubic B-splines ([`Backend::splines`], [`splines`]);
//! - walkers of variational Monte Carlo, if it moves any ([`Backend::walkers`], [`walkers`]).
//!
//! What these mean, and the methods that use them, are in the layers above.

mod boxes;
pub mod cpu;
pub mod cuda;
pub mod exchange;
mod kernel;
mod lists;
pub mod matrix;
pub mod open;
pub mod ranks;
mod region;
pub mod splines;
pub mod split;
mod vector;
pub mod walkers;
mod whole;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, DType};
use crate::ranks::Alike;
use exchange::{Assembly, Faced, Halo, HostMemory, Link, Port, Ranges, VectorShape};
pub(crate) use kernel::step_by_step;
pub use kernel::{Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, Update};
pub(in crate::backend) use kernel::{check_update, with_dots};
use matrix::held::Keeper;
use matrix::outer::OuterSums;
use matrix::records::{Handling, Records, Turn};
use matrix::wilson::WilsonBox;
use matrix::{Csr, Stencil};
pub use region::Region;
use splines::{SplineTable, Splines};
pub(in crate::backend) use vector::Storage;
pub use vector::{BlockVector, Grid, Rows};
use walkers::{DeviceWalkers, WalkersSpec};

/// A backend as the layers above hold it.
pub type Device = Arc<dyn Backend>;

/// The distribution of random vectors' entries, each of variance one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
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
    /// The key.
    pub seed: u64,
    /// What the numbers are for.
    pub stream: Stream,
    /// The column number of the block's first column.
    pub first_column: u32,
    pub distribution: Distribution,
}

impl Random {
    /// Refuses phases for real vectors.
    fn fits(&self, dtype: DType) -> Result<()> {
        if self.distribution == Distribution::Phase && !dtype.is_complex() {
            return Err(Error::input("random phases need a complex vector"));
        }
        Ok(())
    }
}

/// Memory of a device, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    pub total: usize,
    /// Free now.
    pub free: usize,
    /// Held by this program.
    pub used: usize,
}

/// A backend within another that shares rows out.
#[derive(Debug, Clone)]
pub struct Part {
    pub device: Device,
    /// Its share of the rows, of all parts together 1; none if that differs from matrix to matrix and nothing is known yet.
    pub share: Option<f64>,
}

/// Work that was queued once and is queued again by a single call.
pub trait Recording: Send {
    /// Queues it.
    ///
    /// # Safety
    /// The vectors and operators that were recorded are alive, nobody shares the vectors, and none was given other memory.
    unsafe fn replay(&mut self) -> Result<()>;
}

/// The numbers of a dense matrix, column-major, to be changed in place.
pub enum DenseMut<'a> {
    Real(&'a mut [f64]),
    Complex(&'a mut [C64]),
}

/// What finds all eigenvectors of a large dense matrix faster than the processor.
pub trait DenseSolver: Send + Sync {
    /// Eigenvalues, ascending, of a Hermitian matrix of `n` rows, of which the lower half is read. The eigenvectors take its
    /// place, a column each.
    ///
    /// # Errors
    /// Those of the device, and when it does not converge.
    fn eigh(&self, n: usize, numbers: DenseMut<'_>) -> Result<Vec<f64>>;
}

/// What a backend must do. Vectors of one backend are not accepted by another; `download` and `upload` cross over.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Short name: "cpu", "cuda", "cpu+cuda".
    fn name(&self) -> &'static str;
    /// One line for people: threads and instruction set, or the card.
    fn describe(&self) -> String;
    fn memory(&self) -> Memory;
    /// Parallel workers (threads, or multiprocessors).
    fn workers(&self) -> usize;

    /// How many columns side by side a fused pass is fastest with.
    fn preferred_columns(&self) -> usize;

    /// Waits for all that is queued; for time to be measured.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// A block of zeros.
    fn zeros(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector>;
    /// A block of any numbers, for what writes all of them and reads none.
    fn room(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        self.zeros(dtype, rows, columns)
    }
    /// Fills a block with random numbers.
    fn fill_random(&self, v: &mut BlockVector, random: Random) -> Result<()>;
    /// Sets single entries `(local row, column, value)`.
    fn set_entries(&self, v: &mut BlockVector, entries: &[(usize, usize, C64)]) -> Result<()>;
    /// A copy of a range of columns.
    fn columns(&self, v: &BlockVector, range: Range<usize>) -> Result<BlockVector>;
    /// Overwrites the columns of `v` from `at` on with those of `source`.
    fn set_columns(&self, v: &mut BlockVector, at: usize, source: &BlockVector) -> Result<()>;
    /// The same numbers in another scalar type; to real, imaginary parts are dropped.
    fn convert(&self, v: &BlockVector, dtype: DType) -> Result<BlockVector>;
    /// Local rows to the host, row-major.
    fn download(&self, v: &BlockVector) -> Result<Vec<C64>>;
    /// The same of a real vector in double precision, where a backend has a way without complex numbers.
    fn download_real(&self, _v: &BlockVector) -> Result<Option<Vec<f64>>> {
        Ok(None)
    }
    /// Some numbers of a real column in double precision, of the rows that this process has.
    fn download_part(&self, v: &BlockVector, range: Range<usize>) -> Result<Vec<f64>> {
        Ok(self.download_own(v)?[range].iter().map(|z| z.re).collect())
    }
    /// All rows of a column, in the memory of this process's own backend; none where they do not come together there.
    fn all_rows(&self, _v: &BlockVector) -> Result<Option<BlockVector>> {
        Ok(None)
    }
    /// Local rows of this process alone, row-major, where others have others: on a lattice, those of its [`Backend::region`].
    fn download_own(&self, v: &BlockVector) -> Result<Vec<C64>> {
        self.download(v)
    }
    /// Local rows from the host, row-major.
    fn upload(&self, dtype: DType, rows: Rows, columns: usize, data: &[C64]) -> Result<BlockVector>;

    /// `y = a x + b y`, each factor one number or one a column. With `b = 0`, `y` is not read.
    fn axpby(&self, a: &[C64], x: &BlockVector, b: &[C64], y: &mut BlockVector) -> Result<()>;
    /// The entries whose sum is the scalar product: `y[i, c] = conj(x[i, c]) z[i, c]`.
    fn multiply(&self, x: &BlockVector, z: &BlockVector, y: &mut BlockVector) -> Result<()>;
    /// The same numbers as rows of another kind, on a lattice or on none: a backend may lay them out differently. Those of
    /// one lattice mean nothing on another, however many sites both have.
    fn arrange(&self, v: &BlockVector, rows: Rows) -> Result<BlockVector> {
        if v.rows() == rows {
            return Ok(v.clone());
        }
        v.rows().meet(&rows)?;
        self.upload(v.dtype(), rows, v.columns(), &self.download(v)?)
    }

    /// Column-wise `<x|y>`, conjugating `x`, summed over local rows.
    fn dots(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>>;
    /// Adds up products over the rows of one rank each, all in one go.
    fn complete(&self, _dots: &mut [Dots]) -> Result<()> {
        Ok(())
    }

    /// Adds the parts of `Re <x|y>` of single columns to `sums`, one or more of them: rows are dealt out to these in turn. A backend
    /// that sums in its own way adds everything to the first.
    fn lane_dots(&self, x: &BlockVector, y: &BlockVector, sums: &mut [f64]) -> Result<()> {
        let whole: f64 = self.dots(x, y)?.iter().map(|z| z.re).sum();
        sums.iter_mut().take(1).for_each(|sum| *sum += whole);
        Ok(())
    }

    /// The tall-skinny product `X^H Y`, row-major, `x.columns() * y.columns()` entries, over local rows.
    fn gram(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>>;
    /// `Y = X C + b Y` with the small matrix `C` row-major, `x.columns() * y.columns()` entries.
    fn combine(&self, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<()>;
    /// `Y = Y - U U^H Y` for orthonormal columns of `U`; with `kept = (d, X)`, `Y = Y + U (diag(d) U^H X - U^H Y)`: what acts
    /// in the span of `U` is replaced by numbers that are known there.
    fn deflate(
        &self,
        u: &BlockVector,
        kept: Option<(&[f64], &BlockVector)>,
        y: &mut BlockVector,
    ) -> Result<()> {
        if self.deflate_there(u, kept, y)? {
            return Ok(());
        }
        let mut c: Vec<C64> = self.gram(u, y)?.iter().map(|z| -z).collect();
        if let Some((d, x)) = kept {
            check_deflation(u, d, x, y)?;
            let wanted = self.gram(u, x)?;
            let columns = y.columns();
            c.iter_mut().zip(wanted).enumerate().for_each(|(at, (c, w))| *c += w * d[at / columns]);
        }
        self.combine(u, &c, 1.0, y)
    }
    /// [`Backend::deflate`] without the host; false where the backend cannot.
    fn deflate_there(
        &self,
        _u: &BlockVector,
        _kept: Option<(&[f64], &BlockVector)>,
        _y: &mut BlockVector,
    ) -> Result<bool> {
        Ok(false)
    }
    /// [`Backend::gram`] of several blocks with one, one after the other: what a basis that is kept in blocks asks for.
    fn gram_each(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        Ok(x.iter().map(|x| self.gram(x, y)).collect::<Result<Vec<_>>>()?.concat())
    }
    /// `<x_k|y>` of single columns: the tall-skinny product `V^H w` of a basis that is kept as a list.
    fn dots_with(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        x.iter().map(|x| Ok(self.dots(x, y)?[0])).collect()
    }
    /// `<x_i|y_j>` of single columns, row-major: the product `X^H Y` of lists.
    fn grams(&self, x: &[&BlockVector], y: &[&BlockVector]) -> Result<Vec<C64>> {
        lists::grams_side_by_side(self, x, y)
    }
    /// `y = sum_k c_k x_k + b y` of single columns: the product `V c`. With `b = 0`, `y` is not read.
    fn mix(&self, x: &[&BlockVector], c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        lists::mix_one_by_one(&|a, x, b, y| self.axpby(a, x, b, y), x, c, b, y)
    }
    /// `y_j = sum_k c_kj x_k` of single columns, `c` row-major: the restart of a basis. The `y` are not read, and each `x` is
    /// read once where a backend can.
    fn mix_each(&self, x: &[&BlockVector], c: &[C64], y: &mut [BlockVector]) -> Result<()> {
        lists::mix_in_turn(self, x, c, y)
    }
    /// `y[i, c] = x[i, c] / (shift[c] - d[i])`, denominators pushed away from zero to at least `floor`: the diagonal
    /// preconditioner of Davidson's method. `d` is one real column.
    fn precondition(
        &self,
        d: &BlockVector,
        shift: &[f64],
        floor: f64,
        x: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()>;

    /// The ranks of a run, if they compute with the same bits: what lives whole on all of them may be computed by one for all.
    fn alike(&self) -> Result<Option<Alike>> {
        Ok(None)
    }

    /// The ranks that may solve dense matrices for one another: those, and such whose cards hand each other what they have found.
    fn solves_together(&self) -> Result<Option<Alike>> {
        self.alike()
    }

    /// Numbers of all ranks, of which this one has `own` in the memory of its own backend; `starts` has where each rank's begin, and
    /// how many there are. None where messages are as good.
    fn joined(&self, _own: &BlockVector, _starts: &[usize]) -> Result<Option<BlockVector>> {
        Ok(None)
    }

    /// What solves large dense matrices, if this backend does.
    fn dense_solver(&self) -> Option<&dyn DenseSolver> {
        None
    }

    /// What keeps dense matrices in its memory, if this backend does.
    fn keeper(&self) -> Option<&dyn Keeper> {
        None
    }

    /// Part of a vector that is made of sums of outer products; none where the processor makes it as fast.
    fn outer(&self, _sums: &OuterSums, _range: Range<usize>) -> Result<Option<BlockVector>> {
        Ok(None)
    }

    /// Dense matrices in other bases: the numbers of all of them, column by column. None where the processor makes them as fast.
    fn turned(&self, _turns: &[Turn<'_, f64>]) -> Result<Option<BlockVector>> {
        Ok(None)
    }

    /// Brings a matrix into the backend's memory and form.
    fn prepare(&self, spec: MatrixSpec) -> Result<Arc<dyn Kernel>>;

    /// Whether [`Backend::prepare`] takes this stencil; where not, its entries are stored.
    fn takes_stencil(&self, _stencil: &Stencil) -> bool {
        true
    }

    /// Whether fused passes over vectors of so many bytes take less time than queueing them.
    fn worth_recording(&self, _bytes: usize) -> bool {
        false
    }

    /// Records what `work` queues, without running it: nothing but fused passes, into vectors that nobody shares, with all
    /// memory made before.
    fn record(&self, _work: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Recording>> {
        Err(Error::internal(format!("{} records nothing", self.name())))
    }

    /// Host memory for rows on their way to or from this backend, page-locked where that makes copies faster; none where
    /// any memory serves.
    fn staging(&self, _bytes: usize) -> Result<Option<Box<dyn HostMemory>>> {
        Ok(None)
    }

    /// One part's end of an exchange of rows.
    fn port(&self, _halo: &Halo, _shape: VectorShape) -> Result<Box<dyn Port>> {
        Err(Error::internal(format!("{} cannot be a part of another backend", self.name())))
    }

    /// One part's end of an exchange without the host, for boundary rows `beyond` that have a column for each row brought in;
    /// none where the backend has no such way. Shared-out rows go this way if all parts have one and reach each other.
    fn link(&self, _halo: &Halo, _beyond: &Csr, _shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        Ok(None)
    }

    /// One part's end of an exchange that brings ranges of rows together without the host; none where the backend has no such way.
    fn assembly(&self, _ranges: &Ranges, _shape: VectorShape) -> Result<Option<Box<dyn Assembly>>> {
        Ok(None)
    }

    /// Some rows of a superblock's product, from all rows of a vector; none where the backend makes whole products only.
    fn prepare_rows(
        &self,
        _records: &Records,
        _rows: Range<usize>,
        _handling: Handling,
    ) -> Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    /// The Wilson operator on a box whose faces have neighbours, with the boundary as half-spinors; none where the backend has no
    /// such way, so that it is a matrix of boundary rows.
    fn prepare_box(&self, _part: &WilsonBox) -> Result<Option<Arc<dyn Faced>>> {
        Ok(None)
    }

    /// The Wilson operator on a box, whose faces half-spinors pass by [`Kernel::link_faces`]; none where the backend has no such
    /// way.
    fn prepare_linked(&self, _part: &WilsonBox) -> Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    /// The backends that rows are shared out to, if this is made of others.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }

    /// The rows that this process holds of a matrix without a lattice and with so many rows, as pieces of the whole (first row
    /// and length of each), where others hold the rest; none if it holds all of them.
    ///
    /// # Errors
    /// Those of the device.
    fn held(&self, _rows: usize) -> Result<Option<Vec<(usize, usize)>>> {
        Ok(None)
    }

    /// The sites that this process has of a lattice of four directions: those whose rows its vectors of spinors have.
    ///
    /// # Errors
    /// Those of the device.
    fn region(&self, dims: [usize; 4]) -> Result<Region> {
        Ok(Region::whole(dims))
    }

    /// Prepares a square matrix of `rows` rows, of which this process has those that [`Backend::held`] told, with the columns of
    /// all; `format` says how rows are kept.
    ///
    /// # Errors
    /// As for [`Backend::prepare`].
    fn prepare_held(
        &self,
        _csr: Csr,
        _rows: usize,
        _format: &dyn Fn(Arc<Csr>) -> MatrixSpec,
    ) -> Result<Arc<dyn Kernel>> {
        Err(Error::internal("rows of a matrix that this process has all rows of"))
    }

    /// The backend that this process computes on by itself, where it is one of several ranks.
    fn alone(&self) -> Option<Device> {
        None
    }

    /// Brings a table of splines into the backend's memory.
    fn splines(&self, table: Arc<SplineTable>) -> Result<Arc<dyn Splines>>;

    /// Walkers of a wave function whose orbitals are on this backend; None where it moves no walkers, or not these.
    fn walkers(&self, _spec: WalkersSpec) -> Result<Option<Box<dyn DeviceWalkers>>> {
        Ok(None)
    }
}

/// Refuses a deflation whose numbers or vectors do not fit the space.
pub(in crate::backend) fn check_deflation(
    u: &BlockVector,
    d: &[f64],
    x: &BlockVector,
    y: &BlockVector,
) -> Result<()> {
    if d.len() != u.columns() {
        return Err(Error::internal(format!("{} numbers for a space of {}", d.len(), u.columns())));
    }
    conformal("deflation", x, y)
}

/// Refuses vectors of different shape or type, naming the operation.
pub(in crate::backend) fn conformal(operation: &str, x: &BlockVector, y: &BlockVector) -> Result<()> {
    if x.rows() == y.rows() && x.columns() == y.columns() && x.dtype() == y.dtype() {
        return Ok(());
    }
    Err(Error::input(format!("{operation}: {} and {} do not fit together", x.shape(), y.shape())))
}
