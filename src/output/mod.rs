//! What leaves the program: files (CSV, JSON, NumPy), plots, progress bars. Numbers come in, bytes go out; nothing is
//! computed here, and nothing here knows Rhai.

pub mod files;
pub mod folders;
pub mod golden;
mod manifest;
pub mod plot;
pub mod progress;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

pub use manifest::Manifest;

static LOST: AtomicBool = AtomicBool::new(false);

/// Writes a line of results. If the reader has gone away (`umklapp run x | head`), the script goes on, since it
/// may have files to write. Any other error is reported once and remembered.
pub fn out(line: &str) {
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

/// Writes a line for people to standard error. Errors of writing are ignored, since there is nowhere to report them.
pub fn tell(line: &str) {
    // One write, so that lines of several threads do not mix.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Whether colours may be used: the stream is a terminal that has them, and `NO_COLOR` is not set.
pub fn colours(stream: &impl std::io::IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
