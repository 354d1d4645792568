//! The words of a line as it is typed, for colours, brackets and completion. Unlike the language's own parser
//! it accepts lines that are not finished or wrong.

use std::ops::Range;

/// What a piece of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Space,
    Comment,
    /// A text or character; `closed` if its end is there.
    Text {
        closed: bool,
    },
    Number,
    Keyword,
    Word,
    /// `::`, `#{`, or one character.
    Mark,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub range: Range<usize>,
}

/// The words that are the language's own.
pub const KEYWORDS: [&str; 27] = [
    "let",
    "const",
    "if",
    "else",
    "switch",
    "do",
    "while",
    "until",
    "loop",
    "for",
    "in",
    "continue",
    "break",
    "return",
    "throw",
    "try",
    "catch",
    "fn",
    "private",
    "import",
    "export",
    "as",
    "global",
    "true",
    "false",
    "this",
    "is_def_var",
];

/// Cuts a line into pieces. Nothing is left out: joined, they are the line.
pub fn tokens(line: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        let rest = &line[at..];
        let (kind, length) = if c.is_whitespace() {
            (TokenKind::Space, run(rest, char::is_whitespace))
        } else if rest.starts_with("//") {
            (TokenKind::Comment, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (TokenKind::Comment, block_comment(rest).unwrap_or(rest.len()))
        } else if matches!(c, '"' | '`' | '\'') {
            let (length, closed) = text(rest, c);
            (TokenKind::Text { closed }, length)
        } else if c.is_ascii_digit() {
            (TokenKind::Number, number(rest))
        } else if c.is_alphabetic() || c == '_' {
            let length = run(rest, |c| c.is_alphanumeric() || c == '_');
            let kind = if KEYWORDS.contains(&&rest[..length]) { TokenKind::Keyword } else { TokenKind::Word };
            (kind, length)
        } else if rest.starts_with("::") || rest.starts_with("#{") {
            (TokenKind::Mark, 2)
        } else {
            (TokenKind::Mark, c.len_utf8())
        };
        found.push(Token { kind, range: at..at + length });
        at += length;
    }
    found
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn number(text: &str) -> usize {
    let mut before = ' ';
    let mut point = false;
    let mut end = text.len();
    for (i, c) in text.char_indices() {
        // `1..2` is a range, `1.abs()` a method; a sign belongs to an exponent.
        let next = text[i + c.len_utf8()..].chars().next().unwrap_or(' ');
        let belongs = match c {
            '.' => !point && next != '.' && !next.is_alphabetic() && next != '_',
            '+' | '-' => matches!(before, 'e' | 'E') && point,
            _ => c.is_alphanumeric() || c == '_',
        };
        if !belongs {
            end = i;
            break;
        }
        point |= c == '.' || c == 'e';
        before = c;
    }
    end
}

/// Length of the text that starts here, and whether it ends.
fn text(rest: &str, quote: char) -> (usize, bool) {
    let mut escaped = false;
    let mut inside = 0;
    let mut before = ' ';
    for (i, c) in rest.char_indices().skip(1) {
        if quote == '`' {
            // `${ .. }` may hold texts of its own.
            if c == '{' && (before == '$' || inside > 0) {
                inside += 1;
            } else if c == '}' && inside > 0 {
                inside -= 1;
            }
        } else if escaped {
            escaped = false;
            continue;
        } else if c == '\\' {
            escaped = true;
            continue;
        }
        if c == quote && inside == 0 {
            return (i + c.len_utf8(), true);
        }
        before = c;
    }
    (rest.len(), false)
}

/// Length of the comment that starts here, if it ends.
fn block_comment(rest: &str) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

/// Whether a block comment is still open at the end.
pub fn open_comment(line: &str) -> bool {
    tokens(line).pop().is_some_and(|t| {
        let text = &line[t.range];
        t.kind == TokenKind::Comment && text.starts_with("/*") && block_comment(text).is_none()
    })
}

/// How many brackets are open at the end of a text; none within a text or comment, where blanks would belong to it.
pub fn depth(line: &str) -> Option<usize> {
    let tokens = tokens(line);
    let open = tokens.last().is_some_and(|t| t.kind == TokenKind::Text { closed: false });
    if open || open_comment(line) {
        return None;
    }
    let marks = tokens.iter().filter(|t| t.kind == TokenKind::Mark).map(|t| &line[t.range.clone()]);
    Some(marks.fold(0usize, |depth, mark| match mark {
        "(" | "[" | "{" | "#{" => depth + 1,
        ")" | "]" | "}" => depth.saturating_sub(1),
        _ => depth,
    }))
}

/// The place of the bracket that belongs to the one at `at`, if both are there.
pub fn partner(line: &str, at: usize) -> Option<usize> {
    let mut open: Vec<usize> = Vec::new();
    for token in tokens(line).iter().filter(|t| t.kind == TokenKind::Mark) {
        let place = token.range.end - 1;
        match &line[token.range.clone()] {
            "(" | "[" | "{" | "#{" => open.push(place),
            ")" | "]" | "}" => {
                let start = open.pop()?;
                if start == at {
                    return Some(place);
                }
                if place == at {
                    return Some(start);
                }
            }
            _ => {}
        }
    }
    None
}

/// The definitions of a function in a script, each with the comments right above it.
pub fn definitions(text: &str, name: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let tokens = tokens(text);
    let word = |k: usize| tokens.get(k).map(|t| &text[t.range.clone()]);
    for k in 0..tokens.len() {
        let heads = word(k) == Some("fn") && word(k + 2) == Some(name) && word(k + 3) == Some("(");
        let body = heads.then(|| (k..tokens.len()).find(|&j| word(j) == Some("{"))).flatten();
        let Some(end) = body.and_then(|body| partner(text, tokens[body].range.start)) else { continue };
        let mut start = text[..tokens[k].range.start].rfind('\n').map_or(0, |at| at + 1);
        while let Some(above) = text[..start].strip_suffix('\n') {
            let line = above.rfind('\n').map_or(0, |at| at + 1);
            if !above[line..].trim_start().starts_with("//") {
                break;
            }
            start = line;
        }
        // Several on one line: each begins where the one before it ends.
        let blank = text[start..tokens[k].range.start].trim_start();
        let own = blank.is_empty() || blank.starts_with("//") || blank.starts_with("private");
        found.push(
            if own {
                start + text[start..].len() - text[start..].trim_start().len()
            } else {
                tokens[k].range.start
            }..end + 1,
        );
    }
    found
}

/// The first of them.
pub fn definition(text: &str, name: &str) -> Option<Range<usize>> {
    definitions(text, name).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<(TokenKind, &str)> {
        let all = tokens(line);
        assert_eq!(all.iter().map(|t| &line[t.range.clone()]).collect::<String>(), line);
        all.into_iter().filter(|t| t.kind != TokenKind::Space).map(|t| (t.kind, &line[t.range])).collect()
    }

    #[test]
    fn words_numbers_and_texts() {
        use TokenKind::*;
        assert_eq!(
            shown("let x = 1.5e-3 * s[0..2].len; // all"),
            [
                (Keyword, "let"),
                (Word, "x"),
                (Mark, "="),
                (Number, "1.5e-3"),
                (Mark, "*"),
                (Word, "s"),
                (Mark, "["),
                (Number, "0"),
                (Mark, "."),
                (Mark, "."),
                (Number, "2"),
                (Mark, "]"),
                (Mark, "."),
                (Word, "len"),
                (Mark, ";"),
                (Comment, "// all"),
            ]
        );
        assert_eq!(shown("1-2").len(), 3);
        assert_eq!(
            shown("f(\"a\\\"b\", `${\"x\"} y`")[2..],
            [(Text { closed: true }, "\"a\\\"b\""), (Mark, ","), (Text { closed: true }, "`${\"x\"} y`")][..]
        );
        assert_eq!(shown("load(\"da")[2], (Text { closed: false }, "\"da"));
        assert_eq!(shown("kpm::dos(h, #{ a: 1 })")[..3], [(Word, "kpm"), (Mark, "::"), (Word, "dos")][..]);
    }

    #[test]
    fn brackets_find_their_partners() {
        let line = "f(a[1], \")\", #{ b: (2) })";
        assert_eq!(partner(line, 1), Some(line.len() - 1));
        assert_eq!(partner(line, line.len() - 1), Some(1));
        assert_eq!(partner(line, 3), Some(5));
        assert_eq!(partner(line, 0), None);
        assert_eq!(partner("(", 0), None);
    }

    #[test]
    fn comments_end_or_stay_open() {
        assert_eq!(depth("let m = f(#{ a: [1,"), Some(3));
        assert_eq!((depth("f(1) }"), depth("`a {"), depth("1 /* {")), (Some(0), None, None));
        assert!(open_comment("1 /* two") && open_comment("/*/") && open_comment("/* /* */"));
        assert!(!open_comment("1 /* two */") && !open_comment("\"/*\"") && !open_comment("// /*"));
    }
}
