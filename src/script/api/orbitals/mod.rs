//! `Orbitals` and the module `orbitals`: one-particle functions for Slater determinants. How they are made is here,
//! what can be asked of them in `methods.rs`.

mod methods;

use std::path::Path;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FnPtr, Map};

use super::crystal::{given, vector_of};
use super::lattice::ints;
use super::model::single_precision;
use super::values::{as_number, real, to_series, type_of};
use crate::error::{Error, Result};
use crate::montecarlo::Crystal;
use crate::montecarlo::orbitals::{Fourier, Gaussians, OrbitalSet, Shell, SplineOrbitals, casino};
use crate::number::{Matrix, Series, memory};
use crate::output::files;
use crate::script::callback::Callback;
use crate::script::declared::unknown_key;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the type, the module and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<OrbitalSet>("Orbitals");
    let mut module = exported_module!(orbitals_module);
    module.combine(super::vmc::elementary_orbitals());
    rooms.room("orbitals", module);
    methods::register(rooms);
}

/// Whether a file holds orbitals: an archive of their coefficients, or the text of CASINO.
pub(super) fn is_file(path: &Path, head: &[u8]) -> bool {
    if is_archive(path) {
        return files::holds_orbitals(path);
    }
    casino::is_file(&String::from_utf8_lossy(head)) || path.to_string_lossy().ends_with("bwfn.data")
}

/// Whether a file is named as an archive.
fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npz"))
}

/// The orbitals in a file, as the options say.
pub(super) fn load(path: &Path, file: &str, o: &Options) -> Result<OrbitalSet> {
    let single = o.given("precision").map(|_| single_precision(o)).transpose()?;
    let k = o.maybe_count("k")?;
    let read = || -> Result<OrbitalSet> {
        let (layout, table, energies) = if is_archive(path) {
            if k.is_some() {
                return Err(Error::input("an archive of orbitals has one k point").hint("leave out `k`"));
            }
            files::load_orbitals(path, single)?
        } else {
            let bytes = memory::read(path).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => Error::file("there is no such file")
                    .hint("names of files are relative to the folder where the program was started"),
                _ => Error::of_io(&e),
            })?;
            let text = String::from_utf8(bytes).map_err(|_| {
                Error::file("it is no text").hint("archives end in `.npz`; `bwfn.data` is a text")
            })?;
            let blips = casino::read(&text, single.unwrap_or(false), k)?;
            (blips.layout, blips.table, Some(blips.energies))
        };
        Ok(OrbitalSet::splines(SplineOrbitals::new(&session()?.device(), layout, table)?, energies))
    };
    read().map_err(|e| {
        let e = e.context(format!("cannot read `{file}`"));
        if e.hint_text().is_some() { e } else { e.hint("the file may be cut short, or of another kind") }
    })
}

/// The option `twist`: three fractions of the reciprocal vectors.
fn twist_of(o: &Options) -> Result<[f64; 3]> {
    vector_of(&o.value("twist")?, "a twist")
}

/// Grid points along each vector, from a number or three.
fn grid_of(value: &Dynamic) -> Result<[usize; 3]> {
    let wrong = || {
        Error::input(format!("a grid is a whole number of points, or three, not {}", given(value)))
            .hint("like 24, or [24, 24, 32]; at most 4096 along each vector")
    };
    let numbers = match value.as_int() {
        Ok(n) => vec![n; 3],
        Err(_) => ints(&value.clone().try_cast::<Array>().ok_or_else(wrong)?, "a grid")?,
    };
    let fits = |n: &i64| usize::try_from(*n).ok().filter(|n| (1..=4096).contains(n));
    let sizes: Vec<usize> = numbers.iter().filter_map(fits).collect();
    sizes.try_into().map_err(|_| wrong())
}

