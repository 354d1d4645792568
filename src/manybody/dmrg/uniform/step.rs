//! Steps towards the ground state: the variational uniform matrix product state algorithm (Zauner-Stauber et al. 2018),
//! and bonds that grow by what the Hamiltonian adds to two sites.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::{Mat, MatRef};

use super::super::block::{Block, Shape};
use super::super::dense::{adjoint_product, product, square, thin_svd};
use super::super::space::{Fusion, Label, Space};
use super::super::superblock::{Strategy, Superblock};
use super::super::tensor::{Blocks, Tensor, adjoint, from_right, to_tensor};
use super::environment::{Environments, left_basis, right_basis};
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::backend::{Device, Rows};
use crate::error::{Error, Result};
use crate::method::{DavidsonOptions, davidson};
use crate::number::C64;
use crate::operator::Operator;
use crate::task::Task;

/// What a step found of the state that it began with.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The energy of a cell.
    pub energy: f64,
    /// The largest norm, over the sites, of what the Hamiltonian would change a site's matrices by.
    pub gradient: f64,
    /// The sum of the squares of these norms.
    pub squares: f64,
}

/// Two blocks as an operator.
struct Joined {
    operator: Operator,
}

impl Joined {
    fn new<T: Element>(device: &Device, left: &Arc<Block<T>>, right: &Arc<Block<T>>) -> Result<Joined> {
        let zero = left.mpo().symmetry().zero().into_iter().map(Some).collect();
        let both = Superblock::new(device, left, right, &zero, Strategy::Auto)?;
        Ok(Joined { operator: both.into_operator(device) })
    }

    fn both<T: Element>(&self) -> Result<&Superblock<T>> {
        self.operator
            .exactly::<Superblock<T>>()
            .ok_or_else(|| Error::internal("a superblock of other numbers"))
    }

    /// A vector from one matrix for each sector of the left block.
    fn pack<T: Element>(&self, blocks: &BTreeMap<usize, Mat<T>>) -> Result<Vec<C64>> {
        let both = self.both::<T>()?;
        let mut x = vec![C64::ZERO; both.dim()];
        for pair in both.pairs() {
            let (Some(panel), Some(m)) = (both.panel(pair.left, pair.right), blocks.get(&pair.left)) else {
                continue;
            };
            for i in 0..panel.rows {
                for j in 0..panel.columns {
                    x[panel.offset + i * panel.columns + j] = m[(i, j)].to_c64();
                }
            }
        }
        Ok(x)
    }

    fn unpack<T: Element>(&self, x: &[C64]) -> Result<BTreeMap<usize, Mat<T>>> {
        let both = self.both::<T>()?;
        let mut blocks = BTreeMap::new();
        for pair in both.pairs() {
            let Some(p) = both.panel(pair.left, pair.right) else { continue };
            let m = Mat::from_fn(p.rows, p.columns, |i, j| T::from_c64(x[p.offset + i * p.columns + j]));
            blocks.insert(pair.left, m);
        }
        Ok(blocks)
    }

    /// `H x`.
    fn times(&self, x: &[C64]) -> Result<Vec<C64>> {
        let h = &self.operator;
        let v = h.device().upload(h.dtype(), Rows::all(h.dim()), 1, x)?;
        h.device().download(&h.apply(&v)?)
    }

    /// The lowest state near `x`, of the same phase.
    fn lowest(&self, x: &[C64], tol: f64, iterations: usize, task: &Task) -> Result<Vec<C64>> {
        let h = &self.operator;
        let start = h.device().upload(h.dtype(), Rows::all(h.dim()), 1, x)?;
        let options = DavidsonOptions {
            tolerance: Some(tol),
            max_iterations: iterations,
            start: Some(start),
            trust_start: true,
            ..DavidsonOptions::new(1)
        };
        let mut found = h.device().download(&davidson(h, options, task)?.vectors)?;
        let overlap: C64 = found.iter().zip(x).map(|(a, b)| a.conj() * b).sum();
        if overlap.norm() > 0.0 {
            let phase = overlap / overlap.norm();
            found.iter_mut().for_each(|z| *z *= phase);
        }
        Ok(found)
    }
}

