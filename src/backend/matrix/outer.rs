//! Vectors whose blocks are sums of outer products, such as the diagonal of a superblock.

use std::ops::Range;

use rayon::prelude::*;

use super::records::{BasisChange, PanelRectangle, SectorPanel};
use crate::backend::BlockVector;
use crate::error::Result;

/// What a backend makes of a superblock faster than the processor.
pub trait Superblocks {
    /// Part of a vector that is made of sums of outer products; none where the processor makes it as fast.
    fn outer(&self, sums: &OuterSums, range: Range<usize>) -> Result<Option<BlockVector>>;

    /// Dense matrices in other bases: the numbers of all of them, column by column.
    /// None where the processor makes them as fast.
    fn turned(&self, turns: &[BasisChange<'_, f64>]) -> Result<Option<BlockVector>>;
}

/// Numbers of the rows, times numbers of the columns, of a rectangle of a block.
#[derive(Debug, Clone)]
pub struct Outer {
    pub row: usize,
    pub rows: Vec<f64>,
    pub column: usize,
    pub columns: Vec<f64>,
}

/// A vector by the blocks that it is made of.
#[derive(Debug, Clone)]
pub struct OuterSums {
    pub dim: usize,
    pub panels: Vec<SectorPanel>,
    /// What each block is the sum of.
    pub terms: Vec<Vec<Outer>>,
}

impl OuterSums {
    /// What a range of the vector has of its blocks, in its order.
    pub fn pieces(&self, range: &Range<usize>) -> Vec<PanelRectangle> {
        SectorPanel::pieces_of(&self.panels, range)
    }

    /// Adds what a row of a block has.
    fn add_row(terms: &[Outer], row: usize, to: &mut [f64]) {
        for term in terms {
            let Some(x) = row.checked_sub(term.row).and_then(|i| term.rows.get(i)) else { continue };
            let to = &mut to[term.column..term.column + term.columns.len()];
            to.iter_mut().zip(&term.columns).for_each(|(d, y)| *d += x * y);
        }
    }

    pub fn numbers(&self) -> Vec<f64> {
        let mut numbers = vec![0.0; self.dim];
        let mut rest = &mut numbers[..];
        for (panel, terms) in self.panels.iter().zip(&self.terms) {
            let (own, after) = rest.split_at_mut(panel.rows * panel.columns);
            let rows = own.par_chunks_exact_mut(panel.columns.max(1)).enumerate();
            rows.for_each(|(row, to)| OuterSums::add_row(terms, row, to));
            rest = after;
        }
        numbers
    }

    /// The lowest number, and their standard deviation; the numbers are made row by row and not kept. The sums have one
    /// order on any number of threads.
    pub fn lowest_and_spread(&self) -> (f64, f64) {
        let of_terms = |terms: &Vec<Outer>| -> f64 {
            terms.iter().map(|t| t.rows.iter().sum::<f64>() * t.columns.iter().sum::<f64>()).sum()
        };
        let n = self.dim.max(1) as f64;
        let mean = self.terms.iter().map(of_terms).sum::<f64>() / n;
        let rows = self
            .panels
            .iter()
            .zip(&self.terms)
            .flat_map(|(panel, terms)| (0..panel.rows).map(move |row| (row, panel.columns, &terms[..])));
        let of_row = |numbers: &mut Vec<f64>, (row, columns, terms): (usize, usize, &[Outer])| {
            numbers.clear();
            numbers.resize(columns, 0.0);
            OuterSums::add_row(terms, row, numbers);
            let lowest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            (lowest, numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>())
        };
        let rows: Vec<_> = rows.collect();
        let found: Vec<(f64, f64)> = rows.into_par_iter().map_init(Vec::new, of_row).collect();
        let lowest = found.iter().map(|f| f.0).fold(f64::INFINITY, f64::min);
        (lowest, (found.iter().map(|f| f.1).sum::<f64>() / n).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two blocks, of which terms overlap in one and leave gaps in the other.
    pub(crate) fn sums() -> OuterSums {
        let panels = vec![
            SectorPanel { offset: 0, rows: 3, columns: 2 },
            SectorPanel { offset: 6, rows: 2, columns: 4 },
        ];
        let outer = |row, rows: &[f64], column, columns: &[f64]| Outer {
            row,
            rows: rows.to_vec(),
            column,
            columns: columns.to_vec(),
        };
        let terms = vec![
            vec![outer(0, &[1.0, 2.0, -1.0], 0, &[0.5, 3.0]), outer(1, &[4.0], 1, &[-2.0])],
            vec![outer(1, &[-1.0], 1, &[2.0, 0.25])],
        ];
        OuterSums { dim: 14, panels, terms }
    }

    #[test]
    fn numbers_and_what_is_told_of_them_agree() {
        let sums = sums();
        let numbers = sums.numbers();
        let wanted = [0.5, 3.0, 1.0, -2.0, -0.5, -3.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0, -0.25, 0.0];
        assert_eq!(numbers, wanted);
        let mean = wanted.iter().sum::<f64>() / 14.0;
        let spread = (wanted.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 14.0).sqrt();
        let (lowest, found) = sums.lowest_and_spread();
        assert_eq!(lowest, -3.0);
        assert!((found - spread).abs() < 1e-14, "{found} {spread}");
    }
}
