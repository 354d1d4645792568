//! Properties and observables of `Links`.

use rhai::plugin::*;
use rhai::{Dynamic, Engine, FnPtr, INT};

use super::{coordinates, direction, site_of, su3_of};
use crate::backend::matrix::Wrap;
use crate::error::{Error, Result};
use crate::gauge::{Links, onto_su3};
use crate::lattice::Lattice;
use crate::number::memory::human;
use crate::number::{C64, Matrix, Series};
use crate::script::api::lattice::boundaries_of;
use crate::script::callback::Callback;
use crate::script::{Fallible, Options};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(links_functions).into());
}

/// The signs of fermions that cross boundaries, from the names of boundary conditions. A single name is that of the
/// time direction.
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

#[export_module(root = "crate::script::native")]
mod links_functions {
    /// The same field with other boundary conditions for fermions: one name for the time direction, or an array of
    /// four. (For a Lattice, one name sets all directions.) Links and observables of the gauge field do not change.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::hypercubic(4, 4, 4, 4);
    /// let u = gauge::reference_field(lat, 0.3).boundary("antiperiodic");
    /// let psi = wilson::reference_spinor(lat, 2);
    /// assert_close(norm(wilson::operator(u, #{ mass: 0.0 }) * psi) ** 2.0, 40643.2535605869, 1e-7);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn boundary(u: &mut Links, boundary: Dynamic) -> Fallible<Links> {
        Ok(u.with_sign(signs(&boundary)?))
    }

    /// Every link projected onto SU(3), by making its rows orthonormal.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 2, 2, 2), #{ seed: 1 });
    /// assert_close(gauge::plaquette(u.reunitarised()), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn reunitarised(u: &mut Links) -> Fallible<Links> {
        Ok(u.reunitarised()?)
    }

    /// A 3 x 3 Matrix projected onto SU(3), by making its rows orthonormal.
    ///
    /// # Example
    /// ```rhai
    /// let m = gauge::random(lattice::hypercubic(2, 2, 2, 2), #{ seed: 1 }).link(0, 0);
    /// assert(((1.01 * m).reunitarised() - m).norm() < 1e-14, "only the size was wrong");
    /// ```
    #[rhai_fn(global, name = "reunitarised", pure, return_raw)]
    pub fn reunitarised_matrix(m: &mut Matrix) -> Fallible<Matrix> {
        let near = onto_su3(&su3_of(&Dynamic::from(m.clone()))?)?;
        Ok(Matrix::new(3, 3, Series::Complex(near.to_vec()))?)
    }

    /// The link of a site in a direction, as a 3 x 3 Matrix. The site is given by its number or its four coordinates.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(u.link(0, 0).at(0, 0), 0.931715695544985 - 0.119709622606562 * I, 1e-14);
    /// assert(u.link([1, 2, 0, 3], 2) == u.link(1 + 4 * 2 + 64 * 3, 2), "the first coordinate runs fastest");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn link(u: &mut Links, site: Dynamic, direction: INT) -> Fallible<Matrix> {
        let (site, mu) = (site_of(&site, u.grid())?, super::direction(direction)?);
        Ok(Matrix::new(3, 3, Series::Complex(u.link(site, mu)?.to_vec()))?)
    }

    /// The field with one link replaced by a 3 x 3 Matrix in SU(3), to 1e-10. The site is given by its number or its
    /// four coordinates, together with a direction.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::unit(lattice::hypercubic(4, 4, 4, 4)).with_link([0, 0, 0, 1], 0, diagonal([-1.0, -1.0, 1.0]));
    /// // A link borders 6 of the 1536 plaquettes.
    /// assert_close(gauge::plaquette(u), 1.0 - 6.0 / 1536.0 * 4.0 / 3.0, 1e-14);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn with_link(u: &mut Links, site: Dynamic, direction: INT, m: Dynamic) -> Fallible<Links> {
        let (site, mu) = (site_of(&site, u.grid())?, super::direction(direction)?);
        Ok(u.with_link(site, mu, su3_of(&m)?)?)
    }

    /// The gauge transform of the field: U_mu(x) becomes g(x) U_mu(x) g(x+mu)^+. The function takes the coordinates of
    /// a site, an array of four whole numbers, and returns g, a 3 x 3 Matrix in SU(3). Observables and spectra do not
    /// change. With several ranks, each rank calls the function for all sites.
    ///
    /// # Options
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// let v = u.transformed(|x| diagonal([exp(0.5 * x[0] * I), exp(-0.5 * x[0] * I), 1.0]));
    /// assert_close(gauge::plaquette(v), gauge::plaquette(u), 1e-14);
    /// assert_close(v.link(0, 0).at(0, 0), u.link(0, 0).at(0, 0) * exp(-0.5 * I), 1e-14);
    /// ```
    #[rhai_fn(global, name = "transformed", pure, return_raw)]
    pub fn transformed_with(ctx: NativeCallContext, u: &mut Links, g: FnPtr, o: Options) -> Fallible<Links> {
        let task = o.task()?;
        let calls = Callback::new(&ctx);
        let mut each = |x: [usize; 4]| su3_of(&calls.call(&g, (coordinates(x),))?);
        let field = u.transformed_by(&mut each, &task);
        calls.finish(field)
    }

    /// The number of heatbath sweeps of the field so far; NERSC archives store it as SEQUENCE_NUMBER.
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
    pub fn lattice_of(u: &mut Links) -> Fallible<Lattice> {
        let wraps: Vec<Wrap> = u.sign().iter().map(|&s| Wrap::Phase(C64::new(s, 0.0))).collect();
        Ok(Lattice::hypercubic(&u.dims()).and_then(|l| l.boundary(&wraps))?)
    }

    #[rhai_fn(name = "*", return_raw)]
    pub fn times(u: Links, v: Links) -> Fallible<Links> {
        Ok(u.times(&v)?)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(u: &mut Links) -> String {
        let [x, y, z, t] = u.dims();
        let turned: Vec<String> = (0..4).filter(|&d| u.sign()[d] < 0.0).map(|d| d.to_string()).collect();
        let boundary = match turned.is_empty() {
            true => String::new(),
            false => format!(", fermions antiperiodic in direction {}", turned.join(" and ")),
        };
        format!("Links {x} x {y} x {z} x {t}, SU(3), {}{boundary}", human(u.bytes()))
    }
}
