//! The DC conductivity by the Kubo-Bastin formula from two-dimensional moments (Garcia, Covaci, Rappoport, PRL 114
//! (2015) 116602), with its integral over energies in closed form.
//!
//! With x = cos(phi), w_mn the damped moments and U_n the Chebyshev polynomials of the second kind, the integrand of
//! their eqs. (2) and (3) is a sum of two parts:
//! - d/dx [S/(1 - x^2)] with S = Re sum w_mn T_m T_n, of the states at the chemical potential (Fermi surface): its
//!   integral is the Kubo-Greenwood formula;
//! - Q = sum Im w_mn (T_m U'_(n-1) - U'_(m-1) T_n), of all states below (Fermi sea): a polynomial.
//!
//! A quadrature would include S/(1 - x^2) at the lower end of the window. No level lies there, but a kernel leaves S
//! above zero, so the sum would grow without bound with the number of points.

use std::f64::consts::PI;

use super::fermi::fermi;
use super::kernel::beside_edge;
use crate::error::{Error, Result};
use crate::method::moments::standard_error;
use crate::method::{DampingKernel, DoubleMoments, Window};
use crate::number::C64;
use crate::task::{self, Interrupt, parallel};

/// Gauss-Legendre points in a panel. A panel holds at most one period of the highest cosine.
const NODES: usize = 12;

/// Panels on either side of the chemical potential, each two temperatures wide. Farther out -df/dE has fallen by
/// exp(-40) and is left out.
const REACH: i32 = 20;

impl DoubleMoments {
    /// The Kubo-Bastin conductivity at the chemical potentials `potentials` and `temperature` (both energies), in
    /// units of e^2/h per `volume`, and its standard error over the vectors (Student's for few, NaN for one). With
    /// A = v_alpha and B = v_beta, eqs. (2) and (3) of the paper:
    /// sigma = i hbar e^2/Omega Int f(E) Tr[v_alpha delta(E - H) v_beta dG+/dE - v_alpha dG-/dE v_beta delta(E - H)].
    pub fn conductivity(
        &self,
        potentials: &[f64],
        temperature: f64,
        volume: f64,
        kernel: DampingKernel,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        check_sample(temperature, volume)?;
        if let Some(mu) = potentials.iter().find(|mu| !mu.is_finite()) {
            return Err(Error::input(format!("a chemical potential of {mu}")).hint("it is a finite energy"));
        }
        let a = self.window.half_width;
        if !(a * a).is_normal() {
            return Err(Error::input(format!("a conductivity of moments in the window {}", self.window))
                .hint("squares of its energies exceed the range of numbers: take another unit of energy"));
        }
        let prefactor = 8.0 / (a * a) * self.dim as f64 / volume;
        let sigma = |mu: &[C64]| -> Result<Vec<f64>> {
            let mut sigma = self.without_prefactor(mu, potentials, temperature, kernel)?;
            sigma.iter_mut().for_each(|x| *x *= prefactor);
            Ok(sigma)
        };
        // The conductivity is linear in the moments: the mean over the vectors may be taken before or after.
        let each: Vec<Vec<f64>> = self.of_each().map(sigma).collect::<Result<_>>()?;
        let mean: Vec<f64> = (0..potentials.len())
            .map(|i| each.iter().map(|of| of[i]).sum::<f64>() / each.len() as f64)
            .collect();
        let several = if each.len() < 2 { &[] } else { &each[..] };
        let errors =
            (0..mean.len()).map(|i| standard_error(several.iter().map(|of| of[i] - mean[i]))).collect();
        Ok((mean, errors))
    }

