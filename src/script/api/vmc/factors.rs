//! `Jastrow` and the module `jastrow`.

use rhai::Dynamic;
use rhai::plugin::*;

use super::hamiltonian::ScriptOpenSystem;
use crate::error::{Error, Result};
use crate::montecarlo::Crystal;
use crate::montecarlo::jastrow::{JastrowFactor, must_meet_cusp_once};
use crate::script::api::values::{to_series, type_of};
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// A product of Jastrow factors, as scripts hold it.
#[derive(Clone, Default)]
pub(super) struct ScriptJastrow(pub Vec<JastrowFactor>);

impl ScriptJastrow {
    pub(super) fn from_value(value: &Dynamic) -> Result<ScriptJastrow> {
        value.clone().try_cast::<ScriptJastrow>().ok_or_else(|| {
            Error::input(format!("a Jastrow factor is made by the module `jastrow`, not {}", type_of(value)))
                .hint("like `jastrow::pade(#{ b: 0.4 })`")
        })
    }
}

/// Registers the type and the module.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptJastrow>("Jastrow");
    rooms.room("jastrow", exported_module!(jastrow_module));
    rooms.register_global_module(exported_module!(factors_functions).into());
}

fn list(o: &Options, key: &'static str) -> Result<Vec<f64>> {
    let series = to_series(&o.value(key)?).map_err(|e| e.context(format!("option `{key}`")))?;
    Ok(series.as_real(key)?.to_vec())
}

fn one(factor: JastrowFactor) -> ScriptJastrow {
    ScriptJastrow(vec![factor])
}

#[export_module(root = "crate::script::native")]
mod jastrow_module {
    /// The factor of the random phase approximation: u(r) = -A/r (1 - exp(-r/F)), minus its value at a cutoff, times a
    /// polynomial that makes it vanish there with two derivatives. A is the inverse plasma frequency. F follows from
    /// the cusp conditions 1/2 and 1/4.
    ///
    /// # Options
    /// - `strength` (float, by the density): A.
    /// - `cutoff` (float, the largest that fits into the cell): in bohr.
    ///
    /// # Example
    /// ```rhai
    /// let gas = crystal::electron_gas(14, 2.0);
    /// let psi = slater_jastrow(orbitals::plane_waves(gas, #{ count: 7 }), #{ up: 7, down: 7 });
    /// psi.jastrow = jastrow::rpa(gas);
    /// assert_close(psi.parameters.strength, sqrt(8.0 / 3.0), 1e-9);
    /// ```
    #[rhai_fn(name = "rpa", return_raw)]
    pub fn rpa_of(crystal: Crystal, o: Options) -> Fallible<ScriptJastrow> {
        let by_density = (crystal.rs().powi(3) / 3.0).sqrt();
        let (strength, cutoff) = (o.maybe_float("strength")?.unwrap_or(by_density), o.maybe_float("cutoff")?);
        Ok(one(JastrowFactor::Rpa { strength: Some(strength), cutoff }))
    }

    #[rhai_fn(name = "rpa", return_raw)]
    pub fn rpa(o: Options) -> Fallible<ScriptJastrow> {
        let (strength, cutoff) = (o.maybe_float("strength")?, o.maybe_float("cutoff")?);
        Ok(one(JastrowFactor::Rpa { strength, cutoff }))
    }

