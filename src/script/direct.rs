//! What is rewritten in compiled scripts. Comparisons are evaluated without a search for the function that does them
//! (see [`super::comparison`]); only speed depends on that: what is not rewritten comes to the same. `switch` finds
//! numbers of both types (see [`super::switches`]), what `catch` gets is read (see [`super::caught`]), the text given
//! to `eval` is rewritten too (see [`super::evaluated`]), and `options(opts)` learns which function it stands in, whose
//! doc comment declares the options; without that it is an error.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use rhai::{
    AST, Dynamic, Engine, Expr, Expression, FlowControl, FnAccess, FnCallExpr, FnPtr, Module, Position,
    ScriptFuncDef, Shared, Stmt, StmtBlock, Token,
};

use super::caught;
use super::comparison::{Comparison, packed};
use super::declaration::Declared;
use super::evaluated::{self, TextRewriter, is_eval};
use super::failure::failure;
use super::hidden;
use super::options::{READING, Reading};
use super::own::{OwnFunctions, body_of, is_closure};
use super::registry;
use super::session::session;
use super::shadows::made_in;
use super::switches;

/// What the body of a rewritten function is evaluated under: nothing that a script can write.
const BODY: &str = "\u{1}body";

/// The same of a function that a module gives to others.
const ENTRY: &str = "\u{1}entry";

/// A rewritten body of a function, an expression of statements.
type RewrittenBody = Rc<Expr>;

/// Registers how the rewritten bodies of functions are evaluated.
pub(super) fn register(engine: &mut Engine) {
    hidden::register(engine, BODY, |ctx, _, body| match body.read_lock::<RewrittenBody>() {
        Some(body) => ctx.eval_expression_tree(&Expression::from(&**body)),
        None => Ok(Dynamic::UNIT),
    });
    // Rhai remembers what a call came to by name and number of arguments, and does not forget it where a function of a
    // module calls others of its own: that one begins with nothing remembered.
    hidden::register(engine, ENTRY, |ctx, _, body| match body.read_lock::<RewrittenBody>() {
        Some(body) => {
            let session = session().map_err(|e| failure(e, body.position()))?;
            let mut frame = ctx.new_frame().with_new_caching_layer();
            session.workflow(|| frame.eval_expression_tree(&Expression::from(&**body)))
        }
        None => Ok(Dynamic::UNIT),
    });
}

/// Rewrites compiled scripts.
pub(super) struct Direct {
    /// Rhai gives no hand on the body of a function. So this parser makes one that is nothing but a custom expression,
    /// which holds the rewritten body.
    wrapper: Engine,
    /// The body that is being wrapped.
    wrapped: Rc<RefCell<Option<RewrittenBody>>>,
    /// Modules so far.
    modules: Cell<usize>,
}

impl Direct {
    pub(super) fn new() -> Direct {
        let wrapped: Rc<RefCell<Option<RewrittenBody>>> = Rc::default();
        let mut wrapper = Engine::new_raw();
        for kind in [BODY, ENTRY] {
            let body = wrapped.clone();
            wrapper.register_custom_syntax_without_look_ahead_raw(
                kind,
                move |_, state| {
                    *state = body.take().map_or(Dynamic::UNIT, Dynamic::from);
                    Ok(None)
                },
                false,
                |_, _, _| Ok(Dynamic::UNIT),
            );
        }
        #[allow(deprecated)] // Not deprecated, it says, but volatile; the version of Rhai is pinned.
        wrapper.on_parse_token(|token, _, _| match token {
            Token::Identifier(name) if *name == "body" => Token::Custom(Box::new(BODY.into())),
            Token::Identifier(name) if *name == "entry" => Token::Custom(Box::new(ENTRY.into())),
            token => token,
        });
        Direct { wrapper, wrapped, modules: Cell::new(0) }
    }

    /// The script rewritten, its statements and its functions. A function `options` of one parameter, here or among the
    /// functions of `earlier` pieces of the script, is called as it is.
    pub(super) fn apply(&self, ast: AST, earlier: &AST) -> AST {
        self.rewritten(ast, earlier, None)
    }

