//! The search in names and texts: what fits best comes first.

use std::collections::BTreeMap;

use super::manual::{Style, called, columns, plain, stem};
use super::registry::{Entry, Form};
use super::{absent, examples};

/// Most lines of an answer.
const MOST: usize = 24;

/// The fields' words for what has another name here, or a text that does not say them. A test looks for the names.
const TERMS: [(&[&str], &[&str]); 46] = [
    (&["dos"], &["kpm::dos", "bloch::density"]),
    (&["band structure", "dispersion", "bandstructure"], &["bands", "lattice::k_path"]),
    (&["edge states", "surface states"], &["kpm::ldos", "Lead.surface", "bloch::wilson_loop"]),
    (&["self energy", "surface green function"], &["Lead.surface"]),
    (
        &["attach lead", "attach leads", "scattering region", "landauer"],
        &["transport::system", "transport::lead"],
    ),
    (
        &["conductance", "scattering matrix", "smatrix", "s matrix"],
        &["Sample.scattering", "Sample.transmission"],
    ),
    (
        &["kubo", "kubo bastin", "kubo greenwood", "hall conductivity", "single shot conductivity"],
        &["kpm::conductivity"],
    ),
    (&["drude", "optical response"], &["kpm::optical_conductivity"]),
    (&["peierls", "magnetic field", "magnetic flux", "landau levels", "hofstadter"], &["Model.flux"]),
    (&["supercell", "moire", "twisted bilayer"], &["lattice::twisted", "Model.build", "Model.hop_within"]),
    (&["berry phase", "zak phase", "wannier centres", "wannier centers"], &["bloch::wilson_loop"]),
    (&["chern"], &["chern_number", "markers::chern"]),
    (&["inverse participation ratio", "participation ratio", "ipr"], &["markers::participation"]),
    (&["level statistics", "level spacing"], &["markers::level_ratio"]),
    (
        &["superconductor", "superconductivity", "bdg", "bogoliubov", "nambu"],
        &["Model.pairing", "meanfield::superconductor"],
    ),
    (&["hartree fock", "self consistent"], &["meanfield::hubbard", "meanfield::superconductor"]),
    (&["anderson", "disorder"], &["Model.disorder", "Model.bond_disorder"]),
    (
        &["eigenvalues", "diagonalise", "exact diagonalisation", "ground state"],
        &["davidson", "eigs", "Matrix.eigh", "dmrg::finite"],
    ),
    (&["shift invert", "interior eigenvalues"], &["eigs"]),
    (&["matrix exponential"], &["Matrix.expm", "solve::exponential"]),
    (&["wave packet", "time evolution", "quench"], &["kpm::evolve", "exact::evolve", "dmrg::evolve"]),
    (&["tebd", "tdvp", "real time"], &["dmrg::evolve"]),
    (&["mps", "matrix product state", "tensor train"], &["product_state", "dmrg::finite", "dmrg::state"]),
    (&["mpo", "matrix product operator"], &["dmrg::mpo", "dmrg::cell_mpo"]),
    (&["bond dimension"], &["dmrg::finite", "DmrgState.states"]),
    (&["truncation error", "discarded weight"], &["DmrgState.discarded"]),
    (
        &["vumps", "idmrg", "imps", "infinite chain", "thermodynamic limit"],
        &["dmrg::uniform", "dmrg::infinite"],
    ),
    (&["excitations", "quasiparticle", "magnon"], &["dmrg::uniform_excitations", "dmrg::spectral"]),
    (
        &["purification", "ancilla", "finite temperature"],
        &["dmrg::purified", "dmrg::thermal", "exact::thermal"],
    ),
    (
        &["spin spin correlation", "correlation function"],
        &["DmrgState.spin_correlations", "DmrgState.correlations"],
    ),
    (&["dynamical structure factor", "spectral function"], &["dmrg::spectral", "kpm::spectral_function"]),
    (&["entanglement entropy"], &["DmrgState.entropy", "exact::entanglement", "markers::entanglement"]),
    (&["momentum sector", "translation symmetry"], &["exact::translation", "exact::operator"]),
    (&["quantum monte carlo", "qmc", "variational monte carlo"], &["vmc::run", "walkers"]),
    (&["stochastic reconfiguration", "natural gradient"], &["vmc::optimise"]),
    (&["slater determinant"], &["slater_jastrow"]),
    (&["pseudopotential"], &["crystal::semiconductor", "crystal::custom", "vmc::nuclei"]),
    (&["ewald", "madelung"], &["Crystal.madelung"]),
    (&["binning", "jackknife", "error bar", "reblocking"], &["blocked", "autocorrelation"]),
    (&["gradient flow", "smearing"], &["gauge::wilson_flow", "gauge::stout", "gauge::ape"]),
    (&["pure gauge", "quenched"], &["gauge::heatbath", "gauge::overrelax"]),
    (&["dirac", "wilson fermions", "quark propagator"], &["wilson::operator", "overlap::propagator"]),
    (&["multishift", "multi shift"], &["solve::multishift_cg"]),
    (&["eigenvector deflation", "deflation"], &["overlap::normal", "overlap::index", "ritz"]),
    (&["fourier transform", "fft"], &["lattice::plane_waves"]),
    (&["random matrix", "random vector"], &["random_numbers", "random_block"]),
];

