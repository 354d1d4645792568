//! Variational Monte Carlo in pieces: wave functions, Jastrow factors, walkers, Hamiltonians, local energies,
//! statistics. The runs are scripts over these (`stdlib/vmc.rhai`).

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
use crate::number::Series;
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

/// A point in a space of so many dimensions: a number (on a line), an array or a Series. Zeros may follow, since places
/// come back with three coordinates.
pub(super) fn point(value: &Dynamic, dimension: usize) -> Result<[f64; 3]> {
    let series = match value.is_int() || value.is_float() {
        true => Series::Real(vec![real(value, "a coordinate")?]),
        false => to_series(value)?,
    };
    let x = series.as_real("a point")?;
    let beyond = x.iter().skip(dimension).any(|&x| x != 0.0);
    if x.len() < dimension || x.len() > 3 || beyond || x.iter().any(|x| !x.is_finite()) {
        let (space, like) = match dimension {
            1 => ("on a line", "one coordinate, like [0.5]"),
            2 => ("in a plane", "two coordinates, like [0.5, 1.0]"),
            _ => ("in space", "three coordinates, like [0.5, 1.0, -1.4]"),
        };
        let given = if x.len() == 1 { "a coordinate".into() } else { format!("{} coordinates", x.len()) };
        return Err(Error::input(format!("a point of {given} where electrons are {space}"))
            .hint(format!("a point there has {like}, all finite")));
    }
    Ok(std::array::from_fn(|k| x.get(k).copied().unwrap_or(0.0)))
}

/// The two elements of an array; the error is for any other value.
pub(super) fn pair(value: &Dynamic, wrong: impl FnOnce() -> Error) -> Result<[Dynamic; 2]> {
    let pair = value.read_lock::<Array>().and_then(|array| <[Dynamic; 2]>::try_from(array.clone()).ok());
    pair.ok_or_else(wrong)
}

/// Several points, from an array of them.
pub(super) fn points(value: &Dynamic, what: &str, dimension: usize) -> Result<Vec<[f64; 3]>> {
    let array = value.read_lock::<Array>().map(|array| array.clone());
    let array = array.filter(|array| !array.is_empty()).ok_or_else(|| {
        Error::input(format!("{what} are an array of points, not {}", type_of(value)))
            .hint("like [[0.0, 0.0, 0.0]]")
    })?;
    array.iter().map(|value| point(value, dimension)).collect()
}
