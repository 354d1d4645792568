//! Names and docs, read from the functions themselves: the one source for help, completion, "did you mean" and the
//! manual. `manual.rs` renders them as text.

use std::any::TypeId;
use std::collections::BTreeSet;

use rhai::{Engine, FnAccess, FnNamespace};

use super::declared::{self, OptionDoc};
use super::own::is_second_name;
use super::signature::{self, ResultField, Signature};
use super::{habits, rooms};
use crate::error::nearest;

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; empty where none is known.
    pub name: String,
    /// Its type as scripts name it; empty if any will do.
    pub kind: String,
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    /// `name(a, b)`.
    Function,
    /// `value.name(a)`, and `name(value, a)` as well.
    Method,
    /// `value.name`.
    Property,
}

/// A function that scripts can call.
#[derive(Debug, Clone)]
pub struct RegisteredFunction {
    /// Module it lives in, empty for global functions.
    pub module: String,
    pub name: String,
    /// Its parameters; of methods and properties the first is the value itself.
    pub parameters: Vec<Parameter>,
    /// The type it returns, empty for none or any.
    pub returns: String,
    /// The keys of the map or the columns of the Table that it returns, where its doc comment tells them.
    pub fields: Vec<ResultField>,
    /// Whether some of these maps and Tables have others, too.
    pub more_fields: bool,
    /// How it is called.
    pub form: CallForm,
    /// The type of the value that a method or property belongs to.
    pub receiver: Option<TypeId>,
    /// Its doc comment, without comment marks.
    pub doc: String,
    /// Whether it is Rhai's own.
    pub standard: bool,
}

impl RegisteredFunction {
    /// `module::name`.
    pub fn path(&self) -> String {
        if self.module.is_empty() { self.name.clone() } else { format!("{}::{}", self.module, self.name) }
    }

    /// The type of the value that a method or property belongs to, as scripts name it.
    pub fn of_type(&self) -> Option<&str> {
        match self.form {
            CallForm::Function => None,
            _ => self.parameters.first().map(|p| p.kind.as_str()),
        }
    }

    /// How it is called: `Series.slice(from: int, to: int) -> Series`.
    pub fn signature(&self) -> String {
        let show = |p: &Parameter| match (p.name.as_str(), p.kind.as_str()) {
            ("", kind) => kind.to_string(),
            (name, "" | "map" | "function") => name.to_string(),
            (name, kind) => format!("{name}: {kind}"),
        };
        let own = usize::from(self.form != CallForm::Function);
        let parameters: Vec<String> = self.parameters.iter().skip(own).map(show).collect();
        let call = match (self.form, self.of_type()) {
            (CallForm::Property, Some(kind)) => format!("{kind}.{}", self.name),
            (CallForm::Method, Some(kind)) => format!("{kind}.{}({})", self.name, parameters.join(", ")),
            _ => format!("{}({})", self.path(), parameters.join(", ")),
        };
        if self.returns.is_empty() { call } else { format!("{call} -> {}", self.returns) }
    }

    /// The first sentence of the doc.
    pub fn summary(&self) -> String {
        let paragraph: Vec<&str> = self.doc.lines().take_while(|line| !line.trim().is_empty()).collect();
        first_sentence(&paragraph.join(" ")).to_string()
    }

    /// Whether the doc only says what differs from another form.
    pub fn refers(&self) -> bool {
        self.doc.starts_with("As ")
    }

    /// The options that the doc lists under `# Options`, as they are written.
    pub fn options(&self) -> Vec<OptionDoc> {
        declared::items(&self.doc)
    }

    /// Whether the last argument is a map of options.
    pub fn takes_options(&self) -> bool {
        self.parameters.last().is_some_and(|p| matches!(p.name.as_str(), "options" | "opts"))
    }
}

