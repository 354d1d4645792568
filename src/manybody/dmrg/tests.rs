//! Pieces against exact matrices: automata, superblocks in every strategy, transformations, states and measurements.

use std::sync::Arc;

use super::predict::transformed_column;
use super::*;
use crate::backend::Device;
use crate::backend::cpu::Cpu;
use crate::backend::matrix::records::Element;
use crate::manybody::testing::{chain, sector};
use crate::manybody::{OpSum, Sector, Site, Sites, operator};
use crate::manybody::{SectorBasis as ExactBasis, dmrg};
use crate::method::{DavidsonOptions, davidson};
use crate::number::C64;
use crate::number::philox::{Stream, unit, words};
use crate::operator::{MatrixFormat, Operator};
use crate::task::{Interrupt, Task};

fn device() -> Device {
    Arc::new(Cpu::new(2, Interrupt::default()).unwrap())
}

fn term(h: &mut OpSum, z: impl Into<C64>, factors: &[(&str, usize)]) {
    h.add(z, factors.iter().map(|(name, i)| (name.to_string(), *i)).collect()).unwrap();
}

/// Long-range hopping with phases, pair terms of three sites, on-site terms: everything that strings can do.
fn electrons(n: usize) -> OpSum {
    let mut h = OpSum::new();
    for i in 0..n {
        term(&mut h, 3.0, &[("Nupdn", i)]);
        term(&mut h, 0.1 * i as f64, &[("Ntot", i)]);
        for j in i + 1..n {
            let z = C64::new(-1.0 / (j - i) as f64, 0.2 * (j - i) as f64);
            for (c, d) in [("Cdagup", "Cup"), ("Cdagdn", "Cdn")] {
                term(&mut h, z, &[(c, i), (d, j)]);
                term(&mut h, z.conj(), &[(c, j), (d, i)]);
            }
            term(&mut h, 0.3, &[("S+", i), ("S-", j)]);
            term(&mut h, 0.3, &[("S-", i), ("S+", j)]);
        }
    }
    for i in 0..n - 2 {
        term(&mut h, 0.15, &[("Cdagup", i), ("Ndn", i + 1), ("Cup", i + 2)]);
        term(&mut h, 0.15, &[("Cdagup", i + 2), ("Ndn", i + 1), ("Cup", i)]);
    }
    h
}

fn heisenberg(n: usize, range: usize) -> OpSum {
    let mut h = OpSum::new();
    for i in 0..n {
        for j in i + 1..(i + range + 1).min(n) {
            let x = 1.0 / (j - i) as f64;
            term(&mut h, 0.5 * x, &[("S+", i), ("S-", j)]);
            term(&mut h, 0.5 * x, &[("S-", i), ("S+", j)]);
            term(&mut h, x, &[("Sz", i), ("Sz", j)]);
        }
    }
    h
}

fn exact(h: &OpSum, sites: &Sites, sector: &Sector) -> Vec<f64> {
    spectrum(&matrix(h, sites, sector))
}

fn matrix(h: &OpSum, sites: &Sites, sector: &Sector) -> Operator {
    let basis = ExactBasis::new(sites, sector).unwrap();
    operator(&device(), h, &basis, MatrixFormat::Csr, false, &Task::default()).unwrap()
}

fn spectrum(op: &Operator) -> Vec<f64> {
    let n = op.dim();
    let dense = op.to_dense().unwrap();
    faer::Mat::from_fn(n, n, |i, j| dense[i * n + j]).self_adjoint_eigenvalues(faer::Side::Lower).unwrap()
}

fn blocks<T: Element>(mpo: &Arc<Mpo>, left: usize, right: usize) -> (Arc<ChainBlock<T>>, Arc<ChainBlock<T>>) {
    let (mut l, mut r) = (ChainBlock::edge(mpo, ChainSide::Left), ChainBlock::edge(mpo, ChainSide::Right));
    for _ in 1..left {
        l = l.extend().unwrap();
    }
    for _ in 1..right {
        r = r.extend().unwrap();
    }
    (l.grow().unwrap(), r.grow().unwrap())
}

