//! The fields' words for what has another name here, and how a question is compared with them.

use super::manual::{plain, stem};

/// What the fields call something that has another name here, or whose text does not say their word.
pub(super) struct FieldTerm {
    words: &'static [&'static str],
    /// The functions that serve, the best one first. A test looks for them.
    pub names: &'static [&'static str],
    /// What scripts about it say in their headings; empty where they say the same.
    pub scripts: &'static str,
}

const fn term(
    words: &'static [&'static str],
    names: &'static [&'static str],
    scripts: &'static str,
) -> FieldTerm {
    FieldTerm { words, names, scripts }
}

const TERMS: [FieldTerm; 64] = [
    term(&["dos"], &["kpm::dos", "bloch::density"], "density of states"),
    term(&["ldos"], &["kpm::ldos", "kpm::ldos_map"], "density of states"),
    term(&["density of states", "spectrum"], &[], "density of states"),
    term(&["band structure", "dispersion", "bandstructure"], &["bands", "lattice::k_path"], "bands"),
    term(&["bloch"], &[], "bands"),
    term(&["edge states", "surface states"], &["kpm::ldos", "Lead.surface", "bloch::wilson_loop"], ""),
    term(&["self energy", "surface green function"], &["Lead.surface", "transport::contact"], ""),
    term(&["wide band", "wide-band", "escape rate", "buttiker probe"], &["transport::contact"], "transport"),
    term(
        &["spin current", "spintronics", "conservation law"],
        &["transport::lead", "Sample.currents"],
        "transport",
    ),
    term(
        &["attach lead", "attach leads", "scattering region", "landauer", "leads"],
        &["transport::lead", "transport::system"],
        "transport",
    ),
    term(
        &["scattering matrix", "smatrix", "s matrix", "transmission"],
        &["Sample.scattering", "Sample.transmission"],
        "transport",
    ),
    term(&["shot noise", "fano factor", "noise power"], &["Sample.shot_noise"], "transport"),
    term(
        &["conductance", "conductance matrix", "resistance", "hall resistance", "longitudinal resistance"],
        &["Sample.conductance", "Sample.resistance"],
        "transport",
    ),
    term(
        &[
            "kubo",
            "kubo bastin",
            "kubo greenwood",
            "hall conductivity",
            "single shot conductivity",
            "conductivity",
        ],
        &["kpm::conductivity"],
        "transport",
    ),
    term(&["hall effect", "quantum hall", "topology", "topological"], &[], "chern"),
    term(&["drude", "optical response"], &["kpm::optical_conductivity"], ""),
    term(
        &["second harmonic", "nonlinear optics", "shift current", "injection current", "photogalvanic"],
        &["bloch::second_order_conductivity"],
        "",
    ),
    term(&["peierls", "magnetic field", "magnetic flux", "landau levels", "hofstadter"], &["Model.flux"], ""),
    term(&["supercell", "moire", "twisted bilayer"], &["Model.hop_within", "Model.build"], ""),
    term(&["stiffness", "superfluid", "twisted boundary", "drude weight"], &["lattice::twisted"], ""),
    term(&["berry phase", "zak phase"], &["bloch::berry_phase", "bloch::wilson_loop"], ""),
    term(&["wannier centres", "wannier centers"], &["bloch::wannier_centres", "bloch::wilson_loop"], ""),
    term(&["anomalous hall", "spin hall"], &["bloch::conductivity"], ""),
    term(&["chern"], &["chern_number", "markers::chern"], ""),
    term(&["inverse participation ratio", "participation ratio", "ipr"], &["markers::participation"], ""),
    term(&["level statistics", "level spacing"], &["markers::level_ratio"], ""),
    term(
        &["superconductor", "superconductivity", "bdg", "bogoliubov", "nambu", "d wave"],
        &["Model.pairing", "meanfield::superconductor"],
        "",
    ),
    term(
        &["hartree fock", "self consistent", "extended hubbard", "charge density wave"],
        &["meanfield::hubbard", "meanfield::spinless", "meanfield::superconductor"],
        "",
    ),
    term(
        &["anderson", "disorder", "localisation", "impurity"],
        &["Model.disorder", "Model.bond_disorder"],
        "disorder",
    ),
    term(&["defects", "defect", "holes", "missing"], &["Model.defects", "Model.vacancies"], "vacancy"),
    term(
        &["eigenvalues", "diagonalise", "ground state"],
        &["davidson", "eigs", "Matrix.eigh", "dmrg::finite"],
        "",
    ),
    term(
        &["exact diagonalisation", "ed", "lanczos"],
        &["davidson", "lanczos", "exact::operator"],
        "davidson",
    ),
    term(&["shift invert", "interior eigenvalues"], &["eigs"], ""),
    term(&["matrix exponential"], &["Matrix.expm", "solve::exponential"], ""),
    term(
        &["wave packet", "time evolution", "quench", "quantum dynamics"],
        &["kpm::evolve", "exact::evolve", "dmrg::evolve"],
        "tdvp",
    ),
    term(&["tebd", "tdvp", "real time"], &["dmrg::evolve"], "tdvp"),
    term(
        &["periodic driving", "time dependent", "ramp", "adiabatic", "floquet"],
        &["exact::evolve", "dmrg::evolve"],
        "time-dependent hamiltonians",
    ),
    term(
        &["mps", "matrix product state", "tensor train", "tensor network"],
        &["product_state", "dmrg::finite", "dmrg::state"],
        "dmrg",
    ),
    term(&["mpo", "matrix product operator"], &["dmrg::mpo", "dmrg::cell_mpo"], ""),
    term(&["bond dimension"], &["dmrg::finite", "DmrgState.states"], ""),
    term(&["truncation error", "discarded weight"], &["DmrgState.discarded"], ""),
    term(
        &[
            "vumps",
            "idmrg",
            "imps",
            "infinite mps",
            "uniform mps",
            "infinite chain",
            "thermodynamic limit",
            "central charge",
        ],
        &["dmrg::uniform", "dmrg::infinite"],
        "infinite chains",
    ),
    term(&["excitations", "quasiparticle", "magnon"], &["dmrg::uniform_excitations", "dmrg::spectral"], ""),
    term(
        &["purification", "ancilla", "finite temperature", "specific heat", "thermodynamics"],
        &["dmrg::purified", "dmrg::thermal", "exact::thermal"],
        "temperature",
    ),
    term(
        &[
            "spin spin correlation",
            "correlation function",
            "spin structure factor",
            "static structure factor",
        ],
        &["DmrgState.spin_correlations", "DmrgState.correlations"],
        "",
    ),
    term(
        &["dynamical structure factor", "spectral function"],
        &["dmrg::spectral", "kpm::spectral_function"],
        "",
    ),
    term(
        &["entanglement entropy", "entropy"],
        &["DmrgState.entropy", "exact::entanglement", "markers::entanglement"],
        "",
    ),
    term(&["momentum sector", "translation symmetry"], &["exact::translation", "exact::operator"], ""),
    term(
        &["quantum monte carlo", "qmc", "variational monte carlo", "vmc"],
        &["vmc::run", "walkers"],
        "metropolis",
    ),
    term(&["stochastic reconfiguration", "natural gradient"], &["vmc::optimise"], ""),
    term(&["slater determinant"], &["slater_jastrow"], ""),
    term(&["pseudopotential"], &["crystal::semiconductor", "crystal::custom", "vmc::nuclei"], ""),
    term(&["ewald", "madelung"], &["Crystal.madelung"], ""),
    term(&["binning", "jackknife", "error bar", "reblocking"], &["blocked", "autocorrelation"], ""),
    term(&["gradient flow", "smearing"], &["gauge::wilson_flow", "gauge::stout", "gauge::ape"], ""),
    term(&["pure gauge", "quenched"], &["gauge::heatbath", "gauge::overrelax"], ""),
    term(&["dirac", "wilson fermions", "quark propagator"], &["wilson::operator", "overlap::propagator"], ""),
    term(&["qcd", "quarks", "propagator", "lattice gauge theory", "chiral"], &[], "overlap"),
    term(&["spin chain", "magnetism", "antiferromagnet"], &["models::heisenberg"], "heisenberg"),
    term(&["multishift", "multi shift"], &["solve::multishift_cg"], ""),
    term(&["eigenvector deflation", "deflation"], &["overlap::normal", "overlap::index", "ritz"], ""),
    term(&["fourier transform", "fft"], &["lattice::plane_waves"], ""),
    term(&["random matrix", "random vector"], &["random_numbers", "random_block"], ""),
    term(&["gpu", "cuda", "benchmark", "speed"], &[], "gpu"),
];

