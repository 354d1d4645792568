//! A picture of a lattice: sites as discs, bonds as lines, currents as arrows, to one scale in both directions. The
//! library draws the axes around it, the legend or the bar of colours.

use kuva::plot::{Heatmap, MarkerShape, ScatterPlot};
use kuva::prelude::ColorMap;
use kuva::render::plots::Plot as Drawn;
use kuva::render::render::{PathData, Primitive, Scene};

use super::draw::{COLOURS, drawn_together};
use super::map::colours;
use super::{Content, Picture, Plot};
use crate::error::{Error, Result};

/// Colour of bonds, and of sites where currents are what is shown.
const GREY: [u8; 3] = [150, 150, 150];
/// Colour of currents.
const ARROWS: &str = "#d55e00";
/// The radius of a site, in lengths of a bond, and in pixels at least and at most.
const RADIUS: f64 = 0.2;
const RADII: (f64, f64) = (0.6, 9.0);
/// The radius in pixels of sites whose colour is read, if they have the room.
const SEEN: f64 = 5.0;
/// The radius of the largest site, where sizes are given.
const LARGEST: f64 = 0.46;
/// Currents that are smaller than this part of the largest one are left out.
const LEAST: f64 = 0.01;
/// How often axes are drawn until their numbers need no other room.
const MOST_PASSES: usize = 6;
/// The widest arrow, in lengths of a bond.
const WIDEST: f64 = 0.22;

/// Where the axes are: their frame in pixels, and their ranges.
#[derive(Clone, Copy)]
struct AxesFrame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    x: (f64, f64),
    y: (f64, f64),
}

impl AxesFrame {
    fn of(scene: &Scene, x: (f64, f64), y: (f64, f64)) -> Option<AxesFrame> {
        scene.elements.iter().find_map(|e| match *e {
            Primitive::ClipStart { x: left, y: top, width, height, .. } => {
                Some(AxesFrame { left, top, width, height, x, y })
            }
            _ => None,
        })
    }

    /// Pixels of a unit of length.
    fn scale(&self) -> f64 {
        (self.width / (self.x.1 - self.x.0)).min(self.height / (self.y.1 - self.y.0))
    }

    fn place(&self, at: [f64; 2]) -> [f64; 2] {
        [
            self.left + (at[0] - self.x.0) / (self.x.1 - self.x.0) * self.width,
            self.top + (self.y.1 - at[1]) / (self.y.1 - self.y.0) * self.height,
        ]
    }
}

impl Picture {
    /// The range of coordinates along an axis, with room for half a bond around.
    fn range(&self, axis: usize) -> (f64, f64) {
        let ends = self.bonds.iter().flat_map(|(a, b, _)| [a[axis], b[axis]]);
        let all = self.sites.iter().map(|site| site[axis]).chain(ends);
        let all = all.chain(self.paler.iter().map(|(site, _)| site[axis]));
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let room = 0.6 * self.length();
        if low <= high { (low - room, high + room) } else { (-1.0, 1.0) }
    }

    /// The length of a short bond; without bonds, a lattice constant.
    fn length(&self) -> f64 {
        let far = |(a, b, _): &([f64; 2], [f64; 2], f64)| (a[0] - b[0]).hypot(a[1] - b[1]);
        let whole = self.bonds.iter().filter(|(_, _, strength)| *strength == 1.0).map(far);
        let mut lengths: Vec<f64> = whole.filter(|x| *x > 1e-9).collect();
        if lengths.is_empty() {
            lengths = self.bonds.iter().map(|bond| 2.0 * far(bond)).filter(|x| *x > 1e-9).collect();
        }
        lengths.sort_by(f64::total_cmp);
        // Bonds that a view from above shortens are few.
        lengths.get(lengths.len() / 10).copied().unwrap_or(1.0)
    }

