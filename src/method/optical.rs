//! The optical conductivity by the Kubo-Greenwood formula from two-dimensional moments.
//!
//! With both deltas as damped series, x and y the scaled energies E and E + omega (hbar = 1) and w_mn the damped
//! moments,
//!
//! sigma(omega) = 4 D/(pi a^2 Omega omega) Int dE [f(E) - f(E + omega)] Re sum w_mn T_m(x) T_n(y)/sqrt((1 - x^2)(1 -
//! y^2)).
//!
//! The integral over the angle of x is computed by Gauss-Legendre quadrature in panels of at most half a period of the
//! highest term. sum_m w_mn T_m(x) at the quadrature points is the same for all frequencies. Each frequency has further
//! break points: where y enters the window, with a square-root integrand, and at the second step of the occupation. A
//! panel with a break point is cut for this frequency only; there the sums over m are interpolated by the polynomial
//! through the points of the panel.

use std::f64::consts::PI;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::conductivity::{check_sample, gauss_legendre};
use super::fermi::fermi;
use super::kernel::beside_edge;
use crate::error::{Error, Result};
use crate::method::barycentric::shares;
use crate::method::moments::standard_error;
use crate::method::{DampingKernel, DoubleMoments, Window};
use crate::number::{C64, memory};
use crate::task;

/// Angles from where y enters the window within which T_n(y) turns more than four times as fast as T_n(x).
const FAST: f64 = 1.0 / 32.0;

/// Vectors, or averages of vectors, that an error is taken from at most.
const MOST_COMPARED: usize = 32;

/// Panels whose shares one thread adds.
const PIECE: usize = 16;

/// Panels on either side of an energy where the occupation changes, each two temperatures wide: exp(-40) is left out.
const REACH: i32 = 20;

impl DoubleMoments {
    /// The absorptive part of the conductivity at the frequencies `omega` (energies above zero), in e^2/h per `volume`,
    /// at a chemical potential and temperature.
    ///
    /// # Errors
    /// Frequencies that are not above zero, temperatures below zero, volumes that are none.
    pub fn optical(&self, omega: &[f64], at: &OpticalConditions) -> Result<Vec<f64>> {
        let panels = self.checked(omega, at)?;
        self.absorbed(self.values(), omega, &panels, at)
    }

    /// Its standard error over the vectors (Student's for few, NaN for one). Of many vectors,
    /// averages of neighbours are compared.
    ///
    /// # Errors
    /// As [`DoubleMoments::optical`].
    pub fn optical_error(&self, omega: &[f64], at: &OpticalConditions) -> Result<Vec<f64>> {
        let panels = self.checked(omega, at)?;
        if self.vectors() < 2 {
            return Ok(vec![f64::NAN; omega.len()]);
        }
        let sigma = |mu: &[C64]| self.absorbed(mu, omega, &panels, at);
        let mean = sigma(self.values())?;
        let columns: Vec<&[C64]> = self.of_each().collect();
        let groups = columns.chunks(columns.len().div_ceil(MOST_COMPARED));
        let (number, all) = (groups.len() as f64, columns.len() as f64);
        let of = |group: &[&[C64]]| -> Result<Vec<f64>> {
            let size = group.len() as f64;
            // Averages of fewer vectors differ by more.
            let scale = (size * number / all).sqrt();
            let found = match group {
                [one] => sigma(one)?,
                _ => {
                    let average = |i: usize| group.iter().map(|of| of[i]).sum::<C64>() / size;
                    sigma(&(0..group[0].len()).map(average).collect::<Vec<C64>>())?
                }
            };
            Ok(found.iter().zip(&mean).map(|(x, mean)| scale * (x - mean)).collect())
        };
        let off = groups.map(of).collect::<Result<Vec<_>>>()?;
        Ok((0..mean.len()).map(|i| standard_error(off.iter().map(|of| of[i]))).collect())
    }

