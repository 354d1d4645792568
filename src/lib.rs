//! Umklapp: a scripting engine for quantum-lattice workflows.
pub mod backend;
pub mod error;
pub mod number;
pub mod output;
pub mod task;
