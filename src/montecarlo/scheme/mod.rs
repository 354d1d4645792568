//! Updating schemes: how a sweep, a trial move for every electron, is decided.
//! Names and facts of Uejima and Maezono 2012.
//!
//! All schemes draw the same trial points: that of an electron depends only on its own position, so all trial points of
//! a sweep are known at its start.

mod ahead;
mod draws;
mod group;
mod simple;

use std::fmt;

pub use ahead::eliminate;
pub use draws::SweepDraws;
pub use group::second_stage;

pub use crate::backend::walkers::{Proposal, Scheme, ScreenRule, Sweep};

use super::Derivatives;
use super::amplitude::Amplitude;
use super::wavefunction::{Configuration, SlaterJastrow};
use crate::backend::walkers::{self, MOST_OF_A_GROUP};
use crate::error::{Error, Result};
use crate::task::Interrupt;

impl Scheme {
    pub const ALL: [Scheme; 5] = [
        Scheme::Configuration,
        Scheme::ParticleByParticle,
        Scheme::LookAhead,
        Scheme::DelayedAcceptance,
        Scheme::QuasiSimultaneous,
    ];

    /// Its name in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Configuration => "configuration",
            Scheme::ParticleByParticle => "particle-by-particle",
            Scheme::LookAhead => "look-ahead",
            Scheme::DelayedAcceptance => "delayed-acceptance",
            Scheme::QuasiSimultaneous => "quasi-simultaneous",
        }
    }

    /// Whether its stationary distribution is |Psi|^2.
    pub fn exact(self) -> bool {
        self != Scheme::QuasiSimultaneous
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Sweep {
    /// Refuses invalid settings.
    ///
    /// # Errors
    /// For a step that is not positive, an empty group, a drift without normal displacements.
    pub fn check(&self) -> Result<()> {
        if !(self.step > 0.0 && self.step.is_finite()) {
            return Err(Error::input(format!("a step of {}", self.step))
                .hint("a trial move has a positive size, in bohr; a `step` that is left out is tuned"));
        }
        if self.group == 0 || self.group > MOST_OF_A_GROUP {
            return Err(Error::input(format!("groups of {} electrons", self.group))
                .hint(format!(
                    "delayed acceptance takes groups of 1 to {MOST_OF_A_GROUP}; large ones are hardly ever accepted"
                )));
        }
        if self.drift && self.proposal == Proposal::Uniform {
            return Err(Error::input("a drift needs normal displacements")
                .hint("leave out `drift`, or take `proposal: \"gaussian\"`"));
        }
        Ok(())
    }
}

/// The trial points of a sweep and `ln q(x|y) - ln q(y|x)` of each.
pub(super) struct TrialPoints {
    pub points: Vec<[f64; 3]>,
    pub bias: Vec<f64>,
}

/// Draws the trial points of a sweep.
pub(super) fn trial<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &Configuration<S>,
    sweep: &Sweep,
    draws: &SweepDraws,
) -> TrialPoints {
    let dimension = psi.orbitals().dimension();
    let displaced = |i: usize, from: [f64; 3]| {
        let d = draws.displacement(i, dimension, sweep.proposal);
        std::array::from_fn(|k| from[k] + sweep.step * d[k])
    };
    let n = walker.positions.len();
    if !sweep.drift {
        let points = (0..n).map(|i| displaced(i, walker.positions[i])).collect();
        return TrialPoints { points, bias: vec![0.0; n] };
    }
    let variance = sweep.step * sweep.step;
    let before = drifts(psi, &walker.positions, variance);
    let drifted = |x: [f64; 3], v: [f64; 3]| std::array::from_fn(|k| x[k] + variance * v[k]);
    let points: Vec<[f64; 3]> =
        (0..n).map(|i| displaced(i, drifted(walker.positions[i], before[i]))).collect();
    let after = drifts(psi, &points, variance);
    let away = |to: [f64; 3], from: [f64; 3], v: [f64; 3]| {
        let centre: [f64; 3] = drifted(from, v);
        (0..3).map(|k| (to[k] - centre[k]) * (to[k] - centre[k])).sum::<f64>()
    };
    let bias = (0..n).map(|i| {
        let (x, y) = (walker.positions[i], points[i]);
        (away(y, x, before[i]) - away(x, y, after[i])) / (2.0 * variance)
    });
    TrialPoints { bias: bias.collect(), points }
}

/// `v(r) = grad ln sqrt(rho)` of the one-body density `rho = sum_l |psi_l|^2`, shortened where it is long (Umrigar,
/// Nightingale, Runge, J. Chem. Phys. 99 (1993) 2865). It depends on one electron only, so that the trial points of a
/// sweep do not depend on what is accepted.
fn drifts<S: Amplitude>(psi: &SlaterJastrow<S>, points: &[[f64; 3]], variance: f64) -> Vec<[f64; 3]> {
    let count = psi.orbitals().count();
    let mut at = Derivatives::new(points.len(), count);
    psi.orbitals().derivatives(points, &mut at);
    let (up, down) = psi.electrons();
    let filled = up.max(down).min(count);
    let one = |p: usize| {
        let (mut density, mut slope) = (0.0, [0.0; 3]);
        for l in p * count..p * count + filled {
            density += at.value[l].square();
            for k in 0..3 {
                slope[k] += (crate::number::Scalar::conj(at.value[l]) * at.gradient[k][l]).re();
            }
        }
        if !(density > 1e-300) {
            return [0.0; 3];
        }
        let v = slope.map(|x| x / density);
        let square = variance * v.iter().map(|x| x * x).sum::<f64>();
        let factor = if square > 1e-12 { ((1.0 + 2.0 * square).sqrt() - 1.0) / square } else { 1.0 };
        v.map(|x| x * factor)
    };
    (0..points.len()).map(one).collect()
}

/// The probability ratio `|ratio|^2 exp(2 dJ + bias)`, which must be a number.
pub(super) fn odds<S: Amplitude>(ratio: S, jastrow: f64, bias: f64) -> Result<f64> {
    let odds = ratio.square() * (2.0 * jastrow + bias).exp();
    if odds.is_nan() {
        return Err(walkers::no_number());
    }
    Ok(odds)
}

/// Makes a sweep of one walker; returns the number of electrons that moved.
///
/// # Errors
/// When the wave function is not finite somewhere, or the user stops the work: the walker must then be set up anew.
pub(super) fn run<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &mut Configuration<S>,
    sweep: &Sweep,
    draws: &SweepDraws,
    interrupt: &Interrupt,
) -> Result<usize> {
    let trial = trial(psi, walker, sweep, draws);
    match sweep.scheme {
        Scheme::ParticleByParticle => simple::particle_by_particle(psi, walker, &trial, draws, interrupt),
        Scheme::Configuration => simple::configuration(psi, walker, &trial, draws),
        Scheme::QuasiSimultaneous => simple::quasi_simultaneous(psi, walker, &trial, draws),
        Scheme::LookAhead => ahead::look_ahead(psi, walker, &trial, draws, interrupt),
        Scheme::DelayedAcceptance => {
            group::delayed_acceptance(psi, walker, &trial, draws, sweep.group, sweep.screen, interrupt)
        }
    }
}
