use super::*;
use crate::number::{C64, ElementaryFunction};

fn dos() -> Table {
    let x = Series::linspace(-6.5, 6.5, 1024).unwrap();
    let y: Vec<f64> = x
        .as_real("")
        .unwrap()
        .iter()
        .map(|e| (-(e / 3.0) * (e / 3.0)).exp() * 0.2 * (1.2 + (3.0 * e).cos()))
        .collect();
    let error: Vec<f64> = y.iter().map(|y| 0.01 + 0.05 * y).collect();
    Table::from_columns([("energy", x), ("density", y.into()), ("error", error.into())])
        .unwrap()
        .with_title("Simple cubic, W = 1")
}

fn spectral() -> Table {
    let (nx, ny) = (60, 200);
    let grid = |i: usize| {
        let (k, e) = ((i / ny) as f64 / nx as f64 - 0.5, (i % ny) as f64 / ny as f64 * 8.0 - 4.0);
        let band = -2.0 * (2.0 * std::f64::consts::PI * k).cos();
        (k, e, 0.1 / ((e - band) * (e - band) + 0.02))
    };
    let column = |f: fn((f64, f64, f64)) -> f64| (0..nx * ny).map(|i| f(grid(i))).collect::<Vec<f64>>();
    Table::from_columns([("k", column(|p| p.0)), ("energy", column(|p| p.1)), ("intensity", column(|p| p.2))])
        .unwrap()
        .with_grid(nx, ny)
        .unwrap()
}

fn curves() -> Table {
    let x = Series::linspace(0.1, 12.0, 60).unwrap();
    Table::from_columns([
        ("t", x.clone()),
        ("sine", x.map(ElementaryFunction::Sin)),
        ("cosine", x.map(ElementaryFunction::Cos)),
        ("a longer name", x.map(ElementaryFunction::Tanh)),
    ])
    .unwrap()
}

/// Draws every kind of plot into the folder named by the environment, for people to look at.
#[test]
#[ignore = "draws pictures to look at: UMKLAPP_PICTURES=folder"]
fn pictures() {
    let folder = std::path::PathBuf::from(std::env::var("UMKLAPP_PICTURES").unwrap());
    let mut plots = vec![
        ("dos", Plot::from_table(&dos()).unwrap()),
        ("map", Plot::from_table(&spectral()).unwrap()),
        ("curves", Plot::from_table(&curves()).unwrap()),
        ("points", Plot::from_table(&dos().slice(0, 40).unwrap()).unwrap().style(CurveStyle::Points)),
        ("matrix", Plot::from_matrix(&Matrix::identity(6).unwrap())),
        ("series", Plot::from_series(&Series::from(vec![C64::I, C64::ONE, C64::new(0.3, 0.4)]))),
    ];
    let mut log = Plot::from_table(&curves()).unwrap();
    (log.log_x, log.log_y, log.title) = (true, true, "Logarithmic".into());
    plots.push(("log", log));
    for (name, plot) in plots {
        plot.save(folder.join(format!("{name}.png"))).unwrap();
        plot.save(folder.join(format!("{name}.svg"))).unwrap();
        println!("{}", plot.terminal(80, 22, false).unwrap());
    }
}

#[test]
fn a_table_becomes_curves_with_errors() {
    let plot = Plot::from_table(&dos()).unwrap();
    let Content::Curves(curves) = &plot.content else { panic!("curves expected") };
    assert!(curves.len() == 1 && curves[0].error.is_some());
    assert_eq!((plot.xlabel.as_str(), plot.ylabel.as_str()), ("energy", "density"));
    let svg = plot.svg().unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Simple cubic") && svg.contains("density"));
}

