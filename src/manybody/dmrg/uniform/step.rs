//! Steps towards the ground state: the variational uniform matrix product state algorithm (Zauner-Stauber et al. 2018).

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::{Mat, MatRef};

use super::super::block::ChainBlock;
use super::super::dense::{adjoint_product, product, square, thin_svd};
use super::super::superblock::{Strategy, Superblock};
use super::super::tensor::{LabelledMatrices, MpsTensor, adjoint, push_left, to_tensor};
use super::environment::Environments;
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
pub struct StepReport {
    /// The energy of a cell.
    pub energy: f64,
    /// The largest norm, over the sites, of what the Hamiltonian would change a site's matrices by.
    pub gradient: f64,
    /// The sum of the squares of these norms.
    pub squares: f64,
}

/// Two blocks as an operator.
pub(super) struct JoinedBlocks {
    operator: Operator,
}

impl JoinedBlocks {
    pub fn new<T: Element>(
        device: &Device,
        left: &Arc<ChainBlock<T>>,
        right: &Arc<ChainBlock<T>>,
    ) -> Result<JoinedBlocks> {
        let zero = left.mpo().symmetry().zero().into_iter().map(Some).collect();
        let both = Superblock::new(device, left, right, &zero, Strategy::Auto)?;
        Ok(JoinedBlocks { operator: both.into_operator(device) })
    }

    pub fn both<T: Element>(&self) -> Result<&Superblock<T>> {
        self.operator
            .exactly::<Superblock<T>>()
            .ok_or_else(|| Error::internal("a superblock of other numbers"))
    }

