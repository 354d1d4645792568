//! Umklapp: a scripting engine for quantum-lattice workflows.
pub mod backend;
pub mod error;
pub mod method;
pub mod number;
pub mod operator;
pub mod task;