fn whole(mpo: &Arc<Mpo>) -> dmrg::TargetCharges {
    mpo.target().iter().map(|q| Some(*q)).collect()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() < tolerance, "{x} instead of {y}");
    }
}

/// The superblock of a whole short chain is the exact matrix in another basis, however it is multiplied.
fn is_exact<T: Element>(h: &OpSum, sites: &Sites, sector: &Sector, split: usize) {
    let mpo = Mpo::hamiltonian(h, sites, sector).unwrap();
    let expected = exact(h, sites, sector);
    for strategy in [Strategy::Auto, Strategy::LeftRight, Strategy::FourParts] {
        let (l, r) = blocks::<T>(&mpo, split, sites.count() - split);
        let both = Superblock::new(&device(), &l, &r, &whole(&mpo), strategy).unwrap();
        let op = both.into_operator(&device());
        close(&spectrum(&op), &expected, 1e-10);
        let dense = op.to_dense().unwrap();
        for (i, d) in op.diagonal().unwrap().iter().enumerate() {
            assert!((dense[i * op.dim() + i].re - d.re).abs() < 1e-12, "{strategy:?}: diagonal {i}");
        }
    }
}

#[test]
fn superblocks_are_the_exact_matrices() {
    is_exact::<C64>(&electrons(4), &chain("Electron", 4), &sector(&[("Nup", 2.0), ("Ndn", 1.0)]), 2);
    is_exact::<C64>(&electrons(4), &chain("Electron", 4), &sector(&[("N", 3.0)]), 1);
    is_exact::<f64>(&heisenberg(8, 5), &chain("S=1/2", 8), &sector(&[("Sz", 1.0)]), 3);
    is_exact::<f64>(&heisenberg(5, 2), &chain("S=1", 5), &sector(&[]), 3);
    let mut bosons = OpSum::new();
    for i in 0..4 {
        term(&mut bosons, 1.0, &[("N", i), ("N", i)]);
        term(&mut bosons, 0.25, &[]);
        if i > 0 {
            term(&mut bosons, -1.0, &[("Adag", i - 1), ("A", i)]);
            term(&mut bosons, -1.0, &[("Adag", i), ("A", i - 1)]);
        }
    }
    is_exact::<f64>(&bosons, &chain("Boson", 4), &sector(&[("N", 4.0)]), 2);
}

#[test]
fn real_superblocks_act_on_complex_columns() {
    let (sites, sector) = (chain("S=1/2", 6), sector(&[("Sz", 0.0)]));
    let mpo = Mpo::hamiltonian(&heisenberg(6, 2), &sites, &sector).unwrap();
    let (l, r) = blocks::<f64>(&mpo, 3, 3);
    let op =
        Superblock::new(&device(), &l, &r, &whole(&mpo), Strategy::Auto).unwrap().into_operator(&device());
    let n = op.dim();
    let data: Vec<C64> = (0..3 * n).map(|k| C64::new((k as f64).sin(), (k as f64).cos())).collect();
    let v = op.device().upload(crate::number::DType::C64, op.rows(), 3, &data).unwrap();
    let w = op.device().download(&op.apply(&v).unwrap()).unwrap();
    let dense = op.to_dense().unwrap();
    for i in 0..n {
        for c in 0..3 {
            let sum: C64 = (0..n).map(|j| dense[i * n + j] * data[j * 3 + c]).sum();
            assert!((sum - w[i * 3 + c]).norm() < 1e-12);
        }
    }
}

/// The sum of `w^2` of bond dimensions says whether the automaton is as narrow as it can be.
#[test]
fn automata_are_narrow() {
    let widths = |h: &OpSum, sites: &Sites| Mpo::hamiltonian(h, sites, &Sector::new()).unwrap().widths();
    assert_eq!(widths(&heisenberg(6, 1), &chain("S=1/2", 6)), [1, 4, 5, 5, 5, 4, 1]);
    let all = widths(&heisenberg(12, 11), &chain("S=1/2", 12));
    assert!(all.iter().all(|w| *w <= 2 + 3 * 6), "{all:?}");
    let nothing = Mpo::hamiltonian(&OpSum::new(), &chain("S=1", 3), &Sector::new());
    assert!(nothing.unwrap_err().message().contains("without terms"));
}

