//! The CUDA backend: one GPU driven through `cust`. Blocks are row-major on the device; work is queued on one stream
//! and waited for only when numbers come back.

// The card, its memory and its queue.
mod card;
mod driver;
mod graph;
mod ledger;
mod pinned;
mod places;
mod pool;
mod sides;
mod staging;
mod travel;

// Vectors.
mod algebra;
mod outer;
mod sums;
mod tall;

// Matrices and stencils.
mod blocks;
mod bring;
mod cells;
mod matrices;
mod onchip;
mod order;
mod recurrence;

// Superblocks.
mod operators;
mod records;
mod solver;
mod turns;

// Fields and walkers.
mod splines;
mod walkers;
mod wilson;

// Exchange with other cards and with the host.
mod assembly;
mod exchange;
mod faces;
mod landings;
mod link;
mod offers;
mod passage;

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::backend::exchange::{
    Assembly, ExchangePort, Halo, HostExchange, HostMemory, Link, PeerExchange, Ranges, VectorShape,
};
use crate::backend::matrix::held::MatrixKeeper;
use crate::backend::matrix::outer::{OuterSums, Superblocks};
use crate::backend::matrix::records::{BasisChange, Handling, Records};
use crate::backend::matrix::wilson::WilsonBox;
use crate::backend::matrix::{Csr, Stencil};
use crate::backend::splines::{SplineTable, Splines};
use crate::backend::walkers::{DeviceWalkers, MonteCarlo, WalkersSpec};
use crate::backend::{
    Backend, BlockVector, DenseSolver, DeviceMemory, Kernel, Matrices, MatrixSpec, Random, Recorder,
    Recording, Rows, Storage, VectorDistribution, Vectors, check_runs,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::task::Interrupt;
use card::{Card, CardBuffer};
use graph::Graph;

/// Waits until nothing is being loaded beside other work; a program does so before it ends.
pub fn settle() {
    solver::settle();
}

/// Threads of a block, for all kernels.
const THREADS: u32 = 256;

/// Distributions of random numbers, as the kernels are told.
const SIGN: u32 = 0;
const PHASE: u32 = 1;
const GAUSSIAN: u32 = 2;

/// Blocks that fill a multiprocessor.
const RESIDENT: u32 = 8;

/// Rows of a superblock's blocks from which on its density matrices will soon be large.
const SOON: usize = 16;

/// Bytes of a block below which launching a step takes longer than the step.
const LAUNCH_BOUND: usize = 32 << 20;

/// The same where each step has an exchange, too.
const LINKED_BOUND: usize = 256 << 20;

/// Numbers of a block on the GPU. Clones share them until one is changed.
#[derive(Debug, Clone)]
pub(in crate::backend) struct DeviceBlock(Arc<CardBuffer>);

#[derive(Debug, Clone)]
pub struct Cuda {
    card: Arc<Card>,
    solver: Arc<solver::SolverSlot>,
}

/// A complex number as the kernels see it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable, Default)]
struct Z {
    re: f64,
    im: f64,
}

impl From<C64> for Z {
    fn from(z: C64) -> Self {
        Z { re: z.re, im: z.im }
    }
}

/// Pointers to the arguments of a kernel, in its order.
macro_rules! arguments {
    ($($x:expr),* $(,)?) => {
        [$((&raw const $x).cast_mut().cast::<std::ffi::c_void>()),*]
    };
}
use arguments;

/// The suffix of a kernel's name for a scalar type.
fn suffix(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C32 => "c32",
        DType::C64 => "c64",
    }
}

/// Real numbers in memory of a GPU as one column.
fn reals(numbers: CardBuffer, count: usize) -> BlockVector {
    let storage = Storage::Cuda(DeviceBlock(Arc::new(numbers)));
    BlockVector { dtype: DType::F64, rows: Rows::all(count), columns: 1, storage }
}

impl Cuda {
    /// The backend on GPU number `ordinal`; it stops when `interrupt` is raised.
    ///
    /// # Errors
    /// No driver, no such GPU, a build without kernels.
    pub fn new(ordinal: u32, interrupt: Interrupt) -> Result<Self> {
        Ok(Cuda { card: Card::open(ordinal, interrupt)?, solver: Arc::default() })
    }

