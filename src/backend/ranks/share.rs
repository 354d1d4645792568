//! One rank's rows of a matrix: the entries in its own columns, in the format asked for, and those in the columns of others.

use std::ops::Range;
use std::sync::Arc;

use super::cut::{Cut, Way};
use crate::backend::MatrixSpec;
use crate::backend::boxes::Boxes;
use crate::backend::matrix::{Csr, Indices, Stencil, StencilTerm, Values, Wrap, merge};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// A column of another rank: that rank, and the row's number there.
pub(super) type RankRow = (usize, usize);

/// An entry in a column of another rank: local row, place of the column, value.
pub(super) type Outside = (usize, RankRow, C64);

pub(super) struct Share {
    /// What meets the rank's own columns.
    pub own: MatrixSpec,
    /// Everything else, rows and places ascending, none twice.
    pub outside: Vec<Outside>,
}

/// How far the terms of a stencil look in each direction.
pub(super) fn reach(stencil: &Stencil) -> Vec<usize> {
    let far = |d: usize| stencil.terms.iter().map(|t| t.shift[d].unsigned_abs() as usize).max().unwrap_or(0);
    (0..stencil.cells.len()).map(far).collect()
}

/// This rank's rows.
///
/// # Errors
/// Matrices whose rows are not shared out.
pub(super) fn share(spec: &MatrixSpec, rows: &Cut, cols: &Cut) -> Result<Share> {
    match spec {
        MatrixSpec::Csr(csr) => {
            let (own, outside) =
                compressed(csr.values.dtype(), rows, cols, &mut |row, to| entries(csr, row, to));
            Ok(Share { own: MatrixSpec::Csr(own), outside })
        }
        MatrixSpec::Ell(csr) => {
            let (own, outside) =
                compressed(csr.values.dtype(), rows, cols, &mut |row, to| entries(csr, row, to));
            Ok(Share { own: MatrixSpec::Ell(own), outside })
        }
        MatrixSpec::Sell { csr, chunk, sigma } => {
            let (own, outside) =
                compressed(csr.values.dtype(), rows, cols, &mut |row, to| entries(csr, row, to));
            Ok(Share { own: MatrixSpec::Sell { csr: own, chunk: *chunk, sigma: *sigma }, outside })
        }
        MatrixSpec::Dense { cols: width, dtype, values, .. } => {
            let (mut own, mut outside) = (Vec::new(), Vec::new());
            let columns: Vec<usize> = cols.own_rows().collect();
            for (local, row) in rows.own_rows().enumerate() {
                let numbers = &values[row * width..(row + 1) * width];
                own.extend(columns.iter().map(|&j| numbers[j]));
                let beyond = numbers.iter().enumerate().filter(|(_, z)| **z != C64::default());
                let beyond = beyond.map(|(j, z)| (local, cols.holder(j), *z));
                outside.extend(beyond.filter(|(_, place, _)| place.0 != cols.rank));
            }
            outside.sort_by_key(|e: &Outside| (e.0, e.1));
            let own =
                MatrixSpec::Dense { rows: rows.local(), cols: columns.len(), dtype: *dtype, values: own };
            Ok(Share { own, outside })
        }
        MatrixSpec::Stencil(stencil) => match &rows.way {
            Way::Boxes(boxes) if boxes.are_of(&stencil.cells, stencil.orbitals) => {
                Ok(piece(stencil, rows, boxes))
            }
            _ => {
                let mut of_row = Vec::new();
                let mut read = |row: usize, to: &mut Vec<(usize, C64)>| {
                    stencil.merged_row(row, &mut of_row);
                    to.extend_from_slice(&of_row);
                };
                let (own, outside) = compressed(stencil.dtype, rows, cols, &mut read);
                Ok(Share { own: MatrixSpec::Csr(own), outside })
            }
        },
        MatrixSpec::Wilson(_) | MatrixSpec::SiteDiagonal { .. } | MatrixSpec::Records { .. } => {
            Err(Error::internal("rows of this operator are not shared out"))
        }
    }
}

