//! States as vectors against vectors: products, sums, elements, gates, reduced density matrices, samples,
//! infinite temperature.

use std::sync::Arc;

use umklapp::backend::Device;
use umklapp::backend::cpu::Cpu;
use umklapp::manybody::dmrg::{MatrixProductState, Truncation, conserved};
use umklapp::manybody::{OpSum, Sector, SectorBasis, Site, Sites, operator};
use umklapp::number::C64;
use umklapp::operator::MatrixFormat;
use umklapp::task::{Interrupt, Task};

fn device() -> Device {
    Arc::new(Cpu::new(1, Interrupt::default()).unwrap())
}

fn chain(kind: &str, n: usize) -> Sites {
    let nmax = (kind == "Boson").then_some(2);
    Sites::uniform(Site::named(kind, nmax).unwrap(), n).unwrap()
}

fn sector(numbers: &[(&str, f64)]) -> Sector {
    numbers.iter().map(|(name, q)| (name.to_string(), *q)).collect()
}

fn sum(terms: &[(C64, &[(&str, usize)])]) -> OpSum {
    let mut h = OpSum::new();
    for (z, factors) in terms {
        h.add(*z, factors.iter().map(|(name, i)| (name.to_string(), *i)).collect()).unwrap();
    }
    h
}

/// Twice a number's value in every state of a site.
fn twice(sites: &Sites, site: usize, name: &str) -> Vec<i32> {
    let charges = sites.site(site).unwrap().charges();
    charges.iter().find(|c| c.name == name).unwrap().twice.clone()
}

fn re(x: f64) -> C64 {
    C64::new(x, 0.0)
}

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }
    fn complex(&mut self) -> C64 {
        C64::new(self.next(), self.next())
    }
}

fn uncut() -> Truncation {
    Truncation::default()
}

/// All product states, and the sector of each by the names of a state's numbers.
fn configurations(sites: &Sites, names: &[String]) -> Vec<(Vec<usize>, Sector)> {
    let all = SectorBasis::new(sites, &Sector::new()).unwrap();
    let one = |k: usize| {
        let states: Vec<usize> = all.state(k).unwrap().iter().map(|s| *s as usize).collect();
        let number = |name: &String| {
            let all: i32 = states.iter().enumerate().map(|(i, s)| twice(sites, i, name)[*s]).sum();
            (name.clone(), f64::from(all) / 2.0)
        };
        let sector = names.iter().map(number).collect();
        (states, sector)
    };
    (0..all.dim()).map(one).collect()
}

/// A state as a vector over all product states.
fn vector(psi: &MatrixProductState<C64>) -> Vec<C64> {
    let names: Vec<String> = psi.sector().into_iter().map(|s| s.0).collect();
    let of = |(states, sector): (Vec<usize>, Sector)| {
        MatrixProductState::<C64>::product(psi.sites(), &states, &sector).unwrap().overlap(psi).unwrap()
    };
    configurations(psi.sites(), &names).into_iter().map(of).collect()
}

fn dense(h: &OpSum, sites: &Sites) -> Vec<C64> {
    let basis = SectorBasis::new(sites, &Sector::new()).unwrap();
    operator(&device(), h, &basis, MatrixFormat::Csr, false, &Task::default()).unwrap().to_dense().unwrap()
}

fn times(m: &[C64], x: &[C64]) -> Vec<C64> {
    let n = x.len();
    (0..n).map(|i| (0..n).map(|j| m[i * n + j] * x[j]).sum()).collect()
}

fn dot(x: &[C64], y: &[C64]) -> C64 {
    x.iter().zip(y).map(|(a, b)| a.conj() * b).sum()
}

fn close(x: &[C64], y: &[C64], tol: f64) {
    let off = x.iter().zip(y).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
    assert!(x.len() == y.len() && off < tol, "{off}");
}

