//! How a `Table` prints: one line that says what it is, then aligned columns, cut to what a screen holds.

use std::fmt;

use super::format::{complex, plain, real};
use super::matrix_display::shown;
use super::memory::ensure;
use super::{Cell, Column, Number, Table};
use crate::error::Result;

/// Rows shown at most, and the width of the screen in characters.
const SHOWN: usize = 11;
const WIDTH: usize = 100;

/// A name as it can stand in a line of a screen.
fn shown_name(name: &str) -> String {
    plain(name).replace('\n', "\\n").replace('\t', "\\t")
}

impl Table {
    /// One line: `Table of 2048 rows: energy, density, error`.
    pub fn summary(&self) -> String {
        let names: Vec<String> = self.names().map(shown_name).collect();
        let rows = if self.rows() == 1 { "row" } else { "rows" };
        let grid = self.grid().map_or(String::new(), |(nx, ny)| format!(" ({nx} x {ny} points)"));
        format!("Table of {} {rows}{grid}: {}", self.rows(), names.join(", "))
    }

    /// All rows and all columns as a text, however long and wide, numbers to so many digits. Texts stand to the left.
    ///
    /// # Errors
    /// No memory for so long a text.
    pub fn whole(&self, digits: usize) -> Result<String> {
        let bytes = 32 * (self.rows() as u128 + 1) * self.names().count() as u128;
        ensure(bytes, "the text of the whole table")?;
        Ok(self.text(self.rows(), usize::MAX, digits))
    }

    /// The columns one after the other as texts, the name first: whether it stands to the left,
    /// and its cells in these rows.
    fn written<'a>(
        &'a self,
        rows: &'a [Option<usize>],
        digits: usize,
    ) -> impl Iterator<Item = (bool, Vec<String>)> + 'a {
        self.columns().map(move |(name, data)| {
            let mut cells = vec![shown_name(name)];
            cells.extend(rows.iter().map(|row| match row.and_then(|i| data.get(i)) {
                Some(Cell::Number(Number::Real(x))) => real(x, digits),
                Some(Cell::Number(Number::Complex(z))) => complex(z, digits),
                Some(Cell::Text(text)) => shown_name(&text),
                None => "...".into(),
            }));
            (matches!(data, Column::Texts(_)), cells)
        })
    }

    /// Its columns for a page: of more rows or columns than so many the first and the last ones. Of each, whether it
    /// stands to the left, and its cells, the name first.
    pub fn page(&self, most: usize, across: usize) -> Vec<(bool, Vec<String>)> {
        let rows = shown(self.rows(), most);
        let count = self.names().count();
        let wanted = shown(count, across);
        let mut all: Vec<Option<(bool, Vec<String>)>> = Vec::new();
        for (place, column) in self.written(&rows, 6).enumerate() {
            if wanted.contains(&Some(place)) {
                all.push(Some(column));
            } else if all.last().is_some_and(Option::is_some) {
                all.push(None);
            }
        }
        let left_out = || (false, vec!["...".to_string(); rows.len() + 1]);
        all.into_iter().map(|column| column.unwrap_or_else(left_out)).collect()
    }

    /// The summary and the columns, aligned: so many rows, of more the first and the last ones,
    /// so many characters wide.
    fn text(&self, most: usize, wide: usize, digits: usize) -> String {
        let mut text = self.summary();
        if self.rows() == 0 {
            return text;
        }
        let rows = shown(self.rows(), most);
        let mut columns: Vec<Vec<String>> = Vec::new();
        let mut width = 0;
        for (left, cells) in self.written(&rows, digits) {
            let broad = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            width += broad + 2;
            if width > wide && !columns.is_empty() {
                // The summary has named the columns that find no room.
                columns.push(vec!["...".to_string(); rows.len() + 1]);
                break;
            }
            let aligned =
                |cell: &String| if left { format!("{cell:<broad$}") } else { format!("{cell:>broad$}") };
            columns.push(cells.iter().map(aligned).collect());
        }
        for i in 0..=rows.len() {
            let line: Vec<&str> = columns.iter().filter_map(|c| c.get(i).map(String::as_str)).collect();
            text.push_str("\n  ");
            text.push_str(line.join("  ").trim_end());
        }
        text
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(SHOWN, WIDTH, 6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Series;

    #[test]
    fn a_long_table_shows_head_and_tail() {
        let x = Series::linspace(0.0, 1.0, 2048).unwrap();
        let t = Table::from_columns([("energy", x.clone()), ("density", x)]).unwrap();
        let text = t.to_string();
        assert!(text.starts_with("Table of 2048 rows: energy, density\n"));
        assert_eq!(text.lines().count(), SHOWN + 2);
        let widths: Vec<usize> = text.lines().skip(1).map(str::len).collect();
        assert!(widths.iter().all(|&w| w == widths[0]), "{text}");
    }

    #[test]
    fn names_do_not_reach_the_terminal_as_commands() {
        let t = Table::from_columns([("\u{1b}[2Jx\ny\u{9b}1m", vec![1.0])]).unwrap();
        let text = t.to_string();
        assert!(text.contains("\\u{1b}[2Jx\\ny\\u{9b}1m"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n') && text.lines().count() == 3, "{text}");
    }

    #[test]
    fn on_demand_all_of_it_is_shown() {
        let names: Vec<String> = (0..40).map(|i| format!("a{i}")).collect();
        let mut t = Table::from_columns([("name", names)]).unwrap();
        for i in 0..30 {
            t = t.with_column(format!("column{i}"), vec![1.0 / 3.0; 40]).unwrap();
        }
        let text = t.whole(3).unwrap();
        assert!(text.lines().count() == 42 && text.contains("  a39   ") && text.ends_with("0.333"), "{text}");
        assert!(!text.contains("..."));
    }

    #[test]
    fn many_columns_are_cut() {
        let columns = (0..40).map(|i| (format!("column{i}"), vec![1.0 / 3.0]));
        let text = Table::from_columns(columns).unwrap().to_string();
        assert!(text.lines().skip(1).all(|line| line.len() <= WIDTH + 8), "{text}");
    }
}
