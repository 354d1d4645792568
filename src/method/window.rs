//! The window [b - a, b + a] that holds the spectrum: H~ = (H - b)/a lives in [-1, 1].

use std::fmt;

use faer::Mat;

use super::units::Units;
use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::number::philox::Stream;
use crate::number::{C64, DType, hermitian};
use crate::operator::{Operator, not_finite};
use crate::task::Task;

/// The interval [center - half_width, center + half_width], in the units of the operator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// The middle, b.
    pub center: f64,
    /// Half the width, a.
    pub half_width: f64,
}

impl Window {
    /// From limits; they must be finite and in order.
    pub fn from_limits(lower: f64, upper: f64) -> Result<Window> {
        if !lower.is_finite() || !upper.is_finite() || lower >= upper {
            return Err(Error::input(format!("a spectral window from {lower} to {upper}"))
                .hint("the lower limit comes first and both are numbers"));
        }
        Ok(Window { center: (lower + upper) / 2.0, half_width: (upper - lower) / 2.0 })
    }

    /// An error if `amount` exceeds `most`, the bound that |T_m| <= 1 gives: the spectrum then leaves the window.
    pub fn holds(&self, amount: f64, most: f64, dtype: DType) -> Result<()> {
        let rounding = dtype.tolerance(1e-6);
        if amount <= most * (1.0 + rounding) {
            return Ok(());
        }
        Err(Error::numeric(format!("the spectrum leaves the window {self}: the moments grow without bound"))
            .hint(WIDER))
    }

    /// An error if the spectrum of a Hermitian operator certainly leaves the window. If Gershgorin's theorem does not
    /// prove that it is inside, a few Lanczos steps find how far it reaches, once per operator.
    ///
    /// # Errors
    /// A spectrum beyond the window, and those of the operator.
    pub fn must_hold(&self, h: &Operator, task: &Task) -> Result<()> {
        let slack = self.half_width * h.dtype().tolerance(1e-9);
        let inside = |(low, high): (f64, f64)| low >= self.lower() - slack && high <= self.upper() + slack;
        let look = || {
            if h.dim() != h.cols() || !h.is_hermitian()? {
                return Ok(None);
            }
            lanczos_limits(h, LOOK, 0, &task.quiet()).map(|limits| Some(limits.reached))
        };
        if h.limits().is_some_and(inside) {
            return Ok(());
        }
        match h.reach(look)? {
            Some((low, high)) if !inside((low, high)) => Err(Error::numeric(format!(
                "the spectrum reaches from {} to {} and leaves the window {self}",
                self.shown(low),
                self.shown(high)
            ))
            .hint(WIDER)),
            _ => Ok(()),
        }
    }

    /// An energy beside the window, as it is shown: to six decimals where these say something.
    fn shown(&self, energy: f64) -> String {
        let size = self.center.abs().max(self.half_width);
        if (1e-3..1e9).contains(&size) { format!("{energy:.6}") } else { format!("{energy:.6e}") }
    }

    /// Whether the spectrum of the operator that it is of is one level but for rounding. Then the width says nothing.
    pub fn is_of_one_level(&self, h: &Operator) -> bool {
        match h.limits() {
            Some((low, high)) => high - low <= 2.0 * level_of(h) * low.abs().max(high.abs()),
            None => self.half_width <= 2.0 * level_of(h) * self.center.abs(),
        }
    }

    pub fn lower(&self) -> f64 {
        self.center - self.half_width
    }

    pub fn upper(&self) -> f64 {
        self.center + self.half_width
    }

    /// An energy in units of the window.
    pub fn scale(&self, energy: f64) -> f64 {
        (energy - self.center) / self.half_width
    }

    /// An energy of the Hamiltonian from one in units of the window.
    pub fn energy(&self, x: f64) -> f64 {
        self.center + self.half_width * x
    }

    /// The same window, wider by a fraction on both sides.
    pub fn widened(&self, fraction: f64) -> Window {
        Window { half_width: wide_enough(self.half_width * (1.0 + fraction), self.center, LEVEL), ..*self }
    }

    /// Limits by Gershgorin's theorem: never too narrow, often too wide.
    pub fn gershgorin(h: &Operator) -> Result<Window> {
        require_hermitian(h)?;
        let (lower, upper) = h.limits().ok_or_else(|| {
            Error::input(format!(
                "Gershgorin's theorem needs the entries of a Hermitian operator, not a {}",
                h.describe()
            ))
            .hint("Lanczos' method needs no entries")
        })?;
        if !lower.is_finite() || !upper.is_finite() {
            return Err(Error::input("the operator has entries that are not finite numbers")
                .hint("a hopping or an on-site energy is infinite, or a division by zero"));
        }
        let center = (lower + upper) / 2.0;
        Ok(Window { center, half_width: wide_enough((upper - lower) / 2.0, center, level_of(h)) })
    }

