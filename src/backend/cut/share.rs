//! One part's rows of a matrix: the entries in its own columns, in the format asked for,
//! and those in the columns of others.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::{RowCut, RowDivision};
use crate::backend::boxes::Boxes;
use crate::backend::matrix::records::Records;
use crate::backend::matrix::wilson::{Face, WilsonBox, WilsonSpec};
use crate::backend::matrix::{Csr, Indices, MatrixValues, Stencil, StencilTerm, Wrap, merge};
use crate::backend::{KernelShape, MatrixSpec, Rows};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// A column of another part: that part, and the row's number there.
pub(in crate::backend) type RemoteColumn = (usize, usize);

/// An entry in a column of another part: local row, place of the column, value.
pub(in crate::backend) type OutsideEntry = (usize, RemoteColumn, C64);

pub(in crate::backend) struct RowShare {
    /// What meets the part's own columns.
    pub own: MatrixSpec,
    /// Everything else, rows and places ascending, none twice.
    pub outside: Vec<OutsideEntry>,
}

/// Rows and columns of a matrix, where it is one that rows can be shared out of; none where its vectors live whole.
pub(in crate::backend) fn shape(spec: &MatrixSpec) -> Option<(usize, usize)> {
    match spec {
        MatrixSpec::Csr(csr) | MatrixSpec::Ell(csr) | MatrixSpec::Sell { csr, .. } => {
            Some((csr.rows, csr.cols))
        }
        MatrixSpec::Dense { rows, cols, .. } => Some((*rows, *cols)),
        MatrixSpec::Stencil(stencil) => Some((stencil.dim(), stencil.dim())),
        MatrixSpec::Wilson(spec) => Some((spec.rows().global, spec.rows().global)),
        MatrixSpec::SiteDiagonal { rows, .. } => Some((rows.global, rows.global)),
        MatrixSpec::Records { .. } => None,
    }
}

pub(in crate::backend) fn dtype(spec: &MatrixSpec) -> DType {
    match spec {
        MatrixSpec::Csr(csr) | MatrixSpec::Ell(csr) | MatrixSpec::Sell { csr, .. } => csr.values.dtype(),
        MatrixSpec::Dense { dtype, .. } => *dtype,
        MatrixSpec::Stencil(stencil) => stencil.dtype,
        MatrixSpec::Wilson(spec) => DType::of(spec.single, true),
        MatrixSpec::SiteDiagonal { single, .. } => DType::of(*single, false),
        MatrixSpec::Records { records: Records::Real(_), .. } => DType::F64,
        MatrixSpec::Records { records: Records::Complex(_), .. } => DType::C64,
    }
}

/// What vectors a matrix takes and gives.
pub(in crate::backend) fn kernel_shape(spec: &MatrixSpec) -> KernelShape {
    match spec {
        MatrixSpec::Wilson(spec) => spec.shape(),
        MatrixSpec::SiteDiagonal { rows, .. } => KernelShape::square(*rows, dtype(spec)),
        MatrixSpec::Records { records, .. } => KernelShape::square(Rows::all(records.dim()), dtype(spec)),
        _ => {
            let (rows, cols) = shape(spec).unwrap_or_default();
            KernelShape { rows: Rows::all(rows), cols, dtype: dtype(spec) }
        }
    }
}

/// Checks what comes from outside, once for all parts.
pub(in crate::backend) fn validate(spec: &MatrixSpec) -> Result<()> {
    match spec {
        MatrixSpec::Csr(csr) | MatrixSpec::Ell(csr) | MatrixSpec::Sell { csr, .. } => {
            csr.validate()?;
            let ascending = |row: usize| {
                let entries = csr.row_start[row]..csr.row_start[row + 1];
                entries.clone().skip(1).all(|at| csr.columns.get(at - 1) < csr.columns.get(at))
            };
            match (0..csr.rows).find(|&row| !ascending(row)) {
                Some(row) => Err(Error::internal(format!("the columns of row {row} do not ascend"))),
                None => Ok(()),
            }
        }
        MatrixSpec::Stencil(stencil) => stencil.validate(),
        MatrixSpec::Wilson(spec) => spec.validate(),
        MatrixSpec::Dense { rows, cols, values, .. } if rows * cols != values.len() => {
            Err(Error::internal(format!("{} numbers for a matrix of {rows} x {cols}", values.len())))
        }
        _ => Ok(()),
    }
}

/// How far the terms of a stencil look in each direction.
pub(in crate::backend) fn reach(stencil: &Stencil) -> Vec<usize> {
    let far = |d: usize| stencil.terms.iter().map(|t| t.shift[d].unsigned_abs() as usize).max().unwrap_or(0);
    (0..stencil.cells.len()).map(far).collect()
}

