//! Tensors between any two bases of a bond, whose sectors need not all be reached,
//! and the infinite state that they make.

use std::collections::BTreeMap;
use std::sync::Arc;

use faer::Mat;

use super::super::dense::product;
use super::super::space::{ChargeLabel, Fusion, Space};
use super::super::tensor::MpsTensor;
use super::cell::{UnitCell, nothing_left};
use super::gauge::turned;
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::Result;

/// The row of a sector that nothing leads to.
pub(super) const NOWHERE: usize = usize::MAX;

/// Matrices by the label of a bond.
pub(super) type Labelled<T> = BTreeMap<ChargeLabel, Mat<T>>;

pub(super) fn labelled<T: Clone>(space: &Space, all: &[Mat<T>]) -> Labelled<T> {
    space.iter().zip(all).map(|((q, _), m)| (q.clone(), m.clone())).collect()
}

/// A tensor with all sectors behind it, those too that nothing leads to.
pub(super) fn whole<T: Element>(mut tensor: MpsTensor<T>, behind: &Space) -> MpsTensor<T> {
    if tensor.behind == *behind {
        return tensor;
    }
    let (mut rows, mut matrices) = (Vec::new(), Vec::new());
    for (label, dim) in behind.iter() {
        match tensor.behind.find(label) {
            Some(at) => {
                rows.push(tensor.rows[at]);
                matrices.push(std::mem::replace(&mut tensor.matrices[at], Mat::zeros(0, 0)));
            }
            None => {
                rows.push(NOWHERE);
                matrices.push(Mat::zeros(0, dim));
            }
        }
    }
    MpsTensor { before: tensor.before, behind: behind.clone(), fusion: tensor.fusion, rows, matrices }
}

/// A tensor times matrices behind it, to a basis in which all sectors are kept.
pub(super) fn ended<T: Element>(
    cell: &UnitCell,
    site: usize,
    tensor: &MpsTensor<T>,
    behind: &Space,
    by: &Labelled<T>,
) -> Result<MpsTensor<T>> {
    let states = &cell.states[site];
    let fusion = Fusion::new(&cell.symmetry, &tensor.before, states);
    let out = MpsTensor::new(&cell.symmetry, &tensor.before, states, behind, |s| {
        let label = behind.label(s);
        let rows = fusion.space().find(label).map_or(0, |r| fusion.space().dim(r));
        match (tensor.behind.find(label), by.get(label)) {
            (Some(from), Some(m)) if tensor.rows[from] != NOWHERE => {
                product(tensor.matrices[from].as_ref(), m.as_ref())
            }
            _ => Mat::zeros(rows, behind.dim(s)),
        }
    })?;
    Ok(whole(out, behind))
}

impl<T: Element> Uniform<T> {
    /// The state of any tensors of a cell; sectors that they do not lead to or from are left out.
    ///
    /// # Errors
    /// When a fixed point or decomposition does not converge, or nothing is left.
    pub(super) fn of_any(
        cell: &Arc<UnitCell>,
        spaces: &[Space],
        tensors: &[MpsTensor<T>],
    ) -> Result<Uniform<T>> {
        let n = cell.count();
        let mut spaces = spaces.to_vec();
        let dims = |s: &Space, f: &dyn Fn(&ChargeLabel) -> bool| -> Space {
            Space::of(s.iter().filter(|(q, _)| f(q)).map(|(q, d)| (q.clone(), d)).collect())
        };
        loop {
            let before: usize = spaces.iter().map(Space::sectors).sum();
            for site in 0..n {
                let behind = (site + 1) % n;
                let (symmetry, states) = (&cell.symmetry, &cell.states[site]);
                let at = spaces[site].clone();
                let reached =
                    |q: &ChargeLabel| states.iter().any(|s| at.find(&symmetry.subtract(q, s)).is_some());
                spaces[behind] = dims(&spaces[behind], &reached);
                let next = spaces[behind].clone();
                let leads = |q: &ChargeLabel| states.iter().any(|s| next.find(&symmetry.add(q, s)).is_some());
                spaces[site] = dims(&spaces[site], &leads);
            }
            if spaces.iter().map(Space::sectors).sum::<usize>() == before {
                break;
            }
        }
        if spaces.iter().any(|s| s.sectors() == 0) {
            return Err(nothing_left());
        }
        let units = |s: &Space| -> Vec<Mat<T>> { s.dims().iter().map(|&d| Mat::identity(d, d)).collect() };
        let mut left = Vec::with_capacity(n);
        for (site, tensor) in tensors.iter().enumerate() {
            let (a, b) = (&spaces[site], &spaces[(site + 1) % n]);
            left.push(turned(cell, site, tensor, (a, &units(a)), (b, &units(b)))?);
        }
        let centre = spaces.iter().map(units).collect();
        let dims = spaces.iter().map(|s| s.dims().to_vec()).collect();
        Uniform { cell: cell.clone(), spaces, right: left.clone(), left, centre }.cut_to(dims)
    }
}
