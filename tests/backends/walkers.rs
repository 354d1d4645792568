//! Walkers with orbitals on splines against the same walkers on the CPU: the same decisions, places and energies.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use umklapp::backend::Device;
use umklapp::backend::cpu::Cpu;
use umklapp::backend::walkers::{EnergySpec, WalkersSpec, monte_carlo};
use umklapp::montecarlo::amplitude::Amplitude;
use umklapp::montecarlo::jastrow::JastrowFactor;
use umklapp::montecarlo::orbitals::{Fourier, SplineOrbitals};
use umklapp::montecarlo::{
    Crystal, DeterminantProduct, External, Hamiltonian, LocalEnergy, Orbitals, Periodic, Proposal, Repulsion,
    Scheme, ScreenRule, SimulationCell, SlaterJastrow, Sweep, Truncated, WalkerStart, Walkers, resident,
};
use umklapp::number::C64;
use umklapp::task::{Interrupt, Task};

#[derive(Debug)]
struct Case {
    electrons: [usize; 2],
    twist: [f64; 3],
    /// Single precision for all, for decisions alone, or not at all.
    precision: &'static str,
    factors: Vec<JastrowFactor>,
    proposal: Proposal,
    drift: bool,
    /// Products of determinants.
    products: usize,
}

fn cell() -> SimulationCell {
    let a = 9.0;
    SimulationCell::new([[0.0, a, a], [a, 0.0, a], [a, a, 0.0]]).expect("a cell")
}

fn psi<S: Amplitude>(device: &Device, case: &Case) -> Arc<SlaterJastrow<S>>
where
    SplineOrbitals: Orbitals<S>,
{
    let [up, down] = case.electrons;
    let waves = Fourier::plane_waves(&cell(), up.max(down) + 1, case.twist).expect("waves");
    let splines = |single| {
        let splines = SplineOrbitals::from_waves(device, &waves, [15; 3], single, &Task::default());
        Arc::new(splines.expect("splines")) as Arc<dyn Orbitals<S>>
    };
    // The ground state, and excitations of either spin and of both.
    let filled = |n: usize, excited: bool| -> Vec<usize> {
        let highest = n.saturating_sub(1);
        (0..n).map(|l| if excited && l == highest { n } else { l }).collect()
    };
    let product = |t: usize| DeterminantProduct {
        coefficient: S::from_c64(C64::new([1.0, 0.4, -0.3, 0.2][t], [0.0, 0.1, 0.3, -0.2][t])),
        up: filled(up, t & 1 > 0),
        down: filled(down, t & 2 > 0),
    };
    let products = (0..case.products).map(product).collect();
    let slater = SlaterJastrow::with_products(splines(case.precision == "single"), products);
    let slater = slater.expect("a wave function");
    let slater = match case.precision {
        "mixed" => slater.with_decisions(splines(true)).expect("as many orbitals"),
        _ => slater,
    };
    Arc::new(slater.with_jastrow(&case.factors).expect("factors"))
}

fn hamiltonians() -> Vec<Hamiltonian> {
    let make = |external: Vec<Arc<dyn External>>, interaction: Option<Arc<dyn Repulsion>>| Hamiltonian {
        external,
        interaction,
        constant: 0.25,
        label: String::new(),
    };
    // The potential of another, smaller cell.
    let silicon = Crystal::semiconductor("Si", [1; 3]).expect("silicon");
    let potential: Arc<dyn External> = Arc::new(silicon.potential().clone());
    vec![
        make(vec![potential.clone()], Some(Arc::new(Periodic::new(&cell())))),
        make(vec![], Some(Arc::new(Truncated { cell: cell() }))),
        // Two potentials, and a repulsion in another cell: the host's part.
        make(
            vec![potential.clone(), potential],
            Some(Arc::new(Truncated { cell: SimulationCell::cubic(7.0).expect("a cube") })),
        ),
    ]
}

fn sweep(scheme: Scheme, case: &Case) -> Sweep {
    // All electrons at once hardly move far.
    let step = if scheme == Scheme::Configuration { 0.05 } else { 0.5 };
    let even = case.proposal == Proposal::Uniform;
    let screen = if even { ScreenRule::Metropolis } else { ScreenRule::Barker };
    Sweep {
        scheme,
        step,
        proposal: case.proposal,
        drift: case.drift,
        group: if even { 3 } else { 4 },
        screen,
    }
}

/// What some sweeps and energies make of a few walkers.
struct Found {
    acceptance: Vec<f64>,
    places: Vec<Vec<[f64; 3]>>,
    energies: Vec<Vec<LocalEnergy>>,
    error: f64,
}

