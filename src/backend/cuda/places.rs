//! Where dense matrices are on the card: its own results, and matrices copied there. Matrices assembled from them.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::card::{Card, CardBuffer};
use super::{arguments, buffer, reals};
use crate::backend::BlockVector;
use crate::backend::matrix::held::{Composed, HeldMatrix, TermSource};
use crate::error::{Error, Result};

/// Numbers of small matrices that travel together: each copy takes as long as some thousand numbers.
const PACKED: usize = 1 << 17;

/// Matrices that a kernel reads, by the addresses that they have on the card.
pub(super) struct CardMatrices {
    #[expect(dead_code, reason = "kept alive for the kernels, which have their addresses")]
    kept: (Option<CardBuffer>, Vec<BlockVector>),
    places: HashMap<*const HeldMatrix<f64>, MatrixAddress>,
}

/// The address of the first number, and whether they stand row by row.
#[derive(Clone, Copy)]
pub(super) struct MatrixAddress {
    pub address: u64,
    pub by_rows: bool,
}

/// A matrix that this card has.
pub(super) fn on_card(card: &Arc<Card>, m: &HeldMatrix<f64>) -> Option<(BlockVector, MatrixAddress)> {
    let (block, first, by_rows) = m.there()?;
    let address = buffer(&block).ok().filter(|own| own.is_on(card))?.address + 8 * first as u64;
    Some((block, MatrixAddress { address, by_rows }))
}

/// A matrix that another card has, which this one reaches, column by column: its numbers there, which are complete.
pub(super) fn on_other_card(card: &Arc<Card>, m: &HeldMatrix<f64>) -> Result<Option<(BlockVector, u64)>> {
    let Some((block, first, false)) = m.there() else { return Ok(None) };
    let Ok(numbers) = buffer(&block) else { return Ok(None) };
    let (there, address) = (numbers.card(), numbers.address + 8 * first as u64);
    if !card.reaches(there.context())? {
        return Ok(None);
    }
    there.synchronize("matrices for another GPU")?;
    Ok(Some((block, address)))
}

impl CardMatrices {
    /// All of these, each once: those that the card has as they are, if they stand as `by_rows` says,
    /// the others brought so.
    pub fn of<'a>(
        card: &Arc<Card>,
        matrices: impl Iterator<Item = &'a HeldMatrix<f64>>,
        by_rows: bool,
    ) -> Result<CardMatrices> {
        let mut distinct: Vec<&HeldMatrix<f64>> = matrices.collect();
        distinct.sort_by_key(|m| std::ptr::from_ref(*m));
        distinct.dedup_by_key(|m| std::ptr::from_ref(*m));
        let (mut places, mut kept, mut missing) = (HashMap::new(), Vec::new(), Vec::new());
        for m in distinct {
            match on_card(card, m).filter(|(_, place)| place.by_rows == by_rows) {
                Some((block, place)) => {
                    kept.push(block);
                    places.insert(std::ptr::from_ref(m), place);
                }
                None => missing.push(m),
            }
        }
        if missing.is_empty() {
            return Ok(CardMatrices { kept: (None, kept), places });
        }
        let size = |m: &HeldMatrix<f64>| m.nrows() * m.ncols();
        let numbers = card.allocate(8 * missing.iter().map(|m| size(m)).sum::<usize>())?;
        let (mut at, mut packed) = (0, Vec::new());
        let send = |packed: &mut Vec<f64>, at: &mut usize| -> Result<()> {
            if !packed.is_empty() {
                card.overwrite_at(&numbers, 8 * *at, packed)?;
            }
            *at += packed.len();
            packed.clear();
            Ok(())
        };
        for held in missing {
            let m = held.here_alone()?;
            let m = if by_rows { m.transpose() } else { m };
            if packed.len() + size(held) > PACKED {
                send(&mut packed, &mut at)?;
            }
            let address = numbers.address + 8 * (at + packed.len()) as u64;
            places.insert(std::ptr::from_ref(held), MatrixAddress { address, by_rows });
            if size(held) <= PACKED {
                (0..m.ncols()).for_each(|j| packed.extend(m.col(j).iter()));
                continue;
            }
            packed.resize(size(held), 0.0);
            let column = |(j, column): (usize, &mut [f64])| {
                column.iter_mut().zip(m.col(j).iter()).for_each(|(to, x)| *to = *x);
            };
            packed.par_chunks_exact_mut(m.nrows()).enumerate().for_each(column);
            send(&mut packed, &mut at)?;
        }
        send(&mut packed, &mut at)?;
        Ok(CardMatrices { kept: (Some(numbers), kept), places })
    }

    /// Where one of them is.
    pub fn at(&self, m: &HeldMatrix<f64>) -> Result<MatrixAddress> {
        let known = self.places.get(&std::ptr::from_ref(m)).copied();
        known.ok_or_else(|| Error::internal("a matrix that was not brought to the card"))
    }
}

