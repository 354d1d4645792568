//! `Crystal` and the module `crystal`: periodic cells with ions, electrons and an empirical potential.

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, FnPtr, INT, Map};

use super::lattice::{ints, reals};
use super::values::{as_number, real, type_of};
use crate::error::{Error, Result};
use crate::montecarlo::{Crystal, CrystalPotential, Ewald, Ion, SimulationCell};
use crate::number::{C64, Matrix, Series};
use crate::script::callback::Callback;
use crate::script::declared::unknown_key;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// Registers the type, the module and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Crystal>("Crystal");
    rooms.room("crystal", exported_module!(crystal_module));
    rooms.register_global_module(exported_module!(crystal_functions).into());
}

/// What was given instead of counts: numbers as they are, else their kind.
pub(super) fn given(value: &Dynamic) -> String {
    if value.is_int() || value.is_array() { value.to_string() } else { type_of(value) }
}

/// How often a cell is repeated: a number, or one along each vector.
fn repeat_of(value: &Dynamic) -> Result<[usize; 3]> {
    let wrong = || {
        Error::input(format!("a crystal is repeated a whole number of times, not {}", given(value)))
            .hint("give 2, or [2, 2, 1] for each vector")
    };
    let numbers = match value.as_int() {
        Ok(n) => vec![n; 3],
        Err(_) => {
            ints(&value.clone().try_cast::<Array>().ok_or_else(wrong)?, "how often a crystal is repeated")?
        }
    };
    let numbers: Vec<usize> = numbers.iter().filter_map(|&n| usize::try_from(n).ok()).collect();
    numbers.try_into().map_err(|_| wrong())
}

/// A place or a vector of three numbers.
pub(super) fn vector_of(value: &Dynamic, what: &str) -> Result<[f64; 3]> {
    let numbers = match value.read_lock::<Series>() {
        Some(series) => series.as_real(what)?.to_vec(),
        None => reals(value, what)?,
    };
    let found = numbers.len();
    numbers.try_into().map_err(|_| {
        Error::input(format!("{what} has three numbers, not {found}")).hint("like [0.0, 0.0, 1.5]")
    })
}

/// A cell from its three vectors, as an array of arrays or the rows of a Matrix.
fn cell_of(value: &Dynamic) -> Result<SimulationCell> {
    let wrong = || {
        Error::input(format!("a cell is three vectors, not {}", type_of(value)))
            .hint("like [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]], in bohr")
    };
    let rows: Vec<[f64; 3]> = match value.read_lock::<Matrix>() {
        Some(m) => {
            let row = |i| -> Result<[f64; 3]> {
                let row = m.row(i)?;
                row.as_real("a vector of a cell")?.to_vec().try_into().map_err(|_| wrong())
            };
            (0..m.rows() as i64).map(row).collect::<Result<_>>()?
        }
        None => {
            let rows = value.clone().try_cast::<Array>().ok_or_else(wrong)?;
            rows.iter().map(|v| vector_of(v, "a vector of a cell")).collect::<Result<_>>()?
        }
    };
    SimulationCell::new(rows.try_into().map_err(|_| wrong())?)
}

/// An ion as scripts give it: `#{ species: "H", charge: 1.0, position: [0.0, 0.0, 0.0] }`.
fn ion_of(value: &Dynamic, number: usize) -> Result<Ion> {
    let map = value.clone().try_cast::<Map>().ok_or_else(|| {
        Error::input(format!("ion {number} is {}, not a map", type_of(value)))
            .hint("like #{ species: \"H\", charge: 1.0, position: [0.0, 0.0, 0.0] }")
    })?;
    const KNOWN: [&str; 3] = ["species", "charge", "position"];
    if let Some(key) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(unknown_key(key, KNOWN).context(format!("ion {number}")));
    }
    let get = |key: &str| {
        map.get(key).ok_or_else(|| {
            Error::input(format!("ion {number} has no `{key}`"))
                .hint("it is #{ species: \"H\", charge: 1.0, position: [0.0, 0.0, 0.0] }")
        })
    };
    let species = get("species")?.clone().into_string();
    let species = species.map_err(|t| {
        Error::input(format!("the species of ion {number} is a {t}")).hint("it is a text, like \"Si\"")
    })?;
    let charge = real(get("charge")?, "the charge of an ion")?;
    Ok(Ion { species, charge, position: vector_of(get("position")?, "the position of an ion")? })
}

