//! JSON: `{"kind", "names", "columns", ...}`. What JSON has no numbers for is `null` (NaN), `"inf"` and `"-inf"`;
//! complex data are `{"re": [..], "im": [..]}`.

use serde_json::{Map, Value, json};

use super::FileData;
use crate::error::{Error, Result};
use crate::number::{C64, Column, Matrix, Series, Table};

/// A number as files have it.
pub fn number(x: f64) -> Value {
    match x {
        x if x.is_finite() => json!(x),
        x if x.is_nan() => Value::Null,
        x if x > 0.0 => json!("inf"),
        _ => json!("-inf"),
    }
}

/// The numbers of a series.
pub(super) fn series(data: &Series) -> Value {
    match data {
        Series::Real(data) => data.iter().map(|&x| number(x)).collect(),
        Series::Complex(data) => {
            let part = |f: fn(&C64) -> f64| data.iter().map(|z| number(f(z))).collect::<Value>();
            json!({"re": part(|z| z.re), "im": part(|z| z.im)})
        }
    }
}

/// What a table is besides its columns, for [`dress`].
pub(super) fn about_table(table: &Table) -> Map<String, Value> {
    let mut about = Map::new();
    if let Some(title) = table.title() {
        about.insert("title".into(), json!(title));
    }
    if let Some((nx, ny)) = table.grid() {
        about.insert("grid".into(), json!([nx, ny]));
    }
    if !table.report().is_empty() {
        about.insert("report".into(), Value::Object(table.report().clone()));
    }
    about
}

/// The data as a JSON value, for files and for results on standard output.
pub(crate) fn to_json(data: &FileData) -> Value {
    match data {
        FileData::Series(x) => json!({"kind": "series", "values": series(x)}),
        FileData::Matrix(m) => {
            json!({"kind": "matrix", "shape": [m.rows(), m.cols()], "values": series(m.data())})
        }
        FileData::Table(t) => {
            let mut object = Map::new();
            object.insert("kind".into(), json!("table"));
            let mut about = about_table(t);
            let report = about.shift_remove("report");
            object.extend(about);
            // Other programs may change the order of an object's keys; `names` keeps it.
            object.insert("names".into(), t.names().collect());
            let column = |data: &Column| match data {
                Column::Numbers(data) => series(data),
                Column::Texts(data) => json!(data),
            };
            let columns: Map<String, Value> =
                t.columns().map(|(name, data)| (name.into(), column(data))).collect();
            let texts = t.columns().filter(|(_, data)| matches!(data, Column::Texts(_)));
            let texts: Vec<&str> = texts.map(|(name, _)| name).collect();
            if !texts.is_empty() {
                object.insert("texts".into(), json!(texts));
            }
            object.insert("columns".into(), Value::Object(columns));
            object.extend(report.map(|report| ("report".to_string(), report)));
            Value::Object(object)
        }
    }
}

impl FileData {
    /// The data as a JSON value, as [`super::save`] writes it.
    pub fn to_json(&self) -> Value {
        to_json(self)
    }
}

fn wrong(what: &str) -> Error {
    Error::file(format!("{what} is not what a saved table, series or matrix has"))
}

/// What stands before a number for which JSON has none, where another program has written it: `NaN`, `Infinity`.
pub(super) const MARK: char = '\u{e000}';

/// The number that a text with this mark is.
pub(super) fn marked(text: &str) -> Option<f64> {
    text.strip_prefix(MARK)?.parse().ok()
}

/// A number as files have it.
pub(super) fn of_number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(f64::NAN),
        Value::String(text) if text == "inf" => Some(f64::INFINITY),
        Value::String(text) if text == "-inf" => Some(f64::NEG_INFINITY),
        Value::String(text) => marked(text),
        other => other.as_f64(),
    }
}

fn parse_numbers(value: &Value, what: &str) -> Result<Vec<f64>> {
    let parse =
        |x: &Value| of_number(x).ok_or_else(|| Error::file(format!("`{x}` in {what} is not a number")));
    value.as_array().ok_or_else(|| wrong(what))?.iter().map(parse).collect()
}

