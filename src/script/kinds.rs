//! The kinds of values that options and parameters are declared to take: types, numbers between bounds, words.

use rhai::{FLOAT, INT};

/// The kinds that are no types of this program.
pub(super) const PLAIN: [(&str, &str); 9] = [
    ("int", "a whole number"),
    ("float", "a number"),
    ("bool", "true or false"),
    ("string", "a text"),
    ("array", "an array"),
    ("range", "a range"),
    ("map", "a map"),
    ("function", "a function"),
    ("any", "any value"),
];

/// Arrays of so many numbers: the kind, that of each number, how many, in words. A count is a whole number from 0 on.
const LISTS: [(&str, &str, usize, &str); 3] = [
    ("two floats", "float", 2, "an array of two numbers"),
    ("two counts", "count", 2, "an array of two whole numbers from 0 on"),
    ("three counts", "count", 3, "an array of three whole numbers from 0 on"),
];

/// One of the kinds of an option: `float`, `0 <= float < 1`, `even int >= 2`, `two counts`, `"word"`, `-1`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OptionKind<'a> {
    Type { name: &'a str, even: bool, least: Option<Bound>, most: Option<Bound> },
    List { of: &'a str, length: usize, told: &'a str },
    Word(&'a str),
    Whole(INT),
}

/// A bound of a number, and whether the number may be there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bound {
    pub at: FLOAT,
    pub included: bool,
}

impl Bound {
    pub fn text(self, below: &str, at: &str) -> String {
        format!("{} {}", if self.included { at } else { below }, self.at)
    }
}

/// The kind that one part of a declaration names, between two "or".
fn kind(text: &str) -> Option<OptionKind<'_>> {
    if let Some(word) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return (!word.contains('"')).then_some(OptionKind::Word(word));
    }
    if let Ok(number) = text.parse() {
        return Some(OptionKind::Whole(number));
    }
    if let Some((_, of, length, told)) = LISTS.iter().find(|(name, ..)| *name == text) {
        return Some(OptionKind::List { of, length: *length, told });
    }
    let mut parts: Vec<&str> = text.split(' ').collect();
    let even = parts.windows(2).position(|pair| pair == ["even", "int"]);
    if let Some(at) = even {
        parts.remove(at);
    }
    let sign = |text: &str| matches!(text, "<" | "<=" | ">" | ">=");
    let bound =
        |sign: &str, number: &str| Some(Bound { at: number.parse().ok()?, included: sign.ends_with('=') });
    let (mut least, mut most) = (None, None);
    let (name, behind) = match parts.as_slice() {
        [number, sign_, name, behind @ ..] if sign_.starts_with('<') && sign(sign_) => {
            least = Some(bound(sign_, number)?);
            (*name, behind)
        }
        [name, behind @ ..] => (*name, behind),
        [] => return None,
    };
    match behind {
        [] => {}
        [sign_, number] if sign(sign_) => {
            let there = if sign_.starts_with('<') { &mut most } else { &mut least };
            *there = Some(bound(sign_, number)?);
        }
        _ => return None,
    }
    let type_name = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        || PLAIN.iter().any(|(plain, _)| *plain == name);
    type_name.then_some(OptionKind::Type { name, even: even.is_some(), least, most })
}

/// Whether a text declares kinds. One value alone is the default.
pub(super) fn is_kinds(text: &str) -> bool {
    let parts: Vec<&str> = text.split(" or ").collect();
    !text.is_empty() && parts.iter().all(|part| kind(part).is_some()) && !(parts.len() == 1 && is_value(text))
}

fn is_value(text: &str) -> bool {
    matches!(kind(text), Some(OptionKind::Word(_) | OptionKind::Whole(_)))
}

/// The value that is the default where none is told: the first one.
pub(super) fn first_value(kinds: &str) -> Option<&str> {
    kinds.split(" or ").next().filter(|first| is_value(first))
}

