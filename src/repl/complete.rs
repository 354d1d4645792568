//! What can follow where the cursor stands: modules' members, methods of the value before the dot, option keys, names.

use std::any::TypeId;
use std::collections::BTreeSet;

use super::input::COMMANDS;
use crate::output::plot::letters;
use crate::script::declared::OptionDoc;
use crate::script::device::BACKENDS;
use crate::script::kinds;
use crate::script::lex::{self, TokenKind};
use crate::script::registry::{self, CallForm, RegisteredFunction};
use crate::script::signature::ResultField;

/// A variable as completion sees it.
#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    /// Its type, for its methods.
    pub id: TypeId,
    /// Fields of its own: keys of a map, columns of a table.
    pub fields: Vec<ResultField>,
}

pub struct Names {
    pub entries: Vec<RegisteredFunction>,
    pub variables: Vec<Variable>,
}

/// A proposal: what is shown, and what is put in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompletionProposal {
    pub shown: String,
    pub put: String,
}

/// What to propose at the end of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Proposals {
    /// Proposals for the word that starts at this byte.
    Words(usize, Vec<CompletionProposal>),
    Files,
}

/// The proposals at the end of `line`, which is all before the cursor.
pub fn proposals(names: &Names, line: &str) -> Proposals {
    let start_of_line = line.trim_start();
    if let Some(command) = start_of_line.strip_prefix('%') {
        let start = line.len() - start_of_line.len();
        match command.split_once(char::is_whitespace) {
            None => {
                let fit = COMMANDS.iter().filter(|c| c.starts_with(command));
                let fit = fit.map(|c| plain(&format!("%{c}"), &format!("%{c} ")));
                return Proposals::Words(start, fit.collect());
            }
            Some(("run" | "save" | "edit" | "store" | "restore" | "cd", _)) => return Proposals::Files,
            Some(("backend", part)) => {
                let fit = BACKENDS.into_iter().filter(|name| name.starts_with(part));
                return Proposals::Words(
                    line.len() - part.len(),
                    fit.map(|name| plain(name, name)).collect(),
                );
            }
            Some(_) => {}
        }
    }
    let all = lex::tokens(line);
    match all.last().map(|t| t.kind) {
        Some(TokenKind::Text { closed: false }) => return words(names, line).unwrap_or(Proposals::Files),
        Some(TokenKind::Comment | TokenKind::Number | TokenKind::Text { .. }) => {
            return Proposals::Words(line.len(), vec![]);
        }
        _ => {}
    }
    if let Some(proposals) = signs(line) {
        return proposals;
    }
    let (start, before) = before(line);
    let part = &line[start..];
    let found = match before.last().map(String::as_str) {
        Some("::") => members(names, before.get(before.len().wrapping_sub(2)).map_or("", String::as_str)),
        Some(".") if before.len() > 1 && before[before.len() - 2] == "." => general(names),
        Some(".") => fields(names, &before[..before.len() - 1]),
        _ => match options(names, &before) {
            Some(options) => {
                options.iter().map(|option| plain(&option.key, &format!("{}: ", option.key))).collect()
            }
            None => general(names),
        },
    };
    // Without a letter, everything global is no help.
    if part.is_empty() && !matches!(before.last().map(String::as_str), Some("::" | "." | "#{" | ","))
        || start_of_line.is_empty()
    {
        return Proposals::Words(start, vec![]);
    }
    let fit = found.into_iter().filter(|p| p.put.starts_with(part));
    Proposals::Words(start, fit.collect::<BTreeSet<_>>().into_iter().collect())
}

/// The letters whose LaTeX name begins with what stands behind a backslash at the end of `line`; one whose whole name
/// stands there is the only one.
fn signs(line: &str) -> Option<Proposals> {
    let written = line.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let start = written.strip_suffix('\\')?.len();
    let part = &line[written.len()..];
    let whole = letters().find(|(name, _)| *name == part);
    let fit: Vec<_> = match whole {
        Some(letter) => vec![letter],
        None => letters().filter(|(name, _)| name.starts_with(part)).collect(),
    };
    let shown = |(name, letter): &(&str, char)| plain(&format!("\\{name} {letter}"), &letter.to_string());
    Some(Proposals::Words(start, fit.iter().map(shown).collect()))
}

fn plain(shown: &str, put: &str) -> CompletionProposal {
    CompletionProposal { shown: shown.into(), put: put.into() }
}

