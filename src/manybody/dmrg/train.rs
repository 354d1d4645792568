//! Matrices of a state in either gauge, and how bonds are cut: what sums and products of states and gates have in common.

use std::collections::BTreeMap;

use faer::{Mat, MatRef};

use super::dense::{deal, product, square, thin_svd};
use super::density::{Truncation, count};
use super::space::{Fusion, Label, Space, Symmetry};
use super::state::{State, Tensor};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::{C64, Scalar};
use crate::task::Task;

/// Weights below this, relative to all, are rounding of singular values.
pub(super) const FLOOR: f64 = 1e-30;

/// Matrices by the label of a bond.
pub(super) type Blocks<T> = Vec<(Label, Mat<T>)>;

/// Blocks decomposed and cut: `U diag(s) V^H` each.
pub(super) struct Split<T> {
    /// Label, `U`, `s` (descending) and `V^H` of each sector that is left.
    pub kept: Vec<(Label, Mat<T>, Vec<f64>, Mat<T>)>,
    /// The weight that was cut off, relative to all.
    pub discarded: f64,
    /// The sum of all weights.
    pub weight: f64,
}

impl<T: Element> Split<T> {
    /// The bond's new basis.
    pub fn space(&self) -> Space {
        Space::new(self.kept.iter().map(|k| (k.0.clone(), k.2.len())).collect())
    }
}

/// The conjugate transpose.
pub(super) fn adjoint<T: Element>(m: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(m.ncols(), m.nrows(), |i, j| Scalar::conj(m[(j, i)]))
}

/// `m` with each column times a number.
pub(super) fn scaled_columns<T: Element>(m: &Mat<T>, s: &[f64]) -> Mat<T> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * T::from_c64(s[j].into()))
}

/// `m` with each row times a number.
pub(super) fn scaled_rows<T: Element>(m: &Mat<T>, s: &[f64]) -> Mat<T> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * T::from_c64(s[i].into()))
}

/// The labels that a site's states have seen from the other side.
pub(super) fn negated(symmetry: &Symmetry, states: &[Label]) -> Vec<Label> {
    states.iter().map(|q| symmetry.subtract(&symmetry.zero(), q)).collect()
}

