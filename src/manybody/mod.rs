//! Many-body models: [`Site`]s with local operators and conserved charges, operator sums over [`Sites`], and their
//! exact matrices in symmetry sectors. Names of operators, states and signs follow ITensor. Renormalised bases and
//! sweeps are built on the same types; finding eigenvectors is the business of `method`.

mod basis;
pub mod dmrg;
mod exact;
mod fcidump;
mod fingerprint;
mod free;
mod kinds;
mod local;
mod multiplets;
mod opsum;
mod product;
mod rest;
mod rows;
mod site;
mod sites;
pub mod symmetric;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod wigner;

pub use basis::{Sector, SectorBasis};
pub use exact::{matrix, operator};
pub use fcidump::{Molecule, read_fcidump};
pub use opsum::{ExponentialTail, MeantSites, OpSum, OperatorTerm, unfit};
pub use product::SiteProduct;
pub use site::{Charge, LocalOperator, Site};
pub use sites::Sites;
