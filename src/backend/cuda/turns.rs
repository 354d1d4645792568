//! Operators of a block in a new basis, by the kernel of superblocks: `A V` for all of them in one launch,
//! `U^T (A V)` in another.

use std::sync::Arc;

use bytemuck::Zeroable;

use super::card::Card;
use super::places::CardMatrices;
use super::reals;
use super::records::{INNER, MATRIX, Step, TilePlan};
use crate::backend::BlockVector;
use crate::backend::matrix::records::BasisChange;
use crate::error::Result;

/// The numbers of all of them, in their order.
pub(super) fn turned(card: &Arc<Card>, turns: &[BasisChange<'_, f64>]) -> Result<BlockVector> {
    let pieces = turns.iter().flat_map(|turn| turn.pieces);
    let operators = CardMatrices::of(card, pieces.filter_map(|f| f.matrix.as_deref()), false)?;
    let bases = CardMatrices::of(card, turns.iter().flat_map(|turn| [turn.rows, turn.columns]), true)?;
    let (mut first, mut second) = (TilePlan::default(), TilePlan::default());
    let (mut inner, mut all) = (0, 0);
    for turn in turns {
        let (height, width, new) = (turn.rows.nrows(), turn.columns.ncols(), turn.rows.ncols());
        let (u, v) = (bases.at(turn.rows)?.address, bases.at(turn.columns)?.address);
        let products = turn.pieces.iter().map(|f| -> Result<Step> {
            let below = v + 8 * (f.column * width) as u64;
            let step = Step {
                scale: f.scale,
                row: f.row as u32,
                rows: f.rows as u32,
                columns: width as u32,
                left_kind: MATRIX,
                right_kind: MATRIX,
                ..Step::zeroed()
            };
            Ok(match &f.matrix {
                Some(a) => Step {
                    left: operators.at(a)?.address,
                    left_row: 1,
                    left_column: a.nrows() as u32,
                    right: below,
                    right_row: width as u32,
                    depth: f.columns as u32,
                    ..step
                },
                // A multiple of the identity only moves numbers.
                None => Step { left: below, left_row: width as u32, left_column: 1, ..step },
            })
        });
        first.block(inner, height, width, products.collect::<Result<_>>()?);
        // The transpose, row by row, is the matrix column by column.
        let back = Step {
            scale: 1.0,
            rows: width as u32,
            columns: new as u32,
            left: inner as u64,
            left_row: 1,
            left_column: width as u32,
            left_kind: INNER,
            right: u,
            right_row: new as u32,
            right_kind: MATRIX,
            depth: height as u32,
            ..Step::zeroed()
        };
        second.block(all, width, new, vec![back]);
        inner += height * width;
        all += width * new;
    }
    let (middle, out) = (card.allocate(8 * inner)?, card.allocate(8 * all)?);
    first.multiply(card, &middle, &middle)?;
    second.multiply(card, &middle, &out)?;
    Ok(reals(out, all))
}
