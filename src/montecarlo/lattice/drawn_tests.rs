//! Wave functions drawn at random, many of their amplitudes zero, against amplitudes by cofactors and exact matrices:
//! local energies of all configurations, expectation values by enumeration, and where walkers go.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::manybody::{OpSum, SectorBasis, Site, Sites, matrix};
use crate::montecarlo::amplitude::Amplitude;
use crate::number::C64;
use crate::number::philox::{unit, words};
use crate::task::{Interrupt, Task};

/// A source of numbers for one case.
struct Dice {
    case: u32,
    next: u64,
}

impl Dice {
    fn unit(&mut self) -> f64 {
        self.next += 1;
        let w = words(17, self.case, self.next, 0);
        unit(w[0], w[1])
    }

    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }

    /// A number that is zero with some probability; of a few values, so that determinants cancel.
    fn element<S: Amplitude>(&mut self, zeros: f64) -> S {
        if self.unit() < zeros {
            return S::default();
        }
        let of = |dice: &mut Dice| [-1.0, -0.5, 0.5, 1.0, 1.5][dice.below(5)];
        S::from_c64(C64::new(of(self), of(self)))
    }
}

/// A wave function with what it was made of.
struct Drawn<S> {
    state: LatticeState<S>,
    reference: Reference<S>,
    gutzwiller: f64,
    density: Vec<f64>,
    spin: Vec<f64>,
}

fn drawn<S: Amplitude>(dice: &mut Dice, pairs: bool) -> Drawn<S> {
    let n = 2 + dice.below(3);
    let gutzwiller = [1.0, 0.6, 0.0][dice.below(3)];
    let most = if gutzwiller == 0.0 { n / 2 } else { n };
    let up = 1 + dice.below(most.min(3));
    let down = if pairs { up } else { (1 + dice.below(3)).min(if gutzwiller == 0.0 { n - up } else { n }) };
    let zeros = [0.0, 0.3, 0.6, 0.75][dice.below(4)];
    let reference = if pairs {
        let mut f = vec![S::default(); n * n];
        for i in 0..n {
            for j in 0..=i {
                f[i * n + j] = dice.element(zeros);
                f[j * n + i] = f[i * n + j];
            }
        }
        Reference::Pairs { f }
    } else {
        let mut sea = |count: usize| (0..n * count).map(|_| dice.element(zeros)).collect();
        Reference::Sea { up: sea(up), down: sea(down) }
    };
    let mut symmetric = |some: bool| -> Vec<f64> {
        let mut v = vec![0.0; n * n];
        for k in 0..n * n {
            let x = dice.unit() - 0.5;
            (v[k], v[k % n * n + k / n]) = (x, x);
        }
        if some { v } else { Vec::new() }
    };
    let (density, spin) = (symmetric(up.is_multiple_of(2)), symmetric(n % 2 == 1));
    let state = LatticeState::new(n, up, down, reference.clone()).unwrap();
    let state = state.with_gutzwiller(gutzwiller).unwrap();
    let state = state.with_jastrow(density.clone(), spin.clone()).unwrap();
    Drawn { state, reference, gutzwiller, density, spin }
}

/// A determinant by cofactors.
fn cofactors<S: Amplitude>(a: &[Vec<S>]) -> S {
    let Some(first) = a.first() else { return S::real(1.0) };
    let mut sum = S::default();
    for (j, x) in first.iter().enumerate() {
        let minor: Vec<Vec<S>> = a[1..]
            .iter()
            .map(|row| row.iter().enumerate().filter(|(k, _)| *k != j).map(|(_, x)| *x).collect())
            .collect();
        let term = *x * cofactors(&minor);
        sum += if j % 2 == 0 { term } else { -term };
    }
    sum
}

impl<S: Amplitude> Drawn<S> {
    /// Psi by its definition, electrons of spin up left of those of spin down.
    fn amplitude(&self, ups: &[usize], downs: &[usize]) -> C64 {
        let n = self.state.sites();
        let doubly = ups.iter().filter(|i| downs.contains(i)).count();
        let rows = |data: &[S], sites: &[usize]| {
            let count = sites.len();
            cofactors(&sites.iter().map(|i| data[i * count..(i + 1) * count].to_vec()).collect::<Vec<_>>())
        };
        let determinant = match &self.reference {
            Reference::Sea { up, down } => rows(up, ups) * rows(down, downs),
            Reference::Pairs { f } => {
                let row = |i: &usize| downs.iter().map(|j| f[i * n + j]).collect();
                cofactors(&ups.iter().map(row).collect::<Vec<_>>())
            }
        };
        let has = |sites: &[usize], i: usize| f64::from(u8::from(sites.contains(&i)));
        let mut log = 0.0;
        for i in 0..n {
            for j in 0..i {
                let (q, s) = (|i| has(ups, i) + has(downs, i), |i| 0.5 * (has(ups, i) - has(downs, i)));
                log += self.density.get(i * n + j).map_or(0.0, |v| v * q(i) * q(j));
                log += self.spin.get(i * n + j).map_or(0.0, |w| w * s(i) * s(j));
            }
        }
        determinant.to_c64() * self.gutzwiller.powi(doubly as i32) * log.exp()
    }
}

