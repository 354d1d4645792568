//! Products by operation records on the GPU: two launches of one kernel, the inner products of records with two dense
//! sides first. Operators are copied once, and stay for all products of a search. If they do not fit on the GPU, they
//! stay in main memory and are copied in windows, one during the computation with the previous one (Nemes et al. 2014,
//! NoStreamAndStorage). The other schedules of that paper, with a launch for each block on four streams or on none, are
//! for comparison. A complex superblock is two real ones, which read and write the real and imaginary parts of vectors.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use cust::stream::{Stream, StreamFlags};

use super::card::{Card, CardBuffer};
use super::driver::failure;
use super::operators::{OperatorMemory, PlacedOperators};
use super::pinned::Event;
use super::places::Tile;
use super::{algebra, arguments, buffer, unique};
use crate::backend::matrix::records::{
    Handling, OperatorPiece, PanelRectangle, ProductRecord, RecordList, Records, Schedule,
};
use crate::backend::{BlockVector, Dots, Kernel, KernelInfo, KernelShape, Rows, Update, check_update};
use crate::error::{Error, Result};
use crate::number::{C64, DType};

/// Vectors of a search that room is left for.
const VECTORS: usize = 48;

/// Rows and columns of a tile of the kernel, and the threads that it takes.
const SIDE: usize = 64;
pub(super) const THREADS: u32 = 128;

/// Where an operand of a record lies.
pub(super) const MATRIX: u32 = 0;
const VECTOR: u32 = 1;
pub(super) const INNER: u32 = 2;

/// A record as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct Step {
    pub scale: f64,
    pub left: u64,
    pub right: u64,
    pub row: u32,
    pub rows: u32,
    pub column: u32,
    pub columns: u32,
    pub depth: u32,
    pub left_row: u32,
    pub left_column: u32,
    pub right_row: u32,
    pub left_kind: u32,
    pub right_kind: u32,
}

/// The tiles of a pass and their records on the GPU.
pub(super) struct TilePass {
    pub tiles: CardBuffer,
    pub steps: CardBuffer,
    /// The tiles of each launch.
    launches: Vec<Range<u32>>,
}

/// Streams beside the card's own, which wait for it, and for which it waits.
struct Fork {
    ready: Event,
    streams: Vec<(Stream, Event)>,
}

impl Fork {
    fn new(card: &Card) -> Result<Fork> {
        card.enter()?;
        let stream = || Stream::new(StreamFlags::NON_BLOCKING, None).map_err(|e| failure("a stream", e));
        let streams = (0..4).map(|_| Ok((stream()?, Event::new()?))).collect::<Result<_>>()?;
        Ok(Fork { ready: Event::new()?, streams })
    }
}

/// Operators that are on the GPU together, and what is launched while they are.
struct OperatorWindow {
    /// Their numbers, among those of all.
    numbers: Range<usize>,
    first: Option<TilePass>,
    second: Option<TilePass>,
}

/// A prepared list of real records.
struct CudaRecords {
    card: Arc<Card>,
    list: Arc<RecordList<f64>>,
    /// Rows of a product that are computed: all, or some.
    rows: usize,
    operators: OperatorMemory,
    /// Blocks of operators that the card has made itself.
    _made_here: Vec<BlockVector>,
    windows: Vec<OperatorWindow>,
    fork: Option<Mutex<Fork>>,
    inner: CardBuffer,
    bytes: usize,
}

/// Tiles and records in the making.
#[derive(Default)]
pub(super) struct TilePlan {
    tiles: Vec<(u64, Tile)>,
    steps: Vec<Step>,
}

impl TilePass {
    /// How many tiles there are.
    pub fn count(&self) -> u32 {
        self.launches.last().map_or(0, |last| last.end)
    }
}

