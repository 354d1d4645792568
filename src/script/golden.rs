//! Scripts as tests: one runs in a fresh engine, and what it prints is compared with the `.out` file beside it.
//!
//! Comment lines at the top of a script direct the comparison: `// golden: rtol=1e-6 atol=1e-9` sets the tolerance of
//! numbers, `// golden: set size=8` gives `args` a value, `// golden: any` compares nothing (of timings, say: the
//! script must run, no more), `// error` says that the script must fail; its golden output then ends with the report of
//! the error. Numbers that a script calls `measured` are `~`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::diagnostics::Report;
use super::{Engine, Settings, arguments, read_script};
use crate::error::{Error, Result};
use crate::output::files::write_bytes;
use crate::output::golden::{Deviation, Tolerance, deviation, difference};
use crate::ranks;
use crate::task::Interrupt;

/// How one script did.
#[derive(Debug)]
pub enum Verdict {
    /// It said what it should; with the number that lies farthest from what was expected.
    Passed(Option<Deviation>),
    /// The golden file was written anew.
    Blessed,
    /// It did not; why.
    Failed(String),
}

/// What the top of a script asks for.
#[derive(Debug, Clone, PartialEq)]
struct Directives<'a> {
    tolerance: Tolerance,
    must_fail: bool,
    compared: bool,
    /// Pairs `key=value` for `args`.
    set: Vec<&'a str>,
}

fn directives(text: &str) -> Result<Directives<'_>> {
    let mut found =
        Directives { tolerance: Tolerance::default(), must_fail: false, compared: true, set: Vec::new() };
    for line in
        text.lines().map(str::trim).take_while(|line| line.starts_with("//") || line.starts_with("#!"))
    {
        let comment = line.trim_start_matches('/').trim();
        if comment == "error" {
            found.must_fail = true;
        }
        let Some(settings) = comment.strip_prefix("golden:") else { continue };
        let mut settings = settings.split_whitespace();
        while let Some(setting) = settings.next() {
            if setting == "set" {
                found.set.extend(settings.by_ref());
                continue;
            }
            if setting == "any" {
                found.compared = false;
                continue;
            }
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            let number = value.parse::<f64>().ok().filter(|x| *x >= 0.0);
            match (key, number) {
                ("rtol", Some(x)) => found.tolerance.relative = x,
                ("atol", Some(x)) => found.tolerance.absolute = x,
                _ => {
                    return Err(Error::file(format!("`{setting}` is no setting of a golden script"))
                        .hint("write `// golden: rtol=1e-6 atol=1e-12`"));
                }
            }
        }
    }
    Ok(found)
}

/// Where the golden output of a script lies.
fn golden_path(script: &Path) -> PathBuf {
    script.with_extension("out")
}

/// Runs a script and compares; with `bless`, writes what it should have said. Files that the script saves go where
/// the settings say.
pub fn test(script: &Path, settings: Settings, interrupt: Interrupt, bless: bool) -> Verdict {
    verdict(script, settings, interrupt, bless)
        .unwrap_or_else(|e| Verdict::Failed(Report::plain(&e).render(false)))
}

