//! Leads that are given by their self-energies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rhai::plugin::*;
use rhai::{Array, Dynamic, FnPtr};

use super::chebyshev::as_complex;
use super::sparse::indices;
use super::values::type_of;
use crate::error::{Error, Result};
use crate::method::{Escape, SelfEnergyAt, TransportSample};
use crate::number::{Matrix, Series};
use crate::script::Fallible;
use crate::script::callback::Callback;
use crate::script::rooms::Rooms;

/// A lead that is given by its self-energy, and the script's function that gives it, if one does.
#[derive(Clone)]
pub(super) struct ScriptContact {
    escape: Escape,
    of_energy: Option<FnPtr>,
}

/// A script's function that gives a self-energy, and what it gave at the energies for which one sample asked.
#[derive(Clone)]
pub(super) struct ContactFunction {
    f: FnPtr,
    known: KnownEnergies,
}

/// Self-energies by the bits of the energy.
type KnownEnergies = Arc<Mutex<HashMap<u64, Matrix>>>;

impl ScriptContact {
    /// The lead for one sample.
    pub fn for_sample(&self) -> Result<(Escape, Option<ContactFunction>)> {
        let Some(f) = self.of_energy.clone() else { return Ok((self.escape.clone(), None)) };
        let known = KnownEnergies::default();
        let told = known.clone();
        let at: SelfEnergyAt = Arc::new(move |energy| {
            let all = told.lock().unwrap_or_else(PoisonError::into_inner);
            let sigma = all.get(&energy.to_bits()).cloned();
            sigma.ok_or_else(|| Error::internal("a self-energy that was not asked for"))
        });
        Ok((Escape::new(self.escape.sites().to_vec(), at)?, Some(ContactFunction { f, known })))
    }
}

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<ScriptContact>("Contact");
    rooms.room("transport", exported_module!(contact_functions));
}

/// A self-energy: a number, as a matrix of one row, or a Matrix.
fn matrix_of(value: &Dynamic) -> Result<Matrix> {
    if let Some(z) = as_complex(value) {
        return Matrix::new(1, 1, Series::Complex(vec![z]));
    }
    value.read_lock::<Matrix>().map(|m| m.clone()).ok_or_else(|| {
        Error::input(format!("a self-energy that is {}", type_of(value))).hint(
            "it is a number, the same for all orbitals, a Matrix, or a function of the energy that gives one",
        )
    })
}

/// Self-energies that are kept beside those of one call.
const MOST: usize = 4096;

/// Asks the functions of a sample's leads for their self-energies at these energies. What they gave before may be
/// another by now, if a variable that they use is.
pub(super) fn tell(
    ctx: &NativeCallContext,
    sample: &TransportSample,
    told: &[ContactFunction],
    energies: &[f64],
) -> Fallible<()> {
    for ContactFunction { f, known } in told {
        let calls = Callback::new(ctx);
        let at = |energy: &f64| Ok((energy.to_bits(), matrix_of(&calls.call(f, (*energy,))?)?));
        let all: Result<HashMap<u64, Matrix>> = energies.iter().map(at).collect();
        let all = calls.finish(all)?;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let other = |(energy, sigma): (&u64, &Matrix)| {
            known.get(energy).is_some_and(|known| known.data() != sigma.data())
        };
        if known.len() + all.len() > MOST || all.iter().any(other) {
            known.clear();
            sample.forget();
        }
        known.extend(all);
    }
    Ok(())
}

#[export_module(root = "crate::script::native")]
mod contact_functions {
    /// A lead for `transport::system`, given by its retarded self-energy on some sites: a number (or a Matrix of one
    /// row), the same for all orbitals; a Matrix with a row for each orbital; or a function of the energy that returns
    /// one of these. With `-0.5 * I * rate` particles escape at a rate that does not depend on the energy, the
    /// wide-band limit of a metal. This lead has no waves: its channels are the eigenvectors of Gamma = i (sigma -
    /// sigma^dagger), and the transmission between two such leads is Tr[Gamma G Gamma G^dagger] (Caroli, Combescot,
    /// Nozieres, Saint-James 1971). Momenta and velocities of its channels are NaN.
    ///
    /// # Example
    /// ```rhai
    /// // one level between two metals: T = g1 g2/(E^2 + (g1 + g2)^2/4)
    /// let m = model(lattice::chain(1).boundary("open"));
    /// let left = transport::contact([0], -0.5 * I * 0.3);
    /// let right = transport::contact([0], |e| -0.5 * I * 0.1);
    /// let s = transport::system(m, #{ leads: [left, right] });
    /// assert_close(s.transmission(0, 1, 0.2), 0.03 / (0.04 + 0.04), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn contact(sites: Array, sigma: Dynamic) -> Fallible<ScriptContact> {
        let sites = indices(Dynamic::from(sites), "site")?;
        let of_energy = sigma.clone().try_cast::<FnPtr>();
        let same = if of_energy.is_some() { Matrix::identity(1)? } else { matrix_of(&sigma)? };
        Ok(ScriptContact { escape: Escape::new(sites, Arc::new(move |_| Ok(same.clone())))?, of_energy })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn contact_to_string(contact: &mut ScriptContact) -> String {
        format!("Contact on {} sites", contact.escape.sites().len())
    }
}
