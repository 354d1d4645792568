//! Lists of single columns, without copying them side by side. Products `X^H y`: each is a scalar product, and those of
//! a tile share their loads. Sums `X C`: a strip of the `x` is read from memory once for all sums. 2 flops a row and
//! pair, 8 where columns are complex.

use std::ops::Range;

use super::pack::{Pack, PackedWork, dispatch};
use super::{Isa, Threads, single};
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::number::C64;

/// Reals of each column that all pairs take before the next come: those of a tile stay in the nearest cache.
const STRIP: usize = 256;

/// Reals of the widest pack there is.
const WIDE: usize = 16;

/// Runs of reals multiplied in one go, so that strips and sums stay in the nearest caches.
const GROUP: usize = 64;

/// `<x_k|y>` of columns that [`single::serve`] takes.
pub(super) fn dots((threads, isa): (&Threads, Isa), x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
    // A few sums alone would wait for each addition.
    if x.len() < 4 {
        return single::dots(threads, x, y);
    }
    let parts = if y.dtype().is_complex() { 2 } else { 1 };
    let reals = single::ranges(threads, y.rows().local * parts);
    let rows: Vec<Range<usize>> = reals.iter().map(|r| r.start / parts..r.end / parts).collect();
    let (complex, xs, y) = (parts == 2, columns(x)?, single::column(y)?);
    let sums = threads.map(&rows, |range| {
        let mut out = Vec::with_capacity(xs.len());
        for x in xs.chunks(GROUP / parts) {
            if threads.stopped() {
                return out;
            }
            out.extend(dispatch(isa, width(isa), ListDots { x, y, complex, range: range.clone() }));
        }
        out
    })?;
    let mut total = vec![C64::default(); xs.len()];
    for part in sums {
        total.iter_mut().zip(part).for_each(|(t, z)| *t += z);
    }
    Ok(total)
}

/// Reals that a pack of this instruction set has.
pub(super) fn width(isa: Isa) -> usize {
    if isa == Isa::Avx512 { 8 } else { 4 }
}

/// `y_j = sum_k c_kj x_k + b y_j` of such columns, `c` row-major. With `b = 0`, the `y` are not read.
pub(super) fn sums(
    (threads, isa): (&Threads, Isa),
    x: &[&BlockVector],
    c: &[C64],
    b: f64,
    y: &mut [BlockVector],
) -> Result<()> {
    let Some(first) = y.first() else { return Ok(()) };
    let complex = first.dtype().is_complex();
    if !complex && c.iter().any(|z| z.im != 0.0) {
        return Err(Error::internal("a complex factor on real vectors"));
    }
    let xs = columns(x)?;
    let ranges = single::ranges(threads, first.rows().local * if complex { 2 } else { 1 });
    let mut parts: Vec<Vec<&mut [f64]>> = ranges.iter().map(|_| Vec::with_capacity(y.len())).collect();
    for y in y {
        let mut rest = single::column_mut(y)?;
        for (part, range) in parts.iter_mut().zip(&ranges) {
            let (mine, others) = rest.split_at_mut(range.len());
            part.push(mine);
            rest = others;
        }
    }
    let each: Vec<Range<usize>> = (0..parts.len()).map(|i| i..i + 1).collect();
    threads.run(&each, 1, &mut parts, |at, part| {
        let from = ranges[at.start].start;
        part.iter_mut().for_each(|y| dispatch(isa, width(isa), ListSums { x: &xs, c, b, from, y }));
    })?;
    Ok(())
}

/// Sums of columns over the reals from `from` on.
struct ListSums<'a, 'b> {
    x: &'a [&'a [f64]],
    c: &'a [C64],
    b: f64,
    from: usize,
    y: &'a mut [&'b mut [f64]],
}

impl PackedWork<f64> for ListSums<'_, '_> {
    type Output = ();
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<f64>, Q: Pack<f64>>(self) {
        let (length, n) = (self.y[0].len(), self.y.len());
        let mut at = 0;
        while at < length {
            let end = (at + STRIP).min(length);
            for (j, y) in self.y.iter_mut().enumerate() {
                let y = &mut y[at..end];
                if self.b == 0.0 {
                    y.fill(0.0);
                } else if self.b != 1.0 {
                    y.iter_mut().for_each(|y| *y *= self.b);
                }
                let strip = |i: usize| (&self.x[i][self.from + at..self.from + end], self.c[i * n + j]);
                let mut i = 0;
                while i + 4 <= self.x.len() {
                    add::<P, 4>([strip(i), strip(i + 1), strip(i + 2), strip(i + 3)], y);
                    i += 4;
                }
                while i < self.x.len() {
                    add::<P, 1>([strip(i)], y);
                    i += 1;
                }
            }
            at = end;
        }
    }
}