    /// Numbers of a block that lives here.
    fn buffer<'a>(&self, v: &'a BlockVector) -> Result<&'a CardBuffer> {
        buffer(v)
    }

    /// The same, to change them: what clones share is copied first.
    fn unique<'a>(&self, v: &'a mut BlockVector) -> Result<&'a CardBuffer> {
        unique(&self.card, v)
    }

    /// Looks for what solves the density matrices of a superblock, before they grow so large that it pays.
    fn expect_for(&self, records: &Records) {
        if records.most_rows() >= SOON {
            self.expect_solver();
        }
    }

    /// A block whose numbers are arbitrary.
    fn uninitialised(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        let bytes = rows.local.checked_mul(columns).and_then(|n| n.checked_mul(dtype.bytes()));
        let bytes = bytes.ok_or_else(|| Error::memory(format!("a block of {} x {columns}", rows.local)))?;
        if u32::try_from(2 * columns).is_err() {
            return Err(Error::input(format!("a block of {columns} columns on the GPU")));
        }
        let storage = Storage::Cuda(DeviceBlock(Arc::new(self.card.allocate(bytes)?)));
        Ok(BlockVector { dtype, rows, columns, storage })
    }

    /// Blocks for a kernel that walks `count` numbers.
    fn blocks(&self, count: usize) -> u32 {
        let wanted = count.div_ceil(THREADS as usize).max(1);
        wanted.min((self.card.processors * RESIDENT) as usize) as u32
    }

    /// Queues a kernel over a whole grid in one dimension.
    ///
    /// # Safety
    /// As [`Card::launch`].
    unsafe fn launch(&self, kernel: &str, count: usize, arguments: &[*mut c_void]) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.card.launch(kernel, (self.blocks(count), 1), THREADS, arguments) }
    }
}

fn buffer(v: &BlockVector) -> Result<&CardBuffer> {
    match &v.storage {
        Storage::Cuda(block) => Ok(&block.0),
        Storage::Cpu(_) | Storage::Split(_) | Storage::Ranks(_) => Err(elsewhere()),
    }
}

fn unique<'a>(card: &Arc<Card>, v: &'a mut BlockVector) -> Result<&'a CardBuffer> {
    let Storage::Cuda(block) = &mut v.storage else { return Err(elsewhere()) };
    if Arc::get_mut(&mut block.0).is_none() {
        block.0 = Arc::new(card.duplicate(&block.0)?);
    }
    Ok(&block.0)
}

fn elsewhere() -> Error {
    Error::input("the GPU was given a block that lives elsewhere")
        .hint("make operators and vectors on one backend")
}

/// Numbers of the host as bytes of a type.
fn to_bytes(dtype: DType, data: &[C64]) -> Vec<u8> {
    match dtype {
        DType::F32 => data.iter().flat_map(|z| (z.re as f32).to_ne_bytes()).collect(),
        DType::F64 => data.iter().flat_map(|z| z.re.to_ne_bytes()).collect(),
        DType::C32 => {
            data.iter().flat_map(|z| bytemuck::cast::<_, [u8; 8]>([z.re as f32, z.im as f32])).collect()
        }
        DType::C64 => bytemuck::cast_slice(data).to_vec(),
    }
}

impl Backend for Cuda {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn describe(&self) -> String {
        format!("{}, {} multiprocessors", self.card.name, self.card.processors)
    }

    fn memory(&self) -> DeviceMemory {
        let (free, used) = self.card.memory();
        DeviceMemory { total: self.card.total, free, used }
    }

    fn workers(&self) -> usize {
        self.card.processors as usize
    }

    fn preferred_columns(&self) -> usize {
        32
    }

    fn queues(&self) -> bool {
        true
    }

    fn synchronize(&self) -> Result<()> {
        self.card.synchronize("a computation on the GPU")
    }

    fn keeper(&self) -> Option<&dyn MatrixKeeper> {
        Some(self)
    }

    fn dense_solver(&self) -> Option<&dyn DenseSolver> {
        self.found_solver()
    }

