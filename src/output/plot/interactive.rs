//! A described plot as a page of HTML that zooms and shows the values under the pointer. The page's script draws from
//! the numbers in it, with the colours, labels and ranges of the SVG.

use kuva::prelude::ColorMap;
use serde_json::{Map as Object, Value, json};

use super::map::{NOTHING, averaged, edges, places};
use super::reach::fits;
use super::{Content, Curve, CurveStyle, Plot, PlotMap, label};
use crate::error::{Error, Result};
use crate::output::page;

/// Most cells of a map along a side: a screen has no more.
const CELLS: usize = 1024;

impl Plot {
    /// The plot as a page of HTML that needs nothing else. Readers who run no scripts see the SVG.
    ///
    /// # Errors
    /// What the SVG refuses, too.
    pub fn html(&self) -> Result<String> {
        let tidy = self.tidy();
        let rows = match &tidy.content {
            Content::Panels(rows) => {
                let row = |row: &Vec<Plot>| row.iter().map(Plot::described).collect::<Result<Value>>();
                rows.iter().map(row).collect::<Result<Value>>()?
            }
            _ => json!([[tidy.described()?]]),
        };
        let data = json!({
            "rows": rows,
            "size": [tidy.size.0, tidy.size.1],
            // Points of print as pixels.
            "font": tidy.font_size.map(|points| points / 0.75),
            "serif": tidy.serif,
            "letters": tidy.lettered,
            // Height and size of what stands above the line, and below.
            "above": label::above(0.0, 1.0),
            "below": label::below(0.0, 1.0),
        });
        Ok(page::whole(&page::PageContent::Plot, &label::flat(&tidy.title), &data, &self.svg()?, None))
    }

    fn described(&self) -> Result<Value> {
        let map = matches!(self.content, Content::Map(_));
        let (low, high) = self.x_range.or_else(|| self.extent()).unwrap_or_else(|| self.around());
        let mut panel = Object::new();
        let mut add = |key: &str, value: Value| panel.insert(key.to_string(), value);
        add("title", json!(self.title));
        add("xlabel", json!(self.xlabel));
        add("ylabel", json!(self.ylabel));
        add("right_label", json!(self.right_label));
        add("log", json!([self.log_x && !map, self.log_y && !map, self.log_right]));
        add("legend", json!(self.has_legend()));
        add("x", json!([low, high]));
        add("x_given", json!(self.x_range.is_some()));
        add("y", json!(self.y_range.or_else(|| self.map_extent())));
        add("ticks", json!(self.ticks));
        add("categories", json!(self.categories));
        match &self.content {
            Content::Curves(curves) => {
                let of = |(i, curve)| described(curve, self.colour(i));
                add("curves", curves.iter().enumerate().map(of).collect());
            }
            Content::Map(map) => {
                add("map", coloured(map, self.log_y)?);
            }
            Content::Picture(_) => {
                return Err(Error::input("a picture of a lattice as a page of HTML")
                    .hint("save it as `.svg`, which browsers show, `.png` or `.pdf`"));
            }
            Content::Panels(_) => return Err(Error::internal("panels inside panels")),
        }
        Ok(Value::Object(panel))
    }

    /// A range about the only abscissa that there is.
    fn around(&self) -> (f64, f64) {
        let Content::Curves(curves) = &self.content else { return (0.0, 1.0) };
        let mut all = curves.iter().flat_map(|c| &c.x).copied().filter(|&x| fits(x, self.log_x));
        match all.next() {
            Some(x) if self.log_x => (0.5 * x, 2.0 * x),
            Some(x) => (x - 0.5, x + 0.5),
            None => (0.0, 1.0),
        }
    }
}

/// What JSON has no number for is `null`.
fn numbers(data: &[f64]) -> Value {
    data.iter().map(|&x| serde_json::Number::from_f64(x).map_or(Value::Null, Value::Number)).collect()
}

fn described(curve: &Curve, colour: &str) -> Value {
    let style = match curve.style {
        CurveStyle::Lines => "lines",
        CurveStyle::Points => "points",
        CurveStyle::Both => "both",
        CurveStyle::Bars => "bars",
    };
    let error: Option<Vec<f64>> = curve.error.as_ref().map(|error| error.iter().map(|e| e.abs()).collect());
    json!({
        "name": curve.name,
        "x": numbers(&curve.x),
        "y": numbers(&curve.y),
        "error": error.map(|error| numbers(&error)),
        "style": style,
        "right": curve.right,
        "colour": colour,
    })
}

