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

/// Whether centres are far from evenly spaced.
fn uneven(centres: &[f64]) -> bool {
    let (Some(first), Some(last)) = (centres.first(), centres.last()) else { return false };
    let step = (last - first) / (centres.len() - 1).max(1) as f64;
    let off = |(i, x): (usize, &f64)| (x - first - i as f64 * step).abs() > 1e-3 * step.abs();
    // Rounding of computed places, or of those in a file, is none of it.
    centres.iter().enumerate().any(off)
}

/// Where the cells of rising centres begin and end: half-way between neighbours.
fn walls(centres: &[f64]) -> Vec<f64> {
    let half = |pair: &[f64]| 0.5 * (pair[0] + pair[1]);
    let inner: Vec<f64> = centres.windows(2).map(half).collect();
    match (centres, inner.first(), inner.last()) {
        ([first, .., last], Some(next), Some(before)) => {
            let ends = (2.0 * first - next, 2.0 * last - before);
            std::iter::once(ends.0).chain(inner.iter().copied()).chain([ends.1]).collect()
        }
        ([only], ..) => vec![only - 0.5, only + 0.5],
        _ => vec![0.0, 1.0],
    }
}

/// From the outer edge of the first cell to that of the last, the centres given.
pub(super) fn edges(centres: &[f64]) -> (f64, f64) {
    let mut rising = centres.to_vec();
    rising.sort_by(f64::total_cmp);
    if uneven(&rising) {
        let walls = walls(&rising);
        return (walls[0], walls[walls.len() - 1]);
    }
    match rising[..] {
        [] => (0.0, 1.0),
        [only] => (only - 0.5, only + 0.5),
        [first, .., last] => {
            let half = 0.5 * (last - first) / (rising.len() - 1) as f64;
            (first - half, last + half)
        }
    }
}

/// The least number of even cells, up to so many, whose walls are where these are, as far as so many could show.
fn fewest(walls: &[f64], most: usize) -> usize {
    let (low, span) = (walls[0], walls[walls.len() - 1] - walls[0]);
    let fits = |n: usize| {
        let off = |wall: &f64| {
            let at = (wall - low) / span * n as f64;
            (at - at.round()).abs() / n as f64
        };
        walls.iter().all(|wall| off(wall) <= 0.25 / most as f64)
    };
    (most.min(walls.len() - 1)..most).find(|&n| fits(n)).unwrap_or(most)
}

/// For each of the cells that are drawn along an axis, evenly spaced and rising: the points of the map in it, or that
/// whose cell has its middle.
fn drawn_cells(centres: &[f64], most: usize) -> Vec<Vec<usize>> {
    let n = centres.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| centres[a].total_cmp(&centres[b]));
    let rising: Vec<f64> = order.iter().map(|&i| centres[i]).collect();
    if !uneven(&rising) {
        let count = n.min(most);
        return (0..count).map(|i| order[i * n / count..(i + 1) * n / count].to_vec()).collect();
    }
    let walls = walls(&rising);
    let most = fewest(&walls, most.min(CELLS));
    let (low, width) = (walls[0], (walls[n] - walls[0]) / most as f64);
    let below = |x: f64| rising.partition_point(|&centre| centre < x);
    let cell = |i: usize| {
        let inside = below(low + i as f64 * width)..below(low + (i + 1) as f64 * width);
        let middle = low + (i as f64 + 0.5) * width;
        match inside.len() {
            // Several in one drawn cell are averaged.
            2.. => order[inside].to_vec(),
            _ => vec![order[walls[1..n].partition_point(|&wall| wall <= middle)]],
        }
    };
    (0..most).map(cell).collect()
}

/// The rows of a map from below, with at most so many cells a side, neighbours averaged; logarithms if asked for. Where
/// its points are not evenly spaced, each cell is what lies there.
pub(super) fn averaged(map: &PlotMap, logarithmic: bool, most: usize) -> Result<Vec<Vec<f64>>> {
    let (nx, ny) = (map.x.len(), map.y.len());
    if nx == 0 || ny == 0 || map.z.len() != nx * ny {
        return Err(Error::input(format!("{} values do not fill a map of {nx} x {ny} points", map.z.len())));
    }
    let (columns, rows) = (drawn_cells(&map.x, most), drawn_cells(&map.y, most));
    let mean = |columns: &[usize], rows: &[usize]| {
        let cells = columns
            .iter()
            .flat_map(|c| rows.iter().map(move |r| map.z[c * ny + r]))
            .filter(|z| z.is_finite());
        let (sum, n) = cells.fold((0.0, 0usize), |(s, n), z| (s + z, n + 1));
        sum / n as f64
    };
    let mut data: Vec<Vec<f64>> =
        rows.iter().map(|rows| columns.iter().map(|columns| mean(columns, rows)).collect()).collect();
    if logarithmic {
        data.iter_mut().flatten().for_each(|z| *z = z.log10());
    }
    Ok(data)
}

/// The places of a map's points along an axis, where its cells do not tell them.
pub(super) fn places(centres: &[f64]) -> Option<Vec<f64>> {
    let mut rising = centres.to_vec();
    rising.sort_by(f64::total_cmp);
    uneven(&rising).then_some(rising)
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
