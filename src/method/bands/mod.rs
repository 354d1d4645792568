//! Bands: eigenvalues of Bloch Hamiltonians along paths and over the Brillouin zone, their topology, their density.

mod conductivity;
mod filled;
mod flux;
mod grid;
mod occupied;
mod path;
mod plane;
mod polarization;
mod positions;
mod second;
mod size;
mod tetrahedra;
mod topology;
mod two_rows;
mod wilson;

pub use conductivity::{BandElectrons, ConductivityOptions, band_conductivity, band_optical};
pub use flux::chern_number;
pub use grid::MomentumGrid;
pub use occupied::{Filling, OccupiedOptions, occupied};
pub use path::{BandOptions, bands};
pub use plane::Plane;
pub use polarization::{PolarizationOptions, hilbert, polarizability};
pub use positions::PositionElements;
pub use second::{SecondOrderOptions, band_second_order};
pub use tetrahedra::{DensityOptions, band_density};
pub use topology::{berry_curvature, z2};
pub use wilson::{berry_phases, wannier_centres, wilson_loop};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, Matrix, memory};
use crate::task::Task;

/// Momenta computed between two checks for interruption.
const CHUNK: usize = 64;

/// What helps where bands touch.
const GAPPED: &str = "topology is that of bands with a gap everywhere: look at the bands on a path";

/// The error for bands that touch at a momentum.
fn no_gap(filled: usize, place: &[f64]) -> Error {
    Error::input(format!("no gap above band {filled} at k = {place:?}")).hint(GAPPED)
}

/// The results of a function at each momentum, in order, computed in parallel.
fn at_each<K: Sync, T: Send>(
    momenta: &[K],
    what: &str,
    task: &Task,
    f: impl Fn(&K) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let steps = task.start(what, momenta.len());
    let mut all = Vec::with_capacity(momenta.len());
    for chunk in momenta.chunks(CHUNK) {
        let part: Result<Vec<T>> = chunk.par_iter().map(&f).collect();
        all.extend(part?);
        steps.advance(all.len())?;
    }
    Ok(all)
}

/// The sum of a function over a grid of momenta, `count` numbers each; some are computed at once.
fn zone_sum<T: Send + Copy + Default + std::ops::AddAssign>(
    grid: &MomentumGrid,
    count: usize,
    what: &str,
    task: &Task,
    one: impl Fn(&[f64]) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    let total = grid.total();
    let steps = task.start(what, total);
    let mut sum = vec![T::default(); count];
    for first in (0..total).step_by(CHUNK) {
        let last = total.min(first + CHUNK);
        let parts: Result<Vec<_>> =
            (first..last).into_par_iter().map(|number| one(&grid.momentum(number))).collect();
        for part in parts? {
            sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
        }
        steps.advance(last)?;
    }
    Ok(sum)
}

/// An error unless `each` complex numbers at each of `points` momenta fit into memory.
fn keep(points: usize, each: usize) -> Result<()> {
    memory::ensure(16 * points as u128 * each as u128, &format!("what is kept of {points} momenta"))
}

/// Levels at a momentum, ascending, and their eigenvectors as columns.
struct Levels {
    energies: Vec<f64>,
    vectors: Matrix,
}

fn levels(bloch: &Bloch, k: &[f64]) -> Result<Levels> {
    let (energies, vectors) = bloch.hamiltonian(k)?.eigh()?;
    Ok(Levels { energies: energies.as_real("energies")?.to_vec(), vectors })
}

/// The levels at a momentum alone, ascending.
fn energies_at(bloch: &Bloch, k: &[f64]) -> Result<Vec<f64>> {
    levels_of(&bloch.hamiltonian(k)?)
}

/// The levels of a Hermitian matrix, ascending.
fn levels_of(h: &Matrix) -> Result<Vec<f64>> {
    match two_rows::of(h) {
        Some(two) => Ok(two.levels().to_vec()),
        None => Ok(h.eigvals()?.as_real("energies")?.to_vec()),
    }
}

/// Some columns of a matrix.
fn columns(vectors: &Matrix, which: &[usize]) -> Result<Matrix> {
    let (n, cols, all) = (vectors.rows(), vectors.cols(), vectors.data().to_complex());
    let kept: Vec<C64> =
        (0..n).flat_map(|i| which.iter().map(move |j| i * cols + j)).map(|at| all[at]).collect();
    Matrix::new(n, which.len(), crate::number::Series::Complex(kept))
}

/// The first `count` columns of a matrix.
fn lowest(vectors: &Matrix, count: usize) -> Result<Matrix> {
    columns(vectors, &(0..count).collect::<Vec<usize>>())
}

/// The first `count` columns of a matrix, and the others.
fn split(vectors: &Matrix, count: usize) -> Result<(Matrix, Matrix)> {
    Ok((lowest(vectors, count)?, columns(vectors, &(count..vectors.cols()).collect::<Vec<usize>>())?))
}