/// All ways to put `k` electrons on `n` sites, as ordered lists.
fn choices(n: usize, k: usize) -> Vec<Vec<usize>> {
    let chosen = |mask: &u32| mask.count_ones() as usize == k;
    (0..1u32 << n).filter(chosen).map(|mask| (0..n).filter(|i| mask >> i & 1 == 1).collect()).collect()
}

/// A sum of products of one to three hops in any order of their operators, spin flips and densities among them.
fn operators(dice: &mut Dice, n: usize) -> OpSum {
    let mut sum = OpSum::new();
    for _ in 0..6 {
        let mut factors: Vec<(String, usize)> = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let spin = ["up", "dn"][dice.below(2)];
            let pair = match dice.below(4) {
                0 => [("S+".to_string(), dice.below(n)), ("S-".to_string(), dice.below(n))],
                1 => [(format!("N{spin}"), dice.below(n)), ("Ntot".to_string(), dice.below(n))],
                _ => [(format!("Cdag{spin}"), dice.below(n)), (format!("C{spin}"), dice.below(n))],
            };
            for factor in pair {
                let at = dice.below(factors.len() + 1);
                factors.insert(at, factor);
            }
        }
        sum.add(dice.element::<C64>(0.0), factors).unwrap();
    }
    sum
}

/// A configuration, its number in the exact basis, and its amplitude by definition, signs of the site order included.
type Listed = (Vec<usize>, Vec<usize>, usize, C64, f64);

fn listed<S: Amplitude>(drawn: &Drawn<S>) -> (SectorBasis, Vec<Listed>) {
    let (n, (up, down)) = (drawn.state.sites(), drawn.state.electrons());
    let sites = Sites::uniform(Site::named("Electron", None).unwrap(), n).unwrap();
    let sector = vec![("Nup".to_string(), up as f64), ("Ndn".to_string(), down as f64)];
    let basis = SectorBasis::new(&sites, &sector).unwrap();
    let names = ["Emp", "Up", "Dn", "UpDn"];
    let mut all = Vec::new();
    for ups in choices(n, up) {
        for downs in choices(n, down) {
            let name = |i| names[usize::from(ups.contains(&i)) + 2 * usize::from(downs.contains(&i))];
            let states: Vec<u8> =
                (0..n).map(|i| sites.site(i).unwrap().state(name(i)).unwrap() as u8).collect();
            let number = basis.number(&states).unwrap().unwrap();
            let swaps: usize = ups.iter().map(|i| downs.iter().filter(|j| *j < i).count()).sum();
            let sign = if swaps % 2 == 1 { -1.0 } else { 1.0 };
            let psi = drawn.amplitude(&ups, &downs);
            all.push((ups.clone(), downs, number, psi, sign));
        }
    }
    (basis, all)
}

/// Checks one wave function; whether it had any amplitude.
fn check<S: Amplitude>(case: u32, pairs: bool) -> bool {
    let mut dice = Dice { case, next: 0 };
    let drawn = drawn::<S>(&mut dice, pairs);
    let n = drawn.state.sites();
    let (basis, all) = listed(&drawn);
    let largest = all.iter().map(|c| c.3.norm()).fold(0.0, f64::max);
    if largest == 0.0 {
        return false;
    }
    let real = |psi: C64| psi.norm() > 1e-9 * largest;
    let norm: f64 = all.iter().map(|c| c.3.norm_sqr()).sum();
    let mut psi = vec![C64::ZERO; all.len()];
    all.iter().for_each(|(_, _, number, value, sign)| psi[*number] = *value * *sign);
    for _ in 0..3 {
        let sum = operators(&mut dice, n);
        let csr = matrix(&sum, &basis, false, &Task::default()).unwrap();
        let local = LocalSum::new(&sum, n).unwrap();
        let row = |k: usize| -> C64 {
            (csr.row_start[k]..csr.row_start[k + 1])
                .map(|e| csr.values.get(e) * psi[csr.columns.get(e)])
                .sum()
        };
        let exact: C64 = (0..all.len()).map(|k| psi[k].conj() * row(k)).sum::<C64>() / norm;
        let mut mean = C64::ZERO;
        for (ups, downs, number, value, sign) in all.iter().filter(|c| real(c.3)) {
            let occupied = drawn.state.occupied(ups, downs).unwrap();
            let (log, phase) = drawn.state.log(&occupied);
            assert!((phase.to_c64() * log.exp() - value).norm() < 1e-10 * largest, "case {case}");
            let (found, expected) = (local.local(&drawn.state, &occupied), row(*number) / (value * sign));
            let close = (found - expected).norm() < 1e-8 * (1.0 + expected.norm());
            assert!(close, "case {case}: {found} {expected} of {sum} at {ups:?} {downs:?}");
            mean += found * value.norm_sqr() / norm;
        }
        assert!((mean - exact).norm() < 1e-8 * (1.0 + exact.norm()), "case {case}: {mean} {exact} of {sum}");
    }
    visited(case, &drawn, &all, norm);
    true
}

