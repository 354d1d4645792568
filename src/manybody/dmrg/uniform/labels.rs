//! The same state of an infinite chain with other labels, and seen from another site of its cell.

use faer::Mat;

use super::super::space::{Fusion, Label, Space, Symmetry};
use super::super::tensor::Tensor;
use super::state::Uniform;
use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};

fn moved(symmetry: &Symmetry, space: &Space, by: &Label) -> Space {
    Space::new(space.iter().map(|(q, d)| (symmetry.add(q, by), d)).collect())
}

/// A tensor with labels larger on both sides; rows and columns follow the order of the new labels.
fn relabelled<T: Element>(
    symmetry: &Symmetry,
    tensor: &Tensor<T>,
    states: &[Label],
    before_by: &Label,
    behind_by: &Label,
) -> Result<Tensor<T>> {
    let before = moved(symmetry, &tensor.before, before_by);
    let behind = moved(symmetry, &tensor.behind, behind_by);
    let fusion = Fusion::new(symmetry, &before, states);
    Tensor::new(symmetry, &before, states, &behind, |sector| {
        let label = behind.label(sector);
        let rows = fusion.space().find(label);
        let from = tensor.behind.find(&symmetry.subtract(label, behind_by));
        let (Some(row), Some(from)) = (rows, from) else { return Mat::zeros(0, 0) };
        let mut m = Mat::zeros(fusion.space().dim(row), behind.dim(sector));
        for part in fusion.parts(row) {
            let inner = tensor.before.find(&symmetry.subtract(before.label(part.inner), before_by));
            let Some(inner) = inner else { continue };
            let Some((_, old)) = tensor.fusion.place(inner, part.state) else { continue };
            let own = tensor.matrices[from].as_ref().subrows(old.offset, old.dim);
            m.as_mut().subrows_mut(part.offset, part.dim).copy_from(own);
        }
        m
    })
}

impl<T: Element> Uniform<T> {
    /// The state whose bond `b` and site `b` are those that `from` says of this one, with labels larger by `by`, one for each bond.
    fn arranged(&self, from: &[usize], by: &[Label]) -> Result<Uniform<T>> {
        let n = self.count();
        let symmetry = &self.cell.symmetry;
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut spaces, mut centre) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for (b, &old) in from.iter().enumerate() {
            let (here, next) = (&by[b], &by[(b + 1) % n]);
            let states = &self.cell.states[b];
            left.push(relabelled(symmetry, &self.left[old], states, here, next)?);
            right.push(relabelled(symmetry, &self.right[old], states, here, next)?);
            let space = moved(symmetry, &self.spaces[old], here);
            let own = |(q, _): (&Label, usize)| {
                let sector = self.spaces[old].find(&symmetry.subtract(q, here)).unwrap_or(0);
                self.centre[old][sector].clone()
            };
            centre.push(space.iter().map(own).collect());
            spaces.push(space);
        }
        Ok(Uniform { cell: self.cell.clone(), spaces, left, right, centre })
    }

    /// The state with labels larger by a charge on every bond.
    pub(super) fn charged(&self, charge: &Label) -> Result<Uniform<T>> {
        let n = self.count();
        self.arranged(&(0..n).collect::<Vec<_>>(), &vec![charge.clone(); n])
    }

    /// The state moved to the left by some sites: what stood on site `by` of the cell stands on its first.
    ///
    /// # Errors
    /// When the sites of the cell are not the same ones then.
    pub fn moved(&self, by: usize) -> Result<Uniform<T>> {
        let n = self.count();
        let by = by % n;
        let kinds: Vec<_> = self.cell.sites.iter().collect();
        if (0..n).any(|i| kinds[i] != kinds[(i + by) % n]) {
            return Err(Error::input(format!("a cell of {} is another one moved by {by}", self.cell.sites))
                .hint("move it by as many sites as repeat themselves"));
        }
        let symmetry = &self.cell.symmetry;
        let from: Vec<usize> = (0..n).map(|b| (b + by) % n).collect();
        // Bonds of the next cell count what this cell holds, too.
        let more = |b: usize| if b + by >= n { self.cell.target.clone() } else { symmetry.zero() };
        self.arranged(&from, &(0..n).map(more).collect::<Vec<_>>())
    }
}
