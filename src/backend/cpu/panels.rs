//! Products `X^H Y` of two lists of single columns. Strips of the columns are copied into panels, pack beside pack: as
//! they lie in memory, columns whose lengths are powers of two would push each other out of the nearest cache. The
//! pairs of a panel of `x` and one of `y` are a tile of sums in registers. 2 flops a row and pair, 8 where columns are
//! complex; each column is read once, or once for every [`BESIDE`] runs of the other side.

use std::ops::Range;

use super::block::BlockReal;
use super::pack::{Pack, PackedWork, dispatch};
use super::{Isa, Threads};
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::number::C64;

/// Bytes of a strip of one run. Long enough that the last additions of a tile cost little, and short enough that sums
/// of 32-bit lanes keep their digits.
const STRIP: usize = 2048;

/// Runs of `y` whose panels stay in the second cache; whole panels.
const BESIDE: usize = 86 * ACROSS;

/// Runs of a panel of `y`, and of one of `x` where there are 32 registers: sums of a tile take 24 of them. Of 16
/// registers, half as many take twelve.
const ACROSS: usize = 3;
const ABOVE: usize = 8;

/// Whether these are single columns, alike.
pub(super) fn serve<'a>(mut vectors: impl Iterator<Item = &'a BlockVector>, like: &BlockVector) -> bool {
    // Rows on a lattice are folded, so that parts of a number are not neighbours.
    let fits = |v: &BlockVector| v.columns() == 1 && v.dtype() == like.dtype() && v.rows() == like.rows();
    like.rows().grid.is_none() && vectors.all(fits)
}

/// `<x_i|y_j>`, row-major, of columns that [`serve`] takes.
pub(super) fn products<F: BlockReal>(
    (threads, isa): (&Threads, Isa),
    x: &[&BlockVector],
    y: &[&BlockVector],
) -> Result<Vec<C64>> {
    let (Some(first), false) = (x.first(), y.is_empty()) else { return Ok(Vec::new()) };
    let (complex, rows) = (first.dtype().is_complex(), first.rows().local);
    let (xs, ys) = (columns::<F>(x)?, columns::<F>(y)?);
    let (m, n) = (xs.len(), ys.len());
    let parts = threads.map(&threads.ranges(rows, m * n), |range| {
        dispatch(isa, width::<F>(isa), RunProducts { x: &xs, y: &ys, complex, range, threads })
    })?;
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_default();
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, z)| *sum += z);
    }
    if !complex {
        return Ok(sums.into_iter().map(|z| C64::new(z, 0.0)).collect());
    }
    // Real parts come before imaginary ones.
    let at = |i: usize, j: usize| sums[i * 2 * n + j];
    let entry = |i: usize, j: usize| C64::new(at(i, j) + at(m + i, n + j), at(i, n + j) - at(m + i, j));
    Ok((0..m * n).map(|k| entry(k / n, k % n)).collect())
}

fn columns<'a, F: BlockReal>(list: &[&'a BlockVector]) -> Result<Vec<&'a [F]>> {
    let column = |v: &'a BlockVector| {
        F::lanes(super::block(v)?).ok_or_else(|| Error::internal("a column of another precision"))
    };
    list.iter().map(|v| column(v)).collect()
}

/// Reals that a register of this instruction set has, or two of the smallest.
fn width<F>(isa: Isa) -> usize {
    (if isa == Isa::Avx512 { 64 } else { 32 }) / size_of::<F>()
}

/// Products over some rows. A real column is one run of reals, a complex one is two: those of the real parts of all
/// columns come first.
struct RunProducts<'a, F> {
    x: &'a [&'a [F]],
    y: &'a [&'a [F]],
    complex: bool,
    range: Range<usize>,
    threads: &'a Threads,
}

impl<F: BlockReal> PackedWork<F> for RunProducts<'_, F> {
    /// Of all pairs of runs, row-major.
    type Output = Vec<f64>;
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<F>, Q: Pack<F>>(self) -> Vec<f64> {
        let parts = if self.complex { 2 } else { 1 };
        let (wide, high) = (parts * self.x.len(), parts * self.y.len());
        let rows = STRIP / size_of::<F>();
        let above = if P::WIDTH * size_of::<F>() == 64 { ABOVE } else { ABOVE / 2 };
        let mut sums = vec![0.0; wide * high];
        let mut left = vec![F::default(); above * rows];
        let mut right = vec![F::default(); BESIDE.min(high).next_multiple_of(ACROSS) * rows];
        let mut from = self.range.start;
        while from < self.range.end && !self.threads.stopped() {
            let strip = from..(from + rows).min(self.range.end);
            let packs = strip.len().div_ceil(P::WIDTH);
            let long = packs * P::WIDTH;
            from = strip.end;
            let mut first = 0;
            while first < high {
                let runs = first..(first + BESIDE).min(high);
                let mut j = runs.start;
                while j < runs.end {
                    let count = ACROSS.min(runs.end - j);
                    let to = &mut right[(j - runs.start) * long..][..count * long];
                    panel::<F, P>(self.y, self.complex, j..j + count, strip.clone(), to);
                    j += count;
                }
                let right = &right[..runs.len() * long];
                let mut i = 0;
                while i < wide {
                    let count = match wide - i {
                        rest if rest >= above => above,
                        rest if rest >= 4 => 4,
                        _ => 1,
                    };
                    let left = &mut left[..count * long];
                    panel::<F, P>(self.x, self.complex, i..i + count, strip.clone(), left);
                    let tiles = Tiles { left, right, packs, sums: &mut sums[i * high + runs.start..], high };
                    match count {
                        8 => tiles.all::<P, 8>(),
                        4 => tiles.all::<P, 4>(),
                        _ => tiles.all::<P, 1>(),
                    }
                    i += count;
                }
                first = runs.end;
            }
        }
        sums
    }
}

