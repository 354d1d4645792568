//! The density of states of bands by linear interpolation in tetrahedra (triangles in two directions, segments in
//! one): Lehmann, Taut, phys. stat. sol. (b) 54 (1972) 469. The integrated densities are those of Bloechl, Jepsen,
//! Andersen, PRB 49 (1994) 16223, appendix A.

use super::size::one_level;
use super::{at_each, energies_at};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{Table, memory};
use crate::task::Task;

/// How a density of states is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DensityOptions {
    /// Momenta in each direction.
    pub grid: usize,
    /// Energies of the table.
    pub points: usize,
    /// Lowest and highest energy; the bands' own by default.
    pub range: Option<(f64, f64)>,
}

/// A table of `energy`, `density` (per energy and state, so that it integrates to one over all bands) and `states`,
/// the fraction of all states below the energy, with half of those that a flat part has there. Each density is the
/// mean over its energy step: that of a flat band stays finite, and the steps sum up to `states`.
///
/// # Errors
/// More than three periodic directions, an empty grid or range.
pub fn band_density(bloch: &Bloch, options: &DensityOptions, task: &Task) -> Result<Table> {
    let (d, n, rows) = (bloch.dimension(), options.grid, bloch.rows());
    if d > 3 {
        return Err(Error::input(format!("tetrahedra in {d} directions")).hint("there are three at most"));
    }
    let count = (n as u128).checked_pow(d as u32).unwrap_or(u128::MAX);
    if n == 0 || count > 1 << 40 {
        return Err(Error::input(format!("a grid of {n} momenta in each direction"))
            .hint("take one at least, and 2^40 in all at most"));
    }
    if !(2..=1 << 24).contains(&options.points) {
        return Err(Error::input(format!("{} energies", options.points)).hint("ask for two at least"));
    }
    if let Some((low, high)) = options.range
        && !(low < high && low.is_finite() && high.is_finite())
    {
        return Err(Error::input(format!("energies from {low} to {high}")).hint("the lower one comes first"));
    }
    memory::ensure(count * (8 * rows as u128 + 64), &format!("{rows} bands at {count} momenta"))?;
    let count = count as usize;
    let digit = |p: usize, k: usize| p / n.pow(k as u32) % n;
    let momenta: Vec<Vec<f64>> =
        (0..count).map(|p| (0..d).map(|k| digit(p, k) as f64 / n as f64).collect()).collect();
    let energies = at_each(&momenta, "bands", task, |k| energies_at(bloch, k))?;
    let (low, high) = options.range.unwrap_or_else(|| {
        let all = || energies.iter().flatten().copied();
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let margin = match 0.02 * (high - low) + 1e-9 * low.abs().max(high.abs()) {
            // Bands that are zero everywhere have a width too.
            0.0 => 1e-9,
            margin => margin,
        };
        (low - margin, high + margin)
    });
    let step = (high - low) / (options.points - 1) as f64;
    // Energies alternate with the edges of their steps, half a step below and above.
    let edges = 2 * options.points;
    let edge = |i: usize| low + 0.5 * (i as f64 - 1.0) * step;
    let simplices = simplices(d);
    let share = 1.0 / (count * simplices.len() * rows) as f64;
    // `partial`: the part below each edge of the simplices that it cuts. `whole`: the simplices that lie below,
    // counted at the first edge above them.
    let mut partial = vec![0.0; edges + 1];
    let mut whole = vec![0.0; edges + 2];
    let steps = task.start("tetrahedra", count);
    let mut corners = vec![0.0; d + 1];
    // The edges of the steps are rounded, too.
    let one = one_level(bloch) + 4.0 * f64::EPSILON * low.abs().max(high.abs());
    for p in 0..count {
        if p.is_multiple_of(1024) {
            steps.advance(p)?;
        }
        for simplex in &simplices {
            let places: Vec<usize> = simplex
                .iter()
                .map(|corner| {
                    (0..d)
                        .map(|k| (digit(p, k) + usize::from(corner >> k & 1 == 1)) % n * n.pow(k as u32))
                        .sum()
                })
                .collect();
            for band in 0..rows {
                corners.iter_mut().zip(&places).for_each(|(e, place)| *e = energies[*place][band]);
                corners.sort_by(f64::total_cmp);
                let flat = corners[d] - corners[0] <= one;
                // Rounding does not decide on which side of an edge a flat one lies.
                let (from, to) =
                    if flat { (corners[0] - one, corners[d] + one) } else { (corners[0], corners[d]) };
                let first = (2.0 * (from - low) / step + 1.0).ceil().max(0.0) as usize;
                let mut i = first.min(edges + 1);
                while i <= edges && edge(i) < to {
                    partial[i] += share * if flat { 0.5 } else { below(&corners, edge(i)) };
                    i += 1;
                }
                whole[i.min(edges + 1)] += share;
            }
        }
    }
    let mut passed = 0.0;
    let sums: Vec<f64> = (0..=edges)
        .map(|i| {
            passed += whole[i];
            passed + partial[i]
        })
        .collect();
    let energy: Vec<f64> = (0..options.points).map(|i| low + i as f64 * step).collect();
    let density: Vec<f64> = (0..options.points).map(|i| (sums[2 * i + 2] - sums[2 * i]) / step).collect();
    let states: Vec<f64> = (0..options.points).map(|i| sums[2 * i + 1]).collect();
    Table::from_columns([("energy", energy), ("density", density), ("states", states)])
}

