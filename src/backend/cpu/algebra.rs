//! Block-vector algebra on the CPU: everything but products with matrices.

use super::block::Lane;
use super::{Threads, block, block_mut, vectorised};
use crate::backend::{BlockVector, conformal};
use crate::error::{Error, Result};
use crate::number::C64;

/// Calls a generic function with the reals that a vector is made of.
macro_rules! by_precision {
    ($v:expr, $go:ident ( $($arg:expr),* )) => {
        if $v.dtype().is_single() { $go::<f32>($($arg),*) } else { $go::<f64>($($arg),*) }
    };
}

fn lanes<F: Lane>(v: &BlockVector) -> Result<&[F]> {
    F::lanes(block(v)?).ok_or_else(|| Error::internal("block of another precision"))
}

fn lanes_mut<F: Lane>(v: &mut BlockVector) -> Result<&mut [F]> {
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
    threads: &Threads,
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
    fn go<F: Lane>(
        threads: &Threads,
        a: &[C64],
        x: &BlockVector,
        b: &[C64],
        y: &mut BlockVector,
    ) -> Result<()> {
        let (columns, complex) = (block(x)?.width(), x.dtype.is_complex());
        let stride = block(x)?.stride();
        let real = a.iter().chain(b).all(|z| z.im == 0.0);
        let keep = b.iter().any(|z| *z != C64::default());
        let part = |z: &[C64], f: fn(&C64) -> f64| z.iter().map(|z| F::from_f64(f(z))).collect::<Vec<F>>();
        let (ar, ai) = (part(a, |z| z.re), part(a, |z| z.im));
        let (br, bi) = (part(b, |z| z.re), part(b, |z| z.im));
        let x = lanes::<F>(x)?;
        let rows = x.len() / stride.max(1);
        let ranges = threads.ranges(rows, stride);
        threads.run(&ranges, stride, lanes_mut::<F>(y)?, |range, y| {
            vectorised(|| {
                let x = &x[range.start * stride..range.end * stride];
                for (x, y) in x.chunks_exact(stride).zip(y.chunks_exact_mut(stride)) {
                    if real {
                        for (x, y) in x.chunks_exact(columns).zip(y.chunks_exact_mut(columns)) {
                            for c in 0..columns {
                                y[c] = if keep { ar[c] * x[c] + br[c] * y[c] } else { ar[c] * x[c] };
                            }
                        }
                    } else if complex {
                        let ((xr, xi), (yr, yi)) = (x.split_at(columns), y.split_at_mut(columns));
                        for c in 0..columns {
                            let (mut re, mut im) =
                                (ar[c] * xr[c] - ai[c] * xi[c], ar[c] * xi[c] + ai[c] * xr[c]);
                            if keep {
                                re += br[c] * yr[c] - bi[c] * yi[c];
                                im += br[c] * yi[c] + bi[c] * yr[c];
                            }
                            (yr[c], yi[c]) = (re, im);
                        }
                    }
                }
            })
        })?;
        Ok(())
    }
    by_precision!(x, go(threads, &a, x, &b, y))
}

pub(super) fn multiply(
    threads: &Threads,
    x: &BlockVector,
    z: &BlockVector,
    y: &mut BlockVector,
) -> Result<()> {
    conformal("product entry by entry", x, z)?;
    conformal("product entry by entry", x, y)?;
    fn go<F: Lane>(threads: &Threads, x: &BlockVector, z: &BlockVector, y: &mut BlockVector) -> Result<()> {
        let (columns, complex, stride) = (block(x)?.width(), x.dtype.is_complex(), block(x)?.stride());
        let (x, z) = (lanes::<F>(x)?, lanes::<F>(z)?);
        let ranges = threads.ranges(x.len() / stride.max(1), stride);
        threads.run(&ranges, stride, lanes_mut::<F>(y)?, |range, y| {
            for (row, y) in range.zip(y.chunks_exact_mut(stride)) {
                let (x, z) = (&x[row * stride..][..stride], &z[row * stride..][..stride]);
                for c in 0..columns {
                    if complex {
                        let d = columns + c;
                        (y[c], y[d]) = (x[c] * z[c] + x[d] * z[d], x[c] * z[d] - x[d] * z[c]);
                    } else {
                        y[c] = x[c] * z[c];
                    }
                }
            }
        })?;
        Ok(())
    }
    by_precision!(x, go(threads, x, z, y))
}

