//! Maps of values of all kinds in files. In JSON a map is an object that other programs read as it is, and `types`
//! beside it says what JSON does not: which lists are a Series, say. In archives and HDF5 files numbers, texts, lists
//! of one kind, Series, matrices and columns are arrays, called by their path; `structure` says what they are, and has
//! the rest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::FileData;
use super::archive::MANIFEST;
use super::json::{self, dress, of_number, parse_data, parse_series};
use super::named::{ArrayKind, NamedArray, shaped};
use crate::error::{Error, Result};
use crate::number::{C64, Column, Number, Table};

/// A value of a map in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum SavedValue {
    Nothing,
    Truth(bool),
    Whole(i64),
    Number(Number),
    Letter(char),
    Text(String),
    List(Vec<SavedValue>),
    Map(Vec<(String, SavedValue)>),
    Data(FileData),
}

fn wrong(what: &str) -> Error {
    Error::file(format!("{what} of a map is not what its file says about it"))
}

/// A value as JSON, and what JSON does not say of it.
pub(super) fn encode(value: &SavedValue) -> (Value, Option<Value>) {
    let typed = |value: Value, kind: &str| (value, Some(json!(kind)));
    match value {
        SavedValue::Nothing => (Value::Null, None),
        SavedValue::Truth(x) => (json!(x), None),
        SavedValue::Whole(x) => (json!(x), None),
        SavedValue::Number(Number::Real(x)) if x.is_finite() => (json!(x), None),
        SavedValue::Number(Number::Real(x)) => typed(json::number(*x), "number"),
        SavedValue::Number(Number::Complex(z)) => {
            typed(json!([json::number(z.re), json::number(z.im)]), "complex")
        }
        SavedValue::Letter(x) => typed(json!(x), "letter"),
        SavedValue::Text(x) => (json!(x), None),
        SavedValue::Data(FileData::Series(x)) => typed(json::series(x), "series"),
        SavedValue::Data(data) => typed(data.to_json(), data.kind()),
        SavedValue::List(list) => {
            let (values, types): (Vec<Value>, Vec<Option<Value>>) = list.iter().map(encode).unzip();
            let types = types.into_iter().enumerate().filter_map(|(i, kind)| Some((i.to_string(), kind?)));
            (Value::Array(values), some(types.collect()))
        }
        SavedValue::Map(map) => {
            let (mut values, mut types) = (Map::new(), Map::new());
            for (key, value) in map {
                let (value, kind) = encode(value);
                values.insert(key.clone(), value);
                types.extend(kind.map(|kind| (key.clone(), kind)));
            }
            (Value::Object(values), some(types))
        }
    }
}

fn some(types: Map<String, Value>) -> Option<Value> {
    if types.is_empty() { None } else { Some(Value::Object(types)) }
}

/// The value of some JSON, of this program with what [`encode`] says of it, or of another one.
pub(super) fn decode(value: &Value, kind: Option<&Value>) -> Result<SavedValue> {
    if let Some(kind) = kind.and_then(Value::as_str) {
        return decode_typed(value, kind);
    }
    Ok(match value {
        Value::Null => SavedValue::Nothing,
        Value::Bool(x) => SavedValue::Truth(*x),
        Value::Number(x) => match x.as_i64() {
            Some(x) => SavedValue::Whole(x),
            None => SavedValue::Number(x.as_f64().unwrap_or(f64::NAN).into()),
        },
        Value::String(text) => match json::marked(text) {
            Some(x) => SavedValue::Number(x.into()),
            None => SavedValue::Text(text.clone()),
        },
        Value::Array(list) => {
            let of = |i: usize| kind.and_then(|kind| kind.get(i.to_string()));
            let values = list.iter().enumerate().map(|(i, value)| decode(value, of(i)));
            SavedValue::List(values.collect::<Result<_>>()?)
        }
        Value::Object(map) => {
            let of = |key: &str| kind.and_then(|kind| kind.get(key));
            let values = map.iter().map(|(key, value)| Ok((key.clone(), decode(value, of(key))?)));
            SavedValue::Map(values.collect::<Result<_>>()?)
        }
    })
}

fn decode_typed(value: &Value, kind: &str) -> Result<SavedValue> {
    let number = |value: &Value| of_number(value).ok_or_else(|| wrong("a number"));
    Ok(match kind {
        "number" => SavedValue::Number(number(value)?.into()),
        "complex" => match value.as_array().map(Vec::as_slice) {
            Some([re, im]) => SavedValue::Number(C64::new(number(re)?, number(im)?).into()),
            _ => return Err(wrong("a complex number")),
        },
        "letter" => {
            let letter = value.as_str().and_then(|text| text.chars().next());
            SavedValue::Letter(letter.ok_or_else(|| wrong("a letter"))?)
        }
        "series" => SavedValue::Data(parse_series(value, "a Series")?.into()),
        "table" | "matrix" => {
            let object = value.as_object().ok_or_else(|| wrong("a table or matrix"))?;
            SavedValue::Data(parse_data(object)?.ok_or_else(|| wrong("a table or matrix"))?)
        }
        _ => return Err(Error::file(format!("a map with a value of the unknown kind `{kind}`"))),
    })
}

