//! Checks of a script before it runs: calls of functions that do not exist or with misspelled options, as errors.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTNode, Dynamic, Engine, Expr, FnCallExpr, Position, Stmt, Token};

use super::allowed::{GivenOption, at_odds};
use super::declaration::missing;
use super::declared::{OptionDoc, resolve, unknown_key};
use super::registry::{self, CallForm, RegisteredFunction};
use crate::error::Error;

/// Something found at a place in a script.
pub(super) struct Finding {
    pub position: Position,
    pub error: Error,
}

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

/// Errors about calls of functions that do not exist, or not with so many arguments. Nothing is said of names that are
/// `lost`: they stand in what could not be read.
pub(super) fn unknown_functions(
    engine: &Engine,
    ast: &AST,
    source: &str,
    lost: &BTreeSet<String>,
) -> Vec<Finding> {
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
        if local || imported {
            return true;
        }
        let full = namespace.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::");
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
fn values(engine: &Engine, source: &str) -> BTreeSet<String> {
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

/// Errors about options in a literal map that a function does not declare, or of another kind than it declares: what
/// the call itself would say.
pub(super) fn wrong_options(
    engine: &Engine,
    ast: &AST,
    source: &str,
    lost: &BTreeSet<String>,
) -> Vec<Finding> {
    let entries = registry::entries(engine, false);
    let own: BTreeMap<&str, String> =
        ast.iter_functions().map(|f| (f.name, registry::doc(f.comments.iter().copied()))).collect();
    let values = values(engine, source);
    let tokens = tokens(engine, source);
    let mut found = Vec::new();
    ast.walk(&mut |path: &[ASTNode]| {
        let (call, method) = match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _))) => {
                (call, false)
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, _))) => (call, true),
            _ => return true,
        };
        let Some(argument) = call.args.last() else { return true };
        let (given, whole) = (literal_map(argument), is_map(argument));
        if given.is_empty() && !whole {
            return true;
        }
        let namespace = namespace_of(call);
        let name = call.name.as_str();
        // What is called as a method may be a function that a map holds under that name.
        if method && values.contains(name) || namespace.is_empty() && lost.contains(name) {
            return true;
        }
        let (options, one_form) = match own.get(name).filter(|_| namespace.is_empty()) {
            Some(doc) => (resolve(doc, &|path| registry::docs_in(&entries, path)), true),
            None => options_of(&entries, call, method),
        };
        if options.is_empty() {
            return true;
        }
        let said = found.len();
        let known = |key: &str| match given.iter().find(|(name, ..)| name == key) {
            // A map that is added may hold it.
            None if !whole => GivenOption::Unknown,
            None => GivenOption::No,
            Some((_, Some(value), _)) if value.is_unit() => GivenOption::No,
            Some((_, Some(value), _)) => GivenOption::Value(value.clone()),
            Some((_, None, _)) => GivenOption::Something,
        };
        let odd = at_odds(&options, known).filter(|_| one_form);
        let is_given = |option: &OptionDoc| {
            given
                .iter()
                .any(|(key, value, _)| *key == option.key && !value.as_ref().is_some_and(Dynamic::is_unit))
        };
        let needed = options
            .iter()
            .find(|option| option.required() && !is_given(option))
            .filter(|_| whole && one_form);
        let needed = needed.map(missing);
        for (key, value, position) in given {
            let error = match options.iter().find(|option| option.key == key) {
                None => Some(unknown_key(&key, options.iter().map(|option| option.key.as_str()))),
                Some(option) => value.filter(|value| !value.is_unit()).and_then(|value| {
                    let of_type = registry::type_name(engine, value.type_name());
                    option.accept(value, &of_type).err()
                }),
            };
            let error = error.or_else(|| {
                let (odd, error) = odd.as_ref()?;
                (*odd == key).then(|| error.clone())
            });
            let position = || key_of(&tokens, position, &key).unwrap_or(position);
            found.extend(error.map(|error| Finding { position: position(), error }));
        }
        if found.len() == said {
            found.extend(needed.map(|error| Finding { position: argument.position(), error }));
        }
        true
    });
    found
}

/// The options that a call of a function of this program may give, none where its map may be no options; and whether
/// all are of one function.
fn options_of(entries: &[RegisteredFunction], call: &FnCallExpr, method: bool) -> (Vec<OptionDoc>, bool) {
    let (namespace, name) = (namespace_of(call), call.name.as_str());
    let full = namespace.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::");
    let arguments = call.args.len() + usize::from(method);
    let (ways, others): (Vec<&RegisteredFunction>, Vec<&RegisteredFunction>) = entries
        .iter()
        .filter(|e| e.path() == full || method && e.name == name && e.form == CallForm::Method)
        .filter(|e| e.parameters.len() == arguments)
        .partition(|e| e.takes_options());
    // A form that takes another map there may be meant; one that takes a number there is not.
    if others.iter().any(|e| e.parameters.last().is_some_and(|p| p.kind == "map")) {
        return (Vec::new(), true);
    }
    let mut paths: Vec<String> = ways.iter().map(|e| e.path()).collect();
    paths.dedup();
    (paths.iter().flat_map(|path| registry::options(entries, path)).collect(), paths.len() == 1)
}

