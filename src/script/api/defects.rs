//! Defects of models: a few sites, terms and hoppings, at many places.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, INT, Map};

use super::lattice::{ints, reals, sublattice_of};
use super::model::{ScriptModel, block_of, shift_of};
use super::values::{real, type_of};
use crate::error::{Error, Result};
use crate::lattice::{Defect, DefectPlaces, DefectSite, Lattice, LatticeSite, Model};
use crate::script::declared::unknown_key;
use crate::script::{Fallible, Options, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(defect_functions).into());
}

/// The parts of a defect.
const PARTS: [&str; 5] = ["remove", "add", "move", "onsite", "hop"];

/// A site of a defect: a sublattice of its own cell, or `[step, sublattice]`.
fn place_of(value: &Dynamic, model: &Model) -> Result<DefectSite> {
    let lattice = model.lattice();
    let Some(pair) = value.clone().try_cast::<Array>() else {
        return Ok(DefectSite { shift: vec![0; lattice.dimension()], site: sublattice_of(lattice, value)? });
    };
    let [step, site] = &pair[..] else {
        return Err(Error::input(format!("a site of a defect given by {} values", pair.len()))
            .hint("it is a sublattice, or a displacement in cells and a sublattice: `[[1, 0], \"A\"]`"));
    };
    Ok(DefectSite { shift: shift_of(step)?, site: sublattice_of(lattice, site)? })
}

/// A part of a defect: an array of `what`, `N` values each.
fn entries<const N: usize>(map: &Map, part: &str, what: &str) -> Result<Vec<[Dynamic; N]>> {
    let Some(value) = map.get(part) else { return Ok(Vec::new()) };
    let wrong = |shown: String| {
        Error::input(format!("`{part}` of a defect is {shown}")).hint(format!("it is an array of {what}"))
    };
    let all = value.clone().try_cast::<Array>().ok_or_else(|| wrong(format!("a {}", type_of(value))))?;
    let one = |entry: &Dynamic| {
        let entry = entry.clone().try_cast::<Array>().ok_or_else(|| wrong("no array of arrays".into()))?;
        let count = entry.len();
        entry.try_into().map_err(|_| wrong(format!("an array that has an entry of {count} values")))
    };
    all.iter().map(one).collect()
}

/// A defect as the script gives it.
fn map_of(value: &Dynamic) -> Result<Map> {
    let Some(map) = value.clone().try_cast::<Map>() else {
        return Err(Error::input(format!("a defect is a map, not {}", type_of(value)))
            .hint("write it like `#{ remove: [\"A\"], onsite: [[\"B\", 0.3]] }`"));
    };
    match map.keys().find(|key| !PARTS.contains(&key.as_str())) {
        Some(key) => Err(unknown_key(key, PARTS).context("a defect")),
        None => Ok(map),
    }
}

/// Sublattices that defects bring, beside those of a lattice.
struct Sublattices<'a> {
    lattice: &'a Lattice,
    /// Each with the sublattice that its sites come from, if they move.
    more: Vec<(LatticeSite, Option<usize>)>,
}

impl Sublattices<'_> {
    /// The number of the sublattice of this name and position; an error where the name is another's.
    fn named(&mut self, name: &str, position: &[f64], like: Option<usize>) -> Result<usize> {
        let all = self.lattice.basis().iter().chain(self.more.iter().map(|(site, _)| site));
        let Some((number, site)) = all.enumerate().find(|(_, site)| site.name == name) else {
            let site = LatticeSite { name: name.into(), position: position.to_vec() };
            self.more.push((site, like));
            return Ok(self.lattice.basis().len() + self.more.len() - 1);
        };
        if same_place(&site.position, position) {
            return Ok(number);
        }
        Err(Error::input(format!("sublattice `{name}` lies at {:?}, not at {position:?}", site.position))
            .hint("give each place of a cell a name of its own"))
    }

    /// The sublattice that sites of another move to: A' for A, with more strokes for other displacements.
    fn moved(&mut self, from: usize, by: &[f64]) -> Result<usize> {
        let site = &self.lattice.basis()[from];
        let position: Vec<f64> = site.position.iter().zip(by).map(|(x, d)| x + d).collect();
        let mut name = format!("{}'", site.name);
        loop {
            let all = self.lattice.basis().iter().chain(self.more.iter().map(|(site, _)| site));
            match all.into_iter().find(|site| site.name == name) {
                Some(other) if !same_place(&other.position, &position) => name.push('\''),
                _ => return self.named(&name, &position, Some(from)),
            }
        }
    }
}

fn same_place(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
}

/// A vector of the model's space.
fn vector_of(value: &Dynamic, model: &Model, what: &str) -> Result<Vec<f64>> {
    let all = reals(value, what).map_err(|e| e.hint("write it like `[0.0, 0.1]`"))?;
    let space = model.lattice().space();
    match all.len() == space {
        true => Ok(all),
        false => Err(Error::input(format!("{what} has {} coordinates in a space of {space}", all.len()))
            .hint("give one number for each axis")),
    }
}

