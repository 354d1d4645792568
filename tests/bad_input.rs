//! Bad input of every kind: one sentence at the place in the script, a hint, no panic and no number.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use umklapp::Engine;
use umklapp::error::Kind;
use umklapp::script::Settings;
use umklapp::script::diagnostics::Report;
use umklapp::task::{Interrupt, Progress};

/// A folder that goes away with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("umklapp-bad-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) {
        std::fs::write(self.0.join(name), content).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn engine(out: Option<PathBuf>) -> Engine {
    Engine::with(Settings { out, quiet: true, ..Settings::default() }, Interrupt::default()).unwrap()
}

/// What every error must be: a sentence of one line, and the user's line marked.
fn is_for_people(script: &str, report: &Report) {
    let lines = script.lines().count();
    let text = report.render(false);
    assert_ne!(report.kind, Kind::Internal, "`{script}`:\n{text}");
    assert!(!report.message.contains('\n') && report.message.len() < 160, "`{script}`:\n{text}");
    assert!(!report.message.contains("alloc::") && !report.message.contains("core::"), "`{script}`:\n{text}");
    let line = report.position.unwrap_or_else(|| panic!("no position for `{script}`:\n{text}")).0;
    assert!((1..=lines).contains(&line), "`{script}`:\n{text}");
}

/// Every script fails; its message and its hint contain the words given.
fn fail(engine: &mut Engine, cases: &[(&str, &str, &str)]) {
    for (script, message, hint) in cases {
        let report = match engine.eval(script) {
            Ok(value) => panic!("`{script}` gave {}", engine.show(&value)),
            Err(report) => report,
        };
        is_for_people(script, &report);
        let text = report.render(false);
        assert!(report.message.contains(message), "`{message}` is not in the message of `{script}`:\n{text}");
        let found = report.hint.unwrap_or_else(|| panic!("`{script}` has no hint:\n{text}"));
        assert!(found.contains(hint), "`{hint}` is not in the hint of `{script}`:\n{text}");
    }
}

/// Runs what the cases to come need.
fn prepare(engine: &mut Engine, script: &str) {
    if let Err(report) = engine.eval(script) {
        panic!("{}", report.render(false));
    }
}

/// A chain of eight sites for the cases to come.
fn with_chain() -> Engine {
    let mut engine = engine(None);
    let setup = "let h = tight_binding(lattice::chain(8)); let w = window(-2.1, 2.1);";
    prepare(&mut engine, setup);
    engine
}

#[test]
fn crystals_and_orbitals() {
    let folder = Folder::new("orbitals");
    folder.file("cut.npz", b"PK\x03\x04 nothing");
    folder.file("bwfn.data", b"GEOMETRY\n Primitive lattice vectors (au)\n 1.0 0.0 zero\n");
    folder.file("binary.data", &[0, 159, 146, 150]);
    let mut engine = engine(Some(folder.0.clone()));
    let set_up = "let si = crystal::silicon(1); let gas = crystal::electron_gas(2, 1.0); \
                  let waves = orbitals::plane_waves(gas); let spline = waves.splines(#{ grid: 4 }); \
                  let cube = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]];";
    prepare(&mut engine, set_up);
    fail(
        &mut engine,
        &[
            ("crystal::silicon(0)", "[0, 0, 0] primitive cells", "between 1"),
            ("crystal::silicon([2, 2])", "repeated a whole number of times", "[2, 2, 1]"),
            ("crystal::silicon(\"2\")", "not a text", "[2, 2, 1]"),
            ("crystal::silicon(1000000)", "primitive cells", "between 1"),
            ("crystal::semiconductor(\"GaAz\", 1)", "no form factors for `GaAz`", "GaAs"),
            ("crystal::electron_gas(-1, 1.0)", "0 electrons", "positive"),
            ("crystal::electron_gas(2, 0.0)", "r_s = 0", "positive"),
            ("crystal::custom([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [])", "span", "plane"),
            ("crystal::custom(7, [])", "three vectors", "bohr"),
            ("crystal::custom(cube, [#{ charge: 1.0 }])", "has no `species`", "position"),
            ("crystal::custom(cube, [#{ specis: \"X\" }])", "unknown option `specis`", "`species`"),
            ("crystal::custom(cube, [7])", "ion 0 is a number", "species"),
            ("crystal::custom(cube, [], #{ reach: -1.0 })", "`reach` is -1", "wave number"),
            (
                "crystal::custom(cube, [#{ species: \"X\", charge: 1.0, position: [0.0, 0.0, 0.0] }], \
                 #{ form_factor: |s, g| 1.0 / g })",
                "the potential is",
                "finite",
            ),
            ("si.potential([1.0, 2.0])", "three numbers, not 2", "like"),
            ("orbitals::plane_waves(gas, #{ twist: [0.5] })", "three numbers, not 1", "like"),
            ("orbitals::plane_waves(gas, #{ count: 0 })", "`count` is 0", "at least 1"),
            ("orbitals::plane_wave_bands(si, #{ cutoff: 0.0 })", "a cutoff of 0", "hartree"),
            ("orbitals::plane_wave_bands(si, #{ cutoff: 1e4 })", "plane waves below", "smaller"),
            ("orbitals::plane_wave_bands(si, #{ orbitals: 9999 })", "9999 orbitals of", "larger cutoff"),
            ("orbitals::plane_wave_bands(si, #{ cutof: 4.5 })", "unknown option `cutof`", "`cutoff`"),
            ("waves.splines(#{ spacing: 0.0 })", "spacing of 0", "0.35"),
            ("waves.splines(#{ grid: 0 })", "a grid is", "24"),
            ("waves.splines(#{ grid: 4, spacing: 0.3 })", "both `grid` and `spacing`", "enough"),
            ("waves.splines(#{ grid: 4, precision: \"half\" })", "no precision `half`", "single"),
            ("spline.splines()", "no splines of", "orbitals::fit"),
            ("orbitals::fit(gas, 4, |x, y, z| 0.0 / 0.0)", "not all finite", "NaN"),
            (
                "orbitals::fit(gas, 4, |x, y, z| if x > 0.0 { [1.0] } else { [1.0, 2.0] })",
                "at another",
                "everywhere",
            ),
            ("orbitals::fit(gas, 4, |x, y, z| \"one\")", "gives a text", "array"),
            ("orbitals::gaussians([])", "no shells", "at least one"),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], sto: 9, zeta: 1.0 }])",
                "9 Gaussians",
                "2 and 6",
            ),
            ("orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], shell: \"f\" }])", "kind `f`", "\"d\""),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], shell: \"s\", exponents: [-1.0], coefficients: [1.0] }])",
                "exponents [-1.0]",
                "positive",
            ),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], sto: 3, zeta: 1.0 }], #{ combinations: [[1.0, 1.0]] })",
                "for 1 functions",
                "one row for each",
            ),
            ("orbitals::load(\"nothing.npz\")", "no such file", "file"),
            ("orbitals::load(\"nothing.data\")", "no such file", "relative"),
            ("orbitals::load(\"cut.npz\")", "not a whole NPZ archive", "file"),
            ("orbitals::load(\"bwfn.data\")", "line 3 is `1.0 0.0 zero`", "file"),
            ("orbitals::load(\"binary.data\")", "no text", ".npz"),
            ("spline.save(\"orbitals.csv\")", "not saved as", ".npz"),
            ("waves.save(\"orbitals.npz\")", "not saved", "splines"),
            ("spline.energies + orbitals::fit(gas, 4, |x, y, z| 1.0).energies", "not known", "bands"),
            ("spline.values([1.0])", "three numbers, not 1", "like"),
            ("spline.values(identity(2))", "2 x 2 matrix", "row"),
            ("spline.evaluation_time(identity(3), #{ assignment: \"best\" })", "no assignment `best`", ""),
            ("waves.evaluation_time(identity(3))", "no splines", "splines"),
        ],
    );
}

