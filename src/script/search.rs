//! The search in names and texts: what fits best comes first.

use std::collections::BTreeMap;

use super::manual::{TextStyle, called, columns, plain, stem};
use super::registry::{CallForm, RegisteredFunction};
use super::terms::{self, words};
use super::{absent, examples};

/// Most lines of an answer.
const MOST: usize = 24;

/// What a question is answered with: that a thing is not there, if so, and what a search finds.
pub fn answer(entries: &[RegisteredFunction], question: &str, style: TextStyle) -> Option<String> {
    match (absent::instead(question), search(entries, question, style)) {
        (None, found) => found,
        (Some(text), found) => Some(format!("{text}\n{}", found.unwrap_or_default()).trim_end().to_string()),
    }
}

/// Everything whose name or text has the words, a line each: what the field's word is for, then names, first sentences,
/// texts; scripts that are about it at the end. `None` if there is nothing.
fn search(entries: &[RegisteredFunction], question: &str, style: TextStyle) -> Option<String> {
    let asked = words(question);
    if asked.is_empty() {
        return None;
    }
    let stems: Vec<&str> = asked.iter().map(|word| stem(word)).collect();
    let meant: Vec<&str> = terms::meant(question).flat_map(|term| term.names).copied().collect();
    let mut found: BTreeMap<(usize, bool, String), String> = BTreeMap::new();
    for e in entries.iter().filter(|e| !e.doc.is_empty()) {
        let name = called(e);
        let rank = match meant.iter().position(|m| *m == name) {
            Some(place) => Some(place),
            None => rank(&name, e, &stems).map(|rank| meant.len() + rank),
        };
        let Some(rank) = rank else { continue };
        let behind = if e.standard { 100 } else { 0 };
        found.entry((rank + behind, e.form != CallForm::Function, name)).or_insert_with(|| e.summary());
    }
    let mut lines: Vec<(&str, &str)> = Vec::new();
    for ((_, _, name), summary) in &found {
        if !lines.iter().any(|(known, _)| known == name) {
            lines.push((name, summary));
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    let mut parts = Vec::new();
    if !lines.is_empty() {
        parts.push(columns(lines.into_iter(), style));
    }
    if more > 0 {
        parts.push(format!("  .. and {more} more; another word finds fewer"));
    }
    if let Some(scripts) = examples::about(question, style) {
        parts.push(format!("Scripts\n{scripts}"));
    }
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// How well an entry fits: 0 best. The words side by side in its name or its first sentence, all of them there, then
/// the same of its text.
fn rank(name: &str, e: &RegisteredFunction, stems: &[&str]) -> Option<usize> {
    let summary = format!("{name} {}", e.summary());
    let all = format!("{name} {}", prose(&e.doc));
    let (named, first, text) = (words(name), words(&summary), words(&all));
    let within = plain(name);
    let fits = [
        side_by_side(&named, stems),
        side_by_side(&first, stems),
        has_all(&named, stems) || stems.iter().all(|s| within.contains(s)),
        has_all(&first, stems),
        side_by_side(&text, stems),
        has_all(&text, stems),
    ];
    fits.iter().position(|fits| *fits)
}

fn side_by_side(text: &[String], stems: &[&str]) -> bool {
    text.windows(stems.len()).any(|part| part.iter().zip(stems).all(|(word, stem)| begins(word, stem)))
}

fn has_all(text: &[String], stems: &[&str]) -> bool {
    stems.iter().all(|stem| text.iter().any(|word| begins(word, stem)))
}

/// Whether a word begins with a stem. One or two letters are a word of their own: many words begin with them.
fn begins(word: &str, stem: &str) -> bool {
    if stem.len() > 2 { word.starts_with(stem) } else { word == stem }
}

/// A doc comment without its examples.
fn prose(doc: &str) -> String {
    let mut code = false;
    let lines = doc.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    lines.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Engine, registry};

    const STYLE: TextStyle = TextStyle { colour: false, width: 80 };

    fn all() -> Vec<RegisteredFunction> {
        registry::entries(Engine::new().unwrap().rhai(), true)
    }

    /// The names that an answer begins with.
    fn first(entries: &[RegisteredFunction], question: &str, count: usize) -> Vec<String> {
        let found = search(entries, question, STYLE).unwrap_or_default();
        found.lines().take(count).filter_map(|l| l.split_whitespace().next()).map(str::to_string).collect()
    }

    #[test]
    fn texts_and_names_are_found() {
        let all = all();
        assert!(search(&all, "trapezoidal", STYLE).unwrap().contains("Series.integrate"));
        assert_eq!(first(&all, "linspace", 1), ["linspace"]);
        assert!(first(&all, "space", 3).contains(&"linspace".to_string()), "a part of a name");
        assert!(search(&all, "zebra", STYLE).is_none() && search(&all, " ", STYLE).is_none());
    }

    #[test]
    fn what_fits_best_comes_first() {
        let all = all();
        for (question, name) in [
            ("density of states", "kpm::dos"),
            ("band structure", "bands"),
            ("TEBD", "dmrg::evolve"),
            ("berry phase", "bloch::berry_phase"),
            ("participation ratio", "markers::participation"),
            ("gradient flow", "gauge::wilson_flow"),
            ("bond dimension", "dmrg::finite"),
            ("topological charge", "gauge::topological_charge"),
            ("local density of states", "kpm::ldos"),
            ("ground state", "davidson"),
            ("moire", "Model.hop_within"),
            ("leads", "transport::lead"),
            ("superfluid stiffness", "lattice::twisted"),
            ("spin structure factor", "DmrgState.spin_correlations"),
        ] {
            let found = first(&all, question, 3);
            assert!(found.iter().any(|f| f == name), "{question}: {found:?}");
        }
        let spins = search(&all, "su(2)", STYLE).unwrap_or_default();
        assert!(
            !spins.contains("chern_number") && !spins.contains("honeycomb"),
            "no beginnings of words: {spins}"
        );
        let edges = search(&all, "edge states", STYLE).unwrap();
        assert!(!edges.contains("Block.grow"), "examples are no texts: {edges}");
        assert!(search(&all, "quantum hall", STYLE).unwrap().contains("scripts/"), "scripts are found too");
    }
}
