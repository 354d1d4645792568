//! Vectors and eigenpairs to files and back.

use std::path::Path;
use std::rc::Rc;

use rhai::plugin::*;
use rhai::{Dynamic, Engine};

use super::eigen::ScriptEigen;
use super::table::manifest;
use super::vector::Vector;
use crate::error::Result;
use crate::output::files::{self, SavedVectors};
use crate::script::{Fallible, session};

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(vector_file_functions).into());
}

fn save_as(vectors: &SavedVectors, file: &str) -> Result<()> {
    let session = session()?;
    let path = session.output_path(file);
    files::save_vectors(vectors, &path, Some(&manifest()?))?;
    session.saved(&path);
    Ok(())
}

/// The BlockVector or Eigen in a file, on the session's device; nothing where the file holds something else.
pub(super) fn loaded(path: &Path) -> Result<Option<Dynamic>> {
    let Some(vectors) = files::load_vectors(path)? else { return Ok(None) };
    let device = session()?.device();
    Ok(Some(match vectors.upload(&device)? {
        (_, Some(eigen)) => Dynamic::from(ScriptEigen(Rc::new(eigen), device)),
        (block, None) => Dynamic::from(Vector::new(&device, block)),
    }))
}

#[export_module(root = "crate::script::native")]
mod vector_file_functions {
    /// Saves a BlockVector, in its own precision, as an `.npz` archive that `load` and NumPy read: the array `vectors`
    /// of shape [row, column]; of spinors on a lattice [t, z, y, x, component, column], with component = 3 spin +
    /// colour. A `.npy` file holds only the array [row, column]; `load` reads it as a Matrix, even for one column.
    ///
    /// # Example
    /// ```rhai
    /// let psi = wilson::reference_spinor(lattice::hypercubic(2, 2, 2, 4), 2);
    /// psi.save("psi.npz");
    /// assert_close(norm(load("psi.npz") - psi), 0.0, 1e-15);
    /// let h = tight_binding(lattice::chain(4));
    /// unit_block(h, [2]).save("unit.npy");
    /// assert_close(norm(block(h, load("unit.npy")) - unit_block(h, [2])), 0.0, 1e-15);
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_vector(v: &mut Vector, file: &str) -> Fallible<()> {
        Ok(SavedVectors::of(&v.device, &v.block).and_then(|vectors| save_as(&vectors, file))?)
    }

    /// Saves an Eigen as an `.npz` archive that `load` and NumPy read: the arrays `values` and `residuals` of shape
    /// [column], and `vectors` of shape [row, column]; of spinors on a lattice [t, z, y, x, component, column].
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(2, 2, 2, 4), 0.5);
    /// let q = wilson::kernel(u, #{ s: 0.4 });
    /// ritz(q * q, #{ count: 8, seed: 1, progress: false }).save("modes.npz");
    /// let sign = overlap::sign(q, #{ low_modes: load("modes.npz"), delta: 1e-7, seed: 1, progress: false });
    /// assert(sign.bound < 1e-5, "modes from a file are as good");
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_pairs(e: &mut ScriptEigen, file: &str) -> Fallible<()> {
        Ok(SavedVectors::of_pairs(&e.1, &e.0).and_then(|vectors| save_as(&vectors, file))?)
    }
}
