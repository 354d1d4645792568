//! Variational Monte Carlo: cells, one-particle orbitals, Slater determinants and Jastrow factors, walkers and the schemes
//! that move them, local energies and statistics; in the continuum and on lattices. Devices are in `backend`.

mod cell;
pub mod orbitals;

pub use cell::Cell;
pub use orbitals::{Derivatives, Orbitals};
