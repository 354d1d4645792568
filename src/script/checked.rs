//! A script as the checks before it runs take it.

use std::collections::BTreeSet;

use rhai::{AST, Engine};

use super::imported::Modules;

/// A script that is looked through, and what is known around it.
#[derive(Clone, Copy)]
pub(super) struct CheckedScript<'a> {
    pub engine: &'a Engine,
    pub ast: &'a AST,
    pub source: &'a str,
    /// Names in what could not be read: nothing is said of them.
    pub lost: &'a BTreeSet<String>,
    /// The modules of the user that it imports.
    pub modules: &'a Modules,
}
