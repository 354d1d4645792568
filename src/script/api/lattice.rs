//! `Lattice` and the module `lattice`: Bravais lattices with boundaries, shapes and vacancies.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, FnPtr, INT, Map};

use super::chebyshev::as_complex;
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result, nearest};
use crate::lattice::{Bond, Lattice, Site};
use crate::number::C64;
use crate::script::callback::{Callback, floats};
use crate::script::{At, Failure, Options, session};

/// A boundary condition as scripts hold it.
#[derive(Clone)]
struct Boundary(Wrap);

/// Registers the types, the module and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Lattice>("Lattice");
    engine.register_type_with_name::<Boundary>("Boundary");
    engine.register_static_module("lattice", exported_module!(lattice_module).into());
    engine.register_global_module(exported_module!(lattice_functions).into());
}

/// A whole number that counts something.
fn count(value: INT, what: &str) -> Result<usize> {
    usize::try_from(value).map_err(|_| {
        Error::input(format!("{what} is {value}, and must not be negative")).hint("it counts cells")
    })
}

/// A size of a lattice.
fn size(n: INT) -> Result<usize> {
    count(n, "the size of a lattice")
}

/// Whole numbers from an array.
pub(super) fn ints(values: &Array, what: &str) -> Result<Vec<i64>> {
    let int = |v: &Dynamic| {
        v.as_int().map_err(|t| Error::input(format!("{what} consists of whole numbers, not of a {t}")))
    };
    values.iter().map(int).collect()
}

/// Real numbers from an array.
pub(super) fn reals(value: &Dynamic, what: &str) -> Result<Vec<f64>> {
    let wrong = || Error::input(format!("{what} is an array of numbers"));
    let array = value.clone().try_cast::<Array>().ok_or_else(wrong)?;
    array.iter().map(|x| as_complex(x).filter(|z| z.im == 0.0).map(|z| z.re).ok_or_else(wrong)).collect()
}

/// A boundary by name or as `twisted(..)` makes it.
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
            let error = Error::input(format!(
                "no boundary `{}`",
                if other.is_empty() { value.to_string() } else { other.into() }
            ));
            Err(match nearest(other, names) {
                Some(near) if !other.is_empty() => error.hint(format!("did you mean \"{near}\"?")),
                _ => error
                    .hint("the boundaries are \"periodic\", \"antiperiodic\", \"open\" and twisted(phase)"),
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
        let s = count(s, "a sublattice")?;
        let n = lattice.basis().len();
        return if s < n {
            Ok(s)
        } else {
            Err(Error::input(format!("sublattice {s} outside a unit cell of {n} sites")))
        };
    }
    let name = value.clone().into_string().map_err(|t| {
        Error::input(format!("a sublattice is named by its number or its name, not by a {t}"))
    })?;
    lattice.basis().iter().position(|site| site.name == name).ok_or_else(|| {
        let names: Vec<&str> = lattice.basis().iter().map(|s| s.name.as_str()).collect();
        Error::input(format!("no sublattice `{name}`"))
            .hint(format!("the sublattices are {}", names.join(", ")))
    })
}

/// The site at cell coordinates that may be followed by a sublattice.
fn site_at(lattice: &Lattice, at: &[Dynamic]) -> Result<INT> {
    let d = lattice.dimension();
    let (cell, s) = if at.len() == d + 1 { (&at[..d], sublattice_of(lattice, &at[d])?) } else { (at, 0) };
    Ok(lattice.site(&ints(&cell.to_vec(), "a cell coordinate")?, s)? as INT)
}

