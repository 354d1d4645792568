//! Where the sites of a strained model are.

use std::collections::HashMap;

/// Where the sites of a strained model are.
#[derive(Debug, PartialEq)]
pub(super) struct Strained {
    /// Coordinates of the sites as numbered before removals, along each axis.
    pub moved: Vec<Vec<f64>>,
    /// For each hopping, the end points of the bonds that cross a boundary, by the cell they leave.
    pub beyond: Vec<HashMap<usize, Vec<f64>>>,
    /// Volume of the whole sample; none where the map gives no position at a corner of a cell.
    pub volume: Option<f64>,
}

impl Strained {
    /// The displacement along an axis from the site `from` that a hopping leaves with `cell` to the site `to` that it
    /// reaches.
    #[inline]
    pub fn reach(
        &self,
        hop: usize,
        cell: usize,
        (from, to): (usize, usize),
        wrapped: bool,
        axis: usize,
    ) -> f64 {
        let end = self.beyond[hop].get(&cell).filter(|_| wrapped);
        end.map_or(self.moved[axis][to], |end| end[axis]) - self.moved[axis][from]
    }
}

/// The volume that vectors of so many numbers span, one after the other, by Gram and Schmidt. They are changed.
pub(super) fn content(vectors: &mut [f64], space: usize) -> f64 {
    if let [a, b, c, d] = vectors
        && space == 2
    {
        return (*a * *d - *b * *c).abs();
    }
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let mut product = 1.0;
    for k in 0..vectors.len() / space {
        let (done, rest) = vectors.split_at_mut(k * space);
        let own = &mut rest[..space];
        for before in done.chunks(space) {
            let square = dot(before, before);
            let along = if square > 0.0 { dot(before, own) / square } else { 0.0 };
            own.iter_mut().zip(before).for_each(|(x, b)| *x -= along * b);
        }
        product *= dot(own, own).sqrt();
    }
    product
}
