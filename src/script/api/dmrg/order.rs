//! Sites that stand in another order along the chain than they are numbered.

use rhai::plugin::*;
use rhai::{Array, Dynamic, INT};

use crate::error::{Error, Result};
use crate::manybody::dmrg::smallest_cuts as smallest;
use crate::manybody::{OpSum, Sites};
use crate::script::Fallible;
use crate::script::rooms::Rooms;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("dmrg", exported_module!(order_functions));
}

/// An order as site numbers.
pub(super) fn order_of(array: &Array) -> Result<Vec<usize>> {
    let number = |x: &Dynamic| x.as_int().ok().and_then(|i| usize::try_from(i).ok());
    array.iter().map(number).collect::<Option<_>>().ok_or_else(|| {
        Error::input("an order is an array of site numbers")
            .hint("it lists the sites as they stand in the chain")
    })
}

pub(super) fn to_array(order: &[usize]) -> Array {
    order.iter().map(|&i| Dynamic::from(i as INT)).collect()
}

#[export_module(root = "crate::script::native")]
mod order_functions {
    /// Sets the order in which `dmrg::finite` puts the sites of a sum along the chain: an array of all site numbers.
    /// The sites keep their numbers in the terms and in the resulting state.
    ///
    /// # Example
    /// ```rhai
    /// let chain = sites("S=1/2", 4);
    /// let h = opsum();
    /// for i in 0..2 {
    ///     h.add(0.5, "S+", i, "S-", i + 2);
    ///     h.add(0.5, "S-", i, "S+", i + 2);
    /// }
    /// h.set_order([0, 2, 1, 3]);
    /// let ground = dmrg::finite(h, chain, #{ sector: #{ Sz: 0 } });
    /// assert(ground.entropy.entropy[1] < 1e-9, "two pairs, one after the other");
    /// ```
    #[rhai_fn(global, name = "set_order", return_raw)]
    pub fn set_order(sum: &mut OpSum, order: Array) -> Fallible<()> {
        Ok(order_of(&order).and_then(|order| sum.set_order(order))?)
    }

    /// The order set by `set_order` or by a model on a lattice, or `()`.
    #[rhai_fn(global, get = "order", pure)]
    pub fn order(sum: &mut OpSum) -> Dynamic {
        sum.order().map_or(Dynamic::UNIT, |order| to_array(order).into())
    }

    /// The sum with its sites numbered by their places in an order: the terms of site `order[k]` become those of site
    /// `k`.
    ///
    /// # Example
    /// ```rhai
    /// let h = opsum();
    /// h.add(1.0, "Sz", 2);
    /// assert(h.reordered([2, 0, 1]).to_string().contains("Sz(0)"), "it stands first");
    /// ```
    #[rhai_fn(global, name = "reordered", pure, return_raw)]
    pub fn reordered(sum: &mut OpSum, order: Array) -> Fallible<OpSum> {
        Ok(order_of(&order).and_then(|order| sum.reordered(&order))?)
    }

    /// The chain with its sites in another order: site `order[k]` at place `k`.
    ///
    /// # Example
    /// ```rhai
    /// assert(sites(["S=1", "S=1/2"]).reordered([1, 0]).len == 2, "the small one first");
    /// ```
    #[rhai_fn(global, name = "reordered", pure, return_raw)]
    pub fn sites_reordered(sites: &mut Sites, order: Array) -> Fallible<Sites> {
        Ok(order_of(&order).and_then(|order| sites.reordered(&order))?)
    }

    /// An order of `n` sites along a chain with few bonds across its cuts. `bonds` is an array of arrays that begin
    /// with two sites, like `lattice.bonds()`. On a long cylinder the order goes around it, not along it. The sites
    /// keep the order of their numbers unless a better one is found.
    ///
    /// # Example
    /// ```rhai
    /// let lat = lattice::square(6, 3).boundary("open", "periodic");
    /// let order = dmrg::smallest_cuts(lat.sites, lat.bonds());
    /// assert(order.len == 18 && order[1] != 1, "around first");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn smallest_cuts(n: INT, bonds: Array) -> Fallible<Array> {
        let n = usize::try_from(n).map_err(|_| {
            Error::input(format!("an order of {n} sites"))
                .hint("count the sites of the chain, none of which may be missing")
        })?;
        let wrong =
            || Error::input("bonds are arrays that begin with two sites").hint("as `lattice.bonds()` gives");
        let mut pairs = Vec::with_capacity(bonds.len());
        for bond in &bonds {
            let bond = bond.read_lock::<Array>().ok_or_else(wrong)?;
            let site = |k: usize| {
                let i = bond.get(k).and_then(|x| x.as_int().ok()).and_then(|i| usize::try_from(i).ok());
                i.filter(|i| *i < n).ok_or_else(wrong)
            };
            pairs.push((site(0)?, site(1)?));
        }
        Ok(to_array(&smallest(n, &pairs)))
    }
}
