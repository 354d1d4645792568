//! Levels inside a spectrum.

use std::rc::Rc;

use rhai::plugin::*;

use super::eigen::Pairs;
use crate::method::{self, Ended, InteriorOptions};
use crate::operator::Operator;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the function.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(level_functions).into());
}

#[export_module(root = "crate::script::native")]
mod level_functions {
    /// The eigenpairs of a Hermitian operator nearest to an energy inside its spectrum, by subspaces that a Chebyshev filter for
    /// `(H - near)^2` makes: an Eigen as of `davidson`, with `values` ascending. Every pair comes with its residual, and none is
    /// spurious. The effort grows with the number of levels that the operator has, and falls with their distance.
    ///
    /// # Options
    /// - `near` (float, required): give the energy whose neighbours are sought.
    /// - `count` (1): how many.
    /// - `tol` (1e-9): largest residual norm |H x - E x|.
    /// - `products` (100000000): most products of the operator with single vectors.
    /// - `seed` (int or string, the session's): of the random starting vectors.
    /// - `progress` (true): show a bar, and a note if the search ends before it has converged.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(200), #{ hopping: -1.0 });
    /// let found = eigs(h, #{ near: 0.5, count: 3, seed: 1 });
    /// let exact = h.to_matrix().eigh().values;
    /// for e in found.values { assert_close((exact - e).abs().min(), 0.0, 1e-9); }
    /// ```
    #[rhai_fn(return_raw)]
    pub fn eigs(h: Operator, o: Options) -> Fallible<Pairs> {
        let options = InteriorOptions {
            near: o.float("near")?,
            count: o.count("count", 1)?,
            tolerance: o.float("tol")?,
            max_products: o.count("products", 1)?,
            seed: o.seed()?,
        };
        let eigen = method::interior(&h, &options, &o.task()?)?;
        if o.flag("progress")? {
            let worst = eigen.worst();
            match eigen.ended {
                Ended::Converged => {}
                Ended::Limit => session()?.note(&format!(
                    "not converged after {} products: the largest residual is {worst:.1e}; raise `products` or `tol`",
                    eigen.products
                )),
                Ended::Stalled => session()?.note(&format!(
                    "not converged: the largest residual has stopped falling, at {worst:.1e}; ask for more levels with `count`, or raise `tol`"
                )),
            }
        }
        Ok(Pairs(Rc::new(eigen), h.device().clone()))
    }
}
