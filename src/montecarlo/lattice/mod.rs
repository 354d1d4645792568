//! The same walkers on lattices: Fermi seas and pairing functions with Gutzwiller projectors and Jastrow factors, and the
//! local energies of operator sums.

mod energy;
mod state;
#[cfg(test)]
mod tests;
mod walkers;

pub use energy::LocalSum;
pub use state::{LatticeState, Occupied, Reference};
pub use walkers::LatticeWalkers;
