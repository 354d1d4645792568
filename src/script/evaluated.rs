//! What `eval` runs: a text, rewritten as the script around it is (see `direct.rs`). Its calls find the functions
//! of that script, whoever calls the function that evaluates it, and its `switch` finds numbers of both types.

use std::rc::Rc;

use rhai::{
    AST, Dynamic, Engine, EvalAltResult, EvalContext, Expr, Expression, FnCallExpr, ParseErrorType, Position,
    Stmt, StmtBlock,
};

use super::hidden;
use super::lex::{self, Token, TokenKind};

/// The name of the function in scripts.
const EVAL: &str = "eval";

/// What a call of it is evaluated under: nothing that a script can write.
const EVALUATED: &str = "\u{1}eval";

/// Rewrites the statements of a text as those of the script around it. The engine reads calls for it.
pub(super) type TextRewriter = Rc<dyn Fn(&mut [Stmt], &Engine)>;

/// Whether this is a call of `eval`.
pub(super) fn is_eval(call: &FnCallExpr) -> bool {
    call.name == EVAL && call.args.len() == 1 && call.namespace.is_empty()
}

/// Whether a text in quotes that a script gives to `eval` makes a variable of this name.
pub(super) fn makes(source: &str, name: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let kept = |t: &Token| !matches!(t.kind, TokenKind::Space | TokenKind::Comment);
        lex::tokens(text).into_iter().filter(kept).map(|t| text[t.range].to_string()).collect()
    };
    let declares = |text: &str| {
        words(text).windows(2).any(|two| matches!(two[0].as_str(), "let" | "const") && two[1] == name)
    };
    let quoted = |text: &str| declares(text.trim_matches(['"', '`']));
    words(source).windows(3).any(|three| three[0] == EVAL && three[1] == "(" && quoted(&three[2]))
}

/// The call as it is evaluated.
pub(super) fn rewrite(call: &mut FnCallExpr, rewriter: TextRewriter, position: Position) -> Expr {
    hidden::expression(EVALUATED, std::mem::take(&mut call.args), Dynamic::from(rewriter), position)
}

/// Registers how the texts of rewritten calls are evaluated.
pub(super) fn register(engine: &mut Engine) {
    hidden::register(engine, EVALUATED, |ctx, inputs, rewriter| {
        let position = inputs[0].position();
        let value = ctx.eval_expression_tree(&inputs[0])?;
        let text = value.into_immutable_string().map_err(|kind| {
            Box::new(EvalAltResult::ErrorMismatchDataType("string".into(), kind.into(), position))
        })?;
        let rewriter = rewriter.read_lock::<TextRewriter>().map(|rewriter| rewriter.clone());
        let (variables, imports) = (ctx.scope().len(), ctx.global_runtime_state().num_imports());
        ctx.global_runtime_state_mut().level += 1;
        let found = value_of(ctx, &text, rewriter.as_ref());
        let state = ctx.global_runtime_state();
        let changed = ctx.scope().len() != variables || state.num_imports() != imports;
        let state = ctx.global_runtime_state_mut();
        state.level -= 1;
        // Variables behind the call are looked for by their names from here on.
        state.always_search_scope |= changed;
        let source = state.source().unwrap_or_default().to_string();
        found.map_err(|mut e| match *e {
            // Calls that are too deep are told without them.
            EvalAltResult::Exit(..) | EvalAltResult::ErrorStackOverflow(_) => e,
            _ => {
                place(&mut e, position);
                EvalAltResult::ErrorInFunctionCall(EVAL.into(), source, e, position).into()
            }
        })
    });
}

/// Puts an error of a text at the call that evaluates it: places in the text are none of the script.
fn place(error: &mut EvalAltResult, position: Position) {
    match error {
        EvalAltResult::ErrorInFunctionCall(name, _, inner, at) => {
            *at = position;
            if name == EVAL {
                place(inner, position);
            }
        }
        _ => _ = error.set_position(position),
    }
}

/// The value of a text in this place. The variables that it makes stay.
fn value_of(
    ctx: &mut EvalContext,
    text: &str,
    rewriter: Option<&TextRewriter>,
) -> Result<Dynamic, Box<EvalAltResult>> {
    let ast: AST = ctx.engine().compile(text.trim())?;
    if ast.iter_functions().next().is_some() {
        return Err(ParseErrorType::WrongFnDefinition.into());
    }
    let mut body: Vec<Stmt> = ast.statements().to_vec();
    if body.is_empty() {
        return Ok(Dynamic::UNIT);
    }
    if let Some(rewriter) = rewriter {
        rewriter(&mut body, ctx.engine());
    }
    let (first, last) = (body[0].position(), body[body.len() - 1].position());
    let body = Expr::Stmt(Box::new(StmtBlock::new(body, first, last)));
    #[allow(deprecated)] // Not deprecated, it says, but volatile; the version of Rhai is pinned.
    let found = ctx.eval_expression_tree_raw(&Expression::from(&body), false);
    found.or_else(|e| match *e {
        EvalAltResult::Return(value, _) => Ok(value),
        _ => Err(e),
    })
}

