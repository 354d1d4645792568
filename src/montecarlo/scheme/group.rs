//! Delayed acceptance: the electrons of a group are screened at the same time against the old configuration, and a
//! second stage accepts or rejects all that passed. The reverse move keeps the trial points of those that did not
//! pass, which makes detailed balance exact (Christen, Fox, J. Comput. Graph. Stat. 14 (2005) 795).

use super::{ScreenRule, SweepDraws, TrialPoints, odds};
use crate::error::Result;
use crate::montecarlo::amplitude::{Amplitude, determinant, dot};
use crate::montecarlo::wavefunction::{Configuration, SlaterJastrow};
use crate::task::Interrupt;

impl ScreenRule {
    /// The probability with which a member whose ratio is r passes the first stage.
    pub fn pass(self, r: f64) -> f64 {
        match self {
            ScreenRule::Metropolis => r.min(1.0),
            ScreenRule::Barker if r.is_infinite() => 1.0,
            ScreenRule::Barker => r / (1.0 + r),
        }
    }
}

/// The probability to accept all that passed the first stage. For every member of the group: whether it `passed`, its
/// ratio `forward` from the old configuration, and its ratio `back` from the new one (moved back if it passed, moved
/// forward if it did not). `odds` is the ratio of all that passed, with the ratio of the proposals.
pub fn second_stage(screen: ScreenRule, odds: f64, passed: &[bool], forward: &[f64], back: &[f64]) -> f64 {
    let mut alpha = odds;
    for ((&passed, &r), &r_back) in passed.iter().zip(forward).zip(back) {
        alpha *= if passed {
            screen.pass(r_back) / screen.pass(r)
        } else {
            (1.0 - screen.pass(r_back)) / (1.0 - screen.pass(r))
        };
    }
    // 0/0 stands for a move that cannot be reversed.
    if alpha.is_nan() { 0.0 } else { alpha.min(1.0) }
}

/// The members of a group and their part of M.
struct GroupMatrices<'a, S> {
    psi: &'a SlaterJastrow<S>,
    members: &'a [usize],
    /// For each filling: `phi(y_a) . A^-1[:, b]` for members a, b of its spin.
    matrices: Vec<Vec<S>>,
}

impl<'a, S: Amplitude> GroupMatrices<'a, S> {
    fn new(
        psi: &'a SlaterJastrow<S>,
        walker: &mut Configuration<S>,
        members: &'a [usize],
        rows: &[S],
    ) -> Self {
        let (k, count) = (members.len(), rows.len() / walker.positions.len());
        walker.determinants.iter_mut().for_each(|d| d.flush());
        let mut matrices = vec![vec![S::default(); k * k]; walker.determinants.len()];
        let mut store = Vec::new();
        for (a, &i) in members.iter().enumerate() {
            let (_, fillings) = psi.fillings_of(i);
            for f in fillings {
                let part = psi.pick(f, &rows[i * count..(i + 1) * count], &mut store);
                for (b, &j) in members.iter().enumerate() {
                    let (own, mut same) = psi.fillings_of(j);
                    if same.any(|g| g == f) {
                        matrices[f][a * k + b] = dot(part, walker.determinants[f].column_of_inverse(own));
                    }
                }
            }
        }
        GroupMatrices { psi, members, matrices }
    }

    /// The ratio of each filling if the members for which `moves` holds move: `ln |det M_AA|` and phase.
    fn parts(&self, moves: &[bool]) -> Vec<(f64, S)> {
        let k = self.members.len();
        let of = |f: usize| {
            let own = |a: &usize| moves[*a] && self.psi.fillings_of(self.members[*a]).1.any(|g| g == f);
            let chosen: Vec<usize> = (0..k).filter(own).collect();
            let pairs = chosen.iter().flat_map(|&a| chosen.iter().map(move |&b| (a, b)));
            let inner: Vec<S> = pairs.map(|(a, b)| self.matrices[f][a * k + b]).collect();
            determinant(&inner, chosen.len())
        };
        (0..self.matrices.len()).map(of).collect()
    }

    /// The ratio of the sum of determinants.
    fn ratio(&self, walker: &Configuration<S>, moves: &[bool]) -> S {
        self.psi.combined(walker, &self.parts(moves))
    }
}

/// A sweep through all electrons in random groups; returns the number of electrons that moved.
pub fn delayed_acceptance<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &mut Configuration<S>,
    trial: &TrialPoints,
    draws: &SweepDraws,
    group: usize,
    screen: ScreenRule,
    interrupt: &Interrupt,
) -> Result<usize> {
    let n = trial.points.len();
    let mut rows = Vec::new();
    psi.values(&trial.points, &mut rows);
    let count = rows.len() / n;
    let order = draws.order(n);
    let mut total = 0;
    for (number, members) in order.chunks(group).enumerate() {
        interrupt.check()?;
        let matrices = GroupMatrices::new(psi, walker, members, &rows);
        let k = members.len();
        let only = |a: usize| -> Vec<bool> { (0..k).map(|b| b == a).collect() };
        let (mut forward, mut passed) = (vec![0.0; k], vec![false; k]);
        for (a, &i) in members.iter().enumerate() {
            let jastrow = psi.jastrow().change(&walker.positions, i, trial.points[i]);
            forward[a] = odds(matrices.ratio(walker, &only(a)), jastrow, 0.0)?;
            passed[a] = draws.decision(i) < screen.pass(forward[a]);
        }
        if !passed.contains(&true) {
            continue;
        }
        let (mut positions, mut jastrow, mut bias) = (walker.positions.clone(), 0.0, 0.0);
        for (a, &i) in members.iter().enumerate() {
            if passed[a] {
                jastrow += psi.jastrow().change(&positions, i, trial.points[i]);
                positions[i] = trial.points[i];
                bias += trial.bias[i];
            }
        }
        let all = matrices.ratio(walker, &passed);
        if all.modulus() == 0.0 {
            continue;
        }
        let mut back = vec![0.0; k];
        for (a, &i) in members.iter().enumerate() {
            let mut toggled = passed.clone();
            toggled[a] = !toggled[a];
            let to = if passed[a] { walker.positions[i] } else { trial.points[i] };
            let change = psi.jastrow().change(&positions, i, to);
            back[a] = odds(matrices.ratio(walker, &toggled) / all, change, 0.0)?;
        }
        let alpha = second_stage(screen, odds(all, jastrow, bias)?, &passed, &forward, &back);
        if draws.decision(n + number) < alpha {
            let moved: Vec<usize> = (0..k).filter(|&a| passed[a]).map(|a| members[a]).collect();
            let parts = matrices.parts(&passed);
            for &i in &moved {
                walker.positions[i] = trial.points[i];
            }
            psi.accept_many(walker, &moved, &rows, count, &parts);
            total += moved.len();
        }
    }
    Ok(total)
}
