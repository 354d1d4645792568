//! A described plot as a scene of the drawing library, and as SVG and PNG.

use kuva::backend::svg::SvgBackend;
use kuva::plot::{BarPlot, LegendPosition, LinePlot, MarkerShape, ScatterPlot};
use kuva::prelude::{ReferenceLine, TextAnnotation};
use kuva::render::layout::{ComputedLayout, Layout, TickFormat};
use kuva::render::plots::Plot as Drawn;
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple, render_twin_y};

use super::label::{self, raised, raised_power, rise};
use super::map::{edges, heatmap, only_colour};
use super::reach::fits;
use super::ticks::{tick, tick_beside, ticks_of};
use super::{Content, Curve, CurveStyle, Plot};
use crate::error::{Error, Result};
use crate::number::format::plain;

/// Colours that readers with any colour vision tell apart (Okabe and Ito), the lightest left out.
pub(super) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// Most points of a curve. More points than pixels would only take time and disk space.
const POINTS: usize = 4096;
/// Pixels from the axis down to the names of points.
const BELOW: f64 = 18.0;

impl Plot {
    /// The plot as an SVG document.
    pub fn svg(&self) -> Result<String> {
        Ok(label::in_svg(SvgBackend::new().render_scene(&self.tidy().scene(self.size)?)))
    }

    /// The plot as a PNG picture.
    pub fn png(&self) -> Result<Vec<u8>> {
        let mut scene = self.tidy().scene(self.size)?;
        label::apart(&mut scene);
        let scale = self.dots as f32;
        kuva::PngBackend::new().with_scale(scale).render_scene(&scene).map_err(Error::internal)
    }

    /// The plot as a PDF page of its size.
    pub fn pdf(&self) -> Result<Vec<u8>> {
        super::pdf::document(&self.tidy().scene(self.size)?, self.serif)
    }

    /// The plot with texts of one line without control characters, which neither XML nor terminals can have, and with
    /// marks around what stands above and below the line.
    pub(super) fn tidy(&self) -> Plot {
        self.labelled(label::marked)
    }

    /// As [`Plot::tidy`], with labels read by this function.
    pub(super) fn labelled(&self, read: fn(&str) -> String) -> Plot {
        let tidy = |text: &mut String| {
            *text = read(&plain(text).replace(['\n', '\t', '\u{fffe}', '\u{ffff}'], " "));
        };
        let mut plot = self.clone();
        tidy(&mut plot.title);
        tidy(&mut plot.xlabel);
        tidy(&mut plot.ylabel);
        tidy(&mut plot.right_label);
        plot.categories.iter_mut().for_each(tidy);
        plot.ticks.iter_mut().for_each(|(_, name)| tidy(name));
        match &mut plot.content {
            Content::Curves(curves) => curves.iter_mut().for_each(|curve| tidy(&mut curve.name)),
            Content::Map(map) => tidy(&mut map.label),
            Content::Picture(picture) => {
                tidy(&mut picture.label);
                picture.names.iter_mut().for_each(tidy);
            }
            Content::Panels(rows) => {
                rows.iter_mut().flatten().for_each(|panel| *panel = panel.labelled(read))
            }
        }
        plot
    }

    /// Whether a legend is due.
    pub(super) fn has_legend(&self) -> bool {
        match &self.content {
            Content::Curves(curves) => self.legend.unwrap_or(curves.len() > 1),
            Content::Picture(picture) => picture.values.is_none() && picture.names.len() > 1,
            Content::Map(_) | Content::Panels(_) => false,
        }
    }

