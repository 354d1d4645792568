//! Sweeps of walkers by updating scheme, and local energies: silicon on splines, electrons with a Jastrow factor.

use super::Bench;
use crate::cli::out;
use crate::error::{Error, Result};
use crate::script::Engine;

/// Primitive cells along an edge; 8 valence electrons each, and whether the case is large.
const CASES: [(usize, bool); 3] = [(1, false), (2, false), (3, true)];

/// One row a size and scheme: milliseconds a sweep of one walker, and those of a local energy.
pub(super) fn run(bench: &Bench, engine: &mut Engine) -> Result<()> {
    out(&format!("| {:<44} | ms/sweep and walker | ms/energy and walker | acceptance |", "case"));
    out(&format!("| {} | ---: | ---: | ---: |", "-".repeat(44)));
    for (edge, big) in CASES {
        let schemes = ["particle-by-particle", "look-ahead", "delayed-acceptance", "quasi-simultaneous"];
        for scheme in schemes {
            let electrons = 8 * edge * edge * edge;
            let name = format!("silicon, {electrons} electrons, {scheme}");
            if !bench.wanted(&name) || (big && !bench.full) {
                continue;
            }
            let script = format!(
                "let si = crystal::silicon({edge});
                 let bands = orbitals::plane_wave_bands(si, #{{ cutoff: 2.5, progress: false }});
                 let psi = slater_jastrow(bands.splines(#{{ spacing: 0.5 }}), #{{ up: {half}, down: {half}, jastrow: jastrow::rpa(si) }});
                 let ham = electrons(si, #{{ interaction: \"ewald\" }});
                 let walk = walkers(psi, #{{ count: 8, seed: 1 }});
                 let moves = #{{ scheme: \"{scheme}\", step: 0.6 }};
                 metropolis(walk, moves + #{{ sweeps: 5 }});
                 let sweep = 1e9; let energy = 1e9;",
                half = electrons / 2
            );
            let measure = format!(
                "for k in 0..5 {{
                    let t = time(|| metropolis(walk, moves + #{{ sweeps: {sweeps} }}));
                    sweep = min(sweep, t / {sweeps}.0 / 8.0);
                    energy = min(energy, time(|| local_energy(walk, ham)) / 8.0);
                 }}
                 [1000.0 * sweep, 1000.0 * energy, walk.acceptance]",
                sweeps = if edge == 1 { 50 } else { 4 }
            );
            let value = engine
                .eval(&format!("{script}\n{measure}"))
                .map_err(|report| Error::internal(report.message.clone()))?;
            let numbers: Vec<f64> =
                value.into_typed_array().map_err(|_| Error::internal("a run that gives no numbers"))?;
            out(&format!("| {name:<44} | {:.3} | {:.3} | {:.3} |", numbers[0], numbers[1], numbers[2]));
        }
    }
    Ok(())
}
