//! Exact matrices against reference energies (exact diagonalisation and Bethe ansatz of other programs), closed forms
//! and the algebra of operators.

use std::sync::Arc;

use proptest::prelude::*;

use super::testing::{chain, dense, sector};
use super::*;
use crate::backend::Device;
use crate::backend::cpu::Cpu;
use crate::backend::matrix::Csr;
use crate::method::{DavidsonOptions, davidson};
use crate::number::C64;
use crate::operator::MatrixFormat;
use crate::task::{Interrupt, Task};

fn bosons(n: usize, nmax: usize) -> Sites {
    Sites::uniform(Site::named("Boson", Some(nmax)).unwrap(), n).unwrap()
}

fn sum(terms: &[(C64, &[(&str, usize)])]) -> OpSum {
    let mut sum = OpSum::new();
    for (z, factors) in terms {
        sum.add(*z, factors.iter().map(|(name, i)| (name.to_string(), *i)).collect()).unwrap();
    }
    sum
}

fn one(name: &str, i: usize) -> OpSum {
    sum(&[(C64::ONE, &[(name, i)])])
}

fn built(h: &OpSum, sites: &Sites, numbers: &[(&str, f64)]) -> Csr {
    let csr =
        matrix(h, &SectorBasis::new(sites, &sector(numbers)).unwrap(), false, &Task::default()).unwrap();
    csr.validate().unwrap();
    for row in 0..csr.rows {
        let range = csr.row_start[row]..csr.row_start[row + 1];
        assert!(range.clone().skip(1).all(|k| csr.columns.get(k - 1) < csr.columns.get(k)), "ascending");
    }
    csr
}

fn full(h: &OpSum, sites: &Sites) -> faer::Mat<C64> {
    dense(&built(h, sites, &[]))
}

fn distance(a: &faer::Mat<C64>, b: &faer::Mat<C64>) -> f64 {
    (a - b).norm_max()
}

fn spectrum(csr: &Csr) -> Vec<f64> {
    dense(csr).self_adjoint_eigenvalues(faer::Side::Lower).unwrap()
}

fn lowest(h: &OpSum, sites: &Sites, numbers: &[(&str, f64)], count: usize) -> Vec<f64> {
    let device: Device = Arc::new(Cpu::new(2, Interrupt::default()).unwrap());
    let basis = SectorBasis::new(sites, &sector(numbers)).unwrap();
    let op = operator(&device, h, &basis, MatrixFormat::Auto, false, &Task::default()).unwrap();
    let mut options = DavidsonOptions::new(count);
    options.tolerance = Some(1e-8);
    let found = davidson(&op, options, &Task::default()).unwrap();
    assert!(found.converged());
    found.values
}

fn xxz(n: usize, delta: f64) -> OpSum {
    let mut h = OpSum::new();
    for i in 1..n {
        let bond = |a: &str, b: &str| vec![(a.to_string(), i - 1), (b.to_string(), i)];
        h.add(0.5, bond("S+", "S-")).unwrap();
        h.add(0.5, bond("S-", "S+")).unwrap();
        h.add(delta, bond("Sz", "Sz")).unwrap();
    }
    h
}

fn hubbard(n: usize, u: f64, periodic: bool) -> OpSum {
    let mut h = OpSum::new();
    for i in 1..n + usize::from(periodic) {
        for spin in ["up", "dn"] {
            for (a, b) in [(i - 1, i % n), (i % n, i - 1)] {
                h.add(-1.0, vec![(format!("Cdag{spin}"), a), (format!("C{spin}"), b)]).unwrap();
            }
        }
    }
    for i in 0..n {
        h.add(u, vec![("Nupdn".into(), i)]).unwrap();
    }
    h
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert!(found.len() >= expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < tolerance, "{a} instead of {b}");
    }
}

