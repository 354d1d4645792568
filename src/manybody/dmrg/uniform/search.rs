//! A search for the ground state of an infinite chain: the state so far, and what is known around it.

use std::sync::Arc;

use super::automaton::Repeated;
use super::descent::{Point, StepHistory};
use super::environment::Environments;
use super::state::Uniform;
use super::step::StepReport;
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::Result;
use crate::task::Task;

/// A search under way.
pub struct UniformSearch<T> {
    h: Arc<Repeated>,
    psi: Uniform<T>,
    /// Environments of this state, or of one nearby.
    known: Option<Arc<Environments<T>>>,
    /// What the last step found of the state that it began with.
    found: Option<StepReport>,
    /// Where the last step along the gradient led, with the steps before it.
    near: Option<Arc<(Point<T>, StepHistory<T>)>>,
    /// How many steps by local ground states are due, since states are new.
    due: usize,
    /// How many states the last move between sectors has moved.
    moved: usize,
}

/// The largest gradient at which steps go along it: further away, larger steps lead on faster.
const NEAR: f64 = 2e-3;
/// How many steps by local ground states give new states their weights.
const NEW: usize = 3;

/// The largest tolerance of the environments and of the searches of a step.
const LOOSE: f64 = 1e-4;
/// The smallest tolerance: rounding.
const TIGHT: f64 = 1e-13;

impl<T: Element> UniformSearch<T> {
    /// From a state of the Hamiltonian's cell.
    ///
    /// # Errors
    /// When the state has another cell.
    pub fn new(h: &Arc<Repeated>, psi: Uniform<T>) -> Result<UniformSearch<T>> {
        h.cell.check(&psi.cell)?;
        Ok(UniformSearch { h: h.clone(), psi, known: None, found: None, near: None, due: 0, moved: 0 })
    }

    pub fn state(&self) -> &Uniform<T> {
        &self.psi
    }

    /// What the last step found of the state that it began with; nothing before the first.
    pub fn found(&self) -> Option<StepReport> {
        self.found
    }

    /// How many states have moved to other sectors, where the last thing done was to move them.
    pub fn moved(&self) -> usize {
        self.moved
    }

    fn tolerance(&self) -> f64 {
        self.found.map_or(LOOSE, |f| (1e-3 * f.gradient).clamp(TIGHT, LOOSE))
    }

    fn environments(&self, tol: f64) -> Result<Arc<Environments<T>>> {
        let known = self.known.as_deref();
        Ok(Arc::new(Environments::new(&self.psi, &self.h, known, tol)?))
    }

    /// One step of all sites: far from the minimum by local ground states, near it along the gradient.
    ///
    /// # Errors
    /// When a search or a linear system fails; interruption.
    pub fn step(&self, device: &Device, task: &Task) -> Result<UniformSearch<T>> {
        let tol = self.tolerance();
        if self.due == 0 && self.found.is_some_and(|f| f.gradient < NEAR) {
            let known = self.near.as_ref().map_or(self.known.clone(), |n| Some(n.0.environments.clone()));
            let surroundings = |psi: &Uniform<T>| {
                Ok(Arc::new(Environments::new(psi, &self.h, known.as_deref(), 0.1 * tol)?))
            };
            let near = match &self.near {
                Some(near) => near.clone(),
                None => Arc::new((Point::new(&self.psi, &surroundings, device)?, StepHistory::new())),
            };
            let step = near.0.step(&near.1, &surroundings, device)?;
            let near = step.map_or(
                Arc::new((Point::new(&near.0.psi, &surroundings, device)?, StepHistory::new())),
                Arc::new,
            );
            let (psi, found) = (near.0.psi.clone(), near.0.found);
            return Ok(UniformSearch { found: Some(found), near: Some(near), ..self.of(psi, 0) });
        }
        let environments = self.environments(0.1 * tol)?;
        let due = self.due.saturating_sub(1);
        let (psi, found) = self.psi.step(&environments, device, tol, task)?;
        Ok(UniformSearch { known: Some(environments), found: Some(found), ..self.of(psi, due) })
    }

    /// With bonds of up to `states` states, as far as the Hamiltonian adds any.
    ///
    /// # Errors
    /// As [`UniformSearch::step`].
    pub fn widened(&self, device: &Device, states: usize) -> Result<UniformSearch<T>> {
        let environments = self.environments(0.1 * self.tolerance())?;
        let more: Vec<usize> = self.psi.widths().iter().map(|w| states.saturating_sub(*w)).collect();
        let (psi, _) = self.psi.widened(&environments, device, &more)?;
        Ok(self.of(psi, NEW))
    }

    /// The same search, of a state made of its own; `due` as in the field of that name.
    fn of(&self, psi: Uniform<T>, due: usize) -> UniformSearch<T> {
        UniformSearch { h: self.h.clone(), psi, known: None, found: self.found, near: None, due, moved: 0 }
    }

    /// With bonds of at most `states` states, and weights of no less than `least`;
    /// and the largest weight that was lost.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn cut(&self, states: usize, least: f64) -> Result<(UniformSearch<T>, f64)> {
        let (psi, lost) = self.psi.regauged()?.cut(states, least)?;
        Ok((self.of(psi, 0), lost))
    }

    /// With its states moved to the sectors, and to the kinds of states within them, where the ground state of two
    /// sites has more weight: `most` has the most states of a bond, the least weight, and how many times its own the
    /// weight has to be for which a state gives way.
    ///
    /// # Errors
    /// As [`UniformSearch::step`].
    pub fn reshared(
        &self,
        device: &Device,
        most: (usize, f64, f64),
        task: &Task,
    ) -> Result<UniformSearch<T>> {
        let tol = 0.1 * self.tolerance();
        let known = self.environments(tol)?;
        let again = |psi: &Uniform<T>| Ok(Arc::new(Environments::new(psi, &self.h, None, tol)?));
        let (psi, moved) = self.psi.reshared(&known, again, device, most, &task.quiet())?;
        Ok(UniformSearch { moved, ..self.of(psi, NEW) })
    }

    /// The state in its canonical forms with what is known of it: energy and gradient, and the variance of the energy a
    /// site as far as two neighbouring sites show it, which is all of it where terms reach no further (Hubig, Haegeman,
    /// Schollwöck, Phys. Rev. B 97, 045125 (2018)).
    ///
    /// # Errors
    /// As [`UniformSearch::step`].
    pub fn settled(&self, device: &Device, task: &Task) -> Result<(Uniform<T>, StepReport, f64)> {
        let psi = self.psi.regauged()?;
        let environments = Environments::new(&psi, &self.h, None, TIGHT)?;
        let (_, found) = psi.step(&environments, device, 1.0, task)?;
        let (_, beyond) = psi.widened(&environments, device, &vec![0; psi.count()])?;
        let variance = (beyond + found.squares) / psi.count() as f64;
        Ok((psi, found, variance))
    }
}
