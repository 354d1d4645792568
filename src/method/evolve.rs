//! exp(-i t H) psi by Chebyshev expansion (Tal-Ezer and Kosloff, J. Chem. Phys. 81 (1984) 3967), for real, imaginary
//! or complex t.
//!
//! With an imaginary time the terms of the series are as large as exp(|Im t| a), a the half width of the window,
//! while the sum may be as small as exp(-|Im t| a): a step loses a factor exp(2 |Im t| a) in relative precision.
//! Steps are so short that this is below two digits. After each step the columns are scaled to norm one, and the
//! logarithms of the norms are added up.

use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::method::{Expansion, Window};
use crate::number::C64;
use crate::number::format::real_or_complex;
use crate::operator::{Operator, TAKE_SIZES};
use crate::task::Task;

/// Largest |Re t| a in one step: expansions of about as many orders reach 1e-14.
const REAL: f64 = 300.0;
/// Largest |Im t| a in one step.
const IMAGINARY: f64 = 2.0;
/// Evolutions of more steps are refused.
const MOST_STEPS: f64 = 1e8;
/// Largest error of a phase (radians) that rounding of the energies may make.
const LOST: f64 = 1e-3;

/// An evolved block: its column k is column k of `psi` times exp(`log_scale[k]`).
pub struct Evolved {
    pub psi: BlockVector,
    /// Logarithms of the factors of the columns; zero for real times.
    pub log_scale: Vec<f64>,
}

impl Evolved {
    /// The columns at norm one, with the logarithms of their norms; minus infinity for a column of zeros.
    ///
    /// # Errors
    /// Those of the device.
    pub fn normalised(mut self, h: &Operator) -> Result<(BlockVector, Vec<f64>)> {
        normalise(h, &mut self)?;
        Ok((self.psi, self.log_scale))
    }

    /// The columns with their factors multiplied in.
    ///
    /// # Errors
    /// A norm beyond the range of double precision.
    pub fn whole(self, h: &Operator) -> Result<BlockVector> {
        if self.log_scale.iter().all(|&x| x == 0.0) {
            return Ok(self.psi);
        }
        let (mut psi, logs) = self.normalised(h)?;
        // The sum of the squares of its entries must be finite, too.
        let most = if psi.dtype().is_single() { 40.0 } else { 345.0 };
        if let Some(log) = logs.iter().find(|log| log.is_finite() && log.abs() > most) {
            return Err(Error::numeric(format!(
                "the evolved state has the norm exp({log:.1}), beyond the range of numbers"
            ))
            .hint("`normalise: true` gives the state at norm one, and the logarithm of the norm"));
        }
        scale(h, &mut psi, &logs.iter().map(|log| C64::new(log.exp(), 0.0)).collect::<Vec<_>>())?;
        Ok(psi)
    }
}

fn scale(h: &Operator, psi: &mut BlockVector, factors: &[C64]) -> Result<()> {
    let copy = psi.clone();
    h.device().axpby(factors, &copy, &[C64::default()], psi)
}

/// Brings all columns to norm one.
fn normalise(h: &Operator, of: &mut Evolved) -> Result<()> {
    let norms = h.device().norms(&of.psi)?;
    if norms.iter().any(|n| !n.is_finite()) {
        return Err(Error::numeric("the evolved state is not finite")
            .hint("the operator or the state may have entries that are not finite"));
    }
    let inverse: Vec<C64> = norms.iter().map(|&n| C64::from(if n > 0.0 { n.recip() } else { 0.0 })).collect();
    scale(h, &mut of.psi, &inverse)?;
    of.log_scale.iter_mut().zip(&norms).for_each(|(log, n)| *log += n.ln());
    Ok(())
}

/// How many steps an evolution over a time takes, under an operator whose energies lie around `middle`,
/// at most `a` away.
///
/// # Errors
/// A time after which the rounding of the energies has turned phases, or that takes too many steps.
pub fn steps_over(t: C64, middle: f64, a: f64) -> Result<f64> {
    let (size, time) = (middle.abs() + a, real_or_complex(t, 6));
    let lost = t.re.abs() * size * f64::EPSILON;
    if !(lost <= LOST) {
        return Err(Error::input(format!(
            "an evolution over the time {time} is too long: the rounding of energies of {size:.1e} changes phases by \
             {lost:.0e}"
        ))
        .hint("take shorter times, or shift the operator to energies around zero; a shift changes all phases equally"));
    }
    let steps = (t.re.abs() * a / REAL).max(t.im.abs() * a / IMAGINARY).ceil().max(1.0);
    if !(steps <= MOST_STEPS) {
        return Err(Error::input(format!("an evolution over the time {time} takes {steps:.0e} steps"))
            .hint("take shorter times"));
    }
    Ok(steps)
}

/// exp(-i t H) psi, column by column; coefficients below `tolerance` of the largest are left out.
///
/// # Errors
/// A time that is not finite or takes too many steps, a spectrum that leaves the window, interruption.
pub fn evolve(
    h: &Operator,
    window: Window,
    psi: &BlockVector,
    t: C64,
    tolerance: f64,
    task: &Task,
) -> Result<Evolved> {
    if !t.is_finite() {
        return Err(Error::input(format!("an evolution over the time {}", real_or_complex(t, 6)))
            .hint("a time is a finite number"));
    }
    if psi.rows().global != h.dim() {
        return Err(Error::input(format!(
            "an evolution of {} under an operator of {} rows",
            psi.shape(),
            h.dim()
        ))
        .hint(TAKE_SIZES));
    }
    // The window of a multiple of the identity has a width of no meaning, and there is nothing to expand.
    let only = match h.limits() {
        Some((low, high)) if low == high && h.is_hermitian()? => Some(low),
        _ => None,
    };
    let (middle, a) = only.map_or((window.center, window.half_width), |energy| (energy, 0.0));
    let steps = steps_over(t, middle, a)?;
    let mut of = Evolved { psi: psi.clone(), log_scale: vec![0.0; psi.columns()] };
    if only.is_none() {
        of = expanded(h, window, of, (t, steps), tolerance, task)?;
    }
    let turns = C64::cis(-t.re * middle);
    if turns != C64::ONE {
        of.psi = h.device().convert(&of.psi, of.psi.dtype().to_complex())?;
        scale(h, &mut of.psi, &[turns])?;
    }
    of.log_scale.iter_mut().for_each(|log| *log += t.im * middle);
    Ok(of)
}

/// `of` after exp(-i t (H - b)), b being the middle of the window, in so many steps.
fn expanded(
    h: &Operator,
    window: Window,
    mut of: Evolved,
    (t, steps): (C64, f64),
    tolerance: f64,
    task: &Task,
) -> Result<Evolved> {
    window.must_hold(h, task)?;
    let dt = t / steps;
    // Expanded about the middle of the window, where the terms are smallest.
    let middle = window.center;
    let series = Expansion::converged(window, tolerance, |energy| {
        Ok((C64::new(dt.im, -dt.re) * (energy - middle)).exp())
    })?;
    if t.im != 0.0 {
        normalise(h, &mut of)?;
    }
    let progress = task.start("time steps", steps as usize);
    for step in 0..steps as usize {
        of.psi = series.apply(h, &of.psi, &task.quiet())?;
        if t.im != 0.0 {
            normalise(h, &mut of)?;
        }
        progress.advance(step + 1)?;
    }
    Ok(of)
}