#[test]
fn heisenberg_chains() {
    let small = [(2, -0.75), (4, -1.6160254037844), (6, -2.4935771338879), (8, -3.3749325986879)];
    for (n, e) in small {
        close(&spectrum(&built(&xxz(n, 1.0), &chain("S=1/2", n), &[("Sz", 0.0)])), &[e], 1e-12);
    }
    let eight = |m: f64| spectrum(&built(&xxz(8, 1.0), &chain("S=1/2", 8), &[("Sz", m)]))[0];
    close(&[eight(1.0), eight(-2.0)], &[-2.9822404877629, -1.8316134998125], 1e-12);
    let twelve = chain("S=1/2", 12);
    close(&lowest(&xxz(12, 1.0), &twelve, &[("Sz", 0.0)], 2), &[-5.1420906328405, -4.8611479370364], 1e-11);
    close(&lowest(&xxz(12, 1.0), &twelve, &[("Sz", 2.0)], 1), &[-4.0099127956473], 1e-11);
    close(&lowest(&xxz(16, 1.0), &chain("S=1/2", 16), &[("Sz", 0.0)], 1), &[-6.9117371455751], 1e-11);
}

#[test]
fn anisotropic_chains() {
    let levels = |n, delta| spectrum(&built(&xxz(n, delta), &chain("S=1/2", n), &[("Sz", 0.0)]));
    close(&levels(8, 0.5), &[-2.8432490260075], 1e-12);
    close(&levels(8, 2.0), &[-4.6112741416492], 1e-12);
    close(&levels(8, 0.0), &[-2.3793852415718], 1e-12);
    let four = [-7.0569547865819, -6.9050117766882, -6.3267737213473, -6.1904978709596];
    close(&lowest(&xxz(12, 2.0), &chain("S=1/2", 12), &[("Sz", 0.0)], 4), &four, 1e-11);
}

#[test]
fn hubbard_chains() {
    for u in [1.0, 4.0, 8.0f64] {
        let exact = (u - (u * u + 16.0).sqrt()) / 2.0;
        let pair = built(&hubbard(2, u, false), &chain("Electron", 2), &[("Nup", 1.0), ("Ndn", 1.0)]);
        close(&spectrum(&pair), &[exact], 1e-12);
    }
    let energy = |n: usize, u| {
        let half = n as f64 / 2.0;
        lowest(&hubbard(n, u, false), &chain("Electron", n), &[("Nup", half), ("Ndn", half)], 1)[0]
    };
    close(
        &[energy(4, 1.0), energy(4, 4.0), energy(4, 8.0)],
        &[-3.5753656204475, -1.9531453086845, -1.1171724133610],
        1e-11,
    );
    close(&[energy(6, 4.0), energy(6, 8.0)], &[-3.0925653195054, -1.7680987552613], 1e-11);
    close(&[energy(8, 4.0)], &[-4.2358069991297], 1e-11);
}

/// Free electrons on a ring: the levels show a wrong sign of the bond that closes it.
#[test]
fn fermions_on_rings_have_their_signs() {
    let tau = 2.0 * std::f64::consts::PI;
    for n in [4usize, 5, 6] {
        let mut levels: Vec<f64> = (0..n).map(|k| -2.0 * (tau * k as f64 / n as f64).cos()).collect();
        levels.sort_by(f64::total_cmp);
        let filled = |m: usize| levels[..m].iter().sum::<f64>();
        for up in 1..n {
            let down = n - up;
            let h = built(
                &hubbard(n, 0.0, true),
                &chain("Electron", n),
                &[("Nup", up as f64), ("Ndn", down as f64)],
            );
            close(&spectrum(&h), &[filled(up) + filled(down)], 1e-12);
        }
    }
    let mut ring = OpSum::new();
    for i in 0..7 {
        for (a, b) in [(i, (i + 1) % 7), ((i + 1) % 7, i)] {
            ring.add(-1.0, vec![("Cdag".into(), a), ("C".into(), b)]).unwrap();
        }
    }
    let mut levels: Vec<f64> = (0..7).map(|k| -2.0 * (tau * f64::from(k) / 7.0).cos()).collect();
    levels.sort_by(f64::total_cmp);
    for m in 1..7 {
        let h = built(&ring, &chain("Fermion", 7), &[("N", m as f64)]);
        close(&spectrum(&h), &[levels[..m].iter().sum()], 1e-12);
    }
}

