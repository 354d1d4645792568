//! What a text that cannot be parsed lacks, in the words of its reader: which bracket is open, where a mark is missing.

use rhai::{LexError, ParseErrorType, Position};

use super::lex::{self, Token, TokenKind};
use super::recover;

/// What is wrong, where, and what to do about it.
pub(super) struct Mistake {
    pub message: String,
    pub hint: Option<String>,
    pub position: Position,
}

/// A bracket that is open, by its byte.
#[derive(Clone, Copy)]
struct Opened {
    at: usize,
    mark: char,
    /// How far its line is indented.
    indent: usize,
}

impl Opened {
    fn closing(self) -> char {
        match self.mark {
            '(' => ')',
            '[' => ']',
            _ => '}',
        }
    }
}

/// What the parser stumbled over, and what stands around it.
struct Place<'a> {
    source: &'a str,
    /// All words and marks of the text.
    tokens: Vec<Token>,
    /// The number of the token where the parser stopped; that of the last one plus one at the end of the text.
    at: usize,
}

impl<'a> Place<'a> {
    fn new(source: &'a str, position: Position) -> Place<'a> {
        let mut tokens = lex::tokens(source);
        tokens.retain(|t| !matches!(t.kind, TokenKind::Space | TokenKind::Comment));
        let byte = recover::byte(source, position).filter(|at| *at < source.len());
        let at = byte.and_then(|byte| tokens.iter().position(|t| t.range.end > byte)).unwrap_or(tokens.len());
        Place { source, tokens, at }
    }

    fn word(&self, k: usize) -> &'a str {
        self.tokens.get(k).map_or("", |t| &self.source[t.range.clone()])
    }

    /// The token where the parser stopped.
    fn here(&self) -> &'a str {
        self.word(self.at)
    }

    fn before(&self) -> &'a str {
        self.at.checked_sub(1).map_or("", |k| self.word(k))
    }

    fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The line of a byte, from 1.
    fn line(&self, byte: usize) -> usize {
        self.source[..byte].matches('\n').count() + 1
    }

    fn indent(&self, byte: usize) -> usize {
        let start = self.source[..byte].rfind('\n').map_or(0, |at| at + 1);
        self.source[start..].chars().take_while(|c| *c == ' ' || *c == '\t').count()
    }

    /// The brackets that are open before the token where the parser stopped.
    fn open(&self) -> Vec<Opened> {
        let mut open = Vec::new();
        for k in 0..self.at.min(self.tokens.len()) {
            self.follow(&mut open, k);
        }
        open
    }

    /// Follows a token; gives the bracket that it closes.
    fn follow(&self, open: &mut Vec<Opened>, k: usize) -> Option<Opened> {
        let start = self.tokens[k].range.start;
        match self.word(k) {
            mark @ ("(" | "[" | "{" | "#{") => {
                let mark = mark.chars().next_back()?;
                open.push(Opened { at: start, mark, indent: self.indent(start) });
                None
            }
            ")" | "]" | "}" => open.pop(),
            _ => None,
        }
    }

    /// The bracket that is not closed at the end of the text. Of braces it is the one that a brace further left has
    /// closed, if there is one: that brace was meant for another.
    fn unclosed(&self) -> Option<Opened> {
        let mut open: Vec<Opened> = Vec::new();
        let mut wrong = None;
        for k in 0..self.tokens.len() {
            let closed = self.follow(&mut open, k);
            let indent = self.indent(self.tokens[k].range.start);
            wrong = wrong.or(closed.filter(|own| {
                let outer = open.iter().any(|outer| outer.mark == '{' && outer.indent == indent);
                own.mark == '{' && own.indent > indent && outer
            }));
        }
        open.last().map(|last| wrong.filter(|_| last.mark == '{').unwrap_or(*last))
    }

    fn position(&self, byte: usize) -> Position {
        let start = self.source[..byte].rfind('\n').map_or(0, |at| at + 1);
        let column = self.source[start..byte].chars().count() + 1;
        match (u16::try_from(self.line(byte)), u16::try_from(column)) {
            (Ok(line), Ok(column)) => Position::new(line, column),
            _ => Position::NONE,
        }
    }
}

/// Words that begin a statement.
const STATEMENTS: [&str; 11] =
    ["let", "const", "for", "while", "loop", "return", "throw", "try", "import", "break", "continue"];

