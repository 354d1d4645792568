//! What was typed: a command, or a piece of script that is complete or wants more.

use rhai::{ParseErrorType, Position};

use crate::script::lex;

/// The commands that begin with `%`.
pub(super) const COMMANDS: [&str; 13] = [
    "time", "timeit", "run", "save", "edit", "history", "store", "restore", "reset", "cd", "backend", "help",
    "whos",
];

/// A line as the session takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input<'a> {
    /// Nothing but space and comments.
    Nothing,
    /// `exit` or `quit`.
    Leave,
    /// `?name`, `name?`, `help(name)`; empty for the overview.
    Help(&'a str),
    /// `??name`, `name??`: how it is written.
    Source(&'a str),
    /// `!command`, for the system's shell.
    Shell(&'a str),
    /// `lookfor word`.
    Search(&'a str),
    /// `whos`.
    Variables,
    /// `examples("question")`: scripts that answer it, or the text of one.
    Examples(&'a str),
    /// `tour()`, `tour(3)`: the next step of the tour, or that one.
    Tour(Option<usize>),
    /// `%name rest`.
    Magic(&'a str, &'a str),
    /// A piece of script.
    Script(&'a str),
}

/// Tells commands from script.
pub(super) fn read(line: &str) -> Input<'_> {
    let text = line.trim();
    if text.is_empty()
        || lex::tokens(text).iter().all(|t| matches!(t.kind, lex::TokenKind::Space | lex::TokenKind::Comment))
    {
        return Input::Nothing;
    }
    if let Some(rest) = text.strip_prefix('%') {
        let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        return Input::Magic(name, rest.trim());
    }
    if let Some(command) = text.strip_prefix('!')
        && !text.contains('\n')
        && !negation(command)
    {
        return Input::Shell(command.trim());
    }
    if let Some(name) = text.strip_prefix("??") {
        return Input::Source(name.trim());
    }
    if let Some(name) = text.strip_prefix('?') {
        return Input::Help(name.trim());
    }
    let plain = text.trim_end_matches(';').trim_end();
    let is_name = |s: &str| s.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '.'));
    if let Some(name) = plain.strip_suffix("??")
        && is_name(name)
    {
        return Input::Source(name);
    }
    if let Some(name) = plain.strip_suffix('?')
        && is_name(name)
    {
        return Input::Help(name);
    }
    match plain {
        "exit" | "quit" | "exit()" | "quit()" => return Input::Leave,
        "whos" | "whos()" => return Input::Variables,
        "help" => return Input::Help(""),
        "examples" | "examples()" => return Input::Examples(""),
        "tour" | "tour()" => return Input::Tour(None),
        _ => {}
    }
    let word = |command: &str| plain.strip_prefix(command)?.strip_prefix(char::is_whitespace).map(str::trim);
    if let Some(name) = word("help").filter(|name| is_name(name)) {
        return Input::Help(name);
    }
    if let Some(text) = word("lookfor") {
        return Input::Search(text.trim_matches('"'));
    }
    let called = |command: &str| -> Option<&str> {
        let inside = plain.strip_prefix(command)?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
        let name = inside.trim().trim_matches(['"', '`', '\'']);
        is_name(name).then_some(name)
    };
    if let Some(name) = called("help") {
        return Input::Help(name);
    }
    if let Some(step) = called("tour").and_then(|step| step.parse().ok()) {
        return Input::Tour(Some(step));
    }
    // A question has blanks and more, and stands in quotes.
    let quoted = |command: &str| -> Option<&str> {
        let inside = plain.strip_prefix(command)?.trim_start().strip_prefix('(')?.strip_suffix(')')?.trim();
        let between =
            |mark: char| inside.strip_prefix(mark)?.strip_suffix(mark).filter(|t| !t.contains(mark));
        ['"', '`', '\''].into_iter().find_map(between)
    };
    if let Some(text) = called("lookfor").or_else(|| quoted("lookfor")) {
        return Input::Search(text);
    }
    if let Some(text) = quoted("help") {
        return Input::Help(text);
    }
    quoted("examples").map_or(Input::Script(line), Input::Examples)
}

/// Whether what follows `!` is a condition of a script: a bracket, or a function that is called. A variable is known
/// only to the session.
fn negation(text: &str) -> bool {
    let name =
        text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':' | '.')).unwrap_or(text.len());
    text.starts_with(['(', '!']) || (name > 0 && text[name..].starts_with('('))
}

/// A parser of what is typed, without the language's functions.
pub(super) fn parser() -> rhai::Engine {
    let mut parser = rhai::Engine::new_raw();
    parser.set_max_expr_depths(256, 128).set_optimization_level(rhai::OptimizationLevel::None);
    parser
}

