//! What leaves the program: files (CSV, JSON, NumPy), plots, progress bars. Numbers come in, bytes go out; nothing is
//! computed here, and nothing here knows Rhai.

pub mod files;
pub mod golden;
mod manifest;
pub mod plot;
pub mod progress;

pub use manifest::Manifest;
