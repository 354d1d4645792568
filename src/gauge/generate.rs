//! Gauge fields from formulas: random, of constant abelian flux, and a reference field that any program can reproduce.

use super::links::{Links, diagonal};
use super::su3::{self, Su3};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::number::philox::{self, Stream};

/// The first output of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) for a seed.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Uniform in [0, 1) from a number.
fn uniform(k: u64) -> f64 {
    (mix(k) >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform in (-1, 1) from a counter and a stream, for reference fields and spinors.
fn reference(stream: u64, at: u64) -> f64 {
    2.0 * uniform((stream << 40).wrapping_add(at)) - 1.0
}

/// A row of the reference spinor of a stream: real and imaginary part uniform in (-1, 1).
pub fn reference_row(row: usize, stream: u64) -> C64 {
    let k = row as u64;
    C64::new(reference(stream, 2 * k), reference(stream, 2 * k + 1))
}

/// Haar-random SU(3): Gaussian rows made orthonormal.
fn haar(seed: u64, index: u64, column: u32) -> Su3 {
    let mut u = su3::UNIT;
    for (k, z) in u.iter_mut().take(6).enumerate() {
        let words = philox::words(seed, Stream::Gauge as u32, index, 8 * column + k as u32);
        let (x, y) = philox::normals(words);
        *z = C64::new(x, y);
    }
    su3::reunitarised(&u)
}

impl Links {
    /// The same lattice with Haar-random links.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn random(&self, seed: u64) -> Result<Links> {
        Links::from_fn(self, |x, mu| haar(seed, (4 * self.region().number(x) + mu) as u64, 0))
    }

    /// The same lattice with U = exp(i sum_a theta_a lambda_a), theta_a = r (2 u - 1), u from SplitMix64 at
    /// 2^40 + 32 site + 8 mu + a.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn reference_field(&self, r: f64) -> Result<Links> {
        Links::from_fn(self, |x, mu| {
            let first = 32 * self.region().number(x) + 8 * mu;
            let theta = std::array::from_fn(|a| r * reference(1, (first + a) as u64));
            su3::exp_i(&su3::gell_mann(&theta))
        })
    }

    /// The same lattice with U = diag(e^(ia), e^(-ia), 1) of constant flux: `quanta` lists planes (p, q) and flux
    /// quanta m in each. In plane (p, q), f = 2 pi m/(L_p L_q), U_q has phase f x_p, and U_p has -f L_p x_q where
    /// x_p = L_p - 1.
    ///
    /// # Errors
    /// A plane whose two directions are equal or do not exist.
    pub fn constant_flux(&self, quanta: &[((usize, usize), i64)]) -> Result<Links> {
        let dims = self.dims();
        if let Some(((p, q), _)) = quanta.iter().find(|((p, q), _)| p >= q || *q > 3) {
            return Err(Error::input(format!("no plane of directions {p} and {q}"))
                .hint("planes are `plane01`, `plane02`, .. `plane23`"));
        }
        Links::from_fn(self, |place, mu| {
            let x = self.region().coordinates(place);
            let mut phase = 0.0;
            for &((p, q), m) in quanta {
                // Whole turns of a plaquette change nothing, and cost digits.
                let area = (dims[p] * dims[q]) as i64;
                let f = 2.0 * std::f64::consts::PI * (m % area) as f64 / area as f64;
                if mu == q {
                    phase += f * x[p] as f64;
                }
                if mu == p && x[p] + 1 == dims[p] {
                    phase -= f * (dims[p] * x[q]) as f64;
                }
            }
            diagonal([phase, -phase, 0.0])
        })
    }

    /// Phases of plaquettes of such a field: the largest, and the sum over planes of their moduli.
    pub fn flux(&self, quanta: &[((usize, usize), i64)]) -> (f64, f64) {
        let dims = self.dims();
        let of = |&((p, q), m): &((usize, usize), i64)| {
            2.0 * std::f64::consts::PI * m.unsigned_abs() as f64 / (dims[p] * dims[q]) as f64
        };
        let all = quanta.iter().map(of);
        (all.clone().fold(0.0, f64::max), all.sum())
    }

    /// The field after a random gauge transformation.
    ///
    /// # Errors
    /// Those of MPI.
    pub fn random_gauge(&self, seed: u64) -> Result<Links> {
        self.transformed(|x| haar(seed, self.region().number(x) as u64, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first output of SplitMix64 for seed 0, as published with the generator.
    #[test]
    fn the_mixer_is_splitmix() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert!((uniform(0) - 0.883_310_808_213_642_6).abs() < 1e-16);
    }
}
