//! Plots: one description, drawn as SVG, PNG, PDF, in the terminal, or by a page of HTML. Only `draw.rs`, `map.rs`,
//! `panels.rs`, `pdf.rs`, `picture.rs`, `terminal.rs`, `ticks.rs` and, for its
//! colours, `interactive.rs` know the library that draws.

mod draw;
mod interactive;
mod label;
mod letters;
mod map;
mod panels;
mod pdf;
mod picture;
mod reach;
mod terminal;
mod ticks;

use std::path::Path;

use crate::error::{Error, Result, nearest};
use crate::number::format::counted;
use crate::number::{Column, Matrix, Series, Table};

pub use label::letters;
pub use terminal::terminal_size;

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CurveStyle {
    /// A line through the points; errors as a band around it.
    #[default]
    Lines,
    /// A mark at each point; errors as bars.
    Points,
    /// Marks joined by a line; errors as bars.
    Both,
    /// Bars from zero, those of several curves side by side.
    Bars,
}

/// One curve: points, perhaps with errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// Abscissae.
    pub x: Vec<f64>,
    /// Ordinates, as many.
    pub y: Vec<f64>,
    /// Standard errors of the ordinates, as many.
    pub error: Option<Vec<f64>>,
    /// How it is drawn.
    pub style: CurveStyle,
    /// Whether the axis on the right counts.
    pub right: bool,
}

/// A function of two variables on a rectangular grid, drawn in colours.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotMap {
    /// Centres of the columns of cells; these end half-way between them.
    pub x: Vec<f64>,
    /// Centres of the rows of cells.
    pub y: Vec<f64>,
    /// The values: for each `x`, all `y`.
    pub z: Vec<f64>,
    /// What the colours mean.
    pub label: String,
}

/// A lattice, as it lies in a plane.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picture {
    /// Where the sites are, and their kind: an index of `names`.
    pub sites: Vec<[f64; 2]>,
    pub kinds: Vec<usize>,
    pub names: Vec<String>,
    /// From where to where, and how strong the line is, up to 1. A bond that leaves the sample is half as long and half
    /// as strong.
    pub bonds: Vec<([f64; 2], [f64; 2], f64)>,
    /// Sites of leads, and how strong they are, up to 1.
    pub paler: Vec<([f64; 2], f64)>,
    /// A number for each site, shown as its colour, and what it means.
    pub values: Option<Vec<f64>>,
    pub label: String,
    /// A number for each site, shown as the area of its disc.
    pub sizes: Option<Vec<f64>>,
    /// From where to where a current flows, and how much; less than zero flows the other way.
    pub arrows: Vec<([f64; 2], [f64; 2], f64)>,
}

/// What a plot shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Curves over one abscissa.
    Curves(Vec<Curve>),
    /// A map in colours.
    Map(PlotMap),
    /// A picture of a lattice.
    Picture(Box<Picture>),
    /// Plots in rows, from the top.
    Panels(Vec<Vec<Plot>>),
}

/// A plot, described; [`Plot::save`], [`Plot::svg`], [`Plot::png`] and [`Plot::terminal`] draw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Above the plot; empty for none.
    pub title: String,
    /// Below the abscissa.
    pub xlabel: String,
    /// Beside the ordinate.
    pub ylabel: String,
    /// Beside the axis on the right, where curves have one.
    pub right_label: String,
    /// Whether that axis is logarithmic.
    pub log_right: bool,
    /// Whether the abscissa is logarithmic: points without a logarithm are left out.
    pub log_x: bool,
    /// Whether the ordinate (of a map, the colour) is logarithmic.
    pub log_y: bool,
    /// Whether curves are named in a legend; by default they are if there are several.
    pub legend: Option<bool>,
    /// The range of the abscissa; by default that of the data.
    pub x_range: Option<(f64, f64)>,
    /// The range of the ordinate; by default that of the data.
    pub y_range: Option<(f64, f64)>,
    /// Points of the abscissa that have names, as those of a path in momentum space: they stand below the axis in place
    /// of numbers.
    pub ticks: Vec<(f64, String)>,
    /// Texts in place of an abscissa, at 1, 2, ...; none where it has numbers.
    pub categories: Vec<String>,
    /// Width and height in pixels, 96 of them an inch.
    pub size: (f64, f64),
    /// The size of labels in points of print; none for what suits a screen.
    pub font_size: Option<f64>,
    /// Whether letters have serifs.
    pub serif: bool,
    /// Whether panels are lettered (a), (b), ..
    pub lettered: bool,
    /// Dots of a PNG for each pixel.
    pub dots: f64,
    pub content: Content,
    units: reach::AxisUnits,
}

