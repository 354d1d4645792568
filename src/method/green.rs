//! Green's functions G(z) = <l|(z - H)^-1|r> from Chebyshev moments <l|T_n(H~)|r>.

use crate::error::{Error, Result};
use crate::method::{DampingKernel, Window};
use crate::number::C64;

/// What damps the series at real energies inside the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Damping {
    /// A kernel, at E + i0 (Weisse et al., RMP 78 (2006) 275, eq. 142).
    Kernel(DampingKernel),
    /// An imaginary part of the energy, exactly (Ferreira and Mucciolo, PRL 115 (2015) 106601).
    Imaginary(f64),
}

/// The retarded Green's function at `energies`. Outside the window the series converges without damping.
///
/// # Errors
/// An energy on the window's edge, or an imaginary part that is not positive.
pub fn green(window: Window, mu: &[C64], energies: &[f64], damping: Damping) -> Result<Vec<C64>> {
    let (factors, eta) = match damping {
        Damping::Kernel(kernel) => (kernel.factors(mu.len()), 0.0),
        Damping::Imaginary(eta) if eta > 0.0 && eta.is_finite() => (Vec::new(), eta),
        Damping::Imaginary(eta) => {
            return Err(Error::input(format!("an imaginary part of {eta}"))
                .hint("`eta` is a positive energy, like 0.01"));
        }
    };
    energies
        .iter()
        .map(|&energy| {
            let z = C64::new(window.scale(energy), eta / window.half_width);
            let damped = eta == 0.0 && z.re.abs() < 1.0;
            let root = (z * z - 1.0).sqrt();
            // The branch of z - sqrt(z^2 - 1) inside the unit circle; on it, the retarded one.
            let (w, root) = {
                let (minus, plus) = (z - root, z + root);
                let retarded = if damped { minus.im < 0.0 } else { minus.norm() < plus.norm() };
                if retarded { (minus, root) } else { (plus, -root) }
            };
            if !energy.is_finite() || root.norm() == 0.0 {
                return Err(Error::input(format!(
                    "energy {energy} on the edge of the window [{:.6}, {:.6}]",
                    window.lower(),
                    window.upper()
                )));
            }
            let mut power = C64::new(1.0, 0.0);
            let mut sum = C64::default();
            for (n, mu) in mu.iter().enumerate() {
                let weight = if n == 0 { 1.0 } else { 2.0 } * if damped { factors[n] } else { 1.0 };
                sum += mu * weight * power;
                power *= w;
            }
            Ok(sum / (root * window.half_width))
        })
        .collect()
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
}
