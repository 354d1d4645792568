//! The scripting engine: Rhai with the native functions, the stdlib and the limits that scripts of physicists need.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use rhai::module_resolvers::{ModuleResolversCollection, StaticModuleResolver};
use rhai::{
    AST, Dynamic, EvalAltResult, Expr, Module, OptimizationLevel, Position, Scope, ScriptFnMetadata, Stmt,
};

use super::checked::CheckedScript;
use super::declaration::Declared;
use super::device::{open_device, weights};
use super::diagnostics::Report;
use super::direct::{self, Direct};
use super::failure::failure;
use super::imported::Modules;
use super::modules::Files;
use super::own::{is_closure, is_second_name};
use super::rooms::Rooms;
use super::session::{Session, Settings};
use super::{
    Failure, api, caught, comparison, constants, evaluated, given, holding, lint, options, recover, registry,
    shadows, signature, stdlib, switches, traps, types,
};
use crate::error::{Error, Result};
use crate::number::{C64, memory};
use crate::output::tell;
use crate::task::Interrupt;

/// Runs scripts, keeping variables and functions from one piece of input to the next.
pub struct Engine {
    rhai: rhai::Engine,
    session: Rc<Session>,
    scope: Scope<'static>,
    /// Functions defined and modules imported so far, for the next piece of input.
    functions: AST,
    /// The imports among them, as text.
    imports: String,
    builtin: StaticModuleResolver,
    direct: Rc<Direct>,
    /// The number of the piece of script that runs.
    piece: Rc<Cell<u64>>,
}

/// What a piece of script evaluated to.
pub type Evaluated = std::result::Result<Dynamic, Box<Report>>;

impl Engine {
    /// An engine with the default settings: the best backend there is, all threads.
    pub fn new() -> Result<Engine> {
        Self::with(Settings::default(), Interrupt::default())
    }

    /// An engine with the given settings, stopped by `interrupt`.
    pub fn with(settings: Settings, interrupt: Interrupt) -> Result<Engine> {
        let device = open_device(&settings, &interrupt)?;
        let session = Session::new(device, settings.clone(), interrupt.clone());
        let mut rhai = rhai::Engine::new();
        // No limits on the sizes of strings, arrays and maps: Rhai would count all elements, nested ones too, after
        // every call that changes one, so that a loop of `push` took the square of its length.
        // What there is no memory for is refused instead.
        rhai.set_max_call_levels(128).set_max_expr_depths(256, 128);
        rhai.set_optimization_level(OptimizationLevel::Simple);
        rhai.set_fail_on_invalid_map_property(true);
        rhai.on_progress(move |_| interrupt.raised().then(|| Dynamic::from(Error::interrupted())));
        let printer = session.clone();
        rhai.on_print(move |text| printer.print(text));
        rhai.on_debug(|text, source, position| {
            tell(&format!("{}{position:?} | {text}", source.map(|s| format!("{s} ")).unwrap_or_default()));
        });
        comparison::register(&mut rhai)?;
        direct::register(&mut rhai);
        switches::register(&mut rhai);
        evaluated::register(&mut rhai);
        constants::register(&mut rhai);
        caught::register(&mut rhai);
        options::register(&mut rhai);
        let direct = Rc::new(Direct::new());
        let mut rooms = Rooms::new(&mut rhai);
        api::register(&mut rooms);
        let mut rooms = rooms.filled();
        // Rhai keeps short strings once, up to so many; with more it looks through all of them at each new one. The
        // stdlib has more, and keeps its own.
        let kept = rhai.max_strings_interned();
        rhai.set_max_strings_interned(0);
        for (name, source) in stdlib::MODULES {
            let ast = rhai.compile(source).map_err(|e| Error::internal(format!("stdlib `{name}`: {e}")))?;
            let ast = shorter_forms(&rhai, ast)?;
            let mut ast = direct.apply_to_module(ast);
            // Errors say so where they come from.
            ast.set_source(name);
            let module = Module::eval_ast_as_new(Scope::new(), &ast, &rhai)
                .map_err(|e| Error::internal(format!("stdlib `{name}`: {e}")))?;
            rooms.entry(name).or_default().combine(module);
        }
        rhai.set_max_strings_interned(kept);
        let mut builtin = StaticModuleResolver::new();
        for (name, module) in rooms {
            builtin.insert(name, module.clone());
            rhai.register_static_module(name, module.into());
        }
        let mut engine = Engine {
            rhai,
            session,
            scope: Scope::new(),
            functions: AST::empty(),
            imports: String::new(),
            builtin,
            direct,
            piece: Rc::default(),
        };
        engine.reset();
        engine.modules_from(Path::new("."));
        Ok(engine)
    }

