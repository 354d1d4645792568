//! JSON: `{"kind", "names", "columns", ...}`. What JSON has no numbers for is `null` (NaN), `"inf"` and `"-inf"`;
//! complex data are `{"re": [..], "im": [..]}`.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{FileData, check};
use crate::error::{Error, Result};
use crate::number::{C64, Column, Matrix, Series, Table, memory};
use crate::output::Manifest;

/// A number as files have it.
pub fn number(x: f64) -> Value {
    match x {
        x if x.is_finite() => json!(x),
        x if x.is_nan() => Value::Null,
        x if x > 0.0 => json!("inf"),
        _ => json!("-inf"),
    }
}

fn series(data: &Series) -> Value {
    match data {
        Series::Real(data) => data.iter().map(|&x| number(x)).collect(),
        Series::Complex(data) => {
            let part = |f: fn(&C64) -> f64| data.iter().map(|z| number(f(z))).collect::<Value>();
            json!({"re": part(|z| z.re), "im": part(|z| z.im)})
        }
    }
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
            if let Some(title) = t.title() {
                object.insert("title".into(), json!(title));
            }
            if let Some((nx, ny)) = t.grid() {
                object.insert("grid".into(), json!([nx, ny]));
            }
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
            if !t.report().is_empty() {
                object.insert("report".into(), Value::Object(t.report().clone()));
            }
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

/// Writes the data, and the manifest under the key `manifest`.
pub fn save(data: &FileData, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let mut value = to_json(data);
    if let (Value::Object(object), Some(manifest)) = (&mut value, manifest) {
        object.insert("manifest".into(), manifest.to_json());
    }
    let text = match value {
        Value::Object(object) => check::seal(object),
        other => other.to_string(),
    };
    super::write_atomically(path, |out| writeln!(out, "{text}"))
}

fn wrong(what: &str) -> Error {
    Error::file(format!("{what} is not what a saved table, series or matrix has"))
}

fn parse_numbers(value: &Value, what: &str) -> Result<Vec<f64>> {
    let parse = |x: &Value| match x {
        Value::Null => Ok(f64::NAN),
        Value::String(text) if text == "inf" => Ok(f64::INFINITY),
        Value::String(text) if text == "-inf" => Ok(f64::NEG_INFINITY),
        other => other.as_f64().ok_or_else(|| Error::file(format!("`{other}` in {what} is not a number"))),
    };
    value.as_array().ok_or_else(|| wrong(what))?.iter().map(parse).collect()
}

fn parse_series(value: &Value, what: &str) -> Result<Series> {
    let Value::Object(parts) = value else { return Ok(Series::Real(parse_numbers(value, what)?)) };
    let part = |key| parse_numbers(parts.get(key).unwrap_or(&Value::Null), what);
    let (re, im) = (part("re")?, part("im")?);
    if re.len() != im.len() {
        return Err(Error::file(format!("{what} has {} real and {} imaginary parts", re.len(), im.len())));
    }
    Ok(Series::Complex(re.into_iter().zip(im).map(|(re, im)| C64::new(re, im)).collect()))
}

/// A column: texts where the file says so, of another program's where the first of them is no number.
fn parse_column(value: &Value, what: &str, listed: bool, ours: bool) -> Result<Column> {
    let first = value.as_array().and_then(|list| list.first()).and_then(Value::as_str);
    if !listed && (ours || first.is_none_or(|text| ["inf", "-inf"].contains(&text))) {
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

/// The kind that a JSON file says it is of.
pub fn kind(path: &Path) -> Option<String> {
    let (value, _) = check::unseal(&memory::read(path).ok()?).ok()?;
    value.get("kind")?.as_str().map(str::to_string)
}

/// Reads what [`save`] wrote; also a bare array of numbers, or an object of arrays.
pub fn load(path: &Path) -> Result<FileData> {
    let (value, _) = check::unseal(&memory::read(path).map_err(|e| Error::of_io(&e))?)?;
    let Value::Object(object) = &value else {
        return Ok(FileData::Series(parse_series(&value, "the array")?));
    };
    match object.get("kind").and_then(Value::as_str) {
        Some("series") => {
            Ok(FileData::Series(parse_series(object.get("values").unwrap_or(&Value::Null), "`values`")?))
        }
        Some("matrix") => {
            let (rows, cols) = object.get("shape").and_then(sizes).ok_or_else(|| wrong("`shape`"))?;
            let data = parse_series(object.get("values").unwrap_or(&Value::Null), "`values`")?;
            Ok(FileData::Matrix(Matrix::new(rows, cols, data)?))
        }
        _ => {
            let columns = object.get("columns").and_then(Value::as_object).unwrap_or(object);
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
                let data = parse_column(column, &what, listed, object.contains_key("kind"))?;
                table = table.with_column(name, data)?;
            }
            Ok(FileData::Table(dress(table, object)?))
        }
    }
}
