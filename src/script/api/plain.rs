//! Values as the JSON that other programs read, without marks of their types.

use rhai::plugin::*;
use rhai::{Array, Dynamic, ImmutableString, Map};
use serde_json::{Value, json};

use super::values::type_of;
use crate::error::{Error, Result};
use crate::number::{C64, Column, Matrix, Series, Table};
use crate::output::files;
use crate::script::Fallible;
use crate::script::rooms::Rooms;

pub(super) fn register(rooms: &mut Rooms) {
    rooms.register_global_module(exported_module!(plain_functions).into());
}

/// A map; `nan` stands for what is not a number.
///
/// # Errors
/// For what only this program knows, such as an Operator.
pub(super) fn of_map(map: &Map, nan: &Value) -> Result<serde_json::Map<String, Value>> {
    map.iter().map(|(key, value)| Ok((key.to_string(), of_value(value, nan)?))).collect()
}

fn of_value(value: &Dynamic, nan: &Value) -> Result<Value> {
    if value.is_unit() {
        return Ok(Value::Null);
    }
    if let Ok(x) = value.as_float() {
        return Ok(of_number(x, nan));
    }
    if let Ok(x) = value.as_int() {
        return Ok(json!(x));
    }
    if let Ok(x) = value.as_bool() {
        return Ok(json!(x));
    }
    if let Ok(x) = value.as_char() {
        return Ok(json!(x));
    }
    if let Some(x) = value.read_lock::<ImmutableString>() {
        return Ok(json!(x.as_str()));
    }
    if let Some(z) = value.read_lock::<C64>() {
        return Ok(of_complex(&z, nan));
    }
    if let Some(x) = value.read_lock::<Series>() {
        return Ok(of_series(&x, nan).into());
    }
    if let Some(m) = value.read_lock::<Matrix>() {
        return Ok(of_series(m.data(), nan).chunks(m.cols().max(1)).map(<[Value]>::to_vec).collect());
    }
    if let Some(table) = value.read_lock::<Table>() {
        let column = |data: &Column| match data {
            Column::Numbers(data) => of_series(data, nan).into(),
            Column::Texts(data) => json!(data),
        };
        let columns = table.columns().map(|(name, data)| (name.to_string(), column(data)));
        return Ok(Value::Object(columns.collect()));
    }
    if let Some(array) = value.read_lock::<Array>() {
        return array.iter().map(|value| of_value(value, nan)).collect();
    }
    if let Some(map) = value.read_lock::<Map>() {
        return of_map(&map, nan).map(Value::Object);
    }
    Err(Error::input(format!("{} has no form in JSON", type_of(value)))
        .hint("take it out of the map: `map.remove(name)`"))
}

fn of_number(x: f64, nan: &Value) -> Value {
    if x.is_nan() { nan.clone() } else { files::json_number(x) }
}

fn of_complex(z: &C64, nan: &Value) -> Value {
    json!([of_number(z.re, nan), of_number(z.im, nan)])
}

fn of_series(series: &Series, nan: &Value) -> Vec<Value> {
    match series {
        Series::Real(x) => x.iter().map(|x| of_number(*x, nan)).collect(),
        Series::Complex(x) => x.iter().map(|z| of_complex(z, nan)).collect(),
    }
}

#[export_module(root = "crate::script::native")]
mod plain_functions {
    /// A map as JSON for other programs: a Series is an array, a Matrix an array of rows, a Table an object of its
    /// columns, a complex number `[re, im]`. NaN is `null`, an infinite number the text "inf" or "-inf". Functions and
    /// handles, such as an Operator, are errors.
    ///
    /// # Example
    /// ```rhai
    /// let found = #{ energy: -1.5, levels: series([1.0, 2.0]), t: table(#{ x: [1] }) };
    /// assert(found.to_json() == "{\"energy\":-1.5,\"levels\":[1.0,2.0],\"t\":{\"x\":[1.0]}}", "as text");
    /// assert(parse_json(found.to_json()).levels[1] == 2.0, "and back");
    /// ```
    #[rhai_fn(global, pure, return_raw)]
    pub fn to_json(map: &mut Map) -> Fallible<String> {
        Ok(Value::Object(of_map(map, &Value::Null)?).to_string())
    }
}
