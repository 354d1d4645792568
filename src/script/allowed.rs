//! What the declaration of an option allows: types, words, numbers between bounds.

use std::ops::{Range, RangeInclusive};

use rhai::{Array, Dynamic, FLOAT, INT};

use super::declared::{OptionDoc, brief, shown};
use super::kinds::{self, OptionKind, in_words, words};
use crate::error::{Error, Result, nearest};
use crate::number::Series;

impl OptionDoc {
    /// A value given for the option, as the function reads it; `of_type` is its type as scripts name it.
    pub fn accept(&self, value: Dynamic, of_type: &str) -> Result<Dynamic> {
        if of_type == "int"
            && !kinds::keeps_whole(&self.kind)
            && kinds::may_be(&self.kind, "float")
            && let Ok(whole) = value.as_int()
        {
            return self.accept((whole as FLOAT).into(), "float");
        }
        if !kinds::may_be(&self.kind, of_type) {
            let wanted = kinds::types_in_words(&self.kind);
            let text = format!("option `{}` takes {wanted}, not a value of type {of_type}", self.key);
            let given = match shown(&value, of_type) {
                Some(text) => format!("`{text}`"),
                None => in_words(of_type),
            };
            return Err(Error::input(text).hint(format!("it was given {given}; {}", told_of(self))));
        }
        if value.as_float().is_ok_and(FLOAT::is_nan) {
            let text = format!("option `{}` is not a number (NaN)", self.key);
            return Err(Error::input(text).hint("a division of zero by zero gives one, say"));
        }
        if value.as_float().is_ok_and(FLOAT::is_infinite) {
            return Err(
                Error::input(format!("option `{}` is {value}", self.key)).hint("it takes a finite number")
            );
        }
        let what = format!("option `{}`", self.key);
        if let Some(error) = empty_list(&what, &self.kind, &value) {
            return Err(error);
        }
        if let Some(number) =
            list_of_reals(&self.kind, &value).and_then(|all| all.into_iter().find(|x| !x.is_finite()))
        {
            return Err(Error::input(format!("{what} holds {number}"))
                .hint("its numbers are finite; a division of zero by zero gives NaN"));
        }
        within(self, &value, of_type)?;
        Ok(value)
    }
}

/// The error for a list of numbers, an array where a Series would do too, that has none: results for no energy or no
/// temperature would be tables without rows. `what` is given, like "option `energies`".
pub(super) fn empty_list(what: &str, kind: &str, value: &Dynamic) -> Option<Error> {
    let takes =
        |wanted: &str| kinds::all(kind).any(|k| matches!(k, OptionKind::Type { name, .. } if name == wanted));
    let empty = value.read_lock::<Array>().is_some_and(|all| all.is_empty())
        || value.read_lock::<Series>().is_some_and(|all| all.is_empty())
        || value.read_lock::<Range<INT>>().is_some_and(|all| all.is_empty())
        || value.read_lock::<RangeInclusive<INT>>().is_some_and(|all| all.is_empty());
    (empty && takes("array") && takes("Series"))
        .then(|| Error::input(format!("{what} is empty")).hint("give one number at least, like `[0.5]`"))
}

/// The numbers of a list of real ones, where the kind is that of a list of numbers; none of another value.
fn list_of_reals(kind: &str, value: &Dynamic) -> Option<Vec<FLOAT>> {
    if !kinds::may_be(kind, "array") || !kinds::may_be(kind, "Series") {
        return None;
    }
    if let Some(series) = value.read_lock::<Series>() {
        return match &*series {
            Series::Real(all) => Some(all.clone()),
            _ => None,
        };
    }
    let real = |x: &Dynamic| x.as_int().map_or_else(|_| x.as_float().ok(), |n| Some(n as FLOAT));
    value.read_lock::<Array>()?.iter().map(real).collect()
}

/// Refuses words that the option does not know, and numbers out of its bounds; of an array all its numbers.
fn within(option: &OptionDoc, value: &Dynamic, of_type: &str) -> Result<()> {
    if of_type == "string" {
        known_word(option, &value.to_string())?;
    }
    let named = kinds::numbers(&option.kind);
    if !named.is_empty()
        && let Ok(number) = value.as_int()
        && !named.contains(&number)
    {
        let named: Vec<String> = named.iter().map(|n| n.to_string()).collect();
        return Err(out_of_bounds(option, number, &named.join(" or ")));
    }
    if let Some(array) = value.read_lock::<Array>() {
        list_of_numbers(option, &array)?;
    }
    in_bounds(option, value)
}

