//! Variational Monte Carlo: cells, one-particle orbitals, Slater determinants and Jastrow factors, walkers and the schemes
//! that move them, local energies and statistics; in the continuum and on lattices. Devices are in `backend`.

pub mod amplitude;
mod cell;
mod determinant;
mod elementary;
mod hamiltonian;
pub mod jastrow;
pub mod lattice;
pub mod orbitals;
pub mod scheme;
pub mod statistics;
#[cfg(test)]
mod tests;
mod walkers;
mod wavefunction;

pub use cell::Cell;
pub use elementary::{Exponentials, Oscillator};
pub use hamiltonian::{
    Coulomb, Hamiltonian, LocalEnergy, Nuclei, Potential, Repulsion, Trap, Truncated, density_radius,
};
pub use orbitals::{Derivatives, Orbitals};
pub use scheme::{Proposal, Scheme, Screen, Sweep};
pub use walkers::{Saved, Start, Walkers};
pub use wavefunction::{Configuration, Product, SlaterJastrow};