/// Where a key of a map stands that begins at a place: the parser forgets it of a map of constants.
fn key_of(tokens: &[(Token, Position)], begin: Position, key: &str) -> Option<Position> {
    let start = tokens.iter().position(|(token, at)| *at == begin && *token == Token::MapStart)?;
    let mut depth = 0;
    for (k, (token, at)) in tokens.iter().enumerate().skip(start) {
        match token {
            Token::MapStart | Token::LeftBrace | Token::LeftParen | Token::LeftBracket => depth += 1,
            Token::RightBrace | Token::RightParen | Token::RightBracket => depth -= 1,
            Token::Identifier(name) if depth == 1 && name.as_str() == key => {
                if matches!(tokens.get(k + 1), Some((Token::Colon, _))) {
                    return Some(*at);
                }
            }
            _ => {}
        }
        if depth == 0 {
            return None;
        }
    }
    None
}

/// Whether an argument is a literal map, with all that it will hold.
fn is_map(argument: &Expr) -> bool {
    match argument {
        Expr::Map(..) => true,
        Expr::DynamicConstant(value, _) => value.is_map(),
        _ => false,
    }
}

/// The entries of a literal map, or of the literal maps in a sum of maps: key, value where it is a literal too,
/// and place.
fn literal_map(argument: &Expr) -> Vec<(String, Option<Dynamic>, Position)> {
    match argument {
        Expr::Map(map, _) => {
            let entry = |(key, value): &(rhai::Ident, Expr)| {
                (key.name.to_string(), value.get_literal_value(None), key.pos)
            };
            map.0.iter().map(entry).collect()
        }
        Expr::DynamicConstant(value, position) => match value.read_lock::<rhai::Map>() {
            Some(map) => {
                map.iter().map(|(key, value)| (key.to_string(), Some(value.clone()), *position)).collect()
            }
            None => Vec::new(),
        },
        Expr::FnCall(sum, _) if sum.name == "+" => {
            let [left, right] = &sum.args[..] else { return Vec::new() };
            let right = literal_map(right);
            // The value of a key is that of the map on the right.
            let hidden = |key: &str| right.iter().any(|(later, ..)| later == key);
            let left: Vec<_> = literal_map(left).into_iter().filter(|(key, ..)| !hidden(key)).collect();
            left.into_iter().chain(right).collect()
        }
        _ => Vec::new(),
    }
}