#[test]
fn every_kind_draws_everywhere() {
    for table in [dos(), spectral(), curves()] {
        let plot = Plot::from_table(&table).unwrap();
        assert!(plot.svg().unwrap().len() > 1000);
        assert!(plot.png().unwrap().starts_with(b"\x89PNG"));
        let text = plot.terminal(80, 24, false).unwrap();
        assert!(text.lines().count() <= 24 && !text.contains('\x1b'));
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}

#[test]
fn in_a_terminal_the_label_stands_above_the_numbers() {
    let text = Plot::from_table(&dos()).unwrap().terminal(80, 24, false).unwrap();
    assert_eq!(text.lines().next(), Some("density"));
    let beside = |line| str::split_once(line, '╶').filter(|(tick, _)| !tick.contains('│'));
    let ticks: Vec<&str> = text.lines().filter_map(beside).map(|(tick, _)| tick.trim()).collect();
    assert!(ticks.len() > 2 && ticks.iter().all(|tick| tick.parse::<f64>().is_ok()), "{text}");
}

#[test]
fn a_map_without_colours_has_shades() {
    let text = Plot::from_table(&spectral()).unwrap().terminal(80, 24, false).unwrap();
    let shades = ['░', '▒', '▓', '█'].iter().filter(|shade| text.contains(**shade)).count();
    assert!(shades >= 2, "{text}");
}

#[test]
fn nothing_to_plot_is_an_error() {
    assert!(Plot::from_table(&Table::new()).is_err());
    let nan = Table::from_columns([("x", vec![0.0, 1.0]), ("y", vec![f64::NAN; 2])]).unwrap();
    assert!(Plot::from_table(&nan).unwrap().svg().is_err());
    let mut negative =
        Plot::from_table(&Table::from_columns([("x", vec![1.0, 2.0]), ("y", vec![-1.0, -2.0])]).unwrap())
            .unwrap();
    negative.log_y = true;
    assert!(negative.svg().unwrap_err().to_string().contains("logarithmic"));
    assert!(Plot::from_series(&Series::Real(Vec::new())).svg().is_err());
    assert!(Plot::from_matrix(&Matrix::zeros(0, 0).unwrap()).svg().is_err());
}

#[test]
fn constant_and_extreme_data_draw() {
    for y in [vec![1.0; 3], vec![0.0; 3], vec![1e300, -1e300, 0.0], vec![f64::INFINITY, 1.0, 2.0]] {
        let table = Table::from_columns([("x", vec![0.0, 0.0, 0.0]), ("y", y)]).unwrap();
        let plot = Plot::from_table(&table).unwrap();
        assert!(plot.svg().is_ok() && plot.terminal(60, 15, true).is_ok());
    }
}

#[test]
fn a_million_points_stay_small_and_keep_their_peak() {
    let n = 1_000_000;
    let mut y = vec![0.0; n];
    y[777_777] = 5.0;
    let plot = Plot::from_series(&Series::Real(y));
    let svg = plot.svg().unwrap();
    assert!(svg.len() < 300_000, "{}", svg.len());
}

#[test]
fn only_pictures_are_saved_as_plots() {
    assert!(Plot::from_series(&Series::Real(vec![1.0])).save("a.eps").is_err());
}

#[test]
fn texts_stand_on_the_axis_and_bars_beside_marks() {
    let names: Vec<String> = ["csr", "ell", "# dense"].map(String::from).to_vec();
    let table = Table::from_columns([("format", names)]).unwrap();
    let table = table.with_column("ours", vec![1.0, 2.0, f64::NAN]).unwrap();
    let table = table.with_column("paper", vec![2.0, 3.0, 4.0]).unwrap();
    let mut plot = Plot::from_table(&table).unwrap().style(CurveStyle::Bars);
    plot.change("paper", |curve| curve.style = CurveStyle::Points).unwrap();
    assert_eq!(plot.change("papre", |_| ()).unwrap_err().hint_text(), Some("did you mean `paper`?"));
    let svg = plot.svg().unwrap();
    assert!(["csr", "ell", "# dense"].iter().all(|name| svg.contains(&format!(">{name}<"))), "{svg}");
    assert!(svg.matches("<circle").count() >= 3 && svg.matches("<rect").count() >= 3);
    assert!(plot.terminal(80, 24, false).is_ok());
    plot.log_y = true;
    assert!(plot.svg().unwrap_err().to_string().contains("bars on a logarithmic axis"));
    // Numbers of an abscissa become texts below bars.
    let bars =
        Plot::from_xy(&vec![8.0, 16.0].into(), &vec![1.0, 2.0].into()).unwrap().style(CurveStyle::Bars);
    assert_eq!(bars.categories, ["8", "16"]);
}

#[test]
fn a_second_axis_has_its_own_range() {
    let table = Table::from_columns([("x", vec![1.0, 2.0]), ("y", vec![0.1, 0.2])]).unwrap();
    let mut plot = Plot::from_table(&table.with_column("large", vec![1e3, 5e6]).unwrap()).unwrap();
    plot.change("large", |curve| curve.right = true).unwrap();
    (plot.right_label, plot.log_right) = ("10^{6} of them".into(), true);
    let svg = plot.svg().unwrap();
    assert!(svg.contains(">6</tspan>") && svg.contains(" of them</tspan>"), "{svg}");
    assert!(svg.contains(">10⁶<") && svg.contains(">0.2<"), "{svg}");
    plot.change("y", |curve| curve.right = true).unwrap();
    assert!(plot.svg().unwrap_err().to_string().contains("left axis"));
}

#[test]
fn what_is_raised_is_raised() {
    for (text, shown) in [
        ("10^{-3} e^2/h", "10⁻³ e²/h"),
        ("N_{0} of 8^3", "N₀ of 8³"),
        ("ms_one, a^b, x_{max}, x_{big}", "ms_one, a^b, xₘₐₓ, x_big"),
        ("^", "^"),
        ("^{", "^{"),
        ("T^{}", "T^{}"),
    ] {
        assert_eq!(label::raised(text), shown);
    }
}

#[test]
fn a_map_says_what_its_colours_mean() {
    let svg = Plot::from_table(&spectral()).unwrap().svg().unwrap();
    assert!(svg.contains(">intensity<"), "{svg}");
}

/// Names of points stand below the axis, where the clipping of curves does not reach.
#[test]
fn names_of_points_are_not_cut_off() {
    let ticks = serde_json::json!([[0.0, "start"], [1.5, "K"], [2.0, "end"]]);
    let table = Table::from_columns([("k", vec![0.0, 1.0, 2.0]), ("band1", vec![-1.0, 0.5, 1.0])]).unwrap();
    let svg = Plot::from_table(&table.with_report("ticks", ticks)).unwrap().svg().unwrap();
    let clipped = svg.split("<g clip-path").nth(1).and_then(|after| after.split("</g>").next()).unwrap();
    for name in ["start", "K", "end"] {
        let text = format!(">{name}</text>");
        assert!(svg.contains(&text) && !clipped.contains(&text), "{name}");
    }
}

#[test]
fn short_logarithmic_axes_end_at_numbers() {
    let table = Table::from_columns([("V", vec![256.0, 512.0]), ("y", vec![1.0, 2.0])]).unwrap();
    let mut plot = Plot::from_table(&table).unwrap();
    plot.log_x = true;
    let svg = plot.svg().unwrap();
    assert!([">200<", ">500<", ">1000<"].iter().all(|tick| svg.contains(tick)), "{svg}");
}

#[test]
fn panels_and_pages() {
    let dos = Plot::from_table(&dos()).unwrap().centimetres(8.6, 6.0).unwrap();
    let page = dos.pdf().unwrap();
    let text = String::from_utf8_lossy(&page);
    // 8.6 x 6 centimetres in points.
    assert!(text.contains("/MediaBox [0 0 243.78 170.079]") && text.contains("/Helvetica\n"), "{text}");
    assert!(page.starts_with(b"%PDF-1.4"));
    assert!(dos.clone().centimetres(1.0, 6.0).is_err());

    let log = Plot { log_y: true, ..Plot::from_table(&curves()).unwrap() };
    let map = Plot::from_table(&spectral()).unwrap();
    let rows = vec![vec![dos.clone(), log], vec![map]];
    let both = Plot { serif: true, ..Plot::panels(rows.clone()).unwrap() };
    assert!(String::from_utf8_lossy(&both.pdf().unwrap()).contains("/Times-Roman\n"));
    let svg = both.svg().unwrap();
    assert!(["(a)", "(b)", "(c)"].iter().all(|name| svg.matches(name).count() == 1) && !svg.contains("(d)"));
    // No panel is clipped by another's frame.
    let frames: Vec<&str> =
        svg.split("<clipPath id=\"").skip(1).filter_map(|s| s.split('"').next()).collect();
    let names: std::collections::BTreeSet<&str> = frames.iter().copied().collect();
    assert!(frames.len() >= 3 && names.len() == frames.len(), "{frames:?}");
    let used: std::collections::BTreeSet<&str> =
        svg.split("clip-path=\"url(#").skip(1).filter_map(|s| s.split(')').next()).collect();
    assert!(used.is_subset(&names), "{used:?} of {names:?}");
    assert!(both.terminal(60, 16, false).unwrap().lines().count() > 40, "one below the other");
    assert!(Plot::panels(vec![]).is_err() && Plot::panels(vec![vec![]]).is_err());
    assert!(Plot::panels(vec![vec![Plot::panels(rows).unwrap()]]).is_err());
}

/// What stands at the ticks of an axis: numbers of all sizes, where the drawing library knows those about 1.
#[test]
fn numbers_of_all_sizes_are_drawn() {
    let points = |y: &[f64]| {
        Plot::from_xy(&Series::linspace(1.0, y.len() as f64, y.len()).unwrap(), &y.to_vec().into())
    };
    let ordinates = |plot: &Plot| -> Vec<f64> {
        let svg = plot.svg().unwrap();
        let marks = svg.split("<circle").skip(1).map(|mark| mark.split("cy=\"").nth(1).unwrap());
        marks.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
    };
    // The same shape in all units: the marks stand at the same places.
    let shape = [1.0, 4.0, 2.5, 2.0];
    let expected = ordinates(&points(&shape).unwrap().style(CurveStyle::Points));
    for unit in [1e-19, 1e-300, 1e12, 1e300, 4e307] {
        let found = ordinates(&points(&shape.map(|y| y * unit)).unwrap().style(CurveStyle::Points));
        assert_eq!(found.len(), 4, "{unit}");
        let scale = (found[0] - found[1]) / (expected[0] - expected[1]);
        for k in 0..4 {
            assert!(
                (found[k] - found[0] - scale * (expected[k] - expected[0])).abs() < 0.02,
                "{unit}: {found:?}"
            );
        }
        assert!(scale > 0.5, "{unit}: {found:?} for {expected:?}");
    }
    // On a logarithmic axis decades are as long wherever they are.
    for low in [1e-3, 1e-12, 1e-200] {
        let mut plot = points(&[low, 1e3 * low, 1e6 * low]).unwrap().style(CurveStyle::Points);
        plot.log_y = true;
        let y = ordinates(&plot);
        assert!(y[0] - y[2] > 250.0 && (y[0] - 2.0 * y[1] + y[2]).abs() < 0.02, "{low}: {y:?}");
    }
    let far = points(&[1.7e308, -1.7e308]).unwrap().svg().unwrap();
    assert!(!far.contains(">inf<") && !far.contains("NaN"), "the ticks are numbers");
}

/// Numbers that differ by little of their size are told by what they are more than, which the label says.
#[test]
fn large_numbers_have_short_ticks() {
    let texts = |plot: &Plot| -> Vec<String> {
        let svg = plot.svg().unwrap();
        let texts = svg.split("</text>").filter_map(|text| text.rsplit('>').next().map(str::to_string));
        texts.filter(|text| !text.trim().is_empty()).collect()
    };
    let plot = |x: f64, y: f64| {
        let columns = [("t", vec![x, x + 1.0, x + 2.0]), ("E", vec![y - 0.5, y + 0.5, y])];
        Plot::from_table(&Table::from_columns(columns).unwrap()).unwrap()
    };
    for (x, y, below, beside) in [
        (1e9, -1e12, "t − 10⁹", "E + 10¹²"),
        (4.0, 1e15, "t", "E − 10¹⁵"),
        (1_234_567.0, 1e4, "t − 1234560", "E"),
        (-3e6, 0.0, "t + 3·10⁶", "E"),
    ] {
        let found = texts(&plot(x, y));
        assert!(
            found.iter().any(|text| text == below) && found.iter().any(|text| text == beside),
            "{found:?}"
        );
        let long = |text: &&String| text.chars().count() > 7 && text.parse::<f64>().is_ok();
        assert_eq!(found.iter().find(long), None, "{x} {y}");
        assert!(plot(x, y).terminal(60, 16, false).unwrap().contains(beside));
    }
    // The sum of what the label tells and a tick is the number.
    let small = texts(&plot(0.0, 0.5));
    let large = texts(&plot(1e9, 1e9 + 0.5));
    let numbers = |texts: &[String]| texts.iter().filter_map(|t| t.parse().ok()).collect::<Vec<f64>>();
    assert_eq!(numbers(&small), numbers(&large));
    // Bars begin at zero, and several curves share an axis.
    let bars = plot(1e9, 1e9).style(CurveStyle::Bars);
    assert!(!bars.svg().unwrap().contains('−'));
    let mut two = plot(0.0, 1e9);
    two.ylabel.clear();
    assert!(texts(&two).iter().any(|text| text == "value − 10⁹"));
    two.change("E", |curve| curve.right = false).unwrap();
    two.y_range = Some((0.0, 2e9));
    assert!(!two.svg().unwrap().contains('−'), "the axis shows zero");
}

/// A map, or a picture, of one number says which.
#[test]
fn one_colour_has_its_number() {
    let map = |z: Vec<f64>| {
        let (x, y) = (vec![0.0, 1.0], vec![0.0, 1.0, 2.0]);
        Plot::new(Content::Map(PlotMap { x, y, z, label: "n".into() }))
    };
    let site = Picture { sites: vec![[0.0, 0.0], [1.0, 0.0]], kinds: vec![0; 2], ..Picture::default() };
    let picture = Plot::from_picture(Picture { values: Some(vec![7.25; 2]), ..site });
    for plot in [map(vec![7.25; 6]), map(vec![7.25, 7.25, 7.25, 7.25, f64::NAN, 7.25]), picture] {
        let svg = plot.svg().unwrap();
        assert_eq!(svg.matches(">7.25<").count(), 1, "{svg}");
        assert!(plot.png().is_ok() && plot.terminal(60, 16, false).unwrap().contains("7.25"));
    }
    let svg = map(vec![1e9, 1e9 + 1.0, 1e9, 1e9 + 2.0, 1e9, 1e9]).svg().unwrap();
    assert!(svg.contains(">n − 10⁹<") && !svg.contains(">1000000000"), "{svg}");
}

/// Where a map has no number it has a colour that none of its numbers has.
#[test]
fn a_map_shows_what_is_no_number() {
    let map =
        |z: &[f64]| PlotMap { x: vec![0.0, 1.0], y: vec![0.0, 1.0], z: z.to_vec(), label: String::new() };
    let grey = "#a0a0a0";
    for nothing in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let plot = Plot::new(Content::Map(map(&[1.0, nothing, 3.0, 2.0])));
        assert_eq!(plot.svg().unwrap().matches(grey).count(), 1, "{nothing}");
        assert!(plot.terminal(40, 14, false).unwrap().contains('·'), "{nothing}");
        assert!(plot.html().unwrap().contains("\"nothing\":[160,160,160]"));
        assert!(plot.png().is_ok() && plot.pdf().is_ok());
    }
    let all = Plot::new(Content::Map(map(&[1.0, 0.0, 3.0, 2.0])));
    assert!(!all.svg().unwrap().contains(grey) && !all.terminal(40, 14, false).unwrap().contains('·'));
    // Zero has no logarithm.
    let logarithmic = Plot { log_y: true, ..all };
    assert_eq!(logarithmic.svg().unwrap().matches(grey).count(), 1);
}

