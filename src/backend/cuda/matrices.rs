//! Matrices on the GPU: the fused pass and the recurrence over every format.

use std::sync::Arc;

use super::blocks::BlocksArgument;
use super::card::{Card, CardBuffer};
use super::cells::{General, StraightArgument};
use super::ledger::Ledger;
use super::link::CudaLink;
use super::order::{self, Order, PassKind};
use super::{THREADS, arguments, buffer, suffix, sums, unique};
use crate::backend::exchange::{Link, PendingProducts};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update};
use crate::error::Result;
use crate::number::DType;

/// Rows that a block takes at a time in the stored formats, where few threads share a row.
const CHUNK: usize = 256;

/// Threads of a row from which on the kernels of `kernels/staged.cu` are there.
const STAGED: u32 = 4;

/// What the names of kernels for columns of 32 and of 64 bits end with.
pub(super) const NARROW: &str = "_u32";
pub(super) const WIDE: &str = "_u64";

/// What the names of kernels for steps of recurrences end with, and of those for several steps in one launch.
const STEP: &str = "_step";
const SEVERAL: &str = "_together";
const LINKED: &str = "_linked";

/// Threads of a block of a kernel for several steps.
const TOGETHER: u32 = 512;

/// The argument that all kernels of this file share; see `kernels/update.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct UpdateArgument {
    pub v: u64,
    pub w: u64,
    pub sums: u64,
    pub alpha: f64,
    pub beta: f64,
    pub gamma: f64,
    pub lanes: u32,
    pub offset: u64,
}

/// Compressed rows; `each` is how many entries every row has, 0 where they differ.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct CsrArgument {
    pub start: u64,
    pub columns: u64,
    pub values: u64,
    pub each: u64,
}

/// Slices of rows, padded; `order` is 0 where rows stand as they are, `lengths` where every row has `each` entries.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SellArgument {
    pub slices: u64,
    pub lengths: u64,
    pub order: u64,
    pub columns: u64,
    pub values: u64,
    pub chunk: u64,
    pub shift: u64,
    pub each: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct DenseArgument {
    pub cols: u64,
    pub values: u64,
}

/// A matrix as its kernels take it, by value.
#[derive(Clone)]
pub(super) enum Argument {
    Csr(CsrArgument),
    Sell(SellArgument),
    Dense(DenseArgument),
    Stencil(Box<General>),
    Straight(Box<StraightArgument>),
    Blocks(Box<BlocksArgument>),
}

/// A matrix on the GPU.
pub(super) struct CardMatrix {
    pub card: Arc<Card>,
    pub rows: Rows,
    pub cols: usize,
    pub dtype: DType,
    pub info: KernelInfo,
    /// First part of the kernel's name, and its last.
    pub name: (&'static str, &'static str),
    pub argument: Argument,
    /// What the columns of a stored matrix tell of a lattice.
    pub order: Order,
    /// Products that nobody has asked for yet.
    pub ledger: Ledger,
    /// Keeps the memory that the argument points to.
    pub _buffers: Vec<CardBuffer>,
}

/// One way to launch the pass, for vectors of so many lanes.
pub(super) struct Launch {
    pub kernel: String,
    pub argument: Argument,
    /// Of the kernels that walk stored rows in an order.
    order: Option<Order>,
    pub units: u64,
    /// Blocks that share the units, and tiles of lanes side by side.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub block: u32,
}

impl CardMatrix {
    /// Type and number of the lanes that a kernel sees: a real matrix takes a complex number as two.
    pub(super) fn lanes(&self, v: &BlockVector) -> (DType, u32) {
        let parts = if v.dtype.is_complex() && !self.dtype.is_complex() { 2 } else { 1 };
        (self.dtype, (v.columns * parts) as u32)
    }

    /// Which kernel takes a single pass.
    pub(super) fn kind(&self, c: Update, dots: bool) -> PassKind {
        let sorted = matches!(self.argument, Argument::Sell(s) if s.order != 0);
        if !sorted && c.gamma != 0.0 && (c.beta != 0.0 || dots) { PassKind::Step } else { PassKind::Any }
    }

