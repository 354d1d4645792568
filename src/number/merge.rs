//! Tables of several runs as one. Rows at the same place are averaged with equal weights. Their errors come from the
//! differences between runs (Student's for few runs). Tables of other places are appended.

use super::{C64, Column, Series, Table, student};
use crate::error::{Error, Result};

/// How the columns of a table hang together.
struct TableLayout {
    /// How many columns tell where a row stands.
    axes: usize,
    /// For each column behind them, the column whose error it is.
    error_of: Vec<Option<usize>>,
}

/// The tables of several runs as one; `names` are what messages call them, and `follow` puts them one after another
/// whatever they hold.
///
/// The first column, of maps the first two, tells where a row stands. Tables of the same places are averaged: each
/// column gets a column of errors behind it, `error` if there is only one, else `NAME_error`, in place of those of the
/// runs. Tables of other places follow in the order of their first place.
///
/// # Errors
/// Columns that differ, runs with the same numbers, places that overlap and are not the same.
pub fn merge(tables: &[Table], names: &[String], follow: bool) -> Result<Table> {
    let name = |i: usize| names.get(i).cloned().unwrap_or_else(|| format!("run {}", i + 1));
    let Some(first) = tables.first() else {
        return Err(Error::input("no tables to merge").hint("give one at least"));
    };
    for (i, table) in tables.iter().enumerate() {
        let kinds = |t: &Table| -> Vec<(String, bool)> {
            t.columns().map(|(name, c)| (name.to_string(), matches!(c, Column::Texts(_)))).collect()
        };
        if kinds(table) != kinds(first) {
            let list = |t: &Table| t.names().collect::<Vec<_>>().join(", ");
            return Err(Error::input(format!(
                "{} has the columns {}, and {} has {}",
                name(0),
                list(first),
                name(i),
                list(table)
            ))
            .hint("runs with the same columns belong together"));
        }
    }
    let layout = TableLayout::of(first);
    for (j, b) in tables.iter().enumerate() {
        if let Some(i) = tables[..j].iter().position(|a| same(a, b, 0..usize::MAX)) {
            return Err(Error::input(format!("{} and {} hold the same numbers", name(i), name(j)))
                .hint("runs with random numbers of one seed say nothing new: give each a seed of its own"));
        }
    }
    if follow {
        return one_after_another(first, &tables.iter().collect::<Vec<_>>()).map(|t| about(t, tables));
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        match groups.iter_mut().find(|group| same(&tables[group[0]], table, 0..layout.axes)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups.sort_by(|a, b| {
        let place = |group: &[usize]| tables[group[0]].columns().next().and_then(|(_, c)| first_number(c));
        place(a).unwrap_or(f64::INFINITY).total_cmp(&place(b).unwrap_or(f64::INFINITY))
    });
    let pairs = (0..groups.len()).flat_map(|i| (i + 1..groups.len()).map(move |j| (i, j)));
    for pair in pairs.map(|(i, j)| [&groups[i], &groups[j]]) {
        let (a, b) = (&tables[pair[0][0]], &tables[pair[1][0]]);
        if (a.rows().min(b.rows()) > 1 && overlap(a, b)) || shared(a, b) {
            return Err(Error::input(format!(
                "{} and {} overlap in `{}`, and do not have the same values there",
                name(pair[0][0]),
                name(pair[1][0]),
                a.names().next().unwrap_or_default()
            ))
            .hint("give the runs the same points (of densities, the same `window`) to average them, or put the tables \
                 one after another (option `append`)"));
        }
    }
    if groups.iter().all(|group| group.len() == 1) {
        let ordered: Vec<&Table> = groups.iter().map(|group| &tables[group[0]]).collect();
        return one_after_another(first, &ordered).map(|t| about(t, tables));
    }
    let means: Vec<Table> = groups
        .iter()
        .map(|group| layout.mean(&group.iter().map(|i| &tables[*i]).collect::<Vec<_>>()))
        .collect::<Result<_>>()?;
    let mut whole = one_after_another(&means[0], &means.iter().collect::<Vec<_>>())?;
    if let (1, Some((nx, ny))) = (groups.len(), first.grid()) {
        whole = whole.with_grid(nx, ny)?;
    }
    Ok(about(whole, tables).with_report("runs", tables.len()))
}

/// The title and what the reports agree in.
fn about(mut table: Table, tables: &[Table]) -> Table {
    let Some((first, others)) = tables.split_first() else { return table };
    for (key, value) in first.report() {
        if others.iter().all(|t| t.report().get(key) == Some(value)) {
            table = table.with_report(key.clone(), value.clone());
        }
    }
    match first.title().filter(|title| others.iter().all(|t| t.title() == Some(title))) {
        Some(title) => table.with_title(title.to_string()),
        None => table,
    }
}

/// Whether some of the columns hold the same, to the last bit.
fn same(a: &Table, b: &Table, columns: std::ops::Range<usize>) -> bool {
    let bits = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a.to_bits() == b.to_bits())
    };
    let alike = |a: &Column, b: &Column| match (a, b) {
        (Column::Numbers(Series::Real(a)), Column::Numbers(Series::Real(b))) => bits(a, b),
        (a, b) => a == b,
    };
    let chosen = |t: &'_ Table| t.columns().count().min(columns.end);
    chosen(a) == chosen(b)
        && a.columns()
            .zip(b.columns())
            .take(columns.end)
            .skip(columns.start)
            .all(|((_, a), (_, b))| alike(a, b))
}

