//! Values to Python and back.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple};
use umklapp::number::{C64, Matrix, Series};

use crate::arrays::{copied, matrix, owned};
use crate::table::Table;
use crate::value::Value;

/// Lists and dicts that lie deeper in one another are refused: they may contain themselves.
const DEEPEST: usize = 200;

/// What keeps the values that do not go to Python: a session.
pub trait ValueKeeper {
    /// What Python holds in place of a value that is kept.
    fn handle<'py>(&self, py: Python<'py>, number: u64, kind: String) -> PyResult<Bound<'py, PyAny>>;

    /// The kept value that something of Python's stands for, which must be kept here;
    /// none if it stands for no such value.
    fn kept(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<Value>>;
}

/// A value as Python has it.
pub fn to_python<'py>(
    py: Python<'py>,
    keeper: &dyn ValueKeeper,
    value: Value,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Nothing => py.None().into_bound(py),
        Value::Bool(x) => PyBool::new(py, x).to_owned().into_any(),
        Value::Int(x) => x.into_pyobject(py)?.into_any(),
        Value::Float(x) => PyFloat::new(py, x).into_any(),
        Value::Complex(z) => PyComplex::from_doubles(py, z.re, z.im).into_any(),
        Value::Text(text) => PyString::new(py, &text).into_any(),
        Value::Series(data) => owned(py, data),
        Value::Matrix(m) => matrix(py, m)?,
        Value::Table(table) => Bound::new(py, Table(table))?.into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, keeper, item)?)?;
            }
            list.into_any()
        }
        Value::Map(items) => {
            let dict = PyDict::new(py);
            for (key, item) in items {
                dict.set_item(key, to_python(py, keeper, item)?)?;
            }
            dict.into_any()
        }
        Value::Range(from, to) => py.get_type::<PyRange>().call1((from, to))?,
        Value::Kept { number, kind } => keeper.handle(py, number, kind)?,
    })
}

/// A value of Python's as a session has it.
pub fn from_python(keeper: &dyn ValueKeeper, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    deep(keeper, value, 0)
}

/// The items of a dict whose keys are texts.
pub fn entries(keeper: &dyn ValueKeeper, dict: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    items(keeper, dict, 0)
}

fn items(keeper: &dyn ValueKeeper, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Vec<(String, Value)>> {
    let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key = key.cast::<PyString>().map_err(|_| {
            PyTypeError::new_err(format!("the keys of a map are texts, not {}", kind_of(&key)))
        })?;
        Ok((key.to_cow()?.into_owned(), deep(keeper, &value, depth + 1)?))
    };
    dict.iter().map(entry).collect()
}

fn kind_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().fully_qualified_name().map_or("a value".into(), |name| format!("`{name}`"))
}

fn deep(keeper: &dyn ValueKeeper, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(PyValueError::new_err(format!(
            "lists or dicts lie more than {DEEPEST} deep in one another"
        )));
    }
    if value.is_none() {
        return Ok(Value::Nothing);
    }
    if let Ok(x) = value.cast::<PyBool>() {
        return Ok(Value::Bool(x.is_true()));
    }
    if let Ok(x) = value.cast::<PyInt>() {
        return whole(x.as_any());
    }
    if let Ok(x) = value.cast::<PyFloat>() {
        return Ok(Value::Float(x.value()));
    }
    if let Ok(z) = value.cast::<PyComplex>() {
        return Ok(Value::Complex(C64::new(z.real(), z.imag())));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.to_cow()?.into_owned()));
    }
    if let Ok(table) = value.cast::<Table>() {
        return Ok(Value::Table(table.get().0.clone()));
    }
    if let Some(kept) = keeper.kept(value)? {
        return Ok(kept);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return items(keeper, dict, depth).map(Value::Map);
    }
    if let Ok(range) = value.cast::<PyRange>() {
        let part = |name| range.getattr(name)?.extract::<i64>();
        if part("step")? == 1 {
            return Ok(Value::Range(part("start")?, part("stop")?));
        }
    }
    if value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PyRange>()
    {
        let each = value.try_iter()?.map(|item| deep(keeper, &item?, depth + 1));
        return each.collect::<PyResult<_>>().map(Value::Array);
    }
    // A frame of pandas.
    if value.hasattr("iloc")? && value.hasattr("columns")? {
        return Table::new(value, None).map(|table| Value::Table(table.0));
    }
    if value.hasattr("__array__")? {
        return array(keeper, value, depth);
    }
    Err(PyTypeError::new_err(format!(
        "a script has nothing like {}: it takes numbers, texts, lists, dicts, NumPy arrays, tables and values of its \
         session",
        kind_of(value)
    )))
}

fn whole(x: &Bound<'_, PyAny>) -> PyResult<Value> {
    match x.extract::<i64>() {
        Ok(x) => Ok(Value::Int(x)),
        Err(e) if e.is_instance_of::<PyOverflowError>(x.py()) => {
            Err(PyOverflowError::new_err("an integer of a script has 64 bits; a float holds larger numbers"))
        }
        Err(e) => Err(e),
    }
}

/// An array of NumPy's, or what can be seen as one.
fn array(keeper: &dyn ValueKeeper, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (value,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    if shape.is_empty() {
        // A number of NumPy's.
        return deep(keeper, &array.call_method0("item")?, depth + 1);
    }
    let texts = matches!(kind.as_str(), "U" | "T");
    if shape.len() > 2 {
        return Err(PyValueError::new_err(format!(
            "an array of {} dimensions; a script has one (a Series) or two (a Matrix): reshape it, or hand its slices \
             over",
            shape.len()
        )));
    }
    if texts && shape.len() == 1 {
        return deep(keeper, &array.call_method0("tolist")?, depth + 1);
    }
    let numbers = match kind.as_str() {
        "b" | "i" | "u" | "f" => Series::Real(copied(&numpy, &array, "float64")?),
        "c" => Series::Complex(copied(&numpy, &array, "complex128")?),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "an array of type `{}`; a script takes real and complex numbers, and texts in one dimension",
                array.getattr("dtype")?
            )));
        }
    };
    match shape.as_slice() {
        [rows, cols] => Matrix::new(*rows, *cols, numbers)
            .map(Value::Matrix)
            .map_err(|e| PyValueError::new_err(e.to_string())),
        _ => Ok(Value::Series(numbers)),
    }
}