    /// The panels of frequencies that can be.
    fn checked(&self, omega: &[f64], at: &OpticalConditions) -> Result<Vec<f64>> {
        if let Some(w) = omega.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
            return Err(Error::input(format!("a frequency of {w}"))
                .hint("frequencies are energies above zero; the conductivity at zero frequency has a formula of its \
                     own"));
        }
        check_sample(at.temperature, at.volume)?;
        if !at.potential.is_finite() {
            return Err(Error::input(format!("a chemical potential of {}", at.potential))
                .hint("it is a finite energy"));
        }
        self.panels(omega.len(), at.potential, at.temperature)
    }

    /// The ends of the panels that all frequencies have in common, ascending angles.
    fn panels(&self, frequencies: usize, potential: f64, temperature: f64) -> Result<Vec<f64>> {
        let (window, n) = (self.window, self.count as f64);
        let mut longest = PI / n;
        let mut breaks = vec![0.0, PI];
        if temperature * n < window.half_width {
            breaks.extend(steps(window, potential, temperature));
        } else {
            longest = longest.min(2.0 * temperature / window.half_width);
        }
        breaks.sort_unstable_by(f64::total_cmp);
        // Pieces have a sum for each frequency.
        let bytes = 8.0 * (PI / longest + breaks.len() as f64) * (1.0 + frequencies as f64 / PIECE as f64);
        memory::ensure(bytes as u128, "the energies of an optical conductivity")?;
        let mut panels = vec![0.0];
        for pair in breaks.windows(2).filter(|pair| pair[1] > pair[0]) {
            let parts = ((pair[1] - pair[0]) / longest).ceil().max(1.0);
            panels.extend(
                (1..=parts as usize).map(|part| pair[0] + (pair[1] - pair[0]) * (part as f64 / parts)),
            );
        }
        Ok(panels)
    }

    fn absorbed(
        &self,
        mu: &[C64],
        omega: &[f64],
        panels: &[f64],
        at: &OpticalConditions,
    ) -> Result<Vec<f64>> {
        let (count, window) = (self.count, self.window);
        let g = at.kernel.factors(count);
        let weight = |n: usize| g[n] / if n == 0 { 2.0 } else { 1.0 };
        let w: Vec<f64> =
            (0..count * count).map(|i| mu[i].re * weight(i / count) * weight(i % count)).collect();
        let own: Vec<OwnPanels> =
            omega.iter().map(|omega| OwnPanels::new(window, *omega, count, at)).collect();
        let rule = gauss_legendre();
        let through = Interpolation::new(&rule);
        // The scaled energy after absorption and what stands beside the series there, zero outside the window.
        let beside = |phi: f64, omega: f64| {
            let energy = window.energy(phi.cos());
            let y = window.scale(energy + omega);
            match y < 1.0 {
                true => (y, at.moved(energy, omega) * inverse(count, y)),
                false => (0.0, 0.0),
            }
        };
        let stop = task::current();
        let empty = || vec![0.0; omega.len()];
        let share = |mut sums: Vec<f64>, ends: &[f64]| -> Result<Vec<f64>> {
            stop.check()?;
            let (middle, half) = ((ends[0] + ends[1]) / 2.0, (ends[1] - ends[0]) / 2.0);
            // sum_m w_mn T_m(x) at the points, a row each.
            let mut t_of_x = Vec::with_capacity(rule.len() * count);
            for (x, _) in &rule {
                t_of_x.extend((0..count).map(|m| (m as f64 * (middle + half * x)).cos()));
            }
            let mut rows = vec![0.0; rule.len() * count];
            product(&t_of_x, &w, &mut rows, count);
            let whole: Vec<bool> = own.iter().map(|own| own.ends_in(ends).is_empty()).collect();
            for ((sums, omega), whole) in
                sums.chunks_mut(SIDE).zip(omega.chunks(SIDE)).zip(whole.chunks(SIDE))
            {
                for ((x, weight), row) in rule.iter().zip(rows.chunks_exact(count)) {
                    let (mut y, mut factors) = ([0.0; SIDE], [0.0; SIDE]);
                    for k in (0..omega.len()).filter(|&k| whole[k]) {
                        (y[k], factors[k]) = beside(middle + half * x, omega[k]);
                    }
                    if factors.iter().any(|factor| *factor != 0.0) {
                        let values = clenshaw(row, &y);
                        let parts =
                            factors.iter().zip(values).map(|(factor, value)| weight * half * factor * value);
                        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
                    }
                }
            }
            let mut t = vec![[0.0; SIDE]; count];
            for k in (0..omega.len()).filter(|&k| !whole[k]) {
                for points in own[k].points(ends, &rule) {
                    for points in points.chunks(SIDE) {
                        let (mut y, mut factors) = ([0.0; SIDE], [0.0; SIDE]);
                        for (i, (phi, _)) in points.iter().enumerate() {
                            (y[i], factors[i]) = beside(*phi, omega[k]);
                        }
                        if factors.iter().all(|factor| *factor == 0.0) {
                            continue;
                        }
                        polynomials(&y, &mut t);
                        let mut values = vec![[0.0; SIDE]; rule.len()];
                        product(&rows, t.as_flattened(), values.as_flattened_mut(), count);
                        for (i, (phi, weight)) in points.iter().enumerate() {
                            let shares = through.at((phi - middle) / half);
                            let value: f64 =
                                shares.iter().zip(&values).map(|(l, values)| l * values[i]).sum();
                            sums[k] += weight * factors[i] * value;
                        }
                    }
                }
            }
            Ok(sums)
        };
        let added = |mut a: Vec<f64>, b: Vec<f64>| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        };
        // Pieces of fixed length, added in order: the same bits for any number of threads.
        let panels: Vec<&[f64]> = panels.windows(2).collect();
        let pieces: Vec<Vec<f64>> = panels
            .par_chunks(PIECE)
            .map(|piece| piece.iter().copied().try_fold(empty(), share))
            .collect::<Result<_>>()?;
        let sums = pieces.into_iter().fold(empty(), added);
        let prefactor = 8.0 / window.half_width * self.dim as f64 / at.volume;
        Ok(sums.iter().zip(omega).map(|(sum, omega)| prefactor * sum / omega).collect())
    }
}

