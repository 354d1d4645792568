//! `umklapp test`: golden files that pass, fail and are written.

use std::process::Command;

use super::Place;
use crate::common::{Folder, Said};

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
        "before\nerror: assertion failed: as it must\n --> fails.rhai:3:1\n  |\n3 | assert(false, \"as it must\");\n  \
         | ^^^^^^\n"
    );
    assert!(!place.0.join("x.csv").exists(), "files of tests go elsewhere");
    assert_eq!(place.run(&["test"]).code, 0);
    // Within the tolerance, then beyond it, then with a wider one.
    place.0.file("tests/sum.out", "0.30000000000001\ndone\n");
    place.run(&["test", "tests/sum.rhai"]).exactly(
        0,
        "ok       tests/sum.rhai\n1 passed, 0 failed\nclosest to its tolerance: tests/sum.rhai line 1, \
         0.30000000000000004 for 0.30000000000001, 0.00 of what is allowed\n",
        "",
    );
    place.0.file("tests/sum.out", "0.3001\ndone\n");
    place.run(&["test", "tests/sum.rhai"]).exactly(
        1,
        "FAILED   tests/sum.rhai\n    the output is not that of `tests/sum.out`\n    line 1: 0.30000000000000004 \
         instead of 0.3001, 3.3e5 times the tolerance\n    - 1 0.3001\n    + 1 0.30000000000000004\n      2 done\n0 \
         passed, 1 failed\n",
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
        let said =
            Said::by(command.arg("test").args(more).current_dir(&place.0).env("XDG_STATE_HOME", &state));
        (said.code, said.out)
    };
    let (code, said) = test(&["--junit", "results.xml"]);
    assert!(code == 1 && said.ends_with("1 passed, 1 failed\n"), "{said}");
    let xml = place.read("results.xml");
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("&lt;2&gt;"), "{xml}");
    let (code, said) = test(&["--last-failed"]);
    assert!(code == 1 && said.ends_with("0 passed, 1 failed\n") && !said.contains("good"), "{said}");
    // A run of others forgets none.
    assert_eq!(test(&["tests/good.rhai"]).0, 0);
    std::fs::write(place.0.join("tests/bad.out"), "<2>\n").unwrap();
    assert_eq!(test(&["--last-failed"]), (0, "ok       tests/bad.rhai\n1 passed, 0 failed\n".into()));
    assert_eq!(test(&["--last-failed"]), (0, "none of these scripts failed last time\n".into()));
}

#[test]
fn scripts_that_end_themselves_with_a_code_fail() {
    let place = Place(
        Folder::new("exits")
            .with("tests/ends.rhai", "print(1);\nif true { exit(3); }\nprint(2);\n")
            .with("tests/ends.out", "1\n")
            .with("tests/leaves.rhai", "print(1);\nif true { exit(0); }\nprint(2);\n")
            .with("tests/leaves.out", "1\n")
            .with("tests/must.rhai", "// error\nprint(1);\nexit(3);\n")
            .with("tests/must.out", "1\nexit code 3\n"),
    );
    place.run(&["test"]).exactly(
        1,
        "FAILED   tests/ends.rhai\n    the script ended itself with exit code 3\n    1\nok       tests/leaves.rhai\n\
         ok       tests/must.rhai\n2 passed, 1 failed\n",
        "",
    );
}

/// What was run before Ctrl-C is told.
#[cfg(unix)]
#[test]
fn a_run_that_is_stopped_tells_what_it_has_done() {
    let folder = Folder::new("stopped")
        .with("tests/a.rhai", "print(1);\n")
        .with("tests/a.out", "1\n")
        .with("tests/b.rhai", "print(1);\n")
        .with("tests/b.out", "2\n")
        .with("tests/c.rhai", "loop { }\n")
        .with("tests/d.rhai", "print(1);\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
    command.args(["test", "--junit", "results.xml"]).current_dir(&*folder);
    command.env("XDG_STATE_HOME", folder.join("state"));
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    // The third script runs when the second one has failed.
    while !said.contains("+ 1 1") {
        assert!(std::io::BufRead::read_line(&mut out, &mut said).unwrap() > 0, "{said}");
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    std::io::Read::read_to_string(&mut out, &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.ends_with("1 passed, 1 failed, 2 not run: interrupted\n"), "{said}");
    let xml = std::fs::read_to_string(folder.join("results.xml")).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
}
