//! Rows shared out by weight, those of lattices in boxes.

use super::{RowCut, least_surface, share};
use crate::backend::MatrixSpec;
use crate::backend::boxes::Boxes;
use crate::ranks::weighted;

/// The lattice that rows live on: its cells, the rows of each, and how far a product looks in each direction.
pub(in crate::backend) struct RowLattice {
    pub cells: Vec<usize>,
    pub each: usize,
    pub reach: Vec<usize>,
}

impl RowLattice {
    /// The lattice of a stencil; none of other matrices.
    pub fn of(spec: Option<&MatrixSpec>) -> Option<RowLattice> {
        let Some(MatrixSpec::Stencil(stencil)) = spec else { return None };
        Some(RowLattice {
            cells: stencil.cells.clone(),
            each: stencil.orbitals,
            reach: share::reach(stencil),
        })
    }

    /// Boxes by weight: those of least surface if all parts weigh the same, else slabs across one direction.
    pub fn cut(&self, weights: &[f64]) -> RowCut {
        let alike = weights.iter().all(|w| *w == weights[0]);
        let grid = if alike { least_surface(&self.cells, &self.reach, weights.len()) } else { None };
        let boxes = match grid {
            Some(grid) => Boxes::new(&self.cells, self.each, &grid),
            None => self.slabs(weights),
        };
        RowCut::of_boxes(self.cells.iter().product::<usize>() * self.each, boxes, (0, weights.len()))
    }

    /// Slabs across the direction where least is lost: cells of a face, and those that a part has beyond its share
    /// since planes stay whole. The last direction of the best ones has the faces that are in one piece.
    fn slabs(&self, weights: &[f64]) -> Boxes {
        let (all, total) = (self.cells.iter().product::<usize>() as f64, weights.iter().sum::<f64>());
        let loss = |d: usize| {
            let plane = all / self.cells[d].max(1) as f64;
            let starts = weighted(self.cells[d], weights);
            let beyond = |(part, weight): (usize, &f64)| {
                (starts[part + 1] - starts[part]) as f64 * plane - all * weight / total
            };
            plane * self.reach[d] as f64 + weights.iter().enumerate().map(beyond).fold(0.0, f64::max)
        };
        let mut best: Option<(f64, usize)> = None;
        for d in (0..self.cells.len()).filter(|&d| self.cells[d] > 1) {
            let loss = loss(d);
            if best.is_none_or(|(least, _)| loss <= least) {
                best = Some((loss, d));
            }
        }
        let direction = best.map_or(0, |(_, d)| d);
        let starts = self.cells.iter().enumerate();
        let starts = starts.map(|(d, &n)| if d == direction { weighted(n, weights) } else { vec![0, n] });
        Boxes::at(&self.cells, self.each, starts.collect())
    }
}

/// Rows by weight, on a lattice in boxes.
pub(in crate::backend) fn by_weight(rows: usize, weights: &[f64], lattice: Option<&RowLattice>) -> RowCut {
    match lattice {
        Some(lattice) if !lattice.cells.is_empty() => lattice.cut(weights),
        _ => RowCut::at(weighted(rows, weights), (0, weights.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(rows: usize, weights: &[f64]) -> Vec<Vec<(usize, usize)>> {
        let cut = by_weight(rows, weights, None);
        (0..weights.len()).map(|part| cut.runs(part)).collect()
    }

    fn boxes(cells: &[usize], reach: &[usize], weights: &[f64]) -> RowCut {
        RowLattice { cells: cells.to_vec(), each: 2, reach: reach.to_vec() }.cut(weights)
    }

    #[test]
    fn rows_follow_weights() {
        assert_eq!(ranges(1000, &[1.0, 3.0]), [[(0, 250)], [(250, 750)]]);
        assert_eq!(ranges(10, &[1.0, 0.0, 1.0]), [[(0, 5)], [(5, 0)], [(5, 5)]]);
        assert_eq!(ranges(1, &[1.0, 3.0]), [[(0, 0)], [(0, 1)]]);
        assert_eq!(ranges(0, &[1.0, 3.0]), [[(0, 0)], [(0, 0)]]);
        let one = RowCut::one(1, 7, (0, 3));
        assert_eq!((one.holders(), one.rows_of(1)), (vec![1], 7));
    }

    #[test]
    fn lattices_are_cut_where_faces_are_small() {
        // Across the first direction: a face has 4 x 5 cells of 2 rows, in runs of a part's cells along it.
        let cut = boxes(&[20, 4, 5], &[1, 1, 1], &[1.0, 1.0]);
        assert_eq!((cut.rows_of(0), cut.rows_of(1)), (400, 400));
        assert_eq!(cut.runs(1)[..2], [(20, 20), (60, 20)]);
        // By weight, too, and where a product looks farther along it, across another.
        let cut = boxes(&[20, 4, 5], &[1, 1, 1], &[1.0, 3.0]);
        assert_eq!((cut.rows_of(0), cut.runs(0).len()), (200, 20));
        let cut = boxes(&[20, 4, 5], &[9, 1, 1], &[1.0, 4.0]);
        assert_eq!((cut.rows_of(0), cut.runs(0).len()), (160, 1));
        // Of two directions that are alike the last one; planes stay whole,
        // unless a part would have much more than its share.
        assert_eq!(boxes(&[4, 8, 8], &[1, 1, 1], &[1.0, 3.0]).runs(0), [(0, 128)]);
        assert_eq!(boxes(&[40, 2, 45], &[1, 1, 1], &[1.0, 19.0]).rows_of(0), 360);
        for cut in
            [boxes(&[5, 3, 7], &[1, 1, 1], &[1.0, 2.0, 4.0]), boxes(&[7, 1], &[1, 1], &[3.0, 0.0, 2.0])]
        {
            let mut seen = vec![0; cut.rows];
            for part in 0..cut.parts {
                for (local, row) in cut.of(part).own_rows().enumerate() {
                    assert_eq!(cut.holder(row), (part, local));
                    seen[row] += 1;
                }
            }
            assert!(seen.iter().all(|n| *n == 1));
        }
    }
}
