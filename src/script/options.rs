//! The options of one call: what was given, checked against what the function's doc comment declares, and the defaults.

use std::rc::Rc;

use rhai::{Array, Dynamic, Engine, FnPtr, INT, Map, Position};

use super::declaration::{Declared, missing};
use super::declared::OptionDoc;
use super::failure::failure;
use super::hidden;
use super::kinds::{counts, words};
use super::session::{hash, session};
use crate::error::{Error, Result};
use crate::task::Task;

/// What `options(opts)` in a function of a script becomes: nothing that a script can write.
pub(super) const READING: &str = "\u{1}options";

/// The declaration that such a call reads by, where the call stands, and whether in a workflow: a function of a module.
#[derive(Clone)]
pub(super) struct Reading {
    pub declared: Rc<Declared>,
    pub position: Position,
    pub workflow: bool,
}

/// Registers how functions of scripts read their options.
pub(super) fn register(engine: &mut Engine) {
    hidden::register(engine, READING, |ctx, inputs, reading| {
        let given = ctx.eval_expression_tree(&inputs[0])?;
        let Some(reading) = reading.read_lock::<Reading>() else { return Ok(Dynamic::UNIT) };
        let fits = reading.declared.fits(ctx.engine(), |name| ctx.scope().get(name));
        fits.map_err(|e| failure(e, reading.position))?;
        let all = reading.declared.all(ctx.engine(), given).map_err(|e| failure(e, reading.position))?;
        // Its products with operators that take long would show bars of their own.
        if reading.workflow && all.get("progress").is_some_and(|shown| shown.as_bool() == Ok(false)) {
            session().map_err(|e| failure(e, reading.position))?.hush();
        }
        Ok(all.into())
    });
}

/// The options of one call.
#[derive(Clone)]
pub struct Options {
    given: Map,
    declared: Rc<Declared>,
}

impl Options {
    /// Those given to a function.
    pub(super) fn read(engine: &Engine, declared: &Rc<Declared>, given: Map) -> Result<Self> {
        let given = declared.check(engine, given)?;
        match declared.needed(engine, &given) {
            Some(option) => Err(missing(option)),
            None => Ok(Options { given, declared: declared.clone() }),
        }
    }

    /// What the function declares of an option. Reading another is a bug, which the examples of the doc comments find.
    fn option(&self, key: &str) -> &OptionDoc {
        match self.declared.known().iter().find(|option| option.key == key) {
            Some(option) => option,
            None => panic!("the option `{key}` is read and not declared"),
        }
    }

    /// The value, if the call gives one.
    pub fn given(&self, key: &str) -> Option<Dynamic> {
        self.given.get(self.option(key).key.as_str()).cloned()
    }

    /// The value given, or the default that is declared.
    pub fn value(&self, key: &str) -> Result<Dynamic> {
        let option = self.option(key);
        match self.given(key).or_else(|| option.value()) {
            Some(value) => Ok(value),
            None if option.required() => Err(missing(option)),
            None => Err(Error::internal(format!("the option `{key}` has no default"))),
        }
    }

