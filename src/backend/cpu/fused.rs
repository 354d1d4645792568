//! The fused pass `w = alpha A v + beta v + gamma w` with both column-wise products, over any format that can walk the
//! entries of a row. The body is generic and inlined; wrappers compiled for each instruction set call it.

use std::ops::Range;

use super::Isa;
use super::block::Lane;
use crate::backend::Update;
use crate::number::{Real, Scalar};

/// A stored matrix whose rows can be walked.
pub(super) trait Walk<T>: Sync {
    /// Calls `entry(column, value)` for every stored entry of `row`, in a fixed order.
    fn row(&self, row: usize, entry: impl FnMut(usize, T));
}

/// What a job over a range of rows is given.
pub(super) struct Pass<'a, F> {
    pub c: Update,
    pub columns: usize,
    pub complex: bool,
    /// All rows of the input.
    pub v: &'a [F],
    /// Row of the input that is conformal to row 0 of the output.
    pub offset: usize,
    pub dots: bool,
}

#[inline(always)]
fn mla<F: Real, const FMA: bool>(a: F, b: F, c: F) -> F {
    // Without the instruction, a fused multiply-add is a slow library call.
    if FMA { a.fma(b, c) } else { a * b + c }
}

/// Loads `W` neighbouring lanes.
#[inline(always)]
fn load<F: Copy, const W: usize>(v: &[F], at: usize) -> [F; W] {
    debug_assert!(at + W <= v.len());
    // SAFETY: `at` is row * stride + lane with row below the number of input rows (checked when the matrix was prepared
    // and when the vectors were matched to it) and lane + W at most the stride.
    unsafe { *v.as_ptr().add(at).cast::<[F; W]>() }
}

#[inline(always)]
fn store<F: Lane, const W: usize, const FMA: bool>(
    pass: &Pass<'_, F>,
    row: usize,
    lane: usize,
    stride: usize,
    sum: [F; W],
    w: &mut [F],
    first: usize,
    sums: &mut [f64],
) {
    let (alpha, beta, gamma) =
        (F::from_f64(pass.c.alpha), F::from_f64(pass.c.beta), F::from_f64(pass.c.gamma));
    let own: [F; W] = if pass.c.beta != 0.0 || pass.dots {
        load(pass.v, (row + pass.offset) * stride + lane)
    } else {
        [F::default(); W]
    };
    let out = &mut w[(row - first) * stride + lane..][..W];
    let mut new = [F::default(); W];
    for k in 0..W {
        let mut x = mla::<F, FMA>(beta, own[k], alpha * sum[k]);
        if pass.c.gamma != 0.0 {
            x = mla::<F, FMA>(gamma, out[k], x);
        }
        new[k] = x;
    }
    out.copy_from_slice(&new);
    if pass.dots {
        let (vv, wv) = sums.split_at_mut(stride);
        for k in 0..W {
            let (x, y) = (own[k].to_f64(), new[k].to_f64());
            vv[lane + k] = mla::<f64, FMA>(x, x, vv[lane + k]);
            wv[lane + k] = mla::<f64, FMA>(y, x, wv[lane + k]);
        }
    }
}

/// Rows `range` of a real matrix, `W` lanes at a time.
#[inline(always)]
fn real_body<F: Lane, M: Walk<F>, const W: usize, const FMA: bool>(
    matrix: &M,
    pass: &Pass<'_, F>,
    range: Range<usize>,
    first: usize,
    w: &mut [F],
    sums: &mut [f64],
) {
    let stride = pass.columns * if pass.complex { 2 } else { 1 };
    for row in range {
        for lane in (0..stride).step_by(W) {
            let mut sum = [F::default(); W];
            matrix.row(row, |column, value| {
                let x: [F; W] = load(pass.v, column * stride + lane);
                for k in 0..W {
                    sum[k] = mla::<F, FMA>(value, x[k], sum[k]);
                }
            });
            store::<F, W, FMA>(pass, row, lane, stride, sum, w, first, sums);
        }
    }
}

