//! The scripts that come with the program, found by a question: `examples("band structure")`.

use super::manual::{Style, columns, plain, stem};
use super::registry::first_sentence;
use super::terms;

/// The scripts of the folders `scripts` and `examples`, by their places.
const SCRIPTS: [(&str, &str); 43] = [
    ("scripts/antiferromagnet.rhai", include_str!("../../scripts/antiferromagnet.rhai")),
    ("scripts/bands.rhai", include_str!("../../scripts/bands.rhai")),
    ("scripts/chebyshev_mps.rhai", include_str!("../../scripts/chebyshev_mps.rhai")),
    ("scripts/critical_scaling.rhai", include_str!("../../scripts/critical_scaling.rhai")),
    ("scripts/davidson.rhai", include_str!("../../scripts/davidson.rhai")),
    ("scripts/davidson_by_hand.rhai", include_str!("../../scripts/davidson_by_hand.rhai")),
    ("scripts/defects.rhai", include_str!("../../scripts/defects.rhai")),
    ("scripts/density_of_states.rhai", include_str!("../../scripts/density_of_states.rhai")),
    ("scripts/dmrg_by_hand.rhai", include_str!("../../scripts/dmrg_by_hand.rhai")),
    ("scripts/dmrg_finite.rhai", include_str!("../../scripts/dmrg_finite.rhai")),
    ("scripts/driven.rhai", include_str!("../../scripts/driven.rhai")),
    ("scripts/edge_state.rhai", include_str!("../../scripts/edge_state.rhai")),
    ("scripts/haldane_gap.rhai", include_str!("../../scripts/haldane_gap.rhai")),
    ("scripts/hall_bar.rhai", include_str!("../../scripts/hall_bar.rhai")),
    ("scripts/kpm_by_hand.rhai", include_str!("../../scripts/kpm_by_hand.rhai")),
    ("scripts/kpm_dos.rhai", include_str!("../../scripts/kpm_dos.rhai")),
    ("scripts/kreutzer2015.rhai", include_str!("../../scripts/kreutzer2015.rhai")),
    ("scripts/metropolis_by_hand.rhai", include_str!("../../scripts/metropolis_by_hand.rhai")),
    ("scripts/metts.rhai", include_str!("../../scripts/metts.rhai")),
    ("scripts/nemes2014.rhai", include_str!("../../scripts/nemes2014.rhai")),
    ("scripts/overlap_by_hand.rhai", include_str!("../../scripts/overlap_by_hand.rhai")),
    ("scripts/overlap_index.rhai", include_str!("../../scripts/overlap_index.rhai")),
    ("scripts/pion_correlator.rhai", include_str!("../../scripts/pion_correlator.rhai")),
    ("scripts/plasmon.rhai", include_str!("../../scripts/plasmon.rhai")),
    ("scripts/quench.rhai", include_str!("../../scripts/quench.rhai")),
    ("scripts/second_harmonic.rhai", include_str!("../../scripts/second_harmonic.rhai")),
    ("scripts/silicon.rhai", include_str!("../../scripts/silicon.rhai")),
    ("scripts/spinons.rhai", include_str!("../../scripts/spinons.rhai")),
    ("scripts/superconductor.rhai", include_str!("../../scripts/superconductor.rhai")),
    ("scripts/thermal.rhai", include_str!("../../scripts/thermal.rhai")),
    ("scripts/topological_insulator.rhai", include_str!("../../scripts/topological_insulator.rhai")),
    ("scripts/uejima2012.rhai", include_str!("../../scripts/uejima2012.rhai")),
    ("scripts/uejima2012_schemes.rhai", include_str!("../../scripts/uejima2012_schemes.rhai")),
    ("scripts/valley_filter.rhai", include_str!("../../scripts/valley_filter.rhai")),
    ("scripts/valley_hall.rhai", include_str!("../../scripts/valley_hall.rhai")),
    ("scripts/vmc_by_hand.rhai", include_str!("../../scripts/vmc_by_hand.rhai")),
    ("scripts/vmc_crystal.rhai", include_str!("../../scripts/vmc_crystal.rhai")),
    ("scripts/walk2010.rhai", include_str!("../../scripts/walk2010.rhai")),
    ("scripts/zhang2013.rhai", include_str!("../../scripts/zhang2013.rhai")),
    ("examples/chern_insulator.rhai", include_str!("../../examples/chern_insulator.rhai")),
    ("examples/graphene_vacancies.rhai", include_str!("../../examples/graphene_vacancies.rhai")),
    ("examples/spin_chain.rhai", include_str!("../../examples/spin_chain.rhai")),
    ("examples/wave_packet.rhai", include_str!("../../examples/wave_packet.rhai")),
];

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
pub fn search(question: &str, style: Style) -> Option<String> {
    let all = question.trim().is_empty();
    let (mut found, _) = ranked(question);
    // Scripts that match far worse than the best one are noise.
    let best = found.iter().map(|(worth, ..)| *worth).max()?;
    found.retain(|(worth, ..)| 3 * worth >= best);
    found.truncate(if all { usize::MAX } else { 8 });
    Some(columns(found.iter().map(|(_, path, about)| (*path, about.as_str())), style))
}

/// At most three scripts whose names or headings have all words of a question, or what it means.
pub fn about(question: &str, style: Style) -> Option<String> {
    let (mut found, words) = ranked(question);
    found.retain(|(worth, ..)| words > 0 && *worth >= 4 * words);
    found.truncate(3);
    let lines = found.iter().map(|(_, path, about)| (*path, about.as_str()));
    (!found.is_empty()).then(|| columns(lines, style))
}

/// The scripts that have a word of a question (all for none), the best ones first, with their worth and what they are about; and how
/// many words there are.
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
    for (path, text) in SCRIPTS {
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

    const STYLE: Style = Style { colour: false, width: 100 };

    #[test]
    fn every_script_is_there() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        for folder in ["scripts", "examples"] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let path = format!("{folder}/{name}");
                assert!(!name.ends_with(".rhai") || script(&path).is_some(), "{path} is not in the list");
            }
        }
        for (path, text) in SCRIPTS {
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