impl TilePlan {
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// Queues the products of matrices and of `inner`, of which no step reads a vector.
    pub fn multiply(self, card: &Arc<Card>, inner: &CardBuffer, out: &CardBuffer) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let pass = self.upload(card, Schedule::Together)?;
        let tiles = pass.tiles.address;
        let (steps, inner, to) = (pass.steps.address, inner.address, out.address);
        let (lane, lanes, one, zero) = (0u32, 1u32, 1.0, 0.0);
        let arguments = arguments![tiles, steps, to, inner, to, lane, lanes, lane, lanes, one, zero, zero];
        // SAFETY: the kernel's arguments. Whoever made tiles and steps has kept to the matrices,
        // to `inner` and to `out`.
        unsafe { card.launch("records_f64", (pass.count(), 1), THREADS, &arguments) }
    }

    /// Deals a block of the result out in tiles that walk the records given.
    pub fn block(&mut self, out: usize, rows: usize, columns: usize, steps: Vec<Step>) {
        let work: u64 =
            steps.iter().map(|s| u64::from(s.rows) * u64::from(s.columns) * u64::from(s.depth.max(1))).sum();
        let (first, count) = (self.steps.len() as u32, steps.len() as u32);
        self.steps.extend(steps);
        for row in (0..rows).step_by(SIDE) {
            for column in (0..columns).step_by(SIDE) {
                let tile = Tile {
                    out: out as u64,
                    rows: rows as u32,
                    columns: columns as u32,
                    row: row as u32,
                    column: column as u32,
                    first,
                    count,
                };
                self.tiles.push((work / (rows * columns) as u64, tile));
            }
        }
    }

    /// Brings all to the GPU, the longest tiles of a launch first.
    pub fn upload(mut self, card: &Arc<Card>, schedule: Schedule) -> Result<TilePass> {
        let block = |tile: &Tile| if schedule == Schedule::Together { 0 } else { tile.out };
        self.tiles.sort_by_key(|(work, tile)| (block(tile), std::cmp::Reverse(*work)));
        let tiles: Vec<Tile> = self.tiles.iter().map(|t| t.1).collect();
        u32::try_from(tiles.len()).map_err(|_| Error::internal("too many tiles"))?;
        let mut end = 0;
        let launches = tiles.chunk_by(|a, b| block(a) == block(b)).map(|own| {
            let start = end;
            end += own.len() as u32;
            start..end
        });
        let launches = launches.collect();
        Ok(TilePass { tiles: card.upload(&tiles)?, steps: card.upload(&self.steps)?, launches })
    }
}

/// Brings a superblock to the GPU, its operators too if they fit into their room,
/// or into what the vectors of a search leave.
pub(super) fn prepare(card: &Arc<Card>, records: Records, handling: Handling) -> Result<Arc<dyn Kernel>> {
    match records {
        Records::Real(list) => {
            let all = list.pieces(&(0..list.dim));
            Ok(Arc::new(CudaRecords::new(card, list, &all, handling)?))
        }
        Records::Complex(list) => {
            let all = list.pieces(&(0..list.dim));
            Ok(Arc::new(Complex::new(card, list, &all, handling)?))
        }
    }
}

/// The same for some rows of its product, which takes vectors with all rows.
pub(super) fn prepare_rows(
    card: &Arc<Card>,
    records: &Records,
    rows: Range<usize>,
    handling: Handling,
) -> Result<Arc<dyn Kernel>> {
    match records {
        Records::Real(list) => {
            let pieces = list.pieces(&rows);
            let part = Arc::new(list.writing(&pieces));
            Ok(Arc::new(CudaRecords::new(card, part, &pieces, handling)?))
        }
        Records::Complex(list) => {
            let pieces = list.pieces(&rows);
            let part = Arc::new(list.writing(&pieces));
            Ok(Arc::new(Complex::new(card, part, &pieces, handling)?))
        }
    }
}

/// What the kernels walk, window by window: in the first pass products that a second one reads from `inner`, in the
/// second pass all the rest.
struct TileWindows<'a> {
    list: &'a RecordList<f64>,
    first: Vec<TilePlan>,
    second: Vec<TilePlan>,
    /// Numbers between the passes, and of the result.
    inner: usize,
    offset: usize,
}

/// Places before the beginning of a tile, which the kernel takes as negative numbers.
fn behind(place: usize, first: usize) -> u32 {
    place.wrapping_sub(first) as u32
}

