//! NumPy's formats. An NPZ holds an array a column (or `series`, or `matrix`) and `manifest.json`, which NumPy gives
//! back as bytes: `json.loads(np.load("dos.npz")["manifest.json"])`.

use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value};

use super::archive::Archive;
use super::array::{array, mostly_zeros, read_array, texts, width};
use super::maps::{SavedValue, joined_map, split_map};
use super::named::{ArrayKind, NamedArray, arranged, shaped, split};
use super::pack::pack;
use super::{Contents, FileData, check, numbers};
use crate::error::{Error, Result};
use crate::number::{Column, Matrix, Series, memory};
use crate::output::Manifest;

/// What stands before the check behind the numbers of an `.npy`, where other programs do not look.
const CHECK: &str = "\numklapp crc32 ";

fn write_column(out: impl Write, named: &NamedArray) -> std::io::Result<()> {
    let shape = &named.shape;
    match (&named.data, named.kind) {
        (Column::Texts(data), _) => texts(out, shape, data),
        (Column::Numbers(Series::Real(data)), ArrayKind::Ints) => {
            array(out, shape, data.iter().map(|&x| x as i64))
        }
        (Column::Numbers(Series::Real(data)), ArrayKind::Truths) => {
            array(out, shape, data.iter().map(|&x| x != 0.0))
        }
        (Column::Numbers(data), _) => write_array(out, shape, data),
    }
}

fn write_array(out: impl Write, shape: &[u64], data: &Series) -> std::io::Result<()> {
    match data {
        Series::Real(data) => array(out, shape, data.iter().copied()),
        Series::Complex(data) => array(out, shape, data.iter().copied()),
    }
}

/// Writes one array: a series, a matrix, or a real table as a matrix of its columns.
pub fn save_npy(data: &FileData, path: &Path) -> Result<()> {
    let (shape, numbers) = match data {
        FileData::Series(series) => (vec![series.len() as u64], series.clone()),
        FileData::Matrix(m) => (vec![m.rows() as u64, m.cols() as u64], m.data().clone()),
        FileData::Table(table) => {
            let columns = numbers(table).map_err(|e| {
                e.hint("one array holds numbers alone: save as `.npz`, or without that column")
            })?;
            let matrix = Matrix::from_rows(&columns)?.transpose();
            (vec![matrix.rows() as u64, matrix.cols() as u64], matrix.data().clone())
        }
    };
    write_npy(path, |out| write_array(out, &shape, &numbers))
}

/// Writes one array and its check.
pub(super) fn write_npy(
    path: &Path,
    array: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<()> {
    super::write_atomically(path, |out| {
        let mut out = BufWriter::new(check::Summed::new(out));
        array(&mut out)?;
        let (check, out) = out.into_inner().map_err(std::io::IntoInnerError::into_error)?.finish();
        writeln!(out, "{CHECK}{check}")
    })
}

/// Refuses what an archive would not give back.
fn check_array(array: &NamedArray) -> Result<()> {
    let name = &array.name;
    if name.contains('\0') {
        let shown = name.replace('\0', "\\0");
        return Err(Error::input(format!(
            "an array of `.npz` cannot be called `{shown}`, with a character of code 0"
        ))
        .hint("rename it, or save as `.json`"));
    }
    let Column::Texts(texts) = &array.data else { return Ok(()) };
    match texts.iter().position(|text| text.ends_with('\0')) {
        Some(row) => Err(Error::input(format!("text {row} of `{name}` ends with a character of code 0"))
            .hint("NumPy's arrays of texts lose it: save as `.json`")),
        None => Ok(()),
    }
}

/// Writes an archive of arrays.
pub fn save_npz(data: &FileData, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let (about, arrays) = split(data);
    write_npz(about, &arrays, path, manifest)
}

/// Writes a map.
pub fn save_map(map: &[(String, SavedValue)], path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let (about, arrays) = split_map(map);
    write_npz(about, &arrays, path, manifest)
}

fn write_npz(
    mut about: Map<String, Value>,
    arrays: &[NamedArray],
    path: &Path,
    manifest: Option<&Manifest>,
) -> Result<()> {
    about.extend(manifest.map(|manifest| ("manifest".to_string(), manifest.to_json())));
    arrays.iter().try_for_each(check_array)?;
    let size = |array: &NamedArray| match &array.data {
        Column::Numbers(data) => data.len(),
        // In numbers of eight bytes.
        Column::Texts(texts) => width(texts) * texts.len() / 2,
    };
    let most = arrays.iter().map(size).max().unwrap_or(0);
    super::write_atomically(path, |out| {
        pack(out, most, &Value::Object(about), |archive| {
            arrays.iter().try_for_each(|array| {
                let file = npyz::npz::file_name_from_array_name(&array.name);
                match &array.data {
                    // One long text makes all others as long, with zeros.
                    Column::Texts(texts) if mostly_zeros(texts) => archive.begin_packed(file)?,
                    _ => archive.begin(file)?,
                }
                write_column(&mut *archive, array)
            })
        })
    })
}

/// Reads one array: a series or a matrix by its dimensions.
pub fn load_npy(path: &Path) -> Result<FileData> {
    let bytes = memory::read(path).map_err(|e| Error::of_io(&e))?;
    let mut rest = bytes.as_slice();
    let (shape, data) = read_array(&mut rest, bytes.len() as u64)?;
    if !rest.is_empty() {
        let found = check::of(&bytes[..bytes.len() - rest.len()]);
        match std::str::from_utf8(rest).ok().and_then(|line| line.strip_prefix(CHECK)?.strip_suffix('\n')) {
            Some(said) if said == found => {}
            Some(said) => return Err(check::wrong(&found, said)),
            None => return Err(Error::file("the file is longer than its header says")),
        }
    }
    shaped(&shape, data)
}

/// Reads an archive: what [`save_npz`] wrote, or arrays of others. Where those cannot be the columns of one table,
/// each is on its own.
pub fn load_npz(path: &Path) -> Result<Contents> {
    let mut archive = Archive::open(path)?;
    let about = archive.about().clone();
    let names = match about.get("names").and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(|name| name.as_str().map(str::to_string)).collect(),
        None => archive.names(),
    };
    let mut arrays = Vec::new();
    for name in names {
        let (shape, data) = archive.column(&name)?.ok_or_else(|| {
            Error::file(format!("its manifest names an array `{name}`, which is not there"))
        })?;
        arrays.push(NamedArray { name, shape, data, kind: ArrayKind::Floats });
    }
    match about.get("kind").and_then(Value::as_str) {
        Some("map") => joined_map(arrays, &about).map(Contents::Map),
        _ => arranged(arrays, &about),
    }
}
