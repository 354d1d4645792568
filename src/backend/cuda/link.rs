//! Exchange of rows between GPUs that reach each other's memory, in one process or in several of one machine; how
//! numbers get there is the business of `passage.rs`. A kernel writes the rows that a neighbour reads, and the
//! neighbour's boundary waits for them.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Zeroable;
use cust::sys;

use super::card::{Card, CardBuffer};
use super::exchange::stored;
use super::ledger::Ledger;
use super::passage::{ByteRun, Passage};
use super::sums::DotGrowth;
use super::{Cuda, THREADS, arguments, buffer, suffix, to_bytes, unique};
use crate::backend::BlockVector;
use crate::backend::exchange::{Halo, Link, PendingProducts, VectorShape};
use crate::backend::matrix::{Csr, Indices};
use crate::error::{Error, Result};
use crate::number::C64;

/// Blocks that write rows to neighbours, one a multiprocessor, and threads of each: enough to fill a link,
/// few beside a product.
pub(super) const SENDING: u32 = 8;
pub(super) const SENDING_THREADS: u32 = 1024;

/// Blocks of a multiprocessor that add to boundary rows, with registers for two rows a thread.
pub(super) const ADDING: u32 = 3;

/// Boundary rows as their kernel takes them; see `kernels/exchange.cu`.
/// `counters` is null where no kernel counts passes.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
struct BoundaryArgument {
    count: u64,
    rows: u64,
    start: u64,
    columns: u64,
    values: u64,
    landing: u64,
    head: u64,
    half: u64,
    counters: u64,
    neighbours: u32,
}

/// How rows pass while a launch makes several steps, see `kernels/together.cuh`; zeros where there are no neighbours.
#[repr(C)]
#[derive(Clone, Copy, Zeroable)]
pub(super) struct CrossingArgument {
    boundary: BoundaryArgument,
    rows: u64,
    starts: u64,
    to: u64,
    numbers: u64,
    leaving: u64,
    counters: u64,
    /// Of the first step.
    pub pass: u32,
}

/// Rows that leave: their numbers, neighbour after neighbour, where each neighbour's begin, and how many there are.
struct LeavingRows {
    rows: CardBuffer,
    starts: CardBuffer,
    count: usize,
}

impl LeavingRows {
    fn new(card: &Arc<Card>, shape: VectorShape, sends: &[Vec<usize>]) -> Result<LeavingRows> {
        let mut starts = vec![0u64];
        starts.extend(sends.iter().scan(0, |sum, rows| {
            *sum += rows.len() as u64;
            Some(*sum)
        }));
        let rows = places(shape, sends.iter().flatten());
        Ok(LeavingRows { count: rows.len(), rows: card.upload(&rows)?, starts: card.upload(&starts)? })
    }
}

/// Where the rows that leave are written in even passes and in odd ones, and what counts passes at the neighbours: for
/// the kernel that writes them, which may leave it to copy engines to carry them on, and for one that does not.
struct LinkTargets {
    to: CardBuffer,
    landings: CardBuffer,
    numbers: CardBuffer,
}

/// A GPU's end of the exchanges.
pub(super) struct CudaLink {
    gpu: Cuda,
    shape: VectorShape,
    /// Bytes of a row.
    row: usize,
    passage: Passage,
    /// The rows that a kernel sends; and all of them, where copy engines send some and a launch could make several
    /// steps.
    sent: LeavingRows,
    all: Option<LeavingRows>,
    ways: Option<LinkTargets>,
    boundary: BoundaryArgument,
    /// Lanes of the matrix a row, and those that a thread takes.
    lanes: u32,
    pack: u32,
    kernel: String,
    ledger: Ledger,
    /// Blocks of the sending kernel that have ended, and passes.
    counters: CardBuffer,
    _buffers: Vec<CardBuffer>,
}

