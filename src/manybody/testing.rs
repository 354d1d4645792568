//! What unit tests of several files share.

use super::{Sector, Site, Sites};
use crate::backend::matrix::Csr;
use crate::number::C64;

/// Sites of one kind; bosons up to two.
pub fn chain(kind: &str, n: usize) -> Sites {
    let nmax = (kind == "Boson").then_some(2);
    Sites::uniform(Site::named(kind, nmax).unwrap(), n).unwrap()
}

pub fn sector(numbers: &[(&str, f64)]) -> Sector {
    numbers.iter().map(|(name, q)| (name.to_string(), *q)).collect()
}

/// All elements; what a row has twice is added.
pub fn dense(csr: &Csr) -> faer::Mat<C64> {
    let mut m = faer::Mat::zeros(csr.rows, csr.cols);
    for row in 0..csr.rows {
        for at in csr.row_start[row]..csr.row_start[row + 1] {
            m[(row, csr.columns.get(at))] += csr.values.get(at);
        }
    }
    m
}
