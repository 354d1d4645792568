//! Hoppings of atomic orbitals by two-centre integrals, spin-orbit coupling, and structures from files of atoms.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FnPtr, Map};

use super::lattice::reals;
use super::matrix::record;
use super::values::{real, type_of};
use crate::error::{Error, Result};
use crate::lattice::two_centre::{self, BONDS, DistanceLaw, Orbital, SHELLS};
use crate::lattice::{AtomOptions, Bond, HopAlong, Model, OrbitalBlock, Species, read_atoms};
use crate::number::{Matrix, Series};
use crate::script::callback::Callback;
use crate::script::declared::unknown_key;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Orbitals and the integrals between their shells.
#[derive(Clone)]
pub(super) struct SlaterKoster {
    orbitals: Rc<Vec<Orbital>>,
    names: Rc<Vec<String>>,
    integrals: Rc<Vec<(IntegralKey, Integral)>>,
    spin: bool,
}

/// The shells of an integral, and the bond between them.
type IntegralKey = (usize, usize, usize);

/// A two-centre integral.
enum Integral {
    Law(DistanceLaw),
    /// A function of the distance.
    Of(FnPtr),
}

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<SlaterKoster>("SlaterKoster");
    rooms.room("lattice", exported_module!(two_centre_functions));
    rooms.room("lattice", exported_module!(atom_functions));
}

impl SlaterKoster {
    /// Adds hoppings over bonds of a model.
    pub fn add(&self, ctx: &NativeCallContext, model: &mut Model, bonds: Vec<Bond>) -> Fallible<()> {
        let task = session()?.task(true);
        let laws: Option<Vec<_>> = self.integrals.iter().map(|(key, integral)| integral.law(*key)).collect();
        if let Some(laws) = laws {
            let (orbitals, spin) = (self.orbitals.as_slice(), self.spin);
            let of = |law: &DistanceLaw, distance: f64| Ok(law.at(distance));
            let block = |vector: &[f64]| block(orbitals, spin, &laws, vector, of);
            return Ok(model.hop_along(bonds, HopAlong::Formula(&block), &task)?);
        }
        let calls = Callback::new(ctx);
        let added = model.hop_along(bonds, HopAlong::Script(&mut |vector| self.block(vector, &calls)), &task);
        calls.finish(added)
    }

    /// The hopping from the orbitals of an atom to those of one at `vector` from it.
    fn block(&self, vector: &[f64], calls: &Callback<'_>) -> Result<OrbitalBlock> {
        block(&self.orbitals, self.spin, &self.integrals, vector, |integral, distance| match integral {
            Integral::Law(law) => Ok(law.at(distance)),
            Integral::Of(f) => {
                let value = real(&calls.call(f, (distance,))?, "a two-centre integral")
                    .map_err(|e| e.hint("its function takes the distance and gives a number"))?;
                match value.is_finite() {
                    true => Ok(value),
                    false => Err(Error::input(format!("a two-centre integral of {value} at {distance}"))
                        .hint("look for a division by zero")),
                }
            }
        })
    }
}

impl Integral {
    /// An integral between shells that no function of a script gives.
    fn law(&self, key: IntegralKey) -> Option<(IntegralKey, DistanceLaw)> {
        match self {
            Integral::Law(law) => Some((key, *law)),
            Integral::Of(_) => None,
        }
    }
}

/// The hopping between the orbitals of two atoms, the second at `along` from the first, by the values of the integrals.
fn block<I>(
    orbitals: &[Orbital],
    spin: bool,
    integrals: &[(IntegralKey, I)],
    along: &[f64],
    value: impl Fn(&I, f64) -> Result<f64>,
) -> Result<OrbitalBlock> {
    if along.len() > 3 {
        return Err(Error::input(format!("orbitals in {} dimensions", along.len()))
            .hint("places have one, two or three coordinates"));
    }
    let mut vector = [0.0; 3];
    vector.iter_mut().zip(along).for_each(|(x, along)| *x = *along);
    let distance = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut integral = |left: usize, reached: usize, bond: usize| {
        let of = |key| integrals.iter().find(|(known, _)| *known == key);
        let found = of((left, reached, bond)).or_else(|| of((reached, left, bond)));
        found.map_or(Ok(0.0), |(_, integral)| value(integral, distance))
    };
    let block = two_centre::hopping(orbitals, vector, &mut integral)?;
    if !spin {
        return Ok(block);
    }
    Ok(OrbitalBlock::from_fn(2 * block.orbitals(), |i, j| {
        if i % 2 == j % 2 { block.get(i / 2, j / 2) } else { 0.0.into() }
    }))
}