/// What a conductivity is of.
#[derive(Debug, Clone, Copy)]
pub struct OpticalConditions {
    /// The chemical potential.
    pub potential: f64,
    /// In energy (k_B = 1).
    pub temperature: f64,
    /// What the sample measures, in cells say.
    pub volume: f64,
    /// What the moments are damped by.
    pub kernel: DampingKernel,
}

impl OpticalConditions {
    /// What absorption moves, f(E) - f(E + omega) as f(E) (1 - f(E + omega)) (1 - exp(-omega/T)): never the difference
    /// of two numbers that are nearly the same.
    fn moved(&self, energy: f64, omega: f64) -> f64 {
        let empty = fermi(-energy - omega, -self.potential, self.temperature);
        fermi(energy, self.potential, self.temperature) * empty * -(-omega / self.temperature).exp_m1()
    }
}

/// The angle of an energy, that of the window's end beyond it.
fn angle(window: Window, energy: f64) -> f64 {
    window.scale(energy).clamp(-1.0, 1.0).acos()
}

/// Angles around an energy where the occupation changes: a panel is two temperatures wide.
fn steps(window: Window, edge: f64, temperature: f64) -> impl Iterator<Item = f64> {
    let reach = if temperature > 0.0 { REACH } else { 0 };
    (-reach..=reach).map(move |k| angle(window, edge + 2.0 * temperature * f64::from(k)))
}

/// Where the panels of one frequency end besides those of all.
struct OwnPanels {
    /// The angle at which y enters the window.
    entry: f64,
    /// Ascending, the entry first.
    ends: Vec<f64>,
}

impl OwnPanels {
    fn new(window: Window, omega: f64, count: usize, at: &OpticalConditions) -> OwnPanels {
        let entry = angle(window, window.upper() - omega);
        // T_n(y) turns with the root of the distance from the entry, faster than T_n(x) as long as that is small.
        let root = |k: usize| 4.0 * k as f64 / count as f64;
        let mut ends: Vec<f64> =
            (0..).map(|k| root(k).powi(2)).take_while(|d| *d < FAST).map(|d| entry + d).collect();
        ends.push(entry + FAST);
        if at.temperature * (count as f64) < window.half_width {
            ends.extend(steps(window, at.potential - omega, at.temperature).filter(|end| *end > entry));
        }
        ends.sort_unstable_by(f64::total_cmp);
        ends.dedup();
        OwnPanels { entry, ends }
    }

    /// The ends from the lower end of a panel to below its upper one.
    fn ends_in(&self, panel: &[f64]) -> &[f64] {
        let before = |angle: f64| self.ends.partition_point(|end| *end < angle);
        &self.ends[before(panel[0])..before(panel[1])]
    }