/// A text up to its first full stop that ends a sentence: not within code,
/// not after an initial or a journal's shortened name.
pub(super) fn first_sentence(text: &str) -> &str {
    const SHORTENED: [&str; 11] =
        ["al", "Eq", "Fig", "Comput", "Phys", "Rev", "Chem", "Stat", "Lett", "Commun", "Math"];
    let ends = text.match_indices(". ").map(|(at, _)| at).find(|&at| {
        let before = &text[..at];
        let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let initial = word.len() == 1 && word.chars().all(char::is_uppercase);
        before.matches('`').count().is_multiple_of(2) && !initial && !SHORTENED.contains(&word)
    });
    ends.map_or(text, |at| &text[..=at])
}

/// The options that a function declares in all its forms, those of functions that its doc refers to among them.
pub fn options(entries: &[RegisteredFunction], path: &str) -> Vec<OptionDoc> {
    declared::resolve(&format!("# Options\n- those of `{path}`"), &|path| docs_in(entries, path))
}

/// The docs of a function, given by its path.
pub(super) fn docs_in(entries: &[RegisteredFunction], path: &str) -> Vec<String> {
    entries.iter().filter(|e| e.path() == path).map(|e| e.doc.clone()).collect()
}

/// The module that a call names; empty for what a room gives to all.
pub(super) fn room_of<'a>(info: &'a rhai::FuncInfo) -> &'a str {
    let everywhere = info.metadata.namespace == FnNamespace::Global && info.script.is_none();
    if everywhere { "" } else { info.namespace.as_str() }
}

/// As `docs_in`, of the functions that an engine has.
pub(super) fn docs_of(engine: &Engine, path: &str) -> Vec<String> {
    let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
    engine.collect_fn_metadata(
        None,
        |info| {
            let same = info.metadata.name == name && room_of(&info) == module;
            let own = || match &info.script {
                Some(script) => doc(script.comments.iter().copied()),
                None => doc(info.metadata.comments.iter().map(|c| c.as_str())),
            };
            same.then(own)
        },
        false,
    )
}

/// Every function that scripts can call by name: native, stdlib, and, if asked for, Rhai's own. Operators, indexers and
/// the like are no names.
pub fn entries(engine: &Engine, standard: bool) -> Vec<RegisteredFunction> {
    let collect = |standard: bool| engine.collect_fn_metadata(None, |info| entry(engine, &info), standard);
    let mut own = collect(false);
    if standard {
        // What takes the place of a function of the language is told in its place.
        let call = |e: &RegisteredFunction| {
            let kinds: Vec<_> = e.parameters.iter().map(|p| p.kind.clone()).collect();
            (e.form, e.path(), kinds)
        };
        let known: Vec<_> = own.iter().map(call).collect();
        let more = collect(true).into_iter().filter(|e| !known.contains(&call(e)));
        own.extend(more.map(|e| RegisteredFunction { standard: true, ..e }).collect::<Vec<_>>());
    }
    // What only refers to another form comes after that. The language's own order changes with the names of types.
    own.sort_by_cached_key(|e| (e.refers(), e.path(), e.doc.is_empty(), e.parameters.len(), e.signature()));
    own
}

/// Stands instead of the parameters of a form that takes whole numbers, which help and completion do not show.
pub(super) const WHOLE: &str = "whole numbers";

