//! Full enumeration against published tables, local energies against exact matrices, and Markov chains against
//! enumeration.

use std::sync::Arc;

use super::*;
use crate::manybody::{OpSum, SectorBasis, Site, Sites, matrix};
use crate::montecarlo::amplitude::Amplitude;
use crate::montecarlo::statistics::blocked;
use crate::number::{C64, Matrix, Series};
use crate::task::{Interrupt, Task};

/// Bonds `(i, j, sign)` of a chain; the sign is that of the closing bond, 0 if open.
fn chain(n: usize, sign: f64) -> Vec<(usize, usize, f64)> {
    let mut bonds: Vec<_> = (1..n).map(|i| (i - 1, i, 1.0)).collect();
    if sign != 0.0 {
        bonds.push((n - 1, 0, sign));
    }
    bonds
}

/// Bonds of a torus of l x l sites, antiperiodic in the first direction.
fn torus(l: usize) -> Vec<(usize, usize, f64)> {
    let site = |x: usize, y: usize| x % l * l + y % l;
    let one = |x: usize, y: usize| {
        [(site(x, y), site(x + 1, y), if x + 1 == l { -1.0 } else { 1.0 }), (site(x, y), site(x, y + 1), 1.0)]
    };
    (0..l).flat_map(|x| (0..l).flat_map(move |y| one(x, y))).collect()
}

/// The lowest orbitals of hopping -1, `n x count`.
fn sea(n: usize, bonds: &[(usize, usize, f64)], count: usize) -> Vec<f64> {
    let mut h = vec![0.0; n * n];
    for &(i, j, sign) in bonds {
        h[i * n + j] -= sign;
        h[j * n + i] -= sign;
    }
    let (_, vectors) = Matrix::new(n, n, Series::Real(h)).unwrap().eigh().unwrap();
    let real = vectors.data().as_real("eigenvectors").unwrap().to_vec();
    (0..n).flat_map(|i| real[i * n..i * n + count].to_vec()).collect()
}

fn hubbard(n: usize, bonds: &[(usize, usize, f64)], t: f64, u: f64) -> OpSum {
    let mut sum = OpSum::new();
    let term = |a: &str, i: usize, b: &str, j: usize| vec![(a.to_string(), i), (b.to_string(), j)];
    for &(i, j, sign) in bonds {
        for (create, destroy) in [("Cdagup", "Cup"), ("Cdagdn", "Cdn")] {
            sum.add(-t * sign, term(create, i, destroy, j)).unwrap();
            sum.add(-t * sign, term(create, j, destroy, i)).unwrap();
        }
    }
    for i in 0..n {
        sum.add(u, vec![("Nupdn".to_string(), i)]).unwrap();
    }
    sum
}

fn heisenberg(bonds: &[(usize, usize, f64)]) -> OpSum {
    let mut sum = OpSum::new();
    for &(i, j, _) in bonds {
        for (a, b, c) in [("S+", "S-", 0.5), ("S-", "S+", 0.5), ("Sz", "Sz", 1.0)] {
            sum.add(c, vec![(a.to_string(), i), (b.to_string(), j)]).unwrap();
        }
    }
    sum
}

fn choices(n: usize, k: usize) -> Vec<Vec<usize>> {
    (0..1usize << n)
        .filter(|m| m.count_ones() as usize == k)
        .map(|m| (0..n).filter(|i| m >> i & 1 == 1).collect())
        .collect()
}

