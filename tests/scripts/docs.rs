//! Every example of every doc comment that scripts can see, native and of the stdlib, a case each.

use libtest_mimic::{Failed, Trial};
use rhai::Map;
use umklapp::Engine;
use umklapp::number::Table;
use umklapp::script::reference;
use umklapp::script::registry::{RegisteredFunction, entries, examples};
use umklapp::task::Interrupt;

use crate::common::Folder;
use crate::settings;

fn run(entry: &RegisteredFunction, example: &str) -> Result<(), Failed> {
    let path = entry.path();
    let name = path.replace("::", "-");
    let folder = Folder::new(&format!("docs-{name}"));
    let mut engine =
        Engine::with(settings(&folder), Interrupt::default()).map_err(|e| Failed::from(e.message()))?;
    engine.session().set_printer(Box::new(|_| {}));
    // An example is checked as a user would check it, then run.
    let found: Vec<String> = engine.check(example, None).iter().map(|report| report.render(false)).collect();
    let outcome = engine
        .eval(example)
        .map_err(|report| Failed::from(report.render(false)))
        .and_then(|_| is_as_told(&mut engine, entry, example));
    match (found.is_empty(), outcome) {
        (_, Err(why)) => Err(why),
        (false, Ok(())) => Err(Failed::from(found.join("\n"))),
        (true, Ok(())) => Ok(()),
    }
}

/// What the example makes with the function is of the type that help tells, with the keys and columns that it names and
/// no others. An example of a function written in Rhai has such a line.
fn is_as_told(engine: &mut Engine, entry: &RegisteredFunction, example: &str) -> Result<(), Failed> {
    let call = format!(" = {}(", entry.path());
    // The whole of the right-hand side is the call.
    let named = |line: &&str| {
        let arguments =
            line.strip_prefix("let ").and_then(|rest| rest.split_once(&call)).map(|(_, rest)| rest);
        let mut open = 1;
        let closed = arguments.and_then(|text| {
            text.find(|c| {
                open += i32::from(c == '(') - i32::from(c == ')');
                open == 0
            })
        });
        arguments.zip(closed).is_some_and(|(text, end)| text[end + 1..].starts_with(';'))
    };
    let Some(line) = example.lines().find(named) else {
        let told = entry.parameters.last().is_none_or(|p| p.name != "opts") || entry.returns.is_empty();
        return if told { Ok(()) } else { Err(Failed::from(format!("no line `let ..{call}..`"))) };
    };
    let name = line[4..].split(' ').next().unwrap_or_default();
    let value = engine.eval(name).map_err(|report| report.render(false))?;
    let kind = engine.type_of(&value);
    if !entry.returns.is_empty() && entry.returns.split(" or ").all(|told| told != kind) {
        return Err(Failed::from(format!("help tells {}, and a {kind} comes", entry.returns)));
    }
    let found: Vec<String> = match (value.read_lock::<Map>(), value.read_lock::<Table>()) {
        (Some(map), _) => map.keys().map(|key| key.to_string()).collect(),
        (_, Some(table)) => table.names().map(str::to_string).collect(),
        _ => Vec::new(),
    };
    if found.is_empty() {
        return Ok(());
    }
    let lacks = entry.fields.iter().find(|f| !f.optional && !found.contains(&f.name));
    let told = |name: &&String| entry.fields.is_empty() || entry.fields.iter().any(|f| f.name == **name);
    let untold = found.iter().find(|name| !entry.more_fields && !told(name));
    match (lacks, untold) {
        (Some(field), _) => Err(Failed::from(format!("`{}` is told and missing", field.name))),
        (_, Some(name)) => Err(Failed::from(format!("`{name}` is there and not told"))),
        _ => Ok(()),
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
            let entry = entry.clone();
            trials.push(Trial::test(format!("doc/{path} {id}"), move || run(&entry, &example)));
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
    let optional = |e: &&RegisteredFunction| {
        let last = e.parameters.last().is_some_and(|p| matches!(p.name.as_str(), "options" | "opts"));
        let items = e.options();
        last && !items.is_empty() && items.iter().all(|o| o.default != "required")
    };
    let without = |e: &RegisteredFunction| {
        let same = |o: &&RegisteredFunction| o.path() == e.path() && o.of_type() == e.of_type();
        all.iter().filter(same).any(|o| o.parameters.len() + 1 == e.parameters.len())
    };
    let mut wordy: Vec<String> =
        all.iter().filter(optional).filter(|e| !without(e)).map(RegisteredFunction::signature).collect();
    wordy.sort();
    trials.push(Trial::test("doc/options may be left out", move || {
        if wordy.is_empty() { Ok(()) } else { Err(Failed::from(wordy.join("\n"))) }
    }));
    // A number with an error bar has a row in the book's table, which says what the bar leaves out.
    let table = std::fs::read_to_string("book/src/errors.md").expect("the table of errors");
    let of_errors = |e: &&RegisteredFunction| e.fields.iter().any(|field| field.name.starts_with("error"));
    let named = |e: &RegisteredFunction| {
        table.contains(&format!("`{}`", e.path())) || table.contains(&format!("`{}::`", e.module))
    };
    let mut missing: Vec<String> =
        all.iter().filter(of_errors).filter(|e| !named(e)).map(RegisteredFunction::path).collect();
    missing.sort();
    missing.dedup();
    trials.push(Trial::test("doc/errors are told in the book", move || {
        if missing.is_empty() { Ok(()) } else { Err(Failed::from(missing.join(", "))) }
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
