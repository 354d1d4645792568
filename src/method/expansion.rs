//! Functions of an operator by Chebyshev expansion and Clenshaw's recurrence.

use crate::backend::{BlockVector, Update};
use crate::error::{Error, Result};
use crate::method::Window;
use crate::number::C64;
use crate::operator::Operator;
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
        let values: Vec<C64> =
            (0..points).map(|j| f(window.energy((step * (j as f64 + 0.5)).cos()))).collect::<Result<_>>()?;
        let coefficients = (0..terms)
            .map(|k| {
                let sum: C64 = values
                    .iter()
                    .enumerate()
                    .map(|(j, f)| f * (step * k as f64 * (j as f64 + 0.5)).cos())
                    .sum();
                sum * if k == 0 { 1.0 } else { 2.0 } / points as f64
            })
            .collect();
        Ok(Expansion { window, coefficients })
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
        h.update(Update { alpha: 2.0 * a, beta: 2.0 * b, gamma: -1.0 }, &b1, &mut b2, None)?;
        device.axpby(&coefficients[k..=k], psi, &one, &mut b2)?;
        std::mem::swap(&mut b1, &mut b2);
        progress.advance(coefficients.len() - k)?;
    }
    h.update(Update { alpha: a, beta: b, gamma: -1.0 }, &b1, &mut b2, None)?;
    if let Some(first) = coefficients.first() {
        device.axpby(&[*first], psi, &one, &mut b2)?;
    }
    Ok(b2)
}