    pub(super) fn scene(&self, size: (f64, f64)) -> Result<Scene> {
        if let Content::Panels(rows) = &self.content {
            return self.panelled(rows, size);
        }
        let near = self.in_reach();
        if let Content::Picture(picture) = &near.content {
            let mut scene = near.pictured(picture, size)?;
            if picture.values.is_some() {
                near.name_colours(&mut scene, &picture.label);
                name_only_colour(&mut scene, picture.plots()?.iter().find_map(only_colour));
            }
            return Ok(scene);
        }
        let (left, right) = near.plots()?;
        let layout = near.layout(&left, &right, size);
        let only = left.iter().find_map(only_colour);
        let mut scene = drawn_together(left, right, layout);
        if !near.ticks.is_empty() {
            near.name_points(&mut scene);
        }
        if let Content::Map(map) = &near.content {
            near.name_colours(&mut scene, &map.label);
            name_only_colour(&mut scene, only);
        }
        Ok(scene)
    }

    /// What the colours of a map mean, above their bar on the right, in lines that find room there.
    fn name_colours(&self, scene: &mut Scene, label: &str) {
        let frame = scene.elements.iter().find_map(|e| match e {
            Primitive::ClipStart { x, y, width, height, .. } => Some((x + width, *y, *height)),
            _ => None,
        });
        let Some((right, top, height)) = frame else { return };
        // The bar has its numbers from the library.
        let label = match (self.log_y, self.units.colour.power) {
            (true, _) => format!("log₁₀ {label}"),
            (false, 0) => label.to_string(),
            (false, power) => format!("{label} in {}", raised(&format!("10^{{{}}}", -power))),
        };
        let mut lines: Vec<String> = Vec::new();
        for word in label.split_whitespace() {
            match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < 14) {
                Some(line) => *line = format!("{line} {word}"),
                None => lines.push(word.to_string()),
            }
        }
        for (i, line) in lines.into_iter().rev().enumerate() {
            scene.elements.push(Primitive::Text {
                x: right + 10.0,
                y: top + 0.1 * height - 8.0 - 13.0 * i as f64,
                content: line,
                size: 11,
                anchor: TextAnchor::Start,
                rotate: None,
                bold: false,
                color: None,
            });
        }
    }

    /// The library draws texts at data in a group that is clipped at the axes, which would hide those below: the
    /// names are moved behind that group. Ticks of the axis that have no number are removed.
    fn name_points(&self, scene: &mut Scene) {
        let bottom = scene.elements.iter().find_map(|e| match e {
            Primitive::ClipStart { y, height, .. } => Some(y + height),
            _ => None,
        });
        let Some(bottom) = bottom else { return };
        let is_name = |e: &Primitive| match e {
            Primitive::Text { y, content, .. } => {
                *y > bottom && self.ticks.iter().any(|(_, name)| name == content)
            }
            _ => false,
        };
        let is_mark = |e: &Primitive| match e {
            Primitive::Line { x1, y1, x2, y2, .. } => x1 == x2 && *y1 == bottom && *y2 > bottom,
            _ => false,
        };
        let (mut names, mut rest): (Vec<_>, Vec<_>) = scene.elements.drain(..).partition(is_name);
        rest.retain(|e| !is_mark(e));
        for name in &mut names {
            if let Primitive::Text { y, .. } = name {
                *y = bottom + BELOW;
            }
        }
        rest.extend(names);
        scene.elements = rest;
    }

    /// What is drawn, in the library's terms: on the left axis and on the right one.
    pub(super) fn plots(&self) -> Result<(Vec<Drawn>, Vec<Drawn>)> {
        let curves = match &self.content {
            Content::Map(map) => return Ok((vec![Drawn::Heatmap(heatmap(map, self.log_y)?)], Vec::new())),
            Content::Curves(curves) => curves,
            Content::Picture(picture) => return Ok((picture.plots()?, Vec::new())),
            Content::Panels(_) => return Err(Error::internal("panels are drawn one by one")),
        };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        left.extend(self.bars(curves)?.map(Drawn::Bar));
        for (i, curve) in curves.iter().enumerate().filter(|(_, curve)| curve.style != CurveStyle::Bars) {
            for (k, piece) in self.pieces(curve).iter().enumerate() {
                let named = self.has_legend() && k == 0;
                let side = if curve.right { &mut right } else { &mut left };
                side.extend(self.drawn(piece, self.colour(i), named));
            }
        }
        if left.is_empty() && !right.is_empty() {
            return Err(Error::input("no curve is left for the left axis").hint(
                "the option `right` names the curves of the second axis, which stands beside the first",
            ));
        }
        if left.is_empty() {
            let (axes, why) = match self.log_x || self.log_y {
                true => (" on logarithmic axes", "these show what is above 0"),
                false => ("", "what is NaN or infinite is not drawn"),
            };
            return Err(Error::input(format!("there is no finite point to plot{axes}")).hint(why));
        }
        Ok((left, right))
    }

    /// The colour of a curve. More curves than colours that no legend names, such as the bands of a ribbon,
    /// have one colour.
    pub(super) fn colour(&self, i: usize) -> &'static str {
        let many = matches!(&self.content, Content::Curves(curves) if curves.len() > COLOURS.len());
        if many && !self.has_legend() { COLOURS[0] } else { COLOURS[i % COLOURS.len()] }
    }

    /// The bars of all curves that are drawn so, side by side at every text.
    fn bars(&self, curves: &[Curve]) -> Result<Option<BarPlot>> {
        let of: Vec<(usize, &Curve)> =
            curves.iter().enumerate().filter(|(_, curve)| curve.style == CurveStyle::Bars).collect();
        if of.is_empty() {
            return Ok(None);
        }
        if self.log_y || self.log_x {
            return Err(Error::input("bars on a logarithmic axis")
                .hint("bars begin at zero, which has no logarithm: use the style \"points\""));
        }
        if of.iter().any(|(_, curve)| curve.right) {
            return Err(Error::input("bars on the right axis")
                .hint("only lines and points can stand there: name the column in `marks` as well"));
        }
        let sound = |x: f64| if x.is_finite() { x } else { 0.0 };
        let mut bars = BarPlot::new();
        let mut errors = Vec::new();
        for (row, name) in self.categories.iter().enumerate() {
            let group = of
                .iter()
                .map(|&(i, curve)| (sound(curve.y.get(row).copied().unwrap_or(0.0)), self.colour(i)));
            bars = bars.with_group(name.as_str(), group);
            for (_, curve) in &of {
                let error = curve.error.as_ref().and_then(|e| e.get(row)).map_or(0.0, |&e| sound(e).abs());
                errors.push((error, error));
            }
        }
        if of.iter().any(|(_, curve)| curve.error.is_some()) {
            bars.errors = Some(errors);
        }
        if self.has_legend() {
            bars = bars.with_legend(of.iter().map(|(_, curve)| curve.name.as_str()).collect());
        }
        Ok(Some(bars))
    }

    /// The layout for these plots: labels, ranges, legend.
    pub(super) fn layout(&self, plots: &[Drawn], right: &[Drawn], (width, height): (f64, f64)) -> Layout {
        let mut layout = Layout::auto_from_plots(plots).with_width(width).with_height(height);
        if !right.is_empty() {
            layout = layout.with_y2_auto(right).with_y2_label(&self.right_label);
            if self.log_right {
                layout = layout.with_log_y2();
            }
        }
        if !self.categories.is_empty() {
            layout = layout.with_x_categories(self.categories.clone());
            // Texts that would run into each other lean.
            let letters = self.categories.iter().map(|text| text.chars().count() + 2).max().unwrap_or(0);
            if (letters * self.categories.len()) as f64 * 7.0 > 0.8 * width {
                layout = layout.with_x_tick_rotate(-30.0);
            }
        }
        if !self.title.is_empty() {
            layout = layout.with_title(&self.title);
        }
        layout = layout.with_x_label(&self.xlabel).with_y_label(&self.ylabel);
        let map = matches!(self.content, Content::Map(_));
        if self.log_x && !map {
            layout = layout.with_log_x();
        }
        if self.log_y && !map {
            layout = layout.with_log_y();
        }
        if let Some((low, high)) = self.x_range.or_else(|| self.extent()) {
            layout = layout.with_x_axis_min(low).with_x_axis_max(high);
        }
        if let Some((low, high)) = self.y_range.or_else(|| self.map_extent()) {
            layout = layout.with_y_axis_min(low).with_y_axis_max(high);
        }
        if map {
            layout = layout.with_show_grid(false);
        }
        if let Some(points) = self.font_size {
            let pixels = |part: f64| (part * points / 0.75).round().max(4.0) as u32;
            layout = layout
                .with_label_size(pixels(1.0))
                .with_tick_size(pixels(0.9))
                .with_body_size(pixels(0.9))
                .with_title_size(pixels(1.15));
        }
        if self.serif {
            layout = layout.with_font_family("Times, 'Times New Roman', serif");
        }
        let digits = self.digits();
        // Numbers of small pictures would run into each other.
        let ticks = if width < 400.0 { 5 } else { 7 };
        let layout = layout
            .with_ticks(ticks)
            .with_tick_format(ticks_of(false, digits, self.units.colour.power))
            .with_x_tick_format(ticks_of(self.log_x && !map, digits, self.units.x.power))
            .with_y_tick_format(ticks_of(self.log_y && !map, digits, self.units.y.power))
            .with_y2_tick_format(ticks_of(self.log_right, digits, self.units.right.power))
            .with_legend_position(LegendPosition::OutsideRightTop)
            .with_legend_box(false)
            // Numbers of five digits would touch the label.
            .with_y_label_offset(-5.0, 0.0)
            .with_box_axes();
        self.named_points(self.beside_label(layout), height)
    }

    /// Room for the label on the left, and for what is raised in it, which the library does not know.
    fn beside_label(&self, mut layout: Layout) -> Layout {
        if !self.ylabel.is_empty() {
            let known = ComputedLayout::from_layout(&layout);
            layout.force_margin_left =
                Some(known.margin_left + 5.0 + rise(&self.ylabel) * f64::from(known.label_size));
        }
        layout
    }

    /// Names of points stand where numbers would, below the axis, with a line up from each.
    fn named_points(&self, mut layout: Layout, height: f64) -> Layout {
        let Some((low, high)) = self.y_range.or_else(|| self.heights()).filter(|_| !self.ticks.is_empty())
        else {
            return layout;
        };
        layout = layout
            .with_y_axis_min(low)
            .with_y_axis_max(high)
            .with_x_tick_format(TickFormat::Custom(std::sync::Arc::new(|_| String::new())))
            .with_show_grid(false);
        // The library places texts by data coordinates: some pixels below the axis, converted to the ordinate. The
        // exact place follows when the axis is known (`name_points`).
        let part = -BELOW / (height - 90.0).max(60.0);
        let logarithmic = self.log_y && matches!(self.content, Content::Curves(_));
        let below = if logarithmic { low * (high / low).powf(part) } else { low + part * (high - low) };
        for (x, name) in &self.ticks {
            layout = layout
                .with_reference_line(ReferenceLine::vertical(*x).with_color("#999999"))
                .with_annotation(TextAnnotation::new(name, *x, below));
        }
        layout
    }

    /// The range of the ordinates, with a margin.
    fn heights(&self) -> Option<(f64, f64)> {
        let Content::Curves(curves) = &self.content else { return self.map_extent() };
        let left = curves.iter().filter(|c| !c.right);
        let finite = left.flat_map(|c| &c.y).copied().filter(|&y| fits(y, self.log_y));
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), y| (l.min(y), h.max(y)));
        let margin = 0.05 * (high - low);
        let ends = if self.log_y { (low / 1.2, high * 1.2) } else { (low - margin, high + margin) };
        (low < high).then_some(ends)
    }

    /// The abscissa ends where the data end.
    pub(super) fn extent(&self) -> Option<(f64, f64)> {
        match &self.content {
            Content::Map(map) => Some(edges(&map.x)),
            Content::Picture(_) | Content::Panels(_) => None,
            Content::Curves(_) if !self.categories.is_empty() => {
                Some((0.5, self.categories.len() as f64 + 0.5))
            }
            Content::Curves(curves) => {
                let finite = curves.iter().flat_map(|c| &c.x).copied().filter(|&x| fits(x, self.log_x));
                let (low, high) =
                    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
                let marks = curves.iter().any(|c| c.style != CurveStyle::Lines);
                let (span, part) = (high - low, if marks { 0.03 } else { 0.0 });
                // A logarithmic axis grows by the same part of its length. A short one ends at ticks: it might
                // have only one otherwise.
                let ends = if self.log_x && high < 10.0 * low {
                    (tick_beside(low, false), tick_beside(high, true))
                } else if self.log_x {
                    let factor = (high / low).powf(part);
                    (low / factor, high * factor)
                } else {
                    (low - part * span, high + part * span)
                };
                (low < high).then_some(ends)
            }
        }
    }

    pub(super) fn map_extent(&self) -> Option<(f64, f64)> {
        match &self.content {
            Content::Map(map) => Some(edges(&map.y)),
            Content::Curves(_) | Content::Picture(_) | Content::Panels(_) => None,
        }
    }

    /// The stretches of a curve that the axes can show, with no more points than pixels: a line does not bridge a gap
    /// where there is no number, or none with a logarithm. It ends at the border that it goes on behind,
    /// where no mark stands.
    pub(super) fn pieces(&self, curve: &Curve) -> Vec<Curve> {
        match self.to_borders(curve) {
            None => self.stretches(curve),
            Some(longer) if curve.style == CurveStyle::Lines => self.stretches(&longer),
            Some(longer) => {
                let line = Curve { style: CurveStyle::Lines, error: None, ..longer };
                let marks = Curve { style: CurveStyle::Points, ..curve.clone() };
                self.stretches(&marks).into_iter().chain(self.stretches(&line)).collect()
            }
        }
    }

    /// A line with the points where it meets the ends of the abscissa's range between two others;
    /// nothing where it does not.
    fn to_borders(&self, curve: &Curve) -> Option<Curve> {
        let (low, high) = self.x_range.filter(|_| curve.style != CurveStyle::Points)?;
        let scaled = |x: f64, logarithmic: bool| if logarithmic { x.ln() } else { x };
        let place = |x: f64| scaled(x, self.log_x);
        let sound = |i: usize| fits(curve.x[i], self.log_x) && fits(curve.y[i], self.log_of(curve));
        let none = Curve { x: Vec::new(), y: Vec::new(), error: None, ..curve.clone() };
        let mut longer = Curve { error: curve.error.as_ref().map(|_| Vec::new()), ..none };
        let mut add = |x: f64, y: f64, error: Option<f64>| {
            longer.x.push(x);
            longer.y.push(y);
            longer.error.iter_mut().for_each(|all| all.extend(error));
        };
        let error = |i: usize| curve.error.as_ref().map(|e| e.get(i).copied().unwrap_or(0.0));
        let points = curve.x.len().min(curve.y.len());
        for i in 0..points {
            add(curve.x[i], curve.y[i], error(i));
            if i + 1 == points || !sound(i) || !sound(i + 1) {
                continue;
            }
            let (from, to) = (place(curve.x[i]), place(curve.x[i + 1]));
            let parts = [low, high].map(|border| (border, (place(border) - from) / (to - from)));
            let mut met: Vec<(f64, f64)> = parts.into_iter().filter(|(_, t)| *t > 0.0 && *t < 1.0).collect();
            met.sort_by(|a, b| a.1.total_cmp(&b.1));
            for (border, t) in met {
                let between = |a: f64, b: f64| a * (1.0 - t) + b * t;
                let [a, b] = [i, i + 1].map(|k| scaled(curve.y[k], self.log_of(curve)));
                let y = between(a, b);
                let y = if self.log_of(curve) { y.exp() } else { y };
                add(border, y, error(i).zip(error(i + 1)).map(|(a, b)| between(a, b)));
            }
        }
        (longer.x.len() > points).then_some(longer)
    }

    /// How many points have no place on a logarithmic axis, and how many points there are.
    pub fn without_logarithm(&self) -> (usize, usize) {
        let curves = match &self.content {
            Content::Curves(curves) => curves,
            Content::Panels(rows) => {
                let of = rows.iter().flatten().map(Plot::without_logarithm);
                return of.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
            }
            Content::Map(_) | Content::Picture(_) => return (0, 0),
        };
        let points = |curve: &Curve| {
            let log_y = self.log_of(curve);
            let finite = curve.x.iter().zip(&curve.y).filter(|(x, y)| x.is_finite() && y.is_finite());
            let lost = finite.clone().filter(|&(&x, &y)| !(fits(x, self.log_x) && fits(y, log_y)));
            (lost.count(), finite.count())
        };
        curves.iter().map(points).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }

    fn stretches(&self, curve: &Curve) -> Vec<Curve> {
        let within = |x: f64| self.x_range.is_none_or(|(low, high)| (low..=high).contains(&x));
        let shown = |i: usize| {
            fits(curve.x[i], self.log_x) && within(curve.x[i]) && fits(curve.y[i], self.log_of(curve))
        };
        let all: Vec<usize> = (0..curve.x.len().min(curve.y.len())).collect();
        if curve.style == CurveStyle::Points {
            let kept: Vec<usize> = all.into_iter().filter(|&i| shown(i)).collect();
            return if kept.is_empty() { Vec::new() } else { vec![picked(curve, &kept)] };
        }
        all.split(|&i| !shown(i))
            .filter(|stretch| !stretch.is_empty())
            .map(|stretch| {
                let thin = if curve.style == CurveStyle::Lines {
                    thinned(stretch, &curve.y)
                } else {
                    stretch.to_vec()
                };
                let piece = picked(curve, &thin);
                // A single point makes no line and is drawn as a mark.
                if thin.len() == 1 { Curve { style: CurveStyle::Points, ..piece } } else { piece }
            })
            .collect()
    }

    /// Whether the ordinate of a curve is logarithmic.
    fn log_of(&self, curve: &Curve) -> bool {
        if curve.right { self.log_right } else { self.log_y }
    }

    fn drawn(&self, curve: &Curve, colour: &str, named: bool) -> Vec<Drawn> {
        let points: Vec<(f64, f64)> = curve.x.iter().copied().zip(curve.y.iter().copied()).collect();
        // On a logarithmic axis an error bar as large as its value would be infinitely long.
        let below = |y: f64, e: f64| if self.log_of(curve) { e.min(0.9 * y) } else { e };
        let mut plots = Vec::new();
        if curve.style != CurveStyle::Points {
            let mut line =
                LinePlot::new().with_data(points.clone()).with_color(colour).with_stroke_width(1.6);
            // Where an error is not known, the band has a gap.
            if let (Some(error), CurveStyle::Lines) = (&curve.error, curve.style) {
                let all: Vec<usize> = (0..error.len()).collect();
                for known in all.split(|&i| !error[i].is_finite()).filter(|known| known.len() > 1) {
                    let of =
                        |side: &dyn Fn(usize) -> f64| known.iter().map(|&i| side(i)).collect::<Vec<f64>>();
                    let low = of(&|i| curve.y[i] - below(curve.y[i], error[i]));
                    let high = of(&|i| curve.y[i] + error[i]);
                    if known.len() == error.len() {
                        line = line.with_band(low, high);
                    } else {
                        let part = known.iter().map(|&i| points[i]).collect::<Vec<_>>();
                        let part = LinePlot::new().with_data(part).with_color(colour).with_stroke_width(1.6);
                        plots.push(Drawn::Line(part.with_band(low, high)));
                    }
                }
            }
            if named && curve.style == CurveStyle::Lines {
                line = line.with_legend(&curve.name);
            }
            plots.push(Drawn::Line(line));
        }
        if curve.style != CurveStyle::Lines {
            let known = |i: usize| curve.error.as_ref().is_none_or(|error| error[i].is_finite());
            let (with, without): (Vec<usize>, Vec<usize>) = (0..points.len()).partition(|&i| known(i));
            for (k, some) in [with, without].into_iter().filter(|some| !some.is_empty()).enumerate() {
                let mut marks = ScatterPlot::new()
                    .with_data(some.iter().map(|&i| points[i]).collect::<Vec<_>>())
                    .with_color(colour)
                    .with_size(3.0)
                    .with_marker(MarkerShape::Circle);
                if let Some(error) = curve.error.as_ref().filter(|_| known(some[0])) {
                    let ends = some.iter().map(|&i| (below(curve.y[i], error[i]), error[i]));
                    marks = marks.with_y_err_asymmetric(ends.collect::<Vec<(f64, f64)>>());
                }
                if named && k == 0 {
                    marks = marks.with_legend(&curve.name);
                }
                plots.push(Drawn::Scatter(marks));
            }
        }
        plots
    }
}

