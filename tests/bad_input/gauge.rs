//! Gauge fields, Wilson-Dirac operators and sign functions.

use super::{engine, fail, prepare};

#[test]
fn gauge_fields_that_cannot_be() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let lat = lattice::hypercubic(4, 4, 4, 4); let u = gauge::reference_field(lat, 0.3);
        let odd = gauge::reference_field(lattice::hypercubic(4, 3, 4, 4), 0.3);
        let q = wilson::kernel(u, #{ s: 0.4 }); let d = wilson::operator(u, #{ mass: 0.1 });
        let psi = wilson::reference_spinor(lat, 2);",
    );
    fail(
        &mut engine,
        &[
            ("gauge::unit(lattice::cubic(4, 4, 4))", "four directions", "hypercubic"),
            ("gauge::unit(lat.boundary(\"open\"))", "periodic boundaries", "hypercubic"),
            ("gauge::constant_flux(lat, #{ plane10: 1 })", "unknown option `plane10`", "plane01"),
            ("gauge::constant_flux(lat, #{ plane01: 0.5 })", "takes a whole number", "flux quanta"),
            ("gauge::heatbath(odd, #{ beta: 6.0 })", "a checkerboard on a lattice of 3 sites", "even"),
            ("gauge::heatbath(u, #{ sweeps: 1 })", "option `beta` is needed", "coupling 6/g^2"),
            ("gauge::heatbath(u, #{ beta: -1.0 })", "option `beta` is -1", "6/g^2"),
            ("gauge::stout(u, #{ rho: -0.1 })", "a smearing weight of -0.1", "positive"),
            (
                "gauge::stout(u, #{ rho: 0.2, steps: 2 })",
                "2 smearing steps of the weight 0.2, which let the shortest waves grow",
                "up to 0.125",
            ),
            ("gauge::ape(u, #{ alpha: 0.8, steps: 3 })", "3 smearing steps of the weight 0.8", "up to 0.75"),
            ("gauge::stout(u, #{ rho: 1e300 })", "a smearing weight of 1e300", "1e6 at most"),
            ("gauge::wilson_flow(u, #{ step: 1e300, time: 1e300 })", "a flow time of 1e300", "1e6 at most"),
            ("gauge::reference_field(lat, 1e300)", "a width r of 1e300", "1e6 at most"),
            ("gauge::unit(lat.vacancies(0.1, 1))", "this one lacks", "hypercubic"),
            ("u * u.boundary(\"antiperiodic\")", "different boundaries for fermions", "(u * v).boundary"),
            ("gauge::polyakov_loop(u, 4)", "direction 4", "0 to 3"),
            ("u.link(256, 0)", "site 256", "255"),
            ("u.boundary(\"open\")", "periodic or antiperiodic", "periodic"),
            ("u.boundary([\"periodic\", \"periodic\"])", "2 boundaries", "four"),
            ("u * odd", "lattices of", "4"),
            ("wilson::operator(u, #{ storage: \"half\" })", "no storage `half`", "reconstruct-12"),
            ("wilson::operator(u, #{ mass: 1.0 / 0.0 })", "option `mass` is inf", "finite"),
            ("wilson::kernel(u, #{ s: 1.5 })", "option `s` is 1.5", "below 1"),
            ("wilson::kernel(u, #{ mas: 1.5 })", "unknown option `mas`", "`s`"),
            ("wilson::gamma5(lattice::chain(4))", "four directions", "hypercubic"),
            ("wilson::reference_spinor(lat, -1)", "stream -1", "psi"),
            ("d * wilson::reference_spinor(odd, 2)", "vector of 2304 rows", "random_block"),
            (
                "solve::bicgstab(wilson::operator(odd), wilson::reference_spinor(odd, 2), #{ even_odd: true })",
                "3 sites in direction 1",
                "even_odd: false",
            ),
            (
                "solve::bicgstab(q, psi, #{ even_odd: true })",
                "even-odd preconditioning of",
                "wilson::operator",
            ),
            (
                "solve::conjugate_gradient(d, psi)",
                "conjugate gradients need a Hermitian operator",
                "even_odd",
            ),
            (
                "solve::multishift_cg(d, [0.1], psi)",
                "conjugate gradients need a Hermitian operator",
                "d.dagger() * b",
            ),
            ("solve::multishift_cg(q * q, [0.1], psi, #{ start: psi })", "unknown option `start`", "tol"),
            (
                "solve::bicgstab(d, wilson::reference_spinor(odd, 2))",
                "right-hand side of 2304 rows",
                "own size",
            ),
            (
                "solve::bicgstab(d, wilson::reference_spinor(odd, 2), #{ even_odd: true })",
                "right-hand side of 2304 rows",
                "own size",
            ),
            (
                "solve::bicgstab(d, psi, #{ start: wilson::reference_spinor(odd, 2) })",
                "a start of 2304 rows and 1 columns",
                "shape of the right-hand side",
            ),
            (
                "solve::conjugate_gradient(d, psi, #{ even_odd: true, start: wilson::point_source(u, 0) })",
                "a start of 3072 rows and 12 columns",
                "shape of the right-hand side",
            ),
            (
                "solve::bicgstab(d, psi, #{ start: 0 })",
                "takes a BlockVector, not a value of type int",
                "start",
            ),
            ("solve::bicgstab(d, psi, #{ tol: 2.0 })", "option `tol` is 2", "above 0 and below 1"),
            (
                "solve::conjugate_gradient(d, psi, #{ even_odd: true, tol: 1.0 })",
                "option `tol` is 1",
                "above 0 and below 1",
            ),
            ("wilson::reference_spinor(1.0, 2)", "not on a number", "hypercubic"),
            (
                "wilson::point_source(u, [0, 0, 0, 9])",
                "no site of a lattice of 4 x 4 x 4 x 4",
                "each begins at 0",
            ),
            ("wilson::time_slices(psi, 256)", "site 256", "255"),
            ("solve::conjugate_gradient(q, psi)", "not positive", "bicgstab"),
            ("solve::multishift_cg(q * q, [-1.0], psi)", "shifts of 0 or more", "array"),
        ],
    );
}

