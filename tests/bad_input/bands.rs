//! Bands, their topology and bonds by distance that cannot be.

use super::{engine, fail};

#[test]
fn bands_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let g = model(lattice::honeycomb(1, 1)); g.nearest(-1.0);\n\
             let open = model(lattice::chain(4).boundary(\"open\")); open.nearest(-1.0);\n\
             let h = tight_binding(lattice::chain(8), #{ hopping: -1.0 });",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("open.bloch(0.1)", "open in every direction", "periodic"),
            ("g.bloch(0.1)", "a momentum of 1 numbers for 2 periodic directions", "reciprocal"),
            ("g.bloch([0.1, \"x\"])", "a momentum is an array of numbers", ""),
            ("g.bloch([0.0 / 0.0, 0.1])", "a momentum of NaN", ""),
            ("g.bloch_velocity([0.0, 0.0], 2)", "axis 2", "from 0"),
            ("bands(g, #{})", "is no path of named corners", "path"),
            ("bands(g, #{ path: [[\"G\", [0.0, 0.0]]] })", "a path of 1 corners", "path"),
            ("bands(g, #{ path: [[\"G\", [0.0]], [\"X\", [0.5]]] })", "corner `G`", "one finite number"),
            ("bands(g, #{ path: [[\"G\", [0.0, 0.0]], [\"G\", [0.0, 0.0]]] })", "are one point", ""),
            (
                "bands(g, #{ path: [[\"G\", [0.0, 0.0]], [\"X\", [0.5, 0.0]]], project: #{ a: [7] } })",
                "row 7 of `a`",
                "",
            ),
            ("chern_number(g, #{ filled: 3 })", "3 filled bands of 2", "below the gap"),
            ("chern_number(g, #{ filled: 1, grid: 12 })", "no gap above band 1", "bands"),
            ("chern_number(g, #{ filled: 1, plane: [0, 0] })", "span no plane", "different"),
            ("chern_number(g, #{ filled: 1, at: 0.5 })", "1 momenta beside a plane", "0"),
            ("z2(g, #{ filled: 1 })", "no time reversal of half-integer spin", "Kramers"),
            ("wilson_loop(g, #{ filled: 1, direction: 2 })", "a loop along direction 2", "from 0"),
            ("band_density(g, #{ range: [1.0, 1.0] })", "energies from 1 to 1", ""),
            ("brillouin(g, |k| \"x\")", "the function gives", "a number"),
            ("brillouin(g, |k| 1.0, #{ grid: [4] })", "a grid [4] in 2 periodic directions", ""),
            ("lattice::points([])", "a set of no points", ""),
            ("lattice::points([[0.0, 0.0], [1.0]])", "point 1 has 1 coordinates", ""),
            ("model(lattice::points([[0.0], [0.0]])).hop_within(1.0, 1.0)", "lie at one place", ""),
            ("model(lattice::points([[0.0], [5.0]])).hop_within(1.0, 1.0)", "no two sites", "cutoff"),
            ("g.hop_within(-1.0, 1.0)", "within a distance of -1", ""),
        ],
    );
}
