//! Orbitals in closed form, in the module `orbitals`.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use crate::error::{Error, Result};
use crate::montecarlo::orbitals::OrbitalSet;
use crate::montecarlo::{Exponentials, Oscillator};
use crate::script::api::values::{count, real};
use crate::script::{Fallible, Options};

/// The functions, for the module `orbitals`.
pub(in crate::script::api) fn elementary_orbitals() -> Module {
    exported_module!(elementary_functions)
}

#[export_module(root = "crate::script::native")]
mod elementary_functions {
    /// The lowest `n` states of the harmonic oscillator, shell after shell: products of Hermite polynomials in
    /// sqrt(alpha) x and exp(-alpha x^2/2).
    ///
    /// # Options
    /// - `dimension` (int >= 1, 1): 1, 2 or 3.
    /// - `alpha` (1.0): the exponent. The states are exact if it equals the frequency of the trap.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(4, #{ dimension: 3 }), #{ up: 4 });
    /// let walk = walkers(psi, #{ count: 2, seed: 1 });
    /// assert_close(local_energy(walk, electrons(vmc::trap(1.0), #{ interaction: "none" })).mean(), 9.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn oscillator(n: INT, o: Options) -> Fallible<OrbitalSet> {
        let orbitals = Oscillator::new(count(n, "orbitals")?, o.count("dimension")?, o.float("alpha")?)?;
        Ok(OrbitalSet::other(Arc::new(orbitals)))
    }

    /// Orbitals exp(-zeta |r - R|), from an array of places R and exponents zeta.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::exponentials([[[0.0, 0.0, 0.0], 1.0]]), #{ up: 1 });
    /// let walk = walkers(psi, #{ count: 4, seed: 1 });
    /// let hydrogen = electrons(vmc::nuclei([[1.0, [0.0, 0.0, 0.0]]]), #{});
    /// assert_close(local_energy(walk, hydrogen).mean(), -0.5, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn exponentials(centres: Array) -> Fallible<OrbitalSet> {
        let one = |value: &Dynamic| -> Result<([f64; 3], f64)> {
            let [place, exponent] = super::super::pair(value, || {
                Error::input("an exponential orbital is a place and an exponent")
                    .hint("like [[0.0, 0.0, 0.0], 1.6875]")
            })?;
            Ok((super::super::point(&place, 3)?, real(&exponent, "an exponent")?))
        };
        let centres = centres.iter().map(one).collect::<Result<_>>()?;
        Ok(OrbitalSet::other(Arc::new(Exponentials::new(centres)?)))
    }
}
