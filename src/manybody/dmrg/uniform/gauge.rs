//! Canonical forms: the same state by isometries from the left and from the right,
//! and bonds cut to the largest weights.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::{Mat, Par};

use super::super::carry::BondMatrices;
use super::super::dense::{eigh, product, square, thin_svd};
use super::super::space::{ChargeLabel, Space};
use super::super::tensor::{
    LabelledMatrices, MpsTensor, adjoint, push_left, push_right, scaled_columns, scaled_rows, to_tensor,
};
use super::bonds::{BlockLayout, dominant, fixed_right, identity, past_left};
use super::cell::UnitCell;
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};

/// Weights below this are rounding.
const ROUNDING: f64 = 1e-26;

/// `x^(1/2)` of a positive matrix on a bond, by sectors: `s^(1/2) V^H` with `x = V s V^H`.
fn root<T: Element>(x: &BondMatrices<T>, space: &Space) -> Result<Vec<Mat<T>>> {
    (0..space.sectors())
        .map(|s| {
            let Some(m) = x.get(&(s, s)) else { return Ok(Mat::identity(space.dim(s), space.dim(s))) };
            let (values, v) = eigh(m.as_ref(), Par::Seq)?;
            let roots: Vec<f64> = values.iter().map(|w| w.max(ROUNDING).sqrt()).collect();
            Ok(scaled_rows(&adjoint(v.as_ref()), &roots))
        })
        .collect()
}

/// The unitary nearest to a square matrix.
fn unitary<T: Element>(m: &Mat<T>) -> Result<Mat<T>> {
    let (u, _, v) = thin_svd(m.as_ref())?;
    Ok(product(u.as_ref(), adjoint(v.as_ref()).as_ref()))
}

fn norm<T: Element>(all: &[Mat<T>]) -> f64 {
    all.iter().map(|m| square(m.as_ref())).sum::<f64>().sqrt()
}

fn scaled<T: Element>(all: &[Mat<T>], z: f64) -> Vec<Mat<T>> {
    all.iter().map(|m| m * faer::Scale(T::from_c64(z.into()))).collect()
}

/// A tensor with its bonds multiplied by matrices: `left` has rows of the new basis, `right` columns.
pub(super) fn turned<T: Element>(
    cell: &UnitCell,
    site: usize,
    tensor: &MpsTensor<T>,
    before: (&Space, &[Mat<T>]),
    behind: (&Space, &[Mat<T>]),
) -> Result<MpsTensor<T>> {
    let states = &cell.states[site];
    let blocks: BTreeMap<ChargeLabel, Mat<T>> =
        push_right(&cell.symmetry, states, tensor, before.0, before.1).into_iter().collect();
    MpsTensor::new(&cell.symmetry, before.0, states, behind.0, |s| match blocks.get(behind.0.label(s)) {
        Some(m) => product(m.as_ref(), behind.1[s].as_ref()),
        None => Mat::zeros(0, 0),
    })
}

/// The matrices of the left form of any tensors of full rank.
fn left_form<T: Element>(
    cell: &Arc<UnitCell>,
    spaces: &[Space],
    tensors: &[MpsTensor<T>],
) -> Result<Vec<MpsTensor<T>>> {
    let n = cell.count();
    let symmetry = &cell.symmetry;
    let layout = BlockLayout::new(symmetry, &spaces[0], &symmetry.zero());
    let mut map = |x: &[T]| Ok(layout.flat(&past_left(tensors, &layout.matrices(x))));
    let fixed = dominant(&layout, &mut map, &identity(&spaces[0]))?;
    let first = root(&fixed, &spaces[0])?;
    let mut carry = scaled(&first, 1.0 / norm(&first));
    let first = carry.clone();
    let mut out: Vec<MpsTensor<T>> = Vec::with_capacity(n);
    for site in 0..n {
        let (before, behind) = (&spaces[site], &spaces[(site + 1) % n]);
        let states = &cell.states[site];
        let mut parts: BTreeMap<ChargeLabel, (Mat<T>, Mat<T>)> = BTreeMap::new();
        for (label, m) in push_right(symmetry, states, &tensors[site], before, &carry) {
            let qr = m.as_ref().qr();
            parts.insert(label, (qr.compute_thin_Q(), qr.thin_R().to_owned()));
        }
        let lost = || Error::numeric("the matrices of an infinite chain have lost a sector");
        let mut next = Vec::with_capacity(behind.sectors());
        for (label, _) in behind.iter() {
            next.push(parts.get(label).ok_or_else(lost)?.1.clone());
        }
        carry = scaled(&next, 1.0 / norm(&next));
        let mut isometries = Vec::with_capacity(behind.sectors());
        for (s, (label, _)) in behind.iter().enumerate() {
            let q = &parts.get(label).ok_or_else(lost)?.0;
            isometries.push(if site + 1 == n {
                // The basis at the end of the cell is that at its beginning.
                let turn = unitary(&product(carry[s].as_ref(), adjoint(first[s].as_ref()).as_ref()))?;
                product(q.as_ref(), turn.as_ref())
            } else {
                q.clone()
            });
        }
        out.push(MpsTensor::new(symmetry, before, states, behind, |s| isometries[s].clone())?);
    }
    Ok(out)
}

