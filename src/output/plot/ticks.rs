//! The numbers at the axes.

use kuva::render::layout::TickFormat;

use super::label::{raised, raised_power};
use super::reach::{fits, times_ten};
use super::{Content, Plot};
use crate::number::format::real;

impl Plot {
    /// How many digits tell ticks apart: more than five where an axis spans little of its numbers.
    pub(super) fn digits(&self) -> usize {
        let (xs, ys): (Vec<&[f64]>, Vec<&[f64]>) = match &self.content {
            Content::Map(map) => (vec![&map.x], vec![&map.y]),
            Content::Curves(curves) => curves.iter().map(|c| (&c.x[..], &c.y[..])).unzip(),
            Content::Picture(_) | Content::Panels(_) => (Vec::new(), Vec::new()),
        };
        let needed = |lists: Vec<&[f64]>, logarithmic: bool, range: Option<(f64, f64)>| {
            let all = lists.into_iter().flatten().copied().filter(|&x| fits(x, logarithmic));
            let (low, high) = range.unwrap_or_else(|| {
                all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)))
            });
            let (most, span) = (low.abs().max(high.abs()), high - low);
            if logarithmic || !(span > 0.0) { 0 } else { ((most / span).log10() + 3.0).ceil() as usize }
        };
        let map = matches!(self.content, Content::Map(_));
        needed(xs, self.log_x, self.x_range).max(needed(ys, self.log_y && !map, self.y_range)).clamp(5, 12)
    }
}

/// How an axis writes its numbers, which have been multiplied by this power of ten: a logarithmic one in powers of ten
/// where it is far from 1.
pub(super) fn ticks_of(logarithmic: bool, digits: usize, scaled: i32) -> TickFormat {
    TickFormat::Custom(std::sync::Arc::new(move |x| {
        let power = x.abs().log10().round();
        let pure = (x.abs() / 10f64.powf(power) - 1.0).abs() < 1e-9;
        let power = power - f64::from(scaled);
        if logarithmic && pure && !(-1.5..3.5).contains(&power) {
            return raised(&format!("10^{power:.0}"));
        }
        let own = times_ten(x, -scaled);
        // The last tick may lie beyond the largest number.
        raised_power(&if own.is_finite() {
            tick(own, digits)
        } else {
            format!("{}e{}", tick(x, digits), -scaled)
        })
    }))
}

/// The next of 1, 2 and 5 times a power of ten, at `x` or beyond.
pub(super) fn tick_beside(x: f64, above: bool) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let next = if above {
        steps.into_iter().find(|&step| step >= x * (1.0 - 1e-9))
    } else {
        steps.into_iter().rev().find(|&step| step <= x * (1.0 + 1e-9))
    };
    next.unwrap_or(x)
}

/// The text beside a tick.
pub(super) fn tick(x: f64, digits: usize) -> String {
    let text = real(x, digits);
    text.strip_suffix(".0").map_or(text.replace(".0e", "e"), str::to_string)
}
