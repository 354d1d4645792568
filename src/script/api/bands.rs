//! Bands: Bloch Hamiltonians of models, bands along paths, sums over the Brillouin zone, topology.

use rhai::plugin::*;
use rhai::{Array, Dynamic, FnPtr, INT, Map};

use super::lattice::{ints, momentum, sublattice_of};
use super::model::ScriptModel;
use super::sparse::indices;
use super::values::{as_number, numbered, to_dynamic, type_of};
use crate::error::{Error, Result};
use crate::lattice::Bloch;
use crate::method::{self, BandOptions, DensityOptions, MomentumGrid, Plane, PositionElements};
use crate::number::{Arithmetic, Matrix, Number, Series, Table};
use crate::script::callback::{Callback, floats};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};
use crate::task;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("bloch", exported_module!(band_functions));
    rooms.room("internal", exported_module!(grids));
}

pub(super) fn bloch(model: &ScriptModel) -> Result<Bloch> {
    if model.is_strained() {
        return Err(Error::input("momenta of a strained model, whose cell is another").hint(
            "give the strained vectors and sites to `lattice::custom`, and the hoppings their new values",
        ));
    }
    Bloch::new(&model.model)
}

/// The option `positions`: models with the matrix elements of each Cartesian coordinate.
pub(super) fn positions(o: &Options, of: &Bloch) -> Result<Option<PositionElements>> {
    const HINT: &str =
        "write it like `positions: [0, 1, 2].map(|axis| lattice::wannier90_position(file, axis))`";
    let Some(models) = o.maybe::<Array>("positions") else { return Ok(None) };
    let one = |value: Dynamic| -> Result<Bloch> {
        let model = value.try_cast::<ScriptModel>();
        bloch(&model.ok_or_else(|| Error::input("option `positions` takes models").hint(HINT))?)
    };
    let axes = models.into_iter().map(one).collect::<Result<_>>()?;
    // The layer below does not know where such models come from.
    PositionElements::new(axes, of).map(Some).map_err(|e| e.hint(HINT))
}

/// The corners of a path: pairs of a name and a momentum.
fn pieces(o: &Options) -> Result<Vec<Vec<(String, Vec<f64>)>>> {
    let wrong = || {
        Error::input("option `path` is no path of named corners")
            .hint("write it like `path: [[\"G\", [0.0, 0.0]], [\"X\", [0.5, 0.0]]]`")
    };
    let path: Array = o.maybe("path").ok_or_else(wrong)?;
    let corner = |value: Dynamic| -> Result<(String, Vec<f64>)> {
        let pair = value.try_cast::<Array>().ok_or_else(wrong)?;
        let [name, k] = &pair[..] else { return Err(wrong()) };
        Ok((name.clone().into_string().map_err(|_| wrong())?, momentum(k).map_err(|_| wrong())?))
    };
    let end = |value: &Dynamic| value.read_lock::<ImmutableString>().is_some_and(|text| *text == "|");
    path.split(end).map(|piece| piece.iter().cloned().map(corner).collect()).collect()
}

/// The option `project`: for each name, rows of the cell, or a sublattice with all its orbitals.
fn groups(o: &Options, bloch: &Bloch) -> Result<Vec<(String, Vec<usize>)>> {
    let Some(map) = o.maybe::<Map>("project") else { return Ok(Vec::new()) };
    let lattice = bloch.cell().lattice();
    let orbitals = bloch.cell().orbitals();
    map.into_iter()
        .map(|(name, value)| {
            let rows = match value.read_lock::<Array>() {
                Some(rows) => {
                    let row = |&r: &i64| numbered(r, &format!("`{name}`: row"));
                    ints(&rows, "a group of rows")?.iter().map(row).collect::<Result<Vec<usize>>>()?
                }
                None => {
                    let s = sublattice_of(lattice, &value)?;
                    let mut rows = Vec::new();
                    for site in 0..lattice.sites() {
                        if lattice.locate(site)?.1 == s {
                            rows.extend(site * orbitals..(site + 1) * orbitals);
                        }
                    }
                    rows
                }
            };
            Ok((name.to_string(), rows))
        })
        .collect()
}

