//! A backend made of others. Rows are divided between its parts by weight, every part computes with its own rows, and
//! products exchange the rows across a cut (Kreutzer, Hager, Wellein, Pieper, Alvermann, Fehske, IPDPS 2015, 417).
//! Lattices are divided into boxes. Vectors of undivided operators live on the fastest part. Cards of one kind share a
//! superblock's vectors; other parts may compute some of its blocks. Walkers are divided between parts of one kind.

mod cuts;
mod faces;
mod kernel;
mod measure;
mod records;
mod speeds;
mod superblocks;
mod walkers;
mod whole;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::cut::speed::RowShares;
use crate::backend::cut::{RowCut, joined, share};
use crate::backend::exchange::{PlainMemory, Staging, through_host};
use crate::backend::matrix::Stencil;
use crate::backend::matrix::held::MatrixKeeper;
use crate::backend::matrix::outer::Superblocks;
use crate::backend::shared::{RowsChange, RowsSummand, SharedRows, TwoRowsChange};
use crate::backend::walkers::MonteCarlo;
use crate::backend::{
    Backend, BackendPart, BlockVector, DenseSolver, Device, DeviceMemory, Kernel, Matrices, MatrixSpec,
    Random, Rows, Storage, Vectors,
};
use crate::error::{Error, Result};
use crate::number::{C64, DType};
use crate::ranks::{self, World};
use cuts::Cuts;
use speeds::Speeds;
use superblocks::{CardAssembly, Keeping};

/// Bytes of a block from which a thread a part pays.
const WORTH_A_THREAD: usize = 1 << 20;

/// One part's rows of a block.
#[derive(Debug, Clone)]
struct Slab {
    /// Number of the part that holds them.
    part: usize,
    /// The rows, as the part knows them: a block of its own.
    block: BlockVector,
}

/// The rows of a block, part by part; parts without rows are not listed.
#[derive(Debug, Clone)]
pub(in crate::backend) struct SplitRows {
    pub name: &'static str,
    cut: Arc<RowCut>,
    list: Vec<Slab>,
}

/// Several backends as one: each holds a part of the rows of large vectors and matrices.
pub struct SplitBackend {
    parts: Vec<Device>,
    name: &'static str,
    cuts: Cuts,
    /// Of superblocks, once they are measured.
    speeds: Mutex<Option<Arc<Speeds>>>,
    /// The parts of one kind with the primary one, where they are cards that spread superblocks.
    together: CardAssembly,
    keeping: Option<Keeping>,
    helpers: Arc<Helpers>,
    /// Whether all parts queue their work, so that one thread calls them as fast as several.
    queue: bool,
}

impl std::fmt::Debug for SplitBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn pieces(v: &BlockVector) -> Result<&[Slab]> {
    match &v.storage {
        Storage::Split(pieces) => Ok(&pieces.list),
        _ => Err(elsewhere()),
    }
}

/// Which part holds which rows.
fn cut_of(v: &BlockVector) -> Result<&Arc<RowCut>> {
    match &v.storage {
        Storage::Split(pieces) => Ok(&pieces.cut),
        _ => Err(elsewhere()),
    }
}

fn pieces_mut(v: &mut BlockVector) -> Result<&mut [Slab]> {
    match &mut v.storage {
        Storage::Split(pieces) => Ok(&mut pieces.list),
        _ => Err(elsewhere()),
    }
}

fn elsewhere() -> Error {
    Error::input("a backend of several parts was given a block that lives on one backend")
        .hint("make operators and vectors on one backend")
}

fn cut_differently() -> Error {
    Error::input("two blocks whose rows are shared out differently do not fit together")
        .hint("make operators and vectors on one backend, after its weights are set")
}

/// How long threads that call cards stay awake after a call: a search calls again after some microseconds, and to wake
/// a thread takes longer than what it then waits for.
const AWAKE: Duration = Duration::from_micros(300);

/// Threads that call parts at once: one for each but the first, which the caller's own thread calls. Not the
/// processor's workers (`cpu/threads.rs`): there the caller does what nobody has begun,
/// so that parts would run one after the other.
struct Helpers {
    pool: rayon::ThreadPool,
    /// Whether they stay awake between two calls.
    eager: bool,
    watch: Arc<CallWatch>,
}

