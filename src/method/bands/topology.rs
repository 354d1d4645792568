//! Berry curvature and Z2 invariants of the filled bands.
//!
//! Signs: the Berry connection is A = i <u|du/dk>, the curvature dA_2/dk_1 - dA_1/dk_2, a Chern number its integral
//! over the zone divided by 2 pi.

use std::f64::consts::TAU;

use super::filled::{check_filled, check_gap};
use super::flux::partners_change;
use super::plane::Plane;
use super::positions::{PositionElements, combined, expectations};
use super::{at_each, keep, levels, split};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Table};
use crate::task::Task;

/// The Berry curvature of the filled bands on a grid of `n` x `n` momenta, from the derivatives of the Hamiltonian
/// (Xiao, Chang, Niu, RMP 82 (2010) 1959, equation 1.13): a table of `k1`, `k2` in units of the reciprocal vectors
/// and `curvature` in squared lattice constants. The report holds the Chern number that follows from the mean. With
/// matrix elements of the position it is that of the orbitals too.
///
/// # Errors
/// As [`super::chern_number`].
pub fn berry_curvature(
    bloch: &Bloch,
    positions: Option<&PositionElements>,
    filled: usize,
    plane: &Plane,
    n: usize,
    task: &Task,
) -> Result<Table> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    if !(1..=1 << 14).contains(&n) {
        return Err(Error::input(format!("a grid of {n} points in each direction"))
            .hint("take one at least, and 2^14 at most"));
    }
    keep(n * n, bloch.rows())?;
    let momenta: Vec<Vec<f64>> =
        (0..n * n).map(|p| plane.momentum((p / n) as f64 / n as f64, (p % n) as f64 / n as f64)).collect();
    let found = at_each(&momenta, "Berry curvature", task, |k| {
        let l = levels(bloch, k)?;
        let (below, above) = split(&l.vectors, filled)?;
        let mut sum = match positions {
            None => 0.0,
            Some(positions) => {
                let [first, second] = plane.directions.map(|d| &bloch.reciprocal()[d]);
                let both = first
                    .iter()
                    .enumerate()
                    .flat_map(|(a, x)| second.iter().enumerate().map(move |(b, y)| (x * y, [a, b])));
                let parts = both.filter(|(weight, [a, b])| a != b && *weight != 0.0);
                let own = combined(parts.map(|(weight, axes)| (weight, positions.curvature(k, axes))))?;
                own.map_or(Ok(Vec::new()), |own| expectations(&own, &below))?.iter().sum()
            }
        };
        if filled == bloch.rows() {
            return Ok((sum, l.energies));
        }
        let between = |d: usize| -> Result<Vec<C64>> {
            let moved = match positions {
                None => bloch.derivative_times(k, d, &above)?,
                Some(positions) => {
                    let axes = bloch.reciprocal()[d].iter().enumerate().filter(|(_, b)| **b != 0.0);
                    combined(axes.map(|(axis, b)| (*b, positions.velocity(bloch, k, axis))))?
                        .ok_or_else(|| Error::internal("a reciprocal vector of length zero"))?
                        .matmul(&above)?
                }
            };
            Ok(below.dagger().matmul(&moved)?.data().to_complex())
        };
        let (first, second) = (between(plane.directions[0])?, between(plane.directions[1])?);
        let empty = bloch.rows() - filled;
        for low in 0..filled {
            for high in 0..empty {
                let apart = l.energies[low] - l.energies[filled + high];
                let at = low * empty + high;
                sum -= 2.0 * (first[at] * second[at].conj()).im / (apart * apart);
            }
        }
        Ok((sum, l.energies))
    })?;
    check_gap(momenta.iter().zip(found.iter().map(|f| &f.1)), filled)?;
    let (hand, area) = (plane.hand(bloch), plane.area(bloch));
    let curvature: Vec<f64> = found.iter().map(|(sum, _)| hand * sum / area).collect();
    let mean = curvature.iter().sum::<f64>() / (n * n) as f64;
    let k = |second: bool| -> Vec<f64> {
        (0..n * n).map(|p| if second { p % n } else { p / n } as f64 / n as f64).collect()
    };
    Table::from_columns([("k1", k(false)), ("k2", k(true)), ("curvature", curvature)])?
        .with_report("chern", mean * area / TAU)
        .with_grid(n, n)
}

/// The Z2 invariant of the filled bands of a system with time reversal and half-integer spin, 0 or 1, by the motion of
/// the hybrid Wannier centres over half of the plane. How far all of them move together is the flux of the Berry
/// curvature, whose cells are refined as those of [`super::chern_number`].
///
/// # Errors
/// No gap, a spectrum without Kramers pairs, a plane that time reversal does not map to itself, and those of
/// [`super::chern_number`].
pub fn z2(bloch: &Bloch, filled: usize, plane: &Plane, task: &Task) -> Result<u8> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    check_time_reversal(bloch, filled, plane, task)?;
    Ok(u8::from(partners_change(bloch, filled, plane, task)?))
}

/// An error unless levels at k and -k are the same, and filled levels come in pairs where the two are one.
fn check_time_reversal(bloch: &Bloch, filled: usize, plane: &Plane, task: &Task) -> Result<()> {
    let none = |why: String| {
        Err(Error::input(format!("no time reversal of half-integer spin: {why}"))
            .hint("the Z2 invariant needs a model with spin whose levels come in Kramers pairs"))
    };
    if let Some(k) = plane.at.iter().find(|k| (2.0 * **k - (2.0 * **k).round()).abs() > 1e-12) {
        return Err(Error::input(format!("time reversal does not map the plane at {k} to itself"))
            .hint("`at` is 0.0 or 0.5 in every other direction"));
    }
    if filled % 2 == 1 {
        return none(format!("{filled} filled bands, an odd number"));
    }
    task.check()?;
    let mut width = 0.0f64;
    for (a, b) in [(0.137, 0.271), (0.411, 0.083), (0.229, 0.467)] {
        let (up, down) = (levels(bloch, &plane.momentum(a, b))?, levels(bloch, &plane.momentum(-a, -b))?);
        width = up.energies.iter().fold(width, |w, e| w.max(e.abs()));
        let off = up.energies.iter().zip(&down.energies).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
        if off > 1e-8 * width {
            return none(format!("levels at k and -k differ by {off:.1e}"));
        }
    }
    for (a, b) in [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5)] {
        let there = levels(bloch, &plane.momentum(a, b))?;
        let off = there.energies[..filled].chunks(2).fold(0.0f64, |m, pair| m.max(pair[1] - pair[0]));
        if off > 1e-8 * width {
            return none(format!("two levels of a pair differ by {off:.1e} at [{a}, {b}]"));
        }
    }
    Ok(())
}
