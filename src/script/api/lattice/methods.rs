//! What a lattice is asked, and what is done to one: boundaries, sites, neighbours, vacancies.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FnPtr, INT};

use super::{Boundary, boundaries_of, ints, sublattice_of, truth};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::Lattice;
use crate::number::{C64, Series, memory};
use crate::script::api::values::numbered;
use crate::script::callback::{Callback, floats};
use crate::script::native::Float;
use crate::script::{Fallible, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(lattice_functions).into());
}

/// The site at cell coordinates that may be followed by a sublattice.
fn site_at(lattice: &Lattice, at: &[Dynamic]) -> Result<INT> {
    let d = lattice.dimension();
    let (cell, s) = if at.len() == d + 1 { (&at[..d], sublattice_of(lattice, &at[d])?) } else { (at, 0) };
    Ok(lattice.site(&ints(&cell.to_vec(), "a cell coordinate")?, s)? as INT)
}

#[export_module(root = "crate::script::native")]
mod lattice_functions {
    #[rhai_fn(name = "to_string", name = "to_debug", pure)]
    pub fn boundary_to_string(boundary: &mut Boundary) -> String {
        match boundary.0 {
            Wrap::Phase(p) => format!("twisted({})", p.arg()),
            Wrap::Open => "open".into(),
        }
    }