    /// What the library draws: the names of kinds of sites, or the bar of colours.
    pub(super) fn plots(&self) -> Result<Vec<Drawn>> {
        if self.sites.is_empty() {
            return Err(
                Error::input("there is no site to plot").hint("all sites of the lattice were removed")
            );
        }
        if let Some(values) = &self.values {
            let (low, high) = ends(values);
            let data = vec![vec![low, high]];
            let ((x0, x1), (y0, y1)) = (self.range(0), self.range(1));
            let map = Heatmap::new().with_color_map(colours(&data)).with_data(data);
            let map = map.with_x_range(x0, x1).with_y_range(y0, y1).with_cell_size(1.0);
            return Ok(vec![Drawn::Heatmap(map.with_legend(self.label.clone()))]);
        }
        let named = self.names.len() > 1 && self.arrows.is_empty();
        let kind = |(kind, name): (usize, &String)| {
            let of = self.sites.iter().zip(&self.kinds).filter(|(_, k)| **k == kind);
            let points: Vec<(f64, f64)> = of.map(|(at, _)| (at[0], at[1])).collect();
            let marks = ScatterPlot::new().with_data(points).with_color(COLOURS[kind % COLOURS.len()]);
            let marks = marks.with_size(3.0).with_marker(MarkerShape::Circle);
            Drawn::Scatter(if named { marks.with_legend(name) } else { marks })
        };
        Ok(self.names.iter().enumerate().map(kind).collect())
    }

    /// All that stands inside the axes.
    fn elements(&self, frame: &AxesFrame) -> Vec<Primitive> {
        let bond = self.length() * frame.scale();
        let mut all = Vec::new();
        for (a, b, strength) in &self.bonds {
            let ([x1, y1], [x2, y2]) = (frame.place(*a), frame.place(*b));
            let stroke = hex(pale(GREY, 1.0 - strength)).as_str().into();
            all.push(Primitive::Line {
                x1,
                y1,
                x2,
                y2,
                stroke,
                stroke_width: (0.08 * bond).clamp(0.4, 2.0),
                stroke_dasharray: None,
            });
        }
        let plain = !self.arrows.is_empty();
        let radius = |part: f64| (part * bond).clamp(RADII.0, RADII.1);
        let usual = match &self.values {
            // Colours are seen where discs are: in a large picture they touch.
            Some(_) => radius(RADIUS).max(radius(0.5).min(SEEN)),
            None => radius(if plain { 0.5 * RADIUS } else { RADIUS }),
        };
        for (at, strength) in &self.paler {
            all.push(disc(frame.place(*at), usual, &hex(pale(GREY, 1.0 - strength)), false));
        }
        let range = self.values.as_ref().map(|values| ends(values));
        let most = self.sizes.iter().flatten().fold(0.0f64, |most, s| most.max(s.abs()));
        for (i, at) in self.sites.iter().enumerate() {
            let value = self.values.as_ref().map(|values| values[i]);
            let colour = match (value, range) {
                (Some(value), Some((low, high))) if value.is_finite() => {
                    ColorMap::Inferno.map(if high > low { (value - low) / (high - low) } else { 0.5 })
                }
                (None, _) if !plain => COLOURS[self.kinds[i] % COLOURS.len()].to_string(),
                _ => hex(GREY),
            };
            let radius = match &self.sizes {
                Some(sizes) if most > 0.0 => LARGEST * bond * (sizes[i].abs() / most).sqrt(),
                _ => usual,
            };
            // Bright colours would be lost on white.
            all.push(disc(frame.place(*at), radius, &colour, value.is_some() && radius > 2.0));
        }
        let largest = self.arrows.iter().fold(0.0f64, |most, (_, _, flow)| most.max(flow.abs()));
        for &(from, to, flow) in self.arrows.iter().filter(|(_, _, flow)| flow.abs() > LEAST * largest) {
            let (from, to) = if flow > 0.0 { (from, to) } else { (to, from) };
            all.push(arrow(frame.place(from), frame.place(to), WIDEST * bond * flow.abs() / largest));
        }
        all
    }
}

