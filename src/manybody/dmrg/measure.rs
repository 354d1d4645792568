//! Measurements: entanglement, local expectation values, correlations with their signs, whole operator sums, the
//! variance of the energy.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};

use super::basis::TruncatedBasis;
use super::block::{BlockForm, ChainBlock};
use super::carry::{BondMatrices, each_joined, elements, to_right};
use super::coupled;
use super::dense::{eigh, product};
use super::density::entropy;
use super::mpo::Mpo;
use super::operators::CarriedOperator;
use super::space::{ChainSide, Space};
use super::state::MatrixProductState;
use super::tensor::MpsTensor;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::manybody::{OpSum, OperatorTerm, SiteProduct};
use crate::number::C64;
use crate::task::Task;

impl<T: Element> MatrixProductState<T> {
    /// The reduced density matrix of the sites left of each bond, in the bond's basis: a block for each sector.
    pub(super) fn densities(&self) -> Vec<Vec<Mat<T>>> {
        let n = self.tensors.len();
        let mut all = vec![vec![Mat::identity(1, 1)]];
        for i in (0..n).rev() {
            let (tensor, behind) = (&self.tensors[i], &all[n - 1 - i]);
            let mut own: Vec<Mat<T>> = self.spaces[i].dims().iter().map(|&d| Mat::zeros(d, d)).collect();
            for (sector, (matrix, row)) in tensor.matrices.iter().zip(&tensor.rows).enumerate() {
                let weighted = product(matrix.as_ref(), behind[sector].as_ref());
                for part in tensor.fusion.parts(*row) {
                    let a = weighted.as_ref().subrows(part.offset, part.dim);
                    let b = matrix.as_ref().subrows(part.offset, part.dim);
                    let sum = own[part.inner].as_mut();
                    matmul(sum, Accum::Add, a, b.adjoint(), T::one_impl(), Par::Seq);
                }
            }
            all.push(own);
        }
        all.reverse();
        all
    }

    /// The weights of the Schmidt decomposition at each bond inside the chain, descending.
    ///
    /// # Errors
    /// When an eigenvalue does not converge.
    pub fn spectra(&self) -> Result<Vec<Vec<f64>>> {
        let densities = self.densities();
        let one = |(space, sectors): (&Space, &Vec<Mat<T>>)| -> Result<Vec<f64>> {
            let mut all = Vec::new();
            for ((label, _), m) in space.iter().zip(sectors) {
                let copies = self.symmetry.multiplicity(label);
                let weights = eigh(m.as_ref(), Par::Seq)?.0.into_iter().map(|w| w.max(0.0) / copies);
                (0..copies as usize).for_each(|_| all.extend(weights.clone()));
            }
            all.sort_by(|a, b| b.total_cmp(a));
            let sum: f64 = all.iter().sum();
            Ok(all.iter().map(|w| w / sum).collect())
        };
        let inner = 1..densities.len() - 1;
        self.spaces[inner.clone()].iter().zip(&densities[inner]).map(one).collect()
    }

    /// The entanglement entropy at each bond inside the chain.
    ///
    /// # Errors
    /// When an eigenvalue does not converge.
    pub fn entropies(&self) -> Result<Vec<f64>> {
        Ok(self.spectra()?.iter().map(|w| entropy(w)).collect())
    }

    /// The expectation value of an operator on each of some sites; a fermionic one includes its string of signs.
    ///
    /// # Errors
    /// When a site does not have the operator.
    pub fn local(&self, name: &str, sites: &[usize]) -> Result<Vec<C64>> {
        if let Some(spin) = self.spin() {
            return self.component(spin)?.local(name, sites);
        }
        if !T::DTYPE.is_complex() && self.has_complex(&[name], sites)? {
            return self.to_complex().local(name, sites);
        }
        let densities = self.densities();
        let mut values = vec![C64::ZERO; sites.len()];
        let fermionic = sites.iter().map(|&i| Ok(self.sites.site(i)?.operator(name)?.fermionic));
        let strings = fermionic.collect::<Result<Vec<_>>>()?.contains(&true);
        let mut signs: Option<BondMatrices<T>> = None;
        for i in 0..self.tensors.len() {
            let site = self.sites.site(i)?;
            let before = signs.as_ref();
            for (value, _) in values.iter_mut().zip(sites).filter(|v| *v.1 == i) {
                let operator = site.operator(name)?;
                let from = before.filter(|_| operator.fermionic);
                *value = self.close(from, i, &operator.matrix, &densities[i + 1]);
            }
            if strings {
                signs = Some(self.pass(before, i, &site.operator("F")?.matrix));
            }
        }
        Ok(values)
    }

