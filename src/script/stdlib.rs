//! The workflows written in Rhai, built in to the program.

/// Name and source of every stdlib module.
pub(super) const MODULES: [(&str, &str); 14] = [
    (super::rooms::INTERNAL, include_str!("../../stdlib/checkpoint.rhai")),
    (super::rooms::INTERNAL, include_str!("../../stdlib/shared.rhai")),
    ("dmrg", include_str!("../../stdlib/dmrg.rhai")),
    ("dmrg", include_str!("../../stdlib/states.rhai")),
    ("dmrg", include_str!("../../stdlib/metts.rhai")),
    ("dmrg", include_str!("../../stdlib/uniform.rhai")),
    ("dmrg", include_str!("../../stdlib/excitations.rhai")),
    ("exact", include_str!("../../stdlib/exact.rhai")),
    ("kpm", include_str!("../../stdlib/kpm.rhai")),
    ("kpm", include_str!("../../stdlib/occupations.rhai")),
    ("meanfield", include_str!("../../stdlib/meanfield.rhai")),
    ("models", include_str!("../../stdlib/models.rhai")),
    ("vmc", include_str!("../../stdlib/vmc.rhai")),
    ("overlap", include_str!("../../stdlib/overlap.rhai")),
];

/// The source of a module of the stdlib.
pub fn source(module: &str) -> Option<&'static str> {
    MODULES.iter().find(|(name, _)| *name == module && *name != super::rooms::INTERNAL).map(|(_, text)| *text)
}
