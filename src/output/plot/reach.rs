//! Numbers that the drawing library cannot tell apart: it takes logarithms only down to 1e-10, treats spans of 1e-16 as
//! zero, and overflows for sums of 1e308. Such data are drawn in units of a power of ten; the numbers at the axes
//! include this power. Data that differ by little of their size are drawn less an offset, which the label tells.

use super::label::raised_power;
use super::{Content, CurveStyle, Plot};

/// Numbers of this many times what they span are written less an offset: more digits than these would run into each
/// other at the ticks.
const LITTLE: f64 = 1e5;

/// How the numbers of an axis are drawn: less an offset, times a power of ten.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct AxisUnit {
    less: f64,
    pub(super) power: i32,
}

/// The units of each axis, and of the colours of a map.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct AxisUnits {
    pub(super) x: AxisUnit,
    pub(super) y: AxisUnit,
    pub(super) right: AxisUnit,
    pub(super) colour: AxisUnit,
}

impl AxisUnit {
    /// What suits numbers of an axis within these ends, if it has some, and these lengths of error bars. Axes that show
    /// zero have no offset.
    fn of(
        data: &[f64],
        ends: Option<(f64, f64)>,
        errors: &[f64],
        with_zero: bool,
        logarithmic: bool,
    ) -> Self {
        let shown: Vec<f64> = match ends {
            Some((low, high)) => vec![low, high],
            None => data.to_vec(),
        };
        let less = if with_zero || logarithmic { 0.0 } else { offset(&shown) };
        let moved = data.iter().chain(&shown).map(|x| x - less);
        AxisUnit { less, power: power(moved.chain(errors.iter().copied()), logarithmic) }
    }

    fn place(self, x: f64) -> f64 {
        times_ten(x - self.less, self.power)
    }

    fn move_all(self, data: &mut [f64]) {
        data.iter_mut().for_each(|x| *x = self.place(*x));
    }

    /// The label of the axis with the offset that its numbers lack.
    fn labelled(self, label: &str) -> String {
        if self.less == 0.0 {
            return label.to_string();
        }
        let (sign, size) = if self.less > 0.0 { ('−', self.less) } else { ('+', -self.less) };
        let scientific = format!("{size:e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let far = exponent.parse().is_ok_and(|exponent: i32| !(-5..15).contains(&exponent));
        let round = mantissa.len() == 1 && size >= 1e4;
        let number = if far || round { raised_power(&scientific) } else { size.to_string() };
        format!("{} {sign} {number}", if label.is_empty() { "value" } else { label })
    }
}

/// What numbers lose that differ by little of their size, so that those at the ticks are short: the roundest number
/// near them.
fn offset(data: &[f64]) -> f64 {
    let finite = data.iter().copied().filter(|x| x.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let (span, size) = (high - low, low.abs().max(high.abs()));
    if !(span > 0.0 && size > LITTLE * span && size < 1e300) {
        return 0.0;
    }
    let (least, most) = (span.log10().ceil() as i32, size.log10().floor() as i32);
    let multiple = |power: i32| {
        // The nearest number to a decimal one: a quotient of two whole ones.
        let ten = 10f64.powi(power.abs());
        if power < 0 { (high * ten).floor() / ten } else { (high / ten).floor() * ten }
    };
    let near = (least..=most).rev().map(multiple).find(|x| *x >= low - span);
    near.unwrap_or_else(|| multiple(least))
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
        let ticks: Vec<f64> = plot.ticks.iter().map(|(x, _)| *x).collect();
        let mut units = AxisUnits::default();
        match &mut plot.content {
            Content::Panels(_) => return plot,
            // Lattice constants are near one.
            Content::Picture(picture) => {
                if let Some(values) = &mut picture.values {
                    units.colour = AxisUnit::of(values, None, &[], false, false);
                    units.colour.move_all(values);
                    picture.label = units.colour.labelled(&picture.label);
                }
            }
            Content::Map(map) => {
                units.x = AxisUnit::of(&map.x, self.x_range, &[], !ticks.is_empty(), false);
                units.y = AxisUnit::of(&map.y, self.y_range, &[], false, false);
                if !self.log_y {
                    units.colour = AxisUnit::of(&map.z, None, &[], false, false);
                }
                units.x.move_all(&mut map.x);
                units.y.move_all(&mut map.y);
                units.colour.move_all(&mut map.z);
                map.label = units.colour.labelled(&map.label);
            }
            Content::Curves(curves) => {
                let x: Vec<f64> = curves.iter().flat_map(|c| &c.x).chain(&ticks).copied().collect();
                if self.categories.is_empty() {
                    units.x = AxisUnit::of(&x, self.x_range, &[], !ticks.is_empty(), self.log_x);
                }
                let side = |right: bool, range: Option<(f64, f64)>, logarithmic: bool| {
                    let of = || curves.iter().filter(move |c| c.right == right);
                    let y: Vec<f64> = of().flat_map(|c| &c.y).copied().collect();
                    // Error bars are drawn as long as they are on linear axes only.
                    let errors = of().filter(|_| !logarithmic).flat_map(|c| c.error.iter().flatten());
                    let errors: Vec<f64> = errors.copied().collect();
                    let bars = of().any(|c| c.style == CurveStyle::Bars);
                    AxisUnit::of(&y, range, &errors, bars, logarithmic)
                };
                units.y = side(false, self.y_range, self.log_y);
                units.right = side(true, None, self.log_right);
                for curve in curves.iter_mut() {
                    let own = if curve.right { units.right } else { units.y };
                    units.x.move_all(&mut curve.x);
                    own.move_all(&mut curve.y);
                    let lengths = AxisUnit { less: 0.0, ..own };
                    curve.error.iter_mut().for_each(|error| lengths.move_all(error));
                }
            }
        }
        let moved = |(low, high): (f64, f64), unit: AxisUnit| (unit.place(low), unit.place(high));
        if !matches!(plot.content, Content::Picture(_)) {
            plot.x_range = plot.x_range.map(|range| moved(range, units.x));
            plot.y_range = plot.y_range.map(|range| moved(range, units.y));
        }
        plot.ticks.iter_mut().for_each(|(x, _)| *x = units.x.place(*x));
        plot.xlabel = units.x.labelled(&plot.xlabel);
        plot.ylabel = units.y.labelled(&plot.ylabel);
        plot.right_label = units.right.labelled(&plot.right_label);
        plot.units = units;
        plot
    }
}
