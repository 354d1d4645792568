//! Superconductivity and mean fields that cannot be.

use super::{engine, fail};

#[test]
fn pairs_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "fn chain(n) { let m = model(lattice::chain(n)); m.nearest(-1.0); m }\n\
             let m = chain(6);\n\
             let s = chain(6); s.pairing(0.3);\n\
             let k = chain(6); k.pairing([1], 0.3, #{ spin: \"none\" });\n\
             let two = model(lattice::chain(6), 2);\n\
             let turned = model(lattice::chain(6).boundary(lattice::twisted(0.4)));\n\
             let c = model(lattice::chain(3).boundary(\"open\")); c.nearest(-1.0);\n\
             let right = transport::lead(chain(1), #{ side: 1 });\n\
             let c2 = model(lattice::chain(3).boundary(\"open\")); c2.nearest(-1.0); c2.pairing(0.0);\n\
             let bcs = chain(1); bcs.pairing(0.3);\n\
             let bound = transport::system(c2, #{ leads: [transport::lead(bcs, #{ side: 1 })] });\n\
             let plain = transport::system(c, #{ leads: [right] });\n\
             let h = m.build();",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("m.pairing(0.3, #{ spin: \"none\" })", "pairs with itself", "bond"),
            ("m.pairing(0.3, #{ spin: \"triplet\" })", "pairs with itself", "bond"),
            ("m.pairing(0.3, #{ spin: \"up\" })", "no spin `up`", "singlet"),
            (
                "markers::entanglement(k.build(), #{ filled: 5, rows: [0, 1] })",
                "5 filled states of 12",
                "half of them",
            ),
            (
                "markers::entanglement(k.build(), #{ filled: 6, rows: [0] })",
                "row 0 of a part without row 1",
                "both",
            ),
            (
                "kpm::polarizability(s.build(), [0.5], #{ frequencies: [0.5] })",
                "the polarisability of a superconductor",
                "electrons alone",
            ),
            ("m.pairing(\"x\")", "a term is a number or a Matrix", ""),
            ("m.pairing(0.0 / 0.0)", "the pairing is not a finite number", "division"),
            ("m.pairing(|r| \"x\")", "a term is a number or a Matrix", ""),
            ("m.pairing([1], |a, b| 1.0 / 0.0)", "not a finite number", "division"),
            ("m.pairing(series([0.1, 0.2]))", "2 pairings for 6 sites", "one for each site"),
            ("m.pairing([0], 0.3)", "a pairing over no distance", "on each site"),
            ("m.pairing([1, 0], 0.3)", "", ""),
            ("m.pairing([1], \"A\", \"Z\", 0.3)", "Z", ""),
            ("m.pairing([1], matrix([[1.0, 0.0], [0.0, 1.0]]))", "2 x 2 matrix", ""),
            ("m.pairing(\"nearest\", series([0.1]))", "pairings for 1 of 6", "one for each bond"),
            ("m.pairing(\"nearest\", 0.0 / 0.0)", "not a finite number", "division"),
            ("m.pairing(\"nearest\", \"x\")", "pairings over bonds given as", ""),
            ("m.pairing(\"next\", 0.1)", "displacement", ""),
            ("turned.pairing(\"nearest\", 0.3)", "a boundary with a complex phase", "antiperiodic"),
            ("two.pairing(0.3, #{ spin: \"none\" })", "not antisymmetric", "transpose"),
            ("two.pairing(0.3 * I * pauli().y)", "not symmetric", "transpose"),
            ("turned.pairing([1], 0.3)", "a boundary with a complex phase", "antiperiodic"),
            (
                "s.pairing([1], 0.3, #{ spin: \"none\" })",
                "opposite spins and pairs without spin",
                "both spins",
            ),
            ("k.pairing(0.3)", "opposite spins and pairs without spin", "both spins"),
            ("m.zeeman(0.1)", "a model without spins", "pairing"),
            ("k.zeeman(0.1)", "their own holes", "both spins"),
            ("s.zeeman(0.1 * I)", "not Hermitian", ""),
            ("s.zeeman(series([0.1]))", "1 on-site energies for 6 sites", ""),
            ("s.onsite(pauli().x)", "2 x 2 matrix", ""),
            ("transport::system(c2, #{ leads: [right] })", "lead 0 has 1 orbitals", "pairing"),
            (
                "bound.transmission(0, 0, 0.1, #{ sends: \"electron\" })",
                "distinguish electrons and holes",
                "pairing of zero",
            ),
            (
                "plain.transmission(0, 0, 0.1, #{ takes: \"hole\" })",
                "distinguish electrons and holes",
                "pairing of zero",
            ),
            ("plain.transmission(0, 0, 0.1, #{ takes: \"muon\" })", "no takes `muon`", "electron"),
        ],
    );
}

