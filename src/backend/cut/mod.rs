//! Which part holds which rows; parts are the ranks of a run or the devices of one process. Either all parts hold all
//! rows, or each holds a range of rows or a box of a lattice's cells. There is one cut for every number of rows. It is
//! made when vectors or a matrix with this number of rows first appear, and then kept, so all vectors of one length fit
//! together.

pub(super) mod lattice;
pub(super) mod share;
pub(super) mod speed;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::backend::boxes::{Boxes, even, part_of};
use crate::backend::exchange::Ranges;
use crate::backend::{Grid, Rows};
use crate::error::{Error, Result};

/// How the rows are shared out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RowDivision {
    /// Every part has all of them.
    Whole,
    /// Part r has those from `starts[r]` to `starts[r + 1]`.
    Ranges(Vec<usize>),
    Boxes(Boxes),
}

/// The rows of all parts, as one of them sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowCut {
    pub rows: usize,
    pub part: usize,
    pub parts: usize,
    pub way: RowDivision,
}

impl RowCut {
    /// All rows in every part.
    pub fn whole(rows: usize, (part, parts): (usize, usize)) -> RowCut {
        RowCut { rows, part, parts, way: RowDivision::Whole }
    }

    /// A range of rows a part.
    pub fn ranges(rows: usize, (part, parts): (usize, usize)) -> RowCut {
        RowCut { rows, part, parts, way: RowDivision::Ranges(even(rows, parts)) }
    }

    /// Ranges of rows whose beginnings, and the end of the last, are given.
    pub fn at(starts: Vec<usize>, (part, parts): (usize, usize)) -> RowCut {
        RowCut { rows: starts[parts], part, parts, way: RowDivision::Ranges(starts) }
    }

    /// All rows in one part.
    pub fn one(holder: usize, rows: usize, (part, parts): (usize, usize)) -> RowCut {
        RowCut::at((0..=parts).map(|p| if p > holder { rows } else { 0 }).collect(), (part, parts))
    }

    /// A box of cells a part, each with so many rows.
    pub fn boxes(cells: &[usize], each: usize, grid: &[usize], (part, parts): (usize, usize)) -> RowCut {
        let rows = cells.iter().product::<usize>() * each;
        RowCut::of_boxes(rows, Boxes::new(cells, each, grid), (part, parts))
    }

    /// Boxes of cells that are given.
    pub fn of_boxes(rows: usize, boxes: Boxes, (part, parts): (usize, usize)) -> RowCut {
        RowCut { rows, part, parts, way: RowDivision::Boxes(boxes) }
    }

    /// The same cut as another part sees it.
    pub fn of(&self, part: usize) -> RowCut {
        RowCut { part, ..self.clone() }
    }

    /// The parts that have rows; the first one, where there are none at all.
    pub fn holders(&self) -> Vec<usize> {
        let holders: Vec<usize> = (0..self.parts).filter(|&part| self.rows_of(part) > 0).collect();
        if holders.is_empty() { vec![0] } else { holders }
    }

    /// The only part that has rows, if there is one such.
    pub fn lone(&self) -> Option<usize> {
        if self.is_whole() {
            return None;
        }
        match self.holders()[..] {
            [part] => Some(part),
            _ => None,
        }
    }

    /// Writes rows of a part to where they are in the whole.
    pub fn put_back<T: Copy>(&self, part: usize, own: &[T], columns: usize, all: &mut [T]) {
        let mut own = own;
        for (start, length) in self.runs(part) {
            let (run, rest) = own.split_at(length * columns);
            all[start * columns..][..run.len()].copy_from_slice(run);
            own = rest;
        }
    }

    /// This part's rows, as a backend of its own knows them: on a lattice, those of a box of it.
    pub fn held(&self, rows: &Rows) -> Rows {
        if self.local() == rows.local {
            return *rows;
        }
        let (Some(grid), RowDivision::Boxes(boxes)) = (rows.grid, &self.way) else {
            return Rows::all(self.local());
        };
        let mut dims = grid.dims;
        dims.iter_mut().zip(boxes.of(self.part)).for_each(|(n, range)| *n = range.len());
        Rows::on(Grid { dims, per_site: grid.per_site })
    }

