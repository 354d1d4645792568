//! Algebra of backends with divided rows: sums over the rows of all parts, and changes of each part's rows.

use super::{Algebra, BlockVector, Device, Lists, RitzCorrection, Vectors, conformal};
use crate::error::Result;
use crate::number::C64;

/// What is summed of the rows of one part.
pub(super) type RowsSummand<'a> = dyn Fn(&Device, &[&BlockVector]) -> Result<Vec<C64>> + Sync + 'a;

/// What changes the rows of one part.
pub(super) type RowsChange<'a> = dyn Fn(&Device, &[&BlockVector], &mut BlockVector) -> Result<()> + Sync + 'a;

/// What changes the rows of two vectors in one part, and is summed of them.
pub(super) type TwoRowsChange<'a> =
    dyn Fn(&Device, &[&BlockVector], [&mut BlockVector; 2]) -> Result<Vec<C64>> + Sync + 'a;

/// A backend whose vectors have their rows in several places, or all in one.
pub(super) trait SharedRows: Vectors {
    /// Whether the rows of a block lie in several places.
    fn is_cut(&self, v: &BlockVector) -> Result<bool>;

    /// The sum of what `f` makes of the parts' rows of these blocks, those of all where the first has them.
    fn sum(&self, blocks: &[&BlockVector], f: &RowsSummand) -> Result<Vec<C64>>;

    /// Changes the parts' rows of `y`, with those of blocks that have them where `y` does.
    fn change(&self, blocks: &[&BlockVector], y: &mut BlockVector, f: &RowsChange) -> Result<()>;

    /// Changes the parts' rows of both `y`, which lie alike; gives the sum of what `f` makes of them.
    fn change_two(
        &self,
        blocks: &[&BlockVector],
        y: [&mut BlockVector; 2],
        f: &TwoRowsChange,
    ) -> Result<Vec<C64>>;
}

impl<S: SharedRows> Algebra for S {
    fn axpby(&self, a: &[C64], x: &BlockVector, b: &[C64], y: &mut BlockVector) -> Result<()> {
        conformal("a x + b y", x, y)?;
        self.change(&[x], y, &|device, x, y| device.axpby(a, x[0], b, y))
    }

    fn multiply(&self, x: &BlockVector, z: &BlockVector, y: &mut BlockVector) -> Result<()> {
        self.change(&[x, z], y, &|device, x, y| device.multiply(x[0], x[1], y))
    }

    fn dots(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        conformal("scalar product", x, y)?;
        self.sum(&[x, y], &|device, x| device.dots(x[0], x[1]))
    }

    fn gram(&self, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        self.sum(&[x, y], &|device, x| device.gram(x[0], x[1]))
    }

    fn gram_each(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        let all: Vec<&BlockVector> = std::iter::once(y).chain(x.iter().copied()).collect();
        self.sum(&all, &|device, all| device.gram_each(&all[1..], all[0]))
    }

    fn combine(&self, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        self.change(&[x], y, &|device, x, y| device.combine(x[0], c, b, y))
    }

    fn deflate_there(
        &self,
        u: &BlockVector,
        kept: Option<(&[f64], &BlockVector)>,
        y: &mut BlockVector,
    ) -> Result<bool> {
        let blocks: Vec<&BlockVector> = std::iter::once(u).chain(kept.map(|k| k.1)).collect();
        for v in blocks.iter().copied().chain([&*y]) {
            if self.is_cut(v)? {
                return Ok(false);
            }
        }
        // What lives whole may stay on its device.
        self.change(&blocks, y, &|device, x, y| device.deflate(x[0], kept.map(|k| (k.0, x[1])), y))?;
        Ok(true)
    }

    fn precondition(
        &self,
        d: &BlockVector,
        shift: &[f64],
        floor: f64,
        x: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()> {
        self.change(&[d, x], y, &|device, x, y| device.precondition(x[0], shift, floor, x[1], y))
    }
}

impl<S: SharedRows> Lists for S {
    fn dots_with(&self, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
        let all: Vec<&BlockVector> = std::iter::once(y).chain(x.iter().copied()).collect();
        self.sum(&all, &|device, all| device.dots_with(&all[1..], all[0]))
    }

    fn dots_with_each(&self, lists: &[(&[&BlockVector], &BlockVector)]) -> Result<Vec<C64>> {
        let all: Vec<&BlockVector> =
            lists.iter().flat_map(|(x, y)| std::iter::once(*y).chain(x.iter().copied())).collect();
        self.sum(&all, &|device, all| {
            let mut rest = all;
            let split = lists.iter().map(|(x, _)| {
                let (now, later) = rest.split_at(1 + x.len());
                rest = later;
                (&now[1..], now[0])
            });
            device.dots_with_each(&split.collect::<Vec<_>>())
        })
    }

    fn grams(&self, x: &[&BlockVector], y: &[&BlockVector]) -> Result<Vec<C64>> {
        if x.is_empty() || y.is_empty() {
            return Ok(Vec::new());
        }
        let all: Vec<&BlockVector> = x.iter().chain(y).copied().collect();
        self.sum(&all, &|device, all| device.grams(&all[..x.len()], &all[x.len()..]))
    }

    fn mix(&self, x: &[&BlockVector], c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        self.change(x, y, &|device, x, y| device.mix(x, c, b, y))
    }

    fn correct(&self, of: RitzCorrection, kr: &mut BlockVector, kx: &mut BlockVector) -> Result<Vec<C64>> {
        self.change_two(&of.vectors(), [kr, kx], &|device, part, [kr, kx]| {
            device.correct(of.of_part(part)?, kr, kx)
        })
    }
}
