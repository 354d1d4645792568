//! T_m of the folded operator (H - e)^2: a filter for the levels near an energy e inside the spectrum.

use crate::backend::{BlockVector, Kernel, KernelInfo, Update};
use crate::error::Result;
use crate::operator::{Action, LinearOperator, Operator};
use crate::task;

/// Modulus of the filter at e itself; beyond the bound it is at most one.
const PEAK: f64 = 10.0;

/// T_m(a (H - e)^2 + b) with m odd, where a and b map distances from e between `bound` and `far` to [-1, 1]. Levels
/// nearer than the bound are mapped below -1, the nearer the lower.
#[derive(Clone)]
pub(super) struct Folded {
    h: Operator,
    e: f64,
    far: f64,
    pub bound: f64,
    order: usize,
}

impl Folded {
    /// A filter for `0 < bound < far`.
    pub fn new(h: &Operator, e: f64, far: f64, bound: f64) -> Folded {
        let mut filter = Folded { h: h.clone(), e, far, bound, order: 1 };
        let order = (PEAK.acosh() / filter.angle(0.0)).clamp(1.0, 1e7) as usize;
        filter.order = order | 1;
        filter
    }

    /// Products with H that one application takes.
    pub fn products(&self) -> usize {
        2 * self.order
    }

    /// The filter T_m as an operator.
    pub fn operator(&self) -> Operator {
        self.clone().into_operator()
    }

    /// theta in T_m = -cosh(m theta), for a level nearer than the bound.
    fn angle(&self, distance: f64) -> f64 {
        let span = self.far * self.far - self.bound * self.bound;
        // acosh(1 + x), without the loss of digits where x is small.
        let x = 2.0 * (self.bound * self.bound - distance * distance).max(0.0) / span;
        (x + (x * (x + 2.0)).sqrt()).ln_1p()
    }

    /// The filter's value for a level at this distance from e, if it is nearer than the bound; -1 beyond.
    pub fn value(&self, distance: f64) -> f64 {
        -(self.order as f64 * self.angle(distance)).cosh()
    }

    /// Whether the filter cannot have this value for any level nearer than `far`.
    pub fn is_beyond(&self, value: f64) -> bool {
        value < self.value(0.0) * (1.0 + 1e-6) || !value.is_finite()
    }
}

impl Action for Folded {
    fn like(&self) -> &Operator {
        &self.h
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        let accepted = self.h.accept(v)?;
        let mut before = accepted.unwrap_or_else(|| v.clone());
        let (near, far) = (self.bound * self.bound, self.far * self.far);
        let (a, b) = (2.0 / (far - near), -(far + near) / (far - near));
        let blank = || self.h.device().zeros(before.dtype(), before.rows(), before.columns());
        let (mut shifted, mut now) = (blank()?, blank()?);
        let mut step = |x: &BlockVector, y: &mut BlockVector, factor: f64, keep: f64| -> Result<()> {
            self.h.update(Update { alpha: 1.0, beta: -self.e, gamma: 0.0 }, x, &mut shifted, None)?;
            let c = Update { alpha: factor * a, beta: -self.e * factor * a, gamma: keep };
            self.h.update_plus(c, &shifted, y, &[(factor * b, x)])
        };
        step(&before, &mut now, 1.0, 0.0)?;
        for _ in 1..self.order {
            task::poll()?;
            step(&now, &mut before, 2.0, -1.0)?;
            std::mem::swap(&mut now, &mut before);
        }
        Ok(now)
    }

    fn about(&self) -> KernelInfo {
        let KernelInfo { format, bytes, entries } = self.h.info();
        KernelInfo { format: format!("filter of {format}"), bytes, entries: self.products() * entries }
    }
}

impl LinearOperator for Folded {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        Ok(Some(self.operator()))
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(true))
    }
}