/// Means of some local values and the variance of the first, over all configurations.
fn enumerate<S: Amplitude>(state: &LatticeState<S>, sums: &[OpSum]) -> (Vec<f64>, f64) {
    let n = state.sites();
    let (up, down) = state.electrons();
    let sums: Vec<LocalSum> = sums.iter().map(|s| LocalSum::new(s, n).unwrap()).collect();
    let (mut norm, mut means, mut square) = (0.0, vec![0.0; sums.len()], 0.0);
    let all = choices(n, down);
    for ups in choices(n, up) {
        // Where no site may have two and there is one a site, those of spin down have the others.
        let rest: Vec<usize> = (0..n).filter(|i| !ups.contains(i)).collect();
        let projected = state.gutzwiller() == 0.0 && up + down == n;
        let downs: &[Vec<usize>] = if projected { &[rest] } else { &all };
        for downs in downs {
            if state.gutzwiller() == 0.0 && ups.iter().any(|i| downs.contains(i)) {
                continue;
            }
            let Ok(occupied) = state.occupied(&ups, downs) else { continue };
            let weight = (2.0 * state.log(&occupied).0).exp();
            norm += weight;
            for (k, sum) in sums.iter().enumerate() {
                let value = sum.local(state, &occupied);
                means[k] += weight * value.re;
                if k == 0 {
                    square += weight * value.norm_sqr();
                }
            }
        }
    }
    means.iter_mut().for_each(|m| *m /= norm);
    let variance = square / norm - means[0] * means[0];
    (means, variance)
}

fn fermi(n: usize, bonds: &[(usize, usize, f64)], filled: usize) -> LatticeState<f64> {
    let up = sea(n, bonds, filled);
    LatticeState::new(n, filled, filled, Reference::Sea { down: up.clone(), up }).unwrap()
}

#[test]
fn gutzwiller_tables() {
    for (n, sign, g, kinetic, double) in [
        (4, -1.0, 0.7, -5.3928550308, 0.7355428465),
        (4, -1.0, 0.5, -4.7244057468, 0.5054945055),
        (4, -1.0, 0.3, -3.3471486806, 0.2417246388),
        (6, 1.0, 0.5, -6.7386243386, 0.8031746032),
        (6, 0.0, 0.5, -5.8024623223, 0.7420906568),
        (8, -1.0, 0.5, -8.8321814162, 1.0953988247),
        (4, -1.0, 1.0, -5.6568542495, 1.0),
        (6, 1.0, 1.0, -8.0, 1.5),
    ] {
        let bonds = chain(n, sign);
        let state = fermi(n, &bonds, n / 2).with_gutzwiller(g).unwrap();
        let (means, _) = enumerate(&state, &[hubbard(n, &bonds, 1.0, 0.0), hubbard(n, &[], 0.0, 1.0)]);
        assert!(
            (means[0] - kinetic).abs() < 1e-9 && (means[1] - double).abs() < 1e-9,
            "{n} {sign} {g}: {means:?}"
        );
    }
}

#[test]
fn projected_seas_of_the_heisenberg_model() {
    for (n, energy, variance) in
        [(4, -2.0, 0.0), (6, -2.8, 0.01), (8, -3.6456565642, 0.0159043513), (10, -4.5075113376, 0.0209105587)]
    {
        let sign = if usize::is_multiple_of(n, 4) { -1.0 } else { 1.0 };
        let state = fermi(n, &chain(n, sign), n / 2).with_gutzwiller(0.0).unwrap();
        let (means, found) = enumerate(&state, &[heisenberg(&chain(n, 1.0))]);
        assert!(
            (means[0] - energy).abs() < 1e-9 && (found - variance).abs() < 1e-8,
            "{n}: {means:?} {found}"
        );
    }
    let bonds = torus(4);
    let state = fermi(16, &bonds, 8).with_gutzwiller(0.0).unwrap();
    // Walkers never go where the sea vanishes by symmetry, so their variance is not that of the state.
    let (means, _) = enumerate(&state, &[heisenberg(&bonds)]);
    assert!((means[0] + 9.1570247934).abs() < 1e-9, "{means:?}");
}

#[test]
fn spins_along_all_axes() {
    let mut axes = OpSum::new();
    for (i, j, _) in chain(6, 1.0) {
        for axis in ["Sx", "Sy", "Sz"] {
            axes.add(1.0, vec![(axis.to_string(), i), (axis.to_string(), j)]).unwrap();
        }
    }
    let state = fermi(6, &chain(6, 1.0), 3).with_gutzwiller(0.0).unwrap();
    let (means, variance) = enumerate(&state, &[axes]);
    assert!((means[0] + 2.8).abs() < 1e-12 && (variance - 0.01).abs() < 1e-10, "{means:?} {variance}");
}

