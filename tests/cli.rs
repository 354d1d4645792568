//! The program as a user starts it: what it writes where, and its exit codes.

use std::process::{Command, Output};

use crate::common::Folder;

/// A folder that goes away with the value, and the program started in it.
struct Place(Folder);

impl Place {
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Said {
        let output: Output = Command::new(env!("CARGO_BIN_EXE_umklapp"))
            .args(args)
            .current_dir(&self.0)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    #[track_caller]
    fn exactly(&self, code: i32, out: &str, err: &str) {
        assert_eq!((self.code, self.out.as_str(), self.err.as_str()), (code, out, err));
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_script() {
    let place = Place(Folder::new("mark").with("marked.rhai", "\u{feff}print(1 + 1);"));
    place.run(&["run", "marked.rhai"]).exactly(0, "2\n", "");
}

#[test]
fn results_go_to_standard_output_and_trouble_to_standard_error() {
    let place = Place(
        Folder::new("run").with("a.rhai", "print(args.n + 1);\nlet x = 1/2;\nprint(args.rest);\nsqr(2);\n"),
    );
    let said = place.run(&["run", "a.rhai", "--set", "n=41", "--", "left"]);
    let err = "\
warning: `1/2` divides whole numbers and gives 0
 --> a.rhai:2:10
  |
2 | let x = 1/2;
  |          ^
  |
  = hint: write `1.0/2.0`
error: no function `sqr(int)`
 --> a.rhai:4:1
  |
4 | sqr(2);
  | ^^^
  |
  = hint: did you mean `sqrt(Complex) -> Complex`?
";
    said.exactly(1, "42\n[\"left\"]\n", err);
    let quiet = place.run(&["run", "-q", "a.rhai", "--set", "n=41"]);
    assert!(!quiet.err.contains("warning"), "{}", quiet.err);
    place.run(&["run", "missing.rhai"]).exactly(
        1,
        "",
        "error: `missing.rhai` cannot be read: no such file or directory\n",
    );
}

#[test]
fn a_product_that_is_divided_is_no_trap() {
    let place = Place(Folder::new("product").with("a.rhai", "let n = 1000;\nprint(n * 2237 / 1000);\n"));
    place.run(&["run", "a.rhai"]).exactly(0, "2237\n", "");
}

#[test]
fn wrong_usage_is_code_2() {
    let place = Place(Folder::new("usage").with("a.rhai", ""));
    for args in [
        &["run"][..],
        &["fly"],
        &["run", "a.rhai", "--set", "novalue"],
        &["run", "a.rhai", "--backend", "abacus"],
        &["run", "a.rhai", "--grid", "2x2"],
        &["run", "a.rhai", "--weights", "1:2"],
    ] {
        let said = place.run(args);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.starts_with("error: "), "{}", said.err);
    }
    let help = place.run(&["--help"]);
    assert_eq!(help.code, 0);
    for word in ["run", "check", "test", "doc", "info", "merge", "cite", "completions"] {
        assert!(help.out.contains(&format!("\n  {word} ")), "{word} is not in the help:\n{}", help.out);
    }
}

#[test]
fn options_may_stand_before_the_command() {
    let place = Place(Folder::new("before").with("a.rhai", "table(#{ x: [1.0] }).save(\"x.csv\");"));
    for args in [
        &["--out", "here", "run", "a.rhai"][..],
        &["--out", "there", "--threads", "1", "run", "a.rhai", "--out", "here"],
        &["--out", "here", "a.rhai"],
    ] {
        let _ = std::fs::remove_dir_all(place.0.join("here"));
        let said = place.run(args);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(place.0.join("here/x.csv").exists() && !place.0.join("there").exists(), "{args:?}");
    }
    let said = place.run(&["--backend", "abacus", "run", "a.rhai"]);
    assert_eq!(said.code, 2, "{}", said.err);
    let said = place.run(&["--threads", "1", "check", "a.rhai"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("no use for `--threads`"), "{}", said.err);
}

#[test]
fn a_script_needs_no_command_and_sets_the_exit_code() {
    let place = Place(
        Folder::new("exit")
            .with("a.rhai", "print(args.rest);\nfn end() { exit(3); }\nend();\nprint(2);")
            .with("b.rhai", "exit();\nprint(2);")
            .with("c.rhai", "exit(256);"),
    );
    place.run(&["run", "a.rhai", "--", "x"]).exactly(3, "[\"x\"]\n", "");
    place.run(&["a.rhai", "--", "x"]).exactly(3, "[\"x\"]\n", "");
    place.run(&["b.rhai"]).exactly(0, "", "");
    let said = place.run(&["c.rhai"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("an exit code of 256") && said.err.contains("between 0 and 255"),
        "{}",
        said.err
    );
    let said = place.run(&["missing.rhai"]);
    assert!(said.code == 1 && said.err.contains("cannot be read"), "{}", said.err);
}

#[test]
fn a_backend_that_is_not_there_is_an_error() {
    let place = Place(Folder::new("backend").with("a.rhai", "print(1);"));
    let said = place.run(&["run", "a.rhai", "--backend", "cuda"]);
    // Where there is a GPU the script runs on it; nowhere does it fall back in silence.
    assert!(
        (said.code == 1 && said.out.is_empty() && said.err.starts_with("error: ")) || said.out == "1\n",
        "{said:?}"
    );
    assert_eq!(place.run(&["run", "a.rhai", "--backend", "cpu"]).out, "1\n");
}

#[test]
fn several_backends_share_the_rows() {
    let script = "\
let h = tight_binding(lattice::chain(64));
let v = random_block(h, 2, #{ seed: 3 });
print((h * v).dot(h * (h * v)));
print(v);
print(backend().name);
if \"parts\" in backend() { print(backend().parts.map(|p| p.share)); }
";
    let place = Place(Folder::new("shared").with("a.rhai", script));
    let alone = place.run(&["run", "a.rhai", "--backend", "cpu"]);
    let shared = place.run(&["run", "a.rhai", "--backend", "cpu+cpu", "--weights", "1:3"]);
    assert_eq!((alone.code, shared.code), (0, 0), "{alone:?} {shared:?}");
    let expected = alone.out.replace("on cpu", "on cpu+cpu").replace("\ncpu\n", "\ncpu+cpu\n");
    assert_eq!(shared.out, format!("{expected}[0.25, 0.75]\n"));
    for (wrong, why) in [
        (["--backend", "cpu+gpu", "--quiet"], "no backend `cpu+gpu`"),
        (["--backend", "cpu+cpu", "--weights=0:0"], "`0:0` are no weights"),
        (["--backend", "cpu+cpu", "--weights=1:2:3"], "3 weights for 2 backends"),
        (["--backend", "cpu", "--weights=1:2"], "weights are for several backends"),
    ] {
        let said = place.run(&[&["run", "a.rhai"], &wrong[..]].concat());
        assert!(said.code != 0 && said.out.is_empty() && said.err.contains(why), "{said:?}");
    }
}

#[test]
fn scaling_is_measured_over_equal_backends() {
    let place = Place(Folder::new("scale"));
    let args = ["bench", "scale", "--only", "cubic", "--seconds", "0.01", "--threads", "2"];
    let said = place.run(&[&args[..], &["--backend", "cpu+cpu", "--weights", "1:1"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    for row in ["| cubic 64x64x64 R=8, strong | 262144 |", "| cubic 64x64x64 R=8, weak | 524288 |"] {
        assert_eq!(said.out.matches(row).count(), 1, "{}", said.out);
    }
    let said = place.run(&[&args[..], &["--backend", "cpu+cpu", "--weights", "1:2"]].concat());
    assert!(said.code == 1 && said.err.contains("equal shares"), "{}", said.err);
}

#[test]
fn check_finds_what_would_fail() {
    let script = "\
fn twice(x) { 2 * x }
let h = tight_binding(lattice::chain(4));
print(twice(2^3));
print(`${-twice(3)**2}`);
print(-2**2);
kpm::dso(h);
h.daggr();
twise(1);
chebyshev(h);
";
    let place = Place(
        Folder::new("check")
            .with("bad.rhai", script)
            .with("good.rhai", "let f = |x| x + 1;\nprint(f.call(1.0 / 2.0));\n"),
    );
    place.run(&["check", "good.rhai"]).exactly(0, "", "");
    let said = place.run(&["check", "bad.rhai"]);
    let titles: Vec<&str> = said
        .err
        .lines()
        .filter(|l| l.starts_with("error") || l.starts_with("warning") || l.starts_with("  = "))
        .collect();
    let expected = [
        "warning: `^` is the exclusive or of bits",
        "  = hint: powers are written `**`",
        "warning: the minus sign binds before `**`, so that `-x**2` is `(-x)**2`",
        "  = hint: write `-(x**2)`",
        "warning: the minus sign binds before `**`, so that `-x**2` is `(-x)**2`",
        "  = hint: write `-(x**2)`",
        "error: no function `kpm::dso`",
        "  = hint: did you mean `kpm::dos(x: Operator or Model or Moments, opts) -> Table`?",
        "error: no function `daggr`",
        "  = hint: did you mean `Operator.dagger() -> Operator`?",
        "error: no function `twise`",
        "  = hint: did you mean `twice`?",
        "error: no function `chebyshev` takes 1 argument",
    ];
    assert_eq!(titles[..expected.len()], expected, "{}", said.err);
    assert!(said.err.ends_with("4 errors, 3 warnings\n"), "{}", said.err);
    assert_eq!(said.code, 1);
    place.0.file("warn.rhai", "print(1/2);");
    place.0.file("name.rhai", "print(qq);");
    place.0.file("syntax.rhai", "let = 3;");
    assert_eq!(place.run(&["check", "warn.rhai"]).code, 0);
    assert_eq!(place.run(&["check", "--strict", "warn.rhai"]).code, 1);
    // All mistakes in one run, those of syntax and of types among them.
    place.0.file("many.rhai", "let a = ;\nfn f(x) { x.sites }\nf(1.5);\nlet b = (1 + 2;\nprint(b + c);\n");
    let many = place.run(&["check", "many.rhai"]);
    let places: Vec<&str> =
        many.err.lines().filter_map(|l| l.trim().strip_prefix("--> many.rhai:")).collect();
    assert_eq!(places, ["1:9", "3:1", "4:15", "5:11"], "{}", many.err);
    assert!(
        many.err.contains("error: `f` cannot take (float): float has no property `sites` (line 2)"),
        "{}",
        many.err
    );
    let unknown = place.run(&["check", "name.rhai"]);
    assert!(
        unknown.code == 1 && unknown.err.starts_with("error: no variable `qq`\n --> name.rhai:1:7\n"),
        "{unknown:?}"
    );
    assert_eq!(place.run(&["check", "syntax.rhai"]).code, 1);
    // A variable that functions do not see has its hint before it runs, and what a comment swallows is told.
    place.0.file("outer.rhai", "let a = 1;\nfn f(x) { x + a }\nprint(f(2));\n");
    place.0.file("late.rhai", "fn f(x) { x }\nprint(f(b));\nlet b = 1;\n");
    place.0.file("open.rhai", "print(\"/*\");\n  /* no end\nprint(2);\n");
    let outer = place.run(&["check", "outer.rhai"]);
    assert!(
        outer.code == 1 && outer.err.contains("hint: a function sees only what it is given"),
        "{outer:?}"
    );
    let late = place.run(&["check", "late.rhai"]);
    assert!(late.code == 1 && !late.err.contains("a function sees only"), "{late:?}");
    let open = place.run(&["check", "open.rhai"]);
    assert!(open.err.contains("is not closed") && open.err.contains("--> open.rhai:2:3"), "{open:?}");
    assert_eq!((open.code, place.run(&["check", "--strict", "open.rhai"]).code), (0, 1));
}

/// What `check` says must be so: of scripts that run it says nothing.
#[test]
fn no_script_of_the_project_is_called_wrong() {
    let place = Place(Folder::new("all"));
    let mut scripts = Vec::new();
    // Files of the stdlib call private functions of one another.
    for (number, (module, text)) in umklapp::script::stdlib::all().enumerate() {
        let name = format!("{number}-{module}.rhai");
        place.0.file(&name, text);
        scripts.push(name);
    }
    for folder in ["scripts", "examples", "tests/golden"] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // One that is wrong on purpose.
            if path.extension().is_some_and(|e| e == "rhai") && !path.ends_with("unknown_option.rhai") {
                scripts.push(std::path::absolute(path).unwrap().display().to_string());
            }
        }
    }
    assert!(scripts.len() > 100, "{scripts:?}");
    let arguments: Vec<&str> = std::iter::once("check").chain(scripts.iter().map(String::as_str)).collect();
    let said = place.run(&arguments);
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn definitions_are_written() {
    let place = Place(Folder::new("definitions"));
    let said = place.run(&["doc", "--definitions", "defs"]);
    assert!(said.code == 0 && said.out.ends_with(" files of definitions in defs\n"), "{said:?}");
    assert!(place.read("defs/kpm.d.rhai").starts_with("module kpm;\n"));
    assert!(place.read("defs/__static__.d.rhai").contains("\nfn linspace(a: ?, b: ?, n: int) -> Series;\n"));
    assert_eq!(place.run(&["doc", "dos", "--definitions", "defs"]).code, 2);
}

#[test]
fn misspelled_options_are_found_without_running() {
    let script = "\
let h = tight_binding(lattice::chain(8), #{ hoping: -1.0 });
let n = 4;
kpm::dos(h, #{ moments: n, vetcors: 2 });
plot(h.diagonal, #{ titel: \"of a chain\" });
fn davidson(h, o) { o }
davidson(h, #{ cuont: 3 });
print(#{ momens: 3 });
print(nowhere);
gauge::constant_flux(lattice::hypercubic(2, 2, 2, 2), #{ plane02: 1 });
";
    let said = Place(Folder::new("options").with("a.rhai", script)).run(&["check", "a.rhai"]);
    for (what, hint, at) in
        [("hoping", "hopping", "1:45"), ("vetcors", "vectors", "3:28"), ("titel", "title", "4:21")]
    {
        let start = format!("error: unknown option `{what}`\n --> a.rhai:{at}");
        assert!(said.err.contains(&start), "{start}\n{}", said.err);
        assert!(said.err.contains(&format!("did you mean `{hint}`?")), "{}", said.err);
    }
    assert!(
        said.err.contains("no variable `nowhere`") && said.err.ends_with("4 errors, 0 warnings\n"),
        "{}",
        said.err
    );
}

/// Kitaev's chain, whose two ground states differ in their parity and have no local difference.
#[test]
fn excitations_above_a_superposition_are_told() {
    let script = "let h = opsum();
        h.add(2.0, \"Cdag\", 0, \"C\", 1);
        h.add(2.0, \"Cdag\", 1, \"C\", 0);
        h.add(0.5, \"Cdag\", 0, \"Cdag\", 1);
        h.add(0.5, \"C\", 1, \"C\", 0);
        h.add(mu, \"N\", 0);
        let gs = dmrg::uniform(h, sites(\"Fermion\", 1), #{ sector: #{ NfParity: 0 }, states: 8, seed: 1, progress: false });
        dmrg::uniform_excitations(gs, h, #{ charge: #{ NfParity: 1 }, progress: false });";
    for (mu, told) in [("-3.0", 1), ("6.0", 0)] {
        let script = format!("let mu = {mu};\n{script}");
        let said = Place(Folder::new("above").with("a.rhai", &script)).run(&["run", "a.rhai"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let notes = said.err.matches("note: the state is a superposition of several ground states").count();
        assert_eq!(notes, told, "mu = {mu}: {}", said.err);
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
    let green = "let h = tight_binding(lattice::chain(8));\nlet o = #{ energies: [0.0, 2.03], window: window(-2.02, 2.02) };
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

#[test]
fn golden_tests_pass_fail_and_are_blessed() {
    let place = Place(
        Folder::new("test")
            .with("tests/sum.rhai", "print(0.1 + 0.2);\nprint(\"done\");\n")
            .with("tests/fails.rhai", "// error\nprint(\"before\");\nassert(false, \"as it must\");\n")
            .with("tests/deep/silent.rhai", "assert(true, \"fine\");\nseries([1.0]).save(\"x.csv\");\n"),
    );
    let fresh = place.run(&["test"]);
    assert_eq!(fresh.code, 1);
    assert!(
        fresh.out.contains("there is no `tests/sum.out` to compare with; `--bless` writes it"),
        "{}",
        fresh.out
    );
    place.run(&["test", "--bless"]).exactly(
        0,
        "ok       tests/deep/silent.rhai\nblessed  tests/fails.rhai\nblessed  tests/sum.rhai\n3 passed, 0 failed\n",
        "",
    );
    assert_eq!(
        place.read("tests/fails.out"),
        "before\nerror: assertion failed: as it must\n --> fails.rhai:3:1\n  |\n3 | assert(false, \"as it must\");\n  | ^^^^^^\n"
    );
    assert!(!place.0.join("x.csv").exists(), "files of tests go elsewhere");
    assert_eq!(place.run(&["test"]).code, 0);
    // Within the tolerance, then beyond it, then with a wider one.
    place.0.file("tests/sum.out", "0.30000000000001\ndone\n");
    place.run(&["test", "tests/sum.rhai"]).exactly(
        0,
        "ok       tests/sum.rhai\n1 passed, 0 failed\nclosest to its tolerance: tests/sum.rhai line 1, 0.30000000000000004 for 0.30000000000001, 0.00 of what is allowed\n",
        "",
    );
    place.0.file("tests/sum.out", "0.3001\ndone\n");
    place.run(&["test", "tests/sum.rhai"]).exactly(
        1,
        "FAILED   tests/sum.rhai\n    the output is not that of `tests/sum.out`\n    line 1: 0.30000000000000004 instead of 0.3001, 3.3e5 times the tolerance\n    - 1 0.3001\n    + 1 0.30000000000000004\n      2 done\n0 passed, 1 failed\n",
        "",
    );
    place.0.file("tests/sum.rhai", "// golden: rtol=1e-2\nprint(0.1 + 0.2);\nprint(\"done\");\n");
    assert_eq!(place.run(&["test", "tests/sum.rhai"]).code, 0);
    place.0.file("tests/fails.rhai", "// error\nprint(\"before\");\n");
    let said = place.run(&["test", "tests/fails.rhai"]);
    assert!(said.code == 1 && said.out.contains("the script must fail, and did not"), "{said:?}");
    place.run(&["test", "nowhere"]).exactly(1, "", "error: there is no `nowhere`\n");
}

#[test]
fn tests_that_failed_run_again_and_other_programs_read_the_results() {
    let place = Place(
        Folder::new("again")
            .with("tests/good.rhai", "print(1);\n")
            .with("tests/good.out", "1\n")
            .with("tests/bad.rhai", "print(\"<2>\");\n")
            .with("tests/bad.out", "3\n"),
    );
    let state = place.0.join("state");
    let test = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
        let done =
            command.arg("test").args(more).current_dir(&place.0).env("XDG_STATE_HOME", &state).output();
        let done = done.unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, said) = test(&["--junit", "results.xml"]);
    assert!(code == Some(1) && said.ends_with("1 passed, 1 failed\n"), "{said}");
    let xml = place.read("results.xml");
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("&lt;2&gt;"), "{xml}");
    let (code, said) = test(&["--last-failed"]);
    assert!(code == Some(1) && said.ends_with("0 passed, 1 failed\n") && !said.contains("good"), "{said}");
    // A run of others forgets none.
    assert_eq!(test(&["tests/good.rhai"]).0, Some(0));
    std::fs::write(place.0.join("tests/bad.out"), "<2>\n").unwrap();
    assert_eq!(test(&["--last-failed"]), (Some(0), "ok       tests/bad.rhai\n1 passed, 0 failed\n".into()));
    assert_eq!(test(&["--last-failed"]), (Some(0), "none of these scripts failed last time\n".into()));
}

#[test]
fn records_are_json_lines() {
    let script = "print(\"x\");\nlet t = table(#{ a: [1, 2] });\nprint(t);\nt.save(\"t.csv\");\nassert(false, \"end\");\n";
    let place = Place(Folder::new("json").with("a.rhai", script));
    let said = place.run(&["run", "--json", "--out", ".", "a.rhai"]);
    let records: Vec<serde_json::Value> =
        said.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(records.len(), 4, "{}", said.out);
    assert_eq!(records[0], serde_json::json!({ "print": "x" }));
    assert_eq!(records[1]["value"]["columns"]["a"], serde_json::json!([1.0, 2.0]));
    assert_eq!(records[2], serde_json::json!({ "saved": "./t.csv" }));
    assert_eq!(records[3]["error"]["line"], 5);
    assert_eq!(said.code, 1);
}

#[test]
fn the_manual_explains_names() {
    let place = Place(Folder::new("doc"));
    let said = place.run(&["doc", "exact::basis"]);
    assert_eq!(said.code, 0);
    for part in [
        "exact::basis(sites: Sites) -> Basis\n",
        "The states of the sites with given conserved numbers",
        "C(4, 2)^2",
    ] {
        assert!(said.out.contains(part), "{}", said.out);
    }
    let words = place.run(&["doc", "zak", "phase"]);
    assert!(words.code == 0 && words.out.contains("berry_phase"), "{words:?}");
    assert_eq!(words.out, place.run(&["doc", "zak phase"]).out);
    let wrong = place.run(&["doc", "exact::bassis"]);
    wrong.exactly(1, "", "error: nothing is called `exact::bassis`; did you mean `exact::basis`?\n");
    assert!(place.run(&["doc", "lattice"]).out.lines().count() > 10);
    assert!(place.run(&["doc", "--all"]).out.starts_with("# Umklapp "));
}

#[test]
fn papers_of_a_script() {
    let place = Place(
        Folder::new("cite").with("a.rhai", "let h = sparse([0], [0], [1.0]);\nprint(davidson(h).values);\n"),
    );
    let said = place.run(&["cite", "a.rhai"]);
    let keys: Vec<&str> = said.out.lines().filter(|l| l.starts_with('@')).collect();
    assert_eq!(keys, ["@software{Umklapp,", "@article{Davidson1975,", "@article{Olsen1990,"]);
}

#[test]
fn information_and_completions() {
    let place = Place(Folder::new("info"));
    let said = place.run(&["info", "--threads", "1"]);
    assert!(
        said.code == 0 && said.out.contains("\nthreads   1\n") && said.out.starts_with("version"),
        "{said:?}"
    );
    for shell in ["bash", "zsh", "fish"] {
        let said = place.run(&["completions", shell]);
        assert!(said.code == 0 && said.out.contains("umklapp"), "{shell}");
    }
}

/// Both pools of workers, that of the backend and that of the process, have as many as were asked for. With one thread
/// the backend has none, and the process one, for threads that are not the session's.
#[cfg(target_os = "linux")]
#[test]
fn threads_hold_for_work_that_no_backend_does() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let threads = |wanted: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_umklapp"))
            .args(["-q", "--backend", "cpu", "--threads", wanted])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let field = "gauge::heatbath(lattice::hypercubic(4, 4, 4, 4), #{ beta: 6.0, seed: 1 })";
        writeln!(input, "print(gauge::plaquette({field}) > 0.0);").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "true\n");
        let count = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count();
        drop(input);
        assert!(child.wait().unwrap().success());
        count
    };
    assert_eq!(threads("3") - threads("1"), 5);
}

#[test]
fn a_strange_script_stays_in_its_folder() {
    let reads = |name: &str| format!("print(load(\"{name}\").rows);");
    let place = Place(Folder::new("confine")
        .with("secret.csv", "x\n1\n")
        .with("box/own.csv", "x\n1\n2\n")
        .with("box/good.rhai", "print(load(\"own.csv\").rows);\ntable(#{ y: [1.0] }).save(\"new.csv\");\n")
        .with("stranger.rhai", &reads("own.csv"))
        .with("box/up.rhai", &reads("../secret.csv"))
        .with("box/system.rhai", &reads("/etc/hostname"))
        .with("box/there.rhai", "print(file_exists(\"../secret.csv\"));")
        .with("box/writes.rhai", "table(#{ y: [1.0] }).save(\"../out.csv\");")
        .with("box/appends.rhai", "append_text(\"../secret.csv\", \"2\");")
        .with(
            "box/checkpoint.rhai",
            "let h = tight_binding(lattice::chain(8));\nkpm::moments(h, #{ moments: 8, checkpoint: \"../run.npz\" });",
        )
        .with("box/imports.rhai", "import \"../other\" as other;\nprint(other::x);")
        .with("other.rhai", "export const x = 1;"));
    let run = |script: &str| place.run(&["run", script, "--confine", "box", "-q"]);
    run("box/good.rhai").exactly(0, "2\n", "");
    assert!(place.read("box/new.csv").contains('1'));
    // The script itself is what the user named.
    run("stranger.rhai").exactly(0, "2\n", "");
    for script in ["up", "system", "there", "writes", "appends", "imports"] {
        let said = run(&format!("box/{script}.rhai"));
        assert!(said.code == 1 && said.out.is_empty(), "{script}: {said:?}");
        assert!(
            said.err.contains("lies outside of `") && said.err.contains("--confine"),
            "{script}: {said:?}"
        );
    }
    let said = run("box/checkpoint.rhai");
    assert!(
        said.code == 1
            && said.err.starts_with("error: the checkpoint `box/../run.npz` lies outside of `")
            && said.err.contains("name the `checkpoint` by a path in it, or leave the option out"),
        "{said:?}"
    );
    assert!(!place.0.join("out.csv").exists() && place.read("secret.csv") == "x\n1\n");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret.csv", place.0.join("box/link.csv")).unwrap();
        place.0.file("box/link.rhai", reads("link.csv"));
        assert_eq!(place.run(&["run", "box/link.rhai", "--confine", "box", "-q"]).code, 1);
        let said = place.run(&["run", "box/good.rhai", "--confine", "nowhere"]);
        said.exactly(1, "", "error: `nowhere` is no folder\n |\n = hint: make it first\n");
        let said = place.run(&["run", "box/good.rhai", "--confine", "box", "--out", ".", "-q"]);
        assert!(said.code == 1 && said.err.contains("lies outside"), "{said:?}");
    }
}

/// Two sites of an infinite chain of 256 states each, whose search does not fit into 200 MB.
const ENDLESS: &str = "
let cell = sites(\"Boson\", 2, #{ nmax: 255 });
let h = opsum();
h.add(1.0, \"N\", 0, \"N\", 1);
let start = dmrg::uniform_random(cell, [\"0\", \"0\"], #{}, #{ states: 4, seed: 1 });
dmrg::uniform_growth(dmrg::cell_mpo(h, cell, #{}), start).grown();
";

#[test]
fn memory_and_time_are_limited() {
    let place = Place(
        Folder::new("limits")
            .with("large.rhai", "let x = linspace(0.0, 1.0, 100000000);\nprint(x.len);")
            .with("grows.rhai", "let s = \"abcdefgh\";\nloop { s += s; }")
            .with("small.rhai", "print(linspace(0.0, 1.0, 1000).len);")
            .with("endless.rhai", ENDLESS)
            .with("long.rhai", "print(1);\nlet n = 0;\nloop { n += 1; }"),
    );
    let limited = |script: &str| place.run(&["run", script, "--memory", "300MB", "--threads", "1", "-q"]);
    limited("small.rhai").exactly(0, "1000\n", "");
    for (script, why) in [("large.rhai", "does not fit in memory"), ("grows.rhai", " are free")] {
        let said = limited(script);
        assert!(said.code == 1 && said.out.is_empty() && said.err.contains(why), "{said:?}");
    }
    let said = place.run(&["run", "endless.rhai", "--memory", "200MB", "--threads", "1", "-q"]);
    assert!(
        said.code == 1 && said.err.contains("what lies around a cell with 4 states a bond takes"),
        "{said:?}"
    );
    let said = place.run(&["run", "long.rhai", "--time", "2s"]);
    assert_eq!((said.code, said.out.as_str()), (124, "1\n"), "{said:?}");
    assert!(said.err.starts_with("note: its time of 2s is over\n"), "{said:?}");
    place.run(&["run", "small.rhai", "--time", "1h"]).exactly(0, "1000\n", "");
    for wrong in [["--memory", "much"], ["--memory", "1kB"], ["--time", "-3"], ["--time", "soon"]] {
        assert_eq!(place.run(&["run", "small.rhai", wrong[0], wrong[1]]).code, 2, "{wrong:?}");
    }
}