/// The end of a GPU whose boundary rows are those of `beyond`; none where the driver cannot wait for a number.
pub(super) fn link(
    gpu: &Cuda,
    halo: &Halo,
    beyond: &Csr,
    shape: VectorShape,
) -> Result<Option<Box<dyn Link>>> {
    let card: &Arc<Card> = &gpu.card;
    let Indices::U32(columns) = &beyond.columns else { return Ok(None) };
    card.enter()?;
    let neighbours = halo.sends.len();
    let row = shape.bytes(1);
    let starts: Vec<u64> = beyond.row_start.iter().map(|&n| n as u64).collect();
    let bytes = |rows: usize| row * rows;
    let mut passage = Passage::new(
        card,
        halo.sends.iter().map(|rows| bytes(rows.len())).collect(),
        &halo.receives.iter().map(|rows| bytes(*rows)).collect::<Vec<_>>(),
    )?;
    if shape.grid.is_none() {
        passage.leave_from_vector(halo.sends.iter().map(|rows| runs(rows, row)).collect());
    }
    let written =
        |(n, rows): (usize, &Vec<usize>)| if passage.is_straight(n) { Vec::new() } else { rows.clone() };
    let sends: Vec<Vec<usize>> = halo.sends.iter().enumerate().map(written).collect();
    let values = &beyond.values;
    let all: Vec<C64> = (0..values.len()).map(|i| values.get(i)).collect();
    let buffers = vec![
        card.upload(&places(shape, halo.boundary.iter()))?,
        card.upload(&starts)?,
        card.upload(columns)?,
        card.upload(&to_bytes(values.dtype(), &all))?,
    ];
    let counters = card.allocate(8)?;
    card.clear(&counters)?;
    let boundary = BoundaryArgument {
        count: halo.boundary.len() as u64,
        rows: buffers[0].address,
        start: buffers[1].address,
        columns: buffers[2].address,
        values: buffers[3].address,
        landing: passage.landing(),
        head: passage.head as u64,
        half: passage.half as u64,
        counters: if passage.is_short() { counters.address } else { 0 },
        neighbours: neighbours as u32,
    };
    // A real matrix takes a complex number as two.
    let parts = if shape.dtype.is_complex() && !values.dtype().is_complex() { 2 } else { 1 };
    let lanes = (shape.columns * parts) as u32;
    let mut pack = (16 / values.dtype().bytes() as u32).max(1);
    while !lanes.is_multiple_of(pack) {
        pack /= 2;
    }
    let missing = lanes == pack && (0..neighbours).any(|n| passage.is_straight(n));
    let all = missing.then(|| LeavingRows::new(card, shape, &halo.sends)).transpose()?;
    Ok(Some(Box::new(CudaLink {
        row,
        passage,
        sent: LeavingRows::new(card, shape, &sends)?,
        all,
        ways: None,
        boundary,
        lanes,
        pack,
        kernel: format!("add_boundary_{}_p{pack}", suffix(values.dtype())),
        ledger: Ledger::default(),
        counters,
        _buffers: buffers,
        shape,
        gpu: gpu.clone(),
    })))
}

/// Where rows stand in a vector.
fn places<'a>(shape: VectorShape, rows: impl Iterator<Item = &'a usize>) -> Vec<u64> {
    rows.map(|&row| stored(shape, row)).collect()
}

/// Rows that stand together in a vector, as bytes of it; none if they are many pieces.
fn runs(rows: &[usize], row: usize) -> Option<Vec<ByteRun>> {
    const MOST: usize = 4;
    let mut runs: Vec<ByteRun> = Vec::new();
    for rows in rows.chunk_by(|a, b| a + 1 == *b) {
        if runs.len() == MOST {
            return None;
        }
        runs.push(((rows[0] * row) as u64, rows.len() * row));
    }
    Some(runs)
}

impl CudaLink {
    /// The address of a vector of the kind that the exchange is for.
    fn address(&self, v: Option<&BlockVector>) -> Result<u64> {
        match v {
            Some(v) if VectorShape::of(v) == self.shape => Ok(buffer(v)?.address),
            None if self.passage.sends_nothing() => Ok(0),
            _ => Err(Error::internal("a vector of another kind than the exchange is for")),
        }
    }

    /// Queues sending the rows of the vector at `x`, beside what is queued next. Few rows are written by a kernel of a
    /// few blocks. Many are copied by the GPU's copy engines: a kernel would take multiprocessors from the product.
    /// Rows that do not stand together in the vector are gathered first.
    pub fn queue_send(&mut self, x: u64) -> Result<()> {
        let card = self.gpu.card.clone();
        card.enter()?;
        self.count(1);
        if self.is_short() {
            self.passage.follow()?;
            self.push(x, self.passage.stream(), SENDING)?;
            return self.passage.gone();
        }
        if self.sent.count > 0 {
            self.push(x, card.stream(), 2 * card.processors)?;
        }
        self.passage.follow()?;
        self.passage.hand_over(x)?;
        self.passage.gone()
    }

    /// Whether rows are so few that they leave by the kernel alone; recurrences of such may be recorded.
    pub fn is_short(&self) -> bool {
        self.passage.is_short()
    }

    /// Passes that were recorded and not queued, or queued as a recording.
    pub fn count(&mut self, passes: i32) {
        self.passage.pass = self.passage.pass.wrapping_add_signed(passes);
    }

    fn ways(&self) -> Result<&LinkTargets> {
        self.ways.as_ref().ok_or_else(|| Error::internal("neighbours that made no offer"))
    }

    /// Queues writing the rows that leave: to the neighbours, who are told, or to where copies begin.
    fn push(&self, x: u64, stream: sys::CUstream, most: u32) -> Result<()> {
        let ways = self.ways()?;
        let unit = [16, 8].into_iter().find(|unit| self.row.is_multiple_of(*unit)).unwrap_or(4);
        let (neighbours, each) = (self.boundary.neighbours, (self.row / unit) as u32);
        let told = if self.is_short() { neighbours } else { 0 };
        let units = self.sent.count * each as usize;
        let (rows, starts, to, numbers, counters) = (
            self.sent.rows.address,
            self.sent.starts.address,
            ways.to.address,
            ways.numbers.address,
            self.counters.address,
        );
        let arguments = arguments![neighbours, told, each, rows, starts, to, numbers, x, counters];
        let blocks = units.div_ceil(SENDING_THREADS as usize).clamp(1, most as usize) as u32;
        // SAFETY: the kernel's arguments; the rows were counted in vectors of this length, and the landings hold them.
        unsafe {
            let name = format!("push_rows_{unit}");
            self.gpu.card.launch_on(stream, &name, (blocks, 1), SENDING_THREADS, &arguments)
        }
    }

