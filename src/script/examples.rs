//! The scripts that come with the program, found by a question: `examples("band structure")`.

use super::manual::{TextStyle, columns, plain, stem};
use super::registry::first_sentence;
use super::terms;

/// The scripts of the folders `scripts` and `examples`, by their places:
/// the list that `build.rs` makes of what lies there.
const SCRIPTS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// What a script says it is about: the comments that it begins with, without the line for its test.
fn heading(text: &str) -> String {
    let lines = text.lines().take_while(|line| line.starts_with("//"));
    let words =
        lines.map(|line| line.trim_start_matches('/').trim()).filter(|line| !line.starts_with("golden:"));
    words.collect::<Vec<_>>().join(" ")
}

/// The script of a name, with or without its folder and its ending.
pub fn script(name: &str) -> Option<(&'static str, &'static str)> {
    let short = |path: &'static str| path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rhai");
    let name = name.trim().trim_end_matches(".rhai");
    let named =
        |(path, _): &&(&'static str, &str)| short(path) == name || path.trim_end_matches(".rhai") == name;
    SCRIPTS.iter().find(named).copied()
}

/// All scripts, or those that answer a question, the best ones first; a line each.
pub fn search(question: &str, style: TextStyle) -> Option<String> {
    let all = question.trim().is_empty();
    let (mut found, _) = ranked(question);
    // Scripts that match far worse than the best one are noise.
    let best = found.iter().map(|(worth, ..)| *worth).max()?;
    found.retain(|(worth, ..)| 3 * worth >= best);
    found.truncate(if all { usize::MAX } else { 8 });
    Some(columns(found.iter().map(|(_, path, about)| (*path, about.as_str())), style))
}

/// At most three scripts whose names or headings have all words of a question, or what it means.
pub fn about(question: &str, style: TextStyle) -> Option<String> {
    let (mut found, words) = ranked(question);
    found.retain(|(worth, ..)| words > 0 && *worth >= 4 * words);
    found.truncate(3);
    let lines = found.iter().map(|(_, path, about)| (*path, about.as_str()));
    (!found.is_empty()).then(|| columns(lines, style))
}

/// The scripts that have a word of a question (all for none), the best ones first, with their worth and what they are
/// about; and how many words there are.
fn ranked(question: &str) -> (Vec<(usize, &'static str, String)>, usize) {
    let asked = plain(question);
    let mut words: Vec<String> = terms::words(question).iter().map(|w| stem(w).to_string()).collect();
    words.retain(|word| word.len() > 2 || word == "ed");
    words.retain(|word| {
        !["the", "how", "what", "does", "and", "for", "with", "are", "can"].contains(&word.as_str())
    });
    let meant: Vec<String> = terms::meant(question)
        .filter(|term| !term.scripts.is_empty())
        .map(|term| plain(term.scripts))
        .collect();
    let mut found: Vec<(usize, &str, String)> = Vec::new();
    for &(path, text) in SCRIPTS {
        let (name, about, all) = (plain(path), plain(&heading(text)), plain(text));
        let worth = |word: &str| {
            4 * usize::from(name.contains(word))
                + 3 * usize::from(about.contains(word))
                + usize::from(all.contains(word))
        };
        let worth: usize =
            words.iter().map(|word| worth(word)).chain(meant.iter().map(|word| 2 * worth(word))).sum();
        if worth > 0 || asked.trim().is_empty() {
            found.push((worth, path, first_sentence(&heading(text)).trim_end_matches('.').to_string()));
        }
    }
    found.sort_by_key(|(worth, ..)| std::cmp::Reverse(*worth));
    (found, words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: TextStyle = TextStyle { colour: false, width: 100 };

    #[test]
    fn every_script_is_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["scripts", "examples"] {
            let entries = std::fs::read_dir(root.join(folder)).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut there: Vec<String> =
                names.filter_map(|name| name.strip_suffix(".rhai").map(str::to_string)).collect();
            there.sort();
            let here = SCRIPTS.iter().filter_map(|(path, _)| path.strip_prefix(folder)?.strip_prefix('/'));
            let here: Vec<&str> = here.map(|name| name.trim_end_matches(".rhai")).collect();
            assert_eq!(
                here, there,
                "a new script has a line in {folder}/README.md, which has the list made anew"
            );
            // The tables of scripts are those whose names stand in no folder and are no programs.
            let index = std::fs::read_to_string(root.join(folder).join("README.md")).unwrap();
            let rows = index.lines().filter(|line| line.starts_with("| `"));
            let named = rows.filter_map(|line| line.split('|').nth(1)).flat_map(|cell| cell.split('`'));
            let program = |name: &str| root.join(folder).join(format!("{name}.rs")).exists();
            let mut told: Vec<&str> = named
                .filter(|name| {
                    name.starts_with(char::is_alphanumeric) && !name.contains('/') && !program(name)
                })
                .collect();
            told.sort_unstable();
            assert_eq!(told, there, "{folder}/README.md has a line for each script");
        }
        for &(path, text) in SCRIPTS {
            assert!(!first_sentence(&heading(text)).is_empty(), "{path} says not what it is about");
        }
    }

    #[test]
    fn questions_find_scripts() {
        let first = |question: &str| -> Vec<String> {
            let found = search(question, STYLE).unwrap_or_default();
            found.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_string())).collect()
        };
        for (question, script) in [
            ("band structure", "scripts/bands.rhai"),
            ("density of states", "scripts/density_of_states.rhai"),
            ("missing atoms in graphene", "examples/graphene_vacancies.rhai"),
            ("quantum Hall effect", "scripts/hall_bar.rhai"),
            ("spin chain gap", "examples/spin_chain.rhai"),
            ("zero modes of a gauge field", "scripts/overlap_index.rhai"),
            ("VUMPS", "scripts/critical_scaling.rhai"),
            ("time evolution", "scripts/quench.rhai"),
            ("excitations by momentum", "scripts/spinons.rhai"),
            ("finite temperature", "scripts/thermal.rhai"),
            ("time-dependent Hamiltonian", "scripts/driven.rhai"),
            ("typical thermal states", "scripts/metts.rhai"),
            ("Anderson localization", "examples/wave_packet.rhai"),
            ("how do I write my own updating scheme?", "scripts/metropolis_by_hand.rhai"),
        ] {
            let found = first(question);
            assert!(found.iter().take(3).any(|path| path == script), "{question}: {found:?}");
        }
        assert_eq!(first("").len(), SCRIPTS.len());
        assert!(search("zebra", STYLE).is_none());
        assert!(
            script("bands").is_some() && script("scripts/bands.rhai").is_some() && script("band").is_none()
        );
    }
}