/// Numbers of momenta in each of `d` directions, from one for all or an array.
pub(super) fn counts(grid: &Dynamic, d: usize) -> Result<Vec<usize>> {
    let all = match grid.as_int() {
        Ok(n) => vec![n; d],
        Err(_) => ints(&grid.clone().try_cast::<Array>().unwrap_or_default(), "a grid")?,
    };
    all.into_iter().map(|n| numbered(n, "a number of momenta")).collect()
}

/// The options `plane` and `at`.
fn plane(o: &Options, bloch: &Bloch) -> Result<Plane> {
    let directions = o.maybe_counts("plane")?.unwrap_or([0, 1]);
    Ok(Plane { directions, at: others(o, bloch.dimension().saturating_sub(2))? })
}

/// The option `at`: momenta along the other directions, 0 by default.
fn others(o: &Options, count: usize) -> Result<Vec<f64>> {
    match o.given("at") {
        None => Ok(vec![0.0; count]),
        Some(value) => momentum(&value),
    }
}

/// The options `filled` or `bands`: numbers of bands, of which there are `rows`, counted from 0 here and from 1 in
/// scripts.
fn bands_of(o: &Options, rows: usize) -> Result<Vec<usize>> {
    if let Some(filled) = o.maybe_count("filled")? {
        if filled > rows {
            return Err(Error::input(format!("{filled} filled bands of a model that has {rows}"))
                .hint("`filled` counts the lowest bands, those below a gap"));
        }
        return Ok((0..filled).collect());
    }
    let given = o.given("bands").ok_or_else(|| {
        Error::input("a Berry phase of no bands")
            .hint("give `filled` for the lowest ones, or `bands`, like `bands: [2]`")
    })?;
    let zero = || {
        Error::input(format!("{given} among numbers of bands"))
            .hint("they are counted from 1, the lowest, as in `band1`")
    };
    let mut numbers = match given.as_int() {
        Ok(one) => vec![numbered(one, "band")?],
        Err(_) => indices(given.clone(), "band")?,
    };
    numbers.sort_unstable();
    numbers.iter().map(|n| n.checked_sub(1).ok_or_else(zero)).collect()
}

#[export_module(root = "crate::script::native")]
mod band_functions {
    /// The Bloch Hamiltonian at a momentum: a Hermitian Matrix of one cell,
    /// `H(k) = sum over cells R of <0|H|R> exp(2 pi i k.R)`. `k` is in units of the reciprocal vectors, one number for
    /// every periodic direction; open directions belong to the cell. Phases of boundaries have no part in it. Where
    /// terms differ from cell to cell (disorder, flux, removed sites), the whole sample is the cell.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(10));
    /// m.nearest(-1.0);
    /// assert_close(m.bloch(0.0).eigh().values[0], -2.0, 1e-14);
    /// assert_close(m.bloch([0.25]).eigh().values[0], 0.0, 1e-14);
    /// ```
    #[rhai_fn(global, name = "bloch", pure, return_raw)]
    pub fn bloch_at(m: &mut ScriptModel, k: Dynamic) -> Fallible<Matrix> {
        Ok(bloch(m)?.hamiltonian(&momentum(&k)?)?)
    }

    /// The derivative of the Bloch Hamiltonian along a Cartesian axis (hbar = 1, lengths in lattice constants): its
    /// elements between eigenvectors of `bloch(k)` are velocities.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(10));
    /// m.nearest(-1.0);
    /// assert_close(m.bloch_velocity(0.25, 0).at(0, 0).re, 2.0, 1e-14);   // d/dk of -2 cos k at k = pi/2
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn bloch_velocity(m: &mut ScriptModel, k: Dynamic, axis: INT) -> Fallible<Matrix> {
        Ok(bloch(m)?.velocity(&momentum(&k)?, numbered(axis, "axis")?)?)
    }

