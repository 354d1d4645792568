//! The papers behind the functions: tables from functions to works, and the works themselves, a file a field.

mod electrons;
mod gauge;
mod manybody;
mod montecarlo;
mod numerics;
mod work;

use std::collections::BTreeSet;

pub use self::work::CitedWork;

/// Which works stand behind which functions.
type Cited = &'static [(&'static str, &'static [&'static str])];

const FIELDS: [(&[CitedWork], Cited); 5] = [
    (&numerics::WORKS, &numerics::CITED),
    (&electrons::WORKS, &electrons::CITED),
    (&manybody::WORKS, &manybody::CITED),
    (&gauge::WORKS, &gauge::CITED),
    (&montecarlo::WORKS, &montecarlo::CITED),
];

/// All works that something here rests on.
pub fn all() -> impl Iterator<Item = CitedWork> {
    FIELDS.iter().flat_map(|field| field.0).copied()
}

fn cited() -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
    FIELDS.iter().flat_map(|field| field.1)
}

/// The works behind these functions, in the order of [`all`].
pub fn works<'a>(functions: impl IntoIterator<Item = &'a str>) -> Vec<CitedWork> {
    let mut keys: BTreeSet<&str> = BTreeSet::new();
    for function in functions {
        for &(path, behind) in cited() {
            if path == function || (path.ends_with("::") && function.starts_with(path)) {
                keys.extend(behind);
            }
        }
    }
    all().filter(|work| keys.contains(&work.key)).collect()
}

/// The functions that [`works`] knows, with `module::` for all of a module.
pub fn functions() -> impl Iterator<Item = &'static str> {
    cited().map(|cited| cited.0)
}

/// The program itself, as BibTeX.
pub fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "@software{{Umklapp,\n  title = {{Umklapp: a scripting engine for quantum-lattice workflows}},\n  version = \
         {{{version}}},\n}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_cited_and_every_key_is_a_work() {
        let keys: BTreeSet<&str> = cited().flat_map(|c| c.1.iter().copied()).collect();
        let works: BTreeSet<&str> = all().map(|w| w.key).collect();
        assert_eq!(keys, works);
    }

    #[test]
    fn the_functions_exist() {
        let engine = crate::Engine::new().unwrap();
        let names = crate::script::registry::names(engine.rhai());
        for path in functions() {
            assert!(
                names.iter().any(|n| n == path || (path.ends_with("::") && n.starts_with(path))),
                "{path}"
            );
        }
    }

    #[test]
    fn a_script_of_exact_sectors_cites_davidson_and_lin() {
        let keys: Vec<&str> = works(["davidson", "exact::operator"]).iter().map(|w| w.key).collect();
        assert_eq!(keys, ["Davidson1975", "Olsen1990", "Lin1990"]);
        assert!(works(["print"]).is_empty());
    }
}
