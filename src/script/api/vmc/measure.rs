//! Statistics of series, and what walkers tell beside their energies.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Engine, FLOAT, INT, Map};

use super::walk::{Walk, walk};
use crate::error::{Error, Result};
use crate::montecarlo::jastrow::Setting;
use crate::montecarlo::observables;
use crate::montecarlo::statistics::{self, Blocked};
use crate::number::{Series, Table};
use crate::script::{At, Failure, Options};

/// Registers the type and functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Rc<Blocked>>("Blocked");
    engine.register_global_module(exported_module!(measure_functions).into());
}

fn measured<T>(walk: &Walk, f: impl Fn(observables::Positions, &Setting) -> Result<T>) -> Result<T> {
    walk!(walk,
        w => {
            let all: Vec<&[[f64; 3]]> = w.places().into_iter().map(Vec::as_slice).collect();
            f(&all, &w.psi().setting())
        },
        _l => Err(Error::input("walkers on a lattice have no distances").hint("use `local_value` with an OpSum")))
}

#[export_module]
mod measure_functions {
    /// The mean of a correlated series with its error: neighbours are averaged in pairs until the error stays (Flyvbjerg and
    /// Petersen); the plateau is found without help. Properties: `mean`, `error`, `variance`, `autocorrelation` (integrated,
    /// 1 for independent elements), `block`, `plateau` (whether there is one), `levels` (a Table).
    ///
    /// # Example
    /// ```rhai
    /// let stats = blocked(series([1.0, 2.0, 1.5, 2.5, 1.0, 2.0, 1.5, 2.5]));
    /// assert_close(stats.mean, 1.75, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn blocked(ctx: NativeCallContext, data: Series) -> std::result::Result<Rc<Blocked>, Failure> {
        let find = || statistics::blocked(data.as_real("blocked")?);
        find().map(Rc::new).at(&ctx)
    }

    /// The autocorrelation function of a series for lags 0 to `lags`, 1 at lag 0.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(autocorrelation(series([1.0, -1.0, 1.0, -1.0]), 1)[1], -1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn autocorrelation(
        ctx: NativeCallContext,
        data: Series,
        lags: INT,
    ) -> std::result::Result<Series, Failure> {
        let find = || {
            let lags = usize::try_from(lags).map_err(|_| Error::input(format!("{lags} lags")))?;
            statistics::autocorrelation(data.as_real("autocorrelation")?, lags).map(Series::Real)
        };
        find().at(&ctx)
    }

    /// The mean of the series.
    #[rhai_fn(global, get = "mean", pure)]
    pub fn mean(b: &mut Rc<Blocked>) -> FLOAT {
        b.mean
    }

    /// The standard error of the mean, correlations included; of ten blocks or fewer by Student's distribution.
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

    /// Elements a block where the error stays.
    #[rhai_fn(global, get = "block", pure)]
    pub fn block(b: &mut Rc<Blocked>) -> INT {
        b.block as INT
    }

    /// Whether the series was long enough for a plateau.
    #[rhai_fn(global, get = "plateau", pure)]
    pub fn plateau(b: &mut Rc<Blocked>) -> bool {
        b.plateau
    }

    /// The error of every level of blocking: a Table of `block`, `error`, `uncertainty`.
    #[rhai_fn(global, get = "levels", pure)]
    pub fn levels(b: &mut Rc<Blocked>) -> Table {
        b.levels.clone()
    }

    /// The pair correlation function g(r) of the walkers as they are: a Table of `r`, `total`, `same` and `opposite`, with
    /// `total_error`, `same_error` and `opposite_error` over the walkers (of one walker none is known: NaN; that of an empty bin is
    /// one pair's). In a cell, 1 stands for independent electrons: each column is divided by the number of its pairs, so that `same` is the
    /// g(r) of the literature, which divides by the density squared, times N/(N - 1) of N electrons of one spin (and `total`
    /// of N in all). In open space the columns are densities of the distance. `vmc::run` takes means over a walk, with errors by blocks of it.
    ///
    /// # Options
    /// - `bins` (50): how many.
    /// - `cutoff` (float, the largest that fits into the cell): in bohr.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(3), #{ up: 3 }), #{ count: 4, seed: 1 });
    /// let g = pair_correlation(walk, #{ bins: 20, cutoff: 10.0 });
    /// assert_close(g.total.sum() * 0.5, 1.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn pair_correlation(
        ctx: NativeCallContext,
        walk: &mut Walk,
        options: Map,
    ) -> std::result::Result<Table, Failure> {
        let o = Options::new(&ctx, options);
        let read = || Ok((o.count_or("bins", 1, 50)?, o.float("cutoff")?));
        let (bins, cutoff) = read().at(&ctx)?;
        o.finish()?;
        measured(walk, |all, setting| observables::pair_correlation(all, setting, bins, cutoff)).at(&ctx)
    }

    #[rhai_fn(name = "pair_correlation", return_raw)]
    pub fn pair_correlation_plain(
        ctx: NativeCallContext,
        walk: &mut Walk,
    ) -> std::result::Result<Table, Failure> {
        pair_correlation(ctx, walk, Map::new())
    }

    /// The structure factor S(k) of walkers in a cell as they are, averaged over reciprocal vectors of one length: a Table of
    /// `k`, `S` and `vectors` (how many), with `S_error` over the walkers.
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
    pub fn structure_factor(
        ctx: NativeCallContext,
        walk: &mut Walk,
        options: Map,
    ) -> std::result::Result<Table, Failure> {
        let o = Options::new(&ctx, options);
        let cutoff = o.float_or("cutoff", 2.0).at(&ctx)?;
        o.finish()?;
        measured(walk, |all, setting| observables::structure_factor(all, setting, cutoff)).at(&ctx)
    }

    #[rhai_fn(name = "structure_factor", return_raw)]
    pub fn structure_factor_plain(
        ctx: NativeCallContext,
        walk: &mut Walk,
    ) -> std::result::Result<Table, Failure> {
        structure_factor(ctx, walk, Map::new())
    }

    /// The density of walkers as they are, along one direction: a Table of `x`, `density`, `up` and `down`, whose integral is
    /// the number of electrons, with `density_error`, `up_error` and `down_error` over the walkers. In a cell x is the fractional coordinate along a lattice vector.
    ///
    /// # Options
    /// - `axis` (0): the coordinate, or the lattice vector.
    /// - `bins` (50): how many.
    /// - `from` (float), `to` (float): the range in open space.
    ///
    /// # Example
    /// ```rhai
    /// let walk = walkers(slater_jastrow(orbitals::oscillator(3), #{ up: 3 }), #{ count: 4, seed: 1 });
    /// let n = electron_density(walk, #{ bins: 10, from: -10.0, to: 10.0 });
    /// assert_close(n.density.sum() * 2.0, 3.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn electron_density(
        ctx: NativeCallContext,
        walk: &mut Walk,
        options: Map,
    ) -> std::result::Result<Table, Failure> {
        let o = Options::new(&ctx, options);
        let read =
            || Ok((o.count_or("axis", 0, 0)?, o.count_or("bins", 1, 50)?, o.float("from")?, o.float("to")?));
        let (axis, bins, from, to) = read().at(&ctx)?;
        o.finish()?;
        let range = from.zip(to);
        measured(walk, |all, setting| observables::density(all, setting, axis, bins, range)).at(&ctx)
    }

    #[rhai_fn(name = "electron_density", return_raw)]
    pub fn electron_density_plain(
        ctx: NativeCallContext,
        walk: &mut Walk,
    ) -> std::result::Result<Table, Failure> {
        electron_density(ctx, walk, Map::new())
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(b: &mut Rc<Blocked>) -> String {
        let warning = if b.plateau { "" } else { ", no plateau" };
        format!("{} +- {:.2e} ({} elements, tau {:.2}{warning})", b.mean, b.error, b.count, b.autocorrelation)
    }
}
