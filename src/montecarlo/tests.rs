//! Exactly solved cases, the schemes compared with one another, and their transition matrices enumerated.

use std::sync::Arc;

use super::jastrow::JastrowFactor;
use super::scheme::second_stage;
use super::statistics::blocked;
use super::*;
use crate::number::C64;
use crate::number::philox::{unit, words};
use crate::task::Interrupt;

fn trap(n: usize, alpha: f64) -> Arc<SlaterJastrow<f64>> {
    let orbitals = Arc::new(Oscillator::new(n, 1, alpha).unwrap());
    Arc::new(SlaterJastrow::new(orbitals, n, 0).unwrap())
}

fn in_trap(omega: f64) -> Hamiltonian {
    Hamiltonian {
        external: vec![Arc::new(Trap { omega })],
        interaction: None,
        constant: 0.0,
        label: "trap".into(),
    }
}

fn sweep(scheme: Scheme, step: f64) -> Sweep {
    let proposal = Proposal::Uniform;
    Sweep { scheme, step, proposal, drift: false, group: 4, screen: ScreenRule::Barker }
}

fn walk(psi: &Arc<SlaterJastrow<f64>>, count: usize, seed: u64) -> Walkers<f64> {
    Walkers::new(psi.clone(), count, seed, &WalkerStart::default()).unwrap()
}

#[test]
fn exact_states_have_no_variance() {
    for n in [2, 3, 4, 6, 10] {
        let mut walkers = walk(&trap(n, 1.0), 4, 1);
        walkers.run(&sweep(Scheme::LookAhead, 0.7), 20, &Interrupt::default()).unwrap();
        let exact = (n * n) as f64 / 2.0;
        for energy in in_trap(1.0).local_energies(&mut walkers).unwrap() {
            assert!((energy.total() - exact).abs() < 1e-8, "{n}: {energy:?}");
        }
    }
    for (n, exact) in [(1, 1.5), (4, 9.0), (10, 30.0)] {
        let orbitals = Arc::new(Oscillator::new(n, 3, 1.0).unwrap());
        let psi = Arc::new(SlaterJastrow::new(orbitals, n, 0).unwrap());
        let mut walkers = walk(&psi, 2, 2);
        walkers.run(&sweep(Scheme::ParticleByParticle, 0.7), 20, &Interrupt::default()).unwrap();
        for energy in in_trap(1.0).local_energies(&mut walkers).unwrap() {
            assert!((energy.total() - exact).abs() < 1e-8, "{n}: {energy:?}");
        }
    }
}

/// Two electrons in a trap of omega = 1/2 with Coulomb repulsion: `(1 + u/2) exp(-(r1^2 + r2^2)/4)` is exact, E = 2.
#[test]
fn hookes_atom() {
    let orbitals = Arc::new(Oscillator::new(1, 3, 0.5).unwrap());
    let psi = SlaterJastrow::new(orbitals, 1, 1)
        .unwrap()
        .with_jastrow(&[JastrowFactor::Log { slope: None }])
        .unwrap();
    let mut walkers = walk(&Arc::new(psi), 16, 5);
    let hamiltonian = Hamiltonian { interaction: Some(Arc::new(Coulomb { softening: 0.0 })), ..in_trap(0.5) };
    let (mut inverse, mut kinetic) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        walkers.run(&sweep(Scheme::LookAhead, 1.5), 2, &Interrupt::default()).unwrap();
        let energies = hamiltonian.local_energies(&mut walkers).unwrap();
        assert!(energies.iter().all(|e| (e.total() - 2.0).abs() < 1e-8), "{energies:?}");
        let mean = |f: fn(&LocalEnergy) -> f64| energies.iter().map(f).sum::<f64>() / energies.len() as f64;
        inverse.push(mean(|e| e.interaction));
        kinetic.push(mean(|e| e.kinetic));
    }
    for (data, exact) in [(inverse, 0.4474431992), (kinetic, 0.6644176006)] {
        let found = blocked(&data).unwrap();
        assert!((found.mean - exact).abs() < 4.0 * found.error && found.error < 0.02, "{exact}: {found:?}");
    }
}

#[test]
fn look_ahead_is_the_particle_by_particle_chain() {
    let orbitals = Arc::new(Oscillator::new(60, 3, 1.0).unwrap());
    let slater = SlaterJastrow::new(orbitals, 60, 55).unwrap();
    for psi in [
        slater.clone(),
        slater.with_jastrow(&[JastrowFactor::Pade { slope: None, b: 0.5 }]).unwrap().with_delay(8),
    ] {
        for drift in [false, true] {
            let chain = |scheme| {
                let mut walkers = walk(&Arc::new(psi.clone()), 3, 9);
                let sweep = Sweep { proposal: Proposal::Gaussian, drift, ..sweep(scheme, 0.3) };
                let acceptance = walkers.run(&sweep, 8, &Interrupt::default()).unwrap();
                assert!(acceptance > 0.2 && acceptance < 0.95, "{acceptance}");
                let energies = in_trap(1.0).local_energies(&mut walkers).unwrap();
                let positions = walkers.places().unwrap();
                (positions, energies)
            };
            assert_eq!(chain(Scheme::ParticleByParticle), chain(Scheme::LookAhead));
        }
    }
}

