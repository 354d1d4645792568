//! Walkers with orbitals on splines against the same walkers on the CPU: the same decisions, places and energies.

use std::sync::Arc;

use umklapp::backend::Device;
use umklapp::backend::cpu::Cpu;
use umklapp::montecarlo::amplitude::Amplitude;
use umklapp::montecarlo::jastrow::Factor;
use umklapp::montecarlo::orbitals::{Fourier, SplineOrbitals};
use umklapp::montecarlo::{
    Cell, Crystal, External, Hamiltonian, LocalEnergy, Orbitals, Periodic, Proposal, Repulsion, Scheme,
    Screen, SlaterJastrow, Start, Sweep, Truncated, Walkers,
};
use umklapp::task::{Interrupt, Task};

struct Case {
    electrons: [usize; 2],
    twist: [f64; 3],
    /// Single precision for all, for decisions alone, or not at all.
    precision: &'static str,
    factors: Vec<Factor>,
    proposal: Proposal,
}

fn cell() -> Cell {
    let a = 9.0;
    Cell::new([[0.0, a, a], [a, 0.0, a], [a, a, 0.0]]).expect("a cell")
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
    let slater = SlaterJastrow::new(splines(case.precision == "single"), up, down).expect("a wave function");
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
            Some(Arc::new(Truncated { cell: Cell::cubic(7.0).expect("a cube") })),
        ),
    ]
}

fn sweep(scheme: Scheme, proposal: Proposal) -> Sweep {
    Sweep { scheme, step: 0.5, proposal, drift: false, group: 4, screen: Screen::Barker }
}

/// What some sweeps and energies make of a few walkers.
struct Found {
    acceptance: Vec<f64>,
    places: Vec<Vec<[f64; 3]>>,
    energies: Vec<Vec<LocalEnergy>>,
    error: f64,
}

fn chain<S: Amplitude>(psi: &Arc<SlaterJastrow<S>>, case: &Case, schemes: &[(Scheme, usize)]) -> Found {
    let mut walkers = Walkers::new(psi.clone(), 3, 7, &Start::default()).expect("walkers");
    let (mut acceptance, mut energies) = (Vec::new(), Vec::new());
    for &(scheme, count) in schemes {
        let sweep = sweep(scheme, case.proposal);
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
    let places = walkers.places().into_iter().cloned().collect();
    Found { acceptance, places, energies, error: walkers.inverse_error() }
}

fn close(a: &[LocalEnergy], b: &[LocalEnergy], epsilon: f64) -> bool {
    let near = |x: f64, y: f64| (x - y).abs() <= epsilon * x.abs().max(1.0);
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            near(a.kinetic, b.kinetic) && near(a.external, b.external) && near(a.interaction, b.interaction)
        })
}

fn compare<S: Amplitude>(device: &Device, case: &Case)
where
    SplineOrbitals: Orbitals<S>,
{
    let host: Device = Arc::new(Cpu::new(2, Interrupt::default()).expect("threads"));
    let label = format!("{:?} {:?} {}", case.electrons, case.twist, case.precision);
    // Particle by particle alone, look-ahead across a renewal of the inverses, then all schemes in turn.
    let most = if case.electrons[0] > 40 { 6 } else { 40 };
    let chains: [&[(Scheme, usize)]; 3] = [
        &[(Scheme::ParticleByParticle, 4)],
        &[(Scheme::LookAhead, 3), (Scheme::LookAhead, most)],
        &[
            (Scheme::QuasiSimultaneous, 2),
            (Scheme::LookAhead, 2),
            (Scheme::DelayedAcceptance, 1),
            (Scheme::LookAhead, 1),
        ],
    ];
    for schemes in chains {
        let expected = chain(&psi::<S>(&host, case), case, schemes);
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
    }
}

/// Few electrons and more than two blocks of them; real and complex; both precisions; all kinds of factors.
pub fn walkers(device: &Device) {
    let rpa = || vec![Factor::Rpa { strength: None, cutoff: None }];
    let polynomial =
        Factor::Polynomial { cutoff: None, opposite: vec![0.1, 0.02], same: vec![0.05, -0.01, 0.002] };
    let centres = vec![[0.1, 0.2, 0.3], [3.0, 4.0, 5.0]];
    let nuclear = Factor::Nuclear { centres, charges: vec![0.4, 0.3], b: 0.7, cutoff: None };
    let several = || vec![polynomial.clone(), nuclear.clone()];
    let case = |electrons, twist, precision, factors, proposal| Case {
        electrons,
        twist,
        precision,
        factors,
        proposal,
    };
    let (gauss, even) = (Proposal::Gaussian, Proposal::Uniform);
    let twisted = [0.1, 0.2, -0.3];
    for case in [
        case([7, 7], [0.0; 3], "double", rpa(), gauss),
        case([7, 0], [0.0; 3], "double", vec![], even),
        case([15, 9], [0.0; 3], "mixed", several(), even),
        case([70, 65], [0.0; 3], "double", rpa(), gauss),
        case([137, 20], [0.0; 3], "double", several(), gauss),
    ] {
        compare::<f64>(device, &case);
    }
    for case in [
        case([5, 4], twisted, "double", rpa(), even),
        case([40, 35], twisted, "mixed", several(), gauss),
        case([70, 33], twisted, "double", rpa(), gauss),
    ] {
        compare::<umklapp::number::C64>(device, &case);
    }
    compare::<f64>(device, &case([19, 7], [0.0; 3], "single", rpa(), gauss));
}
