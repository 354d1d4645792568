//! The workflows written in Rhai, built in to the program. A module of several files has a folder in `stdlib/`.

use super::rooms::INTERNAL;

/// The texts of these files of `stdlib/`, one behind the other.
macro_rules! texts {
    ($($file:literal)+) => { concat!($(include_str!(concat!("../../stdlib/", $file, ".rhai"))),+) };
}

/// Modules and their texts. Functions that are private in a file are known to the other files of its line.
pub(super) const MODULES: [(&str, &str); 13] = [
    (INTERNAL, texts!("internal/checkpoint" "internal/shared")),
    ("dmrg", texts!("dmrg/finite" "dmrg/record" "dmrg/settle" "dmrg/start" "dmrg/step")),
    ("dmrg", texts!("dmrg/infinite")),
    ("dmrg", texts!("dmrg/evolution" "dmrg/time_step" "dmrg/thermal" "dmrg/spectral")),
    ("dmrg", texts!("dmrg/metts")),
    ("dmrg", texts!("dmrg/uniform" "dmrg/uniform_run")),
    ("dmrg", texts!("dmrg/excitations")),
    ("exact", texts!("exact")),
    (
        "kpm",
        texts!("kpm/conductivity" "kpm/density" "kpm/green" "kpm/moments" "kpm/occupations" "kpm/spectral"),
    ),
    (
        "meanfield",
        texts!("meanfield/iteration" "meanfield/descent" "meanfield/hubbard" "meanfield/superconductor"),
    ),
    ("models", texts!("models")),
    (
        "overlap",
        texts!("overlap/sign" "overlap/operator" "overlap/index" "overlap/solve" "overlap/propagator"),
    ),
    ("vmc", texts!("vmc")),
];

/// The modules and their texts; a module may have several.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    MODULES.into_iter()
}

/// The texts of a module; none of one that scripts do not see.
pub fn texts(module: &str) -> impl Iterator<Item = &'static str> {
    all().filter(move |(name, _)| *name == module && *name != INTERNAL).map(|(_, text)| text)
}
