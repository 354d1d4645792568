//! Operators of a block in a new basis, by the kernel of superblocks: `A V` for all of them in one launch, `U^T (A V)` in another.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::Zeroable;
use faer::Mat;
use rayon::prelude::*;

use super::DeviceBlock;
use super::card::{Buffer, Card};
use super::records::{INNER, MATRIX, Plan, Step};
use crate::backend::matrix::records::Turn;
use crate::backend::{BlockVector, Rows, Storage};
use crate::error::Result;
use crate::number::DType;

/// Matrices on the card, each once.
struct Packed {
    #[expect(dead_code, reason = "kept alive for the kernels, which have its address")]
    numbers: Buffer,
    /// Where each begins.
    places: HashMap<*const Mat<f64>, u64>,
}

/// Brings matrices to the card, as rows or as columns.
fn packed<'a>(
    card: &Arc<Card>,
    matrices: impl Iterator<Item = &'a Mat<f64>>,
    by_rows: bool,
) -> Result<Packed> {
    let mut distinct: Vec<&Mat<f64>> = matrices.collect();
    distinct.sort_by_key(|m| std::ptr::from_ref(*m));
    distinct.dedup_by_key(|m| std::ptr::from_ref(*m));
    let size = |m: &Mat<f64>| m.nrows() * m.ncols();
    let numbers = card.allocate(8 * distinct.iter().map(|m| size(m)).sum::<usize>())?;
    let mut at = 0;
    let mut places = HashMap::new();
    for m in distinct {
        let mut own = vec![0.0; size(m)];
        if by_rows {
            let row = |(i, row): (usize, &mut [f64])| (0..m.ncols()).for_each(|j| row[j] = m[(i, j)]);
            own.par_chunks_exact_mut(m.ncols().max(1)).enumerate().for_each(row);
        } else {
            let column = |(j, column): (usize, &mut [f64])| {
                column.iter_mut().zip(m.col(j).iter()).for_each(|(to, x)| *to = *x);
            };
            own.par_chunks_exact_mut(m.nrows().max(1)).enumerate().for_each(column);
        }
        card.overwrite_at(&numbers, at, &own)?;
        places.insert(std::ptr::from_ref(m), numbers.address + at as u64);
        at += 8 * own.len();
    }
    Ok(Packed { numbers, places })
}

/// The numbers of all of them, in their order.
pub(super) fn turned(card: &Arc<Card>, turns: &[Turn<'_, f64>]) -> Result<BlockVector> {
    let pieces = turns.iter().flat_map(|turn| turn.pieces);
    let operators = packed(card, pieces.filter_map(|f| f.matrix.as_deref()), false)?;
    let bases = packed(card, turns.iter().flat_map(|turn| [turn.rows, turn.columns]), true)?;
    let place = |of: &Packed, m: &Mat<f64>| of.places.get(&std::ptr::from_ref(m)).copied().unwrap_or(0);
    let (mut first, mut second) = (Plan::default(), Plan::default());
    let (mut inner, mut all) = (0, 0);
    for turn in turns {
        let (height, width, new) = (turn.rows.nrows(), turn.columns.ncols(), turn.rows.ncols());
        let (u, v) = (place(&bases, turn.rows), place(&bases, turn.columns));
        let products = turn.pieces.iter().map(|f| {
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
            match &f.matrix {
                Some(a) => Step {
                    left: place(&operators, a),
                    left_row: 1,
                    left_column: a.nrows() as u32,
                    right: below,
                    right_row: width as u32,
                    depth: f.columns as u32,
                    ..step
                },
                // A multiple of the identity only moves numbers.
                None => Step { left: below, left_row: width as u32, left_column: 1, ..step },
            }
        });
        first.block(inner, height, width, products.collect());
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
    let storage = Storage::Cuda(DeviceBlock(Arc::new(out)));
    Ok(BlockVector { dtype: DType::F64, rows: Rows::all(all), columns: 1, storage })
}