/// The arrays of a map, and what they are.
#[derive(Default)]
struct ArrayTree {
    arrays: Vec<NamedArray>,
}

impl ArrayTree {
    fn place(&mut self, name: &str, shape: Vec<u64>, data: impl Into<Column>, kind: ArrayKind) -> Value {
        self.arrays.push(NamedArray { name: name.into(), shape, data: data.into(), kind });
        json!(name)
    }

    /// What stands for a value of this path.
    fn add(&mut self, path: &str, value: &SavedValue) -> Value {
        let floats = ArrayKind::Floats;
        match value {
            SavedValue::Map(map) => {
                let mut names = BTreeSet::new();
                let mut inside = Map::new();
                for (key, value) in map {
                    let own = component(key, path.is_empty(), &mut names);
                    let below = if path.is_empty() { own } else { format!("{path}/{own}") };
                    inside.insert(key.clone(), self.add(&below, value));
                }
                json!({ "map": inside })
            }
            SavedValue::Number(Number::Real(x)) => {
                json!({ "number": self.place(path, Vec::new(), vec![*x], floats) })
            }
            SavedValue::Number(Number::Complex(z)) => {
                json!({ "complex": self.place(path, Vec::new(), vec![*z], floats) })
            }
            SavedValue::Whole(x) if exact(*x) => {
                json!({ "int": self.place(path, Vec::new(), vec![*x as f64], ArrayKind::Ints) })
            }
            SavedValue::Truth(x) => {
                let x = f64::from(u8::from(*x));
                json!({ "bool": self.place(path, Vec::new(), vec![x], ArrayKind::Truths) })
            }
            SavedValue::Text(text) if !text.contains('\0') => {
                json!({ "text": self.place(path, Vec::new(), vec![text.clone()], floats) })
            }
            SavedValue::Data(FileData::Series(x)) => {
                json!({ "series": self.place(path, vec![x.len() as u64], x.clone(), floats) })
            }
            SavedValue::Data(FileData::Matrix(m)) => {
                let shape = vec![m.rows() as u64, m.cols() as u64];
                json!({ "matrix": self.place(path, shape, m.data().clone(), floats) })
            }
            SavedValue::Data(FileData::Table(table)) => {
                let mut names = BTreeSet::new();
                let mut columns = Vec::new();
                for (name, data) in table.columns() {
                    let below = format!("{path}/{}", component(name, false, &mut names));
                    let place = self.place(&below, vec![data.len() as u64], data.clone(), floats);
                    columns.push(json!([name, place]));
                }
                let mut about = json::about_table(table);
                about.insert("columns".into(), Value::Array(columns));
                json!({ "table": about })
            }
            SavedValue::List(list) => match self.list(path, list) {
                Some((kind, place)) => json!({ "list": place, "of": kind }),
                None => plain(value),
            },
            SavedValue::Nothing | SavedValue::Whole(_) | SavedValue::Letter(_) | SavedValue::Text(_) => {
                plain(value)
            }
        }
    }

    /// A list of one kind as an array; nothing of another one.
    fn list(&mut self, path: &str, list: &[SavedValue]) -> Option<(&'static str, Value)> {
        fn all<T>(list: &[SavedValue], of: impl Fn(&SavedValue) -> Option<T>) -> Option<Vec<T>> {
            list.iter().map(of).collect()
        }
        let shape = vec![list.len() as u64];
        let (kind, data, stored): (_, Column, _) = match list.first()? {
            SavedValue::Whole(_) => {
                let whole = |x: &SavedValue| match x {
                    SavedValue::Whole(x) if exact(*x) => Some(*x as f64),
                    _ => None,
                };
                ("int", all(list, whole)?.into(), ArrayKind::Ints)
            }
            SavedValue::Number(Number::Real(_)) => {
                let real = |x: &SavedValue| match x {
                    SavedValue::Number(Number::Real(x)) => Some(*x),
                    _ => None,
                };
                ("number", all(list, real)?.into(), ArrayKind::Floats)
            }
            SavedValue::Number(Number::Complex(_)) => {
                let complex = |x: &SavedValue| match x {
                    SavedValue::Number(Number::Complex(z)) => Some(*z),
                    _ => None,
                };
                ("complex", all(list, complex)?.into(), ArrayKind::Floats)
            }
            SavedValue::Truth(_) => {
                let truth = |x: &SavedValue| match x {
                    SavedValue::Truth(x) => Some(f64::from(u8::from(*x))),
                    _ => None,
                };
                ("bool", all(list, truth)?.into(), ArrayKind::Truths)
            }
            SavedValue::Text(_) => {
                let text = |x: &SavedValue| match x {
                    SavedValue::Text(x) if !x.contains('\0') => Some(x.clone()),
                    _ => None,
                };
                ("text", all(list, text)?.into(), ArrayKind::Floats)
            }
            _ => return None,
        };
        Some((kind, self.place(path, shape, data, stored)))
    }
}

/// Whether a float holds the number.
fn exact(x: i64) -> bool {
    x.unsigned_abs() <= 1 << 53
}

