//! `plot`: pictures in files, or text in the terminal.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine};

use super::table::to_data;
use super::values::{real, to_series};
use crate::error::{Error, Result};
use crate::output::files::Data;
use crate::output::plot::{Plot, Style, terminal_size};
use crate::output::tell;
use crate::script::{Fallible, Options, session};

/// Registers the functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(plot_functions).into());
}

fn describe(value: &Dynamic) -> Result<Plot> {
    match to_data(value)? {
        Data::Table(table) => Plot::from_table(&table),
        Data::Series(series) => Ok(Plot::from_series(&series)),
        Data::Matrix(matrix) => Ok(Plot::from_matrix(&matrix)),
    }
}

fn range(o: &Options, key: &str) -> Result<Option<(f64, f64)>> {
    let Some(pair) = o.maybe::<Array>(key) else { return Ok(None) };
    let wrong = || Error::input(format!("option `{key}` takes a pair like [-1.0, 1.0]"));
    match pair.as_slice() {
        [low, high] => {
            let (low, high) = (real(low, key)?, real(high, key)?);
            if low < high { Ok(Some((low, high))) } else { Err(wrong()) }
        }
        _ => Err(wrong()),
    }
}

/// Draws the plot with the options of the call.
fn draw(plot: Result<Plot>, o: Options) -> Fallible<()> {
    let mut plot = plot?;
    plot.title = o.maybe_text("title")?.unwrap_or(plot.title);
    plot.xlabel = o.maybe_text("xlabel")?.unwrap_or(plot.xlabel);
    plot.ylabel = o.maybe_text("ylabel")?.unwrap_or(plot.ylabel);
    (plot.log_x, plot.log_y) = match o.maybe_text("log")?.unwrap_or_default().as_str() {
        "" => (false, false),
        "x" => (true, false),
        "y" => (false, true),
        "xy" => (true, true),
        other => {
            return Err(Error::input(format!("option `log` is `{other}`"))
                .hint("write \"x\", \"y\" or \"xy\"")
                .into());
        }
    };
    plot.right_label = o.maybe_text("right_label")?.unwrap_or_default();
    plot.log_right = o.flag("right_log")?;
    if o.given("legend").is_some() {
        plot.legend = Some(o.flag("legend")?);
    }
    if let Some(style) = o.maybe_text("style")? {
        plot = plot.style(Style::named(&style)?);
    }
    for name in names(&o, "marks")? {
        plot.change(&name, |curve| curve.style = Style::Points)?;
    }
    for name in names(&o, "right")? {
        plot.change(&name, |curve| curve.right = true)?;
        if plot.right_label.is_empty() {
            plot.right_label = name;
        }
    }
    if let (Some(only), true) = (plot.only_left(), plot.ylabel.is_empty()) {
        plot.ylabel = only;
    }
    if let Some(named) = ticks(&o)? {
        plot.ticks = named;
    }
    if plot.log_x && !plot.categories.is_empty() {
        return Err(Error::input("a logarithmic axis of texts").hint("leave `log: \"x\"` out").into());
    }
    plot.x_range = range(&o, "xrange")?;
    plot.y_range = range(&o, "yrange")?;
    if let Some((width, height)) = size(&o)? {
        plot.size = (width, height);
    }
    let session = session()?;
    match o.maybe_text("file")? {
        Some(file) => {
            let path = session.output_path(&file);
            plot.save(&path)?;
            session.saved(&path);
            Ok(())
        }
        None if session.show_plot(&plot)? => Ok(()),
        None => {
            match terminal_size() {
                Some((columns, rows)) => {
                    let colour = std::env::var_os("NO_COLOR").is_none();
                    let rows = (rows / 2).clamp(16, 28);
                    session.print(&plot.terminal(columns.min(100), rows, colour)?);
                }
                None if !session.settings().quiet => {
                    tell("note: `plot` without a file draws in a terminal, and there is none");
                }
                None => {}
            }
            Ok(())
        }
    }
}