/// A state with all product states of a sector in it.
fn mixed(sites: &Sites, of: &Sector, seed: u64) -> MatrixProductState<C64> {
    let names: Vec<String> = of.iter().map(|s| s.0.clone()).collect();
    let (_, target) = conserved(sites, of).unwrap();
    let mut numbers = Numbers(seed);
    let all: Vec<MatrixProductState<C64>> = configurations(sites, &names)
        .into_iter()
        .filter(|c| conserved(sites, &c.1).is_ok_and(|found| found.1 == target))
        .map(|(states, _)| MatrixProductState::product(sites, &states, of).unwrap())
        .collect();
    let parts: Vec<(C64, &MatrixProductState<C64>)> = all.iter().map(|s| (numbers.complex(), s)).collect();
    MatrixProductState::combined(&parts, &uncut(), &Task::default()).unwrap().0
}

/// Kinds of sites with a sector, a sum that changes it and one that does not.
fn cases() -> Vec<(Sites, Sector, OpSum, OpSum)> {
    let i = C64::I;
    vec![
        (
            chain("S=1/2", 5),
            sector(&[("Sz", 0.5)]),
            sum(&[(re(1.0), &[("S+", 0)]), (i * 0.5, &[("S+", 3)]), (re(0.3), &[("S+", 1), ("Sz", 4)])]),
            sum(&[(re(1.0), &[("S+", 0), ("S-", 4)]), (re(0.7), &[]), (i, &[("Sz", 2)])]),
        ),
        (
            chain("S=1", 4),
            sector(&[("Sz", -1.0)]),
            sum(&[(re(1.0), &[("S+", 0), ("S+", 2)]), (re(-2.0), &[("S+", 3), ("S+", 3)])]),
            sum(&[(re(1.0), &[("Sz", 0), ("Sz", 3)]), (i, &[("S+", 1), ("S-", 2)])]),
        ),
        (
            chain("Electron", 3),
            sector(&[("Nup", 1.0), ("Ndn", 2.0)]),
            sum(&[
                (re(1.0), &[("Cdagup", 0)]),
                (i, &[("Cdagup", 2)]),
                (re(0.4), &[("Cdagup", 1), ("Ntot", 2)]),
            ]),
            sum(&[
                (re(1.0), &[("Cdagup", 0), ("Cup", 2)]),
                (re(0.3), &[("Cdagdn", 2), ("Cdn", 0), ("Nup", 1)]),
            ]),
        ),
        (
            chain("Fermion", 5),
            sector(&[("N", 2.0)]),
            sum(&[(re(1.0), &[("Cdag", 3), ("Cdag", 1)]), (i, &[("Cdag", 0), ("Cdag", 4)])]),
            sum(&[(re(1.0), &[("Cdag", 0), ("C", 3)]), (re(2.0), &[("Cdag", 4), ("C", 1)])]),
        ),
        (
            chain("Boson", 4),
            sector(&[("N", 3.0)]),
            sum(&[(re(1.0), &[("Adag", 0)]), (re(0.5), &[("Adag", 3), ("N", 1)])]),
            sum(&[(re(1.0), &[("Adag", 0), ("A", 3)]), (re(0.1), &[("N", 1), ("N", 1)])]),
        ),
        (
            chain("S=1/2", 2),
            sector(&[("Sz", 0.0)]),
            sum(&[(re(1.0), &[("S-", 1)])]),
            sum(&[(i, &[("Sz", 0)])]),
        ),
        (
            chain("S=1/2", 1),
            sector(&[("Sz", -0.5)]),
            sum(&[(re(2.0), &[("S+", 0)])]),
            sum(&[(i, &[("Sz", 0)])]),
        ),
        (
            chain("S=1/2", 4),
            Sector::new(),
            sum(&[(re(1.0), &[("S+", 0)]), (re(1.0), &[("S-", 2)])]),
            sum(&[(i, &[("Sx", 3)])]),
        ),
    ]
}

