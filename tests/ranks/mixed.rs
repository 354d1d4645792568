//! Ranks with backends and weights of their own, one of them without any rows: what lives whole elsewhere lives on one
//! rank, and all of them decide alike.

use super::lattices::{of_all_lattices, same_lattices};
use super::manybody::SUPERBLOCKS;
use std::path::Path;

use super::{Place, close_within, dealt, launchers};
use crate::common::Folder;

/// Ranks, their backends and weights: the last one has no rows, or is slower.
const RANKS: [(&str, &str, &str); 2] = [("3", "cpu+cpu", "1:3:0"), ("2", "cpu+cpu", "1:2")];

#[test]
fn moments_do_not_depend_on_weights() {
    let Some(first) = launchers().first() else { return };
    // A rank that has all rows of a lattice asks nobody.
    let place = Place(Folder::new("mixed-moments").with("a.rhai", &of_all_lattices("<= 1")));
    let alone = place.prints(first, "1", &["--backend", "cpu"]);
    for (launcher, runs) in dealt(&RANKS) {
        for (ranks, backend, weights) in runs {
            let how = ["--backend", backend, "--weights", weights];
            let shared = place.prints(launcher, ranks, &how);
            same_lattices(&alone, &shared, &format!("{ranks} ranks by {weights}"));
            assert_eq!(shared, place.prints(launcher, ranks, &how), "the same bits");
        }
    }
}