    /// The same of a module, whose functions call one another whatever else has the same name.
    pub(super) fn apply_to_module(&self, ast: AST) -> AST {
        self.modules.set(self.modules.get() + 1);
        self.rewritten(ast, &AST::empty(), Some(self.modules.get()))
    }

    /// The script with the number 0, or a module with its own, rewritten.
    fn rewritten(&self, mut ast: AST, earlier: &AST, module: Option<usize>) -> AST {
        let own = ast.iter_functions().chain(earlier.iter_functions());
        let reads = !own.into_iter().any(|f| f.name == "options" && f.params.len() == 1);
        let mut body = ast.statements().to_vec();
        let own = Rc::new(OwnFunctions::of(module.unwrap_or(0), &ast, earlier));
        let parser = &self.wrapper;
        let mut rewriter = Rewriter { found: false, declared: None, own: &own, parser, hidden: None };
        rewriter.statements(&mut body);
        let mut functions = Module::new();
        for (.., function) in ast.shared_lib().iter_script_fn_info() {
            let function = self.function(function, reads, module.is_some(), &own);
            let twin = own.twin(&function);
            // A closure of a module has only that name.
            if twin.is_none() || !is_closure(&function.name) {
                functions.set_script_fn(function);
            }
            twin.map(|twin| functions.set_script_fn(twin));
        }
        let rewritten = AST::new(body, functions);
        // The name and the doc of the script stay.
        ast.clear_statements();
        ast.clear_functions();
        ast.combine(rewritten);
        ast
    }

    /// The function, with its body in a wrapper if there is something to rewrite in it, or if a module gives it to
    /// others. `reads` says whether `options(opts)` is rewritten.
    fn function(
        &self,
        function: &Shared<ScriptFuncDef>,
        reads: bool,
        module: bool,
        own: &Rc<OwnFunctions>,
    ) -> Shared<ScriptFuncDef> {
        let (first, last) = (function.body.start_position(), function.body.end_position());
        let mut body = body_of(function);
        // A closure has no doc comment that could declare options.
        let reads = reads && !is_closure(&function.name);
        let doc = || registry::doc(function.comments.iter().map(|line| &**line));
        let declared = reads.then(|| Rc::new(Declared::new(doc())));
        let hidden = Some(made_in(function));
        let mut rewriter = Rewriter { found: false, declared, own, parser: &self.wrapper, hidden };
        rewriter.statements(&mut body);
        let entry = module && function.access == FnAccess::Public;
        if rewriter.found || entry {
            let body = Expr::Stmt(Box::new(StmtBlock::new(body, first, last)));
            *self.wrapped.borrow_mut() = Some(Rc::new(body));
            let wrapper = if entry { "fn wrapper() { entry }" } else { "fn wrapper() { body }" };
            // The wrapper always compiles. Without it comparisons would be slower and `options(opts)` an error.
            if let Ok(wrapper) = self.wrapper.compile(wrapper)
                && let Some((.., wrapper)) = wrapper.shared_lib().iter_script_fn_info().next()
            {
                // Member by member: the body that goes is not copied.
                return Shared::new(ScriptFuncDef {
                    body: wrapper.body.clone(),
                    name: function.name.clone(),
                    access: function.access,
                    this_type: function.this_type.clone(),
                    params: function.params.clone(),
                    comments: function.comments.clone(),
                });
            }
        }
        function.clone()
    }
}

/// Walks through a script and rewrites its comparisons and switches, what it catches, how its functions read their
/// options, and how they call one another.
struct Rewriter<'a> {
    /// Whether something was rewritten.
    found: bool,
    /// What the function declares; nothing where `options(opts)` stays as it is.
    declared: Option<Rc<Declared>>,
    own: &'a Rc<OwnFunctions>,
    /// What reads a call, for its hashes.
    parser: &'a Engine,
    /// Names that a function or closure has variables for; nothing outside of functions, where calls find those of the
    /// script.
    hidden: Option<BTreeSet<String>>,
}

