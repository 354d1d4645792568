//! Planar Wilson loops of many sizes. Lines of links grow by one link at a time, and a loop is closed from two lines
//! of each direction. A loop of any size thus takes three products of matrices a site.

use rayon::prelude::*;

use super::links::Links;
use super::su3::{self, Su3};
use super::sums::sums;
use crate::error::{Error, Result};
use crate::task::{self, Task};

/// Matrices that are found so many steps on from a place in a direction: where the lattice was cut across it,
/// they are brought.
enum StepsAhead<'a, F: Fn(usize) -> &'a Su3 + Sync> {
    Here { u: &'a Links, mu: usize, steps: usize, value: F },
    Brought(Vec<Su3>),
}

impl<'a, F: Fn(usize) -> &'a Su3 + Sync> StepsAhead<'a, F> {
    fn new(u: &'a Links, mu: usize, steps: usize, value: F) -> Result<Self> {
        Ok(if u.region().is_cut(mu) {
            StepsAhead::Brought(u.region().shifted(mu, steps, |x| *value(x))?)
        } else {
            StepsAhead::Here { u, mu, steps, value }
        })
    }

    fn at(&self, x: usize) -> &Su3 {
        match self {
            StepsAhead::Here { u, mu, steps, value } => value(u.neighbour(x, *mu, *steps as isize)),
            StepsAhead::Brought(all) => &all[x],
        }
    }
}

/// The products of `length` links along a direction, one from every place.
struct LinkProducts {
    mu: usize,
    length: usize,
    products: Vec<Su3>,
}

impl LinkProducts {
    fn new(u: &Links, mu: usize) -> LinkProducts {
        let products = (0..u.region().places()).into_par_iter().map(|x| *u.at(x, mu)).collect();
        LinkProducts { mu, length: 1, products }
    }

    /// Lines of `length` links.
    fn of(u: &Links, mu: usize, length: usize, task: &Task) -> Result<LinkProducts> {
        let mut lines = LinkProducts::new(u, mu);
        while lines.length < length {
            task.check()?;
            lines.grow(u)?;
        }
        Ok(lines)
    }

    /// Makes the lines longer by one link.
    fn grow(&mut self, u: &Links) -> Result<()> {
        let (mu, stop) = (self.mu, task::current());
        let next = StepsAhead::new(u, mu, self.length, |x| u.at(x, mu))?;
        self.products.par_iter_mut().enumerate().filter(|(x, _)| u.region().is_own(*x)).for_each(
            |(x, line)| {
                stop.heed();
                *line = su3::mul(line, next.at(x));
            },
        );
        self.length += 1;
        Ok(())
    }
}

/// The mean over sites of Re Tr/3 of the loops between two kinds of lines.
fn closed(u: &Links, a: &LinkProducts, b: &LinkProducts) -> Result<f64> {
    // Lines that begin where those of the other kind end.
    let after_a = StepsAhead::new(u, a.mu, a.length, |x| &b.products[x])?;
    let after_b = StepsAhead::new(u, b.mu, b.length, |x| &a.products[x])?;
    let each = |x: usize| {
        let there = su3::mul(&a.products[x], after_a.at(x));
        let other = su3::mul(&b.products[x], after_b.at(x));
        // Re Tr(there other^+).
        [there.iter().zip(&other).map(|(p, q)| p.re * q.re + p.im * q.im).sum()]
    };
    let [total] = sums(u, each)?;
    Ok(total / (su3::COLOURS * u.sites() as f64))
}

/// Refuses loops that have no size, or that are larger than the lattice.
fn check_sides(u: &Links, along: &[usize], time: usize, r: usize, t: usize) -> Result<()> {
    for (mu, n) in along.iter().map(|&mu| (mu, r)).chain([(time, t)]) {
        let sites = u.dims()[mu];
        if !(1..=sites).contains(&n) {
            return Err(Error::input(format!(
                "loops of {n} links in direction {mu}, in which the lattice has {sites} sites"
            ))
            .hint(format!("in this direction they have 1 to {sites}")));
        }
    }
    Ok(())
}

