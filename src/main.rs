//! The program: parse the command line, do it, exit with its code.

use std::process::ExitCode;

use umklapp::number::memory::{WatchedAllocator, unwind_if_refused};

#[global_allocator]
static ALLOCATOR: WatchedAllocator = WatchedAllocator;

/// Where the standard library goes when memory was refused: to whoever catches it, as a panic. All else ends as with
/// the system's function of this name.
#[cfg(unix)]
#[unsafe(no_mangle)]
extern "C-unwind" fn abort() -> ! {
    unwind_if_refused();
    // SAFETY: the process ends with the signal that tells of an abort.
    unsafe {
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
        libc::raise(libc::SIGABRT);
        libc::_exit(134)
    }
}

fn main() -> ExitCode {
    // The standard library's report of refused memory would print where it happened. That takes memory and a lock,
    // which an unwinding from there leaves locked.
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("RUST_BACKTRACE", "0") };
    umklapp::cli::main()
}
