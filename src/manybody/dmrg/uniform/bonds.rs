//! Matrices on a bond of an infinite chain, between the state and its conjugate: past whole cells,
//! as vectors of eigensolvers.

use faer::Mat;

use super::super::carry::{BondMatrices, to_left, to_right};
use super::super::space::{ChargeLabel, ConservedNumbers, Space};
use super::super::tensor::MpsTensor;
use crate::backend::matrix::records::Element;
use crate::error::Result;
use crate::number::C64;

/// Past all sites of some tensors, in their order.
pub(super) fn past_left<T: Element>(tensors: &[MpsTensor<T>], x: &BondMatrices<T>) -> BondMatrices<T> {
    tensors.iter().fold(x.clone(), |x, tensor| to_right((tensor, tensor), None, Some(&x)))
}

/// Past all sites of some tensors, from the last to the first.
pub(super) fn past_right<T: Element>(tensors: &[MpsTensor<T>], x: &BondMatrices<T>) -> BondMatrices<T> {
    tensors.iter().rev().fold(x.clone(), |x, tensor| to_left((tensor, tensor), &x))
}

/// The identity, or blocks on the diagonal.
pub(super) fn diagonal<T: Element>(blocks: Vec<Mat<T>>) -> BondMatrices<T> {
    blocks.into_iter().enumerate().map(|(s, m)| ((s, s), m)).collect()
}

pub(super) fn identity<T: Element>(space: &Space) -> BondMatrices<T> {
    diagonal(space.dims().iter().map(|&d| Mat::identity(d, d)).collect())
}

/// The trace of a product of blocks on the diagonal.
pub(super) fn trace<T: Element>(a: &BondMatrices<T>, b: &BondMatrices<T>) -> C64 {
    let mut sum = C64::ZERO;
    for (&(i, j), a) in a {
        let Some(b) = b.get(&(j, i)) else { continue };
        for k in 0..a.ncols() {
            for l in 0..a.nrows() {
                sum += (a[(l, k)] * b[(k, l)]).to_c64();
            }
        }
    }
    sum
}

/// Which matrices a vector holds: pairs of sectors whose labels differ by a charge, and their sizes.
pub(super) struct BlockLayout(Vec<((usize, usize), (usize, usize))>);

impl BlockLayout {
    /// Rows less columns have the label `charge`.
    pub fn new(symmetry: &ConservedNumbers, space: &Space, charge: &ChargeLabel) -> BlockLayout {
        BlockLayout::between(space, space, |q| symmetry.add(q, charge))
    }

    /// For each column its one row, if there is one: that with the label `partner` of the column's.
    pub fn between(
        rows: &Space,
        columns: &Space,
        partner: impl Fn(&ChargeLabel) -> ChargeLabel,
    ) -> BlockLayout {
        let pair = |(column, (q, width)): (usize, (&ChargeLabel, usize))| {
            rows.find(&partner(q)).map(|row| ((row, column), (rows.dim(row), width)))
        };
        BlockLayout(columns.iter().enumerate().filter_map(pair).collect())
    }

    /// From pairs of sectors and their sizes.
    pub fn of(all: Vec<((usize, usize), (usize, usize))>) -> BlockLayout {
        BlockLayout(all)
    }

    /// Length of a vector.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(_, (r, c))| r * c).sum()
    }

    /// The matrices as a vector; those that are not there are zero.
    pub fn flat<T: Element>(&self, x: &BondMatrices<T>) -> Vec<T> {
        let mut out = Vec::with_capacity(self.len());
        for (at, (rows, columns)) in &self.0 {
            match x.get(at) {
                Some(m) => (0..*columns).for_each(|j| out.extend(m.col(j).iter().copied())),
                None => out.resize(out.len() + rows * columns, T::default()),
            }
        }
        out
    }

    /// A vector as matrices.
    pub fn matrices<T: Element>(&self, x: &[T]) -> BondMatrices<T> {
        let mut at = 0;
        let mut out = BondMatrices::new();
        for &(key, (rows, columns)) in &self.0 {
            out.insert(key, Mat::from_fn(rows, columns, |i, j| x[at + j * rows + i]));
            at += rows * columns;
        }
        out
    }
}

/// The fixed point of the right side of tensors that are isometries from the left, near `start`: Hermitian,
/// of trace one.
///
/// # Errors
/// When it does not converge; interruption.
pub(super) fn fixed_right<T: Element>(
    symmetry: &ConservedNumbers,
    space: &Space,
    tensors: &[MpsTensor<T>],
    start: &BondMatrices<T>,
) -> Result<BondMatrices<T>> {
    let layout = BlockLayout::new(symmetry, space, &symmetry.zero());
    let mut map = |x: &[T]| Ok(layout.flat(&past_right(tensors, &layout.matrices(x))));
    dominant(&layout, &mut map, start)
}

/// The eigenvector of the largest eigenvalue of a positive map, as a Hermitian matrix of trace one.
pub(super) fn dominant<T: Element>(
    layout: &BlockLayout,
    map: &mut dyn FnMut(&[T]) -> Result<Vec<T>>,
    start: &BondMatrices<T>,
) -> Result<BondMatrices<T>> {
    let mut x = layout.flat(start);
    for _ in 0..40 {
        let found = super::krylov::largest(map, &x, 1, 1e-15, 40)?;
        let Some(pair) = found.into_iter().next() else { break };
        // The phase that makes the trace real, then the Hermitian part.
        let z: Vec<C64> = pair.vector;
        let wide: BondMatrices<C64> = layout.matrices(&z);
        let trace: C64 = wide.values().flat_map(|m| (0..m.nrows()).map(move |i| m[(i, i)])).sum();
        if trace.norm() == 0.0 {
            break;
        }
        let hermitian = |m: &Mat<C64>| {
            Mat::from_fn(m.nrows(), m.ncols(), |i, j| {
                T::from_c64((m[(i, j)] / trace + (m[(j, i)] / trace).conj()) * 0.5)
            })
        };
        x = layout.flat(&wide.iter().map(|(k, m)| (*k, hermitian(m))).collect());
        if pair.residual < 1e-14 {
            break;
        }
    }
    Ok(layout.matrices(&x))
}
