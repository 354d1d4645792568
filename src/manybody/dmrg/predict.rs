//! White's transformation: a state of one superblock in the basis of the next, one site further (Phys. Rev. Lett. 77,
//! 3633 (1996)). It is the start of the next search, which then takes a few steps instead of many.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};

use super::basis::TruncatedBasis;
use super::block::ChainBlock;
use super::space::ChainSide;
use super::spread::WholeMatrices;
use super::superblock::Superblock;
use crate::backend::matrix::records::{Element, SectorPanel};
use crate::backend::{BlockVector, Device, Rows};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// A part of a state: sector of the moving block, state of the site next to it, sector of the other block; rows are the
/// moving block's states, columns the other's.
struct StatePart<T> {
    moving: usize,
    state: usize,
    rest: usize,
    matrix: Mat<T>,
}

fn foreign() -> Error {
    Error::input("the two superblocks are not neighbours in a sweep")
        .hint("the next superblock consists of the rotated block and of the block from which the other half was grown")
}

/// Columns as a block vector of a device.
///
/// # Errors
/// Those of the device.
pub fn uploaded<T: Element>(
    device: &Device,
    (dtype, rows): (DType, usize),
    columns: &[Vec<T>],
) -> Result<BlockVector> {
    let data: Vec<C64> = (0..rows).flat_map(|i| columns.iter().map(move |c| c[i].to_c64())).collect();
    device.upload(dtype, Rows::all(rows), columns.len(), &data)
}

/// The columns of a vector of the superblock `old` in the bases of the next superblock `new`. Where one rank has such
/// vectors, it transforms them for itself alone.
///
/// # Errors
/// As `transformed_column`, and those of the devices.
pub fn transformed<T: Element>(
    old: &Superblock<T>,
    v: &BlockVector,
    new: &Superblock<T>,
    basis: &TruncatedBasis<T>,
    side: ChainSide,
) -> Result<BlockVector> {
    let (device, shape) = (old.device(), (T::DTYPE, new.dim()));
    let by = |device: &Device, v: &BlockVector| -> Result<BlockVector> {
        let columns = old.columns(device, v)?;
        let moved = columns.iter().map(|x| transformed_column(old, x, new, basis, side));
        uploaded(device, shape, &moved.collect::<Result<Vec<_>>>()?)
    };
    let Some((ranks, lone)) = device.distributed().and_then(|ranks| Some((ranks, ranks.lone()?))) else {
        return by(device, v);
    };
    let there = ranks.at_lone(v)?;
    let own = match (device.alone(), there) {
        (Some(alone), Some(v)) if lone.here => by(alone, &v).map(Some),
        _ => Ok(None),
    };
    ranks.held_by_lone(own, (shape.0, Rows::all(shape.1), v.columns()))
}

/// The vector `x` of `old` in the basis of `new`, whose block on the `side` is that of `old` rotated into `basis` and
/// grown by a site.
///
/// # Errors
/// When the superblocks are not neighbours.
pub(super) fn transformed_column<T: Element>(
    old: &Superblock<T>,
    x: &[T],
    new: &Superblock<T>,
    basis: &TruncatedBasis<T>,
    side: ChainSide,
) -> Result<Vec<T>> {
    let other = match side {
        ChainSide::Left => ChainSide::Right,
        ChainSide::Right => ChainSide::Left,
    };
    if basis.old() != old.half(side).space() {
        return Err(foreign());
    }
    let vectors = basis.vectors.all()?;
    if let Some(out) = onto_bond(old, x, new, (basis, &vectors), side, other)? {
        return Ok(out);
    }
    // The moving half loses its site by the projection; the other half gives up the site next to it.
    let (rest, pieces) = split(old, x, (basis, &vectors), side, old.half(other))?;
    let mut out = vec![T::default(); new.dim()];
    let target = new.half(other);
    let expand = target.fusion();
    let Some((_, grown, _)) = new.half(side).fusion() else {
        // A single site between the blocks passes from one half to the other at the end of the chain.
        let Some((inner, fusion, _)) = expand.filter(|e| e.0.space() == rest.space()) else {
            return Err(foreign());
        };
        debug_assert_eq!(inner.sites(), rest.sites());
        for piece in pieces {
            let Some((sector, place)) = fusion.place(piece.rest, piece.state) else { continue };
            let pair = match side {
                ChainSide::Left => new.panel(piece.moving, sector),
                ChainSide::Right => new.panel(sector, piece.moving),
            };
            if let Some(panel) = pair {
                put(&mut out, panel, piece.matrix.as_ref(), 0, place.offset, side);
            }
        }
        return Ok(out);
    };
    if expand.is_none() && target.space() != rest.space() {
        return Err(foreign());
    }
    let unfolded = match (expand, rest.origin()) {
        (Some(_), Some((_, basis))) => Some(basis.vectors.all()?),
        _ => None,
    };
    for piece in pieces {
        let Some((sector, place)) = grown.place(piece.moving, piece.state) else { continue };
        let (matrix, far) = match expand {
            None => (piece.matrix, piece.rest),
            Some(_) => {
                let Some((from, basis)) = rest.origin() else { return Err(foreign()) };
                if from.space() != target.space() {
                    return Err(foreign());
                }
                let v = unfolded.as_ref().ok_or_else(foreign)?[piece.rest].here_alone()?;
                let mut wide = Mat::zeros(piece.matrix.nrows(), v.nrows());
                let one = T::one_impl();
                matmul(wide.as_mut(), Accum::Replace, piece.matrix.as_ref(), v.transpose(), one, Par::Seq);
                (wide, basis.old_sector[piece.rest])
            }
        };
        let pair = match side {
            ChainSide::Left => new.panel(sector, far),
            ChainSide::Right => new.panel(far, sector),
        };
        let Some(panel) = pair else { continue };
        if matrix.nrows() != place.dim {
            return Err(foreign());
        }
        put(&mut out, panel, matrix.as_ref(), place.offset, 0, side);
    }
    Ok(out)
}

