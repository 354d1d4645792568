//! `Table`: named columns of equal lengths, what most results are.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::format::counted;
use super::{Cell, Column, Series};
use crate::error::{Error, Result, nearest};

/// Named columns of equal lengths, in order. Clones share the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, Arc<Column>)>,
    title: Option<String>,
    report: Map<String, Value>,
    grid: Option<(usize, usize)>,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Table {
        Table::default()
    }

    /// A table of these columns; names must differ, lengths agree.
    pub fn from_columns<N: Into<String>, S: Into<Column>>(
        columns: impl IntoIterator<Item = (N, S)>,
    ) -> Result<Table> {
        columns.into_iter().try_fold(Table::new(), |table, (name, data)| table.with_column(name, data))
    }

    /// The table with one more column, as long as the others.
    pub fn with_column(mut self, name: impl Into<String>, data: impl Into<Column>) -> Result<Table> {
        let (name, data) = (name.into(), data.into());
        if name.is_empty() {
            return Err(Error::input("a column of a table needs a name").hint("give it some letters"));
        }
        if self.columns.iter().any(|(known, _)| *known == name) {
            return Err(Error::input(format!("a table cannot have two columns `{name}`"))
                .hint("give one of them another name"));
        }
        if let Some((first, known)) = self.columns.first()
            && known.len() != data.len()
        {
            return Err(Error::input(format!(
                "column `{name}` has {}, column `{first}` has {}",
                counted(data.len(), "row"),
                known.len()
            ))
            .hint("the columns of a table have one length"));
        }
        self.columns.push((name, Arc::new(data)));
        Ok(self)
    }

    /// Replaces the column of that name, or adds it.
    pub fn set_column(&mut self, name: &str, data: impl Into<Column>) -> Result<()> {
        let data = data.into();
        let rows = self.rows();
        match self.columns.iter_mut().find(|(known, _)| known == name) {
            Some((_, column)) if data.len() == rows => {
                *column = Arc::new(data);
                Ok(())
            }
            Some(_) => Err(Error::input(format!(
                "column `{name}` has {} and cannot take {}",
                counted(rows, "row"),
                data.len()
            ))
            .hint("the columns of a table have one length")),
            None => {
                *self = self.clone().with_column(name, data)?;
                Ok(())
            }
        }
    }

    /// The table with a title, which plots show.
    pub fn with_title(mut self, title: impl Into<String>) -> Table {
        self.title = Some(title.into());
        self
    }

    /// The table with one more entry in its report: how it was made.
    pub fn with_report(mut self, key: impl Into<String>, value: impl Into<Value>) -> Table {
        self.report.insert(key.into(), value.into());
        self
    }

    /// Whether both are the same, bit by bit: NaN is NaN.
    pub fn is(&self, other: &Table) -> bool {
        let same = |((a, x), (b, y)): ((&str, &Column), (&str, &Column))| a == b && x.is(y);
        (&self.title, &self.report, self.grid) == (&other.title, &other.report, other.grid)
            && self.columns.len() == other.columns.len()
            && self.columns().zip(other.columns()).all(same)
    }

    /// Declares that the rows walk a grid: the first column takes `nx` values, and for each of them the second takes
    /// the same `ny`; the third column is what a map shows. The numbers of rows and columns must fit.
    pub fn with_grid(mut self, nx: usize, ny: usize) -> Result<Table> {
        if nx.checked_mul(ny) != Some(self.rows()) || self.columns.len() < 3 {
            return Err(Error::input(format!(
                "a map of {nx} x {ny} points needs as many rows and three columns, not {} and {}",
                counted(self.rows(), "row"),
                counted(self.columns.len(), "column")
            ))
            .hint("the rows are the points, the columns their two coordinates and the value"));
        }
        let reals = |k: usize| {
            self.columns.get(k).and_then(|(name, column)| column.numbers(name).ok()?.as_real(name).ok())
        };
        if let (Some(slow), Some(fast)) = (reals(0), reals(1)) {
            // What is computed block by block may differ by rounding.
            let size = |all: &[f64]| all.iter().fold(0.0f64, |most, x| most.max(x.abs()));
            let differ = |x: f64, y: f64, size: f64| (x - y).abs() > 1e-9 * size;
            let (most_slow, most_fast) = (size(slow), size(fast));
            let wrong = (0..self.rows()).find(|&row| {
                differ(slow[row], slow[row - row % ny], most_slow)
                    || differ(fast[row], fast[row % ny], most_fast)
            });
            if let Some(row) = wrong {
                return Err(Error::input(format!("row {row} is not one of a map of {nx} x {ny} points"))
                    .hint("the first column stays, while the second goes through its values, the same each time"));
            }
        }
        self.grid = Some((nx, ny));
        Ok(self)
    }

    /// The shape of the grid that the rows walk, if they walk one (see [`Table::with_grid`]).
    pub fn grid(&self) -> Option<(usize, usize)> {
        self.grid
    }

    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// How the table was made: times, sizes, options.
    pub fn report(&self) -> &Map<String, Value> {
        &self.report
    }

    /// The names of the columns, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// The columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, data)| (name.as_str(), &**data))
    }

    /// The column of that name, shared with this table.
    pub fn shared(&self, name: &str) -> Option<Arc<Column>> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, data)| data.clone())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, data)| data.len())
    }

    /// The column of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, data)| &**data)
    }

    /// The numbers of the column of that name; the error lists the columns there are.
    pub fn column(&self, name: &str) -> Result<&Series> {
        self.cells(name)?.numbers(name)
    }

    /// The column of that name, whatever it holds; the error lists the columns there are.
    pub fn cells(&self, name: &str) -> Result<&Column> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            let error = Error::input(match names[..] {
                [] => format!("no column `{name}` in a table without columns"),
                _ => format!("no column `{name}`; the columns are {}", names.join(", ")),
            });
            match nearest(name, names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("take one of these names"),
            }
        })
    }

    /// Row `i` (negative from the end), a number or a text a column.
    pub fn row(&self, i: i64) -> Result<Vec<Cell>> {
        let n = self.rows();
        let place = if i < 0 { i + n as i64 } else { i };
        if !(0..n as i64).contains(&place) {
            return Err(Error::input(format!("row {i} is outside a table of {}", counted(n, "row")))
                .hint("they are numbered from 0, and from the end by -1, -2, ..."));
        }
        Ok(self.columns.iter().filter_map(|(_, data)| data.get(place as usize)).collect())
    }

    /// Rows `from..to` (`to` excluded, negative from the end). A grid does not survive.
    pub fn slice(&self, from: i64, to: i64) -> Result<Table> {
        let columns = self
            .columns
            .iter()
            .map(|(name, data)| Ok((name.clone(), Arc::new(data.slice(from, to)?))))
            .collect::<Result<_>>()
            .map_err(|_| {
                Error::input(format!(
                    "the rows {from}..{to} are outside a table of {}",
                    counted(self.rows(), "row")
                ))
                .hint(format!(
                    "they go from 0 to {}, the end left out; negative ones count from the end",
                    self.rows()
                ))
            })?;
        Ok(Table { columns, title: self.title.clone(), report: self.report.clone(), grid: None })
    }

    /// Appends one row: a number or a text for every column, by name.
    /// The first row of a table without columns makes them.
    pub fn push(&mut self, row: &[(&str, Cell)]) -> Result<()> {
        if self.columns.is_empty() {
            let column = |(name, cell): &(&str, Cell)| (name.to_string(), Arc::new(cell.clone().into()));
            self.columns = row.iter().map(column).collect();
            return Ok(());
        }
        let given: BTreeSet<&str> = row.iter().map(|(name, _)| *name).collect();
        if let Some(unknown) = given.iter().find(|name| self.get(name).is_none()) {
            self.column(unknown)?;
        }
        if let Some(missing) = self.names().find(|name| !given.contains(name)) {
            return Err(Error::input(format!("the row has nothing for column `{missing}`"))
                .hint("NaN, or an empty text, stands for what is not known"));
        }
        let texts = |column: &Column| matches!(column, Column::Texts(_));
        if let Some((name, cell)) =
            row.iter().find(|(name, cell)| self.get(name).map(texts) != Some(matches!(cell, Cell::Text(_))))
        {
            let (holds, given) =
                if matches!(cell, Cell::Text(_)) { ("numbers", "a text") } else { ("texts", "a number") };
            return Err(Error::input(format!("the column `{name}` holds {holds}, and the row has {given}"))
                .hint("numbers go to columns of numbers, texts to columns of texts"));
        }
        for (name, cell) in row {
            if let Some((_, data)) = self.columns.iter_mut().find(|(known, _)| known == name) {
                Arc::make_mut(data).push(cell.clone());
            }
        }
        self.grid = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;

    fn number(x: f64) -> Cell {
        Cell::Number(x.into())
    }

    fn example() -> Table {
        let energy = Series::linspace(-1.0, 1.0, 50).unwrap();
        Table::from_columns([("energy", energy.clone()), ("density", energy)]).unwrap()
    }

    #[test]
    fn columns_have_one_length_and_own_names() {
        let message = example().with_column("error", vec![1.0]).unwrap_err().to_string();
        assert!(message.starts_with("column `error` has 1 row, column `energy` has 50"));
        assert!(example().with_column("energy", vec![0.0; 50]).is_err());
        let wrong = example().column("desnity").unwrap_err();
        assert_eq!(wrong.hint_text(), Some("did you mean `density`?"));
    }

    #[test]
    fn rows_slices_and_growth() {
        let mut t = example();
        assert_eq!(t.row(-1).unwrap(), vec![Cell::Number(Number::Real(1.0)); 2]);
        assert!(t.row(50).is_err() && t.slice(10, 51).is_err());
        assert_eq!(t.slice(10, 20).unwrap().rows(), 10);
        t.push(&[("density", number(2.0)), ("energy", number(1.5))]).unwrap();
        assert_eq!((t.rows(), t.row(50).unwrap()[0].clone()), (51, number(1.5)));
        assert!(t.push(&[("density", number(2.0))]).is_err());
        assert!(t.push(&[("density", number(2.0)), ("enrgy", number(2.0))]).is_err());
        assert_eq!(t.rows(), 51);
    }

    #[test]
    fn texts_stay_texts() {
        let names: Vec<String> = ["csr", "ell", "sell"].map(String::from).to_vec();
        let mut t =
            Table::from_columns([("format", names)]).unwrap().with_column("bytes", vec![1.0; 3]).unwrap();
        assert_eq!(
            t.column("format").unwrap_err().to_string(),
            "the column `format` holds texts, not numbers"
        );
        t.push(&[("format", Cell::Text("dense".into())), ("bytes", number(8.0))]).unwrap();
        assert_eq!(t.row(-1).unwrap()[0], Cell::Text("dense".into()));
        let part = t.slice(1, -1).unwrap();
        assert_eq!(part.get("format"), Some(&Column::Texts(vec!["ell".into(), "sell".into()])));
        assert_eq!(t.slice(4, 4).unwrap().rows(), 0);
        assert!(t.slice(2, 1).is_err());
        for wrong in [
            [("format", number(1.0)), ("bytes", number(1.0))],
            [("format", Cell::Text("x".into())), ("bytes", Cell::Text("x".into()))],
        ] {
            assert!(t.push(&wrong).is_err());
        }
        assert_eq!((t.rows(), t.get("bytes").map(Column::len)), (4, Some(4)));
    }

    #[test]
    fn a_grid_must_fit() {
        assert!(example().with_grid(5, 10).is_err());
        let map = |k: [f64; 6], e: [f64; 6]| {
            let columns = [("k", k.to_vec()), ("e", e.to_vec()), ("weight", vec![0.0; 6])];
            Table::from_columns(columns).unwrap()
        };
        let t = map([0.0, 0.0, 0.0, 0.5, 0.5, 0.5], [1.0, 2.0, 3.0, 1.0, 2.0, 3.0 + 1e-15]);
        assert!(t.clone().with_grid(2, 2).is_err() && t.clone().with_grid(3, 2).is_err());
        assert_eq!(t.with_grid(2, 3).unwrap().grid(), Some((2, 3)));
        // The first column is the slow one, and the second takes the same values each time.
        let fast = map([0.0, 0.5, 0.0, 0.5, 0.0, 0.5], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        assert!(fast.with_grid(2, 3).unwrap_err().hint_text().is_some());
        assert!(map([0.0, 0.0, 0.0, 0.5, 0.5, 0.5], [1.0, 2.0, 3.0, 1.0, 2.0, 4.0]).with_grid(2, 3).is_err());
    }
}
