//! Eigenvectors of dense Hermitian matrices by cuSOLVER, whose library is looked for when the first large matrix comes:
//! machines without it leave these matrices to the processor.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytemuck::Zeroable;
use cust::stream::{Stream, StreamFlags};
use cust::sys;
use libloading::Library;

use super::Cuda;
use super::card::{Buffer, Card};
use super::driver::failure;
use super::records::{MATRIX, Plan, Step};
use crate::backend::{DenseMut, DenseSolver};
use crate::error::{Error, Result};

/// Names of the library, the newest first.
const NAMES: [&str; 2] = ["libcusolver.so.12", "libcusolver.so.11"];

/// Values of the library's enumerations: vectors too, the lower half, and the types of numbers.
const VECTORS: c_int = 1;
const LOWER: c_int = 0;
const REAL: c_int = 1;
const COMPLEX: c_int = 5;

/// A handle or parameters of the library.
type Handle = *mut c_void;

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
    create = cusolverDnCreate(*mut Handle);
    set_stream = cusolverDnSetStream(Handle, sys::CUstream);
    create_params = cusolverDnCreateParams(*mut Handle);
    destroy = cusolverDnDestroy(Handle);
    destroy_params = cusolverDnDestroyParams(Handle);
    room = cusolverDnXsyevd_bufferSize(
        Handle, Handle, c_int, c_int, i64, c_int, u64, i64, c_int, u64, c_int, *mut usize, *mut usize
    );
    solve = cusolverDnXsyevd(
        Handle, Handle, c_int, c_int, i64, c_int, u64, i64, c_int, u64, c_int, u64, usize, *mut c_void, usize, u64
    );
}

/// Matrices that are solved side by side: one of a thousand rows does not fill a GPU.
const SIDE_BY_SIDE: usize = 3;

/// The library, ready for one GPU, with a stream of its own.
struct Solver {
    card: Arc<Card>,
    stream: Stream,
    functions: Functions,
    handle: Handle,
    params: Handle,
}

// SAFETY: a handle may be used from any thread, by one at a time, which the lock around it sees to.
unsafe impl Send for Solver {}

/// A GPU's solvers, once they were asked for; none where the library is missing.
#[derive(Default)]
pub(super) struct Slot(OnceLock<Vec<Mutex<Solver>>>);

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
        made.then(|| Solver { card: card.clone(), stream, functions, handle, params })
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

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0.get() {
            None => "not asked for",
            Some(found) if found.is_empty() => "none",
            Some(_) => "cuSOLVER",
        })
    }
}

impl Cuda {
    /// The solver of this GPU, which is looked for once.
    pub(super) fn found_solver(&self) -> Option<&dyn DenseSolver> {
        let open = || (0..SIDE_BY_SIDE).map_while(|_| Solver::open(&self.card).map(Mutex::new)).collect();
        let found: &Vec<_> = self.solver.0.get_or_init(open);
        (!found.is_empty()).then_some(self as &dyn DenseSolver)
    }

    /// A solver that nobody uses, or the first.
    fn free_solver(&self) -> Result<MutexGuard<'_, Solver>> {
        let all = self.solver.0.get().map_or(&[][..], |all| all);
        let free = all.iter().find_map(|solver| solver.try_lock().ok());
        let wait = || all.first().map(|solver| solver.lock().unwrap_or_else(PoisonError::into_inner));
        free.or_else(wait).ok_or_else(|| Error::internal("a solver that was not found"))
    }
}

/// Brings matrices of `n` rows to the GPU and forms the sum of `weight M M^T`.
fn sum_of_squares(card: &Arc<Card>, n: usize, terms: &[(&[f64], f64)]) -> Result<Buffer> {
    let numbers = card.allocate(8 * terms.iter().map(|(m, _)| m.len()).sum::<usize>())?;
    let (mut at, mut steps) = (0, Vec::new());
    for (m, weight) in terms.iter().filter(|(m, _)| !m.is_empty()) {
        card.overwrite_at(&numbers, at, m)?;
        let from = numbers.address + at as u64;
        at += 8 * m.len();
        steps.push(Step {
            scale: *weight,
            rows: n as u32,
            columns: n as u32,
            left: from,
            left_row: 1,
            left_column: n as u32,
            left_kind: MATRIX,
            // The rows of the transpose are the columns.
            right: from,
            right_row: n as u32,
            right_kind: MATRIX,
            depth: (m.len() / n.max(1)) as u32,
            ..Step::zeroed()
        });
    }
    let out = card.allocate(8 * n * n)?;
    let mut plan = Plan::default();
    plan.block(0, n, n, steps);
    plan.multiply(card, &numbers, &out)?;
    Ok(out)
}

impl DenseSolver for Cuda {
    fn eigh_of_squares(&self, n: usize, terms: &[(&[f64], f64)]) -> Result<Option<(Vec<f64>, Vec<f64>)>> {
        self.card.check_interrupt()?;
        let a = sum_of_squares(&self.card, n, terms)?;
        let values = solved(self, n, REAL, &a)?;
        Ok(Some((values, self.card.download(&a, n * n)?)))
    }

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
    let values = solved(gpu, n, kind, &a)?;
    card.download_to(&a, numbers)?;
    Ok(values)
}

/// Eigenvalues, ascending, of a matrix on the GPU; its eigenvectors take its place.
fn solved(gpu: &Cuda, n: usize, kind: c_int, a: &Buffer) -> Result<Vec<f64>> {
    let card = &gpu.card;
    let (values, info) = (card.allocate(8 * n)?, card.allocate(4)?);
    {
        let own = gpu.free_solver()?;
        let failed = |status: c_int| match status {
            0 => Ok(()),
            status => Err(Error::backend(format!("cuSOLVER: status {status}"))),
        };
        let (f, size, a, w) = (&own.functions, n as i64, a.address, values.address);
        let (mut there, mut here) = (0, 0);
        card.enter()?;
        // SAFETY: `a` holds n x n numbers of this kind, `w` n reals; two sizes are written.
        failed(unsafe {
            let (there, here) = (&raw mut there, &raw mut here);
            (f.room)(own.handle, own.params, VECTORS, LOWER, size, kind, a, size, REAL, w, kind, there, here)
        })?;
        let room = card.allocate(there)?;
        // The library works on a stream of its own, on memory that others have left.
        card.synchronize("a dense matrix on its way")?;
        let mut host = vec![0u64; here.div_ceil(8)];
        // SAFETY: as above; both rooms are as large as the library asked for, and nobody else has the handle. The library is
        // done with the host's room when the stream is.
        failed(unsafe {
            let (on_host, on_card, info) = (host.as_mut_ptr().cast(), room.address, info.address);
            (f.solve)(
                own.handle, own.params, VECTORS, LOWER, size, kind, a, size, REAL, w, kind, on_card, there,
                on_host, here, info,
            )
        })?;
        own.stream.synchronize().map_err(|e| failure("eigenvectors of a dense matrix", e))?;
    }
    if card.download::<i32>(&info, 1)? != [0] {
        return Err(Error::numeric("the eigenvalues of a dense matrix did not converge on the GPU"));
    }
    card.download(&values, n)
}
