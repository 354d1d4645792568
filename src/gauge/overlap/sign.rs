//! sign(Q) = P+ - P- + (1 - P) X P_n(X^2) (1 - P): the lowest modes of Q exactly,
//! the rest by a polynomial in X = Q/|Q|.

use std::sync::{Arc, Mutex, PoisonError};

use super::fit::{Fit, UNSOLVED};
use super::modes::Low;
use super::report::SignReport;
use crate::backend::{BlockVector, Kernel, KernelInfo, Recorder, Update};
use crate::error::{Error, Result};
use crate::method::{MinMax, RecordedClenshaw, Window, Zolotarev, shifted_steps};
use crate::number::{C64, DType};
use crate::operator::{Action, LinearOperator, Operator};
use crate::task;

/// Most iterations of the conjugate gradients for the poles.
const ITERATIONS: usize = 100_000;

/// The sign function of a Hermitian operator.
#[derive(Clone)]
pub struct Sign {
    pub(super) q: Operator,
    pub(super) squared: Operator,
    pub(super) low: Option<Low>,
    pub(super) fit: Fit,
    /// The largest Q^2.
    pub(super) upper: f64,
    pub(super) report: SignReport,
    pub(super) recorded: Arc<Mutex<Vec<RecordedShape>>>,
}

/// A shape of vectors that a polynomial was applied to; its recurrence is recorded from the second time on.
pub(super) struct RecordedShape {
    dtype: DType,
    columns: usize,
    recorded: Option<RecordedClenshaw>,
}

/// Most shapes that are recorded.
const SHAPES: usize = 4;

impl Sign {
    /// The deviation of its fit.
    pub fn deviation(&self) -> f64 {
        self.fit.deviation()
    }

    /// How it is approximated.
    pub fn report(&self) -> &SignReport {
        &self.report
    }

    /// The operator whose sign it is.
    pub fn kernel(&self) -> &Operator {
        &self.q
    }

    /// Low eigenvalues of Q.
    pub fn low_values(&self) -> &[f64] {
        self.low.as_ref().map_or(&[], |low| &low.values)
    }

    /// `sign(Q) v`, wrong by no more than `error` or the deviation of the fit, whichever is larger.
    pub fn apply(&self, v: &BlockVector, error: f64) -> Result<BlockVector> {
        let device = self.q.device();
        let mut rest = v.clone();
        if let Some(low) = &self.low {
            device.deflate(&low.vectors, None, &mut rest)?;
        }
        let y = match &self.fit {
            Fit::Polynomial(p) => self.polynomial(p, &rest, p.terms_for(error.max(p.deviation)))?,
            Fit::Rational(r) => self.rational(r, &rest, error)?,
        };
        let mut out = rest;
        self.q.update(
            Update { alpha: 1.0 / self.upper.sqrt(), beta: 0.0, gamma: 0.0 },
            &y,
            &mut out,
            None,
        )?;
        if let Some(low) = &self.low {
            // (1 - P) of what the polynomial gave, and the low modes with their signs.
            let signs: Vec<f64> = low.values.iter().map(|v| v.signum()).collect();
            device.deflate(&low.vectors, Some((&signs, v)), &mut out)?;
        }
        Ok(out)
    }

    /// P_n(Q^2/upper) v by Clenshaw's recurrence over the first terms.
    fn polynomial(&self, p: &MinMax, v: &BlockVector, terms: usize) -> Result<BlockVector> {
        let (top, low) = (self.upper, p.eps * self.upper);
        let window = Window { center: 0.5 * (top + low), half_width: 0.5 * (top - low) };
        if let Some(y) = self.replayed(p, window, v, terms)? {
            return Ok(y);
        }
        let c: Vec<C64> = p.coefficients[..terms].iter().map(|&c| C64::new(c, 0.0)).collect();
        crate::method::clenshaw(&self.squared, window, &c, v, &task::here())
    }

    /// The same by launches recorded once, where launching a step takes longer than the step; not the first time, as
    /// recording takes about as long as one application.
    fn replayed(
        &self,
        p: &MinMax,
        window: Window,
        v: &BlockVector,
        terms: usize,
    ) -> Result<Option<BlockVector>> {
        let pays = |recorder: &dyn Recorder| recorder.worth_recording(v.bytes());
        if !self.q.recordable() || !self.q.device().recorder().is_some_and(pays) {
            return Ok(None);
        }
        let mut shapes = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shapes.iter().position(|s| s.dtype == v.dtype() && s.columns == v.columns());
        let Some(at) = known else {
            if shapes.len() < SHAPES {
                shapes.push(RecordedShape { dtype: v.dtype(), columns: v.columns(), recorded: None });
            }
            return Ok(None);
        };
        // A recording that failed is not used again: its memory may be gone.
        let mut recorded = match shapes[at].recorded.take() {
            Some(recorded) => recorded,
            None => RecordedClenshaw::new(self.q.times(&self.q)?, window, &p.coefficients, v)?,
        };
        let y = recorded.apply(v, terms)?;
        shapes[at].recorded = Some(recorded);
        Ok(Some(y))
    }

    /// The rational function by conjugate gradients with all poles at once.
    fn rational(&self, r: &Zolotarev, v: &BlockVector, error: f64) -> Result<BlockVector> {
        let device = self.q.device();
        let shifts: Vec<f64> = r.shifts.iter().map(|s| s * self.upper).collect();
        let tolerance = (UNSOLVED * error.max(r.deviation)).max(1e-14);
        let (x, iterations) = shifted_steps(&self.squared, &shifts, v, tolerance, ITERATIONS, &task::here())?;
        if iterations >= ITERATIONS {
            return Err(Error::numeric(format!(
                "conjugate gradients for the poles of the sign function did not converge in {ITERATIONS} iterations"
            ))
            .hint("treat more of the lowest modes exactly, with `low_modes`"));
        }
        let mut y = device.zeros(v.dtype(), v.rows(), v.columns())?;
        for (x, residue) in x.iter().zip(&r.residues) {
            device.axpby(&[C64::new(residue * self.upper, 0.0)], x, &[C64::ONE], &mut y)?;
        }
        Ok(y)
    }
}

impl Action for Sign {
    fn like(&self) -> &Operator {
        &self.q
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        self.apply(v, 0.0)
    }

    fn about(&self) -> KernelInfo {
        let r = &self.report;
        let what = if matches!(self.fit, Fit::Polynomial(_)) { "degree" } else { "poles" };
        let q = self.q.info();
        let modes = self.low.as_ref().map_or(0, |low| low.vectors.bytes());
        KernelInfo {
            format: format!("sign by {} low modes and {what} {}", r.modes, r.degree),
            bytes: q.bytes + modes,
            entries: q.entries * (1 + 2 * r.degree),
        }
    }
}

impl LinearOperator for Sign {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(true))
    }

    fn limits(&self) -> Option<(f64, f64)> {
        let most = 1.0 + self.report.bound;
        Some((-most, most))
    }
}
