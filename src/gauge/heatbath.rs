//! Quenched generation with the Wilson action: pseudo-heatbath over the SU(2) subgroups (Cabibbo, Marinari, PLB 119
//! (1982) 387) with the generator of Kennedy and Pendleton (PLB 156 (1985) 393), and over-relaxation (Creutz, PRD 36
//! (1987) 515). Even and odd sites alternate, so the links updated together are independent. Every draw is a function
//! of seed, link and sweep.

use rayon::prelude::*;

use super::flow::staples;
use super::links::Links;
use super::su3::{self, Quaternion, SUBGROUPS, Su3};
use crate::error::{Error, Result};
use crate::number::philox::{self, Stream};
use crate::task::Task;

/// Parameters of a heatbath run.
#[derive(Debug, Clone)]
pub struct Heatbath {
    /// beta = 6/g^2 of the Wilson action.
    pub beta: f64,
    pub sweeps: usize,
    /// Over-relaxation sweeps after each.
    pub overrelaxation: usize,
    /// Key of the random numbers.
    pub seed: u64,
    /// Number of the first sweep, so that runs can be continued.
    pub first: usize,
}

/// Largest number of draws for one subgroup of one link, before the program gives up.
const ATTEMPTS: u32 = 64;

/// A generator of uniform numbers for one subgroup of one link in one sweep.
struct HeatbathDraws {
    seed: u64,
    link: u64,
    column: u32,
}

impl HeatbathDraws {
    /// The two numbers in (0, 1) of a draw.
    fn pair(&self, draw: u32) -> (f64, f64) {
        let w = philox::words(self.seed, Stream::Gauge as u32, self.link, self.column.wrapping_add(draw));
        (philox::unit(w[0], w[1]), philox::unit(w[2], w[3]))
    }
}

/// x0 with density sqrt(1 - x0^2) exp(a x0).
fn heat(a: f64, draws: &HeatbathDraws) -> f64 {
    let mut last = 1.0;
    for k in 0..(ATTEMPTS - 1) / 2 {
        let ((r1, r2), (r3, r4)) = (draws.pair(2 * k), draws.pair(2 * k + 1));
        if a > 1.0 {
            let c = (2.0 * std::f64::consts::PI * r2).cos();
            let delta = -(r1.ln() * c * c + r3.ln()) / a;
            last = (1.0 - delta).max(-1.0);
            if r4 * r4 <= 1.0 - 0.5 * delta {
                return 1.0 - delta;
            }
        } else {
            let x = 2.0 * r1 - 1.0;
            last = x;
            if r2 <= (1.0 - x * x).sqrt() * (a * (x - 1.0)).exp() {
                return x;
            }
        }
    }
    last
}

/// A link after a heatbath update of each of its SU(2) subgroups.
fn heated(u: &Su3, staple: &Su3, beta: f64, seed: u64, link: usize, sweep: usize) -> Su3 {
    let mut u = *u;
    for (number, pair) in SUBGROUPS.into_iter().enumerate() {
        let w = Quaternion::of(&su3::mul_adj(&u, staple), pair).scaled(0.5);
        let k = w.norm();
        let column = (sweep.wrapping_mul(3) + number + 1) as u32;
        let draws = HeatbathDraws { seed, link: link as u64, column: column.wrapping_mul(ATTEMPTS) };
        let x0 = heat(2.0 * k * beta / su3::COLOURS, &draws);
        // A direction uniform on the sphere.
        let (r1, r2) = draws.pair(ATTEMPTS - 1);
        let length = (1.0 - x0 * x0).max(0.0).sqrt();
        let z = 2.0 * r1 - 1.0;
        let ring = (1.0 - z * z).max(0.0).sqrt();
        let (sin, cos) = (2.0 * std::f64::consts::PI * r2).sin_cos();
        let x = Quaternion([x0, length * ring * cos, length * ring * sin, length * z]);
        let back = if k > 1e-300 { w.scaled(1.0 / k).conj() } else { Quaternion([1.0, 0.0, 0.0, 0.0]) };
        u = x.times(&back).rotate(&u, pair);
    }
    su3::reunitarised(&u)
}

/// A link reflected in every subgroup, which keeps the action.
fn reflected(u: &Su3, staple: &Su3) -> Su3 {
    let mut u = *u;
    for pair in SUBGROUPS {
        let w = Quaternion::of(&su3::mul_adj(&u, staple), pair);
        let k = w.norm();
        if k > 1e-300 {
            let back = w.scaled(1.0 / k).conj();
            u = back.times(&back).rotate(&u, pair);
        }
    }
    su3::reunitarised(&u)
}

/// One sweep over all links: even sites, then odd ones, direction by direction.
fn sweep(u: &mut Links, task: &Task, update: impl Fn(usize, usize, &Su3, &Su3) -> Su3 + Sync) -> Result<()> {
    let region = u.region().clone();
    for parity in 0..2 {
        let turn = |&x: &usize| region.coordinates(x).iter().sum::<usize>() % 2 == parity;
        let sites: Vec<usize> = (0..region.places()).filter(|&x| region.is_own(x)).filter(turn).collect();
        for mu in 0..4 {
            task.check()?;
            let old = &*u;
            let stop = task.interrupt();
            let one = |&x: &usize| {
                stop.heed();
                update(x, mu, old.at(x, mu), &staples(old, x, mu))
            };
            let new: Vec<Su3> = sites.par_iter().map(one).collect();
            let links = u.links_mut();
            for (&x, new) in sites.iter().zip(new) {
                links[4 * x + mu] = new;
            }
            u.renew(mu..mu + 1)?;
        }
    }
    Ok(())
}

