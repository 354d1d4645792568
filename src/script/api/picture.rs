//! Pictures of lattices, models and samples, for `plot`.

use std::collections::BTreeSet;

use rhai::Dynamic;

use super::model::ScriptModel;
use super::transport::ScriptSample;
use super::values::{to_series, type_of};
use crate::error::{Error, Result};
use crate::lattice::{Lattice, Model, OrbitalBlock};
use crate::method::TransportSample;
use crate::number::Table;
use crate::output::plot::{Picture, Plot};
use crate::script::Options;

/// Most sites of a picture: more would be smaller than its pixels.
const MOST: usize = 20_000;
/// How strong the cells of a lead are drawn, outward.
const LEAD_CELLS: [f64; 2] = [0.6, 0.3];
/// Options of pictures, and those of other plots.
const OWN: [&str; 5] = ["values", "label", "sizes", "currents", "axes"];
const OTHERS: [&str; 7] = ["log", "style", "marks", "right", "right_label", "right_log", "ticks"];

/// The picture of a lattice, a model or a sample; nothing of other values.
pub(super) fn picture(value: &Dynamic, o: &Options) -> Result<Option<Plot>> {
    let picture = if let Some(lattice) = value.read_lock::<Lattice>() {
        let mut model = Model::new(lattice.clone(), 1)?;
        if !lattice.bonds().is_empty() {
            model.nearest(&OrbitalBlock::scalar(1, 1.0))?;
        }
        Drawing::new(&model, axes(o)?)?.finished(o)?
    } else if let Some(model) = value.read_lock::<ScriptModel>() {
        if model.is_strained() {
            return Err(Error::input("a picture of a strained model")
                .hint("give the strained vectors and sites to `lattice::custom`, and plot that"));
        }
        Drawing::new(&model.model, axes(o)?)?.finished(o)?
    } else if let Some(sample) = value.read_lock::<ScriptSample>() {
        let mut drawing = Drawing::new(&sample.1, axes(o)?)?;
        drawing.leads(&sample.0);
        drawing.finished(o)?
    } else {
        o.only_for("a picture of a lattice, a model or a sample", &OWN)?;
        return Ok(None);
    };
    o.only_for("curves and maps", &OTHERS)?;
    let axes = axes(o)?;
    let mut plot = Plot::from_picture(picture);
    (plot.xlabel, plot.ylabel) = (name(axes[0]), name(axes[1]));
    Ok(Some(plot))
}

/// The name of a Cartesian axis.
fn name(axis: usize) -> String {
    ["x", "y", "z"].get(axis).map_or_else(|| format!("axis {axis}"), |name| (*name).into())
}

/// The Cartesian axes across and upwards.
fn axes(o: &Options) -> Result<[usize; 2]> {
    let [a, b] = o.maybe_counts("axes")?.unwrap_or([0, 1]);
    if a == b || a.max(b) > 2 {
        return Err(Error::input(format!("option `axes` is [{a}, {b}]"))
            .hint("it takes two of the axes 0, 1 and 2, like `[0, 2]`"));
    }
    Ok([a, b])
}

/// A picture in the making.
struct Drawing {
    picture: Picture,
    axes: [usize; 2],
}

