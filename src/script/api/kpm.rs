//! What the kernel polynomial method makes of moments: densities; and the ways to accumulate them.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{FLOAT, INT};

use super::chebyshev::SharedMoments;
use super::table::save_data;
use super::vector::Vector;
use crate::error::{Error, Result};
use crate::method::{self, Accumulation, Averaged, DampingKernel, Moments, Provenance, Window};
use crate::number::Series;
use crate::number::memory::human;
use crate::operator::Operator;
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};
use crate::task;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("kpm", exported_module!(kpm_functions));
    rooms.room("internal", exported_module!(passes));
}

/// The options `kernel` and `parameter`.
pub(super) fn kernel(o: &Options) -> Result<DampingKernel> {
    kernel_of(&o.text("kernel")?, o.maybe_float("parameter")?)
}

/// A kernel by its name; the parameter is lambda of "lorentz" (by default 4) or M of "lanczos" (3).
/// Energies that are numbers; infinite ones have no states.
fn numbers(energies: &Series) -> Result<Vec<f64>> {
    let all = energies.as_real("energies")?.to_vec();
    match all.iter().any(|e| e.is_nan()) {
        true => Err(Error::input("an energy that is not a number (NaN)").hint("look for a division by zero")),
        false => Ok(all),
    }
}

fn kernel_of(name: &str, parameter: Option<f64>) -> Result<DampingKernel> {
    if let Some(p) = parameter.filter(|p| !(p.is_finite() && *p > 0.0)) {
        return Err(Error::input(format!("the parameter {p} of a kernel")).hint("it is positive"));
    }
    let kernel = match name {
        "jackson" => DampingKernel::Jackson,
        "lorentz" => return Ok(DampingKernel::Lorentz(parameter.unwrap_or(4.0))),
        "fejer" => DampingKernel::Fejer,
        "lanczos" => return Ok(DampingKernel::Lanczos(parameter.unwrap_or(3.0))),
        "dirichlet" => DampingKernel::Dirichlet,
        _ => {
            return Err(Error::input(format!("no kernel `{name}`"))
                .hint("the kernels are jackson, lorentz, fejer, lanczos, dirichlet"));
        }
    };
    match parameter {
        Some(_) => Err(Error::input(format!("the kernel `{name}` has no `parameter`"))
            .hint("only \"lorentz\" and \"lanczos\" have one; leave it out")),
        None => Ok(kernel),
    }
}

/// How moments are accumulated, by name.
fn accumulation(name: &str) -> Result<Accumulation> {
    Ok(match name {
        "full-map" => Accumulation::FullMap,
        "sliding-window" => Accumulation::SlidingWindow,
        "divided" => Accumulation::Divided,
        "fused" => Accumulation::Fused,
        _ => {
            return Err(Error::input(format!("no accumulation `{name}`"))
                .hint("they are full-map, sliding-window, divided, fused"));
        }
    })
}

/// The numbers of `count` vectors from number `first` on.
pub(super) fn some_of(first: INT, count: INT) -> Result<std::ops::Range<usize>> {
    let (from, many) = (usize::try_from(first), usize::try_from(count));
    let range = from.ok().zip(many.ok()).map(|(from, many)| from..from.saturating_add(many));
    range.ok_or_else(|| {
        Error::input(format!("{count} vectors from number {first} on")).hint("both are 0 or more")
    })
}

pub(super) fn orders(n: INT) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|n| (1..=1 << 30).contains(n))
        .ok_or_else(|| Error::input(format!("{n} moments")).hint("ask for one at least"))
}

