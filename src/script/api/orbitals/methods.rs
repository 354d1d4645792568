//! What `Orbitals` can be asked: values and derivatives, energies, splines, files, and how fast they are.

use std::path::Path;
use std::time::Instant;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, INT};

use super::super::crystal::vector_of;
use super::super::model::single_precision;
use super::{grid_of, is_archive};
use crate::backend::splines::SplineBatch;
use crate::error::{Error, Result};
use crate::montecarlo::orbitals::{OrbitalBasis, OrbitalSet, OrbitalSource, SplineOrbitals};
use crate::montecarlo::{Derivatives, SimulationCell};
use crate::number::{C64, Matrix, Scalar, Series};
use crate::output::files;
use crate::script::{Fallible, Options, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(orbitals_functions).into());
}

/// The grid by the options `grid` or `spacing`.
fn grid_option(o: &Options, cell: &SimulationCell) -> Result<[usize; 3]> {
    match o.given("grid") {
        Some(grid) => grid_of(&grid),
        None => SplineOrbitals::grid_for(cell, o.float("spacing")?),
    }
}

/// All orbitals at one point: value, three parts of the gradient, Laplacian.
fn at_point(set: &OrbitalSet, point: [f64; 3]) -> [Series; 5] {
    fn planes<S: Scalar>(d: Derivatives<S>, series: impl Fn(Vec<S>) -> Series) -> [Series; 5] {
        let [x, y, z] = d.gradient;
        [d.value, x, y, z, d.laplacian].map(series)
    }
    match set.basis() {
        OrbitalBasis::Real(o) => {
            let mut d = Derivatives::<f64>::new(1, o.count());
            o.derivatives(&[point], &mut d);
            planes(d, Series::Real)
        }
        OrbitalBasis::Complex(o) => {
            let mut d = Derivatives::<C64>::new(1, o.count());
            o.derivatives(&[point], &mut d);
            planes(d, Series::Complex)
        }
    }
}

/// Points as the rows of a Matrix.
fn points_of(points: &Matrix) -> Result<Vec<[f64; 3]>> {
    if points.cols() != 3 {
        return Err(Error::input(format!("points as a {} matrix", points.shape()))
            .hint("each row is a point: x, y, z"));
    }
    let numbers = points.data().as_real("points")?;
    if numbers.iter().any(|x| !x.is_finite()) {
        return Err(
            Error::input("a point that is not finite").hint("look for NaN or infinity among its coordinates")
        );
    }
    Ok(numbers.chunks_exact(3).map(|r| [r[0], r[1], r[2]]).collect())
}

/// The splines of a set, or an error that says what makes them.
fn on_grid(set: &OrbitalSet) -> Result<&SplineOrbitals> {
    match set.source() {
        OrbitalSource::Splines(splines) => Ok(splines),
        _ => Err(Error::input(format!("{} are no splines", set.basis().describe()))
            .hint("make them by `.splines(#{ spacing: 0.35 })`")),
    }
}

#[export_module(root = "crate::script::native")]
mod orbitals_functions {
    /// The same orbitals as cubic B-splines on a periodic grid, a[ix, iy, iz, l] with l fastest, exact at the grid
    /// points. Evaluation is as fast as memory delivers the coefficients. Errors fall as the fourth power of the
    /// spacing, those of the Laplacian as the second power.
    ///
    /// # Options
    /// - `spacing` (float > 0, 0.35): the largest step of the grid, bohr.
    /// - `grid` (int or array): instead, the number of points along each vector, one number or three; not with
    ///   `spacing`.
    /// - `precision` ("double" or "single"): precision of the numbers.
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
    pub fn splines_with(set: &mut OrbitalSet, o: Options) -> Fallible<OrbitalSet> {
        let OrbitalSource::Waves(waves) = set.source() else {
            return Err(Error::input(format!("no splines of {}", set.basis().describe()))
                .hint("plane waves and bands have splines; `orbitals::fit` makes them of any function")
                .into());
        };
        let grid = grid_option(&o, waves.own_cell())?;
        let device = session()?.device();
        let splines = SplineOrbitals::from_waves(&device, waves, grid, single_precision(&o)?, &o.task()?)?;
        Ok(OrbitalSet::splines(splines, Some(waves.energies().to_vec())))
    }

    /// Saves splines as an `.npz` archive that `load` and NumPy read.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(2, 1.0);
    /// let waves = orbitals::plane_waves(gas).splines(#{ grid: 4, precision: "single", progress: false });
    /// waves.save("one.npz");
    /// assert(load("one.npz").count == 1, "one plane wave");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn save(set: &mut OrbitalSet, file: &str) -> Fallible<()> {
        let OrbitalSource::Splines(splines) = set.source() else {
            return Err(Error::input(format!("{} are not saved", set.basis().describe()))
                .hint("save their splines: `.splines(#{ spacing: 0.35 }).save(..)`")
                .into());
        };
        if !is_archive(Path::new(file)) {
            return Err(Error::input(format!("orbitals are not saved as `{file}`"))
                .hint("the name ends in `.npz`")
                .into());
        }
        let session = session()?;
        let path = session.output_path(file);
        files::save_orbitals(splines, set.energies(), &path)?;
        session.saved(&path);
        Ok(())
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