/// Rows and columns of a tile, and the threads that it takes.
const SIDE: usize = 32;
const THREADS: u32 = 256;

/// A rectangle as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Rectangle {
    scale: f64,
    from: u64,
    down: i64,
    across: i64,
    row: u32,
    rows: u32,
    column: u32,
    columns: u32,
}

/// A tile of a result as kernels read it: where that begins, its size, the tile's first row and column,
/// and what it is the sum of.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Tile {
    pub out: u64,
    pub rows: u32,
    pub columns: u32,
    pub row: u32,
    pub column: u32,
    pub first: u32,
    pub count: u32,
}

/// Matrices put together from others, one after the other.
pub(super) fn composed(card: &Arc<Card>, all: &[Composed<'_>]) -> Result<BlockVector> {
    let matrices = all.iter().flat_map(|m| &m.terms).filter_map(|term| match term.from {
        TermSource::Matrix(m) => Some(m),
        TermSource::Identity | TermSource::Block(..) => None,
    });
    // Most are those of operators, which stand column by column.
    let places = CardMatrices::of(card, matrices, false)?;
    let (mut tiles, mut rectangles, mut at) = (Vec::new(), Vec::new(), 0);
    for m in all {
        let first = rectangles.len() as u32;
        for term in &m.terms {
            let (from, [down, across]) = match term.from {
                TermSource::Identity => (0, [0, 0]),
                TermSource::Matrix(m) => (places.at(m)?.address, [1, m.nrows() as i64]),
                TermSource::Block(block, first, ways) => (buffer(block)?.address + 8 * first as u64, ways),
            };
            let (row, rows, column, columns) =
                (term.row as u32, term.rows as u32, term.column as u32, term.columns as u32);
            let scale = term.scale;
            rectangles.push(match m.by_rows {
                true => Rectangle { scale, from, down, across, row, rows, column, columns },
                // The transpose row by row.
                false => Rectangle {
                    scale,
                    from,
                    down: across,
                    across: down,
                    row: column,
                    rows: columns,
                    column: row,
                    columns: rows,
                },
            });
        }
        let (rows, columns) = if m.by_rows { (m.rows, m.columns) } else { (m.columns, m.rows) };
        let count = m.terms.len() as u32;
        for (row, column) in
            (0..rows).step_by(SIDE).flat_map(|row| (0..columns).step_by(SIDE).map(move |c| (row, c)))
        {
            let (row, column) = (row as u32, column as u32);
            let (rows, columns) = (rows as u32, columns as u32);
            tiles.push(Tile { out: at as u64, rows, columns, row, column, first, count });
        }
        at += rows * columns;
    }
    let out = card.allocate(8 * at)?;
    if !tiles.is_empty() {
        let count = u32::try_from(tiles.len()).map_err(|_| Error::internal("too many tiles"))?;
        let (tiles, rectangles) = (card.upload(&tiles)?, card.upload(&rectangles)?);
        let (of, from, to) = (tiles.address, rectangles.address, out.address);
        // SAFETY: the kernel's arguments. The tiles lie within `out`, and whoever asked has kept to the blocks that he
        // names.
        unsafe { card.launch("compose_f64", (count, 1), THREADS, &arguments![of, from, to])? };
    }
    Ok(reals(out, at))
}
