//! A Slater determinant of one spin: its matrix, the inverse, and what replacing rows does to both.
//!
//! `A[i][l] = psi_l(r_i)`; kept is `B = (A^-1)^T`, so that the ratio for moving electron i, `sum_l psi_l(y) A^-1[l][i]`, runs
//! over neighbours in memory.

use super::amplitude::{Amplitude, add_transposed_times, dot, invert, times_transposed};
use crate::error::{Error, Result};

/// A determinant and its inverse matrix, which accepted moves keep up to date (Sherman and Morrison). With `delay` k > 1 the
/// updates of k moves are gathered and applied at once, as a product of matrices.
#[derive(Debug, Clone)]
pub struct Determinant<S> {
    n: usize,
    rows: Vec<S>,
    inverse: Vec<S>,
    /// `ln |det A|`.
    pub log: f64,
    /// `det A / |det A|`.
    pub phase: S,
    delay: usize,
    /// Gathered updates: `B_now[j] = B[j] - sum_m u_m w_m[j]`.
    u: Vec<S>,
    w: Vec<S>,
}

impl<S: Amplitude> Determinant<S> {
    /// Of the matrix given row by row.
    ///
    /// # Errors
    /// When it is singular or holds what is no number.
    pub fn new(rows: Vec<S>, n: usize, delay: usize) -> Result<Determinant<S>> {
        let inverse = invert(&rows, n)?;
        Ok(Determinant {
            n,
            rows,
            inverse: inverse.transposed,
            log: inverse.log,
            phase: inverse.phase,
            delay: delay.max(1),
            u: Vec::new(),
            w: Vec::new(),
        })
    }

    /// Number of electrons.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Row i of A: the orbitals at electron i.
    pub fn row(&self, i: usize) -> &[S] {
        &self.rows[i * self.n..(i + 1) * self.n]
    }

    /// Row i of `(A^-1)^T`; every gathered update must have been applied.
    pub fn column_of_inverse(&self, i: usize) -> &[S] {
        debug_assert!(self.u.is_empty());
        &self.inverse[i * self.n..(i + 1) * self.n]
    }

    /// `(A^-1)^T`; every gathered update must have been applied.
    pub fn inverse(&self) -> &[S] {
        debug_assert!(self.u.is_empty());
        &self.inverse
    }

    /// The factor by which the determinant changes if row i becomes `orbitals`.
    pub fn ratio(&self, i: usize, orbitals: &[S]) -> S {
        let n = self.n;
        let mut ratio = dot(orbitals, &self.inverse[i * n..(i + 1) * n]);
        for (u, w) in self.u.chunks_exact(n).zip(self.w.chunks_exact(n)) {
            ratio -= dot(orbitals, u) * w[i];
        }
        ratio
    }

    /// `M = Phi A^-1` for any number of rows of orbitals: `m[k][j] = sum_l phi[k][l] A^-1[l][j]`.
    pub fn all_ratios(&mut self, orbitals: &[S], m: &mut Vec<S>) {
        self.flush();
        m.resize(orbitals.len(), S::default());
        times_transposed(orbitals, &self.inverse, m, self.n, S::real(1.0), false);
    }

    /// Replaces row i; `ratio` is what [`Determinant::ratio`] gave.
    pub fn replace(&mut self, i: usize, orbitals: &[S], ratio: S) {
        let n = self.n;
        let mut w = vec![S::default(); n];
        times_transposed(orbitals, &self.inverse, &mut w, n, S::real(1.0), false);
        let mut u = self.inverse[i * n..(i + 1) * n].to_vec();
        for (u_m, w_m) in self.u.chunks_exact(n).zip(self.w.chunks_exact(n)) {
            let (c, wi) = (dot(orbitals, u_m), w_m[i]);
            for l in 0..n {
                w[l] -= c * w_m[l];
                u[l] -= u_m[l] * wi;
            }
        }
        w[i] -= S::real(1.0);
        u.iter_mut().for_each(|x| *x /= ratio);
        self.rows[i * n..(i + 1) * n].copy_from_slice(orbitals);
        let size = ratio.modulus();
        self.log += size.ln();
        self.phase *= ratio / S::real(size);
        self.u.extend(u);
        self.w.extend(w);
        if self.u.len() >= self.delay * n {
            self.flush();
        }
    }

    /// The factor by which the determinant changes if column j becomes `orbitals`; no updates may be gathered.
    pub fn ratio_column(&self, j: usize, orbitals: &[S]) -> S {
        debug_assert!(self.u.is_empty());
        (0..self.n).fold(S::default(), |sum, i| sum + orbitals[i] * self.inverse[i * self.n + j])
    }

    /// Replaces column j; `ratio` is what [`Determinant::ratio_column`] gave.
    pub fn replace_column(&mut self, j: usize, orbitals: &[S], ratio: S) {
        let n = self.n;
        let mut w = vec![S::default(); n];
        for (i, x) in orbitals.iter().enumerate() {
            for m in 0..n {
                w[m] += *x * self.inverse[i * n + m];
            }
        }
        w[j] -= S::real(1.0);
        for i in 0..n {
            let factor = self.inverse[i * n + j] / ratio;
            for m in 0..n {
                self.inverse[i * n + m] -= w[m] * factor;
            }
            self.rows[i * n + j] = orbitals[i];
        }
        self.log += ratio.modulus().ln();
        self.phase *= ratio / S::real(ratio.modulus());
    }

