//! Green's functions G(z) = <l|(z - H)^-1|r> from Chebyshev moments <l|T_n(H~)|r>.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::method::moments::standard_error;
use crate::method::{DampingKernel, Moments, Window};
use crate::number::{C64, complex};

/// How the series is damped at real energies inside the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Damping {
    /// A kernel, at E + i0 (Weisse et al., RMP 78 (2006) 275, eq. 142).
    Kernel(DampingKernel),
    /// An imaginary part of the energy, which needs no kernel (Ferreira and Mucciolo, PRL 115 (2015) 106601).
    Imaginary(f64),
}

impl Damping {
    /// The imaginary part in units of the window; zero with a kernel.
    fn imaginary(self, window: Window) -> Result<f64> {
        match self {
            Damping::Kernel(_) => Ok(0.0),
            Damping::Imaginary(eta) if eta > 0.0 && eta.is_finite() => Ok(eta / window.half_width),
            Damping::Imaginary(eta) => Err(Error::input(format!("an imaginary part of {eta}"))
                .hint("`eta` is a positive energy, like 0.01")),
        }
    }
}

/// The root sqrt(z^2 - 1), and w = z - root on the branch inside the unit circle: the terms of the series fall as
/// |w|^n.
fn branch(z: C64) -> (C64, C64) {
    // The product keeps the digits that z^2 - 1 loses near the window's ends.
    let root = ((z - 1.0) * (z + 1.0)).sqrt();
    let (minus, plus) = (z - root, z + root);
    // On the circle both roots have modulus one, and the retarded one is taken.
    let retarded = if z.im == 0.0 && z.re.abs() < 1.0 { minus.im < 0.0 } else { minus.norm() < plus.norm() };
    // The inverse of the larger one, which far from the window has digits that the difference loses.
    if retarded { (root, complex::div(C64::ONE, plus)) } else { (-root, complex::div(C64::ONE, minus)) }
}

/// How many moments the series without a kernel needs until the remainder is `tolerance` of the largest possible |G|,
/// and the energy that needs most; (0, NaN) where a kernel damps them all.
pub fn undamped_terms(
    window: Window,
    energies: &[f64],
    damping: Damping,
    tolerance: f64,
) -> Result<(f64, f64)> {
    let eta = damping.imaginary(window)?;
    // The edge itself is an error of `green`.
    let undamped = |energy: &&f64| eta > 0.0 || window.scale(**energy).abs() > 1.0;
    let needed = energies.iter().filter(undamped).map(|&energy| {
        let z = C64::new(window.scale(energy), eta);
        // u = ln(1/|w|) = Re acosh(z), and |z - 1| + |z + 1| = 2 cosh(u). `beyond` is cosh(u) - 1, which keeps the
        // digits of a small u.
        let (near, far) = ((z - 1.0).norm(), (z + 1.0).norm());
        let (x, y) = (z.re, z.im);
        let beyond = if x.abs() > 1.0 {
            (near + far) / 2.0 - 1.0
        } else {
            (y * y / (near + (1.0 - x)) + y * y / (far + (1.0 + x))) / 2.0
        };
        let rate = (beyond + (beyond * (beyond + 2.0)).sqrt()).ln_1p();
        ((2.0 / tolerance).ln() / rate, energy)
    });
    Ok(needed
        .filter(|(n, _)| n.is_finite())
        .fold((0.0, f64::NAN), |most, n| if n.0 > most.0 { n } else { most }))
}

/// The retarded Green's function at `energies`. Outside the window the series converges without damping.
///
/// # Errors
/// An energy on the window's edge, or an imaginary part that is not positive.
pub fn green(window: Window, mu: &[C64], energies: &[f64], damping: Damping) -> Result<Vec<C64>> {
    let eta = damping.imaginary(window)?;
    let factors = match damping {
        Damping::Kernel(kernel) => kernel.factors(mu.len()),
        Damping::Imaginary(_) => Vec::new(),
    };
    energies
        .par_iter()
        .map(|&energy| {
            let z = C64::new(window.scale(energy), eta);
            let damped = eta == 0.0 && z.re.abs() < 1.0;
            let (root, w) = branch(z);
            if !energy.is_finite() || root.norm() == 0.0 {
                return Err(Error::input(format!("energy {energy} on the edge of the window {window}"))
                    .hint("the function is infinite there: take another energy, or a wider window"));
            }
            let mut power = C64::ONE;
            let mut sum = C64::default();
            for (n, mu) in mu.iter().enumerate() {
                let weight = if n == 0 { 1.0 } else { 2.0 } * if damped { factors[n] } else { 1.0 };
                sum += mu * weight * power;
                power *= w;
            }
            // Divided one after the other: the square of a half width may be no number.
            Ok(sum / root / window.half_width)
        })
        .collect()
}

