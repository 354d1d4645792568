//! Sweeps of walkers by updating scheme, and local energies: systems of the sizes of Uejima and Maezono 2012, electrons
//! with a Jastrow factor and orbitals on splines in single precision,
//! against what their products of matrices and their orbitals take alone.

use std::sync::Arc;

use rayon::prelude::*;

use super::{Bench, fastest, timed};
use crate::backend::Device;
use crate::error::{Error, Result};
use crate::montecarlo::jastrow::JastrowFactor;
use crate::montecarlo::orbitals::{Fourier, SplineOrbitals};
use crate::montecarlo::{
    Crystal, Hamiltonian, Periodic, Proposal, Scheme, ScreenRule, SlaterJastrow, Sweep, WalkerStart, Walkers,
    amplitude,
};
use crate::output::out;
use crate::task::{Interrupt, Task};

/// Electrons, orbitals of the paper (complex ones, of which a spin fills the real and the imaginary parts), grid points
/// along an edge, whether the case is large.
const CASES: [(&str, usize, usize, usize, bool); 5] = [
    ("small", 54, 27, 20, false),
    ("Si 3x3x3, coarse grid", 216, 56, 24, false),
    ("Si 3x3x3", 216, 56, 50, true),
    ("TiO2 3x3x3", 648, 168, 50, true),
    ("TiO2 4x4x4", 1536, 384, 60, true),
];

const SCHEMES: [Scheme; 4] =
    [Scheme::LookAhead, Scheme::ParticleByParticle, Scheme::QuasiSimultaneous, Scheme::DelayedAcceptance];

/// One row a size and scheme, milliseconds of one walker. The floor of a look-ahead sweep is that of its products of
/// matrices, at the rate of the product M = Phi A^-1 alone, and of its orbitals, as `bench splines` times them.
pub(super) fn run(bench: &Bench, device: &Device) -> Result<()> {
    let titles = "ms/sweep | ms of orbitals | ms of products | floor/sweep | ms/energy | acceptance";
    out(&format!("| {:<50} | {titles} |", "case"));
    out(&format!("| {} |{}", "-".repeat(50), " ---: |".repeat(6)));
    for (name, electrons, paper, edge, large) in CASES {
        let wanted: Vec<(Scheme, String)> = SCHEMES
            .into_iter()
            .map(|scheme| (scheme, format!("{name}, {electrons} x {paper}, {scheme}")))
            .filter(|(_, title)| bench.wanted(title) && (bench.full || !large))
            .collect();
        if !wanted.is_empty() {
            case(bench, device, electrons, edge, &wanted)?;
        }
    }
    Ok(())
}

fn case(
    bench: &Bench,
    device: &Device,
    electrons: usize,
    edge: usize,
    wanted: &[(Scheme, String)],
) -> Result<()> {
    let gas = Crystal::electron_gas(electrons, 2.0)?;
    let waves = Fourier::plane_waves(gas.cell(), electrons / 2, [0.0; 3])?;
    let splines = Arc::new(SplineOrbitals::from_waves(device, &waves, [edge; 3], true, &Task::default())?);
    let psi = SlaterJastrow::<f64>::new(splines.clone(), electrons / 2, electrons / 2)?
        .with_jastrow(&[JastrowFactor::Rpa { strength: None, cutoff: None }])?;
    let hamiltonian = Hamiltonian {
        external: Vec::new(),
        interaction: Some(Arc::new(Periodic::new(gas.cell()))),
        constant: 0.0,
        label: String::new(),
    };
    let count = if device.name() == "cpu" { device.workers() } else { 16 };
    let start = Walkers::new(Arc::new(psi), count, 1, &WalkerStart::default())?;
    for (scheme, title) in wanted {
        let mut walkers = start.clone();
        let sweep = Sweep {
            scheme: *scheme,
            step: 0.6,
            proposal: Proposal::Gaussian,
            drift: false,
            group: 4,
            screen: ScreenRule::Barker,
        };
        let task = Interrupt::default();
        // The first is queued launch by launch, the second recorded.
        walkers.run(&sweep, 2, &task)?;
        let one = fastest(bench.limit(), || walkers.run(&sweep, 1, &task).map(|_| ()))?;
        let many = ((0.1 / one) as usize).clamp(1, 20);
        let seconds = fastest(bench.limit(), || walkers.run(&sweep, many, &task).map(|_| ()))? / many as f64;
        let acceptance = walkers.acceptance();
        let energy = fastest(bench.limit(), || hamiltonian.local_energies(&mut walkers).map(|_| ()))?;
        let points: Vec<[f64; 3]> = walkers.places()?.into_iter().flatten().collect();
        let mut batch = splines.evaluator().batch(&points)?;
        let orbitals = timed(device, bench.limit(), || batch.values())?;
        // M, and as many accepted rows for the inverse and, on the average half of them, for M.
        let n = (electrons / 2) as f64;
        let flops = 2.0 * count as f64 * n * n * n * (2.0 + 3.0 * acceptance);
        let products = flops / rate(bench, device, &mut walkers, electrons / 2)?;
        let ms = |seconds: f64| 1e3 * seconds / count as f64;
        let floor = if *scheme == Scheme::LookAhead {
            format!("{:.0} %", 100.0 * (orbitals + products) / seconds)
        } else {
            String::new()
        };
        out(&format!(
            "| {title:<50} | {:.4} | {:.4} | {:.4} | {floor} | {:.4} | {acceptance:.3} |",
            ms(seconds),
            ms(orbitals),
            ms(products),
            ms(energy),
        ));
    }
    Ok(())
}

/// Operations a second of the product of n x n matrices of all walkers.
fn rate(bench: &Bench, device: &Device, walkers: &mut Walkers<f64>, n: usize) -> Result<f64> {
    let flops = 2.0 * (walkers.count() * n * n * n) as f64;
    if walkers.resident()?.is_some() {
        let once = |walkers: &mut Walkers<f64>| match walkers.resident()? {
            Some((resident, _)) => resident.product(),
            None => Err(Error::internal("walkers that left their device")),
        };
        return Ok(flops / timed(device, bench.limit(), || once(walkers))?);
    }
    let matrix: Vec<f64> = (0..n * n).map(|k| (k % 17) as f64).collect();
    let mut products = vec![vec![0.0; n * n]; walkers.count()];
    let seconds = fastest(bench.limit(), || {
        let one = |c: &mut Vec<f64>| amplitude::times_transposed(&matrix, &matrix, c, n, 1.0, false);
        products.par_iter_mut().for_each(one);
        Ok(())
    })?;
    Ok(flops / seconds)
}
