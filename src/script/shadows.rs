//! Variables that a closure does not see. The parser takes a name in a closure for the function of that name, if one
//! stands above it, although a variable of the same name surrounds the closure. Outside of closures the variable wins.
//! What a closure would compute with is then not what its reader sees, so such a script is refused.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTNode, Dynamic, Expr, FnPtr, Position, Scope, ScriptFuncDef, Shared, Stmt};

use super::finding::Finding;
use super::own::{body_of, is_closure};
use crate::error::Error;

/// The names in the statements of a script, of a function or of a closure.
#[derive(Default)]
struct Names {
    /// Variables made here, parameters and captured variables included.
    made: BTreeSet<String>,
    /// Names that are no variable of the statements before them.
    free: Vec<(String, Position)>,
    /// The closures that stand here.
    closures: BTreeSet<String>,
}

impl Names {
    fn look_at(&mut self, node: &ASTNode) {
        match node {
            ASTNode::Stmt(Stmt::Var(parts, ..)) => {
                self.made.insert(parts.0.name.to_string());
            }
            ASTNode::Stmt(Stmt::For(parts, _)) => {
                self.made.insert(parts.0.name.to_string());
                self.made.extend(parts.1.iter().map(|counter| counter.name.to_string()));
            }
            ASTNode::Stmt(Stmt::TryCatch(flow, _)) => {
                if let Expr::Variable(caught, ..) = &flow.expr {
                    self.made.insert(caught.1.to_string());
                }
            }
            ASTNode::Expr(Expr::Variable(variable, _, position))
                if variable.0.is_none() && variable.2.is_empty() =>
            {
                self.free.push((variable.1.to_string(), *position));
            }
            ASTNode::Expr(Expr::DynamicConstant(value, _)) => self.constant(value),
            _ => {}
        }
    }

    /// Closures without captured variables are constants, and so are arrays and maps of them.
    fn constant(&mut self, value: &Dynamic) {
        if let Some(function) = value.read_lock::<FnPtr>() {
            self.closures.extend(Some(function.fn_name().to_string()).filter(|name| is_closure(name)));
        } else if let Some(array) = value.read_lock::<rhai::Array>() {
            array.iter().for_each(|value| self.constant(value));
        } else if let Some(map) = value.read_lock::<rhai::Map>() {
            map.values().for_each(|value| self.constant(value));
        }
    }
}

fn names_in(function: &Shared<ScriptFuncDef>) -> Names {
    let mut names = Names::default();
    names.made.extend(function.params.iter().map(|name| name.to_string()));
    for statement in body_of(function) {
        statement.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
            path.last().into_iter().for_each(|node| names.look_at(node));
            true
        });
    }
    names
}

/// The names of the variables that a function or closure makes or is given.
pub(super) fn made_in(function: &Shared<ScriptFuncDef>) -> BTreeSet<String> {
    names_in(function).made
}

/// Each place in a closure where a function hides a variable that surrounds the closure: one of the script, or of
/// `scope`, which holds those of a session.
pub(super) fn hidden_variables(ast: &AST, scope: &Scope) -> Vec<Finding> {
    let functions: BTreeSet<&str> =
        ast.iter_functions().map(|f| f.name).filter(|name| !is_closure(name)).collect();
    if functions.is_empty() {
        return Vec::new();
    }
    let mut script = Names::default();
    script.made.extend(scope.iter_raw().map(|(name, ..)| name.to_string()));
    for statement in ast.statements() {
        statement.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
            path.last().into_iter().for_each(|node| script.look_at(node));
            true
        });
    }
    let mut places = vec![script];
    let mut closures: BTreeMap<String, Names> = BTreeMap::new();
    for (.., function) in ast.shared_lib().iter_script_fn_info() {
        let names = names_in(function);
        if is_closure(&function.name) {
            closures.insert(function.name.to_string(), names);
        } else {
            places.push(names);
        }
    }
    let mut found = BTreeMap::new();
    for place in &places {
        look_into(place, &place.made, &closures, &functions, &mut found);
    }
    let finding = |(position, name): (Position, String)| {
        let error =
            Error::input(format!("in a closure `{name}` is the function, not the variable of that name"))
                .hint(format!("give the variable or the function `{name}` another name"));
        Finding { position, error }
    };
    found.into_iter().map(finding).collect()
}

