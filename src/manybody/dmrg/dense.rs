//! Dense products and decompositions of the sectors' matrices, and how they are shared among threads.

use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::matmul;
use faer::linalg::svd;
use faer::{Accum, Mat, MatRef, Par};

use crate::backend::DenseSolver;
use crate::backend::matrix::records::{Element, OperatorPiece};
use crate::error::{Error, ErrorKind, Result};
use crate::number::hermitian;
use crate::task::parallel;

/// Operations below which a job is not worth splitting.
const LARGE: f64 = 1e8;

/// Rows from which on a matrix is worth a way to a solver: a processor takes 15 ms for 252 rows, a GPU's solver 2.
pub(super) const FAR: usize = 192;
/// Threads that feed a solver.
pub(super) const FEEDERS: usize = 4;

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
    let rest = parallel::map(small.len(), |i| run(&jobs[small[i]], Par::Seq));
    done.extend(small.into_iter().zip(rest));
    done.sort_unstable_by_key(|d| d.0);
    done.into_iter().map(|d| d.1).collect()
}

/// Eigenvalues, ascending, and eigenvectors of a Hermitian matrix.
pub(super) fn eigh<T: Element>(a: MatRef<'_, T>, par: Par) -> Result<(Vec<f64>, Mat<T>)> {
    hermitian::eigh(a, par)
        .ok_or_else(|| Error::numeric("the eigenvalues of a density matrix did not converge"))
}

/// A Hermitian matrix to be diagonalised.
pub(super) enum Hermitian<'a, T> {
    Whole(Mat<T>),
    /// So many rows of the sum of `weight M M^H`.
    Squares(usize, &'a [(MatRef<'a, T>, f64)]),
}

impl<T: Element> Hermitian<'_, T> {
    fn rows(&self) -> usize {
        match self {
            Hermitian::Whole(m) => m.nrows(),
            Hermitian::Squares(rows, _) => *rows,
        }
    }

    /// Its eigenvalues, descending, and eigenvectors, by the processor.
    pub(super) fn solved(&self, par: Par) -> Result<(Vec<f64>, Mat<T>)> {
        let (values, vectors) = match self {
            Hermitian::Whole(m) => eigh(m.as_ref(), par)?,
            Hermitian::Squares(rows, terms) => eigh(squares(*rows, terms, par).as_ref(), par)?,
        };
        Ok(descending(values, vectors.as_ref()))
    }

    /// The same by a solver.
    fn solved_by(&self, solver: &dyn DenseSolver) -> Result<(Vec<f64>, Mat<T>)> {
        let n = self.rows();
        let mut numbers: Vec<T> = Vec::with_capacity(n * n);
        match self {
            Hermitian::Whole(m) => append(&mut numbers, m.as_ref()),
            Hermitian::Squares(rows, terms) => {
                append(&mut numbers, squares(*rows, terms, faer::get_global_parallelism()).as_ref());
            }
        }
        let values = solver.eigh(n, T::dense(&mut numbers))?;
        Ok(descending(values, MatRef::from_column_major_slice(&numbers, n, n)))
    }
}