    /// The points of the panels into which the ends cut one, with their weights.
    fn points<'a>(
        &'a self,
        panel: &'a [f64],
        rule: &'a [(f64, f64)],
    ) -> impl Iterator<Item = Vec<(f64, f64)>> + 'a {
        let inner = self.ends_in(panel);
        let first = panel[0].max(self.entry);
        let ends: Vec<f64> = std::iter::once(first).chain(inner.iter().copied()).chain([panel[1]]).collect();
        (1..ends.len()).map(move |i| (ends[i - 1], ends[i])).filter(|(low, high)| high > low).map(
            move |(low, high)| {
                let (from, to) = ((low - self.entry).sqrt(), (high - self.entry).sqrt());
                let point = |(x, weight): &(f64, f64)| {
                    if high <= self.entry + FAST {
                        let root = from + (to - from) * (1.0 + x) / 2.0;
                        return (self.entry + root * root, weight * (to - from) * root);
                    }
                    ((low + high + (high - low) * x) / 2.0, weight * (high - low) / 2.0)
                };
                rule.iter().map(point).collect()
            },
        )
    }
}

/// The polynomial through values at the points of a rule.
struct Interpolation {
    points: Vec<f64>,
    weights: Vec<f64>,
}

impl Interpolation {
    fn new(rule: &[(f64, f64)]) -> Interpolation {
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        Interpolation {
            points: rule.iter().map(|(x, _)| *x).collect(),
            weights: rule
                .iter()
                .enumerate()
                .map(|(i, (x, w))| sign(i) * ((1.0 - x * x) * w).sqrt())
                .collect(),
        }
    }

    /// The factors of the values.
    fn at(&self, x: f64) -> Vec<f64> {
        let mut factors = vec![0.0; self.points.len()];
        let sum = shares(&self.points, &self.weights, x, |i, share| factors[i] = share);
        factors.iter_mut().for_each(|factor| *factor /= sum);
        factors
    }
}

/// 1/sqrt(1 - y^2), which comes from a density of states. (dE takes that of x away.)
fn inverse(count: usize, y: f64) -> f64 {
    let s = (1.0 - y * y).sqrt();
    s * beside_edge(count, s)
}

/// Frequencies side by side: each alone would wait for its own sum.
const SIDE: usize = 8;

/// T_n(y) for y in [-1, 1] and all n that there is room for.
fn polynomials(y: &[f64; SIDE], t: &mut [[f64; SIDE]]) {
    let (mut now, mut before) = ([1.0; SIDE], *y);
    for t in t {
        *t = now;
        let mut next = [0.0; SIDE];
        for k in 0..SIDE {
            next[k] = 2.0 * y[k] * now[k] - before[k];
        }
        (now, before) = (next, now);
    }
}

