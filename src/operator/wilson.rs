//! The Wilson-Dirac operator on given links, its even-odd reduced form, and diagonals that are the same on every site.
//! What the links mean and where they come from is the business of `gauge`.

use std::any::Any;
use std::sync::Arc;

use rayon::prelude::*;

use super::{LinearOperator, Operator};
use crate::backend::matrix::wilson::{Compression, Sites, Su3, WilsonSpec, error8};
use crate::backend::{BlockVector, Device, Dots, Kernel, MatrixSpec, Rows, Update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::task;

/// Largest deviation of U U^+ from one, or of det U from one, that counts as rounding.
const UNITARY: f64 = 1e-6;

/// Largest error of a link from 8 reals that is accepted, double and single.
const EIGHT: [f64; 2] = [1e-12, 1e-4];

/// D or gamma5 D, on all sites or those of one parity.
pub struct Wilson {
    kernel: Arc<dyn Kernel>,
    spec: WilsonSpec,
}

impl Wilson {
    /// The operator on a device.
    ///
    /// # Errors
    /// A link that is not in SU(3); links that 8 reals do not hold well enough.
    pub fn build(device: &Device, spec: WilsonSpec) -> Result<Operator> {
        spec.validate()?;
        check_links(&spec.links)?;
        if spec.compression == Compression::Eight {
            let error = error8(&spec.links, spec.single);
            if error > EIGHT[usize::from(spec.single)] {
                return Err(Error::input(format!(
                    "these links kept as 8 reals are wrong by up to {error:.1e}"
                ))
                .hint("use `storage: \"reconstruct-12\"`"));
            }
        }
        Self::prepare(device, spec)
    }

    fn prepare(device: &Device, spec: WilsonSpec) -> Result<Operator> {
        let kernel = device.prepare(MatrixSpec::Wilson(Arc::new(spec.clone())))?;
        Ok(Operator::from_node(device.clone(), Arc::new(Wilson { kernel, spec })))
    }

    /// What the operator was made of.
    pub fn spec(&self) -> &WilsonSpec {
        &self.spec
    }

    /// The Wilson operator behind a handle, if it is one.
    pub fn of(h: &Operator) -> Option<&Wilson> {
        h.node().as_any()?.downcast_ref()
    }
}

/// How far a matrix is from SU(3): the largest deviation of an element of U U^+ from that of one, or of det U from one.
/// NaN if an element is.
pub fn off_su3(u: &Su3) -> f64 {
    let row = |i: usize, j: usize| -> C64 { (0..3).map(|k| u[3 * i + k] * u[3 * j + k].conj()).sum() };
    let mut worst = 0.0f64;
    for i in 0..3 {
        for j in 0..3 {
            let e = (row(i, j) - if i == j { 1.0 } else { 0.0 }).norm();
            worst = if e <= worst { worst } else { e };
        }
    }
    let minor = |a: usize, b: usize, c: usize, d: usize| u[a] * u[b] - u[c] * u[d];
    let det = u[0] * minor(4, 8, 5, 7) - u[1] * minor(3, 8, 5, 6) + u[2] * minor(3, 7, 4, 6);
    // The determinant has all elements, so that it is NaN if one is.
    let e = (det - 1.0).norm();
    if e <= worst { worst } else { e }
}

/// Refuses links that are not in SU(3).
///
/// # Errors
/// Names the first such link.
pub fn check_links(links: &[Su3]) -> Result<()> {
    check_links_to(links, UNITARY)
}

/// Refuses links that are further from SU(3) than a tolerance.
///
/// # Errors
/// Names the first such link.
pub fn check_links_to(links: &[Su3], tolerance: f64) -> Result<()> {
    // Written so that NaN is found.
    let stop = task::current();
    let wrong = |u: &Su3| {
        stop.heed();
        !(off_su3(u) <= tolerance)
    };
    let Some(at) = links.par_iter().position_first(wrong) else { return Ok(()) };
    Err(Error::input(format!(
        "the link of site {} in direction {} is not in SU(3): it is off by {:.1e}",
        at / 4,
        at % 4,
        off_su3(&links[at])
    ))
    .hint("`u.reunitarised()` projects links onto SU(3)"))
}

impl LinearOperator for Wilson {
    fn rows(&self) -> Rows {
        self.kernel.rows()
    }

    fn cols(&self) -> usize {
        self.kernel.cols()
    }

    fn dtype(&self) -> DType {
        self.kernel.dtype()
    }

    fn update(
        &self,
        _: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        self.kernel.update(c, v, w, dots)
    }

    fn update_plus(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        plus: &[(f64, &BlockVector)],
    ) -> Result<()> {
        if let Some(done) = self.kernel.update_plus(c, v, w, plus) {
            return done;
        }
        self.kernel.update(c, v, w, None)?;
        for (factor, x) in plus {
            device.axpby(&[C64::new(*factor, 0.0)], x, &[C64::new(1.0, 0.0)], w)?;
        }
        Ok(())
    }

    fn overwrites(&self) -> bool {
        self.spec.sites == Sites::All
    }

    fn adjoint(&self, device: &Device) -> Result<Operator> {
        // gamma5 D is its own adjoint, and so is gamma5 D^+.
        let adjoint = self.spec.adjoint == self.spec.gamma5;
        Self::prepare(device, WilsonSpec { adjoint, ..self.spec.clone() })
    }

    fn is_hermitian(&self, device: &Device) -> Result<bool> {
        super::combine::probe_hermitian(device, self)
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

    fn bytes(&self) -> usize {
        self.kernel.info().bytes
    }

    fn entries(&self) -> usize {
        self.kernel.info().entries
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The even-odd reduced operator S = c - H_eo c^-1 H_oe of D = c + H, on vectors that vanish on odd sites: its spectrum is
/// narrower than that of D, and a solution on the even sites gives the odd ones.
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
        if let Some(d) = spec.dims.iter().position(|n| n % 2 == 1) {
            return Err(Error::input(format!(
                "even-odd preconditioning on a lattice of {} sites in direction {d}",
                spec.dims[d]
            ))
            .hint("every direction must have an even number of sites; use `even_odd: false`"));
        }
        if spec.diagonal == 0.0 {
            return Err(Error::input("even-odd preconditioning of an operator whose diagonal vanishes")
                .hint("use `even_odd: false`"));
        }
        let hop = |sites: Sites| {
            let own = WilsonSpec { diagonal: 0.0, gamma5: false, sites, ..spec.clone() };
            Wilson::prepare(device, own)
        };
        Ok(EvenOdd {
            even: hop(Sites::Even)?,
            odd: hop(Sites::Odd)?,
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

impl LinearOperator for EvenOdd {
    fn rows(&self) -> Rows {
        self.even.rows()
    }

    fn cols(&self) -> usize {
        self.even.cols()
    }

    fn dtype(&self) -> DType {
        self.even.dtype()
    }

    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        let mut t = device.zeros(v.dtype(), v.rows(), v.columns())?;
        self.odd.update(Update::PRODUCT, v, &mut t, None)?;
        let back = Update { alpha: -c.alpha / self.diagonal, beta: 0.0, gamma: c.gamma };
        self.even.update_plus(back, &t, w, &[(c.alpha * self.diagonal + c.beta, v)])?;
        super::combine::plain_dots(device, v, w, dots)
    }

    fn adjoint(&self, device: &Device) -> Result<Operator> {
        let adjoint = WilsonSpec { adjoint: !self.spec.adjoint, ..self.spec.clone() };
        Ok(Operator::from_node(device.clone(), Arc::new(EvenOdd::build(device, &adjoint)?)))
    }

    fn is_hermitian(&self, _: &Device) -> Result<bool> {
        Ok(false)
    }

    fn describe(&self) -> String {
        format!("even-odd reduced {}", self.even.node().describe())
    }

    fn bytes(&self) -> usize {
        self.even.node().bytes() + self.odd.node().bytes()
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
    fn rows(&self) -> Rows {
        self.kernel.rows()
    }

    fn cols(&self) -> usize {
        self.kernel.cols()
    }

    fn dtype(&self) -> DType {
        self.kernel.dtype()
    }

    fn update(
        &self,
        _: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        self.kernel.update(c, v, w, dots)
    }

    fn adjoint(&self, device: &Device) -> Result<Operator> {
        Self::build(device, self.rows(), self.factors.clone(), self.dtype().is_single())
    }

    fn is_hermitian(&self, _: &Device) -> Result<bool> {
        Ok(true)
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(self.factors.iter().copied().cycle().take(self.rows().local).collect())
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
