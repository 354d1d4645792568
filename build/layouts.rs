//! What host and device agree on, read from the Rust side: the layout of every `#[repr(C)]` struct of the CUDA backend,
//! its integer constants, and the enums with numbers. From it comes a C++ header, which the kernels include: constants
//! as `host::FILE::NAME`, and for every struct a macro that compares a C++ struct with it, field by field.
//!
//! The layout is the one of C, which `repr(C)` promises: fields in order, each at a multiple of its alignment.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// The folder whose structs and constants are read, and files elsewhere with numbers that the kernels know.
pub const BACKEND: &str = "src/backend/cuda";
pub const OTHERS: [&str; 4] = [
    "src/number/philox.rs",
    "src/backend/matrix/wilson.rs",
    "src/backend/walkers.rs",
    "src/montecarlo/scheme/draws.rs",
];

/// Reads the files of the backend, from the repository's root.
///
/// # Errors
/// A file that cannot be read or understood.
pub fn of_the_backend(root: &Path) -> Result<Layouts, String> {
    let mut sources = Vec::new();
    collect(&root.join(BACKEND), "", &mut sources)?;
    for other in OTHERS {
        let name = Path::new(other).with_extension("").to_string_lossy().replace('/', "_");
        let name = name.trim_start_matches("src_").to_string();
        sources.push(Source { module: name, text: text(&root.join(other))? });
    }
    read(&sources)
}

/// Names and texts of all files in `kernels/`.
///
/// # Errors
/// A file that cannot be read.
pub fn kernels(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for path in files(&root.join("kernels"))? {
        found.push((path.display().to_string(), text(&path)?));
    }
    Ok(found)
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn files(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut found: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

/// The Rust files of a folder, by their path within the backend with `_` between folders;
/// `mod.rs` by the folder's name.
fn collect(folder: &Path, prefix: &str, found: &mut Vec<Source>) -> Result<(), String> {
    for path in files(folder)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}_"), found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let module = match (name.as_str(), prefix.trim_end_matches('_')) {
                ("mod", "") => "cuda".to_string(),
                ("mod", folder) => folder.to_string(),
                _ => format!("{prefix}{name}"),
            };
            found.push(Source { module, text: text(&path)? });
        }
    }
    Ok(())
}

/// A Rust file: the name of its namespace, and its text.
pub struct Source {
    pub module: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    /// In bytes.
    pub offset: usize,
    /// In bytes.
    pub size: usize,
    /// Whether it is made of `f32` or `f64`.
    pub real: bool,
}

/// A struct. With a type parameter there is one for `f32` and one for `f64`.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    pub module: String,
    /// Its name, with `_f32` or `_f64` where it has a type parameter.
    pub name: String,
    pub fields: Vec<Field>,
    /// In bytes.
    pub size: usize,
    /// In bytes.
    pub align: usize,
}

impl Layout {
    /// The macro that compares a C++ struct with this one.
    pub fn check(&self) -> String {
        format!("HOST_LAYOUT_{}_{}", self.module, self.name)
    }

    /// The macro that compares the beginning of a C++ struct with this one.
    pub fn check_head(&self) -> String {
        format!("HOST_HEAD_{}_{}", self.module, self.name)
    }

    /// Fields that have a name and that the C++ struct has as well: those with a leading underscore fill gaps.
    fn shared(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|f| !f.name.is_empty() && !f.name.starts_with('_'))
    }
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Layouts {
    pub structs: Vec<Layout>,
    /// File, name and value.
    pub constants: Vec<(String, String, i128)>,
    pub enums: Vec<Enum>,
}

/// An enum whose members have numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Enum {
    pub module: String,
    pub name: String,
    /// Bytes of a number.
    pub size: usize,
    pub members: Vec<(String, i128)>,
}

/// Size, alignment, and whether it is a real.
type Scalar = (usize, usize, bool);

fn scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "u8" | "i8" => (1, 1, false),
        "u16" | "i16" => (2, 2, false),
        "u32" | "i32" => (4, 4, false),
        "u64" | "i64" => (8, 8, false),
        "f32" => (4, 4, true),
        "f64" => (8, 8, true),
        _ => return None,
    })
}