/// When threads were called, and how many of them look out for the next call.
struct CallWatch {
    begin: Instant,
    /// In microseconds since then.
    called: AtomicU64,
    awake: AtomicUsize,
}

impl CallWatch {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    /// Looks out for calls until there was none for some time.
    fn look(&self) {
        while self.now().saturating_sub(self.called.load(Ordering::Relaxed)) < AWAKE.as_micros() as u64 {
            if rayon::yield_now() != Some(rayon::Yield::Executed) {
                std::hint::spin_loop();
            }
        }
        self.awake.fetch_sub(1, Ordering::Release);
    }
}

impl Helpers {
    /// `eager`: to stay awake between calls, where all parts are cards.
    fn new(parts: usize, eager: bool) -> Result<Helpers> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads((parts - 1).max(1)).build();
        let pool = pool.map_err(|e| Error::backend(format!("threads for the parts of a backend: {e}")))?;
        let (called, awake) = (AtomicU64::new(0), AtomicUsize::new(0));
        let watch = Arc::new(CallWatch { begin: Instant::now(), called, awake });
        // Who has no processor for them would wait for those that look out.
        let there = std::thread::available_parallelism().map_or(1, |n| n.get());
        Ok(Helpers { eager: eager && there > 2 * parts, pool, watch })
    }

    /// Keeps threads awake for the next call.
    fn stay_awake(&self) {
        self.watch.called.store(self.watch.now(), Ordering::Relaxed);
        let threads = self.pool.current_num_threads();
        if self.watch.awake.compare_exchange(0, threads, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let watch = self.watch.clone();
            self.pool.spawn_broadcast(move |_| watch.look());
        }
    }

    /// Calls `f` for every piece of work, for all at once or for one after the other,
    /// and returns what it returns in order.
    fn each<T: Send, R: Send>(
        &self,
        at_once: bool,
        jobs: Vec<T>,
        f: impl Fn(T) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if !at_once || jobs.len() < 2 {
            return jobs.into_iter().map(f).collect();
        }
        let left = AtomicUsize::new(jobs.len() - 1);
        let mut found: Vec<Option<Result<R>>> = jobs.iter().map(|_| None).collect();
        if self.eager {
            self.stay_awake();
        }
        self.pool.in_place_scope(|scope| {
            let (f, left) = (&f, &left);
            let mut all = jobs.into_iter().zip(&mut found);
            let first = all.next();
            all.for_each(|(job, to)| {
                scope.spawn(move |_| {
                    *to = Some(f(job));
                    left.fetch_sub(1, Ordering::Release);
                });
            });
            first.into_iter().for_each(|(job, to)| *to = Some(f(job)));
            if self.eager {
                // The others are about as fast; who sleeps until they are through wakes up late.
                let begin = Instant::now();
                while left.load(Ordering::Acquire) > 0 && begin.elapsed() < AWAKE {
                    std::hint::spin_loop();
                }
            }
        });
        if self.eager {
            self.stay_awake();
        }
        let missing = || Err(Error::internal("a part that was not called"));
        found.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
    }
}

/// Host memory that rows pass through, good for both of two parts.
fn between(a: &Device, b: &Device, bytes: usize) -> Result<Staging> {
    let memory = match through_host(a)?.staging(bytes)? {
        None => through_host(b)?.staging(bytes)?,
        some => some,
    };
    Ok(memory.unwrap_or_else(|| Box::new(PlainMemory::new(bytes))))
}

/// Numbers of all parts added, in the order of parts.
fn total(parts: Vec<Vec<C64>>) -> Vec<C64> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(s, p)| *s += p);
    }
    sum
}