/// The error for a number that the option may not be; `told` says what it must be.
fn out_of_bounds(option: &OptionDoc, number: impl std::fmt::Display, told: &str) -> Error {
    Error::input(format!("option `{}` is {number}", option.key))
        .hint(format!("it must be {told}; {}", told_of(option)))
}

/// Refuses a word that the option does not know, where it does not take any text.
fn known_word(option: &OptionDoc, text: &str) -> Result<()> {
    let any = |kind| matches!(kind, OptionKind::Type { name: "string" | "any", .. });
    let words = words(&option.kind);
    if option.kind.is_empty() || kinds::all(&option.kind).any(any) || words.contains(&text) {
        return Ok(());
    }
    let error = Error::input(format!("no {} `{text}`", option.key));
    let all: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    Err(match nearest(text, words.iter().copied()) {
        Some(near) => error.hint(format!("did you mean \"{near}\"? There are {}", all.join(", "))),
        None => error.hint(format!("there are {}", all.join(", "))),
    })
}

/// Refuses a number, or one in an array, which has one for each of several steps, that is out of the option's bounds.
fn in_bounds(option: &OptionDoc, value: &Dynamic) -> Result<()> {
    let bounds = kinds::all(&option.kind).find_map(|kind| match kind {
        OptionKind::Type { even, least, most, .. } if even || least.is_some() || most.is_some() => {
            Some((even, least, most))
        }
        _ => None,
    });
    let Some((even, least, most)) = bounds else { return Ok(()) };
    let whole = !kinds::all(&option.kind).any(|kind| matches!(kind, OptionKind::Type { name: "float", .. }));
    let number = |value: &Dynamic| match value.as_int() {
        Ok(n) => Some(n as FLOAT),
        Err(_) => value.as_float().ok().filter(|_| !whole),
    };
    let numbers: Vec<FLOAT> = match value.read_lock::<Array>() {
        Some(all) if all.is_empty() => {
            return Err(Error::input(format!("option `{}` is an empty array", option.key))
                .hint("give one number, or one for each"));
        }
        Some(all) => {
            if let Some(other) = all.iter().find(|x| number(x).is_none()) {
                let wanted = in_words(if whole { "int" } else { "float" });
                let text = format!(
                    "option `{}` takes {wanted} or an array of them, not one with `{other}`",
                    option.key
                );
                return Err(Error::input(text).hint(told_of(option)));
            }
            all.iter().filter_map(number).collect()
        }
        None => match list_of_reals(&option.kind, value) {
            Some(all) => all,
            None => number(value).into_iter().collect(),
        },
    };
    let inside = |x: FLOAT| {
        (!even || x % 2.0 == 0.0)
            && least.is_none_or(|b| x > b.at || b.included && x == b.at)
            && most.is_none_or(|b| x < b.at || b.included && x == b.at)
    };
    let Some(wrong) = numbers.into_iter().find(|x| !inside(*x)) else { return Ok(()) };
    let told = [
        even.then(|| "even".to_string()),
        least.map(|b| b.text("above", "at least")),
        most.map(|b| b.text("below", "at most")),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    let told = match told.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => told.concat(),
    };
    Err(out_of_bounds(option, wrong, &told))
}

/// Refuses an array that is not of as many numbers as the option takes.
fn list_of_numbers(option: &OptionDoc, given: &Array) -> Result<()> {
    let list = kinds::all(&option.kind).find_map(|kind| match kind {
        OptionKind::List { of, length, told } => Some((of, length, told)),
        _ => None,
    });
    let Some((of, length, told)) = list else { return Ok(()) };
    let fits = |x: &Dynamic| match of {
        "count" => x.as_int().is_ok_and(|n| n >= 0),
        _ => x.is_int() || x.as_float().is_ok_and(FLOAT::is_finite),
    };
    let wrong = given.iter().find(|x| !fits(x));
    if wrong.is_none() && given.len() == length {
        return Ok(());
    }
    let but = wrong.map_or_else(|| format!("of {}", given.len()), |x| format!("one with `{x}`"));
    Err(Error::input(format!("option `{}` takes {told}, not {but}", option.key)).hint(told_of(option)))
}

/// What an option means, for a hint.
pub(super) fn told_of(option: &OptionDoc) -> String {
    format!("`{}`: {}", option.key, brief(&option.meaning))
}

#[cfg(test)]
mod tests {
    use super::super::declared::items;
    use super::*;

    fn option(item: &str) -> OptionDoc {
        items(&format!("# Options\n- {item}")).remove(0)
    }