    /// Whether every part has all rows.
    pub fn is_whole(&self) -> bool {
        self.way == RowDivision::Whole
    }

    /// How many rows a part has.
    pub fn rows_of(&self, part: usize) -> usize {
        match &self.way {
            RowDivision::Whole => self.rows,
            RowDivision::Ranges(starts) => starts[part + 1] - starts[part],
            RowDivision::Boxes(boxes) => boxes.rows_of(part),
        }
    }

    /// Rows of this part.
    pub fn local(&self) -> usize {
        self.rows_of(self.part)
    }

    /// The ranges of all parts, where each has one.
    pub fn ranges_of_all(&self) -> Option<Ranges> {
        match &self.way {
            RowDivision::Ranges(starts) => Some(Ranges::new(starts.clone(), self.part)),
            RowDivision::Whole | RowDivision::Boxes(_) => None,
        }
    }

    /// The part that holds a row, and the row's number there; this part, where all have it.
    pub fn holder(&self, row: usize) -> (usize, usize) {
        match &self.way {
            RowDivision::Whole => (self.part, row),
            RowDivision::Ranges(starts) => {
                // Of empty ranges that begin at one row the last one is not empty.
                let part = part_of(&starts[..self.parts], row);
                (part, row - starts[part])
            }
            RowDivision::Boxes(boxes) => boxes.holder(row),
        }
    }

    /// The rows of a part as pieces of the whole: first row and length, in the order that the part has them in. Those
    /// of a box are of one length.
    pub fn runs(&self, part: usize) -> Vec<(usize, usize)> {
        match &self.way {
            RowDivision::Whole => vec![(0, self.rows)],
            RowDivision::Ranges(starts) => vec![(starts[part], starts[part + 1] - starts[part])],
            RowDivision::Boxes(boxes) => boxes.runs(part),
        }
    }

    /// Where the runs of a part begin, and how long each is.
    ///
    /// # Errors
    /// Runs of different lengths: those of boxes are alike.
    pub fn even_runs(&self, part: usize) -> Result<(Vec<usize>, usize)> {
        let runs = self.runs(part);
        let length = runs.first().map_or(0, |run| run.1);
        if runs.iter().any(|run| run.1 != length) {
            return Err(Error::internal("runs of rows of different lengths"));
        }
        Ok((runs.into_iter().map(|run| run.0).collect(), length))
    }

    /// First row of this part, if its rows stand together in the whole.
    pub fn start(&self) -> Option<usize> {
        match &self.runs(self.part)[..] {
            [] => Some(0),
            [(start, _)] => Some(*start),
            _ => None,
        }
    }

    /// This part's rows of numbers that it has of all of them.
    pub fn chosen<T: Copy>(&self, all: &[T], columns: usize) -> Vec<T> {
        let runs = self.runs(self.part).into_iter();
        runs.flat_map(|(start, length)| all[start * columns..(start + length) * columns].iter().copied())
            .collect()
    }

    /// The rows of this part, by their numbers in the whole.
    pub fn own_rows(&self) -> impl Iterator<Item = usize> {
        self.runs(self.part).into_iter().flat_map(|(start, length)| start..start + length)
    }
}

/// The names of the parts, joined: the few there are live as long as the program.
pub(in crate::backend) fn joined(names: &[&str]) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let name = names.join("+");
    let mut all = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match all.get(name.as_str()) {
        Some(name) => name,
        None => {
            let name: &'static str = name.leak();
            all.insert(name);
            name
        }
    }
}

/// Parts in each direction of a lattice: of all ways to share it out that leave no part without cells, the one whose
/// boxes have the least surface. `reach` is how far a product looks in each direction. None if there is no such way.
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

    fn check(cut_of: impl Fn(usize) -> RowCut, ranks: usize, rows: usize) {
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
            check(|part| RowCut::ranges(rows, (part, ranks)), ranks, rows);
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
            check(|rank| RowCut::boxes(&s.cells, s.orbitals, &grid, (rank, ranks)), ranks, s.dim());
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