#[test]
fn lines_end_at_the_borders_that_they_go_on_behind() {
    let curve = |x: &[f64], y: &[f64], style: CurveStyle| Curve {
        name: "y".into(),
        x: x.to_vec(),
        y: y.to_vec(),
        error: Some(y.iter().map(|y| 0.1 * y).collect()),
        style,
        right: false,
    };
    let within = |curve: Curve, range: (f64, f64), log: bool| {
        let mut plot = Plot::new(Content::Curves(vec![curve.clone()]));
        (plot.x_range, plot.log_x, plot.log_y) = (Some(range), log, log);
        plot.pieces(&curve)
    };
    let bent = |style: CurveStyle| curve(&[1.0, 2.0, 3.0], &[1.0, 2.0, 6.0], style);
    let pieces = within(bent(CurveStyle::Lines), (0.5, 2.25), false);
    assert_eq!((&pieces[0].x, &pieces[0].y), (&vec![1.0, 2.0, 2.25], &vec![1.0, 2.0, 3.0]));
    assert!((pieces[0].error.as_ref().unwrap()[2] - 0.3).abs() < 1e-15, "the band ends there, too");
    // Between two points both borders.
    let pieces = within(bent(CurveStyle::Lines), (2.25, 2.5), false);
    assert_eq!((pieces.len(), &pieces[0].x, &pieces[0].y), (1, &vec![2.25, 2.5], &vec![3.0, 4.0]));
    // No mark stands where there is no point.
    let pieces = within(bent(CurveStyle::Both), (0.5, 2.25), false);
    assert_eq!((pieces[0].style, &pieces[0].x), (CurveStyle::Points, &vec![1.0, 2.0]));
    assert_eq!((pieces[1].style, &pieces[1].x), (CurveStyle::Lines, &vec![1.0, 2.0, 2.25]));
    assert_eq!(within(bent(CurveStyle::Points), (0.5, 2.25), false)[0].x, [1.0, 2.0]);
    // On logarithmic axes powers are straight; gaps stay, and falling abscissae are cut as well.
    let pieces = within(curve(&[16.0, 4.0, 1.0], &[256.0, 16.0, 1.0], CurveStyle::Lines), (2.0, 8.0), true);
    assert_eq!(pieces[0].x, [8.0, 4.0, 2.0]);
    assert!(pieces[0].y.iter().zip([64.0, 16.0, 4.0]).all(|(y, exact)| (y / exact - 1.0).abs() < 1e-14));
    let gap = curve(&[1.0, 2.0, 3.0], &[1.0, 2.0, f64::NAN], CurveStyle::Lines);
    assert_eq!(within(gap, (0.5, 2.5), false)[0].x, [1.0, 2.0]);
}