    /// Bands along a path: a Table of `k` (length of the path in inverse lattice constants) and `band1`, `band2`, ...,
    /// ascending. Plots write the names of the corners below the axis.
    ///
    /// # Options
    /// - `path` (array, required): give the corners `[name, k]`, with k in units of the reciprocal vectors, and a text
    ///   `"|"` between two corners where the path breaks.
    /// - `points` (int >= 1, 200): steps of the whole path; corners are among its points.
    /// - `project` (map, none): weights of groups of rows of the cell in each state ("fat bands"), as `#{ up: [0, 2] }`
    ///   or `#{ a: "A" }` for a sublattice: columns `band1_up`, ... States of one energy share the mean of their
    ///   weights.
    /// - `velocities` (false): columns `velocity1`, ..., the derivatives of the bands along the path.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(1, 1));
    /// m.nearest(-1.0);
    /// let b = bands(m, #{ path: [["G", [0.0, 0.0]], ["X", [0.5, 0.0]], ["M", [0.5, 0.5]]], points: 20 });
    /// assert_close(b.band1[0], -4.0, 1e-13);
    /// assert_close(b.band1[b.rows - 1], 4.0, 1e-13);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn bands(m: ScriptModel, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let options = BandOptions {
            pieces: pieces(&o)?,
            points: o.count("points")?,
            groups: groups(&o, &bloch)?,
            velocities: o.flag("velocities")?,
        };
        Ok(method::bands(&bloch, &options, &o.task()?)?)
    }

    /// The density of states of the bands by linear interpolation in tetrahedra (triangles, segments): a Table of
    /// `energy`, `density` per energy and state, which integrates to one, and `states`, the part of all states below
    /// the energy. Half of the states of a flat part count at its own energy.
    ///
    /// # Options
    /// - `grid` (int >= 1, 48): momenta in each direction.
    /// - `points` (int >= 2, 400): energies.
    /// - `range` (two floats, that of the bands): lowest and highest energy.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::square(1, 1));
    /// m.nearest(-1.0);
    /// let d = bloch::density(m, #{ grid: 64, points: 81, range: [-4.0, 4.0] });
    /// assert_close(d.states[40], 0.5, 1e-12);        // half of the states lie below the middle
    /// ```
    #[rhai_fn(name = "density", return_raw)]
    pub fn band_density(m: ScriptModel, o: Options) -> Fallible<Table> {
        let range = o.maybe_floats("range")?.map(|[low, high]| (low, high));
        let options = DensityOptions { grid: o.count("grid")?, points: o.count("points")?, range };
        Ok(method::band_density(&bloch(&m)?, &options, &o.task()?)?)
    }

    /// The mean of a function of the momentum over the Brillouin zone, on a grid that begins at zero. The function
    /// takes `k` in units of the reciprocal vectors and gives a number, a Series or a Matrix.
    ///
    /// # Options
    /// - `grid` (int >= 1 or array, 24): momenta in each direction, one number or one a direction.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(1));
    /// m.nearest(-1.0);
    /// // the energy of a half-filled chain, -2/pi a site for spinless fermions with t = 1
    /// let lower = |k| { let e = m.bloch(k).eigh().values[0]; if e < 0.0 { e } else { 0.0 } };
    /// let e = bloch::brillouin(m, lower, #{ grid: 1000 });
    /// assert_close(e, -2.0 / PI, 1e-5);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn brillouin(ctx: NativeCallContext, m: ScriptModel, f: FnPtr, o: Options) -> Fallible<Dynamic> {
        let d = bloch(&m)?.dimension();
        let grid = MomentumGrid::new(&counts(&o.value("grid")?, d)?, d)?;
        let task = o.task()?;
        let calls = Callback::new(&ctx);
        let run = || -> Result<MomentumSum> {
            let steps = task.start("Brillouin zone", grid.total());
            let mut sum: Option<MomentumSum> = None;
            for p in 0..grid.total() {
                steps.advance(p)?;
                let k = grid.momentum(p);
                let term = MomentumSum::of(&calls.call(&f, (floats(&k),))?)?;
                sum = Some(match sum {
                    None => term,
                    Some(sum) => sum.plus(&term)?,
                });
            }
            sum.ok_or_else(|| Error::internal("a grid without momenta"))
        };
        let sum = run();
        Ok(calls.finish(sum)?.over(grid.total() as f64))
    }

    /// The Chern number of the `filled` lowest bands, an integer (Fukui, Hatsugai, Suzuki 2005). The cells of the grid
    /// of momenta are divided until the hops bound the gap from below inside each of them, so that no crossing hides
    /// between its corners. If that takes too many momenta, the states at the corners decide. Its sign is that of the
    /// Berry connection `i <u|du/dk>` with x and y in this order; in three directions, with the plane's directions in
    /// the order in which they are given. A flux `alpha` above zero (`m.flux`) gives the lowest Landau level the Chern
    /// number -1.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of bands below the gap.
    /// - `grid` (int >= 2): momenta in each direction of the first grid; 16, or 4 where a cell has more than 16 rows.
    /// - `plane` (two counts, [0, 1]): its two directions, where there are three.
    /// - `at` (float or array, 0): momentum along the other direction.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // two orbitals on a square: H = sin(kx) sx + sin(ky) sy + (1 + cos(kx) + cos(ky)) sz
    /// let s = pauli();
    /// let m = model(lattice::square(1, 1), 2);
    /// m.onsite(1.0 * s.z);
    /// m.hop([1, 0], 0.5 * s.z + 0.5 * I * s.x);
    /// m.hop([0, 1], 0.5 * s.z + 0.5 * I * s.y);
    /// assert(abs(chern_number(m, #{ filled: 1 })) == 1, "a Chern insulator");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn chern_number(m: ScriptModel, o: Options) -> Fallible<INT> {
        let bloch = bloch(&m)?;
        let grid = o.maybe_count("grid")?;
        let plane = plane(&o, &bloch)?;
        Ok(method::chern_number(&bloch, o.count("filled")?, &plane, grid, &o.task()?)?)
    }

    /// The Berry curvature of the `filled` lowest bands on a grid: a Table of `k1`, `k2` (units of the reciprocal
    /// vectors) and `curvature` (squared lattice constants), which plots as a map.
    /// Its integral over the zone is 2 pi times the Chern number.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of bands below the gap.
    /// - `grid` (int >= 1, 48): momenta in each direction.
    /// - `plane` (two counts, [0, 1]), `at` (float or array, 0): as for `chern_number`.
    /// - `positions` (array, none): as for `bloch::conductivity`.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // a mass on one sublattice and its opposite on the other: opposite curvature in both valleys
    /// let m = model(lattice::honeycomb(1, 1));
    /// m.nearest(-1.0);
    /// m.sublattice("A", 0.5);
    /// m.sublattice("B", -0.5);
    /// let b = bloch::berry_curvature(m, #{ filled: 1, grid: 24 });
    /// assert_close(b.curvature.sum(), 0.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn berry_curvature(m: ScriptModel, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let plane = plane(&o, &bloch)?;
        let (filled, grid, own) = (o.count("filled")?, o.count("grid")?, positions(&o, &bloch)?);
        Ok(method::berry_curvature(&bloch, own.as_ref(), filled, &plane, grid, &o.task()?)?)
    }

    /// The phases of the Wilson loop of the `filled` lowest bands along a direction, a Series ascending in (-pi, pi]: 2
    /// pi times the centres of the Wannier functions along that lattice vector, to 1e-7. Sums over finitely many steps,
    /// which other programs give, differ by about the inverse square of their number. Bands are those of a unit cell,
    /// however many equal ones the sample has; where terms differ from cell to cell, of the whole sample.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of bands below the gap.
    /// - `direction` (int >= 0, 0): along which the loop runs.
    /// - `at` (float or array, 0): momenta along the other directions.
    /// - `points` (int >= 2, 64): steps of the first loop. They are halved where the gap is small, then all of them,
    ///   until the phases, extrapolated, stay.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // Su, Schrieffer, Heeger: two sites half a cell apart, the Wannier function sits on the strong bond
    /// let lat = lattice::custom([[1.0]], #{ sites: [[0.0], [0.5]], bonds: [[[0], 0, 1], [[-1], 0, 1]] });
    /// let m = model(lat);
    /// m.hop([0], "A", "B", 1.0);
    /// m.hop([1], "B", "A", 0.5);
    /// assert_close(bloch::wilson_loop(m, #{ filled: 1 })[0], PI / 2.0, 1e-9);    // at 1/4 of the cell
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wilson_loop(m: ScriptModel, o: Options) -> Fallible<Series> {
        let bloch = bloch(&m)?;
        let at = others(&o, bloch.dimension().saturating_sub(1))?;
        let (filled, direction) = (o.count("filled")?, o.count("direction")?);
        let phases = method::wilson_loop(&bloch, filled, direction, &at, o.count("points")?, &o.task()?)?;
        Ok(Series::Real(phases))
    }

    /// The Berry phases of bands along a closed path of momenta, a Series ascending in (-pi, pi], to 1e-7. The states
    /// of one band come back with one phase. Those of several bands mix on the way: their phases are those of the
    /// matrix that carries them once around, and the sum of all is the Berry phase of the group. The path goes
    /// straight from momentum to momentum (units of the reciprocal vectors, one number for every periodic direction).
    /// It ends where it began, or whole numbers beside that, which is the same momentum: from 0 to 1 once through the
    /// zone, where the phase is 2 pi times a polarisation (Zak's phase; King-Smith, Vanderbilt 1993). The connection
    /// is `i <u|du/dk>`, with the orbitals at their places in the cell, not at that of the cell: moving the origin by
    /// x turns the phase by 2 pi x.
    ///
    /// # Options
    /// - `filled` (int >= 1): the number of lowest bands; this or `bands`.
    /// - `bands` (int or array or Series or range): numbers of bands as in `band1`, `band2`, ..: 1 is the
    ///   lowest, in any order. No other band touches them on the path; not with `filled`.
    /// - `points` (int >= 2, 64): steps of the first loop. They are halved where the gap is small, then all of them,
    ///   until the phases, extrapolated, stay.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // around a Dirac point of graphene a state comes back with the other sign; around nothing it does not
    /// let m = model(lattice::honeycomb(1, 1));
    /// m.nearest(-1.0);
    /// let around = |x, y| [[x, y], [x + 0.1, y], [x, y + 0.1], [x, y]];
    /// assert_close(bloch::berry_phase(m, around.call(0.3, 0.63), #{ filled: 1 })[0], PI, 1e-7);
    /// assert_close(bloch::berry_phase(m, around.call(0.5, 0.4), #{ bands: 1 })[0], 0.0, 1e-7);
    /// // Su, Schrieffer, Heeger: half of a turn between both kinds of dimers, with all sites at one place
    /// let lat = lattice::custom([[1.0]], #{ sites: [[0.0], [0.0]], bonds: [[[0], 0, 1], [[-1], 0, 1]] });
    /// let ssh = model(lat);
    /// ssh.hop([0], "A", "B", 0.5);
    /// ssh.hop([1], "B", "A", 1.0);
    /// assert_close(bloch::berry_phase(ssh, [[0.0], [1.0]], #{ filled: 1 })[0], PI, 1e-7);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn berry_phase(m: ScriptModel, path: Array, o: Options) -> Fallible<Series> {
        let bloch = bloch(&m)?;
        let path = path.iter().map(momentum).collect::<Result<Vec<_>>>()?;
        let bands = bands_of(&o, bloch.rows())?;
        Ok(Series::Real(method::berry_phases(&bloch, &bands, &path, o.count("points")?, &o.task()?)?))
    }

    /// How the centres of Wannier functions move: those of the `filled` lowest bands along the first direction of a
    /// plane, at momenta from 0 to 1 along the second. A Table of `k` and `centre1`, `centre2`, .., ascending, in
    /// units of the lattice vector in (-1/2, 1/2], that `plot` shows as curves. They are `bloch::wilson_loop` divided
    /// by 2 pi. In a Chern insulator their sum moves on by as many cells as its number says; with time reversal pairs
    /// of them change partners where the Z2 invariant is 1.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of bands below the gap.
    /// - `steps` (int >= 1, 40): of the momentum.
    /// - `plane` (two counts, [0, 1]), `at` (float or array, 0): as for `chern_number`.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // two orbitals on a square: H = sin(kx) sx + sin(ky) sy + (1 + cos(kx) + cos(ky)) sz
    /// let s = pauli();
    /// let m = model(lattice::square(1, 1), 2);
    /// m.onsite(1.0 * s.z);
    /// m.hop([1, 0], 0.5 * s.z + 0.5 * I * s.x);
    /// m.hop([0, 1], 0.5 * s.z + 0.5 * I * s.y);
    /// let t = bloch::wannier_centres(m, #{ filled: 1, steps: 20 });
    /// let moved = 0.0;
    /// for j in 0..20 {
    ///     let step = t.centre1[j + 1] - t.centre1[j];
    ///     moved += step - step.round();
    /// }
    /// assert_close(abs(moved), 1.0, 1e-6);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wannier_centres(m: ScriptModel, o: Options) -> Fallible<Table> {
        let bloch = bloch(&m)?;
        let plane = plane(&o, &bloch)?;
        let (filled, steps) = (o.count("filled")?, o.count("steps")?);
        Ok(method::wannier_centres(&bloch, filled, &plane, steps, &o.task()?)?)
    }

    /// The Z2 invariant of the `filled` lowest bands of a model with spin and time reversal: 1 for a topological
    /// insulator, 0 for a trivial one (Fu, Kane 2006). In three directions that of a plane, with `at` 0.0 or 0.5.
    ///
    /// # Options
    /// - `filled` (int >= 1, required): give the number of bands below the gap, spins counted.
    /// - `plane` (two counts, [0, 1]), `at` (float or array, 0): as for `chern_number`.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // Bernevig, Hughes, Zhang: H = sin(kx) sx s_z + sin(ky) sy + (M + cos(kx) + cos(ky)) sz, for both spins
    /// fn bhz(mass) {
    ///     let s = pauli();
    ///     let one = identity(2);
    ///     let m = model(lattice::square(1, 1), 4);
    ///     m.onsite(mass * kron(one, s.z));
    ///     m.hop([1, 0], 0.5 * kron(one, s.z) + 0.5 * I * kron(s.z, s.x));
    ///     m.hop([0, 1], 0.5 * kron(one, s.z) + 0.5 * I * kron(one, s.y));
    ///     m
    /// }
    /// assert(bloch::z2(bhz(-1.0), #{ filled: 2 }) == 1, "inverted");
    /// assert(bloch::z2(bhz(-3.0), #{ filled: 2 }) == 0, "not inverted");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn z2(m: ScriptModel, o: Options) -> Fallible<INT> {
        let bloch = bloch(&m)?;
        let plane = plane(&o, &bloch)?;
        Ok(method::z2(&bloch, o.count("filled")?, &plane, &o.task()?)?.into())
    }
}

