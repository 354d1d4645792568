//! Symmetric sectors against the sector without symmetries: all of them together have its spectrum.

use proptest::prelude::*;

use super::matrix::{matrix, some_rows};
use super::{Quantum, StateAction, Subspace, Symmetry};
use crate::lattice::Lattice;
use crate::manybody::testing::{chain, dense, sector};
use crate::manybody::{OpSum, Site, Sites};
use crate::number::C64;
use crate::task::Task;

fn levels(h: &OpSum, space: &Subspace) -> Vec<f64> {
    let m = dense(&matrix(h, (space, None), false, false, &Task::default()).unwrap());
    assert!((&m - m.adjoint()).norm_max() < 1e-12, "Hermitian");
    m.self_adjoint_eigenvalues(faer::Side::Lower).unwrap()
}

fn space(sites: &Sites, numbers: &[(&str, f64)], symmetries: &[Symmetry]) -> crate::error::Result<Subspace> {
    Subspace::new(sites, &sector(numbers), symmetries, &Task::default())
}

/// Checks that these sectors together have the spectrum of the whole; sectors without a state are left out.
fn together(h: &OpSum, sites: &Sites, numbers: &[(&str, f64)], all: &[Vec<Symmetry>]) {
    let whole = levels(h, &space(sites, numbers, &[]).unwrap());
    let mut parts = Vec::new();
    for symmetries in all {
        match space(sites, numbers, symmetries) {
            Ok(space) => parts.extend(levels(h, &space)),
            Err(e) => assert!(e.message().starts_with("no state"), "{e}"),
        }
    }
    parts.sort_by(f64::total_cmp);
    assert_eq!(parts.len(), whole.len(), "{sites} {numbers:?}");
    for (a, b) in parts.iter().zip(&whole) {
        assert!((a - b).abs() < 1e-11, "{sites} {numbers:?}: {a} instead of {b}");
    }
}

fn momentum(n: usize, k: f64, signs: bool) -> Symmetry {
    let value = Quantum::Value(C64::cis(-std::f64::consts::TAU * k / n as f64));
    let one = Symmetry::permutation("momentum", (0..n).map(|i| (i + 1) % n).collect(), value).unwrap();
    Symmetry { signs: (0..n).map(|i| signs && i + 1 == n).collect(), ..one }
}

fn reflection(n: usize, parity: f64) -> Symmetry {
    Symmetry::permutation("reflection", (0..n).rev().collect(), Quantum::Value(parity.into())).unwrap()
}

fn flip(n: usize, parity: f64) -> Symmetry {
    Symmetry::permutation("spin flip", (0..n).collect(), Quantum::Value(parity.into()))
        .unwrap()
        .within(StateAction::Flip)
}

/// All terms of a sum around a ring.
fn around(n: usize, terms: &[(C64, &[(&str, usize)])]) -> OpSum {
    let mut h = OpSum::new();
    for i in 0..n {
        for (z, factors) in terms {
            h.add(*z, factors.iter().map(|(name, k)| (name.to_string(), (i + k) % n)).collect()).unwrap();
        }
    }
    h
}

fn heisenberg(n: usize) -> OpSum {
    let half = C64::from(0.5);
    around(
        n,
        &[
            (half, &[("S+", 0), ("S-", 1)]),
            (half, &[("S-", 0), ("S+", 1)]),
            (C64::ONE, &[("Sz", 0), ("Sz", 1)]),
            (C64::from(0.3), &[("Sz", 0), ("Sz", 2)]),
        ],
    )
}

#[test]
fn rings_of_spins() {
    for (kind, largest) in [("S=1/2", 10), ("S=1", 6), ("S=3/2", 4)] {
        for n in 1..=largest {
            let (h, sites) = (heisenberg(n), chain(kind, n));
            let momenta: Vec<_> = (0..n).map(|k| vec![momentum(n, k as f64, false)]).collect();
            let odd = kind != "S=1" && n % 2 == 1;
            together(&h, &sites, &[("Sz", if odd { 0.5 } else { 0.0 })], &momenta);
            if n <= 6 {
                together(&h, &sites, &[], &momenta);
            }
            // A reflection, a spin flip, and both with the two real momenta.
            let mut real = Vec::new();
            for parity in [1.0, -1.0] {
                for turned in [1.0, -1.0] {
                    real.push(vec![reflection(n, parity), flip(n, turned)]);
                }
            }
            if !odd {
                together(&h, &sites, &[("Sz", 0.0)], &real);
            }
        }
    }
}

