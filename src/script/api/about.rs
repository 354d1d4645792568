//! The properties of a state or of walkers in their files: a map of values in JSON. Handles are left out.

use rhai::{Array, Dynamic, ImmutableString, Map};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::number::{C64, Column, Series, Table};
use crate::output::files;

/// Whether a value can stand in such a file.
pub fn fits(value: &Dynamic) -> bool {
    let whole = |map: &Map| map.values().all(fits);
    value.read_lock::<Map>().map_or_else(|| value_to_json(value).is_some(), |map| whole(&map))
}

/// The map, without what no file can hold.
pub fn to_json(about: &Map) -> Value {
    let kept = about.iter().filter_map(|(key, value)| Some((key.to_string(), value_to_json(value)?)));
    Value::Object(kept.collect())
}

/// The map back; empty of what is no map.
pub fn from_json(about: &Value) -> Map {
    let all = about.as_object().into_iter().flatten();
    all.map(|(key, value)| (key.into(), value_from_json(value))).collect()
}

/// The map as the text of a file that ends with a check, and the names of the files that belong to it.
pub fn sealed(about: &Map, beside: &[String]) -> String {
    let inside = [("values".to_string(), to_json(about)), ("files".to_string(), json!(beside))];
    files::seal(inside.into_iter().collect())
}

/// Reads what [`sealed`] wrote: the map, and the files; none where an older version did not name them.
///
/// # Errors
/// A file that is damaged or is none of these.
pub fn unsealed(text: &[u8]) -> Result<(Map, Option<Vec<String>>)> {
    let (json, checked) = files::unseal(text)?;
    let beside = json.get("files").and_then(Value::as_array);
    let beside =
        beside.map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_string)).collect());
    match json.get("values") {
        Some(values) if checked => Ok((from_json(values), beside)),
        _ => Err(Error::file("it is damaged, or not a file of values")),
    }
}

/// A number; JSON has none for what is not finite, which is written as a text.
fn number(x: f64) -> Value {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}

fn numbers(x: &[f64]) -> Vec<Value> {
    x.iter().copied().map(number).collect()
}

fn pair(z: &C64) -> [Value; 2] {
    [number(z.re), number(z.im)]
}

fn series_to_json(series: &Series) -> Value {
    match series {
        Series::Real(x) => json!({ "series": numbers(x) }),
        Series::Complex(x) => json!({ "complex_series": x.iter().map(pair).collect::<Vec<_>>() }),
    }
}

fn value_to_json(value: &Dynamic) -> Option<Value> {
    if let Ok(x) = value.as_float() {
        return Some(if x.is_finite() { json!(x) } else { json!({ "number": number(x) }) });
    }
    if let Ok(x) = value.as_int() {
        return Some(json!(x));
    }
    if let Ok(x) = value.as_bool() {
        return Some(json!(x));
    }
    if let Some(x) = value.read_lock::<ImmutableString>() {
        return Some(json!(x.as_str()));
    }
    if let Some(z) = value.read_lock::<C64>() {
        return Some(json!({ "complex": pair(&z) }));
    }
    if let Some(x) = value.read_lock::<Series>() {
        return Some(series_to_json(&x));
    }
    if let Some(table) = value.read_lock::<Table>() {
        let column = |(name, data): (&str, &Column)| match data {
            Column::Numbers(Series::Real(x)) => json!([name, numbers(x)]),
            Column::Numbers(data) => json!([name, series_to_json(data)]),
            Column::Texts(data) => json!([name, { "texts": data }]),
        };
        return Some(json!({ "table": table.columns().map(column).collect::<Vec<_>>() }));
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(value_to_json).collect::<Option<Vec<_>>>().map(Value::Array);
    }
    value.read_lock::<Map>().map(|map| json!({ "map": to_json(&map) }))
}

fn real(value: &Value) -> f64 {
    // Older files have null for what is not finite.
    let text = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    value.as_f64().or_else(|| text(value)).unwrap_or(f64::NAN)
}

fn reals(value: &Value) -> Series {
    Series::Real(value.as_array().into_iter().flatten().map(real).collect())
}

fn series_from_json(value: &Value) -> Series {
    match value.get("complex_series").and_then(Value::as_array) {
        Some(list) => Series::Complex(list.iter().map(|z| C64::new(real(&z[0]), real(&z[1]))).collect()),
        None => reals(value.get("series").unwrap_or(value)),
    }
}

