//! Operators given by their product alone; `update` is built from it.

use std::sync::Arc;

use super::{LinearOperator, Operator, not_finite};
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, Random, Update, VectorDistribution,
};
use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, DType};

/// Random vectors of a probe.
const PROBES: usize = 4;

/// An operator given by its product alone, on vectors like those of another operator. It is a [`Kernel`].
pub trait Action: Send + Sync {
    /// An operator on the same vectors.
    fn like(&self) -> &Operator;

    /// `A v`.
    ///
    /// # Errors
    /// Those of the device.
    fn act(&self, v: &BlockVector) -> Result<BlockVector>;

    /// What it is, in a few words; bytes on the device; entries that a product touches.
    fn about(&self) -> KernelInfo;

    /// Scalar type, where it is not that of [`Action::like`].
    fn scalar(&self) -> DType {
        self.like().dtype()
    }

    /// The operator that this is, on the lattice of [`Action::like`].
    fn into_operator(self) -> Operator
    where
        Self: LinearOperator + Sized,
    {
        let (device, geometry) = (self.like().device().clone(), self.like().geometry().cloned());
        Operator::from_node(device, Arc::new(self)).on(geometry)
    }
}

impl<T: Action> Kernel for T {
    fn shape(&self) -> KernelShape {
        KernelShape::square(self.like().rows(), self.scalar())
    }

    fn info(&self) -> KernelInfo {
        self.about()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        update_by(self.like().device(), c, &self.act(v)?, v, w, dots)
    }

    fn overwrites(&self) -> bool {
        true
    }
}

/// `w = alpha p + beta v + gamma w` from a product `p = A v`, and the column-wise products asked for.
///
/// # Errors
/// Those of the device.
pub fn update_by(
    device: &Device,
    c: Update,
    p: &BlockVector,
    v: &BlockVector,
    w: &mut BlockVector,
    dots: Option<&mut Dots>,
) -> Result<()> {
    device.axpby(&[c.alpha.into()], p, &[c.gamma.into()], w)?;
    if c.beta != 0.0 {
        device.axpby(&[c.beta.into()], v, &[C64::ONE], w)?;
    }
    if let Some(dots) = dots {
        *dots = Dots::taken(&**device, v, w)?;
    }
    Ok(())
}

/// `<x_i|A x_j>` of random vectors, row-major; and the largest modulus among them,
/// about that of a row times the root of the rows.
fn probe(a: &Operator) -> Result<(Vec<C64>, f64)> {
    let device = a.device();
    let mut v = a.zeros(PROBES)?;
    let random = Random {
        seed: 0,
        stream: Stream::Start,
        first_column: 0,
        distribution: VectorDistribution::Gaussian,
    };
    device.fill_random(&mut v, random)?;
    let mut w = a.zeros(PROBES)?;
    a.update(Update::PRODUCT, &v, &mut w, None)?;
    let g = device.gram(&v, &w)?;
    let scale = g.iter().map(|z| z.norm()).fold(0.0, f64::max);
    Ok((g, scale))
}

/// Whether `<x|A y> = <A x|y>` for random vectors, a test that an operator fails almost certainly if it is not
/// Hermitian.
pub(super) fn probe_hermitian(a: &Operator) -> Result<bool> {
    let (g, scale) = probe(a)?;
    if g.iter().any(|z| !z.re.is_finite() || !z.im.is_finite()) {
        return Err(not_finite());
    }
    let differ = |i: usize, j: usize| (g[i * PROBES + j] - g[j * PROBES + i].conj()).norm();
    let pairs = (0..PROBES).flat_map(|i| (0..i + 1).map(move |j| (i, j)));
    let most = pairs.map(|(i, j)| differ(i, j)).fold(0.0, f64::max);
    // Terms that nearly cancel leave the rounding of what they were.
    Ok(most <= a.dtype().tolerance(1e-11) * scale || most <= a.dtype().tolerance(1e-13) * a.extent()?)
}

impl Operator {
    /// About the root of the sum of the squares of all entries, those of terms and factors where it is made of some:
    /// what rounding is to be compared with.
    ///
    /// # Errors
    /// Those of the device.
    pub(super) fn extent(&self) -> Result<f64> {
        let (scale, shift) = self.affine();
        let own = match self.node.extent()? {
            Some(extent) => extent,
            None => probe(&self.node_times(C64::ONE))?.1,
        };
        Ok(scale.norm() * own + shift.norm() * (self.dim() as f64).sqrt())
    }
}

/// An error for a square operator in single precision so small or so large that squares of its numbers have no place
/// there: norms would be 0 or infinite, and searches end where they began.
pub(super) fn check_precision(a: &Operator) -> Result<()> {
    if !a.dtype().is_single() || a.rows().global != a.cols() {
        return Ok(());
    }
    let (g, scale) = probe(a)?;
    let size = scale / (a.cols() as f64).sqrt();
    let finite = g.iter().all(|z| z.re.is_finite() && z.im.is_finite());
    if finite && (size == 0.0 || a.dtype().squared().contains(&size)) {
        return Ok(());
    }
    Err(Error::input(format!("an operator with numbers of about {size:.0e} in single precision")).hint(
        "their squares exceed the range of single precision: take units in which they are about 1, or double \
             precision",
    ))
}
