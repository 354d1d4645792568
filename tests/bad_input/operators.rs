//! Options, numbers and sizes that do not fit, of operators, vectors and kernel polynomials.

use super::{engine, fail, is_for_people, prepare, with_chain};

#[test]
fn options_that_do_not_exist_or_are_of_another_kind() {
    fail(
        &mut with_chain(),
        &[
            ("kpm::dos(h, #{ momens: 4 })", "unknown option `momens`", "`moments`"),
            ("davidson(h, #{ cuont: 4 })", "unknown option `cuont`", "`count`"),
            (
                "kpm::dos(h, #{ moments: \"many\" })",
                "option `moments` takes a whole number, not a value of type string",
                "many",
            ),
            ("kpm::dos(h, #{ moments: 2.5 })", "option `moments` takes a whole number", "2.5"),
            (
                "kpm::dos(h, #{ vectors: [] })",
                "option `vectors` takes a whole number, not a value of type array",
                "given an array",
            ),
            ("kpm::conductivity(h, #{ energies: [] })", "option `energies` is empty", "one number"),
            ("kpm::green(h, 0, 0, #{ energies: series([]) })", "option `energies` is empty", "one number"),
            ("kpm::green(h, #{ energies: 2..2 })", "option `energies` is empty", "one number"),
            ("kpm::typical_dos(h, [])", "the argument `energies` is empty", "one number"),
            ("kpm::dos(h, #{ window: 3 })", "option `window` takes a Window, not a value of type int", "3"),
            ("kpm::dos(h, #{ kernel: 3 })", "option `kernel` takes a text", "3"),
            ("kpm::dos(h, #{ progress: 1 })", "option `progress` takes true or false", "1"),
            ("kpm::dos(h, #{ range: 7 })", "option `range` takes an array", "7"),
            ("kpm::ldos(h, 1, #{ orbital: 0.5 })", "option `orbital` takes a whole number", "0.5"),
            ("kpm::moments(h, #{ checkpoint: \"no/such/mu.npz\" })", "cannot be written", "folder"),
            (
                "kpm::dos(h, #{ parameter: 3.0, broadening: 0.1 })",
                "the option `parameter` has no effect without `kernel: \"lorentz\"` or `kernel: \"lanczos\"`",
                "leave it out",
            ),
            ("kpm::dos(h, #{ kernel: \"jakson\" })", "no kernel `jakson`", "jackson"),
            ("kpm::dos(h, #{ kernel: \"lanczos\", parameter: -3.0 })", "option `parameter` is -3", "above 0"),
            (
                "kpm::dos(h, #{ accumulate: \"magic\" })",
                "no accumulate `magic`",
                "there are \"fused\", \"full-map\", \"sliding-window\", \"divided\"",
            ),
            (
                "kpm::green(h, 0, 0, #{ eta: 0.1, kernel: \"lorentz\" })",
                "the options `kernel` and `eta` exclude each other",
                "leave one",
            ),
            ("tight_binding(lattice::chain(8), #{ format: \"cesr\" })", "no format `cesr`", "csr"),
            (
                "tight_binding(lattice::chain(8), #{ format: \"csr\", C: 8 })",
                "the option `C` has no effect without `format:",
                "leave",
            ),
            (
                "tight_binding(lattice::chain(8), #{ format: \"sell\", C: 0 })",
                "option `C` is 0",
                "at least 1",
            ),
            (
                "tight_binding(lattice::chain(8), #{ format: \"sell\", sigma: 0 })",
                "option `sigma` is 0",
                "at least 1",
            ),
            ("tight_binding(lattice::chain(8), #{ precision: \"half\" })", "no precision `half`", "single"),
            (
                "tight_binding(lattice::chain(8), #{ hopping: 1e-24, precision: \"single\" })",
                "in single precision",
                "double precision",
            ),
            (
                "sparse([0, 1], [1, 0], [1e20, 1e20], #{ precision: \"single\" })",
                "in single precision",
                "units",
            ),
            ("lattice::square(4, 4).boundary(\"periodik\", \"open\")", "no boundary `periodik`", "periodic"),
            ("davidson(h, #{ count: 0 })", "option `count` is 0", "at least 1"),
            ("sqrt(\"a\")", "no function `sqrt(string)`", "`parse_float(text)`"),
            ("kpm::dos(h, 7)", "options are given as a map, not as 7", "#{ key"),
            (
                "kpm::dos(7)",
                "the argument `x` takes an Operator or a Model or Moments, not `7`",
                "tight_binding",
            ),
            (
                "kpm::dos(h, #{ range: [1.0] })",
                "option `range` takes an array of two numbers, not of 1",
                "lowest",
            ),
            (
                "kpm::dos(h, #{ range: [0.0 / 0.0, 3.0] })",
                "option `range` takes an array of two numbers, not one with `NaN`",
                "lowest",
            ),
            (
                "kpm::green(h, 0, 0, #{ range: [0, 1.0 / 0.0] })",
                "option `range` takes an array of two numbers, not one with `inf`",
                "their range",
            ),
            (
                "kpm::dos(h, #{ range: [\"low\", 3.0] })",
                "option `range` takes an array of two numbers, not one with `low`",
                "lowest",
            ),
            ("kpm::dos(h, #{ moments: 7 })", "option `moments` is 7", "even"),
            ("kpm::conductivity(h, #{ moments: 9 })", "option `moments` is 9", "even"),
            (
                "kpm::conductivity(h, #{ moments: 8, energies: [0.0 / 0.0] })",
                "option `energies` holds NaN",
                "finite",
            ),
            (
                "kpm::conductivity(h, #{ moments: 8, temperature: -1.0 })",
                "option `temperature` is -1",
                "it must be at least 0",
            ),
            ("kpm::green_moments(w, series([0.0]), #{ eta: -1.0 })", "an imaginary part of -1", "positive"),
        ],
    );
}

