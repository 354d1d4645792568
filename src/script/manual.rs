//! The registry as text for people: the page of a name and the overview.

use std::collections::{BTreeMap, BTreeSet};

use super::declared;
use super::registry::{self, CallForm, RegisteredFunction};
use super::words;

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct TextStyle {
    /// Whether headings are coloured.
    pub colour: bool,
    /// Characters a line.
    pub width: usize,
}

impl TextStyle {
    fn head(self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }

    fn faint(self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// The page of a function, a method (`slice`, `Series.slice`, `Series::slice`), a module or a type.
/// `None` if there is nothing of that name.
pub fn page(entries: &[RegisteredFunction], name: &str, style: TextStyle) -> Option<String> {
    let name = name.trim().trim_end_matches("()").trim_end_matches("::");
    if let Some(text) = words::about(name) {
        return Some(format!("{}\n{text}", style.head(name)));
    }
    if entries.iter().any(|e| e.module == name) {
        return Some(listing(entries.iter().filter(|e| e.module == name), &format!("module {name}"), style));
    }
    if entries.iter().any(|e| e.of_type() == Some(name)) {
        let own = |e: &&RegisteredFunction| e.of_type() == Some(name);
        return Some(listing(entries.iter().filter(own), &format!("type {name}"), style));
    }
    let wanted = |e: &&RegisteredFunction| {
        let method = |t: &str| name.strip_prefix(t).and_then(|rest| rest.strip_suffix(e.name.as_str()));
        let of_type = |t: &str| matches!(method(t), Some("." | "::"));
        e.path() == name || e.name == name || e.of_type().is_some_and(of_type)
    };
    // One section a function, for each type that has it.
    let mut sections: BTreeMap<(bool, String, String), Vec<&RegisteredFunction>> = BTreeMap::new();
    for e in entries.iter().filter(wanted) {
        let kind = e.of_type().unwrap_or_default().to_string();
        sections.entry((e.standard, e.path(), kind)).or_default().push(e);
    }
    sections.values_mut().for_each(|section| section.sort_by_cached_key(|e| (e.refers(), e.signature())));
    // Forms without a doc comment are shown with the form that has one.
    let documented = sections.values().any(|s| s.iter().any(|e| !e.doc.is_empty()));
    let pages: Vec<String> = sections
        .values()
        .filter(|s| !documented || s.iter().any(|e| !e.doc.is_empty()))
        .map(|s| section(s, entries, style))
        .collect();
    (!pages.is_empty()).then(|| pages.join("\n\n"))
}

/// What to say if there is no page of that name.
pub fn no_page(entries: &[RegisteredFunction], name: &str) -> String {
    let mut names: BTreeSet<String> = entries.iter().map(RegisteredFunction::path).collect();
    names.extend(entries.iter().map(|e| e.module.clone()).filter(|m| !m.is_empty()));
    names.extend(entries.iter().filter_map(|e| e.of_type().map(str::to_string)));
    match registry::near(name, names.iter().map(String::as_str)) {
        Some(near) => format!("nothing is called `{name}`; did you mean `{near}`?"),
        None => format!("nothing is called `{name}`, and no text has the words"),
    }
}

/// All modules, types and functions by name.
pub fn overview(entries: &[RegisteredFunction], style: TextStyle) -> String {
    let own = || entries.iter().filter(|e| !e.standard);
    let modules: BTreeSet<&str> = own().map(|e| e.module.as_str()).filter(|m| !m.is_empty()).collect();
    let types: BTreeSet<&str> =
        own().filter_map(RegisteredFunction::of_type).filter(|t| !t.is_empty()).collect();
    let functions: BTreeSet<&str> = own()
        .filter(|e| e.module.is_empty() && e.form == CallForm::Function && !e.doc.is_empty())
        .map(|e| e.name.as_str())
        .collect();
    let mut parts = Vec::new();
    for (head, names) in [("Modules", modules), ("Types", types), ("Functions", functions)] {
        let names: Vec<&str> = names.into_iter().collect();
        parts.push(format!("{}\n{}", style.head(head), wrap(&names.join(", "), 2, style.width)));
    }
    parts.push(style.faint(
        "`help(numbers)` tells how numbers are counted and compared, `help(functions)` what functions see, `help(for)` \
         how loops are written; so for all words of the language",
    ));
    parts.join("\n\n")
}

/// Every documented function of the program, a line each.
pub fn index(entries: &[RegisteredFunction], style: TextStyle) -> String {
    let own = entries.iter().filter(|e| !e.standard && !e.doc.is_empty());
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    own.for_each(|e| {
        lines.entry(called(e)).or_insert_with(|| e.summary());
    });
    columns(lines.iter().map(|(name, summary)| (name.as_str(), summary.as_str())), style)
}

/// `module::name`, or `Type.name`.
pub(super) fn called(entry: &RegisteredFunction) -> String {
    match entry.of_type() {
        Some(kind) => format!("{kind}.{}", entry.name),
        None => entry.path(),
    }
}

/// A text to search in: in lower case, and `z` as `s`, as in "diagonalise".
pub(super) fn plain(text: &str) -> String {
    text.to_lowercase().replace('z', "s")
}

/// A word without its ending, if enough is left.
pub(super) fn stem(word: &str) -> &str {
    let endings = ["ations", "ation", "ing", "es", "e", "s"];
    let stems = endings.iter().filter_map(|ending| word.strip_suffix(ending));
    stems.into_iter().find(|stem| stem.len() >= 5).unwrap_or(word)
}

fn listing<'a>(
    entries: impl Iterator<Item = &'a RegisteredFunction>,
    title: &str,
    style: TextStyle,
) -> String {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for e in entries {
        let name = if e.form == CallForm::Property { format!(".{}", e.name) } else { e.name.clone() };
        let summary = lines.entry(name).or_default();
        if summary.is_empty() {
            *summary = e.summary();
        }
    }
    let lines = lines.iter().map(|(name, summary)| (name.as_str(), summary.as_str()));
    format!("{}\n{}", style.head(title), columns(lines, style))
}

/// Names in one column, texts beside them, each cut to its line.
pub(super) fn columns<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>, style: TextStyle) -> String {
    let lines: Vec<(&str, &str)> = lines.collect();
    let wide = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(32);
    let room = style.width.saturating_sub(wide + 4).max(20);
    let line = |(name, text): &(&str, &str)| format!("  {name:wide$}  {}", cut(text, room));
    lines.iter().map(line).map(|l| l.trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_string();
    }
    let kept: String = text.chars().take(room - 3).collect();
    format!("{}...", kept.trim_end())
}