/// Singular values of all blocks, the smallest cut off.
///
/// # Errors
/// When a decomposition does not converge.
pub(super) fn split<T: Element>(blocks: &Blocks<T>, cut: &Truncation) -> Result<Split<T>> {
    let cost = |b: &(Label, Mat<T>)| {
        let (m, n) = b.1.shape();
        20.0 * (m * n * m.min(n)) as f64
    };
    let parts = deal(blocks, cost, |b, _| thin_svd(b.1.as_ref())).into_iter().collect::<Result<Vec<_>>>()?;
    let mut all: Vec<(f64, usize, usize)> = Vec::new();
    for (sector, (_, s, _)) in parts.iter().enumerate() {
        all.extend(s.iter().enumerate().map(|(k, s)| (s * s, sector, k)));
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let weight: f64 = all.iter().map(|a| a.0).sum();
    if !weight.is_finite() {
        return Err(Error::numeric("the state is not finite"));
    }
    if weight == 0.0 {
        return Ok(Split { kept: Vec::new(), discarded: 0.0, weight });
    }
    let spectrum: Vec<f64> = all.iter().map(|a| a.0 / weight).collect();
    let number = count(&spectrum, cut, FLOOR)?;
    let mut per_sector = vec![0; blocks.len()];
    all[..number].iter().for_each(|a| per_sector[a.1] += 1);
    let mut kept = Vec::new();
    for (((label, _), (u, s, v)), n) in blocks.iter().zip(parts).zip(per_sector) {
        if n > 0 {
            let u = u.as_ref().subcols(0, n).to_owned();
            let v = adjoint(v.as_ref().subcols(0, n));
            kept.push((label.clone(), u, s[..n].to_vec(), v));
        }
    }
    Ok(Split { kept, discarded: spectrum[number..].iter().sum(), weight })
}

/// A tensor whose bond before is multiplied by matrices (rows of the new basis, columns of the old): rows of each block are
/// those of the product of the new basis and the site.
pub(super) fn from_left<T: Element>(
    symmetry: &Symmetry,
    states: &[Label],
    tensor: &Tensor<T>,
    before: &Space,
    carry: &[Mat<T>],
) -> Blocks<T> {
    let fusion = Fusion::new(symmetry, before, states);
    let mut blocks = Vec::new();
    for (behind, matrix) in tensor.matrices.iter().enumerate() {
        let label = tensor.behind.label(behind);
        let Some(row) = fusion.space().find(label) else { continue };
        let mut pushed = Mat::zeros(fusion.space().dim(row), matrix.ncols());
        for part in tensor.fusion.parts(tensor.rows[behind]) {
            let Some(new) = before.find(tensor.before.label(part.inner)) else { continue };
            let (_, to) = fusion.place(new, part.state);
            let own = matrix.as_ref().subrows(part.offset, part.dim);
            pushed.as_mut().subrows_mut(to.offset, to.dim).copy_from(product(carry[new].as_ref(), own));
        }
        blocks.push((label.clone(), pushed));
    }
    blocks
}

/// A tensor whose bond behind is multiplied by matrices (rows of the old basis, columns of the new), or left as it is: columns
/// of each block are those of the product of the site and the new basis. The blocks are labelled by the bond before.
pub(super) fn from_right<T: Element>(
    symmetry: &Symmetry,
    states: &[Label],
    tensor: &Tensor<T>,
    behind: &Space,
    carry: Option<&[Mat<T>]>,
) -> (Fusion, Blocks<T>) {
    let fusion = Fusion::new(symmetry, behind, &negated(symmetry, states));
    let mut blocks = Vec::new();
    for (sector, (label, dim)) in tensor.before.iter().enumerate() {
        let Some(column) = fusion.space().find(label) else { continue };
        let mut wide = Mat::zeros(dim, fusion.space().dim(column));
        for part in fusion.parts(column) {
            let Some((_, own)) = tensor.part(sector, part.state) else { continue };
            let mut place = wide.as_mut().subcols_mut(part.offset, part.dim);
            match carry {
                Some(carry) => place.copy_from(product(own, carry[part.inner].as_ref())),
                None => place.copy_from(own),
            }
        }
        blocks.push((label.clone(), wide));
    }
    (fusion, blocks)
}

/// The tensor of blocks as [`from_right`] makes them: rows of the bond `before`, whose sectors are those of the blocks.
pub(super) fn to_tensor<T: Element>(
    symmetry: &Symmetry,
    states: &[Label],
    before: &Space,
    behind: &Space,
    fusion: &Fusion,
    blocks: &Blocks<T>,
) -> Result<Tensor<T>> {
    let rows = Fusion::new(symmetry, before, states);
    let mut matrices: Vec<Mat<T>> = behind
        .iter()
        .map(|(q, dim)| Mat::zeros(rows.space().find(q).map_or(0, |s| rows.space().dim(s)), dim))
        .collect();
    for (label, m) in blocks {
        let (Some(own), Some(column)) = (before.find(label), fusion.space().find(label)) else { continue };
        for part in fusion.parts(column) {
            let (_, to) = rows.place(own, part.state);
            matrices[part.inner]
                .as_mut()
                .subrows_mut(to.offset, to.dim)
                .copy_from(m.as_ref().subcols(part.offset, part.dim));
        }
    }
    let fill = |sector: usize| std::mem::replace(&mut matrices[sector], Mat::zeros(0, 0));
    Tensor::new(symmetry, before, states, behind, fill)
}

/// Blocks as `L Q` with orthonormal rows of `Q`; what is zero is left out.
pub(super) fn lower<T: Element>(blocks: &Blocks<T>) -> (Space, Blocks<T>, Vec<(Label, Mat<T>)>) {
    let cost = |b: &(Label, Mat<T>)| {
        let (m, n) = b.1.shape();
        4.0 * (m * n * m.min(n)) as f64
    };
    let parts = deal(blocks, cost, |(label, m), _| {
        let qr = adjoint(m.as_ref()).as_ref().qr();
        (label.clone(), adjoint(qr.thin_R()), adjoint(qr.compute_thin_Q().as_ref()))
    });
    let (mut sectors, mut rows, mut carry) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (label, l, q) in parts {
        if q.nrows() > 0 && square(l.as_ref()) > 0.0 {
            sectors.insert(label.clone(), q.nrows());
            rows.push((label.clone(), q));
            carry.push((label, l));
        }
    }
    (Space::new(sectors), rows, carry)
}

/// What a state is compressed from: its matrices in any gauge, made when they are needed.
pub(super) struct Raw<'a, T: Element> {
    /// A state of the same sites and conserved numbers.
    pub like: &'a State<T>,
    /// The label of the whole chain.
    pub target: Label,
    /// The matrices of a site.
    pub tensor: &'a dyn Fn(usize) -> Result<Tensor<T>>,
    /// A norm below this is rounding.
    pub least: f64,
}