pub(super) fn dots(threads: &Threads, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
    conformal("scalar product", x, y)?;
    fn go<F: Lane>(threads: &Threads, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        let (columns, complex, stride) = (block(x)?.width(), x.dtype.is_complex(), block(x)?.stride());
        let side = block(x)?.lanes();
        let (x, y) = (lanes::<F>(x)?, lanes::<F>(y)?);
        let ranges = threads.ranges(x.len() / stride.max(1), stride);
        let parts = threads.map(&ranges, |range| {
            vectorised(|| {
                let mut re = vec![0.0; columns];
                let mut im = vec![0.0; columns];
                for row in range {
                    let (x, y) = (&x[row * stride..][..stride], &y[row * stride..][..stride]);
                    for c in 0..columns {
                        re[c] += x[c].to_f64() * y[c].to_f64();
                        if complex {
                            let d = columns + c;
                            re[c] += x[d].to_f64() * y[d].to_f64();
                            im[c] += x[c].to_f64() * y[d].to_f64() - x[d].to_f64() * y[c].to_f64();
                        }
                    }
                }
                re.into_iter().zip(im).map(|(re, im)| C64::new(re, im)).collect::<Vec<C64>>()
            })
        })?;
        Ok(total(parts).chunks(side).map(|column| column.iter().sum()).collect())
    }
    by_precision!(x, go(threads, x, y))
}

pub(super) fn gram(threads: &Threads, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
    if x.rows != y.rows || x.dtype != y.dtype {
        return Err(Error::input(format!("product X^H Y: {} and {} do not fit", x.shape(), y.shape())));
    }
    fn go<F: Lane>(threads: &Threads, x: &BlockVector, y: &BlockVector) -> Result<Vec<C64>> {
        let (m, n, complex) = (x.columns, y.columns, x.dtype.is_complex());
        let (sx, sy) = (block(x)?.stride(), block(y)?.stride());
        let side = block(x)?.lanes();
        let rows = x.rows.local / side;
        let (x, y) = (lanes::<F>(x)?, lanes::<F>(y)?);
        if side > 1 {
            return super::folded::gram(threads, side, complex, (m, x), (n, y));
        }
        let ranges = threads.ranges(rows, sx * sy);
        let parts = threads.map(&ranges, |range| {
            let (mut re, mut im) = (vec![0.0; m * n], vec![0.0; m * n]);
            for row in range {
                let (x, y) = (&x[row * sx..][..sx], &y[row * sy..][..sy]);
                for i in 0..m {
                    let (xr, xi) = (x[i].to_f64(), if complex { x[m + i].to_f64() } else { 0.0 });
                    let (re, im) = (&mut re[i * n..][..n], &mut im[i * n..][..n]);
                    for j in 0..n {
                        re[j] += xr * y[j].to_f64();
                    }
                    if complex {
                        for j in 0..n {
                            re[j] += xi * y[n + j].to_f64();
                            im[j] += xr * y[n + j].to_f64() - xi * y[j].to_f64();
                        }
                    }
                }
            }
            re.into_iter().zip(im).map(|(re, im)| C64::new(re, im)).collect()
        })?;
        Ok(total(parts))
    }
    by_precision!(x, go(threads, x, y))
}

pub(super) fn combine(
    threads: &Threads,
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
    fn go<F: Lane>(threads: &Threads, x: &BlockVector, c: &[C64], b: f64, y: &mut BlockVector) -> Result<()> {
        let (m, n, complex) = (x.columns, y.columns, x.dtype.is_complex());
        let (sx, sy) = (block(x)?.stride(), block(y)?.stride());
        let side = block(x)?.lanes();
        let x = lanes::<F>(x)?;
        if side > 1 {
            return super::folded::combine(threads, side, complex, (m, x), c, b, (n, lanes_mut::<F>(y)?));
        }
        let ranges = threads.ranges(y.rows.local, sx * sy);
        threads.run(&ranges, sy, lanes_mut::<F>(y)?, |range, y| {
            let mut sum = vec![0.0f64; sy];
            for (row, y) in range.zip(y.chunks_exact_mut(sy)) {
                let x = &x[row * sx..][..sx];
                for (s, y) in sum.iter_mut().zip(y.iter()) {
                    *s = if b == 0.0 { 0.0 } else { b * y.to_f64() };
                }
                let (re, im) = sum.split_at_mut(n);
                for i in 0..m {
                    let xr = x[i].to_f64();
                    let c = &c[i * n..][..n];
                    for j in 0..n {
                        re[j] += xr * c[j].re;
                    }
                    if complex {
                        let xi = x[m + i].to_f64();
                        for j in 0..n {
                            re[j] -= xi * c[j].im;
                            im[j] += xr * c[j].im + xi * c[j].re;
                        }
                    }
                }
                for (y, s) in y.iter_mut().zip(&sum) {
                    *y = F::from_f64(*s);
                }
            }
        })?;
        Ok(())
    }
    by_precision!(x, go(threads, x, c, b, y))
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
    fn go<F: Lane>(
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
                    let gap = shift[i / side % columns] - d[row * side + i % side].to_f64();
                    let gap = if gap.abs() < floor { floor.copysign(gap) } else { gap };
                    *y = F::from_f64(x.to_f64() / gap);
                }
            }
        })?;
        Ok(())
    }
    by_precision!(x, go(threads, d, shift, floor, x, y))
}
