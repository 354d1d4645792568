//! Calls among the functions of one script. Rhai looks for a function by its name when it is called, and in the module
//! whose function runs first: a closure that a script gives to a module would call the module's functions of the names
//! it knows. So each function has a second name, which tells its script and which nobody writes. Functions and closures
//! call those of their own script by it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use rhai::{
    AST, ASTNode, Engine, Expr, FnAccess, FnCallExpr, FnCallHashes, FnPtr, ImmutableString, Module,
    ScriptFuncDef, Shared, Stmt,
};

/// How Rhai begins the names of closures.
const CLOSURE: &str = "anon$";
/// The same in modules, where it is a name as functions have.
const CLOSURE_OF_MODULE: &str = "anon_";

/// A letter that begins the number of a script behind the name of a function. No keyboard has it.
const MARK: char = '\u{a4f8}';

/// Whether a function has the name that only its own script calls it by.
pub(super) fn is_second_name(name: &str) -> bool {
    name.contains(MARK)
}

/// Whether this is the name of a closure. Rhai makes it of the closure's text and place; in modules, of which several
/// may have the same text, it tells the module, too.
pub(super) fn is_closure(name: &str) -> bool {
    name.starts_with(CLOSURE) || name.starts_with(CLOSURE_OF_MODULE) && is_second_name(name)
}

/// A text with the names that its reader knows.
pub(super) fn known_names(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return text.into();
    }
    let mut parts = text.split(MARK);
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |known, part| known + part.trim_start_matches(|c: char| c.is_ascii_digit())).into()
}

/// The functions of a script, and its number.
pub(super) struct OwnFunctions {
    script: usize,
    /// Names and numbers of parameters.
    known: BTreeSet<(String, usize)>,
    /// The hashes of calls by their second name, once these are needed; those of methods apart.
    hashes: RefCell<BTreeMap<(String, usize, bool), FnCallHashes>>,
    names: BTreeSet<String>,
    /// Names that maps have keys for: a method of such a name may be what a map holds.
    held: BTreeSet<String>,
}

impl OwnFunctions {
    /// Those of a script and of its `earlier` pieces. Functions of one type only are left out: others of the same name
    /// may serve where they do not.
    pub fn of(script: usize, ast: &AST, earlier: &AST) -> OwnFunctions {
        let all = || ast.iter_functions().chain(earlier.iter_functions());
        let typed: BTreeSet<&str> = all().filter(|f| f.this_type.is_some()).map(|f| f.name).collect();
        let own = all().filter(|f| !is_closure(f.name) && !is_second_name(f.name) && !typed.contains(f.name));
        let known: BTreeSet<_> = own.map(|f| (f.name.to_string(), f.params.len())).collect();
        let mut names: BTreeSet<String> = known.iter().map(|(name, _)| name.clone()).collect();
        let held = if names.is_empty() { BTreeSet::new() } else { keys_of(ast) };
        if script > 0 {
            names.extend(ast.iter_functions().map(|f| f.name.to_string()).filter(|name| is_closure(name)));
        }
        OwnFunctions { script, known, hashes: RefCell::default(), names, held }
    }

    /// Whether the script is a module.
    pub fn of_module(&self) -> bool {
        self.script > 0
    }

    fn second_name(&self, name: &str) -> ImmutableString {
        let name = name.replacen(CLOSURE, CLOSURE_OF_MODULE, 1);
        format!("{name}{MARK}{}", self.script).into()
    }

    /// The function by its second name, with this body.
    pub fn twin(&self, function: &ScriptFuncDef) -> Option<ScriptFuncDef> {
        self.names.contains(function.name.as_str()).then(|| ScriptFuncDef {
            body: function.body.clone(),
            name: self.second_name(&function.name),
            // Other scripts do not see it, but closures are given away.
            access: if is_closure(&function.name) { FnAccess::Public } else { FnAccess::Private },
            this_type: None,
            params: function.params.clone(),
            comments: function.comments.clone(),
        })
    }

    /// Makes a call of an own function one by its second name; whether it is one.
    pub fn call(&self, call: &mut FnCallExpr, parser: &Engine) -> bool {
        let plain = call.op_token.is_none() && call.namespace.is_empty() && !call.capture_parent_scope;
        plain && self.by_second_name(call, parser, false)
    }

    /// The same of a call as a method, of a function that takes the value as `this`.
    pub fn method(&self, call: &mut FnCallExpr, parser: &Engine) -> bool {
        !self.held.contains(call.name.as_str()) && self.by_second_name(call, parser, true)
    }