#[test]
fn spin_components_say_the_same_as_ladders() {
    let mut h = OpSum::new();
    for i in 1..5 {
        for name in ["Sx", "Sy", "Sz"] {
            h.add(1.0, vec![(name.into(), i - 1), (name.into(), i)]).unwrap();
        }
    }
    for kind in ["S=1/2", "S=1", "S=3/2"] {
        let sites = chain(kind, 5);
        let top = 5.0 * f64::from(sites.site(0).unwrap().dim() as u32 - 1) / 2.0;
        let (a, b) =
            (built(&h, &sites, &[("Sz", top - 2.0)]), built(&xxz(5, 1.0), &sites, &[("Sz", top - 2.0)]));
        assert!(distance(&dense(&a), &dense(&b)) < 1e-14, "{kind}");
        assert_eq!(a.values.dtype(), crate::number::DType::F64);
    }
    // All spins up: S^2 for each bond.
    let ferromagnet = built(&xxz(5, 1.0), &chain("S=3/2", 5), &[("Sz", 7.5)]);
    close(&spectrum(&ferromagnet), &[4.0 * 2.25], 1e-13);
}

#[test]
fn algebra_of_local_operators() {
    let product = |a: &faer::Mat<C64>, b: &faer::Mat<C64>| a * b;
    let n = 3;
    for (kind, names) in
        [("Fermion", vec![("C", "Cdag")]), ("Electron", vec![("Cup", "Cdagup"), ("Cdn", "Cdagdn")])]
    {
        let sites = chain(kind, n);
        let ids = full(&one("Id", 0), &sites);
        let all: Vec<_> = (0..n).flat_map(|i| names.iter().map(move |names| (i, *names))).collect();
        for (k, &(i, (c, _))) in all.iter().enumerate() {
            for (l, &(j, (d, ddag))) in all.iter().enumerate() {
                let (c, d, ddag) =
                    (full(&one(c, i), &sites), full(&one(d, j), &sites), full(&one(ddag, j), &sites));
                let mixed = product(&c, &ddag) + product(&ddag, &c);
                let expected = if k == l { ids.clone() } else { &ids - &ids };
                assert!(distance(&mixed, &expected) < 1e-15, "{kind} {i} {j}");
                assert!((product(&c, &d) + product(&d, &c)).norm_max() < 1e-15);
            }
        }
    }
    for kind in ["S=1/2", "S=1", "S=5/2", "Electron"] {
        let sites = chain(kind, 2);
        let of = |name: &str| full(&one(name, 1), &sites);
        let (plus, minus, z) = (of("S+"), of("S-"), of("Sz"));
        let commutator = product(&plus, &minus) - product(&minus, &plus);
        assert!(distance(&commutator, &(&z + &z)) < 1e-14, "{kind}");
        assert!((product(&z, &plus) - product(&plus, &z) - &plus).norm_max() < 1e-14);
    }
    for kind in ["S=1/2", "S=1", "S=5/2", "Electron", "tJ"] {
        let sites = chain(kind, 2);
        let of = |name: &str| full(&one(name, 1), &sites);
        let (x, y, z) = (of("Sx"), of("Sy"), of("Sz"));
        let commutator = product(&x, &y) - product(&y, &x);
        let mut turned = z.clone();
        turned *= faer::Scale(C64::I);
        assert!(distance(&commutator, &turned) < 1e-14, "{kind}");
        assert!(distance(&y, &y.adjoint().to_owned()) < 1e-15, "{kind}");
    }
    let sites = bosons(1, 3);
    let (a, adag) = (full(&one("A", 0), &sites), full(&one("Adag", 0), &sites));
    assert!(distance(&product(&adag, &a), &full(&one("N", 0), &sites)) < 1e-14);
}

#[test]
fn products_multiply_in_the_order_written() {
    let sites = chain("Electron", 3);
    let factors: [&[(&str, usize)]; 4] = [
        &[("Cdagup", 2), ("Cdn", 0), ("Cdagdn", 1), ("Cup", 0)],
        &[("Cup", 1), ("Ntot", 1), ("Cdagup", 1)],
        &[("Cdagup", 0), ("Cdagdn", 2), ("S-", 1), ("Cup", 2), ("Cup", 1)],
        &[("F", 1), ("Cdn", 2), ("Cdagdn", 0), ("F", 0)],
    ];
    for term in factors {
        let together = full(&sum(&[(C64::new(0.5, -2.0), term)]), &sites);
        let mut one_by_one = full(&one("Id", 0), &sites);
        for (name, i) in term {
            one_by_one = one_by_one * full(&one(name, *i), &sites);
        }
        one_by_one *= faer::Scale(C64::new(0.5, -2.0));
        assert!(distance(&together, &one_by_one) < 1e-14, "{term:?}");
        let adjoint = sum(&[(C64::new(0.5, -2.0), term)]).dagger();
        assert!(distance(&full(&adjoint, &sites), &together.adjoint().to_owned()) < 1e-14, "{adjoint}");
        assert_eq!(adjoint.dagger(), sum(&[(C64::new(0.5, -2.0), term)]));
    }
}