/// This part's rows.
///
/// # Errors
/// Matrices whose rows are not shared out.
pub(in crate::backend) fn share(spec: &MatrixSpec, rows: &RowCut, cols: &RowCut) -> Result<RowShare> {
    match spec {
        MatrixSpec::Csr(csr) => {
            let (own, outside) = stored(csr, rows, cols);
            Ok(RowShare { own: MatrixSpec::Csr(own), outside })
        }
        MatrixSpec::Ell(csr) => {
            let (own, outside) = stored(csr, rows, cols);
            Ok(RowShare { own: MatrixSpec::Ell(own), outside })
        }
        MatrixSpec::Sell { csr, chunk, sigma } => {
            let (own, outside) = stored(csr, rows, cols);
            Ok(RowShare { own: MatrixSpec::Sell { csr: own, chunk: *chunk, sigma: *sigma }, outside })
        }
        MatrixSpec::Dense { cols: width, dtype, values, .. } => {
            let (mut own, mut outside) = (Vec::new(), Vec::new());
            let columns: Vec<usize> = cols.own_rows().collect();
            for (local, row) in rows.own_rows().enumerate() {
                let numbers = &values[row * width..(row + 1) * width];
                own.extend(columns.iter().map(|&j| numbers[j]));
                let beyond = numbers.iter().enumerate().filter(|(_, z)| **z != C64::default());
                let beyond = beyond.map(|(j, z)| (local, cols.holder(j), *z));
                outside.extend(beyond.filter(|(_, place, _)| place.0 != cols.part));
            }
            outside.sort_by_key(|e: &OutsideEntry| (e.0, e.1));
            let own =
                MatrixSpec::Dense { rows: rows.local(), cols: columns.len(), dtype: *dtype, values: own };
            Ok(RowShare { own, outside })
        }
        MatrixSpec::Stencil(stencil) => match boxes_of(stencil, rows) {
            Some(boxes) if rows == cols => Ok(piece(stencil, rows, &boxes)),
            _ => {
                let mut of_row = Vec::new();
                let mut read = |row: usize, to: &mut Vec<(usize, C64)>| {
                    stencil.merged_row(row, &mut of_row);
                    to.extend_from_slice(&of_row);
                };
                let (own, outside) = compressed(stencil.dtype, rows, cols, &mut read);
                Ok(RowShare { own: MatrixSpec::Csr(own), outside })
            }
        },
        MatrixSpec::Wilson(_) | MatrixSpec::SiteDiagonal { .. } | MatrixSpec::Records { .. } => {
            Err(Error::internal("rows of this operator are not shared out"))
        }
    }
}

/// What a part has of an operator on lattice sites, with its type; none where there are no boxes of sites.
pub(in crate::backend) fn on_sites(spec: &MatrixSpec, cut: &RowCut) -> Result<Option<(DType, RowShare)>> {
    let RowDivision::Boxes(boxes) = &cut.way else { return Ok(None) };
    match spec {
        MatrixSpec::Wilson(spec) => {
            spec.validate()?;
            let own: [Range<usize>; 4] =
                boxes.of(cut.part).try_into().map_err(|_| Error::internal("sites in four directions"))?;
            let (inner, outside) = spec
                .on_box(&own, |row| cut.holder(row))
                .ok_or_else(|| Error::internal("links of other sites than those of the vectors"))?;
            let share = RowShare { own: MatrixSpec::Wilson(Arc::new(inner)), outside };
            Ok(Some((DType::of(spec.single, true), share)))
        }
        MatrixSpec::SiteDiagonal { rows, factors, single } => {
            let (rows, factors, single) = (cut.held(rows), factors.clone(), *single);
            let own = MatrixSpec::SiteDiagonal { rows, factors, single };
            Ok(Some((DType::of(single, false), RowShare { own, outside: Vec::new() })))
        }
        _ => Ok(None),
    }
}

/// The slowest direction of a stencil with more than one cell, and the rows of a plane across it.
fn planes(stencil: &Stencil) -> (usize, usize) {
    let slowest = stencil.cells.iter().rposition(|&n| n > 1).unwrap_or(0);
    (slowest, stencil.cells[..slowest].iter().product::<usize>() * stencil.orbitals)
}

