//! The same state of an infinite chain with other labels, and seen from another site of its cell.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::Mat;

use super::super::carry::to_right;
use super::super::space::{ChargeLabel, ConservedNumbers, Fusion, Space};
use super::super::tensor::{MpsTensor, adjoint};
use super::bonds::BlockLayout;
use super::cell::UnitCell;
use super::ends::ended;
use super::krylov::largest;
use super::state::Uniform;
use super::step::polar;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::philox::{self, Stream};

fn moved(symmetry: &ConservedNumbers, space: &Space, by: &ChargeLabel) -> Space {
    Space::of(space.iter().map(|(q, d)| (symmetry.add(q, by), d)).collect())
}

/// A tensor with labels larger on both sides; rows and columns follow the order of the new labels.
fn relabelled<T: Element>(
    symmetry: &ConservedNumbers,
    tensor: &MpsTensor<T>,
    states: &[ChargeLabel],
    before_by: &ChargeLabel,
    behind_by: &ChargeLabel,
) -> Result<MpsTensor<T>> {
    let before = moved(symmetry, &tensor.before, before_by);
    let behind = moved(symmetry, &tensor.behind, behind_by);
    let fusion = Fusion::new(symmetry, &before, states);
    MpsTensor::new(symmetry, &before, states, &behind, |sector| {
        let label = behind.label(sector);
        let rows = fusion.space().find(label);
        let from = tensor.behind.find(&symmetry.subtract(label, behind_by));
        let (Some(row), Some(from)) = (rows, from) else { return Mat::zeros(0, 0) };
        let mut m = Mat::zeros(fusion.space().dim(row), behind.dim(sector));
        for part in fusion.parts(row) {
            let inner = tensor.before.find(&symmetry.subtract(before.label(part.inner), before_by));
            let Some(inner) = inner else { continue };
            let Some((_, old)) = tensor.fusion.place(inner, part.state) else { continue };
            let own = tensor.matrices[from].as_ref().subrows(old.offset, old.dim);
            m.as_mut().subrows_mut(part.offset, part.dim).copy_from(own);
        }
        m
    })
}

/// How many copies of a cell another one is.
fn copies(large: &UnitCell, small: &UnitCell) -> Result<usize> {
    let (n, m) = (large.count(), small.count());
    let times = n / m.max(1);
    let symmetry = &small.symmetry;
    let kinds: Vec<_> = small.sites.iter().collect();
    let total = (0..times).fold(symmetry.zero(), |q, _| symmetry.add(&q, &small.target));
    let alike = times > 0
        && n == times * m
        && large.symmetry == *symmetry
        && large.sites.iter().enumerate().all(|(i, kind)| kind == kinds[i % m])
        && total == symmetry.add(&large.target, &symmetry.zero());
    if alike {
        return Ok(times);
    }
    Err(Error::input(format!("a cell of {} is not several of {}", large.sites, small.sites))
        .hint("the large cell holds copies of the small one, and as many times its numbers"))
}

