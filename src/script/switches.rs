//! `switch` looks for a case by the type and the number of a value: it tells 1 from 1.0, which are equal everywhere
//! else in the language. So its value becomes the other of the two where only that has a case.

use std::cell::RefCell;
use std::rc::Rc;

use rhai::{
    BinaryExpr, Dynamic, Engine, Expr, Expression, FLOAT, INT, Stmt, StmtBlock, SwitchCasesCollection,
};

use super::hidden;

/// What the value of a `switch` is evaluated under: nothing that a script can write.
const SWITCHED: &str = "\u{1}switched";

/// The same of the value that a question is about.
const ASKED: &str = "\u{1}asked";

thread_local! {
    /// That value.
    static VALUE: RefCell<Dynamic> = const { RefCell::new(Dynamic::UNIT) };
}

/// An expression that tells whether there is a case for a value: the `switch` itself, with `true` as all its results.
type Question = Rc<Expr>;

/// The same number as a float, or as a whole number; nothing of other values.
fn twin(value: &Dynamic) -> Option<Dynamic> {
    /// Whole numbers up to here are floats, and the reverse.
    const EXACT: FLOAT = 9_007_199_254_740_992.0;
    if let Ok(x) = value.as_float() {
        return (x.fract() == 0.0 && x.abs() <= EXACT).then(|| (x as INT).into());
    }
    let n = value.as_int().ok()?;
    ((n as FLOAT).abs() <= EXACT).then(|| (n as FLOAT).into())
}

/// Registers how the values of rewritten switches are evaluated.
pub(super) fn register(engine: &mut Engine) {
    hidden::register(engine, ASKED, |_, _, _| Ok(VALUE.with(|value| value.borrow().clone())));
    hidden::register(engine, SWITCHED, |ctx, inputs, question| {
        let value = ctx.eval_expression_tree(&inputs[0])?.flatten();
        let Some(other) = twin(&value) else { return Ok(value) };
        let Some(question) = question.read_lock::<Question>() else { return Ok(value) };
        let mut has_case = |value: &Dynamic| {
            VALUE.with_borrow_mut(|asked| *asked = value.clone());
            ctx.eval_expression_tree(&Expression::from(&**question)).map(|found| found.as_bool() == Ok(true))
        };
        Ok(if !has_case(&value)? && has_case(&other)? { other } else { value })
    });
}

/// Rewrites the value of a `switch` that has such cases; whether it does.
pub(super) fn rewrite(value: &mut Expr, cases: &SwitchCasesCollection) -> bool {
    if cases.cases.is_empty() && cases.ranges.is_empty() {
        return false;
    }
    let at = value.position();
    let mut all = cases.clone();
    for case in &mut all.expressions {
        *case = BinaryExpr { lhs: Expr::BoolConstant(true, at), rhs: Expr::BoolConstant(true, at) };
    }
    all.def_case = Some(all.expressions.len());
    all.expressions
        .push(BinaryExpr { lhs: Expr::BoolConstant(true, at), rhs: Expr::BoolConstant(false, at) });
    let asked = hidden::expression(ASKED, [], Dynamic::UNIT, at);
    let body = StmtBlock::new([Stmt::Switch(Box::new((asked, all)), at)], at, at);
    let question: Question = Rc::new(Expr::Stmt(Box::new(body)));
    let inner = std::mem::take(value);
    *value = hidden::expression(SWITCHED, [inner], Dynamic::from(question), at);
    true
}

#[cfg(test)]
mod tests {
    use super::super::Engine;

    #[test]
    fn a_case_is_found_by_the_number_whatever_its_type() {
        for (script, expected) in [
            ("let x = 1.0; switch x { 1 => 5, _ => 0 }", 5),
            ("let x = 1; switch x { 1.0 => 5, _ => 0 }", 5),
            ("let x = 1; switch x { 1 => 5, _ => 0 }", 5),
            ("let x = 1.5; switch x { 1 => 5, 1.5 => 6, _ => 0 }", 6),
            ("let x = -0.0; switch x { 0 => 5, _ => 0 }", 5),
            // The type decides where both have a case.
            ("let x = 1.0; switch x { 1 => 5, 1.0 => 6, _ => 0 }", 6),
            ("let x = 1; switch x { 1.0 => 6, 1 => 5, _ => 0 }", 5),
            ("let x = 3.0; switch x { 0..5 => 5, _ => 0 }", 5),
            ("let x = 3.5; switch x { 0..5 => 5, _ => 0 }", 5),
            ("let x = 1.0; switch x { 1 if x > 2.0 => 5, 1 if x < 2.0 => 6, _ => 0 }", 6),
            ("let x = \"1\"; switch x { 1 => 5, _ => 0 }", 0),
            ("let x = 1e300; switch x { 1 => 5, _ => 0 }", 0),
            ("let x = 0.0 / 0.0; switch x { 0 => 5, _ => 0 }", 0),
            ("fn f(x) { switch x { 2 => switch 2.0 * x { 4 => 7, _ => 1 }, _ => 0 } } f(2.0)", 7),
            ("let f = |x| { switch x { 2 => 7, _ => 0 } }; [2.0].map(f)[0]", 7),
            ("switch 1.0 { 1 => 5, _ => 0 }", 5),
            ("const N = 4; switch N { 4.0 => 5, _ => 0 }", 5),
            ("let x = 1.0; eval(\"switch x { 1 => 5, _ => 0 }\")", 5),
            ("eval(\"switch 1 { 1.0 => 5, _ => 0 }\")", 5),
            ("let f = |x| eval(\"switch x { 1 => 5, _ => 0 }\"); f.call(1.0)", 5),
            ("let x = 2.0; let y = || x; switch x { 2 => { x += 1.0; x.to_int() }, _ => 0 }", 3),
        ] {
            let found = Engine::new().unwrap().eval(script);
            let found = found.unwrap_or_else(|e| panic!("{script}: {}", e.render(false)));
            assert_eq!(found.as_int(), Ok(expected), "{script}");
        }
    }
}
