//! Linear operators over a backend: stored matrices in the formats a backend has kernels for, and lazy multiples, sums,
//! products and adjoints. `lattice` and `manybody` define the meaning of the matrices; the only field operator here is
//! Wilson's.
//!
//! [`Kernel`] is what multiplies, [`LinearOperator`] what is known beyond the product, and an [`Operator`] is a handle
//! to both with a factor and a shift: `c A + d`. The handle passes factor and shift to the kernel's fused pass and
//! applies them to all known properties. So a multiple has all capabilities of the operator itself.

mod action;
mod affine;
mod assembled;
mod combine;
mod fingerprint;
mod stored;
mod velocity;
mod wilson;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use crate::backend::{BlockVector, Device, Kernel, Rows, Update};
use crate::error::{Error, Result};
use crate::lattice::Geometry;
use crate::number::memory::{self, human};
use crate::number::{C64, DType};
pub use action::{Action, update_by};
pub use fingerprint::Fingerprint;
pub use stored::{MatrixFormat, RowRule, StoredMatrix};
pub use wilson::{EvenOdd, SiteDiagonal, WilsonOperator};

/// What helps where a vector has another size than its operator.
pub(crate) const TAKE_SIZES: &str = "make vectors of the operator's size";

/// The error for a product that is not finite.
pub(crate) fn not_finite() -> Error {
    Error::numeric("the operator gives numbers that are not finite").hint("look for NaN or infinite entries")
}

/// The diagonal of an operator on its device, as a real column.
pub struct DiagonalOnDevice {
    pub entries: BlockVector,
    pub lowest: f64,
    /// The standard deviation of all.
    pub spread: f64,
}

/// What is known of an operator beyond its product. All of it has a default, which knows nothing.
pub trait LinearOperator: Any + Send + Sync {
    /// What multiplies vectors.
    fn kernel(&self) -> &dyn Kernel;

    /// The adjoint, where it is another operator. Hermitian operators need not give it.
    ///
    /// # Errors
    /// Those of the device.
    fn adjoint(&self) -> Result<Option<Operator>> {
        Ok(None)
    }

    /// Whether the operator equals its adjoint to rounding; where that is not known, products with random vectors tell.
    ///
    /// # Errors
    /// Those of the device.
    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(None)
    }

    /// What `Operator::extent` is of operators made of others; the rest is tried with random vectors.
    ///
    /// # Errors
    /// Those of the device.
    fn extent(&self) -> Result<Option<f64>> {
        Ok(None)
    }

    /// The entries of a local row as (column, value), columns ascending and none twice;
    /// false where entries are not known.
    fn row(&self, _row: usize, _entries: &mut Vec<(usize, C64)>) -> bool {
        false
    }

    /// The local diagonal, where it is known with little work.
    fn diagonal(&self) -> Option<Vec<C64>> {
        None
    }

    /// The same on the device, where it is made there without numbers of the host.
    ///
    /// # Errors
    /// Those of the device.
    fn diagonal_on_device(&self) -> Result<Option<DiagonalOnDevice>> {
        Ok(None)
    }

    /// Limits of the spectrum of a Hermitian operator (Gershgorin's theorem), where known without products.
    fn limits(&self) -> Option<(f64, f64)> {
        None
    }

    /// Entries over the places kept for them, 1 where nothing is padded.
    fn occupancy(&self) -> f64 {
        1.0
    }

    /// A few words: the format.
    fn describe(&self) -> String {
        self.kernel().info().format
    }

    /// Why the operator is kept as it is, where a choice was made.
    fn reason(&self) -> Option<&str> {
        None
    }

    /// The velocity i [A, x] along a Cartesian axis, where it follows from those of other operators.
    ///
    /// # Errors
    /// Those of the other operators.
    fn velocity(&self, _axis: usize) -> Result<Option<Operator>> {
        Ok(None)
    }
}

/// A handle to `scale * A + shift` on a device; cheap to copy.
#[derive(Clone)]
pub struct Operator {
    node: Arc<dyn LinearOperator>,
    scale: C64,
    shift: C64,
    device: Device,
    geometry: Option<Arc<Geometry>>,
    label: Option<Arc<str>>,
    /// The model that the entries of A are of, for velocities.
    origin: Option<Arc<velocity::Origin>>,
    /// The adjoint of A, where A was made as that of another operator.
    adjoint: Option<Arc<Operator>>,
    /// Two numbers that the spectrum reaches, once somebody has looked; none for an operator that is not Hermitian.
    reach: Arc<OnceLock<Option<(f64, f64)>>>,
    /// The fingerprint, once somebody has asked for it.
    print: Arc<OnceLock<Option<Fingerprint>>>,
}

impl Operator {
    pub fn from_node(device: Device, node: Arc<dyn LinearOperator>) -> Self {
        Operator {
            node,
            scale: C64::ONE,
            shift: C64::ZERO,
            device,
            geometry: None,
            label: None,
            origin: None,
            adjoint: None,
            reach: Arc::default(),
            print: Arc::default(),
        }
    }

    /// The same operator, knowing the lattice that its rows live on.
    pub fn on(mut self, geometry: Option<Arc<Geometry>>) -> Self {
        self.geometry = geometry.filter(|g| g.rows() == self.dim());
        self
    }

