//! What the language says when a script fails while it runs, in the words of the script's reader.

use super::registry;

/// A sentence of the language in other words, where there are better ones, with a hint.
pub(super) fn explained(text: &str) -> (String, Option<String>) {
    let own = |hint: &str| (text.to_string(), Some(hint.to_string()));
    let behind = |start: &str| text.strip_prefix(start);
    if text.starts_with("division by zero") || text.starts_with("modulo division by zero") {
        return own("whole numbers have no infinity; floats have, `1.0 / 0.0`");
    }
    if text.contains(" overflow: ") || text.contains("power to") {
        return own("whole numbers end near 9.2e18; floats, like `1.0 * n`, go on");
    }
    if text.starts_with("error parsing") {
        return own("a number is written like -12 or 1.5e-3, without units");
    }
    if let Some(kind) = behind("indexer unavailable: ") {
        return no_index(kind);
    }
    if let Some((given, wanted)) =
        behind("data type incorrect: ").and_then(|rest| rest.split_once(" (expecting "))
    {
        let (given, wanted) =
            (registry::shown_name(given), registry::shown_name(wanted.strip_suffix(')').unwrap_or(wanted)));
        let hint = match wanted {
            "string" => "names of a map's entries are texts: `m[\"x\"]` or `m.x`",
            "bool" => "a condition is true or false, like `x != 0` or `x == y`",
            _ => "`type_of(x)` tells what x is",
        };
        return (format!("a value of type {wanted} belongs here, not {given}"), Some(hint.into()));
    }
    if let Some(rest) = behind("no writable property '").or(behind("unknown property '")) {
        let mut parts = rest.split('\'');
        if let (Some(name), Some(_), Some(kind)) = (parts.next(), parts.next(), parts.next()) {
            let kind = registry::shown_name(kind);
            let message = format!("{kind} has no property `{name}` that can be set");
            return (
                message,
                Some(format!("`help(\"{kind}\")` lists what it has; a map, `#{{}}`, takes any name")),
            );
        }
    }
    if text.starts_with("string index ") {
        return own("characters are numbered from 0, and from the end by -1, -2, ...");
    }
    if text.starts_with("for loop expects iterable") {
        return (
            "`for` goes through ranges, arrays, Series and texts only".into(),
            Some("`for i in 0..3` counts 0, 1, 2".into()),
        );
    }
    if let Some(name) = behind("cannot modify constant ") {
        return own(&format!("`let {name} = ..` makes a variable, which can change"));
    }
    if text.starts_with("'this' not bound") {
        return own("`x.f()` calls a function with `this` as x; a plain call has none");
    }
    (text.to_string(), None)
}

/// The language's "Kind [index]", or "Kind [index] = value" where an element was to be set.
fn no_index(text: &str) -> (String, Option<String>) {
    let (kind, index) = text.split_once(" [").unwrap_or((text, ""));
    let index = index.split(']').next().unwrap_or_default();
    let (kind, index) = (registry::shown_name(kind), registry::shown_name(index));
    let hint = match kind {
        "()" => "`()` is nothing; an empty map is `#{}`, an empty array `[]`".into(),
        "Series" => "`s[0]` is an element, `s[1..3]` a part, its end left out".into(),
        "Matrix" => "`m[[i, j]]` is an element, `m.row(i)` a row, `m.column(j)` a column".into(),
        "Table" => "`t.energy` is a column, `t[\"energy\"]` the same, `t[0]` a row".into(),
        _ => format!("`help(\"{kind}\")` lists what it has"),
    };
    (format!("{kind} has no elements [{index}]"), Some(hint))
}