fn verdict(script: &Path, settings: Settings, interrupt: Interrupt, bless: bool) -> Result<Verdict> {
    let text = match read_script(script) {
        Ok(text) => text,
        Err(report) => return Ok(Verdict::Failed(report.render(false))),
    };
    let directives = directives(&text)?;
    let mut args = settings.args.clone();
    args.extend(arguments(directives.set.iter().copied(), &text)?);
    let mut engine = Engine::with(Settings { quiet: true, json: false, args, ..settings }, interrupt)?;
    let printed = Rc::new(RefCell::new(String::new()));
    let into = printed.clone();
    engine.session().mask();
    engine.session().set_printer(Box::new(move |line| {
        let mut text = into.borrow_mut();
        text.push_str(line);
        text.push('\n');
    }));
    // Reports name the file without its folder, so that golden files do not depend on where the tests are run.
    let outcome = engine.run_text(&text, script);
    let mut found = printed.borrow().clone();
    // What ends itself with a code other than 0 has failed, though all that it printed may be right.
    let code = engine.session().ended().filter(|&code| code != 0);
    match (outcome, directives.must_fail) {
        (Ok(_), true) if code.is_some() => found.push_str(&format!("exit code {}\n", code.unwrap_or(0))),
        (Ok(_), false) if code.is_some() => {
            let code = code.unwrap_or(0);
            return Ok(Verdict::Failed(format!("the script ended itself with exit code {code}\n{found}")));
        }
        (Ok(_), false) => {}
        (Ok(_), true) => return Ok(Verdict::Failed("the script must fail, and did not".into())),
        (Err(mut report), true) => {
            report.file = script.file_name().map(|name| name.to_string_lossy().into_owned());
            found.push_str(&report.render(false));
            found.push('\n');
        }
        (Err(report), false) => return Ok(Verdict::Failed(format!("{found}{}", report.render(false)))),
    }
    if !directives.compared {
        return Ok(Verdict::Passed(None));
    }
    // Golden files serve every backend: where a value lives is written as on the CPU.
    let device = engine.session().device();
    let place = device.name();
    if place != "cpu" {
        found = found.replace(&format!(" on {place}"), " on cpu");
    }
    let golden = golden_path(script);
    let expected = match std::fs::read_to_string(&golden) {
        Ok(expected) => Some(expected),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::file(format!("cannot read `{}`: {e}", golden.display()))),
    };
    // How much memory a matrix takes depends on how its rows are shared out.
    let shared = (!device.parts().is_empty() || ranks::world().is_some()) && !bless;
    let expected = expected.map(|text| if shared { without_sizes(&text) } else { text });
    if shared {
        found = without_sizes(&found);
    }
    let silent = found.trim().is_empty();
    let worst = expected.as_ref().and_then(|text| deviation(text, &found, directives.tolerance));
    let differs = match &expected {
        Some(expected) => difference(expected, &found, directives.tolerance),
        None if silent => None,
        None => Some(found.lines().map(|line| format!("+ {line}\n")).collect()),
    };
    Ok(match differs {
        None => Verdict::Passed(worst),
        Some(_) if bless => {
            write_bytes(&golden, found.as_bytes())?;
            Verdict::Blessed
        }
        Some(shown) if expected.is_none() => Verdict::Failed(format!(
            "there is no `{}` to compare with; `--bless` writes it\n{shown}",
            golden.display()
        )),
        Some(shown) => {
            let far = worst.filter(|w| w.fraction > 1.0).map_or(String::new(), |w| {
                format!(
                    "line {}: {} instead of {}, {:.1e} times the tolerance\n",
                    w.line, w.found, w.expected, w.fraction
                )
            });
            Verdict::Failed(format!("the output is not that of `{}`\n{far}{shown}", golden.display()))
        }
    })
}

/// The text without the sizes in memory that stand before a place, as in `, 4.2 MB on cpu`.
fn without_sizes(text: &str) -> String {
    let place = " on cpu";
    let mut pieces: Vec<&str> = text.split(place).collect();
    let last = pieces.len() - 1;
    for piece in &mut pieces[..last] {
        let cut = piece.rfind(", ").filter(|&at| {
            let size = piece[at + 2..].split_once(' ');
            size.is_some_and(|(number, unit)| number.parse::<f64>().is_ok() && unit.ends_with('B'))
        });
        *piece = &piece[..cut.unwrap_or(piece.len())];
    }
    pieces.join(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_before_a_place_go() {
        let text = "Operator 8 x 8, CSR, 4.2 MB on cpu\nx, 3 on cpu, 5 kB\n";
        assert_eq!(without_sizes(text), "Operator 8 x 8, CSR on cpu\nx, 3 on cpu, 5 kB\n");
        assert_eq!(without_sizes("none"), "none");
    }

    #[test]
    fn directives_stand_at_the_top() {
        let read = |text| directives(text).unwrap();
        assert_eq!(read("// A script.\n// golden: rtol=1e-6\n// error\nlet x = 1;").tolerance.relative, 1e-6);
        assert!(read("// error\n").must_fail && !read("// golden: any").compared);
        assert_eq!(read("let x = 1;\n// golden: rtol=1\n"), read(""));
        assert_eq!(read("// golden: rtol=1 set a=1 b=x,y").set, ["a=1", "b=x,y"]);
        assert!(directives("// golden: tolerance=1").is_err() && directives("// golden: rtol=x").is_err());
    }
}