impl<'a> TileWindows<'a> {
    fn new(list: &'a RecordList<f64>, windows: usize) -> TileWindows<'a> {
        let plans = || (0..windows).map(|_| TilePlan::default()).collect();
        TileWindows { list, first: plans(), second: plans(), inner: 0, offset: 0 }
    }

    /// Adds a piece of the result.
    fn add(&mut self, placed: &PlacedOperators, piece: &PanelRectangle) {
        let mut steps = Vec::new();
        for record in &self.list.records[piece.panel] {
            match record {
                ProductRecord::Single { source, left, right } => {
                    steps.extend(self.single(placed, piece, *source, [left, right]));
                }
                ProductRecord::Double { source, left, right } => {
                    self.double(placed, piece, *source, [left, right], &mut steps);
                }
            }
        }
        deal(&mut self.second, self.offset, piece.rows, piece.columns, &steps);
        self.offset += piece.rows * piece.columns;
    }

    /// The step of a record with an operator on one side at most, and its window; none if the piece has nothing of it.
    fn single(
        &self,
        placed: &PlacedOperators,
        piece: &PanelRectangle,
        source: usize,
        [left, right]: [&OperatorPiece<f64>; 2],
    ) -> Option<(usize, Step)> {
        if !piece.meets_rows(left) || !piece.meets_columns(right) {
            return None;
        }
        let from = self.list.panels[source];
        let step = Step {
            scale: left.scale * right.scale,
            row: behind(left.row, piece.row),
            rows: left.rows as u32,
            column: behind(right.row, piece.column),
            columns: right.rows as u32,
            ..Step::zeroed()
        };
        let x = (from.offset + left.column * from.columns + right.column) as u64;
        let across = from.columns as u32;
        Some(if left.matrix.is_some() {
            let (window, a, height) = placed.place(left);
            let step = Step {
                left: a,
                left_row: 1,
                left_column: height,
                left_kind: MATRIX,
                right: x,
                right_row: across,
                right_kind: VECTOR,
                depth: left.columns as u32,
                ..step
            };
            (window, step)
        } else if right.matrix.is_some() {
            let (window, b, height) = placed.place(right);
            let step = Step {
                left: x,
                left_row: across,
                left_column: 1,
                left_kind: VECTOR,
                right: b,
                right_row: height,
                right_kind: MATRIX,
                depth: right.columns as u32,
                ..step
            };
            (window, step)
        } else {
            (0, Step { left: x, left_row: across, left_column: 1, left_kind: VECTOR, ..step })
        })
    }

    /// The steps of a record with operators on both sides: the left one comes first.
    fn double(
        &mut self,
        placed: &PlacedOperators,
        piece: &PanelRectangle,
        source: usize,
        [left, right]: [&[OperatorPiece<f64>]; 2],
        steps: &mut Vec<(usize, Step)>,
    ) {
        let from = self.list.panels[source];
        let (height, across) = (piece.rows, from.columns);
        let products = left.iter().filter(|f| piece.meets_rows(f)).map(|f| {
            let (window, a, rows) = placed.place(f);
            let step = Step {
                scale: f.scale,
                row: behind(f.row, piece.row),
                rows: f.rows as u32,
                columns: across as u32,
                left: a,
                left_row: 1,
                left_column: rows,
                left_kind: MATRIX,
                right: (from.offset + f.column * across) as u64,
                right_row: across as u32,
                right_kind: VECTOR,
                depth: f.columns as u32,
                ..Step::zeroed()
            };
            (window, step)
        });
        deal(&mut self.first, self.inner, height, across, &products.collect::<Vec<_>>());
        for f in right.iter().filter(|f| piece.meets_columns(f)) {
            let (window, b, rows) = placed.place(f);
            let step = Step {
                scale: f.scale,
                rows: height as u32,
                column: behind(f.row, piece.column),
                columns: f.rows as u32,
                left: (self.inner + f.column) as u64,
                left_row: across as u32,
                left_column: 1,
                left_kind: INNER,
                right: b,
                right_row: rows,
                right_kind: MATRIX,
                depth: f.columns as u32,
                ..Step::zeroed()
            };
            steps.push((window, step));
        }
        self.inner += height * across;
    }
}

impl CudaRecords {
    fn new(
        card: &Arc<Card>,
        list: Arc<RecordList<f64>>,
        pieces: &[PanelRectangle],
        handling: Handling,
    ) -> Result<CudaRecords> {
        let placed = PlacedOperators::new(card, &list, handling.room, 8 * VECTORS * list.dim)?;
        let mut tiles = TileWindows::new(&list, placed.windows.len());
        pieces.iter().for_each(|piece| tiles.add(&placed, piece));
        let held = placed.held();
        let upload = |plan: TilePlan| -> Result<Option<TilePass>> {
            if plan.is_empty() { Ok(None) } else { plan.upload(card, handling.schedule).map(Some) }
        };
        let windows = placed.windows.into_iter().zip(tiles.first.into_iter().zip(tiles.second)).map(
            |(numbers, (first, second))| {
                Ok(OperatorWindow { numbers, first: upload(first)?, second: upload(second)? })
            },
        );
        Ok(CudaRecords {
            card: card.clone(),
            operators: placed.operators,
            _made_here: placed.made_here,
            windows: windows.collect::<Result<_>>()?,
            fork: match handling.schedule {
                Schedule::FourStreams => Some(Mutex::new(Fork::new(card)?)),
                Schedule::Together | Schedule::NoStreams => None,
            },
            inner: card.allocate(8 * tiles.inner)?,
            bytes: 8 * (held + placed.here + tiles.inner),
            rows: tiles.offset,
            list,
        })
    }

