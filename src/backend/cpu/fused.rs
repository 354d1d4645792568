//! The fused pass `w = alpha A v + beta v + gamma w` with both column-wise products, over any matrix that can walk its
//! rows. The bodies are generic and inlined; wrappers compiled for each instruction set call them.

use std::iter::empty;
use std::ops::Range;

use super::Isa;
use super::block::Lane;
use crate::backend::Update;
use crate::number::{Real, Scalar};

/// Rows whose products are summed in registers, and whose entries stay in the nearest cache while the lanes of a wide
/// block are walked one vector after the other. Short enough that sums of 32-bit lanes keep their digits.
const STRIP: usize = 64;

/// What is done with each row of a matrix. The entries come in up to three kinds, so that a matrix that knows its values
/// to be real or imaginary saves half the work; the others leave those kinds empty.
pub(super) trait Visit<T: Scalar> {
    /// A row with its on-site energy, if that is kept apart, and its entries `(column, value)`.
    fn row(
        &mut self,
        row: usize,
        on_site: Option<T::Real>,
        entries: impl Iterator<Item = (usize, T)>,
        real: impl Iterator<Item = (usize, T::Real)>,
        imaginary: impl Iterator<Item = (usize, T::Real)>,
    );

    /// Rows that all have the same entries `(distance in rows, value)`, with their on-site energies.
    #[inline(always)]
    fn run(&mut self, rows: Range<usize>, on_site: Option<&[T::Real]>, entries: &[(isize, T)]) {
        for (at, row) in rows.enumerate() {
            let energy = on_site.map(|e| e[at]);
            let entries = entries.iter().map(|e| (row.wrapping_add_signed(e.0), e.1));
            self.row(row, energy, entries, empty(), empty());
        }
    }
}

/// A prepared matrix whose rows can be walked.
pub(super) trait Walk<T: Scalar>: Send + Sync {
    /// Visits `rows` in ascending order; the entries of a row come in a fixed order.
    fn walk<V: Visit<T>>(&self, rows: Range<usize>, visit: &mut V);
}

/// What a pass over a range of rows is given. The pointers are to all rows of the input and of the output.
pub(super) struct Pass<F> {
    pub c: Update,
    pub columns: usize,
    pub complex: bool,
    pub v: *const F,
    pub w: *mut F,
    /// Row of the input that is conformal to row 0 of the output.
    pub offset: usize,
    pub dots: bool,
}

// SAFETY: the pointers are to blocks that outlive the pass; whoever shares a pass between threads deals out disjoint
// rows of `w`, and no thread reads rows of `v` that another writes (see `kernels.rs` and `blocked.rs`).
unsafe impl<F: Sync> Sync for Pass<F> {}

impl<F: Lane> Pass<F> {
    /// Reals a row.
    pub fn stride(&self) -> usize {
        self.columns * if self.complex { 2 } else { 1 }
    }

    #[inline(always)]
    fn load<const W: usize>(&self, at: usize) -> [F; W] {
        // SAFETY: `at` is row * stride + lane with the row below the number of input rows (checked when the matrix was
        // prepared and when the vectors were matched to it) and lane + W at most the stride.
        unsafe { *self.v.add(at).cast::<[F; W]>() }
    }

    #[inline(always)]
    fn load_output<const W: usize>(&self, at: usize) -> [F; W] {
        // SAFETY: as for `load`, for rows of the output.
        unsafe { *self.w.add(at).cast::<[F; W]>() }
    }

    #[inline(always)]
    fn store<const W: usize>(&self, at: usize, x: [F; W]) {
        // SAFETY: as for `load_output`; no other thread has this row of the output.
        unsafe { *self.w.add(at).cast::<[F; W]>() = x }
    }
}

#[inline(always)]
fn mla<F: Real, const FMA: bool>(a: F, b: F, c: F) -> F {
    // Without the instruction, a fused multiply-add is a slow library call.
    if FMA { a.fma(b, c) } else { a * b + c }
}

/// `W` neighbouring lanes of one part (real or imaginary) of a row.
struct Part<'a, F, const W: usize, const FMA: bool> {
    pass: &'a Pass<F>,
    alpha: F,
    beta: F,
    gamma: F,
    vv: [F; W],
    wv: [F; W],
}

