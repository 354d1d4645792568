//! Who holds which rows: all ranks hold all of them, or each holds a range of them, or a box of a lattice's cells. There is one
//! cut for every number of rows, made when vectors or a matrix of so many rows first appear and kept from then on, so
//! that all vectors of a length fit together.

use crate::backend::boxes::{Boxes, even, part_of};
use crate::backend::exchange::Ranges;
use crate::backend::{Grid, Rows};

/// How the rows are shared out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Every rank has all of them.
    Whole,
    /// Rank r has those from `starts[r]` to `starts[r + 1]`.
    Ranges(Vec<usize>),
    Boxes(Boxes),
}

/// The rows of all ranks, as one of them sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub rows: usize,
    pub rank: usize,
    pub ranks: usize,
    pub way: Way,
}

impl Cut {
    /// All rows on every rank.
    pub fn whole(rows: usize, (rank, ranks): (usize, usize)) -> Cut {
        Cut { rows, rank, ranks, way: Way::Whole }
    }

    /// A range of rows a rank.
    pub fn ranges(rows: usize, (rank, ranks): (usize, usize)) -> Cut {
        Cut { rows, rank, ranks, way: Way::Ranges(even(rows, ranks)) }
    }

    /// Ranges of rows whose beginnings, and the end of the last, are given.
    pub fn at(starts: Vec<usize>, (rank, ranks): (usize, usize)) -> Cut {
        Cut { rows: starts[ranks], rank, ranks, way: Way::Ranges(starts) }
    }

    /// A box of cells a rank, each with so many rows.
    pub fn boxes(cells: &[usize], each: usize, grid: &[usize], (rank, ranks): (usize, usize)) -> Cut {
        let rows = cells.iter().product::<usize>() * each;
        Cut { rows, rank, ranks, way: Way::Boxes(Boxes::new(cells, each, grid)) }
    }

    /// This rank's rows, as a backend of its own knows them: on a lattice, those of a box of it.
    pub fn held(&self, rows: &Rows) -> Rows {
        let (Some(grid), Way::Boxes(boxes)) = (rows.grid, &self.way) else { return Rows::all(self.local()) };
        let mut dims = grid.dims;
        dims.iter_mut().zip(boxes.of(self.rank)).for_each(|(n, range)| *n = range.len());
        Rows::on(Grid { dims, per_site: grid.per_site })
    }

    /// Whether every rank has all rows.
    pub fn is_whole(&self) -> bool {
        self.way == Way::Whole
    }

    /// Rows of a rank.
    pub fn rows_of(&self, rank: usize) -> usize {
        match &self.way {
            Way::Whole => self.rows,
            Way::Ranges(starts) => starts[rank + 1] - starts[rank],
            Way::Boxes(boxes) => boxes.rows_of(rank),
        }
    }

    /// Rows of this rank.
    pub fn local(&self) -> usize {
        self.rows_of(self.rank)
    }

    /// The ranges of all ranks, where each has one.
    pub fn ranges_of_all(&self) -> Option<Ranges> {
        match &self.way {
            Way::Ranges(starts) => Some(Ranges::new(starts.clone(), self.rank)),
            Way::Whole | Way::Boxes(_) => None,
        }
    }

    /// The rank that holds a row, and the row's number there; this rank, where all have it.
    pub fn holder(&self, row: usize) -> (usize, usize) {
        match &self.way {
            Way::Whole => (self.rank, row),
            Way::Ranges(starts) => {
                // Of empty ranges that begin at one row the last one is not empty.
                let rank = part_of(&starts[..self.ranks], row);
                (rank, row - starts[rank])
            }
            Way::Boxes(boxes) => boxes.holder(row),
        }
    }

    /// The rows of a rank as pieces of the whole: first row and length, in the order that the rank has them in.
    pub fn runs(&self, rank: usize) -> Vec<(usize, usize)> {
        match &self.way {
            Way::Whole => vec![(0, self.rows)],
            Way::Ranges(starts) => vec![(starts[rank], starts[rank + 1] - starts[rank])],
            Way::Boxes(boxes) => boxes.runs(rank),
        }
    }

    /// First row of this rank, if its rows stand together in the whole.
    pub fn start(&self) -> Option<usize> {
        match &self.runs(self.rank)[..] {
            [] => Some(0),
            [(start, _)] => Some(*start),
            _ => None,
        }
    }

    /// This rank's rows of numbers that it has of all of them.
    pub fn chosen<T: Copy>(&self, all: &[T], columns: usize) -> Vec<T> {
        let runs = self.runs(self.rank).into_iter();
        runs.flat_map(|(start, length)| all[start * columns..(start + length) * columns].iter().copied())
            .collect()
    }

