//! Matrices brought to the GPU: the stored formats as their kernels read them.

use std::sync::Arc;

use super::card::{Card, CardBuffer};
use super::cells::{self, CellsLaunch};
use super::ledger::Ledger;
use super::matrices::{Argument, CardMatrix, CsrArgument, DenseArgument, NARROW, SellArgument, WIDE};
use super::order::Order;
use super::to_bytes;
use crate::backend::matrix::{Csr, Indices, MatrixValues};
use crate::backend::{Kernel, KernelInfo, MatrixSpec, Rows};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Brings a matrix to the GPU.
pub(super) fn prepare(card: &Arc<Card>, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
    match spec {
        MatrixSpec::Csr(csr) => csr_rows(card, &csr),
        MatrixSpec::Ell(csr) => {
            let chunk = csr.rows.max(1);
            sliced(card, &csr, chunk, 1, "ELL".into())
        }
        MatrixSpec::Sell { csr, chunk, sigma } => {
            if chunk > 0 && !chunk.is_power_of_two() {
                return Err(Error::input(format!("slices of {chunk} rows on a GPU")).hint(
                    "C is a power of two there, best 32, a warp of rows whose entries lie side by side",
                ));
            }
            sliced(card, &csr, chunk.min(csr.rows.max(1)), sigma, format!("SELL-{chunk}-{sigma}"))
        }
        MatrixSpec::Dense { rows, cols, dtype, values } => {
            let bytes = to_bytes(dtype, &values);
            let info = KernelInfo { format: "dense".into(), bytes: bytes.len(), entries: rows * cols };
            let values = card.upload(&bytes)?;
            let argument = Argument::Dense(DenseArgument { cols: cols as u64, values: values.address });
            Ok(matrix(
                card,
                (rows, cols),
                dtype,
                info,
                ("dense", ""),
                argument,
                Order::default(),
                vec![values],
            ))
        }
        MatrixSpec::Stencil(stencil) => {
            let cells::CudaStencil { info, name, argument, buffers } = cells::bring(card, &stencil)?;
            let argument = match argument {
                CellsLaunch::General(argument) => Argument::Stencil(argument),
                CellsLaunch::Straight(argument) => Argument::Straight(argument),
            };
            let (dim, order) = (stencil.dim(), Order::default());
            Ok(matrix(card, (dim, dim), stencil.dtype, info, (name, ""), argument, order, buffers))
        }
        MatrixSpec::Wilson(spec) => super::wilson::prepare(card, &spec),
        MatrixSpec::SiteDiagonal { rows, factors, single } => {
            super::wilson::prepare_diagonal(card, rows, factors, single)
        }
        MatrixSpec::Records { .. } => Err(Error::internal("records are no matrix in rows")),
    }
}

fn matrix(
    card: &Arc<Card>,
    (rows, cols): (usize, usize),
    dtype: DType,
    info: KernelInfo,
    name: (&'static str, &'static str),
    argument: Argument,
    order: Order,
    buffers: Vec<CardBuffer>,
) -> Arc<dyn Kernel> {
    let (card, rows) = (card.clone(), Rows::all(rows));
    let ledger = Ledger::default();
    Arc::new(CardMatrix { card, rows, cols, dtype, info, name, argument, order, ledger, _buffers: buffers })
}

fn upload_values(card: &Arc<Card>, values: &MatrixValues) -> Result<CardBuffer> {
    match values {
        MatrixValues::F32(v) => card.upload(v),
        MatrixValues::F64(v) => card.upload(v),
        MatrixValues::C32(_) | MatrixValues::C64(_) => {
            let all: Vec<C64> = (0..values.len()).map(|i| values.get(i)).collect();
            card.upload(&to_bytes(values.dtype(), &all))
        }
    }
}

fn upload_indices(card: &Arc<Card>, indices: &Indices) -> Result<(CardBuffer, &'static str)> {
    match indices {
        Indices::U32(columns) => Ok((card.upload(columns)?, NARROW)),
        Indices::U64(columns) => Ok((card.upload(columns)?, WIDE)),
    }
}

