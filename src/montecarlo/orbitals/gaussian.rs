//! Contracted Gaussian orbitals of atoms and small molecules, in open space.

use std::f64::consts::PI;

use super::super::SimulationCell;
use super::{Derivatives, Orbitals};
use crate::error::{Error, Result};

/// A function at a centre: a Cartesian monomial times a sum of Gaussians.
#[derive(Debug, Clone)]
struct ContractedGaussian {
    centre: [f64; 3],
    power: [u8; 3],
    /// Exponent and factor of each primitive, norms included.
    primitives: Vec<(f64, f64)>,
}

/// A shell of a basis: all functions of one angular momentum with the same primitives.
#[derive(Debug, Clone)]
pub struct Shell {
    /// Its centre, in bohr.
    pub centre: [f64; 3],
    /// 0 (s), 1 (p: x, y, z) or 2 (d, Cartesian: xx, xy, xz, yy, yz, zz).
    pub momentum: usize,
    /// Exponents of the primitives, 1/bohr^2.
    pub exponents: Vec<f64>,
    /// Factors of the normalised primitives.
    pub coefficients: Vec<f64>,
}

fn not_finite(c: f64) -> Error {
    Error::input(format!("a coefficient {c}")).hint("coefficients are finite numbers")
}

impl Shell {
    /// A 1s Slater function of exponent `zeta` as `n` = 2 .. 6 Gaussians that come nearest to it (STO-nG; Hehre,
    /// Stewart and Pople, J. Chem. Phys. 51, 2657, 1969).
    ///
    /// # Errors
    /// Another number of Gaussians; an exponent that is not positive.
    pub fn sto(centre: [f64; 3], zeta: f64, n: usize) -> Result<Shell> {
        let fit: &[[f64; 2]] = match n {
            2 => &[[0.851818663, 0.430128498], [0.151623293, 0.678913531]],
            3 => &[[2.227660584, 0.154328967], [0.405771156, 0.535328142], [0.109818, 0.444634542]],
            4 => &[
                [5.216844534, 0.0567524208],
                [0.954618276, 0.260141355],
                [0.265203410, 0.532846114],
                [0.0880186277, 0.291625441],
            ],
            5 => &[
                [11.30563696, 0.0221406],
                [2.071728178, 0.1135411520],
                [0.578648483, 0.331816148],
                [0.197572457, 0.482570071],
                [0.0744527174, 0.193572192],
            ],
            6 => &[
                [23.10303149, 0.00916359628],
                [4.235915534, 0.0493614929],
                [1.185056519, 0.168538305],
                [0.407098898, 0.370562800],
                [0.158088415, 0.416491530],
                [0.0651095395, 0.130334084],
            ],
            _ => {
                return Err(
                    Error::input(format!("a Slater function as {n} Gaussians")).hint("between 2 and 6")
                );
            }
        };
        if !(zeta > 0.0) || !zeta.is_finite() {
            return Err(Error::input(format!("a Slater exponent of {zeta}")).hint("it is a positive number"));
        }
        Ok(Shell {
            centre,
            momentum: 0,
            exponents: fit.iter().map(|[a, _]| a * zeta * zeta).collect(),
            coefficients: fit.iter().map(|[_, c]| *c).collect(),
        })
    }

    fn functions(&self) -> Result<Vec<ContractedGaussian>> {
        let powers: &[[u8; 3]] = match self.momentum {
            0 => &[[0, 0, 0]],
            1 => &[[1, 0, 0], [0, 1, 0], [0, 0, 1]],
            2 => &[[2, 0, 0], [1, 1, 0], [1, 0, 1], [0, 2, 0], [0, 1, 1], [0, 0, 2]],
            l => {
                return Err(
                    Error::input(format!("a shell of angular momentum {l}")).hint("there are s, p and d")
                );
            }
        };
        let good = |a: &f64| *a > 0.0 && a.is_finite();
        if self.exponents.is_empty() || !self.exponents.iter().all(good) {
            return Err(Error::input(format!("Gaussian exponents {:?}", self.exponents))
                .hint("one positive number or more"));
        }
        if let Some(c) = self.coefficients.iter().find(|c| !c.is_finite()) {
            return Err(not_finite(*c));
        }
        if self.coefficients.len() != self.exponents.len() {
            return Err(Error::input(format!(
                "{} coefficients for {} exponents of a shell",
                self.coefficients.len(),
                self.exponents.len()
            ))
            .hint("one finite number for each exponent"));
        }
        if self.centre.iter().any(|x| !x.is_finite()) {
            return Err(Error::input(format!("a shell at {:?}", self.centre)).hint("three finite numbers"));
        }
        let odd = |n: u8| (1..=n).map(|k| f64::from(2 * k - 1)).product::<f64>();
        let one = |power: &[u8; 3]| {
            let double: f64 = power.iter().map(|&n| odd(n)).product();
            let norm = |a: f64| {
                (2.0 * a / PI).powf(0.75) * (4.0 * a).powf(self.momentum as f64 / 2.0) / double.sqrt()
            };
            let primitives = self.exponents.iter().zip(&self.coefficients).map(|(&a, &c)| (a, c * norm(a)));
            ContractedGaussian { centre: self.centre, power: *power, primitives: primitives.collect() }
        };
        Ok(powers.iter().map(one).collect())
    }
}