    /// Forgets all variables and functions of scripts.
    pub fn reset(&mut self) {
        self.scope = Scope::new();
        self.scope.push_constant("I", C64::new(0.0, 1.0));
        self.scope.push_constant("PI", std::f64::consts::PI);
        self.scope.push_constant("args", self.session.settings().args);
        self.functions = AST::empty();
        self.imports.clear();
    }

    /// `import` finds the stdlib's modules, and files in this folder.
    fn modules_from(&mut self, folder: &Path) {
        let mut resolvers = ModuleResolversCollection::new();
        resolvers.push(self.builtin.clone());
        resolvers.push(Files::new(folder, self.direct.clone(), self.piece.clone()));
        self.rhai.set_module_resolver(resolvers);
    }

    /// The state shared with native functions.
    pub fn session(&self) -> &Rc<Session> {
        &self.session
    }

    /// Computes on another backend from now on: "auto", "cpu", "cuda", or several joined by `+`, with weights behind
    /// them if they are not to be measured: "cpu+cuda 1:12".
    pub fn set_backend(&mut self, name: &str) -> Result<()> {
        let (name, shares) = name.trim().split_once(char::is_whitespace).unwrap_or((name.trim(), ""));
        let weights = if shares.is_empty() { Vec::new() } else { weights(shares.trim())? };
        let settings = Settings { backend: name.to_string(), weights, ..self.session.settings() };
        self.session.set_device(open_device(&settings, self.session.interrupt())?);
        Ok(())
    }

    /// The Rhai engine, to register own functions and types.
    pub fn rhai_mut(&mut self) -> &mut rhai::Engine {
        &mut self.rhai
    }

    pub fn rhai(&self) -> &rhai::Engine {
        &self.rhai
    }

