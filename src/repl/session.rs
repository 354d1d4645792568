//! One session: takes inputs one after the other, runs them and shows their values.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use rhai::{Array, Dynamic, Expr, Map, Stmt};

use super::complete::{Names, Variable};
use super::input;
use super::lex::{self, Kind as Piece};
use super::paint;
use crate::error::{Error, Kind};
use crate::number::Table;
use crate::output::{colours, end_alone, folders, tell};
use crate::ranks;
use crate::script::diagnostics::{Report, Section};
use crate::script::manual::Style;
use crate::script::registry::{self, Entry, Form, Parameter};
use crate::script::{Engine, Outcome};

/// How many values `Out` keeps: each may hold much memory.
const KEPT: usize = 50;

/// What comes after an input.
pub(super) enum Step {
    Next,
    /// The session is over, with this exit code.
    Leave(u8),
    /// It failed; a session at a terminal goes on.
    Failed(Kind),
}

/// An input that succeeded, for `%save`.
pub(super) struct Done {
    pub text: String,
    /// Whether it is an expression whose value was shown.
    pub value: bool,
}

/// The state of a session.
pub(super) struct Session {
    pub engine: Engine,
    /// What completion knows; shared with the editor.
    pub names: Rc<RefCell<Names>>,
    pub done: Vec<Done>,
    /// All inputs so far, with their lines numbered through. An error may lie in a function of an earlier input.
    heard: Vec<Section>,
    /// Reads what is typed.
    pub parser: rhai::Engine,
    /// All pieces of script so far, for `%history` and `Out`.
    pub inputs: Vec<String>,
    /// How many entries are the program's; those of the user's functions follow.
    builtin: usize,
    /// Whether somebody sits at a terminal.
    pub interactive: bool,
}

/// What the last statement of an input is.
enum Last {
    Expression,
    /// It gave this variable a value.
    Variable(String),
    /// Definitions only.
    Nothing,
}

impl Session {
    pub fn new(engine: Engine, interactive: bool) -> Session {
        let entries = registry::entries(engine.rhai(), true);
        let builtin = entries.len();
        let names = Rc::new(RefCell::new(Names { entries, variables: Vec::new() }));
        let session = Session {
            engine,
            names,
            done: Vec::new(),
            heard: Vec::new(),
            parser: input::parser(),
            inputs: Vec::new(),
            builtin,
            interactive,
        };
        session.refresh();
        session
    }

    /// The first line: the program's name and version, and where it computes.
    pub fn banner(&self, colour: bool) -> String {
        let device = self.engine.session().device();
        let version = env!("CARGO_PKG_VERSION").trim_end_matches(".0");
        let name = format!("Umklapp {version}");
        let name = if colour { paint::bold(&name) } else { name };
        let place = format!("{}: {}", device.name(), device.describe());
        format!("{name}   {place}          help()  ?name  Ctrl-D leaves")
    }

    /// How pages are shown on this terminal.
    pub fn style(&self) -> Style {
        let width = console::Term::stdout().size_checked().map_or(100, |(_, columns)| usize::from(columns));
        Style { colour: colours(&std::io::stdout()), width: width.clamp(40, 110) }
    }

    pub fn say(&self, text: &str) {
        self.engine.session().print(text);
    }

    pub fn fail(&self, error: &Error) -> Step {
        self.failed(&Report::plain(error))
    }

    pub fn failed(&self, report: &Report) -> Step {
        if report.kind != Kind::Interrupted && ranks::world().is_some_and(|world| !world.all_failed()) {
            end_alone(&report.message);
        }
        if report.kind == Kind::Interrupted {
            // The terminal has put `^C` where the cursor was.
            let fresh_line = if self.interactive { "\n" } else { "" };
            tell(&format!("{fresh_line}interrupted"));
        } else {
            tell(&report.render(colours(&std::io::stderr())));
        }
        Step::Failed(report.kind)
    }

    /// The number of the next line that is run. The language counts to 65535.
    fn next_line(&mut self) -> usize {
        if self.heard.last().is_some_and(|last| last.end() > 50_000) {
            self.heard.clear();
        }
        self.heard.last().map_or(1, Section::end)
    }

    /// Evaluates a piece of script. An error is shown at the place where it was typed.
    pub fn evaluate(&mut self, text: &str, shown_first: usize) -> Outcome {
        let first = self.next_line();
        let result = self.engine.eval_from(text, first);
        self.heard.push(Section { first, shown_first, text: text.to_string(), name: None });
        self.placed(result)
    }

