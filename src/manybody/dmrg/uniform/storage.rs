//! States of infinite chains as bytes, in the files of those of finite ones: the header says which it is.

use faer::Mat;
use serde_json::{Value, json};

use super::super::storage::{
    broken, described, headed, header_of, read_matrix, read_tensor, sites_json, space_json, write,
};
use super::cell::UnitCell;
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::Result;
use crate::number::C64;

/// How far the forms of a saved state may be from belonging together.
const APART: f64 = 1e-6;

/// A saved state, real or complex.
pub enum SavedUniform {
    Real(Uniform<f64>),
    Complex(Uniform<C64>),
}

impl<T: Element> Uniform<T> {
    /// The state as bytes of a file, with `about` in the header.
    ///
    /// # Errors
    /// When the sites cannot be written.
    pub fn to_bytes(&self, about: &Value) -> Result<Vec<u8>> {
        let (kinds, which) = sites_json(&self.cell.sites)?;
        let mut bytes = headed(&json!({
            "infinite": true,
            "kinds": kinds,
            "sites": which,
            "complex": T::DTYPE.is_complex(),
            "names": self.cell.symmetry.names(),
            "moduli": self.cell.symmetry.moduli(),
            "target": self.cell.target,
            "spaces": self.spaces.iter().map(space_json).collect::<Vec<_>>(),
            "about": about,
        }));
        let tensors = self.left.iter().chain(&self.right).flat_map(|t| &t.matrices);
        tensors.chain(self.centre.iter().flatten()).for_each(|m| write(&mut bytes, m));
        Ok(bytes)
    }
}

impl SavedUniform {
    /// From the bytes of a file, if they are a state of an infinite chain; and what was saved with it.
    ///
    /// # Errors
    /// When they are one that is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<(SavedUniform, Value)>> {
        let (header, numbers) = header_of(bytes)?;
        if header["infinite"].as_bool() != Some(true) {
            return Ok(None);
        }
        let state = if header["complex"].as_bool().unwrap_or(false) {
            SavedUniform::Complex(read(&header, numbers)?)
        } else {
            SavedUniform::Real(read(&header, numbers)?)
        };
        Ok(Some((state, header["about"].clone())))
    }
}

fn read<T: Element>(header: &Value, numbers: &[u8]) -> Result<Uniform<T>> {
    let known = described(header)?;
    let cell = UnitCell::of(&known.sites, known.symmetry, known.target);
    let n = cell.count();
    if known.spaces.len() != n {
        return Err(broken("not one basis a bond"));
    }
    let mut words = numbers.chunks_exact(8);
    let mut forms = Vec::new();
    for _ in 0..2 {
        let mut tensors = Vec::with_capacity(n);
        for site in 0..n {
            let (before, behind) = (&known.spaces[site], &known.spaces[(site + 1) % n]);
            tensors.push(read_tensor(&cell.symmetry, before, &cell.states[site], behind, &mut words)?);
        }
        forms.push(tensors);
    }
    let mut centre: Vec<Vec<Mat<T>>> = Vec::with_capacity(n);
    for space in &known.spaces {
        let all = space.dims().iter().map(|&d| read_matrix(&mut words, d, d));
        centre.push(all.collect::<Result<_>>()?);
    }
    let (Some(right), Some(left)) = (forms.pop(), forms.pop()) else { return Err(broken("no matrices")) };
    let psi = Uniform { cell, spaces: known.spaces, left, right, centre };
    // What is not a number is refused, too.
    if words.next().is_some() || !(psi.mismatch() < APART) {
        return Err(broken("its matrices do not belong together"));
    }
    Ok(psi)
}
