//! Definition files (`.d.rhai`) for editors whose own server for Rhai reads them: what functions take and give, with
//! their help. Rhai can write such files itself; these say the types as scripts name them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::registry::{CallForm, RegisteredFunction};

/// A file of definitions: its name and its text.
pub struct Definitions {
    pub file: String,
    pub text: String,
}

/// The constants that every script has.
const CONSTANTS: [(&str, &str, &str); 3] = [
    ("I", "Complex", "The imaginary unit."),
    ("PI", "float", "The ratio of a circle's circumference to its diameter."),
    ("args", "map", "What the command line gave behind the script."),
];

/// The definitions of all functions: a file for those without a module, one for each module.
pub fn files(entries: &[RegisteredFunction]) -> Vec<Definitions> {
    let mut modules: BTreeMap<&str, Vec<&RegisteredFunction>> = BTreeMap::new();
    for entry in entries {
        modules.entry(&entry.module).or_default().push(entry);
    }
    modules.into_iter().map(|(module, own)| of_module(module, &own)).collect()
}

fn of_module(module: &str, entries: &[&RegisteredFunction]) -> Definitions {
    let (file, head) = match module {
        "" => ("__static__.d.rhai".to_string(), "module static;\n".to_string()),
        name => (format!("{name}.d.rhai"), format!("module {name};\n")),
    };
    let mut text = head;
    if module.is_empty() {
        for (name, kind, meaning) in CONSTANTS {
            // Writing to a text cannot fail.
            let _ = write!(text, "\n/// {meaning}\nconst {name}: {kind};\n");
        }
    }
    let mut entries = entries.to_vec();
    // Ours take the place of those that the language has itself.
    entries.sort_by_key(|e| (e.name.as_str(), e.parameters.len(), self::head(e), e.standard));
    let mut told = BTreeSet::new();
    for entry in entries {
        let way = self::head(entry);
        if !told.insert(way.clone()) {
            continue;
        }
        text.push('\n');
        for doc in entry.doc.lines() {
            let _ = writeln!(text, "{}", format!("/// {doc}").trim_end());
        }
        let returns = if matches!(entry.returns.as_str(), "" | "RhaiResult") {
            "?"
        } else {
            &entry.returns.replace(" or ", " | ")
        };
        let _ = writeln!(text, "{way} -> {returns};");
    }
    Definitions { file, text }
}

/// The definition of a function without what it gives: `fn linspace(a: ?, b: ?, n: int)`.
fn head(entry: &RegisteredFunction) -> String {
    let kind = |kind: &str| if kind.is_empty() { "?".to_string() } else { kind.replace(" or ", " | ") };
    let mut used = BTreeSet::new();
    let parameters = entry.parameters.iter().enumerate().map(|(i, parameter)| {
        let plain = parameter.name.chars().all(|c| c.is_alphanumeric() || c == '_');
        let name = match parameter.name.as_str() {
            name if plain && !name.is_empty() && used.insert(name) => name.to_string(),
            _ => format!("x{i}"),
        };
        format!("{name}: {}", kind(&parameter.kind))
    });
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let get = if entry.form == CallForm::Property { "get " } else { "" };
    format!("fn {get}{}({parameters})", entry.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Engine, registry};

    /// Name, number of parameters and doc of every definition of a file, read by the language's own parser: a
    /// definition is the head of a function.
    fn parsed(text: &str) -> Vec<(String, Vec<String>, String)> {
        let mut script = String::new();
        for line in text.lines().skip(1) {
            match line.strip_prefix("fn ") {
                Some(head) => {
                    let (head, returns) = head.rsplit_once(") -> ").unwrap_or_else(|| panic!("{line}"));
                    assert!(returns.ends_with(';') && returns.len() > 1, "{line}");
                    let (name, parameters) = head.split_once('(').unwrap();
                    let name = name.replace("get ", "get_of_");
                    let names: Vec<&str> = parameters
                        .split(", ")
                        .filter(|p| !p.is_empty())
                        .map(|p| {
                            let (name, kind) = p.split_once(": ").unwrap_or_else(|| panic!("{line}"));
                            assert!(!kind.is_empty() && !kind.contains([':', '&', '<']), "{line}");
                            name
                        })
                        .collect();
                    // Forms that differ in types alone would be one function to the parser.
                    let kinds: String =
                        parameters.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
                    script.push_str(&format!("fn {name}__{kinds}({}) {{ }}\n", names.join(", ")));
                }
                None if line.starts_with("const ") => script.push_str("fn a_constant() { }\n"),
                None => script.push_str(&format!("{line}\n")),
            }
        }
        let script = script.replacen("fn a_constant()", "fn constant_1()", 1).replacen(
            "fn a_constant()",
            "fn constant_2()",
            1,
        );
        let mut engine = rhai::Engine::new();
        engine.set_max_functions(100_000);
        let ast = engine.compile(&script).unwrap_or_else(|e| panic!("{e}\n{script}"));
        ast.iter_functions()
            .map(|f| {
                let name = f.name.split("__").next().unwrap_or_default().to_string();
                let parameters = f.params.iter().map(|p| p.to_string()).collect();
                (name, parameters, registry::doc(f.comments.iter().copied()))
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_read_and_says_what_the_registry_says() {
        let engine = Engine::new().unwrap();
        let entries = registry::entries(engine.rhai(), true);
        let files = files(&entries);
        assert_eq!(files[0].file, "__static__.d.rhai");
        let read: BTreeMap<&str, Vec<(String, Vec<String>, String)>> =
            files.iter().map(|f| (f.file.as_str(), parsed(&f.text))).collect();
        for entry in entries.iter().filter(|e| !e.standard && !e.doc.is_empty()) {
            let file = if entry.module.is_empty() { "__static__".to_string() } else { entry.module.clone() };
            let name = if entry.form == CallForm::Property {
                format!("get_of_{}", entry.name)
            } else {
                entry.name.clone()
            };
            let found = &read[format!("{file}.d.rhai").as_str()];
            let same = |(n, p, doc): &&(String, Vec<String>, String)| {
                *n == name && p.len() == entry.parameters.len() && *doc == entry.doc
            };
            assert!(found.iter().any(|f| same(&f)), "{}", entry.signature());
        }
        let kpm = files.iter().find(|f| f.file == "kpm.d.rhai").unwrap();
        assert!(
            kpm.text.starts_with("module kpm;\n")
                && kpm.text.contains("\nfn dos(x: Operator | Model | Moments, opts: ?) -> Table")
        );
        assert!(files[0].text.contains("\nfn linspace(a: ?, b: ?, n: int) -> Series;\n"));
        assert!(files[0].text.contains("\nfn get rows(") && files[0].text.contains("\nconst PI: float;\n"));
    }
}