/// Words, numbers and signs of a Rust text, without comments, attributes' texts and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            found.push("\"\"".to_string());
            end.map_or(rest.len(), |end| end + 2)
        } else if c == '\'' && rest.chars().nth(2) == Some('\'') {
            // A character, not a lifetime.
            rest.char_indices().nth(3).map_or(rest.len(), |(at, _)| at)
        } else if c.is_alphanumeric() || c == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push(rest[..length].to_string());
            length
        } else {
            if !c.is_whitespace() {
                found.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// A place in the tokens of a file.
struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> &str {
        self.at += 1;
        self.tokens.get(self.at - 1).map_or("", String::as_str)
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let all = words.iter().enumerate().all(|(k, w)| self.tokens.get(self.at + k).is_some_and(|t| t == w));
        if all {
            self.at += words.len();
        }
        all
    }

    /// From an opening bracket to behind the closing one.
    fn skip_group(&mut self) {
        let mut depth = 0;
        loop {
            match self.next() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "" => return,
                _ => {}
            }
            if depth <= 0 {
                return;
            }
        }
    }

    fn skip_attributes(&mut self) {
        while self.peek() == "#" {
            self.next();
            self.skip_group();
        }
    }

    fn skip_visibility(&mut self) {
        if self.take(&["pub"]) && self.peek() == "(" {
            self.skip_group();
        }
    }
}

/// Reads the files; a struct or a constant may name those of other files.
///
/// # Errors
/// What of a struct cannot be understood.
pub fn read(sources: &[Source]) -> Result<Layouts, String> {
    let mut all = Layouts::default();
    let files: Vec<(&str, Vec<String>)> =
        sources.iter().map(|s| (s.module.as_str(), tokens(&s.text))).collect();
    let mut values = Values::default();
    // Again as long as it brings more: constants are made of others below them or in other files.
    loop {
        let before = values.known.len();
        files.iter().for_each(|(module, tokens)| constants(module, tokens, &mut values));
        if values.known.len() == before {
            break;
        }
    }
    let mut pending: Vec<Raw> = Vec::new();
    for (module, tokens) in &files {
        structs(module, tokens, &mut pending)?;
        enums(module, tokens, &mut all.enums);
    }
    let mut known: HashMap<String, Scalar> = HashMap::new();
    // Structs within others are known before these.
    while !pending.is_empty() {
        let before = pending.len();
        let mut later = Vec::new();
        for raw in pending {
            match raw.lay_out(&known, &values) {
                Ok(layouts) => {
                    for layout in layouts {
                        known.insert(layout.name.clone(), (layout.size, layout.align, false));
                        all.structs.push(layout);
                    }
                }
                Err(_) => later.push(raw),
            }
        }
        pending = later;
        if pending.len() == before {
            let why = pending[0].lay_out(&known, &values).err().unwrap_or_default();
            return Err(format!("the struct `{}` of {}: {why}", pending[0].name, pending[0].module));
        }
    }
    all.constants = values.known;
    all.structs.sort_by(|a, b| (&a.module, &a.name).cmp(&(&b.module, &b.name)));
    Ok(all)
}

#[derive(Default)]
struct Values {
    known: Vec<(String, String, i128)>,
    /// File and name of every constant, also of those whose value is not known.
    named: Vec<(String, String)>,
}

impl Values {
    /// A constant of this file, or the only one of that name in others.
    fn of(&self, module: &str, name: &str) -> Option<i128> {
        let mut homes = self.named.iter().filter(|n| n.1 == name).map(|n| n.0.as_str());
        let home = match homes.clone().find(|home| *home == module) {
            Some(own) => own,
            None => homes.next().filter(|_| homes.next().is_none())?,
        };
        self.known.iter().find(|k| k.0 == home && k.1 == name).map(|k| k.2)
    }