    fn by_second_name(&self, call: &mut FnCallExpr, parser: &Engine, method: bool) -> bool {
        let arguments = call.args.len();
        let key = (call.name.to_string(), arguments);
        if !self.known.contains(&key) {
            return false;
        }
        let name = self.second_name(&call.name);
        let mut known = self.hashes.borrow_mut();
        let hashes = match known.entry((key.0, arguments, method)) {
            Entry::Occupied(known) => *known.get(),
            // Without them the call stays as it is.
            Entry::Vacant(unknown) => match hashes_of(parser, &name, arguments, method) {
                Some(hashes) => *unknown.insert(hashes),
                None => return false,
            },
        };
        (call.name, call.hashes) = (name, hashes);
        true
    }

    /// The value that the name of an own function stands for.
    pub fn pointer(&self, name: &str) -> Option<FnPtr> {
        self.names.contains(name).then(|| FnPtr::new(self.second_name(name)).ok()).flatten()
    }

    /// The second name, where the name is that of an own function.
    pub fn name(&self, name: &str) -> Option<ImmutableString> {
        self.names.contains(name).then(|| self.second_name(name))
    }
}

/// The statements of a function, which Rhai shows to nobody who asks for them plainly.
pub(super) fn body_of(function: &Shared<ScriptFuncDef>) -> Vec<Stmt> {
    let mut alone = Module::new();
    alone.set_script_fn(function.clone());
    let mut body = Vec::new();
    AST::new([], alone).walk(&mut |path: &[ASTNode]| {
        if let [ASTNode::Stmt(statement)] = path {
            body.push((*statement).clone());
        }
        true
    });
    body
}

/// The keys of a script's maps, and its properties.
fn keys_of(ast: &AST) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    ast.walk(&mut |path: &[ASTNode]| {
        match path.last() {
            Some(ASTNode::Expr(Expr::Map(map, _))) => {
                keys.extend(map.0.iter().map(|(key, _)| key.name.to_string()));
            }
            Some(ASTNode::Expr(Expr::DynamicConstant(value, _))) => {
                if let Some(map) = value.read_lock::<rhai::Map>() {
                    keys.extend(map.keys().map(|key| key.to_string()));
                }
            }
            Some(ASTNode::Expr(Expr::Property(property, _))) => {
                keys.insert(property.2.to_string());
            }
            Some(ASTNode::Expr(Expr::StringConstant(text, _))) => {
                keys.insert(text.to_string());
            }
            _ => {}
        }
        true
    });
    keys
}

