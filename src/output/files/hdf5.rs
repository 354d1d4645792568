//! HDF5: a dataset for each column (or `series`, or `matrix`), complex numbers as h5py has them, and an attribute of
//! the root that says what they are, with a check of all numbers. Files of others are read where they hold numbers and
//! texts, groups too.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use hdf5_pure::{
    AttrValue, CompoundMember, CompoundTypeBuilder, Dataset, DatasetBuilder, Datatype, DatatypeByteOrder,
    EnumTypeBuilder, File, FileBuilder, Group, GroupBuilder, Layout,
};
use serde_json::{Map, Value};

use super::maps::{SavedValue, joined_map, split_map};
use super::named::{ArrayKind, NamedArray, arranged, split};
use super::{Contents, FileData, check};
use crate::error::{Error, Result};
use crate::number::{C64, Column, Series, memory};
use crate::output::Manifest;
use crate::task;

/// The dataset that says what the others are: its text may be longer than an attribute.
const ABOUT: &str = "manifest.json";
/// The attribute of that dataset with the check.
const CHECK: &str = "crc32";

/// Groups within groups that are read: more than those of maps, which are written.
const DEPTH: usize = 64;

fn broken(e: impl std::fmt::Display) -> Error {
    Error::file(format!("not a whole HDF5 file: {e}")).hint(
        "the file may be truncated, or laid out as only the HDF5 library reads it: soft links, several unlimited \
         directions, \
         datasets without data; `.npz` is a way around",
    )
}

/// The names of the parts of complex numbers: those of h5py, and of MATLAB.
const PARTS: [[&str; 2]; 2] = [["r", "i"], ["real", "imag"]];

fn complex() -> Result<Datatype> {
    let built = PARTS[0].into_iter().fold(CompoundTypeBuilder::new(), CompoundTypeBuilder::f64_field).build();
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
    let (about, arrays) = split(data);
    for NamedArray { name, .. } in &arrays {
        if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ABOUT {
            let shown = name.replace('\0', "\\0");
            return Err(Error::input(format!("a dataset cannot be called `{shown}`"))
                .hint("rename the column, or save as `.json`"));
        }
    }
    write(about, &arrays, path, manifest)
}

/// Writes a map: maps in it are groups.
pub(super) fn save_map(map: &[(String, SavedValue)], path: &Path, manifest: Option<&Manifest>) -> Result<()> {
    let (about, arrays) = split_map(map);
    write(about, &arrays, path, manifest)
}

fn write(
    mut about: Map<String, Value>,
    arrays: &[NamedArray],
    path: &Path,
    manifest: Option<&Manifest>,
) -> Result<()> {
    about.extend(manifest.map(|manifest| ("manifest".to_string(), manifest.to_json())));
    let size: u128 = arrays.iter().map(|array| 16 * array.data.len() as u128).sum();
    memory::ensure(2 * size, "the datasets of an HDF5 file")?;
    let about = Value::Object(about).to_string();
    let mut file = FileBuilder::new();
    for (name, members) in by_group(arrays.iter().map(|array| (array.name.as_str(), array))) {
        match members {
            GroupMembers::Array(array) => fill(file.create_dataset(name), array)?,
            GroupMembers::Inner(inner) => {
                let group = filled(file.create_group(name), inner)?;
                file.add_group(group.finish());
            }
        }
    }
    file.create_dataset(ABOUT)
        .with_vlen_strings(&[&about])
        .set_attr(CHECK, AttrValue::AsciiString(sum(&about, arrays)));
    let mut file = Some(file);
    super::write_atomically(path, |out| {
        let Some(file) = file.take() else { return Ok(()) };
        file.finish_to(&mut *out).map_err(std::io::Error::other)?;
        out.flush()
    })
}

/// What stands in a group under a name: an array, or a group of those whose paths begin so.
enum GroupMembers<'a> {
    Array(&'a NamedArray),
    Inner(Vec<(&'a str, &'a NamedArray)>),
}

fn by_group<'a>(
    arrays: impl IntoIterator<Item = (&'a str, &'a NamedArray)>,
) -> impl Iterator<Item = (&'a str, GroupMembers<'a>)> {
    let mut found: HashMap<&str, usize> = HashMap::new();
    let mut members: Vec<(&str, GroupMembers)> = Vec::new();
    for (path, array) in arrays {
        match path.split_once('/') {
            None => members.push((path, GroupMembers::Array(array))),
            Some((name, rest)) => match found.get(name).map(|&at| &mut members[at].1) {
                Some(GroupMembers::Inner(inner)) => inner.push((rest, array)),
                _ => {
                    found.insert(name, members.len());
                    members.push((name, GroupMembers::Inner(vec![(rest, array)])));
                }
            },
        }
    }
    members.into_iter()
}

