//! Functions of an operator by Chebyshev expansion and Clenshaw's recurrence.

use rayon::prelude::*;

use crate::backend::{BlockVector, Kernel, KernelInfo, Update};
use crate::error::{Error, Result};
use crate::method::{Window, cosine};
use crate::number::format::{real, real_or_complex};
use crate::number::{C64, DType};
use crate::operator::{Action, LinearOperator, Operator, TAKE_SIZES};
use crate::task::{self, Task};

/// A Chebyshev series f(E) = sum_k c_k T_k((E - b)/a); c_0 has no half weight.
#[derive(Debug, Clone)]
pub struct Expansion {
    pub window: Window,
    /// Coefficients c_0, c_1, ...
    pub coefficients: Vec<C64>,
}

/// A converged series is compared with its function at so many points evenly spaced in energy,
/// and as many in the angle.
const LOOKS: usize = 4096;
/// Allowed error of a series between its own points, relative to the largest value of the function. The terms left
/// out add to it.
const OFF: f64 = 1e-10;
/// Largest plateau of the coefficients, relative to the largest one, that is taken for rounding of the function.
const FLOOR: f64 = 1e-9;
/// Most terms of a series whose length is not given.
const MOST_TERMS: usize = 1 << 16;

/// A function's values at the Chebyshev points, whose number is a power of two.
struct ChebyshevValues {
    values: Vec<C64>,
}

impl ChebyshevValues {
    fn of(window: Window, points: usize, f: &mut dyn FnMut(f64) -> Result<C64>) -> Result<ChebyshevValues> {
        let step = std::f64::consts::PI / points as f64;
        let value = |j: usize| checked(window.energy((step * (j as f64 + 0.5)).cos()), f);
        Ok(ChebyshevValues { values: (0..points).map(value).collect::<Result<_>>()? })
    }

    fn coefficients(&self, terms: usize) -> Vec<C64> {
        cosine::coefficients(&self.values, terms)
    }
}

/// A function's value, which must be finite.
fn checked(energy: f64, f: &mut dyn FnMut(f64) -> Result<C64>) -> Result<C64> {
    let value = f(energy)?;
    if value.is_finite() {
        return Ok(value);
    }
    Err(Error::input(format!("the function is {} at energy {}", real_or_complex(value, 6), real(energy, 6)))
        .hint("it must be finite on the whole window"))
}

fn largest(values: &[C64]) -> f64 {
    values.iter().map(|c| c.norm()).fold(0.0, f64::max)
}

impl Expansion {
    /// The first `terms` coefficients of the series of a function of energy. The function is sampled at twice as many
    /// points as terms, and at twice as many again until the coefficients agree: structure between the points would
    /// otherwise be folded into them.
    ///
    /// # Errors
    /// No terms or too many of them, and those of the function.
    pub fn of(window: Window, terms: usize, mut f: impl FnMut(f64) -> Result<C64>) -> Result<Expansion> {
        if terms == 0 || terms > 1 << 24 {
            return Err(Error::input(format!("an expansion of {terms} terms"))
                .hint("take one at least, and 2^24 at most"));
        }
        let mut points = (2 * terms).max(LOOKS / 2).next_power_of_two();
        let mut samples = ChebyshevValues::of(window, points, &mut f)?;
        let mut coefficients = samples.coefficients(terms);
        // The series of a function with a jump never settles: then as many points as allowed are used.
        while points < MOST_TERMS {
            points *= 2;
            samples = ChebyshevValues::of(window, points, &mut f)?;
            let finer = samples.coefficients(terms);
            let off = coefficients.iter().zip(&finer).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            coefficients = finer;
            if off <= 1e-13 * largest(&samples.values) {
                break;
            }
        }
        Ok(Expansion { window, coefficients })
    }

    /// Expands to as many terms as needed: the last eighth of the coefficients, relative to the largest, must be
    /// below `tolerance` or below the plateau that rounding of the function leaves. Coefficients below that are
    /// dropped at the end. The series is then compared with the function between its points.
    ///
    /// # Errors
    /// A function that does not converge within 65536 terms, such as one with a jump, and errors of the function.
    pub fn converged(
        window: Window,
        tolerance: f64,
        mut f: impl FnMut(f64) -> Result<C64>,
    ) -> Result<Expansion> {
        if !(tolerance > 0.0) {
            return Err(Error::input(format!("a tolerance of {tolerance}"))
                .hint("it is a number above 0, like 1e-12"));
        }
        let mut looks = None;
        let mut terms = 32;
        while terms <= MOST_TERMS {
            let all = ChebyshevValues::of(window, 2 * terms, &mut f)?.coefficients(terms);
            if let Some(floor) = settled(&all, tolerance) {
                let last = all.iter().rposition(|c| c.norm() > floor).unwrap_or(0);
                let series = Expansion { window, coefficients: all[..=last].to_vec() };
                // A bound on the terms dropped, and on those that may follow.
                let cut: f64 = all[last + 1..].iter().map(|c| c.norm()).sum::<f64>()
                    + terms as f64 * largest(&all[terms - terms / 8..]);
                if looks.is_none() {
                    looks = Some(look(window, &mut f)?);
                }
                if series.agrees(looks.as_deref().unwrap_or_default(), cut) {
                    return Ok(series);
                }
            }
            terms *= 2;
        }
        Err(Error::numeric(format!(
            "the Chebyshev series of this function does not converge to {tolerance:e}"
        ))
        .hint("smooth the function, or give `terms` for a truncated series"))
    }

