//! Umklapp: a scripting engine for quantum-lattice workflows.
//!
//! [`Engine`] runs scripts inside another program; the other modules are the numerics behind them, for use from Rust.

pub mod backend;
#[doc(hidden)]
pub mod cli;
pub mod error;
pub mod gauge;
pub mod lattice;
pub mod manybody;
pub mod method;
pub mod montecarlo;
pub mod number;
pub mod operator;
pub mod output;
#[doc(hidden)]
pub mod repl;
pub mod script;
pub mod task;

pub use script::Engine;
