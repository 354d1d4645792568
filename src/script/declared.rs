//! The options of a function, as its doc comment declares them. Help, completion, `check`, the manual and the reading
//! of options ([`super::options`]) all go by this one declaration. `src/script/README.md` says how one is written.

use rhai::{Array, Dynamic, FLOAT, INT, Map};

use super::kinds;
use crate::error::{Error, nearest};

/// An option as a doc comment declares it: ``- `key` (kind, default): meaning``.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionDoc {
    pub key: String,
    /// What it may be: "int", "float or function", "Window", "any"; empty where the doc does not tell.
    pub kind: String,
    /// What it is if it is not given, as a literal or in words; empty where the doc names none.
    pub default: String,
    /// What it does.
    pub meaning: String,
    /// The text that says which options it goes with; empty where it goes with all.
    pub rules: String,
}

impl OptionDoc {
    /// The default as a value; none where it is told in words.
    pub fn value(&self) -> Option<Dynamic> {
        let value = literal(&self.default)?;
        match (kinds::keeps_whole(&self.kind), value.as_int()) {
            (false, Ok(whole)) => Some((whole as FLOAT).into()),
            _ => Some(value),
        }
    }

    /// Whether a call must give it.
    pub fn required(&self) -> bool {
        self.default == "required"
    }

    /// Kind and default in short: "int, default 512".
    pub fn summary(&self) -> String {
        match self.default.as_str() {
            "" => self.kind.clone(),
            "required" => format!("{}, required", self.kind),
            default => format!("{}, default {default}", self.kind),
        }
    }
}

/// A value for a message. None of arrays and maps, which may be long, and of functions, whose names nobody gave them.
pub(super) fn shown(value: &Dynamic, of_type: &str) -> Option<String> {
    matches!(of_type, "int" | "float" | "bool" | "string").then(|| value.to_string())
}

/// A literal of a doc comment as a value: a number, a text, true or false, an array of such, an empty map.
pub(super) fn literal(text: &str) -> Option<Dynamic> {
    if text == "#{}" {
        return Some(Map::new().into());
    }
    from_json(&serde_json::from_str(text).ok()?)
}

fn from_json(value: &serde_json::Value) -> Option<Dynamic> {
    use serde_json::Value;
    Some(match value {
        Value::Bool(x) => (*x).into(),
        Value::Number(x) => match x.as_i64() {
            Some(whole) => (whole as INT).into(),
            None => x.as_f64()?.into(),
        },
        Value::String(x) => x.clone().into(),
        Value::Array(all) => all.iter().map(from_json).collect::<Option<Array>>()?.into(),
        Value::Null | Value::Object(_) => return None,
    })
}

/// The error for a key that a function does not take.
pub(crate) fn unknown_key<'a>(key: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Error {
    let error = Error::input(format!("unknown option `{key}`"));
    match nearest(key, known.clone()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => {
            let all: Vec<String> = known.into_iter().map(|k| format!("`{k}`")).collect();
            if all.is_empty() {
                error.hint("this function takes no options")
            } else {
                error.hint(format!("the options are {}", all.join(", ")))
            }
        }
    }
}

/// The items under `# Options` of a doc comment, as they are written. One that does not begin with a key stays whole,
/// as the meaning of an empty key: "those of `kpm::moments`" refers to another function's.
pub fn items(doc: &str) -> Vec<OptionDoc> {
    let section = doc.lines().skip_while(|line| line.trim() != "# Options").skip(1);
    let mut items: Vec<String> = Vec::new();
    for line in section.take_while(|line| !line.starts_with("# ")).map(str::trim) {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(item), _) => items.push(item.to_string()),
            (None, Some(item)) if !line.is_empty() => {
                item.push(' ');
                item.push_str(line);
            }
            _ => {}
        }
    }
    items.iter().flat_map(|item| of_item(item)).collect()
}

/// The options of one item: keys in back-ticks, each perhaps with kind and default in parentheses, a colon,
/// their meaning.
fn of_item(item: &str) -> Vec<OptionDoc> {
    let mut depth = 0;
    let colon = item.char_indices().find(|&(i, c)| {
        depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
        c == ':' && depth == 0 && item[i..].starts_with(": ")
    });
    let (names, meaning) = match colon {
        Some((i, _)) if item.starts_with('`') => (&item[..i], item[i + 2..].trim()),
        _ => {
            return vec![OptionDoc { meaning: item.into(), ..OptionDoc::default() }];
        }
    };
    let mut found = Vec::new();
    let mut rest = names;
    while let Some((_, after)) = rest.split_once('`') {
        let Some((key, after)) = after.split_once('`') else { break };
        // A default may name other options.
        let mut depth = 0;
        let end = after.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == '`' && depth == 0
        });
        let end = end.unwrap_or(after.len());
        let inside = after[..end].trim_start().strip_prefix('(').and_then(|d| d.rsplit_once(')'));
        let (kind, default) = kind_and_default(inside.map_or("", |(inside, _)| inside));
        let rules = if has_rules(meaning) { meaning.to_string() } else { String::new() };
        found.push(OptionDoc { key: key.into(), kind, default, meaning: meaning.into(), rules });
        rest = &after[end..];
    }
    found
}

