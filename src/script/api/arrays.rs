//! What arrays and maps are asked with functions, and how they are sorted. Rhai's own functions take what a function
//! gives for false, or for no order, if it is of another type.

use std::cmp::Ordering;

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine, FLOAT, FnPtr, INT, ImmutableString, Map};

use super::values::type_of;
use crate::error::{Error, Result};
use crate::script::Fallible;
use crate::script::comparison;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(array_functions).into());
}

/// The order of two values of one kind, NaN behind all numbers; nothing of unlike values.
fn sorting(a: &Dynamic, b: &Dynamic) -> Option<Ordering> {
    if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
        return Some(a.cmp(&b));
    }
    let none = |x: &Dynamic| x.as_float().is_ok_and(FLOAT::is_nan);
    match (none(a), none(b)) {
        (false, false) => {}
        (a, b) => return Some(a.cmp(&b)),
    }
    match (a.as_int(), a.as_float(), b.as_int(), b.as_float()) {
        (_, Ok(a), _, Ok(b)) => return a.partial_cmp(&b),
        (Ok(a), _, _, Ok(b)) => return comparison::order(a, b),
        (_, Ok(a), Ok(b), _) => return comparison::order(b, a).map(Ordering::reverse),
        _ => {}
    }
    if let (Some(a), Some(b)) = (a.read_lock::<ImmutableString>(), b.read_lock::<ImmutableString>()) {
        return Some(a.as_str().cmp(b.as_str()));
    }
    if let (Ok(a), Ok(b)) = (a.as_char(), b.as_char()) {
        return Some(a.cmp(&b));
    }
    if let (Ok(a), Ok(b)) = (a.as_bool(), b.as_bool()) {
        return Some(a.cmp(&b));
    }
    (a.is_unit() && b.is_unit()).then_some(Ordering::Equal)
}

fn sorted(array: &mut Array, descending: bool) -> Result<()> {
    let number = |x: &Dynamic| x.is_int() || x.is_float();
    let alike = |x: &Dynamic, y: &Dynamic| number(x) && number(y) || x.type_id() == y.type_id();
    let first = array.first().cloned().unwrap_or_default();
    let unlike = array.iter().find(|&x| !alike(&first, x) || sorting(x, x).is_none());
    if let Some(unlike) = unlike.filter(|_| array.len() > 1) {
        return Err(Error::input(format!("sort: {} and {} have no order", type_of(&first), type_of(unlike)))
            .hint("an array of numbers or of texts is sorted, others by `sort(|a, b| ..)`"));
    }
    let none = |x: &Dynamic| x.as_float().is_ok_and(FLOAT::is_nan);
    array.sort_by(|a, b| {
        let order = sorting(a, b).unwrap_or(Ordering::Equal);
        // NaN stays last.
        if descending && !none(a) && !none(b) { order.reverse() } else { order }
    });
    Ok(())
}

/// Sorts by merging halves: any function ends, also one that is no order, and equal ones stay in their order.
fn by_order(array: &mut [Dynamic], mut order: impl FnMut(&Dynamic, &Dynamic) -> Ordering) {
    let n = array.len();
    let mut width = 1;
    while width < n {
        for from in (0..n).step_by(2 * width) {
            let (middle, to) = ((from + width).min(n), (from + 2 * width).min(n));
            let mut merged = Vec::with_capacity(to - from);
            let (mut i, mut j) = (from, middle);
            while i < middle && j < to {
                // The second goes first only where it comes before.
                let second = order(&array[j], &array[i]) == Ordering::Less;
                let at = if second { &mut j } else { &mut i };
                merged.push(array[*at].clone());
                *at += 1;
            }
            merged.extend_from_slice(&array[i..middle]);
            merged.extend_from_slice(&array[j..to]);
            array[from..to].clone_from_slice(&merged);
        }
        width *= 2;
    }
}

