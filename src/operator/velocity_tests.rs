//! Velocities of models drawn at random: on open clusters against i [H, x] with the positions of the rows, on periodic
//! ones against derivatives by the phases of the boundaries.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::backend::Device;
use crate::backend::cpu::Cpu;
use crate::backend::matrix::Wrap;
use crate::lattice::{Bond, Lattice, LatticeSite, Model, OrbitalBlock};
use crate::number::C64;
use crate::task::{Interrupt, Task};

const I: C64 = C64::new(0.0, 1.0);

fn device() -> Device {
    static DEVICE: LazyLock<Device> =
        LazyLock::new(|| Arc::new(Cpu::new(1, Interrupt::default()).expect("a thread")));
    DEVICE.clone()
}

/// A plain generator of numbers for the drawing of models.
struct Dice(u64);

impl Dice {
    fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.real() + 0.5) * n as f64) as usize
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    fn vector(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.real()).collect()
    }

    fn block(&mut self, n: usize) -> OrbitalBlock {
        OrbitalBlock::new(n, (0..n * n).map(|_| C64::new(self.real(), self.real())).collect()).unwrap()
    }

    fn hermitian(&mut self, n: usize) -> OrbitalBlock {
        let mut block = self.block(n);
        let dagger = block.dagger();
        block.add(&dagger);
        block
    }
}

/// What the draw of a model was.
struct Drawn {
    model: Model,
    /// Cartesian positions of the rows, as strained.
    places: Vec<Vec<f64>>,
    /// What a step round each direction moves by.
    periods: Vec<Vec<f64>>,
}

/// A model by everything that models have; `wrap` are the boundaries, strains of periodic ones are linear.
fn draw(seed: u64, wrap: impl Fn(usize) -> Wrap) -> Drawn {
    let mut dice = Dice(seed);
    (0..8).for_each(|_| {
        dice.real();
    });
    let d = 1 + dice.below(3);
    let space = d + dice.below(2);
    let cells: Vec<usize> = (0..d).map(|_| 1 + dice.below(if d == 3 { 3 } else { 4 })).collect();
    let vectors: Vec<Vec<f64>> = (0..d)
        .map(|k| {
            let mut v = dice.vector(space);
            v[k] += 1.5;
            v
        })
        .collect();
    let sites = 1 + dice.below(3);
    // Two sites may lie above each other.
    let basis = (0..sites)
        .map(|s| {
            let mut position = dice.vector(space);
            if s == 1 && dice.yes() {
                position[..d].fill(0.0);
            }
            LatticeSite { name: format!("{s}"), position }
        })
        .collect();
    let nearest = (0..d)
        .map(|k| Bond { shift: (0..d).map(|j| i64::from(j == k)).collect(), from: 0, to: sites - 1 })
        .collect();
    let wraps: Vec<Wrap> = (0..d).map(&wrap).collect();
    let open = wraps.iter().all(|w| *w == Wrap::Open);
    let lattice = Lattice::custom("drawn", vectors.clone(), basis, nearest, cells.clone()).unwrap();
    let orbitals = 1 + dice.below(2);
    let mut model = Model::new(lattice.boundary(&wraps).unwrap(), orbitals).unwrap();
    let mut offsets = vec![vec![0.0; space]; sites * orbitals];
    let task = Task::default();
    if dice.below(3) == 0 {
        offsets = (0..sites * orbitals).map(|_| dice.vector(space)).collect();
        model.place_orbitals(offsets.clone()).unwrap();
    }
    model.nearest(&dice.block(orbitals)).unwrap();
    model.onsite(&dice.hermitian(orbitals)).unwrap();
    model.disorder(1.0, seed).unwrap();
    for _ in 0..1 + dice.below(3) {
        // Longer than half the sample, and than all of it.
        let shift: Vec<i64> = (0..d).map(|_| dice.below(9) as i64 - 4).collect();
        let (from, to) = (dice.below(sites), dice.below(sites));
        if from != to || shift.iter().any(|&x| x != 0) {
            model.hop_between(&shift, from, to, &dice.block(orbitals)).unwrap();
        }
    }
    if dice.below(3) == 0 {
        let (a, b) = (dice.block(orbitals), dice.hermitian(orbitals));
        let mut term = |x: &[f64], _: &[f64]| {
            let mut block =
                OrbitalBlock::new(orbitals, a.entries().iter().map(|z| z * x[0].sin()).collect())?;
            block.add(&a);
            Ok(block)
        };
        let shift: Vec<i64> = (0..d).map(|k| i64::from(k == 0)).collect();
        model.hop_with(&shift, 0, sites - 1, &mut term, &task).unwrap();
        let mut term =
            |x: &[f64]| OrbitalBlock::new(orbitals, b.entries().iter().map(|z| z * x[0].cos()).collect());
        model.onsite_with(&mut term, &task).unwrap();
    }
    if d > 1 && dice.below(3) == 0 {
        let plane = (cells[0] * cells[1]) as f64;
        model.flux(if open { dice.real() } else { (1 + dice.below(3)) as f64 / plane }, 0, 1).unwrap();
    }
    let few = model.lattice().sites() < 4;
    if !few && dice.below(3) == 0 {
        let mut count = 0;
        let gone = &mut |_: &[f64]| {
            count += 1;
            Ok(count % 4 == 2)
        };
        model.remove(gone, &task).unwrap();
    }
    let shear = dice.vector(space * space);
    let strained = offsets.iter().flatten().all(|&x| x == 0.0) && dice.yes();
    let map = |x: &[f64]| -> Vec<f64> {
        if !strained {
            return x.to_vec();
        }
        let linear = (0..space).map(|i| x[i] + (0..space).map(|j| shear[i * space + j] * x[j]).sum::<f64>());
        linear.map(|y| if open { y + 0.1 * (y + x[0]).sin() } else { y }).collect()
    };
    if strained {
        model
            .strain(&mut |x| Ok(map(x)), &mut |new, old| Ok(1.0 / (1.0 + (new - old).powi(2))), &task)
            .unwrap();
    }
    let places = (0..model.rows())
        .map(|row| {
            let (site, orbital) = (row / orbitals, row % orbitals);
            let (_, s) = model.lattice().locate(site).unwrap();
            let site = map(&model.lattice().position(site).unwrap());
            site.iter().zip(&offsets[s * orbitals + orbital]).map(|(x, y)| x + y).collect()
        })
        .collect();
    let zero = map(&vec![0.0; space]);
    let periods = vectors
        .iter()
        .zip(&cells)
        .map(|(v, &n)| {
            let round: Vec<f64> = v.iter().map(|x| n as f64 * x).collect();
            map(&round).iter().zip(&zero).map(|(x, y)| x - y).collect()
        })
        .collect();
    Drawn { model, places, periods }
}