#[test]
fn options_that_do_not_exist_or_are_of_another_kind() {
    fail(
        &mut with_chain(),
        &[
            ("kpm::dos(h, #{ momens: 4 })", "unknown option `momens`", "`moments`"),
            ("davidson(h, #{ cuont: 4 })", "unknown option `cuont`", "`count`"),
            (
                "kpm::dos(h, #{ moments: \"many\" })",
                "option `moments` takes a whole number, not a text",
                "many",
            ),
            ("kpm::dos(h, #{ moments: 2.5 })", "option `moments` takes a whole number", "2.5"),
            ("kpm::dos(h, #{ vectors: [] })", "option `vectors` takes a whole number, not an array", "[]"),
            ("kpm::dos(h, #{ window: 3 })", "option `window` takes Window, not a number", "3"),
            ("kpm::dos(h, #{ kernel: 3 })", "option `kernel` takes a text", "3"),
            ("kpm::dos(h, #{ progress: 1 })", "option `progress` takes true or false", "1"),
            ("kpm::dos(h, #{ range: 7 })", "option `range` takes an array", "7"),
            ("kpm::ldos(h, 1, #{ orbital: 0.5 })", "option `orbital` takes a whole number", "0.5"),
            ("kpm::moments(h, #{ checkpoint: \"no/such/mu.npz\" })", "cannot be written", "folder"),
            ("kpm::dos(h, #{ kernel: \"jakson\" })", "no kernel `jakson`", "jackson"),
            ("kpm::dos(h, #{ kernel: \"lanczos\", parameter: -3.0 })", "parameter -3", "positive"),
            ("kpm::dos(h, #{ accumulate: \"magic\" })", "no accumulation `magic`", "fused"),
            ("tight_binding(lattice::chain(8), #{ format: \"cesr\" })", "no format `cesr`", "csr"),
            ("tight_binding(lattice::chain(8), #{ precision: \"half\" })", "no precision `half`", "single"),
            ("lattice::square(4, 4).boundary(\"periodik\", \"open\")", "no boundary `periodik`", "periodic"),
            ("davidson(h, #{ count: 0 })", "option `count` is 0", "at least 1"),
            ("sqrt(\"a\")", "no function `sqrt(string)`", "can be called as"),
            ("kpm::dos(h, 7)", "options are given as a map, not as 7", "#{ moments"),
            ("kpm::dos(7)", "an Operator, not of 7", "tight_binding"),
            ("kpm::dos(h, #{ range: [1.0] })", "range of 1 numbers", "two"),
            ("kpm::dos(h, #{ range: [0.0 / 0.0, 3.0] })", "range from NaN to 3", "finite"),
            ("kpm::green(h, 0, 0, #{ range: [0, 1.0 / 0.0] })", "range from 0 to inf", "finite"),
            ("kpm::dos(h, #{ range: [\"low\", 3.0] })", "range from low to 3", "finite"),
            ("kpm::dos(h, #{ moments: 7 })", "7 moments, an odd number", "8"),
            ("kpm::conductivity(h, #{ moments: 9 })", "9 moments, an odd number", "10"),
            ("kpm::conductivity(h, #{ moments: 8, energies: [0.0 / 0.0] })", "potential of NaN", "finite"),
            ("kpm::conductivity(h, #{ moments: 8, temperature: -1.0 })", "temperature -1", "zero or more"),
            ("green_moments(w, series([0.0]), #{ eta: -1.0 })", "an imaginary part of -1", "positive"),
        ],
    );
}

