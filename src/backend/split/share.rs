//! One part's rows of a matrix: the entries in its own columns, in the format asked for, and those in others' columns.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::MatrixSpec;
use crate::backend::matrix::wilson::{WilsonBox, WilsonSpec};
use crate::backend::matrix::{Csr, Indices, Stencil, Values, Wrap, merge};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

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
        MatrixSpec::Records { .. } => DType::C64,
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

/// The direction of a stencil that is cut, its slowest of more than one cell, and the rows of one of its planes.
fn planes(stencil: &Stencil) -> (usize, usize) {
    let d = stencil.cells.iter().rposition(|&n| n > 1).unwrap_or(0);
    (d, stencil.cells[..d].iter().product::<usize>() * stencil.orbitals)
}

/// Rows that should stay together: those of a plane of a stencil.
pub(super) fn granule(spec: &MatrixSpec) -> usize {
    if let MatrixSpec::Stencil(stencil) = spec { planes(stencil).1 } else { 1 }
}

/// An entry outside a part's columns: local row, global column, value.
pub(super) type Outside = (usize, usize, C64);

pub(super) struct Share {
    /// What meets the part's own columns.
    pub own: MatrixSpec,
    /// Everything else, rows and columns ascending, none twice.
    pub outside: Vec<Outside>,
}

/// Cuts the rows `rows` out of a matrix, whose columns `cols` are the part's own.
pub(super) fn share(spec: &MatrixSpec, rows: &Range<usize>, cols: &Range<usize>) -> Result<Share> {
    match spec {
        MatrixSpec::Csr(csr) => {
            let (own, outside) = compressed(csr, rows, cols);
            Ok(Share { own: MatrixSpec::Csr(own), outside })
        }
        MatrixSpec::Ell(csr) => {
            let (own, outside) = compressed(csr, rows, cols);
            Ok(Share { own: MatrixSpec::Ell(own), outside })
        }
        MatrixSpec::Sell { csr, chunk, sigma } => {
            let (own, outside) = compressed(csr, rows, cols);
            Ok(Share { own: MatrixSpec::Sell { csr: own, chunk: *chunk, sigma: *sigma }, outside })
        }
        MatrixSpec::Dense { cols: width, dtype, values, .. } => {
            let row = |row: usize| &values[row * width..(row + 1) * width];
            let own = rows.clone().flat_map(|r| row(r)[cols.clone()].iter().copied()).collect();
            let mut outside = Vec::new();
            for r in rows.clone() {
                let entries = row(r).iter().enumerate();
                let beyond = entries.filter(|(j, z)| !cols.contains(j) && **z != C64::default());
                outside.extend(beyond.map(|(j, z)| (r - rows.start, j, *z)));
            }
            let own = MatrixSpec::Dense { rows: rows.len(), cols: cols.len(), dtype: *dtype, values: own };
            Ok(Share { own, outside })
        }
        MatrixSpec::Stencil(stencil) => Ok(slab(stencil, rows, cols)),
        MatrixSpec::Wilson(spec) => {
            let own = box_of(spec, rows).own;
            let (inner, outside) =
                spec.on_box(&own, |row| row).ok_or_else(|| Error::internal("links of another rank"))?;
            Ok(Share { own: MatrixSpec::Wilson(Arc::new(inner)), outside })
        }
        MatrixSpec::SiteDiagonal { rows: all, factors, single } => {
            let (rows, factors, single) = (all.slab(rows), factors.clone(), *single);
            Ok(Share { own: MatrixSpec::SiteDiagonal { rows, factors, single }, outside: Vec::new() })
        }
        MatrixSpec::Records { .. } => Err(Error::internal("rows of this operator are not shared out")),
    }
}

/// The box that whole planes of a lattice are.
pub(super) fn box_of<'a>(spec: &'a WilsonSpec, rows: &Range<usize>) -> WilsonBox<'a> {
    let all = spec.rows();
    let (dims, plane) = (all.grid.map_or([1; 4], |grid| grid.dims), all.plane().max(1));
    let cut = dims.iter().rposition(|&n| n > 1).unwrap_or(0);
    let of = |d: usize| if d == cut { rows.start / plane..rows.end / plane } else { 0..dims[d] };
    WilsonBox { spec, own: std::array::from_fn(of) }
}

/// Numbers of the chosen ranges of a list, one range after the other.
fn select<T: Copy>(all: &[T], ranges: &[Range<usize>]) -> Vec<T> {
    let mut chosen = Vec::with_capacity(ranges.iter().map(Range::len).sum());
    ranges.iter().for_each(|range| chosen.extend_from_slice(&all[range.clone()]));
    chosen
}