/// The state projected on the new basis where `new` has no site between its blocks and the other one stays as it is.
fn onto_bond<T: Element>(
    old: &Superblock<T>,
    x: &[T],
    new: &Superblock<T>,
    (basis, vectors): (&TruncatedBasis<T>, &WholeMatrices<T>),
    side: ChainSide,
    other: ChainSide,
) -> Result<Option<Vec<T>>> {
    let (own, rest, before) = (new.half(side), new.half(other), old.half(other));
    let bare = own.fusion().is_none() && rest.fusion().is_none() && before.fusion().is_none();
    let same = rest.space() == before.space() && rest.sites() == before.sites();
    if !bare || !same || own.space() != basis.new_space() {
        return Ok(None);
    }
    let mut out = vec![T::default(); new.dim()];
    for (pair, panel) in old.panels(x) {
        let (moving, far, m): (usize, usize, MatRef<'_, T>) = match side {
            ChainSide::Left => (pair.left, pair.right, panel),
            ChainSide::Right => (pair.right, pair.left, panel.transpose()),
        };
        let Some(sector) = basis.kept(moving) else { continue };
        let to = match side {
            ChainSide::Left => new.panel(sector, far),
            ChainSide::Right => new.panel(far, sector),
        };
        let Some(to) = to else { continue };
        let u = vectors[sector].here_alone()?;
        let mut projected = Mat::zeros(u.ncols(), m.ncols());
        matmul(projected.as_mut(), Accum::Replace, u.adjoint(), m, T::one_impl(), Par::Seq);
        put(&mut out, to, projected.as_ref(), 0, 0, side);
    }
    Ok(Some(out))
}

/// Adds a matrix to a part of a vector; its rows belong to the block on `side`.
fn put<T: Element>(
    out: &mut [T],
    panel: SectorPanel,
    m: MatRef<'_, T>,
    row: usize,
    column: usize,
    side: ChainSide,
) {
    for i in 0..m.nrows() {
        for j in 0..m.ncols() {
            let (r, c) = match side {
                ChainSide::Left => (row + i, column + j),
                ChainSide::Right => (column + j, row + i),
            };
            out[panel.offset + r * panel.columns + c] += m[(i, j)];
        }
    }
}

/// The state projected on the new basis, with the other half split into its first site and the rest.
fn split<T: Element>(
    old: &Superblock<T>,
    x: &[T],
    (basis, vectors): (&TruncatedBasis<T>, &WholeMatrices<T>),
    side: ChainSide,
    other: &Arc<ChainBlock<T>>,
) -> Result<(Arc<ChainBlock<T>>, Vec<StatePart<T>>)> {
    let mut pieces = Vec::new();
    let (rest, fusion, unfold) = match other.fusion() {
        Some((rest, fusion, _)) => (rest.clone(), fusion, None),
        None => {
            let Some((grown, basis)) = other.origin() else { return Err(foreign()) };
            let Some((rest, fusion, _)) = grown.fusion() else { return Err(foreign()) };
            (rest.clone(), fusion, Some((basis, basis.vectors.all()?)))
        }
    };
    for (pair, panel) in old.panels(x) {
        let (own, far, m): (usize, usize, MatRef<'_, T>) = match side {
            ChainSide::Left => (pair.left, pair.right, panel),
            ChainSide::Right => (pair.right, pair.left, panel.transpose()),
        };
        let Some(moving) = basis.kept(own) else { continue };
        let u = vectors[moving].here_alone()?;
        let mut projected = Mat::zeros(u.ncols(), m.ncols());
        matmul(projected.as_mut(), Accum::Replace, u.adjoint(), m, T::one_impl(), Par::Seq);
        let sector = match &unfold {
            None => far,
            Some((other, vectors)) => {
                let v = vectors[far].here_alone()?;
                let mut wide = Mat::zeros(projected.nrows(), v.nrows());
                let narrow = projected.as_ref();
                matmul(wide.as_mut(), Accum::Replace, narrow, v.transpose(), T::one_impl(), Par::Seq);
                projected = wide;
                other.old_sector[far]
            }
        };
        for part in fusion.parts(sector) {
            let matrix = projected.as_ref().subcols(part.offset, part.dim).to_owned();
            pieces.push(StatePart { moving, state: part.state, rest: part.inner, matrix });
        }
    }
    Ok((rest, pieces))
}
