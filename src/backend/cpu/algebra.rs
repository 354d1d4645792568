//! Block-vector algebra on the CPU: everything but products with matrices.

use super::block::BlockReal;
use super::pack::dispatch;
use super::tall::{Axpby, ColumnDots, Combine, Gram};
use super::{Isa, Threads, block, block_mut};
use crate::backend::{BlockVector, conformal};
use crate::error::{Error, Result};
use crate::number::C64;

/// Calls a generic function with the reals that a vector is made of.
macro_rules! by_precision {
    ($v:expr, $go:ident ( $($arg:expr),* )) => {
        if $v.dtype.is_single() { $go::<f32>($($arg),*) } else { $go::<f64>($($arg),*) }
    };
}
pub(super) use by_precision;

/// The reals of a block, in the layout of the CPU.
pub(super) fn lanes<F: BlockReal>(v: &BlockVector) -> Result<&[F]> {
    F::lanes(block(v)?).ok_or_else(|| Error::internal("block of another precision"))
}

/// The reals of a block, to be written.
pub(super) fn lanes_mut<F: BlockReal>(v: &mut BlockVector) -> Result<&mut [F]> {
    F::lanes_mut(block_mut(v)?).ok_or_else(|| Error::internal("block of another precision"))
}

/// One factor a number of a stored row, from one for all or one a column.
fn factors(operation: &str, given: &[C64], columns: usize, side: usize) -> Result<Vec<C64>> {
    match given.len() {
        1 => Ok(vec![given[0]; columns * side]),
        n if n == columns => Ok(given.iter().flat_map(|&z| std::iter::repeat_n(z, side)).collect()),
        n => Err(Error::input(format!("{operation}: {n} factors for {columns} columns"))),
    }
}

/// Sums of columns gathered over ranges, added in order.
fn total(parts: Vec<Vec<C64>>) -> Vec<C64> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        for (s, p) in sum.iter_mut().zip(part) {
            *s += p;
        }
    }
    sum
}

pub(super) fn axpby(
    (threads, isa): (&Threads, Isa),
    a: &[C64],
    x: &BlockVector,
    b: &[C64],
    y: &mut BlockVector,
) -> Result<()> {
    conformal("sum of vectors", x, y)?;
    let side = block(x)?.lanes();
    let (a, b) = (factors("sum", a, x.columns, side)?, factors("sum", b, x.columns, side)?);
    if !x.dtype.is_complex() && a.iter().chain(&b).any(|z| z.im != 0.0) {
        return Err(Error::internal("a complex factor on real vectors"));
    }
    fn go<F: BlockReal>(
        (threads, isa): (&Threads, Isa),
        a: &[C64],
        x: &BlockVector,
        b: &[C64],
        y: &mut BlockVector,
    ) -> Result<()> {
        let (columns, complex) = (block(x)?.width(), x.dtype.is_complex());
        let stride = block(x)?.stride();
        let part = |z: &[C64], f: fn(&C64) -> f64| z.iter().map(|z| F::from_f64(f(z))).collect::<Vec<F>>();
        let (ar, ai) = (part(a, |z| z.re), part(a, |z| z.im));
        let (br, bi) = (part(b, |z| z.re), part(b, |z| z.im));
        let x = lanes::<F>(x)?;
        let ranges = threads.ranges(x.len() / stride.max(1), stride);
        threads.run(&ranges, stride, lanes_mut::<F>(y)?, |range, y| {
            let x = &x[range.start * stride..range.end * stride];
            dispatch(isa, columns, Axpby { a: [&ar, &ai], b: [&br, &bi], complex, x, y });
        })?;
        Ok(())
    }
    by_precision!(x, go((threads, isa), &a, x, &b, y))
}

