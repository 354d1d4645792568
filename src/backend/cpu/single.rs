//! Algebra of single columns and of lists of them, used by Davidson's method between two products. A column is
//! contiguous, so these loops vectorise; loops over the columns of a row cannot.

use std::ops::Range;

use super::block::BlockReal;
use super::{Threads, block, block_mut};
use crate::backend::BlockVector;
use crate::error::{Error, Result};
use crate::number::C64;

/// Sums that run side by side.
const WIDE: usize = 16;
/// Numbers that stay in the nearest cache while a list is walked.
const TILE: usize = 1024;
/// Numbers below which one thread is faster than two.
const ALONE: usize = 1 << 17;

/// The reals of a column of double precision.
pub(super) fn column(v: &BlockVector) -> Result<&[f64]> {
    f64::lanes(block(v)?).ok_or_else(|| Error::internal("a column of another precision"))
}

/// The same, to be written.
pub(super) fn column_mut(v: &mut BlockVector) -> Result<&mut [f64]> {
    f64::lanes_mut(block_mut(v)?).ok_or_else(|| Error::internal("a column of another precision"))
}

/// Whether the loops here serve these vectors: single columns in double precision, alike.
pub(super) fn serve<'a>(vectors: impl IntoIterator<Item = &'a BlockVector>, y: &BlockVector) -> bool {
    let fits = |v: &BlockVector| {
        v.columns() == 1 && v.dtype() == y.dtype() && v.rows() == y.rows() && !v.dtype().is_single()
    };
    // Rows on a lattice are folded, so that parts of a number are not neighbours.
    y.rows().grid.is_none() && fits(y) && vectors.into_iter().all(fits)
}

/// The parts of so many reals that threads take.
pub(super) fn ranges(threads: &Threads, count: usize) -> Vec<Range<usize>> {
    let parts = if count < ALONE { 1 } else { threads.count() };
    // Pairs of real and imaginary part stay together.
    (0..parts)
        .map(|i| {
            (count * i / parts) & !1..if i + 1 == parts { count } else { (count * (i + 1) / parts) & !1 }
        })
        .collect()
}

/// `sum x y`.
fn real_dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; WIDE];
    let (x, x_rest) = x.as_chunks::<WIDE>();
    let (y, y_rest) = y.as_chunks::<WIDE>();
    for (x, y) in x.iter().zip(y) {
        for k in 0..WIDE {
            sums[k] += x[k] * y[k];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// The imaginary part of `sum conj(x) y` of pairs. Sums run side by side: one alone would wait for each addition.
fn cross_dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; WIDE];
    let (x, x_rest) = x.as_chunks::<WIDE>();
    let (y, y_rest) = y.as_chunks::<WIDE>();
    for (x, y) in x.iter().zip(y) {
        for k in 0..WIDE {
            sums[k] += x[k] * y[k ^ 1];
        }
    }
    let (x_rest, y_rest) = (x_rest.as_chunks::<2>().0, y_rest.as_chunks::<2>().0);
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x[0] * y[1] - x[1] * y[0]).sum();
    sums.as_chunks::<2>().0.iter().map(|pair| pair[0] - pair[1]).sum::<f64>() + rest
}

/// `<x_k|y>` for a list of columns.
pub(super) fn dots(threads: &Threads, x: &[&BlockVector], y: &BlockVector) -> Result<Vec<C64>> {
    let complex = y.dtype().is_complex();
    let columns = x.iter().map(|v| column(v)).collect::<Result<Vec<_>>>()?;
    let y = column(y)?;
    let parts = threads.map(&ranges(threads, y.len()), |range| {
        let mut sums = vec![C64::ZERO; columns.len()];
        let mut at = range.start;
        while at < range.end {
            let tile = at..(at + TILE).min(range.end);
            for (sum, x) in sums.iter_mut().zip(&columns) {
                sum.re += real_dot(&x[tile.clone()], &y[tile.clone()]);
                if complex {
                    sum.im += cross_dot(&x[tile.clone()], &y[tile.clone()]);
                }
            }
            at = tile.end;
        }
        sums
    })?;
    let mut total = vec![C64::ZERO; columns.len()];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
    }
    Ok(total)
}
