//! One GPU: its context, one stream, the kernels, and memory that is kept for the next block of the same size.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust::sys;
use rayon::prelude::*;

use super::driver::{self, SUCCESS, check, failure};
use super::landings::Landings;
use super::pinned::{PinnedCopies, Unfreed};
use super::pool::Pool;
use crate::backend::exchange::{free_queueing_turn, queueing_turn, queueing_turn_within};
use crate::backend::matrix::held::DeviceNumbers;
use crate::error::{Error, ErrorKind, Result};
use crate::number::memory::human;
use crate::task::Interrupt;

/// The kernels, compiled by the build where there was a compiler; empty otherwise.
static KERNELS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.fatbin"));

/// How long memory that is kept waits for its turn to go back to the driver.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes from which on new memory is touched by all threads.
const MANY: usize = 16 << 20;

/// The part of a GPU's memory, as one over this, beyond which what is kept goes back to the driver.
const KEPT: usize = 2;

/// The part of a GPU's memory, as one over this, that matrices may take which wait for the next step of a search.
const LYING: usize = 4;

/// The attribute of a GPU that says whether CUDA's MPS serves it (CU_DEVICE_ATTRIBUTE_MPS_ENABLED of CUDA's header).
const MPS_ENABLED: i32 = 133;

/// Threads that copy large blocks side by side: one alone takes several times as long as the way to the GPU.
const COPYING: usize = 4;

/// Bytes that each of them copies at least.
const SHARE: usize = 8 << 20;

/// Bytes of a block's pieces, of which there are as many as threads copy at most.
fn share(bytes: usize) -> usize {
    bytes.div_ceil(COPYING).next_multiple_of(64).max(SHARE)
}