fn dense(model: &Model, format: MatrixFormat, axes: &[usize]) -> Vec<C64> {
    let mut h = Operator::of_model(&device(), model, format, false).unwrap();
    for &axis in axes {
        h = h.velocity(axis).unwrap();
        assert!(h.is_hermitian().unwrap());
    }
    h.to_dense().unwrap()
}

fn formats(model: &Model) -> Vec<MatrixFormat> {
    let stencil = model.not_a_stencil().is_none().then_some(MatrixFormat::Stencil);
    stencil.into_iter().chain([MatrixFormat::Csr]).collect()
}

/// i [A, x] for positions of the rows.
fn commutator(a: &[C64], places: &[Vec<f64>], axis: usize) -> Vec<C64> {
    let n = places.len();
    (0..n * n).map(|k| I * a[k] * (places[k % n][axis] - places[k / n][axis])).collect()
}

fn distance(a: &[C64], b: &[C64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).norm()).fold(0.0, f64::max)
}

/// A model of which one direction in five is open and the others are twisted, direction `d` by `turn` more.
fn twisted(seed: u64, d: usize, turn: f64) -> Drawn {
    let angles = [0.3 + (seed % 7) as f64, 1.1, 0.0];
    draw(seed, |k| {
        let open = seed >> (8 * k) & 255 < 50;
        let angle = angles[k] + if k == d { turn } else { 0.0 };
        if open { Wrap::Open } else { Wrap::Phase(C64::cis(angle)) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn open_clusters_against_the_commutator(seed: u64) {
        let Drawn { model, places, .. } = draw(seed, |_| Wrap::Open);
        for format in formats(&model) {
            let h = dense(&model, format, &[]);
            for axis in 0..places[0].len() {
                let exact = commutator(&h, &places, axis);
                let found = dense(&model, format, &[axis]);
                prop_assert!(distance(&found, &exact) < 1e-12, "{} along {axis}", model);
                let second = commutator(&exact, &places, 0);
                prop_assert!(distance(&dense(&model, format, &[axis, 0]), &second) < 1e-11);
            }
        }
    }

    #[test]
    fn periodic_ones_against_the_twist_of_their_boundaries(seed: u64) {
        let at = |d: usize, turn: f64| twisted(seed, d, turn);
        let Drawn { model, places, periods } = at(9, 0.0);
        for format in formats(&model) {
            let h = |d: usize, turn: f64| dense(&at(d, turn).model, format, &[]);
            let slopes: Vec<Vec<C64>> = (0..periods.len())
                .map(|d| {
                    // A derivative of order four.
                    let step = 2e-3;
                    let at = [h(d, step), h(d, -step), h(d, 2.0 * step), h(d, -2.0 * step)];
                    (0..at[0].len())
                        .map(|i| ((at[0][i] - at[1][i]) * 8.0 - (at[2][i] - at[3][i])) / (12.0 * step))
                        .collect()
                })
                .collect();
            let h = dense(&model, format, &[]);
            for axis in 0..places[0].len() {
                // What a hopping moves by within the sample, and a period for each boundary that it crosses.
                let mut exact = commutator(&h, &places, axis);
                for (slope, period) in slopes.iter().zip(&periods) {
                    exact.iter_mut().zip(slope).for_each(|(v, s)| *v += s * period[axis]);
                }
                let found = dense(&model, format, &[axis]);
                prop_assert!(distance(&found, &exact) < 1e-6, "{} along {axis}", model);
            }
        }
    }

    /// i [f(A, B), x] for what operators are combined to.
    #[test]
    fn combinations_against_the_commutator(seed: u64) {
        let Drawn { model, places, .. } = draw(seed, |_| Wrap::Open);
        let mut other = model.clone();
        other.onsite(&OrbitalBlock::scalar(model.orbitals(), 0.7)).unwrap();
        let build = |m: &Model| Operator::of_model(&device(), m, MatrixFormat::Auto, false).unwrap();
        let (a, b) = (build(&model), build(&other));
        let z = C64::new(0.3, -0.8);
        let combined = [
            a.scaled(z),
            a.shifted(z).unwrap(),
            a.plus(&b.scaled(z)).unwrap().scaled(C64::new(2.0, 0.0)),
            a.times(&b).unwrap(),
            a.times(&b.shifted(z).unwrap()).unwrap().plus(&b).unwrap().adjoint().unwrap(),
            a.velocity(0).unwrap().times(&a).unwrap(),
            a.scaled(z).adjoint().unwrap(),
            a.adjoint().unwrap(),
        ];
        for (which, operator) in combined.iter().enumerate() {
            let exact = commutator(&operator.to_dense().unwrap(), &places, 0);
            let found = operator.velocity(0).unwrap().to_dense().unwrap();
            let size = exact.iter().map(|z| z.norm()).fold(1.0, f64::max);
            prop_assert!(distance(&found, &exact) < 1e-12 * size, "{which} of {}", model);
        }
    }
}

/// A cell so small that hoppings cancel, and what rounding leaves of the velocity has no partner to the last digits.
#[test]
fn velocities_whose_hoppings_cancel_are_hermitian() {
    let Drawn { model, places, .. } = twisted(17527286095922257320, 9, 0.0);
    for format in formats(&model) {
        for axis in 0..places[0].len() {
            dense(&model, format, &[axis]);
        }
    }
}

#[test]
fn operators_on_different_lattices_have_no_common_velocity() {
    let chain = |strain: f64| {
        let mut model = Model::new(Lattice::chain(6).unwrap(), 1).unwrap();
        model.nearest(&OrbitalBlock::scalar(1, -1.0)).unwrap();
        if strain != 1.0 {
            let map = &mut |x: &[f64]| Ok(vec![strain * x[0]]);
            model.strain(map, &mut |_, _| Ok(1.0), &Task::default()).unwrap();
        }
        Operator::of_model(&device(), &model, MatrixFormat::Auto, false).unwrap()
    };
    let sum = chain(1.0).plus(&chain(1.5)).unwrap();
    assert!(sum.velocity(0).unwrap_err().message().contains("different lattices"));
    assert!(sum.geometry().is_none());
    assert!(chain(1.5).plus(&chain(1.5)).unwrap().velocity(0).is_ok());
    assert!(chain(1.0).velocity(1).unwrap_err().message().contains("axis 1"));
}

/// Areas and volumes that maps make of a sample, in closed form.
#[test]
fn the_volume_of_a_strained_sample() {
    let volume = |lattice: Lattice, map: &mut dyn FnMut(&[f64]) -> Vec<f64>| {
        let mut model = Model::new(lattice, 1).unwrap();
        model.nearest(&OrbitalBlock::scalar(1, -1.0)).unwrap();
        model.strain(&mut |x| Ok(map(x)), &mut |_, _| Ok(1.0), &Task::default()).unwrap();
        model.geometry().volume()
    };
    let close = |found: Result<f64>, exact: f64| assert!((found.unwrap() / exact - 1.0).abs() < 1e-12);
    close(volume(Lattice::square(10, 10).unwrap(), &mut |x| vec![1.5 * x[0], x[1]]), 150.0);
    let honeycomb = Lattice::honeycomb(4, 5).unwrap();
    close(volume(honeycomb, &mut |x| vec![x[0] + 0.3 * x[1], 0.5 * x[1]]), 20.0 * 0.75f64.sqrt() * 0.5);
    let squares = |x: &[f64]| x.iter().map(|x| x * x).collect::<Vec<_>>();
    close(volume(Lattice::chain(7).unwrap(), &mut |x| squares(x)), 49.0);
    close(volume(Lattice::cubic(2, 3, 4).unwrap(), &mut |x| squares(x)), (4 * 9 * 16) as f64);
    // x y, of degree one in each: what cells are taken for. Int x over the square of 3 is 13.5.
    close(volume(Lattice::square(3, 3).unwrap(), &mut |x| vec![x[0], x[0] * x[1] + 5.0 * x[1]]), 13.5 + 45.0);
    let open = Lattice::chain(4).unwrap().boundary(&[Wrap::Open]).unwrap();
    let beyond = volume(open, &mut |x| vec![(4.0 - x[0] - 1e-9).sqrt()]);
    assert!(beyond.unwrap_err().message().contains("volume is not known"));
}