/// Local energies of an arbitrary state against the product of the exact matrix with its vector; signs of the site
/// order of operator sums and of the walkers' order meet here.
fn against_exact<S: Amplitude>(state: &LatticeState<S>, sum: &OpSum) {
    let n = state.sites();
    let (up, down) = state.electrons();
    let sites = Sites::uniform(Site::named("Electron", None).unwrap(), n).unwrap();
    let sector = vec![("Nup".to_string(), up as f64), ("Ndn".to_string(), down as f64)];
    let basis = SectorBasis::new(&sites, &sector).unwrap();
    let csr = matrix(sum, &basis, false, &Task::default()).unwrap();
    let local = LocalSum::new(sum, n).unwrap();
    let names = ["Emp", "Up", "Dn", "UpDn"];
    let mut all = Vec::new();
    for ups in choices(n, up) {
        for downs in choices(n, down) {
            let states: Vec<usize> =
                (0..n).map(|i| usize::from(ups.contains(&i)) + 2 * usize::from(downs.contains(&i))).collect();
            let states: Vec<u8> =
                (0..n).map(|i| sites.site(i).unwrap().state(names[states[i]]).unwrap() as u8).collect();
            let number = basis.number(&states).unwrap().unwrap();
            // From up before down to site by site: an electron of spin up passes those of spin down before it.
            let swaps: usize = ups.iter().map(|i| downs.iter().filter(|j| *j < i).count()).sum();
            let occupied = state.occupied(&ups, &downs).unwrap();
            let (log, phase) = state.log(&occupied);
            let sign = if swaps % 2 == 1 { -1.0 } else { 1.0 };
            all.push((number, phase.to_c64() * log.exp() * sign, occupied));
        }
    }
    let mut psi = vec![C64::ZERO; all.len()];
    all.iter().for_each(|(number, value, _)| psi[*number] = *value);
    for (number, value, occupied) in &all {
        let product: C64 = (csr.row_start[*number]..csr.row_start[number + 1])
            .map(|e| csr.values.get(e) * psi[csr.columns.get(e)])
            .sum();
        let found = local.local(state, occupied);
        assert!(
            (found - product / value).norm() < 1e-8 * (1.0 + found.norm()),
            "{found} {}",
            product / value
        );
    }
}

fn noise(n: usize, stream: u32) -> Vec<f64> {
    let at = |k: usize| {
        let w = crate::number::philox::words(5, stream, k as u64, 0);
        crate::number::philox::unit(w[0], w[1]) - 0.5
    };
    (0..n).map(at).collect()
}

fn symmetric(n: usize, stream: u32) -> Vec<f64> {
    let x = noise(n * n, stream);
    (0..n * n).map(|k| x[k] + x[k % n * n + k / n]).collect()
}

fn strange() -> OpSum {
    let mut sum = OpSum::new();
    let mut add = |c: C64, factors: &[(&str, usize)]| {
        sum.add(c, factors.iter().map(|(name, i)| (name.to_string(), *i)).collect()).unwrap();
    };
    add(C64::new(0.7, 0.2), &[("Cdagup", 0), ("Cup", 3)]);
    add(C64::new(0.3, -0.4), &[("Cdagdn", 2), ("Cdn", 1)]);
    add(C64::new(1.1, 0.0), &[("S+", 1), ("S-", 3)]);
    add(C64::new(-0.5, 0.1), &[("Cdagup", 0), ("Cdagdn", 0), ("Cdn", 2), ("Cup", 2)]);
    add(C64::new(0.9, 0.0), &[("Cdagup", 3), ("Ndn", 2), ("Cup", 1)]);
    add(C64::new(0.8, 0.0), &[("Cup", 1), ("Cdagup", 1)]);
    add(C64::new(0.8, 0.3), &[("Cdagup", 0), ("Cup", 1), ("Cdagup", 2), ("Cup", 3)]);
    add(C64::new(0.4, 0.0), &[("Ntot", 0), ("Nupdn", 1)]);
    sum
}

