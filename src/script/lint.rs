//! Checks of a script before it runs: calls of functions that do not exist, as errors.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTNode, Engine, Expr, FnCallExpr, Position, Stmt, Token};

use super::checked::CheckedScript;
use super::finding::{Finding, with_hint};
use super::registry;
use crate::error::Error;

/// The tokens of a script; those inside `${...}` of texts included.
pub(super) fn tokens(engine: &Engine, source: &str) -> Vec<(Token, Position)> {
    let texts = [source];
    let (stream, control) = engine.lex(&texts);
    let mut found = Vec::new();
    // Braces open since each text that is interrupted by `${`.
    let mut depth: Vec<usize> = Vec::new();
    for (token, position) in stream {
        match &token {
            Token::InterpolatedString(..) => depth.push(0),
            Token::LeftBrace | Token::MapStart => {
                if let Some(open) = depth.last_mut() {
                    *open += 1;
                }
            }
            Token::RightBrace => {
                if let Some(open) = depth.last_mut() {
                    *open -= 1;
                    if *open == 0 {
                        // The text goes on, and a further `${` in it counts anew.
                        depth.pop();
                        control.borrow_mut().is_within_text = true;
                    }
                }
            }
            Token::EOF => break,
            _ => {}
        }
        found.push((token, position));
    }
    found
}

/// Functions of the language itself, which no registry lists.
pub(super) const BUILT_IN: [&str; 12] = [
    "print",
    "debug",
    "type_of",
    "eval",
    "call",
    "curry",
    "Fn",
    "is_def_var",
    "is_def_fn",
    "is_shared",
    "import",
    "export",
];

/// Errors about calls of functions that do not exist, or not with so many arguments.
pub(super) fn unknown_functions(script: CheckedScript) -> Vec<Finding> {
    let CheckedScript { engine, ast, source, lost, modules: own_modules } = script;
    let known = numbers_of_parameters(engine);
    // The script's own functions, with the parameters of each form.
    let mut own: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for f in ast.iter_functions() {
        let parameters = f.params.iter().map(|p| p.to_string()).collect();
        own.entry(f.name.to_string()).or_default().push(parameters);
    }
    let modules: BTreeSet<String> = registry::modules(engine).into_iter().collect();
    let values = values(engine, source);
    let mut found = Vec::new();
    ast.walk(&mut |path: &[ASTNode]| {
        let (call, position, method) = match path.last() {
            Some(
                ASTNode::Expr(Expr::FnCall(call, position)) | ASTNode::Stmt(Stmt::FnCall(call, position)),
            ) => (call, *position, false),
            Some(ASTNode::Expr(Expr::MethodCall(call, position))) => (call, *position, true),
            _ => return true,
        };
        let name = call.name.as_str();
        let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !plain || call.op_token.is_some() || BUILT_IN.contains(&name) {
            return true;
        }
        let namespace = namespace_of(call);
        // A method may be a function that a map holds under its name.
        let value = namespace.is_empty() && values.contains(name);
        let local = value && method || namespace.is_empty() && lost.contains(name);
        let imported = namespace.first().is_some_and(|first| !modules.contains(first));
        let full = namespace.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::");
        if imported {
            let wrong = own_modules.wrong(&full, call.args.len());
            found.extend(wrong.map(|error| Finding { position, error }));
        }
        if local || imported {
            return true;
        }
        let arguments = call.args.len() + usize::from(method);
        if let Some(forms) = own.get(name).filter(|_| namespace.is_empty()) {
            // Of a method, the value that it is called on is `this` and no parameter.
            let given = call.args.len();
            let native = known.get(name).is_some_and(|counts| counts.contains(&arguments));
            if !native && !forms.iter().any(|parameters| parameters.len() == given) {
                let there: Vec<String> =
                    forms.iter().map(|p| format!("`{name}({})`", p.join(", "))).collect();
                let hint = Some(format!("the script defines {}", there.join(" and ")));
                found.push(Finding { position, error: with_hint(takes_another_number(name, given), hint) });
            }
            return true;
        }
        match known.get(&full) {
            Some(counts) if counts.contains(&arguments) => {}
            Some(_) => {
                let error = takes_another_number(&full, call.args.len());
                let hint = registry::did_you_mean(engine, &full);
                found.push(Finding { position, error: with_hint(error, hint) });
            }
            None => {
                let error = Error::input(format!("no function `{full}`"));
                let own: Vec<&str> = own.keys().map(String::as_str).collect();
                let hint = match crate::error::nearest(name, own).filter(|_| namespace.is_empty()) {
                    _ if value => Some(called_value(name)),
                    Some(near) => Some(format!("did you mean `{near}`?")),
                    None => registry::did_you_mean(engine, &full),
                };
                found.push(Finding { position, error: with_hint(error, hint) });
            }
        }
        true
    });
    found
}

