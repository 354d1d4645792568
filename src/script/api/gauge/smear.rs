//! Smearing and flow.

use rhai::plugin::*;
use rhai::{Dynamic, Map};

use crate::error::Result;
use crate::gauge::{self, Links};
use crate::number::{Series, Table};
use crate::script::{At, Failure, Options, session};

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(smearing)
}

#[export_module]
mod smearing {
    /// Stout smearing (Morningstar, Peardon 2004).
    ///
    /// # Options
    /// - `rho` (0.1): weight of the staples.
    /// - `steps` (1): how often.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// assert(gauge::plaquette(gauge::stout(u, #{ rho: 0.1, steps: 2 })) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn stout(ctx: NativeCallContext, u: Links, options: Map) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let (rho, steps) = (o.float_or("rho", 0.1).at(&ctx)?, o.count_or("steps", 0, 1).at(&ctx)?);
        o.finish()?;
        gauge::stout(&u, rho, steps, &session(&ctx).at(&ctx)?.task(false)).at(&ctx)
    }

    #[rhai_fn(name = "stout", return_raw)]
    pub fn stout_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Links, Failure> {
        stout(ctx, u, Map::new())
    }

    /// APE smearing (Albanese et al. 1987): links mixed with their staples and projected back onto SU(3).
    ///
    /// # Options
    /// - `alpha` (0.5): weight of the six staples together.
    /// - `steps` (1): how often.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// assert(gauge::plaquette(gauge::ape(u, #{ steps: 2 })) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn ape(ctx: NativeCallContext, u: Links, options: Map) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let (alpha, steps) = (o.float_or("alpha", 0.5).at(&ctx)?, o.count_or("steps", 0, 1).at(&ctx)?);
        o.finish()?;
        gauge::ape(&u, alpha, steps, &session(&ctx).at(&ctx)?.task(false)).at(&ctx)
    }

    #[rhai_fn(name = "ape", return_raw)]
    pub fn ape_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Links, Failure> {
        ape(ctx, u, Map::new())
    }

    /// The Wilson flow (Luescher 2010): a map of the flowed field `links` and the `table` of flow time, plaquette, action
    /// density E (clover), t^2 E and topological charge.
    ///
    /// # Options
    /// - `time` (1.0): flow time in lattice units.
    /// - `step` (0.02): step of the third-order Runge-Kutta scheme.
    /// - `measure` (0): steps between two rows of the table; 0 for one row at the end.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// let flow = gauge::wilson_flow(u, #{ time: 0.2, step: 0.05, measure: 2, progress: false });
    /// assert(flow.table.rows == 2 && gauge::plaquette(flow.links) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wilson_flow(ctx: NativeCallContext, u: Links, options: Map) -> std::result::Result<Map, Failure> {
        let o = Options::new(&ctx, options);
        let read = || -> Result<_> {
            let (time, step) = (o.float_or("time", 1.0)?, o.float_or("step", 0.02)?);
            Ok((time, step, o.count_or("measure", 0, 0)?, o.task()?))
        };
        let (time, step, measure, task) = read().at(&ctx)?;
        o.finish()?;
        let flow = || -> Result<Map> {
            let (links, rows) = gauge::wilson_flow(&u, time, step, measure, &task)?;
            let names = ["time", "plaquette", "energy", "t2_energy", "charge"];
            let column = |k: usize| Series::Real(rows.iter().map(|r| r[k]).collect());
            let table = Table::from_columns(names.into_iter().enumerate().map(|(k, n)| (n, column(k))))?;
            let mut map = Map::new();
            map.insert("links".into(), Dynamic::from(links));
            map.insert("table".into(), Dynamic::from(table));
            Ok(map)
        };
        flow().at(&ctx)
    }

    #[rhai_fn(name = "wilson_flow", return_raw)]
    pub fn wilson_flow_plain(ctx: NativeCallContext, u: Links) -> std::result::Result<Map, Failure> {
        wilson_flow(ctx, u, Map::new())
    }
}