/// Orbitals and their names.
fn orbitals_of(names: &Array) -> Result<(Vec<Orbital>, Vec<String>)> {
    let mut all: (Vec<Orbital>, Vec<String>) = Default::default();
    for value in names {
        let name = value.clone().into_string().map_err(|_| {
            Error::input(format!("an orbital is named by a text, not by {}", type_of(value)))
                .hint("write them like `[\"s\", \"px\", \"py\", \"pz\"]`")
        })?;
        let orbital = Orbital::named(&name)?;
        if all.0.contains(&orbital) {
            return Err(Error::input(format!("the orbital `{name}` is named twice"))
                .hint("a model's row belongs to one orbital: leave one out"));
        }
        all.0.push(orbital);
        all.1.push(name);
    }
    if all.0.is_empty() {
        return Err(
            Error::input("a set of no orbitals").hint("write them like `[\"s\", \"px\", \"py\", \"pz\"]`")
        );
    }
    Ok(all)
}

/// All integrals by their names: of two shells and the bond between them.
fn keys() -> Vec<(String, IntegralKey)> {
    let mut all = Vec::new();
    for (a, one) in SHELLS.iter().enumerate() {
        for (b, other) in SHELLS.iter().enumerate() {
            let most = a.saturating_sub(1).min(b.saturating_sub(1));
            all.extend((0..=most).map(|bond| (format!("{one}{other}_{}", BONDS[bond]), (a, b, bond))));
        }
    }
    all
}

fn integral_of(key: &str, value: &Dynamic) -> Result<Integral> {
    if let Some(f) = value.clone().try_cast::<FnPtr>() {
        return Ok(Integral::Of(f));
    }
    let finite = |x: f64| {
        let wrong = || Error::input(format!("the integral `{key}` is {x}")).hint("it is a finite number");
        if x.is_finite() { Ok(x) } else { Err(wrong()) }
    };
    if value.is_array() {
        let numbers = reals(value, &format!("the integral `{key}`"))?;
        let [v, at, length] = numbers[..] else {
            return Err(Error::input(format!("the integral `{key}` is given by {} numbers", numbers.len()))
                .hint("`[V, distance, length]` is V * exp(-(r - distance)/length)"));
        };
        if length <= 0.0 {
            return Err(Error::input(format!("the integral `{key}` decays over a length of {length}"))
                .hint("`[V, distance, length]` is V * exp(-(r - distance)/length)"));
        }
        return Ok(Integral::Law(DistanceLaw::Decay {
            value: finite(v)?,
            at: finite(at)?,
            length: finite(length)?,
        }));
    }
    let number = real(value, &format!("the integral `{key}`"));
    let number = number.map_err(|e| e.hint("or `[V, distance, length]`, or a function of the distance"))?;
    Ok(Integral::Law(DistanceLaw::Number(finite(number)?)))
}

/// The strength of a spin-orbit coupling.
fn strength_of(value: &Dynamic) -> Result<f64> {
    let hint = "it is a finite number, or a map of such: `#{ p: 0.1, d: 0.02 }`";
    let x = real(value, "the strength of the spin-orbit coupling").map_err(|e| e.hint(hint))?;
    if x.is_finite() { Ok(x) } else { Err(Error::input(format!("a spin-orbit coupling of {x}")).hint(hint)) }
}

/// A block as scripts have it.
fn matrix_of(block: &OrbitalBlock) -> Result<Matrix> {
    let n = block.orbitals();
    let entries = if block.is_real() {
        Series::Real(block.entries().iter().map(|z| z.re).collect())
    } else {
        Series::Complex(block.entries().to_vec())
    };
    Matrix::new(n, n, entries)
}

