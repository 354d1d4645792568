//! A state in the right gauge: the right blocks of the chain in the state's own bases, or in bases that hold other
//! states too.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::Mat;

use super::basis::TruncatedBasis;
use super::block::ChainBlock;
use super::dense::{product, square, thin_svd};
use super::density::Truncation;
use super::mpo::Mpo;
use super::space::{ChainSide, ChargeLabel, Fusion, Space};
use super::state::MatrixProductState;
use super::tensor::{LabelledMatrices, adjoint, lower, push_left};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};

/// Isometries from the right at one site; their rows belong to the bond before it.
struct Isometry<T> {
    before: Space,
    /// Columns: the site and the bond behind it.
    fusion: Fusion,
    rows: LabelledMatrices<T>,
}

impl<T: Element> MatrixProductState<T> {
    /// The right blocks of the chain in the state's own basis, from the last site inwards: entry `i` holds the sites
    /// from `i` on.
    ///
    /// # Errors
    /// When the automaton belongs to other sites.
    pub fn right_blocks(&self, mpo: &Arc<Mpo>) -> Result<Vec<Arc<ChainBlock<T>>>> {
        self.wide_right_blocks(mpo, &[], &Truncation::default())
    }

    /// The same with bases that also hold what `others`, states of the same sector, have on the right: their
    /// directions with the largest weights that are not in the basis yet (Yang, White, Phys. Rev. B 102, 094315
    /// (2020)). `cut.states` bounds the number of states at a bond. Directions with less than `cut.cutoff` of the
    /// weight of their state are left out.
    ///
    /// # Errors
    /// When the automaton or a state belongs to other sites.
    pub fn wide_right_blocks(
        &self,
        mpo: &Arc<Mpo>,
        others: &[&MatrixProductState<T>],
        cut: &Truncation,
    ) -> Result<Vec<Arc<ChainBlock<T>>>> {
        if mpo.sites().count() != self.sites.count() || mpo.symmetry() != &self.symmetry {
            return Err(Error::input(
                "the state belongs to other sites, or another sector, than the operator",
            )
            .hint("make both for the same sites, with the same conserved numbers"));
        }
        for other in others {
            self.need_alike(other)?;
        }
        let others: Vec<&MatrixProductState<T>> =
            others.iter().filter(|o| o.norm > 0.0 && o.target == self.target).copied().collect();
        let n = self.sites.count();
        let mut blocks = vec![ChainBlock::edge(mpo, ChainSide::Right)];
        let mut behind = self.spaces[n].clone();
        // The bonds of all states in the new basis, by its sectors: rows of the old basis, columns of the new one.
        let mut carries: Vec<Vec<Mat<T>>> = vec![vec![Mat::identity(1, 1)]; 1 + others.len()];
        for i in (1..n).rev() {
            let states = self.symmetry.states(&self.sites, i);
            let push = |state: &MatrixProductState<T>, carry: &[Mat<T>]| {
                push_left(&self.symmetry, &states, &state.tensors[i], &behind, Some(carry))
            };
            let (fusion, own) = push(self, &carries[0]);
            let (_, rows, _) = lower(&own);
            let images: Vec<LabelledMatrices<T>> =
                others.iter().zip(&carries[1..]).map(|(o, carry)| push(o, carry).1).collect();
            let isometry = widened(fusion, rows, &images, cut)?;
            let block = blocks.last().cloned().ok_or_else(|| Error::internal("no block"))?.grow()?;
            let basis = self.basis_of(&block, &behind, &isometry)?.shared();
            blocks.push(block.rotate(&basis)?);
            carries = std::iter::once(&own)
                .chain(&images)
                .zip(std::iter::once(self).chain(others.iter().copied()))
                .map(|(image, state)| isometry.overlaps(image, &state.spaces[i]))
                .collect();
            behind = isometry.before;
        }
        blocks.reverse();
        Ok(blocks)
    }

