//! Operators on lattices, cut into boxes and ranges of rows, and their moments are those of one process.

use super::{Place, close, close_within, dealt, launchers};
use crate::common::Folder;

/// Lattices whose moments are compared: open and periodic, odd, complex, in single precision, with several orbitals,
/// with bonds that reach beyond a small box, and smaller than the number of ranks; rows with vacancies, orbitals of a
/// site on two ranks, rows in boxes that a stencil before them has cut.
const LATTICES: [(&str, &str); 10] = [
    ("cubic", "tight_binding(lattice::cubic(6, 5, 7), #{ hopping: -1.0, disorder: 1.0, seed: 2 })"),
    (
        "open",
        "tight_binding(lattice::square(9, 8).boundary([\"open\", \"periodic\"]), #{ hopping: -1.0, disorder: 2.0, \
         seed: 4 })",
    ),
    ("single", "tight_binding(lattice::honeycomb(5, 6), #{ hopping: -2.7, precision: \"single\" })"),
    (
        "flux",
        "(|| { let m = model(lattice::square(8, 6)); m.nearest(-1.0); m.flux(0.25); m.build() }).call()",
    ),
    (
        "far",
        "(|| { let m = model(lattice::chain(7)); m.nearest(-1.0); m.hop([3], 0, 0, 0.5); m.build() }).call()",
    ),
    (
        "vacant",
        "(|| { let m = model(lattice::square(9, 7)); m.nearest(-1.0); m.vacancies(0.2, #{ seed: 3 });
          m.disorder(1.0, #{ seed: 2 }); m.build() }).call()",
    ),
    (
        "apart",
        "(|| { let m = model(lattice::chain(7), 3); m.nearest(matrix([[1.0, 0.5, 0.0], [0.25 * I, 1.0, 0.0], [0.0, \
         0.5, -1.0]]));
          m.onsite(|r| matrix([[r[0] * 0.1, 0.2, 0.0], [0.2, 0.1, r[0] * 0.05], [0.0, r[0] * 0.05, 0.3]])); m.build() \
          }).call()",
    ),
    (
        "boxed",
        "(|| { tight_binding(lattice::square(6, 8), #{ hopping: 1.0 });
          let m = model(lattice::square(6, 8)); m.nearest(-1.0); m.flux(0.25); m.build(#{ format: \"sell\" }) \
          }).call()",
    ),
    ("two", "tight_binding(lattice::chain(2), #{ hopping: -1.0 })"),
    (
        "one",
        "tight_binding(lattice::chain(1).boundary(\"open\"), #{ hopping: -1.0, disorder: 1.0, seed: 1 })",
    ),
];

/// What is printed of an operator `h`.
const TOLD: &str = "
fn tell(h) {
    let v = random_block(h, 3, #{ seed: 5 });
    let start = backend().sums;
    let recurrence = chebyshev(h, window(-9.0, 9.0), v);
    let before = backend().sums;
    let mu = recurrence.run(15, #{ progress: false }).moments().values;
    let sums = backend().sums - before;
    if backend().ranks > 1 {
        assert(sums == 1, `one sum a run, not ${sums}`);
        assert(before - start FINGERPRINT, `one sum for the operator's fingerprint, not ${before - start}`);
    }
    print(h.entries);
    for x in mu { print(x); }
    for x in (h * v.column(1)).to_series() { print(abs(x)); }
    for x in (h.velocity(0) * v.column(0) + h.dagger() * v.column(2)).to_series() { print(abs(x)); }
    let w = spectral_window(h, #{ method: \"gershgorin\" });
    print(w.lower); print(w.upper);
    for x in (h + 0.5 * h * h).to_matrix().diagonal() { print(abs(x)); }
    print(\"end\");
}
";

/// The script that tells of all lattices, whose fingerprints take so many sums.
pub(super) fn of_all_lattices(sums: &str) -> String {
    let each: String = LATTICES.iter().map(|(_, h)| format!("tell({h});\n")).collect();
    format!("{}{each}", TOLD.replace("FINGERPRINT", sums))
}

/// Compares what it prints, a lattice at a time.
#[track_caller]
pub(super) fn same_lattices(alone: &str, shared: &str, what: &str) {
    let ends = |text: &str| text.matches("end").count();
    assert_eq!((ends(alone), ends(shared)), (LATTICES.len(), LATTICES.len()));
    for ((name, _), (a, b)) in LATTICES.iter().zip(alone.split("end").zip(shared.split("end"))) {
        if *name == "single" {
            close_within(1e-5, a, b, &format!("{name} on {what}"));
        } else {
            close(a, b, &format!("{name} on {what}"));
        }
    }
}

#[test]
fn moments_are_those_of_one_process() {
    let place = Place(Folder::new("moments").with("a.rhai", &of_all_lattices("== 1")));
    let Some(launcher) = launchers().first() else { return };
    let alone = place.prints(launcher, "1", &[]);
    for (launcher, numbers_of_ranks) in dealt(&["2", "3"]) {
        for ranks in numbers_of_ranks {
            let first = place.prints(launcher, ranks, &[]);
            same_lattices(&alone, &first, &format!("{ranks} ranks"));
            assert_eq!(first, place.prints(launcher, ranks, &[]), "the same bits");
        }
    }
}

#[test]
fn grids_of_ranks_compute_the_same() {
    let place = Place(Folder::new("grids").with(
        "a.rhai",
        "let h = tight_binding(lattice::cubic(6, 5, 7), #{ hopping: -1.0, disorder: 1.0, seed: 2 });
         let v = random_block(h, 2, #{ seed: 1 });
         for x in (h * v).norm() { print(x); }
         for x in kpm::moments(h, #{ moments: 24, vectors: 2, seed: 3, progress: false }).values { print(x); }",
    ));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        for grid in ["1x1x4", "2x2x1", "4x1x1", "1x2x2"] {
            close(&alone, &place.prints(launcher, "4", &["--grid", grid]), grid);
        }
        let said = place.run(launcher, &["run", "a.rhai", "--ranks", "2", "--grid", "3x1"]);
        let told = said.err.matches("a grid of 3x1 for 2 ranks").count();
        assert_eq!((said.code, told), (1, 1), "{said:?}");
    }
}