/// The sites that a defect brings, and those that it moves.
fn made_by(map: &Map, model: &Model, sublattices: &mut Sublattices<'_>) -> Result<Defect> {
    let mut defect = Defect::default();
    let here = vec![0; model.lattice().dimension()];
    for [name, position] in entries::<2>(map, "add", "`[name, position]`")? {
        let name = name.into_string().map_err(|_| {
            Error::input("a site that a defect adds has no name").hint("write `add: [[\"H\", [0.0, 0.5]]]`")
        })?;
        let position = vector_of(&position, model, "the position of a site that a defect adds")?;
        let site = sublattices.named(&name, &position, None)?;
        defect.add.push(DefectSite { shift: here.clone(), site });
    }
    for [site, by] in entries::<2>(map, "move", "`[site, displacement]`")? {
        let from = place_of(&site, model)?;
        let by = vector_of(&by, model, "the displacement of a site")?;
        if defect.moves.iter().any(|(other, _)| *other == from) {
            return Err(Error::input("a defect moves a site twice").hint("add the displacements up"));
        }
        let site = sublattices.moved(from.site, &by)?;
        let to = DefectSite { shift: from.shift.clone(), site };
        defect.moves.push((from, to));
    }
    Ok(defect)
}

/// All parts of a defect, of a model that has the sublattices which defects bring.
fn defect_of(map: &Map, made: Defect, model: &Model) -> Result<Defect> {
    let orbitals = model.particles();
    let mut defect = made;
    if let Some(gone) = map.get("remove") {
        let Some(gone) = gone.clone().try_cast::<Array>() else {
            return Err(Error::input("`remove` of a defect is no array").hint("write `remove: [\"A\"]`"));
        };
        defect.remove = gone.iter().map(|x| place_of(x, model)).collect::<Result<_>>()?;
    }
    if defect.moves.iter().any(|(from, _)| defect.remove.contains(from)) {
        return Err(Error::input("a defect moves a site that it removes").hint("do one of both"));
    }
    // Terms of a moved site refer to its new place.
    let moves = defect.moves.clone();
    let now = |place: DefectSite| match moves.iter().find(|(from, _)| *from == place) {
        Some((_, to)) => to.clone(),
        None => place,
    };
    for [site, term] in entries::<2>(map, "onsite", "`[site, term]`")? {
        defect.onsite.push((now(place_of(&site, model)?), block_of(&term, orbitals)?));
    }
    for [from, to, term] in entries::<3>(map, "hop", "`[from, to, hopping]`")? {
        let ends = (now(place_of(&from, model)?), now(place_of(&to, model)?));
        defect.hops.push((ends.0, ends.1, block_of(&term, orbitals)?));
    }
    Ok(defect)
}

/// Where defects go: cells, how many, or a fraction of the cells.
fn places_of(value: &Dynamic) -> Result<DefectPlaces> {
    if let Some(cells) = value.clone().try_cast::<Array>() {
        let at = |x: &Dynamic| match (x.as_int(), x.clone().try_cast::<Array>()) {
            (Ok(x), _) => Ok(vec![x]),
            (_, Some(array)) => ints(&array, "the cell of a defect"),
            _ => Err(Error::input("the cell of a defect is an array of whole numbers, one per direction")
                .hint("write cells like `[[0, 3], [4, 4]]`")),
        };
        return cells.iter().map(at).collect::<Result<_>>().map(DefectPlaces::Cells);
    }
    match value.as_int() {
        Ok(n) => usize::try_from(n)
            .map(DefectPlaces::Count)
            .map_err(|_| Error::input(format!("{n} defects")).hint("a whole number is how many there are")),
        Err(_) => real(value, "the fraction of cells with defects")
            .map(DefectPlaces::Fraction)
            .map_err(|e| e.hint("0.01, how many there are, or an array of cells")),
    }
}

