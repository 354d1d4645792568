//! Krylov spaces of maps between the bonds of an infinite chain, which are not Hermitian: linear systems (GMRES: Saad,
//! Schultz 1986) and the largest eigenvalues (Arnoldi 1951).

use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};
use crate::number::scalar::{dot, norm};
use crate::number::{C64, Matrix, Scalar, Series};

/// Basis vectors before GMRES starts anew.
const RESTART: usize = 40;
/// The vectors that it holds at most.
pub(super) const REMEMBERED: usize = RESTART + 4;
/// Directions below this, relative to what they were made of, are rounding: the space is exhausted.
const EXHAUSTED: f64 = 1e-14;

fn add<T: Element>(y: &mut [T], z: T, x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += z * *x);
}

fn scaled<T: Element>(x: &[T], z: f64) -> Vec<T> {
    let z = T::from_c64(z.into());
    x.iter().map(|x| *x * z).collect()
}

/// Orthogonalises `v` against a basis, twice; the coefficients and what is left.
fn orthogonalise<T: Element>(basis: &[Vec<T>], v: &mut [T]) -> (Vec<C64>, f64) {
    let before = norm(v);
    let mut h = vec![C64::ZERO; basis.len()];
    for _ in 0..2 {
        for (q, h) in basis.iter().zip(&mut h) {
            let z = dot(q, v);
            add(v, -z, q);
            *h += z.to_c64();
        }
    }
    let left = norm(v);
    (h, if left <= EXHAUSTED * before { 0.0 } else { left })
}

/// Solves `A x = b` from the start `x`; returns the norm of the residual. A residual of `tol` is enough.
///
/// # Errors
/// Those of the map; interruption.
pub(super) fn gmres<T: Element>(
    a: &mut dyn FnMut(&[T]) -> Result<Vec<T>>,
    b: &[T],
    x: &mut [T],
    tol: f64,
    most: usize,
) -> Result<f64> {
    let mut steps = 0;
    let mut last = f64::INFINITY;
    loop {
        crate::task::poll()?;
        let mut r = b.to_vec();
        add(&mut r, T::from_c64((-1.0).into()), &a(x)?);
        let beta = norm(&r);
        if !beta.is_finite() {
            return Err(Error::numeric("the surroundings of a cell have numbers that are not finite")
                .hint("the couplings may be too large or too small: energies of about 1 are best"));
        }
        if beta <= tol || steps >= most || beta > 0.9 * last {
            return Ok(beta);
        }
        last = beta;
        let mut basis = vec![scaled(&r, 1.0 / beta)];
        let mut columns: Vec<Vec<C64>> = Vec::new();
        let mut turns: Vec<(f64, C64)> = Vec::new();
        let mut rest = vec![C64::from(beta)];
        while columns.len() < RESTART && steps < most {
            steps += 1;
            let k = columns.len();
            let mut v = a(&basis[k])?;
            let (mut h, left) = orthogonalise(&basis, &mut v);
            // Earlier rotations, then one that removes the new element below the diagonal.
            for (j, &(c, s)) in turns.iter().enumerate() {
                let (x, y) = (h[j], h[j + 1]);
                h[j] = c * x + s * y;
                h[j + 1] = -s.conj() * x + c * y;
            }
            let d = h[k].norm().hypot(left);
            if d == 0.0 {
                break;
            }
            let (c, s) = if h[k] == C64::ZERO {
                (0.0, C64::ONE)
            } else {
                (h[k].norm() / d, (h[k] / h[k].norm()) * left / d)
            };
            h[k] = c * h[k] + s * left;
            turns.push((c, s));
            rest.push(-s.conj() * rest[k]);
            rest[k] *= c;
            columns.push(h);
            if left == 0.0 || rest[k + 1].norm() <= 0.5 * tol {
                break;
            }
            basis.push(scaled(&v, 1.0 / left));
        }
        let n = columns.len();
        let mut y = rest[..n].to_vec();
        for i in (0..n).rev() {
            for j in i + 1..n {
                y[i] = y[i] - columns[j][i] * y[j];
            }
            y[i] /= columns[i][i];
        }
        for (q, y) in basis.iter().zip(&y) {
            add(x, T::from_c64(*y), q);
        }
        if n == 0 {
            return Ok(beta);
        }
    }
}

/// An eigenvalue of the largest moduli, with its vector and the norm of its residual.
pub(super) struct Eigenpair {
    pub value: C64,
    pub vector: Vec<C64>,
    pub residual: f64,
}

/// The `count` eigenvalues of the largest moduli of a map, descending, by a Krylov space of at most `most` vectors;
/// fewer if the space from `start` has fewer.
///
/// # Errors
/// Those of the map; interruption; when the small problem does not converge.
pub(super) fn largest<T: Element>(
    a: &mut dyn FnMut(&[T]) -> Result<Vec<T>>,
    start: &[T],
    count: usize,
    tol: f64,
    most: usize,
) -> Result<Vec<Eigenpair>> {
    let size = norm(start);
    if !(size > 0.0) || !size.is_finite() {
        return Ok(Vec::new());
    }
    let most = most.min(start.len());
    let mut basis = vec![scaled(start, 1.0 / size)];
    let mut columns: Vec<Vec<C64>> = Vec::new();
    loop {
        crate::task::poll()?;
        let mut v = a(&basis[columns.len()])?;
        let (mut h, left) = orthogonalise(&basis, &mut v);
        h.push(left.into());
        columns.push(h);
        let n = columns.len();
        let whole = left == 0.0 || n >= most;
        if whole || (n >= count + 2 && n.is_multiple_of(5)) {
            let element = |i: usize, j: usize| columns[j].get(i).copied().unwrap_or_default();
            let data = (0..n * n).map(|k| element(k / n, k % n)).collect();
            let (values, vectors, _) = Matrix::new(n, n, Series::Complex(data))?.eig()?;
            let values = values.to_complex();
            let vectors = vectors.data().to_complex();
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&i, &j| values[j].norm().total_cmp(&values[i].norm()));
            order.truncate(count);
            let residual = |k: usize| left * vectors[(n - 1) * n + k].norm();
            if whole || order.iter().all(|&k| residual(k) <= tol) {
                let pair = |&k: &usize| {
                    let mut vector = vec![C64::ZERO; start.len()];
                    for (i, q) in basis.iter().take(n).enumerate() {
                        let z = vectors[i * n + k];
                        vector.iter_mut().zip(q).for_each(|(x, q)| *x += z * q.to_c64());
                    }
                    Eigenpair { value: values[k], vector, residual: residual(k) }
                };
                return Ok(order.iter().map(pair).collect());
            }
        }
        basis.push(scaled(&v, 1.0 / left));
    }
}

