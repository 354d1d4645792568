//! What leaves the program: files (CSV, JSON, NumPy), plots, progress bars. Numbers come in, bytes go out; nothing is
//! computed here, and nothing here knows Rhai.

pub mod files;
pub mod golden;
mod manifest;
pub mod plot;
pub mod progress;

use std::io::Write;

pub use manifest::Manifest;

/// Writes a line of results. A reader that has gone away (`umklapp doc | head`) ends the program quietly.
pub fn out(line: &str) {
    if let Err(e) = writeln!(std::io::stdout(), "{line}") {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("error: standard output cannot be written: {e}");
        std::process::exit(1);
    }
}

/// Whether what is written there may be coloured: a terminal that can, and nobody who asked for none (`NO_COLOR`).
pub fn colours(stream: &impl std::io::IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
