//! Variational Monte Carlo: cells, one-particle orbitals, Slater determinants and Jastrow factors, walkers and the
//! schemes that move them, local energies and statistics; in the continuum and on lattices. Devices are in `backend`.

pub mod amplitude;
mod cell;
mod crystal;
mod determinant;
mod elementary;
mod ensemble;
mod ewald;
mod hamiltonian;
pub mod jastrow;
pub mod lattice;
pub mod observables;
pub mod optimise;
pub mod orbitals;
pub mod resident;
pub mod scheme;
pub mod statistics;
#[cfg(test)]
mod tests;
mod vectors;
mod walkers;
mod wavefunction;
mod waves;

pub use cell::SimulationCell;
pub use crystal::{Crystal, CrystalPotential, Ion};
pub use elementary::{Exponentials, Oscillator};
pub use ensemble::{Ensemble, SavedWalkers, System};
pub use ewald::Ewald;
pub use hamiltonian::{
    Coulomb, External, Hamiltonian, Ions, LocalEnergy, Nuclei, Periodic, Repulsion, Trap, Truncated,
};
pub use orbitals::{Derivatives, Orbitals};
pub use scheme::{Proposal, Scheme, ScreenRule, Sweep};
pub use walkers::{WalkerStart, Walkers};
pub use wavefunction::{Configuration, DeterminantProduct, SlaterJastrow};
