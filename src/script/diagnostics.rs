//! Errors as people read them: one sentence, the line with a caret, the calls that led there, a hint.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use rhai::{EvalAltResult, Position, Scope};

use super::own::{is_closure, known_names};
use super::{
    complaints, evaluated, habits, holding, imported, lex, lint, registry, stdlib, syntax, wrong_types,
};
use crate::error::{Error, ErrorKind};
use crate::number::format::plain;
use crate::number::memory;
use crate::task::Stopped;

/// A finished report of a failed script.
#[derive(Debug, Clone)]
pub struct Report {
    pub message: String,
    /// Line and column, from 1, in the user's text.
    pub position: Option<(usize, usize)>,
    /// Name of the script file, if it has one.
    pub file: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
    /// Functions that were being called, innermost first, with their lines.
    pub calls: Vec<CalledFunction>,
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// Whether the script can run all the same.
    pub warning: bool,
    source: String,
    /// The number of the source's first line.
    first: usize,
}

/// A function that was being called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledFunction {
    what: String,
    /// The line within it and its module, where the error is there and not in the text shown.
    inside: Option<(usize, String)>,
    /// The line of the call, and where the lines of a module are counted, which.
    line: Option<usize>,
    module: Option<String>,
}

/// A function as a note names it: closures have no name that a script knows.
fn called(name: &str) -> String {
    if is_closure(name) { "a closure".into() } else { format!("`{}`", known_names(name)) }
}

impl std::fmt::Display for CalledFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "in {}", self.what)?;
        if let Some((line, module)) = &self.inside {
            write!(f, " at line {line} of `{module}`")?;
        }
        if let Some(line) = self.line {
            write!(f, ", called at line {line}")?;
        }
        self.module.as_ref().map_or(Ok(()), |module| write!(f, " of `{module}`"))
    }
}

/// One of several texts whose lines are numbered through.
#[derive(Debug, Clone)]
pub struct Section {
    /// The number of its first line.
    pub first: usize,
    /// What its reader calls that line.
    pub shown_first: usize,
    pub text: String,
    /// What it is called, if anything.
    pub name: Option<String>,
}

impl Section {
    /// The line behind its last one.
    pub fn end(&self) -> usize {
        self.first + self.text.lines().count().max(1)
    }

    fn holds(&self, line: usize) -> bool {
        (self.first..self.end()).contains(&line)
    }

    fn shown(&self, line: usize) -> usize {
        line - self.first + self.shown_first
    }
}

impl Report {
    /// A report without a place in a script.
    pub fn plain(error: &Error) -> Report {
        Report {
            message: error.message().to_string(),
            position: None,
            file: None,
            hint: error.hint_text().map(str::to_string),
            calls: Vec::new(),
            kind: error.kind(),
            warning: false,
            source: String::new(),
            first: 1,
        }
    }

    /// A report about a place in a script that did not run yet.
    pub(super) fn at(
        error: &Error,
        position: Position,
        source: &str,
        file: Option<&str>,
        warning: bool,
    ) -> Report {
        let position = position.line().map(|line| (line, position.position().unwrap_or(1)));
        let (file, source) = (file.map(str::to_string), source.to_string());
        Report { position, file, source, warning, ..Report::plain(error) }
    }

    /// What a panic says to people: memory that there is not, or a bug.
    pub(crate) fn panic(panic: &(dyn std::any::Any + Send)) -> Report {
        if panic.is::<Stopped>() {
            return Report::plain(&Error::interrupted());
        }
        if let Some(error) = memory::panic_of_memory(panic) {
            return Report::plain(&error);
        }
        let what = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Report::plain(
            &Error::internal(format!("internal error: {what}"))
                .hint("this is a bug in umklapp; please report it with the script"),
        )
    }

