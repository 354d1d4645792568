//! Numbers that the drawing library cannot tell apart: it takes logarithms only down to 1e-10, treats spans of 1e-16 as
//! zero, and overflows for sums of 1e308. Such data are drawn in units of a power of ten; the numbers at the axes
//! include this power.

use super::{Content, Plot};

/// By which powers of ten the data of each axis, and the colours of a map, have been multiplied.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Powers {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) right: i32,
    pub(super) colour: i32,
}

/// Whether an axis has a place for the number.
pub(super) fn fits(x: f64, logarithmic: bool) -> bool {
    x.is_finite() && (!logarithmic || x > 0.0)
}

/// `x 10^power`, in two steps where the power alone would overflow.
pub(super) fn times_ten(x: f64, power: i32) -> f64 {
    let half = power / 2;
    if power == 0 { x } else { x * 10f64.powi(half) * 10f64.powi(power - half) }
}

/// The power of ten that brings such data where the library draws them; 0 where they are there.
fn power(data: impl Iterator<Item = f64>, logarithmic: bool) -> i32 {
    let sizes = data.filter(|&x| fits(x, logarithmic)).map(f64::abs).filter(|&x| x > 0.0);
    let (low, high) = sizes.fold((f64::INFINITY, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
    if high == 0.0 {
        return 0;
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().floor() as i32);
    match logarithmic {
        // The smallest is at 1e-8 then, unless that takes the largest out of range.
        true if first < -9 || last > 290 => (-8 - first).min(290 - last),
        false if !(-9..100).contains(&last) => -last,
        _ => 0,
    }
}

impl Plot {
    /// The plot with numbers that the library can draw.
    pub(super) fn in_reach(&self) -> Plot {
        let mut plot = self.clone();
        let ends = |range: Option<(f64, f64)>| range.into_iter().flat_map(|(low, high)| [low, high]);
        let ticks: Vec<f64> = plot.ticks.iter().map(|(x, _)| *x).collect();
        let mut powers = Powers::default();
        let scale = |data: &mut [f64], power: i32| data.iter_mut().for_each(|x| *x = times_ten(*x, power));
        match &mut plot.content {
            // Lattice constants are near one.
            Content::Panels(_) | Content::Picture(_) => return plot,
            Content::Map(map) => {
                powers.x = power(map.x.iter().copied().chain(ends(self.x_range)), false);
                powers.y = power(map.y.iter().copied().chain(ends(self.y_range)), false);
                powers.colour = if self.log_y { 0 } else { power(map.z.iter().copied(), false) };
                scale(&mut map.x, powers.x);
                scale(&mut map.y, powers.y);
                scale(&mut map.z, powers.colour);
            }
            Content::Curves(curves) => {
                let x = curves.iter().flat_map(|c| &c.x).chain(&ticks).copied().chain(ends(self.x_range));
                powers.x = if self.categories.is_empty() { power(x, self.log_x) } else { 0 };
                // Error bars are drawn as long as they are on linear axes only.
                let of = |right: bool, logarithmic: bool| {
                    let side = curves.iter().filter(move |c| c.right == right);
                    side.flat_map(move |c| {
                        let errors = c.error.iter().flatten().filter(move |_| !logarithmic);
                        c.y.iter().chain(errors).copied()
                    })
                };
                powers.y = power(of(false, self.log_y).chain(ends(self.y_range)), self.log_y);
                powers.right = power(of(true, self.log_right), self.log_right);
                for curve in curves {
                    let own = if curve.right { powers.right } else { powers.y };
                    scale(&mut curve.x, powers.x);
                    scale(&mut curve.y, own);
                    curve.error.iter_mut().for_each(|error| scale(error, own));
                }
            }
        }
        let scaled = |(low, high): (f64, f64), power: i32| (times_ten(low, power), times_ten(high, power));
        plot.x_range = plot.x_range.map(|range| scaled(range, powers.x));
        plot.y_range = plot.y_range.map(|range| scaled(range, powers.y));
        plot.ticks.iter_mut().for_each(|(x, _)| *x = times_ten(*x, powers.x));
        plot.powers = powers;
        plot
    }
}
