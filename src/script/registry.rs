//! Names and docs, read from the functions themselves: the one source for help, completion, "did you mean" and the
//! manual.

use rhai::{Engine, FnAccess};

/// A function that scripts can call.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Module it lives in, empty for global functions.
    pub module: String,
    /// Its name.
    pub name: String,
    /// Names of its parameters with their types, as written.
    pub parameters: Vec<String>,
    /// Its doc comment, without comment marks.
    pub doc: String,
}

impl Entry {
    /// `module::name`.
    pub fn path(&self) -> String {
        if self.module.is_empty() { self.name.clone() } else { format!("{}::{}", self.module, self.name) }
    }
}

/// Every function with a doc comment or in a module, native and stdlib.
pub fn entries(engine: &Engine) -> Vec<Entry> {
    engine.collect_fn_metadata(
        None,
        |info| {
            let meta = info.metadata;
            // What scripts define keeps its parameters and comments in a place of its own.
            let (parameters, comments): (Vec<String>, Vec<String>) = match &info.script {
                Some(script) if script.access == FnAccess::Private => return None,
                Some(script) => (owned(&script.params), owned(&script.comments)),
                None => (owned(&meta.params_info), owned(&meta.comments)),
            };
            let doc: Vec<&str> = comments.iter().flat_map(|c| c.lines()).map(strip).collect();
            Some(Entry {
                module: info.namespace.to_string(),
                name: meta.name.to_string(),
                parameters,
                doc: doc.join("\n").trim().to_string(),
            })
        },
        false,
    )
}

fn owned(texts: &[impl AsRef<str>]) -> Vec<String> {
    texts.iter().map(|text| text.as_ref().to_string()).collect()
}

fn strip(line: &str) -> &str {
    let line = line.trim_start();
    line.strip_prefix("/// ").or_else(|| line.strip_prefix("///")).unwrap_or(line)
}

/// All names that can be called, modules' members with their path.
pub fn names(engine: &Engine) -> Vec<String> {
    let mut names: Vec<String> = entries(engine).iter().map(Entry::path).collect();
    names.sort();
    names.dedup();
    names
}

/// All modules.
pub fn modules(engine: &Engine) -> Vec<String> {
    let mut modules: Vec<String> =
        entries(engine).into_iter().map(|e| e.module).filter(|m| !m.is_empty()).collect();
    modules.sort();
    modules.dedup();
    modules
}

/// A hint for a call that no function takes: the nearest name, or the ways the name can be called.
pub(super) fn did_you_mean(engine: &Engine, name: &str, _signature: &str) -> Option<String> {
    let name = name.replace(" :: ", "::");
    let all = entries(engine);
    let same: Vec<String> = all
        .iter()
        .filter(|e| e.path() == name)
        .map(|e| {
            let parameters: Vec<&str> = e
                .parameters
                .iter()
                .map(|p| p.split(':').next().unwrap_or(p).trim())
                .filter(|p| !p.starts_with("ctx") && !p.is_empty())
                .collect();
            format!("`{}({})`", e.path(), parameters.join(", "))
        })
        .collect();
    if !same.is_empty() {
        let mut same = same;
        same.dedup();
        return Some(format!("it can be called as {}", same.join(", ")));
    }
    let names = names(engine);
    crate::error::nearest(&name, names.iter().map(String::as_str)).map(|n| format!("did you mean `{n}`?"))
}

/// The runnable examples of a doc comment: what its fences marked `rhai` hold.
pub fn examples(doc: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in doc.lines() {
        match (&mut open, line.trim()) {
            (None, "```rhai") => open = Some(String::new()),
            (Some(_), "```") => found.extend(open.take()),
            (Some(text), _) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    found
}
