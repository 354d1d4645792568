//! What multiplies block vectors: matrices as they are handed to a backend, and as the backend prepared them.

use std::sync::Arc;

use super::exchange::{Link, PassExtras, PendingProducts, VectorShape};
use super::matrix::classes::Classes;
use super::matrix::records::{Handling, Records};
use super::matrix::wilson::{Face, WilsonSpec};
use super::matrix::{Csr, Stencil};
use super::{Backend, BlockVector, Device, Rows, Vectors};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// A matrix handed to a backend for preparation.
#[derive(Debug, Clone)]
pub enum MatrixSpec {
    /// Compressed rows.
    Csr(Arc<Csr>),
    /// Every row padded to the longest, entry-major (ELL of Zhang, Yamagiwa, Okumura, Yunoki, IJPP 41 (2013) 59).
    Ell(Arc<Csr>),
    /// Sliced ELL: rows sorted by length within `sigma`, slices of `chunk` rows padded together (SELL-C-sigma).
    Sell {
        /// The matrix in compressed rows.
        csr: Arc<Csr>,
        /// Rows a slice (C); a GPU takes powers of two.
        chunk: usize,
        /// Rows among which lengths are sorted (sigma).
        sigma: usize,
    },
    /// All entries, row-major; for small or full matrices.
    Dense {
        rows: usize,
        cols: usize,
        dtype: DType,
        /// `rows * cols` entries.
        values: Vec<C64>,
    },
    /// Matrix-free stencil on a lattice of cells.
    Stencil(Arc<Stencil>),
    /// D or gamma5 D on given links.
    Wilson(Arc<WilsonSpec>),
    /// A real diagonal that is the same on every site of a lattice.
    SiteDiagonal {
        /// The rows, on a lattice.
        rows: Rows,
        /// One factor for each row of a site.
        factors: Vec<f64>,
        /// Whether vectors have 32-bit numbers.
        single: bool,
    },
    /// The Hamiltonian of a superblock, as operation records between small dense blocks.
    Records { records: Records, handling: Handling },
}

impl MatrixSpec {
    /// Entries that a product touches, with those a stencil implies, however the rows are shared out; none where only
    /// the prepared matrix knows.
    ///
    /// # Errors
    /// Those of a stencil whose classes of cells are too many.
    pub fn entries(&self) -> Result<Option<usize>> {
        Ok(match self {
            MatrixSpec::Csr(csr) | MatrixSpec::Ell(csr) | MatrixSpec::Sell { csr, .. } => Some(csr.entries()),
            MatrixSpec::Dense { values, .. } => Some(values.len()),
            MatrixSpec::Stencil(stencil) => Some(Classes::new(stencil)?.entries(stencil)),
            MatrixSpec::Wilson(_) | MatrixSpec::SiteDiagonal { .. } | MatrixSpec::Records { .. } => None,
        })
    }
}

/// Matrices on a backend.
pub trait Matrices: Vectors {
    /// Brings a matrix into the backend's memory and form.
    fn prepare(&self, spec: MatrixSpec) -> Result<Arc<dyn Kernel>>;

    /// Whether [`Matrices::prepare`] takes this stencil; where not, its entries are stored.
    fn takes_stencil(&self, _stencil: &Stencil) -> bool {
        true
    }
}

/// What records work that it can queue again by a single call.
pub trait Recorder {
    /// Whether fused passes over vectors of so many bytes take less time than queueing them.
    fn worth_recording(&self, bytes: usize) -> bool;

    /// Records what `work` queues, without running it: nothing but fused passes, into vectors that nobody shares, with
    /// all memory made before.
    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Recording>>;
}

/// Work that was queued once and is queued again by a single call.
pub trait Recording: Send {
    /// Queues it.
    ///
    /// # Safety
    /// The vectors and operators that were recorded are alive, nobody shares the vectors,
    /// and none was given other memory.
    unsafe fn replay(&mut self) -> Result<()>;
}

/// `w = alpha A v + beta v + gamma w (+ delta u)`: what one fused pass computes. With `gamma = 0`, `w` is not read.
#[derive(Debug, Clone, Copy)]
pub struct Update {
    /// Factor of the product.
    pub alpha: f64,
    /// Factor of the input, added.
    pub beta: f64,
    /// Factor of the old output, added.
    pub gamma: f64,
}

impl Update {
    /// `w = A v`.
    pub const PRODUCT: Update = Update { alpha: 1.0, beta: 0.0, gamma: 0.0 };
}

