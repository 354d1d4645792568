//! Which options of a function go together. Their meanings say it: "not with `points`", "only with `start`", "needed
//! with `method: "kpm"`", "needed without `W`".

use rhai::{Dynamic, FLOAT};

use super::allowed::told_of;
use super::declared::{OptionDoc, literal};
use crate::error::Error;

/// What is known of an option of a call.
pub(super) enum GivenOption {
    No,
    /// Whether it is given shows when the script runs.
    Unknown,
    /// Given, but what it is shows when the script runs.
    Something,
    Value(Dynamic),
}

/// The first option that breaks a rule, and how: it is given beside one that it excludes, or without what it is for, or
/// it is not given where it is needed.
pub(super) fn at_odds(options: &[OptionDoc], given: impl Fn(&str) -> GivenOption) -> Option<(String, Error)> {
    let call = Call { options, given };
    options.iter().find_map(|option| Some((option.key.clone(), call.broken(option)?)))
}

/// The options of a function, and what a call gives of them.
struct Call<'a, F> {
    options: &'a [OptionDoc],
    given: F,
}

impl<F: Fn(&str) -> GivenOption> Call<'_, F> {
    fn broken(&self, option: &OptionDoc) -> Option<Error> {
        if option.rules.is_empty() {
            return None;
        }
        let key = &option.key;
        let rules = |words: &'static str| clauses(&option.rules, words);
        if matches!((self.given)(key), GivenOption::No) {
            let case = rules("needed with `").flatten().find(|need| self.holds(need, false));
            let with = case.map(|need| format!("with `{need}`"));
            let absent = |need: &str| matches!((self.given)(need), GivenOption::No);
            let without = || {
                let case = rules("needed without `").find(|all| all.iter().all(|need| absent(need)));
                case.map(|all| format!("without {}", listed(&all, "and")))
            };
            let case = with.or_else(without)?;
            return Some(Error::input(format!("option `{key}` is needed {case}")).hint(told_of(option)));
        }
        if !self.there(key) {
            return None;
        }
        if let Some(other) = rules("not with `").flatten().find(|other| self.holds(other, false)) {
            let error = Error::input(format!("the options `{key}` and `{other}` exclude each other"));
            return Some(error.hint("leave one of them out"));
        }
        let needs = rules("only with `").find(|all| !all.iter().any(|need| self.holds(need, true)))?;
        let error =
            Error::input(format!("the option `{key}` has no effect without {}", listed(&needs, "or")));
        Some(error.hint("leave it out"))
    }

    fn there(&self, key: &str) -> bool {
        matches!((self.given)(key), GivenOption::Something | GivenOption::Value(_))
    }

    /// Whether an option is given, or is what stands behind a colon; `unknown` where the run will show it.
    fn holds(&self, need: &str, unknown: bool) -> bool {
        let Some((name, wanted)) = need.split_once(": ") else {
            return self.there(need) || unknown && matches!((self.given)(need), GivenOption::Unknown);
        };
        let value = match (self.given)(name) {
            GivenOption::Something | GivenOption::Unknown => return unknown,
            GivenOption::Value(value) => Some(value),
            GivenOption::No => self.options.iter().find(|o| o.key == name).and_then(OptionDoc::value),
        };
        literal(wanted).zip(value).is_some_and(|(a, b)| same(&a, &b))
    }
}

/// Whether two values are the same number or the same text.
fn same(a: &Dynamic, b: &Dynamic) -> bool {
    let number = |x: &Dynamic| x.as_int().map_or_else(|_| x.as_float().ok(), |n| Some(n as FLOAT));
    match (number(a), number(b)) {
        (None, None) => a.to_string() == b.to_string(),
        (first, second) => first == second,
    }
}

fn listed(names: &[&str], last: &str) -> String {
    let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    all.join(&format!(" {last} "))
}

/// The other options that a meaning names as going or not going together with it.
#[cfg(test)]
pub(super) fn named(meaning: &str) -> impl Iterator<Item = &str> {
    super::declared::RULES
        .into_iter()
        .flat_map(|words| clauses(meaning, words).flatten())
        .map(|need| need.split(": ").next().unwrap_or(need))
}

/// For each place where such words stand the names in back-ticks that follow, up to the end of the clause.
fn clauses<'a>(meaning: &'a str, words: &str) -> impl Iterator<Item = Vec<&'a str>> {
    meaning.split(words).skip(1).map(|text| clause(text).collect())
}