#[test]
fn numbers_that_mean_nothing() {
    fail(
        &mut with_chain(),
        &[
            ("kpm::dos(h, #{ moments: 0 })", "option `moments` is 0", "at least 2"),
            ("kpm::dos(h, #{ moments: -4 })", "option `moments` is -4", "at least 2"),
            ("kpm::dos(h, #{ moments: 1000000000000 })", "option `moments` is 1000000000000", "at most"),
            ("kpm::dos(h, #{ vectors: 0 })", "option `vectors` is 0", "it must be at least 1"),
            ("kpm::dos(h, #{ points: 0 })", "option `points` is 0", "it must be at least 1"),
            ("kpm::dos(h, #{ broadening: 0.0 })", "option `broadening` is 0", "it must be above 0"),
            ("kpm::dos(h, #{ broadening: 1e-300 })", "a broadening of 1e-300", "larger fraction"),
            ("kpm::dos(h, #{ moments: 64, window: window(-0.5, 0.5) })", "leaves the window", "wider window"),
            (
                "chebyshev(h, window(-1.0, 1.0), unit_block(h, [0])).run(99)",
                "leaves the window",
                "wider window",
            ),
            ("window(1.0, -1.0)", "a spectral window from 1 to -1", "lower limit"),
            ("window(0.0 / 0.0, 1.0)", "a spectral window from NaN", "lower limit"),
            ("spectral_window(h, #{ margin: -1.0 })", "option `margin` is -1", "fraction"),
            ("kpm::ldos(h, 8)", "site 8 outside a lattice of 8 sites", "0 to 7"),
            ("kpm::ldos(h, -1)", "site -1 is negative", "from 0"),
            ("kpm::ldos(h, [])", "a block of no rows", "one row"),
            ("h.stored(#{ order: [0, 1] })", "an order of 2 rows for an operator of 8", "every row once"),
            ("h.stored(#{ order: [0, 1, 2, 3, 4, 5, 6, 6] })", "names row 6, twice", "every row once"),
            (
                "h.stored(#{ order: [0, 1, 2, 3, 4, 5, 6, 8] })",
                "names row 8, which there is not",
                "every row once",
            ),
            ("h.stored(#{ order: [0, 1, 2, 3, 4, 5, 6, -7] })", "row -7 is negative", ""),
            (
                "sparse([0], [1], [1.0], #{ shape: [2, 3] }).stored(#{ order: [0, 1] })",
                "2 rows and 3 columns",
                "square",
            ),
            (
                "wilson::kernel(gauge::unit(lattice::hypercubic(2, 2, 2, 2))).stored()",
                "are not known",
                "stored matrices",
            ),
            ("sparse([0, 1], [1, 0], [1.0, 2.0]).cuthill_mckee()", "is not", "dagger"),
            ("unit_block(h, [8])", "row 8 of an operator with 8 rows", "0 to 7"),
            ("unit_block(h, [])", "a block of no rows", "one row"),
            ("unit_block(h, [0, 1]).to_series()", "a block of 2 columns is no series", "to_matrix()"),
            ("block(h, [1.0, 2.0])", "a vector of 2 rows for an operator with 8", "8 numbers"),
            ("block(h, identity(3))", "a block of 3 rows for an operator with 8", "so many rows"),
            ("block(h, \"up\")", "not as a text", ""),
            ("block(h, [1.0, \"up\"])", "element 1 is not a number", ""),
            ("random_numbers(-1)", "-1 random numbers", ""),
            ("random_numbers(3, #{ distribution: \"cauchy\" })", "no distribution `cauchy`", "gaussian"),
            ("format(1.0, 0)", "a number with 0 digits", "1 to 17"),
            ("format(\"x\", 3)", "not a text", ""),
            ("append_text(\"no/such/folder.txt\", \"x\")", "cannot write", "does not exist"),
            ("h.lattice_of_it", "has no property `lattice_of_it`", ""),
            ("lattice::chain(4).neighbors", "Lattice has no property `neighbors`", "it is a method"),
            ("random_block(h, 0)", "a block of 0 columns", "one column"),
            ("zeros(h, -1)", "a block of -1 columns", "one column"),
            ("davidson(h, #{ count: 9 })", "9 eigenpairs of an operator with 8 rows", "`count`"),
            (
                "davidson(h, #{ orthogonal_to: lattice::plane_waves(h, [[0.0]]) })",
                "the option `orthogonal_to` is complex, and the operator is real",
                "cos(k r)",
            ),
            ("lattice::chain(-3)", "-3 cells in a direction", "one cell"),
            ("lattice::hypercubic([2, -2])", "-2 cells in a direction", "one cell"),
            ("tight_binding(lattice::cubic(10000, 10000, 10000))", "1000000000000 rows takes", "fewer sites"),
            ("random_block(h, 100000000000000)", "needs", "fewer vectors"),
            (
                "random_block(h, 2, #{ first: 4294967295 })",
                "2 random columns from number 4294967295",
                "`seed`",
            ),
            (
                "dmrg::uniform_random(sites(\"S=1/2\", 4097), [\"Up\", \"Dn\"], #{ Sz: 0.5 })",
                "a cell of 4097 sites",
                "4096",
            ),
            ("tight_binding(lattice::chain(8), #{ hopping: 0.0 / 0.0 })", "is not a number", "zero"),
            ("let m = model(lattice::chain(8), 1); m.onsite(|r| 0.0 / 0.0); m.build()", "site 0", "zero"),
            ("kpm::evolve(h, unit_block(h, [0]), 0.0 / 0.0)", "over the time NaN", "finite"),
            ("kpm::evolve(1e9 + h, unit_block(h, [0]), 1e6)", "rounding of energies", "shorter times"),
            (
                "kpm::evolve(3.0 + 0.0 * h, unit_block(tight_binding(lattice::chain(3)), [0]), 1.0)",
                "an operator of",
                "take the size",
            ),
            (
                "kpm::conductivity(h, #{ energies: [0.0], moments: 8, current: I * h.velocity(0) })",
                "a current that is not Hermitian",
                "half sum",
            ),
            (
                "kpm::conductivity(h, #{ energies: [0.0], moments: 8, current: |h| 3 })",
                "a function for `current` gave a value of type int",
                "h.velocity",
            ),
            (
                "kpm::conductivity(1e-200 * h, #{ energies: [0.0] })",
                "squares of its velocities",
                "divide the operator",
            ),
            ("kpm::eigenvalue_count(h, 1.0, -1.0)", "an interval from 1 to -1", "the lower end"),
            (
                "kpm::polarizability(h, [0.0], #{ frequencies: [0.0] })",
                "a frequency of 0",
                "bloch::polarizability",
            ),
            ("chebyshev_expand(|x| 1.0 / 0.0, w, #{})", "the function is inf", "finite"),
            ("kpm::dos(h * (0.0 / 0.0))", "not finite", "NaN"),
            ("series([1, 2])[7]", "index 7 is outside a series of 2", "0 to 1"),
        ],
    );
}