fn chain<S: Amplitude>(psi: &Arc<SlaterJastrow<S>>, case: &Case, schemes: &[(Scheme, usize)]) -> Found {
    let mut walkers = Walkers::new(psi.clone(), 3, 7, &WalkerStart::default()).expect("walkers");
    let (mut acceptance, mut energies) = (Vec::new(), Vec::new());
    for &(scheme, count) in schemes {
        let sweep = sweep(scheme, case);
        acceptance.push(walkers.run(&sweep, count, &Interrupt::default()).expect("sweeps"));
        // A copy goes on as the walkers themselves do.
        let mut copy = walkers.clone();
        let first = &hamiltonians()[0];
        energies.push(first.local_energies(&mut walkers).expect("energies"));
        assert!(close(
            &energies[energies.len() - 1],
            &first.local_energies(&mut copy).expect("energies"),
            1e-9
        ));
    }
    for h in hamiltonians() {
        energies.push(h.local_energies(&mut walkers).expect("energies"));
    }
    let places = walkers.places().expect("places");
    Found { acceptance, places, energies, error: walkers.inverse_error() }
}

fn close(a: &[LocalEnergy], b: &[LocalEnergy], epsilon: f64) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() <= epsilon * x.abs().max(1.0);
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            near(a.kinetic, b.kinetic) && near(a.external, b.external) && near(a.interaction, b.interaction)
        })
}

/// Energies do not depend on how many walkers are taken at once.
fn in_passes<S: Amplitude>(device: &Device, case: &Case, places: &[Vec<[f64; 3]>])
where
    SplineOrbitals: Orbitals<S>,
{
    let psi = psi::<S>(device, case);
    let splines = psi.deciding().splines().expect("splines");
    let found = [0, 2].map(|pass| {
        let spec = WalkersSpec { pass, ..resident::spec(&psi, places, 1, 0).expect("a wave function") };
        let walkers = monte_carlo(splines.device()).expect("splines").walkers(spec).expect("walkers");
        walkers.map(|mut w| w.energies(&EnergySpec::default()).expect("energies"))
    });
    assert_eq!(found[0], found[1]);
}

/// Particle by particle alone, look-ahead across a renewal of the inverses, then all schemes in turn.
const MANY: [&[(Scheme, usize)]; 3] = [
    &[(Scheme::ParticleByParticle, 4)],
    &[(Scheme::LookAhead, 3), (Scheme::LookAhead, 40)],
    &[
        (Scheme::QuasiSimultaneous, 2),
        (Scheme::Configuration, 5),
        (Scheme::LookAhead, 2),
        (Scheme::DelayedAcceptance, 3),
        (Scheme::LookAhead, 1),
        (Scheme::Configuration, 2),
    ],
];

/// The same for many electrons.
const FEW: [&[(Scheme, usize)]; 3] = [
    &[(Scheme::ParticleByParticle, 2)],
    &[(Scheme::LookAhead, 3), (Scheme::LookAhead, 3)],
    &[(Scheme::Configuration, 2), (Scheme::DelayedAcceptance, 3), (Scheme::LookAhead, 1)],
];

/// What the host makes of a case, once for all backends.
fn on_host<S: Amplitude>(case: &Case, schemes: &[(Scheme, usize)]) -> Arc<Found>
where
    SplineOrbitals: Orbitals<S>,
{
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Found>>>> = LazyLock::new(Mutex::default);
    let key = format!("{} {case:?} {schemes:?}", std::any::type_name::<S>());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&key) {
        return found.clone();
    }
    let host: Device = Arc::new(Cpu::new(2, Interrupt::default()).expect("threads"));
    let found = Arc::new(chain(&psi::<S>(&host, case), case, schemes));
    known().insert(key, found.clone());
    found
}

fn compare<S: Amplitude>(device: &Device, case: &Case, chains: &[&[(Scheme, usize)]])
where
    SplineOrbitals: Orbitals<S>,
{
    let (many, drift) = (case.products, case.drift);
    let label = format!("{:?} {:?} {} {many} {drift}", case.electrons, case.twist, case.precision);
    for &schemes in chains {
        let expected = on_host::<S>(case, schemes);
        let found = chain(&psi::<S>(device, case), case, schemes);
        assert_eq!(found.acceptance, expected.acceptance, "{label} {schemes:?}");
        let most = |a: &Vec<[f64; 3]>, b: &Vec<[f64; 3]>| {
            let each = a.iter().flatten().zip(b.iter().flatten());
            each.map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
        };
        let off = found.places.iter().zip(&expected.places).map(|(a, b)| most(a, b)).fold(0.0, f64::max);
        assert!(off < 1e-12, "{label} {schemes:?}: places differ by {off}");
        assert!(found.error < 1e-6, "{label} {schemes:?}: {}", found.error);
        // Single precision: the sums over 64 grid points have their own order on every backend.
        let epsilon = if case.precision == "single" { 3e-4 } else { 1e-10 };
        for (a, b) in found.energies.iter().zip(&expected.energies) {
            assert!(close(a, b, epsilon), "{label} {schemes:?}: {a:?} {b:?}");
        }
        in_passes::<S>(device, case, &found.places);
    }
}

