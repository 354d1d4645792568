//! The value of `catch (e)`. A language error, such as an unknown name, reaches a script as Rhai's map of internal
//! messages. Here it becomes an error like those of functions, with the message and the hint that the program shows.

use rhai::{Dynamic, Engine, EvalAltResult, Expr, FlowControl, Map, Position, Scope, Stmt};

use super::{diagnostics, hidden};
use crate::error::Error;

/// What the caught value is read with: nothing that a script can write.
const CAUGHT: &str = "\u{1}caught";

/// Registers how caught values are read.
pub(super) fn register(engine: &mut Engine) {
    hidden::register(engine, CAUGHT, |ctx, inputs, _| {
        let value = ctx.eval_expression_tree(&inputs[0])?;
        let text = value.read_lock::<Map>().and_then(|map| of_the_language(&map));
        Ok(text.map_or(value, |text| Dynamic::from(error(ctx.engine(), ctx.scope(), &text))))
    });
}

/// Begins the block of a `catch (e)` with `e` read.
pub(super) fn rewrite(flow: &mut FlowControl) {
    let Expr::Variable(_, _, position) = &flow.expr else { return };
    let position = *position;
    let read = hidden::expression(CAUGHT, [flow.expr.clone()], Dynamic::UNIT, position);
    let pair = rhai::BinaryExpr { lhs: flow.expr.clone(), rhs: read };
    let assigned = (rhai::OpAssignment::new_assignment(position), pair);
    flow.branch.statements_mut().insert(0, Stmt::Assignment(Box::new(assigned)));
}

/// The message of such a map, less where it was and through which calls it came.
fn of_the_language(map: &Map) -> Option<String> {
    let text = |key: &str| map.get(key).and_then(|value| value.clone().into_string().ok());
    // A script may throw a map of its own: Rhai's names one of its errors, and says where it was.
    let of_rhai = |kind: &String| kind.starts_with("Error") && kind.chars().all(char::is_alphanumeric);
    text("error").filter(of_rhai).filter(|_| map.contains_key("line"))?;
    let text = text("message")?;
    let first = text.lines().next()?;
    // Behind it stand the file, `@ 'a.rhai'`, and the place.
    let first = first.rfind(" (line ").map_or(first, |at| &first[..at]);
    let end = first.rfind(" @ '").filter(|_| first.ends_with('\'')).unwrap_or(first.len());
    Some(first[..end].to_string())
}

/// The error that this message of the language stands for.
fn error(engine: &Engine, scope: &Scope, text: &str) -> Error {
    let none = Position::NONE;
    let behind = |start: &str| text.strip_prefix(start).map(str::to_string);
    let failure = if let Some(call) = behind("Function not found: ") {
        EvalAltResult::ErrorFunctionNotFound(call, none)
    } else if let Some(name) = behind("Variable not found: ") {
        EvalAltResult::ErrorVariableNotFound(name, none)
    } else if let Some(name) = behind("Property not found: ") {
        EvalAltResult::ErrorPropertyNotFound(name, none)
    } else if let Some(name) = behind("Module not found: ") {
        EvalAltResult::ErrorModuleNotFound(name, none)
    } else if let Some((index, count)) = behind("Array index ").and_then(|rest| array_bounds(&rest)) {
        EvalAltResult::ErrorArrayBounds(count, index, none)
    } else if text.starts_with("Data race detected") {
        EvalAltResult::ErrorDataRace(String::new(), none)
    } else {
        // Of properties, and all others, the text itself is the sentence.
        EvalAltResult::ErrorDotExpr(text.to_string(), none)
    };
    diagnostics::error_of(engine, scope, &failure)
}

/// The index, and how many elements there are.
fn array_bounds(rest: &str) -> Option<(i64, usize)> {
    let (index, rest) = rest.split_once(" out of bounds: ")?;
    let count = match rest.strip_prefix("only ") {
        Some(only) => only.split_once(" element")?.0.parse().ok()?,
        None => 0,
    };
    Some((index.parse().ok()?, count))
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    #[test]
    fn mistakes_are_caught_as_they_are_shown() {
        for mistake in [
            "lattice::chain(3).volume",
            "1 + \"a\" * 2",
            "linspac(0, 1, 3)",
            "kpm::doss(1)",
            "[1, 2][7]",
            "[1][-2]",
            "[][0]",
            "1 / 0",
            "let m = #{ a: 1 }; m.b",
            "let f = |x| x.nothing; f.call(1)",
            "[1, 2].map(|a, b, c, d| a)",
            "linspace(0.0, 1.0, -1)",
            "throw #{ message: \"mine\", hint: \"so\" }",
        ] {
            let mut engine = Engine::new().unwrap();
            let shown = engine.eval(mistake).unwrap_err();
            let script = format!(
                "let m = \"\"; let h = \"\"; try {{ {mistake} }} catch (e) {{ m = e.message; h = e.hint; }} [m, h]"
            );
            let found = engine.eval(&script).unwrap_or_else(|e| panic!("{mistake}: {}", e.render(false)));
            let found: Vec<String> = found.into_typed_array().unwrap();
            assert_eq!(found, [shown.message.clone(), shown.hint.clone().unwrap_or_default()], "{mistake}");
        }
    }

    #[test]
    fn what_is_caught_can_be_thrown_again() {
        let mut engine = Engine::new().unwrap();
        let report = engine.eval("fn f() { try { 1.0.foo } catch (e) { throw e; } }\nf()").unwrap_err();
        assert_eq!(report.message, "float has no property `foo`");
        let own = "let code = 0; try { throw #{ error: \"Error of mine\", message: \"m\", code: 3 }; } catch (e) { \
             code = e.code; } code";
        assert_eq!(engine.eval(own).unwrap().as_int(), Ok(3));
        let kept = engine.eval(
            "let e = 7; try { throw 3; } catch (e) { e += 1; } try { throw [1]; } catch (x) { e += x[0]; } e",
        );
        assert_eq!(kept.unwrap().as_int(), Ok(8));
    }
}