pub(super) fn multiply(
    threads: &Threads,
    x: &BlockVector,
    z: &BlockVector,
    y: &mut BlockVector,
) -> Result<()> {
    conformal("product entry by entry", x, z)?;
    conformal("product entry by entry", x, y)?;
    fn go<F: BlockReal>(
        threads: &Threads,
        x: &BlockVector,
        z: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()> {
        let (columns, complex, stride) = (block(x)?.width(), x.dtype.is_complex(), block(x)?.stride());
        let (x, z) = (lanes::<F>(x)?, lanes::<F>(z)?);
        let ranges = threads.ranges(x.len() / stride.max(1), stride);
        threads.run(&ranges, stride, lanes_mut::<F>(y)?, |range, y| {
            let (x, z) = (&x[range.start * stride..range.end * stride], &z[range.start * stride..]);
            if !complex {
                for ((y, x), z) in y.iter_mut().zip(x).zip(z) {
                    *y = *x * *z;
                }
                return;
            }
            let rows = y.chunks_exact_mut(stride).zip(x.chunks_exact(stride).zip(z.chunks_exact(stride)));
            for (y, (x, z)) in rows {
                let ((yr, yi), (xr, xi), (zr, zi)) =
                    (y.split_at_mut(columns), x.split_at(columns), z.split_at(columns));
                for c in 0..columns {
                    (yr[c], yi[c]) = (xr[c] * zr[c] + xi[c] * zi[c], xr[c] * zi[c] - xi[c] * zr[c]);
                }
            }
        })?;
        Ok(())
    }
    by_precision!(x, go(threads, x, z, y))
}

pub(super) fn dots((threads, isa): (&Threads, Isa), x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
    conformal("scalar product", x, y)?;
    fn go<F: BlockReal>(
        (threads, isa): (&Threads, Isa),
        x: &BlockVector,
        y: &BlockVector,
    ) -> Result<Vec<C64>> {
        let (columns, complex, stride) = (block(x)?.width(), x.dtype.is_complex(), block(x)?.stride());
        let side = block(x)?.lanes();
        let (x, y) = (lanes::<F>(x)?, lanes::<F>(y)?);
        let ranges = threads.ranges(x.len() / stride.max(1), stride);
        let parts = threads.map(&ranges, |range| {
            let range = range.start * stride..range.end * stride;
            let sums =
                dispatch(isa, columns, ColumnDots { columns, complex, x: &x[range.clone()], y: &y[range] });
            let (re, im) = sums.split_at(columns);
            (0..columns).map(|c| C64::new(re[c], im.get(c).copied().unwrap_or(0.0))).collect()
        })?;
        Ok(total(parts).chunks(side).map(|column| column.iter().sum()).collect())
    }
    by_precision!(x, go((threads, isa), x, y))
}

/// Parts of the sum of products of all stored numbers, which is the real part of the scalar product of single columns.
pub(super) fn lane_dots(threads: &Threads, x: &BlockVector, y: &BlockVector, sums: &mut [f64]) -> Result<()> {
    conformal("scalar product", x, y)?;
    if x.columns != 1 || sums.is_empty() {
        return Err(Error::internal("partial sums of a scalar product are those of single columns"));
    }
    fn go<F: BlockReal>(threads: &Threads, x: &BlockVector, y: &BlockVector, sums: &mut [f64]) -> Result<()> {
        let (x, y, count) = (lanes::<F>(x)?, lanes::<F>(y)?, sums.len());
        let ranges = threads.ranges(x.len().div_ceil(count), count);
        let parts = threads.map(&ranges, |range| {
            let range = range.start * count..(range.end * count).min(x.len());
            let mut sums = vec![0.0; count];
            for (x, y) in x[range.clone()].chunks(count).zip(y[range].chunks(count)) {
                for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
                    *sum += x.to_f64() * y.to_f64();
                }
            }
            sums
        })?;
        for part in parts {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        Ok(())
    }
    by_precision!(x, go(threads, x, y, sums))
}

pub(super) fn gram((threads, isa): (&Threads, Isa), x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
    if x.rows != y.rows || x.dtype != y.dtype {
        return Err(Error::input(format!("product X^H Y: {} and {} do not fit", x.shape(), y.shape())));
    }
    if x.columns == 1 && y.columns == 1 {
        return dots((threads, isa), x, y);
    }
    fn go<F: BlockReal>(
        (threads, isa): (&Threads, Isa),
        x: &BlockVector,
        y: &BlockVector,
    ) -> Result<Vec<C64>> {
        let (m, n, complex) = (x.columns, y.columns, x.dtype.is_complex());
        let (sx, sy) = (block(x)?.stride(), block(y)?.stride());
        let (rows, side) = (x.rows.local, block(x)?.lanes());
        let (x, y) = (lanes::<F>(x)?, lanes::<F>(y)?);
        if side > 1 {
            return super::folded::gram((threads, isa), side, complex, (m, x), (n, y));
        }
        // The wider block is the one whose lanes fill registers.
        let turned = sy < 8 && sx > sy;
        let ranges = threads.ranges(rows, sx * sy);
        let parts = threads.map(&ranges, |range| {
            let (x, y) = (&x[range.start * sx..range.end * sx], &y[range.start * sy..range.end * sy]);
            let lanes = if turned {
                dispatch(isa, sx, Gram { across: sy, lanes: sx, x: y, y: x })
            } else {
                dispatch(isa, sy, Gram { across: sx, lanes: sy, x, y })
            };
            let at = |i: usize, j: usize| if turned { lanes[j * sx + i] } else { lanes[i * sy + j] };
            let entry = |i: usize, j: usize| {
                if complex {
                    let (re, im) = (at(i, j) + at(m + i, n + j), at(i, n + j) - at(m + i, j));
                    C64::new(re, im)
                } else {
                    C64::new(at(i, j), 0.0)
                }
            };
            (0..m * n).map(|at| entry(at / n, at % n)).collect()
        })?;
        Ok(total(parts))
    }
    by_precision!(x, go((threads, isa), x, y))
}

pub(super) fn combine(
    (threads, isa): (&Threads, Isa),
    x: &BlockVector,
    c: &[C64],
    b: f64,
    y: &mut BlockVector,
) -> Result<()> {
    if x.rows != y.rows || x.dtype != y.dtype || c.len() != x.columns * y.columns {
        return Err(Error::input(format!(
            "product X C: {} times {} coefficients into {}",
            x.shape(),
            c.len(),
            y.shape()
        )));
    }
    if c.len() == 1 {
        return axpby((threads, isa), c, x, &[C64::new(b, 0.0)], y);
    }
    fn go<F: BlockReal>(
        (threads, isa): (&Threads, Isa),
        x: &BlockVector,
        c: &[C64],
        b: f64,
        y: &mut BlockVector,
    ) -> Result<()> {
        let (m, n, side) = (x.columns, y.columns, block(x)?.lanes());
        if side > 1 {
            let (complex, x) = (x.dtype.is_complex(), self::lanes::<F>(x)?);
            return super::folded::combine(
                (threads, isa),
                side,
                complex,
                (m, x),
                c,
                b,
                (n, lanes_mut::<F>(y)?),
            );
        }
        let (across, lanes) = (block(x)?.stride(), block(y)?.stride());
        // The complex matrix as a real one that takes (re, im) to (re, im).
        let real = |i: usize, j: usize| {
            let z = c[(i % m) * n + j % n];
            F::from_f64(match (i < m, j < n) {
                (true, true) | (false, false) => z.re,
                (true, false) => z.im,
                (false, true) => -z.im,
            })
        };
        let c: Vec<F> = (0..across * lanes).map(|at| real(at / lanes, at % lanes)).collect();
        let x = self::lanes::<F>(x)?;
        let ranges = threads.ranges(y.rows.local, across * lanes);
        threads.run(&ranges, lanes, lanes_mut::<F>(y)?, |range, y| {
            let x = &x[range.start * across..range.end * across];
            dispatch(isa, lanes, Combine { across, lanes, c: &c, b: F::from_f64(b), x, y });
        })?;
        Ok(())
    }
    by_precision!(x, go((threads, isa), x, c, b, y))
}

/// The denominator of a preconditioner, `shift - d`, kept away from zero.
#[inline(always)]
pub(super) fn away_from_zero(shift: f64, d: f64, floor: f64) -> f64 {
    let gap = shift - d;
    if gap.abs() < floor { floor.copysign(gap) } else { gap }
}

pub(super) fn precondition(
    threads: &Threads,
    d: &BlockVector,
    shift: &[f64],
    floor: f64,
    x: &BlockVector,
    y: &mut BlockVector,
) -> Result<()> {
    conformal("preconditioner", x, y)?;
    if d.rows != x.rows || d.columns != 1 || d.dtype != x.dtype.to_real() || shift.len() != x.columns {
        return Err(Error::input(format!("preconditioner: diagonal {} on {}", d.shape(), x.shape())));
    }
    fn go<F: BlockReal>(
        threads: &Threads,
        d: &BlockVector,
        shift: &[f64],
        floor: f64,
        x: &BlockVector,
        y: &mut BlockVector,
    ) -> Result<()> {
        let (columns, stride, side) = (x.columns, block(x)?.stride(), block(x)?.lanes());
        let (d, x) = (lanes::<F>(d)?, lanes::<F>(x)?);
        let ranges = threads.ranges(d.len() / side, stride);
        threads.run(&ranges, stride, lanes_mut::<F>(y)?, |range, y| {
            for (row, y) in range.zip(y.chunks_exact_mut(stride)) {
                let x = &x[row * stride..][..stride];
                for (i, (y, x)) in y.iter_mut().zip(x).enumerate() {
                    let d = d[row * side + i % side].to_f64();
                    *y = F::from_f64(x.to_f64() / away_from_zero(shift[i / side % columns], d, floor));
                }
            }
        })?;
        Ok(())
    }
    by_precision!(x, go(threads, d, shift, floor, x, y))
}
