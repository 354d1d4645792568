//! What scripts can do to themselves: recursion, loops without end, values in use.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use umklapp::Engine;
use umklapp::error::ErrorKind;
use umklapp::script::Settings;
use umklapp::task::{Interrupt, Progress};

use super::{engine, fail, prepare};

/// The hint for a name that is not there is of the value or the module that it was asked of.
#[test]
fn names_that_are_not_there() {
    fail(
        &mut engine(None),
        &[
            ("table(#{ x: [1, 2] }).sve(\"a.csv\")", "no function `sve(Table, string)`", "`Table.save("),
            ("jastrow::pad(#{ b: 1.0 })", "no function `jastrow::pad(map)`", "`jastrow::pade("),
            ("wilson::spectrum(3)", "no function `wilson::spectrum(int)`", "State.spectrum(bond: int)"),
            ("wilson::photograph(3)", "no function `wilson::photograph(int)`", "`help(\"wilson\")`"),
            ("let r = 0..3; r.map(|i| i)", "no function `map(range, function)`", "`series(0..n)`"),
            ("let h = opsum(); h.add(\"Sz\", 0)", "no function `add(OpSum, string, int)`", "`OpSum.add("),
            ("[1, 2, 3][7]", "index 7 is outside an array of 3 elements", "from 0 to 2, or from -1"),
            ("[][0]", "index 0 is outside an array of 0 elements", "`push`"),
            ("crystal::electron_gas(2, \"1\")", "r_s is a real number, not a text", "without quotes"),
            ("\"a\" + 1 - 2", "no function `-(string, int)`", "`parse_float(text)`"),
            (
                "tight_binding(lattice::chain(4)) + series([1.0])",
                "no function `+(Operator, Series)`",
                "`help(\"Operator\")` or `help(\"Series\")`",
            ),
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
            ("let y = 3; fn h(x) { x + y } h(1)", "no variable `y`", "`global::y`"),
            (
                "let μ = 1.0; print(\u{b5})",
                "no variable `\u{b5}`",
                "`μ` looks the same, but is another letter",
            ),
            ("let x² = 1.0;", "Unexpected '²'", "a power is `x ** 2`"),
            ("let twofold = |x| 2 * x; twofold(3)", "no function `twofold(int)`", "`twofold.call(..)`"),
            (
                "meanfield::self_consistent(series([0.5]), || 1, #{ progress: false })",
                "a closure is called with (Series), and takes another number of values",
                "|a| ..",
            ),
            ("meanfield::self_consistent(series([]), |m| m)", "no fields", "one number"),
            ("meanfield::self_consistent(series([0.5]), |m| 1.0)", "a response of type f64", "a Series"),
            ("meanfield::self_consistent(series([0.5]), |m| series([]))", "0 new fields for 1", "as many"),
            (
                "meanfield::self_consistent(series([0.5]), |m| m * (0.0 / 0.0))",
                "fields that are not numbers (NaN) in step 1",
                "response",
            ),
            (
                "meanfield::self_consistent(1.0, |m| m)",
                "the argument `fields` takes a Series",
                "response: function",
            ),
            (
                "kpm::dos(tight_binding(lattice::chain(8)), #{ kernel: \"jakson\" })",
                "no kernel `jakson`",
                "\"jackson\"",
            ),
            (
                "kpm::conductivity(tight_binding(lattice::chain(8)), #{ energies: [0.0], points: 5 })",
                "the options `points` and `energies` exclude each other",
                "leave one",
            ),
        ],
    );
}

#[test]
fn names_of_earlier_versions() {
    fail(
        &mut engine(None),
        &[
            (
                "moments_for(1, 2)",
                "no function `moments_for(int, int)`",
                "`moments_for` is `kpm::moments_for` now",
            ),
            ("k_path([[0.0]], 2)", "no function `k_path", "`k_path` is `lattice::k_path` now"),
            ("gauge::load(\"u.nersc\")", "no function `gauge::load", "`gauge::load` is `load` now"),
        ],
    );
    let found = engine(None).check("let t = trap(1.0);", None);
    assert!(found[0].render(false).contains("`trap` is `vmc::trap` now"), "{}", found[0].render(false));
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
        assert_eq!(report.kind, ErrorKind::Interrupted, "{work}:\n{}", report.render(false));
        stopper.join().unwrap();
        assert_eq!(engine.eval("kept").unwrap().as_int(), Ok(17), "variables stay");
    }
}

/// The language does not say where, so only the sentence and the hint are held.
#[test]
fn methods_whose_function_uses_their_value() {
    let script = "let u = gauge::unit(lattice::hypercubic(2, 2, 2, 2)); u.transformed(|x| u.link(x, 0))";
    let report = engine(None).eval(script).expect_err("the value is held");
    assert!(report.message.contains("uses the value whose method calls it"), "{}", report.message);
    assert!(report.hint.is_some_and(|hint| hint.contains("let v = u")));
}