    /// How near to singular the matrix is, whatever the scale of its rows or columns: the smaller of the largest row sums of
    /// `|A^-1| |A|` (Skeel) and `|A| |A^-1|`.
    pub fn condition(&self) -> f64 {
        let n = self.n;
        let size = |x: &[S], i: usize, j: usize| x[i * n + j].modulus();
        let rows: Vec<f64> = (0..n).map(|i| (0..n).map(|l| size(&self.rows, i, l)).sum()).collect();
        let columns: Vec<f64> = (0..n).map(|l| (0..n).map(|i| size(&self.inverse, i, l)).sum()).collect();
        let inner = |l: usize| (0..n).map(|i| size(&self.inverse, i, l) * rows[i]).sum::<f64>();
        let outer = |i: usize| (0..n).map(|l| size(&self.rows, i, l) * columns[l]).sum::<f64>();
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        largest(&mut (0..n).map(inner)).min(largest(&mut (0..n).map(outer)))
    }

    /// An error where [`Determinant::condition`] leaves no digits: a true zero that rounding hides, as symmetry makes them.
    ///
    /// # Errors
    /// When the matrix is singular to working precision.
    pub fn regular(&self) -> Result<()> {
        if self.condition() < 1e12 {
            return Ok(());
        }
        let n = self.n;
        Err(Error::numeric(format!("the {n} x {n} Slater matrix is singular to working precision")))
    }

    /// Replaces several rows at once, given the rows of `M = Phi A^-1` that belong to them (k x n), and `ln |ratio|` and
    /// phase of the ratio of all.
    pub fn replace_many(&mut self, which: &[usize], orbitals: &[S], m: &[S], (log, phase): (f64, S)) {
        let (n, k) = (self.n, which.len());
        self.flush();
        // B' = B - X^T B_S with M_SS X = M_S - 1_S.
        let mut inner = vec![S::default(); k * k];
        let mut right = m.to_vec();
        let mut old = vec![S::default(); k * n];
        for (a, &i) in which.iter().enumerate() {
            for (b, &j) in which.iter().enumerate() {
                inner[a * k + b] = m[a * n + j];
            }
            right[a * n + i] -= S::real(1.0);
            old[a * n..(a + 1) * n].copy_from_slice(&self.inverse[i * n..(i + 1) * n]);
            self.rows[i * n..(i + 1) * n].copy_from_slice(&orbitals[a * n..(a + 1) * n]);
        }
        let x = super::amplitude::solve(&inner, k, &right);
        add_transposed_times(&x, &old, &mut self.inverse, k, S::real(-1.0));
        self.log += log;
        self.phase *= phase;
    }

    /// Applies the gathered updates.
    pub fn flush(&mut self) {
        let k = self.u.len() / self.n.max(1);
        add_transposed_times(&self.w, &self.u, &mut self.inverse, k, S::real(-1.0));
        self.u.clear();
        self.w.clear();
    }

    /// Puts rows in place without keeping the inverse up to date: [`Determinant::refresh`] must follow.
    pub fn set_row(&mut self, i: usize, orbitals: &[S]) {
        self.rows[i * self.n..(i + 1) * self.n].copy_from_slice(orbitals);
    }

    /// Computes determinant and inverse anew, and returns how far the old ones were off: the largest element of
    /// `A A^-1 - 1` in a row of it.
    ///
    /// # Errors
    /// When the matrix is singular.
    pub fn refresh(&mut self) -> Result<f64> {
        self.flush();
        let n = self.n;
        let off = (0..n.min(1)).flat_map(|i| (0..n).map(move |j| (i, j))).fold(0.0_f64, |worst, (i, j)| {
            let unit = if i == j { 1.0 } else { 0.0 };
            let x = dot(&self.rows[i * n..(i + 1) * n], &self.inverse[j * n..(j + 1) * n]);
            worst.max((x - S::real(unit)).modulus())
        });
        let inverse = invert(&self.rows, n)?;
        (self.inverse, self.log, self.phase) = (inverse.transposed, inverse.log, inverse.phase);
        Ok(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::C64;
    use crate::number::philox::{unit, words};

    fn random<S: Amplitude>(n: usize, stream: u32) -> Vec<S> {
        (0..n)
            .map(|i| {
                let w = words(7, stream, i as u64, 0);
                S::from_c64(C64::new(unit(w[0], w[1]) - 0.5, unit(w[2], w[3]) - 0.5))
            })
            .collect()
    }

    fn moves<S: Amplitude>(delay: usize) {
        let n = 12;
        let mut det = Determinant::new(random::<S>(n * n, 1), n, delay).unwrap();
        for step in 0..20 {
            let row = random::<S>(n, 100 + step);
            let i = (5 * step as usize) % n;
            let ratio = det.ratio(i, &row);
            let mut twin = det.clone();
            twin.set_row(i, &row);
            twin.refresh().unwrap();
            det.replace(i, &row, ratio);
            assert!((det.log - twin.log).abs() < 1e-9 && (det.phase - twin.phase).modulus() < 1e-9);
        }
        assert!(det.refresh().unwrap() < 1e-9);
    }

    #[test]
    fn updates_agree_with_recomputation() {
        for delay in [1, 4, 7] {
            moves::<f64>(delay);
            moves::<C64>(delay);
        }
    }

    #[test]
    fn several_rows_at_once() {
        let n = 9;
        let mut det = Determinant::new(random::<C64>(n * n, 1), n, 1).unwrap();
        let which = [1, 4, 8];
        let rows = random::<C64>(3 * n, 2);
        let mut m = Vec::new();
        det.all_ratios(&rows, &mut m);
        let inner: Vec<C64> = (0..9).map(|k| m[k / 3 * n + which[k % 3]]).collect();
        let ratio = super::super::amplitude::determinant(&inner, 3);
        det.replace_many(&which, &rows, &m, ratio);
        let (log, phase) = (det.log, det.phase);
        assert!(det.refresh().unwrap() < 1e-10);
        assert!((det.log - log).abs() < 1e-10 && (det.phase - phase).norm() < 1e-10);
    }
}
