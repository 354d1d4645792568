//! Tall-skinny products of blocks whose rows are folded: sums run over the rows side by side as well.

use super::block::BlockReal;
use super::{Isa, Threads, vectorised};
use crate::error::Result;
use crate::number::C64;

/// Scalar operations of a multiplication and addition, as [`Threads::ranges`] counts them: these are vectorised.
const CHEAP: usize = 8;

/// Calls a function with the number of rows side by side known when it is compiled.
macro_rules! by_side {
    ($side:expr, $name:ident::<$f:ident>($($arg:expr),* $(,)?)) => {
        match $side {
            2 => $name::<$f, 2>($($arg),*),
            4 => $name::<$f, 4>($($arg),*),
            8 => $name::<$f, 8>($($arg),*),
            _ => $name::<$f, 16>($($arg),*),
        }
    };
}

/// `X^H Y` of blocks of `m` and `n` columns with `side` rows side by side.
pub(super) fn gram<F: BlockReal>(
    (threads, isa): (&Threads, Isa),
    side: usize,
    complex: bool,
    (m, x): (usize, &[F]),
    (n, y): (usize, &[F]),
) -> Result<Vec<C64>> {
    let parts = if complex { 2 } else { 1 };
    let (sx, sy) = (m * side * parts, n * side * parts);
    let rows = x.len() / sx.max(1);
    let sums = threads.map(&threads.ranges(rows, sx * n / CHEAP), |range| {
        let (x, y) = (&x[range.start * sx..range.end * sx], &y[range.start * sy..range.end * sy]);
        vectorised(isa, || by_side!(side, gram_rows::<F>(complex, (m, x), (n, y))))
    })?;
    let mut total = vec![C64::default(); m * n];
    for part in sums {
        total.iter_mut().zip(part).for_each(|(t, z)| *t += z);
    }
    Ok(total)
}

#[inline(always)]
fn gram_rows<F: BlockReal, const S: usize>(
    complex: bool,
    (m, x): (usize, &[F]),
    (n, y): (usize, &[F]),
) -> Vec<C64> {
    let parts = if complex { 2 } else { 1 };
    let (mut re, mut im) = (vec![[0.0f64; S]; m * n], vec![[0.0f64; S]; m * n]);
    let wide = |x: &[F]| -> [f64; S] {
        let mut out = [0.0; S];
        for (o, x) in out.iter_mut().zip(x) {
            *o = x.to_f64();
        }
        out
    };
    for (x, y) in x.chunks_exact((m * S * parts).max(1)).zip(y.chunks_exact((n * S * parts).max(1))) {
        for j in 0..n {
            let yr = wide(&y[j * S..][..S]);
            let yi = if complex { wide(&y[(n + j) * S..][..S]) } else { [0.0; S] };
            for i in 0..m {
                let xr = wide(&x[i * S..][..S]);
                let re = &mut re[i * n + j];
                for l in 0..S {
                    re[l] += xr[l] * yr[l];
                }
                if complex {
                    let xi = wide(&x[(m + i) * S..][..S]);
                    let im = &mut im[i * n + j];
                    for l in 0..S {
                        re[l] += xi[l] * yi[l];
                        im[l] += xr[l] * yi[l] - xi[l] * yr[l];
                    }
                }
            }
        }
    }
    re.iter().zip(&im).map(|(re, im)| C64::new(re.iter().sum(), im.iter().sum())).collect()
}

/// `Y = X C + b Y` of such blocks.
pub(super) fn combine<F: BlockReal>(
    (threads, isa): (&Threads, Isa),
    side: usize,
    complex: bool,
    (m, x): (usize, &[F]),
    c: &[C64],
    b: f64,
    (n, y): (usize, &mut [F]),
) -> Result<()> {
    let parts = if complex { 2 } else { 1 };
    let (sx, sy) = (m * side * parts, n * side * parts);
    let ranges = threads.ranges(y.len() / sy.max(1), sx * n / CHEAP);
    threads.run(&ranges, sy, y, |range, y| {
        let x = &x[range.start * sx..range.end * sx];
        vectorised(isa, || by_side!(side, combine_rows::<F>(complex, (m, x), c, b, (n, y))))
    })?;
    Ok(())
}

#[inline(always)]
fn combine_rows<F: BlockReal, const S: usize>(
    complex: bool,
    (m, x): (usize, &[F]),
    c: &[C64],
    b: f64,
    (n, y): (usize, &mut [F]),
) {
    let parts = if complex { 2 } else { 1 };
    for (x, y) in x.chunks_exact((m * S * parts).max(1)).zip(y.chunks_exact_mut((n * S * parts).max(1))) {
        for j in 0..n {
            let (mut re, mut im) = ([0.0f64; S], [0.0f64; S]);
            // What is not read may be anything.
            if b != 0.0 {
                for l in 0..S {
                    re[l] = b * y[j * S + l].to_f64();
                    im[l] = if complex { b * y[(n + j) * S + l].to_f64() } else { 0.0 };
                }
            }
            for i in 0..m {
                let z = c[i * n + j];
                let xr = &x[i * S..][..S];
                for l in 0..S {
                    re[l] += xr[l].to_f64() * z.re;
                }
                if complex {
                    let xi = &x[(m + i) * S..][..S];
                    for l in 0..S {
                        re[l] -= xi[l].to_f64() * z.im;
                        im[l] += xr[l].to_f64() * z.im + xi[l].to_f64() * z.re;
                    }
                }
            }
            for l in 0..S {
                y[j * S + l] = F::from_f64(re[l]);
                if complex {
                    y[(n + j) * S + l] = F::from_f64(im[l]);
                }
            }
        }
    }
}