    /// Limits by Lanczos' method: the extreme Ritz values, each moved out by its residual and `margin` of the width.
    pub fn lanczos(h: &Operator, steps: usize, margin: f64, seed: u64, task: &Task) -> Result<Window> {
        require_hermitian(h)?;
        let (low, high) = lanczos_limits(h, steps, seed, task)?.safe;
        let half_width = (high - low) / 2.0 * (1.0 + margin);
        let center = (low + high) / 2.0;
        Ok(Window { center, half_width: wide_enough(half_width, center, level_of(h)) })
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "[{}, {}]", self.shown(self.lower()), self.shown(self.upper()))
    }
}

/// Levels that are nearer, in units of their energy, are one.
const LEVEL: f64 = 1e-12;

/// The same in the precision of an operator.
fn level_of(h: &Operator) -> f64 {
    h.dtype().tolerance(LEVEL)
}

/// A half-width that divisions can resolve beside the centre; that of the operator zero is a number of no meaning.
fn wide_enough(half_width: f64, center: f64, level: f64) -> f64 {
    match half_width.max(level * center.abs()) {
        0.0 => 1e-12,
        half_width => half_width,
    }
}

/// Refuses an operator whose spectrum is not real: Chebyshev moments of it would be numbers without meaning.
pub(super) fn require_hermitian(h: &Operator) -> Result<()> {
    if h.dim() == h.cols() && h.is_hermitian()? {
        return Ok(());
    }
    Err(Error::input("a spectral window needs a Hermitian operator, and this one is not")
        .hint("A + A^+ is Hermitian"))
}

/// What helps where the spectrum leaves its window.
const WIDER: &str = "use a wider window, or one that Lanczos' method finds";

/// Lanczos steps of [`Window::must_hold`].
const LOOK: usize = 24;

/// Both ends of a spectrum by Lanczos' method.
struct SpectrumEnds {
    /// The extreme Ritz values, which lie inside.
    reached: (f64, f64),
    /// These minus and plus their residual norms.
    safe: (f64, f64),
}

/// Both ends, found in units of the operator, so that squares of its numbers are numbers.
fn lanczos_limits(h: &Operator, steps: usize, seed: u64, task: &Task) -> Result<SpectrumEnds> {
    let units = Units::of(h)?;
    let ends = ends_in_units(&units.h, steps, seed, task)?;
    let back = |(low, high): (f64, f64)| (low * units.unit, high * units.unit);
    Ok(SpectrumEnds { reached: back(ends.reached), safe: back(ends.safe) })
}

fn ends_in_units(h: &Operator, steps: usize, seed: u64, task: &Task) -> Result<SpectrumEnds> {
    let device = h.device();
    let steps = steps.clamp(2, h.dim().max(2));
    let random =
        Random { seed, stream: Stream::Start, first_column: 0, distribution: VectorDistribution::Gaussian };
    let mut v = h.zeros(1)?;
    device.fill_random(&mut v, random)?;
    let mut before = h.zeros(1)?;
    let scale = |x: &mut BlockVector, s: f64| -> Result<()> {
        let copy = x.clone();
        device.axpby(&[C64::new(s, 0.0)], &copy, &[C64::default()], x)
    };
    let size = device.norms(&v)?[0];
    scale(&mut v, 1.0 / size)?;
    let (mut alpha, mut beta): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let progress = task.start("spectral window", steps);
    for step in 0..steps {
        // before <- H v - beta before, which then becomes the next vector.
        let last = beta.last().copied().unwrap_or(0.0);
        h.update(crate::backend::Update { alpha: 1.0, beta: 0.0, gamma: -last }, &v, &mut before, None)?;
        let a = device.dots(&v, &before)?[0].re;
        if !a.is_finite() {
            return Err(not_finite());
        }
        device.axpby(&[C64::new(-a, 0.0)], &v, &[C64::ONE], &mut before)?;
        alpha.push(a);
        let b = device.norms(&before)?[0];
        progress.advance(step + 1)?;
        let spread = alpha.iter().chain(&beta).map(|x| x.abs()).fold(0.0, f64::max);
        let tiny = h.dtype().tolerance(1e-13);
        if b <= tiny * spread || step + 1 == steps {
            beta.push(if b <= tiny * spread { 0.0 } else { b });
            break;
        }
        beta.push(b);
        scale(&mut before, 1.0 / b)?;
        std::mem::swap(&mut v, &mut before);
    }
    let n = alpha.len();
    let residual = beta[n - 1];
    let (values, vectors) = tridiagonal(&alpha, &beta[..n - 1])?;
    let reached = (values[0], values[n - 1]);
    let off = |k: usize| residual * vectors[(n - 1, k)].abs();
    let safe = (reached.0 - off(0), reached.1 + off(n - 1));
    Ok(SpectrumEnds { reached, safe })
}

/// Eigenvalues of the tridiagonal matrix that Lanczos' method makes, ascending, and its eigenvectors as columns.
pub(super) fn tridiagonal(diagonal: &[f64], off: &[f64]) -> Result<(Vec<f64>, Mat<f64>)> {
    let n = diagonal.len();
    let t = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
        0 => diagonal[i],
        1 => off[i.min(j)],
        _ => 0.0,
    });
    hermitian::eigh(t.as_ref(), faer::Par::Seq)
        .ok_or_else(|| Error::numeric("the eigenvalues of a Krylov space did not converge"))
}