fn csr_rows(card: &Arc<Card>, csr: &Csr) -> Result<Arc<dyn Kernel>> {
    csr.validate()?;
    let start: Vec<u64> = csr.row_start.iter().map(|&s| s as u64).collect();
    let (start, values) = (card.upload(&start)?, upload_values(card, &csr.values)?);
    // The kernels for narrow columns count rows in 32 bits too.
    let wide = csr.rows >= u32::MAX as usize;
    let (columns, last) = match &csr.columns {
        Indices::U32(all) if wide => {
            upload_indices(card, &Indices::U64(all.iter().map(|&j| j.into()).collect()))?
        }
        columns => upload_indices(card, columns)?,
    };
    // Where all rows have as many entries, kernels need not ask where a row begins.
    let each = csr.row_start.get(1).copied().unwrap_or(0);
    let same = csr.row_start.windows(2).all(|s| s[1] - s[0] == each);
    let argument = Argument::Csr(CsrArgument {
        start: start.address,
        columns: columns.address,
        values: values.address,
        each: if same { each as u64 } else { 0 },
    });
    let info = KernelInfo { format: "CSR".into(), bytes: csr.bytes(), entries: csr.entries() };
    let dtype = csr.values.dtype();
    let (shape, order) = ((csr.rows, csr.cols), Order::of(csr));
    Ok(matrix(card, shape, dtype, info, ("csr", last), argument, order, vec![start, values, columns]))
}

fn sliced(
    card: &Arc<Card>,
    csr: &Csr,
    chunk: usize,
    sigma: usize,
    format: String,
) -> Result<Arc<dyn Kernel>> {
    csr.check_slices((chunk, sigma), &format)?;
    let length = |row: u32| csr.row_start[row as usize + 1] - csr.row_start[row as usize];
    let mut order: Vec<u32> = (0..csr.rows as u32).collect();
    if sigma > 1 {
        for window in order.chunks_mut(sigma) {
            window.sort_by_key(|&row| std::cmp::Reverse(length(row)));
        }
    }
    let sorted = order.iter().enumerate().any(|(at, &row)| at != row as usize);
    let mut slices = vec![0u64];
    let mut places = Vec::new();
    for window in order.chunks(chunk) {
        let longest = window.iter().map(|&row| length(row)).max().unwrap_or(0);
        for k in 0..longest {
            for lane in 0..chunk {
                let row = window.get(lane).copied();
                places.push(row.filter(|&r| k < length(r)).map(|r| csr.row_start[r as usize] + k));
            }
        }
        slices.push(places.len() as u64);
    }
    let columns = match &csr.columns {
        Indices::U32(c) => Indices::U32(places.iter().map(|p| p.map_or(0, |at| c[at])).collect()),
        Indices::U64(c) => Indices::U64(places.iter().map(|p| p.map_or(0, |at| c[at])).collect()),
    };
    let value = |p: &Option<usize>| p.map_or(C64::default(), |at| csr.values.get(at));
    let values = MatrixValues::C64(places.iter().map(value).collect()).convert(csr.values.dtype());
    // Rows that all have as many entries need no list of their lengths.
    let each = order.first().map_or(0, |&row| length(row));
    let lengths: Vec<u32> = match order.iter().all(|&row| length(row) == each) {
        true => Vec::new(),
        false => order.iter().map(|&row| length(row) as u32).collect(),
    };
    let bytes = values.bytes() + columns.len() * columns.bytes() + 4 * lengths.len();
    let info = KernelInfo { format, bytes, entries: csr.entries() };
    let dtype = csr.values.dtype();
    let values = upload_values(card, &values)?;
    let (columns, last) = upload_indices(card, &columns)?;
    let slices = card.upload(&slices)?;
    let lengths = if lengths.is_empty() { None } else { Some(card.upload(&lengths)?) };
    let order = if sorted { Some(card.upload(&order)?) } else { None };
    let argument = Argument::Sell(SellArgument {
        slices: slices.address,
        lengths: lengths.as_ref().map_or(0, |l| l.address),
        order: order.as_ref().map_or(0, |o| o.address),
        columns: columns.address,
        values: values.address,
        chunk: chunk as u64,
        shift: if chunk < csr.rows { chunk.ilog2().into() } else { 63 },
        each: each as u64,
    });
    let mut buffers = vec![values, columns, slices];
    buffers.extend(lengths.into_iter().chain(order));
    // Rows in the order of their lengths have lost the lattice's.
    let walk = if sorted { Order::default() } else { Order::of(csr) };
    Ok(matrix(card, (csr.rows, csr.cols), dtype, info, ("sell", last), argument, walk, buffers))
}
