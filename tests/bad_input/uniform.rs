//! Infinite chains.

use super::{engine, fail, prepare};

#[test]
fn infinite_chains() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 2); let one = sites(\"S=1/2\", 1); let h = models::heisenberg(sites(\"S=1/2\", \
         8)).cell(2); \
         let z = #{ Sz: 0 }; let skew = opsum(); skew.add(1.0, \"S+\", 0, \"S-\", 1); let f = opsum(); f.add(1.0, \
         \"Cdag\", 0); \
         let psi = dmrg::uniform_product(c, [\"Up\", \"Dn\"], z); let down = opsum(); \
         let field = models::ising(sites(\"S=1/2\", 6)).cell(1); let far = opsum(); far.add(1.0, \"Sz\", 0, \"Sz\", \
         100000); \
         let dimer = opsum(); dimer.add(1.0, \"Sz\", 0, \"Sz\", 1); \
         dimer.add(2.0, \"Sz\", 1, \"Sz\", 2); dimer.add(1.0, \"Sz\", 2, \"Sz\", 3); \
         let flips = opsum(); flips.add_decaying(1.0, 0.5, \"S+\", 0, \"S-\"); \
         let tail = opsum(); tail.add_decaying(1.0, 0.5, \"Sz\", 0, \"Sz\"); \
         let fermions = dmrg::uniform_product(sites(\"Fermion\", 2), [\"Occ\", \"Emp\"], #{ N: 1 });",
    );
    fail(
        &mut engine,
        &[
            (
                "dmrg::uniform(h, one, #{ sector: z })",
                "a cell of 1 S=1/2 site cannot hold Sz = 0",
                "2 sites can hold",
            ),
            ("dmrg::uniform(h, c, #{ sector: #{ Sz: 0.3 } })", "no multiple of 1/2", ""),
            ("dmrg::uniform(h, c, #{ sector: #{ N: 1 } })", "no conserved number `N`", "Sz"),
            (
                "dmrg::uniform(h, c, #{ sector: #{ Sz: 4 } })",
                "no state of 2 S=1/2 sites has Sz = 4",
                "from -1 to 1",
            ),
            ("dmrg::uniform(models::heisenberg(c), c)", "for an infinite chain", "h.cell(n)"),
            ("dmrg::uniform(skew, c)", "not Hermitian", "conjugate"),
            (
                "dmrg::uniform(f + f.dagger(), sites(\"Fermion\", 2))",
                "changes the parity of the fermions",
                "in pairs",
            ),
            ("dmrg::uniform(field, one, #{ sector: #{ Sz: 0.5 } })", "changes Sz by -1", "leave Sz out"),
            ("dmrg::uniform(opsum(), c)", "without terms", ""),
            ("dmrg::uniform(far, one)", "reach over more than 4096 sites", "decay"),
            ("dmrg::uniform(f, one)", "no operator `Cdag`", "the operators are"),
            ("dmrg::uniform(h, c, #{ states: 0 })", "option `states` is 0", "it must be at least 1"),
            ("dmrg::uniform(h, c, #{ tol: 0.0 })", "option `tol` is 0", "it must be above 0"),
            ("dmrg::uniform(h, c, #{ steps: 0 })", "option `steps` is 0", "it must be at least 1"),
            ("dmrg::uniform(h, c, #{ scouts: -1 })", "option `scouts` is -1", "it must be at least 0"),
            (
                "dmrg::uniform(h, c, #{ cutoff: 1.0 })",
                "option `cutoff` is 1",
                "it must be at least 0 and below 1",
            ),
            ("dmrg::uniform(h, c, #{ stats: 10 })", "unknown option `stats`", "`states`"),
            ("dmrg::uniform(h, c, #{ method: \"peps\" })", "no method `peps`", "idmrg"),
            ("dmrg::uniform(h, c, #{ checkpoint: \"no/such/x.dmrg\" })", "cannot be written", "folder"),
            ("dmrg::uniform(h, c, #{ checkpoint: \"x.npz\" })", "not saved as", ".dmrg"),
            ("dmrg::uniform(h, c, #{ checkpoint: 4 })", "`checkpoint`", ""),
            (
                "dmrg::uniform(models::heisenberg(sites(\"S=1/2\", 6), #{ Delta: 3.0 }).cell(1), one, \
                 #{ method: \"idmrg\", states: 8, seed: 1, progress: false })",
                "repeats itself every 2 sites",
                "a cell of 2 sites",
            ),
            (
                "dmrg::uniform_growth(dmrg::cell_mpo(field, one, #{}), dmrg::uniform_product(one, [\"Up\"], #{}))",
                "cells of one site",
                "two cells as one",
            ),
            (
                "dmrg::uniform_growth(dmrg::cell_mpo(h, c, z), fermions)",
                "other sites or numbers",
                "same cell",
            ),
            (
                "dmrg::uniform_growth(dmrg::cell_mpo(h, c, z), psi).grown(#{ states: 0 })",
                "option `states` is 0",
                "at least 1",
            ),
            ("psi.folded(sites(\"S=1/2\", 3), z)", "cannot hold Sz = 0", ""),
            ("psi.folded(sites(\"S=1\", 1), z)", "is not several of", "copies"),
            ("psi.repeated(0)", "without sites", ""),
            ("dmrg::uniform(h, 4)", "the argument `cell` takes Sites, not `4`", "made by `sites`"),
            (
                "dmrg::uniform(h, c, #{ start: [\"Up\"], sector: z })",
                "1 local states for 2",
                "one for each site",
            ),
            (
                "dmrg::uniform(h, c, #{ start: [\"Up\", \"Up\"], sector: z })",
                "other numbers than the cell",
                "sum up",
            ),
            ("dmrg::uniform(h, c, #{ start: [\"Up\", \"Left\"], sector: z })", "no state `Left`", "Up, Dn"),
            ("dmrg::uniform(h, c, #{ start: psi })", "other sites or numbers", "same cell"),
            ("down.add_decaying(1.0, 1.0, \"Sz\", 0, \"Sz\")", "does not decay", "less than 1"),
            ("down.add_decaying(1.0, 0.5, \"Sz\", -1, \"Sz\")", "site -1", ""),
            ("down.add_decaying(1.0, 0.5, \"Sz\", 0, \"Sz\", #{ step: 0 })", "`step` is 0", "at least 1"),
            ("down.add_decaying(\"x\", 0.5, \"Sz\", 0, \"Sz\")", "the coefficient is a number", ""),
            ("dmrg::uniform(flips, one)", "not Hermitian", "conjugate"),
            ("dmrg::uniform(tail, sites([\"S=1/2\", \"S=1\"]))", "meets sites of several kinds", "same kind"),
            ("edge_block(\"S=1/2\", tail)", "reaches beyond sites 0 and 1", "any range"),
            ("models::heisenberg(sites(\"S=1/2\", 3)).cell(2)", "too short", "4 sites or more"),
            (
                "models::heisenberg(sites(\"S=1/2\", 8), #{ periodic: true }).cell(2)",
                "from end to end",
                "open ends",
            ),
            ("dimer.cell(1)", "does not repeat every 1 sites", "longer cell"),
            ("models::heisenberg(sites(\"S=1/2\", 8)).cell(0)", "a cell of 0 sites", "one site at least"),
            ("h.repeated(0, 2)", "2 cells of 0 sites", "one of each"),
            (
                "dmrg::uniform(models::heisenberg(sites(\"S=1/2\", 6)).cell(2), sites(\"S=1/2\", 3))",
                "cells of 2 sites repeat, for a cell of 3",
                "as many sites",
            ),
            (
                "models::heisenberg(sites(\"S=1/2\", 6)).cell(2).repeated(1, 2)",
                "cells of 2 sites repeat, for a cell of 1",
                "as many sites",
            ),
            ("c.repeated(0)", "without sites", ""),
            ("psi.expect(\"Sq\")", "no operator `Sq`", "the operators are"),
            ("psi.correlations(\"Sz\", \"Sz\", -1)", "over -1 sites", "a range"),
            ("psi.correlations(\"Sz\", \"Sz\", 3, #{ site: 2 })", "site 2 of a cell of 2", "from 0"),
            ("fermions.expect(\"C\")", "changes the parity of the fermions", "never end"),
            ("psi.transfer_spectrum(0)", "0 eigenvalues", "one at least"),
            ("psi.transfer_spectrum(2, #{ charge: #{ N: 1 } })", "no conserved number `N`", "Sz"),
            (
                "psi.transfer_spectrum(2, #{ charge: #{ SzParity: 1 } })",
                "does not conserve `SzParity`",
                "sector",
            ),
            ("psi.spectrum(2)", "no bond 2", "bond 0"),
            ("psi.entanglement_spectrum(-1)", "no bond -1", "bond 0"),
            ("psi.energy", "does not know its `energy`", "dmrg::uniform"),
            ("psi.fidelity(dmrg::uniform_product(one, [\"Up\"], #{}))", "other cells", "same sites"),
            (
                "dmrg::uniform_excitations(h, psi)",
                "the argument `psi` takes a UniformState, not an OpSum",
                "psi: UniformState",
            ),
            (
                "dmrg::uniform_excitations(psi, h, #{ count: 0 })",
                "option `count` is 0",
                "it must be at least 1",
            ),
            (
                "dmrg::uniform_excitations(dmrg::uniform(models::ising(sites(\"S=1/2\", 6), #{ h: 0.5 }).cell(1), one, \
                 #{ states: 4 }), models::ising(sites(\"S=1/2\", 6), #{ h: 2.0 }).cell(1))",
                "no ground state of this Hamiltonian",
                "take the h",
            ),
            ("dmrg::uniform_excitations(psi, h, #{ tol: 0.0 })", "option `tol` is 0", "it must be above 0"),
            ("dmrg::uniform_excitations(psi, h, #{ most: 0 })", "`most` is 0", ""),
            ("dmrg::uniform_excitations(psi, h, #{ charge: #{ N: 1 } })", "no conserved number `N`", "Sz"),
            (
                "dmrg::uniform_excitations(psi, h, #{ momentum: [0.0 / 0.0] })",
                "option `momentum` holds NaN",
                "finite",
            ),
            ("dmrg::uniform_excitations(psi, h, #{ momentum: [\"pi\"] })", "not a number", ""),
            (
                "dmrg::uniform_excitations(psi, h, #{ to: fermions })",
                "other sites or numbers",
                "the same cell",
            ),
            ("dmrg::correlation_limit([psi])", "fewer than two states", "an array of states"),
            ("dmrg::correlation_limit([psi, psi])", "too few levels", "more"),
            ("psi.save(\"psi.txt\")", "not saved as `psi.txt`", ".dmrg"),
        ],
    );
}
