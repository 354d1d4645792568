//! The Wilson-Dirac operator on given links, its even-odd reduced form, and diagonals that are the same on every site.
//! What the links mean and where they come from is the business of `gauge`.

use std::sync::Arc;

use super::{LinearOperator, Operator};
use crate::backend::matrix::su3::check_links;
use crate::backend::matrix::wilson::{Compression, SiteParity, WilsonSpec, error8};
use crate::backend::{
    BlockVector, Device, Dots, Kernel, KernelInfo, KernelShape, MatrixSpec, Region, Rows, Update,
};
use crate::error::{Error, Result};
use crate::number::C64;

/// Largest error of a link from 8 reals that is accepted, double and single.
const EIGHT: [f64; 2] = [1e-12, 1e-4];

/// D or gamma5 D, on all sites or those of one parity.
pub struct WilsonOperator {
    kernel: Arc<dyn Kernel>,
    device: Device,
    spec: WilsonSpec,
}

impl WilsonOperator {
    /// The operator on a device.
    ///
    /// # Errors
    /// A link that is not in SU(3); links that 8 reals do not hold well enough.
    pub fn build(device: &Device, spec: WilsonSpec) -> Result<Operator> {
        spec.validate()?;
        check_links(&spec.region, &spec.links)?;
        if spec.compression == Compression::Eight {
            let error = spec.region.largest(error8(&spec.links, spec.single))?;
            if error > EIGHT[usize::from(spec.single)] {
                return Err(Error::input(format!(
                    "these links kept as 8 reals are wrong by up to {error:.1e}"
                ))
                .hint("use `storage: \"reconstruct-12\"`"));
            }
        }
        let region = Region::on(device, spec.dims())?;
        Self::prepare(device, spec.on(region)?)
    }

    fn prepare(device: &Device, spec: WilsonSpec) -> Result<Operator> {
        let kernel = device.prepare(MatrixSpec::Wilson(Arc::new(spec.clone())))?;
        let node = WilsonOperator { kernel, device: device.clone(), spec };
        Ok(Operator::from_node(device.clone(), Arc::new(node)))
    }

    /// What the operator was made of.
    pub fn spec(&self) -> &WilsonSpec {
        &self.spec
    }
}

impl LinearOperator for WilsonOperator {
    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        // gamma5 D is its own adjoint, and so is gamma5 D^+.
        let adjoint = self.spec.adjoint == self.spec.gamma5;
        Self::prepare(&self.device, WilsonSpec { adjoint, ..self.spec.clone() }).map(Some)
    }

    fn limits(&self) -> Option<(f64, f64)> {
        // The hopping term's norm is 4 at most.
        let bound = self.spec.diagonal.abs() + 4.0;
        self.spec.gamma5.then_some((-bound, bound))
    }

    fn describe(&self) -> String {
        let what = if self.spec.gamma5 { "gamma5 Wilson" } else { "Wilson" };
        format!("{what}, {} links", self.spec.compression.name())
    }
}

/// The even-odd reduced operator S = c - H_eo c^-1 H_oe of D = c + H, on vectors that vanish on odd sites: its spectrum
/// is narrower than that of D, and a solution on the even sites gives the odd ones.
pub struct EvenOdd {
    even: Operator,
    odd: Operator,
    diagonal: f64,
    spec: WilsonSpec,
}

impl EvenOdd {
    /// The reduced operator of D.
    ///
    /// # Errors
    /// A lattice with a direction of odd size, whose sites cannot be told even from odd; an operator that is not D.
    pub fn build(device: &Device, spec: &WilsonSpec) -> Result<EvenOdd> {
        if let Some(d) = spec.dims().iter().position(|n| n % 2 == 1) {
            return Err(Error::input(format!(
                "even-odd preconditioning on a lattice of {} sites in direction {d}",
                spec.dims()[d]
            ))
            .hint("every direction must have an even number of sites; else solve on all sites"));
        }
        if spec.diagonal == 0.0 {
            return Err(Error::input("even-odd preconditioning of an operator whose diagonal vanishes")
                .hint("solve on all sites"));
        }
        let hop = |sites: SiteParity| {
            let own = WilsonSpec { diagonal: 0.0, gamma5: false, sites, ..spec.clone() };
            WilsonOperator::prepare(device, own)
        };
        Ok(EvenOdd {
            even: hop(SiteParity::Even)?,
            odd: hop(SiteParity::Odd)?,
            diagonal: spec.diagonal,
            spec: spec.clone(),
        })
    }

