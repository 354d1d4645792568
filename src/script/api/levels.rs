//! Levels inside a spectrum.

use std::rc::Rc;

use rhai::plugin::*;

use super::eigen::{ScriptEigen, unfinished};
use crate::method::{self, InteriorMethod, InteriorOptions};
use crate::operator::Operator;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(level_functions).into());
}

#[export_module(root = "crate::script::native")]
mod level_functions {
    /// The eigenpairs of a Hermitian operator nearest to an energy inside its spectrum: an Eigen as from `davidson`,
    /// with `values` ascending. If several of the farthest levels are equally far away, to within ten times `tol`, any
    /// of them may be left out.
    ///
    /// There are two methods. "shift-invert" factorises the matrix H - near (Ericsson, Ruhe 1980), which takes memory;
    /// factorisations at two more energies count the levels between them, so no level is missed. Highly degenerate
    /// levels (Landau levels, flat bands) are found completely or in part; the block size adapts. "filter" needs only
    /// products: it builds a Krylov space of a polynomial of `(H - near)^2` that amplifies only levels near the energy
    /// (Fang, Saad 2012). A second search from random vectors orthogonal to the result follows. Its effort grows with
    /// the density of levels and with the width of the spectrum: sites that on-site energies of 1e6 keep empty are
    /// better removed (`lat.remove`).
    ///
    /// # Options
    /// - `near` (float, required): give the energy whose neighbours are sought.
    /// - `count` (int >= 1, 1): number of levels.
    /// - `method` ("auto" or "filter" or "shift-invert"): "auto" factorises if this process has all entries of the
    ///   matrix in double precision, the factors fit into memory, and the estimated time is shorter. It also factorises
    ///   if a filter has taken several times its usual number of products. Matrices of up to some thousand rows are
    ///   diagonalised completely if that takes less time, or if a search has already taken as long.
    /// - `tol` (float > 0, 1e-9): largest residual norm |H x - E x|; the default as for `davidson`.
    /// - `products` (int >= 1, 100000000): largest number of products of the operator with single vectors and of
    ///   solutions with the factors.
    /// - `seed` (int or string, the session's): seed of the random starting vectors.
    /// - `progress` (true): show a bar, and a note if the search ends before it has converged.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(200), #{ hopping: -1.0 });
    /// let found = eigs(h, #{ near: 0.5, count: 3, seed: 1 });
    /// let exact = h.to_matrix().eigh().values;
    /// for e in found.values { assert_close((exact - e).abs().min(), 0.0, 1e-9); }
    /// // five of the states of a Landau level that 24 share
    /// let m = model(lattice::square(24, 24));
    /// m.nearest(-1.0);
    /// m.flux(1.0 / 24.0);
    /// let level = eigs(m.build(), #{ near: -3.7, count: 5, seed: 1 }).values;
    /// assert_close(level.max() - level.min(), 0.0, 1e-9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn eigs(h: Operator, o: Options) -> Fallible<ScriptEigen> {
        let options = InteriorOptions {
            near: o.float("near")?,
            count: o.count("count")?,
            method: o.one_of(
                "method",
                &[
                    ("auto", InteriorMethod::Auto),
                    ("filter", InteriorMethod::Filter),
                    ("shift-invert", InteriorMethod::ShiftInvert),
                ],
            )?,
            tolerance: o.maybe_float("tol")?,
            max_products: o.count("products")?,
            seed: o.seed()?,
        };
        let eigen = method::interior(&h, &options, &o.task()?)?;
        if o.flag("progress")?
            && let Some(note) = unfinished(&eigen, "products", eigen.products)
        {
            session()?.note(&note);
        }
        Ok(ScriptEigen(Rc::new(eigen), h.device().clone()))
    }
}
