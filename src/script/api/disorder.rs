//! Disorder of models.

use rhai::plugin::*;
use rhai::{Dynamic, Engine, INT};

use super::model::{ScriptModel, block_of};
use super::values::real;
use crate::error::Result;
use crate::lattice::DisorderDistribution;
use crate::script::{Fallible, Options, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(disorder_functions).into());
}

fn distribution(o: &Options) -> Result<DisorderDistribution> {
    let names = [
        ("uniform", DisorderDistribution::Uniform),
        ("gaussian", DisorderDistribution::Gaussian),
        ("binary", DisorderDistribution::Binary),
    ];
    o.one_of("distribution", &names)
}

#[export_module(root = "crate::script::native")]
mod disorder_functions {
    /// Adds a random on-site energy to each site: uniform in [-width/2, width/2] (Anderson's disorder), or of another
    /// distribution. For the uniform one, site `i` gets width * (u - 1/2) with `u` from Philox (seed; stream
    /// "disorder", element `i`). Each call draws new numbers, even with the same seed: two calls give two independent
    /// disorders.
    ///
    /// # Options
    /// - `distribution` ("uniform" or "gaussian" or "binary"): `width` is the standard deviation of a Gaussian; binary
    ///   energies are -width/2 or width/2; not with `correlation`.
    /// - `correlation` (float > 0, none): a length, in lattice constants. Energies are then Gaussian of standard
    ///   deviation `width` with <E(r) E(r')> = width^2 exp(-|r - r'|^2/(2 correlation^2)).
    /// - `seed` (int or string, the session's): seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(100), 1);
    /// m.nearest(-1.0);
    /// m.disorder(2.0, #{ seed: 3 });
    /// m.disorder(0.3, #{ correlation: 5.0, seed: 3 });         // hills and valleys
    /// assert(m.build().is_hermitian(), "Hermitian");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn disorder(model: &mut ScriptModel, width: Dynamic, o: Options) -> Fallible<()> {
        let seed = o.seed()?;
        let width = real(&width, "the width of the disorder")?;
        if let Some(length) = o.maybe_float("correlation")? {
            return Ok(model.model.correlated_disorder(width, length, seed, &session()?.task(true))?);
        }
        Ok(model.model.random_energies(width, seed, distribution(&o)?)?)
    }

    /// Multiplies every hopping of the model by 1 + width x, with `x` a random number for each bond. Hoppings added
    /// later and pairings are not changed.
    ///
    /// # Options
    /// - `distribution` ("uniform" or "gaussian" or "binary"): uniform `x` in [-1/2, 1/2]; Gaussian, of standard
    ///   deviation one; binary, -1/2 or 1/2.
    /// - `seed` (int or string, the session's): seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::chain(100).boundary("open"));
    /// m.nearest(-1.0);
    /// m.bond_disorder(0.5, #{ seed: 3 });
    /// // hopping between two sublattices alone leaves the spectrum symmetric
    /// let e = m.build().to_matrix().eigh().values;
    /// assert_close((e + e.reversed()).norm(), 0.0, 1e-12);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn bond_disorder(model: &mut ScriptModel, width: Dynamic, o: Options) -> Fallible<()> {
        let (seed, distribution) = (o.seed()?, distribution(&o)?);
        let width = real(&width, "the width of the disorder")?;
        Ok(model.model.bond_disorder(width, seed, distribution, &session()?.task(true))?)
    }

    /// Adds an on-site term, a number or a Matrix of the orbitals, to each site with probability `fraction`:
    /// impurities, magnetic ones too. Returns the number of these sites. Each call draws new numbers, even with the
    /// same seed.
    ///
    /// # Options
    /// - `seed` (int or string, the session's): seed of the random numbers.
    ///
    /// # Example
    /// ```rhai
    /// // orbitals for both spins, and moments along x on a twentieth of the sites
    /// let m = model(lattice::square(20, 20), 2);
    /// m.nearest(-1.0);
    /// let count = m.impurities(0.05, 0.8 * pauli().x, #{ seed: 1 });
    /// assert(abs(count - 20) < 15, "about 20 of 400");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn impurities(
        model: &mut ScriptModel,
        fraction: Dynamic,
        term: Dynamic,
        o: Options,
    ) -> Fallible<INT> {
        let seed = o.seed()?;
        let fraction = real(&fraction, "the fraction")?;
        let block = block_of(&term, model.model.particles())?;
        Ok(model.model.impurities(fraction, &block, seed)? as INT)
    }
}
