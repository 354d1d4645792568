//! Bounds of a Bloch Hamiltonian over all momenta: how large it is, how fast its levels move, how exact they are.

use std::f64::consts::TAU;

use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::{C64, DType};

/// Roundings of the size of the whole matrix, per row, by which levels may be off.
const ROUNDINGS: f64 = 8.0;

/// The parts of `H(k)`: how many cells each goes along the periodic directions, and a bound of its norm, the geometric
/// mean of the largest column and row sums.
fn parts(bloch: &Bloch) -> impl Iterator<Item = (Vec<i64>, f64)> {
    let rows = bloch.rows();
    let norm = move |entries: &[(usize, usize, C64)]| {
        let (mut across, mut down) = (vec![0.0; rows], vec![0.0; rows]);
        for (i, j, z) in entries {
            across[*i] += z.norm();
            down[*j] += z.norm();
        }
        let largest = |sums: Vec<f64>| sums.into_iter().fold(0.0, f64::max);
        largest(across).sqrt() * largest(down).sqrt()
    };
    bloch.parts().map(move |(cells, entries)| (cells, norm(entries)))
}

/// The largest sum over a row of the moduli of what `weigh` makes of the elements of `H`: a bound of the norm of a
/// Hermitian matrix. `weigh` gets how far an element goes, in units of the vectors by which the cell repeats.
fn largest_row(bloch: &Bloch, places: bool, weigh: impl Fn(&[f64]) -> f64) -> f64 {
    let mut sums = vec![0.0; bloch.rows()];
    let mut far = vec![0.0; bloch.dimension()];
    for (cells, entries) in bloch.parts() {
        for (i, j, z) in entries {
            for (d, far) in far.iter_mut().enumerate() {
                let inside = if places { bloch.place(*j)[d] - bloch.place(*i)[d] } else { 0.0 };
                *far = cells[d] as f64 + inside;
            }
            sums[*i] += weigh(&far) * z.norm();
        }
    }
    sums.into_iter().fold(0.0, f64::max)
}

/// The most that levels change along a way in momentum space, in units of the reciprocal vectors: the least of what two
/// forms of `H(k)` tell, with the orbitals at the place of the cell, and each at its own, which is small for large
/// cells.
pub fn most_change(bloch: &Bloch, way: &[f64]) -> f64 {
    let turn = |far: &[f64]| TAU * far.iter().zip(way).map(|(c, k)| c * k).sum::<f64>().abs();
    largest_row(bloch, false, turn).min(largest_row(bloch, true, turn))
}

/// The most by which `H` at all momenta of a box, `sides` to both sides along some directions, differs from what its
/// value and derivatives in the middle tell, with the orbitals at their places.
pub fn most_bend(bloch: &Bloch, directions: &[usize], sides: &[f64]) -> f64 {
    let turn =
        |far: &[f64]| directions.iter().zip(sides).map(|(&d, side)| TAU * (far[d] * side).abs()).sum::<f64>();
    largest_row(bloch, true, |far| 0.5 * turn(far).powi(2))
}

/// Levels that are closer than this may be one: rounding keeps no two of them apart, at any momentum. The size of the
/// matrix counts, not that of the levels, which are all zero where cones touch.
pub fn one_level(bloch: &Bloch) -> f64 {
    let size: f64 = parts(bloch).map(|(_, norm)| norm).sum();
    ROUNDINGS * bloch.rows() as f64 * f64::EPSILON * size
}

/// The power of two near the largest of some numbers; one where all are zero. Sums over states are taken in such units,
/// so that no square of an energy leaves the range of numbers.
pub fn power_of_two_near(all: impl Iterator<Item = f64>) -> f64 {
    let largest = all.fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest > 0.0 && largest.is_finite() {
        largest.log2().floor().clamp(-1000.0, 1000.0).exp2()
    } else {
        1.0
    }
}

/// An error where squares of velocities are no numbers.
pub fn must_have_squares(bloch: &Bloch) -> Result<()> {
    let size: f64 = parts(bloch).map(|(_, norm)| norm).sum();
    if size == 0.0 || DType::F64.squared().contains(&size) {
        return Ok(());
    }
    Err(Error::input(format!(
        "a conductivity of bands of the size {size:.1e}: squares of velocities are beyond what numbers hold"
    ))
    .hint("divide the terms of the model by this size: the conductivity stays, frequencies and temperatures go along"))
}

/// Responses at some frequencies, where all of them are numbers.
pub fn finite_at(what: &str, frequencies: &[f64], found: Vec<C64>) -> Result<Vec<C64>> {
    match found.iter().zip(frequencies).find(|(z, _)| !z.is_finite()) {
        None => Ok(found),
        Some((_, w)) => {
            Err(Error::numeric(format!("the {what} at the frequency {w} is beyond what numbers hold"))
                .hint("take energies in another unit, or a larger `eta`"))
        }
    }
}