    /// What a kernel needs to make steps with their exchanges, from the next pass on, where a row is one pack of lanes.
    pub fn crossing(&self) -> Result<Option<CrossingArgument>> {
        if self.lanes != self.pack {
            return Ok(None);
        }
        let (ways, leaving) = (self.ways()?, self.all.as_ref().unwrap_or(&self.sent));
        Ok(Some(CrossingArgument {
            boundary: self.boundary,
            rows: leaving.rows.address,
            starts: leaving.starts.address,
            to: ways.landings.address,
            numbers: ways.numbers.address,
            leaving: leaving.count as u64,
            counters: self.boundary.counters,
            pass: self.passage.pass.wrapping_add(1),
        }))
    }

    /// Lanes of a row, and blocks that each keep sums of the lanes.
    pub fn sums(&self) -> (u32, u32) {
        let high = u64::from(THREADS / self.width());
        let most = u64::from(self.gpu.card.processors * ADDING);
        (self.lanes, self.boundary.count.div_ceil(high).clamp(1, most) as u32)
    }

    /// Threads side by side on a row, a pack of lanes each.
    fn width(&self) -> u32 {
        (self.lanes / self.pack).next_power_of_two().clamp(1, THREADS)
    }

    /// Queues adding what the neighbours' rows bring to the vector at `y`, and sums to where there is an address.
    pub fn queue_add(&self, alpha: f64, y: u64, x: u64, sums: u64) -> Result<()> {
        let card = &self.gpu.card;
        // Who changes the vector next waits for the rows that leave; and see the kernel.
        self.passage.wait()?;
        let (boundary, width, (lanes, blocks)) = (self.boundary, self.width(), self.sums());
        let pass = self.passage.pass;
        let arguments = arguments![boundary, lanes, width, pass, alpha, x, y, sums];
        let tiles = (lanes / self.pack).div_ceil(width).max(1);
        // SAFETY: the kernel's arguments; boundary rows were counted in vectors of this length and none stands twice,
        // columns count the rows of a half, `sums` has room for a number of each block and lane.
        unsafe { card.launch(&self.kernel, (blocks, tiles), THREADS, &arguments) }
    }
}

impl Link for CudaLink {
    fn offers(&self) -> Vec<Vec<u8>> {
        self.passage.offers()
    }

    fn accept(&mut self, offers: &[Vec<u8>]) -> Result<bool> {
        if !self.passage.accept(offers)? {
            return Ok(false);
        }
        let (card, passage) = (&self.gpu.card, &self.passage);
        let places = [passage.places(false)?, passage.places(true)?].concat();
        let landings = [passage.landings(false)?, passage.landings(true)?].concat();
        self.ways = Some(LinkTargets {
            to: card.upload(&places)?,
            landings: card.upload(&landings)?,
            numbers: card.upload(passage.numbers()?)?,
        });
        // The other stream reads these tables.
        card.synchronize("tables of neighbours")?;
        Ok(true)
    }

    fn send(&mut self, v: Option<&BlockVector>) -> Result<()> {
        self.queue_send(self.address(v)?)
    }

    fn add(
        &mut self,
        alpha: f64,
        w: Option<&mut BlockVector>,
        v: Option<&BlockVector>,
    ) -> Result<Option<PendingProducts>> {
        let card = &self.gpu.card;
        card.enter()?;
        let y = w.map(|w| unique(card, w)).transpose()?.map_or(0, |b| b.address);
        let (lanes, blocks) = self.sums();
        let growth = DotGrowth::new(card, v.is_some() && y > 0, blocks, lanes as usize)?;
        let x = v.map(buffer).transpose()?.map_or(0, |b| b.address);
        self.queue_add(alpha, y, x, growth.address())?;
        growth.later(card, &self.ledger, self.shape.columns)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn give_up(&mut self) {
        self.passage.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_stand_together_are_runs() {
        let plane = |first: usize| first..first + 4;
        assert_eq!(runs(&plane(8).collect::<Vec<_>>(), 16), Some(vec![(128, 64)]));
        assert_eq!(runs(&plane(0).chain(plane(8)).collect::<Vec<_>>(), 8), Some(vec![(0, 32), (64, 32)]));
        assert_eq!(runs(&[], 8), Some(Vec::new()));
        // Every second row: too many pieces.
        assert_eq!(runs(&(0..10).step_by(2).collect::<Vec<_>>(), 8), None);
    }
}