fn callable(entry: &RegisteredFunction) -> CompletionProposal {
    let name = entry.name.as_str();
    if entry.form == CallForm::Property { plain(name, name) } else { plain(name, &format!("{name}(")) }
}

fn members(names: &Names, module: &str) -> Vec<CompletionProposal> {
    names.entries.iter().filter(|e| e.module == module).map(callable).collect()
}

/// Variables, functions, modules and keywords.
fn general(names: &Names) -> Vec<CompletionProposal> {
    let mut found: Vec<CompletionProposal> =
        names.variables.iter().map(|v| plain(&v.name, &v.name)).collect();
    let functions = names.entries.iter().filter(|e| e.module.is_empty() && e.form == CallForm::Function);
    found.extend(functions.map(callable));
    let modules: BTreeSet<&str> = names.entries.iter().map(|e| e.module.as_str()).collect();
    found.extend(modules.into_iter().filter(|m| !m.is_empty()).map(|m| plain(m, &format!("{m}::"))));
    let words = lex::KEYWORDS.into_iter().chain(["help", "lookfor", "whos", "examples", "tour"]);
    found.extend(words.map(|word| plain(word, word)));
    found
}

/// Methods, properties and fields of the value that these tokens end in.
fn fields(names: &Names, before: &[String]) -> Vec<CompletionProposal> {
    let own = |e: &&RegisteredFunction| e.form != CallForm::Function;
    let Some(value) = receiver(names, before) else {
        return names.entries.iter().filter(own).filter(|e| !e.standard).map(callable).collect();
    };
    let of_type = |e: &&RegisteredFunction| match &value.kind {
        Kinded::Id(id) => e.receiver == Some(*id),
        Kinded::Name(name) => e.of_type() == Some(name),
    };
    let methods = names.entries.iter().filter(own).filter(of_type).map(callable);
    value.fields.iter().map(|f| plain(&f.name, &f.name)).chain(methods).collect()
}

/// What is known of a value that stands before a point.
pub struct Receiver<'a> {
    kind: Kinded,
    pub fields: &'a [ResultField],
}

enum Kinded {
    Id(TypeId),
    Name(String),
}

impl<'a> Receiver<'a> {
    fn named(kind: &str, fields: &'a [ResultField]) -> Self {
        // Of several types the first is the usual one.
        let kind = kind.split(" or ").next().unwrap_or_default();
        Receiver { kind: Kinded::Name(kind.to_string()), fields }
    }

    /// Its type, by which entries are found.
    pub fn id(&self, names: &Names) -> Option<TypeId> {
        match &self.kind {
            Kinded::Id(id) => Some(*id),
            Kinded::Name(kind) => names.entries.iter().find(|e| e.of_type() == Some(kind))?.receiver,
        }
    }
}

/// What is known of the value that tokens end in.
pub fn receiver<'a>(names: &'a Names, before: &[String]) -> Option<Receiver<'a>> {
    let last = before.last()?;
    let ahead = |n: usize| before.len().checked_sub(n + 1).and_then(|i| before.get(i)).map(String::as_str);
    if last == ")" {
        let open = opening(before, before.len() - 1)?;
        let path = path_before(&before[..open])?;
        let entry = names.entries.iter().find(|e| !e.returns.is_empty() && e.path() == path)?;
        return Some(Receiver::named(&entry.returns, &entry.fields));
    }
    if last.starts_with(['"', '`']) {
        return Some(Receiver::named("string", &[]));
    }
    if ahead(1) == Some(".") {
        let inner = receiver(names, &before[..before.len() - 2]);
        if let Some(field) = inner.and_then(|value| value.fields.iter().find(|f| f.name == *last)) {
            return (!field.kind.is_empty()).then(|| Receiver::named(&field.kind, &[]));
        }
        let entry = names.entries.iter().find(|e| e.form == CallForm::Property && e.name == *last)?;
        return Some(Receiver::named(&entry.returns, &entry.fields));
    }
    // Nothing is known of a variable without a type.
    let known = |v: &&Variable| v.name == *last && v.id != TypeId::of::<()>();
    let variable = names.variables.iter().rfind(known)?;
    Some(Receiver { kind: Kinded::Id(variable.id), fields: &variable.fields })
}

