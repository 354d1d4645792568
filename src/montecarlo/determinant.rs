//! A Slater determinant of one spin: its matrix, the inverse, and what replacing rows does to both.
//!
//! `A[i][l] = psi_l(r_i)`. Stored is `B = (A^-1)^T`, so that the ratio for moving electron i,
//! `sum_l psi_l(y) A^-1[l][i]`, runs over neighbours in memory.

use super::amplitude::{Amplitude, add_transposed_times, determinant, dot, invert, solve, times_transposed};
use crate::error::{Error, Result};

/// A determinant and its inverse matrix, which accepted moves keep up to date (Sherman and Morrison). With `delay` k >
/// 1 the updates of k moves are gathered and applied at once, as a product of matrices.
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

/// Bytes of matrices of so many elements in all and of their inverses.
pub fn matrices<S>(elements: usize) -> u128 {
    2 * elements as u128 * std::mem::size_of::<S>() as u128
}

impl<S: Amplitude> Determinant<S> {
    /// The determinant and inverse of the matrix given row by row.
    ///
    /// # Errors
    /// When it is singular or an entry is not finite.
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

    /// How near to singular the matrix is, whatever the scale of its rows or columns: the smaller of the largest row
    /// sums of `|A^-1| |A|` (Skeel) and `|A| |A^-1|`.
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

    /// An error where [`Determinant::condition`] leaves no digits: the determinant is zero, by a symmetry for
    /// example, up to rounding.
    ///
    /// # Errors
    /// When the matrix is singular to working precision.
    pub fn regular(&self) -> Result<()> {
        if self.condition() < 1e12 {
            return Ok(());
        }
        Err(singular(self.n))
    }

    /// Replaces several rows at once, given the rows of `M = Phi A^-1` that belong to them (k x n), and `ln |ratio|`
    /// and phase of the ratio of all.
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
        let x = solve(&inner, k, &right);
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

    /// Computes determinant and inverse anew, and returns the error of the old ones: the largest element of
    /// `A A^-1 - 1` in its first row.
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

fn singular(n: usize) -> Error {
    Error::numeric(format!("the {n} x {n} Slater matrix is singular to working precision"))
        .hint("two electrons stand at one place, or two orbitals are alike")
}

/// Rows and columns of a matrix that change together.
#[derive(Debug, Clone, Default)]
pub struct RowColumnChange<S> {
    /// Numbers of the rows.
    pub rows: Vec<usize>,
    /// Their new entries in the columns that stay, row after row; entries in columns that change do not matter.
    pub in_rows: Vec<S>,
    /// Numbers of the columns.
    pub columns: Vec<usize>,
    /// Their new entries in the rows that stay, column after column.
    pub in_columns: Vec<S>,
    /// The new entries that these rows and columns have in common, row after row.
    pub corner: Vec<S>,
}

/// If its determinant is below this fraction of the product of its rows' lengths, a small matrix has lost too many
/// digits to update an inverse with.
const SOUND: f64 = 1e-4;

/// With x the new rows, y the new columns and z where they meet, the determinant changes by that of
/// `W = [[(A^-1 y)_C, (A^-1)_CR], [x A^-1 y - z, (x A^-1)_R]]`: the Schur complement of A bordered by y and the unit
/// columns of R, x and the unit rows of C. No step divides by the factors of single rows, which may vanish.
impl<S: Amplitude> Determinant<S> {
    /// `A^-1 y` for the new columns, each n numbers.
    fn images(&self, change: &RowColumnChange<S>) -> Vec<S> {
        let n = self.n;
        let mut images = vec![S::default(); change.in_columns.len()];
        for (y, image) in change.in_columns.chunks_exact(n).zip(images.chunks_exact_mut(n)) {
            for (y, row) in y.iter().zip(self.inverse.chunks_exact(n)) {
                image.iter_mut().zip(row).for_each(|(sum, x)| *sum += *y * *x);
            }
        }
        images
    }

    /// The matrix W, given `A^-1 y`.
    fn complement(&self, change: &RowColumnChange<S>, images: &[S]) -> Vec<S> {
        let (n, kr, kc) = (self.n, change.rows.len(), change.columns.len());
        let k = kr + kc;
        let mut w = vec![S::default(); k * k];
        for (c, &column) in change.columns.iter().enumerate() {
            (0..kc).for_each(|d| w[c * k + d] = images[d * n + column]);
            (0..kr).for_each(|r| w[c * k + kc + r] = self.inverse[change.rows[r] * n + column]);
        }
        for (r, x) in change.in_rows.chunks_exact(n).enumerate() {
            let at = (kc + r) * k;
            (0..kc).for_each(|d| w[at + d] = dot(x, &images[d * n..(d + 1) * n]) - change.corner[r * kc + d]);
            for (q, &row) in change.rows.iter().enumerate() {
                w[at + kc + q] = dot(x, &self.inverse[row * n..(row + 1) * n]);
            }
        }
        w
    }