/// A lattice from the parts that `lattice::custom` takes.
fn custom(vectors: Array, options: &Options<'_>) -> Result<Lattice> {
    let vectors: Vec<Vec<f64>> =
        vectors.iter().map(|v| reals(v, "a Bravais vector")).collect::<Result<_>>()?;
    let d = vectors.len();
    let array = |key: &'static str| -> Result<Option<Array>> {
        options
            .value(key)
            .map(|v| {
                v.try_cast::<Array>().ok_or_else(|| Error::input(format!("option `{key}` takes an array")))
            })
            .transpose()
    };
    let cells = match array("cells")? {
        Some(cells) => ints(&cells, "`cells`")?.into_iter().map(size).collect::<Result<Vec<_>>>()?,
        None => vec![1; d],
    };
    let positions: Vec<Vec<f64>> = match array("sites")? {
        Some(list) => list.iter().map(|p| reals(p, "a position")).collect::<Result<_>>()?,
        None => vec![vec![0.0; vectors.first().map_or(0, Vec::len)]],
    };
    let names = match array("names")? {
        Some(list) => list.iter().map(|n| n.to_string()).collect(),
        None => (0..positions.len()).map(letter).collect::<Vec<_>>(),
    };
    if names.len() != positions.len() {
        return Err(Error::input(format!("{} names for {} sites", names.len(), positions.len())));
    }
    let basis = names.into_iter().zip(positions).map(|(name, position)| Site { name, position }).collect();
    let mut bonds = Vec::new();
    for bond in array("bonds")?.unwrap_or_default() {
        bonds.push(bond_of(&bond, d)?);
    }
    let name = options.text_or("name", "custom")?;
    Lattice::custom(name, vectors, basis, bonds, cells)
}

/// "A", "B", ... and beyond the alphabet their numbers.
fn letter(s: usize) -> String {
    u8::try_from(s).ok().filter(|s| *s < 26).map_or(format!("S{s}"), |s| char::from(b'A' + s).to_string())
}

/// A bond `[[shift], from, to]`.
fn bond_of(value: &Dynamic, d: usize) -> Result<Bond> {
    let wrong = || {
        Error::input("a bond is an array [shift, from, to]").hint(format!(
            "with a shift of {d} whole numbers, like [{}, 0, 1]",
            format_args!("{:?}", vec![0; d])
        ))
    };
    let parts = value.clone().try_cast::<Array>().filter(|p| p.len() == 3).ok_or_else(wrong)?;
    let shift = parts[0].clone().try_cast::<Array>().ok_or_else(wrong)?;
    let site = |v: &Dynamic| v.as_int().ok().and_then(|i| usize::try_from(i).ok()).ok_or_else(wrong);
    Ok(Bond { shift: ints(&shift, "a shift")?, from: site(&parts[1])?, to: site(&parts[2])? })
}

