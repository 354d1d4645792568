//! Gauge fields, their files, Wilson and overlap fermions on several ranks.

use super::{Place, close, close_within, dealt, launchers, numbers};
use crate::common::Folder;

/// Even and odd sizes, directions of one and two sites, boundaries of both signs, every storage.
const SPINORS: &str = "
for shape in [
    [[4, 2, 2, 6], \"full\"],
    [[3, 5, 1, 4], \"reconstruct-12\"],
    [[2, 2, 3, 2], \"reconstruct-8\"],
    [[6, 4, 2, 3], \"full\"],
] {
    let n = shape[0];
    let lat = lattice::hypercubic(n[0], n[1], n[2], n[3]);
    let u = gauge::reference_field(lat, 0.3).boundary(\"antiperiodic\");
    let q = wilson::kernel(u, #{ s: 0.4, storage: shape[1] });
    let d = wilson::operator(u, #{ mass: 0.2, storage: shape[1] });
    for d in [d, d.dagger(), q] {
        let v = random_block(d, 2, #{ seed: 1 });
        for x in (d * v).column(1).to_series() { print(x.re); print(x.im); }
        for x in (d * (d.dagger() * v)).norm() { print(x); }
    }
    let run = chebyshev(q, window(-9.0, 9.0), random_block(q, 3, #{ seed: 5 })).run(9, #{ progress: false });
    for x in run.moments().values { print(x); }
    let v = wilson::gamma5(lat) * unit_block(q, [5]);
    print(dot(v, q * v).re);
    print(\"end\");
}";

#[test]
fn spinors_are_those_of_one_process() {
    let place = Place(Folder::new("spinors").with("a.rhai", SPINORS));
    let Some(launcher) = launchers().first() else { return };
    let alone = place.prints(launcher, "1", &[]);
    for (launcher, cuts) in dealt(&[("2", &[][..]), ("3", &[]), ("4", &["--grid", "2x1x1x2"])]) {
        for (ranks, more) in cuts {
            let first = place.prints(launcher, ranks, more);
            assert_eq!(first.matches("end").count(), 4);
            for (k, (a, b)) in alone.split("end").zip(first.split("end")).take(4).enumerate() {
                close(a, b, &format!("shape {k} on {ranks} ranks {more:?}"));
            }
            assert_eq!(first, place.prints(launcher, ranks, more), "the same bits");
        }
    }
}

/// All that is made of a gauge field, printed to the last digit.
const FIELDS: &str = "
    fn all(z) { for z in z { print(z.re); print(z.im); } }
    fn tell(u) {
        print(gauge::plaquette(u));
        print(gauge::topological_charge(u));
        for mu in 0..4 {
            all([gauge::polyakov_loop(u, mu)]);
            all(gauge::polyakov_loops(u, mu));
        }
        for w in gauge::wilson_loops(u, SIDE, SIDE, #{ plane: [3, 0], progress: false }).W { print(w); }
        print(gauge::wilson_loop(u, 1, 1, #{ plane: [1, 2] }));
        all([u.link(SITE, 2).at(0, 1), u.link(SITE, 2).at(2, 0)]);
    }
    let unit = gauge::unit(LATTICE);
    tell(unit);
    assert(gauge::plaquette(unit) == 1.0 && gauge::topological_charge(unit) == 0.0 && gauge::polyakov_loop(unit) == \
    1.0, \"cold\");
    let turned = gauge::random_gauge(unit, #{ seed: 2 });
    assert_close(gauge::plaquette(turned), 1.0, 1e-14);
    assert_close(gauge::wilson_loop(turned, SIDE, SIDE, #{ plane: [0, 3] }), 1.0, 1e-13);
    tell(turned);
    tell(gauge::random(LATTICE, #{ seed: 3 }));
    tell(gauge::constant_flux(LATTICE, #{ plane03: 1, plane12: 2 }));
    let u = gauge::reference_field(LATTICE, 0.5);
    tell(u);
    tell(gauge::ape(u, #{ steps: 2 }));
    tell(gauge::stout(u, #{ steps: 2 }));
    let flow = gauge::wilson_flow(u, #{ time: 0.1, step: 0.05, measure: 1, progress: false });
    tell(flow.links);
    for x in flow.table.charge { print(x); }
    for x in flow.table.energy { print(x); }
    tell(u * gauge::random(LATTICE, #{ seed: 4 }));
    tell(u.with_link(SITE, 3, diagonal([-1.0, -1.0, 1.0])));
    let calls = 0;
    let made = gauge::from(LATTICE, |x, mu| {
        calls += 1;
        let phase = exp(0.1 * (x[0] + 2 * x[3] + mu) * I);
        diagonal([phase, 1.0 / phase, 1.0])
    });
    print(calls);
    tell(made.transformed(|x| diagonal([exp(0.3 * x[1] * I), 1.0, exp(-0.3 * x[1] * I)])).reunitarised());
    for name in [\"u.nersc\", \"u.lime\"] {
        flow.links.boundary(\"antiperiodic\").save(name);
        tell(load(name));
    }
    u.save(\"half.nersc\", #{ format: \"nersc-12\", precision: \"single\" });
    tell(load(\"half.nersc\", #{ reunitarise: true }));
    MORE";

#[test]
fn gauge_fields_do_not_depend_on_ranks() {
    let sweeps = "
        let action = [];
        let hot = gauge::heatbath(gauge::random(LATTICE, #{ seed: 5 }), #{ beta: 5.7, sweeps: 2, overrelaxation: 1,
            seed: 6, progress: false, observe: |sweep, u| action.push(gauge::plaquette(u)) });
        for x in action { print(x); }
        tell(hot);
        tell(gauge::overrelax(hot, #{ sweeps: 1, progress: false }));";
    // Odd sizes, directions of one site and of two, more ranks than planes, ranks without sites.
    for (sizes, side, site, more, cuts) in [
        ("4, 2, 2, 6", 3, "[3, 1, 0, 4]", sweeps, [("2", ""), ("3", ""), ("4", "2x1x1x2"), ("7", "1x1x1x7")]),
        ("3, 5, 1, 4", 3, "[2, 4, 0, 3]", "", [("2", ""), ("3", ""), ("4", "1x2x1x2"), ("7", "7x1x1x1")]),
        ("2, 2, 3, 2", 2, "[1, 1, 2, 0]", "", [("2", "2x1x1x1"), ("3", ""), ("4", ""), ("7", "")]),
        ("2, 4, 2, 2", 2, "[0, 3, 1, 1]", sweeps, [("2", ""), ("3", "1x3x1x1"), ("4", "2x1x1x2"), ("7", "")]),
    ] {
        let script =
            FIELDS.replace("MORE", more).replace("LATTICE", &format!("lattice::hypercubic({sizes})"));
        let script = script.replace("SIDE", &side.to_string()).replace("SITE", site);
        let place = Place(Folder::new("fields").with("a.rhai", &script));
        let files =
            || ["u.nersc", "u.lime", "half.nersc"].map(|name| std::fs::read(place.0.join(name)).unwrap());
        let Some(launcher) = launchers().first() else { return };
        let alone = place.prints(launcher, "1", &[]);
        let written = files();
        for (launcher, cuts) in dealt(&cuts) {
            for (ranks, grid) in cuts {
                let more: &[&str] = if grid.is_empty() { &[] } else { &["--grid", grid] };
                let out = place.prints(launcher, ranks, more);
                assert_eq!(alone, out, "{sizes} on {ranks} ranks {grid}: the same bits");
                assert!(written == files(), "{sizes} on {ranks} ranks {grid}: the same files");
            }
        }
    }
}

#[test]
fn long_halos_travel_in_pieces() {
    let place = Place(Folder::new("long").with(
        "a.rhai",
        "let u = gauge::reference_field(lattice::hypercubic(12, 12, 12, 4), 0.3);
         print(gauge::topological_charge(u));
         print(u.with_link([11, 11, 11, 3], 2, diagonal([-1.0, -1.0, 1.0])).link([11, 11, 11, 3], 2).at(0, 0));
         let far = 0.0;
         for site in [0, 63, 64, 1727, 1728, 6911] { far += u.link(site, 1).at(0, 2).im; }
         print(far);",
    ));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        assert_eq!(alone, place.prints(launcher, "2", &[]));
        assert_eq!(alone, place.prints(launcher, "4", &["--grid", "1x1x2x2"]));
    }
}

#[test]
fn one_rank_may_have_all_sites() {
    let script = "print(wilson::time_slices(wilson::reference_spinor(lattice::hypercubic(1, 2, 2, 4), 1)));";
    let place = Place(Folder::new("slices").with("a.rhai", script));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        assert_eq!(alone, place.prints(launcher, "2", &["--grid", "2x1x1x1"]));
    }
}

#[test]
fn gauge_files_are_refused_by_all_ranks() {
    let place = Place(Folder::new("damaged").with("a.rhai", "print(gauge::plaquette(load(\"bad.nersc\")));"));
    place.0.file(
        "b.rhai",
        "gauge::reference_field(lattice::hypercubic(4, 2, 2, 4), 0.3).save(\"none/a.lime\");",
    );
    place.0.file("c.rhai", "gauge::reference_field(lattice::hypercubic(4, 2, 2, 4), 0.3).save(\"u.nersc\");");
    for launcher in launchers() {
        let run = |script: &str| {
            place.run(launcher, &["run", script, "--threads", "1", "--ranks", "3", "--share-from", "0"])
        };
        assert_eq!(run("c.rhai").code, 0);
        let whole = std::fs::read(place.0.join("u.nersc")).unwrap();
        // Words of a link that the last rank reads change places, which the file's own sum does not show;
        // nor has it a check.
        let text = String::from_utf8_lossy(&whole).into_owned();
        let line = text.find("CRC32").unwrap();
        let end = line + text[line..].find('\n').unwrap() + 1;
        let mut swapped = [&whole[..line], &whole[end..]].concat();
        let n = swapped.len();
        (0..8).for_each(|k| swapped.swap(n - 144 + k, n - 8 + k));
        let mut damaged = whole.clone();
        let n = damaged.len();
        damaged[n - 5] ^= 1;
        let cases: [(&[u8], &str); 3] = [
            (&swapped, "the link of site 63 in direction 3 is not in SU(3)"),
            (&damaged, "the checksum of the data"),
            (&whole[..whole.len() - 100], "bytes, and"),
        ];
        for (bytes, message) in cases {
            std::fs::write(place.0.join("bad.nersc"), bytes).unwrap();
            let said = run("a.rhai");
            assert_eq!((said.code, said.err.matches(message).count()), (1, 1), "{message}: {said:?}");
        }
        let said = run("b.rhai");
        let told = said.err.matches("the folder `none` does not exist").count();
        assert_eq!((said.code, told), (1, 1), "{said:?}");
    }
}

#[test]
fn overlap_fermions_are_those_of_one_process() {
    let place = Place(Folder::new("overlap").with(
        "a.rhai",
        "let lat = lattice::hypercubic(4, 2, 2, 2);
         let u = gauge::heatbath(lat, #{ beta: 5.7, sweeps: 3, seed: 4, progress: false }).boundary(\"antiperiodic\");
         let d = overlap::operator(u, #{ s: 0.4, delta: 1e-10, seed: 1 });
         for x in (d * random_block(d, 2, #{ seed: 1 })).norm() { print(x); }
         print(overlap::index(d).index);
         let w = wilson::operator(u, #{ mass: 0.3 });
         let b = random_block(w, 1, #{ seed: 2 });
         for even_odd in [true, false] {
             let x = solve::bicgstab(w, b, #{ tol: 1e-11, even_odd: even_odd, progress: false }).x;
             print(x.norm());
         }",
    ));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        assert_eq!(numbers(&alone).len(), 5, "{alone}");
        // The sign function is approximated to 1e-10, solutions to residuals of 1e-11.
        close_within(1e-8, &alone, &place.prints(launcher, "3", &[]), "3 ranks");
    }
}