#[export_module(root = "crate::script::native")]
mod two_centre_functions {
    /// Hoppings between atomic orbitals by two-centre integrals (Slater and Koster, Phys. Rev. 94, 1498 (1954), Table
    /// I). The result can be used as a hopping: `m.hop_within(cutoff, sk)`, `m.nearest(sk)`, `m.hop(step, sk)`. For
    /// functions of two positions, `sk.hopping(a, b)` is the Matrix from the atom at `a` to the atom at `b`.
    ///
    /// The orbitals are "s", "s*" (an excited one), "px", "py", "pz", "dxy", "dyz", "dzx", "dx2-y2", "dz2", in the
    /// order of the model's. The integrals are named by shells and bond: `ss_sigma`, `sp_sigma`, `pp_sigma`, `pp_pi`,
    /// `sd_sigma`, `pd_sigma`, `pd_pi`, `dd_sigma`, `dd_pi`, `dd_delta`, and in quotes `"s*p_sigma"`; integrals that
    /// are left out are zero. Each is a number, `[V, distance, length]` for V exp(-(r - distance)/length), or a
    /// function of the distance `r`. Between unlike atoms `sp_sigma` has the s orbital on the first atom of the
    /// hopping, and `ps_sigma` has it on the second; without `ps_sigma` both are equal.
    ///
    /// # Options
    /// - `spin` (false): every orbital with spin up and spin down, in this order, as in `lattice::spin_orbit`.
    ///
    /// # Example
    /// ```rhai
    /// // silicon: s and p orbitals, nearest neighbours (Chadi and Cohen, phys. stat. sol. (b) 68, 405 (1975))
    /// let sk = lattice::slater_koster(["s", "px", "py", "pz"],
    ///     #{ ss_sigma: -2.0325, sp_sigma: 2.5462, pp_sigma: 4.5475, pp_pi: -1.0850 });
    /// let si = model(lattice::diamond(1, 1, 1), 4);
    /// si.nearest(sk);
    /// si.onsite(diagonal(series([-5.2, 2.0, 2.0, 2.0])));
    /// let e = si.bloch([0.0, 0.0, 0.0]).eigh().values;
    /// assert_close(e[0], -5.2 - 4.0 * 2.0325, 1e-12);
    /// assert_close(e[3], 2.0 - 4.0 / 3.0 * (4.5475 - 2.0 * 1.0850), 1e-12);
    /// // bonds of any length, as between the layers of twisted graphene
    /// let pi = |r| -2.7 * exp(-(r - 1.42) / 0.4525);
    /// let pz = lattice::slater_koster(["pz"], #{ pp_sigma: [0.48, 3.35, 0.4525], pp_pi: pi });
    /// assert_close(pz.hopping([0.0, 0.0, 0.0], [0.0, 0.0, 3.35]).at(0, 0), 0.48, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn slater_koster(orbitals: Array, integrals: Map, o: Options) -> Fallible<SlaterKoster> {
        let (orbitals, names) = orbitals_of(&orbitals)?;
        let known = keys();
        let mut table = Vec::new();
        for (key, value) in &integrals {
            let Some((_, which)) = known.iter().find(|(name, _)| name == key.as_str()) else {
                let names = known.iter().map(|(name, _)| name.as_str());
                return Err(unknown_key(key, names).context("two-centre integrals").into());
            };
            for shell in [which.0, which.1] {
                if !orbitals.iter().any(|orbital| orbital.shell == shell) {
                    let missing =
                        Error::input(format!("the integral `{key}`, and no {} orbital", SHELLS[shell]));
                    return Err(missing.hint("leave it out, or name the orbitals").into());
                }
            }
            table.push((*which, integral_of(key, value)?));
        }
        let spin = o.flag("spin")?;
        Ok(SlaterKoster { orbitals: orbitals.into(), names: names.into(), integrals: table.into(), spin })
    }

    /// The hopping from the orbitals of an atom at `a` to those of one at `b`, a Matrix with a row for each orbital at
    /// `b` and a column for each orbital at `a`.
    ///
    /// # Example
    /// ```rhai
    /// let sk = lattice::slater_koster(["s", "px"], #{ sp_sigma: 1.5 });
    /// let t = sk.hopping([0.0], [2.0]);
    /// assert(t.at(1, 0) == 1.5 && t.at(0, 1) == -1.5, "from s to px along x, and back");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn hopping(ctx: NativeCallContext, sk: &mut SlaterKoster, a: Array, b: Array) -> Fallible<Matrix> {
        let (a, b) = (reals(&a.into(), "a place")?, reals(&b.into(), "a place")?);
        if a.len() != b.len() {
            return Err(Error::input(format!("places of {} and of {} coordinates", a.len(), b.len()))
                .hint("both have one, two or three")
                .into());
        }
        let vector: Vec<f64> = b.iter().zip(&a).map(|(b, a)| b - a).collect();
        let calls = Callback::new(&ctx);
        let block = sk.block(&vector, &calls).and_then(|block| matrix_of(&block));
        calls.finish(block)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn two_centre_to_string(sk: &mut SlaterKoster) -> String {
        let spin = if sk.spin { ", each with both spins" } else { "" };
        format!("SlaterKoster of {}: {} integrals{spin}", sk.names.join(", "), sk.integrals.len())
    }

    /// The spin-orbit coupling lambda L.S (hbar = 1) of atomic orbitals, a Matrix for `m.onsite`: every orbital with
    /// spin up and spin down. `strength` is lambda of the p and d shells, or a map of both, `#{ p: 0.1, d: 0.02 }`.
    /// Levels of a whole shell are at lambda l/2 and -lambda (l + 1)/2.
    ///
    /// # Example
    /// ```rhai
    /// let e = lattice::spin_orbit(["px", "py", "pz"], 0.3).eigh().values;
    /// assert_close(e[5] - e[0], 1.5 * 0.3, 1e-14);                 // four levels above two
    /// ```
    #[rhai_fn(return_raw)]
    pub fn spin_orbit(orbitals: Array, strength: Dynamic) -> Fallible<Matrix> {
        let (orbitals, _) = orbitals_of(&orbitals)?;
        let mut shells = [0.0; 4];
        match strength.clone().try_cast::<Map>() {
            None => {
                let lambda = strength_of(&strength)?;
                (shells[2], shells[3]) = (lambda, lambda);
            }
            Some(map) => {
                for (key, value) in &map {
                    let shell = match key.as_str() {
                        "p" => 2,
                        "d" => 3,
                        _ => return Err(unknown_key(key, ["p", "d"]).context("spin-orbit coupling").into()),
                    };
                    shells[shell] = strength_of(value)?;
                }
            }
        }
        Ok(matrix_of(&two_centre::spin_orbit(&orbitals, &|shell| shells[shell]))?)
    }
}