#[export_module(root = "crate::script::native")]
mod grids {
    /// The momenta of a grid for a model, an array of arrays that begins at zero; `grid` has one number for all
    /// directions, or one for each.
    ///
    /// # Example
    /// ```rhai
    /// assert(internal::momenta(model(lattice::square(3, 3)), 4).len == 16, "4 x 4");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn momenta(m: ScriptModel, grid: Dynamic) -> Fallible<Array> {
        let wrap = m.model.lattice().wrap();
        let d = wrap.iter().filter(|wrap| **wrap != crate::backend::matrix::Wrap::Open).count();
        let grid = MomentumGrid::new(&counts(&grid, d)?, d)?;
        let one = |p: usize| -> Result<Dynamic> {
            task::poll()?;
            Ok(floats(&grid.momentum(p)))
        };
        Ok((0..grid.total()).map(one).collect::<Result<_>>()?)
    }
}

/// A value of a function of the momentum, and sums of such values.
enum MomentumSum {
    Number(Number),
    Series(Series),
    Matrix(Matrix),
}

impl MomentumSum {
    fn of(value: &Dynamic) -> Result<MomentumSum> {
        if let Some(x) = as_number(value) {
            return Ok(MomentumSum::Number(x));
        }
        if let Some(x) = value.read_lock::<Series>() {
            return Ok(MomentumSum::Series(x.clone()));
        }
        match value.read_lock::<Matrix>() {
            Some(x) => Ok(MomentumSum::Matrix(x.clone())),
            None => Err(Error::input(format!("the function gives {}", type_of(value)))
                .hint("it must give a number, a Series or a Matrix")),
        }
    }

    fn plus(self, other: &MomentumSum) -> Result<MomentumSum> {
        Ok(match (self, other) {
            (MomentumSum::Number(a), MomentumSum::Number(b)) => {
                MomentumSum::Number(Arithmetic::Add.number(a, *b))
            }
            (MomentumSum::Series(a), MomentumSum::Series(b)) => {
                MomentumSum::Series(a.zip(Arithmetic::Add, b)?)
            }
            (MomentumSum::Matrix(a), MomentumSum::Matrix(b)) => MomentumSum::Matrix(a.add(b)?),
            _ => {
                return Err(Error::input("the function gives values of several types")
                    .hint("it gives numbers, or Series, or Matrices, at all momenta"));
            }
        })
    }

    fn over(self, count: f64) -> Dynamic {
        match self {
            MomentumSum::Number(x) => to_dynamic(Arithmetic::Div.number(x, count.into())),
            MomentumSum::Series(x) => Dynamic::from(x.with(Arithmetic::Div, count.into())),
            MomentumSum::Matrix(x) => Dynamic::from(x.divide(count.into())),
        }
    }
}