#[test]
fn products_sums_and_elements_are_those_of_vectors() {
    let task = Task::default();
    for (sites, of, changing, keeping) in cases() {
        let psi = mixed(&sites, &of, 1).scaled(C64::new(0.3, -1.2)).unwrap();
        let other = mixed(&sites, &of, 2);
        let (x, y) = (vector(&psi), vector(&other));
        assert!((psi.norm() - dot(&x, &x).re.sqrt()).abs() < 1e-12);
        let overlap = psi.overlap(&other).unwrap();
        assert!((overlap - dot(&x, &y)).norm() < 1e-12);
        for o in [&changing, &keeping] {
            let m = dense(o, &sites);
            let (image, discarded) = psi.applied(o, &uncut(), &task).unwrap();
            close(&vector(&image), &times(&m, &x), 1e-12);
            assert!(discarded < 1e-28, "{discarded}");
            let between = image.element(o, &psi).unwrap();
            assert!((between - dot(&times(&m, &x), &times(&m, &x))).norm() < 1e-11);
            let within = other.element(o, &psi).unwrap();
            assert!((within - dot(&y, &times(&m, &x))).norm() < 1e-12);
            // The image of the adjoint comes back to the sector.
            let (back, _) = image.applied(&o.dagger(), &uncut(), &task).unwrap();
            assert!((psi.overlap(&back).unwrap() - image.norm().powi(2)).norm() < 1e-11);
        }
        let (a, b) = (C64::new(0.5, 2.0), C64::new(-1.5, 0.1));
        let (both, _) = MatrixProductState::combined(&[(a, &psi), (b, &other)], &uncut(), &task).unwrap();
        let sum: Vec<C64> = x.iter().zip(&y).map(|(x, y)| a * x + b * y).collect();
        close(&vector(&both), &sum, 1e-12);
        let (none, _) = MatrixProductState::combined(&[(a, &psi), (-a, &psi)], &uncut(), &task).unwrap();
        assert_eq!(none.norm(), 0.0);
    }
}

#[test]
fn zero_is_a_state_like_others() {
    let task = Task::default();
    let sites = chain("S=1/2", 3);
    let up = MatrixProductState::<f64>::product(&sites, &[0, 0, 0], &sector(&[("Sz", 1.5)])).unwrap();
    let raise = sum(&[(re(1.0), &[("S+", 1)]), (re(1.0), &[("S+", 2)])]);
    let (zero, _) = up.applied(&raise, &uncut(), &task).unwrap();
    assert_eq!((zero.norm(), zero.sector()), (0.0, sector(&[("Sz", 2.5)])));
    assert_eq!(up.overlap(&zero).unwrap(), C64::ZERO);
    assert_eq!(zero.overlap(&zero).unwrap(), C64::ZERO);
    assert_eq!(zero.element(&raise, &up).unwrap(), C64::ZERO);
    let (again, _) = zero.applied(&raise.dagger(), &uncut(), &task).unwrap();
    assert_eq!((again.norm(), again.sector()), (0.0, up.sector()));
    let (sum_of, _) =
        MatrixProductState::combined(&[(re(2.0), &again), (re(3.0), &up)], &uncut(), &task).unwrap();
    assert!((sum_of.norm() - 3.0).abs() < 1e-14);
    // States of different sectors are orthogonal and have no sum.
    let down = MatrixProductState::<f64>::product(&sites, &[0, 0, 1], &sector(&[("Sz", 0.5)])).unwrap();
    assert_eq!(up.overlap(&down).unwrap(), C64::ZERO);
    assert!(MatrixProductState::combined(&[(re(1.0), &up), (re(1.0), &down)], &uncut(), &task).is_err());
    assert!(up.applied(&sum(&[(re(1.0), &[("S-", 1)]), (re(1.0), &[("Sz", 2)])]), &uncut(), &task).is_err());
    // An operator that cancels is zero, too.
    let (none, _) =
        down.applied(&sum(&[(re(1.0), &[("Sz", 0)]), (re(-1.0), &[("Sz", 0)])]), &uncut(), &task).unwrap();
    assert_eq!(none.norm(), 0.0);
}

#[test]
fn a_cut_loses_what_it_says() {
    let task = Task::default();
    let psi = mixed(&chain("S=1/2", 8), &sector(&[("Sz", 0.0)]), 5);
    let cut = Truncation { states: Some(6), ..Truncation::default() };
    let (small, discarded) = MatrixProductState::combined(&[(re(1.0), &psi)], &cut, &task).unwrap();
    assert!(small.widths().into_iter().max() == Some(6));
    let apart = MatrixProductState::combined(&[(re(1.0), &psi), (re(-1.0), &small)], &uncut(), &task)
        .unwrap()
        .0
        .norm();
    let lost = (apart / psi.norm()).powi(2);
    assert!(lost > 1e-4 && lost <= discarded * (1.0 + 1e-9), "{lost} of {discarded}");
}

