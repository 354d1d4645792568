//! Umklapp: a scripting engine for quantum-lattice workflows.
pub mod backend;
pub mod error;
pub mod lattice;
pub mod manybody;
pub mod number;
pub mod task;