    /// The factor by which the determinant changes; no updates may be gathered.
    pub fn change_ratio(&self, change: &RowColumnChange<S>) -> S {
        debug_assert!(self.u.is_empty());
        let n = self.n;
        if let ([], [column]) = (change.rows.as_slice(), change.columns.as_slice()) {
            let along = change.in_columns.iter().zip(self.inverse[*column..].iter().step_by(n));
            return along.fold(S::default(), |sum, (y, x)| sum + *y * *x);
        }
        let images = self.images(change);
        small_determinant(&self.complement(change, &images), change.rows.len() + change.columns.len())
    }

    /// Replaces row i.
    ///
    /// # Errors
    /// When the new matrix is singular to working precision; nothing has changed then.
    pub fn take(&mut self, i: usize, orbitals: &[S]) -> Result<()> {
        let ratio = self.ratio(i, orbitals);
        // A small ratio may be what rounding left of zero.
        if ratio.modulus() < 1e-3 {
            let terms = orbitals.iter().zip(&self.inverse[i * self.n..]).map(|(x, y)| (*x * *y).modulus());
            if ratio.modulus() <= 1e-13 * terms.sum::<f64>() {
                return Err(singular(self.n));
            }
        }
        self.replace(i, orbitals, ratio);
        Ok(())
    }

    /// Changes rows and columns. The inverse is updated (Woodbury), or computed anew where that would cost its digits.
    ///
    /// # Errors
    /// When the new matrix is singular; nothing has changed then.
    pub fn apply(&mut self, change: &RowColumnChange<S>) -> Result<()> {
        self.flush();
        let (n, kr, kc) = (self.n, change.rows.len(), change.columns.len());
        let k = kr + kc;
        if let ([row], []) = (change.rows.as_slice(), change.columns.as_slice()) {
            return self.take(*row, &change.in_rows);
        }
        let images = self.images(change);
        let w = self.complement(change, &images);
        let ratio = small_determinant(&w, k);
        let sound = ratio.modulus() > SOUND * longest(&w, kc, k);
        let before = if sound { None } else { Some(self.clone()) };
        for (r, &row) in change.rows.iter().enumerate() {
            self.rows[row * n..(row + 1) * n].copy_from_slice(&change.in_rows[r * n..(r + 1) * n]);
        }
        for (c, &column) in change.columns.iter().enumerate() {
            let new = &change.in_columns[c * n..(c + 1) * n];
            new.iter().enumerate().for_each(|(i, y)| self.rows[i * n + column] = *y);
            (0..kr).for_each(|r| self.rows[change.rows[r] * n + column] = change.corner[r * kc + c]);
        }
        if let Some(before) = before {
            return self.refresh().and_then(|_| self.regular()).inspect_err(|_| *self = before);
        }
        // The left border's images A^-1 [y, 1_R], and the lower one's [1_C, x] A^-1.
        let mut right = images;
        change.rows.iter().for_each(|&row| right.extend(&self.inverse[row * n..(row + 1) * n]));
        let mut lower = vec![S::default(); k * n];
        for (c, &column) in change.columns.iter().enumerate() {
            (0..n).for_each(|i| lower[c * n + i] = self.inverse[i * n + column]);
        }
        times_transposed(&change.in_rows, &self.inverse, &mut lower[kc * n..], n, S::real(1.0), false);
        let q = small_inverse(&w, k, ratio);
        let mut solved = vec![S::default(); k * n];
        for (j, solved) in solved.chunks_exact_mut(n).enumerate() {
            for (l, lower) in lower.chunks_exact(n).enumerate() {
                solved.iter_mut().zip(lower).for_each(|(sum, x)| *sum += q[j * k + l] * *x);
            }
        }
        add_transposed_times(&solved, &right, &mut self.inverse, k, S::real(-1.0));
        // The new rows and columns stand in the border of the inverse.
        for (c, &column) in change.columns.iter().enumerate() {
            (0..n).for_each(|i| self.inverse[i * n + column] = solved[c * n + i]);
        }
        for (r, &row) in change.rows.iter().enumerate() {
            for i in 0..n {
                let sum = (0..k).fold(S::default(), |sum, j| sum + right[j * n + i] * q[j * k + kc + r]);
                self.inverse[row * n + i] = sum;
            }
            for (c, &column) in change.columns.iter().enumerate() {
                self.inverse[row * n + column] = -q[c * k + kc + r];
            }
        }
        let size = ratio.modulus();
        self.log += size.ln();
        self.phase *= ratio / S::real(size);
        Ok(())
    }
}

/// The product of the lengths of W's rows, with its two off-diagonal blocks scaled to the same size, as A and its
/// inverse may be of very different sizes.
fn longest<S: Amplitude>(w: &[S], kc: usize, k: usize) -> f64 {
    let square = |i: usize, j: usize| w[i * k + j].square();
    let block = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
        rows.flat_map(|i| columns.clone().map(move |j| (i, j))).map(|(i, j)| square(i, j)).fold(0.0, f64::max)
    };
    let (above, below) = (block(0..kc, kc..k), block(kc..k, 0..kc));
    let scale = if above > 0.0 && below > 0.0 { (below / above).sqrt() } else { 1.0 };
    let scaled = |i: usize, j: usize| match (i < kc, j < kc) {
        (true, false) => square(i, j) * scale,
        (false, true) => square(i, j) / scale,
        _ => square(i, j),
    };
    (0..k).map(|i| (0..k).map(|j| scaled(i, j)).sum::<f64>().sqrt()).product()
}

