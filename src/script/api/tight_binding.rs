//! `tight_binding`: a one-line model with one orbital a site.

use rhai::plugin::*;
use rhai::{Dynamic, Engine, Map};

use super::lattice::{boundaries_of, sublattice_of};
use super::model::{add_nearest, add_onsite, block_of, build_operator};
use crate::error::{Error, Result};
use crate::lattice::{Lattice, Model};
use crate::operator::Operator;
use crate::script::{Fallible, Options};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(tight_binding_functions).into());
}

/// The potentials of `sublattice`: an array in the order of the sublattices, or a map by name.
fn add_sublattices(model: &mut Model, value: &Dynamic) -> Result<()> {
    if let Some(array) = value.clone().try_cast::<rhai::Array>() {
        let n = model.lattice().basis().len();
        if array.len() != n {
            return Err(Error::input(format!("{} sublattice potentials for {n} sublattices", array.len()))
                .hint("give one for each, or a map from name to energy"));
        }
        return array.iter().enumerate().try_for_each(|(s, v)| model.sublattice(s, &block_of(v, 1)?));
    }
    let Some(map) = value.clone().try_cast::<Map>() else {
        return Err(Error::input("option `sublattice` takes an array, or a map from name to energy")
            .hint("like `#{ A: 0.5, B: -0.5 }`"));
    };
    for (name, v) in &map {
        let s = sublattice_of(model.lattice(), &name.clone().into())?;
        model.sublattice(s, &block_of(v, 1)?)?;
    }
    Ok(())
}

#[export_module(root = "crate::script::native")]
mod tight_binding_functions {
    /// The operator of one orbital a site with nearest-neighbour hopping; `model` makes richer ones.
    ///
    /// # Options
    /// - `hopping` (float or Complex or Matrix or function, -1.0): a number,
    ///   or a function of the positions a hopping joins.
    /// - `onsite` (float or Complex or Matrix or Series or function, 0.0): a number, a Series with one for each site,
    ///   or a function of the site's position.
    /// - `sublattice` (array or map, none): on-site energies by sublattice, as an array or a map from name to energy.
    /// - `disorder` (float >= 0, 0.0): width W of on-site energies uniform in [-W/2, W/2].
    /// - `vacancies` (0 <= float <= 1, 0.0): probability that a site is missing.
    /// - `seed` (int or string, the session's): of disorder and vacancies.
    /// - `flux` (0.0): magnetic flux quanta through every plaquette of the first two directions.
    /// - `boundary` (string or Boundary or array, the lattice's): boundary conditions, one or an array.
    /// - `format`: as for `build`.
    /// - `C`, `sigma`: as for `build`.
    /// - `precision` ("double" or "single"): of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::cubic(8, 8, 8), #{ hopping: -1.0, disorder: 1.0, seed: 7 });
    /// assert(h.dim == 512, "one row a site");
    /// // a stencil keeps 512 energies and what ranks exchange
    /// assert(h.volume == 512.0 && h.bytes < 40_000, "no matrix");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn tight_binding(ctx: NativeCallContext, lattice: Lattice, o: Options) -> Fallible<Operator> {
        let lattice = match o.given("boundary") {
            Some(boundary) => lattice.boundary(&boundaries_of(&boundary)?)?,
            None => lattice,
        };
        let seed = o.seed()?;
        let mut model = Model::new(lattice, 1)?;
        let fraction = o.float("vacancies")?;
        if fraction != 0.0 {
            model.vacancies(fraction, seed)?;
        }
        model.disorder(o.float("disorder")?, seed)?;
        let flux = o.float("flux")?;
        if flux != 0.0 {
            model.flux(flux, 0, 1)?;
        }
        if let Some(value) = o.given("sublattice") {
            add_sublattices(&mut model, &value)?;
        }
        add_nearest(&ctx, &mut model, &o.value("hopping")?)?;
        if let Some(onsite) = o.given("onsite") {
            add_onsite(&ctx, &mut model, &onsite)?;
        }
        Ok(build_operator(&model, &o)?)
    }
}
