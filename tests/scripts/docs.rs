//! Every example of every doc comment that scripts can see, native and of the stdlib, a case each.

use libtest_mimic::{Failed, Trial};
use umklapp::Engine;
use umklapp::script::registry::{Entry, entries, examples};
use umklapp::script::{Settings, reference};
use umklapp::task::Interrupt;

fn run(path: &str, number: usize, example: &str) -> Result<(), Failed> {
    let name = path.replace("::", "-");
    let folder = std::env::temp_dir().join(format!("umklapp-docs-{}-{name}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let settings = Settings { out: Some(folder.clone()), quiet: true, ..Settings::default() };
    let mut engine = Engine::with(settings, Interrupt::default()).map_err(|e| Failed::from(e.message()))?;
    engine.session().set_printer(Box::new(|_| {}));
    // An example is checked as a user would check it, then run.
    let found: Vec<String> = engine.check(example, None).iter().map(|report| report.render(false)).collect();
    let outcome = engine.eval(example).map(|_| ()).map_err(|report| report.render(false));
    std::fs::remove_dir_all(folder)?;
    match (found.is_empty(), outcome) {
        (_, Err(why)) => Err(Failed::from(why)),
        (false, Ok(())) => Err(Failed::from(found.join("\n"))),
        (true, Ok(())) => Ok(()),
    }
}

/// Operators and conversions to text explain themselves.
fn needs_no_words(name: &str) -> bool {
    let own = ["to_string", "to_debug", "print", "debug"].contains(&name) || name.contains('$');
    own || !name.starts_with(|c: char| c.is_alphabetic())
}

/// A case for each example, and what the documentation as a whole must be.
pub fn trials() -> Vec<Trial> {
    let engine = Engine::new().expect("an engine");
    let all = entries(engine.rhai(), false);
    let mut trials = Vec::new();
    for entry in &all {
        for (number, example) in examples(&entry.doc).into_iter().enumerate() {
            let path = entry.path();
            let same =
                trials.iter().filter(|t: &&Trial| t.name().starts_with(&format!("doc/{path} "))).count();
            let id = number + 100 * same;
            trials.push(Trial::test(format!("doc/{path} {id}"), move || run(&path, id, &example)));
        }
    }
    assert!(trials.len() > 100, "the examples are gone");
    let documented = |path: &str| all.iter().any(|e| e.path() == path && !e.doc.is_empty());
    let mut silent: Vec<String> = all
        .iter()
        .filter(|e| !needs_no_words(&e.name))
        .map(|e| e.path())
        .filter(|p| !documented(p))
        .collect();
    silent.sort();
    silent.dedup();
    trials.push(Trial::test("doc/every function is documented", move || {
        if silent.is_empty() { Ok(()) } else { Err(Failed::from(silent.join(", "))) }
    }));
    // Options that may all be left out need no empty map.
    let optional = |e: &&Entry| {
        let last = e.parameters.last().is_some_and(|p| matches!(p.name.as_str(), "options" | "opts"));
        let items = e.options();
        last && !items.is_empty() && items.iter().all(|o| o.default != "required")
    };
    let without = |e: &Entry| {
        let same = |o: &&Entry| o.path() == e.path() && o.of_type() == e.of_type();
        all.iter().filter(same).any(|o| o.parameters.len() + 1 == e.parameters.len())
    };
    let mut wordy: Vec<String> =
        all.iter().filter(optional).filter(|e| !without(e)).map(Entry::signature).collect();
    wordy.sort();
    trials.push(Trial::test("doc/options may be left out", move || {
        if wordy.is_empty() { Ok(()) } else { Err(Failed::from(wordy.join("\n"))) }
    }));
    let text = reference::markdown(&all);
    trials.push(Trial::test("doc/the manual is whole", move || {
        let fences = text.lines().filter(|line| line.starts_with("```")).count();
        let parts = ["## Module `kpm`", "#### `kpm::dos`", "#### `davidson`", "**Options**"];
        match parts.iter().find(|part| !text.contains(*part)) {
            Some(part) => Err(Failed::from(format!("`{part}` is missing"))),
            None if fences % 2 == 1 => Err(Failed::from("a fence is open")),
            None => Ok(()),
        }
    }));
    trials
}
