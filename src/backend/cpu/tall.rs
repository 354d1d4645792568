//! Sums, scalar products and products with small matrices of tall-skinny blocks, over one worker's rows. A complex
//! block of n columns is a real one of 2 n lanes here: real parts, then imaginary ones.

use super::block::BlockReal;
use super::pack::{Pack, PackedWork};

/// Rows whose products are summed in registers; short enough that sums of 32-bit lanes keep their digits.
const STRIP: usize = 64;

/// Rows of a single column that are taken side by side.
const SIDE: usize = 16;

#[inline(always)]
fn load<F: BlockReal, P: Pack<F>>(x: &[F], at: usize) -> P {
    let x = &x[at..at + P::WIDTH];
    // SAFETY: the slice is as long as the pack.
    unsafe { P::load(x.as_ptr()) }
}

#[inline(always)]
fn store<F: BlockReal, P: Pack<F>>(x: P, y: &mut [F], at: usize) {
    let y = &mut y[at..at + P::WIDTH];
    // SAFETY: the slice is as long as the pack.
    unsafe { x.store(y.as_mut_ptr()) }
}

/// `y = a x + b y`; the factors are one a column, real and imaginary parts apart.
pub(super) struct Axpby<'a, F> {
    pub a: [&'a [F]; 2],
    pub b: [&'a [F]; 2],
    pub complex: bool,
    pub x: &'a [F],
    pub y: &'a mut [F],
}

impl<F: BlockReal> Axpby<'_, F> {
    /// One real factor for all: rows and columns make no difference.
    #[inline(always)]
    fn uniform<Q: Pack<F>>(self) {
        let (zero, keep) = (F::default(), self.b[0][0] != F::default());
        let (a, b) = (Q::splat(self.a[0][0]), Q::splat(self.b[0][0]));
        let whole = self.y.len() / Q::WIDTH * Q::WIDTH;
        for at in (0..whole).step_by(Q::WIDTH) {
            let old = if keep { b.mul(load(self.y, at)) } else { Q::splat(zero) };
            store(a.mla(load(self.x, at), old), self.y, at);
        }
        for (x, y) in self.x[whole..].iter().zip(&mut self.y[whole..]) {
            *y = self.a[0][0] * *x + if keep { self.b[0][0] * *y } else { zero };
        }
    }
}

impl<F: BlockReal> PackedWork<F> for Axpby<'_, F> {
    type Output = ();
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<F>, Q: Pack<F>>(self) {
        let (zero, columns) = (F::default(), self.a[0].len());
        let real = self.a[1].iter().chain(self.b[1]).all(|&x| x == zero);
        let same = |z: &[F]| z.iter().all(|&x| x == z[0]);
        if real && same(self.a[0]) && same(self.b[0]) {
            return self.uniform::<Q>();
        }
        let keep = self.b.iter().any(|b| b.iter().any(|&x| x != zero));
        let stride = columns * if self.complex { 2 } else { 1 };
        let minus = P::splat(F::from_f64(-1.0));
        for (x, y) in self.x.chunks_exact(stride).zip(self.y.chunks_exact_mut(stride)) {
            for c in (0..columns).step_by(P::WIDTH) {
                let (ar, ai): (P, P) = (load(self.a[0], c), load(self.a[1], c));
                let (br, bi): (P, P) = (load(self.b[0], c), load(self.b[1], c));
                if !self.complex {
                    let old = if keep { br.mul(load(y, c)) } else { P::splat(zero) };
                    store(ar.mla(load(x, c), old), y, c);
                    continue;
                }
                let (xr, xi): (P, P) = (load(x, c), load(x, columns + c));
                let mut re = ar.mla(xr, minus.mul(ai).mul(xi));
                let mut im = ar.mla(xi, ai.mul(xr));
                if keep {
                    let (yr, yi): (P, P) = (load(y, c), load(y, columns + c));
                    re = br.mla(yr, minus.mul(bi).mla(yi, re));
                    im = br.mla(yi, bi.mla(yr, im));
                }
                store(re, y, c);
                store(im, y, columns + c);
            }
        }
    }
}

