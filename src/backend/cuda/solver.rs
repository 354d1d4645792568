//! Eigenvectors of dense Hermitian matrices by cuSOLVER, whose library is looked for when the first large matrix comes:
//! machines without it leave these matrices to the processor.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::Zeroable;
use cust::stream::{Stream, StreamFlags};
use cust::sys;
use libloading::Library;

use super::card::Card;
use super::driver::{check, failure};
use super::places;
use super::records::{MATRIX, Step, TilePlan};
use super::{Cuda, buffer, reals};
use crate::backend::exchange::queueing_turn;
use crate::backend::matrix::held::{Composed, DeviceNumbers, MatrixKeeper, Square};
use crate::backend::{BlockVector, DenseMut, DenseSolver};
use crate::error::{Error, Result};

/// Names of the library, the newest first.
const NAMES: [&str; 2] = ["libcusolver.so.12", "libcusolver.so.11"];

/// Values of the library's enumerations: vectors too, the lower half, and the types of numbers.
const VECTORS: c_int = 1;
const LOWER: c_int = 0;
const REAL: c_int = 1;
const COMPLEX: c_int = 5;

/// A handle or parameters of the library.
type LibraryHandle = *mut c_void;

macro_rules! functions {
    ($($field:ident = $name:ident($($arg:ty),*);)*) => {
        /// The functions of the library that are used here; each returns zero if it succeeds.
        struct Functions { $($field: unsafe extern "C" fn($($arg),*) -> c_int),* }

        impl Functions {
            fn of(library: &Library) -> Option<Functions> {
                // SAFETY: the types are those of cuSOLVER's header, enumerations as `int`.
                unsafe { Some(Functions { $(
                    $field: *library
                        .get::<unsafe extern "C" fn($($arg),*) -> c_int>(stringify!($name).as_bytes())
                        .ok()?,
                )* }) }
            }
        }
    };
}

functions! {
    create = cusolverDnCreate(*mut LibraryHandle);
    set_stream = cusolverDnSetStream(LibraryHandle, sys::CUstream);
    create_params = cusolverDnCreateParams(*mut LibraryHandle);
    destroy = cusolverDnDestroy(LibraryHandle);
    destroy_params = cusolverDnDestroyParams(LibraryHandle);
    room = cusolverDnXsyevd_bufferSize(
        LibraryHandle, LibraryHandle, c_int, c_int, i64, c_int, u64, i64, c_int, u64, c_int, *mut usize, *mut usize
    );
    solve = cusolverDnXsyevd(
        LibraryHandle, LibraryHandle, c_int, c_int, i64, c_int, u64, i64, c_int, u64, c_int, u64, usize, *mut c_void,
        usize, u64
    );
}

/// Rows of the matrix that a solver is tried with.
const WARM: usize = 512;

/// Matrices that are solved side by side: one of a thousand rows does not fill a GPU.
const SIDE_BY_SIDE: usize = 3;

/// The library, ready for one GPU, with a stream of its own.
struct Solver {
    card: Arc<Card>,
    stream: Stream,
    functions: Functions,
    handle: LibraryHandle,
    params: LibraryHandle,
    /// What the trial has used. Freeing it would wait for all work on the GPU,
    /// which may wait for others' work in its turn.
    trial: Vec<FreshMemory>,
}

// SAFETY: a handle may be used from any thread, by one at a time, which the lock around it sees to.
unsafe impl Send for Solver {}

/// What the library says by a status.
fn done(status: c_int) -> Result<()> {
    match status {
        0 => Ok(()),
        status => Err(Error::backend(format!("cuSOLVER: status {status}"))),
    }
}

/// Solvers that work side by side, each once it was asked for; none where the library is missing.
type Solvers = [OnceLock<Option<Mutex<Solver>>>; SIDE_BY_SIDE];

#[derive(Default)]
pub(super) struct SolverSlot {
    solvers: Arc<Solvers>,
    /// Whether somebody has begun to look for them.
    expected: AtomicBool,
}

impl Drop for SolverSlot {
    fn drop(&mut self) {
        settle();
    }
}

/// How many threads look for a library.
static SEARCHES: Mutex<usize> = Mutex::new(0);
static FOUND: Condvar = Condvar::new();

