//! Functions of an operator by Chebyshev expansion and Clenshaw's recurrence.

use std::sync::Arc;

use rayon::prelude::*;

use crate::backend::{BlockVector, Device, Dots, Rows, Update};
use crate::error::{Error, Result};
use crate::method::Window;
use crate::number::{C64, DType};
use crate::operator::{LinearOperator, Operator, update_by};
use crate::task::Task;

/// A Chebyshev series f(E) = sum_k c_k T_k((E - b)/a); c_0 has no half weight.
#[derive(Debug, Clone)]
pub struct Expansion {
    /// The window of the series.
    pub window: Window,
    /// Coefficients c_0, c_1, ...
    pub coefficients: Vec<C64>,
}

impl Expansion {
    /// Expands a function of energy by Gauss-Chebyshev quadrature on twice as many points as terms.
    pub fn of(window: Window, terms: usize, mut f: impl FnMut(f64) -> Result<C64>) -> Result<Expansion> {
        if terms == 0 || terms > 1 << 24 {
            return Err(Error::input(format!("an expansion of {terms} terms")));
        }
        let points = 2 * terms;
        let step = std::f64::consts::PI / points as f64;
        let value = |j: usize| {
            let energy = window.energy((step * (j as f64 + 0.5)).cos());
            let value = f(energy)?;
            if !value.is_finite() {
                return Err(Error::input(format!("the function is {value} at energy {energy:.6}"))
                    .hint("it must be finite on the whole window"));
            }
            Ok(value)
        };
        let values: Vec<C64> = (0..points).map(value).collect::<Result<_>>()?;
        // cos(pi k (2j + 1)/(2 points)) from one table: the argument matters modulo 4 points.
        let table: Vec<f64> = (0..4 * points).map(|i| (step * 0.5 * i as f64).cos()).collect();
        let coefficients = (0..terms)
            .into_par_iter()
            .map(|k| {
                let sum: C64 =
                    values.iter().enumerate().map(|(j, f)| f * table[k * (2 * j + 1) % (4 * points)]).sum();
                sum * if k == 0 { 1.0 } else { 2.0 } / points as f64
            })
            .collect();
        Ok(Expansion { window, coefficients })
    }

    /// Expands to as many terms as it takes: the last eighth of the coefficients, relative to the largest, lies below
    /// `tolerance`; what lies below it at the end is cut off.
    ///
    /// # Errors
    /// A function that 65536 terms do not reach, as one with a jump.
    pub fn converged(
        window: Window,
        tolerance: f64,
        mut f: impl FnMut(f64) -> Result<C64>,
    ) -> Result<Expansion> {
        if !(tolerance > 0.0) {
            return Err(Error::input(format!("a tolerance of {tolerance}")));
        }
        let mut terms = 32;
        while terms <= 1 << 16 {
            let mut series = Self::of(window, terms, &mut f)?;
            let largest = series.coefficients.iter().map(|c| c.norm()).fold(0.0, f64::max);
            let small = |c: &C64| c.norm() <= tolerance * largest;
            if series.coefficients[terms - terms / 8..].iter().all(small) {
                let last = series.coefficients.iter().rposition(|c| !small(c)).unwrap_or(0);
                series.coefficients.truncate(last + 1);
                return Ok(series);
            }
            terms *= 2;
        }
        Err(Error::numeric(format!(
            "the Chebyshev series of this function does not converge to {tolerance:e}"
        ))
        .hint("smooth the function, or give `terms` for a truncated series"))
    }

    /// The series at an energy.
    pub fn at(&self, energy: f64) -> C64 {
        let x = self.window.scale(energy);
        let (mut b1, mut b2) = (C64::default(), C64::default());
        for c in self.coefficients.iter().skip(1).rev() {
            (b1, b2) = (b1 * (2.0 * x) - b2 + c, b1);
        }
        b1 * x - b2 + self.coefficients.first().copied().unwrap_or_default()
    }

    /// f(H) psi by [`clenshaw`], checked against what |T_k| <= 1 allows: `sum |c_k| |psi|`.
    ///
    /// # Errors
    /// Vectors of another length, a spectrum that leaves the window, or on interruption.
    pub fn apply(&self, h: &Operator, psi: &BlockVector, task: &Task) -> Result<BlockVector> {
        let out = clenshaw(h, self.window, &self.coefficients, psi, task)?;
        let most = self.coefficients.iter().map(|c| c.norm()).sum::<f64>().powi(2);
        let (before, after) = (h.device().dots(psi, psi)?, h.device().dots(&out, &out)?);
        for (a, b) in after.iter().zip(&before).filter(|(_, b)| b.re.is_finite()) {
            self.window.holds(a.re, b.re * most, out.dtype())?;
        }
        Ok(out)
    }

    /// Whether all coefficients are real.
    pub fn is_real(&self) -> bool {
        self.coefficients.iter().all(|c| c.im == 0.0)
    }
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
        )));
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
    let one = [C64::new(1.0, 0.0)];
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
    let node = Polynomial { h: h.clone(), series: series.clone() };
    Ok(Operator::from_node(h.device().clone(), Arc::new(node)).on(h.geometry().cloned()))
}

impl LinearOperator for Polynomial {
    fn rows(&self) -> Rows {
        self.h.rows()
    }

    fn cols(&self) -> usize {
        self.h.cols()
    }

    fn dtype(&self) -> DType {
        if self.series.is_real() { self.h.dtype() } else { self.h.dtype().to_complex() }
    }

    fn update(
        &self,
        device: &Device,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        dots: Option<&mut Dots>,
    ) -> Result<()> {
        let product = self.series.apply(&self.h, v, &Task::default())?;
        update_by(device, c, &product, v, w, dots)
    }

    fn adjoint(&self, _: &Device) -> Result<Operator> {
        let coefficients = self.series.coefficients.iter().map(|c| c.conj()).collect();
        polynomial(&self.h.adjoint()?, &Expansion { window: self.series.window, coefficients })
    }

    fn is_hermitian(&self, _: &Device) -> Result<bool> {
        Ok(self.series.is_real() && self.h.is_hermitian()?)
    }

    fn describe(&self) -> String {
        format!("polynomial of order {} of {}", self.series.coefficients.len() - 1, self.h.node().describe())
    }
}
