//! Hamiltonians of electrons: traps, nuclei and crystals, with or without repulsion.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic};

use crate::error::{Error, Result};
use crate::montecarlo::Crystal;
use crate::montecarlo::{Coulomb, External, Hamiltonian, Ions, Nuclei, Periodic, Repulsion, Trap, Truncated};
use crate::script::api::values::real;
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

/// The potential of electrons in open space.
#[derive(Clone)]
pub(super) enum ScriptOpenSystem {
    Trap(f64),
    Nuclei(Nuclei),
}

impl ScriptOpenSystem {
    pub(super) fn nuclei(&self) -> Result<&[([f64; 3], f64)]> {
        match self {
            ScriptOpenSystem::Nuclei(nuclei) => Ok(&nuclei.nuclei),
            ScriptOpenSystem::Trap(_) => {
                Err(Error::input("a trap has no nuclei").hint("make some with `vmc::nuclei([..])`"))
            }
        }
    }
}

/// Registers the types and functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptOpenSystem>("OpenSystem");
    rooms.register_type_with_name::<Hamiltonian>("Hamiltonian");
    rooms.room("vmc", exported_module!(hamiltonian_functions));
}

fn unknown(name: &str, known: &str) -> Error {
    Error::input(format!("no interaction `{name}` here")).hint(format!("there are {known}"))
}

#[export_module(root = "crate::script::native")]
mod hamiltonian_functions {
    /// A harmonic trap omega^2 r^2/2 in the dimension of the orbitals.
    ///
    /// # Example
    /// ```rhai
    /// print(vmc::trap(1.0));
    /// ```
    #[rhai_fn(return_raw)]
    pub fn trap(omega: Float) -> Fallible<ScriptOpenSystem> {
        if !(omega > 0.0 && omega.is_finite()) {
            return Err(Error::input(format!("a trap of frequency {omega}"))
                .hint("it is a positive number")
                .into());
        }
        Ok(ScriptOpenSystem::Trap(omega))
    }