/// A band ends where an error is not known; a point there has no bar.
#[test]
fn errors_that_are_not_known_leave_a_gap() {
    let bands = |errors: [f64; 6]| {
        let y = [1.0, 2.0, 1.5, 1.0, 2.0, 3.0];
        let x: Vec<f64> = (0..6).map(f64::from).collect();
        let columns = [("x", x), ("y", y.to_vec()), ("error", errors.to_vec())];
        let plot = Plot::from_table(&Table::from_columns(columns).unwrap()).unwrap();
        let marks = plot.clone().style(CurveStyle::Points).svg().unwrap();
        // Ends of bars are lines of one height, inside the frame that clips them.
        let inside = marks.split("<g clip-path").nth(1).and_then(|s| s.split("</g>").next()).unwrap();
        (plot.svg().unwrap().matches("<path").count(), inside.matches("<line").count())
    };
    let (whole, bars) = bands([0.5; 6]);
    let (parted, fewer) = bands([0.5, 0.5, f64::NAN, 0.5, 0.5, 0.5]);
    let (none, no_bars) = bands([f64::NAN; 6]);
    // Each part has a band and its own piece of line.
    assert_eq!((whole - none, parted - none), (1, 4));
    // A bar is a line with two ends.
    assert_eq!((bars - no_bars, fewer - no_bars), (6 * 3, 5 * 3));
}