#[test]
fn dimensions_of_sectors() {
    let dim =
        |sites: &Sites, numbers: &[(&str, f64)]| SectorBasis::new(sites, &sector(numbers)).unwrap().dim();
    let binomial = |n: u128, k: u128| (1..=k).fold(1u128, |b, i| b * (n - k + i) / i) as usize;
    for n in 1..=16usize {
        for up in 0..=n {
            let sites = chain("S=1/2", n);
            assert_eq!(dim(&sites, &[("Sz", up as f64 - n as f64 / 2.0)]), binomial(n as u128, up as u128));
        }
    }
    assert_eq!(dim(&chain("S=1/2", 50), &[("Sz", 0.0)]), binomial(50, 25));
    assert_eq!(dim(&chain("S=1/2", 200), &[("Sz", 98.0)]), binomial(200, 2));
    assert_eq!(dim(&chain("Electron", 8), &[("Nup", 3.0), ("Ndn", 5.0)]), binomial(8, 3) * binomial(8, 5));
    assert_eq!(dim(&chain("Electron", 6), &[("N", 5.0)]), binomial(12, 5));
    assert_eq!(dim(&chain("Electron", 6), &[("N", 6.0), ("Sz", 0.0)]), binomial(6, 3).pow(2));
    // Stars and bars: the largest occupation does not matter here.
    assert_eq!(dim(&bosons(5, 4), &[("N", 4.0)]), binomial(8, 4));
    assert_eq!(dim(&chain("S=1", 10), &[]), 59049);
    let count = |numbers: &[(&str, f64)]| {
        SectorBasis::possibly_empty(&chain("S=1/2", 6), &sector(numbers)).map(|basis| basis.dim())
    };
    assert_eq!((count(&[("Sz", 3.0)]).unwrap(), count(&[("Sz", 4.0)]).unwrap()), (1, 0));
    assert!(count(&[("Sz", 0.3)]).is_err() && count(&[("N", 1.0)]).is_err());
    let all: usize = (-10..=10).map(|m| dim(&chain("S=1", 10), &[("Sz", f64::from(m))])).sum();
    assert_eq!(all, 59049);
}

#[test]
fn states_are_numbered_in_order() {
    for (sites, numbers) in [
        (chain("Electron", 5), vec![("Nup", 2.0), ("Ndn", 3.0)]),
        (chain("S=1", 6), vec![("Sz", -1.0)]),
        (bosons(4, 3), vec![("N", 5.0)]),
        (chain("Fermion", 6), vec![]),
    ] {
        let basis = SectorBasis::new(&sites, &sector(&numbers)).unwrap();
        let states: Vec<_> = (0..basis.dim()).map(|k| basis.state(k).unwrap()).collect();
        assert!(states.windows(2).all(|w| w[0] < w[1]), "lexicographic");
        assert!(states.iter().enumerate().all(|(k, s)| basis.number(s).unwrap() == Some(k)));
        let mut walk = basis::BasisPath::at(&basis, 0);
        for state in &states {
            assert_eq!(&walk.states, state);
            walk.step();
        }
    }
    let basis = SectorBasis::new(&chain("S=1/2", 2), &sector(&[("Sz", 0.0)])).unwrap();
    assert_eq!(basis.number(&[0, 0]).unwrap(), None);
}

#[test]
fn sectors_together_are_the_full_space() {
    let sites = chain("Electron", 4);
    let h = hubbard(4, 3.0, true);
    let mut parts = Vec::new();
    for up in 0..=4 {
        for down in 0..=4 {
            parts.extend(spectrum(&built(&h, &sites, &[("Nup", f64::from(up)), ("Ndn", f64::from(down))])));
        }
    }
    parts.sort_by(f64::total_cmp);
    close(&spectrum(&built(&h, &sites, &[])), &parts, 1e-12);
}

