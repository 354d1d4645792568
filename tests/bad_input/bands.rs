//! Bands, their topology and bonds by distance that cannot be.

use super::{engine, fail};

#[test]
fn bands_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let g = model(lattice::honeycomb(1, 1)); g.nearest(-1.0);\n\
             let one = model(lattice::chain(1), 2); one.onsite(diagonal(series([1.0, -1.0])));\n\
             let open = model(lattice::chain(4).boundary(\"open\")); open.nearest(-1.0);\n\
             let metal = model(lattice::square(1, 1), 2); metal.hop([1, 0], diagonal(series([1.0, -1.0])));\n\
             metal.onsite(diagonal(series([0.137, -0.1])));\n\
             let far = model(lattice::custom([[1.0]], #{ sites: [[0.0], [2e4]], bonds: [[[0], 0, 1]] })); \
             far.nearest(-1.0);\n\
             let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("open.bloch(0.1)", "open in every direction", "periodic"),
            (
                "let m = model(lattice::cubic(1, 1, 1)); for a in 0..3 { let s = [0, 0, 0]; s[a] = 3000000; m.hop(s, \
                 1.0); } m.bloch([0.1, 0, 0])",
                "too often to be counted",
                "by cells",
            ),
            ("g.bloch(0.1)", "a momentum of 1 numbers for 2 periodic directions", "reciprocal"),
            ("g.bloch([0.1, \"x\"])", "a momentum is an array of numbers", ""),
            ("g.bloch([0.0 / 0.0, 0.1])", "a momentum of NaN", ""),
            ("g.bloch_velocity([0.0, 0.0], 2)", "axis 2", "from 0"),
            ("bands(g, #{})", "option `path` is needed", "corners"),
            ("bands(g, #{ path: [1] })", "is no path of named corners", "path"),
            ("bands(g, #{ path: [[\"G\", [0.0, 0.0]]] })", "a path of 1 corners", "path"),
            ("bands(g, #{ path: [[\"G\", [0.0]], [\"X\", [0.5]]] })", "corner `G`", "one finite number"),
            ("bands(g, #{ path: [[\"G\", [0.0, 0.0]], [\"G\", [0.0, 0.0]]] })", "are one point", ""),
            (
                "bands(g, #{ path: [[\"G\", [0.0, 0.0]], [\"X\", [0.5, 0.0]]], project: #{ a: [7] } })",
                "row 7 of `a`",
                "",
            ),
            (
                "bands(g, #{ path: [[\"G\", [0.0, 0.0]], [\"X\", [0.5, 0.0]]], project: #{ a: [0, 0] } })",
                "row 0 stands twice",
                "once",
            ),
            (
                "bands(g, #{ path: [[\"G\", [0.0, 0.0]], \"|\", [\"X\", [0.5, 0.0]]] })",
                "a path of 1 corners",
                "path",
            ),
            ("chern_number(g, #{ filled: 3 })", "3 filled bands of 2", "below the gap"),
            ("chern_number(g, #{ filled: 1, grid: 12 })", "no gap above band 1", "bands"),
            ("chern_number(metal, #{ filled: 1 })", "too small for a Chern number, or closed", "bands"),
            ("chern_number(g, #{ filled: 1, plane: [0, 0] })", "span no plane", "different"),
            ("chern_number(one, #{ filled: 1 })", "a plane of momenta takes two directions", "Berry phase"),
            ("chern_number(g, #{ filled: 1, at: 0.5 })", "1 momenta beside a plane", "0"),
            ("bloch::z2(g, #{ filled: 1 })", "no time reversal of half-integer spin", "Kramers"),
            ("bloch::wilson_loop(g, #{ filled: 1, direction: 2 })", "a loop along direction 2", "from 0"),
            ("bloch::wilson_loop(far, #{ filled: 1 })", "orbitals that lie 20000 cells apart", "in one cell"),
            (
                "bloch::berry_phase(g, [[0.0, 0.0], [0.5, 0.0]], #{ filled: 1 })",
                "is not closed",
                "whole numbers",
            ),
            ("bloch::berry_phase(g, [], #{ filled: 1 })", "a path of no momenta", "begins"),
            ("bloch::berry_phase(g, [[0.1, 0.1], [0.1, 0.1]], #{ filled: 1 })", "a path of one momentum", ""),
            (
                "bloch::berry_phase(g, [0.0, 1.0], #{ filled: 1 })",
                "the momentum [0.0] on a path in 2",
                "reciprocal",
            ),
            ("bloch::berry_phase(g, [[0.0, 0.0], [1.0, 0.0]])", "a Berry phase of no bands", "`filled`"),
            (
                "bloch::berry_phase(g, [[0.0, 0.0], [1.0, 0.0]], #{ bands: 0 })",
                "0 among numbers of bands",
                "from 1",
            ),
            ("bloch::berry_phase(g, [[0.0, 0.0], [1.0, 0.0]], #{ bands: [3] })", "band 3 of 2", "`band1`"),
            ("bloch::berry_phase(g, [[0.0, 0.0], [1.0, 0.0]], #{ bands: [1.0] })", "and has 1.0", "a point"),
            (
                "bloch::berry_phase(g, [[0.0, 0.0], [1.0, 0.0]], #{ bands: [2, 1, 2] })",
                "band 2 twice",
                "each band once",
            ),
            (
                "bloch::berry_phase(g, [[0.0, 0.0], [1.0, 0.0]], #{ filled: 9 })",
                "9 filled bands of a model that has 2",
                "below",
            ),
            (
                "bloch::berry_phase(g, [[1.0 / 3.0, 2.0 / 3.0], [4.0 / 3.0, 2.0 / 3.0]], #{ filled: 1 })",
                "no gap above band 1",
                "bands",
            ),
            ("bloch::wannier_centres(g, #{ filled: 3 })", "3 filled bands of 2", ""),
            ("bloch::wannier_centres(g, #{ filled: 1, plane: [1, 1] })", "span no plane", "different"),
            ("bloch::conductivity(g, #{ energies: [0.0] })", "without scattering", "`eta`"),
            (
                "bloch::conductivity(g, #{ energies: [0.0], eta: 0.1, intraband: true })",
                "the current within bands at zero temperature",
                "temperature",
            ),
            (
                "bloch::conductivity(g, #{ energies: [0.0], direction: \"xy\", temperature: 0.1, intraband: true })",
                "without scattering is infinite",
                "`eta`",
            ),
            (
                "bloch::conductivity(g, #{ energies: [0.0 / 0.0], direction: \"xy\" })",
                "option `energies` holds NaN",
                "",
            ),
            ("bloch::conductivity(g, #{ energies: [0.0], direction: \"xz\" })", "the axis z", "Cartesian"),
            (
                "bloch::conductivity(g, #{ energies: [0.0], direction: \"xy\", carries: identity(3) })",
                "where 2 x 2 are needed",
                "rows of the cell",
            ),
            (
                "bloch::conductivity(g, #{ energies: [0.0], direction: \"xy\", carries: I * pauli().x })",
                "not Hermitian",
                "rows of the cell",
            ),
            ("kpm::ldos_map(h, [0], [0.0 / 0.0])", "an energy that is not a number", "division"),
            ("bloch::optical_conductivity(g, #{ frequencies: [0.1], grid: [4] })", "a grid [4] in 2", ""),
            (
                "let p = model(lattice::chain(1)); p.nearest(-1.0); p.pairing(0.1); bloch::optical_conductivity(p, #{ \
                 frequencies: [0.1] })",
                "of a superconductor",
                "electrons alone",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.1], direction: \"xx\" })",
                "a `direction` of \"xx\"",
                "three letters",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.1], direction: \"xqx\" })",
                "a `direction` of \"xqx\"",
                "three letters",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.1], direction: \"xxz\" })",
                "the axis z",
                "Cartesian",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.1], process: \"direct\" })",
                "no process `direct`",
                "rectified",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.1], eta: 0.0 })",
                "option `eta` is 0",
                "above 0",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.0 / 0.0] })",
                "option `frequencies` holds NaN",
                "division",
            ),
            (
                "bloch::second_order_conductivity(g, #{ frequencies: [0.1], grid: [4] })",
                "a grid [4] in 2",
                "one for each",
            ),
            (
                "let p = model(lattice::chain(1)); p.nearest(-1.0); p.pairing(0.1); \
                 bloch::second_order_conductivity(p, #{ frequencies: [0.1] })",
                "of a superconductor",
                "electrons alone",
            ),
            ("kpm::ldos(h, 0, #{ kpoints: 2 })", "momenta of a value", "the model itself"),
            ("kpm::green(h, 0, 0, #{ kpoints: 2 })", "momenta of a value", "the model itself"),
            ("kpm::ldos(g, 0)", "one of an Operator", "m.build()"),
            ("kpm::ldos(g, 9, #{ kpoints: 2 })", "", ""),
            ("bloch::density(g, #{ range: [1.0, 1.0] })", "energies from 1 to 1", ""),
            ("bloch::brillouin(g, |k| \"x\")", "the function gives", "a number"),
            ("bloch::brillouin(g, |k| 1.0, #{ grid: [4] })", "a grid [4] in 2 periodic directions", ""),
            ("lattice::points([])", "a set of no points", ""),
            ("lattice::points([[0.0, 0.0], [1.0]])", "point 1 has 1 coordinates", ""),
            ("model(lattice::points([[0.0], [0.0]])).hop_within(1.0, 1.0)", "lie at one place", ""),
            ("model(lattice::points([[0.0], [5.0]])).hop_within(1.0, 1.0)", "no two sites", "cutoff"),
            ("g.hop_within(-1.0, 1.0)", "within a distance of -1", ""),
            ("g.hop_within(1.1, |a| 1.0)", "takes another number of arguments than 2", "|a, b|"),
            ("g.hop_within(1.1, |a, b, c| 1.0)", "takes another number of arguments than 2", "|a, b|"),
            ("eigs(h, #{ count: 2 })", "near", ""),
            ("eigs(h, #{ near: 0.0, count: 9 })", "9 eigenpairs of an operator with 8 rows", "count"),
            ("eigs(h, #{ near: 0.0 / 0.0 })", "option `near` is not a number", "division"),
            ("eigs(h, #{ near: 0.0, tol: 0.0 })", "option `tol` is 0", "above 0"),
            ("eigs(I * h, #{ near: 0.0 })", "Hermitian", ""),
            ("eigs(h, #{ near: 0.0, method: \"lu\" })", "no method `lu`", "shift-invert"),
            (
                "eigs(tight_binding(lattice::chain(300), #{ precision: \"single\" }), #{ near: 0.1, method: \
                 \"shift-invert\" })",
                "in double precision",
                "products only",
            ),
        ],
    );
}