    pub fn scope(&self) -> &Scope<'static> {
        &self.scope
    }

    /// The variables, to set some.
    pub fn scope_mut(&mut self) -> &mut Scope<'static> {
        &mut self.scope
    }

    /// A value as `print` shows it.
    pub fn show(&self, value: &Dynamic) -> String {
        // A request to stop that came too late for the work must not stop the display of its result.
        self.session.interrupt().clear();
        let mut scope = Scope::new();
        scope.push_dynamic("value", value.clone());
        let text = self.safely(|| {
            let text = self.rhai.eval_expression_with_scope::<String>(&mut scope, "value.to_string()");
            text.unwrap_or_else(|_| value.to_string())
        });
        text.unwrap_or_else(|panic| Report::panic(panic.as_ref()).message)
    }

    /// Runs work that hears the session's interruptions; its panics are caught.
    fn safely<T>(&self, work: impl FnOnce() -> T) -> std::thread::Result<T> {
        self.session.during(|| std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)))
    }

    /// The type of a value as scripts name it.
    pub fn type_of(&self, value: &Dynamic) -> String {
        registry::type_name(&self.rhai, value.type_name())
    }

    /// The functions that scripts have defined so far, closures left out.
    pub fn functions(&self) -> impl Iterator<Item = ScriptFnMetadata<'_>> {
        self.functions.iter_functions().filter(|f| !is_closure(f.name) && !is_second_name(f.name))
    }

    /// Runs a script file; modules that it imports lie beside it.
    pub fn run_file(&mut self, path: &Path) -> Evaluated {
        let text = read_script(path)?;
        self.run_text(&text, path)
    }

    /// Runs the text of a script as if it were the file `path`.
    pub fn run_text(&mut self, text: &str, path: &Path) -> Evaluated {
        self.run_text_from(text, path, 1)
    }

    fn run_text_from(&mut self, text: &str, path: &Path, first: usize) -> Evaluated {
        let name = path.display().to_string();
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.modules_from(folder);
        self.session.set_script(text);
        self.eval_named(text, Some(&name), first)
    }

    /// Warnings about the traps of the language: whole numbers divided, `^` for a power, `-x**2`,
    /// a comment without an end.
    pub fn lint(&self, text: &str, name: Option<&str>) -> Vec<Report> {
        let text = comment_out_shebang(text);
        let traps = traps::traps(&self.rhai, &text);
        traps.iter().map(|f| Report::at(&f.error, f.position, &text, name, true)).collect()
    }

    /// What is wrong with a script, without running it: all errors of syntax, variables and functions that do not
    /// exist, misspelled options, and the warnings of [`Engine::lint`]; in the order of lines.
    pub fn check(&mut self, text: &str, name: Option<&str>) -> Vec<Report> {
        let text = comment_out_shebang(text);
        let read = recover::read(&mut self.rhai, &self.scope, &text);
        let mut found = self.lint(&text, name);
        for (mistake, position) in read.mistakes {
            let failure = strict_error(mistake, position);
            let mut scope = self.scope.clone();
            for variable in recover::variables_before(&text, position) {
                scope.push_dynamic(variable, Dynamic::UNIT);
            }
            found.push(Report::of(&self.rhai, &scope, &text, name, &failure));
        }
        if let Some(ast) = &read.ast {
            let modules = Modules::of(&self.rhai, ast, name);
            let script =
                CheckedScript { engine: &self.rhai, ast, source: &text, lost: &read.lost, modules: &modules };
            let mut unknown = lint::unknown_functions(script);
            unknown.extend(given::wrong_options(script));
            unknown.extend(modules.missing(&self.rhai, name));
            unknown.extend(shadows::hidden_variables(ast, &self.scope));
            unknown.extend(holding::methods_of_captured(ast));
            let told: BTreeSet<Position> = unknown.iter().map(|f| f.position).collect();
            let types = types::mismatches(&self.rhai, ast, &read.lost);
            unknown.extend(types.into_iter().filter(|f| !told.contains(&f.position)));
            found.extend(unknown.iter().map(|f| Report::at(&f.error, f.position, &text, name, false)));
        }
        found.sort_by_key(|report| report.position);
        found
    }

    /// The functions that a script calls, with their modules.
    ///
    /// # Errors
    /// When the script cannot be compiled.
    pub fn called(
        &self,
        text: &str,
        name: Option<&str>,
    ) -> std::result::Result<BTreeSet<String>, Box<Report>> {
        let text = comment_out_shebang(text);
        let ast = self.rhai.compile_with_scope(&self.scope, &text).map_err(|e| {
            let failure = EvalAltResult::ErrorParsing(*e.0, e.1);
            Box::new(Report::of(&self.rhai, &self.scope, &text, name, &failure))
        })?;
        Ok(lint::called(&ast))
    }

    /// Evaluates a piece of script.
    pub fn eval(&mut self, text: &str) -> Evaluated {
        self.eval_named(text, None, 1)
    }

    /// Evaluates a piece of script whose first line has this number: functions keep the numbers of their lines.
    pub fn eval_from(&mut self, text: &str, first: usize) -> Evaluated {
        self.eval_named(text, None, first)
    }

    /// Runs a script file whose lines are numbered from `first`; gives its text, too, where it can be read.
    pub fn run_file_from(&mut self, path: &Path, first: usize) -> (Evaluated, String) {
        match read_script(path) {
            Ok(text) => (self.run_text_from(&text, path, first), text),
            Err(unreadable) => (Err(unreadable), String::new()),
        }
    }

    fn eval_named(&mut self, text: &str, name: Option<&str>, first: usize) -> Evaluated {
        self.session.interrupt().clear();
        memory::forget_refusal();
        self.piece.set(self.piece.get() + 1);
        let text = format!("{}{}", "\n".repeat(first.saturating_sub(1)), comment_out_shebang(text));
        let session = self.session.clone();
        let run = session
            .during(|| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.eval_raw(&text, name))));
        match run {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failure)) => Err(Box::new(Report::of(&self.rhai, &self.scope, &text, name, &failure))),
            Err(panic) => Err(Box::new(Report::panic(panic.as_ref()))),
        }
    }

    fn eval_raw(&mut self, text: &str, name: Option<&str>) -> std::result::Result<Dynamic, Failure> {
        let ast = self
            .rhai
            .compile_with_scope(&self.scope, text)
            .map_err(|e| Box::new(EvalAltResult::ErrorParsing(*e.0, e.1)))?;
        if let Some(hidden) = shadows::hidden_variables(&ast, &self.scope).into_iter().next() {
            return Err(failure(hidden.error, hidden.position));
        }
        let mut ast = self.direct.apply(ast, &self.functions);
        if let Some(name) = name {
            ast.set_source(name);
        }
        let whole = constants::statement().merge(&self.functions).merge(&ast);
        let result = self.rhai.eval_ast_with_scope::<Dynamic>(&mut self.scope, &whole);
        let mut functions = whole;
        if result.is_ok() {
            self.imports.push_str(&imports(&ast));
        }
        functions.clear_statements();
        // Importing a module again with every piece of input only names it, unless its file has changed.
        let imports = self.rhai.compile(&self.imports).unwrap_or_default();
        self.functions = imports.merge(&functions);
        result
    }
}