#[test]
fn points_without_a_logarithm_are_counted() {
    let columns = [("x", vec![0.0, 1.0, 2.0, 10.0, 3.0]), ("y", vec![1.0, 1e-3, -1.0, 100.0, f64::NAN])];
    let mut plot = Plot::from_table(&Table::from_columns(columns).unwrap()).unwrap();
    assert_eq!(plot.without_logarithm(), (0, 4));
    plot.log_x = true;
    assert_eq!(plot.without_logarithm(), (1, 4));
    plot.log_y = true;
    assert_eq!(plot.without_logarithm(), (2, 4));
    plot.log_x = false;
    assert_eq!(plot.without_logarithm(), (1, 4));
}

#[test]
fn cells_of_uneven_maps_lie_where_their_points_are() {
    let map = |x: Vec<f64>| {
        let z = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        PlotMap { x, y: vec![0.0, 1.0], z, label: String::new() }
    };
    // From -0.5 over 0.5 and 5.5 to 14.5, whatever the order.
    for (x, bottom) in [(vec![0.0, 1.0, 10.0], [1.0, 3.0, 5.0]), (vec![10.0, 0.0, 1.0], [3.0, 5.0, 1.0])] {
        assert_eq!(super::map::edges(&x), (-0.5, 14.5));
        let rows = super::map::averaged(&map(x), false, 150).unwrap();
        assert_eq!((rows.len(), rows[0].len()), (2, 15));
        let count = |z: f64| rows[0].iter().filter(|&&x| x == z).count();
        assert_eq!(bottom.map(count), [1, 5, 9]);
        assert!(rows[0][0] == bottom[0] && rows[1][14] == bottom[2] + 1.0);
    }
    // More points than cells: those in a cell are averaged, and none is left out.
    let x: Vec<f64> = (0..400).map(|i| f64::from(i).powi(2)).collect();
    let many = PlotMap { z: vec![1.0; 400], x, y: vec![0.0], label: String::new() };
    let rows = super::map::averaged(&many, false, 64).unwrap();
    assert!(rows[0].len() == 64 && rows[0].iter().all(|&z| z == 1.0));
    // Rounding does not make a grid uneven.
    let nearly: Vec<f64> = (0..10).map(|i| 0.1 * f64::from(i)).collect();
    assert_eq!(super::map::places(&nearly), None);
    assert_eq!(super::map::places(&[3.0, 1.0, 0.0]), Some(vec![0.0, 1.0, 3.0]));
    let plot = Plot::new(Content::Map(map(vec![0.0, 1.0, 10.0])));
    assert!(plot.svg().is_ok() && plot.terminal(60, 20, false).is_ok());
    assert!(plot.html().unwrap().contains("\"xs\":[0.0,1.0,10.0]"));
}
