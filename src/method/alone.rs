//! Searches on an operator of which one place of several has everything: that place searches by itself, and the others
//! are told what it has found. Otherwise each small step would pass through what the places have in common.

use super::eigen::{Eigen, SearchEnded};
use super::olsen::KnownDiagonal;
use crate::backend::{BlockVector, OnePlace};
use crate::error::{Error, Result};
use crate::number::DType;
use crate::operator::Operator;

/// What a search knows before it begins.
pub(super) struct SearchInput {
    pub start: Option<BlockVector>,
    /// Orthonormal columns that the pairs are orthogonal to.
    pub avoid: Option<BlockVector>,
    pub diagonal: Option<KnownDiagonal>,
}

impl SearchInput {
    /// The same as one place knows it.
    fn at(self, place: &dyn OnePlace) -> Result<SearchInput> {
        let brought = |v: Option<BlockVector>| v.map_or(Ok(None), |v| place.bring(&v));
        let (start, avoid) = (brought(self.start)?, brought(self.avoid)?);
        let diagonal = match self.diagonal {
            Some(diagonal) => {
                place.bring(&diagonal.entries)?.map(|entries| KnownDiagonal { entries, ..diagonal })
            }
            None => None,
        };
        Ok(SearchInput { start, avoid, diagonal })
    }
}

/// The `count` pairs that a search finds, at most, at the one place that has the operator, or wherever it is.
///
/// # Errors
/// Those of the search, and of what brings vectors there and tells what was found.
pub(super) fn searched(
    h: &Operator,
    count: usize,
    input: SearchInput,
    search: impl FnOnce(&Operator, SearchInput) -> Result<Eigen>,
) -> Result<Eigen> {
    let Some(place) = h.one_place() else { return search(h, input) };
    let input = input.at(place)?;
    let (vectors, numbers) = match h.at(place).map(|h| search(&h, input)) {
        Some(Ok(found)) => {
            let numbers = numbers(&found, count);
            (Some(found.vectors), Ok(Some(numbers)))
        }
        Some(Err(e)) => (None, Err(e)),
        None => (None, Ok(None)),
    };
    let told = place.tell(OTHERS + 2 * count, numbers)?;
    let (others, pairs) = told.split_at(OTHERS);
    let &[found, complex, tolerance, iterations, products, ended] = others else { return Err(untold()) };
    let (values, residuals) = pairs.split_at(count);
    let found = found as usize;
    let dtype = DType::of(h.dtype().is_single(), complex == 1.0);
    Ok(Eigen {
        values: values.iter().copied().take(found).collect(),
        residuals: residuals.iter().copied().take(found).collect(),
        vectors: place.known(vectors, (dtype, found))?,
        tolerance,
        iterations: iterations as usize,
        products: products as usize,
        ended: *SearchEnded::ALL.get(ended as usize).ok_or_else(untold)?,
    })
}

fn untold() -> Error {
    Error::internal("a search of which something else was told")
}

/// Numbers beside the values and residuals.
const OTHERS: usize = 6;

/// What others are told of a search, with room for `count` pairs.
fn numbers(found: &Eigen, count: usize) -> Vec<f64> {
    let ended = SearchEnded::ALL.iter().position(|e| *e == found.ended).unwrap_or(SearchEnded::ALL.len());
    let complex = f64::from(u8::from(found.vectors.dtype().is_complex()));
    let mut all = vec![found.values.len() as f64, complex, found.tolerance];
    all.extend([found.iterations, found.products, ended].map(|n| n as f64));
    for list in [&found.values, &found.residuals] {
        all.extend(list.iter().copied().chain(std::iter::repeat(0.0)).take(count));
    }
    all
}