    fn recorder(&self) -> Option<&dyn Recorder> {
        Some(self)
    }

    fn superblocks(&self) -> Option<&dyn Superblocks> {
        Some(self)
    }

    fn monte_carlo(&self) -> Option<&dyn MonteCarlo> {
        Some(self)
    }

    fn host_exchange(&self) -> Option<&dyn HostExchange> {
        Some(self)
    }

    fn peer_exchange(&self) -> Option<&dyn PeerExchange> {
        Some(self)
    }
}

impl Vectors for Cuda {
    fn room(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        self.uninitialised(dtype, rows, columns)
    }

    fn zeros(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        let v = self.uninitialised(dtype, rows, columns)?;
        self.card.clear(self.buffer(&v)?)?;
        Ok(v)
    }

    fn fill_random(&self, v: &mut BlockVector, random: Random) -> Result<()> {
        self.fill_rows(v, random, 0, 1)
    }

    fn fill_random_runs(
        &self,
        v: &mut BlockVector,
        random: Random,
        starts: &[usize],
        length: usize,
    ) -> Result<()> {
        check_runs(v, starts, length)?;
        if starts.is_empty() {
            return Ok(());
        }
        let starts = self.card.upload(&starts.iter().map(|&start| start as u64).collect::<Vec<_>>())?;
        self.fill_rows(v, random, starts.address, length as u64)
    }

    fn set_entries(&self, v: &mut BlockVector, entries: &[(usize, usize, C64)]) -> Result<()> {
        v.check_entries(entries)?;
        let (columns, dtype) = (v.columns, v.dtype);
        let row = |row: usize| v.rows.grid.map_or(row, |grid| wilson::place(&grid, row));
        let at: Vec<u64> = entries.iter().map(|e| (row(e.0) * columns + e.1) as u64).collect();
        let values: Vec<Z> = entries.iter().map(|e| e.2.into()).collect();
        let (at, values) = (self.card.upload(&at)?, self.card.upload(&values)?);
        let (count, y) = (entries.len() as u64, self.unique(v)?.address);
        let arguments = arguments![count, at.address, values.address, y];
        // SAFETY: the kernel's arguments; the places were checked above.
        unsafe { self.launch(&format!("set_entries_{}", suffix(dtype)), entries.len(), &arguments) }
    }

    fn columns(&self, v: &BlockVector, range: Range<usize>) -> Result<BlockVector> {
        v.check_columns(&range)?;
        let mut out = self.uninitialised(v.dtype, v.rows, range.len())?;
        self.copy_columns(v, range.start, &mut out, 0, range.len())?;
        Ok(out)
    }

    fn set_columns(&self, v: &mut BlockVector, at: usize, source: &BlockVector) -> Result<()> {
        v.check_holds(at, source)?;
        self.copy_columns(source, 0, v, at, source.columns)
    }

    fn convert(&self, v: &BlockVector, dtype: DType) -> Result<BlockVector> {
        if dtype == v.dtype {
            return Ok(v.clone());
        }
        let mut out = self.uninitialised(dtype, v.rows, v.columns)?;
        let count = (v.rows.local * v.columns) as u64;
        let (x, y) = (self.buffer(v)?.address, self.unique(&mut out)?.address);
        let name = format!("convert_{}_{}", suffix(v.dtype), suffix(dtype));
        // SAFETY: the kernel's arguments; both blocks have `count` numbers of their types.
        unsafe { self.launch(&name, count as usize, &arguments![count, x, y])? };
        Ok(out)
    }

    fn download(&self, v: &BlockVector) -> Result<Vec<C64>> {
        let count = v.rows.local * v.columns;
        let buffer = self.buffer(v)?;
        let card = &self.card;
        let data: Vec<C64> = match v.dtype {
            DType::F32 => {
                card.download::<f32>(buffer, count)?.par_iter().map(|&x| f64::from(x).into()).collect()
            }
            DType::F64 => card.download::<f64>(buffer, count)?.par_iter().map(|&x| x.into()).collect(),
            DType::C32 => {
                let both = |z: &[f32; 2]| C64::new(z[0].into(), z[1].into());
                card.download::<[f32; 2]>(buffer, count)?.par_iter().map(both).collect()
            }
            DType::C64 => card.download::<C64>(buffer, count)?,
        };
        let Some(grid) = v.rows.grid else { return Ok(data) };
        let rows = (0..v.rows.local).map(|row| wilson::place(&grid, row) * v.columns);
        Ok(rows.flat_map(|at| data[at..at + v.columns].iter().copied()).collect())
    }

