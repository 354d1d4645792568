//! All that knows Rhai: the engine, one file per script module under `api/`, the registry of names and docs, option
//! maps and diagnostics. Script values go in here and come out as typed arguments for the layers below.

// The engine, what a script runs in, and calls between Rhai and Rust.
mod arguments;
mod callback;
mod caught;
mod comparison;
mod constants;
pub(crate) mod device;
mod direct;
mod engine;
mod evaluated;
mod modules;
mod native;
mod own;
mod rooms;
mod session;
mod stack;
pub mod stdlib;
mod switches;

// The language as it is called: modules and types, a file for each.
pub mod api;

// What doc comments declare, and the options of a call.
mod allowed;
mod declaration;
pub mod declared;
pub mod kinds;
pub mod options;
mod rules;
pub mod signature;

// Names and docs: help, manual, search.
pub mod absent;
pub mod citations;
pub mod definitions;
pub mod examples;
pub mod manual;
pub mod reference;
pub mod registry;
pub mod search;
mod terms;
mod words;

// Errors in words.
mod complaints;
pub mod diagnostics;
mod failure;
mod habits;
mod hidden;
mod phrases;
mod wrong_types;

// What is said of a script before it runs, and the tests of scripts.
mod checked;
mod finding;
mod given;
pub mod golden;
mod holding;
mod imported;
pub mod lex;
mod lint;
mod recover;
mod shadows;
mod syntax;
mod traps;
mod types;

pub use arguments::arguments;
pub use engine::{Engine, Evaluated, read_script};
pub use failure::{Failure, Fallible};
pub use options::{Options, named};
pub use session::{Session, Settings, session};
pub use stack::on_a_deep_stack;
