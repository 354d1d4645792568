//! The option declarations of one function, and the check of a call against them.

use std::cell::OnceCell;

use rhai::{Dynamic, Engine, Map};

use super::allowed::empty_list;
use super::declared::{OptionDoc, items, resolve, shown, unknown_key};
use super::kinds::{self, in_words, is_or_are};
use super::registry;
use super::rules::{GivenOption, at_odds};
use super::signature::Signature;
use crate::error::{Error, Result};

/// What a function declares, read when it is first called.
pub(crate) struct Declared {
    doc: String,
    options: OnceCell<Vec<OptionDoc>>,
    /// The types of the parameters, of a function written in Rhai that tells them.
    types: OnceCell<Option<Signature>>,
}

impl Declared {
    /// What this doc comment declares.
    pub fn new(doc: String) -> Self {
        Declared { doc, options: OnceCell::new(), types: OnceCell::new() }
    }

    /// Refuses arguments of types that the function does not take; `argument` gives the value of a parameter.
    pub fn fits<'a>(&self, engine: &Engine, argument: impl Fn(&str) -> Option<&'a Dynamic>) -> Result<()> {
        let Some(types) = self.types.get_or_init(|| Signature::read(&self.doc)) else { return Ok(()) };
        for (name, kind) in &types.parameters {
            let Some(value) = argument(name) else { continue };
            let of_type = registry::type_name(engine, value.type_name());
            if !kinds::may_be(kind, &of_type) {
                let given = match of_type.as_str() {
                    "" => "()".to_string(),
                    of_type => {
                        shown(value, of_type).map_or_else(|| in_words(of_type), |text| format!("`{text}`"))
                    }
                };
                let text =
                    format!("the argument `{name}` takes {}, not {given}", kinds::types_in_words(kind));
                return Err(Error::input(text).hint(remedy(engine, types, name, &of_type)));
            }
            if let Some(error) = empty_list(&format!("the argument `{name}`"), kind, value) {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether a call must give an option.
    pub fn requires(&self) -> bool {
        self.doc.contains("required)") && items(&self.doc).iter().any(OptionDoc::required)
    }

    /// The options; `engine` knows the functions that the doc refers to.
    pub fn options(&self, engine: &Engine) -> &[OptionDoc] {
        self.options.get_or_init(|| resolve(&self.doc, &|path| registry::docs_of(engine, path)))
    }

    /// The options, where they have been read already.
    pub fn known(&self) -> &[OptionDoc] {
        self.options.get().map_or(&[], Vec::as_slice)
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
        let of =
            |key: &str| checked.get(key).map_or(GivenOption::No, |value| GivenOption::Value(value.clone()));
        if let Some((_, error)) = at_odds(options, of) {
            return Err(error);
        }
        Ok(checked)
    }

    /// The first option that a call must give and this one does not.
    pub fn needed(&self, engine: &Engine, given: &Map) -> Option<&OptionDoc> {
        if !self.requires() {
            return None;
        }
        self.options(engine)
            .iter()
            .find(|option| option.required() && !given.contains_key(option.key.as_str()))
    }

    /// All options as a script's function reads them: those given, the defaults, and `()`.
    pub fn all(&self, engine: &Engine, given: Dynamic) -> Result<Map> {
        let Some(given) = given.read_lock::<Map>().map(|map| map.clone()) else {
            let of_type = registry::type_name(engine, given.type_name());
            let text = format!(
                "options are given as a map, not as {}",
                shown(&given, &of_type).unwrap_or_else(|| in_words(&of_type))
            );
            return Err(Error::input(text).hint("write `#{ key: value }`"));
        };
        let mut all = self.check(engine, given)?;
        if let Some(option) = self.needed(engine, &all) {
            return Err(missing(option));
        }
        for option in self.options(engine) {
            let default = || option.value().unwrap_or(Dynamic::UNIT);
            all.entry(option.key.as_str().into()).or_insert_with(default);
        }
        Ok(all)
    }

    /// Those of a map's entries that the function takes, without what is `()` or the default all the same: an option
    /// that was not given is not given to the next function either.
    pub fn pick(&self, engine: &Engine, from: Map) -> Map {
        let options = self.options(engine);
        let takes = |key: &str, value: &Dynamic| {
            options.iter().any(|option| option.key == key && !option.value().is_some_and(|x| same(&x, value)))
        };
        from.into_iter().filter(|(key, value)| takes(key, value) && !value.is_unit()).collect()
    }
}

/// Whether two values are the same number, text or truth value.
fn same(a: &Dynamic, b: &Dynamic) -> bool {
    let plain = ["i64", "f64", "bool", "string"].contains(&a.type_name());
    plain && a.type_name() == b.type_name() && a.to_string() == b.to_string()
}

/// The error for an option that must be given and is not; what it means is the remedy.
pub(super) fn missing(option: &OptionDoc) -> Error {
    let meaning = option.meaning.trim_end_matches('.').to_string();
    Error::input(format!("option `{}` is needed", option.key)).hint(meaning)
}

/// What an error says where the argument `name` is of type `given`, which the function does not take: all arguments,
/// and what makes such a value, from the one given or from others.
fn remedy(engine: &Engine, types: &Signature, name: &str, given: &str) -> String {
    let wanted = || types.kind(name).split(" or ").filter(|kind| kind.starts_with(char::is_uppercase));
    let made = |kind: &str| {
        let makers: Vec<String> =
            registry::makers(engine, kind).iter().map(|path| format!("`{path}`")).collect();
        (!makers.is_empty()).then(|| format!("; {} made by {}", is_or_are(kind), makers.join(", ")))
    };
    let made = match wanted().find_map(|kind| registry::maker_of(engine, given, kind)) {
        Some(method) => format!("; `.{method}()` of {} makes one", in_words(given)),
        None => wanted().find_map(made).unwrap_or_default(),
    };
    format!("the arguments are {}{made}", types.arguments())
}
