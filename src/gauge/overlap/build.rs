//! A sign function from its parts, and a check of the result.

use std::sync::Arc;

use super::fit::{Fit, UNSOLVED};
use super::modes::invariant;
use super::report::{FitQuality, report};
use super::sign::Sign;
use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, root};
use crate::operator::Operator;

/// The error of an eigenvalue of Q, in units of the rounding of one product with Q.
const ROUNDING: f64 = 4.0;

/// What a sign function is made of besides its operator.
pub struct SignParts {
    /// Eigenvectors of Q^2, from the lowest on.
    pub modes: Option<BlockVector>,
    /// Whether they are known from elsewhere, and may be those of another operator.
    pub given: bool,
    /// Whether no gap is known between the last of the modes and the rest.
    pub touching: bool,
    /// The lowest value of Q^2 beyond the modes, as found.
    pub rest: f64,
    /// A lower bound on it.
    pub least: f64,
    /// The approximation there, which must cover what is between `least` and `upper`.
    pub fit: Fit,
    /// The largest eigenvalue of Q^2.
    pub upper: f64,
    /// The deviation wanted.
    pub delta: f64,
    /// Seed of the random vector of the check.
    pub seed: u64,
}

impl Sign {
    /// The sign function of `q`.
    ///
    /// # Errors
    /// Modes that are none of `q`; a fit that does not cover the spectrum; too much rounding.
    pub fn build(q: &Operator, parts: SignParts) -> Result<Sign> {
        let SignParts { modes, given, touching, rest, least, fit, upper, delta, seed } = parts;
        let squared = q.times(q)?;
        let low = modes.map(|vectors| invariant(q, vectors, upper.sqrt())).transpose()?;
        let mut rounding = fit.rounding(q.dtype(), least / upper);
        if least < 1e-8 * upper && rounding > 10.0 * fit.deviation().max(delta) {
            return Err(Error::numeric(format!(
                "from |Q| = {:.1e} to {:.2}, rounding leaves {rounding:.1e} of the sign function uncertain",
                root(rest),
                root(upper)
            ))
            .hint("treat the lowest modes exactly, like `low_modes: 8`, or allow a larger `delta`"));
        }
        if matches!(fit, Fit::Rational(_)) {
            rounding += UNSOLVED * fit.deviation();
        }
        let report = report(
            low.as_ref(),
            &FitQuality {
                degree: fit.degree(),
                off: &|modulus| fit.off(modulus * modulus / upper),
                delta: fit.off(least / upper),
                rounding,
                rest: root(rest),
                least: root(least),
                touching,
                kernel: ROUNDING * upper.sqrt() * q.dtype().epsilon() / 2.0,
            },
        );
        if given && !(report.bound < 0.5) {
            return Err(Error::input(format!(
                "the given low modes are not eigenvectors of this operator: the error of its sign would be {:.1e}",
                report.bound
            ))
            .hint("the Ritz functional of Q^2, of the same Q, finds some"));
        }
        let mut sign = Sign { q: q.clone(), squared, low, fit, upper, report, recorded: Arc::default() };
        sign.verify(seed)?;
        if sign.report.doubtful > 0 {
            sign.report.bound = sign.report.bound.max(2.0);
        }
        Ok(sign)
    }

    /// Checks that the square of the sign function is 1 on a random vector, within the bound. The check fails where
    /// low modes were missed, or where a given limit lies inside the spectrum.
    fn verify(&self, seed: u64) -> Result<()> {
        let device = self.q.device();
        let mut v = self.q.zeros(1)?;
        let distribution = VectorDistribution::Gaussian;
        let random = Random { seed, stream: Stream::Vectors, first_column: 0, distribution };
        device.fill_random(&mut v, random)?;
        let mut off = self.apply(&self.apply(&v, 0.0)?, 0.0)?;
        device.axpby(&[C64::new(-1.0, 0.0)], &v, &[C64::ONE], &mut off)?;
        let off = device.norms(&off)?[0] / device.norms(&v)?[0];
        let bound = self.report.bound;
        let rounding = self.q.dtype().tolerance(1e-9);
        if off <= 3.0 * bound + bound * bound + rounding {
            return Ok(());
        }
        Err(Error::numeric(format!(
            "this is no sign function: its square differs from 1 by {off:.1e}, where {bound:.1e} was to be expected"
        ))
        .hint(
            "low modes that are given are the lowest of `q * q`, none left out; a fit begins below the lowest value \
             beyond them",
        ))
    }
}
