//! Errors as people read them: one sentence, the line with a caret, the calls that led there, a hint.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use rhai::{EvalAltResult, Position, Scope};

use super::{registry, stdlib};
use crate::error::{Error, Kind, nearest};

/// A finished report of a failed script.
#[derive(Debug, Clone)]
pub struct Report {
    /// The sentence.
    pub message: String,
    /// Line and column, from 1, in the user's text.
    pub position: Option<(usize, usize)>,
    /// Name of the script file, if it has one.
    pub file: Option<String>,
    /// The remedy.
    pub hint: Option<String>,
    /// Functions that were being called, innermost first, with their lines.
    pub calls: Vec<String>,
    /// What kind of failure it is.
    pub kind: Kind,
    /// Whether the script can run all the same.
    pub warning: bool,
    source: String,
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

    pub(super) fn panic(panic: &(dyn std::any::Any + Send)) -> Report {
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
        // Where the call stands that is looked at: nothing for this text, else the module's name.
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
                            calls.push(format!("in `{name}`{}", line_of(*at)));
                        }
                        // How the stdlib does its work is no news for its callers.
                        Some(module) if stdlib::MODULES.iter().any(|(name, _)| *name == module) => {}
                        Some(module) => calls.push(format!("in `{name}`{} of `{module}`", line_of(*at))),
                    }
                    let own = origin.is_empty() || Some(origin.as_str()) == file;
                    place = (!own).then_some(origin.as_str());
                    inner = next;
                    if own && !inner.position().is_none() {
                        position = inner.position();
                    }
                }
                EvalAltResult::ErrorInModule(name, next, at) => {
                    calls.push(format!("in module `{name}`{}", line_of(*at)));
                    inner = next;
                }
                _ => break,
            }
        }
        calls.reverse();
        let (message, hint, kind) = describe(engine, scope, inner);
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
        }
    }

    /// The report as text, with colours if asked.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let span = self.position.and_then(|(line, column)| span_at(&self.source, line, column));
        let level = if self.warning { Level::WARNING } else { Level::ERROR };
        let title = level.primary_title(&self.message);
        let mut group = match &span {
            Some(span) => {
                let mut snippet = Snippet::source(&self.source).line_start(1);
                if let Some(file) = &self.file {
                    snippet = snippet.path(file.as_str());
                }
                let mark = AnnotationKind::Primary.span(span.clone());
                title.element(snippet.annotation(mark))
            }
            None => annotate_snippets::Group::with_title(title),
        };
        for call in &self.calls {
            group = group.element(Level::NOTE.message(call.as_str()));
        }
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
        }
        renderer.render(&[group]).to_string()
    }
}

fn line_of(at: Position) -> String {
    at.line().map(|line| format!(", called at line {line}")).unwrap_or_default()
}

/// The bytes of the word that starts at a position.
fn span_at(source: &str, line: usize, column: usize) -> Option<std::ops::Range<usize>> {
    let start: usize = source.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let text = source.get(start..)?.lines().next().unwrap_or("");
    let from: usize = text.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    let rest = text.get(from..)?;
    let word: usize = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
    let length = word.max(rest.chars().next().map_or(0, char::len_utf8));
    Some(start + from..start + from + length)
}

/// One sentence, a hint and the kind for an error of Rhai or of ours.
fn describe(engine: &rhai::Engine, scope: &Scope, error: &EvalAltResult) -> (String, Option<String>, Kind) {
    match error {
        EvalAltResult::ErrorRuntime(value, _) => match value.clone().try_cast::<Error>() {
            Some(error) => (error.message().to_string(), error.hint_text().map(str::to_string), error.kind()),
            None => match thrown(value) {
                Some((message, hint)) => (message, Some(hint), Kind::Input),
                None => (value.to_string(), None, Kind::Input),
            },
        },
        EvalAltResult::ErrorStackOverflow(_) => (
            "functions call one another too deeply".into(),
            Some(format!(
                "at most {} calls fit into one another; a loop has no limit",
                engine.max_call_levels()
            )),
            Kind::Input,
        ),
        EvalAltResult::ErrorPropertyNotFound(name, _) => (
            format!("the map has no `{name}`"),
            Some(format!("`\"{name}\" in map` tells whether it has, `map.keys()` what it has")),
            Kind::Input,
        ),
        // A method holds the value that a function given to it wants to look at.
        EvalAltResult::ErrorDataRace(..) => (
            "a function uses the value whose method calls it".into(),
            Some("copy the value before, like `let v = u;`, and use `v` in the function".into()),
            Kind::Input,
        ),
        EvalAltResult::ErrorTerminated(..) => ("interrupted".into(), None, Kind::Interrupted),
        EvalAltResult::ErrorFunctionNotFound(signature, _) => {
            let name = signature.split('(').next().unwrap_or(signature).trim();
            let hint = registry::did_you_mean(engine, name);
            (format!("no function `{}`", tidy_types(signature)), hint, Kind::Input)
        }
        EvalAltResult::ErrorVariableNotFound(name, _) => {
            let mut names = registry::names(engine);
            names.splice(..0, scope.iter().map(|(name, ..)| name.to_string()));
            let hint =
                nearest(name, names.iter().map(String::as_str)).map(|n| format!("did you mean `{n}`?"));
            (format!("no variable `{name}`"), hint, Kind::Input)
        }
        EvalAltResult::ErrorModuleNotFound(name, _) => {
            let modules = registry::modules(engine);
            let near = nearest(name, modules.iter().map(String::as_str));
            let hint = near.map_or(format!("own modules are files beside the script: `{name}.rhai`"), |n| {
                format!("did you mean `{n}`?")
            });
            (format!("no module `{name}`"), Some(hint), Kind::Input)
        }
        other => {
            let mut text = other.clone_message();
            if let Some(first) = text.get(..1) {
                text = format!("{}{}", first.to_lowercase(), &text[1..]);
            }
            // Two indices are no syntax of the language; matrices take them as one array.
            let indices = text.contains("matching [ in this index expression");
            let hint = indices.then(|| "for two indices write `m[[i, j]]` or `m.at(i, j)`".to_string());
            (text, hint, Kind::Input)
        }
    }
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
    let types: Vec<&str> = types
        .trim_end_matches(')')
        .split(", ")
        .map(|t| match t {
            "i64" => "int",
            "f64" => "float",
            "Fn" => "function",
            other => other,
        })
        .collect();
    format!("{}({})", name.replace(" :: ", "::"), types.join(", "))
}

/// The message of an error without its position.
trait Message {
    fn clone_message(&self) -> String;
}

impl Message for EvalAltResult {
    fn clone_message(&self) -> String {
        let text = self.to_string();
        match text.rfind(" (line ") {
            Some(at) if !self.position().is_none() => text[..at].to_string(),
            _ => text,
        }
    }
}