#[cfg(test)]
mod tests {
    use crate::script::Engine;

    #[test]
    fn a_text_has_the_variables_of_its_place() {
        for (script, expected) in [
            ("let n = 3; eval(\"n = n + 1\"); n", 4),
            ("eval(\"let n = 3\"); n", 3),
            // One that it makes hides another.
            ("fn f(x) { let n = 5; eval(\"let n = 2 * x\"); n } f(3)", 6),
            ("fn f(x) { let n = 5; eval(\"{ let n = 2 * x; }\"); n } f(3)", 5),
            ("let n = 3; fn f(n) { eval(\"n + 1\") } f(6)", 7),
            ("const K = 4; eval(\"K + 1\")", 5),
            ("let n = 3; eval(\"eval(\\\"n\\\")\")", 3),
            ("let f = |x| eval(\"2 * x\"); f.call(4)", 8),
            // What leaves it is its value.
            ("let f = |x| { eval(\"if x > 2 { return 7; } 8\") }; f.call(1) + 10 * f.call(3)", 78),
            ("fn f() { eval(\"return 3\"); 4 } f()", 4),
            ("let s = 0; for i in 0..4 { eval(\"for j in 0..4 { if j == 2 { break; } s += 1; }\"); } s", 8),
            ("if eval(\"\") == () { 1 } else { 0 }", 1),
            ("if eval(\"// nothing\") == () { 1 } else { 0 }", 1),
        ] {
            let found = Engine::new().unwrap().eval(script);
            let found = found.unwrap_or_else(|e| panic!("{script}: {}", e.render(false)));
            assert_eq!(found.as_int().unwrap(), expected, "{script}");
        }
    }

    #[test]
    fn a_mistake_in_a_text_stands_at_the_call() {
        for (script, says, place) in [
            ("let y = 2;\nlet z = eval(`let a = 1;\n\nnone(a)`);", "no function `none(int)`", (2, 14)),
            ("let z = 1 +\neval(\"1 +\");", "incomplete", (2, 6)),
            ("let z = eval(3);", "a value of type string belongs here, not int", (1, 14)),
            ("eval(\"fn g() { 1 } g()\")", "global level", (1, 6)),
            ("eval(\"eval(\\\"1 + oh\\\")\")", "no variable `oh`", (1, 6)),
            // In a function of the script the place is known.
            ("fn bad(x) {\n  oh(x)\n}\neval(\"bad(1)\")", "no function `oh(int)`", (2, 3)),
            ("fn deep(n) { eval(\"deep(n)\") }\ndeep(1)", "too deeply", (2, 1)),
        ] {
            let report = Engine::new().unwrap().eval(script).unwrap_err();
            assert!(report.message.contains(says), "{script}: {}", report.render(false));
            assert_eq!(report.position, Some(place), "{script}: {}", report.render(false));
        }
    }

    #[test]
    fn a_closure_that_misses_what_a_text_makes_is_told_of() {
        for (script, told) in [
            ("let f = || { eval(\"let k = 3\"); k }; f.call()", true),
            ("let f = || k; eval(`const k = 3`); f.call()", true),
            ("let f = |x| { eval( /* a text */ \"let j = 1; let k = 3;\"); |y| y + k }; f.call(1)", true),
            ("let f = || { eval(\"let kk = 3\"); k }; f.call()", false),
            ("let text = \"let k = 3\"; let f = || k; f.call()", false),
        ] {
            let report = Engine::new().unwrap().eval(script).unwrap_err();
            assert_eq!(report.message, "no variable `k`", "{script}");
            let hint = report.hint.unwrap_or_default();
            assert_eq!(hint.contains("let k = eval(..)"), told, "{script}: {hint}");
        }
    }

    #[test]
    fn a_text_ends_a_script() {
        let found = Engine::new().unwrap().eval("try { eval(\"exit(3)\"); } catch { } 5");
        assert!(found.unwrap_or_else(|e| panic!("{}", e.render(false))).is_unit());
    }
}
