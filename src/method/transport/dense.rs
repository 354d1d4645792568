//! Small dense matrices of complex numbers: inverse, largest element, difference to one.

use crate::number::C64;
use faer::prelude::*;
use faer::{Mat, MatRef};

/// The inverse, if it is finite.
pub fn inverse(a: MatRef<'_, C64>) -> Option<Mat<C64>> {
    let x = a.partial_piv_lu().solve(&Mat::<C64>::identity(a.nrows(), a.nrows()));
    largest(x.as_ref()).is_finite().then_some(x)
}

/// The largest modulus; NaN if there is one. By squares, as roots of sums take longer than what they are looked at for:
/// moduli beyond 1e154 count as infinite, those below 1e-162 as zero.
pub fn largest(a: MatRef<'_, C64>) -> f64 {
    let mut most = 0.0f64;
    for j in 0..a.ncols() {
        for i in 0..a.nrows() {
            let x = a[(i, j)].norm_sqr();
            if !(x <= most) {
                most = x;
            }
            if x.is_nan() {
                return x;
            }
        }
    }
    most.sqrt()
}

/// `1 - x`.
pub fn one_less(x: &Mat<C64>) -> Mat<C64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if i == j { C64::ONE - x[(i, j)] } else { -x[(i, j)] })
}
