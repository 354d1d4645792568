//! The optical conductivity that Kubo's and Greenwood's formula makes of two-dimensional moments.
//!
//! With both deltas as damped series, x and y the scaled energies E and E + omega (hbar = 1) and w_mn the damped moments,
//!
//! sigma(omega) = 4 D/(pi a^2 Omega omega) Int dE [f(E) - f(E + omega)] Re sum w_mn T_m(x) T_n(y)/sqrt((1 - x^2)(1 - y^2)).
//!
//! The integral is one over the angle of x, by points of Gauss and Legendre. A panel ends where the occupation has a step or, at a
//! temperature, changes within its width. One begins where y enters the window: there the integrand grows as a square root, so that
//! the points are those of the root of the distance.

use std::f64::consts::PI;

use rayon::prelude::*;

use super::conductivity::{check_sample, gauss_legendre};
use crate::error::{Error, Result};
use crate::method::moments::standard_error;
use crate::method::{DampingKernel, DoubleMoments};
use crate::number::{C64, memory};
use crate::task;

/// Panels on either side of an energy where the occupation changes, each two temperatures wide: exp(-40) is left out.
const REACH: i32 = 20;

impl DoubleMoments {
    /// The absorptive part of the conductivity at the frequencies `omega` (energies above zero), in e^2/hbar per `volume`, at a
    /// chemical potential and temperature; and its standard error over the vectors (Student's for few, NaN for one).
    ///
    /// # Errors
    /// Frequencies that are not above zero, temperatures below zero, volumes that are none.
    pub fn optical(
        &self,
        omega: &[f64],
        potential: f64,
        temperature: f64,
        volume: f64,
        kernel: DampingKernel,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        if let Some(w) = omega.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
            return Err(Error::input(format!("a frequency of {w}"))
                .hint("frequencies are energies above zero; the conductivity at zero frequency has a formula of its own"));
        }
        check_sample(temperature, volume)?;
        if !potential.is_finite() {
            return Err(
                Error::input(format!("a chemical potential of {potential}")).hint("it is a finite energy")
            );
        }
        let nodes = self.nodes(omega, potential, temperature)?;
        let sigma = |mu: &[C64]| self.absorbed(mu, omega, &nodes, (potential, temperature, volume), kernel);
        let mean = sigma(self.values())?;
        let each: Vec<Vec<f64>> =
            if self.vectors() < 2 { Vec::new() } else { self.of_each().map(sigma).collect::<Result<_>>()? };
        let errors = (0..mean.len()).map(|i| standard_error(each.iter().map(|of| of[i] - mean[i]))).collect();
        Ok((mean, errors))
    }

    /// Angles of x with their weights.
    fn nodes(&self, omega: &[f64], potential: f64, temperature: f64) -> Result<Vec<(f64, f64)>> {
        let (window, n) = (self.window, self.count as f64);
        let angle = |energy: f64| window.scale(energy).clamp(-1.0, 1.0).acos();
        let mut breaks = vec![0.0, PI];
        // Longer panels than this hold more than a period of the highest term.
        let mut longest = PI / n;
        if temperature * n < window.half_width {
            let reach = if temperature > 0.0 { REACH } else { 0 };
            for edge in std::iter::once(potential).chain(omega.iter().map(|w| potential - w)) {
                breaks.extend((-reach..=reach).map(|k| angle(edge + 2.0 * temperature * f64::from(k))));
            }
        } else {
            longest = longest.min(2.0 * temperature / window.half_width);
        }
        let entries: Vec<f64> = omega.iter().map(|w| angle(window.upper() - w)).collect();
        // What the moments resolve at the window's end is much shorter than the period of the highest term.
        breaks.extend(entries.iter().flat_map(|at| [*at, (at + PI / n / 16.0).min(PI)]));
        breaks.sort_unstable_by(f64::total_cmp);
        let rule = gauss_legendre();
        let bytes = 16 * rule.len() * (breaks.len() + (PI / longest) as usize);
        memory::ensure(bytes as u128, "the energies of an optical conductivity")?;
        let mut nodes = Vec::new();
        for pair in breaks.windows(2).filter(|pair| pair[1] > pair[0]) {
            let parts = ((pair[1] - pair[0]) / longest).ceil().max(1.0);
            let half = (pair[1] - pair[0]) / parts / 2.0;
            for part in 0..parts as usize {
                let middle = pair[0] + half * (2 * part + 1) as f64;
                if part == 0 && entries.contains(&pair[0]) {
                    let root = |x: f64| (1.0 + x) / 2.0;
                    nodes.extend(rule.iter().map(|(x, weight)| {
                        (pair[0] + 2.0 * half * root(*x).powi(2), 2.0 * weight * half * root(*x))
                    }));
                } else {
                    nodes.extend(rule.iter().map(|(x, weight)| (middle + half * x, weight * half)));
                }
            }
        }
        Ok(nodes)
    }

    fn absorbed(
        &self,
        mu: &[C64],
        omega: &[f64],
        nodes: &[(f64, f64)],
        (potential, temperature, volume): (f64, f64, f64),
        kernel: DampingKernel,
    ) -> Result<Vec<f64>> {
        let (count, window) = (self.count, self.window);
        let g = kernel.factors(count);
        let weight = |n: usize| g[n] / if n == 0 { 2.0 } else { 1.0 };
        let w: Vec<f64> =
            (0..count * count).map(|i| mu[i].re * weight(i / count) * weight(i % count)).collect();
        let stop = task::current();
        let empty = || vec![0.0; omega.len()];
        let share = |mut sums: Vec<f64>, &(phi, share): &(f64, f64)| -> Result<Vec<f64>> {
            stop.check()?;
            let energy = window.energy(phi.cos());
            let occupied = |e: f64| occupation(e, potential, temperature);
            // sum_m w_mn T_m(x), which serves all frequencies.
            let mut row = vec![0.0; count];
            for (m, of) in w.chunks_exact(count).enumerate() {
                let t = (m as f64 * phi).cos();
                row.iter_mut().zip(of).for_each(|(sum, w)| *sum += t * w);
            }
            for (sums, omega) in sums.chunks_mut(SIDE).zip(omega.chunks(SIDE)) {
                let (mut y, mut factors) = ([0.0; SIDE], [0.0; SIDE]);
                for (k, omega) in omega.iter().enumerate() {
                    let above = window.scale(energy + omega);
                    if above < 1.0 {
                        y[k] = above;
                        factors[k] = (occupied(energy) - occupied(energy + omega)) * inverse(count, y[k]);
                    }
                }
                if factors.iter().any(|factor| *factor != 0.0) {
                    let values = clenshaw(&row, &y);
                    let parts = factors.iter().zip(values).map(|(factor, value)| share * factor * value);
                    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
                }
            }
            Ok(sums)
        };
        let added = |mut a: Vec<f64>, b: Vec<f64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        // Pieces of fixed length, added in order: the same bits for any number of threads.
        let pieces: Vec<Vec<f64>> = nodes
            .par_chunks(256)
            .map(|piece| piece.iter().try_fold(empty(), share))
            .collect::<Result<_>>()?;
        let sums = pieces.into_iter().fold(empty(), added);
        let prefactor = 4.0 / (PI * window.half_width) * self.dim as f64 / volume;
        Ok(sums.iter().zip(omega).map(|(sum, omega)| prefactor * sum / omega).collect())
    }
}