/// Numbers that the language's library could take, and that no script can make.
const UNKNOWN: [&str; 12] =
    ["i8", "i16", "i32", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize", "f32"];

fn entry(engine: &Engine, info: &rhai::FuncInfo) -> Option<RegisteredFunction> {
    let meta = info.metadata;
    let (form, name) = match meta.name.strip_prefix("get$") {
        Some(name) => (CallForm::Property, name),
        None => (CallForm::Function, meta.name.as_str()),
    };
    if meta.params_info.iter().any(|p| p.as_str() == WHOLE) {
        return None;
    }
    let named = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !is_second_name(name);
    let hidden = meta.access == FnAccess::Private || info.namespace == rooms::INTERNAL;
    if !named || hidden || matches!(name, "to_string" | "to_debug") {
        return None;
    }
    if let Some(script) = &info.script {
        return Some(RegisteredFunction { module: room_of(info).to_string(), ..of_script(script) });
    }
    let parameters: Vec<&str> =
        meta.params_info.iter().map(|p| p.as_str()).filter(|p| !p.contains("NativeCallContext")).collect();
    let changes = parameters.first().is_some_and(|p| p.contains("&mut "));
    let form = if changes && form == CallForm::Function { CallForm::Method } else { form };
    let mut parameters: Vec<Parameter> = parameters.iter().map(|p| parameter(engine, p)).collect();
    if parameters.is_empty() {
        let nameless = Parameter { name: String::new(), kind: String::new() };
        parameters = vec![nameless; meta.num_params];
    }
    if parameters.iter().any(|p| UNKNOWN.contains(&p.kind.as_str())) {
        return None;
    }
    Some(RegisteredFunction {
        module: room_of(info).to_string(),
        name: name.to_string(),
        parameters,
        returns: type_name(engine, &meta.return_type),
        fields: Vec::new(),
        more_fields: false,
        form,
        receiver: if form == CallForm::Function { None } else { meta.param_types.first().copied() },
        doc: doc(meta.comments.iter().map(|c| c.as_str())),
        standard: false,
    })
}

/// A function written in Rhai, as a function of no module.
pub fn of_script(function: &rhai::ScriptFnMetadata) -> RegisteredFunction {
    let told = doc(function.comments.iter().copied());
    let types = Signature::read(&told).unwrap_or_default();
    let parameter = |name: &&str| Parameter { name: name.to_string(), kind: types.kind(name).to_string() };
    RegisteredFunction {
        module: String::new(),
        name: function.name.to_string(),
        parameters: function.params.iter().map(parameter).collect(),
        doc: signature::without(&told),
        returns: types.returns,
        fields: types.fields,
        more_fields: types.more,
        form: CallForm::Function,
        receiver: None,
        standard: false,
    }
}

fn parameter(engine: &Engine, text: &str) -> Parameter {
    let (name, kind) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim().trim_start_matches('_');
    Parameter { name: name.to_string(), kind: type_name(engine, kind) }
}

/// A type as scripts name it, from how Rust writes it; empty for none or any.
pub fn type_name(engine: &Engine, rust: &str) -> String {
    let rust = rust.trim().trim_start_matches("&mut ").trim_start_matches('&').trim();
    if let Some(inside) = rust.strip_prefix("RhaiResultOf<") {
        return type_name(engine, inside.strip_suffix('>').unwrap_or(inside));
    }
    if let Some(inside) = rust.strip_prefix("Fallible<") {
        return type_name(engine, inside.strip_suffix('>').unwrap_or(inside));
    }
    // Fallible functions return `Result<T, ..>`.
    if let Some(inside) = rust.strip_suffix('>').and_then(|r| r.split_once("Result<")).map(|(_, t)| t) {
        let mut depth = 0;
        let end = inside.find(|c| {
            depth += i32::from(matches!(c, '<' | '(')) - i32::from(matches!(c, '>' | ')'));
            c == ',' && depth == 0
        });
        return type_name(engine, &inside[..end.unwrap_or(inside.len())]);
    }
    let generic = rust.split_once('<').map_or("", |(name, _)| name.rsplit("::").next().unwrap_or(name));
    if ["Range", "RangeInclusive", "StepRange"].contains(&generic) {
        return "range".into();
    }
    let display = engine.map_type_name(rust);
    let display = display.strip_prefix("Rc<").or(display.strip_prefix("Arc<")).unwrap_or(display);
    let name = display.rsplit("::").next().unwrap_or(display).trim_end_matches(['>', ' ']);
    name_of(name).to_string()
}

/// A type as scripts name it, for a message: one of no name of theirs keeps its own.
pub(super) fn shown_name(name: &str) -> &str {
    // Of a type in a module, `num_complex::Complex<f64>`, its own name.
    let plain = name.split_once('<').map_or(name, |(plain, _)| plain);
    let name = if plain.contains("::") { plain.rsplit("::").next().unwrap_or(plain) } else { name };
    Some(name_of(name)).filter(|known| !known.is_empty()).unwrap_or(name)
}

/// A type as scripts name it, from its name in Rust without modules; empty for none or any.
pub(super) fn name_of(name: &str) -> &str {
    match name {
        "()" | "Dynamic" | "?" | "" => "",
        "INT" | "i64" => "int",
        "FLOAT" | "f64" | "Float" => "float",
        "str" | "ImmutableString" | "String" => "string",
        "Array" => "array",
        "Map" => "map",
        "range=" => "range",
        "FnPtr" | "Fn" => "function",
        "C64" => "Complex",
        "Vector" => "BlockVector",
        "Psi" => "WaveFunction",
        "OrbitalSet" => "Orbitals",
        "SharedDouble" => "DoubleMoments",
        "Subspace" => "Basis",
        "AnyBlock" => "Block",
        "AnyBasis" => "BlockBasis",
        "AnyDensity" => "DensityMatrix",
        "HeldUniform" => "UniformState",
        "AnySearch" => "UniformSearch",
        "AnyGrowth" => "UniformGrowth",
        "Repeated" => "CellMpo",
        other => other.strip_prefix("Shared").or(other.strip_prefix("Script")).unwrap_or(other),
    }
}

/// A doc comment without its marks.
pub(crate) fn doc<'a>(comments: impl Iterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = comments.flat_map(str::lines).map(strip).collect();
    lines.join("\n").trim().to_string()
}