/// The names of curves that an option lists.
fn names(o: &Options, key: &str) -> Result<Vec<String>> {
    let wrong = || Error::input(format!("option `{key}` takes names of columns")).hint("like `[\"paper\"]`");
    let list = o.maybe::<Array>(key).unwrap_or_default();
    list.into_iter().map(|name| name.into_string().map_err(|_| wrong())).collect()
}

/// Names of points of the abscissa, pairs of a number and a text.
fn ticks(o: &Options) -> Result<Option<Vec<(f64, String)>>> {
    let Some(list) = o.maybe::<Array>("ticks") else { return Ok(None) };
    let wrong =
        || Error::input("option `ticks` takes pairs of a number and a text").hint("like `[[0.0, \"G\"]]`");
    let pair = |pair: Dynamic| match pair.into_array().map_err(|_| wrong())?.as_slice() {
        [x, name] => {
            let name = name.clone().into_string().map_err(|_| wrong())?;
            Ok((real(x, "a tick").ok().filter(|x| x.is_finite()).ok_or_else(wrong)?, name))
        }
        _ => Err(wrong()),
    };
    list.into_iter().map(pair).collect::<Result<_>>().map(Some)
}

fn size(o: &Options) -> Result<Option<(f64, f64)>> {
    let Some(pair) = o.maybe::<Array>("size") else { return Ok(None) };
    let wrong =
        || Error::input("option `size` takes width and height in pixels, like [720, 460], from 200 to 10000");
    match pair.as_slice() {
        [width, height] => {
            let (width, height) = (real(width, "size")?, real(height, "size")?);
            let fits = |x: f64| (200.0..=10_000.0).contains(&x);
            if fits(width) && fits(height) { Ok(Some((width, height))) } else { Err(wrong()) }
        }
        _ => Err(wrong()),
    }
}

#[export_module(root = "crate::script::native")]
mod plot_functions {
    /// Plots a Table (first column across, every other one a curve, a column `error` as a band; a map where rows walk a
    /// grid), a Series or a Matrix (a complex one by its modulus); in the terminal or the notebook, or into a file, `.svg` or
    /// `.png`. A first column of texts names places of the axis. In labels `^{..}` and `_{..}` raise and lower, as in `10^{-3}`.
    ///
    /// # Options
    /// - `file` (string, the terminal or notebook): where the picture goes.
    /// - `title` (string), `xlabel` (string), `ylabel` (string): texts; by default the table's.
    /// - `log` (string, none): logarithmic axes: "x", "y" or "xy". In a map "y" means the colours: they, and their
    ///   numbers, are those of the decimal logarithm.
    /// - `style` ("lines"): "lines", "points", "both" or "bars".
    /// - `marks` (array): names of columns that are drawn as points with error bars, beside the lines of the others.
    /// - `right` (array): names of columns that an axis on the right counts.
    /// - `right_label` (string, the first of them), `right_log` (false): its label, and whether it is logarithmic.
    /// - `ticks` (array): points of the abscissa with names, `[[0.0, "G"], [0.5, "X"]]`, in place of its numbers.
    /// - `legend` (bool, if there are several curves): true or false.
    /// - `xrange` (array), `yrange` (array, those of the data): pairs of numbers.
    /// - `size` ([720, 460]): of the picture, in pixels.
    ///
    /// # Example
    /// ```rhai
    /// let x = linspace(0, 6.28, 100);
    /// plot(table([["x", x], ["sine", sin(x)]]), #{ title: "A wave", file: "wave.svg" });
    /// let speeds = table([["format", ["csr", "ell"]], ["ours", [8.1, 9.0]], ["paper", [7.7, 11.5]]]);
    /// plot(speeds, #{ style: "bars", marks: ["paper"], ylabel: "10^9 flop/s", file: "speeds.svg" });
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plot(value: Dynamic, o: Options) -> Fallible<()> {
        draw(describe(&value), o)
    }

    #[rhai_fn(name = "plot", return_raw)]
    pub fn plot_xy_with(x: Dynamic, y: Dynamic, o: Options) -> Fallible<()> {
        let plot = to_series(&x).and_then(|x| Plot::from_xy(&x, &to_series(&y)?));
        draw(plot, o)
    }
}
