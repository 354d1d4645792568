//! Smearing and flow: APE (Albanese et al., PLB 192 (1987) 163), stout (Morningstar, Peardon, PRD 69 (2004) 054501),
//! the Wilson flow (Luescher, JHEP 08 (2010) 071).

use rayon::prelude::*;

use super::links::Links;
use super::observe::{plaquette, topological_charge};
use super::su3::{self, Su3};
use crate::error::{Error, Result};
use crate::ranks;
use crate::task::Task;

/// The sum of the six paths from x to x+mu around the plaquettes of a link.
pub(super) fn staples(u: &Links, x: usize, mu: usize) -> Su3 {
    let mut sum = [Default::default(); 9];
    let up = u.neighbour(x, mu, 1);
    for nu in (0..4).filter(|&nu| nu != mu) {
        let above = u.neighbour(x, nu, 1);
        let path = su3::mul_adj(&su3::mul(u.at(x, nu), u.at(above, mu)), u.at(up, nu));
        sum = su3::add(&sum, 1.0, &path);
        let below = u.neighbour(x, nu, -1);
        let path =
            su3::mul(&su3::adj_mul(u.at(below, nu), u.at(below, mu)), u.at(u.neighbour(below, mu, 1), nu));
        sum = su3::add(&sum, 1.0, &path);
    }
    sum
}

fn positive(x: f64, what: &str) -> Result<()> {
    // A larger phase has lost all its digits to rounding.
    if x > 0.0 && x <= 1e6 {
        return Ok(());
    }
    Err(Error::input(format!("{what} of {x:?}")).hint("it is a positive number, 1e6 at most"))
}

/// Refuses several steps that let the shortest waves grow. To first order a step multiplies them by 1 - 16 rho (stout)
/// or 1 - 16 alpha/6 (APE).
fn must_damp(weight: f64, most: f64, steps: usize) -> Result<()> {
    if steps < 2 || weight <= most {
        return Ok(());
    }
    Err(Error::input(format!(
        "{steps} smearing steps of the weight {weight:?}, which let the shortest waves grow"
    ))
    .hint(format!("weights up to {most:?} damp them")))
}

/// APE smearing: U <- projection of (1 - alpha) U + alpha/6 staples onto SU(3).
///
/// # Errors
/// A weight outside (0, 1], and above 0.75 several steps.
pub fn ape(u: &Links, alpha: f64, steps: usize, task: &Task) -> Result<Links> {
    positive(alpha, "a smearing weight")?;
    if alpha > 1.0 {
        return Err(Error::input(format!("a smearing weight of {alpha}")).hint("it is 1 at most"));
    }
    must_damp(alpha, 0.75, steps)?;
    let mut u = u.clone();
    for _ in 0..steps {
        task.check()?;
        u = Links::from_fn(&u, |x, mu| {
            let sum = su3::add(&su3::scale(1.0 - alpha, u.at(x, mu)), alpha / 6.0, &staples(&u, x, mu));
            su3::projected(&sum)
        })?;
        let region = u.region();
        let whole = |x: usize| (0..4).all(|mu| u.at(x, mu).iter().all(|z| z.is_finite()));
        let singular = (0..region.places()).filter(|x| region.is_own(*x)).any(|x| !whole(x));
        ranks::agreed(if singular {
            Err(Error::numeric("a smeared link is singular: no matrix of SU(3) is the nearest")
                .hint("take another `alpha`"))
        } else {
            Ok(())
        })?;
    }
    Ok(u)
}

/// The force on a link: the Hermitian and traceless part of -i staples U^+.
fn force(u: &Links, x: usize, mu: usize) -> Su3 {
    su3::hermitian_traceless(&su3::mul_adj(&staples(u, x, mu), u.at(x, mu)))
}

/// Stout smearing: U <- exp(i rho Q) U with the force Q.
///
/// # Errors
/// A weight that is not positive, and above 0.125 several steps.
pub fn stout(u: &Links, rho: f64, steps: usize, task: &Task) -> Result<Links> {
    positive(rho, "a smearing weight")?;
    must_damp(rho, 0.125, steps)?;
    let mut u = u.clone();
    for _ in 0..steps {
        task.check()?;
        u = Links::from_fn(&u, |x, mu| {
            su3::mul(&su3::exp_i(&su3::scale(rho, &force(&u, x, mu))), u.at(x, mu))
        })?;
    }
    Ok(u)
}

/// A measurement along the flow: time, plaquette, action density E, t^2 E, topological charge.
pub type FlowRow = [f64; 5];

