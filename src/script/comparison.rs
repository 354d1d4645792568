//! The comparisons of the language: `==`, `!=`, `<`, `<=`, `>`, `>=`, exact for numbers of every kind. Rhai's own
//! comparisons treat floats within 2.2e-16 as equal, even close to zero, and values of different types as unequal
//! without an error.
//!
//! Rhai's shortcuts for operators come before all registered functions. So its symbols are disabled and defined again
//! as custom operators with the same names and precedences. They call the functions below wherever a script is parsed:
//! files, modules, lines of a session, `eval`. [`super::direct`] makes most of them as quick as the shortcuts were.

use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use rhai::{
    Blob, Dynamic, Engine, EvalContext, Expression, FLOAT, INT, ImmutableString, NativeCallContext, Position,
};

use super::failure::failure;
use super::{Failure, hidden, registry};
use crate::error::{Error, Result};
use crate::number::C64;

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

use Comparison::{AtLeast, AtMost, Equal, Greater, Less, Unequal};

impl Comparison {
    const ALL: [Comparison; 6] = [Equal, Unequal, Less, AtMost, Greater, AtLeast];

    /// As scripts write it.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Equal => "==",
            Unequal => "!=",
            Less => "<",
            AtMost => "<=",
            Greater => ">",
            AtLeast => ">=",
        }
    }

    /// The comparison that is written so.
    pub(super) fn written(symbol: &str) -> Option<Comparison> {
        Comparison::ALL.into_iter().find(|c| c.symbol() == symbol)
    }

    /// What its direct form is registered under: nothing that a script can write.
    pub(super) fn key(self) -> String {
        format!("\u{1}{}", self.symbol())
    }

    /// How tightly it binds, as in Rhai.
    fn precedence(self) -> u8 {
        if self.orders() { 130 } else { 90 }
    }

    /// Whether it asks which is larger, not only whether both are the same.
    fn orders(self) -> bool {
        !matches!(self, Equal | Unequal)
    }

    /// Whether it holds of two values in this order; values without one, like NaN, are unequal and nothing else.
    #[inline(always)]
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Equal => order == Some(Ordering::Equal),
            Unequal => order != Some(Ordering::Equal),
            Less => order == Some(Ordering::Less),
            AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Greater => order == Some(Ordering::Greater),
            AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    #[inline(always)]
    fn of<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Equal => a == b,
            Unequal => a != b,
            Less => a < b,
            AtMost => a <= b,
            Greater => a > b,
            AtLeast => a >= b,
        }
    }
}

/// The order of a whole number and a float, with all their digits: 2^53 + 1 lies above the float 2^53.
pub(crate) fn order(a: INT, b: FLOAT) -> Option<Ordering> {
    // Powers of two, so that the bounds are exact.
    const END: FLOAT = 9_223_372_036_854_775_808.0;
    if b.is_nan() {
        None
    } else if b >= END {
        Some(Ordering::Less)
    } else if b < -END {
        Some(Ordering::Greater)
    } else {
        a.cmp(&(b as INT)).then(0.0.partial_cmp(&b.fract())?).into()
    }
}

/// Registers the comparisons under Rhai's symbols.
pub(super) fn register(engine: &mut Engine) -> Result<()> {
    for op in Comparison::ALL {
        let name = op.symbol();
        engine.disable_symbol(name);
        engine
            .register_custom_operator(name, op.precedence())
            .map_err(|e| Error::internal(format!("the operator `{name}`: {e}")))?;
        engine.register_fn(name, move |a: INT, b: INT| op.of(&a, &b));
        engine.register_fn(name, move |a: FLOAT, b: FLOAT| op.of(&a, &b));
        engine.register_fn(name, move |a: INT, b: FLOAT| op.holds(order(a, b)));
        engine.register_fn(name, move |a: FLOAT, b: INT| op.holds(order(b, a).map(Ordering::reverse)));
        engine.register_fn(name, move |a: ImmutableString, b: ImmutableString| op.of(&a, &b));
        engine.register_fn(name, move |ctx: NativeCallContext, a: Dynamic, b: Dynamic| {
            match plain(op, &a, &b) {
                Some(holds) => Ok(holds),
                None => Err(Failure::from(refusal(op, ctx.engine(), &a, &b))),
            }
        });
        hidden::register(engine, op.key(), move |ctx, operands, position| {
            direct(op, ctx, operands, position)
        });
    }
    Ok(())
}