fn first_number(column: &Column) -> Option<f64> {
    match column {
        Column::Numbers(Series::Real(x)) => x.first().copied(),
        _ => None,
    }
}

/// Whether the places of two tables, as numbers, lie among one another.
fn overlap(a: &Table, b: &Table) -> bool {
    let ends = |t: &Table| match t.columns().next() {
        Some((_, Column::Numbers(Series::Real(x)))) => Some((
            x.iter().copied().fold(f64::INFINITY, f64::min),
            x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        )),
        _ => None,
    };
    ends(a).zip(ends(b)).is_some_and(|((low, high), (from, to))| low <= to && from <= high)
}

/// Whether a place of one row is among those of the other table.
fn shared(a: &Table, b: &Table) -> bool {
    let places = |t: &Table| match t.columns().next() {
        Some((_, Column::Numbers(Series::Real(x)))) => x.clone(),
        _ => Vec::new(),
    };
    let (a, b) = (places(a), places(b));
    a.len().min(b.len()) == 1 && a.iter().any(|x| b.contains(x))
}

fn one_after_another(like: &Table, tables: &[&Table]) -> Result<Table> {
    let mut whole = Table::new();
    for name in like.names() {
        let columns: Vec<&Column> = tables.iter().map(|t| t.cells(name)).collect::<Result<_>>()?;
        let column = match columns.as_slice() {
            [Column::Texts(_), ..] => Column::Texts(
                columns
                    .iter()
                    .flat_map(|c| match c {
                        Column::Texts(texts) => texts.clone(),
                        Column::Numbers(_) => Vec::new(),
                    })
                    .collect(),
            ),
            _ => {
                let parts: Vec<&Series> = columns.iter().map(|c| c.numbers(name)).collect::<Result<_>>()?;
                let all = parts.iter().fold(Series::Real(Vec::new()), |all, part| all.concat(part));
                Column::Numbers(all)
            }
        };
        whole = whole.with_column(name, column)?;
    }
    Ok(whole)
}

impl TableLayout {
    fn of(table: &Table) -> TableLayout {
        let names: Vec<&str> = table.names().collect();
        let axes = if table.grid().is_some() { 2 } else { 1 };
        let numeric = |i: &usize| matches!(table.get(names[*i]), Some(Column::Numbers(_)));
        let mut error_of: Vec<Option<usize>> = Vec::new();
        for (i, name) in names.iter().enumerate().skip(axes) {
            let of = match name.strip_suffix("_error") {
                Some(stem) => (axes..names.len()).find(|k| names[*k] == stem),
                // Of the column before it.
                None if *name == "error" => (axes..i).rev().find(|k| error_of[*k - axes].is_none()),
                None => None,
            };
            // A second one of the same column is a column of its own.
            error_of.push(of.filter(|k| numeric(k) && numeric(&i) && !error_of.contains(&Some(*k))));
        }
        TableLayout { axes, error_of }
    }

