//! `umklapp check`: what it finds in scripts that would fail, and in none of those that run.

use super::Place;
use crate::common::Folder;

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

/// A comparison with a type that there is not is false for all values, which nothing else tells.
#[test]
fn types_that_no_value_has() {
    let place = Place(Folder::new("types"));
    let names = "let x = 3;\nif type_of(x) == \"i64\" {}\nif x.type_of() != \"integer\" {}\n\
                 switch type_of(x) { \"f64\" => 1, _ => 2 };\nif type_of(max(x, (1))) == \"String\" {}\n\
                 let kind = \"list\";\nif kind == \"list\" || type_of(x) == \"int\" {}\nif (\"a\") == \"str\" {}\n";
    place.0.file("types.rhai", names);
    let said = place.run(&["check", "types.rhai"]);
    let found: Vec<&str> = said.err.lines().filter(|l| !l.is_empty() && !l.contains('|')).collect();
    let expected: Vec<String> = [
        ("i64", "int", "2:18"),
        ("integer", "int", "3:19"),
        ("f64", "float", "4:21"),
        ("String", "string", "5:28"),
    ]
    .iter()
    .flat_map(|(wrong, right, at)| {
        [
            format!("warning: `type_of` never gives \"{wrong}\""),
            format!(" --> types.rhai:{at}"),
            format!("  = hint: the name of this type is \"{right}\""),
        ]
    })
    .collect();
    assert_eq!(found[..expected.len()], expected, "{}", said.err);
    assert_eq!(said.code, 0);
    place.0.file("all.rhai", "print([1, 1.5, |x| x, 0..=2].map(|x| type_of(x)));");
    place.run(&["run", "all.rhai"]).exactly(0, "[\"int\", \"float\", \"function\", \"range\"]\n", "");
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
