//! The schemes that Uejima and Maezono 2012 compares: particle by particle,
//! configuration by configuration, quasi-simultaneous.

use super::{SweepDraws, TrialPoints, odds};
use crate::backend::walkers::on_node;
use crate::error::Result;
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::wavefunction::{Configuration, SlaterJastrow};
use crate::task::Interrupt;

/// One electron after the other: `xi_j = |Psi(y_j | partly updated)|^2 / |Psi(partly updated)|^2`.
pub fn particle_by_particle<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &mut Configuration<S>,
    trial: &TrialPoints,
    draws: &SweepDraws,
    interrupt: &Interrupt,
) -> Result<usize> {
    let (mut row, mut ratios, mut accepted) = (Vec::new(), Vec::new(), 0);
    for (i, &to) in trial.points.iter().enumerate() {
        interrupt.check()?;
        psi.values(&[to], &mut row);
        let ratio = psi.ratio(walker, i, &row, &mut ratios);
        let jastrow = psi.jastrow().change(&walker.positions, i, to);
        if draws.decision(i) < odds(ratio, jastrow, trial.bias[i])? {
            psi.accept(walker, i, to, &row, &ratios);
            accepted += 1;
        }
    }
    Ok(accepted)
}

/// All move or none does: `xi = |Psi(Y)|^2 / |Psi(X)|^2`.
pub fn configuration<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &mut Configuration<S>,
    trial: &TrialPoints,
    draws: &SweepDraws,
) -> Result<usize> {
    let Some(moved) = psi.configuration_or_node(trial.points.clone())? else { return Ok(0) };
    let change = psi.log(&moved).0 - psi.log(walker).0;
    if draws.decision(0) < odds(1.0, change, trial.bias.iter().sum())? {
        *walker = moved;
        return Ok(trial.points.len());
    }
    Ok(0)
}

/// N decisions against the old configuration: `xi_j = |Psi(X with j moved)|^2 / |Psi(X)|^2`.
pub fn quasi_simultaneous<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &mut Configuration<S>,
    trial: &TrialPoints,
    draws: &SweepDraws,
) -> Result<usize> {
    let (n, mut rows) = (trial.points.len(), Vec::new());
    psi.values(&trial.points, &mut rows);
    let count = rows.len() / n;
    let (mut ratios, mut moved) = (Vec::new(), Vec::new());
    for (i, &to) in trial.points.iter().enumerate() {
        let row = &rows[i * count..(i + 1) * count];
        let ratio = psi.ratio(walker, i, row, &mut ratios);
        let jastrow = psi.jastrow().change(&walker.positions, i, to);
        if draws.decision(i) < odds(ratio, jastrow, trial.bias[i])? {
            moved.push(i);
        }
    }
    for &i in &moved {
        psi.place(walker, i, trial.points[i], &rows[i * count..(i + 1) * count]);
    }
    psi.refresh(walker).map_err(|_| on_node("quasi-simultaneous moves"))?;
    Ok(moved.len())
}
