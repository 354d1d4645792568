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

/// What arrays and maps are asked with is true or false, an order or an error, and nothing else.
#[test]
fn questions_that_are_not_answered() {
    let none = "it gives true or false";
    fail(
        &mut engine(None),
        &[
            ("[1, 2].filter(|x| x)", "filter: the function gives a number", none),
            ("[1, 2].retain(|x| x * 0.5)", "retain: the function gives a number", none),
            ("[1, 2].drain(|x| ())", "drain: the function gives", none),
            ("[1, 2].some(|x| \"a\")", "some: the function gives a text", none),
            ("[1, 2].all(|x| 1)", "all: the function gives a number", none),
            ("[1, 2].find(|x| 1)", "find: the function gives a number", none),
            ("[1, 2].index_of(|x| 1, -1)", "index_of: the function gives a number", none),
            ("#{ a: 1 }.filter(|k, v| v)", "filter: the function gives a number", none),
            ("#{ a: 1 }.retain(|k| this)", "retain: the function gives a number", none),
            ("#{ a: 1 }.drain(|k, v| k)", "drain: the function gives a text", none),
            ("[1, 2].dedup(|a, b| a - b)", "dedup: the function gives a number", none),
            ("[1, 2].dedup(|a, b| y)", "no variable `y`", "`let y = ..`"),
            ("[1, 2].filter(|x| y > x)", "no variable `y`", "`let y = ..`"),
            ("[2, 1].sort_by(|a, b| y)", "no variable `y`", "`let y = ..`"),
            ("[2, 1].order_by(|a, b| 0.0 / 0.0)", "NaN, which is no order", "`|a, b| a.x - b.x`"),
            ("[2, 1].order(|a, b| \"x\")", "the function gives a text", "`|a, b| a.x - b.x`"),
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
            ("let x² = 1.0;", "unexpected '²'", "a power is `x ** 2`"),
            ("let twofold = |x| 2 * x; twofold(3)", "no function `twofold(int)`", "`twofold.call(..)`"),
            (
                "meanfield::self_consistent(series([0.5]), || 1, #{ progress: false })",
                "a closure is called with (Series), and takes another number of values",
                "|a| ..",
            ),
            ("meanfield::self_consistent(series([]), |m| m)", "no fields", "one number"),
            ("meanfield::self_consistent(series([0.5]), |m| 1.0)", "a response of type float", "a Series"),
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

/// Of many calls within one another a report shows the first and the last ones.
#[test]
fn calls_are_shown_if_they_are_few() {
    let notes = |depth: usize| {
        let script = format!("fn f(n) {{ if n == 1 {{ throw \"end\"; }} f(n - 1) }}\nf({depth})");
        let report = engine(None).eval(&script).unwrap_err();
        assert_eq!(report.calls.len(), depth);
        let said = report.render(false);
        (
            said.matches("in `f`, called at line").count(),
            said.contains(&format!("and {} more calls", depth - 11)),
        )
    };
    assert_eq!(notes(12), (12, false));
    assert_eq!(notes(13), (11, true));
    assert_eq!(notes(60), (11, true));
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
        // Single products, and what else goes through all rows once.
        "free * random_block(free, 8);",
        "spectral_window(free, #{ method: \"gershgorin\" });",
        "davidson(free);",
        "kpm::polynomial(h, chebyshev_expand(|e| e, window(-6.1, 6.1), #{ terms: 1000000 })) * random_block(h, 8);",
    ] {
        let interrupt = Interrupt::default();
        let mut engine = Engine::with(Settings::default(), interrupt.clone()).unwrap();
        prepare(
            &mut engine,
            "let kept = 17; let h = tight_binding(lattice::cubic(24, 24, 24)); let spins = sites(\"S=1/2\", 22); let \
             free = exact::operator(models::heisenberg(spins), spins, #{ Sz: 0 }, #{ matrix: false });",
        );
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

/// What is open at the end of a script is pointed at, wherever the parser stopped.
#[test]
fn scripts_that_are_not_finished() {
    fail(
        &mut engine(None),
        &[
            ("if true {\n  print(1);\n", "this `{` is not closed", "`}` closes the block"),
            ("for i in 0..3 {\n  if i > 1 {\n    print(i);\n}\n", "this `{` is not closed", "`}` closes"),
            ("fn f(x) {\n  x + 1;\nprint(f(2));", "this `{` is not closed", "`}` closes"),
            ("let a = [1, 2,", "this `[` is not closed", "`]` closes it"),
            ("let m = #{ a: 1,\n  b: 2", "this `#{` is not closed", "`}` closes it"),
            ("print(\"a\"", "this `(` is not closed", "`)` closes it"),
            ("kpm::dos(", "this `(` is not closed", "`)` closes it"),
            ("let s = \"abc;", "this text is not closed", "back-ticks"),
            ("let s = \"abc\ndef\"; print(s);", "open string", "back-ticks"),
            ("let s = (3 \"abc\");", "matching (", "stand side by side"),
            ("let s = `abc ${1", "this text is not closed", "`}` each value"),
            ("let x = 3 +", "the script ends behind `+`", "needs more"),
            ("print((1 + 2);", "`)` is missing", "the `(` of line 1 is not closed before this"),
            ("let a = [1, 2\nlet b = 3;", "`]` is missing", "the `[` of line 1"),
            ("let a = [1, 2));", "`]` is missing", "by `]`, not by `)`"),
            ("let a = 1\nlet b = 2;", "`;` is missing before `let`", "line 1 ends a statement"),
            ("let x = 3);", "a `)` too many", "nothing is open"),
            ("let a = 2;\n}", "a `}` too many", "nothing is open"),
        ],
    );
}

/// What newcomers write, with the habits of other languages.
#[test]
fn habits_of_other_languages() {
    fail(
        &mut engine(None),
        &[
            ("let x = 3 +;", "unexpected ';'", "a value is missing before `;`"),
            ("let 3x = 4;", "name of a variable", "begins with a letter"),
            ("let loop = 4;", "name of a variable", "a word of the language"),
            ("let (a, b) = [1, 2];", "name of a variable", "a `let` of its own"),
            ("let a, b = 1, 2;", "`;` is missing before `,`", "in an array"),
            ("let x: int = 3;", "`;` is missing before `:`", "has no type"),
            ("fn f(a, b = 2) { a }", "`,` is missing before `=`", "names only"),
            ("f(1, key = 2)", "`,` is missing before `=`", "options stand in a map"),
            ("f(1 2)", "`,` is missing before `2`", "`,` stands between"),
            ("#{ a = 1 }", "to follow the property 'a'", "`#{ a: 1"),
            ("#{ a: 1; b: 2 }", "to end this object map", "`,` stands between the entries"),
            ("let x = 2; if x = 3 { 1 }", "typo of '=='", "`==` compares"),
            ("if 3 { 1 }", "a boolean expression, not a number", "`x != 0`"),
            ("for i in 3 { print(i) }", "an iterable value", "0..3"),
            ("for i, x in [1] { print(x) }", "expecting 'in'", "`for (x, i) in a"),
            ("let x = 1 ? 2 : 3;", "operator: '?'", "`if a { b } else { c }`"),
            ("if true { 1 } else 2", "expecting '{'", "in braces"),
            ("else { 3 }", "unexpected 'else'", "follows the `}`"),
            ("class A { }", "is missing before `A`", "a map holds values by name"),
            ("try { 1 } except { 2 }", "expecting 'catch'", "catch (e)"),
            ("match 3 { 1 => 2 }", "'match' is a reserved", "switch"),
            ("null == 3", "'null' is a reserved", "`()`"),
            ("let with = 3;", "'with' is a reserved", "take another name"),
            ("const A = 3; A = 4;", "constant A", "`let A = ..`"),
            ("break", "inside a loop", "`return`"),
            ("if true { fn f() { } }", "at global level", "`let f = |x|"),
            ("let x = \"a\\q\";", "escape sequence", "`\\\\` is a backslash"),
            ("kpm::", "name of a variable", "as in `kpm::dos(h)`"),
            ("kpm::dos", "no variable `kpm::dos`", "`kpm::dos(..)` calls it"),
            ("y + 1", "no variable `y`", "`let y = ..`"),
            ("fn f(a) { a } f()", "no function `f()`", "the script defines `f(a)`"),
            ("series([1, 2]).fft()", "no function `fft(Series)`", "Fourier sums"),
            ("series([1, 2]).xyzzy()", "no function `xyzzy(Series)`", "`help(\"Series\")` lists"),
            ("xyzzy()", "no function `xyzzy()`", "`lookfor xyzzy`"),
            ("[1, 2] * 2", "no function `*(array, int)`", "`series([1, 2])` has"),
            ("print(1) + 1", "no function `+((), int)`", "`()` is nothing"),
            ("true + 1", "no function `+(bool, int)`", "are no numbers"),
            ("let f = |x| x; f + 1", "no function `+(function, int)`", "f.call(x)"),
            ("sum([1, 2])", "no function `sum(array)`", "`series(x).sum()`"),
            ("sqrt(\"4\")", "no function `sqrt(string)`", "`parse_float(text)`"),
            ("round(3.14159, 2)", "no function `round(float, int)`", "`format(x, 3)`"),
            ("identity(3).inv()", "no function `inv(Matrix)`", "`m.inverse()`"),
            ("enumerate([1])", "no function `enumerate(array)`", "`for (x, i) in a"),
            ("help(\"kpm\")", "no function `help(string)`", "umklapp doc"),
            ("quit()", "no function `quit()`", "`exit()`"),
            ("dmrg(1, 2)", "no function `dmrg(int, int)`", "`dmrg` is a module"),
            ("models::tfim(3)", "no function `models::tfim(int)`", "`help(\"models\")`"),
            ("tight_binding(lattice::chain(4)).eigenvalues()", "`eigenvalues(Operator)`", "`davidson(h)`"),
            ("opsum().ground_state()", "`ground_state(OpSum)`", "`dmrg::finite(h, chain)`"),
            (
                "product_state(sites(\"S=1/2\", 1), [\"Up\"], #{}).entropy(1)",
                "no function `entropy(DmrgState, int)`",
                "without brackets: `.entropy`",
            ),
            ("input(\"n\")", "no function `input(string)`", "`--set n=8`"),
            ("open(\"a.txt\")", "no function `open(string)`", "`load("),
            ("let d = {}; d[\"a\"] = 1;", "() has no elements [string]", "an empty map is `#{}`"),
            ("let d = #{ a: 1 }; d[0]", "a value of type string belongs here, not int", "`m[\"x\"]`"),
            ("series([1, 2])[1.0]", "Series has no elements [float]", "`s[0]` is an element"),
            ("[1, 2][1.0]", "integer index, not a float", "are numbered"),
            ("\"abc\"[5]", "string index 5", "numbered from 0"),
            ("let x = 5; x.y = 3;", "int has no property `y` that can be set", "`#{}`"),
            ("1 / 0", "division by zero", "`1.0 / 0.0`"),
            ("5 % 0", "division by zero", "`1.0 / 0.0`"),
            ("9223372036854775807 + 1", "overflow", "9.2e18"),
            ("parse_float(\"x\")", "error parsing", "is written like"),
            ("let n = 3; for i in n { print(i); }", "`for` goes through", "0..3"),
            ("if [1].len { 1 }", "a value of type bool belongs here, not int", "`x != 0`"),
            ("fn f() { this + 1 } f()", "'this' not bound", "`x.f()`"),
        ],
    );
}

/// Sizes that do not fit, in words of one and of many.
#[test]
fn numbers_of_numbers() {
    fail(
        &mut engine(None),
        &[
            ("matrix([[1, 2], [3]])", "row 1 has 1 element, row 0 has 2", "one length"),
            ("matrix([[1], [3, 4]])", "row 1 has 2 elements, row 0 has 1", "one length"),
            ("identity(2) * identity(3)", "not 2 x 2 and 3 x 3", "as many columns as the second has rows"),
            ("identity(2) + identity(3)", "not 2 x 2 and 3 x 3", "element by element"),
            ("identity(1) * series([1, 2, 3])", "acts on 1 element, not on 3", "each column"),
            ("series([1, 2]) + series([1])", "equal lengths, not 2 and 1", "element by element"),
            ("identity(2).solve(series([1]))", "a 1 x 1 right-hand side", "as many rows"),
            ("matrix([[1, 2]]).det()", "a square matrix, this one is 1 x 2", "as many rows as columns"),
            ("matrix([[1, 2], [2, 4]]).inverse()", "is singular", "depend on one another"),
            ("matrix([[0.0 / 0.0]]).eigh()", "an element that is not finite", "division by zero"),
            ("series([1])[3]", "outside a series of 1 element", "from 0 to 0"),
            ("series([1, 2])[1..4]", "the slice 1..4", "from 0 to 2"),
            ("series([1]).std()", "needs two elements", "no spread"),
            ("series([1]).integrate(series([1, 2]))", "integrate: 1 value at 2 points", "at each point"),
            ("plot(series([1, 2]), series([1]))", "plot: 1 value at 2 points", "at each point"),
            ("table(#{ x: [1, 2], y: [1] })", "`y` has 1 row, column `x` has 2", "one length"),
            ("table(#{ x: [1] }).slice(0, 4)", "outside a table of 1 row", "from 0 to 1"),
            ("table(#{ x: [1] })[1]", "outside a table of 1 row", "numbered from 0"),
            ("table(#{ x: [1] }).y", "no column `y`; the columns are x", "one of these"),
            ("table(#{ x: [1] }).save(\"a.xyz\")", "extension `.xyz`", "the end of the name"),
            ("lattice::square(0, 3)", "one cell in each direction, not 0", "one cell is the least"),
            ("tight_binding(lattice::chain(4)) * identity(4)", "`*(Operator, Matrix)`", "`block(h, x)`"),
            ("let h = opsum(); h.add(0.0 / 0.0, \"Sz\", 0)", "is not a finite number", "division by zero"),
            ("let a = series([1]); a[0] = \"x\";", "is a number, not a text", "without quotes"),
        ],
    );
}

/// Types in messages have the names that scripts have for them.
#[test]
fn types_by_their_names() {
    fail(
        &mut engine(None),
        &[
            ("lattice::chain(())", "no function `lattice::chain(())`", "`lattice::chain(n: int) -> Lattice`"),
            ("sites(\"S=1/2\", ())", "no function `sites(string, ())`", "`sites(kind, n: int) -> Sites`"),
            ("-()", "no function `-(())`", "`()` is nothing"),
            ("[1, 2][I]", "a value of type int belongs here, not Complex", "type_of"),
            ("sites(I, 2)", "or made by `site`, not a Complex", "the page of `sites`"),
            ("sites(0, 2)", "or made by `site`, not a number", "the page of `sites`"),
            ("product_state(sites(\"S=1/2\", 1), [I], #{})", "by its name, not by a Complex", "like \"Up\""),
            ("lattice::chain(4).boundary(identity(2))", "a boundary is a name, not a Matrix", "\"open\""),
            ("lattice::chain(4).boundary(|x| x)", "a boundary is a name, not a function", "\"open\""),
            ("lattice::chain(4).boundary(3)", "no boundary `3`", "\"open\""),
            ("lattice::square(4, 4).site([0, 0, I])", "its number or its name, not by a Complex", "\"A\""),
            ("lattice::chain(4).neighbors(-1)", "site -1 is negative", "from 0"),
            ("lattice::spin_orbit([1], 0.3)", "named by a text, not by a number", "\"px\""),
            (
                "unit_block(tight_binding(lattice::chain(4)), [0, I])",
                "rows are whole numbers, not a Complex",
                "from 0",
            ),
            ("table(#{ x: [1] }).push(#{ x: [1] })", "a number or a text, not an array", "t.push"),
        ],
    );
}

/// Numbers so large that their squares or sums are none, and operators that are too large to be shown.
#[test]
fn numbers_and_sizes_without_bounds() {
    fail(
        &mut engine(None),
        &[
            ("tight_binding(lattice::chain(100000)).to_matrix()", "too large to print", "8192 rows"),
            ("sparse([0, 1], [1, 0], [1.0 / 0.0, 1.0])", "entry (0, 1) is not a finite number", "by zero"),
            (
                "let up = opsum(); up.add(1e300, \"S+\", 0); \
                 dmrg::apply(up, 1e300 * product_state(sites(\"S=1/2\", 2), [\"Dn\", \"Up\"], #{ Sz: 0 }))",
                "the state is not finite",
                "1e150",
            ),
            ("models::heisenberg_chain(9000000000000000000)", "is too long", "a million sites"),
            (
                "let h = tight_binding(lattice::chain(4)); kpm::evolve(h, unit_block(h, [0]), 1.0 / 0.0)",
                "over the time inf",
                "a finite number",
            ),
        ],
    );
}