    fn without_prefactor(
        &self,
        mu: &[C64],
        potentials: &[f64],
        temperature: f64,
        kernel: DampingKernel,
    ) -> Result<Vec<f64>> {
        let a = self.window.half_width;
        let stop = task::current();
        let at_each = |f: &(dyn Fn(f64) -> f64 + Sync)| {
            parallel::try_map(potentials.len(), |i| stop.check().map(|()| f(potentials[i])))
        };
        let cold = ZeroTemperature::new(self.window, self.count, mu, kernel);
        // A temperature far below the resolution of the moments changes nothing.
        if temperature < 1e-8 * a {
            at_each(&|mu| cold.at_energy(mu))
        } else if 2.0 * temperature > a * PI / self.count as f64 {
            let nodes = cold.nodes(&[0.0, PI]);
            at_each(&|mu| cold.average(&nodes, mu, temperature))
        } else {
            let near = |mu: f64| {
                let breaks: Vec<f64> = (-REACH..=REACH)
                    .rev()
                    .map(|k| cold.angle(mu + 2.0 * temperature * f64::from(k)))
                    .collect();
                cold.average(&cold.nodes(&breaks), mu, temperature)
            };
            at_each(&near)
        }
    }
}

/// Refuses what is no temperature (an energy) or no volume.
pub(super) fn check_sample(temperature: f64, volume: f64) -> Result<()> {
    if volume > 0.0 && temperature >= 0.0 && temperature.is_finite() {
        return Ok(());
    }
    Err(Error::input(format!("a conductivity at temperature {temperature} in volume {volume}"))
        .hint("`temperature` is an energy of zero or more, `volume` is `h.volume`"))
}

/// The conductivity at zero temperature as a function of the chemical potential, without its prefactor.
struct ZeroTemperature {
    window: Window,
    count: usize,
    /// S = sum s_k cos(k phi).
    surface: Vec<f64>,
    /// q_0, then q_k / k for k > 0, of Q = sum q_k cos(k phi): the coefficients of its integral over phi.
    sea: Vec<f64>,
    stop: Interrupt,
}

impl ZeroTemperature {
    fn new(window: Window, count: usize, mu: &[C64], kernel: DampingKernel) -> ZeroTemperature {
        let g = kernel.factors(count);
        let weight = |n: usize| g[n] / if n == 0 { 2.0 } else { 1.0 };
        let damped = |m: usize, n: usize| mu[m * count + n] * (weight(m) * weight(n));
        let (mut surface, mut sea) = (vec![0.0; 2 * count], vec![0.0; 2 * count]);
        // T_m T_n = (T_(m+n) + T_|m-n|)/2.
        let add = |to: &mut [f64], m: usize, n: usize, value: f64| {
            to[m + n] += value / 2.0;
            to[m.abs_diff(n)] += value / 2.0;
        };
        let stop = task::current();
        for m in 0..count {
            stop.heed();
            let odd: Vec<f64> = (0..count).map(|n| damped(m, n).im - damped(n, m).im).collect();
            for (n, slope) in slopes(&odd).into_iter().enumerate() {
                add(&mut sea, m, n, slope);
            }
            for n in 0..count {
                add(&mut surface, m, n, damped(m, n).re);
            }
        }
        sea.iter_mut().enumerate().skip(1).for_each(|(k, q)| *q /= k as f64);
        ZeroTemperature { window, count, surface, sea, stop }
    }

    /// phi = arccos(x) of an energy. An energy outside the window counts as the nearer end.
    fn angle(&self, energy: f64) -> f64 {
        self.window.scale(energy).clamp(-1.0, 1.0).acos()
    }

    /// At a chemical potential: zero below the window, the contribution of all states above it.
    fn at_energy(&self, mu: f64) -> f64 {
        let x = self.window.scale(mu);
        if x <= -1.0 {
            0.0
        } else if x >= 1.0 {
            self.all()
        } else {
            self.at(x.acos())
        }
    }

    fn all(&self) -> f64 {
        PI * self.sea[0]
    }

    fn at(&self, phi: f64) -> f64 {
        self.at_each([phi])[0]
    }

