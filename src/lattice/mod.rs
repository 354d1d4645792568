//! Geometry and one-particle models: finite [`Lattice`]s with boundary conditions, tight-binding [`Model`]s on them,
//! their assembly into the matrix formats of `backend::matrix`, and importers of matrices from files. The layers above
//! use the matrices (vectors, devices, methods); there are no script types here.

// Lattices and the sites in them.
mod bravais;
mod extended;
mod geometry;
#[allow(clippy::module_inception)] // the type of that name deserves the file of that name
mod lattice;
mod points;
mod remove;
mod strain;
mod strained;
mod symmetry;

// Models: terms, disorder, fields, pairs.
mod block;
mod defects;
mod disorder;
mod field;
mod flux;
mod joined;
mod model;
mod nambu;
mod noise;
mod pairing;
mod random;
mod table;
pub mod two_centre;

// Models as matrices.
mod assemble;
mod bloch;
mod plan;
mod same;
pub mod sparse;
mod stencil;
mod unrolled;

// Files of other programs.
mod atoms;
mod lines;
mod market;
mod wannier;

#[cfg(test)]
mod tests;

pub use assemble::{Assembled, AssemblyForm};
pub use atoms::{AtomOptions, Atoms, Species, read_atoms};
pub use bloch::{Bloch, BlochDerivative, CellBond};
pub use block::OrbitalBlock;
pub use defects::{Defect, DefectPlaces, DefectSite};
pub use field::VectorPotential;
pub use geometry::Geometry;
pub use joined::BondElement;
pub use lattice::{Bond, CellShift, Lattice, LatticeSite, MAX_DIMENSION, no_axis};
pub use lines::CHECK;
pub use market::read_matrix_market;
pub use model::{Hop, Model, OfBond, OfPosition};
pub use nambu::{Holes, PairedParticles};
pub use points::{HopAlong, HopTerm};
pub use random::DisorderDistribution;
pub use unrolled::CopyElements;
pub use wannier::{
    Centres, WannierInput, WannierOptions, read_wannier_input, read_wannier90, read_wannier90_position,
};