/// One sweep of over-relaxation.
fn reflect(u: &mut Links, task: &Task) -> Result<()> {
    sweep(u, task, |_, _, link, staple| reflected(link, staple))
}

/// Refuses lattices on which two even sites, or two odd ones, are neighbours.
fn check_even(u: &Links) -> Result<()> {
    let Some(d) = u.dims().iter().position(|n| n % 2 == 1) else { return Ok(()) };
    Err(Error::input(format!("a checkerboard on a lattice of {} sites in direction {d}", u.dims()[d]))
        .hint("every direction must have an even number of sites"))
}

/// The field after over-relaxation sweeps alone, which keep the Wilson action and use no random numbers.
///
/// # Errors
/// A direction of odd size: there two even sites are neighbours.
pub fn overrelax(start: &Links, sweeps: usize, task: &Task) -> Result<Links> {
    check_even(start)?;
    let mut u = start.clone();
    let progress = task.start("over-relaxation", sweeps);
    for done in 0..sweeps {
        reflect(&mut u, task)?;
        progress.advance(done + 1)?;
    }
    Ok(u)
}

/// The field after the sweeps. `each` is shown the field after every one of them.
///
/// # Errors
/// A direction of odd size, where two even sites are neighbours; a coupling that is negative or not finite; what
/// `each` fails with.
pub fn heatbath(
    start: &Links,
    options: &Heatbath,
    each: &mut dyn FnMut(&Links) -> Result<()>,
    task: &Task,
) -> Result<Links> {
    check_even(start)?;
    if !(options.beta >= 0.0 && options.beta.is_finite()) {
        return Err(Error::input(format!("a coupling beta of {}", options.beta))
            .hint("beta = 6/g^2 is a positive number, like 6.0"));
    }
    let mut u = start.with_sweeps(options.first);
    let progress = task.start("heatbath", options.sweeps);
    for done in 0..options.sweeps {
        let number = options.first.wrapping_add(done);
        let region = u.region().clone();
        sweep(&mut u, task, |x, mu, link, staple| {
            heated(link, staple, options.beta, options.seed, 4 * region.number(x) + mu, number)
        })?;
        for _ in 0..options.overrelaxation {
            reflect(&mut u, task)?;
        }
        u = u.with_sweeps(options.first.saturating_add(done + 1));
        each(&u)?;
        progress.advance(done + 1)?;
    }
    Ok(u)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauge::plaquette;
    use crate::lattice::Lattice;

    fn start() -> Links {
        Links::unit(&Lattice::hypercubic(&[4, 4, 4, 4]).unwrap()).unwrap()
    }

    fn run(start: &Links, beta: f64, sweeps: usize, overrelaxation: usize) -> Links {
        let options = Heatbath { beta, sweeps, overrelaxation, seed: 1, first: 0 };
        heatbath(start, &options, &mut |_| Ok(()), &Task::default()).unwrap()
    }

    #[test]
    fn every_sweep_is_shown() {
        let options = Heatbath { beta: 5.5, sweeps: 3, overrelaxation: 1, seed: 1, first: 2 };
        let mut shown = Vec::new();
        let mut each = |u: &Links| -> Result<()> {
            shown.push(u.clone());
            Ok(())
        };
        let last = heatbath(&start(), &options, &mut each, &Task::default()).unwrap();
        let one_by_one = (2..5).scan(start(), |u, first| {
            let one = Heatbath { sweeps: 1, first, ..options.clone() };
            *u = heatbath(u, &one, &mut |_| Ok(()), &Task::default()).unwrap();
            Some(u.clone())
        });
        assert_eq!(shown, one_by_one.collect::<Vec<_>>());
        assert!(shown.last() == Some(&last) && last.sweeps() == 5);
        let stop = heatbath(&start(), &options, &mut |_| Err(Error::input("stop")), &Task::default());
        assert_eq!(stop.unwrap_err().message(), "stop");
    }

    /// Strong coupling: <P> = beta/18 + beta^2/216 + O(beta^4) (SU(3), Wilson action).
    #[test]
    fn strong_coupling() {
        let mut u = run(&start(), 1.0, 10, 0);
        let mut mean = 0.0;
        for k in 0..40 {
            let options = Heatbath { beta: 1.0, sweeps: 1, overrelaxation: 0, seed: 2, first: k };
            u = heatbath(&u, &options, &mut |_| Ok(()), &Task::default()).unwrap();
            mean += plaquette(&u).unwrap() / 40.0;
        }
        assert!((mean - (1.0 / 18.0 + 1.0 / 216.0)).abs() < 0.004, "{mean}");
    }

    /// Over-relaxation moves the field and keeps the action.
    #[test]
    fn reflections_keep_the_action() {
        let mut u = run(&start(), 5.5, 5, 0);
        let (before, field) = (plaquette(&u).unwrap(), u.clone());
        u = overrelax(&u, 3, &Task::default()).unwrap();
        assert!((plaquette(&u).unwrap() - before).abs() < 1e-12);
        let kept = u.links().iter().zip(field.links()).filter(|(a, b)| a == b).count();
        assert_eq!(kept, 0);
        crate::backend::matrix::su3::check_links(u.region(), u.links()).unwrap();
    }

    #[test]
    fn odd_lattices_are_refused() {
        let u = Links::unit(&Lattice::hypercubic(&[4, 3, 4, 4]).unwrap()).unwrap();
        let options = Heatbath { beta: 1.0, sweeps: 1, overrelaxation: 0, seed: 1, first: 0 };
        assert!(heatbath(&u, &options, &mut |_| Ok(()), &Task::default()).is_err());
        assert!(overrelax(&u, 1, &Task::default()).is_err());
    }
}
