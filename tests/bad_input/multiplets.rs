//! Sectors of total spin.

use super::{engine, fail, prepare};

#[test]
fn sectors_of_total_spin() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 6); let h = models::heisenberg(c); let e = sites(\"Electron\", 4); let z = #{ S: 0 \
         }; \
         let hubbard = models::hubbard(e, #{ U: 4.0 }); let how = #{ progress: false }; \
         let gs = dmrg::finite(h, c, #{ sector: z, progress: false }); let m = dmrg::mpo(h, c, z); \
         let l = dmrg::left_edge(m).extend().extend().grow(); let r = dmrg::right_edge(m).extend().extend().grow(); \
         let polarised = models::heisenberg(c, #{ h: 1.0 }); let one = opsum(); one.add(1.0, \"S+\", 0, \"S-\", 3);",
    );
    fail(
        &mut engine,
        &[
            (
                "dmrg::finite(h, c, #{ sector: #{ S: 4 } })",
                "no state of 6 S=1/2 sites has S = 4",
                "3 at most",
            ),
            ("dmrg::finite(h, c, #{ sector: #{ S: 0.5 } })", "has S = 1/2", "and whole otherwise"),
            ("dmrg::finite(h, c, #{ sector: #{ S: -1 } })", "a total spin of -1", "0, 1/2, 1"),
            ("dmrg::finite(h, c, #{ sector: #{ S: 0.3 } })", "no multiple of 1/2", "half"),
            ("dmrg::finite(h, c, #{ sector: #{ S: 0, Sz: 0 } })", "of S and of Sz", "leave one"),
            ("dmrg::finite(hubbard, e, #{ sector: #{ S: 0, Nup: 2 } })", "of S and of Nup", "name N and S"),
            (
                "dmrg::finite(hubbard, e, #{ sector: #{ N: 3, S: 1 } })",
                "has S = 1 with N = 3",
                "half-integer",
            ),
            (
                "dmrg::finite(hubbard, e, #{ sector: #{ N: 9, S: 0 } })",
                "no state of 4 Electron sites has N = 9",
                "from 0 to 8",
            ),
            (
                "dmrg::finite(models::heisenberg(c, #{ Delta: 0.5 }), c, #{ sector: z })",
                "is not invariant under spin rotations",
                "Sz",
            ),
            (
                "dmrg::finite(polarised, c, #{ sector: z })",
                "is not invariant under spin rotations",
                "scalar products",
            ),
            ("dmrg::finite(h + one, c, #{ sector: z })", "not Hermitian", "conjugate"),
            (
                "dmrg::finite(h, c, #{ sector: z, start: [\"Up\", \"Dn\", \"Up\", \"Dn\", \"Up\", \"Dn\"] })",
                "a product state in a sector of total spin",
                "name Sz",
            ),
            (
                "dmrg::finite(models::tv(sites(\"Fermion\", 4), #{}), sites(\"Fermion\", 4), #{ sector: #{ S: 0 } })",
                "no conserved number `S`",
                "N",
            ),
            ("superblock(l, r, #{ S: 1 })", "blocks that belong to S = 0", "other sector"),
            (
                "product_state(c, [\"Up\", \"Dn\", \"Up\", \"Dn\", \"Up\", \"Dn\"], z)",
                "a product state in a sector of total spin",
                "name Sz",
            ),
            ("gs.component(1.0)", "a component Sz = 1 of a spin 0", "from -S to S"),
            ("gs.component(0.2)", "a component Sz = 0.2", "multiple of 1/2"),
            ("gs.component(0.0).component(0.0)", "no total spin", "sector of S"),
            ("dmrg::apply(h, gs)", "stands for all components", "component(m)"),
            ("dmrg::combine([[1.0, gs], [1.0, gs]])", "stands for all components", "component(m)"),
            ("dmrg::evolve(gs, h, 1.0)", "stands for all components", "component(m)"),
            ("gs.element(h, gs)", "stands for all components", "component(m)"),
            ("gs.sample(1)", "stands for all components", "component(m)"),
            ("gs.save(\"x.npz\")", "stands for all components", "component(m)"),
            ("gs.overlap(gs.component(0.0))", "labelled by different conserved numbers", "sector"),
            (
                "dmrg::thermal(h, c, #{ beta: 1.0, sector: z, progress: false })",
                "infinite temperature in a sector of total spin",
                "exact sectors",
            ),
            (
                "dmrg::uniform(h, c, #{ sector: z })",
                "a cell of an infinite chain with a total spin",
                "finite chains",
            ),
            ("exact::basis(c, z)", "a basis of total spin", "exact::operator"),
            (
                "exact::operator(h, c, #{ S: 0, symmetries: [exact::translation(c, 0)] })",
                "a basis of total spin",
                "name Sz",
            ),
            (
                "exact::operator(h, c, z, #{ format: \"dense\" })",
                "stored matrices in a sector of S",
                "no format",
            ),
            ("exact::operator(h, c, #{ from: z, to: z })", "a basis of total spin", "name Sz"),
            ("exact::operator(one, c, z)", "not Hermitian", "conjugate"),
        ],
    );
}
