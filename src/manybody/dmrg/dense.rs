//! Small dense decompositions on one thread: sectors are dealt out to threads, not split.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::{evd, svd};
use faer::{Accum, Mat, MatRef, Par};

use crate::backend::matrix::records::Element;
use crate::error::{Error, Result};

/// Eigenvalues, ascending, and eigenvectors of a Hermitian matrix.
pub(super) fn eigh<T: Element>(a: MatRef<'_, T>) -> Result<(Vec<f64>, Mat<T>)> {
    let n = a.nrows();
    let (mut values, mut vectors) = (faer::Mat::<T>::zeros(n, 1), Mat::zeros(n, n));
    let request =
        evd::self_adjoint_evd_scratch::<T>(n, evd::ComputeEigenvectors::Yes, Par::Seq, Default::default());
    let done = evd::self_adjoint_evd(
        a,
        values.as_mut().col_mut(0).as_diagonal_mut(),
        Some(vectors.as_mut()),
        Par::Seq,
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