/// How many parameters the forms of each function have, by its path; those that are called without their module also by
/// name.
fn numbers_of_parameters(engine: &Engine) -> BTreeMap<String, BTreeSet<usize>> {
    let mut known: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let all = engine.collect_fn_metadata(
        None,
        |info| {
            let everywhere = registry::room_of(&info).is_empty();
            let (module, name) = (info.namespace.to_string(), info.metadata.name.to_string());
            Some((module, name, info.metadata.num_params, everywhere))
        },
        true,
    );
    for (module, name, parameters, everywhere) in all {
        if everywhere {
            known.entry(name.clone()).or_default().insert(parameters);
        }
        let path = if module.is_empty() { name } else { format!("{module}::{name}") };
        known.entry(path).or_default().insert(parameters);
    }
    known
}

fn takes_another_number(name: &str, given: usize) -> Error {
    let plural = if given == 1 { "" } else { "s" };
    Error::input(format!("no function `{name}` takes {given} argument{plural}"))
}

/// The hint for a call of a function that a variable holds.
pub(super) fn called_value(name: &str) -> String {
    format!("`{name}` is a value: `{name}.call(..)` calls it")
}

/// The names that also stand without a call and may hold a function: variables, parameters, properties.
pub(super) fn values(engine: &Engine, source: &str) -> BTreeSet<String> {
    let tokens = tokens(engine, source);
    let mut values = BTreeSet::new();
    for (k, (token, _)) in tokens.iter().enumerate() {
        let call = matches!(tokens.get(k + 1), Some((Token::LeftParen | Token::Unit, _)));
        if let (Token::Identifier(name), false) = (token, call) {
            values.insert(name.to_string());
        }
    }
    values
}

/// The modules before a call's name.
pub(super) fn namespace_of(call: &FnCallExpr) -> Vec<String> {
    call.namespace.path.iter().map(|ident| ident.name.to_string()).collect()
}

/// The functions that a script calls, with their modules.
pub(super) fn called(ast: &AST) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    ast.walk(&mut |path: &[ASTNode]| {
        if let Some(
            ASTNode::Expr(Expr::FnCall(call, _) | Expr::MethodCall(call, _))
            | ASTNode::Stmt(Stmt::FnCall(call, _)),
        ) = path.last()
        {
            let namespace = namespace_of(call);
            found.insert(namespace.into_iter().chain([call.name.to_string()]).collect::<Vec<_>>().join("::"));
        }
        true
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    /// What `check` says of a script with one mistake.
    fn said(engine: &mut Engine, script: &str) -> String {
        let found = engine.check(script, None);
        let all: Vec<&str> = found.iter().map(|r| r.message.as_str()).collect();
        all.join("; ")
    }

    #[test]
    fn own_functions_take_the_arguments_they_say() {
        let mut engine = Engine::new().unwrap();
        let twice = "fn twice(x) { 2 * x }\nfn plus(a, b) { a + b }\nfn plus(a) { this + a }\n";
        for wrong in ["twice(1, 2);", "twice();", "plus(1, 2, 3);", "let y = 2; y.twice();"] {
            let said = said(&mut engine, &format!("{twice}{wrong}"));
            assert!(said.starts_with("no function `") && said.contains(" argument"), "{wrong}: {said}");
            let run = engine.eval(&format!("{twice}{wrong}"));
            assert!(run.is_err(), "{wrong}");
        }
        for right in ["twice(1);", "plus(1, 2);", "1.plus(2);", "let f = Fn(\"twice\"); f.call(2);"] {
            assert_eq!(said(&mut engine, &format!("{twice}{right}")), "", "{right}");
        }
    }

    #[test]
    fn a_variable_is_called_by_its_method() {
        let mut engine = Engine::new().unwrap();
        for wrong in ["let f = |x| x + 1; f(3);", "fn g(f) { f(3) }"] {
            let found = engine.check(wrong, None);
            let first = found.first().unwrap_or_else(|| panic!("`{wrong}` is let through"));
            assert_eq!(first.message, "no function `f`", "{wrong}");
            assert_eq!(first.hint.as_deref(), Some("`f` is a value: `f.call(..)` calls it"), "{wrong}");
        }
        assert!(engine.eval("let f = |x| x + 1; f(3)").is_err());
        // A map may hold a function, and a variable the name of one.
        for right in [
            "let f = |x| x; f.call(3);",
            "let m = #{ f: |x| x }; m.f(3);",
            "let sqrt = sqrt(4.0); sqrt(sqrt);",
        ] {
            assert_eq!(said(&mut engine, right), "", "{right}");
        }
    }
}
