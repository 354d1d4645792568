//! A chain that grows in its middle until another cell changes nothing: infinite-size DMRG with a prediction of the
//! next cell (McCulloch, arXiv:0804.2509 (2008)). A cell is inserted. Two of its sites at a time find their ground
//! state between the blocks on both sides. Then its halves join these blocks, and the next cell is inserted between the
//! halves.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::{Mat, MatRef};

use super::super::block::{BlockForm, ChainBlock};
use super::super::dense::{deal, product, square, thin_svd};
use super::super::density::{Truncation, count};
use super::super::operators::{CarriedOperator, SectorBlock};
use super::super::space::{ChainSide, ChargeLabel, ConservedNumbers, Fusion, Space};
use super::super::tensor::{
    LabelledMatrices, MpsTensor, adjoint, lower, push_left, push_right, scaled_columns, to_tensor,
};
use super::automaton::Repeated;
use super::cell::UnitCell;
use super::ends::{Labelled, NOWHERE, ended, labelled, whole};
use super::environment::{Environments, left_basis, need_memory, right_basis, seen_from_right};
use super::gauge::turned;
use super::share::moved;
use super::state::Uniform;
use super::step::{JoinedBlocks, polar};
use crate::backend::Device;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::task::Task;

/// How exactly the surroundings of the first state are known.
const TIGHT: f64 = 1e-13;
/// The tolerance of the searches: this part of the mismatch, and its bounds.
const PART: f64 = 1e-2;
const BOUNDS: [f64; 2] = [1e-12, 1e-4];
/// Most products of a search from a prediction, and of one that doubts it.
const PRODUCTS: [usize; 2] = [60, 300];
/// Vectors of two sites that a search holds.
const VECTORS: usize = 30;
/// Schmidt values below this part of the largest are not divided by.
const SMALL: f64 = 1e-8;

/// What a step of growth has found.
#[derive(Debug, Clone, Copy)]
pub struct GrowthReport {
    /// What one cell more has added to the energy.
    pub energy: f64,
    /// How far the Schmidt values at a bond are from those that the cell before has left there, as the distance of two
    /// states: 0 where a cell more changes nothing.
    pub mismatch: f64,
    /// The largest weight that a bond has lost.
    pub lost: f64,
}

/// How a step works.
#[derive(Debug, Clone, Copy)]
pub struct Growing {
    /// Most states of a bond.
    pub states: usize,
    /// Weights below this get no state.
    pub cutoff: f64,
    /// Whether to look for lower states that the prediction does not overlap with.
    pub doubt: bool,
}

/// A chain under growth.
pub struct ChainGrowth<T> {
    h: Arc<Repeated>,
    /// The bond of the cell where the next one goes in.
    bond: usize,
    left: Arc<ChainBlock<T>>,
    right: Arc<ChainBlock<T>>,
    /// The predicted sites: isometries from the left, one that holds the weights, at `middle - 1`,
    /// isometries from the right.
    sites: Vec<MpsTensor<T>>,
    middle: usize,
    /// The Schmidt values that the blocks have been parted at.
    parted: Labelled<T>,
    /// The last cell between equal bases, site by site.
    psi: Vec<MpsTensor<T>>,
    spaces: Vec<Space>,
    found: Option<GrowthReport>,
}

/// The weights on both sides of a cell against those that it was put between.
struct Parted<T> {
    /// See [`GrowthReport::mismatch`].
    mismatch: f64,
    /// What turns the basis behind the cell to the one before it.
    turns: Labelled<T>,
    /// The weights of the next cell in its middle.
    weights: Labelled<T>,
}

/// A right block is numbered by the bond that it ends at; the first of a cell is the last of the cell before.
fn from_end<T: Element>(block: &Arc<ChainBlock<T>>, n: usize) -> Arc<ChainBlock<T>> {
    moved(block, if block.bond == 0 { n } else { block.bond })
}

fn grown_left<T: Element>(block: &Arc<ChainBlock<T>>, n: usize) -> Result<Arc<ChainBlock<T>>> {
    let grown = block.grow()?;
    Ok(moved(&grown, grown.bond % n))
}

