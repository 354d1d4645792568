//! Keeps the house: layers import downwards only, files of a folder import one another in one direction, foreign crates
//! and `unsafe` stay in their rooms, numeric layers know no script, types have names of their own, files stay short,
//! host and device agree.

#[path = "../build/layouts.rs"]
mod layouts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layers, lowest first; those in one row may import one another.
const LAYERS: [&[&str]; 13] = [
    &["error"],
    &["confine", "task"],
    &["ranks"],
    &["number"],
    &["backend"],
    &["operator", "lattice"],
    &["method"],
    &["manybody", "montecarlo", "gauge"],
    &["output"],
    &["script"],
    &["repl"],
    &["lsp", "jupyter"],
    &["cli"],
];

/// Crates and the folders that may use them.
const ROOMS: [(&str, &[&str]); 5] = [
    ("rhai", &["script", "repl", "cli"]),
    ("cust", &["backend/cuda"]),
    ("landlock", &["confine.rs"]),
    ("tokio", &["jupyter"]),
    ("zeromq", &["jupyter"]),
];

/// Where `unsafe` is: in the backends, and in files that ask the system for something that the standard library lacks.
const UNSAFE: [&str; 7] = [
    "backend",
    "number/aligned.rs",
    "number/memory",
    "task/signals.rs",
    "ranks/mpi.rs",
    "method/recorded.rs",
    "main.rs",
];

/// Lines of a file, beyond which it is two.
const LONGEST: usize = 650;

fn sources() -> Vec<(PathBuf, String)> {
    let found = sources_in("src");
    assert!(found.len() > 50, "the sources are gone");
    found
}

fn sources_in(folder: &str) -> Vec<(PathBuf, String)> {
    texts_in(folder, &["rs"])
}

/// The files with these endings below a folder of the project, and their texts.
fn texts_in(folder: &str, endings: &[&str]) -> Vec<(PathBuf, String)> {
    fn collect(folder: &Path, endings: &[&str], found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, endings, found);
            } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    collect(&root, endings, &mut found);
    found.into_iter().map(|(path, text)| (path.strip_prefix(&root).unwrap().to_path_buf(), text)).collect()
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

/// The code of a file up to its tests.
fn program(text: &str) -> String {
    let all = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    code(all).collect::<Vec<_>>().join("\n")
}

/// The paths that a piece of code names: those of `use`, groups opened, and those that begin with `crate`, `super` or
/// `self`.
fn paths(code: &str) -> Vec<Vec<String>> {
    fn open(before: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
        let (path, group) = match tree.split_once('{') {
            Some((path, group)) => (path, group.rsplit_once('}').map(|(inner, _)| inner)),
            None => (tree, None),
        };
        let path = path.split(" as ").next().unwrap_or(path);
        let words = path.split("::").map(|w| w.trim().to_string()).filter(|w| !w.is_empty());
        let path: Vec<String> = before.iter().cloned().chain(words).collect();
        let Some(group) = group else { return found.push(path) };
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !group[start..at].trim().is_empty() {
                        open(&path, &group[start..at], found);
                    }
                    start = at + 1;
                }
                _ => {}
            }
        }
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ").filter(|(at, _)| !code[..*at].ends_with(word)) {
        let tree = code[at + 4..].split(';').next().unwrap_or("");
        open(&[], tree, &mut found);
    }
    for root in ["crate::", "super::", "self::"] {
        let starts =
            code.match_indices(root).filter(|(at, _)| !code[..*at].ends_with(|c| word(c) || c == ':'));
        for (at, _) in starts {
            let path = code[at..].split(|c| !word(c) && c != ':').next().unwrap_or("");
            open(&[], path, &mut found);
        }
    }
    found
}

/// Which file of a folder, or folder in it, imports which other one there: by folder.
fn imports_by_folder(files: &[(PathBuf, String)]) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let module = |path: &Path| -> Vec<String> {
        let path = path.with_extension("");
        let mut words: Vec<String> = path.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        if words.last().is_some_and(|w| w == "mod") {
            words.pop();
        }
        words
    };
    let modules: BTreeSet<Vec<String>> = files.iter().map(|(path, _)| module(path)).collect();
    let mut found: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (path, text) in files {
        let own = module(path);
        for words in paths(&program(text)) {
            let ups = words.iter().take_while(|w| *w == "super").count();
            let mut to: Vec<String> = match words.first().map(String::as_str) {
                Some("crate") => words[1..].to_vec(),
                Some("super") => {
                    own[..own.len().saturating_sub(ups)].iter().chain(&words[ups..]).cloned().collect()
                }
                Some("self") => own.iter().chain(&words[1..]).cloned().collect(),
                _ => own.iter().chain(&words).cloned().collect(),
            };
            while !to.is_empty() && !modules.contains(&to) {
                to.pop();
            }
            let same = own.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if same < own.len() && same < to.len() {
                let folder = found.entry(own[..same].join("/")).or_default();
                folder.entry(own[same].clone()).or_default().insert(to[same].clone());
            }
        }
    }
    found
}