    /// Numbers and constants with `+ - * / % << >>`, of operators that bind at least as strongly as `least`;
    /// None for more.
    fn evaluate(&self, module: &str, reader: &mut Reader, least: usize) -> Option<i128> {
        let mut left = match reader.next().to_string().as_str() {
            "(" => {
                let inner = self.evaluate(module, reader, 0)?;
                reader.take(&[")"]).then_some(inner)?
            }
            "u32" if reader.take(&[":", ":", "MAX"]) => u32::MAX.into(),
            word if word.starts_with(|c: char| c.is_ascii_digit()) => number(word)?,
            word => self.of(module, word)?,
        };
        loop {
            if reader.take(&["as"]) {
                reader.next();
                continue;
            }
            let operator = reader.peek().to_string();
            let strength = match operator.as_str() {
                "<" | ">" => 1,
                "+" | "-" => 2,
                "*" | "/" | "%" => 3,
                _ => return Some(left),
            };
            if strength < least {
                return Some(left);
            }
            reader.next();
            if strength == 1 && !reader.take(&[&operator]) {
                return None;
            }
            let right = self.evaluate(module, reader, strength + 1)?;
            left = match operator.as_str() {
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                "%" => left.checked_rem(right)?,
                "<" => left.checked_shl(u32::try_from(right).ok()?)?,
                _ => left.checked_shr(u32::try_from(right).ok()?)?,
            };
        }
    }
}

/// A literal, with underscores and a type behind it.
fn number(word: &str) -> Option<i128> {
    let plain = word.replace('_', "");
    let plain =
        ["usize", "u32", "u64", "i32", "i64"].iter().fold(plain.as_str(), |n, t| n.trim_end_matches(t));
    match plain.strip_prefix("0x") {
        Some(hexadecimal) => i128::from_str_radix(hexadecimal, 16).ok(),
        None => plain.parse().ok(),
    }
}

/// Integer constants outside functions and blocks.
fn constants(module: &str, tokens: &[String], values: &mut Values) {
    let mut reader = Reader { tokens, at: 0 };
    while reader.at < tokens.len() {
        if reader.peek() == "{" {
            reader.skip_group();
            continue;
        }
        if !reader.take(&["const"]) {
            reader.next();
            continue;
        }
        let name = reader.next().to_string();
        let own = (module.to_string(), name.clone());
        if !values.named.contains(&own) {
            values.named.push(own);
        }
        let integer = reader.take(&[":"]) && ["usize", "u32", "u64", "i32", "i64"].contains(&reader.next());
        if !integer || !reader.take(&["="]) {
            continue;
        }
        let value = values.evaluate(module, &mut reader, 0).filter(|_| reader.peek() == ";");
        let new = !values.known.iter().any(|k| k.0 == module && k.1 == name);
        if let (Some(value), true) = (value, new) {
            values.known.push((module.to_string(), name, value));
        }
    }
}

/// Enums with a `#[repr(..)]` of their own and values that are written out.
fn enums(module: &str, tokens: &[String], found: &mut Vec<Enum>) {
    let mut reader = Reader { tokens, at: 0 };
    while reader.at < tokens.len() {
        if !reader.take(&["#", "[", "repr", "("]) {
            reader.next();
            continue;
        }
        let Some((size, ..)) = scalar(reader.next()) else { continue };
        reader.take(&[")", "]"]);
        reader.skip_attributes();
        reader.skip_visibility();
        if !reader.take(&["enum"]) {
            continue;
        }
        let name = reader.next().to_string();
        let mut members = Vec::new();
        reader.take(&["{"]);
        while !["}", ""].contains(&reader.peek()) {
            reader.skip_attributes();
            let member = reader.next().to_string();
            let value = if reader.take(&["="]) { number(reader.next()) } else { None };
            let next = members.last().map_or(0, |m: &(String, i128)| m.1 + 1);
            members.push((member, value.unwrap_or(next)));
            reader.take(&[","]);
        }
        found.push(Enum { module: module.to_string(), name, size, members });
    }
}

/// A struct as it is written.
struct Raw {
    module: String,
    name: String,
    parameter: Option<String>,
    /// Names and the tokens of types.
    fields: Vec<(String, Vec<String>)>,
}

