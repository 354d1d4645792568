//! Damping kernels of the kernel polynomial method (Weisse, Wellein, Alvermann, Fehske, RMP 78 (2006) 275, table I).

use std::f64::consts::PI;

use crate::error::{Error, Result};
use crate::method::Window;

/// A kernel g_n that damps the Gibbs oscillations of a truncated Chebyshev series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DampingKernel {
    /// The best for densities: nearly Gaussian, width pi a / N.
    Jackson,
    /// For Green's functions; `lambda` trades resolution for damping, 3 to 5 is usual.
    Lorentz(f64),
    /// Fejer's: 1 - n/N.
    Fejer,
    /// Lanczos' sigma factors to the power M.
    Lanczos(f64),
    /// No damping.
    Dirichlet,
}

impl DampingKernel {
    /// Factors g_0 to g_(n-1).
    pub fn factors(self, n: usize) -> Vec<f64> {
        let big = n as f64;
        (0..n)
            .map(|k| {
                let k = k as f64;
                match self {
                    DampingKernel::Jackson => {
                        let q = PI / (big + 1.0);
                        ((big - k + 1.0) * (q * k).cos() + (q * k).sin() / q.tan()) / (big + 1.0)
                    }
                    DampingKernel::Lorentz(lambda) => (lambda * (1.0 - k / big)).sinh() / lambda.sinh(),
                    DampingKernel::Fejer => 1.0 - k / big,
                    DampingKernel::Lanczos(power) => {
                        if k == 0.0 {
                            1.0
                        } else {
                            ((PI * k / big).sin() / (PI * k / big)).powf(power)
                        }
                    }
                    DampingKernel::Dirichlet => 1.0,
                }
            })
            .collect()
    }

    /// The width at the window's middle, in energy, that `n` moments resolve.
    pub fn broadening(self, n: usize, window: &Window) -> f64 {
        window.half_width * self.width() / n as f64
    }

    /// How many moments reach a broadening in energy.
    pub fn moments_for(self, broadening: f64, window: &Window) -> Result<usize> {
        if !(broadening > 0.0) {
            return Err(Error::input(format!("a broadening of {broadening:?}"))
                .hint("broadening is an energy above zero"));
        }
        let n = (window.half_width * self.width() / broadening).ceil();
        if n > 1e8 {
            return Err(Error::input(format!("a broadening of {broadening:?} needs {n:.1e} moments"))
                .hint("ask for a broadening that is a larger fraction of the window"));
        }
        Ok((n as usize).max(2).next_multiple_of(2))
    }

    fn width(self) -> f64 {
        match self {
            DampingKernel::Lorentz(lambda) => lambda,
            _ => PI,
        }
    }
}

/// `1/s^2`, s the sine of the angle of an energy, from two densities of states; it is cut off at the distance from the
/// window's end that so many moments resolve.
pub(super) fn beside_edge(moments: usize, s: f64) -> f64 {
    let ends = (moments as f64 * s).powi(2);
    let below = if ends < 1e-12 { 1.0 } else { -(-ends).exp_m1() / ends };
    below * (moments as f64).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jackson_factors_of_the_reference() {
        let g = DampingKernel::Jackson.factors(128);
        assert!((g[0] - 1.0).abs() < 1e-15);
        assert!((g[1] - 0.999703469845139).abs() < 1e-14);
        assert!((g[64] - 0.324358764410075).abs() < 1e-14);
        // A difference of terms of order one: rounding is relative to those.
        assert!((g[127] - 9.19337022614984e-06).abs() < 1e-15);
    }
}
