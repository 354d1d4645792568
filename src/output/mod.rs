//! What leaves the program: files (CSV, JSON, NumPy), plots, progress bars. Numbers come in, bytes go out; nothing is
//! computed here, and nothing here knows Rhai.

pub mod files;
pub mod golden;
mod manifest;
pub mod plot;
pub mod progress;

pub use manifest::Manifest;

/// Whether what is written there may be coloured: a terminal that can, and nobody who asked for none (`NO_COLOR`).
pub fn colours(stream: &impl std::io::IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
