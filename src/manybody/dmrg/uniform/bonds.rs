//! Matrices on a bond of an infinite chain, between the state and its conjugate, carried past sites.

use std::collections::BTreeMap;

use faer::Mat;

use super::super::dense::{adjoint_product, product};
use super::super::space::{Label, Space, Symmetry};
use super::super::tensor::{Tensor, adjoint};
use crate::backend::matrix::records::Element;
use crate::error::Result;
use crate::number::C64;

/// Matrices by pairs of sectors. On the left of a bond rows belong to the conjugate and columns to the state, on the right
/// it is the other way round; the first sector of a pair is that of the rows.
pub(super) type Matrices<T> = BTreeMap<(usize, usize), Mat<T>>;

pub(super) fn put<T: Element>(to: &mut Matrices<T>, at: (usize, usize), m: Mat<T>) {
    match to.get_mut(&at) {
        Some(sum) => *sum += m,
        None => {
            to.insert(at, m);
        }
    }
}

/// The element of a local operator; those of the identity without one.
fn element(operator: Option<&[C64]>, dim: usize, i: usize, j: usize) -> C64 {
    match operator {
        Some(o) => o[i * dim + j],
        None if i == j => C64::ONE,
        None => C64::ZERO,
    }
}

pub(super) fn times<T: Element>(m: Mat<T>, z: C64) -> Mat<T> {
    if z == C64::ONE { m } else { m * faer::Scale(T::from_c64(z)) }
}

/// Past a site to the right, with an operator on it: the sum of `O_ij A_i^H x A_j`.
pub(super) fn from_left<T: Element>(
    tensor: &Tensor<T>,
    operator: Option<&[C64]>,
    x: &Matrices<T>,
) -> Matrices<T> {
    let dim = tensor.fusion.states();
    let mut out = Matrices::new();
    for (&(bra, ket), m) in x {
        for j in 0..dim {
            let Some((to, lower)) = tensor.part(ket, j) else { continue };
            let mut half = None;
            for i in 0..dim {
                let z = element(operator, dim, i, j);
                if z == C64::ZERO {
                    continue;
                }
                let Some((at, upper)) = tensor.part(bra, i) else { continue };
                let half = half.get_or_insert_with(|| product(m.as_ref(), lower));
                put(&mut out, (at, to), times(adjoint_product(upper, half.as_ref()), z));
            }
        }
    }
    out
}

/// Past a site to the left, with an operator on it: the sum of `O_ij A_j x A_i^H`.
pub(super) fn from_right<T: Element>(
    tensor: &Tensor<T>,
    operator: Option<&[C64]>,
    x: &Matrices<T>,
) -> Matrices<T> {
    let dim = tensor.fusion.states();
    let mut out = Matrices::new();
    for (&(ket, bra), m) in x {
        for lower in tensor.fusion.parts(tensor.rows[ket]) {
            let mut half = None;
            for upper in tensor.fusion.parts(tensor.rows[bra]) {
                let z = element(operator, dim, upper.state, lower.state);
                if z == C64::ZERO {
                    continue;
                }
                let half = half.get_or_insert_with(|| {
                    product(tensor.matrices[ket].as_ref().subrows(lower.offset, lower.dim), m.as_ref())
                });
                let own = tensor.matrices[bra].as_ref().subrows(upper.offset, upper.dim);
                let whole = product(half.as_ref(), adjoint(own).as_ref());
                put(&mut out, (lower.inner, upper.inner), times(whole, z));
            }
        }
    }
    out
}

/// Past a site to the right, between two states: the sum of `A_i^H x B_i`.
pub(super) fn between<T: Element>(a: &Tensor<T>, b: &Tensor<T>, x: &Matrices<T>) -> Matrices<T> {
    let mut out = Matrices::new();
    for (&(bra, ket), m) in x {
        for i in 0..a.fusion.states() {
            let (Some((at, upper)), Some((to, lower))) = (a.part(bra, i), b.part(ket, i)) else { continue };
            let half = product(m.as_ref(), lower);
            put(&mut out, (at, to), adjoint_product(upper, half.as_ref()));
        }
    }
    out
}

/// Past all sites of some tensors, in their order.
pub(super) fn past_left<T: Element>(tensors: &[Tensor<T>], x: &Matrices<T>) -> Matrices<T> {
    tensors.iter().fold(x.clone(), |x, tensor| from_left(tensor, None, &x))
}

/// Past all sites of some tensors, from the last to the first.
pub(super) fn past_right<T: Element>(tensors: &[Tensor<T>], x: &Matrices<T>) -> Matrices<T> {
    tensors.iter().rev().fold(x.clone(), |x, tensor| from_right(tensor, None, &x))
}

/// The identity, or blocks on the diagonal.
pub(super) fn diagonal<T: Element>(blocks: impl IntoIterator<Item = Mat<T>>) -> Matrices<T> {
    blocks.into_iter().enumerate().map(|(s, m)| ((s, s), m)).collect()
}

pub(super) fn identity<T: Element>(space: &Space) -> Matrices<T> {
    diagonal(space.dims().iter().map(|&d| Mat::identity(d, d)))
}

/// The trace of a product of blocks on the diagonal.
pub(super) fn trace<T: Element>(a: &Matrices<T>, b: &Matrices<T>) -> C64 {
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
    pub fn new(symmetry: &Symmetry, space: &Space, charge: &Label) -> BlockLayout {
        let mut all = Vec::new();
        for (column, (q, columns)) in space.iter().enumerate() {
            if let Some(row) = space.find(&symmetry.add(q, charge)) {
                all.push(((row, column), (space.dim(row), columns)));
            }
        }
        BlockLayout(all)
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
    pub fn flat<T: Element>(&self, x: &Matrices<T>) -> Vec<T> {
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
    pub fn matrices<T: Element>(&self, x: &[T]) -> Matrices<T> {
        let mut at = 0;
        let mut out = Matrices::new();
        for &(key, (rows, columns)) in &self.0 {
            out.insert(key, Mat::from_fn(rows, columns, |i, j| x[at + j * rows + i]));
            at += rows * columns;
        }
        out
    }
}

/// The fixed point of the right side of tensors that are isometries from the left, near `start`: Hermitian, of trace one.
///
/// # Errors
/// When it does not converge; interruption.
pub(super) fn fixed_right<T: Element>(
    symmetry: &Symmetry,
    space: &Space,
    tensors: &[Tensor<T>],
    start: &Matrices<T>,
) -> Result<Matrices<T>> {
    let layout = BlockLayout::new(symmetry, space, &symmetry.zero());
    let map = |x: &[T]| Ok(layout.flat(&past_right(tensors, &layout.matrices(x))));
    dominant(&layout, map, start)
}

/// The eigenvector of the largest eigenvalue of a positive map, as a Hermitian matrix of trace one.
pub(super) fn dominant<T: Element>(
    layout: &BlockLayout,
    mut map: impl FnMut(&[T]) -> Result<Vec<T>>,
    start: &Matrices<T>,
) -> Result<Matrices<T>> {
    let mut x = layout.flat(start);
    for _ in 0..40 {
        let found = super::krylov::largest(&mut map, &x, 1, 1e-15, 40)?;
        let Some(pair) = found.into_iter().next() else { break };
        // The phase that makes the trace real, then the Hermitian part.
        let z: Vec<C64> = pair.vector;
        let wide: Matrices<C64> = layout.matrices(&z);
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