impl<'a, F: Lane, const W: usize, const FMA: bool> Part<'a, F, W, FMA> {
    #[inline(always)]
    fn new(pass: &'a Pass<F>) -> Self {
        let (alpha, beta, gamma) =
            (F::from_f64(pass.c.alpha), F::from_f64(pass.c.beta), F::from_f64(pass.c.gamma));
        Part { pass, alpha, beta, gamma, vv: [F::default(); W], wv: [F::default(); W] }
    }

    /// Ends a row: `sum` is the product's, `at` the lane within the row.
    #[inline(always)]
    fn finish(&mut self, row: usize, lane: usize, stride: usize, on_site: Option<F>, mut sum: [F; W]) {
        let pass = self.pass;
        let own: [F; W] = if pass.c.beta != 0.0 || pass.dots || on_site.is_some() {
            pass.load((row + pass.offset) * stride + lane)
        } else {
            [F::default(); W]
        };
        if let Some(energy) = on_site {
            for k in 0..W {
                sum[k] = mla::<F, FMA>(energy, own[k], sum[k]);
            }
        }
        let at = row * stride + lane;
        let mut new = [F::default(); W];
        for k in 0..W {
            new[k] = mla::<F, FMA>(self.beta, own[k], self.alpha * sum[k]);
        }
        if pass.c.gamma != 0.0 {
            let old: [F; W] = pass.load_output(at);
            for k in 0..W {
                new[k] = mla::<F, FMA>(self.gamma, old[k], new[k]);
            }
        }
        pass.store(at, new);
        if pass.dots {
            for k in 0..W {
                self.vv[k] = mla::<F, FMA>(own[k], own[k], self.vv[k]);
                self.wv[k] = mla::<F, FMA>(new[k], own[k], self.wv[k]);
            }
        }
    }

    /// Adds the products of a strip to those of all rows. Kept out of the loop over rows: inlined, its order of lanes is
    /// imposed on every vector there, at the price of a permutation for each.
    #[inline(never)]
    fn add_to(&self, sums: &mut [f64], lane: usize, stride: usize) {
        if self.pass.dots {
            for k in 0..W {
                sums[lane + k] += self.vv[k].to_f64();
                sums[stride + lane + k] += self.wv[k].to_f64();
            }
        }
    }
}

/// `W` lanes of the rows of a real matrix.
struct RealRows<'a, F, const W: usize, const FMA: bool> {
    part: Part<'a, F, W, FMA>,
    lane: usize,
    stride: usize,
}

impl<F: Lane, const W: usize, const FMA: bool> Visit<F> for RealRows<'_, F, W, FMA> {
    #[inline(always)]
    fn row(
        &mut self,
        row: usize,
        on_site: Option<F>,
        entries: impl Iterator<Item = (usize, F)>,
        _real: impl Iterator<Item = (usize, F)>,
        _imaginary: impl Iterator<Item = (usize, F)>,
    ) {
        let mut sum = [F::default(); W];
        for (column, value) in entries {
            let x: [F; W] = self.part.pass.load(column * self.stride + self.lane);
            for k in 0..W {
                sum[k] = mla::<F, FMA>(value, x[k], sum[k]);
            }
        }
        self.part.finish(row, self.lane, self.stride, on_site, sum);
    }

    #[inline(always)]
    fn run(&mut self, rows: Range<usize>, on_site: Option<&[F]>, entries: &[(isize, F)]) {
        // Rows of one lane lie side by side like the lanes of one row.
        const ROWS: usize = 16;
        let mut from = rows.start;
        if W == 1 && self.stride == 1 {
            let pass = self.part.pass;
            let mut wide = Part::<F, ROWS, FMA>::new(pass);
            while from + ROWS <= rows.end {
                let mut sum = [F::default(); ROWS];
                for &(distance, value) in entries {
                    let x: [F; ROWS] = pass.load(from.wrapping_add_signed(distance));
                    for k in 0..ROWS {
                        sum[k] = mla::<F, FMA>(value, x[k], sum[k]);
                    }
                }
                if let Some(energies) = on_site {
                    let energies = &energies[from - rows.start..][..ROWS];
                    let own: [F; ROWS] = pass.load(from + pass.offset);
                    for k in 0..ROWS {
                        sum[k] = mla::<F, FMA>(energies[k], own[k], sum[k]);
                    }
                }
                wide.finish(from, 0, 1, None, sum);
                from += ROWS;
            }
            for k in 0..ROWS {
                self.part.vv[0] += wide.vv[k];
                self.part.wv[0] += wide.wv[k];
            }
        }
        for row in from..rows.end {
            let energy = on_site.map(|e| e[row - rows.start]);
            let entries = entries.iter().map(|e| (row.wrapping_add_signed(e.0), e.1));
            self.row(row, energy, entries, empty(), empty());
        }
    }
}