/// A left block past a site.
fn past_left<T: Element>(
    block: &Arc<ChainBlock<T>>,
    tensor: &MpsTensor<T>,
    n: usize,
) -> Result<Arc<ChainBlock<T>>> {
    let next = grown_left(block, n)?.rotate(&left_basis(tensor).shared())?;
    Ok(moved(&next, next.bond))
}

/// A right block past a site.
fn past_right<T: Element>(
    symmetry: &ConservedNumbers,
    block: &Arc<ChainBlock<T>>,
    tensor: &MpsTensor<T>,
    n: usize,
) -> Result<Arc<ChainBlock<T>>> {
    let grown = block.grow()?;
    let (_, fusion, _) = grown.fusion().ok_or_else(|| Error::internal("a block that did not grow"))?;
    let next = grown.rotate(&right_basis(symmetry, tensor, fusion).shared())?;
    Ok(from_end(&next, n))
}

/// A left block less an energy.
fn less<T: Element>(block: &Arc<ChainBlock<T>>, energy: f64) -> Result<Arc<ChainBlock<T>>> {
    let BlockForm::Plain { space, carried, .. } = &block.shape else {
        return Err(Error::internal("a block that is not rotated"));
    };
    let Some(done) = block.mpo().bond(block.bond).done else {
        return Err(Error::internal("an automaton without an end"));
    };
    let mut carried = carried.present()?.to_vec();
    let mut subs = match std::mem::replace(&mut carried[done], CarriedOperator::Nothing) {
        CarriedOperator::Blocks(subs) => subs,
        _ => Vec::new(),
    };
    for (sector, &dim) in space.dims().iter().enumerate() {
        let shift = T::from_c64(energy.into());
        match subs.iter_mut().find(|s| s.row == sector && s.column == sector) {
            Some(sub) => {
                let mut m = sub.matrix.here()?.to_owned();
                (0..dim).for_each(|k| m[(k, k)] += -shift);
                sub.matrix = Arc::new(m.into());
            }
            None => {
                let m = Mat::from_fn(dim, dim, |i, j| if i == j { -shift } else { T::default() });
                subs.push(SectorBlock { row: sector, column: sector, matrix: Arc::new(m.into()) });
            }
        }
    }
    carried[done] = CarriedOperator::Blocks(subs);
    let shape = BlockForm::Plain { space: space.clone(), carried: carried.into(), origin: None };
    Ok(ChainBlock::made(block.mpo(), ChainSide::Left, 0, block.bond, false, shape))
}

/// Two sites after their search.
struct SearchedSites<T> {
    left: MpsTensor<T>,
    values: Vec<Mat<T>>,
    right: MpsTensor<T>,
    energy: f64,
    lost: f64,
}

/// Two sites between blocks.
struct Two<'a, T> {
    cell: &'a UnitCell,
    /// The sites in the cell.
    sites: [usize; 2],
    left: Arc<ChainBlock<T>>,
    right: Arc<ChainBlock<T>>,
}

