//! The density-matrix renormalisation group in pieces: automata of operator sums, blocks, superblocks, density
//! matrices, White's transformation, and the states that sweeps end with.
//! The algorithms themselves are scripts (`stdlib/dmrg/`).

// Operator sums: strings, automata over the sites, the order of the sites.
mod coupled;
mod cover;
mod mpo;
mod order;
mod purify;
mod scalar;
mod squared;
mod strength;
mod strings;

// Sectors, blocks and superblocks.
mod basis;
mod block;
mod blocks_of;
mod conserved;
mod edge;
mod operators;
mod pieces;
mod space;
mod spread;
mod superblock;
mod whole;

// Density matrices and the way from one superblock to the next.
mod dense;
mod density;
mod on_device;
mod overlap;
mod predict;

// States of whole chains.
mod algebra;
mod carry;
mod classical;
mod component;
mod gauge;
mod state;
mod storage;
mod tensor;
mod train;
mod turned;

// What is measured, and time.
mod measure;
pub(super) mod reduced;
mod trotter;

// Infinite chains.
mod uniform;

#[cfg(test)]
mod tests;

pub use basis::TruncatedBasis;
pub use block::ChainBlock;
pub use blocks_of::InBlocks;
pub use classical::{lowest_products, other_states};
pub use conserved::{conserved, total_spin};
pub use density::{DensityMatrix, Mixing, Truncation};
pub use edge::edge_chain;
pub use mpo::Mpo;
pub use order::smallest_cuts;
pub use overlap::projected;
pub use predict::{transformed, uploaded};
pub use space::{ChainSide, ChargeLabel, ConservedNumbers, TOTAL_SPIN};
pub use state::MatrixProductState;
pub use storage::{SavedState, is_state, joined, parted, sealed, unsealed};
pub use strength::Strength;
pub use superblock::{Strategy, Superblock, TargetCharges};
pub use trotter::Trotter;
pub use uniform::{
    ChainGrowth, ExcitationOptions, Excitations, Growing, GrowthReport, Repeated, SavedUniform, Uniform,
    UniformSearch, UnitCell, lowest_cell_product,
};