    /// `<A_i B_j>` for all pairs of some sites, ascending; row by row.
    ///
    /// # Errors
    /// When a site does not have the operators, or on interruption.
    pub fn correlations(&self, a: &str, b: &str, sites: &[usize], task: &Task) -> Result<Vec<C64>> {
        if let Some(spin) = self.spin() {
            return self.component(spin)?.correlations(a, b, sites, task);
        }
        if !T::DTYPE.is_complex() && self.has_complex(&[a, b], sites)? {
            return self.to_complex().correlations(a, b, sites, task);
        }
        let n = sites.len();
        let densities = self.densities();
        let mut values = vec![C64::ZERO; n * n];
        let steps = task.start("correlations", n);
        let term = |first: (&str, usize), second: (&str, usize)| OperatorTerm {
            coefficient: C64::ONE,
            factors: vec![(first.0.to_string(), first.1), (second.0.to_string(), second.1)],
        };
        let fermionic = |name: &str, i: usize| Ok(self.sites.site(i)?.operator(name)?.fermionic);
        let mut odd = vec![[false; 2]; n];
        for (own, &i) in odd.iter_mut().zip(sites) {
            *own = [fermionic(a, i)?, fermionic(b, i)?];
        }
        // A fermionic operator paired with one that is not has its string on all sites before.
        let alone = odd.iter().any(|x| odd.iter().any(|y| x[0] != y[1]));
        let mut signs: Option<(BondMatrices<T>, usize)> = None;
        for (row, &i) in sites.iter().enumerate() {
            if alone && i > 0 {
                let (mut so_far, mut behind) = signs.take().map_or_else(
                    || Ok((self.pass(None, 0, &self.sites.site(0)?.operator("F")?.matrix), 1)),
                    Ok,
                )?;
                while behind < i {
                    let sign = &self.sites.site(behind)?.operator("F")?.matrix;
                    so_far = self.pass(Some(&so_far), behind, sign);
                    behind += 1;
                }
                signs = Some((so_far, behind));
            }
            let before = |string: &[usize]| match &signs {
                Some((e, _)) if string.first() == Some(&0) => Some(e),
                _ => None,
            };
            let here = SiteProduct::new(&term((a, i), (b, i)), &self.sites)?;
            if let [(_, matrix)] = &here.factors[..] {
                let start = before(&here.string);
                values[row * n + row] = self.close(start, i, matrix, &densities[i + 1]) * here.coefficient;
            }
            // Both orders, with the left operator on site i: A on the left, then B on the left.
            let orders = if a == b && odd.iter().all(|o| !o[0]) { 1 } else { 2 };
            for order in 0..orders {
                let pair = |j: usize| match order {
                    0 => SiteProduct::new(&term((a, i), (b, j)), &self.sites),
                    _ => SiteProduct::new(&term((a, j), (b, i)), &self.sites),
                };
                // The environment left of the second operator depends on whether that one is fermionic.
                let mut environments: [Option<(BondMatrices<T>, usize)>; 2] = [None, None];
                for (column, &j) in sites.iter().enumerate().skip(row + 1) {
                    let product = pair(j)?;
                    let [(_, first), (_, second)] = &product.factors[..] else {
                        return Err(Error::internal("a pair of operators on one site"));
                    };
                    let kept = &mut environments[usize::from(odd[column][1 - order])];
                    let (mut so_far, behind) =
                        kept.take().unwrap_or_else(|| (self.pass(before(&product.string), i, first), i + 1));
                    for k in behind..j {
                        let name = if product.string.contains(&k) { "F" } else { "Id" };
                        so_far = self.pass(Some(&so_far), k, &self.sites.site(k)?.operator(name)?.matrix);
                    }
                    let value = self.close(Some(&so_far), j, second, &densities[j + 1]);
                    let at = |row: usize, column: usize| row * n + column;
                    let place = if order == 0 { at(row, column) } else { at(column, row) };
                    values[place] = value * product.coefficient;
                    if orders == 1 {
                        values[at(column, row)] = values[place];
                    }
                    *kept = Some((so_far, j));
                }
            }
            steps.advance(row + 1)?;
        }
        Ok(values)
    }

