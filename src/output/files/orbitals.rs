//! Spline orbitals as an NPZ archive: `coefficients` [ix, iy, iz, l] in their own precision, `cell` (three vectors as
//! rows, bohr), `twist` (fractions of the reciprocal vectors) and, where they are known, `energies` (hartree).

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::archive::Archive;
use super::array::array;
use super::pack::pack;
use super::write_atomically;
use crate::backend::splines::{Coefficients, SplineTable};
use crate::error::{Error, Result};
use crate::montecarlo::SimulationCell;
use crate::montecarlo::orbitals::{SplineLayout, SplineOrbitals};
use crate::number::Series;

/// Saves them; the file appears whole or not at all.
pub fn save_orbitals(orbitals: &SplineOrbitals, energies: Option<&[f64]>, path: &Path) -> Result<()> {
    let layout = orbitals.layout();
    let precision = if layout.single { "single" } else { "double" };
    let about = json!({ "kind": "orbitals", "label": layout.label, "precision": precision });
    let numbers = orbitals.table().bytes() / if layout.single { 4 } else { 8 };
    write_atomically(path, |out| {
        pack(out, numbers, &about, |archive| {
            archive.begin("coefficients.npy")?;
            match orbitals.table() {
                SplineTable::Single(t) => coefficients(&mut *archive, t, &layout)?,
                SplineTable::Double(t) => coefficients(&mut *archive, t, &layout)?,
            }
            archive.begin("cell.npy")?;
            array(&mut *archive, &[3, 3], layout.cell.vectors().iter().flatten().copied())?;
            archive.begin("twist.npy")?;
            array(&mut *archive, &[3], layout.twist.into_iter())?;
            if let Some(energies) = energies {
                archive.begin("energies.npy")?;
                array(&mut *archive, &[energies.len() as u64], energies.iter().copied())?;
            }
            Ok(())
        })
    })
}

fn coefficients<F>(out: impl Write, table: &Coefficients<F>, layout: &SplineLayout) -> std::io::Result<()>
where
    F: Copy + Default + npyz::AutoSerialize,
    num_complex::Complex<F>: npyz::AutoSerialize,
{
    let [nx, ny, nz] = layout.grid.map(|n| n as u64);
    let shape = [nx, ny, nz, layout.count as u64];
    let rows = table.data().chunks_exact(table.stride()).map(|row| &row[..table.shape().lanes]);
    if layout.complex {
        let pairs = rows.flat_map(|row| row.chunks_exact(2).map(|z| num_complex::Complex::new(z[0], z[1])));
        array(out, &shape, pairs)
    } else {
        array(out, &shape, rows.flatten().copied())
    }
}

/// Orbitals as read: what the table holds, the table, and energies if the file has them.
pub type LoadedOrbitals = (SplineLayout, SplineTable, Option<Vec<f64>>);

/// Whether an archive holds orbitals.
pub fn holds_orbitals(path: &Path) -> bool {
    let Ok(mut archive) = Archive::open(path) else { return false };
    let names = archive.names();
    let named = |wanted: &str| names.iter().any(|name| name == wanted);
    archive.about().get("kind").is_some_and(|kind| kind == "orbitals")
        || (named("coefficients") && named("cell"))
}

/// Loads what [`save_orbitals`] wrote, or an archive of the same arrays by NumPy. `single` overrides the precision.
///
/// # Errors
/// What is no such archive, with the array that is missing or does not fit.
pub fn load_orbitals(path: &Path, single: Option<bool>) -> Result<LoadedOrbitals> {
    let mut archive = Archive::open(path)?;
    let about = archive.about().clone();
    let mut read = |name: &str| archive.array(name);
    let missing = |name: &str| {
        Error::file(format!("there is no array `{name}`"))
            .hint("orbitals are `coefficients` [ix, iy, iz, l] and `cell` [3, 3]")
    };
    let (shape, cell) = read("cell")?.ok_or_else(|| missing("cell"))?;
    let rows = cell.as_real("the cell")?;
    if shape != [3, 3] {
        return Err(Error::file(format!("array `cell` has the shape {shape:?}, not [3, 3]")));
    }
    let cell = SimulationCell::new(std::array::from_fn(|i| std::array::from_fn(|j| rows[3 * i + j])))?;
    let twist = match read("twist")? {
        None => [0.0; 3],
        Some((_, twist)) => <[f64; 3]>::try_from(twist.as_real("the twist")?)
            .ok()
            .filter(|t| t.iter().all(|x| x.is_finite()))
            .ok_or_else(|| Error::file("array `twist` is not three numbers"))?,
    };
    let energies = match read("energies")? {
        None => None,
        Some((_, energies)) => Some(energies.as_real("the energies")?.to_vec()),
    };
    let (shape, numbers) = read("coefficients")?.ok_or_else(|| missing("coefficients"))?;
    let sizes: Vec<usize> = shape.iter().filter_map(|&n| usize::try_from(n).ok()).collect();
    let &[nx, ny, nz, count] = sizes.as_slice() else {
        return Err(Error::file(format!("array `coefficients` has the shape {shape:?}"))
            .hint("its dimensions are [ix, iy, iz, l]"));
    };
    if energies.as_ref().is_some_and(|e| e.len() != count) {
        return Err(Error::file(format!("{count} orbitals and another number of energies")));
    }
    let text = |key: &str| about.get(key).and_then(Value::as_str);
    let layout = SplineLayout {
        cell,
        twist,
        grid: [nx, ny, nz],
        count,
        complex: numbers.is_complex(),
        single: single.unwrap_or(text("precision") == Some("single")),
        label: text("label").map_or_else(|| format!("{count} orbitals"), str::to_string),
    };
    let mut table = layout.table()?;
    match &numbers {
        Series::Real(x) => {
            for l in 0..count {
                table.set_lane(l, x.iter().skip(l).step_by(count).copied());
            }
        }
        Series::Complex(z) => {
            for l in 0..count {
                table.set_lane(2 * l, z.iter().skip(l).step_by(count).map(|z| z.re));
                table.set_lane(2 * l + 1, z.iter().skip(l).step_by(count).map(|z| z.im));
            }
        }
    }
    Ok((layout, table, energies))
}