/// Those that lead back to themselves.
fn circle(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<&String> {
    let comes_back = |start: &&String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
        while let Some(name) = next.pop() {
            for to in imports.get(name).into_iter().flatten() {
                if to == *start {
                    return true;
                }
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        false
    };
    imports.keys().filter(comes_back).collect()
}

#[test]
fn files_of_a_folder_import_in_one_direction() {
    let folders = imports_by_folder(&sources());
    assert!(folders.len() > 20, "the reader of imports finds none");
    let python = imports_by_folder(&sources_in("python/src"));
    assert!(python[""].len() > 3, "the reader of imports finds none of the package for Python");
    let wrong: Vec<String> = folders
        .iter()
        .chain(&python)
        .map(|(folder, imports)| (folder, circle(imports)))
        .filter(|(_, circle)| !circle.is_empty())
        .map(|(folder, circle)| format!("in `{folder}/` these import one another: {circle:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn circles_are_found() {
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_string());
    let files = [
        file("a/mod.rs", "mod one; mod two; mod three; use one::Thing;"),
        file("a/one.rs", "use super::{two::{Other, more}, Top};"),
        file("a/two.rs", "fn f() { crate::a::three::g() }\n#[cfg(test)]\nmod tests { use super::one; }"),
        file("a/three.rs", "// use super::one;\nuse crate::{a::two, b};"),
        file("b.rs", "use crate::a::one;"),
    ];
    let folders = imports_by_folder(&files);
    assert_eq!(circle(&folders["a"]), ["three", "two"]);
    assert_eq!(circle(&folders[""]), ["a", "b"]);
}

#[test]
fn unsafe_stays_in_its_rooms() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|(path, _)| !UNSAFE.iter().any(|room| path.starts_with(room)))
        .filter(|(_, text)| {
            code(text).any(|line| line.split(|c: char| !c.is_alphanumeric()).any(|w| w == "unsafe"))
        })
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "`unsafe` in {}", wrong.join(", "));
}

/// The texts of hints in a file.
fn hints(text: &str) -> Vec<String> {
    let text = program(text);
    let mut found = Vec::new();
    for (at, _) in text.match_indices(".hint(") {
        let rest = &text[at..];
        // To the bracket that closes it; brackets within texts come in pairs.
        let (mut depth, mut end) = (0, rest.len());
        for (at, c) in rest.char_indices() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if c == ')' && depth == 0 {
                end = at;
                break;
            }
        }
        let quoted = rest[..end].replace("\\\"", "'");
        found.extend(quoted.split('"').skip(1).step_by(2).map(str::to_string));
    }
    found
}

/// Whether a text calls a function of the language: "`name(", or a method of a value: ".name(".
fn calls(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split('`').skip(1).step_by(2).any(|code| {
        code.match_indices('(').any(|(at, _)| {
            let before = code[..at].trim_end_matches(word);
            before.len() < at && (before.is_empty() || before.ends_with('.'))
        })
    })
}

#[test]
fn calls_are_seen() {
    for text in ["use `f(x)`", "take `v.column(0)`", "`d.dagger() * d`", "as in `(u * v).boundary(\"open\")`"]
    {
        assert!(calls(text), "{text}");
    }
    for text in ["use f(x)", "`2 (a + b)`", "`-f(1)`", "v.column(0)", "of `x`(1)"] {
        assert!(!calls(text), "{text}");
    }
}

#[test]
fn numeric_layers_know_no_script() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let script = height("script").unwrap();
    for (path, text) in sources() {
        let own = layer(&path);
        if own.is_none_or(|own| height(&own).is_none_or(|h| h >= script)) {
            continue;
        }
        let name = path.display().to_string();
        let hints = hints(&text);
        seen += hints.len();
        // What helps in Python is written in Python.
        let foreign = |hint: &str| hint.contains("NumPy") || hint.contains("Python");
        let speaks =
            |hint: &&String| hint.contains("#{") || hint.contains("::") || (calls(hint) && !foreign(hint));
        wrong.extend(hints.iter().filter(speaks).map(|hint| format!("{name}: the hint \"{hint}\"")));
        let program = program(&text);
        // Texts that several hints share.
        let shared = program.split(": &str =").skip(1).filter_map(|rest| rest.split('"').nth(1));
        wrong.extend(shared.filter(|text| calls(text)).map(|text| format!("{name}: \"{text}\"")));
        if program.contains("fn parse(name: &str") {
            wrong.push(format!("{name} reads a name of the script"));
        }
    }
    assert!(seen > 100, "the reader of hints finds none");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every struct that goes to a kernel is compared with its twin there, in words here and by the compiler where there is
