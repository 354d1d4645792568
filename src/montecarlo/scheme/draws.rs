//! The random numbers of the Markov chains: Philox at counters that name the walker, the sweep and the electron. So a
//! chain is the same on any number of threads, and continues where it stopped.
//!
//! The recipe: stream `Walkers`, column = number of the walker, element = sweep 2^24 + electron 2^2 + draw. Draws 0 and
//! 1 make the displacement, draw 2 decides. Numbers above those of the electrons decide for groups and shuffle them.

use super::Proposal;
use crate::number::philox::{Stream, normals, unit, words};

/// Numbers of electrons from which on random numbers are for groups.
const GROUPS: usize = 1 << 21;

/// The random numbers of one walker in one sweep.
#[derive(Debug, Clone, Copy)]
pub struct SweepDraws {
    /// Key of the random numbers.
    pub seed: u64,
    /// Number of the walker among all.
    pub walker: u32,
    /// Number of the sweep.
    pub sweep: u64,
}

impl SweepDraws {
    /// Electrons that the recipe can tell apart, those of groups included.
    pub const MOST: usize = GROUPS;

    /// Draw number 0 to 3 of an electron.
    pub fn words(&self, electron: usize, draw: u64) -> [u32; 4] {
        let element = self.sweep << 24 | (electron as u64) << 2 | draw;
        words(self.seed, Stream::Walkers as u32, element, self.walker)
    }

    /// Displacement of an electron, in units of the step.
    pub fn displacement(&self, electron: usize, dimension: usize, proposal: Proposal) -> [f64; 3] {
        let first = self.words(electron, 0);
        let second = if dimension > 2 { self.words(electron, 1) } else { [0; 4] };
        let ([a, b], c) = match proposal {
            Proposal::Gaussian => {
                let (a, b) = normals(first);
                ([a, b], if dimension > 2 { normals(second).0 } else { 0.0 })
            }
            Proposal::Uniform => {
                let even = |low, high| 2.0 * unit(low, high) - 1.0;
                ([even(first[0], first[1]), even(first[2], first[3])], even(second[0], second[1]))
            }
        };
        [a, if dimension > 1 { b } else { 0.0 }, if dimension > 2 { c } else { 0.0 }]
    }

    /// A number in (0, 1) that decides about an electron.
    pub fn decision(&self, electron: usize) -> f64 {
        let w = self.words(electron, 2);
        unit(w[0], w[1])
    }

    /// The numbers 0 to n - 1 in random order.
    pub fn order(&self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            let w = self.words(SweepDraws::MOST + k, 3);
            order.swap(k, (unit(w[0], w[1]) * (k + 1) as f64) as usize);
        }
        order
    }
}
