//! Checks of a script before it runs: options that a call gives in a literal map, as errors.

use std::collections::BTreeMap;

use rhai::{ASTNode, Dynamic, Expr, FnCallExpr, Position, Stmt, Token};

use super::checked::CheckedScript;
use super::declaration::missing;
use super::declared::{OptionDoc, resolve, unknown_key};
use super::finding::Finding;
use super::lint::{namespace_of, tokens, values};
use super::registry::{self, CallForm, RegisteredFunction};
use super::rules::{GivenOption, at_odds};

/// Errors about options in a literal map that a function does not declare, or of another kind than it declares: what
/// the call itself would say.
pub(super) fn wrong_options(script: CheckedScript) -> Vec<Finding> {
    let CheckedScript { engine, ast, source, lost, modules: own_modules } = script;
    let entries = registry::entries(engine, false);
    let own: BTreeMap<&str, String> =
        ast.iter_functions().map(|f| (f.name, registry::doc(f.comments.iter().copied()))).collect();
    let values = values(engine, source);
    let tokens = tokens(engine, source);
    let mut found = Vec::new();
    ast.walk(&mut |path: &[ASTNode]| {
        let (call, method, place) = match path.last() {
            Some(ASTNode::Expr(Expr::FnCall(call, place)) | ASTNode::Stmt(Stmt::FnCall(call, place))) => {
                (call, false, *place)
            }
            Some(ASTNode::Expr(Expr::MethodCall(call, place))) => (call, true, *place),
            _ => return true,
        };
        let Some(argument) = call.args.last() else { return true };
        let (given, whole) = (literal_map(argument), is_map(argument));
        let namespace = namespace_of(call);
        if given.is_empty() && !whole {
            if !own.contains_key(call.name.as_str()) || !namespace.is_empty() {
                let options = options_left_out(&entries, call, method);
                let odd = at_odds(&options, |_| GivenOption::No);
                found.extend(odd.map(|(_, error)| Finding { position: place, error }));
            }
            return true;
        }
        let name = call.name.as_str();
        // What is called as a method may be a function that a map holds under that name.
        if method && values.contains(name) || namespace.is_empty() && lost.contains(name) {
            return true;
        }
        let (options, one_form) = match own.get(name).filter(|_| namespace.is_empty()) {
            Some(doc) => (resolve(doc, &|path| registry::docs_in(&entries, path)), true),
            None => match own_modules.forms(&path_of(call)) {
                [] => options_of(&entries, call, method),
                forms => {
                    let docs = forms.iter().map(|form| form.doc.as_str()).collect::<Vec<_>>().join("\n");
                    (resolve(&docs, &|path| registry::docs_in(&entries, path)), forms.len() == 1)
                }
            },
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
        let mut odd = at_odds(&options, known).filter(|_| one_form);
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
            let error = error.or_else(|| odd.take_if(|(odd, _)| *odd == key).map(|(_, error)| error));
            let position = || key_of(&tokens, position, &key).unwrap_or(position);
            found.extend(error.map(|error| Finding { position: position(), error }));
        }
        if found.len() == said {
            let needed = odd.map(|(_, error)| error).or(needed);
            found.extend(needed.map(|error| Finding { position: argument.position(), error }));
        }
        true
    });
    found
}

