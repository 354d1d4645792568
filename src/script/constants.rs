//! Constants of a session, which functions read as `global::NAME`. The language knows those of one script only; each
//! input of a session is a script of its own.

use std::collections::BTreeMap;

use rhai::{AST, Dynamic, Engine, ImmutableString, Locked, Position, Shared, Stmt};

use super::hidden;

/// The name of the statement that makes them known: nothing that a script can write.
const CONSTANTS: &str = "\u{1}constants";

/// Registers what makes the constants of the scope known.
pub(super) fn register(engine: &mut Engine) {
    hidden::register(engine, CONSTANTS, |ctx, _, _| {
        let mut all: BTreeMap<ImmutableString, Dynamic> = BTreeMap::new();
        // The latest come first.
        for (name, _, value) in ctx.scope().iter_raw().filter(|(_, constant, _)| *constant) {
            all.entry(name.into()).or_insert_with(|| value.clone());
        }
        ctx.global_runtime_state_mut().constants = Some(Shared::new(Locked::new(all)));
        Ok(Dynamic::UNIT)
    });
}

/// The statement, to stand before an input.
pub(super) fn statement() -> AST {
    let known = hidden::expression(CONSTANTS, [], Dynamic::UNIT, Position::NONE);
    AST::new([Stmt::Expr(Box::new(known))], rhai::Module::new())
}

#[cfg(test)]
mod tests {
    use crate::script::Engine;

    #[test]
    fn functions_read_constants_of_earlier_inputs() {
        let mut engine = Engine::new().unwrap();
        let mut told = |text: &str| engine.eval(text).map(|value| value.to_string()).map_err(|e| e.message);
        told("fn later() { global::M }").unwrap();
        assert_eq!(told("later()").unwrap_err(), "no variable `global::M`");
        for (input, value) in [
            ("const N = 4; fn twice() { global::N * 2 }", ""),
            ("twice()", "8"),
            ("global::N + 1", "5"),
            ("const N = 5;", ""),
            ("[1].map(|x| x + twice())[0]", "11"),
            ("const M = 7; later()", "7"),
            ("later() + global::M", "14"),
        ] {
            assert_eq!(told(input).unwrap(), value, "{input}");
        }
        assert!(told("let x = 1; fn own() { global::x } own()").is_err(), "a variable is none");
        assert!(told("own()").is_err());
    }
}