fn strip(line: &str) -> &str {
    let line = line.trim_start();
    line.strip_prefix("/// ").or_else(|| line.strip_prefix("///")).unwrap_or(line)
}

/// The method that makes a value of the second type from one of the first, without anything but options.
pub(super) fn maker_of(engine: &Engine, given: &str, kind: &str) -> Option<String> {
    let makes = |e: &RegisteredFunction| {
        e.form == CallForm::Method && e.parameters.len() == 1 && e.returns == kind && given != kind
    };
    let found = entries(engine, false).into_iter().find(|e| e.of_type() == Some(given) && makes(e));
    found.map(|e| e.name)
}

/// Functions that make a value of this type from others, three at most, those without a module first.
pub(super) fn makers(engine: &Engine, kind: &str) -> Vec<String> {
    let makes = |e: &RegisteredFunction| {
        e.form == CallForm::Function && e.returns == kind && e.parameters.iter().all(|p| p.kind != kind)
    };
    let paths: BTreeSet<(bool, String)> = entries(engine, false)
        .iter()
        .filter(|e| makes(e))
        .map(|e| (!e.module.is_empty(), e.path()))
        .collect();
    paths.into_iter().map(|(_, path)| path).take(3).collect()
}

/// All names that can be called, modules' members with their path.
pub fn names(engine: &Engine) -> Vec<String> {
    let names: BTreeSet<String> = entries(engine, true).iter().map(RegisteredFunction::path).collect();
    names.into_iter().collect()
}

/// The functions that stand on their own, without a value or a module before them.
fn plain_names(engine: &Engine) -> BTreeSet<String> {
    let alone = |e: &RegisteredFunction| e.form == CallForm::Function && e.module.is_empty();
    entries(engine, true).into_iter().filter(alone).map(|e| e.name).collect()
}

/// A name with one letter instead of two that look the same: keyboards write the micro sign, others the Greek mu.
fn alike(name: &str) -> String {
    let twins = [('\u{b5}', 'μ'), ('ϵ', 'ε'), ('ϕ', 'φ'), ('\u{2126}', 'Ω'), ('\u{212b}', 'Å')];
    let one = |c| twins.iter().find(|(twin, _)| *twin == c).map_or(c, |(_, letter)| *letter);
    name.chars().map(one).collect()
}

