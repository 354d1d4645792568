//! Defects, two-centre integrals, structures of atoms and currents that cannot be.

use super::{engine, fail};
use crate::common::Folder;

#[test]
fn defects_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let m = model(lattice::honeycomb(6, 6)); m.nearest(-1.0);\n\
             let open = model(lattice::chain(8).boundary(\"open\")); open.hop([1], -1.0);\n\
             let few = model(lattice::chain(3)); few.hop([1], -1.0);\n\
             let gone = model(lattice::chain(8).remove(|r| r[0] == 3.0)); gone.hop([1], -1.0);",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("m.defects(7, 1)", "a defect is a map, not a number", "#{ remove"),
            ("m.defects(#{}, 1)", "changes nothing", "`remove`"),
            ("m.defects([], 1)", "changes nothing", ""),
            ("m.defects(#{ removed: [\"A\"] }, 1)", "unknown option `removed`", "`remove`"),
            ("m.defects(#{ remove: \"A\" }, 1)", "`remove` of a defect is no array", "[\"A\"]"),
            ("m.defects(#{ remove: [\"C\"] }, 1)", "no sublattice `C`", "A, B"),
            ("m.defects(#{ remove: [[[1], \"A\"]] }, 1)", "a displacement of 1 entries", "one number"),
            ("m.defects(#{ remove: [[1, 0, \"A\"]] }, 1)", "given by 3 values", "[[1, 0], \"A\"]"),
            ("m.defects(#{ add: [[\"H\", [0.0]]] }, 1)", "1 coordinates in a space of 2", ""),
            ("m.defects(#{ add: [[1, [0.0, 0.0]]] }, 1)", "has no name", "[\"H\", [0.0, 0.5]]"),
            ("m.defects(#{ add: [[\"A\", [0.3, 0.0]]] }, 1)", "sublattice `A` lies at", "a name of its own"),
            ("m.defects(#{ add: [[\"H\", [0.0, 0.0 / 0.0]]] }, 1)", "not a finite number", ""),
            ("m.defects(#{ add: [\"H\"] }, 1)", "no array of arrays", "[name, position]"),
            ("m.defects(#{ move: [[\"A\", 0.1]] }, 1)", "the displacement of a site", ""),
            (
                "m.defects(#{ move: [[\"A\", [0.1, 0.0]], [\"A\", [0.1, 0.0]]] }, 1)",
                "moves a site twice",
                "add the displacements up",
            ),
            (
                "m.defects(#{ move: [[\"A\", [0.1, 0.0]]], remove: [\"A\"] }, 1)",
                "moves a site that it removes",
                "one of both",
            ),
            ("m.defects(#{ onsite: [\"A\", 0.1] }, 1)", "no array of arrays", "[site, term]"),
            ("m.defects(#{ onsite: [[\"A\"]] }, 1)", "an entry of 1 values", "[site, term]"),
            ("m.defects(#{ onsite: [[\"A\", 0.1 * I]] }, 1)", "not Hermitian", ""),
            ("m.defects(#{ onsite: [[\"A\", pauli().x]] }, 1)", "2 x 2 matrix", ""),
            ("m.defects(#{ onsite: [[\"A\", 0.0 / 0.0]] }, 1)", "not a finite number", ""),
            ("m.defects(#{ hop: [[\"A\", \"B\"]] }, 1)", "an entry of 2 values", "[from, to, hopping]"),
            ("m.defects(#{ hop: [[\"A\", \"A\", 1.0]] }, 1)", "from a site to itself", "`onsite`"),
            (
                "m.defects(#{ hop: [[\"A\", \"B\", 1.0], [\"B\", \"A\", 1.0]] }, 1)",
                "names one of its hoppings twice",
                "conjugate",
            ),
            ("m.defects(#{ remove: [\"A\"] }, 1.5)", "between 0 and 1, not at 1.5", "whole number"),
            ("m.defects(#{ remove: [\"A\"] }, 0.0 / 0.0)", "not at NaN", ""),
            ("m.defects(#{ remove: [\"A\"] }, -3)", "-3 defects", "how many"),
            ("m.defects(#{ remove: [\"A\"] }, \"all\")", "the fraction of cells", ""),
            ("m.defects(#{ remove: [\"A\"] }, 37)", "37 defects where 36 found room", "larger"),
            ("m.defects(#{ remove: [\"A\"] }, [[1]])", "1 cell coordinates given for 2", "one per direction"),
            ("m.defects(#{ remove: [\"A\"] }, [[0, 0], [0, 0]])", "given twice", "each once"),
            ("m.defects(#{ remove: [\"A\"] }, [[6, 0]])", "cell 6 lies outside the lattice: direction 0", ""),
            ("m.defects(#{ remove: [\"A\"] }, [0.5])", "an array of whole numbers", ""),
            (
                "m.defects(#{ remove: [\"A\", [[1, 0], \"A\"]] }, [[0, 0], [1, 0]], #{ overlap: false })",
                "overlaps one before",
                "`overlap`",
            ),
            ("few.defects(#{ remove: [0] }, 1.0)", "all 3 sites of the lattice were removed", ""),
            ("open.defects(#{ hop: [[0, [1, 0], 1.0]] }, [7])", "a site that is not there", "open boundary"),
            ("gone.defects(#{ remove: [0] }, [3])", "a site that is not there", "removed"),
            ("m.defects(#{ remove: [[[9999999999, 0], \"A\"]] }, 1)", "too far", ""),
            ("m.defects(#{ remove: [\"A\"] }, 1, #{ overlaps: true })", "unknown option", "`overlap`"),
        ],
    );
    // What was refused left the model as it was.
    assert!(engine.eval("assert(m.build().dim == 72 && few.build().dim == 3, \"as before\")").is_ok());
}

