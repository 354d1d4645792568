//! Limits: threads, the folder of a confined script, memory and time.

use std::process::Command;

use super::Place;
use crate::common::Folder;

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

#[test]
fn memory_and_time_are_limited() {
    let place = Place(
        Folder::new("limits")
            .with("large.rhai", "let x = linspace(0.0, 1.0, 100000000);\nprint(x.len);")
            .with("grows.rhai", "let s = \"abcdefgh\";\nloop { s += s; }")
            .with("small.rhai", "print(linspace(0.0, 1.0, 1000).len);")
            .with(
                "moments.rhai",
                "let h = tight_binding(lattice::chain(64));\nkpm::conductivity_moments(h, #{ moments: 8192 });",
            )
            .with(
                "passes.rhai",
                "let h = tight_binding(lattice::chain(600000), #{ hopping: -1.0 });
                 let options = #{ vectors: 8, moments: 4, window: window(-2.2, 2.2), seed: 1 };
                 print(kpm::plan(h, options).passes > 1);
                 print(kpm::moments(h, options).vectors);",
            )
            .with("long.rhai", "print(1);\nlet n = 0;\nloop { n += 1; }"),
    );
    let limited = |script: &str| place.run(&["run", script, "--memory", "300MB", "--threads", "1", "-q"]);
    limited("small.rhai").exactly(0, "1000\n", "");
    for (script, why) in [("large.rhai", "does not fit in memory"), ("grows.rhai", " are free")] {
        let said = limited(script);
        assert!(said.code == 1 && said.out.is_empty() && said.err.contains(why), "{said:?}");
    }
    // Refused before the work begins: the first product of matrices would take more where caches are large.
    let said = limited("moments.rhai");
    let refusal = "error: 8192 x 8192 moments of 4 vectors takes 5.4 GB, and ";
    assert!(said.code == 1 && said.out.is_empty() && said.err.starts_with(refusal), "{said:?}");
    // What is planned is what fits.
    let passes = ["run", "passes.rhai", "--threads", "1", "-q", "--memory"];
    place.run(&[&passes[..], &["80MB"]].concat()).exactly(0, "true\n8\n", "");
    let said = place.run(&["run", "long.rhai", "--time", "2s"]);
    assert_eq!((said.code, said.out.as_str()), (124, "1\n"), "{said:?}");
    assert!(said.err.starts_with("note: its time of 2s is over\n"), "{said:?}");
    place.run(&["run", "small.rhai", "--time", "1h"]).exactly(0, "1000\n", "");
    for wrong in [["--memory", "much"], ["--memory", "1kB"], ["--time", "-3"], ["--time", "soon"]] {
        assert_eq!(place.run(&["run", "small.rhai", wrong[0], wrong[1]]).code, 2, "{wrong:?}");
    }
}
