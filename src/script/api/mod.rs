//! The native functions of the language, one file a module or type. Each file registers its type and its functions;
//! the doc comments are the manual.

mod chebyshev;
mod check;
mod complex;
mod lattice;
mod manybody;
mod model;
mod operator;
mod sparse;
mod tight_binding;
mod vector;

use rhai::Engine;

/// Registers everything.
pub(super) fn register(engine: &mut Engine) {
    complex::register(engine);
    vector::register(engine);
    operator::register(engine);
    chebyshev::register(engine);
    lattice::register(engine);
    manybody::register(engine);
    model::register(engine);
    tight_binding::register(engine);
    sparse::register(engine);
    check::register(engine);
}
