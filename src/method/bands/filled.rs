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

/// An error unless these are numbers of bands, each once.
pub fn check_bands(bloch: &Bloch, bands: &[usize]) -> Result<()> {
    let hint = "name each band once, of which the lowest is 1, as in `band1`";
    if bands.is_empty() {
        return Err(Error::input("a group of no bands").hint(hint));
    }
    if let Some(band) = bands.iter().find(|band| **band >= bloch.rows()) {
        return Err(Error::input(format!("band {} of {}", band + 1, bloch.rows())).hint(hint));
    }
    if let Some((_, band)) = bands.iter().enumerate().find(|(k, band)| bands[..*k].contains(band)) {
        return Err(Error::input(format!("band {} twice in a group", band + 1)).hint(hint));
    }
    Ok(())
}

/// An error unless there is a gap above the filled bands everywhere.
pub fn check_gap<'a>(all: impl Iterator<Item = (&'a Vec<f64>, &'a Vec<f64>)>, filled: usize) -> Result<()> {
    check_edges(all, &[filled])
}

/// An error unless there are gaps between the bands of a group and all others everywhere.
pub fn check_apart<'a>(
    all: impl Iterator<Item = (&'a Vec<f64>, &'a Vec<f64>)>,
    bands: &[usize],
) -> Result<()> {
    check_edges(all, &edges(bands))
}

/// How many bands lie below each end of a group.
fn edges(bands: &[usize]) -> Vec<usize> {
    let above = bands.iter().filter(|band| !bands.contains(&(*band + 1))).map(|band| band + 1);
    let below = bands.iter().filter(|band| **band > 0 && !bands.contains(&(*band - 1))).copied();
    above.chain(below).collect()
}

/// The least gap between the bands of a group and all others; infinite if there are none.
pub fn least_gap(energies: &[f64], bands: &[usize]) -> f64 {
    edges(bands).into_iter().map(|edge| gap(energies, edge)).fold(f64::INFINITY, f64::min)
}

/// An error unless there is a gap above so many bands, each number of `edges`, everywhere.
fn check_edges<'a>(all: impl Iterator<Item = (&'a Vec<f64>, &'a Vec<f64>)>, edges: &[usize]) -> Result<()> {
    let (mut least, mut width, mut place) = (f64::INFINITY, 0.0f64, (0, Vec::new()));
    for (k, energies) in all {
        width = energies.iter().fold(width, |w, e| w.max(e.abs()));
        for edge in edges {
            if gap(energies, *edge) < least {
                (least, place) = (gap(energies, *edge), (*edge, k.clone()));
            }
        }
    }
    if least <= NO_GAP * width {
        return Err(no_gap(place.0, &place.1));
    }
    Ok(())
}

/// `a^dagger b`.
pub fn overlap(a: &Matrix, b: &Matrix) -> Result<Matrix> {
    a.dagger().matmul(b)
}
