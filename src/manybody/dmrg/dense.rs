//! Dense products and decompositions of the sectors' matrices, and how they are shared among threads.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::{evd, svd};
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use crate::backend::matrix::records::{Element, Factor};
use crate::error::{Error, Result};

/// Operations below which a job is not worth splitting.
const LARGE: f64 = 1e8;

/// Weights below this, relative to their sum, are rounding of singular values.
pub(super) const FLOOR: f64 = 1e-30;

/// Does jobs of uneven size, each of about `work` operations. Small ones are distributed over the threads. One that
/// is more than a thread's fair share is split among all threads, as its [`Par`] says.
pub(super) fn deal<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> f64,
    run: impl Fn(&J, Par) -> R + Sync,
) -> Vec<R> {
    let all: f64 = jobs.iter().map(&work).sum();
    if all < LARGE / 1e3 {
        return jobs.iter().map(|j| run(j, Par::Seq)).collect();
    }
    let threads = rayon::current_num_threads();
    let fair = (all / threads as f64).max(LARGE);
    let split = |j: &J| threads > 1 && work(j) > fair;
    let (large, small): (Vec<usize>, Vec<usize>) = (0..jobs.len()).partition(|&k| split(&jobs[k]));
    let mut done: Vec<(usize, R)> =
        large.into_iter().map(|k| (k, run(&jobs[k], faer::get_global_parallelism()))).collect();
    done.par_extend(small.into_par_iter().map(|k| (k, run(&jobs[k], Par::Seq))));
    done.sort_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// Eigenvalues, ascending, and eigenvectors of a Hermitian matrix.
pub(super) fn eigh<T: Element>(a: MatRef<'_, T>, par: Par) -> Result<(Vec<f64>, Mat<T>)> {
    let n = a.nrows();
    let (mut values, mut vectors) = (faer::Mat::<T>::zeros(n, 1), Mat::zeros(n, n));
    let request =
        evd::self_adjoint_evd_scratch::<T>(n, evd::ComputeEigenvectors::Yes, par, Default::default());
    let done = evd::self_adjoint_evd(
        a,
        values.as_mut().col_mut(0).as_diagonal_mut(),
        Some(vectors.as_mut()),
        par,
        MemStack::new(&mut MemBuffer::new(request)),
        Default::default(),
    );
    done.map_err(|_| Error::numeric("the eigenvalues of a density matrix did not converge"))?;
    Ok(((0..n).map(|i| values[(i, 0)].re()).collect(), vectors))
}

/// The thin decomposition `U diag(s) V^H`, `s` descending.
pub(super) fn thin_svd<T: Element>(a: MatRef<'_, T>) -> Result<(Mat<T>, Vec<f64>, Mat<T>)> {
    let (m, n) = a.shape();
    let k = m.min(n);
    let (mut u, mut s, mut v) = (Mat::zeros(m, k), faer::Mat::<T>::zeros(k, 1), Mat::zeros(n, k));
    let thin = svd::ComputeSvdVectors::Thin;
    let request = svd::svd_scratch::<T>(m, n, thin, thin, Par::Seq, Default::default());
    let done = svd::svd(
        a,
        s.as_mut().col_mut(0).as_diagonal_mut(),
        Some(u.as_mut()),
        Some(v.as_mut()),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(request)),
        Default::default(),
    );
    done.map_err(|_| Error::numeric("the singular values of a state did not converge"))?;
    Ok((u, (0..k).map(|i| s[(i, 0)].re()).collect(), v))
}

/// `A B`.
pub(super) fn product<T: Element>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let mut c = Mat::zeros(a.nrows(), b.ncols());
    matmul(c.as_mut(), Accum::Replace, a, b, T::one_impl(), Par::Seq);
    c
}

/// `A^H B`.
pub(super) fn adjoint_product<T: Element>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> Mat<T> {
    let mut c = Mat::zeros(a.ncols(), b.ncols());
    matmul(c.as_mut(), Accum::Replace, a.adjoint(), b, T::one_impl(), Par::Seq);
    c
}

/// The sum of the squares of all elements.
pub(super) fn square<T: Element>(m: MatRef<'_, T>) -> f64 {
    (0..m.ncols()).map(|j| m.col(j).iter().map(|z| z.to_c64().norm_sqr()).sum::<f64>()).sum()
}

/// `A X` for the pieces of an operator A between two sectors; the result has `rows` rows.
pub(super) fn applied<T: Element>(factors: &[Factor<T>], rows: usize, x: MatRef<'_, T>, par: Par) -> Mat<T> {
    let mut y = Mat::<T>::zeros(rows, x.ncols());
    for f in factors {
        let mut y = y.as_mut().subrows_mut(f.row, f.rows);
        let x = x.subrows(f.column, f.columns);
        match &f.matrix {
            Some(a) => matmul(y, Accum::Add, a.as_ref(), x, f.scale, par),
            None => {
                for j in 0..x.ncols() {
                    for i in 0..x.nrows() {
                        y[(i, j)] += f.scale * x[(i, j)];
                    }
                }
            }
        }
    }
    y
}
