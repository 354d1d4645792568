//! Modules of users, from files. A file that imports itself, straight or by others,
//! is an error where the stack would end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use rhai::module_resolvers::FileModuleResolver;
use rhai::{
    AST, Engine, EvalAltResult, FnNamespace, GlobalRuntimeState, Module, ModuleResolver, Position, Scope,
    Shared,
};

use super::Failure;
use super::direct::Direct;
use super::failure::failure;
use super::own::is_closure;
use super::shadows::hidden_variables;
use crate::error::Error;
use crate::ranks;

/// The modules in a folder, each loaded once for each state of its file.
pub(super) struct Files {
    files: FileModuleResolver,
    direct: Rc<Direct>,
    loaded: RefCell<BTreeMap<PathBuf, (Shared<Module>, FileState)>>,
    /// The number of the piece of script that runs: while it does, modules stay as they are.
    piece: Rc<Cell<u64>>,
    /// For which one the files were last looked at.
    seen: Cell<u64>,
    /// What is being loaded, the outermost first.
    open: RefCell<Vec<String>>,
}

/// What changes when a file is written: its time and its length; nothing of a file that is not there.
type FileState = Option<(SystemTime, u64)>;

fn state(file: &Path) -> FileState {
    let about = std::fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// A module's stay in the list of those being loaded; it leaves also by a panic.
struct Loading<'a>(&'a RefCell<Vec<String>>);

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().pop();
    }
}

/// Modules within modules.
const DEEPEST: usize = 64;

impl Files {
    /// The modules of a folder, for pieces of script with this number.
    pub fn new(folder: &Path, direct: Rc<Direct>, piece: Rc<Cell<u64>>) -> Files {
        Files {
            files: FileModuleResolver::new_with_path(folder),
            direct,
            loaded: RefCell::default(),
            seen: Cell::new(piece.get()),
            piece,
            open: RefCell::default(),
        }
    }

    /// Forgets all modules where a file is another one than it was: one module may hold functions of another.
    /// A file that is gone leaves what was in it.
    fn forget_changed(&self) {
        if self.seen.replace(self.piece.get()) == self.piece.get() {
            return;
        }
        let changed = |(file, (_, before)): (&PathBuf, &(Shared<Module>, FileState))| {
            state(file).is_some_and(|now| Some(now) != *before)
        };
        let mut loaded = self.loaded.borrow_mut();
        if loaded.iter().any(changed) {
            loaded.clear();
        }
    }

    fn enter(&self, path: &str, position: Position) -> Result<Loading<'_>, Failure> {
        let mut open = self.open.borrow_mut();
        let file = self.files.get_file_path(path, None);
        let name = file.canonicalize().unwrap_or(file).display().to_string();
        let ring = open.iter().position(|other| *other == name);
        let deep = open.len() >= DEEPEST;
        if ring.is_none() && !deep {
            open.push(name);
            drop(open);
            return Ok(Loading(&self.open));
        }
        let stem = |name: &String| Path::new(name).file_stem().map(|s| s.to_string_lossy().into_owned());
        let mut way: Vec<String> = open[ring.unwrap_or(0)..].iter().filter_map(stem).collect();
        way.extend(stem(&name));
        let error = if ring.is_some() {
            Error::input(format!("a module imports itself: {}", way.join(" -> ")))
                .hint("put what both need into a third file")
        } else {
            Error::input(format!("more than {DEEPEST} modules import one another in turn"))
                .hint("import them side by side")
        };
        Err(in_module(path, error, position))
    }
}

/// An error as the language expects it of those that find modules.
fn in_module(path: &str, error: Error, position: Position) -> Failure {
    Box::new(EvalAltResult::ErrorInModule(path.into(), failure(error, position), position))
}

/// The text of a module is read first as scripts are: what is no text, or a device, says so.
fn readable(file: &Path, path: &str, position: Position) -> Result<(), Failure> {
    match crate::number::memory::open(file) {
        Ok(mut open) => same_on_all_ranks(&mut open, path).map_err(|e| in_module(path, e, position)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(Box::new(EvalAltResult::ErrorModuleNotFound(path.into(), position)))
        }
        Err(e) => Err(in_module(path, Error::of_io(&e).context("cannot be read"), position)),
    }
}

/// Ranks of machines without a common file system could read different modules of one name.
fn same_on_all_ranks(file: &mut impl Read, path: &str) -> Result<(), Error> {
    if ranks::world().is_none() {
        return Ok(());
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(|e| Error::of_io(&e).context("cannot be read"))?;
    let differs = format!("reads another module `{path}`");
    ranks::alike(&[(&differs, &String::from_utf8_lossy(&text))])
        .map_err(|e| e.hint("give all ranks the same files, as on a common file system"))
}

/// Closures that a module gives away are found where they are called.
fn lend_closures(module: &mut Module) {
    let closures: Vec<_> = module.iter_script_fn_info().map(|(.., function)| function.clone()).collect();
    for closure in closures.into_iter().filter(|function| is_closure(&function.name)) {
        let hash = Module::new().set_script_fn(closure);
        #[allow(deprecated)] // What serves instead takes functions of Rust only.
        module.update_fn_namespace(hash, FnNamespace::Global);
    }
    module.build_index();
}

impl ModuleResolver for Files {
    fn resolve(
        &self,
        engine: &Engine,
        source: Option<&str>,
        path: &str,
        position: Position,
    ) -> Result<Shared<Module>, Failure> {
        let mut global = engine.new_global_runtime_state();
        global.source = source.map(Into::into);
        self.resolve_raw(engine, &mut global, &mut Scope::new(), path, position)
    }

    fn resolve_raw(
        &self,
        engine: &Engine,
        global: &mut GlobalRuntimeState,
        scope: &mut Scope,
        path: &str,
        position: Position,
    ) -> Result<Shared<Module>, Failure> {
        self.forget_changed();
        let file = self.files.get_file_path(path, None);
        if let Some((module, _)) = self.loaded.borrow().get(&file) {
            return Ok(module.clone());
        }
        // Before it is read: what is written meanwhile is found the next time.
        let state = state(&file);
        readable(&file, path, position)?;
        let _loading = self.enter(path, position)?;
        let none = || Err(Box::new(EvalAltResult::ErrorModuleNotFound(path.to_string(), position)));
        let ast = self.files.resolve_ast(engine, None, path, position).unwrap_or_else(none)?;
        if let Some(hidden) = hidden_variables(&ast, &Scope::new()).into_iter().next() {
            let at = failure(hidden.error, hidden.position);
            return Err(Box::new(EvalAltResult::ErrorInModule(path.to_string(), at, position)));
        }
        let mut module =
            Module::eval_ast_as_new_raw(engine, scope, global, &self.direct.apply_to_module(ast))
                .map_err(|e| Box::new(EvalAltResult::ErrorInModule(path.to_string(), e, position)))?;
        lend_closures(&mut module);
        let module = Shared::new(module);
        self.loaded.borrow_mut().insert(file, (module.clone(), state));
        Ok(module)
    }

    fn resolve_ast(
        &self,
        engine: &Engine,
        source: Option<&str>,
        path: &str,
        position: Position,
    ) -> Option<Result<AST, Failure>> {
        self.files.resolve_ast(engine, source, path, position)
    }
}
