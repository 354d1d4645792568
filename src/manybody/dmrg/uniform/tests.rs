//! Automata of cells, canonical forms, steps of the search.

use std::sync::Arc;

use super::super::carry::{to_left, to_right};
use super::bonds::identity;
use super::environment::need_memory;
use super::{Repeated, Uniform, UniformSearch, UnitCell, lowest_cell_product};
use crate::backend::Device;
use crate::backend::cpu::Cpu;
use crate::manybody::{ExponentialTail, OpSum, Site, Sites};
use crate::number::C64;
use crate::task::{Interrupt, Task};

fn cell(kind: &str, n: usize, sector: &[(&str, f64)]) -> Arc<UnitCell> {
    let site = Site::named(kind, None).expect("a kind of site");
    let sites = Sites::uniform(site, n).expect("sites");
    let sector = sector.iter().map(|(name, q)| ((*name).to_string(), *q)).collect();
    UnitCell::new(&sites, &sector).expect("a cell")
}

fn term(sum: &mut OpSum, z: f64, factors: &[(&str, usize)]) {
    let factors = factors.iter().map(|(name, site)| ((*name).to_string(), *site)).collect();
    sum.add(C64::from(z), factors).expect("a term");
}

fn exchange(distance: usize, z: f64) -> OpSum {
    let mut sum = OpSum::new();
    term(&mut sum, 0.5 * z, &[("S+", 0), ("S-", distance)]);
    term(&mut sum, 0.5 * z, &[("S-", 0), ("S+", distance)]);
    term(&mut sum, z, &[("Sz", 0), ("Sz", distance)]);
    sum
}

fn tail(ratio: f64, first: &str, second: &str, step: usize) -> ExponentialTail {
    let (first, second) = (first.to_string(), second.to_string());
    ExponentialTail {
        coefficient: C64::ONE,
        ratio: ratio.into(),
        first,
        site: 0,
        second,
        step,
        turned: false,
    }
}

#[test]
fn automata_carry_little() {
    let one = cell("S=1/2", 1, &[]);
    let width = |sum: &OpSum| Repeated::new(sum, &one).expect("an automaton").mpo.bond(0).charges.len();
    assert_eq!(width(&exchange(1, 1.0)), 5);
    assert_eq!(width(&(exchange(1, 1.0) + exchange(3, 0.5))), 2 + 9);
    // Many partners on the right of one operator, and of many on the left: either end is shared.
    let (mut right, mut left) = (OpSum::new(), OpSum::new());
    for name in ["Sx", "Sz", "Sz2"] {
        term(&mut right, 1.0, &[("Sz", 0), (name, 1)]);
        term(&mut left, 1.0, &[(name, 0), ("Sz", 1)]);
    }
    assert!(width(&right) <= 4 && width(&left) <= 4);
    // A decaying coupling is one operator, or one for each place of its step.
    let mut sum = OpSum::new();
    sum.add_tail(tail(0.5, "Sz", "Sz", 1)).expect("a coupling");
    assert_eq!(width(&sum), 3);
    sum.add_tail(tail(0.5, "Sx", "Sz", 1)).expect("a coupling");
    sum.add_tail(tail(0.5, "Sz", "Sz", 3)).expect("a coupling");
    assert_eq!(width(&sum), 6);
    // A term written in a later cell is that of the first.
    let mut moved = exchange(1, 1.0);
    let mut later = OpSum::new();
    term(&mut later, 0.25, &[("Sz", 7), ("Sz", 8)]);
    moved = moved + later;
    assert_eq!(width(&moved), 5);
}

#[test]
fn random_states_are_in_both_forms() {
    for cell in [cell("S=1/2", 2, &[("Sz", 0.0)]), cell("S=1", 3, &[("Sz", 1.0)]), cell("S=1/2", 1, &[])] {
        let product = lowest_cell_product(&exchange(1, 1.0), &cell).expect("a product");
        let psi = Uniform::<f64>::random(&cell, &product, 8, 5, 0).expect("a state");
        assert!(psi.widths().iter().all(|w| *w > 1));
        assert!(psi.mismatch() < 1e-10, "{}", psi.mismatch());
        for site in 0..cell.count() {
            let (bond, behind) = (&psi.spaces[site], &psi.spaces[psi.behind(site)]);
            let left = to_right((&psi.left[site], &psi.left[site]), None, Some(&identity(bond)));
            let right = to_left((&psi.right[site], &psi.right[site]), &identity(behind));
            for (found, space) in [(left, behind), (right, bond)] {
                for (at, m) in identity::<f64>(space) {
                    assert!((&found[&at] - m).norm_max() < 1e-12);
                }
            }
        }
    }
}

#[test]
fn what_no_memory_holds_is_refused() {
    let cell = cell("S=1/2", 2, &[("Sz", 0.0)]);
    let sum = exchange(1, 1.0);
    let product = lowest_cell_product(&sum, &cell).expect("a product");
    let psi = Uniform::<f64>::random(&cell, &product, 8, 5, 0).expect("a state");
    let h = Repeated::new(&sum, &cell).expect("an automaton");
    assert!(need_memory::<f64>(&h, &psi.spaces, 1).is_ok());
    let error = need_memory::<f64>(&h, &psi.spaces, 1 << 50).unwrap_err();
    assert!(error.message().starts_with("what lies around a cell with "), "{error}");
}

#[test]
fn steps_lower_the_energy_to_that_of_dimers() {
    let device: Device = Arc::new(Cpu::new(1, Interrupt::default()).expect("a device"));
    let task = Task::default();
    let cell = cell("S=1/2", 2, &[("Sz", 0.0)]);
    let sum = (exchange(1, 1.0) + exchange(2, 0.5)).repeated(1, 2);
    let h = Arc::new(Repeated::new(&sum, &cell).expect("an automaton"));
    let start = lowest_cell_product(&sum, &cell).expect("a product");
    let mut search =
        UniformSearch::new(&h, Uniform::<f64>::product(&cell, &start).expect("a state")).expect("a search");
    for states in [2, 4, 8] {
        search = search.widened(&device, states).expect("wider");
        for _ in 0..30 {
            search = search.step(&device, &task).expect("a step");
        }
    }
    let (psi, found, variance) = search.settled(&device, &task).expect("a state");
    assert!((found.energy + 0.75).abs() < 1e-8, "{}", found.energy);
    assert!(found.gradient < 1e-4 && variance < 1e-8);
    assert!((psi.expectation(&sum).expect("a value") + 0.75).norm() < 1e-8);
    assert!((psi.fidelity(&psi).expect("a value") - 1.0).abs() < 1e-10);
}

#[test]
fn cells_come_from_longer_chains() {
    let mut chain = OpSum::new();
    for i in 0..7 {
        term(&mut chain, if i % 2 == 0 { 1.0 } else { 0.5 }, &[("Sz", i), ("Sz", i + 1)]);
    }
    assert_eq!(chain.cell(2).expect("a cell").terms().len(), 2);
    assert!(chain.cell(1).is_err() && chain.cell(3).is_err() && chain.cell(5).is_err());
    assert_eq!(chain.cell(2).expect("a cell").repeated(2, 3).terms().len(), 6);
}
