//! The program as a user starts it: what it writes where, and its exit codes.

mod check;
mod golden;
mod limits;
mod notes;

use std::process::Command;

use crate::common::{Folder, Said};

/// A folder that goes away with the value, and the program started in it.
struct Place(Folder);

impl Place {
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
        Said::by(command.args(args).current_dir(&self.0).env("NO_COLOR", "1"))
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
  = hint: did you mean `sqrt(int) -> float`?
";
    said.exactly(1, "42\n[\"left\"]\n", err);
    let quiet = place.run(&["run", "-q", "a.rhai", "--set", "n=41"]);
    assert!(!quiet.err.contains("warning"), "{}", quiet.err);
    place.run(&["run", "missing.rhai"]).exactly(
        1,
        "",
        concat!(
            "error: `missing.rhai` cannot be read: no such file or directory\n |\n",
            " = hint: its name is relative to the folder where you are\n",
        ),
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
fn definitions_are_written() {
    let place = Place(Folder::new("definitions"));
    let said = place.run(&["doc", "--definitions", "defs"]);
    assert!(said.code == 0 && said.out.ends_with(" files of definitions in defs\n"), "{said:?}");
    assert!(place.read("defs/kpm.d.rhai").starts_with("module kpm;\n"));
    assert!(place.read("defs/__static__.d.rhai").contains("\nfn linspace(a: ?, b: ?, n: int) -> Series;\n"));
    assert_eq!(place.run(&["doc", "dos", "--definitions", "defs"]).code, 2);
}

#[test]
fn records_are_json_lines() {
    let script = "print(\"x\");\nlet t = table(#{ a: [1, 2] });\nprint(t);\nt.save(\"t.csv\");\nassert(false, \
    \"end\");\n";
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