/// How a function of two elements orders them.
fn order_by_function(ctx: &NativeCallContext, f: &FnPtr, a: &Dynamic, b: &Dynamic) -> Fallible<Ordering> {
    let value: Dynamic = f.call_within_context(ctx, (a.clone(), b.clone()))?;
    let order = match (value.as_int(), value.as_float(), value.as_bool()) {
        (Ok(n), ..) => Ok(n.cmp(&0)),
        (_, Ok(x), _) => x.partial_cmp(&0.0).ok_or("NaN, which is no order".to_string()),
        (.., Ok(before)) => Ok(if before { Ordering::Less } else { Ordering::Greater }),
        _ => Err(type_of(&value)),
    };
    order.map_err(|given| {
        Error::input(format!("sort: the function gives {given}"))
            .hint("it gives a number, as `|a, b| a.x - b.x` does, or whether `a` comes before `b`")
            .into()
    })
}

/// What a function says of something: true or false.
fn truth(name: &str, given: &Dynamic) -> Fallible<bool> {
    given.as_bool().map_err(|_| {
        Error::input(format!("{name}: the function gives {}", type_of(given)))
            .hint("it gives true or false, as `|x| x > 0` does")
            .into()
    })
}

/// What a function says of an element of an array. It may take the element's number as well, or see the element as
/// `this`.
fn holds(ctx: &NativeCallContext, name: &str, (i, item): (usize, &mut Dynamic), f: &FnPtr) -> Fallible<bool> {
    let number = [INT::try_from(i).unwrap_or(INT::MAX).into()];
    truth(name, &f.call_raw_with_extra_args(name, ctx, Some(item), [], number, Some(0))?)
}

/// What a function says of each element of an array.
fn of_elements(ctx: &NativeCallContext, name: &str, array: &mut Array, f: &FnPtr) -> Fallible<Vec<bool>> {
    array.iter_mut().enumerate().map(|at| holds(ctx, name, at, f)).collect()
}

/// What a function says of each entry of a map. It takes a key, and sees the value as `this` or takes it, too.
fn of_entries(ctx: &NativeCallContext, name: &str, map: &mut Map, f: &FnPtr) -> Fallible<Vec<bool>> {
    map.iter_mut()
        .map(|(key, value)| {
            truth(name, &f.call_raw_with_extra_args(name, ctx, Some(value), [key.into()], [], Some(1))?)
        })
        .collect()
}

/// The elements or entries that are chosen, and the others.
fn parted<T: IntoIterator + Default + Extend<T::Item>>(all: &mut T, chosen: Vec<bool>) -> (T, T) {
    let mut chosen = chosen.into_iter();
    std::mem::take(all).into_iter().partition(|_| chosen.next().unwrap_or(false))
}

/// The number of the first element, from one on, for which a function gives `wanted`. Numbers below zero count from the
/// end.
fn first(
    ctx: &NativeCallContext,
    name: &str,
    array: &mut Array,
    (start, wanted): (INT, bool),
    f: &FnPtr,
) -> Fallible<Option<usize>> {
    let length = INT::try_from(array.len()).unwrap_or(INT::MAX);
    let start = if start < 0 { start.saturating_add(length).max(0) } else { start };
    for (i, item) in array.iter_mut().enumerate().skip(usize::try_from(start).unwrap_or(usize::MAX)) {
        if holds(ctx, name, (i, item), f)? == wanted {
            return Ok(Some(i));
        }
    }
    Ok(None)
}

