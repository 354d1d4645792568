//! Whether links are in SU(3).

use rayon::prelude::*;

use super::wilson::Su3;
use crate::backend::Region;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task;

/// Largest deviation of U U^+ from one, or of det U from one, that counts as rounding.
const UNITARY: f64 = 1e-6;

/// How far a matrix is from SU(3): the largest deviation of an element of U U^+ from that of one, or of det U from one.
/// NaN if an element is.
pub fn off_su3(u: &Su3) -> f64 {
    let row = |i: usize, j: usize| -> C64 { (0..3).map(|k| u[3 * i + k] * u[3 * j + k].conj()).sum() };
    let mut worst = 0.0f64;
    for i in 0..3 {
        for j in 0..3 {
            let e = (row(i, j) - if i == j { 1.0 } else { 0.0 }).norm();
            worst = if e <= worst { worst } else { e };
        }
    }
    let minor = |a: usize, b: usize, c: usize, d: usize| u[a] * u[b] - u[c] * u[d];
    let det = u[0] * minor(4, 8, 5, 7) - u[1] * minor(3, 8, 5, 6) + u[2] * minor(3, 7, 4, 6);
    // The determinant has all elements, so that it is NaN if one is.
    let e = (det - 1.0).norm();
    if e <= worst { worst } else { e }
}

/// Refuses links of a region that are not in SU(3).
///
/// # Errors
/// Names the first such link, of any rank.
pub fn check_links(region: &Region, links: &[Su3]) -> Result<()> {
    check_links_to(region, links, UNITARY)
}

/// Refuses links that are further from SU(3) than a tolerance.
///
/// # Errors
/// Names the first such link, of any rank.
pub fn check_links_to(region: &Region, links: &[Su3], tolerance: f64) -> Result<()> {
    region.agreed(check_own(region, links, tolerance))
}

fn check_own(region: &Region, links: &[Su3], tolerance: f64) -> Result<()> {
    // Written so that NaN is found.
    let stop = task::current();
    let wrong = |u: &Su3| {
        stop.heed();
        !(off_su3(u) <= tolerance)
    };
    let Some(at) = links.par_iter().position_first(wrong) else { return Ok(()) };
    Err(Error::input(format!(
        "the link of site {} in direction {} is not in SU(3): it is off by {:.1e}",
        region.number(at / 4),
        at % 4,
        off_su3(&links[at])
    ))
    .hint("the nearest links in SU(3) can take their place"))
}
