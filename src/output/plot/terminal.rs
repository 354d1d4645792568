//! A plot as text: braille dots in a frame of characters, for the terminal.

use kuva::TerminalBackend;
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

use super::Plot;
use crate::error::Result;

impl Plot {
    /// The plot as text of `columns` x `rows` characters, with colours if the reader's terminal shows them.
    pub fn terminal(&self, columns: usize, rows: usize, colour: bool) -> Result<String> {
        let (columns, rows) = (columns.clamp(30, 400), rows.clamp(10, 200));
        let plots = self.plots()?;
        // A character is some 8 x 16 pixels; at this size labels take the room that they take as text.
        let layout = self
            .layout(&plots, (columns as f64 * 8.0, rows as f64 * 16.0))
            .with_theme(Theme::dark())
            .with_show_grid(false)
            .with_term_rows(rows as u32);
        let text = TerminalBackend::new(columns, rows).render_scene(&render_multiple(plots, layout));
        let text = if colour { text } else { plain(&text) };
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim_end().to_string())
    }
}

/// The text without its colours.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            // A colour ends at its letter.
            chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            out.push(c);
        }
    }
    out
}

/// Columns and rows of the terminal that standard output is, if it is one.
pub fn terminal_size() -> Option<(usize, usize)> {
    let terminal = console::Term::stdout();
    let (rows, columns) = terminal.is_term().then(|| terminal.size())?;
    Some((columns.into(), rows.into()))
}
