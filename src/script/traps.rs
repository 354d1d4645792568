//! The traps of the language for physicists, as warnings: `1/2`, `2^3`, `-x**2`, and a comment that has no end.

use rhai::{Engine, Position, Token};

use super::lex;
use super::lint::{Finding, tokens};
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

/// Warnings about `1/2`, `2^3`, `-x**2`, `-2**2` and a comment without an end.
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
