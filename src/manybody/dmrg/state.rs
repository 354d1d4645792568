//! A state of the whole chain as a product of matrices, in sectors: the result of sweeps, and the subject of
//! measurements, overlaps and files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use faer::{Mat, MatRef};

use super::block::ChainBlock;
use super::conserved::conserved;
use super::dense::{square, thin_svd};
use super::mpo::Mpo;
use super::space::{ChargeLabel, ConservedNumbers, Fusion, Space};
use super::superblock::Superblock;
use super::tensor::{MpsTensor, push_right};
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{Sector, Sites};

/// A matrix product state: a norm times `A_1 A_2 ... A_N`, every `A` an isometry from the left.
#[derive(Debug, Clone)]
pub struct MatrixProductState<T> {
    pub(super) sites: Sites,
    pub(super) symmetry: ConservedNumbers,
    pub(super) target: ChargeLabel,
    /// The bases at the bonds, labelled by the charges to the left; one more than sites.
    pub(super) spaces: Vec<Space>,
    pub(super) tensors: Vec<MpsTensor<T>>,
    /// The factor of the product of the matrices; 0 for the zero state, whose bonds have no basis.
    pub(super) norm: f64,
    /// Identifies the state where something is remembered about it.
    pub(super) number: u64,
}

fn next_number() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

impl<T: Element> MatrixProductState<T> {
    /// The state with one local state a site.
    ///
    /// # Errors
    /// When there is not one a site, or the state lies outside the sector.
    pub fn product(sites: &Sites, states: &[usize], sector: &Sector) -> Result<MatrixProductState<T>> {
        let (symmetry, target) = conserved(sites, sector)?;
        if symmetry.spin().is_some() {
            return Err(Error::input("a product state in a sector of total spin")
                .hint("it is a sum of states of many spins: name Sz in place of S"));
        }
        sites.need_each(states.len())?;
        let mut before = Space::single(symmetry.zero());
        let mut tensors = Vec::new();
        for (i, &state) in states.iter().enumerate() {
            let labels = symmetry.states(sites, i);
            let tensor = MpsTensor::product(&symmetry, &before, &labels, state)?;
            before = tensor.behind.clone();
            tensors.push(tensor);
        }
        if before.label(0) != &target {
            return Err(Error::input("the product state lies outside the sector")
                .hint("its conserved numbers have to sum up to those of the option `sector`"));
        }
        MatrixProductState::from_tensors(sites.clone(), symmetry, target, tensors)
    }

    /// The state of a superblock's vector, by way of the blocks that its blocks were made from.
    ///
    /// # Errors
    /// When the blocks do not know how they were made, as in an infinite chain.
    pub fn from_superblock(both: &Superblock<T>, x: &[T]) -> Result<MatrixProductState<T>> {
        let mpo = both.left().mpo().clone();
        if mpo.is_uniform() || both.left().sites() + both.right().sites() != mpo.sites().count() {
            return Err(lost());
        }
        let symmetry = mpo.symmetry().clone();
        let (l, r) = (both.left(), both.right());
        let mut sums = both.pairs().iter().filter_map(|p| symmetry.joined(l.label(p.left), r.label(p.right)));
        let target = sums.next().ok_or_else(lost)?;
        if sums.any(|sum| sum != target) {
            return Err(Error::input("the superblock holds several sectors, and a state belongs to one")
                .hint("name all conserved numbers for the superblock"));
        }
        let target = symmetry.add(&target, &symmetry.end(mpo.target()));
        let n = mpo.sites().count();
        let mut tensors: Vec<Option<MpsTensor<T>>> = vec![None; n];
        let inside = |block: &Arc<ChainBlock<T>>| block.fusion().map_or(block.clone(), |f| f.0.clone());
        left_tensors(inside(both.left()), &mpo, &mut tensors)?;
        right_tensors(inside(both.right()), &mpo, &target, &mut tensors)?;
        middle_tensors(both, x, &target, &mut tensors)?;
        let tensors: Option<Vec<MpsTensor<T>>> = tensors.into_iter().collect();
        MatrixProductState::from_tensors(mpo.sites().clone(), symmetry, target, tensors.ok_or_else(lost)?)
    }

