//! Values of scripts as JSON: numbers, texts, arrays and maps of them, and data as their files have them.

use rhai::plugin::*;
use rhai::{Array, Dynamic, ImmutableString, Map};
use serde_json::{Value, json};

use super::values::type_of;
use crate::error::{Error, Result};
use crate::number::{C64, Matrix, Series, Table};
use crate::output::files::{self, FileData};
use crate::script::Fallible;
use crate::script::rooms::Rooms;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(json_functions).into());
}

/// A map, where `number` writes floats.
///
/// # Errors
/// For values that have no form in JSON, such as functions and operators.
pub(super) fn of_map(map: &Map, number: fn(f64) -> Value) -> Result<serde_json::Map<String, Value>> {
    map.iter().map(|(key, value)| Ok((key.to_string(), of_value(value, number)?))).collect()
}

fn of_value(value: &Dynamic, number: fn(f64) -> Value) -> Result<Value> {
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(x) = value.as_float() {
        return Ok(number(x));
    }
    if let Ok(x) = value.as_int() {
        return Ok(json!(x));
    }
    if let Ok(x) = value.as_bool() {
        return Ok(json!(x));
    }
    if let Ok(x) = value.as_char() {
        return Ok(json!(x.to_string()));
    }
    if let Some(x) = value.read_lock::<ImmutableString>() {
        return Ok(json!(x.as_str()));
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(|x| of_value(x, number)).collect::<Result<Vec<_>>>().map(Value::Array);
    }
    if let Some(map) = value.read_lock::<Map>() {
        return of_map(&map, number).map(Value::Object);
    }
    let numbers = |x: &[f64]| x.iter().map(|x| number(*x)).collect::<Value>();
    let parts = |z: &[C64]| {
        let part = |of: fn(&C64) -> f64| z.iter().map(|z| number(of(z))).collect::<Value>();
        json!({ "re": part(|z| z.re), "im": part(|z| z.im) })
    };
    if let Some(z) = value.read_lock::<C64>() {
        return Ok(json!({ "re": number(z.re), "im": number(z.im) }));
    }
    if let Some(series) = value.read_lock::<Series>() {
        return Ok(match &*series {
            Series::Real(x) => numbers(x),
            Series::Complex(z) => parts(z),
        });
    }
    if let Some(matrix) = value.read_lock::<Matrix>() {
        return Ok(FileData::from(matrix.clone()).to_json());
    }
    if let Some(table) = value.read_lock::<Table>() {
        return Ok(FileData::from(table.clone()).to_json());
    }
    Err(Error::input(format!("a value of type {} has no form in JSON", type_of(value)))
        .hint("JSON holds numbers, texts, arrays and maps, and also Series, Table and Matrix"))
}

#[export_module(root = "crate::script::native")]
mod json_functions {
    /// The map as a text of JSON. A Series is an array, a complex number or Series an object of `re` and `im`, a Table
    /// or Matrix what `save` writes to a file `.json`. NaN is `null`, infinite numbers are "inf" and "-inf".
    ///
    /// # Example
    /// ```rhai
    /// assert(#{ a: series([1, 2]), z: 1.0 - I }.to_json() == `{"a":[1.0,2.0],"z":{"im":-1.0,"re":1.0}}`, "as text");
    /// ```
    #[rhai_fn(global, name = "to_json", pure, return_raw)]
    pub fn map_to_json(map: &mut Map) -> Fallible<String> {
        Ok(Value::Object(of_map(map, files::json_number)?).to_string())
    }
}