    /// The averages of tables of the same places; of one table its own numbers and errors.
    fn mean(&self, tables: &[&Table]) -> Result<Table> {
        let Some(first) = tables.first() else { return Ok(Table::new()) };
        let names: Vec<&str> = first.names().collect();
        let data = |i: usize| i >= self.axes && self.error_of[i - self.axes].is_none();
        let numbers = |i: usize| data(i) && matches!(first.get(names[i]), Some(Column::Numbers(_)));
        let several = (0..names.len()).filter(|i| numbers(*i)).count() > 1;
        let mut whole = Table::new();
        for (i, name) in names.iter().enumerate() {
            let column = first.cells(name)?;
            if i < self.axes || !data(i) && !matches!(column, Column::Numbers(_)) {
                whole = whole.with_column(*name, column.clone())?;
                continue;
            }
            if !data(i) {
                continue;
            }
            if let Column::Texts(_) = column {
                if tables.iter().any(|t| t.get(name) != Some(column)) {
                    return Err(Error::input(format!("the texts of column `{name}` differ from run to run"))
                        .hint(
                            "leave the column out, or put the tables one after another (option `append`)",
                        ));
                }
                whole = whole.with_column(*name, column.clone())?;
                continue;
            }
            let runs: Vec<&Series> = tables.iter().map(|t| t.column(name)).collect::<Result<_>>()?;
            let own = (0..names.len()).find(|k| *k >= self.axes && self.error_of[*k - self.axes] == Some(i));
            let (mean, error) = match runs.as_slice() {
                [alone] => {
                    let none = || Series::Real(vec![f64::NAN; alone.len()]);
                    let known = own.map(|k| first.column(names[k]).cloned()).transpose()?;
                    ((*alone).clone(), known.unwrap_or_else(none))
                }
                runs => averages(runs),
            };
            let called = match own {
                Some(k) => names[k].to_string(),
                None if several || *name == "error" => format!("{name}_error"),
                None => "error".to_string(),
            };
            whole = whole.with_column(*name, mean)?.with_column(called, error)?;
        }
        Ok(whole)
    }
}