impl<T: Element> Two<'_, T> {
    /// The ground state near that of two tensors, cut to the largest weights.
    fn found(
        &self,
        device: &Device,
        start: (&MpsTensor<T>, &MpsTensor<T>),
        how: &Growing,
        tol: f64,
        task: &Task,
    ) -> Result<SearchedSites<T>> {
        let symmetry = &self.cell.symmetry;
        let (_, fusion, _) =
            self.right.fusion().ok_or_else(|| Error::internal("a block that did not grow"))?;
        let joined = JoinedBlocks::new(device, &self.left, &self.right)?;
        let (x, y) = start;
        let r = right_basis(symmetry, y, fusion);
        let r_vectors = r.vectors.all()?;
        let mut amplitudes = BTreeMap::new();
        for pair in joined.both::<T>()?.pairs() {
            let (Some(a), Some(b)) = (x.behind.find(self.left.label(pair.left)), r.kept(pair.right)) else {
                continue;
            };
            if x.rows[a] != NOWHERE {
                amplitudes
                    .insert(pair.left, product(x.matrices[a].as_ref(), r_vectors[b].here()?.transpose()));
            }
        }
        let start = joined.pack(&amplitudes)?;
        let size = start.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        let start = (size.is_finite() && size > 1e-6).then_some(&start[..]);
        let (energy, found) = joined.ground(start, how.doubt, tol, PRODUCTS[usize::from(how.doubt)], task)?;
        let parts: Vec<(usize, Mat<T>)> = joined.unpack::<T>(&found)?.into_iter().collect();
        let cost =
            |(_, m): &(usize, Mat<T>)| 20.0 * (m.nrows() * m.ncols() * m.nrows().min(m.ncols())) as f64;
        let parts = deal(&parts, cost, |(at, m), _| thin_svd(m.as_ref()).map(|p| (*at, p)));
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        let mut all: Vec<(f64, usize)> =
            parts.iter().enumerate().flat_map(|(k, p)| p.1.1.iter().map(move |s| (s * s, k))).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let sum: f64 = all.iter().map(|a| a.0).sum();
        let weights: Vec<f64> = all.iter().map(|a| a.0 / sum).collect();
        let cut = Truncation { states: Some(how.states), ..Truncation::default() };
        // Weights below the square of what the search leaves are its noise:
        // ends of the chain that are degenerate would mix by it.
        let kept = count(&weights, &cut, how.cutoff.max(tol * tol).max(1e-30))?;
        let mut dims = vec![0; parts.len()];
        all[..kept].iter().for_each(|a| dims[a.1] += 1);
        let scale = (1.0 / weights[..kept].iter().sum::<f64>() / sum).sqrt();
        let mut sectors = BTreeMap::new();
        let (mut us, mut values, mut rows) = (Labelled::new(), Labelled::new(), Labelled::new());
        for ((at, (u, s, v)), &d) in parts.iter().zip(&dims).filter(|p| *p.1 > 0) {
            let label = self.left.label(*at).clone();
            let own: Vec<f64> = s[..d].iter().map(|s| s * scale).collect();
            us.insert(label.clone(), u.as_ref().subcols(0, d).to_owned());
            values.insert(label.clone(), scaled_columns(&Mat::identity(d, d), &own));
            rows.insert(label.clone(), adjoint(v.as_ref().subcols(0, d)));
            sectors.insert(label, d);
        }
        let middle = Space::new(sectors);
        let states = [&self.cell.states[self.sites[0]], &self.cell.states[self.sites[1]]];
        let left = MpsTensor::new(symmetry, &x.before, states[0], &middle, |s| us[middle.label(s)].clone())?;
        let right = right_tensor(symmetry, states[1], &middle, &y.behind, fusion, &rows)?;
        let values = middle.iter().map(|(q, _)| values[q].clone()).collect();
        let lost = weights[kept..].iter().sum();
        Ok(SearchedSites { left, values, right, energy, lost })
    }
}

/// The tensor whose isometries from the right have rows by the label before; columns are in the basis of a right block
/// with the site, whose product is `fusion`.
fn right_tensor<T: Element>(
    symmetry: &ConservedNumbers,
    states: &[ChargeLabel],
    before: &Space,
    behind: &Space,
    fusion: &Fusion,
    rows: &Labelled<T>,
) -> Result<MpsTensor<T>> {
    let (_, place) = seen_from_right(symmetry, behind);
    let own = Fusion::new(symmetry, before, states);
    let size = |q: &ChargeLabel| own.space().find(q).map_or(0, |s| own.space().dim(s));
    let mut matrices: Vec<Mat<T>> = behind.iter().map(|(q, d)| Mat::zeros(size(q), d)).collect();
    for (sector, (label, _)) in before.iter().enumerate() {
        let turned = symmetry.subtract(&symmetry.zero(), label);
        let (Some(m), Some(column)) = (rows.get(label), fusion.space().find(&turned)) else { continue };
        for part in fusion.parts(column) {
            let Some((_, to)) = own.place(sector, part.state) else { continue };
            matrices[place[part.inner]]
                .as_mut()
                .subrows_mut(to.offset, to.dim)
                .copy_from(m.as_ref().subcols(part.offset, part.dim));
        }
    }
    Ok(whole(MpsTensor::new(symmetry, before, states, behind, |s| matrices[s].clone())?, behind))
}

/// What is left of a matrix without a unitary times another one, `a - W b`, and that unitary.
fn aligned<T: Element>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Result<(Mat<T>, f64)> {
    let w = polar(product(a, adjoint(b).as_ref()).as_ref())?;
    let rest = a - product(w.as_ref(), b);
    Ok((w, square(rest.as_ref())))
}