/// A map's cells, a column after the other from below, and the colours of its scale.
fn coloured(map: &PlotMap, logarithmic: bool) -> Result<Value> {
    let rows = averaged(map, logarithmic, CELLS)?;
    let (nx, ny) = (rows.first().map_or(0, Vec::len), rows.len());
    let z: Vec<f64> = (0..nx).flat_map(|i| rows.iter().map(move |row| row[i])).collect();
    let finite = z.iter().copied().filter(|z| z.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), z| (l.min(z), h.max(z)));
    let colour = |k: usize| ColorMap::Inferno.map_rgb(k as f64 / 64.0).map(|(r, g, b)| [r, g, b]);
    let label = if logarithmic { format!("log₁₀ {}", map.label) } else { map.label.clone() };
    Ok(json!({
        "nx": nx, "ny": ny,
        "x": edges(&map.x), "y": edges(&map.y),
        // The places of points that are not evenly spaced.
        "xs": places(&map.x), "ys": places(&map.y),
        "z": numbers(&z),
        "low": low, "high": high,
        "label": label.trim(),
        "nothing": [NOTHING, NOTHING, NOTHING],
        "colours": (0..=64).map(colour).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{Matrix, Series, Table};

    fn panel(plot: &Plot) -> Value {
        page::data_of(&plot.html().unwrap())["rows"][0][0].clone()
    }

    #[test]
    fn pages_hold_the_numbers_and_colours_of_the_picture() {
        let x = vec![0.1, 0.2, 0.4];
        let table = Table::from_columns([
            ("t", x.clone()),
            ("a_{0}", vec![1.0 / 3.0, f64::NAN, -2.0]),
            ("error", vec![0.01, 0.02, -0.03]),
            ("b", vec![5.0, 6.0, 7.0]),
        ]);
        let mut plot = Plot::from_table(&table.unwrap().with_title("</script>")).unwrap();
        plot.change("b", |curve| (curve.right, curve.style) = (true, CurveStyle::Points)).unwrap();
        let found = panel(&plot);
        let curves = found["curves"].as_array().unwrap();
        assert_eq!(curves.len(), 2);
        assert_eq!(curves[0]["y"], json!([1.0 / 3.0, null, -2.0]));
        assert_eq!(curves[0]["error"], json!([0.01, 0.02, 0.03]));
        assert_eq!(label::flat(curves[0]["name"].as_str().unwrap()), "a₀");
        assert_eq!((&curves[1]["right"], &curves[1]["style"]), (&json!(true), &json!("points")));
        let svg = plot.svg().unwrap();
        for curve in curves {
            assert!(svg.contains(curve["colour"].as_str().unwrap()), "{curve}");
        }
        let end = |k: usize| found["x"][k].as_f64().unwrap();
        assert!((end(0) - 0.091).abs() < 1e-12 && (end(1) - 0.409).abs() < 1e-12, "{}", found["x"]);
        assert_eq!(found["legend"], json!(true));
        let page = plot.html().unwrap();
        assert!(page.contains("<noscript><svg") && page.matches("</script>").count() == 2);
    }

    #[test]
    fn maps_are_whole_and_have_the_colours_of_inferno() {
        // Falling abscissae are turned, as in the picture.
        let map = PlotMap {
            x: vec![1.0, 0.0],
            y: vec![0.0, 1.0, 2.0],
            z: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            label: "I".into(),
        };
        let found = panel(&Plot::new(Content::Map(map)))["map"].clone();
        assert_eq!((&found["nx"], &found["ny"]), (&json!(2), &json!(3)));
        assert_eq!(found["z"], json!([3.0, 4.0, 5.0, 0.0, 1.0, 2.0]));
        assert_eq!(
            (&found["x"], &found["low"], &found["high"]),
            (&json!([-0.5, 1.5]), &json!(0.0), &json!(5.0))
        );
        assert_eq!(found["colours"].as_array().unwrap().len(), 65);
        assert_eq!(found["colours"][0], json!([0, 0, 4]));
        let matrix = panel(&Plot::from_matrix(&Matrix::identity(3).unwrap()))["map"].clone();
        assert_eq!(matrix["z"].as_array().unwrap().iter().filter(|z| **z == json!(1.0)).count(), 3);
    }

    #[test]
    fn panels_stand_in_rows_and_lone_points_have_room() {
        let one = Plot::from_series(&Series::from(vec![2.0]));
        assert_eq!(panel(&one)["x"], json!([-0.5, 0.5]));
        let rows = vec![vec![one.clone(), one.clone()], vec![one]];
        let data = page::data_of(&Plot::panels(rows).unwrap().html().unwrap());
        let rows = data["rows"].as_array().unwrap();
        assert_eq!((rows[0].as_array().unwrap().len(), rows[1].as_array().unwrap().len()), (2, 1));
        assert_eq!(data["letters"], true);
        let nothing = Plot::from_series(&Series::from(vec![f64::NAN]));
        assert!(nothing.html().unwrap_err().message().contains("no finite point"));
    }
}
