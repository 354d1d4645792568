//! Results to files and back. The extension names the format; one small module a format; all writing is atomic.

mod archive;
mod array;
pub mod atomic;
mod beside;
mod cells;
mod check;
mod hdf5;
mod hold;
mod html;
mod json;
mod maps;
mod market;
mod named;
mod npz;
mod objects;
mod orbitals;
mod pack;
mod states;
mod text;
mod vectors;

use std::fmt;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result, nearest};
use crate::number::{C64, Column, Matrix, Number, Series, Table};
use crate::output::Manifest;
use crate::task;

pub use atomic::{append, bytes as write_bytes, writable, write as write_atomically, write_helped};
pub use check::{seal, unseal};
pub use hold::{HeldFile, hold};
pub use json::number as json_number;
pub use maps::SavedValue;
pub use market::save_operator;
pub use objects::kind as kind_of_json;
pub use orbitals::{LoadedOrbitals, holds_orbitals, load_orbitals, save_orbitals};
pub use states::{ArrayNumbers, StateArray, load_state, save_state};
pub use vectors::{SavedVectors, load_vectors, save_vectors};

/// What a file of numbers holds.
#[derive(Debug, Clone, PartialEq)]
pub enum FileData {
    /// Named columns.
    Table(Table),
    /// One row of numbers.
    Series(Series),
    /// Rows and columns.
    Matrix(Matrix),
}

/// All that a file of numbers holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    One(FileData),
    /// Arrays of several shapes, by name.
    Several(Vec<(String, Member)>),
    /// Values of all kinds.
    Map(Vec<(String, SavedValue)>),
}

/// One of several arrays.
#[derive(Debug, Clone, PartialEq)]
pub enum Member {
    Number(Number),
    Data(FileData),
    Texts(Vec<String>),
}

impl From<Table> for FileData {
    fn from(table: Table) -> Self {
        FileData::Table(table)
    }
}

impl From<Series> for FileData {
    fn from(series: Series) -> Self {
        FileData::Series(series)
    }
}

impl From<Matrix> for FileData {
    fn from(matrix: Matrix) -> Self {
        FileData::Matrix(matrix)
    }
}

impl fmt::Display for FileData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileData::Table(x) => x.fmt(f),
            FileData::Series(x) => x.fmt(f),
            FileData::Matrix(x) => x.fmt(f),
        }
    }
}

impl FileData {
    fn kind(&self) -> &'static str {
        match self {
            FileData::Table(_) => "table",
            FileData::Series(_) => "series",
            FileData::Matrix(_) => "matrix",
        }
    }

    /// The data as columns: those of a table, one named `value`, or a matrix's, numbered.
    pub fn to_table(&self) -> Result<Table> {
        match self {
            FileData::Table(table) => Ok(table.clone()),
            FileData::Series(series) => Table::from_columns([("value", series.clone())]),
            FileData::Matrix(matrix) => {
                let columns = (0..matrix.cols() as i64).map(|j| Ok((j.to_string(), matrix.column(j)?)));
                Table::from_columns(columns.collect::<Result<Vec<_>>>()?)
            }
        }
    }

    /// The inverse of [`FileData::to_table`], where a file says what its columns were.
    fn from_table(table: Table, kind: &str) -> Result<FileData> {
        match kind {
            "series" => match table.columns().next() {
                Some((name, column)) => Ok(FileData::Series(column.numbers(name)?.clone())),
                None => Ok(FileData::Series(Series::Real(Vec::new()))),
            },
            "matrix" => Ok(FileData::Matrix(Matrix::from_rows(&numbers(&table)?)?.transpose())),
            _ => Ok(FileData::Table(table)),
        }
    }
}

/// The formats that are written and read, by extension.
const WRITTEN: [&str; 9] = ["csv", "tsv", "txt", "dat", "json", "npz", "npy", "h5", "hdf5"];

/// The format of pages for people, which are not read back.
const PAGE: &str = "html";