/// How a meaning begins to say which options go together; their names follow up to the end of the clause.
pub(super) const RULES: [&str; 4] = ["not with `", "only with `", "needed with `", "needed without `"];

/// Whether a text says which options go together.
fn has_rules(meaning: &str) -> bool {
    RULES.iter().any(|words| meaning.contains(words))
}

/// "float or function, -1.0" as its two parts. Where no kind is named, it is that of the default; where values are, the
/// first one is the default.
fn kind_and_default(inside: &str) -> (String, String) {
    let (first, rest) = inside.split_once(", ").unwrap_or((inside, ""));
    if kinds::is_kinds(first) {
        let default = if rest.is_empty() { kinds::first_value(first).unwrap_or_default() } else { rest };
        return (first.to_string(), default.to_string());
    }
    let kind = literal(inside).map_or("", |value| match value.type_name() {
        "i64" => "int",
        "f64" => "float",
        "bool" => "bool",
        "string" => "string",
        "array" => "array",
        "map" => "map",
        _ => "",
    });
    (kind.to_string(), inside.to_string())
}

/// The names in back-ticks of a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What an option does in one sentence, without the rules on what it goes with. Where another function tells it, its
/// sentence stands in parentheses.
pub(super) fn brief(meaning: &str) -> &str {
    if let Some((_, told)) = meaning.strip_prefix("as for `").and_then(|like| like.split_once("` ("))
        && let Some(end) = matching(told)
    {
        return &told[..end];
    }
    let first = sentence(meaning).trim_end_matches('.');
    let rule = RULES.iter().filter_map(|rule| first.find(&format!("; {rule}"))).min();
    &first[..rule.unwrap_or(first.len())]
}