/// What is wrong with a text that the parser refuses at a position.
pub(super) fn mistake(error: &ParseErrorType, position: Position, source: &str) -> Mistake {
    let own = error.to_string();
    let lowered = own.get(..1).map_or(own.clone(), |first| format!("{}{}", first.to_lowercase(), &own[1..]));
    let place = Place::new(source, position);
    // What is missing at the end is missing behind the last word, not behind the blank lines that follow.
    let last = place.tokens.last().filter(|_| place.at_end());
    let position = last.map_or(position, |last| place.position(last.range.end));
    let found = unclosed_at_end(error, &place).or_else(|| {
        let (message, hint) = missing(error, &place)?;
        Some(Mistake { message, hint: Some(hint), position })
    });
    let mistake = found.unwrap_or_else(|| Mistake { message: lowered, hint: hint(error, &place), position });
    Mistake { message: format!("syntax error: {}", mistake.message), ..mistake }
}

/// A text that ends within a bracket, a string or an expression.
fn unclosed_at_end(error: &ParseErrorType, place: &Place) -> Option<Mistake> {
    let open_text = place.tokens.last().filter(|t| t.kind == TokenKind::Text { closed: false });
    let at = |byte: usize, what: &str, hint: String| {
        let message = format!("{what} is not closed");
        Some(Mistake { message, hint: Some(hint), position: place.position(byte) })
    };
    if let Some(text) = open_text.filter(|_| place.at + 1 >= place.tokens.len()) {
        let mark = &place.source[text.range.start..text.range.start + 1];
        return match mark {
            "`" => at(text.range.start, "this text", "a back-tick ends it, and `}` each value in it".into()),
            _ => at(
                text.range.start,
                "this text",
                format!("`{mark}` ends it on the same line; a text of several lines stands in back-ticks"),
            ),
        };
    }
    if !place.at_end() {
        return None;
    }
    if let Some(open) = place.unclosed() {
        let mark =
            if place.source[open.at..].starts_with("#{") { "#{".into() } else { open.mark.to_string() };
        let whole = open.mark == '{' && mark == "{";
        let hint = format!("`{}` closes {}", open.closing(), if whole { "the block" } else { "it" });
        return at(open.at, &format!("this `{mark}`"), hint);
    }
    let incomplete = matches!(error, ParseErrorType::UnexpectedEOF) && !place.before().is_empty();
    incomplete.then(|| Mistake {
        message: format!("the script ends behind `{}`", place.before()),
        hint: Some("the statement needs more".into()),
        position: place.tokens.last().map_or(Position::NONE, |t| place.position(t.range.start)),
    })
}

/// A mark that is missing before the place where the parser stopped.
fn missing(error: &ParseErrorType, place: &Place) -> Option<(String, String)> {
    let open = place.open();
    let last = open.last().copied();
    let here = place.here();
    let of_line = |open: Opened| format!("the `{}` of line {}", open.mark, place.line(open.at));
    let closer = matches!(here, ")" | "]" | "}");
    if let Some(open) = last.filter(|open| open.mark != '{') {
        if closer && !here.starts_with(open.closing()) {
            let hint = format!("{} is closed by `{}`, not by `{here}`", of_line(open), open.closing());
            return Some((format!("`{}` is missing", open.closing()), hint));
        }
        let lacks = matches!(error, ParseErrorType::MissingToken(..));
        if lacks && (here == ";" || STATEMENTS.contains(&here)) {
            let hint = format!("{} is not closed before this", of_line(open));
            return Some((format!("`{}` is missing", open.closing()), hint));
        }
    }
    if closer && !open.iter().any(|open| here.starts_with(open.closing())) {
        return Some((format!("a `{here}` too many"), format!("nothing is open that `{here}` would close")));
    }
    match error {
        ParseErrorType::MissingToken(mark, _) if mark == ";" => {
            let ended = place.at.checked_sub(1).map(|k| place.line(place.tokens[k].range.start))?;
            let new_line = place.line(place.tokens.get(place.at)?.range.start) > ended;
            let hint = match here {
                _ if new_line => format!("line {ended} ends a statement: put `;` behind it"),
                "," => {
                    "several values stand in an array, `[1, 2]`; each variable has a `let` of its own".into()
                }
                ":" => "a variable has no type, `let x = 3;`; a map is `#{ key: value }`".into(),
                _ => "`;` stands between statements".into(),
            };
            Some((format!("`;` is missing before `{here}`"), hint))
        }
        ParseErrorType::MissingToken(mark, about) if mark == "," => {
            let hint = match (here, about.contains("parameter")) {
                ("=" | ":", true) => "parameters have names only, as in `fn f(a, b) { .. }`",
                ("=" | ":", false) if about.contains("call") => {
                    "options stand in a map behind the other arguments: `f(x, #{ key: value })`"
                }
                ("}", _) => return None,
                (_, true) => "`|a, b| ..` is a function of two parameters",
                _ => "`,` stands between two of them",
            };
            Some((format!("`,` is missing before `{here}`"), hint.into()))
        }
        _ => None,
    }
}

