//! Bounds of a Bloch Hamiltonian over all momenta: how large it is, how fast its levels move, how exact they are.

use std::f64::consts::TAU;

use crate::lattice::Bloch;
use crate::number::C64;

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
        (largest(across) * largest(down)).sqrt()
    };
    bloch.parts().map(move |(cells, entries)| (cells, norm(entries)))
}

/// The most that levels change along a way in momentum space, in units of the reciprocal vectors.
pub fn most_change(bloch: &Bloch, way: &[f64]) -> f64 {
    let turn = |cells: Vec<i64>| cells.iter().zip(way).map(|(c, k)| *c as f64 * k).sum::<f64>().abs();
    parts(bloch).map(|(cells, norm)| TAU * turn(cells) * norm).sum()
}

/// Levels that are closer than this may be one: rounding keeps no two of them apart, at any momentum. The size of the
/// matrix counts, not that of the levels, which are all zero where cones touch.
pub fn one_level(bloch: &Bloch) -> f64 {
    let size: f64 = parts(bloch).map(|(_, norm)| norm).sum();
    ROUNDINGS * bloch.rows() as f64 * f64::EPSILON * size
}