/// Links, transformations and loops that a script gives or asks for.
#[test]
fn gauge_fields_by_hand_that_cannot_be() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let lat = lattice::hypercubic(4, 4, 4, 4); let u = gauge::reference_field(lat, 0.3);
        let odd = gauge::reference_field(lattice::hypercubic(4, 3, 4, 4), 0.3);",
    );
    fail(
        &mut engine,
        &[
            (
                "gauge::from(lat, |x, mu| 1.0)",
                "site [0, 0, 0, 0] in direction 0: a matrix in SU(3)",
                "identity(3)",
            ),
            ("gauge::from(lat, |x, mu| pauli().x)", "not one of 2 x 2", "identity(3)"),
            (
                "gauge::from(lat, |x, mu| (1.0 + 1e-9 * x[2] * mu) * identity(3))",
                "the link of site [0, 0, 1, 0] in direction 1: the matrix is not in SU(3): it is off by 3.0e-9",
                "m.reunitarised()",
            ),
            ("gauge::from(lat, |x, mu| -1.0 * identity(3))", "off by 2.0e0", "m.reunitarised()"),
            ("gauge::from(lat, |x, mu| (0.0 / 0.0) * identity(3))", "an element is not finite", "NaN"),
            ("gauge::from(lat, |x, mu| 1e200 * identity(3))", "off by inf", "m.reunitarised()"),
            (
                "gauge::from(lat, |x, mu| throw #{ message: \"no link\", hint: \"elsewhere\" })",
                "no link",
                "elsewhere",
            ),
            ("gauge::from(lat, |x, mu| identty(3))", "identty", "identity"),
            ("gauge::from(lat, |x, mu| identity(3), #{ reunitarise: true })", "unknown option", "`progress`"),
            ("gauge::from(lattice::chain(4), |x, mu| identity(3))", "four directions", "hypercubic"),
            ("gauge::from(lat, identity(3))", "gauge::from", "gauge::from"),
            ("u.with_link(0, 0, 2.0 * identity(3))", "not in SU(3)", "m.reunitarised()"),
            ("u.with_link(0, 0, 2.0)", "not a number", "identity(3)"),
            ("u.with_link(0, 4, identity(3))", "direction 4", "0 to 3"),
            (
                "u.with_link([4, 0, 0, 0], 0, identity(3))",
                "no site of a lattice of 4 x 4 x 4 x 4",
                "each begins at 0",
            ),
            ("u.with_link([-1, 0, 0, 0], 0, identity(3))", "no site of a lattice", "each begins at 0"),
            ("u.link([0, 0, 0], 0)", "no site of a lattice", "four whole numbers"),
            ("u.link([0, 0, 0, 0, 0], 0)", "no site of a lattice", "four whole numbers"),
            ("u.link(-1, 0)", "site -1", "255"),
            ("u.link(0.5, 0)", "not by 0.5", "whole numbers"),
            (
                "u.transformed(|x| 2.0 * identity(3))",
                "the gauge transformation at site [0, 0, 0, 0]",
                "reunitarised",
            ),
            ("u.transformed(|x| x)", "not an array", "identity(3)"),
            ("u.transformed(|x, mu| identity(3))", "another number of arguments than 1", "|a|"),
            ("gauge::from(lat, |x| identity(3))", "another number of arguments than 2", "|a, b|"),
            ("zeros(3, 3).reunitarised()", "cannot be projected", "neither zero nor parallel"),
            ("matrix([[1, 0, 0], [2, 0, 0], [0, 0, 1]]).reunitarised()", "cannot be projected", "parallel"),
            ("identity(2).reunitarised()", "not one of 2 x 2", "identity(3)"),
            ("gauge::wilson_loop(u, 5, 1)", "loops of 5 links in direction 0", "1 to 4"),
            ("gauge::wilson_loop(odd, 4, 1)", "direction 1, in which the lattice has 3 sites", "1 to 3"),
            ("gauge::wilson_loop(u, 0, 1)", "loops of 0 links", "1 to 4"),
            ("gauge::wilson_loops(u, 2, -1)", "loops of -1 links", "one link"),
            ("gauge::wilson_loops(u, 2, 2, #{ plane: [1, 1] })", "two different directions", "[0, 3]"),
            ("gauge::wilson_loop(u, 2, 2, #{ plane: 3 })", "two different directions", "[0, 3]"),
            ("gauge::wilson_loop(u, 2, 2, #{ plane: [0, 4] })", "direction 4", "0 to 3"),
            ("gauge::wilson_loop(u, 2, 2, #{ plan: [0, 1] })", "unknown option `plan`", "`plane`"),
            ("gauge::polyakov_loops(u, 4)", "direction 4", "0 to 3"),
            ("gauge::overrelax(odd)", "a checkerboard on a lattice of 3 sites", "even"),
            ("gauge::overrelax(u, #{ sweeps: -1 })", "`sweeps` is -1", "at least 0"),
            ("gauge::overrelax(u, #{ beta: 6.0 })", "unknown option `beta`", "sweeps"),
        ],
    );
}