impl Plot {
    /// A plot of this content without labels.
    pub fn new(content: Content) -> Plot {
        Plot {
            title: String::new(),
            xlabel: String::new(),
            ylabel: String::new(),
            right_label: String::new(),
            log_right: false,
            log_x: false,
            log_y: false,
            legend: None,
            x_range: None,
            y_range: None,
            ticks: Vec::new(),
            categories: Vec::new(),
            size: (720.0, 460.0),
            font_size: None,
            serif: false,
            lettered: false,
            // For sharp screens.
            dots: 2.0,
            content,
            units: reach::AxisUnits::default(),
        }
    }

    /// The first column is the abscissa, numbers or texts, every other one a curve; a column `error` or `NAME_error` is
    /// the error of the curve before it. A table that is a grid becomes a map.
    pub fn from_table(table: &Table) -> Result<Plot> {
        let mut plot = match table.grid() {
            Some((nx, ny)) => Plot::of_grid(table, nx, ny)?,
            None => Plot::of_columns(table)?,
        };
        plot.title = table.title().unwrap_or_default().to_string();
        plot.ticks = ticks(table);
        // Bands are told apart by their energies.
        plot.legend = if plot.ticks.is_empty() { None } else { Some(false) };
        Ok(plot)
    }

    fn of_columns(table: &Table) -> Result<Plot> {
        let mut columns = table.columns();
        let Some((first, abscissa)) = columns.next() else {
            return Err(Error::input("a table without columns cannot be plotted")
                .hint("a plot needs a column of places and one of values"));
        };
        let (x, categories) = match abscissa {
            Column::Numbers(x) => (x.as_real("the abscissa of a plot")?.to_vec(), Vec::new()),
            Column::Texts(texts) => ((1..=texts.len()).map(|i| i as f64).collect(), texts.clone()),
        };
        let mut curves: Vec<Curve> = Vec::new();
        for (name, data) in columns {
            let is_error = name == "error" || name.ends_with("_error");
            let data = data.numbers(name)?;
            match (data, curves.last_mut()) {
                (Series::Real(error), Some(curve)) if is_error => curve.error = Some(error.clone()),
                _ => curves.extend(real_curves(name, &x, data)),
            }
        }
        if curves.is_empty() {
            return Err(Error::input(format!("the table has only the column `{first}`; a plot needs two"))
                .hint("the first column holds what the others are drawn against"));
        }
        let mut plot = Plot::new(Content::Curves(curves));
        plot.xlabel = first.to_string();
        plot.categories = categories;
        if let Content::Curves(curves) = &plot.content
            && let [only] = curves.as_slice()
        {
            plot.ylabel = only.name.clone();
        }
        Ok(plot)
    }

    fn of_grid(table: &Table, nx: usize, ny: usize) -> Result<Plot> {
        let columns: Vec<(&str, &Series)> = table
            .columns()
            .take(3)
            .map(|(name, data)| Ok((name, data.numbers(name)?)))
            .collect::<Result<_>>()?;
        let [(xname, x), (yname, y), (zname, z), ..] = columns.as_slice() else {
            return Err(Error::input("a map needs three columns").hint("two of places and one of values"));
        };
        let x = x.as_real("the abscissa of a map")?.iter().copied().step_by(ny.max(1)).take(nx).collect();
        let y = y.as_real("the ordinate of a map")?.iter().copied().take(ny).collect();
        let z = match z {
            Series::Real(z) => z.clone(),
            Series::Complex(z) => z.iter().map(|z| z.norm()).collect(),
        };
        let mut plot = Plot::new(Content::Map(PlotMap { x, y, z, label: zname.to_string() }));
        (plot.xlabel, plot.ylabel) = (xname.to_string(), yname.to_string());
        Ok(plot)
    }

    /// The elements over their index; complex ones as two curves.
    pub fn from_series(series: &Series) -> Plot {
        let x: Vec<f64> = (0..series.len()).map(|i| i as f64).collect();
        let mut plot = Plot::new(Content::Curves(real_curves("value", &x, series)));
        plot.xlabel = "index".into();
        plot
    }

    /// `y` over `x`; lengths must agree.
    pub fn from_xy(x: &Series, y: &Series) -> Result<Plot> {
        if x.len() != y.len() {
            let (n, m) = (x.len(), y.len());
            return Err(Error::input(format!("plot: {} at {}", counted(m, "value"), counted(n, "point")))
                .hint("there is one value at each point"));
        }
        let x = x.as_real("the abscissa of a plot")?;
        Ok(Plot::new(Content::Curves(real_curves("value", x, y))))
    }