#[export_module(root = "crate::script::native")]
mod atom_functions {
    /// The atoms in a file of molecular dynamics: a data file of LAMMPS (styles atomic, charge, bond, angle, molecular
    /// and full, also tilted boxes), a LAMMPS dump, or an XYZ file, plain or extended (`Lattice=".."`). The result is a
    /// map. `lattice` has one cell, the box, with a site for each atom (`m.hop_within` makes bonds by distance).
    /// `types` holds the atom type or symbol of each site, `ids` the numbers of the atoms, and `charges` is a Series,
    /// or () if the file has none. Lengths are in units of the file. Sites are in the order of the atoms' numbers. The
    /// box is periodic in all directions unless a dump or an XYZ file says otherwise; `.boundary(..)` changes that.
    ///
    /// # Options
    /// - `style` (string, as the line `Atoms # style` says, or as the number of columns tells): atom style of a data
    ///   file.
    /// - `frame` (-1): the snapshot, counted from 0; negative numbers count from the end.
    ///
    /// # Example
    /// ```rhai
    /// write_text("two.data", "graphene\n\n2 atoms\n1 atom types\n\n0 2.46 xlo xhi\n0 2.1304 ylo yhi\n0 20 zlo zhi\n" +
    ///     "1.23 0 0 xy xz yz\n\nAtoms # atomic\n\n1 1 0.0 0.0 10.0\n2 1 1.23 0.7101 10.0\n");
    /// let atoms = lattice::atoms("two.data");
    /// let m = model(atoms.lattice.boundary(["periodic", "periodic", "open"]));
    /// assert(m.hop_within(1.5, -2.7) == 3, "three bonds");
    /// assert_close(m.bloch([1.0 / 3.0, 2.0 / 3.0]).eigh().values.norm(), 0.0, 1e-12);       // the Dirac point
    /// ```
    #[rhai_fn(return_raw)]
    pub fn atoms(file: &str, o: Options) -> Fallible<Map> {
        let frame = o.value("frame")?.as_int().unwrap_or(-1);
        let options = AtomOptions { style: o.maybe_text("style")?, frame };
        let atoms = read_atoms(&session()?.input_path(file)?, &options)?;
        let kind = |kind: &Species| match kind {
            Species::Number(n) => Dynamic::from_int(*n),
            Species::Symbol(text) => text.into(),
        };
        let charges = atoms.charges.map_or(Dynamic::UNIT, |all| Dynamic::from(Series::Real(all)));
        Ok(record([
            ("lattice", Dynamic::from(atoms.lattice)),
            ("types", atoms.kinds.iter().map(kind).collect::<Array>().into()),
            ("ids", atoms.ids.iter().map(|id| Dynamic::from_int(*id)).collect::<Array>().into()),
            ("charges", charges),
        ]))
    }
}