    fn said(item: &str, value: impl Into<Dynamic>, of_type: &str) -> String {
        match option(item).accept(value.into(), of_type) {
            Ok(_) => String::new(),
            Err(e) => format!("{}; {}", e.message(), e.hint_text().unwrap_or_default()),
        }
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let cutoff = "`cutoff` (0 <= float < 1 or array, 0.0): a weight.";
        assert_eq!(option(cutoff).default, "0.0");
        assert_eq!(said(cutoff, 0.0, "float"), "");
        assert_eq!(
            said(cutoff, 1.0, "float"),
            "option `cutoff` is 1; it must be at least 0 and below 1; `cutoff`: a weight"
        );
        let schedule: Array = vec![0.1.into(), (-0.5).into()];
        assert_eq!(
            said(cutoff, schedule, "array"),
            "option `cutoff` is -0.5; it must be at least 0 and below 1; `cutoff`: a weight"
        );
        let count = "`count` (int >= 1, 4): how many.";
        assert_eq!((said(count, 1_i64, "int"), option(count).default.as_str()), (String::new(), "4"));
        assert_eq!(
            said(count, 0_i64, "int"),
            "option `count` is 0; it must be at least 1; `count`: how many"
        );
        assert!(said(count, 1.5, "float").starts_with("option `count` takes a whole number"));
        let even = "`moments` (2 <= even int <= 8, 4): how many.";
        assert_eq!((said(even, 8_i64, "int"), option(even).default.as_str()), (String::new(), "4"));
        for wrong in [7_i64, 0, 10] {
            let told = format!(
                "option `moments` is {wrong}; it must be even, at least 2 and at most 8; `moments`: how many"
            );
            assert_eq!(said(even, wrong, "int"), told);
        }
        assert_eq!(
            said("`tol` (float > 0): t", 0_i64, "int"),
            "option `tol` is 0; it must be above 0; `tol`: t"
        );
    }

    #[test]
    fn words_are_those_declared() {
        let kernel = "`kernel` (\"jackson\" or \"fejer\"): of the series.";
        assert_eq!(option(kernel).default, "\"jackson\"");
        assert_eq!(words(&option(kernel).kind), ["jackson", "fejer"]);
        assert_eq!(said(kernel, "fejer", "string"), "");
        assert_eq!(
            said(kernel, "jakson", "string"),
            "no kernel `jakson`; did you mean \"jackson\"? There are \"jackson\", \"fejer\""
        );
        assert!(said(kernel, 1_i64, "int").starts_with("option `kernel` takes a text"));
        let either = "`grid` (\"auto\" or int >= 2 or array): points.";
        assert_eq!((said(either, 2_i64, "int"), said(either, "auto", "string")), Default::default());
        // A text as the default leaves all texts open.
        assert_eq!(said("`file` (\"a.svg\"): where", "b.svg", "string"), "");
    }

    #[test]
    fn lists_of_numbers_have_one() {
        let energies = "`energies` (array or Series or range): where.";
        let refused = "option `energies` is empty; give one number at least, like `[0.5]`";
        assert_eq!(said(energies, Array::new(), "array"), refused);
        assert_eq!(said(energies, Dynamic::from(Series::Real(Vec::new())), "Series"), refused);
        assert_eq!(said(energies, Dynamic::from(3..3_i64), "range"), refused);
        assert_eq!(said(energies, Dynamic::from(3..=3_i64), "range"), "");
        assert_eq!(said("`sites` (array or range): which.", Array::new(), "array"), "", "a list of places");
    }

    #[test]
    fn lists_of_numbers_stay_within_their_bounds() {
        let beta = "`beta` (float >= 0 or array or Series, required): inverse temperatures.";
        let refused = "option `beta` is -1; it must be at least 0; `beta`: inverse temperatures";
        let array = |x: FLOAT| Dynamic::from(vec![Dynamic::from(0.5), x.into()] as Array);
        let series = |x: FLOAT| Dynamic::from(Series::Real(vec![0.5, x]));
        assert_eq!((said(beta, array(1.0), "array"), said(beta, series(0.0), "Series")), Default::default());
        assert_eq!(said(beta, array(-1.0), "array"), refused);
        assert_eq!(said(beta, series(-1.0), "Series"), refused);
        for (value, of_type) in [(array(FLOAT::NAN), "array"), (series(FLOAT::NAN), "Series")] {
            assert_eq!(
                said(beta, value, of_type),
                "option `beta` holds NaN; its numbers are finite; a division of zero by zero gives NaN"
            );
        }
        let energies = "`energies` (array or Series or range): where.";
        assert!(said(energies, series(FLOAT::INFINITY), "Series").starts_with("option `energies` holds inf"));
    }
}
