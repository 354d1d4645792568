//! Vectors and eigenpairs as an NPZ archive, in their own precision: `vectors` [row, column], on a lattice
//! [t, z, y, x, component, column], and with eigenpairs `values` and `residuals` [column].

use std::io::Write;
use std::path::Path;

use npyz::{NpyFile, TypeChar};
use num_complex::Complex;
use serde_json::{Map, Value, json};

use super::archive::Archive;
use super::array::{array, read_array};
use super::npz::write_npy;
use super::pack::pack;
use super::write_atomically;
use crate::backend::{BlockVector, Device, Grid, Rows};
use crate::error::{Error, ErrorKind, Result};
use crate::method::{Eigen, SearchEnded};
use crate::number::{C64, DType, Series};
use crate::output::Manifest;
use crate::task;

/// Vectors to be written to a file, or read from one.
pub struct SavedVectors {
    dtype: DType,
    rows: Rows,
    columns: usize,
    /// Row by row.
    numbers: Vec<C64>,
    pairs: Option<EigenData>,
}

/// What eigenpairs have besides their vectors.
struct EigenData {
    values: Vec<f64>,
    residuals: Vec<f64>,
    iterations: usize,
    products: usize,
    ended: SearchEnded,
}

impl SavedVectors {
    /// The columns of a block.
    ///
    /// # Errors
    /// A block of which other processes hold a part.
    pub fn of(device: &Device, block: &BlockVector) -> Result<SavedVectors> {
        let rows = block.rows();
        rows.need_all("a vector is saved")?;
        let numbers = device.download(block)?;
        Ok(SavedVectors { dtype: block.dtype(), rows, columns: block.columns(), numbers, pairs: None })
    }

    /// Eigenpairs.
    ///
    /// # Errors
    /// As for [`SavedVectors::of`].
    pub fn of_pairs(device: &Device, eigen: &Eigen) -> Result<SavedVectors> {
        let known = EigenData {
            values: eigen.values.clone(),
            residuals: eigen.residuals.clone(),
            iterations: eigen.iterations,
            products: eigen.products,
            ended: eigen.ended,
        };
        Ok(SavedVectors { pairs: Some(known), ..SavedVectors::of(device, &eigen.vectors)? })
    }

    /// The vectors on a device, and what makes eigenpairs of them, if it is known.
    pub fn upload(self, device: &Device) -> Result<(BlockVector, Option<Eigen>)> {
        let vectors = device.upload(self.dtype, self.rows, self.columns, &self.numbers)?;
        let eigen = self.pairs.map(|known| Eigen {
            values: known.values,
            vectors: vectors.clone(),
            // The file does not say what counted as converged, but it says how the search ended.
            tolerance: known.residuals.iter().copied().fold(0.0, f64::max),
            residuals: known.residuals,
            iterations: known.iterations,
            products: known.products,
            ended: known.ended,
        });
        Ok((vectors, eigen))
    }

    fn shape(&self) -> Vec<u64> {
        let sizes = match self.rows.grid {
            None => vec![self.rows.global, self.columns],
            Some(grid) => {
                let directions = grid.dims.into_iter().rev();
                directions.chain([grid.per_site, self.columns]).collect()
            }
        };
        sizes.into_iter().map(|n| n as u64).collect()
    }
}

/// The numbers of vectors as an array of their own precision.
fn write_numbers(out: impl Write, shape: &[u64], vectors: &SavedVectors) -> std::io::Result<()> {
    let numbers = vectors.numbers.iter();
    match vectors.dtype {
        DType::F32 => array(out, shape, numbers.map(|z| z.re as f32)),
        DType::F64 => array(out, shape, numbers.map(|z| z.re)),
        DType::C32 => array(out, shape, numbers.map(|z| Complex::new(z.re as f32, z.im as f32))),
        DType::C64 => array(out, shape, numbers.copied()),
    }
}