/// The terms that a question has.
pub(super) fn meant(question: &str) -> impl Iterator<Item = &'static FieldTerm> + use<'_> {
    TERMS.iter().filter(|term| means(question, term.words))
}

/// Whether a question has one of these words, or several side by side as they stand in it.
pub(super) fn means(question: &str, terms: &[&str]) -> bool {
    let stems =
        |text: &str| -> Vec<String> { words(text).iter().map(|word| stem(word).to_string()).collect() };
    let asked = stems(question);
    terms.iter().map(|term| stems(term)).any(|term| asked.windows(term.len()).any(|part| part == term))
}

/// The words of a text, in the letters that are compared.
pub(super) fn words(text: &str) -> Vec<String> {
    let plain = plain(text);
    plain.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::manual::called;
    use crate::script::{Engine, registry};

    #[test]
    fn terms_name_what_there_is() {
        let engine = Engine::new().unwrap();
        let names: Vec<String> = registry::entries(engine.rhai(), true).iter().map(called).collect();
        let all = TERMS.iter().flat_map(|term| term.names).copied();
        let missing: Vec<&str> = all.filter(|to| !names.iter().any(|n| n == to)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_question_means_whole_words() {
        assert!(means("how do I get a band structure?", &["band structure"]));
        assert!(means("Time-dependent Hamiltonians", &["time dependent"]) && means("magnons", &["magnon"]));
        assert!(!means("the structure of a band", &["band structure"]) && !means("sse2x", &["sse"]));
    }
}