    /// Whether the orbitals are complex, as with a twist.
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
    /// let side = crystal::electron_gas(2, 1.0).volume ** (1.0 / 3.0);
    /// assert_close(waves.energies[6] * 2.0, (2.0 * PI / side) ** 2.0, 1e-12);
    /// ```
    #[rhai_fn(global, get = "energies", pure, return_raw)]
    pub fn energies(set: &mut OrbitalSet) -> Fallible<Series> {
        let energies = set.energies().map(|e| Series::Real(e.to_vec())).ok_or_else(|| {
            Error::input(format!("the energies of {} are not known", set.basis().describe()))
                .hint("bands and plane waves have energies")
        });
        Ok(energies?)
    }

    /// All orbitals at a point [x, y, z] (bohr). For several points, the rows of a Matrix, it is a Matrix of points x
    /// orbitals.
    ///
    /// # Example
    /// ```rhai
    /// let psi = orbitals::plane_waves(crystal::electron_gas(2, 1.0)).values([0.3, 0.1, 0.0]);
    /// assert_close(psi[0], 1.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn values(set: &mut OrbitalSet, point: Dynamic) -> Fallible<Series> {
        let point = vector_of(&point, "a point")?;
        let [value, ..] = at_point(set, point);
        Ok(value)
    }

    #[rhai_fn(global, name = "values", pure, return_raw)]
    pub fn values_at(set: &mut OrbitalSet, points: Matrix) -> Fallible<Matrix> {
        let points = points_of(&points)?;
        let (rows, cols) = (points.len(), set.basis().count());
        let found = match set.basis() {
            OrbitalBasis::Real(o) => {
                let mut out = vec![0.0; rows * cols];
                o.values(&points, &mut out);
                Matrix::new(rows, cols, out)
            }
            OrbitalBasis::Complex(o) => {
                let mut out = vec![C64::default(); rows * cols];
                o.values(&points, &mut out);
                Matrix::new(rows, cols, out)
            }
        }?;
        session()?.interrupt().check()?;
        Ok(found)
    }

    /// The time of one evaluation of splines at many points (the rows of a Matrix), in seconds: the best of several
    /// runs. Points and results stay on the device. The time includes sorting the points.
    ///
    /// # Options
    /// - `derivatives` (false): compute gradients and Laplacians as well.
    /// - `repeat` (int >= 1, 3): number of runs.
    /// - `assignment` (string): another algorithm of the backend, for comparison; one of `.assignments`.
    ///
    /// # Example
    /// ```rhai
    /// let waves = orbitals::plane_waves(crystal::electron_gas(14, 1.0)).splines(#{ grid: 8, progress: false });
    /// assert(waves.evaluation_time(matrix([[0.1, 0.2, 0.3], [1.0, 0.0, 2.0]])) > 0.0, "it takes time");
    /// ```
    #[rhai_fn(global, name = "evaluation_time", pure, return_raw)]
    pub fn evaluation_time_with(set: &mut OrbitalSet, points: Matrix, o: Options) -> Fallible<FLOAT> {
        let (derivatives, repeat, assignment) =
            (o.flag("derivatives")?, o.count("repeat")?, o.maybe_text("assignment")?);
        let device = session()?.device();
        let mut batch = on_grid(set)?.splines().batch(&points_of(&points)?)?;
        let way = match &assignment {
            None => None,
            Some(name) => Some(batch.assignments().iter().position(|a| a == name).ok_or_else(|| {
                let known = batch.assignments().join(", ");
                let hint = if known.is_empty() { "this backend has none".into() } else { known };
                Error::input(format!("no assignment `{name}`")).hint(hint)
            })?),
        };
        let once = |batch: &mut dyn SplineBatch| match (way, derivatives) {
            (Some(way), _) => batch.values_by(way),
            (None, true) => batch.derivatives(),
            (None, false) => batch.values(),
        };
        once(&mut *batch)?;
        device.synchronize()?;
        let mut best = f64::INFINITY;
        for _ in 0..repeat {
            let started = Instant::now();
            once(&mut *batch)?;
            device.synchronize()?;
            best = best.min(started.elapsed().as_secs_f64());
        }
        Ok(crate::ranks::told(best)?)
    }

    /// The names of other algorithms for the values, for comparison: on a GPU those of Uejima and Maezono.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(14, 1.0);
    /// let waves = orbitals::plane_waves(gas).splines(#{ grid: 8, precision: "single", progress: false });
    /// print(waves.assignments);
    /// ```
    #[rhai_fn(global, get = "assignments", pure, return_raw)]
    pub fn assignments(set: &mut OrbitalSet) -> Fallible<Array> {
        let batch = on_grid(set)?.splines().batch(&[])?;
        Ok(batch.assignments().iter().map(|name| Dynamic::from(*name)).collect())
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
    pub fn gradient(set: &mut OrbitalSet, point: Dynamic) -> Fallible<Array> {
        let point = vector_of(&point, "a point")?;
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
    pub fn laplacian(set: &mut OrbitalSet, point: Dynamic) -> Fallible<Series> {
        let point = vector_of(&point, "a point")?;
        let [.., laplacian] = at_point(set, point);
        Ok(laplacian)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(set: &mut OrbitalSet) -> String {
        let kind = if set.basis().is_complex() { "complex" } else { "real" };
        let memory = match set.source() {
            OrbitalSource::Splines(s) => format!(", {}", crate::number::memory::human(s.table().bytes())),
            _ => String::new(),
        };
        format!("Orbitals: {}, {kind}{memory}", set.basis().describe())
    }
}