    /// `w = alpha A v + beta v + gamma w` from lane `from` of `v` to lane `to` of `w`,
    /// each of `lanes` numbers side by side.
    fn product(&self, c: Update, v: (u64, u32), w: (u64, u32), lanes: u32) -> Result<()> {
        let inner = (self.inner.address, 0);
        self.passes(|window| &window.first, Update::PRODUCT, v, lanes, inner, 1)?;
        self.passes(|window| &window.second, c, v, lanes, w, lanes)
    }

    /// Refuses to add a vector with all rows to one with some.
    fn check(&self, c: Update) -> Result<()> {
        match c.beta {
            beta if beta != 0.0 && self.rows != self.list.dim => {
                Err(Error::internal("a product of some rows that adds its vector"))
            }
            _ => Ok(()),
        }
    }

    /// The launches of all windows, each adding to what those before it have left.
    fn passes(
        &self,
        of: impl Fn(&OperatorWindow) -> &Option<TilePass>,
        c: Update,
        (v, from): (u64, u32),
        lanes: u32,
        (out, to): (u64, u32),
        out_lanes: u32,
    ) -> Result<()> {
        for (k, window) in self.windows.iter().enumerate() {
            let Some(pass) = of(window) else { continue };
            let travelling = match &self.operators {
                OperatorMemory::Resident(_) => None,
                OperatorMemory::Travelling(all) => Some(all.lock().unwrap_or_else(PoisonError::into_inner)),
            };
            if let Some(all) = &travelling {
                all.send(&self.card, k, &window.numbers)?;
            }
            let (steps, inner) = (pass.steps.address, self.inner.address);
            let Update { alpha, beta, gamma } =
                if k == 0 { c } else { Update { beta: 0.0, gamma: 1.0, ..c } };
            let launch = |stream, own: &Range<u32>| {
                let tiles = pass.tiles.address + u64::from(own.start) * size_of::<Tile>() as u64;
                let arguments =
                    arguments![tiles, steps, v, inner, out, from, lanes, to, out_lanes, alpha, beta, gamma];
                // SAFETY: the kernel's arguments. Tiles and records were made from the list, whose places lie inside
                // the vectors, the inner products and the operators of this window, all of which are alive. A stream of
                // a fork waits for the card's before, and the card's for it behind;
                // tiles of one pass write nothing in common.
                unsafe {
                    self.card.launch_on(stream, "records_f64", (own.len() as u32, 1), THREADS, &arguments)
                }
            };
            let main = self.card.stream();
            if let Some(fork) = &self.fork {
                let fork = fork.lock().unwrap_or_else(PoisonError::into_inner);
                fork.ready.record(main)?;
                for (stream, _) in &fork.streams {
                    fork.ready.hold(stream.as_inner())?;
                }
                for (own, (stream, _)) in pass.launches.iter().zip(fork.streams.iter().cycle()) {
                    launch(stream.as_inner(), own)?;
                }
                for (stream, done) in &fork.streams {
                    done.record(stream.as_inner())?;
                    done.hold(main)?;
                }
            } else {
                pass.launches.iter().try_for_each(|own| launch(main, own))?;
            }
            if let Some(all) = &travelling {
                all.done(&self.card, k)?;
            }
        }
        Ok(())
    }
}

/// Deals a block of the result out: to each window the records whose operators it has,
/// to the first the block in any case.
fn deal(plans: &mut [TilePlan], out: usize, rows: usize, columns: usize, steps: &[(usize, Step)]) {
    for (k, plan) in plans.iter_mut().enumerate() {
        let own: Vec<Step> = steps.iter().filter(|s| s.0 == k).map(|s| s.1).collect();
        if k == 0 || !own.is_empty() {
            plan.block(out, rows, columns, own);
        }
    }
}

/// How many numbers lie side by side in a row.
fn lanes(v: &BlockVector) -> Result<u32> {
    let parts = if v.dtype().is_complex() { 2 } else { 1 };
    u32::try_from(v.columns() * parts).map_err(|_| Error::input("too many columns"))
}

impl Kernel for CudaRecords {
    fn shape(&self) -> KernelShape {
        KernelShape { rows: Rows::all(self.rows), cols: self.list.dim, dtype: DType::F64 }
    }

