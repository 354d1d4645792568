//! Expressions of rewritten scripts that nobody can write: their names begin with a control character.

use rhai::{CustomExpr, Dynamic, Engine, EvalAltResult, EvalContext, Expr, Expression, Position};

/// Registers what the expressions of a name give, by their operands and what they hold.
pub(super) fn register(
    engine: &mut Engine,
    name: impl Into<String>,
    value: impl Fn(&mut EvalContext, &[Expression], &Dynamic) -> Result<Dynamic, Box<EvalAltResult>> + 'static,
) {
    let name = name.into();
    // The parser, which never meets them, would ask whether they change the scope.
    engine.register_custom_syntax_without_look_ahead_raw(&name, |_, _| Ok(None), true, value);
}

/// Such an expression.
pub(super) fn expression(
    name: impl Into<String>,
    operands: impl IntoIterator<Item = Expr>,
    holds: Dynamic,
    position: Position,
) -> Expr {
    let custom = CustomExpr {
        inputs: operands.into_iter().collect(),
        tokens: [name.into().into()].into_iter().collect(),
        state: holds,
        // Asked by the parser only.
        scope_may_be_changed: true,
        self_terminated: false,
    };
    Expr::Custom(Box::new(custom), position)
}