/// Column-wise `<x|y>`: real parts, then imaginary ones for complex blocks.
pub(super) struct ColumnDots<'a, F> {
    pub columns: usize,
    pub complex: bool,
    pub x: &'a [F],
    pub y: &'a [F],
}

impl<F: BlockReal> ColumnDots<'_, F> {
    /// A single column: rows side by side take the place of columns.
    #[inline(always)]
    fn single(self) -> Vec<f64> {
        let parts = if self.complex { 2 } else { 1 };
        let (mut re, mut im) = (0.0, 0.0);
        for (x, y) in self.x.chunks(STRIP * SIDE).zip(self.y.chunks(STRIP * SIDE)) {
            let (mut even, mut odd) = ([F::default(); SIDE], [F::default(); SIDE / 2]);
            let (xs, ys) = (x.chunks_exact(SIDE), y.chunks_exact(SIDE));
            for (x, y) in xs.remainder().chunks(parts).zip(ys.remainder().chunks(parts)) {
                for k in 0..parts {
                    even[k] += x[k] * y[k];
                }
                if parts == 2 {
                    odd[0] += x[0] * y[1] - x[1] * y[0];
                }
            }
            for (x, y) in xs.zip(ys) {
                for k in 0..SIDE {
                    even[k] += x[k] * y[k];
                }
                if parts == 2 {
                    for k in 0..SIDE / 2 {
                        odd[k] += x[2 * k] * y[2 * k + 1] - x[2 * k + 1] * y[2 * k];
                    }
                }
            }
            re += even.iter().map(|x| x.to_f64()).sum::<f64>();
            im += odd.iter().map(|x| x.to_f64()).sum::<f64>();
        }
        if self.complex { vec![re, im] } else { vec![re] }
    }
}

impl<F: BlockReal> PackedWork<F> for ColumnDots<'_, F> {
    type Output = Vec<f64>;
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<F>, Q: Pack<F>>(self) -> Vec<f64> {
        if self.columns == 1 {
            return self.single();
        }
        let columns = self.columns;
        let parts = if self.complex { 2 } else { 1 };
        let stride = parts * columns;
        let mut sums = vec![0.0; stride];
        let minus = P::splat(F::from_f64(-1.0));
        for (x, y) in self.x.chunks(STRIP * stride).zip(self.y.chunks(STRIP * stride)) {
            for c in (0..columns).step_by(P::WIDTH) {
                let (mut re, mut im) = (P::splat(F::default()), P::splat(F::default()));
                for (x, y) in x.chunks_exact(stride).zip(y.chunks_exact(stride)) {
                    let (xr, yr): (P, P) = (load(x, c), load(y, c));
                    re = xr.mla(yr, re);
                    if self.complex {
                        let (xi, yi): (P, P) = (load(x, columns + c), load(y, columns + c));
                        re = xi.mla(yi, re);
                        im = xr.mla(yi, minus.mul(xi).mla(yr, im));
                    }
                }
                re.add_to(&mut sums[c..]);
                if self.complex {
                    im.add_to(&mut sums[columns + c..]);
                }
            }
        }
        sums
    }
}

/// `sum over rows of x[row, i] y[row, j]` for all lanes i and j, row-major: `across` times `lanes` numbers.
pub(super) struct Gram<'a, F> {
    pub across: usize,
    pub lanes: usize,
    pub x: &'a [F],
    pub y: &'a [F],
}

