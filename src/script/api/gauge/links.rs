//! What can be asked of `Links`.

use rhai::plugin::*;
use rhai::{Dynamic, Engine, INT};

use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::gauge::Links;
use crate::lattice::Lattice;
use crate::number::{C64, Matrix, Series};
use crate::operator::human_bytes;
use crate::script::api::lattice::boundaries_of;
use crate::script::{At, Failure};

/// Registers the methods.
pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(links_functions).into());
}

/// What fermions get for crossing boundaries, from the names of boundary conditions: one is that of time.
fn signs(value: &Dynamic) -> Result<[f64; 4]> {
    let wraps = boundaries_of(value)?;
    let sign = |wrap: &Wrap| match wrap {
        Wrap::Phase(p) if p.im == 0.0 && p.re.abs() == 1.0 => Ok(p.re),
        _ => Err(Error::input("fermions on a gauge field have periodic or antiperiodic boundaries")
            .hint("use \"periodic\" or \"antiperiodic\"")),
    };
    match &wraps[..] {
        [time] => Ok([1.0, 1.0, 1.0, sign(time)?]),
        [x, y, z, t] => Ok([sign(x)?, sign(y)?, sign(z)?, sign(t)?]),
        other => Err(Error::input(format!("{} boundaries for four directions", other.len()))
            .hint("give one for time, or an array of four")),
    }
}

#[export_module]
mod links_functions {
    /// The same field with other boundaries for fermions: one for the time direction, or an array of four. (One name for a
    /// Lattice's `boundary` is for all directions.) Links and observables of the gauge field do not change.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let u = gauge::reference_field(lat, 0.3).boundary("antiperiodic");
    /// let psi = wilson::reference_spinor(lat, 2);
    /// assert_close(norm(wilson::operator(u, #{ mass: 0.0 }) * psi) ** 2.0, 40643.2535605869, 1e-7);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn boundary(
        ctx: NativeCallContext,
        u: &mut Links,
        boundary: Dynamic,
    ) -> std::result::Result<Links, Failure> {
        Ok(u.with_sign(signs(&boundary).at(&ctx)?))
    }

    /// Every link projected onto SU(3), by making its rows orthonormal.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 2, 2, 2), #{ seed: 1 });
    /// assert_close(gauge::plaquette(u.reunitarised()), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(global, pure)]
    pub fn reunitarised(u: &mut Links) -> Links {
        u.reunitarised()
    }

    /// The link of a site in a direction as a 3 x 3 Matrix.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(u.link(0, 0).at(0, 0), 0.931715695544985 - 0.119709622606562 * I, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn link(
        ctx: NativeCallContext,
        u: &mut Links,
        site: INT,
        direction: INT,
    ) -> std::result::Result<Matrix, Failure> {
        let build = || {
            let mu = super::super::direction(direction)?;
            let sites = u.sites();
            let site = usize::try_from(site).ok().filter(|&x| x < sites).ok_or_else(|| {
                Error::input(format!("site {site} of a lattice of {sites}"))
                    .hint(format!("sites are numbered from 0 to {}", sites - 1))
            })?;
            Matrix::new(3, 3, Series::Complex(u.at(site, mu).to_vec()))
        };
        build().at(&ctx)
    }

    /// Heatbath sweeps that the field has had; NERSC archives keep them as SEQUENCE_NUMBER.
    ///
    /// # Example
    /// ```rhai
    /// assert(gauge::unit(lattice::hypercubic(2, 2, 2, 4)).sweeps == 0, "none yet");
    /// ```
    #[rhai_fn(global, get = "sweeps", pure)]
    pub fn sweeps(u: &mut Links) -> INT {
        INT::try_from(u.sweeps()).unwrap_or(INT::MAX)
    }

    /// The lattice of the field.
    ///
    /// # Example
    /// ```rhai
    /// assert(gauge::unit(lattice::hypercubic(2, 2, 2, 4)).lattice.sites == 32, "32 sites");
    /// ```
    #[rhai_fn(global, get = "lattice", pure, return_raw)]
    pub fn lattice_of(ctx: NativeCallContext, u: &mut Links) -> std::result::Result<Lattice, Failure> {
        let wraps: Vec<Wrap> = u.sign().iter().map(|&s| Wrap::Phase(C64::new(s, 0.0))).collect();
        Lattice::hypercubic(&u.dims()).and_then(|l| l.boundary(&wraps)).at(&ctx)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times(ctx: NativeCallContext, u: Links, v: Links) -> std::result::Result<Links, Failure> {
        u.times(&v).at(&ctx)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(u: &mut Links) -> String {
        let [x, y, z, t] = u.dims();
        let turned: Vec<String> = (0..4).filter(|&d| u.sign()[d] < 0.0).map(|d| d.to_string()).collect();
        let boundary = match turned.is_empty() {
            true => String::new(),
            false => format!(", fermions antiperiodic in direction {}", turned.join(" and ")),
        };
        format!("Links {x} x {y} x {z} x {t}, SU(3), {}{boundary}", human_bytes(u.bytes()))
    }
}