#[export_module]
mod array_functions {
    /// Sorts an array of numbers, or of texts, ascending; NaN comes last.
    ///
    /// # Example
    /// ```rhai
    /// let x = [3, 0.0 / 0.0, 1.5, -2];
    /// x.sort();
    /// assert(x[0] == -2 && x[2] == 3 && x[3].is_nan(), "NaN last");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn sort(array: &mut Array) -> Fallible<()> {
        Ok(sorted(array, false)?)
    }

    /// Sorts an array by a function of two elements: a number below zero, zero or above it where the first one comes
    /// before the second, beside it or after it; or whether it comes before.
    ///
    /// # Example
    /// ```rhai
    /// let found = [#{ e: 0.3 }, #{ e: 0.1 }, #{ e: 0.2 }];
    /// found.sort(|a, b| a.e - b.e);
    /// assert(found[0].e == 0.1 && found[2].e == 0.3, "by energy");
    /// found.sort(|a, b| a.e > b.e);
    /// assert(found[0].e == 0.3, "descending");
    /// ```
    #[rhai_fn(global, name = "sort", name = "sort_by", return_raw)]
    pub fn sort_by_function(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<()> {
        let mut failed = None;
        by_order(array, |a, b| match failed {
            Some(_) => Ordering::Equal,
            None => order_by_function(&ctx, &f, a, b).unwrap_or_else(|e| {
                failed = Some(e);
                Ordering::Equal
            }),
        });
        failed.map_or(Ok(()), Err)
    }

    /// Sorts an array of numbers, or of texts, descending; NaN comes last.
    ///
    /// # Example
    /// ```rhai
    /// let x = [1, 2.5];
    /// x.sort_desc();
    /// assert(x[0] == 2.5, "the largest first");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn sort_desc(array: &mut Array) -> Fallible<()> {
        Ok(sorted(array, true)?)
    }

    /// The elements of an array of numbers, or of texts, in ascending order; NaN comes last.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1.5, -2].order() == [-2, 1.5, 3], "ascending");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn order(array: &mut Array) -> Fallible<Array> {
        let mut copy = array.clone();
        sorted(&mut copy, false)?;
        Ok(copy)
    }

    /// The elements of an array of numbers, or of texts, in descending order; NaN comes last.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1.5, -2].order_desc() == [3, 1.5, -2], "descending");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn order_desc(array: &mut Array) -> Fallible<Array> {
        let mut copy = array.clone();
        sorted(&mut copy, true)?;
        Ok(copy)
    }

    /// The elements of an array in the order that a function of two elements gives, as for `sort`.
    ///
    /// # Example
    /// ```rhai
    /// assert([0.3, 0.1, 0.2].order(|a, b| b - a) == [0.3, 0.2, 0.1], "descending");
    /// ```
    #[rhai_fn(global, name = "order", name = "order_by", pure, return_raw)]
    pub fn order_by_array(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<Array> {
        let mut copy = array.clone();
        sort_by_function(ctx, &mut copy, f)?;
        Ok(copy)
    }

    /// The elements of an array for which a function gives true. It gets an element, and its number if it takes two.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1, 2].filter(|x| x > 1) == [3, 2], "those above 1");
    /// assert([3, 1, 2].filter(|x, i| i > 0) == [1, 2], "by number");
    /// assert([3, 1].filter(|| this > 1) == [3], "as `this`");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn filter(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<Array> {
        let chosen = of_elements(&ctx, "filter", array, &f)?;
        Ok(array.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(item, _)| item.clone()).collect())
    }

    /// Keeps the elements of an array for which a function gives true; returns the others.
    ///
    /// # Example
    /// ```rhai
    /// let x = [3, 1, 2];
    /// assert(x.retain(|x| x > 1) == [1] && x == [3, 2], "those above 1 stay");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn retain(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<Array> {
        let chosen = of_elements(&ctx, "retain", array, &f)?;
        let (chosen, others) = parted(array, chosen);
        *array = chosen;
        Ok(others)
    }

    /// Takes the elements for which a function gives true out of an array, and returns them.
    ///
    /// # Example
    /// ```rhai
    /// let x = [3, 1, 2];
    /// assert(x.drain(|x| x > 1) == [3, 2] && x == [1], "those above 1 go");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn drain(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<Array> {
        let chosen = of_elements(&ctx, "drain", array, &f)?;
        let (chosen, others) = parted(array, chosen);
        *array = others;
        Ok(chosen)
    }

    /// As for arrays, of the entries of a map: the function gets a key, and the value as `this` or after the key.
    ///
    /// # Example
    /// ```rhai
    /// let found = #{ a: 1, b: 2 };
    /// assert(found.filter(|key, value| value > 1).keys() == ["b"], "values above 1");
    /// ```
    #[rhai_fn(global, name = "filter", pure, return_raw)]
    pub fn filter_map(ctx: NativeCallContext, map: &mut Map, f: FnPtr) -> Fallible<Map> {
        let chosen = of_entries(&ctx, "filter", map, &f)?;
        let entries = map.iter().zip(chosen).filter(|(_, chosen)| *chosen);
        Ok(entries.map(|((key, value), _)| (key.clone(), value.clone())).collect())
    }

    /// As for arrays, of the entries of a map: the function gets a key, and the value as `this` or after the key.
    ///
    /// # Example
    /// ```rhai
    /// let found = #{ a: 1, b: 2 };
    /// assert(found.retain(|key, value| value > 1).keys() == ["a"] && found.keys() == ["b"], "values above 1 stay");
    /// ```
    #[rhai_fn(global, name = "retain", return_raw)]
    pub fn retain_map(ctx: NativeCallContext, map: &mut Map, f: FnPtr) -> Fallible<Map> {
        let chosen = of_entries(&ctx, "retain", map, &f)?;
        let (chosen, others) = parted(map, chosen);
        *map = chosen;
        Ok(others)
    }

    /// As for arrays, of the entries of a map: the function gets a key, and the value as `this` or after the key.
    ///
    /// # Example
    /// ```rhai
    /// let found = #{ a: 1, b: 2 };
    /// assert(found.drain(|key| this > 1).keys() == ["b"] && found.keys() == ["a"], "values above 1 go");
    /// ```
    #[rhai_fn(global, name = "drain", return_raw)]
    pub fn drain_map(ctx: NativeCallContext, map: &mut Map, f: FnPtr) -> Fallible<Map> {
        let chosen = of_entries(&ctx, "drain", map, &f)?;
        let (chosen, others) = parted(map, chosen);
        *map = others;
        Ok(chosen)
    }

    /// Removes the elements of an array for which a function of the one before and of this one gives true.
    ///
    /// # Example
    /// ```rhai
    /// let x = [1.0, 1.1, 3.0, 1.0];
    /// x.dedup(|a, b| abs(a - b) < 0.5);
    /// assert(x == [1.0, 3.0, 1.0], "neighbours that are close");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn dedup(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<()> {
        let mut kept = array.clone();
        let mut failed = None;
        kept.dedup_by(|item, before| {
            let given = || truth("dedup", &f.call_within_context(&ctx, (before.clone(), item.clone()))?);
            failed.is_none()
                && given().unwrap_or_else(|e| {
                    failed = Some(e);
                    false
                })
        });
        failed.map_or(Ok(()), Err)?;
        *array = kept;
        Ok(())
    }

    /// Whether a function gives true for an element of an array.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1].some(|x| x > 2) && ![].some(|x| true), "an element above 2, and none");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn some(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<bool> {
        Ok(first(&ctx, "some", array, (0, true), &f)?.is_some())
    }

    /// Whether a function gives true for all elements of an array.
    ///
    /// # Example
    /// ```rhai
    /// assert(![3, 1].all(|x| x > 2) && [].all(|x| false), "not all above 2; all of none");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn all(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<bool> {
        Ok(first(&ctx, "all", array, (0, false), &f)?.is_none())
    }

    /// The number of the first element of an array for which a function gives true; -1 if there is none.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1, 2].index_of(|x| x < 3) == 1 && [3].index_of(|x| x < 3) == -1, "the second, and none");
    /// ```
    #[rhai_fn(global, name = "index_of", pure, return_raw)]
    pub fn index_of_function(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<INT> {
        index_of_function_from(ctx, array, f, 0)
    }

    /// The number of the first such element from number `start` on, where -1 is the last element.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1, 2].index_of(|x| x < 3, 2) == 2, "the third");
    /// ```
    #[rhai_fn(global, name = "index_of", pure, return_raw)]
    pub fn index_of_function_from(
        ctx: NativeCallContext,
        array: &mut Array,
        f: FnPtr,
        start: INT,
    ) -> Fallible<INT> {
        let found = first(&ctx, "index_of", array, (start, true), &f)?;
        Ok(found.and_then(|i| INT::try_from(i).ok()).unwrap_or(-1))
    }

    /// The first element of an array for which a function gives true; () if there is none.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1, 2].find(|x| x < 3) == 1 && [3].find(|x| x < 3) == (), "the second, and none");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn find(ctx: NativeCallContext, array: &mut Array, f: FnPtr) -> Fallible<Dynamic> {
        find_from(ctx, array, f, 0)
    }

    /// The first such element from number `start` on, where -1 is the last element.
    ///
    /// # Example
    /// ```rhai
    /// assert([3, 1, 2].find(|x| x < 3, 2) == 2, "the third");
    /// ```
    #[rhai_fn(global, name = "find", pure, return_raw)]
    pub fn find_from(ctx: NativeCallContext, array: &mut Array, f: FnPtr, start: INT) -> Fallible<Dynamic> {
        let found = first(&ctx, "find", array, (start, true), &f)?;
        Ok(found.and_then(|i| array.get(i).cloned()).unwrap_or_default())
    }
}
