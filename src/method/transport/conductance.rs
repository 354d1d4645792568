//! Conductances between leads, and the resistances that follow (Buettiker, PRL 57 (1986) 1761); beside superconductors
//! with electrons that come back as holes (Lambert, J. Phys.: Condens. Matter 3 (1991) 6579).

use super::lead::ChannelKind;
use super::opening::unresolved;
use super::{Attached, Contact, Particle, TransportSample};
use crate::error::{Error, Result};
use crate::number::{Matrix, Series};
use crate::task::Task;

/// Leads whose conductances are smaller are not joined.
const JOINED: f64 = 1e-13;

/// A smaller part of the currents that pairs carry is rounding. Voltages are the same with and without it.
const PAIRS: f64 = 1e-9;

impl TransportSample {
    /// The conductances in e^2/h: a row for the lead that a current comes from into the sample, a column for the lead
    /// with a voltage. Superconducting leads are the ground: their columns are zero. The row of a single one is what is
    /// missing, those of several are NaN, because only their sum is known.
    ///
    /// # Errors
    /// As [`TransportSample::transmission`]; leads that tell neither electrons from holes nor are superconductors.
    pub fn conductance(&self, energy: f64, task: &Task) -> Result<Matrix> {
        let n = self.leads();
        let grounded = self.superconducting(energy)?;
        let mut all = vec![0.0; n * n];
        for j in (0..n).filter(|j| !grounded[*j]) {
            let (sends, leaves) = match self.has_holes() {
                true => (Particle::Electron, Particle::Electron),
                false => (Particle::Any, Particle::Any),
            };
            let pass = |to, takes| self.transmission((j, sends), (to, takes), energy, task);
            for i in 0..n {
                if i != j || self.has_holes() {
                    all[j * n + j] += pass(i, Particle::Any)?;
                }
                if grounded[i] || (i == j && !self.has_holes()) {
                    continue;
                }
                all[i * n + j] -= pass(i, leaves)?;
                if self.has_holes() {
                    all[i * n + j] += pass(i, Particle::Hole)?;
                }
            }
        }
        let superconductors: Vec<usize> = (0..n).filter(|i| grounded[*i]).collect();
        for j in 0..n {
            let rest: f64 = (0..n).map(|i| all[i * n + j]).sum();
            for &i in &superconductors {
                all[i * n + j] = if superconductors.len() == 1 { 0.0 - rest } else { f64::NAN };
            }
        }
        Matrix::new(n, n, all)
    }