#[export_module(root = "crate::script::native")]
mod crystal_module {
    /// Silicon, `n` primitive cells along each of the three vectors of the face-centred cubic lattice (or an array of
    /// three numbers), with the empirical pseudopotential of Cohen and Bergstresser, a = 5.43 angstrom. The origin lies
    /// midway between two ions. Lengths are in bohr, energies in hartree.
    ///
    /// # Example
    /// ```rhai
    /// let si = crystal::silicon(2);
    /// assert(si.electrons == 64, "two atoms of four electrons in each of eight cells");
    /// assert_close(si.volume, 2.0 * (5.43 / 0.529177210903) ** 3.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn silicon(n: Dynamic) -> Fallible<Crystal> {
        semiconductor("Si", n)
    }

    /// Germanium, as `crystal::silicon`, a = 5.66 angstrom.
    ///
    /// # Example
    /// ```rhai
    /// assert(crystal::germanium([1, 1, 2]).electrons == 16, "two cells");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn germanium(n: Dynamic) -> Fallible<Crystal> {
        semiconductor("Ge", n)
    }

    /// Grey tin, as `crystal::silicon`, a = 6.49 angstrom.
    ///
    /// # Example
    /// ```rhai
    /// assert(crystal::tin(1).ions == 2, "a primitive cell");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn tin(n: Dynamic) -> Fallible<Crystal> {
        semiconductor("Sn", n)
    }

    /// One of the semiconductors of diamond or zinc-blende structure that Cohen and Bergstresser fitted to optical
    /// spectra (1966): "Si", "Ge", "Sn", "GaP", "GaAs", "AlSb", "InP", "GaSb", "InAs", "InSb", "ZnS", "ZnSe", "ZnTe",
    /// "CdTe"; `n` primitive cells along each vector.
    ///
    /// # Example
    /// ```rhai
    /// let bands = orbitals::plane_wave_bands(crystal::semiconductor("GaAs", 1), #{ cutoff: 4.0, orbitals: 5 });
    /// let gap = (bands.energies[4] - bands.energies[3]) * 27.2114;
    /// assert_close(gap, 1.4, 0.2);                        // direct, in electronvolts
    /// ```
    #[rhai_fn(return_raw)]
    pub fn semiconductor(name: &str, n: Dynamic) -> Fallible<Crystal> {
        Ok(repeat_of(&n).and_then(|n| Crystal::semiconductor(name, n))?)
    }

    /// A cubic cell of the homogeneous electron gas with this many electrons at density parameter r_s.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(54, 2.0);
    /// assert_close(gas.rs, 2.0, 1e-12);
    /// assert_close(gas.madelung * gas.volume ** (1.0 / 3.0), -2.837297479481, 1e-10);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn electron_gas(electrons: INT, rs: Dynamic) -> Fallible<Crystal> {
        let count = usize::try_from(electrons).map_err(|_| {
            Error::input(format!("an electron gas of {electrons} electrons")).hint("their number is positive")
        });
        Ok(Crystal::electron_gas(count?, real(&rs, "r_s")?)?)
    }

    /// A crystal of your own: the three vectors of its primitive cell (bohr), an array of ions
    /// `#{ species, charge, position }`, and options. An empty array of ions makes an empty cell.
    ///
    /// # Options
    /// - `repeat` (int or array, 1): primitive cells along each vector, a number or three.
    /// - `electrons` (int >= 0, the ions' charges): electrons in a primitive cell.
    /// - `form_factor` (function): a function of species and |G| (1/bohr) that returns the Fourier coefficient of the
    ///   potential of one such ion, in hartree, normalised to the primitive cell. Without it electrons feel the bare
    ///   ions (`electrons`).
    /// - `reach` (0 <= float <= 1000, 4): the largest |G| at which form factors count; only with `form_factor`.
    ///
    /// # Example
    /// ```rhai
    /// let vectors = [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]];
    /// let c = crystal::custom(vectors, [#{ species: "X", charge: 2.0, position: [0.0, 0.0, 0.0] }],
    ///     #{ form_factor: |species, g| if g > 0.0 { -exp(-g * g) } else { 0.0 }, reach: 2.0 });
    /// assert(c.electrons == 2, "neutral");
    /// assert_close(c.potential([0.0, 0.0, 0.0]), -6.0 * exp(-((PI / 2.0) ** 2.0)), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn custom(ctx: NativeCallContext, vectors: Dynamic, ions: Array, o: Options) -> Fallible<Crystal> {
        let cell = cell_of(&vectors)?;
        let ions = ions.iter().enumerate().map(|(k, ion)| ion_of(ion, k)).collect::<Result<Vec<Ion>>>()?;
        let repeat = repeat_of(&o.value("repeat")?)?;
        let charge: f64 = ions.iter().map(|ion| ion.charge).sum();
        let electrons = o.maybe_count("electrons")?.unwrap_or(charge.max(0.0).round() as usize);
        let reach = o.float("reach")?;
        let callback = Callback::new(&ctx);
        let potential = match &o.function("form_factor") {
            None => Ok(CrystalPotential::zero(&cell)),
            Some(form) => potential_of(&callback, form, &cell, &ions, reach),
        };
        callback.finish(potential.and_then(|v| Crystal::new("crystal", cell, repeat, &ions, electrons, v)))
    }
}