/// The first sentence of a text; one does not end in parentheses, as those around "Zhang et al. 2018".
fn sentence(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find(|&(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0 && text[at..].starts_with(". ")
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// Where the parenthesis ends that a text begins inside of.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 1;
    let end = text.char_indices().find(|&(_, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    end.map(|(at, _)| at)
}

/// A meaning that names another function for the option, with what it does there.
fn with_brief(meaning: &str, path: &str, brief: &str) -> String {
    if brief.is_empty() || brief.starts_with("as for `") {
        return meaning.to_string();
    }
    let like = format!("as for `{path}`");
    meaning.replacen(&like, &format!("{like} ({brief})"), 1)
}

/// All options that a doc comment declares, those of other functions among them: "those of `kpm::dos`, less `vectors`"
/// takes another's, and "as for `davidson`" what is not said of kind, default and meaning.
/// `docs_of` gives the docs of a function.
pub fn resolve(doc: &str, docs_of: &dyn Fn(&str) -> Vec<String>) -> Vec<OptionDoc> {
    collect(doc, docs_of, &mut Vec::new())
}

fn collect(doc: &str, docs_of: &dyn Fn(&str) -> Vec<String>, open: &mut Vec<String>) -> Vec<OptionDoc> {
    let mut of = |path: &str| -> Vec<OptionDoc> {
        if open.iter().any(|other| other == path) {
            return Vec::new();
        }
        open.push(path.to_string());
        let found = docs_of(path).iter().flat_map(|doc| collect(doc, docs_of, open)).collect();
        open.pop();
        found
    };
    let mut all: Vec<OptionDoc> = Vec::new();
    for mut item in items(doc) {
        let mut new = Vec::new();
        if item.key.is_empty() {
            let (those, less) = item.meaning.split_once(", less ").unwrap_or((&item.meaning, ""));
            let named = those.strip_prefix("those of ").and_then(|those| quoted(those).next());
            new = named.map_or_else(Vec::new, &mut of);
            new.retain(|option| quoted(less).all(|key| key != option.key));
        } else {
            if let Some((_, like)) = item.meaning.split_once("as for `")
                && let Some((path, _)) = like.split_once('`')
                && let Some(same) = of(path).into_iter().find(|option| option.key == item.key)
            {
                if item.default.is_empty() {
                    item.default = same.default.clone();
                }
                // Another default says nothing of bounds and words.
                if kinds::says_more(&same.kind, &item.kind) {
                    item.kind = same.kind.clone();
                }
                item.rules = [item.rules.as_str(), same.rules.as_str()].join("\n");
                item.meaning = with_brief(&item.meaning, path, brief(&same.meaning));
            }
            new.push(item);
        }
        // What is said first holds.
        new.retain(|option| all.iter().all(|known| known.key != option.key));
        all.extend(new);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(item: &str) -> Vec<(String, String, String)> {
        of_item(item).into_iter().map(|o| (o.key, o.kind, o.default)).collect()
    }

    #[test]
    fn an_item_declares_kind_and_default() {
        let expected = |all: &[(&str, &str, &str)]| -> Vec<(String, String, String)> {
            all.iter().map(|(a, b, c)| (a.to_string(), b.to_string(), c.to_string())).collect()
        };
        assert_eq!(
            parts("`a` (\"x: y\"), or `b` (2) and `c`: what they mean: this"),
            expected(&[("a", "string", "\"x: y\""), ("b", "int", "2"), ("c", "", "")])
        );
        assert_eq!(
            parts("`hopping` (float or function, -1.0), `window` (Window, found by itself): both"),
            expected(&[("hopping", "float or function", "-1.0"), ("window", "Window", "found by itself")])
        );
        assert_eq!(parts("`sites` ([0, 1]): where"), expected(&[("sites", "array", "[0, 1]")]));
        assert_eq!(parts("`tol` (float, 1): how"), expected(&[("tol", "float", "1")]));
        assert_eq!(parts("`seed` (the session's): of it"), expected(&[("seed", "", "the session's")]));
    }

    #[test]
    fn options_of_other_functions_count() {
        let base = "# Options\n- `a` (1): one\n- `b` (float): two\n- `c` (\"x\"): three";
        let docs = |path: &str| if path == "m::base" { vec![base.to_string()] } else { Vec::new() };
        let doc = "Text.\n\n# Options\n- those of `m::base`, less `c`, for a Table.\n- `d` (true): four";
        let keys: Vec<String> = resolve(doc, &docs).into_iter().map(|o| o.key).collect();
        assert_eq!(keys, ["a", "b", "d"]);
        let like = resolve("# Options\n- `b`, `c` (\"y\"): as for `m::base`.", &docs);
        assert_eq!((like[0].kind.as_str(), like[1].default.as_str()), ("float", "\"y\""));
    }

    #[test]
    fn what_an_option_does_is_told_where_another_function_declares_it() {
        let docs = |path: &str| match path {
            "m::base" => {
                vec!["# Options\n- `a` (1): how many (of each); not with `b`. More.\n- `b` (2.0): two".into()]
            }
            "m::next" => vec!["# Options\n- `a` (1): as for `m::base`; only here.".to_string()],
            _ => Vec::new(),
        };
        let meaning = |doc: &str| resolve(doc, &docs)[0].meaning.clone();
        let told = "as for `m::base` (how many (of each))";
        assert_eq!(meaning("# Options\n- `a` (3): as for `m::base`."), format!("{told}."));
        assert_eq!(
            meaning("# Options\n- `a` (3): as for `m::next`; and so on."),
            "as for `m::next` (how many (of each)); and so on."
        );
        assert_eq!(meaning("# Options\n- `a` (3): as for `m::none`."), "as for `m::none`.", "nobody tells");
        assert_eq!(brief(told), "how many (of each)");
        assert_eq!(brief("how (Zhang et al. 2018). More."), "how (Zhang et al. 2018)");
    }

    #[test]
    fn values_are_of_the_kind_declared() {
        let tol = &of_item("`tol` (float, 1e-8): how")[0];
        assert_eq!(tol.accept(Dynamic::from_int(2), "int").unwrap().as_float(), Ok(2.0));
        let wrong = tol.accept("x".into(), "string").unwrap_err();
        assert_eq!(wrong.message(), "option `tol` takes a number, not a value of type string");
        assert!(tol.accept(Dynamic::from_float(f64::NAN), "float").is_err());
        assert_eq!(tol.value().unwrap().as_float(), Ok(1e-8));
        let seed = &of_item("`seed` (int or string, the session's): key")[0];
        assert!(seed.accept("word".into(), "string").is_ok() && seed.value().is_none());
        assert!(seed.accept(true.into(), "bool").is_err());
        let range = &of_item("`same` (array or Series or range, zeros): of them")[0];
        assert!(range.accept(Dynamic::from(0..5_i64), "range").is_ok());
        let long = range.accept(Map::new().into(), "map").unwrap_err();
        assert_eq!(
            long.message(),
            "option `same` takes an array or a Series or a range, not a value of type map"
        );
        assert_eq!(long.hint_text(), Some("it was given a map; `same`: of them"));
    }
}
