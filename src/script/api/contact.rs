//! Leads that are given by their self-energies.

use std::sync::{Arc, Mutex, PoisonError};

use rhai::plugin::*;
use rhai::{Array, Dynamic, FnPtr};

use super::chebyshev::as_complex;
use super::sparse::indices;
use super::values::type_of;
use crate::error::{Error, Result};
use crate::method::{Escape, SelfEnergyAt};
use crate::number::{Matrix, Series};
use crate::script::Fallible;
use crate::script::callback::Callback;
use crate::script::rooms::Rooms;

/// A lead that is given by its self-energy, and the script's function that gives it, if one does.
#[derive(Clone)]
pub(super) struct ScriptContact {
    pub escape: Escape,
    of_energy: Option<(FnPtr, Told)>,
}

/// Self-energies at the energies for which a script's function was asked.
type Told = Arc<Mutex<Vec<(f64, Matrix)>>>;

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

/// Asks the functions of leads for their self-energies at these energies.
pub(super) fn tell(ctx: &NativeCallContext, contacts: &[ScriptContact], energies: &[f64]) -> Fallible<()> {
    for (f, told) in contacts.iter().filter_map(|contact| contact.of_energy.as_ref()) {
        let calls = Callback::new(ctx);
        let at = |energy: &f64| Ok((*energy, matrix_of(&calls.call(f, (*energy,))?)?));
        let all: Result<Vec<(f64, Matrix)>> = energies.iter().map(at).collect();
        *told.lock().unwrap_or_else(PoisonError::into_inner) = calls.finish(all)?;
    }
    Ok(())
}

#[export_module(root = "crate::script::native")]
mod contact_functions {
    /// A lead for `transport::system` that is given by its retarded self-energy on some sites: a number, the same for
    /// all orbitals, a Matrix with a row for each orbital of the sites, or a function of the energy that gives one of
    /// them. `-0.5 * I * rate` lets particles escape at a rate that does not depend on the energy, the wide-band limit
    /// of a metal. It has no waves: its channels are the eigenvectors of Gamma = i (sigma - sigma^dagger), and what
    /// passes between two such leads is Tr[Gamma G Gamma G^dagger] (Caroli, Combescot, Nozieres, Saint-James 1971).
    /// Momenta and velocities of its channels are NaN.
    ///
    /// # Example
    /// ```rhai
    /// // one level between two metals: T = g1 g2/(E^2 + (g1 + g2)^2/4)
    /// let m = model(lattice::chain(1).boundary("open"));
    /// let s = transport::system(m, #{ leads: [transport::contact([0], -0.5 * I * 0.3), transport::contact([0], |e| -0.5 * I * 0.1)] });
    /// assert_close(s.transmission(0, 1, 0.2), 0.03 / (0.04 + 0.04), 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn contact(sites: Array, sigma: Dynamic) -> Fallible<ScriptContact> {
        let sites = indices(Dynamic::from(sites), "site")?;
        if let Some(f) = sigma.clone().try_cast::<FnPtr>() {
            let told = Told::default();
            let nearest = told.clone();
            let at: SelfEnergyAt = Arc::new(move |energy| {
                let all = nearest.lock().unwrap_or_else(PoisonError::into_inner);
                let best = all.iter().min_by(|a, b| (a.0 - energy).abs().total_cmp(&(b.0 - energy).abs()));
                best.map(|(_, sigma)| sigma.clone())
                    .ok_or_else(|| Error::internal("a self-energy that was not asked for"))
            });
            return Ok(ScriptContact { escape: Escape::new(sites, at)?, of_energy: Some((f, told)) });
        }
        let sigma = matrix_of(&sigma)?;
        let escape = Escape::new(sites, Arc::new(move |_| Ok(sigma.clone())))?;
        Ok(ScriptContact { escape, of_energy: None })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn contact_to_string(contact: &mut ScriptContact) -> String {
        format!("Contact on {} sites", contact.escape.sites().len())
    }
}