/// Does all pieces of a block, each on a thread of its own, with the bytes before it. No pool's threads: they would
/// take up other work while they wait, which may want the same memory.
fn side_by_side<P: AsRef<[u8]> + Send>(
    pieces: impl Iterator<Item = P>,
    copy: impl Fn(usize, usize, P) -> Result<()> + Sync,
) -> Result<()> {
    let mut before = 0;
    let mut pieces = pieces.enumerate().map(|(thread, piece)| {
        let first = before;
        before += piece.as_ref().len();
        (thread, first, piece)
    });
    let Some((thread, first, piece)) = pieces.next() else { return Ok(()) };
    std::thread::scope(|scope| {
        let copy = &copy;
        let others: Vec<_> = pieces.map(|(k, at, piece)| scope.spawn(move || copy(k, at, piece))).collect();
        let own = copy(thread, first, piece);
        let all =
            others.into_iter().map(|other| other.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
        all.fold(own, |found, next| found.and(next))
    })
}

/// A GPU with everything needed to run kernels on it.
pub(super) struct Card {
    /// Names of the kernels, to tell what failed.
    pub name: String,
    /// Streaming multiprocessors.
    pub processors: u32,
    pub total: usize,
    /// A number that tells this GPU's memory from all others.
    pub place: u64,
    /// Whether all blocks of a launch can be asked to run at the same time.
    pub gathers: bool,
    /// Whether a server (CUDA's MPS) puts work of several processes on the GPU side by side.
    pub served: bool,
    /// Most bytes of shared memory that a block may ask for.
    pub shared: u32,
    interrupt: Interrupt,
    pool: Mutex<Pool>,
    /// Blocks of a kernel that run on one multiprocessor together.
    resident: Mutex<HashMap<String, u32>>,
    /// Addresses of kernels that were asked for: the driver's search by name takes as long as a launch.
    functions: Mutex<HashMap<String, usize>>,
    /// Page-locked memory that copies go through, for each of the threads that copy side by side.
    copies: [Mutex<PinnedCopies>; COPYING],
    /// Page-locked memory that waits for its turn to be freed.
    pub unfreed: Unfreed,
    /// What [`super::sides`] found.
    pub sides: OnceLock<ChipSides>,
    /// Memory that other GPUs write rows to.
    pub landings: Landings,
    /// Matrices that lie here, the oldest first.
    lying: Mutex<VecDeque<Weak<DeviceNumbers>>>,
    module: ManuallyDrop<Module>,
    stream: Stream,
    context: Context,
    device: sys::CUdevice,
}

/// Blocks that run at the same time, the threads of one, and the bytes of shared memory that it asks for.
#[derive(Clone, Copy)]
pub(super) struct LaunchShape {
    pub blocks: u32,
    pub threads: u32,
    pub shared: u32,
}

/// Bit `n` tells the side of the chip that multiprocessor `n` is on; of a GPU that has no sides, nothing.
pub(super) type ChipSides = Option<[u32; 8]>;

impl Card {
    /// Opens GPU number `ordinal`.
    ///
    /// # Errors
    /// No driver, no such GPU, a build without kernels.
    pub fn open(ordinal: u32, interrupt: Interrupt) -> Result<Arc<Card>> {
        driver::bind()?;
        let failed = |what: &str| {
            let what = what.to_string();
            move |e: CudaError| Error::backend(format!("{what}: {e}")).hint("use `--backend cpu`")
        };
        cust::init(cust::CudaFlags::empty()).map_err(failed("CUDA cannot be started"))?;
        let count = Device::num_devices().map_err(failed("the GPUs cannot be counted"))?;
        if ordinal >= count {
            return Err(Error::backend(format!(
                "there is no GPU number {ordinal}; this machine has {count}"
            ))
            .hint("GPUs are numbered from 0; use `--device` to choose one, or `--backend cpu`"));
        }
        if KERNELS.is_empty() {
            return Err(Error::backend("this build has no CUDA kernels")
                .hint("build it where `nvcc` is found: by the variable NVCC, by CUDA_HOME or on the PATH"));
        }
        let device = Device::get_device(ordinal).map_err(failed("the GPU cannot be opened"))?;
        let name = device.name().map_err(failed("the GPU has no name"))?;
        let _turn = queueing_turn();
        let context = Context::new(device).map_err(failed("the GPU cannot be used"))?;
        let module =
            Module::from_fatbin(KERNELS, &[]).map_err(failed("the kernels do not run on this GPU"))?;
        let stream = Stream::new(StreamFlags::NON_BLOCKING, None).map_err(failed("no stream"))?;
        let processors = device
            .get_attribute(DeviceAttribute::MultiprocessorCount)
            .map_err(failed("the GPU does not say how large it is"))?;
        use sys::CUdevice_attribute_enum as Attribute;
        let ask = |what| {
            let mut number = 0;
            // SAFETY: a number is written.
            check("the GPU's ways to launch", unsafe {
                sys::cuDeviceGetAttribute(&mut number, what, device.as_raw())
            })?;
            Ok::<i32, Error>(number)
        };
        let mut served = 0;
        // SAFETY: a number is written. Drivers that do not know the question have their own way to share the GPU.
        let known = unsafe { driver::cuDeviceGetAttribute(&mut served, MPS_ENABLED, device.as_raw()) };
        let gathers = ask(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)?;
        let shared = ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let mut uuid = [0u64; 2];
        // SAFETY: sixteen bytes are written.
        check("the GPU's own number", unsafe { driver::cuDeviceGetUuid_v2(&mut uuid, device.as_raw()) })?;
        let total = device.total_memory().map_err(failed("the GPU does not say how much memory it has"))?;
        Ok(Arc::new(Card {
            name,
            processors: processors.max(1) as u32,
            total,
            place: uuid[0] ^ uuid[1].rotate_left(32),
            gathers: gathers == 1,
            served: known == driver::SUCCESS && served == 1,
            shared: shared.max(0) as u32,
            interrupt,
            pool: Mutex::default(),
            resident: Mutex::default(),
            functions: Mutex::default(),
            copies: Default::default(),
            unfreed: Unfreed::default(),
            sides: OnceLock::new(),
            landings: Landings::default(),
            lying: Mutex::default(),
            module: ManuallyDrop::new(module),
            stream,
            context,
            device: device.as_raw(),
        }))
    }

    /// The stream that all work is queued on.
    pub fn stream(&self) -> sys::CUstream {
        self.stream.as_inner()
    }

    /// Stops where the user has asked for it.
    pub fn check_interrupt(&self) -> Result<()> {
        self.interrupt.check()
    }

    /// Makes the GPU the calling thread's.
    pub fn enter(&self) -> Result<()> {
        CurrentContext::set_current(&self.context).map_err(|e| failure("the GPU", e))
    }

    /// The context, as the driver's functions take it.
    pub fn context(&self) -> sys::CUcontext {
        self.context.as_raw()
    }

    /// What tells this GPU from others of the machine: where it stands on the bus.
    pub fn place(&self) -> Result<u64> {
        use sys::CUdevice_attribute_enum::{
            CU_DEVICE_ATTRIBUTE_PCI_BUS_ID as BUS, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID as DEVICE,
            CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID as DOMAIN,
        };
        let mut place = 0;
        for attribute in [DOMAIN, BUS, DEVICE] {
            let mut number = 0;
            // SAFETY: a number is written.
            let status = unsafe { sys::cuDeviceGetAttribute(&mut number, attribute, self.device) };
            check("the GPU's place", status)?;
            place = place << 16 | u64::from(number as u32 & 0xffff);
        }
        Ok(place)
    }

    /// Whether this GPU can write to memory of a context of this process; from then on it may.
    pub fn reaches(&self, context: sys::CUcontext) -> Result<bool> {
        use sys::cudaError_enum::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as ALREADY;
        if self.context() == context {
            return Ok(true);
        }
        self.enter()?;
        // SAFETY: the driver says no where the GPUs do not reach each other; contexts live as long as the process.
        let status = unsafe { sys::cuCtxEnablePeerAccess(context, 0) };
        Ok(status == SUCCESS || status == ALREADY)
    }

    /// The address of memory on the GPU that is kept until the program ends.
    pub fn allocate_for_good(&self, bytes: usize) -> Result<u64> {
        self.enter()?;
        self.fresh(bytes.max(1))
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes free for new blocks, with those kept for re-use, and bytes in use.
    pub fn memory(&self) -> (usize, usize) {
        let (mut free, mut total) = (0, 0);
        // SAFETY: two numbers are written.
        let known = self.enter().is_ok() && unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) } == SUCCESS;
        let pool = self.pool();
        (if known { free + pool.kept } else { 0 }, pool.used)
    }

    /// Memory on the GPU; what it holds is arbitrary.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> Result<CardBuffer> {
        self.enter()?;
        // Sizes are rounded so that blocks of nearly one size serve each other.
        let granule = if bytes > 1 << 20 { 1 << 21 } else { 1 << 9 };
        let size = bytes.max(1).next_multiple_of(granule);
        let mut pool = self.pool();
        let reused = pool.free.get_mut(&size).and_then(Vec::pop);
        if let Some(address) = reused {
            pool.kept -= size;
            pool.used += size;
            return Ok(CardBuffer { address, bytes, size, card: self.clone() });
        }
        drop(pool);
        loop {
            match self.fresh(size) {
                Ok(address) => return Ok(CardBuffer { address, bytes, size, card: self.clone() }),
                Err(e) if e.kind() == ErrorKind::Memory && self.send_home()? => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Learns of matrices that lie here, and sends the oldest to the host where they are more than a part of the
    /// memory.
    pub fn keep(&self, numbers: &Arc<DeviceNumbers>) -> Result<()> {
        let bytes = {
            let mut lying = self.lying();
            lying.retain(|other| other.strong_count() > 0);
            lying.push_back(Arc::downgrade(numbers));
            lying.iter().filter_map(|other| Some(other.upgrade()?.bytes())).sum::<usize>()
        };
        let mut over = bytes.saturating_sub(self.total / LYING);
        while over > 0 {
            let Some(oldest) = self.oldest() else { break };
            over = over.saturating_sub(oldest.bytes());
            oldest.bring()?;
        }
        Ok(())
    }

    fn lying(&self) -> MutexGuard<'_, VecDeque<Weak<DeviceNumbers>>> {
        self.lying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The matrices that have lain here for the longest time; from then on they are not known any more.
    fn oldest(&self) -> Option<Arc<DeviceNumbers>> {
        let mut lying = self.lying();
        std::iter::from_fn(|| lying.pop_front()).find_map(|other| other.upgrade())
    }

    /// Sends matrices to the host until memory may have become free; false if there are none.
    pub fn send_home(&self) -> Result<bool> {
        let Some(oldest) = self.oldest() else { return Ok(false) };
        oldest.bring()?;
        // What they took is among what is kept for re-use.
        self.give_back();
        Ok(true)
    }

    /// Gives what is kept back to the driver.
    fn give_back(&self) {
        // Where another thread keeps the turn for longer, it may be for the very passes that need the memory.
        let _turn = queueing_turn_within(PATIENCE);
        self.pool().release();
    }

    /// New memory from the driver.
    fn fresh(&self, size: usize) -> Result<u64> {
        let mut address = 0;
        let mut pool = self.pool();
        // SAFETY: an address is written.
        let mut status = unsafe { sys::cuMemAlloc_v2(&mut address, size) };
        if status == sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY {
            drop(pool);
            self.give_back();
            pool = self.pool();
            // SAFETY: as above.
            status = unsafe { sys::cuMemAlloc_v2(&mut address, size) };
        }
        if status == sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY {
            drop(pool);
            let (free, used) = self.memory();
            return Err(Error::memory(format!(
                "{} were asked for on the GPU, {} are free and {} in use",
                human(size as u128),
                human(free as u128),
                human(used as u128)
            ))
            .hint("use fewer vectors at a time, `precision: \"single\"`, or a smaller lattice"));
        }
        check("memory on the GPU", status)?;
        pool.used += size;
        Ok(address)
    }

    /// Queues a kernel: `grid` blocks of `threads`, with pointers to its arguments.
    ///
    /// # Safety
    /// The arguments must be those that the kernel declares, and the memory they point to must hold what it touches.
    pub unsafe fn launch(
        &self,
        kernel: &str,
        grid: (u32, u32),
        threads: u32,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_on(self.stream(), kernel, grid, threads, arguments) }
    }

    /// The same on a stream of one's own.
    ///
    /// # Safety
    /// As [`Card::launch`]. The stream lives, and waits for what the kernel reads, as others do for what it writes.
    pub unsafe fn launch_on(
        &self,
        stream: sys::CUstream,
        kernel: &str,
        grid: (u32, u32),
        threads: u32,
        arguments: &[*mut c_void],
    ) -> Result<()> {
        self.interrupt.check()?;
        self.enter()?;
        let function = self.function(kernel)?;
        // SAFETY: the caller's promise.
        let status = unsafe {
            sys::cuLaunchKernel(
                function,
                grid.0,
                grid.1,
                1,
                threads,
                1,
                1,
                0,
                stream,
                arguments.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        };
        check(kernel, status)
    }

    /// Queues a kernel whose blocks wait for each other: all run at the same time.
    /// False where the GPU cannot hold them.
    ///
    /// # Safety
    /// As [`Card::launch`].
    pub unsafe fn launch_together(
        &self,
        kernel: &str,
        LaunchShape { blocks, threads, shared }: LaunchShape,
        arguments: &[*mut c_void],
    ) -> Result<bool> {
        self.interrupt.check()?;
        self.enter()?;
        let function = self.function(kernel)?;
        let arguments = arguments.as_ptr().cast_mut();
        if shared > 0 {
            let room = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a property of a function that lives as long as the module.
            check(kernel, unsafe { sys::cuFuncSetAttribute(function, room, shared as i32) })?;
        }
        let stream = self.stream();
        // SAFETY: the caller's promise.
        let status = unsafe {
            sys::cuLaunchCooperativeKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, arguments)
        };
        if status == sys::cudaError_enum::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE {
            return Ok(false);
        }
        check(kernel, status).map(|()| true)
    }

    fn function(&self, kernel: &str) -> Result<sys::CUfunction> {
        let mut known = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&address) = known.get(kernel) {
            return Ok(address as sys::CUfunction);
        }
        let function = self.module.get_function(kernel).map_err(|e| failure(kernel, e))?.to_raw();
        known.insert(kernel.into(), function as usize);
        Ok(function)
    }

    /// How many blocks of a kernel run on the GPU together.
    pub fn resident(&self, kernel: &str, threads: u32) -> Result<u32> {
        let mut known = self.resident.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&blocks) = known.get(kernel) {
            return Ok(blocks * self.processors);
        }
        self.enter()?;
        let function = self.module.get_function(kernel).map_err(|e| failure(kernel, e))?;
        let blocks = function
            .max_active_blocks_per_multiprocessor(threads.into(), 0)
            .map_err(|e| failure(kernel, e))?
            .max(1);
        known.insert(kernel.into(), blocks);
        Ok(blocks * self.processors)
    }

    /// Waits for all that is queued.
    pub fn synchronize(&self, what: &str) -> Result<()> {
        self.enter()?;
        self.stream.synchronize().map_err(|e| failure(what, e))
    }

    fn copies(&self, thread: usize) -> MutexGuard<'_, PinnedCopies> {
        self.copies[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies host numbers to the GPU, without waiting for what is queued there.
    pub fn upload<T: bytemuck::NoUninit>(self: &Arc<Self>, data: &[T]) -> Result<CardBuffer> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let buffer = self.allocate(bytes.len())?;
        self.overwrite(&buffer, bytes)?;
        Ok(buffer)
    }

    /// Copies host numbers to the beginning of a buffer that there is.
    pub fn overwrite<T: bytemuck::NoUninit>(&self, buffer: &CardBuffer, data: &[T]) -> Result<()> {
        self.overwrite_at(buffer, 0, data)
    }

    /// The same from so many bytes behind the beginning on.
    pub fn overwrite_at<T: bytemuck::NoUninit>(
        &self,
        buffer: &CardBuffer,
        at: usize,
        data: &[T],
    ) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        if at + bytes.len() > buffer.bytes {
            return Err(Error::internal(format!(
                "{} bytes at {at} of a buffer of {}",
                bytes.len(),
                buffer.bytes
            )));
        }
        let to = buffer.address + at as u64;
        side_by_side(bytes.chunks(share(bytes.len())), |thread, first, piece| {
            self.enter()?;
            self.copies(thread).up(self.stream(), piece, to + first as u64)
        })
    }

    /// Queues a copy of numbers, of this GPU or of another one that it reaches, to memory here.
    pub fn copy_there(&self, from: u64, to: u64, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: both places hold as many bytes, says the caller, until the copy is done.
        let status = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream()) };
        check("copying between GPUs", status)
    }

    /// Copies numbers from the GPU, after all that is queued.
    pub fn download<T: bytemuck::AnyBitPattern + bytemuck::NoUninit + Send>(
        &self,
        buffer: &CardBuffer,
        count: usize,
    ) -> Result<Vec<T>> {
        // Many threads are faster than one at touching new memory for the first time.
        let mut data = match count * size_of::<T>() {
            ..=MANY => vec![T::zeroed(); count],
            _ => (0..count).into_par_iter().map(|_| T::zeroed()).collect(),
        };
        self.download_to(buffer, &mut data)?;
        Ok(data)
    }

    /// The same, to where they belong.
    pub fn download_to<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
        &self,
        buffer: &CardBuffer,
        data: &mut [T],
    ) -> Result<()> {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(data);
        if bytes.len() > buffer.bytes {
            return Err(Error::internal(format!("{} bytes from a buffer of {}", bytes.len(), buffer.bytes)));
        }
        let share = share(bytes.len());
        side_by_side(bytes.chunks_mut(share), |thread, first, piece| {
            self.enter()?;
            self.copies(thread).down(self.stream(), buffer.address + first as u64, piece)
        })
    }

    /// So many numbers that `work` makes the GPU write to the address it is given, after all that is queued.
    pub fn answer(self: &Arc<Self>, count: usize, work: impl Fn(u64) -> Result<()>) -> Result<Vec<f64>> {
        self.enter()?;
        if let Some(numbers) = self.copies(0).answer(self.stream(), count, &work)? {
            return Ok(numbers);
        }
        let buffer = self.allocate(8 * count)?;
        work(buffer.address)?;
        self.download(&buffer, count)
    }

    /// Sets all bytes of a buffer to zero.
    pub fn clear(&self, buffer: &CardBuffer) -> Result<()> {
        self.enter()?;
        // SAFETY: the buffer holds as many bytes.
        let status = unsafe { sys::cuMemsetD8Async(buffer.address, 0, buffer.bytes, self.stream.as_inner()) };
        check("clearing memory of the GPU", status)
    }

    /// Another buffer with the same bytes.
    pub fn duplicate(self: &Arc<Self>, buffer: &CardBuffer) -> Result<CardBuffer> {
        let copy = self.allocate(buffer.bytes)?;
        self.copy_there(buffer.address, copy.address, buffer.bytes)?;
        Ok(copy)
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        // Page-locked memory and events are freed on a thread that has the GPU, and the driver waits for it.
        let _ = self.enter();
        let _turn = queueing_turn();
        (self.copies, self.unfreed) = Default::default();
        // SAFETY: nobody launches a kernel any more, and the module is not touched again.
        unsafe { ManuallyDrop::drop(&mut self.module) };
    }
}