#[test]
fn sums_of_determinants() {
    let orbitals = Arc::new(Oscillator::new(4, 1, 0.9).unwrap());
    let product = |coefficient, up: &[usize], down: &[usize]| DeterminantProduct {
        coefficient,
        up: up.to_vec(),
        down: down.to_vec(),
    };
    let products =
        vec![product(1.0, &[0, 1], &[0, 1]), product(-0.3, &[0, 2], &[1, 3]), product(0.2, &[0, 2], &[0, 1])];
    let psi = Arc::new(SlaterJastrow::with_products(orbitals, products).unwrap());
    let chain = |scheme| {
        let mut walkers = walk(&psi, 2, 4);
        walkers.run(&sweep(scheme, 0.6), 50, &Interrupt::default()).unwrap();
        // The matrices that moves have updated agree with those computed anew.
        for walker in walkers.states().unwrap().iter() {
            let twin = psi.configuration(walker.positions.clone()).unwrap();
            assert!((psi.log(walker).0 - psi.log(&twin).0).abs() < 1e-8);
            assert!((psi.log(walker).1 - psi.log(&twin).1).abs() < 1e-8);
        }
        walkers.places().unwrap()
    };
    assert_eq!(chain(Scheme::ParticleByParticle), chain(Scheme::LookAhead));
    chain(Scheme::DelayedAcceptance);
    chain(Scheme::Configuration);
    // The kinetic energy against differences of the wave function.
    let walker = psi
        .configuration(vec![[0.3, 0.0, 0.0], [-0.5, 0.0, 0.0], [0.8, 0.0, 0.0], [-0.1, 0.0, 0.0]])
        .unwrap();
    let value = |i: usize, shift: f64| {
        let mut at = walker.positions.clone();
        at[i][0] += shift;
        let (log, sign) = psi.log(&psi.configuration(at).unwrap());
        sign * log.exp()
    };
    let h = 1e-4;
    let laplacian: f64 = (0..4).map(|i| (value(i, h) + value(i, -h) - 2.0 * value(i, 0.0)) / (h * h)).sum();
    let kinetic = hamiltonian::kinetic(&psi, &walker).unwrap();
    assert!((kinetic + 0.5 * laplacian / value(0, 0.0)).abs() < 1e-5, "{kinetic}");
}

/// The mean of sum x^2 in the trap is N^2/2: table 3.2(b) of the comparison of schemes.
fn mean_square(n: usize, step: f64, scheme: Scheme, screen: ScreenRule, seed: u64) -> statistics::Blocked {
    mean_square_of(n, Sweep { group: n, screen, ..sweep(scheme, step) }, seed, 1000)
}

fn mean_square_of(n: usize, sweep: Sweep, seed: u64, samples: usize) -> statistics::Blocked {
    const WALKERS: usize = 96;
    let mut walkers = walk(&trap(n, 1.0), WALKERS, seed);
    walkers.run(&sweep, 200, &Interrupt::default()).unwrap();
    let mut squares = Vec::new();
    for _ in 0..samples {
        walkers.run(&sweep, 2, &Interrupt::default()).unwrap();
        let all = walkers.places().unwrap().into_iter().flatten();
        squares.push(all.map(|r| r[0] * r[0]).sum::<f64>() / WALKERS as f64);
    }
    blocked(&squares).unwrap()
}

#[test]
fn exact_schemes_sample_the_trap() {
    for (n, step) in [(2, 1.0), (4, 2.0), (6, 1.0)] {
        let exact = (n * n) as f64 / 2.0;
        for scheme in Scheme::ALL.into_iter().filter(|s| s.exact()) {
            let found = mean_square(n, step, scheme, ScreenRule::Barker, 11);
            assert!((found.mean - exact).abs() < 4.0 * found.error, "{scheme} {n} {step}: {found:?}");
        }
        let found = mean_square(n, step, Scheme::DelayedAcceptance, ScreenRule::Metropolis, 12);
        assert!((found.mean - exact).abs() < 4.0 * found.error, "{n} {step}: {found:?}");
    }
}

#[test]
fn drifting_moves_sample_the_trap() {
    for scheme in Scheme::ALL.into_iter().filter(|s| s.exact()) {
        let drift = Sweep { drift: true, proposal: Proposal::Gaussian, group: 2, ..sweep(scheme, 0.6) };
        let found = mean_square_of(3, drift, 31, 1000);
        assert!((found.mean - 4.5).abs() < 4.0 * found.error, "{scheme}: {found:?}");
    }
}