    /// The same operator, saying in its summary what its rows are.
    pub fn labelled(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// The lattice that the rows live on, where it is known.
    pub fn geometry(&self) -> Option<&Arc<Geometry>> {
        self.geometry.as_ref()
    }

    /// Two numbers that the spectrum reaches, found by `look` when first asked for; none for one that is not real.
    ///
    /// # Errors
    /// Those of `look`.
    pub fn reach(&self, look: impl FnOnce() -> Result<Option<(f64, f64)>>) -> Result<Option<(f64, f64)>> {
        if let Some(known) = self.reach.get() {
            return Ok(*known);
        }
        let found = look()?;
        Ok(*self.reach.get_or_init(|| found))
    }

    /// The device that the operator works on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The operator behind a handle without factor and shift, if it is of this type.
    pub fn exactly<T: LinearOperator>(&self) -> Option<&T> {
        self.multiple_of().and_then(|(factor, node)| (factor == C64::ONE).then_some(node))
    }

    /// The operator behind a handle without shift, if it is of this type, and its factor.
    pub fn multiple_of<T: LinearOperator>(&self) -> Option<(C64, &T)> {
        let node: &dyn Any = &*self.node;
        node.downcast_ref().filter(|_| self.shift == C64::ZERO).map(|node| (self.scale, node))
    }

    /// Number of rows, which is that of columns for all but rectangular operators.
    pub fn dim(&self) -> usize {
        self.rows().global
    }

    /// Rows held here, and in all.
    pub fn rows(&self) -> Rows {
        self.node.kernel().rows()
    }

    /// Columns in all.
    pub fn cols(&self) -> usize {
        self.node.kernel().cols()
    }

    pub fn dtype(&self) -> DType {
        let own = self.node.kernel().dtype();
        if self.scale.im != 0.0 || self.shift.im != 0.0 { own.to_complex() } else { own }
    }

    /// A block of zeros that the operator can act on.
    pub fn zeros(&self, columns: usize) -> Result<BlockVector> {
        self.device.zeros(self.dtype(), self.domain(), columns)
    }

    /// Rows of the vectors that the operator acts on.
    pub fn domain(&self) -> Rows {
        if self.rows().global == self.cols() { self.rows() } else { Rows::all(self.cols()) }
    }

    /// The vector in a form that this operator can act on: complex if the operator is, of its precision, its rows on
    /// the operator's lattice. None if it is in that form already.
    pub fn accept(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        let own = self.dtype();
        let wanted = DType::of(own.is_single(), own.is_complex() || v.dtype().is_complex());
        let arranged = match self.domain() {
            rows if v.rows().grid != rows.grid && v.rows().global == rows.global => {
                Some(self.device.arrange(v, rows)?)
            }
            _ => None,
        };
        if wanted == v.dtype() {
            return Ok(arranged);
        }
        self.device.convert(arranged.as_ref().unwrap_or(v), wanted).map(Some)
    }

    /// `A v`, promoting the vector's type where needed.
    pub fn apply(&self, v: &BlockVector) -> Result<BlockVector> {
        if v.rows().global != self.cols() {
            return Err(Error::input(format!(
                "product of a {} x {} operator and a vector of {} rows",
                self.dim(),
                self.cols(),
                v.rows().global
            ))
            .hint(TAKE_SIZES));
        }
        let converted = self.accept(v)?;
        let v = converted.as_ref().unwrap_or(v);
        // Setting the result to zero first would cost half as much again as a fast product.
        let (dtype, rows, columns) = (v.dtype(), self.rows(), v.columns());
        let mut w = if self.overwrites() {
            self.device.room(dtype, rows, columns)?
        } else {
            self.device.zeros(dtype, rows, columns)?
        };
        self.update(Update::PRODUCT, v, &mut w, None)?;
        Ok(w)
    }

    /// The operator, unless its numbers do not fit its precision.
    ///
    /// # Errors
    /// In single precision, numbers below 1e-15 or above 1e15.
    pub fn in_range(self) -> Result<Operator> {
        action::check_precision(&self)?;
        Ok(self)
    }

    /// All entries as a dense row-major matrix, by products with unit vectors: a slow reference for tests.
    pub fn to_dense(&self) -> Result<Vec<C64>> {
        let (rows, cols) = (self.dim(), self.cols());
        if rows.saturating_mul(cols) > 1 << 26 {
            return Err(Error::memory(format!(
                "a dense matrix of {rows} x {cols} is too large to print or convert"
            ))
            .hint("8192 rows are the most; products, `entries` and solvers take larger operators"));
        }
        self.entries()
    }

    /// The same of any size that memory has room for.
    pub(crate) fn entries(&self) -> Result<Vec<C64>> {
        let (rows, cols) = (self.dim(), self.cols());
        memory::ensure(16 * rows as u128 * cols as u128, "a dense matrix")?;
        let mut dense = vec![C64::default(); rows * cols];
        for first in (0..cols).step_by(64) {
            let width = 64.min(cols - first);
            let mut v = self.device.zeros(self.dtype(), self.domain(), width)?;
            let units: Vec<_> = (0..width).map(|c| (first + c, c, C64::ONE)).collect();
            self.device.set_entries(&mut v, &units)?;
            let w = self.device.download(&self.apply(&v)?)?;
            for row in 0..rows {
                dense[row * cols + first..][..width].copy_from_slice(&w[row * width..][..width]);
            }
        }
        Ok(dense)
    }

    /// One line: size, type, format and bytes.
    pub fn summary(&self) -> String {
        let label = self.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        format!(
            "Operator {} x {}, {}, {}, {} on {}{label}",
            self.dim(),
            self.cols(),
            self.dtype(),
            self.describe(),
            human(self.info().bytes),
            self.device.name()
        )
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary())
    }
}