    /// Whether one of these operators is complex on some site.
    fn has_complex(&self, names: &[&str], sites: &[usize]) -> Result<bool> {
        for &i in sites {
            for name in names {
                if self.sites.site(i)?.operator(name)?.matrix.iter().any(|z| z.im != 0.0) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// What is carried past a site with an operator on it; nothing before it is the identity.
    pub(super) fn pass(
        &self,
        from: Option<&BondMatrices<T>>,
        site: usize,
        operator: &[C64],
    ) -> BondMatrices<T> {
        let tensor = &self.tensors[site];
        to_right((tensor, tensor), Some(operator), from)
    }

    /// The expectation value of what is carried before `site` and an operator on it, with the identity behind it.
    pub(super) fn close(
        &self,
        from: Option<&BondMatrices<T>>,
        site: usize,
        operator: &[C64],
        density: &[Mat<T>],
    ) -> C64 {
        let tensor = &self.tensors[site];
        let mut sum = C64::ZERO;
        let elements = elements(Some(operator), tensor.fusion.states());
        each_joined(&elements, (tensor, tensor), from, |(bra, ket), upper, half, z| {
            if bra == ket {
                let weighted = product(half, density[ket].as_ref());
                let own = (0..upper.ncols()).flat_map(|j| (0..upper.nrows()).map(move |i| (i, j)));
                sum += z * own
                    .map(|at| (crate::number::Scalar::conj(upper[at]) * weighted[at]).to_c64())
                    .sum::<C64>();
            }
        });
        sum
    }

    /// The expectation value of an operator sum.
    ///
    /// # Errors
    /// When the sum does not fit the sites or changes the state's conserved numbers.
    pub fn expectation(&self, sum: &OpSum) -> Result<C64> {
        match (Mpo::operator(sum, &self.sites, &self.symmetry, &self.target), self.spin()) {
            // What rotations change has a value in a component.
            (Err(_), Some(spin)) => self.component(spin)?.expectation(sum),
            (mpo, _) => self.contract(&mpo?),
        }
    }

    /// `<(H - <H>)^2>`, and `<H>`.
    ///
    /// # Errors
    /// As [`MatrixProductState::expectation`], and for sums that are not Hermitian.
    pub fn variance(&self, sum: &OpSum) -> Result<(f64, f64)> {
        Mpo::need_hermitian(sum, &self.sites, &self.symmetry)?;
        if let (Err(_), Some(spin)) = (coupled::strings(sum, &self.sites, &self.symmetry), self.spin()) {
            return self.component(spin)?.variance(sum);
        }
        let energy = self.expectation(sum)?.re;
        // Subtracted before squaring, so that the difference is not one of large numbers.
        let mut shifted = sum.clone();
        shifted.add(-energy, Vec::new())?;
        let mpo = Mpo::operator(&shifted, &self.sites, &self.symmetry, &self.target)?;
        let variance = self.contract(&Arc::new(mpo.squared()))?.re;
        if variance.is_finite() {
            return Ok((variance, energy));
        }
        Err(Error::numeric("a variance that is larger than any number")
            .hint("measure the operator in other units"))
    }

    fn contract(&self, mpo: &Arc<Mpo>) -> Result<C64> {
        if mpo.is_complex() && !T::DTYPE.is_complex() {
            return self.to_complex().contract(mpo);
        }
        let mut block = ChainBlock::<T>::edge(mpo, ChainSide::Left);
        for tensor in &self.tensors {
            let grown = block.grow()?;
            let of = |sector: usize| {
                let at = tensor.rows.iter().position(|r| *r == sector)?;
                Some(tensor.matrices[at].clone())
            };
            let old = grown.space().clone();
            if &old != tensor.fusion.space() {
                return Err(Error::internal("a state whose bases do not follow one another"));
            }
            block = grown.rotate(&TruncatedBasis::from_vectors(&old, of).shared())?.alone();
        }
        let BlockForm::Plain { carried, .. } = &block.shape else {
            return Err(Error::internal("a block that is not rotated"));
        };
        Ok(match carried.present()?.first() {
            Some(CarriedOperator::Blocks(blocks)) => {
                let mut sum = C64::ZERO;
                for block in blocks {
                    sum += block.matrix.here()?[(0, 0)].to_c64();
                }
                sum
            }
            Some(CarriedOperator::Identity) => C64::ONE,
            _ => C64::ZERO,
        })
    }

    /// The scalar product with another state of the same chain.
    ///
    /// # Errors
    /// When the states belong to different chains.
    pub fn overlap(&self, other: &MatrixProductState<T>) -> Result<C64> {
        self.need_alike(other)?;
        let mut carried = BondMatrices::from([((0, 0), Mat::identity(1, 1))]);
        for sites in self.tensors.iter().zip(&other.tensors) {
            carried = to_right(sites, None, Some(&carried));
        }
        let sum: C64 = carried.values().map(|m| m[(0, 0)].to_c64()).sum();
        Ok(sum * self.norm * other.norm)
    }

    /// The same state with complex numbers.
    pub fn to_complex(&self) -> MatrixProductState<C64> {
        MatrixProductState {
            sites: self.sites.clone(),
            symmetry: self.symmetry.clone(),
            target: self.target.clone(),
            spaces: self.spaces.clone(),
            tensors: self.tensors.iter().map(MpsTensor::to_complex).collect(),
            norm: self.norm,
            number: self.number,
        }
    }
}