    /// From its matrices, in any gauge.
    pub(super) fn from_tensors(
        sites: Sites,
        symmetry: ConservedNumbers,
        target: ChargeLabel,
        tensors: Vec<MpsTensor<T>>,
    ) -> Result<MatrixProductState<T>> {
        let number = next_number();
        let mut state =
            MatrixProductState { sites, symmetry, target, spaces: Vec::new(), tensors, norm: 1.0, number };
        state.canonical()?;
        Ok(state)
    }

    /// From isometries and the norm.
    pub(super) fn made(
        sites: &Sites,
        symmetry: &ConservedNumbers,
        target: &ChargeLabel,
        spaces: Vec<Space>,
        tensors: Vec<MpsTensor<T>>,
        norm: f64,
    ) -> MatrixProductState<T> {
        let (sites, symmetry, target) = (sites.clone(), symmetry.clone(), target.clone());
        MatrixProductState { sites, symmetry, target, spaces, tensors, norm, number: next_number() }
    }

    /// The zero state: norm 0, and no basis at any bond.
    pub fn zero(sites: &Sites, symmetry: &ConservedNumbers, target: &ChargeLabel) -> MatrixProductState<T> {
        let none = Space::new(BTreeMap::new());
        let mut spaces = vec![none; sites.count() + 1];
        spaces[0] = Space::single(symmetry.zero());
        let empty = |i: usize| {
            let (before, behind) = (spaces[i].clone(), spaces[i + 1].clone());
            let fusion = Fusion::new(symmetry, &before, &symmetry.states(sites, i));
            MpsTensor { before, behind, fusion, rows: Vec::new(), matrices: Vec::new() }
        };
        let tensors = (0..sites.count()).map(empty).collect();
        MatrixProductState::made(sites, symmetry, target, spaces, tensors, 0.0)
    }

    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// The same state with another norm; the zero state stays.
    pub fn with_norm(&self, norm: f64) -> MatrixProductState<T> {
        let norm = if self.norm == 0.0 { 0.0 } else { norm };
        MatrixProductState { norm, ..self.clone() }
    }

    /// The same state under a new number, before it is changed.
    pub(super) fn renumbered(self) -> MatrixProductState<T> {
        MatrixProductState { number: next_number(), ..self }
    }

    /// Makes every matrix an isometry from the left, and the norm one.
    pub(super) fn canonical(&mut self) -> Result<()> {
        // The remaining factor of the last site, by sector of the bond: rows of the new basis, columns of the old.
        let first = Space::single(self.symmetry.zero());
        let mut carry: Vec<Mat<T>> = vec![Mat::identity(1, 1)];
        let mut carried = first.clone();
        self.spaces = vec![first];
        for i in 0..self.tensors.len() {
            let states = self.symmetry.states(&self.sites, i);
            let mut next = BTreeMap::new();
            let mut parts: BTreeMap<ChargeLabel, (Mat<T>, Mat<T>)> = BTreeMap::new();
            for (label, pushed) in push_right(&self.symmetry, &states, &self.tensors[i], &carried, &carry) {
                let qr = pushed.as_ref().qr();
                let (q, r) = (qr.compute_thin_Q(), qr.thin_R().to_owned());
                if q.ncols() > 0 && square(r.as_ref()) > 0.0 {
                    next.insert(label.clone(), q.ncols());
                    parts.insert(label, (q, r));
                }
            }
            if parts.is_empty() {
                return Err(Error::numeric("the state has norm zero")
                    .hint("a sum or a product that is zero is no state"));
            }
            let behind = Space::new(next);
            let (mut matrices, rest): (Vec<Mat<T>>, Vec<Mat<T>>) = parts.into_values().unzip();
            let fill = |sector: usize| std::mem::replace(&mut matrices[sector], Mat::zeros(0, 0));
            let tensor = MpsTensor::new(&self.symmetry, &carried, &states, &behind, fill)?;
            self.spaces.push(behind.clone());
            (self.tensors[i], carried, carry) = (tensor, behind, rest);
        }
        let norm = carry.iter().map(|r| square(r.as_ref())).sum::<f64>().sqrt();
        if !(norm > 0.0) {
            return Err(
                Error::numeric("the state has norm zero").hint("a sum or a product that is zero is no state")
            );
        }
        // The phase of the last factor belongs to the state.
        if let ([last], Some(tensor)) = (&carry[..], self.tensors.last_mut()) {
            let phase = T::from_c64(last[(0, 0)].to_c64() / norm);
            for m in &mut tensor.matrices {
                *m = Mat::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)] * phase);
            }
        }
        Ok(())
    }

    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// The charges of the state, by name.
    pub fn sector(&self) -> Sector {
        self.symmetry
            .names()
            .iter()
            .zip(&self.target)
            .map(|(n, q)| (n.clone(), f64::from(*q) / 2.0))
            .collect()
    }

    /// States kept at each bond inside the chain.
    pub fn widths(&self) -> Vec<usize> {
        self.spaces[1..self.spaces.len() - 1].iter().map(Space::total).collect()
    }

    /// Bytes of the matrices.
    pub fn bytes(&self) -> usize {
        let of = |t: &MpsTensor<T>| {
            t.matrices.iter().map(|m| m.nrows() * m.ncols() * size_of::<T>()).sum::<usize>()
        };
        self.tensors.iter().map(of).sum()
    }
}

