//! Exchange of rows with other backends through page-locked memory: a kernel gathers the rows, and a separate stream
//! copies them while the product with the GPU's own rows runs. GPUs that can reach each other's memory use
//! [`super::link`] instead.

use std::sync::Arc;

use cust::stream::{Stream, StreamFlags};
use cust::sys;

use super::card::{Card, CardBuffer};
use super::driver::check;
use super::ledger::Ledger;
use super::pinned::Event;
use super::sums::DotGrowth;
use super::{Cuda, RESIDENT, THREADS, arguments, buffer, unique, wilson};
use crate::backend::exchange::{ExchangePort, Halo, PendingProducts, Staging, VectorShape};
use crate::backend::{BlockVector, Kernel, Rows, Update};
use crate::error::{Error, Result};

/// The GPU's end of an exchange.
struct CudaPort {
    gpu: Cuda,
    shape: VectorShape,
    /// Numbers of the rows sent, neighbour after neighbour, and how many each gets.
    sent: CardBuffer,
    sends: Vec<usize>,
    /// The rows sent and those brought in, as they travel.
    leaving: CardBuffer,
    arriving: CardBuffer,
    receives: Vec<usize>,
    /// The rows brought in as a block, the boundary's numbers, and what it grows by.
    rows: BlockVector,
    boundary: CardBuffer,
    change: BlockVector,
    ledger: Ledger,
    copies: Stream,
    /// When the other stream may copy, and when its copies out and in are over.
    ready: Event,
    out: Event,
    into: Event,
    /// Whether `ready` is of this pass.
    begun: bool,
    under_way: Option<Vec<Staging>>,
    read: Vec<(usize, Staging)>,
}

pub(super) fn port(gpu: &Cuda, halo: &Halo, shape: VectorShape) -> Result<Box<dyn ExchangePort>> {
    let card: &Arc<Card> = &gpu.card;
    card.enter()?;
    let block = |rows: usize| gpu.uninitialised(shape.dtype, Rows::all(rows), shape.columns);
    let numbers =
        |rows: &mut dyn Iterator<Item = &usize>| rows.map(|&row| stored(shape, row)).collect::<Vec<u64>>();
    let sends: Vec<usize> = halo.sends.iter().map(Vec::len).collect();
    let received = halo.receives.iter().sum();
    let copies = Stream::new(StreamFlags::NON_BLOCKING, None)
        .map_err(|e| Error::backend(format!("a second stream: {e}")))?;
    Ok(Box::new(CudaPort {
        sent: card.upload(&numbers(&mut halo.sends.iter().flatten()))?,
        leaving: card.allocate(shape.bytes(sends.iter().sum()))?,
        arriving: card.allocate(shape.bytes(received))?,
        rows: block(received)?,
        boundary: card.upload(&numbers(&mut halo.boundary.iter()))?,
        change: block(halo.boundary.len())?,
        receives: halo.receives.clone(),
        sends,
        shape,
        ledger: Ledger::default(),
        copies,
        ready: Event::new()?,
        out: Event::new()?,
        into: Event::new()?,
        begun: false,
        under_way: None,
        read: Vec::new(),
        gpu: gpu.clone(),
    }))
}

/// Where a row stands.
pub(super) fn stored(shape: VectorShape, row: usize) -> u64 {
    shape.grid.map_or(row, |grid| wilson::place(&grid, row)) as u64
}

impl CudaPort {
    /// Reals a row, and whether half of them are imaginary parts.
    fn lanes(&self) -> (u32, u32) {
        let complex = self.shape.dtype.is_complex();
        ((self.shape.columns * if complex { 2 } else { 1 }) as u32, complex.into())
    }

    fn kernel(&self, name: &str) -> String {
        format!("{name}_{}", if self.shape.dtype.is_single() { "f32" } else { "f64" })
    }

    /// Copies begin after all that is queued now, once a pass: later work of the pass runs beside them.
    fn begin(&mut self) -> Result<()> {
        if !self.begun {
            self.gpu.card.enter()?;
            self.ready.record(self.gpu.card.stream())?;
            self.ready.hold(self.copies.as_inner())?;
            self.begun = true;
        }
        Ok(())
    }

