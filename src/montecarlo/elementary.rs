//! Orbitals in closed form, for exactly solved cases: the harmonic oscillator in one to three dimensions, and
//! exponentials at nuclei.

use super::vectors::{length, minus};
use super::{Derivatives, Orbitals, SimulationCell};
use crate::error::{Error, Result};

/// Eigenfunctions of the oscillator: `prod_k H_n(sqrt(alpha) x_k) exp(-alpha x_k^2 / 2)`, shells in order of energy.
/// With alpha = omega they are exact. They are not normalised, since neither ratios nor energies depend on it.
#[derive(Debug, Clone)]
pub struct Oscillator {
    alpha: f64,
    levels: Vec<[usize; 3]>,
    dimension: usize,
}

impl Oscillator {
    /// The lowest `count` states.
    ///
    /// # Errors
    /// When there are none, alpha is not positive, or the dimension is not 1, 2 or 3.
    pub fn new(count: usize, dimension: usize, alpha: f64) -> Result<Oscillator> {
        if !(1..=3).contains(&dimension) {
            return Err(Error::input(format!("{dimension} dimensions")).hint("1, 2 or 3"));
        }
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(Error::input(format!("an exponent alpha of {alpha}")).hint("it is a positive number"));
        }
        if count == 0 || count > 10_000 {
            return Err(Error::input(format!("{count} orbitals")).hint("ask for 1 to 10000"));
        }
        let mut levels = Vec::new();
        for shell in 0.. {
            for x in (0..=shell).rev() {
                match dimension {
                    1 if x == shell => levels.push([x, 0, 0]),
                    1 => {}
                    2 => levels.push([x, shell - x, 0]),
                    _ => levels.extend((0..=shell - x).rev().map(|y| [x, y, shell - x - y])),
                }
            }
            if levels.len() >= count {
                break;
            }
        }
        levels.truncate(count);
        Ok(Oscillator { alpha, levels, dimension })
    }

    /// `h_n(x)` without the Gaussian for n = 0 .. most, with its first two derivatives. The polynomials are scaled so
    /// that their leading coefficient is 1, which keeps numbers of high n small.
    fn hermite(&self, most: usize, x: f64, out: &mut Vec<[f64; 3]>) {
        out.clear();
        out.push([1.0, 0.0, 0.0]);
        let a = 0.5 / self.alpha;
        for n in 0..most {
            // h_{n+1} = x h_n - n/(2 alpha) h_{n-1}, and h_n' = n h_{n-1}.
            let before = if n > 0 { out[n - 1][0] } else { 0.0 };
            let value = x * out[n][0] - a * n as f64 * before;
            let first = (n + 1) as f64 * out[n][0];
            let second = ((n + 1) * n) as f64 * before;
            out.push([value, first, second]);
        }
    }

    fn each(&self, point: [f64; 3], mut put: impl FnMut(usize, [[f64; 3]; 3])) {
        let most = self.levels.iter().flatten().copied().max().unwrap_or(0);
        let mut tables: [Vec<[f64; 3]>; 3] = Default::default();
        for k in 0..self.dimension {
            self.hermite(most, point[k], &mut tables[k]);
            let g = (-0.5 * self.alpha * point[k] * point[k]).exp();
            let (g1, g2) = (-self.alpha * point[k], self.alpha * (self.alpha * point[k] * point[k] - 1.0));
            for [h, h1, h2] in &mut tables[k] {
                let (v, d) = (*h, *h1);
                *h = v * g;
                *h1 = (d + v * g1) * g;
                *h2 = (*h2 + 2.0 * d * g1 + v * g2) * g;
            }
        }
        for (l, level) in self.levels.iter().enumerate() {
            let one = |k: usize| if k < self.dimension { tables[k][level[k]] } else { [1.0, 0.0, 0.0] };
            put(l, [one(0), one(1), one(2)]);
        }
    }
}

impl Orbitals<f64> for Oscillator {
    fn count(&self) -> usize {
        self.levels.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn cell(&self) -> Option<&SimulationCell> {
        None
    }

    fn values(&self, points: &[[f64; 3]], out: &mut [f64]) {
        let count = self.levels.len();
        for (point, row) in points.iter().zip(out.chunks_exact_mut(count)) {
            self.each(*point, |l, [x, y, z]| row[l] = x[0] * y[0] * z[0]);
        }
    }

    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<f64>) {
        let count = self.levels.len();
        for (p, point) in points.iter().enumerate() {
            self.each(*point, |l, [x, y, z]| {
                let at = p * count + l;
                out.value[at] = x[0] * y[0] * z[0];
                out.gradient[0][at] = x[1] * y[0] * z[0];
                out.gradient[1][at] = x[0] * y[1] * z[0];
                out.gradient[2][at] = x[0] * y[0] * z[1];
                out.laplacian[at] = x[2] * y[0] * z[0] + x[0] * y[2] * z[0] + x[0] * y[0] * z[2];
            });
        }
    }