/// A hint for the name of a module in another one's place.
fn of_module(engine: &Engine, name: &str) -> Option<String> {
    let is_one = modules(engine).iter().any(|module| module == name);
    is_one.then(|| format!("`{name}` is a module: its functions are called as `{name}::function(..)`"))
}

/// A hint for a name that is no variable; `variables` are those there are, `assigned` says that it was to become one.
pub(super) fn no_variable(engine: &Engine, name: &str, variables: &[&str], assigned: bool) -> Option<String> {
    if variables.contains(&name) {
        return Some(format!(
            "a function sees only what it is given and constants: give it `{name}`, or write `const {name} = ..` and \
             `global::{name}`"
        ));
    }
    if let Some(twin) = variables.iter().find(|v| alike(v) == alike(name)) {
        return Some(format!("`{twin}` looks the same, but is another letter: did you mean it?"));
    }
    if let Some(module) = of_module(engine, name) {
        return Some(module);
    }
    let functions = plain_names(engine);
    if functions.contains(name) || name.contains("::") && names(engine).iter().any(|path| path == name) {
        return Some(format!("`{name}` is a function: `{name}(..)` calls it"));
    }
    let names: Vec<&str> = variables.iter().copied().chain(functions.iter().map(String::as_str)).collect();
    let near = nearest(name, names);
    match (assigned, near) {
        (true, Some(near)) => Some(format!("`let {name} = ..` makes a variable; or did you mean `{near}`?")),
        (true, None) => Some(format!("`let {name} = ..` makes a variable")),
        (false, Some(near)) => Some(format!("did you mean `{near}`?")),
        (false, None) => Some(match name.strip_prefix("global::") {
            Some(name) => {
                format!("`const {name} = ..;` makes a constant, before a function that reads it is called")
            }
            None => format!("`let {name} = ..` makes a variable, before it is used"),
        }),
    }
}

/// A hint for a property that is called as if it were a method, `values(Eigen)`.
pub(super) fn called_property(engine: &Engine, call: &str) -> Option<String> {
    let (name, arguments) = call.strip_suffix(')')?.split_once('(')?;
    let kind = arguments.split(", ").next()?;
    let property =
        |e: &RegisteredFunction| e.form == CallForm::Property && e.name == name && e.of_type() == Some(kind);
    let known = entries(engine, true).iter().any(property);
    known.then(|| format!("it is a property, without brackets: `.{name}`"))
}

/// A hint for a property that values of a type do not have.
pub(super) fn no_property(engine: &Engine, name: &str, kind: &str) -> Option<String> {
    let all = entries(engine, true);
    let own: Vec<&RegisteredFunction> = all.iter().filter(|e| e.of_type() == Some(kind)).collect();
    // A function whose first argument is the value can be called as its method.
    let first = |e: &&RegisteredFunction| e.parameters.first().is_some_and(|p| p.kind == kind);
    let callable = all.iter().filter(|e| e.form == CallForm::Function && e.module.is_empty()).filter(first);
    if own.iter().copied().chain(callable).any(|e| e.name == name) {
        return Some(format!("it is a method: `.{name}(..)` calls it"));
    }
    let habit = habits::name(name).map(str::to_string);
    Some(match nearest(name, own.iter().map(|e| e.name.as_str())) {
        _ if habit.is_some() => habit.unwrap_or_default(),
        Some(near) => format!("did you mean `.{near}`?"),
        None => format!("`help(\"{kind}\")` lists what it has"),
    })
}

pub fn modules(engine: &Engine) -> Vec<String> {
    let modules = entries(engine, false).into_iter().map(|e| e.module).filter(|m| !m.is_empty());
    modules.collect::<BTreeSet<String>>().into_iter().collect()
}

