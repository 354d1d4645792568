//! Building a sign function: both ends of the spectrum, the low modes, a fit for the rest, and a check of the result.

use std::sync::Arc;

use super::fit::{Fit, UNSOLVED};
use super::modes::{FINDS_MODES, LowModes, ModeSearch, invariant};
use super::report::{FitQuality, report};
use super::sign::Sign;
use crate::backend::{Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::method::{Eigen, MinMax, Window, Zolotarev};
use crate::number::philox::Stream;
use crate::number::{C64, root};
use crate::operator::Operator;
use crate::task::Task;

/// What helps where the sign of the smallest eigenvalues is uncertain.
const LOW_MODES: &str = "treat the lowest modes exactly, like `low_modes: 8`, or allow a larger `delta`";

/// Limits of the spectrum that differ by less than this, relatively, are the same up to rounding.
const SAME: f64 = 1e-6;

/// The error of an eigenvalue of Q, in units of the rounding of one product with Q.
const ROUNDING: f64 = 4.0;

/// What a sign function is built from. What is not given is found.
#[derive(Default)]
pub struct SignOptions {
    /// Eigenvectors of Q^2 from the lowest on.
    pub low: Option<Eigen>,
    /// About how many low modes to find; by default as many as save more time than they cost.
    pub modes: Option<usize>,
    pub polynomial: Option<MinMax>,
    /// The rational function instead.
    pub rational: Option<Zolotarev>,
    /// The largest eigenvalue of Q^2.
    pub upper: Option<f64>,
    /// The deviation wanted of a polynomial that is found here.
    pub delta: f64,
    /// Whether a rational function is found rather than a polynomial.
    pub zolotarev: bool,
    /// Seed of random starting vectors.
    pub seed: u64,
}

impl SignOptions {
    /// The fit that is given.
    fn fit(&mut self) -> Option<Fit> {
        let polynomial = self.polynomial.take().map(Fit::Polynomial);
        polynomial.or_else(|| self.rational.take().map(Fit::Rational))
    }

    /// The low modes. `fit` is the Q^2 at which a given fit begins.
    fn beginning(&mut self, search: &ModeSearch, fit: Option<f64>) -> Result<LowModes> {
        match (self.low.take(), self.modes, fit) {
            (Some(low), ..) => search.given(low),
            (None, Some(0), None) => search.lowest(0.01),
            (None, Some(0), Some(_)) => search.lowest(1e-4),
            (None, Some(modes), fit) => search.modes(modes, fit.is_some()),
            (None, None, None) => search.worthwhile(),
            (None, None, Some(begins)) => search.below(begins),
        }
    }

    /// A fit from `least` to `upper`.
    fn fitted(&self, upper: f64, beginning: &LowModes) -> Result<Fit> {
        // A margin for rounding.
        let eps = 0.999 * beginning.least / upper;
        let found = if self.zolotarev {
            Zolotarev::to_error(eps, self.delta).map(Fit::Rational)
        } else {
            MinMax::to_error(eps, self.delta).map(Fit::Polynomial)
        };
        match found {
            Err(e) if eps < 1e-3 && beginning.modes.is_none() => Err(Error::numeric(format!(
                "without low modes, from |Q| = {:.1e} to {:.2}: {}",
                root(beginning.rest),
                root(upper),
                e.message()
            ))
            .hint(LOW_MODES)),
            found => found,
        }
    }
}

/// An upper bound on Q^2, by a Ritz value and its residual.
fn reach(squared: &Operator, seed: u64, task: &Task) -> Result<f64> {
    Ok(Window::lanczos(squared, 60, 0.0, seed, &task.quiet())?.upper())
}

/// Where the interval of a fit ends. It begins at `eps` of that, which must not be above `rest`, where the spectrum
/// begins.
fn covered(eps: f64, upper: f64, estimate: f64, rest: f64) -> Result<f64> {
    if eps * upper <= rest * (1.0 + SAME) {
        return Ok(upper);
    }
    // A fit may have been made with a slightly smaller upper limit than the one found here; that limit is accepted.
    let own = rest / eps;
    if own < estimate * (1.0 - SAME) {
        return Err(Error::input(format!(
            "eps = {eps:.4e} begins above the spectrum, which begins at {:.4e}",
            rest / upper
        ))
        .hint("eps is at most the lowest eigenvalue of Q^2 that is not projected out over the highest"));
    }
    Ok(own)
}

impl Sign {
    /// The sign function of `q`.
    ///
    /// # Errors
    /// An operator that is not Hermitian; a fit that does not cover the spectrum between the low modes and the largest.
    pub fn build(q: &Operator, mut wanted: SignOptions, task: &Task) -> Result<Sign> {
        if q.dim() != q.cols() || !q.is_hermitian()? {
            return Err(Error::input("a sign function needs a Hermitian operator, and this one is not")
                .hint("the kernel gamma5 (D_W - 1 - s) of a gauge field is one"));
        }
        let squared = q.times(q)?;
        let estimate = reach(&squared, wanted.seed, task)?;
        // A little more than the estimate, where no limit is given.
        let upper = wanted.upper.unwrap_or(1.01 * estimate);
        if !(upper >= estimate * (1.0 - SAME) && upper.is_finite()) {
            return Err(Error::input(format!(
                "an upper limit of {upper} for Q^2, whose spectrum reaches {estimate:.6}"
            ))
            .hint("Lanczos' method finds the largest eigenvalue of Q^2"));
        }
        if let Some(low) = wanted.low.as_ref().filter(|low| low.vectors.rows().global != q.dim()) {
            return Err(Error::input(format!(
                "low modes of {} rows for an operator of {}",
                low.vectors.rows().global,
                q.dim()
            ))
            .hint(FINDS_MODES));
        }
        let given = wanted.low.is_some();
        let search = ModeSearch { squared: &squared, upper, delta: wanted.delta, seed: wanted.seed, task };
        let fit = wanted.fit();
        let beginning = wanted.beginning(&search, fit.as_ref().map(|fit| fit.eps() * upper))?;
        let fit = fit.map_or_else(|| wanted.fitted(upper, &beginning), Ok)?;
        let LowModes { modes, touching, rest, least } = beginning;
        let upper = covered(fit.eps(), upper, estimate, rest)?;
        let low = modes.map(|vectors| invariant(q, vectors, upper.sqrt())).transpose()?;
        let mut rounding = fit.rounding(q.dtype(), least / upper);
        if least < 1e-8 * upper && rounding > 10.0 * fit.deviation().max(wanted.delta) {
            return Err(Error::numeric(format!(
                "from |Q| = {:.1e} to {:.2}, rounding leaves {rounding:.1e} of the sign function uncertain",
                root(rest),
                root(upper)
            ))
            .hint(LOW_MODES));
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
            .hint(FINDS_MODES));
        }
        let mut sign = Sign { q: q.clone(), squared, low, fit, upper, report, recorded: Arc::default() };
        sign.verify(wanted.seed)?;
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