#[test]
fn two_centre_integrals_that_cannot_be() {
    fail(
        &mut engine(None),
        &[
            ("lattice::slater_koster([], #{})", "no orbitals", "px"),
            ("lattice::slater_koster([1], #{})", "named by a", "px"),
            ("lattice::slater_koster([\"f\"], #{})", "no orbital `f`", "dz2"),
            ("lattice::slater_koster([\"pxy\"], #{})", "no orbital `pxy`", "did you mean"),
            ("lattice::slater_koster([\"px\", \"px\"], #{})", "named twice", ""),
            ("lattice::slater_koster([\"dzx\", \"dxz\"], #{})", "named twice", ""),
            ("lattice::slater_koster([\"s\"], #{ ss_sigm: 1.0 })", "unknown option `ss_sigm`", "`ss_sigma`"),
            ("lattice::slater_koster([\"s\"], #{ ss_pi: 1.0 })", "unknown option `ss_pi`", ""),
            ("lattice::slater_koster([\"s\"], #{ sp_sigma: 1.0 })", "no p orbital", "leave it out"),
            ("lattice::slater_koster([\"s\"], #{ ss_sigma: \"a\" })", "the integral `ss_sigma`", ""),
            ("lattice::slater_koster([\"s\"], #{ ss_sigma: 0.0 / 0.0 })", "is NaN", "finite"),
            (
                "lattice::slater_koster([\"s\"], #{ ss_sigma: [1.0, 2.0] })",
                "given by 2 numbers",
                "[V, distance, length]",
            ),
            ("lattice::slater_koster([\"s\"], #{ ss_sigma: [1.0, 2.0, 0.0] })", "a length of 0", ""),
            (
                "lattice::slater_koster([\"s\"], #{ ss_sigma: |r| \"a\" }).hopping([0.0], [1.0])",
                "two-centre integral",
                "",
            ),
            (
                "lattice::slater_koster([\"s\"], #{ ss_sigma: |r| r / 0.0 }).hopping([0.0], [1.0])",
                "integral of inf",
                "zero",
            ),
            ("lattice::slater_koster([\"s\"], #{}).hopping([0.0], [0.0])", "a bond along", "on-site"),
            (
                "lattice::slater_koster([\"s\"], #{}).hopping([0.0], [0.0, 1.0])",
                "of 1 and of 2 coordinates",
                "",
            ),
            (
                "lattice::slater_koster([\"s\"], #{}).hopping([0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0])",
                "4 dimensions",
                "",
            ),
            (
                "let m = model(lattice::diamond(1, 1, 1)); m.nearest(lattice::slater_koster([\"s\", \"px\"], #{}))",
                "2 x 2 matrix",
                "",
            ),
            ("lattice::spin_orbit([\"px\"], \"strong\")", "the strength", ""),
            ("lattice::spin_orbit([\"px\"], #{ s: 1.0 })", "unknown option `s`", ""),
            ("lattice::spin_orbit([\"px\"], 0.0 / 0.0)", "a spin-orbit coupling of NaN", ""),
        ],
    );
}