/// Waits until no library is being loaded beside other work: the end of a process takes away what that works with.
pub(super) fn settle() {
    let mut looking = SEARCHES.lock().unwrap_or_else(PoisonError::into_inner);
    while *looking > 0 {
        looking = FOUND.wait(looking).unwrap_or_else(PoisonError::into_inner);
    }
}

/// A thread that looks for a library, as long as this lives.
struct LibrarySearch;

impl LibrarySearch {
    fn new() -> LibrarySearch {
        *SEARCHES.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        LibrarySearch
    }
}

impl Drop for LibrarySearch {
    fn drop(&mut self) {
        *SEARCHES.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FOUND.notify_all();
    }
}

/// Memory for a trial, which nobody else has used.
struct FreshMemory(u64);

impl FreshMemory {
    fn new(bytes: usize) -> Result<FreshMemory> {
        let mut address = 0;
        // SAFETY: an address is written.
        check("memory on the GPU", unsafe { sys::cuMemAlloc_v2(&mut address, bytes.max(1)) })?;
        Ok(FreshMemory(address))
    }
}

impl Drop for FreshMemory {
    fn drop(&mut self) {
        // SAFETY: nobody else has it. A failure leaves it with the driver.
        let _ = unsafe { sys::cuMemFree_v2(self.0) };
    }
}

impl Solver {
    fn open(card: &Arc<Card>) -> Option<Solver> {
        card.enter().ok()?;
        // SAFETY: the library is made to be loaded; it stays loaded until the program ends.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
        let library: &'static Library = Box::leak(Box::new(library));
        let functions = Functions::of(library)?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).ok()?;
        let (mut handle, mut params) = (null_mut(), null_mut());
        // SAFETY: two handles are written; the GPU is this thread's, and the stream lives as long as the handle.
        let made = unsafe {
            (functions.create)(&mut handle) == 0
                && (functions.set_stream)(handle, stream.as_inner()) == 0
                && (functions.create_params)(&mut params) == 0
        };
        made.then(|| Solver { card: card.clone(), stream, functions, handle, params, trial: Vec::new() })
    }

    /// Solves a small problem, all zeros, on its own stream and in memory of its own.
    fn try_it(&mut self) -> Result<()> {
        self.card.enter()?;
        let n = WARM;
        let (a, values, info) = (self.for_trial(8 * n * n)?, self.for_trial(8 * n)?, self.for_trial(4)?);
        // SAFETY: the memory holds as many bytes.
        check("a trial", unsafe { sys::cuMemsetD8Async(a, 0, 8 * n * n, self.stream.as_inner()) })?;
        let (most, here) = self.room(n, REAL, (a, values))?;
        let there = self.for_trial(most)?;
        self.run(n, REAL, (a, values, info), (there, most), &mut vec![0u64; here.div_ceil(8)])
    }

    /// The address of memory for the trial.
    fn for_trial(&mut self, bytes: usize) -> Result<u64> {
        let memory = FreshMemory::new(bytes)?;
        let address = memory.0;
        self.trial.push(memory);
        Ok(address)
    }

    /// Bytes that it needs for a matrix on the GPU and on the host.
    fn room(&self, n: usize, kind: c_int, (a, w): (u64, u64)) -> Result<(usize, usize)> {
        let (f, size) = (&self.functions, n as i64);
        let (mut there, mut here) = (0, 0);
        // SAFETY: `a` holds n x n numbers of this kind, `w` n reals, say the callers; two sizes are written.
        done(unsafe {
            let (there, here) = (&raw mut there, &raw mut here);
            (f.room)(
                self.handle,
                self.params,
                VECTORS,
                LOWER,
                size,
                kind,
                a,
                size,
                REAL,
                w,
                kind,
                there,
                here,
            )
        })?;
        Ok((there, here))
    }

    /// Solves, and waits: `a` becomes the eigenvectors, `w` the eigenvalues, `info` zero where it converges.
    fn run(
        &self,
        n: usize,
        kind: c_int,
        (a, w, info): (u64, u64, u64),
        (there, most): (u64, usize),
        here: &mut [u64],
    ) -> Result<()> {
        let (f, size) = (&self.functions, n as i64);
        let (on_host, host) = (here.as_mut_ptr().cast(), 8 * here.len());
        // SAFETY: as for `room`; both rooms are as large as the library asks for, and nobody else has the handle. The
        // library is done with the host's room when the stream is.
        done(unsafe {
            (f.solve)(
                self.handle,
                self.params,
                VECTORS,
                LOWER,
                size,
                kind,
                a,
                size,
                REAL,
                w,
                kind,
                there,
                most,
                on_host,
                host,
                info,
            )
        })?;
        self.stream.synchronize().map_err(|e| failure("eigenvectors of a dense matrix", e))
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        if self.card.enter().is_ok() {
            // SAFETY: both were made by `open`, and nobody else has them. What fails stays with the library.
            let _ = unsafe {
                ((self.functions.destroy_params)(self.params), (self.functions.destroy)(self.handle))
            };
        }
    }
}