/// The hashes that a call of this name has, as a method or not.
fn hashes_of(parser: &Engine, name: &str, arguments: usize, method: bool) -> Option<FnCallHashes> {
    let of = if method { "x." } else { "" };
    let ast = parser.compile(format!("{of}{name}({})", vec!["0"; arguments].join(", "))).ok()?;
    match ast.statements() {
        [Stmt::FnCall(call, _)] => Some(call.hashes),
        [Stmt::Expr(call)] => match &**call {
            Expr::FnCall(call, _) => Some(call.hashes),
            Expr::Dot(pair, ..) => match &pair.rhs {
                Expr::MethodCall(call, _) => Some(call.hashes),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    /// The value of a script beside two modules of the same text, whose functions have the names of its own.
    fn value(script: &str) -> i64 {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("umklapp-own-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let module = |helper: i64| {
            format!(
                "fn helper(x) {{ {helper} + x }}
                private fn secret(x) {{ 2 * {helper} + x }}
                fn apply(f, x) {{ f.call(x) }}
                fn through(f, x) {{ let g = |y| f.call(y); g.call(x) }}
                fn named(x) {{ apply(Fn(\"helper\"), x) }}
                fn bare(x) {{ [x].map(helper)[0] }}
                fn inside(x) {{ [x].map(|y| secret(y))[0] }}
                fn own() {{ {helper} + this }}
                private fn added(x) {{ 3 * {helper} + this + x }}
                fn made() {{ |x| secret(x) }}"
            )
        };
        std::fs::write(folder.join("one.rhai"), module(1000)).unwrap();
        std::fs::write(folder.join("two.rhai"), module(5000)).unwrap();
        let begin = "import \"one\" as one; import \"two\" as two;
            fn helper(x) { 1 + x }
            fn secret(x) { 2 + x }
            fn apply(f, x) { -1 }
            fn own() { 4 + this }
            fn added(x) { 5 + this + x }
            fn scaled() { 10 * this.own() }
            fn deeper(x) { 10 * secret(x) }\n";
        let mut engine = Engine::new().unwrap();
        let found = engine.run_text(&format!("{begin}{script}"), &folder.join("main.rhai"));
        std::fs::remove_dir_all(&folder).unwrap();
        found.unwrap_or_else(|e| panic!("{script}: {}", e.render(false))).as_int().unwrap()
    }

    #[test]
    fn a_closure_calls_the_functions_of_its_script() {
        for (script, expected) in [
            ("one::apply(|x| helper(x), 1)", 2),
            ("one::apply(|x| secret(x), 1)", 3),
            ("one::through(|x| { let y = secret(x); y }, 1)", 3),
            ("one::apply(|x| deeper(x), 1)", 30),
            ("one::apply(deeper, 1)", 30),
            ("one::apply(helper, 1)", 2),
            ("one::apply(Fn(\"secret\"), 1)", 3),
            // As methods.
            ("1.own()", 5),
            ("one::apply(|x| x.own(), 1)", 5),
            ("one::apply(|x| x.added(2), 1)", 8),
            ("one::apply(|x| { let y = [x]; y[0].added(2) + y[0].own() }, 1)", 13),
            ("one::apply(|x| x.scaled(), 1)", 50),
            ("one::apply(|x| { x.own(); [x].map(|y| y.own())[0] }, 1)", 5),
            // A function that a map holds goes before.
            ("let m = #{ own: |x| 7 * x }; one::apply(|x| m.own(x), 1)", 7),
            ("let m = #{}; m.own = || 9; one::apply(|x| m.own(), 1)", 9),
            ("let name = || Fn(\"secret\"); one::apply(name.call(), 1)", 3),
            // In the text given to `eval`.
            ("one::apply(|x| eval(\"secret(x)\"), 1)", 3),
            (
                "one::apply(|x| { let y = 0; eval(\"y = helper(x)\"); y + eval(\"eval(\\\"deeper(x)\\\")\") }, 1)",
                32,
            ),
            ("one::apply(|x| { let secret = 7; eval(\"secret\") }, 1)", 7),
            ("one::apply(|x| eval(\"Fn(\\\"secret\\\")\").call(x), 1)", 3),
            // From one module to the other and back.
            ("one::apply(|x| two::apply(|y| secret(y), x), 1)", 3),
            ("two::apply(|x| one::inside(x) + secret(x), 1)", 2001 + 3),
        ] {
            assert_eq!(value(script), expected, "{script}");
        }
    }

    #[test]
    fn a_module_calls_its_own_functions() {
        for (script, expected) in [
            ("one::named(1)", 1001),
            ("one::bare(1)", 1001),
            ("two::bare(1)", 5001),
            ("one::inside(1)", 2001),
            ("two::apply(|x| one::bare(x), 1)", 1001),
            ("one::made().call(1)", 2001),
            ("two::apply(one::made(), 1)", 2001),
        ] {
            assert_eq!(value(script), expected, "{script}");
        }
    }

    #[test]
    fn functions_given_to_the_program_call_those_of_the_script() {
        let mut engine = Engine::new().unwrap();
        // `at_time` is a function of the program's module `exact`, too.
        let script = "
            fn at_time(h, t) { h * t }
            let spin = sites(\"S=1/2\", 1);
            let x = opsum();
            x.add(1.0, \"Sx\", 0);
            let h = exact::operator(x, spin);
            let late = exact::evolve(|t| at_time(h, t), unit_block(h, [0]), 2.0, #{ progress: false });
            abs(late.state.to_series().abs()[1] - sin(1.0)) < 1e-7";
        let found = engine.eval(script).unwrap_or_else(|e| panic!("{}", e.render(false)));
        assert_eq!(found.as_bool(), Ok(true));
    }

    #[test]
    fn pieces_of_a_session_know_one_another() {
        let mut engine = Engine::new().unwrap();
        let mut run = |text: &str| {
            engine.eval(text).unwrap_or_else(|e| panic!("{text}: {}", e.render(false))).as_int().unwrap_or(0)
        };
        run("fn a(x) { 1 + x } fn twice(x) { a(a(x)) }");
        assert_eq!(run("let f = |x| twice(x); f.call(1)"), 3);
        // A function that is written again is the new one everywhere.
        run("fn a(x) { 10 + x }");
        assert_eq!(run("f.call(1) + twice(1)"), 42);
        assert_eq!(run("let twice = 5; [1].map(|x| a(x))[0] + twice"), 16);
        assert_eq!(run("let b = |a| a + 1; b.call(2)"), 3);
        assert_eq!(engine.functions().count(), 2);
    }

    #[test]
    fn messages_say_the_names_that_are_written() {
        let mut engine = Engine::new().unwrap();
        let report =
            engine.eval("fn inner(x) { x.nothing }\nfn outer(x) { inner(x) }\nouter(1.0)").unwrap_err();
        let said = report.render(false);
        assert!(said.contains("in `inner`, called at line 2"), "{said}");
        let report = engine.eval("fn inner(x) { x }\nlet f = Fn(\"inner\");\nf.call(1, 2)").unwrap_err();
        let said = report.render(false);
        assert!(said.contains("`inner(int, int)`"), "{said}");
        let shown = engine
            .eval("fn inner(x) { x }\nlet f = Fn(\"inner\"); `${f}`")
            .unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(shown.into_string().unwrap(), "function inner");
        let said = engine.eval("fn deep(x) { deep(x + 1) }\ndeep(1)").unwrap_err().render(false);
        assert!(!said.contains(super::MARK), "{said}");
    }
}
