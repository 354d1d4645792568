//! The modules of the language, filled function by function. A room may hold native functions of several files and
//! those of the stdlib.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use rhai::{Engine, Module};

/// The room of what only the stdlib calls: help, completion and the manual leave it out.
pub(super) const INTERNAL: &str = "internal";

/// An engine that functions are being registered in, and the rooms so far.
pub(super) struct Rooms<'a> {
    engine: &'a mut Engine,
    modules: BTreeMap<&'static str, Module>,
}

impl<'a> Rooms<'a> {
    pub fn new(engine: &'a mut Engine) -> Rooms<'a> {
        Rooms { engine, modules: BTreeMap::new() }
    }

    /// Puts functions into a room. Those marked `global` (methods of types, above all) are called without its name.
    pub fn room(&mut self, name: &'static str, functions: Module) {
        self.modules.entry(name).or_default().combine(functions);
    }

    /// The rooms by name.
    pub fn filled(self) -> BTreeMap<&'static str, Module> {
        self.modules
    }
}

impl Deref for Rooms<'_> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.engine
    }
}

impl DerefMut for Rooms<'_> {
    fn deref_mut(&mut self) -> &mut Engine {
        self.engine
    }
}

/// Names of version 0.1, and what they are now: scripts that use them are told.
pub(super) const MOVED: [(&str, &str); 58] = [
    ("accumulate", "kpm::accumulate"),
    ("accumulate_bytes", "kpm::accumulate_bytes"),
    ("band_density", "bloch::density"),
    ("berry_curvature", "bloch::berry_curvature"),
    ("bicgstab", "solve::bicgstab"),
    ("brillouin", "bloch::brillouin"),
    ("chebyshev_evolve", "kpm::evolve"),
    ("conjugate_gradient", "solve::conjugate_gradient"),
    ("correlated_energy", "vmc::correlated_energy"),
    ("cross_moments", "kpm::cross_moments"),
    ("dmrg_state", "dmrg::state"),
    ("double_moments", "kpm::double_moments"),
    ("exact_sampling", "vmc::exact_sampling"),
    ("exponential", "solve::exponential"),
    ("gauge::load", "load"),
    ("green_function", "kpm::green_function"),
    ("green_moments", "kpm::green_moments"),
    ("inv", "inverse"),
    ("k_path", "lattice::k_path"),
    ("kernel_factors", "kpm::kernel_factors"),
    ("lattice_pairs", "vmc::lattice_pairs"),
    ("left_edge", "dmrg::left_edge"),
    ("load_double_moments", "load"),
    ("load_moments", "load"),
    ("load_state", "load"),
    ("load_walkers", "load"),
    ("lowest_products", "dmrg::lowest_products"),
    ("matrix_market", "load"),
    ("momenta_fit", "lattice::momenta_fit"),
    ("moments_for", "kpm::moments_for"),
    ("mpo", "dmrg::mpo"),
    ("multishift_cg", "solve::multishift_cg"),
    ("nearest_sector", "dmrg::nearest_sector"),
    ("nuclei", "vmc::nuclei"),
    ("orbitals::load", "load"),
    ("overlap_operator", "overlap::operator"),
    ("overlap_solve", "overlap::solve"),
    ("parameter_step", "vmc::parameter_step"),
    ("plane_waves", "lattice::plane_waves"),
    ("polarizability", "bloch::polarizability"),
    ("polynomial", "kpm::polynomial"),
    ("project", "dmrg::project"),
    ("right_blocks", "dmrg::right_blocks"),
    ("right_edge", "dmrg::right_edge"),
    ("sign_function", "overlap::sign"),
    ("site", "models::site"),
    ("slater_koster", "lattice::slater_koster"),
    ("smallest_cuts", "dmrg::smallest_cuts"),
    ("spin_orbit", "lattice::spin_orbit"),
    ("superblock_report", "dmrg::superblock_report"),
    ("trap", "vmc::trap"),
    ("twisted", "lattice::twisted"),
    ("wannier90", "lattice::wannier90"),
    ("white_transformation", "dmrg::white_transformation"),
    ("wilson_loop", "bloch::wilson_loop"),
    ("z2", "bloch::z2"),
    ("zero_modes", "overlap::index"),
    ("zolotarev_inverse_sqrt", "overlap::zolotarev_inverse_sqrt"),
];