#[export_module(root = "crate::script::native")]
mod kpm_functions {
    /// Damping factors g_0 to g_(n-1) of a kernel: "jackson", "lorentz", "fejer", "lanczos", "dirichlet".
    ///
    /// # Example
    /// ```rhai
    /// assert_close(kpm::kernel_factors("jackson", 128)[1], 0.999703469845139, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn kernel_factors(name: &str, n: INT) -> Fallible<Series> {
        Ok(Series::Real(kernel_of(name, None)?.factors(orders(n)?)))
    }

    /// How many moments are needed for a broadening (an energy) in a window.
    ///
    /// # Options
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    ///
    /// # Example
    /// ```rhai
    /// assert(kpm::moments_for(window(-1.0, 1.0), 0.1, #{}) == 32, "pi / 0.1");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn moments_for(window: Window, broadening: Float, o: Options) -> Fallible<INT> {
        let n = kernel(&o).and_then(|k| k.moments_for(broadening, &window))?;
        Ok(n as INT)
    }

    /// The mean moments as a Series.
    #[rhai_fn(global, get = "values", pure)]
    pub fn values(mu: &mut SharedMoments) -> Series {
        Series::Real(mu.values().to_vec())
    }

    /// Standard errors of the moments over the vectors (Student's for few vectors); NaN for a single vector.
    #[rhai_fn(global, get = "errors", pure)]
    pub fn errors(mu: &mut SharedMoments) -> Series {
        Series::Real(mu.errors().to_vec())
    }

    /// The time of the recurrence, in seconds.
    #[rhai_fn(global, get = "seconds", pure)]
    pub fn seconds(mu: &mut SharedMoments) -> FLOAT {
        mu.seconds
    }

    /// Sites times vectors times moments, per second.
    #[rhai_fn(global, get = "rate", pure)]
    pub fn rate(mu: &mut SharedMoments) -> FLOAT {
        mu.dim as f64 * mu.vectors() as f64 * mu.len() as f64 / mu.seconds.max(1e-9)
    }

    /// The energy width that these M moments resolve with a kernel, at the middle of a window of half width a. For
    /// "lorentz" it is lambda a/M, the half width at half maximum of a level. For the others it is pi a/M, for
    /// "jackson" the standard deviation.
    ///
    /// # Options
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    #[rhai_fn(global, pure, return_raw)]
    pub fn broadening(mu: &mut SharedMoments, o: Options) -> Fallible<FLOAT> {
        Ok(kernel(&o).map(|k| k.broadening(mu.len(), &mu.window))?)
    }

    /// The average with moments of more vectors of the same operator and window. Moments of another operator are
    /// refused, and so are moments that share a vector.
    #[rhai_fn(global, name = "+", return_raw)]
    pub fn merge(a: SharedMoments, b: SharedMoments) -> Fallible<SharedMoments> {
        Ok(a.merge(&b).map(Rc::new)?)
    }

    /// Saves the moments of every vector with their window: as NPZ, JSON or CSV by the file's name.
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_moments(mu: &mut SharedMoments, file: &str) -> Fallible<()> {
        Ok(mu.to_table().and_then(|table| save_data(table.into(), file))?)
    }

    /// The moments of `count` of the vectors, from number `first` on.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let mu = chebyshev(h, window(-2.0, 2.0), unit_block(h, [0, 1])).run(3).moments();
    /// assert(mu.select(1, 1).vectors == 1, "one vector");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn select(mu: &mut SharedMoments, first: INT, count: INT) -> Fallible<SharedMoments> {
        Ok(some_of(first, count).and_then(|range| mu.select(range)).map(Rc::new)?)
    }

    /// The density per energy and state at `energies`. Its integral over the window is one. At the ends of the window
    /// it can grow as 1/sqrt(1 - x^2); a sum over few equally spaced energies misses a part of this weight.
    ///
    /// # Options
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(64), #{ hopping: -1.0 });
    /// let mu = kpm::moments(h, #{ moments: 32, window: window(-2.2, 2.2) });
    /// let e = linspace(-2.2, 2.2, 400);
    /// assert_close(mu.density(e, #{}).integrate(e), 1.0, 1e-3);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn density(mu: &mut SharedMoments, energies: Series, o: Options) -> Fallible<Series> {
        let (energies, kernel) = (numbers(&energies)?, kernel(&o)?);
        let mu = Moments::clone(mu);
        let density = task::apart(move || Ok(mu.density(&energies, kernel)))?;
        Ok(Series::Real(density))
    }

    /// The standard error of `density` over the vectors (Student's for few vectors); NaN for a single vector.
    ///
    /// # Options
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    #[rhai_fn(global, pure, return_raw)]
    pub fn density_error(mu: &mut SharedMoments, energies: Series, o: Options) -> Fallible<Series> {
        let (energies, kernel) = (numbers(&energies)?, kernel(&o)?);
        let mu = Moments::clone(mu);
        let error = task::apart(move || Ok(mu.density_error(&energies, kernel)))?;
        Ok(Series::Real(error))
    }

    /// Fraction of the spectral weight between two energies, the integral of `density`.
    ///
    /// # Options
    /// - `kernel`, `parameter`: as for `kpm::dos`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(64), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let mu = kpm::moments(h, #{ moments: 64, vectors: 8, seed: 1 });
    /// let e = linspace(-1.0, 0.5, 4001);
    /// for kernel in ["jackson", "lorentz"] {
    ///     let o = #{ kernel: kernel };
    ///     assert_close(mu.weight_between(-1.0, 0.5, o), mu.density(e, o).integrate(e), 1e-6);
    /// }
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn weight_between(mu: &mut SharedMoments, lower: Float, upper: Float, o: Options) -> Fallible<FLOAT> {
        Ok(mu.weight_between(lower, upper, kernel(&o)?).map(|(weight, _)| weight)?)
    }

    /// The standard error of `weight_between` over the vectors (Student's for few vectors); NaN for a single vector.
    ///
    /// # Options
    /// - those of `weight_between`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(64), #{ hopping: -1.0, disorder: 1.0, seed: 1 });
    /// let mu = kpm::moments(h, #{ moments: 64, vectors: 8 });
    /// assert(mu.weight_error(-1.0, 0.0) < 0.2 && mu.weight_error(-9.0, 9.0) < 1e-12, "all of the weight is known");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn weight_error(mu: &mut SharedMoments, lower: Float, upper: Float, o: Options) -> Fallible<FLOAT> {
        Ok(mu.weight_between(lower, upper, kernel(&o)?).map(|(_, error)| error)?)
    }

    /// The first `count` moments of the columns of `v`, accumulated in one of the ways compared by Zhang et al. (2013):
    /// "full-map", "sliding-window", "divided" (one moment per product) or "fused" (two).
    ///
    /// # Options
    /// - `overwrite` (true): T_n r overwrites T_(n-2) r, called OMAP in the paper; otherwise it has a vector of its
    ///   own.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let w = window(-2.0, 2.0);
    /// let v = random_block(h, 2);
    /// assert_close(kpm::accumulate(h, w, v, 8, "full-map")[6], kpm::accumulate(h, w, v, 8, "fused")[6], 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn accumulate(
        h: Operator,
        window: Window,
        v: Vector,
        count: INT,
        how: &str,
        o: Options,
    ) -> Fallible<SharedMoments> {
        let (how, block) = (accumulation(how)?, (*v.block).clone());
        let (overwrite, task) = (o.flag("overwrite")?, session()?.task(true));
        let mut mu = method::accumulate(&h, window, block, orders(count)?, how, overwrite, &task)?;
        mu.record = Provenance::of(&[&h], &v.draws)?;
        mu.seconds = crate::ranks::told(mu.seconds)?;
        Ok(Rc::new(mu))
    }

    /// Bytes that `kpm::accumulate` needs beside the operator, of all ranks together: the block and the vectors that
    /// the method keeps.
    ///
    /// # Options
    /// - those of `kpm::accumulate`.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::cubic(32, 32, 32), #{ hopping: -1.0 });
    /// let v = random_block(h, 1);
    /// let bytes = kpm::accumulate_bytes(v, 128, "sliding-window", #{ overwrite: false });
    /// assert(bytes == 32 * h.dim + 8 * 128 ** 2 + 8 * 128, "the formula of the paper");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn accumulate_bytes(v: Vector, count: INT, how: &str, o: Options) -> Fallible<INT> {
        Ok(accumulation(how)?.bytes(&v.block, orders(count)?, o.flag("overwrite")?) as INT)
    }

    /// The Fermi function 1/(exp((E - potential)/temperature) + 1) as a Chebyshev series, for `clenshaw` and
    /// `kpm::polynomial`: for an operator H it is the matrix of <c_j^dagger c_i>. Above zero temperature the series has
    /// as many terms as needed, about 10 a/T in a window of half width a. At zero temperature a kernel damps the series
    /// of the step.
    ///
    /// # Options
    /// - `potential` (0.0): chemical potential.
    /// - `temperature` (float >= 0, 0.0): an energy (k_B = 1).
    /// - `moments` (2 <= int <= 1073741824, 256): terms of the series; only with `temperature: 0.0`. The width of the
    ///   step is the broadening of `kpm::moments_for`.
    /// - `kernel`, `parameter`: as for `kpm::dos`; only with `temperature: 0.0`.
    ///
    /// # Example
    /// ```rhai
    /// let f = kpm::fermi(window(-2.0, 2.0), #{ temperature: 0.1 });
    /// assert_close(f.at(0.3), 1.0 / (exp(3.0) + 1.0), 1e-12);
    /// assert_close(kpm::fermi(window(-2.0, 2.0)).at(1.0), 0.0, 1e-3);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn fermi(window: Window, o: Options) -> Fallible<Rc<method::Expansion>> {
        let (potential, temperature) = (o.float("potential")?, o.float("temperature")?);
        let terms = o.count("moments")?;
        let kernel = kernel(&o)?;
        Ok(method::fermi_series(window, potential, temperature, terms, kernel).map(Rc::new)?)
    }

    /// The function of an operator that a Chebyshev series represents, as an operator. It is computed when it is
    /// applied to a vector. The spectrum must lie in the window of the series.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// let square = chebyshev_expand(|e| e * e, window(-2.0, 2.0), #{ terms: 3 });
    /// let v = random_block(h, 1);
    /// assert_close(norm(kpm::polynomial(h, square) * v - h * (h * v)), 0.0, 1e-13);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn polynomial(h: Operator, series: Rc<method::Expansion>) -> Fallible<Operator> {
        series.window.must_hold(&h, &session()?.task(false))?;
        Ok(method::polynomial(&h, &series)?)
    }
}