    /// The same lattice with other boundary conditions: one for all directions, or an array with one per direction.
    /// Each is "periodic", "antiperiodic", "open" or `lattice::twisted(phase)`.
    ///
    /// # Example
    /// ```rhai
    /// let slab = lattice::cubic(4, 4, 2).boundary("periodic", "periodic", "open");
    /// assert(slab.neighbors(0).len == 5, "no neighbour below");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn boundary(lattice: &mut Lattice, all: Dynamic) -> Fallible<Lattice> {
        Ok(boundaries_of(&all).and_then(|w| lattice.boundary(&w))?)
    }

    #[rhai_fn(name = "boundary", return_raw, pure)]
    pub fn boundary_2(lattice: &mut Lattice, x: Dynamic, y: Dynamic) -> Fallible<Lattice> {
        Ok(boundaries_of(&vec![x, y].into()).and_then(|w| lattice.boundary(&w))?)
    }

    #[rhai_fn(name = "boundary", return_raw, pure)]
    pub fn boundary_3(lattice: &mut Lattice, x: Dynamic, y: Dynamic, z: Dynamic) -> Fallible<Lattice> {
        Ok(boundaries_of(&vec![x, y, z].into()).and_then(|w| lattice.boundary(&w))?)
    }

    /// The number of the site in cell `at`; a sublattice, by number or name, may follow the coordinates.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::honeycomb(4, 4);
    /// assert(lat.site(1, 0) == 2 && lat.site([1, 0], "B") == 3, "two sites a cell");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn site(lattice: &mut Lattice, at: Dynamic) -> Fallible<INT> {
        let at = at.clone().try_cast::<Array>().unwrap_or_else(|| vec![at]);
        Ok(site_at(lattice, &at)?)
    }

    #[rhai_fn(name = "site", return_raw, pure)]
    pub fn site_2(lattice: &mut Lattice, x: Dynamic, y: Dynamic) -> Fallible<INT> {
        let Some(mut at) = x.clone().try_cast::<Array>() else {
            return Ok(site_at(lattice, &[x, y])?);
        };
        // What follows coordinates in an array is a sublattice, never a coordinate.
        let (given, d) = (at.len(), lattice.dimension());
        if given != d {
            return Err(Error::input(format!("{given} cell coordinates in a lattice of {d} directions"))
                .hint("give one coordinate for each direction, then the sublattice")
                .into());
        }
        at.push(y);
        Ok(site_at(lattice, &at)?)
    }

    #[rhai_fn(name = "site", return_raw, pure)]
    pub fn site_3(lattice: &mut Lattice, x: Dynamic, y: Dynamic, z: Dynamic) -> Fallible<INT> {
        Ok(site_at(lattice, &[x, y, z])?)
    }

    #[rhai_fn(name = "site", return_raw, pure)]
    pub fn site_4(lattice: &mut Lattice, x: Dynamic, y: Dynamic, z: Dynamic, s: Dynamic) -> Fallible<INT> {
        Ok(site_at(lattice, &[x, y, z, s])?)
    }

    /// The Cartesian position of a site, in lattice constants.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::square(4, 4).position(5) == [1.0, 1.0], "one right, one up");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn position(lattice: &mut Lattice, site: INT) -> Fallible<Dynamic> {
        Ok(numbered(site, "site").and_then(|s| lattice.position(s)).map(|r| floats(&r))?)
    }

    /// The Cartesian coordinates of all sites along an axis (0 for x), a Series.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::square(2, 2).coordinates(1) == series([0.0, 0.0, 1.0, 1.0]), "y");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn coordinates(lattice: &mut Lattice, axis: INT) -> Fallible<Series> {
        Ok(Series::Real(lattice.along(numbered(axis, "axis")?)?))
    }

    /// The sites joined to a site by nearest-neighbour bonds.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::chain(4).boundary("open").neighbors(0) == [1], "an end has one neighbour");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn neighbors(lattice: &mut Lattice, site: INT) -> Fallible<Array> {
        let found = numbered(site, "site").and_then(|s| lattice.neighbors(s))?;
        Ok(found.into_iter().map(|s| Dynamic::from(s as INT)).collect())
    }

    /// The nearest-neighbour bonds, each once, as `[i, j, phase]`. `phase` is the factor of the matrix element of row i
    /// and column j across an antiperiodic or twisted boundary, and 1 elsewhere.
    ///
    /// # Example
    /// ```rhai
    /// let ring = lattice::chain(3).boundary("antiperiodic");
    /// assert(ring.bonds() == [[0, 1, 1.0], [1, 2, 1.0], [2, 0, -1.0]], "the sign stands where the ring closes");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn bonds(lattice: &mut Lattice) -> Fallible<Array> {
        // Each bond takes an array of the script and a bond here.
        let each = lattice.bonds().len() as u128 * 160;
        memory::ensure(each * lattice.sites() as u128, "an array of all bonds")?;
        let number = |z: C64| if z.im == 0.0 { Dynamic::from(z.re) } else { Dynamic::from(z) };
        let bond = |(i, j, phase)| {
            Dynamic::from_array(vec![Dynamic::from(i as INT), Dynamic::from(j as INT), number(phase)])
        };
        Ok(lattice.joined()?.into_iter().map(bond).collect())
    }

    /// The lattice without the sites for whose position the function returns true; the remaining sites get new numbers.
    ///
    /// # Example
    /// ```rhai
    /// let outside = |r| (r[0] - 5.0) ** 2.0 + (r[1] - 5.0) ** 2.0 > 16.5;
    /// let disc = lattice::square(11, 11).boundary("open").remove(outside);
    /// assert(disc.sites == 49, "the points of a disc");
    /// ```
    #[rhai_fn(name = "remove", return_raw, pure)]
    pub fn remove_sites(ctx: NativeCallContext, lattice: &mut Lattice, gone: FnPtr) -> Fallible<Lattice> {
        let task = session()?.task(true);
        let calls = Callback::new(&ctx);
        let mut predicate = |r: &[f64]| truth(calls.call(&gone, (floats(r),))?);
        let removed = lattice.remove(&mut predicate, &task);
        calls.finish(removed)
    }

    /// The lattice after removal of each site with probability `fraction`, drawn with the session's seed.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::cubic(20, 20, 20).vacancies(0.1, 7);
    /// assert((lat.sites / 8000.0 - 0.9).abs() < 0.02, "a tenth is gone");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn vacancies(lattice: &mut Lattice, fraction: Float, seed: INT) -> Fallible<Lattice> {
        Ok(lattice.vacancies(fraction, seed as u64)?)
    }

    #[rhai_fn(name = "vacancies", return_raw, pure)]
    pub fn vacancies_plain(lattice: &mut Lattice, fraction: Float) -> Fallible<Lattice> {
        Ok(session().and_then(|s| lattice.vacancies(fraction, s.seed()))?)
    }

    /// Number of sites.
    #[rhai_fn(get = "sites", pure)]
    pub fn sites(lattice: &mut Lattice) -> INT {
        lattice.sites() as INT
    }

    /// Number of directions.
    #[rhai_fn(get = "dimension", pure)]
    pub fn dimension(lattice: &mut Lattice) -> INT {
        lattice.dimension() as INT
    }

    /// Number of cells in each direction.
    #[rhai_fn(get = "cells", pure)]
    pub fn cells(lattice: &mut Lattice) -> Array {
        lattice.cells().iter().map(|&n| Dynamic::from(n as INT)).collect()
    }

    /// The Bravais vectors, Cartesian.
    #[rhai_fn(get = "vectors", pure)]
    pub fn vectors(lattice: &mut Lattice) -> Array {
        lattice.vectors().iter().map(|v| floats(v)).collect()
    }

    /// Names of the sublattices.
    #[rhai_fn(get = "sublattices", pure)]
    pub fn sublattices(lattice: &mut Lattice) -> Array {
        lattice.basis().iter().map(|s| Dynamic::from(s.name.clone())).collect()
    }

    #[rhai_fn(name = "to_string", name = "to_debug", pure)]
    pub fn lattice_to_string(lattice: &mut Lattice) -> String {
        lattice.to_string()
    }
}