    pub(super) fn of(
        engine: &rhai::Engine,
        scope: &Scope,
        source: &str,
        file: Option<&str>,
        failure: &EvalAltResult,
    ) -> Report {
        let mut position = failure.position();
        let mut calls = Vec::new();
        let mut inner = failure;
        // Where the call is that is looked at: nothing for this text, else the module's name.
        let mut place: Option<&str> = None;
        // Inside a module the caret stays at the user's call.
        loop {
            match inner {
                EvalAltResult::ErrorInFunctionCall(name, origin, next, at) => {
                    match place {
                        None => {
                            if !at.is_none() {
                                position = *at;
                            }
                            calls.push(CalledFunction {
                                what: called(name),
                                inside: None,
                                line: at.line(),
                                module: None,
                            });
                        }
                        // Callers need not know how the stdlib does its work.
                        Some(module) if stdlib::MODULES.iter().any(|(name, _)| *name == module) => {}
                        Some(module) => calls.push(CalledFunction {
                            what: called(name),
                            inside: None,
                            line: at.line(),
                            module: Some(module.to_string()),
                        }),
                    }
                    let own = origin.is_empty() || Some(origin.as_str()) == file;
                    place = (!own).then_some(origin.as_str());
                    inner = next;
                    if own && !inner.position().is_none() {
                        position = inner.position();
                    }
                }
                EvalAltResult::ErrorInModule(name, next, at) => {
                    let there =
                        next.position().line().map_or(String::new(), |line| format!("line {line} of "));
                    calls.push(CalledFunction {
                        what: format!("{there}module `{name}`"),
                        inside: None,
                        line: at.line(),
                        module: None,
                    });
                    inner = next;
                }
                _ => break,
            }
        }
        let own = place.filter(|module| stdlib::MODULES.iter().all(|(name, _)| name != module));
        if let (Some(module), Some(line), Some(call)) = (own, inner.position().line(), calls.last_mut()) {
            call.inside = Some((line, module.to_string()));
        }
        calls.reverse();
        let assigned = is_assigned(source, position);
        let (mut message, mut hint, kind) = describe(engine, scope, inner, assigned);
        match inner {
            EvalAltResult::ErrorParsing(error, _) => {
                let mistake = syntax::mistake(error, position, source);
                (message, hint) = (mistake.message, mistake.hint);
                match habit(source, position) {
                    // What another language would mean there says more than what is missing.
                    Some(habit) => hint = Some(habit.to_string()),
                    None => position = mistake.position,
                }
            }
            EvalAltResult::ErrorFunctionNotFound(signature, _) => {
                let signature = known_names(signature);
                let name = signature.split('(').next().unwrap_or(&signature).trim();
                let imported =
                    || imported::Modules::of_text(engine, source, file).hint(&name.replace(" :: ", "::"));
                hint = own_function(source, name).or_else(imported).or(hint);
            }
            EvalAltResult::ErrorVariableNotFound(name, _) if evaluated::makes(source, name) => {
                hint = Some(format!(
                    "a closure takes `{name}` from outside when it is made, and `eval` has not made it there: take the \
                     value of the text, `let {name} = eval(..)`"
                ))
            }
            EvalAltResult::ErrorModuleNotFound(name, _) => {
                hint = Some(imported::not_there(engine, name, file))
            }
            EvalAltResult::ErrorDataRace(_, at) if at.is_none() && place.is_none() => {
                let ast = engine.compile_with_scope(scope, source);
                let mut all = ast.iter().flat_map(holding::methods_of_captured);
                // One of several may be meant.
                if let (Some(one), None) = (all.next(), all.next()) {
                    position = one.position;
                    hint = one.error.hint_text().map(str::to_string).or(hint);
                }
            }
            _ => {}
        }
        let position =
            (!position.is_none()).then(|| (position.line().unwrap_or(1), position.position().unwrap_or(1)));
        Report {
            message,
            position,
            file: file.map(str::to_string),
            hint,
            calls,
            kind,
            warning: false,
            source: source.to_string(),
            first: 1,
        }
    }

    /// Puts it into the piece of a longer text where it belongs.
    pub fn within(&mut self, sections: &[Section]) {
        let of = |line: usize| sections.iter().find(|section| section.holds(line));
        for call in self.calls.iter_mut().filter(|call| call.module.is_none()) {
            call.line = call.line.map(|line| of(line).map_or(line, |section| section.shown(line)));
        }
        if let Some((line, column)) = self.position
            && let Some(section) = of(line)
        {
            self.position = Some((section.shown(line), column));
            self.source.clone_from(&section.text);
            self.first = section.shown_first;
            self.file.clone_from(&section.name);
        }
    }

    /// The report as text, with colours if asked.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let span = self
            .position
            .and_then(|(line, column)| span_at(&self.source, (line + 1).checked_sub(self.first)?, column));
        let level = if self.warning { Level::WARNING } else { Level::ERROR };
        let title = level.primary_title(&self.message);
        let mut group = match &span {
            Some(span) => {
                let mut snippet = Snippet::source(&self.source).line_start(self.first);
                if let Some(file) = &self.file {
                    snippet = snippet.path(file.as_str());
                }
                let mark = AnnotationKind::Primary.span(span.clone());
                title.element(snippet.annotation(mark))
            }
            None => annotate_snippets::Group::with_title(title),
        };
        // Control characters are removed from titles and sources elsewhere, but not from these.
        let (inner, left_out, outer) = ends(&self.calls);
        let notes = (inner.iter().map(ToString::to_string))
            .chain((left_out > 0).then(|| format!("and {left_out} more calls")))
            .chain(outer.iter().map(ToString::to_string));
        for note in notes {
            group = group.element(Level::NOTE.message(plain(&note).into_owned()));
        }
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(plain(hint)));
        }
        renderer.render(&[group]).to_string()
    }
}