fn structs(module: &str, tokens: &[String], found: &mut Vec<Raw>) -> Result<(), String> {
    let mut reader = Reader { tokens, at: 0 };
    while reader.at < tokens.len() {
        if !reader.take(&["#", "[", "repr", "(", "C", ")", "]"]) {
            reader.next();
            continue;
        }
        reader.skip_attributes();
        reader.skip_visibility();
        if !reader.take(&["struct"]) {
            return Err(format!("`#[repr(C)]` in {module} before something that is no struct"));
        }
        let name = reader.next().to_string();
        let parameter = if reader.take(&["<"]) {
            let parameter = reader.next().to_string();
            reader.take(&[">"]).then_some(parameter)
        } else {
            None
        };
        let named = match reader.next() {
            "{" => true,
            "(" => false,
            other => return Err(format!("`{name}` of {module}: `{other}` instead of its fields")),
        };
        let mut fields = Vec::new();
        while !["}", ")", ""].contains(&reader.peek()) {
            reader.skip_attributes();
            reader.skip_visibility();
            let mut field = String::new();
            if named {
                field = reader.next().to_string();
                reader.take(&[":"]);
            }
            let from = reader.at;
            while ![",", "}", ")", ""].contains(&reader.peek()) {
                if reader.peek() == "[" { reader.skip_group() } else { reader.at += 1 }
            }
            fields.push((field, tokens[from..reader.at].to_vec()));
            reader.take(&[","]);
        }
        found.push(Raw { module: module.to_string(), name, parameter, fields });
    }
    Ok(())
}

impl Raw {
    fn lay_out(&self, known: &HashMap<String, Scalar>, values: &Values) -> Result<Vec<Layout>, String> {
        let Some(parameter) = &self.parameter else { return Ok(vec![self.with(known, values, "", "")?]) };
        ["f32", "f64"].iter().map(|real| self.with(known, values, parameter, real)).collect()
    }

    fn with(
        &self,
        known: &HashMap<String, Scalar>,
        values: &Values,
        parameter: &str,
        real: &str,
    ) -> Result<Layout, String> {
        let (mut fields, mut end, mut most) = (Vec::new(), 0_usize, 1);
        for (name, tokens) in &self.fields {
            let tokens: Vec<String> =
                tokens.iter().map(|t| if t == parameter { real.to_string() } else { t.clone() }).collect();
            let mut reader = Reader { tokens: &tokens, at: 0 };
            let found = self.size(&mut reader, known, values).filter(|_| reader.at == tokens.len());
            let (size, align, real) =
                found.ok_or_else(|| format!("what `{name}: {}` takes is not known", tokens.concat()))?;
            let offset = end.next_multiple_of(align);
            fields.push(Field { name: name.clone(), offset, size, real });
            (end, most) = (offset + size, most.max(align));
        }
        let suffix = if real.is_empty() { String::new() } else { format!("_{real}") };
        let (module, name) = (self.module.clone(), format!("{}{suffix}", self.name));
        Ok(Layout { module, name, fields, size: end.next_multiple_of(most), align: most })
    }

    fn size(&self, reader: &mut Reader, known: &HashMap<String, Scalar>, values: &Values) -> Option<Scalar> {
        if !reader.take(&["["]) {
            let name = reader.next();
            return scalar(name).or_else(|| known.get(name).copied());
        }
        let (size, align, real) = self.size(reader, known, values)?;
        let count = reader.take(&[";"]).then(|| values.evaluate(&self.module, reader, 0))??;
        reader.take(&["]"]).then_some((size * usize::try_from(count).ok()?, align, real))
    }
}

