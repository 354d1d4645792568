//! Bad input of every kind: one sentence at the place in the script, a hint, no panic and no number.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use umklapp::Engine;
use umklapp::error::Kind;
use umklapp::script::Settings;
use umklapp::script::diagnostics::Report;
use umklapp::task::{Interrupt, Progress};

/// A folder that goes away with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("umklapp-bad-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, content: &[u8]) {
        std::fs::write(self.0.join(name), content).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn engine(out: Option<PathBuf>) -> Engine {
    Engine::with(Settings { out, quiet: true, ..Settings::default() }, Interrupt::default()).unwrap()
}

/// What every error must be: a sentence of one line, and the user's line marked.
fn is_for_people(script: &str, report: &Report) {
    let lines = script.lines().count();
    let text = report.render(false);
    assert_ne!(report.kind, Kind::Internal, "`{script}`:\n{text}");
    assert!(!report.message.contains('\n') && report.message.len() < 160, "`{script}`:\n{text}");
    assert!(!report.message.contains("alloc::") && !report.message.contains("core::"), "`{script}`:\n{text}");
    let line = report.position.unwrap_or_else(|| panic!("no position for `{script}`:\n{text}")).0;
    assert!((1..=lines).contains(&line), "`{script}`:\n{text}");
}

/// Every script fails; its message and its hint contain the words given.
fn fail(engine: &mut Engine, cases: &[(&str, &str, &str)]) {
    for (script, message, hint) in cases {
        let report = match engine.eval(script) {
            Ok(value) => panic!("`{script}` gave {}", engine.show(&value)),
            Err(report) => report,
        };
        is_for_people(script, &report);
        let text = report.render(false);
        assert!(report.message.contains(message), "`{message}` is not in the message of `{script}`:\n{text}");
        let found = report.hint.unwrap_or_else(|| panic!("`{script}` has no hint:\n{text}"));
        assert!(found.contains(hint), "`{hint}` is not in the hint of `{script}`:\n{text}");
    }
}

/// Runs what the cases to come need.
fn prepare(engine: &mut Engine, script: &str) {
    if let Err(report) = engine.eval(script) {
        panic!("{}", report.render(false));
    }
}

/// A chain of eight sites for the cases to come.
fn with_chain() -> Engine {
    let mut engine = engine(None);
    let setup = "let h = tight_binding(lattice::chain(8)); let w = window(-2.1, 2.1);";
    prepare(&mut engine, setup);
    engine
}

#[test]
fn options_that_do_not_exist_or_are_of_another_kind() {
    fail(
        &mut with_chain(),
        &[
            ("kpm::dos(h, #{ momens: 4 })", "unknown option `momens`", "`moments`"),
            ("davidson(h, #{ cuont: 4 })", "unknown option `cuont`", "`count`"),
            (
                "kpm::dos(h, #{ moments: \"many\" })",
                "option `moments` takes a whole number, not a text",
                "many",
            ),
            ("kpm::dos(h, #{ moments: 2.5 })", "option `moments` takes a whole number", "2.5"),
            ("kpm::dos(h, #{ vectors: [] })", "option `vectors` takes a whole number, not an array", "[]"),
            ("kpm::dos(h, #{ window: 3 })", "option `window` takes Window, not a number", "3"),
            ("kpm::dos(h, #{ kernel: 3 })", "option `kernel` takes a text", "3"),
            ("kpm::dos(h, #{ progress: 1 })", "option `progress` takes true or false", "1"),
            ("kpm::dos(h, #{ range: 7 })", "option `range` takes an array", "7"),
            ("kpm::ldos(h, 1, #{ orbital: 0.5 })", "option `orbital` takes a whole number", "0.5"),
            ("kpm::dos(h, #{ kernel: \"jakson\" })", "no kernel `jakson`", "jackson"),
            ("kpm::dos(h, #{ accumulate: \"magic\" })", "no accumulation `magic`", "fused"),
            ("tight_binding(lattice::chain(8), #{ format: \"cesr\" })", "no format `cesr`", "csr"),
            ("tight_binding(lattice::chain(8), #{ precision: \"half\" })", "no precision `half`", "single"),
            ("lattice::square(4, 4).boundary(\"periodik\", \"open\")", "no boundary `periodik`", "periodic"),
            ("davidson(h, #{ count: 0 })", "option `count` is 0", "at least 1"),
            ("sqrt(\"a\")", "no function `sqrt(string)`", "can be called as"),
            ("kpm::dos(h, 7)", "options are given as a map, not as 7", "#{ moments"),
            ("kpm::dos(7)", "an Operator, not of 7", "tight_binding"),
            ("kpm::dos(h, #{ range: [1.0] })", "range of 1 numbers", "two"),
        ],
    );
}

