//! `Orbitals` and the module `orbitals`: one-particle functions for Slater determinants.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FnPtr, INT, Map};

use super::crystal::vector_of;
use super::gauge::single;
use super::lattice::ints;
use super::values::{as_number, real, type_of};
use crate::error::{Error, Result};
use crate::montecarlo::orbitals::{Basis, Fourier, OrbitalSet, Source, SplineOrbitals};
use crate::montecarlo::{Cell, Crystal, Derivatives};
use crate::number::{C64, Scalar, Series};
use crate::script::callback::Callback;
use crate::script::{At, Failure, Options, session};

/// Registers the type, the module and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<OrbitalSet>("Orbitals");
    engine.register_static_module("orbitals", exported_module!(orbitals_module).into());
    engine.register_global_module(exported_module!(orbitals_functions).into());
}

/// The option `twist`: three fractions of the reciprocal vectors.
fn twist_of(o: &Options<'_>) -> Result<[f64; 3]> {
    o.value("twist").map_or(Ok([0.0; 3]), |t| vector_of(&t, "a twist"))
}

/// Grid points along each vector, from a number or three.
fn grid_of(value: &Dynamic) -> Result<[usize; 3]> {
    let wrong = || {
        Error::input(format!("a grid is a whole number of points, or three, not {}", type_of(value)))
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

/// The grid by the options `grid` or `spacing`.
fn grid_option(o: &Options<'_>, cell: &Cell) -> Result<[usize; 3]> {
    match (o.value("grid"), o.float("spacing")?) {
        (Some(_), Some(_)) => {
            Err(Error::input("both `grid` and `spacing` are given").hint("one of them is enough"))
        }
        (Some(grid), None) => grid_of(&grid),
        (None, spacing) => SplineOrbitals::grid_for(cell, spacing.unwrap_or(0.35)),
    }
}

/// All orbitals at one point: value, three parts of the gradient, Laplacian.
fn at_point(set: &OrbitalSet, point: [f64; 3]) -> [Series; 5] {
    fn planes<S: Scalar>(d: Derivatives<S>, series: impl Fn(Vec<S>) -> Series) -> [Series; 5] {
        let [x, y, z] = d.gradient;
        [d.value, x, y, z, d.laplacian].map(series)
    }
    match set.basis() {
        Basis::Real(o) => {
            let mut d = Derivatives::<f64>::new(1, o.count());
            o.derivatives(&[point], &mut d);
            planes(d, Series::Real)
        }
        Basis::Complex(o) => {
            let mut d = Derivatives::<C64>::new(1, o.count());
            o.derivatives(&[point], &mut d);
            planes(d, Series::Complex)
        }
    }
}

#[export_module]
mod orbitals_module {
    /// Plane waves of a cell, by energy: the constant, then cosine and sine of every pair G, -G, of mean square one. With a
    /// twist k they are exp(i (G + k) . r).
    ///
    /// # Options
    /// - `count` (half the electrons): how many.
    /// - `twist` ([0, 0, 0]): k, as fractions of the reciprocal vectors.
    ///
    /// # Example
    /// ```rhai
    /// let waves = orbitals::plane_waves(crystal::electron_gas(14, 1.0));
    /// assert_close(2.0 * waves.energies.sum() / 14.0, 1.1209128678, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plane_waves(
        ctx: NativeCallContext,
        crystal: Crystal,
        options: Map,
    ) -> std::result::Result<OrbitalSet, Failure> {
        let o = Options::new(&ctx, options);
        let count = o.count_or("count", 1, crystal.electrons().div_ceil(2)).at(&ctx)?;
        let twist = twist_of(&o).at(&ctx)?;
        o.finish()?;
        Fourier::plane_waves(crystal.cell(), count, twist).map(OrbitalSet::waves).at(&ctx)
    }

    #[rhai_fn(name = "plane_waves", return_raw)]
    pub fn plane_waves_plain(
        ctx: NativeCallContext,
        crystal: Crystal,
    ) -> std::result::Result<OrbitalSet, Failure> {
        plane_waves(ctx, crystal, Map::new())
    }

    /// The one-electron states of a crystal's empirical potential: the Hamiltonian -1/2 Laplacian + V is diagonalised among
    /// the plane waves below a cutoff at every k that the crystal's cell folds to its origin. They come by energy, of mean
    /// square one, and are real: states at k and -k are combined. With a twist they are complex.
    ///
    /// # Options
    /// - `cutoff` (4.5): the largest kinetic energy |k + G|^2/2 of a wave, hartree.
    /// - `orbitals` (half the electrons): how many.
    /// - `twist` ([0, 0, 0]): fractions of the reciprocal vectors of the crystal's cell.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let bands = orbitals::plane_wave_bands(crystal::silicon(1), #{ cutoff: 4.5, orbitals: 8 });
    /// assert_close(bands.energies[1], bands.energies[3], 1e-9);       // the top of the valence band is threefold
    /// assert_close((bands.energies[4] - bands.energies[3]) * 27.2114, 3.4, 0.2);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plane_wave_bands(
        ctx: NativeCallContext,
        crystal: Crystal,
        options: Map,
    ) -> std::result::Result<OrbitalSet, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let cutoff = o.float_or("cutoff", 4.5)?;
            let count = o.count_or("orbitals", 1, crystal.electrons().div_ceil(2).max(1))?;
            Ok((cutoff, count, twist_of(&o)?, o.task()?))
        };
        let (cutoff, count, twist, task) = read().at(&ctx)?;
        o.finish()?;
        Fourier::bands(&crystal, cutoff, count, twist, &task).map(OrbitalSet::waves).at(&ctx)
    }

    #[rhai_fn(name = "plane_wave_bands", return_raw)]
    pub fn plane_wave_bands_plain(
        ctx: NativeCallContext,
        crystal: Crystal,
    ) -> std::result::Result<OrbitalSet, Failure> {
        plane_wave_bands(ctx, crystal, Map::new())
    }

    /// Real orbitals fitted to a function of your own: `f(x, y, z)` is called at every point of a grid of the crystal's
    /// cell (a number of points along each vector, or three) and gives a number or an array of them, one an orbital. The
    /// splines take exactly these values there.
    ///
    /// # Options
    /// - `precision` ("double"): or "single".
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let box = crystal::custom([[6.0, 0.0, 0.0], [0.0, 6.0, 0.0], [0.0, 0.0, 6.0]], []);
    /// let k = 2.0 * PI() / 6.0;
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
        options: Map,
    ) -> std::result::Result<OrbitalSet, Failure> {
        let o = Options::new(&ctx, options);
        let (single, task) = (single(&o).at(&ctx)?, o.task().at(&ctx)?);
        o.finish()?;
        let grid = grid_of(&grid).at(&ctx)?;
        let device = session(&ctx).at(&ctx)?.device();
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
                                .hint("a number, or an array of them, one an orbital"));
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
                    )));
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

    #[rhai_fn(name = "fit", return_raw)]
    pub fn fit_plain(
        ctx: NativeCallContext,
        crystal: Crystal,
        grid: Dynamic,
        f: FnPtr,
    ) -> std::result::Result<OrbitalSet, Failure> {
        fit(ctx, crystal, grid, f, Map::new())
    }
}

