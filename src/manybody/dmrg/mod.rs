//! The density-matrix renormalisation group in pieces: automata of operator sums, blocks, superblocks, density matrices,
//! White's transformation, and the states that sweeps end with. The algorithms themselves are scripts (`stdlib/dmrg.rhai`).

mod algebra;
mod basis;
mod block;
mod blocks_of;
mod classical;
mod component;
mod conserved;
mod coupled;
mod cover;
mod dense;
mod density;
mod edge;
mod gauge;
mod measure;
mod mpo;
mod operators;
mod order;
mod overlap;
mod pieces;
mod predict;
mod purify;
pub(super) mod reduced;
mod scalar;
mod space;
mod spread;
mod squared;
mod state;
mod storage;
mod strength;
mod strings;
mod superblock;
mod tensor;
#[cfg(test)]
mod tests;
mod there;
mod train;
mod trotter;
mod turned;
mod uniform;
mod whole;

pub use basis::Basis;
pub use block::Block;
pub use blocks_of::InBlocks;
pub use classical::{lowest_products, other_states};
pub use conserved::{conserved, total_spin};
pub use density::{DensityMatrix, Mixing, Truncation};
pub use edge::edge_chain;
pub use mpo::Mpo;
pub use order::smallest_cuts;
pub use overlap::projected;
pub use predict::transformed;
pub use space::{Label, Side, Symmetry, TOTAL_SPIN};
pub use state::State;
pub use storage::{Saved, is_state, joined, parted, sealed, unsealed};
pub use strength::Strength;
pub use superblock::{Strategy, Superblock, Target};
pub use trotter::Trotter;
pub use uniform::{
    Asked, Excitations, Growing, Grown, Growth, Repeated, SavedUniform, Search, Uniform, UnitCell,
    lowest_cell_product,
};
