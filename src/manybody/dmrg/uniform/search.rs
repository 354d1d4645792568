//! A search for the ground state of an infinite chain: the state so far, and what is known around it.

use std::sync::Arc;

use faer::Mat;
use faer::prelude::Solve;

use super::automaton::Repeated;
use super::environment::Environments;
use super::state::Uniform;
use super::step::Found;
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::C64;
use crate::task::Task;

/// A search under way.
pub struct Search<T> {
    h: Arc<Repeated>,
    psi: Uniform<T>,
    /// Of this state, or of one nearby.
    known: Option<Arc<Environments<T>>>,
    /// What the last step found of the state that it began with.
    found: Option<Found>,
    /// The last steps: where each led, and by how much it changed the state.
    steps: Vec<Arc<Taken<T>>>,
}

/// A step that was taken.
struct Taken<T> {
    to: Uniform<T>,
    change: Vec<C64>,
}

/// How many steps are combined.
const DEPTH: usize = 6;
/// The largest gradient at which they are: further away, steps do not add up.
const NEAR: f64 = 1e-2;

/// The largest tolerance of the environments and of the searches of a step.
const LOOSE: f64 = 1e-4;
/// The smallest one: rounding.
const TIGHT: f64 = 1e-13;

impl<T: Element> Search<T> {
    /// From a state of the Hamiltonian's cell.
    ///
    /// # Errors
    /// When the state has another cell.
    pub fn new(h: &Arc<Repeated>, psi: Uniform<T>) -> Result<Search<T>> {
        if !h.cell.same(&psi.cell) {
            return Err(Error::input(
                "the state belongs to other sites or numbers than the Hamiltonian's cell",
            )
            .hint("both need the same cell, with the same conserved numbers"));
        }
        Ok(Search { h: h.clone(), psi, known: None, found: None, steps: Vec::new() })
    }

    /// The state.
    pub fn state(&self) -> &Uniform<T> {
        &self.psi
    }

    /// What the last step found of the state that it began with; nothing before the first.
    pub fn found(&self) -> Option<Found> {
        self.found
    }

    fn tolerance(&self) -> f64 {
        self.found.map_or(LOOSE, |f| (1e-3 * f.gradient).clamp(TIGHT, LOOSE))
    }

    fn environments(&self, tol: f64) -> Result<Arc<Environments<T>>> {
        let known = self.known.as_deref();
        Ok(Arc::new(Environments::new(&self.psi, &self.h, known, tol)?))
    }

    /// One step of all sites. Near the minimum it is combined with those before it so that their changes cancel (Anderson, J.
    /// ACM 12, 547 (1965)), as steps alone may go to and fro.
    ///
    /// # Errors
    /// When a search or a linear system fails; interruption.
    pub fn step(&self, device: &Device, task: &Task) -> Result<Search<T>> {
        let tol = self.tolerance();
        let environments = self.environments(0.1 * tol)?;
        let (psi, found, change) = self.psi.step(&environments, device, tol, task)?;
        // Steps that lead away are forgotten.
        let away = self.found.is_some_and(|f| found.gradient > 2.0 * f.gradient);
        let mut steps = if away || found.gradient > NEAR { Vec::new() } else { self.steps.clone() };
        if found.gradient <= NEAR {
            steps.push(Arc::new(Taken { to: psi.clone(), change }));
        }
        if steps.len() > DEPTH {
            steps.remove(0);
        }
        let psi = match weights(&steps) {
            Some(weights) => {
                let parts: Vec<(f64, &Uniform<T>)> =
                    weights.into_iter().zip(&steps).map(|(z, s)| (z, &s.to)).collect();
                Uniform::combined(&parts)?.unwrap_or(psi)
            }
            None => psi,
        };
        Ok(Search { h: self.h.clone(), psi, known: Some(environments), found: Some(found), steps })
    }

    /// With bonds of up to `states` states, as far as the Hamiltonian adds any.
    ///
    /// # Errors
    /// As [`Search::step`].
    pub fn widened(&self, device: &Device, states: usize) -> Result<Search<T>> {
        let environments = self.environments(0.1 * self.tolerance())?;
        let more: Vec<usize> = self.psi.widths().iter().map(|w| states.saturating_sub(*w)).collect();
        let (psi, _) = self.psi.widened(&environments, device, &more)?;
        Ok(Search { h: self.h.clone(), psi, known: None, found: self.found, steps: Vec::new() })
    }

    /// With bonds of at most `states` states, and weights of no less than `least`; and the largest weight that was lost.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn cut(&self, states: usize, least: f64) -> Result<(Search<T>, f64)> {
        let (psi, lost) = self.psi.regauged()?.cut(states, least)?;
        Ok((Search { h: self.h.clone(), psi, known: None, found: self.found, steps: Vec::new() }, lost))
    }

    /// The state in its canonical forms with what is known of it: energy and gradient, and the variance of the energy a site as
    /// far as two neighbouring sites show it, which is all of it where terms reach no further (Hubig, Haegeman, Schollwöck,
    /// Phys. Rev. B 97, 045125 (2018)).
    ///
    /// # Errors
    /// As [`Search::step`].
    pub fn settled(&self, device: &Device, task: &Task) -> Result<(Uniform<T>, Found, f64)> {
        let psi = self.psi.regauged()?;
        let environments = Environments::new(&psi, &self.h, None, TIGHT)?;
        let (_, found, _) = psi.step(&environments, device, 1.0, task)?;
        let (_, beyond) = psi.widened(&environments, device, &vec![0; psi.count()])?;
        let variance = (beyond + found.squares) / psi.count() as f64;
        Ok((psi, found, variance))
    }
}

/// The coefficients, of sum one, with which the changes of some steps nearly cancel; none for a single step.
fn weights<T>(steps: &[Arc<Taken<T>>]) -> Option<Vec<f64>> {
    let n = steps.len();
    if n < 2 {
        return None;
    }
    let dot = |a: &[C64], b: &[C64]| a.iter().zip(b).map(|(x, y)| x.re * y.re + x.im * y.im).sum::<f64>();
    let last = dot(&steps[n - 1].change, &steps[n - 1].change);
    if !(last > 0.0) {
        return None;
    }
    // The normal equations, scaled by each step's own size, with what keeps the coefficients small.
    let size: Vec<f64> = steps.iter().map(|s| dot(&s.change, &s.change).sqrt()).collect();
    let a = Mat::from_fn(n, n, |i, j| {
        let own = if i == j { 1e-10 } else { 0.0 };
        dot(&steps[i].change, &steps[j].change) / (size[i] * size[j]) + own
    });
    let b = Mat::from_fn(n, 1, |i, _| 1.0 / size[i]);
    let x = a.partial_piv_lu().solve(&b);
    let raw: Vec<f64> = (0..n).map(|i| x[(i, 0)] / size[i]).collect();
    let sum: f64 = raw.iter().sum();
    let weights: Vec<f64> = raw.iter().map(|z| z / sum).collect();
    let tame = weights.iter().map(|z| z.abs()).sum::<f64>();
    (tame.is_finite() && tame < 1e3).then_some(weights)
}
