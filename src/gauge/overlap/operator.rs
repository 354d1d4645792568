//! D = (1 + s - m/2)(1 + gamma5 sign(Q)) + m, in units of 1/a, and its normal operator in one chirality.

use super::sign::Sign;
use crate::backend::{BlockVector, Kernel, KernelInfo, Update};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::operator::{Action, LinearOperator, Operator, SiteDiagonal, WilsonOperator};

/// s of the kernel gamma5 (D_W - 1 - s) of a sign function, up to rounding; a positive factor of the kernel does not
/// change the sign. None for another kernel, such as a smoothed one.
fn kernel_s(sign: &Sign) -> Option<f64> {
    let (factor, wilson) = sign.kernel().multiple_of::<WilsonOperator>()?;
    let spec = Some(wilson.spec()).filter(|w| w.gamma5 && factor.im == 0.0 && factor.re > 0.0)?;
    Some(((3.0 - spec.diagonal) * 1e12).round() / 1e12)
}

/// 1 + s - m/2, the factor of errors of the sign function in an overlap operator: for an overlap operator its own,
/// for a sign function that of the massless operator with its kernel.
pub fn overlap_scale(h: &Operator) -> Option<f64> {
    match h.exactly::<OverlapOperator>() {
        Some(d) => Some(d.scale()),
        None => Some(1.0 + kernel_s(h.exactly()?)?),
    }
}

#[derive(Clone)]
pub struct OverlapOperator {
    sign: Operator,
    gamma5: Operator,
    s: f64,
    mass: f64,
    adjoint: bool,
}

impl OverlapOperator {
    /// The operator with a sign function of gamma5 (D_W - 1 - s), and that s.
    /// Where s is not given it is that of the kernel.
    ///
    /// # Errors
    /// An operator that is no sign function, or one without spinors; s outside (-1, 1), another than the kernel's, or
    /// not to be told from it; a mass as for [`OverlapOperator::with_mass`].
    pub fn build(sign: &Operator, s: Option<f64>, mass: f64) -> Result<OverlapOperator> {
        let Some(function) = sign.exactly::<Sign>() else {
            return Err(Error::input(format!("{} is no sign function", sign.summary()))
                .hint("take the sign function of the kernel gamma5 (D_W - 1 - s)"));
        };
        if sign.rows().grid.is_none() {
            return Err(Error::input(
                "the overlap operator acts on spinors of a lattice, and this operator does not",
            )
            .hint("take the kernel gamma5 (D_W - 1 - s) of a gauge field"));
        }
        let s = match (s, kernel_s(function)) {
            (Some(s), Some(own)) if s.abs() < 1.0 && (s - own).abs() > 1e-12 => {
                return Err(Error::input(format!(
                    "s is {s}, and the sign function is of a kernel with s = {own}"
                ))
                .hint("leave `s` out, which takes that of the kernel"));
            }
            (Some(s), _) | (None, Some(s)) => s,
            (None, None) => {
                return Err(Error::input("the sign function's kernel does not tell its s")
                    .hint("give it, like `s: 0.4`"));
            }
        };
        if !(s.abs() < 1.0) {
            return Err(Error::input(format!("s is {s}")).hint("it lies between -1 and 1, like 0.4"));
        }
        let factors = [[1.0; 6], [-1.0; 6]].concat();
        let gamma5 = SiteDiagonal::build(sign.device(), sign.rows(), factors, sign.dtype().is_single())?;
        OverlapOperator { sign: sign.clone(), gamma5, s, mass: 0.0, adjoint: false }.with_mass(mass)
    }

    /// The same with another mass: that of an adjoint is an adjoint.
    ///
    /// # Errors
    /// A mass outside [0, 2 (1 + s)).
    pub fn with_mass(&self, mass: f64) -> Result<OverlapOperator> {
        if !(0.0..2.0 * (1.0 + self.s)).contains(&mass) {
            return Err(Error::input(format!("a quark mass of {mass}"))
                .hint(format!("it lies between 0 and 2 (1 + s) = {}", 2.0 * (1.0 + self.s))));
        }
        Ok(OverlapOperator { mass, ..self.clone() })
    }

    pub fn sign(&self) -> &Operator {
        &self.sign
    }

    /// The sign function with its own methods.
    pub fn sign_function(&self) -> Result<&Sign> {
        self.sign.exactly().ok_or_else(|| Error::internal("an overlap operator without a sign function"))
    }

