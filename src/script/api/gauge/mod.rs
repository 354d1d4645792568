//! `Links` and the module `gauge`: SU(3) gauge fields. How they are made is in `make.rs`, Monte Carlo sweeps in `sweeps.rs`,
//! smearing and flow in `smear.rs`, numbers in `observe.rs`, files in `files.rs`, methods of the type in `links.rs`.

mod files;
mod links;
mod make;
mod observe;
mod smear;
mod sweeps;

use rhai::{Engine, INT};

use crate::error::{Error, Result};
use crate::gauge::Links;
use crate::script::Options;

/// Registers the type, the module and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Links>("Links");
    let mut module = make::module();
    for part in [sweeps::module(), smear::module(), observe::module(), files::module()] {
        module.combine(part);
    }
    engine.register_static_module("gauge", module.into());
    links::register(engine);
    files::register(engine);
}

/// A direction of the lattice.
fn direction(mu: INT) -> Result<usize> {
    usize::try_from(mu).ok().filter(|mu| *mu < 4).ok_or_else(|| {
        Error::input(format!("direction {mu} of a gauge field")).hint("directions are numbered from 0 to 3")
    })
}

/// Whether the option `precision` asks for 32-bit numbers.
pub(super) fn single(o: &Options) -> Result<bool> {
    match o.text_or("precision", "double")?.as_str() {
        "double" => Ok(false),
        "single" => Ok(true),
        other => Err(Error::input(format!("no precision `{other}`"))
            .hint("the precisions are \"double\" and \"single\"")),
    }
}
