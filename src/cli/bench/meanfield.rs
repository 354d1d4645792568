//! `umklapp bench meanfield`: mean fields of crystals and samples, and how far they are from their gap equations.

use crate::error::{Error, Result};
use crate::output::out;
use crate::script::Engine;

/// A model, how it is solved, and what its gap equation, solved by bisection elsewhere, has for the free energy.
struct Fields {
    name: &'static str,
    setup: &'static str,
    call: &'static str,
    exact: f64,
}

const RUNS: [Fields; 4] = [
    Fields {
        name: "graphene, 48x48 momenta, U = 4",
        setup: "let m = model(lattice::honeycomb(1, 1)); m.nearest(-1.0);",
        call: "meanfield::hubbard(m, #{ U: 4.0, kpoints: 48, start: series([0.5, -0.5]), progress: false })",
        exact: -1.347953990690157,
    },
    Fields {
        name: "square 12x12, U = 4, from a start",
        setup: "let m = model(lattice::square(12, 12)); m.nearest(-1.0); let s = series(alternating(12));",
        call: "meanfield::hubbard(m, #{ U: 4.0, temperature: 0.05, start: s, progress: false })",
        exact: -114.77146137697723,
    },
    Fields {
        name: "square 12x12, U = 4, from any",
        setup: "let m = model(lattice::square(12, 12)); m.nearest(-1.0);",
        call: "meanfield::hubbard(m, #{ U: 4.0, temperature: 0.05, seed: 1, progress: false })",
        exact: -114.77146137697723,
    },
    Fields {
        name: "d wave, 48x48 momenta, W = 2",
        setup: "let m = model(lattice::square(1, 1)); m.nearest(-1.0);",
        call: "meanfield::superconductor(m, #{ W: 2.0, kpoints: 48, filling: 0.8, temperature: 0.05, \
               bond_start: series([0.3, -0.3]), progress: false })",
        exact: -2.894738852701968,
    },
];

const START: &str = "fn alternating(n) { let all = []; \
    for j in 0..n { for i in 0..n { all.push(if (i + j) % 2 == 0 { 0.5 } else { -0.5 }); } } all }";

/// Runs what is wanted, three times each, and prints the fastest.
pub(super) fn run(engine: &mut Engine, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
    out(&format!("| {:<34} | seconds | steps | free energy - exact |", "run"));
    out(&format!("| {} | ---: | ---: | ---: |", "-".repeat(34)));
    for run in RUNS.iter().filter(|run| wanted(run.name)) {
        let mut best = f64::INFINITY;
        let (mut steps, mut energy) = (0.0, 0.0);
        for _ in 0..3 {
            let script = format!(
                "{START} {} let f = (); let t = time(|| f = {}); \
                 if !f.converged {{ throw \"not settled\"; }} [t, 1.0 * f.steps, f.free_energy]",
                run.setup, run.call
            );
            let value = engine.eval(&script).map_err(|report| Error::internal(report.message.clone()))?;
            let numbers: Vec<f64> = value
                .into_typed_array::<f64>()
                .map_err(|_| Error::internal("a run that gives no numbers"))?;
            best = best.min(numbers[0]);
            (steps, energy) = (numbers[1], numbers[2]);
        }
        out(&format!("| {:<34} | {best:.3} | {steps} | {:.1e} |", run.name, energy - run.exact));
    }
    Ok(())
}
