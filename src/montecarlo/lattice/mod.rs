//! The same walkers on lattices: Fermi seas and pairing functions with Gutzwiller projectors and Jastrow factors, and
//! the local energies of operator sums.

#[cfg(test)]
mod drawn_tests;
mod energy;
mod hops;
mod state;
#[cfg(test)]
mod tests;
mod unsampled;
mod walkers;

pub use energy::LocalSum;
pub use state::{ElectronHop, LatticeState, OccupiedSites, Reference};
pub use unsampled::Unsampled;
pub use walkers::LatticeWalkers;