/// The nearest name of the same module; else the same word in another one, or in none; else the nearest name.
pub(super) fn near<'a>(name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let last = |path: &str| path.rsplit("::").next().map(str::to_string);
    let module = name.rsplit_once("::").map(|(module, _)| format!("{module}::"));
    let own = names.clone().filter(|path| module.as_ref().is_some_and(|module| path.starts_with(module)));
    let in_module = own.filter_map(|path| Some((last(path)?, path))).collect::<Vec<_>>();
    let found = nearest(&last(name)?, in_module.iter().map(|(word, _)| word.as_str()));
    let path = in_module.iter().find(|(word, _)| Some(word.as_str()) == found).map(|(_, path)| *path);
    // Names of another module differ in its name alone: with a module that is there, they are not meant.
    let elsewhere = || names.clone().find(|path| last(path) == last(name));
    path.or_else(elsewhere).or_else(|| nearest(name, names).filter(|_| in_module.is_empty()))
}

/// The ways to call what has this name, of what `keep` keeps.
pub(super) fn ways(
    all: &[RegisteredFunction],
    name: &str,
    keep: &dyn Fn(&RegisteredFunction) -> bool,
) -> Vec<String> {
    let named = |e: &&RegisteredFunction| e.path() == name && e.form != CallForm::Property && keep(e);
    // Some of the language's own have parameters without names.
    let signatures =
        all.iter().filter(named).map(RegisteredFunction::signature).filter(|s| !s.contains("(, "));
    signatures.map(|s| format!("`{s}`")).collect::<BTreeSet<String>>().into_iter().collect()
}

/// A hint for a call that no function takes: the nearest name, or the ways the name can be called.
pub(super) fn did_you_mean(engine: &Engine, name: &str) -> Option<String> {
    let name = name.replace(" :: ", "::");
    let all = entries(engine, true);
    let ways = |name: &str| ways(&all, name, &|_| true);
    if name == "^" {
        return Some("powers are written `**`".into());
    }
    if matches!(name.as_str(), "print" | "debug") {
        return Some(format!("it takes one value; of several make a text: {name}(`${{a}} ${{b}}`)"));
    }
    let mut same = ways(&name);
    if !same.is_empty() {
        let more = same.len().saturating_sub(4);
        same.truncate(4);
        let rest = match more {
            0 => String::new(),
            1 => " and 1 more way".into(),
            more => format!(" and {more} more ways"),
        };
        return Some(format!("it can be called as {}{rest}", same.join(", ")));
    }
    if let Some((_, now)) = rooms::MOVED.iter().find(|(old, _)| *old == name) {
        return Some(format!("`{name}` is `{now}` now"));
    }
    if let Some(module) = of_module(engine, &name) {
        return Some(module);
    }
    let names = names(engine);
    let Some(near) = near(&name, names.iter().map(String::as_str)) else {
        let module = name.rsplit_once("::").map(|(module, _)| module.to_string());
        let known = module.filter(|module| modules(engine).contains(module));
        return known.map(|module| format!("`help(\"{module}\")` lists the functions of `{module}`"));
    };
    // If there are several forms, the one with the most parameters says the most.
    let way = ways(near).into_iter().max_by_key(String::len).unwrap_or(format!("`{near}`"));
    Some(format!("did you mean {way}?"))
}

/// The runnable examples of a doc comment: what its fences marked `rhai` hold.
pub fn examples(doc: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in doc.lines() {
        match (&mut open, line.trim()) {
            (None, "```rhai") => open = Some(String::new()),
            (Some(_), "```") => found.extend(open.take()),
            (Some(text), _) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, _) => {}
        }
    }
    found
}

/// Where the example of a property or a method is that has none of its own: at a function that gives such values, or at
/// another one of theirs.
pub fn shown_by<'a>(
    entries: &'a [RegisteredFunction],
    entry: &RegisteredFunction,
) -> Option<&'a RegisteredFunction> {
    let kind = entry.of_type().filter(|_| examples(&entry.doc).is_empty())?;
    let gives = |e: &&RegisteredFunction| {
        e.of_type() == Some(kind) || e.returns.split(" or ").any(|returned| returned == kind)
    };
    let call = format!(".{}{}", entry.name, if entry.form == CallForm::Method { "(" } else { "" });
    let ends = |after: &str| {
        entry.form == CallForm::Method
            || !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '('))
    };
    let uses = |text: &String| text.match_indices(&call).any(|(at, _)| ends(&text[at + call.len()..]));
    let all = || entries.iter().filter(gives).filter(|e| examples(&e.doc).iter().any(uses));
    all().find(|e| e.form == CallForm::Function).or_else(|| all().next())
}