/// Compares the values of two expressions; the last argument holds where the operator stands.
#[inline]
fn direct(
    op: Comparison,
    ctx: &mut EvalContext,
    operands: &[Expression],
    position: &Dynamic,
) -> std::result::Result<Dynamic, Failure> {
    let [a, b] = operands else {
        return Err(failure(Error::internal("a comparison without two operands"), Position::NONE));
    };
    let a = ctx.eval_expression_tree(a)?;
    let b = ctx.eval_expression_tree(b)?;
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
        return Ok(op.of(&a, &b).into());
    }
    let holds = match (a.as_float(), b.as_float()) {
        (Ok(a), Ok(b)) => Some(op.of(&a, &b)),
        (Ok(a), _) => b.as_int().ok().map(|b| op.holds(order(b, a).map(Ordering::reverse))),
        (_, Ok(b)) => a.as_int().ok().map(|a| op.holds(order(a, b))),
        _ => None,
    };
    if let Some(holds) = holds {
        return Ok(holds.into());
    }
    let (mut a, mut b) = (a.flatten(), b.flatten());
    if is_plain(&a)
        && is_plain(&b)
        && let Some(holds) = plain(op, &a, &b)
    {
        return Ok(holds.into());
    }
    ctx.call_native_fn_raw(op.symbol(), false, &mut [&mut a, &mut b]).map_err(|mut failure| {
        if failure.position().is_none() {
            failure.set_position(position.as_int().map_or(Position::NONE, unpacked));
        }
        failure
    })
}

/// Whether the value is one of Rhai's own that no function is registered for.
fn is_plain(x: &Dynamic) -> bool {
    x.is_string() || x.is_unit() || x.is_bool() || x.is_int() || x.is_float() || x.is_char()
}

/// Whether the value is of a type that Rhai brings, not one of ours.
fn is_own(x: &Dynamic) -> bool {
    is_plain(x)
        || x.is_array()
        || x.is_blob()
        || x.is_map()
        || x.is_fnptr()
        || x.is_timestamp()
        || x.is::<Range<INT>>()
        || x.is::<RangeInclusive<INT>>()
}

/// The comparison where the language knows it of itself; nothing where it is to be refused.
fn plain(op: Comparison, a: &Dynamic, b: &Dynamic) -> Option<bool> {
    fn both<T: PartialOrd + Clone + 'static>(op: Comparison, a: &Dynamic, b: &Dynamic) -> Option<bool> {
        Some(op.of(&*a.read_lock::<T>()?, &*b.read_lock::<T>()?))
    }
    fn same<T: PartialEq + Clone + 'static>(op: Comparison, a: &Dynamic, b: &Dynamic) -> Option<bool> {
        let equal = *a.read_lock::<T>()? == *b.read_lock::<T>()?;
        (!op.orders()).then_some(equal == (op == Equal))
    }
    if a.is_unit() || b.is_unit() {
        // Anything may be asked whether it is there.
        return (!op.orders()).then_some((a.is_unit() && b.is_unit()) == (op == Equal));
    }
    if a.type_id() == b.type_id() {
        return both::<INT>(op, a, b)
            .or_else(|| both::<FLOAT>(op, a, b))
            .or_else(|| both::<ImmutableString>(op, a, b))
            .or_else(|| both::<bool>(op, a, b))
            .or_else(|| both::<char>(op, a, b))
            .or_else(|| same::<Blob>(op, a, b))
            .or_else(|| same::<Range<INT>>(op, a, b))
            .or_else(|| same::<RangeInclusive<INT>>(op, a, b));
    }
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_float()) {
        return Some(op.holds(order(a, b)));
    }
    if let (Ok(a), Ok(b)) = (a.as_float(), b.as_int()) {
        return Some(op.holds(order(b, a).map(Ordering::reverse)));
    }
    // A character is a text of one.
    let text = |x: &Dynamic| -> Option<String> {
        x.as_char().map(String::from).ok().or_else(|| x.read_lock::<ImmutableString>().map(|s| s.to_string()))
    };
    if let (Some(a), Some(b)) = (text(a), text(b)) {
        return Some(op.of(&a, &b));
    }
    // Values of different types of the language itself are unequal, and have no order.
    (!op.orders() && is_own(a) && is_own(b)).then_some(op == Unequal)
}