#[test]
fn samples_and_leads_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let c = model(lattice::chain(1)); c.nearest(-1.0);\n\
             let none = model(lattice::chain(1));\n\
             let two = model(lattice::chain(3).boundary(\"open\"), 2); two.nearest(-1.0);\n\
             let m = model(lattice::chain(4).boundary(\"open\")); m.nearest(-1.0);\n\
             let right = transport::lead(c, #{ side: 1 });\n\
             let s = transport::system(m, #{ leads: [right] });\n\
             let spin = model(lattice::chain(1), 2); spin.nearest(-1.0); spin.onsite(0.1 * pauli().z);\n\
             let both = model(lattice::chain(3).boundary(\"open\"), 2); both.nearest(-1.0);\n\
             let up = transport::lead(spin, #{ side: 1, conserves: pauli().z });\n\
             let wide = model(lattice::square(1, 3).boundary([\"periodic\", \"open\"])); wide.nearest(-1.0);\n\
             let turned = model(lattice::square(1, 3).boundary([\"periodic\", \"open\"])); turned.nearest(-1.0);\n\
             turned.flux(0.1, 0, 1);\n\
             let dots = model(lattice::square(3, 3).boundary(\"open\")); dots.nearest(-1.0);\n\
             dots.remove(|r| r[0] == 2.0 && r[1] == 2.0);\n\
             let dimer = model(lattice::custom([[2.0]], #{ cells: [1], sites: [[0.0], [1.0]], bonds: [[[0], 0, 1]] \
             }));\n\
             dimer.nearest(-0.5); dimer.hop([-1], 0, 1, -1.0);\n\
             let dimer_end = transport::lead(dimer, #{ side: 1 });\n\
             let ends = [-1, 1].map(|side| transport::lead(c, #{ side: side }));\n\
             let wire = transport::system(m, #{ leads: ends });\n\
             let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });\n\
             let p = tight_binding(lattice::square(5, 5), #{ hopping: -1.0 });\n\
             let d = tight_binding(lattice::square(5, 5).boundary(\"open\"), #{ hopping: -1.0 });",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            (
                "transport::lead(c, #{ side: 1, conserves: pauli().z })",
                "a matrix of 2 x 2, where 1 x 1",
                "orbitals",
            ),
            (
                "transport::lead(spin, #{ side: 1, conserves: I * pauli().z })",
                "a matrix that is not Hermitian",
                "orbitals",
            ),
            ("transport::lead(spin, #{ side: 1, conserves: pauli().y })", "does not conserve", "commute"),
            (
                "transport::system(m, #{ leads: [right] }).transmission(0, 0, 0.1, #{ sends: 0.5 })",
                "channels of lead 0 that carry 0.5",
                "local matrix",
            ),
            (
                "transport::system(both, #{ leads: [up] }).transmission(0, 0, 0.1, #{ takes: 0.5 })",
                "channels of lead 0 that carry 0.5",
                "are -1.0, 1.0",
            ),
            (
                "transport::system(both, #{ leads: [up] }).density(0, 0.1, #{ carries: pauli().x * I })",
                "what is carried",
                "",
            ),
            (
                "s.currents(0, 0.1, #{ carries: pauli().x })",
                "a matrix of 2 x 2, where 1 x 1",
                "orbitals of every site",
            ),
            ("transport::contact([], -0.1 * I)", "a self-energy of no sites", "one site"),
            ("transport::contact([1, 1], -0.1 * I)", "site 1 twice", "once"),
            ("transport::contact([-1], -0.1 * I)", "site -1 is negative", "numbered from 0"),
            (
                "transport::contact([0], \"metal\")",
                "a self-energy that is a text",
                "a function of the energy",
            ),
            (
                "transport::system(m, #{ leads: [transport::contact([99], I)] })",
                "site 99 of a sample",
                "from 0",
            ),
            (
                "transport::system(m, #{ leads: [transport::contact([0], 0.1 * I)] }).transmission(0, 0, 0.1)",
                "an escape rate of -2",
                "zero or below",
            ),
            (
                "transport::system(m, #{ leads: [transport::contact([0], -I * identity(2))] }).transmission(0, 0, 0.1)",
                "a self-energy of 2 x 2 for 1 rows",
                "one number for all",
            ),
            (
                "transport::system(m, #{ leads: [transport::contact([0], |e| 1.0 / 0.0)] }).density(0, 0.1)",
                "not finite",
                "division",
            ),
            (
                "transport::system(m, #{ leads: [transport::contact([0], |e| \"no\")] }).currents(0, 0.1)",
                "a self-energy that is a text",
                "Matrix",
            ),
            (
                "transport::system(m, #{ leads: [transport::contact([0], || I)] }).scattering(0.1)",
                "takes another number",
                "|a|",
            ),
            ("wire.shot_noise(0, 2, 0.1)", "lead 2 of 2", "from 0"),
            ("wire.shot_noise(0, -1, 0.1)", "lead -1", "from 0"),
            (
                "let end = model(lattice::chain(1), 2); end.nearest(-1.0); end.pairing(0.0); \
                 let own = model(lattice::chain(3).boundary(\"open\"), 2); own.nearest(-1.0); own.pairing(0.0); \
                 let told = transport::lead(end, #{ side: -1, conserves: kron(identity(2), pauli().z) }); \
                 transport::system(own, #{ leads: [told] }).conductance(0.1)",
                "the conductance of lead 0",
                "eigenvalues",
            ),
            (
                "let end = model(lattice::chain(1)); end.nearest(-1.0); end.pairing(0.0); \
                 let own = model(lattice::points([[0.0]])); own.pairing(0.1); \
                 transport::system(own, #{ leads: [transport::lead(end, #{ side: 1 })] }).shot_noise(0, 0, 0.1)",
                "electrons and holes",
                "scattering",
            ),
            ("wire.resistance([0, 0], [0, 1], 0.1)", "from lead 0 to itself", "another"),
            ("wire.resistance([0], [0, 1], 0.1)", "a current of 1 leads", "[0, 1]"),
            ("wire.resistance([0, 1], [0, 1, 1], 0.1)", "a voltage of 3 leads", "[0, 1]"),
            ("wire.resistance([0, 1], [0, 2], 0.1)", "lead 2 of 2", "from 0"),
            ("wire.resistance([0, 1], [0, 1], 2.5)", "no current goes through lead 0", "channels"),
            (
                "transport::system(model(lattice::points([[0.0], [9.0]])), #{ leads: \
                 [0, 1].map(|i| transport::contact([i], -I)) }).resistance([0, 1], [0, 1], 0.0)",
                "no current",
                "channels",
            ),
            (
                "transport::system(model(lattice::points([[0.0], [9.0]])), #{ leads: \
                 [0, 1, 0, 1].map(|i| transport::contact([i], -I)) }).resistance([0, 2], [0, 1], 0.0)",
                "no current joins leads 0 and 1",
                "which leads are joined",
            ),
            ("transport::lead(c, #{})", "side", ""),
            ("transport::lead(c, #{ side: 2 })", "option `side` is 2", "1 or -1"),
            ("transport::lead(m, #{ side: 1 })", "open in every direction", "periodic"),
            (
                "transport::lead(model(lattice::square(1, 1)), #{ side: 1 })",
                "2 periodic directions",
                "along which it goes",
            ),
            (
                "transport::lead(model(lattice::square(1, 1)), #{ side: 1, along: 2 })",
                "along direction 2 of 2",
                "from 0",
            ),
            ("transport::lead(c, #{ side: 1, along: -1 })", "option `along` is -1", "at least 0"),
            (
                "transport::lead(model(lattice::square(1, 2).boundary([\"periodic\", \"open\"])), #{ side: 1, along: 1 \
                 })",
                "along direction 1, which is open",
                "periodic",
            ),
            ("transport::lead(none, #{ side: 1 })", "not joined", "hoppings"),
            ("transport::lead(c, #{ side: 1, origin: [1, 2] })", "an origin of 2 cells", ""),
            ("transport::lead(turned, #{ side: 1 })", "vector potential grows along it", "a and 0"),
            ("transport::system(m, #{ leads: [] })", "without leads", "one lead"),
            ("transport::system(m, #{ leads: [1] })", "a lead that is a number", "transport::lead"),
            ("transport::system(c, #{ leads: [right] })", "periodic along it", "open"),
            ("transport::system(two, #{ leads: [right] })", "lead 0 has 1 orbitals", ""),
            (
                "transport::system(dots, #{ leads: [transport::lead(wide, #{ side: 1 })] })",
                "where a lead begins",
                "whole cell",
            ),
            (
                "transport::system(dots, #{ leads: [transport::lead(wide, #{ side: 1, origin: [0, 9] })] })",
                "fits the sample nowhere",
                "origin",
            ),
            ("s.transmission(0, 1, 0.0)", "lead 1 of 1", "from 0"),
            ("s.transmission(-1, 0, 0.0)", "lead -1", "from 0"),
            ("s.transmission(0, 0, 0.0 / 0.0)", "at an energy of NaN", ""),
            ("right.channels(2.0)", "a lead has the edge of a band", "to one side"),
            ("s.transmission(0, 0, -2.0)", "the transmission has no limit", "move the energy"),
            ("s.scattering(2.0)", "the edge of a band", ""),
            ("right.modes(2.0)", "the edge of a band", "move the energy"),
            ("right.waves(-2.0)", "the edge of a band", "move the energy"),
            ("right.modes(0.0 / 0.0)", "at an energy of NaN", "finite"),
            ("right.modes([0.1])", "an energy that is", "a real number"),
            ("s.waves(1, 0.0)", "lead 1 of 1", "from 0"),
            ("s.waves(0, 2.0)", "the edge of a band", ""),
            ("dimer_end.surface(0.0)", "the end of a lead has a level", "infinite"),
            ("s.transmission(0, 0, \"x\")", "an energy is a number", ""),
            ("markers::chern(h, #{})", "filled", ""),
            ("markers::chern(h, #{ filled: 2 })", "two dimensions", "two directions"),
            ("markers::chern(p, #{ filled: 1 })", "not open in both", "Bott"),
            ("markers::bott(d, #{ filled: 1 })", "that is open", "periodic"),
            ("markers::bott(p, #{ filled: 2 })", "end inside a multiplet", "all of its states"),
            (
                "markers::bott(tight_binding(lattice::square(1, 8)), #{ filled: 1 })",
                "with 1 places",
                "more cells",
            ),
            ("markers::bott(p, #{ filled: 26 })", "26 filled states of 25", ""),
            ("markers::entanglement(h, #{ filled: 1 })", "option `rows` is needed", "the part"),
            ("markers::entanglement(h, #{ filled: 1, rows: [1, 1] })", "row 1 of a part", "each once"),
            ("markers::entanglement(h, #{ filled: 1, rows: [-1] })", "row -1", ""),
            (
                "let free = model(lattice::chain(2).boundary(\"open\")); free.pairing([1], 0.0, #{ spin: \"none\" });
                markers::entanglement(free.build(), #{ filled: 2, rows: [0, 1] })",
                "4 levels at zero make 4 ground states",
                "away from zero",
            ),
            ("markers::level_ratio([1.0, 2.0])", "the spacings of 2 levels", "three"),
            ("markers::level_ratio([1.0, 0.0 / 0.0, 2.0, 3.0])", "level 1 of 4 is NaN", "leave"),
            ("markers::level_ratio([1.0, 1.0, 1.0])", "all one", ""),
            ("markers::participation(zeros(h, 1))", "column 0 of a block is zero", ""),
        ],
    );
}