/// The isometry nearest to a matrix of more rows than columns.
fn polar<T: Element>(m: MatRef<'_, T>) -> Result<Mat<T>> {
    let (u, _, v) = thin_svd(m)?;
    Ok(product(u.as_ref(), adjoint(v.as_ref()).as_ref()))
}

/// A block at the other end of the cell, which is the same bond.
fn moved<T: Element>(block: &Arc<Block<T>>, bond: usize) -> Arc<Block<T>> {
    let shape = match &block.shape {
        Shape::Plain { space, carried, .. } => {
            Shape::Plain { space: space.clone(), carried: carried.clone(), origin: None }
        }
        Shape::Grown { inner, fusion, site } => {
            Shape::Grown { inner: inner.clone(), fusion: fusion.clone(), site: *site }
        }
    };
    Block::made(block.mpo(), block.side, 0, bond, false, shape)
}

/// A direction that a bond may grow by.
struct Direction<T> {
    weight: f64,
    label: Label,
    /// A column for the site before, rows as in the product of its bond and states.
    left: Mat<T>,
    /// A column for the site behind, rows as in the product of its right block and states.
    right: Mat<T>,
}

impl<T: Element> Uniform<T> {
    /// One step of all sites at once, what was known before it, and by how much it changes the matrices between the two forms.
    ///
    /// # Errors
    /// When a search or a decomposition fails; interruption.
    pub fn step(
        &self,
        environments: &Environments<T>,
        device: &Device,
        tol: f64,
        task: &Task,
    ) -> Result<(Uniform<T>, Found, Vec<C64>)> {
        let n = self.count();
        let symmetry = &self.cell.symmetry;
        let (mut gradient, mut squares) = (0.0f64, 0.0);
        let mut change = Vec::new();
        let mut middles = Vec::with_capacity(n);
        let mut centres = Vec::with_capacity(n);
        let quiet = task.quiet();
        for site in 0..n {
            crate::task::poll()?;
            let grown = environments.lefts[site].grow()?;
            let joined = Joined::new(device, &grown, &environments.rights[site + 1])?;
            let own = &self.left[site];
            let x: BTreeMap<usize, Mat<T>> = own.rows.iter().copied().zip(self.middle(site)).collect();
            let start = joined.pack(&x)?;
            let mut rest = joined.unpack::<T>(&joined.times(&start)?)?;
            let mut sum = 0.0;
            for (row, y) in &mut rest {
                if let Some(at) = own.rows.iter().position(|r| r == row) {
                    let a = own.matrices[at].as_ref();
                    let known = adjoint_product(a, y.as_ref());
                    *y -= product(a, known.as_ref());
                }
                sum += square(y.as_ref());
            }
            gradient = gradient.max(sum.sqrt());
            squares += sum;
            let found = joined.lowest(&start, tol, STEPS, &quiet)?;
            change.extend(found.iter().zip(&start).map(|(a, b)| a - b));
            middles.push(joined.unpack::<T>(&found)?);
            let bare = Joined::new(device, &environments.lefts[site], &environments.rights[site])?;
            let c: BTreeMap<usize, Mat<T>> = self.centre[site].iter().cloned().enumerate().collect();
            let start = bare.pack(&c)?;
            let found = bare.lowest(&start, tol, STEPS, &quiet)?;
            change.extend(found.iter().zip(&start).map(|(a, b)| a - b));
            let found = bare.unpack::<T>(&found)?;
            centres.push((0..self.spaces[site].sectors()).map(|s| found[&s].clone()).collect::<Vec<_>>());
        }
        let polars: Vec<Vec<Mat<T>>> = centres
            .iter()
            .map(|c: &Vec<Mat<T>>| c.iter().map(|c| polar(c.as_ref())).collect())
            .collect::<Result<_>>()?;
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for site in 0..n {
            let (old, behind) = (&self.left[site], self.behind(site));
            let states = &self.cell.states[site];
            let mut isometries = Vec::new();
            for (row, turn) in old.rows.iter().zip(&polars[behind]) {
                let q = polar(middles[site][row].as_ref())?;
                isometries.push(product(q.as_ref(), adjoint(turn.as_ref()).as_ref()));
            }
            let (before, after) = (&self.spaces[site], &self.spaces[behind]);
            let mut middle = old.clone();
            for (m, row) in middle.matrices.iter_mut().zip(&old.rows) {
                *m = middles[site][row].clone();
            }
            left.push(Tensor::new(symmetry, before, states, after, |s| isometries[s].clone())?);
            let (fusion, blocks) = from_right(symmetry, states, &middle, after, None);
            let mut rows: Blocks<T> = Vec::new();
            for (label, wide) in blocks {
                let at = before.find(&label).ok_or_else(|| Error::internal("a sector that is not there"))?;
                let q = polar(adjoint(wide.as_ref()).as_ref())?;
                rows.push((label, adjoint(product(q.as_ref(), polars[site][at].as_ref()).as_ref())));
            }
            right.push(to_tensor(symmetry, states, before, after, &fusion, &rows)?);
        }
        let next =
            Uniform { cell: self.cell.clone(), spaces: self.spaces.clone(), left, right, centre: centres };
        Ok((next, Found { energy: environments.energy, gradient, squares }, change))
    }

