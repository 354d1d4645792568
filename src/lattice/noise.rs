//! Gaussian random numbers at points in space whose covariance is a Gaussian of their distance.
//!
//! White noise on a fine grid of its own, smeared with `exp(-r^2/length^2)`: the sums over the grid approximate
//! integrals to 1e-5, since the Fourier transform of a Gaussian is small at the grid's reciprocal vectors. Sums over
//! the sites would not approximate integrals if the length is about their distance, nor at the ends of a sample.

use super::lattice::Lattice;
use crate::backend::matrix::Wrap;
use crate::error::Result;
use crate::number::memory;
use crate::task::{self, Task, parallel};

/// Noise is smeared as far as this many lengths, where the Gaussian is exp(-9).
const REACH: f64 = 3.0;
/// Turns a length of the grid's shortest reciprocal vector: the sums are off by exp(-pi^2 FINE^2/2).
const FINE: f64 = 1.6;
/// Points of the grid a site above which it is worth a look whether the sites know anything of each other.
const MANY: f64 = 64.0;
/// Sites this many lengths apart have correlations of 1e-6 at most.
const ALONE: f64 = 5.3;
/// Sites between two looks at the clock.
const PART: usize = 1 << 14;

/// One direction of the grid.
struct Axis {
    /// From a point to the next.
    step: Vec<f64>,
    /// What turns a position into a number of steps.
    inverse: Vec<f64>,
    /// The first point, and how many there are; around the boundary the first follows the last.
    first: i64,
    count: i64,
    periodic: bool,
}

/// The directions of the grid: along the sample, and across it where sites lie beside each other in more dimensions
/// than the lattice has. `steps` are those along each direction of the sample, a cell.
fn axes(lattice: &Lattice, steps: &[f64], spacing: f64) -> Vec<Axis> {
    let space = lattice.space();
    let mut axes = Vec::new();
    for (d, &steps) in steps.iter().enumerate() {
        let periodic = lattice.wrap()[d] != Wrap::Open;
        axes.push(Axis {
            step: lattice.vectors[d].iter().map(|x| x / steps).collect(),
            inverse: lattice.inverse[d].iter().map(|x| x * steps).collect(),
            first: 0,
            count: if periodic { (steps * lattice.cells()[d] as f64).round() as i64 } else { 1 },
            periodic,
        });
    }
    // What of each Cartesian axis stands across all directions so far.
    let mut across: Vec<Vec<f64>> = Vec::new();
    for axis in 0..space {
        let mut unit = vec![0.0; space];
        unit[axis] = 1.0;
        let mut rest = unit.clone();
        for (vector, row) in lattice.vectors.iter().zip(lattice.inverse.iter()) {
            rest.iter_mut().zip(vector).for_each(|(x, v)| *x -= row[axis] * v);
        }
        for known in &across {
            let along: f64 = known.iter().zip(&unit).map(|(a, b)| a * b).sum();
            rest.iter_mut().zip(known).for_each(|(x, v)| *x -= along * v);
        }
        let size = rest.iter().map(|x| x * x).sum::<f64>().sqrt();
        if across.len() + lattice.dimension() < space && size > 1e-6 {
            across.push(rest.iter().map(|x| x / size).collect());
        }
    }
    axes.extend(across.into_iter().map(|unit| Axis {
        step: unit.iter().map(|x| spacing * x).collect(),
        inverse: unit.iter().map(|x| x / spacing).collect(),
        first: 0,
        count: 1,
        periodic: false,
    }));
    axes
}

/// Steps of the grid a cell in each direction, so that none of its reciprocal vectors is shorter than `least` turns a
/// length; whole ones around a periodic direction.
fn steps(lattice: &Lattice, least: f64) -> Vec<f64> {
    let size = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let d = lattice.dimension();
    let mut finer = 1.0;
    loop {
        let one = |d: usize| {
            let (wanted, cells) = (finer * least / size(&lattice.inverse[d]), lattice.cells()[d] as f64);
            if lattice.wrap()[d] == Wrap::Open { wanted } else { (wanted * cells).ceil() / cells }
        };
        let steps: Vec<f64> = (0..d).map(one).collect();
        // The shortest sum of a few reciprocal vectors; of skewed cells it is none of them.
        let mut shortest = f64::INFINITY;
        for code in 1..5usize.pow(d as u32) {
            let mut sum = vec![0.0; lattice.space()];
            for (k, steps) in steps.iter().enumerate() {
                let factor = ((code / 5usize.pow(k as u32) % 5) as f64 - 2.0) * steps;
                sum.iter_mut().zip(&lattice.inverse[k]).for_each(|(x, y)| *x += factor * y);
            }
            if size(&sum) > 0.0 {
                shortest = shortest.min(size(&sum));
            }
        }
        // Rounding leaves the shortest one of right cells at its length.
        if !(shortest < least * (1.0 - 1e-9)) {
            return steps;
        }
        finer *= (1.01 * least / shortest).min(2.0);
    }
}