impl SplitBackend {
    /// A backend of these parts. Weights that are not given are found by short measurements, told to `tell`.
    ///
    /// # Errors
    /// Fewer than two parts, or weights that do not fit them.
    pub fn new(
        parts: Vec<Device>,
        weights: Option<Vec<f64>>,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self> {
        if parts.len() < 2 {
            return Err(Error::input("rows are shared out to two backends at least"));
        }
        let names: Vec<&'static str> = parts.iter().map(|part| part.name()).collect();
        let name = joined(&names);
        let shares = RowShares::new(names, weights, false, Box::new(tell))?;
        let team: Vec<usize> = shares
            .of_one_kind()
            .iter()
            .enumerate()
            .filter(|(_, w)| **w > 0.0)
            .map(|(part, _)| part)
            .collect();
        let others = team.iter().filter(|part| **part != shares.primary).map(|part| parts[*part].clone());
        let keeping = Keeping::new(&parts[shares.primary], others);
        let queue = parts.iter().all(|part| part.queues());
        let helpers = Arc::new(Helpers::new(parts.len(), queue)?);
        let team = team.iter().map(|&part| (part, parts[part].clone())).collect();
        let together = CardAssembly::new(team, helpers.clone());
        let (cuts, speeds) = (Cuts::new(shares), Mutex::default());
        Ok(SplitBackend { name, parts, cuts, speeds, together, keeping, helpers, queue })
    }

    /// How fast the parts are with superblocks, measured when it is first asked.
    fn speeds(&self) -> Result<Arc<Speeds>> {
        let mut known = self.speeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(speeds) = &*known {
            return Ok(speeds.clone());
        }
        let speeds = Arc::new(measure::speeds(&self.parts, self.cuts.shares.primary)?);
        self.cuts.shares.tell(&speeds.text(&self.parts));
        Ok(known.insert(speeds).clone())
    }

    /// A block whose pieces `make` makes of their parts and rows.
    fn build(
        &self,
        (dtype, rows, columns): (DType, Rows, usize),
        cut: Arc<RowCut>,
        queued: bool,
        make: impl Fn(&Device, Rows, &RowCut) -> Result<BlockVector> + Sync,
    ) -> Result<BlockVector> {
        let large = rows.local * columns * dtype.bytes() > WORTH_A_THREAD && !(queued && self.queue);
        let list = self.helpers.each(large, cut.holders(), |part| {
            let own = cut.of(part);
            let block = make(&self.parts[part], own.held(&rows), &own)?;
            Ok(Slab { part, block })
        })?;
        Ok(BlockVector { dtype, rows, columns, storage: self.stored(cut, list) })
    }

    fn stored(&self, cut: Arc<RowCut>, list: Vec<Slab>) -> Storage {
        Storage::Split(SplitRows { name: self.name, cut, list })
    }

    /// A block of the same rows, made of another piece by piece.
    fn map(
        &self,
        v: &BlockVector,
        f: impl Fn(&Device, &BlockVector) -> Result<BlockVector> + Sync,
    ) -> Result<BlockVector> {
        let large = v.bytes() > WORTH_A_THREAD && !self.queue;
        let list = self.helpers.each(large, pieces(v)?.iter().collect(), |piece: &Slab| {
            Ok(Slab { part: piece.part, block: f(self.part(piece)?, &piece.block)? })
        })?;
        let (dtype, columns) =
            list.first().map_or((v.dtype, v.columns), |piece| (piece.block.dtype, piece.block.columns));
        let storage = self.stored(cut_of(v)?.clone(), list);
        Ok(BlockVector { dtype, rows: v.rows, columns, storage })
    }

    fn part(&self, piece: &Slab) -> Result<&Device> {
        self.parts.get(piece.part).ok_or_else(cut_differently)
    }

    /// What `f` makes of the pieces of several blocks that are cut alike.
    fn read<R: Send>(
        &self,
        blocks: &[&BlockVector],
        f: impl Fn(&Device, &[&BlockVector]) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let jobs = aligned(blocks)?;
        let large = blocks.iter().map(|v| v.bytes()).sum::<usize>() > WORTH_A_THREAD;
        self.helpers
            .each(large, jobs, |(part, list)| f(self.parts.get(part).ok_or_else(cut_differently)?, &list))
    }
}

impl SharedRows for SplitBackend {
    fn is_cut(&self, v: &BlockVector) -> Result<bool> {
        Ok(pieces(v)?.len() > 1)
    }

