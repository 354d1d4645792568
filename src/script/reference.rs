//! The reference in Markdown, made from the registry: one text (`umklapp doc --all`), or the pages of the book that
//! `umklapp doc --book` writes.

use std::collections::{BTreeMap, BTreeSet};

use super::manual::called;
use super::registry::{self, CallForm, RegisteredFunction};
use super::words::{FUNCTIONS, NUMBERS};

/// A page of the reference.
#[derive(Debug)]
pub struct ReferencePage {
    /// Its file, without a folder.
    pub file: String,
    /// What it is called in the contents.
    pub title: String,
    /// The page, in Markdown.
    pub text: String,
}

/// What each module is for. Functions that all scripts need are in none.
const MODULES: [(&str, &str); 17] = [
    (
        "bloch",
        "Results from the Bloch Hamiltonians of a model: sums over the Brillouin zone, densities of states by \
         tetrahedra, Berry \
         curvatures, Wilson loops and invariants, polarisabilities, density matrices. `m.bloch(k)` is the \
         Hamiltonian, `bands(m, ..)` gives its levels.",
    ),
    (
        "crystal",
        "Crystals for variational Monte Carlo: cells with ions, in bohr and hartree, and the empirical \
         potentials of their electrons.",
    ),
    (
        "dmrg",
        "The density-matrix renormalisation group for chains, ladders and cylinders. `dmrg::finite` finds \
         ground states and low excited states, `dmrg::uniform` ground states of infinite chains. With blocks, \
         superblocks and density matrices you can \
         write an algorithm of your own.",
    ),
    (
        "exact",
        "Exact treatment of many-body models: sums of local operators become sparse matrices in a sector \
         of conserved numbers, for `davidson`, for moments, or for time evolution.",
    ),
    (
        "gauge",
        "SU(3) gauge fields on hypercubic lattices: from functions, by the heatbath or from files; smearing \
         and flow; plaquettes, loops and topological charge.",
    ),
    (
        "jastrow",
        "Jastrow factors: symmetric functions of distances that multiply Slater determinants. Factors are \
         multiplied with `*`, and their parameters can be optimised.",
    ),
    (
        "kpm",
        "The kernel polynomial method: densities of states, spectral functions, Green's functions, \
         conductivities and time evolution of large sparse Hamiltonians, from Chebyshev moments.",
    ),
    (
        "lattice",
        "Finite lattices: Bravais lattices and your own unit cells, boundaries, vacancies, shapes. \
         Lengths are in lattice constants.",
    ),
    (
        "markers",
        "Characteristics of states without momenta: topology in real space, extent of states, level statistics, \
         entanglement of free fermions.",
    ),
    (
        "meanfield",
        "Mean-field theory, solved by iteration: fermions with repulsion or attraction, in samples and crystals; \
         magnets and superconductors.",
    ),
    ("models", "Standard many-body models as sums of operators, for `exact::operator` and `dmrg::finite`."),
    (
        "orbitals",
        "One-electron orbitals for Slater determinants: plane waves, bands of a crystal on splines, \
         Gaussians, oscillator states, your own functions.",
    ),
    (
        "overlap",
        "The overlap operator, which keeps chiral symmetry on the lattice: its sign function with an \
         error bound, index and zero modes, propagators.",
    ),
    ("solve", "Linear equations with Hermitian and other operators, by Krylov methods."),
    (
        "transport",
        "Coherent transport through samples between semi-infinite leads, or leads given by self-energies: waves, \
         scattering \
         matrices, transmissions, also between spins, local densities of states and currents.",
    ),
    (
        "vmc",
        "Variational Monte Carlo: runs and optimisation of wave functions, for electrons in crystals, \
         atoms and traps, and on lattices. With walkers and Metropolis steps you can write an algorithm of your \
         own.",
    ),
    (
        "wilson",
        "The Wilson-Dirac operator, the kernel of the overlap operator, and spinor fields. The Dirac \
         matrices are chiral, with gamma5 = diag(1, 1, -1, -1).",
    ),
];

const EVERYWHERE: &str = "Functions without a module name: numbers, Series, tables and matrices, models, \
     operators and vectors, solvers, files and plots.";

const TYPES: &str = "Methods and properties of the values of scripts, type by type. For each method, \
     `name(value, ..)` does the same as `value.name(..)`.";

/// What is documented, by its name as it is called.
type Topics<'a> = BTreeMap<String, Vec<&'a RegisteredFunction>>;

/// The reference as pages: functions of no module, the modules, the types.
pub fn pages(entries: &[RegisteredFunction]) -> Vec<ReferencePage> {
    let own = || entries.iter().filter(|e| !e.standard);
    let functions = |module: &str| {
        let mut topics = Topics::new();
        for e in own().filter(|e| e.form == CallForm::Function && e.module == module) {
            topics.entry(called(e)).or_default().push(e);
        }
        documented(topics)
    };
    let everywhere = format!(
        "{EVERYWHERE}\n\n## Functions and variables\n\n{FUNCTIONS}\n\n## Numbers\n\n{NUMBERS}\n\n\
         ## All functions\n\n{}",
        listed(&functions(""), entries)
    );
    let mut pages = vec![page("everywhere", "Functions of no module", &everywhere)];
    let modules: BTreeSet<&str> = own().map(|e| e.module.as_str()).filter(|m| !m.is_empty()).collect();
    for module in modules {
        let topics = functions(module);
        if topics.is_empty() {
            continue;
        }
        let about = MODULES.iter().find(|(name, _)| *name == module).map_or("", |(_, about)| about);
        pages.push(page(
            module,
            &format!("Module `{module}`"),
            &format!("{about}\n\n{}", listed(&topics, entries)),
        ));
    }
    let mut types: BTreeMap<&str, Topics> = BTreeMap::new();
    for e in own().filter(|e| e.form != CallForm::Function) {
        let Some(kind) = e.of_type().filter(|kind| !kind.is_empty()) else { continue };
        types.entry(kind).or_default().entry(called(e)).or_default().push(e);
    }
    let mut text = TYPES.to_string();
    for (kind, topics) in types {
        let topics = documented(topics);
        if !topics.is_empty() {
            text.push_str(&format!("\n\n## {kind}\n\n{}", listed(&topics, entries)));
        }
    }
    pages.push(page("types", "Methods of the types", &text));
    pages
}