    fn info(&self) -> KernelInfo {
        KernelInfo {
            format: format!("{} records{}", self.list.count(), self.operators.place()),
            bytes: self.bytes,
            entries: self.list.flops() as usize / 2,
        }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        self.check(c)?;
        // A real operator acts on the columns of a block, and on real and imaginary parts, one after the other.
        let (lanes, x) = (lanes(v)?, buffer(v)?.address);
        let y = unique(&self.card, w)?.address;
        for lane in 0..lanes {
            self.product(c, (x, lane), (y, lane), lanes)?;
        }
        algebra::products(&self.card, v, w, dots)
    }
}

/// A prepared list of complex records, H = R + i I.
struct Complex {
    real: CudaRecords,
    imaginary: CudaRecords,
    list: Arc<RecordList<C64>>,
}

impl Complex {
    fn new(
        card: &Arc<Card>,
        list: Arc<RecordList<C64>>,
        pieces: &[PanelRectangle],
        handling: Handling,
    ) -> Result<Complex> {
        let half = Handling { room: handling.room.map(|room| room / 2), ..handling };
        let parts = list.parts()?.map(|part| CudaRecords::new(card, Arc::new(part), pieces, half));
        let [real, imaginary] = parts;
        Ok(Complex { real: real?, imaginary: imaginary?, list })
    }
}

impl Kernel for Complex {
    fn shape(&self) -> KernelShape {
        KernelShape { dtype: DType::C64, ..self.real.shape() }
    }

    fn info(&self) -> KernelInfo {
        KernelInfo {
            format: format!("{} records{}", self.list.count(), self.real.operators.place()),
            bytes: self.real.bytes + self.imaginary.bytes,
            entries: self.list.flops() as usize / 8,
        }
    }

    fn update(&self, c: Update, v: &BlockVector, w: &mut BlockVector, dots: Option<&mut Dots>) -> Result<()> {
        check_update(self, v, w, dots.is_some())?;
        self.real.check(c)?;
        let card = &self.real.card;
        let (lanes, x) = (lanes(v)?, buffer(v)?.address);
        let y = unique(card, w)?.address;
        for lane in 0..lanes {
            self.real.product(c, (x, lane), (y, lane), lanes)?;
            // i I takes the other part: with a minus to the real part, which lies on even lanes.
            let alpha = if lane % 2 == 0 { -c.alpha } else { c.alpha };
            self.imaginary.product(
                Update { alpha, beta: 0.0, gamma: 1.0 },
                (x, lane ^ 1),
                (y, lane),
                lanes,
            )?;
        }
        algebra::products(card, v, w, dots)
    }
}