    /// At several angles side by side: each recurrence alone would wait for its own products.
    fn at_each<const N: usize>(&self, phi: [f64; N]) -> [f64; N] {
        let (mut s, mut c) = ([0.0; N], [0.0; N]);
        for l in 0..N {
            (s[l], c[l]) = phi[l].sin_cos();
        }
        // Clenshaw's recurrence, of cosines and of sines.
        let (mut a1, mut a2, mut b1, mut b2) = ([0.0; N], [0.0; N], [0.0; N], [0.0; N]);
        for (surface, sea) in self.surface[1..].iter().zip(&self.sea[1..]).rev() {
            for l in 0..N {
                (a1[l], a2[l]) = (2.0 * c[l] * a1[l] - a2[l] + surface, a1[l]);
                (b1[l], b2[l]) = (2.0 * c[l] * b1[l] - b2[l] + sea, b1[l]);
            }
        }
        let mut values = [0.0; N];
        for l in 0..N {
            let below = self.sea[0] * (PI - phi[l]) - s[l] * b1[l];
            values[l] = (self.surface[0] + c[l] * a1[l] - a2[l]) * beside_edge(self.count, s[l]) + below;
        }
        values
    }

    /// Quadrature points between ascending angles: energy, weight in an integral over energy, conductivity there.
    fn nodes(&self, breaks: &[f64]) -> Vec<(f64, f64, f64)> {
        let rule = gauss_legendre();
        let mut nodes = Vec::new();
        for pair in breaks.windows(2).filter(|pair| pair[1] > pair[0]) {
            let parts = ((pair[1] - pair[0]) * self.count as f64 / PI).ceil().max(1.0);
            let half = (pair[1] - pair[0]) / parts / 2.0;
            for part in 0..parts as usize {
                self.stop.heed();
                let middle = pair[0] + half * (2 * part + 1) as f64;
                for some in rule.chunks(NODES / 2) {
                    let phi: [f64; NODES / 2] = std::array::from_fn(|k| middle + half * some[k].0);
                    let values = phi.iter().zip(self.at_each(phi)).zip(some);
                    nodes.extend(values.map(|((phi, sigma), (_, weight))| {
                        let wide = weight * half * phi.sin() * self.window.half_width;
                        (self.window.energy(phi.cos()), wide, sigma)
                    }));
                }
            }
        }
        nodes
    }

    /// The conductivity at a temperature: sigma(E) averaged with -df/dE, f the Fermi function.
    fn average(&self, nodes: &[(f64, f64, f64)], mu: f64, temperature: f64) -> f64 {
        let inside: f64 = nodes
            .iter()
            .map(|(energy, weight, sigma)| {
                let half = ((energy - mu) / temperature / 2.0).cosh();
                weight * sigma / (4.0 * temperature * half * half)
            })
            .sum();
        inside + fermi(self.window.upper(), mu, temperature) * self.all()
    }
}

/// The coefficients of T_k in sum b_n U'_(n-1).
fn slopes(b: &[f64]) -> Vec<f64> {
    let count = b.len();
    // U_j = 2 (T_j + T_(j-2) + ...), where T_0 counts half; then (sum t_k T_k)' the same way.
    let mut t = vec![0.0; count + 2];
    for k in (0..count.saturating_sub(1)).rev() {
        t[k] = t[k + 2] + b[k + 1];
    }
    let mut slope = vec![0.0; count + 2];
    for k in (1..count).rev() {
        slope[k - 1] = slope[k + 1] + 4.0 * k as f64 * t[k];
    }
    slope[0] /= 2.0;
    slope.truncate(count);
    slope
}