    /// The basis of a grown right block that isometries describe.
    fn basis_of(
        &self,
        block: &Arc<ChainBlock<T>>,
        behind: &Space,
        isometry: &Isometry<T>,
    ) -> Result<TruncatedBasis<T>> {
        let (inner, fusion, _) =
            block.fusion().ok_or_else(|| Error::internal("a block that did not grow"))?;
        let from_left = |own: &ChargeLabel| self.symmetry.opposite(&self.target, own);
        let vectors = |sector: usize| -> Option<Mat<T>> {
            let label = from_left(fusion.space().label(sector));
            let (_, rows) = isometry.rows.iter().find(|r| r.0 == label)?;
            let mut wide = Mat::zeros(fusion.space().dim(sector), rows.nrows());
            for part in fusion.parts(sector) {
                let Some(far) = behind.find(&from_left(inner.label(part.inner))) else { continue };
                let Some((_, place)) = isometry.fusion.place(far, part.state) else { continue };
                let own = rows.as_ref().subcols(place.offset, place.dim);
                wide.as_mut().subrows_mut(part.offset, part.dim).copy_from(own.transpose());
            }
            Some(wide)
        };
        Ok(TruncatedBasis::from_vectors(fusion.space(), vectors))
    }
}

impl<T: Element> Isometry<T> {
    /// A state's matrices projected on this basis, by its sectors; rows of the state's bond.
    fn overlaps(&self, image: &LabelledMatrices<T>, bond: &Space) -> Vec<Mat<T>> {
        let one = |(label, rows): &(ChargeLabel, Mat<T>)| match image.iter().find(|b| b.0 == *label) {
            Some((_, m)) => product(m.as_ref(), adjoint(rows.as_ref()).as_ref()),
            None => Mat::zeros(bond.find(label).map_or(0, |s| bond.dim(s)), rows.nrows()),
        };
        self.rows.iter().map(one).collect()
    }
}

/// Orthonormal rows, and in addition the largest directions of the images orthogonal to them.
fn widened<T: Element>(
    fusion: Fusion,
    rows: LabelledMatrices<T>,
    images: &[LabelledMatrices<T>],
    cut: &Truncation,
) -> Result<Isometry<T>> {
    let mut all: BTreeMap<ChargeLabel, Mat<T>> = rows.into_iter().collect();
    let mut found: Vec<(f64, ChargeLabel, Mat<T>)> = Vec::new();
    for image in images {
        let weight: f64 = image.iter().map(|b| square(b.1.as_ref())).sum();
        for (label, m) in image.iter().filter(|_| weight > 0.0) {
            let mut rest = m.clone();
            // Twice, as the remainder may be much smaller than what is subtracted.
            for _ in 0..2 {
                let known = all.get(label).into_iter();
                let new = found.iter().filter(|f| f.1 == *label).map(|f| &f.2);
                for q in known.chain(new) {
                    let part = product(rest.as_ref(), adjoint(q.as_ref()).as_ref());
                    rest -= product(part.as_ref(), q.as_ref());
                }
            }
            let (_, s, v) = thin_svd(rest.as_ref())?;
            for (k, s) in s.iter().enumerate().filter(|s| s.1 * s.1 > cut.cutoff.max(1e-20) * weight) {
                found.push((s * s / weight, label.clone(), adjoint(v.as_ref().subcols(k, 1))));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let have: usize = all.values().map(|m| m.nrows()).sum();
    found.truncate(cut.states.unwrap_or(usize::MAX).saturating_sub(have));
    for (_, label, row) in found {
        let old = all.remove(&label).unwrap_or_else(|| Mat::zeros(0, row.ncols()));
        let n = old.nrows();
        let longer = Mat::from_fn(n + 1, row.ncols(), |i, j| if i < n { old[(i, j)] } else { row[(0, j)] });
        all.insert(label, longer);
    }
    let before = Space::of(all.iter().map(|(q, m)| (q.clone(), m.nrows())).collect());
    Ok(Isometry { before, fusion, rows: all.into_iter().collect() })
}
