//! `Links` and the module `gauge`: SU(3) gauge fields. How they are made is in `make.rs`, Monte Carlo sweeps in
//! `sweeps.rs`, smearing and flow in `smear.rs`, numbers in `observe.rs`, files in `files.rs`,
//! methods of the type in `links.rs`.

mod files;
mod links;
mod make;
mod observe;
mod smear;
mod sweeps;

pub(super) use files::load;
use rhai::{Array, Dynamic, INT};

use super::values::type_of;
use crate::backend::{Grid, Region};
use crate::error::{Error, Result};
use crate::gauge::Links;
use crate::gauge::su3::Su3;
use crate::lattice::Lattice;
use crate::number::Matrix;
use crate::ranks;
use crate::script::rooms::Rooms;
use crate::script::session;

/// Registers the type, the module and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Links>("Links");
    let mut module = make::module();
    for part in [sweeps::module(), smear::module(), observe::module()] {
        module.combine(part);
    }
    rooms.room("gauge", module);
    links::register(rooms);
    files::register(rooms);
}

/// Which sites of a lattice this process has the links of: those of its vectors of spinors. Without ranks these are
/// all, and no backend is asked.
fn region() -> Result<Box<dyn Fn([usize; 4]) -> Result<Region> + Send + Sync>> {
    if ranks::world().is_none() {
        return Ok(Box::new(|dims| Ok(Region::whole(dims))));
    }
    let device = session()?.device();
    Ok(Box::new(move |dims| Region::on(&device, dims)))
}

/// The unit field on a lattice.
fn cold(lattice: &Lattice) -> Result<Links> {
    Links::unit_on(lattice, &*region()?)
}

/// A direction of the lattice.
fn direction(mu: INT) -> Result<usize> {
    usize::try_from(mu).ok().filter(|mu| *mu < 4).ok_or_else(|| {
        Error::input(format!("direction {mu} of a gauge field")).hint("directions are numbered from 0 to 3")
    })
}

/// A site by its number or its coordinates.
pub(super) fn site_of(value: &Dynamic, grid: Grid) -> Result<usize> {
    if let Ok(site) = value.as_int() {
        let sites = grid.sites();
        return usize::try_from(site).ok().filter(|&x| x < sites).ok_or_else(|| {
            Error::input(format!("site {site} of a lattice of {sites}"))
                .hint(format!("sites are numbered from 0 to {}", sites - 1))
        });
    }
    let array = value.read_lock::<Array>().ok_or_else(|| {
        let what = value.as_float().map_or_else(|_| type_of(value), |x| format!("{x:?}"));
        Error::input(format!("a site is given by its number or four coordinates, not by {what}"))
            .hint("by whole numbers, like 17 or [1, 0, 0, 1]; they begin at 0")
    })?;
    let coordinate =
        |(x, n): (&Dynamic, usize)| x.as_int().ok().and_then(|x| usize::try_from(x).ok()).filter(|&x| x < n);
    let inside: Vec<usize> = array.iter().zip(grid.dims).filter_map(coordinate).collect();
    match <[usize; 4]>::try_from(inside) {
        Ok(x) if array.len() == 4 => Ok(grid.site(x)),
        _ => {
            let dims = grid.dims.map(|n| n.to_string()).join(" x ");
            Err(Error::input(format!("coordinates of no site of a lattice of {dims}"))
                .hint("give four whole numbers like [1, 0, 0, 1]: each begins at 0 and ends before the lattice does"))
        }
    }
}

/// The coordinates of a site, as a script's function takes them.
fn coordinates(x: [usize; 4]) -> Dynamic {
    x.into_iter().map(|x| Dynamic::from(x as INT)).collect::<Array>().into()
}

/// A matrix in SU(3), as a script gives it.
fn su3_of(value: &Dynamic) -> Result<Su3> {
    let wrong = |what: String| {
        Error::input(format!("a matrix in SU(3) is a 3 x 3 Matrix, not {what}"))
            .hint("like `identity(3)`; a function must return one on every path")
    };
    let m = value.read_lock::<Matrix>().ok_or_else(|| wrong(type_of(value)))?;
    let elements = m.data().to_complex();
    match elements.try_into() {
        Ok(elements) if m.is_square() => Ok(elements),
        _ => Err(wrong(format!("one of {}", m.shape()))),
    }
}
