//! `plot`: pictures in files, or text in the terminal.

use rhai::plugin::*;
use rhai::{Array, Dynamic, Engine};

use super::picture::picture;
use super::table::to_data;
use super::values::{real, to_series, type_of};
use crate::error::{Error, Result};
use crate::output::files::FileData;
use crate::output::plot::{CurveStyle, Plot, terminal_size};
use crate::output::tell;
use crate::script::{Fallible, Options, session};

/// A plot that is not drawn yet.
#[derive(Clone)]
pub struct Panel(Plot);

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<Panel>("Panel");
    engine.register_global_module(exported_module!(plot_functions).into());
}

fn describe(value: &Dynamic, o: &Options) -> Result<Plot> {
    match picture(value, o)? {
        Some(plot) => Ok(plot),
        None => of_data(value),
    }
}

fn of_data(value: &Dynamic) -> Result<Plot> {
    match to_data(value)? {
        FileData::Table(table) => Plot::from_table(&table),
        FileData::Series(series) => Ok(Plot::from_series(&series)),
        FileData::Matrix(matrix) => Ok(Plot::from_matrix(&matrix)),
    }
}

fn range(o: &Options, key: &str) -> Result<Option<(f64, f64)>> {
    match o.maybe_floats(key)? {
        None => Ok(None),
        Some([low, high]) if low < high => Ok(Some((low, high))),
        Some([low, high]) => {
            Err(Error::input(format!("option `{key}` goes from {low} to {high}")).hint("like `[-1.0, 1.0]`"))
        }
    }
}

/// The plot with the options of the call.
fn dressed(plot: Result<Plot>, o: &Options) -> Fallible<Plot> {
    let mut plot = plot?;
    plot.title = o.maybe_text("title")?.unwrap_or(plot.title);
    plot.xlabel = o.maybe_text("xlabel")?.unwrap_or(plot.xlabel);
    plot.ylabel = o.maybe_text("ylabel")?.unwrap_or(plot.ylabel);
    let axes = [("x", (true, false)), ("y", (false, true)), ("xy", (true, true))];
    (plot.log_x, plot.log_y) = o.maybe_one_of("log", &axes)?.unwrap_or_default();
    plot.right_label = o.maybe_text("right_label")?.unwrap_or_default();
    plot.log_right = o.flag("right_log")?;
    if o.given("legend").is_some() {
        plot.legend = Some(o.flag("legend")?);
    }
    let styles = [
        ("lines", CurveStyle::Lines),
        ("points", CurveStyle::Points),
        ("both", CurveStyle::Both),
        ("bars", CurveStyle::Bars),
    ];
    if let Some(style) = o.maybe_one_of("style", &styles)? {
        plot = plot.style(style);
    }
    for name in names(o, "marks")? {
        plot.change(&name, |curve| curve.style = CurveStyle::Points)?;
    }
    for name in names(o, "right")? {
        plot.change(&name, |curve| curve.right = true)?;
        if plot.right_label.is_empty() {
            plot.right_label = name;
        }
    }
    if let (Some(only), true) = (plot.only_left(), plot.ylabel.is_empty()) {
        plot.ylabel = only;
    }
    if let Some(named) = ticks(o)? {
        plot.ticks = named;
    }
    if plot.log_x && !plot.categories.is_empty() {
        return Err(Error::input("a logarithmic axis of texts").hint("leave `log: \"x\"` out").into());
    }
    plot.x_range = range(o, "xrange")?;
    plot.y_range = range(o, "yrange")?;
    Ok(plot)
}

/// The letters of the plot, and its size.
fn sized(mut plot: Plot, o: &Options) -> Result<Plot> {
    plot.font_size = o.maybe_float("font_size")?;
    plot.serif = o.one_of("font", &[("sans", false), ("serif", true)])?;
    if let Some([width, height]) = o.maybe_floats("cm")? {
        return plot.centimetres(width, height);
    }
    let Some([width, height]) = o.maybe_floats("size")? else { return Ok(plot) };
    if ![width, height].iter().all(|x| (200.0..=10_000.0).contains(x)) {
        return Err(Error::input(format!("a plot of {width} x {height} pixels"))
            .hint("option `size` takes width and height like [720, 460], from 200 to 10000"));
    }
    plot.size = (width, height);
    Ok(plot)
}

