//! Scripts as test cases: those of `tests/golden`, `scripts` and `examples`, the examples of doc comments,
//! and the code of the book and the README. A name selects, also in part: `cargo test --release --test
//! scripts -- tests/golden`, `doc/`, `book/`, `scripts/kpm_dos`.

mod book;
#[allow(dead_code)]
#[path = "../common.rs"]
mod common;
mod docs;
mod golden;

use std::path::Path;

use libtest_mimic::Arguments;
use umklapp::script::Settings;

/// For a script that writes to `folder`. Tests run side by side, so each keeps to one thread: on a busy machine loops
/// that are shared out wait for each other. (`.ci/run` runs golden files with more.)
fn settings(folder: &Path) -> Settings {
    Settings { out: Some(folder.to_path_buf()), quiet: true, threads: 1, ..Settings::default() }
}

fn main() {
    let mut trials = golden::trials();
    trials.extend(docs::trials());
    trials.extend(book::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