#[export_module]
mod lattice_module {
    /// A chain of `n` sites, periodic until `boundary` says otherwise.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::chain(8).neighbors(0) == [1, 7], "a ring");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chain(ctx: NativeCallContext, n: INT) -> std::result::Result<Lattice, Failure> {
        size(n).and_then(Lattice::chain).at(&ctx)
    }

    /// The square lattice of `x` times `y` sites.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::square(4, 3).sites == 12, "twelve sites");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn square(ctx: NativeCallContext, x: INT, y: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::square(x, size(y)?)).at(&ctx)
    }

    /// The triangular lattice, Bravais vectors (1, 0) and (1/2, sqrt(3)/2); six neighbours a site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::triangular(4, 4).neighbors(5).len == 6, "six neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn triangular(ctx: NativeCallContext, x: INT, y: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::triangular(x, size(y)?)).at(&ctx)
    }

    /// The honeycomb lattice of graphene: sublattices "A" and "B", Bravais vectors (1, 0) and (1/2, sqrt(3)/2), so that
    /// neighbours are 1/sqrt(3) apart.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::honeycomb(4, 4);
    /// assert(lat.sites == 32 && lat.neighbors(0).len == 3, "three neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn honeycomb(ctx: NativeCallContext, x: INT, y: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::honeycomb(x, size(y)?)).at(&ctx)
    }

    /// The kagome lattice: three sites a cell, four neighbours a site, neighbours 1/2 apart.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::kagome(4, 4).sites == 48, "three sites a cell");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn kagome(ctx: NativeCallContext, x: INT, y: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::kagome(x, size(y)?)).at(&ctx)
    }

    /// The simple cubic lattice.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::cubic(4, 4, 4);
    /// assert(lat.site(1, 2, 3) == 1 + 4 * (2 + 4 * 3), "the first direction is fastest");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn cubic(ctx: NativeCallContext, x: INT, y: INT, z: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::cubic(x, size(y)?, size(z)?)).at(&ctx)
    }

    /// The body-centred cubic lattice in its primitive cell; eight neighbours a site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::bcc(4, 4, 4).neighbors(0).len == 8, "eight neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn bcc(ctx: NativeCallContext, x: INT, y: INT, z: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::bcc(x, size(y)?, size(z)?)).at(&ctx)
    }

    /// The face-centred cubic lattice in its primitive cell; twelve neighbours a site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::fcc(4, 4, 4).neighbors(0).len == 12, "twelve neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fcc(ctx: NativeCallContext, x: INT, y: INT, z: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::fcc(x, size(y)?, size(z)?)).at(&ctx)
    }

    /// The diamond lattice: two sites in the primitive cell of fcc; four neighbours a site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::diamond(3, 3, 3).sites == 54, "two sites a cell");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn diamond(ctx: NativeCallContext, x: INT, y: INT, z: INT) -> std::result::Result<Lattice, Failure> {
        size(x).and_then(|x| Lattice::diamond(x, size(y)?, size(z)?)).at(&ctx)
    }

    /// The hypercubic lattice of as many directions as sizes, up to eight; four sizes need no brackets.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::hypercubic([3, 3, 3, 3]).neighbors(0).len == 8, "eight neighbours in four dimensions");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn hypercubic(ctx: NativeCallContext, sizes: Array) -> std::result::Result<Lattice, Failure> {
        let build = || {
            let sizes = ints(&sizes, "the size of a lattice")?.into_iter().map(size);
            Lattice::hypercubic(&sizes.collect::<Result<Vec<_>>>()?)
        };
        build().at(&ctx)
    }

    #[rhai_fn(name = "hypercubic", return_raw)]
    pub fn hypercubic_4d(
        ctx: NativeCallContext,
        x: INT,
        y: INT,
        z: INT,
        t: INT,
    ) -> std::result::Result<Lattice, Failure> {
        let build = || Lattice::hypercubic(&[size(x)?, size(y)?, size(z)?, size(t)?]);
        build().at(&ctx)
    }

    /// A lattice of your own: Bravais vectors, and in the options what a cell holds.
    ///
    /// # Options
    /// - `cells` (one in each direction): number of cells in each direction.
    /// - `sites` (one at the origin): positions of the sites of a cell, Cartesian.
    /// - `names` ("A", "B", ...): their names.
    /// - `bonds` (none): nearest-neighbour bonds `[shift, from, to]`, each once.
    /// - `name` ("custom"): what the lattice is called.
    ///
    /// # Example
    /// ```rhai
    /// // the Lieb lattice
    /// let lieb = lattice::custom([[2.0, 0.0], [0.0, 2.0]], #{
    ///     cells: [4, 4],
    ///     sites: [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    ///     bonds: [[[0, 0], 0, 1], [[0, 0], 0, 2], [[-1, 0], 0, 1], [[0, -1], 0, 2]],
    /// });
    /// assert(lieb.neighbors(lieb.site(0, 0, "A")).len == 4, "corners have four neighbours");
    /// assert(lieb.neighbors(lieb.site(0, 0, "B")).len == 2, "edges have two");
    /// ```
    #[rhai_fn(return_raw, name = "custom")]
    pub fn custom_lattice(
        ctx: NativeCallContext,
        vectors: Array,
        options: Map,
    ) -> std::result::Result<Lattice, Failure> {
        let o = Options::new(&ctx, options);
        let lattice = custom(vectors, &o).at(&ctx)?;
        o.finish()?;
        Ok(lattice)
    }

    #[rhai_fn(return_raw, name = "custom")]
    pub fn custom_lattice_plain(
        ctx: NativeCallContext,
        vectors: Array,
    ) -> std::result::Result<Lattice, Failure> {
        custom_lattice(ctx, vectors, Map::new())
    }
}