pub(super) fn with_hint(error: Error, hint: Option<String>) -> Error {
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
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
    use super::super::allowed::named;
    use super::super::declaration::Declared;
    use rhai::FLOAT;

    use super::super::kinds::{OptionKind, all as all_kinds, may_be, words};
    use super::super::registry::{RegisteredFunction, entries, options};

    /// Values of three types, one of which an option does not take.
    const VALUES: [(&str, &str); 3] = [("true", "bool"), ("\"x\"", "string"), ("[]", "array")];

    fn call(entry: &RegisteredFunction, key: &str, value: &str) -> String {
        let others = "(), ".repeat(entry.parameters.len() - 1);
        format!("{}({others}#{{ {key}: {value} }})", entry.path())
    }

    #[test]
    fn a_map_that_is_added_may_hold_what_an_option_needs() {
        let mut engine = Engine::new().unwrap();
        let said = said_of_each(
            &mut engine,
            &[
                "let h = tight_binding(lattice::chain(4)); let o = #{ kernel: \"lorentz\" }".into(),
                "kpm::dos(h, o + #{ parameter: 2.0 })".into(),
                "kpm::dos(h, #{ parameter: 2.0 } + o)".into(),
                "kpm::dos(h, #{ parameter: 2.0, kernel: \"jackson\" })".into(),
                "kpm::dos(h, o + #{ parametre: 2.0 })".into(),
            ],
        );
        assert!(said[..3].iter().all(String::is_empty), "{said:?}");
        assert!(said[3].contains("no effect without") && said[4].contains("unknown option"), "{said:?}");
    }

    /// What `check` says of each line of a script, of which each has one mistake.
    fn said_of_each(engine: &mut Engine, lines: &[String]) -> Vec<String> {
        let script: String = lines.iter().map(|line| format!("{line};\n")).collect();
        let found = engine.check(&script, None);
        let of = |k: usize| {
            let here = found
                .iter()
                .filter(|r| r.position.is_some_and(|(line, _)| line == k + 1))
                .map(|r| r.message.as_str());
            here.collect::<Vec<_>>().join("; ")
        };
        (0..lines.len()).map(of).collect()
    }

    /// What `check` says of a script with one mistake.
    fn said(engine: &mut Engine, script: &str) -> String {
        let found = engine.check(script, None);
        let all: Vec<&str> = found.iter().map(|r| r.message.as_str()).collect();
        all.join("; ")
    }

    /// Values of the right type that the kinds do not allow: a number beyond each bound, an odd one where it is even,
    /// an array that is too short.
    fn beyond(kinds: &str) -> Vec<String> {
        let number = |kind: &str, x: FLOAT| if kind == "int" { format!("{x}") } else { format!("{x:.1}") };
        let mut values = Vec::new();
        for kind in all_kinds(kinds) {
            match kind {
                OptionKind::Type { name, even, least, most } => {
                    // Two beyond, where one beyond would be odd.
                    let step = if even { 2.0 } else { 1.0 };
                    values.extend(least.map(|b| number(name, b.at - step)));
                    values.extend(most.map(|b| number(name, b.at + step)));
                    values.extend(even.then(|| number(name, least.map_or(0.0, |b| b.at) + 1.0)));
                }
                OptionKind::List { .. } => values.push("[1]".to_string()),
                OptionKind::Whole(_) => values.push("99".to_string()),
                OptionKind::Word(_) => {}
            }
        }
        values
    }

    #[test]
    fn check_and_run_say_the_same_of_every_option() {
        let mut engine = Engine::new().unwrap();
        let all = entries(engine.rhai(), false);
        let (mut seen, mut wrong) = (0, Vec::new());
        // Nothing can be said where another form takes a map that holds no options, such as a sector.
        let same = |e: &RegisteredFunction, o: &RegisteredFunction| {
            o.path() == e.path() && o.parameters.len() == e.parameters.len()
        };
        let map = |o: &RegisteredFunction| {
            !o.takes_options() && o.parameters.last().is_some_and(|p| p.kind == "map")
        };
        let clear = |e: &RegisteredFunction| !all.iter().any(|o| same(e, o) && map(o));
        for entry in all.iter().filter(|e| e.takes_options() && !e.doc.is_empty() && clear(e)) {
            let path = entry.path();
            let declared = options(&all, &path);
            if declared.is_empty() {
                wrong.push(format!("`{path}` takes options and declares none"));
            }
            let run = Declared::new(entry.doc.clone());
            let run_says = |engine: &Engine, key: &str, value: rhai::Dynamic| {
                let given = [(key.into(), value)].into_iter().collect();
                run.check(engine.rhai(), given).map_or_else(|e| e.message().to_string(), |_| "nothing".into())
            };
            // What an option is not to be given with may be left out where it is "as for" another function's.
            for option in &declared {
                let own = option.rules == option.meaning || option.rules.contains("only with `");
                let unknown =
                    named(&option.rules).filter(|_| own).find(|key| declared.iter().all(|o| o.key != *key));
                wrong.extend(
                    unknown.map(|key| format!("`{path}` has no `{key}`, which `{}` names", option.key)),
                );
            }
            let kindless = declared.iter().filter(|option| option.kind.is_empty());
            wrong.extend(
                kindless.map(|option| format!("the option `{}` of `{path}` has no kind", option.key)),
            );
            let mut misspelt: Vec<String> =
                declared.iter().map(|option| format!("{}x", option.key)).collect();
            misspelt.retain(|other| !declared.iter().any(|o| o.key == *other));
            let scripts: Vec<String> = misspelt.iter().map(|other| call(entry, other, "true")).collect();
            let checked = said_of_each(&mut engine, &scripts);
            for ((other, script), check) in misspelt.iter().zip(&scripts).zip(checked) {
                let run = run_says(&engine, other, true.into());
                if check != run || check != format!("unknown option `{other}`") {
                    wrong.push(format!("`{script}`: check says `{check}`, run `{run}`"));
                }
                seen += 1;
            }
            let mut mistyped = Vec::new();
            for option in run.options(engine.rhai()).to_vec() {
                let Some((value, _)) = VALUES.iter().find(|(_, kind)| !may_be(&option.kind, kind)) else {
                    continue;
                };
                // Another form of the function may take the value.
                if declared.iter().any(|other| other.key == option.key && other.kind != option.kind) {
                    continue;
                }
                mistyped.push((call(entry, &option.key, value), option.key.clone(), (*value).to_string()));
                if !words(&option.kind).is_empty() && !may_be(&option.kind, "any") {
                    mistyped.push((
                        call(entry, &option.key, "\"no word\""),
                        option.key.clone(),
                        "\"no word\"".to_string(),
                    ));
                }
                for value in beyond(&option.kind) {
                    mistyped.push((call(entry, &option.key, &value), option.key.clone(), value));
                }
            }
            let scripts: Vec<String> = mistyped.iter().map(|(script, ..)| script.clone()).collect();
            let checked = said_of_each(&mut engine, &scripts);
            for ((script, key, value), check) in mistyped.iter().zip(checked) {
                let value = engine.eval(value.as_str()).unwrap_or_else(|e| panic!("{}", e.message));
                let run = run_says(&engine, key, value);
                let means = ["takes", "is"].map(|verb| format!("option `{key}` {verb} "));
                let means = [means.as_slice(), &[format!("no {key} `no word`")]].concat();
                if check != run || !means.iter().any(|text| check.starts_with(text)) {
                    wrong.push(format!("`{script}`: check says `{check}`, run `{run}`"));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(seen > 200, "{seen} options");
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

    #[test]
    fn a_function_in_a_map_has_options_of_its_own() {
        let mut engine = Engine::new().unwrap();
        let script = "let m = #{ bands: |o| o.foo }; m.bands(#{ foo: 3 })";
        assert_eq!(said(&mut engine, script), "");
        assert_eq!(engine.eval(script).unwrap_or_else(|e| panic!("{}", e.message)).as_int(), Ok(3));
        // A variable of that name holds nothing that is called.
        let script = "let bands = bands(model(lattice::chain(4)), #{ pth: [] });";
        assert_eq!(said(&mut engine, script), "unknown option `pth`");
    }

    #[test]
    fn options_that_are_needed_are_missed() {
        let mut engine = Engine::new().unwrap();
        let begin = "let m = model(lattice::chain(1)); m.nearest(-1.0); let how = #{ side: 1 };\n";
        for (call, wrong) in [
            ("transport::lead(m, #{})", "option `side` is needed"),
            ("transport::lead(m, #{ origin: [0] })", "option `side` is needed"),
            ("transport::lead(m, #{ side: () })", "option `side` is needed"),
            ("transport::lead(m, #{ side: 1 })", ""),
            ("transport::lead(m, how)", ""),
            ("transport::lead(m, how + #{ origin: [0] })", ""),
            ("bands(m, #{})", "option `path` is needed"),
        ] {
            assert_eq!(said(&mut engine, &format!("{begin}{call}")), wrong, "{call}");
            let run = engine.eval(&format!("{begin}{call}"));
            assert_eq!(run.err().map(|e| e.message).unwrap_or_default(), wrong, "{call}");
        }
    }

    #[test]
    fn maps_that_are_added_are_looked_into() {
        let mut engine = Engine::new().unwrap();
        let begin = "let h = tight_binding(lattice::chain(4)); let how = #{ seed: 1 };\n";
        for (call, wrong) in [
            ("kpm::dos(h, how + #{ momnts: 8 })", "unknown option `momnts`"),
            ("kpm::dos(h, #{ momnts: 8 } + how)", "unknown option `momnts`"),
            ("kpm::dos(h, how + #{ moments: 8 } + #{ vektors: 1 })", "unknown option `vektors`"),
            ("kpm::dos(h, how + #{ moments: 8, vectors: 2 })", ""),
            ("kpm::dos(h, #{ moments: \"many\" } + #{ moments: 8 })", ""),
        ] {
            assert_eq!(said(&mut engine, &format!("{begin}{call}")), wrong, "{call}");
            let run = engine.eval(&format!("{begin}{call}"));
            assert_eq!(run.err().map(|e| e.message).unwrap_or_default(), wrong, "{call}");
        }
    }

    #[test]
    fn a_misspelled_option_of_a_script_is_refused_where_it_is_read() {
        let mut engine = Engine::new().unwrap();
        let own = "/// Twice.\n///\n/// # Options\n/// - `factor` (2.0): of it\nfn twice(x, opts) {\n  let o = \
             options(opts);\n  o.factor * x\n}\n";
        let right = engine.eval(&format!("{own}twice(2.0, #{{ factor: 3 }})"));
        assert_eq!(right.unwrap_or_else(|e| panic!("{}", e.message)).as_float(), Ok(6.0));
        let script = format!("{own}twice(2.0, #{{ facto: 3 }})");
        let message = said(&mut engine, &script);
        let Err(report) = engine.eval(&script) else { panic!("a wrong key was taken") };
        assert_eq!(
            (report.message.as_str(), report.hint.as_deref()),
            (message.as_str(), Some("did you mean `factor`?"))
        );
    }
}
