//! Cosine transforms: between the coefficients of a Chebyshev series and its values at Chebyshev points, whose number
//! is a power of two.

use std::f64::consts::PI;

use crate::number::C64;

/// The first coefficients of the series of a function from its values at the points cos(pi (j + 1/2)/n), by
/// Gauss-Chebyshev quadrature; the first counts fully. This cosine transform follows from a Fourier transform of the
/// points in another order: the even ones, then the odd ones backwards (Makhoul, IEEE Trans. ASSP 28 (1980) 27).
pub(super) fn coefficients(values: &[C64], terms: usize) -> Vec<C64> {
    let n = values.len();
    let mut v: Vec<C64> = values.iter().step_by(2).copied().collect();
    v.extend(values.iter().skip(1).step_by(2).rev());
    // Rounding would make the series of a real function complex.
    let real = values.iter().all(|z| z.im == 0.0);
    fourier(&mut v);
    let turn = |k: usize| C64::cis(-0.5 * PI * k as f64 / n as f64);
    (0..terms)
        .map(|k| {
            let sum = turn(k) * v[k] + turn(k).conj() * v[(n - k) % n];
            let c = sum * if k == 0 { 0.5 } else { 1.0 } / n as f64;
            if real { c.re.into() } else { c }
        })
        .collect()
}

/// The values of a series at the points cos(pi j/n), j = 0 .. n, for more points than coefficients.
pub(super) fn values(coefficients: &[f64], n: usize) -> Vec<f64> {
    let mut v = vec![C64::ZERO; 2 * n];
    v.iter_mut().zip(coefficients).for_each(|(v, c)| *v = (*c).into());
    fourier(&mut v);
    v[..=n].iter().map(|z| z.re).collect()
}

/// sum_j v_j exp(-2 pi i j k/n) in place; the length n is a power of two (Cooley and Tukey).
fn fourier(v: &mut [C64]) {
    let n = v.len();
    let bits = n.trailing_zeros();
    for j in 0..n {
        let k = if bits == 0 { 0 } else { j.reverse_bits() >> (usize::BITS - bits) };
        if j < k {
            v.swap(j, k);
        }
    }
    let turns: Vec<C64> =
        (0..n / 2).map(|j| C64::cis(-2.0 * std::f64::consts::PI * j as f64 / n as f64)).collect();
    let mut half = 1;
    while half < n {
        for block in v.chunks_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (j, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let turned = *b * turns[j * (n / (2 * half))];
                (*a, *b) = (*a + turned, *a - turned);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_what_it_is_term_by_term() {
        for n in [1usize, 2, 8, 64] {
            let c: Vec<f64> = (0..n).map(|k| (1.7 * k as f64).sin() / (1.0 + k as f64)).collect();
            let term = |angle: f64| -> f64 { (0..n).map(|k| c[k] * (k as f64 * angle).cos()).sum() };
            for (j, found) in values(&c, n).into_iter().enumerate() {
                assert!((found - term(PI * j as f64 / n as f64)).abs() < 1e-14 * n as f64, "{n} {j}");
            }
            let at: Vec<C64> = (0..n).map(|j| term(PI * (j as f64 + 0.5) / n as f64).into()).collect();
            for (found, c) in coefficients(&at, n).into_iter().zip(&c) {
                assert!((found - c).norm() < 1e-14 * n as f64, "{n}");
            }
        }
    }
}