/// Saves them; the file appears whole or not at all.
///
/// # Errors
/// A name that ends neither in `.npz` nor, for vectors alone, in `.npy`, a file that cannot be written.
pub fn save_vectors(vectors: &SavedVectors, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let named = |end: &str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(end));
    if named("npy") && vectors.pairs.is_none() {
        let shape = [vectors.rows.global as u64, vectors.columns as u64];
        return write_npy(path, |out| write_numbers(out, &shape, vectors));
    }
    if !named("npz") {
        let hint = match vectors.pairs {
            None => "the name ends in `.npz`, or in `.npy` for the numbers alone",
            Some(_) => "the name ends in `.npz`",
        };
        return Err(Error::input(format!("vectors are not saved as `{}`", path.display())).hint(hint));
    }
    let mut about = Map::new();
    about.insert("kind".into(), json!(if vectors.pairs.is_some() { "eigen" } else { "vectors" }));
    if let Some(known) = &vectors.pairs {
        about.insert("iterations".into(), json!(known.iterations));
        about.insert("products".into(), json!(known.products));
        about.insert("converged".into(), json!(known.ended == SearchEnded::Converged));
        about.insert("ended".into(), json!(known.ended.name()));
    }
    if let Some(manifest) = manifest {
        about.insert("manifest".into(), manifest.to_json());
    }
    let shape = vectors.shape();
    write_atomically(path, |out| {
        pack(out, vectors.numbers.len(), &Value::Object(about), |archive| {
            archive.begin("vectors.npy")?;
            write_numbers(&mut *archive, &shape, vectors)?;
            if let Some(known) = &vectors.pairs {
                for (name, data) in [("values.npy", &known.values), ("residuals.npy", &known.residuals)] {
                    archive.begin(name)?;
                    array(&mut *archive, &[data.len() as u64], data.iter().copied())?;
                }
            }
            Ok(())
        })
    })
}

/// The scalar type of an array, the nearest where it is no type of vectors.
fn dtype(bytes: &[u8]) -> Option<DType> {
    let npy = NpyFile::new(bytes).ok()?;
    let npyz::DType::Plain(kind) = npy.dtype() else { return None };
    let single =
        matches!((kind.type_char(), kind.size_field()), (TypeChar::Float, 4) | (TypeChar::Complex, 8));
    Some(DType::of(single, kind.type_char() == TypeChar::Complex))
}

/// Rows and columns by the dimensions of an array.
fn rows_of(shape: &[u64]) -> Option<(Rows, usize)> {
    let sizes: Vec<usize> =
        shape.iter().filter_map(|&n| usize::try_from(n).ok().filter(|n| *n > 0)).collect();
    if sizes.len() != shape.len() {
        return None;
    }
    match *sizes.as_slice() {
        [rows, columns] => Some((Rows::all(rows), columns)),
        [t, z, y, x, per_site, columns] => Some((Rows::on(Grid { dims: [x, y, z, t], per_site }), columns)),
        _ => None,
    }
}

/// Loads what [`save_vectors`] wrote, or an archive of the same arrays by NumPy; nothing where the file holds none.
///
/// # Errors
/// Vectors that are damaged or do not fit together.
pub fn load_vectors(path: &Path) -> Result<Option<SavedVectors>> {
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("npz")) {
        return Ok(None);
    }
    let path = path.to_path_buf();
    task::apart(move || {
        read(&path).map_err(|e| {
            if e.kind() == ErrorKind::Interrupted {
                return e;
            }
            let e = e.context(format_args!("cannot read `{}`", path.display()));
            if e.hint_text().is_some() { e } else { e.hint("the file may be damaged, or of another kind") }
        })
    })
}

fn read(path: &Path) -> Result<Option<SavedVectors>> {
    // The reader of tables reports files that are no archive.
    let Ok(mut archive) = Archive::open(path) else { return Ok(None) };
    let about = archive.about().clone();
    let kind = about.get("kind").and_then(Value::as_str);
    if !matches!(kind, None | Some("vectors" | "eigen")) {
        return Ok(None);
    }
    let hint = "vectors are `vectors` [row, column] or [t, z, y, x, component, column]; eigenpairs have `values` and \
                `residuals` [column] too";
    let missing = |name: &str| Error::file(format!("there is no array `{name}`")).hint(hint);
    let Some(raw) = archive.bytes("vectors.npy")? else {
        return if kind.is_some() { Err(missing("vectors")) } else { Ok(None) };
    };
    let parse = |mut raw: &[u8], name: &str| {
        let bytes = raw.len() as u64;
        let array = read_array(&mut raw, bytes).map_err(|e| e.context(format_args!("array `{name}`")))?;
        if raw.is_empty() { Ok(array) } else { Err(Error::file(format!("array `{name}` is too long"))) }
    };
    let (shape, data) = parse(&raw, "vectors")?;
    // A column of a table may have that name.
    if kind.is_none() && shape.len() < 2 {
        return Ok(None);
    }
    let (Some((rows, columns)), Some(dtype)) = (rows_of(&shape), dtype(&raw)) else {
        return Err(Error::file(format!("array `vectors` has the shape {shape:?}")).hint(hint));
    };
    let numbers = match data {
        Series::Real(x) => x.into_iter().map(|x| C64::new(x, 0.0)).collect(),
        Series::Complex(z) => z,
    };
    let mut vectors = SavedVectors { dtype, rows, columns, numbers, pairs: None };
    let mut series = |name: &str| -> Result<Option<Vec<f64>>> {
        let Some(raw) = archive.bytes(&format!("{name}.npy"))? else { return Ok(None) };
        let (shape, data) = parse(&raw, name)?;
        let data = data.as_real(name)?.to_vec();
        let fits = shape == [columns as u64] && data.iter().all(|x| x.is_finite());
        let what = format!("array `{name}` is not {columns} numbers, one for each column of `vectors`");
        if fits { Ok(Some(data)) } else { Err(Error::file(what).hint(hint)) }
    };
    match (series("values")?, series("residuals")?) {
        (None, None) if kind != Some("eigen") => Ok(Some(vectors)),
        (Some(values), Some(residuals)) => {
            let sound = residuals.iter().all(|r| *r >= 0.0) && vectors.numbers.iter().all(|z| z.is_finite());
            if !sound {
                return Err(Error::file("eigenvectors that are no numbers, or residuals below 0").hint(hint));
            }
            let count = |key: &str| about.get(key).and_then(Value::as_u64).unwrap_or(0) as usize;
            vectors.pairs = Some(EigenData {
                values,
                residuals,
                iterations: count("iterations"),
                products: count("products"),
                ended: ended(&about),
            });
            Ok(Some(vectors))
        }
        (None, _) => Err(missing("values")),
        (_, None) => Err(missing("residuals")),
    }
}

