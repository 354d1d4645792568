//! What the Wilson-Dirac operator and its kernels agree on.

use super::fold::Fold;
use crate::backend::matrix::wilson::{WilsonBox, WilsonSpec};

/// Vectors that one pass may add.
pub(super) const MOST_ADDED: usize = 4;

/// Lanes of a pack that are at a face: runs of so many, as far apart as they are long, from `lane` on. Among the lanes
/// of the face they stand together, from `at` on.
#[derive(Clone, Copy)]
pub(super) struct Across {
    pub run: usize,
    pub runs: usize,
    pub lane: usize,
    pub at: usize,
}

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
    /// Whether the lattice is a box that has neighbours in a direction, and what a fermion gets that leaves it through
    /// the lower and the upper face.
    pub cut: [bool; 4],
    pub leave: [[f64; 2]; 4],
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
        WilsonShape { part, bit, lanes, enter, odd, cut: [false; 4], leave: [[1.0; 2]; 4] }
    }

    /// The shape of a box: of its inner sites, with the signs of its cut faces.
    pub fn of_box(part: &WilsonBox) -> WilsonShape {
        let cut = std::array::from_fn(|d| part.is_cut(d));
        let leave = std::array::from_fn(|d| [part.sign(d, false), part.sign(d, true)]);
        WilsonShape { cut, leave, ..WilsonShape::new(&part.inner()) }
    }

    /// Sites that lie side by side in a part, across a direction: as many as the places of a face are counted by.
    pub fn places_across(&self, d: usize) -> usize {
        self.sites() / self.part[d]
    }

    /// Lanes of a face: where the direction is folded, one half of the lanes has the lower face and the other the upper
    /// one.
    pub fn lanes_across(&self, d: usize) -> usize {
        if self.bit[d] > 0 { self.lanes / 2 } else { self.lanes }
    }

    /// Where the lanes of a pack are among those of a face, for pack number `chunk` of so many lanes; none if its sites
    /// are at the opposite face.
    #[inline(always)]
    pub fn across(&self, d: usize, upper: bool, chunk: usize, lanes: usize) -> Option<Across> {
        let (bit, lane) = (self.bit[d], chunk * lanes);
        if bit == 0 {
            return Some(Across { run: lanes, runs: 1, lane: 0, at: lane });
        }
        if bit < lanes {
            let first = if upper { bit } else { 0 };
            return Some(Across { run: bit, runs: lanes / (2 * bit), lane: first, at: lane / 2 });
        }
        let at = (lane & (bit - 1)) | (lane >> 1 & !(bit - 1));
        ((lane & bit > 0) == upper).then_some(Across { run: lanes, runs: 1, lane: 0, at })
    }

    pub fn sites(&self) -> usize {
        self.part.iter().product()
    }
}
