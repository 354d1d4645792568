//! Other observables: pair correlation function, structure factor, density. Each is the mean over the given walkers
//! with its standard error, by Student's distribution, as walkers are independent.

use std::f64::consts::PI;

use super::SimulationCell;
use super::jastrow::Setting;
use super::vectors::dot;
use crate::error::{Error, Result};
use crate::number::{Series, Table, memory, student};

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

/// Sums over walkers of some numbers, and of their squares.
struct Tally {
    walkers: usize,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Tally {
    fn new(numbers: usize) -> Tally {
        Tally { walkers: 0, sums: vec![0.0; numbers], squares: vec![0.0; numbers] }
    }

    /// Adds the numbers of one walker.
    fn add(&mut self, numbers: &[f64]) {
        self.walkers += 1;
        for ((sum, square), x) in self.sums.iter_mut().zip(&mut self.squares).zip(numbers) {
            *sum += x;
            *square += x * x;
        }
    }

    /// Mean and error of a number. Where no walker has counted anything, the error is that of a single count, `unit`.
    fn of(&self, k: usize, unit: f64) -> (f64, f64) {
        let n = self.walkers as f64;
        let mean = self.sums[k] / n;
        if self.squares[k] == 0.0 {
            return (mean, unit / n);
        }
        let spread = (self.squares[k] - n * mean * mean).max(0.0) / (n - 1.0);
        (mean, (spread / n).sqrt() * student::factor(self.walkers))
    }
}

/// Columns of means and of errors, from pairs.
fn split(pairs: &[(f64, f64)]) -> [Series; 2] {
    [Series::Real(pairs.iter().map(|p| p.0).collect()), Series::Real(pairs.iter().map(|p| p.1).collect())]
}

/// The pair correlation function g(r) up to `cutoff`: a Table of `r`, `total`, `same` and `opposite` (spins), and
/// their errors. In a cell, 1 stands for independent electrons; in open space the columns are densities of the
/// distance, whose integral is 1.
///
/// # Errors
/// For no bins or a cutoff that is not positive; in a cell, one that does not fit.
pub fn pair_correlation(
    walkers: Positions,
    setting: &Setting,
    bins: usize,
    cutoff: Option<f64>,
) -> Result<Table> {
    let fitting = setting.cell.as_ref().map(SimulationCell::wigner_seitz_radius);
    let Some(cutoff) = cutoff.or(fitting) else {
        return Err(Error::input("a pair correlation function in open space needs a cutoff")
            .hint("like `cutoff: 6.0`"));
    };
    if let Some(most) = fitting.filter(|most| cutoff > most * (1.0 + 1e-9)) {
        return Err(Error::input(format!("a cutoff of {cutoff} does not fit into the cell"))
            .hint(format!("it can be {most:.6} at most, half the shortest lattice vector")));
    }
    let width = edges(bins, 0.0, cutoff)?;
    // All, same and opposite spins.
    let mut tally = Tally::new(3 * bins);
    for positions in walkers {
        let mut counts = vec![0.0; 3 * bins];
        for i in 0..positions.len() {
            for j in 0..i {
                let d = std::array::from_fn(|k| positions[i][k] - positions[j][k]);
                let d = setting.cell.as_ref().map_or(d, |cell| cell.minimum_image(d));
                let bin = (dot(d, d).sqrt() / width) as usize;
                if bin < bins {
                    let kind = 1 + usize::from((i < setting.up) != (j < setting.up));
                    counts[bin] += 1.0;
                    counts[kind * bins + bin] += 1.0;
                }
            }
        }
        tally.add(&counts);
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
    let columns = |kind: usize, pairs: f64| {
        let of = |bin: usize| {
            let expected = pairs * share(bin);
            let (mean, error) = tally.of(kind * bins + bin, 1.0);
            if expected > 0.0 { (mean / expected, error / expected) } else { (0.0, 0.0) }
        };
        split(&(0..bins).map(of).collect::<Vec<_>>())
    };
    let [total, total_error] = columns(0, pairs[0] + pairs[1]);
    let [same, same_error] = columns(1, pairs[0]);
    let [opposite, opposite_error] = columns(2, pairs[1]);
    Table::from_columns([
        ("r", middles(bins, 0.0, width)),
        ("total", total),
        ("same", same),
        ("opposite", opposite),
        ("total_error", total_error),
        ("same_error", same_error),
        ("opposite_error", opposite_error),
    ])
}

/// The structure factor `S(k) = <|sum_j exp(-i k r_j)|^2> / N` at the reciprocal vectors up to `cutoff`, averaged over
/// those of one length: a Table of `k`, `S`, `vectors` (how many) and `S_error`.
///
/// # Errors
/// Without a cell, or for a cutoff below the shortest reciprocal vector.
pub fn structure_factor(walkers: Positions, setting: &Setting, cutoff: f64) -> Result<Table> {
    let Some(cell) = &setting.cell else {
        return Err(Error::input("a structure factor needs a periodic cell")
            .hint("in open space `pair_correlation` and `electron_density` tell where electrons are"));
    };
    // A cutoff on a shell has all of it.
    let cutoff = cutoff * (1.0 + 1e-12);
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
    // Lengths of shells, and their waves.
    let mut shells: Vec<(f64, Vec<[f64; 3]>)> = Vec::new();
    for (length, k) in waves {
        match shells.last_mut() {
            Some(last) if (last.0 - length).abs() < 1e-9 * length => last.1.push(k),
            _ => shells.push((length, vec![k])),
        }
    }
    let mut tally = Tally::new(shells.len());
    for positions in walkers {
        let of = |k: &[f64; 3]| {
            let (mut re, mut im) = (0.0, 0.0);
            for r in *positions {
                let (sin, cos) = dot(*k, *r).sin_cos();
                (re, im) = (re + cos, im - sin);
            }
            (re * re + im * im) / positions.len() as f64
        };
        let shell = |s: &(f64, Vec<[f64; 3]>)| s.1.iter().map(of).sum::<f64>() / s.1.len() as f64;
        tally.add(&shells.iter().map(shell).collect::<Vec<_>>());
    }
    let [s, error] = split(&(0..shells.len()).map(|k| tally.of(k, 0.0)).collect::<Vec<_>>());
    Table::from_columns([
        ("k", Series::Real(shells.iter().map(|s| s.0).collect())),
        ("S", s),
        ("vectors", Series::Real(shells.iter().map(|s| 2.0 * s.1.len() as f64).collect())),
        ("S_error", error),
    ])
}

/// The density along one direction: coordinate `axis` in open space, the fractional coordinate along a lattice vector
/// in a cell. A Table of `x`, `density`, `up` and `down` and their errors; the integral is the number of electrons.
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
    // All, up and down.
    let mut tally = Tally::new(3 * bins);
    for positions in walkers {
        let mut counts = vec![0.0; 3 * bins];
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
                counts[bin as usize] += 1.0;
                counts[(1 + usize::from(i >= setting.up)) * bins + bin as usize] += 1.0;
            }
        }
        tally.add(&counts);
    }
    let columns = |kind: usize, electrons: usize| {
        let of = |bin: usize| {
            let (mean, error) = tally.of(kind * bins + bin, if electrons > 0 { 1.0 } else { 0.0 });
            (mean / width, error / width)
        };
        split(&(0..bins).map(of).collect::<Vec<_>>())
    };
    let [density, density_error] = columns(0, setting.up + setting.down);
    let ([up, up_error], [down, down_error]) = (columns(1, setting.up), columns(2, setting.down));
    Table::from_columns([
        ("x", middles(bins, from, width)),
        ("density", density),
        ("up", up),
        ("down", down),
        ("density_error", density_error),
        ("up_error", up_error),
        ("down_error", down_error),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::philox::{unit, words};

    fn random(n: usize, cell: &SimulationCell, salt: u32) -> Vec<[f64; 3]> {
        let one = |i: usize| {
            let (a, b) = (words(1, salt, i as u64, 0), words(1, salt, i as u64, 1));
            cell.cartesian([unit(a[0], a[1]), unit(a[2], a[3]), unit(b[0], b[1])])
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn independent_electrons_have_no_correlations() {
        let cell = SimulationCell::new([[0.0, 2.0, 2.0], [2.0, 0.0, 2.0], [2.0, 2.0, 0.0]]).unwrap();
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
        let cell = SimulationCell::cubic(2.0).unwrap();
        let at = [[0.1, 0.0, 0.0], [1.1, 0.0, 0.0]];
        let setting = Setting { dimension: 3, cell: Some(cell), up: 2, down: 0 };
        let s = structure_factor(&[&at], &setting, 7.0).unwrap();
        // (1, 0, 0) cancels, (0, 1, 0) and (0, 0, 1) add up; so does (2, 0, 0).
        assert!((s.column("S").unwrap().as_real("").unwrap()[0] - 4.0 / 3.0).abs() < 1e-12);
    }

    /// The exact means lie within the error as often as within one standard deviation, for few walkers as for many.
    #[test]
    fn errors_cover_the_exact_means() {
        let cell = SimulationCell::cubic(2.0).unwrap();
        let setting = Setting { dimension: 3, cell: Some(cell.clone()), up: 12, down: 8 };
        for count in [3, 8, 40] {
            let (mut within, mut all) = ([0; 3], [0; 3]);
            for seed in 0..150 {
                let sets: Vec<Vec<[f64; 3]>> =
                    (0..count).map(|k| random(20, &cell, 10_000 + 100 * seed + k)).collect();
                let walkers: Vec<&[[f64; 3]]> = sets.iter().map(Vec::as_slice).collect();
                let g = pair_correlation(&walkers, &setting, 3, None).unwrap();
                let s = structure_factor(&walkers, &setting, 5.0).unwrap();
                let n = density(&walkers, &setting, 1, 4, None).unwrap();
                for (k, (table, name, exact)) in
                    [(&g, "same", 1.0), (&s, "S", 1.0), (&n, "up", 12.0)].into_iter().enumerate()
                {
                    let real = |name: &str| table.column(name).unwrap().as_real("").unwrap().to_vec();
                    let errors = real(&format!("{name}_error"));
                    for (mean, error) in real(name).iter().zip(&errors).skip(usize::from(k == 0)) {
                        within[k] += usize::from((mean - exact).abs() <= *error);
                        all[k] += 1;
                    }
                }
            }
            for k in 0..3 {
                let share = within[k] as f64 / all[k] as f64;
                assert!((share - 0.683).abs() < 0.09, "{count} walkers, observable {k}: {share}");
            }
        }
        let alone = random(20, &cell, 1);
        let n = density(&[&alone], &setting, 0, 2, None).unwrap();
        assert!(n.column("up_error").unwrap().as_real("").unwrap().iter().all(|e| e.is_nan()));
    }
}