    fn sum(&self, blocks: &[&BlockVector], f: &RowsSummand) -> Result<Vec<C64>> {
        Ok(total(self.read(blocks, f)?))
    }

    fn change(&self, blocks: &[&BlockVector], y: &mut BlockVector, f: &RowsChange) -> Result<()> {
        let large = y.bytes() > WORTH_A_THREAD && !self.queue;
        let mut jobs = Vec::new();
        if blocks.is_empty() {
            jobs.extend(pieces_mut(y)?.iter_mut().map(|to| (Vec::new(), to)));
        } else {
            if cut_of(blocks[0])? != cut_of(y)? {
                return Err(cut_differently());
            }
            let lists = aligned(blocks)?.into_iter().map(|(_, list)| list);
            jobs.extend(lists.zip(pieces_mut(y)?.iter_mut()));
        }
        self.helpers.each(large, jobs, |(list, to)| {
            let device = self.parts.get(to.part).ok_or_else(cut_differently)?;
            f(device, &list, &mut to.block)
        })?;
        Ok(())
    }

    fn change_two(
        &self,
        blocks: &[&BlockVector],
        [first, second]: [&mut BlockVector; 2],
        f: &TwoRowsChange,
    ) -> Result<Vec<C64>> {
        for v in blocks.iter().copied().chain([&*second]) {
            if cut_of(v)? != cut_of(first)? {
                return Err(cut_differently());
            }
        }
        let large = blocks.iter().map(|v| v.bytes()).sum::<usize>() > WORTH_A_THREAD;
        let both = pieces_mut(first)?.iter_mut().zip(pieces_mut(second)?);
        let jobs: Vec<_> = aligned(blocks)?.into_iter().zip(both).collect();
        let sums = self.helpers.each(large, jobs, |((part, list), (first, second))| {
            let device = self.parts.get(part).ok_or_else(cut_differently)?;
            f(device, &list, [&mut first.block, &mut second.block])
        })?;
        Ok(total(sums))
    }
}

/// The numbers of all rows, from those of the parts that have some.
fn together(cut: &RowCut, mut parts: Vec<Vec<C64>>, columns: usize) -> Vec<C64> {
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let mut all = vec![C64::default(); cut.rows * columns];
    for (part, numbers) in cut.holders().into_iter().zip(parts) {
        cut.put_back(part, &numbers, columns, &mut all);
    }
    all
}

/// The pieces of several blocks, part by part.
fn aligned<'a>(blocks: &[&'a BlockVector]) -> Result<Vec<(usize, Vec<&'a BlockVector>)>> {
    let lists: Vec<&[Slab]> = blocks.iter().map(|v| pieces(v)).collect::<Result<_>>()?;
    let Some(first) = lists.first() else { return Ok(Vec::new()) };
    for v in &blocks[1..] {
        if cut_of(v)? != cut_of(blocks[0])? {
            return Err(cut_differently());
        }
    }
    Ok((0..first.len()).map(|at| (first[at].part, lists.iter().map(|l| &l[at].block).collect())).collect())
}

impl Backend for SplitBackend {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describe(&self) -> String {
        let shares = self.cuts.shares.known();
        let part = |(i, device): (usize, &Device)| {
            let share = shares.as_ref().map(|s| format!(" {:.1} %", 100.0 * s[i])).unwrap_or_default();
            format!("{}{share} ({})", device.name(), device.describe())
        };
        self.parts.iter().enumerate().map(part).collect::<Vec<_>>().join(" + ")
    }