/// `V_G = sum_ions f(species, |G|) exp(-i G . position)`.
fn potential_of(
    callback: &Callback<'_>,
    form: &FnPtr,
    cell: &SimulationCell,
    ions: &[Ion],
    reach: f64,
) -> Result<CrystalPotential> {
    CrystalPotential::from_fourier(cell, reach * reach, |g| {
        let length = (g[0] * g[0] + g[1] * g[1] + g[2] * g[2]).sqrt();
        let mut sum = C64::default();
        for ion in ions {
            let f = callback.call(form, (ion.species.clone(), length))?;
            let f = as_number(&f).ok_or_else(|| {
                Error::input(format!("the form factor of {} is {}, not a number", ion.species, type_of(&f)))
                    .hint("a function of the species and of |G|, in hartree")
            })?;
            let phase: f64 = (0..3).map(|d| g[d] * ion.position[d]).sum();
            sum += f.to_c64() * C64::cis(-phase);
        }
        Ok(sum)
    })
}

#[export_module(root = "crate::script::native")]
mod crystal_functions {
    /// Electrons in the cell.
    ///
    /// # Example
    /// ```rhai
    /// assert(crystal::silicon(1).electrons == 8, "two atoms");
    /// ```
    #[rhai_fn(global, get = "electrons", pure)]
    pub fn electrons(c: &mut Crystal) -> INT {
        c.electrons() as INT
    }

    /// Ions in the cell.
    ///
    /// # Example
    /// ```rhai
    /// assert(crystal::silicon(2).ions == 16, "eight primitive cells");
    /// ```
    #[rhai_fn(global, get = "ions", pure)]
    pub fn ions(c: &mut Crystal) -> INT {
        c.ions().len() as INT
    }

    /// Volume of the cell, bohr^3.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(crystal::electron_gas(3, 1.0).volume, 4.0 * PI, 1e-12);
    /// ```
    #[rhai_fn(global, get = "volume", pure)]
    pub fn volume(c: &mut Crystal) -> FLOAT {
        c.cell().volume()
    }