impl Plot {
    /// A picture's scene, whose axes have the same scale.
    pub(super) fn pictured(&self, picture: &Picture, size: (f64, f64)) -> Result<Scene> {
        let (x, y) = (self.x_range.unwrap_or(picture.range(0)), self.y_range.unwrap_or(picture.range(1)));
        let drawn = |x: (f64, f64), y: (f64, f64)| -> Result<(Scene, AxesFrame)> {
            let plot = Plot { x_range: Some(x), y_range: Some(y), ..self.clone() };
            let plots = picture.plots()?;
            let layout = plot.layout(&plots, &[], size).with_show_grid(false);
            let scene = drawn_together(plots, Vec::new(), layout);
            let frame =
                AxesFrame::of(&scene, x, y).ok_or_else(|| Error::internal("a plot without a frame"))?;
            Ok((scene, frame))
        };
        // The numbers of the axes take room: the frame is known when they are drawn, then the scale,
        // and then other numbers.
        let (mut scene, mut frame) = drawn(x, y)?;
        for _ in 0..MOST_PASSES {
            let scale = (frame.width / (x.1 - x.0)).min(frame.height / (y.1 - y.0));
            let around = |(low, high): (f64, f64), pixels: f64| {
                let (middle, half) = (0.5 * (low + high), 0.5 * pixels / scale);
                (middle - half, middle + half)
            };
            let before = (frame.width, frame.height);
            (scene, frame) = drawn(around(x, frame.width), around(y, frame.height))?;
            if before == (frame.width, frame.height) {
                break;
            }
        }
        let (mut rest, mut inside) = (Vec::with_capacity(scene.elements.len()), false);
        for element in scene.elements.drain(..) {
            let (starts, stops) =
                (matches!(element, Primitive::ClipStart { .. }), matches!(element, Primitive::ClipEnd));
            if stops {
                inside = false;
            }
            if !inside {
                rest.push(element);
            }
            if starts {
                inside = true;
                rest.extend(picture.elements(&frame));
            }
        }
        scene.elements = rest;
        Ok(scene)
    }

    /// A picture of a lattice as a plot, as high as it needs to be.
    pub fn from_picture(picture: Picture) -> Plot {
        let (x, y) = (picture.range(0), picture.range(1));
        let aspect = (y.1 - y.0) / (x.1 - x.0);
        // A bar of colours is no shorter than its label.
        let least = if picture.values.is_some() { 320.0 } else { 240.0 };
        let mut plot = Plot::new(Content::Picture(Box::new(picture)));
        // The axes take some 90 pixels in both directions.
        plot.size = (720.0, (630.0 * aspect + 90.0).round().clamp(least, 900.0));
        plot
    }
}

