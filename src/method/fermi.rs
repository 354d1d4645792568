//! The Fermi function as a Chebyshev series: occupations and correlations of free fermions without levels.

use std::f64::consts::PI;

use crate::error::{Error, Result};
use crate::method::{DampingKernel, Expansion, Window};
use crate::number::C64;

/// The Fermi function, which is a step, 1/2 at the potential, where the temperature is zero.
pub fn fermi(energy: f64, potential: f64, temperature: f64) -> f64 {
    let x = energy - potential;
    if temperature > 0.0 {
        // No exponential overflows to infinity, whichever side the energy lies on.
        let small = (-(x / temperature).abs()).exp();
        if x > 0.0 { small / (1.0 + small) } else { 1.0 / (1.0 + small) }
    } else if x == 0.0 {
        0.5
    } else {
        f64::from(u8::from(x < 0.0))
    }
}

/// The series of the Fermi function `1/(exp((E - potential)/temperature) + 1)` on a window. Above zero temperature it
/// has as many terms as rounding leaves, some 10 a/T with a the half width. A step has no such series: at zero
/// temperature it is that of `terms` terms, damped by the kernel.
///
/// # Errors
/// A potential or a temperature that is none; a temperature too low for the window.
pub fn fermi_series(
    window: Window,
    potential: f64,
    temperature: f64,
    terms: usize,
    kernel: DampingKernel,
) -> Result<Expansion> {
    if !potential.is_finite() {
        return Err(
            Error::input(format!("a chemical potential of {potential}")).hint("look for a division by zero")
        );
    }
    if !(temperature >= 0.0 && temperature.is_finite()) {
        return Err(Error::input(format!("a temperature of {temperature}"))
            .hint("it is an energy, zero or above (k_B = 1)"));
    }
    if temperature > 0.0 {
        return Expansion::converged(window, 1e-14, |energy| {
            Ok(C64::new(fermi(energy, potential, temperature), 0.0))
        })
        .map_err(|e| {
            e.hint(
                "a temperature that is low against the width of the spectrum takes many terms; at zero a \
             kernel bounds them",
            )
        });
    }
    let edge = window.scale(potential).clamp(-1.0, 1.0).acos();
    let coefficient = |(n, g): (usize, f64)| match n {
        0 => C64::new(g * (1.0 - edge / PI), 0.0),
        n => C64::new(-2.0 * g * (n as f64 * edge).sin() / (n as f64 * PI), 0.0),
    };
    let coefficients = kernel.factors(terms).into_iter().enumerate().map(coefficient).collect();
    Ok(Expansion { window, coefficients })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_the_function() {
        let window = Window::from_limits(-3.0, 5.0).unwrap();
        let warm = fermi_series(window, 0.4, 0.3, 2, DampingKernel::Jackson).unwrap();
        for energy in [-2.9, -0.3, 0.4, 0.5, 1.7, 4.9] {
            assert!((warm.at(energy).re - fermi(energy, 0.4, 0.3)).abs() < 1e-12, "{energy}");
        }
        let cold = fermi_series(window, 0.4, 0.0, 2000, DampingKernel::Jackson).unwrap();
        for (energy, f) in [(-2.9, 1.0), (0.3, 1.0), (0.4, 0.5), (0.5, 0.0), (4.9, 0.0)] {
            assert!((cold.at(energy).re - f).abs() < 1e-3, "{energy}: {}", cold.at(energy).re);
        }
        for (potential, f) in [(-9.0, 0.0), (9.0, 1.0)] {
            let all = fermi_series(window, potential, 0.0, 64, DampingKernel::Jackson).unwrap();
            assert!((all.at(0.7).re - f).abs() < 1e-12, "all or none below {potential}");
        }
    }

    #[test]
    fn far_from_the_potential_nothing_overflows() {
        assert!(fermi(1e4, 0.0, 1e-3) == 0.0 && fermi(-1e4, 0.0, 1e-3) == 1.0);
        assert!(fermi(0.0, 0.0, 0.0) == 0.5 && fermi(0.0, 0.0, 1.0) == 0.5);
        assert!((fermi(30.0, 0.0, 1.0) / (-30.0f64).exp() - 1.0).abs() < 1e-12);
    }
}
