//! The scripts of `tests/golden`, `scripts` and `examples`, a case each: what they print is what the `.out`
//! beside them says. `umklapp test --bless tests/golden scripts examples` writes those files; each change of
//! one is read before it is kept.

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use umklapp::script::golden::{self, Verdict};
use umklapp::task::Interrupt;

use crate::common::Folder;
use crate::settings;

fn scripts(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|e| e == "rhai"));
    found.sort();
    found
}

fn case(script: PathBuf, folder: &str) -> Trial {
    let stem = script.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    Trial::test(format!("{folder}/{stem}"), move || {
        let scratch = Folder::new(&stem);
        match golden::test(&script, settings(&scratch), Interrupt::default(), false) {
            Verdict::Passed(_) | Verdict::Blessed => Ok(()),
            Verdict::Failed(why) => Err(Failed::from(why)),
        }
    })
}

/// A case for each script.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for folder in ["tests/golden", "scripts", "examples"] {
        trials.extend(scripts(folder).into_iter().map(|script| case(script, folder)));
    }
    // An empty list would pass without having tested anything.
    assert!(!trials.is_empty(), "there are no golden scripts");
    trials
}
