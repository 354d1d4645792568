//! Exact sectors, walkers and superblocks on several ranks.

use super::{Place, close, launchers};
use crate::common::Folder;

/// Exact sectors, whose rows each rank makes for itself where the sum is Hermitian: plain ones, padded, complex
/// with symmetries, and of a sum that is not Hermitian.
#[test]
fn sectors_are_those_of_one_process() {
    let place = Place(Folder::new("sectors").with(
        "a.rhai",
        "let c = sites(\"S=1/2\", 10);
         let ring = models::heisenberg(c, #{ periodic: true });
         let bent = ring + 0.0 * ring;
         bent.add(0.25, \"S+\", 3, \"S-\", 4);
         for h in [
             exact::operator(ring, c, #{ Sz: 0 }),
             exact::operator(ring, c, #{ Sz: 1 }, #{ format: \"sell\" }),
             exact::operator(ring, c, #{ Sz: 0, symmetries: [exact::translation(c, 3)] }),
             exact::operator(bent, c, #{ Sz: 0 }),
         ] {
             let v = random_block(h, 2, #{ seed: 5 });
             for x in (h * v).column(1).to_series() { print(abs(x)); }
             for x in (h.dagger() * v).norm() { print(x); }
             for x in h.to_matrix().diagonal() { print(abs(x)); }
             print(h.is_hermitian());
             print(h.entries);
         }",
    ));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        for ranks in ["2", "3"] {
            let first = place.prints(launcher, ranks, &[]);
            close(&alone, &first, &format!("sectors on {ranks} ranks"));
            assert_eq!(alone.matches("true").count(), first.matches("true").count());
        }
    }
}

#[test]
fn walkers_do_not_depend_on_ranks() {
    let place = Place(Folder::new("walkers").with(
        "a.rhai",
        "let psi = slater_jastrow(orbitals::oscillator(3, #{ dimension: 3 }), #{ up: 3, down: 2, jastrow: \
         jastrow::pade(#{ b: 0.4 }) });
         let walk = walkers(psi, #{ count: 5, seed: 1 });
         for k in 0..3 {
             print(metropolis(walk, #{ step: 0.5, sweeps: 20 }));
             for x in local_energy(walk, electrons(vmc::trap(1.0))) { print(x); }
         }
         walk.save_walkers(\"walk.json\", #{ note: 1 });
         let again = load(\"walk.json\", #{ wavefunction: psi }).walk;
         metropolis(again, #{ step: 0.5, sweeps: 5, scheme: \"configuration\" });
         print(again.sweeps);
         for x in local_energy(again, electrons(vmc::trap(1.0))) { print(x); }
         for k in 0..5 { print(walk.positions(k).norm()); }",
    ));
    place.prints_the_same_bits_on(&["2", "3", "7"]);
}

/// Real and complex records, one pair of sectors and many, two sites, several states, multiplets, times.
pub(super) const SUPERBLOCKS: &str = r#"
fn found(h, chain, how) {
    how.progress = false;
    let g = dmrg::finite(h, chain, how);
    print(`${g.energy} ${g.expect("Sz")[0]}`);
    g
}
let spins = sites("S=1/2", 8);
let ground = found(models::heisenberg(spins), spins, #{ sector: #{ Sz: 0 }, states: 12, seed: 1 });
found(models::heisenberg(spins), spins, #{ seed: 2 });
found(models::heisenberg(spins), spins, #{ sector: #{ S: 0 }, states: 12, seed: 1 });
found(models::heisenberg(spins), spins, #{ sector: #{ Sz: 0 }, orthogonal_to: [ground], seed: 3 });
let turned = opsum();
for i in 0..7 {
    turned.add(0.5 * exp(0.4 * I), "S+", i, "S-", i + 1);
    turned.add(0.5 * exp(-0.4 * I), "S-", i, "S+", i + 1);
    turned.add(0.3, "Sz", i);
}
found(turned, spins, #{ sector: #{ Sz: 1 }, seed: 1 });
let pair = sites("Electron", 2);
found(models::hubbard(pair, #{ U: 4.0 }), pair, #{ sector: #{ Nup: 1, Ndn: 1 }, seed: 1 });
let four = sites("Electron", 4);
found(models::hubbard(four, #{ U: 4.0 }), four, #{ sector: #{ Nup: 2, Ndn: 1 }, states: 16, seed: 1 });
let late = dmrg::evolve(ground, models::heisenberg(spins, #{ Delta: 0.5 }), 0.2,
    #{ step: 0.1, states: 12, progress: false });
for z in late.expect("Sz") { print(z); }
"#;

#[test]
fn superblocks_do_not_depend_on_ranks() {
    let place = Place(Folder::new("superblocks").with("a.rhai", SUPERBLOCKS));
    place.prints_the_same_bits_on(&["2", "3", "7"]);
}

/// Vectors of superblocks are spread over cards, and products come together on them.
#[test]
#[ignore = "needs two GPUs"]
fn superblocks_are_spread_over_cards() {
    // What is linear in the error of a search is known to fewer digits.
    let energies = SUPERBLOCKS.split("let late").next().unwrap_or_default();
    let energies = energies.replace(" ${g.expect(\"Sz\")[0]}", "");
    let place = Place(Folder::new("cards").with("a.rhai", &energies));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &["--backend", "cuda"]);
        let spread = place.prints(launcher, "2", &["--backend", "cuda"]);
        close(&alone, &spread, "two cards");
        assert_eq!(spread, place.prints(launcher, "2", &["--backend", "cuda"]), "the same bits");
    }
}
