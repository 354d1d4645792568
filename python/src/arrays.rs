//! NumPy's arrays of numbers. Numbers change hands without a copy on their way out: an array owns the memory that a
//! result had, or looks at what a table or a matrix shares with the session, and keeps it alive.
//! Arrays of Python's are copied in.

use std::any::Any;
use std::sync::Arc;

use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use umklapp::number::{Column, Matrix, Series};

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
pub fn owned(py: Python<'_>, data: Series) -> Bound<'_, PyAny> {
    match data {
        Series::Real(data) => PyArray1::from_vec(py, data).into_any(),
        Series::Complex(data) => PyArray1::from_vec(py, data).into_any(),
    }
}

pub fn matrix(py: Python<'_>, m: Matrix) -> PyResult<Bound<'_, PyAny>> {
    let (rows, cols, data) = m.into_parts();
    let flat = match Arc::try_unwrap(data) {
        Ok(data) => owned(py, data),
        Err(data) => view(py, data, |data| Some(data))?,
    };
    flat.call_method1("reshape", (rows, cols))
}

/// The numbers of an array by rows, whatever its type, order and strides.
pub fn copied<T: Element + Copy>(
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
