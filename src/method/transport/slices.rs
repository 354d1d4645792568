//! The rows of a sample in slices, each of which is joined only to its neighbours, and elimination from slice
//! to slice.

use faer::Mat;

use super::lead::inverse;
use crate::backend::matrix::Csr;
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::task::Task;

/// Rows by slice. Rows that no lead reaches are in none.
#[derive(Debug, Clone)]
pub struct Slices {
    pub rows: Vec<Vec<usize>>,
    /// Slice of each row and its index there.
    place: Vec<Option<(usize, usize)>>,
}

impl Slices {
    /// The slices of least work among those grown from each of the leads. The rows of a lead count as joined.
    pub fn new(h: &Csr, leads: &[&[usize]]) -> Slices {
        let work = |s: &Slices| s.rows.iter().map(|rows| (rows.len() as f64).powi(3)).sum::<f64>();
        let ways = (0..leads.len()).map(|first| Slices::from(h, leads, first));
        ways.min_by(|a, b| work(a).total_cmp(&work(b)))
            .unwrap_or(Slices { rows: Vec::new(), place: vec![None; h.rows] })
    }

    fn from(h: &Csr, leads: &[&[usize]], first: usize) -> Slices {
        let mut place = vec![None; h.rows];
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); h.rows];
        for (lead, rows) in leads.iter().enumerate() {
            rows.iter().for_each(|&row| of[row].push(lead));
        }
        let mut taken = vec![false; leads.len()];
        let mut all: Vec<Vec<usize>> = Vec::new();
        for start in std::iter::once(first).chain(0..leads.len()) {
            let mut slice: Vec<usize> = Vec::new();
            let mut add = |row: usize, slice: &mut Vec<usize>, at: usize| {
                if place[row].is_none() {
                    place[row] = Some((at, slice.len()));
                    slice.push(row);
                }
            };
            leads[start].iter().for_each(|&row| add(row, &mut slice, all.len()));
            while !slice.is_empty() {
                let mut next = Vec::new();
                for &row in &slice {
                    for entry in h.row_start[row]..h.row_start[row + 1] {
                        add(h.columns.get(entry), &mut next, all.len() + 1);
                    }
                    for &lead in &of[row] {
                        if !std::mem::replace(&mut taken[lead], true) {
                            leads[lead].iter().for_each(|&other| add(other, &mut next, all.len() + 1));
                        }
                    }
                }
                all.push(std::mem::replace(&mut slice, next));
            }
        }
        Slices { rows: all, place }
    }

    pub fn place(&self, row: usize) -> Option<(usize, usize)> {
        self.place[row]
    }

    /// Complex numbers that an elimination with so many right-hand sides keeps.
    fn numbers(&self, columns: usize) -> u128 {
        self.rows.iter().map(|rows| (rows.len() * (rows.len() + 2 * columns)) as u128).sum()
    }
}

/// An element of a block between two slices.
type Triplet = (usize, usize, C64);

/// `E - H - sigma` as sparse blocks of neighbouring slices.
pub struct Blocks<'a> {
    slices: &'a Slices,
    own: Vec<Vec<Triplet>>,
    /// Rows in slice k + 1, columns in slice k.
    down: Vec<Vec<Triplet>>,
    /// Rows in slice k, columns in slice k + 1.
    up: Vec<Vec<Triplet>>,
}

impl<'a> Blocks<'a> {
    pub fn new(slices: &'a Slices, h: &Csr, energy: f64) -> Blocks<'a> {
        let n = slices.rows.len();
        let mut blocks =
            Blocks { slices, own: vec![Vec::new(); n], down: vec![Vec::new(); n], up: vec![Vec::new(); n] };
        for (at, rows) in slices.rows.iter().enumerate() {
            for (i, &row) in rows.iter().enumerate() {
                blocks.own[at].push((i, i, C64::new(energy, 0.0)));
                for entry in h.row_start[row]..h.row_start[row + 1] {
                    blocks.subtract(row, h.columns.get(entry), h.values.get(entry));
                }
            }
        }
        blocks
    }

    /// Subtracts a value from a matrix element.
    pub fn subtract(&mut self, row: usize, column: usize, value: C64) {
        let (Some((s, i)), Some((t, j))) = (self.slices.place(row), self.slices.place(column)) else {
            return;
        };
        let block = match t as i64 - s as i64 {
            0 => &mut self.own[s],
            1 => &mut self.up[s],
            _ => &mut self.down[t],
        };
        block.push((i, j, -value));
    }

    /// The solution of `(E - H - sigma) x = b`, slice by slice.
    ///
    /// # Errors
    /// No memory, an energy at which the elimination meets a singular block, interruption.
    pub fn solve(&self, mut b: Vec<Mat<C64>>, columns: usize, task: &Task) -> Result<Vec<Mat<C64>>> {
        let slices = &self.slices.rows;
        memory::ensure(16 * self.slices.numbers(columns), "the Green's functions of a sample's slices")?;
        let progress = task.start("slices", slices.len());
        let mut inverses: Vec<Mat<C64>> = Vec::with_capacity(slices.len());
        for (k, rows) in slices.iter().enumerate() {
            let mut a = Mat::<C64>::zeros(rows.len(), rows.len());
            for &(i, j, value) in &self.own[k] {
                a[(i, j)] += value;
            }
            if k > 0 {
                let before = &inverses[k - 1];
                let reached = times(&self.down[k - 1], before, rows.len());
                // reached * up, whose entries are few
                for &(i, j, value) in &self.up[k - 1] {
                    for r in 0..rows.len() {
                        a[(r, j)] -= reached[(r, i)] * value;
                    }
                }
                let moved = &reached * &b[k - 1];
                b[k] -= moved;
            }
            let g = inverse(a.as_ref()).ok_or_else(|| {
                Error::numeric("the sample has a level at this very energy that no lead reaches yet")
                    .hint("move the energy by a little")
            })?;
            inverses.push(g);
            progress.advance(k + 1)?;
        }
        for k in (0..slices.len()).rev() {
            if k + 1 < slices.len() {
                let back = times(&self.up[k], &b[k + 1], slices[k].len());
                b[k] -= back;
            }
            b[k] = &inverses[k] * &b[k];
        }
        Ok(b)
    }
}

/// A block of few entries times a dense one.
fn times(entries: &[Triplet], x: &Mat<C64>, rows: usize) -> Mat<C64> {
    let mut out = Mat::<C64>::zeros(rows, x.ncols());
    for c in 0..x.ncols() {
        for &(i, j, value) in entries {
            out[(i, c)] += value * x[(j, c)];
        }
    }
    out
}