/// The page of the overloads of one function, among all `entries`.
fn section(overloads: &[&RegisteredFunction], entries: &[RegisteredFunction], style: TextStyle) -> String {
    let mut signatures: Vec<String> = Vec::new();
    let mut docs: Vec<&str> = Vec::new();
    for e in overloads {
        let signature = e.signature();
        if !signatures.contains(&signature) {
            signatures.push(signature);
        }
        if !e.doc.is_empty() && !docs.contains(&e.doc.as_str()) {
            docs.push(&e.doc);
        }
    }
    let mut out: Vec<String> = signatures.iter().map(|s| style.head(s)).collect();
    out.extend(docs.iter().map(|doc| body(doc, entries, style)));
    if let Some(shown) = registry::shown_elsewhere(entries, overloads) {
        out.push(format!("\n  The example of `{}` shows it.", called(shown)));
    }
    out.join("\n")
}

/// How an item of a list begins.
const ITEM: &str = "- ";

/// A doc comment laid out: paragraphs and lists wrapped, options in columns, examples as they are.
fn body(doc: &str, entries: &[RegisteredFunction], style: TextStyle) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut paragraph: Vec<&str> = Vec::new();
    let mut code = false;
    let mut in_options = false;
    let flush = |paragraph: &mut Vec<&str>, out: &mut Vec<String>| {
        if !paragraph.is_empty() {
            let text = paragraph.join(" ");
            out.push(match text.strip_prefix(ITEM) {
                // The text of an item stands to the right of its dash.
                Some(item) => format!("  {ITEM}{}", wrap(item, 4, style.width).trim_start()),
                None => wrap(&text, 2, style.width),
            });
            paragraph.clear();
        }
    };
    for line in doc.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            code = !code;
        } else if code {
            out.push(format!("    {line}"));
        } else if let Some(head) = trimmed.strip_prefix("# ") {
            flush(&mut paragraph, &mut out);
            out.push(format!("\n  {}", style.head(head)));
            in_options = head == "Options";
            if in_options {
                out.push(options(doc, entries, style));
            }
        } else if in_options {
            // Shown already, in columns.
        } else if trimmed.is_empty() {
            flush(&mut paragraph, &mut out);
        } else {
            if trimmed.starts_with(ITEM) {
                flush(&mut paragraph, &mut out);
            }
            paragraph.push(trimmed);
        }
    }
    flush(&mut paragraph, &mut out);
    out.join("\n")
}