    /// The elements in colours, row 0 at the bottom; of complex ones the modulus.
    pub fn from_matrix(matrix: &Matrix) -> Plot {
        let abs = if matrix.is_complex() {
            matrix.map(crate::number::ElementaryFunction::Abs)
        } else {
            matrix.clone()
        };
        let z = abs.transpose().data().re();
        let index = |n: usize| (0..n).map(|i| i as f64).collect::<Vec<f64>>();
        let z = z.as_real("a map").map(<[f64]>::to_vec).unwrap_or_default();
        let label = if matrix.is_complex() { "modulus" } else { "" };
        let map = PlotMap { x: index(matrix.cols()), y: index(matrix.rows()), z, label: label.into() };
        let mut plot = Plot::new(Content::Map(map));
        (plot.xlabel, plot.ylabel) = ("column".into(), "row".into());
        plot
    }

    /// Draws all curves in this style. Bars stand at texts: numbers of the abscissa become some.
    pub fn style(mut self, style: CurveStyle) -> Plot {
        let Content::Curves(curves) = &mut self.content else { return self };
        curves.iter_mut().for_each(|curve| curve.style = style);
        if style == CurveStyle::Bars && self.categories.is_empty() {
            self.categories =
                curves.first().map_or(Vec::new(), |c| c.x.iter().map(|&x| ticks::tick(x, 6)).collect());
            for curve in curves {
                curve.x = (1..=curve.x.len()).map(|i| i as f64).collect();
            }
        }
        self
    }

    /// The plot with this width and height in centimetres, for print: a PNG has 300 dots an inch.
    ///
    /// # Errors
    /// Sizes that no page has.
    pub fn centimetres(mut self, width: f64, height: f64) -> Result<Plot> {
        let fits = |x: f64| (2.0..=200.0).contains(&x);
        if !(fits(width) && fits(height)) {
            return Err(Error::input(format!("a plot of {width} x {height} centimetres"))
                .hint("a column of a journal is some 8.6 wide, a page 17.8; sides are from 2 to 200"));
        }
        self.size = (width / 2.54 * 96.0, height / 2.54 * 96.0);
        self.dots = 300.0 / 96.0;
        Ok(self)
    }

    /// The name of the curve that has the left axis for itself, where one of several has.
    pub fn only_left(&self) -> Option<String> {
        let Content::Curves(curves) = &self.content else { return None };
        let mut left = curves.iter().filter(|curve| !curve.right);
        left.next().filter(|_| curves.len() > 1 && left.next().is_none()).map(|curve| curve.name.clone())
    }

    /// Changes the curve of that name.
    ///
    /// # Errors
    /// No such curve; the error lists those that there are.
    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut Curve)) -> Result<()> {
        let curves: &mut [Curve] = match &mut self.content {
            Content::Curves(curves) => curves,
            Content::Map(_) | Content::Picture(_) | Content::Panels(_) => &mut [],
        };
        let names: Vec<String> = curves.iter().map(|curve| curve.name.clone()).collect();
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => {
                change(curve);
                Ok(())
            }
            None => {
                let error = Error::input(format!("no curve `{name}`; the plot has {}", names.join(", ")));
                Err(match nearest(name, names.iter().map(String::as_str)) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint("curves are called as the columns of the table"),
                })
            }
        }
    }

    /// Draws the plot into a file, `.svg`, `.png`, `.pdf` or `.html`, atomically.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        match extension.as_str() {
            "svg" => super::files::write_bytes(path, self.svg()?.as_bytes()),
            "png" => super::files::write_bytes(path, &self.png()?),
            "pdf" => super::files::write_bytes(path, &self.pdf()?),
            "html" => super::files::write_bytes(path, self.html()?.as_bytes()),
            _ => Err(Error::input(format!(
                "a plot is saved as `.svg`, `.png`, `.pdf` or `.html`, not as `{}`",
                path.display()
            ))
            .hint("the end of the name tells the format")),
        }
    }
}

/// The names of points that the report of a table holds as `ticks`: pairs of a number and a text.
fn ticks(table: &Table) -> Vec<(f64, String)> {
    let listed = table.report().get("ticks").and_then(|ticks| ticks.as_array());
    let pair = |tick: &serde_json::Value| {
        Some((tick.get(0)?.as_f64().filter(|x| x.is_finite())?, tick.get(1)?.as_str()?.to_string()))
    };
    listed.into_iter().flatten().filter_map(pair).collect()
}

fn real_curves(name: &str, x: &[f64], data: &Series) -> Vec<Curve> {
    let curve = |name: String, y: Vec<f64>| Curve {
        name,
        x: x.to_vec(),
        y,
        error: None,
        style: CurveStyle::default(),
        right: false,
    };
    match data {
        Series::Real(y) => vec![curve(name.to_string(), y.clone())],
        Series::Complex(z) => vec![
            curve(format!("Re {name}"), z.iter().map(|z| z.re).collect()),
            curve(format!("Im {name}"), z.iter().map(|z| z.im).collect()),
        ],
    }
}

#[cfg(test)]
mod tests;
