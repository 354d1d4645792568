//! All tests of one crate: it links once. `cargo test --release --test suite -- bad_input::` runs those of one file.
//!
//! Scripts and examples that lie in folders and comments are cases of `tests/scripts/`; `tests/fuzz.rs` brings an
//! allocator of its own.

mod backends;
mod bad_input;
mod batch;
mod cli;
mod common;
mod endurance;
mod examples;
mod import;
mod jupyter;
mod lsp;
mod random_models;
mod ranks;
mod repl;
mod states;
mod structure;
mod values;
