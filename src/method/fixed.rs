//! A unique choice of eigenvectors. A solver finds a vector up to its phase, and vectors of a degenerate level up to a
//! rotation. The result depends on rounding, so on the number of ranks and threads. Here the vectors are rotated onto
//! fixed random vectors, so they depend only on the space of the level.

use std::ops::Range;

use super::Eigen;
use crate::backend::{BlockVector, Random, VectorDistribution};
use crate::error::Result;
use crate::number::linalg::unitary_factor;
use crate::number::philox::Stream;
use crate::number::{C64, DType};
use crate::operator::Operator;

/// Levels that differ by less than this share of the tolerance count as one: vectors that mix them have a residual of
/// the size of the difference.
const SHARE: f64 = 0.1;
/// The same, at most, as a share of the largest value: a large tolerance does not mix levels that are far apart.
const WIDEST: f64 = 1e-6;
/// The same, at least, in units of rounding of the largest value.
const ROUNDING: f64 = 32.0;

/// Values that differ by less belong to one level, as far as a search with this tolerance can tell.
pub(super) fn width(values: &[f64], tolerance: f64, dtype: DType) -> f64 {
    let largest = values.iter().fold(0.0f64, |most, x| most.max(x.abs()));
    (SHARE * tolerance).min(WIDEST * largest).max(ROUNDING * dtype.epsilon() * largest)
}

/// The levels among ascending values.
fn levels(values: &[f64], width: f64) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for (k, value) in values.iter().enumerate() {
        match all.last_mut() {
            Some(level) if value - values[level.start] <= width => level.end = k + 1,
            _ => all.push(k..k + 1),
        }
    }
    all
}

/// For each of some ascending values the number of vectors of its level, and the norm of all their residuals together
/// with how far its values lie apart: a bound for the residual of whatever vector of the level.
pub(super) fn joint(values: &[f64], residuals: &[f64], width: f64) -> (Vec<usize>, Vec<f64>) {
    let (mut copies, mut norms) = (Vec::new(), Vec::new());
    for level in levels(values, width) {
        let (n, apart) = (level.len(), values[level.end - 1] - values[level.start]);
        let norm = residuals[level].iter().fold(apart, |all, r| all.hypot(*r));
        copies.extend(std::iter::repeat_n(n, n));
        norms.extend(std::iter::repeat_n(norm, n));
    }
    (copies, norms)
}

/// Pairs of ascending values with the vectors of each level chosen by what it has in common with fixed random vectors,
/// and the first `count` of them. Residuals of a degenerate level become a bound for those of all its vectors.
///
/// # Errors
/// Those of the device.
pub(super) fn fixed(h: &Operator, mut found: Eigen, count: usize) -> Result<Eigen> {
    let device = h.device();
    let width = width(&found.values, found.tolerance, h.dtype());
    let levels = levels(&found.values, width);
    let most = levels.iter().map(Range::len).max().unwrap_or(0);
    if most == 0 {
        return Ok(found);
    }
    let mut random = h.zeros(most)?;
    let drawn = Random {
        seed: 0,
        stream: Stream::Levels,
        first_column: 0,
        distribution: VectorDistribution::Gaussian,
    };
    device.fill_random(&mut random, drawn)?;
    // A row for each vector found.
    let common = device.gram(&found.vectors, &random)?;
    drop(random);
    let mut phases = vec![C64::ONE; found.values.len()];
    let mut rotations = Vec::new();
    for level in levels {
        let n = level.len();
        let own: Vec<C64> =
            level.clone().flat_map(|k| common[k * most..k * most + n].iter().copied()).collect();
        let Some(q) = unitary_factor(n, &own) else { continue };
        if n == 1 {
            phases[level.start] = q[0];
        } else {
            rotations.push((level, q));
        }
    }
    if phases.iter().any(|z| *z != C64::ONE) {
        let copy = found.vectors.clone();
        device.axpby(&phases, &copy, &[C64::ZERO], &mut found.vectors)?;
    }
    for (level, q) in rotations {
        let x = device.columns(&found.vectors, level.clone())?;
        let mut y = device.zeros(x.dtype(), x.rows(), level.len())?;
        device.combine(&x, &q, 0.0, &mut y)?;
        device.set_columns(&mut found.vectors, level.start, &y)?;
        bound(h, &y, level, &mut found)?;
    }
    first(h, found, count)
}

/// The first `count` pairs.
///
/// # Errors
/// Those of the device.
pub(super) fn first(h: &Operator, mut found: Eigen, count: usize) -> Result<Eigen> {
    if found.values.len() > count {
        found.values.truncate(count);
        found.residuals.truncate(count);
        found.vectors = h.device().columns(&found.vectors, 0..count)?;
    }
    Ok(found)
}

/// The residuals of the rotated vectors `x` of a level: a bound that holds for all of them; where that is above the
/// tolerance and those of the search were not, they themselves.
fn bound(h: &Operator, x: &BlockVector, level: Range<usize>, found: &mut Eigen) -> Result<()> {
    let before = &found.residuals[level.clone()];
    let apart = found.values[level.end - 1] - found.values[level.start];
    let all = before.iter().fold(apart, |all, r| all.hypot(*r));
    let own = if all > found.tolerance && before.iter().all(|r| *r <= found.tolerance) {
        let device = h.device();
        let mut r = h.apply(x)?;
        let minus: Vec<C64> = found.values[level.clone()].iter().map(|v| C64::new(-v, 0.0)).collect();
        device.axpby(&minus, x, &[C64::ONE], &mut r)?;
        device.norms(&r)?
    } else {
        vec![all; level.len()]
    };
    found.residuals[level].copy_from_slice(&own);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_within_the_width_are_one_level() {
        assert_eq!(levels(&[0.0, 1.0, 1.0 + 1e-12, 2.0], 1e-11), [0..1, 1..3, 3..4]);
        let (copies, norms) = joint(&[0.0, 1.0, 1.0], &[1.0, 3.0, 4.0], 1e-11);
        assert_eq!((copies, norms), (vec![1, 2, 2], vec![1.0, 5.0, 5.0]));
        assert_eq!(joint(&[0.0, 3.0], &[0.0, 4.0], 5.0).1, [5.0, 5.0]);
    }
}