    /// The s of the kernel.
    pub fn s(&self) -> f64 {
        self.s
    }

    /// The quark mass m.
    pub fn mass(&self) -> f64 {
        self.mass
    }

    /// 1 + s - m/2.
    pub fn scale(&self) -> f64 {
        1.0 + self.s - self.mass / 2.0
    }
}

impl Action for OverlapOperator {
    fn like(&self) -> &Operator {
        &self.sign
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        let device = self.sign.device();
        let sign = self.sign_function()?;
        let g5 = |v: &BlockVector| -> Result<BlockVector> {
            let mut w = device.zeros(v.dtype(), v.rows(), v.columns())?;
            self.gamma5.update(Update::PRODUCT, v, &mut w, None)?;
            Ok(w)
        };
        let mut w = if self.adjoint { sign.act(&g5(v)?)? } else { g5(&sign.act(v)?)? };
        let a = self.scale();
        device.axpby(&[C64::new(a + self.mass, 0.0)], v, &[C64::new(a, 0.0)], &mut w)?;
        Ok(w)
    }

    fn about(&self) -> KernelInfo {
        let what = if self.adjoint { "adjoint overlap" } else { "overlap" };
        let sign = self.sign.info();
        KernelInfo { format: format!("{what}, s = {}, mass {}, {}", self.s, self.mass, sign.format), ..sign }
    }
}

impl LinearOperator for OverlapOperator {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        Ok(Some(OverlapOperator { adjoint: !self.adjoint, ..self.clone() }.into_operator()))
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(false))
    }
}

/// D^+ D among spinors of one chirality c, where it is 2 A (A + m)(1 + c P sign(Q) P) + m^2 with A = 1 + s - m/2: one
/// sign function per product instead of two. The other chirality is shifted above the spectrum, so that no low modes
/// are found there.
#[derive(Clone)]
pub struct ChiralNormal {
    overlap: OverlapOperator,
    chirality: f64,
    projector: Operator,
}

impl ChiralNormal {
    /// The normal operator in the chirality 1 or -1.
    pub fn build(overlap: &OverlapOperator, chirality: i32) -> Result<ChiralNormal> {
        let upper = if chirality > 0 { [1.0, 0.0] } else { [0.0, 1.0] };
        let factors = [[upper[0]; 6], [upper[1]; 6]].concat();
        let sign = overlap.sign();
        let projector = SiteDiagonal::build(sign.device(), sign.rows(), factors, sign.dtype().is_single())?;
        Ok(ChiralNormal { overlap: overlap.clone(), chirality: f64::from(chirality.signum()), projector })
    }

    /// The projector onto the chirality.
    pub fn project(&self, v: &BlockVector) -> Result<BlockVector> {
        let mut w = self.projector.device().zeros(v.dtype(), v.rows(), v.columns())?;
        self.projector.update(Update::PRODUCT, v, &mut w, None)?;
        Ok(w)
    }

    /// The product with a vector of this chirality, the sign function wrong by no more than `error`.
    pub fn apply(&self, v: &BlockVector, error: f64) -> Result<BlockVector> {
        let d = &self.overlap;
        let (a, m) = (d.scale(), d.mass());
        let factor = 2.0 * a * (a + m);
        let s = d.sign_function()?.apply(v, error)?;
        let mut w = v.clone();
        self.projector.update(
            Update { alpha: self.chirality * factor, beta: 0.0, gamma: factor + m * m },
            &s,
            &mut w,
            None,
        )?;
        Ok(w)
    }
}

impl Action for ChiralNormal {
    fn like(&self) -> &Operator {
        self.overlap.sign()
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        let own = self.project(v)?;
        let mut product = self.apply(&own, 0.0)?;
        // The rest of v, shifted: (v - P v) times more than the largest eigenvalue.
        let top = 2.0 * (2.0 * (1.0 + self.overlap.s())).powi(2);
        let device = self.like().device();
        device.axpby(&[C64::new(top, 0.0)], v, &[C64::ONE], &mut product)?;
        device.axpby(&[C64::new(-top, 0.0)], &own, &[C64::ONE], &mut product)?;
        Ok(product)
    }

    fn about(&self) -> KernelInfo {
        let sign = if self.chirality > 0.0 { "positive" } else { "negative" };
        let overlap = self.overlap.about();
        KernelInfo { format: format!("normal operator of {sign} chirality of {}", overlap.format), ..overlap }
    }
}

impl LinearOperator for ChiralNormal {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(true))
    }
}
