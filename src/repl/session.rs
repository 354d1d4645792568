//! One session: takes inputs one after the other, runs them and shows their values.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use rhai::{Array, Dynamic, Expr, Map, Stmt};
use rustyline::completion::{FilenameCompleter, Pair};

use super::complete::{self, CompletionProposal, Names, Proposals, Variable};
use super::input;
use super::scan::{self, Sort};
use super::{paint, paste};
use crate::error::{Error, ErrorKind};
use crate::number::Table;
use crate::output::files::FileData;
use crate::output::{colours, end_alone, folders, tell};
use crate::ranks;
use crate::script::diagnostics::{Report, Section};
use crate::script::lex::{self, TokenKind as Piece};
use crate::script::manual::TextStyle;
use crate::script::registry;
use crate::script::signature::ResultField;
use crate::script::{Engine, Evaluated, api};

/// How many values `Out` keeps: each may hold much memory.
const KEPT: usize = 50;

/// What shows values and mistakes, where that is no terminal: a notebook.
pub trait SessionFront {
    /// A value that stands on its own: its text, and the numbers behind it where it is a table, a matrix or a series.
    fn value(&self, text: &str, data: Option<&FileData>);
    fn mistake(&self, report: &Report);
}

/// Whether a piece of script can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Whole,
    /// It wants another line, indented by so many blanks.
    Open(usize),
    Wrong,
}

/// What comes after an input.
pub enum AfterInput {
    Next,
    /// The session is over, with this exit code.
    Leave(u8),
    /// It failed; a session at a terminal goes on.
    Failed(ErrorKind),
}

/// An input that succeeded, for `%save`.
pub struct SucceededInput {
    pub text: String,
    /// Whether it is an expression whose value was shown.
    pub value: bool,
}

/// A cell of a notebook while it runs.
pub(super) struct Running {
    /// What errors call it.
    name: String,
    /// Whether it is numbered, and its values are kept.
    kept: bool,
}

/// The state of a session.
pub struct ReplSession {
    pub engine: Engine,
    /// What completion knows; shared with the editor.
    pub names: Rc<RefCell<Names>>,
    pub done: Vec<SucceededInput>,
    /// All inputs so far, with their lines numbered through. An error may lie in a function of an earlier input.
    heard: Vec<Section>,
    /// Reads what is typed.
    pub parser: rhai::Engine,
    /// All pieces of script so far, for `%history` and `Out`.
    pub inputs: Vec<String>,
    /// How many entries are the program's; those of the user's functions follow.
    builtin: usize,
    /// Whether somebody sits at a terminal or a notebook.
    pub interactive: bool,
    /// Shows values and mistakes in place of the terminal.
    pub(super) front: Option<Rc<dyn SessionFront>>,
    /// The cell that runs, in a notebook.
    pub(super) cell: Option<Running>,
    /// The next step of the tour.
    pub(super) toured: usize,
}

/// What the last statement of an input is.
enum LastStatement {
    Expression,
    /// It gave this variable a value.
    Variable(String),
    /// Definitions only.
    Nothing,
}

impl ReplSession {
    pub fn new(engine: Engine, interactive: bool) -> ReplSession {
        let entries = registry::entries(engine.rhai(), true);
        let builtin = entries.len();
        let names = Rc::new(RefCell::new(Names { entries, variables: Vec::new() }));
        let session = ReplSession {
            engine,
            names,
            done: Vec::new(),
            heard: Vec::new(),
            parser: input::parser(),
            inputs: Vec::new(),
            builtin,
            interactive,
            front: None,
            cell: None,
            toured: 0,
        };
        session.refresh();
        session
    }

    /// A session for a notebook, which shows what the session says.
    pub fn of_notebook(engine: Engine, front: Rc<dyn SessionFront>) -> ReplSession {
        ReplSession { front: Some(front), ..ReplSession::new(engine, true) }
    }

    /// Whether what people are told may have colours.
    fn colourful(&self) -> bool {
        self.front.is_some() || colours(&std::io::stderr())
    }

    /// The first line: the program's name and version, and where it computes.
    pub fn banner(&self, colour: bool) -> String {
        let device = self.engine.session().device();
        let version = env!("CARGO_PKG_VERSION").trim_end_matches(".0");
        let name = format!("Umklapp {version}");
        let name = if colour { paint::bold(&name) } else { name };
        let place = format!("{}: {}", device.name(), device.describe());
        format!("{name}   {place}          tour()  help()  ?name  Ctrl-D leaves")
    }