    fn download_real(&self, v: &BlockVector) -> Result<Option<Vec<f64>>> {
        if v.dtype != DType::F64 || v.rows.grid.is_some() {
            return Ok(None);
        }
        self.card.download(self.buffer(v)?, v.rows.local * v.columns).map(Some)
    }

    fn download_part(&self, v: &BlockVector, range: Range<usize>) -> Result<Vec<f64>> {
        if v.dtype != DType::F64 || v.columns != 1 || v.rows.grid.is_some() || range.end > v.rows.local {
            return Err(Error::internal(format!("numbers {range:?} of {}", v.shape())));
        }
        let own = self.buffer(v)?;
        let part = CardBuffer::lent(&self.card, own.address + 8 * range.start as u64, 8 * range.len());
        self.card.download(&part, range.len())
    }

    fn upload(&self, dtype: DType, rows: Rows, columns: usize, data: &[C64]) -> Result<BlockVector> {
        rows.check_numbers(columns, data.len())?;
        let mut sorted = Vec::new();
        if let Some(grid) = rows.grid {
            sorted = vec![C64::default(); data.len()];
            for row in 0..rows.local {
                let at = wilson::place(&grid, row) * columns;
                sorted[at..at + columns].copy_from_slice(&data[row * columns..][..columns]);
            }
        }
        let data = if rows.grid.is_some() { &sorted } else { data };
        let all = data.par_iter();
        let buffer = match dtype {
            DType::F32 => self.card.upload(&all.map(|z| z.re as f32).collect::<Vec<_>>()),
            DType::F64 => self.card.upload(&all.map(|z| z.re).collect::<Vec<_>>()),
            DType::C32 => self.card.upload(&all.map(|z| [z.re as f32, z.im as f32]).collect::<Vec<_>>()),
            DType::C64 => self.card.upload(data),
        }?;
        Ok(BlockVector { dtype, rows, columns, storage: Storage::Cuda(DeviceBlock(Arc::new(buffer))) })
    }

    fn all_rows(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        Ok(Some(v.clone()))
    }
}

impl Matrices for Cuda {
    fn prepare(&self, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
        match spec {
            MatrixSpec::Records { records, handling } => {
                self.expect_for(&records);
                records::prepare(&self.card, records, handling)
            }
            spec => bring::prepare(&self.card, spec),
        }
    }

    fn takes_stencil(&self, stencil: &Stencil) -> bool {
        cells::taken(stencil)
    }
}

impl Recorder for Cuda {
    fn worth_recording(&self, bytes: usize) -> bool {
        bytes <= LAUNCH_BOUND
    }

    fn record(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Box<dyn Recording>> {
        Ok(Box::new(Graph::record(&self.card, work)?))
    }
}

impl Superblocks for Cuda {
    fn outer(&self, sums: &OuterSums, range: Range<usize>) -> Result<Option<BlockVector>> {
        outer::numbers(&self.card, sums, range).map(Some)
    }

    fn turned(&self, turns: &[BasisChange<'_, f64>]) -> Result<Option<BlockVector>> {
        turns::turned(&self.card, turns).map(Some)
    }
}

impl MonteCarlo for Cuda {
    fn splines(&self, table: Arc<SplineTable>) -> Result<Arc<dyn Splines>> {
        splines::prepare(&self.card, &table)
    }

    fn walkers(&self, spec: WalkersSpec) -> Result<Option<Box<dyn DeviceWalkers>>> {
        walkers::prepare(&self.card, spec)
    }
}

impl HostExchange for Cuda {
    fn staging(&self, bytes: usize) -> Result<Option<Box<dyn HostMemory>>> {
        Ok(Some(Box::new(staging::Pinned::new(&self.card, bytes)?)))
    }