impl<T: Element> Uniform<T> {
    /// The state of some tensors, in both forms, with diagonal matrices on the bonds.
    ///
    /// # Errors
    /// When a fixed point or decomposition does not converge.
    pub(super) fn canonical(
        cell: &Arc<UnitCell>,
        spaces: &[Space],
        tensors: &[MpsTensor<T>],
    ) -> Result<Uniform<T>> {
        let left = left_form(cell, spaces, tensors)?;
        Uniform::from_left_form(cell, spaces, left, &identity(&spaces[0]))
    }

    /// The same state with its right form and the matrices on the bonds found anew from its left form, so that all
    /// belong to one state; those on the bonds are diagonal.
    ///
    /// # Errors
    /// When a fixed point or decomposition does not converge.
    pub fn regauged(&self) -> Result<Uniform<T>> {
        Uniform::from_left_form(&self.cell, &self.spaces, self.left.clone(), &self.density_left(0))
    }

    /// The same state with its right form found anew from the left one, which stays what it is.
    ///
    /// # Errors
    /// When a fixed point or decomposition does not converge.
    pub(super) fn completed(&self) -> Result<Uniform<T>> {
        Uniform::right_of(&self.cell, &self.spaces, self.left.clone(), &self.density_left(0))
    }

    fn from_left_form(
        cell: &Arc<UnitCell>,
        spaces: &[Space],
        left: Vec<MpsTensor<T>>,
        near: &BondMatrices<T>,
    ) -> Result<Uniform<T>> {
        Uniform::right_of(cell, spaces, left, near)?.diagonal()
    }

    fn right_of(
        cell: &Arc<UnitCell>,
        spaces: &[Space],
        left: Vec<MpsTensor<T>>,
        near: &BondMatrices<T>,
    ) -> Result<Uniform<T>> {
        let n = cell.count();
        let symmetry = &cell.symmetry;
        let density = fixed_right(symmetry, &spaces[0], &left, near)?;
        let first: Vec<Mat<T>> = root(&density, &spaces[0])?.iter().map(|m| adjoint(m.as_ref())).collect();
        let first = scaled(&first, 1.0 / norm(&first));
        let mut centre = vec![Vec::new(); n];
        let mut carry = first.clone();
        let mut right: Vec<MpsTensor<T>> = Vec::with_capacity(n);
        for site in (0..n).rev() {
            let (before, behind) = (&spaces[site], &spaces[(site + 1) % n]);
            let states = &cell.states[site];
            let (fusion, blocks) = push_left(symmetry, states, &left[site], behind, Some(&carry));
            let mut rows: LabelledMatrices<T> = Vec::new();
            let mut next = Vec::with_capacity(before.sectors());
            for (label, m) in blocks {
                let qr = adjoint(m.as_ref()).as_ref().qr();
                next.push(adjoint(qr.thin_R()));
                rows.push((label, adjoint(qr.compute_thin_Q().as_ref())));
            }
            if next.len() != before.sectors() {
                return Err(Error::numeric("the matrices of an infinite chain have lost a sector"));
            }
            carry = scaled(&next, 1.0 / norm(&next));
            if site == 0 {
                for (s, (_, q)) in rows.iter_mut().enumerate() {
                    let turn = unitary(&product(adjoint(first[s].as_ref()).as_ref(), carry[s].as_ref()))?;
                    *q = product(turn.as_ref(), q.as_ref());
                }
                carry = first.clone();
            }
            right.push(to_tensor(symmetry, states, before, behind, &fusion, &rows)?);
            centre[site] = carry.clone();
        }
        right.reverse();
        Ok(Uniform { cell: cell.clone(), spaces: spaces.to_vec(), left, right, centre })
    }

    /// The same state in the bases of its Schmidt decompositions.
    fn diagonal(&self) -> Result<Uniform<T>> {
        let n = self.count();
        let mut parts = Vec::with_capacity(n);
        for c in &self.centre {
            parts.push(c.iter().map(|c| thin_svd(c.as_ref())).collect::<Result<Vec<_>>>()?);
        }
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let columns = |bond: usize, u: bool| -> Vec<Mat<T>> {
            parts[bond].iter().map(|p| if u { p.0.clone() } else { p.2.clone() }).collect()
        };
        let rows = |bond: usize, u: bool| -> Vec<Mat<T>> {
            columns(bond, u).iter().map(|m| adjoint(m.as_ref())).collect()
        };
        for site in 0..n {
            let behind = self.behind(site);
            let (before, after) = (&self.spaces[site], &self.spaces[behind]);
            for (u, from, to) in [(true, &self.left, &mut left), (false, &self.right, &mut right)] {
                let (a, b) = (rows(site, u), columns(behind, u));
                to.push(turned(&self.cell, site, &from[site], (before, &a), (after, &b))?);
            }
        }
        let own = |p: &(Mat<T>, Vec<f64>, Mat<T>)| {
            let d = p.1.len();
            scaled_columns(&Mat::identity(d, d), &p.1)
        };
        let centre = parts.iter().map(|bond| bond.iter().map(own).collect()).collect();
        Ok(Uniform { cell: self.cell.clone(), spaces: self.spaces.clone(), left, right, centre })
    }
}