    /// Queues copying rows that leave to the host's memory.
    fn to_host(&self, first: u64, bytes: usize, to: &mut [u8]) -> Result<()> {
        if to.len() != bytes {
            return Err(another_size());
        }
        // SAFETY: both sides hold as many bytes; `under_way` keeps the memory until the copy is over.
        let status = unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), first, bytes, self.copies.as_inner())
        };
        check("rows for a neighbour", status)
    }

    /// Queues bringing `count` rows from the host's memory to byte `first` of the rows brought in.
    fn bring_from_host(&mut self, first: u64, count: usize, from: &[u8]) -> Result<()> {
        self.begin()?;
        if from.len() != self.shape.bytes(count) {
            return Err(another_size());
        }
        // Real rows look alike here and in transit.
        let (lanes, complex) = self.lanes();
        let rows = unique(&self.gpu.card, &mut self.rows)?.address + first;
        let to = if complex == 1 { self.arriving.address + first } else { rows };
        // SAFETY: both sides hold as many bytes; `read` keeps the memory until the copy is over.
        let status = unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.copies.as_inner())
        };
        check("rows of a neighbour", status)?;
        self.into.record(self.copies.as_inner())?;
        self.into.hold(self.gpu.card.stream())?;
        if complex == 0 {
            return Ok(());
        }
        let all = count as u64;
        let arguments = arguments![all, lanes, complex, to, rows];
        // SAFETY: the kernel's arguments; both sides hold the rows received.
        unsafe { self.gpu.launch(&self.kernel("spread_rows"), count * lanes as usize, &arguments) }
    }
}

fn another_size() -> Error {
    Error::internal("memory of another size than the rows that it is for")
}

impl ExchangePort for CudaPort {
    fn collect(&mut self, v: &BlockVector, mut to: Vec<Staging>) -> Result<()> {
        let ((lanes, complex), x) = (self.lanes(), buffer(v)?.address);
        // What is still leaving must not be overwritten.
        self.gpu.card.enter()?;
        self.out.hold(self.gpu.card.stream())?;
        let (mut rows, mut y) = (self.sent.address, self.leaving.address);
        for &count in &self.sends {
            let all = count as u64;
            let arguments = arguments![all, lanes, complex, rows, x, y];
            // SAFETY: the kernel's arguments; the rows were counted in vectors of this length,
            // `leaving` holds them all.
            unsafe { self.gpu.launch(&self.kernel("gather_rows"), count * lanes as usize, &arguments)? };
            rows += 8 * all;
            y += self.shape.bytes(count) as u64;
        }
        self.begin()?;
        let mut first = self.leaving.address;
        for (&count, to) in self.sends.iter().zip(&mut to) {
            let bytes = self.shape.bytes(count);
            self.to_host(first, bytes, to.bytes_mut())?;
            first += bytes as u64;
        }
        self.under_way = Some(to);
        self.out.record(self.copies.as_inner())
    }

    fn collected(&mut self, wait: bool) -> Result<Option<Vec<Staging>>> {
        self.gpu.card.enter()?;
        if wait {
            self.out.wait()?;
        } else if !self.out.happened()? {
            return Ok(None);
        }
        Ok(self.under_way.take())
    }

    fn deliver(&mut self, from: usize, rows: Staging) -> Result<()> {
        let before: usize = self.receives[..from].iter().sum();
        let (first, count) = (self.shape.bytes(before) as u64, self.receives[from]);
        let delivered = self.bring_from_host(first, count, rows.bytes());
        self.read.push((from, rows));
        delivered
    }

    fn released(&mut self) -> Result<Vec<(usize, Staging)>> {
        self.gpu.card.enter()?;
        self.begun = false;
        if !self.read.is_empty() {
            self.into.wait()?;
        }
        Ok(std::mem::take(&mut self.read))
    }

    fn add(
        &mut self,
        alpha: f64,
        a: &dyn Kernel,
        w: &mut BlockVector,
        v: Option<&BlockVector>,
    ) -> Result<Option<PendingProducts>> {
        let (lanes, _) = self.lanes();
        a.update(Update { alpha, beta: 0.0, gamma: 0.0 }, &self.rows, &mut self.change, None)?;
        let (card, rows) = (&self.gpu.card, self.change.rows.local as u64);
        if rows == 0 || lanes == 0 {
            return Ok(None);
        }
        let width = lanes.next_power_of_two().min(THREADS);
        let high = u64::from(THREADS / width);
        let blocks = rows.div_ceil(high).clamp(1, u64::from(card.processors * RESIDENT)) as u32;
        let growth = DotGrowth::new(card, v.is_some(), blocks, lanes as usize)?;
        let (list, d, y) = (self.boundary.address, buffer(&self.change)?.address, unique(card, w)?.address);
        let x = v.map(buffer).transpose()?.map_or(0, |b| b.address);
        let to = growth.address();
        let arguments = arguments![rows, lanes, width, list, d, x, y, to];
        // SAFETY: the kernel's arguments; the boundary rows were counted in vectors of this length and none stands
        // twice, `growth` a number for each block and lane.
        unsafe {
            card.launch(&self.kernel("add_rows"), (blocks, lanes.div_ceil(width)), THREADS, &arguments)?;
        }
        growth.later(card, &self.ledger, self.shape.columns)
    }
}

impl Drop for CudaPort {
    fn drop(&mut self) {
        // Memory that is being copied must not go; if the driver has failed, nothing is being copied any more.
        let _ = self.gpu.card.enter();
        let _ = self.copies.synchronize();
    }
}
