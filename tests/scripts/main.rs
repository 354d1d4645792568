//! Scripts as test cases: those of `tests/golden`, `scripts` and `examples`, the examples of doc comments,
//! and the code of the book and the README. A name selects, also in part: `cargo test --release --test
//! scripts -- tests/golden`, `doc/`, `book/`, `scripts/kpm_dos`.

mod book;
#[allow(dead_code)]
#[path = "../common.rs"]
mod common;
mod docs;
mod golden;

use libtest_mimic::Arguments;

fn main() {
    let mut trials = golden::trials();
    trials.extend(docs::trials());
    trials.extend(book::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
