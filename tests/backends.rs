//! Every backend against slow references: one suite, instantiated for each backend there is.

mod backends {
    pub mod spinors;
    pub mod splines;
    pub mod suite;
    pub mod walkers;
}

use std::sync::Arc;

use backends::{spinors, splines, suite, walkers};
use umklapp::backend::Device;
use umklapp::backend::cpu::{Cpu, Isa};
use umklapp::task::Interrupt;

fn cpu(threads: usize, most: Isa) -> Device {
    Arc::new(Cpu::new(threads, Interrupt::default()).expect("threads").limited_to(most))
}

macro_rules! on {
    ($name:ident, $device:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn products_agree_with_the_dense_matrix() {
                suite::products(&$device);
            }

            #[test]
            fn stencils_agree_with_their_entries() {
                suite::stencils(&$device);
            }

            #[test]
            fn the_recurrence_is_its_steps() {
                suite::recurrences(&$device);
            }

            #[test]
            fn adjoints_move_to_the_other_side() {
                suite::adjoints(&$device);
            }

            #[test]
            fn block_algebra_agrees_with_loops() {
                suite::algebra(&$device);
            }

            #[test]
            fn random_vectors_follow_the_recipe() {
                suite::random(&$device);
            }

            #[test]
            fn the_wilson_operator_is_its_definition() {
                spinors::wilson(&$device);
            }

            #[test]
            fn spinors_obey_block_algebra() {
                spinors::spinor_algebra(&$device);
            }

            #[test]
            fn splines_are_their_triple_sum() {
                splines::splines(&$device);
            }

            #[test]
            fn walkers_make_the_same_decisions() {
                walkers::walkers(&$device);
            }
        }
    };
}

on!(one_thread, cpu(1, Isa::Avx512));
on!(three_threads, cpu(3, Isa::Avx512));
on!(avx2, cpu(2, Isa::Avx2));
on!(baseline, cpu(2, Isa::Baseline));

/// On a machine with a GPU: `cargo test --release --test backends -- --ignored`.
mod cuda {
    use super::*;
    use umklapp::backend::cuda::Cuda;

    fn gpu() -> Device {
        Arc::new(Cuda::new(0, Interrupt::default()).expect("a GPU"))
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn products_agree_with_the_dense_matrix() {
        suite::products(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn stencils_agree_with_their_entries() {
        suite::stencils(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn the_recurrence_is_its_steps() {
        suite::recurrences(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn adjoints_move_to_the_other_side() {
        suite::adjoints(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn block_algebra_agrees_with_loops() {
        suite::algebra(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn random_vectors_follow_the_recipe() {
        suite::random(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn the_wilson_operator_is_its_definition() {
        spinors::wilson(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn spinors_obey_block_algebra() {
        spinors::spinor_algebra(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn splines_are_their_triple_sum() {
        splines::splines(&gpu());
    }

    #[test]
    #[ignore = "needs a GPU"]
    fn walkers_make_the_same_decisions() {
        walkers::walkers(&gpu());
    }
}
