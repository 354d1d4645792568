//! Sectors that symmetries divide further: any group of permutations of the sites, with actions on the states of a
//! site, in its one-dimensional representations. Momentum, reflection and spin flip are of this kind.
//!
//! The states are orbits of product states (`orbits.rs`), which are words of bits (`codes.rs`); the operator of a sum
//! is generated row by row from its local matrices, each column's word taken to the least of its orbit (`coded.rs`).

mod coded;
mod codes;
mod entanglement;
mod generators;
mod group;
mod invariance;
mod matrix;
mod moves;
mod numbers;
mod orbits;
mod subspace;
#[cfg(test)]
mod tests;

pub use entanglement::Entanglement;
pub use generators::{Quantum, StateAction, Symmetry};
pub use matrix::{SectorOperatorOptions, operator};
pub use subspace::Subspace;