/// Linear combinations of the functions of some shells.
#[derive(Debug, Clone)]
pub struct Gaussians {
    functions: Vec<ContractedGaussian>,
    /// `count x functions`.
    coefficients: Vec<f64>,
    count: usize,
}

impl Gaussians {
    /// Every function an orbital of its own.
    ///
    /// # Errors
    /// No shells, or an invalid one.
    pub fn new(shells: &[Shell]) -> Result<Gaussians> {
        let mut functions = Vec::new();
        for (k, shell) in shells.iter().enumerate() {
            functions.extend(shell.functions().map_err(|e| e.context(format!("shell {k}")))?);
        }
        if functions.is_empty() {
            return Err(Error::input("no shells").hint("give at least one"));
        }
        let count = functions.len();
        let mut coefficients = vec![0.0; count * count];
        (0..count).for_each(|k| coefficients[k * count + k] = 1.0);
        Ok(Gaussians { functions, coefficients, count })
    }

    /// Orbitals as linear combinations: a row of numbers for each, one for every function.
    ///
    /// # Errors
    /// Rows of another length, or numbers that are not finite.
    pub fn combined(self, rows: &[Vec<f64>]) -> Result<Gaussians> {
        let n = self.functions.len();
        if let Some(c) = rows.iter().flatten().find(|c| !c.is_finite()) {
            return Err(not_finite(*c));
        }
        if rows.is_empty() || rows.iter().any(|row| row.len() != n) {
            let lengths: Vec<usize> = rows.iter().map(Vec::len).collect();
            return Err(Error::input(format!("rows of {lengths:?} coefficients for {n} functions"))
                .hint("one row for each orbital, one finite number for each function"));
        }
        Ok(Gaussians { coefficients: rows.concat(), count: rows.len(), ..self })
    }

    /// How many functions the orbitals are made of.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Value, gradient and Laplacian of every function.
    fn each(&self, point: &[f64; 3], out: &mut [[f64; 5]]) {
        for (f, slot) in self.functions.iter().zip(out) {
            let x: [f64; 3] = std::array::from_fn(|d| point[d] - f.centre[d]);
            let s = x[0] * x[0] + x[1] * x[1] + x[2] * x[2];
            // The radial part and its derivatives by s = r^2.
            let (mut r0, mut r1, mut r2) = (0.0, 0.0, 0.0);
            for &(a, c) in &f.primitives {
                let g = c * (-a * s).exp();
                r0 += g;
                r1 -= a * g;
                r2 += a * a * g;
            }
            // The monomial P, its gradient and Laplacian; x . grad P = degree P.
            let power = |d: usize, less: u8| -> f64 {
                let n = f.power[d];
                if n < less {
                    return 0.0;
                }
                let factor: f64 = (0..less).map(|k| f64::from(n - k)).product();
                factor * x[d].powi(i32::from(n - less))
            };
            let product = |less: [u8; 3]| -> f64 { (0..3).map(|d| power(d, less[d])).product() };
            let p = product([0, 0, 0]);
            let dp = [product([1, 0, 0]), product([0, 1, 0]), product([0, 0, 1])];
            let ddp = product([2, 0, 0]) + product([0, 2, 0]) + product([0, 0, 2]);
            let degree: f64 = f.power.iter().map(|&n| f64::from(n)).sum();
            slot[0] = p * r0;
            for d in 0..3 {
                slot[1 + d] = dp[d] * r0 + 2.0 * p * x[d] * r1;
            }
            slot[4] = ddp * r0 + 4.0 * degree * p * r1 + p * (6.0 * r1 + 4.0 * s * r2);
        }
    }

    fn sum(&self, l: usize, functions: &[[f64; 5]], plane: usize) -> f64 {
        let row = &self.coefficients[l * self.functions.len()..][..self.functions.len()];
        row.iter().zip(functions).map(|(c, f)| c * f[plane]).sum()
    }
}

impl Orbitals<f64> for Gaussians {
    fn count(&self) -> usize {
        self.count
    }

    fn dimension(&self) -> usize {
        3
    }

    fn cell(&self) -> Option<&SimulationCell> {
        None
    }

    fn values(&self, points: &[[f64; 3]], out: &mut [f64]) {
        let mut functions = vec![[0.0; 5]; self.functions.len()];
        for (point, row) in points.iter().zip(out.chunks_exact_mut(self.count)) {
            self.each(point, &mut functions);
            row.iter_mut().enumerate().for_each(|(l, slot)| *slot = self.sum(l, &functions, 0));
        }
    }

    fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<f64>) {
        let mut functions = vec![[0.0; 5]; self.functions.len()];
        for (p, point) in points.iter().enumerate() {
            self.each(point, &mut functions);
            for l in 0..self.count {
                let at = p * self.count + l;
                out.value[at] = self.sum(l, &functions, 0);
                for d in 0..3 {
                    out.gradient[d][at] = self.sum(l, &functions, 1 + d);
                }
                out.laplacian[at] = self.sum(l, &functions, 4);
            }
        }
    }

    fn describe(&self) -> String {
        format!("{} orbitals of {} Gaussian functions", self.count, self.functions.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(momentum: usize, centre: [f64; 3]) -> Shell {
        Shell { centre, momentum, exponents: vec![0.7, 0.25], coefficients: vec![0.4, 0.7] }
    }

    #[test]
    fn derivatives_are_differences() {
        let shells = [shell(0, [0.1, 0.0, 0.0]), shell(1, [0.0, -0.3, 0.2]), shell(2, [0.0; 3])];
        let o = Gaussians::new(&shells).unwrap();
        assert_eq!((o.count(), o.functions()), (10, 10));
        let (at, h) = ([0.4, -0.5, 0.6], 1e-4);
        let mut d = Derivatives::new(1, 10);
        o.derivatives(&[at], &mut d);
        let value = |r: [f64; 3]| {
            let mut v = vec![0.0; 10];
            o.values(&[r], &mut v);
            v
        };
        let middle = value(at);
        for l in 0..10 {
            let mut laplacian = 0.0;
            for k in 0..3 {
                let (mut up, mut down) = (at, at);
                up[k] += h;
                down[k] -= h;
                let (up, down) = (value(up)[l], value(down)[l]);
                assert!((d.gradient[k][l] - (up - down) / (2.0 * h)).abs() < 1e-7, "{l} {k}");
                laplacian += (up + down - 2.0 * middle[l]) / (h * h);
            }
            assert!(
                (d.value[l] - middle[l]).abs() < 1e-15 && (d.laplacian[l] - laplacian).abs() < 1e-5,
                "{l}"
            );
        }
    }

    #[test]
    fn functions_are_normalised() {
        // A primitive alone, by the mean over a fine grid.
        for momentum in 0..3 {
            let one = Shell { centre: [0.0; 3], momentum, exponents: vec![0.6], coefficients: vec![1.0] };
            let o = Gaussians::new(&[one]).unwrap();
            let (n, h) = (40i32, 0.3);
            let points: Vec<[f64; 3]> = (0..n.pow(3))
                .map(|k| [k / (n * n), k / n % n, k % n].map(|x| h * (f64::from(x) - f64::from(n) / 2.0)))
                .collect();
            let mut v = vec![0.0; points.len() * o.count()];
            o.values(&points, &mut v);
            for l in 0..o.count() {
                let norm: f64 = v.iter().skip(l).step_by(o.count()).map(|x| x * x).sum::<f64>() * h.powi(3);
                assert!((norm - 1.0).abs() < 1e-9, "{momentum} {l}: {norm}");
            }
        }
    }

    #[test]
    fn slater_fits_near_the_hydrogen_atom() {
        let mut last = 0.0;
        for n in 2..=6 {
            let s = Shell::sto([0.0; 3], 1.0, n).unwrap();
            let (mut norm, mut energy) = (0.0, 0.0);
            for (a, c) in s.exponents.iter().zip(&s.coefficients) {
                for (b, d) in s.exponents.iter().zip(&s.coefficients) {
                    let weight = c * d * (2.0 * a / PI).powf(0.75) * (2.0 * b / PI).powf(0.75);
                    let overlap = (PI / (a + b)).powf(1.5);
                    norm += weight * overlap;
                    energy += weight * (3.0 * a * b / (a + b) * overlap - 2.0 * PI / (a + b));
                }
            }
            assert!((norm - 1.0).abs() < 2e-6, "{n}: {norm}");
            assert!(energy < last - 1e-5 && energy > -0.5, "{n}: {energy}");
            last = energy;
        }
        assert!((last + 0.5).abs() < 5e-4, "{last}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Gaussians::new(&[]).is_err() && Gaussians::new(&[shell(3, [0.0; 3])]).is_err());
        assert!(Shell::sto([0.0; 3], 1.0, 7).is_err() && Shell::sto([0.0; 3], -1.0, 3).is_err());
        let o = Gaussians::new(&[shell(0, [0.0; 3])]).unwrap();
        assert!(o.clone().combined(&[vec![1.0, 2.0]]).is_err() && o.combined(&[vec![f64::NAN]]).is_err());
    }
}
