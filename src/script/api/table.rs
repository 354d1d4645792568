//! `Table`: named columns, and files of tables, series and matrices.

use std::any::TypeId;

use rhai::plugin::*;
use rhai::{Array, Dynamic, FLOAT, INT, ImmutableString, Map, Module};

use super::plain;
use super::values::{
    as_cell, count, from_cell, from_column, keeps_its_digits, to_column, to_series, type_of,
};
use crate::error::{Error, Result};
use crate::number::format::real;
use crate::number::{Column, Matrix, Series, Table};
use crate::output::Manifest;
use crate::output::files::{self, FileData};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, Options, session};

/// Registers the type and its functions.
pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_type_with_name::<Table>("Table");
    rooms.register_global_module(exported_module!(table_functions).into());
    let mut iteration = Module::new();
    iteration.set_iter(TypeId::of::<Table>(), |table| {
        let rows: Vec<Dynamic> = table.try_cast::<Table>().map_or(Vec::new(), |t| {
            (0..t.rows() as INT).filter_map(|i| row_map(&t, i).ok()).map(Dynamic::from).collect()
        });
        Box::new(rows.into_iter())
    });
    rooms.register_global_module(iteration.into());
}

/// A row as a map from the columns' names.
fn row_map(t: &Table, i: INT) -> Result<Map> {
    let cells = t.row(i)?;
    Ok(t.names().zip(cells).map(|(name, x)| (name.into(), from_cell(x))).collect())
}

/// Whether two rows hold the same, NaN at the same places.
fn same_row(a: &Map, b: &Map) -> bool {
    let same = |x: &Dynamic, y: &Dynamic| format!("{:?}", as_cell(x)) == format!("{:?}", as_cell(y));
    a.len() == b.len() && a.iter().all(|(name, x)| b.get(name).is_some_and(|y| same(x, y)))
}

/// The error for a property of a table that a script sets.
fn only_read(name: &str, what: &str) -> Error {
    Error::input(format!("`t.{name}` is {what}, and cannot be set"))
        .hint(format!("`t[\"{name}\"] = numbers` sets a column of this name"))
}

/// A Table, Series, Matrix or array of numbers, for files and plots.
pub(crate) fn to_data(value: &Dynamic) -> Result<FileData> {
    if let Some(table) = value.read_lock::<Table>() {
        return Ok(FileData::Table(table.clone()));
    }
    if let Some(matrix) = value.read_lock::<Matrix>() {
        return Ok(FileData::Matrix(matrix.clone()));
    }
    if value.is::<Series>() || value.is::<Array>() {
        return to_series(value).map(FileData::Series);
    }
    Err(Error::input(format!("a Table, a Series or a Matrix was expected, not {}", type_of(value)))
        .hint("`table` makes one of a map of columns"))
}

/// The data of a value that is some, for pages that show tables.
pub fn data_of(value: &Dynamic) -> Option<FileData> {
    if value.is_array() { None } else { to_data(value).ok() }
}

pub(super) fn from_data(data: FileData) -> Dynamic {
    match data {
        FileData::Table(x) => Dynamic::from(x),
        FileData::Series(x) => Dynamic::from(x),
        FileData::Matrix(x) => Dynamic::from(x),
    }
}

/// How the files of this session are made.
pub(crate) fn manifest() -> Result<Manifest> {
    let session = session()?;
    let device = session.device();
    let mut args = session.settings().args;
    args.retain(|_, value| !value.read_lock::<Array>().is_some_and(|rest| rest.is_empty()));
    Ok(Manifest {
        git: option_env!("UMKLAPP_GIT").map(str::to_string),
        script_hash: session.script_hash(),
        seed: Some(session.seed()),
        named_seeds: session.named_seeds(),
        options: reported(&args)?,
        backend: Some(device.name().to_string()),
        device: Some(device.describe().to_string()),
        ..Manifest::new()
    })
}

pub(super) fn save_data(data: FileData, file: &str) -> Result<()> {
    let session = session()?;
    let path = session.output_path(file);
    files::save(&data, &path, Some(&manifest()?))?;
    session.saved(&path);
    Ok(())
}

/// The entries of a report as a file has them.
fn reported(entries: &Map) -> Result<serde_json::Map<String, serde_json::Value>> {
    plain::of_map(entries, &"NaN".into())
}

/// An entry of a report as a script has it.
fn report_value(value: &serde_json::Value) -> Dynamic {
    match value {
        serde_json::Value::Bool(b) => (*b).into(),
        serde_json::Value::String(text) => match text.as_str() {
            "NaN" => FLOAT::NAN.into(),
            "inf" => FLOAT::INFINITY.into(),
            "-inf" => FLOAT::NEG_INFINITY.into(),
            _ => text.clone().into(),
        },
        serde_json::Value::Number(n) => match n.as_i64() {
            Some(i) => i.into(),
            None => n.as_f64().unwrap_or(f64::NAN).into(),
        },
        serde_json::Value::Null => Dynamic::UNIT,
        serde_json::Value::Array(items) => items.iter().map(report_value).collect::<Array>().into(),
        serde_json::Value::Object(object) => {
            object.iter().map(|(key, value)| (key.into(), report_value(value))).collect::<Map>().into()
        }
    }
}

