//! Matrix product states as NPZ archives: an array for each block of each tensor, and what says where it stands.
//! `manifest.json` holds what makes the state of them again; every array has its checksum in the archive.

use std::path::Path;

use serde_json::{Value, json};

use super::archive::Archive;
use super::array::array;
use super::pack::pack;
use super::write_atomically;
use crate::error::{Error, Result};
use crate::number::Series;
use crate::output::Manifest;

const KIND: &str = "state";

/// The numbers of an array.
pub enum ArrayNumbers {
    /// That count or name something.
    Whole(Vec<i64>),
    /// Any others, by rows.
    Any(Series),
}

/// An array: its name, shape and numbers. Those named `.._block..` are the state's own, in their order.
pub type StateArray = (String, Vec<u64>, ArrayNumbers);

fn own(name: &str) -> bool {
    name.contains("_block")
}

/// Saves the arrays of a state with its header.
///
/// # Errors
/// A file that cannot be written.
pub fn save_state(
    arrays: &[StateArray],
    header: &Value,
    path: &Path,
    manifest: Option<&Manifest>,
) -> Result<()> {
    let mut about = json!({ "kind": KIND, "state": header });
    if let Some(manifest) = manifest {
        about["manifest"] = manifest.to_json();
    }
    let most = arrays.iter().map(|a| a.1.iter().product::<u64>()).max().unwrap_or(0) as usize;
    write_atomically(path, |out| {
        pack(out, most, &about, |archive| {
            arrays.iter().try_for_each(|(name, shape, numbers)| {
                archive.begin(npyz::npz::file_name_from_array_name(name))?;
                match numbers {
                    ArrayNumbers::Whole(all) => array(&mut *archive, shape, all.iter().copied()),
                    ArrayNumbers::Any(Series::Real(all)) => array(&mut *archive, shape, all.iter().copied()),
                    ArrayNumbers::Any(Series::Complex(all)) => {
                        array(&mut *archive, shape, all.iter().copied())
                    }
                }
            })
        })
    })
}

/// The header of a state and its numbers, in their order; nothing where the file holds none.
///
/// # Errors
/// An archive that is damaged.
pub fn load_state(path: &Path) -> Result<Option<(Value, Vec<Series>)>> {
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("npz")) {
        return Ok(None);
    }
    // The reader of tables reports files that are no archive.
    let Ok(mut archive) = Archive::open(path) else { return Ok(None) };
    if archive.about().get("kind").and_then(Value::as_str) != Some(KIND) {
        return Ok(None);
    }
    let header = archive.about().get("state").cloned().unwrap_or_default();
    let mut all = Vec::new();
    for name in archive.names().into_iter().filter(|name| own(name)) {
        let found =
            archive.array(&name).map_err(|e| e.context(format!("cannot read `{}`", path.display())))?;
        all.push(found.ok_or_else(|| Error::file(format!("there is no array `{name}`")))?.1);
    }
    Ok(Some((header, all)))
}