/// The boxes of a stencil's cells that all parts have; none where they have other rows.
fn boxes_of<'a>(stencil: &Stencil, cut: &'a RowCut) -> Option<Cow<'a, Boxes>> {
    if let RowDivision::Boxes(boxes) = &cut.way
        && boxes.are_of(&stencil.cells, stencil.orbitals)
    {
        return Some(Cow::Borrowed(boxes));
    }
    // Whole planes across the slowest direction.
    let (slowest, plane) = planes(stencil);
    let mut starts: Vec<Vec<usize>> = stencil.cells.iter().map(|&n| vec![0, n]).collect();
    starts[slowest] = vec![0];
    for part in 0..cut.parts {
        let [(first, length)] = cut.runs(part)[..] else { return None };
        if first != starts[slowest][part] * plane || !length.is_multiple_of(plane) {
            return None;
        }
        starts[slowest].push((first + length) / plane);
    }
    Some(Cow::Owned(Boxes::at(&stencil.cells, stencil.orbitals, starts)))
}

/// A part's box of a lattice that is shared out in boxes, and the parts behind its faces;
/// it has none if it has no sites.
pub(in crate::backend) fn box_of<'a>(
    spec: &'a WilsonSpec,
    cut: &RowCut,
) -> Result<Option<(WilsonBox<'a>, Vec<usize>)>> {
    let RowDivision::Boxes(boxes) = &cut.way else { return Ok(None) };
    let own = boxes.of(cut.part).try_into().map_err(|_| Error::internal("sites in four directions"))?;
    let part = WilsonBox { spec, own };
    let beside = |face: &Face| boxes.beside(cut.part, face.direction)[usize::from(face.upper)];
    let behind = part.faces().iter().map(beside).collect();
    Ok(Some((part, behind)))
}

/// The entries of a row as (column, value).
fn entries(csr: &Csr, row: usize, to: &mut Vec<(usize, C64)>) {
    let range = csr.row_start[row]..csr.row_start[row + 1];
    to.extend(range.map(|at| (csr.columns.get(at), csr.values.get(at))));
}

/// Numbers of the chosen ranges of a list, one range after the other.
fn select<T: Copy>(all: &[T], ranges: &[Range<usize>]) -> Vec<T> {
    let mut chosen = Vec::with_capacity(ranges.iter().map(Range::len).sum());
    ranges.iter().for_each(|range| chosen.extend_from_slice(&all[range.clone()]));
    chosen
}

/// Compressed rows. A row's columns ascend, so that those of a part whose rows stand together do, too.
fn stored(csr: &Csr, rows: &RowCut, cols: &RowCut) -> (Arc<Csr>, Vec<OutsideEntry>) {
    let (Some(first_row), Some(first_col)) = (rows.start(), cols.start()) else {
        return compressed(csr.values.dtype(), rows, cols, &mut |row, to| entries(csr, row, to));
    };
    let own_cols = first_col..first_col + cols.local();
    let (mut own, mut outside, mut row_start) = (Vec::with_capacity(rows.local()), Vec::new(), vec![0]);
    let mut count = 0;
    for (local, row) in (first_row..first_row + rows.local()).enumerate() {
        let entries = csr.row_start[row]..csr.row_start[row + 1];
        let inside = csr.first_from(row, own_cols.start)..csr.first_from(row, own_cols.end);
        let beyond = (entries.start..inside.start).chain(inside.end..entries.end);
        let of_row = outside.len();
        outside.extend(beyond.map(|at| (local, cols.holder(csr.columns.get(at)), csr.values.get(at))));
        outside[of_row..].sort_by_key(|e: &OutsideEntry| e.1);
        count += inside.len();
        row_start.push(count);
        own.push(inside);
    }
    let columns = match &csr.columns {
        Indices::U32(all) => {
            Indices::U32(select(all, &own).into_iter().map(|j| j - first_col as u32).collect())
        }
        Indices::U64(all) => {
            Indices::U64(select(all, &own).into_iter().map(|j| j - first_col as u64).collect())
        }
    };
    let values = match &csr.values {
        MatrixValues::F32(all) => MatrixValues::F32(select(all, &own)),
        MatrixValues::F64(all) => MatrixValues::F64(select(all, &own)),
        MatrixValues::C32(all) => MatrixValues::C32(select(all, &own)),
        MatrixValues::C64(all) => MatrixValues::C64(select(all, &own)),
    };
    (Arc::new(Csr { rows: rows.local(), cols: cols.local(), row_start, columns, values }), outside)
}