/// The least and the largest number.
fn ends(values: &[f64]) -> (f64, f64) {
    let finite = values.iter().copied().filter(|x| x.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

fn disc([cx, cy]: [f64; 2], r: f64, colour: &str, outlined: bool) -> Primitive {
    let (stroke, stroke_width) = if outlined { (Some("#555555".into()), Some(0.5)) } else { (None, None) };
    Primitive::Circle { cx, cy, r, fill: colour.into(), fill_opacity: None, stroke, stroke_width }
}

/// An arrow of a width in pixels: a shaft, and a head that is large enough to be seen.
fn arrow([x1, y1]: [f64; 2], [x2, y2]: [f64; 2], width: f64) -> Primitive {
    let length = (x2 - x1).hypot(y2 - y1).max(1e-9);
    let (along, across) =
        ([(x2 - x1) / length, (y2 - y1) / length], [-(y2 - y1) / length, (x2 - x1) / length]);
    let (half, wide) = (0.5 * width.max(0.4), (1.3 * width).clamp(0.12 * length, 0.3 * length));
    let neck = length - (2.0 * wide).min(0.6 * length);
    let point = |a: f64, b: f64| {
        format!("{:.2},{:.2}", x1 + a * along[0] + b * across[0], y1 + a * along[1] + b * across[1])
    };
    let corners =
        [(0.0, half), (neck, half), (neck, wide), (length, 0.0), (neck, -wide), (neck, -half), (0.0, -half)];
    let points: Vec<String> = corners.iter().map(|&(a, b)| point(a, b)).collect();
    Primitive::Path(Box::new(PathData {
        d: format!("M {} Z", points.join(" L ")),
        fill: Some(ARROWS.into()),
        stroke: ARROWS.into(),
        stroke_width: 0.3,
        opacity: None,
        stroke_dasharray: None,
    }))
}

/// A colour mixed with so much white.
fn pale(colour: [u8; 3], white: f64) -> [u8; 3] {
    colour.map(|c| (f64::from(c) + (255.0 - f64::from(c)) * white.clamp(0.0, 1.0)).round() as u8)
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triangle() -> Picture {
        let sites = vec![[0.0, 0.0], [8.0, 0.0], [0.0, 1.0]];
        let bonds = vec![(sites[0], sites[2], 1.0)];
        Picture {
            sites,
            bonds,
            kinds: vec![0, 1, 0],
            names: vec!["A".into(), "B".into()],
            ..Picture::default()
        }
    }

    fn discs(plot: &Plot) -> Vec<(f64, f64, f64, String)> {
        let scene = plot.scene(plot.size).unwrap();
        let inside = scene.elements.iter().skip_while(|e| !matches!(e, Primitive::ClipStart { .. }));
        let inside = inside.take_while(|e| !matches!(e, Primitive::ClipEnd));
        inside
            .filter_map(|e| match e {
                Primitive::Circle { cx, cy, r, fill, .. } => Some((*cx, *cy, *r, fill.to_svg_string())),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn lengths_are_the_same_in_both_directions() {
        for size in [(720.0, 560.0), (300.0, 900.0), (1500.0, 300.0)] {
            let found = discs(&Plot { size, ..Plot::from_picture(triangle()) });
            assert_eq!(found.len(), 3);
            let (across, up) = (found[1].0 - found[0].0, found[0].1 - found[2].1);
            assert!(across > 100.0 && (across - 8.0 * up).abs() < 1e-6, "{size:?} {across} {up}");
        }
    }

    #[test]
    fn numbers_of_sites_are_colours_and_areas() {
        let values = Some(vec![0.0, 1.0, f64::NAN]);
        let plot = Plot::from_picture(Picture { values, sizes: Some(vec![4.0, 1.0, 0.0]), ..triangle() });
        let found = discs(&plot);
        assert!((found[0].2 - 2.0 * found[1].2).abs() < 1e-9 && found[2].2 == 0.0);
        assert_eq!(found[2].3, hex(GREY));
        assert_ne!(found[0].3, found[1].3);
    }

    #[test]
    fn pictures_draw_everywhere_but_on_pages() {
        let arrows = vec![([0.0, 0.0], [0.0, 1.0], -2.0), ([0.0, 0.0], [8.0, 0.0], 1e-9)];
        for picture in [
            triangle(),
            Picture { arrows, ..triangle() },
            Picture { values: Some(vec![1.0; 3]), ..triangle() },
        ] {
            let plot = Plot::from_picture(picture);
            assert!(plot.svg().unwrap().contains("<circle") && plot.png().unwrap().starts_with(b"\x89PNG"));
            assert!(plot.pdf().unwrap().starts_with(b"%PDF"));
            assert!(plot.terminal(80, 24, false).unwrap().lines().count() > 5);
            assert!(plot.html().is_err());
            assert!(Plot::panels(vec![vec![plot.clone(), plot]]).unwrap().svg().is_ok());
        }
        assert!(Plot::from_picture(Picture::default()).svg().is_err());
        // One site alone, and sites in one line.
        let one = Picture {
            sites: vec![[3.0, 3.0]],
            kinds: vec![0],
            names: vec!["A".into()],
            ..Picture::default()
        };
        assert_eq!(discs(&Plot::from_picture(one)).len(), 1);
    }

    #[test]
    fn arrows_point_where_the_current_flows() {
        let picture = Picture { arrows: vec![([0.0, 0.0], [0.0, 1.0], -2.0)], ..triangle() };
        let frame =
            AxesFrame { left: 0.0, top: 0.0, width: 100.0, height: 100.0, x: (0.0, 10.0), y: (0.0, 10.0) };
        let is_path = |e: &Primitive| match e {
            Primitive::Path(path) => Some(path.d.clone()),
            _ => None,
        };
        // It begins at the second site, 90 pixels below the upper edge, and its point is at the first one.
        let path = picture.elements(&frame).iter().find_map(is_path).unwrap();
        assert!(path.starts_with("M ") && path.contains("0.00,100.00"), "{path}");
    }
}
