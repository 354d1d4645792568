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
/// moduli beyond 1e154 count as infinite, those below 1e-162 as zero. Squares are compared as whole numbers, which have
/// the same order, NaN last: of these a processor compares several at once.
pub fn largest(a: MatRef<'_, C64>) -> f64 {
    let mut most = 0u64;
    for j in 0..a.ncols() {
        for x in a.col(j).iter() {
            most = most.max(x.norm_sqr().to_bits());
        }
    }
    f64::from_bits(most).sqrt()
}

/// `1 - x`.
pub fn one_less(x: &Mat<C64>) -> Mat<C64> {
    Mat::from_fn(x.nrows(), x.ncols(), |i, j| if i == j { C64::ONE - x[(i, j)] } else { -x[(i, j)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_modulus_is_no_number_where_one_is_none() {
        let of = |odd: C64| {
            largest(Mat::from_fn(3, 5, |i, j| if (i, j) == (1, 3) { odd } else { C64::I }).as_ref())
        };
        assert_eq!(of(C64::ZERO), 1.0);
        assert_eq!(of(C64::new(-3.0, 4.0)), 5.0);
        assert_eq!(of(C64::new(f64::NEG_INFINITY, 0.0)), f64::INFINITY);
        for nan in [f64::NAN, -f64::NAN] {
            assert!(of(C64::new(nan, 0.0)).is_nan() && of(C64::new(f64::INFINITY, nan)).is_nan());
        }
        assert_eq!(largest(Mat::<C64>::zeros(0, 3).as_ref()), 0.0);
    }
}