/// A lattice of random links that one rank has whole, and the others not at all.
#[test]
fn spinors_may_live_on_one_rank() {
    let place = Place(Folder::new("mixed-spinors").with(
        "a.rhai",
        "let lat = lattice::hypercubic(2, 4, 4, 4);
         let u = gauge::heatbath(lat, #{ beta: 5.7, sweeps: 2, seed: 1, progress: false });
         for storage in [\"full\", \"reconstruct-8\"] {
             let d = wilson::operator(u, #{ mass: 0.3, storage: storage });
             let v = random_block(d, 2, #{ seed: 5 });
             for x in (d * v).norm() { print(x); }
             for x in (d.dagger() * (d * v)).norm() { print(x); }
             for x in wilson::time_slices(d * v) { print(x); }
         }
         for x in wilson::time_slices(wilson::point_source(lat, 5)) { print(x); }",
    ));
    let Some(first) = launchers().first() else { return };
    let alone = place.prints(first, "1", &["--backend", "cpu"]);
    let lone = [("2", "cpu+cpu", "1:1000"), ("2", "cpu+cpu", "1000:1"), ("3", "cpu+cpu+cpu", "0:1:0")];
    for (launcher, runs) in dealt(&lone) {
        for (ranks, backend, weights) in runs {
            let shared = place.prints(launcher, ranks, &["--backend", backend, "--weights", weights]);
            close_within(1e-12, &alone, &shared, &format!("{ranks} ranks by {weights}"));
        }
    }
}

/// Small spaces, which other ranks have whole: dense matrices, Davidson's and Lanczos' method, levels inside,
/// evolution, a search of DMRG, solutions; walkers have the same bits.
#[test]
fn what_is_not_shared_out_lives_on_one_rank() {
    let place = Place(Folder::new("mixed-whole").with(
        "a.rhai",
        "let c = sites(\"S=1/2\", 8);
         let h = exact::operator(models::heisenberg(c), c, #{ Sz: 0 });
         for x in davidson(h, #{ count: 2, seed: 1, progress: false }).values { print(x); }
         for x in eigs(h, #{ near: 0.3, count: 3, seed: 1, progress: false }).values { print(x); }
         for x in h.to_matrix().eigh().values { print(x); }
         let v = unit_block(h, [0]);
         print(kpm::evolve(h, v, 0.7, #{ progress: false }).norm());
         print(ritz(h, #{ count: 2, seed: 1, progress: false }).values[0]);
         let found = dmrg::finite(models::heisenberg(c), c, #{ sector: #{ Sz: 0 }, states: 16, seed: 1, progress: \
         false });
         print(found.energy);
         let f = lattice::hypercubic(2, 2, 2, 4);
         let u = gauge::heatbath(f, #{ beta: 5.7, sweeps: 1, seed: 1 });
         print(gauge::plaquette(u));",
    ));
    let Some(first) = launchers().first() else { return };
    let alone = place.prints(first, "1", &["--backend", "cpu"]);
    for (launcher, runs) in dealt(&RANKS) {
        for (ranks, backend, weights) in runs {
            for more in [&["--share-from", "0"][..], &[]] {
                let how = [&["run", "a.rhai", "--threads", "1", "--ranks", ranks], more].concat();
                let how = [&how[..], &["--backend", backend, "--weights", weights]].concat();
                let said = place.run(launcher, &how);
                assert_eq!(said.code, 0, "{said:?}");
                close_within(1e-8, &alone, &said.out, &format!("{ranks} ranks by {weights}"));
            }
        }
    }
}

/// Searches that one place makes by itself: what it finds is the same in every bit, however the search begins and ends.
/// The user's own function takes part in a search on all ranks.
const SEARCHES: &str = r#"
    let c = sites("S=1/2", 10);
    let h = exact::operator(models::heisenberg(c), c, #{ Sz: 0 });
    let low = davidson(h, #{ count: 3, seed: 1, progress: false }).vectors;
    let real = random_block(h, 2, #{ seed: 5 });
    for more in [#{ count: 3 }, #{ count: 2, start: real }, #{ which: "highest" }, #{ count: 2, orthogonal_to: low },
        #{ count: 4, iterations: 2 }, #{ start: low, trust_start: true }, #{ preconditioner: |r, e| r },
        #{ tol: 1e-18 }] {
        let found = davidson(2.0 * h - 0.5, #{ seed: 7, progress: false } + more);
        for k in 0..found.values.len { print(`${found.values[k]} ${found.residuals[k]}`); }
        print(`${found.iterations} ${found.products} ${found.ended} ${found.vectors}`);
        print(found.vectors.column(0).dot(random_block(h, 1, #{ seed: 2 })));
        print((h * found.vectors).norm());
    }
    let n = 101;
    let from = [];
    let to = [];
    let hops = [];
    for i in 0..n {
        from += [i, (i + 1) % n];
        to += [(i + 1) % n, i];
        hops += [0.6 + 0.8 * I, 0.6 - 0.8 * I];
    }
    let ring = sparse(from, to, hops);
    for more in [#{ count: 2 }, #{ start: random_block(ring, 1, #{ seed: 3 }) }] {
        let found = davidson(ring, #{ seed: 7, progress: false } + more);
        print(`${found.values[0]} ${found.iterations} ${found.vectors}`);
        print(found.vectors.column(0).dot(random_block(ring, 1, #{ seed: 2 })));
    }
    try {
        davidson(h, #{ start: (0.0 / 0.0) * real, progress: false });
    } catch (e) {
        print(e.message);
    }"#;

#[test]
fn one_place_searches_by_itself() {
    let place = Place(Folder::new("mixed-alone").with("a.rhai", SEARCHES));
    let run = |launcher: &Path, how: &[&str]| {
        let said = place.run(launcher, &[&["run", "a.rhai", "--threads", "1"][..], how].concat());
        assert_eq!(said.code, 0, "{how:?}: {said:?}");
        said.out.replace("on cpu+cpu", "on cpu")
    };
    let Some(first) = launchers().first() else { return };
    let alone = run(first, &["--backend", "cpu"]);
    assert!(alone.contains("stalled") && alone.contains("limit"), "{alone}");
    for weights in ["0:1", "1:0"] {
        assert_eq!(alone, run(first, &["--backend", "cpu+cpu", "--weights", weights]), "{weights}");
    }
    for (launcher, runs) in dealt(&RANKS) {
        for (ranks, backend, weights) in runs {
            let how = ["--ranks", ranks, "--backend", backend, "--weights", weights];
            assert_eq!(alone, run(launcher, &how), "{ranks} ranks by {weights}");
        }
    }
}

/// One rank has the vectors of a search, diagonalises its density matrices and carries states on;
/// the others know of them.
#[test]
fn one_rank_searches_for_all() {
    let more = r#"
        for noise in [0.0, 1e-4] {
            let g = dmrg::finite(models::heisenberg(spins), spins, #{
                sector: #{ Sz: 0 }, states: [20, 40], noise: noise, count: 2, seed: 4, progress: false });
            for e in g.energies { print(e); }
            print(g.expect("Sz").sum());
        }"#;
    let place = Place(Folder::new("mixed-searches").with("a.rhai", &[SUPERBLOCKS, more].concat()));
    let Some(first) = launchers().first() else { return };
    let alone = place.prints(first, "1", &["--backend", "cpu"]);
    for (launcher, runs) in dealt(&RANKS) {
        for (ranks, backend, weights) in runs {
            let how = ["--backend", backend, "--weights", weights];
            let shared = place.prints(launcher, ranks, &how);
            close_within(1e-8, &alone, &shared, &format!("{ranks} ranks by {weights}"));
        }
    }
}

/// Blocks with sectors of some hundred states, whose density matrices and operators a card keeps,
/// and which a processor only knows of.
const KEPT: &str = r#"
let bond = opsum();
bond.add(0.5, "S+", 0, "S-", 1);
bond.add(0.5, "S-", 0, "S+", 1);
bond.add(1.0, "Sz", 0, "Sz", 1);
let block = edge_block("S=1/2", bond);
let before = ();
for step in 0..11 {
    let grown = block.grow();
    let both = superblock(grown, grown.mirror(), #{ Sz: 0.0 });
    let ground = davidson(both, #{ tol: 1e-9, seed: 1, progress: false });
    print(ground.values[0]);
    let basis = density_matrix(both, ground.vectors, "left", #{ noise: if step == 9 { 1e-6 } else { 0.0 } })
        .truncate(#{ states: 500, at_least: if step == 9 { 1 } else { 500 } });
    print(basis.entropy);
    block = grown.rotate(basis);
}
let chain = sites("S=1/2", 24);
let found = dmrg::finite(models::heisenberg(chain), chain, #{
    sector: #{ Sz: 0 }, states: [200, 600], cutoff: 0.0, sweeps: 3, seed: 1, progress: false });
print(found.energy);
print(found.expect("Sz").sum());
"#;

#[test]
#[ignore = "needs a GPU"]
fn a_card_keeps_what_it_has_for_all() {
    let place = Place(Folder::new("mixed-kept").with("a.rhai", KEPT));
    let Some(first) = launchers().first() else { return };
    let alone = place.prints(first, "1", &["--backend", "cuda"]);
    // With a weight for each rank the card is that of rank 1.
    let second = ["--backend", "cpu+cuda", "--weights", "1:12:1"];
    let ways = [("2", &["--backend", "cpu+cuda"][..]), ("3", &["--backend", "cpu+cuda+cpu"]), ("3", &second)];
    for (launcher, runs) in dealt(&ways) {
        for (ranks, how) in runs {
            close_within(1e-8, &alone, &place.prints(launcher, ranks, how), &format!("{ranks} {how:?}"));
        }
    }
}

#[test]
fn golden_files_hold_on_ranks_by_weight() {
    const GOLDEN: [&str; 6] =
        ["dmrg_complex", "kpm_checkpoint", "observers", "tables_texts", "vmc_resume", "wilson_reference"];
    let place = Place(Folder::new("mixed-golden"));
    for (launcher, runs) in dealt(&RANKS) {
        for (ranks, backend, weights) in runs {
            place.passes(launcher, &GOLDEN, &["--ranks", ranks, "--backend", backend, "--weights", weights]);
        }
    }
}

#[test]
fn weights_that_cannot_be_are_told_once() {
    let place = Place(Folder::new("mixed-bad").with("a.rhai", "print(backend().ranks);"));
    let Some(launcher) = launchers().first() else { return };
    for (how, message) in [
        (&["--weights", "1:2:3:4"][..], "4 weights for 2 ranks"),
        (&["--weights", "1:3", "--grid", "2x1"], "a grid of ranks has boxes of one size"),
    ] {
        let args = [&["run", "a.rhai", "--threads", "1", "--ranks", "2"], how].concat();
        let said = place.run(launcher, &args);
        assert_eq!((said.code, said.err.matches(message).count()), (1, 1), "{said:?}");
    }
}
