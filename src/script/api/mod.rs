//! The native functions of the language, one file a module or type. Each file registers its type and its functions;
//! the doc comments are the manual.

mod about;
mod chebyshev;
mod check;
mod complex;
mod crystal;
mod dmrg;
mod eigen;
mod exact;
mod functions;
mod gauge;
mod green;
mod import;
mod kpm;
mod kubo;
mod lattice;
mod manybody;
mod matrix;
mod model;
mod operator;
mod orbitals;
mod overlap;
mod plot;
mod progress;
mod series;
mod series_maths;
mod solve;
mod sparse;
mod table;
mod tight_binding;
mod values;
mod vector;
mod vector_files;
mod vector_values;
mod vmc;
mod waves;
mod wilson;

use rhai::Engine;

/// Registers everything.
pub(super) fn register(engine: &mut Engine) {
    complex::register(engine);
    functions::register(engine);
    series::register(engine);
    series_maths::register(engine);
    matrix::register(engine);
    table::register(engine);
    plot::register(engine);
    vector::register(engine);
    operator::register(engine);
    chebyshev::register(engine);
    kpm::register(engine);
    green::register(engine);
    kubo::register(engine);
    waves::register(engine);
    eigen::register(engine);
    vector_files::register(engine);
    vector_values::register(engine);
    lattice::register(engine);
    manybody::register(engine);
    exact::register(engine);
    dmrg::register(engine);
    model::register(engine);
    tight_binding::register(engine);
    sparse::register(engine);
    import::register(engine);
    gauge::register(engine);
    wilson::register(engine);
    vmc::register(engine);
    solve::register(engine);
    overlap::register(engine);
    crystal::register(engine);
    orbitals::register(engine);
    check::register(engine);
    progress::register(engine);
}