/// Fermi's function.
fn occupation(energy: f64, potential: f64, temperature: f64) -> f64 {
    if temperature == 0.0 {
        return if energy < potential { 1.0 } else { 0.0 };
    }
    1.0 / (((energy - potential) / temperature).exp() + 1.0)
}

/// 1/sqrt(1 - y^2), which comes from a density of states; it is cut off at the distance from the window's end that the moments
/// resolve. (dE takes that of x away.)
fn inverse(count: usize, y: f64) -> f64 {
    let s = (1.0 - y * y).sqrt();
    let ends = (count as f64 * s).powi(2);
    let damped = if ends < 1e-12 { 1.0 } else { -(-ends).exp_m1() / ends };
    s * damped * (count as f64).powi(2)
}

/// Frequencies side by side: each alone would wait for its own sum.
const SIDE: usize = 8;

/// sum c_n T_n(y) for y in [-1, 1].
fn clenshaw(c: &[f64], y: &[f64; SIDE]) -> [f64; SIDE] {
    let (mut b1, mut b2) = ([0.0; SIDE], [0.0; SIDE]);
    for c in c[1..].iter().rev() {
        for k in 0..SIDE {
            (b1[k], b2[k]) = (2.0 * y[k] * b1[k] - b2[k] + c, b1[k]);
        }
    }
    std::array::from_fn(|k| c[0] + y[k] * b1[k] - b2[k])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Window;

    /// Few moments that reach the ends of the window: most of the integral lies where y leaves it.
    #[test]
    fn the_ends_of_the_window_are_integrated_too() {
        let (count, window) = (16, Window { center: 0.3, half_width: 2.5 });
        let values: Vec<C64> = (0..count * count)
            .map(|i| C64::new((1.3 * (i / count) as f64 - 0.7 * (i % count) as f64).sin(), 0.0))
            .collect();
        let mu = DoubleMoments::of_vectors(window, 7, count, vec![values.clone()]).expect("moments");
        let g = DampingKernel::Dirichlet.factors(count);
        for (omega, potential, temperature) in
            [(0.9, 0.5, 0.3), (1.6, 1.9, 0.0), (3.0, 0.1, 2.0), (4.2, 0.0, 0.05)]
        {
            let found = mu
                .optical(&[omega], potential, temperature, 1.0, DampingKernel::Dirichlet)
                .expect("numbers")
                .0[0];
            // Midpoints of the root of the distance from the angle where y leaves the window.
            let (first, points) = (window.scale(window.upper() - omega).acos(), 200_000);
            let sum: f64 = (0..points)
                .map(|k| {
                    let root = (f64::from(k) + 0.5) / f64::from(points);
                    let phi = first + (PI - first) * root * root;
                    let energy = window.energy(phi.cos());
                    let y = window.scale(energy + omega).min(1.0);
                    let s2 = 1.0 - y * y;
                    let ends = (count * count) as f64 * s2;
                    let mut series = 0.0;
                    for m in 0..count {
                        for n in 0..count {
                            let halves = if m == 0 { 0.5 } else { 1.0 } * if n == 0 { 0.5 } else { 1.0 };
                            series += halves
                                * g[m]
                                * g[n]
                                * values[m * count + n].re
                                * (m as f64 * phi).cos()
                                * (n as f64 * y.acos()).cos();
                        }
                    }
                    let f = |e: f64| occupation(e, potential, temperature);
                    let damped = if s2 > 0.0 { -(-ends).exp_m1() / s2.sqrt() } else { 0.0 };
                    (f(energy) - f(energy + omega)) * series * damped * 2.0 * (PI - first) * root
                        / f64::from(points)
                })
                .sum();
            let exact = 4.0 * 7.0 / (PI * window.half_width * omega) * sum;
            assert!(
                (found - exact).abs() < 1e-5 * exact.abs().max(1.0),
                "{omega} {temperature}: {found} {exact}"
            );
        }
    }
}
