//! Corrections of Davidson's method for a basis that is a list of real columns. Its columns and their images are read
//! from memory once: a strip of them stays in the second cache while all that is asked of it is made.

use super::algebra::away_from_zero;
use super::lists::{StripSums, add};
use super::pack::{Pack, PackedWork, dispatch};
use super::{Isa, Threads, lists, single};
use crate::backend::{BlockVector, RitzCorrection};
use crate::error::Result;
use crate::number::C64;

/// Rows of a strip.
const STRIP: usize = 512;

/// [`crate::backend::Lists::correct`] of columns that [`single::serve`] takes.
pub(super) fn pair(
    (threads, isa): (&Threads, Isa),
    of: RitzCorrection,
    kr: &mut BlockVector,
    kx: &mut BlockVector,
) -> Result<Vec<C64>> {
    let (v, w) = (lists::columns(of.basis)?, lists::columns(of.images)?);
    let (d, s): (&[f64], Vec<f64>) =
        (single::column(of.diagonal)?, of.coefficients.iter().map(|z| z.re).collect());
    let ranges = single::ranges(threads, kr.rows().local);
    let mut parts = Vec::with_capacity(ranges.len());
    let (mut rest_r, mut rest_x) = (single::column_mut(kr)?, single::column_mut(kx)?);
    for range in &ranges {
        let (kr, others_r) = rest_r.split_at_mut(range.len());
        let (kx, others_x) = rest_x.split_at_mut(range.len());
        (rest_r, rest_x) = (others_r, others_x);
        parts.push((kr, kx, Vec::new()));
    }
    let each: Vec<_> = (0..parts.len()).map(|i| i..i + 1).collect();
    let (v, w, s) = (&v[..], &w[..], &s[..]);
    threads.run(&each, 1, &mut parts, |at, part| {
        let from = ranges[at.start].start;
        for (kr, kx, sums) in part {
            let RitzCorrection { value, shift, floor, .. } = of;
            *sums =
                dispatch(isa, lists::width(isa), PairRows { v, w, d, s, value, shift, floor, from, kr, kx });
        }
    })?;
    let count = 2 * v.len() + 4;
    let sum = |k: usize| C64::new(parts.iter().map(|(_, _, sums)| sums[k]).sum(), 0.0);
    Ok((0..count).map(sum).collect())
}

/// The rows from `from` on.
struct PairRows<'a, 'b> {
    v: &'a [&'a [f64]],
    w: &'a [&'a [f64]],
    d: &'a [f64],
    s: &'a [f64],
    value: f64,
    shift: f64,
    floor: f64,
    from: usize,
    kr: &'b mut [f64],
    kx: &'b mut [f64],
}

impl PackedWork<f64> for PairRows<'_, '_> {
    type Output = Vec<f64>;
    const WIDEST: bool = false;

    #[inline(always)]
    fn at<P: Pack<f64>, Q: Pack<f64>>(self) -> Vec<f64> {
        let n = self.v.len();
        let (mut x, mut r) = ([0.0; STRIP], [0.0; STRIP]);
        // V and both results with both results, and r with itself.
        let (mut with_both, mut with_itself) = (StripSums::<P>::new(n + 2, 2), StripSums::<P>::new(1, 1));
        let mut at = 0;
        while at < self.kr.len() {
            let end = (at + STRIP).min(self.kr.len());
            let rows = self.from + at..self.from + end;
            let (x, r) = (&mut x[..end - at], &mut r[..end - at]);
            x.fill(0.0);
            r.fill(0.0);
            for (list, to) in [(self.v, &mut *x), (self.w, &mut *r)] {
                let one = |k: usize| (&list[k][rows.clone()], C64::new(self.s[k], 0.0));
                let mut k = 0;
                while k + 4 <= n {
                    add::<P, 4>([one(k), one(k + 1), one(k + 2), one(k + 3)], to);
                    k += 4;
                }
                while k < n {
                    add::<P, 1>([one(k)], to);
                    k += 1;
                }
            }
            let (kr, kx, d) = (&mut self.kr[at..end], &mut self.kx[at..end], &self.d[rows.clone()]);
            for ((((d, r), x), kr), kx) in d.iter().zip(&mut *r).zip(&*x).zip(&mut *kr).zip(&mut *kx) {
                *r -= self.value * x;
                let inverse = 1.0 / away_from_zero(self.shift, *d, self.floor);
                (*kr, *kx) = (*r * inverse, x * inverse);
            }
            let (kr, kx) = (&*kr, &*kx);
            let mut all: Vec<&[f64]> = Vec::with_capacity(n + 2);
            for v in self.v {
                all.push(&v[rows.clone()]);
            }
            all.extend([kr, kx]);
            with_both.add(&all, &[kr, kx]);
            with_itself.add(&[&*r], &[&*r]);
            at = end;
        }
        let both = with_both.finish();
        let mut sums: Vec<f64> = (0..n).map(|k| both[2 * k]).collect();
        sums.extend((0..n).map(|k| both[2 * k + 1]));
        sums.extend([both[2 * n], both[2 * n + 1], both[2 * n + 3]]);
        sums.extend(with_itself.finish());
        sums
    }
}
