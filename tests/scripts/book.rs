//! The code of the book and of the README, a case for each chapter. The blocks of a chapter run one after
//! another, as a reader would type them: variables stay, functions belong to their block. A block of `text`
//! below is what was printed since the last one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use libtest_mimic::{Failed, Trial};
use umklapp::Engine;
use umklapp::output::golden::{Tolerance, difference};
use umklapp::script::reference;
use umklapp::script::registry::entries;
use umklapp::task::Interrupt;

use crate::common::Folder;
use crate::settings;

/// Searches settle to some 1e-8, and other processors round differently.
const TOLERANCE: Tolerance = Tolerance { relative: 1e-6, absolute: 1e-9 };

/// A fenced block: its language, its first line in the file, its lines.
struct Block<'a> {
    language: &'a str,
    line: usize,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (k, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                found.push(Block { language, line: k + 2, lines: Vec::new() });
                open = true;
            }
            None if open => found.last_mut().expect("it is open").lines.push(line),
            None => {}
        }
    }
    found
}

impl Block<'_> {
    /// What of it runs; of a session, what is typed, but for questions of help.
    fn script(&self) -> Option<String> {
        match self.language {
            "rhai" => Some(self.lines.join("\n")),
            "session" => {
                let typed = self.lines.iter().filter_map(|line| line.strip_prefix("> "));
                Some(typed.filter(|line| !line.starts_with('?')).map(|line| format!("{line};\n")).collect())
            }
            _ => None,
        }
    }
}

fn run(chapter: &Path, scratch: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(chapter)?;
    let mut engine =
        Engine::with(settings(scratch), Interrupt::default()).map_err(|e| Failed::from(e.message()))?;
    let printed = Rc::new(RefCell::new(String::new()));
    let into = printed.clone();
    engine.session().set_printer(Box::new(move |line| {
        into.borrow_mut().push_str(line);
        into.borrow_mut().push('\n');
    }));
    for block in blocks(&text) {
        let at = format!("{}, line {}", chapter.display(), block.line);
        if let Some(script) = block.script() {
            let findings = engine.check(&script, None);
            if let Some(finding) = findings.first() {
                return Err(Failed::from(format!("{at}:\n{}", finding.render(false))));
            }
            let outcome = engine.eval(&script);
            outcome.map_err(|report| format!("{at}:\n{}", report.render(false))).map(drop)?;
        } else if block.language == "text" {
            let expected: String = block.lines.iter().map(|line| format!("{line}\n")).collect();
            let found = std::mem::take(&mut *printed.borrow_mut());
            if let Some(shown) = difference(&expected, &found, TOLERANCE) {
                return Err(Failed::from(format!("{at}: what is printed differs\n{shown}")));
            }
        }
    }
    Ok(())
}

/// The contents name every chapter and every page of the reference, and links between chapters lead
/// somewhere.
fn contents(folder: &Path) -> Result<(), Failed> {
    let engine = Engine::new().map_err(|e| Failed::from(e.message()))?;
    let mut pages: BTreeSet<String> = reference::pages(&entries(engine.rhai(), false))
        .into_iter()
        .map(|page| format!("reference/{}", page.file))
        .collect();
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            texts.push((name.clone(), std::fs::read_to_string(&path)?));
            pages.insert(name);
        }
    }
    let mut named = BTreeSet::from(["SUMMARY.md".to_string()]);
    for (name, text) in &texts {
        for (at, _) in text.match_indices("](") {
            let to = text[at + 2..].split([')', '#']).next().unwrap_or_default();
            if to.is_empty() || to.starts_with("http") {
                continue;
            }
            if !pages.contains(to) {
                return Err(Failed::from(format!("{name}: there is no `{to}`")));
            }
            if name == "SUMMARY.md" {
                named.insert(to.to_string());
            }
        }
    }
    let missing: Vec<String> = pages.difference(&named).cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failed::from(format!("SUMMARY.md does not name {}", missing.join(", "))))
}

/// A case for each chapter that has code.
pub fn trials() -> Vec<Trial> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut chapters: Vec<PathBuf> = std::fs::read_dir(root.join("book/src"))
        .expect("the book")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    chapters.sort();
    chapters.push(root.join("README.md"));
    let has_code = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a chapter");
        blocks(&text).iter().any(|block| block.script().is_some())
    };
    chapters.retain(has_code);
    assert!(chapters.len() > 5, "the code of the book is gone");
    let case = |path: PathBuf| {
        let stem = path.file_stem().expect("a chapter").to_string_lossy().into_owned();
        Trial::test(format!("book/{stem}"), move || {
            let scratch = Folder::new(&stem);
            run(&path, &scratch)
        })
    };
    let folder = root.join("book/src");
    let mut trials: Vec<Trial> = chapters.into_iter().map(case).collect();
    trials.push(Trial::test("book/contents", move || contents(&folder)));
    trials
}
