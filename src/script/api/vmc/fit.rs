//! Whether a wave function and a Hamiltonian are of one system.

use rhai::Dynamic;
use rhai::plugin::*;

use super::wavefunction::Psi;
use crate::error::{Error, Result};
use crate::manybody::dmrg::{ConservedNumbers, Mpo};
use crate::manybody::{OpSum, Site, Sites};
use crate::montecarlo::Hamiltonian;
use crate::montecarlo::lattice::LocalSum;
use crate::script::api::values::type_of;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("internal", exported_module!(fit_functions));
}

/// A note about a pair that fits, if there is one.
fn fits(psi: &Psi, hamiltonian: &Dynamic) -> Result<Option<String>> {
    if let Some(sum) = hamiltonian.read_lock::<OpSum>() {
        let sites = match psi {
            Psi::LatticeReal(state) => LocalSum::of(&sum, state).map(|_| state.sites())?,
            Psi::LatticeComplex(state) => LocalSum::of(&sum, state).map(|_| state.sites())?,
            Psi::Real(_) | Psi::Complex(_) => {
                return Err(Error::input("an OpSum for a wave function in the continuum")
                    .hint("the Hamiltonian of its electrons is made by `electrons`"));
            }
        };
        need_hermitian(&sum, sites)?;
        let strange = LocalSum::untouched(&sum, sites);
        return Ok(strange.map(|site| {
            format!("no term of the Hamiltonian acts on site {site} of {sites}: is it of the same lattice?")
        }));
    }
    let Some(hamiltonian) = hamiltonian.read_lock::<Hamiltonian>() else {
        return Err(Error::input(format!("a Hamiltonian for walkers cannot be {}", type_of(hamiltonian)))
            .hint("in the continuum it is made by `electrons`, on a lattice it is an OpSum"));
    };
    match psi {
        Psi::Real(psi) => hamiltonian.fits(psi)?,
        Psi::Complex(psi) => hamiltonian.fits(psi)?,
        Psi::LatticeReal(_) | Psi::LatticeComplex(_) => {
            return Err(Error::input("a Hamiltonian of the continuum for a wave function on a lattice")
                .hint("its Hamiltonian is an OpSum, like `models::hubbard_chain(8, #{ U: 4.0 })`"));
        }
    }
    Ok(None)
}

/// Refuses a sum that is not its own adjoint, on sites that know all of its operators.
fn need_hermitian(sum: &OpSum, sites: usize) -> Result<()> {
    let terms = sum.terms_on(sites);
    for kind in ["Electron", "S=1/2", "Fermion"] {
        let site = Site::named(kind, None)?;
        let mut names = terms.iter().flat_map(|term| &term.factors);
        if names.all(|(name, _)| site.operator(name).is_ok()) {
            return Mpo::need_hermitian(sum, &Sites::uniform(site, sites)?, &ConservedNumbers::default());
        }
    }
    Ok(())
}

#[export_module(root = "crate::script::native")]
mod fit_functions {
    /// Fails unless a wave function and a Hamiltonian are of one system: both in the continuum, of the same cell and
    /// dimension, or both on a lattice, of as many sites, with operators that mean these electrons. A t-J Hamiltonian
    /// needs a wave function without doubly occupied sites.
    ///
    /// # Example
    /// ```rhai
    /// let psi = lattice_slater(matrix([[0.6], [0.8]]), #{ up: 1, down: 1 });
    /// internal::must_fit(psi, models::hubbard_chain(2, #{ U: 4.0 }));
    /// let told = "";
    /// try { internal::must_fit(psi, models::tj_chain(2, #{})); } catch(e) { told = e.hint; }
    /// assert(told.contains("gutzwiller"), "it allows two electrons on a site");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn must_fit(psi: Psi, hamiltonian: Dynamic) -> Fallible<()> {
        if let Some(strange) = fits(&psi, &hamiltonian)? {
            session()?.note_once(&strange);
        }
        Ok(())
    }
}