/// The calls that a report shows of many, as a recursion makes them: the innermost ones, how many are left out, and the
/// outermost ones.
fn ends(calls: &[CalledFunction]) -> (&[CalledFunction], usize, &[CalledFunction]) {
    const INNER: usize = 8;
    const OUTER: usize = 3;
    if calls.len() <= INNER + OUTER + 1 {
        return (calls, 0, &[]);
    }
    let (inner, rest) = calls.split_at(INNER);
    let (left_out, outer) = rest.split_at(rest.len() - OUTER);
    (inner, left_out.len(), outer)
}

/// How a script's own function is called, where it defines one of that name.
fn own_function(source: &str, name: &str) -> Option<String> {
    let defined = lex::definitions(source, name);
    let heads: Vec<String> = defined
        .iter()
        .filter_map(|range| {
            let text = &source[range.clone()];
            let head = &text[text.find("fn ")?..];
            Some(format!("`{}`", head[3..head.find('{')?].trim()))
        })
        .collect();
    (!heads.is_empty()).then(|| format!("the script defines {}", heads.join(" and ")))
}

/// What a line that cannot be parsed means in another language.
fn habit(source: &str, position: Position) -> Option<&'static str> {
    let (line, column) = position.line().zip(position.position())?;
    // Where a line ends too early the parser stumbles over the next one.
    let text = source.lines().nth(line - 1)?;
    let word = span_at(source, line, column).map_or("", |bytes| &source[bytes]);
    let at = text.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(byte, _)| byte);
    let before = line.checked_sub(2).and_then(|above| source.lines().nth(above)).unwrap_or("");
    habits::line(text, at, word).or_else(|| habits::line(before, before.len(), ""))
}

/// Whether the word at a position is given a value.
fn is_assigned(source: &str, position: Position) -> bool {
    let place = position.line().zip(position.position());
    let word = place.and_then(|(line, column)| span_at(source, line, column));
    let behind = word.map_or("", |word| source[word.end..].trim_start());
    behind.starts_with('=') && !behind.starts_with("==")
}

/// The bytes of the word that starts at a position.
fn span_at(source: &str, line: usize, column: usize) -> Option<std::ops::Range<usize>> {
    let start: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let text = source.get(start..)?.lines().next().unwrap_or("");
    let from: usize = text.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    let rest = text.get(from..)?;
    let word: usize = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
    let length = word.max(rest.chars().next().map_or(0, char::len_utf8));
    Some(start + from..start + from + length)
}

/// The error that a failure is for scripts.
pub(super) fn error_of(engine: &rhai::Engine, scope: &Scope, failure: &EvalAltResult) -> Error {
    let (message, hint, _) = describe(engine, scope, failure, false);
    let error = Error::input(message);
    hint.map_or(error.clone(), |hint| error.hint(hint))
}