/// Why two values are not compared.
fn refusal(op: Comparison, engine: &Engine, a: &Dynamic, b: &Dynamic) -> Error {
    let name = |x: &Dynamic| match x {
        x if x.is_int() => "int".to_string(),
        x if x.is_float() => "float".to_string(),
        x if x.is_array() => "array".to_string(),
        x if x.is_map() => "map".to_string(),
        x if x.is_unit() => "()".to_string(),
        x => registry::type_name(engine, x.type_name()),
    };
    let number = |x: &Dynamic| x.is_int() || x.is_float() || x.is::<C64>();
    let (left, right) = (name(a), name(b));
    let error = Error::input(format!("`{left} {} {right}` is no comparison", op.symbol()));
    let elements = ["Series", "Matrix"].into_iter().find(|known| left == *known || right == *known);
    match elements {
        _ if op.orders() && number(a) && number(b) => {
            error.hint("complex numbers have no order; compare `.re`, `.im` or `.abs()`")
        }
        Some("Series") => error.hint("compare its elements: `s[0] > 0`, `s.min() > 0`, or each in a loop"),
        Some(_) => error.hint("compare its elements: `m.at(0, 0) > 0`, or `(a - b).norm() < 1e-12`"),
        None if left == right => error.hint(format!("compare what a {left} holds")),
        None => error.hint(
            "only numbers with numbers and texts with texts have an order; `type_of(x)` tells what x is",
        ),
    }
}

/// A position as a number, which expressions can hold.
pub(super) fn packed(position: Position) -> INT {
    let half = |x: Option<usize>| x.and_then(|x| u16::try_from(x).ok()).unwrap_or(0);
    INT::from(half(position.line())) << 16 | INT::from(half(position.position()))
}

/// The position back.
fn unpacked(packed: INT) -> Position {
    match ((packed >> 16) as u16, packed as u16) {
        (0, _) => Position::NONE,
        (line, column) => Position::new(line, column),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_and_floats_compare_with_all_their_digits() {
        let big = 1_i64 << 53;
        assert_eq!(order(big + 1, big as f64), Some(Ordering::Greater));
        assert_eq!(order(big, big as f64), Some(Ordering::Equal));
        assert_eq!(order(i64::MAX, i64::MAX as f64), Some(Ordering::Less));
        assert_eq!(order(i64::MIN, i64::MIN as f64), Some(Ordering::Equal));
        assert_eq!(order(0, f64::NAN), None);
        assert_eq!(order(0, -0.0), Some(Ordering::Equal));
        assert_eq!(order(0, 5e-324), Some(Ordering::Less));
        assert_eq!(order(0, -5e-324), Some(Ordering::Greater));
        assert_eq!(order(-3, -3.5), Some(Ordering::Greater));
        assert_eq!(order(3, 3.5), Some(Ordering::Less));
        assert_eq!(
            (order(1, f64::INFINITY), order(1, f64::NEG_INFINITY)),
            (Some(Ordering::Less), Some(Ordering::Greater))
        );
    }

    #[test]
    fn not_a_number_is_unequal_and_nothing_else() {
        for op in Comparison::ALL {
            assert_eq!(op.holds(None), op == Unequal);
            assert_eq!(op.of(&f64::NAN, &f64::NAN), op == Unequal);
        }
    }
}
