//! Script values as host numbers and back: what the modules for Series, Matrix and Table share.

use std::ops::{Range, RangeInclusive};

use rhai::{Array, Dynamic, FLOAT, INT};

use crate::error::{Error, Result};
use crate::number::{C64, Cell, Column, Number, Series};
use crate::script::registry::name_of;

/// A script value as a number, if it is one.
pub(crate) fn as_number(value: &Dynamic) -> Option<Number> {
    if let Ok(x) = value.as_float() {
        return Some(Number::Real(x));
    }
    if let Ok(i) = value.as_int() {
        return Some(Number::Real(i as FLOAT));
    }
    value.read_lock::<C64>().map(|z| Number::Complex(*z))
}

/// Refuses a whole number that has no float of its own: its last digits would be lost without a word.
pub(crate) fn keeps_its_digits(value: &Dynamic) -> Result<()> {
    match value.as_int() {
        Ok(i) if i as FLOAT as i128 != i128::from(i) => {
            let rounded = i as FLOAT as i128;
            Err(Error::input(format!("the whole number {i} would become {rounded}")).hint(
                "Series and Tables hold floats, with all whole numbers up to 2^53: keep it as a text, `to_string(x)`, \
                 or round it, `x.to_float()`",
            ))
        }
        _ => Ok(()),
    }
}

/// A number for an element of `of`, such as "a Series".
pub(crate) fn element_of(value: &Dynamic, of: &str) -> Result<Number> {
    keeps_its_digits(value)?;
    as_number(value).ok_or_else(|| {
        Error::input(format!("an element of {of} is a number, not {}", type_of(value)))
            .hint("numbers stand without quotes, like 0.25")
    })
}

/// A number as a script value: float or Complex.
pub(crate) fn to_dynamic(number: Number) -> Dynamic {
    match number {
        Number::Real(x) => x.into(),
        Number::Complex(z) => Dynamic::from(z),
    }
}

/// A real script value; `what` names it in the error.
pub(crate) fn real(value: &Dynamic, what: &str) -> Result<f64> {
    match as_number(value) {
        Some(Number::Real(x)) => Ok(x),
        _ => {
            let hint = match value.is_string() {
                true => "numbers stand without quotes, like 0.25",
                false => "like 0.25; of a Complex take `.re`, `.im` or `.abs()`",
            };
            Err(Error::input(format!("{what} is a real number, not {}", type_of(value))).hint(hint))
        }
    }
}

/// The kind of a value, for a message: `a text`, `a Matrix`.
pub(crate) fn type_of(value: &Dynamic) -> String {
    let plain = [
        (value.is_unit(), "nothing"),
        (value.is_bool(), "true or false"),
        (value.is_int() || value.is_float(), "a number"),
        (value.is_string(), "a text"),
        (value.is_char(), "a character"),
        (value.is_array(), "an array"),
        (value.is_map(), "a map"),
        (value.is_fnptr(), "a function"),
        (value.is::<Range<INT>>() || value.is::<RangeInclusive<INT>>(), "a range"),
        (value.is::<C64>(), "a Complex"),
    ];
    match plain.iter().find(|(holds, _)| *holds) {
        Some((_, name)) => (*name).into(),
        None => {
            let name = value.type_name();
            let name = name_of(name.rsplit("::").next().unwrap_or(name).trim_end_matches('>'));
            format!("{} {name}", if name.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" })
        }
    }
}

/// A Series, an array of numbers or a range as a series.
pub(crate) fn to_series(value: &Dynamic) -> Result<Series> {
    if let Some(series) = value.read_lock::<Series>() {
        return Ok(series.clone());
    }
    if let Some(range) = value.read_lock::<Range<INT>>() {
        return whole(range.start, range.end);
    }
    if let Some(range) = value.read_lock::<RangeInclusive<INT>>() {
        return whole(*range.start(), range.end().saturating_add(1));
    }
    let Some(array) = value.read_lock::<Array>() else {
        return Err(Error::input(format!(
            "numbers are given as an array or a Series, not as {}",
            type_of(value)
        ))
        .hint("like `[1.0, 2.0]` or `series([1.0, 2.0])`"));
    };
    array
        .iter()
        .enumerate()
        .map(|(i, x)| {
            keeps_its_digits(x)?;
            as_number(x).ok_or_else(|| {
                Error::input(format!("element {i} is not a number but {}", type_of(x)))
                    .hint("all elements are ints, floats or Complex")
            })
        })
        .collect()
}

/// An array of texts as a column of texts; anything else as a column of numbers.
pub(crate) fn to_column(value: &Dynamic) -> Result<Column> {
    let Some(array) = value.read_lock::<Array>().filter(|a| a.first().is_some_and(Dynamic::is_string)) else {
        return to_series(value).map(Column::Numbers);
    };
    let text = |(i, x): (usize, &Dynamic)| match x.clone().into_immutable_string() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Err(Error::input(format!("element {i} is not a text but {}", type_of(x)))
            .hint("a column holds texts alone, or numbers alone")),
    };
    array.iter().enumerate().map(text).collect::<Result<_>>().map(Column::Texts)
}

/// A column as a script value: a Series or an array of texts.
pub(crate) fn from_column(column: &Column) -> Dynamic {
    match column {
        Column::Numbers(data) => Dynamic::from(data.clone()),
        Column::Texts(data) => data.iter().map(|text| Dynamic::from(text.clone())).collect::<Array>().into(),
    }
}

/// One place of a table, as a script value.
pub(crate) fn from_cell(cell: Cell) -> Dynamic {
    match cell {
        Cell::Number(number) => to_dynamic(number),
        Cell::Text(text) => text.into(),
    }
}

/// A script value as a number or a text, if it is one.
pub(crate) fn as_cell(value: &Dynamic) -> Option<Cell> {
    match value.read_lock::<rhai::ImmutableString>() {
        Some(text) => Some(Cell::Text(text.to_string())),
        None => as_number(value).map(Cell::Number),
    }
}

fn whole(from: INT, to: INT) -> Result<Series> {
    let n = to.saturating_sub(from).max(0);
    if n == 0 {
        return Ok(Series::Real(Vec::new()));
    }
    if from.unsigned_abs().max((to - 1).unsigned_abs()) > 1 << 53 {
        return Err(Error::input(format!("whole numbers from {from} to {to}, of which some would change"))
            .hint("Series hold floats, with all whole numbers up to 2^53"));
    }
    Series::linspace(from as f64, (to - 1) as f64, n as usize)
}

/// The number of something that is numbered from 0, such as "site" or "axis".
pub(crate) fn numbered(n: INT, what: &str) -> Result<usize> {
    usize::try_from(n)
        .map_err(|_| Error::input(format!("{what} {n} is negative")).hint("they are numbered from 0"))
}

/// A count: not negative.
pub(crate) fn count(n: INT, what: &str) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::input(format!("{n} {what}")).hint("a count is zero or more"))
}