    /// Of all parts together. Free is what fits if each takes its share of it.
    fn memory(&self) -> DeviceMemory {
        // What bounds this process bounds its parts together.
        let each = |device: &Device| {
            let own = device.memory();
            DeviceMemory::new((own.total, own.used), (own.free, usize::MAX), own.place)
        };
        let parts: Vec<DeviceMemory> = self.parts.iter().map(each).collect();
        let shares = self.cuts.shares.known_or_primary(parts.len());
        let (total, free) = DeviceMemory::total_and_free(&parts, &shares);
        // Each rank has all rows here, and all decide alike: by the rank that has least.
        let least = |world: &World| world.gather_words(vec![free as u64]).ok()?.into_iter().min();
        let free = ranks::world().and_then(least).map_or(free, |free| free as usize);
        // The memory of a process is told as a whole by each of its parts.
        let mut places: Vec<(u64, usize)> = parts.iter().map(|part| (part.place, part.used)).collect();
        places.sort_unstable();
        places.dedup_by_key(|(place, _)| *place);
        let used = places.iter().map(|(_, used)| used).sum();
        DeviceMemory::new((total, used), (free, usize::MAX), parts[self.cuts.shares.primary].place)
    }

    fn workers(&self) -> usize {
        self.parts.iter().map(|p| p.workers()).sum()
    }

    fn preferred_columns(&self) -> usize {
        self.parts.iter().map(|p| p.preferred_columns()).max().unwrap_or(1)
    }

    fn synchronize(&self) -> Result<()> {
        self.parts.iter().try_for_each(|p| p.synchronize())
    }

    fn dense_solver(&self) -> Option<&dyn DenseSolver> {
        self.parts.iter().find_map(|part| part.dense_solver())
    }

    fn keeper(&self) -> Option<&dyn MatrixKeeper> {
        self.keeping.as_ref().map(|keeping| keeping as &dyn MatrixKeeper)
    }

    fn superblocks(&self) -> Option<&dyn Superblocks> {
        self.parts[self.cuts.shares.primary].superblocks().map(|_| self as &dyn Superblocks)
    }

    fn parts(&self) -> Vec<BackendPart> {
        let shares = self.cuts.shares.known();
        let part = |(i, device): (usize, &Device)| BackendPart {
            device: device.clone(),
            share: shares.as_ref().map(|s| s[i]),
        };
        self.parts.iter().enumerate().map(part).collect()
    }

    fn monte_carlo(&self) -> Option<&dyn MonteCarlo> {
        Some(self)
    }
}

impl Vectors for SplitBackend {
    fn zeros(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        let cut = self.cuts.of_rows(&self.parts, &rows)?;
        self.build((dtype, rows, columns), cut, true, |device, rows, _| device.zeros(dtype, rows, columns))
    }

    fn room(&self, dtype: DType, rows: Rows, columns: usize) -> Result<BlockVector> {
        let cut = self.cuts.of_rows(&self.parts, &rows)?;
        self.build((dtype, rows, columns), cut, true, |device, rows, _| device.room(dtype, rows, columns))
    }

    fn fill_random(&self, v: &mut BlockVector, random: Random) -> Result<()> {
        let (rows, cut) = (v.rows, cut_of(v)?.clone());
        let large = v.bytes() > WORTH_A_THREAD && !self.queue;
        self.helpers.each(large, pieces_mut(v)?.iter_mut().collect(), |piece: &mut Slab| {
            // Numbers belong to rows of the whole vector, so that they do not depend on who holds them.
            let Some(start) = cut.of(piece.part).start() else {
                let (mut starts, length) = cut.even_runs(piece.part)?;
                starts.iter_mut().for_each(|start| *start += rows.start);
                return self.part(piece)?.fill_random_runs(&mut piece.block, random, &starts, length);
            };
            let own = piece.block.rows;
            piece.block.rows = Rows { global: rows.global, start: rows.start + start, ..own };
            if piece.block.rows.local == rows.local {
                piece.block.rows = rows;
            }
            let filled = self.part(piece)?.fill_random(&mut piece.block, random);
            piece.block.rows = own;
            filled
        })?;
        Ok(())
    }

    fn set_entries(&self, v: &mut BlockVector, entries: &[(usize, usize, C64)]) -> Result<()> {
        v.check_entries(entries)?;
        let cut = cut_of(v)?.clone();
        let placed = entries.iter().map(|&(row, column, value)| (cut.holder(row), column, value));
        let placed: Vec<_> = placed.collect();
        for piece in pieces_mut(v)? {
            let own = placed.iter().filter(|((part, _), ..)| *part == piece.part);
            let own: Vec<_> = own.map(|&((_, row), column, value)| (row, column, value)).collect();
            if !own.is_empty() {
                self.part(piece)?.set_entries(&mut piece.block, &own)?;
            }
        }
        Ok(())
    }

