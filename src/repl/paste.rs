//! What is pasted: a block of several inputs, perhaps a transcript of another session with its prompts and answers.

use std::borrow::Cow;

use super::input::{self, Input};

/// How prompts of a session begin, and what stands before the further lines of an input there.
const PROMPT: &str = "> ";
const CONTINUED: &str = "... ";

/// The text without the prompts of a transcript, and without what the session answered: where the first line has a
/// prompt, lines without one that don't continue an open input are answers. Lines stay where they were,
/// so that errors point at them.
pub(super) fn without_prompts<'a>(parser: &rhai::Engine, text: &'a str) -> Cow<'a, str> {
    let first = text.lines().find(|line| !line.trim().is_empty());
    if !first.is_some_and(|line| line.trim_start().starts_with(PROMPT)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut open = String::new();
    for line in text.lines() {
        let typed = match line.trim_start().strip_prefix(PROMPT) {
            Some(typed) => {
                open.clear();
                Some(typed)
            }
            None if open.is_empty() => None,
            None => Some(line.strip_prefix(CONTINUED).unwrap_or(line)),
        };
        if let Some(typed) = typed {
            out.push_str(typed);
            open.push_str(typed);
            open.push('\n');
            if !input::incomplete(parser, &open) {
                open.clear();
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    Cow::Owned(out)
}

/// The inputs that a text consists of, each with how many lines stand before it. What is a whole piece of script is one
/// input. Where one of them is wrong it is the only one, so that its mistake is shown and nothing runs.
pub(super) fn inputs<'a>(parser: &rhai::Engine, text: &'a str) -> Vec<(usize, &'a str)> {
    let several = text.trim_end().contains('\n');
    // `%%time` is for all that follows.
    if !several
        || text.trim_start().starts_with("%%")
        || (matches!(input::read(text), Input::Script(_)) && parser.compile(text).is_ok())
    {
        return vec![(0, text)];
    }
    let mut found = Vec::new();
    let (mut start, mut first) = (0, 0);
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        end += line.len();
        let piece = &text[start..end];
        if input::incomplete(parser, piece) || continues(&text[end..]) {
            continue;
        }
        if !matches!(input::read(piece), Input::Nothing) {
            found.push((first, piece.trim_end()));
        }
        (start, first) = (end, number + 1);
    }
    if start < text.len() && !text[start..].trim().is_empty() {
        found.push((first, text[start..].trim_end()));
    }
    let wrong =
        |piece: &str| matches!(input::read(piece), Input::Script(_)) && parser.compile(piece).is_err();
    match found.iter().find(|(_, piece)| wrong(piece)) {
        Some(mistake) => vec![*mistake],
        None => found,
    }
}

/// Whether what follows belongs to the statement before it: a method, an operator, another branch.
fn continues(rest: &str) -> bool {
    let next = rest.trim_start();
    let word = |w: &str| {
        next.strip_prefix(w).is_some_and(|r| !r.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    let operator = ["+", "*", "==", "!=", "<", ">", "&&", "||", "&", "|", "^", "=", "??", ")", "]", "}", ","];
    next.starts_with('.')
        || (operator.iter().any(|o| next.starts_with(o)) && !next.starts_with(PROMPT))
        || (next.starts_with('-') && next[1..].starts_with(char::is_whitespace))
        || (next.starts_with('/') && !next.starts_with("//") && !next.starts_with("/*"))
        || ["else", "catch", "until", "in", "as"].into_iter().any(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(usize, String)> {
        let parser = rhai::Engine::new_raw();
        let plain = without_prompts(&parser, text);
        inputs(&parser, &plain).into_iter().map(|(line, piece)| (line, piece.to_string())).collect()
    }

    fn texts(text: &str) -> Vec<String> {
        cut(text).into_iter().map(|(_, piece)| piece).collect()
    }

    #[test]
    fn a_block_is_cut_into_its_statements() {
        assert_eq!(texts("let a = 1\nlet b = 2\na + b"), ["let a = 1", "let b = 2", "a + b"]);
        assert_eq!(cut("let a = 1\n\n\nf(\na)\nb").iter().map(|(l, _)| *l).collect::<Vec<_>>(), [0, 3, 5]);
        let method = "let x = s\n  .abs()\nif x {\n1\n}\nelse {\n2\n}\n%time f(x)\n?dos";
        assert_eq!(
            texts(method),
            ["let x = s\n  .abs()", "if x {\n1\n}\nelse {\n2\n}", "%time f(x)", "?dos"]
        );
        assert_eq!(
            texts("let a = 1\n    + 2\nlet b = a\n- 1\n-3"),
            ["let a = 1\n    + 2", "let b = a\n- 1", "-3"]
        );
    }

    #[test]
    fn what_is_whole_stays_one() {
        for text in ["let a = 1;\nlet b = 2;", "1 + 1", "", "fn f(x) {\n x\n}"] {
            assert_eq!(texts(text), [text], "{text}");
        }
    }

    #[test]
    fn a_mistake_is_alone() {
        assert_eq!(cut("let a = 1\nlet = 3\n4"), [(1, "let = 3".to_string())]);
    }

    #[test]
    fn transcripts_lose_prompts_and_answers() {
        let text = "> let a = 1\na = 1\n> fn f(x) {\n    x\n}\n> f(a)\n1\n";
        assert_eq!(texts(text), ["let a = 1", "fn f(x) {\n    x\n}", "f(a)"]);
        assert_eq!(cut(text).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [0, 2, 5]);
        assert_eq!(texts("> 1 + 1"), ["1 + 1"]);
        // What compiles as a whole stays one.
        assert_eq!(texts("> fn f(x) {\n...     x\n... }\n> f(1)\n1"), ["fn f(x) {\n    x\n}\nf(1)"]);
        assert_eq!(texts("a\n> b"), ["a\n> b"]);
    }
}