    /// How a row's lanes are spread over threads, and rows over blocks.
    pub(super) fn launch(&self, dtype: DType, lanes: u32, kind: PassKind) -> Result<Launch> {
        let (pack, packs) = packs(dtype, lanes);
        let (mut first, last) = (self.name.0.to_string(), self.name.1);
        let lane_type = suffix(self.dtype);
        // Cells are taken whole, where packs fill what a thread reads at once.
        let whole = match &self.argument {
            Argument::Stencil(s) if BlocksArgument::takes(packs, pack * dtype.bytes() as u32) => s.blocks,
            _ => None,
        };
        let mut argument = match whole {
            Some(blocks) => {
                first = blocks.name();
                Argument::Blocks(Box::new(blocks))
            }
            None => self.argument.clone(),
        };
        // Whole rows: pieces of less than 128 bytes are not worth their place in the caches.
        let most = if let Argument::Stencil(s) = &argument { s.most_threads() } else { 32 };
        let threads = packs.next_power_of_two().min(most);
        let tiles = packs.div_ceil(threads);
        let staged = last == NARROW && threads >= STAGED;
        let step = staged && kind == PassKind::Step;
        let several = kind.is_several();
        let special = match kind {
            PassKind::Several { linked: true } => LINKED,
            PassKind::Several { linked: false } => SEVERAL,
            _ if step => STEP,
            _ => "",
        };
        let kernel = format!("{first}_{lane_type}_p{pack}_l{threads}{last}{special}");
        let bytes = lanes * dtype.bytes() as u32;
        let block = match &argument {
            _ if several => TOGETHER,
            Argument::Straight(_) => StraightArgument::block(threads),
            Argument::Blocks(_) => BlocksArgument::block(threads),
            _ if step => order::block(pack, threads, dtype.bytes()),
            _ => THREADS,
        };
        let resident = self.card.resident(&kernel, block)?.div_ceil(tiles).max(1);
        let mut order = None;
        let (units, work) = match &mut argument {
            Argument::Stencil(s) => {
                let units = s.tile(threads, bytes);
                (units, units)
            }
            Argument::Straight(s) => {
                let units = s.tile(kind, (block, threads), bytes, resident);
                (units, units)
            }
            Argument::Blocks(b) => {
                let units = b.tile(kind, (block, threads), bytes, resident);
                (units, units)
            }
            _ => {
                let rows = self.rows.local;
                let mut work = rows.div_ceil(CHUNK) as u64;
                if staged {
                    // A block for every multiprocessor, of kernels that have few.
                    let folded = step && order::folded(threads, dtype.bytes());
                    let least = 2 * self.card.processors;
                    let tiled = self.order.tiled(rows, (block, folded), threads, bytes, least);
                    work = u64::from(tiled.units);
                    order = Some(tiled);
                }
                (rows as u64, work)
            }
        };
        let mut blocks = work.clamp(1, u64::from(resident)) as u32;
        if let Some(order) = &mut order {
            blocks = order.share_out(block, blocks);
        }
        Ok(Launch { kernel, argument, order, units, grid: (blocks, tiles), block })
    }

    /// The vectors of a pass as its kernel takes them.
    fn vectors(
        &self,
        c: Update,
        v: &BlockVector,
        w: &mut BlockVector,
        sums: Option<&CardBuffer>,
        lanes: u32,
    ) -> Result<UpdateArgument> {
        Ok(UpdateArgument {
            v: buffer(v)?.address,
            w: unique(&self.card, w)?.address,
            sums: sums.map_or(0, |s| s.address),
            alpha: c.alpha,
            beta: c.beta,
            gamma: c.gamma,
            lanes,
            offset: if c.beta != 0.0 || sums.is_some() { self.rows.start as u64 } else { 0 },
        })
    }

    pub(super) fn pass(&self, launch: &Launch, vectors: UpdateArgument) -> Result<()> {
        let Launch { kernel, argument, grid, block, .. } = launch;
        let units = launch.units;
        if units == 0 {
            return Ok(());
        }
        macro_rules! launch {
            ($matrix:expr) => {{
                let matrix = $matrix;
                // SAFETY: the kernel's arguments; the matrix was validated, and the vectors were matched to it.
                unsafe {
                    match launch.order {
                        Some(order) => {
                            self.card.launch(kernel, *grid, *block, &arguments![matrix, units, order, vectors])
                        }
                        None => self.card.launch(kernel, *grid, *block, &arguments![matrix, units, vectors]),
                    }
                }
            }};
        }
        match argument {
            Argument::Csr(argument) => launch!(*argument),
            Argument::Sell(argument) => launch!(*argument),
            Argument::Dense(argument) => launch!(*argument),
            Argument::Stencil(argument) => launch!(argument.bytes()),
            Argument::Straight(argument) => launch!(argument.bytes()),
            Argument::Blocks(argument) => launch!(argument.bytes()),
        }
    }
}

