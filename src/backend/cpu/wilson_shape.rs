//! What the Wilson-Dirac operator and its kernels agree on.

use super::fold::Fold;
use crate::backend::matrix::wilson::WilsonSpec;

/// Vectors that one pass may add.
pub(super) const MOST_ADDED: usize = 4;

/// Where the parts of the lattice lie, as the kernels see it.
#[derive(Debug, Clone)]
pub(super) struct WilsonShape {
    /// Sites of a part in each direction.
    pub part: [usize; 4],
    /// See [`Fold::bit`].
    pub bit: [usize; 4],
    /// Rows side by side.
    pub lanes: usize,
    /// Which lanes a fermion enters across the lattice's own boundary, upwards and downwards, as factors; by direction.
    pub enter: [[[f64; 16]; 2]; 4],
    /// Whether a lane's sites have the other parity than those of lane 0.
    pub odd: [bool; 16],
}

impl WilsonShape {
    pub fn new(spec: &WilsonSpec) -> WilsonShape {
        let (part, bit, lanes) = match Fold::of(&spec.rows()) {
            Some(fold) => (fold.part, fold.bit, fold.lanes),
            None => (spec.dims(), [0; 4], 1),
        };
        let mut enter = [[[1.0; 16]; 2]; 4];
        let mut odd = [false; 16];
        for lane in 0..lanes {
            for d in 0..4 {
                let upper = bit[d] == 0 || lane & bit[d] > 0;
                let lower = bit[d] == 0 || lane & bit[d] == 0;
                // A lane whose forward neighbour lies across the boundary is in the upper part, and so on.
                enter[d][0][lane] = if upper { spec.sign[d] } else { 1.0 };
                enter[d][1][lane] = if lower { spec.sign[d] } else { 1.0 };
                odd[lane] ^= bit[d] > 0 && lane & bit[d] > 0 && part[d] % 2 == 1;
            }
        }
        WilsonShape { part, bit, lanes, enter, odd }
    }

    pub fn sites(&self) -> usize {
        self.part.iter().product()
    }
}
