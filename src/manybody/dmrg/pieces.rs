//! Operators in pieces put together to one matrix, by the device that has the pieces or by the processor, and what the
//! diagonal of a superblock is made of.

use std::collections::HashMap;
use std::sync::Arc;

use faer::Mat;

use crate::backend::Device;
use crate::backend::matrix::held::{
    AddedRectangle, Composed, DeviceNumbers, HeldMatrix, TermSource, before_threads,
};
use crate::backend::matrix::outer::{Outer, OuterSums};
use crate::backend::matrix::records::{Element, OperatorPiece, ProductRecord, RecordList};
use crate::error::{Error, ErrorKind, Result};
use crate::number::C64;
use crate::task::parallel;

/// The pieces of a matrix, and its size.
pub(super) struct CoveredMatrix<T> {
    pub shape: (usize, usize),
    pub factors: Vec<OperatorPiece<T>>,
}

/// What tells matrices that are made of the same pieces: places, factors and the matrices themselves.
pub(super) fn signature<T: Element>(factors: &[OperatorPiece<T>]) -> Vec<[u64; 7]> {
    let of = |f: &OperatorPiece<T>| {
        let (z, at) = (f.scale.to_c64(), f.matrix.as_ref().map_or(0, |m| Arc::as_ptr(m) as usize));
        let places = [f.row, f.rows, f.column, f.columns].map(|n| n as u64);
        [places[0], places[1], places[2], places[3], z.re.to_bits(), z.im.to_bits(), at as u64]
    };
    factors.iter().map(of).collect()
}

/// The matrices, each of its pieces.
///
/// # Errors
/// Those of the device.
pub(super) fn put_together<T: Element>(
    device: &Device,
    all: &[CoveredMatrix<T>],
) -> Result<Vec<Arc<HeldMatrix<T>>>> {
    match on_device(device, all) {
        Err(e) if e.kind() == ErrorKind::Interrupted => return Err(e),
        Ok(Some(matrices)) => return Ok(matrices),
        // The processor has other room.
        Ok(None) | Err(_) => {}
    }
    before_threads(all.iter().flat_map(|whole| &whole.factors).filter_map(|f| f.matrix.as_ref()))?;
    parallel::try_map(all.len(), |k| here(&all[k]).map(|m| Arc::new(m.into())))
}

/// By the device that has the pieces, from which the host would have to copy them.
fn on_device<T: Element>(
    device: &Device,
    all: &[CoveredMatrix<T>],
) -> Result<Option<Vec<Arc<HeldMatrix<T>>>>> {
    let Some(keeper) = device.keeper() else { return Ok(None) };
    let mut pieces = all.iter().flat_map(|whole| &whole.factors).filter_map(|f| f.matrix.as_ref());
    if !pieces.any(|m| m.is_there()) {
        return Ok(None);
    }
    let mut composed = Vec::with_capacity(all.len());
    for whole in all {
        let terms: Option<Vec<AddedRectangle<'_>>> = whole.factors.iter().map(real_term).collect();
        let Some(terms) = terms else { return Ok(None) };
        let (rows, columns) = whole.shape;
        composed.push(Composed { rows, columns, by_rows: false, terms });
    }
    let numbers = DeviceNumbers::new(device, keeper.composed(&composed)?)?;
    let mut first = 0;
    let held = |whole: &CoveredMatrix<T>| {
        let at = first;
        first += whole.shape.0 * whole.shape.1;
        Arc::new(HeldMatrix::within(&numbers, at, whole.shape, false))
    };
    Ok(Some(all.iter().map(held).collect()))
}

/// A piece of a real operator.
fn real_term<T: Element>(f: &OperatorPiece<T>) -> Option<AddedRectangle<'_>> {
    let from = match &f.matrix {
        None => TermSource::Identity,
        Some(m) => TermSource::Matrix(T::as_real(m)?),
    };
    let (row, rows, column, columns) = (f.row, f.rows, f.column, f.columns);
    Some(AddedRectangle { scale: f.scale.to_c64().re, row, rows, column, columns, from })
}

fn here<T: Element>(whole: &CoveredMatrix<T>) -> Result<Mat<T>> {
    let mut sum = Mat::<T>::zeros(whole.shape.0, whole.shape.1);
    for f in &whole.factors {
        let mut part = sum.as_mut().submatrix_mut(f.row, f.column, f.rows, f.columns);
        match &f.matrix {
            Some(a) => {
                let a = a.here()?;
                for j in 0..f.columns {
                    let (y, x) = (part.as_mut().col_mut(j), a.col(j));
                    y.iter_mut().zip(x.iter()).for_each(|(y, x)| *y += f.scale * *x);
                }
            }
            None => (0..f.rows).for_each(|i| part[(i, i)] += f.scale),
        }
    }
    Ok(sum)
}