/// The remedy for what the parser's own sentence says.
fn hint(error: &ParseErrorType, place: &Place) -> Option<String> {
    let here = place.here();
    Some(match error {
        ParseErrorType::MissingToken(mark, _) => match mark.as_str() {
            ":" => "a map is `#{ a: 1, b: 2 }`".into(),
            // Two indices are no syntax of the language; matrices take them as one array.
            "]" if here == "," => "for two indices write `m[[i, j]]` or `m.at(i, j)`".into(),
            "}" if here == ";" => "`,` stands between the entries of a map".into(),
            "}" => "a map is `#{ a: 1, b: 2 }`; a key that is no name stands in quotes".into(),
            "in" => "`for x in a { .. }`, and `for (x, i) in a { .. }` for elements and their numbers".into(),
            "{" => "blocks stand in braces: `if a { .. } else { .. }`, `for i in 0..3 { .. }`".into(),
            ")" | "]" => "two values stand side by side: an operator or `,` is missing between them".into(),
            "catch" => "`try { .. } catch (e) { print(e.message); }`".into(),
            _ => return None,
        },
        ParseErrorType::VariableExpected => match here {
            "(" | "[" => "each variable has a `let` of its own: `let a = x[0]; let b = x[1];`".into(),
            "=" => "a name stands before `=`: `let x = 3;`".into(),
            _ if place.before() == "::" => {
                "a function of the module stands behind `::`, as in `kpm::dos(h)`".into()
            }
            _ if lex::KEYWORDS.contains(&here) || here == "fn" => {
                format!("`{here}` is a word of the language: take another name")
            }
            _ => "a name begins with a letter or `_`".into(),
        },
        ParseErrorType::PropertyExpected => "a property or a method stands behind `.`, as in `x.len`".into(),
        ParseErrorType::MismatchedType(wanted, _) if wanted.contains("bool") => {
            "a condition is true or false, like `x != 0` or `x == y`".into()
        }
        ParseErrorType::MismatchedType(wanted, _) if wanted.contains("iterable") => {
            "`for i in 0..3` counts 0, 1, 2; an array or a Series gives its elements".into()
        }
        ParseErrorType::MalformedIndexExpr(_) => {
            "elements of arrays and texts are numbered, `a[0]`; those of maps have names, `m[\"x\"]`".into()
        }
        ParseErrorType::Reserved(word) if lex::KEYWORDS.contains(&word.as_str()) || word == "this" => {
            format!("`{word}` is a word of the language: take another name")
        }
        ParseErrorType::Reserved(word) if word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            format!("`{word}` is kept for the language, which does not use it: take another name")
        }
        ParseErrorType::Reserved(mark) => format!("`{mark}` is no operator here"),
        ParseErrorType::UnknownOperator(mark) if mark == "?" => {
            "`if a { b } else { c }` is one of two values".into()
        }
        ParseErrorType::UnknownOperator(mark) => format!("`{mark}` is no operator here"),
        ParseErrorType::LoopBreak => "`return` leaves a function, and `exit()` the script".into(),
        ParseErrorType::AssignmentToConstant(name) => {
            format!("`let {name} = ..` makes it a variable, which can change")
        }
        ParseErrorType::AssignmentToInvalidLHS(_) => {
            "a variable, an element or a property stands before `=`".into()
        }
        ParseErrorType::DuplicatedProperty(_) => "a map has each key once".into(),
        ParseErrorType::DuplicatedVariable(_) | ParseErrorType::FnDuplicatedParam(..) => {
            "take another name".into()
        }
        ParseErrorType::FnDuplicatedDefinition(..) => {
            "functions of one name differ in the number of parameters".into()
        }
        ParseErrorType::WrongFnDefinition => {
            "move it out of the block; `let f = |x| ..` can stand anywhere".into()
        }
        ParseErrorType::FnMissingName
        | ParseErrorType::FnMissingParams(_)
        | ParseErrorType::FnMissingBody(_) => {
            "`fn name(x) { 2 * x }` defines a function; `|x| 2 * x` is one without a name".into()
        }
        ParseErrorType::WrongExport => "move it out of the block".into(),
        ParseErrorType::ExprTooDeep => "name parts of it with `let`".into(),
        ParseErrorType::WrongDocComment => {
            "`///` describes the function below it; `//` is any other comment".into()
        }
        ParseErrorType::WrongSwitchDefaultCase => "`_ => ..` stands behind all other cases".into(),
        ParseErrorType::BadInput(wrong) => return lexical(wrong, place),
        _ => return None,
    })
}

