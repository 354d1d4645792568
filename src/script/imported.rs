//! The functions of own modules that a script imports, read from their files for checks and hints without running them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rhai::{AST, Engine, Expr, FnAccess, Position, Stmt};

use super::finding::{Finding, with_hint};
use super::registry;
use crate::error::{Error, nearest};

/// A function of such a module.
pub(super) struct ImportedFunction {
    pub parameters: Vec<String>,
    pub doc: String,
}

/// Own modules by the names that a script gives them.
#[derive(Default)]
pub(super) struct Modules {
    /// Their functions by name; nothing of a module that cannot be read.
    known: BTreeMap<String, BTreeMap<String, Vec<ImportedFunction>>>,
    /// Where modules are imported that are not there.
    missing: Vec<(String, Position)>,
    folder: PathBuf,
}

/// The folder of a script.
fn folder_of(script: Option<&str>) -> PathBuf {
    let folder = script.map(Path::new).and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_path_buf()
}

/// The hint for a module that is not there.
pub(super) fn not_there(engine: &Engine, name: &str, script: Option<&str>) -> String {
    let files =
        std::fs::read_dir(folder_of(script)).into_iter().flatten().flatten().map(|entry| entry.path());
    let stems = files.filter(|file| file.extension().is_some_and(|end| end == "rhai"));
    let stems = stems.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()));
    let all: BTreeSet<String> = stems.chain(registry::modules(engine)).collect();
    match nearest(name, all.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("own modules are files beside the script: `{name}.rhai`"),
    }
}

impl Modules {
    /// Those of a script, whose file tells the folder.
    pub fn of(engine: &Engine, ast: &AST, script: Option<&str>) -> Modules {
        let mut modules = Modules { folder: folder_of(script), ..Modules::default() };
        let own: BTreeSet<String> = registry::modules(engine).into_iter().collect();
        for statement in ast.statements() {
            let Stmt::Import(parts, _) = statement else { continue };
            let Expr::StringConstant(path, position) = &parts.0 else { continue };
            if own.contains(path.as_str()) {
                continue;
            }
            let file = modules.folder.join(path.as_str()).with_extension("rhai");
            match std::fs::read_to_string(&file) {
                Ok(text) => {
                    let ast = engine.compile(text).ok();
                    let alias = parts.1.name.to_string();
                    modules.known.insert(alias, ast.as_ref().map(functions_of).unwrap_or_default());
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    modules.missing.push((path.to_string(), *position));
                }
                Err(_) => {}
            }
        }
        modules
    }

    /// Those of a text, where it can be compiled.
    pub fn of_text(engine: &Engine, text: &str, script: Option<&str>) -> Modules {
        engine.compile(text).map(|ast| Modules::of(engine, &ast, script)).unwrap_or_default()
    }

    /// The functions of the module that a path names, and the name of the one that is called.
    fn functions(&self, path: &str) -> Option<(&BTreeMap<String, Vec<ImportedFunction>>, String)> {
        let (module, name) = path.rsplit_once("::")?;
        let functions = self.known.get(module).filter(|functions| !functions.is_empty())?;
        Some((functions, name.to_string()))
    }

    /// The forms of a function, by its path.
    pub fn forms(&self, path: &str) -> &[ImportedFunction] {
        let found = self.functions(path).and_then(|(functions, name)| functions.get(&name));
        found.map_or(&[], Vec::as_slice)
    }

    /// What is wrong with a call of so many arguments; nothing of other modules.
    pub fn wrong(&self, path: &str, arguments: usize) -> Option<Error> {
        let (functions, name) = self.functions(path)?;
        let text = match functions.get(&name) {
            Some(forms) if forms.iter().any(|form| form.parameters.len() == arguments) => return None,
            Some(_) => {
                let plural = if arguments == 1 { "" } else { "s" };
                format!("no function `{path}` takes {arguments} argument{plural}")
            }
            None => format!("no function `{path}`"),
        };
        Some(with_hint(Error::input(text), self.hint(path)))
    }

