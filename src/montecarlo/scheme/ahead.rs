//! Look-ahead: the particle-by-particle scheme, with the orbitals of all trial points of a sweep evaluated in one
//! batch.
//!
//! With `M = Phi(Y) A^-1`, the ratio of electron i is `M_ii`, and accepting it eliminates its row and column from the
//! rows to come, as in an LU decomposition that skips the rejected ones.
//! At the end all accepted rows enter the inverse at once.

use std::ops::Range;

use super::{SweepDraws, TrialPoints, odds};
use crate::error::Result;
use crate::montecarlo::amplitude::{Amplitude, add_transposed_times};
use crate::montecarlo::wavefunction::{Configuration, SlaterJastrow};
use crate::task::Interrupt;

/// Rows eliminated among themselves before the later rows are updated, by a product of matrices.
const BLOCK: usize = 48;

/// M of one filling while its electrons are decided.
struct Eliminated<S> {
    n: usize,
    /// M before the elimination, for the update of the inverse.
    start: Vec<S>,
    m: Vec<S>,
    log: f64,
    phase: S,
}

impl<S: Amplitude> Eliminated<S> {
    /// Eliminates row and column i from the later rows of its block.
    fn accept(&mut self, i: usize, block: &Range<usize>) {
        let n = self.n;
        let pivot = self.m[i * n + i];
        let size = pivot.modulus();
        self.log += size.ln();
        self.phase *= pivot / S::real(size);
        eliminate(&mut self.m, n, i, block.end);
    }

    /// Eliminates the rows accepted in a block from the rows after it.
    fn finish(&mut self, accepted: &[usize], end: usize) {
        let n = self.n;
        if accepted.is_empty() || end >= n {
            return;
        }
        let (above, below) = self.m.split_at_mut(end * n);
        let (rest, k) = (n - end, accepted.len());
        // L of the rows below, column after column of the accepted.
        let mut left = vec![S::default(); k * rest];
        for (row, line) in below.chunks_exact(n).enumerate() {
            for (a, &i) in accepted.iter().enumerate() {
                let mut x = line[i];
                for (b, &j) in accepted[..a].iter().enumerate() {
                    x -= left[b * rest + row] * above[j * n + i];
                }
                left[a * rest + row] = x / above[i * n + i];
            }
        }
        let upper: Vec<S> =
            accepted.iter().flat_map(|&i| above[i * n + end..(i + 1) * n].iter().copied()).collect();
        let mut change = vec![S::default(); rest * rest];
        add_transposed_times(&left, &upper, &mut change, k, S::real(-1.0));
        for (line, change) in below.chunks_exact_mut(n).zip(change.chunks_exact(rest)) {
            line[end..].iter_mut().zip(change).for_each(|(x, c)| *x += *c);
        }
    }
}

/// One step of the elimination: takes the multiple of row i out of rows `i + 1 .. end` of an n x n matrix, in the
/// columns after i.
pub fn eliminate<S: Amplitude>(m: &mut [S], n: usize, i: usize, end: usize) {
    let (above, below) = m.split_at_mut((i + 1) * n);
    let row = &above[i * n..];
    for line in below.chunks_exact_mut(n).take(end - i - 1) {
        let factor = line[i] / row[i];
        for j in i + 1..n {
            line[j] -= factor * row[j];
        }
    }
}

/// A sweep; returns the number of electrons that moved.
pub fn look_ahead<S: Amplitude>(
    psi: &SlaterJastrow<S>,
    walker: &mut Configuration<S>,
    trial: &TrialPoints,
    draws: &SweepDraws,
    interrupt: &Interrupt,
) -> Result<usize> {
    let mut rows = Vec::new();
    psi.values(&trial.points, &mut rows);
    let count = rows.len() / trial.points.len();
    let (up, down) = psi.electrons();
    let mut total = 0;
    for (spin, first, n) in [(false, 0, up), (true, up, down)] {
        let fillings: Vec<usize> = psi.fillings(spin).collect();
        let mut store = Vec::new();
        let mut matrices: Vec<Eliminated<S>> = Vec::new();
        for &f in &fillings {
            let mut picked = Vec::with_capacity(n * n);
            for i in first..first + n {
                picked.extend_from_slice(psi.pick(f, &rows[i * count..(i + 1) * count], &mut store));
            }
            let mut m = Vec::new();
            walker.determinants[f].all_ratios(&picked, &mut m);
            matrices.push(Eliminated { n, start: m.clone(), m, log: 0.0, phase: S::real(1.0) });
        }
        let mut accepted = Vec::new();
        let mut ratios = vec![None; walker.determinants.len()];
        for begin in (0..n).step_by(BLOCK) {
            let block = begin..(begin + BLOCK).min(n);
            let so_far = accepted.len();
            for own in block.clone() {
                interrupt.check()?;
                let i = first + own;
                let mut ratio = S::default();
                for (&f, matrix) in fillings.iter().zip(&matrices) {
                    let q = matrix.m[own * n + own];
                    ratios[f] = Some(q);
                    ratio += if psi.is_single() { q } else { psi.weight(walker, f) * q };
                }
                let jastrow = psi.jastrow().change(&walker.positions, i, trial.points[i]);
                if draws.decision(i) < odds(ratio, jastrow, trial.bias[i])? {
                    matrices.iter_mut().for_each(|matrix| matrix.accept(own, &block));
                    psi.reweigh(walker, &ratios);
                    walker.positions[i] = trial.points[i];
                    accepted.push(own);
                }
            }
            matrices.iter_mut().for_each(|matrix| matrix.finish(&accepted[so_far..], block.end));
        }
        if accepted.is_empty() {
            continue;
        }
        for (&f, matrix) in fillings.iter().zip(&matrices) {
            let mut moved = Vec::with_capacity(accepted.len() * n);
            for &own in &accepted {
                let i = first + own;
                moved.extend_from_slice(psi.pick(f, &rows[i * count..(i + 1) * count], &mut store));
            }
            let m: Vec<S> = accepted
                .iter()
                .flat_map(|&own| matrix.start[own * n..(own + 1) * n].iter().copied())
                .collect();
            walker.determinants[f].replace_many(&accepted, &moved, &m, (matrix.log, matrix.phase));
        }
        total += accepted.len();
    }
    Ok(total)
}
