//! How a `Matrix` prints: aligned columns, cut to what a screen holds.

use std::fmt;

use super::format::{complex, real};
use super::{Matrix, Number};

/// Rows or columns shown at most; of a larger matrix the first and the last ones.
const SHOWN: usize = 8;

impl Matrix {
    /// Its rows as texts; of more rows or columns than so many (half of them if it is complex) the first and the last
    /// ones.
    pub fn page(&self, most: usize) -> Vec<Vec<String>> {
        let across = if self.is_complex() { most / 2 } else { most };
        let (rows, cols) = (shown(self.rows(), most), shown(self.cols(), across));
        let cell = |i: Option<usize>, j: Option<usize>| match (i, j) {
            (Some(i), Some(j)) => match self.data().get(i * self.cols() + j) {
                Some(Number::Real(x)) => real(x, 5),
                Some(Number::Complex(z)) => complex(z, 5),
                None => String::new(),
            },
            _ => "...".to_string(),
        };
        rows.iter().map(|&i| cols.iter().map(|&j| cell(i, j)).collect()).collect()
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix {}, {}", self.shape(), if self.is_complex() { "complex" } else { "real" })?;
        if self.rows() == 0 || self.cols() == 0 {
            return Ok(());
        }
        let cells = self.page(SHOWN);
        let widths: Vec<usize> = (0..cells.first().map_or(0, Vec::len))
            .map(|j| cells.iter().map(|row| row[j].len()).max().unwrap_or(0))
            .collect();
        for row in &cells {
            f.write_str("\n")?;
            for (text, width) in row.iter().zip(&widths) {
                write!(f, "  {text:>width$}")?;
            }
        }
        Ok(())
    }
}

/// The indices to show of `n`, `None` standing for those left out.
pub(crate) fn shown(n: usize, limit: usize) -> Vec<Option<usize>> {
    if n <= limit {
        return (0..n).map(Some).collect();
    }
    let tail = limit / 2;
    let head = limit - tail - 1;
    (0..head).map(Some).chain([None]).chain((n - tail..n).map(Some)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_matrix_fits_the_screen() {
        let text = Matrix::identity(1000).unwrap().to_string();
        assert!(text.starts_with("Matrix 1000 x 1000, real\n"));
        assert_eq!(text.lines().count(), 9);
        assert!(text.lines().all(|line| line.len() <= 80));
    }
}
