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

/// A file that is another one on a rank, or missing there, is an error of all ranks, which they can catch.
#[test]
fn files_are_the_same_on_all_ranks() {
    let long = format!("x\n{}", "1.0\n".repeat(600_000));
    let place = Place(
        Folder::new("files")
            .with("0.csv", "x\n1.0\n")
            .with("1.csv", "x\n2.0\n")
            .with("same.csv", "x\n1.0\n")
            .with("long.csv", &long)
            .with("end.csv", &format!("{long}2.0\n"))
            .with(
                "a.rhai",
                "fn of(first, other) { if backend().rank == 0 { first } else { other } }
                 for pair in [[\"0.csv\", \"1.csv\"], [\"0.csv\", \"none.csv\"], [\"long.csv\", \"end.csv\"],
                     [\"none.csv\", \"0.csv\"]] {
                     try { load(of(pair[0], pair[1])); print(\"read\"); } catch (e) { print(e.message); }
                 }
                 print(load(of(\"0.csv\", \"same.csv\")).x[0] + load(of(\"long.csv\", \"long.csv\")).x[599999]);
                 try { load(\"none.csv\"); } catch (e) { print(e.message); }
                 print(file_exists(of(\"0.csv\", \"none.csv\")));",
            ),
    );
    let other =
        |rank: usize, name: &str| format!("rank {rank} finds another `{name}`, or none, than rank 0\n");
    let found = ["0.csv", "0.csv", "long.csv", "none.csv"].map(|name| other(1, name)).concat();
    let expected = format!("{found}2.0\ncannot read `none.csv`: there is no such file\ntrue\n");
    for launcher in launchers() {
        assert_eq!(place.prints(launcher, "3", &[]), expected);
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