fn ground<T: Element>(op: &Operator) -> (f64, crate::backend::BlockVector)
where
    Superblock<T>: Sized,
{
    let mut options = DavidsonOptions::new(1);
    options.tolerance = Some(1e-10);
    let found = davidson(op, options, &Task::default()).unwrap();
    assert!(found.converged());
    (found.values[0], found.vectors)
}

/// White's transformation moves a state without changing it, in both directions, with one site and two.
#[test]
fn transformed_states_keep_their_energy() {
    let (sites, sector) = (chain("Electron", 5), sector(&[("Nup", 2.0), ("Ndn", 2.0)]));
    let mpo = Mpo::hamiltonian(&electrons(5), &sites, &sector).unwrap();
    let device = device();
    let make = |l: &Arc<ChainBlock<C64>>, r: &Arc<ChainBlock<C64>>| {
        Superblock::new(&device, l, r, &whole(&mpo), Strategy::Auto).unwrap()
    };
    let (l, r) = blocks::<C64>(&mpo, 2, 3);
    let both = make(&l, &r);
    let op = Superblock::new(&device, &l, &r, &whole(&mpo), Strategy::Auto).unwrap().into_operator(&device);
    let (energy, v) = ground::<C64>(&op);
    let x = both.columns(&device, &v).unwrap().remove(0);
    let mean = |both: &Superblock<C64>, y: &[C64]| {
        let op = make(both.left(), both.right()).into_operator(&device);
        let v = device.upload(op.dtype(), op.rows(), 1, y).unwrap();
        let w = op.apply(&v).unwrap();
        (device.dots(&v, &w).unwrap()[0] / device.dots(&v, &v).unwrap()[0]).re
    };
    let basis = |both: &Superblock<C64>, y: &[C64], side: ChainSide| {
        let rho = DensityMatrix::new(both, &[y.to_vec()], side, &Mixing::default()).unwrap();
        rho.truncate(&Truncation::default()).unwrap().shared()
    };
    let edge = ChainBlock::edge(&mpo, ChainSide::Right);
    let one = edge.extend().unwrap();
    // Two sites to the right, then to the left again.
    let b = basis(&both, &x, ChainSide::Left);
    let right = make(&l.rotate(&b).unwrap().grow().unwrap(), &one.grow().unwrap());
    let y = transformed_column(&both, &x, &right, &b, ChainSide::Left).unwrap();
    assert!((mean(&right, &y) - energy).abs() < 1e-9);
    let c = basis(&right, &y, ChainSide::Right);
    let back = make(&l, &right.right().rotate(&c).unwrap().grow().unwrap());
    let z = transformed_column(&right, &y, &back, &c, ChainSide::Right).unwrap();
    assert!((mean(&back, &z) - energy).abs() < 1e-9);
    // To one site, and on to the end, where the site changes hands.
    let right_plain = back.right().fusion().unwrap().0.clone();
    let left_plain = l.rotate(&basis(&back, &z, ChainSide::Left)).unwrap();
    let b = basis(&back, &z, ChainSide::Left);
    let single = make(&left_plain.grow().unwrap(), &right_plain);
    let y = transformed_column(&back, &z, &single, &b, ChainSide::Left).unwrap();
    assert!((mean(&single, &y) - energy).abs() < 1e-9);
    let state = MatrixProductState::from_superblock(&single, &y).unwrap();
    assert!((state.expectation(&electrons(5)).unwrap().re - energy).abs() < 1e-9);
    assert!(state.variance(&electrons(5)).unwrap().0.abs() < 1e-9);
}

