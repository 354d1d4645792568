//! Small dense matrices of complex numbers: inverse, largest element, difference to one, products of columns.

use crate::number::C64;
use faer::linalg::matmul::triangular::{BlockStructure, matmul};
use faer::prelude::*;
use faer::{Accum, Mat, MatRef};

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

/// The sum of `x^dagger x` of matrices with so many columns: one half of it is computed.
pub fn gram(all: &[Mat<C64>], columns: usize) -> Mat<C64> {
    let mut sum = Mat::<C64>::zeros(columns, columns);
    for x in all {
        let by = faer::get_global_parallelism();
        matmul(
            &mut sum,
            BlockStructure::TriangularLower,
            Accum::Add,
            x.adjoint(),
            BlockStructure::Rectangular,
            x,
            BlockStructure::Rectangular,
            C64::ONE,
            by,
        );
    }
    Mat::from_fn(columns, columns, |i, j| if i >= j { sum[(i, j)] } else { sum[(j, i)].conj() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_columns_are_those_of_the_whole_matrix() {
        let part = |rows: usize, own: f64| {
            Mat::from_fn(rows, 7, |i, j| C64::new((own + 1.3 * i as f64 + j as f64).sin(), (i * j) as f64))
        };
        let parts = [part(5, 0.1), part(0, 0.0), part(12, 0.7), part(1, 2.0)];
        let plain = parts.iter().fold(Mat::<C64>::zeros(7, 7), |sum, x| sum + x.adjoint() * x);
        assert!(largest((gram(&parts, 7) - &plain).as_ref()) < 1e-14 * largest(plain.as_ref()));
        assert_eq!(gram(&[Mat::zeros(3, 0)], 0).nrows(), 0);
    }

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