#[export_module(root = "crate::script::native")]
mod defect_functions {
    /// Puts a defect into the model, at many places: a vacancy with its reconstructed bonds, a substitutional atom with
    /// changed neighbours, a rotated bond, an atom on top or between others. Returns the number of defects.
    ///
    /// A defect is a map of changes. `remove` lists the sites to remove. `add` lists new sites as `[name, position]`,
    /// with a position in the cell as for the sites of the lattice. `move` lists `[site, displacement]`. `onsite` lists
    /// `[site, term]`: a number or Matrix added to the term of the site. `hop` lists `[from, to, hopping]`: the hopping
    /// replaces those of the model over that bond; 0 cuts it, and the conjugate is implied. A site is a sublattice of
    /// the defect's own cell, like `"A"`, a sublattice of a neighbouring cell, like `[[1, 0], "A"]`, or the name of an
    /// added site. With an array of defects, each place gets one of them at random, for example another orientation or
    /// another sign of a moment.
    ///
    /// A moved site keeps its terms and hoppings unless the defect changes them. Its sublattice gets a new name with a
    /// prime, `"A'"`. Added sites have only the terms and hoppings of the defect. They are numbered within their cells,
    /// after the sites that were there.
    ///
    /// `places` is a probability for each cell, like 0.01; or a whole number, the total number of defects; or an array
    /// of cells. A defect is placed only where all sites that it names exist. Defects change the hoppings added before;
    /// hoppings added later come on top. Defects that change only on-site terms, diagonal in the orbitals, keep an
    /// operator matrix-free.
    ///
    /// Cells are taken in the order of their random numbers: cell `c` has `u` from Philox (seed; stream "defects",
    /// element `c`). So a larger fraction contains all defects of a smaller one. Each call draws new numbers, even with
    /// the same seed.
    ///
    /// # Options
    /// - `overlap` (true): whether defects of one call may share sites; defects that move sites never do. With `false`,
    ///   places where they would are left out, so there may be fewer defects than the fraction says.
    /// - `seed` (int or string, the session's): seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// // a vacancy of graphene: of its three neighbours two form a bond, the third keeps a dangling one
    /// let m = model(lattice::honeycomb(12, 12));
    /// m.nearest(-2.7);
    /// let vacancy = #{
    ///     remove: ["A"],
    ///     onsite: [["B", 0.2]],
    ///     hop: [[[[-1, 0], "B"], [[0, -1], "B"], -1.5]],
    /// };
    /// assert(m.defects(vacancy, 5, #{ overlap: false, seed: 1 }) == 5, "five of them");
    /// assert(m.build().dim == 2 * 144 - 5, "a site less for each");
    /// // magnetic vacancies: moments of either sign on the neighbours
    /// let m = model(lattice::honeycomb(12, 12), 2);
    /// m.nearest(-2.7);
    /// let around = ["B", [[-1, 0], "B"], [[0, -1], "B"]];
    /// let up = #{ remove: ["A"], onsite: around.map(|site| [site, 0.4 * pauli().z]) };
    /// let down = #{ remove: ["A"], onsite: around.map(|site| [site, -0.4 * pauli().z]) };
    /// let count = m.defects([up, down], 0.02, #{ seed: 1 });
    /// assert(m.build().dim == 2 * (2 * 144 - count), "each has a moment");
    /// // hydrogen on top of an atom that it pulls out of the plane
    /// let flat = [[0.0, 0.0, 0.0], [0.5, 0.289, 0.0]];
    /// let vectors = [[1.0, 0.0, 0.0], [0.5, 0.866, 0.0]];
    /// let bonds = [[[0, 0], 0, 1], [[-1, 0], 0, 1], [[0, -1], 0, 1]];
    /// let m = model(lattice::custom(vectors, #{ sites: flat, bonds: bonds, cells: [9, 9] }));
    /// m.nearest(-2.7);
    /// let hydrogen = #{
    ///     add: [["H", [0.0, 0.0, 0.6]]],
    ///     move: [["A", [0.0, 0.0, 0.15]]],
    ///     hop: [["A", "H", 5.7]],
    ///     onsite: [["H", 0.2]],
    /// };
    /// m.defects(hydrogen, [[4, 4]]);
    /// assert(m.build().dim == 2 * 81 + 1 && m.build().is_hermitian(), "one atom more");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn defects(model: &mut ScriptModel, defect: Dynamic, places: Dynamic, o: Options) -> Fallible<INT> {
        let maps = match defect.clone().try_cast::<Array>() {
            Some(all) => all.iter().map(map_of).collect::<Result<Vec<_>>>()?,
            None => vec![map_of(&defect)?],
        };
        let mut sublattices = Sublattices { lattice: model.model.lattice(), more: Vec::new() };
        let made: Vec<Defect> =
            maps.iter().map(|map| made_by(map, &model.model, &mut sublattices)).collect::<Result<_>>()?;
        let more = sublattices.more;
        let mut wider = match more.is_empty() {
            true => None,
            false => Some(model.model.with_sublattices(more)?),
        };
        let target = wider.as_mut().unwrap_or(&mut model.model);
        let kinds: Vec<Defect> =
            maps.iter().zip(made).map(|(map, made)| defect_of(map, made, target)).collect::<Result<_>>()?;
        let places = places_of(&places)?;
        let (overlap, seed) = (o.flag("overlap")?, o.seed()?);
        let count = target.defects(&kinds, &places, overlap, seed, &session()?.task(true))?;
        if let Some(wider) = wider {
            model.model = wider;
        }
        Ok(count as INT)
    }
}