pub(super) fn all(kinds: &str) -> impl Iterator<Item = OptionKind<'_>> {
    kinds.split(" or ").filter_map(kind)
}

/// The whole numbers that an option may be, where these are named one by one.
pub(super) fn numbers(kinds: &str) -> Vec<INT> {
    let number = |kind| if let OptionKind::Whole(number) = kind { Some(number) } else { None };
    all(kinds).filter_map(number).collect()
}

/// The words that an option may be.
pub fn words(kinds: &str) -> Vec<&str> {
    let word = |kind| if let OptionKind::Word(word) = kind { Some(word) } else { None };
    all(kinds).filter_map(word).collect()
}

/// Whether the kinds of another declaration of the option say more than its own, which name a type: its bounds, that
/// it is even, or words.
pub(super) fn says_more(other: &str, own: &str) -> bool {
    let Some(OptionKind::Type { name, even: false, least: None, most: None }) = kind(own) else {
        return own.is_empty();
    };
    all(other).any(|kind| match kind {
        OptionKind::Type { name: same, even, least, most } => {
            same == name && (even || least.is_some() || most.is_some())
        }
        OptionKind::List { .. } => name == "array",
        OptionKind::Word(_) => name == "string",
        OptionKind::Whole(_) => name == "int",
    })
}

/// The types that a value may be of, in words for a message.
pub(super) fn types_in_words(kinds: &str) -> String {
    let mut types: Vec<String> = Vec::new();
    for kind in all(kinds) {
        let text = match kind {
            OptionKind::Type { name, .. } => in_words(name),
            OptionKind::List { told, .. } => told.to_string(),
            OptionKind::Word(_) => in_words("string"),
            OptionKind::Whole(_) => in_words("int"),
        };
        if !types.contains(&text) {
            types.push(text);
        }
    }
    types.join(" or ")
}

/// Whether a value of a type may be given at all. Whole numbers serve for a `float`.
pub(super) fn may_be(kinds: &str, of_type: &str) -> bool {
    // The language has types that no option is declared to take, such as `timestamp`.
    kinds.is_empty()
        || kinds == of_type
        || all(kinds).any(|kind| match kind {
            OptionKind::Type { name, .. } => {
                name == of_type || name == "any" || name == "float" && of_type == "int"
            }
            OptionKind::List { .. } => of_type == "array",
            OptionKind::Word(_) => of_type == "string",
            OptionKind::Whole(_) => of_type == "int",
        })
}

/// Whether whole numbers may be given that are never negative.
pub(super) fn counts(kinds: &str) -> bool {
    let bounded = |kind| match kind {
        OptionKind::Type { name: "int", least: Some(least), .. } => least.at >= 0.0,
        OptionKind::Whole(number) => number >= 0,
        _ => false,
    };
    all(kinds).any(bounded) && numbers(kinds).iter().all(|n| *n >= 0)
}

/// Whether whole numbers stay whole, and do not become floats.
pub(super) fn keeps_whole(kinds: &str) -> bool {
    all(kinds).any(|kind| matches!(kind, OptionKind::Type { name: "int" | "any", .. } | OptionKind::Whole(_)))
}

/// A kind as a message names it.
pub(super) fn in_words(kind: &str) -> String {
    match PLAIN.iter().find(|(name, _)| *name == kind) {
        Some((_, words)) => (*words).to_string(),
        None if of_many(kind) => kind.to_string(),
        None if kind.starts_with(['A', 'E', 'I', 'O']) => format!("an {kind}"),
        None => format!("a {kind}"),
    }
}

/// Whether a type is named after the many that its value holds.
fn of_many(kind: &str) -> bool {
    kind.ends_with('s') && !matches!(kind, "Series" | "Basis" | "BlockBasis")
}

/// "an Operator is", "Moments are".
pub(super) fn is_or_are(kind: &str) -> String {
    format!("{} {}", in_words(kind), if of_many(kind) { "are" } else { "is" })
}
