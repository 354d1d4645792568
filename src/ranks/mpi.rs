//! MPI, bound at run time: one program for Open MPI, MPICH (with Intel's, Cray's and MVAPICH's) and every library with
//! the ABI of MPI 5.0, and for machines that have none. Handles are passed as words: an `int` of MPICH travels in the
//! lower half of a register, a pointer of the others fills it.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::HostMemory;
use crate::error::{Error, Result};

type MpiHandle = usize;

/// What differs from one ABI to another, of what is used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abi {
    /// MPI 5.0, chapter 20.
    Standard,
    /// Handles are addresses of objects in the library.
    OpenMpi,
    /// Handles are integers.
    Mpich,
}

struct Constants {
    world: MpiHandle,
    byte: MpiHandle,
    status_ignore: usize,
    info_null: MpiHandle,
    errors_return: MpiHandle,
    /// `MPI_COMM_TYPE_SHARED`.
    shared: c_int,
    /// `MPI_THREAD_SERIALIZED`.
    serialized: c_int,
}

impl Constants {
    fn of(abi: Abi, library: &Library) -> Result<Constants> {
        let object = |name: &str| -> Result<MpiHandle> {
            // SAFETY: only the address of the object is taken.
            unsafe { library.get::<*mut c_void>(name.as_bytes()) }
                .map(|symbol| symbol.into_raw() as MpiHandle)
                .map_err(|e| Error::backend(format!("the MPI library is not whole: {e}")))
        };
        Ok(match abi {
            Abi::Standard => Constants {
                world: 0x101,
                byte: 0x247,
                status_ignore: 0,
                info_null: 0x130,
                errors_return: 0x143,
                shared: 221,
                serialized: 2048,
            },
            Abi::OpenMpi => Constants {
                world: object("ompi_mpi_comm_world")?,
                byte: object("ompi_mpi_byte")?,
                status_ignore: 0,
                info_null: object("ompi_mpi_info_null")?,
                errors_return: object("ompi_mpi_errors_return")?,
                shared: 0,
                serialized: 2,
            },
            Abi::Mpich => Constants {
                world: 0x4400_0000,
                byte: 0x4c00_010d,
                status_ignore: 1,
                info_null: 0x1c00_0000,
                errors_return: 0x5400_0001,
                shared: 1,
                serialized: 2,
            },
        })
    }
}

macro_rules! functions {
    ($($field:ident = $name:ident($($arg:ty),*);)*) => {
        struct Functions { $($field: unsafe extern "C" fn($($arg),*) -> c_int),* }

        impl Functions {
            fn of(library: &Library) -> Result<Functions> {
                let missing = |e: libloading::Error| Error::backend(format!("the MPI library is not whole: {e}"));
                // SAFETY: the types are those of the standard, handles and addresses as words.
                unsafe { Ok(Functions { $(
                    $field: *library
                        .get::<unsafe extern "C" fn($($arg),*) -> c_int>(stringify!($name).as_bytes())
                        .map_err(missing)?,
                )* }) }
            }
        }
    };
}

functions! {
    init = MPI_Init_thread(*mut c_int, *mut c_void, c_int, *mut c_int);
    finalize = MPI_Finalize();
    version = MPI_Get_library_version(*mut u8, *mut c_int);
    comm_rank = MPI_Comm_rank(MpiHandle, *mut c_int);
    comm_size = MPI_Comm_size(MpiHandle, *mut c_int);
    comm_dup = MPI_Comm_dup(MpiHandle, *mut MpiHandle);
    comm_free = MPI_Comm_free(*mut MpiHandle);
    comm_split_type = MPI_Comm_split_type(MpiHandle, c_int, c_int, MpiHandle, *mut MpiHandle);
    set_errhandler = MPI_Comm_set_errhandler(MpiHandle, MpiHandle);
    error_string = MPI_Error_string(c_int, *mut u8, *mut c_int);
    abort = MPI_Abort(MpiHandle, c_int);
    ibarrier = MPI_Ibarrier(MpiHandle, *mut MpiHandle);
    ibcast = MPI_Ibcast(*mut c_void, c_int, MpiHandle, c_int, MpiHandle, *mut MpiHandle);
    iallgather = MPI_Iallgather(
        *const c_void, c_int, MpiHandle, *mut c_void, c_int, MpiHandle, MpiHandle, *mut MpiHandle
    );
    isend = MPI_Isend(*const c_void, c_int, MpiHandle, c_int, c_int, MpiHandle, *mut MpiHandle);
    irecv = MPI_Irecv(*mut c_void, c_int, MpiHandle, c_int, c_int, MpiHandle, *mut MpiHandle);
    test = MPI_Test(*mut MpiHandle, *mut c_int, usize);
}

