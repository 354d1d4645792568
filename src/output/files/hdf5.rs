//! HDF5: a dataset for each column (or `series`, or `matrix`), complex numbers as h5py has them, and an attribute of
//! the root that says what they are, with a check of all numbers. Files of others are read where they hold numbers and
//! texts, groups too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hdf5_pure::{AttrValue, CompoundTypeBuilder, DType, Dataset, Datatype, File, FileBuilder, Group};
use serde_json::{Map, Value};

use super::named::{NamedArray, arranged, split};
use super::{Contents, FileData, check};
use crate::error::{Error, Result};
use crate::number::{C64, Column, Series, memory};
use crate::output::Manifest;
use crate::task;

/// The dataset that says what the others are: its text may be longer than an attribute.
const ABOUT: &str = "manifest.json";
/// The attribute of that dataset with the check.
const CHECK: &str = "crc32";

/// Groups within groups that are read.
const DEPTH: usize = 32;

fn broken(e: impl std::fmt::Display) -> Error {
    Error::file(format!("not a whole HDF5 file: {e}")).hint(
        "the file may be truncated, or laid out as only the HDF5 library reads it: soft links, several unlimited \
         directions, \
         datasets without data; `.npz` is a way around",
    )
}

/// The names of the parts of complex numbers: those of h5py, and of MATLAB.
const PARTS: [[&str; 2]; 2] = [["r", "i"], ["real", "imag"]];

fn complex(names: [&str; 2], single: bool) -> Result<Datatype> {
    let add =
        |parts: CompoundTypeBuilder, name| if single { parts.f32_field(name) } else { parts.f64_field(name) };
    let built = names.into_iter().fold(CompoundTypeBuilder::new(), add).build();
    built.map_err(|e| Error::internal(format!("the type of complex numbers: {e}")))
}

/// The bytes of numbers as they stand in the file.
fn bytes(data: &Series) -> Vec<u8> {
    match data {
        Series::Real(data) => data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Series::Complex(data) => {
            data.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()].concat()).collect()
        }
    }
}

/// The check of what a file holds, which does not depend on how it is laid out.
fn sum(about: &str, arrays: &[NamedArray]) -> String {
    let mut all = crc32fast::Hasher::new();
    all.update(about.as_bytes());
    for array in arrays {
        all.update(array.name.as_bytes());
        array.shape.iter().for_each(|n| all.update(&n.to_le_bytes()));
        match &array.data {
            Column::Numbers(data) => all.update(&bytes(data)),
            Column::Texts(texts) => texts.iter().for_each(|text| {
                all.update(&(text.len() as u64).to_le_bytes());
                all.update(text.as_bytes());
            }),
        }
    }
    format!("{:08x}", all.finalize())
}