/// The options that a call of a function of this program may give, none where its map may be no options; and whether
/// all are of one function.
fn options_of(entries: &[RegisteredFunction], call: &FnCallExpr, method: bool) -> (Vec<OptionDoc>, bool) {
    let (name, full) = (call.name.as_str(), path_of(call));
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

/// The options of the function whose form without them is called; none where several functions may be meant.
fn options_left_out(entries: &[RegisteredFunction], call: &FnCallExpr, method: bool) -> Vec<OptionDoc> {
    let full = path_of(call);
    let arguments = call.args.len() + usize::from(method);
    let mut same = entries.iter().filter(|e| e.name == call.name.as_str() && e.path() == full);
    let other = |e: &RegisteredFunction| e.parameters.len() == arguments && !e.doc.is_empty();
    let long = |e: &RegisteredFunction| e.parameters.len() == arguments + 1 && e.takes_options();
    if same.clone().any(other) || !same.any(long) {
        return Vec::new();
    }
    registry::options(entries, &full)
}

/// The name of a call with its modules.
fn path_of(call: &FnCallExpr) -> String {
    namespace_of(call).into_iter().chain([call.name.to_string()]).collect::<Vec<_>>().join("::")
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

#[cfg(test)]
mod tests {
    use super::super::Engine;
    use super::super::declaration::Declared;
    use super::super::declared::items;
    use super::super::kinds::{OptionKind, all as all_kinds, may_be, words};
    use super::super::registry::{RegisteredFunction, entries, options};
    use super::super::rules::named;
    use rhai::FLOAT;

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

    /// `check` and `run` say the same of each call after `begin`: its one mistake, or nothing.
    fn both_say(begin: &str, cases: &[(&str, &str)]) {
        let mut engine = Engine::new().unwrap();
        for (call, wrong) in cases {
            let script = format!("{begin}{call}");
            assert_eq!(said(&mut engine, &script), *wrong, "{call}");
            let run = engine.eval(script.as_str());
            assert_eq!(run.err().map(|e| e.message).unwrap_or_default(), *wrong, "{call}");
        }
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
            // What an option is not to be given with may be left out where another function declares it.
            for option in &declared {
                let here = items(&entry.doc).iter().any(|item| item.key == option.key);
                let own = here && option.rules == option.meaning || option.rules.contains("only with `");
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
        let begin = "let m = model(lattice::chain(1)); m.nearest(-1.0); let how = #{ side: 1 };\n";
        let cases = [
            ("transport::lead(m, #{})", "option `side` is needed"),
            ("transport::lead(m, #{ origin: [0] })", "option `side` is needed"),
            ("transport::lead(m, #{ side: () })", "option `side` is needed"),
            ("transport::lead(m, #{ side: 1 })", ""),
            ("transport::lead(m, how)", ""),
            ("transport::lead(m, how + #{ origin: [0] })", ""),
            ("bands(m, #{})", "option `path` is needed"),
        ];
        both_say(begin, &cases);
    }

    #[test]
    fn options_that_others_need_are_missed() {
        let begin = "let m = model(lattice::chain(2)); m.nearest(-1.0); let how = #{ V: 1.0 };\n";
        let (on_sites, potential) =
            ("option `V` is needed without `W`", "option `potential` is needed with `method: \"kpm\"`");
        let cases = [
            ("meanfield::superconductor(m)", on_sites),
            ("meanfield::superconductor(m, #{})", on_sites),
            ("meanfield::superconductor(m, #{ filling: 1.0 })", on_sites),
            ("meanfield::superconductor(m, how)", ""),
            ("meanfield::superconductor(m, how + #{ filling: 1.0 })", ""),
            ("meanfield::superconductor(m, #{ W: 1.0, seed: 1, steps: 1 })", ""),
            ("meanfield::hubbard(m, #{ U: 1.0, method: \"kpm\" })", potential),
            (
                "meanfield::hubbard(m, #{ U: 1.0, kpoints: 2, method: \"kpm\", potential: 0.5 })",
                "the options `kpoints` and `method: \"kpm\"` exclude each other",
            ),
            (
                "kpm::occupations(m.build(), #{ broadening: 0.1, temperature: 0.1 })",
                "the option `broadening` has no effect without `temperature: 0.0`",
            ),
            ("kpm::occupations(m.build(), #{ broadening: 0.1, temperature: 0 })", ""),
        ];
        both_say(begin, &cases);
    }

    #[test]
    fn maps_that_are_added_are_looked_into() {
        let begin = "let h = tight_binding(lattice::chain(4)); let how = #{ seed: 1 };\n";
        let cases = [
            ("kpm::dos(h, how + #{ momnts: 8 })", "unknown option `momnts`"),
            ("kpm::dos(h, #{ momnts: 8 } + how)", "unknown option `momnts`"),
            ("kpm::dos(h, how + #{ moments: 8 } + #{ vektors: 1 })", "unknown option `vektors`"),
            ("kpm::dos(h, how + #{ moments: 8, vectors: 2 })", ""),
            ("kpm::dos(h, #{ moments: \"many\" } + #{ moments: 8 })", ""),
        ];
        both_say(begin, &cases);
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