/// `y += sum c x`, of pairs where a factor is complex.
#[inline(always)]
pub(super) fn add<P: Pack<f64>, const N: usize>(x: [(&[f64], C64); N], y: &mut [f64]) {
    let whole = y.len() / P::WIDTH * P::WIDTH;
    let mut turns = false;
    let mut real = [P::splat(0.0); N];
    let mut turned = [P::splat(0.0); N];
    for k in 0..N {
        let c = x[k].1;
        turns |= c.im != 0.0;
        real[k] = P::splat(c.re);
        let mut signs = [c.im; WIDE];
        signs.iter_mut().step_by(2).for_each(|s| *s = -c.im);
        // SAFETY: no pack here is wider.
        turned[k] = unsafe { P::load(signs.as_ptr()) };
    }
    let mut at = 0;
    // No closures: what the compiler does not inline here has not the instructions that it needs.
    while at < whole {
        // SAFETY: `y` and all `x` have `whole` numbers; so below.
        let mut sum = unsafe { P::load(y.as_ptr().add(at)) };
        for k in 0..N {
            // SAFETY: as above.
            let x = unsafe { P::load(x[k].0.as_ptr().add(at)) };
            sum = x.mla(real[k], sum);
            if turns {
                sum = x.swap().mla(turned[k], sum);
            }
        }
        // SAFETY: as above.
        unsafe { sum.store(y.as_mut_ptr().add(at)) };
        at += P::WIDTH;
    }
    for (x, c) in x {
        if c.im == 0.0 {
            y[whole..].iter_mut().zip(&x[whole..]).for_each(|(y, x)| *y += c.re * x);
            continue;
        }
        let (x, y) = (x[whole..].as_chunks::<2>().0, y[whole..].as_chunks_mut::<2>().0);
        for (y, x) in y.iter_mut().zip(x) {
            y[0] += c.re * x[0] - c.im * x[1];
            y[1] += c.re * x[1] + c.im * x[0];
        }
    }
}

pub(super) fn columns<'a>(list: &[&'a BlockVector]) -> Result<Vec<&'a [f64]>> {
    list.iter().map(|v| single::column(v)).collect()
}

/// Some columns and the one that they are multiplied with, over some rows. Complex columns are pairs of reals.
struct ListDots<'a> {
    x: &'a [&'a [f64]],
    y: &'a [f64],
    complex: bool,
    range: Range<usize>,
}

impl PackedWork<f64> for ListDots<'_> {
    type Output = Vec<C64>;
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<f64>, Q: Pack<f64>>(self) -> Vec<C64> {
        let parts = if self.complex { 2 } else { 1 };
        let m = self.x.len();
        let mut sums = StripSums::<P>::new(m * parts, parts);
        let (mut apart_x, mut apart_y) = (Vec::new(), Vec::new());
        let mut at = self.range.start;
        while at < self.range.end {
            let end = (at + STRIP).min(self.range.end);
            let (x, y): (Vec<&[f64]>, Vec<&[f64]>) = match self.complex {
                false => (strips(self.x, at..end), vec![&self.y[at..end]]),
                true => {
                    (take_apart(self.x, at..end, &mut apart_x), take_apart(&[self.y], at..end, &mut apart_y))
                }
            };
            sums.add(&x, &y);
            at = end;
        }
        let sums = sums.finish();
        if !self.complex {
            return sums.into_iter().map(|z| C64::new(z, 0.0)).collect();
        }
        let (real, imaginary) = (sums[..2 * m].as_chunks::<2>().0, sums[2 * m..].as_chunks::<2>().0);
        real.iter().zip(imaginary).map(|(re, im)| C64::new(re[0] + im[1], re[1] - im[0])).collect()
    }
}

/// Products of all pairs of two lists of strips, summed over the strips.
pub(super) struct StripSums<P> {
    packs: Vec<P>,
    rest: Vec<f64>,
}

impl<P: Pack<f64>> StripSums<P> {
    /// Of so many columns with so many others.
    #[inline(always)]
    pub fn new(m: usize, n: usize) -> StripSums<P> {
        StripSums { packs: vec![P::splat(0.0); m * n], rest: vec![0.0; m * n] }
    }

    /// Adds those of a strip.
    #[inline(always)]
    pub fn add(&mut self, x: &[&[f64]], y: &[&[f64]]) {
        products(x, y, &mut self.packs, &mut self.rest);
    }

