//! `Lattice` and the module `lattice`: Bravais lattices with boundaries, shapes and vacancies.

mod make;
mod methods;

use rhai::{Array, Dynamic};

use super::chebyshev::as_complex;
use super::values::{numbered, type_of};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result, nearest};
use crate::lattice::Lattice;
use crate::number::C64;
use crate::script::rooms::Rooms;

/// A boundary condition as scripts hold it.
#[derive(Clone)]
struct Boundary(Wrap);

/// Registers the types, the module and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Lattice>("Lattice");
    rooms.register_type_with_name::<Boundary>("Boundary");
    make::register(rooms);
    methods::register(rooms);
}

/// Whole numbers from an array.
pub(super) fn ints(values: &Array, what: &str) -> Result<Vec<i64>> {
    let int = |v: &Dynamic| {
        v.as_int().map_err(|_| {
            let found = if v.is_float() { v.to_string() } else { type_of(v).to_string() };
            Error::input(format!("{what} consists of whole numbers, and has {found}"))
                .hint("write them without a point, like `[0, 1]`")
        })
    };
    values.iter().map(int).collect()
}

/// Real numbers from an array.
pub(super) fn reals(value: &Dynamic, what: &str) -> Result<Vec<f64>> {
    let wrong = || Error::input(format!("{what} is an array of numbers")).hint("like `[0.0, 0.5]`");
    let array = value.clone().try_cast::<Array>().ok_or_else(wrong)?;
    array.iter().map(|x| as_complex(x).filter(|z| z.im == 0.0).map(|z| z.re).ok_or_else(wrong)).collect()
}

/// A momentum: numbers, or one number where there is one direction.
pub(super) fn momentum(value: &Dynamic) -> Result<Vec<f64>> {
    match as_complex(value) {
        Some(k) if k.im == 0.0 => Ok(vec![k.re]),
        _ => reals(value, "a momentum")
            .map_err(|e| e.hint("write it like `[0.0, 0.5]`, in units of the reciprocal vectors")),
    }
}

/// A boundary by name or as `lattice::twisted(..)` makes it.
pub(super) fn boundary_of(value: &Dynamic) -> Result<Wrap> {
    if let Some(boundary) = value.clone().try_cast::<Boundary>() {
        return Ok(boundary.0);
    }
    let names = ["periodic", "antiperiodic", "open"];
    match value.clone().into_string().unwrap_or_default().as_str() {
        "periodic" => Ok(Wrap::Phase(C64::ONE)),
        "antiperiodic" => Ok(Wrap::Phase(-C64::ONE)),
        "open" => Ok(Wrap::Open),
        other => {
            let error = match value.is_string() || value.is_int() || value.is_float() {
                true => Error::input(format!("no boundary `{value}`")),
                false => Error::input(format!("a boundary is a name, not {}", type_of(value))),
            };
            Err(match nearest(other, names) {
                Some(near) if !other.is_empty() => error.hint(format!("did you mean \"{near}\"?")),
                _ => error.hint(
                    "the boundaries are \"periodic\", \"antiperiodic\", \"open\" and lattice::twisted(phase)",
                ),
            })
        }
    }
}

/// Boundaries for all directions: one, or an array.
pub(super) fn boundaries_of(value: &Dynamic) -> Result<Vec<Wrap>> {
    match value.clone().try_cast::<Array>() {
        Some(array) => array.iter().map(boundary_of).collect(),
        None => Ok(vec![boundary_of(value)?]),
    }
}

/// A site of the unit cell by its number or name.
pub(super) fn sublattice_of(lattice: &Lattice, value: &Dynamic) -> Result<usize> {
    if let Ok(s) = value.as_int() {
        let s = numbered(s, "sublattice")?;
        return lattice.need_sublattice(s).map(|()| s);
    }
    let name = value.clone().into_string().map_err(|_| {
        Error::input(format!("a sublattice is named by its number or its name, not by {}", type_of(value)))
            .hint("write it like `0` or `\"A\"`")
    })?;
    lattice.sublattice(&name)
}

/// The answer of a predicate.
pub(super) fn truth(value: Dynamic) -> Result<bool> {
    value.as_bool().map_err(|t| {
        Error::input(format!("the function gives a {t}, where true or false is needed"))
            .hint("end it with a comparison, as in `|r| r[0] > 2.0`")
    })
}