/// `m^-1` of a diagonal matrix, without what is too small.
fn inverse<T: Element>(m: &Mat<T>, largest: f64) -> Mat<T> {
    let least = SMALL * largest;
    Mat::from_fn(m.ncols(), m.nrows(), |i, j| {
        let s = m[(j, i)].re();
        if i == j { T::from_c64((s / (s * s + least * least)).into()) } else { T::default() }
    })
}

impl<T: Element> ChainGrowth<T> {
    /// From a state of the Hamiltonian's cell, which has two sites at least: the chain begins as that state.
    ///
    /// # Errors
    /// When the state has another cell, or one of a single site.
    pub fn new(h: &Arc<Repeated>, psi: &Uniform<T>) -> Result<ChainGrowth<T>> {
        h.cell.check(&psi.cell)?;
        let n = psi.count();
        if n < 2 {
            return Err(Error::input("a chain that grows by cells of one site")
                .hint("take two cells as one, so that they have two sites"));
        }
        let psi = psi.regauged()?;
        let known = Environments::new(&psi, h, None, TIGHT)?;
        let middle = n / 2;
        let mut sites = psi.left[..middle].to_vec();
        sites.extend_from_slice(&psi.right[middle..]);
        sites[middle - 1].matrices = psi.middle(middle - 1);
        let right = from_end(&known.rights[n], n);
        Ok(ChainGrowth {
            h: h.clone(),
            bond: 0,
            left: moved(&known.lefts[0], 0),
            right,
            sites,
            middle,
            parted: labelled(&psi.spaces[0], &psi.centre[0]),
            psi: psi.left.clone(),
            spaces: psi.spaces.clone(),
            found: None,
        })
    }

    /// What the last step has found; nothing before the first.
    pub fn found(&self) -> Option<GrowthReport> {
        self.found
    }

    pub fn cell(&self) -> &Arc<UnitCell> {
        &self.h.cell
    }

    /// Most states of a bond.
    pub fn states(&self) -> usize {
        self.spaces.iter().map(Space::total).max().unwrap_or(1)
    }

    /// One cell more.
    ///
    /// # Errors
    /// When a search or a decomposition fails; interruption.
    pub fn step(&self, device: &Device, how: &Growing, task: &Task) -> Result<ChainGrowth<T>> {
        let cell = &self.h.cell;
        let symmetry = &cell.symmetry;
        let n = cell.count();
        let c = self.middle;
        let site = |k: usize| (self.bond + k) % n;
        let quiet = task.quiet();
        let tol = self.found.map_or(BOUNDS[1], |f| (PART * f.mismatch).clamp(BOUNDS[0], BOUNDS[1]));
        // Vectors of two sites: those of Davidson's search, and what is cut.
        need_memory::<T>(&self.h, &self.spaces, VECTORS)?;
        let mut sites = self.sites.clone();
        let mut lefts = vec![self.left.clone(); n];
        let mut rights = vec![self.right.clone(); n + 1];
        for k in 1..c {
            lefts[k] = past_left(&lefts[k - 1], &sites[k - 1], n)?;
        }
        for k in (c + 1..n).rev() {
            rights[k] = past_right(symmetry, &rights[k + 1], &sites[k], n)?;
        }
        let two = |lefts: &[Arc<ChainBlock<T>>],
                   rights: &[Arc<ChainBlock<T>>],
                   at: usize,
                   x: &MpsTensor<T>,
                   y: &MpsTensor<T>| {
            crate::task::poll()?;
            let pair = Two {
                cell,
                sites: [site(at - 1), site(at)],
                left: grown_left(&lefts[at - 1], n)?,
                right: rights[at + 1].grow()?,
            };
            pair.found(device, (x, y), how, tol, &quiet)
        };
        let mut last = two(&lefts, &rights, c, &sites[c - 1], &sites[c])?;
        let mut lost = last.lost;
        let mut put = |sites: &mut [MpsTensor<T>], at: usize, pair: &SearchedSites<T>| {
            sites[at - 1] = pair.left.clone();
            sites[at] = pair.right.clone();
            lost = lost.max(pair.lost);
        };
        put(&mut sites, c, &last);
        // To the right end of the cell, to the left one, and back to where it will be parted.
        let way = (c + 1..n).chain((1..n - 1).rev()).chain(2..=c);
        let mut from = c;
        for at in way {
            let units = |space: &Space| -> Vec<Mat<T>> {
                space.dims().iter().map(|&d| Mat::identity(d, d)).collect()
            };
            last = if at > from {
                lefts[at - 1] = past_left(&lefts[at - 2], &sites[at - 2], n)?;
                let own = &sites[at - 1];
                let x = turned(
                    cell,
                    site(at - 1),
                    own,
                    (&own.before, &last.values),
                    (&own.behind, &units(&own.behind)),
                )?;
                two(&lefts, &rights, at, &whole(x, &own.behind), &sites[at])?
            } else {
                rights[at + 1] = past_right(symmetry, &rights[at + 2], &sites[at + 1], n)?;
                let own = &sites[at];
                let y = turned(
                    cell,
                    site(at),
                    own,
                    (&own.before, &units(&own.before)),
                    (&own.behind, &last.values),
                )?;
                two(&lefts, &rights, at, &sites[at - 1], &whole(y, &own.behind))?
            };
            put(&mut sites, at, &last);
            from = at;
        }
        let left = less(&past_left(&lefts[c - 1], &sites[c - 1], n)?, last.energy)?;
        let right = past_right(symmetry, &rights[c + 1], &sites[c], n)?;
        self.predicted(left, right, sites, &last, lost)
    }

