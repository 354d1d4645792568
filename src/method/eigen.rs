//! What searches for eigenpairs find.

use crate::backend::BlockVector;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnded {
    /// The pairs are known as well as was asked for.
    Converged,
    /// Iterations or products are used up.
    Limit,
    /// The residuals have stopped falling: the limit of rounding.
    Stalled,
}

impl SearchEnded {
    /// All reasons.
    pub const ALL: [SearchEnded; 3] = [SearchEnded::Converged, SearchEnded::Limit, SearchEnded::Stalled];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            SearchEnded::Converged => "converged",
            SearchEnded::Limit => "limit",
            SearchEnded::Stalled => "stalled",
        }
    }

    /// The reason of this name.
    pub fn named(name: &str) -> Option<SearchEnded> {
        SearchEnded::ALL.into_iter().find(|e| e.name() == name)
    }
}

/// Eigenpairs and how well they are known.
#[derive(Debug, Clone)]
pub struct Eigen {
    /// Ritz values, ascending.
    pub values: Vec<f64>,
    /// Ritz vectors, a column each.
    pub vectors: BlockVector,
    /// Norms of H x - theta x; for vectors of a degenerate level a bound for any of them.
    pub residuals: Vec<f64>,
    /// The residual that counts as converged.
    pub tolerance: f64,
    /// Expansions of the basis.
    pub iterations: usize,
    /// Products with single vectors.
    pub products: usize,
    pub ended: SearchEnded,
}

impl Eigen {
    /// Whether every residual is below the tolerance and no lower state was missed, as far as a search that overlaps
    /// with every state can tell.
    pub fn converged(&self) -> bool {
        self.ended == SearchEnded::Converged
    }

    /// The largest residual norm.
    pub fn worst(&self) -> f64 {
        self.residuals.iter().copied().fold(0.0, f64::max)
    }
}