    /// The hint for a call that the module's functions do not take.
    pub fn hint(&self, path: &str) -> Option<String> {
        let (functions, name) = self.functions(path)?;
        let module = path.rsplit_once("::").map_or("", |(module, _)| module);
        let shown = |name: &str, forms: &[ImportedFunction]| -> Vec<String> {
            forms.iter().map(|form| format!("`{module}::{name}({})`", form.parameters.join(", "))).collect()
        };
        if let Some(forms) = functions.get(&name) {
            return Some(format!("the module defines {}", shown(&name, forms).join(" and ")));
        }
        if let Some(near) = nearest(&name, functions.keys().map(String::as_str)) {
            return Some(format!("did you mean {}?", shown(near, &functions[near]).join(" or ")));
        }
        let all: Vec<String> = functions.keys().map(|name| format!("`{name}`")).collect();
        Some(format!("the functions of `{module}` are {}", all.join(", ")))
    }

    /// Errors about modules that are not there.
    pub fn missing(&self, engine: &Engine, script: Option<&str>) -> Vec<Finding> {
        let error =
            |name: &str| Error::input(format!("no module `{name}`")).hint(not_there(engine, name, script));
        self.missing
            .iter()
            .map(|(name, position)| Finding { position: *position, error: error(name) })
            .collect()
    }
}

/// The functions that a module gives to others.
fn functions_of(ast: &AST) -> BTreeMap<String, Vec<ImportedFunction>> {
    let mut functions: BTreeMap<String, Vec<ImportedFunction>> = BTreeMap::new();
    for f in ast.iter_functions().filter(|f| f.access == FnAccess::Public && f.this_type.is_none()) {
        let parameters = f.params.iter().map(|p| p.to_string()).collect();
        let doc = registry::doc(f.comments.iter().copied());
        functions.entry(f.name.to_string()).or_default().push(ImportedFunction { parameters, doc });
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    #[test]
    fn check_and_run_say_the_same_of_own_modules() {
        let folder = std::env::temp_dir().join(format!("umklapp-imported-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let module = "/// Twice.\n///\n/// # Options\n/// - `factor` (2.0): of it.\nfn twice(x, opts) { let o = \
             options(opts); o.factor * x }\nfn plain(x) { x }\nprivate fn secret(x) { x }\n\nfn bad(x) { x.wrong }\n";
        std::fs::write(folder.join("tools.rhai"), module).unwrap();
        let main = folder.join("main.rhai");
        let file = main.display().to_string();
        for (script, message, hint) in [
            ("import \"tools\" as t; t::plain(1);", "", ""),
            ("import \"tools\" as t; t::twice(1.0, #{ factor: 3 });", "", ""),
            (
                "import \"tools\" as t; t::twice(1.0, #{ facto: 3 });",
                "unknown option `facto`",
                "did you mean `factor`?",
            ),
            (
                "import \"tools\" as t; t::twice(1.0, #{ factor: \"x\" });",
                "option `factor` takes a number, not a value of type string",
                "it was given",
            ),
            (
                "import \"tools\" as t; t::twce(1.0, #{});",
                "no function `t::twce",
                "did you mean `t::twice(x, opts)`?",
            ),
            ("import \"tools\" as t; t::secret(1);", "no function `t::secret", "are `bad`, `plain`, `twice`"),
            ("import \"tools\" as t; t::plain(1, 2);", "no function `t::plain", "defines `t::plain(x)`"),
            ("import \"tool\" as t; t::plain(1);", "no module `tool`", "did you mean `tools`?"),
        ] {
            let mut engine = Engine::new().unwrap();
            let checked = engine.check(script, Some(&file));
            let ran = engine.run_text(script, &main).err();
            for said in [checked.first(), ran.as_deref()] {
                let (text, told) = said.map_or(("", ""), |r| (&r.message, r.hint.as_deref().unwrap_or("")));
                assert!(
                    text.starts_with(message) && message.is_empty() == text.is_empty(),
                    "{script}: {text}"
                );
                assert!(told.contains(hint), "{script}: {told}");
            }
        }
        let mut engine = Engine::new().unwrap();
        let said = engine.run_text("import \"tools\" as t;\nt::bad(1);", &main).unwrap_err().render(false);
        assert!(said.contains("in `bad` at line 9 of `") && said.contains("`, called at line 2"), "{said}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
