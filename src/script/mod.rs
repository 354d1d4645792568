//! All that knows Rhai: the engine, one file per script module under `api/`, the registry of names and docs, option
//! maps and diagnostics. Script values go in here and come out as typed arguments for the layers below.

pub mod absent;
pub mod api;
mod arguments;
mod callback;
pub mod citations;
mod comparison;
mod declaration;
pub mod declared;
pub mod definitions;
pub(crate) mod device;
pub mod diagnostics;
mod direct;
mod engine;
pub mod examples;
mod failure;
pub mod golden;
mod habits;
pub mod lex;
mod lint;
pub mod manual;
mod modules;
mod native;
pub mod options;
mod phrases;
mod recover;
pub mod reference;
pub mod registry;
mod rooms;
pub mod search;
mod session;
pub mod signature;
mod stack;
pub mod stdlib;
mod types;

pub use arguments::arguments;
pub use engine::{Engine, Outcome, read_script};
pub use failure::{Failure, Fallible};
pub use options::{Options, named};
pub use session::{Session, Settings, session};
pub use stack::on_a_deep_stack;