#[test]
fn quasi_simultaneous_moves_are_biased_as_published() {
    // Bias in percent at d = 2, for N = 2, 4, 6.
    for (n, percent) in [(2, 5.19), (4, 5.62), (6, 5.14)] {
        let exact = (n * n) as f64 / 2.0;
        let biased = Sweep { group: n, screen: ScreenRule::Barker, ..sweep(Scheme::QuasiSimultaneous, 2.0) };
        let found = mean_square_of(n, biased, 13, 2000);
        assert!((found.mean - exact).abs() > 20.0 * found.error, "{n}: {found:?}");
        let expected = exact * (1.0 + percent / 100.0);
        assert!((found.mean - expected).abs() < 5.0 * found.error + 0.002 * exact, "{n}: {found:?}");
    }
}

/// Three particles on five sites with an arbitrary law: transition matrices enumerated with the decisions of the
/// schemes.
mod enumeration {
    use super::*;

    const SITES: usize = 5;
    const STATES: usize = SITES * SITES * SITES;

    fn law() -> Vec<f64> {
        let weight = |x: usize| {
            let w = words(17, 6, x as u64, 0);
            0.05 + unit(w[0], w[1]).powi(2)
        };
        let weights: Vec<f64> = (0..STATES).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    }

    fn digit(x: usize, i: usize) -> usize {
        x / SITES.pow(i as u32) % SITES
    }

    /// x with the particles in `moves` at their places in y.
    fn moved(x: usize, y: usize, moves: &[bool]) -> usize {
        (0..3).map(|i| digit(if moves[i] { y } else { x }, i) * SITES.pow(i as u32)).sum()
    }

    fn subsets() -> impl Iterator<Item = [bool; 3]> {
        (0..8).map(|s| [s & 1 == 1, s & 2 == 2, s & 4 == 4])
    }

    fn only(i: usize) -> [bool; 3] {
        std::array::from_fn(|k| k == i)
    }

    /// `|pi K - pi|_1` of a step that, from x and trial points y, ends in states with probabilities.
    fn violation(step: impl Fn(&[f64], usize, usize) -> Vec<(usize, f64)>) -> f64 {
        let pi = law();
        let mut after = vec![0.0; STATES];
        for x in 0..STATES {
            for y in 0..STATES {
                for (to, probability) in step(&pi, x, y) {
                    after[to] += pi[x] * probability / STATES as f64;
                }
            }
        }
        pi.iter().zip(after).map(|(a, b)| (a - b).abs()).sum()
    }

    fn delayed(screen: ScreenRule) -> f64 {
        violation(|pi, x, y| {
            let forward: Vec<f64> = (0..3).map(|i| pi[moved(x, y, &only(i))] / pi[x]).collect();
            let mut ends = Vec::new();
            for passed in subsets() {
                let to = moved(x, y, &passed);
                let chance: f64 = (0..3)
                    .map(|i| if passed[i] { screen.pass(forward[i]) } else { 1.0 - screen.pass(forward[i]) })
                    .product();
                if chance == 0.0 {
                    continue;
                }
                let toggled = |i: usize| {
                    let mut other = passed;
                    other[i] = !other[i];
                    moved(x, y, &other)
                };
                let back: Vec<f64> = (0..3).map(|i| pi[toggled(i)] / pi[to]).collect();
                let alpha = second_stage(screen, pi[to] / pi[x], &passed, &forward, &back);
                ends.push((to, chance * alpha));
                ends.push((x, chance * (1.0 - alpha)));
            }
            ends
        })
    }

    #[test]
    fn exact_schemes_leave_the_law_alone() {
        let particle = violation(|pi, x, y| {
            let mut ends = vec![(x, 1.0)];
            for i in 0..3 {
                let one = ends.iter().flat_map(|&(at, p)| {
                    let to = moved(at, y, &only(i));
                    let accept = (pi[to] / pi[at]).min(1.0);
                    [(to, p * accept), (at, p * (1.0 - accept))]
                });
                ends = one.collect();
            }
            ends
        });
        let configuration = violation(|pi, x, y| {
            let accept = (pi[y] / pi[x]).min(1.0);
            vec![(y, accept), (x, 1.0 - accept)]
        });
        for found in [particle, configuration, delayed(ScreenRule::Metropolis), delayed(ScreenRule::Barker)] {
            assert!(found < 1e-14, "{found}");
        }
    }