    /// The value, if the call gives one of this type. An option of several kinds is read by one call for each.
    pub fn maybe<T: Clone + 'static>(&self, key: &str) -> Option<T> {
        self.given(key).and_then(Dynamic::try_cast)
    }

    /// The number of an option; its default where the call gives none.
    pub fn float(&self, key: &str) -> Result<f64> {
        as_float(&self.value(key)?).ok_or_else(|| self.otherwise(key))
    }

    /// A number, if the call gives one.
    pub fn maybe_float(&self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.given(key) else { return Ok(None) };
        as_float(&value).map(Some).ok_or_else(|| self.otherwise(key))
    }

    /// A whole number that is declared to be at least 0, or at least another number above.
    pub fn count(&self, key: &str) -> Result<usize> {
        self.as_count(key, &self.value(key)?)
    }

    /// A count that is not negative, if the call gives one.
    pub fn maybe_count(&self, key: &str) -> Result<Option<usize>> {
        self.given(key).map(|value| self.as_count(key, &value)).transpose()
    }

    fn as_count(&self, key: &str, value: &Dynamic) -> Result<usize> {
        let whole = value.as_int().ok().and_then(|n| usize::try_from(n).ok());
        whole.filter(|_| counts(&self.option(key).kind)).ok_or_else(|| self.otherwise(key))
    }

    /// A whole number.
    pub fn whole(&self, key: &str) -> Result<INT> {
        self.value(key)?.as_int().map_err(|_| self.otherwise(key))
    }

    /// The text of an option; its default where the call gives none.
    pub fn text(&self, key: &str) -> Result<String> {
        self.value(key)?.into_string().map_err(|_| self.otherwise(key))
    }

    /// A text, if the call gives one.
    pub fn maybe_text(&self, key: &str) -> Result<Option<String>> {
        self.given(key).map(|value| value.into_string().map_err(|_| self.otherwise(key))).transpose()
    }

    /// What the word given stands for, of `(word, meaning)`: all words that are declared are there.
    pub fn one_of<T: Clone>(&self, key: &str, meanings: &[(&str, T)]) -> Result<T> {
        let meaning = |word: &str| meanings.iter().find(|(known, _)| *known == word);
        let all = words(&self.option(key).kind).into_iter().all(|word| meaning(word).is_some());
        let found = meaning(&self.text(key)?).filter(|_| all);
        found.map(|(_, meaning)| meaning.clone()).ok_or_else(|| self.otherwise(key))
    }

    /// The same, if the call gives a word.
    pub fn maybe_one_of<T: Clone>(&self, key: &str, meanings: &[(&str, T)]) -> Result<Option<T>> {
        self.given(key).map(|_| self.one_of(key, meanings)).transpose()
    }

    /// The numbers of an array that is declared to hold so many, if the call gives one.
    pub fn maybe_floats<const N: usize>(&self, key: &str) -> Result<Option<[f64; N]>> {
        self.maybe_list(key, as_float)
    }

    /// The whole numbers from 0 on of such an array.
    pub fn maybe_counts<const N: usize>(&self, key: &str) -> Result<Option<[usize; N]>> {
        self.maybe_list(key, |x| usize::try_from(x.as_int().ok()?).ok())
    }

    fn maybe_list<T, const N: usize>(
        &self,
        key: &str,
        read: impl Fn(&Dynamic) -> Option<T>,
    ) -> Result<Option<[T; N]>> {
        let Some(list) = self.maybe::<Array>(key) else { return Ok(None) };
        let all: Option<Vec<T>> = list.iter().map(read).collect();
        let all = all.and_then(|all| all.try_into().ok());
        all.map(Some).ok_or_else(|| self.otherwise(key))
    }

    /// Whether an option is on; its default where the call gives none.
    pub fn flag(&self, key: &str) -> Result<bool> {
        self.value(key)?.as_bool().map_err(|_| self.otherwise(key))
    }

    /// A function, if the call gives one.
    pub fn function(&self, key: &str) -> Option<FnPtr> {
        self.maybe(key)
    }

    /// Refuses options that serve another case than the one at hand, like "walkers in the continuum".
    pub fn only_for(&self, case: &str, keys: &[&str]) -> Result<()> {
        match keys.iter().find(|key| self.given(key).is_some()) {
            Some(key) => Err(Error::input(format!("the option `{key}` is for {case}")).hint("leave it out")),
            None => Ok(()),
        }
    }

    /// The error for an option that is read as another kind than it is declared.
    pub fn otherwise(&self, key: &str) -> Error {
        Error::internal(format!("the option `{key}` is declared as {}", self.option(key).kind))
    }

    /// The option `seed`: a whole number, or a text that is hashed; by default the session's seed.
    pub fn seed(&self) -> Result<u64> {
        let session = session()?;
        let Some(value) = self.given("seed") else { return Ok(session.seed()) };
        let seed = match value.as_int() {
            Ok(n) => n as u64,
            Err(_) => hash(&value.into_string().unwrap_or_default()),
        };
        session.name_seed(seed);
        Ok(seed)
    }

    /// The option `progress`: the task for this call.
    pub fn task(&self) -> Result<Task> {
        Ok(session()?.task(self.flag("progress")?))
    }
}

/// What a name stands for, of `(name, meaning)`; an error with all names for another. `what` is named, like "format".
pub fn named<T: Clone>(what: &str, name: &str, names: &[(&str, T)]) -> Result<T> {
    let found = names.iter().find(|(known, _)| *known == name).map(|(_, meaning)| meaning.clone());
    found.ok_or_else(|| {
        let all: Vec<String> = names.iter().map(|(known, _)| format!("\"{known}\"")).collect();
        Error::input(format!("no {what} `{name}`")).hint(format!("there are {}", all.join(", ")))
    })
}

fn as_float(value: &Dynamic) -> Option<f64> {
    value.as_float().or_else(|_| value.as_int().map(|i| i as f64)).ok()
}