/// The call that is open at the end of these tokens, and which of its arguments is being written, from 0.
pub fn call(tokens: &[String]) -> Option<(String, usize)> {
    let mut end = tokens.len();
    loop {
        let open = innermost(&tokens[..end])?;
        if tokens[open] == "("
            && let Some(path) = path_before(&tokens[..open])
        {
            let mut depth = 0usize;
            let inside = tokens[open + 1..].iter().filter(|token| {
                match token.as_str() {
                    "(" | "[" | "{" | "#{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && token.as_str() == ","
            });
            return Some((path, inside.count()));
        }
        end = open;
    }
}

/// The place of the bracket that the one at `close` closes.
fn opening(tokens: &[String], close: usize) -> Option<usize> {
    let mut depth = 0;
    for (i, token) in tokens[..=close].iter().enumerate().rev() {
        match token.as_str() {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" | "#{" => {
                depth -= 1;
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
    }
    None
}

/// The function's name that tokens end in: `kpm::dos`, or the method after a dot.
fn path_before(tokens: &[String]) -> Option<String> {
    let name = tokens.last().filter(|t| t.chars().all(|c| c.is_alphanumeric() || c == '_'))?;
    match tokens {
        [.., module, colons, _] if colons == "::" => Some(format!("{module}::{name}")),
        _ => Some(name.clone()),
    }
}

/// The innermost bracket that is still open.
fn innermost(tokens: &[String]) -> Option<usize> {
    let mut open = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "(" | "[" | "{" | "#{" => open.push(i),
            ")" | "]" | "}" => {
                open.pop();
            }
            _ => {}
        }
    }
    open.pop()
}

/// The function whose arguments are being typed at the end of these tokens.
fn callee(tokens: &[String]) -> Option<String> {
    let open = innermost(tokens)?;
    if tokens[open] == "(" { path_before(&tokens[..open]) } else { None }
}

/// The options of the call whose option map is being typed that are not given yet, where a key can stand.
fn options(names: &Names, before: &[String]) -> Option<Vec<OptionDoc>> {
    let open = innermost(before)?;
    if before[open] != "#{" || !matches!(before.last()?.as_str(), "#{" | ",") {
        return None;
    }
    let path = callee(&before[..open])?;
    let given: BTreeSet<&str> =
        before[open..].windows(2).filter(|w| w[1] == ":").map(|w| w[0].as_str()).collect();
    let mut options = registry::options(&names.entries, &path);
    options.retain(|option| !given.contains(option.key.as_str()));
    options.sort_by(|a, b| a.key.cmp(&b.key));
    (!options.is_empty()).then_some(options)
}

/// What the call declares whose option map is being typed at the end of a line, of the options that are not given yet.
pub fn options_at(names: &Names, line: &str) -> Vec<OptionDoc> {
    options(names, &before(line).1).unwrap_or_default()
}

/// The words that the option may be whose text is being written at the end of a line, if it is one of words.
fn words(names: &Names, line: &str) -> Option<Proposals> {
    let start = lex::tokens(line).last()?.range.start;
    let (_, mut tokens) = before(&line[..start]);
    let (":", key) = (tokens.pop()?.as_str(), tokens.pop()?) else { return None };
    let option = options(names, &tokens)?.into_iter().find(|option| option.key == key)?;
    let part = &line[start + 1..];
    let known = kinds::words(&option.kind);
    let fit = known.iter().filter(|word| word.starts_with(part));
    let fit: Vec<CompletionProposal> = fit.map(|word| plain(word, word)).collect();
    (!known.is_empty()).then_some(Proposals::Words(start + 1, fit))
}

/// Where the word begins that is being written at the end of a line, and the tokens before it.
fn before(line: &str) -> (usize, Vec<String>) {
    let mut tokens = lex::tokens(line);
    let word = tokens
        .last()
        .filter(|t| matches!(t.kind, TokenKind::Word | TokenKind::Keyword))
        .map(|t| t.range.start);
    if word.is_some() {
        tokens.pop();
    }
    tokens.retain(|t| t.kind != TokenKind::Space && t.kind != TokenKind::Comment);
    let texts = tokens.iter().map(|t| line[t.range.clone()].to_string());
    (word.unwrap_or(line.len()), texts.collect())
}

