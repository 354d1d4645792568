//! The bands below a gap: whether there is one, and how their states overlap from one momentum to the next.

use super::no_gap;
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::number::Matrix;

/// A gap below this fraction of the largest |energy| counts as closed.
pub const NO_GAP: f64 = 1e-9;

/// An error unless there are so many bands.
pub fn check_filled(bloch: &Bloch, filled: usize) -> Result<()> {
    if filled == 0 || filled > bloch.rows() {
        return Err(Error::input(format!("{filled} filled bands of {}", bloch.rows()))
            .hint("`filled` counts the bands below the gap"));
    }
    Ok(())
}

/// The direct gap above the filled bands; infinite if all are filled.
pub fn gap(energies: &[f64], filled: usize) -> f64 {
    energies.get(filled).map_or(f64::INFINITY, |above| above - energies[filled - 1])
}

/// An error unless there is a gap everywhere.
pub fn check_gap<'a>(all: impl Iterator<Item = (&'a Vec<f64>, &'a Vec<f64>)>, filled: usize) -> Result<f64> {
    let (mut least, mut width, mut place) = (f64::INFINITY, 0.0f64, Vec::new());
    for (k, energies) in all {
        width = energies.iter().fold(width, |w, e| w.max(e.abs()));
        if gap(energies, filled) < least {
            (least, place) = (gap(energies, filled), k.clone());
        }
    }
    if least <= NO_GAP * width {
        return Err(no_gap(filled, &place));
    }
    Ok(least)
}

/// `a^dagger b`.
pub fn overlap(a: &Matrix, b: &Matrix) -> Result<Matrix> {
    a.dagger().matmul(b)
}