/// one.
#[test]
fn host_and_device_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = layouts::of_the_backend(root).unwrap();
    let kernels = layouts::kernels(root).unwrap();
    let written = sources()
        .iter()
        .filter(|(path, _)| path.starts_with("backend"))
        .flat_map(|(_, text)| code(text).map(str::trim).collect::<Vec<_>>())
        .filter(|line| *line == "#[repr(C)]")
        .count();
    // A struct with a type parameter counts twice.
    let parameters = all.structs.iter().filter(|s| s.name.ends_with("_f64")).count();
    assert_eq!(all.structs.len() - parameters, written);
    assert!(written >= 24, "the reader of structs finds {written}");
    assert!(layouts::compare(&all, &kernels).unwrap() >= all.structs.len());
    let header = layouts::header(&all, &kernels);
    assert!(header.contains("namespace records { constexpr long long SIDE = 64; }"), "{header}");

    // What differs is found: fields that change places, a field that the device lacks, a struct that nobody compares.
    for change in ["places", "name", "missing"] {
        let mut changed = layouts::of_the_backend(root).unwrap();
        let walk = changed.structs.iter_mut().find(|s| s.name == "WalkArgument").unwrap();
        match change {
            "places" => walk.fields.swap(2, 3),
            "name" => walk.fields[4].name = "else".into(),
            _ => walk.name = "Elsewhere".into(),
        }
        assert!(layouts::compare(&changed, &kernels).is_err(), "{change}");
    }
}

/// A struct, and its text for the reader.
macro_rules! both {
    ($text:ident, $($struct:item)*) => {
        $($struct)*
        pub const $text: &str = stringify!($($struct)*);
    };
}

mod twins {
    both! {
        TEXT,
        #[repr(C)]
        pub struct Inner { pub a: u32, pub b: [f32; 3] }
        #[repr(C)]
        pub struct Outer<F> {
            pub first: u8,
            pub real: f64,
            pub list: [[F; COUNT * 2 - 1]; 2],
            pub inner: [Inner; 3],
            pub last: u32,
        }
    }
    pub const COUNT: usize = 1 << 1;
}

#[test]
fn the_reader_of_structs_lays_out_as_the_compiler_does() {
    use std::mem::offset_of;
    use twins::{Inner, Outer};
    let text = format!("pub const COUNT: usize = 1 << 1;\n{}", twins::TEXT);
    // As `stringify!` writes it and as people do.
    let text =
        text.replace("#[repr(C)]", "#[repr(C)]\n#[derive(Clone)]\n").replace("# [repr (C)]", "#[repr(C)]");
    let all = layouts::read(&[layouts::Source { module: "twins".into(), text }]).unwrap();
    let of = |name: &str| all.structs.iter().find(|s| s.name == name).unwrap();
    let offsets = |name: &str| of(name).fields.iter().map(|f| f.offset).collect::<Vec<_>>();
    assert_eq!((of("Inner").size, of("Inner").align), (size_of::<Inner>(), align_of::<Inner>()));
    assert_eq!(offsets("Inner"), [offset_of!(Inner, a), offset_of!(Inner, b)]);
    macro_rules! same {
        ($name:literal, $t:ty) => {
            assert_eq!((of($name).size, of($name).align), (size_of::<$t>(), align_of::<$t>()));
            let expected = [
                offset_of!($t, first),
                offset_of!($t, real),
                offset_of!($t, list),
                offset_of!($t, inner),
                offset_of!($t, last),
            ];
            assert_eq!(offsets($name), expected);
        };
    }
    same!("Outer_f32", Outer<f32>);
    same!("Outer_f64", Outer<f64>);
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
    let workflows = texts_in("stdlib", &["rhai"]);
    assert!(workflows.len() > 20, "the workflows are gone");
    let long: Vec<String> = sources()
        .iter()
        .chain(&workflows)
        .filter(|(_, text)| text.lines().count() > LONGEST)
        .map(|(path, text)| format!("{} has {} lines", path.display(), text.lines().count()))
        .collect();
    assert!(long.is_empty(), "split these: {}", long.join(", "));
}

/// Lines of prose that do not fit on a screen, by their numbers. Of a program these are its comments. Tables, code and
/// addresses are as wide as they are.
fn wide_lines(text: &str, program: bool) -> Vec<usize> {
    let (mut wide, mut code) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']));
        let Some(text) = (if program { comment } else { Some(line) }) else {
            code = false;
            continue;
        };
        let text = text.trim_start();
        code ^= text.starts_with("```");
        let free = code || text.starts_with('|') || text.contains("://") || text.contains("  ");
        if !free && line.chars().count() > 120 {
            wide.push(number + 1);
        }
    }
    wide
}

