//! Linear operators over a backend: stored matrices in the formats a backend has kernels for, and lazy sums, products
//! and adjoints of operators. No physics here: `lattice` and `manybody` say what the matrices mean.

mod combine;
mod stored;
mod velocity;
mod wilson;

use std::sync::{Arc, OnceLock};

use crate::backend::{BlockVector, Device, Dots, Rows, Update};
use crate::error::{Error, Result};
use crate::lattice::Geometry;
use crate::number::memory::human;
use crate::number::{C64, DType};
pub use combine::update_by;
pub use stored::{Format, Stored};
pub use wilson::{EvenOdd, SiteDiagonal, Wilson};

/// What every operator can do. An own operator for the library's users implements this too.
pub trait LinearOperator: Send + Sync {
    /// Rows held and in all.
    fn rows(&self) -> Rows;
    /// Columns in all.
    fn cols(&self) -> usize;
    /// Scalar type; a real operator acts on complex vectors too.
    fn dtype(&self) -> DType;
    /// `w = alpha A v + beta v + gamma w`, with the column-wise products of the new `w` where asked.
    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()>;
    /// `w = alpha A v + beta v + gamma w + sum_i f_i x_i`; in one pass where the kernel can.
    fn update_plus(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        self.update(device, c, v, w, None)?;
        for (factor, x) in plus {
            device.axpby(&[C64::new(*factor, 0.0)], x, &[C64::new(1.0, 0.0)], w)?;
        }
        Ok(())
    }
    /// Whether an update with `gamma = 0` writes every row of `w` and reads none, so that `w` need not be zero before.
    fn overwrites(&self) -> bool {
        false
    }
    /// The adjoint, where it is known.
    fn adjoint(&self, device: &Device) -> Result<Operator>;
    /// Whether the operator equals its adjoint.
    fn is_hermitian(&self, device: &Device) -> Result<bool>;
    /// The real parts of the local diagonal, where they are known without work.
    fn diagonal(&self) -> Option<Vec<f64>> {
        None
    }
    /// The imaginary parts of the local diagonal, where [`LinearOperator::diagonal`] is known and they are not all zero.
    fn imaginary_diagonal(&self) -> Option<Vec<f64>> {
        None
    }
    /// Limits of the spectrum of a Hermitian operator (Gershgorin's theorem), where known without work.
    fn limits(&self) -> Option<(f64, f64)> {
        None
    }
    /// A few words: type, format, bytes.
    fn describe(&self) -> String;
    /// Why the operator is kept as it is, where a choice was made.
    fn reason(&self) -> Option<&str> {
        None
    }
    /// Bytes held on the device.
    fn bytes(&self) -> usize {
        0
    }
    /// Entries that a product touches, for traffic and flop counts.
    fn entries(&self) -> usize {
        0
    }
    /// Calls `f(row, column, value)` for every local entry, rows ascending; false where entries are not known.
    fn each_entry(&self, _f: &mut dyn FnMut(usize, usize, C64)) -> bool {
        false
    }
    /// The operator itself, where the layers above know more of it than this trait says.
    #[doc(hidden)]
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
    /// The velocity i [A, x] along a Cartesian axis, where it follows from those of other operators.
    fn velocity(&self, _axis: usize) -> Result<Option<Operator>> {
        Ok(None)
    }
    /// The terms and the shift, if this is a sum: nested sums stay flat.
    #[doc(hidden)]
    fn as_sum(&self) -> Option<(Vec<(C64, Operator)>, C64)> {
        None
    }
    /// `steps` orders of `w <- alpha A v + beta v - w` with `v` and `w` changing places after each; see
    /// [`crate::backend::Kernel::recurrence`].
    #[allow(clippy::too_many_arguments)]
    fn recurrence(
        &self,
        device: &Device,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        for _ in 0..steps {
            let mut dots = Dots::default();
            self.update(device, Update { alpha, beta, gamma: -1.0 }, v, w, Some(&mut dots))?;
            out.push(dots);
            std::mem::swap(v, w);
        }
        Ok(())
    }
}

/// A handle to an operator on a device; cheap to copy.
#[derive(Clone)]
pub struct Operator {
    node: Arc<dyn LinearOperator>,
    device: Device,
    geometry: Option<Arc<Geometry>>,
    label: Option<Arc<str>>,
    /// The model that the entries are of, for velocities.
    origin: Option<Arc<velocity::Origin>>,
    /// Two numbers that the spectrum reaches, once somebody has looked; none for an operator that is not Hermitian.
    reach: Arc<OnceLock<Option<(f64, f64)>>>,
}