    /// How pages are shown on this terminal.
    pub fn style(&self) -> TextStyle {
        if self.front.is_some() {
            return TextStyle { colour: true, width: 100 };
        }
        let width = console::Term::stdout().size_checked().map_or(100, |(_, columns)| usize::from(columns));
        TextStyle { colour: colours(&std::io::stdout()), width: width.clamp(40, 110) }
    }

    pub fn say(&self, text: &str) {
        self.engine.session().print(text);
    }

    pub fn fail(&self, error: &Error) -> AfterInput {
        self.failed(&Report::plain(error))
    }

    pub fn failed(&self, report: &Report) -> AfterInput {
        if let Some(front) = &self.front {
            front.mistake(report);
            return AfterInput::Failed(report.kind);
        }
        if report.kind != ErrorKind::Interrupted && ranks::world().is_some_and(|world| !world.all_failed()) {
            end_alone(&report.message);
        }
        if report.kind == ErrorKind::Interrupted {
            // The terminal has put `^C` where the cursor was.
            let fresh_line = if self.interactive { "\n" } else { "" };
            tell(&format!("{fresh_line}interrupted"));
        } else {
            tell(&report.render(self.colourful()));
        }
        AfterInput::Failed(report.kind)
    }

    /// The number of the next line that is run. The language counts to 65535.
    fn next_line(&mut self) -> usize {
        if self.heard.last().is_some_and(|last| last.end() > 50_000) {
            self.heard.clear();
        }
        self.heard.last().map_or(1, Section::end)
    }

    /// Evaluates a piece of script. An error is shown at the place where it was typed.
    pub fn evaluate(&mut self, text: &str, shown_first: usize) -> Evaluated {
        let first = self.next_line();
        let result = self.engine.eval_from(text, first);
        let name = self.cell.as_ref().map(|cell| cell.name.clone());
        self.heard.push(Section { first, shown_first, text: text.to_string(), name });
        self.placed(result)
    }

