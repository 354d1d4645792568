//! The lattices that there are, and lattices of one's own.

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use super::{Boundary, ints, reals};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::lattice::{Bond, Lattice, LatticeSite};
use crate::number::C64;
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("lattice", exported_module!(lattice_module));
}

/// A size of a lattice.
fn size(n: INT) -> Result<usize> {
    let wrong = |_| Error::input(format!("{n} cells in a direction")).hint("one cell is the least");
    usize::try_from(n).map_err(wrong)
}

/// A lattice from the parts that `lattice::custom` takes.
fn custom(vectors: Array, o: &Options) -> Result<Lattice> {
    let vectors: Vec<Vec<f64>> =
        vectors.iter().map(|v| reals(v, "a Bravais vector")).collect::<Result<_>>()?;
    let d = vectors.len();
    let cells = match o.maybe::<Array>("cells") {
        Some(cells) => ints(&cells, "`cells`")?.into_iter().map(size).collect::<Result<Vec<_>>>()?,
        None => vec![1; d],
    };
    let positions: Vec<Vec<f64>> = match o.maybe::<Array>("sites") {
        Some(list) => list.iter().map(|p| reals(p, "a position")).collect::<Result<_>>()?,
        None => vec![vec![0.0; vectors.first().map_or(0, Vec::len)]],
    };
    let names = match o.maybe::<Array>("names") {
        Some(list) => list.iter().map(|n| n.to_string()).collect(),
        None => (0..positions.len()).map(letter).collect::<Vec<_>>(),
    };
    if names.len() != positions.len() {
        return Err(Error::input(format!("{} names for {} sites", names.len(), positions.len()))
            .hint("give one for each site of the cell, or leave them out"));
    }
    let basis =
        names.into_iter().zip(positions).map(|(name, position)| LatticeSite { name, position }).collect();
    let mut bonds = Vec::new();
    for bond in o.maybe::<Array>("bonds").unwrap_or_default() {
        bonds.push(bond_of(&bond, d)?);
    }
    let name = o.text("name")?;
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
    Ok(Bond { shift: ints(&shift, "a shift")?.into(), from: site(&parts[1])?, to: site(&parts[2])? })
}

#[export_module(root = "crate::script::native")]
mod lattice_module {
    /// A chain of `n` sites, periodic unless `boundary` changes it.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::chain(8).neighbors(0) == [1, 7], "a ring");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn chain(n: INT) -> Fallible<Lattice> {
        Ok(size(n).and_then(Lattice::chain)?)
    }

    /// The square lattice of `x` times `y` sites.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::square(4, 3).sites == 12, "twelve sites");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn square(x: INT, y: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::square(x, size(y)?))?)
    }

    /// The triangular lattice, Bravais vectors (1, 0) and (1/2, sqrt(3)/2); six neighbours per site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::triangular(4, 4).neighbors(5).len == 6, "six neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn triangular(x: INT, y: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::triangular(x, size(y)?))?)
    }

    /// The honeycomb lattice of graphene: sublattices "A" and "B", Bravais vectors (1, 0) and (1/2, sqrt(3)/2). The
    /// distance of neighbours is 1/sqrt(3).
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::honeycomb(4, 4);
    /// assert(lat.sites == 32 && lat.neighbors(0).len == 3, "three neighbours");
    /// assert(lat.cells == [4, 4] && lat.dimension == 2 && lat.sublattices == ["A", "B"], "two sites a cell");
    /// assert_close(lat.vectors[1][1], sqrt(3.0) / 2.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn honeycomb(x: INT, y: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::honeycomb(x, size(y)?))?)
    }

    /// The kagome lattice: three sites per cell, four neighbours per site, at distance 1/2.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::kagome(4, 4).sites == 48, "three sites a cell");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn kagome(x: INT, y: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::kagome(x, size(y)?))?)
    }

    /// The simple cubic lattice.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::cubic(4, 4, 4);
    /// assert(lat.site(1, 2, 3) == 1 + 4 * (2 + 4 * 3), "the first direction is fastest");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn cubic(x: INT, y: INT, z: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::cubic(x, size(y)?, size(z)?))?)
    }

    /// The body-centred cubic lattice in its primitive cell; eight neighbours per site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::bcc(4, 4, 4).neighbors(0).len == 8, "eight neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn bcc(x: INT, y: INT, z: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::bcc(x, size(y)?, size(z)?))?)
    }

    /// The face-centred cubic lattice in its primitive cell; twelve neighbours per site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::fcc(4, 4, 4).neighbors(0).len == 12, "twelve neighbours");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fcc(x: INT, y: INT, z: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::fcc(x, size(y)?, size(z)?))?)
    }

    /// The diamond lattice: two sites in the primitive cell of fcc; four neighbours per site.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::diamond(3, 3, 3).sites == 54, "two sites a cell");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn diamond(x: INT, y: INT, z: INT) -> Fallible<Lattice> {
        Ok(size(x).and_then(|x| Lattice::diamond(x, size(y)?, size(z)?))?)
    }

    /// The hypercubic lattice with one direction per size, up to eight; four sizes need no brackets.
    ///
    /// # Example
    /// ```rhai
    /// assert(lattice::hypercubic([3, 3, 3, 3]).neighbors(0).len == 8, "eight neighbours in four dimensions");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn hypercubic(sizes: Array) -> Fallible<Lattice> {
        let sizes = ints(&sizes, "the size of a lattice")?.into_iter().map(size);
        Ok(Lattice::hypercubic(&sizes.collect::<Result<Vec<_>>>()?)?)
    }

    #[rhai_fn(name = "hypercubic", return_raw)]
    pub fn hypercubic_4d(x: INT, y: INT, z: INT, t: INT) -> Fallible<Lattice> {
        Ok(Lattice::hypercubic(&[size(x)?, size(y)?, size(z)?, size(t)?])?)
    }

    /// A lattice of your own, from its Bravais vectors; the options describe the cell.
    ///
    /// # Options
    /// - `cells` (array, one in each direction): number of cells in each direction.
    /// - `sites` (array, one at the origin): positions of the sites of a cell, Cartesian.
    /// - `names` (array, "A", "B", ...): names of these sites (sublattices).
    /// - `bonds` (array, none): nearest-neighbour bonds `[shift, from, to]`, each once.
    /// - `name` ("custom"): name of the lattice.
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
    pub fn custom_lattice(vectors: Array, o: Options) -> Fallible<Lattice> {
        Ok(custom(vectors, &o)?)
    }

    /// A twisted boundary: the wave function gains the factor exp(i phase) once around the system.
    ///
    /// # Example
    /// ```rhai
    /// let ring = lattice::chain(8).boundary(lattice::twisted(PI / 2.0));
    /// assert(!tight_binding(ring, #{}).to_string().contains("real"), "a twist makes the operator complex");
    /// ```
    pub fn twisted(phase: Float) -> Boundary {
        Boundary(Wrap::Phase(C64::cis(phase)))
    }
}
