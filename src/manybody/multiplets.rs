//! The states of a site as multiplets of its spin, and its operators as sums of irreducible tensors between them.

use super::site::{LocalOperator, Site};
use super::wigner::{clebsch_gordan, couplings};
use crate::error::{Error, Result};
use crate::number::C64;

/// The states of a site by their spin. A site without spin operators has none, and all its states are singlets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Multiplets {
    /// Twice the spin of each multiplet.
    pub spins: Vec<i32>,
    /// The multiplet of each state.
    pub of: Vec<usize>,
    /// Twice Sz of each state.
    pub twice: Vec<i32>,
    /// The factor by which each state has to be multiplied for S- to have positive elements.
    pub phases: Vec<C64>,
}

/// A part of an operator: the component `q` of the tensor of rank `k` (twice both) from one multiplet to another,
/// normalised so that the trace of its square is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TensorComponent {
    pub to: usize,
    pub from: usize,
    pub k: i32,
    pub q: i32,
}

impl Site {
    /// Its states as multiplets of "S+", "S-" and "Sz".
    ///
    /// # Errors
    /// When its states are no multiplets of these.
    pub(super) fn multiplets(&self) -> Result<Multiplets> {
        let dim = self.dim();
        let (Ok(plus), Ok(sz)) = (self.operator("S+"), self.operator("Sz")) else {
            let (spins, of) = (vec![0; dim], (0..dim).collect());
            return Ok(Multiplets { spins, of, twice: vec![0; dim], phases: vec![C64::ONE; dim] });
        };
        let wrong = || {
            Error::input(format!("the states of a site `{}` are no multiplets of its spin", self.name()))
                .hint("S+ leads from each state to one other, from the multiplet's lowest Sz to its highest")
        };
        let minus = |operator: &LocalOperator, i: usize, j: usize| operator.matrix[j * dim + i].conj();
        let close = |a: C64, b: f64| (a - b).norm() < 1e-10;
        let mut twice = vec![0; dim];
        for (k, z) in sz.matrix.iter().enumerate() {
            let (i, j) = (k / dim, k % dim);
            let q = (2.0 * z.re).round();
            if i != j && !close(*z, 0.0) || i == j && !close(*z, q / 2.0) {
                return Err(wrong());
            }
            if i == j {
                twice[i] = q as i32;
            }
        }
        let (mut spins, mut of, mut phases) = (Vec::new(), vec![usize::MAX; dim], vec![C64::ONE; dim]);
        let highest = |j: &usize| (0..dim).all(|i| close(plus.matrix[i * dim + j], 0.0));
        for top in (0..dim).filter(highest) {
            let (spin, number) = (twice[top], spins.len());
            let mut state = top;
            for step in 0..=spin {
                if spin < 0 || of[state] != usize::MAX || twice[state] != spin - 2 * step {
                    return Err(wrong());
                }
                of[state] = number;
                let next: Vec<usize> = (0..dim).filter(|&i| !close(minus(plus, i, state), 0.0)).collect();
                match next[..] {
                    [] if step == spin => {}
                    [to] if step < spin => {
                        // S- |s m> = sqrt((s + m) (s - m + 1)) |s m-1>, and s - m = step.
                        let size = f64::from((spin - step) * (step + 1)).sqrt();
                        let phase = minus(plus, to, state) / size;
                        if (phase.norm() - 1.0).abs() > 1e-10 {
                            return Err(wrong());
                        }
                        phases[to] = phases[state] * phase;
                        state = to;
                    }
                    _ => return Err(wrong()),
                }
            }
            spins.push(spin);
        }
        if of.contains(&usize::MAX) {
            return Err(wrong());
        }
        Ok(Multiplets { spins, of, twice, phases })
    }
}

impl Multiplets {
    fn states(&self, multiplet: usize) -> impl Iterator<Item = usize> {
        (0..self.of.len()).filter(move |&s| self.of[s] == multiplet)
    }

    /// The parts of an operator that are not rounding.
    pub fn parts(&self, matrix: &[C64]) -> Vec<(TensorComponent, C64)> {
        let dim = self.of.len();
        let largest = matrix.iter().map(|z| z.norm()).fold(0.0, f64::max);
        let mut parts = Vec::new();
        for (to, from) in (0..self.spins.len()).flat_map(|a| (0..self.spins.len()).map(move |b| (a, b))) {
            let (s, t) = (self.spins[to], self.spins[from]);
            for (k, q) in couplings(s, t).flat_map(|k| (-k..=k).step_by(2).map(move |q| (k, q))) {
                let mut sum = C64::ZERO;
                for j in self.states(from) {
                    for i in self.states(to).filter(|&i| self.twice[i] == self.twice[j] + q) {
                        let unit = clebsch_gordan([t, self.twice[j]], [k, q], [s, self.twice[i]]);
                        sum += matrix[i * dim + j] * self.phases[i].conj() * self.phases[j] * unit;
                    }
                }
                sum *= (f64::from(k + 1) / f64::from(s + 1)).sqrt();
                if sum.norm() > 1e-14 * largest {
                    parts.push((TensorComponent { to, from, k, q }, sum));
                }
            }
        }
        parts
    }

    /// The reduced matrix element of a tensor of [`Multiplets::parts`], in the units of
    /// [`recoupling`](super::wigner::recoupling).
    pub fn element(&self, to: usize, from: usize, k: i32) -> f64 {
        let size = f64::from(k + 1) / f64::from((self.spins[to] + 1) * (self.spins[from] + 1));
        if k % 2 == 0 { size.sqrt().sqrt() } else { -size.sqrt().sqrt() }
    }
}
