//! The reference manual: signatures and doc comments from the registry, for one name or for all.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rhai::Engine;

use super::registry::{self, Entry};
use crate::error::{Error, Result, nearest};

/// All ways to call one function, and what its doc comments say.
struct Topic {
    path: String,
    signatures: Vec<String>,
    docs: Vec<String>,
}

/// What a module is for, for the modules' headings.
const MODULES: [(&str, &str); 5] = [
    ("", "Functions and methods that need no module before their name."),
    ("exact", "Exact symmetry sectors of many-body models."),
    ("kpm", "The kernel polynomial method."),
    ("lattice", "Finite lattices: Bravais lattices, own cells, boundaries."),
    ("models", "Standard many-body models as operator sums."),
];

/// A parameter's name and its type as scripts know it.
fn parameter(engine: &Engine, text: &str) -> Option<(String, String)> {
    let (name, kind) = text.split_once(':').map_or((text, ""), |(name, kind)| (name, kind));
    let (name, kind) = (name.trim(), kind.trim());
    if name.is_empty() || name.starts_with("ctx") || kind.ends_with("NativeCallContext") {
        return None;
    }
    let kind = kind.trim_start_matches("&mut ").trim_start_matches('&');
    Some((name.trim_start_matches('_').into(), engine.map_type_name(kind).to_string()))
}

/// How an entry is called.
fn signature(engine: &Engine, entry: &Entry) -> String {
    let method = entry.parameters.iter().any(|p| p.contains(": &mut "));
    let mut parameters: Vec<(String, String)> =
        entry.parameters.iter().filter_map(|p| parameter(engine, p)).collect();
    let names = |list: &[(String, String)]| list.iter().map(|p| p.0.clone()).collect::<Vec<_>>().join(", ");
    if let Some(property) = entry.name.strip_prefix("get$") {
        let of = parameters.first().map_or("value".into(), |p| p.1.clone());
        return format!("{of}.{property}");
    }
    if method && !parameters.is_empty() {
        let (_, of) = parameters.remove(0);
        return format!("{of}.{}({})", entry.name, names(&parameters));
    }
    format!("{}({})", entry.path(), names(&parameters))
}

/// The topics in order: functions without a doc comment of their own are listed with those of the same name.
fn topics(engine: &Engine) -> Vec<Topic> {
    let mut found: BTreeMap<String, Topic> = BTreeMap::new();
    for entry in registry::entries(engine) {
        let shown = entry.name.strip_prefix("get$").unwrap_or(&entry.name);
        if !shown.starts_with(|c: char| c.is_alphabetic()) || shown.contains('$') {
            continue;
        }
        let path = if entry.module.is_empty() { shown.into() } else { format!("{}::{shown}", entry.module) };
        let topic = found.entry(path.clone()).or_insert_with(|| Topic {
            path,
            signatures: Vec::new(),
            docs: Vec::new(),
        });
        let signature = signature(engine, &entry);
        if !topic.signatures.contains(&signature) {
            topic.signatures.push(signature);
        }
        if !entry.doc.is_empty() && !topic.docs.contains(&entry.doc) {
            topic.docs.push(entry.doc);
        }
    }
    let mut topics: Vec<Topic> = found.into_values().filter(|topic| !topic.docs.is_empty()).collect();
    topics.iter_mut().for_each(|topic| topic.signatures.sort_by_key(|s| (s.len(), s.clone())));
    topics
}

/// The first sentence of a doc comment.
fn summary(doc: &str) -> String {
    let paragraph: Vec<&str> = doc.lines().take_while(|line| !line.trim().is_empty()).collect();
    let text = paragraph.join(" ");
    match text.find(". ") {
        Some(end) => text[..=end].into(),
        None => text,
    }
}

/// The help on a function, method, property or module, as text.
///
/// # Errors
/// When there is nothing of that name.
pub fn help(engine: &Engine, name: &str) -> Result<String> {
    let topics = topics(engine);
    let one = |topic: &&Topic| format!("{}\n\n{}", topic.signatures.join("\n"), topic.docs.join("\n\n"));
    let exact = topics.iter().filter(|topic| topic.path == name);
    let mut found: Vec<String> = exact.map(|topic| one(&topic)).collect();
    let members: Vec<&Topic> =
        topics.iter().filter(|topic| topic.path.split_once("::").is_some_and(|(m, _)| m == name)).collect();
    if !members.is_empty() {
        found.push(list(&members));
    }
    if found.is_empty() {
        // A bare name finds the members of modules too.
        let tail = |topic: &&Topic| topic.path.rsplit("::").next() == Some(name);
        found.extend(topics.iter().filter(tail).map(|topic| one(&topic)));
    }
    if !found.is_empty() {
        return Ok(found.join("\n\n"));
    }
    let error = Error::input(format!("no help on `{name}`"));
    let names = topics.iter().map(|topic| topic.path.as_str());
    Err(match nearest(name, names.chain(topics.iter().filter_map(|t| t.path.rsplit("::").next()))) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("`umklapp doc` lists what there is"),
    })
}

/// A line for every function.
pub fn overview(engine: &Engine) -> String {
    let topics = topics(engine);
    list(&topics.iter().collect::<Vec<_>>())
}

fn list(topics: &[&Topic]) -> String {
    let width = topics.iter().map(|topic| topic.path.len()).max().unwrap_or(0);
    let line = |topic: &&Topic| format!("{:width$}  {}", topic.path, summary(&topic.docs[0]));
    topics.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The whole manual in Markdown, a chapter a module.
pub fn markdown(engine: &Engine) -> String {
    let topics = topics(engine);
    let mut chapters: BTreeMap<&str, Vec<&Topic>> = BTreeMap::new();
    for topic in &topics {
        let module = topic.path.split_once("::").map_or("", |(module, _)| module);
        chapters.entry(module).or_default().push(topic);
    }
    let mut text = format!("# Umklapp {}: reference\n", env!("CARGO_PKG_VERSION"));
    for (module, topics) in &chapters {
        let heading = if module.is_empty() { "Everywhere".into() } else { format!("Module `{module}`") };
        let _ = write!(text, "\n## {heading}\n");
        if let Some((_, what)) = MODULES.iter().find(|(name, _)| name == module) {
            let _ = write!(text, "\n{what}\n");
        }
        for topic in topics {
            let _ = write!(text, "\n### `{}`\n\n```rhai\n{}\n```\n", topic.path, topic.signatures.join("\n"));
            for doc in &topic.docs {
                // Headings of a doc comment go below that of their function.
                let lines = doc.lines().map(|line| match line.strip_prefix("# ") {
                    Some(title) => format!("**{title}**"),
                    None => line.to_string(),
                });
                let _ = write!(text, "\n{}\n", lines.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    text
}
