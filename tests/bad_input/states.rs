//! States as vectors, in time and at temperatures.

use super::{engine, fail, prepare};

#[test]
fn states_as_vectors_and_in_time() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 4); let h = models::heisenberg(c); let psi = product_state(c, [\"Up\", \"Dn\", \
         \"Up\", \"Dn\"], #{ Sz: 0 }); \
         let up = opsum(); up.add(1.0, \"S+\", 0); let mixed = opsum(); mixed.add(1.0, \"S+\", 0); mixed.add(1.0, \
         \"Sz\", 1); \
         let far = opsum(); far.add(1.0, \"Sz\", 0, \"Sz\", 2); let beyond = opsum(); beyond.add(1.0, \"Sz\", 9); \
         let all_up = product_state(c, [\"Up\", \"Up\", \"Up\", \"Up\"], #{ Sz: 2 }); let none = dmrg::apply(up, \
         all_up); \
         let small = product_state(sites(\"S=1/2\", 2), [\"Up\", \"Dn\"], #{ Sz: 0 }); let free = product_state(c, \
         [\"Up\", \"Up\", \"Up\", \"Up\"], #{}); \
         let one = product_state(sites(\"S=1/2\", 1), [\"Up\"], #{}); let field = opsum(); field.add(1.0, \"Sx\", 0);",
    );
    fail(
        &mut engine,
        &[
            ("dmrg::apply(mixed, psi)", "and the term `1.0 Sz(1)` by 0", "one by one"),
            ("dmrg::apply(beyond, psi)", "site 9 outside a chain of 4 sites", "from 0 to 3"),
            ("dmrg::apply(h, small)", "a Hamiltonian of 4 sites", "same sites"),
            ("dmrg::apply(h, psi, #{ cutoff: 1.5 })", "`cutoff` is 1.5", "to discard"),
            ("dmrg::apply(h, psi, #{ states: 0 })", "`states` is 0", "at least 1"),
            ("dmrg::combine([])", "a sum of no states", "combine"),
            ("dmrg::combine([psi])", "array of pairs", "combine"),
            ("dmrg::combine([[1.0, psi], [0.0 / 0.0, psi]])", "coefficient", "finite"),
            ("dmrg::combine([[1.0, psi], [1.0, all_up]])", "different sectors", "sector"),
            ("dmrg::combine([[1.0, psi], [1.0, small]])", "different chains", "same chain"),
            ("dmrg::combine([[1.0, psi], [1.0, free]])", "different conserved numbers", ""),
            ("psi.element(h, small)", "a Hamiltonian of 4 sites", "same sites"),
            ("none.expect(\"Sz\")", "zero state", "annihilated"),
            ("none.normalised", "zero state", "`norm` is 0"),
            ("none.entropy", "zero state", "`norm` is 0"),
            ("none.sample(1)", "zero state", "`norm` is 0"),
            ("psi.sample(-1)", "-1 configurations", "none or more"),
            ("psi.renyi(-0.5)", "order -0.5", "von Neumann"),
            ("psi.spectrum_by_sector(3)", "no bond 3", "between sites"),
            ("psi.reduced([])", "array of their numbers", "from 0 to 3"),
            ("psi.reduced([2, 1])", "ascending", "from 0 to 3"),
            ("psi.reduced([9])", "ascending", "from 0 to 3"),
            ("psi * (1.0 / 0.0)", "not finite", ""),
            (
                "dmrg::evolve(h, psi, 1.0)",
                "the argument `psi` takes a DmrgState, not an OpSum",
                "dmrg::finite",
            ),
            (
                "dmrg::evolve(psi, h, \"late\")",
                "the argument `t` takes a number or a Complex, not `late`",
                "t: float or Complex",
            ),
            ("dmrg::evolve(psi, h, 1.0, #{ step: 0.0 })", "option `step` is 0", "it must be above 0"),
            ("dmrg::evolve(psi, h, 1e9)", "the time 1000000000.0 in steps of 0.05", "too many"),
            ("dmrg::evolve(psi, h, 0.0 / 0.0)", "over the time NaN", "a finite number"),
            ("dmrg::evolve(psi, h, 1.0, #{ method: \"rk4\" })", "no method `rk4`", "tdvp1"),
            ("dmrg::evolve(psi, |t| 2.0 * t, 1.0)", "at time 0.0 is of type float", "h0 + h1"),
            ("dmrg::evolve(psi, |t| h * (1.0 - t), 1.0 - 0.5 * I)", "a function of time over", "imaginary"),
            (
                "dmrg::evolve(psi, |t| h * (if t < 0.33 { 1.0 } else { 2.0 }), 1.0)",
                "jumps at the time 0.33",
                "end one evolution",
            ),
            ("dmrg::evolve(psi, h, 1.0, #{ from: 2.0 })", "does not depend on time", "h0 + h1"),
            ("dmrg::evolve(psi, |t| h, 1.0, #{ from: 0.0 / 0.0 })", "not a number", ""),
            (
                "dmrg::evolve(psi, |t| if t > 0.5 { up } else { h }, 1.0)",
                "at time 0.618: the term",
                "leave Sz out",
            ),
            (
                "dmrg::evolve(free, |t| if t > 0.5 { up } else { h }, 1.0, #{ method: \"tebd\" })",
                "not Hermitian",
                "conjugate",
            ),
            ("dmrg::turned(psi, 2.0)", "a number where a Matrix", "unitary"),
            ("dmrg::turned(psi, identity(3))", "9 elements on site 0", "2 x 2"),
            ("dmrg::turned(psi, 2.0 * identity(2))", "not unitary", "orthonormal"),
            ("dmrg::turned(psi, [identity(2)])", "1 matrices", "one for each"),
            (
                "dmrg::turned(psi, matrix([[0.0, 1.0], [1.0, 0.0]]))",
                "mixes states of different conserved numbers",
                "sector empty",
            ),
            (
                "dmrg::metts(h, c, #{ beta: 1.0, samples: 1 })",
                "option `samples` is 1",
                "it must be at least 2",
            ),
            (
                "dmrg::metts(h, c, #{ beta: 1.0, warmup: -1 })",
                "option `warmup` is -1",
                "it must be at least 0",
            ),
            // A state that cannot become entangled.
            ("dmrg::metts(h, c, #{ beta: 1.0, method: \"tdvp1\" })", "no method `tdvp1`", "\"tebd\""),
            ("dmrg::thermal(h, c, #{ beta: 1.0, method: \"tdvp1\" })", "no method `tdvp1`", "\"tebd\""),
            ("dmrg::metts(h, c, #{ beta: -1.0 })", "option `beta` is -1", "at least 0"),
            (
                "dmrg::metts(c, h, #{ beta: 1.0 })",
                "the argument `h` takes an OpSum, not Sites",
                "chain: Sites",
            ),
            ("dmrg::metts(h, c, #{ beta: 1.0, bases: \"x\" })", "no bases `x`", "random"),
            (
                "dmrg::metts(h, c, #{ beta: 1.0, sector: #{ Sz: 0 }, bases: \"random\" })",
                "the options `sector` and `bases: \"random\"` exclude each other",
                "leave one of them out",
            ),
            (
                "dmrg::metts(h, c, #{ beta: 1.0, sector: #{ Sz: 0 }, scramble: -1.0 })",
                "option `scramble` is -1",
                "it must be at least 0",
            ),
            ("dmrg::metts(h, c, #{ beta: 1.0, observe: |s| 1.0 })", "an observation of type float", "a map"),
            (
                "dmrg::metts(h, c, #{ beta: 1.0, observe: |s| #{ a: \"x\" } })",
                "`a` is of type string",
                "real numbers",
            ),
            (
                "dmrg::metts(h, c, #{ beta: 1.0, observe: |s| #{ energy: 1.0 } })",
                "by the name `energy`",
                "a column",
            ),
            ("dmrg::evolve(psi, h, 1.0, #{ order: 3 })", "option `order` is 3", "2 or 4"),
            ("dmrg::evolve(psi, h, 1.0, #{ expand: -1 })", "option `expand` is -1", "it must be at least 0"),
            ("dmrg::evolve(psi, h, 1.0, #{ cutoff: 2.0 })", "`cutoff` is 2", "to discard"),
            ("dmrg::evolve(psi, up, 1.0)", "changes Sz by 1", "leave Sz out"),
            ("dmrg::evolve(free, up, 1.0)", "not Hermitian", "conjugate"),
            ("dmrg::evolve(free, up, 1.0, #{ method: \"tebd\" })", "not Hermitian", "conjugate"),
            ("dmrg::evolve(psi, far, 1.0, #{ method: \"tebd\" })", "beyond the next site", "tdvp"),
            ("dmrg::evolve(one, field, 1.0, #{ method: \"tebd\" })", "one site", "tdvp"),
            ("dmrg::evolve(none, h, 1.0)", "zero state", "`norm`"),
            ("dmrg::evolve(psi, h, 1.0, #{ checkpoint: \"no/such/x.dmrg\" })", "cannot be written", "folder"),
            (
                "solve::exponential(sparse([0, 1], [1, 1], [1.0, 0.0]), unit_block(sparse([0, 1], [1, 1], [1.0, 0.0]), \
                 [1]), 1.0)",
                "Hermitian operator, and this one is not",
                "h.dagger()",
            ),
            (
                "solve::exponential(exact::operator(h, c), random_block(exact::operator(h, c), 1), 1e4)",
                "too large for a number",
                "in steps",
            ),
            (
                "solve::exponential(exact::operator(h, c) + 50.0, random_block(exact::operator(h, c), 1), -1e3)",
                "too small for a number",
                "in steps",
            ),
            (
                "solve::exponential(exact::operator(h, c), random_block(exact::operator(h, c), 2), 1.0)",
                "2 columns",
                "one vector",
            ),
            ("dmrg::spectral(psi, h, up, #{ moments: 7 })", "option `moments` is 7", "even"),
            ("dmrg::spectral(all_up, h, up)", "annihilates", "norm"),
            (
                "dmrg::spectral(psi, h, far, #{ window: window(-0.1, 0.1), moments: 200 })",
                "leaves the window",
                "wider",
            ),
            ("dmrg::thermal(h, c, #{ beta: -1.0 })", "option `beta` is -1", "at least 0"),
            ("dmrg::thermal(h, c, #{ beta: [] })", "option `beta` is empty", "one number at least"),
            ("dmrg::thermal(h, c, #{ beta: 1.0, sector: #{ Sz: 5 } })", "Sz", ""),
            ("dmrg::purified(sites(\"Boson\", 2, #{ nmax: 20 }), #{})", "beside its copy", "nmax"),
            (
                "exact::thermal(h, c, #{ beta: 1.0, vectors: 1 })",
                "option `vectors` is 1",
                "it must be at least 2",
            ),
            (
                "exact::thermal(h, c, #{ beta: 1.0, steps: 1 })",
                "option `steps` is 1",
                "it must be at least 2",
            ),
            ("exact::thermal(h, c, #{ beta: [-1.0] })", "option `beta` is -1", "at least 0"),
        ],
    );
}
