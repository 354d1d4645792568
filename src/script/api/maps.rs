//! Maps in files: `save` and what `load` makes of them.

use rhai::plugin::*;
use rhai::{Array, Dynamic, ImmutableString, Map};

use super::table::{from_data, manifest};
use super::values::{to_dynamic, type_of};
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Series, Table};
use crate::output::files::{self, SavedValue};
use crate::script::rooms::Rooms;
use crate::script::{Fallible, session};

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(map_functions).into());
}

/// Maps and arrays within others that are saved.
const DEPTH: usize = 60;

/// A value for a file; `place` is where in the map it stands.
fn to_saved(value: &Dynamic, place: &str, depth: usize) -> Result<SavedValue> {
    if depth > DEPTH {
        return Err(Error::input(format!("maps and arrays within others, more than {DEPTH}"))
            .hint("a file of a map holds flatter ones"));
    }
    if value.is_unit() {
        return Ok(SavedValue::Nothing);
    }
    if let Ok(x) = value.as_bool() {
        return Ok(SavedValue::Truth(x));
    }
    if let Ok(x) = value.as_int() {
        return Ok(SavedValue::Whole(x));
    }
    if let Ok(x) = value.as_float() {
        return Ok(SavedValue::Number(x.into()));
    }
    if let Ok(x) = value.as_char() {
        return Ok(SavedValue::Letter(x));
    }
    if let Some(x) = value.read_lock::<ImmutableString>() {
        return Ok(SavedValue::Text(x.to_string()));
    }
    if let Some(z) = value.read_lock::<C64>() {
        return Ok(SavedValue::Number((*z).into()));
    }
    if let Some(x) = value.read_lock::<Series>() {
        return Ok(SavedValue::Data(x.clone().into()));
    }
    if let Some(x) = value.read_lock::<Matrix>() {
        return Ok(SavedValue::Data(x.clone().into()));
    }
    if let Some(x) = value.read_lock::<Table>() {
        return Ok(SavedValue::Data(x.clone().into()));
    }
    if let Some(array) = value.read_lock::<Array>() {
        let all = array.iter().enumerate().map(|(i, x)| to_saved(x, &format!("{place}[{i}]"), depth + 1));
        return all.collect::<Result<_>>().map(SavedValue::List);
    }
    if let Some(map) = value.read_lock::<Map>() {
        return entries(&map, place, depth).map(SavedValue::Map);
    }
    Err(Error::input(format!("`{}` is {}, which no file of a map holds", place.trim_start_matches('.'), type_of(value)))
        .hint("take it out of the map, `map.remove(name)`; what has a `save` of its own stands in a file of its own"))
}

fn entries(map: &Map, place: &str, depth: usize) -> Result<Vec<(String, SavedValue)>> {
    map.iter()
        .map(|(key, value)| Ok((key.to_string(), to_saved(value, &format!("{place}.{key}"), depth + 1)?)))
        .collect()
}

/// A value from a file.
fn from_saved(value: SavedValue) -> Dynamic {
    match value {
        SavedValue::Nothing => Dynamic::UNIT,
        SavedValue::Truth(x) => x.into(),
        SavedValue::Whole(x) => x.into(),
        SavedValue::Number(x) => to_dynamic(x),
        SavedValue::Letter(x) => x.into(),
        SavedValue::Text(x) => x.into(),
        SavedValue::List(list) => list.into_iter().map(from_saved).collect::<Array>().into(),
        SavedValue::Map(map) => to_map(map),
        SavedValue::Data(data) => from_data(data),
    }
}

/// The map that a file holds.
pub(super) fn to_map(map: Vec<(String, SavedValue)>) -> Dynamic {
    map.into_iter().map(|(key, value)| (key.into(), from_saved(value))).collect::<Map>().into()
}

#[export_module(root = "crate::script::native")]
mod map_functions {
    /// Saves a map as `.json`, `.npz` or `.h5` (HDF5); `load` gives it back. It may hold numbers, texts, true and
    /// false, Series, Matrices, Tables, arrays and maps. Other programs read the values under their keys: in `.json`
    /// below `values`; in `.npz` and `.h5` as arrays called by their path, `x["fit/gap"]`. Arrays of unlike things and
    /// `()` are in `manifest.json` there. What has no place in a file, such as an Operator or a function, is an error.
    ///
    /// # Example
    /// ```rhai
    /// let found = #{ U: 4.0, levels: series([-1.5, 0.5]), fit: #{ gap: 2.0, sweeps: 7, names: ["a", "b"] } };
    /// found.save("found.npz");
    /// let back = load("found.npz");
    /// assert(back.levels == found.levels && back.fit == found.fit && back.U == 4.0, "there and back");
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_map(map: &mut Map, file: &str) -> Fallible<()> {
        let session = session()?;
        let path = session.output_path(file);
        files::save_map(&entries(map, "", 0)?, &path, Some(&manifest()?))?;
        session.saved(&path);
        Ok(())
    }
}