/// A number that a clock made.
fn clocked(x: f64) -> Result<String> {
    Ok(if session()?.masked() { "~".into() } else { real(x, 3) })
}

#[export_module(root = "crate::script::native")]
mod table_functions {
    /// A table from a map of columns (in the order of their names), or from an array of `[name, numbers]` pairs, to
    /// choose the order. `t.name` is a column. A column may hold texts, like `["csr", "ell"]`; then `t.name` is an
    /// array.
    ///
    /// # Example
    /// ```rhai
    /// let t = table([["x", [0, 1, 2]], ["square", [0, 1, 4]]]);
    /// assert_close(t.square.sum(), 5.0, 1e-15);
    /// let sizes = table([["format", ["csr", "ell"]], ["bytes", [88, 84]]]);
    /// assert(sizes.format[1] == "ell" && sizes[0].format == "csr", "texts");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn table(columns: Map) -> Fallible<Table> {
        let columns = columns.iter().map(|(name, data)| {
            to_column(data)
                .map(|data| (name.to_string(), data))
                .map_err(|e| e.context(format_args!("column `{name}`")))
        });
        Ok(columns.collect::<Result<Vec<_>>>().and_then(Table::from_columns)?)
    }

    #[rhai_fn(name = "table", return_raw)]
    pub fn table_of_pairs(columns: Array) -> Fallible<Table> {
        let wrong = || {
            Error::input("a table is made from pairs `[name, numbers]`")
                .hint("like `[[\"E\", energies], [\"dos\", values]]`")
        };
        let columns = columns.iter().map(|pair| {
            let pair = pair.read_lock::<Array>().ok_or_else(wrong)?;
            match pair.as_slice() {
                [name, data] => {
                    let name = name.clone().into_string().map_err(|_| wrong())?;
                    let data = to_column(data).map_err(|e| e.context(format_args!("column `{name}`")))?;
                    Ok((name, data))
                }
                _ => Err(wrong()),
            }
        });
        Ok(columns.collect::<Result<Vec<_>>>().and_then(Table::from_columns)?)
    }

    /// The table with one more column, of numbers or of texts.
    ///
    /// # Example
    /// ```rhai
    /// let t = table(#{ x: [1, 2] }).with_column("y", [3, 4]);
    /// assert_close(t.y[1], 4.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn with_column(t: &mut Table, name: &str, numbers: Dynamic) -> Fallible<Table> {
        Ok(to_column(&numbers).and_then(|data| t.clone().with_column(name, data))?)
    }

    /// The table as a map: the first column has `nx` values; for each of them the second column has the same `ny`
    /// values. `plot` shows the third column in colours.
    ///
    /// # Example
    /// ```rhai
    /// let t = table([["k", [0, 0, 1, 1]], ["energy", [0, 1, 0, 1]], ["weight", [1, 2, 3, 4]]]);
    /// plot(t.grid(2, 2), #{ file: "map.png" });
    /// assert(file_exists("map.png"), "it is drawn");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn grid(t: &mut Table, nx: INT, ny: INT) -> Fallible<Table> {
        Ok(count(nx, "points").and_then(|nx| t.clone().with_grid(nx, count(ny, "points")?))?)
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn column_of(t: &mut Table, name: ImmutableString) -> Fallible<Dynamic> {
        Ok(t.cells(&name).map(from_column)?)
    }

    #[rhai_fn(global, index_set, return_raw)]
    pub fn set_column(t: &mut Table, name: ImmutableString, numbers: Dynamic) -> Fallible<()> {
        Ok(to_column(&numbers).and_then(|data| t.set_column(&name, data))?)
    }

    // Without this, `t[i].x = 1` would change a copy and say nothing. A row that was only read is written back as it
    // is.
    #[rhai_fn(global, index_set, return_raw)]
    pub fn set_row(t: &mut Table, i: INT, row: Dynamic) -> Fallible<()> {
        let own = row_map(t, i)?;
        if row.read_lock::<Map>().is_some_and(|row| same_row(&row, &own)) {
            return Ok(());
        }
        let error = Error::input("a row of a table cannot be changed");
        Err(error.hint("change a column: `t.x[i] = 1`").into())
    }

    /// The column of that name, a Series, or an array if it holds texts; `t.name` and `t["name"]` are the same.
    ///
    /// # Example
    /// ```rhai
    /// assert(table(#{ x: [1, 2] }).column("x") == series([1, 2]), "the column");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn column(t: &mut Table, name: &str) -> Fallible<Dynamic> {
        Ok(t.cells(name).map(from_column)?)
    }

    /// Row `i` as a map from the columns' names; `t[i]` is the same.
    ///
    /// # Example
    /// ```rhai
    /// assert_close(table(#{ x: [1, 2] }).row(-1).x, 2.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn row(t: &mut Table, i: INT) -> Fallible<Map> {
        Ok(row_map(t, i)?)
    }

    #[rhai_fn(global, index_get, pure, return_raw)]
    pub fn row_of(t: &mut Table, i: INT) -> Fallible<Map> {
        Ok(row_map(t, i)?)
    }

    /// Rows `from..to` (`to` excluded, negative from the end).
    ///
    /// # Example
    /// ```rhai
    /// assert(table(#{ x: [1, 2, 3] }).slice(1, 3).rows == 2, "two rows");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn slice(t: &mut Table, from: INT, to: INT) -> Fallible<Table> {
        Ok(t.slice(from, to)?)
    }

    /// Adds a row: a map with a number for every column, or a text for a column of texts.
    ///
    /// # Example
    /// ```rhai
    /// let t = table(#{ x: [1], y: [2] });
    /// t.push(#{ x: 3, y: 4 });
    /// assert(t.rows == 2, "one row more");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn push(t: &mut Table, row: Map) -> Fallible<()> {
        let numbers = row.iter().map(|(name, value)| {
            keeps_its_digits(value)?;
            as_cell(value).map(|x| (name.as_str(), x)).ok_or_else(|| {
                Error::input(format!("`{name}` of a row is a number or a text, not {}", type_of(value)))
                    .hint("like `t.push(#{ x: 1.0, y: 2.0 })`, a key for each column")
            })
        });
        Ok(numbers.collect::<Result<Vec<_>>>().and_then(|numbers| t.push(&numbers))?)
    }

    /// Number of rows.
    ///
    /// # Example
    /// ```rhai
    /// assert(table(#{ x: [1, 2] }).rows == 2, "two rows");
    /// ```
    #[rhai_fn(global, get = "rows", pure)]
    pub fn rows(t: &mut Table) -> INT {
        t.rows() as INT
    }

    /// The names of the columns.
    ///
    /// # Example
    /// ```rhai
    /// assert(table(#{ x: [1] }).columns == ["x"], "one column");
    /// ```
    #[rhai_fn(global, get = "columns", pure)]
    pub fn columns(t: &mut Table) -> Array {
        t.names().map(|name| name.to_string().into()).collect()
    }

    // After `t.columns.len()` the names are written back; without this, as a column of their own.
    #[rhai_fn(global, set = "columns", return_raw)]
    pub fn set_columns(t: &mut Table, names: Dynamic) -> Fallible<()> {
        let given = names.read_lock::<Array>().map(|names| {
            let text = |name: &Dynamic| name.read_lock::<ImmutableString>().map(|name| name.to_string());
            names.iter().map(text).collect::<Option<Vec<String>>>()
        });
        if given.flatten().is_some_and(|given| t.names().eq(given.iter().map(String::as_str))) {
            return Ok(());
        }
        Err(only_read("columns", "the names of the columns").into())
    }

    #[rhai_fn(global, set = "rows", return_raw)]
    pub fn set_rows(t: &mut Table, rows: Dynamic) -> Fallible<()> {
        if rows.as_int() == Ok(t.rows() as INT) {
            return Ok(());
        }
        Err(only_read("rows", "the number of rows").into())
    }

    /// How the table was made: times, sizes, options.
    ///
    /// # Example
    /// ```rhai
    /// assert(table(#{ x: [1] }).report == #{}, "by hand");
    /// ```
    #[rhai_fn(global, get = "report", pure)]
    pub fn report(t: &mut Table) -> Map {
        t.report().iter().map(|(key, value)| (key.into(), report_value(value))).collect()
    }

    /// Adds entries to the report; the other entries stay.
    #[rhai_fn(global, set = "report", return_raw)]
    pub fn set_report(t: &mut Table, entries: Dynamic) -> Fallible<()> {
        // A setter of maps alone would leave all else to the indexer, which adds columns.
        let entries = entries.try_cast_result::<Map>().map_err(|other| {
            Error::input(format!("`t.report` takes a map, not {}", type_of(&other))).hint(
                "like `t.report = #{ moments: 64 }`; `t[\"report\"] = numbers` sets a column of this name",
            )
        })?;
        if reported(&entries)? != reported(&report(t))? {
            *t = with_report(t, entries)?;
        }
        Ok(())
    }

    /// The table with these entries added to its report. A Series becomes an array, as in `map.to_json()`.
    ///
    /// # Example
    /// ```rhai
    /// let t = table(#{ x: [1] }).with_report(#{ moments: 64 });
    /// assert(t.report.moments == 64, "kept");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn with_report(t: &mut Table, entries: Map) -> Fallible<Table> {
        Ok(reported(&entries)?.into_iter().fold(t.clone(), |t, (key, value)| t.with_report(key, value)))
    }

    /// Saves a Table, Series or Matrix; the extension names the format: `.csv`, `.tsv`, `.txt`, `.json`, `.npz`,
    /// `.npy`, `.h5` (HDF5). The file records how it was made (version, seeds, options, backend): text formats in lines
    /// before the table that begin with `#` (`pandas.read_csv(name, comment="#")`), `.npz` and `.h5` in the entry
    /// `manifest.json`. In `.txt` blanks separate the columns, so blanks in names and texts become `_`. `.npy` has no
    /// names: a Table is read back as a Matrix. `.html` is a page for reading; `load` does not read it. Any browser
    /// shows it without a network. Long tables scroll, a click on a name sorts, and the fields below the names filter
    /// (`>0`, `<=1e-3`, `1..2`, `!=0`, a part of a text).
    ///
    /// # Example
    /// ```rhai
    /// table(#{ x: [1, 2] }).save("example.csv");
    /// table(#{ x: [1, 2] }).save("example.html");
    /// assert_close(load("example.csv").x[1], 2.0, 1e-15);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn save(t: &mut Table, file: &str) -> Fallible<()> {
        Ok(save_data(t.clone().into(), file)?)
    }

    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_series(s: &mut Series, file: &str) -> Fallible<()> {
        Ok(save_data(s.clone().into(), file)?)
    }

    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_matrix(m: &mut Matrix, file: &str) -> Fallible<()> {
        Ok(save_data(m.clone().into(), file)?)
    }

    /// Whether the file exists, among the files that the script saved or under its own path.
    ///
    /// # Example
    /// ```rhai
    /// assert(!file_exists("no_such_file.csv"), "it was never saved");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn file_exists(file: &str) -> Fallible<bool> {
        Ok(session().and_then(|s| s.has_file(file))?)
    }

    // As texts, but records hold the numbers.
    #[rhai_fn(name = "print", return_raw)]
    pub fn print_table(t: Table) -> Fallible<String> {
        session()?.printing(|| FileData::from(t.clone()).to_json());
        Ok(t.to_string())
    }

    #[rhai_fn(name = "print", return_raw)]
    pub fn print_series(x: Series) -> Fallible<String> {
        session()?.printing(|| FileData::from(x.clone()).to_json());
        Ok(x.to_string())
    }

    #[rhai_fn(name = "print", return_raw)]
    pub fn print_matrix(m: Matrix) -> Fallible<String> {
        session()?.printing(|| FileData::from(m.clone()).to_json());
        Ok(m.to_string())
    }

    /// The whole table as a text, with all rows and columns. `print(t)` shows only what fits on a screen.
    ///
    /// # Options
    /// - `digits` (int >= 1, 6): significant digits of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let t = table([["x", range(0, 30)], ["root", sqrt(series(range(0, 30)))]]);
    /// assert(t.whole(#{ digits: 3 }).contains("5.39"), "the last row");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn whole(t: &mut Table, o: Options) -> Fallible<String> {
        Ok(t.whole(o.count("digits")?.min(17))?)
    }

    /// The table with measured times in some columns as texts of three digits; `measured(x)` does it for one number.
    /// Golden tests show `~` instead, since times differ from run to run.
    ///
    /// # Example
    /// ```rhai
    /// let t = table([["size", [8, 16]], ["seconds", [0.123456, time(|| 1 + 1)]]]);
    /// print(t.measured(["seconds"]));
    /// print(`${measured(0.123456)} s`);
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn measured(t: &mut Table, names: Array) -> Fallible<Table> {
        let mut masked = t.clone();
        for name in names {
            let name = name.into_string().map_err(|kind| {
                Error::input(format!("columns are named by texts, not by {kind}"))
                    .hint("as in `[\"seconds\"]`")
            })?;
            let texts: Result<Vec<String>> =
                t.column(&name)?.as_real(&name)?.iter().map(|&x| clocked(x)).collect();
            masked.set_column(&name, Column::Texts(texts?))?;
        }
        Ok(masked)
    }

    /// As `t.measured(names)`, for one number: a text of three digits, or of all digits for a whole number.
    #[rhai_fn(name = "measured", return_raw)]
    pub fn measured_float(x: FLOAT) -> Fallible<String> {
        Ok(clocked(x)?)
    }

    #[rhai_fn(name = "measured", return_raw)]
    pub fn measured_int(x: INT) -> Fallible<String> {
        Ok(if session()?.masked() { "~".into() } else { x.to_string() })
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn to_string(t: &mut Table) -> String {
        t.to_string()
    }
}