/// The parameters that the function just opened takes, to hint at them; nothing once an argument stands.
pub fn parameters(names: &Names, line: &str) -> Option<String> {
    let tokens: Vec<String> = lex::tokens(line)
        .into_iter()
        .filter(|t| t.kind != TokenKind::Space)
        .map(|t| line[t.range].to_string())
        .collect();
    if tokens.last()? != "(" {
        return None;
    }
    let path = path_before(&tokens[..tokens.len() - 1])?;
    let dotted = tokens.len() > 2 && tokens[tokens.len() - 3] == ".";
    let ways = names.entries.iter().filter(|e| e.path() == path && e.form != CallForm::Property);
    let documented = ways.filter(|e| !e.doc.is_empty() && (e.form == CallForm::Method || !dotted));
    let entry = documented.max_by_key(|e| e.parameters.len())?;
    let own = usize::from(dotted);
    let parameters: Vec<&str> = entry.parameters.iter().skip(own).map(|p| p.name.as_str()).collect();
    Some(format!("{})", parameters.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Table;
    use crate::script::{Engine, registry};

    fn names() -> Names {
        let entries = registry::entries(Engine::new().unwrap().rhai(), true);
        let table = Variable {
            name: "dos".into(),
            id: TypeId::of::<Table>(),
            fields: ["energy", "density"].map(ResultField::column).into(),
        };
        Names { entries, variables: vec![table] }
    }

    fn put(line: &str) -> Vec<String> {
        match proposals(&names(), line) {
            Proposals::Words(start, all) => {
                all.into_iter().map(|p| format!("{}{}", &line[..start], p.put)).collect()
            }
            Proposals::Files => vec!["files".into()],
        }
    }

    #[test]
    fn members_names_and_commands() {
        assert!(put("lattice::hon").contains(&"lattice::honeycomb(".into()));
        assert!(put("let h = lattice::").len() > 10);
        assert_eq!(put("lins"), ["linspace("]);
        assert_eq!(put("latt"), ["lattice::", "lattice_slater("]);
        assert_eq!(put("do"), ["do", "dos"]);
        assert_eq!(put("%ti"), ["%time ", "%timeit "]);
        assert_eq!(put("%backend cp"), ["%backend cpu", "%backend cpu+cuda"]);
        assert!(put("").is_empty() && put("1 + ").is_empty() && put("// lins").is_empty());
    }

    #[test]
    fn methods_fit_the_value() {
        let of_table = put("dos.");
        assert!(of_table.contains(&"dos.energy".into()) && of_table.contains(&"dos.save(".into()));
        assert!(!of_table.contains(&"dos.eigh(".into()));
        assert_eq!(put("linspace(0, 1, 5).integ"), ["linspace(0, 1, 5).integrate("]);
        assert_eq!(put("dos.energy.integ"), ["dos.energy.integrate("]);
        assert!(put("identity(2).").contains(&"identity(2).eigh(".into()));
        assert!(put("unknown.eig").contains(&"unknown.eigh(".into()));
        assert!(put("dos.energy[0..di").contains(&"dos.energy[0..diagonal(".into()));
    }

    #[test]
    fn option_keys_of_the_call() {
        let keys = put("plot(dos, #{ ");
        assert!(keys.contains(&"plot(dos, #{ title: ".into()), "{keys:?}");
        assert_eq!(put("plot(dos, #{ title: \"a\", xl"), ["plot(dos, #{ title: \"a\", xlabel: "]);
        assert!(!put("plot(dos, #{ title: \"a\", ").iter().any(|k| k.ends_with(" title: ")));
        assert_eq!(put("plot(dos, #{ title: dos.den"), ["plot(dos, #{ title: dos.density"]);
        assert_eq!(put("kpm::dos(h, #{ vec"), ["kpm::dos(h, #{ vectors: "]);
        assert!(put("plot(dos, #{ title: lins").contains(&"plot(dos, #{ title: linspace(".into()));
    }

    #[test]
    fn letters_by_their_names() {
        assert_eq!(put("let x = 2.0 * \\mu"), ["let x = 2.0 * μ"]);
        assert_eq!(put("\\eta"), ["η"]);
        assert_eq!(put("\\ps"), ["ψ"]);
        assert_eq!(put("f(\\Ups, 1)\\eps"), ["f(\\Ups, 1)ε"]);
        assert!(put("\\le").is_empty(), "no name has this sign");
        assert!(put("\\").len() > 30 && put("// \\mu").is_empty());
    }

    #[test]
    fn files_in_texts() {
        assert_eq!(proposals(&names(), "load(\"da"), Proposals::Files);
        assert_eq!(proposals(&names(), "%run sc"), Proposals::Files);
    }

    #[test]
    fn hints_show_parameters() {
        assert_eq!(parameters(&names(), "linspace(").as_deref(), Some("a, b, n)"));
        assert_eq!(parameters(&names(), "dos.slice(").as_deref(), Some("from, to)"));
        assert_eq!(parameters(&names(), "linspace(0"), None);
        assert_eq!(parameters(&names(), "nothing("), None);
    }
}