impl Drawing {
    fn new(model: &Model, axes: [usize; 2]) -> Result<Drawing> {
        let lattice = model.lattice();
        let count = lattice.sites();
        if count > MOST {
            return Err(Error::input(format!("a picture of {count} sites, of which no pixel would be left"))
                .hint(format!("up to {MOST} are drawn: take a smaller lattice, or plot a map")));
        }
        let mut drawing = Drawing { picture: Picture::default(), axes };
        let names: Vec<String> = lattice.basis().iter().map(|site| site.name.clone()).collect();
        for site in 0..count {
            drawing.picture.sites.push(drawing.place(&lattice.position(site)?));
            drawing.picture.kinds.push(lattice.locate(site)?.1);
        }
        drawing.picture.names = names;
        let orbitals = model.orbitals();
        for part in model.by_copy(&[])? {
            let mut away = vec![0.0; lattice.space()];
            for (d, vector) in lattice.vectors().iter().enumerate() {
                let cells = (part.copy[d] * lattice.cells()[d] as i64) as f64;
                away.iter_mut().zip(vector).for_each(|(x, v)| *x += cells * v);
            }
            let (away, inside) = (drawing.place(&away), part.copy.iter().all(|copies| *copies == 0));
            let pairs: BTreeSet<(usize, usize)> = part
                .entries
                .iter()
                .filter(|(_, _, value)| value.norm() > 0.0)
                .map(|(row, column, _)| (row / orbitals, column / orbitals))
                .filter(|(a, b)| if inside { a < b } else { true })
                .collect();
            for (a, b) in pairs {
                let (from, to) = (drawing.picture.sites[a], drawing.picture.sites[b]);
                let to = [to[0] + away[0], to[1] + away[1]];
                // A bond across the boundary is drawn at both of its ends.
                let middle = [0.5 * (from[0] + to[0]), 0.5 * (from[1] + to[1])];
                drawing.picture.bonds.push(if inside { (from, to, 1.0) } else { (from, middle, 0.5) });
            }
        }
        Ok(drawing)
    }

    /// Where a point lies in the plane of the picture.
    fn place(&self, at: &[f64]) -> [f64; 2] {
        self.axes.map(|axis| at.get(axis).copied().unwrap_or(0.0))
    }

    /// The first cells of each lead.
    fn leads(&mut self, sample: &TransportSample) {
        for (lead, sites) in (0..sample.leads()).filter_map(|i| sample.lead(i)) {
            let step = self.place(lead.step()).map(|x| x * lead.reach() as f64);
            let cell = |picture: &Picture, site: usize, out: usize| {
                let at = picture.sites[sites[site]];
                [at[0] + out as f64 * step[0], at[1] + out as f64 * step[1]]
            };
            for (out, strength) in LEAD_CELLS.iter().enumerate() {
                let places: Vec<[f64; 2]> =
                    (0..sites.len()).map(|site| cell(&self.picture, site, out + 1)).collect();
                for &(a, b, next) in lead.bonds() {
                    // Those that come from the cell before it.
                    let from = if next { cell(&self.picture, a, out) } else { places[a] };
                    self.picture.bonds.push((from, places[b], *strength));
                }
                self.picture.paler.extend(places.into_iter().map(|at| (at, *strength)));
            }
        }
    }

    /// With what the options show on it.
    fn finished(mut self, o: &Options) -> Result<Picture> {
        let count = self.picture.sites.len();
        let of_sites = |key: &str| -> Result<Option<Vec<f64>>> {
            let Some(value) = o.given(key) else { return Ok(None) };
            let numbers = to_series(&value)?.as_real(&format!("option `{key}`"))?.to_vec();
            if numbers.len() != count {
                return Err(Error::input(format!(
                    "option `{key}` has {} numbers for {count} sites",
                    numbers.len()
                ))
                .hint("it takes one for each site, in their order"));
            }
            Ok(Some(numbers))
        };
        self.picture.values = of_sites("values")?;
        self.picture.label = o.maybe_text("label")?.unwrap_or_default();
        self.picture.sizes = of_sites("sizes")?;
        if let Some(sizes) = &self.picture.sizes
            && let Some(wrong) = sizes.iter().find(|size| !(**size >= 0.0 && size.is_finite()))
        {
            return Err(Error::input(format!("a site of size {wrong}"))
                .hint("sizes are zero or more: take the modulus of an amplitude"));
        }
        if let Some(value) = o.given("currents") {
            let table = value.read_lock::<Table>().ok_or_else(|| {
                Error::input(format!("option `currents` is {}", type_of(&value)))
                    .hint("it takes the table of `s.currents(from, energy)`")
            })?;
            self.picture.arrows = self.arrows(&table)?;
        }
        Ok(self.picture)
    }