/// Rows of a real matrix, `W` lanes at a time.
#[inline(always)]
fn real_body<F: Lane, M: Walk<F>, const W: usize, const FMA: bool>(
    matrix: &M,
    pass: &Pass<F>,
    range: Range<usize>,
    sums: &mut [f64],
) {
    // A stride known to the compiler saves a multiplication for every entry.
    if pass.stride() == W {
        real_strips::<F, M, W, FMA>(matrix, pass, range, sums, W);
    } else {
        real_strips::<F, M, W, FMA>(matrix, pass, range, sums, pass.stride());
    }
}

#[inline(always)]
fn real_strips<F: Lane, M: Walk<F>, const W: usize, const FMA: bool>(
    matrix: &M,
    pass: &Pass<F>,
    range: Range<usize>,
    sums: &mut [f64],
    stride: usize,
) {
    for first in range.clone().step_by(STRIP) {
        let strip = first..(first + STRIP).min(range.end);
        for lane in (0..stride).step_by(W) {
            let mut rows = RealRows::<F, W, FMA> { part: Part::new(pass), lane, stride };
            matrix.walk(strip.clone(), &mut rows);
            rows.part.add_to(sums, lane, stride);
        }
    }
}

/// `W` columns of the rows of a complex matrix.
struct ComplexRows<'a, F, const W: usize, const FMA: bool> {
    re: Part<'a, F, W, FMA>,
    im: Part<'a, F, W, FMA>,
    lane: usize,
    columns: usize,
}

impl<T: Scalar<Real: Lane>, const W: usize, const FMA: bool> Visit<T> for ComplexRows<'_, T::Real, W, FMA> {
    #[inline(always)]
    fn row(
        &mut self,
        row: usize,
        on_site: Option<T::Real>,
        entries: impl Iterator<Item = (usize, T)>,
        real: impl Iterator<Item = (usize, T::Real)>,
        imaginary: impl Iterator<Item = (usize, T::Real)>,
    ) {
        let (lane, columns, stride, pass) = (self.lane, self.columns, 2 * self.columns, self.re.pass);
        let mut re = [T::Real::default(); W];
        let mut im = [T::Real::default(); W];
        for (column, value) in entries {
            let (a, b) = (value.re(), value.im());
            let x: [T::Real; W] = pass.load(column * stride + lane);
            let y: [T::Real; W] = pass.load(column * stride + columns + lane);
            for k in 0..W {
                re[k] = mla::<T::Real, FMA>(a, x[k], mla::<T::Real, FMA>(-b, y[k], re[k]));
                im[k] = mla::<T::Real, FMA>(a, y[k], mla::<T::Real, FMA>(b, x[k], im[k]));
            }
        }
        for (column, a) in real {
            let x: [T::Real; W] = pass.load(column * stride + lane);
            let y: [T::Real; W] = pass.load(column * stride + columns + lane);
            for k in 0..W {
                re[k] = mla::<T::Real, FMA>(a, x[k], re[k]);
                im[k] = mla::<T::Real, FMA>(a, y[k], im[k]);
            }
        }
        for (column, b) in imaginary {
            let x: [T::Real; W] = pass.load(column * stride + lane);
            let y: [T::Real; W] = pass.load(column * stride + columns + lane);
            for k in 0..W {
                re[k] = mla::<T::Real, FMA>(-b, y[k], re[k]);
                im[k] = mla::<T::Real, FMA>(b, x[k], im[k]);
            }
        }
        self.re.finish(row, lane, stride, on_site, re);
        self.im.finish(row, columns + lane, stride, on_site, im);
    }
}