    fn columns(&self, v: &BlockVector, range: Range<usize>) -> Result<BlockVector> {
        self.map(v, |device, block| device.columns(block, range.clone()))
    }

    fn set_columns(&self, v: &mut BlockVector, at: usize, source: &BlockVector) -> Result<()> {
        self.change(&[source], v, &|device, source, v| device.set_columns(v, at, source[0]))
    }

    fn convert(&self, v: &BlockVector, dtype: DType) -> Result<BlockVector> {
        self.map(v, |device, block| device.convert(block, dtype))
    }

    fn download(&self, v: &BlockVector) -> Result<Vec<C64>> {
        let (cut, numbers) = (cut_of(v)?, self.read(&[v], |device, v| device.download(v[0]))?);
        Ok(together(cut, numbers, v.columns))
    }

    fn download_real(&self, v: &BlockVector) -> Result<Option<Vec<f64>>> {
        self.reals_at_home(v)
    }

    fn download_part(&self, v: &BlockVector, range: Range<usize>) -> Result<Vec<f64>> {
        self.part_at_home(v, range)
    }

    fn all_rows(&self, v: &BlockVector) -> Result<Option<BlockVector>> {
        self.rows_at_home(v)
    }

    fn upload(&self, dtype: DType, rows: Rows, columns: usize, data: &[C64]) -> Result<BlockVector> {
        rows.check_numbers(columns, data.len())?;
        let cut = self.cuts.of_rows(&self.parts, &rows)?;
        self.build((dtype, rows, columns), cut, false, |device, rows, own| match own.start() {
            Some(start) => {
                device.upload(dtype, rows, columns, &data[start * columns..][..own.local() * columns])
            }
            None => device.upload(dtype, rows, columns, &own.chosen(data, columns)),
        })
    }
}

impl Matrices for SplitBackend {
    fn prepare(&self, spec: MatrixSpec) -> Result<Arc<dyn Kernel>> {
        let Some((rows, cols)) = share::shape(&spec) else {
            let part = self.cuts.shares.primary;
            let inner = match spec {
                MatrixSpec::Records { records, handling } => {
                    if let Some(kernel) = self.spread(&records, handling)? {
                        return Ok(kernel);
                    }
                    records::prepare(self, records, handling)?
                }
                spec => self.parts[part].prepare(spec)?,
            };
            self.cuts.keep_whole(inner.rows().local)?;
            self.cuts.keep_whole(inner.cols())?;
            let cut = self.cuts.of_rows(&self.parts, &inner.rows())?;
            return Ok(whole::prepare(self, part, cut, inner));
        };
        share::validate(&spec)?;
        let of = match &spec {
            MatrixSpec::Wilson(spec) => spec.rows(),
            MatrixSpec::SiteDiagonal { rows, .. } => *rows,
            _ => Rows::all(rows),
        };
        let cut = |n: usize| match of.grid {
            Some(_) => self.cuts.of_rows(&self.parts, &of),
            None => self.cuts.of_matrix(&self.parts, n, &spec),
        };
        let (row_cut, col_cut) = (cut(rows)?, cut(cols)?);
        match (&row_cut.holders()[..], &col_cut.holders()[..]) {
            ([part], [other]) if part == other => {
                Ok(whole::prepare(self, *part, row_cut.clone(), self.parts[*part].prepare(spec)?))
            }
            _ => {
                if let MatrixSpec::Wilson(spec) = &spec
                    && let Some(kernel) = faces::prepare(self, spec, &row_cut)?
                {
                    return Ok(kernel);
                }
                kernel::prepare(self, &spec, of, row_cut, col_cut)
            }
        }
    }

    fn takes_stencil(&self, stencil: &Stencil) -> bool {
        self.parts.iter().all(|part| part.takes_stencil(stencil))
    }
}
