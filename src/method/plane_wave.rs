//! Plane waves on the sites of an operator's lattice.

use crate::backend::BlockVector;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::Geometry;
use crate::number::C64;
use crate::operator::Operator;

/// Normalised plane waves exp(i k r)/sqrt(n) on `sites` (all if none are given), r being where an orbital is: for every
/// momentum in `momenta` (radians per lattice constant) one column for each of `orbitals`,
/// the orbitals of a momentum side by side.
///
/// # Errors
/// An operator that knows no lattice, momenta of the wrong dimension, no such orbital.
pub fn plane_waves(
    h: &Operator,
    momenta: &[Vec<f64>],
    orbitals: &[usize],
    sites: Option<&[usize]>,
) -> Result<BlockVector> {
    let geometry = geometry(h)?;
    let space = geometry.lattice.space();
    if let Some(k) = momenta.iter().find(|k| k.len() != space) {
        return Err(Error::input(format!("a momentum of {} components in {space} dimensions", k.len()))
            .hint("it is Cartesian, in radians per lattice constant: one number per axis"));
    }
    let all: Vec<usize>;
    let sites = match sites {
        Some(sites) => sites,
        None => {
            all = (0..geometry.lattice.sites()).collect();
            &all
        }
    };
    let norm = 1.0 / (sites.len().max(1) as f64).sqrt();
    let columns = momenta.len() * orbitals.len();
    let mut data = vec![C64::default(); h.rows().local * columns];
    for &site in sites {
        for (j, &orbital) in orbitals.iter().enumerate() {
            let row = geometry.row(site, orbital)?;
            let place = geometry.position(row)?;
            for (i, k) in momenta.iter().enumerate() {
                let phase: f64 = k.iter().zip(&place).map(|(k, r)| k * r).sum();
                data[row * columns + i * orbitals.len() + j] = C64::from_polar(norm, phase);
            }
        }
    }
    h.device().upload(h.dtype().to_complex(), h.rows(), columns, &data)
}

/// Which of the plane waves exp(i k r) continue across the periodic boundaries, within a thousandth of a turn. Along
/// each direction with its L cells of vector a, k L a must be the phase of the boundary. Direction `free`, which the
/// wave does not extend along, is not checked.
///
/// # Errors
/// As [`plane_waves`].
pub fn momenta_fit(h: &Operator, momenta: &[Vec<f64>], free: Option<usize>) -> Result<Vec<bool>> {
    let lattice = &geometry(h)?.lattice;
    if let Some(k) = momenta.iter().find(|k| k.len() != lattice.space()) {
        return Err(Error::input(format!(
            "a momentum of {} components in {} dimensions",
            k.len(),
            lattice.space()
        ))
        .hint("it is Cartesian, in radians per lattice constant: one number per axis"));
    }
    let fits = |k: &Vec<f64>, d: usize| match lattice.wrap()[d] {
        Wrap::Phase(p) if Some(d) != free => {
            let along: f64 = k.iter().zip(&lattice.vectors()[d]).map(|(k, a)| k * a).sum();
            let turns = (along * lattice.cells()[d] as f64 - p.arg()) / std::f64::consts::TAU;
            (turns - turns.round()).abs() < 1e-3
        }
        _ => true,
    };
    Ok(momenta.iter().map(|k| (0..lattice.dimension()).all(|d| fits(k, d))).collect())
}

/// `points` momenta evenly spaced along the straight lines between corners (at least two, of equal dimension), with
/// the first and the last corner, and the length of the path up to each.
pub fn k_path(corners: &[Vec<f64>], points: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (y - x).powi(2)).sum::<f64>().sqrt();
    let pieces: Vec<f64> = corners.windows(2).map(|w| distance(&w[0], &w[1])).collect();
    let total: f64 = pieces.iter().sum();
    let mut momenta = Vec::with_capacity(points);
    let mut length = Vec::with_capacity(points);
    for i in 0..points {
        let at = total * i as f64 / (points.max(2) - 1) as f64;
        let (mut piece, mut left) = (0, at);
        while piece + 1 < pieces.len() && left > pieces[piece] {
            left -= pieces[piece];
            piece += 1;
        }
        let part = if pieces[piece] > 0.0 { left / pieces[piece] } else { 0.0 };
        momenta
            .push(corners[piece].iter().zip(&corners[piece + 1]).map(|(a, b)| a + part * (b - a)).collect());
        length.push(at);
    }
    (momenta, length)
}

/// The lattice behind an operator.
///
/// # Errors
/// An operator that knows none.
pub fn geometry(h: &Operator) -> Result<&Geometry> {
    h.geometry()
        .map(AsRef::as_ref)
        .ok_or_else(|| Error::input("this operator knows no lattice").hint("make it from a model"))
}