/// What no array holds, as JSON.
fn plain(value: &SavedValue) -> Value {
    let (value, kind) = encode(value);
    json!({ "json": value, "types": kind })
}

/// A part of a path that no other key here has, and that means no group or file of its own.
fn component(key: &str, top: bool, taken: &mut BTreeSet<String>) -> String {
    let plain = key.replace(['/', '\0', '\\'], "_");
    let plain = match plain.as_str() {
        "" | "." | ".." => "_".to_string(),
        MANIFEST if top => "_manifest.json".to_string(),
        _ => plain,
    };
    let mut own = plain.clone();
    let mut count = 1;
    while !taken.insert(own.clone()) {
        count += 1;
        own = format!("{plain}_{count}");
    }
    own
}

/// The arrays of a map, and what a file says about them.
pub(super) fn split_map(map: &[(String, SavedValue)]) -> (Map<String, Value>, Vec<NamedArray>) {
    let mut tree = ArrayTree::default();
    let structure = tree.add("", &SavedValue::Map(map.to_vec()));
    let mut about = Map::new();
    about.insert("kind".into(), json!("map"));
    about.insert("names".into(), tree.arrays.iter().map(|array| array.name.as_str()).collect());
    about.insert("structure".into(), structure);
    (about, tree.arrays)
}

/// The map of what [`split_map`] made.
///
/// # Errors
/// Arrays that are not what the file says about them.
pub(super) fn joined_map(
    arrays: Vec<NamedArray>,
    about: &Map<String, Value>,
) -> Result<Vec<(String, SavedValue)>> {
    let mut arrays: BTreeMap<String, NamedArray> =
        arrays.into_iter().map(|array| (array.name.clone(), array)).collect();
    match value_of(about.get("structure").unwrap_or(&Value::Null), &mut arrays)? {
        SavedValue::Map(map) => Ok(map),
        _ => Err(wrong("the structure")),
    }
}

fn value_of(told: &Value, arrays: &mut BTreeMap<String, NamedArray>) -> Result<SavedValue> {
    let told = told.as_object().ok_or_else(|| wrong("the structure"))?;
    let (kind, inside) = told.iter().next().ok_or_else(|| wrong("the structure"))?;
    match kind.as_str() {
        "map" => {
            let inside = inside.as_object().ok_or_else(|| wrong("the structure"))?;
            let values = inside.iter().map(|(key, told)| Ok((key.clone(), value_of(told, arrays)?)));
            return values.collect::<Result<_>>().map(SavedValue::Map);
        }
        "json" => return decode(inside, told.get("types")),
        "table" => return table_of(inside, arrays).map(|table| SavedValue::Data(table.into())),
        _ => {}
    }
    let array = taken(inside, arrays)?;
    let name = array.name.clone();
    let wrong = || wrong(&format!("`{name}`"));
    match kind.as_str() {
        "series" | "matrix" => shaped(&array.shape, array.data.numbers(&name)?.clone()).map(SavedValue::Data),
        "list" => {
            let of = told.get("of").and_then(Value::as_str).ok_or_else(wrong)?;
            elements(array.data, of).ok_or_else(wrong).map(SavedValue::List)
        }
        one => elements(array.data, one).and_then(|all| all.into_iter().next()).ok_or_else(wrong),
    }
}

fn taken(name: &Value, arrays: &mut BTreeMap<String, NamedArray>) -> Result<NamedArray> {
    name.as_str().and_then(|name| arrays.remove(name)).ok_or_else(|| wrong("an array"))
}

fn table_of(told: &Value, arrays: &mut BTreeMap<String, NamedArray>) -> Result<Table> {
    let about = told.as_object().ok_or_else(|| wrong("a table"))?;
    let columns = about.get("columns").and_then(Value::as_array).ok_or_else(|| wrong("a table"))?;
    let mut table = Table::new();
    for column in columns {
        let name = column.get(0).and_then(Value::as_str).ok_or_else(|| wrong("a column"))?;
        table = table.with_column(name, taken(column.get(1).unwrap_or(&Value::Null), arrays)?.data)?;
    }
    dress(table, about)
}

/// The elements of an array as values of this kind.
fn elements(data: Column, kind: &str) -> Option<Vec<SavedValue>> {
    let value = |x: Number| match (kind, x) {
        ("int", Number::Real(x)) => Some(SavedValue::Whole(x as i64)),
        ("bool", Number::Real(x)) => Some(SavedValue::Truth(x != 0.0)),
        ("number", Number::Real(_)) | ("complex", Number::Complex(_)) => Some(SavedValue::Number(x)),
        // NumPy may have made real ones of them.
        ("complex", Number::Real(x)) => Some(SavedValue::Number(C64::new(x, 0.0).into())),
        _ => None,
    };
    match data {
        Column::Numbers(data) => (0..data.len()).map(|i| value(data.get(i)?)).collect(),
        Column::Texts(texts) if kind == "text" => Some(texts.into_iter().map(SavedValue::Text).collect()),
        Column::Texts(_) => None,
    }
}
