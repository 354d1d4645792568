//! Infinite chains: a cell of sites that repeats, states of it as uniform matrix product states, and the way to its
//! ground state.

mod automaton;
mod bonds;
mod carried;
mod cell;
mod descent;
mod ends;
mod environment;
mod excite;
mod gauge;
mod growth;
mod krylov;
mod labels;
mod measure;
mod search;
mod share;
mod start;
mod state;
mod step;
mod storage;
#[cfg(test)]
mod tests;

pub use automaton::Repeated;
pub use cell::UnitCell;
pub use excite::{ExcitationOptions, Excitations};
pub use growth::{ChainGrowth, Growing, GrowthReport};
pub use search::UniformSearch;
pub use start::lowest_cell_product;
pub use state::Uniform;
pub use storage::SavedUniform;