/// What a question is answered with: that a thing is not there, if so, and what a search finds.
pub fn answer(entries: &[Entry], question: &str, style: Style) -> Option<String> {
    match (absent::instead(question), search(entries, question, style)) {
        (None, found) => found,
        (Some(text), found) => Some(format!("{text}\n{}", found.unwrap_or_default()).trim_end().to_string()),
    }
}

/// Everything whose name or text has the words, a line each: what the field's word is for, then names, first sentences, texts; scripts
/// that are about it at the end. `None` if there is nothing.
fn search(entries: &[Entry], question: &str, style: Style) -> Option<String> {
    let asked = words(question);
    if asked.is_empty() {
        return None;
    }
    let stems: Vec<&str> = asked.iter().map(|word| stem(word)).collect();
    let meant: Vec<&str> = TERMS
        .iter()
        .filter(|(terms, _)| means(&stems, terms))
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let mut found: BTreeMap<(usize, bool, String), String> = BTreeMap::new();
    for e in entries.iter().filter(|e| !e.doc.is_empty()) {
        let name = called(e);
        let rank = match meant.iter().position(|m| *m == name) {
            Some(place) => Some(place),
            None => rank(&name, e, &stems).map(|rank| meant.len() + rank),
        };
        let Some(rank) = rank else { continue };
        let behind = if e.standard { 100 } else { 0 };
        found.entry((rank + behind, e.form != Form::Function, name)).or_insert_with(|| e.summary());
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

/// How well an entry fits: 0 best. The words side by side in its name or its first sentence, all of them there, then the same of its
/// text.
fn rank(name: &str, e: &Entry, stems: &[&str]) -> Option<usize> {
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

/// Whether a question has a term of the field.
fn means(stems: &[&str], terms: &[&str]) -> bool {
    let asked: Vec<String> = stems.iter().map(|s| s.to_string()).collect();
    terms.iter().any(|term| {
        let term = words(term);
        let term: Vec<&str> = term.iter().map(|word| stem(word)).collect();
        let at = |from: &[String]| from.len() >= term.len() && from.iter().zip(&term).all(|(a, b)| a == b);
        (0..asked.len()).any(|k| at(&asked[k..]))
    })
}

fn side_by_side(text: &[String], stems: &[&str]) -> bool {
    text.windows(stems.len()).any(|part| part.iter().zip(stems).all(|(word, stem)| word.starts_with(stem)))
}

fn has_all(text: &[String], stems: &[&str]) -> bool {
    stems.iter().all(|stem| text.iter().any(|word| word.starts_with(stem)))
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

/// The words of a text, in the letters that are compared.
fn words(text: &str) -> Vec<String> {
    let plain = plain(text);
    plain.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Engine, registry};

    const STYLE: Style = Style { colour: false, width: 80 };

    fn all() -> Vec<Entry> {
        registry::entries(Engine::new().unwrap().rhai(), true)
    }

    /// The names that an answer begins with.
    fn first(entries: &[Entry], question: &str, count: usize) -> Vec<String> {
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
            ("berry phase", "bloch::wilson_loop"),
            ("participation ratio", "markers::participation"),
            ("gradient flow", "gauge::wilson_flow"),
            ("bond dimension", "dmrg::finite"),
            ("topological charge", "gauge::topological_charge"),
            ("local density of states", "kpm::ldos"),
            ("ground state", "davidson"),
        ] {
            let found = first(&all, question, 3);
            assert!(found.iter().any(|f| f == name), "{question}: {found:?}");
        }
        let edges = search(&all, "edge states", STYLE).unwrap();
        assert!(!edges.contains("Block.grow"), "examples are no texts: {edges}");
        assert!(search(&all, "quantum hall", STYLE).unwrap().contains("scripts/"), "scripts are found too");
    }

    #[test]
    fn terms_name_what_there_is() {
        let names: Vec<String> = all().iter().map(called).collect();
        let missing: Vec<&str> = TERMS
            .iter()
            .flat_map(|(_, to)| *to)
            .copied()
            .filter(|to| !names.iter().any(|n| n == to))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