    /// u(r) = s r/(1 + b r). The slope s at contact is the cusp. In three dimensions it is 1/2 for opposite and 1/4 for
    /// equal spins, in two dimensions 1 and 1/3. In one dimension it is 1/2 for equal spins and zero for opposite
    /// spins, where a slope would be a kink.
    ///
    /// # Options
    /// - `b` (1.0): how fast it saturates.
    /// - `slope` (float, the cusp): s of opposite spins.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(1, #{ dimension: 3 }), #{ up: 1, down: 1 });
    /// psi.jastrow = jastrow::pade(#{ b: 0.35 });
    /// assert(psi.parameters.b == 0.35, "a parameter");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn pade(o: Options) -> Fallible<ScriptJastrow> {
        let (b, slope) = (o.float("b")?, o.maybe_float("slope")?);
        Ok(one(JastrowFactor::Pade { slope, b }))
    }

    /// The polynomial of Drummond, Towler and Needs: u(r) = (1 - r/L)^3 (a_0 + (s + 3 a_0/L) r + a_2 r^2 + ...) up to a
    /// cutoff L, with the slope s at contact as for `pade`. If another factor has the cusp, set its slope to zero.
    ///
    /// # Options
    /// - `cutoff` (float, the largest that fits into the cell): L in bohr.
    /// - `slope` (float, the cusp): s of opposite spins.
    /// - `opposite` (array or Series or range, [0.0]): a_0, a_2, a_3, ... of electrons with opposite spins.
    /// - `same` (array or Series or range, [0.0]): of electrons with the same spin.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(1, #{ dimension: 3 }), #{ up: 1, down: 1 });
    /// psi.jastrow = jastrow::polynomial(#{ cutoff: 5.0, opposite: [-1.0, 0.1] });
    /// assert(psi.parameter_values.len == 3, "two for opposite spins, one for equal");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn polynomial(o: Options) -> Fallible<ScriptJastrow> {
        let (cutoff, slope) = (o.maybe_float("cutoff")?, o.maybe_float("slope")?);
        let (opposite, same) = (list(&o, "opposite")?, list(&o, "same")?);
        Ok(one(JastrowFactor::Polynomial { cutoff, slope, opposite, same }))
    }

    /// u(r) = ln(1 + a r): with a = 1/2 it is exact for Hooke's atom of frequency 1/2.
    ///
    /// # Options
    /// - `slope` (float, the cusp): a of opposite spins.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(1, #{ dimension: 3, alpha: 0.5 }), #{ up: 1, down: 1 });
    /// psi.jastrow = jastrow::logarithm(#{});
    /// let walk = walkers(psi, #{ count: 4, seed: 1 });
    /// assert_close(local_energy(walk, electrons(vmc::trap(0.5), #{ interaction: "coulomb" })).mean(), 2.0, 1e-10);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn logarithm(o: Options) -> Fallible<ScriptJastrow> {
        Ok(one(JastrowFactor::Log { slope: o.maybe_float("slope")? }))
    }

    /// u(r) = p ln r: the wave function vanishes like r^p where two particles meet.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(1), #{ up: 1, down: 1, jastrow: jastrow::power(1.0) });
    /// assert(psi.parameters.power == 1.0, "as two fermions of one spin");
    /// ```
    #[rhai_fn(name = "power")]
    pub fn power(p: Float) -> ScriptJastrow {
        ScriptJastrow(vec![JastrowFactor::Power { power: p }])
    }

    /// chi(r) = -Z r/(1 + b r) between electrons and nuclei, for orbitals without cusps at the nuclei. With a cutoff, a
    /// polynomial with the same slope vanishes smoothly at the cutoff.
    ///
    /// # Options
    /// - `b` (1.0): how fast it saturates.
    /// - `cutoff` (float, none in open space, the largest that fits into a cell): in bohr.
    ///
    /// # Example
    /// ```rhai
    /// let helium = vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]]);
    /// let psi = slater_jastrow(orbitals::oscillator(1, #{ dimension: 3 }), #{ up: 1, down: 1 });
    /// psi.jastrow = jastrow::pade(#{ b: 0.4 }) * jastrow::nuclear(helium, #{ b: 0.5 });
    /// assert(psi.parameters.pade_b == 0.4 && psi.parameters.nuclear_b == 0.5, "a parameter each");
    /// ```
    #[rhai_fn(name = "nuclear", return_raw)]
    pub fn nuclear_open(system: ScriptOpenSystem, o: Options) -> Fallible<ScriptJastrow> {
        let nuclei = system.nuclei()?;
        let (centres, charges) = nuclei.iter().copied().unzip();
        let (b, cutoff) = (o.float("b")?, o.maybe_float("cutoff")?);
        Ok(one(JastrowFactor::Nuclear { centres, charges, b, cutoff }))
    }

    #[rhai_fn(name = "nuclear", return_raw)]
    pub fn nuclear(crystal: Crystal, o: Options) -> Fallible<ScriptJastrow> {
        let (centres, charges) = crystal.ions().iter().map(|ion| (ion.position, ion.charge)).unzip();
        let (b, cutoff) = (o.float("b")?, o.maybe_float("cutoff")?);
        Ok(one(JastrowFactor::Nuclear { centres, charges, b, cutoff }))
    }
}

#[export_module(root = "crate::script::native")]
mod factors_functions {
    #[rhai_fn(name = "*", return_raw)]
    pub fn times(a: ScriptJastrow, b: ScriptJastrow) -> Fallible<ScriptJastrow> {
        let both = [a.0, b.0].concat();
        must_meet_cusp_once(&both)?;
        Ok(ScriptJastrow(both))
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(factors: &mut ScriptJastrow) -> String {
        let names: Vec<String> = factors.0.iter().map(ToString::to_string).collect();
        format!("Jastrow {}", if names.is_empty() { "1".into() } else { names.join(" x ") })
    }
}