    /// The rows of this rank, by their numbers in the whole.
    pub fn own_rows(&self) -> impl Iterator<Item = usize> {
        self.runs(self.rank).into_iter().flat_map(|(start, length)| start..start + length)
    }
}

/// Ranks in each direction of a lattice: of all ways to share it out that leave no rank without cells, the one whose boxes have
/// the least surface. `reach` is how far a product looks in each direction. None if there is no such way.
pub(crate) fn least_surface(cells: &[usize], reach: &[usize], ranks: usize) -> Option<Vec<usize>> {
    fn go(
        (cells, reach): (&[usize], &[usize]),
        left: usize,
        grid: &mut Vec<usize>,
        best: &mut Option<(f64, Vec<usize>)>,
    ) {
        let d = grid.len();
        if d == cells.len() {
            if left == 1 {
                let side = |d: usize| cells[d].div_ceil(grid[d]) as f64;
                let volume: f64 = (0..d).map(side).product();
                let face = |d: usize| if grid[d] > 1 { volume / side(d) * reach[d] as f64 } else { 0.0 };
                // Faces across the last directions are in one piece: at equal surface they are the better ones.
                let surface = (0..d).map(|d| face(d) * (1.0 - 1e-6 * d as f64)).sum();
                if best.as_ref().is_none_or(|(least, _)| surface < *least) {
                    *best = Some((surface, grid.clone()));
                }
            }
            return;
        }
        for parts in (1..=left.min(cells[d])).filter(|parts| left.is_multiple_of(*parts)) {
            grid.push(parts);
            go((cells, reach), left / parts, grid, best);
            grid.pop();
        }
    }
    let mut best = None;
    go((cells, reach), ranks, &mut Vec::new(), &mut best);
    best.map(|(_, grid)| grid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::Stencil;

    fn check(cut_of: impl Fn(usize) -> Cut, ranks: usize, rows: usize) {
        let mut seen = vec![false; rows];
        for rank in 0..ranks {
            let cut = cut_of(rank);
            let own: Vec<usize> = cut.own_rows().collect();
            assert_eq!(own.len(), cut.local());
            for (local, &row) in own.iter().enumerate() {
                assert_eq!(cut.holder(row), (rank, local));
                assert!(!std::mem::replace(&mut seen[row], true));
            }
            if let Some(start) = cut.start() {
                assert!(own.is_empty() || own[0] == start && own[own.len() - 1] + 1 == start + own.len());
            }
        }
        assert!(seen.iter().all(|s| *s));
    }

    fn stencil(cells: &[usize], orbitals: usize) -> Stencil {
        Stencil {
            dtype: crate::number::DType::F64,
            cells: cells.to_vec(),
            orbitals,
            wrap: Vec::new(),
            terms: Vec::new(),
            diagonal: None,
        }
    }

    #[test]
    fn every_row_is_held_once() {
        for (rows, ranks) in [(10, 3), (1, 4), (0, 2), (7, 7), (5, 8), (1000, 6)] {
            check(|rank| Cut::ranges(rows, (rank, ranks)), ranks, rows);
        }
        for (cells, orbitals, grid) in [
            (vec![4, 6], 2, vec![2, 3]),
            (vec![5, 3, 7], 1, vec![2, 1, 3]),
            (vec![7], 3, vec![4]),
            (vec![2, 2, 2], 1, vec![2, 2, 2]),
            (vec![3, 5], 1, vec![1, 4]),
            (vec![2, 3], 1, vec![4, 1]),
        ] {
            let s = stencil(&cells, orbitals);
            let ranks = grid.iter().product();
            check(|rank| Cut::boxes(&s.cells, s.orbitals, &grid, (rank, ranks)), ranks, s.dim());
        }
    }

    #[test]
    fn boxes_have_little_surface() {
        let least = |cells: &[usize], ranks| least_surface(cells, &vec![1; cells.len()], ranks);
        assert_eq!(least(&[64, 64, 64], 2), Some(vec![1, 1, 2]));
        assert_eq!(least(&[64, 64, 64], 27), Some(vec![3, 3, 3]));
        assert_eq!(least(&[64, 64, 64], 64), Some(vec![4, 4, 4]));
        assert_eq!(least(&[64, 64, 4], 16), Some(vec![4, 4, 1]));
        assert_eq!(least(&[6400, 6400, 40], 1024), Some(vec![32, 32, 1]));
        assert_eq!(least(&[4, 100], 3), Some(vec![1, 3]));
        assert_eq!(least(&[2, 3], 4), Some(vec![2, 2]));
        assert_eq!(least(&[2, 3], 5), None);
        assert_eq!(least(&[1, 1], 2), None);
        assert_eq!(least_surface(&[8, 8], &[1, 3], 2), Some(vec![2, 1]));
    }
}
