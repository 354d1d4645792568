//! Green's functions from Chebyshev moments.

use rhai::plugin::*;
use rhai::{Dynamic, INT};

use super::chebyshev::SharedMoments;
use super::kpm::{kernel, orders};
use super::vector::Vector;
use crate::error::Result;
use crate::method::{self, Damping, Window};
use crate::number::{C64, Matrix, Series};
use crate::operator::Operator;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("kpm", exported_module!(green_functions));
}

/// The options `eta`, or `kernel` and `parameter`.
fn damping(o: &Options) -> Result<Damping> {
    let Some(eta) = o.maybe_float("eta")? else { return Ok(Damping::Kernel(kernel(o)?)) };
    Ok(Damping::Imaginary(eta))
}

/// Largest part of the series that may be left out: when choosing moments, and without a note.
const NEGLIGIBLE: f64 = 1e-10;
const NOTED: f64 = 1e-6;

/// Says so where the moments end before the series of a Green's function does.
fn tell_of_rest(window: Window, energies: &[f64], damping: Damping, count: usize) -> Result<()> {
    if count as f64 >= method::undamped_terms(window, energies, damping, NOTED)?.0 {
        return Ok(());
    }
    let (needed, energy) = method::undamped_terms(window, energies, damping, NEGLIGIBLE)?;
    session()?.note(&format!(
        "{count} moments are too few for the Green's function at energy {energy}: its series needs {:.0} there",
        even(needed)
    ));
    Ok(())
}

/// The next even number.
fn even(n: f64) -> f64 {
    2.0 * (n / 2.0).ceil()
}

/// The series of these moments at energies, by the options that say what damps it.
fn series_at(window: Window, mu: &[C64], energies: &Series, o: Options) -> Fallible<Series> {
    let (energies, damping) = (energies.as_real("energies")?, damping(&o)?);
    let g = method::green(window, mu, energies, damping)?;
    tell_of_rest(window, energies, damping, mu.len())?;
    Ok(Series::Complex(g))
}

#[export_module(root = "crate::script::native")]
mod green_functions {
    /// The retarded Green's function of these moments, per state, at `energies`. Outside the window, and everywhere
    /// with `eta`, no kernel damps the series. The series is accurate if it has as many moments as `kpm::green_moments`
    /// says; if it has fewer, a note on standard error says so. Inside the window a kernel broadens every level by
    /// `broadening`. This also affects energies beside the spectrum and in its gaps.
    ///
    /// # Options
    /// - `eta` (float): an imaginary part of the energy, instead of a kernel.
    /// - `kernel` ("lorentz"), `parameter`: as for `kpm::dos`, at real energies inside the window; not with `eta`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(256), #{ hopping: -1.0 });
    /// let mu = chebyshev(h, window(-2.0, 2.0), unit_block(h, [0])).run(60).moments();
    /// assert_close(mu.green(series([3.0]), #{})[0], 1.0 / sqrt(5.0), 1e-12);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn green(mu: &mut SharedMoments, energies: Series, o: Options) -> Fallible<Series> {
        let values: Vec<C64> = mu.values().iter().map(|&x| C64::new(x, 0.0)).collect();
        series_at(mu.window, &values, &energies, o)
    }

    /// The standard errors of `green` over the vectors (Student's for few vectors), as complex numbers: the real part
    /// is the error of the real part, the imaginary part that of the imaginary part. NaN for a single vector.
    ///
    /// # Options
    /// - those of `green`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(64), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let mu = kpm::moments(h, #{ moments: 64, vectors: 8 });
    /// let error = mu.green_error(series([0.5]), #{})[0];
    /// assert(error.re > 0.0 && error.im > 0.0, "eight vectors differ");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn green_error(mu: &mut SharedMoments, energies: Series, o: Options) -> Fallible<Series> {
        let errors = method::green_error(mu, energies.as_real("energies")?, damping(&o)?)?;
        Ok(Series::Complex(errors))
    }

    /// The moments <l|T_n(H~)|r> for n below `count`: a Series for single vectors; for blocks a Matrix with one column
    /// per pair.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let mu = kpm::cross_moments(h, window(-2.0, 2.0), unit_block(h, [1]), unit_block(h, [0]), 3);
    /// assert_close(mu[1], -0.5, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn cross_moments(
        h: Operator,
        window: Window,
        left: Vector,
        right: Vector,
        count: INT,
    ) -> Fallible<Dynamic> {
        let count = orders(count)?;
        let rows =
            method::cross_moments(&h, window, &left.block, &right.block, count, &session()?.task(true))?;
        let columns = left.block.columns();
        let all = Series::Complex(rows.into_iter().flatten().collect());
        Ok(if columns == 1 { Dynamic::from(all) } else { Dynamic::from(Matrix::new(count, columns, all)?) })
    }

    /// The Green's function of moments <l|T_n(H~)|r> at `energies`, with notes as for `green`.
    ///
    /// # Options
    /// - those of `green`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(256), #{ hopping: -1.0 });
    /// let w = window(-2.0, 2.0);
    /// let mu = kpm::cross_moments(h, w, unit_block(h, [1]), unit_block(h, [0]), 100);
    /// let x = (3.0 - sqrt(5.0)) / 2.0;
    /// assert_close(kpm::green_function(w, mu, series([-3.0]), #{})[0], -x / sqrt(5.0), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn green_function(window: Window, mu: Series, energies: Series, o: Options) -> Fallible<Series> {
        series_at(window, &mu.to_complex(), &energies, o)
    }

    /// How many moments a Green's function at `energies` needs where no kernel damps its series: with `eta`, and
    /// outside the window. The truncation error is then 1e-10 of the largest possible value, which is 1/`eta` or one
    /// over the distance to the window. The result is zero if a kernel damps the series at all energies.
    ///
    /// # Options
    /// - `eta` (float): an imaginary part of the energy.
    /// - `kernel`, `parameter`: as for `green`; neither changes the number.
    ///
    /// # Example
    /// ```rhai
    /// let w = window(-2.0, 2.0);
    /// assert(kpm::green_moments(w, series([0.0]), #{ eta: 0.02 }) == 2372, "ln(2e10) / 0.01");
    /// assert(kpm::green_moments(w, series([0.0, 3.0]), #{}) == 26, "outside the window");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn green_moments(window: Window, energies: Series, o: Options) -> Fallible<INT> {
        let (needed, _) =
            method::undamped_terms(window, energies.as_real("energies")?, damping(&o)?, NEGLIGIBLE)?;
        Ok(even(needed) as INT)
    }
}