/// The `count` lowest eigenvalues of a Hermitian map, ascending, with vectors and the norms of their residuals, by
/// Krylov spaces of at most `most` vectors (Lanczos 1950, orthogonalised in full). Further spaces orthogonal to what
/// was found look for equal ones.
///
/// # Errors
/// Those of the map; interruption; when the small problem does not converge.
pub(super) fn lowest(
    a: &mut dyn FnMut(&[C64]) -> Result<Vec<C64>>,
    start: &dyn Fn(u64) -> Vec<C64>,
    dim: usize,
    count: usize,
    tol: f64,
    most: usize,
) -> Result<Vec<(f64, Vec<C64>, f64)>> {
    let mut found: Vec<(f64, Vec<C64>, f64)> = Vec::new();
    for round in 0..=count as u64 {
        let known: Vec<Vec<C64>> = found.iter().map(|f| f.1.clone()).collect();
        let room = dim - known.len();
        let wanted = count.min(room);
        if wanted == 0 {
            break;
        }
        let mut v = start(round);
        orthogonalise(&known, &mut v);
        let size = norm(&v);
        let mut basis = vec![scaled(&v, 1.0 / size)];
        let mut small: Vec<Vec<C64>> = Vec::new();
        let new = loop {
            crate::task::poll()?;
            let mut v = a(&basis[small.len()])?;
            orthogonalise(&known, &mut v);
            let (h, left) = orthogonalise(&basis, &mut v);
            small.push(h);
            // Rounding towards what is known would grow, as it looks like an eigenvalue of zero.
            orthogonalise(&known, &mut v);
            let n = small.len();
            let whole = left == 0.0 || n >= most.min(room);
            if whole || (n > wanted + 1 && n.is_multiple_of(3)) {
                let element = |i: usize, j: usize| if i <= j { small[j][i] } else { small[i][j].conj() };
                let m = faer::Mat::from_fn(n, n, element);
                let (values, vectors) = super::super::dense::eigh(m.as_ref(), faer::Par::Seq)?;
                let residual = |k: usize| left * vectors[(n - 1, k)].norm();
                let some = wanted.min(n);
                if whole || (0..some).all(|k| residual(k) <= tol) {
                    let pair = |k: usize| {
                        let mut x = vec![C64::ZERO; dim];
                        basis.iter().take(n).enumerate().for_each(|(i, q)| add(&mut x, vectors[(i, k)], q));
                        (values[k], x, residual(k))
                    };
                    break (0..some).map(pair).collect::<Vec<_>>();
                }
            }
            basis.push(scaled(&v, 1.0 / left));
        };
        let full = found.len() >= count;
        let bound = found.get(count.wrapping_sub(1)).map_or(f64::INFINITY, |f| f.0);
        let more = !full || new.first().is_some_and(|f| f.0 < bound - 10.0 * tol);
        found.extend(new);
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.truncate(count);
        if !more {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n: usize) -> impl Fn(&[f64]) -> Result<Vec<f64>> {
        move |x: &[f64]| {
            let row = |i: usize| -> f64 {
                (0..n)
                    .map(|j| {
                        let diagonal = if i == j { 1.0 + i as f64 } else { 0.0 };
                        (diagonal + 0.3 * ((i * 7 + j * 3) as f64).sin()) * x[j]
                    })
                    .sum()
            };
            Ok((0..n).map(row).collect())
        }
    }

    #[test]
    fn systems_are_solved() {
        let mut a = matrix(60);
        let wanted: Vec<f64> = (0..60).map(|i| (i as f64).cos()).collect();
        let b = a(&wanted).expect("a product");
        let mut x = vec![0.0; 60];
        let left = gmres(&mut a, &b, &mut x, 1e-11, 1000).expect("a solution");
        assert!(left < 1e-11);
        assert!(x.iter().zip(&wanted).all(|(x, y)| (x - y).abs() < 1e-10));
    }

    #[test]
    fn eigenvalues_are_the_largest() {
        // A rotation by an angle, times 2, beside smaller values.
        let mut a = |x: &[f64]| {
            let mut y: Vec<f64> = x.iter().enumerate().map(|(i, x)| x / (1.0 + i as f64)).collect();
            (y[0], y[1]) = (1.2 * x[0] - 1.6 * x[1], 1.6 * x[0] + 1.2 * x[1]);
            Ok(y)
        };
        let found = largest(&mut a, &[1.0; 30], 3, 1e-12, 30).expect("eigenvalues");
        assert!((found[0].value.norm() - 2.0).abs() < 1e-12);
        assert!((found[0].value - found[1].value.conj()).norm() < 1e-12);
        assert!((found[2].value - 1.0 / 3.0).norm() < 1e-12);
        assert!((found[0].value.arg().abs() - 1.6f64.atan2(1.2)).abs() < 1e-12);
    }
}