#[export_module(root = "crate::script::native")]
mod passes {
    /// Whether the spectrum of an operator, whose window this is, is one level but for rounding.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [0, 1], [0.7, 0.7]);
    /// assert(internal::is_one_level(h, spectral_window(h)), "twice 0.7");
    /// ```
    pub fn is_one_level(h: Operator, window: Window) -> bool {
        window.is_of_one_level(&h)
    }

    /// Vector by vector, (1 - weight) of moments and weight of others:
    /// what differs between momenta is no error of random vectors.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let mu = kpm::moments(h, #{ moments: 8, vectors: 4 });
    /// assert(internal::mixed(mu, mu, 0.5).vectors == 4, "as many as before");
    /// ```
    #[rhai_fn(name = "mixed", return_raw)]
    pub fn mixed_moments(a: SharedMoments, b: SharedMoments, weight: FLOAT) -> Fallible<SharedMoments> {
        Ok(Rc::new(a.mixed(&b, weight)?))
    }

    /// Whether moments may be of the operator and first vector of others, by what both know of where they come from.
    ///
    /// # Example
    /// ```rhai
    /// let h = sparse([0, 1], [1, 0], [1.0, 1.0]);
    /// let mu = |seed| kpm::moments(h, #{ moments: 8, vectors: 1, seed: seed });
    /// assert(internal::fits(mu.call(1), mu.call(1)) && !internal::fits(mu.call(1), mu.call(2)), "another seed");
    /// ```
    pub fn fits(a: SharedMoments, b: SharedMoments) -> bool {
        a.record.fits(&b.record)
    }

