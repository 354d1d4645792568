//! A small square matrix over the orbitals of a site: the value of an on-site term or of a hopping.

use smallvec::{SmallVec, smallvec};

use crate::error::{Error, Result};
use crate::number::C64;

/// A square matrix of orbitals, row-major: rows are the orbitals arrived at, columns those left.
#[derive(Debug, Clone, PartialEq)]
pub struct OrbitalBlock {
    n: usize,
    entries: Entries,
}

/// A single number, by far the most frequent block, lies in the block itself.
type Entries = SmallVec<[C64; 1]>;

impl OrbitalBlock {
    /// From `n * n` entries, row by row.
    ///
    /// # Errors
    /// When the number of entries is not `n * n`.
    pub fn new(n: usize, entries: Vec<C64>) -> Result<Self> {
        if entries.len() != n * n {
            return Err(Error::input(format!(
                "a term of {} entries does not fit {n} orbitals per site ({n} x {n} are needed)",
                entries.len()
            ))
            .hint("give one entry for each pair of orbitals, row by row"));
        }
        Ok(OrbitalBlock { n, entries: entries.into() })
    }

    /// `z` times the identity: what a plain number means as a term of several orbitals.
    pub fn scalar(n: usize, z: impl Into<C64>) -> Self {
        let mut entries: Entries = smallvec![C64::ZERO; n * n];
        let z = z.into();
        for i in 0..n {
            entries[i * n + i] = z;
        }
        OrbitalBlock { n, entries }
    }

    pub fn orbitals(&self) -> usize {
        self.n
    }

    /// Entry in row `i`, column `j`.
    #[inline]
    pub fn get(&self, i: usize, j: usize) -> C64 {
        self.entries[i * self.n + j]
    }

    /// All entries, row by row.
    pub fn entries(&self) -> &[C64] {
        &self.entries
    }

    pub fn dagger(&self) -> OrbitalBlock {
        let n = self.n;
        let entries = (0..n * n).map(|k| self.get(k % n, k / n).conj()).collect();
        OrbitalBlock { n, entries }
    }

    /// From the values that a function gives for row and column.
    pub fn from_fn(n: usize, value: impl Fn(usize, usize) -> C64) -> OrbitalBlock {
        OrbitalBlock { n, entries: (0..n * n).map(|k| value(k / n, k % n)).collect() }
    }

    pub fn is_real(&self) -> bool {
        self.entries.iter().all(|z| z.im == 0.0)
    }

    pub fn is_diagonal(&self) -> bool {
        self.nonzero().all(|(i, j, _)| i == j)
    }

    /// Adds another block of the same size.
    pub fn add(&mut self, other: &OrbitalBlock) {
        for (a, b) in self.entries.iter_mut().zip(&other.entries) {
            *a += b;
        }
    }

    /// The entries that are not zero, as (row, column, value).
    pub fn nonzero(&self) -> impl Iterator<Item = (usize, usize, C64)> + '_ {
        let n = self.n;
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, z)| **z != C64::ZERO)
            .map(move |(k, z)| (k / n, k % n, *z))
    }

    /// An error unless the block has `n` orbitals and all entries are finite; `what` names the term.
    ///
    /// # Errors
    /// For a wrong size, an infinite entry or NaN.
    pub fn check(&self, n: usize, what: &str) -> Result<()> {
        if self.n != n {
            return Err(Error::input(format!(
                "{what} is a {0} x {0} matrix, but the model has {n} orbitals per site",
                self.n
            ))
            .hint("a model made with n orbitals has n per site, with both spins twice as many"));
        }
        if let Some(z) = self.entries.iter().find(|z| !z.re.is_finite() || !z.im.is_finite()) {
            let shown = if z.re.is_finite() { z.im } else { z.re };
            return Err(Error::input(format!("{what} is not a finite number ({shown})"))
                .hint("look for a division by zero or the root of a negative number"));
        }
        Ok(())
    }

    /// The Hermitian part, after a check that the rest is rounding error.
    ///
    /// # Errors
    /// When the block differs from its conjugate by more than 1e-10 of its largest entry.
    pub fn hermitian(&self, what: &str) -> Result<OrbitalBlock> {
        let dagger = self.dagger();
        let largest = self.entries.iter().map(|z| z.norm()).fold(0.0, f64::max);
        let off = self.entries.iter().zip(&dagger.entries).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        if off > 1e-10 * largest {
            return Err(Error::input(format!(
                "{what} is not Hermitian (it differs from its conjugate by {off:.3e})"
            ))
            .hint("an on-site energy is real, an on-site matrix equals its own adjoint"));
        }
        let entries = self.entries.iter().zip(&dagger.entries).map(|(a, b)| (a + b) * 0.5).collect();
        Ok(OrbitalBlock { n: self.n, entries })
    }
}