#[test]
fn local_energies_are_rows_of_the_exact_matrix() {
    let state = LatticeState::new(4, 2, 2, Reference::Sea { up: noise(8, 1), down: noise(8, 2) }).unwrap();
    let state = state.with_gutzwiller(0.6).unwrap().with_jastrow(symmetric(4, 3), symmetric(4, 4)).unwrap();
    let pairs = LatticeState::new(4, 2, 2, Reference::Pairs { f: noise(16, 5) }).unwrap();
    for sum in [hubbard(4, &chain(4, -1.0), 1.0, 3.0), heisenberg(&chain(4, 1.0)), strange()] {
        against_exact(&state, &sum);
        against_exact(&pairs.clone().with_gutzwiller(0.8).unwrap(), &sum);
    }
}

#[test]
fn pairs_of_a_sea_are_the_sea() {
    let bonds = chain(6, 1.0);
    let orbitals = sea(6, &bonds, 3);
    let f: Vec<f64> =
        (0..36).map(|k| (0..3).map(|l| orbitals[k / 6 * 3 + l] * orbitals[k % 6 * 3 + l]).sum()).collect();
    let pairs = LatticeState::new(6, 3, 3, Reference::Pairs { f }).unwrap().with_gutzwiller(0.5).unwrap();
    let (means, _) = enumerate(&pairs, &[hubbard(6, &bonds, 1.0, 4.0)]);
    assert!((means[0] + 3.5259259259).abs() < 1e-9, "{means:?}");
}

#[test]
fn walks_find_what_enumeration_finds() {
    let sampled = |state: LatticeState<f64>, sum: &OpSum, exact: f64| {
        let local = LocalSum::new(sum, state.sites()).unwrap();
        let mut walkers = LatticeWalkers::new(Arc::new(state), 32, 3, &()).unwrap();
        walkers.run(&(), 50, &Interrupt::default()).unwrap();
        let mut energies = Vec::new();
        for _ in 0..1000 {
            walkers.run(&(), 2, &Interrupt::default()).unwrap();
            let values = local.local_values(&mut walkers).unwrap();
            energies.push(values.iter().map(|z| z.re).sum::<f64>() / 32.0);
        }
        let found = blocked(&energies).unwrap();
        assert!((found.mean - exact).abs() < 4.0 * found.error && found.error < 0.06, "{exact}: {found:?}");
    };
    let bonds = chain(8, -1.0);
    sampled(fermi(8, &bonds, 4).with_gutzwiller(0.5).unwrap(), &hubbard(8, &bonds, 1.0, 4.0), -4.4505861176);
    let state = fermi(14, &chain(14, 1.0), 7).with_gutzwiller(0.0).unwrap();
    sampled(state, &heisenberg(&chain(14, 1.0)), -6.2509219190);
    let orbitals = sea(6, &chain(6, 1.0), 3);
    let f: Vec<f64> =
        (0..36).map(|k| (0..3).map(|l| orbitals[k / 6 * 3 + l] * orbitals[k % 6 * 3 + l]).sum()).collect();
    let pairs = LatticeState::new(6, 3, 3, Reference::Pairs { f }).unwrap().with_gutzwiller(0.5).unwrap();
    sampled(pairs, &hubbard(6, &chain(6, 1.0), 1.0, 8.0), -0.3132275132);
}

#[test]
fn bad_lattices_say_why() {
    let state = fermi(4, &chain(4, -1.0), 2);
    assert!(
        fermi(4, &chain(4, -1.0), 3)
            .with_gutzwiller(0.0)
            .unwrap_err()
            .message()
            .contains("double occupation")
    );
    assert!(state.clone().with_gutzwiller(f64::NAN).is_err() && state.clone().with_gutzwiller(-1.0).is_err());
    let same = Reference::Sea { up: vec![0.5; 8], down: vec![0.5; 8] };
    let same = LatticeState::new(4, 2, 2, same).unwrap();
    assert!(LatticeWalkers::new(Arc::new(same), 1, 0, &()).err().unwrap().message().contains("singular"));
    let mut sum = OpSum::new();
    sum.add(1.0, vec![("Cdagup".into(), 0)]).unwrap();
    assert!(LocalSum::new(&sum, 4).unwrap_err().message().contains("changes the number"));
    assert!(LocalSum::new(&hubbard(8, &chain(8, 1.0), 1.0, 1.0), 4).is_err());
}