/// Rows `range` of a complex matrix, `W` columns at a time.
#[inline(always)]
fn complex_body<T: Scalar, M: Walk<T>, const W: usize, const FMA: bool>(
    matrix: &M,
    pass: &Pass<'_, T::Real>,
    range: Range<usize>,
    first: usize,
    w: &mut [T::Real],
    sums: &mut [f64],
) where
    T::Real: Lane,
{
    let (columns, stride) = (pass.columns, 2 * pass.columns);
    for row in range {
        for lane in (0..columns).step_by(W) {
            let mut re = [T::Real::default(); W];
            let mut im = [T::Real::default(); W];
            matrix.row(row, |column, value| {
                let (a, b) = (value.re(), value.im());
                let x: [T::Real; W] = load(pass.v, column * stride + lane);
                let y: [T::Real; W] = load(pass.v, column * stride + columns + lane);
                for k in 0..W {
                    re[k] = mla::<T::Real, FMA>(a, x[k], mla::<T::Real, FMA>(-b, y[k], re[k]));
                    im[k] = mla::<T::Real, FMA>(a, y[k], mla::<T::Real, FMA>(b, x[k], im[k]));
                }
            });
            store::<T::Real, W, FMA>(pass, row, lane, stride, re, w, first, sums);
            store::<T::Real, W, FMA>(pass, row, columns + lane, stride, im, w, first, sums);
        }
    }
}

/// Generates, for one body, its wrappers for each instruction set and the choice of width.
macro_rules! dispatch {
    ($name:ident, $body:ident, $t:ident, $real:ty, $width:expr, [$($bound:tt)*]) => {
        /// Rows `range`; `first` is the row that `w` starts with.
        pub(super) fn $name<$t, M: Walk<$t>>(
            isa: Isa, matrix: &M, pass: &Pass<'_, $real>, range: Range<usize>, first: usize, w: &mut [$real], sums: &mut [f64],
        ) where $($bound)* {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
            fn avx512<$t, M: Walk<$t>, const W: usize>(
                matrix: &M, pass: &Pass<'_, $real>, range: Range<usize>, first: usize, w: &mut [$real], sums: &mut [f64],
            ) where $($bound)* {
                $body::<$t, M, W, true>(matrix, pass, range, first, w, sums);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2<$t, M: Walk<$t>, const W: usize>(
                matrix: &M, pass: &Pass<'_, $real>, range: Range<usize>, first: usize, w: &mut [$real], sums: &mut [f64],
            ) where $($bound)* {
                $body::<$t, M, W, true>(matrix, pass, range, first, w, sums);
            }
            fn at<$t, M: Walk<$t>, const W: usize>(
                isa: Isa, matrix: &M, pass: &Pass<'_, $real>, range: Range<usize>, first: usize, w: &mut [$real], sums: &mut [f64],
            ) where $($bound)* {
                match isa {
                    // SAFETY: `Isa::detect` found these instructions on this processor.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe { avx512::<$t, M, W>(matrix, pass, range, first, w, sums) },
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => unsafe { avx2::<$t, M, W>(matrix, pass, range, first, w, sums) },
                    _ => $body::<$t, M, W, false>(matrix, pass, range, first, w, sums),
                }
            }
            let width: usize = $width(pass);
            match width {
                n if n % 16 == 0 => at::<$t, M, 16>(isa, matrix, pass, range, first, w, sums),
                n if n % 8 == 0 => at::<$t, M, 8>(isa, matrix, pass, range, first, w, sums),
                n if n % 4 == 0 => at::<$t, M, 4>(isa, matrix, pass, range, first, w, sums),
                n if n % 2 == 0 => at::<$t, M, 2>(isa, matrix, pass, range, first, w, sums),
                _ => at::<$t, M, 1>(isa, matrix, pass, range, first, w, sums),
            }
        }
    };
}

fn all_lanes<F>(pass: &Pass<'_, F>) -> usize {
    pass.columns * if pass.complex { 2 } else { 1 }
}

fn half_lanes<F>(pass: &Pass<'_, F>) -> usize {
    pass.columns
}

dispatch!(real_rows, real_body, F, F, all_lanes, [F: Lane]);
dispatch!(complex_rows, complex_body, T, T::Real, half_lanes, [T: Scalar<Real: Lane>]);