#[test]
fn gates_converge_with_their_order() {
    let task = Task::default();
    let mut cases = Vec::new();
    let sites = chain("Electron", 3);
    let mut h = OpSum::new();
    for i in 0..3 {
        h = h + sum(&[(re(2.0), &[("Nupdn", i)]), (re(0.3 * i as f64), &[("Ntot", i)])]);
    }
    h = h + OpSum::from(re(0.4));
    for i in 0..2 {
        for (c, d) in [("Cdagup", "Cup"), ("Cdagdn", "Cdn")] {
            let z = C64::new(-1.0, 0.2);
            h = h + sum(&[(z, &[(c, i), (d, i + 1)]), (z.conj(), &[(c, i + 1), (d, i)])]);
        }
    }
    cases.push((sites, sector(&[("Nup", 2.0), ("Ndn", 1.0)]), h));
    let sites = chain("S=1/2", 2);
    cases.push((sites, Sector::new(), sum(&[(re(1.0), &[("Sx", 0), ("Sx", 1)]), (re(0.5), &[("Sz", 1)])])));
    for (sites, of, h) in cases {
        let psi = mixed(&sites, &of, 3);
        let x = vector(&psi);
        let m = dense(&h, &sites);
        for t in [C64::new(0.0, -0.6), C64::new(-0.6, 0.0), C64::new(-0.2, 0.5)] {
            // The series of the exponential.
            let (mut exact, mut term) = (x.clone(), x.clone());
            for k in 1..60 {
                term = times(&m, &term).iter().map(|z| z * t / k as f64).collect();
                exact.iter_mut().zip(&term).for_each(|(a, b)| *a += b);
            }
            let size = dot(&exact, &exact).re.sqrt();
            for (order, ratio) in [(2, 3.5), (4, 13.0)] {
                let run = |steps: usize| {
                    let done = psi.trotter(&h, t, steps, order, &uncut(), &task).unwrap();
                    let norm = if t.re == 0.0 { 1.0 } else { size };
                    let found: Vec<C64> = vector(&done.state).iter().map(|z| z * norm).collect();
                    let log =
                        if t.re == 0.0 { 0.0 } else { (done.log_norm + psi.norm().ln() - size.ln()).abs() };
                    let off = found.iter().zip(&exact).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                    off / size + log
                };
                let (coarse, fine) = (run(4), run(8));
                assert!(fine < 1e-11 || coarse / fine > ratio, "order {order}, {t}: {coarse}, {fine}");
                assert!(fine < 0.02, "{fine}");
            }
        }
    }
    let far = sum(&[(re(1.0), &[("Sz", 0), ("Sz", 2)])]);
    let psi = mixed(&chain("S=1/2", 3), &Sector::new(), 1);
    assert!(psi.trotter(&far, C64::I, 1, 2, &uncut(), &task).is_err());
}

