//! Gauge fields by rule: unit, random, of constant flux, the reference field that anyone can write down, and by
//! functions of scripts.

use rhai::plugin::*;
use rhai::{FnPtr, INT};

use super::{cold, coordinates, su3_of};
use crate::error::Error;
use crate::gauge::Links;
use crate::lattice::Lattice;
use crate::script::callback::Callback;
use crate::script::native::Float;
use crate::script::{Fallible, Options, session};
use crate::task;

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(make_functions)
}

#[export_module(root = "crate::script::native")]
mod make_functions {
    /// The unit gauge field: every link is the unit matrix. Fermions have the boundary conditions of the lattice. In
    /// `boundary` of a lattice one name sets all four directions; in `boundary` of a gauge field it sets only the time
    /// direction.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(gauge::plaquette(gauge::unit(lattice::hypercubic(4, 4, 4, 4))), 1.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn unit(lattice: Lattice) -> Fallible<Links> {
        Ok(cold(&lattice)?)
    }

    /// A gauge field whose links come from a function. The function takes the coordinates of a site, an array of four
    /// whole numbers, and a direction from 0 to 3. It returns a 3 x 3 Matrix in SU(3), to 1e-10. With several ranks,
    /// each rank calls it for all links and keeps those of its box.
    ///
    /// # Options
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// // A constant potential in time: the Polyakov loop turns, the plaquettes do not.
    /// let u = gauge::from(lattice::hypercubic(2, 2, 2, 4), |site, mu| {
    ///     let phase = if mu == 3 { exp(0.1 * I) } else { exp(0.0 * I) };
    ///     diagonal([phase, 1.0 / phase, 1.0])
    /// });
    /// assert_close(gauge::plaquette(u), 1.0, 1e-14);
    /// assert_close(gauge::polyakov_loop(u), (1.0 + 2.0 * cos(0.4)) / 3.0, 1e-14);
    /// ```
    #[rhai_fn(name = "from", return_raw)]
    pub fn from_function(
        ctx: NativeCallContext,
        lattice: Lattice,
        link: FnPtr,
        o: Options,
    ) -> Fallible<Links> {
        let task = o.task()?;
        let calls = Callback::new(&ctx);
        let mut each = |x: [usize; 4], mu: usize| su3_of(&calls.call(&link, (coordinates(x), mu as INT))?);
        let field = cold(&lattice).and_then(|u| u.given(&mut each, &task));
        calls.finish(field)
    }

    /// A gauge field of Haar-random links.
    ///
    /// # Options
    /// - `seed` (int or string, the session's): the seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(4, 4, 4, 4), #{ seed: 1 });
    /// assert_close(gauge::plaquette(u), 0.0, 0.05);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random(lattice: Lattice, o: Options) -> Fallible<Links> {
        let seed = o.seed()?;
        let unit = cold(&lattice)?;
        Ok(task::apart(move || unit.random(seed))?)
    }

    /// The reproducible reference field U = exp(i sum_a theta_a lambda_a) with the Gell-Mann matrices and theta_a = r
    /// (2 u - 1). Here u is the first output of SplitMix64 for seed 2^40 + 32 site + 8 mu + a, mapped to [0, 1).
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(gauge::plaquette(u), 0.721344433725904, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn reference_field(lattice: Lattice, r: Float) -> Fallible<Links> {
        // Larger phases have lost all their digits to rounding.
        if !(r.abs() <= 1e6) {
            return Err(Error::input(format!("a width r of {r:?}")).hint("it is 1e6 at most").into());
        }
        let unit = cold(&lattice)?;
        Ok(task::apart(move || unit.reference_field(r))?)
    }

    /// A field diag(U, U^-1, 1) of constant abelian flux; its topology is known if the flux is weak. With m quanta in
    /// the planes its charge is 2 (m01 m23 - m02 m13 + m03 m12), and the index of the overlap operator is minus the
    /// charge. The flux is weak if the phases f = 2 pi |m|/(L_p L_q) of plaquettes are at most pi/2 and their sum over
    /// the planes is below 2 (1 + s) with s of the kernel. In a stronger flux modes cross, and the index changes; a
    /// note says so if this is possible at s = 0. Both bounds were found by computing the index on 4^4 lattices and not
    /// tested on larger ones.
    ///
    /// # Options
    /// - `plane01` (0), `plane02` (0), `plane03` (0), `plane12` (0), `plane13` (0), `plane23` (0): flux quanta
    ///   through each plane, whole numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::constant_flux(lattice::hypercubic(4, 4, 4, 4), #{ plane01: 1, plane23: 1 });
    /// assert_close(gauge::plaquette(u), (1.0 + 2.0 * cos(PI / 8.0)) / 9.0 + 2.0 / 3.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn constant_flux(lattice: Lattice, o: Options) -> Fallible<Links> {
        let planes = [
            ("plane01", (0, 1)),
            ("plane02", (0, 2)),
            ("plane03", (0, 3)),
            ("plane12", (1, 2)),
            ("plane13", (1, 3)),
            ("plane23", (2, 3)),
        ];

        let mut quanta = Vec::new();
        for (key, plane) in planes {
            if let Some(m) = o.maybe::<INT>(key) {
                quanta.push((plane, m));
            }
        }
        let u = cold(&lattice)?;
        let (largest, sum) = u.flux(&quanta);
        let strong = largest > std::f64::consts::FRAC_PI_2 * (1.0 + 1e-9) || sum >= 2.0;
        if quanta.iter().filter(|(_, m)| *m != 0).count() > 1 && strong {
            session()?.note(&format!(
                    "the flux is strong: {largest:.2} in a plane, {sum:.2} in all; the index is -2 (m01 m23 - m02 m13 \
                     + m03 m12) \
                     where no plane has more than pi/2, and all together less than 2 (1 + s)"
                ));
        }
        Ok(task::apart(move || u.constant_flux(&quanta))?)
    }

    /// The field in a random gauge. Observables and spectra do not change.
    ///
    /// # Options
    /// - `seed` (int or string, the session's): the seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// assert_close(gauge::plaquette(gauge::random_gauge(u, #{ seed: 1 })), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn random_gauge(u: Links, o: Options) -> Fallible<Links> {
        let seed = o.seed()?;
        Ok(task::apart(move || u.random_gauge(seed))?)
    }
}
