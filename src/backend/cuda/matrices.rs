//! Matrices on the GPU: the fused pass and the recurrence over every format.

use std::sync::Arc;

use super::blocks::BlocksArgument;
use super::card::{Card, CardBuffer};
use super::cells::{General, StraightArgument};
use super::graph::Graph;
use super::ledger::Ledger;
use super::link::CudaLink;
use super::order::{self, Order, PassKind};
use super::{LAUNCH_BOUND, LINKED_BOUND, THREADS, arguments, buffer, suffix, sums, unique};
use crate::backend::exchange::{Link, PendingProducts};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update};
use crate::error::{Error, Result};
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

/// Threads of a block of a kernel for several steps.
const TOGETHER: u32 = 512;

/// Most bytes of block sums that a recurrence keeps before it reduces them.
const SUMS: usize = 256 << 20;

/// Steps whose block sums are reduced together, an even number.
const GROUP: usize = 32;

/// Steps that are queued before their products are waited for.
const WAIT: usize = 1 << 15;

/// Rows from which on several steps share a launch; and up to how many where a thread has few rows under way: those of
/// packs that are wider than this, in bytes, and of cells of two orbitals.
const FEWEST_ROWS: usize = 1 << 16;
const MOST_ROWS: usize = 1 << 20;
const NARROW_PACK: usize = 8;

/// Most steps of a launch, an even number, and most bytes of vectors that they read as their input, half a second or
/// less: a launch cannot be interrupted.
const MOST_TOGETHER: usize = 256;
const MOST_INPUT: usize = 1 << 39;

/// The argument that all kernels of this file share; see `kernels/update.cuh`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UpdateArgument {
    v: u64,
    w: u64,
    sums: u64,
    alpha: f64,
    beta: f64,
    gamma: f64,
    lanes: u32,
    offset: u64,
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
struct Launch {
    kernel: String,
    argument: Argument,
    /// Of the kernels that walk stored rows in an order.
    order: Option<Order>,
    units: u64,
    /// Blocks that share the units, and tiles of lanes side by side.
    grid: (u32, u32),
    /// Threads of a block.
    block: u32,
}

impl CardMatrix {
    /// Type and number of the lanes that a kernel sees: a real matrix takes a complex number as two.
    fn lanes(&self, v: &BlockVector) -> (DType, u32) {
        let parts = if v.dtype.is_complex() && !self.dtype.is_complex() { 2 } else { 1 };
        (self.dtype, (v.columns * parts) as u32)
    }

    /// Which kernel takes a single pass.
    fn kind(&self, c: Update, dots: bool) -> PassKind {
        let sorted = matches!(self.argument, Argument::Sell(s) if s.order != 0);
        if !sorted && c.gamma != 0.0 && (c.beta != 0.0 || dots) { PassKind::Step } else { PassKind::Any }
    }

