//! Continues after a syntax error: the wrong statement is left out, and the rest is parsed again. Names that the
//! statement would have defined count as known, so one error causes no others.

use std::collections::BTreeSet;
use std::ops::Range;

use rhai::{AST, Dynamic, Engine, ParseErrorType, Position, Scope};

use super::lex::{self, Token, TokenKind};

/// Mistakes that are reported of one script.
const MOST: usize = 20;

/// A script as far as it can be read.
pub(super) struct Read {
    /// What is left of it, if anything can be read.
    pub ast: Option<AST>,
    /// The mistakes, in the order of places.
    pub mistakes: Vec<(ParseErrorType, Position)>,
    /// Names in what was left out, which may be functions or variables.
    pub lost: BTreeSet<String>,
}

/// Reads a script, with variables that are not there as mistakes.
pub(super) fn read(engine: &mut Engine, scope: &Scope, source: &str) -> Read {
    let mut scope = scope.clone();
    let mut read = Read { ast: None, mistakes: Vec::new(), lost: BTreeSet::new() };
    let mut text = source.to_string();
    let mut left_out: Vec<Range<usize>> = Vec::new();
    while read.mistakes.len() < MOST {
        engine.set_strict_variables(true);
        let compiled = engine.compile_with_scope(&scope, &text);
        engine.set_strict_variables(false);
        let (mistake, position) = match compiled {
            Ok(ast) => {
                read.ast = Some(ast);
                break;
            }
            Err(e) => (*e.0, e.1),
        };
        let tokens = tokens(&text);
        let at = byte(&text, position);
        if let ParseErrorType::VariableUndefined(name) = &mistake {
            // A text that is evaluated before may make the variable.
            let evaluates = |t: &Token| Some(t.range.start) < at && &text[t.range.clone()] == "eval";
            if !read.lost.contains(name) && !tokens.iter().any(evaluates) {
                read.mistakes.push((mistake.clone(), position));
            }
            // Named again, it is no other mistake; in a function, which sees no variables, the statement goes.
            if !scope.contains(name) {
                scope.push_dynamic(name.as_str(), Dynamic::UNIT);
                continue;
            }
        }
        let open_end = at.is_none() || tokens.iter().all(|t| Some(t.range.end) <= at);
        let at = at.unwrap_or(text.len());
        // What stands beside a statement that was left out, and cannot be read, followed from it.
        let beside = left_out.iter().rposition(|gone| {
            let between = gone.end.min(at)..at.max(gone.start);
            !tokens.iter().any(|t| t.range.start >= between.start && t.range.end <= between.end)
        });
        let region = if open_end {
            unclosed(&text, &tokens)
        } else {
            let from = beside.map(|k| left_out[k].clone());
            statement(&text, &tokens, at, from)
        };
        let is_variable = matches!(mistake, ParseErrorType::VariableUndefined(_));
        if beside.is_none() && !is_variable {
            read.mistakes.push((mistake, position));
        }
        let Some(region) = region.filter(|region| !text[region.clone()].trim().is_empty()) else { break };
        read.lost.extend(names(&text[region.clone()]));
        blank(&mut text, &region);
        match beside {
            Some(k) => left_out[k] = left_out[k].start.min(region.start)..left_out[k].end.max(region.end),
            None => left_out.push(region),
        }
    }
    read
}

/// The tokens but for spaces and comments; a text that is not closed ends with its line.
fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut from = 0;
    'again: loop {
        for mut token in lex::tokens(&text[from..]) {
            token.range = token.range.start + from..token.range.end + from;
            let written = &text[token.range.clone()];
            let line = written
                .find('\n')
                .filter(|&end| written.starts_with(['"', '\'']) && !written[..end].ends_with('\\'));
            if let Some(end) = line {
                from = token.range.start + end;
                found.push(Token { kind: TokenKind::Text { closed: false }, range: token.range.start..from });
                continue 'again;
            }
            if !matches!(token.kind, TokenKind::Space | TokenKind::Comment) {
                found.push(token);
            }
        }
        return found;
    }
}