/// The function whose example shows the forms of one that have none of their own; none where another form has it.
pub fn shown_elsewhere<'a>(
    entries: &'a [RegisteredFunction],
    forms: &[&RegisteredFunction],
) -> Option<&'a RegisteredFunction> {
    let own = forms.iter().filter(|form| !form.doc.is_empty() && !form.refers());
    let called = |e: &RegisteredFunction| (e.path(), e.of_type().map(str::to_string));
    own.filter_map(|form| shown_by(entries, form)).find(|shown| called(shown) != called(forms[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Engine;

    #[test]
    fn no_function_refers_to_its_own_example() {
        let engine = Engine::new().unwrap();
        let all = entries(engine.rhai(), false);
        let shown = |of_type: &str, name: &str| {
            let forms: Vec<_> =
                all.iter().filter(|e| e.of_type() == Some(of_type) && e.name == name).collect();
            shown_elsewhere(&all, &forms).map(RegisteredFunction::path)
        };
        assert_eq!(shown("DmrgState", "correlations"), None, "the form with options has the example");
        assert_eq!(shown("OpSum", "add"), None);
        assert_eq!(shown("DmrgState", "lowest").as_deref(), Some("dmrg::finite"));
    }

    #[test]
    fn everything_stands_in_an_example() {
        let engine = Engine::new().unwrap();
        let all = entries(engine.rhai(), false);
        let own = all.iter().filter(|e| !e.doc.is_empty() && !e.refers());
        let bare = own.filter(|e| examples(&e.doc).is_empty() && shown_by(&all, e).is_none());
        let bare: Vec<String> = bare.map(RegisteredFunction::signature).collect();
        assert!(bare.is_empty(), "no example shows {}", bare.join(", "));
    }

    #[test]
    fn signatures_read_as_scripts_write_them() {
        let engine = Engine::new().unwrap();
        let all = entries(engine.rhai(), true);
        let signatures: Vec<String> = all.iter().map(RegisteredFunction::signature).collect();
        for expected in [
            "linspace(a, b, n: int) -> Series",
            "Series.slice(from: int, to: int) -> Series",
            "Table.rows -> int",
            "lattice::chain(n: int) -> Lattice",
            "plot(value, options)",
            "kpm::dos(x: Operator or Model or Moments, opts) -> Table",
        ] {
            assert!(signatures.iter().any(|s| s == expected), "{expected}");
        }
        assert!(all.iter().any(|e| e.path() == "kpm::dos" && !e.options().is_empty()));
        let own: Vec<&RegisteredFunction> = all.iter().filter(|e| !e.standard).collect();
        assert!(own.iter().all(|e| !e.signature().contains("Dynamic") && !e.signature().contains("Result")));
        assert!(all.iter().any(|e| e.standard && e.name == "print" || e.name == "push"));
    }

    #[test]
    fn options_are_read_from_the_doc() {
        let engine = Engine::new().unwrap();
        let all = entries(engine.rhai(), false);
        let plot = all.iter().find(|e| e.name == "plot" && !e.doc.is_empty()).unwrap();
        let options = plot.options();
        let keys: Vec<&str> = options.iter().map(|o| o.key.as_str()).collect();
        assert!(keys.starts_with(&["file", "title", "xlabel", "ylabel", "log", "style"]), "{keys:?}");
        assert_eq!(options[5].default, "\"lines\"");
        assert_eq!(options[2].default, "the table's");
        let found = super::options(&all, "kpm::dos");
        assert!(["points", "vectors"].iter().all(|key| found.iter().any(|o| o.key == *key)), "{found:?}");
    }
}