#[test]
fn few_sites_have_the_density_matrix_of_the_vector() {
    let task = Task::default();
    for (kind, n, of, some) in [
        ("S=1/2", 5, sector(&[("Sz", 0.5)]), vec![vec![1], vec![0, 3], vec![1, 2, 4]]),
        ("S=1", 3, Sector::new(), vec![vec![0, 2], vec![0, 1, 2]]),
        ("S=1/2", 1, Sector::new(), vec![vec![0]]),
    ] {
        let sites = chain(kind, n);
        let psi = mixed(&sites, &of, 7);
        let x = vector(&psi);
        let all = configurations(&sites, &[]);
        let dim = sites.site(0).unwrap().dim();
        for places in some {
            let size = dim.pow(places.len() as u32);
            let number = |c: &[usize]| places.iter().fold(0, |k, &p| k * dim + c[p]);
            let rest = |c: &[usize]| (0..n).filter(|p| !places.contains(p)).map(|p| c[p]).collect::<Vec<_>>();
            let mut exact = vec![C64::ZERO; size * size];
            for (a, z) in all.iter().zip(&x) {
                for (b, w) in all.iter().zip(&x).filter(|(b, _)| rest(&a.0) == rest(&b.0)) {
                    exact[number(&a.0) * size + number(&b.0)] += z * w.conj() / psi.norm().powi(2);
                }
            }
            close(&psi.reduced(&places, &task).unwrap(), &exact, 1e-13);
        }
    }
    // That of electrons gives their correlations, with the sign of the site between.
    let sites = chain("Electron", 3);
    let psi = mixed(&sites, &sector(&[("Nup", 1.0), ("Ndn", 2.0)]), 4);
    let rho = psi.reduced(&[0, 2], &task).unwrap();
    let pair = chain("Electron", 2);
    for (a, b) in [("Cdagup", "Cup"), ("Cdagdn", "Cdn"), ("Ntot", "Nup")] {
        let small = dense(&sum(&[(re(1.0), &[(a, 0), (b, 1)])]), &pair);
        let trace: C64 = (0..16)
            .flat_map(|i| (0..16).map(move |j| (i, j)))
            .map(|(i, j)| rho[i * 16 + j] * small[j * 16 + i])
            .sum();
        let whole = psi.expectation(&sum(&[(re(1.0), &[(a, 0), (b, 2)])])).unwrap();
        assert!((trace - whole).norm() < 1e-13, "{a} {b}: {trace} {whole}");
    }
}

#[test]
fn samples_follow_the_weights() {
    let psi = mixed(&chain("S=1/2", 4), &sector(&[("Sz", 0.0)]), 11);
    let x = vector(&psi);
    let all = configurations(psi.sites(), &[]);
    let mut numbers = Numbers(9);
    let count = 20_000;
    let mut seen = vec![0.0; all.len()];
    for _ in 0..count {
        let drawn = psi.sample(|| numbers.next() + 0.5).unwrap();
        seen[all.iter().position(|c| c.0 == drawn).unwrap()] += 1.0 / f64::from(count);
    }
    for (z, seen) in x.iter().zip(&seen) {
        let p = z.norm_sqr() / psi.norm().powi(2);
        let sigma = (p * (1.0 - p) / f64::from(count)).sqrt();
        assert!((p - seen).abs() <= 5.0 * sigma, "{p} {seen}");
    }
}

#[test]
fn infinite_temperature_counts_all_states_alike() {
    let task = Task::default();
    for (kind, n, of) in [
        ("S=1/2", 5, sector(&[("Sz", 0.5)])),
        ("S=1/2", 4, Sector::new()),
        ("Electron", 3, sector(&[("Nup", 1.0), ("Ndn", 2.0)])),
        ("Fermion", 4, sector(&[("N", 0.0)])),
        ("Boson", 3, sector(&[("N", 2.0)])),
        ("S=1", 1, sector(&[("Sz", 0.0)])),
    ] {
        let sites = chain(kind, n);
        let (psi, log) = MatrixProductState::infinite_temperature(&sites, &of, None, &task).unwrap();
        let basis = SectorBasis::new(&sites, &of).unwrap();
        assert!((log - (basis.dim() as f64).ln()).abs() < 1e-12, "{kind}");
        let name = &sites.charges()[0];
        let operator = match name.as_str() {
            "Nup" => "Nup",
            "N" => "N",
            _ => "Sz",
        };
        let found = psi.local(operator, &(0..n).collect::<Vec<_>>()).unwrap();
        for (i, found) in found.iter().enumerate() {
            let own = |k: usize| twice(&sites, i, name)[basis.state(k).unwrap()[i] as usize];
            let mean = (0..basis.dim()).map(|k| f64::from(own(k)) / 2.0).sum::<f64>() / basis.dim() as f64;
            assert!((found.re - mean).abs() < 1e-12, "{kind}: {found} {mean}");
        }
    }
    assert!(
        MatrixProductState::infinite_temperature(&chain("S=1/2", 2), &sector(&[("Sz", 2.0)]), None, &task)
            .is_err()
    );
}