    /// The voltage from one lead to another, (V_k - V_l), for a current of one that comes in through a lead and leaves
    /// through another, in h/e^2. No current goes through other leads, but through superconductors, which all have the
    /// voltage zero, as have pairs of the sample.
    ///
    /// # Errors
    /// As [`TransportSample::conductance`]; leads that are not there, and at which no voltage is defined.
    pub fn resistance(
        &self,
        (from, to): (usize, usize),
        (k, l): (usize, usize),
        energy: f64,
        task: &Task,
    ) -> Result<f64> {
        [from, to, k, l].into_iter().try_for_each(|lead| self.check(lead))?;
        let g = self.conductance(energy, task)?;
        let n = self.leads();
        let g = g.data().as_real("conductances")?.to_vec();
        let superconducting = self.superconducting(energy)?;
        let joined = |i: usize, j: usize| g[i * n + j].abs() > JOINED || g[j * n + i].abs() > JOINED;
        if let Some(lead) =
            [from, to, k, l].into_iter().find(|i| !superconducting[*i] && !(0..n).any(|j| joined(*i, j)))
        {
            return Err(Error::numeric(format!(
                "at energy {energy} no current goes through lead {lead}: it has no voltage"
            ))
            .hint("`channels` tells where a lead has open channels"));
        }
        // Leads that currents join have the number of the first of them.
        let mut part: Vec<usize> = (0..n).collect();
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).filter(|(i, j)| joined(*i, *j)) {
            let (lower, upper) = (part[i].min(part[j]), part[i].max(part[j]));
            part.iter_mut().filter(|p| **p == upper).for_each(|p| *p = lower);
        }
        // What leaves through superconductors. Pairs of the sample itself are one, too.
        let normal = |i: &usize| !superconducting[*i];
        let missing = |j: usize| (0..n).filter(normal).map(|i| g[i * n + j]).sum::<f64>().abs();
        let most = g.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let ground: Vec<usize> =
            (0..n).filter(|i| superconducting[*i] || missing(*i) > PAIRS * most).map(|i| part[i]).collect();
        let together = |i: usize, j: usize| {
            part[i] == part[j] || (ground.contains(&part[i]) && ground.contains(&part[j]))
        };
        if let Some((i, j)) = [(from, to), (k, l)].into_iter().find(|(i, j)| !together(*i, *j)) {
            return Err(Error::numeric(format!(
                "at energy {energy} no current joins leads {i} and {j}: the resistance is not defined"
            ))
            .hint("`conductance` shows which leads are joined"));
        }
        let zero = |i: usize| match part[i] == part[to] {
            _ if superconducting[i] => true,
            _ if ground.contains(&part[i]) => false,
            true => i == to,
            false => i == part[i],
        };
        let free: Vec<usize> = (0..n).filter(|i| !zero(*i) && (0..n).any(|j| joined(*i, j))).collect();
        if free.is_empty() || k == l {
            return Ok(0.0);
        }
        let size = free.len();
        let element = |at: usize| g[free[at / size] * n + free[at % size]];
        let reduced = Matrix::new(size, size, (0..size * size).map(element).collect::<Vec<f64>>())?;
        let (_, singular, _) = reduced.svd()?;
        let singular = singular.as_real("singular values")?.to_vec();
        if singular.last().copied().unwrap_or_default() <= JOINED * singular[0] {
            return Err(Error::numeric(format!(
                "at energy {energy} no current joins some of the leads: their voltages are not defined"
            ))
            .hint("`conductance` shows which leads are joined"));
        }
        let current = |i: &usize| f64::from(u8::from(*i == from)) - f64::from(u8::from(*i == to));
        let currents = Series::Real(free.iter().map(current).collect());
        let voltages = reduced.solve(&Matrix::new(size, 1, currents)?)?;
        let voltages = voltages.data().as_real("voltages")?.to_vec();
        let at = |lead: usize| free.iter().position(|i| *i == lead).map_or(0.0, |place| voltages[place]);
        Ok(at(k) - at(l))
    }

    /// The shot noise at no temperature of what comes in through one lead and leaves through another: the sum of
    /// `T_n (1 - T_n)` over the eigenvalues of `t t^dagger` (Buettiker, PRB 46 (1992) 12485).
    ///
    /// # Errors
    /// Leads that are not there, holes, and as [`TransportSample::scattering`].
    pub fn shot_noise(&self, from: usize, to: usize, energy: f64, task: &Task) -> Result<f64> {
        self.check(from)?;
        self.check(to)?;
        if self.has_holes() {
            return Err(Error::input("the shot noise of electrons and holes, whose charges differ")
                .hint("`scattering` has all amplitudes; without `pairing` there are no holes"));
        }
        let states = self.states(energy, &[from], task)?.ok_or_else(|| unresolved(energy))?;
        let t = &states.out[to];
        let passed = t * t.adjoint();
        let size = 0..passed.nrows();
        let sum: f64 = size.clone().map(|i| passed[(i, i)].re).sum();
        let squares: f64 = size
            .clone()
            .flat_map(|i| size.clone().map(move |j| (i, j)))
            .map(|at| passed[at].norm_sqr())
            .sum();
        Ok((sum - squares).max(0.0))
    }

    fn has_holes(&self) -> bool {
        self.leads.iter().any(|lead| lead.electrons < lead.orbitals)
    }

    /// Which leads are superconductors: they join electrons with holes.
    fn superconducting(&self, energy: f64) -> Result<Vec<bool>> {
        if !self.has_holes() {
            return Ok(vec![false; self.leads()]);
        }
        let of = |(number, lead): (usize, &Attached)| {
            let kinds = match &lead.contact {
                Contact::Lead(own) => own.kinds().to_vec(),
                Contact::Escape(escape) => {
                    let opening = escape.opening(energy, lead.orbitals, lead.electrons)?;
                    opening.kinds.iter().map(|(kind, _)| *kind).collect()
                }
            };
            if kinds.iter().any(|kind| matches!(kind, ChannelKind::Carrying(_))) {
                return Err(Error::input(format!(
                    "the conductance of lead {number}, which does not tell electrons from holes"
                ))
                .hint("a lead with holes that conserves a matrix tells its eigenvalues apart instead"));
            }
            Ok(kinds.contains(&ChannelKind::Any))
        };
        self.leads.iter().enumerate().map(of).collect()
    }
}