/// The names at the beginning of a text up to the end of the clause.
fn clause(text: &str) -> impl Iterator<Item = &str> {
    // The first name has lost its first back-tick. A point within a name ends nothing.
    let mut code = true;
    let end = text.find(|c| {
        code ^= c == '`';
        !code && matches!(c, '.' | ';' | ')' | '\n')
    });
    text[..end.unwrap_or(text.len())].split('`').step_by(2).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::declared::items;
    use super::*;

    /// What is said of a call with these options; `()` stands for what only the run shows.
    fn said(declared: &str, given: &[(&str, Dynamic)]) -> String {
        let all = items(&format!("# Options\n{declared}"));
        let of = |key: &str| match given.iter().find(|(name, _)| *name == key) {
            None => GivenOption::No,
            Some((_, value)) if value.is_unit() => GivenOption::Something,
            Some((_, value)) => GivenOption::Value(value.clone()),
        };
        at_odds(&all, of).map(|(_, e)| e.message().to_string()).unwrap_or_default()
    }

    #[test]
    fn options_that_do_not_go_together_are_told() {
        let all = "- `points` (int): number; not with `energies`.\n- `energies` (array): where.\n- `method` (\"tdvp\" \
             or \"tebd\"): how.\n- `expand` (2): only with `method: \"tdvp\"`.\n- `more` (int): only with `expand`.";
        let odds = |given: &[(&str, Dynamic)]| said(all, given);
        assert_eq!(odds(&[("points", 3_i64.into())]), "");
        assert_eq!(
            odds(&[("points", 3_i64.into()), ("energies", Dynamic::UNIT)]),
            "the options `points` and `energies` exclude each other"
        );
        assert_eq!(odds(&[("expand", 3_i64.into())]), "", "the default is the first word");
        let tebd = ("method", Dynamic::from("tebd"));
        assert_eq!(
            odds(&[("expand", 3_i64.into()), tebd]),
            "the option `expand` has no effect without `method: \"tdvp\"`"
        );
        assert_eq!(
            odds(&[("expand", 3_i64.into()), ("method", Dynamic::UNIT)]),
            "",
            "what it is shows in the run"
        );
        assert_eq!(odds(&[("more", 1_i64.into())]), "the option `more` has no effect without `expand`");
    }

    #[test]
    fn options_that_others_need_are_told() {
        let all = "- `V` (float, none): on sites; needed without `W`.\n- `W` (float, none): over bonds.\n- `method` \
             (\"exact\" or \"kpm\"): how.\n- `potential` (float): of electrons; needed with `method: \"kpm\"`.";
        let odds = |given: &[(&str, Dynamic)]| said(all, given);
        let (v, w) = (("V", Dynamic::from(1.0)), ("W", Dynamic::from(1.0)));
        let kpm = ("method", Dynamic::from("kpm"));
        assert_eq!(odds(&[]), "option `V` is needed without `W`");
        assert_eq!((odds(&[("V", 1.0.into())]), odds(&[w])), Default::default());
        assert_eq!(odds(&[v.clone(), kpm.clone()]), "option `potential` is needed with `method: \"kpm\"`");
        assert_eq!(odds(&[v.clone(), kpm, ("potential", 0.0.into())]), "");
        assert_eq!(odds(&[v, ("method", Dynamic::UNIT)]), "", "what it is shows in the run");
    }

    #[test]
    fn clauses_hold_all_and_names_of_one_are_alternatives() {
        let all = "- `temperature` (0.0): T.\n- `method` (\"exact\" or \"kpm\" or \"ed\"): how.\n- `moments` (int): \
             terms; only with `method: \"kpm\"`, `method: \"ed\"`; only with `temperature: 0.0`.";
        let odds = |method: &'static str, temperature: Dynamic| {
            said(all, &[("moments", 8_i64.into()), ("method", method.into()), ("temperature", temperature)])
        };
        assert_eq!(odds("kpm", 0_i64.into()), "", "a whole number is the same number");
        assert_eq!(odds("ed", 0.0.into()), "");
        assert_eq!(odds("kpm", 0.1.into()), "the option `moments` has no effect without `temperature: 0.0`");
        assert_eq!(
            odds("exact", 0.0.into()),
            "the option `moments` has no effect without `method: \"kpm\"` or `method: \"ed\"`"
        );
    }
}
