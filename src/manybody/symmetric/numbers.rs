//! The numbers of product states from their words by two tables, one for each half of the sites (Lin, Phys. Rev. B 42,
//! 6561 (1990)).

use super::super::basis::{DiagramLevel, SectorBasis};
use super::codes::WordLayout;

/// The most bits of a word, and of a half of it.
pub(super) const SHORT: u32 = 32;
const WIDEST: u32 = 20;

/// No state of the sector.
const NONE: u32 = u32::MAX;

/// The number of a state is the sum of those of its halves, which meet at a node of the diagram.
#[derive(Debug)]
pub(super) struct StateNumbers {
    shift: u32,
    left: Vec<HalfPath>,
    right: Vec<HalfPath>,
}

#[derive(Debug, Clone, Copy)]
struct HalfPath {
    /// How many states branch off before it.
    before: u64,
    /// The node between the halves.
    node: u32,
}

const OUTSIDE: HalfPath = HalfPath { before: 0, node: NONE };

/// Where a path from a node ends, and how many states branch off before it.
fn path(levels: &[DiagramLevel], states: &[u8], mut node: u32) -> Option<HalfPath> {
    let mut before = 0;
    for (level, &state) in levels.iter().zip(states) {
        if state as usize >= level.dim {
            return None;
        }
        before += level.before(node, state);
        node = level.leads(node, state)?;
    }
    Some(HalfPath { before, node })
}

impl StateNumbers {
    /// The tables of a basis; none where they would be long.
    pub fn new(basis: &SectorBasis, layout: &WordLayout) -> Option<StateNumbers> {
        let levels = basis.levels();
        let middle = layout.shifts.iter().position(|&shift| 2 * shift <= layout.bits)? + 1;
        let shift = layout.shifts[middle - 1];
        if shift > WIDEST || layout.bits - shift > WIDEST {
            return None;
        }
        let half = |code: u64, sites: std::ops::Range<usize>| layout.states(code)[sites].to_vec();
        // Behind the last site all that is left is the sector's own node.
        let node = |h: HalfPath| if middle == levels.len() { HalfPath { node: 0, ..h } } else { h };
        let left = (0..1u64 << (layout.bits - shift))
            .map(|code| path(&levels[..middle], &half(code << shift, 0..middle), 0).map_or(OUTSIDE, node));
        let nodes = levels.get(middle).map_or(1, DiagramLevel::nodes) as u32;
        let ends = |states: &[u8]| {
            // A half leads to the sector from one node at most.
            let from = |node: u32| path(&levels[middle..], states, node).map(|h| HalfPath { node, ..h });
            (0..nodes).find_map(from).unwrap_or(OUTSIDE)
        };
        let right = (0..1u64 << shift).map(|code| ends(&half(code, middle..levels.len())));
        Some(StateNumbers { shift, left: left.collect(), right: right.collect() })
    }

    /// The number of a word, if it is of the sector.
    #[inline]
    pub fn of(&self, code: u64) -> Option<u64> {
        let left = self.left.get(code.checked_shr(self.shift)? as usize)?;
        let right = &self.right[(code & ((1 << self.shift) - 1)) as usize];
        (left.node == right.node && left.node != NONE).then_some(left.before + right.before)
    }

    pub fn bytes(&self) -> usize {
        16 * (self.left.len() + self.right.len())
    }
}
