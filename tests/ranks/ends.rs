//! Ranks that are ended from outside: none of the others goes on.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{NONE_STARTED, Place, launchers};
use crate::common::{Folder, Said};

/// Processes that run a script of this name, and are not their own launchers.
pub(super) fn ranks_of(script: &str) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|number: &i32| {
        let words = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|b| *b == 0).collect();
        let own = words.first().is_some_and(|w| w.ends_with(b"umklapp"));
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let sign = |name: &[u8]| environment.split(|b| *b == 0).any(|v| v.starts_with(name));
        let launched = sign(b"PMI_RANK=") || sign(b"OMPI_COMM_WORLD_RANK=") || sign(b"PMIX_RANK=");
        own && launched && words.contains(&script.as_bytes())
    })
    .collect()
}

/// The number that a launcher has given to a process.
fn rank_of(process: i32) -> Option<usize> {
    let environment = std::fs::read(format!("/proc/{process}/environ")).ok()?;
    let text = String::from_utf8_lossy(&environment);
    let names = ["PMI_RANK=", "OMPI_COMM_WORLD_RANK=", "PMIX_RANK="];
    text.split('\0').find_map(|v| names.iter().find_map(|name| v.strip_prefix(name))?.parse().ok())
}

pub(super) fn until(what: &str, mut there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts ranks and waits until they have begun; once more where the launcher has started none.
pub(super) fn begun(mut command: Command, ready: impl Fn() -> bool) -> Child {
    let mut child = command.spawn().unwrap();
    let mut tried = false;
    until("ranks begin", || {
        if !ready() && child.try_wait().unwrap().is_some() {
            let again = command.spawn().unwrap();
            let said = Said::of(std::mem::replace(&mut child, again).wait_with_output().unwrap());
            assert!(!tried && said.err.contains(NONE_STARTED), "{said:?}");
            tried = true;
        }
        ready()
    });
    child
}

/// What ranks do when they are stopped: nothing, products that exchange rows, work that each does by itself.
const BUSY: [(&str, &str); 3] = [
    ("sleeps", "sleep(600.0);"),
    (
        "exchanges",
        "let h = tight_binding(lattice::cubic(12, 12, 12), #{ hopping: -1.0 });
         loop { kpm::moments(h, #{ moments: 512, vectors: 2, seed: 1, progress: false }); }",
    ),
    ("computes", "let m = matrix([[0.5, 0.25], [0.25, 0.5]]); loop { m = m * m * 2.0; }"),
];

#[test]
fn a_rank_that_dies_ends_the_others() {
    use nix::sys::signal::{Signal, kill, killpg};
    use nix::unistd::Pid;
    use std::os::unix::process::CommandExt;
    for (at, launcher) in launchers().iter().enumerate() {
        for (busy, work) in BUSY {
            // A terminal sends Ctrl-C to all of them, a batch system to the program that it has started.
            for (signal, to) in [
                (Signal::SIGKILL, "rank"),
                (Signal::SIGINT, "starter"),
                (Signal::SIGKILL, "starter"),
                (Signal::SIGINT, "all"),
            ] {
                let script = format!("dies-{}-{at}-{busy}-{to}-{signal}.rhai", std::process::id());
                let place = Place(
                    Folder::new(&format!("dies-{busy}-{to}-{signal}-{at}"))
                        .with(&script, &format!("write_text(\"ready\", \"\");\n{work}")),
                );
                let args = ["run", &script, "--ranks", "3", "--threads", "1", "--share-from", "0"];
                let mut command = place.command(launcher, &args);
                command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
                let child = begun(command, || place.0.join("ready").exists() && ranks_of(&script).len() == 3);
                let own = Pid::from_raw(child.id() as i32);
                let victim = ranks_of(&script)[1];
                let number = rank_of(victim).unwrap();
                match to {
                    "rank" => kill(Pid::from_raw(victim), signal),
                    "starter" => kill(own, signal),
                    _ => killpg(own, signal),
                }
                .unwrap();
                let began = Instant::now();
                until("all end", || ranks_of(&script).is_empty());
                if (signal, to) == (Signal::SIGKILL, "starter") {
                    let took = began.elapsed();
                    assert!(took < Duration::from_secs(3), "{busy}: ranks end {took:?} after their starter");
                    assert!(!child.wait_with_output().unwrap().status.success());
                    until("the launcher ends", || killpg(own, None).is_err());
                    continue;
                }
                let said = Said::of(child.wait_with_output().unwrap());
                let told = |words: &str| said.err.matches(words).count();
                if to == "rank" {
                    let words = format!("rank {number} of 3 has died: its process, {victim},");
                    assert!(said.code == 1 && told(&words) == 1, "{busy}: {said:?}");
                } else {
                    assert!(said.code == 130 && told("error: interrupted") > 0, "{busy}, {to}: {said:?}");
                    assert_eq!(told("has died"), 0, "{busy}, {to}: {said:?}");
                }
            }
        }
    }
}

/// What one rank does until its memory is full: matrices that are asked for first, lists that the allocator refuses.
const HUNGRY: [(&str, &str); 2] = [
    ("asked", "let all = []; loop { all.push(linspace(0.0, 1.0, 4000000)); }"),
    ("refused", "let all = [0]; loop { all.append(all); }"),
];

/// A rank that is out of memory, which the others are not, says so with its number, and all end. Three seconds are
/// enough for that, in one of three tries: other tests may keep the processors.
#[test]
fn a_rank_without_memory_ends_the_others() {
    for (at, launcher) in launchers().iter().enumerate() {
        for (how, work) in HUNGRY {
            let tries = (0..3).map(|_| hungry(launcher, &format!("{how}-{at}"), work));
            let mut tries = tries.inspect(|took| assert!(*took < Duration::from_secs(20), "{how}: {took:?}"));
            assert!(tries.any(|took| took < Duration::from_secs(3)), "{how}: all end too late");
        }
    }
}

/// How long ranks take to end from when one of them begins to fill its memory.
fn hungry(launcher: &Path, name: &str, work: &str) -> Duration {
    let script = format!("hungry-{}-{name}.rhai", std::process::id());
    let text = format!(
        "let h = tight_binding(lattice::cubic(12, 12, 12), #{{ hopping: -1.0 }});
         write_text(\"ready\", \"\");
         if backend().rank == 1 {{ {work} }}
         loop {{ kpm::moments(h, #{{ moments: 512, vectors: 2, seed: 1, progress: false }}); }}"
    );
    let place = Place(Folder::new(&format!("hungry-{name}")).with(&script, &text));
    let more = ["--threads", "1", "--share-from", "0", "--memory", "300MB"];
    let mut command = place.command(launcher, &[&["run", &script, "--ranks", "3"], &more[..]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = begun(command, || place.0.join("ready").exists());
    let began = Instant::now();
    until("all end", || ranks_of(&script).is_empty());
    let took = began.elapsed();
    let said = Said::of(child.wait_with_output().unwrap());
    let told = said.err.matches("error on rank 1 of 3: ").count();
    assert!(said.code == 1 && told == 1 && said.err.contains("memory"), "{name}: {said:?}");
    took
}

/// Ranks whose scripts part would wait for one another.
#[test]
fn ranks_that_go_different_ways_end() {
    let place = Place(
        Folder::new("ways").with("exit.rhai", "if backend().rank == 1 { exit(3); }\nsleep(60.0);").with(
            "rows.rhai",
            "let l = lattice::cubic(20, 20, 20 + backend().rank);\ntry { tight_binding(l); } catch { }",
        ),
    );
    for launcher in launchers() {
        let said = place.run(launcher, &["run", "exit.rhai", "--ranks", "3", "--threads", "1"]);
        assert!(said.code == 1 && said.err.contains("on rank 1 of 3: `exit(3)` has ended"), "{said:?}");
        let said = place.run(launcher, &["run", "rows.rhai", "--ranks", "2", "--threads", "1"]);
        let told = said.err.matches("rank 0 has vectors of 8000 rows where rank 1 has some of 8400").count();
        assert_eq!((said.code, told), (1, 1), "{said:?}");
    }
}

/// Ranks that a launcher starts with different options, which none of them sees by itself.
#[test]
fn ranks_of_different_options_end() {
    let place = Place(
        Folder::new("options")
            .with("a.rhai", "import \"m\" as m;\nargs.t;\nprint(backend().ranks);")
            .with("m.rhai", "const ONE = 1;")
            .with("other/a.rhai", "args.t;\nprint(-backend().ranks);")
            .with("third/a.rhai", "import \"m\" as m;\nargs.t;\nprint(backend().ranks);")
            .with("third/m.rhai", "const ONE = 2;"),
    );
    for launcher in launchers() {
        // As `--ranks` finds it: a wheel has its library beside the launcher.
        let folder = launcher.parent().and_then(|bin| bin.parent()).unwrap().join("lib");
        let library =
            ["libmpi.so.12", "libmpi.so.40"].map(|name| folder.join(name)).into_iter().find(|p| p.is_file());
        let started = |files: [&str; 2], options: [&str; 2]| {
            let mut command = Command::new(launcher);
            for (k, option) in options.into_iter().enumerate() {
                command.args([":"].iter().take(k)).args([
                    "-n",
                    "1",
                    env!("CARGO_BIN_EXE_umklapp"),
                    "run",
                    files[k],
                ]);
                command.args(option.split_whitespace()).args(["--threads", "1"]);
            }
            command
                .current_dir(&place.0)
                .env("NO_COLOR", "1")
                .envs(library.iter().map(|file| ("UMKLAPP_MPI", file)));
            command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            super::started(&mut command)
        };
        let same = ["a.rhai"; 2];
        let said = started(same, ["--grid 2", "--grid 2"]);
        assert_eq!((said.code, said.out.trim()), (0, "2"), "{said:?}");
        for (option, both) in [
            ("grid", ["--grid 2", "--grid 1x2"]),
            ("seed", ["", "--seed 7"]),
            ("share-from", ["--share-from 5", ""]),
            ("set", ["--set t=1.0", "--set t=2.0"]),
        ] {
            let said = started(same, both);
            let told = said.err.matches(&format!("rank 1 was started with another `--{option}`")).count();
            assert_eq!((said.code, told), (1, 1), "{said:?}");
        }
        for (folder, words) in
            [("other", "rank 1 runs another script"), ("third", "rank 1 reads another module `m`")]
        {
            let said = started(["a.rhai", &format!("{folder}/a.rhai")], [""; 2]);
            assert_eq!((said.code, said.err.matches(words).count()), (1, 1), "{said:?}");
        }
    }
}
