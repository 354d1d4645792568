//! The native functions of the language, one file a module or type. Each file registers its type and its functions;
//! the doc comments are the manual.

// Numbers, Series, Table, Matrix, and the session.
pub mod about;
mod arrays;
mod check;
mod clock;
mod complex;
mod conductance;
mod functions;
mod load;
mod maps;
mod matrix;
mod merge;
mod numbers;
mod picture;
mod plain;
mod plot;
mod progress;
mod random;
mod series;
mod series_maths;
mod sizes;
mod table;
mod values;

// Lattices and models.
mod band_currents;
mod bands;
mod blocks;
mod defects;
mod disorder;
mod electrons;
mod import;
mod lattice;
mod model;
mod molecule;
mod pairing;
mod points;
mod polarization;
mod sparse;
mod tight_binding;
mod two_centre;

// Operators, vectors, spectra.
mod block_algebra;
mod chebyshev;
mod contact;
mod eigen;
mod green;
mod kpm;
mod kubo;
mod levels;
mod markers;
mod operator;
mod solve;
mod transport;
mod vector;
mod vector_files;
mod vector_values;
mod waves;

// Many bodies.
mod dmrg;
mod exact;
mod manybody;
mod symmetry;

// Monte Carlo in the continuum and on lattices.
mod crystal;
mod orbitals;
mod vmc;

// Gauge fields and the overlap operator.
mod gauge;
mod overlap;
mod wilson;

// What the stdlib alone calls.
mod checkpoint;

pub use sizes::bytes_of;
pub use table::data_of;

use std::ops::RangeInclusive;

use rhai::{Engine, FLOAT, FnPtr, INT};

use super::own::{is_closure, known_names};
use super::rooms::Rooms;

pub(super) fn register(rooms: &mut Rooms) {
    types_of_the_language(rooms);
    complex::register(rooms);
    numbers::register(rooms);
    arrays::register(rooms);
    functions::register(rooms);
    series::register(rooms);
    series_maths::register(rooms);
    random::register(rooms);
    matrix::register(rooms);
    table::register(rooms);
    plot::register(rooms);
    vector::register(rooms);
    block_algebra::register(rooms);
    operator::register(rooms);
    chebyshev::register(rooms);
    kpm::register(rooms);
    green::register(rooms);
    kubo::register(rooms);
    waves::register(rooms);
    eigen::register(rooms);
    levels::register(rooms);
    load::register(rooms);
    merge::register(rooms);
    vector_files::register(rooms);
    vector_values::register(rooms);
    lattice::register(rooms);
    manybody::register(rooms);
    exact::register(rooms);
    symmetry::register(rooms);
    dmrg::register(rooms);
    model::register(rooms);
    molecule::register(rooms);
    defects::register(rooms);
    disorder::register(rooms);
    band_currents::register(rooms);
    bands::register(rooms);
    electrons::register(rooms);
    markers::register(rooms);
    pairing::register(rooms);
    points::register(rooms);
    polarization::register(rooms);
    tight_binding::register(rooms);
    conductance::register(rooms);
    contact::register(rooms);
    transport::register(rooms);
    two_centre::register(rooms);
    sparse::register(rooms);
    import::register(rooms);
    gauge::register(rooms);
    wilson::register(rooms);
    vmc::register(rooms);
    solve::register(rooms);
    overlap::register(rooms);
    crystal::register(rooms);
    orbitals::register(rooms);
    check::register(rooms);
    clock::register(rooms);
    checkpoint::register(rooms);
    progress::register(rooms);
    plain::register(rooms);
    maps::register(rooms);
}

/// `type_of` names the types that Rhai brings as help and messages do; a function is shown without a number of its own.
fn types_of_the_language(engine: &mut Engine) {
    engine.register_type_with_name::<INT>("int");
    engine.register_type_with_name::<FLOAT>("float");
    engine.register_type_with_name::<RangeInclusive<INT>>("range");
    engine.register_type_with_name_raw("Fn", "function");
    for show in ["to_string", "to_debug"] {
        engine.register_fn(show, |f: &mut FnPtr| match f.fn_name() {
            anonymous if is_closure(anonymous) => "function".to_string(),
            name => format!("function {}", known_names(name)),
        });
    }
}
