//! What a script is given by the command line, as `args`.

use std::collections::BTreeSet;

use rhai::{Dynamic, FLOAT, INT, Map};

use super::lex::{TokenKind, tokens};
use crate::error::{Error, Result, nearest};

/// The value of `key=value`: a number or truth value if it reads as one, else a text.
fn value_of(text: &str) -> Dynamic {
    if let Ok(i) = text.parse::<INT>() {
        i.into()
    } else if text.trim_start_matches(['+', '-']).bytes().all(|b| b.is_ascii_digit()) {
        // A whole number that no int holds: as a float it would be another one.
        text.to_string().into()
    } else if let Ok(x) = text.parse::<FLOAT>() {
        x.into()
    } else if let Ok(b) = text.parse::<bool>() {
        b.into()
    } else {
        text.to_string().into()
    }
}

/// What pairs `key=value` mean for a script.
///
/// # Errors
/// A text that is no such pair, a key that the script does not read.
pub fn arguments<'a>(pairs: impl IntoIterator<Item = &'a str>, script: &str) -> Result<Map> {
    let mut args = Map::new();
    let read = keys(script);
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(Error::input(format!("`--set {pair}` is not of the form `--set key=value`")));
        };
        if let Some(read) = read.as_ref().filter(|read| !read.contains(key)) {
            let error = Error::input(format!("the script does not read `args.{key}`"));
            let names = || read.iter().map(String::as_str);
            return Err(match (nearest(key, names()), read.is_empty()) {
                (Some(near), _) => error.hint(format!("did you mean `--set {near}={value}`?")),
                (None, false) => error.hint(format!("it reads {}", names().collect::<Vec<_>>().join(", "))),
                (None, true) => error.hint("it reads none: leave `--set` out"),
            });
        }
        args.insert(key.into(), value_of(value));
    }
    Ok(args)
}

/// The keys of `args` that a script names. None where it does more with `args` than that, so that they are not known.
fn keys(script: &str) -> Option<BTreeSet<String>> {
    let all: Vec<(TokenKind, &str)> = tokens(script)
        .into_iter()
        .filter(|token| !matches!(token.kind, TokenKind::Space | TokenKind::Comment))
        .map(|token| (token.kind, &script[token.range]))
        .collect();
    let word = |at: usize| all.get(at).map_or("", |(_, word)| *word);
    // The text of a literal without anything to be filled in.
    let text = |at: usize| {
        let (TokenKind::Text { .. }, literal) = all.get(at)? else { return None };
        Some(literal.trim_matches(['"', '`']).to_string())
    };
    let mut found = BTreeSet::new();
    for (at, (kind, here)) in all.iter().enumerate() {
        if matches!(kind, TokenKind::Text { .. }) && here.starts_with('`') && here.contains("args") {
            return None;
        }
        if *here != "args" {
            continue;
        }
        let after = at + 1 + usize::from(word(at + 1) == "?");
        found.insert(match (word(after), at.checked_sub(2).filter(|_| word(at - 1) == "in")) {
            (".", _) => word(after + 1).to_string(),
            ("[", _) => text(after + 1).filter(|_| word(after + 2) == "]")?,
            (_, Some(before)) => text(before)?,
            _ => return None,
        });
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_a_script_names() {
        let read = |script| keys(script).map(|keys| keys.into_iter().collect::<Vec<_>>().join(" "));
        let script = "// args of all kinds\nlet a = if \"full\" in args && args.full { args[\"size\"] } else { \
             args?.seed };";
        assert_eq!(read(script).as_deref(), Some("full seed size"));
        assert_eq!(read("print(1);").as_deref(), Some(""));
        for unknown in [
            "for key in args.keys() { print(args[key]); }",
            "print(`${args.a}`);",
            "f(args);",
            "let a = args;",
        ] {
            assert_eq!(read(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn wrong_keys_are_refused() {
        let script = "let full = \"full\" in args && args.full; let n = args.moments;";
        let wrong = |pair| arguments([pair], script).map(|_| ()).unwrap_err();
        assert_eq!(wrong("ful=true").hint_text(), Some("did you mean `--set full=true`?"));
        assert_eq!(wrong("seed=1").hint_text(), Some("it reads full, moments"));
        assert!(wrong("full").to_string().contains("--set key=value"));
        let args = arguments(["full=true", "moments=64"], script).unwrap();
        assert!(args["full"].as_bool().unwrap() && args["moments"].as_int() == Ok(64));
        assert!(arguments(["x=1"], "f(args);").is_ok() && arguments(["x=1"], "1").is_err());
    }
}