    /// The chain with another cell in its middle, and what is to come next: the halves of this one in the other order,
    /// with their weights moved to the outside, and divided by those that are there already.
    fn predicted(
        &self,
        left: Arc<ChainBlock<T>>,
        right: Arc<ChainBlock<T>>,
        sites: Vec<MpsTensor<T>>,
        last: &SearchedSites<T>,
        lost: f64,
    ) -> Result<ChainGrowth<T>> {
        let n = self.h.cell.count();
        let c = self.middle;
        let middle = &last.left.behind;
        let (mut next, from_middle) = self.pushed_out_right(&sites, (middle, &last.values))?;
        let (others, to_middle, first) = self.pushed_out_left(&sites, (middle, &last.values))?;
        let Parted { mismatch, turns, weights } = self.compared(&from_middle, &to_middle)?;
        // The state: this cell with its last basis turned to its first.
        let mut psi: Vec<Option<MpsTensor<T>>> = vec![None; n];
        let mut spaces = vec![middle.clone(); n];
        for (k, tensor) in sites[..c].iter().chain(&next).enumerate() {
            let at = (self.bond + k) % n;
            spaces[at] = tensor.before.clone();
            psi[at] = Some(match k + 1 < n {
                true => tensor.clone(),
                false => ended(&self.h.cell, at, tensor, &sites[0].before, &turns)?,
            });
        }
        let psi = psi.into_iter().collect::<Option<Vec<_>>>();
        let psi = psi.ok_or_else(|| Error::internal("a cell with a site missing"))?;
        // The tensor before the middle of the next cell holds its weights.
        let at = next.len() - 1;
        next[at] = ended(&self.h.cell, (self.bond + n - 1) % n, &next[at], &first, &weights)?;
        next.extend(others);
        Ok(ChainGrowth {
            h: self.h.clone(),
            bond: (self.bond + c) % n,
            left,
            right,
            sites: next,
            middle: n - c,
            parted: labelled(middle, &last.values),
            psi,
            spaces,
            found: Some(GrowthReport { energy: last.energy, mismatch, lost }),
        })
    }

    /// The labels of the states of site `k` of this chain.
    fn site_states(&self, k: usize) -> &[ChargeLabel] {
        let cell = &self.h.cell;
        &cell.states[(self.bond + k) % cell.count()]
    }

