//! A state of an infinite chain: the matrices of one cell, in the left and the right canonical form, and the matrices
//! on the bonds between them (Zauner-Stauber, Vanderstraeten, Fishman, Verstraete, Haegeman, Phys. Rev. B 97,
//! 045145 (2018)).

use std::sync::Arc;

use faer::Mat;

use super::super::carry::BondMatrices;
use super::super::dense::{product, square, thin_svd};
use super::super::density::entropy;
use super::super::space::{ChargeLabel, Space};
use super::super::tensor::{MpsTensor, adjoint, complex};
use super::bonds::diagonal;
use super::cell::UnitCell;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::C64;

/// A state of an infinite chain. Bond `i` lies before site `i` of the cell.
#[derive(Debug, Clone)]
pub struct Uniform<T> {
    pub(in super::super) cell: Arc<UnitCell>,
    /// The bases of the bonds, labelled by the numbers to the left less those of whole cells.
    pub(in super::super) spaces: Vec<Space>,
    /// Isometries from the left.
    pub(in super::super) left: Vec<MpsTensor<T>>,
    /// Isometries from the right.
    pub(in super::super) right: Vec<MpsTensor<T>>,
    /// At each bond, by its sectors: the state's matrix between the two forms; the sum of the squares is one.
    pub(in super::super) centre: Vec<Vec<Mat<T>>>,
}

impl<T: Element> Uniform<T> {
    /// The state with one local state a site.
    ///
    /// # Errors
    /// When there is not one for each site of the cell, or their numbers are not the cell's.
    pub fn product(cell: &Arc<UnitCell>, states: &[usize]) -> Result<Uniform<T>> {
        let symmetry = &cell.symmetry;
        cell.sites.need_each(states.len())?;
        let mut spaces = vec![Space::single(symmetry.zero())];
        let mut tensors = Vec::new();
        for (labels, &state) in cell.states.iter().zip(states) {
            let tensor = MpsTensor::product(symmetry, &spaces[spaces.len() - 1], labels, state)?;
            spaces.push(tensor.behind.clone());
            tensors.push(tensor);
        }
        if spaces.pop().is_some_and(|last| last.label(0) != spaces[0].label(0)) {
            return Err(Error::input("the product state has other numbers than the cell")
                .hint("its conserved numbers have to sum up to those of the cell"));
        }
        let centre = vec![vec![Mat::identity(1, 1)]; cell.count()];
        Ok(Uniform { cell: cell.clone(), spaces, left: tensors.clone(), right: tensors, centre })
    }

    /// The same state with complex numbers.
    pub fn to_complex(&self) -> Uniform<C64> {
        Uniform {
            cell: self.cell.clone(),
            spaces: self.spaces.clone(),
            left: self.left.iter().map(MpsTensor::to_complex).collect(),
            right: self.right.iter().map(MpsTensor::to_complex).collect(),
            centre: self.centre.iter().map(|c| c.iter().map(complex).collect()).collect(),
        }
    }

    /// Number of sites of the cell.
    pub fn count(&self) -> usize {
        self.cell.count()
    }

    pub fn cell(&self) -> &Arc<UnitCell> {
        &self.cell
    }

    /// The bond behind a site.
    pub(super) fn behind(&self, site: usize) -> usize {
        (site + 1) % self.count()
    }

    /// States at each bond; bond 0 lies before site 0.
    pub fn widths(&self) -> Vec<usize> {
        self.spaces.iter().map(Space::total).collect()
    }

    /// Bytes of the matrices.
    pub fn bytes(&self) -> usize {
        let of = |m: &Mat<T>| m.nrows() * m.ncols() * size_of::<T>();
        let tensors = self.left.iter().chain(&self.right).flat_map(|t| &t.matrices).map(of).sum::<usize>();
        tensors + self.centre.iter().flatten().map(of).sum::<usize>()
    }

    /// The matrices of a site between the two forms, by sectors of the bond behind it.
    pub(super) fn middle(&self, site: usize) -> Vec<Mat<T>> {
        let centre = &self.centre[self.behind(site)];
        self.left[site].matrices.iter().zip(centre).map(|(a, c)| product(a.as_ref(), c.as_ref())).collect()
    }

    /// The density matrix of what lies left of a bond, in the basis of the left form.
    pub(super) fn density_left(&self, bond: usize) -> BondMatrices<T> {
        diagonal(
            self.centre[bond].iter().map(|c| product(c.as_ref(), adjoint(c.as_ref()).as_ref())).collect(),
        )
    }

    /// The density matrix of what lies right of a bond, in the basis of the right form: `C^H C`.
    pub(super) fn density_right(&self, bond: usize) -> BondMatrices<T> {
        diagonal(
            self.centre[bond].iter().map(|c| product(adjoint(c.as_ref()).as_ref(), c.as_ref())).collect(),
        )
    }

    /// The weights of the Schmidt decomposition at a bond with the label of each, descending.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn spectrum(&self, bond: usize) -> Result<Vec<(f64, ChargeLabel)>> {
        let mut all = Vec::new();
        for (c, (label, _)) in self.centre[bond].iter().zip(self.spaces[bond].iter()) {
            all.extend(thin_svd(c.as_ref())?.1.into_iter().map(|s| (s * s, label.clone())));
        }
        let sum: f64 = all.iter().map(|w| w.0).sum();
        all.iter_mut().for_each(|w| w.0 /= sum);
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(all)
    }

    /// The entanglement entropy `- sum w ln w` of each bond, that behind the first site first.
    ///
    /// # Errors
    /// When a decomposition does not converge.
    pub fn entropies(&self) -> Result<Vec<f64>> {
        let n = self.count();
        let of = |bond: usize| -> Result<f64> {
            let weights: Vec<f64> = self.spectrum((bond + 1) % n)?.iter().map(|w| w.0).collect();
            Ok(entropy(&weights))
        };
        (0..n).map(of).collect()
    }

    /// How far the two forms are from the same state: the largest norm of `A_L C - C A_R`, over the sites.
    pub fn mismatch(&self) -> f64 {
        let one = |site: usize| -> f64 {
            let (left, right) = (self.middle(site), &self.right[site]);
            let mut sum = 0.0;
            for ((l, r), row) in left.iter().zip(&right.matrices).zip(&right.rows) {
                for part in right.fusion.parts(*row) {
                    let c = self.centre[site][part.inner].as_ref();
                    let mut rest = product(c, r.as_ref().subrows(part.offset, part.dim));
                    rest -= l.as_ref().subrows(part.offset, part.dim);
                    sum += square(rest.as_ref());
                }
            }
            sum.sqrt()
        };
        (0..self.count()).map(one).fold(0.0, f64::max)
    }
}
