//! On-site energies as a rule; each part computes the energies of its own rows from it.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::number::memory;

/// Rows that one thread takes at a time.
const CHUNK: usize = 1 << 13;

/// Real on-site energies, one a row.
#[derive(Clone)]
pub struct OnSite {
    rows: usize,
    rule: Arc<dyn Fn(usize, &mut [f64]) + Send + Sync>,
}

impl OnSite {
    /// Those of `rows` rows; `rule(first, out)` writes the energies of the rows from `first` on.
    pub fn new(rows: usize, rule: impl Fn(usize, &mut [f64]) + Send + Sync + 'static) -> Self {
        OnSite { rows, rule: Arc::new(rule) }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The energy of a row.
    pub fn at(&self, row: usize) -> f64 {
        let mut energy = [0.0];
        (self.rule)(row, &mut energy);
        energy[0]
    }

    /// The energies of some rows only, given as pieces of the whole: first row and length of each.
    #[must_use]
    pub fn of_rows(&self, pieces: Vec<(usize, usize)>) -> OnSite {
        let mut starts = vec![0];
        for (_, length) in &pieces {
            starts.push(starts[starts.len() - 1] + length);
        }
        let (rows, whole) = (starts.pop().unwrap_or(0), self.clone());
        OnSite::new(rows, move |first, out| {
            let mut left = out;
            let mut piece = starts.partition_point(|start| *start <= first).max(1) - 1;
            let mut skipped = first - starts.get(piece).map_or(0, |start| *start);
            while let Some((start, length)) = pieces.get(piece).filter(|_| !left.is_empty()) {
                let (here, rest) = left.split_at_mut((length - skipped).min(left.len()));
                (whole.rule)(start + skipped, here);
                (left, skipped, piece) = (rest, 0, piece + 1);
            }
        })
    }

    /// All of them.
    ///
    /// # Errors
    /// No memory; an energy that is not finite.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        memory::ensure(8 * self.rows as u128, &format!("the on-site energies of {} rows", self.rows))?;
        let mut all = vec![0.0; self.rows];
        all.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, part)| (self.rule)(chunk * CHUNK, part));
        match all.iter().position(|x| !x.is_finite()) {
            None => Ok(all),
            Some(row) => Err(Error::input(format!("the on-site energy of row {row} is {}", all[row]))),
        }
    }
}

impl From<Vec<f64>> for OnSite {
    fn from(all: Vec<f64>) -> Self {
        OnSite::new(all.len(), move |first, out| out.copy_from_slice(&all[first..first + out.len()]))
    }
}

impl fmt::Debug for OnSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "energies of {} rows", self.rows)
    }
}

impl PartialEq for OnSite {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && (0..self.rows).all(|row| self.at(row) == other.at(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_rows_are_those_of_the_whole() {
        let energies: Vec<f64> = (0..100).map(f64::from).collect();
        let whole = OnSite::from(energies.clone());
        assert_eq!(whole.numbers().unwrap(), energies);
        for pieces in [vec![(3, 4), (20, 1), (50, 30)], vec![(0, 100)], vec![(7, 0), (9, 2)], vec![]] {
            let rows: Vec<usize> = pieces.iter().flat_map(|&(start, n)| start..start + n).collect();
            let chosen = whole.of_rows(pieces);
            let expected: Vec<f64> = rows.iter().map(|&row| energies[row]).collect();
            assert_eq!(chosen.numbers().unwrap(), expected);
            for first in 0..rows.len() {
                let mut out = vec![f64::NAN; rows.len() - first];
                (chosen.rule)(first, &mut out);
                assert_eq!(out, expected[first..]);
                assert_eq!(chosen.at(first), expected[first]);
            }
        }
        assert!(OnSite::from(vec![0.0, f64::NAN]).numbers().is_err());
    }
}
