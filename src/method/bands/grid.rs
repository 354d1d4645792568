//! Grids of momenta over the Brillouin zone.

use crate::error::{Error, Result};

/// Equally spaced momenta in units of the reciprocal vectors, the first direction fastest, zero among them.
#[derive(Debug, Clone)]
pub struct MomentumGrid {
    counts: Vec<usize>,
    total: usize,
}

impl MomentumGrid {
    /// A grid of so many momenta in each of `d` directions.
    ///
    /// # Errors
    /// Another number of directions, none in one of them, more than 2^32 momenta.
    pub fn new(counts: &[usize], d: usize) -> Result<MomentumGrid> {
        if counts.len() != d || counts.contains(&0) {
            return Err(Error::input(format!("a grid {counts:?} in {d} periodic directions"))
                .hint("give one number from 1 for all directions, or one for each"));
        }
        let total = counts.iter().try_fold(1usize, |all, n| all.checked_mul(*n)).filter(|n| *n <= 1 << 32);
        let total = total.ok_or_else(|| {
            Error::input(format!("a grid {counts:?} has too many momenta")).hint("take fewer of them")
        })?;
        Ok(MomentumGrid { counts: counts.to_vec(), total })
    }

    /// How many momenta there are.
    pub fn total(&self) -> usize {
        self.total
    }

    /// One of the momenta, by its number.
    pub fn momentum(&self, mut number: usize) -> Vec<f64> {
        let along = |n: &usize| {
            let x = (number % n) as f64 / *n as f64;
            number /= n;
            x
        };
        self.counts.iter().map(along).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_direction_is_the_fastest() {
        let grid = MomentumGrid::new(&[2, 3], 2).unwrap();
        let all: Vec<Vec<f64>> = (0..grid.total()).map(|i| grid.momentum(i)).collect();
        let third = 1.0 / 3.0;
        let known =
            [[0.0, 0.0], [0.5, 0.0], [0.0, third], [0.5, third], [0.0, 2.0 * third], [0.5, 2.0 * third]];
        assert_eq!(all, known);
        let none = MomentumGrid::new(&[], 0).unwrap();
        assert_eq!((none.total(), none.momentum(0)), (1, Vec::new()), "a sample without directions has one");
    }

    #[test]
    fn grids_that_are_none() {
        for (counts, d) in
            [(vec![4], 2), (vec![4, 0], 2), (vec![1 << 20, 1 << 20], 2), (vec![usize::MAX, 2], 2)]
        {
            assert!(MomentumGrid::new(&counts, d).is_err(), "{counts:?}");
        }
    }
}