#[test]
fn momenta_that_cannot_be() {
    let mut engine = engine(None);
    let _ =
        engine.eval("let m = model(lattice::square(4, 4)); m.nearest(-1.0);\nlet h = m.build();").unwrap();
    fail(
        &mut engine,
        &[
            ("m.build(#{ k: 0.1 })", "a momentum of 1 number for 2 periodic directions", "of the sample"),
            ("m.build(#{ k: [0.1, 0.0 / 0.0] })", "a momentum of NaN", "division"),
            ("m.build(#{ k: [0.1, \"x\"] })", "a momentum is an array of numbers", "reciprocal"),
            ("kpm::dos(h, #{ kpoints: 2 })", "momenta of a value of type Operator", "the model itself"),
            ("kpm::dos(m, #{ moments: 16 })", "one of an Operator", ""),
            ("kpm::dos(m, #{ kpoints: 0 })", "a grid [0, 0] in 2 periodic directions", "each"),
            ("kpm::dos(m, #{ kpoints: [2] })", "a grid [2] in 2 periodic directions", "each"),
            (
                "kpm::moments(m, #{ kpoints: 2, checkpoint: \"a.npz\" })",
                "the options `checkpoint` and `kpoints` exclude each other",
                "leave one of them out",
            ),
            ("kpm::conductivity(m, #{ kpoints: 2, current: h })", "one current at several momenta", "|h, k|"),
        ],
    );
}

#[test]
fn disorder_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let m = model(lattice::chain(20)); m.nearest(-1.0);\n\
             let bare = model(lattice::chain(20));",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("m.disorder(-1.0)", "the width of the disorder is -1", ""),
            (
                "m.disorder(0.0 / 0.0, #{ distribution: \"gaussian\" })",
                "the width of the disorder is NaN",
                "",
            ),
            ("m.disorder(1.0, #{ distribution: \"flat\" })", "no distribution `flat`", "gaussian"),
            ("m.disorder(1.0, #{ correlation: 0.0 })", "option `correlation` is 0", "above 0"),
            ("m.disorder(1.0, #{ correlation: 5.0 })", "a periodic sample that is 20", "eight times"),
            (
                "m.disorder(1.0, #{ correlation: 1.0, distribution: \"binary\" })",
                "the options `distribution` and `correlation` exclude",
                "leave one of them out",
            ),
            ("bare.bond_disorder(0.1)", "without hoppings", "before"),
            ("m.bond_disorder(-0.1)", "which is no width", ""),
            ("m.impurities(1.5, 0.1)", "between 0 and 1", ""),
            ("m.impurities(0.5, 0.1 * I)", "not Hermitian", ""),
            ("m.impurities(0.5, pauli().x)", "2 x 2 matrix", ""),
        ],
    );
}

