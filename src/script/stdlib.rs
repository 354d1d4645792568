//! The workflows written in Rhai, built in to the program.

/// Name and source of every stdlib module.
pub(super) const MODULES: [(&str, &str); 4] = [
    ("dmrg", include_str!("../../stdlib/dmrg.rhai")),
    ("kpm", include_str!("../../stdlib/kpm.rhai")),
    ("models", include_str!("../../stdlib/models.rhai")),
    ("overlap", include_str!("../../stdlib/overlap.rhai")),
];