/// The mean of Re Tr/3 of the loops of r links along one of the directions `along` and t links along `time`, over sites
/// and those directions.
///
/// # Errors
/// Loops without size, or larger than the lattice.
pub fn wilson_loop(
    u: &Links,
    along: &[usize],
    time: usize,
    (r, t): (usize, usize),
    task: &Task,
) -> Result<f64> {
    check_sides(u, along, time, r, t)?;
    let up = LinkProducts::of(u, time, t, task)?;
    let mut total = 0.0;
    for &mu in along {
        total += closed(u, &LinkProducts::of(u, mu, r, task)?, &up)?;
    }
    Ok(total / along.len() as f64)
}

/// The same for all r and t up to the largest given: W(r, t) is at tmax (r - 1) + t - 1.
///
/// # Errors
/// Loops without size, or larger than the lattice.
pub fn wilson_loops(
    u: &Links,
    along: &[usize],
    time: usize,
    (rmax, tmax): (usize, usize),
    task: &Task,
) -> Result<Vec<f64>> {
    check_sides(u, along, time, rmax, tmax)?;
    let mut means = vec![0.0; rmax * tmax];
    let steps = task.start("Wilson loops", tmax * along.len());
    let mut up = LinkProducts::new(u, time);
    for t in 1..=tmax {
        if t > 1 {
            up.grow(u)?;
        }
        for (k, &mu) in along.iter().enumerate() {
            let mut lines = LinkProducts::new(u, mu);
            for r in 1..=rmax {
                if r > 1 {
                    lines.grow(u)?;
                }
                task.check()?;
                means[tmax * (r - 1) + t - 1] += closed(u, &lines, &up)? / along.len() as f64;
            }
            steps.advance((t - 1) * along.len() + k + 1)?;
        }
    }
    Ok(means)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    fn rough() -> Links {
        Links::unit(&Lattice::hypercubic(&[3, 4, 2, 5]).unwrap()).unwrap().reference_field(0.4).unwrap()
    }

    /// Link by link around the loop.
    fn walked(u: &Links, x: usize, sides: [(usize, usize); 2]) -> f64 {
        let [(mu, r), (nu, t)] = sides;
        let (mut at, mut product) = (x, su3::UNIT);
        for (d, n) in [(mu, r), (nu, t)] {
            for _ in 0..n {
                product = su3::mul(&product, u.at(at, d));
                at = u.neighbour(at, d, 1);
            }
        }
        for (d, n) in [(mu, r), (nu, t)] {
            for _ in 0..n {
                at = u.neighbour(at, d, -1);
                product = su3::mul_adj(&product, u.at(at, d));
            }
        }
        assert_eq!(at, x);
        su3::trace(&product).re / 3.0
    }

    #[test]
    fn lines_close_to_the_loops_that_links_make() {
        let (u, task) = (rough(), Task::default());
        let all = wilson_loops(&u, &[0, 1], 3, (3, 4), &task).unwrap();
        for r in 1..=3 {
            for t in 1..=4 {
                let over = |mu| (0..u.sites()).map(|x| walked(&u, x, [(mu, r), (3, t)])).sum::<f64>();
                let known = (over(0) + over(1)) / (2 * u.sites()) as f64;
                assert!((all[4 * (r - 1) + t - 1] - known).abs() < 1e-14, "{r} x {t}");
                let one = wilson_loop(&u, &[0, 1], 3, (r, t), &task).unwrap();
                assert!((one - known).abs() < 1e-14, "{r} x {t}");
            }
        }
    }

    #[test]
    fn loops_that_do_not_fit_are_refused() {
        let (u, task) = (rough(), Task::default());
        for sides in [(0, 1), (1, 0), (3, 1), (1, 6)] {
            assert!(wilson_loops(&u, &[0, 2], 3, sides, &task).is_err(), "{sides:?}");
        }
    }
}
