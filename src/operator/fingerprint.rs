//! Fingerprints of operators, which tell whether two are the same without their entries.

use super::Operator;
use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::Result;
use crate::number::C64;
use crate::number::philox::Stream;

/// What an operator A does to two fixed vectors p and q of random signs. Other operators of its size do something else.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprint {
    /// <q|A p>, where <p|p> = <q|q> = 1.
    overlap: C64,
    /// The norm of A p.
    length: f64,
    /// How far that of the same operator may be off, over the norm: devices sum in an order of their own.
    rounding: f64,
}

impl Fingerprint {
    /// Whether both may be of the same operator.
    pub fn fits(&self, other: &Fingerprint) -> bool {
        let near = self.rounding.max(other.rounding) * self.length.max(other.length);
        (self.overlap - other.overlap).norm() <= near && (self.length - other.length).abs() <= near
    }

    /// Of an average over operators: (1 - weight) of those of this one, weight of those of the other.
    pub fn mixed(&self, other: &Fingerprint, weight: f64) -> Fingerprint {
        Fingerprint {
            overlap: self.overlap * (1.0 - weight) + other.overlap * weight,
            length: self.length * (1.0 - weight) + other.length * weight,
            rounding: self.rounding.max(other.rounding),
        }
    }

    /// All its numbers, as a file keeps them.
    pub fn numbers(&self) -> [f64; 4] {
        [self.overlap.re, self.overlap.im, self.length, self.rounding]
    }

    /// From what [`Fingerprint::numbers`] gave.
    pub fn of_numbers([re, im, length, rounding]: [f64; 4]) -> Self {
        Fingerprint { overlap: C64::new(re, im), length, rounding }
    }
}

impl Operator {
    /// The fingerprint, for which two vectors must fit into memory; none of a rectangular operator, or where squares of
    /// entries are beyond what numbers hold.
    ///
    /// # Errors
    /// Those of a product.
    pub fn fingerprint(&self) -> Result<Option<Fingerprint>> {
        if self.dim() != self.cols() {
            return Ok(None);
        }
        if let Some(known) = self.print.get() {
            return Ok(*known);
        }
        // Velocities of a real Hamiltonian are imaginary: a real matrix of half the size serves.
        let found = match self.real_velocity()? {
            Some((factor, m)) => m.look()?.map(|of| Fingerprint {
                overlap: factor * of.overlap,
                length: factor.norm() * of.length,
                ..of
            }),
            None => self.look()?,
        };
        Ok(*self.print.get_or_init(|| found))
    }

    fn look(&self) -> Result<Option<Fingerprint>> {
        let signs = |first_column: u32| -> Result<BlockVector> {
            let mut v = self.zeros(1)?;
            let random = Random {
                seed: 0,
                stream: Stream::Probes,
                first_column,
                distribution: VectorDistribution::Sign,
            };
            self.device.fill_random(&mut v, random)?;
            Ok(v)
        };
        let y = self.apply(&signs(0)?)?;
        // Ranks meet once.
        let products = self.device.dots_with(&[&signs(1)?, &y], &y)?;
        let of = |k: usize| products.get(k).map_or(C64::ZERO, |z| *z / self.dim() as f64);
        let (overlap, square) = (of(0), of(1).re);
        let rounding = if self.dtype().is_single() { 1e-5 } else { 1e-10 };
        let known = square == 0.0 || square.is_normal();
        Ok(known.then_some(Fingerprint { overlap, length: square.sqrt(), rounding }))
    }
}