/// Rows in compressed form, read one by one.
fn compressed(
    dtype: DType,
    rows: &RowCut,
    cols: &RowCut,
    read: &mut dyn FnMut(usize, &mut Vec<(usize, C64)>),
) -> (Arc<Csr>, Vec<OutsideEntry>) {
    let (mut row_start, mut columns, mut values) = (vec![0], Vec::<u64>::new(), Vec::new());
    let (mut outside, mut of_row, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (local, row) in rows.own_rows().enumerate() {
        of_row.clear();
        read(row, &mut of_row);
        places.clear();
        places.extend(of_row.iter().map(|&(column, value)| (cols.holder(column), value)));
        places.sort_by_key(|e: &(RemoteColumn, C64)| e.0);
        for &((part, column), value) in &places {
            if part == cols.part {
                columns.push(column as u64);
                values.push(value);
            } else {
                outside.push((local, (part, column), value));
            }
        }
        row_start.push(values.len());
    }
    let columns = Indices::of(cols.local(), columns);
    let values = MatrixValues::C64(values).convert(dtype);
    (Arc::new(Csr { rows: rows.local(), cols: cols.local(), row_start, columns, values }), outside)
}

/// A part's rows, of which there are no others here: entries in its own columns stay where they are.
pub(in crate::backend) fn kept(
    mut csr: Csr,
    cut: &RowCut,
    format: &dyn Fn(Arc<Csr>) -> MatrixSpec,
) -> RowShare {
    let (mut outside, mut end, mut begin) = (Vec::<OutsideEntry>::new(), 0, 0);
    for row in 0..csr.rows {
        let (first, of_row) = (outside.len(), begin..csr.row_start[row + 1]);
        begin = of_row.end;
        for at in of_row {
            let (part, column) = cut.holder(csr.columns.get(at));
            if part == cut.part {
                // Columns of the part ascend in the order of all columns.
                csr.columns.set(end, column);
                csr.values.copy(at, end);
                end += 1;
            } else {
                outside.push((row, (part, column), csr.values.get(at)));
            }
        }
        outside[first..].sort_by_key(|e| e.1);
        csr.row_start[row + 1] = end;
    }
    csr.columns.shorten(end);
    csr.values.shorten(end);
    csr.cols = cut.local();
    RowShare { own: format(Arc::new(csr)), outside }
}

/// A box of a stencil is a stencil that is open where it was cut.
fn piece(stencil: &Stencil, rows: &RowCut, boxes: &Boxes) -> RowShare {
    let own = boxes.of(rows.part);
    let cut: Vec<usize> = (0..own.len()).filter(|&d| boxes.is_cut(d)).collect();
    let inside = |x: &[i64], term: &StencilTerm| {
        cut.iter().all(|&d| {
            let to = x[d] + term.shift[d];
            own[d].start as i64 <= to && to < own[d].end as i64
        })
    };
    let far = reach(stencil);
    let mut outside: Vec<((usize, RemoteColumn), C64)> = Vec::new();
    let mut x: Vec<i64> = own.iter().map(|range| range.start as i64).collect();
    for (cell, first) in rows.own_rows().step_by(stencil.orbitals).enumerate() {
        let near = cut.iter().any(|&d| {
            let (low, high) = (x[d] - own[d].start as i64, own[d].end as i64 - 1 - x[d]);
            low.min(high) < far[d] as i64
        });
        if near {
            for orbital in 0..stencil.orbitals {
                let local = cell * stencil.orbitals + orbital;
                stencil.hoppings(first + orbital, |term, column, value| {
                    if !inside(&x, term) {
                        outside.push(((local, rows.holder(column)), value));
                    }
                });
            }
        }
        for (x, range) in x.iter_mut().zip(&own) {
            *x += 1;
            if *x < range.end as i64 {
                break;
            }
            *x = range.start as i64;
        }
    }
    merge(&mut outside);
    let outside = outside.into_iter().map(|((row, place), value)| (row, place, value)).collect();
    let cells = own.iter().map(|range| range.len()).collect();
    let wrap = |(d, wrap): (usize, &Wrap)| if boxes.is_cut(d) { Wrap::Open } else { *wrap };
    let wrap = stencil.wrap.iter().enumerate().map(wrap).collect();
    let diagonal = stencil.diagonal.as_ref().map(|all| all.of_rows(rows.runs(rows.part)));
    let own = Stencil { cells, wrap, diagonal, ..stencil.clone() };
    RowShare { own: MatrixSpec::Stencil(Arc::new(own)), outside }
}

/// A square piece of the matrix, its first rows, about so many, to measure how fast a backend is with it.
pub(in crate::backend) fn sample(spec: &MatrixSpec, most: usize) -> Result<MatrixSpec> {
    let (rows, cols) = shape(spec).ok_or_else(|| Error::internal("no rows to take a sample of"))?;
    let plane = match spec {
        MatrixSpec::Stencil(stencil) => planes(stencil).1,
        _ => 1,
    };
    let size = rows.min(cols).min((most / plane).max(1) * plane);
    let first = |all: usize| RowCut::at(vec![0, size, all], (0, 2));
    Ok(share(spec, &first(rows), &first(cols))?.own)
}