fn ending(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn extension(path: &Path, also: Option<&str>) -> Result<String> {
    let extension = ending(path);
    let known = || WRITTEN.into_iter().chain(also);
    if known().any(|e| e == extension) {
        return Ok(extension);
    }
    let names = known().map(|e| format!(".{e}")).collect::<Vec<_>>().join(", ");
    let what = if extension.is_empty() {
        format!("`{}` has no extension to name its format", path.display())
    } else {
        format!("no format is known by the extension `.{extension}`")
    };
    let error = Error::input(format!("{what}; there are {names}"));
    Err(match nearest(&extension, known()) {
        Some(near) if !extension.is_empty() => error.hint(format!("did you mean `.{near}`?")),
        _ if matches!(extension.as_str(), "svg" | "png") => error.hint("pictures are made by `plot`"),
        _ if extension == "mat" => error
            .hint("Python's scipy converts it: `np.savez(\"x.npz\", a=scipy.io.loadmat(\"x.mat\")[\"a\"])`"),
        _ => error.hint("the end of the name says how the file is written: `a.csv` is a text"),
    })
}

/// Extensions that promise a format, of this program or of others.
const PROMISES: [&str; 23] = [
    "csv", "tsv", "txt", "json", "npz", "npy", "mtx", "dmrg", "nersc", "lime", "ildg", "h5", "hdf5", "hdf",
    "svg", "png", "pdf", "html", "zip", "gz", "mat", "nc", "rhai",
];

/// Refuses a name that promises a format other than these.
///
/// # Errors
/// A name such as `a.npz` for `what` that is never written as one.
pub fn need_extension(path: &Path, own: &[&str], what: &str) -> Result<()> {
    let extension = ending(path);
    if !PROMISES.contains(&extension.as_str()) || own.contains(&extension.as_str()) {
        return Ok(());
    }
    let names: Vec<String> = own.iter().map(|e| format!("`.{e}`")).collect();
    Err(Error::input(format!("{what} is not saved as `{}`", path.display()))
        .hint(format!("the name ends in {}", names.join(" or "))))
}

/// Refuses a name whose format does not keep in one file what a value is, so that a run could not go on from it.
///
/// # Errors
/// Also a name that [`save`] knows no format for.
pub fn need_whole(path: &Path) -> Result<()> {
    let extension = extension(path, None)?;
    if !matches!(extension.as_str(), "csv" | "tsv" | "npy") {
        return Ok(());
    }
    Err(Error::input(format!("`.{extension}` holds numbers alone, so that no run can go on from it"))
        .hint("name a checkpoint by `.npz`, `.h5` or `.json`"))
}

/// Saves the data in the format that the extension names: `.csv`, `.tsv`, `.txt`, `.dat`, `.json`, `.npz`, `.npy`,
/// `.h5`, and `.html` for people.
/// The file appears whole or not at all; an older file of that name survives a failure.
pub fn save(data: &FileData, path: impl AsRef<Path>, manifest: Option<&Manifest>) -> Result<()> {
    let path = path.as_ref();
    let extension = extension(path, Some(PAGE))?;
    match extension.as_str() {
        "csv" => text::save(data, path, manifest, text::Separator::Csv),
        "tsv" => text::save(data, path, manifest, text::Separator::Tsv),
        "json" => objects::save(data, path, manifest),
        "npz" => npz::save_npz(data, path, manifest),
        "npy" => npz::save_npy(data, path),
        "h5" | "hdf5" => hdf5::save(data, path, manifest),
        PAGE => html::save(data, path, manifest),
        _ => text::save(data, path, manifest, text::Separator::Aligned),
    }
}

/// Saves a map of values of all kinds as `.json`, `.npz` or `.h5`, as [`save`] does.
///
/// # Errors
/// Other formats, and texts and keys that the format would not give back.
pub fn save_map(
    map: &[(String, SavedValue)],
    path: impl AsRef<Path>,
    manifest: Option<&Manifest>,
) -> Result<()> {
    let path = path.as_ref();
    match extension(path, None)?.as_str() {
        "json" => objects::save_map(map, path, manifest),
        "npz" => npz::save_map(map, path, manifest),
        "h5" | "hdf5" => hdf5::save_map(map, path, manifest),
        other => Err(Error::input(format!("a map is not saved as `.{other}`"))
            .hint("`.json`, `.npz` and `.h5` hold maps; a table of its columns stands in the others")),
    }
}

/// Loads a file of numbers that are one thing: see [`load_all`].
///
/// # Errors
/// Also where it holds arrays of several shapes.
pub fn load(path: impl AsRef<Path>) -> Result<FileData> {
    let path = path.as_ref();
    match load_all(path)? {
        Contents::One(data) => Ok(data),
        Contents::Several(_) | Contents::Map(_) => {
            let what = format!("cannot read `{}`: it holds arrays of several shapes", path.display());
            Err(Error::file(what).hint("an archive of arrays of one length is a table"))
        }
    }
}

/// Loads a file of one of the formats that [`save`] writes, by this program or by others. A file of this
/// program ends with a check, which must be right.
pub fn load_all(path: impl AsRef<Path>) -> Result<Contents> {
    load_with(path, None).map(|(contents, _)| contents)
}

/// As [`load_all`]; `header` says whether the first line of a text of another program has the names of columns, where
/// its cells are not to tell. Also gives what the reader should know.
pub fn load_with(path: impl AsRef<Path>, header: Option<bool>) -> Result<(Contents, Vec<String>)> {
    let path = path.as_ref().to_path_buf();
    if ending(&path) == PAGE {
        return Err(Error::file(format!("cannot read `{}`: a page of HTML is for people", path.display()))
            .hint("save the table as `.csv`, `.json` or `.npz`, too"));
    }
    let (extension, read) = (extension(&path, None)?, path.clone());
    // Parsers do not look for Ctrl-C, so they run apart from this thread, which does.
    let loaded = task::apart(move || {
        let mut notes = Vec::new();
        let mut text = |layout| {
            let mut told = text::TextReading { header, unsure: false };
            let found = text::load(&read, layout, &mut told)?;
            if told.unsure {
                notes
                    .push("the first line is read as numbers; `header: true` takes it for names".to_string());
            }
            Ok(Contents::One(found))
        };
        let contents = match extension.as_str() {
            "csv" => text(text::Separator::Csv),
            "tsv" => text(text::Separator::Tsv),
            "npz" => npz::load_npz(&read),
            "h5" | "hdf5" => hdf5::load(&read, &mut notes),
            "json" => objects::load(&read),
            "npy" => npz::load_npy(&read).map(Contents::One),
            _ => text(text::Separator::Aligned),
        };
        contents.map(|contents| (contents, notes))
    });
    loaded.map_err(|e| {
        if e.kind() == ErrorKind::Interrupted {
            return e;
        }
        let e = e.context(format_args!("cannot read `{}`", path.display()));
        match e.hint_text() {
            Some(_) => e,
            None if path.exists() => {
                e.hint("the file may be truncated, or of another format than its name says")
            }
            None => e.hint("names of files are relative to the folder where the program was started"),
        }
    })
}

/// The columns of a table that is to become a matrix.
fn numbers(table: &Table) -> Result<Vec<Series>> {
    table.columns().map(|(name, column)| column.numbers(name).cloned()).collect()
}

/// A column as it stands in files of texts: real numbers or texts.
#[derive(Debug, Clone, PartialEq)]
enum WrittenColumn {
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

/// Real and imaginary parts as one column; nothing of texts.
fn complex(re: &Column, im: &Column) -> Option<Column> {
    let (Column::Numbers(Series::Real(re)), Column::Numbers(Series::Real(im))) = (re, im) else {
        return None;
    };
    Some(re.iter().zip(im).map(|(&re, &im)| C64::new(re, im)).collect::<Vec<_>>().into())
}

/// The column `name` split into its real and imaginary part, for formats without complex numbers.
fn parts(name: &str, data: &Column) -> Vec<(String, WrittenColumn)> {
    match data {
        Column::Texts(data) => vec![(name.to_string(), WrittenColumn::Texts(data.clone()))],
        Column::Numbers(Series::Real(data)) => vec![(name.to_string(), WrittenColumn::Numbers(data.clone()))],
        Column::Numbers(Series::Complex(data)) => vec![
            (format!("{name}.re"), WrittenColumn::Numbers(data.iter().map(|z| z.re).collect())),
            (format!("{name}.im"), WrittenColumn::Numbers(data.iter().map(|z| z.im).collect())),
        ],
    }
}

/// The inverse of [`parts`]: neighbours `x.re`, `x.im` become the complex column `x`.
fn joined(columns: Vec<(String, Column)>) -> Result<Table> {
    let mut table = Table::new();
    let mut columns = columns.into_iter().peekable();
    while let Some((name, data)) = columns.next() {
        let stem = name.strip_suffix(".re").map(str::to_string);
        let partner = stem.as_ref().map(|stem| format!("{stem}.im"));
        let whole = columns.peek().filter(|(next, _)| Some(next) == partner.as_ref());
        table = match (stem, whole.and_then(|(_, im)| complex(&data, im))) {
            (Some(stem), Some(whole)) => {
                columns.next();
                table.with_column(stem, whole)?
            }
            _ => table.with_column(name, data)?,
        };
    }
    Ok(table)
}

#[cfg(test)]
mod tests;
