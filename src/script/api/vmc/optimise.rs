//! Samples for the optimisation of parameters, and the steps they suggest.

use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT, Map};

use super::walk::{ScriptWalkers, walk};
use crate::error::{Error, Result};
use crate::manybody::OpSum;
use crate::montecarlo::Hamiltonian;
use crate::montecarlo::lattice::LocalSum;
use crate::montecarlo::optimise::{self, ParameterSample, Reweighted};
use crate::number::Series;
use crate::script::api::values::to_series;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// Samples gathered so far.
#[derive(Clone, Default)]
struct ScriptParameterSamples(Rc<Vec<ParameterSample>>);

/// Registers the type and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptParameterSamples>("ParameterSamples");
    rooms.room("vmc", exported_module!(optimise_functions));
}

fn kind() -> Error {
    Error::input("a Hamiltonian for another kind of walkers")
        .hint("in the continuum it is made by `electrons`, on a lattice it is an OpSum")
}

fn promise_of(walks: &[ScriptWalkers], hamiltonian: &Dynamic, values: &Dynamic) -> Result<Map> {
    let values = to_series(values)?;
    let values = values.as_real("parameters")?;
    let mut all: Vec<Reweighted> = Vec::new();
    for walk in walks {
        let found: Result<Vec<Reweighted>> = walk!(mut walk,
        w => {
            let hamiltonian = hamiltonian.clone().try_cast::<Hamiltonian>().ok_or_else(kind)?;
            hamiltonian.fits(w.psi()).and_then(|()| optimise::reweighted(&hamiltonian, &mut *w, values))
        },
        l => {
            let sum = hamiltonian.clone().try_cast::<OpSum>().ok_or_else(kind)?;
            optimise::lattice_reweighted(&LocalSum::of(&sum, l.psi())?, &mut *l, values)
        });
        all.extend(found?);
    }
    let p = optimise::promised(&all)?;
    let entries = [("energy", p.energy), ("change", p.change), ("error", p.error), ("share", p.share)];
    Ok(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
}

#[export_module(root = "crate::script::native")]
mod optimise_functions {
    /// The derivatives of the wave function and the local energy of every walker with respect to each parameter: d ln
    /// Psi/da and d E_L/da. Samples of several steps are added with `+`. `vmc::parameter_step` computes a change of the
    /// parameters from them.
    ///
    /// # Example
    /// ```rhai
    /// let helium = orbitals::exponentials([[[0.0, 0.0, 0.0], 2.0]]);
    /// let psi = slater_jastrow(helium, #{ up: 1, down: 1, jastrow: jastrow::pade(#{ b: 0.15 }) });
    /// let helium = electrons(vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]]), #{});
    /// let walk = walkers(psi, #{ count: 64, seed: 1, spread: 0.5 });
    /// metropolis(walk, #{ step: 0.5, sweeps: 50 });
    /// let samples = parameter_derivatives(walk, helium);
    /// assert(samples.count == 64 && vmc::parameter_step(samples, #{}).len == 1, "a sample a walker, one parameter");
    /// assert(psi.parameter_values[0] == 0.15 && samples.energies.len == 64, "b, and a local energy each");
    /// ```
    #[rhai_fn(global, name = "parameter_derivatives", return_raw)]
    pub fn parameter_derivatives(
        walk: &mut ScriptWalkers,
        hamiltonian: Hamiltonian,
    ) -> Fallible<ScriptParameterSamples> {
        let samples = walk!(mut &*walk,
            w => hamiltonian.fits(w.psi()).and_then(|()| optimise::samples(&hamiltonian, &mut *w)),
            _l => Err(kind()));
        Ok(ScriptParameterSamples(Rc::new(samples?)))
    }

    #[rhai_fn(global, name = "parameter_derivatives", return_raw)]
    pub fn lattice_derivatives(walk: &mut ScriptWalkers, sum: OpSum) -> Fallible<ScriptParameterSamples> {
        let find = |walk: &ScriptWalkers| -> Result<Vec<ParameterSample>> {
            walk!(mut walk,
                _w => Err(kind()),
                l => optimise::lattice_samples(&LocalSum::of(&sum, l.psi())?, &mut *l))
        };
        Ok(ScriptParameterSamples(Rc::new(find(walk)?)))
    }

    /// The change of the parameters that samples suggest: by the linear method (the lowest state in the space of Psi
    /// and its derivatives) or by stochastic reconfiguration (Sorella).
    ///
    /// # Options
    /// - `method` ("linear" or "reconfiguration"): the linear method, or stochastic reconfiguration.
    /// - `shift` (0.01): added to the diagonal, relative to the overlap of the derivatives. A larger shift makes
    ///   smaller steps.
    /// - `rate` (0.1): length of a step of stochastic reconfiguration.
    ///
    /// # Example
    /// ```rhai
    /// let ring = lattice::chain(4).boundary("antiperiodic");
    /// let sea = davidson(tight_binding(ring, #{ hopping: -1.0 }), #{ count: 2 });
    /// let psi = lattice_slater(sea.vectors, #{ up: 2, down: 2, gutzwiller: 0.9 });
    /// let walk = walkers(psi, #{ count: 64, seed: 1 });
    /// metropolis(walk, #{ sweeps: 20 });
    /// let samples = parameter_derivatives(walk, models::hubbard_chain(4, #{ U: 8.0, boundary: "antiperiodic" }));
    /// assert(vmc::parameter_step(samples, #{ method: "reconfiguration" })[0] < 0.0, "fewer doubly occupied sites");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn parameter_step(samples: ScriptParameterSamples, o: Options) -> Fallible<Series> {
        let (method, shift) = (o.text("method")?, o.float("shift")?);
        let rate = o.float("rate")?;
        let step = match method.as_str() {
            "linear" => optimise::linear_method(&samples.0, shift),
            "reconfiguration" => optimise::stochastic_reconfiguration(&samples.0, rate, shift),
            other => Err(Error::input(format!("no method `{other}` of optimisation"))
                .hint("the methods are \"linear\" and \"reconfiguration\"")),
        }?;
        Ok(Series::Real(step))
    }

    /// Predicts the energy for other values of the parameters, in the order of `parameter_values`. The local energies
    /// of the walkers with the new values are weighted by |Psi'/Psi|^2 (correlated sampling). It takes walkers, or an
    /// array of walkers at several times. The result is a map. `energy` is the new energy. `change` is the difference
    /// from the energy at the present values; its `error` is far smaller than the errors of the energies. `share` is
    /// the effective fraction of the samples after reweighting; it is small if the step is too long.
    ///
    /// # Example
    /// ```rhai
    /// let helium = orbitals::exponentials([[[0.0, 0.0, 0.0], 2.0]]);
    /// let psi = slater_jastrow(helium, #{ up: 1, down: 1, jastrow: jastrow::pade(#{ b: 0.15 }) });
    /// let helium = electrons(vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]]), #{});
    /// let walk = walkers(psi, #{ count: 256, seed: 1, spread: 0.5 });
    /// metropolis(walk, #{ step: 0.5, sweeps: 50 });
    /// let promise = vmc::correlated_energy(walk, helium, [0.2]);
    /// assert(promise.change < 0.0 && promise.share > 0.8, "nearer to the optimum of 0.35");
    /// ```
    #[rhai_fn(name = "correlated_energy", return_raw)]
    pub fn correlated_energy(walk: ScriptWalkers, hamiltonian: Dynamic, values: Dynamic) -> Fallible<Map> {
        Ok(promise_of(&[walk], &hamiltonian, &values)?)
    }

    #[rhai_fn(name = "correlated_energy", return_raw)]
    pub fn correlated_energies(walks: Array, hamiltonian: Dynamic, values: Dynamic) -> Fallible<Map> {
        let wrong = || {
            Error::input("correlated samples are walkers, or an array of them")
                .hint("`walkers(psi)` makes them")
        };

        let all: Option<Vec<ScriptWalkers>> =
            walks.iter().map(|w| w.clone().try_cast::<ScriptWalkers>()).collect();
        Ok(promise_of(&all.ok_or_else(wrong)?, &hamiltonian, &values)?)
    }

    /// The number of samples.
    #[rhai_fn(global, get = "count", pure)]
    pub fn count_of_samples(samples: &mut ScriptParameterSamples) -> INT {
        samples.0.len() as INT
    }

    /// The local energies of the samples.
    #[rhai_fn(global, get = "energies", pure)]
    pub fn energies_of_samples(samples: &mut ScriptParameterSamples) -> Series {
        Series::Real(samples.0.iter().map(|s| s.energy).collect())
    }

    #[rhai_fn(global, name = "+", return_raw)]
    pub fn plus(a: ScriptParameterSamples, b: ScriptParameterSamples) -> Fallible<ScriptParameterSamples> {
        let count = |s: &ScriptParameterSamples| s.0.first().map(|x| x.logs.len());
        if count(&a) != count(&b) {
            return Err(Error::input("samples of different parameters cannot be added")
                .hint("gather them with one wave function")
                .into());
        }
        let mut all = a.0;
        Rc::make_mut(&mut all).extend_from_slice(&b.0);
        Ok(ScriptParameterSamples(all))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn samples_to_string(samples: &mut ScriptParameterSamples) -> String {
        let parameters = samples.0.first().map_or(0, |s| s.logs.len());
        format!("ParameterSamples: {} of {parameters} parameters", samples.0.len())
    }
}
