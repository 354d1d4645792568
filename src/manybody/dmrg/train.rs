//! Truncation of bonds and compression of states, for sums, products of operators and states, and gates.

use faer::Mat;

use super::dense::{FLOOR, deal, square, thin_svd};
use super::density::{Truncation, count, largest_first};
use super::space::{ChargeLabel, Space};
use super::state::MatrixProductState;
use super::tensor::{
    LabelledMatrices, MpsTensor, adjoint, lower, push_left, push_right, scaled_columns, scaled_rows,
    to_tensor,
};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::task::Task;

pub(super) fn not_finite() -> Error {
    Error::numeric("the state is not finite")
        .hint("look for coefficients beyond 1e150, whose squares overflow")
}

/// Blocks after decomposition and truncation: `U diag(s) V^H` each.
pub(super) struct SplitTensor<T> {
    /// Label, `U`, `s` (descending) and `V^H` of each sector that is left.
    pub kept: Vec<(ChargeLabel, Mat<T>, Vec<f64>, Mat<T>)>,
    /// The discarded weight, relative to the sum of all.
    pub discarded: f64,
    /// The sum of all weights.
    pub weight: f64,
}

impl<T: Element> SplitTensor<T> {
    /// The new basis of the bond: the sectors that are left, with their sizes.
    pub fn space(&self) -> Space {
        Space::of(self.kept.iter().map(|k| (k.0.clone(), k.2.len())).collect())
    }
}

/// The singular values of all blocks, truncated.
///
/// # Errors
/// When a decomposition does not converge.
pub(super) fn split<T: Element>(blocks: &LabelledMatrices<T>, cut: &Truncation) -> Result<SplitTensor<T>> {
    let cost = |b: &(ChargeLabel, Mat<T>)| {
        let (m, n) = b.1.shape();
        20.0 * (m * n * m.min(n)) as f64
    };
    let parts = deal(blocks, cost, |b, _| thin_svd(b.1.as_ref())).into_iter().collect::<Result<Vec<_>>>()?;
    let all = largest_first(parts.iter().map(|(_, s, _)| s.iter().map(|s| s * s)));
    let weight: f64 = all.iter().map(|a| a.0).sum();
    if !weight.is_finite() {
        return Err(not_finite());
    }
    if weight == 0.0 {
        return Ok(SplitTensor { kept: Vec::new(), discarded: 0.0, weight });
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
    Ok(SplitTensor { kept, discarded: spectrum[number..].iter().sum(), weight })
}

/// The input of a compression: a state's matrices in any gauge, made when they are needed.
pub(super) struct UncompressedState<'a, T: Element> {
    /// A state of the same sites and conserved numbers.
    pub like: &'a MatrixProductState<T>,
    /// The label of the whole chain.
    pub target: ChargeLabel,
    /// The matrices of a site.
    pub tensor: &'a dyn Fn(usize) -> Result<MpsTensor<T>>,
    /// A norm below this is rounding.
    pub least: f64,
}

impl<T: Element> UncompressedState<'_, T> {
    /// The state with its bonds truncated, and the sum over the bonds of the discarded weights, each relative to the
    /// sum of all. The state is first brought into the right gauge from the last site on, so that each truncation on
    /// the way back is optimal for its bond.
    ///
    /// # Errors
    /// When a decomposition does not converge, for numbers that are not finite, on interruption.
    pub fn compressed(&self, cut: &Truncation, task: &Task) -> Result<(MatrixProductState<T>, f64)> {
        let MatrixProductState { sites, symmetry, .. } = self.like;
        let n = sites.count();
        let states: Vec<Vec<ChargeLabel>> = (0..n).map(|i| symmetry.states(sites, i)).collect();
        let zero = || (MatrixProductState::zero(sites, symmetry, &self.target), 0.0);
        let steps = task.start("compression", 2 * n);
        let mut tensors = Vec::with_capacity(n);
        let mut behind = Space::single(self.target.clone());
        let mut carry: Vec<Mat<T>> = vec![Mat::identity(1, 1)];
        for i in (1..n).rev() {
            let (fusion, blocks) = push_left(symmetry, &states[i], &(self.tensor)(i)?, &behind, Some(&carry));
            let (before, rows, left) = lower(&blocks);
            if before.sectors() == 0 {
                return Ok(zero());
            }
            tensors.push(to_tensor(symmetry, &states[i], &before, &behind, &fusion, &rows)?);
            (behind, carry) = (before, left.into_iter().map(|l| l.1).collect());
            steps.advance(n - i)?;
        }
        // The first site takes the rest.
        let (fusion, blocks) = push_left(symmetry, &states[0], &(self.tensor)(0)?, &behind, Some(&carry));
        let first = Space::single(symmetry.zero());
        tensors.push(to_tensor(symmetry, &states[0], &first, &behind, &fusion, &blocks)?);
        tensors.reverse();
        let mut discarded = 0.0;
        let (mut before, mut carry) = (first.clone(), vec![Mat::identity(1, 1)]);
        let mut spaces = vec![first];
        for i in 0..n - 1 {
            let parts = split(&push_right(symmetry, &states[i], &tensors[i], &before, &carry), cut)?;
            if parts.kept.is_empty() {
                return Ok(zero());
            }
            discarded += parts.discarded;
            let space = parts.space();
            let fill = |sector: usize| parts.kept[sector].1.clone();
            tensors[i] = MpsTensor::new(symmetry, &before, &states[i], &space, fill)?;
            carry = parts.kept.iter().map(|(_, _, s, v)| scaled_rows(v, s)).collect();
            before = space.clone();
            spaces.push(space);
            steps.advance(n + i)?;
        }
        let last = push_right(symmetry, &states[n - 1], &tensors[n - 1], &before, &carry);
        let norm = last.iter().map(|b| square(b.1.as_ref())).sum::<f64>().sqrt();
        if !norm.is_finite() {
            return Err(not_finite());
        }
        if norm <= self.least {
            return Ok(zero());
        }
        let space = Space::single(self.target.clone());
        let one = |m: &Mat<T>| scaled_columns(m, &vec![1.0 / norm; m.ncols()]);
        tensors[n - 1] =
            MpsTensor::new(symmetry, &before, &states[n - 1], &space, |sector| one(&last[sector].1))?;
        spaces.push(space);
        Ok((MatrixProductState::made(sites, symmetry, &self.target, spaces, tensors, norm), discarded))
    }
}
