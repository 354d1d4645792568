//! A search for the ground state of an infinite chain: the state so far, and what is known around it.

use std::sync::Arc;

use super::automaton::Repeated;
use super::environment::Environments;
use super::state::Uniform;
use super::step::Found;
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::task::Task;

/// A search under way.
pub struct Search<T> {
    h: Arc<Repeated>,
    psi: Uniform<T>,
    /// Of this state, or of one nearby.
    known: Option<Arc<Environments<T>>>,
    /// What the last step found of the state that it began with.
    found: Option<Found>,
}

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
            return Err(Error::input("the state belongs to other sites or numbers than the Hamiltonian's cell")
                .hint("both need the same cell, with the same conserved numbers"));
        }
        Ok(Search { h: h.clone(), psi, known: None, found: None })
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

    /// One step of all sites.
    ///
    /// # Errors
    /// When a search or a linear system fails; interruption.
    pub fn step(&self, device: &Device, task: &Task) -> Result<Search<T>> {
        let tol = self.tolerance();
        let environments = self.environments(0.1 * tol)?;
        let (psi, found) = self.psi.step(&environments, device, tol, task)?;
        Ok(Search { h: self.h.clone(), psi, known: Some(environments), found: Some(found) })
    }

    /// With bonds of up to `states` states, as far as the Hamiltonian adds any.
    ///
    /// # Errors
    /// As [`Search::step`].
    pub fn widened(&self, device: &Device, states: usize) -> Result<Search<T>> {
        let environments = self.environments(0.1 * self.tolerance())?;
        let more: Vec<usize> = self.psi.widths().iter().map(|w| states.saturating_sub(*w)).collect();
        let (psi, _) = self.psi.widened(&environments, device, &more)?;
        Ok(Search { h: self.h.clone(), psi, known: None, found: self.found })
    }

    /// With bonds of at most `states` states, and weights of no less than `least`; and the largest weight that was lost.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn cut(&self, states: usize, least: f64) -> Result<(Search<T>, f64)> {
        let (psi, lost) = self.psi.regauged()?.cut(states, least)?;
        Ok((Search { h: self.h.clone(), psi, known: None, found: self.found }, lost))
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
        let (_, found) = psi.step(&environments, device, 1.0, task)?;
        let (_, beyond) = psi.widened(&environments, device, &vec![0; psi.len()])?;
        let variance = (beyond + found.squares) / psi.len() as f64;
        Ok((psi, found, variance))
    }
}
