//! Options as functions read them that are not converted to [`super::options`] yet.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rhai::{Dynamic, FnPtr, Map, NativeCallContext};

use super::declared::unknown_key;
use super::options::hash;
use super::{At, Failure, session};
use crate::error::{Error, Result};
use crate::task::Task;

/// Reads the options of one call. Every key is asked for once; `finish` refuses the rest.
pub struct Options<'a> {
    ctx: &'a NativeCallContext<'a>,
    map: Map,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Options<'a> {
    /// The options of this call.
    pub fn new(ctx: &'a NativeCallContext<'a>, map: Map) -> Self {
        Options { ctx, map, asked: RefCell::default() }
    }

    /// No options given.
    pub fn none(ctx: &'a NativeCallContext<'a>) -> Self {
        Self::new(ctx, Map::new())
    }

    /// The value under a key, whatever its type.
    pub fn value(&self, key: &'static str) -> Option<Dynamic> {
        self.asked.borrow_mut().insert(key);
        self.map.get(key).map(Dynamic::flatten_clone)
    }

    /// The error for a value of a type that the option does not take.
    pub fn wrong(&self, key: &str, wanted: &str, got: &Dynamic) -> Error {
        let got = self.ctx.engine().map_type_name(got.type_name());
        Error::input(format!("option `{key}` takes {wanted}, not a value of type {got}"))
    }

    /// A number, if given; integers count.
    pub fn float(&self, key: &'static str) -> Result<Option<f64>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let x = value.as_float().or_else(|_| value.as_int().map(|i| i as f64));
        let x = x.map_err(|_| self.wrong(key, "a number", &value))?;
        if x.is_nan() {
            return Err(Error::input(format!("option `{key}` is not a number (NaN)")));
        }
        Ok(Some(x))
    }

    /// A number, or its default.
    pub fn float_or(&self, key: &'static str, default: f64) -> Result<f64> {
        Ok(self.float(key)?.unwrap_or(default))
    }

    /// A whole number of at least `least`, if given.
    pub fn count(&self, key: &'static str, least: usize) -> Result<Option<usize>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let n = value.as_int().map_err(|_| self.wrong(key, "a whole number", &value))?;
        match usize::try_from(n) {
            Ok(n) if n >= least => Ok(Some(n)),
            _ => {
                Err(Error::input(format!("option `{key}` is {n}"))
                    .hint(format!("it must be at least {least}")))
            }
        }
    }

    /// A whole number of at least `least`, or its default.
    pub fn count_or(&self, key: &'static str, least: usize, default: usize) -> Result<usize> {
        Ok(self.count(key, least)?.unwrap_or(default))
    }

    /// A text, if given.
    pub fn text(&self, key: &'static str) -> Result<Option<String>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        match value.clone().into_string() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.wrong(key, "a text", &value)),
        }
    }

    /// A text, or its default.
    pub fn text_or(&self, key: &'static str, default: &str) -> Result<String> {
        Ok(self.text(key)?.unwrap_or_else(|| default.to_string()))
    }

    /// True or false, or the default.
    pub fn flag_or(&self, key: &'static str, default: bool) -> Result<bool> {
        let Some(value) = self.value(key) else { return Ok(default) };
        value.as_bool().map_err(|_| self.wrong(key, "true or false", &value))
    }

    /// A function, if given.
    pub fn function(&self, key: &'static str) -> Result<Option<FnPtr>> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.clone().try_cast::<FnPtr>().map(Some).ok_or_else(|| self.wrong(key, "a function", &value))
    }

    /// The option `seed`: a whole number, or a text that is hashed; by default the session's seed.
    pub fn seed(&self) -> Result<u64> {
        let session = session(self.ctx)?;
        let Some(value) = self.value("seed") else { return Ok(session.seed()) };
        let seed = match (value.as_int(), value.clone().into_string()) {
            (Ok(n), _) => n as u64,
            (_, Ok(text)) => hash(&text),
            _ => return Err(self.wrong("seed", "a whole number or a text", &value)),
        };
        session.name_seed(seed);
        Ok(seed)
    }

    /// The option `progress` (default true): the task for this call.
    pub fn task(&self) -> Result<Task> {
        Ok(session(self.ctx)?.task(self.flag_or("progress", true)?))
    }

    /// Refuses keys that nobody asked for, naming the nearest that exists.
    pub fn finish(self) -> std::result::Result<(), Failure> {
        let asked = self.asked.borrow();
        for key in self.map.keys() {
            if !asked.contains(key.as_str()) {
                return Err(unknown_key(key, asked.iter().copied())).at(self.ctx);
            }
        }
        Ok(())
    }
}