fn filled(mut group: GroupBuilder, arrays: Vec<(&str, &NamedArray)>) -> Result<GroupBuilder> {
    for (name, members) in by_group(arrays) {
        match members {
            GroupMembers::Array(array) => fill(group.create_dataset(name), array)?,
            GroupMembers::Inner(inner) => {
                let inner = filled(group.create_group(name), inner)?;
                group.add_group(inner.finish());
            }
        }
    }
    Ok(group)
}

/// Gives a dataset its data.
fn fill(set: &mut DatasetBuilder, array: &NamedArray) -> Result<()> {
    match (&array.data, array.kind) {
        (Column::Numbers(Series::Real(data)), ArrayKind::Ints) => {
            set.with_i64_data(&data.iter().map(|&x| x as i64).collect::<Vec<_>>())
        }
        (Column::Numbers(Series::Real(data)), ArrayKind::Truths) => {
            // As h5py has truth values.
            let names = EnumTypeBuilder::u8_based().u8_value("FALSE", 0).u8_value("TRUE", 1);
            let kind =
                names.build().map_err(|e| Error::internal(format!("the type of truth values: {e}")))?;
            set.with_enum_u8_data(kind, &data.iter().map(|&x| u8::from(x != 0.0)).collect::<Vec<_>>())
        }
        (Column::Numbers(Series::Real(data)), _) => set.with_f64_data(data),
        (Column::Numbers(numbers), _) => {
            set.with_compound_data(complex()?, bytes(numbers), numbers.len() as u64)
        }
        (Column::Texts(texts), _) => {
            set.with_vlen_strings(&texts.iter().map(String::as_str).collect::<Vec<_>>())
        }
    };
    set.with_shape(&array.shape);
    Ok(())
}

/// Reads a file: what [`save`] wrote, or the datasets of others, by their paths. Others' datasets that are neither
/// numbers nor texts are left out, which the notes say.
///
/// # Errors
/// A file that is damaged, or without numbers and texts.
pub(super) fn load(path: &Path, notes: &mut Vec<String>) -> Result<Contents> {
    let content = memory::read(path).map_err(|e| Error::of_io(&e))?;
    // Files damaged on purpose may reach corners of the reader that were never tested.
    catch_unwind(AssertUnwindSafe(|| read(content, notes))).unwrap_or_else(|panic| {
        match memory::panic_of_memory(&*panic) {
            Some(error) => Err(error),
            None => Err(broken("what its headers say cannot be")),
        }
    })
}

fn read(content: Vec<u8>, notes: &mut Vec<String>) -> Result<Contents> {
    let file = File::from_bytes(content).map_err(broken)?;
    let mut found = Vec::new();
    walk(&file.root(), "", &mut Vec::new(), &mut found, notes)?;
    let own = found.iter().position(|(name, _)| name == ABOUT).map(|at| found.remove(at));
    let mut about = Map::new();
    let mut said = None;
    if let Some((_, set)) = own {
        let text = set.read_string().map_err(broken)?.into_iter().next().unwrap_or_default();
        if let Some(AttrValue::AsciiString(sum)) = set.attrs().map_err(broken)?.remove(CHECK) {
            said = Some((sum, text.clone()));
        }
        about = serde_json::from_str(&text).map_err(|e| Error::file(format!("its manifest: {e}")))?;
    }
    if let Some(order) = about.get("names").and_then(Value::as_array) {
        let mut known: HashMap<String, Dataset> = found.into_iter().collect();
        let wanted = order.iter().filter_map(Value::as_str);
        let ordered = wanted.map(|name| {
            let set = known.remove(name).ok_or_else(|| {
                Error::file(format!("its manifest names an array `{name}`, which is not there"))
            })?;
            Ok((name.to_string(), set))
        });
        found = ordered.collect::<Result<_>>()?;
    }
    let ours = about.contains_key("kind");
    let (mut arrays, mut left, mut first) = (Vec::new(), Vec::new(), None);
    for (name, set) in found {
        task::poll()?;
        let named = |e: Error| e.context(format_args!("dataset `{name}`"));
        match array(&set, name.clone()).map_err(named)? {
            ReadDataset::Array(read) => arrays.push(read),
            ReadDataset::Other(e) if ours => return Err(named(e)),
            ReadDataset::Other(e) => {
                left.push(format!("`{name}`"));
                first = first.or(Some(named(e)));
            }
        }
    }
    if let Some(e) = first {
        if arrays.is_empty() {
            return Err(e);
        }
        notes.push(format!("left out, neither numbers nor texts: {}", left.join(", ")));
    }
    if let Some((said, text)) = said {
        let found = sum(&text, &arrays);
        if found != said {
            return Err(check::wrong(&found, &said));
        }
    }
    match about.get("kind").and_then(Value::as_str) {
        Some("map") => joined_map(arrays, &about).map(Contents::Map),
        _ => arranged(arrays, &about),
    }
}

