//! Keeps the house: layers import downwards only, foreign crates stay in their rooms, files stay short.

use std::path::{Path, PathBuf};

/// The layers, lowest first; those in one row may import one another.
const LAYERS: [&[&str]; 11] = [
    &["error"],
    &["task"],
    &["number"],
    &["backend"],
    &["operator", "lattice"],
    &["method"],
    &["manybody", "montecarlo", "gauge"],
    &["output"],
    &["script"],
    &["repl"],
    &["cli"],
];

/// Crates and the folders that may use them.
const ROOMS: [(&str, &[&str]); 2] = [("rhai", &["script", "repl", "cli"]), ("cust", &["backend/cuda"])];

/// Lines of a file, beyond which it is two.
const LONGEST: usize = 650;

fn sources() -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&root, &mut found);
    assert!(found.len() > 50, "the sources are gone");
    found.iter().map(|(path, text)| (path.strip_prefix(&root).unwrap().to_path_buf(), text.clone())).collect()
}

/// The code of a file without comments: the rest of a line behind `//` goes, texts with slashes included.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or(line))
}

fn height(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The layer of a file: its first folder, or its own name.
fn layer(path: &Path) -> Option<String> {
    let first = path.components().next()?.as_os_str().to_string_lossy().into_owned();
    let name = first.trim_end_matches(".rs").to_string();
    // The crate's face and the program itself stand above all layers.
    (!["lib", "main"].contains(&name.as_str())).then_some(name)
}

/// The words that follow `crate::` in a piece of code, groups in braces opened one level.
fn imported(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let word_before = code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if word_before {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let word = |text: &str| -> String {
            text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        };
        match rest.strip_prefix('{') {
            Some(group) => {
                let mut depth = 1;
                let mut start = 0;
                for (k, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 || (depth == 1 && c == ',') {
                        found.push(word(&group[start..k]));
                        start = k + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            None => found.push(word(rest)),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

#[test]
fn layers_import_downwards_only() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in sources() {
        let Some(own) = layer(&path) else { continue };
        let own_height =
            height(&own).unwrap_or_else(|| panic!("`{own}` is no layer: add it to LAYERS and src/README.md"));
        let code: String = code(&text).collect::<Vec<_>>().join("\n");
        for name in imported(&code) {
            // Names that are no modules are re-exports of the crate's face, which is the script layer's.
            let name = if name == "Engine" { "script".into() } else { name };
            let Some(other) = height(&name) else { continue };
            seen += 1;
            if other > own_height {
                wrong.push(format!("{} imports `{name}`", path.display()));
            }
        }
    }
    assert!(seen > 200, "the reader of imports finds none");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn foreign_crates_stay_in_their_rooms() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (name, rooms) in ROOMS {
            if rooms.iter().any(|room| path.starts_with(room)) {
                continue;
            }
            let uses = |line: &str| {
                line.match_indices(&format!("{name}::")).any(|(at, _)| {
                    !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
                })
            };
            if code(&text).any(|line| uses(line) || line.trim() == format!("use {name};")) {
                wrong.push(format!("{} uses `{name}`", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > LONGEST)
        .map(|(path, text)| format!("{} has {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "split these: {}", long.join(", "));
}

#[test]
fn the_map_names_every_layer() {
    let map = include_str!("../src/README.md");
    for (path, _) in sources() {
        if let Some(own) = layer(&path) {
            assert!(map.contains(&format!("`{own}/`")) || map.contains(&format!("`{own}.rs`")), "`{own}`");
        }
    }
}

#[test]
fn the_reader_of_imports_reads() {
    assert_eq!(imported("use crate::error::{Error, Result};"), ["error"]);
    assert_eq!(imported("use crate::{task, number::{C64, DType}, Engine};"), ["task", "number", "Engine"]);
    assert_eq!(imported("let x = crate::script::fail(other_crate::thing);"), ["script"]);
}
