//! Smearing and flow.

use rhai::plugin::*;
use rhai::{Dynamic, Map};

use crate::gauge::{self, Links};
use crate::number::{Series, Table};
use crate::script::{Fallible, Options, session};

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(smearing)
}

#[export_module(root = "crate::script::native")]
mod smearing {
    /// Stout smearing (Morningstar, Peardon 2004). A step multiplies the shortest waves by 1 - 16 rho.
    ///
    /// # Options
    /// - `rho` (0.1): weight of the staples; for several steps 0.125 at most, because above it these waves grow.
    /// - `steps` (int >= 0, 1): how often.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// assert(gauge::plaquette(gauge::stout(u, #{ rho: 0.1, steps: 2 })) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn stout(u: Links, o: Options) -> Fallible<Links> {
        let (rho, steps) = (o.float("rho")?, o.count("steps")?);
        Ok(gauge::stout(&u, rho, steps, &session()?.task(false))?)
    }

    /// APE smearing (Albanese et al. 1987): links mixed with their staples and projected back onto SU(3). A
    /// step multiplies the shortest waves by 1 - 16 alpha/6.
    ///
    /// # Options
    /// - `alpha` (0.5): weight of the six staples together, 1 at most; for several steps 0.75 at most, because above it
    ///   these waves grow.
    /// - `steps` (int >= 0, 1): how often.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// assert(gauge::plaquette(gauge::ape(u, #{ steps: 2 })) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn ape(u: Links, o: Options) -> Fallible<Links> {
        let (alpha, steps) = (o.float("alpha")?, o.count("steps")?);
        Ok(gauge::ape(&u, alpha, steps, &session()?.task(false))?)
    }

    /// The Wilson flow (Luescher 2010): a map of the flowed field `links` and the `table` of `time`, `plaquette`,
    /// `energy` (the action density E by clovers), `t2_energy` (t^2 E) and the topological `charge`.
    ///
    /// # Options
    /// - `time` (1.0): flow time in lattice units.
    /// - `step` (0.02): step of the third-order Runge-Kutta scheme.
    /// - `measure` (int >= 0, 0): steps between two rows of the table; 0 for one row at the end.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.5);
    /// let flow = gauge::wilson_flow(u, #{ time: 0.2, step: 0.05, measure: 2, progress: false });
    /// assert(flow.table.rows == 2 && gauge::plaquette(flow.links) > gauge::plaquette(u), "smoother");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wilson_flow(u: Links, o: Options) -> Fallible<Map> {
        let (time, step) = (o.float("time")?, o.float("step")?);
        let (links, rows) = gauge::wilson_flow(&u, time, step, o.count("measure")?, &o.task()?)?;
        let names = ["time", "plaquette", "energy", "t2_energy", "charge"];
        let column = |k: usize| Series::Real(rows.iter().map(|r| r[k]).collect());
        let table = Table::from_columns(names.into_iter().enumerate().map(|(k, n)| (n, column(k))))?;
        let mut map = Map::new();
        map.insert("links".into(), Dynamic::from(links));
        map.insert("table".into(), Dynamic::from(table));
        Ok(map)
    }
}
