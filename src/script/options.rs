//! The options of one call: what was given, checked against what the function's doc comment declares, and the defaults.

use std::cell::OnceCell;
use std::rc::Rc;

use rhai::{Dynamic, Engine, FnPtr, Map, Position};

use super::declared::{OptionDoc, items, resolve, unknown_key};
use super::failure::failure;
use super::registry;
use super::session::session;
use crate::error::{Error, Result};
use crate::task::Task;

/// What a function declares, read when it is first called.
pub(crate) struct Declared {
    doc: String,
    options: OnceCell<Vec<OptionDoc>>,
}

impl Declared {
    /// What this doc comment declares.
    pub fn new(doc: String) -> Self {
        Declared { doc, options: OnceCell::new() }
    }

    /// Whether a call must give an option.
    pub fn requires(&self) -> bool {
        self.doc.contains("required)") && items(&self.doc).iter().any(OptionDoc::required)
    }

    /// The options; `engine` knows the functions that the doc refers to.
    pub fn options(&self, engine: &Engine) -> &[OptionDoc] {
        self.options.get_or_init(|| resolve(&self.doc, &|path| registry::docs_of(engine, path)))
    }

    /// The options given, each of its kind; those given as `()` count as not given.
    pub fn check(&self, engine: &Engine, given: Map) -> Result<Map> {
        let options = self.options(engine);
        let mut checked = Map::new();
        for (key, value) in given {
            let Some(option) = options.iter().find(|option| option.key == key.as_str()) else {
                return Err(unknown_key(&key, options.iter().map(|option| option.key.as_str())));
            };
            let value = value.flatten();
            if !value.is_unit() {
                let of_type = registry::type_name(engine, value.type_name());
                checked.insert(key, option.accept(value, &of_type)?);
            }
        }
        Ok(checked)
    }

    /// All options as a script's function reads them: those given, the defaults, and `()`.
    fn all(&self, engine: &Engine, given: Dynamic) -> Result<Map> {
        let Some(given) = given.read_lock::<Map>().map(|map| map.clone()) else {
            return Err(Error::input(format!("options are given as a map, not as {given}"))
                .hint("write `#{ key: value }`"));
        };
        let mut all = self.check(engine, given)?;
        for option in self.options(engine) {
            if option.required() && !all.contains_key(option.key.as_str()) {
                return Err(missing(option));
            }
            let default = || option.value().unwrap_or(Dynamic::UNIT);
            all.entry(option.key.as_str().into()).or_insert_with(default);
        }
        Ok(all)
    }

    /// Those of a map's entries that the function takes, without what is `()`.
    pub fn pick(&self, engine: &Engine, from: Map) -> Map {
        let options = self.options(engine);
        let takes = |key: &str| options.iter().any(|option| option.key == key);
        from.into_iter().filter(|(key, value)| takes(key) && !value.is_unit()).collect()
    }
}

/// The error for an option that must be given and is not; what it means is the remedy.
fn missing(option: &OptionDoc) -> Error {
    let meaning = option.meaning.trim_end_matches('.').to_string();
    Error::input(format!("option `{}` is needed", option.key)).hint(meaning)
}

/// What `options(opts)` in a function of a script becomes: nothing that a script can write.
pub(super) const READING: &str = "\u{1}options";

/// The declaration that such a call reads by, and where the call stands.
#[derive(Clone)]
pub(super) struct Reading {
    pub declared: Rc<Declared>,
    pub position: Position,
}

/// Registers how functions of scripts read their options.
pub(super) fn register(engine: &mut Engine) {
    engine.register_custom_syntax_without_look_ahead_raw(
        READING,
        |_, _| Ok(None),
        false,
        |ctx, inputs, reading| {
            let given = ctx.eval_expression_tree(&inputs[0])?;
            let Some(reading) = reading.read_lock::<Reading>() else { return Ok(Dynamic::UNIT) };
            let all = reading.declared.all(ctx.engine(), given);
            Ok(all.map_err(|e| failure(e, reading.position))?.into())
        },
    );
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
        Ok(Options { given: declared.check(engine, given)?, declared: declared.clone() })
    }

    /// What the function declares of an option. Reading another is a bug, which the examples of the doc comments find.
    fn option(&self, key: &str) -> &OptionDoc {
        let declared = self.declared.options.get().map_or(&[][..], Vec::as_slice);
        match declared.iter().find(|option| option.key == key) {
            Some(option) => option,
            None => panic!("the option `{key}` is read and not declared"),
        }
    }

    /// The value, if the call gives one.
    pub fn given(&self, key: &str) -> Option<Dynamic> {
        self.given.get(self.option(key).key.as_str()).cloned()
    }

    /// The value given, or the default that is declared.
    fn value(&self, key: &str) -> Result<Dynamic> {
        let option = self.option(key);
        match self.given(key).or_else(|| option.value()) {
            Some(value) => Ok(value),
            None if option.required() => Err(missing(option)),
            None => Err(Error::internal(format!("the option `{key}` has no default"))),
        }
    }

    /// The value of a type of this program, if the call gives one.
    pub fn maybe<T: Clone + 'static>(&self, key: &str) -> Option<T> {
        self.given(key).and_then(Dynamic::try_cast)
    }

    /// A number.
    pub fn float(&self, key: &str) -> Result<f64> {
        as_float(&self.value(key)?).ok_or_else(|| self.otherwise(key))
    }

    /// A number, if the call gives one.
    pub fn maybe_float(&self, key: &str) -> Option<f64> {
        as_float(&self.given(key)?)
    }

    /// A whole number of at least `least`.
    pub fn count(&self, key: &str, least: usize) -> Result<usize> {
        at_least(key, &self.value(key)?, least)
    }

    /// A whole number of at least `least`, if the call gives one.
    pub fn maybe_count(&self, key: &str, least: usize) -> Result<Option<usize>> {
        self.given(key).map(|value| at_least(key, &value, least)).transpose()
    }

    /// A text.
    pub fn text(&self, key: &str) -> Result<String> {
        self.value(key)?.into_string().map_err(|_| self.otherwise(key))
    }

    /// A text, if the call gives one.
    pub fn maybe_text(&self, key: &str) -> Option<String> {
        self.given(key)?.into_string().ok()
    }

    /// True or false.
    pub fn flag(&self, key: &str) -> Result<bool> {
        self.value(key)?.as_bool().map_err(|_| self.otherwise(key))
    }

    /// A function, if the call gives one.
    pub fn function(&self, key: &str) -> Option<FnPtr> {
        self.maybe(key)
    }

    /// The error for an option that is read as another kind than it is declared.
    fn otherwise(&self, key: &str) -> Error {
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

fn as_float(value: &Dynamic) -> Option<f64> {
    value.as_float().or_else(|_| value.as_int().map(|i| i as f64)).ok()
}

fn at_least(key: &str, value: &Dynamic, least: usize) -> Result<usize> {
    match value.as_int().map(|n| (n, usize::try_from(n))) {
        Ok((_, Ok(n))) if n >= least => Ok(n),
        Ok((n, _)) => {
            Err(Error::input(format!("option `{key}` is {n}")).hint(format!("it must be at least {least}")))
        }
        Err(_) => Err(Error::internal(format!("the option `{key}` is no whole number"))),
    }
}

/// FNV-1a, so that a text makes a seed.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