/// Whether a text ends with a comment `///`, which belongs to the function that follows.
fn documents(text: &str) -> bool {
    let last = lex::tokens(text).into_iter().rfind(|t| t.kind != lex::TokenKind::Space);
    last.is_some_and(|t| {
        t.kind == lex::TokenKind::Comment
            && text[t.range.clone()].starts_with("///")
            && !text[t.range].starts_with("////")
    })
}

/// Whether a piece of script wants another line: its brackets, its texts or its last statement are still open, or the
/// function that it describes is to come.
pub(super) fn incomplete(parser: &rhai::Engine, text: &str) -> bool {
    if !matches!(read(text), Input::Script(_)) {
        return lex::open_comment(text) || documents(text);
    }
    if lex::open_comment(text) {
        return true;
    }
    let Err(error) = parser.compile(text) else { return false };
    match error.err_type() {
        ParseErrorType::UnexpectedEOF => true,
        ParseErrorType::BadInput(rhai::LexError::UnterminatedString) => {
            // Only texts in back-ticks run over lines.
            lex::tokens(text).last().is_some_and(|t| {
                t.kind == (lex::TokenKind::Text { closed: false }) && text[t.range.clone()].starts_with('`')
            })
        }
        ParseErrorType::BadInput(_) => false,
        _ => past_the_end(text, error.position()),
    }
}

fn past_the_end(text: &str, position: Position) -> bool {
    let (Some(line), Some(column)) = (position.line(), position.position()) else {
        return position.is_none();
    };
    let text = text.trim_end();
    let last = text.lines().count();
    line > last || line == last && column > text.lines().next_back().map_or(0, |l| l.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_script() {
        for text in
            ["?kpm::dos", "kpm::dos?", "help(kpm::dos)", "help(\"kpm::dos\")", "help kpm::dos", "? kpm::dos"]
        {
            assert_eq!(read(text), Input::Help("kpm::dos"), "{text}");
        }
        for text in ["help()", "help", "?", "help();"] {
            assert_eq!(read(text), Input::Help(""), "{text}");
        }
        for text in ["??kpm::dos", "kpm::dos??", "?? kpm::dos "] {
            assert_eq!(read(text), Input::Source("kpm::dos"), "{text}");
        }
        assert_eq!(read("!ls -l *.npz"), Input::Shell("ls -l *.npz"));
        assert_eq!(read("! cat a"), Input::Shell("cat a"));
        for text in ["!(a && b)", "!!a", "!x.is_empty()", "!f(x)", "!a\n|| b"] {
            assert_eq!(read(text), Input::Script(text));
        }
        assert_eq!(read("lookfor moments"), Input::Search("moments"));
        assert_eq!(read("examples(\"band structure?\");"), Input::Examples("band structure?"));
        assert_eq!(read("help(\"band structure?\")"), Input::Help("band structure?"));
        assert_eq!(read("lookfor('total spin')"), Input::Search("total spin"));
        assert_eq!(read("tour()"), Input::Tour(None));
        assert_eq!(read("tour(3)"), Input::Tour(Some(3)));
        assert_eq!(read("%time f(1) "), Input::Magic("time", "f(1)"));
        assert_eq!(read("// nothing"), Input::Nothing);
        assert_eq!(read(" exit "), Input::Leave);
        for text in [
            "let helper = 1",
            "help_me(1)",
            "a ?? b",
            "lookformore",
            "whose",
            "7 % 4",
            "tours",
            "examples(a)",
        ] {
            assert_eq!(read(text), Input::Script(text));
        }
    }

    #[test]
    fn open_ends_want_more() {
        let parser = rhai::Engine::new_raw();
        for text in [
            "fn f(x) {",
            "let m = matrix([[1, 2],",
            "f(1,",
            "let x =",
            "1 +",
            "if a {",
            "#{ a: 1,",
            "print(`a",
            "/* a",
            "for i in 0..3 {\n  print(i);",
            "kpm::dos(h, #{",
            "x.",
            "let t = [\n 1,\n",
            "/// Twice.",
            "/// Twice.\n///\n/// # Example",
        ] {
            assert!(incomplete(&parser, text), "{text}");
        }
        for text in [
            "1 + 1",
            "let x = 1",
            "f(1))",
            "\"a",
            "x = = 2",
            "fn f(x) { x }",
            "?f(",
            "%time f(",
            "",
            "// a",
            "//// a",
            "/// a\nfn f() { 1 }",
            "`a\nb`",
            "'ab",
        ] {
            assert!(!incomplete(&parser, text), "{text}");
        }
    }
}