fn column_from_json(value: &Value) -> Column {
    match value.get("texts").and_then(Value::as_array) {
        Some(list) => Column::Texts(list.iter().map(|t| t.as_str().unwrap_or_default().into()).collect()),
        None => series_from_json(value).into(),
    }
}

fn value_from_json(value: &Value) -> Dynamic {
    match value {
        Value::Number(n) => n.as_i64().map_or_else(|| real(value).into(), Dynamic::from),
        Value::Bool(b) => (*b).into(),
        Value::String(text) => text.into(),
        Value::Array(list) => list.iter().map(value_from_json).collect::<Array>().into(),
        Value::Object(map) if map.contains_key("map") => from_json(&map["map"]).into(),
        Value::Object(map) if map.contains_key("number") => real(&map["number"]).into(),
        Value::Object(map) if map.contains_key("complex") => {
            Dynamic::from(C64::new(real(&map["complex"][0]), real(&map["complex"][1])))
        }
        Value::Object(map) if map.contains_key("table") => {
            let columns = map["table"].as_array().into_iter().flatten();
            let columns =
                columns.map(|c| (c[0].as_str().unwrap_or("?").to_string(), column_from_json(&c[1])));
            Table::from_columns(columns).map_or(Dynamic::UNIT, Dynamic::from)
        }
        Value::Object(_) => Dynamic::from(series_from_json(value)),
        Value::Null => f64::NAN.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_comes_back() {
        let z = C64::new(0.5, -2.0);
        let table = Table::from_columns([
            ("x".to_string(), Column::from(vec![1.0, f64::NAN])),
            ("z".to_string(), Column::from(vec![z, z.conj()])),
            ("way".to_string(), Column::from(vec!["csr".to_string(), "ell".to_string()])),
        ])
        .expect("a table");
        let mut inner = Map::new();
        inner.insert("name".into(), "look-ahead".into());
        let mut about = Map::new();
        about.insert("energy".into(), (-1.5).into());
        about.insert("below".into(), f64::NEG_INFINITY.into());
        about.insert("ends".into(), Dynamic::from(Series::Real(vec![f64::INFINITY, -0.0, 1e300])));
        about.insert("sweeps".into(), 7_i64.into());
        about.insert("done".into(), true.into());
        about.insert("gap".into(), Dynamic::from(z));
        about.insert("settings".into(), inner.into());
        about.insert("list".into(), vec![Dynamic::from(1.0), Dynamic::from(2_i64)].into());
        about.insert("table".into(), Dynamic::from(table.clone()));
        about.insert("handle".into(), Dynamic::from(std::rc::Rc::new(3)));

        let text = sealed(&about, &["x.npz".into()]);
        let damaged = text.replace("-1.5", "-2.5");
        assert!(unsealed(damaged.as_bytes()).is_err(), "a digit changed");
        assert!(unsealed(b"{\"values\":{}}").is_err(), "no check");
        let (back, beside) = unsealed(text.as_bytes()).expect("as written");
        assert_eq!(beside, Some(vec!["x.npz".to_string()]));
        assert_eq!(back["below"].as_float(), Ok(f64::NEG_INFINITY));
        let ends = back["ends"].clone().cast::<Series>();
        assert_eq!(ends.as_real("ends").expect("real"), [f64::INFINITY, -0.0, 1e300]);
        assert_eq!(back.len(), about.len() - 1, "handles are left out: {text}");
        assert_eq!(back["energy"].as_float(), Ok(-1.5));
        assert_eq!(back["sweeps"].as_int(), Ok(7));
        assert_eq!(back["done"].as_bool(), Ok(true));
        assert_eq!(back["gap"].clone().cast::<C64>(), z);
        assert_eq!(
            back["settings"].clone().cast::<Map>()["name"].clone().into_string(),
            Ok("look-ahead".into())
        );
        assert_eq!(back["list"].clone().cast::<Array>()[1].as_int(), Ok(2));
        let columns = back["table"].clone().cast::<Table>();
        let columns: Vec<_> = columns.columns().map(|(name, _)| name.to_string()).collect();
        assert_eq!(columns, ["x", "z", "way"]);
        assert_eq!(back["table"].clone().cast::<Table>().get("way"), table.get("way"));
    }
}
