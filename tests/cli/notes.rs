//! Notes on results that are less than what a script asked for.

use super::Place;
use crate::common::Folder;

/// Kitaev's chain, whose two ground states differ in their parity and have no local difference.
#[test]
fn excitations_of_a_topological_superconductor_are_told() {
    let script = "let h = opsum();
        h.add(2.0, \"Cdag\", 0, \"C\", 1);
        h.add(2.0, \"Cdag\", 1, \"C\", 0);
        h.add(0.5, \"Cdag\", 0, \"Cdag\", 1);
        h.add(0.5, \"C\", 1, \"C\", 0);
        h.add(mu, \"N\", 0);
        let gs = dmrg::uniform(h, sites(\"Fermion\", 1), #{ sector: #{ NfParity: 0 }, states: 8, seed: 1, progress: \
        false });
        dmrg::uniform_excitations(gs, h, #{ charge: #{ NfParity: 1 }, progress: false });";
    for (mu, told) in [("-3.0", 1), ("6.0", 0)] {
        let script = format!("let mu = {mu};\n{script}");
        let said = Place(Folder::new("above").with("a.rhai", &script)).run(&["run", "a.rhai"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let notes = said.err.matches("note: the ends of the chain have Majorana modes").count();
        assert_eq!(notes, told, "mu = {mu}: {}", said.err);
    }
}

/// A Krylov space that does not hold what a temperature needs: the energies were wrong by many of their errors.
#[test]
fn too_few_lanczos_steps_of_a_temperature_are_told() {
    let script = "let chain = sites(\"S=1/2\", 10);\nlet h = models::heisenberg(chain);
        exact::thermal(h, chain, #{ beta: [0.0, 3.0], steps: STEPS, seed: 1, progress: false });";
    for (steps, told) in [("2", 1), ("4", 1), ("40", 0)] {
        let script = script.replace("STEPS", steps);
        let said = Place(Folder::new("krylov").with("a.rhai", &script)).run(&["run", "a.rhai"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(
            said.err.matches("note: beta 3.0: too few Lanczos steps").count(),
            told,
            "{steps}: {}",
            said.err
        );
    }
}

#[test]
fn too_few_states_of_a_temperature_are_told() {
    let script = "let chain = sites(\"S=1/2\", 8);\nlet h = models::heisenberg(chain);
        dmrg::thermal(h, chain, #{ beta: 1.0, progress: false });
        dmrg::thermal(h, chain, #{ beta: 1.0, states: 2, progress: false });";
    let said = Place(Folder::new("loss").with("a.rhai", script)).run(&["run", "a.rhai"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        said.err.matches("note: the weights that were left out add up to ").count(),
        1,
        "{}",
        said.err
    );
    assert_eq!(said.err.matches("note: ").count(), 1, "{}", said.err);
}

#[test]
fn where_functions_are_not_known_is_told_once() {
    let green =
        "let h = tight_binding(lattice::chain(8));\nlet o = #{ energies: [0.0, 2.03], window: window(-2.02, \
    2.02) };
        kpm::green(h, 0, 0, o);\nkpm::green(h, 0, 0, o + #{ moments: 64 });";
    let moments =
        "64 moments are too few for the Green's function at energy 2.03: its series needs 240 there\n";
    let edges = "let m = model(lattice::chain(3));\nm.nearest(-1.0);\nlet side = |s| transport::lead(m, #{ side: s });
        let open = model(lattice::chain(3).boundary(\"open\"));\nopen.nearest(-1.0);
        transport::system(open, #{ leads: [side.call(-1), side.call(1)] }).transmission(0, 1, [-2.0, 2.0, 2.5]);";
    let gaps =
        "the transmission is NaN at 2 of 3 energies, where it is not defined: -2, 2; at energy -2 bands of";
    for (script, note) in [(green, moments), (edges, gaps)] {
        let place = Place(Folder::new("told").with("a.rhai", script));
        let said = place.run(&["run", "a.rhai"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(said.err.matches(&format!("note: {note}")).count(), 1, "{}", said.err);
        assert_eq!(said.err.matches("note: ").count(), 1, "{}", said.err);
        assert_eq!(place.run(&["run", "-q", "a.rhai"]).err, "");
    }
}

/// The terms of a cell as the Hamiltonian of a chain: all sites but those of the cell are free.
#[test]
fn the_terms_of_a_cell_on_a_longer_chain_are_told_once() {
    let script = "let s = sites(\"S=1/2\", 8);\nlet whole = models::heisenberg(s);\nlet h = TERMS;
        let how = #{ sector: #{ Sz: 0 }, states: 8, sweeps: 2, progress: false };
        exact::operator(h, s);\nexact::operator(h, s, #{ Sz: 0 });\nexact::operator(h, s, #{ S: 0 });
        let gs = dmrg::finite(DMRG, s, how);\ngs.expect(whole.cell(2));";
    let cases = [
        ("whole.cell(2)", "whole", 1),
        ("whole", "whole.cell(2) * 2.0", 1),
        ("whole", "whole", 0),
        // These are the terms of the whole chain.
        ("whole.cell(1).repeated(1, 7)", "whole", 0),
    ];
    for (terms, dmrg, told) in cases {
        let script = script.replace("TERMS", terms).replace("DMRG", dmrg);
        let said = Place(Folder::new("cell").with("a.rhai", &script)).run(&["run", "a.rhai"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let note = "note: this sum has the terms of one cell of 2 sites (`cell`), so on a chain of 8 sites nothing \
                    acts beyond site 2;";
        assert_eq!(said.err.matches(note).count(), told, "{terms}, {dmrg}: {}", said.err);
        assert_eq!(said.err.matches("note: this sum").count(), told, "{terms}, {dmrg}: {}", said.err);
    }
}