/// Copies a strip of some runs, a pack of each beside those of the others. The last ones end with zeros.
#[inline(always)]
fn panel<F: BlockReal, P: Pack<F>>(
    columns: &[&[F]],
    complex: bool,
    runs: Range<usize>,
    strip: Range<usize>,
    to: &mut [F],
) {
    let (across, length) = (runs.len(), strip.len());
    let whole = length / P::WIDTH;
    // No closures here and below: what the compiler does not inline has not the instructions that it needs.
    let mut run = runs.start;
    while run < runs.end {
        let (column, part) = (columns[run % columns.len()], run / columns.len());
        let mut place = (run - runs.start) * P::WIDTH;
        let mut at = 0;
        if !complex {
            let from = &column[strip.start..strip.end];
            while at < whole {
                let to = &mut to[place..place + P::WIDTH];
                // SAFETY: `from` has `whole` packs, `to` is as long as one.
                unsafe { P::load(from.as_ptr().add(at * P::WIDTH)).store(to.as_mut_ptr()) };
                place += across * P::WIDTH;
                at += 1;
            }
        } else {
            let from = &column[2 * strip.start..2 * strip.end];
            while at < whole {
                let (to, from) =
                    (&mut to[place..place + P::WIDTH], &from[2 * at * P::WIDTH..][..2 * P::WIDTH]);
                let mut lane = 0;
                while lane < P::WIDTH {
                    to[lane] = from[2 * lane + part];
                    lane += 1;
                }
                place += across * P::WIDTH;
                at += 1;
            }
        }
        if whole * P::WIDTH < length {
            let mut lane = 0;
            while lane < P::WIDTH {
                let row = whole * P::WIDTH + lane;
                to[place + lane] = match (row < length, complex) {
                    (false, _) => F::default(),
                    (true, false) => column[strip.start + row],
                    (true, true) => column[2 * (strip.start + row) + part],
                };
                lane += 1;
            }
        }
        run += 1;
    }
}

/// A panel of runs, and those that they are multiplied with.
struct Tiles<'a, F> {
    left: &'a [F],
    right: &'a [F],
    packs: usize,
    sums: &'a mut [f64],
    /// Numbers in a row of the sums.
    high: usize,
}

impl<F: BlockReal> Tiles<'_, F> {
    #[inline(always)]
    fn all<P: Pack<F>, const N: usize>(mut self) {
        let long = self.packs * P::WIDTH;
        let runs = self.right.len() / long;
        let mut j = 0;
        while j < runs {
            match runs - j {
                1 => self.one::<P, N, 1>(j, long),
                2 => self.one::<P, N, 2>(j, long),
                _ => self.one::<P, N, ACROSS>(j, long),
            }
            j += ACROSS;
        }
    }

    #[inline(always)]
    fn one<P: Pack<F>, const N: usize, const M: usize>(&mut self, j: usize, long: usize) {
        let (left, right) = (&self.left[..N * long], &self.right[j * long..][..M * long]);
        let (mut left, mut right) = (left.as_ptr(), right.as_ptr());
        let mut sums = [[P::splat(F::default()); M]; N];
        let mut at = 0;
        while at < self.packs {
            let mut beside = [P::splat(F::default()); M];
            for l in 0..M {
                // SAFETY: both panels have `packs` packs of each run; so below.
                beside[l] = unsafe { P::load(right.add(l * P::WIDTH)) };
            }
            for k in 0..N {
                // SAFETY: as above.
                let x = unsafe { P::load(left.add(k * P::WIDTH)) };
                for l in 0..M {
                    sums[k][l] = x.mla(beside[l], sums[k][l]);
                }
            }
            // SAFETY: at most one past the end.
            (left, right) = unsafe { (left.add(N * P::WIDTH), right.add(M * P::WIDTH)) };
            at += 1;
        }
        for k in 0..N {
            let line = &mut self.sums[k * self.high + j..][..M];
            for l in 0..M {
                let [even, odd] = sums[k][l].pair_sums();
                line[l] += even.to_f64() + odd.to_f64();
            }
        }
    }
}