#[test]
fn what_does_not_fit_together() {
    let mut engine = with_chain();
    prepare(&mut engine, "let other = unit_block(tight_binding(lattice::chain(9)), [0]);");
    fail(
        &mut engine,
        &[
            ("h * other", "a 8 x 8 operator and a vector of 9 rows", "unit_block"),
            ("chebyshev(h, w, other)", "vectors of 9 rows for an operator of 8", "unit_block"),
            ("series([1.0, I]).max()", "this one is complex", ".re"),
            ("kpm::moments(h, #{ moments: 8 }).density(series([0.0, I]), #{})", "this one is complex", ".re"),
            (
                "let m = model(lattice::chain(8), 1); m.onsite(0.5, #{ at_once: true });",
                "the option `at_once` is for a function",
                "leave it out",
            ),
            (
                "let m = model(lattice::chain(8), 1); m.onsite(|r| [r[0]], #{ at_once: true });",
                "a term is a number or a Matrix, not",
                "Series",
            ),
            (
                "let m = model(lattice::chain(8), 1); m.onsite(|r| series([1.0]), #{ at_once: true });",
                "1 on-site energies for 8 sites",
                "one for each site",
            ),
            ("let m = model(lattice::chain(8), 1); m.onsite(I);", "not Hermitian", "real"),
            (
                "let m = model(lattice::chain(8), 2); m.onsite(matrix([[0, 1], [2, 0]]));",
                "not Hermitian",
                "dagger",
            ),
            ("davidson(sparse([0, 1], [1, 0], [1.0, 2.0]))", "this one is not", "dagger"),
            ("davidson(I * h)", "this one is not", "dagger"),
        ],
    );
}