/// States agree with exact vectors in what is measured, and survive being written.
#[test]
fn measurements_are_exact() {
    let n = 5;
    let (sites, numbers) = (chain("Electron", n), sector(&[("Nup", 2.0), ("Ndn", 1.0)]));
    let h = electrons(n);
    let mpo = Mpo::hamiltonian(&h, &sites, &numbers).unwrap();
    let device = device();
    let (l, r) = blocks::<C64>(&mpo, 3, 2);
    let both = Superblock::new(&device, &l, &r, &whole(&mpo), Strategy::Auto).unwrap();
    let op = Superblock::new(&device, &l, &r, &whole(&mpo), Strategy::Auto).unwrap().into_operator(&device);
    let (energy, v) = ground::<C64>(&op);
    let state = MatrixProductState::from_superblock(&both, &both.columns(&device, &v).unwrap()[0]).unwrap();
    let basis = ExactBasis::new(&sites, &numbers).unwrap();
    let full = operator(&device, &h, &basis, MatrixFormat::Csr, false, &Task::default()).unwrap();
    let (exact, psi) = ground::<C64>(&full);
    assert!((energy - exact).abs() < 1e-9);
    let mean = |factors: &[(&str, usize)]| {
        let mut sum = OpSum::new();
        term(&mut sum, 1.0, factors);
        let a = operator(&device, &sum, &basis, MatrixFormat::Csr, false, &Task::default()).unwrap();
        device.dots(&psi, &a.apply(&psi).unwrap()).unwrap()[0]
    };
    let bytes = state.to_bytes(&serde_json::json!({ "energy": 1.5 })).unwrap();
    let (SavedState::Complex(read), about, []) = SavedState::from_bytes(&bytes).unwrap() else {
        panic!("complex")
    };
    assert_eq!(about["energy"], 1.5);
    assert!((read.overlap(&state).unwrap().norm() - 1.0).abs() < 1e-12);
    for cut in [0, 10, 20, bytes.len() / 2, bytes.len() - 1] {
        assert!(SavedState::from_bytes(&bytes[..cut]).is_err(), "{cut}");
    }
    let all: Vec<usize> = (0..n).collect();
    for state in [&state, &read] {
        for (i, found) in state.local("Nup", &all).unwrap().iter().enumerate() {
            assert!((found - mean(&[("Nup", i)])).norm() < 1e-8);
        }
        for (a, b) in [("Cdagup", "Cup"), ("Cup", "Cdagup"), ("Sz", "Sz"), ("S+", "S-"), ("Ntot", "Sz")] {
            let found = state.correlations(a, b, &all, &Task::default()).unwrap();
            for i in 0..n {
                for j in 0..n {
                    let expected = mean(&[(a, i), (b, j)]);
                    assert!((found[i * n + j] - expected).norm() < 1e-8, "<{a}({i}) {b}({j})>");
                }
            }
        }
    }
    let blocks = state.right_blocks(&mpo).unwrap();
    let first = ChainBlock::edge(&mpo, ChainSide::Left).grow().unwrap();
    let both = Superblock::new(&device, &first, &blocks[1].grow().unwrap(), &whole(&mpo), Strategy::Auto);
    let both = both.unwrap();
    let x = projected(&both, &state).unwrap();
    let norm: f64 = x.iter().map(|z| z.norm_sqr()).sum();
    assert!((norm - 1.0).abs() < 1e-10, "{norm}");
}