fn rpa() -> Vec<JastrowFactor> {
    vec![JastrowFactor::Rpa { strength: None, cutoff: None }]
}

fn several() -> Vec<JastrowFactor> {
    let polynomial = JastrowFactor::Polynomial {
        cutoff: None,
        slope: None,
        opposite: vec![0.1, 0.02],
        same: vec![0.05, -0.01, 0.002],
    };
    let centres = vec![[0.1, 0.2, 0.3], [3.0, 4.0, 5.0]];
    vec![polynomial, JastrowFactor::Nuclear { centres, charges: vec![0.4, 0.3], b: 0.7, cutoff: None }]
}

fn case(
    electrons: [usize; 2],
    precision: &'static str,
    factors: Vec<JastrowFactor>,
    proposal: Proposal,
) -> Case {
    Case { electrons, twist: [0.0; 3], precision, factors, proposal, drift: false, products: 1 }
}

const TWISTED: [f64; 3] = [0.1, 0.2, -0.3];
const GAUSS: Proposal = Proposal::Gaussian;
const EVEN: Proposal = Proposal::Uniform;

/// Few electrons and more than two blocks of them; real and complex; both precisions; all kinds of factors.
pub fn walkers(device: &Device) {
    // Functions of pairs that no table holds: other cutoffs.
    let unequal = || {
        let mut factors = rpa();
        factors.extend(several());
        factors.push(JastrowFactor::Rpa { strength: Some(0.3), cutoff: Some(3.0) });
        factors
    };
    for case in [
        case([7, 7], "double", rpa(), GAUSS),
        case([7, 0], "double", vec![], EVEN),
        case([15, 9], "mixed", several(), EVEN),
        Case { drift: true, ..case([9, 5], "mixed", several(), GAUSS) },
        Case { drift: true, ..case([4, 4], "double", vec![], GAUSS) },
        case([19, 7], "single", unequal(), GAUSS),
    ] {
        compare::<f64>(device, &case, &MANY);
    }
    for case in [case([70, 65], "double", rpa(), GAUSS), case([137, 20], "double", several(), GAUSS)] {
        compare::<f64>(device, &case, &FEW);
    }
    let twisted = |case| Case { twist: TWISTED, ..case };
    compare::<C64>(device, &twisted(case([5, 4], "double", rpa(), EVEN)), &MANY);
    compare::<C64>(device, &twisted(Case { drift: true, ..case([6, 3], "double", rpa(), GAUSS) }), &MANY);
    for case in [case([40, 35], "mixed", several(), GAUSS), case([70, 33], "double", rpa(), GAUSS)] {
        compare::<C64>(device, &twisted(case), &FEW);
    }
}

/// Sums of products of determinants.
pub fn sums(device: &Device) {
    for (products, case) in [
        (4, case([7, 6], "double", rpa(), GAUSS)),
        (3, case([5, 3], "mixed", several(), EVEN)),
        (2, Case { drift: true, ..case([6, 0], "double", vec![], GAUSS) }),
    ] {
        compare::<f64>(device, &Case { products, ..case }, &MANY);
    }
    compare::<f64>(device, &Case { products: 4, ..case([70, 66], "double", rpa(), GAUSS) }, &FEW);
    let twisted = Case { twist: TWISTED, products: 4, ..case([5, 4], "mixed", several(), GAUSS) };
    compare::<C64>(device, &twisted, &MANY);
}

/// Every kernel of walkers with little work: what tools that watch memory can follow.
pub fn few(device: &Device) {
    const ALL: [&[(Scheme, usize)]; 1] = [&[
        (Scheme::ParticleByParticle, 1),
        (Scheme::QuasiSimultaneous, 1),
        (Scheme::DelayedAcceptance, 1),
        (Scheme::Configuration, 1),
        (Scheme::LookAhead, 2),
    ]];
    let drifting = Case { drift: true, products: 2, ..case([5, 4], "mixed", several(), GAUSS) };
    compare::<f64>(device, &drifting, &ALL);
    compare::<C64>(device, &Case { twist: TWISTED, ..case([5, 4], "double", rpa(), EVEN) }, &ALL);
    // Two blocks of electrons.
    let look = &ALL[0][4..];
    compare::<f64>(device, &case([67, 3], "double", rpa(), GAUSS), &[look]);
}