#[test]
fn numbers_that_mean_nothing() {
    fail(
        &mut with_chain(),
        &[
            ("kpm::dos(h, #{ moments: 0 })", "0 moments", "two at least"),
            ("kpm::dos(h, #{ moments: -4 })", "-4 moments", "two at least"),
            ("kpm::dos(h, #{ moments: 1000000000000 })", "1000000000000 moments", "at most"),
            ("kpm::dos(h, #{ vectors: 0 })", "0 vectors", "one at least"),
            ("kpm::dos(h, #{ points: 0 })", "0 points", "one at least"),
            ("kpm::dos(h, #{ broadening: 0.0 })", "a broadening of 0", "above zero"),
            ("kpm::dos(h, #{ broadening: 1e-300 })", "a broadening of 1e-300", "larger part"),
            ("kpm::dos(h, #{ moments: 64, window: window(-0.5, 0.5) })", "leaves the window", "wider window"),
            (
                "chebyshev(h, window(-1.0, 1.0), unit_block(h, [0])).run(99)",
                "leaves the window",
                "wider window",
            ),
            ("window(1.0, -1.0)", "a spectral window from 1 to -1", "lower limit"),
            ("window(0.0 / 0.0, 1.0)", "a spectral window from NaN", "lower limit"),
            ("spectral_window(h, #{ margin: -1.0 })", "a margin of -1", "fraction"),
            ("kpm::ldos(h, 8)", "site 8 outside a lattice of 8 sites", "0 to 7"),
            ("kpm::ldos(h, -1)", "site -1 is negative", "from 0"),
            ("kpm::ldos(h, [])", "a block of no rows", "one row"),
            ("unit_block(h, [8])", "row 8 of an operator with 8 rows", "0 to 7"),
            ("unit_block(h, [])", "a block of no rows", "one row"),
            ("random_block(h, 0)", "a block of 0 columns", "one column"),
            ("zeros(h, -1)", "a block of -1 columns", "one column"),
            ("davidson(h, #{ count: 9 })", "9 eigenpairs of an operator with 8 rows", "`count`"),
            ("lattice::chain(-3)", "the size of a lattice is -3", "cells"),
            ("lattice::hypercubic([2, -2])", "the size of a lattice is -2", "cells"),
            ("tight_binding(lattice::cubic(10000, 10000, 10000))", "1000000000000 rows takes", "fewer sites"),
            ("random_block(h, 100000000000000)", "needs", "fewer vectors"),
            ("tight_binding(lattice::chain(8), #{ hopping: 0.0 / 0.0 })", "is not a finite number", "zero"),
            ("let m = model(lattice::chain(8), 1); m.onsite(|r| 0.0 / 0.0); m.build()", "site 0", "zero"),
            ("kpm::evolve(h, unit_block(h, [0]), 0.0 / 0.0)", "the function is NaN", "finite"),
            ("chebyshev_expand(|x| 1.0 / 0.0, w, #{})", "the function is inf", "finite"),
            ("kpm::dos(h * (0.0 / 0.0))", "not finite", "NaN"),
            ("series([1, 2])[7]", "index 7 is outside a series of 2", "0 to 1"),
        ],
    );
}

#[test]
fn what_does_not_fit_together() {
    let mut engine = with_chain();
    prepare(&mut engine, "let other = unit_block(tight_binding(lattice::chain(9)), [0]);");
    fail(
        &mut engine,
        &[
            ("h * other", "a 8 x 8 operator and a vector of 9 rows", "unit_block"),
            ("chebyshev(h, w, other)", "vectors of 9 rows for an operator of 8", "unit_block"),
            ("series([1.0, I]).max()", "this one is complex", ".re"),
            ("kpm::moments(h, #{ moments: 8 }).density(series([0.0, I]), #{})", "this one is complex", ".re"),
            ("let m = model(lattice::chain(8), 1); m.onsite(I);", "not Hermitian", "real"),
            (
                "let m = model(lattice::chain(8), 2); m.onsite(matrix([[0, 1], [2, 0]]));",
                "not Hermitian",
                "dagger",
            ),
            ("davidson(sparse([0, 1], [1, 0], [1.0, 2.0]))", "this one is not", "dagger"),
            ("davidson(I * h)", "this one is not", "dagger"),
        ],
    );
}