/// The whole reference as one text.
pub fn markdown(entries: &[RegisteredFunction]) -> String {
    let mut text = format!("# Umklapp {}: reference\n", env!("CARGO_PKG_VERSION"));
    for page in pages(entries) {
        // Headings of a page go below the title of the whole.
        let mut code = false;
        for line in page.text.lines() {
            code ^= line.starts_with("```");
            let deeper = if !code && line.starts_with('#') { "#" } else { "" };
            text.push_str(&format!("\n{deeper}{line}"));
        }
        text.push('\n');
    }
    text
}

fn page(file: &str, title: &str, text: &str) -> ReferencePage {
    ReferencePage { file: format!("{file}.md"), title: title.into(), text: format!("# {title}\n\n{text}\n") }
}

fn documented(mut topics: Topics) -> Topics {
    topics.retain(|_, topic| topic.iter().any(|e| !e.doc.is_empty()));
    topics
}

/// A list of contents, then a section for each function.
fn listed(topics: &Topics, entries: &[RegisteredFunction]) -> String {
    let mut text = String::from("| | |\n| --- | --- |\n");
    for (name, topic) in topics {
        let summary = topic.iter().map(|e| e.summary()).find(|s| !s.is_empty()).unwrap_or_default();
        // A bar would end the column.
        text.push_str(&format!("| [`{name}`](#{}) | {} |\n", anchor(name), summary.replace('|', "\\|")));
    }
    for (name, topic) in topics {
        let signatures: BTreeSet<String> = topic.iter().map(|e| e.signature()).collect();
        let signatures: Vec<String> = signatures.into_iter().collect();
        text.push_str(&format!("\n### `{name}`\n\n```rhai\n{}\n```\n", signatures.join("\n")));
        // In the order of the registry, where forms that only refer to another one come last.
        let mut docs: Vec<&str> = Vec::new();
        for doc in topic.iter().map(|e| e.doc.as_str()).filter(|doc| !doc.is_empty()) {
            if !docs.contains(&doc) {
                docs.push(doc);
            }
        }
        for doc in docs {
            // Headings of a doc comment go below that of their function.
            let lines = doc.lines().map(|line| match line.strip_prefix("# ") {
                Some(title) => format!("**{title}**\n"),
                None => line.to_string(),
            });
            text.push_str(&format!("\n{}\n", lines.collect::<Vec<_>>().join("\n")));
        }
        if let Some(shown) = registry::shown_elsewhere(entries, topic) {
            text.push_str(&format!("\nThe example of `{}` shows it.\n", called(shown)));
        }
    }
    text
}

/// The name that mdBook and others give to a heading: letters and digits, in lower case.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Engine, registry};

    fn all() -> Vec<RegisteredFunction> {
        registry::entries(Engine::new().unwrap().rhai(), true)
    }

    #[test]
    fn the_reference_has_a_chapter_a_module() {
        let text = markdown(&all());
        for part in [
            "### Functions and variables\n",
            "### Numbers\n",
            "## Module `kpm`\n",
            "#### `kpm::dos`\n",
            "#### `Series.slice`\n",
            "**Options**",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }

    #[test]
    fn every_module_is_introduced() {
        for page in pages(&all()) {
            let third = page.text.lines().nth(2).unwrap_or_default();
            assert!(!third.is_empty(), "say in MODULES what `{}` is for", page.title);
        }
    }

    #[test]
    fn a_form_that_refers_to_another_comes_after_it() {
        let text = markdown(&all());
        for name in ["dmrg::purified", "kpm::green", "round"] {
            let section = text.split_once(&format!("#### `{name}`\n")).map_or("", |(_, rest)| rest);
            let section = section.split("\n#### ").next().unwrap_or_default();
            let first = section.split("```\n").nth(1).unwrap_or_default().trim_start();
            assert!(!first.is_empty() && !first.starts_with("As "), "{name}: {first}");
            assert!(section.contains("\nAs "), "{name} has such a form");
        }
    }

    #[test]
    fn contents_lead_to_their_sections() {
        for page in pages(&all()) {
            let headings: BTreeSet<String> =
                page.text.lines().filter(|l| l.starts_with("### ")).map(|l| anchor(&l[4..])).collect();
            for (_, rest) in page.text.match_indices("](#").map(|(at, _)| page.text.split_at(at + 3)) {
                let to = rest.split(')').next().unwrap_or_default();
                assert!(headings.contains(to), "`#{to}` in {}", page.file);
            }
        }
    }
}
