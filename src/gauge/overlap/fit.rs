//! The part of a sign function beyond the low modes: a polynomial or a rational function of Q^2.

use crate::method::{MinMax, Zolotarev};
use crate::number::DType;

/// The residual of the conjugate gradients for the poles, as a fraction of the deviation of the fit.
pub(super) const UNSOLVED: f64 = 0.1;

/// The approximation beyond the low modes.
#[derive(Debug, Clone)]
pub enum Fit {
    Polynomial(MinMax),
    Rational(Zolotarev),
}

impl Fit {
    /// The fit holds where Q^2 over its largest value is this or more.
    fn eps(&self) -> f64 {
        match self {
            Fit::Polynomial(p) => p.eps,
            Fit::Rational(r) => r.eps,
        }
    }

    /// The largest error of the sign there, as a fraction.
    pub fn deviation(&self) -> f64 {
        match self {
            Fit::Polynomial(p) => p.deviation,
            Fit::Rational(r) => r.deviation,
        }
    }

    /// Degree of the polynomial, or number of poles.
    pub fn degree(&self) -> usize {
        match self {
            Fit::Polynomial(p) => p.degree(),
            Fit::Rational(r) => r.shifts.len(),
        }
    }

    /// The error of the sign at the smallest |Q|, of square `eps` relative to the largest, from rounding in products
    /// with the largest. Conjugate gradients accumulate more of it.
    pub fn rounding(&self, dtype: DType, eps: f64) -> f64 {
        let unit = dtype.epsilon();
        // Measured: conjugate gradients take some 1/sqrt(eps) iterations.
        let piled = if matches!(self, Fit::Rational(_)) { 1e-4 / eps.sqrt() } else { 0.0 };
        (4.0 + piled) * unit / eps.sqrt()
    }

    /// The deviation at y, which may be below the range of the fit.
    pub fn off(&self, y: f64) -> f64 {
        if y >= self.eps() {
            return self.deviation();
        }
        let value = match self {
            Fit::Polynomial(p) => p.at(y),
            Fit::Rational(r) => r.at(y),
        };
        self.deviation().max((1.0 - y.sqrt() * value).abs())
    }
}