    fn arrows(&self, table: &Table) -> Result<Vec<([f64; 2], [f64; 2], f64)>> {
        let column = |name: &str| -> Result<Vec<f64>> {
            let column = table.shared(name).ok_or_else(|| {
                Error::input(format!("a table of currents without the column `{name}`"))
                    .hint("it has `from`, `to` and `current`, as that of `s.currents(from, energy)`")
            })?;
            Ok(column.numbers(name)?.as_real(name)?.to_vec())
        };
        let site = |x: f64| {
            let found = (x >= 0.0 && x.fract() == 0.0).then(|| self.picture.sites.get(x as usize).copied());
            found.flatten().ok_or_else(|| {
                Error::input(format!("a current at site {x} of {}", self.picture.sites.len()))
                    .hint("sites are counted from 0; currents and picture are of one sample")
            })
        };
        let (from, to, current) = (column("from")?, column("to")?, column("current")?);
        (0..current.len())
            .map(|i| {
                Ok((site(from[i])?, site(to[i])?, if current[i].is_finite() { current[i] } else { 0.0 }))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::matrix::Wrap;
    use crate::method::Lead;
    use crate::number::C64;

    fn model(lattice: Lattice) -> Model {
        let mut model = Model::new(lattice, 1).unwrap();
        model.nearest(&OrbitalBlock::scalar(1, -1.0)).unwrap();
        model
    }

    /// Sites, whole bonds, and halves of bonds that leave.
    fn counts(lattice: Lattice) -> (usize, usize, usize) {
        let picture = Drawing::new(&model(lattice), [0, 1]).unwrap().picture;
        let whole = picture.bonds.iter().filter(|bond| bond.2 == 1.0).count();
        (picture.sites.len(), whole, picture.bonds.len() - whole)
    }

    #[test]
    fn bonds_are_drawn_once_and_those_that_leave_at_both_ends() {
        let open = |lattice: Lattice| {
            let all = vec![Wrap::Open; lattice.dimension()];
            lattice.boundary(&all).unwrap()
        };
        assert_eq!(counts(open(Lattice::square(3, 3).unwrap())), (9, 12, 0));
        assert_eq!(counts(Lattice::square(3, 3).unwrap()), (9, 12, 12));
        // A chain of one site is joined to its own images, of two sites to each other and to images.
        assert_eq!(counts(Lattice::chain(1).unwrap()), (1, 0, 2));
        assert_eq!(counts(Lattice::chain(2).unwrap()), (2, 1, 2));
        // 2 N cells of graphene have three bonds each, of which those of the lower and left edge are missing.
        assert_eq!(counts(open(Lattice::honeycomb(4, 4).unwrap())), (32, 3 * 16 - 8, 0));
        let picture = Drawing::new(&model(Lattice::honeycomb(2, 2).unwrap()), [0, 1]).unwrap().picture;
        for (from, to, strength) in &picture.bonds {
            let length = (from[0] - to[0]).hypot(from[1] - to[1]);
            assert!((length - strength / 3f64.sqrt()).abs() < 1e-12, "{length}");
        }
    }

    #[test]
    fn leads_go_on_where_the_sample_ends() {
        let sample = model(Lattice::square(4, 3).unwrap().boundary(&[Wrap::Open, Wrap::Open]).unwrap());
        let end =
            model(Lattice::square(1, 3).unwrap().boundary(&[Wrap::Phase(C64::ONE), Wrap::Open]).unwrap());
        let leads = vec![
            Lead::new(&end, None, None, false, &[]).unwrap(),
            Lead::new(&end, None, None, true, &[]).unwrap(),
        ];
        let mut drawing = Drawing::new(&sample, [0, 1]).unwrap();
        drawing.leads(&TransportSample::new(&sample, leads).unwrap());
        let picture = drawing.picture;
        // two cells of three sites at each end, each with two bonds inside and three to the cell before
        assert_eq!((picture.paler.len(), picture.bonds.len()), (12, 9 + 8 + 2 * 2 * (2 + 3)));
        let mut x: Vec<i64> = picture.paler.iter().map(|(at, _)| at[0].round() as i64).collect();
        x.sort_unstable();
        assert_eq!(x, [-2, -2, -2, -1, -1, -1, 4, 4, 4, 5, 5, 5]);
        assert!(picture.bonds.iter().all(|(a, b, _)| ((a[0] - b[0]).hypot(a[1] - b[1]) - 1.0).abs() < 1e-12));
    }
}