impl Rewriter<'_> {
    fn statements(&mut self, list: &mut [Stmt]) {
        list.iter_mut().for_each(|statement| self.statement(statement));
    }

    fn expressions<'a>(&mut self, list: impl IntoIterator<Item = &'a mut Expr>) {
        list.into_iter().for_each(|x| self.expression(x));
    }

    fn control(&mut self, flow: &mut FlowControl) {
        self.expression(&mut flow.expr);
        self.statements(flow.body.statements_mut());
        self.statements(flow.branch.statements_mut());
    }

    fn statement(&mut self, statement: &mut Stmt) {
        match statement {
            Stmt::If(flow, _) | Stmt::While(flow, _) | Stmt::Do(flow, ..) => self.control(flow),
            Stmt::TryCatch(flow, _) => {
                self.control(flow);
                self.found = true;
                caught::rewrite(flow);
            }
            Stmt::For(parts, _) => self.control(&mut parts.2),
            Stmt::Switch(parts, _) => {
                self.expression(&mut parts.0);
                for case in &mut parts.1.expressions {
                    self.expressions([&mut case.lhs, &mut case.rhs]);
                }
                let (value, cases) = &mut **parts;
                self.found |= switches::rewrite(value, cases);
            }
            Stmt::Var(parts, ..) => self.expression(&mut parts.1),
            Stmt::Assignment(parts) => self.expressions([&mut parts.1.lhs, &mut parts.1.rhs]),
            Stmt::FnCall(call, position) => {
                self.expressions(&mut call.args);
                if is_eval(call) {
                    let call = self.evaluation(call, *position);
                    *statement = Stmt::Expr(Box::new(call));
                } else {
                    self.own_call(call);
                }
            }
            Stmt::Block(inner) => self.statements(inner.statements_mut()),
            Stmt::Expr(inner) => self.expression(inner),
            Stmt::BreakLoop(Some(inner), ..) | Stmt::Return(Some(inner), ..) => self.expression(inner),
            _ => {}
        }
    }

    /// A call of an own function, in functions and closures, goes by its second name; `Fn("name")` everywhere.
    fn own_call(&mut self, call: &mut FnCallExpr) -> bool {
        if let ("Fn", [Expr::StringConstant(name, _)]) = (call.name.as_str(), &mut call.args[..]) {
            if let Some(second) = self.own.name(name) {
                self.found = true;
                *name = second;
            }
            return true;
        }
        let own = self.hidden.is_some() && self.own.call(call, self.parser);
        self.found |= own;
        own
    }

    /// A call of `eval`, whose text will be rewritten as what is around it.
    fn evaluation(&mut self, call: &mut FnCallExpr, position: Position) -> Expr {
        self.found = true;
        let (own, hidden) = (self.own.clone(), self.hidden.clone());
        let rewriter: TextRewriter = Rc::new(move |text, parser| {
            let hidden = hidden.clone();
            Rewriter { found: false, declared: None, own: &own, parser, hidden }.statements(text);
        });
        evaluated::rewrite(call, rewriter, position)
    }

    /// Functions in constants.
    fn pointers(&mut self, value: &mut Dynamic) {
        let name = value.read_lock::<FnPtr>().map(|pointer| pointer.fn_name().to_string());
        if let Some(pointer) = name.and_then(|name| self.own.pointer(&name)) {
            self.found = true;
            *value = Dynamic::from(pointer);
        } else if let Some(mut array) = value.write_lock::<rhai::Array>() {
            array.iter_mut().for_each(|value| self.pointers(value));
        } else if let Some(mut map) = value.write_lock::<rhai::Map>() {
            map.values_mut().for_each(|value| self.pointers(value));
        }
    }

    fn expression(&mut self, x: &mut Expr) {
        match x {
            Expr::FnCall(call, position) => {
                self.expressions(&mut call.args);
                if is_eval(call) {
                    *x = self.evaluation(call, *position);
                    return;
                }
                let reads = call.name == "options" && call.args.len() == 1 && call.namespace.is_empty();
                if let Some(declared) = self.declared.as_ref().filter(|_| reads) {
                    self.found = true;
                    let (position, workflow) = (*position, self.own.of_module());
                    let reading = Reading { declared: declared.clone(), position, workflow };
                    let operands = std::mem::take(&mut call.args);
                    *x = hidden::expression(READING, operands, Dynamic::from(reading), position);
                    return;
                }
                if self.own_call(call) {
                    return;
                }
                let comparison = call.op_token.as_ref().and_then(|_| Comparison::written(&call.name));
                if let Some(comparison) = comparison.filter(|_| call.args.len() == 2) {
                    self.found = true;
                    let (operands, position) = (std::mem::take(&mut call.args), *position);
                    *x = hidden::expression(comparison.key(), operands, packed(position).into(), position);
                }
            }
            Expr::DynamicConstant(value, _) => self.pointers(value),
            Expr::Variable(variable, ..) if variable.0.is_none() && variable.2.is_empty() => {
                let seen = self.hidden.as_ref().is_some_and(|hidden| !hidden.contains(variable.1.as_str()));
                if let Some(name) = self.own.name(&variable.1).filter(|_| seen) {
                    self.found = true;
                    variable.1 = name;
                }
            }
            Expr::MethodCall(call, _) => {
                self.expressions(&mut call.args);
                let own = self.hidden.is_some() && self.own.method(call, self.parser);
                self.found |= own;
            }
            Expr::InterpolatedString(parts, _) | Expr::Array(parts, _) => self.expressions(parts),
            Expr::Map(parts, _) => self.expressions(parts.0.iter_mut().map(|(_, value)| value)),
            Expr::Stmt(inner) => self.statements(inner.statements_mut()),
            Expr::Dot(pair, ..) | Expr::Index(pair, ..) => self.expressions([&mut pair.lhs, &mut pair.rhs]),
            Expr::And(parts, _) | Expr::Or(parts, _) | Expr::Coalesce(parts, _) => {
                self.expressions(&mut **parts)
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    /// Comparisons in all places of a script, the values of which are `true`.
    const SCRIPT: &str = "
        fn above(x) { if x > 0.0 { return true; } false }
        fn method() { switch 1 { 1 if this > 0.0 => true, _ => false } }
        private fn last(x, y) { let z = x < y; z }
        fn outer(x) { let f = |y| y > x; last(x, 1.0) && f.call(1e-300) }
        let zero = 0.0;
        let inner = |x| x > zero;
        let all = [1e-300 > 0.0, above(1e-300), 1e-300.method(), outer(0.0), inner.call(1e-300), !(1e-300 in [0.0])];
        let n = 0;
        for x in [1e-300, 0.0] { if x != 0.0 { n += 1; } }
        while n < 1 || n == 7 { break; }
        all + [n == 1, `${1e-300 > 0.0}` == \"true\", #{ a: 1e-300 > 0.0 }.a, [1, 2][if 1e-300 > 0.0 { 1 } else { 0 \
         }] == 2]
    ";

    fn all_true(engine: &mut Engine, script: &str) {
        let found = engine.eval(script).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let found = found.into_typed_array::<bool>().unwrap();
        assert!(found.iter().all(|x| *x) && !found.is_empty(), "{found:?}");
    }

    #[test]
    fn comparisons_are_exact_everywhere() {
        let mut engine = Engine::new().unwrap();
        all_true(&mut engine, SCRIPT);
        // Functions and variables of an earlier piece, and what `eval` compiles by itself.
        all_true(&mut engine, "[above(1e-300), inner.call(1e-300), outer(0.0)]");
        all_true(
            &mut engine,
            "[eval(\"1e-300 > 0.0\"), eval(\"let x = 1e-300; while x == 0.0 { return false; } x != 0\")]",
        );
    }

    #[test]
    fn a_function_called_options_is_the_scripts_own() {
        let own = "fn options(x) { x + 1 }\nfn twice(opts) { 2 * options(opts) }\n";
        let mut engine = Engine::new().unwrap();
        all_true(&mut engine, &format!("{own}[twice(3) == 8]"));
        // In the next piece of a session, too.
        all_true(&mut engine, "fn thrice(opts) { 3 * options(opts) }\n[thrice(3) == 12]");
        let mut engine = Engine::new().unwrap();
        let report = engine.eval("let f = |o| options(o); f.call(#{ a: 1 })").unwrap_err();
        assert_eq!(report.message, "`options(opts)` stands in no function");
    }

    #[test]
    fn modules_of_files_compare_alike() {
        let folder = std::env::temp_dir().join(format!("umklapp-modules-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let module = "fn above(x) { x > 0.0 } const TINY = 1e-300 > 0.0; export TINY;";
        std::fs::write(folder.join("compare.rhai"), module).unwrap();
        let main = "import \"compare\" as c; [c::above(1e-300), c::TINY, !c::above(0.0)]";
        let mut engine = Engine::new().unwrap();
        let found = engine
            .run_text(main, &folder.join("main.rhai"))
            .unwrap_or_else(|e| panic!("{}", e.render(false)));
        assert_eq!(found.into_typed_array::<bool>().unwrap(), [true; 3]);
        let missing = engine.run_text("import \"nowhere\" as c;", &folder.join("main.rhai")).unwrap_err();
        assert!(missing.message.contains("nowhere"), "{}", missing.message);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Counts the bars that begin.
    #[derive(Default)]
    struct Bars(std::sync::atomic::AtomicUsize);

    impl crate::task::Progress for Bars {
        fn start(&self, _: &str, _: u64) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        fn advance(&self, _: u64, _: &str) {}
        fn finish(&self) {}
    }

    #[test]
    fn a_workflow_without_progress_has_quiet_products() {
        let folder = std::env::temp_dir().join(format!("umklapp-hushed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let module = "/// # Options\n/// - `progress` (true): show a bar.\n/// - `after` (function): what follows.\nfn \
             run(h, v, opts) { let o = options(opts); let w = h * v; if o.after != () { o.after.call(w); } w }";
        std::fs::write(folder.join("flow.rhai"), module).unwrap();
        let begin = "import \"flow\" as flow; let chain = tight_binding(lattice::chain(8));
            let h = kpm::polynomial(chain, kpm::fermi(window(-2.1, 2.1))); let v = unit_block(chain, [0]);";
        for (script, expected) in [
            ("h * v", 1),
            ("flow::run(h, v, #{})", 1),
            ("flow::run(h, v, #{ progress: false })", 0),
            // It ends with the workflow, by an error too.
            ("flow::run(h, v, #{ progress: false }); h * v", 1),
            ("try { flow::run(h, v, #{ progress: false, after: |w| w.nothing }); } catch { } h * v", 1),
            (
                "flow::run(h, v, #{ progress: false, after: |w| flow::run(h, w, #{ progress: true }) }); h * v",
                1,
            ),
            ("flow::run(h, v, #{ after: |w| flow::run(h, w, #{ progress: false }) }); h * v", 2),
        ] {
            let mut engine = Engine::new().unwrap();
            let bars = std::sync::Arc::new(Bars::default());
            engine.session().set_progress(Some(bars.clone()));
            let found = engine.run_text(&format!("{begin}{script}"), &folder.join("main.rhai"));
            let _ = found.unwrap_or_else(|e| panic!("{script}: {}", e.render(false)));
            assert_eq!(bars.0.load(std::sync::atomic::Ordering::Relaxed), expected, "{script}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_refusal_stands_where_the_operator_does() {
        for (script, line, column) in [
            ("let s = series([1]);\nif s > 0 { }", 2, 6),
            ("fn f(s) {\n  s == 1\n}\nlet x = f(series([1]));", 2, 5),
            ("let x = 1;\nlet y = eval(\"series([1]) < 2\");", 2, 9),
        ] {
            let mut engine = Engine::new().unwrap();
            let report = engine.eval(script).unwrap_err();
            assert!(report.message.contains("Series") && report.hint.is_some(), "{}", report.message);
            if !script.contains("eval") {
                assert_eq!(report.position, Some((line, column)), "{}", report.render(false));
            }
        }
    }
}