/// The simplices that a cell of the grid is cut into: paths along its edges from one corner to the opposite one. A
/// corner is a bit pattern, with a bit for each direction.
fn simplices(d: usize) -> Vec<Vec<usize>> {
    let mut found = vec![vec![0]];
    for _ in 0..d {
        found = found
            .iter()
            .flat_map(|path: &Vec<usize>| {
                let last = path[path.len() - 1];
                (0..d)
                    .filter(move |k| last >> k & 1 == 0)
                    .map(move |k| [&path[..], &[last | 1 << k]].concat())
            })
            .collect();
    }
    found
}

/// The fraction of a simplex below the energy `x`; `e` are the energies of its corners, ascending.
fn below(e: &[f64], x: f64) -> f64 {
    let (Some(&least), Some(&most)) = (e.first(), e.last()) else { return 0.0 };
    if x <= least {
        return 0.0;
    }
    // From 0 to 1: products of energies in large and in small units would have no numbers.
    let part = |y: f64| (y - least) / (most - least);
    let x = part(x);
    if x >= 1.0 {
        return 1.0;
    }
    match *e {
        [_, _] => x,
        [_, b, _] => {
            let (a, b, c) = (0.0, part(b), 1.0);
            if x < b {
                (x - a).powi(2) / ((b - a) * (c - a))
            } else {
                1.0 - (c - x).powi(2) / ((c - a) * (c - b))
            }
        }
        [_, b, c, _] => {
            let (a, b, c, d) = (0.0, part(b), part(c), 1.0);
            if x < b {
                (x - a).powi(3) / ((b - a) * (c - a) * (d - a))
            } else if x < c {
                let y = x - b;
                let bent = ((c - a) + (d - b)) / ((c - b) * (d - b));
                ((b - a).powi(2) + 3.0 * (b - a) * y + 3.0 * y * y - bent * y.powi(3)) / ((c - a) * (d - a))
            } else {
                1.0 - (d - x).powi(3) / ((d - a) * (d - b) * (d - c))
            }
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simplices_fill_the_cell() {
        assert_eq!([1, 2, 3].map(|d| simplices(d).len()), [1, 2, 6]);
        assert!(simplices(3).iter().all(|s| s.first() == Some(&0) && s.last() == Some(&7) && s.len() == 4));
    }

    #[test]
    fn what_lies_below_agrees_with_counting() {
        // Points of the simplex x1 + .. + xd <= 1 on a fine grid of centres.
        for corners in
            [vec![0.1, 0.7], vec![-0.3, 0.2, 0.9], vec![-1.0, -0.2, 0.3, 0.8], vec![0.0, 0.0, 0.5, 1.0]]
        {
            let (d, n) = (corners.len() - 1, 60usize);
            for x in [0.15, 0.35, 0.6, 0.75] {
                let (mut all, mut under) = (0.0, 0.0);
                for p in 0..n.pow(d as u32) {
                    let u: Vec<f64> =
                        (0..d).map(|k| ((p / n.pow(k as u32) % n) as f64 + 0.5) / n as f64).collect();
                    let rest = 1.0 - u.iter().sum::<f64>();
                    if rest < 0.0 {
                        continue;
                    }
                    let e = rest * corners[0] + u.iter().zip(&corners[1..]).map(|(u, e)| u * e).sum::<f64>();
                    all += 1.0;
                    under += f64::from(u8::from(e < x));
                }
                // Energies that are one within rounding.
                let beside = [vec![x.next_down()], vec![x; corners.len() - 2], vec![x.next_up()]].concat();
                assert!((0.0..=1.0).contains(&below(&beside, x)), "{beside:?}");
                for unit in [1e300, 1e-300] {
                    let scaled: Vec<f64> = corners.iter().map(|e| unit * e).collect();
                    assert!((below(&scaled, unit * x) - below(&corners, x)).abs() < 1e-12, "{corners:?} {x}");
                }
                if x > corners[0] && x < corners[d] {
                    assert!((below(&corners, x) - under / all).abs() < 0.03, "{corners:?} {x}");
                }
            }
        }
    }
}