/// Compressed rows: a row's columns ascend, so those of the part stand together.
fn compressed(csr: &Csr, rows: &Range<usize>, cols: &Range<usize>) -> (Arc<Csr>, Vec<Outside>) {
    let (mut own, mut outside, mut row_start) = (Vec::with_capacity(rows.len()), Vec::new(), vec![0]);
    let mut count = 0;
    for row in rows.clone() {
        let entries = csr.row_start[row]..csr.row_start[row + 1];
        let first = |column: usize| {
            let (mut low, mut high) = (entries.start, entries.end);
            while low < high {
                let middle = (low + high) / 2;
                if csr.columns.get(middle) < column { low = middle + 1 } else { high = middle }
            }
            low
        };
        let inside = first(cols.start)..first(cols.end);
        let beyond = (entries.start..inside.start).chain(inside.end..entries.end);
        outside.extend(beyond.map(|at| (row - rows.start, csr.columns.get(at), csr.values.get(at))));
        count += inside.len();
        row_start.push(count);
        own.push(inside);
    }
    let columns = match &csr.columns {
        Indices::U32(all) => {
            Indices::U32(select(all, &own).into_iter().map(|j| j - cols.start as u32).collect())
        }
        Indices::U64(all) => {
            Indices::U64(select(all, &own).into_iter().map(|j| j - cols.start as u64).collect())
        }
    };
    let values = match &csr.values {
        Values::F32(all) => Values::F32(select(all, &own)),
        Values::F64(all) => Values::F64(select(all, &own)),
        Values::C32(all) => Values::C32(select(all, &own)),
        Values::C64(all) => Values::C64(select(all, &own)),
    };
    (Arc::new(Csr { rows: rows.len(), cols: cols.len(), row_start, columns, values }), outside)
}

/// Whole planes of a stencil are a stencil that is open where it was cut; rows that are no whole planes are compressed.
fn slab(stencil: &Stencil, rows: &Range<usize>, cols: &Range<usize>) -> Share {
    let (d, plane) = planes(stencil);
    if rows != cols || !rows.start.is_multiple_of(plane) || !rows.end.is_multiple_of(plane) || rows.is_empty()
    {
        let mut outside = Vec::new();
        let csr = rows_of(stencil, rows, cols, &mut outside);
        return Share { own: MatrixSpec::Csr(csr), outside };
    }
    let mut outside = Vec::new();
    let slab = rows.start / plane..rows.end / plane;
    for x in slab.clone() {
        let inside = |shift: i64| slab.contains(&usize::try_from(x as i64 + shift).unwrap_or(usize::MAX));
        if stencil.terms.iter().all(|t| inside(t.shift[d])) {
            continue;
        }
        for row in x * plane..(x + 1) * plane {
            stencil.hoppings(row, |term, column, value| {
                if !inside(term.shift[d]) {
                    outside.push(((row - rows.start, column), value));
                }
            });
        }
    }
    merge(&mut outside);
    let outside = outside.into_iter().map(|((row, column), value)| (row, column, value)).collect();
    let (mut cells, mut wrap) = (stencil.cells.clone(), stencil.wrap.clone());
    (cells[d], wrap[d]) = (slab.len(), Wrap::Open);
    let diagonal = stencil.diagonal.as_ref().map(|all| all.of_rows(vec![(rows.start, rows.len())]));
    let own = Stencil { cells, wrap, diagonal, ..stencil.clone() };
    Share { own: MatrixSpec::Stencil(Arc::new(own)), outside }
}

/// Some rows of a stencil in compressed form.
fn rows_of(
    stencil: &Stencil,
    rows: &Range<usize>,
    cols: &Range<usize>,
    outside: &mut Vec<Outside>,
) -> Arc<Csr> {
    let (mut row_start, mut columns, mut values) = (vec![0], Vec::<u64>::new(), Vec::new());
    let mut entries = Vec::new();
    for row in rows.clone() {
        stencil.merged_row(row, &mut entries);
        for &(column, value) in &entries {
            if cols.contains(&column) {
                columns.push((column - cols.start) as u64);
                values.push(value);
            } else {
                outside.push((row - rows.start, column, value));
            }
        }
        row_start.push(values.len());
    }
    let columns = Indices::of(cols.len(), columns);
    let values = Values::C64(values).convert(stencil.dtype);
    Arc::new(Csr { rows: rows.len(), cols: cols.len(), row_start, columns, values })
}

/// A square piece of the matrix about so many rows large, to measure how fast a backend is with it.
pub(super) fn sample(spec: &MatrixSpec, most: usize) -> Result<MatrixSpec> {
    let (rows, cols) = shape(spec).ok_or_else(|| Error::internal("no rows to take a sample of"))?;
    let granule = granule(spec);
    let size = rows.min(cols).min((most / granule).max(1) * granule);
    Ok(share(spec, &(0..size), &(0..size))?.own)
}