const DATA: &str = "title\n\n2 atoms\n1 atom types\n\n0 4 xlo xhi\n0 4 ylo yhi\n0 4 zlo zhi\n\nMasses\n\n1 12.0\n\n\
                    Atoms # atomic\n\n1 1 0.0 0.0 0.0\n2 1 1.0 1.0 1.0\n";
const DUMP: &str = "ITEM: TIMESTEP\n0\nITEM: NUMBER OF ATOMS\n1\nITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\n\
                    ITEM: ATOMS id type x y z\n1 1 0.5 0.5 0.5\n";

#[test]
fn structures_of_atoms_that_cannot_be() {
    let folder = Folder::new("atoms");
    let mut engine = engine(Some(folder.to_path_buf()));
    folder.file("good.data", DATA.as_bytes());
    folder.file("good.dump", DUMP.as_bytes());
    assert!(engine.eval("lattice::atoms(\"good.data\"); lattice::atoms(\"good.dump\")").is_ok());
    let data = |old: &str, new: &str| DATA.replacen(old, new, 1).into_bytes();
    let dump = |old: &str, new: &str| DUMP.replacen(old, new, 1).into_bytes();
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("a.data", data("2 atoms", "two atoms"), "line 3 of", ""),
        ("b.data", data("2 atoms", "0 atoms"), "line 3 of", ""),
        ("c.data", data("2 atoms\n", ""), "no line before says how many", "64 atoms"),
        ("d.data", data("0 4 ylo yhi\n", ""), "the whole box", "xlo xhi"),
        ("e.data", data("0 4 ylo", "4 0 ylo"), "line 7 of", ""),
        ("f.data", data("0 4 ylo", "0 nan ylo"), "line 7 of", ""),
        ("g.data", data("# atomic", "# sphere"), "atoms of style `sphere`", "full"),
        ("h.data", data("1 1 0.0 0.0 0.0", "1 1 0.0 0.0"), "line 16 of", ""),
        ("i.data", data("1 1 0.0 0.0 0.0", "1 1 0.0 abc 0.0"), "line 16 of", ""),
        ("j.data", data("1 1 0.0 0.0 0.0", "1 C 0.0 0.0 0.0"), "where the type", ""),
        ("k.data", data("1 1 0.0 0.0 0.0", "2 1 0.0 0.0 0.0"), "two atoms of number 2", ""),
        ("l.data", data("2 1 1.0 1.0 1.0\n", ""), "ends after line 16", "truncated"),
        ("m.data", data("2 atoms", "99999999999999 atoms"), "", ""),
        ("n.data", data("0 4 xlo xhi", "4 0 0 avec"), "general triclinic", "tilts"),
        ("o.data", b"title only".to_vec(), "ends after line 1", ""),
        ("p.data", b"".to_vec(), "a structure should follow", ""),
        ("q.data", vec![0xff, 0xfe, 0x00, 0x80], "line 1 of", ""),
        ("s.data", data("2 atoms", "1 atoms"), "line 17 of", ""),
        ("t.data", data("2 1 1.0", "2 2 1.0"), "an atom of type 2, and types are 1 to 1", ""),
        ("u.data", data("2 1 1.0", "2 0 1.0"), "an atom of type 0", ""),
        (
            "f.xyz",
            b"1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=\"x y z\"\nH 0 0 0\n".to_vec(),
            "says `x` in pbc",
            "",
        ),
        (
            "h.xyz",
            b"1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=[T,T]\nH 0 0 0\n".to_vec(),
            "says 2 times in pbc",
            "",
        ),
        ("i.xyz", b"1\npbc=\"T T F\"\nH 0 0 0\n".to_vec(), "names no cell (Lattice)", ""),
        ("r.data", data("# atomic\n\n1 1 0.0 0.0 0.0", "\n\n1 1 0.1 0.0 0.0 0.0"), "6 columns", "`style`"),
        ("a.dump", dump("x y z\n", "vx vy vz\n"), "no coordinates", "x y z"),
        ("b.dump", dump("id type", "id kind"), "no `type`", ""),
        ("c.dump", dump("0 4\n", "0 4 1\n"), "line 6 of", ""),
        ("d.dump", dump("0 4\n", "4 0\n"), "without volume", ""),
        ("e.dump", dump("1 1 0.5 0.5 0.5\n", ""), "an atom should follow", ""),
        ("f.dump", dump("1 1 0.5 0.5 0.5", "1 1 0.5 0.5"), "line 10 of", ""),
        ("g.dump", dump("ITEM: BOX", "BOX"), "is no item", ""),
        (
            "h.dump",
            dump("ITEM: BOX BOUNDS pp pp pp\n0 4\n0 4\n0 4\n", ""),
            "before their number and the box",
            "",
        ),
        ("i.dump", dump("TIMESTEP", "TIMESTOP"), "no item of a dump", ""),
        ("a.xyz", b"many\n\n".to_vec(), "line 1 of", ""),
        ("b.xyz", b"2\n\nH 0 0 0\n".to_vec(), "an atom should follow", ""),
        ("c.xyz", b"1\nLattice=\"1 0 0 0 1 0\"\nH 0 0 0\n".to_vec(), "a cell of 6 numbers", ""),
        ("d.xyz", b"1\nLattice=\"1 0 0 1 0 0 0 0 1\"\nH 0 0 0\n".to_vec(), "linearly dependent", ""),
        ("e.xyz", b"1\nProperties=pos:R:3\n0 0 0\n".to_vec(), "no `species` and `pos`", ""),
        ("f.xyz", b"1\n\nH 0 0\n".to_vec(), "line 3 of", ""),
        (
            "g.xyz",
            b"1\nProperties=species:S:1:pos:R:99999999999999999999\nH 0 0 0\n".to_vec(),
            "line 2 of",
            "",
        ),
    ];
    for (name, bytes, message, hint) in &cases {
        folder.file(name, bytes);
        fail(&mut engine, &[(&format!("lattice::atoms(\"{name}\")"), message, hint)]);
    }
    fail(
        &mut engine,
        &[
            ("lattice::atoms(\"none.data\")", "there is no such file", ""),
            ("lattice::atoms(\"good.data\", #{ style: \"ellipsoid\" })", "`ellipsoid`", "full"),
            ("lattice::atoms(\"good.data\", #{ style: \"full\" })", "line 16 of", ""),
            ("lattice::atoms(\"good.dump\", #{ frame: 1 })", "snapshot 1 of a file of 1", "-1"),
            ("lattice::atoms(\"good.dump\", #{ frame: -2 })", "snapshot -2 of a file of 1", ""),
            ("lattice::atoms(\"good.dump\", #{ frame: -9223372036854775807 })", "snapshot", ""),
        ],
    );
}