    /// The density parameter r_s of the electrons: the radius (bohr) of the sphere that holds one electron.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(crystal::silicon(1).rs, 2.0, 0.02);
    /// ```
    #[rhai_fn(global, get = "rs", pure)]
    pub fn rs(c: &mut Crystal) -> FLOAT {
        c.rs()
    }

    /// The three vectors of the cell, the rows of a Matrix, bohr.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(2, 1.0);
    /// assert_close(gas.cell.at(0, 0), gas.volume ** (1.0 / 3.0), 1e-12);
    /// ```
    #[rhai_fn(global, get = "cell", pure, return_raw)]
    pub fn cell(c: &mut Crystal) -> Fallible<Matrix> {
        let numbers: Vec<f64> = c.cell().vectors().iter().flatten().copied().collect();
        Ok(Matrix::new(3, 3, numbers)?)
    }

    /// The positions of the ions, the rows of a Matrix, bohr.
    ///
    /// # Example
    /// ```rhai
    /// let r = crystal::silicon(1).positions;
    /// assert_close(r.at(0, 0), 5.43 / 0.529177210903 / 8.0, 1e-12);
    /// ```
    #[rhai_fn(global, get = "positions", pure, return_raw)]
    pub fn positions(c: &mut Crystal) -> Fallible<Matrix> {
        let numbers: Vec<f64> = c.ions().iter().flat_map(|ion| ion.position).collect();
        Ok(Matrix::new(c.ions().len(), 3, numbers)?)
    }

    /// The charges of the ions.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(crystal::semiconductor("ZnS", 1).charges.sum(), 8.0, 1e-15);
    /// ```
    #[rhai_fn(global, get = "charges", pure)]
    pub fn charges(c: &mut Crystal) -> Series {
        Series::Real(c.ions().iter().map(|ion| ion.charge).collect())
    }

    /// The Ewald constant xi: the potential at a unit charge due to its periodic images and its neutralising
    /// background, in hartree.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(14, 1.0);
    /// assert_close(0.5 * gas.madelung, -0.3651483380, 1e-9);
    /// ```
    #[rhai_fn(global, get = "madelung", pure)]
    pub fn madelung(c: &mut Crystal) -> FLOAT {
        Ewald::new(c.cell()).madelung()
    }

    /// The Coulomb energy of the ions among themselves (with a neutralising background), by Ewald's sum, hartree.
    ///
    /// # Example
    /// ```rhai
    /// let salt = crystal::custom([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]],
    ///     [#{ species: "Na", charge: 1.0, position: [0.0, 0.0, 0.0] },
    ///      #{ species: "Cl", charge: -1.0, position: [1.0, 0.0, 0.0] }]);
    /// assert_close(salt.ion_energy, -1.747564594633, 1e-11);
    /// ```
    #[rhai_fn(global, get = "ion_energy", pure)]
    pub fn ion_energy(c: &mut Crystal) -> FLOAT {
        let charges: Vec<f64> = c.ions().iter().map(|ion| ion.charge).collect();
        let positions: Vec<[f64; 3]> = c.ions().iter().map(|ion| ion.position).collect();
        Ewald::new(c.cell()).energy(&charges, &positions)
    }

    /// The empirical potential on an electron at a point [x, y, z] (bohr), hartree.
    ///
    /// # Example
    /// ```rhai
    /// let si = crystal::silicon(1);
    /// assert(si.potential([0.0, 0.0, 0.0]) < 0.0, "electrons are drawn to the bonds");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn potential(c: &mut Crystal, point: Dynamic) -> Fallible<FLOAT> {
        let at = vector_of(&point, "a point")?;
        Ok(c.potential().values(&[at])[0])
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(c: &mut Crystal) -> String {
        let [x, y, z] = c.repeat();
        let ions = match c.ions().len() {
            0 => String::new(),
            n => format!(", {x} x {y} x {z} primitive cells, {n} ions"),
        };
        format!("Crystal {}{ions}, {} electrons, {:.1} bohr^3", c.name(), c.electrons(), c.cell().volume())
    }
}
