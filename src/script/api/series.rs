//! `Series`: making one, taking it apart, operators. Sums and integrals are in `series_maths.rs`.

use std::any::TypeId;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, FnPtr, INT, Module};

use super::values::{as_number, count, element_of, real, to_dynamic, to_series, type_of};
use crate::error::{Error, Result};
use crate::number::{Arithmetic, C64, Number, Series, memory};
use crate::script::Fallible;

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Series>("Series");
    engine.register_global_module(exported_module!(series_functions).into());
    operators(engine);
    let mut iteration = Module::new();
    iteration.set_iter(TypeId::of::<Series>(), |series| {
        let numbers: Vec<Number> = series.try_cast::<Series>().map_or(Vec::new(), |s| s.iter().collect());
        Box::new(numbers.into_iter().map(to_dynamic))
    });
    engine.register_global_module(iteration.into());
}

/// Elementwise operators with Series and numbers of every kind.
fn operators(engine: &mut Engine) {
    use Arithmetic::{Add, Div, Mul, Pow, Sub};
    for op in [Add, Sub, Mul, Div, Pow] {
        let name = op.symbol();
        engine.register_fn(name, move |a: Series, b: Series| -> Fallible<Series> { Ok(a.zip(op, &b)?) });
        engine.register_fn(name, move |a: Series, b: FLOAT| a.with(op, b.into()));
        engine.register_fn(name, move |a: Series, b: INT| a.with(op, b.into()));
        engine.register_fn(name, move |a: Series, b: C64| a.with(op, b.into()));
        engine.register_fn(name, move |a: FLOAT, b: Series| b.with_left(a.into(), op));
        engine.register_fn(name, move |a: INT, b: Series| b.with_left(a.into(), op));
        engine.register_fn(name, move |a: C64, b: Series| b.with_left(a.into(), op));
    }
    engine.register_fn("-", |a: Series| a.with(Mul, Number::Real(-1.0)));
    engine.register_fn("+", |a: Series| a);
    engine.register_fn("==", |a: Series, b: Series| a == b);
    engine.register_fn("!=", |a: Series, b: Series| a != b);
}

fn without_step() -> Error {
    Error::input("a range in steps of 0").hint("like `range(0.0, 1.0, 0.1)`")
}

/// The numbers of a range of floats, its end excluded.
fn stepped(from: f64, to: f64, step: f64) -> Result<Array> {
    if ![from, to, step].iter().all(|x| x.is_finite()) {
        return Err(Error::input(format!("a range from {from} to {to} in steps of {step}"))
            .hint("its numbers are finite: `range(0.0, 1.0, 0.1)`"));
    }
    if step == 0.0 {
        return Err(without_step());
    }
    let steps = (to - from) / step;
    let whole = steps.round();
    let count = if (steps - whole).abs() <= 1e-9 * whole.abs().max(1.0) { whole } else { steps.ceil() };
    if count <= 0.0 {
        return Ok(Array::new());
    }
    memory::ensure(count as u128 * size_of::<Dynamic>() as u128, "a range")?;
    Ok((0..count as i64).map(|k| (from + k as f64 * step).into()).collect())
}

/// The numbers of a range of whole numbers, its end excluded.
fn stepped_ints(from: INT, to: INT, step: INT) -> Result<Array> {
    if step == 0 {
        return Err(without_step());
    }
    let (way, step) = ((i128::from(to) - i128::from(from)) * i128::from(step.signum()), i128::from(step));
    if way <= 0 {
        return Ok(Array::new());
    }
    let count = (way as u128).div_ceil(step.unsigned_abs());
    memory::ensure(count * size_of::<Dynamic>() as u128, "a range")?;
    // All lie between two whole numbers of this size.
    Ok((0..count as i128).map(|k| ((i128::from(from) + k * step) as INT).into()).collect())
}

