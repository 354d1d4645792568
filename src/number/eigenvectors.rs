//! Eigenvectors of defective matrices, which have too few of them. Back-substitution divides by differences of
//! eigenvalues; where two are equal it gives vectors that are zero or not finite.

use faer::MatRef;

use super::scalar::dot;
use super::{C64, complex};
use crate::error::{Error, Result};

/// Largest |a v - value v| of a unit vector, per row and relative to the largest element of a.
const RESIDUAL: f64 = 1e-9;

/// Two eigenvectors with a larger overlap count as the same.
const PARALLEL: f64 = 1.0 - 1e-9;

/// Unit eigenvectors of `a` for its eigenvalues: the given vectors where they are good, else those with the smallest
/// |(a - value) v|.
pub(super) fn repaired(
    a: MatRef<'_, C64>,
    values: &[C64],
    vector: impl Fn(usize) -> Vec<C64>,
) -> Result<Vec<Vec<C64>>> {
    let n = a.nrows();
    let size = (0..n).flat_map(|i| (0..n).map(move |j| a.get(i, j).norm())).fold(0.0, f64::max);
    let mut vectors: Vec<Vec<C64>> = Vec::with_capacity(n);
    // The last decomposition, with its eigenvalue and how many of its vectors were taken.
    let mut last: Option<(C64, Vec<Vec<C64>>, usize)> = None;
    for (k, &value) in values.iter().enumerate() {
        let found = unit(vector(k)).filter(|v| residual(a, value, v) <= RESIDUAL * size * n as f64);
        if let Some(found) = found {
            vectors.push(found);
            continue;
        }
        let same = |other: C64| (other - value).norm() <= 1e-12 * size;
        if !last.as_ref().is_some_and(|(other, ..)| same(*other)) {
            last = Some((value, null_vectors(a, value, size)?, 0));
        }
        let Some((_, null, taken)) = &mut last else { continue };
        // A defective matrix has fewer vectors than eigenvalues: they are used again.
        vectors.push(null[*taken % null.len()].clone());
        *taken += 1;
    }
    Ok(vectors)
}

/// Whether two of the vectors, sorted by eigenvalue, are the same.
pub(super) fn some_parallel(values: &[C64], vectors: &[Vec<C64>]) -> bool {
    let size = values.iter().map(|z| z.norm()).fold(0.0, f64::max);
    let close = |i: usize, j: usize| (values[i] - values[j]).norm() <= 1e-3 * size;
    (0..values.len()).any(|i| {
        (i + 1..values.len())
            .take_while(|&j| values[j].re - values[i].re <= 1e-3 * size)
            .any(|j| close(i, j) && dot(&vectors[i], &vectors[j]).norm() > PARALLEL)
    })
}

/// The vector scaled to length one; none if it is zero or not finite.
fn unit(vector: Vec<C64>) -> Option<Vec<C64>> {
    let large =
        vector.iter().map(|z| z.re.abs().max(z.im.abs())).fold(0.0, |a, b| if b <= a { a } else { b });
    if !(large > 0.0 && large.is_finite()) {
        return None;
    }
    let scaled: Vec<C64> = vector.into_iter().map(|z| z / large).collect();
    let norm = scaled.iter().map(C64::norm_sqr).sum::<f64>().sqrt();
    Some(scaled.into_iter().map(|z| z / norm).collect())
}

/// A vector whose elements are multiplied by powers of two, of length one.
pub(super) fn in_units(vector: Vec<C64>, powers: &[i32]) -> Vec<C64> {
    let sizes = vector.iter().zip(powers).filter_map(|(z, p)| complex::exponent(*z).map(|e| e + p));
    let largest = sizes.max().unwrap_or(0);
    let scaled = vector.iter().zip(powers).map(|(z, p)| complex::scale(*z, p - largest)).collect();
    unit(scaled).unwrap_or(vector)
}

fn residual(a: MatRef<'_, C64>, value: C64, v: &[C64]) -> f64 {
    let row = |i: usize| (0..v.len()).map(|j| *a.get(i, j) * v[j]).sum::<C64>() - value * v[i];
    (0..v.len()).map(|i| row(i).norm()).fold(0.0, |a, b| if b <= a { a } else { b })
}

/// The right singular vectors of `a - value` whose singular values are zero to rounding; the last if none is.
fn null_vectors(a: MatRef<'_, C64>, value: C64, size: f64) -> Result<Vec<Vec<C64>>> {
    let n = a.nrows();
    let mut shifted = a.to_owned();
    for i in 0..n {
        shifted[(i, i)] -= value;
    }
    let svd =
        shifted.svd().map_err(|_| Error::numeric(format!("eig of a {n} x {n} matrix did not converge")))?;
    let small = |j: usize| svd.S().column_vector().get(j).re <= 1e-10 * size * n as f64;
    let column = |j: usize| (0..n).map(|i| *svd.V().get(i, j)).collect::<Vec<C64>>();
    // Descending, so that the smallest come last.
    Ok((0..n).rev().take_while(|&j| j + 1 == n || small(j)).map(column).collect())
}