    /// The sums, row-major.
    #[inline(always)]
    pub fn finish(self) -> Vec<f64> {
        let mut lanes = vec![0.0; P::WIDTH];
        let mut sums = self.rest;
        for (sum, pack) in sums.iter_mut().zip(self.packs) {
            lanes.fill(0.0);
            pack.add_to(&mut lanes);
            *sum += lanes.iter().sum::<f64>();
        }
        sums
    }
}

fn strips<'a>(columns: &[&'a [f64]], rows: Range<usize>) -> Vec<&'a [f64]> {
    columns.iter().map(|column| &column[rows.clone()]).collect()
}

/// The real parts of all columns, then the imaginary ones.
#[inline(always)]
fn take_apart<'a>(columns: &[&[f64]], rows: Range<usize>, to: &'a mut Vec<f64>) -> Vec<&'a [f64]> {
    let (length, n) = (rows.len(), columns.len());
    to.resize(2 * n * length, 0.0);
    let (re, im) = to.split_at_mut(n * length);
    for (column, (re, im)) in columns.iter().zip(re.chunks_mut(length).zip(im.chunks_mut(length))) {
        let pairs = column[2 * rows.start..2 * rows.end].as_chunks::<2>().0;
        for (pair, (re, im)) in pairs.iter().zip(re.iter_mut().zip(im)) {
            (*re, *im) = (pair[0], pair[1]);
        }
    }
    to.chunks(length).collect()
}

/// Adds the products of all pairs: whole packs to `packs`, the rest to `sums`.
#[inline(always)]
fn products<P: Pack<f64>>(x: &[&[f64]], y: &[&[f64]], packs: &mut [P], sums: &mut [f64]) {
    let length = x[0].len();
    let whole = length / P::WIDTH * P::WIDTH;
    let mut i = 0;
    // Sums of a tile take sixteen registers of 32, or eight of 16.
    if P::WIDTH == 8 {
        while i + 8 <= x.len() {
            row_of_tiles::<P, 8>(&x[i..], y, i, whole, packs);
            i += 8;
        }
    }
    while i + 4 <= x.len() {
        row_of_tiles::<P, 4>(&x[i..], y, i, whole, packs);
        i += 4;
    }
    while i < x.len() {
        row_of_tiles::<P, 1>(&x[i..], y, i, whole, packs);
        i += 1;
    }
    if whole < length {
        for (x, sums) in x.iter().zip(sums.chunks_mut(y.len())) {
            for (y, sum) in y.iter().zip(sums) {
                *sum += x[whole..].iter().zip(&y[whole..]).map(|(x, y)| x * y).sum::<f64>();
            }
        }
    }
}

/// The products of `N` runs, from number `first` on, with all of `y`.
#[inline(always)]
fn row_of_tiles<P: Pack<f64>, const N: usize>(
    x: &[&[f64]],
    y: &[&[f64]],
    first: usize,
    whole: usize,
    packs: &mut [P],
) {
    let high = y.len();
    let x: [&[f64]; N] = std::array::from_fn(|k| &x[k][..whole]);
    let mut j = 0;
    while j + 2 <= high {
        tile::<P, N, 2>(&x, [&y[j][..whole], &y[j + 1][..whole]], (first, j), high, packs);
        j += 2;
    }
    if j < high {
        tile::<P, N, 1>(&x, [&y[j][..whole]], (first, j), high, packs);
    }
}

#[inline(always)]
fn tile<P: Pack<f64>, const N: usize, const M: usize>(
    x: &[&[f64]; N],
    y: [&[f64]; M],
    (i, j): (usize, usize),
    high: usize,
    packs: &mut [P],
) {
    let mut sums = [[P::splat(0.0); M]; N];
    for (k, line) in sums.iter_mut().enumerate() {
        line.copy_from_slice(&packs[(i + k) * high + j..][..M]);
    }
    let whole = y[0].len();
    let mut at = 0;
    // No closures: what the compiler does not inline here has not the instructions that it needs.
    while at + P::WIDTH <= whole {
        let mut there = [P::splat(0.0); M];
        for l in 0..M {
            // SAFETY: all runs have `whole` numbers; so below.
            there[l] = unsafe { P::load(y[l].as_ptr().add(at)) };
        }
        for k in 0..N {
            // SAFETY: as above.
            let x = unsafe { P::load(x[k].as_ptr().add(at)) };
            for l in 0..M {
                sums[k][l] = x.mla(there[l], sums[k][l]);
            }
        }
        at += P::WIDTH;
    }
    for (k, line) in sums.iter().enumerate() {
        packs[(i + k) * high + j..][..M].copy_from_slice(line);
    }
}