/// The lanes that a thread reads together, and how many such packs make a row.
pub(super) fn packs(dtype: DType, lanes: u32) -> (u32, u32) {
    let mut pack = (16 / dtype.bytes() as u32).max(1);
    while !lanes.is_multiple_of(pack) {
        pack /= 2;
    }
    (pack, lanes / pack)
}

/// The products of each step from their sums, with the parts of complex numbers added.
pub(super) fn collect(numbers: &[f64], lanes: u32, columns: usize) -> impl Iterator<Item = Dots> {
    let parts = lanes as usize / columns.max(1);
    let column = move |of: &[f64], c: usize| of[c * parts..(c + 1) * parts].iter().sum::<f64>();
    numbers.chunks(2 * lanes as usize).map(move |step| {
        let (vv, wv) = step.split_at(lanes as usize);
        Dots {
            vv: (0..columns).map(|c| column(vv, c)).collect(),
            wv: (0..columns).map(|c| column(wv, c)).collect(),
            partial: false,
        }
    })
}

impl Kernel for CardMatrix {
    fn shape(&self) -> KernelShape {
        KernelShape { rows: self.rows, cols: self.cols, dtype: self.dtype }
    }

    fn info(&self) -> KernelInfo {
        self.info.clone()
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        let (columns, (lane_type, lanes)) = (v.columns, self.lanes(v));
        if columns == 0 {
            return Ok(());
        }
        let launch = self.launch(lane_type, lanes, self.kind(c, dots.is_some()))?;
        let blocks = launch.grid.0;
        let sums = match dots {
            Some(_) => Some(self.card.allocate(16 * blocks as usize * lanes as usize)?),
            None => None,
        };
        let vectors = self.vectors(c, v, w, sums.as_ref(), lanes)?;
        self.pass(&launch, vectors)?;
        if let (Some(dots), Some(sums)) = (dots, sums) {
            let numbers = sums::reduced(&self.card, &sums, blocks, 2 * lanes as usize)?;
            *dots = collect(&numbers, lanes, columns).next().unwrap_or_default();
        }
        Ok(())
    }

    fn update_later(&self, c: Update, v: &BlockVector, w: &mut BlockVector) -> Result<PendingProducts> {
        check_update(self, v, w, true)?;
        let (columns, (lane_type, lanes)) = (v.columns, self.lanes(v));
        if columns == 0 {
            return Ok(Box::new(|| Ok(Dots::default())));
        }
        let launch = self.launch(lane_type, lanes, self.kind(c, true))?;
        let blocks = launch.grid.0;
        let sums = self.card.allocate(16 * blocks as usize * lanes as usize)?;
        let vectors = self.vectors(c, v, w, Some(&sums), lanes)?;
        self.pass(&launch, vectors)?;
        let width = 2 * lanes as usize;
        let entry = self
            .ledger
            .enter(&self.card, width, |out| sums::reduce(&self.card, &sums, (blocks, 1), width, out))?;
        Ok(Box::new(move || {
            let numbers = entry.read()?;
            Ok(collect(&numbers, lanes, columns).next().unwrap_or_default())
        }))
    }

    fn recurrence(
        &self,
        alpha: f64,
        beta: f64,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
        out: &mut Vec<Dots>,
    ) -> Result<()> {
        out.extend(self.steps(None, (alpha, beta), v, w, steps)?);
        if steps % 2 == 1 {
            std::mem::swap(v, w);
        }
        Ok(())
    }

    fn recurrence_linked(
        &self,
        link: &mut dyn Link,
        alpha_beta: (f64, f64),
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
    ) -> Option<Result<Vec<Dots>>> {
        let link = link.as_any().downcast_mut::<CudaLink>()?;
        Some(self.steps(Some(link), alpha_beta, v, w, steps))
    }

    fn overwrites(&self) -> bool {
        true
    }

    fn recordable(&self) -> bool {
        true
    }
}
