//! Excitations of infinite chains, by a momentum.

use std::sync::Arc;

use rhai::INT;
use rhai::plugin::*;

use super::uniform::HeldUniform;
use super::{Either, either_map};
use crate::error::Error;
use crate::manybody::dmrg::{ExcitationOptions, Excitations, Repeated, Uniform};
use crate::number::{C64, Series, Table};
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("dmrg", exported_module!(excited_functions));
}

fn complex(held: &HeldUniform) -> Uniform<C64> {
    match &held.state {
        Either::Real(s) => s.to_complex(),
        Either::Complex(s) => (**s).clone(),
    }
}

#[export_module(root = "crate::script::native")]
mod excited_functions {
    /// The state shifted to the left by some sites: site `by` of the cell becomes its first site. For an
    /// antiferromagnet this gives the other ground state, needed for kinks.
    ///
    /// # Example
    /// ```rhai
    /// let neel = dmrg::uniform_product(sites("S=1/2", 2), ["Up", "Dn"], #{ Sz: 0 });
    /// assert_close(neel.moved(1).expect("Sz")[0], -0.5, 1e-15);
    /// ```
    #[rhai_fn(global, name = "moved", pure, return_raw)]
    pub fn moved(held: &mut HeldUniform, by: INT) -> Fallible<HeldUniform> {
        let n = held.cell().sites.count() as INT;
        let by = by.rem_euclid(n) as usize;
        let state = either_map!(&held.state, s => Arc::new(s.moved(by)?));
        Ok(HeldUniform { state, about: held.about.clone() })
    }

    /// The lowest excitations above a ground state at one wave number per site, by the quasi-particle ansatz (Haegeman
    /// et al., PRB 85, 100408 (2012)): a Table of `energy` and `residual`. `dmrg::uniform_excitations` takes several
    /// wave numbers.
    ///
    /// # Options
    /// - `charge` (map, zero): the conserved numbers of the excitation minus those of the ground state.
    /// - `to` (UniformState, none): another ground state on the right, for kinks.
    /// - `count` (int >= 1, 1): number of excitations.
    /// - `tol` (1e-8): the residual at which the search ends.
    /// - `most` (int >= 3, 200): largest number of vectors in a search.
    ///
    /// # Example
    /// ```rhai
    /// let up = dmrg::uniform_product(sites("S=1/2", 1), ["Up"], #{});
    /// let h = opsum();
    /// h.add(-3.0, "Sz", 0);
    /// let m = dmrg::cell_mpo(h, sites("S=1/2", 1), #{});
    /// assert_close(up.excitations_at(m, 0.5).energy[0], 3.0, 1e-12);
    /// ```
    #[rhai_fn(global, name = "excitations_at", pure, return_raw)]
    pub fn excitations_at(
        held: &mut HeldUniform,
        h: Arc<Repeated>,
        momentum: Float,
        o: Options,
    ) -> Fallible<Table> {
        let cell = held.cell();
        let n = cell.sites.count();
        let mut charge = held.charge(&o)?.unwrap_or_else(|| cell.symmetry.zero());
        // Modes at the ends hold a fermion at no cost: an odd charge has the levels of an even one.
        if cell.is_odd(&charge)
            && let Some(own) = held.majorana_charge()?
        {
            charge = cell.symmetry.subtract(&charge, &own);
        }
        let asked = ExcitationOptions {
            phase: momentum * n as f64,
            charge,
            count: o.count("count")?,
            tol: o.float("tol")?,
            most: o.count("most")?,
        };
        let other = o.maybe::<HeldUniform>("to").map(|s| complex(&s));
        let all = Excitations::new(&h, &complex(held), other.as_ref(), &asked)?;
        if all.dim() == 0 {
            return Err(Error::input("no excitation changes the numbers by that charge")
                .hint("labels of the ground state and of the one on the right have to differ by it")
                .into());
        }
        let found = all.lowest(&asked)?;
        Ok(Table::from_columns([
            ("energy", Series::Real(found.iter().map(|f| f.0).collect())),
            ("residual", Series::Real(found.iter().map(|f| f.1).collect())),
        ])?)
    }
}