/// A shell as scripts give it.
fn shell_of(value: &Dynamic, number: usize) -> Result<Shell> {
    let map = value.clone().try_cast::<Map>().ok_or_else(|| {
        Error::input(format!("shell {number} is {}, not a map", type_of(value)))
            .hint("like #{ center: [0.0, 0.0, 0.0], shell: \"s\", exponents: [1.2], coefficients: [1.0] }")
    })?;
    const WHOLE: [&str; 4] = ["center", "shell", "exponents", "coefficients"];
    const FITTED: [&str; 3] = ["center", "sto", "zeta"];
    let known: &[&str] = if map.contains_key("sto") { &FITTED } else { &WHOLE };
    if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(unknown_key(key, known.iter().copied()).context(format!("shell {number}")));
    }
    let get = |key: &str| {
        map.get(key).ok_or_else(|| {
            Error::input(format!("shell {number} has no `{key}`"))
                .hint(format!("it has {}", known.join(", ")))
        })
    };
    let centre = vector_of(get("center")?, "the center of a shell")?;
    if let Some(n) = map.get("sto") {
        let n = n.as_int().map_err(|t| {
            Error::input(format!("`sto` of shell {number} is a {t}")).hint("a number of Gaussians, 2 to 6")
        })?;
        return Shell::sto(centre, real(get("zeta")?, "`zeta`")?, usize::try_from(n).unwrap_or(0));
    }
    let name = get("shell")?.clone().into_string().unwrap_or_default();
    let momentum = ["s", "p", "d"].iter().position(|s| *s == name);
    let momentum = momentum.ok_or_else(|| {
        Error::input(format!("shell {number} is of kind `{name}`")).hint("there are \"s\", \"p\" and \"d\"")
    })?;
    let numbers = |key: &str| -> Result<Vec<f64>> { Ok(to_series(get(key)?)?.as_real(key)?.to_vec()) };
    Ok(Shell { centre, momentum, exponents: numbers("exponents")?, coefficients: numbers("coefficients")? })
}

/// Rows of numbers, of a Matrix or an array of arrays.
fn rows_of(value: &Dynamic) -> Result<Vec<Vec<f64>>> {
    if let Some(m) = value.read_lock::<Matrix>() {
        return (0..m.rows() as i64).map(|i| Ok(m.row(i)?.as_real("a combination")?.to_vec())).collect();
    }
    let rows = value.clone().try_cast::<Array>().ok_or_else(|| {
        Error::input(format!("combinations are given as {}", type_of(value)))
            .hint("a Matrix, or an array of rows")
    })?;
    rows.iter().map(|row| Ok(to_series(row)?.as_real("a combination")?.to_vec())).collect()
}

