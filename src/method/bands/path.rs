//! Bands along a path of momenta.

use super::size::one_level;
use super::{Levels, at_each, energies_at, keep, levels};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix, Series, Table};
use crate::task::Task;

/// A path through the Brillouin zone, and what is asked for along it.
#[derive(Debug, Clone, Default)]
pub struct BandOptions {
    /// Names and places of the corners, in units of the reciprocal vectors, of each piece of the path. Where a piece
    /// ends, the next begins at the same length.
    pub pieces: Vec<Vec<(String, Vec<f64>)>>,
    /// Steps of the whole path; every corner is one of its points.
    pub points: usize,
    /// Names of groups of rows of the cell, whose weight in each state is asked for.
    pub groups: Vec<(String, Vec<usize>)>,
    /// Whether the velocities along the path are asked for.
    pub velocities: bool,
}

/// A table along a path: `k`, the length of the path so far in inverse lattice constants; `band1`, `band2`, ...,
/// ascending; `band1_NAME`, ... for the weight of each group; `velocity1`, ..., the derivative of each band by `k`. The
/// report holds the places of the corners as `ticks`, which plots write below the axis.
///
/// # Errors
/// Pieces of fewer than two corners or no points, corners of another dimension, rows that the cell does not have.
pub fn bands(bloch: &Bloch, options: &BandOptions, task: &Task) -> Result<Table> {
    let fewest = options.pieces.iter().map(Vec::len).min().unwrap_or(0);
    if fewest < 2 {
        return Err(Error::input(format!("a path of {fewest} corners"))
            .hint("write it like `path: [[\"G\", [0.0, 0.0]], [\"X\", [0.5, 0.0]]]`"));
    }
    let d = bloch.dimension();
    for (name, k) in options.pieces.iter().flatten() {
        if k.len() != d || k.iter().any(|x| !x.is_finite()) {
            return Err(Error::input(format!("corner `{name}` at {k:?} of a path in {d} directions"))
                .hint("a momentum has one finite number for every periodic direction"));
        }
    }
    for (name, rows) in &options.groups {
        if let Some(row) = rows.iter().find(|row| **row >= bloch.rows()) {
            return Err(Error::input(format!("row {row} of `{name}` in a cell of {} rows", bloch.rows()))
                .hint("rows are counted from 0: the site in the cell times the orbitals, and the orbital"));
        }
        if let Some(row) = rows.iter().enumerate().find(|(i, row)| rows[..*i].contains(row)).map(|r| r.1) {
            return Err(Error::input(format!("row {row} stands twice in the group `{name}`"))
                .hint("name every row once"));
        }
    }
    let path = Path::new(bloch, &options.pieces, options.points)?;
    let n = bloch.rows();
    let vectors = options.velocities || !options.groups.is_empty();
    keep(path.momenta.len(), if vectors { n * (n + 1) } else { n })?;
    let found = at_each(&path.momenta, "bands", task, |k| match vectors {
        true => levels(bloch, k),
        false => Ok(Levels { energies: energies_at(bloch, k)?, vectors: Matrix::zeros(n, 0)? }),
    })?;
    let mut table = Table::from_columns([("k", path.lengths.clone())])?;
    for band in 0..n {
        let energies: Vec<f64> = found.iter().map(|l| l.energies[band]).collect();
        table = table.with_column(format!("band{}", band + 1), energies)?;
    }
    // Weights and velocities of levels that are one are those of all its states together.
    let close = one_level(bloch);
    for (name, rows) in &options.groups {
        let weights: Vec<Vec<f64>> = found.iter().map(|l| weights(l, rows, close)).collect();
        for band in 0..n {
            let own: Vec<f64> = weights.iter().map(|w| w[band]).collect();
            table = table.with_column(format!("band{}_{name}", band + 1), own)?;
        }
    }
    if options.velocities {
        let points: Vec<Vec<f64>> = (0..path.momenta.len()).map(|i| vec![i as f64]).collect();
        let slopes = at_each(&points, "velocities", task, |i| {
            let i = i[0] as usize;
            slopes(bloch, &path.momenta[i], &path.directions[i], &found[i], close)
        })?;
        for band in 0..n {
            let column: Vec<f64> = slopes.iter().map(|v| v[band]).collect();
            table = table.with_column(format!("velocity{}", band + 1), column)?;
        }
    }
    let ticks: Vec<serde_json::Value> =
        path.ticks.iter().map(|(x, name)| serde_json::json!([x, name])).collect();
    Ok(table.with_report("ticks", ticks))
}