/// Looks through the closures of a place, which `seen` variables surround, and through those inside them.
fn look_into(
    place: &Names,
    seen: &BTreeSet<String>,
    closures: &BTreeMap<String, Names>,
    functions: &BTreeSet<&str>,
    found: &mut BTreeMap<Position, String>,
) {
    for closure in place.closures.iter().filter_map(|name| closures.get(name)) {
        for (name, position) in &closure.free {
            if functions.contains(name.as_str()) && seen.contains(name) && !closure.made.contains(name) {
                found.insert(*position, name.clone());
            }
        }
        let inside = seen.union(&closure.made).cloned().collect();
        look_into(closure, &inside, closures, functions, found);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    /// Where `check` and a run find a hidden variable, or nothing.
    fn place(script: &str) -> Option<(usize, usize)> {
        let mut engine = Engine::new().unwrap();
        let hidden = "in a closure `f` is the function, not the variable of that name";
        let found = engine.check(script, None);
        let checked = found.into_iter().find(|report| report.message == hidden).map(|r| r.position.unwrap());
        let run = engine.eval(script).err().filter(|r| r.message == hidden).map(|r| r.position.unwrap());
        assert_eq!(checked, run, "{script}");
        run
    }

    #[test]
    fn a_variable_that_a_closure_does_not_see_is_refused() {
        let function = "fn f(x) { 100 * x }\n";
        for (script, column) in [
            ("let f = |x| x + 1; let g = |y| f.call(y); g.call(1)", 32),
            ("let f = 3; let g = || [f]; g.call()", 24),
            ("let g = 0; for f in 0..2 { g = || [f]; }", 36),
            ("try { throw 1; } catch (f) { let g = || [f]; g.call(); }", 42),
            ("let f = 3; let all = [|| 1, |x| [f]];", 34),
            // In a closure in a closure, of whose variables one is meant.
            ("let f = 3; let g = || || [f];", 27),
            ("let g = |f| || [f];", 17),
            ("let g = || { let f = 3; || [f] };", 29),
            ("fn h(f) { || [f] }", 15),
            ("fn h() { let f = 3; || [f] }", 25),
            ("const f = 3; let g = || [f];", 26),
        ] {
            assert_eq!(place(&format!("{function}{script}")), Some((2, column)), "{script}");
        }
    }

    #[test]
    fn what_a_closure_sees_is_let_through() {
        for script in [
            // The function is meant: no variable has its name.
            "fn f(x) { 100 * x } let g = || [1, 2].map(f); g.call()[1] == 200",
            "fn f(x) { 100 * x } fn h(f) { [f] } let g = || [1, 2].map(f); g.call()[1] == 200",
            "fn f(x) { 100 * x } let f = 3; let g = || f(2); g.call() == 200",
            // Variables of the closure itself.
            "fn f(x) { 100 * x } let f = 3; let g = |f| f + 1; g.call(1) == 2",
            "fn f(x) { 100 * x } let f = 3; let g = || { let f = 4; f }; g.call() == 4",
            "fn f(x) { 100 * x } let m = #{ f: 3 }; let g = || m.f; g.call() == 3",
            // A function below the closure does not hide the variable.
            "let f = 3; let g = || f + 1; fn f(x) { 100 * x } g.call() == 4",
        ] {
            let mut engine = Engine::new().unwrap();
            assert!(engine.check(script, None).is_empty(), "{script}");
            let value = engine.eval(script).unwrap_or_else(|e| panic!("{script}: {}", e.render(false)));
            assert_eq!(value.as_bool(), Ok(true), "{script}");
        }
    }

    #[test]
    fn variables_of_a_session_count() {
        let mut engine = Engine::new().unwrap();
        assert!(engine.eval("let f = 3;").is_ok());
        let report = engine.eval("fn f(x) { 100 * x }\nlet g = || [f];").unwrap_err();
        assert_eq!(report.position, Some((2, 13)));
        // Constants are known while the closure is read: no function hides the imaginary unit.
        let unit = engine.eval("fn I(x) { x }\nlet g = || I * I == -1.0; g.call()");
        assert_eq!(unit.unwrap_or_else(|e| panic!("{}", e.render(false))).as_bool(), Ok(true));
    }

    #[test]
    fn modules_of_files_and_of_the_program_are_looked_at() {
        let folder = std::env::temp_dir().join(format!("umklapp-shadows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let module = "private fn f(x) { 100 * x }\nfn h(f) { let g = |y| f.call(y); g.call(1) }";
        std::fs::write(folder.join("own.rhai"), module).unwrap();
        let mut engine = Engine::new().unwrap();
        let run = engine.run_text("import \"own\" as own; own::h(|x| x + 1)", &folder.join("main.rhai"));
        let report = run.unwrap_err();
        assert!(report.message.contains("in a closure `f` is the function"), "{}", report.message);
        std::fs::remove_dir_all(folder).unwrap();
        for (name, text) in super::super::stdlib::all() {
            let ast = engine.rhai().compile(text).unwrap();
            let found = super::hidden_variables(&ast, &rhai::Scope::new());
            assert!(found.is_empty(), "{name}: {}", found[0].error);
        }
    }
}