/// What is open before a token.
#[derive(Clone, Copy, PartialEq)]
enum OpenBracket {
    /// Statements in braces.
    Block,
    /// A map, which ends with a brace as well.
    Map,
    Paren,
    Bracket,
}

/// Statements begin behind these tokens: for each block that is open before token `k`, from the outermost, the number
/// of the token where the statement begins that goes on there.
struct BlockStarts {
    open: Vec<OpenBracket>,
    begins: Vec<usize>,
}

impl BlockStarts {
    fn new() -> BlockStarts {
        BlockStarts { open: Vec::new(), begins: vec![0] }
    }

    fn begin(&mut self, k: usize) {
        if let Some(last) = self.begins.last_mut() {
            *last = k;
        }
    }

    /// Follows token `k`; whether it ends a statement of the block that is open then.
    fn follow(&mut self, text: &str, tokens: &[Token], k: usize) -> bool {
        let open_text = tokens[k].kind == TokenKind::Text { closed: false };
        match &text[tokens[k].range.clone()] {
            "(" => self.open.push(OpenBracket::Paren),
            "[" => self.open.push(OpenBracket::Bracket),
            "#{" => self.open.push(OpenBracket::Map),
            "{" => {
                self.open.push(OpenBracket::Block);
                self.begins.push(k + 1);
            }
            word if word == ";" || open_text => {
                // No parenthesis reaches beyond a statement, and no statement beyond a text that its line leaves open.
                while self.open.last().is_some_and(|open| *open != OpenBracket::Block) {
                    self.open.pop();
                }
                self.begin(k + 1);
                return true;
            }
            mark @ (")" | "]") => {
                let own = if mark == ")" { OpenBracket::Paren } else { OpenBracket::Bracket };
                let block =
                    self.open.iter().rposition(|open| *open == OpenBracket::Block).map_or(0, |at| at + 1);
                if let Some(at) = self.open[block..].iter().rposition(|open| *open == own) {
                    self.open.truncate(block + at);
                }
            }
            "}" => {
                let brace = |open: &OpenBracket| matches!(open, OpenBracket::Block | OpenBracket::Map);
                match self.open.iter().rposition(brace) {
                    Some(at) => {
                        let block = self.open[at] == OpenBracket::Block;
                        self.open.truncate(at);
                        if block {
                            self.begins.pop();
                            return self.ends_statement(text, tokens, k);
                        }
                    }
                    // Too many.
                    None => self.begin(k + 1),
                }
            }
            _ => {}
        }
        false
    }

    /// Whether the statement ends with the block that has ended at token `k`.
    fn ends_statement(&mut self, text: &str, tokens: &[Token], k: usize) -> bool {
        const BLOCKS: [&str; 9] = ["fn", "private", "if", "for", "while", "loop", "switch", "try", "do"];
        let word = |k: usize| tokens.get(k).map_or("", |t| &text[t.range.clone()]);
        let begin = self.begins.last().copied().unwrap_or(0);
        let whole = BLOCKS.contains(&word(begin)) || begin == k || word(begin) == "{";
        let goes_on = matches!(word(k + 1), "else" | "catch" | "while" | "until");
        let inside = self.open.last().is_some_and(|open| *open != OpenBracket::Block);
        let ends = whole && !goes_on && !inside;
        if ends {
            self.begin(k + 1);
        }
        ends
    }
}