/// The library, initialised, with communicators of this program's own. Calls come from one thread at a time.
pub(super) struct Mpi {
    f: Functions,
    c: Constants,
    abi: Abi,
    file: String,
    /// Where numbers and rows travel.
    data: MpiHandle,
    /// Where ranks meet that have failed or are done.
    ends: MpiHandle,
    turn: Mutex<()>,
}

/// A message's memory, until it has come or gone. Its bytes stay at their address.
pub(super) type Bytes = Box<dyn HostMemory>;

/// A message under way, with its memory. One that is dropped before its end leaves its memory to the library for ever:
/// that happens only where work was stopped.
pub(super) struct Message {
    handle: MpiHandle,
    memory: Option<Bytes>,
    /// A second piece of memory, of operations that read one and write another.
    source: Option<Bytes>,
    done: bool,
}

impl Drop for Message {
    fn drop(&mut self) {
        if !self.done {
            std::mem::forget((self.memory.take(), self.source.take()));
        }
    }
}

impl Message {
    /// The memory, once the message has ended.
    pub(super) fn take(mut self) -> Bytes {
        debug_assert!(self.done);
        self.memory.take().unwrap_or_else(|| Box::new(Vec::new()))
    }
}

fn address(memory: &mut Bytes) -> *mut c_void {
    memory.bytes_mut().as_mut_ptr().cast()
}

/// An amount as the library counts it.
fn count(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| Error::internal(format!("a message of {bytes} bytes")))
}

fn check_room(memory: &Bytes, bytes: usize) -> Result<()> {
    if bytes > memory.bytes().len() {
        return Err(Error::internal("a message longer than its memory"));
    }
    Ok(())
}

/// Which ABI a library has.
fn abi_of(name: &str, library: &Library) -> Abi {
    // SAFETY: only asks whether there is such an object.
    let has = |symbol: &str| unsafe { library.get::<*mut c_void>(symbol.as_bytes()) }.is_ok();
    let file = std::path::Path::new(name).file_name().map(|f| f.to_string_lossy().into_owned());
    if file.is_some_and(|f| f.contains("mpi_abi")) {
        Abi::Standard
    } else if has("ompi_mpi_comm_world") {
        Abi::OpenMpi
    } else {
        Abi::Mpich
    }
}

/// Open MPI gives its turn away at every look for a message where there are more ranks than processors. On a machine
/// that others use too, each of these looks waits for all of them: a sum of four ranks took ten times as long. Ranks
/// here sleep between looks.
fn keep_turns(library: &Library) {
    type Set = unsafe extern "C" fn(bool) -> bool;
    // SAFETY: sets a flag of the library, which is initialised; where it has no such function, nothing happens.
    unsafe {
        if let Ok(set) = library.get::<Set>(b"opal_progress_set_yield_when_idle") {
            set(false);
        }
    }
}