    /// Nuclei in open space, from an array of charges and places in bohr.
    ///
    /// # Example
    /// ```rhai
    /// let h2 = vmc::nuclei([[1.0, [0.0, 0.0, 0.0]], [1.0, [0.0, 0.0, 1.4]]]);
    /// print(h2);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn nuclei(list: Array) -> Fallible<ScriptOpenSystem> {
        let one = |value: &Dynamic| -> Result<([f64; 3], f64)> {
            let [charge, place] = super::super::pair(value, || {
                Error::input("a nucleus is a charge and a place").hint("like [2.0, [0.0, 0.0, 0.0]]")
            })?;
            let z = real(&charge, "a charge")?;
            if !z.is_finite() {
                return Err(Error::input(format!("a nucleus of charge {z}"))
                    .hint("a charge is a finite number, 2.0 for helium"));
            }
            Ok((super::super::point(&place, 3)?, z))
        };
        let nuclei: Vec<([f64; 3], f64)> = list.iter().map(one).collect::<Result<_>>()?;
        let twice = (0..nuclei.len()).any(|i| (0..i).any(|j| nuclei[i].0 == nuclei[j].0));
        if nuclei.is_empty() || twice {
            return Err(Error::input("nuclei at different places, one at least")
                .hint("like `vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]])`")
                .into());
        }
        Ok(ScriptOpenSystem::Nuclei(Nuclei { nuclei }))
    }

    /// The Hamiltonian of electrons in a trap, around nuclei, or in a crystal: kinetic energy, the system's potential,
    /// and their repulsion, in hartree. In open space the energy includes the repulsion of the nuclei. In a crystal it
    /// does not include the repulsion of the ions, which is `ion_energy`.
    ///
    /// # Options
    /// - `interaction` ("coulomb" or "ewald" or "truncated" or "none", "coulomb" in open space, "ewald" in a crystal):
    ///   in a crystal also "truncated": (1 - r/L)^3/r for the nearest image, with L half the shortest lattice vector.
    /// - `softening` (float >= 0, 0.0): in open space the length a in 1/sqrt(r^2 + a^2), which replaces the Coulomb
    ///   1/r; not with `interaction: "none"`. In one dimension electrons of opposite spin need it: they can meet, and
    ///   the mean of 1/r is infinite.
    /// - `ions` ("potential" or "coulomb" or "none", "potential" if the crystal has one, else "coulomb"): in a crystal
    ///   the form factors' potential, or -Z/r of the bare ions with all their images (Ewald); or "none".
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });
    /// let walk = walkers(psi, #{ count: 4, seed: 1 });
    /// assert_close(local_energy(walk, electrons(vmc::trap(1.0), #{ interaction: "none" })).mean(), 2.0, 1e-10);
    /// ```
    #[rhai_fn(global, name = "electrons", return_raw)]
    pub fn electrons_open(system: ScriptOpenSystem, o: Options) -> Fallible<Hamiltonian> {
        o.only_for("electrons in a crystal", &["ions"])?;
        let softening = o.float("softening")?;
        let interaction: Option<Arc<dyn Repulsion>> =
            match o.maybe_text("interaction")?.as_deref().unwrap_or("coulomb") {
                "coulomb" => Some(Arc::new(Coulomb { softening })),
                "none" => None,
                other => return Err(unknown(other, "\"coulomb\" and \"none\"").into()),
            };
        let (potential, constant, what): (Arc<dyn External>, f64, String) = match &system {
            ScriptOpenSystem::Trap(omega) => {
                (Arc::new(Trap { omega: *omega }), 0.0, format!("a trap of frequency {omega}"))
            }
            ScriptOpenSystem::Nuclei(nuclei) => {
                let n = nuclei.nuclei.len();
                let what = format!("{n} nucle{}", if n == 1 { "us" } else { "i" });
                (Arc::new(nuclei.clone()), nuclei.repulsion(), what)
            }
        };
        let kind = match (&interaction, softening > 0.0) {
            (None, _) => "no repulsion",
            (_, true) => "softened Coulomb repulsion",
            (_, false) => "Coulomb repulsion",
        };
        let label = format!("electrons with {kind} in {what}");
        Ok(Hamiltonian { external: vec![potential], interaction, constant, label })
    }

    #[rhai_fn(global, name = "electrons", return_raw)]
    pub fn electrons_in_crystal(crystal: Crystal, o: Options) -> Fallible<Hamiltonian> {
        o.only_for("electrons in open space", &["softening"])?;
        let name = o.maybe_text("interaction")?.unwrap_or_else(|| "ewald".to_string());
        let interaction: Option<Arc<dyn Repulsion>> = match name.as_str() {
            "ewald" => Some(Arc::new(Periodic::new(crystal.cell()))),
            "truncated" => Some(Arc::new(Truncated { cell: crystal.cell().clone() })),
            "none" => None,
            other => return Err(unknown(other, "\"ewald\", \"truncated\" and \"none\"").into()),
        };
        let given = !crystal.potential().is_zero();
        let charged: Vec<_> = crystal.ions().iter().map(|i| (i.position, i.charge)).collect();
        let charged: Vec<_> = charged.into_iter().filter(|(_, z)| *z != 0.0).collect();
        let ions = o.maybe_text("ions")?;
        let own = if given { "potential" } else { "coulomb" };
        let external: Vec<Arc<dyn External>> = match ions.as_deref().unwrap_or(own) {
            "potential" if given => vec![Arc::new(crystal.potential().clone())],
            "potential" => {
                return Err(Error::input("a crystal without form factors has no potential")
                    .hint("give `crystal::custom` a `form_factor`, or take `ions: \"coulomb\"`")
                    .into());
            }
            "coulomb" if charged.is_empty() => Vec::new(),
            "coulomb" => vec![Arc::new(Ions::new(crystal.cell(), charged))],
            "none" => Vec::new(),
            other => {
                return Err(Error::input(format!("option `ions` is `{other}`"))
                    .hint("there are \"potential\", \"coulomb\" and \"none\"")
                    .into());
            }
        };
        let label = format!("electrons in {}, interaction {name}", crystal.name());
        Ok(Hamiltonian { external, interaction, constant: 0.0, label })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn hamiltonian_to_string(hamiltonian: &mut Hamiltonian) -> String {
        format!("Hamiltonian of {}", hamiltonian.label)
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn open_to_string(system: &mut ScriptOpenSystem) -> String {
        match system {
            ScriptOpenSystem::Trap(omega) => format!("trap of frequency {omega}"),
            ScriptOpenSystem::Nuclei(nuclei) => {
                let charges: Vec<String> = nuclei.nuclei.iter().map(|(_, z)| z.to_string()).collect();
                format!("nuclei of charge {}", charges.join(", "))
            }
        }
    }
}
