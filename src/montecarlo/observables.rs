//! What else walkers tell: pair correlation function, structure factor, density. Each is the mean over the walkers given.

use std::f64::consts::PI;

use super::Cell;
use super::cell::dot;
use super::jastrow::Setting;
use crate::error::{Error, Result};
use crate::number::{Series, Table, memory};

/// Positions of several walkers.
pub type Positions<'a> = &'a [&'a [[f64; 3]]];

fn edges(bins: usize, from: f64, to: f64) -> Result<f64> {
    if bins == 0 || !(to > from) || !from.is_finite() || !to.is_finite() {
        return Err(Error::input(format!("{bins} bins from {from} to {to}"))
            .hint("there is one bin at least, and the range ascends"));
    }
    memory::ensure(40 * bins as u128, &format!("a histogram of {bins} bins"))?;
    Ok((to - from) / bins as f64)
}

fn middles(bins: usize, from: f64, width: f64) -> Series {
    Series::Real((0..bins).map(|b| from + (b as f64 + 0.5) * width).collect())
}

/// The pair correlation function g(r) up to `cutoff`: a Table of `r`, `total`, `same` and `opposite` (spins). In a cell, 1
/// stands for independent electrons; in open space the columns are densities of the distance, whose integral is 1.
///
/// # Errors
/// For no bins or a cutoff that is not positive; in a cell, one that does not fit.
pub fn pair_correlation(
    walkers: Positions,
    setting: &Setting,
    bins: usize,
    cutoff: Option<f64>,
) -> Result<Table> {
    let fitting = setting.cell.as_ref().map(Cell::wigner_seitz_radius);
    let Some(cutoff) = cutoff.or(fitting) else {
        return Err(Error::input("a pair correlation function in open space needs a cutoff")
            .hint("like `cutoff: 6.0`"));
    };
    if let Some(most) = fitting.filter(|most| cutoff > most * (1.0 + 1e-9)) {
        return Err(Error::input(format!("a cutoff of {cutoff} does not fit into the cell"))
            .hint(format!("it can be {most:.6} at most, half the shortest lattice vector")));
    }
    let width = edges(bins, 0.0, cutoff)?;
    // Same and opposite spins.
    let mut counts = [vec![0.0; bins], vec![0.0; bins]];
    for positions in walkers {
        for i in 0..positions.len() {
            for j in 0..i {
                let d = std::array::from_fn(|k| positions[i][k] - positions[j][k]);
                let d = setting.cell.as_ref().map_or(d, |cell| cell.minimum_image(d));
                let bin = (dot(d, d).sqrt() / width) as usize;
                if bin < bins {
                    counts[usize::from((i < setting.up) != (j < setting.up))][bin] += 1.0;
                }
            }
        }
    }
    let half = |n: usize| (n * n.saturating_sub(1)) as f64 / 2.0;
    let pairs = [half(setting.up) + half(setting.down), (setting.up * setting.down) as f64];
    let share = |bin: usize| match &setting.cell {
        Some(cell) => {
            let (low, high) = (bin as f64 * width, (bin as f64 + 1.0) * width);
            4.0 / 3.0 * PI * (high.powi(3) - low.powi(3)) / cell.volume()
        }
        None => width,
    };
    let column = |counts: &dyn Fn(usize) -> f64, pairs: f64| {
        let of = |bin: usize| {
            let expected = pairs * share(bin) * walkers.len() as f64;
            if expected > 0.0 { counts(bin) / expected } else { 0.0 }
        };
        Series::Real((0..bins).map(of).collect())
    };
    let both = |bin: usize| counts[0][bin] + counts[1][bin];
    Table::from_columns([
        ("r", middles(bins, 0.0, width)),
        ("total", column(&both, pairs[0] + pairs[1])),
        ("same", column(&|bin| counts[0][bin], pairs[0])),
        ("opposite", column(&|bin| counts[1][bin], pairs[1])),
    ])
}

/// The structure factor `S(k) = <|sum_j exp(-i k r_j)|^2> / N` at the reciprocal vectors up to `cutoff`, averaged over those
/// of one length: a Table of `k`, `S` and `vectors` (how many).
///
/// # Errors
/// Without a cell, or for a cutoff below the shortest reciprocal vector.
pub fn structure_factor(walkers: Positions, setting: &Setting, cutoff: f64) -> Result<Table> {
    let Some(cell) = &setting.cell else {
        return Err(Error::input("a structure factor needs a periodic cell"));
    };
    let b = cell.reciprocal();
    let reach: [i32; 3] = std::array::from_fn(|a| {
        let edge = cell.vectors()[a];
        (cutoff * dot(edge, edge).sqrt() / (2.0 * PI)).floor() as i32
    });
    if reach.iter().any(|n| *n > 200) {
        return Err(
            Error::input(format!("a structure factor up to k = {cutoff}")).hint("take a smaller cutoff")
        );
    }
    let mut waves: Vec<(f64, [f64; 3])> = Vec::new();
    for x in 0..=reach[0] {
        for y in -reach[1]..=reach[1] {
            for z in -reach[2]..=reach[2] {
                // One of each pair k, -k.
                if (x, y, z) <= (0, 0, 0) {
                    continue;
                }
                let n = [x, y, z].map(f64::from);
                let k: [f64; 3] = std::array::from_fn(|i| (0..3).map(|a| n[a] * b[a][i]).sum());
                let length = dot(k, k).sqrt();
                if length <= cutoff {
                    waves.push((length, k));
                }
            }
        }
    }
    if waves.is_empty() {
        return Err(
            Error::input(format!("no reciprocal vector up to k = {cutoff}")).hint("take a larger cutoff")
        );
    }
    waves.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut shells: Vec<(f64, f64, f64)> = Vec::new();
    for (length, k) in waves {
        let mut sum = 0.0;
        for positions in walkers {
            let (mut re, mut im) = (0.0, 0.0);
            for r in *positions {
                let (sin, cos) = dot(k, *r).sin_cos();
                (re, im) = (re + cos, im - sin);
            }
            sum += (re * re + im * im) / positions.len() as f64;
        }
        let s = sum / walkers.len() as f64;
        match shells.last_mut() {
            Some(last) if (last.0 - length).abs() < 1e-9 * length => {
                (last.1, last.2) = (last.1 + s, last.2 + 1.0);
            }
            _ => shells.push((length, s, 1.0)),
        }
    }
    let column = |f: &dyn Fn(&(f64, f64, f64)) -> f64| Series::Real(shells.iter().map(f).collect());
    Table::from_columns([
        ("k", column(&|s| s.0)),
        ("S", column(&|s| s.1 / s.2)),
        ("vectors", column(&|s| 2.0 * s.2)),
    ])
}

/// The density along one direction: coordinate `axis` in open space, the fractional coordinate along a lattice vector in a
/// cell. A Table of `x`, `density`, `up` and `down`; the integral is the number of electrons.
///
/// # Errors
/// For no bins, an empty range or an axis that is not 0, 1 or 2.
pub fn density(
    walkers: Positions,
    setting: &Setting,
    axis: usize,
    bins: usize,
    range: Option<(f64, f64)>,
) -> Result<Table> {
    if axis >= setting.dimension {
        return Err(Error::input(format!("axis {axis} in {} dimensions", setting.dimension))
            .hint(format!("axes are numbered from 0 to {}", setting.dimension - 1)));
    }
    let (from, to) = match (range, &setting.cell) {
        (Some(range), _) => range,
        (None, Some(_)) => (0.0, 1.0),
        (None, None) => {
            return Err(
                Error::input("a density in open space needs its range").hint("like `from: -5.0, to: 5.0`")
            );
        }
    };
    let width = edges(bins, from, to)?;
    let mut counts = [vec![0.0; bins], vec![0.0; bins]];
    for positions in walkers {
        for (i, r) in positions.iter().enumerate() {
            let x = match &setting.cell {
                Some(cell) => {
                    let f = cell.fractional(*r)[axis];
                    f - f.floor()
                }
                None => r[axis],
            };
            let bin = ((x - from) / width).floor();
            if bin >= 0.0 && bin < bins as f64 {
                counts[usize::from(i >= setting.up)][bin as usize] += 1.0;
            }
        }
    }
    let scale = 1.0 / (width * walkers.len() as f64);
    let column = |f: &dyn Fn(usize) -> f64| Series::Real((0..bins).map(|b| scale * f(b)).collect());
    Table::from_columns([
        ("x", middles(bins, from, width)),
        ("density", column(&|b| counts[0][b] + counts[1][b])),
        ("up", column(&|b| counts[0][b])),
        ("down", column(&|b| counts[1][b])),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::philox::{unit, words};

    fn random(n: usize, cell: &Cell, salt: u32) -> Vec<[f64; 3]> {
        let one = |i: usize| {
            let (a, b) = (words(1, salt, i as u64, 0), words(1, salt, i as u64, 1));
            cell.cartesian([unit(a[0], a[1]), unit(a[2], a[3]), unit(b[0], b[1])])
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn independent_electrons_have_no_correlations() {
        let cell = Cell::new([[0.0, 2.0, 2.0], [2.0, 0.0, 2.0], [2.0, 2.0, 0.0]]).unwrap();
        let all: Vec<Vec<[f64; 3]>> = (0..400).map(|k| random(20, &cell, 100 + k)).collect();
        let walkers: Vec<&[[f64; 3]]> = all.iter().map(Vec::as_slice).collect();
        let setting = Setting { dimension: 3, cell: Some(cell), up: 12, down: 8 };
        let g = pair_correlation(&walkers, &setting, 4, None).unwrap();
        for name in ["total", "same", "opposite"] {
            let outer = g.column(name).unwrap().as_real("g").unwrap()[1..].to_vec();
            assert!(outer.iter().all(|x| (x - 1.0).abs() < 0.1), "{name} {outer:?}");
        }
        let s = structure_factor(&walkers, &setting, 4.0).unwrap();
        assert_eq!(s.column("vectors").unwrap().as_real("").unwrap()[0], 8.0);
        assert!(s.column("S").unwrap().as_real("").unwrap().iter().all(|x| (x - 1.0).abs() < 0.2));
        let n = density(&walkers, &setting, 1, 5, None).unwrap();
        assert!((n.column("density").unwrap().sum().re() / 5.0 - 20.0).abs() < 1e-9);
        assert!((n.column("up").unwrap().sum().re() / 5.0 - 12.0).abs() < 1e-9);
        assert!(pair_correlation(&walkers, &setting, 4, Some(9.0)).is_err());
        assert!(
            density(&walkers, &setting, 3, 5, None).is_err()
                && structure_factor(&walkers, &setting, 0.1).is_err()
        );
    }

    #[test]
    fn a_lattice_scatters_where_it_should() {
        let cell = Cell::cubic(2.0).unwrap();
        let at = [[0.1, 0.0, 0.0], [1.1, 0.0, 0.0]];
        let setting = Setting { dimension: 3, cell: Some(cell), up: 2, down: 0 };
        let s = structure_factor(&[&at], &setting, 7.0).unwrap();
        // (1, 0, 0) cancels, (0, 1, 0) and (0, 0, 1) add up; so does (2, 0, 0).
        assert!((s.column("S").unwrap().as_real("").unwrap()[0] - 4.0 / 3.0).abs() < 1e-12);
    }
}
