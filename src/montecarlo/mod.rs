//! Variational Monte Carlo: cells, one-particle orbitals, Slater determinants and Jastrow factors, walkers and the schemes
//! that move them, local energies and statistics; in the continuum and on lattices. Devices are in `backend`.

mod cell;
mod crystal;
mod ewald;
pub mod orbitals;
mod waves;

pub use cell::Cell;
pub use crystal::{Crystal, Ion, Potential};
pub use ewald::Ewald;
pub use orbitals::{Derivatives, Orbitals};