/// The diagonal of a superblock: of what each block contributes to itself the diagonals of both sides.
///
/// # Errors
/// Those of the device that has the matrices.
pub(super) fn diagonal<T: Element>(device: &Device, list: &RecordList<T>) -> Result<OuterSums> {
    let mut pairs: Vec<Vec<(&OperatorPiece<T>, &OperatorPiece<T>)>> = Vec::with_capacity(list.panels.len());
    for (target, records) in list.records.iter().enumerate() {
        let mut own = Vec::new();
        let mut add = |a, b| {
            let on_diagonal = |f: &OperatorPiece<T>| f.row == f.column;
            if on_diagonal(a) && on_diagonal(b) {
                own.push((a, b));
            }
        };
        for record in records.iter().filter(|record| record.source() == target) {
            match record {
                ProductRecord::Single { left, right, .. } => add(left, right),
                ProductRecord::Double { left, right, .. } => {
                    left.iter().for_each(|a| right.iter().for_each(|b| add(a, b)));
                }
            }
        }
        pairs.push(own);
    }
    let matrices = pairs.iter().flatten().flat_map(|(a, b)| [a, b]).filter_map(|f| f.matrix.as_ref());
    let known = diagonals(device, matrices)?;
    let own = |f: &OperatorPiece<T>| -> Vec<C64> {
        let scale = f.scale.to_c64();
        match f.matrix.as_ref().and_then(|m| known.get(&Arc::as_ptr(m))) {
            None => vec![scale; f.rows],
            Some(entries) => entries.iter().map(|x| scale * x).collect(),
        }
    };
    let outer = |(a, b): &(&OperatorPiece<T>, &OperatorPiece<T>)| -> Vec<Outer> {
        let (x, y) = (own(a), own(b));
        let parts = |of: fn(&C64) -> f64, sign: f64| Outer {
            row: a.row,
            rows: x.iter().map(|z| sign * of(z)).collect(),
            column: b.row,
            columns: y.iter().map(of).collect(),
        };
        // The real part of the product.
        let mut all = vec![parts(|z| z.re, 1.0)];
        if T::DTYPE.is_complex() {
            all.push(parts(|z| z.im, -1.0));
        }
        all
    };
    let terms = pairs.iter().map(|own| own.iter().flat_map(outer).collect()).collect();
    Ok(OuterSums { dim: list.dim, panels: list.panels.clone(), terms })
}

type Diagonals<T> = HashMap<*const HeldMatrix<T>, Vec<C64>>;

/// The diagonals of square matrices. Those that a device has travel alone.
fn diagonals<'a, T: Element>(
    device: &Device,
    matrices: impl Iterator<Item = &'a Arc<HeldMatrix<T>>>,
) -> Result<Diagonals<T>> {
    let (mut known, mut missing) = (HashMap::new(), Vec::new());
    for m in matrices {
        if known.contains_key(&Arc::as_ptr(m)) {
            continue;
        }
        let entries = if m.is_there() && m.known().is_none() && device.keeper().is_some() {
            missing.push(m);
            Vec::new()
        } else {
            let m = m.here()?;
            (0..m.nrows().min(m.ncols())).map(|i| m[(i, i)].to_c64()).collect()
        };
        known.insert(Arc::as_ptr(m), entries);
    }
    let Some(keeper) = device.keeper().filter(|_| !missing.is_empty()) else { return Ok(known) };
    // A block that the device has, with the first number and the distance to the next;
    // a column of the host where its memory was short.
    let place = |m: &&Arc<HeldMatrix<T>>| match m.there() {
        Some((block, first, by_rows)) => {
            Ok(Ok((block, first, 1 + if by_rows { m.ncols() } else { m.nrows() } as i64)))
        }
        None => {
            let all = m.here_alone()?;
            Ok(Err(HeldMatrix::from(Mat::from_fn(all.nrows(), 1, |i, _| all[(i, i)].to_c64().re))))
        }
    };
    let places: Vec<std::result::Result<_, HeldMatrix<f64>>> =
        missing.iter().map(place).collect::<Result<_>>()?;
    let composed = missing.iter().zip(&places).map(|(m, place)| {
        let from = match place {
            Ok((block, first, next)) => TermSource::Block(block, *first, [*next, 0]),
            Err(column) => TermSource::Matrix(column),
        };
        let rows = m.nrows();
        let terms = vec![AddedRectangle { scale: 1.0, row: 0, rows, column: 0, columns: 1, from }];
        Composed { rows, columns: 1, by_rows: true, terms }
    });
    let entries = keeper.composed(&composed.collect::<Vec<_>>())?;
    let mut entries = device.download_part(&entries, 0..entries.rows().local)?.into_iter();
    for m in &missing {
        let own: Vec<C64> = entries.by_ref().take(m.nrows()).map(C64::from).collect();
        if own.len() < m.nrows() {
            return Err(Error::internal("fewer numbers than those of the diagonals"));
        }
        known.insert(Arc::as_ptr(m), own);
    }
    Ok(known)
}