#[export_module(root = "crate::script::native")]
mod series_functions {
    /// One-dimensional data from an array of numbers or a range; arithmetic with it is elementwise.
    ///
    /// # Example
    /// ```rhai
    /// let s = 2.0 * series([1, 2, 3]) + 1;
    /// assert_close(s[2], 7.0, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn series(numbers: Dynamic) -> Fallible<Series> {
        Ok(to_series(&numbers)?)
    }

    /// `n` evenly spaced numbers from `a` to `b`, both included.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(linspace(0, 1, 11)[3], 0.3, 1e-15);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn linspace(a: Dynamic, b: Dynamic, n: INT) -> Fallible<Series> {
        Ok(Series::linspace(real(&a, "the first end")?, real(&b, "the last end")?, count(n, "points")?)?)
    }

    /// `n` numbers from `a` to `b`, both included and positive, evenly spaced in their logarithm.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(logspace(1, 1000, 4)[1], 10.0, 1e-12);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn logspace(a: Dynamic, b: Dynamic, n: INT) -> Fallible<Series> {
        Ok(Series::logspace(real(&a, "the first end")?, real(&b, "the last end")?, count(n, "points")?)?)
    }

    /// The numbers from `from` to `to` (excluded) in steps, as an array. Floats are `from + k * step`, so rounding does
    /// not add up; an end that is a whole number of steps away, to rounding, is excluded too.
    ///
    /// # Example
    /// ```rhai
    /// assert(range(0.0, 1.0, 0.25) == [0.0, 0.25, 0.5, 0.75], "the end is left out");
    /// assert(range(0.0, 1.0, 0.1).len == 10, "not eleven");
    /// for n in range(18, 8, -5) { print(n); }
    /// ```
    #[rhai_fn(name = "range", return_raw)]
    pub fn range_of_floats(from: FLOAT, to: FLOAT, step: FLOAT) -> Fallible<Array> {
        Ok(stepped(from, to, step)?)
    }

    #[rhai_fn(name = "range", return_raw)]
    pub fn range_of_ints(from: INT, to: INT, step: INT) -> Fallible<Array> {
        Ok(stepped_ints(from, to, step)?)
    }

    #[rhai_fn(name = "range", return_raw)]
    pub fn range_of_numbers(from: Dynamic, to: Dynamic, step: Dynamic) -> Fallible<Array> {
        let [from, to] = [real(&from, "the start of a range")?, real(&to, "the end of a range")?];
        Ok(stepped(from, to, real(&step, "the step of a range")?)?)
    }

    /// Number of elements.
    ///
    /// # Example
    /// ```rhai
    /// assert(linspace(0, 1, 11).len == 11, "eleven points");
    /// ```
    #[rhai_fn(global, get = "len", pure)]
    pub fn len(s: &mut Series) -> INT {
        s.len() as INT
    }

    #[rhai_fn(global, name = "len", pure)]
    pub fn len_method(s: &mut Series) -> INT {
        s.len() as INT
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn element(s: &mut Series, i: INT) -> Fallible<Dynamic> {
        Ok(s.at(i).map(to_dynamic)?)
    }

    #[rhai_fn(global, index_set, return_raw)]
    pub fn set_element(s: &mut Series, i: INT, value: Dynamic) -> Fallible<()> {
        Ok(element_of(&value, "a Series").and_then(|number| s.set(i, number))?)
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn range(s: &mut Series, range: std::ops::Range<INT>) -> Fallible<Series> {
        Ok(s.slice(range.start, range.end)?)
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn inclusive(s: &mut Series, range: std::ops::RangeInclusive<INT>) -> Fallible<Series> {
        // An end of -1 includes the last element.
        let end = if *range.end() == -1 { s.len() as INT } else { range.end().saturating_add(1) };
        Ok(s.slice(*range.start(), end)?)
    }

    /// Elements `from..to` (`to` excluded, negative from the end); `s[from..to]` is the same.
    ///
    /// # Example
    /// ```rhai
    /// assert(series(0..10).slice(2, 4) == series([2, 3]), "two elements");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn slice(s: &mut Series, from: INT, to: INT) -> Fallible<Series> {
        Ok(s.slice(from, to)?)
    }

    /// Adds a number at the end.
    ///
    /// # Example
    /// ```rhai
    /// let s = series([1]);
    /// s.push(2.5);
    /// assert_close(s[-1], 2.5, 1e-15);
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn push(s: &mut Series, value: Dynamic) -> Fallible<()> {
        s.push(element_of(&value, "a Series")?);
        Ok(())
    }

    /// The elements of both, one after the other.
    ///
    /// # Example
    /// ```rhai
    /// assert(concat(series([1]), series([2, 3])) == series([1, 2, 3]), "joined");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn concat(s: &mut Series, other: Series) -> Series {
        s.concat(&other)
    }

    /// The elements in reverse order.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1, 2]).reversed() == series([2, 1]), "reversed");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn reversed(s: &mut Series) -> Series {
        s.reversed()
    }

    /// The elements in ascending order, NaN last.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([3, 1, 2]).sorted() == series([1, 2, 3]), "sorted");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn sorted(s: &mut Series) -> Fallible<Series> {
        Ok(s.sorted()?)
    }

    /// A function of every element.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1, 2]).map(|x| x * x) == series([1, 4]), "squares");
    /// ```
    #[rhai_fn(global, name = "map", return_raw)]
    pub fn map_elements(ctx: NativeCallContext, s: Series, f: FnPtr) -> Fallible<Series> {
        let mut numbers = Vec::with_capacity(s.len());
        for x in s.iter() {
            let value: Dynamic = f.call_within_context(&ctx, (to_dynamic(x),))?;
            let number = as_number(&value).ok_or_else(|| {
                Error::input(format!("the closure gave {}, not a number", type_of(&value)))
                    .hint("it is called with each element and gives a number")
            });
            numbers.push(number?);
        }
        Ok(numbers.into_iter().collect())
    }

    /// The elements as an array.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1, 2]).to_array().len() == 2, "two numbers");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn to_array(s: &mut Series) -> Array {
        s.iter().map(to_dynamic).collect()
    }

    /// The real parts.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1.0 + I]).re == series([1]), "real parts");
    /// ```
    #[rhai_fn(global, get = "re", pure)]
    pub fn re(s: &mut Series) -> Series {
        s.re()
    }

    /// The imaginary parts.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1.0 + 2.0 * I]).im == series([2]), "imaginary parts");
    /// ```
    #[rhai_fn(global, get = "im", pure)]
    pub fn im(s: &mut Series) -> Series {
        s.im()
    }

    /// The complex conjugates.
    ///
    /// # Example
    /// ```rhai
    /// assert(series([1.0 + I]).conj()[0] == 1.0 - I, "conjugated");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn conj(s: &mut Series) -> Series {
        s.conj()
    }

    /// The phase angles in (-pi, pi].
    ///
    /// # Example
    /// ```rhai
    /// assert_close(series([I]).arg()[0], PI / 2.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure)]
    pub fn arg(s: &mut Series) -> Series {
        s.arg()
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(s: &mut Series) -> String {
        s.to_string()
    }
}