impl Operator {
    /// Wraps an operator.
    pub fn from_node(device: Device, node: Arc<dyn LinearOperator>) -> Self {
        Operator { node, device, geometry: None, label: None, origin: None, reach: Arc::default() }
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

    /// The operator behind the handle.
    pub fn node(&self) -> &Arc<dyn LinearOperator> {
        &self.node
    }

    /// Number of rows, which is that of columns for all but rectangular operators.
    pub fn dim(&self) -> usize {
        self.node.rows().global
    }

    /// Rows held and in all.
    pub fn rows(&self) -> Rows {
        self.node.rows()
    }

    /// Columns in all.
    pub fn cols(&self) -> usize {
        self.node.cols()
    }

    /// Scalar type.
    pub fn dtype(&self) -> DType {
        self.node.dtype()
    }

    /// A block of zeros that the operator can act on.
    pub fn zeros(&self, columns: usize) -> Result<BlockVector> {
        self.device.zeros(self.dtype(), self.domain(), columns)
    }

    /// Rows of the vectors that the operator acts on.
    pub fn domain(&self) -> Rows {
        if self.rows().global == self.cols() { self.rows() } else { Rows::all(self.cols()) }
    }

    /// The vector in a form that this operator can act on: complex if the operator is, of its precision, its rows on the
    /// operator's lattice. None if it is in that form already.
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
            .hint("make vectors with `unit_block(h, ..)` or `random_block(h, ..)`, which take the size from the operator"));
        }
        let converted = self.accept(v)?;
        let v = converted.as_ref().unwrap_or(v);
        // Setting the result to zero first would cost half as much again as a fast product.
        let (dtype, rows, columns) = (v.dtype(), self.rows(), v.columns());
        let mut w = if self.node.overwrites() {
            self.device.room(dtype, rows, columns)?
        } else {
            self.device.zeros(dtype, rows, columns)?
        };
        self.update(Update::PRODUCT, v, &mut w, None)?;
        Ok(w)
    }

    /// One fused pass; see [`LinearOperator::update`].
    pub fn update(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        self.node.update(&self.device, c, v, w, dots)
    }

    /// One fused pass with more vectors added; see [`LinearOperator::update_plus`].
    pub fn update_plus(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        self.node.update_plus(&self.device, c, v, w, plus)
    }

    /// The adjoint operator.
    pub fn adjoint(&self) -> Result<Operator> {
        let adjoint = self.node.adjoint(&self.device)?.on(self.geometry.clone());
        // Models are Hermitian, and so are their commutators i [.., x].
        Ok(Operator { origin: self.origin.clone(), ..adjoint })
    }

    /// Whether the operator equals its adjoint, to rounding.
    pub fn is_hermitian(&self) -> Result<bool> {
        self.node.is_hermitian(&self.device)
    }

    /// All entries as a dense row-major matrix, by products with unit vectors: the slow twin that tests compare with.
    pub fn to_dense(&self) -> Result<Vec<C64>> {
        let (rows, cols) = (self.dim(), self.cols());
        if rows.saturating_mul(cols) > 1 << 26 {
            return Err(Error::memory(format!(
                "a dense matrix of {rows} x {cols} is too large to print or convert"
            )));
        }
        let mut dense = vec![C64::default(); rows * cols];
        for first in (0..cols).step_by(64) {
            let width = 64.min(cols - first);
            let mut v = self.device.zeros(self.dtype(), self.domain(), width)?;
            let units: Vec<_> = (0..width).map(|c| (first + c, c, C64::new(1.0, 0.0))).collect();
            self.device.set_entries(&mut v, &units)?;
            let w = self.device.download(&self.apply(&v)?)?;
            for row in 0..rows {
                dense[row * cols + first..][..width].copy_from_slice(&w[row * width..][..width]);
            }
        }
        Ok(dense)
    }

    /// One line for people: size, type, format and bytes.
    pub fn summary(&self) -> String {
        let label = self.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        format!(
            "Operator {} x {}, {}, {}, {} on {}{label}",
            self.dim(),
            self.cols(),
            self.dtype(),
            self.node.describe(),
            human(self.node.bytes()),
            self.device.name()
        )
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.summary())
    }
}
