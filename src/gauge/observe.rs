//! Gauge-invariant numbers: plaquette, Polyakov loop, topological charge. Larger loops are in `loops.rs`.

use super::links::Links;
use super::su3::{self, Su3};
use super::sums::{sum_of, sums};
use crate::error::Result;
use crate::number::C64;
use crate::task::{self, parallel};

/// U_mu(x) U_nu(x+mu) U_mu(x+nu)^+ U_nu(x)^+.
#[inline]
fn loop_at(u: &Links, x: usize, mu: usize, nu: usize) -> Su3 {
    let upper = su3::mul(u.at(x, mu), u.at(u.neighbour(x, mu, 1), nu));
    let lower = su3::mul(u.at(x, nu), u.at(u.neighbour(x, nu, 1), mu));
    su3::mul_adj(&upper, &lower)
}

/// The plaquette: the mean of Re Tr/3 over all sites and planes.
///
/// # Errors
/// Those of MPI.
pub fn plaquette(u: &Links) -> Result<f64> {
    let planes = |x: usize| {
        let mut total = 0.0;
        for mu in 0..4 {
            for nu in 0..mu {
                total += su3::trace(&loop_at(u, x, mu, nu)).re;
            }
        }
        [total]
    };
    let [total] = sums(u, planes)?;
    Ok(total / (6.0 * su3::COLOURS * u.sites() as f64))
}

/// Tr/3 of the links once around the lattice in a direction, of the lines that end in this rank's box: the number of
/// each in the lattice of the other three directions, the first of them fastest, and its value.
fn lines(u: &Links, direction: usize) -> Result<Vec<(usize, C64)>> {
    let (region, stop) = (u.region(), task::current());
    let ranges = region.ranges();
    let (first, length) = (ranges[direction].start, ranges[direction].len());
    let starts: Vec<usize> = (0..region.places())
        .filter(|&x| region.is_own(x) && region.coordinates(x)[direction] == first)
        .collect();
    // From a box to the next one, so that the products are those of one process.
    let ends = region.in_turn(direction, starts.len(), |before: Option<Vec<Su3>>| {
        let line = |k: usize| {
            stop.heed();
            let mut product = before.as_ref().map_or(su3::UNIT, |lines| lines[k]);
            let mut at = starts[k];
            for _ in 0..length {
                product = su3::mul(&product, u.at(at, direction));
                at = u.neighbour(at, direction, 1);
            }
            product
        };
        parallel::map(starts.len(), line)
    })?;
    let n = u.dims()[direction];
    let stride: usize = u.dims()[..direction].iter().product();
    let across = |x: usize| region.number(x) % stride + region.number(x) / (stride * n) * stride;
    let value = |(product, &x): (Su3, &usize)| (across(x), su3::trace(&product) / su3::COLOURS);
    Ok(ends.unwrap_or_default().into_iter().zip(&starts).map(value).collect())
}

/// Tr/3 of the links once around the lattice in a direction, for every site of the lattice of the other three, the
/// first of them fastest.
///
/// # Errors
/// Those of MPI.
pub fn polyakov_lines(u: &Links, direction: usize) -> Result<Vec<C64>> {
    let own = lines(u, direction)?;
    let words = own.iter().flat_map(|(k, z)| [*k as u64, z.re.to_bits(), z.im.to_bits()]);
    let mut all = vec![C64::default(); u.sites() / u.dims()[direction]];
    for of_rank in u.region().gathered(words.collect())? {
        for line in of_rank.chunks_exact(3) {
            all[line[0] as usize] = C64::new(f64::from_bits(line[1]), f64::from_bits(line[2]));
        }
    }
    Ok(all)
}

/// The Polyakov loop in a direction: the mean of Tr/3 of the links once around the lattice.
///
/// # Errors
/// Those of MPI.
pub fn polyakov(u: &Links, direction: usize) -> Result<C64> {
    let own: Vec<[f64; 2]> = lines(u, direction)?.into_iter().map(|(_, z)| [z.re, z.im]).collect();
    let [re, im] = sum_of(u.region(), &own)?;
    Ok(C64::new(re, im) / (u.sites() / u.dims()[direction]) as f64)
}

/// The clover: the sum of the four plaquettes that touch a site in a plane.
fn clover(u: &Links, x: usize, mu: usize, nu: usize) -> Su3 {
    let (xm, xn) = (u.neighbour(x, mu, -1), u.neighbour(x, nu, -1));
    let xmn = u.neighbour(xm, nu, -1);
    let (up_n, up_m) = (u.neighbour(x, nu, 1), u.neighbour(x, mu, 1));
    let first = loop_at(u, x, mu, nu);
    // x -> x+nu -> x+nu-mu -> x-mu -> x.
    let second = su3::mul(
        &su3::mul_adj(u.at(x, nu), u.at(u.neighbour(up_n, mu, -1), mu)),
        &su3::adj_mul(u.at(xm, nu), u.at(xm, mu)),
    );
    // x -> x-mu -> x-mu-nu -> x-nu -> x.
    let back = su3::mul(u.at(xmn, nu), u.at(xm, mu));
    let third = su3::adj_mul(&back, &su3::mul(u.at(xmn, mu), u.at(xn, nu)));
    // x -> x-nu -> x-nu+mu -> x+mu -> x.
    let fourth = su3::mul(
        &su3::adj_mul(u.at(xn, nu), u.at(xn, mu)),
        &su3::mul_adj(u.at(u.neighbour(up_m, nu, -1), nu), u.at(x, mu)),
    );
    su3::add(&su3::add(&su3::add(&first, 1.0, &second), 1.0, &third), 1.0, &fourth)
}

/// The field strength F = (C - C^+)/(8 i) of the clover C.
fn strength(u: &Links, x: usize, mu: usize, nu: usize) -> Su3 {
    let c = clover(u, x, mu, nu);
    let d = su3::dagger(&c);
    std::array::from_fn(|k| (c[k] - d[k]) * C64::new(0.0, -0.125))
}

/// The topological charge of the clover field strength, its trace kept:
/// Q = 1/(4 pi^2) sum_x Tr(F_01 F_23 - F_02 F_13 + F_03 F_12).
///
/// # Errors
/// Those of MPI.
pub fn topological_charge(u: &Links) -> Result<f64> {
    let density = |x: usize| {
        let pair = |a: (usize, usize), b: (usize, usize)| {
            su3::trace(&su3::mul(&strength(u, x, a.0, a.1), &strength(u, x, b.0, b.1)))
        };
        [(pair((0, 1), (2, 3)) - pair((0, 2), (1, 3)) + pair((0, 3), (1, 2))).re]
    };
    let [total] = sums(u, density)?;
    Ok(total / (4.0 * std::f64::consts::PI.powi(2)))
}

/// The action density E = sum_(mu<nu) Tr F^2 of the clover field strength without its trace, averaged over sites.
///
/// # Errors
/// Those of MPI.
pub fn action_density(u: &Links) -> Result<f64> {
    let density = |x: usize| {
        let mut total = C64::default();
        for mu in 0..4 {
            for nu in mu + 1..4 {
                let f = su3::traceless(strength(u, x, mu, nu));
                total += su3::trace(&su3::mul(&f, &f));
            }
        }
        [total.re]
    };
    let [total] = sums(u, density)?;
    Ok(total / u.sites() as f64)
}
