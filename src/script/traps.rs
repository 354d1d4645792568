//! The traps of the language for physicists, as warnings: `1/2`, `2^3`, `-x**2`, a type that `type_of` does not know,
//! and a comment that has no end.

use rhai::{Engine, Position, Token};

use super::finding::Finding;
use super::lex;
use super::lint::tokens;
use crate::error::Error;

fn is_literal(token: Option<&(Token, Position)>) -> bool {
    matches!(token, Some((Token::IntegerConstant(_) | Token::FloatConstant(_), _)))
}

/// Whether what follows belongs to a product: in `x * 2 / 3` the product is divided.
fn is_factor(token: Option<&(Token, Position)>) -> bool {
    matches!(token, Some((Token::Multiply | Token::Divide | Token::Modulo, _)))
}

/// A comment that does not end: the rest of the script belongs to it, and nobody else says so.
fn open_comment(source: &str) -> Option<Finding> {
    let from = lex::open_comment(source).then(|| lex::tokens(source).pop()).flatten()?.range.start;
    let line = source[..from].matches('\n').count() + 1;
    let column = source[..from].rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let position = Position::new(u16::try_from(line).ok()?, u16::try_from(column).ok()?);
    let error = Error::input("a comment that begins here is not closed: nothing behind it is run")
        .hint("`*/` closes it");
    Some(Finding { position, error })
}

/// Names of types in other languages, or in older versions of this one, and what `type_of` says.
const TYPES: [(&[&str], &str); 6] = [
    (&["i64", "i32", "INT", "Int", "integer", "Integer"], "int"),
    (&["f64", "f32", "FLOAT", "Float", "double"], "float"),
    (&["String", "str", "text"], "string"),
    (&["Array", "list", "List"], "array"),
    (&["Map", "dict", "object"], "map"),
    (&["Fn", "FnPtr", "closure"], "function"),
];

fn is_type_of(token: &(Token, Position)) -> bool {
    matches!(&token.0, Token::Identifier(name) | Token::Reserved(name) if **name == *"type_of")
}

/// A name that `type_of` never gives, at `k`: one that a call of it is compared with, or one that means nothing else.
fn unknown_type(tokens: &[(Token, Position)], k: usize, name: &str) -> Option<Error> {
    let (_, right) = TYPES.iter().find(|(names, _)| names.contains(&name))?;
    let plain = ["i64", "f64"].contains(&name) && tokens.iter().any(is_type_of);
    if !plain && !compared_with_type_of(&tokens[..k]) {
        return None;
    }
    let error = Error::input(format!("`type_of` never gives \"{name}\""));
    Some(error.hint(format!("the name of this type is \"{right}\"")))
}

/// Whether tokens end in `type_of(..) ==`.
fn compared_with_type_of(before: &[(Token, Position)]) -> bool {
    let Some(((last, _), call)) = before.split_last() else { return false };
    // Comparisons are the engine's own (`comparison.rs`), no tokens of the language.
    if !["==", "!="].contains(&last.to_string().as_str()) {
        return false;
    }
    let mut depth = 0;
    let opening = call.iter().rposition(|(token, _)| {
        match token {
            Token::RightParen => depth += 1,
            Token::LeftParen => depth -= 1,
            _ => {}
        }
        depth <= 0
    });
    opening.and_then(|k| k.checked_sub(1)).is_some_and(|k| is_type_of(&call[k]))
}

/// Warnings about `1/2`, `2^3`, `-x**2`, `-2**2`, `type_of(x) == "i64"` and a comment without an end.
pub(super) fn traps(engine: &Engine, source: &str) -> Vec<Finding> {
    let tokens = tokens(engine, source);
    let mut found: Vec<Finding> = open_comment(source).into_iter().collect();
    for (k, (token, position)) in tokens.iter().enumerate() {
        let before = k.checked_sub(1).and_then(|k| tokens.get(k));
        let after = tokens.get(k + 1);
        let error = match (token, before, after) {
            (Token::Divide, Some((Token::IntegerConstant(a), _)), Some((Token::IntegerConstant(b), _)))
                if (*b == 0 || a % b != 0) && !is_factor(k.checked_sub(2).and_then(|k| tokens.get(k))) =>
            {
                let quotient = a.checked_div(*b).map_or("an error".to_string(), |q| q.to_string());
                Error::input(format!("`{a}/{b}` divides whole numbers and gives {quotient}"))
                    .hint(format!("write `{a}.0/{b}.0`"))
            }
            (Token::XOr, ..) if is_literal(before) || is_literal(after) => {
                Error::input("`^` is the exclusive or of bits").hint("powers are written `**`")
            }
            // The sign is part of a literal number.
            (Token::UnaryMinus, ..) if power_behind(&tokens, k + 1) => minus_first(),
            (Token::IntegerConstant(_) | Token::FloatConstant(_), _, Some((Token::PowerOf, _)))
                if token.to_string().starts_with('-') =>
            {
                minus_first()
            }
            (Token::StringConstant(name), ..) => match unknown_type(&tokens, k, name) {
                Some(error) => error,
                None => continue,
            },
            _ => continue,
        };
        found.push(Finding { position: *position, error });
    }
    found
}

fn minus_first() -> Error {
    Error::input("the minus sign binds before `**`, so that `-x**2` is `(-x)**2`").hint("write `-(x**2)`")
}

/// Whether an operand starts at `k` and `**` follows it.
fn power_behind(tokens: &[(Token, Position)], mut k: usize) -> bool {
    let closing = |mut k: usize| -> usize {
        let mut depth = 0usize;
        while let Some((token, _)) = tokens.get(k) {
            match token {
                Token::LeftParen | Token::LeftBracket => depth += 1,
                Token::RightParen | Token::RightBracket => depth = depth.saturating_sub(1),
                _ => {}
            }
            k += 1;
            if depth == 0 {
                break;
            }
        }
        k
    };
    match tokens.get(k).map(|t| &t.0) {
        Some(Token::IntegerConstant(_) | Token::FloatConstant(_) | Token::Identifier(_)) => k += 1,
        Some(Token::LeftParen) => k = closing(k),
        _ => return false,
    }
    loop {
        match tokens.get(k).map(|t| &t.0) {
            Some(Token::LeftParen | Token::LeftBracket) => k = closing(k),
            Some(Token::Unit) => k += 1,
            Some(Token::Period | Token::DoubleColon) => k += 2,
            Some(Token::PowerOf) => return true,
            _ => return false,
        }
    }
}
