//! Tables of named columns, which look like a mapping.

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};
use umklapp::error::Error;
use umklapp::number::Table as Columns;
use umklapp::output::files::FileData;

use crate::arrays;

/// An error in one line, with its hint in brackets, for exceptions that have no room of their own for it.
fn sentence(error: &Error) -> String {
    error.hint_text().map_or(error.to_string(), |hint| format!("{error} ({hint})"))
}

/// Named columns of equal lengths, in order: a read-only mapping from names to arrays.
///
/// ``t["energy"]`` and ``t.energy`` are the same array, which looks at the table's memory and cannot be written to;
/// ``t["energy"].copy()`` can. ``dict(t)`` and ``pandas.DataFrame(t)`` work, ``len(t)`` is the number of columns,
/// ``t.rows`` that of rows. ``t.report`` tells how the table was made.
#[pyclass(frozen, mapping, module = "umklapp")]
pub struct Table(pub Columns);

#[pymethods]
impl Table {
    #[new]
    #[pyo3(signature = (columns, *, title=None))]
    pub fn new(columns: &Bound<'_, PyAny>, title: Option<String>) -> PyResult<Table> {
        if let Ok(table) = columns.cast::<Table>() {
            return Ok(Table(table.get().0.clone()));
        }
        let dict = PyDict::new(columns.py());
        dict.call_method1("update", (columns,))?;
        let mut table = Columns::new();
        for (name, column) in &dict {
            let name = name.str()?.to_cow()?.into_owned();
            let column = arrays::to_column(&name, &column)?;
            table = table.with_column(name, column).map_err(|e| PyValueError::new_err(sentence(&e)))?;
        }
        Ok(Table(match title {
            Some(title) => table.with_title(title),
            None => table,
        }))
    }

    /// The title, or None.
    #[getter]
    fn title(&self) -> Option<&str> {
        self.0.title()
    }

    /// The number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// For a map, how many values the first and the second column take; else None.
    #[getter]
    fn grid(&self) -> Option<(usize, usize)> {
        self.0.grid()
    }

    /// How the table was made: times, sizes, options, as a dict.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text =
            serde_json::to_string(self.0.report()).map_err(|e| PyValueError::new_err(e.to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The names of the columns, in order.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.names())
    }

    /// The columns, in order.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let columns: PyResult<Vec<_>> = self.0.names().map(|name| self.__getitem__(py, name)).collect();
        PyList::new(py, columns?)
    }

    /// Names and columns, in order.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let items: PyResult<Vec<_>> =
            self.0.names().map(|name| Ok((name, self.__getitem__(py, name)?))).collect();
        PyList::new(py, items?)
    }

    /// The column of that name, or `default`.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.0.shared(name) {
            Some(column) => arrays::column(py, column).map(Some),
            None => Ok(default),
        }
    }

    /// A `pandas.DataFrame` of the columns; its `attrs` are the report.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for name in self.0.names() {
            columns.set_item(name, self.__getitem__(py, name)?)?;
        }
        let frame = py.import("pandas")?.call_method1("DataFrame", (columns,))?;
        frame.setattr("attrs", self.report(py)?)?;
        Ok(frame)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.0.shared(name) {
            Some(column) => arrays::column(py, column),
            None => Err(PyKeyError::new_err(self.none(name))),
        }
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.0.shared(name) {
            Some(column) => arrays::column(py, column),
            None => Err(PyAttributeError::new_err(self.none(name))),
        }
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let names = py.get_type::<Table>().dir()?;
        slf.get().0.names().try_for_each(|name| names.append(name))?;
        Ok(names.into_any())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        name.cast::<PyString>().is_ok_and(|name| name.to_cow().is_ok_and(|name| self.0.get(&name).is_some()))
    }

    fn __len__(&self) -> usize {
        self.0.names().count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Table>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn _repr_html_(&self) -> Option<String> {
        FileData::Table(self.0.clone()).html()
    }

    /// Pickles and copies by columns; the report goes with them.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        let columns = PyDict::new(py);
        for name in this.0.names() {
            columns.set_item(name, this.__getitem__(py, name)?)?;
        }
        let report =
            serde_json::to_string(this.0.report()).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let given = (columns, this.0.title(), report, this.0.grid());
        let again = py.import("umklapp._native")?.getattr("_table")?;
        (again, given).into_pyobject(py)
    }
}

impl Table {
    fn none(&self, name: &str) -> String {
        match self.0.cells(name) {
            Ok(_) => String::new(),
            Err(e) => sentence(&e),
        }
    }
}

/// A table as it was pickled.
#[pyfunction]
pub fn _table(
    columns: &Bound<'_, PyAny>,
    title: Option<String>,
    report: &str,
    grid: Option<(usize, usize)>,
) -> PyResult<Table> {
    let wrong = |e: String| PyValueError::new_err(e);
    let mut table = Table::new(columns, title)?.0;
    let report: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(report).map_err(|e| wrong(e.to_string()))?;
    for (key, value) in report {
        table = table.with_report(key, value);
    }
    if let Some((nx, ny)) = grid {
        table = table.with_grid(nx, ny).map_err(|e| wrong(sentence(&e)))?;
    }
    Ok(Table(table))
}