    #[test]
    fn quasi_simultaneous_moves_do_not() {
        let found = violation(|pi, x, y| {
            let accept: Vec<f64> = (0..3).map(|i| (pi[moved(x, y, &only(i))] / pi[x]).min(1.0)).collect();
            let chance = |moves: &[bool; 3]| -> f64 {
                (0..3).map(|i| if moves[i] { accept[i] } else { 1.0 - accept[i] }).product()
            };
            subsets().map(|moves| (moved(x, y, &moves), chance(&moves))).collect()
        });
        assert!(found > 1e-2, "{found}");
    }
}

#[test]
fn a_walk_goes_on_where_it_was_saved() {
    let psi = trap(4, 0.8);
    let step = sweep(Scheme::LookAhead, 1.0);
    let mut whole = walk(&psi, 3, 21);
    whole.run(&step, 10, &Interrupt::default()).unwrap();
    let saved = whole.save().unwrap();
    whole.run(&step, 10, &Interrupt::default()).unwrap();
    let mut resumed = Walkers::restored(psi, saved).unwrap();
    resumed.run(&step, 10, &Interrupt::default()).unwrap();
    assert_eq!(whole.save().unwrap(), resumed.save().unwrap());
}

#[test]
fn bad_starts_say_why() {
    struct Nothing(f64);
    impl Orbitals<f64> for Nothing {
        fn count(&self) -> usize {
            2
        }
        fn dimension(&self) -> usize {
            3
        }
        fn cell(&self) -> Option<&SimulationCell> {
            None
        }
        fn values(&self, _: &[[f64; 3]], out: &mut [f64]) {
            out.fill(self.0);
        }
        fn derivatives(&self, _: &[[f64; 3]], out: &mut Derivatives<f64>) {
            out.value.fill(self.0);
        }
        fn describe(&self) -> String {
            "constants".into()
        }
    }
    let start = |x: f64, n: usize| {
        let psi = SlaterJastrow::<f64>::new(Arc::new(Nothing(x)), n, 0)?;
        Walkers::new(Arc::new(psi), 1, 0, &WalkerStart::default()).map(|_| ())
    };
    assert!(start(1.0, 2).unwrap_err().message().contains("singular"));
    assert!(start(f64::NAN, 2).unwrap_err().message().contains("not a finite number"));
    assert!(start(1.0, 3).unwrap_err().message().contains("3 electrons of spin up and 2 orbitals"));
    assert!(
        sweep(Scheme::LookAhead, 0.0).check().is_err() && sweep(Scheme::LookAhead, f64::NAN).check().is_err()
    );
}

#[test]
fn complex_orbitals_walk_as_their_real_parts_do() {
    /// Real orbitals times a phase each.
    struct Turned(Oscillator);
    impl Orbitals<C64> for Turned {
        fn count(&self) -> usize {
            self.0.count()
        }
        fn dimension(&self) -> usize {
            1
        }
        fn cell(&self) -> Option<&SimulationCell> {
            None
        }
        fn values(&self, points: &[[f64; 3]], out: &mut [C64]) {
            let mut real = vec![0.0; out.len()];
            self.0.values(points, &mut real);
            let count = self.count();
            out.iter_mut()
                .zip(real)
                .enumerate()
                .for_each(|(k, (z, x))| *z = C64::cis((k % count) as f64) * x);
        }
        fn derivatives(&self, points: &[[f64; 3]], out: &mut Derivatives<C64>) {
            let count = self.count();
            let mut real = Derivatives::new(points.len(), count);
            self.0.derivatives(points, &mut real);
            let turn = |z: &mut [C64], x: &[f64]| {
                z.iter_mut().zip(x).enumerate().for_each(|(k, (z, x))| *z = C64::cis((k % count) as f64) * x);
            };
            turn(&mut out.value, &real.value);
            (0..3).for_each(|k| turn(&mut out.gradient[k], &real.gradient[k]));
            turn(&mut out.laplacian, &real.laplacian);
        }
        fn describe(&self) -> String {
            "turned oscillator".into()
        }
    }
    let oscillator = Oscillator::new(4, 1, 0.8).unwrap();
    let real =
        Arc::new(SlaterJastrow::new(Arc::new(oscillator.clone()) as Arc<dyn Orbitals<f64>>, 4, 0).unwrap());
    let turned =
        Arc::new(SlaterJastrow::new(Arc::new(Turned(oscillator)) as Arc<dyn Orbitals<C64>>, 4, 0).unwrap());
    for scheme in Scheme::ALL {
        let mut a = walk(&real, 2, 3);
        let mut b = Walkers::new(turned.clone(), 2, 3, &WalkerStart::default()).unwrap();
        a.run(&sweep(scheme, 0.8), 20, &Interrupt::default()).unwrap();
        b.run(&sweep(scheme, 0.8), 20, &Interrupt::default()).unwrap();
        let (a, b) =
            (in_trap(1.0).local_energies(&mut a).unwrap(), in_trap(1.0).local_energies(&mut b).unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a.total() - b.total()).abs() < 1e-9), "{scheme}");
    }
}
