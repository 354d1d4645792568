//! Several plots in one picture: rows of them, each drawn on its own and put in its place.

use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::{Content, Plot};
use crate::error::{Error, Result};

impl Plot {
    /// Plots in rows, from the top; each row shares the width out evenly.
    ///
    /// # Errors
    /// No plots, or panels among them.
    pub fn panels(rows: Vec<Vec<Plot>>) -> Result<Plot> {
        if rows.is_empty() || rows.iter().any(Vec::is_empty) {
            return Err(Error::input("panels without a plot")
                .hint("they are rows of plots, like `[[a, b], [c, d]]`, and no row is empty"));
        }
        if rows.iter().flatten().any(|plot| matches!(plot.content, Content::Panels(_))) {
            return Err(Error::input("panels inside panels").hint("put all of them into one array of rows"));
        }
        let across = rows.iter().map(Vec::len).max().unwrap_or(1) as f64;
        let size = ((across * 480.0).max(720.0), 340.0 * rows.len() as f64);
        let lettered = rows.iter().map(Vec::len).sum::<usize>() > 1;
        Ok(Plot { size, lettered, ..Plot::new(Content::Panels(rows)) })
    }

    /// Rows of plots in one scene.
    pub(super) fn panelled(&self, rows: &[Vec<Plot>], (width, height): (f64, f64)) -> Result<Scene> {
        let mut whole: Option<Scene> = None;
        let (mut elements, mut defs) = (Vec::new(), Vec::new());
        let high = height / rows.len() as f64;
        let letters = self.font_size.map_or(15.0, |points| points / 0.75 * 1.1).round() as u32;
        let mut number = 0;
        for (i, row) in rows.iter().enumerate() {
            let wide = width / row.len() as f64;
            for (j, panel) in row.iter().enumerate() {
                let font_size = panel.font_size.or(self.font_size);
                let dressed = Plot { font_size, serif: panel.serif || self.serif, ..panel.clone() };
                let mut scene = dressed.scene((wide, high))?;
                let (x, y) = (j as f64 * wide, i as f64 * high);
                elements.push(Primitive::GroupStart {
                    transform: Some(format!("translate({x:.2},{y:.2})")),
                    title: None,
                    extra_attrs: None,
                });
                elements.append(&mut scene.elements);
                // Clipped regions are defined there, under names that no two scenes share.
                defs.append(&mut scene.defs);
                if self.lettered {
                    elements.push(letter(number, letters));
                }
                elements.push(Primitive::GroupEnd);
                number += 1;
                let whole = whole.get_or_insert(scene);
                (whole.width, whole.height) = (width, height);
            }
        }
        let mut whole = whole.ok_or_else(|| Error::internal("panels without a plot"))?;
        (whole.elements, whole.defs) = (elements, defs);
        Ok(whole)
    }
}

/// (a), (b), .. in the upper left corner.
fn letter(number: usize, size: u32) -> Primitive {
    let name = char::from(b'a' + (number % 26) as u8);
    Primitive::Text {
        x: 4.0,
        y: f64::from(size) + 2.0,
        content: format!("({name})"),
        size,
        anchor: TextAnchor::Start,
        rotate: None,
        bold: true,
        color: None,
    }
}