    /// The sites of the right half as isometries from the left, and the weights of the middle that are left over behind
    /// them.
    fn pushed_out_right(
        &self,
        sites: &[MpsTensor<T>],
        (middle, values): (&Space, &[Mat<T>]),
    ) -> Result<(Vec<MpsTensor<T>>, Labelled<T>)> {
        let symmetry = &self.h.cell.symmetry;
        let (mut space, mut carry) = (middle.clone(), values.to_vec());
        let mut next = Vec::with_capacity(self.h.cell.count());
        for (k, tensor) in sites.iter().enumerate().skip(self.middle) {
            let mut parts = BTreeMap::new();
            for (label, m) in push_right(symmetry, self.site_states(k), tensor, &space, &carry) {
                let qr = m.as_ref().qr();
                let (q, r) = (qr.compute_thin_Q(), qr.thin_R().to_owned());
                if q.ncols() > 0 {
                    parts.insert(label, (q, r));
                }
            }
            let behind = Space::of(parts.iter().map(|(q, p)| (q.clone(), p.0.ncols())).collect());
            let fill = |s: usize| parts[behind.label(s)].0.clone();
            next.push(MpsTensor::new(symmetry, &space, self.site_states(k), &behind, fill)?);
            carry = behind.iter().map(|(q, _)| parts[q].1.clone()).collect();
            space = behind;
        }
        Ok((next, labelled(&space, &carry)))
    }

    /// The sites of the left half as isometries from the right, the weights of the middle that are left over before
    /// them, and the basis there.
    fn pushed_out_left(
        &self,
        sites: &[MpsTensor<T>],
        (middle, values): (&Space, &[Mat<T>]),
    ) -> Result<(Vec<MpsTensor<T>>, Labelled<T>, Space)> {
        let symmetry = &self.h.cell.symmetry;
        let (mut space, mut carry) = (middle.clone(), values.to_vec());
        let mut others = Vec::with_capacity(self.middle);
        for k in (0..self.middle).rev() {
            let (fusion, blocks) = push_left(symmetry, self.site_states(k), &sites[k], &space, Some(&carry));
            let (before, rows, rest): (Space, LabelledMatrices<T>, LabelledMatrices<T>) = lower(&blocks);
            let own = to_tensor(symmetry, self.site_states(k), &before, &space, &fusion, &rows)?;
            others.push(whole(own, &space));
            carry = rest.into_iter().map(|r| r.1).collect();
            space = before;
        }
        others.reverse();
        let to_middle = labelled(&space, &carry);
        Ok((others, to_middle, space))
    }

    /// The weights of both sides against those at the bond where this cell went in.
    fn compared(&self, from_middle: &Labelled<T>, to_middle: &Labelled<T>) -> Result<Parted<T>> {
        let largest =
            self.parted.values().flat_map(|m| (0..m.nrows().min(m.ncols())).map(|k| m[(k, k)].re()));
        let largest = largest.fold(0.0, f64::max);
        let (mut a, mut b) = (0.0, 0.0);
        let (mut turns, mut weights) = (Labelled::new(), Labelled::new());
        for (label, old) in &self.parted {
            let (l, r) = (to_middle.get(label), from_middle.get(label));
            match r {
                Some(r) => {
                    let (w, rest) = aligned(r.as_ref(), old.as_ref())?;
                    turns.insert(label.clone(), w);
                    a += rest;
                }
                None => a += square(old.as_ref()),
            }
            match l {
                Some(l) => b += aligned(adjoint(l.as_ref()).as_ref(), adjoint(old.as_ref()).as_ref())?.1,
                None => b += square(old.as_ref()),
            }
            if let (Some(l), Some(r)) = (l, r) {
                let half = product(r.as_ref(), inverse(old, largest).as_ref());
                weights.insert(label.clone(), product(half.as_ref(), l.as_ref()));
            }
        }
        let missing = |all: &Labelled<T>| -> f64 {
            all.iter().filter(|(q, _)| !self.parted.contains_key(*q)).map(|(_, m)| square(m.as_ref())).sum()
        };
        let mismatch = (a + missing(from_middle)).max(b + missing(to_middle)).sqrt();
        Ok(Parted { mismatch, turns, weights })
    }

    /// The state of an infinite chain whose every cell is like the last one.
    ///
    /// # Errors
    /// When a fixed point or decomposition does not converge.
    pub fn state(&self) -> Result<Uniform<T>> {
        Uniform::of_any(&self.h.cell, &self.spaces, &self.psi)
    }
}