impl<F: BlockReal> Gram<'_, F> {
    /// `N` lanes of `x` from `i` on with a pack of those of `y`, over a strip.
    #[inline(always)]
    fn tile<P: Pack<F>, const N: usize>(&self, x: &[F], y: &[F], (i, j): (usize, usize), sums: &mut [f64]) {
        let mut tile = [P::splat(F::default()); N];
        for (x, y) in x.chunks_exact(self.across).zip(y.chunks_exact(self.lanes)) {
            let y: P = load(y, j);
            for (k, sum) in tile.iter_mut().enumerate() {
                *sum = P::splat(x[i + k]).mla(y, *sum);
            }
        }
        for (k, sum) in tile.into_iter().enumerate() {
            sum.add_to(&mut sums[(i + k) * self.lanes + j..]);
        }
    }
}

impl<F: BlockReal> PackedWork<F> for Gram<'_, F> {
    type Output = Vec<f64>;
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<F>, Q: Pack<F>>(self) -> Vec<f64> {
        let mut sums = vec![0.0; self.across * self.lanes];
        let (xs, ys) = (self.x.chunks(STRIP * self.across), self.y.chunks(STRIP * self.lanes));
        for (x, y) in xs.zip(ys) {
            for j in (0..self.lanes).step_by(P::WIDTH) {
                let mut i = 0;
                while i + 8 <= self.across {
                    self.tile::<P, 8>(x, y, (i, j), &mut sums);
                    i += 8;
                }
                while i < self.across {
                    self.tile::<P, 1>(x, y, (i, j), &mut sums);
                    i += 1;
                }
            }
        }
        sums
    }
}

/// `Y = X C + b Y`, all real: `C` has `across` rows of `lanes` numbers.
pub(super) struct Combine<'a, F> {
    pub across: usize,
    pub lanes: usize,
    pub c: &'a [F],
    pub b: F,
    pub x: &'a [F],
    pub y: &'a mut [F],
}

impl<F: BlockReal> Combine<'_, F> {
    /// A pack of lanes of `N` rows.
    #[inline(always)]
    fn tile<P: Pack<F>, const N: usize>(&mut self, row: usize, j: usize) {
        let mut tile = [P::splat(F::default()); N];
        for i in 0..self.across {
            let c: P = load(self.c, i * self.lanes + j);
            for (k, sum) in tile.iter_mut().enumerate() {
                *sum = P::splat(self.x[(row + k) * self.across + i]).mla(c, *sum);
            }
        }
        for (k, sum) in tile.into_iter().enumerate() {
            let at = (row + k) * self.lanes + j;
            let sum = if self.b == F::default() { sum } else { P::splat(self.b).mla(load(self.y, at), sum) };
            store(sum, self.y, at);
        }
    }

    /// A single lane out of many: each row is a scalar product.
    #[inline(always)]
    fn single(self) {
        for (x, y) in self.x.chunks_exact(self.across).zip(self.y.iter_mut()) {
            let mut sums = [F::default(); 8];
            let (xs, cs) = (x.chunks_exact(8), self.c.chunks_exact(8));
            for (sum, (x, c)) in sums.iter_mut().zip(xs.remainder().iter().zip(cs.remainder())) {
                *sum = *x * *c;
            }
            for (x, c) in xs.zip(cs) {
                for k in 0..8 {
                    sums[k] += x[k] * c[k];
                }
            }
            let sum = (0..4).map(|k| sums[k] + sums[k + 4]).fold(F::default(), |a, b| a + b);
            *y = if self.b == F::default() { sum } else { self.b * *y + sum };
        }
    }
}

impl<F: BlockReal> PackedWork<F> for Combine<'_, F> {
    type Output = ();
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<F>, Q: Pack<F>>(mut self) {
        if self.lanes == 1 {
            return self.single();
        }
        let rows = self.y.len() / self.lanes;
        let mut row = 0;
        while row + 8 <= rows {
            for j in (0..self.lanes).step_by(P::WIDTH) {
                self.tile::<P, 8>(row, j);
            }
            row += 8;
        }
        while row < rows {
            for j in (0..self.lanes).step_by(P::WIDTH) {
                self.tile::<P, 1>(row, j);
            }
            row += 1;
        }
    }
}