/// Means of several runs, and their standard errors; of complex numbers that of the distance in the plane.
fn averages(runs: &[&Series]) -> (Series, Series) {
    let n = runs.len();
    let factor = student::factor(n) / (n as f64 * (n as f64 - 1.0)).sqrt();
    let rows = runs.first().map_or(0, |run| run.len());
    if runs.iter().all(|run| !run.is_complex()) {
        let at = |run: &Series, i: usize| run.get(i).map_or(f64::NAN, super::Number::re);
        let mean: Vec<f64> =
            (0..rows).map(|i| runs.iter().map(|run| at(run, i)).sum::<f64>() / n as f64).collect();
        let spread = |i: usize| Series::Real(runs.iter().map(|run| at(run, i) - mean[i]).collect()).norm();
        let error = (0..rows).map(|i| factor * spread(i)).collect();
        return (Series::Real(mean), Series::Real(error));
    }
    let at = |run: &Series, i: usize| run.get(i).map_or(C64::new(f64::NAN, 0.0), super::Number::to_c64);
    let mean: Vec<C64> =
        (0..rows).map(|i| runs.iter().map(|run| at(run, i)).sum::<C64>() / n as f64).collect();
    let spread = |i: usize| Series::Complex(runs.iter().map(|run| at(run, i) - mean[i]).collect()).norm();
    let error = (0..rows).map(|i| factor * spread(i)).collect();
    (Series::Complex(mean), Series::Real(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(x: &[f64], y: &[f64]) -> Table {
        Table::from_columns([("x", x.to_vec()), ("y", y.to_vec())]).unwrap()
    }

    fn numbers(t: &Table, name: &str) -> Vec<f64> {
        t.column(name).unwrap().as_real("").unwrap().to_vec()
    }

    #[test]
    fn the_same_places_are_averaged() {
        let all =
            [run(&[0.0, 1.0], &[1.0, 2.0]), run(&[0.0, 1.0], &[3.0, 2.0]), run(&[0.0, 1.0], &[2.0, 5.0])];
        let t = merge(&all, &[], false).unwrap();
        assert_eq!(t.names().collect::<Vec<_>>(), ["x", "y", "error"]);
        assert_eq!(numbers(&t, "y"), [2.0, 3.0]);
        // The standard error of 1, 3, 2 is 1/sqrt 3; with two degrees of freedom it grows by p sqrt(2/(1 - p^2)).
        let p: f64 = 0.682_689_492_137_085_9;
        let grows = p * (2.0 / (1.0 - p * p)).sqrt();
        let errors = numbers(&t, "error");
        assert!((errors[0] - grows / 3f64.sqrt()).abs() < 1e-14);
        assert!((errors[1] - grows).abs() < 1e-14, "2, 2, 5: spread sqrt 3 a run");
        assert_eq!(t.report()["runs"], 3);
    }

    #[test]
    fn errors_of_small_and_large_numbers_have_their_size() {
        for size in [1e-200, 1e-170, 1.0, 1e200] {
            let t = merge(&[run(&[0.0], &[size]), run(&[0.0], &[3.0 * size])], &[], false).unwrap();
            let error = numbers(&t, "error")[0] / size;
            assert!((error - student::factor(2)).abs() < 1e-12, "{size}: {error}");
        }
    }

    #[test]
    fn other_places_follow_in_their_order() {
        let t = merge(&[run(&[4.0], &[1.0]), run(&[2.0], &[3.0]), run(&[4.0], &[2.0])], &[], false).unwrap();
        assert_eq!((numbers(&t, "x"), numbers(&t, "y")), (vec![2.0, 4.0], vec![3.0, 1.5]));
        let errors = numbers(&t, "error");
        assert!(errors[0].is_nan() && errors[1] > 0.9, "one run has no error of its own");
        let plain = merge(&[run(&[4.0], &[1.0]), run(&[2.0], &[3.0])], &[], false).unwrap();
        assert_eq!(plain.names().collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(numbers(&plain, "x"), [2.0, 4.0]);
    }

    #[test]
    fn errors_of_columns_stay_theirs() {
        let t = |s: f64| {
            Table::from_columns([("x", vec![0.0]), ("a", vec![s]), ("a_error", vec![9.0]), ("b", vec![-s])])
                .unwrap()
        };
        let whole = merge(&[t(1.0), t(2.0)], &[], false).unwrap();
        assert_eq!(whole.names().collect::<Vec<_>>(), ["x", "a", "a_error", "b", "b_error"]);
        assert_eq!(numbers(&whole, "a_error"), numbers(&whole, "b_error"));
        let complex =
            |z: C64| Table::new().with_column("x", vec![0.0]).unwrap().with_column("z", vec![z]).unwrap();
        let whole = merge(&[complex(C64::new(1.0, 1.0)), complex(C64::new(1.0, -1.0))], &[], false).unwrap();
        assert_eq!(whole.column("z").unwrap(), &Series::from(vec![C64::ONE]));
        assert!((numbers(&whole, "error")[0] - student::factor(2)).abs() < 1e-12);
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let names = ["a.csv".to_string(), "b.csv".to_string()];
        let fails = |a: Table, b: Table| merge(&[a, b], &names, false).unwrap_err().to_string();
        assert!(merge(&[], &[], false).is_err());
        assert!(fails(run(&[0.0], &[1.0]), run(&[0.0], &[1.0])).starts_with("a.csv and b.csv hold the same"));
        let other = Table::from_columns([("x", vec![0.0]), ("z", vec![0.0])]).unwrap();
        assert!(fails(run(&[0.0], &[1.0]), other).contains("b.csv has x, z"));
        assert!(
            fails(run(&[0.0, 1.0], &[1.0, 1.0]), run(&[0.5, 1.5], &[1.0, 1.0])).contains("overlap in `x`")
        );
        let pair = [run(&[0.0, 1.0], &[1.0, 1.0]), run(&[0.5, 1.5], &[1.0, 1.0])];
        assert_eq!(numbers(&merge(&pair, &[], true).unwrap(), "x"), [0.0, 1.0, 0.5, 1.5]);
    }
}
