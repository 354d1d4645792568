//! A map as the cells that are drawn.

use std::sync::Arc;

use kuva::plot::Heatmap;
use kuva::prelude::ColorMap;
use kuva::render::plots::Plot as Drawn;

use super::PlotMap;
use crate::error::{Error, Result};

/// The colour of a map where it has no number, as its red, green and blue: no other colour of a map is grey.
pub(super) const NOTHING: u8 = 160;

/// Most cells a side. More cells than pixels would only take time and disk space.
const CELLS: usize = 256;

/// From the outer edge of the first cell to that of the last, the centres given.
pub(super) fn edges(centres: &[f64]) -> (f64, f64) {
    match centres {
        [] => (0.0, 1.0),
        [only] => (only - 0.5, only + 0.5),
        [first, .., last] => {
            let half = 0.5 * (last - first) / (centres.len() - 1) as f64;
            ((first - half).min(last + half), (first - half).max(last + half))
        }
    }
}

/// The rows of a map from below, with at most so many cells a side, neighbours averaged; logarithms if asked for.
pub(super) fn averaged(map: &PlotMap, logarithmic: bool, most: usize) -> Result<Vec<Vec<f64>>> {
    let (nx, ny) = (map.x.len(), map.y.len());
    if nx == 0 || ny == 0 || map.z.len() != nx * ny {
        return Err(Error::input(format!("{} values do not fill a map of {nx} x {ny} points", map.z.len())));
    }
    let (wide, high) = (nx.min(most), ny.min(most));
    let mean = |i: usize, j: usize| {
        let (columns, rows) = (i * nx / wide..(i + 1) * nx / wide, j * ny / high..(j + 1) * ny / high);
        let cells =
            columns.flat_map(|c| rows.clone().map(move |r| map.z[c * ny + r])).filter(|z| z.is_finite());
        let (sum, n) = cells.fold((0.0, 0usize), |(s, n), z| (s + z, n + 1));
        sum / n as f64
    };
    // Axes of falling values are turned, so that both run upwards.
    let turned = |centres: &[f64], n: usize, i: usize| {
        if centres.first() > centres.last() { n - 1 - i } else { i }
    };
    let mut data: Vec<Vec<f64>> = (0..high)
        .map(|j| (0..wide).map(|i| mean(turned(&map.x, wide, i), turned(&map.y, high, j))).collect())
        .collect();
    if logarithmic {
        data.iter_mut().flatten().for_each(|z| *z = z.log10());
    }
    Ok(data)
}

/// The map as it is drawn.
pub(super) fn heatmap(map: &PlotMap, logarithmic: bool) -> Result<Heatmap> {
    let mut data = averaged(map, logarithmic, CELLS)?;
    let finite = data.iter().flatten().copied().filter(|z| z.is_finite()).fold(f64::INFINITY, f64::min);
    if !finite.is_finite() {
        return Err(
            Error::input("there is no finite point to plot").hint("what is NaN or infinite is not drawn")
        );
    }
    // The library finds the ends of its scale among what is no NaN.
    data.iter_mut().flatten().filter(|z| !z.is_finite()).for_each(|z| *z = f64::NAN);
    let ((x0, x1), (y0, y1)) = (edges(&map.x), edges(&map.y));
    let label = if logarithmic { format!("log10 {}", map.label) } else { map.label.clone() };
    let mut heatmap = Heatmap::new()
        .with_color_map(colours(&data))
        .with_data(data)
        .with_x_range(x0, x1)
        .with_y_range(y0, y1)
        .with_cell_size(1.0);
    if !label.is_empty() {
        heatmap = heatmap.with_legend(label);
    }
    Ok(heatmap)
}

/// The colours of these numbers, from the lowest to the highest; that of the middle if there is only one number.
pub(super) fn colours(data: &[Vec<f64>]) -> ColorMap {
    let one = only(data).is_some();
    ColorMap::Custom(Arc::new(move |z: f64| match z.is_nan() {
        true => format!("#{NOTHING:02x}{NOTHING:02x}{NOTHING:02x}"),
        false => ColorMap::Inferno.map(if one { 0.5 } else { z }),
    }))
}

/// The number of a map that has one everywhere.
pub(super) fn only_colour(drawn: &Drawn) -> Option<f64> {
    match drawn {
        Drawn::Heatmap(map) => only(&map.data),
        _ => None,
    }
}

fn only(data: &[Vec<f64>]) -> Option<f64> {
    let mut numbers = data.iter().flatten().copied().filter(|z| !z.is_nan());
    let first = numbers.next()?;
    numbers.all(|z| z == first).then_some(first)
}
