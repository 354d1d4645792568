//! Bad input of every kind: one sentence at the place in the script, a hint, no panic and no number.

mod bands;
mod crystals;
mod dmrg;
mod files;
mod gauge;
mod language;
mod multiplets;
mod operators;
mod pairing;
mod sectors;
mod states;
mod uniform;
mod vmc;

use std::path::PathBuf;

use umklapp::Engine;
use umklapp::error::ErrorKind;
use umklapp::script::Settings;
use umklapp::script::diagnostics::Report;
use umklapp::task::Interrupt;

fn engine(out: Option<PathBuf>) -> Engine {
    Engine::with(Settings { out, quiet: true, ..Settings::default() }, Interrupt::default()).unwrap()
}

/// What every error must be: a sentence of one line, and the user's line marked.
fn is_for_people(script: &str, report: &Report) {
    let lines = script.lines().count();
    let text = report.render(false);
    assert_ne!(report.kind, ErrorKind::Internal, "`{script}`:\n{text}");
    assert!(!report.message.contains('\n') && report.message.len() < 160, "`{script}`:\n{text}");
    assert!(!report.message.contains("alloc::") && !report.message.contains("core::"), "`{script}`:\n{text}");
    let line = report.position.unwrap_or_else(|| panic!("no position for `{script}`:\n{text}")).0;
    assert!((1..=lines).contains(&line), "`{script}`:\n{text}");
}

/// Every script fails; its message and its hint contain the words given.
fn fail(engine: &mut Engine, cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (script, message, hint) in cases {
        let report = match engine.eval(script) {
            Ok(value) => {
                wrong.push(format!("`{script}` gave {}", engine.show(&value)));
                continue;
            }
            Err(report) => report,
        };
        is_for_people(script, &report);
        let text = report.render(false);
        let found = report.hint.unwrap_or_default();
        if !report.message.contains(message) {
            wrong.push(format!("`{message}` is not in the message of `{script}`:\n{text}"));
        } else if found.is_empty() {
            wrong.push(format!("`{script}` has no hint:\n{text}"));
        } else if !found.contains(hint) {
            wrong.push(format!("`{hint}` is not in the hint of `{script}`:\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs what the cases to come need.
fn prepare(engine: &mut Engine, script: &str) {
    if let Err(report) = engine.eval(script) {
        panic!("{}", report.render(false));
    }
}

/// A chain of eight sites for the cases to come.
fn with_chain() -> Engine {
    let mut engine = engine(None);
    let setup = "let h = tight_binding(lattice::chain(8)); let w = window(-2.1, 2.1);";
    prepare(&mut engine, setup);
    engine
}