/// What a rank has of an operator on lattice sites, with its type; none where every rank has all sites.
pub(super) fn on_sites(spec: &MatrixSpec, cut: &Cut) -> Result<Option<(DType, Share)>> {
    let Way::Boxes(boxes) = &cut.way else { return Ok(None) };
    match spec {
        MatrixSpec::Wilson(spec) => {
            spec.validate()?;
            let own: [Range<usize>; 4] =
                boxes.of(cut.rank).try_into().map_err(|_| Error::internal("sites in four directions"))?;
            let (inner, outside) = spec
                .on_box(&own, |row| cut.holder(row))
                .ok_or_else(|| Error::internal("links of other sites than those of the vectors"))?;
            let share = Share { own: MatrixSpec::Wilson(Arc::new(inner)), outside };
            Ok(Some((DType::of(spec.single, true), share)))
        }
        MatrixSpec::SiteDiagonal { rows, factors, single } => {
            let (rows, factors, single) = (cut.held(rows), factors.clone(), *single);
            let own = MatrixSpec::SiteDiagonal { rows, factors, single };
            Ok(Some((DType::of(single, false), Share { own, outside: Vec::new() })))
        }
        _ => Ok(None),
    }
}

/// The entries of a row as (column, value).
fn entries(csr: &Csr, row: usize, to: &mut Vec<(usize, C64)>) {
    let range = csr.row_start[row]..csr.row_start[row + 1];
    to.extend(range.map(|at| (csr.columns.get(at), csr.values.get(at))));
}

/// Rows in compressed form, read one by one.
fn compressed(
    dtype: DType,
    rows: &Cut,
    cols: &Cut,
    read: &mut dyn FnMut(usize, &mut Vec<(usize, C64)>),
) -> (Arc<Csr>, Vec<Outside>) {
    let (mut row_start, mut columns, mut values) = (vec![0], Vec::<u64>::new(), Vec::new());
    let (mut outside, mut of_row, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (local, row) in rows.own_rows().enumerate() {
        of_row.clear();
        read(row, &mut of_row);
        places.clear();
        places.extend(of_row.iter().map(|&(column, value)| (cols.holder(column), value)));
        places.sort_by_key(|e: &(RankRow, C64)| e.0);
        for &((rank, column), value) in &places {
            if rank == cols.rank {
                columns.push(column as u64);
                values.push(value);
            } else {
                outside.push((local, (rank, column), value));
            }
        }
        row_start.push(values.len());
    }
    let columns = Indices::of(cols.local(), columns);
    let values = Values::C64(values).convert(dtype);
    (Arc::new(Csr { rows: rows.local(), cols: cols.local(), row_start, columns, values }), outside)
}

/// A rank's rows, of which there are no others here: entries in its own columns stay where they are.
pub(super) fn kept(mut csr: Csr, cut: &Cut, format: &dyn Fn(Arc<Csr>) -> MatrixSpec) -> Share {
    let (mut outside, mut end, mut begin) = (Vec::<Outside>::new(), 0, 0);
    for row in 0..csr.rows {
        let (first, of_row) = (outside.len(), begin..csr.row_start[row + 1]);
        begin = of_row.end;
        for at in of_row {
            let (rank, column) = cut.holder(csr.columns.get(at));
            if rank == cut.rank {
                // Columns of the rank ascend in the order of all columns.
                csr.columns.set(end, column);
                csr.values.copy(at, end);
                end += 1;
            } else {
                outside.push((row, (rank, column), csr.values.get(at)));
            }
        }
        outside[first..].sort_by_key(|e| e.1);
        csr.row_start[row + 1] = end;
    }
    csr.columns.shorten(end);
    csr.values.shorten(end);
    csr.cols = cut.local();
    Share { own: format(Arc::new(csr)), outside }
}

/// A box of a stencil is a stencil that is open where it was cut.
fn piece(stencil: &Stencil, rows: &Cut, boxes: &Boxes) -> Share {
    let own = boxes.of(rows.rank);
    let cut: Vec<usize> = (0..own.len()).filter(|&d| boxes.is_cut(d)).collect();
    let inside = |x: &[i64], term: &StencilTerm| {
        cut.iter().all(|&d| {
            let to = x[d] + term.shift[d];
            own[d].start as i64 <= to && to < own[d].end as i64
        })
    };
    let far = reach(stencil);
    let mut outside: Vec<((usize, RankRow), C64)> = Vec::new();
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
    let diagonal = stencil.diagonal.as_ref().map(|all| all.of_rows(rows.runs(rows.rank)));
    let own = Stencil { cells, wrap, diagonal, ..stencil.clone() };
    Share { own: MatrixSpec::Stencil(Arc::new(own)), outside }
}