    /// Whether the series has these values at these energies, within [`OFF`] and `cut`, the bound on the terms left
    /// out.
    fn agrees(&self, looks: &[(f64, C64)], cut: f64) -> bool {
        let values: Vec<C64> = looks.iter().map(|(_, f)| *f).collect();
        let allowed = OFF * largest(&values) + 2.0 * cut;
        looks.par_iter().all(|(energy, f)| (self.at(*energy) - f).norm() <= allowed)
    }

    /// An error for an energy outside of the window, where a series is a large number without meaning.
    ///
    /// # Errors
    /// Such an energy, or NaN.
    pub fn inside(&self, energy: f64) -> Result<()> {
        if self.window.scale(energy).abs() <= 1.0 + 1e-9 {
            return Ok(());
        }
        Err(Error::input(format!("energy {energy} outside the window {} of the series", self.window))
            .hint("expand the function on a window that holds it"))
    }

    /// The value of the series at an energy, by Clenshaw's recurrence; outside the window it means nothing.
    pub fn at(&self, energy: f64) -> C64 {
        let x = self.window.scale(energy);
        let (mut b1, mut b2) = (C64::default(), C64::default());
        for c in self.coefficients.iter().skip(1).rev() {
            (b1, b2) = (b1 * (2.0 * x) - b2 + c, b1);
        }
        b1 * x - b2 + self.coefficients.first().copied().unwrap_or_default()
    }

    /// f(H) psi by [`clenshaw`], checked against the bound `sum |c_k| |psi|` that |T_k| <= 1 gives.
    ///
    /// # Errors
    /// Vectors of another length, a spectrum that leaves the window, or on interruption.
    pub fn apply(&self, h: &Operator, psi: &BlockVector, task: &Task) -> Result<BlockVector> {
        self.apply_with_loss(h, psi, task).map(|(out, _)| out)
    }

    /// The same, and by how much the terms of the sum are larger than the result, in the worst column. That factor
    /// times the rounding of one number is the relative error of the result.
    ///
    /// # Errors
    /// As [`Expansion::apply`].
    pub fn apply_with_loss(
        &self,
        h: &Operator,
        psi: &BlockVector,
        task: &Task,
    ) -> Result<(BlockVector, f64)> {
        let out = clenshaw(h, self.window, &self.coefficients, psi, task)?;
        let most = self.coefficients.iter().map(|c| c.norm()).sum::<f64>();
        let (before, after) = (h.device().dots(psi, psi)?, h.device().dots(&out, &out)?);
        let mut loss = 1.0f64;
        for (a, b) in after.iter().zip(&before).filter(|(_, b)| b.re.is_finite()) {
            self.window.holds(a.re, b.re * most * most, out.dtype())?;
            if b.re > 0.0 {
                loss = loss.max(most * (b.re / a.re).sqrt());
            }
        }
        Ok((out, loss))
    }

    pub fn is_real(&self) -> bool {
        self.coefficients.iter().all(|c| c.im == 0.0)
    }
}

/// The size below which coefficients are left out; none if the series has not settled. It has settled when the last
/// eighth of the coefficients is below `tolerance` of the largest, or when its last half is flat, as rounding makes
/// it.
fn settled(all: &[C64], tolerance: f64) -> Option<f64> {
    let most = largest(all);
    let n = all.len();
    let end = largest(&all[n - n / 8..]);
    if end <= tolerance * most {
        return Some(tolerance * most);
    }
    let flat = largest(&all[n / 2..3 * n / 4]) <= 4.0 * largest(&all[3 * n / 4..]);
    (end <= FLOOR * most && flat).then(|| 2.0 * largest(&all[n / 2..]))
}