/// The items of the options; what one takes from another function is shown with its kind and default there.
fn options(doc: &str, entries: &[RegisteredFunction], style: TextStyle) -> String {
    let options = declared::items(doc);
    let docs = |path: &str| registry::docs_in(entries, path);
    let resolved = declared::resolve(doc, &docs);
    let wide = options.iter().map(|o| o.key.len()).max().unwrap_or(0);
    let lines = options.iter().map(|o| {
        if o.key.is_empty() {
            let own = |key: &str| options.iter().any(|o| o.key == key);
            let taken = declared::resolve(&format!("# Options\n- {}", o.meaning), &docs);
            let keys: Vec<String> =
                taken.iter().filter(|o| !own(&o.key)).map(|o| format!("`{}`", o.key)).collect();
            let colon = if keys.is_empty() { "" } else { ": " };
            let meaning = o.meaning.trim_end_matches('.');
            return wrap(&format!("{meaning}{colon}{}", keys.join(", ")), 4, style.width);
        }
        let o = resolved.iter().find(|r| r.key == o.key).unwrap_or(o);
        let default = match o.default.as_str() {
            "" => String::new(),
            "required" => "required".into(),
            default => format!("default: {default}"),
        };
        let known: Vec<&str> =
            [o.kind.as_str(), &default].into_iter().filter(|part| !part.is_empty()).collect();
        let default = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        let meaning = o.meaning.trim_end_matches('.');
        // "or ..." continues the default, which is printed elsewhere here.
        let goes_on = meaning.starts_with("or ") && !o.default.is_empty();
        let meaning = if goes_on { format!("{} {meaning}", o.default) } else { meaning.to_string() };
        let text = wrap(&format!("{meaning}{default}"), wide + 6, style.width);
        let text = text.trim_start();
        match text.strip_suffix(&default) {
            Some(start) if !default.is_empty() => {
                format!("    {:wide$}  {start}{}", o.key, style.faint(&default))
            }
            _ => format!("    {:wide$}  {text}", o.key),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Words in lines of at most `width` characters, each line indented.
fn wrap(text: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    let pad = " ".repeat(indent);
    lines.iter().map(|line| format!("{pad}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Engine, registry};

    const STYLE: TextStyle = TextStyle { colour: false, width: 80 };

    fn all() -> Vec<RegisteredFunction> {
        registry::entries(Engine::new().unwrap().rhai(), true)
    }

    #[test]
    fn a_page_has_signature_options_and_example() {
        let page = page(&all(), "plot", STYLE).unwrap();
        assert!(page.starts_with("plot("), "{page}");
        for part in ["\n  Options\n", "    file", "(\"lines\" or \"points\" or", "\n  Example\n", "    plot("]
        {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        assert!(!page.contains("```") && page.lines().all(|l| l.chars().count() <= 120));
    }

    #[test]
    fn items_of_a_list_have_lines_of_their_own() {
        let doc = format!("It is so if\n- this, {0}\n  {0}\n- that.\n\nOr not.", "word ".repeat(12));
        let laid = body(&doc, &[], STYLE);
        let lines: Vec<&str> = laid.lines().collect();
        assert!(lines[0] == "  It is so if" && lines[1].starts_with("  - this, word"), "{laid}");
        assert!(lines[2].starts_with("    word"), "{laid}");
        assert_eq!(lines[3..], ["  - that.", "  Or not."], "{laid}");
    }

    #[test]
    fn what_is_as_for_another_function_has_its_kind_and_default() {
        let page = page(&all(), "lanczos", STYLE).unwrap();
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for line in [
            "start as for `davidson` (a BlockVector to start from) (BlockVector)",
            "basis as for `davidson` (largest number of basis vectors before a restart) \
             (int >= 2, default: 20, at least 5 count)",
        ] {
            assert!(words.contains(line), "{page}");
        }
    }

    #[test]
    fn methods_types_and_modules_have_pages() {
        let all = all();
        let both = page(&all, "column", STYLE).unwrap();
        assert!(both.contains("Matrix.column(") && both.contains("Table.column("));
        assert!(!page(&all, "Table.column", STYLE).unwrap().contains("Matrix.column("));
        assert_eq!(page(&all, "Table::column", STYLE), page(&all, "Table.column", STYLE));
        assert_eq!(page(&all, "Table::bloch", STYLE), None);
        assert!(page(&all, "lattice", STYLE).unwrap().contains("honeycomb"));
        assert!(page(&all, "Series", STYLE).unwrap().contains(".len"));
        assert!(page(&all, "numbers", STYLE).unwrap().contains("Comparisons are exact"));
        assert!(page(&all, "no_such_thing", STYLE).is_none());
        assert!(no_page(&all, "linspce").contains("did you mean `linspace`?"));
    }

    #[test]
    fn the_index_has_modules() {
        assert!(index(&all(), STYLE).contains("kpm::dos"));
    }
}
