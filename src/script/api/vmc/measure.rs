//! Statistics of series, and what walkers tell beside their energies.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Engine, FLOAT, INT};

use super::walk::{ScriptWalkers, walk};
use crate::error::{Error, Result};
use crate::montecarlo::jastrow::Setting;
use crate::montecarlo::observables;
use crate::montecarlo::statistics::{self, Blocked};
use crate::number::{Series, Table};
use crate::script::{Fallible, Options};

/// Registers the type and functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Rc<Blocked>>("Blocked");
    engine.register_global_module(exported_module!(measure_functions).into());
}

fn measured<T>(walk: &ScriptWalkers, f: impl Fn(observables::Positions, &Setting) -> Result<T>) -> Result<T> {
    walk!(walk,
        w => {
            let places = w.places()?;
            let all: Vec<&[[f64; 3]]> = places.iter().map(Vec::as_slice).collect();
            f(&all, &w.psi().setting())
        },
        _l => Err(Error::input("walkers on a lattice have no distances").hint("use `local_value` with an OpSum")))
}

#[export_module(root = "crate::script::native")]
mod measure_functions {
    /// The mean of a correlated series with its error. Neighbours are averaged in pairs until the error stays constant
    /// (Flyvbjerg and Petersen). The plateau is found automatically. Properties: `mean`, `error`, `variance`,
    /// `autocorrelation` (integrated, 1 for independent elements), `block`, `plateau` (whether there is one), `levels`
    /// (a Table). A plateau takes at least eight blocks and 35 autocorrelation times; without one the error is a lower
    /// limit.
    ///
    /// # Example
    /// ```rhai
    /// let data = series([1.0, 2.0, 1.5, 2.5, 1.0, 2.0, 1.5, 2.5]);
    /// let stats = blocked(data);
    /// assert_close(stats.mean, 1.75, 1e-15);
    /// assert_close(stats.variance, ((data - 1.75) ** 2.0).sum() / 7.0, 1e-15);
    /// // eight samples are too few to see what they share
    /// assert(!stats.plateau && stats.block == 1 && stats.levels.rows == 3, "no plateau");
    /// assert_close(stats.error, sqrt(stats.variance / 8.0 * stats.autocorrelation), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn blocked(data: Series) -> Fallible<Rc<Blocked>> {
        Ok(Rc::new(statistics::blocked(data.as_real("blocked")?)?))
    }

    /// The autocorrelation function of a series for lags 0 to `lags`, 1 at lag 0.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(autocorrelation(series([1.0, -1.0, 1.0, -1.0]), 1)[1], -1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn autocorrelation(data: Series, lags: INT) -> Fallible<Series> {
        let lags = usize::try_from(lags).map_err(|_| {
            Error::input(format!("{lags} lags"))
                .hint("say how many distances in the series to look at, 0 or more")
        })?;
        Ok(statistics::autocorrelation(data.as_real("autocorrelation")?, lags).map(Series::Real)?)
    }

    /// The mean of the series.
    #[rhai_fn(global, get = "mean", pure)]
    pub fn mean(b: &mut Rc<Blocked>) -> FLOAT {
        b.mean
    }

    /// The standard error of the mean, correlations included; for ten blocks or fewer by Student's distribution.
    #[rhai_fn(global, get = "error", pure)]
    pub fn error(b: &mut Rc<Blocked>) -> FLOAT {
        b.error
    }

    /// The variance of single elements.
    #[rhai_fn(global, get = "variance", pure)]
    pub fn variance(b: &mut Rc<Blocked>) -> FLOAT {
        b.variance
    }

    /// The integrated autocorrelation time in elements, 1 for independent ones.
    #[rhai_fn(global, get = "autocorrelation", pure)]
    pub fn autocorrelation_time(b: &mut Rc<Blocked>) -> FLOAT {
        b.autocorrelation
    }

    /// The number of elements per block at which the error stays constant.
    #[rhai_fn(global, get = "block", pure)]
    pub fn block(b: &mut Rc<Blocked>) -> INT {
        b.block as INT
    }

    /// Whether the series was long enough for a plateau; without one the error is a lower limit.
    #[rhai_fn(global, get = "plateau", pure)]
    pub fn plateau(b: &mut Rc<Blocked>) -> bool {
        b.plateau
    }

    /// The error of every level of blocking: a Table of `block`, `error`, `uncertainty`.
    #[rhai_fn(global, get = "levels", pure)]
    pub fn levels(b: &mut Rc<Blocked>) -> Table {
        b.levels.clone()
    }

    /// The pair correlation function g(r) of the present walkers: a Table of `r`, `total`, `same` and `opposite`, with
    /// `total_error`, `same_error` and `opposite_error` over the walkers. For one walker errors are NaN; the error of
    /// an empty bin is that of one pair. In a cell, each column is divided by its number of pairs, so independent
    /// electrons give 1. The g(r) of the literature is divided by the density squared instead: `same` is N/(N - 1)
    /// times that, for N electrons of one spin, and so is `total` for N electrons in all. In open space the columns are
    /// densities of the distance. `vmc::run` averages over a walk, with errors from its blocks.
    ///
    /// # Options
    /// - `bins` (int >= 1, 50): number of bins.
    /// - `cutoff` (float, the largest that fits into the cell): in bohr.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(3), #{ up: 3 }), #{ count: 4, seed: 1 });
    /// let g = pair_correlation(walk, #{ bins: 20, cutoff: 10.0 });
    /// assert_close(g.total.sum() * 0.5, 1.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn pair_correlation(walk: &mut ScriptWalkers, o: Options) -> Fallible<Table> {
        let (bins, cutoff) = (o.count("bins")?, o.maybe_float("cutoff")?);
        Ok(measured(walk, |all, setting| observables::pair_correlation(all, setting, bins, cutoff))?)
    }

    /// The structure factor S(k) of the present walkers in a cell, averaged over reciprocal vectors of equal length: a
    /// Table of `k`, `S` and `vectors` (how many), with `S_error` over the walkers.
    ///
    /// # Options
    /// - `cutoff` (2.0): the largest k, in 1/bohr.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(14, 1.0);
    /// let walk = walkers(slater_jastrow(orbitals::plane_waves(gas), #{ up: 7, down: 7 }), #{ count: 4, seed: 1 });
    /// assert(structure_factor(walk, #{ cutoff: 3.0 }).k[0] > 1.6, "2 pi over the edge of the cell");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn structure_factor(walk: &mut ScriptWalkers, o: Options) -> Fallible<Table> {
        let cutoff = o.float("cutoff")?;
        Ok(measured(walk, |all, setting| observables::structure_factor(all, setting, cutoff))?)
    }

    /// The density of the present walkers, along one direction: a Table of `x`, `density`, `up` and `down`, whose
    /// integral is the number of electrons, with `density_error`, `up_error` and `down_error` over the walkers. In a
    /// cell x is the fractional coordinate along a lattice vector.
    ///
    /// # Options
    /// - `axis` (int >= 0, 0): the coordinate, or the lattice vector.
    /// - `bins` (int >= 1, 50): number of bins.
    /// - `from` (float): where the range begins, in open space; only with `to`.
    /// - `to` (float): where it ends; only with `from`.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(3), #{ up: 3 }), #{ count: 4, seed: 1 });
    /// let n = electron_density(walk, #{ bins: 10, from: -10.0, to: 10.0 });
    /// assert_close(n.density.sum() * 2.0, 3.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn electron_density(walk: &mut ScriptWalkers, o: Options) -> Fallible<Table> {
        let (axis, bins) = (o.count("axis")?, o.count("bins")?);
        let range = o.maybe_float("from")?.zip(o.maybe_float("to")?);
        Ok(measured(walk, |all, setting| observables::density(all, setting, axis, bins, range))?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(b: &mut Rc<Blocked>) -> String {
        let (more, warning) = if b.plateau { ("", "") } else { (" or more", ", no plateau") };
        let (mean, error, tau) = (b.mean, b.error, b.autocorrelation);
        format!("{mean} +- {error:.2e}{more} ({} elements, tau {tau:.2}{warning})", b.count)
    }
}
