//! The rows of a sample in slices, each of which is joined only to its neighbours, and elimination from slice
//! to slice.

use std::borrow::Cow;
use std::ops::SubAssign;

use faer::reborrow::*;
use faer::{Mat, MatMut};

use super::dense::{inverse, largest};
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

    /// These slices and so many rows more behind the rows of each lead, numbered from `first` on,
    /// and all rows of each lead.
    pub fn with(&self, leads: &[(&[usize], usize)], first: usize) -> (Cow<'_, Slices>, Vec<Vec<usize>>) {
        let mut slices = Cow::Borrowed(self);
        let mut next = first;
        let mut all = Vec::with_capacity(leads.len());
        for &(rows, extra) in leads {
            let mut mine = rows.to_vec();
            // The rows of a lead lie in one slice or in two neighbours.
            let slice = rows.iter().filter_map(|&row| Some(self.place(row)?.0)).min().unwrap_or(0);
            for row in next..next + extra {
                let slices = slices.to_mut();
                slices.place.resize(row, None);
                slices.place.push(Some((slice, slices.rows[slice].len())));
                slices.rows[slice].push(row);
                mine.push(row);
            }
            next += extra;
            all.push(mine);
        }
        (slices, all)
    }

    /// The slice of a row, and its number there; none of a row that no lead reaches.
    pub fn place(&self, row: usize) -> Option<(usize, usize)> {
        self.place[row]
    }

    /// Complex numbers that an elimination with so many right-hand sides keeps.
    fn numbers(&self, columns: usize) -> u128 {
        self.rows.iter().map(|rows| (rows.len() * (rows.len() + 2 * columns)) as u128).sum()
    }
}

/// An element of a block between two slices, or of the right-hand sides of one.
pub type Triplet = (usize, usize, C64);

/// `E - H - sigma` as sparse blocks of neighbouring slices.
pub struct SliceBlocks<'a> {
    slices: &'a Slices,
    own: Vec<Vec<Triplet>>,
    /// Rows in slice k + 1, columns in slice k.
    down: Vec<Vec<Triplet>>,
    /// Rows in slice k, columns in slice k + 1.
    up: Vec<Vec<Triplet>>,
}

