//! Tables that moments are saved as: a column for each vector, the rest in the report.

use super::Window;
use crate::error::{Error, Result};
use crate::number::{Series, Table};

/// A table that may be one of moments.
pub(super) struct SavedTable<'a> {
    pub table: &'a Table,
    /// What it should be of, in words.
    pub what: &'a str,
}

impl SavedTable<'_> {
    /// A column for each vector.
    pub fn columns(vectors: impl Iterator<Item = Series>) -> Result<Table> {
        Table::from_columns(vectors.enumerate().map(|(i, vector)| (format!("vector_{i}"), vector)))
    }

    /// A number of the report.
    ///
    /// # Errors
    /// When it has none of that name.
    pub fn number(&self, key: &str) -> Result<f64> {
        self.table.report().get(key).and_then(serde_json::Value::as_f64).ok_or_else(|| {
            Error::input(format!("the table is not one of {}: its report has no `{key}`", self.what))
                .hint("moments are saved with their report")
        })
    }

    /// The window of the spectrum.
    ///
    /// # Errors
    /// When the report has none.
    pub fn window(&self) -> Result<Window> {
        let window = Window { center: self.number("center")?, half_width: self.number("half_width")? };
        if window.center.is_finite() && window.half_width > 0.0 {
            return Ok(window);
        }
        Err(Error::input("the saved moments have no window"))
    }
}