#[test]
fn moments_of_operators_that_are_not_hermitian_are_refused() {
    // Its eigenvalues are real and inside the window, so that nothing would grow.
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let a = sparse([0, 1], [1, 0], [1.0, 2.0]); let w = window(-3.0, 3.0); let v = unit_block(a, [0]);",
    );
    for script in [
        "spectral_window(a)",
        "spectral_window(a, #{ method: \"lanczos\" })",
        "kpm::dos(a)",
        "kpm::dos(a, #{ window: w })",
        "kpm::dos(a, #{ window: w, accumulate: \"divided\" })",
        "chebyshev(a, w, v)",
        "kpm::ldos(a * a.dagger() + a, 0)",
    ] {
        let report = engine.eval(script).unwrap_err();
        is_for_people(script, &report);
        let expected = ["Hermitian", "knows no lattice"];
        assert!(expected.iter().any(|words| report.message.contains(words)), "{}", report.render(false));
    }
    // Without false alarms: rounding, lazy sums and complex entries.
    prepare(
        &mut engine,
        "
        let b = sparse([0, 1], [1, 0], [0.1 * 3.0, 0.3]);
        spectral_window(b);
        let c = sparse([0, 1], [1, 0], [I, -I]);
        chebyshev(2.0 * c + b, w, unit_block(c, [0])).run(4);
        chebyshev(a + a.dagger(), window(-4.0, 4.0), v).run(4);
    ",
    );
}
