//! Defects of models: a few sites, terms and hoppings, at many places.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, INT, Map};

use super::lattice::{ints, sublattice_of};
use super::model::{ScriptModel, block_of, shift_of};
use super::values::{real, type_of};
use crate::error::{Error, Result};
use crate::lattice::{Defect, Model, Place, Places};
use crate::script::declared::unknown_key;
use crate::script::{Fallible, Options, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(defect_functions).into());
}

/// What a defect is made of.
const PARTS: [&str; 3] = ["remove", "onsite", "hop"];

/// A site of a defect: a sublattice of its own cell, or `[step, sublattice]`.
fn place_of(value: &Dynamic, model: &Model) -> Result<Place> {
    let lattice = model.lattice();
    let Some(pair) = value.clone().try_cast::<Array>() else {
        return Ok(Place { shift: vec![0; lattice.dimension()], site: sublattice_of(lattice, value)? });
    };
    let [step, site] = &pair[..] else {
        return Err(Error::input(format!("a site of a defect given by {} values", pair.len()))
            .hint("it is a sublattice, or a displacement in cells and a sublattice: `[[1, 0], \"A\"]`"));
    };
    Ok(Place { shift: shift_of(step)?, site: sublattice_of(lattice, site)? })
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

fn defect_of(value: &Dynamic, model: &Model) -> Result<Defect> {
    let Some(map) = value.clone().try_cast::<Map>() else {
        return Err(Error::input(format!("a defect is a map, not {}", type_of(value)))
            .hint("write it like `#{ remove: [\"A\"], onsite: [[\"B\", 0.3]] }`"));
    };
    if let Some(key) = map.keys().find(|key| !PARTS.contains(&key.as_str())) {
        return Err(unknown_key(key, PARTS).context("a defect"));
    }
    let orbitals = model.particles();
    let mut defect = Defect::default();
    if let Some(gone) = map.get("remove") {
        let Some(gone) = gone.clone().try_cast::<Array>() else {
            return Err(Error::input("`remove` of a defect is no array").hint("write `remove: [\"A\"]`"));
        };
        defect.remove = gone.iter().map(|x| place_of(x, model)).collect::<Result<_>>()?;
    }
    for [site, term] in entries::<2>(&map, "onsite", "`[site, term]`")? {
        defect.onsite.push((place_of(&site, model)?, block_of(&term, orbitals)?));
    }
    for [from, to, term] in entries::<3>(&map, "hop", "`[from, to, hopping]`")? {
        let ends = (place_of(&from, model)?, place_of(&to, model)?);
        defect.hops.push((ends.0, ends.1, block_of(&term, orbitals)?));
    }
    Ok(defect)
}

/// Where defects go: cells, how many, or a fraction of the cells.
fn places_of(value: &Dynamic) -> Result<Places> {
    if let Some(cells) = value.clone().try_cast::<Array>() {
        let at = |x: &Dynamic| match (x.as_int(), x.clone().try_cast::<Array>()) {
            (Ok(x), _) => Ok(vec![x]),
            (_, Some(array)) => ints(&array, "the cell of a defect"),
            _ => Err(Error::input("the cell of a defect is an array of whole numbers, one a direction")
                .hint("write cells like `[[0, 3], [4, 4]]`")),
        };
        return cells.iter().map(at).collect::<Result<_>>().map(Places::Cells);
    }
    match value.as_int() {
        Ok(n) => usize::try_from(n)
            .map(Places::Count)
            .map_err(|_| Error::input(format!("{n} defects")).hint("a whole number is how many there are")),
        Err(_) => real(value, "the fraction of cells with defects")
            .map(Places::Fraction)
            .map_err(|e| e.hint("0.01, how many there are, or an array of cells")),
    }
}

#[export_module(root = "crate::script::native")]
mod defect_functions {
    /// Puts a defect into the model, at many places: a vacancy with its reconstructed bonds, a substitutional atom with changed
    /// neighbours, a rotated bond. Gives how many there are.
    ///
    /// A defect is a map of what it changes: `remove` (sites that go), `onsite` (`[site, term]`: a number or Matrix added to
    /// what the site has) and `hop` (`[from, to, hopping]`: instead of what hoppings the model has over that bond, 0 to cut
    /// it; the conjugate is implied). A site is a sublattice of the defect's own cell, like `"A"`, or that of another beside it,
    /// `[[1, 0], "A"]`. Of an array of defects each place takes one, evenly at random: orientations, or signs of a moment.
    ///
    /// `places` is a number like 0.01, the probability of each cell, a whole number, how many there are in all, or an array of
    /// cells. A defect lies only where all sites that it names are there. Sites stay at their places, for velocities and
    /// fluxes. Defects act on the hoppings added before; those added later come on top. Changes on-site, diagonal in the
    /// orbitals, leave an operator matrix-free.
    ///
    /// Cells are taken in the order of their random numbers: cell `c` has `u` from Philox (seed; stream "defects", element `c`),
    /// so that a larger fraction has the defects of a smaller one and more. Each call draws numbers of its own, with the same
    /// seed too.
    ///
    /// # Options
    /// - `overlap` (true): whether defects of one call may share sites; else a place is left out where they would, and there are
    ///   fewer than the fraction says.
    /// - `seed` (int or string, the session's): of the random numbers.
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
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn defects(model: &mut ScriptModel, defect: Dynamic, places: Dynamic, o: Options) -> Fallible<INT> {
        let kinds = match defect.clone().try_cast::<Array>() {
            Some(all) => all.iter().map(|one| defect_of(one, &model.model)).collect::<Result<Vec<_>>>()?,
            None => vec![defect_of(&defect, &model.model)?],
        };
        let places = places_of(&places)?;
        let (overlap, seed) = (o.flag("overlap")?, o.seed()?);
        Ok(model.model.defects(&kinds, &places, overlap, seed, &session()?.task(true))? as INT)
    }
}