/// The bytes of the statement that holds the token at a byte: that of the innermost block; around `from`,
/// if that is given.
fn statement(text: &str, tokens: &[Token], at: usize, from: Option<Range<usize>>) -> Option<Range<usize>> {
    let there = tokens.iter().position(|t| t.range.end > at)?;
    let mut nest = BlockStarts::new();
    (0..there).for_each(|k| {
        nest.follow(text, tokens, k);
    });
    let word = &text[tokens[there].range.clone()];
    let depth = nest.begins.len();
    // A brace too many stands alone.
    if word == "}" && !nest.open.iter().any(|open| matches!(open, OpenBracket::Block | OpenBracket::Map)) {
        let start = from.map_or(usize::MAX, |from| from.start);
        return Some(tokens[there].range.start.min(start)..tokens[there].range.end);
    }
    // Before the end of its block a statement ends without a sign.
    let first = *nest.begins.last()?;
    let mut last = there;
    if word == "}" && first < there {
        last = there - 1;
    } else {
        for k in there..tokens.len() {
            let closes = &text[tokens[k].range.clone()] == "}" && nest.begins.len() == depth;
            let map = nest
                .open
                .iter()
                .rev()
                .take_while(|o| **o != OpenBracket::Block)
                .any(|o| *o == OpenBracket::Map);
            if closes && !map && k > there {
                break;
            }
            last = k;
            if nest.follow(text, tokens, k) && nest.begins.len() <= depth {
                break;
            }
        }
    }
    let range = tokens[first.min(there)].range.start..tokens[last].range.end;
    Some(match from {
        Some(from) => range.start.min(from.start)..range.end.max(from.end),
        None => range,
    })
}

/// The bytes of the outermost statement that is not closed at the end of the text.
fn unclosed(text: &str, tokens: &[Token]) -> Option<Range<usize>> {
    let mut nest = BlockStarts::new();
    (0..tokens.len()).for_each(|k| {
        nest.follow(text, tokens, k);
    });
    let first = nest.begins.first().filter(|first| **first < tokens.len())?;
    Some(tokens[*first].range.start..text.len())
}

/// The names that a text may define: its words, but for functions that it calls and properties.
fn names(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let word = |k: usize| tokens.get(k).map_or("", |t| &text[t.range.clone()]);
    let defines = |k: usize| {
        let before = if k > 0 { word(k - 1) } else { "" };
        tokens[k].kind == TokenKind::Word
            && (before == "fn" || before != "." && !matches!(word(k + 1), "(" | "::"))
    };
    (0..tokens.len()).filter(|&k| defines(k)).map(|k| word(k).to_string()).collect()
}

/// The variables of the script itself, outside of its functions and blocks, that are made before a place.
pub(super) fn variables_before(text: &str, position: Position) -> Vec<&str> {
    let end = byte(text, position).unwrap_or(text.len());
    let words: Vec<&str> =
        tokens(text).iter().filter(|t| t.range.end <= end).map(|t| &text[t.range.clone()]).collect();
    let mut depth = 0i64;
    let mut found = Vec::new();
    for pair in words.windows(2) {
        depth += i64::from(pair[0].ends_with('{')) - i64::from(pair[0] == "}");
        if depth == 0 && pair[0] == "let" {
            found.push(pair[1]);
        }
    }
    found
}

