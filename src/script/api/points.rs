//! Sites that are no crystal, and bonds by distance.

use rhai::plugin::*;
use rhai::{Array, Dynamic, FnPtr, INT};

use super::lattice::reals;
use super::model::{ScriptModel, block_of};
use super::two_centre::SlaterKoster;
use crate::error::Result;
use crate::lattice::{HopTerm, Lattice};
use crate::script::callback::{Callback, floats};
use crate::script::native::Float;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(bond_functions).into());
    rooms.room("lattice", exported_module!(point_functions));
}

#[export_module(root = "crate::script::native")]
mod point_functions {
    /// A finite set of sites at any Cartesian positions. It has no unit cell and no bonds of its own (`hop_within`
    /// makes them by distance). Its volume is that of the box around the points.
    ///
    /// # Example
    /// ```rhai
    /// let m = model(lattice::points([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]));
    /// assert(m.hop_within(1.1, -1.0) == 2, "the diagonal is longer");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn points(positions: Array) -> Fallible<Lattice> {
        let positions: Result<Vec<Vec<f64>>> = positions.iter().map(|p| reals(p, "a point")).collect();
        Ok(Lattice::points(positions?)?)
    }
}

#[export_module(root = "crate::script::native")]
mod bond_functions {
    /// Adds a hopping between every pair of sites at most `cutoff` apart (in lattice constants), across periodic
    /// boundaries as well, and its conjugate. The hopping is a number, a Matrix of the orbitals, a function of the two
    /// positions, or `lattice::slater_koster(..)`. Returns the number of bonds per unit cell.
    ///
    /// # Example
    /// ```rhai
    /// // graphene with neighbours and next neighbours by distance
    /// let m = model(lattice::honeycomb(6, 6));
    /// let bonds = m.hop_within(1.01, |a, b| {
    ///     let d = ((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5;
    ///     -2.7 * exp(-3.0 * (d * 3.0 ** 0.5 - 1.0))
    /// });
    /// assert(bonds == 3 + 6, "three to neighbours, three on each sublattice");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn hop_within(
        ctx: NativeCallContext,
        m: &mut ScriptModel,
        cutoff: Float,
        value: Dynamic,
    ) -> Fallible<INT> {
        let orbitals = m.model.particles();
        let task = session()?.task(true);
        if let Some(integrals) = value.clone().try_cast::<SlaterKoster>() {
            let bonds = m.model.bonds_within(cutoff, &task)?;
            let count = bonds.len() as INT;
            integrals.add(&ctx, &mut m.model, bonds)?;
            return Ok(count);
        }
        let Some(f) = value.clone().try_cast::<FnPtr>() else {
            let block = block_of(&value, orbitals)?;
            return Ok(m.model.hop_within(cutoff, HopTerm::Same(&block), &task)? as INT);
        };
        let calls = Callback::new(&ctx);
        let mut term = |a: &[f64], b: &[f64]| block_of(&calls.call(&f, (floats(a), floats(b)))?, orbitals);
        let added = m.model.hop_within(cutoff, HopTerm::Of(&mut term), &task);
        Ok(calls.finish(added)? as INT)
    }
}