/// The sum of `weight M M^H`.
pub(super) fn squares<T: Element>(rows: usize, terms: &[(MatRef<'_, T>, f64)], par: Par) -> Mat<T> {
    let mut sum = Mat::zeros(rows, rows);
    terms.iter().for_each(|(m, weight)| add_square(&mut sum, *m, *weight, par));
    sum
}

/// `sum += weight M M^H`.
pub(super) fn add_square<T: Element>(sum: &mut Mat<T>, m: MatRef<'_, T>, weight: f64, par: Par) {
    matmul(sum.as_mut(), Accum::Add, m, m.adjoint(), T::from_c64(weight.into()), par);
}

/// Eigenvalues, descending, and eigenvectors of several Hermitian matrices. A backend's solver takes large ones, one
/// after the other, while the threads take the others: who takes which does not depend on who is faster,
/// nor do the bits.
pub(super) fn eigh_all<'a, T: Element>(
    matrices: &[Hermitian<'_, T>],
    solver: impl FnOnce() -> Option<&'a dyn DenseSolver>,
) -> Result<Vec<(Vec<f64>, Mat<T>)>> {
    let size = |k: &usize| matrices[*k].rows();
    let mut order: Vec<usize> = (0..matrices.len()).collect();
    order.sort_by_key(|k| Reverse(size(k)));
    let large = order.first().is_some_and(|k| size(k) >= FAR);
    let Some(solver) = large.then(solver).flatten() else {
        let cost = |m: &Hermitian<'_, T>| 9.0 * (m.rows() as f64).powi(3);
        return deal(matrices, cost, |m, par| m.solved(par)).into_iter().collect();
    };
    let (large, small): (Vec<usize>, Vec<usize>) = order.into_iter().partition(|k| size(k) >= FAR);
    let (large, small) = (Mutex::new(large.into_iter()), Mutex::new(small.into_iter()));
    let next =
        |of: &Mutex<std::vec::IntoIter<usize>>| of.lock().unwrap_or_else(PoisonError::into_inner).next();
    let there = |k: usize| match matrices[k].solved_by(solver) {
        Err(e) if e.kind() != ErrorKind::Interrupted => {
            // The processor has other room, and another method.
            matrices[k].solved(faer::get_global_parallelism())
        }
        found => found,
    };
    let solved = Mutex::new(Vec::with_capacity(matrices.len()));
    let keep = |k: usize, found| solved.lock().unwrap_or_else(PoisonError::into_inner).push((k, found));
    let near = || {
        while let Some(k) = next(&small) {
            keep(k, matrices[k].solved(Par::Seq));
        }
    };
    let far = || {
        while let Some(k) = next(&large) {
            keep(k, there(k));
        }
        near();
    };
    rayon::scope(|scope| {
        // Some feed the solver: one packs and unpacks while others' matrices are solved.
        (0..FEEDERS).for_each(|_| scope.spawn(|_| far()));
        (FEEDERS..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| near()));
    });
    let mut solved = solved.into_inner().unwrap_or_else(PoisonError::into_inner);
    solved.sort_by_key(|s| s.0);
    solved.into_iter().map(|s| s.1).collect()
}

/// Appends the numbers of a matrix, column by column.
pub(super) fn append<T: Element>(numbers: &mut Vec<T>, m: MatRef<'_, T>) {
    for column in m.col_iter() {
        match column.try_as_col_major() {
            Some(column) => numbers.extend_from_slice(column.as_slice()),
            None => numbers.extend(column.iter()),
        }
    }
}

/// Ascending values and their vectors, turned round.
fn descending<T: Element>(mut values: Vec<f64>, vectors: MatRef<'_, T>) -> (Vec<f64>, Mat<T>) {
    let n = vectors.ncols();
    let mut turned = Mat::zeros(vectors.nrows(), n);
    (0..n).for_each(|j| turned.col_mut(j).copy_from(vectors.col(n - 1 - j)));
    values.reverse();
    (values, turned)
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
    done.map_err(|_| {
        Error::numeric("the singular values of a state did not converge").hint(
            "where a ground state falls into parts of different filling, a longer cell or fewer conserved numbers may \
             help",
        )
    })?;
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
///
/// # Errors
/// Those of the device that has a piece.
pub(super) fn applied<T: Element>(
    factors: &[OperatorPiece<T>],
    rows: usize,
    x: MatRef<'_, T>,
    par: Par,
) -> Result<Mat<T>> {
    let mut y = Mat::<T>::zeros(rows, x.ncols());
    for f in factors {
        let mut y = y.as_mut().subrows_mut(f.row, f.rows);
        let x = x.subrows(f.column, f.columns);
        match &f.matrix {
            Some(a) => matmul(y, Accum::Add, a.here()?, x, f.scale, par),
            None => {
                for j in 0..x.ncols() {
                    for i in 0..x.nrows() {
                        y[(i, j)] += f.scale * x[(i, j)];
                    }
                }
            }
        }
    }
    Ok(y)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::backend::DenseMut;
    use crate::number::C64;

    /// A solver that solves every second matrix and fails at the others.
    #[derive(Default)]
    struct Fickle(AtomicUsize);

    impl DenseSolver for Fickle {
        fn eigh(&self, n: usize, numbers: DenseMut<'_>) -> Result<Vec<f64>> {
            fn solve<T: Element>(n: usize, numbers: &mut [T]) -> Result<Vec<f64>> {
                let (values, vectors) = eigh(MatRef::from_column_major_slice(&*numbers, n, n), Par::Seq)?;
                for (j, column) in numbers.chunks_exact_mut(n).enumerate() {
                    column.iter_mut().zip(vectors.col(j).iter()).for_each(|(x, y)| *x = *y);
                }
                Ok(values)
            }
            if self.0.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
                return Err(Error::backend("no room"));
            }
            match numbers {
                DenseMut::Real(a) => solve(n, a),
                DenseMut::Complex(a) => solve(n, a),
            }
        }
    }

    /// Hermitian, with a spectrum from 0 to n - 1.
    fn matrix<T: Element>(n: usize) -> Mat<T> {
        let v: Vec<C64> = (0..n).map(|i| C64::from_polar(1.0, (i * i) as f64)).collect();
        let part = |z: C64| if T::DTYPE.is_complex() { z } else { z.re.into() };
        let norm: f64 = v.iter().map(|z| part(*z).norm_sqr()).sum();
        // Reflections keep the spectrum: (1 - 2 v v^H) D (1 - 2 v v^H).
        let sum: C64 = (0..n).map(|k| k as f64 * part(v[k]).norm_sqr() / norm).sum::<f64>().into();
        Mat::from_fn(n, n, |i, j| {
            let (x, y) = (part(v[i]) / norm.sqrt(), (part(v[j]) / norm.sqrt()).conj());
            let own = if i == j { (i as f64).into() } else { C64::ZERO };
            T::from_c64(own - 2.0 * x * y * (i as f64 + j as f64) + 4.0 * x * y * sum)
        })
    }

    fn shared<T: Element>() {
        let sizes = [3, 530, 1, 0, 20, 515, 600, 700];
        let all: Vec<Mat<T>> = sizes.iter().map(|&n| matrix(n)).collect();
        let wrapped: Vec<Hermitian<T>> = all.iter().map(|m| Hermitian::Whole(m.clone())).collect();
        for solver in [None, Some(&Fickle::default() as &dyn DenseSolver)] {
            let found = eigh_all(&wrapped, || solver).unwrap();
            for ((m, (values, vectors)), n) in all.iter().zip(&found).zip(sizes) {
                let wanted: Vec<f64> = (0..n).rev().map(|k| k as f64).collect();
                assert!(values.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{n}");
                let image = product(m.as_ref(), vectors.as_ref());
                let scaled = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * T::from_c64(wanted[j].into()));
                assert!(square((&image - &scaled).as_ref()) <= 1e-16 * (n * n) as f64, "{n}");
            }
        }
    }

    #[test]
    fn a_solver_and_the_threads_share_matrices() {
        shared::<f64>();
        shared::<C64>();
    }
}