/// The numbers of a series from a file; `what` is its name in errors.
pub(super) fn parse_series(value: &Value, what: &str) -> Result<Series> {
    let Value::Object(parts) = value else { return Ok(Series::Real(parse_numbers(value, what)?)) };
    let part = |key| parse_numbers(parts.get(key).unwrap_or(&Value::Null), what);
    let (re, im) = (part("re")?, part("im")?);
    if re.len() != im.len() {
        return Err(Error::file(format!("{what} has {} real and {} imaginary parts", re.len(), im.len())));
    }
    Ok(Series::Complex(re.into_iter().zip(im).map(|(re, im)| C64::new(re, im)).collect()))
}

/// A column: texts where the file says so, of another program's where the first of them is no number.
pub(super) fn parse_column(value: &Value, what: &str, listed: bool, ours: bool) -> Result<Column> {
    let first = value.as_array().and_then(|list| list.first());
    let number = first.is_none_or(|first| !first.is_string() || of_number(first).is_some());
    if !listed && (ours || number) {
        return parse_series(value, what).map(Column::Numbers);
    }
    let text = |x: &Value| match x.as_str() {
        Some(text) => Ok(text.to_string()),
        None => Err(Error::file(format!("`{x}` in {what} is not a text"))),
    };
    let texts = value.as_array().ok_or_else(|| wrong(what))?.iter().map(text);
    texts.collect::<Result<_>>().map(Column::Texts)
}

fn sizes(value: &Value) -> Option<(usize, usize)> {
    match value.as_array()?.as_slice() {
        [a, b] => Some((a.as_u64()? as usize, b.as_u64()? as usize)),
        _ => None,
    }
}

/// The table that a saved JSON object describes, its columns given.
pub(super) fn dress(mut table: Table, object: &Map<String, Value>) -> Result<Table> {
    if let Some(title) = object.get("title").and_then(Value::as_str) {
        table = table.with_title(title);
    }
    if let Some(report) = object.get("report").and_then(Value::as_object) {
        for (key, value) in report {
            table = table.with_report(key, value.clone());
        }
    }
    match object.get("grid").and_then(sizes) {
        Some((nx, ny)) => table.with_grid(nx, ny),
        None => Ok(table),
    }
}

/// What an object of this program's is, by its `kind`; nothing of another one.
///
/// # Errors
/// An object that is not what it says.
pub(super) fn parse_data(object: &Map<String, Value>) -> Result<Option<FileData>> {
    match object.get("kind").and_then(Value::as_str) {
        Some("series") => match object.get("values") {
            Some(values) => parse_series(values, "`values`").map(|data| Some(data.into())),
            None => Ok(None),
        },
        Some("matrix") => {
            let (Some(values), Some(shape)) = (object.get("values"), object.get("shape")) else {
                return Ok(None);
            };
            let (rows, cols) = sizes(shape).ok_or_else(|| wrong("`shape`"))?;
            Ok(Some(Matrix::new(rows, cols, parse_series(values, "`values`")?)?.into()))
        }
        Some("table") => {
            let Some(columns) = object.get("columns").and_then(Value::as_object) else { return Ok(None) };
            let names: Vec<String> = match object.get("names").and_then(Value::as_array) {
                Some(names) => names.iter().filter_map(|n| n.as_str().map(str::to_string)).collect(),
                None => columns.keys().cloned().collect(),
            };
            let texts = object.get("texts").and_then(Value::as_array);
            let mut table = Table::new();
            for name in names {
                let what = format!("column `{name}`");
                let listed = texts.is_some_and(|texts| texts.iter().any(|text| *text == json!(name)));
                let column = columns.get(&name).unwrap_or(&Value::Null);
                table = table.with_column(name, parse_column(column, &what, listed, true)?)?;
            }
            Ok(Some(FileData::Table(dress(table, object)?)))
        }
        _ => Ok(None),
    }
}
