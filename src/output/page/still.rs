//! Tables and matrices as HTML that stands still, for notebooks: cut to what a page holds, numbers to the right,
//! texts to the left.

use std::fmt::Write;

use crate::number::{Matrix, Table};

/// Rows and columns shown at most; of more, the first and the last ones.
const ROWS: usize = 31;
const ACROSS: usize = 20;

/// A text whose marks have no meaning in HTML.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

fn cell(out: &mut String, tag: &str, left: bool, text: &str) {
    let side = if left { "left" } else { "right" };
    // Writing to a text cannot fail.
    let _ = write!(out, "<{tag} style=\"text-align: {side}\">{}</{tag}>", escaped(text));
}

/// A table, its title above and its summary below.
pub fn table(table: &Table) -> String {
    let columns = table.page(ROWS, ACROSS);
    let mut out = String::from("<table>\n");
    if let Some(title) = table.title() {
        let _ = writeln!(out, "<caption>{}</caption>", escaped(title));
    }
    let lines = columns.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    for line in 0..lines {
        let tag = if line == 0 { "th" } else { "td" };
        out.push_str(if line == 0 { "<thead><tr>" } else { "<tr>" });
        for (left, cells) in &columns {
            cell(&mut out, tag, *left, cells.get(line).map_or("", String::as_str));
        }
        out.push_str(if line == 0 { "</tr></thead>\n<tbody>\n" } else { "</tr>\n" });
    }
    if lines > 0 {
        out.push_str("</tbody>\n");
    }
    let _ = write!(out, "</table>\n<p>{}</p>", escaped(&table.summary()));
    out
}

/// A matrix, its size below.
pub fn matrix(matrix: &Matrix) -> String {
    let mut out = String::from("<table>\n<tbody>\n");
    for row in matrix.page(ACROSS) {
        out.push_str("<tr>");
        row.iter().for_each(|text| cell(&mut out, "td", false, text));
        out.push_str("</tr>\n");
    }
    let kind = if matrix.is_complex() { "complex" } else { "real" };
    let _ = write!(out, "</tbody>\n</table>\n<p>Matrix {}, {kind}</p>", matrix.shape());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup_and_long_tables_are_cut() {
        let names: Vec<String> = (0..100).map(|i| format!("<b>{i}&")).collect();
        let table = Table::from_columns([("a\"<script>", names)]).unwrap();
        let html = super::table(&table);
        assert!(html.contains("a&quot;&lt;script&gt;") && !html.contains("<script") && !html.contains("<b>"));
        assert_eq!(html.matches("<tr>").count(), 1 + ROWS);
        assert!(html.contains(">&lt;b&gt;0&amp;<") && html.contains(">&lt;b&gt;99&amp;<"), "{html}");
        assert!(html.contains(">...</td>"));
    }

    #[test]
    fn small_and_broad_ones_are_whole_tables() {
        let empty = Table::from_columns([("x", Vec::<f64>::new())]).unwrap();
        assert_eq!(super::table(&empty).matches("<tr>").count(), 1);
        let broad = (0..50).map(|i| (format!("c{i}"), vec![1.0 / 3.0]));
        let html = super::table(&Table::from_columns(broad).unwrap());
        assert!(html.contains(">c0<") && html.contains(">c49<") && !html.contains(">c25<"), "{html}");
        assert_eq!(html.matches("<th ").count(), ACROSS);
        let html = super::matrix(&Matrix::identity(3).unwrap());
        assert_eq!((html.matches("<tr>").count(), html.matches(">1.0<").count()), (3, 3));
    }
}