/// A matrix as an isometry times a remaining factor, without directions that are rounding; none for zero.
fn ranked<T: Element>(m: MatRef<'_, T>) -> Result<Option<(Mat<T>, Mat<T>)>> {
    let (u, s, v) = thin_svd(m)?;
    let first = s.first().copied().unwrap_or(0.0);
    let rank = s.iter().take_while(|s| **s > 1e-15 * first && **s > 1e-200).count();
    if rank == 0 {
        return Ok(None);
    }
    let rest = Mat::from_fn(rank, v.nrows(), |i, j| {
        T::from_c64(s[i].into()) * crate::number::Scalar::conj(v[(j, i)])
    });
    Ok(Some((u.as_ref().subcols(0, rank).to_owned(), rest)))
}

fn zeros<T: Element>(rows: &Fusion, behind: &Space) -> Vec<Mat<T>> {
    let height = |q: &ChargeLabel| rows.space().find(q).map_or(0, |s| rows.space().dim(s));
    behind.iter().map(|(q, dim)| Mat::zeros(height(q), dim)).collect()
}

/// The error of blocks that do not know how they were made.
fn lost() -> Error {
    Error::input("the blocks of an infinite chain do not make a state of a finite one")
        .hint("use blocks grown from the two ends of the chain")
}

/// The labels of a right block seen from the left, in ascending order, and where each sector went.
fn seen_from_left(symmetry: &ConservedNumbers, target: &ChargeLabel, space: &Space) -> (Space, Vec<usize>) {
    let labels: Vec<ChargeLabel> = space.iter().map(|(q, _)| symmetry.opposite(target, q)).collect();
    let sorted = labels.iter().cloned().zip(space.dims().iter().copied()).collect::<BTreeMap<_, _>>();
    let turned = Space::new(sorted);
    let place = labels.iter().map(|q| turned.find(q).unwrap_or(0)).collect();
    (turned, place)
}

/// The matrices of the sites that a left block has, from the bases that it was cut to.
fn left_tensors<T: Element>(
    mut left: Arc<ChainBlock<T>>,
    mpo: &Mpo,
    tensors: &mut [Option<MpsTensor<T>>],
) -> Result<()> {
    while left.sites() > 0 {
        let (grown, basis) = left.origin().ok_or_else(lost)?.clone();
        let (inner, _, site) = grown.fusion().ok_or_else(lost)?;
        let vectors = basis.vectors.all()?;
        let matrices: Vec<MatRef<'_, T>> = vectors.iter().map(|v| v.here()).collect::<Result<_>>()?;
        let fill = |sector: usize| matrices[sector].to_owned();
        let (states, behind) = (mpo.states(site), basis.new_space());
        tensors[site] = Some(MpsTensor::new(mpo.symmetry(), inner.space(), states, behind, fill)?);
        left = inner.clone();
    }
    Ok(())
}

