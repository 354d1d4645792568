//! Runs that go on, on another number of ranks, from what an earlier one has saved: one file each, whoever wrote it.

use super::{Place, close, dealt};
use crate::common::Folder;

/// What is saved, and a script that goes some way (`args.stage`, from 1 to 4), prints what it has at the end,
/// and saves that.
const RUNS: [(&str, &str); 10] = [
    (
        "moments",
        "let h = tight_binding(lattice::square(12, 9), #{ hopping: -1.0, disorder: 1.0, seed: 2 });
         let mu = kpm::moments(h, #{ moments: 24, vectors: 3 * args.stage, seed: 5, window: window(-5.0, 5.0), \
         checkpoint: \"run.npz\", progress: false });
         print(mu.vectors);
         for x in mu.values { print(x); }",
    ),
    (
        "double moments",
        "let h = tight_binding(lattice::square(12, 9), #{ hopping: -1.0, disorder: 1.0, seed: 2 });
         let mu = kpm::conductivity_moments(h, #{ moments: 8, vectors: 2 * args.stage, seed: 5, direction: \"xx\", \
         window: window(-5.0, 5.0), checkpoint: \"run.npz\", progress: false });
         print(mu.vectors);
         for x in kpm::conductivity(mu, #{ energies: [-1.0, 0.0, 0.5] }).conductivity { print(x); }",
    ),
    (
        "finite",
        "let chain = sites(\"S=1/2\", 12);
         let enough = |sweep, energy| { if sweep > args.stage && args.stage < 4 { throw \"enough\"; } };
         try {
             let g = dmrg::finite(models::heisenberg(chain), chain, #{ sector: #{ Sz: 0 }, states: 24, sweeps: 6, \
             seed: 1, observe: enough, checkpoint: \"run.dmrg\", progress: false });
             print(`${g.energy} ${g.sweeps.rows} ${g.expect(\"Sz\")[3]}`);
         } catch (e) { print(e); }",
    ),
    (
        "uniform",
        "let h = models::heisenberg(sites(\"S=1/2\", 6), #{ Delta: 1.5 }).cell(2);
         let enough = |step, energy, far| { if step > 20 * args.stage + 6 && args.stage < 4 { throw \"enough\"; } };
         try {
             let gs = dmrg::uniform(h, sites(\"S=1/2\", 2), #{ sector: #{ Sz: 0 }, states: 16, scouts: 4, steps: 90, \
             tol: 1e-15, seed: 1, observe: enough,
                 checkpoint: \"run.dmrg\", progress: false });
             print(`${gs.energy} ${gs.steps.rows}`);
         } catch (e) { print(e); }",
    ),
    (
        "evolution",
        "let chain = sites(\"S=1/2\", 8);
         let psi = product_state(chain, [\"Up\", \"Dn\", \"Up\", \"Dn\", \"Up\", \"Dn\", \"Up\", \"Dn\"], #{ Sz: 0 });
         let h = models::heisenberg(chain);
         let calls = 0;
         let driven = |t| {
             calls += 1;
             if calls > 20 && args.stage < 4 { throw \"enough\"; }
             h * (1.0 + 0.1 * t)
         };
         try {
             let late = dmrg::evolve(psi, driven, 1.0, #{ step: 0.02, states: 16, checkpoint: \"run.dmrg\", progress: \
             false });
             for z in late.expect(\"Sz\") { print(z); }
             print(late.about.steps);
         } catch (e) { print(e); }",
    ),
    (
        "walkers",
        "let psi = slater_jastrow(orbitals::oscillator(3, #{ dimension: 3, alpha: 0.8 }), #{ up: 3, down: 1, jastrow: \
         jastrow::pade(#{ b: 0.5 }) });
         let run = vmc::run(psi, electrons(vmc::trap(1.0), #{}), #{ walkers: 5, warmup: 20, stride: 2, step: 0.7, \
         steps: 10 * args.stage, seed: 8, checkpoint: \"run.json\", progress: false });
         for x in run.series.energy { print(x); }
         print(run.walk.positions(4).norm());",
    ),
    (
        "optimisation",
        "let one = orbitals::exponentials([[[0.0, 0.0, 0.0], 1.84]]);
         let psi = slater_jastrow(one, #{ up: 1, down: 1, jastrow: jastrow::pade(#{ b: 1.0 }) });
         let helium = electrons(vmc::nuclei([[2.0, [0.0, 0.0, 0.0]]]), #{});
         let best = vmc::optimise(psi, helium, #{ walkers: 5, warmup: 20, steps: 10, iterations: args.stage, spread: \
         0.5, seed: 8, checkpoint: \"run.json\", progress: false });
         for x in best.iterations.energy { print(x); }
         print(best.psi.parameters.b);
         print(best.energy);",
    ),
    (
        "temperatures",
        "let chain = sites(\"S=1/2\", 10);
         let run = exact::thermal(models::heisenberg(chain), chain, #{ beta: [0.0, 1.0, 2.0], vectors: 2 * args.stage, \
         steps: 14, seed: 5, checkpoint: \"run.npz\", progress: false });
         for name in run.columns { for x in run.column(name) { print(x); } }",
    ),
    (
        "vector",
        "let h = tight_binding(lattice::square(12, 9), #{ hopping: -1.0, disorder: 1.0, seed: 2 });
         let v = if args.stage == 1 { random_block(h, 2, #{ seed: 3 }) } else { block(h, load(\"run.npy\")) };
         v = h * v;
         v.to_matrix().save(\"run.npy\");
         print(v.norm()[0]);
         print(v.norm()[1]);",
    ),
    (
        "field",
        "let u = if args.stage == 1 { gauge::random(lattice::hypercubic(4, 2, 2, 6), #{ seed: 5 }) } else { \
         load(\"run.lime\") };
         u = gauge::heatbath(u, #{ beta: 5.7, seed: 6, progress: false });
         u.save(\"run.lime\");
         print(u.sweeps);
         print(gauge::plaquette(u));
         print(u.link(40, 2).at(0, 1));",
    ),
];

#[test]
fn runs_go_on_with_other_ranks() {
    for (launcher, runs) in dealt(&RUNS) {
        for (kind, script) in runs {
            let through = |ranks: [&str; 4]| {
                let place = Place(Folder::new("resumed").with("a.rhai", script));
                let stage = |(at, ranks)| {
                    place.prints(launcher, ranks, &["--quiet", "--set", &format!("stage={}", at + 1)])
                };
                ranks.into_iter().enumerate().map(stage).collect::<Vec<String>>()
            };
            let (alone, others) = (through(["1"; 4]), through(["3", "2", "1", "4"]));
            for (at, (alone, others)) in alone.iter().zip(&others).enumerate() {
                let what = format!("{kind}, stage {}", at + 1);
                if ["moments", "double moments", "temperatures", "vector"].contains(&kind) {
                    close(alone, others, &what);
                } else {
                    assert_eq!(alone, others, "{what}: the same bits");
                }
            }
            assert_ne!(alone[2], alone[3], "{kind}: the last stage goes on");
            assert!(!alone[3].contains("enough"), "{kind}: the last stage comes to its end");
        }
    }
}