#[test]
fn moments_of_operators_that_are_not_hermitian_are_refused() {
    // Its eigenvalues are real and inside the window, so that nothing would grow.
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let a = sparse([0, 1], [1, 0], [1.0, 2.0]); let w = window(-3.0, 3.0); let v = unit_block(a, [0]);",
    );
    for script in [
        "spectral_window(a)",
        "spectral_window(a, #{ method: \"lanczos\" })",
        "kpm::dos(a)",
        "kpm::dos(a, #{ window: w })",
        "kpm::dos(a, #{ window: w, accumulate: \"divided\" })",
        "chebyshev(a, w, v)",
        "kpm::ldos(a * a.dagger() + a, 0)",
    ] {
        let report = engine.eval(script).unwrap_err();
        is_for_people(script, &report);
        let expected = ["Hermitian", "knows no lattice"];
        assert!(expected.iter().any(|words| report.message.contains(words)), "{}", report.render(false));
    }
    // Without false alarms: rounding, lazy sums and complex entries.
    prepare(
        &mut engine,
        "
        let b = sparse([0, 1], [1, 0], [0.1 * 3.0, 0.3]);
        spectral_window(b);
        let c = sparse([0, 1], [1, 0], [I, -I]);
        chebyshev(2.0 * c + b, w, unit_block(c, [0])).run(4);
        chebyshev(a + a.dagger(), window(-4.0, 4.0), v).run(4);
    ",
    );
}

