//! Blocks, sweeps and many-body states.

use super::{engine, fail, prepare};

#[test]
fn blocks_and_sweeps() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 6); let h = models::heisenberg(c); let z = #{ Sz: 0.0 }; let m = dmrg::mpo(h, c, z); \
         let l = dmrg::left_edge(m).extend().extend().grow(); let r = dmrg::right_edge(m).extend().extend().grow(); \
         let both = superblock(l, r); let op = exact::operator(h, c, z); let v = davidson(both).vectors; \
         let bond = opsum(); bond.add(1.0, \"Sz\", 0, \"Sz\", 1); let skew = opsum(); \
         skew.add(I, \"S+\", 0, \"S-\", 1); skew.add(-1.0 * I, \"S-\", 0, \"S+\", 1); \
         let up = opsum(); up.add(1.0, \"S+\", 0); let far = opsum(); far.add(1.0, \"Sz\", 9); \
         let two = opsum(); two.add(1.0, \"Sz\", 0, \"Sz\", 2); let gs = dmrg::finite(h, c, #{ sector: z, states: 8, \
         sweeps: 1, progress: false });",
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
            ("dmrg::finite(h, c, #{ states: \"many\" })", "takes a whole number", "many"),
            (
                "dmrg::finite(h, c, #{ states: [] })",
                "option `states` is an empty array",
                "give one number, or one for each",
            ),
            ("dmrg::finite(h, c, #{ states: 0 })", "option `states` is 0", "it must be at least 1"),
            ("dmrg::finite(h, c, #{ sweeps: 0 })", "option `sweeps` is 0", "it must be at least 1"),
            ("dmrg::finite(h, c, #{ cutoff: 2.0 })", "`cutoff` is 2", "weight to discard"),
            ("dmrg::finite(h, c, #{ tol: -1.0 })", "option `tol` is -1", "it must be at least 0"),
            ("dmrg::finite(h, c, #{ one_site: -1 })", "option `one_site` is -1", "it must be at least 0"),
            (
                "dmrg::finite(h, c, #{ count: 3, states: 2 })",
                "3 states in a basis of 2",
                "as large as `count`",
            ),
            ("dmrg::finite(h, c, #{ count: 2, weights: [1.0] })", "of 2 states", "each of `count`"),
            ("dmrg::finite(h, c, #{ checkpoint: \"no/such/x.dmrg\" })", "cannot be written", "folder"),
            ("dmrg::finite(h, c, #{ checkpoint: \"x.npz\" })", "not saved as", ".dmrg"),
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
            (
                "models::heisenberg(sites(\"S=1/2\", 1), #{ periodic: true })",
                "a chain of one site",
                "two sites",
            ),
            ("dmrg::finite(h, c, #{ sector: z, start: [\"Up\"] })", "1 local states", "one for each site"),
            ("dmrg::finite(h, c, #{ start: 7 })", "takes an array or a DmrgState", "7"),
            (
                "dmrg::finite(h, c, #{ sector: z, start: [\"Up\", \"Up\", \"Up\", \"Up\", \"Up\", \"Dn\"] })",
                "outside the sector",
                "sector",
            ),
            ("dmrg::finite(h, c, #{ sector: z, strategy: \"RL\" })", "no strategy `RL`", "l-1-1-r"),
            ("dmrg::finite(h, sites(\"S=1/2\", 1))", "a chain of 1 site", "two"),
            ("dmrg::finite(c, h)", "the argument `h` takes an OpSum, not Sites", "`opsum`"),
            ("dmrg::finite(opsum(), c)", "without terms", "`this`"),
            ("dmrg::finite(h, c, #{ noise: -1e-3 })", "option `noise` is -0.001", "it must be at least 0"),
            ("dmrg::finite(h, c, #{ residual: 0.0 })", "option `residual` is 0", "it must be above 0"),
            ("dmrg::finite(h, c, #{ tol: 0.0 / 0.0 })", "`tol` is not a number", ""),
            ("dmrg::finite(h, c, #{ variance: -1.0 })", "option `variance` is -1", "it must be above 0"),
            ("dmrg::finite(h, c, #{ explore: -1 })", "option `explore` is -1", "it must be at least 0"),
            ("dmrg::finite(h, c, #{ seed: 0.5 })", "`seed` takes a whole number or a text", "0.5"),
            ("gs.variance(up)", "changes Sz by 1", "Sz"),
            ("gs.expect(\"Sz\", #{ sites: [2, 1] })", "ascending", "from 0 to 5"),
            ("gs.correlations(\"Sz\", \"Sz\", #{ sites: 3 })", "array of site numbers", "from 0 to 5"),
            ("l.rotate(density_matrix(both, v, \"right\").truncate())", "belongs to another block", "left"),
            (
                "let e = superblock(edge_block(\"S=1/2\", bond), edge_block(\"S=1/2\", bond).mirror()); dmrg::state(e, \
                 davidson(e).vectors, #{})",
                "infinite chain",
                "left_edge",
            ),
            ("dmrg::nearest_sector(l, r, #{ N: 1 })", "do not conserve N", "Sz"),
            ("edge_block(c, bond)", "whole chain of sites", "`sites`"),
            ("sites([\"S=1/2\", \"Electron\"], #{ nmax: 3 })", "none among these sites", "Boson"),
            ("models::site(#{ operators: #{ F: pauli().x } })", "own operator `F`", "another name"),
            ("models::site(#{ operators: #{ X: pauli().x }, states: [\"a\", \"a\"] })", "called `a`", "name"),
            (
                "models::site(#{ operators: #{ C: pauli().z }, fermionic: [\"C\"], odd: [0, 1] })",
                "same parity",
                "`odd`",
            ),
            ("models::site(#{ operators: #{ C: pauli().x }, odd: [0, 2] })", "an entry 2", "odd number"),
            ("superblock(l, l)", "a left and a right block", "mirror"),
            ("superblock(l, dmrg::right_edge(m).grow())", "do not meet", "bond"),
            ("superblock(l, r, #{ Sz: 99 })", "no state of the superblock", "combined"),
            ("superblock(l, r, z, #{ schedule: \"five\" })", "no schedule `five`", "four-streams"),
            (
                "superblock(l, r, z, #{ operator_memory: -1.0 })",
                "option `operator_memory` is -1",
                "bytes of GPU memory",
            ),
            ("superblock(l, r, #{ Q: 1 })", "no conserved number `Q`", "Sz"),
            ("l.grow()", "no further site", "rotate"),
            (
                "dmrg::left_edge(m).rotate(density_matrix(both, v, \"left\").truncate(#{}))",
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
            ("load(\"nothing.dmrg\")", "`nothing.dmrg` cannot be read", "save"),
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
                "models::site(#{ operators: #{ Z: pauli().z }, charges: #{ P: [0, 1] }, modulo: #{ P: 1 } })",
                "modulo 1",
                "Z_n",
            ),
            ("sites(\"SU(9)\", 2)", "no kind of site", "eight flavours"),
        ],
    );
}
