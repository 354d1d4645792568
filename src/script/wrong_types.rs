//! Hints for calls with arguments of types that no function takes.

use std::collections::BTreeSet;

use rhai::Engine;

use super::kinds::in_words;
use super::registry::{CallForm, RegisteredFunction, entries, ways};
use crate::error::nearest;

/// Types that are often taken for another one, and what makes that of them.
const MADE: [(&str, &str, &str); 6] = [
    ("OpSum", "Operator", "`exact::operator(h, chain)` makes one of an OpSum and its sites"),
    ("Model", "Operator", "`m.build()` makes one of a Model"),
    ("Operator", "Matrix", "`h.to_matrix()` makes one of a small Operator"),
    ("Series", "BlockVector", "`block(h, x)` makes one of numbers"),
    ("Eigen", "BlockVector", "`found.vectors` of an Eigen is one"),
    ("BlockVector", "Series", "`v.to_series()` makes one of a single column"),
];

/// How to come from the type of an argument to the one that the function takes in its place.
fn from_another_type(all: &[RegisteredFunction], name: &str, kinds: &[&str]) -> Option<String> {
    let named = all.iter().filter(|e| e.path() == name && e.form != CallForm::Property);
    let named: Vec<&RegisteredFunction> = named.collect();
    let takes = |k: usize, kind: &str| {
        named.iter().any(|e| {
            let taken = e.parameters.get(k).map(|p| p.kind.as_str()).or(e.of_type().filter(|_| k == 0));
            taken.is_some_and(|taken| taken.split(" or ").any(|one| one == kind))
        })
    };
    kinds.iter().enumerate().find_map(|(k, given)| {
        let fits = |&&(from, to, _): &&(&str, &str, &str)| from == *given && takes(k, to) && !takes(k, from);
        let (_, to, how) = MADE.iter().find(fits)?;
        Some(format!("it takes {}: {how}", in_words(to)))
    })
}

/// A hint for a call that no function takes, whose arguments are of these types.
pub(super) fn no_call(engine: &Engine, name: &str, kinds: &[&str]) -> Option<String> {
    let all = entries(engine, true);
    if !name.contains(|c: char| c.is_alphanumeric() || c == '_') && name != "^" {
        const OPERANDS: [(&str, &str); 5] = [
            ("string", "a text joins others by `+`; `parse_float(text)` is its number"),
            ("()", "`()` is nothing: a block or a function whose last statement ends with `;` gives it"),
            ("array", "arrays have no arithmetic; `series([1, 2])` has"),
            ("function", "`f.call(x)` calls a function that is a value"),
            ("bool", "true and false are no numbers; `if a { 1 } else { 0 }` is one"),
        ];
        if let Some((_, hint)) = OPERANDS.iter().find(|(kind, _)| kinds.contains(kind)) {
            return Some((*hint).into());
        }
        if name == "!" {
            return Some("`!` turns true into false; `x == 0` compares a number".into());
        }
        if name == "*" && kinds[0] == "Operator" && matches!(kinds[1..], ["Series" | "Matrix"]) {
            return Some("`block(h, x)` makes a BlockVector of numbers, on which `h` acts".into());
        }
        let own = kinds.iter().filter(|kind| kind.starts_with(|c: char| c.is_ascii_uppercase()));
        let lists: BTreeSet<String> = own.map(|kind| format!("`help(\"{kind}\")`")).collect();
        let lists: Vec<String> = lists.into_iter().collect();
        return (!lists.is_empty()).then(|| format!("{} tells what it can do", lists.join(" or ")));
    }
    let known = !ways(&all, name, &|_| true).is_empty();
    if let Some(made) = from_another_type(&all, name, kinds) {
        return Some(made);
    }
    match kinds.first() {
        Some(kind) if known && kind.starts_with("range") && !name.contains("::") => {
            Some("a range is gone through by `for i in 0..n`; `series(0..n)` holds its numbers".into())
        }
        Some(&kind @ ("array" | "string")) if known && !name.contains("::") => {
            let takes = |kind: &str| {
                !ways(&all, name, &|e| {
                    let first = e.parameters.first();
                    e.of_type() == Some(kind) || first.is_some_and(|p| p.kind == kind || p.kind.is_empty())
                })
                .is_empty()
            };
            match kind {
                "string" if name == "to_int" => {
                    Some("`parse_int(text)` is the whole number of a text".into())
                }
                "string" if name == "to_float" => Some("`parse_float(text)` is the number of a text".into()),
                _ if takes(kind) => None,
                "array" if takes("Series") => {
                    Some(format!("of the numbers of an array make a Series: `series(x).{name}()`"))
                }
                "string" if takes("float") => {
                    Some(format!("`parse_float(text)` is the number of a text: `{name}(parse_float(text))`"))
                }
                _ => None,
            }
        }
        Some(&kind) if !known && !name.contains("::") => {
            // A method of this value is meant rather than one of others.
            let of = |e: &RegisteredFunction| {
                e.module.is_empty()
                    && (e.of_type() == Some(kind) || e.parameters.first().is_some_and(|p| p.kind == kind))
            };
            let own = all.iter().filter(|e| of(e) && e.form != CallForm::Property);
            let near = nearest(name, own.map(|e| e.name.as_str()))?;
            let way = ways(&all, near, &of).into_iter().max_by_key(String::len)?;
            Some(format!("did you mean {way}?"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    #[test]
    fn a_hint_tells_how_to_come_to_the_type() {
        let begin = "let c = sites(\"S=1/2\", 2); let h = models::heisenberg(c); let m = model(lattice::chain(4)); \
             m.nearest(-1.0);\n";
        for (call, expected) in [
            ("davidson(h, #{ seed: 1 })", "it takes an Operator: `exact::operator(h, chain)` makes one"),
            ("davidson(h)", "`exact::operator(h, chain)` makes one of an OpSum and its sites"),
            ("eigs(m, #{ near: 0.1 })", "it takes an Operator: `m.build()` makes one of a Model"),
            ("m.build().eigvals()", "it takes a Matrix: `h.to_matrix()` makes one of a small Operator"),
            ("norm(davidson(m.build(), #{ seed: 1 }))", "`found.vectors` of an Eigen is one"),
        ] {
            let mut engine = Engine::new().unwrap();
            let report = engine.eval(&format!("{begin}{call}")).unwrap_err();
            let hint = report.hint.clone().unwrap_or_default();
            assert!(hint.contains(expected), "{call}: {}", report.render(false));
            let checked = engine.check(&format!("{begin}{call}"), None);
            let said = checked.first().and_then(|report| report.hint.clone());
            assert_eq!(said, report.hint, "{call}");
        }
        for (call, expected) in
            [("\"1.5\".to_float()", "parse_float(text)"), ("\"15\".to_int()", "parse_int(text)")]
        {
            let report = Engine::new().unwrap().eval(call).unwrap_err();
            assert!(
                report.hint.as_ref().is_some_and(|hint| hint.contains(expected)),
                "{}",
                report.render(false)
            );
        }
    }
}