/// The remedy for a character or a number that cannot be read, or a token that is out of place.
fn lexical(wrong: &LexError, place: &Place) -> Option<String> {
    let here = place.here();
    Some(match wrong {
        LexError::UnexpectedInput(_) if here == "_" => {
            "`_` is no name; in the session `ans` is the last value".into()
        }
        LexError::UnexpectedInput(_) if here == ":" && place.before().is_empty() => {
            "`:` begins nothing; commands of the session begin with `%`, and `%help` lists them".into()
        }
        LexError::UnexpectedInput(_) if matches!(here, "else" | "catch" | "until") => {
            format!("`{here}` follows the `}}` of a block that it belongs to")
        }
        LexError::UnexpectedInput(_) if matches!(here, ";" | ")" | "]" | "}" | ",") => {
            format!("a value is missing before `{here}`")
        }
        LexError::UnexpectedInput(_)
            if here.chars().all(|c| c.is_ascii_punctuation()) && !here.is_empty() =>
        {
            format!("`{here}` stands between two values")
        }
        LexError::UnterminatedString => {
            "a quote ends it on the same line; a text of several lines stands in back-ticks".into()
        }
        LexError::MalformedNumber(_) => "numbers are written like 12, 1.5e-3, 0xff".into(),
        LexError::MalformedEscapeSequence(_) => "`\\\\` is a backslash, `\\n` the end of a line".into(),
        LexError::MalformedChar(_) => "texts stand in double quotes".into(),
        LexError::ImproperSymbol(mark, _) if mark == "=" => {
            "`==` compares, `=` gives a value to a variable".into()
        }
        LexError::ImproperSymbol(..) => "`==`, `!=`, `<`, `<=`, `>`, `>=` compare; `=` gives a value".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    #[test]
    fn what_is_open_at_the_end_is_pointed_at() {
        for (script, message, place) in [
            ("if true {\n  print(1);\n", "this `{` is not closed", (1, 9)),
            ("let a = [1, 2,\n  3", "this `[` is not closed", (1, 9)),
            ("print((1 + 2)", "this `(` is not closed", (1, 6)),
            ("let m = #{ a: 1, b: 2\n", "this `#{` is not closed", (1, 9)),
            ("let s = \"abc;\nprint(s);", "this text is not closed", (1, 9)),
            ("let s = `abc ${1", "this text is not closed", (1, 9)),
            ("let f = |x| x +", "the script ends behind `+`", (1, 15)),
            // The brace that is further left was meant for the function.
            ("fn f(x) {\n  if x > 1 {\n    print(x);\n}\nprint(f(2));\n", "this `{` is not closed", (2, 12)),
            ("fn f(x) {\n  if x > 1 {\n    print(x);\n  }\nprint(f(2));\n", "this `{` is not closed", (1, 9)),
        ] {
            let report = Engine::new().unwrap().eval(script).unwrap_err();
            assert_eq!(report.message, format!("syntax error: {message}"), "{script}");
            assert_eq!(report.position, Some(place), "{script}");
            assert!(report.hint.is_some(), "{script}");
        }
    }

    #[test]
    fn any_text_can_be_refused() {
        let engine = Engine::new().unwrap();
        let script =
            "fn f(a, b) { let x = `a ${b}` + \"c\"; [1, #{ é: 2 }] }\nfor (i, j) in f(1, 2) { print(i); }";
        let mut refused = 0;
        for (cut, _) in script.char_indices() {
            for more in ["", ")", "]", "}", ";", "=", "let", "\"", "`", "²", "\n\n"] {
                let text = format!("{}{more}{}", &script[..cut], &script[cut..]);
                for text in [&text, &text[..cut + more.len()]] {
                    if let Err(e) = engine.rhai().compile(text) {
                        let place = super::mistake(&e.0, e.1, text).position;
                        assert!(
                            place.line().is_none_or(|line| line <= text.lines().count().max(1)),
                            "{text}"
                        );
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 1000, "{refused}");
    }
}