/// A number for each site, of variance 1 and covariance `exp(-r^2/(2 length^2))`. Around periodic boundaries the sample
/// is so long that it sees no site twice.
///
/// # Errors
/// No memory, interruption.
pub(super) fn correlated(
    lattice: &Lattice,
    length: f64,
    number: impl Fn(usize) -> f64 + Sync,
    task: &Task,
) -> Result<Vec<f64>> {
    let sites = lattice.sites();
    let fine = steps(lattice, FINE / length);
    // Sites that know nothing of each other need no grid, which would have very many points.
    let dense = fine.iter().product::<f64>() > MANY * lattice.basis().len() as f64;
    if dense && lattice.bonds_within(ALONE * length, task)?.is_empty() {
        return Ok((0..sites).map(number).collect());
    }
    let mut axes = axes(lattice, &fine, length / FINE);
    // How many steps from a site the noise is felt along each axis.
    let far: Vec<f64> = axes
        .iter()
        .map(|axis| REACH * length * axis.inverse.iter().map(|x| x * x).sum::<f64>().sqrt())
        .collect();
    let place = |axes: &[Axis], position: &[f64]| -> Vec<f64> {
        axes.iter().map(|axis| axis.inverse.iter().zip(position).map(|(a, x)| a * x).sum()).collect()
    };
    for site in 0..sites {
        let at = place(&axes, &lattice.position(site)?);
        for ((axis, far), y) in axes.iter_mut().zip(&far).zip(at).filter(|((axis, _), _)| !axis.periodic) {
            let (low, high) = ((y - far).floor() as i64, (y + far).ceil() as i64);
            if site == 0 {
                (axis.first, axis.count) = (low, high - low + 1);
            }
            let last = (axis.first + axis.count - 1).max(high);
            axis.first = axis.first.min(low);
            axis.count = last - axis.first + 1;
        }
        if site.is_multiple_of(PART) {
            task::poll()?;
        }
    }
    let points = axes.iter().map(|axis| axis.count as u128).fold(1, u128::saturating_mul);
    memory::ensure(points.saturating_mul(8), &format!("noise at {points} points"))?;
    let noise: Vec<f64> = parallel::map(points as usize, &number);
    // r^2 of steps in units of the length.
    let n = axes.len();
    let metric: Vec<f64> = (0..n * n)
        .map(|at| {
            let (a, b) = (&axes[at / n].step, &axes[at % n].step);
            a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>() / (length * length)
        })
        .collect();
    let smear = Smear { axes: &axes, metric: &metric, far: &far, noise: &noise };
    memory::ensure(8 * sites as u128, &format!("the energies of {sites} sites"))?;
    let mut found = Vec::with_capacity(sites);
    let steps = task.start("correlations", sites);
    for from in (0..sites).step_by(PART) {
        steps.advance(from)?;
        let one = |site: usize| Ok(smear.at(&place(&axes, &lattice.position(site)?)));
        found.extend(parallel::try_map(PART.min(sites - from), |k| one(from + k))?);
    }
    Ok(found)
}

/// The sums over the noise.
struct Smear<'a> {
    axes: &'a [Axis],
    metric: &'a [f64],
    far: &'a [f64],
    noise: &'a [f64],
}

impl Smear<'_> {
    /// The smeared noise at a place in steps, over the root of its variance.
    fn at(&self, place: &[f64]) -> f64 {
        let mut sums = (0.0, 0.0);
        self.along(0, place, &mut vec![0.0; place.len()], 0, &mut sums);
        sums.0 / sums.1.sqrt()
    }

    /// Goes through the points of axis `k` and of those behind it. `off` are the steps so far,
    /// `index` their place in the noise.
    fn along(&self, k: usize, place: &[f64], off: &mut [f64], index: usize, sums: &mut (f64, f64)) {
        let (axis, n) = (&self.axes[k], self.axes.len());
        let lowest = (place[k] - self.far[k]).ceil() as i64;
        let highest = (place[k] + self.far[k]).floor() as i64;
        for j in lowest..=highest {
            off[k] = j as f64 - place[k];
            let at = if axis.periodic { j.rem_euclid(axis.count) } else { j - axis.first };
            let index = index * axis.count as usize + at as usize;
            if k + 1 < n {
                self.along(k + 1, place, off, index, sums);
                continue;
            }
            let mut r2 = 0.0;
            for a in 0..n {
                for b in 0..n {
                    r2 += off[a] * off[b] * self.metric[a * n + b];
                }
            }
            if r2 < REACH * REACH {
                let weight = (-r2).exp();
                sums.0 += weight * self.noise[index];
                sums.1 += weight * weight;
            }
        }
    }
}