/// The tensors of a right block.
fn right_tensors<T: Element>(
    mut right: Arc<ChainBlock<T>>,
    mpo: &Mpo,
    target: &ChargeLabel,
    tensors: &mut [Option<MpsTensor<T>>],
) -> Result<()> {
    let symmetry = mpo.symmetry();
    while right.sites() > 0 {
        let (grown, basis) = right.origin().ok_or_else(lost)?.clone();
        let (inner, fusion, site) = grown.fusion().ok_or_else(lost)?;
        let (before, own_place) = seen_from_left(symmetry, target, right.space());
        let (behind, place) = seen_from_left(symmetry, target, inner.space());
        let rows = Fusion::new(symmetry, &before, mpo.states(site));
        let mut matrices = zeros::<T>(&rows, &behind);
        for (sector, v) in basis.vectors.all()?.iter().enumerate() {
            for part in fusion.parts(basis.old_sector[sector]) {
                let (_, to) = rows.place(own_place[sector], part.state).ok_or_else(lost)?;
                let block = v.here()?.subrows(part.offset, part.dim).transpose();
                matrices[place[part.inner]].as_mut().subrows_mut(to.offset, to.dim).copy_from(block);
            }
        }
        let fill = |sector: usize| matrices[sector].clone();
        tensors[site] = Some(MpsTensor::new(symmetry, &before, mpo.states(site), &behind, fill)?);
        right = inner.clone();
    }
    Ok(())
}

/// The tensors of the two sites in the middle: an isometry for the left block's, the remaining factor for the right's.
fn middle_tensors<T: Element>(
    both: &Superblock<T>,
    x: &[T],
    target: &ChargeLabel,
    tensors: &mut [Option<MpsTensor<T>>],
) -> Result<()> {
    let mpo = both.left().mpo();
    let symmetry = mpo.symmetry();
    let mut middle = BTreeMap::new();
    let mut cores = Vec::new();
    for (pair, m) in both.panels(x) {
        let label = both.left().label(pair.left).clone();
        let (u, rest) = match both.left().fusion() {
            None => (None, m.to_owned()),
            Some(_) if both.right().fusion().is_none() => (Some(m.to_owned()), Mat::zeros(0, 0)),
            Some(_) => match ranked(m)? {
                Some((u, rest)) => (Some(u), rest),
                None => continue,
            },
        };
        middle.insert(label, u.as_ref().map_or(m.nrows(), |u: &Mat<T>| u.ncols()));
        cores.push((pair, u, rest));
    }
    let middle = Space::new(middle);
    let at = |left: usize| middle.find(both.left().label(left)).unwrap_or(0);
    if let Some((inner, _, site)) = both.left().fusion() {
        let mut isometries = vec![Mat::zeros(0, 0); middle.sectors()];
        for (pair, u, _) in &mut cores {
            isometries[at(pair.left)] = u.take().unwrap_or_else(|| Mat::zeros(0, 0));
        }
        let fill = |sector: usize| isometries[sector].clone();
        tensors[site] = Some(MpsTensor::new(symmetry, inner.space(), mpo.states(site), &middle, fill)?);
    }
    if let Some((inner, fusion, site)) = both.right().fusion() {
        let (behind, place) = seen_from_left(symmetry, target, inner.space());
        let rows = Fusion::new(symmetry, &middle, mpo.states(site));
        let mut matrices = zeros::<T>(&rows, &behind);
        for (pair, _, rest) in &cores {
            for p in fusion.parts(pair.right) {
                let (_, to) = rows.place(at(pair.left), p.state).ok_or_else(lost)?;
                let from = rest.as_ref().subcols(p.offset, p.dim);
                matrices[place[p.inner]].as_mut().subrows_mut(to.offset, to.dim).copy_from(from);
            }
        }
        let fill = |sector: usize| matrices[sector].clone();
        tensors[site] = Some(MpsTensor::new(symmetry, &middle, mpo.states(site), &behind, fill)?);
    }
    Ok(())
}
