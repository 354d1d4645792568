//! The matrices of one site in sectors, grouped with the bond before or with the bond behind, and their products with
//! matrices on either bond.

use std::collections::BTreeMap;

use faer::{Mat, MatRef};

use super::dense::{deal, product, square};
use super::space::{ChargeLabel, ConservedNumbers, Fusion, Space};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::{C64, Scalar};

/// One site's matrices: for each sector behind the site, rows for the states before it and on it.
#[derive(Debug, Clone)]
pub(super) struct MpsTensor<T> {
    pub before: Space,
    pub behind: Space,
    pub fusion: Fusion,
    /// For each sector behind the site, its number in the product of the bond before and the site.
    pub rows: Vec<usize>,
    pub matrices: Vec<Mat<T>>,
}

/// Matrices by the label of a bond.
pub(super) type LabelledMatrices<T> = Vec<(ChargeLabel, Mat<T>)>;

/// A matrix with complex numbers.
pub(super) fn complex<T: Element>(m: &Mat<T>) -> Mat<C64> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)].to_c64())
}

impl<T: Element> MpsTensor<T> {
    /// The same with complex numbers.
    pub(super) fn to_complex(&self) -> MpsTensor<C64> {
        MpsTensor {
            before: self.before.clone(),
            behind: self.behind.clone(),
            fusion: self.fusion.clone(),
            rows: self.rows.clone(),
            matrices: self.matrices.iter().map(complex).collect(),
        }
    }

    /// From the bases before and behind; sectors behind that cannot be reached are left out. `fill` writes the matrix
    /// of a sector behind, numbered as in `behind`.
    pub(super) fn new(
        symmetry: &ConservedNumbers,
        before: &Space,
        states: &[ChargeLabel],
        behind: &Space,
        mut fill: impl FnMut(usize) -> Mat<T>,
    ) -> Result<MpsTensor<T>> {
        MpsTensor::filled(symmetry, before, states, behind, &mut fill)
    }

    /// [`MpsTensor::new`], compiled once for all that fill matrices.
    fn filled(
        symmetry: &ConservedNumbers,
        before: &Space,
        states: &[ChargeLabel],
        behind: &Space,
        fill: &mut dyn FnMut(usize) -> Mat<T>,
    ) -> Result<MpsTensor<T>> {
        let fusion = Fusion::new(symmetry, before, states);
        let (mut rows, mut matrices, mut reached) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (sector, (label, dim)) in behind.iter().enumerate() {
            let Some(row) = fusion.space().find(label) else { continue };
            let matrix = fill(sector);
            if matrix.shape() != (fusion.space().dim(row), dim) {
                return Err(Error::internal("a state's matrix of another shape"));
            }
            rows.push(row);
            matrices.push(matrix);
            reached.insert(label.clone(), dim);
        }
        Ok(MpsTensor { before: before.clone(), behind: Space::new(reached), fusion, rows, matrices })
    }

    /// The site in one of its states, behind a bond of one state; the bond behind holds one, too.
    pub(super) fn product(
        symmetry: &ConservedNumbers,
        before: &Space,
        states: &[ChargeLabel],
        state: usize,
    ) -> Result<MpsTensor<T>> {
        let own = states.get(state).ok_or_else(|| Error::internal("a local state that there is not"))?;
        let behind = Space::single(symmetry.add(before.label(0), own));
        let fusion = Fusion::new(symmetry, before, states);
        let nowhere = || Error::internal("a state without a place");
        let (row, place) = fusion.place(0, state).ok_or_else(nowhere)?;
        let here = |k: usize| if k == place.offset { T::one_impl() } else { T::default() };
        let matrix = Mat::from_fn(fusion.space().dim(row), 1, |k, _| here(k));
        MpsTensor::new(symmetry, before, states, &behind, |_| matrix.clone())
    }

