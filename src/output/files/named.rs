//! Data as named arrays with shapes, as archives and HDF5 files hold them, and back.

use serde_json::{Map, Value, json};

use super::json::dress;
use super::{Contents, FileData, Member};
use crate::error::{Error, Result};
use crate::number::{Column, Matrix, Series, Table};

/// As what the numbers of an array stand in a file. All are read as floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrayKind {
    /// Floats, complex numbers, and texts.
    Floats,
    Ints,
    Truths,
}

/// An array with its name.
pub(super) struct NamedArray {
    pub name: String,
    pub shape: Vec<u64>,
    pub data: Column,
    pub kind: ArrayKind,
}

/// The arrays of some data, and what a file says about them.
pub(super) fn split(data: &FileData) -> (Map<String, Value>, Vec<NamedArray>) {
    let mut about = Map::new();
    about.insert("kind".into(), json!(data.kind()));
    let kind = ArrayKind::Floats;
    let one =
        |name: &str, shape: Vec<u64>, data: Column| vec![NamedArray { name: name.into(), shape, data, kind }];
    let arrays = match data {
        FileData::Series(series) => one("series", vec![series.len() as u64], series.clone().into()),
        FileData::Matrix(m) => one("matrix", vec![m.rows() as u64, m.cols() as u64], m.data().clone().into()),
        FileData::Table(table) => {
            about.insert("names".into(), table.names().collect());
            if let Some(title) = table.title() {
                about.insert("title".into(), json!(title));
            }
            if let Some((nx, ny)) = table.grid() {
                about.insert("grid".into(), json!([nx, ny]));
            }
            about.insert("report".into(), Value::Object(table.report().clone()));
            let column = |(name, data): (&str, &Column)| NamedArray {
                name: name.to_string(),
                shape: vec![data.len() as u64],
                data: data.clone(),
                kind,
            };
            table.columns().map(column).collect()
        }
    };
    (about, arrays)
}

/// Numbers of a shape: a series, or a matrix.
pub(super) fn shaped(shape: &[u64], data: Series) -> Result<FileData> {
    match shape {
        [] | [_] => Ok(FileData::Series(data)),
        [rows, cols] => Ok(FileData::Matrix(Matrix::new(*rows as usize, *cols as usize, data)?)),
        _ => Err(Error::file(format!("an array of {} dimensions; one or two can be read", shape.len()))
            .hint("in NumPy, `x.reshape(x.shape[0], -1)` has two of them")),
    }
}

/// An array that stands on its own.
fn part(shape: &[u64], data: Column) -> Result<Member> {
    Ok(match (shape, data) {
        ([], Column::Numbers(data)) => {
            Member::Number(data.get(0).ok_or_else(|| Error::file("an array of nothing"))?)
        }
        ([] | [_], Column::Texts(texts)) => Member::Texts(texts),
        (_, Column::Numbers(data)) => Member::Data(shaped(shape, data)?),
        (_, Column::Texts(_)) => {
            return Err(Error::file("texts in several dimensions").hint("in NumPy, `x.ravel()` has one"));
        }
    })
}

/// What a file of arrays holds: what [`split`] made, or arrays of others. Where those cannot be the columns of one
/// table, each is on its own.
///
/// # Errors
/// Arrays that are not what the file says about them, or of three dimensions.
pub(super) fn arranged(arrays: Vec<NamedArray>, about: &Map<String, Value>) -> Result<Contents> {
    let kind = about.get("kind").and_then(Value::as_str).unwrap_or_default();
    if let "series" | "matrix" = kind {
        return match <[_; 1]>::try_from(arrays) {
            Ok([NamedArray { name, shape, data, .. }]) => {
                Ok(Contents::One(shaped(&shape, data.numbers(&name)?.clone())?))
            }
            Err(_) => Err(Error::file(format!("its manifest tells of a {kind}, which is one array"))),
        };
    }
    let rows = arrays.first().map_or(0, |first| first.data.len());
    let columns = arrays.iter().all(|array| array.shape.len() == 1 && array.data.len() == rows);
    if kind.is_empty() && !columns {
        let each = arrays.into_iter().map(|NamedArray { name, shape, data, .. }| {
            let part = part(&shape, data).map_err(|e| e.context(format_args!("array `{name}`")))?;
            Ok((name, part))
        });
        return each.collect::<Result<_>>().map(Contents::Several);
    }
    let table = arrays.into_iter().try_fold(
        Table::new(),
        |table, NamedArray { name, shape, data, .. }| match shape.len() {
            0 | 1 => table.with_column(name, data),
            n => Err(Error::file(format!("array `{name}` has {n} dimensions and cannot be a column"))),
        },
    )?;
    Ok(Contents::One(FileData::Table(dress(table, about)?)))
}