    /// A combination of states that are close to one another, in the same bases: matrices are added up and made isometries
    /// again. The coefficients sum up to one.
    ///
    /// # Errors
    /// When a decomposition fails.
    pub fn combined(parts: &[(f64, &Uniform<T>)]) -> Result<Option<Uniform<T>>> {
        let Some((_, first)) = parts.first() else { return Ok(None) };
        let (n, symmetry) = (first.count(), &first.cell.symmetry);
        let sum = |of: &dyn Fn(&Uniform<T>) -> &Mat<T>| -> Mat<T> {
            let one = of(first);
            let mut out = Mat::zeros(one.nrows(), one.ncols());
            for (z, psi) in parts {
                out += of(psi) * faer::Scale(T::from_c64((*z).into()));
            }
            out
        };
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut centre: Vec<Vec<Mat<T>>> = Vec::with_capacity(n);
        for site in 0..n {
            let (before, behind) = (&first.spaces[site], &first.spaces[first.behind(site)]);
            let states = &first.cell.states[site];
            let mut isometries = Vec::new();
            for s in 0..first.left[site].matrices.len() {
                isometries.push(polar(sum(&|psi| &psi.left[site].matrices[s]).as_ref())?);
            }
            left.push(Tensor::new(symmetry, before, states, behind, |s| isometries[s].clone())?);
            let mut tensor = first.right[site].clone();
            for (s, m) in tensor.matrices.iter_mut().enumerate() {
                *m = sum(&|psi| &psi.right[site].matrices[s]);
            }
            let (fusion, blocks) = from_right(symmetry, states, &tensor, behind, None);
            let mut rows: Blocks<T> = Vec::new();
            for (label, wide) in blocks {
                let q = polar(adjoint(wide.as_ref()).as_ref())?;
                rows.push((label, adjoint(q.as_ref())));
            }
            right.push(to_tensor(symmetry, states, before, behind, &fusion, &rows)?);
            let c: Vec<Mat<T>> = (0..before.sectors()).map(|s| sum(&|psi| &psi.centre[site][s])).collect();
            let size = c.iter().map(|m| square(m.as_ref())).sum::<f64>().sqrt();
            centre.push(c.iter().map(|m| m * faer::Scale(T::from_c64((1.0 / size).into()))).collect());
        }
        Ok(Some(Uniform { cell: first.cell.clone(), spaces: first.spaces.clone(), left, right, centre }))
    }

    /// The state with up to `more` states added at each bond: those that the Hamiltonian adds most to two neighbouring
    /// sites. The state itself stays what it is. Also the sum of the squares of all that it adds to two sites.
    ///
    /// # Errors
    /// When a decomposition fails; interruption.
    pub fn widened(
        &self,
        environments: &Environments<T>,
        device: &Device,
        more: &[usize],
    ) -> Result<(Uniform<T>, f64)> {
        let n = self.count();
        let mut all = Vec::with_capacity(n);
        let mut squares = 0.0;
        for (bond, &more) in more.iter().enumerate() {
            crate::task::poll()?;
            let (mut found, size) = self.directions(environments, device, bond)?;
            squares += size;
            found.truncate(more);
            all.push(found);
        }
        Ok((self.with_directions(&all)?, squares))
    }