#[export_module]
mod orbitals_functions {
    /// The same orbitals as cubic B-splines on a periodic grid, a[ix, iy, iz, l] with l fastest, interpolated exactly at its
    /// points: as fast as memory delivers coefficients. Errors fall as the fourth power of the spacing, those of the
    /// Laplacian as the second.
    ///
    /// # Options
    /// - `spacing` (0.35): the largest step of the grid, bohr.
    /// - `grid`: instead, points along each vector, a number or three.
    /// - `precision` ("double"): or "single".
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let bands = orbitals::plane_wave_bands(crystal::silicon(1), #{ cutoff: 3.0, progress: false });
    /// let spline = bands.splines(#{ spacing: 0.3, precision: "double", progress: false });
    /// let r = [0.1, 0.2, 0.3];
    /// assert_close(spline.values(r)[3], bands.values(r)[3], 1e-3);
    /// ```
    #[rhai_fn(global, name = "splines", pure, return_raw)]
    pub fn splines_with(
        ctx: NativeCallContext,
        set: &mut OrbitalSet,
        options: Map,
    ) -> std::result::Result<OrbitalSet, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let Source::Waves(waves) = set.source() else {
                return Err(Error::input(format!("no splines of {}", set.basis().describe()))
                    .hint("plane waves and bands have splines; `orbitals::fit` makes them of any function"));
            };
            let grid = grid_option(&o, waves.own_cell())?;
            Ok((waves.clone(), grid, single(&o)?, o.task()?))
        };
        let (waves, grid, single, task) = read().at(&ctx)?;
        o.finish()?;
        let device = session(&ctx).at(&ctx)?.device();
        let splines = SplineOrbitals::from_waves(&device, &waves, grid, single, &task).at(&ctx)?;
        Ok(OrbitalSet::splines(splines, Some(waves.energies().to_vec())))
    }

    #[rhai_fn(global, pure, return_raw)]
    pub fn splines(ctx: NativeCallContext, set: &mut OrbitalSet) -> std::result::Result<OrbitalSet, Failure> {
        splines_with(ctx, set, Map::new())
    }

    /// How many orbitals there are.
    ///
    /// # Example
    /// ```rhai
    /// assert(orbitals::plane_waves(crystal::electron_gas(14, 1.0)).count == 7, "half the electrons");
    /// ```
    #[rhai_fn(global, get = "count", pure)]
    pub fn count(set: &mut OrbitalSet) -> INT {
        set.basis().count() as INT
    }

    /// Whether the orbitals are complex: those with a twist are.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(14, 1.0);
    /// assert(!orbitals::plane_waves(gas).complex, "cosines and sines");
    /// assert(orbitals::plane_waves(gas, #{ twist: [0.5, 0.0, 0.0] }).complex, "exponentials");
    /// ```
    #[rhai_fn(global, get = "complex", pure)]
    pub fn complex(set: &mut OrbitalSet) -> bool {
        set.basis().is_complex()
    }

    /// The energies of the orbitals, ascending, hartree.
    ///
    /// # Example
    /// ```rhai
    /// let waves = orbitals::plane_waves(crystal::electron_gas(2, 1.0), #{ count: 7 });
    /// assert_close(waves.energies[6] * 2.0, (2.0 * PI()) ** 2.0 / crystal::electron_gas(2, 1.0).volume ** (2.0 / 3.0), 1e-12);
    /// ```
    #[rhai_fn(global, get = "energies", pure, return_raw)]
    pub fn energies(ctx: NativeCallContext, set: &mut OrbitalSet) -> std::result::Result<Series, Failure> {
        let energies = set.energies().map(|e| Series::Real(e.to_vec())).ok_or_else(|| {
            Error::input(format!("the energies of {} are not known", set.basis().describe()))
                .hint("bands and plane waves have energies")
        });
        energies.at(&ctx)
    }

    /// All orbitals at a point [x, y, z] (bohr).
    ///
    /// # Example
    /// ```rhai
    /// let psi = orbitals::plane_waves(crystal::electron_gas(2, 1.0)).values([0.3, 0.1, 0.0]);
    /// assert_close(psi[0], 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn values(
        ctx: NativeCallContext,
        set: &mut OrbitalSet,
        point: Dynamic,
    ) -> std::result::Result<Series, Failure> {
        let point = vector_of(&point, "a point").at(&ctx)?;
        let [value, ..] = at_point(set, point);
        Ok(value)
    }

    /// The gradients of all orbitals at a point: an array of three Series, by x, y and z.
    ///
    /// # Example
    /// ```rhai
    /// let waves = orbitals::plane_waves(crystal::electron_gas(14, 1.0));
    /// let g = waves.gradient([0.3, 0.1, 0.0]);
    /// assert_close(g[2][0], 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn gradient(
        ctx: NativeCallContext,
        set: &mut OrbitalSet,
        point: Dynamic,
    ) -> std::result::Result<Array, Failure> {
        let point = vector_of(&point, "a point").at(&ctx)?;
        let [_, x, y, z, _] = at_point(set, point);
        Ok([x, y, z].map(Dynamic::from).to_vec())
    }

    /// The Laplacians of all orbitals at a point.
    ///
    /// # Example
    /// ```rhai
    /// let waves = orbitals::plane_waves(crystal::electron_gas(14, 1.0));
    /// let r = [0.3, 0.1, 0.2];
    /// assert_close(waves.laplacian(r)[6], -2.0 * waves.energies[6] * waves.values(r)[6], 1e-12);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn laplacian(
        ctx: NativeCallContext,
        set: &mut OrbitalSet,
        point: Dynamic,
    ) -> std::result::Result<Series, Failure> {
        let point = vector_of(&point, "a point").at(&ctx)?;
        let [.., laplacian] = at_point(set, point);
        Ok(laplacian)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(set: &mut OrbitalSet) -> String {
        let kind = if set.basis().is_complex() { "complex" } else { "real" };
        let memory = match set.source() {
            Source::Splines(s) => format!(", {}", crate::operator::human_bytes(s.table().bytes())),
            _ => String::new(),
        };
        format!("Orbitals: {}, {kind}{memory}", set.basis().describe())
    }
}