/// One sentence, a hint and the kind for an error of Rhai or of ours.
fn describe(
    engine: &rhai::Engine,
    scope: &Scope,
    error: &EvalAltResult,
    assigned: bool,
) -> (String, Option<String>, ErrorKind) {
    match error {
        EvalAltResult::ErrorTerminated(value, _) if !value.is::<Error>() => {
            ("interrupted".into(), None, ErrorKind::Interrupted)
        }
        EvalAltResult::ErrorRuntime(value, _) | EvalAltResult::ErrorTerminated(value, _) => {
            match value.clone().try_cast::<Error>() {
                Some(error) => {
                    (error.message().to_string(), error.hint_text().map(str::to_string), error.kind())
                }
                None => match thrown(value) {
                    Some((message, hint)) => (message, Some(hint), ErrorKind::Input),
                    None => (value.to_string(), None, ErrorKind::Input),
                },
            }
        }
        EvalAltResult::ErrorStackOverflow(_) => (
            "functions call one another too deeply".into(),
            Some(format!(
                "at most {} calls fit into one another; a loop has no limit",
                engine.max_call_levels()
            )),
            ErrorKind::Input,
        ),
        EvalAltResult::ErrorPropertyNotFound(name, _) => (
            format!("the map has no `{name}`"),
            Some(format!("`\"{name}\" in map` tells whether it has, `map.keys()` what it has")),
            ErrorKind::Input,
        ),
        EvalAltResult::ErrorArrayBounds(count, index, _) => (
            format!("index {index} is outside an array of {count} elements"),
            Some(match count {
                0 => "it is empty; `push` adds an element".into(),
                n => format!("indices run from 0 to {}, or from -1 down to -{n} from the end", n - 1),
            }),
            ErrorKind::Input,
        ),
        // A method holds the value that a function given to it wants to look at.
        EvalAltResult::ErrorDataRace(..) => {
            let error = holding::error(None);
            (error.message().to_string(), error.hint_text().map(str::to_string), ErrorKind::Input)
        }
        EvalAltResult::ErrorFunctionNotFound(signature, _) if is_closure(signature) => {
            let call = tidy_types(signature);
            let given =
                call.split_once('(').map_or("", |(_, given)| given.strip_suffix(')').unwrap_or(given));
            let count = given.split(", ").filter(|kind| !kind.is_empty()).count();
            let like = ["a", "b", "c", "d"][..count.min(4)].join(", ");
            (
                format!("a closure is called with ({given}), and takes another number of values"),
                Some(format!("write it like |{like}| ..")),
                ErrorKind::Input,
            )
        }
        EvalAltResult::ErrorFunctionNotFound(signature, _) => {
            let signature = known_names(signature);
            let name = signature.split('(').next().unwrap_or(&signature).trim();
            let call = tidy_types(&signature);
            let habit = || habits::name(name).map(str::to_string);
            let value = || scope.get_value::<rhai::FnPtr>(name).map(|_| lint::called_value(name));
            let given =
                call.strip_suffix(')').and_then(|call| call.split_once('(')).map_or("", |call| call.1);
            let kinds: Vec<&str> = given.split(", ").collect();
            let hint = value()
                .or_else(|| habit().filter(|_| kinds.len() > 1))
                .or_else(|| registry::called_property(engine, &call))
                .or_else(habit)
                .or_else(|| wrong_types::no_call(engine, name, &kinds))
                .or_else(|| registry::did_you_mean(engine, name))
                .or_else(|| Some(nowhere(name, kinds[0])));
            (format!("no function `{call}`"), hint, ErrorKind::Input)
        }
        EvalAltResult::ErrorVariableNotFound(name, _) => {
            let variables: Vec<&str> = scope.iter().map(|(name, ..)| name).collect();
            let habit = habits::name(name).filter(|_| !assigned).map(str::to_string);
            let hint = habit.or_else(|| registry::no_variable(engine, name, &variables, assigned));
            (format!("no variable `{name}`"), hint, ErrorKind::Input)
        }
        EvalAltResult::ErrorModuleNotFound(name, _) => {
            (format!("no module `{name}`"), Some(imported::not_there(engine, name, None)), ErrorKind::Input)
        }
        EvalAltResult::ErrorDotExpr(text, _) if no_property(text).is_some() => {
            let (name, kind) = no_property(text).unwrap_or_default();
            let hint = registry::no_property(engine, &name, &kind);
            (format!("{kind} has no property `{name}`"), hint, ErrorKind::Input)
        }
        other => {
            let mut text = other.clone_message();
            if let Some(first) = text.get(..1) {
                text = format!("{}{}", first.to_lowercase(), &text[1..]);
            }
            let (text, hint) = complaints::explained(&text);
            (text, hint, ErrorKind::Input)
        }
    }
}

/// A hint for a name that nothing is like, called with a value of this type first.
fn nowhere(name: &str, kind: &str) -> String {
    let search = format!("`lookfor {name}` searches all texts");
    if kind.is_empty() || kind == "()" {
        search
    } else {
        format!("`help(\"{kind}\")` lists what it has, {search}")
    }
}

/// The property and the type of the language's "Unknown property 'x' - a getter is not registered for type 'T'".
fn no_property(text: &str) -> Option<(String, String)> {
    let mut parts = text.strip_prefix("Unknown property '")?.split('\'');
    let (name, about, kind) = (parts.next()?, parts.next()?, parts.next()?);
    about.contains("getter").then(|| (name.to_string(), registry::shown_name(kind).to_string()))
}

/// What scripts say with `throw #{ message: .., hint: .. }`.
fn thrown(value: &rhai::Dynamic) -> Option<(String, String)> {
    let map = value.read_lock::<rhai::Map>()?;
    let text = |key: &str| map.get(key).map(ToString::to_string);
    Some((text("message")?, text("hint")?))
}

/// A signature as scripts know the types.
fn tidy_types(signature: &str) -> String {
    let known = signature.replace("&str | ImmutableString | String", "string");
    let (name, types) = known.split_once(" (").unwrap_or((&known, ")"));
    let types = types.strip_suffix(')').unwrap_or(types);
    let types: Vec<&str> = types.split(", ").map(registry::shown_name).collect();
    format!("{}({})", name.replace(" :: ", "::"), types.join(", "))
}

/// The message of an error without its position.
trait BareMessage {
    fn clone_message(&self) -> String;
}

impl BareMessage for EvalAltResult {
    fn clone_message(&self) -> String {
        let text = self.to_string();
        match text.rfind(" (line ") {
            Some(at) if !self.position().is_none() => text[..at].to_string(),
            _ => text,
        }
    }
}