    /// What the Hamiltonian adds at a bond to the two sites beside it, by weight, and the sum of all its squares.
    fn directions(
        &self,
        environments: &Environments<T>,
        device: &Device,
        bond: usize,
    ) -> Result<(Vec<Direction<T>>, f64)> {
        let n = self.count();
        let symmetry = &self.cell.symmetry;
        let before = (bond + n - 1) % n;
        let left = moved(&environments.lefts[before].grow()?, bond);
        let right = environments.rights[bond + 1].grow()?;
        let joined = Joined::new(device, &left, &right)?;
        let l = left_basis(&self.left[before]);
        let (_, fusion, _) = right.fusion().ok_or_else(|| Error::internal("a block that did not grow"))?;
        let r = right_basis(symmetry, &self.right[bond], fusion);
        let both = joined.both::<T>()?;
        // The isometries of a pair of sectors, and the bond's sector between them.
        let known = |pair: &super::super::superblock::Pair| {
            let (a, b) = (l.kept(pair.left)?, r.kept(pair.right)?);
            let sector = self.spaces[bond].find(left.label(pair.left))?;
            Some((&l.vectors[a], &r.vectors[b], sector))
        };
        let mut x = BTreeMap::new();
        for pair in both.pairs() {
            if let Some((a, b, sector)) = known(pair) {
                let half = product(a.as_ref(), self.centre[bond][sector].as_ref());
                x.insert(pair.left, product(half.as_ref(), b.transpose()));
            }
        }
        let image = joined.unpack::<T>(&joined.times(&joined.pack(&x)?)?)?;
        let mut found = Vec::new();
        let mut size = 0.0;
        for pair in both.pairs() {
            let Some(mut y) = image.get(&pair.left).cloned() else { continue };
            for _ in 0..2 {
                if let Some(k) = l.kept(pair.left) {
                    let a = l.vectors[k].as_ref();
                    let part = adjoint_product(a, y.as_ref());
                    y -= product(a, part.as_ref());
                }
                if let Some(k) = r.kept(pair.right) {
                    let b = r.vectors[k].as_ref();
                    let part = product(y.as_ref(), conjugate(b).as_ref());
                    y -= product(part.as_ref(), b.transpose());
                }
            }
            size += square(y.as_ref());
            let (u, s, v) = thin_svd(y.as_ref())?;
            for (k, &weight) in s.iter().enumerate() {
                found.push(Direction {
                    weight,
                    label: left.label(pair.left).clone(),
                    left: u.as_ref().subcols(k, 1).to_owned(),
                    right: conjugate(v.as_ref().subcols(k, 1)),
                });
            }
        }
        found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.label.cmp(&b.label)));
        let least = 1e-14 * found.first().map_or(0.0, |d| d.weight);
        found.retain(|d| d.weight > least.max(1e-14));
        Ok((found, size))
    }

    /// The same state with more states at each bond.
    fn with_directions(&self, all: &[Vec<Direction<T>>]) -> Result<Uniform<T>> {
        let n = self.count();
        let symmetry = &self.cell.symmetry;
        let mut spaces = Vec::with_capacity(n);
        for (old, found) in self.spaces.iter().zip(all) {
            let mut dims: BTreeMap<Label, usize> = old.iter().map(|(q, d)| (q.clone(), d)).collect();
            found.iter().for_each(|d| *dims.entry(d.label.clone()).or_default() += 1);
            spaces.push(Space::new(dims));
        }
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for site in 0..n {
            let behind = self.behind(site);
            let states = &self.cell.states[site];
            let (before, after) = (&spaces[site], &spaces[behind]);
            left.push(self.left[site].padded(symmetry, before, states, after, |row, fusion, out| {
                // Columns of the directions behind the site.
                let label = fusion.space().label(row);
                let old = &self.left[site].fusion;
                let Some(from) = old.space().find(label) else { return };
                let first = self.spaces[behind].find(label).map_or(0, |s| self.spaces[behind].dim(s));
                let own = all[behind].iter().filter(|d| d.label == *label);
                for (column, d) in (first..).zip(own) {
                    for part in old.parts(from) {
                        let inner = before.find(self.spaces[site].label(part.inner)).unwrap_or(0);
                        let (_, to) = fusion.place(inner, part.state);
                        for i in 0..part.dim {
                            out[(to.offset + i, column)] = d.left[(part.offset + i, 0)];
                        }
                    }
                }
            })?);
            let (space, place) = super::environment::seen_from_right(symmetry, &self.spaces[behind]);
            let product = Fusion::new(symmetry, &space, states);
            right.push(self.right[site].padded(symmetry, before, states, after, |row, fusion, out| {
                // Rows of the directions before the site.
                let label = fusion.space().label(row);
                let Some(own) = self.spaces[behind].find(label) else { return };
                for to in fusion.parts(row) {
                    let q = before.label(to.inner);
                    let first = self.spaces[site].find(q).map_or(0, |s| self.spaces[site].dim(s));
                    let turned = symmetry.subtract(&symmetry.zero(), q);
                    let Some(sector) = product.space().find(&turned) else { continue };
                    let known = all[site].iter().filter(|d| d.label == *q);
                    for (at, d) in (first..).zip(known) {
                        let here = product.parts(sector).iter();
                        for part in here.filter(|p| p.state == to.state && place[p.inner] == own) {
                            for j in 0..part.dim {
                                out[(to.offset + at, j)] = d.right[(part.offset + j, 0)];
                            }
                        }
                    }
                }
            })?);
        }
        let centre = (0..n)
            .map(|bond| {
                let old = &self.spaces[bond];
                let one = |(q, d): (&Label, usize)| {
                    let known = old.find(q).map(|s| &self.centre[bond][s]);
                    Mat::from_fn(d, d, |i, j| match known {
                        Some(c) if i < c.nrows() && j < c.ncols() => c[(i, j)],
                        _ => T::default(),
                    })
                };
                spaces[bond].iter().map(one).collect()
            })
            .collect();
        Ok(Uniform { cell: self.cell.clone(), spaces, left, right, centre })
    }
}