#[export_module(root = "crate::script::native")]
mod orbitals_module {
    /// Plane waves of a cell in order of energy: the constant, then cosine and sine for every pair G, -G, with mean
    /// square one. With a twist k they are exp(i (G + k) . r).
    ///
    /// # Options
    /// - `count` (int >= 1, half the electrons): number of orbitals.
    /// - `twist` (array or Series, [0, 0, 0]): k, as fractions of the reciprocal vectors.
    ///
    /// # Example
    /// ```rhai
    /// let waves = orbitals::plane_waves(crystal::electron_gas(14, 1.0));
    /// assert_close(2.0 * waves.energies.sum() / 14.0, 1.1209128678, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plane_waves(crystal: Crystal, o: Options) -> Fallible<OrbitalSet> {
        let count = o.maybe_count("count")?.unwrap_or(crystal.electrons().div_ceil(2));
        let twist = twist_of(&o)?;
        Ok(Fourier::plane_waves(crystal.cell(), count, twist).map(OrbitalSet::waves)?)
    }

    /// The one-electron states in the empirical potential of a crystal. The Hamiltonian -1/2 Laplacian + V is
    /// diagonalised in the plane waves below a cutoff, at every k of the primitive cell that folds to the origin of the
    /// crystal's zone. The states are in order of energy, with mean square one. They are real, because states at k and
    /// -k are combined; with a twist they are complex.
    ///
    /// # Options
    /// - `cutoff` (float > 0, 4.5): the largest kinetic energy |k + G|^2/2 of a wave, hartree.
    /// - `orbitals` (int >= 1, half the electrons): number of orbitals.
    /// - `twist` (array or Series, [0, 0, 0]): fractions of the reciprocal vectors of the crystal's cell.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let bands = orbitals::plane_wave_bands(crystal::silicon(1), #{ cutoff: 4.5, orbitals: 8 });
    /// assert_close(bands.energies[1], bands.energies[3], 1e-9);       // the top of the valence band is threefold
    /// assert_close((bands.energies[4] - bands.energies[3]) * 27.2114, 3.4, 0.2);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plane_wave_bands(crystal: Crystal, o: Options) -> Fallible<OrbitalSet> {
        let count = o.maybe_count("orbitals")?.unwrap_or(crystal.electrons().div_ceil(2).max(1));
        let (cutoff, twist) = (o.float("cutoff")?, twist_of(&o)?);
        Ok(Fourier::bands(&crystal, cutoff, count, twist, &o.task()?).map(OrbitalSet::waves)?)
    }

    /// Real orbitals fitted to a function of your own. `f(x, y, z)` is called at every point of a grid in the crystal's
    /// cell (a number of points along each vector, or three numbers). It returns a number, or an array with one number
    /// per orbital. The splines have exactly these values at the grid points.
    ///
    /// # Options
    /// - `precision` ("double" or "single"): precision of the numbers.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let box = crystal::custom([[6.0, 0.0, 0.0], [0.0, 6.0, 0.0], [0.0, 0.0, 6.0]], []);
    /// let k = 2.0 * PI / 6.0;
    /// let o = orbitals::fit(box, 12, |x, y, z| [1.0, cos(k * x)], #{ progress: false });
    /// assert(o.count == 2, "two functions");
    /// assert_close(o.values([1.0, 0.2, 0.7])[1], cos(k), 2e-3);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fit(
        ctx: NativeCallContext,
        crystal: Crystal,
        grid: Dynamic,
        f: FnPtr,
        o: Options,
    ) -> Fallible<OrbitalSet> {
        let (single, task) = (single_precision(&o)?, o.task()?);
        let grid = grid_of(&grid)?;
        let device = session()?.device();
        let callback = Callback::new(&ctx);
        let sample = || -> Result<Vec<Vec<f64>>> {
            let [nx, ny, nz] = grid;
            let steps = task.start("sampling", nx * ny);
            let mut samples: Vec<Vec<f64>> = Vec::new();
            for k in 0..nx * ny * nz {
                let at = [k / (ny * nz), k / nz % ny, k % nz];
                let r = crystal.cell().cartesian(std::array::from_fn(|a| at[a] as f64 / grid[a] as f64));
                let value = callback.call(&f, (r[0], r[1], r[2]))?;
                let numbers = match value.read_lock::<Array>() {
                    Some(array) => {
                        array.iter().map(|x| real(x, "an orbital")).collect::<Result<Vec<f64>>>()?
                    }
                    None if as_number(&value).is_some() => vec![real(&value, "an orbital")?],
                    None => match value.read_lock::<Series>() {
                        Some(series) => series.as_real("orbitals")?.to_vec(),
                        None => {
                            return Err(Error::input(format!("the function gives {}", type_of(&value)))
                                .hint("a number, or an array of them, one per orbital"));
                        }
                    },
                };
                if k == 0 {
                    samples = vec![Vec::with_capacity(nx * ny * nz); numbers.len()];
                }
                if numbers.len() != samples.len() {
                    return Err(Error::input(format!(
                        "the function gives {} numbers at one point and {} at another",
                        samples.len(),
                        numbers.len()
                    ))
                    .hint("one number per orbital, everywhere"));
                }
                for (list, x) in samples.iter_mut().zip(numbers) {
                    list.push(x);
                }
                if k % nz == 0 {
                    steps.advance(k / nz)?;
                }
            }
            Ok(samples)
        };
        let fitted = sample()
            .and_then(|samples| SplineOrbitals::from_samples(&device, crystal.cell(), grid, samples, single));
        callback.finish(fitted.map(|splines| OrbitalSet::splines(splines, None)))
    }

    /// Contracted Gaussian orbitals in open space, for atoms and small molecules. Each shell is a map
    /// `#{ center: [x, y, z], shell: "s", exponents: [..], coefficients: [..] }` with "s", "p" (x, y, z) or "d" (xx,
    /// xy, xz, yy, yz, zz); primitives are normalised. A 1s Slater function as 2 to 6 Gaussians (STO-nG) is
    /// `#{ center: [x, y, z], sto: 3, zeta: 1.24 }`. Lengths are in bohr.
    ///
    /// # Options
    /// - `combinations` (any): a Matrix or an array with one row per orbital and one number per function; without it
    ///   every function is an orbital.
    ///
    /// # Example
    /// ```rhai
    /// let shells = [-0.7, 0.7].map(|z| #{ center: [0.0, 0.0, z], sto: 3, zeta: 1.24 });
    /// let bonding = orbitals::gaussians(shells, #{ combinations: [[1.0, 1.0]] });
    /// assert_close(bonding.values([0.0, 0.0, 0.3])[0], bonding.values([0.0, 0.0, -0.3])[0], 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn gaussians(shells: Array, o: Options) -> Fallible<OrbitalSet> {
        let shells = shells.iter().enumerate().map(|(k, shell)| shell_of(shell, k));
        let own = Gaussians::new(&shells.collect::<Result<Vec<Shell>>>()?)?;
        let built = match o.given("combinations") {
            None => Ok(own),
            Some(rows) => own.combined(&rows_of(&rows)?),
        }?;
        Ok(OrbitalSet::other(Arc::new(built)))
    }
}