impl std::fmt::Debug for SolverSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.solvers[0].get() {
            None => "not asked for",
            Some(None) => "none",
            Some(Some(_)) => "cuSOLVER",
        })
    }
}

impl Cuda {
    /// A solver of this GPU, which is looked for once.
    fn solver(&self, number: usize) -> Option<&Mutex<Solver>> {
        let open = || Solver::open(&self.card).map(Mutex::new);
        self.solver.solvers.get(number)?.get_or_init(open).as_ref()
    }

    /// The solver of this GPU, if there is one.
    pub(super) fn found_solver(&self) -> Option<&dyn DenseSolver> {
        self.solver(0).map(|_| self as &dyn DenseSolver)
    }

    /// Begins to look for the solvers, which takes half a second, while other work goes on.
    /// That touches no stream of others, but waits for them where code is loaded.
    pub(super) fn expect_solver(&self) {
        if self.solver.expected.swap(true, Ordering::Relaxed) {
            return;
        }
        let (looking, card, solvers) = (LibrarySearch::new(), self.card.clone(), self.solver.solvers.clone());
        let look = move || {
            // What is named first is dropped last.
            let _looking = looking;
            let (card, solvers) = (card, solvers);
            for (k, solver) in solvers.iter().enumerate() {
                let _turn = queueing_turn();
                let found = solver.get_or_init(|| Solver::open(&card).map(Mutex::new));
                if let (0, Some(solver)) = (k, found) {
                    // The first problem takes as long as the library: its kernels come with it.
                    // One that fails says so when it is needed.
                    let _ = solver.lock().unwrap_or_else(PoisonError::into_inner).try_it();
                }
            }
        };
        // Without a thread, who needs them looks for them.
        let _ = std::thread::Builder::new().spawn(look);
    }

    /// A solver that nobody uses, or the first.
    fn free_solver(&self) -> Result<MutexGuard<'_, Solver>> {
        // Those that are still being opened are not waited for.
        let known = self.solver.solvers.iter().filter_map(|solver| solver.get()?.as_ref());
        let free = known.into_iter().find_map(|solver| solver.try_lock().ok());
        let wait = || self.solver(0).map(|solver| solver.lock().unwrap_or_else(PoisonError::into_inner));
        free.or_else(wait).ok_or_else(|| Error::internal("a solver that was not found"))
    }
}

impl MatrixKeeper for Cuda {
    fn keep(&self, numbers: &Arc<DeviceNumbers>) -> Result<()> {
        self.card.keep(numbers)
    }