    /// The matrix between a sector before, with a state of the site, and the sector behind.
    pub(super) fn part(&self, before: usize, state: usize) -> Option<(usize, MatRef<'_, T>)> {
        let (row, part) = self.fusion.place(before, state)?;
        let behind = self.rows.iter().position(|r| *r == row)?;
        Some((behind, self.matrices[behind].as_ref().subrows(part.offset, part.dim)))
    }
}

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

/// A tensor whose bond before is multiplied by matrices (rows of the new basis, columns of the old): rows of each block
/// are those of the product of the new basis and the site.
pub(super) fn push_right<T: Element>(
    symmetry: &ConservedNumbers,
    states: &[ChargeLabel],
    tensor: &MpsTensor<T>,
    before: &Space,
    carry: &[Mat<T>],
) -> LabelledMatrices<T> {
    let fusion = Fusion::new(symmetry, before, states);
    let mut blocks = Vec::new();
    for (behind, matrix) in tensor.matrices.iter().enumerate() {
        let label = tensor.behind.label(behind);
        let Some(row) = fusion.space().find(label) else { continue };
        let mut pushed = Mat::zeros(fusion.space().dim(row), matrix.ncols());
        for part in tensor.fusion.parts(tensor.rows[behind]) {
            let Some(new) = before.find(tensor.before.label(part.inner)) else { continue };
            let Some((_, to)) = fusion.place(new, part.state) else { continue };
            let own = matrix.as_ref().subrows(part.offset, part.dim);
            pushed.as_mut().subrows_mut(to.offset, to.dim).copy_from(product(carry[new].as_ref(), own));
        }
        blocks.push((label.clone(), pushed));
    }
    blocks
}

/// A tensor whose bond behind is multiplied by matrices (rows of the old basis, columns of the new), or left as it is:
/// columns of each block are those of the product of the site and the new basis.
/// The blocks are labelled by the bond before.
pub(super) fn push_left<T: Element>(
    symmetry: &ConservedNumbers,
    states: &[ChargeLabel],
    tensor: &MpsTensor<T>,
    behind: &Space,
    carry: Option<&[Mat<T>]>,
) -> (Fusion, LabelledMatrices<T>) {
    let fusion = Fusion::new(symmetry, behind, &symmetry.negated(states));
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

/// The tensor of blocks as [`push_left`] makes them: rows of the bond `before`, whose sectors are those of the blocks.
pub(super) fn to_tensor<T: Element>(
    symmetry: &ConservedNumbers,
    states: &[ChargeLabel],
    before: &Space,
    behind: &Space,
    fusion: &Fusion,
    blocks: &LabelledMatrices<T>,
) -> Result<MpsTensor<T>> {
    let rows = Fusion::new(symmetry, before, states);
    let mut matrices: Vec<Mat<T>> = behind
        .iter()
        .map(|(q, dim)| Mat::zeros(rows.space().find(q).map_or(0, |s| rows.space().dim(s)), dim))
        .collect();
    for (label, m) in blocks {
        let (Some(own), Some(column)) = (before.find(label), fusion.space().find(label)) else { continue };
        for part in fusion.parts(column) {
            let Some((_, to)) = rows.place(own, part.state) else { continue };
            matrices[part.inner]
                .as_mut()
                .subrows_mut(to.offset, to.dim)
                .copy_from(m.as_ref().subcols(part.offset, part.dim));
        }
    }
    let fill = |sector: usize| std::mem::replace(&mut matrices[sector], Mat::zeros(0, 0));
    MpsTensor::new(symmetry, before, states, behind, fill)
}

/// Blocks as `L Q` with orthonormal rows of `Q`; what is zero is left out.
pub(super) fn lower<T: Element>(
    blocks: &LabelledMatrices<T>,
) -> (Space, LabelledMatrices<T>, LabelledMatrices<T>) {
    let cost = |b: &(ChargeLabel, Mat<T>)| {
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

/// A number times a tensor.
pub(super) fn times<T: Element>(tensor: &MpsTensor<T>, z: C64) -> MpsTensor<T> {
    let mut out = tensor.clone();
    for m in &mut out.matrices {
        *m = Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * T::from_c64(z));
    }
    out
}
