//! How much memory values take, for the list of variables.

use rhai::{Array, Dynamic, ImmutableString, Map};

use super::vector::Vector;
use crate::number::{Matrix, Series, Table};
use crate::operator::Operator;

fn of_series(series: &Series) -> usize {
    match series {
        Series::Real(x) => 8 * x.len(),
        Series::Complex(x) => 16 * x.len(),
    }
}

/// The bytes of a value that carries data; `None` for numbers and for types that don't tell.
pub fn bytes_of(value: &Dynamic) -> Option<usize> {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return Some(text.len());
    }
    if let Some(series) = value.read_lock::<Series>() {
        return Some(of_series(&series));
    }
    if let Some(matrix) = value.read_lock::<Matrix>() {
        return Some(of_series(matrix.data()));
    }
    if let Some(table) = value.read_lock::<Table>() {
        return Some(table.columns().map(|(_, column)| column.bytes()).sum());
    }
    if let Some(vector) = value.read_lock::<Vector>() {
        return Some(vector.block.bytes());
    }
    if let Some(operator) = value.read_lock::<Operator>() {
        return Some(operator.info().bytes);
    }
    let all = |values: &mut dyn Iterator<Item = &Dynamic>| {
        values.map(|x| std::mem::size_of::<Dynamic>() + bytes_of(x).unwrap_or(0)).sum()
    };
    if let Some(array) = value.read_lock::<Array>() {
        return Some(all(&mut array.iter()));
    }
    value.read_lock::<Map>().map(|map| all(&mut map.values()))
}