    fn composed(&self, all: &[Composed<'_>]) -> Result<BlockVector> {
        self.card.check_interrupt()?;
        places::composed(&self.card, all)
    }

    fn squares(&self, all: &[(usize, Vec<Square<'_>>)]) -> Result<BlockVector> {
        self.card.check_interrupt()?;
        let (mut plan, mut at) = (TilePlan::default(), 0);
        for (n, terms) in all {
            let across = *n as u32;
            let step = |term: &Square<'_>| -> Result<Step> {
                let from = buffer(term.from)?.address + 8 * term.first as u64;
                Ok(Step {
                    scale: term.weight,
                    rows: across,
                    columns: across,
                    // The columns of M are the rows of the transpose.
                    left: from,
                    left_row: 1,
                    left_column: across,
                    left_kind: MATRIX,
                    right: from,
                    right_row: across,
                    right_kind: MATRIX,
                    depth: term.rows as u32,
                    ..Step::zeroed()
                })
            };
            let steps = terms.iter().filter(|term| term.rows > 0).map(step);
            plan.block(at, *n, *n, steps.collect::<Result<_>>()?);
            at += n * n;
        }
        let out = self.card.allocate(8 * at)?;
        plan.multiply(&self.card, &out, &out)?;
        Ok(reals(out, at))
    }

    fn replace(&self, block: &BlockVector, first: usize, numbers: &[f64]) -> Result<()> {
        self.card.overwrite_at(buffer(block)?, 8 * first, numbers)
    }

    fn eigh(&self, rows: usize, block: &BlockVector, first: usize) -> Result<Option<Vec<f64>>> {
        self.card.check_interrupt()?;
        if self.found_solver().is_none() {
            return Ok(None);
        }
        // Others are opened when the first problems come, unless somebody does so already.
        self.expect_solver();
        let own = buffer(block)?;
        if 8 * (first + rows * rows) > own.bytes {
            return Err(Error::internal(format!("a matrix of {rows} rows at {first} of too few numbers")));
        }
        solved(self, rows, REAL, own.address + 8 * first as u64).map(Some)
    }

    fn eigh_for_other(&self, rows: usize, block: &BlockVector, first: usize) -> Result<Option<Vec<f64>>> {
        self.card.check_interrupt()?;
        let Ok(there) = buffer(block) else { return Ok(None) };
        let other = there.card();
        if !self.card.reaches(other.context())? {
            return Ok(None);
        }
        // To wait for the library takes longer than the other card.
        self.expect_solver();
        if !self.solver.solvers[0].get().is_some_and(Option::is_some) {
            return Ok(None);
        }
        if 8 * (first + rows * rows) > there.bytes {
            return Err(Error::internal(format!("a matrix of {rows} rows at {first} of too few numbers")));
        }
        let (from, bytes) = (there.address + 8 * first as u64, 8 * rows * rows);
        let own = self.card.allocate(bytes)?;
        // What the other card was asked for is there.
        other.synchronize("a dense matrix for another GPU")?;
        self.card.copy_there(from, own.address, bytes)?;
        let values = solved(self, rows, REAL, own.address)?;
        self.card.copy_there(own.address, from, bytes)?;
        self.card.synchronize("eigenvectors for another GPU")?;
        Ok(Some(values))
    }
}

impl DenseSolver for Cuda {
    fn eigh(&self, n: usize, numbers: DenseMut<'_>) -> Result<Vec<f64>> {
        match numbers {
            DenseMut::Real(a) => eigh(self, n, REAL, a),
            DenseMut::Complex(a) => eigh(self, n, COMPLEX, a),
        }
    }
}

fn eigh<T: bytemuck::Pod>(gpu: &Cuda, n: usize, kind: c_int, numbers: &mut [T]) -> Result<Vec<f64>> {
    let card = &gpu.card;
    if numbers.len() != n * n {
        return Err(Error::internal(format!("{} numbers of a matrix of {n} rows", numbers.len())));
    }
    card.check_interrupt()?;
    let a = card.upload(numbers)?;
    let values = solved(gpu, n, kind, a.address)?;
    card.download_to(&a, numbers)?;
    Ok(values)
}

/// Eigenvalues, ascending, of a matrix on the GPU, which begins at an address; its eigenvectors take its place.
fn solved(gpu: &Cuda, n: usize, kind: c_int, a: u64) -> Result<Vec<f64>> {
    let card = &gpu.card;
    let (values, info) = (card.allocate(8 * n)?, card.allocate(4)?);
    {
        let own = gpu.free_solver()?;
        card.enter()?;
        let (there, here) = own.room(n, kind, (a, values.address))?;
        let room = card.allocate(there)?;
        // The library works on a stream of its own, on memory that others have left.
        card.synchronize("a dense matrix on its way")?;
        let mut host = vec![0u64; here.div_ceil(8)];
        own.run(n, kind, (a, values.address, info.address), (room.address, there), &mut host)?;
    }
    if card.download::<i32>(&info, 1)? != [0] {
        return Err(Error::numeric("the eigenvalues of a dense matrix did not converge on the GPU"));
    }
    card.download(&values, n)
}
