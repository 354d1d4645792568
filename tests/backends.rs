//! Every backend against slow references: one suite, instantiated for each backend there is.

mod capabilities;
mod faces;
mod lattices;
mod spinors;
mod splines;
mod suite;
mod superblocks;
mod walkers;

use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use umklapp::backend::Device;
use umklapp::backend::cpu::{Cpu, Isa};
use umklapp::backend::cuda::Cuda;
use umklapp::backend::split::SplitBackend;
use umklapp::task::Interrupt;

fn cpu(threads: usize, most: Isa) -> Device {
    Arc::new(Cpu::new(threads, Interrupt::default()).expect("threads").limited_to(most))
}

/// Rows shared out by weight, whoever computes them.
fn split(parts: &[Device], weights: &[f64]) -> Device {
    Arc::new(SplitBackend::new(parts.to_vec(), Some(weights.to_vec()), |_| {}).expect("parts"))
}

macro_rules! on {
    ($name:ident, $device:expr $(, $attribute:meta)?) => {
        mod $name {
            use super::*;

            #[test]
            $(#[$attribute])?
            fn products_agree_with_the_dense_matrix() {
                suite::products(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn stencils_agree_with_their_entries() {
                suite::stencils(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn lattices_agree_with_their_entries() {
                lattices::lattices(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn the_recurrence_is_its_steps() {
                suite::recurrences(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn steps_that_share_a_launch_are_steps() {
                lattices::recurrences(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn rows_that_stay_on_the_chip_make_their_steps() {
                lattices::plain_recurrences(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn adjoints_move_to_the_other_side() {
                suite::adjoints(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn wrappers_can_do_what_they_wrap() {
                capabilities::wrappers(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn multiples_have_the_moments_of_the_operator() {
                capabilities::moments(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn block_algebra_agrees_with_loops() {
                suite::algebra(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn products_of_lists_agree_with_loops() {
                suite::lists(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn corrections_agree_with_loops() {
                suite::corrections(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn random_vectors_follow_the_recipe() {
                suite::random(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn the_wilson_operator_is_its_definition() {
                spinors::wilson(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn boxes_of_a_lattice_hand_half_spinors_over() {
                faces::boxes(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn sign_functions_repeat_themselves() {
                spinors::signs(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn spinors_obey_block_algebra() {
                spinors::spinor_algebra(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn splines_are_their_triple_sum() {
                splines::splines(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn superblocks_are_the_sums_of_their_records() {
                superblocks::superblocks(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn walkers_make_the_same_decisions() {
                walkers::walkers(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn walkers_of_sums_of_determinants_too() {
                walkers::sums(&$device);
            }

            #[test]
            $(#[$attribute])?
            fn few_walkers_by_all_schemes() {
                walkers::few(&$device);
            }
        }
    };
}

on!(one_thread, cpu(1, Isa::Avx512));
on!(three_threads, cpu(3, Isa::Avx512));
on!(avx2, cpu(2, Isa::Avx2));
on!(baseline, cpu(2, Isa::Baseline));
on!(shared_evenly, split(&[cpu(1, Isa::Avx512), cpu(2, Isa::Avx512)], &[1.0, 1.0]));
on!(shared_unevenly, split(&[cpu(1, Isa::Avx512), cpu(1, Isa::Avx2)], &[1.0, 3.0]));
on!(
    shared_by_three,
    split(&[cpu(1, Isa::Avx512), cpu(1, Isa::Avx512), cpu(1, Isa::Avx512)], &[5.0, 0.1, 3.0])
);

/// Tests of several GPUs have them for themselves. A kernel that waits for another GPU may not end before the test's
/// thread has queued what it waits for; opening a GPU waits for all kernels there, and holds what that thread needs.
static GPUS: RwLock<()> = RwLock::new(());

/// What a test uses while it has its turn.
struct Turn<T, G> {
    of: T,
    _turn: G,
}

impl<T, G> Deref for Turn<T, G> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

/// Beside other tests of one GPU.
fn beside<T>(of: impl FnOnce() -> T) -> Turn<T, RwLockReadGuard<'static, ()>> {
    let _turn = GPUS.read().unwrap_or_else(PoisonError::into_inner);
    Turn { of: of(), _turn }
}

/// Beside no other test of GPUs.
fn alone<T>(of: impl FnOnce() -> T) -> Turn<T, RwLockWriteGuard<'static, ()>> {
    let _turn = GPUS.write().unwrap_or_else(PoisonError::into_inner);
    Turn { of: of(), _turn }
}

fn gpu_number(number: u32) -> Device {
    Arc::new(Cuda::new(number, Interrupt::default()).expect("a GPU"))
}

fn gpu() -> Device {
    gpu_number(0)
}

fn both_gpus() -> [Device; 2] {
    [gpu(), gpu_number(1)]
}

// On a machine with a GPU: `cargo test --release --test suite -- --ignored backends::`, with `--skip two_gpus` where
// there is only one.
on!(cuda, beside(gpu), ignore = "needs a GPU");
on!(cpu_and_cuda, beside(|| split(&[cpu(2, Isa::Avx512), gpu()], &[1.0, 2.0])), ignore = "needs a GPU");
on!(cuda_twice, beside(|| split(&[gpu(), gpu()], &[3.0, 1.0])), ignore = "needs a GPU");
on!(two_gpus, alone(|| split(&both_gpus(), &[1.0, 1.0])), ignore = "needs two GPUs");
on!(two_gpus_unevenly, alone(|| split(&[gpu_number(1), gpu()], &[5.0, 1.0])), ignore = "needs two GPUs");

/// Random blocks of every type and distribution on a backend.
fn random_blocks(device: &Device) -> Vec<(String, Vec<umklapp::number::C64>)> {
    use umklapp::backend::{Random, Rows, VectorDistribution};
    use umklapp::number::{DType, philox::Stream};
    let mut blocks = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::C32, DType::C64] {
        for distribution in
            [VectorDistribution::Sign, VectorDistribution::Phase, VectorDistribution::Gaussian]
        {
            if distribution == VectorDistribution::Phase && !dtype.is_complex() {
                continue;
            }
            let mut v = device.zeros(dtype, Rows::all(7777), 3).expect("a block");
            let random = Random { seed: 5, stream: Stream::Vectors, first_column: 2, distribution };
            device.fill_random(&mut v, random).expect("random numbers");
            blocks.push((format!("{dtype} {distribution:?}"), device.download(&v).expect("numbers")));
        }
    }
    blocks
}

/// Bit for bit.
fn same_blocks(one: &Device, other: &Device) {
    for ((what, a), (_, b)) in random_blocks(one).iter().zip(&random_blocks(other)) {
        let differ = a
            .iter()
            .zip(b)
            .position(|(a, b)| (a.re.to_bits(), a.im.to_bits()) != (b.re.to_bits(), b.im.to_bits()));
        assert!(differ.is_none() && a.len() == b.len(), "{what}: number {differ:?}");
    }
}

#[test]
fn random_numbers_do_not_depend_on_who_holds_them() {
    let one = || cpu(1, Isa::Avx512);
    same_blocks(&one(), &cpu(2, Isa::Avx2));
    for weights in [[1.0, 1.0, 1.0], [1.0, 9.0, 0.01], [0.0, 1.0, 5.0]] {
        same_blocks(&one(), &split(&[one(), one(), one()], &weights));
    }
}

#[test]
#[ignore = "needs a GPU"]
fn random_numbers_of_a_gpu_are_those_of_the_cpu() {
    same_blocks(&cpu(1, Isa::Avx512), &beside(gpu));
}

#[test]
#[ignore = "needs a GPU"]
fn large_lattices_on_a_gpu_agree_with_their_entries() {
    lattices::large(&gpu());
}

#[test]
#[ignore = "needs a GPU"]
fn large_wilson_operators_on_a_gpu_are_their_definition() {
    spinors::large(&beside(gpu));
}

#[test]
#[ignore = "needs a GPU"]
fn some_rows_of_superblocks_are_those_of_all() {
    let gpu = beside(gpu);
    superblocks::shared([&gpu, &gpu]);
}

#[test]
#[ignore = "needs a GPU"]
fn operators_turn_on_a_gpu() {
    superblocks::turns(&beside(gpu));
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_keeps_matrices() {
    superblocks::kept(&beside(gpu));
}

#[test]
#[ignore = "needs two GPUs"]
fn superblocks_are_shared_by_two_gpus() {
    let gpus = alone(both_gpus);
    superblocks::shared(gpus.each_ref());
}

#[test]
#[ignore = "needs two GPUs"]
fn a_gpu_solves_what_another_keeps() {
    let gpus = alone(both_gpus);
    superblocks::solved_for_another(&gpus[0], &gpus[1]);
}

#[test]
#[ignore = "needs two GPUs"]
fn half_spinors_pass_between_two_gpus() {
    let gpus = alone(both_gpus);
    faces::linked(gpus.each_ref());
}

#[test]
#[ignore = "needs two GPUs"]
fn threads_share_two_gpus() {
    let _turn = alone(|| ());
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| suite::products(&split(&both_gpus(), &[1.0, 1.0])));
        }
    });
}