    /// A vector from one matrix for each sector of the left block.
    pub fn pack<T: Element>(&self, blocks: &BTreeMap<usize, Mat<T>>) -> Result<Vec<C64>> {
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

    pub fn unpack<T: Element>(&self, x: &[C64]) -> Result<BTreeMap<usize, Mat<T>>> {
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
    pub fn times(&self, x: &[C64]) -> Result<Vec<C64>> {
        let h = &self.operator;
        let v = h.device().upload(h.dtype(), Rows::all(h.dim()), 1, x)?;
        h.device().download(&h.apply(&v)?)
    }

    /// The lowest state near `x`, of the same phase.
    pub fn lowest(&self, x: &[C64], tol: f64, iterations: usize, task: &Task) -> Result<Vec<C64>> {
        let (_, mut found) = self.ground(Some(x), false, tol, iterations, task)?;
        let overlap: C64 = found.iter().zip(x).map(|(a, b)| a.conj() * b).sum();
        if overlap.norm() > 0.0 {
            let phase = overlap / overlap.norm();
            found.iter_mut().for_each(|z| *z *= phase);
        }
        Ok(found)
    }

    /// The lowest state and its energy. A start that is doubted may be an eigenstate, and not the lowest.
    pub fn ground(
        &self,
        start: Option<&[C64]>,
        doubt: bool,
        tol: f64,
        iterations: usize,
        task: &Task,
    ) -> Result<(f64, Vec<C64>)> {
        let h = &self.operator;
        let start = match start {
            Some(x) => Some(h.device().upload(h.dtype(), Rows::all(h.dim()), 1, x)?),
            None => None,
        };
        let options = DavidsonOptions {
            tolerance: Some(tol),
            max_iterations: iterations,
            start,
            trust_start: !doubt,
            ..DavidsonOptions::new(1)
        };
        let found = davidson(h, options, task)?;
        let energy = found.values.first().copied().unwrap_or(f64::NAN);
        Ok((energy, h.device().download(&found.vectors)?))
    }
}

/// The isometry nearest to a matrix of more rows than columns.
pub(super) fn polar<T: Element>(m: MatRef<'_, T>) -> Result<Mat<T>> {
    let (u, _, v) = thin_svd(m)?;
    Ok(product(u.as_ref(), adjoint(v.as_ref()).as_ref()))
}

impl<T: Element> Uniform<T> {
    /// What lies around a site and the site itself, as one operator.
    fn around(&self, environments: &Environments<T>, device: &Device, site: usize) -> Result<JoinedBlocks> {
        let grown = environments.lefts[site].grow()?;
        JoinedBlocks::new(device, &grown, &environments.rights[site + 1])
    }

    /// The matrices of a site between the two forms, as a vector.
    fn packed(&self, joined: &JoinedBlocks, site: usize) -> Result<Vec<C64>> {
        let x: BTreeMap<usize, Mat<T>> =
            self.left[site].rows.iter().copied().zip(self.middle(site)).collect();
        joined.pack(&x)
    }

    /// What the Hamiltonian adds to them that the left form does not hold, by sectors.
    fn beyond(&self, joined: &JoinedBlocks, x: &[C64], site: usize) -> Result<Vec<Mat<T>>> {
        let own = &self.left[site];
        let image = joined.unpack::<T>(&joined.times(x)?)?;
        let one = |(row, a): (&usize, &Mat<T>)| {
            let mut y = image.get(row).cloned().unwrap_or_else(|| Mat::zeros(a.nrows(), a.ncols()));
            let known = adjoint_product(a.as_ref(), y.as_ref());
            y -= product(a.as_ref(), known.as_ref());
            y
        };
        Ok(own.rows.iter().zip(&own.matrices).map(one).collect())
    }

    /// What the Hamiltonian adds to the matrices of a site that the left form does not hold, by sectors.
    ///
    /// # Errors
    /// When the surroundings belong to another state.
    pub(super) fn rest(
        &self,
        environments: &Environments<T>,
        device: &Device,
        site: usize,
    ) -> Result<Vec<Mat<T>>> {
        let joined = self.around(environments, device, site)?;
        let x = self.packed(&joined, site)?;
        self.beyond(&joined, &x, site)
    }

    /// One step of all sites at once, and what was known before it.
    ///
    /// # Errors
    /// When a search or a decomposition fails; interruption.
    pub fn step(
        &self,
        environments: &Environments<T>,
        device: &Device,
        tol: f64,
        task: &Task,
    ) -> Result<(Uniform<T>, StepReport)> {
        let n = self.count();
        let symmetry = &self.cell.symmetry;
        let (mut gradient, mut squares) = (0.0f64, 0.0);
        let mut middles = Vec::with_capacity(n);
        let mut centres = Vec::with_capacity(n);
        let quiet = task.quiet();
        for site in 0..n {
            crate::task::poll()?;
            let joined = self.around(environments, device, site)?;
            let start = self.packed(&joined, site)?;
            let sum: f64 = self.beyond(&joined, &start, site)?.iter().map(|y| square(y.as_ref())).sum();
            gradient = gradient.max(sum.sqrt());
            squares += sum;
            let found = joined.lowest(&start, tol, STEPS, &quiet)?;
            middles.push(joined.unpack::<T>(&found)?);
            let bare = JoinedBlocks::new(device, &environments.lefts[site], &environments.rights[site])?;
            let c: BTreeMap<usize, Mat<T>> = self.centre[site].iter().cloned().enumerate().collect();
            let start = bare.pack(&c)?;
            let found = bare.lowest(&start, tol, STEPS, &quiet)?;
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
            left.push(MpsTensor::new(symmetry, before, states, after, |s| isometries[s].clone())?);
            let (fusion, blocks) = push_left(symmetry, states, &middle, after, None);
            let mut rows: LabelledMatrices<T> = Vec::new();
            for (label, wide) in blocks {
                let at = before.find(&label).ok_or_else(|| Error::internal("a sector that is not there"))?;
                let q = polar(adjoint(wide.as_ref()).as_ref())?;
                rows.push((label, adjoint(product(q.as_ref(), polars[site][at].as_ref()).as_ref())));
            }
            right.push(to_tensor(symmetry, states, before, after, &fusion, &rows)?);
        }
        let next =
            Uniform { cell: self.cell.clone(), spaces: self.spaces.clone(), left, right, centre: centres };
        Ok((next, StepReport { energy: environments.energy, gradient, squares }))
    }
}

/// Most products of a search within a step.
const STEPS: usize = 60;