/// The points of Gauss and Legendre on [-1, 1] with their weights.
pub(super) fn gauss_legendre() -> [(f64, f64); NODES] {
    std::array::from_fn(|i| {
        let n = NODES as f64;
        let mut x = (PI * (i as f64 + 0.75) / (n + 0.5)).cos();
        let mut slope = 0.0;
        // Newton's steps: three more than it takes.
        for _ in 0..8 {
            let (mut p, mut before) = (x, 1.0);
            for k in 2..=NODES {
                let k = k as f64;
                (p, before) = (((2.0 * k - 1.0) * x * p - (k - 1.0) * before) / k, p);
            }
            slope = n * (x * p - before) / (x * x - 1.0);
            x -= p / slope;
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(count: usize) -> DoubleMoments {
        // Moments of no operator: the identities hold for any numbers.
        let values: Vec<C64> = (0..count * count)
            .map(|i| {
                let (m, n) = ((i / count) as f64, (i % count) as f64);
                C64::new((1.3 * m - 0.7 * n).sin(), (0.9 * m + 0.4 * n * n).cos())
            })
            .collect();
        DoubleMoments::of_vectors(Window { center: 0.3, half_width: 2.5 }, 7, count, vec![values])
            .expect("moments")
    }

    /// The integrand as the paper writes it, against phi.
    fn integrand(mu: &DoubleMoments, kernel: DampingKernel, phi: f64) -> f64 {
        let g = kernel.factors(mu.count);
        let (s, x) = phi.sin_cos();
        let gamma =
            |n: usize| C64::new(x, n as f64 * s) * C64::from_polar(1.0, -(n as f64) * phi) / s.powi(3);
        let mut sum = C64::default();
        for m in 0..mu.count {
            for n in 0..mu.count {
                let halves = if m == 0 { 0.5 } else { 1.0 } * if n == 0 { 0.5 } else { 1.0 };
                let (tm, tn) = ((m as f64 * phi).cos(), (n as f64 * phi).cos());
                let term = gamma(n) * tm + gamma(m).conj() * tn;
                sum += mu.values()[m * mu.count + n] * (g[m] * g[n] * halves) * term;
            }
        }
        sum.re
    }

    #[test]
    fn the_closed_form_is_the_integral_between_two_energies() {
        let mu = moments(9);
        for kernel in [DampingKernel::Jackson, DampingKernel::Dirichlet] {
            let cold = ZeroTemperature {
                count: 1000,
                ..ZeroTemperature::new(mu.window, mu.count, mu.values(), kernel)
            };
            let (low, high) = (2.4, 0.5);
            let points = 20_000;
            let width = (low - high) / f64::from(points);
            let sum: f64 = (0..points)
                .map(|j| integrand(&mu, kernel, high + width * (f64::from(j) + 0.5)) * width)
                .sum();
            let closed = cold.at(high) - cold.at(low);
            assert!((sum - closed).abs() < 1e-5 * closed.abs().max(1.0), "{sum} {closed}");
        }
    }

    #[test]
    fn the_ends_of_the_window_are_finite() {
        let mu = moments(16);
        let (lower, upper) = (mu.window.lower(), mu.window.upper());
        let at = [lower, lower + 1e-14, upper - 1e-14, upper, upper + 1.0, lower - 1.0];
        for temperature in [0.0, 1e-7, 0.01, 1.0, 100.0] {
            let (sigma, error) =
                mu.conductivity(&at, temperature, 1.0, DampingKernel::Jackson).expect("numbers");
            assert!(error.iter().all(|x| x.is_nan()), "one vector has no error");
            assert!(sigma.iter().all(|x| x.is_finite() && x.abs() < 1e6), "{temperature}: {sigma:?}");
        }
    }

    #[test]
    fn low_temperatures_join_those_above_and_below() {
        let mu = moments(24);
        let at = [-1.9, -0.2, 0.3, 1.7];
        let sigma = |t: f64| mu.conductivity(&at, t, 1.0, DampingKernel::Jackson).expect("numbers").0;
        let edge = 2.5 * PI / 24.0 / 2.0;
        for (one, other) in [(0.0, 1e-6), (0.99e-8 * 2.5, 1.01e-8 * 2.5), (edge * (1.0 - 1e-12), edge)] {
            for (x, y) in sigma(one).iter().zip(sigma(other * (1.0 + 1e-12))) {
                assert!((x - y).abs() < 1e-8 * x.abs().max(1.0), "{one} {other}: {x} {y}");
            }
        }
    }

    #[test]
    fn points_of_gauss_and_legendre_integrate_powers() {
        for power in [0, 2, 10, 22] {
            let sum: f64 = gauss_legendre().iter().map(|(x, w)| w * x.powi(power)).sum();
            assert!((sum - 2.0 / f64::from(power + 1)).abs() < 1e-14, "{power}: {sum}");
        }
    }
}
