//! The commands that begin with `%`, after IPython's.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::input;
use super::session::{AfterInput, ReplSession, SucceededInput};
use crate::error::{Error, Result, nearest};
use crate::output::files::write_bytes;
use crate::output::progress::seconds;
use crate::output::tell;
use crate::script::lex;

/// What `%help` says, and `help()` before its lists.
pub(super) const LIST: &str = "  ?name, help(name)  the page of a function, module, type or variable
  lookfor word       search in all texts
  examples(\"..\")     scripts that answer a question; examples(\"name\") shows one
  tour()             a first walk through the program, step by step
  ??name             the source of a function
  whos               the variables, with the memory they take
  ans, Out[n]        the last value, the value of input n; a trailing `;` hides a value
  %time EXPR         run once and show the time
  %timeit EXPR       run repeatedly and show the time of one run
  %run FILE          run a script in this session
  %save FILE         write the inputs of this session as a script
  %edit [FILE]       edit a piece of script in your editor, then run it
  %history [N]       the last N inputs, numbered
  %store FOLDER      write the variables into a folder; %restore FOLDER reads them
  %reset             forget all variables and functions
  %cd [FOLDER]       go to another folder
  !COMMAND           run a system command
  %backend [NAME]    where to compute: auto, cpu, cuda, or both: cpu+cuda [1:12]
  Ctrl-C             stop what runs, or clear the line
  Ctrl-D, exit       leave";

impl ReplSession {
    /// Does the command `%name rest`; `line` is all of it.
    pub fn magic(&mut self, line: &str, name: &str, rest: &str) -> AfterInput {
        // `%%time` before a cell of a notebook does what `%time` does before a line.
        let short = name.strip_prefix('%').filter(|short| matches!(*short, "time" | "timeit"));
        let (sign, name) = (name, short.unwrap_or(name));
        let needs = |what: &str| Error::input(format!("`%{name}` needs {what}"));
        match (name, rest) {
            ("time" | "timeit", "") => self.fail(&needs("an expression")),
            ("run" | "save", "") => self.fail(&needs("the name of a file")),
            ("store" | "restore", "") => self.fail(&needs("the name of a folder")),
            ("store", folder) => self.store(unquoted(folder)),
            ("restore", folder) => self.restore(unquoted(folder)),
            ("edit", file) => self.edit(unquoted(file)),
            ("history", "") => self.history(usize::MAX),
            ("history", count) => match count.parse() {
                Ok(count) => self.history(count),
                Err(_) => self.fail(&needs("a whole number, or nothing")),
            },
            ("reset", _) => {
                self.engine.reset();
                self.refresh();
                AfterInput::Next
            }
            ("cd", folder) => self.change_folder(unquoted(folder)),
            ("time", _) => self.time(&expression(line, sign)),
            ("timeit", _) => self.timeit(&expression(line, sign)),
            ("run", file) => self.run(unquoted(file)),
            ("save", file) => self.save(unquoted(file)),
            ("backend", "") => {
                let device = self.engine.session().device();
                self.say(&format!("{}: {}", device.name(), device.describe()));
                AfterInput::Next
            }
            ("backend", name) => match self.engine.set_backend(unquoted(name)) {
                Ok(()) => self.magic("", "backend", ""),
                Err(e) => self.fail(&e),
            },
            ("help", _) => {
                self.say(LIST);
                AfterInput::Next
            }
            ("whos" | "who", _) => self.take("whos", 1),
            ("matplotlib" | "pylab", _) => {
                self.say("`plot(..)` draws without it: in a notebook a picture, else text, or a file that it names");
                AfterInput::Next
            }
            ("pip" | "conda", _) => self.fail(&Error::input(format!("no command `%{name}`")).hint(
                "nothing is to be installed: `help()` lists what there is; `!pip ..` runs the command",
            )),
            _ => {
                let error = Error::input(format!("no command `%{name}`"));
                self.fail(&match nearest(name, input::COMMANDS) {
                    Some(near) => error.hint(format!("did you mean `%{near}`?")),
                    None => error.hint("`%help` lists the commands"),
                })
            }
        }
    }

    fn time(&mut self, text: &str) -> AfterInput {
        let began = Instant::now();
        let step = self.script(text, 1);
        if let AfterInput::Next = step {
            tell(&format!("time: {}", time(began.elapsed(), 1)));
        }
        step
    }

    fn timeit(&mut self, text: &str) -> AfterInput {
        const LONG_ENOUGH: Duration = Duration::from_millis(200);
        const RUNS: u32 = 5;
        // The first run warms the caches and tells how many runs take long enough to be timed.
        let mut loops = 1u32;
        loop {
            match self.loops(text, loops) {
                Err(step) => return step,
                Ok(took) if took >= LONG_ENOUGH || loops >= 1 << 24 => break,
                Ok(took) => {
                    let per_loop = took.as_secs_f64().max(1e-8) / f64::from(loops);
                    let wanted = 1.2 * LONG_ENOUGH.as_secs_f64() / per_loop;
                    loops = (wanted as u32).clamp(loops + 1, loops.saturating_mul(100));
                }
            }
        }
        let mut times = Vec::new();
        for _ in 0..RUNS {
            match self.loops(text, loops) {
                Err(step) => return step,
                Ok(took) => times.push(took),
            }
        }
        times.sort();
        let (best, median) = (times[0], times[times.len() / 2]);
        let many = if loops == 1 { String::new() } else { format!(" of {loops} loops") };
        self.say(&format!("{} a loop (best {}; {RUNS} runs{many})", time(median, loops), time(best, loops)));
        AfterInput::Next
    }

    fn loops(&mut self, text: &str, loops: u32) -> std::result::Result<Duration, AfterInput> {
        // One piece of script, so that it is parsed once.
        let text = match loops {
            1 => text.to_string(),
            _ => format!("for run_of_timeit in 0..{loops} {{ {text} }}"),
        };
        let began = Instant::now();
        match self.evaluate(&text, 1) {
            Ok(_) => Ok(began.elapsed()),
            Err(report) => Err(self.failed(&report)),
        }
    }

    fn run(&mut self, file: &str) -> AfterInput {
        let result = self.run_file(Path::new(file));
        // A script that ends itself does not end the session.
        self.engine.session().ended();
        self.refresh();
        match result {
            Ok(_) => AfterInput::Next,
            Err(report) => self.failed(&report),
        }
    }

    /// The inputs so far with their numbers, which `Out` takes.
    fn history(&self, count: usize) -> AfterInput {
        let from = self.inputs.len().saturating_sub(count);
        let digits = self.inputs.len().to_string().len();
        for (k, text) in self.inputs.iter().enumerate().skip(from) {
            let indented = text.replace('\n', &format!("\n{:1$}", "", digits + 4));
            self.say(&format!("  {:digits$}  {indented}", k + 1));
        }
        AfterInput::Next
    }

    fn change_folder(&mut self, folder: &str) -> AfterInput {
        let home = || std::env::var("HOME").unwrap_or_default();
        let folder = match folder.strip_prefix('~') {
            _ if folder.is_empty() => home(),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => home() + rest,
            _ => folder.to_string(),
        };
        match std::env::set_current_dir(&folder).and_then(|()| std::env::current_dir()) {
            Ok(now) => {
                self.say(&now.display().to_string());
                AfterInput::Next
            }
            Err(e) => self.fail(&Error::file(format!("cannot go to `{folder}`: {e}"))),
        }
    }

    /// Opens the user's editor on a file, or on the last input, and runs what was written.
    fn edit(&mut self, file: &str) -> AfterInput {
        if !self.interactive || self.front.is_some() {
            return self.fail(&Error::input("`%edit` needs a terminal"));
        }
        let own = std::env::temp_dir().join(format!("umklapp-{}.rhai", std::process::id()));
        let path = if file.is_empty() { own.clone() } else { file.into() };
        let edited = if file.is_empty() {
            let last = self.inputs.last().cloned().unwrap_or_default() + "\n";
            write_bytes(&own, last.as_bytes())
        } else {
            Ok(())
        };
        let text = edited.and_then(|()| in_editor(&path));
        if file.is_empty() {
            // The system clears its folder of temporary files.
            let _ = std::fs::remove_file(&own);
        }
        match text {
            Ok(text) if text.trim().is_empty() => AfterInput::Next,
            Ok(text) => {
                self.say(text.trim_end());
                self.take_block(&text)
            }
            Err(e) => self.fail(&e),
        }
    }

    fn save(&mut self, file: &str) -> AfterInput {
        match write_bytes(Path::new(file), script(&self.done).as_bytes()) {
            Ok(()) => {
                self.say(&format!("{} inputs in `{file}`", self.done.len()));
                AfterInput::Next
            }
            Err(e) => self.fail(&e),
        }
    }
}

/// Opens an editor on a file and returns what is in it then.
fn in_editor(path: &Path) -> Result<String> {
    let named =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let editor = named.unwrap_or_else(|| if cfg!(windows) { "notepad".into() } else { "vi".into() });
    // The variables may hold options, too.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let ended = Command::new(program).args(words).arg(path).status();
    let ended = ended.map_err(|e| {
        Error::file(format!("the editor `{editor}` cannot be run: {e}")).hint("EDITOR names the one to use")
    })?;
    if !ended.success() {
        return Err(Error::file(format!("the editor `{editor}` ended with {ended}")));
    }
    std::fs::read_to_string(path)
        .map_err(|e| Error::file(format!("`{}` cannot be read: {e}", path.display())))
}

/// The session's inputs as a script that shows what the session showed.
fn script(done: &[SucceededInput]) -> String {
    let names =
        |d: &SucceededInput, name| lex::tokens(&d.text).iter().any(|t| &d.text[t.range.clone()] == name);
    let uses_out = done.iter().any(|d| names(d, "Out"));
    let uses_ans = uses_out || done.iter().any(|d| names(d, "ans"));
    let mut out = String::from(if uses_out { "let Out = [];\n" } else { "" });
    for (number, d) in (1..).zip(done) {
        let text = d.text.trim();
        let statement = text.trim_end_matches(';');
        // A comment at the end of an input must not hide what follows it.
        let comment = lex::tokens(text).last().is_some_and(|t| t.kind == lex::TokenKind::Comment);
        // A comment ends with its line.
        let end = if comment { "\n" } else { "" };
        let line = match (d.value, uses_ans) {
            (true, true) => format!("let ans = {statement}{end};\nprint(ans);"),
            (true, false) => format!("print({statement}{end});"),
            (false, _) => format!("{statement}{end};"),
        };
        out.push_str(&line);
        if d.value && uses_out {
            out.push_str(&format!("\nOut.pad({number}, ());\nOut.push(ans);"));
        }
        out.push('\n');
    }
    out
}

/// What follows the command, at the place where it stands, so that errors point at it.
fn expression(line: &str, name: &str) -> String {
    let command = format!("%{name}");
    line.replacen(&command, &" ".repeat(command.len()), 1)
}

fn unquoted(text: &str) -> &str {
    text.trim_end_matches(';').trim().trim_matches('"')
}

/// The time of one of so many loops.
fn time(all: Duration, loops: u32) -> String {
    let one = all.as_secs_f64() / f64::from(loops);
    if one < 1e-6 { format!("{:.0} ns", one * 1e9) } else { seconds(Duration::from_secs_f64(one)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(text: &str, value: bool) -> SucceededInput {
        SucceededInput { text: text.into(), value }
    }

    #[test]
    fn a_saved_session_is_a_script() {
        let session = [
            done("let x = 2", false),
            done("x + 1", true),
            done("fn f(y) { y }", false),
            done("let m = #{ a: 1 } // note", false),
            done("x * 3; // note", false),
            done("x // note", true),
        ];
        let text = script(&session);
        let mut engine = crate::Engine::new().unwrap();
        assert!(engine.eval(&text).is_ok(), "{text}");
        assert!(text.starts_with("let x = 2;\nprint(x + 1);\n"), "{text}");
        let with_ans = script(&[done("1 + 1", true), done("ans * 2", true)]);
        engine.reset();
        assert!(engine.eval(&with_ans).is_ok(), "{with_ans}");
        let ans = engine.scope().get("ans").and_then(|a| a.as_int().ok());
        assert_eq!(ans, Some(4));
        let with_out = script(&[done("let a = 3", false), done("1 + a", true), done("Out[2] * a", true)]);
        engine.reset();
        assert!(engine.eval(&with_out).is_ok(), "{with_out}");
        assert_eq!(engine.scope().get("ans").and_then(|a| a.as_int().ok()), Some(12));
    }

    #[test]
    fn expressions_keep_their_place() {
        assert_eq!(expression("%time f(1)", "time"), "      f(1)");
    }
}
