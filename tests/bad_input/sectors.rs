//! Symmetries of exact sectors, vectors of these, and what evolves there.

use super::{engine, fail, prepare};

#[test]
fn sectors_that_cannot_be() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 6); let f = sites(\"Fermion\", 4); let h = models::heisenberg(c, #{ periodic: true \
         }); \
         let open = models::heisenberg(c); let one = opsum(); one.add(1.0, \"Sz\", 0); \
         let t = |k| #{ Sz: 0, symmetries: [exact::translation(c, k)] }; \
         let basis = exact::basis(c, t.call(0)); let plain = exact::basis(c, #{ Sz: 0 }); \
         let op = exact::operator(h, basis); let v = unit_block(op, [0]); let torus = lattice::square(3, 2); \
         let twisted = lattice::square(3, 3).boundary([\"periodic\", lattice::twisted(0.3)]);",
    );
    fail(
        &mut engine,
        &[
            ("exact::translation(c, 0.3)", "momentum 0.3", "2 pi k"),
            ("exact::translation(c, \"x\")", "a momentum is a number", ""),
            (
                "exact::translation(c, 0, #{ step: 4 })",
                "cells of 4 sites do not fill a ring of 6",
                "multiple",
            ),
            ("exact::translation(torus, 2, 0)", "direction 2 of a lattice of 2 directions", "from 0"),
            ("exact::translation(torus, -1, 0)", "direction -1", "from 0"),
            (
                "exact::basis(c, #{ symmetries: [exact::permutation([0, 1, 2, 3, 4, 5], 1.0 * I)] })",
                "it is the identity",
                "with 1",
            ),
            (
                "exact::translation(lattice::chain(4).boundary(\"open\"), 0, 0)",
                "where the lattice ends",
                "periodic",
            ),
            ("exact::translation(twisted, 1, 0)", "twisted boundary", "antiperiodic"),
            ("exact::reflection(c, 2)", "a reflection with the eigenvalue 2", "1 or -1"),
            ("exact::reflection(torus, 2, 1)", "axis 2 in a space of 2", "from 0"),
            ("exact::rotation(torus, 4, 0)", "the lattice has no rotation of order 4", "cells"),
            ("exact::rotation(torus, 0, 0)", "a rotation by a turn over 0", "whole part"),
            ("exact::spin_flip(c, 0)", "a spin flip with the eigenvalue 0", "1 or -1"),
            ("exact::permutation([0, 0], 0)", "does not name every site from 0 to 1 once", "[1, 2, 3, 0]"),
            ("exact::permutation([], 0)", "a permutation of no sites", ""),
            ("exact::permutation([0, -1], 0)", "site numbers", ""),
            ("exact::permutation([1, 0], 0.5)", "the quantum number of a permutation is 0.5", "Complex"),
            ("exact::permutation([1, 0], 0, #{ signs: [1] })", "1 signs for 2 sites", ""),
            (
                "exact::permutation([1, 0], 0, #{ signs: [1, 2] })",
                "option `signs` holds a number",
                "1 for each",
            ),
            (
                "exact::basis(c, #{ symmetries: [exact::permutation([0, 1, 2, 3, 4, 5], 0, #{ states: [\"Up\", \"Up\"] \
                 })] })",
                "two states of a site to the same",
                "every state once",
            ),
            (
                "exact::basis(c, #{ symmetries: [exact::permutation([0, 1, 2, 3, 4, 5], 0, #{ phases: [1, 2] })] })",
                "a factor whose modulus is not 1",
                "",
            ),
            (
                "exact::basis(f, #{ symmetries: [exact::permutation([0, 1, 2, 3], 0, #{ states: [\"Occ\", \"Emp\"] })] \
                 })",
                "even numbers of fermions to odd ones",
                "particles and holes",
            ),
            (
                "exact::basis(c, #{ symmetries: [exact::permutation([1, 2, 3, 4, 5, 0], 2.0 * I)] })",
                "its modulus is not 1",
                "phase",
            ),
            (
                "exact::basis(c, #{ symmetries: exact::reflection(c, 1) })",
                "`symmetries` hold a Symmetry",
                "like",
            ),
            ("exact::basis(c, #{ symmetries: [1] })", "`symmetries` hold a number", "like"),
            (
                "exact::basis(f, #{ symmetries: [exact::reflection(c, 1)] })",
                "moves 6 sites, and there are 4 Fermion sites",
                "chain or lattice",
            ),
            (
                "exact::basis(f, #{ symmetries: [exact::spin_flip(f, 1)] })",
                "none of which has a spin",
                "S=1/2",
            ),
            (
                "exact::basis(c, #{ symmetries: [exact::translation(c, 1), exact::reflection(c, 1)] })",
                "no state has both momentum 1 and reflection 1",
                "momentum k into -k",
            ),
            (
                "exact::basis(c, #{ Sz: 1, symmetries: [exact::spin_flip(c, 1)] })",
                "spin flip 1 changes Sz = 1",
                "changes its sign",
            ),
            (
                "exact::basis(c, #{ Sz: 3, symmetries: [exact::translation(c, 1)] })",
                "no state of 6 S=1/2 sites, Sz = 3, momentum 1",
                "vanishes",
            ),
            ("exact::operator(open, c, t.call(0))", "not invariant under momentum 0", "project"),
            ("exact::operator(one, basis)", "not invariant under momentum 0", "project"),
            (
                "exact::operator(one, c, #{ from: t.call(0) })",
                "names both, and nothing else",
                "from: #{ Sz: 0 }",
            ),
            ("exact::operator(one, c, #{ from: 1, to: 2 })", "the sector `from` is a number", "map"),
            ("exact::operator(one, c, #{ from: plain, to: basis })", "an operator from", "same symmetries"),
            (
                "exact::operator(one, c, #{ from: basis, to: plain }, #{ matrix: false })",
                "one sector to another, matrix-free",
                "are kept",
            ),
            (
                "exact::operator(h, basis, #{ matrix: false, format: \"csr\" })",
                "the options `format` and `matrix: false` exclude",
                "",
            ),
            ("exact::unfold(v, exact::basis(c, t.call(1)))", "rows for", "belong together"),
            ("exact::entanglement(v, plain, [0])", "vectors of", "column"),
            ("exact::entanglement(v, basis, [0, 0])", "site 0 is named twice", ""),
            ("exact::entanglement(v, basis, [6])", "site 6 outside", "0 to 5"),
            ("exact::entanglement(v, basis, [-1])", "site -1 is negative", "from 0"),
            ("exact::entanglement(v * 0.0, basis, [0])", "a vector of zeros", ""),
            ("exact::entanglement(v, basis, [0], #{ alpha: -1.0 })", "option `alpha` is -1", "at least 0"),
            (
                "exact::evolve(op, v, 1.0)",
                "the argument `h` takes a function, not an Operator",
                "h: function",
            ),
            (
                "exact::evolve(|t| 1.0, v, 1.0)",
                "the Hamiltonian at a time is of type float",
                "gives an Operator",
            ),
            ("exact::evolve(|t| op, v, 1.0, #{ tol: 0.0 })", "option `tol` is 0", "it must be above 0"),
            ("exact::evolve(|t| op, v, 1e14)", "the rounding of energies", "shorter times"),
            ("exact::evolve(|t| op, v, 1e11)", "steps", "shorter times"),
        ],
    );
}