/// Shows the plot, or saves it.
fn draw(plot: Plot, o: &Options) -> Fallible<()> {
    let plot = sized(plot, o)?;
    let session = session()?;
    let (lost, points) = plot.without_logarithm();
    if lost > 0 {
        session.note(&format!(
            "{lost} of {points} points are not on the plot: zero and negative numbers have no logarithm"
        ));
    }
    match o.maybe_text("file")? {
        Some(file) => {
            let path = session.output_path(&file);
            plot.save(&path)?;
            session.saved(&path);
            // A notebook shows what is saved, too.
            session.show_plot(&plot)?;
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

#[export_module(root = "crate::script::native")]
mod plot_functions {
    /// Plots a Table, a Series or a Matrix (a complex one by its modulus), in the terminal or the notebook, or into a
    /// file: `.svg`, `.png`, `.pdf` or `.html`. The first column of a Table is the abscissa, every other column is a
    /// curve, and a column `error` is a band. A Table with a grid (`t.grid(nx, ny)`) is plotted as a map; its cells
    /// end half-way between the points, which may be unevenly spaced. A first column of texts labels the axis. An
    /// `.html` file is complete: any browser shows it without a network. There the wheel zooms, dragging moves the
    /// plot, the pointer shows values, and a click on a name hides its curve. Colours
    /// are those of Okabe and Ito, which readers with any colour vision can distinguish; maps use inferno. Numbers that
    /// differ by little of their size are drawn less an offset, which the label tells: `energy − 10⁹`.
    ///
    /// Labels, names of curves and titles may contain LaTeX. `^{..}` and `_{..}` make superscripts and subscripts, also
    /// nested. The braces may be left out after a symbol, between `$` and after a single letter (`E_F`). Symbols are
    /// `\alpha` .. `\omega`, `\Gamma` .. `\Omega`, `\hbar`, `\ell`, `\partial`, `\nabla`, `\infty`, `\int`, `\sum`,
    /// `\prod`, `\pm`, `\times`, `\cdot`, `\dagger`, `\circ`, `\prime`, `\le`, `\ge`, `\ne`, `\approx`, `\equiv`,
    /// `\sim`, `\propto`, `\in`, `\subset`, `\cup`, `\cap`, `\oplus`, `\otimes`, `\perp`, `\angle`, `\langle`,
    /// `\rangle`, `\to`, `\leftarrow`, `\uparrow`, `\downarrow`, `\Rightarrow`, `\ldots`, `\Re`, `\Im`, `\AA`;
    /// `\sqrt{..}`, `\frac{..}{..}` and `\mathrm{..}` are written on one line. In a text between `"` a backslash is
    /// written twice, between back-ticks once. In a terminal, characters without a superscript or subscript form stay
    /// behind `^` or `_`.
    ///
    /// A Lattice, a Model or a sample of `transport::system` becomes a picture of its sites and bonds, with a colour
    /// for each sublattice; bonds across a periodic boundary end half-way, and leads continue in paler cells. `values`
    /// and `sizes` show a number for each site, such as a density; `currents` shows `s.currents(from, energy)` as
    /// arrows.
    ///
    /// # Options
    /// - `file` (string, the terminal or notebook): file of the picture; a notebook shows it as well.
    /// - `title` (string, the table's): text above the picture.
    /// - `xlabel` (string, the table's): the label below.
    /// - `ylabel` (string, the table's): the label on the left.
    /// - `log` ("x" or "y" or "xy", none): logarithmic axes. In a map "y" means the colours: colours and numbers show
    ///   the decimal logarithm.
    /// - `style` ("lines" or "points" or "both" or "bars"): style of the curves.
    /// - `marks` (array): names of columns to draw as points with error bars; the others remain lines.
    /// - `right` (array): names of columns that use the axis on the right.
    /// - `right_label` (string, the first of them): the label of the axis on the right.
    /// - `right_log` (false): whether the axis on the right is logarithmic.
    /// - `ticks` (array): points of the abscissa with names, `[[0.0, "G"], [0.5, "X"]]`, in place of its numbers.
    /// - `legend` (bool, if there are several curves): whether to show a legend.
    /// - `xrange` (two floats, that of the data): lowest and highest number of the abscissa.
    /// - `yrange` (two floats, that of the data): lowest and highest number of the ordinate.
    /// - `size` (two floats, [720, 460]): width and height of the picture in pixels; the height of a lattice picture
    ///   adapts.
    /// - `cm` (two floats): width and height in centimetres, for print; not with `size`. `[8.6, 6.0]` fills a column.
    /// - `font` ("sans" or "serif"): font of the labels; a PNG is always without serifs.
    /// - `font_size` (3 <= float <= 72): size of the labels, in printer's points.
    /// - `values` (Series or array): a number for each site of a lattice, shown as colours.
    /// - `label` (string, none): name of these values.
    /// - `sizes` (Series or array): a number for each site of a lattice, shown as the areas of discs.
    /// - `currents` (Table): currents over the bonds of a sample, shown as arrows.
    /// - `axes` ([0, 1]): the Cartesian axes of a picture, across and upwards.
    ///
    /// # Example
    /// ```rhai
    /// let x = linspace(0, 6.28, 100);
    /// plot(table([["x", x], ["sine", sin(x)]]), #{ title: "A wave", file: "wave.svg" });
    /// let speeds = table([["format", ["csr", "ell"]], ["ours", [8.1, 9.0]], ["paper", [7.7, 11.5]]]);
    /// plot(speeds, #{ style: "bars", marks: ["paper"], ylabel: "10^9 flop/s", file: "speeds.svg" });
    /// plot(speeds, #{ style: "both", file: "speeds.html" });
    /// let m = model(lattice::honeycomb(5, 5).boundary("open"));
    /// m.nearest(-1.0);
    /// let ground = m.build().to_matrix().eigh().vectors.column(0);
    /// plot(m, #{ sizes: ground.abs() ** 2.0, file: "flake.svg" });
    /// assert(file_exists("wave.svg") && file_exists("speeds.html") && file_exists("flake.svg"), "three files");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn plot(value: Dynamic, o: Options) -> Fallible<()> {
        draw(dressed(describe(&value, &o), &o)?, &o)
    }

    #[rhai_fn(name = "plot", return_raw)]
    pub fn plot_xy_with(x: Dynamic, y: Dynamic, o: Options) -> Fallible<()> {
        if y.is_string() {
            let error = Error::input("a text in place of the ordinates of a plot");
            return Err(error.hint("the file is an option: `plot(t, #{ file: \"a.png\" })`").into());
        }
        let plot = to_series(&x).and_then(|x| Plot::from_xy(&x, &to_series(&y)?));
        draw(dressed(plot, &o)?, &o)
    }

    /// A plot that is not drawn yet, for `panels`.
    ///
    /// # Options
    /// - those of `plot`, less `file`, `size`, `cm`, `font`, `font_size`.
    ///
    /// # Example
    /// ```rhai
    /// let x = linspace(0, 6.28, 50);
    /// panels([[panel(sin(x), #{ title: "sine" }), panel(cos(x), #{ title: "cosine" })]], #{ file: "waves.pdf" });
    /// ```
    #[rhai_fn(name = "panel", return_raw)]
    pub fn panel(value: Dynamic, o: Options) -> Fallible<Panel> {
        dressed(describe(&value, &o), &o).map(Panel)
    }

    /// Several plots in one picture: an array of rows. Each row is an array of results of `panel`, Tables, Series or
    /// Matrices. Panels get the letters (a), (b), ..
    ///
    /// # Options
    /// - `file`, `cm`, `font`, `font_size`: as for `plot`; for the whole picture.
    /// - `size` (array, 340 high a row): size of the whole picture, in pixels.
    /// - `letters` (bool, if there are several): whether panels have letters.
    ///
    /// # Example
    /// ```rhai
    /// let h = tight_binding(lattice::chain(64));
    /// let dos = kpm::dos(h, #{ moments: 64, vectors: 4, seed: 1, progress: false });
    /// let levels = panel(davidson(h, #{ count: 3, seed: 1 }).values, #{ style: "points", ylabel: "energy" });
    /// panels([[panel(dos), levels]], #{ file: "both.svg", cm: [17.8, 6.0], font_size: 8.0 });
    /// ```
    #[rhai_fn(name = "panels", return_raw)]
    pub fn panels(rows: Array, o: Options) -> Fallible<()> {
        let plot = |value: &Dynamic| match value.read_lock::<Panel>() {
            Some(panel) => Ok(panel.0.clone()),
            None => of_data(value).map_err(|e| match e.hint_text() {
                Some(_) => e,
                None => e.hint("`panel(value, #{ .. })` makes one with options"),
            }),
        };
        let row = |row: &Dynamic| match row.read_lock::<Array>() {
            Some(row) => row.iter().map(plot).collect::<Result<Vec<Plot>>>(),
            None => Err(Error::input(format!("a row of panels is {}", type_of(row)))
                .hint("rows are arrays: `panels([[a, b]])` has one")),
        };
        let mut whole = Plot::panels(rows.iter().map(row).collect::<Result<_>>()?)?;
        if o.given("letters").is_some() {
            whole.lettered = o.flag("letters")?;
        }
        draw(whole, &o)
    }

    #[rhai_fn(global, name = "to_string", pure)]
    pub fn panel_to_string(p: &mut Panel) -> String {
        let title = &p.0.title;
        if title.is_empty() { "Panel".to_string() } else { format!("Panel `{title}`") }
    }
}
