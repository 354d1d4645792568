//! Names and docs, read from the functions themselves: the one source for help, completion, "did you mean" and the
//! manual.

use rhai::Engine;

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
            let doc: Vec<&str> = meta.comments.iter().flat_map(|c| c.lines()).map(strip).collect();
            Some(Entry {
                module: info.namespace.to_string(),
                name: meta.name.to_string(),
                parameters: meta.params_info.iter().map(|p| p.to_string()).collect(),
                doc: doc.join("\n").trim().to_string(),
            })
        },
        false,
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Engine, Settings};
    use crate::task::Interrupt;

    #[test]
    fn every_example_runs() {
        let folder = std::env::temp_dir().join(format!("umklapp-examples-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let settings = Settings { out: Some(folder.clone()), quiet: true, ..Settings::default() };
        let mut engine = Engine::with(settings.clone(), Interrupt::default()).unwrap();
        let mut failures = Vec::new();
        let all = entries(engine.rhai());
        for entry in &all {
            for example in examples(&entry.doc) {
                // Every example stands alone.
                engine.reset();
                if let Err(report) = engine.eval(&example) {
                    failures.push(format!("{}:\n{}", entry.path(), report.render(false)));
                }
            }
        }
        let _ = std::fs::remove_dir_all(folder);
        assert!(all.iter().filter(|e| !examples(&e.doc).is_empty()).count() > 50);
        assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    }
}