/// The Wilson flow to `time` in steps of `step` by Luescher's third-order Runge-Kutta scheme. It measures after every
/// `measure` steps (0: only at the end).
///
/// # Errors
/// Times that are not positive.
pub fn wilson_flow(
    u: &Links,
    time: f64,
    step: f64,
    measure: usize,
    task: &Task,
) -> Result<(Links, Vec<FlowRow>)> {
    positive(time, "a flow time")?;
    positive(step, "a step of the flow")?;
    let steps = (time / step - 1e-9).ceil().max(1.0);
    if steps > 1e7 {
        return Err(Error::input(format!("{steps} steps of the flow")).hint("take longer steps"));
    }
    let (steps, eps) = (steps as usize, time / steps);
    // The force of the shortest waves has 16 as its largest factor, and this scheme damps up to 2.51.
    if eps > 2.5 / 16.0 {
        return Err(Error::input(format!("a step of {eps} of the flow, which lets the shortest waves grow"))
            .hint("steps up to 0.15 damp them; 0.02 is usual"));
    }
    let mut u = u.clone();
    let mut rows = Vec::new();
    let progress = task.start("flow", steps);
    let stop = task.interrupt();
    // One stage: u <- exp(i q) u with q = a Z(u) + b q_before; the stages' q's combine as in the scheme.
    let stage = |u: &Links, a: f64, b: f64, q: &[Su3]| -> Result<(Vec<Su3>, Links)> {
        let q: Vec<Su3> = (0..4 * u.region().places())
            .into_par_iter()
            .map(|at| {
                stop.heed();
                if !u.region().is_own(at / 4) {
                    return Su3::default();
                }
                let z = su3::scale(a * eps, &force(u, at / 4, at % 4));
                if q.is_empty() { z } else { su3::add(&z, b, &q[at]) }
            })
            .collect();
        let next = Links::from_fn(u, |x, mu| su3::mul(&su3::exp_i(&q[4 * x + mu]), u.at(x, mu)))?;
        Ok((q, next))
    };
    for done in 1..=steps {
        // Z0/4; 8/9 Z1 - 17/36 Z0; 3/4 Z2 - (8/9 Z1 - 17/36 Z0).
        let (q, w) = stage(&u, 0.25, 0.0, &[])?;
        let (q, w) = stage(&w, 8.0 / 9.0, -17.0 / 9.0, &q)?;
        u = stage(&w, 0.75, -1.0, &q)?.1;
        if done == steps || (measure > 0 && done % measure == 0) {
            let t = eps * done as f64;
            let energy = super::observe::action_density(&u)?;
            rows.push([t, plaquette(&u)?, energy, t * t * energy, topological_charge(&u)?]);
        }
        progress.advance(done)?;
    }
    Ok((u, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::Lattice;

    fn rough() -> Links {
        Links::unit(&Lattice::hypercubic(&[4, 4, 2, 4]).unwrap()).unwrap().reference_field(0.5).unwrap()
    }

    #[test]
    fn smearing_smooths_and_commutes_with_gauge_transformations() {
        let task = Task::default();
        let u = rough();
        type Smear = fn(&Links, &Task) -> Links;
        let ways: [Smear; 3] = [
            |u, t| ape(u, 0.5, 2, t).unwrap(),
            |u, t| stout(u, 0.1, 2, t).unwrap(),
            |u, t| wilson_flow(u, 0.1, 0.05, 0, t).unwrap().0,
        ];
        for smear in ways {
            let smooth = plaquette(&smear(&u, &task)).unwrap();
            assert!(smooth > plaquette(&u).unwrap() + 0.1, "{smooth}");
            let elsewhere = smear(&u.random_gauge(3).unwrap(), &task);
            assert!((plaquette(&elsewhere).unwrap() - smooth).abs() < 1e-12);
        }
    }

    /// Halving the step takes the error of the scheme down by 2^3, and by more where the next order still counts.
    #[test]
    fn the_flow_is_of_third_order() {
        let at = |step: f64| wilson_flow(&rough(), 0.2, step, 0, &Task::default()).unwrap().1[0][2];
        let exact = at(0.0025);
        // Third order gives 8, fourth 16; second would give 4.
        let ratio = (at(0.04) - exact) / (at(0.02) - exact);
        assert!((7.0..16.0).contains(&ratio), "{ratio}");
    }

    /// To first order in its weight, a stout step is the flow for that time.
    #[test]
    fn stout_steps_are_flow() {
        let task = Task::default();
        let flow = plaquette(&wilson_flow(&rough(), 0.01, 0.01, 0, &task).unwrap().0).unwrap();
        let smeared = plaquette(&stout(&rough(), 0.0001, 100, &task).unwrap()).unwrap();
        assert!((flow - smeared).abs() < 1e-4, "{flow} {smeared}");
    }
}