impl std::fmt::Debug for Card {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// Memory on the GPU; dropped, it is kept for the next block, as long as that is not too much. Work on it is queued on
/// one stream, so that whoever gets it next writes after the last reader.
#[derive(Debug)]
pub(in crate::backend) struct CardBuffer {
    pub address: u64,
    pub bytes: usize,
    size: usize,
    card: Arc<Card>,
}

impl CardBuffer {
    /// Memory that somebody else keeps, as long as this lives.
    pub fn lent(card: &Arc<Card>, address: u64, bytes: usize) -> CardBuffer {
        CardBuffer { address, bytes, size: 0, card: card.clone() }
    }

    /// The card whose memory it is.
    pub fn card(&self) -> &Arc<Card> {
        &self.card
    }

    /// Whether it is memory of this card.
    pub fn is_on(&self, card: &Arc<Card>) -> bool {
        Arc::ptr_eq(&self.card, card)
    }
}

impl Drop for CardBuffer {
    fn drop(&mut self) {
        if self.size == 0 {
            return;
        }
        let mut pool = self.card.pool();
        pool.used -= self.size;
        pool.kept += self.size;
        pool.free.entry(self.size).or_default().push(self.address);
        // Others on this GPU cannot get what is kept here. The next drop may have the turn that this one does not get.
        if pool.kept > self.card.total / KEPT
            && let Some(_turn) = free_queueing_turn()
            && self.card.enter().is_ok()
        {
            pool.release();
        }
    }
}