/// The header for the kernels, with what of it they name: other constants may change without their being compiled anew.
pub fn header(all: &Layouts, kernels: &[(String, String)]) -> String {
    let named = |name: &str| {
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        kernels.iter().any(|(_, text)| text.split(name).skip(1).any(ends))
    };
    let mut out = String::from(
        "// Made by build.rs from src/backend/cuda: what host and device agree on.\n#pragma once\n\
         #include <cstdint>\n#include <type_traits>\n\nnamespace host {\n\n\
         template <class T>\n\
         constexpr bool REAL = std::is_floating_point<typename std::remove_all_extents<T>::type>::value;\n\n",
    );
    for (module, name, value) in &all.constants {
        if named(&format!("host::{module}::{name}")) {
            let _ = writeln!(out, "namespace {module} {{ constexpr long long {name} = {value}; }}");
        }
    }
    for Enum { module, name, size, members } in &all.enums {
        let list: Vec<String> = members.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let bits = 8 * size;
        let _ =
            writeln!(out, "namespace {module} {{ enum {name} : uint{bits}_t {{ {} }}; }}", list.join(", "));
    }
    out.push_str("\n}  // namespace host\n");
    for layout in &all.structs {
        let there = format!("'{}' of {}", layout.name, layout.module);
        let mut fields = String::new();
        for f in layout.shared() {
            let (name, offset, size, not) = (&f.name, f.offset, f.size, if f.real { "" } else { "!" });
            let _ = write!(
                fields,
                " \\\n    static_assert(__builtin_offsetof(__VA_ARGS__, {name}) == {offset}, \
                 \"'{name}' is not where {there} has it\"); \
                 \\\n    static_assert(sizeof(__VA_ARGS__::{name}) == {size} \
                 && {not}host::REAL<decltype(__VA_ARGS__::{name})>, \
                 \"'{name}' is not what it is in {there}\");"
            );
        }
        let size = layout.size;
        if named(&layout.check()) {
            let _ = writeln!(
                out,
                "\n#define {}(...){fields} \\\n    static_assert(sizeof(__VA_ARGS__) == {size}, \
                 \"not the size of {there}\")",
                layout.check()
            );
        }
        if named(&layout.check_head()) {
            let _ = writeln!(
                out,
                "\n#define {}(NEXT, ...){fields} \\\n    \
                 static_assert(__builtin_offsetof(__VA_ARGS__, NEXT) == {size}, \
                 \"'\" #NEXT \"' does not follow {there}\")",
                layout.check_head()
            );
        }
    }
    out
}

/// Compares without a compiler of CUDA, as far as words go: every struct must be compared in some kernel file, and the
/// fields of the C++ struct must stand in the same order. Returns how many comparisons there are.
///
/// # Errors
/// What differs.
pub fn compare(all: &Layouts, kernels: &[(String, String)]) -> Result<usize, String> {
    let mut compared = 0;
    for layout in &all.structs {
        let before = compared;
        for (file, text) in kernels {
            // In a comparison of heads the struct comes second.
            for (start, place) in [(layout.check(), 0), (layout.check_head(), 1)] {
                for rest in text.split(&format!("{start}(")).skip(1) {
                    let argument = rest.split(',').nth(place).unwrap_or("").trim_start();
                    let word = |c: &char| c.is_alphanumeric() || *c == '_';
                    let name: String = argument.chars().take_while(word).collect();
                    same_order(layout, file, text, &name)?;
                    compared += 1;
                }
            }
        }
        if compared == before {
            return Err(format!(
                "no file of kernels/ compares a struct with `{}` of {}: write `{}(TheStruct);` behind it",
                layout.name,
                layout.module,
                layout.check()
            ));
        }
    }
    Ok(compared)
}

/// Refuses a C++ struct that lacks a field, or has it in another place among the others.
fn same_order(layout: &Layout, file: &str, text: &str, name: &str) -> Result<(), String> {
    if layout.fields.iter().all(|f| f.name.is_empty()) {
        return Ok(());
    }
    let (_, body) = text
        .split_once(&format!("struct {name} {{"))
        .ok_or_else(|| format!("{file} has no struct `{name}`, which it compares with `{}`", layout.name))?;
    let words = tokens(body.split_once("\n}").map_or(body, |(body, _)| body));
    let ends = |k: usize| words.get(k + 1).is_some_and(|w| [",", ";", "[", ")"].contains(&w.as_str()));
    let mut at = 0;
    for field in layout.shared() {
        at = (at..words.len()).find(|&k| words[k] == field.name && ends(k)).ok_or_else(|| {
            format!(
                "{file}: `{}` of `{name}` does not stand where `{}` of {} has it",
                field.name, layout.name, layout.module
            )
        })?;
    }
    Ok(())
}