#[test]
fn numbers_that_mean_nothing() {
    fail(
        &mut with_chain(),
        &[
            ("kpm::dos(h, #{ moments: 0 })", "0 moments", "two at least"),
            ("kpm::dos(h, #{ moments: -4 })", "-4 moments", "two at least"),
            ("kpm::dos(h, #{ moments: 1000000000000 })", "1000000000000 moments", "at most"),
            ("kpm::dos(h, #{ vectors: 0 })", "0 vectors", "one at least"),
            ("kpm::dos(h, #{ points: 0 })", "0 points", "one at least"),
            ("kpm::dos(h, #{ broadening: 0.0 })", "a broadening of 0", "above zero"),
            ("kpm::dos(h, #{ broadening: 1e-300 })", "a broadening of 1e-300", "larger part"),
            ("kpm::dos(h, #{ moments: 64, window: window(-0.5, 0.5) })", "leaves the window", "wider window"),
            (
                "chebyshev(h, window(-1.0, 1.0), unit_block(h, [0])).run(99)",
                "leaves the window",
                "wider window",
            ),
            ("window(1.0, -1.0)", "a spectral window from 1 to -1", "lower limit"),
            ("window(0.0 / 0.0, 1.0)", "a spectral window from NaN", "lower limit"),
            ("spectral_window(h, #{ margin: -1.0 })", "a margin of -1", "fraction"),
            ("kpm::ldos(h, 8)", "site 8 outside a lattice of 8 sites", "0 to 7"),
            ("kpm::ldos(h, -1)", "site -1 is negative", "from 0"),
            ("kpm::ldos(h, [])", "a block of no rows", "one row"),
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
            ("lattice::chain(-3)", "the size of a lattice is -3", "cells"),
            ("lattice::hypercubic([2, -2])", "the size of a lattice is -2", "cells"),
            ("tight_binding(lattice::cubic(10000, 10000, 10000))", "1000000000000 rows takes", "fewer sites"),
            ("random_block(h, 100000000000000)", "needs", "fewer vectors"),
            ("tight_binding(lattice::chain(8), #{ hopping: 0.0 / 0.0 })", "is not a finite number", "zero"),
            ("let m = model(lattice::chain(8), 1); m.onsite(|r| 0.0 / 0.0); m.build()", "site 0", "zero"),
            ("kpm::evolve(h, unit_block(h, [0]), 0.0 / 0.0)", "the function is NaN", "finite"),
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
            ("gauge::constant_flux(lat, #{ plane01: 0.5 })", "whole number of flux quanta", "plane01"),
            ("gauge::heatbath(odd, #{ beta: 6.0 })", "a checkerboard on a lattice of 3 sites", "even"),
            ("gauge::heatbath(u, #{ sweeps: 1 })", "needs its coupling", "beta"),
            ("gauge::heatbath(u, #{ beta: -1.0 })", "a coupling beta of -1", "6/g^2"),
            ("gauge::stout(u, #{ rho: -0.1 })", "a smearing weight of -0.1", "positive"),
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
            ("wilson::operator(u, #{ mass: 1.0 / 0.0 })", "a mass of inf", "finite"),
            ("wilson::kernel(u, #{ s: 1.5 })", "s is 1.5", "0.4"),
            ("wilson::kernel(u, #{ mas: 1.5 })", "unknown option `mas`", "`s`"),
            ("wilson::gamma5(lattice::chain(4))", "four directions", "hypercubic"),
            ("wilson::reference_spinor(lat, -1)", "stream -1", "psi"),
            ("d * wilson::reference_spinor(odd, 2)", "vector of 2304 rows", "random_block"),
            (
                "bicgstab(wilson::operator(odd), wilson::reference_spinor(odd, 2), #{ even_odd: true })",
                "3 sites in direction 1",
                "even_odd: false",
            ),
            ("bicgstab(q, psi, #{ even_odd: true })", "even-odd preconditioning of", "wilson::operator"),
            ("conjugate_gradient(d, psi)", "conjugate gradients need a Hermitian operator", "even_odd"),
            (
                "multishift_cg(d, [0.1], psi)",
                "conjugate gradients need a Hermitian operator",
                "d.dagger() * b",
            ),
            ("multishift_cg(q * q, [0.1], psi, #{ start: psi })", "unknown option `start`", "tol"),
            ("bicgstab(d, wilson::reference_spinor(odd, 2))", "right-hand side of 2304 rows", "own size"),
            (
                "bicgstab(d, wilson::reference_spinor(odd, 2), #{ even_odd: true })",
                "right-hand side of 2304 rows",
                "own size",
            ),
            (
                "bicgstab(d, psi, #{ start: wilson::reference_spinor(odd, 2) })",
                "a start of 2304 rows and 1 columns",
                "shape of the right-hand side",
            ),
            (
                "conjugate_gradient(d, psi, #{ even_odd: true, start: wilson::point_source(u, 0) })",
                "a start of 3072 rows and 12 columns",
                "shape of the right-hand side",
            ),
            ("bicgstab(d, psi, #{ start: 0 })", "takes a BlockVector, not a number", "solution"),
            ("bicgstab(d, psi, #{ tol: 2.0 })", "a tolerance of 2", "between 0 and 1"),
            (
                "conjugate_gradient(d, psi, #{ even_odd: true, tol: 1.0 })",
                "a tolerance of 1",
                "between 0 and 1",
            ),
            ("wilson::reference_spinor(1.0, 2)", "not on a number", "hypercubic"),
            (
                "wilson::point_source(u, [0, 0, 0, 9])",
                "no site of a lattice of 4 x 4 x 4 x 4",
                "each begins at 0",
            ),
            ("wilson::time_slices(psi, 256)", "site 256", "255"),
            ("conjugate_gradient(q, psi)", "not positive", "bicgstab"),
            ("multishift_cg(q * q, [-1.0], psi)", "shifts of 0 or more", "array"),
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
        "bicgstab(d, psi)",
        "bicgstab(d, psi, #{ even_odd: true })",
        "bicgstab(d, own, #{ start: psi })",
        "multishift_cg(d.dagger() * d, [0.1], psi)",
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
            ("minmax_inverse_sqrt(0.1, #{ error: 1e-3, degree: 4 })", "both", "one follows"),
            ("minmax_inverse_sqrt(1e-4, #{ error: 3e-14 })", "rounding leaves a deviation", "larger"),
            ("zolotarev_inverse_sqrt(1e-7, #{ error: 3e-14 })", "rounding leaves a deviation", "larger"),
            ("overlap::sign(q, #{ polynomial: zolotarev_inverse_sqrt(0.01) })", "not a value of type Zolotarev", "minmax"),
            (
                "overlap::sign(q, #{ polynomial: minmax_inverse_sqrt(0.01), rational: zolotarev_inverse_sqrt(0.01) })",
                "both `polynomial` and `rational`",
                "one of them",
            ),
            ("overlap::sign(q, #{ upper: 1.0 / 0.0 })", "an upper limit of inf", "spectral_window"),
            ("overlap::sign(u)", "a sign function of a Links", "wilson::kernel"),
            ("overlap::operator(lat)", "an overlap operator on a Lattice", "gauge field"),
            ("overlap::propagator(d, 1.0)", "a site is given by its number", "whole numbers"),
            ("overlap::propagator(d, \"origin\")", "not by a text", "[1, 0, 0, 1]"),
            ("overlap::pion_correlator(d, #{ site: [0, 0, 0, 4] })", "no site of a lattice of 2 x 2 x 2 x 4", "each begins at 0"),
            ("overlap::pion_correlator(d, #{ sit: 3 })", "unknown option `sit`", "`site`"),
            ("overlap::index(d, #{ threshold: 0.5 })", "a threshold of 0.5", "below 0.1"),
            ("let top = lanczos(q * q, #{ which: \"highest\", seed: 1 }).values[0]; overlap::sign(q, #{ upper: 0.995 * top })",
                "an upper limit of", "spectral_window"),
            ("let top = lanczos(q * q, #{ which: \"highest\", seed: 1 }).values[0]; let eps = 1.015 * low.values[3] / top;
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
                "the rest of the spectrum of |Q| begins",
                "smaller `tol`",
            ),
            ("overlap::operator(q, #{ s: 0.4 })", "is no sign function", "overlap::sign"),
            ("overlap::operator(sign, #{ s: 1.0 })", "s is 1", "0.4"),
            (
                "overlap::operator(sign, #{ s: 0.3 })",
                "s is 0.3, and the sign function is of a kernel with s = 0.4",
                "leave",
            ),
            ("overlap::operator(overlap::sign(q + 0.0 * q, quiet))", "does not tell its s", "s: 0.4"),
            ("overlap::operator(sign, #{ s: 0.4, mass: -1.0 })", "a quark mass of -1", "2.8"),
            ("overlap::operator(u, #{ mas: 1.0 })", "unknown option `mas`", "mass"),
            ("overlap::index(q)", "is no overlap operator", "overlap::operator"),
            ("q.bound", "neither a sign function", "overlap::sign"),
            ("overlap_solve(d, wilson::reference_spinor(u, 2), #{ tol: 0.0 })", "a tolerance of 0", "1e-8"),
            (
                "overlap_solve(d, wilson::reference_spinor(u, 2), #{ tol: 2.0 })",
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
        assert(overlap_solve(same, psi, #{ zero_modes: zero, tol: 1e-4, progress: false }).converged, \"its own modes\");",
    );
    fail(
        &mut engine,
        &[
            (
                "overlap_solve(d, psi, #{ zero_modes: zero })",
                "the zero modes given are none of this operator",
                "index",
            ),
            (
                "overlap_solve(little, wilson::reference_spinor(smaller, 2), #{ zero_modes: zero })",
                "the zero modes given live on another lattice",
                "same gauge field",
            ),
            (
                "overlap::sign(other, #{ low_modes: ritz(q * q, #{ count: 2, seed: 1 }), delta: 1e-6 })",
                "the low modes given are no eigenvectors of this operator",
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

#[test]
fn gauge_files_that_are_damaged() {
    let folder = Folder::new("gauge");
    let mut engine = engine(Some(folder.0.clone()));
    prepare(
        &mut engine,
        "let u = gauge::reference_field(lattice::hypercubic(2, 2, 2, 2), 0.3);
        u.save(\"whole.nersc\"); u.save(\"whole.lime\");",
    );
    let whole = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    for kind in ["nersc", "lime"] {
        let bytes = whole(&format!("whole.{kind}"));
        folder.file(&format!("cut.{kind}"), &bytes[..bytes.len() * 2 / 3]);
        let mut flipped = bytes.clone();
        let at = bytes.len() / 2;
        flipped[at] ^= 1;
        folder.file(&format!("flipped.{kind}"), &flipped);
    }
    // A right checksum over links that are not unitary.
    let text = String::from_utf8_lossy(&whole("whole.nersc")).into_owned();
    let head = text.find("END_HEADER\n").unwrap() + "END_HEADER\n".len();
    let mut bytes = whole("whole.nersc");
    let end = bytes.len();
    bytes[head..end].fill(0);
    let old = text.lines().find(|l| l.starts_with("CHECKSUM")).unwrap().to_string();
    let zero = format!("{:<width$}", "CHECKSUM = 0", width = old.len());
    let at = text.find(&old).unwrap();
    bytes[at..at + old.len()].copy_from_slice(zero.as_bytes());
    folder.file("zero.nersc", &bytes);
    folder.file("text.nersc", b"hello");
    // Headers that say what is not so.
    for (name, key, value) in [
        ("open", "BOUNDARY_4", "OPEN"),
        ("word", "PLAQUETTE", "abc"),
        ("trace", "LINK_TRACE", "NaN"),
        ("short", "DIMENSION_4", "1"),
        ("none", "DIMENSION_4", "0"),
    ] {
        let line = text.lines().find(|l| l.starts_with(key)).unwrap();
        let (before, after) = (text.find(line).unwrap(), text.find(line).unwrap() + line.len());
        let whole = whole("whole.nersc");
        let changed = [&whole[..before], format!("{key} = {value}").as_bytes(), &whole[after..]].concat();
        folder.file(&format!("{name}.nersc"), &changed);
    }
    // Links of another program that are all a little too long.
    let stretched = |word: &[u8]| (f64::from_be_bytes(word.try_into().unwrap()) * (1.0 + 1e-4)).to_be_bytes();
    let rough: Vec<u8> = whole("whole.nersc")[head..].chunks(8).flat_map(stretched).collect();
    let words = rough.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
    let sum = words.fold(0u32, u32::wrapping_add);
    let header = text[..head].replace(&old, &format!("CHECKSUM = {sum:x}"));
    folder.file("rough.nersc", &[header.as_bytes(), &rough].concat());
    prepare(
        &mut engine,
        "let near = gauge::load(\"rough.nersc\", #{ reunitarise: true });
        assert((near.link(5, 2) - u.link(5, 2)).norm() < 1e-14, \"only their size was wrong\");",
    );
    fail(
        &mut engine,
        &[
            ("gauge::load(\"rough.nersc\")", "not in SU(3)", "reunitarise: true"),
            ("gauge::load(\"zero.nersc\", #{ reunitarise: true })", "not in SU(3)", "damaged"),
            ("gauge::load(\"whole.nersc\", #{ reunitarize: true })", "unknown option", "`reunitarise`"),
            ("gauge::load(\"missing.lime\")", "no such file", "folder"),
            ("gauge::load(\"cut.nersc\")", "bytes", "truncated"),
            ("gauge::load(\"cut.lime\")", "ends inside", "truncated"),
            ("gauge::load(\"flipped.nersc\")", "checksum", "damaged"),
            ("gauge::load(\"flipped.lime\")", "checksum", "damaged"),
            ("gauge::load(\"zero.nersc\")", "not in SU(3)", "damaged"),
            ("gauge::load(\"open.nersc\")", "a boundary of kind OPEN", "PERIODIC"),
            ("gauge::load(\"word.nersc\")", "the header says abc", "convention"),
            ("gauge::load(\"trace.nersc\")", "the header says NaN", "convention"),
            ("gauge::load(\"short.nersc\")", "take 4608 bytes, and 9216 are there", "the sizes or the type"),
            ("gauge::load(\"none.nersc\")", "does not give four sizes", "four directions"),
            ("gauge::load(\"text.nersc\")", "neither a NERSC archive nor a lime file", "BEGIN_HEADER"),
            ("u.save(\"x\", #{ format: \"hdf5\" })", "no format `hdf5`", "ildg"),
            ("u.save(\"nowhere/at/all.lime\")", "cannot write", "does not exist"),
        ],
    );
}

/// An archive of arrays of doubles as other programs write them.
fn npz(arrays: &[(&str, &[usize], f64)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored = zip::write::FileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, shape, value) in arrays {
        let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
        let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({sizes}), }}\n");
        writer.start_file(format!("{name}.npy"), stored).unwrap();
        writer.write_all(b"\x93NUMPY\x01\x00").unwrap();
        writer.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
        writer.write_all(header.as_bytes()).unwrap();
        let count = shape.iter().product();
        writer.write_all(&value.to_le_bytes().repeat(count)).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn vector_files_that_are_damaged_or_foreign() {
    let folder = Folder::new("vectors");
    let mut engine = engine(Some(folder.0.clone()));
    prepare(
        &mut engine,
        "let lat = lattice::hypercubic(2, 2, 2, 4); let psi = wilson::reference_spinor(lat, 2);
        let q = wilson::kernel(gauge::reference_field(lat, 0.5), #{ s: 0.4 });
        psi.save(\"whole.npz\"); ritz(q * q, #{ count: 2, tol: 1.0, seed: 1, progress: false }).save(\"pairs.npz\");",
    );
    for name in ["whole", "pairs"] {
        let bytes = std::fs::read(folder.0.join(format!("{name}.npz"))).unwrap();
        folder.file(&format!("{name}_cut.npz"), &bytes[..bytes.len() / 2]);
        let mut flipped = bytes.clone();
        flipped[2000] ^= 1;
        folder.file(&format!("{name}_flipped.npz"), &flipped);
    }
    let vectors = ("vectors", [4, 2].as_slice(), 0.5);
    let (values, residuals) = (("values", [2].as_slice(), 0.5), ("residuals", [2].as_slice(), 0.5));
    for (name, arrays) in [
        ("plain", vec![vectors]),
        ("lattice", vec![("vectors", [4, 2, 2, 2, 12, 1].as_slice(), 0.5)]),
        ("of_three", vec![("vectors", [4, 2, 2].as_slice(), 0.5)]),
        ("empty", vec![("vectors", [0, 2].as_slice(), 0.5)]),
        ("known", vec![vectors, values, residuals]),
        ("no_residuals", vec![vectors, values]),
        ("no_values", vec![vectors, residuals]),
        ("too_many", vec![vectors, ("values", [3].as_slice(), 0.5), residuals]),
        ("negative", vec![vectors, values, ("residuals", [2].as_slice(), -0.5)]),
        ("nan", vec![("vectors", [4, 2].as_slice(), f64::NAN), values, residuals]),
    ] {
        folder.file(&format!("{name}.npz"), &npz(&arrays));
    }
    // What others wrote well is read.
    prepare(
        &mut engine,
        "assert(load(\"plain.npz\").columns == 2 && norm(load(\"plain.npz\").column(1)) == 1.0, \"four halves\");
        assert(load(\"known.npz\").values == series([0.5, 0.5]), \"pairs\");
        let psi = load(\"lattice.npz\"); assert(norm(q * psi) > 0.0, \"on the lattice\");",
    );
    fail(
        &mut engine,
        &[
            ("load(\"missing.npz\")", "no such file", "relative"),
            ("load(\"whole_cut.npz\")", "not a whole NPZ archive", "truncated"),
            ("load(\"pairs_cut.npz\")", "not a whole NPZ archive", "truncated"),
            ("load(\"whole_flipped.npz\")", "checksum", "damaged"),
            ("load(\"pairs_flipped.npz\")", "checksum", "damaged"),
            ("load(\"of_three.npz\")", "array `vectors` has the shape [4, 2, 2]", "component"),
            ("load(\"empty.npz\")", "array `vectors` has the shape [0, 2]", "component"),
            ("load(\"no_residuals.npz\")", "there is no array `residuals`", "eigenpairs"),
            ("load(\"no_values.npz\")", "there is no array `values`", "eigenpairs"),
            ("load(\"too_many.npz\")", "array `values` is not 2 numbers", "eigenpairs"),
            ("load(\"negative.npz\")", "residuals below 0", "eigenpairs"),
            ("load(\"nan.npz\")", "no numbers", "eigenpairs"),
            ("psi.save(\"psi.csv\")", "vectors are not saved as", ".npz"),
            ("psi.save(\"nowhere/psi.npz\")", "cannot write", "does not exist"),
            ("overlap::sign(q, #{ low_modes: load(\"known.npz\") })", "low modes of 4 rows", "ritz"),
            ("overlap::sign(q, #{ low_modes: load(\"whole.npz\") })", "takes an Eigen", "low_modes"),
            (
                "wilson::kernel(gauge::unit(lattice::hypercubic(4, 2, 2, 2)), #{}) * load(\"whole.npz\")",
                "does not go with",
                "same lattice",
            ),
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

#[test]
fn files_that_are_missing_cut_off_or_of_another_kind() {
    let folder = Folder::new("files");
    let mut engine = engine(Some(folder.0.clone()));
    prepare(
        &mut engine,
        "let t = table(#{ a: [1, 2, 3], b: [4, 5, 6] });
        for kind in [\"csv\", \"json\", \"npz\"] { t.save(`whole.${kind}`); }",
    );
    let cut = |kind: &str| {
        let whole = std::fs::read(folder.0.join(format!("whole.{kind}"))).unwrap();
        whole[..whole.len() - whole.len() / 3].to_vec()
    };
    folder.file("cut.json", &cut("json"));
    folder.file("cut.npz", &cut("npz"));
    folder.file("cut.csv", b"a,b\n1.0,2.0\n3.0\n");
    folder.file("none.csv", b"");
    folder.file("cut.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1.0\n");
    folder.file(
        "huge.mtx",
        b"%%MatrixMarket matrix coordinate real general\n1000000000000 1000000000000 1\n1 1 1.0\n",
    );
    folder.file("text.mtx", b"hello\n");
    folder.file("cut_hr.dat", b"by hand\n 2\n 3\n 2 1 2\n-1 0 0 1 1 0.0 0.0\n");
    fail(
        &mut engine,
        &[
            ("load(\"missing.csv\")", "there is no such file", "folder"),
            ("load(\"cut.json\")", "cut.json", "truncated"),
            ("load(\"cut.npz\")", "cut.npz", "truncated"),
            ("load(\"cut.csv\")", "line 3 has 1 cells where 2 should be", "truncated"),
            ("load(\"none.csv\")", "there are no numbers in it", "truncated"),
            ("matrix_market(\"cut.mtx\")", "ends after line 3", "truncated"),
            ("matrix_market(\"huge.mtx\")", "takes 16.0 TB", "fewer"),
            ("matrix_market(\"text.mtx\")", "is no header", "%%MatrixMarket"),
            ("wannier90(\"cut_hr.dat\", #{ cells: [2, 2, 2] })", "ends after line 5", "truncated"),
            ("t.save(\"nowhere/at/all.csv\")", "cannot write", "does not exist"),
            ("plot(t, #{ file: \"nowhere/at/all.svg\" })", "cannot write", "does not exist"),
            ("import \"no_such_module\" as m;", "no module `no_such_module`", "beside the script"),
        ],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = Folder::new("full");
    for kind in ["csv", "json", "npz", "svg", "png"] {
        std::os::unix::fs::symlink("/dev/full", folder.0.join(format!("full.{kind}"))).unwrap();
    }
    let mut engine = engine(Some(folder.0.clone()));
    prepare(&mut engine, "let t = table(#{ a: [1, 2, 3], b: [4, 5, 6] });");
    fail(
        &mut engine,
        &[
            ("t.save(\"full.csv\")", "no space left", "free some"),
            ("t.save(\"full.json\")", "no space left", "free some"),
            ("t.save(\"full.npz\")", "no space left", "free some"),
            ("plot(t, #{ file: \"full.svg\" })", "no space left", "free some"),
            ("plot(t, #{ file: \"full.png\" })", "no space left", "free some"),
        ],
    );
}

#[test]
fn functions_that_call_themselves_forever() {
    fail(
        &mut engine(None),
        &[
            ("fn f(x) { f(x + 1) }\nf(0)", "too deeply", "loop"),
            ("fn g(x) { g(x + 1) }\n[1, 2].map(|x| g(x))", "too deeply", "loop"),
            ("let m = #{ a: 1 }; m.b", "no `b`", "keys"),
        ],
    );
}

/// Tells that work began.
struct Began(Sender<()>);

impl Progress for Began {
    fn start(&self, _: &str, _: u64) {
        // Nobody listens any more once the work was stopped.
        let _ = self.0.send(());
    }

    fn advance(&self, _: u64, _: &str) {}

    fn finish(&self) {}
}

#[test]
fn native_work_and_loops_stop_when_asked_to() {
    for work in [
        // Each would run for hours.
        "chebyshev(h, window(-6.1, 6.1), random_block(h, 8)).run(100000000);",
        "kpm::moments(h, #{ moments: 60000000 });",
        "davidson(h, #{ count: 400, tol: 1e-30, iterations: 1000000000 });",
        "spectral_window(h, #{ method: \"lanczos\", steps: 3 }); loop { kept += 0; }",
    ] {
        let interrupt = Interrupt::default();
        let mut engine = Engine::with(Settings::default(), interrupt.clone()).unwrap();
        prepare(&mut engine, "let kept = 17; let h = tight_binding(lattice::cubic(24, 24, 24));");
        let (sender, began) = channel();
        engine.session().set_progress(Some(Arc::new(Began(sender))));
        let stopper = std::thread::spawn(move || {
            began.recv().unwrap();
            interrupt.raise();
        });
        let report = engine.eval(work).unwrap_err();
        assert_eq!(report.kind, Kind::Interrupted, "{work}:\n{}", report.render(false));
        stopper.join().unwrap();
        assert_eq!(engine.eval("kept").unwrap().as_int(), Ok(17), "variables stay");
    }
}

#[test]
fn blocks_and_sweeps() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 6); let h = models::heisenberg(c); let z = #{ Sz: 0.0 }; let m = mpo(h, c, z); \
         let l = left_edge(m).extend().extend().grow(); let r = right_edge(m).extend().extend().grow(); \
         let both = superblock(l, r); let op = exact::operator(h, c, z); let v = davidson(both).vectors; \
         let bond = opsum(); bond.add(1.0, \"Sz\", 0, \"Sz\", 1); let skew = opsum(); \
         skew.add(I, \"S+\", 0, \"S-\", 1); skew.add(-1.0 * I, \"S-\", 0, \"S+\", 1); \
         let up = opsum(); up.add(1.0, \"S+\", 0); let far = opsum(); far.add(1.0, \"Sz\", 9); \
         let two = opsum(); two.add(1.0, \"Sz\", 0, \"Sz\", 2); let gs = dmrg::finite(h, c, #{ sector: z, states: 8, sweeps: 1, progress: false });",
    );
    fail(
        &mut engine,
        &[
            (
                "dmrg::finite(h, c, #{ sector: #{ Sz: 4.0 } })",
                "no state of 6 S=1/2 sites has Sz = 4",
                "from -3 to 3",
            ),
            ("dmrg::finite(h, c, #{ sector: #{ N: 4 } })", "no conserved number `N`", "Sz"),
            ("dmrg::finite(far, c)", "site 9 outside a chain of 6 sites", "from 0 to 5"),
            ("dmrg::finite(up, c, #{ sector: z })", "changes Sz by 1", "leave Sz out"),
            ("dmrg::finite(up, c)", "not Hermitian", "conjugate"),
            ("dmrg::finite(h, c, #{ stats: 4 })", "unknown option `stats`", "`states`"),
            ("dmrg::finite(h, c, #{ states: \"many\" })", "takes a whole number", "each sweep"),
            ("dmrg::finite(h, c, #{ states: [] })", "empty list", "each sweep"),
            ("dmrg::finite(h, c, #{ states: 0 })", "`states` is 0", "positive"),
            ("dmrg::finite(h, c, #{ sweeps: 0 })", "0 sweeps", "at least"),
            ("dmrg::finite(h, c, #{ cutoff: 2.0 })", "`cutoff` is 2", "weight to discard"),
            ("dmrg::finite(h, c, #{ tol: -1.0 })", "`tol` is -1", "not negative"),
            ("dmrg::finite(h, c, #{ one_site: -1 })", "-1 sweeps of one site", "none or more"),
            ("dmrg::finite(h, c, #{ count: 2, weights: [1.0] })", "of 2 states", "each of `count`"),
            ("dmrg::finite(h, c, #{ checkpoint: \"no/such/x.dmrg\" })", "cannot be written", "folder"),
            (
                "models::heisenberg(c, #{ lattice: lattice::chain(6), order: [0, 0, 1, 2, 3, 4] })",
                "every site from 0 to 5 once",
                "stand in the chain",
            ),
            (
                "models::heisenberg(c, #{ lattice: lattice::chain(6).boundary(\"antiperiodic\") })",
                "antiperiodic or twisted",
                "only what hops",
            ),
            ("models::heisenberg(c, #{ lattice: lattice::square(6, 1) })", "joins a site to itself", "open"),
            ("dmrg::finite(h, c, #{ sector: z, start: [\"Up\"] })", "1 local states", "one for each site"),
            ("dmrg::finite(h, c, #{ start: 7 })", "not 7", "Up"),
            (
                "dmrg::finite(h, c, #{ sector: z, start: [\"Up\", \"Up\", \"Up\", \"Up\", \"Up\", \"Dn\"] })",
                "outside the sector",
                "sector",
            ),
            ("dmrg::finite(h, c, #{ sector: z, strategy: \"RL\" })", "no strategy `RL`", "l-1-1-r"),
            ("dmrg::finite(h, sites(\"S=1/2\", 1))", "a chain of 1 site", "two"),
            ("dmrg::finite(c, h)", "a chain of type OpSum", "`dmrg::finite(h, chain)`"),
            ("dmrg::finite(opsum(), c)", "without terms", "`this`"),
            ("dmrg::finite(h, c, #{ noise: -1e-3 })", "`noise` is -0.001", "not negative"),
            ("dmrg::finite(h, c, #{ residual: 0.0 })", "`residual` is 0", "positive"),
            ("dmrg::finite(h, c, #{ tol: 0.0 / 0.0 })", "`tol` is NaN", "not negative"),
            ("dmrg::finite(h, c, #{ variance: -1.0 })", "`variance` is -1", "positive"),
            ("dmrg::finite(h, c, #{ explore: -1 })", "-1 sweeps", "none or more"),
            ("dmrg::finite(h, c, #{ seed: \"a\" })", "`seed` takes a whole number", "a"),
            ("gs.variance(up)", "changes Sz by 1", "Sz"),
            ("gs.expect(\"Sz\", #{ sites: [2, 1] })", "ascending", "from 0 to 5"),
            ("gs.correlations(\"Sz\", \"Sz\", #{ sites: 3 })", "array of site numbers", "from 0 to 5"),
            ("l.rotate(density_matrix(both, v, \"right\").truncate())", "belongs to another block", "left"),
            (
                "let e = superblock(edge_block(\"S=1/2\", bond), edge_block(\"S=1/2\", bond).mirror()); dmrg_state(e, davidson(e).vectors, #{})",
                "infinite chain",
                "left_edge",
            ),
            ("nearest_sector(l, r, #{ N: 1 })", "do not conserve N", "Sz"),
            ("edge_block(c, bond)", "whole chain of sites", "`sites`"),
            ("sites([\"S=1/2\", \"Electron\"], #{ nmax: 3 })", "none among these sites", "Boson"),
            ("site(#{ operators: #{ F: pauli().x } })", "own operator `F`", "another name"),
            ("site(#{ operators: #{ X: pauli().x }, states: [\"a\", \"a\"] })", "called `a`", "name"),
            (
                "site(#{ operators: #{ C: pauli().z }, fermionic: [\"C\"], odd: [0, 1] })",
                "same parity",
                "`odd`",
            ),
            ("site(#{ operators: #{ C: pauli().x }, odd: [0, 2] })", "an entry 2", "odd number"),
            ("superblock(l, l)", "a left and a right block", "mirror"),
            ("superblock(l, right_edge(m).grow())", "do not meet", "bond"),
            ("superblock(l, r, #{ Sz: 99 })", "no state of the superblock", "combined"),
            ("superblock(l, r, #{ Q: 1 })", "no conserved number `Q`", "Sz"),
            ("l.grow()", "no further site", "rotate"),
            (
                "left_edge(m).rotate(density_matrix(both, v, \"left\").truncate(#{}))",
                "only a grown block",
                "grow",
            ),
            ("l.mirror()", "has a mirror image", "edge_block"),
            ("edge_block(\"S=1/2\", skew).mirror()", "not its own mirror image", "right"),
            ("edge_block(\"S=1/2\", two)", "beyond sites 0 and 1", "dmrg::finite"),
            ("edge_block(\"S=1/3\", bond)", "no spin", "S=1/2"),
            ("density_matrix(op, v, \"left\")", "takes a superblock", "superblock(left"),
            ("density_matrix(both, v, \"top\")", "no side `top`", "left"),
            (
                "density_matrix(both, unit_block(exact::operator(h, c), [0]), \"left\")",
                "64 rows",
                "superblock",
            ),
            (
                "density_matrix(both, v, \"left\", #{ weights: [1.0, 2.0] })",
                "2 weights for 1 states",
                "one weight",
            ),
            ("density_matrix(both, v, \"left\").truncate(#{ states: 0 })", "`states` is 0", "at least 1"),
            ("density_matrix(both, v, \"left\").truncate(#{ cutoff: -2.0 })", "`cutoff` is -2", "to discard"),
            ("load_state(\"nothing.dmrg\")", "`nothing.dmrg` cannot be read", "save"),
            ("gs.expect(\"sz\")", "no operator `sz`", "`Sz`"),
            ("gs.spectrum(5)", "no bond 5", "between sites"),
            (
                "product_state(c, [\"Up\", \"Dn\", \"Up\", \"Dn\", \"Up\", \"Dn\"], z).excited",
                "does not know its `excited`",
                "dmrg::finite",
            ),
            (
                "gs.overlap(product_state(sites(\"S=1/2\", 2), [\"Up\", \"Dn\"], z))",
                "different chains",
                "chain",
            ),
            (
                "site(#{ operators: #{ Z: pauli().z }, charges: #{ P: [0, 1] }, modulo: #{ P: 1 } })",
                "modulo 1",
                "Z_n",
            ),
            ("sites(\"SU(9)\", 2)", "no kind of site", "eight flavours"),
        ],
    );
}

#[test]
fn wave_functions_and_walks_that_cannot_be() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 2 });
         let walk = walkers(psi, #{ count: 2, seed: 1 });
         let ham = electrons(trap(1.0), #{ interaction: \"none\" });
         let sea = matrix([[0.5, 0.5], [0.5, -0.5], [0.5, 0.5], [0.5, -0.5]]);
         let four = lattice_slater(matrix([[0.6, 0.0], [0.0, 0.8], [0.8, 0.0], [0.0, 0.6]]), #{ up: 2, down: 1 });",
    );
    fail(
        &mut engine,
        &[
            (
                "slater_jastrow(orbitals::oscillator(2), #{ up: 3 })",
                "3 electrons of spin up and 2 orbitals",
                "more orbitals",
            ),
            ("slater_jastrow(orbitals::oscillator(2), #{})", "without electrons", "up"),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ determinants: [[1.0, [0, 0], []]] })",
                "fills an orbital twice",
                "vanishes",
            ),
            (
                "walkers(slater_jastrow(orbitals::exponentials([[[0, 0, 0], 1.0], [[0, 0, 0], 1.0]]), #{ up: 2 }), #{})",
                "singular",
                "two orbitals the same",
            ),
            ("orbitals::exponentials([[[0.0, 0.0, 0.0], 0.0 / 0.0]])", "positive exponent", "zeta"),
            ("lattice_slater(matrix([[0.0 / 0.0], [1.0]]), #{ up: 1 })", "not a finite number", "NaN"),
            (
                "lattice_slater(sea, #{ up: 2, down: 3 })",
                "3 electrons of spin down and 2 orbitals",
                "fewer electrons",
            ),
            (
                "lattice_slater(sea, #{ up: 2, down: 2, gutzwiller: -1.0 })",
                "Gutzwiller factor of -1",
                "0 (no double occupation) or positive",
            ),
            ("walkers(psi, #{ count: 0 })", "`count` is 0", "at least 1"),
            ("metropolis(walk, #{})", "needs the size of a trial move", "step"),
            ("metropolis(walk, #{ step: 0.0 })", "a step of 0", "positive"),
            ("metropolis(walk, #{ step: 1.0, scheme: \"lok-ahead\" })", "no updating scheme", "`look-ahead`"),
            (
                "metropolis(walk, #{ step: 1.0, group: 99, scheme: \"delayed-acceptance\" })",
                "groups of 99",
                "1 to 12",
            ),
            (
                "metropolis(walk, #{ step: 1.0, drift: true, proposal: \"uniform\" })",
                "normal displacements",
                "gaussian",
            ),
            ("psi.jastrow = jastrow::pade(#{ b: -1.0 })", "parameter `b` is -1", "positive"),
            ("psi.jastrow = jastrow::polynomial(#{})", "needs a cutoff", "cutoff"),
            ("psi.jastrow = jastrow::pade(#{ bb: 1.0 })", "unknown option", "`b`"),
            (
                "vmc::run(slater_jastrow(orbitals::oscillator(2), #{ up: 2 }), electrons(trap(1.0), #{ interaction: \"none\" }), #{ checkpoint: \"no/such/w.json\" })",
                "cannot be written",
                "folder",
            ),
            ("electrons(trap(1.0), #{ interaction: \"ewald\" })", "no interaction `ewald`", "coulomb"),
            (
                "orbitals::gaussians([#{ center: [0.0, 0.0, 0.0], shell: \"s\", exponents: [1.0], coefficients: [0.0 / 0.0] }])",
                "a coefficient NaN",
                "finite",
            ),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ determinants: [[0.0 / 0.0, [0, 1], []]] })",
                "with coefficient NaN",
                "finite",
            ),
            (
                "slater_jastrow(orbitals::oscillator(2), #{ determinants: [[0.0, [0, 1], []]] })",
                "none has a coefficient but 0",
                "zero everywhere",
            ),
            (
                "local_energy(walkers(slater_jastrow(orbitals::oscillator(2), #{ up: 1 }), #{ count: 1 }), electrons(nuclei([[2.0, [0.0, 0.0, 0.0]]]), #{}))",
                "orbitals of 1 and a potential of 3 dimensions",
                "same system",
            ),
            (
                "let gas = crystal::electron_gas(2, 1.0); local_energy(walkers(slater_jastrow(orbitals::plane_waves(gas), #{ up: 1, down: 1 }), #{ count: 1 }), electrons(trap(1.0), #{}))",
                "periodic cell and a Hamiltonian in open space",
                "same system",
            ),
            (
                "let gas = crystal::electron_gas(2, 1.0); local_energy(walkers(slater_jastrow(orbitals::plane_waves(gas), #{ up: 1, down: 1 }), #{ count: 1 }), electrons(crystal::electron_gas(2, 3.0), #{}))",
                "of different cells",
                "same system",
            ),
            ("trap(0.0)", "frequency 0", "positive"),
            ("local_energy(walk, opsum())", "an OpSum for walkers in the continuum", "electrons"),
            ("vmc::run(psi, ham, #{ stepz: 3 })", "unknown option `stepz`", "`step"),
            ("vmc::run(psi, ham, #{ step: 0.0, progress: false })", "a step of 0", "positive"),
            (
                "vmc::run(psi, ham, #{ observables: #{ spin: #{} }, step: 1.0, progress: false })",
                "no observable spin",
                "density",
            ),
            ("load_walkers(psi, \"no_such_walk.json\")", "cannot be read", "save_walkers"),
            ("walk.positions(2)", "walker 2 of 2", "0 to 1"),
            (
                "vmc::run(psi, models::hubbard_chain(4, #{}), #{})",
                "an OpSum for a wave function",
                "electrons",
            ),
            (
                "vmc::optimise(psi, models::hubbard_chain(4, #{}), #{})",
                "an OpSum for a wave function",
                "electrons",
            ),
            ("vmc::run(four, ham, #{})", "of the continuum for a wave function on a lattice", "OpSum"),
            ("vmc::run(four, 3.0, #{})", "a Hamiltonian for walkers cannot be", "electrons"),
            (
                "vmc::run(four, models::tj_chain(4, #{}), #{})",
                "allows two electrons on a site",
                "gutzwiller: 0.0",
            ),
            (
                "local_energy(walkers(four, #{ count: 2, seed: 1 }), 2.0 * models::tj_chain(4, #{}))",
                "allows two electrons on a site",
                "gutzwiller: 0.0",
            ),
            (
                "vmc::optimise(four, models::tj_chain(4, #{}), #{})",
                "allows two electrons on a site",
                "gutzwiller",
            ),
            (
                "vmc::run(four, models::hubbard_chain(3, #{}), #{})",
                "3 sites for a wave function on 4",
                "same sites",
            ),
            (
                "vmc::run(four, models::hubbard_chain(5, #{}), #{})",
                "5 sites for a wave function on 4",
                "same sites",
            ),
            (
                "vmc::run(four, models::tv(sites(\"Fermion\", 4)), #{})",
                "spinless fermions",
                "models::hubbard",
            ),
            (
                "vmc::run(four, models::heisenberg(sites(\"S=1\", 4)), #{})",
                "spins `S=1` for electrons",
                "spin 1/2",
            ),
            (
                "vmc::run(four, models::hubbard_chain(4, #{}), #{ step: 0.3 })",
                "`step` for walkers on a lattice",
                "leave",
            ),
            (
                "vmc::run(four, models::hubbard_chain(4, #{}), #{ drift: true })",
                "`drift` for walkers",
                "leave it out",
            ),
            ("walkers(four, #{ spread: 1.0 })", "`spread` for walkers on a lattice", "leave it out"),
            (
                "lattice_pairs(matrix([[1.0, 0.5], [0.4, 1.0]]), #{ pairs: 1 })",
                "f(0, 1) is not f(1, 0)",
                "singlets",
            ),
            ("pair_correlation(walk, #{})", "needs a cutoff", "cutoff"),
            ("electron_density(walk, #{ axis: 1, from: 0.0, to: 1.0 })", "axis 1 in 1 dimensions", "0 to 0"),
            ("models::hubbard_chain(4, #{ boundary: \"twisted\" })", "no boundary twisted", "antiperiodic"),
        ],
    );
}

/// The language does not say where, so only the sentence and the hint are held.
#[test]
fn methods_whose_function_uses_their_value() {
    let script = "let u = gauge::unit(lattice::hypercubic(2, 2, 2, 2)); u.transformed(|x| u.link(x, 0))";
    let report = engine(None).eval(script).expect_err("the value is held");
    assert!(report.message.contains("uses the value whose method calls it"), "{}", report.message);
    assert!(report.hint.is_some_and(|hint| hint.contains("let v = u")));
}
