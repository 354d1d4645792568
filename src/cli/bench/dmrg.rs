//! `umklapp bench dmrg`: the runs that other programs were timed with, and the product of a superblock.

use crate::error::{Error, Result};
use crate::output::out;
use crate::script::Engine;

/// A chain, its exact energy (Bethe ansatz) and a schedule.
struct ChainSearch {
    name: &'static str,
    setup: &'static str,
    options: &'static str,
    exact: f64,
    big: bool,
}

const RUNS: [ChainSearch; 3] = [
    ChainSearch {
        name: "Heisenberg 100, states to 130",
        setup: "let c = sites(\"S=1/2\", 100); let h = models::heisenberg(c);",
        options: "#{ sector: #{ Sz: 0.0 }, states: [20, 60, 130], sweeps: 3, tol: 0.0, progress: false }",
        exact: -44.1277398932962,
        big: false,
    },
    ChainSearch {
        name: "Heisenberg 100, states to 200",
        setup: "let c = sites(\"S=1/2\", 100); let h = models::heisenberg(c);",
        options: "#{ sector: #{ Sz: 0.0 }, states: [20, 50, 100, 200, 200], sweeps: 5, tol: 0.0, progress: false }",
        exact: -44.1277398932962,
        big: false,
    },
    ChainSearch {
        name: "Hubbard 32, U = 4, states to 500",
        setup: "let c = sites(\"Electron\", 32); let h = models::hubbard(c, #{ U: 4.0 });",
        options: "#{ sector: #{ Nup: 16, Ndn: 16 }, states: [50, 100, 200, 500, 500], sweeps: 5, tol: 0.0, progress: \
             false }",
        exact: -17.994578365127,
        big: true,
    },
];

/// Runs what is wanted, `repeat` times each, and prints the fastest.
pub(super) fn run(engine: &mut Engine, full: bool, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
    out(&format!("| {:<34} | seconds | energy - exact | products Gflop/s |", "run"));
    out(&format!("| {} | ---: | ---: | ---: |", "-".repeat(34)));
    for run in RUNS.iter().filter(|run| wanted(run.name) && (full || !run.big)) {
        let mut best = f64::INFINITY;
        let (mut energy, mut speed) = (0.0, 0.0f64);
        for _ in 0..3 {
            let script = format!(
                "{} let gs = (); let t = time(|| gs = dmrg::finite(h, c, {})); [t, gs.energy, {}]",
                run.setup, run.options, PRODUCT
            );
            let value = engine.eval(&script).map_err(|report| Error::internal(report.message.clone()))?;
            let numbers: Vec<f64> = value
                .into_typed_array::<f64>()
                .map_err(|_| Error::internal("a run that gives no numbers"))?;
            best = best.min(numbers[0]);
            energy = numbers[1];
            speed = speed.max(numbers[2]);
        }
        out(&format!("| {:<34} | {best:.2} | {:.1e} | {speed:.1} |", run.name, energy - run.exact));
    }
    Ok(())
}

/// The rate of the product in the middle of the chain, in the basis of the state.
const PRODUCT: &str = "{
    let m = dmrg::mpo(h, c, gs.sector);
    let n = c.len;
    let right = dmrg::right_blocks(m, gs);
    let left = dmrg::left_edge(m);
    // Blocks of as many states on the left, so that the superblock is that of the sweep.
    let half = n / 2;
    for i in 0..half - 1 {
        let grown = left.grow();
        let both = superblock(grown, right[i + 1]);
        left = grown.rotate(density_matrix(both, dmrg::project(both, gs), \"left\").truncate(#{}));
    }
    let both = superblock(left.grow(), right[half + 1].grow());
    let v = dmrg::project(both, gs);
    let best = 1e9;
    for k in 0..5 { best = min(best, time(|| { both * v; })); }
    dmrg::superblock_report(both).flops.to_float() / best / 1e9
}";
