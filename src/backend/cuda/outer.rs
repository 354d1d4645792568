//! Vectors whose blocks are sums of outer products, by the kernel of superblocks.

use std::ops::Range;
use std::sync::Arc;

use super::card::Card;
use super::reals;
use super::records::{MATRIX, Step, TilePlan};
use crate::backend::BlockVector;
use crate::backend::matrix::outer::{Outer, OuterSums};
use crate::error::Result;

/// Part of a vector that is made of sums of outer products.
pub(super) fn numbers(card: &Arc<Card>, sums: &OuterSums, range: Range<usize>) -> Result<BlockVector> {
    let numbers: Vec<f64> =
        sums.terms.iter().flatten().flat_map(|term| term.rows.iter().chain(&term.columns).copied()).collect();
    let numbers = card.upload(&numbers)?;
    // Where the numbers of each block's first term begin.
    let mut first = vec![numbers.address];
    for terms in &sums.terms {
        let bytes: usize = terms.iter().map(|term| 8 * (term.rows.len() + term.columns.len())).sum();
        first.push(first[first.len() - 1] + bytes as u64);
    }
    let (mut plan, mut offset) = (TilePlan::default(), 0);
    // The kernel takes places before the beginning of a tile as negative numbers.
    let behind = |place: usize, first: usize| place.wrapping_sub(first) as u32;
    for piece in sums.pieces(&range) {
        let mut at = first[piece.panel];
        let step = |term: &Outer| {
            let left = at;
            let right = left + 8 * term.rows.len() as u64;
            at = right + 8 * term.columns.len() as u64;
            Step {
                scale: 1.0,
                left,
                right,
                row: behind(term.row, piece.row),
                rows: term.rows.len() as u32,
                column: behind(term.column, piece.column),
                columns: term.columns.len() as u32,
                depth: 1,
                left_row: 1,
                left_column: term.rows.len() as u32,
                right_row: term.columns.len() as u32,
                left_kind: MATRIX,
                right_kind: MATRIX,
            }
        };
        plan.block(offset, piece.rows, piece.columns, sums.terms[piece.panel].iter().map(step).collect());
        offset += piece.rows * piece.columns;
    }
    let out = card.allocate(8 * offset)?;
    plan.multiply(card, &numbers, &out)?;
    Ok(reals(out, offset))
}