/// The two column-wise products of a fused pass, for the new `w`: `v.v = <v|v>` and `w.v = Re <w|v>`.
#[derive(Debug, Clone, Default)]
pub struct Dots {
    /// `<v|v>` of each column.
    pub vv: Vec<f64>,
    /// `Re <w|v>` of each column.
    pub wv: Vec<f64>,
    /// Whether these are sums over the rows of one rank only, which
    /// [`Distributed::complete`](super::Distributed::complete) adds up.
    pub partial: bool,
}

impl Dots {
    /// Both products of a finished pass, by two scalar products.
    ///
    /// # Errors
    /// Those of the device.
    pub fn taken(device: &dyn Backend, v: &BlockVector, w: &BlockVector) -> Result<Dots> {
        let real =
            |x: &BlockVector| -> Result<Vec<f64>> { Ok(device.dots(x, v)?.iter().map(|z| z.re).collect()) };
        Ok(Dots { vv: real(v)?, wv: real(w)?, partial: false })
    }
}

/// What a prepared matrix is, for printing and for traffic counts.
#[derive(Debug, Clone)]
pub struct KernelInfo {
    /// Name of the format, e.g. "CSR".
    pub format: String,
    /// Bytes kept on the device.
    pub bytes: usize,
    /// Entries that a product touches, with those a stencil implies.
    pub entries: usize,
}

/// What vectors a prepared matrix takes and gives.
#[derive(Debug, Clone, Copy)]
pub struct KernelShape {
    pub rows: Rows,
    /// Columns in all: as many as rows for all but rectangular matrices.
    pub cols: usize,
    pub dtype: DType,
}

impl KernelShape {
    /// As many columns as rows.
    pub fn square(rows: Rows, dtype: DType) -> KernelShape {
        KernelShape { rows, cols: rows.global, dtype }
    }
}

/// What multiplies block vectors: a matrix prepared on a backend, or what is made of such. What is known of an operator
/// beyond its product is told by `operator::LinearOperator`.
pub trait Kernel: Send + Sync {
    fn shape(&self) -> KernelShape;
    fn info(&self) -> KernelInfo;

    /// Rows held and in all.
    fn rows(&self) -> Rows {
        self.shape().rows
    }
    /// Columns in all.
    fn cols(&self) -> usize {
        self.shape().cols
    }
    /// Scalar type of the entries; a real matrix acts on complex vectors too.
    fn dtype(&self) -> DType {
        self.shape().dtype
    }

    /// One fused pass. `v` and `w` have the same scalar type, at least that of the matrix's kind. With `dots`, both
    /// column-wise products of the new `w` are taken in the same pass; `v` must then be conformal to `w`.
    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()>;

    /// `w = alpha A v + beta v + gamma w + sum_i f_i x_i` in one pass, or None if the kernel has no such pass.
    fn update_plus(
        &self,
        _c: Update,
        _v: &BlockVector,
        _w: &mut BlockVector,
        _plus: &[(f64, &BlockVector)],
    ) -> Option<Result<()>> {
        None
    }

