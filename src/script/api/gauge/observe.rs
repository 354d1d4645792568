//! Numbers of gauge fields: plaquette, Wilson and Polyakov loops, topological charge.

use rhai::plugin::*;
use rhai::{FLOAT, INT};

use super::direction;
use crate::error::{Error, Result};
use crate::gauge::{self, Links};
use crate::number::{C64, Series, Table};
use crate::script::api::lattice::ints;
use crate::script::{Fallible, Options, session};

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(observables)
}

/// The directions of the two sides of loops, by the option `plane`: one of the first, averaged over, and the second.
fn plane_of(o: &Options) -> Result<(Vec<usize>, usize)> {
    let Some(value) = o.given("plane") else { return Ok((vec![0, 1, 2], 3)) };
    let wrong = || Error::input("a plane is two different directions").hint("like `plane: [0, 3]`");
    match ints(&value.into_array().map_err(|_| wrong())?, "a plane").map_err(|_| wrong())?[..] {
        [mu, nu] if mu != nu => Ok((vec![direction(mu)?], direction(nu)?)),
        _ => Err(wrong()),
    }
}

/// The sides of a loop.
fn sides(r: INT, t: INT) -> Result<(usize, usize)> {
    let side = |n: INT| {
        usize::try_from(n).map_err(|_| {
            Error::input(format!("loops of {n} links")).hint("the sides of a loop have one link at least")
        })
    };
    Ok((side(r)?, side(t)?))
}

#[export_module(root = "crate::script::native")]
mod observables {
    /// The plaquette: the mean of Re Tr/3 over all elementary squares.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 8), 0.3);
    /// assert_close(gauge::plaquette(u), 0.723057395899683, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plaquette(u: Links) -> Fallible<FLOAT> {
        Ok(gauge::plaquette(&u)?)
    }

    /// The Polyakov loop: the mean of Tr/3 of the links once around the time direction, or `direction`.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(gauge::polyakov_loop(gauge::unit(lattice::hypercubic(2, 2, 2, 4))), 1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn polyakov_loop(u: Links) -> Fallible<C64> {
        Ok(gauge::polyakov(&u, 3)?)
    }

    #[rhai_fn(name = "polyakov_loop", return_raw)]
    pub fn polyakov_loop_along(u: Links, direction: INT) -> Fallible<C64> {
        Ok(gauge::polyakov(&u, super::direction(direction)?)?)
    }

    /// The Polyakov loop around the time direction, or around `direction`, at every site of the remaining
    /// three-dimensional lattice: a complex Series, the first direction fastest.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 3, 4, 2), #{ seed: 1 });
    /// let loops = gauge::polyakov_loops(u);
    /// assert(loops.len == 24, "a loop a site");
    /// assert_close(loops.mean(), gauge::polyakov_loop(u), 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn polyakov_loops(u: Links) -> Fallible<Series> {
        Ok(Series::Complex(gauge::polyakov_lines(&u, 3)?))
    }

    #[rhai_fn(name = "polyakov_loops", return_raw)]
    pub fn polyakov_loops_along(u: Links, direction: INT) -> Fallible<Series> {
        Ok(Series::Complex(gauge::polyakov_lines(&u, super::direction(direction)?)?))
    }

    /// The Wilson loop of r x t links: the mean of Re Tr/3 of all planar loops with t links along time (direction 3)
    /// and r along one of the three directions of space.
    ///
    /// # Options
    /// - `plane` (any, averaged over, see above): the directions of r and of t, like `[0, 1]`.
    ///
    /// # Example
    /// ```rhai
    /// // An area of 6 in a plane of constant flux; the other two directions of space have none.
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane03: 1 });
    /// let turned = (1.0 + 2.0 * cos(6.0 * PI / 8.0)) / 3.0;
    /// assert_close(gauge::wilson_loop(u, 2, 3), (turned + 2.0) / 3.0, 1e-14);
    /// assert_close(gauge::wilson_loop(u, 2, 3, #{ plane: [0, 3] }), turned, 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wilson_loop(u: Links, r: INT, t: INT, o: Options) -> Fallible<FLOAT> {
        let ((along, time), sides) = (plane_of(&o)?, sides(r, t)?);
        let task = session()?.task(false);
        Ok(gauge::wilson_loop(&u, &along, time, sides, &task)?)
    }

    /// The Wilson loops of all sizes up to rmax x tmax, as in `wilson_loop`: a Table of r, t and W. Products of links
    /// along lines are computed once and extended for larger loops.
    ///
    /// # Options
    /// - `plane` (any, averaged over): the directions of r and of t, as for `gauge::wilson_loop`.
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let loops = gauge::wilson_loops(u, 2, 3, #{ progress: false });
    /// assert(loops.rows == 6 && loops.r[5] == 2.0 && loops.t[5] == 3.0, "t runs fastest");
    /// assert_close(loops.W[5], gauge::wilson_loop(u, 2, 3), 1e-14);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn wilson_loops(u: Links, rmax: INT, tmax: INT, o: Options) -> Fallible<Table> {
        let ((along, time), sides) = (plane_of(&o)?, sides(rmax, tmax)?);
        let task = o.task()?;

        let means = gauge::wilson_loops(&u, &along, time, sides, &task)?;
        let column = |f: fn(usize, usize) -> usize| -> Vec<f64> {
            (0..means.len()).map(|k| (f(k, sides.1) + 1) as f64).collect()
        };
        Ok(Table::from_columns([
            ("r", column(|k, tmax| k / tmax)),
            ("t", column(|k, tmax| k % tmax)),
            ("W", means.clone()),
        ])?)
    }

    /// The topological charge of the clover field strength `F = (C - C^+)/(8i)`, with its trace, as in Grid. Some
    /// programs remove the trace, which changes the charge of rough fields by some per cent. On smooth fields the
    /// charge is close to an integer: smear or flow first.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 });
    /// assert_close(gauge::topological_charge(u), 1.899282407104, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn topological_charge(u: Links) -> Fallible<FLOAT> {
        Ok(gauge::topological_charge(&u)?)
    }
}