impl<'a> SliceBlocks<'a> {
    /// The blocks of `E - H`; self-energies are added later.
    pub fn new(slices: &'a Slices, h: &Csr, energy: f64) -> SliceBlocks<'a> {
        let n = slices.rows.len();
        let mut blocks = SliceBlocks {
            slices,
            own: vec![Vec::new(); n],
            down: vec![Vec::new(); n],
            up: vec![Vec::new(); n],
        };
        for (at, rows) in slices.rows.iter().enumerate() {
            // Rows of leads are not those of the matrix.
            for (i, &row) in rows.iter().enumerate().filter(|(_, row)| **row < h.rows) {
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

    /// The solution of `(E - H - sigma) x = b`, slice by slice, and whether a level at this energy that no lead reaches
    /// leaves it open: what the leads see of it is right all the same. Of b there are the elements of each slice.
    ///
    /// # Errors
    /// No memory, interruption.
    pub fn solve(&self, b: &[Vec<Triplet>], columns: usize, task: &Task) -> Result<(Vec<Mat<C64>>, bool)> {
        memory::ensure(16 * self.slices.numbers(columns), "the Green's functions of a sample's slices")?;
        if let Some(x) = self.eliminated(b, columns, task)? {
            return Ok((x, false));
        }
        let (x, resolved) = self.turned(b, columns, 0.0, task)?;
        if resolved {
            return Ok((x, false));
        }
        // A level that is narrower than rounding: beside it, leads see what they see without it.
        let (x, _) = self.turned(b, columns, BESIDE * self.scale(), task)?;
        Ok((x, true))
    }

    /// The solution by Green's functions of growing parts of the sample. None where a part has a level so near to the
    /// energy that digits are lost: the end of a topological chain has one, though the leads reach the whole.
    fn eliminated(&self, b: &[Vec<Triplet>], columns: usize, task: &Task) -> Result<Option<Vec<Mat<C64>>>> {
        let slices = &self.slices.rows;
        let progress = task.start("slices", slices.len());
        let most = MOST_GREEN / self.scale();
        let mut inverses: Vec<Mat<C64>> = Vec::with_capacity(slices.len());
        // Right-hand sides, without the columns at the end that begin in later slices.
        let mut begun: Vec<Mat<C64>> = Vec::with_capacity(slices.len());
        for (k, rows) in slices.iter().enumerate() {
            let mut a = Mat::<C64>::zeros(rows.len(), rows.len());
            add(&self.own[k], a.as_mut());
            let last = begun.last().map_or(0, Mat::ncols);
            let width = b[k].iter().map(|(_, column, _)| column + 1).max().unwrap_or(0).max(last);
            let mut right = Mat::<C64>::zeros(rows.len(), width);
            add(&b[k], right.as_mut());
            if k > 0 {
                let before = &inverses[k - 1];
                let reached = times(&self.down[k - 1], before, rows.len());
                // reached * up, whose entries are few
                for &(i, j, value) in &self.up[k - 1] {
                    for r in 0..rows.len() {
                        a[(r, j)] -= reached[(r, i)] * value;
                    }
                }
                let moved = &reached * &begun[k - 1];
                right.subcols_mut(0, last).sub_assign(&moved);
            }
            begun.push(right);
            match inverse(a.as_ref()).filter(|g| largest(g.as_ref()) <= most) {
                Some(g) => inverses.push(g),
                None => return Ok(None),
            }
            progress.advance(k + 1)?;
        }
        let mut x: Vec<Mat<C64>> = Vec::with_capacity(slices.len());
        for (k, (g, right)) in inverses.iter().zip(begun).enumerate().rev() {
            let width = right.ncols();
            let whole = match x.last() {
                Some(after) => {
                    let mut back = times(&self.up[k], after, slices[k].len());
                    back.subcols_mut(0, width).sub_assign(&right);
                    faer::Scale(-C64::ONE) * (g * back)
                }
                None if width == columns => g * right,
                None => {
                    let mut whole = Mat::zeros(slices[k].len(), columns);
                    whole.subcols_mut(0, width).copy_from(g * right);
                    whole
                }
            };
            x.push(whole);
        }
        x.reverse();
        Ok(Some(x))
    }

    /// The largest element that joins slices, if any does: high walls on sites lose no digits.
    fn scale(&self) -> f64 {
        let joined = largest_of(self.down.iter().chain(&self.up));
        if joined > 0.0 { joined } else { largest_of(&self.own) }
    }

    /// The same by rotations of the rows of neighbouring slices into each other (QR), which lose no digits but take
    /// some five times as long; at an energy that is higher by `above`.
    /// And whether no level is too near to be resolved.
    fn turned(
        &self,
        b: &[Vec<Triplet>],
        columns: usize,
        above: f64,
        task: &Task,
    ) -> Result<(Vec<Mat<C64>>, bool)> {
        let own_of = |k: usize, mut to: MatMut<'_, C64>| {
            add(&self.own[k], to.rb_mut());
            (0..to.nrows()).for_each(|i| to[(i, i)] += above);
        };
        let size = |k: usize| self.slices.rows.get(k).map_or(0, Vec::len);
        let n = self.slices.rows.len();
        let numbers: usize = (0..n).map(|k| size(k) * (size(k) + size(k + 1) + size(k + 2) + columns)).sum();
        memory::ensure(16 * numbers as u128, "the rows of a sample's slices")?;
        let progress = task.start("slices, with rotations", n);
        let whole = |(k, own): (usize, &Vec<Triplet>)| {
            let mut right = Mat::<C64>::zeros(size(k), columns);
            add(own, right.as_mut());
            right
        };
        let mut b: Vec<Mat<C64>> = b.iter().enumerate().map(whole).collect();
        // Rows that are still to be rotated, in the columns of two slices.
        let mut rest = Mat::<C64>::zeros(size(0), size(0) + size(1));
        if n > 0 {
            own_of(0, rest.as_mut().subcols_mut(0, size(0)));
        }
        if n > 1 {
            add(&self.up[0], rest.as_mut().subcols_mut(size(0), size(1)));
        }
        let mut done: Vec<Mat<C64>> = Vec::with_capacity(n);
        for k in 0..n {
            let (own, next, after) = (size(k), size(k + 1), size(k + 2));
            let mut rows = Mat::<C64>::zeros(own + next, own + next + after);
            rows.as_mut().submatrix_mut(0, 0, own, own + next).copy_from(&rest);
            let mut right = Mat::<C64>::zeros(own + next, columns);
            right.as_mut().subrows_mut(0, own).copy_from(&b[k]);
            if next > 0 {
                right.as_mut().subrows_mut(own, next).copy_from(&b[k + 1]);
                let mut below = rows.as_mut().subrows_mut(own, next);
                add(&self.down[k], below.rb_mut().subcols_mut(0, own));
                own_of(k + 1, below.rb_mut().subcols_mut(own, next));
                add(&self.up[k + 1], below.subcols_mut(own + next, after));
            }
            let q = rows.subcols(0, own).qr().compute_Q();
            rows = q.adjoint() * &rows;
            right = q.adjoint() * &right;
            b[k] = right.subrows(0, own).to_owned();
            if next > 0 {
                b[k + 1] = right.subrows(own, next).to_owned();
            }
            rest = rows.submatrix(own, own, next, next + after).to_owned();
            done.push(rows.subrows(0, own).to_owned());
            progress.advance(k + 1)?;
        }
        let scale = self.scale();
        let least = (f64::EPSILON * scale).max(f64::MIN_POSITIVE);
        let mut resolved = true;
        for k in (0..n).rev() {
            let (own, next, after) = (size(k), size(k + 1), size(k + 2));
            for (ahead, first, width) in [(k + 1, own, next), (k + 2, own + next, after)] {
                if width > 0 {
                    let seen = done[k].subcols(first, width) * &b[ahead];
                    b[k] -= seen;
                }
            }
            // Rotated rows are triangular in their own slice.
            let mut r = Mat::from_fn(own, own, |i, j| if i <= j { done[k][(i, j)] } else { C64::ZERO });
            for i in 0..own {
                if r[(i, i)].norm() < least {
                    r[(i, i)] = C64::new(least, 0.0);
                }
            }
            let g = inverse(r.as_ref())
                .ok_or_else(|| Error::numeric("a level of the sample at this energy is not resolved"))?;
            resolved &= largest(g.as_ref()) * scale <= NARROW;
            b[k] = &g * &b[k];
        }
        Ok((b, resolved))
    }
}

/// The largest modulus of some blocks' elements.
fn largest_of<'a>(blocks: impl IntoIterator<Item = &'a Vec<Triplet>>) -> f64 {
    blocks.into_iter().flatten().fold(0.0, |most, (_, _, value)| value.norm().max(most))
}

/// The largest Green's function, times the largest element between slices, with which a part of the sample is
/// eliminated: what it loses goes with its square.
const MOST_GREEN: f64 = 1e3;

/// The same, beyond which rounding decides what a level does.
const NARROW: f64 = 1e13;

/// How far beside such a level leads are asked, in units of that element.
const BESIDE: f64 = 1e-10;

/// Adds the entries of a block.
fn add(entries: &[Triplet], mut to: MatMut<'_, C64>) {
    for &(i, j, value) in entries {
        to[(i, j)] += value;
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