/// The points of a path.
struct Path {
    momenta: Vec<Vec<f64>>,
    lengths: Vec<f64>,
    /// Direction of the velocity at each point: that of the segment it ends, of length one in `lengths`.
    directions: Vec<Vec<f64>>,
    ticks: Vec<(f64, String)>,
}

impl Path {
    fn new(bloch: &Bloch, pieces: &[Vec<(String, Vec<f64>)>], points: usize) -> Result<Path> {
        let step = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<f64>>();
        let mut whole = 0.0;
        for pair in pieces.iter().flat_map(|corners| corners.windows(2)) {
            let size = bloch.length(&step(&pair[0].1, &pair[1].1));
            if !(size > 0.0) {
                return Err(Error::input(format!(
                    "corners `{}` and `{}` of the path are one point",
                    pair[0].0, pair[1].0
                ))
                .hint("a path goes on at every corner"));
            }
            whole += size;
        }
        if points == 0 || points > 1 << 24 {
            return Err(Error::input(format!("a path of {points} points"))
                .hint("take one at least, and 2^24 at most"));
        }
        let mut path =
            Path { momenta: Vec::new(), lengths: Vec::new(), directions: Vec::new(), ticks: Vec::new() };
        let mut start = 0.0;
        for corners in pieces {
            if let Some((name, _)) = corners.first() {
                match path.ticks.last_mut() {
                    Some((_, before)) => *before += &format!("|{name}"),
                    None => path.ticks.push((0.0, name.clone())),
                }
            }
            for (i, pair) in corners.windows(2).enumerate() {
                let side = step(&pair[0].1, &pair[1].1);
                let size = bloch.length(&side);
                let parts = ((points as f64 * size / whole).round() as usize).max(1);
                // The first point of a side after another is the last one of that.
                for j in usize::from(i > 0)..=parts {
                    let t = j as f64 / parts as f64;
                    path.momenta.push(match j == parts {
                        true => pair[1].1.clone(),
                        false => pair[0].1.iter().zip(&side).map(|(a, s)| a + t * s).collect(),
                    });
                    path.lengths.push(start + t * size);
                    path.directions.push(side.iter().map(|x| x / size).collect());
                }
                start += size;
                path.ticks.push((start, pair[1].0.clone()));
            }
        }
        Ok(path)
    }
}

/// The weight of rows in each state; the mean over states of one energy,
/// which only together are those of a basis or another.
fn weights(levels: &Levels, rows: &[usize], close: f64) -> Vec<f64> {
    let n = levels.energies.len();
    let all = levels.vectors.data();
    let one =
        |band| rows.iter().filter_map(|row| all.get(row * n + band)).map(|z| z.to_c64().norm_sqr()).sum();
    let each: Vec<f64> = (0..n).map(one).collect();
    let mut found = Vec::with_capacity(n);
    while found.len() < n {
        let first = found.len();
        let same = multiplet(&levels.energies[first..], close);
        let mean = each[first..first + same].iter().sum::<f64>() / same as f64;
        found.resize(first + same, mean);
    }
    found
}

/// How many of the lowest of these energies are one.
fn multiplet(energies: &[f64], close: f64) -> usize {
    energies.windows(2).take_while(|w| w[1] - w[0] <= close).count() + 1
}

/// The derivatives of all levels along a direction (in units of the reciprocal vectors). Those of degenerate levels
/// are the eigenvalues of the derivative among them, ascending.
fn slopes(bloch: &Bloch, k: &[f64], direction: &[f64], levels: &Levels, close: f64) -> Result<Vec<f64>> {
    let n = bloch.rows();
    let mut derivative = Matrix::zeros(n, n)?;
    for (d, step) in direction.iter().enumerate().filter(|(_, step)| **step != 0.0) {
        derivative = derivative.add(&bloch.derivative(k, d)?.scale((*step).into()))?;
    }
    let between = levels.vectors.dagger().matmul(&derivative.matmul(&levels.vectors)?)?;
    let all = between.data().to_complex();
    let mut found = Vec::with_capacity(n);
    while found.len() < n {
        let first = found.len();
        let same = multiplet(&levels.energies[first..], close);
        let among: Vec<C64> = (first..first + same)
            .flat_map(|i| (first..first + same).map(move |j| (i, j)))
            .map(|(i, j)| all[i * n + j])
            .collect();
        let block = Matrix::new(same, same, Series::Complex(among))?;
        let hermitian = block.add(&block.dagger())?.scale(0.5.into());
        found.extend(hermitian.eigh()?.0.as_real("velocities")?);
    }
    Ok(found)
}