    /// One fused pass with both products, which need not be known when the call returns: a backend that queues its work
    /// overrides this.
    fn update_later(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<PendingProducts> {
        let dots = with_dots(self, c, v, w)?;
        Ok(Box::new(|| Ok(dots)))
    }

    /// One fused pass with both products, which of several ranks may be partial.
    fn update_partial(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<Dots> {
        with_dots(self, c, v, w)
    }

    /// `steps` orders of the recurrence `w <- alpha A v + beta v - w`, then `v` and `w` change places; the dots of
    /// every step are pushed to `out`, and may be partial. A backend overrides this to block over orders or to avoid
    /// synchronisation.
    fn recurrence(
        &self,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        step_by_step(&|c, v, w, dots| self.update(c, v, w, Some(dots)), (alpha, beta), (v, w), steps, out)
    }

    /// The steps of [`Kernel::recurrence`] on rows of which neighbours have some, passes and exchanges queued together;
    /// the vectors do not change places at the end. None where the kernel cannot.
    fn recurrence_linked(
        &self,
        _link: &mut dyn Link,
        _alpha_beta: (f64, f64),
        _v: &mut BlockVector,
        _w: &mut BlockVector,
        _steps: usize,
    ) -> Option<Result<Vec<Dots>>> {
        None
    }

    /// One fused pass on rows of which neighbours have some, with what it computes besides, in a launch that takes the
    /// exchange in. None where the kernel cannot.
    fn pass_linked(
        &self,
        _link: &mut dyn Link,
        _c: Update,
        _v: &BlockVector,
        _w: &mut BlockVector,
        _besides: PassExtras,
    ) -> Result<Option<Option<PendingProducts>>> {
        Ok(None)
    }

    /// For an operator on a box of a lattice that ends at these faces: this end of an exchange by which sites at the
    /// faces get what comes from the boxes behind them, a neighbour a face. What leaves is in the order of the faces
    /// that it comes through: the upper face of each direction goes before the lower one.
    /// None where the backend has no such way.
    fn link_faces(&self, _faces: &[Face], _shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        Ok(None)
    }

    /// The one place that has all of it, where there are several; none where that is all there is.
    fn one_place(&self) -> Option<&dyn OnePlace> {
        None
    }

    /// Whether an update with `gamma = 0` writes every row of `w` and reads none, so that `w` need not be zero before.
    fn overwrites(&self) -> bool {
        false
    }

    /// Whether passes may be recorded (see [`Recorder::record`]): they use no memory but their vectors and the matrix.
    fn recordable(&self) -> bool {
        false
    }
}

/// The place that has all of an operator and of its vectors, of several that compute together. Work that needs nothing
/// else is done there as if there were no other place, and what it finds is told.
pub trait OnePlace {
    /// Its device, and the kernel as that has it; none in a process that has nothing of them.
    fn there(&self) -> Option<(&Device, &Arc<dyn Kernel>)>;

    /// A vector as this device knows it, brought if its rows are elsewhere; none in a process that has nothing of it.
    /// All ranks call this together.
    ///
    /// # Errors
    /// Those of MPI and of the devices.
    fn bring(&self, v: &BlockVector) -> Result<Option<BlockVector>>;

    /// A vector that this device has made, as all processes know it.
    ///
    /// # Errors
    /// Those of the devices.
    fn known(&self, own: Option<BlockVector>, shape: (DType, usize)) -> Result<BlockVector>;

    /// So many numbers that were found there, in all processes, which call this together; others bring none.
    ///
    /// # Errors
    /// Those of what found them, and of MPI.
    fn tell(&self, count: usize, own: Result<Option<Vec<f64>>>) -> Result<Vec<f64>>;
}

/// One fused pass with both products, which are summed when the call returns.
pub(super) fn with_dots<K: Kernel + ?Sized>(
    kernel: &K,
    c: Update,
    v: &BlockVector,
    w: &mut BlockVector,
) -> Result<Dots> {
    let mut dots = Dots::default();
    kernel.update(c, v, w, Some(&mut dots))?;
    Ok(dots)
}

/// [`Kernel::recurrence`] by passes `update(c, v, w, dots)`.
pub(crate) fn step_by_step(
    update: &dyn Fn(Update, &BlockVector, &mut BlockVector, &mut Dots) -> Result<()>,
    (alpha, beta): (f64, f64),
    (v, w): (&mut BlockVector, &mut BlockVector),
    steps: usize,
    out: &mut Vec<Dots>,
) -> Result<()> {
    for _ in 0..steps {
        let mut dots = Dots::default();
        update(Update { alpha, beta, gamma: -1.0 }, v, w, &mut dots)?;
        out.push(dots);
        std::mem::swap(v, w);
    }
    Ok(())
}

/// Refuses an update whose vectors do not fit the matrix.
pub(in crate::backend) fn check_update(
    kernel: &dyn Kernel,
    v: &BlockVector,
    w: &BlockVector,
    dots: bool,
) -> Result<()> {
    let KernelShape { rows, cols, dtype } = kernel.shape();
    let fits = v.rows().global == cols
        && w.rows().global == rows.global
        && v.columns() == w.columns()
        && v.dtype() == w.dtype()
        && w.rows().grid == rows.grid
        && (v.rows().grid == w.rows().grid || cols != rows.global)
        && v.dtype().is_single() == dtype.is_single()
        && (v.dtype().is_complex() || !dtype.is_complex())
        && (!dots || v.rows() == w.rows());
    if fits {
        return Ok(());
    }
    Err(Error::input(format!(
        "product of a {} x {cols} {dtype} operator: {} cannot go in and {} out",
        rows.global,
        v.shape(),
        w.shape()
    )))
}
