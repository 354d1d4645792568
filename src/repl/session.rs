//! One session: takes inputs one after the other, runs them and shows their values.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use rhai::{Dynamic, Expr, Map, Stmt};

use super::complete::{Names, Variable};
use super::input::{self, Input};
use super::lex::{self, Kind as Piece};
use super::{paint, parser};
use crate::error::{Error, Kind};
use crate::number::Table;
use crate::output::{colours, tell};
use crate::script::diagnostics::{Report, Section};
use crate::script::manual::{self, Style};
use crate::script::registry::{self, Entry, Form, Parameter};
use crate::script::{Engine, Outcome};

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
    parser: rhai::Engine,
    /// How many entries are the program's; those of the user's functions follow.
    builtin: usize,
    interactive: bool,
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
            parser: parser(),
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

    /// Takes one input; `first` is the number of its first line among all inputs.
    pub fn take(&mut self, line: &str, first: usize) -> Step {
        match input::read(line) {
            Input::Nothing => Step::Next,
            Input::Leave => Step::Leave(0),
            Input::Help(name) => self.help(name),
            Input::Search(word) => self.search(word),
            Input::Variables => self.variables(),
            Input::Magic(name, rest) => self.magic(line, name, rest),
            Input::Script(text) => self.script(text, first),
        }
    }

    fn style(&self) -> Style {
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

    /// Runs a script file.
    pub fn run_file(&mut self, path: &Path) -> Outcome {
        let first = self.next_line();
        let (result, text) = self.engine.run_file_from(path, first);
        self.heard.push(Section { first, shown_first: 1, text, name: Some(path.display().to_string()) });
        self.placed(result)
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
    fn brief(&self, value: &Dynamic) -> String {
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

    pub fn help(&self, name: &str) -> Step {
        let style = self.style();
        let names = self.names.borrow();
        if name.is_empty() {
            self.say(&format!("{}\n\n{}", super::magic::COMMANDS, manual::overview(&names.entries, style)));
            return Step::Next;
        }
        if let Some(page) = manual::page(&names.entries, name, style) {
            self.say(&page);
            return Step::Next;
        }
        match self.engine.scope().get(name) {
            // For a variable: its value in short, and the page of its type.
            Some(value) => {
                let kind = self.engine.type_of(value);
                let page = manual::page(&names.entries, &kind, style);
                let value = format!("{name} = {}", self.brief(value));
                self.say(&page.map_or(value.clone(), |page| format!("{value}\n\n{page}")));
                Step::Next
            }
            None => self.fail(&Error::input(manual::no_page(&names.entries, name))),
        }
    }

    fn search(&self, word: &str) -> Step {
        match manual::search(&self.names.borrow().entries, word, self.style()) {
            Some(found) => {
                self.say(&found);
                Step::Next
            }
            None => self.fail(&Error::input(format!("no text mentions `{word}`"))),
        }
    }

    fn variables(&self) -> Step {
        let mut seen = BTreeSet::new();
        let mut rows = Vec::new();
        let all: Vec<(&str, bool, Dynamic)> = self.engine.scope().iter().collect();
        // If a name was defined twice, scripts see the last.
        for (name, constant, value) in all.into_iter().rev() {
            let given = name == "I" || name == "args" && constant;
            if !given && seen.insert(name.to_string()) {
                let text = self.brief(&value);
                let first = text.lines().next().unwrap_or_default().to_string();
                rows.push((name.to_string(), self.engine.type_of(&value), first));
            }
        }
        rows.sort();
        let wide = |column: fn(&(String, String, String)) -> &String| {
            rows.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
        };
        let (names, kinds) = (wide(|r| &r.0), wide(|r| &r.1));
        let room = self.style().width.saturating_sub(names + kinds + 6).max(20);
        let lines: Vec<String> = rows
            .iter()
            .map(|(name, kind, text)| {
                let text: String = text.chars().take(room).collect();
                format!("  {name:names$}  {kind:kinds$}  {text}")
            })
            .collect();
        self.say(&if lines.is_empty() { "no variables".to_string() } else { lines.join("\n") });
        Step::Next
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