/// A module of the stdlib with the forms of its functions that leave all options out.
fn shorter_forms(rhai: &rhai::Engine, mut ast: AST) -> Result<AST> {
    let mut text = String::new();
    for f in ast.iter_functions() {
        let Some((last, first)) = f.params.split_last() else { continue };
        let takes = *last == "opts" && !ast.iter_functions().any(|g| g.name == f.name && g.params == first);
        let doc = registry::doc(f.comments.iter().copied());
        if takes && !doc.is_empty() && !Declared::new(doc.clone()).requires() {
            let names = first.join(", ");
            let separator = if first.is_empty() { "" } else { ", " };
            // Types are the same without options; everything else that is to be said is said of the longer form.
            text.extend(signature::section(&doc).lines().map(|line| format!("/// {line}\n")));
            text.push_str(&format!("fn {0}({names}) {{ {0}({names}{separator}#{{}}) }}\n", f.name));
        }
    }
    let short = rhai.compile(&text).map_err(|e| Error::internal(format!("shorter forms: {e}")))?;
    ast.combine(short);
    Ok(ast)
}

/// The statements at the top of a script that import a module under a name.
fn imports(ast: &AST) -> String {
    let import = |statement: &Stmt| match statement {
        Stmt::Import(parts, _) => match &parts.0 {
            Expr::StringConstant(path, _) if !parts.1.name.is_empty() => {
                Some(format!("import {:?} as {};\n", path.as_str(), parts.1.name))
            }
            _ => None,
        },
        _ => None,
    };
    ast.statements().iter().filter_map(import).collect()
}

/// The text of a script file.
///
/// # Errors
/// When the file cannot be read or is no text.
pub fn read_script(path: &Path) -> std::result::Result<String, Box<Report>> {
    let name = path.display();
    let text = match memory::read(path) {
        // Some editors begin a text with a byte-order mark.
        Ok(bytes) => String::from_utf8(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes).to_vec())
            .map_err(|_| Error::file(format!("`{name}` is not a text file"))),
        Err(e) => {
            let error = Error::file(format!("`{name}` cannot be read: {}", plain_io(&e)));
            Err(error.hint(match path == Path::new("-") {
                true => "`umklapp` without a script runs what is piped to it",
                false => "its name is relative to the folder where you are",
            }))
        }
    };
    text.map_err(|e| Box::new(Report::plain(&e)))
}

/// The text with the line that names an interpreter made a comment.
fn comment_out_shebang(text: &str) -> String {
    text.strip_prefix("#!").map_or(text.to_string(), |rest| format!("// {rest}"))
}

/// An error of strict compilation as the same error at run time, so that both read alike.
fn strict_error(error: rhai::ParseErrorType, position: Position) -> EvalAltResult {
    match error {
        rhai::ParseErrorType::VariableUndefined(name) => EvalAltResult::ErrorVariableNotFound(name, position),
        rhai::ParseErrorType::ModuleUndefined(name) => EvalAltResult::ErrorModuleNotFound(name, position),
        other => EvalAltResult::ErrorParsing(other, position),
    }
}

/// The system's words for an I/O error, without its number.
fn plain_io(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