    fn describe(&self) -> String {
        format!("{} oscillator states in {} D, alpha {}", self.levels.len(), self.dimension, self.alpha)
    }
}

/// Orbitals `exp(-zeta |r - R|)`, one for each centre.
#[derive(Debug, Clone)]
pub struct Exponentials {
    centres: Vec<([f64; 3], f64)>,
}

impl Exponentials {
    /// From centres and exponents zeta.
    ///
    /// # Errors
    /// When there are none, or an exponent is not positive.
    pub fn new(centres: Vec<([f64; 3], f64)>) -> Result<Exponentials> {
        let good =
            |(r, zeta): &([f64; 3], f64)| r.iter().all(|x| x.is_finite()) && *zeta > 0.0 && zeta.is_finite();
        if centres.is_empty() || !centres.iter().all(good) {
            return Err(Error::input("an exponential orbital has a finite place and a positive exponent")
                .hint("like `zeta: 1.6875`"));
        }
        Ok(Exponentials { centres })
    }
}

impl Orbitals<f64> for Exponentials {
    fn count(&self) -> usize {
        self.centres.len()
    }

    fn dimension(&self) -> usize {
        3
    }

    fn cell(&self) -> Option<&SimulationCell> {
        None
    }

    fn values(&self, points: &[[f64; 3]], out: &mut [f64]) {
        for (point, row) in points.iter().zip(out.chunks_exact_mut(self.centres.len())) {
            for ((centre, zeta), value) in self.centres.iter().zip(row) {
                *value = (-zeta * length(minus(*point, *centre))).exp();
            }
        }
    }

    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<f64>) {
        let count = self.centres.len();
        for (p, point) in points.iter().enumerate() {
            for (l, (centre, zeta)) in self.centres.iter().enumerate() {
                let r = length(minus(*point, *centre)).max(1e-300);
                let (at, value) = (p * count + l, (-zeta * r).exp());
                out.value[at] = value;
                for k in 0..3 {
                    out.gradient[k][at] = -zeta * (point[k] - centre[k]) / r * value;
                }
                out.laplacian[at] = (zeta * zeta - 2.0 * zeta / r) * value;
            }
        }
    }

    fn describe(&self) -> String {
        let zetas: Vec<String> = self.centres.iter().map(|(_, zeta)| zeta.to_string()).collect();
        format!("{} exponential orbitals, zeta {}", self.centres.len(), zetas.join(", "))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Compares derivatives with differences of values, whatever the orbitals.
    pub fn check(orbitals: &dyn Orbitals<f64>, point: [f64; 3]) {
        let count = orbitals.count();
        let mut derivatives = Derivatives::new(1, count);
        orbitals.derivatives(&[point], &mut derivatives);
        let h = 1e-4;
        let value = |shift: [f64; 3]| {
            let mut out = vec![0.0; count];
            orbitals.values(&[std::array::from_fn(|k| point[k] + shift[k])], &mut out);
            out
        };
        let middle = value([0.0; 3]);
        for l in 0..count {
            assert!((derivatives.value[l] - middle[l]).abs() < 1e-12);
            let mut laplacian = 0.0;
            for k in 0..orbitals.dimension() {
                let shift = |s: f64| std::array::from_fn(|i| if i == k { s * h } else { 0.0 });
                let (high, low) = (value(shift(1.0))[l], value(shift(-1.0))[l]);
                assert!((derivatives.gradient[k][l] - (high - low) / (2.0 * h)).abs() < 1e-5, "{l} {k}");
                laplacian += (high + low - 2.0 * middle[l]) / (h * h);
            }
            assert!((derivatives.laplacian[l] - laplacian).abs() < 1e-4, "{l}");
        }
    }

    #[test]
    fn derivatives_are_those_of_the_values() {
        check(&Oscillator::new(6, 1, 0.8).unwrap(), [0.7, 0.0, 0.0]);
        check(&Oscillator::new(10, 2, 1.3).unwrap(), [0.7, -0.4, 0.0]);
        check(&Oscillator::new(10, 3, 1.0).unwrap(), [0.7, -0.4, 0.2]);
        check(
            &Exponentials::new(vec![([0.1, 0.0, 0.0], 1.2), ([0.0, 1.0, 0.0], 0.9)]).unwrap(),
            [0.5, 0.4, -0.3],
        );
    }

    #[test]
    fn shells_are_filled_in_order() {
        let states = Oscillator::new(10, 3, 1.0).unwrap();
        let energy: usize = states.levels.iter().flatten().sum();
        assert_eq!(energy, 3 + 12);
        assert!(Oscillator::new(2, 4, 1.0).is_err() && Oscillator::new(2, 1, f64::NAN).is_err());
    }
}
