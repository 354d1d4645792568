//! Berry curvature and Z2 invariants of the filled bands.
//!
//! Signs: the Berry connection is A = i <u|du/dk>, the curvature dA_2/dk_1 - dA_1/dk_2, a Chern number its integral over
//! the zone divided by 2 pi.

use std::f64::consts::TAU;

use super::chern::chern_number;
use super::filled::{check_filled, check_gap};
use super::plane::Plane;
use super::wilson::coarse_loop;
use super::{at_each, keep, levels};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Table};
use crate::task::Task;

/// Points per direction of a grid or a loop, at first and at most.
const POINTS: usize = 16;
const MOST_POINTS: usize = 1024;
/// The Berry curvature of the filled bands on a grid of `n` x `n` momenta, from the derivatives of the Hamiltonian
/// (Xiao, Chang, Niu, RMP 82 (2010) 1959, equation 1.13): a table of `k1`, `k2` in units of the reciprocal vectors
/// and `curvature` in squared lattice constants. The report holds the Chern number that follows from the mean.
///
/// # Errors
/// As [`chern_number`].
pub fn berry_curvature(bloch: &Bloch, filled: usize, plane: &Plane, n: usize, task: &Task) -> Result<Table> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    if !(1..=1 << 14).contains(&n) {
        return Err(Error::input(format!("a grid of {n} points in each direction")));
    }
    keep(n * n, bloch.rows())?;
    let momenta: Vec<Vec<f64>> =
        (0..n * n).map(|p| plane.momentum((p / n) as f64 / n as f64, (p % n) as f64 / n as f64)).collect();
    let found = at_each(&momenta, "Berry curvature", task, |k| {
        let l = levels(bloch, k)?;
        let between = |d: usize| -> Result<Vec<C64>> {
            let inside = bloch.derivative(k, d)?.matmul(&l.vectors)?;
            Ok(l.vectors.dagger().matmul(&inside)?.data().to_complex())
        };
        let (first, second) = (between(plane.directions[0])?, between(plane.directions[1])?);
        let rows = bloch.rows();
        let mut sum = 0.0;
        for low in 0..filled {
            for high in filled..rows {
                let apart = l.energies[low] - l.energies[high];
                sum -= 2.0 * (first[low * rows + high] * second[high * rows + low]).im / (apart * apart);
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

/// The Z2 invariant of the filled bands of a system with time reversal and half-integer spin, 0 or 1, by the motion of the
/// hybrid Wannier centres over half of the plane (Soluyanov, Vanderbilt, PRB 83 (2011) 235401, equation 30). Grids are
/// refined until two agree and the centres move less than their gap from step to step.
///
/// # Errors
/// No gap, a spectrum without Kramers pairs, a plane that time reversal does not map to itself, and those of
/// [`super::wilson_loop`].
pub fn z2(bloch: &Bloch, filled: usize, plane: &Plane, task: &Task) -> Result<u8> {
    plane.check(bloch)?;
    check_filled(bloch, filled)?;
    check_time_reversal(bloch, filled, plane, task)?;
    // Time reversal turns the curvature round; this also finds a gap that closes anywhere.
    let chern = chern_number(bloch, filled, plane, POINTS, &task.quiet())?;
    if chern != 0 {
        return Err(Error::input(format!("no time reversal: the Chern number is {chern}"))
            .hint("`chern_number` is the invariant of a system without it"));
    }
    let [along, _] = plane.directions;
    let (mut steps, mut before) = (POINTS / 2, None);
    while steps <= MOST_POINTS {
        let mut centres = Vec::with_capacity(steps + 1);
        let progress = task.start("Z2 invariant", steps + 1);
        for j in 0..=steps {
            let k = plane.momentum(0.0, 0.5 * j as f64 / steps as f64);
            let others: Vec<f64> = (0..k.len()).filter(|d| *d != along).map(|d| k[d]).collect();
            let phases = coarse_loop(bloch, filled, along, &others, 2 * steps, &task.quiet())?;
            centres.push(phases.iter().map(|p| (p / TAU).rem_euclid(1.0)).collect::<Vec<f64>>());
            progress.advance(j + 1)?;
        }
        let (odd, smooth) = jumps(&centres);
        if smooth && before == Some(odd) {
            return Ok(u8::from(odd));
        }
        before = Some(odd);
        steps *= 2;
    }
    Err(Error::numeric("the Wannier centres cannot be followed: the Z2 invariant is not known")
        .hint("the gap is too small; near a transition no grid is fine enough"))
}

/// Whether the largest gap between the centres jumps over an odd number of them, and whether the steps are fine enough.
fn jumps(centres: &[Vec<f64>]) -> (bool, bool) {
    let (mut odd, mut smooth) = (false, true);
    for pair in centres.windows(2) {
        let ((here, size), (there, _)) = (widest(&pair[0]), widest(&pair[1]));
        for x in &pair[1] {
            let turned = |a: f64, b: f64| (TAU * (b - a)).sin();
            odd ^= turned(here, there) + turned(there, *x) + turned(*x, here) < 0.0;
            // A centre that comes close to the middle of the gap that was there has moved too far to be followed.
            let off = (x - here).rem_euclid(1.0);
            smooth &= off.min(1.0 - off) > 0.15 * size;
        }
    }
    (odd, smooth)
}

/// The middle of the largest gap between points of a circle of length one, and its size.
fn widest(points: &[f64]) -> (f64, f64) {
    let mut sorted = points.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let gap = |i: usize| if i + 1 < n { sorted[i + 1] - sorted[i] } else { sorted[0] + 1.0 - sorted[n - 1] };
    let best = (0..n).max_by(|&a, &b| gap(a).total_cmp(&gap(b))).unwrap_or(0);
    ((sorted[best] + 0.5 * gap(best)).rem_euclid(1.0), gap(best))
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

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn jumps_over_one_centre_are_odd() {
        // A pair that parts and meets its partners beyond the boundary: one centre crosses the gap.
        let winding: Vec<Vec<f64>> =
            (0..=8).map(|j| j as f64 / 16.0).map(|t| vec![t.rem_euclid(1.0), (-t).rem_euclid(1.0)]).collect();
        let still: Vec<Vec<f64>> =
            (0..=8).map(|j| 0.1 * (j as f64 / 8.0 * PI).sin()).map(|t| vec![t, 1.0 - t]).collect();
        assert!(jumps(&winding).0);
        assert!(!jumps(&still).0);
    }

    #[test]
    fn the_widest_gap_may_cross_the_end() {
        let (middle, size) = widest(&[0.3, 0.4, 0.5]);
        assert!((middle - 0.9).abs() < 1e-12 && (size - 0.8).abs() < 1e-12);
        assert!((widest(&[0.25]).0 - 0.75).abs() < 1e-12);
    }
}