/// Most products of a search within a step.
const STEPS: usize = 60;

fn conjugate<T: Element>(m: MatRef<'_, T>) -> Mat<T> {
    Mat::from_fn(m.nrows(), m.ncols(), |i, j| crate::number::Scalar::conj(m[(i, j)]))
}

impl<T: Element> Tensor<T> {
    /// The tensor between larger bases, in whose sectors the old states come first, and what `extra` adds to the matrix of
    /// a row of the new product.
    fn padded(
        &self,
        symmetry: &super::super::space::Symmetry,
        before: &Space,
        states: &[Label],
        behind: &Space,
        extra: impl Fn(usize, &Fusion, &mut Mat<T>),
    ) -> Result<Tensor<T>> {
        let fusion = Fusion::new(symmetry, before, states);
        let fill = |sector: usize| {
            let (label, columns) = (behind.label(sector), behind.dim(sector));
            let Some(row) = fusion.space().find(label) else { return Mat::zeros(0, columns) };
            let mut out = Mat::zeros(fusion.space().dim(row), columns);
            if let Some(at) = self.behind.find(label) {
                let old = &self.matrices[at];
                for part in self.fusion.parts(self.rows[at]) {
                    let inner = before.find(self.before.label(part.inner)).unwrap_or(0);
                    let (_, to) = fusion.place(inner, part.state);
                    out.as_mut()
                        .submatrix_mut(to.offset, 0, part.dim, old.ncols())
                        .copy_from(old.as_ref().subrows(part.offset, part.dim));
                }
            }
            extra(row, &fusion, &mut out);
            out
        };
        Tensor::new(symmetry, before, states, behind, fill)
    }
}
