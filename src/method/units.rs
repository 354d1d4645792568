//! Searches for eigenpairs in units in which the operator is of order one, for any units of the user. With energies of
//! 1e-19 (joules) every residual would be below a tolerance of 1e-9, and squares of residuals would underflow.

use super::Eigen;
use crate::backend::{Random, VectorDistribution};
use crate::error::{Error, Result};
use crate::number::C64;
use crate::number::philox::Stream;
use crate::operator::Operator;

/// Residuals that count as small unless the user says something else, in units of the operator.
const TOLERANCE: f64 = 1e-9;
/// The same in single precision, of the operator's size where that is above one: rounding leaves some tenth of it.
const SINGLE: f64 = 1e-5;
/// The same for energies that are not ordinary, in double precision: what `TOLERANCE` is of the largest ordinary size.
/// Levels may be much smaller than the operator, as those of electrons that a large repulsion keeps apart, in any unit.
const FINE: f64 = 1e-13;
/// The largest that do, whatever the user says, where these units are not the user's: in double precision,
/// and in single.
const ROUGH: (f64, f64) = (1e-6, 1e-3);
/// Units are powers of two up to this one, above one and below.
const LARGEST_POWER: i32 = 1000;
/// Operators of these sizes are taken as they are.
const ORDINARY: std::ops::RangeInclusive<f64> = 1e-2..=1e4;

/// The energy that tolerances are meant in where energies are of this size: one, or a power of two near the size where
/// that is far from one.
pub fn unit_of(size: f64) -> f64 {
    if !(size > 0.0) || ORDINARY.contains(&size) {
        1.0
    } else {
        size.log2().round().clamp(-f64::from(LARGEST_POWER), f64::from(LARGEST_POWER)).exp2()
    }
}

/// An operator over a power of two.
pub(super) struct Units {
    pub h: Operator,
    /// What an energy of one stands for.
    pub unit: f64,
    /// The operator's size in these units; one where it is not known.
    pub size: f64,
}

/// An error for a tolerance that is not positive.
pub(super) fn positive(tolerance: Option<f64>) -> Result<()> {
    match tolerance {
        Some(tolerance) if !(tolerance > 0.0) => {
            Err(Error::input(format!("a tolerance of {tolerance}")).hint("it must be positive"))
        }
        _ => Ok(()),
    }
}

/// The error for more eigenpairs than there are.
pub(super) fn too_many(count: usize, h: &Operator) -> Error {
    Error::input(format!("{count} eigenpairs of an operator with {} rows", h.dim()))
        .hint("ask for fewer with the option `count`")
}

/// An error for more eigenpairs than there are, or none.
pub(super) fn countable(count: usize, h: &Operator) -> Result<()> {
    if (1..=h.dim()).contains(&count) { Ok(()) } else { Err(too_many(count, h)) }
}

impl Units {
    /// Units of the size of a Hermitian operator: the norm of its product with a random vector,
    /// which overlaps with every level.
    pub fn of(h: &Operator) -> Result<Units> {
        // Where squares of entries are beyond what numbers hold, the product is taken in other units.
        let (within, step) = (h.dtype().squared(), if h.dtype().is_single() { 80 } else { 480 });
        let mut power = 0i32;
        let mut size = measured(h)?;
        while !within.contains(&size) && power.abs() + step <= LARGEST_POWER {
            power += if size < *within.start() { -step } else { step };
            size = measured(&with_unit(h, f64::powi(2.0, power)))?;
        }
        size *= f64::powi(2.0, power);
        if !(size.is_finite() && size > 0.0) {
            return Ok(Units::own(h));
        }
        let unit = unit_of(size);
        Ok(Units { h: with_unit(h, unit), unit, size: size / unit })
    }

    /// The user's units.
    pub fn own(h: &Operator) -> Units {
        Units { h: h.clone(), unit: 1.0, size: 1.0 }
    }

    /// The residual that counts as converged, in these units; `given` is in the user's.
    pub fn tolerance(&self, given: Option<f64>) -> f64 {
        match given {
            Some(tolerance) if self.unit == 1.0 => tolerance,
            Some(tolerance) => {
                (tolerance / self.unit).min(if self.h.dtype().is_single() { ROUGH.1 } else { ROUGH.0 })
            }
            None if self.h.dtype().is_single() => SINGLE * self.size.max(1.0),
            None if self.unit != 1.0 => FINE,
            None => TOLERANCE,
        }
    }

    /// What was found, in the user's units.
    pub fn back(&self, mut found: Eigen) -> Eigen {
        found.values.iter_mut().chain(&mut found.residuals).for_each(|x| *x *= self.unit);
        found.tolerance *= self.unit;
        found
    }
}

fn with_unit(h: &Operator, unit: f64) -> Operator {
    h.scaled(C64::new(1.0 / unit, 0.0))
}

/// |H x| for a random x of length one.
fn measured(h: &Operator) -> Result<f64> {
    let random = Random {
        seed: 0,
        stream: Stream::Start,
        first_column: 0,
        distribution: VectorDistribution::Gaussian,
    };
    let mut x = h.zeros(1)?;
    h.device().fill_random(&mut x, random)?;
    let mut y = h.zeros(1)?;
    h.update(crate::backend::Update::PRODUCT, &x, &mut y, None)?;
    Ok(h.device().norms(&y)?[0] / h.device().norms(&x)?[0])
}
