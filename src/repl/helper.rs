//! Answers the line editor while a line is typed: completion, hints, colours, and whether the input is complete.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hinter, HistoryHinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Context, Event, EventContext, Helper, RepeatCount, Result,
};

use super::complete::{self, Names, Proposals};
use super::{input, paint};
use crate::script::lex::{self, TokenKind};

/// Everything the editor asks.
pub(super) struct Assistant {
    pub names: Rc<RefCell<Names>>,
    pub colour: bool,
    files: FilenameCompleter,
    history: HistoryHinter,
    parser: rhai::Engine,
}

impl Assistant {
    pub fn new(names: Rc<RefCell<Names>>, colour: bool) -> Assistant {
        Assistant {
            names,
            colour,
            files: FilenameCompleter::new(),
            history: HistoryHinter::new(),
            parser: input::parser(),
        }
    }
}

impl Helper for Assistant {}

/// A hint: the rest of an earlier input, or the parameters of a function, which are shown only.
pub(super) struct Hint {
    text: String,
    taken: bool,
}

impl rustyline::hint::Hint for Hint {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        self.taken.then_some(self.text.as_str())
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, ctx: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        match complete::proposals(&self.names.borrow(), &line[..pos]) {
            Proposals::Files => self.files.complete(line, pos, ctx),
            Proposals::Words(start, found) => {
                let pairs = found.into_iter().map(|p| Pair { display: p.shown, replacement: p.put });
                Ok((start, pairs.collect()))
            }
        }
    }
}

impl Hinter for Assistant {
    type Hint = Hint;

    fn hint(&self, line: &str, pos: usize, ctx: &Context<'_>) -> Option<Hint> {
        if pos < line.len() {
            return None;
        }
        if let Some(text) = complete::parameters(&self.names.borrow(), line) {
            return Some(Hint { text, taken: false });
        }
        // A hint of several lines would break the layout of the screen.
        let text = self.history.hint(line, pos, ctx).filter(|text| !text.contains('\n'))?;
        Some(Hint { text, taken: true })
    }
}

impl Validator for Assistant {
    fn validate(&self, ctx: &mut ValidationContext) -> Result<ValidationResult> {
        Ok(if input::incomplete(&self.parser, ctx.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, pos: usize) -> Cow<'l, str> {
        if self.colour { Cow::Owned(coloured(line, pos)) } else { Cow::Borrowed(line) }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.colour { Cow::Owned(paint::prompt(prompt)) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { Cow::Owned(paint::faint(hint)) } else { Cow::Borrowed(hint) }
    }

    fn highlight_candidate<'c>(&self, candidate: &'c str, _completion: CompletionType) -> Cow<'c, str> {
        Cow::Borrowed(candidate)
    }

    fn highlight_char(&self, _line: &str, _pos: usize, kind: CmdKind) -> bool {
        self.colour && kind != CmdKind::ForcedRefresh
    }
}

/// Enter within open brackets begins a line that is indented by their depth.
pub(super) struct Indent;

impl ConditionalEventHandler for Indent {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, ctx: &EventContext<'_>) -> Option<Cmd> {
        let line = ctx.line();
        if ctx.pos() < line.len() || !input::incomplete(&input::parser(), line) {
            return None;
        }
        let depth = lex::depth(line)?;
        Some(Cmd::Insert(1, format!("\n{}", " ".repeat(4 * depth))))
    }
}

/// The line with its colours; the bracket at the cursor and its partner stand out.
fn coloured(line: &str, pos: usize) -> String {
    let bracket = |at: usize| lex::partner(line, at).map(|partner| [at, partner]);
    let marked = bracket(pos).or_else(|| bracket(pos.checked_sub(1)?)).unwrap_or([usize::MAX; 2]);
    let mut out = String::with_capacity(2 * line.len());
    for token in lex::tokens(line) {
        let text = &line[token.range.clone()];
        let last = token.range.end - 1;
        match token.kind {
            TokenKind::Keyword => out.push_str(&paint::keyword(text)),
            TokenKind::Text { .. } => out.push_str(&paint::text(text)),
            TokenKind::Number => out.push_str(&paint::number(text)),
            TokenKind::Comment => out.push_str(&paint::faint(text)),
            TokenKind::Mark if marked.contains(&last) => out.push_str(&paint::partner(text)),
            _ => out.push_str(text),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_add_nothing_but_colours() {
        let line = "let x = f(1.5, \"a\"); // note";
        for pos in 0..=line.len() {
            assert_eq!(console::strip_ansi_codes(&coloured(line, pos)), line);
        }
        // The cursor behind the closing bracket marks both.
        assert_eq!(coloured("f(1)", 4).matches("\x1b[1;").count(), 2);
        assert_eq!(coloured("f 1", 3).matches("\x1b[1;").count(), 0);
    }
}