impl<T: Element> Uniform<T> {
    /// The state of a cell whose bond `b` and site `b` are those that `from` says of this one, with labels larger by
    /// `by`, one for each bond.
    fn arranged(&self, cell: &Arc<UnitCell>, from: &[usize], by: &[ChargeLabel]) -> Result<Uniform<T>> {
        let n = cell.count();
        let symmetry = &self.cell.symmetry;
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut spaces, mut centre) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (b, &old) in from.iter().enumerate() {
            let (here, next) = (&by[b], &by[(b + 1) % n]);
            let states = &cell.states[b];
            left.push(relabelled(symmetry, &self.left[old], states, here, next)?);
            right.push(relabelled(symmetry, &self.right[old], states, here, next)?);
            let space = moved(symmetry, &self.spaces[old], here);
            let own = |(q, _): (&ChargeLabel, usize)| {
                let sector = self.spaces[old].find(&symmetry.subtract(q, here)).unwrap_or(0);
                self.centre[old][sector].clone()
            };
            centre.push(space.iter().map(own).collect());
            spaces.push(space);
        }
        Ok(Uniform { cell: cell.clone(), spaces, left, right, centre })
    }

    /// The state with labels larger by a charge on every bond.
    pub(super) fn charged(&self, charge: &ChargeLabel) -> Result<Uniform<T>> {
        let n = self.count();
        self.arranged(&self.cell, &(0..n).collect::<Vec<_>>(), &vec![charge.clone(); n])
    }

    /// The state moved to the left by some sites: what stood on site `by` of the cell stands on its first.
    ///
    /// # Errors
    /// When the sites of the cell are not the same ones then.
    pub fn moved(&self, by: usize) -> Result<Uniform<T>> {
        let n = self.count();
        let by = by % n;
        let kinds: Vec<_> = self.cell.sites.iter().collect();
        if (0..n).any(|i| kinds[i] != kinds[(i + by) % n]) {
            return Err(Error::input(format!("a cell of {} is another one moved by {by}", self.cell.sites))
                .hint("move it by as many sites as repeat themselves"));
        }
        let symmetry = &self.cell.symmetry;
        let from: Vec<usize> = (0..n).map(|b| (b + by) % n).collect();
        // Bonds of the next cell count what this cell holds, too.
        let more = |b: usize| if b + by >= n { self.cell.target.clone() } else { symmetry.zero() };
        self.arranged(&self.cell, &from, &(0..n).map(more).collect::<Vec<_>>())
    }

    /// The same state in a cell of several copies of this one.
    ///
    /// # Errors
    /// When the other cell is not one of copies of this one.
    pub fn repeated(&self, cell: &Arc<UnitCell>) -> Result<Uniform<T>> {
        copies(cell, &self.cell)?;
        let (n, m) = (cell.count(), self.count());
        let symmetry = &self.cell.symmetry;
        // Bonds of later copies count what those before hold, too.
        let mut shift = symmetry.zero();
        let mut shifts = Vec::with_capacity(n + 1);
        for b in 0..n {
            if b > 0 && b.is_multiple_of(m) {
                shift = symmetry.add(&shift, &self.cell.target);
            }
            shifts.push(shift.clone());
        }
        self.arranged(cell, &(0..n).map(|b| b % m).collect::<Vec<_>>(), &shifts)
    }

    /// The same state in a shorter cell, of which this one is several copies, and how well that cell can hold it: 1
    /// where all copies are alike, less where the state repeats itself only after all of them.
    ///
    /// # Errors
    /// When this cell is none of copies of the other; when a decomposition does not converge.
    pub fn folded(&self, cell: &Arc<UnitCell>) -> Result<(Uniform<T>, f64)> {
        let (n, m) = (self.count(), cell.count());
        let symmetry = &self.cell.symmetry;
        if copies(&self.cell, cell)? == 1 {
            return Ok((self.clone(), 1.0));
        }
        // The state seen from the next small cell, between the two bases.
        let less = |q: &ChargeLabel| symmetry.subtract(q, &cell.target);
        let layout = BlockLayout::between(&self.spaces[0], &self.spaces[m], less);
        let mut map = |x: &[T]| -> Result<Vec<T>> {
            let around = |y, k: usize| to_right((&self.left[k], &self.left[(k + m) % n]), None, Some(&y));
            Ok(layout.flat(&(0..n).fold(layout.matrices(x), around)))
        };
        let start: Vec<T> = (0..layout.len())
            .map(|k| {
                let w = philox::words(0, Stream::Script as u32, k as u64, 4);
                T::from_c64((philox::unit(w[0], w[1]) - 0.5).into())
            })
            .collect();
        let pair = largest(&mut map, &start, 1, 1e-13, 200)?.into_iter().next();
        let lost = || Error::numeric("no part of the state is like the next one");
        let pair = pair.ok_or_else(lost)?;
        // Of a real state the vector is real but for a phase.
        let top = pair.vector.iter().max_by(|a, b| a.norm().total_cmp(&b.norm())).ok_or_else(lost)?;
        let phase = top.conj() / top.norm();
        let x: Vec<T> = pair.vector.iter().map(|z| T::from_c64(z * phase)).collect();
        let mut turns: BTreeMap<ChargeLabel, Mat<T>> = BTreeMap::new();
        for ((row, _), w) in &layout.matrices(&x) {
            turns.insert(self.spaces[0].label(*row).clone(), adjoint(polar(w.as_ref())?.as_ref()));
        }
        let mut tensors: Vec<MpsTensor<T>> = self.left[..m].to_vec();
        let back = symmetry.subtract(&symmetry.zero(), &cell.target);
        let end = relabelled(symmetry, &tensors[m - 1], &cell.states[m - 1], &symmetry.zero(), &back)?;
        tensors[m - 1] = ended(cell, m - 1, &end, &self.spaces[0], &turns)?;
        Ok((Uniform::of_any(cell, &self.spaces[..m], &tensors)?, pair.value.norm().min(1.0)))
    }
}