/// The number beside the bar of a map that has one colour only: the library writes none there.
pub(super) fn name_only_colour(scene: &mut Scene, only: Option<f64>) {
    let Some(only) = only else { return };
    let bar = scene.elements.iter().rev().find_map(|e| match e {
        Primitive::Rect { x, y, width, height, stroke: Some(_), .. } => Some((x + width, y + 0.5 * height)),
        _ => None,
    });
    let Some((right, middle)) = bar else { return };
    scene.elements.push(Primitive::Text {
        x: right + 6.0,
        y: middle + 4.0,
        content: raised_power(&tick(only, 5)),
        size: 11,
        anchor: TextAnchor::Start,
        rotate: None,
        bold: false,
        color: None,
    });
}

/// Curves of both ordinates in one scene.
pub(super) fn drawn_together(left: Vec<Drawn>, right: Vec<Drawn>, layout: Layout) -> Scene {
    if right.is_empty() { render_multiple(left, layout) } else { render_twin_y(left, right, layout) }
}

/// The curve at these points only.
fn picked(curve: &Curve, kept: &[usize]) -> Curve {
    let pick = |data: &[f64]| kept.iter().map(|&i| data.get(i).copied().unwrap_or(0.0)).collect::<Vec<f64>>();
    Curve {
        name: curve.name.clone(),
        x: pick(&curve.x),
        y: pick(&curve.y),
        error: curve.error.as_ref().map(|error| pick(error).into_iter().map(f64::abs).collect()),
        style: curve.style,
        right: curve.right,
    }
}

/// At most [`POINTS`] of the points: of each stretch the lowest and the highest, so that no peak is lost.
fn thinned(kept: &[usize], y: &[f64]) -> Vec<usize> {
    if kept.len() <= POINTS {
        return kept.to_vec();
    }
    let stretch = kept.len().div_ceil(POINTS / 2);
    kept.chunks(stretch)
        .flat_map(|chunk| {
            let by = |a: &&usize, b: &&usize| y[**a].total_cmp(&y[**b]);
            let low = chunk.iter().min_by(by).copied();
            let high = chunk.iter().max_by(by).copied();
            let mut pair: Vec<usize> = low.into_iter().chain(high).collect();
            pair.sort_unstable();
            pair.dedup();
            pair
        })
        .collect()
}