impl Mpi {
    /// Opens the first library of these names that there is, and joins the world that a launcher has made.
    ///
    /// # Errors
    /// When none can be opened, it is of another kind than the launcher, or it refuses.
    pub(super) fn open(names: &[String], launcher: &str) -> Result<Mpi> {
        let mut why = String::new();
        let open = |name: &String| {
            // SAFETY: a library of MPI runs nothing of note when it is opened. Components that Open MPI loads by itself
            // look for its symbols among the program's: hence RTLD_GLOBAL.
            match unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) } {
                // Open until the program ends: the library has threads and exit handlers of its own.
                Ok(library) => Some((name.clone(), &*Box::leak(Box::new(library)))),
                Err(e) => {
                    why = e.to_string();
                    None
                }
            }
        };
        let Some((file, library)) = names.iter().find_map(open) else {
            let all = names.join(", ");
            return Err(Error::backend(format!("no MPI library: none of {all} can be opened ({why})")));
        };
        let abi = abi_of(&file, library);
        if launcher == "Open MPI" && abi == Abi::Mpich {
            // Its first call would end the process with its own message.
            return Err(Error::backend(format!("{file} is of the kind of MPICH: a launcher of another MPI")));
        }
        let (f, c) = (Functions::of(library)?, Constants::of(abi, library)?);
        let mut mpi = Mpi { f, c, abi, file, data: 0, ends: 0, turn: Mutex::new(()) };
        let mut provided = 0;
        // SAFETY: initialised once, before any other call; the addresses are those of living variables.
        unsafe {
            let none = std::ptr::null_mut::<c_int>();
            mpi.check((mpi.f.init)(none, none.cast(), mpi.c.serialized, &mut provided))?;
            mpi.check((mpi.f.set_errhandler)(mpi.c.world, mpi.c.errors_return))?;
            let (mut data, mut ends) = (0, 0);
            mpi.check((mpi.f.comm_dup)(mpi.c.world, &mut data))?;
            mpi.check((mpi.f.comm_dup)(mpi.c.world, &mut ends))?;
            (mpi.data, mpi.ends) = (data, ends);
        }
        if abi == Abi::OpenMpi {
            keep_turns(library);
        }
        if provided < mpi.c.serialized {
            return Err(Error::backend(format!("{} does not serve programs with threads", mpi.version())));
        }
        Ok(mpi)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let (mut text, mut length) = ([0u8; 8192], 0);
        // SAFETY: no library writes more than 8192 bytes there.
        unsafe { (self.f.error_string)(code, text.as_mut_ptr(), &mut length) };
        let text = String::from_utf8_lossy(&text[..(length as usize).min(text.len())]).into_owned();
        Err(Error::backend(format!("MPI failed: {text}")))
    }

    /// Rank and size of the world, and of the part of it that shares this node's memory.
    pub(super) fn places(&self) -> Result<((usize, usize), (usize, usize))> {
        let place = |comm: MpiHandle| -> Result<(usize, usize)> {
            let (mut rank, mut size) = (0, 0);
            // SAFETY: asks for two numbers.
            unsafe {
                self.check((self.f.comm_rank)(comm, &mut rank))?;
                self.check((self.f.comm_size)(comm, &mut size))?;
            }
            Ok((rank as usize, size as usize))
        };
        let mut node: MpiHandle = 0;
        // SAFETY: all ranks make this call, and the handle is freed once.
        unsafe {
            let split = self.f.comm_split_type;
            self.check(split(self.data, self.c.shared, 0, self.c.info_null, &mut node))?;
        }
        let local = place(node)?;
        // SAFETY: as above.
        unsafe { self.check((self.f.comm_free)(&mut node))? };
        Ok((place(self.data)?, local))
    }

    /// Name and version, as the library tells it.
    pub(super) fn version(&self) -> String {
        let (mut text, mut length) = (vec![0u8; 8192], 0);
        // SAFETY: no library writes more than 8192 bytes there.
        unsafe { (self.f.version)(text.as_mut_ptr(), &mut length) };
        let text = String::from_utf8_lossy(&text[..(length as usize).min(text.len())]).into_owned();
        let line = text.lines().next().unwrap_or_default().trim_end_matches('\0');
        let line =
            line.split(',').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}{line}", if self.abi == Abi::Mpich && !line.contains("MPI") { "MPICH " } else { "" })
    }

    /// The file of the library.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    fn started(
        &self,
        code: c_int,
        handle: MpiHandle,
        memory: Bytes,
        source: Option<Bytes>,
    ) -> Result<Message> {
        let message = Message { handle, memory: Some(memory), source, done: code != 0 };
        self.check(code).map(|()| message)
    }

    /// Sends the first bytes of `memory`.
    pub(super) fn send(&self, mut memory: Bytes, bytes: usize, to: usize, tag: i32) -> Result<Message> {
        check_room(&memory, bytes)?;
        let (mut handle, at, n) = (0, address(&mut memory), count(bytes)?);
        let _turn = self.turn();
        // SAFETY: the memory lives as long as the message.
        let code = unsafe { (self.f.isend)(at, n, self.c.byte, to as c_int, tag, self.data, &mut handle) };
        self.started(code, handle, memory, None)
    }

    /// Receives so many bytes into `memory`.
    pub(super) fn receive(&self, mut memory: Bytes, bytes: usize, from: usize, tag: i32) -> Result<Message> {
        check_room(&memory, bytes)?;
        let (mut handle, at, n) = (0, address(&mut memory), count(bytes)?);
        let _turn = self.turn();
        // SAFETY: the memory lives as long as the message, and nobody else has it.
        let code = unsafe { (self.f.irecv)(at, n, self.c.byte, from as c_int, tag, self.data, &mut handle) };
        self.started(code, handle, memory, None)
    }

    /// Gives the first bytes of `memory` on rank `root` to all.
    pub(super) fn broadcast(&self, mut memory: Bytes, bytes: usize, root: usize) -> Result<Message> {
        check_room(&memory, bytes)?;
        let (mut handle, at, n) = (0, address(&mut memory), count(bytes)?);
        let _turn = self.turn();
        // SAFETY: as for `receive`.
        let code = unsafe { (self.f.ibcast)(at, n, self.c.byte, root as c_int, self.data, &mut handle) };
        self.started(code, handle, memory, None)
    }

    /// The words of all ranks, as many on each, in the order of ranks.
    pub(super) fn gather(&self, mut own: Bytes, ranks: usize) -> Result<Message> {
        let bytes = own.bytes().len();
        let mut all: Bytes = Box::new(vec![0u64; (bytes * ranks).div_ceil(8)]);
        let (mut handle, n) = (0, count(bytes)?);
        let (from, to) = (address(&mut own), address(&mut all));
        let _turn = self.turn();
        // SAFETY: both pieces of memory live as long as the message.
        let code =
            unsafe { (self.f.iallgather)(from, n, self.c.byte, to, n, self.c.byte, self.data, &mut handle) };
        self.started(code, handle, all, Some(own))
    }

    /// A meeting of all ranks: of those at work, or of those that have come to an end.
    pub(super) fn meeting(&self, of_ends: bool) -> Result<Message> {
        let (mut handle, comm) = (0, if of_ends { self.ends } else { self.data });
        let _turn = self.turn();
        // SAFETY: no memory is involved.
        let code = unsafe { (self.f.ibarrier)(comm, &mut handle) };
        self.started(code, handle, Box::new(Vec::new()), None)
    }

    /// Whether a message has ended; lets the library work on it.
    pub(super) fn done(&self, message: &mut Message) -> Result<bool> {
        if message.done {
            return Ok(true);
        }
        let mut done = 0;
        let _turn = self.turn();
        // SAFETY: the handle is one of a message that has not ended.
        let code = unsafe { (self.f.test)(&mut message.handle, &mut done, self.c.status_ignore) };
        // A message that failed has ended as well.
        message.done = done != 0 || code != 0;
        self.check(code)?;
        Ok(message.done)
    }

    /// Leaves the world in good order; all ranks do.
    pub(super) fn finalize(&self) {
        let _turn = self.turn();
        // SAFETY: the last call of all.
        unsafe { (self.f.finalize)() };
    }

    pub(super) fn abort(&self, code: u8) {
        // Another thread may be inside a call. This does not wait for it.
        let _turn = self.turn.try_lock();
        // SAFETY: ends this process and the others.
        unsafe { (self.f.abort)(self.c.world, c_int::from(code)) };
    }
}

/// Asks the system to end this process when the one that started it ends:
/// a launcher that is killed leaves no ranks behind.
pub(super) fn end_with_the_launcher() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a property of this process.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}
