//! Methods whose function uses their own value, as `a.map(|i| a[i])`. The language locks a value that closures share
//! while a method of it runs, so such a call fails once the function looks at the value. The error does not say where;
//! the text of the script does.

use rhai::{AST, ASTNode, Expr, Position, Stmt};

use super::finding::Finding;
use super::own::body_of;
use crate::error::Error;

/// The error of such a call, which names the variable where it is known.
pub(super) fn error(name: Option<&str>) -> Error {
    let own = name.unwrap_or("u");
    let copy = if own == "v" { "w" } else { "v" };
    Error::input("a function uses the value whose method calls it")
        .hint(format!("copy the value before, like `let {copy} = {own};`, and use `{copy}` in the function"))
}

/// Each call of a method whose function captures the variable that the method is called on.
pub(super) fn methods_of_captured(ast: &AST) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut look = |statement: &Stmt| {
        statement.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
            if let Some(ASTNode::Expr(Expr::Dot(parts, ..))) = path.last()
                && let Some(name) = root(&parts.lhs)
                && let Some(position) = captured(&parts.rhs, name)
            {
                found.push(Finding { position, error: error(Some(name)) });
            }
            true
        });
    };
    ast.statements().iter().for_each(&mut look);
    for (.., function) in ast.shared_lib().iter_script_fn_info() {
        body_of(function).iter().for_each(&mut look);
    }
    found.sort_by_key(|f| f.position);
    found.dedup_by_key(|f| f.position);
    found
}

/// The variable whose method or property this is.
fn root(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Variable(variable, ..) if variable.2.is_empty() => Some(&variable.1),
        Expr::Dot(parts, ..) => root(&parts.lhs),
        _ => None,
    }
}

/// Where a method of a chain is given a closure that captures a variable.
fn captured(chain: &Expr, name: &str) -> Option<Position> {
    match chain {
        Expr::Dot(parts, ..) => captured(&parts.lhs, name).or_else(|| captured(&parts.rhs, name)),
        Expr::MethodCall(call, position) => {
            // A closure that captures variables is a block that first makes them shared.
            let shares = |statement: &Stmt| match statement {
                Stmt::Share(variables) => variables.iter().any(|(own, _)| own.name == name),
                _ => false,
            };
            let captures = |given: &Expr| matches!(given, Expr::Stmt(block) if block.iter().any(shares));
            call.args.iter().any(captures).then_some(*position)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    #[test]
    fn the_text_says_where() {
        let mut engine = Engine::new().unwrap();
        for (script, at) in [
            ("let a = [1, 2]; a.map(|i| a[i - 1])", Some((1, 19))),
            ("fn f() {\nlet t = table([[\"x\", [1]]]);\nt.columns.map(|n| t[n])\n}\nf()", Some((3, 11))),
            ("let a = [1, 2]; let b = a; a.map(|i| b[i - 1])", None),
            ("let a = [1, 2]; [0].map(|i| a[i])", None),
        ] {
            let warned: Vec<_> = engine.check(script, None).iter().map(|r| r.position).collect();
            assert_eq!(warned, at.iter().map(|at| Some(*at)).collect::<Vec<_>>(), "{script}");
            match (engine.eval(script), at) {
                (Err(report), Some(at)) => assert_eq!(report.position, Some(at), "{script}"),
                (Ok(_), None) => {}
                (ran, _) => panic!("{script}: {:?}", ran.map(|_| ())),
            }
        }
    }
}