/// Writes data as datasets.
///
/// # Errors
/// Columns whose names mean groups, and what writing files takes.
pub(super) fn save(data: &FileData, path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let (about, arrays) = split(data, manifest);
    let size: u128 = arrays.iter().map(|array| 16 * array.data.len() as u128).sum();
    memory::ensure(2 * size, "the datasets of an HDF5 file")?;
    let about = Value::Object(about).to_string();
    let mut file = FileBuilder::new();
    for NamedArray { name, shape, data } in &arrays {
        if name.is_empty() || name.contains('/') || name == "." || name == ABOUT {
            return Err(Error::input(format!("a dataset cannot be called `{name}`"))
                .hint("rename the column, or save as `.npz`"));
        }
        let set = file.create_dataset(name);
        match data {
            Column::Numbers(Series::Real(data)) => set.with_f64_data(data),
            Column::Numbers(numbers) => {
                set.with_compound_data(complex(PARTS[0], false)?, bytes(numbers), numbers.len() as u64)
            }
            Column::Texts(texts) => {
                set.with_vlen_strings(&texts.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        set.with_shape(shape);
    }
    file.create_dataset(ABOUT)
        .with_vlen_strings(&[&about])
        .set_attr(CHECK, AttrValue::AsciiString(sum(&about, &arrays)));
    let mut file = Some(file);
    super::write_atomically(path, |out| {
        let Some(file) = file.take() else { return Ok(()) };
        file.finish_to(&mut *out).map_err(std::io::Error::other)?;
        out.flush()
    })
}

/// Reads a file: what [`save`] wrote, or the datasets of others, by their paths.
///
/// # Errors
/// A file that is damaged, or holds what are neither numbers nor texts.
pub(super) fn load(path: &Path) -> Result<Contents> {
    let content = memory::read(path).map_err(|e| Error::of_io(&e))?;
    // Files damaged on purpose may reach corners of the reader that were never tested.
    catch_unwind(AssertUnwindSafe(|| read(content))).unwrap_or_else(|panic| {
        match memory::panic_of_memory(&*panic) {
            Some(error) => Err(error),
            None => Err(broken("what its headers say cannot be")),
        }
    })
}

fn read(content: Vec<u8>) -> Result<Contents> {
    let file = File::from_bytes(content).map_err(broken)?;
    let mut names = Vec::new();
    walk(&file.root(), "", 0, &mut names)?;
    let own = names.iter().position(|name| name == ABOUT).map(|at| names.remove(at));
    let mut about = Map::new();
    let mut said = None;
    if let Some(name) = own {
        let set = file.dataset(&name).map_err(broken)?;
        let text = set.read_string().map_err(broken)?.into_iter().next().unwrap_or_default();
        if let Some(AttrValue::AsciiString(sum)) = set.attrs().map_err(broken)?.remove(CHECK) {
            said = Some((sum, text.clone()));
        }
        about = serde_json::from_str(&text).map_err(|e| Error::file(format!("its manifest: {e}")))?;
    }
    if let Some(order) = about.get("names").and_then(Value::as_array) {
        let wanted: Vec<String> = order.iter().filter_map(|name| name.as_str().map(str::to_string)).collect();
        if let Some(missing) = wanted.iter().find(|name| !names.contains(name)) {
            return Err(Error::file(format!("its manifest names an array `{missing}`, which is not there")));
        }
        names = wanted;
    }
    let mut arrays = Vec::new();
    for name in names {
        task::poll()?;
        let set = file.dataset(&name).map_err(broken)?;
        arrays.push(array(&set, name.clone()).map_err(|e| e.context(format_args!("dataset `{name}`")))?);
    }
    if let Some((said, text)) = said {
        let found = sum(&text, &arrays);
        if found != said {
            return Err(check::wrong(&found, &said));
        }
    }
    arranged(arrays, &about)
}

/// The paths of all datasets.
fn walk(group: &Group, path: &str, depth: usize, names: &mut Vec<String>) -> Result<()> {
    if depth > DEPTH {
        return Err(Error::file(format!("groups within groups, more than {DEPTH}")));
    }
    task::poll()?;
    // By name, as the HDF5 library lists them; files of newer layouts keep them by a hash.
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    names.extend(sorted(group.datasets().map_err(broken)?).into_iter().map(|name| format!("{path}{name}")));
    for name in sorted(group.groups().map_err(broken)?) {
        let inner = group.group(&name).map_err(broken)?;
        walk(&inner, &format!("{path}{name}/"), depth + 1, names)?;
    }
    Ok(())
}

fn array(set: &Dataset, name: String) -> Result<NamedArray> {
    let shape = set.shape().map_err(broken)?;
    let count = shape
        .iter()
        .try_fold(1u64, |n, &x| n.checked_mul(x))
        .ok_or_else(|| broken("sizes beyond all files"))?;
    memory::ensure(48 * u128::from(count), "a dataset")?;
    let data = match set.dtype().map_err(broken)? {
        DType::F32
        | DType::F64
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => Series::Real(set.read_f64().map_err(broken)?).into(),
        DType::String | DType::VariableLengthString => Column::Texts(set.read_string().map_err(broken)?),
        DType::Compound(_) => Series::Complex(pairs(set)?).into(),
        other => {
            return Err(Error::file(format!("its numbers are of the type {other}"))
                .hint("numbers, complex numbers and texts can be read"));
        }
    };
    if data.len() as u64 != count {
        return Err(broken(format!("{} elements for {count}", data.len())));
    }
    Ok(NamedArray { name, shape, data })
}

fn pairs(set: &Dataset) -> Result<Vec<C64>> {
    let found = set.datatype().map_err(broken)?;
    for names in PARTS {
        for single in [false, true] {
            if complex(names, single)? != found {
                continue;
            }
            let raw = set.read_raw().map_err(broken)?;
            let numbers: Vec<f64> = if single {
                raw.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()).collect()
            } else {
                raw.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
            };
            return Ok(numbers.as_chunks::<2>().0.iter().map(|[re, im]| C64::new(*re, *im)).collect());
        }
    }
    Err(Error::file("records with several fields")
        .hint("records of two numbers `r` and `i`, or `real` and `imag`, are complex numbers"))
}