/// As many sites in another shape are another lattice.
#[test]
fn spinors_of_another_lattice() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let u = gauge::reference_field(lattice::hypercubic(4, 4, 2, 4), 0.3); let d = wilson::operator(u);
        let other = lattice::hypercubic(4, 2, 4, 4); let own = wilson::reference_spinor(u, 2);
        let psi = wilson::reference_spinor(other, 2); let b = wilson::gamma5(other);",
    );
    let cases = [
        "d * psi",
        "d.dagger() * (d * psi)",
        "(1.0 + 2.0 * d) * psi",
        "solve::bicgstab(d, psi)",
        "solve::bicgstab(d, psi, #{ even_odd: true })",
        "solve::bicgstab(d, own, #{ start: psi })",
        "solve::multishift_cg(d.dagger() * d, [0.1], psi)",
        "overlap::operator(u, #{ delta: 1e-4, progress: false }) * psi",
        "dot(own, psi)",
        "own - psi",
        "d * b",
        "d + b",
    ];
    for script in cases {
        fail(&mut engine, &[(script, "does not go with one of", "same lattice")]);
    }
}

#[test]
fn sign_functions_that_cannot_be() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let lat = lattice::hypercubic(2, 2, 2, 4); let u = gauge::reference_field(lat, 0.5);
        let q = wilson::kernel(u, #{ s: 0.4 }); let quiet = #{ delta: 1e-6, seed: 1, progress: false };
        let low = ritz(q * q, #{ count: 4, tol: 1e-8, seed: 1 });
        let sign = overlap::sign(q, quiet); let d = overlap::operator(sign, #{ s: 0.4 });",
    );
    fail(
        &mut engine,
        &[
            ("minmax_inverse_sqrt(0.0, #{})", "an interval from 0 to 1", "lowest eigenvalue"),
            ("minmax_inverse_sqrt(0.1, #{ error: 1e-20 })", "a deviation of 1e-20", "double precision"),
            ("minmax_inverse_sqrt(1e-12, #{ error: 1e-8 })", "a polynomial of degree", "low modes"),
            ("minmax_inverse_sqrt(0.1, #{ error: 1e-3, degree: 4 })", "exclude each other", "leave one"),
            ("minmax_inverse_sqrt(1e-4, #{ error: 3e-14 })", "rounding leaves a deviation", "larger"),
            ("overlap::zolotarev_inverse_sqrt(1e-7, #{ error: 3e-14 })", "rounding leaves a deviation", "larger"),
            ("overlap::sign(q, #{ polynomial: overlap::zolotarev_inverse_sqrt(0.01) })", "not a value of type \
            Zolotarev", "minmax"),
            (
                "overlap::sign(q, #{ polynomial: minmax_inverse_sqrt(0.01), rational: \
                 overlap::zolotarev_inverse_sqrt(0.01) })",
                "the options `rational` and `polynomial` exclude each other",
                "leave one of them out",
            ),
            ("overlap::sign(q, #{ upper: 1.0 / 0.0 })", "option `upper` is inf", "finite"),
            ("overlap::sign(u)", "a sign function of a value of type Links", "wilson::kernel"),
            ("overlap::sign(q, #{ low_modes: 100000 })", "100000 low modes", "like 8"),
            ("overlap::operator(lat)", "the argument `on` takes Links or an Operator", "gauge::"),
            ("overlap::propagator(d, 1.0)", "the argument `site` takes a whole number or an array, not `1.0`", "site: \
            int or array"),
            ("overlap::propagator(d, \"origin\")", "a whole number or an array, not `origin`", "site: int or array"),
            ("overlap::pion_correlator(d, #{ site: [0, 0, 0, 4] })", "no site of a lattice of 2 x 2 x 2 x 4", "each \
            begins at 0"),
            ("overlap::pion_correlator(d, #{ sit: 3 })", "unknown option `sit`", "`site`"),
            ("overlap::index(d, #{ threshold: 0.5 })", "a threshold of 0.5", "below 0.1"),
            ("let top = lanczos(q * q, #{ which: \"highest\", seed: 1 }).values[0]; overlap::sign(q, #{ upper: 0.995 * \
            top })",
                "an upper limit of", "spectral_window"),
            ("let top = lanczos(q * q, #{ which: \"highest\", seed: 1 }).values[0]; let eps = 1.015 * low.values[3] / \
            top;
              overlap::sign(q, #{ low_modes: low, polynomial: minmax_inverse_sqrt(eps, #{ error: 1e-6 }) })",
                "begins above the spectrum", "eps is at most"),
            (
                "overlap::sign(q, #{ low_modes: low, polynomial: minmax_inverse_sqrt(0.2, #{ error: 1e-6 }) })",
                "begins above the spectrum",
                "eps is at most",
            ),
            (
                "overlap::sign(q, #{ low_modes: 0, polynomial: minmax_inverse_sqrt(0.2, #{ error: 1e-6 }) })",
                "begins above the spectrum",
                "eps is at most",
            ),
            ("overlap::sign(q, #{ upper: 3.0 })", "an upper limit of 3", "spectral_window"),
            ("overlap::sign(wilson::operator(u), #{})", "Hermitian operator", "wilson::kernel"),
            ("overlap::sign(q, #{ low_modes: \"many\" })", "takes an Eigen", "low_modes"),
            (
                "overlap::sign(q, #{ low_modes: ritz(q, #{ seed: 1 }) })",
                "those of Q^2 have none below 0",
                "q * q",
            ),
            (
                "overlap::sign(q, #{ low_modes: lanczos(q * q, #{ which: \"highest\", seed: 1 }), delta: 1e-6 })",
                "this is no sign function",
                "none left out",
            ),
            (
                "overlap::sign(q, #{ low_modes: ritz(q * q, #{ count: 4, tol: 1.0, seed: 1 }), delta: 1e-6 })",
                "the lower end of the rest of the spectrum of |Q|",
                "smaller `tol`",
            ),
            ("overlap::operator(q, #{ s: 0.4 })", "is no sign function", "overlap::sign"),
            ("overlap::operator(sign, #{ s: 1.0 })", "option `s` is 1", "below 1"),
            (
                "overlap::operator(sign, #{ s: 0.3 })",
                "s is 0.3, and the sign function is of a kernel with s = 0.4",
                "leave",
            ),
            // A shifted kernel is none of the Wilson operator's; a multiple still is.
            ("overlap::operator(overlap::sign(q + 0.01, quiet))", "does not tell its s", "s: 0.4"),
            ("overlap::operator(sign, #{ s: 0.4, mass: -1.0 })", "a quark mass of -1", "2.8"),
            ("overlap::operator(u, #{ mas: 1.0 })", "unknown option `mas`", "mass"),
            ("overlap::index(q)", "is no overlap operator", "overlap::operator"),
            ("overlap::index(d, #{ count: 0 })", "option `count` is 0", "at least 1"),
            ("overlap::normal(q, 1)", "is no overlap operator", "overlap::operator"),
            ("overlap::normal(d, 2)", "chirality 2", "1 or -1"),
            ("overlap::operator(d, #{ s: 0.3 })", "a kernel with s = 0.4", "leave"),
            ("q.bound", "neither a sign function", "overlap::sign"),
            ("overlap::solve(d, wilson::reference_spinor(u, 2), #{ tol: 0.0 })", "a tolerance of 0", "1e-8"),
            (
                "overlap::solve(d, wilson::reference_spinor(u, 2), #{ tol: 2.0 })",
                "a tolerance of 2",
                "between 0 and 1",
            ),
            (
                "q * wilson::reference_spinor(lattice::hypercubic(2, 2, 4, 2), 2)",
                "does not go with one of 2 x 2 x 2 x 4",
                "same lattice",
            ),
            (
                "dot(wilson::reference_spinor(u, 2), wilson::reference_spinor(lattice::hypercubic(2, 4, 2, 2), 2))",
                "does not go with one of",
                "same lattice",
            ),
            ("ritz(q * q, #{ count: 0 })", "option `count` is 0", "at least 1"),
            ("ritz(wilson::operator(u), #{})", "Hermitian", "dagger"),
            ("q + wilson::gamma5(lattice::hypercubic(4, 2, 2, 2))", "does not go with one of", "same lattice"),
            ("q * wilson::gamma5(lattice::hypercubic(4, 2, 2, 2))", "does not go with one of", "same lattice"),
        ],
    );
}

#[test]
fn modes_of_another_gauge_field() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let lat = lattice::hypercubic(4, 4, 4, 4); let quiet = #{ delta: 1e-6, seed: 1, progress: false };
        let flux = |b| gauge::constant_flux(lat, #{ plane01: 1, plane23: b }).boundary(\"antiperiodic\");
        let q = wilson::kernel(flux.call(1), #{}); let sign = overlap::sign(q, quiet);
        let zero = overlap::index(overlap::operator(sign), #{ count: 3, seed: 1, progress: false });
        let massive = |q| overlap::operator(overlap::sign(q, quiet), #{ mass: 0.1 });
        let other = wilson::kernel(flux.call(-1), #{}); let d = massive.call(other);
        let smaller = gauge::reference_field(lattice::hypercubic(2, 2, 2, 4), 0.5);
        let little = massive.call(wilson::kernel(smaller, #{}));
        let same = overlap::operator(sign, #{ mass: 0.1 }); let psi = wilson::reference_spinor(lat, 2);
        assert(overlap::solve(same, psi, #{ zero_modes: zero, tol: 1e-4, progress: false }).converged, \"its own \
        modes\");",
    );
    fail(
        &mut engine,
        &[
            (
                "overlap::solve(d, psi, #{ zero_modes: zero })",
                "the zero modes given are none of this operator",
                "index",
            ),
            (
                "overlap::solve(little, wilson::reference_spinor(smaller, 2), #{ zero_modes: zero })",
                "the zero modes given live on another lattice",
                "same gauge field",
            ),
            (
                "overlap::sign(other, #{ low_modes: ritz(q * q, #{ count: 2, seed: 1 }), delta: 1e-6 })",
                "the given low modes are not eigenvectors of this operator",
                "of the same `q`",
            ),
            (
                "overlap::sign(wilson::kernel(smaller, #{}), #{ low_modes: ritz(q * q, #{ count: 2, seed: 1 }) })",
                "low modes",
                "of the same `q`",
            ),
        ],
    );
}