#[test]
fn mean_fields_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let m = model(lattice::chain(6)); m.nearest(-1.0);\n\
             let two = model(lattice::chain(6), 2); two.hop([1], 1.0);\n\
             let points = model(lattice::points([[0.0], [1.0]])); points.hop_within(1.1, -1.0);\n\
             let strained = model(lattice::chain(6)); strained.nearest(-1.0);\n\
             strained.strain(|r| [1.1 * r[0]], |l| 1.0);\n\
             let turned = model(lattice::chain(6).boundary(lattice::twisted(0.4)));\n\
             let k = model(lattice::chain(6)); k.pairing([1], 0.3, #{ spin: \"none\" });\n\
             let h = m.build();",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("meanfield::hubbard(m, #{})", "U", "repulsion"),
            (
                "meanfield::hubbard(h, #{ U: 1.0 })",
                "the argument `m` takes a Model, not an Operator",
                "made by `model`",
            ),
            ("meanfield::hubbard(k, #{ U: 1.0 })", "a model with pairing", "superconductor"),
            (
                "meanfield::hubbard(m, #{ U: 1.0, hund: 0.2 })",
                "between the orbitals of a site that has one",
                "`V` acts between sites",
            ),
            (
                "meanfield::hubbard(two, #{ U: 1.0, kpoints: 2, method: \"kpm\", potential: 0.0 })",
                "the options `kpoints` and `method: \"kpm\"` exclude each other",
                "leave one of them out",
            ),
            (
                "meanfield::hubbard(m, #{ U: 1.0, V: series([1.0, 2.0]) })",
                "2 numbers of the repulsion over bonds for 6 bonds",
                "the order of `bonds()`",
            ),
            ("meanfield::hubbard(m, #{ U: 1.0, V: 1.0 / 0.0 })", "option `V` is inf", "a finite number"),
            (
                "meanfield::hubbard(m, #{ U: 1.0, kpoints: 0 })",
                "a grid [0] in 1 periodic directions",
                "one number",
            ),
            ("meanfield::hubbard(m, #{ U: 1.0, kpoints: [2, 2] })", "a grid [2, 2] in 1", "one for each"),
            (
                "meanfield::hubbard(two, #{ U: 1.0, start: series([1.0, 2.0]) })",
                "the start for 6 sites",
                "a Series",
            ),
            ("meanfield::hubbard(points, #{ U: 1.0, V: 1.0 })", "a lattice that has none", "lattice::custom"),
            (
                "meanfield::hubbard(strained, #{ U: 1.0, V: 1.0 })",
                "the bonds of a strained model",
                "hoppings",
            ),
            ("meanfield::hubbard(strained, #{ U: 1.0, kpoints: 2 })", "a strained model", "vectors"),
            (
                "meanfield::hubbard(m, #{ U: 1.0, fock: false })",
                "the option `fock` has no effect without `V`",
                "leave it out",
            ),
            ("meanfield::spinless(m, #{})", "V", "repulsion"),
            ("meanfield::spinless(m, #{ V: 1.0, filling: 1.5 })", "9 fermions in 6 levels", "between 0 and"),
            (
                "meanfield::superconductor(m, #{ V: 1.0, kpoints: 2, method: \"kpm\" })",
                "the options `kpoints` and `method: \"kpm\"` exclude each other",
                "leave one of them out",
            ),
            (
                "meanfield::superconductor(m, #{ W: 1.0, method: \"kpm\" })",
                "the options `W` and `method: \"kpm\"` exclude each other",
                "leave one of them out",
            ),
            (
                "meanfield::superconductor(m, #{ W: series([1.0, 2.0]) })",
                "2 numbers of the attraction over bonds for 6 bonds",
                "the order of `bonds()`",
            ),
            (
                "meanfield::superconductor(m, #{ W: 1.0, bond_start: series([1.0]) })",
                "1 numbers of the start over bonds for 6 bonds",
                "the order of `bonds()`",
            ),
            ("meanfield::superconductor(m, #{ W: 0.0 / 0.0 })", "option `W`", ""),
            ("meanfield::superconductor(points, #{ W: 1.0 })", "a lattice that has none", "lattice::custom"),
            (
                "meanfield::superconductor(m, #{ V: 1.0, bond_start: 0.1 })",
                "the option `bond_start` has no effect without `W`",
                "leave it out",
            ),
            (
                "meanfield::superconductor(m, #{ V: 1.0, seed: 1 })",
                "the option `seed` has no effect without `W`",
                "leave it out",
            ),
            (
                "meanfield::superconductor(m, #{ V: series([1.0, -1.0, 1.0, -1.0, 1.0, -1.0]), start: 0.1, seed: 1 })",
                "the option `seed` has no effect without `W` or several starts",
                "leave it out",
            ),
            (
                "meanfield::superconductor(m, #{ V: 1.0, starts: 3, method: \"kpm\" })",
                "the options `starts` and `method: \"kpm\"` exclude each other",
                "leave one of them out",
            ),
            (
                "meanfield::superconductor(turned, #{ W: 1.0 })",
                "a boundary with a complex phase",
                "antiperiodic",
            ),
            ("bloch::density_matrix([])", "electrons of no model", "give a Model"),
            ("bloch::density_matrix([m, h])", "electrons of an Operator", "two spins"),
            ("bloch::density_matrix(m, #{ electrons: 6.5 })", "6.5 fermions in 6 levels", ""),
            (
                "bloch::density_matrix(m, #{ electrons: 1.0, potential: 0.0 })",
                "the options `electrons` and `potential` exclude each other",
                "leave one",
            ),
            ("bloch::density_matrix(m, #{ potential: 0.0 / 0.0 })", "", "division"),
            (
                "bloch::density_matrix([m, model(lattice::square(2, 2))], #{ kpoints: 2 })",
                "1 and 2 periodic directions",
                "one lattice",
            ),
            (
                "m.nearest(series([1.0, 2.0]))",
                "hoppings for 2 of 6 nearest-neighbour bonds",
                "one for each bond",
            ),
            ("two.nearest([[series([1.0])]])", "an array of 1 rows", "2 rows"),
            ("m.nearest([[1.0]])", "rows of a number", "a Series"),
            ("m.onsite([[series([1.0, 2.0])]])", "on-site terms of 2 of 6 sites", "one for each site"),
            ("m.onsite([[I * series([1.0, 2.0, 0.0, 0.0, 0.0, 0.0])]])", "not Hermitian", "real"),
            ("meanfield::hubbard(m, #{ U: series([1.0]) })", "1 numbers of the repulsion for 6 sites", "one"),
            ("meanfield::hubbard(m, #{ U: 0.0 / 0.0 })", "", "division"),
            (
                "meanfield::hubbard(m, #{ U: 1.0, filling: 1.0, potential: 0.0 })",
                "the options `potential` and `filling` exclude each other",
                "leave one of them out",
            ),
            (
                "meanfield::hubbard(m, #{ U: 1.0, filling: 2.5 })",
                "15 fermions in 12 levels",
                "between 0 and 2",
            ),
            (
                "meanfield::hubbard(m, #{ U: 1.0, temperature: -1.0 })",
                "option `temperature` is -1",
                "it must be at least 0",
            ),
            (
                "meanfield::hubbard(m, #{ U: 1.0, mixing: 0.0 })",
                "option `mixing` is 0",
                "it must be above 0 and at most 1",
            ),
            (
                "meanfield::hubbard(m, #{ U: 1.0, history: -1 })",
                "option `history` is -1",
                "it must be at least 0",
            ),
            ("meanfield::hubbard(m, #{ U: 1.0, steps: 0 })", "option `steps` is 0", "it must be at least 1"),
            ("meanfield::hubbard(m, #{ U: 1.0, tol: 0.0 })", "option `tol` is 0", "it must be above 0"),
            ("meanfield::hubbard(m, #{ U: 1.0, method: \"guess\" })", "no method `guess`", "exact"),
            (
                "meanfield::hubbard(m, #{ U: 1.0, method: \"kpm\" })",
                "option `potential` is needed",
                "chemical",
            ),
            (
                "meanfield::hubbard(m, #{ U: 1.0, moments: 64 })",
                "the option `moments` has no effect without `method: \"kpm\"`",
                "leave it out",
            ),
            ("meanfield::hubbard(m, #{ U: 1.0, start: series([1.0]) })", "the start for 6 sites", ""),
            ("meanfield::superconductor(m, #{})", "option `V` is needed without `W`", "attraction"),
            ("meanfield::superconductor(two, #{ V: 1.0 })", "4 rows a site", "one orbital"),
            ("meanfield::superconductor(k, #{ V: 1.0 })", "pairs without spin", "both spins"),
            (
                "meanfield::superconductor(m, #{ V: 1.0, filling: 2.5 })",
                "option `filling` is 2.5",
                "at most 2",
            ),
            (
                "meanfield::density_matrix(h, #{ temperature: -1.0 })",
                "option `temperature` is -1",
                "it must be at least 0",
            ),
            ("meanfield::density_matrix(I * h, #{})", "Hermitian", ""),
            ("kpm::correlations(h, [0, 1], [0])", "2 rows and 1 columns", "one length"),
            ("kpm::correlations(h, [9], [0])", "row 9", ""),
            (
                "kpm::occupations(m)",
                "the argument `h` takes an Operator, not a Model",
                "`.build()` of a Model makes one",
            ),
            (
                "kpm::occupations(h, #{ temperature: 0.1, moments: 64 })",
                "no effect without `temperature: 0.0`",
                "leave",
            ),
            ("kpm::occupations(h, #{ temperature: -0.1 })", "option `temperature` is -0.1", "at least 0"),
            ("kpm::occupations(h, #{ potential: 1.0 / 0.0 })", "", ""),
            (
                "kpm::occupations(h, #{ broadening: 0.1, moments: 64 })",
                "the options `broadening` and `moments` exclude each other",
                "leave one of them out",
            ),
            ("kpm::fermi(window(-1.0, 1.0), #{ temperature: 1e-7 })", "", "terms"),
        ],
    );
}