    fn port(&self, halo: &Halo, shape: VectorShape) -> Result<Box<dyn ExchangePort>> {
        exchange::port(self, halo, shape)
    }
}

impl PeerExchange for Cuda {
    fn link(&self, halo: &Halo, beyond: &Csr, shape: VectorShape) -> Result<Option<Box<dyn Link>>> {
        link::link(self, halo, beyond, shape)
    }

    fn prepare_linked(&self, part: &WilsonBox) -> Result<Arc<dyn Kernel>> {
        let spec =
            part.alone().ok_or_else(|| Error::internal("links of other sites than those of the vectors"))?;
        wilson::prepare(&self.card, &spec)
    }

    fn assembly(&self, ranges: &Ranges, shape: VectorShape) -> Result<Box<dyn Assembly>> {
        assembly::assembly(self, ranges, shape)
    }

    fn prepare_rows(
        &self,
        records: &Records,
        rows: Range<usize>,
        handling: Handling,
    ) -> Result<Arc<dyn Kernel>> {
        self.expect_for(records);
        records::prepare_rows(&self.card, records, rows, handling)
    }
}

impl Cuda {
    /// Random numbers of the rows from the block's first on, or of runs of `length` that begin at the numbers at
    /// `starts`.
    fn fill_rows(&self, v: &mut BlockVector, random: Random, starts: u64, length: u64) -> Result<()> {
        random.fits(v.dtype)?;
        let (rows, columns) = (v.rows.local as u64, v.columns as u32);
        let kind: u32 = match random.distribution {
            VectorDistribution::Sign => SIGN,
            VectorDistribution::Phase => PHASE,
            VectorDistribution::Gaussian => GAUSSIAN,
        };
        let (seed, stream, start) = (random.seed, random.stream as u32, v.rows.start as u64);
        let (name, first) = (format!("fill_{}", suffix(v.dtype)), random.first_column);
        let count = v.rows.local * v.columns;
        let y = self.unique(v)?.address;
        let arguments = arguments![rows, columns, seed, stream, start, starts, length, first, kind, y];
        // SAFETY: the kernel's arguments; `y` has rows * columns numbers of its type, and `starts`, unless it is 0, one
        // for each `length` rows.
        unsafe { self.launch(&name, count, &arguments)? };
        self.sort_sites(v)
    }

    /// Rows on a lattice from the order of the host to that of the GPU.
    fn sort_sites(&self, v: &mut BlockVector) -> Result<()> {
        let Some(grid) = v.rows.grid else { return Ok(()) };
        let mut sorted = self.uninitialised(v.dtype, v.rows, v.columns)?;
        let parts = if v.dtype.is_complex() { 2 } else { 1 };
        let (sites, per_site) = (grid.sites() as u32, grid.per_site as u32);
        let lanes = (v.columns * parts) as u32;
        let name = if v.dtype.is_single() { "gather_sites_f32" } else { "gather_sites_f64" };
        let (x, y) = (self.buffer(v)?.address, self.unique(&mut sorted)?.address);
        let count = v.rows.local * lanes as usize;
        // SAFETY: the kernel's arguments; both blocks have as many numbers.
        unsafe { self.launch(name, count, &arguments![sites, per_site, lanes, x, y])? };
        *v = sorted;
        Ok(())
    }

    fn copy_columns(
        &self,
        from: &BlockVector,
        first: usize,
        to: &mut BlockVector,
        at: usize,
        width: usize,
    ) -> Result<()> {
        let (rows, width) = (from.rows.local as u64, width as u32);
        let (x_columns, first, y_columns, at) =
            (from.columns as u32, first as u32, to.columns as u32, at as u32);
        let name = format!("copy_columns_{}", suffix(from.dtype));
        let (x, y) = (self.buffer(from)?.address, self.unique(to)?.address);
        let arguments = arguments![rows, width, x, x_columns, first, y, y_columns, at];
        // SAFETY: the kernel's arguments; callers have checked the ranges of columns.
        unsafe { self.launch(&name, rows as usize * width as usize, &arguments) }
    }
}