    /// The texts of all that ran, oldest first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.heard.iter().map(|section| section.text.as_str())
    }

    /// Runs a script file.
    pub fn run_file(&mut self, path: &Path) -> Outcome {
        let first = self.next_line();
        let (result, text) = self.engine.run_file_from(path, first);
        self.heard.push(Section { first, shown_first: 1, text, name: Some(path.display().to_string()) });
        self.placed(result)
    }

    /// Runs the user's own script for the beginning of sessions, where there is one. A mistake in it is shown, no more.
    pub fn start_up(&mut self) {
        let path = folders::settings().map(|folder| folder.join("startup.rhai"));
        let Some(path) = path.filter(|path| path.is_file()) else { return };
        if let Err(report) = self.run_file(&path) {
            self.failed(&report);
        }
        // A script that ends itself does not end the session.
        self.engine.session().ended();
        self.refresh();
    }

    /// Says of an error in which input it lies; at a terminal lines are counted from the input's first.
    fn placed(&self, result: Outcome) -> Outcome {
        result.map_err(|mut report| {
            let current =
                report.position.is_some_and(|(line, _)| self.heard.last().is_some_and(|p| line >= p.first));
            report.within(&self.heard);
            if self.interactive && !current && report.position.is_some() && report.file.is_none() {
                report.file = Some("an earlier input".into());
            }
            report
        })
    }

    /// Runs a piece of script and shows its value, unless it ends in a semicolon.
    pub fn script(&mut self, text: &str, first: usize) -> Step {
        let last = self.last(text);
        self.inputs.push(text.trim_end().to_string());
        if !self.engine.session().quiet() {
            for mut trap in self.engine.lint(text, None) {
                trap.within(&[Section { first: 1, shown_first: first, text: text.into(), name: None }]);
                tell(&trap.render(colours(&std::io::stderr())));
            }
        }
        let result = self.evaluate(text, first);
        let ended = self.engine.session().ended();
        let step = match result {
            Err(report) => self.failed(&report),
            Ok(_) if ended.is_some() => Step::Leave(ended.unwrap_or(0)),
            Ok(value) => {
                let silent = silent(text);
                let shows = !value.is_unit() && matches!(last, Last::Expression);
                if shows {
                    self.engine.scope_mut().set_or_push("ans", value.clone());
                    self.keep(value.clone());
                }
                match last {
                    Last::Expression if shows && !silent => self.say(&self.shown(&value)),
                    Last::Variable(name) if !silent => {
                        if let Some(value) = self.engine.scope().get(&name) {
                            self.say(&format!("{name} = {}", self.brief(value)));
                        }
                    }
                    _ => {}
                }
                let value = shows && !silent && self.single(text);
                self.done.push(Done { text: text.trim_end().to_string(), value });
                Step::Next
            }
        };
        self.refresh();
        step
    }

    /// Keeps the value of the newest input as an element of `Out`, whose place is the input's number; older ones go.
    fn keep(&mut self, value: Dynamic) {
        let number = self.inputs.len();
        let scope = self.engine.scope_mut();
        if scope.get("Out").is_none_or(|out| !out.is_array()) {
            scope.push("Out", Array::new());
        }
        if let Some(mut out) = scope.get_mut("Out").and_then(|out| out.write_lock::<Array>()) {
            out.resize(number + 1, Dynamic::UNIT);
            out[number] = value;
            if let Some(old) = number.checked_sub(KEPT) {
                out[old] = Dynamic::UNIT;
            }
        }
    }

    fn last(&self, text: &str) -> Last {
        let Ok(ast) = self.parser.compile(text) else { return Last::Expression };
        match ast.statements().last() {
            None => Last::Nothing,
            Some(Stmt::Var(parts, ..)) => Last::Variable(parts.0.name.to_string()),
            Some(Stmt::Assignment(parts)) => root(&parts.1.lhs).map_or(Last::Nothing, Last::Variable),
            Some(_) => Last::Expression,
        }
    }

    /// Whether the text is one statement.
    fn single(&self, text: &str) -> bool {
        self.parser.compile(text).is_ok_and(|ast| ast.statements().len() == 1)
    }

    /// A value as it is shown on its own.
    fn shown(&self, value: &Dynamic) -> String {
        let text = match value.read_lock::<rhai::ImmutableString>() {
            Some(text) => format!("{:?}", text.as_str()),
            None => self.engine.show(value),
        };
        cut(&text)
    }

    /// A value as it is shown behind its name: of a table, what it holds.
    pub fn brief(&self, value: &Dynamic) -> String {
        match value.read_lock::<Table>() {
            Some(table) => table.summary(),
            None => self.shown(value),
        }
    }

    /// Tells completion about variables and functions as they are now.
    pub fn refresh(&self) {
        let mut names = self.names.borrow_mut();
        names.variables = self
            .engine
            .scope()
            .iter()
            .map(|(name, _, value)| Variable {
                name: name.to_string(),
                id: value.type_id(),
                fields: fields(&value),
            })
            .collect();
        names.entries.truncate(self.builtin);
        let own = self.engine.functions().map(|f| Entry {
            module: String::new(),
            name: f.name.to_string(),
            parameters: f
                .params
                .iter()
                .map(|name| Parameter { name: name.to_string(), kind: String::new() })
                .collect(),
            returns: String::new(),
            form: Form::Function,
            receiver: None,
            doc: registry::doc(f.comments.iter().copied()),
            standard: false,
        });
        names.entries.extend(own.filter(|e| !e.name.starts_with("anon$")));
    }
}

/// The variable that an assignment changes.
fn root(place: &Expr) -> Option<String> {
    match place {
        Expr::Variable(parts, ..) => Some(parts.1.to_string()),
        Expr::Dot(parts, ..) | Expr::Index(parts, ..) => root(&parts.lhs),
        _ => None,
    }
}

/// Whether an input ends in a semicolon.
fn silent(text: &str) -> bool {
    let mut tokens = lex::tokens(text);
    tokens.retain(|t| !matches!(t.kind, Piece::Space | Piece::Comment));
    tokens.last().is_some_and(|t| &text[t.range.clone()] == ";")
}

fn fields(value: &Dynamic) -> Vec<String> {
    if let Some(map) = value.read_lock::<Map>() {
        return map.keys().map(|key| key.to_string()).collect();
    }
    value.read_lock::<Table>().map_or(Vec::new(), |table| table.names().map(str::to_string).collect())
}

/// A text cut to 4000 characters, more than a screen shows.
fn cut(text: &str) -> String {
    const MOST: usize = 4000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ... ({} characters)", &text[..end], text.chars().count()),
        None => text.to_string(),
    }
}