/// Why the search for saved pairs ended; older files say only whether it converged.
fn ended(about: &Map<String, Value>) -> SearchEnded {
    let named = about.get("ended").and_then(Value::as_str).and_then(SearchEnded::named);
    match about.get("converged").and_then(Value::as_bool) {
        Some(false) => named.unwrap_or(SearchEnded::Limit),
        _ => SearchEnded::Converged,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::task::Interrupt;

    fn device() -> Device {
        Arc::new(Cpu::new(1, Interrupt::default()).unwrap())
    }

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("umklapp-vectors-{}-{name}", std::process::id()))
    }

    /// Numbers that single precision holds.
    fn block(device: &Device, dtype: DType, rows: Rows, columns: usize) -> BlockVector {
        let im = if dtype.is_complex() { 1.0 } else { 0.0 };
        let numbers = (0..rows.global * columns)
            .map(|k| C64::new((k / columns) as f64 + 0.25 * (k % columns) as f64, -im * k as f64))
            .collect::<Vec<_>>();
        device.upload(dtype, rows, columns, &numbers).unwrap()
    }

    #[test]
    fn vectors_of_every_type_come_back() {
        let device = device();
        let grid = Grid { dims: [2, 4, 6, 2], per_site: 12 };
        for (name, rows) in [("plain", Rows::all(7)), ("grid", Rows::on(grid))] {
            for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
                for columns in [1, 3] {
                    let file = path(&format!("{name}.npz"));
                    let v = block(&device, dtype, rows, columns);
                    save_vectors(&SavedVectors::of(&device, &v).unwrap(), &file, None).unwrap();
                    let (w, eigen) = load_vectors(&file).unwrap().unwrap().upload(&device).unwrap();
                    std::fs::remove_file(&file).unwrap();
                    assert!(eigen.is_none());
                    assert_eq!((w.dtype(), w.rows(), w.columns()), (dtype, rows, columns));
                    assert_eq!(device.download(&w).unwrap(), device.download(&v).unwrap());
                }
            }
        }
    }

    /// The array's dimensions are what the manual says, the first direction last but two.
    #[test]
    fn spinors_lie_as_stated() {
        let device = device();
        let (grid, file) = (Grid { dims: [2, 3, 4, 5], per_site: 12 }, path("order.npz"));
        let v = block(&device, DType::F64, Rows::on(grid), 2);
        save_vectors(&SavedVectors::of(&device, &v).unwrap(), &file, None).unwrap();
        let mut archive = zip::ZipArchive::new(std::fs::File::open(&file).unwrap()).unwrap();
        let entry = archive.by_name("vectors.npy").unwrap();
        let size = entry.size();
        let (shape, data) = read_array(entry, size).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(shape, [5, 4, 3, 2, 12, 2]);
        let at = |index: [usize; 6]| {
            let flat = index.iter().zip(&shape).fold(0, |sum, (&i, &n)| sum * n as usize + i);
            data.as_real("vectors").unwrap()[flat]
        };
        // Of the site x = 1, y = 2, z = 3, t = 4, spin 2, colour 1.
        assert_eq!(at([4, 3, 2, 1, 7, 1]), (12 * grid.site([1, 2, 3, 4]) + 7) as f64 + 0.25);
    }
}