    /// How a row's lanes are spread over threads, and rows over blocks.
    fn launch(&self, dtype: DType, lanes: u32, kind: PassKind) -> Result<Launch> {
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
        let several = kind == PassKind::Several;
        let special = match kind {
            PassKind::Several => SEVERAL,
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

    fn pass(&self, launch: &Launch, vectors: UpdateArgument) -> Result<()> {
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

impl CardMatrix {
    /// Steps of a recurrence, vectors changing places in between; with a link, each with its exchange.
    fn steps(
        &self,
        mut link: Option<&mut CudaLink>,
        (alpha, beta): (f64, f64),
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
    ) -> Result<Vec<Dots>> {
        check_update(self, v, w, true)?;
        let (columns, (lane_type, lanes)) = (v.columns, self.lanes(v));
        if columns == 0 {
            return Ok((0..steps).map(|_| Dots::default()).collect());
        }
        let c = Update { alpha, beta, gamma: -1.0 };
        if link.is_none()
            && let Some(launch) = self.several(v, steps)?
            && let Some(all) = self.steps_together(&launch, c, v, w, steps)?
        {
            return Ok(all);
        }
        let launch = self.launch(lane_type, lanes, self.kind(c, true))?;
        let blocks = launch.grid.0;
        let each = 16 * blocks as usize * lanes as usize;
        let group = (SUMS / each.max(1)).clamp(1, GROUP).min(steps.max(1));
        let sums = self.card.allocate(each * group)?;
        // Sums over the boundary, as many numbers a block as there are lanes.
        let edge = link.as_ref().map(|link| link.sums().1);
        let each_edge = 8 * edge.unwrap_or(0) as usize * lanes as usize;
        let edges = self.card.allocate(each_edge * group)?;
        // Both are written: what clones share is copied before anything is recorded.
        let (mut x, mut y) = (unique(&self.card, v)?.address, unique(&self.card, w)?.address);
        let mut queue = |link: &mut Option<&mut CudaLink>, count: usize| {
            (0..count).try_for_each(|step| {
                let vectors = UpdateArgument {
                    v: x,
                    w: y,
                    sums: sums.address + (step * each) as u64,
                    alpha: c.alpha,
                    beta: c.beta,
                    gamma: c.gamma,
                    lanes,
                    offset: self.rows.start as u64,
                };
                if let Some(link) = link {
                    link.queue_send(x)?;
                }
                self.pass(&launch, vectors)?;
                if let Some(link) = link {
                    link.queue_add(c.alpha, y, x, edges.address + (step * each_edge) as u64)?;
                }
                std::mem::swap(&mut x, &mut y);
                Ok(())
            })
        };
        // An even number of steps leaves the vectors where they were, so that the same launches serve again.
        let most = if edge.is_some() { LINKED_BOUND } else { LAUNCH_BOUND };
        let worth = group == GROUP && steps >= 4 * GROUP && v.bytes() <= most;
        let mut recorded = None;
        if worth && link.as_ref().is_none_or(|link| link.is_short()) {
            recorded = Some(Graph::record(&self.card, || queue(&mut link, GROUP))?);
            if let Some(link) = &mut link {
                link.count(-(GROUP as i32));
            }
        }
        let width = 2 * lanes as usize;
        let (mut done, mut all) = (0, Vec::with_capacity(steps));
        while done < steps {
            // Nothing is waited for within these steps.
            let now = WAIT.min(steps - done);
            let results = self.card.allocate(8 * width * now)?;
            let more = self.card.allocate(8 * lanes as usize * now)?;
            let mut queued = 0;
            while queued < now {
                let next = group.min(now - queued);
                match &mut recorded {
                    // SAFETY: as for the same launches one by one; vectors and sums are alive.
                    Some(graph) if next == GROUP => unsafe {
                        graph.replay()?;
                        if let Some(link) = &mut link {
                            link.count(GROUP as i32);
                        }
                    },
                    _ => queue(&mut link, next)?,
                }
                let out = results.address + (8 * width * queued) as u64;
                sums::reduce(&self.card, &sums, (blocks, next as u32), width, out)?;
                if let Some(blocks) = edge {
                    let out = more.address + (8 * lanes as usize * queued) as u64;
                    sums::reduce(&self.card, &edges, (blocks, next as u32), lanes as usize, out)?;
                }
                queued += next;
            }
            let mut numbers = self.card.download::<f64>(&results, width * now)?;
            if edge.is_some() {
                let more = self.card.download::<f64>(&more, lanes as usize * now)?;
                for (step, more) in numbers.chunks_mut(width).zip(more.chunks(lanes as usize)) {
                    step[lanes as usize..].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
                }
            }
            all.extend(collect(&numbers, lanes, columns));
            done += now;
        }
        Ok(all)
    }
}

impl CardMatrix {
    /// The launch of several steps of a recurrence, where there is a kernel for them that is worth it.
    fn several(&self, v: &BlockVector, steps: usize) -> Result<Option<Launch>> {
        let (dtype, lanes) = self.lanes(v);
        let (pack, packs) = packs(dtype, lanes);
        let (rows, wide) = (self.rows.local, pack as usize * dtype.bytes() > NARROW_PACK);
        // Below, launches one by one are as fast; above, blocks of a launch of their own have more rows under way.
        let worth = match &self.argument {
            Argument::Straight(s) => s.is_deep() && (!wide || rows <= MOST_ROWS),
            Argument::Stencil(s) => s.blocks.is_some_and(|b| b.orbitals() == 4 || rows <= MOST_ROWS),
            _ => false,
        };
        if !worth || packs != 1 || rows < FEWEST_ROWS || steps < 2 || !self.card.gathers {
            return Ok(None);
        }
        self.launch(dtype, lanes, PassKind::Several).map(Some)
    }

    /// The steps of a recurrence, many in a launch; none where the GPU cannot hold all blocks at once.
    fn steps_together(
        &self,
        launch: &Launch,
        c: Update,
        v: &mut BlockVector,
        w: &mut BlockVector,
        steps: usize,
    ) -> Result<Option<Vec<Dots>>> {
        let (card, columns, (_, lanes)) = (&self.card, v.columns, self.lanes(v));
        let (blocks, width) = (launch.grid.0, 2 * lanes as usize);
        let each = 8 * blocks as usize * width;
        // An even number leaves the vectors where they were.
        let most = (SUMS / each).min(MOST_INPUT / v.bytes().max(1)).clamp(2, MOST_TOGETHER) & !1;
        let sums = card.allocate(each * most.min(steps))?;
        // Blocks meet at this number.
        let met = card.upload(&[0u32])?;
        let (x, y) = (unique(card, v)?.address, unique(card, w)?.address);
        let mut all = Vec::with_capacity(steps);
        while all.len() < steps {
            let now = WAIT.min(steps - all.len());
            let results = card.allocate(8 * width * now)?;
            for queued in (0..now).step_by(most) {
                let count = most.min(now - queued) as u32;
                let vectors = UpdateArgument {
                    v: x,
                    w: y,
                    sums: sums.address,
                    alpha: c.alpha,
                    beta: c.beta,
                    gamma: c.gamma,
                    lanes,
                    offset: self.rows.start as u64,
                };
                let (units, arrived) = (launch.units, met.address);
                macro_rules! launch {
                    ($matrix:expr) => {{
                        let matrix = $matrix;
                        let arguments = arguments![matrix, units, vectors, count, arrived];
                        // SAFETY: as for one step; there is room for the sums of all, and the number is no one else's.
                        unsafe { card.launch_together(&launch.kernel, launch.grid.0, launch.block, &arguments)? }
                    }};
                }
                let taken = match &launch.argument {
                    Argument::Straight(argument) => launch!(argument.bytes()),
                    Argument::Blocks(argument) => launch!(argument.bytes()),
                    _ => false,
                };
                if !taken && all.is_empty() && queued == 0 {
                    return Ok(None);
                }
                if !taken {
                    return Err(Error::internal("the GPU has less room for blocks than it had"));
                }
                let out = results.address + (8 * width * queued) as u64;
                sums::reduce(card, &sums, (blocks, count), width, out)?;
            }
            all.extend(collect(&card.download::<f64>(&results, width * now)?, lanes, columns));
        }
        Ok(Some(all))
    }
}

/// The lanes that a thread reads together, and how many such packs make a row.
fn packs(dtype: DType, lanes: u32) -> (u32, u32) {
    let mut pack = (16 / dtype.bytes() as u32).max(1);
    while !lanes.is_multiple_of(pack) {
        pack /= 2;
    }
    (pack, lanes / pack)
}

/// The products of each step from their sums, with the parts of complex numbers added.
fn collect(numbers: &[f64], lanes: u32, columns: usize) -> impl Iterator<Item = Dots> {
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