/// The values of a function between the points that any series uses.
fn look(window: Window, f: &mut dyn FnMut(f64) -> Result<C64>) -> Result<Vec<(f64, C64)>> {
    // Irrational offsets: no such point falls on a grid.
    let even = |j: usize| 2.0 * (j as f64 + 0.618_033_988_749_895) / LOOKS as f64 - 1.0;
    let turned = |j: usize| (std::f64::consts::PI * (j as f64 + 0.381_966_011_250_105) / LOOKS as f64).cos();
    let zero = Some(window.scale(0.0)).filter(|x| x.abs() <= 1.0);
    (0..LOOKS)
        .flat_map(|j| [even(j), turned(j)])
        .chain(zero)
        .map(|x| {
            let energy = window.energy(x);
            Ok((energy, checked(energy, f)?))
        })
        .collect()
}

/// f(H) psi by Clenshaw's recurrence: b_k = c_k psi + 2 H~ b_(k+1) - b_(k+2), f(H) psi = c_0 psi + H~ b_1 - b_2.
pub fn clenshaw(
    h: &Operator,
    window: Window,
    coefficients: &[C64],
    psi: &BlockVector,
    task: &Task,
) -> Result<BlockVector> {
    if psi.rows().global != h.cols() || h.dim() != h.cols() {
        return Err(Error::input(format!(
            "Clenshaw's recurrence of a {} x {} operator on vectors of {} rows",
            h.dim(),
            h.cols(),
            psi.rows().global
        ))
        .hint(TAKE_SIZES));
    }
    let device = h.device();
    let complex = coefficients.iter().any(|c| c.im != 0.0);
    let promoted = if complex && !psi.dtype().is_complex() {
        Some(device.convert(psi, psi.dtype().to_complex())?)
    } else {
        None
    };
    let psi = promoted.as_ref().unwrap_or(psi);
    let accepted = h.accept(psi)?;
    let psi = accepted.as_ref().unwrap_or(psi);
    let zeros = || device.zeros(psi.dtype(), psi.rows(), psi.columns());
    let (mut b1, mut b2) = (zeros()?, zeros()?);
    let (a, b) = (1.0 / window.half_width, -window.center / window.half_width);
    let one = [C64::ONE];
    let progress = task.start("Clenshaw", coefficients.len());
    for k in (1..coefficients.len()).rev() {
        let c = Update { alpha: 2.0 * a, beta: 2.0 * b, gamma: -1.0 };
        if complex {
            h.update(c, &b1, &mut b2, None)?;
            device.axpby(&coefficients[k..=k], psi, &one, &mut b2)?;
        } else {
            h.update_plus(c, &b1, &mut b2, &[(coefficients[k].re, psi)])?;
        }
        std::mem::swap(&mut b1, &mut b2);
        progress.advance(coefficients.len() - k)?;
    }
    h.update(Update { alpha: a, beta: b, gamma: -1.0 }, &b1, &mut b2, None)?;
    if let Some(first) = coefficients.first() {
        device.axpby(&[*first], psi, &one, &mut b2)?;
    }
    Ok(b2)
}

/// A Chebyshev series of an operator as an operator: nothing is computed until a vector comes.
struct Polynomial {
    h: Operator,
    series: Expansion,
}

/// The operator f(H) of a series of f; the series' window must hold the spectrum.
///
/// # Errors
/// When `h` is not square.
pub fn polynomial(h: &Operator, series: &Expansion) -> Result<Operator> {
    if h.dim() != h.cols() {
        return Err(Error::input(format!("a function of a {} x {} operator", h.dim(), h.cols())));
    }
    Ok(Polynomial { h: h.clone(), series: series.clone() }.into_operator())
}

impl Action for Polynomial {
    fn like(&self) -> &Operator {
        &self.h
    }

    fn act(&self, v: &BlockVector) -> Result<BlockVector> {
        self.series.apply(&self.h, v, &task::here())
    }

    fn about(&self) -> KernelInfo {
        let KernelInfo { format, bytes, entries } = self.h.info();
        let order = self.series.coefficients.len() - 1;
        let format = format!("polynomial of order {order} of {format}");
        KernelInfo { format, bytes, entries: order * entries }
    }

    fn scalar(&self) -> DType {
        if self.series.is_real() { self.h.dtype() } else { self.h.dtype().to_complex() }
    }
}

impl LinearOperator for Polynomial {
    fn kernel(&self) -> &dyn Kernel {
        self
    }

    fn adjoint(&self) -> Result<Option<Operator>> {
        let coefficients = self.series.coefficients.iter().map(|c| c.conj()).collect();
        polynomial(&self.h.adjoint()?, &Expansion { window: self.series.window, coefficients }).map(Some)
    }

    fn is_hermitian(&self) -> Result<Option<bool>> {
        Ok(Some(self.series.is_real() && self.h.is_hermitian()?))
    }
}
