//! Blocks of the orbitals at many places: in scripts an array of rows, of which each element is a Series over the
//! places.

use rhai::{Array, Dynamic};

use super::values::type_of;
use crate::error::{Error, Result};
use crate::lattice::OrbitalBlock;
use crate::number::{C64, Series};

/// A Series that is real where all of its elements are.
fn series_of(elements: Vec<C64>) -> Dynamic {
    Dynamic::from(if elements.iter().all(|z| z.im == 0.0) {
        Series::Real(elements.iter().map(|z| z.re).collect())
    } else {
        Series::Complex(elements)
    })
}

/// Blocks as an array of rows of Series.
pub(super) fn rows_of(blocks: &[OrbitalBlock], orbitals: usize) -> Array {
    let element = |a: usize, b: usize| series_of(blocks.iter().map(|block| block.get(a, b)).collect());
    let row = |a: usize| Dynamic::from_array((0..orbitals).map(|b| element(a, b)).collect());
    (0..orbitals).map(row).collect()
}

/// Blocks from an array of rows of Series, or from a Series of numbers times the identity; `what` names them.
pub(super) fn blocks_of(value: &Dynamic, orbitals: usize, what: &str) -> Result<Vec<OrbitalBlock>> {
    if let Some(numbers) = value.read_lock::<Series>() {
        return Ok(numbers.to_complex().into_iter().map(|z| OrbitalBlock::scalar(orbitals, z)).collect());
    }
    let wrong = |found: String| {
        Error::input(format!("{what} given as {found}")).hint(format!(
            "an array of {orbitals} rows with a Series for each of {orbitals} orbitals, like `[[x]]` for one orbital"
        ))
    };
    let rows = value.read_lock::<Array>().ok_or_else(|| wrong(type_of(value)))?;
    if rows.len() != orbitals {
        return Err(wrong(format!("an array of {} rows", rows.len())));
    }
    let mut elements: Vec<Vec<C64>> = Vec::with_capacity(orbitals * orbitals);
    for row in rows.iter() {
        let row = row.read_lock::<Array>().ok_or_else(|| wrong(format!("an array of {}", type_of(row))))?;
        if row.len() != orbitals {
            return Err(wrong(format!("a row of {} elements", row.len())));
        }
        for element in row.iter() {
            let series = element.read_lock::<Series>();
            elements.push(series.ok_or_else(|| wrong(format!("rows of {}", type_of(element))))?.to_complex());
        }
    }
    let places = elements[0].len();
    if let Some(other) = elements.iter().find(|x| x.len() != places) {
        return Err(wrong(format!("Series of {places} and of {} numbers", other.len())));
    }
    (0..places)
        .map(|k| OrbitalBlock::new(orbitals, elements.iter().map(|element| element[k]).collect()))
        .collect()
}
