//! The matrix of an operator sum in a sector: rows are generated from local matrices, columns are numbered by the
//! basis.

use super::basis::{BasisPath, SectorBasis};
use super::local::{LocalEntry, LocalTerms, groups};
use super::opsum::OpSum;
use super::rows::{self, RowSource, tidy};
use crate::backend::Device;
use crate::backend::matrix::Csr;
use crate::error::Result;
use crate::number::C64;
use crate::operator::{MatrixFormat, Operator, StoredMatrix};
use crate::task::Task;

/// The operator of a sum in a basis, on a device.
///
/// # Errors
/// Those of [`matrix`].
pub fn operator(
    device: &Device,
    sum: &OpSum,
    basis: &SectorBasis,
    format: MatrixFormat,
    single: bool,
    task: &Task,
) -> Result<Operator> {
    let csr = matrix(sum, basis, single, task)?;
    Ok(StoredMatrix::from_csr(device, csr, format)?.labelled(basis.label()))
}

/// The matrix of a sum in a basis; real where all elements are.
///
/// # Errors
/// For names and sites that do not exist, terms that change a number that the basis conserves, memory, interruption.
pub fn matrix(sum: &OpSum, basis: &SectorBasis, single: bool, task: &Task) -> Result<Csr> {
    rows::matrix(&PlainRows::new(sum, basis)?, single, task)
}

/// Generates the rows of a sum in a basis of product states.
pub(super) struct PlainRows {
    groups: Vec<LocalTerms>,
    basis: SectorBasis,
    /// Whether each state of each site is odd.
    odd: Vec<Vec<bool>>,
}

impl PlainRows {
    /// # Errors
    /// For names and sites that do not exist, terms that change a number that the basis conserves.
    pub fn new(sum: &OpSum, basis: &SectorBasis) -> Result<PlainRows> {
        let odd =
            basis.sites().iter().map(|site| (0..site.dim()).map(|s| site.is_odd(s)).collect()).collect();
        Ok(PlainRows { groups: groups(sum, basis)?, basis: basis.clone(), odd })
    }

    /// The entries of the row that the walk stands at.
    fn row(&self, walk: &BasisPath<'_>, out: &mut Vec<(u64, C64)>) {
        out.clear();
        let levels = self.basis.levels();
        let number = walk.passed[levels.len()];
        let mut diagonal = C64::ZERO;
        for group in &self.groups {
            let joint: usize =
                group.sites.iter().zip(&group.strides).map(|(&i, s)| walk.states[i] as usize * s).sum();
            let elements = &group.elements[group.starts[joint] as usize..group.starts[joint + 1] as usize];
            if elements.is_empty() {
                continue;
            }
            let odd = group.string.iter().filter(|&&k| self.odd[k][walk.states[k] as usize]).count() % 2 == 1;
            for element in elements {
                let value = if odd { -element.value } else { element.value };
                if element.states.is_empty() {
                    diagonal += value;
                } else {
                    out.push((number + self.shift(group, element, walk), value));
                }
            }
        }
        if diagonal != C64::ZERO {
            out.push((number, diagonal));
        }
    }

    /// Calls `each` with the entries of rows.
    fn walked(&self, first: usize, count: usize, mut each: impl FnMut(usize, &mut Vec<(u64, C64)>)) {
        let mut walk = BasisPath::at(&self.basis, first);
        let mut row = Vec::new();
        for k in 0..count {
            self.row(&walk, &mut row);
            each(k, &mut row);
            walk.step();
        }
    }

    /// How far the column lies from the row, modulo 2^64: only the sites from the first to the last of the group
    /// matter.
    #[inline]
    fn shift(&self, group: &LocalTerms, element: &LocalEntry, walk: &BasisPath<'_>) -> u64 {
        let levels = self.basis.levels();
        let (mut i, mut passed) = (group.sites[0], 0u64);
        let mut node = walk.nodes[i];
        for (&site, &state) in group.sites.iter().zip(&element.states) {
            while i < site {
                passed += levels[i].before(node, walk.states[i]);
                node = levels[i].next(node, walk.states[i]);
                i += 1;
            }
            passed += levels[i].before(node, state);
            node = levels[i].next(node, state);
            i += 1;
        }
        passed.wrapping_sub(walk.passed[i] - walk.passed[group.sites[0]])
    }
}

impl RowSource for PlainRows {
    fn shape(&self) -> (usize, usize) {
        (self.basis.dim(), self.basis.dim())
    }

    fn work(&self) -> usize {
        self.groups.len() + self.basis.sites().count()
    }

    fn complex(&self) -> bool {
        self.groups.iter().any(|g| g.elements.iter().any(|e| e.value.im != 0.0))
    }

    fn bytes(&self) -> usize {
        self.groups.iter().map(LocalTerms::bytes).sum()
    }

    fn visit(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.walked(first, count, |k, row| {
            tidy(row);
            each(k, row);
        });
    }

    fn scatter(&self, first: usize, count: usize, each: &mut dyn FnMut(usize, &[(u64, C64)])) {
        self.walked(first, count, |k, row| each(k, row));
    }
}