/// The determinant of a k x k matrix.
fn small_determinant<S: Amplitude>(w: &[S], k: usize) -> S {
    match k {
        0 => S::real(1.0),
        1 => w[0],
        2 => w[0] * w[3] - w[1] * w[2],
        _ => {
            let (log, phase) = determinant(w, k);
            phase * S::real(log.exp())
        }
    }
}

/// The inverse of a k x k matrix whose determinant is known.
fn small_inverse<S: Amplitude>(w: &[S], k: usize, determinant: S) -> Vec<S> {
    match k {
        1 => vec![S::real(1.0) / w[0]],
        2 => [w[3], -w[1], -w[2], w[0]].map(|x| x / determinant).to_vec(),
        _ => {
            let mut unit = vec![S::default(); k * k];
            (0..k).for_each(|i| unit[i * k + i] = S::real(1.0));
            solve(w, k, &unit)
        }
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

    /// Rows and columns that change together against the matrix set up anew; in the last case the rows, taken alone,
    /// make the matrix singular.
    fn changes<S: Amplitude>() {
        let n = 7;
        for (case, (rows, columns)) in [
            (vec![2], vec![]),
            (vec![], vec![3]),
            (vec![0, 5], vec![]),
            (vec![], vec![1, 6]),
            (vec![4], vec![4]),
        ]
        .into_iter()
        .chain([(vec![1, 2], vec![0, 3, 6]), (vec![0, 1, 2, 3, 4, 5, 6], vec![2]), (vec![3], vec![2])])
        .enumerate()
        {
            let start = random::<S>(n * n, 40);
            let mut det = Determinant::new(start.clone(), n, 1).unwrap();
            let (kr, kc) = (rows.len(), columns.len());
            let mut in_rows = random::<S>(kr * n, 41);
            if case == 7 {
                in_rows.copy_from_slice(&start[..n]);
            }
            let (in_columns, corner) = (random::<S>(kc * n, 42), random::<S>(kr * kc, 43));
            let mut new = start.clone();
            for (r, row) in rows.iter().enumerate() {
                (0..n).for_each(|l| new[row * n + l] = in_rows[r * n + l]);
            }
            for (c, column) in columns.iter().enumerate() {
                (0..n).for_each(|i| new[i * n + column] = in_columns[c * n + i]);
                (0..kr).for_each(|r| new[rows[r] * n + column] = corner[r * kc + c]);
            }
            let twin = Determinant::new(new, n, 1).unwrap();
            let expected = twin.phase / det.phase * S::real((twin.log - det.log).exp());
            let change = RowColumnChange { rows, in_rows, columns, in_columns, corner };
            let ratio = det.change_ratio(&change);
            assert!(
                (ratio - expected).modulus() < 1e-10 * expected.modulus(),
                "{case}: {ratio:?} {expected:?}"
            );
            det.apply(&change).unwrap();
            assert!(
                (det.log - twin.log).abs() < 1e-10 && (det.phase - twin.phase).modulus() < 1e-10,
                "{case}"
            );
            assert_eq!(det.rows, twin.rows);
            let off = det.inverse.iter().zip(&twin.inverse).map(|(a, b)| (*a - *b).modulus());
            assert!(off.fold(0.0, f64::max) < 1e-8, "{case}");
        }
    }

    #[test]
    fn rows_and_columns_together() {
        changes::<f64>();
        changes::<C64>();
        let mut det = Determinant::new(random::<f64>(16, 1), 4, 1).unwrap();
        let (before, same) = (det.rows.clone(), det.row(0).to_vec());
        let change = RowColumnChange { rows: vec![2], in_rows: same, ..RowColumnChange::default() };
        assert!(det.change_ratio(&change).abs() < 1e-13 && det.apply(&change).is_err());
        assert_eq!(det.rows, before);
    }
}