#[export_module]
mod lattice_functions {
    /// A twisted boundary: the wave function gains the phase exp(i phase) on the way round.
    ///
    /// # Example
    /// ```rhai
    /// let ring = lattice::chain(8).boundary(twisted(PI() / 2.0));
    /// assert(!tight_binding(ring, #{}).to_string().contains("real"), "a twist makes the operator complex");
    /// ```
    pub fn twisted(phase: FLOAT) -> Boundary {
        Boundary(Wrap::Phase(C64::cis(phase)))
    }

    #[rhai_fn(name = "twisted")]
    pub fn twisted_int(phase: INT) -> Boundary {
        Boundary(Wrap::Phase(C64::cis(phase as FLOAT)))
    }

    #[rhai_fn(name = "to_string", name = "to_debug", pure)]
    pub fn boundary_to_string(boundary: &mut Boundary) -> String {
        match boundary.0 {
            Wrap::Phase(p) => format!("twisted({})", p.arg()),
            Wrap::Open => "open".into(),
        }
    }

    /// The same lattice with other boundaries: one for all directions or one each of "periodic", "antiperiodic", "open"
    /// and `twisted(phase)`.
    ///
    /// # Example
    /// ```rhai
    /// let slab = lattice::cubic(4, 4, 2).boundary("periodic", "periodic", "open");
    /// assert(slab.neighbors(0).len == 5, "no neighbour below");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn boundary(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        all: Dynamic,
    ) -> std::result::Result<Lattice, Failure> {
        boundaries_of(&all).and_then(|w| lattice.boundary(&w)).at(&ctx)
    }

    #[rhai_fn(name = "boundary", return_raw, pure)]
    pub fn boundary_2(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        x: Dynamic,
        y: Dynamic,
    ) -> std::result::Result<Lattice, Failure> {
        boundaries_of(&vec![x, y].into()).and_then(|w| lattice.boundary(&w)).at(&ctx)
    }

    #[rhai_fn(name = "boundary", return_raw, pure)]
    pub fn boundary_3(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        x: Dynamic,
        y: Dynamic,
        z: Dynamic,
    ) -> std::result::Result<Lattice, Failure> {
        boundaries_of(&vec![x, y, z].into()).and_then(|w| lattice.boundary(&w)).at(&ctx)
    }

    /// The number of the site in cell `at`; a sublattice, by number or name, may follow the coordinates.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::honeycomb(4, 4);
    /// assert(lat.site(1, 0) == 2 && lat.site([1, 0], "B") == 3, "two sites a cell");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn site(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        at: Dynamic,
    ) -> std::result::Result<INT, Failure> {
        let at = at.clone().try_cast::<Array>().unwrap_or_else(|| vec![at]);
        site_at(lattice, &at).at(&ctx)
    }

    #[rhai_fn(name = "site", return_raw, pure)]
    pub fn site_2(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        x: Dynamic,
        y: Dynamic,
    ) -> std::result::Result<INT, Failure> {
        let mut at = x.clone().try_cast::<Array>().unwrap_or_else(|| vec![x]);
        at.push(y);
        site_at(lattice, &at).at(&ctx)
    }

    #[rhai_fn(name = "site", return_raw, pure)]
    pub fn site_3(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        x: Dynamic,
        y: Dynamic,
        z: Dynamic,
    ) -> std::result::Result<INT, Failure> {
        site_at(lattice, &[x, y, z]).at(&ctx)
    }

    #[rhai_fn(name = "site", return_raw, pure)]
    pub fn site_4(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        x: Dynamic,
        y: Dynamic,
        z: Dynamic,
        s: Dynamic,
    ) -> std::result::Result<INT, Failure> {
        site_at(lattice, &[x, y, z, s]).at(&ctx)
    }

    /// The Cartesian position of a site, in lattice constants.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::square(4, 4).position(5) == [1.0, 1.0], "one right, one up");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn position(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        site: INT,
    ) -> std::result::Result<Dynamic, Failure> {
        count(site, "a site").and_then(|s| lattice.position(s)).map(|r| floats(&r)).at(&ctx)
    }

    /// The sites joined to a site by nearest-neighbour bonds.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::chain(4).boundary("open").neighbors(0) == [1], "an end has one neighbour");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn neighbors(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        site: INT,
    ) -> std::result::Result<Array, Failure> {
        let found = count(site, "a site").and_then(|s| lattice.neighbors(s)).at(&ctx)?;
        Ok(found.into_iter().map(|s| Dynamic::from(s as INT)).collect())
    }

    /// The nearest-neighbour bonds, each once, as `[i, j, phase]`: the phase that an antiperiodic or twisted boundary puts on
    /// the matrix element of row i and column j, 1 elsewhere.
    ///
    /// # Example
    /// ```rhai
    /// let ring = lattice::chain(3).boundary("antiperiodic");
    /// assert(ring.bonds() == [[0, 1, 1.0], [1, 2, 1.0], [2, 0, -1.0]], "the sign stands where the ring closes");
    /// ```
    #[rhai_fn(pure)]
    pub fn bonds(lattice: &mut Lattice) -> Array {
        let number = |z: C64| if z.im == 0.0 { Dynamic::from(z.re) } else { Dynamic::from(z) };
        let bond = |(i, j, phase)| {
            Dynamic::from_array(vec![Dynamic::from(i as INT), Dynamic::from(j as INT), number(phase)])
        };
        lattice.joined().into_iter().map(bond).collect()
    }

    /// The lattice without the sites whose position the function says true to; the rest is numbered anew.
    ///
    /// # Example
    /// ```rhai
    /// let disc = lattice::square(11, 11).boundary("open").remove(|r| (r[0] - 5.0) ** 2.0 + (r[1] - 5.0) ** 2.0 > 16.5);
    /// assert(disc.sites == 49, "the points of a disc");
    /// ```
    #[rhai_fn(name = "remove", return_raw, pure)]
    pub fn remove_sites(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        gone: FnPtr,
    ) -> std::result::Result<Lattice, Failure> {
        let task = session(&ctx).at(&ctx)?.task(true);
        let calls = Callback::new(&ctx);
        let mut predicate = |r: &[f64]| truth(calls.call(&gone, (floats(r),))?);
        let removed = lattice.remove(&mut predicate, &task);
        calls.finish(removed)
    }

    /// The lattice without each site with probability `fraction`, drawn with the session's seed.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::cubic(20, 20, 20).vacancies(0.1, 7);
    /// assert((lat.sites / 8000.0 - 0.9).abs() < 0.02, "a tenth is gone");
    /// ```
    #[rhai_fn(return_raw, pure)]
    pub fn vacancies(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        fraction: FLOAT,
        seed: INT,
    ) -> std::result::Result<Lattice, Failure> {
        lattice.vacancies(fraction, seed as u64).at(&ctx)
    }

    #[rhai_fn(name = "vacancies", return_raw, pure)]
    pub fn vacancies_plain(
        ctx: NativeCallContext,
        lattice: &mut Lattice,
        fraction: FLOAT,
    ) -> std::result::Result<Lattice, Failure> {
        session(&ctx).and_then(|s| lattice.vacancies(fraction, s.seed())).at(&ctx)
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

/// What a predicate said.
pub(super) fn truth(value: Dynamic) -> Result<bool> {
    value
        .as_bool()
        .map_err(|t| Error::input(format!("the function gives a {t}, where true or false is needed")))
}
