//! JSON files: data and maps of this program, and objects of others, which may have numbers that JSON does not know,
//! `NaN` and `Infinity`.

use std::path::Path;

use serde_json::{Map, Value};

use super::json::{MARK, parse_column, parse_data, parse_series, to_json};
use super::maps::{SavedValue, decode, encode};
use super::{Contents, FileData, check};
use crate::error::{Error, Result};
use crate::number::{Table, memory};
use crate::output::Manifest;

/// Writes the data, and the manifest under the key `manifest`.
pub fn save(data: &FileData, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    match to_json(data) {
        Value::Object(object) => write(object, path, manifest),
        _ => Err(Error::internal("data that are no object")),
    }
}

/// Writes a map.
pub(super) fn save_map(map: &[(String, SavedValue)], path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let (values, types) = encode(&SavedValue::Map(map.to_vec()));
    let mut object = Map::new();
    object.insert("kind".into(), "map".into());
    object.insert("values".into(), values);
    object.extend(types.map(|types| ("types".to_string(), types)));
    write(object, path, manifest)
}

fn write(mut object: Map<String, Value>, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    object.extend(manifest.map(|manifest| ("manifest".to_string(), manifest.to_json())));
    let text = check::seal(object);
    super::write_atomically(path, |out| writeln!(out, "{text}"))
}

/// The kind that a JSON file says it is of.
pub fn kind(path: &Path) -> Option<String> {
    let (value, _) = check::unseal(&memory::read(path).ok()?).ok()?;
    value.get("kind")?.as_str().map(str::to_string)
}

/// A text of another program with what stands for numbers that JSON does not know made texts with a mark.
fn with_marks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut inside) = (text, false);
    while let Some(c) = rest.chars().next() {
        let word =
            ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| !inside && rest.starts_with(word));
        let taken = match word {
            Some(word) => {
                out.push_str(&format!("\"{MARK}{word}\""));
                word.len()
            }
            None => {
                // A quote behind a backslash ends no text.
                let taken = match c {
                    '\\' if inside => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                    _ => c.len_utf8(),
                };
                inside ^= c == '"';
                out.push_str(&rest[..taken]);
                taken
            }
        };
        rest = &rest[taken..];
    }
    out
}

fn read(text: &[u8]) -> Result<Value> {
    match check::unseal(text) {
        Ok((value, _)) => Ok(value),
        Err(e) => {
            let Ok(plain) = std::str::from_utf8(text) else { return Err(e) };
            if !plain.contains("NaN") && !plain.contains("Infinity") {
                return Err(e);
            }
            check::unseal(with_marks(plain).as_bytes()).map(|(value, _)| value)
        }
    }
}

/// Reads what [`save`] and [`save_map`] wrote, and files of others: a bare array of numbers, a list of objects with the
/// same keys or an object of lists of one length, which are tables, and any other object, which is a map.
pub fn load(path: &Path) -> Result<Contents> {
    let value = read(&memory::read(path).map_err(|e| Error::of_io(&e))?)?;
    let object = match &value {
        Value::Object(object) => object,
        Value::Array(list) if list.first().is_some_and(Value::is_object) => {
            return records(list).map(|table| Contents::One(table.into()));
        }
        other => return Ok(Contents::One(parse_series(other, "the array")?.into())),
    };
    if let Some(data) = parse_data(object)? {
        return Ok(Contents::One(data));
    }
    if object.get("kind").and_then(Value::as_str) == Some("map")
        && let Some(values) = object.get("values").filter(|values| values.is_object())
    {
        return map(decode(values, object.get("types"))?);
    }
    match table(object) {
        Some(table) => Ok(Contents::One(table.into())),
        None => map(decode(&value, None)?),
    }
}

fn map(value: SavedValue) -> Result<Contents> {
    match value {
        SavedValue::Map(map) => Ok(Contents::Map(map)),
        _ => Err(Error::file("a map that is none")),
    }
}

/// The table that an object of another program is, if it holds lists of one length.
fn table(object: &Map<String, Value>) -> Option<Table> {
    let mut table = Table::new();
    for (name, column) in object {
        let data = parse_column(column, name, false, false).ok()?;
        table = table.with_column(name.as_str(), data).ok()?;
    }
    (!object.is_empty()).then_some(table)
}

/// The table of a list of objects, a row each.
fn records(list: &[Value]) -> Result<Table> {
    let none = Map::new();
    let first = list.first().and_then(Value::as_object).unwrap_or(&none);
    let mut columns: Map<String, Value> = Map::new();
    for (i, row) in list.iter().enumerate() {
        let row = row.as_object().unwrap_or(&none);
        if row.len() != first.len() || first.keys().any(|key| !row.contains_key(key)) {
            return Err(Error::file(format!("object {i} of the list has other keys than the first one"))
                .hint("objects of the same keys are the rows of a table"));
        }
        for (key, value) in row {
            let column = columns.entry(key.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            column.as_array_mut().into_iter().for_each(|column| column.push(value.clone()));
        }
    }
    let mut table = Table::new();
    for (name, column) in &columns {
        let data = parse_column(column, &format!("`{name}`"), false, false)?;
        table = table.with_column(name.as_str(), data)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_does_not_know_are_marked() {
        let text = r#"{"a": [NaN, -Infinity, 1], "NaN": "Infinity \" NaN \\", "é\"NaN": Infinity}"#;
        let value: Value = serde_json::from_str(&with_marks(text)).unwrap();
        assert_eq!(value["a"][0], format!("{MARK}NaN"));
        assert_eq!(value["a"][1], format!("{MARK}-Infinity"));
        assert_eq!(value["NaN"], "Infinity \" NaN \\");
        assert_eq!(value["é\"NaN"], format!("{MARK}Infinity"));
    }
}
