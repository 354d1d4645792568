//! What leaves the program: files (CSV, JSON, NumPy), plots, progress bars. Numbers come in, bytes go out; nothing is
//! computed here, and nothing here knows Rhai.

pub mod files;
pub mod folders;
pub mod golden;
mod manifest;
mod page;
pub mod plot;
pub mod progress;

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use manifest::Manifest;

use crate::ranks;

static LOST: AtomicBool = AtomicBool::new(false);

/// Writes a line of results. If the reader has gone away (`umklapp run x | head`), the script goes on, since it
/// may have files to write. Any other error is reported once and remembered.
///
/// One of several ranks speaks.
pub fn out(line: &str) {
    if !ranks::first() {
        return;
    }
    if let Err(e) = writeln!(std::io::stdout(), "{line}")
        && e.kind() != std::io::ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        tell(&format!("error: standard output cannot be written: {e}"));
    }
}

/// Whether results were lost on their way to standard output.
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Writes a line for people to standard error. Errors of writing are ignored, since there is nowhere to report them. Of
/// several ranks one speaks.
pub fn tell(line: &str) {
    if ranks::first() {
        tell_alone(line);
    }
}

static LISTENER: OnceLock<Box<dyn Fn(&str) + Send + Sync>> = OnceLock::new();

/// Gives the lines for people to a listener in place of standard error, from now on; the first one stays.
pub fn tell_to(listener: impl Fn(&str) + Send + Sync + 'static) {
    LISTENER.get_or_init(|| Box::new(listener));
}

/// As [`tell`], of whichever rank it is: what has happened to this one alone.
fn tell_alone(line: &str) {
    if let Some(listener) = LISTENER.get() {
        return listener(line);
    }
    // One write, so that lines of several threads do not mix.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Ends all ranks, because this one has failed and others have not.
pub fn end_alone(why: &str) -> ! {
    files::atomic::give_up();
    match ranks::world() {
        Some(world) => {
            tell_alone(&format!("error on rank {} of {}: {why}", world.rank(), world.size()));
            world.abort(1)
        }
        None => {
            tell_alone(&format!("error: {why}"));
            std::process::exit(1)
        }
    }
}

/// Whether colours may be used: the stream is a terminal that has them, and `NO_COLOR` is not set.
pub fn colours(stream: &impl std::io::IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