#[test]
fn multiplets_stay_whole_and_cutoffs_hold() {
    let (sites, sector) = (chain("S=1/2", 12), sector(&[("Sz", 0.0)]));
    let mpo = Mpo::hamiltonian(&heisenberg(12, 1), &sites, &sector).unwrap();
    let device = device();
    let (l, r) = blocks::<f64>(&mpo, 6, 6);
    let both = Superblock::new(&device, &l, &r, &whole(&mpo), Strategy::Auto).unwrap();
    let op = Superblock::new(&device, &l, &r, &whole(&mpo), Strategy::Auto).unwrap().into_operator(&device);
    let (energy, v) = ground::<f64>(&op);
    assert!((energy + 5.1420906328405).abs() < 1e-10);
    let x = both.columns(&device, &v).unwrap();
    let rho = DensityMatrix::new(&both, &x, ChainSide::Left, &Mixing::default()).unwrap();
    assert!((rho.entropy() - 0.536833253592).abs() < 1e-9);
    close(&rho.spectrum()[..4], &[0.86810973, 0.0438761, 0.0438761, 0.0438761], 1e-7);
    let kept = |cut: Truncation| rho.truncate(&cut).unwrap().new_space().total();
    assert_eq!(kept(Truncation { states: Some(4), ..Default::default() }), 4);
    let eight = rho.truncate(&Truncation { states: Some(8), ..Default::default() }).unwrap();
    let (w, next) = (eight.weights.last().unwrap(), rho.spectrum()[eight.weights.len()]);
    assert!(w - next > 1e-6 * w, "a multiplet was cut between {w} and {next}");
    for cutoff in [1e-3, 1e-6, 1e-9] {
        let basis = rho.truncate(&Truncation { cutoff, ..Default::default() }).unwrap();
        assert!(basis.discarded <= cutoff);
        let by_entropy = Truncation { information: Some(cutoff), ..Default::default() };
        assert!(kept(by_entropy) >= 1);
    }
    let few = kept(Truncation { information: Some(1e-2), ..Default::default() });
    assert!(few < kept(Truncation { information: Some(1e-6), ..Default::default() }));
    assert!(rho.truncate(&Truncation { states: Some(0), ..Default::default() }).is_err());
}

#[test]
fn mirrored_blocks_are_the_other_half() {
    for (kind, numbers) in [("Electron", vec![("Nup", 2.0), ("Ndn", 2.0)]), ("S=1", vec![("Sz", 0.0)])] {
        let site = Arc::new(Site::named(kind, None).unwrap());
        let mut bond = OpSum::new();
        if kind == "Electron" {
            for (c, d) in [("Cdagup", "Cup"), ("Cdagdn", "Cdn")] {
                term(&mut bond, -1.0, &[(c, 0), (d, 1)]);
                term(&mut bond, -1.0, &[(c, 1), (d, 0)]);
            }
            term(&mut bond, 4.0, &[("Nupdn", 0)]);
        } else {
            bond = heisenberg(2, 1);
        }
        let chain_sites = chain(kind, 4);
        let mut h = OpSum::new();
        for i in 0..4 {
            for t in bond.terms() {
                if i + t.factors.iter().map(|f| f.1).max().unwrap_or(0) < 4 {
                    let moved = t.factors.iter().map(|(name, k)| (name.clone(), k + i)).collect();
                    h.add(t.coefficient, moved).unwrap();
                }
            }
        }
        let expected = exact(&h, &chain_sites, &sector(&numbers));
        let mpo = edge_chain(&site, &bond).unwrap();
        let block = ChainBlock::<f64>::edge(&mpo, ChainSide::Left).extend().unwrap().grow().unwrap();
        let other = ChainBlock::<f64>::edge(&mpo, ChainSide::Right).extend().unwrap().grow().unwrap();
        let names = mpo.symmetry().names();
        let of = |name: &String| numbers.iter().find(|n| n.0 == name).map(|n| (2.0 * n.1) as i32);
        let target: TargetCharges = names.iter().map(of).collect();
        for right in [block.mirror().unwrap(), other] {
            let both = Superblock::new(&device(), &block, &right, &target, Strategy::Auto).unwrap();
            close(&spectrum(&both.into_operator(&device())), &expected, 1e-11);
        }
    }
}