    /// The texts of all that ran, oldest first.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.heard.iter().map(|section| section.text.as_str())
    }

    /// Runs a script file.
    pub fn run_file(&mut self, path: &Path) -> Evaluated {
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
    fn placed(&self, result: Evaluated) -> Evaluated {
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
    pub fn script(&mut self, text: &str, first: usize) -> AfterInput {
        let last = self.last(text);
        if self.cell.is_none() {
            self.inputs.push(text.trim_end().to_string());
        }
        if !self.engine.session().quiet() {
            for mut trap in self.engine.lint(text, None) {
                let name = self.cell.as_ref().map(|cell| cell.name.clone());
                trap.within(&[Section { first: 1, shown_first: first, text: text.into(), name }]);
                tell(&trap.render(self.colourful()));
            }
        }
        let result = self.evaluate(text, first);
        let ended = self.engine.session().ended();
        let step = match result {
            Err(report) => self.failed(&report),
            Ok(_) if ended.is_some() => AfterInput::Leave(ended.unwrap_or(0)),
            Ok(value) => {
                let silent = silent(text);
                let shows = !value.is_unit() && matches!(last, LastStatement::Expression);
                if shows {
                    self.engine.scope_mut().set_or_push("ans", value.clone());
                    self.keep(value.clone());
                }
                match last {
                    LastStatement::Expression if shows && !silent => match &self.front {
                        Some(front) => front.value(&self.shown(&value), api::data_of(&value).as_ref()),
                        None => self.say(&self.shown(&value)),
                    },
                    LastStatement::Variable(name) if !silent => {
                        if let Some(value) = self.engine.scope().get(&name) {
                            self.say(&format!("{name} = {}", self.brief(value)));
                        }
                    }
                    _ => {}
                }
                let value = shows && !silent && self.single(text);
                self.done.push(SucceededInput { text: text.trim_end().to_string(), value });
                AfterInput::Next
            }
        };
        self.refresh();
        step
    }

    /// Takes a cell of a notebook. One that is kept has the next number, for `Out`, `%history` and errors.
    pub fn take_cell(&mut self, text: &str, kept: bool) -> AfterInput {
        if kept {
            self.inputs.push(text.trim_end().to_string());
        }
        let name = if kept { format!("cell {}", self.inputs.len()) } else { "cell".into() };
        self.cell = Some(Running { name, kept });
        let step = self.take_block(text);
        self.cell = None;
        step
    }

    /// Whether a cell of a notebook is whole; where it wants another line, by how much that is indented.
    pub fn completeness(&self, text: &str) -> Completeness {
        if input::incomplete(&self.parser, text) {
            return Completeness::Open(4 * lex::depth(text).unwrap_or(0));
        }
        let pieces = paste::inputs(&self.parser, text);
        let wrong = |piece: &str| {
            matches!(input::read(piece), input::Input::Script(_)) && self.parser.compile(piece).is_err()
        };
        if pieces.iter().any(|(_, piece)| wrong(piece)) { Completeness::Wrong } else { Completeness::Whole }
    }

    /// What may follow at a byte of a cell: where the word begins that is being written, and the proposals for it.
    pub fn proposals(&self, text: &str, byte: usize) -> (usize, Vec<(CompletionProposal, Option<Sort>)>) {
        let before = &text[..byte];
        // A command is a line of its own.
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let from = if before[line..].trim_start().starts_with(['%', '!', '?']) { line } else { 0 };
        let known = self.names.borrow();
        let names = Names { entries: known.entries.clone(), variables: known.variables.clone() };
        let names = scan::with_text(names, &before[from..]);
        match complete::proposals(&names, &before[from..]) {
            Proposals::Words(start, found) => {
                let sorted = |p: CompletionProposal| {
                    let sort = scan::sort(&names.entries, &p).0;
                    (p, Some(sort))
                };
                (from + start, found.into_iter().map(sorted).collect())
            }
            Proposals::Files => {
                let (start, found) = FilenameCompleter::new()
                    .complete_path(&before[line..], byte - line)
                    .unwrap_or((byte - line, Vec::new()));
                let file = |p: Pair| (CompletionProposal { shown: p.display, put: p.replacement }, None);
                (line + start, found.into_iter().map(file).collect())
            }
        }
    }

    /// The value of an expression as it is shown, for a notebook that asks for some beside a cell.
    pub fn glance(&mut self, expression: &str) -> Result<String, Box<Report>> {
        let value = self.engine.eval(expression)?;
        Ok(self.brief(&value))
    }

    /// The value of an input, as it was shown; none where there was none or where it was forgotten.
    pub fn output(&self, number: usize) -> Option<String> {
        let out = self.engine.scope().get("Out")?.read_lock::<Array>()?.get(number)?.clone();
        (!out.is_unit()).then(|| self.shown(&out))
    }

    /// Keeps the value of the newest input as an element of `Out`, whose place is the input's number; older ones go.
    fn keep(&mut self, value: Dynamic) {
        if self.cell.as_ref().is_some_and(|cell| !cell.kept) {
            return;
        }
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

    fn last(&self, text: &str) -> LastStatement {
        let Ok(ast) = self.parser.compile(text) else { return LastStatement::Expression };
        match ast.statements().last() {
            None => LastStatement::Nothing,
            Some(Stmt::Var(parts, ..)) => LastStatement::Variable(parts.0.name.to_string()),
            Some(Stmt::Assignment(parts)) => {
                root(&parts.1.lhs).map_or(LastStatement::Nothing, LastStatement::Variable)
            }
            Some(_) => LastStatement::Expression,
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
                fields: fields(&self.engine, &value),
            })
            .collect();
        names.entries.truncate(self.builtin);
        names.entries.extend(self.engine.functions().map(|f| registry::of_script(&f)));
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

fn fields(engine: &Engine, value: &Dynamic) -> Vec<ResultField> {
    if let Some(map) = value.read_lock::<Map>() {
        let kinds = map.iter().map(|(key, value)| (key.to_string(), engine.type_of(value)));
        return kinds.map(|(name, kind)| ResultField { name, kind, optional: false }).collect();
    }
    value.read_lock::<Table>().map_or(Vec::new(), |table| table.names().map(ResultField::column).collect())
}

/// A text cut to 4000 characters, more than a screen shows.
fn cut(text: &str) -> String {
    const MOST: usize = 4000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ... ({} characters)", &text[..end], text.chars().count()),
        None => text.to_string(),
    }
}
