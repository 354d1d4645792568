//! Signals: Ctrl-C asks work to stop; SIGTERM and SIGHUP ask the program to end. A thread waits for them, so that
//! their handler may do anything.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A request from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    /// Stop what you are doing.
    Stop,
    End,
}

type Handler = Box<dyn FnMut(SignalRequest) + Send>;

static HANDLER: Mutex<Option<Handler>> = Mutex::new(None);
static CODE: AtomicU8 = AtomicU8::new(130);

/// The exit code of a program that a request ended: 128 and the number of the last signal, 124 where its time is over;
/// that of SIGINT where none came.
pub fn code() -> u8 {
    CODE.load(Ordering::SeqCst)
}

/// Sets the handler of requests. Without one the program ends at the first request.
pub fn on(handler: impl FnMut(SignalRequest) + Send + 'static) {
    *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(handler));
}

/// The exit code of a run whose time is over.
const TIME_IS_OVER: u8 = 124;

/// Asks the program to end after a time; `tell` says so.
///
/// # Errors
/// When no thread can be started.
pub fn after(time: Duration, tell: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let wait = move || {
        std::thread::sleep(time);
        tell();
        ask(TIME_IS_OVER, SignalRequest::End);
    };
    std::thread::Builder::new().name("time".into()).spawn(wait).map(|_| ())
}

fn hear(signal: u8, request: SignalRequest) {
    ask(128 + signal, request);
}

fn ask(code: u8, request: SignalRequest) {
    CODE.store(code, Ordering::SeqCst);
    match &mut *HANDLER.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(handler) => handler(request),
        None => end_now(),
    }
}

/// Ends the program at once, with [`code`], whatever its other threads do.
pub fn end_now() -> ! {
    #[cfg(unix)]
    // SAFETY: ends the process; what it wrote is with the system already.
    unsafe {
        libc::_exit(i32::from(code()))
    }
    #[cfg(not(unix))]
    std::process::exit(i32::from(code()))
}

/// Begins to listen; called by the program before it starts any thread, since threads inherit which signals they leave
/// to the listener.
///
/// # Errors
/// When the system refuses.
#[cfg(unix)]
pub fn listen() -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, Signal};
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    // `nohup` has it ignored, which is kept.
    if !ignored(libc::SIGHUP) {
        set.add(Signal::SIGHUP);
    }
    set.thread_block()?;
    // A file that grows beyond `ulimit -f` is then an error of the write, and not the end of the program.
    let mut silent = SigSet::empty();
    silent.add(Signal::SIGXFSZ);
    silent.thread_block()?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        while let Ok(signal) = set.wait() {
            let request = if signal == Signal::SIGINT { SignalRequest::Stop } else { SignalRequest::End };
            hear(signal as u8, request);
        }
    })?;
    Ok(())
}

#[cfg(unix)]
fn ignored(signal: i32) -> bool {
    // SAFETY: reads what is done about the signal into a structure of ours, for which zeros are valid.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// As on Unix, for Ctrl-C.
///
/// # Errors
/// When the system refuses.
#[cfg(not(unix))]
pub fn listen() -> std::io::Result<()> {
    ctrlc::set_handler(|| hear(2, SignalRequest::Stop)).map_err(std::io::Error::other)
}