#[test]
fn currents_that_cannot_be() {
    let mut engine = engine(None);
    let _ =
        engine.eval("let m = model(lattice::honeycomb(2, 2)); m.nearest(-1.0); let h = m.build();").unwrap();
    fail(
        &mut engine,
        &[
            ("models::valley(model(lattice::square(4, 4)))", "the valleys of", "honeycomb"),
            ("lattice::square(4, 4).site([1], 0)", "1 cell coordinates in a lattice of 2", "sublattice"),
            ("lattice::honeycomb(4, 4).site([1], \"B\")", "1 cell coordinates", "sublattice"),
            ("lattice::square(4, 4).site([1, 0, 0], 0)", "3 cell coordinates", "sublattice"),
            ("models::valley(model(lattice::chain(4)))", "the valleys of", "honeycomb"),
            (
                "kpm::conductivity(m, #{ kpoints: 2, current: h.velocity(0) })",
                "one current at several momenta",
                "|h, k|",
            ),
            ("kpm::conductivity(h, #{ current: |h| 7, moments: 8 })", "", ""),
            ("kpm::conductivity(h, #{ current: \"spin\", moments: 8 })", "`current`", ""),
        ],
    );
}

#[test]
fn polarisabilities_that_cannot_be() {
    let mut engine = engine(None);
    let _ = engine
        .eval(
            "let m = model(lattice::square(2, 2)); m.nearest(-1.0); let h = m.build();\n\
             let open = model(lattice::chain(4).boundary(\"open\")); open.hop([1], -1.0);\n\
             let pairs = model(lattice::chain(4)); pairs.hop([1], -1.0); pairs.pairing(0.2);",
        )
        .unwrap();
    fail(
        &mut engine,
        &[
            ("bloch::polarizability(m, [0.1, 0.0])", "no function", "options"),
            ("bloch::polarizability(m, [0.1, 0.0], #{})", "frequencies", ""),
            ("bloch::polarizability(m, [0.1, 0.0], #{ frequencies: \"all\" })", "`frequencies`", ""),
            (
                "bloch::polarizability(m, [0.1], #{ frequencies: [0.0] })",
                "a momentum [0.1] for 2",
                "one finite number",
            ),
            ("bloch::polarizability(m, [0.1, 0.0 / 0.0], #{ frequencies: [0.0] })", "for 2 periodic", ""),
            ("bloch::polarizability(m, \"x\", #{ frequencies: [0.0] })", "a momentum", ""),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0], grid: 0 })",
                "option `grid` is 0",
                "",
            ),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0], grid: [4] })",
                "a grid [4] in 2",
                "for each",
            ),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0], grid: [4, -4] })",
                "option `grid` is -4",
                "",
            ),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0], eta: 0.0 })",
                "option `eta` is 0",
                "above 0",
            ),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0], temperature: -1.0 })",
                "option `temperature` is -1",
                "at least 0",
            ),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0 / 0.0] })",
                "option `frequencies` holds NaN",
                "",
            ),
            ("bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [I] })", "frequencies", ""),
            (
                "bloch::polarizability(m, [0.1, 0.0], #{ frequencies: [0.0], interaction: \"v\" })",
                "`interaction`",
                "",
            ),
            ("bloch::polarizability(open, 0.1, #{ frequencies: [0.0] })", "open in every direction", ""),
            (
                "bloch::polarizability(pairs, 0.1, #{ frequencies: [0.0] })",
                "superconductor",
                "electrons alone",
            ),
            ("kpm::polarizability(h, [0.1, 0.0], #{})", "option `frequencies` is needed", "energies"),
            ("kpm::polarizability(h, [0.1], #{ frequencies: [0.5] })", "", ""),
            (
                "kpm::polarizability(h, [0.1, 0.0], #{ frequencies: [0.0], moments: 8 })",
                "a frequency of 0",
                "",
            ),
            (
                "kpm::polarizability(h, [0.1, 0.0], #{ frequencies: [0.5], vectors: 0 })",
                "option `vectors` is 0",
                "it must be at least 1",
            ),
            (
                "kpm::polarizability(sparse([0], [0], [1.0]), [0.1], #{ frequencies: [0.5], moments: 8 })",
                "",
                "",
            ),
            ("hilbert_transform([0.0, 1.0], [0.0], [0.5])", "1 values at 2 places", "as many"),
            ("hilbert_transform([0.0], [0.0], [0.5])", "1 values at 1 places", "two or more"),
            ("hilbert_transform([1.0, 0.0], [0.0, 1.0], [0.5])", "do not ascend", "sort"),
            ("hilbert_transform([0.0, 1.0], [0.0, 0.0 / 0.0], [0.5])", "not finite", ""),
            (
                "hilbert_transform([0.0, 1.0], [0.0, 2.0], [0.5, 1.0])",
                "at 1, where the values begin or end at 2",
                "fall to zero",
            ),
            ("hilbert_transform([0.0, 1.0], [2.0, 0.0], [0.0])", "at 0, where", "beside the end"),
        ],
    );
}