    /// The right-hand side on the even sites: b_e - H_eo c^-1 b_o.
    pub fn reduce(&self, b: &BlockVector) -> Result<BlockVector> {
        let mut w = self.even.device().zeros(b.dtype(), b.rows(), b.columns())?;
        let c = Update { alpha: -1.0 / self.diagonal, beta: 0.0, gamma: 0.0 };
        self.even.update_plus(c, b, &mut w, &[(1.0, b)])?;
        Ok(w)
    }

    /// The whole solution from that on the even sites: x_o = c^-1 (b_o - H_oe x_e).
    pub fn complete(&self, x: &BlockVector, b: &BlockVector) -> Result<BlockVector> {
        let mut whole = x.clone();
        let c = Update { alpha: -1.0 / self.diagonal, beta: 0.0, gamma: 0.0 };
        self.odd.update_plus(c, x, &mut whole, &[(1.0 / self.diagonal, b)])?;
        Ok(whole)
    }
}

impl Kernel for EvenOdd {
    fn shape(&self) -> KernelShape {
        KernelShape::square(self.even.rows(), self.even.dtype())
    }

    fn info(&self) -> KernelInfo {
        let (even, odd) = (self.even.info(), self.odd.info());
        KernelInfo {
            format: format!("even-odd reduced {}", even.format),
            bytes: even.bytes + odd.bytes,
            entries: even.entries + odd.entries,
        }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        let device = self.even.device();
        let mut t = device.zeros(v.dtype(), v.rows(), v.columns())?;
        self.odd.update(Update::PRODUCT, v, &mut t, None)?;
        let back = Update { alpha: -c.alpha / self.diagonal, beta: 0.0, gamma: c.gamma };
        self.even.update_plus(back, &t, w, &[(c.alpha * self.diagonal + c.beta, v)])?;
        if let Some(dots) = dots {
            *dots = Dots::taken(&**device, v, w)?;
        }
        Ok(())
    }
}

impl LinearOperator for EvenOdd {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        let (device, spec) = (self.even.device(), &self.spec);
        let adjoint = EvenOdd::build(device, &WilsonSpec { adjoint: !spec.adjoint, ..spec.clone() })?;
        Ok(Some(Operator::from_node(device.clone(), Arc::new(adjoint))))
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(false))
    }
}

/// A real diagonal that is the same on every site of a lattice: gamma5 is one, and so are the projectors on its halves.
pub struct SiteDiagonal {
    kernel: Arc<dyn Kernel>,
    factors: Vec<f64>,
}

impl SiteDiagonal {
    /// The diagonal operator with one factor for every row of a site.
    pub fn build(device: &Device, rows: Rows, factors: Vec<f64>, single: bool) -> Result<Operator> {
        let kernel = device.prepare(MatrixSpec::SiteDiagonal { rows, factors: factors.clone(), single })?;
        Ok(Operator::from_node(device.clone(), Arc::new(SiteDiagonal { kernel, factors })))
    }
}

impl LinearOperator for SiteDiagonal {
    fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(true))
    }

    fn row(&self, row: usize, entries: &mut Vec<(usize, C64)>) -> bool {
        let rows = self.kernel.rows();
        entries.clear();
        entries.push((rows.start + row, self.factors[row % self.factors.len()].into()));
        true
    }

    fn diagonal(&self) -> Option<Vec<C64>> {
        let all = self.factors.iter().map(|&x| x.into()).cycle();
        Some(all.take(self.kernel.rows().local).collect())
    }

    fn limits(&self) -> Option<(f64, f64)> {
        let low = self.factors.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.factors.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((low, high))
    }

    fn describe(&self) -> String {
        "diagonal on sites".into()
    }
}