/// Rows of a complex matrix, `W` columns at a time.
#[inline(always)]
fn complex_body<T: Scalar<Real: Lane>, M: Walk<T>, const W: usize, const FMA: bool>(
    matrix: &M,
    pass: &Pass<T::Real>,
    range: Range<usize>,
    sums: &mut [f64],
) {
    if pass.columns == W {
        complex_strips::<T, M, W, FMA>(matrix, pass, range, sums, W);
    } else {
        complex_strips::<T, M, W, FMA>(matrix, pass, range, sums, pass.columns);
    }
}

#[inline(always)]
fn complex_strips<T: Scalar<Real: Lane>, M: Walk<T>, const W: usize, const FMA: bool>(
    matrix: &M,
    pass: &Pass<T::Real>,
    range: Range<usize>,
    sums: &mut [f64],
    columns: usize,
) {
    let stride = 2 * columns;
    for first in range.clone().step_by(STRIP) {
        let strip = first..(first + STRIP).min(range.end);
        for lane in (0..columns).step_by(W) {
            let mut rows =
                ComplexRows::<T::Real, W, FMA> { re: Part::new(pass), im: Part::new(pass), lane, columns };
            matrix.walk(strip.clone(), &mut rows);
            rows.re.add_to(sums, lane, stride);
            rows.im.add_to(sums, columns + lane, stride);
        }
    }
}

/// Generates, for one body, its wrappers for each instruction set and the choice of width.
macro_rules! dispatch {
    ($name:ident, $body:ident, $t:ident, $real:ty, $width:expr, [$($bound:tt)*]) => {
        /// Rows `range`; adds `<v|v>` and `Re <w|v>` of each lane to `sums`.
        pub(super) fn $name<$t, M: Walk<$t>>(
            isa: Isa, matrix: &M, pass: &Pass<$real>, range: Range<usize>, sums: &mut [f64],
        ) where $($bound)* {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
            fn avx512<$t, M: Walk<$t>, const W: usize>(
                matrix: &M, pass: &Pass<$real>, range: Range<usize>, sums: &mut [f64],
            ) where $($bound)* {
                $body::<$t, M, W, true>(matrix, pass, range, sums);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2<$t, M: Walk<$t>, const W: usize>(
                matrix: &M, pass: &Pass<$real>, range: Range<usize>, sums: &mut [f64],
            ) where $($bound)* {
                $body::<$t, M, W, true>(matrix, pass, range, sums);
            }
            fn at<$t, M: Walk<$t>, const W: usize>(
                isa: Isa, matrix: &M, pass: &Pass<$real>, range: Range<usize>, sums: &mut [f64],
            ) where $($bound)* {
                match isa {
                    // SAFETY: `Isa::detect` found these instructions on this processor.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe { avx512::<$t, M, W>(matrix, pass, range, sums) },
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => unsafe { avx2::<$t, M, W>(matrix, pass, range, sums) },
                    _ => $body::<$t, M, W, false>(matrix, pass, range, sums),
                }
            }
            let width: usize = $width(pass);
            match width {
                n if n % 16 == 0 => at::<$t, M, 16>(isa, matrix, pass, range, sums),
                n if n % 8 == 0 => at::<$t, M, 8>(isa, matrix, pass, range, sums),
                n if n % 4 == 0 => at::<$t, M, 4>(isa, matrix, pass, range, sums),
                n if n % 2 == 0 => at::<$t, M, 2>(isa, matrix, pass, range, sums),
                _ => at::<$t, M, 1>(isa, matrix, pass, range, sums),
            }
        }
    };
}

fn all_lanes<F: Lane>(pass: &Pass<F>) -> usize {
    pass.stride()
}

fn half_lanes<F>(pass: &Pass<F>) -> usize {
    pass.columns
}

dispatch!(real_rows, real_body, F, F, all_lanes, [F: Lane]);
dispatch!(complex_rows, complex_body, T, T::Real, half_lanes, [T: Scalar<Real: Lane>]);