/// `c = a b`, row-major: `a` has `count` columns.
fn product(a: &[f64], b: &[f64], c: &mut [f64], count: usize) {
    let (m, n) = (a.len() / count, b.len() / count);
    let (a, b) = (MatRef::from_row_major_slice(a, m, count), MatRef::from_row_major_slice(b, count, n));
    matmul(MatMut::from_row_major_slice_mut(c, m, n), Accum::Replace, a, b, 1.0, Par::Seq);
}

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

    /// Moments a_m b_n against midpoints of the root of the distance from the angle where y enters the window: few
    /// moments, of which most of the integral lies there, and many, which turn fast there;
    /// for frequencies side by side.
    #[test]
    fn integrals_are_those_of_many_midpoints() {
        let window = Window { center: 0.3, half_width: 2.5 };
        for (count, potential, temperature) in [
            (16, 0.5, 0.3),
            (16, 1.9, 0.0),
            (16, 0.1, 2.0),
            (16, 0.0, 0.05),
            (200, 0.4, 0.0),
            (200, 0.4, 0.002),
            (200, -0.3, 0.4),
        ] {
            let a: Vec<f64> = (0..count).map(|m| (1.3 * m as f64).sin()).collect();
            let b: Vec<f64> = (0..count).map(|n| (0.3 - 0.7 * n as f64).cos()).collect();
            let product = |i: usize| C64::new(a[i / count] * b[i % count], 0.0);
            let values: Vec<C64> = (0..count * count).map(product).collect();
            let mu = DoubleMoments::of_vectors(window, 7, count, vec![values]).expect("moments");
            let g = DampingKernel::Dirichlet.factors(count);
            let series = |c: &[f64], phi: f64| -> f64 {
                let term = |(n, c): (usize, &f64)| {
                    c * g[n] * (n as f64 * phi).cos() * if n == 0 { 0.5 } else { 1.0 }
                };
                c.iter().enumerate().map(term).sum()
            };
            let omega = [0.004, 0.9, 1.6, 1.7, 3.0, 4.2, 4.9, 4.996, 5.5, 0.1];
            let at =
                OpticalConditions { potential, temperature, volume: 1.0, kernel: DampingKernel::Dirichlet };
            let found = mu.optical(&omega, &at).expect("numbers");
            let mut largest = 0.0f64;
            let mut off = Vec::new();
            for (omega, found) in omega.into_iter().zip(found) {
                let (first, points) = (angle(window, window.upper() - omega), 40_000);
                let sum: f64 = (0..points)
                    .map(|k| {
                        let root = (f64::from(k) + 0.5) / f64::from(points);
                        let phi = first + (PI - first) * root * root;
                        let energy = window.energy(phi.cos());
                        let y = window.scale(energy + omega).min(1.0);
                        let (s2, n2) = (1.0 - y * y, (count * count) as f64);
                        let damped = if s2 > 0.0 { -(-n2 * s2).exp_m1() / s2.sqrt() } else { 0.0 };
                        let moved = fermi(energy, potential, temperature)
                            - fermi(energy + omega, potential, temperature);
                        moved * series(&a, phi) * series(&b, y.acos()) * damped * 2.0 * (PI - first) * root
                            / f64::from(points)
                    })
                    .sum();
                let exact = 8.0 * 7.0 / (window.half_width * omega) * sum;
                off.push((found - exact, omega));
                largest = largest.max((exact * omega).abs());
            }
            // A step of the occupation between two midpoints costs one of them.
            let bound = if temperature < 0.01 { 1e-3 } else { 1e-6 };
            for (off, omega) in off {
                assert!(
                    (off * omega).abs() < bound * largest,
                    "{count} {potential} {temperature} {omega}: {off} of {largest}"
                );
            }
        }
    }

    /// Twice the same vectors, averaged two by two, are those vectors.
    #[test]
    fn errors_of_many_vectors_compare_averages() {
        let window = Window { center: 0.0, half_width: 2.0 };
        let of = |k: usize| -> Vec<C64> {
            (0..64).map(|i| C64::new((1.7 * (i * 37 + k * 91) as f64).sin(), 0.0)).collect()
        };
        let at = OpticalConditions {
            potential: 0.2,
            temperature: 0.3,
            volume: 1.0,
            kernel: DampingKernel::Jackson,
        };
        let error = |all: Vec<Vec<C64>>| {
            let mu = DoubleMoments::of_vectors(window, 5, 8, all).expect("moments");
            mu.optical_error(&[0.5, 1.5], &at).expect("errors")
        };
        let once = error((0..MOST_COMPARED).map(of).collect());
        let twice = error((0..2 * MOST_COMPARED).map(|k| of(k / 2)).collect());
        for (a, b) in once.iter().zip(&twice) {
            assert!(*a > 0.0 && (a - b).abs() < 1e-12 * a, "{a} {b}");
        }
        // Averages of one and of two vectors: no error where all are the same.
        assert!(error((0..MOST_COMPARED + 9).map(|_| of(1)).collect()).iter().all(|e| *e < 1e-12));
        assert!(error(vec![of(1)])[0].is_nan());
    }

    #[test]
    fn polynomials_go_through_their_points() {
        let rule = gauss_legendre();
        let through = Interpolation::new(&rule);
        let f = |x: f64| 1.0 - 2.0 * x + x.powi(5) - 0.3 * x.powi(11);
        for x in [-1.0, -0.3, rule[2].0, 0.0, 0.9999, 1.0] {
            let value: f64 = through.at(x).iter().zip(&rule).map(|(l, (p, _))| l * f(*p)).sum();
            assert!((value - f(x)).abs() < 1e-13, "{x}: {value}");
        }
    }
}