/// Puts blanks in place of all but the ends of lines.
fn blank(text: &mut String, region: &Range<usize>) {
    let blanks: String = text[region.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
    text.replace_range(region.clone(), &blanks);
}

/// The byte of a position; nothing for the end of the text.
pub(super) fn byte(text: &str, position: Position) -> Option<usize> {
    let (line, column) = (position.line()?, position.position().unwrap_or(1));
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = text.get(start..)?;
    let offset = rest.char_indices().nth(column - 1).map_or(rest.len(), |(byte, _)| byte);
    Some(start + offset)
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    /// What `check` says, with the lines.
    fn said(script: &str) -> Vec<(usize, String)> {
        let found = Engine::new().unwrap().check(script, None);
        found.into_iter().map(|r| (r.position.map_or(0, |p| p.0), r.message)).collect()
    }

    fn lines(script: &str) -> Vec<usize> {
        said(script).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn every_mistake_is_found_in_one_run() {
        let script = "let a = 1\nlet b = 2;\nfn f(x) {\n  let y = (x + ;\n  y.foo(bar);\n}\n\
                      print(nowhere);\nprint(`${nowhere}`);\nlet c = [1, 2;\nprint(c);\nlinspce(0, 1, 3);\nf(1, 2);\n\
                      if a > 1 {\n  let = 3;\n  print(b);\n}\nlet s = \"open;\nlet t = kpm::dso(a);\n";
        let found = said(script);
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 4, 5, 5, 7, 9, 11, 12, 14, 17, 18], "{found:#?}");
    }

    #[test]
    fn one_mistake_makes_no_others() {
        for (script, line) in [
            // What a line defines that cannot be read is not missing.
            ("let a = ;\nprint(a);\nlet b = a + 1;\nprint(b);", 1),
            ("fn f(x) { x + }\nprint(f(1));\nprint(f(2));", 1),
            ("let f = |x| x + ;\nprint(f.call(1));", 1),
            // Missing and superfluous marks.
            ("let h = foo(1, 2\nlet y = 3;\nprint(y);", 2),
            ("if 1 < 2\n  print(1);\n}\nprint(2);", 2),
            ("print(1);\n}\nprint(2);", 2),
            ("print(1));\nprint(2);", 1),
            ("let a = [1, 2));\nprint(a);", 1),
            ("let y = if true { 1 } else { 2 } +* 3;\nprint(y);", 1),
            ("let m = #{ a: 1, b: };\nprint(m.a);", 1),
            ("let m = #{ a: [1, 2 };\nprint(m.a);", 1),
            ("for i in 0..3 {\n  print(i)\n  print(i);\n}\nprint(4);", 3),
            ("let s = \"open;\nprint(s);", 1),
            ("switch 1 { 1 => , _ => 2 }\nprint(3);", 1),
            ("try { let = 1; } catch (e) { print(e); }\nprint(3);", 1),
            ("fn f(x) {\n  1\n}\nfn f(y) {\n  2\n}\nprint(f(1));", 4),
            ("const A = 1;\nA = 2;\nprint(A);", 2),
            ("x = 3;\nprint(x);\nprint(x + 1);", 1),
        ] {
            let found = said(script);
            assert_eq!(
                found.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
                [line],
                "{script}\n{found:#?}"
            );
        }
    }

    #[test]
    fn a_text_that_is_evaluated_may_make_variables() {
        for script in [
            "eval(\"let q = 7;\");\nprint(q);",
            "let a = 1;\n{ eval(\"let b = 2\"); print(a + b); }",
            "fn f(x) { eval(\"let z = 2 * x\"); z + 1 }\nprint(f(1));",
        ] {
            assert!(said(script).is_empty(), "{script}: {:#?}", said(script));
        }
        assert_eq!(lines("print(q);\neval(\"let q = 7;\");"), [1], "before it there is none");
    }

    #[test]
    fn what_is_open_at_the_end_is_one_mistake_and_hides_what_it_holds() {
        for script in [
            "fn f(x) {\n  let a = 1;\nlet b = 2;\nprint(b);\nfn g(x) { x }\n",
            "print(f(1));\nfn f(x) {\n  if x > 1 {\n  x\n}\n",
            "let a = foo(",
            "let t = `open ${1}\nprint(t);\n",
            "let m = #{ a: 1,",
        ] {
            assert_eq!(said(script).len(), 1, "{script}\n{:#?}", said(script));
        }
        // Before it everything is looked at.
        assert_eq!(lines("let a = ;\nlinspce(1);\nfn f(x) {\n let b = 1;"), [1, 2, 3]);
    }

    #[test]
    fn very_many_mistakes_come_to_an_end() {
        let script = "let = 1;\n".repeat(100);
        assert_eq!(said(&script).len(), super::MOST);
        // Rubbish of any kind.
        for script in [
            "}}}}{{{{",
            "((((",
            "))))",
            "let let let",
            "#{#{#{",
            "\"",
            "`",
            "fn",
            "'",
            "1 2 3 4",
            "\u{1}\u{2}",
        ] {
            said(script);
        }
    }
}
