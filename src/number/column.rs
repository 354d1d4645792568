//! `Column`: what stands under one name in a table, numbers or texts, and one place of it.

use super::{C64, Number, Series};
use crate::error::{Error, Result};

/// What a column of a table holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers, real or complex.
    Numbers(Series),
    /// Texts, such as the names of variants that are compared.
    Texts(Vec<String>),
}

/// One place of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// In a column of numbers.
    Number(Number),
    /// In a column of texts.
    Text(String),
}

impl Column {
    /// Whether both hold the same, bit by bit: NaN is NaN.
    pub fn is(&self, other: &Column) -> bool {
        match (self, other) {
            (Column::Numbers(a), Column::Numbers(b)) => a.is(b),
            (Column::Texts(a), Column::Texts(b)) => a == b,
            _ => false,
        }
    }
}

impl From<Series> for Column {
    fn from(data: Series) -> Self {
        Column::Numbers(data)
    }
}

impl From<Vec<f64>> for Column {
    fn from(data: Vec<f64>) -> Self {
        Column::Numbers(data.into())
    }
}

impl From<Vec<C64>> for Column {
    fn from(data: Vec<C64>) -> Self {
        Column::Numbers(data.into())
    }
}

impl From<Vec<String>> for Column {
    fn from(data: Vec<String>) -> Self {
        Column::Texts(data)
    }
}

impl From<Number> for Cell {
    fn from(number: Number) -> Self {
        Cell::Number(number)
    }
}

impl From<Cell> for Column {
    /// A column of this one row.
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Number(number) => Column::Numbers([number].into_iter().collect()),
            Cell::Text(text) => Column::Texts(vec![text]),
        }
    }
}

impl Column {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Numbers(data) => data.len(),
            Column::Texts(data) => data.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers; an error names the column if it holds texts.
    pub fn numbers(&self, name: &str) -> Result<&Series> {
        match self {
            Column::Numbers(data) => Ok(data),
            Column::Texts(_) => Err(Error::input(format!("the column `{name}` holds texts, not numbers"))
                .hint("take a column of numbers, or make a table without it")),
        }
    }

    /// What stands in row `i`, if there is one.
    pub fn get(&self, i: usize) -> Option<Cell> {
        match self {
            Column::Numbers(data) => data.get(i).map(Cell::Number),
            Column::Texts(data) => data.get(i).cloned().map(Cell::Text),
        }
    }

    /// Rows `from..to` (`to` excluded; negative counts from the end).
    pub(super) fn slice(&self, from: i64, to: i64) -> Result<Column> {
        match self {
            Column::Numbers(data) => data.slice(from, to).map(Column::Numbers),
            Column::Texts(data) => {
                // The range is that of numbers in as many rows.
                let rows = Series::generate(data.len(), |i| i as f64)?.slice(from, to)?;
                let first = rows.get(0).map_or(0, |x| x.re() as usize);
                Ok(Column::Texts(data[first..first + rows.len()].to_vec()))
            }
        }
    }

    /// Adds a row of the same kind; false, and nothing changes, for the other kind.
    pub(super) fn push(&mut self, cell: Cell) -> bool {
        match (self, cell) {
            (Column::Numbers(data), Cell::Number(number)) => data.push(number),
            (Column::Texts(data), Cell::Text(text)) => data.push(text),
            _ => return false,
        }
        true
    }

    /// The bytes of the data.
    pub fn bytes(&self) -> usize {
        match self {
            Column::Numbers(Series::Real(data)) => 8 * data.len(),
            Column::Numbers(Series::Complex(data)) => 16 * data.len(),
            Column::Texts(data) => data.iter().map(|text| size_of::<String>() + text.len()).sum(),
        }
    }
}
