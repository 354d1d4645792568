//! Values that rounding or a clock could make differ between ranks are the same on all of them.

use super::{Place, close, close_within, launchers, numbers};
use crate::common::Folder;

/// Vectors of degenerate levels are those of one process, found by each of the solvers.
#[test]
fn vectors_of_levels_do_not_depend_on_ranks() {
    let place = Place(Folder::new("levels").with(
        "a.rhai",
        "let small = tight_binding(lattice::square(6, 6));
         let large = tight_binding(lattice::square(12, 12));
         let magnetic = tight_binding(lattice::square(12, 12), #{ flux: 1.0 / 12.0 });
         let o = #{ count: 5, seed: 1, tol: 1e-11, progress: false };
         let found = [davidson(small, o), davidson(large, o), lanczos(large, o), ritz(large, o)];
         found.push(eigs(large, #{ near: -3.0, count: 8, seed: 1, tol: 1e-11, progress: false }));
         found.push(davidson(magnetic, o + #{ count: 12 }));
         for e in found {
             for x in markers::participation(e.vectors) { print(x); }
             for z in e.vectors.to_matrix()[3] { print(`${z.re} ${z.im}`); }
         }",
    ));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        assert!(numbers(&alone).len() > 80, "{alone}");
        for (ranks, threads) in [("1", "3"), ("2", "1"), ("3", "1")] {
            let there = place.prints_on(launcher, ranks, threads, &[]);
            close_within(1e-8, &alone, &there, &format!("{ranks} ranks of {threads} threads"));
        }
    }
}

/// A script that decides by a clock goes the same way on all ranks.
#[test]
fn clocks_are_told() {
    let place = Place(Folder::new("clocks").with(
        "a.rhai",
        "let h = tight_binding(lattice::cubic(10, 10, 10));
         let v = random_block(h, 1, #{ seed: 1 });
         let began = timestamp();
         let end = began + 0.3;
         let steps = 0;
         while timestamp() < end && timestamp() - began < 0.3 && began.elapsed < 0.3 {
             v = h * v;
             v = v * (1.0 / norm(v));
             steps += 1;
         }
         for k in 0..50 {
             let mu = kpm::moments(h, #{ moments: 8, vectors: 1, seed: 1, progress: false });
             if mu.seconds > 0.001 || mu.rate > 2e7 { norm(h * v); }
         }
         print(steps > 0);",
    ));
    for launcher in launchers() {
        assert_eq!(place.prints(launcher, "3", &[]), "true\n");
    }
}

/// A grid of ranks for the lattice at hand is in no other lattice's way.
#[test]
fn a_grid_leaves_lattices_of_fewer_directions_alone() {
    let place = Place(Folder::new("fewer").with(
        "a.rhai",
        "for l in [lattice::square(8, 6), lattice::chain(40)] {
             let h = tight_binding(l, #{ disorder: 1.0, seed: 2 });
             print(davidson(h, #{ seed: 1, progress: false }).values[0]);
         }",
    ));
    for launcher in launchers() {
        close(
            &place.prints(launcher, "1", &[]),
            &place.prints(launcher, "4", &["--grid", "2x2"]),
            "a chain beside a square",
        );
    }
}
