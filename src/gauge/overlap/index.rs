//! The index of the overlap operator: its exact zero modes, counted in each chirality, and checks with its other low
//! modes. `stdlib/overlap/index.rhai` finds them.

use std::fmt;

use crate::backend::BlockVector;

/// Zero modes, and the check on the others.
#[derive(Debug, Clone)]
pub struct OverlapIndex {
    /// Zero modes of positive chirality.
    pub plus: usize,
    /// Zero modes of negative chirality.
    pub minus: usize,
    /// The lowest other eigenvalues of D^+ D in positive and in negative chirality.
    pub nonzero: [Vec<f64>; 2],
    /// The largest distance of an eigenvalue of D from the circle |z - (1 + s)| = 1 + s, among the others.
    pub circle: f64,
    /// The largest relative difference between partners of the two chiralities.
    pub pairing: f64,
    /// Eigenvalues of D^+ D below this count as zero.
    pub threshold: f64,
    /// The zero modes themselves, a column each, those of positive chirality first; none where there are none.
    pub modes: Option<BlockVector>,
}

impl OverlapIndex {
    /// n+ - n-.
    pub fn index(&self) -> i64 {
        self.plus as i64 - self.minus as i64
    }
}

impl fmt::Display for OverlapIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Index {}: {} zero modes of positive and {} of negative chirality",
            self.index(),
            self.plus,
            self.minus
        )?;
        let shared: Vec<String> = self.nonzero[0]
            .iter()
            .zip(&self.nonzero[1])
            .take(3)
            .map(|(a, b)| format!("{:.8}", 0.5 * (a + b)))
            .collect();
        if !shared.is_empty() {
            write!(f, "\n  next eigenvalues of D^+ D in both chiralities: {}", shared.join(", "))?;
        }
        Ok(())
    }
}
