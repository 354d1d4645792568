//! A plot as text: braille dots in a frame of characters, for the terminal.

use kuva::TerminalBackend;
use kuva::render::theme::Theme;

use super::draw::{drawn_together, name_only_colour};
use super::map::{NOTHING, only_colour};
use super::{Content, Plot, label};
use crate::error::Result;

impl Plot {
    /// The plot as text of `columns` x `rows` characters, with colours if the reader's terminal shows them.
    pub fn terminal(&self, columns: usize, rows: usize, colour: bool) -> Result<String> {
        if let Content::Panels(panels) = &self.content {
            // One below the other: side by side each would have too few characters.
            let texts = panels.iter().flatten().map(|panel| panel.terminal(columns, rows, colour));
            return texts.collect::<Result<Vec<_>>>().map(|texts| texts.join("\n"));
        }
        let (columns, rows) = (columns.clamp(30, 400), rows.clamp(10, 200));
        // Letters below each other would cover the numbers of the ticks, so the label of the ordinate goes
        // above the plot.
        let near = self.labelled(label::raised).in_reach();
        let rows = if near.ylabel.is_empty() { rows } else { rows - 1 };
        let ylabel = near.ylabel.clone();
        let beside = Plot { ylabel: String::new(), ..near };
        let (left, right) = beside.plots()?;
        // A character is some 8 x 16 pixels; at this size labels take the room that they take as text.
        let layout = beside
            .layout(&left, &right, (columns as f64 * 8.0, rows as f64 * 16.0))
            .with_theme(Theme::dark())
            .with_show_grid(false)
            .with_term_rows(rows as u32);
        let only = left.iter().find_map(only_colour);
        let mut scene = drawn_together(left, right, layout);
        name_only_colour(&mut scene, only);
        let text = TerminalBackend::new(columns, rows).render_scene(&scene);
        let map = matches!(self.content, Content::Map(_));
        let text = if colour { text } else { plain(&text, map) };
        let above = ylabel.chars().take(columns).collect::<String>();
        let lines = std::iter::once(above.as_str()).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.chain(text.lines().map(str::trim_end)).collect();
        Ok(lines.join("\n").trim_end().to_string())
    }
}

/// The text without its colours; in a map they become shades, darker where the colour is,
/// and a dot where there is no number.
fn plain(text: &str, map: bool) -> String {
    const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut shade = SHADES[4];
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            // An escape sequence ends with a letter.
            let code: String = chars.by_ref().take_while(|c| !c.is_ascii_alphabetic()).collect();
            if code.ends_with(&format!(";{NOTHING};{NOTHING};{NOTHING}")) {
                shade = '·';
            } else if let Some(light) = luminance(&code) {
                shade = SHADES[((light * SHADES.len() as f64) as usize).min(SHADES.len() - 1)];
            }
        } else if map && matches!(c, '⣿' | '█') {
            out.push(shade);
        } else {
            out.push(c);
        }
    }
    out
}

/// How light the colour of an escape sequence is, as `[38;2;R;G;B`, from 0 to 1.
fn luminance(code: &str) -> Option<f64> {
    let mut numbers = code.trim_start_matches('[').split(';').map(|n| n.parse::<f64>().ok());
    let (Some(Some(38.0)), Some(Some(2.0))) = (numbers.next(), numbers.next()) else { return None };
    let mut part = || numbers.next().flatten();
    let (r, g, b) = (part()?, part()?, part()?);
    Some((0.2126 * r + 0.7152 * g + 0.0722 * b) / 255.0)
}

/// Columns and rows of the terminal that standard output is, if it is one.
pub fn terminal_size() -> Option<(usize, usize)> {
    let terminal = console::Term::stdout();
    let (rows, columns) = terminal.is_term().then(|| terminal.size())?;
    Some((columns.into(), rows.into()))
}