/// The standard errors over the vectors of the real and of the imaginary part of the Green's function; NaN for one
/// vector.
///
/// # Errors
/// As [`green`].
pub fn green_error(mu: &Moments, energies: &[f64], damping: Damping) -> Result<Vec<C64>> {
    let deviations: Vec<Vec<C64>> = mu
        .deviations()
        .map(|d| {
            let d: Vec<C64> = d.into_iter().map(C64::from).collect();
            green(mu.window, &d, energies, damping)
        })
        .collect::<Result<_>>()?;
    let of = |i: usize, part: fn(C64) -> f64| standard_error(deviations.iter().map(|d| part(d[i])));
    Ok((0..energies.len()).map(|i| C64::new(of(i, |z| z.re), of(i, |z| z.im))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain_moments(n: usize, half_width: f64) -> Vec<C64> {
        // Tr T_n(H/a) of the infinite chain by quadrature over momenta, exact for n below the number of them.
        (0..n)
            .map(|m| {
                let points = 4 * n;
                let sum: f64 = (0..points)
                    .map(|j| {
                        let k = 2.0 * std::f64::consts::PI * j as f64 / points as f64;
                        (m as f64 * (-2.0 * k.cos() / half_width).acos()).cos()
                    })
                    .sum();
                C64::new(sum / points as f64, 0.0)
            })
            .collect()
    }

    #[test]
    fn outside_the_band_the_chain_is_exact() {
        let window = Window::from_limits(-2.0, 2.0).expect("a window");
        let mu = chain_moments(128, 2.0);
        let g = green(window, &mu, &[3.0, -3.0], Damping::Kernel(DampingKernel::Lorentz(4.0))).expect("G");
        assert!((g[0] - 1.0 / 5f64.sqrt()).norm() < 1e-12, "{}", g[0]);
        assert!((g[1] + 1.0 / 5f64.sqrt()).norm() < 1e-12, "{}", g[1]);
    }

    #[test]
    fn outside_of_a_narrow_window_no_digits_are_lost() {
        // One level at 2: G = 1/(E - 2 + i eta), from moments that are all one in a window that ends near it.
        let window = Window::from_limits(2.0 - 1e-8, 2.0 + 1e-8).expect("a window");
        let mu: Vec<C64> =
            (0..64).map(|m| C64::new((m as f64 * window.scale(2.0).acos()).cos(), 0.0)).collect();
        for energy in [-3.0, 0.0, 1.9, 2.0, 2.3] {
            let g = green(window, &mu, &[energy], Damping::Imaginary(0.5)).expect("G")[0];
            let exact = 1.0 / C64::new(energy - 2.0, 0.5);
            assert!((g - exact).norm() < 1e-12, "{energy}: {g} for {exact}");
        }
    }

    #[test]
    fn a_complex_energy_is_exact() {
        // G(z) = 1/sqrt(z^2 - 4) for the chain.
        let window = Window::from_limits(-2.5, 2.5).expect("a window");
        let mu = chain_moments(512, 2.5);
        let g = green(window, &mu, &[0.7], Damping::Imaginary(0.3)).expect("G");
        let z = C64::new(0.7, 0.3);
        let exact = 1.0 / ((z - 2.0).sqrt() * (z + 2.0).sqrt());
        assert!((g[0] - exact).norm() < 1e-12, "{} {exact}", g[0]);
    }

    #[test]
    fn its_imaginary_part_is_the_density() {
        let window = Window::from_limits(-2.5, 2.5).expect("a window");
        let mu = chain_moments(2048, 2.5);
        let g = green(window, &mu, &[0.5], Damping::Kernel(DampingKernel::Jackson)).expect("G");
        let exact = 1.0 / (std::f64::consts::PI * (4.0f64 - 0.25).sqrt());
        assert!((-g[0].im / std::f64::consts::PI - exact).abs() < 1e-5);
    }

    #[test]
    fn as_many_terms_as_foretold_meet_the_tolerance() {
        // A single level at -0.3, so that every term counts: G = 1/(z + 0.3).
        let window = Window::from_limits(-2.5, 2.5).expect("a window");
        let phi = window.scale(-0.3).acos();
        let mu = |n: usize| -> Vec<C64> { (0..n).map(|n| C64::new((n as f64 * phi).cos(), 0.0)).collect() };
        for (energy, eta) in [(-0.3, 0.01), (0.4, 0.3), (2.499, 0.003), (2.6, 1e-9), (-2.5, 0.02), (4.0, 0.1)]
        {
            let damping = Damping::Imaginary(eta);
            let (n, at) = undamped_terms(window, &[energy], damping, 1e-8).expect("a number");
            assert_eq!(at, energy);
            let error = |n: f64| {
                let g = green(window, &mu(n as usize), &[energy], damping).expect("G")[0];
                let exact = 1.0 / C64::new(energy + 0.3, eta);
                (g - exact).norm() * (energy.abs() - 2.5).max(0.0).hypot(eta)
            };
            assert!(error(n.ceil()) < 1e-7, "{energy} {eta}: {n} {}", error(n.ceil()));
            assert!(n < 16.0 || error(n / 2.0) > 1e-7, "{energy} {eta}: {n} are too many");
        }
        let kernel = Damping::Kernel(DampingKernel::Jackson);
        assert_eq!(undamped_terms(window, &[0.0, 2.4], kernel, 1e-8).expect("a number").0, 0.0);
        assert!(undamped_terms(window, &[0.0, 2.51], kernel, 1e-8).expect("a number").0 > 100.0);
    }
}