/// Walkers visit every configuration with the probability |Psi|^2.
fn visited<S: Amplitude>(case: u32, drawn: &Drawn<S>, all: &[Listed], norm: f64) {
    let walkers = 8;
    let psi = Arc::new(drawn.state.clone());
    let mut walk = LatticeWalkers::new(psi, walkers, u64::from(case), &()).unwrap();
    walk.run(&(), 50, &Interrupt::default()).unwrap();
    let mut counts: HashMap<[Vec<u32>; 2], f64> = HashMap::new();
    let samples = 1500;
    for _ in 0..samples {
        walk.run(&(), 2, &Interrupt::default()).unwrap();
        for mut places in walk.places().unwrap() {
            places.iter_mut().for_each(|p| p.sort_unstable());
            *counts.entry(places).or_default() += 1.0 / (walkers * samples) as f64;
        }
    }
    let wide = |sites: &[usize]| sites.iter().map(|i| *i as u32).collect::<Vec<_>>();
    let mut apart = 0.0;
    for (ups, downs, _, value, _) in all {
        let (found, expected) = (counts.get(&[wide(ups), wide(downs)]).copied(), value.norm_sqr() / norm);
        assert!(expected > 1e-15 || found.is_none(), "case {case}: a walker at {ups:?} {downs:?}");
        apart += 0.5 * (found.unwrap_or(0.0) - expected).abs();
    }
    assert!(apart < 0.06, "case {case}: {apart} of {} configurations, {}", all.len(), drawn.state.describe());
}

#[test]
fn drawn_wave_functions() {
    let cases = 48;
    let mut alive = 0;
    for case in 0..cases {
        let pairs = case % 2 == 0;
        alive +=
            usize::from(if case % 4 < 2 { check::<f64>(case, pairs) } else { check::<C64>(case, pairs) });
    }
    assert!(alive >= 30, "{alive} of {cases} wave functions did not vanish");
}

/// Wave functions whose electrons move two at a time or not at all, against closed forms.
#[test]
fn moves_through_zeros() {
    let mean = |f: Vec<f64>, n: usize, pairs: usize, g: f64, bonds: &[(usize, usize, f64)]| {
        let state =
            LatticeState::new(n, pairs, pairs, Reference::Pairs { f }).unwrap().with_gutzwiller(g).unwrap();
        let mut sum = OpSum::new();
        for &(i, j, strength) in bonds {
            for (c, a, b) in [(1.0, "Sz", "Sz"), (0.5, "S+", "S-"), (0.5, "S-", "S+")] {
                sum.add(strength * c, vec![(a.to_string(), i), (b.to_string(), j)]).unwrap();
            }
        }
        let local = LocalSum::new(&sum, n).unwrap();
        let mut walk = LatticeWalkers::new(Arc::new(state), 16, 1, &()).unwrap();
        let mut energies = Vec::new();
        for _ in 0..200 {
            walk.run(&(), 2, &Interrupt::default()).unwrap();
            let values = local.local_values(&mut walk).unwrap();
            energies.push(values.iter().map(|z| z.re).sum::<f64>() / values.len() as f64);
        }
        assert!(walk.acceptance() > 0.0);
        energies.iter().sum::<f64>() / energies.len() as f64
    };
    // A singlet, and the dimers of Majumdar and Ghosh, of -3/8 a site: local energies are the same everywhere.
    let two = mean(vec![0.0, 1.0, 1.0, 0.0], 2, 1, 0.0, &[(0, 1, 1.0)]);
    assert!((two + 0.75).abs() < 1e-12, "{two}");
    let n = 8;
    let dimers: Vec<f64> =
        (0..n * n).map(|k| if k / n / 2 == k % n / 2 && k / n != k % n { 1.0 } else { 0.0 }).collect();
    let bonds: Vec<_> = (0..n).flat_map(|i| [(i, (i + 1) % n, 1.0), (i, (i + 2) % n, 0.5)]).collect();
    let found = mean(dimers.clone(), n, n / 2, 0.0, &bonds);
    assert!((found + 3.0).abs() < 1e-10, "{found}");
    // Two pairs on four dimers go two at a time: 24 configurations on two dimers, 4 on one, where no site has a spin.
    let loose = mean(dimers, n, 2, 1.0, &[(0, 1, 1.0), (2, 3, 1.0), (4, 5, 1.0), (6, 7, 1.0)]);
    assert!((loose + 9.0 / 7.0).abs() < 0.1, "{loose}");
}