#[test]
fn real_momenta_split_by_reflections_and_flips() {
    let (n, sites) = (8, chain("S=1/2", 8));
    let h = heisenberg(n);
    for k in [0.0, 4.0] {
        let mut parts = Vec::new();
        for p in [1.0, -1.0] {
            for z in [1.0, -1.0] {
                let symmetries = [momentum(n, k, false), reflection(n, p), flip(n, z)];
                if let Ok(space) = space(&sites, &[("Sz", 0.0)], &symmetries) {
                    let m = matrix(&h, (&space, None), false, false, &Task::default()).unwrap();
                    assert!(!m.values.dtype().is_complex());
                    parts.extend(levels(&h, &space));
                }
            }
        }
        parts.sort_by(f64::total_cmp);
        let whole = levels(&h, &space(&sites, &[("Sz", 0.0)], &[momentum(n, k, false)]).unwrap());
        assert_eq!(parts.len(), whole.len());
        assert!(parts.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn rings_of_fermions() {
    for n in 1..=7 {
        for antiperiodic in [false, true] {
            let mut h = OpSum::new();
            for i in 0..n {
                let j = (i + 1) % n;
                let t = if antiperiodic && j == 0 { 1.0 } else { -1.0 };
                // A flux makes hoppings complex, a term of three sites has strings.
                let z = C64::new(t, 0.4 * t);
                h.add(z, vec![("Cdag".into(), i), ("C".into(), j)]).unwrap();
                h.add(z.conj(), vec![("Cdag".into(), j), ("C".into(), i)]).unwrap();
                h.add(1.7, vec![("N".into(), i), ("N".into(), j)]).unwrap();
            }
            for filling in 0..=n {
                let half = if antiperiodic && filling % 2 == 1 { 0.5 } else { 0.0 };
                let momenta: Vec<_> =
                    (0..n).map(|k| vec![momentum(n, k as f64 + half, antiperiodic)]).collect();
                together(&h, &chain("Fermion", n), &[("N", filling as f64)], &momenta);
            }
        }
    }
}

fn hubbard(n: usize, u: f64) -> OpSum {
    let hop = |z: f64| C64::from(z);
    around(
        n,
        &[
            (hop(-1.0), &[("Cdagup", 0), ("Cup", 1)]),
            (hop(-1.0), &[("Cdagup", 1), ("Cup", 0)]),
            (hop(-1.0), &[("Cdagdn", 0), ("Cdn", 1)]),
            (hop(-1.0), &[("Cdagdn", 1), ("Cdn", 0)]),
            (hop(u), &[("Nupdn", 0)]),
            (hop(0.3), &[("Cdagup", 0), ("Cdagdn", 0), ("Cdn", 1), ("Cup", 1)]),
            (hop(0.3), &[("Cdagup", 1), ("Cdagdn", 1), ("Cdn", 0), ("Cup", 0)]),
        ],
    )
}

#[test]
fn rings_of_electrons() {
    for n in 1..=5 {
        let (h, sites) = (hubbard(n, 3.0), chain("Electron", n));
        for (up, down) in [(1, 1), (2, 1), (2, 2), (3, 2)] {
            if up > n {
                continue;
            }
            let numbers = [("Nup", f64::from(up as u8)), ("Ndn", f64::from(down as u8))];
            let momenta: Vec<_> = (0..n).map(|k| vec![momentum(n, k as f64, false)]).collect();
            together(&h, &sites, &numbers, &momenta);
            if up == down {
                let mut both = Vec::new();
                for k in 0..n {
                    for z in [1.0, -1.0] {
                        both.push(vec![momentum(n, k as f64, false), flip(n, z)]);
                    }
                }
                together(&h, &sites, &numbers, &both);
            }
            let reflected: Vec<_> = [1.0, -1.0].iter().map(|p| vec![reflection(n, *p)]).collect();
            together(&h, &sites, &numbers, &reflected);
        }
        let t_j = around(
            n,
            &[(C64::from(0.5), &[("S+", 0), ("S-", 1)]), (C64::from(0.5), &[("S-", 0), ("S+", 1)])],
        );
        let flips: Vec<_> = [1.0, -1.0].iter().map(|z| vec![flip(n, *z)]).collect();
        together(&t_j, &chain("tJ", n), &[("Sz", 0.0)], &flips);
    }
}

#[test]
fn bosons_and_mixed_chains() {
    for n in 1..=5 {
        let sites = Sites::uniform(Site::named("Boson", Some(3)).unwrap(), n).unwrap();
        let h = around(
            n,
            &[
                (C64::new(-1.0, 0.2), &[("Adag", 0), ("A", 1)]),
                (C64::new(-1.0, -0.2), &[("Adag", 1), ("A", 0)]),
                (C64::ONE, &[("N", 0), ("N", 0)]),
            ],
        );
        let momenta: Vec<_> = (0..n).map(|k| vec![momentum(n, k as f64, false)]).collect();
        for filling in [1.0, 3.0] {
            together(&h, &sites, &[("N", filling)], &momenta);
        }
    }
    // Fermions between bosons: cells of two sites.
    let kinds = ["Fermion", "Boson", "Fermion", "Boson", "Fermion", "Boson"];
    let sites =
        Sites::new(kinds.map(|k| Site::named(k, (k == "Boson").then_some(1)).unwrap().into()).to_vec())
            .unwrap();
    let mut h = OpSum::new();
    for i in [0, 2, 4] {
        let j = (i + 2) % 6;
        for (a, b) in [(i, j), (j, i)] {
            h.add(-1.0, vec![("Cdag".into(), a), ("C".into(), b)]).unwrap();
        }
        h.add(0.7, vec![("N".into(), i), ("A".into(), i + 1)]).unwrap();
        h.add(0.7, vec![("N".into(), i), ("Adag".into(), i + 1)]).unwrap();
    }
    let cell = |k: f64| {
        let value = Quantum::Value(C64::cis(-std::f64::consts::TAU * k / 3.0));
        vec![Symmetry::permutation("cells", (0..6).map(|i| (i + 2) % 6).collect(), value).unwrap()]
    };
    for filling in [1.0, 2.0] {
        together(&h, &sites, &[("Nf", filling)], &[cell(0.0), cell(1.0), cell(2.0)]);
    }
    let one =
        Symmetry::permutation("one", (0..6).map(|i| (i + 1) % 6).collect(), Quantum::Number(0)).unwrap();
    let e = space(&sites, &[("Nf", 1.0)], &[one]).unwrap_err();
    assert_eq!(e.message(), "one takes site 0, a `Fermion`, to site 1, a `Boson`");
}

#[test]
fn tori() {
    for (lx, ly) in [(2, 2), (3, 2), (4, 2), (3, 3)] {
        let lattice = Lattice::square(lx, ly).unwrap();
        let n = lx * ly;
        let step = |direction: usize, k: usize, cells: usize| {
            let (to, _) = lattice.translation(direction, 1).unwrap();
            let value = Quantum::Value(C64::cis(-std::f64::consts::TAU * k as f64 / cells as f64));
            Symmetry::permutation(format!("momentum {k} in {direction}"), to, value).unwrap()
        };
        let mut all = Vec::new();
        for kx in 0..lx {
            for ky in 0..ly {
                all.push(vec![step(0, kx, lx), step(1, ky, ly)]);
            }
        }
        let (mut spins, mut fermions) = (OpSum::new(), OpSum::new());
        for (i, j, _) in lattice.joined().unwrap() {
            for (a, b) in [(i, j), (j, i)] {
                spins.add(0.5, vec![("S+".into(), a), ("S-".into(), b)]).unwrap();
                fermions.add(-1.0, vec![("Cdag".into(), a), ("C".into(), b)]).unwrap();
            }
            spins.add(1.0, vec![("Sz".into(), i), ("Sz".into(), j)]).unwrap();
            fermions.add(2.0, vec![("N".into(), i), ("N".into(), j)]).unwrap();
        }
        together(&spins, &chain("S=1/2", n), &[("Sz", if n % 2 == 1 { 0.5 } else { 0.0 })], &all);
        for filling in [2.0, 3.0] {
            together(&fermions, &chain("Fermion", n), &[("N", filling)], &all);
        }
    }
}

#[test]
fn quantum_numbers_that_contradict_each_other() {
    let sites = chain("S=1/2", 6);
    let fails = |symmetries: &[Symmetry]| {
        let e = space(&sites, &[("Sz", 0.0)], symmetries).unwrap_err();
        e.message().to_string()
    };
    assert_eq!(
        fails(&[momentum(6, 1.0, false), reflection(6, 1.0)]),
        "no state has both momentum and reflection"
    );
    assert_eq!(
        fails(&[momentum(6, 0.5, false)]),
        "no state has momentum: 6 times in a row it is the identity"
    );
    let twice = [flip(6, 1.0), flip(6, -1.0)];
    assert_eq!(fails(&twice), "no state has both spin flip and spin flip");
    let pair = [momentum(2, 0.0, false), reflection(2, -1.0)];
    let e = space(&chain("S=1/2", 2), &[("Sz", 0.0)], &pair).unwrap_err();
    assert_eq!(e.message(), "no state has both momentum and reflection");
    assert!(e.hint_text().is_some_and(|hint| hint.contains("the same permutation")), "{e:?}");
    let identity = Symmetry::permutation("nothing", (0..6).collect(), Quantum::Value((-1.0).into())).unwrap();
    assert_eq!(fails(&[identity]), "no state has nothing: it is the identity");
    let e = space(&sites, &[("Sz", 1.0)], &[flip(6, 1.0)]).unwrap_err();
    assert_eq!(e.message(), "spin flip changes Sz = 1, which the sector conserves");
    // A parity that stays does not say that Sz does.
    let both = space(&chain("S=1/2", 2), &[("Sz", -1.0), ("SzParity", 0.0)], &[flip(2, 1.0)]);
    assert_eq!(both.unwrap_err().message(), "spin flip changes Sz = -1, which the sector conserves");
    assert!(space(&chain("S=1/2", 2), &[("Sz", 0.0), ("SzParity", 1.0)], &[flip(2, 1.0)]).is_ok());
    assert!(space(&chain("S=1/2", 3), &[("SzParity", 1.0)], &[flip(3, 1.0)]).is_err());
    assert!(Symmetry::permutation("x", vec![0, 0], Quantum::Number(0)).is_err());
    // All that permutes nine sites at will is too much.
    let nine = chain("S=1/2", 9);
    let swap = Symmetry::permutation("swap", vec![1, 0, 2, 3, 4, 5, 6, 7, 8], Quantum::Number(0)).unwrap();
    let e = space(&nine, &[], &[momentum(9, 0.0, false), swap.clone()]).unwrap_err();
    assert_eq!(e.message(), "these symmetries generate a group of more than 65536 elements");
    // Eight are not: nine states, one for each number of spins up.
    let swap = Symmetry::permutation("swap", vec![1, 0, 2, 3, 4, 5, 6, 7], Quantum::Number(0)).unwrap();
    let eight = space(&chain("S=1/2", 8), &[], &[momentum(8, 0.0, false), swap]).unwrap();
    assert_eq!((eight.dim(), eight.symmetries()), (9, 40320));
}

#[test]
fn sums_that_symmetries_change_are_refused() {
    let sites = chain("S=1/2", 6);
    let ring = space(&sites, &[("Sz", 0.0)], &[momentum(6, 0.0, false)]).unwrap();
    let built = |h: &OpSum, project| matrix(h, (&ring, None), project, false, &Task::default());
    let mut h = heisenberg(6);
    assert!(built(&h, false).is_ok());
    h.add(1e-3, vec![("Sz".into(), 2)]).unwrap();
    assert_eq!(
        built(&h, false).unwrap_err().message(),
        "the sum of operators is not invariant under momentum"
    );
    assert!(built(&h, true).is_ok());
    // The same sum in other words on one bond.
    let mut h = OpSum::new();
    for i in 0..6 {
        let j = (i + 1) % 6;
        if i == 2 {
            h.add(1.0, vec![("ProjUp".into(), i), ("ProjUp".into(), j)]).unwrap();
        } else {
            h.add(0.25, vec![]).unwrap();
            h.add(0.5, vec![("Sz".into(), i)]).unwrap();
            h.add(0.5, vec![("Sz".into(), j)]).unwrap();
            h.add(1.0, vec![("Sz".into(), i), ("Sz".into(), j)]).unwrap();
        }
    }
    assert!(built(&h, false).is_ok());
}

/// What operators do between sectors is what they do between the states written out.
#[test]
fn operators_between_sectors() {
    let n = 5;
    for kind in ["Electron", "Fermion"] {
        let sites = chain(kind, n);
        let (number, name) = if kind == "Electron" { ("N", "Cdagup") } else { ("N", "Cdag") };
        let of =
            |filling: f64, k: f64| space(&sites, &[(number, filling)], &[momentum(n, k, false)]).unwrap();
        let mut density = OpSum::new();
        density.add(C64::new(0.3, 0.8), vec![(name.into(), 1)]).unwrap();
        density.add(C64::new(-0.4, 0.1), vec![(name.into(), 3)]).unwrap();
        for (k, q) in [(0.0, 0.0), (1.0, 3.0), (2.0, 2.0)] {
            let (from, to) = (of(2.0, k), of(3.0, q));
            let task = Task::default();
            let part = dense(&matrix(&density, (&from, Some(&to)), false, false, &task).unwrap());
            let plain = |filling: f64| space(&sites, &[(number, filling)], &[]).unwrap();
            let (a, b) = (plain(2.0), plain(3.0));
            let whole = dense(&matrix(&density, (&a, Some(&b)), false, false, &task).unwrap());
            let half = dense(&matrix(&density, (&from, Some(&b)), false, false, &task).unwrap());
            let unfolded = |space: &Subspace| {
                let d = space.dim();
                let unit: Vec<C64> =
                    (0..d * d).map(|k| if k / d == k % d { C64::ONE } else { C64::ZERO }).collect();
                let all = space.unfold(&unit, d).unwrap();
                assert!(space.fold(&all, d).unwrap().iter().zip(&unit).all(|(a, b)| (a - b).norm() < 1e-14));
                faer::Mat::from_fn(all.len() / d, d, |i, j| all[i * d + j])
            };
            let (u, v) = (unfolded(&from), unfolded(&to));
            assert!((&whole * &u - &half).norm_max() < 1e-14);
            assert!((v.adjoint() * &whole * &u - &part).norm_max() < 1e-14, "{kind} {k} {q}");
        }
    }
}

/// Where sites go, told by a number for each.
fn shuffled(keys: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&i| (keys[i], i));
    order
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any permutation, any terms summed over its powers: the sectors of all its quantum numbers have the whole
    /// spectrum.
    #[test]
    fn any_permutation_of_any_sites(
        keys in proptest::collection::vec(0u64..1000, 5),
        terms in proptest::collection::vec((0usize..5, 0usize..5, 0usize..5, -1.0..1.0f64, -1.0..1.0f64), 1..4),
        kind in 0usize..3,
    ) {
        let (kind, a, b, c) = [
            ("Fermion", "Cdag", "C", "N"),
            ("Electron", "Cdagup", "Cup", "Ndn"),
            ("S=1", "S+", "S-", "Sz"),
        ][kind];
        let n = if kind == "Electron" { 4 } else { 5 };
        let to: Vec<usize> = shuffled(&keys[..n]);
        let sites = chain(kind, n);
        let mut h = OpSum::new();
        let mut power: Vec<usize> = (0..n).collect();
        let mut order = 0;
        while order == 0 || power.iter().enumerate().any(|(i, &j)| i != j) {
            for &(i, j, k, re, im) in &terms {
                let at = |i: usize| power[i % n];
                let factors = vec![(a.to_string(), at(i)), (c.to_string(), at(k)), (b.to_string(), at(j))];
                h.add(C64::new(re, im), factors).unwrap();
            }
            power = power.iter().map(|&i| to[i]).collect();
            order += 1;
        }
        let h = h.clone() + h.dagger();
        let all: Vec<_> = (0..order)
            .map(|q| vec![Symmetry::permutation("any", to.clone(), Quantum::Number(q)).unwrap()])
            .collect();
        let numbers: &[(&str, f64)] = match kind {
            "Fermion" => &[("N", 2.0)],
            "Electron" => &[("Nup", 2.0), ("Ndn", 1.0)],
            _ => &[("Sz", 1.0)],
        };
        together(&h, &sites, numbers, &all);
    }
}

#[test]
fn ranks_make_their_own_rows() {
    let sites = chain("S=1/2", 8);
    let h = heisenberg(8);
    for symmetries in [&[][..], &[momentum(8, 1.0, false)]] {
        let space = space(&sites, &[("Sz", 0.0)], symmetries).unwrap();
        let all = matrix(&h, (&space, None), false, false, &Task::default()).unwrap();
        let n = all.rows;
        for pieces in [vec![(0, n)], vec![(0, n / 3)], vec![(n - 1, 1)], vec![(1, 2), (4, 3)], vec![]] {
            let some = some_rows(&h, &space, &pieces).unwrap();
            some.validate().unwrap();
            let rows: Vec<usize> = pieces.iter().flat_map(|&(first, n)| first..first + n).collect();
            assert_eq!((some.rows, some.cols), (rows.len(), n));
            let (some, all) = (dense(&some), dense(&all));
            for (k, row) in rows.into_iter().enumerate() {
                assert!((0..n).all(|j| some[(k, j)] == all[(row, j)]), "row {row} of {pieces:?}");
            }
        }
    }
}
