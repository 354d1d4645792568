//! What goes between a session's thread and Python's: plain data, and handles for what stays in the session.

use std::collections::BTreeMap;

use rhai::{Array, Dynamic, FnPtr, INT, Map};
use umklapp::error::{Error, Result};
use umklapp::number::{C64, Matrix, Series, Table};
use umklapp::script::Engine;

/// Arrays and maps that lie deeper in one another stay out: Python's functions for them call themselves.
const DEEPEST: usize = 200;

/// A value on its way.
#[derive(Clone)]
pub enum Value {
    Nothing,
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(C64),
    Text(String),
    Series(Series),
    Matrix(Matrix),
    Table(Table),
    Array(Vec<Value>),
    Map(Vec<(String, Value)>),
    /// From, to (excluded).
    Range(i64, i64),
    /// What the session keeps, by number.
    Kept {
        number: u64,
        kind: String,
    },
}

/// The values that Python holds and the session keeps.
#[derive(Default)]
pub struct Shelf {
    kept: BTreeMap<u64, Dynamic>,
    last: u64,
}

impl Shelf {
    pub fn get(&self, number: u64) -> Result<Dynamic> {
        self.kept
            .get(&number)
            .cloned()
            .ok_or_else(|| Error::internal("a value that the session does not keep"))
    }

    pub fn replace(&mut self, number: u64, value: Dynamic) {
        self.kept.insert(number, value);
    }

    pub fn release(&mut self, number: u64) {
        self.kept.remove(&number);
    }

    /// A value of the session as it is handed over.
    pub fn out(&mut self, engine: &Engine, value: Dynamic) -> Result<Value> {
        self.out_at(engine, value.flatten(), 0)
    }

    fn out_at(&mut self, engine: &Engine, value: Dynamic, depth: usize) -> Result<Value> {
        if depth > DEEPEST {
            return Err(Error::input(format!("arrays or maps lie more than {DEEPEST} deep in one another"))
                .hint("hand the inner ones over one by one"));
        }
        if value.is_unit() {
            return Ok(Value::Nothing);
        }
        if value.is_array() {
            let array: Array = value.cast();
            let each = array.into_iter().map(|x| self.out_at(engine, x.flatten(), depth + 1));
            return each.collect::<Result<_>>().map(Value::Array);
        }
        if value.is_map() {
            let map: Map = value.cast();
            let each = map
                .into_iter()
                .map(|(key, x)| Ok((key.to_string(), self.out_at(engine, x.flatten(), depth + 1)?)));
            return each.collect::<Result<_>>().map(Value::Map);
        }
        /// The value, if it is of this type; else it comes back.
        macro_rules! known {
            ($value:ident, $($t:ty => $make:expr),* $(,)?) => {
                $(let $value = match $value.try_cast_result::<$t>() {
                    Ok(x) => return Ok($make(x)),
                    Err(other) => other,
                };)*
            };
        }
        known!(value,
            bool => Value::Bool,
            i64 => Value::Int,
            f64 => Value::Float,
            C64 => Value::Complex,
            char => |c: char| Value::Text(c.to_string()),
            rhai::ImmutableString => |s: rhai::ImmutableString| Value::Text(s.into_owned()),
            Series => Value::Series,
            Matrix => Value::Matrix,
            Table => Value::Table,
            std::ops::Range<INT> => |r: std::ops::Range<INT>| Value::Range(r.start, r.end),
            std::ops::RangeInclusive<INT> =>
                |r: std::ops::RangeInclusive<INT>| Value::Range(*r.start(), r.end().saturating_add(1)),
        );
        let kind = if value.is::<FnPtr>() { "function".to_string() } else { engine.type_of(&value) };
        self.last += 1;
        self.kept.insert(self.last, value);
        Ok(Value::Kept { number: self.last, kind })
    }

    /// A value from Python as the session has it.
    pub fn received(&self, value: Value) -> Result<Dynamic> {
        Ok(match value {
            Value::Nothing => Dynamic::UNIT,
            Value::Bool(x) => x.into(),
            Value::Int(x) => x.into(),
            Value::Float(x) => x.into(),
            Value::Complex(x) => Dynamic::from(x),
            Value::Text(x) => x.into(),
            Value::Series(x) => Dynamic::from(x),
            Value::Matrix(x) => Dynamic::from(x),
            Value::Table(x) => Dynamic::from(x),
            Value::Array(items) => {
                items.into_iter().map(|x| self.received(x)).collect::<Result<Array>>()?.into()
            }
            Value::Map(items) => {
                let each = items.into_iter().map(|(key, x)| Ok((key.into(), self.received(x)?)));
                each.collect::<Result<Map>>()?.into()
            }
            Value::Range(from, to) => Dynamic::from(from..to),
            Value::Kept { number, .. } => self.get(number)?,
        })
    }
}