    /// The energy that tolerances are meant in where energies are of this size: 1, or a power of two near it where that
    /// is below 0.01 or above 1e4.
    ///
    /// # Example
    /// ```rhai
    /// assert(internal::energy_unit(3.0) == 1.0, "an ordinary size");
    /// assert(internal::energy_unit(8.0e-20) < 1.0e-19, "joules");
    /// ```
    pub fn energy_unit(size: FLOAT) -> FLOAT {
        method::unit_of(size)
    }

    /// How many of `wanted` vectors are best run side by side: as many as are fastest and fit into memory.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });
    /// assert(internal::vectors_per_pass(h, 2) <= 2, "no more than wanted");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn vectors_per_pass(h: Operator, wanted: INT) -> Fallible<INT> {
        if wanted < 1 {
            return Err(Error::input(format!("{wanted} vectors")).hint("ask for one at least").into());
        }
        let vector = h.dim() * h.dtype().bytes();
        let fit = h.device().memory().free / (3 * vector).max(1);
        if fit == 0 {
            let text = format!("two vectors of {} rows do not fit into memory", h.dim());
            return Err(Error::memory(text).hint("use a smaller lattice or `precision: \"single\"`").into());
        }
        let best = wanted.min(h.device().preferred_columns() as INT);
        if (fit as INT) < best {
            session()?.note(&format!(
                "{fit} vectors of {} fit into memory together; {best} would be faster",
                human(vector as u128)
            ));
        }
        Ok(best.min(fit as INT))
    }
}
