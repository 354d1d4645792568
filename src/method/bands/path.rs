//! Bands along a path of momenta.

use super::{Levels, at_each, energies_at, keep, levels};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix, Series, Table};
use crate::task::Task;

/// A path through the Brillouin zone, and what is asked for along it.
#[derive(Debug, Clone, Default)]
pub struct BandOptions {
    /// Names and places of the corners, in units of the reciprocal vectors.
    pub corners: Vec<(String, Vec<f64>)>,
    /// Steps of the whole path; every corner is one of its points.
    pub points: usize,
    /// Names of groups of rows of the cell, whose weight in each state is asked for.
    pub groups: Vec<(String, Vec<usize>)>,
    /// Whether the velocities along the path are asked for.
    pub velocities: bool,
}

/// Levels closer than this fraction of the largest |energy| count as degenerate for velocities.
const DEGENERATE: f64 = 1e-9;

/// A table along a path: `k`, the length of the path so far in inverse lattice constants; `band1`, `band2`, ..., ascending;
/// `band1_NAME`, ... for the weight of each group; `velocity1`, ..., the derivative of each band by `k`. The report holds
/// the places of the corners as `ticks`, which plots write below the axis.
///
/// # Errors
/// Fewer than two corners or no points, corners of another dimension, rows that the cell does not have.
pub fn bands(bloch: &Bloch, options: &BandOptions, task: &Task) -> Result<Table> {
    let corners = &options.corners;
    if corners.len() < 2 {
        return Err(Error::input(format!("a path of {} corners", corners.len()))
            .hint("write it like `path: [[\"G\", [0.0, 0.0]], [\"X\", [0.5, 0.0]]]`"));
    }
    let d = bloch.dimension();
    for (name, k) in corners {
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
    }
    let path = Path::new(bloch, corners, options.points)?;
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
    for (name, rows) in &options.groups {
        for band in 0..n {
            let weights = found.iter().map(|l| weight(l, band, rows));
            table = table.with_column(format!("band{}_{name}", band + 1), weights.collect::<Vec<f64>>())?;
        }
    }
    if options.velocities {
        let width = found.iter().flat_map(|l| &l.energies).fold(0.0f64, |w, e| w.max(e.abs()));
        let points: Vec<Vec<f64>> = (0..path.momenta.len()).map(|i| vec![i as f64]).collect();
        let slopes = at_each(&points, "velocities", task, |i| {
            let i = i[0] as usize;
            slopes(bloch, &path.momenta[i], &path.directions[i], &found[i], DEGENERATE * width)
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
    fn new(bloch: &Bloch, corners: &[(String, Vec<f64>)], points: usize) -> Result<Path> {
        let step = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<f64>>();
        let sides: Vec<Vec<f64>> = corners.windows(2).map(|w| step(&w[0].1, &w[1].1)).collect();
        let sizes: Vec<f64> = sides.iter().map(|side| bloch.length(side)).collect();
        let whole: f64 = sizes.iter().sum();
        if let Some(i) = sizes.iter().position(|size| !(*size > 0.0)) {
            return Err(Error::input(format!(
                "corners `{}` and `{}` of the path are one point",
                corners[i].0,
                corners[i + 1].0
            ))
            .hint("a path goes on at every corner"));
        }
        if points == 0 || points > 1 << 24 {
            return Err(Error::input(format!("a path of {points} points")));
        }
        let mut path = Path {
            momenta: vec![corners[0].1.clone()],
            lengths: vec![0.0],
            directions: vec![sides[0].iter().map(|x| x / sizes[0]).collect()],
            ticks: vec![(0.0, corners[0].0.clone())],
        };
        let mut start = 0.0;
        for (i, (side, size)) in sides.iter().zip(&sizes).enumerate() {
            let parts = ((points as f64 * size / whole).round() as usize).max(1);
            for j in 1..=parts {
                let t = j as f64 / parts as f64;
                let k = if j == parts {
                    corners[i + 1].1.clone()
                } else {
                    corners[i].1.iter().zip(side).map(|(a, s)| a + t * s).collect()
                };
                path.momenta.push(k);
                path.lengths.push(start + t * size);
                path.directions.push(side.iter().map(|x| x / size).collect());
            }
            start += size;
            path.ticks.push((start, corners[i + 1].0.clone()));
        }
        Ok(path)
    }
}

/// The weight of rows in a state.
fn weight(levels: &Levels, band: usize, rows: &[usize]) -> f64 {
    let n = levels.energies.len();
    let all = levels.vectors.data();
    rows.iter().filter_map(|row| all.get(row * n + band)).map(|z| z.to_c64().norm_sqr()).sum()
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
        let same = levels.energies[first..].windows(2).take_while(|w| w[1] - w[0] <= close).count() + 1;
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