#[test]
fn wrong_input_is_one_sentence() {
    let sites = chain("S=1/2", 4);
    let fails = |h: &OpSum, numbers: &[(&str, f64)]| {
        let built = SectorBasis::new(&sites, &sector(numbers))
            .and_then(|basis| matrix(h, &basis, false, &Task::default()));
        let e = built.unwrap_err();
        (e.message().to_string(), e.hint_text().unwrap_or_default().to_string())
    };
    let sz = one("Sz", 0);
    assert_eq!(
        fails(&one("Sz", 4), &[]),
        (
            "the term `1.0 Sz(4)`: site 4 outside a chain of 4 sites".into(),
            "sites are numbered from 0 to 3".into()
        )
    );
    assert_eq!(
        fails(&one("sz", 0), &[]),
        ("the term `1.0 sz(0)`: no operator `sz` on a site `S=1/2`".into(), "did you mean `Sz`?".into())
    );
    assert_eq!(
        fails(&one("S+", 0), &[("Sz", 0.0)]),
        (
            "the term `1.0 S+(0)` changes Sz by 1, which the sector conserves".into(),
            "leave Sz out of the sector, or the term out of the sum".into()
        )
    );
    assert_eq!(
        fails(&sz, &[("Sz", 3.0)]),
        ("no state of 4 S=1/2 sites has Sz = 3".into(), "Sz goes from -2 to 2 here".into())
    );
    assert_eq!(fails(&sz, &[("Sz", 0.5)]).0, "no state of 4 S=1/2 sites has Sz = 0.5");
    assert_eq!(fails(&sz, &[("Sz", 0.3)]).0, "charge `Sz` is 0.3, which is no multiple of 1/2");
    assert_eq!(
        fails(&sz, &[("N", 1.0)]),
        ("no conserved number `N` on 4 S=1/2 sites".into(), "a sector can name Sz, SzParity".into())
    );
    let e = SectorBasis::new(&chain("Electron", 60), &Sector::new()).unwrap_err();
    assert_eq!(e.message(), "60 Electron sites have 1.3e36 states, too many for a vector");
    let e = Site::named("Spin", None).unwrap_err();
    assert!(e.message().contains("no kind of site `Spin`"));
    assert!(Site::named("S=1/3", None).is_err() && Site::named("S=0", None).is_err());
    assert!(Site::named("Boson", None).unwrap_err().hint_text().is_some());
    assert!(OpSum::new().add(f64::NAN, Vec::new()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A term and its reversed conjugate make a Hermitian matrix whose sectors hold what the full matrix holds.
    #[test]
    fn random_terms_with_their_conjugates_are_hermitian(
        ups in proptest::collection::vec((0usize..4, 0usize..4, 0usize..2), 1..4),
        re in -2.0..2.0f64,
        im in -2.0..2.0f64,
    ) {
        let name = |dagger: bool, spin: usize| {
            format!("C{}{}", if dagger { "dag" } else { "" }, ["up", "dn"][spin])
        };
        let mut factors = Vec::new();
        let mut reversed = Vec::new();
        for &(i, j, spin) in &ups {
            factors.extend([(name(true, spin), i), (name(false, spin), j)]);
        }
        for (operator, i) in factors.iter().rev() {
            let spin = usize::from(operator.ends_with("dn"));
            reversed.push((name(!operator.contains("dag"), spin), *i));
        }
        let mut h = OpSum::new();
        h.add(C64::new(re, im), factors).unwrap();
        h.add(C64::new(re, -im), reversed).unwrap();
        let sites = chain("Electron", 4);
        let numbers = sector(&[("Nup", 2.0), ("Ndn", 1.0)]);
        let basis = SectorBasis::new(&sites, &numbers).unwrap();
        let part = dense(&matrix(&h, &basis, false, &Task::default()).unwrap());
        prop_assert!(distance(&part, &part.adjoint().to_owned()) < 1e-13);
        let whole = full(&h, &sites);
        let all = SectorBasis::new(&sites, &Sector::new()).unwrap();
        for i in 0..basis.dim() {
            for j in 0..basis.dim() {
                let place = |k: usize| all.number(&basis.state(k).unwrap()).unwrap().unwrap();
                prop_assert!((part[(i, j)] - whole[(place(i), place(j))]).norm() < 1e-14);
            }
        }
    }
}
