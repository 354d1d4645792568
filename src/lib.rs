//! Umklapp: a scripting engine for quantum-lattice workflows, as a library.
//!
//! An [`Engine`] runs scripts inside your program and hands their values back:
//!
//! ```
//! use umklapp::Engine;
//! use umklapp::number::Table;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut engine = Engine::new()?;
//! engine.scope_mut().push("size", 32_i64);
//! let value = engine
//!     .eval(
//!         "let h = tight_binding(lattice::square(size, size), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
//!          kpm::dos(h, #{ moments: 128, vectors: 4, seed: 1, progress: false })",
//!     )
//!     .map_err(|report| report.render(false))?;
//! let dos: Table = value.cast();
//! println!("{} energies", dos.rows());
//! # Ok(())
//! # }
//! ```
//!
//! The other modules are the numerics behind the scripts, for use from Rust; `src/README.md` is their map.
//! Layers import downwards only: [`error`], [`confine`] and [`task`], [`ranks`], [`number`], [`backend`], [`operator`]
//! and [`lattice`], [`method`], then [`manybody`], [`montecarlo`] and [`gauge`], [`output`], [`script`].

pub mod backend;
#[doc(hidden)]
pub mod cli;
pub mod confine;
pub mod error;
pub mod gauge;
#[doc(hidden)]
pub mod jupyter;
pub mod lattice;
#[doc(hidden)]
pub mod lsp;
pub mod manybody;
pub mod method;
pub mod montecarlo;
pub mod number;
pub mod operator;
pub mod output;
pub mod ranks;
#[doc(hidden)]
pub mod repl;
pub mod script;
pub mod task;

pub use script::Engine;
