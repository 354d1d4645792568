//! Values to Python and back. Numbers change hands without a copy on their way out: an array owns the memory that a result had, or
//! looks at what a table or a matrix shares with the session, and keeps it alive. Arrays of Python's are copied in.

use std::any::Any;
use std::sync::Arc;

use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyRange, PyString, PyTuple};
use umklapp::number::{C64, Column, Matrix, Series};

use crate::session::{Handle, Session};
use crate::table::Table;
use crate::value::Value;

/// Lists and dicts that lie deeper in one another are refused: they may contain themselves.
const DEEPEST: usize = 200;

/// Keeps alive what an array looks at.
#[pyclass(frozen, module = "umklapp._native")]
struct Keeper(#[allow(dead_code)] Arc<dyn Any + Send + Sync>);

/// An array that looks at the numbers that `of` finds in a value, which others may have, too. It cannot be written to.
fn view<'py, K: Any + Send + Sync>(
    py: Python<'py>,
    kept: Arc<K>,
    of: impl Fn(&K) -> Option<&Series>,
) -> PyResult<Bound<'py, PyAny>> {
    fn array<'py, T: Element>(data: &[T], keeper: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the numbers lie in what the keeper has shared, which nobody changes, and which the array keeps alive.
        let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(data), keeper) };
        array.try_readwrite().map_err(PyErr::from)?.make_nonwriteable();
        Ok(array.into_any())
    }
    let keeper = Bound::new(py, Keeper(kept.clone()))?.into_any();
    match of(&kept) {
        Some(Series::Real(data)) => array(data, keeper),
        Some(Series::Complex(data)) => array(data, keeper),
        None => Err(PyTypeError::new_err("there are no numbers")),
    }
}

/// An array of numbers that only this value has.
fn owned(py: Python<'_>, data: Series) -> Bound<'_, PyAny> {
    match data {
        Series::Real(data) => PyArray1::from_vec(py, data).into_any(),
        Series::Complex(data) => PyArray1::from_vec(py, data).into_any(),
    }
}

fn matrix(py: Python<'_>, m: Matrix) -> PyResult<Bound<'_, PyAny>> {
    let (rows, cols, data) = m.into_parts();
    let flat = match Arc::try_unwrap(data) {
        Ok(data) => owned(py, data),
        Err(data) => view(py, data, |data| Some(data))?,
    };
    flat.call_method1("reshape", (rows, cols))
}

/// A value as Python has it.
pub fn to_python<'py>(py: Python<'py>, session: &Session, value: Value) -> PyResult<Bound<'py, PyAny>> {
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
                list.append(to_python(py, session, item)?)?;
            }
            list.into_any()
        }
        Value::Map(items) => {
            let dict = PyDict::new(py);
            for (key, item) in items {
                dict.set_item(key, to_python(py, session, item)?)?;
            }
            dict.into_any()
        }
        Value::Range(from, to) => py.get_type::<PyRange>().call1((from, to))?,
        Value::Kept { number, kind } => Bound::new(py, session.handle(number, kind))?.into_any(),
    })
}

/// A value of Python's as a session has it.
pub fn from_python(session: &Session, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    deep(session, value, 0)
}

/// The items of a dict whose keys are texts.
pub fn entries(session: &Session, dict: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    items(session, dict, 0)
}

fn items(session: &Session, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Vec<(String, Value)>> {
    let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let key = key.cast::<PyString>().map_err(|_| {
            PyTypeError::new_err(format!("the keys of a map are texts, not {}", kind_of(&key)))
        })?;
        Ok((key.to_cow()?.into_owned(), deep(session, &value, depth + 1)?))
    };
    dict.iter().map(entry).collect()
}

fn kind_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().fully_qualified_name().map_or("a value".into(), |name| format!("`{name}`"))
}

fn deep(session: &Session, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
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
    if let Ok(handle) = value.cast::<Handle>() {
        return handle.get().given_to(session);
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return items(session, dict, depth).map(Value::Map);
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
        let each = value.try_iter()?.map(|item| deep(session, &item?, depth + 1));
        return each.collect::<PyResult<_>>().map(Value::Array);
    }
    // A frame of pandas.
    if value.hasattr("iloc")? && value.hasattr("columns")? {
        return Table::new(value, None).map(|table| Value::Table(table.0));
    }
    if value.hasattr("__array__")? {
        return array(session, value, depth);
    }
    Err(PyTypeError::new_err(format!(
        "a script has nothing like {}: it takes numbers, texts, lists, dicts, NumPy arrays, tables and values of its session",
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
fn array(session: &Session, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (value,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    if shape.is_empty() {
        // A number of NumPy's.
        return deep(session, &array.call_method0("item")?, depth + 1);
    }
    let texts = matches!(kind.as_str(), "U" | "T");
    if shape.len() > 2 {
        return Err(PyValueError::new_err(format!(
            "an array of {} dimensions; a script has one (a Series) or two (a Matrix): reshape it, or hand its slices over",
            shape.len()
        )));
    }
    if texts && shape.len() == 1 {
        return deep(session, &array.call_method0("tolist")?, depth + 1);
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

/// The numbers of an array by rows, whatever its type, order and strides.
fn copied<T: Element + Copy>(
    numpy: &Bound<'_, PyModule>,
    array: &Bound<'_, PyAny>,
    dtype: &str,
) -> PyResult<Vec<T>> {
    let kwargs = PyDict::new(array.py());
    kwargs.set_item("dtype", dtype)?;
    let plain = numpy.call_method("ascontiguousarray", (array,), Some(&kwargs))?.call_method0("ravel")?;
    let numbers: PyReadonlyArray1<'_, T> = plain.extract()?;
    let numbers = numbers.as_slice()?;
    let bytes = size_of_val(numbers) as u128;
    umklapp::number::memory::ensure(bytes, "the array")
        .map_err(|e| pyo3::exceptions::PyMemoryError::new_err(e.to_string()))?;
    Ok(numbers.to_vec())
}

/// A column of a table: numbers, or texts as an array of objects.
pub fn column(py: Python<'_>, column: Arc<Column>) -> PyResult<Bound<'_, PyAny>> {
    match &*column {
        Column::Texts(texts) => {
            let kwargs = PyDict::new(py);
            kwargs.set_item("dtype", "str")?;
            py.import("numpy")?.call_method("array", (texts,), Some(&kwargs))
        }
        Column::Numbers(_) => view(py, column, |column| match column {
            Column::Numbers(data) => Some(data),
            Column::Texts(_) => None,
        }),
    }
}

/// What may become a column: an array of one dimension, numbers or texts.
pub fn to_column(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Column> {
    let numpy = value.py().import("numpy")?;
    let array = numpy.call_method1("asarray", (value,))?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    let dimensions: usize = array.getattr("ndim")?.extract()?;
    if dimensions != 1 {
        return Err(PyValueError::new_err(format!(
            "column `{name}` has {dimensions} dimensions, and needs one"
        )));
    }
    Ok(match kind.as_str() {
        "b" | "i" | "u" | "f" => Column::Numbers(Series::Real(copied(&numpy, &array, "float64")?)),
        "c" => Column::Numbers(Series::Complex(copied(&numpy, &array, "complex128")?)),
        "U" | "T" | "O" => Column::Texts(array.call_method0("tolist")?.extract().map_err(|_| {
            PyTypeError::new_err(format!("column `{name}` holds neither numbers nor texts alone"))
        })?),
        _ => {
            return Err(PyTypeError::new_err(format!(
                "column `{name}` is of type `{}`",
                array.getattr("dtype")?
            )));
        }
    })
}
