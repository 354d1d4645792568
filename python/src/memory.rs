//! Refused memory is an exception and no end of the interpreter: the program's allocator counts what this library
//! takes, and where the standard library would end the process, the call unwinds to the thread of its session.

use umklapp::number::memory::{WatchedAllocator, unwind_if_refused};

#[global_allocator]
static ALLOCATOR: WatchedAllocator = WatchedAllocator;

unsafe extern "C" {
    #[cfg(target_os = "linux")]
    fn __real_abort() -> !;
}

/// Where this library calls `abort` (`build.rs`): what was refused goes to whoever catches it, as a panic. All else
/// ends as with the system's function.
#[cfg(target_os = "linux")]
#[unsafe(no_mangle)]
extern "C-unwind" fn __wrap_abort() -> ! {
    unwind_if_refused();
    // SAFETY: the system's `abort` takes nothing and ends the process.
    unsafe { __real_abort() }
}
