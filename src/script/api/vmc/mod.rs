//! Variational Monte Carlo in pieces: wave functions, Jastrow factors, walkers, Hamiltonians, local energies, statistics.
//! The runs are scripts over these (`stdlib/vmc.rhai`).

mod configuration;
mod elementary;
mod factors;
mod fit;
mod hamiltonian;
mod measure;
mod optimise;
mod saved;
mod walk;
mod wavefunction;

use rhai::{Array, Dynamic};

pub(super) use elementary::elementary_orbitals;
pub(super) use saved::{KIND as WALKERS, load as load_walkers, need_own_name};
pub(super) use wavefunction::Psi;

use super::values::{real, to_series, type_of};
use crate::error::{Error, Result};
use crate::script::rooms::Rooms;

/// Registers the types and their functions.
pub(super) fn register(rooms: &mut Rooms) {
    wavefunction::register(rooms);
    configuration::register(rooms);
    factors::register(rooms);
    hamiltonian::register(rooms);
    fit::register(rooms);
    walk::register(rooms);
    saved::register(rooms);
    measure::register(rooms);
    optimise::register(rooms);
}

/// A point in up to three dimensions: a number, an array or a Series.
pub(super) fn point(value: &Dynamic) -> Result<[f64; 3]> {
    if value.is_int() || value.is_float() {
        return Ok([real(value, "a coordinate")?, 0.0, 0.0]);
    }
    let series = to_series(value)?;
    let x = series.as_real("a point")?;
    if x.is_empty() || x.len() > 3 || x.iter().any(|x| !x.is_finite()) {
        return Err(Error::input("a point has one to three finite coordinates").hint("like [0.0, 0.0, 1.4]"));
    }
    Ok(std::array::from_fn(|k| x.get(k).copied().unwrap_or(0.0)))
}

/// Several points, from an array of them.
pub(super) fn points(value: &Dynamic, what: &str) -> Result<Vec<[f64; 3]>> {
    let array = value.read_lock::<Array>().map(|array| array.clone());
    let array = array.filter(|array| !array.is_empty()).ok_or_else(|| {
        Error::input(format!("{what} are an array of points, not {}", type_of(value)))
            .hint("like [[0.0, 0.0, 0.0]]")
    })?;
    array.iter().map(point).collect()
}