/// What a group holds, to know it again: links may lead back into a group around.
struct SeenGroup {
    datasets: Vec<(String, Dataset)>,
    groups: Vec<(String, Group)>,
}

impl SeenGroup {
    fn of(group: &Group) -> Result<SeenGroup> {
        // By name, as the HDF5 library lists them; files of newer layouts keep them by a hash.
        let mut datasets: Vec<_> = group.iter_datasets().map_err(broken)?.collect();
        let mut groups: Vec<_> = group.iter_groups().map_err(broken)?.collect();
        datasets.sort_by(|a, b| a.0.cmp(&b.0));
        groups.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(SeenGroup { datasets, groups })
    }

    /// Whether both hold the same datasets, by their places in the file; the library does not tell places of groups.
    /// Of groups without datasets, the groups in them tell.
    fn is(&self, other: &SeenGroup, depth: usize) -> Result<bool> {
        let names = |x: &SeenGroup, y: &SeenGroup| {
            x.datasets.iter().map(|(name, _)| name).eq(y.datasets.iter().map(|(name, _)| name))
                && x.groups.iter().map(|(name, _)| name).eq(y.groups.iter().map(|(name, _)| name))
        };
        if !names(self, other) {
            return Ok(false);
        }
        let mut placed = false;
        for ((_, a), (_, b)) in self.datasets.iter().zip(&other.datasets) {
            match (place(a), place(b)) {
                (Some(a), Some(b)) if a == b => placed = true,
                (None, None) => {}
                _ => return Ok(false),
            }
        }
        if placed || depth == 0 {
            return Ok(placed);
        }
        for ((_, a), (_, b)) in self.groups.iter().zip(&other.groups) {
            if SeenGroup::of(a)?.is(&SeenGroup::of(b)?, depth - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The datasets in a group and in those below, by their paths. `around` are the groups that this one lies in.
fn walk(
    group: &Group,
    path: &str,
    around: &mut Vec<SeenGroup>,
    found: &mut Vec<(String, Dataset)>,
    notes: &mut Vec<String>,
) -> Result<()> {
    if around.len() > DEPTH {
        return Err(Error::file(format!("groups within groups, more than {DEPTH}")));
    }
    task::poll()?;
    let mut here = SeenGroup::of(group)?;
    for other in around.iter() {
        if here.is(other, 2)? {
            notes.push(format!("the group `{}` is one of those that it lies in", path.trim_end_matches('/')));
            return Ok(());
        }
    }
    found.extend(here.datasets.iter().map(|(name, set)| (format!("{path}{name}"), set.clone())));
    let groups = std::mem::take(&mut here.groups);
    here.groups = groups.clone();
    around.push(here);
    for (name, inner) in groups {
        walk(&inner, &format!("{path}{name}/"), around, found, notes)?;
    }
    around.pop();
    Ok(())
}

/// Where the numbers of a dataset lie in the file; nothing where it has none.
fn place(set: &Dataset) -> Option<u64> {
    match set.layout().ok()? {
        Layout::Contiguous { address, .. } => address,
        Layout::Chunked { .. } => set.chunks().ok()?.first().map(|chunk| chunk.address),
        _ => None,
    }
}

/// What a dataset holds: an array, or things of another type.
enum ReadDataset {
    Array(NamedArray),
    Other(Error),
}

fn array(set: &Dataset, name: String) -> Result<ReadDataset> {
    let shape = set.shape().map_err(broken)?;
    let count = shape
        .iter()
        .try_fold(1u64, |n, &x| n.checked_mul(x))
        .ok_or_else(|| broken("sizes beyond all files"))?;
    memory::ensure(48 * u128::from(count), "a dataset")?;
    let other = |what: String| {
        let error = Error::file(what).hint("numbers, complex numbers, truth values and texts can be read");
        Ok(ReadDataset::Other(error))
    };
    let kind = set.datatype().map_err(broken)?;
    let data = match &kind {
        Datatype::Compound { members, .. } => match pairs(members) {
            Some((re, im)) => {
                let raw = set.read_raw().map_err(broken)?;
                let size = kind.type_size() as usize;
                let number = |x: &[u8]| Some(C64::new(re.number(x)?, im.number(x)?));
                let read: Option<Vec<C64>> = raw.chunks_exact(size).map(number).collect();
                Series::Complex(read.ok_or_else(|| broken("records that are cut"))?).into()
            }
            None => return other("records with several fields".into()),
        },
        Datatype::FloatingPoint { size: 2, .. } => {
            let Some(half) = FloatPlace::of(&kind, 0) else {
                return other("numbers of a short type".into());
            };
            let raw = set.read_raw().map_err(broken)?;
            let read: Option<Vec<f64>> = raw.chunks_exact(2).map(|x| half.number(x)).collect();
            Series::Real(read.unwrap_or_default()).into()
        }
        // Truth values are an enumeration of two whole numbers.
        Datatype::FixedPoint { size: 1..=8, .. }
        | Datatype::FloatingPoint { size: 1..=8, .. }
        | Datatype::Enumeration { size: 1..=8, .. } => Series::Real(set.read_f64().map_err(broken)?).into(),
        Datatype::String { .. } | Datatype::VariableLength { is_string: true, .. } => {
            Column::Texts(set.read_string().map_err(broken)?)
        }
        _ => return other(format!("its numbers are of the type {}", set.dtype().map_err(broken)?)),
    };
    // A dataset of no shape at all, as h5py's `Empty`, looks like a number.
    if data.is_empty() && shape.is_empty() {
        return other("a dataset without a number".into());
    }
    if data.len() as u64 != count {
        return Err(broken(format!("{} elements for {count}", data.len())));
    }
    Ok(ReadDataset::Array(NamedArray { name, shape, data, kind: ArrayKind::Floats }))
}

/// A float of IEEE 754 in the bytes of a record.
struct FloatPlace {
    from: usize,
    size: usize,
    big: bool,
}

impl FloatPlace {
    fn of(kind: &Datatype, from: u64) -> Option<FloatPlace> {
        let Datatype::FloatingPoint { size, byte_order, layout } = kind else { return None };
        let bits = match size {
            2 => (5, 10),
            4 => (8, 23),
            8 => (11, 52),
            _ => return None,
        };
        let big = match byte_order {
            DatatypeByteOrder::LittleEndian => false,
            DatatypeByteOrder::BigEndian => true,
            _ => return None,
        };
        let usual = (layout.exponent_size, layout.mantissa_size) == bits;
        usual.then_some(FloatPlace { from: usize::try_from(from).ok()?, size: *size as usize, big })
    }

    fn number(&self, record: &[u8]) -> Option<f64> {
        let bytes = record.get(self.from..self.from + self.size)?;
        let from_high = |bits: u64, byte: &u8| bits << 8 | u64::from(*byte);
        let bits = match self.big {
            true => bytes.iter().fold(0, from_high),
            false => bytes.iter().rev().fold(0, from_high),
        };
        Some(match self.size {
            2 => half(bits as u16),
            4 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        })
    }
}

/// A number of half precision (IEEE 754, binary16).
fn half(bits: u16) -> f64 {
    let (sign, power, digits) = (bits >> 15, i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match power {
        0 => digits * 2f64.powi(-24),
        31 if digits == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + digits) * 2f64.powi(power - 25),
    };
    if sign == 1 { -size } else { size }
}

/// Where records have the parts of complex numbers, if that is what they are.
fn pairs(members: &[CompoundMember]) -> Option<(FloatPlace, FloatPlace)> {
    let [re, im] = members else { return None };
    let known = PARTS.iter().any(|names| names[0] == re.name && names[1] == im.name);
    let place = |part: &CompoundMember| FloatPlace::of(&part.datatype, part.byte_offset);
    if known { Some((place(re)?, place(im)?)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_half_precision() {
        let known = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333251953125),
            (0x7bff, 65504.0),
            (0x0001, 5.960464477539063e-8),
            (0x0400, 6.103515625e-5),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ];
        for (bits, x) in known {
            assert_eq!(half(bits), x, "{bits:#x}");
        }
        assert!(half(0x7e00).is_nan());
    }
}