#[test]
fn files_that_are_missing_cut_off_or_of_another_kind() {
    let folder = Folder::new("files");
    let mut engine = engine(Some(folder.0.clone()));
    prepare(
        &mut engine,
        "let t = table(#{ a: [1, 2, 3], b: [4, 5, 6] });
        for kind in [\"csv\", \"json\", \"npz\"] { t.save(`whole.${kind}`); }",
    );
    let cut = |kind: &str| {
        let whole = std::fs::read(folder.0.join(format!("whole.{kind}"))).unwrap();
        whole[..whole.len() - whole.len() / 3].to_vec()
    };
    folder.file("cut.json", &cut("json"));
    folder.file("cut.npz", &cut("npz"));
    folder.file("cut.csv", b"a,b\n1.0,2.0\n3.0\n");
    folder.file("none.csv", b"");
    folder.file("cut.mtx", b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1.0\n");
    folder.file(
        "huge.mtx",
        b"%%MatrixMarket matrix coordinate real general\n1000000000000 1000000000000 1\n1 1 1.0\n",
    );
    folder.file("text.mtx", b"hello\n");
    folder.file("cut_hr.dat", b"by hand\n 2\n 3\n 2 1 2\n-1 0 0 1 1 0.0 0.0\n");
    fail(
        &mut engine,
        &[
            ("load(\"missing.csv\")", "there is no such file", "folder"),
            ("load(\"cut.json\")", "cut.json", "truncated"),
            ("load(\"cut.npz\")", "cut.npz", "truncated"),
            ("load(\"cut.csv\")", "line 3 has 1 cells where 2 should be", "truncated"),
            ("load(\"none.csv\")", "there are no numbers in it", "truncated"),
            ("matrix_market(\"cut.mtx\")", "ends after line 3", "truncated"),
            ("matrix_market(\"huge.mtx\")", "takes 16.0 TB", "fewer"),
            ("matrix_market(\"text.mtx\")", "is no header", "%%MatrixMarket"),
            ("wannier90(\"cut_hr.dat\", #{ cells: [2, 2, 2] })", "ends after line 5", "truncated"),
            ("t.save(\"nowhere/at/all.csv\")", "cannot write", "does not exist"),
            ("plot(t, #{ file: \"nowhere/at/all.svg\" })", "cannot write", "does not exist"),
            ("import \"no_such_module\" as m;", "no module `no_such_module`", "beside the script"),
        ],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let folder = Folder::new("full");
    for kind in ["csv", "json", "npz", "svg", "png"] {
        std::os::unix::fs::symlink("/dev/full", folder.0.join(format!("full.{kind}"))).unwrap();
    }
    let mut engine = engine(Some(folder.0.clone()));
    prepare(&mut engine, "let t = table(#{ a: [1, 2, 3], b: [4, 5, 6] });");
    fail(
        &mut engine,
        &[
            ("t.save(\"full.csv\")", "no space left", "free some"),
            ("t.save(\"full.json\")", "no space left", "free some"),
            ("t.save(\"full.npz\")", "no space left", "free some"),
            ("plot(t, #{ file: \"full.svg\" })", "no space left", "free some"),
            ("plot(t, #{ file: \"full.png\" })", "no space left", "free some"),
        ],
    );
}

#[test]
fn functions_that_call_themselves_forever() {
    fail(
        &mut engine(None),
        &[
            ("fn f(x) { f(x + 1) }\nf(0)", "too deeply", "loop"),
            ("fn g(x) { g(x + 1) }\n[1, 2].map(|x| g(x))", "too deeply", "loop"),
            ("let m = #{ a: 1 }; m.b", "no `b`", "keys"),
        ],
    );
}

/// Tells that work began.
struct Began(Sender<()>);

impl Progress for Began {
    fn start(&self, _: &str, _: u64) {
        // Nobody listens any more once the work was stopped.
        let _ = self.0.send(());
    }

    fn advance(&self, _: u64, _: &str) {}

    fn finish(&self) {}
}

#[test]
fn native_work_and_loops_stop_when_asked_to() {
    for work in [
        // Each would run for hours.
        "chebyshev(h, window(-6.1, 6.1), random_block(h, 8)).run(100000000);",
        "kpm::moments(h, #{ moments: 60000000 });",
        "davidson(h, #{ count: 400, tol: 1e-30, iterations: 1000000000 });",
        "spectral_window(h, #{ method: \"lanczos\", steps: 3 }); loop { kept += 0; }",
    ] {
        let interrupt = Interrupt::default();
        let mut engine = Engine::with(Settings::default(), interrupt.clone()).unwrap();
        prepare(&mut engine, "let kept = 17; let h = tight_binding(lattice::cubic(24, 24, 24));");
        let (sender, began) = channel();
        engine.session().set_progress(Some(Arc::new(Began(sender))));
        let stopper = std::thread::spawn(move || {
            began.recv().unwrap();
            interrupt.raise();
        });
        let report = engine.eval(work).unwrap_err();
        assert_eq!(report.kind, Kind::Interrupted, "{work}:\n{}", report.render(false));
        stopper.join().unwrap();
        assert_eq!(engine.eval("kept").unwrap().as_int(), Ok(17), "variables stay");
    }
}

#[test]
fn blocks_and_sweeps() {
    let mut engine = engine(None);
    prepare(
        &mut engine,
        "let c = sites(\"S=1/2\", 6); let h = models::heisenberg(c); let z = #{ Sz: 0.0 }; let m = mpo(h, c, z); \
         let l = left_edge(m).extend().extend().grow(); let r = right_edge(m).extend().extend().grow(); \
         let both = superblock(l, r); let op = exact::operator(h, c, z); let v = davidson(both).vectors; \
         let bond = opsum(); bond.add(1.0, \"Sz\", 0, \"Sz\", 1); let skew = opsum(); \
         skew.add(I, \"S+\", 0, \"S-\", 1); skew.add(-1.0 * I, \"S-\", 0, \"S+\", 1); \
         let up = opsum(); up.add(1.0, \"S+\", 0); let far = opsum(); far.add(1.0, \"Sz\", 9); \
         let two = opsum(); two.add(1.0, \"Sz\", 0, \"Sz\", 2); let gs = dmrg::finite(h, c, #{ sector: z, states: 8, sweeps: 1, progress: false });",
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
            ("dmrg::finite(h, c, #{ states: \"many\" })", "takes a whole number", "each sweep"),
            ("dmrg::finite(h, c, #{ states: [] })", "empty list", "each sweep"),
            ("dmrg::finite(h, c, #{ states: 0 })", "`states` is 0", "positive"),
            ("dmrg::finite(h, c, #{ sweeps: 0 })", "0 sweeps", "at least"),
            ("dmrg::finite(h, c, #{ sector: z, start: [\"Up\"] })", "1 local states", "one for each site"),
            ("dmrg::finite(h, c, #{ start: 7 })", "not 7", "Up"),
            (
                "dmrg::finite(h, c, #{ sector: z, start: [\"Up\", \"Up\", \"Up\", \"Up\", \"Up\", \"Dn\"] })",
                "outside the sector",
                "sector",
            ),
            ("dmrg::finite(h, c, #{ sector: z, strategy: \"RL\" })", "no strategy `RL`", "l-1-1-r"),
            ("dmrg::finite(h, sites(\"S=1/2\", 1))", "a chain of 1 site", "two"),
            ("superblock(l, l)", "a left and a right block", "mirror"),
            ("superblock(l, right_edge(m).grow())", "do not meet", "bond"),
            ("superblock(l, r, #{ Sz: 99 })", "no state of the superblock", "combined"),
            ("superblock(l, r, #{ Q: 1 })", "no conserved number `Q`", "Sz"),
            ("l.grow()", "no further site", "rotate"),
            (
                "left_edge(m).rotate(density_matrix(both, v, \"left\").truncate(#{}))",
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
            ("load_state(\"nothing.dmrg\")", "`nothing.dmrg` cannot be read", "save"),
            ("gs.expect(\"sz\")", "no operator `sz`", "`Sz`"),
            ("gs.spectrum(5)", "no bond 5", "between sites"),
            ("gs.with_properties(#{}).excited", "does not know its `excited`", "dmrg::finite"),
            (
                "gs.overlap(product_state(sites(\"S=1/2\", 2), [\"Up\", \"Dn\"], z))",
                "different chains",
                "chain",
            ),
            (
                "site(#{ operators: #{ Z: pauli().z }, charges: #{ P: [0, 1] }, modulo: #{ P: 1 } })",
                "modulo 1",
                "Z_n",
            ),
            ("sites(\"SU(9)\", 2)", "no kind of site", "eight flavours"),
        ],
    );
}