#[test]
fn product_states_are_the_lowest() {
    let random = |seed: u64, k: usize| {
        let w = words(seed, Stream::Start as u32, k as u64, 0);
        unit(w[0], w[1]) - 0.5
    };
    // Terms of any range: the lowest diagonal element, by looking at all of them.
    for (kind, n, numbers) in [
        ("Electron", 5, sector(&[("Nup", 2.0), ("Ndn", 3.0)])),
        ("Fermion", 9, sector(&[("N", 4.0)])),
        ("S=1", 6, sector(&[("Sz", -1.0)])),
        ("Boson", 6, sector(&[])),
        ("S=1/2", 1, sector(&[("Sz", 0.5)])),
    ] {
        let sites = chain(kind, n);
        let density = match kind {
            "Electron" => ["Nup", "Sz", "F"],
            "Fermion" => ["N", "N", "F"],
            "Boson" => ["N", "N", "N"],
            _ => ["Sz", "Sz", "Sz"],
        };
        for seed in 0..10 {
            let (mut h, mut k) = (OpSum::new(), 0);
            for i in 0..n {
                for j in i..n {
                    k += 1;
                    let factors = [(density[k % 3], i), (density[(k + seed as usize) % 3], j)];
                    term(&mut h, random(seed, k), &factors[..if i == j { 1 } else { 2 }]);
                }
            }
            let found = lowest_products(&h, &sites, &numbers, seed).unwrap();
            let dense = matrix(&h, &sites, &numbers).to_dense().unwrap();
            let dim = dense.len().isqrt();
            let lowest = (0..dim).map(|i| dense[i * dim + i].re).fold(f64::INFINITY, f64::min);
            close(&[found[0].0], &[lowest], 1e-12);
        }
    }
    // Long chains in random fields: the lowest energy for each magnetisation and last spin, a site at a time.
    for seed in 0..20 {
        let n = 30 + seed as usize;
        let (coupling, field) = (|i: usize| 4.0 * random(seed, i), |i: usize| random(seed, 1000 + i));
        let (mut h, sites) = (OpSum::new(), chain("S=1/2", n));
        let mut lowest = vec![[f64::INFINITY; 2]; n + 1];
        lowest[0][0] = -field(0) / 2.0;
        lowest[1][1] = field(0) / 2.0;
        for i in 0..n {
            term(&mut h, field(i), &[("Sz", i)]);
            if i + 1 < n {
                term(&mut h, coupling(i), &[("Sz", i), ("Sz", i + 1)]);
                let mut next = vec![[f64::INFINITY; 2]; n + 1];
                for (ups, last) in lowest.iter().enumerate().take(n) {
                    for (b, turn) in [-1.0, 1.0].into_iter().enumerate() {
                        let joined = [coupling(i) / -4.0 * turn, coupling(i) / 4.0 * turn];
                        let best = (last[0] + joined[0]).min(last[1] + joined[1]) + field(i + 1) / 2.0 * turn;
                        next[ups + b][b] = next[ups + b][b].min(best);
                    }
                }
                lowest = next;
            }
        }
        let ups = n / 2 - (seed % 3) as usize;
        let numbers = sector(&[("Sz", ups as f64 - n as f64 / 2.0)]);
        let found = lowest_products(&h, &sites, &numbers, seed).unwrap();
        close(&[found[0].0], &[lowest[ups][0].min(lowest[ups][1])], 1e-12);
    }
}

#[test]
fn wrong_input_is_one_sentence() {
    let sites = chain("S=1/2", 4);
    let fails = |h: &OpSum, numbers: &[(&str, f64)]| {
        Mpo::hamiltonian(h, &sites, &sector(numbers)).unwrap_err().message().to_string()
    };
    let mut h = OpSum::new();
    term(&mut h, 1.0, &[("S+", 0)]);
    assert_eq!(fails(&h, &[("Sz", 0.0)]), "the term `1.0 S+(0)` changes Sz by 1, which the sector conserves");
    assert_eq!(fails(&h, &[]), "the operator sum is not Hermitian");
    let mut h = OpSum::new();
    term(&mut h, 1.0, &[("Sz", 7)]);
    assert!(fails(&h, &[]).contains("site 7 outside a chain of 4 sites"));
    assert_eq!(fails(&heisenberg(4, 1), &[("Sz", 9.0)]), "no state of 4 S=1/2 sites has Sz = 9");
    assert!(fails(&heisenberg(4, 1), &[("N", 1.0)]).contains("no conserved number `N`"));
}
