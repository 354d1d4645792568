//! Values for frontends: the same value in several formats; a frontend takes the best format that it knows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::output::files::FileData;
use crate::output::plot::Plot;

/// An SVG picture larger than this is left out: browsers take long over so many shapes, and notebooks grow.
/// The PNG stays.
const LARGEST: usize = 2 << 20;

/// A value with its text.
pub(super) fn of_value(text: &str, data: Option<&FileData>) -> Value {
    let mut bundle = Map::new();
    bundle.insert("text/plain".into(), text.into());
    if let Some(html) = data.and_then(FileData::html) {
        bundle.insert("text/html".into(), html.into());
    }
    bundle.into()
}

/// A plot as a picture: lines for screens and print, dots where a frontend shows no lines, and characters.
///
/// # Errors
/// A plot that cannot be drawn.
pub(super) fn of_plot(plot: &Plot) -> Result<Value> {
    let (text, svg, png) = (plot.terminal(80, 22, false)?, plot.svg()?, plot.png()?);
    let mut bundle = json!({ "text/plain": text, "image/png": STANDARD.encode(png) });
    if svg.len() <= LARGEST {
        bundle["image/svg+xml"] = svg.into();
    }
    Ok(bundle)
}