#[test]
fn code_has_short_lines() {
    let (mut wide, mut seen) = (Vec::new(), 0);
    let folders = ["src", "build", "stdlib", "scripts", "examples", "benches", "tests", "python/src"];
    let own = folders.map(|folder| (folder, &["rs", "rhai"][..]));
    let python = ["python/tests", "python/umklapp"].map(|folder| (folder, &["py", "pyi"][..]));
    for (folder, endings) in own.into_iter().chain(python) {
        for (path, text) in texts_in(folder, endings) {
            seen += 1;
            let long = text.lines().zip(1..).filter(|(line, _)| line.chars().count() > 120);
            wide.extend(long.map(|(_, number)| format!("{folder}/{}:{number}", path.display())));
        }
    }
    assert!(seen > 700 && wide.is_empty(), "{} lines: {}", wide.len(), wide.join(", "));
}

/// What stands in for a file where the system lacks what that needs: its types have the names of those there.
const STAND_INS: [&str; 2] = ["ranks/none.rs", "ranks/unwatched.rs"];

/// The types that a file declares for others, by their names.
fn types(text: &str) -> Vec<&str> {
    let declared = |line: &str| -> Option<std::ops::Range<usize>> {
        let behind = line.strip_prefix("pub")?;
        let behind = if behind.starts_with('(') { behind.split_once(')')?.1 } else { behind };
        let behind = behind.trim_start().trim_start_matches("unsafe ");
        let (kind, name) = behind.split_once(' ')?;
        let start = line.len() - name.len();
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        ["struct", "enum", "trait", "type", "union"].contains(&kind).then_some(start..start + end)
    };
    text.lines().filter_map(|line| Some(&line[declared(line)?])).collect()
}

#[test]
fn types_have_names_of_their_own() {
    let mut declared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources() {
        if STAND_INS.iter().any(|file| path == Path::new(file)) {
            continue;
        }
        for name in types(&text) {
            declared.entry(name.to_string()).or_default().push(path.display().to_string());
        }
    }
    assert!(declared.len() > 400, "the types are gone");
    let shared = declared.iter().filter(|(_, files)| files.len() > 1);
    let shared: Vec<String> = shared.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    assert!(shared.is_empty(), "each of these needs a name that tells it:\n{}", shared.join("\n"));
}

#[test]
fn types_are_seen() {
    let text = "pub struct A<T>(T);\npub(super) enum B {\nstruct E;\npub(in crate::a) unsafe trait C: D {\n";
    assert_eq!(types(text), ["A", "B", "C"]);
}

#[test]
fn prose_has_short_lines() {
    let (mut wide, mut seen) = (Vec::new(), 0);
    let mut look = |folder: &str, files: Vec<(PathBuf, String)>, program: bool| {
        seen += files.len();
        for (path, text) in files {
            let at = |number| format!("{folder}/{}:{number}", path.display());
            wide.extend(wide_lines(&text, program).into_iter().map(at));
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at_the_root = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    let texts = at_the_root.filter(|path| path.extension().is_some_and(|e| e == "md")).map(read);
    look(".", texts.collect(), false);
    for folder in ["book/src", "src"] {
        look(folder, texts_in(folder, &["md"]), false);
    }
    for folder in
        ["src", "stdlib", "kernels", "tests", "build", "benches", "scripts", "examples", "python/src"]
    {
        look(folder, texts_in(folder, &["rs", "rhai", "cu", "cuh", "h"]), true);
    }
    assert!(seen > 500 && wide.is_empty(), "{} lines: {}", wide.len(), wide.join(", "));
}

#[test]
fn wide_lines_are_found() {
    let words = "word ".repeat(25);
    let text = format!("{words}\n    //! {words}\n/// ```\n/// {words}\n/// ```\n// | {words}\n// {words}\n");
    assert_eq!(wide_lines(&text, true), [2, 7]);
    assert_eq!(wide_lines(&words, false), [1]);
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

#[test]
fn every_test_is_part_of_a_program() {
    let suite = std::fs::read_to_string("tests/suite.rs").unwrap();
    for entry in std::fs::read_dir("tests").unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let file = path.extension().is_some_and(|e| e == "rs") || path.join("mod.rs").exists();
        let own = ["suite", "scripts", "fuzz"].contains(&name.as_str());
        assert!(!file || own || suite.contains(&format!("mod {name};")), "no program runs tests/{name}");
    }
}
