//! The blocks of a state's tensors one by one, each with the sectors that it stands between.

use super::space::{ChargeLabel, Space};
use super::state::MatrixProductState;
use super::tensor::MpsTensor;
use super::uniform::Uniform;
use crate::backend::matrix::records::Element;
use crate::number::{C64, Series};

/// A block: its sizes, and its numbers by rows.
pub struct BlockNumbers {
    pub rows: usize,
    pub columns: usize,
    pub numbers: Series,
    /// Sector of the bond before, state of the site, sector of the bond behind; sectors alone for a matrix on a bond.
    pub place: Vec<usize>,
}

pub struct NamedTensor {
    pub name: String,
    pub blocks: Vec<BlockNumbers>,
}

/// The tensors of a state as lists of blocks, for files and for other programs.
pub struct InBlocks {
    pub tensors: Vec<NamedTensor>,
    /// Twice the conserved numbers and the size of the sectors of each bond.
    pub bonds: Vec<Vec<(ChargeLabel, usize)>>,
    /// Twice the conserved numbers of each site's states.
    pub sites: Vec<Vec<ChargeLabel>>,
    /// The factor of the product of all matrices.
    pub norm: f64,
}

fn numbers<T: Element>(m: faer::MatRef<'_, T>) -> Series {
    let all = (0..m.nrows()).flat_map(|i| (0..m.ncols()).map(move |j| m[(i, j)].to_c64()));
    if T::DTYPE.is_complex() {
        Series::Complex(all.collect::<Vec<C64>>())
    } else {
        Series::Real(all.map(|z| z.re).collect())
    }
}

fn in_blocks<T: Element>(name: String, tensor: &MpsTensor<T>, behind: &Space) -> NamedTensor {
    let mut blocks = Vec::new();
    for (sector, (row, m)) in tensor.rows.iter().zip(&tensor.matrices).enumerate() {
        let to = behind.find(tensor.behind.label(sector)).unwrap_or(sector);
        for part in tensor.fusion.parts(*row) {
            let own = m.as_ref().subrows(part.offset, part.dim);
            blocks.push(BlockNumbers {
                rows: part.dim,
                columns: own.ncols(),
                numbers: numbers(own),
                place: vec![part.inner, part.state, to],
            });
        }
    }
    NamedTensor { name, blocks }
}

fn bond(space: &Space) -> Vec<(ChargeLabel, usize)> {
    space.iter().map(|(q, d)| (q.clone(), d)).collect()
}

impl<T: Element> MatrixProductState<T> {
    /// The state in blocks, in the order in which a file has their numbers.
    pub fn in_blocks(&self) -> InBlocks {
        let one = |(i, t): (usize, &MpsTensor<T>)| in_blocks(format!("site{i}"), t, &self.spaces[i + 1]);
        InBlocks {
            tensors: self.tensors.iter().enumerate().map(one).collect(),
            bonds: self.spaces.iter().map(bond).collect(),
            sites: (0..self.tensors.len()).map(|i| self.symmetry.states(&self.sites, i)).collect(),
            norm: self.norm,
        }
    }
}

impl<T: Element> Uniform<T> {
    /// The state in blocks, in the order in which a file has their numbers.
    pub fn in_blocks(&self) -> InBlocks {
        let n = self.count();
        let mut tensors = Vec::new();
        for (form, name) in [(&self.left, "left"), (&self.right, "right")] {
            for (i, t) in form.iter().enumerate() {
                tensors.push(in_blocks(format!("{name}{i}"), t, &self.spaces[(i + 1) % n]));
            }
        }
        for (i, centre) in self.centre.iter().enumerate() {
            let one = |(s, m): (usize, &faer::Mat<T>)| BlockNumbers {
                rows: m.nrows(),
                columns: m.ncols(),
                numbers: numbers(m.as_ref()),
                place: vec![s, s],
            };
            let blocks = centre.iter().enumerate().map(one).collect();
            tensors.push(NamedTensor { name: format!("centre{i}"), blocks });
        }
        InBlocks {
            tensors,
            bonds: self.spaces.iter().map(bond).collect(),
            sites: self.cell.states.clone(),
            norm: 1.0,
        }
    }
}