impl<T: Element> Raw<'_, T> {
    /// The state, its bonds cut, and the sum of the weights that were cut off, each relative to all. It is brought into the
    /// right gauge from the last site on, so that the cuts on the way back are the best there are for each bond.
    ///
    /// # Errors
    /// When a decomposition does not converge, for numbers that are not finite, on interruption.
    pub fn compressed(&self, cut: &Truncation, task: &Task) -> Result<(State<T>, f64)> {
        let State { sites, symmetry, .. } = self.like;
        let n = sites.count();
        let states: Vec<Vec<Label>> = (0..n).map(|i| symmetry.states(sites, i)).collect();
        let zero = || (State::zero(sites, symmetry, &self.target), 0.0);
        let steps = task.start("compression", 2 * n);
        let mut tensors = Vec::with_capacity(n);
        let mut behind = Space::single(self.target.clone());
        let mut carry: Vec<Mat<T>> = vec![Mat::identity(1, 1)];
        for i in (1..n).rev() {
            let (fusion, blocks) =
                from_right(symmetry, &states[i], &(self.tensor)(i)?, &behind, Some(&carry));
            let (before, rows, left) = lower(&blocks);
            if before.sectors() == 0 {
                return Ok(zero());
            }
            tensors.push(to_tensor(symmetry, &states[i], &before, &behind, &fusion, &rows)?);
            (behind, carry) = (before, left.into_iter().map(|l| l.1).collect());
            steps.advance(n - i)?;
        }
        // The first site takes the rest.
        let (fusion, blocks) = from_right(symmetry, &states[0], &(self.tensor)(0)?, &behind, Some(&carry));
        let first = Space::single(symmetry.zero());
        tensors.push(to_tensor(symmetry, &states[0], &first, &behind, &fusion, &blocks)?);
        tensors.reverse();
        let mut discarded = 0.0;
        let (mut before, mut carry) = (first.clone(), vec![Mat::identity(1, 1)]);
        let mut spaces = vec![first];
        for i in 0..n - 1 {
            let parts = split(&from_left(symmetry, &states[i], &tensors[i], &before, &carry), cut)?;
            if parts.kept.is_empty() {
                return Ok(zero());
            }
            discarded += parts.discarded;
            let space = parts.space();
            let fill = |sector: usize| parts.kept[sector].1.clone();
            tensors[i] = Tensor::new(symmetry, &before, &states[i], &space, fill)?;
            carry = parts.kept.iter().map(|(_, _, s, v)| scaled_rows(v, s)).collect();
            before = space.clone();
            spaces.push(space);
            steps.advance(n + i)?;
        }
        let last = from_left(symmetry, &states[n - 1], &tensors[n - 1], &before, &carry);
        let norm = last.iter().map(|b| square(b.1.as_ref())).sum::<f64>().sqrt();
        if !norm.is_finite() {
            return Err(Error::numeric("the state is not finite"));
        }
        if norm <= self.least {
            return Ok(zero());
        }
        let space = Space::single(self.target.clone());
        let one = |m: &Mat<T>| scaled_columns(m, &vec![1.0 / norm; m.ncols()]);
        tensors[n - 1] =
            Tensor::new(symmetry, &before, &states[n - 1], &space, |sector| one(&last[sector].1))?;
        spaces.push(space);
        Ok((State::made(sites, symmetry, &self.target, spaces, tensors, norm), discarded))
    }
}

/// A number times a tensor.
pub(super) fn times<T: Element>(tensor: &Tensor<T>, z: C64) -> Tensor<T> {
    let mut out = tensor.clone();
    for m in &mut out.matrices {
        *m = Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * T::from_c64(z));
    }
    out
}
