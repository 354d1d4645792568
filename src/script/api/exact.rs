//! The module `exact`: matrices of sums of operators on symmetry sectors, and the bases of these.

use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT, Map};

use super::manybody::sector_of;
use super::model::{single_precision, storage_format};
use crate::error::{Error, Result};
use crate::manybody::{self, Basis, OpSum, Sector, Site, Sites};
use crate::operator::{Format, Operator};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the type, the module and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Basis>("Basis");
    rooms.register_global_module(exported_module!(basis_functions).into());
    rooms.room("exact", exported_module!(exact_module));
}

#[export_module(root = "crate::script::native")]
mod basis_functions {
    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn basis_to_string(basis: &mut Basis) -> String {
        basis.to_string()
    }

    /// Number of states of a basis.
    ///
    /// # Example
    /// ```rhai
    /// assert(exact::basis(sites("S=1/2", 10), #{ Sz: 0 }).dim == 252, "C(10, 5)");
    /// ```
    #[rhai_fn(global, get = "dim", pure)]
    pub fn basis_dim(basis: &mut Basis) -> INT {
        basis.dim() as INT
    }

    /// The names of the local states of state `number` of a basis.
    ///
    /// # Example
    /// ```rhai
    /// let one_down = exact::basis(sites("S=1/2", 3), #{ Sz: 0.5 });
    /// assert(one_down.state(0) == ["Up", "Up", "Dn"], "the last site changes fastest");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn state(basis: &mut Basis, number: INT) -> Fallible<Array> {
        let number = usize::try_from(number).map_err(|_| Error::input(format!("state {number}")));
        let states = number.and_then(|n| basis.state(n))?;
        let name = |(site, s): (&Arc<Site>, &u8)| Dynamic::from(site.states()[*s as usize].clone());
        Ok(basis.sites().iter().zip(&states).map(name).collect())
    }

    /// The number of the product state with the given local states: the row of `unit_block` that makes it.
    ///
    /// # Example
    /// ```rhai
    /// let basis = exact::basis(sites("Electron", 2), #{ Nup: 1, Ndn: 1 });
    /// assert(basis.state(basis.number(["Up", "Dn"])) == ["Up", "Dn"], "there and back");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn number(basis: &mut Basis, states: Array) -> Fallible<INT> {
        if states.len() != basis.sites().count() {
            return Err(Error::input(format!("{} local states for {}", states.len(), basis.sites())).into());
        }
        let local = |(site, name): (&Arc<Site>, &Dynamic)| -> Result<u8> {
            let name = name.clone().into_string();
            site.state(&name.map_err(|_| Error::input("local states are given by name"))?).map(|s| s as u8)
        };
        let states = basis.sites().iter().zip(&states).map(local).collect::<Result<Vec<_>>>()?;
        let number = basis.number(&states)?;
        Ok(number.map(|n| n as INT).ok_or_else(|| Error::input("the state lies outside the sector"))?)
    }
}

#[export_module(root = "crate::script::native")]
mod exact_module {
    /// The matrix of a sum of operators on all states of the sites with given conserved numbers, as an operator.
    ///
    /// The sector is a map like `#{ Sz: 0.0 }`, `#{ Nup: 3, Ndn: 3 }` or `#{ N: 4 }`; what it does not name is free. Row numbers
    /// are those of `exact::basis`.
    ///
    /// # Options
    /// - `format` ("auto"): "csr", "ell", "sell", "dense".
    /// - `C`, `sigma`: as for `build`.
    /// - `precision` ("double"): or "single".
    /// - `progress` (true): show a bar.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add(0.5, "S+", 0, "S-", 1);
    /// h.add(0.5, "S-", 0, "S+", 1);
    /// h.add(1.0, "Sz", 0, "Sz", 1);
    /// let pair = exact::operator(h, sites("S=1/2", 2), #{ Sz: 0.0 }, #{ format: "dense" });
    /// assert(pair.dim == 2 && pair.is_hermitian(), "singlet and triplet");
    /// ```
    #[rhai_fn(name = "operator", return_raw)]
    pub fn operator_with(sum: OpSum, sites: Sites, sector: Map, o: Options) -> Fallible<Operator> {
        let basis = sector_of(&sector).and_then(|sector| Basis::new(&sites, &sector))?;
        operator_in_basis_with(sum, basis, o)
    }

    #[rhai_fn(name = "operator", return_raw)]
    pub fn operator_on_all(sum: OpSum, sites: Sites) -> Fallible<Operator> {
        let basis = Basis::new(&sites, &Sector::new())?;
        let session = session()?;
        Ok(manybody::operator(&session.device(), &sum, &basis, Format::Auto, false, &session.task(true))?)
    }

    /// The matrix of a sum of operators in a basis made by `exact::basis`.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let basis = exact::basis(chain, #{ Sz: 0.0 });
    /// let h = models::heisenberg(chain);
    /// let neel = unit_block(exact::operator(h, basis), [basis.number(["Up", "Dn", "Up", "Dn"])]);
    /// assert_close(dot(neel, exact::operator(h, basis) * neel), -0.75, 1e-14);
    /// ```
    #[rhai_fn(name = "operator", return_raw)]
    pub fn operator_in_basis_with(sum: OpSum, basis: Basis, o: Options) -> Fallible<Operator> {
        let format = storage_format(&o)?;
        let (single, task) = (single_precision(&o)?, o.task()?);
        Ok(manybody::operator(&session()?.device(), &sum, &basis, format, single, &task)?)
    }

    /// The product states of the sites with given conserved numbers, in the order of the operators' rows.
    ///
    /// # Example
    /// ```rhai
    /// assert(exact::basis(sites("Electron", 4), #{ Nup: 2, Ndn: 2 }).dim == 36, "C(4, 2)^2");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn basis(sites: Sites, sector: Map) -> Fallible<Basis> {
        Ok(sector_of(&sector).and_then(|sector| Basis::new(&sites, &sector))?)
    }

    #[rhai_fn(name = "basis", return_raw)]
    pub fn basis_of_all(sites: Sites) -> Fallible<Basis> {
        Ok(Basis::new(&sites, &Sector::new())?)
    }
}
