//! The program where things go wrong: outputs that are closed, signals, too little memory, too deep values, two runs at
//! once, runs that are killed; and the same numbers from any number of threads.
#![cfg(unix)]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::Folder;

/// A folder that goes away with the value, and the program started in it.
struct Place(Folder);

impl Place {
    /// A command of the shell, where `$UMKLAPP` is the program; its exit code and what it says.
    fn shell(&self, command: &str) -> (i32, String) {
        let output = Command::new("sh")
            .args(["-c", command])
            .env("UMKLAPP", env!("CARGO_BIN_EXE_umklapp"))
            .env("NO_COLOR", "1")
            .env_remove("RUST_BACKTRACE")
            .current_dir(&self.0)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
        command.args(args).current_dir(&self.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Started by `nohup`, these tests would hand on that SIGHUP is ignored.
        // SAFETY: between fork and exec nothing but a system call.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                Ok(())
            });
        }
        command.spawn().unwrap()
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn tell(child: &Child, signal: i32) {
    // SAFETY: a signal to a child that is not waited for yet.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Waits for the end of a process, no longer than a slow machine takes.
fn end(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_script_goes_on_when_nobody_reads() {
    let script = "for i in 0..20000 { print(i); }\nseries([1.0]).save(\"end.csv\");\n";
    let place = Place(Folder::new("pipe").with("a.rhai", script));
    for (command, code) in [
        ("$UMKLAPP run a.rhai | head -1", 0),
        ("$UMKLAPP run a.rhai >&-", 0),
        ("$UMKLAPP run a.rhai 2>&- >/dev/null", 0),
    ] {
        let said = place.shell(command);
        assert_eq!(said.0, code, "{command}: {}", said.1);
        std::fs::remove_file(place.0.join("end.csv")).unwrap_or_else(|_| panic!("{command}: {}", said.1));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_outputs_are_no_panic() {
    let script = "note(\"a\");\nprint(1);\nseries([1.0]).save(\"end.csv\");\nprint(2);\n";
    let place = Place(Folder::new("full").with("a.rhai", script).with("b.rhai", "nothing(1);"));
    let (code, said) = place.shell("$UMKLAPP run a.rhai >/dev/full");
    assert!(code == 1 && said.matches("standard output cannot be written").count() == 1, "{code} {said}");
    assert!(place.files().contains(&"end.csv".to_string()));
    for (command, expected) in [
        ("$UMKLAPP run a.rhai 2>/dev/full", 0),
        ("$UMKLAPP run b.rhai 2>/dev/full", 1),
        ("$UMKLAPP check b.rhai 2>/dev/full", 1),
        ("echo 'nothing(1)' | $UMKLAPP 2>/dev/full", 1),
        ("$UMKLAPP run b.rhai 2>&1 >/dev/null | true", 0),
    ] {
        assert_eq!(place.shell(command).0, expected, "{command}");
    }
}

#[test]
fn signals_end_the_program_at_once() {
    let place = Place(
        Folder::new("signals")
            .with("sleep.rhai", "print(1);\nsleep(30);\n")
            // A library's work that polls nothing.
            .with(
                "long.rhai",
                "let m = tight_binding(lattice::chain(1500), #{ disorder: 1.0, seed: 1 \
        }).to_matrix();\nprint(1);\nloop { m.eigvals(); }\n",
            )
            .with("try.rhai", "print(1);\nloop { try { sleep(30); } catch (e) {} }\n"),
    );
    for (script, signal, code) in [
        ("sleep.rhai", libc::SIGINT, 130),
        ("sleep.rhai", libc::SIGTERM, 143),
        ("sleep.rhai", libc::SIGHUP, 129),
        ("try.rhai", libc::SIGINT, 130),
        ("long.rhai", libc::SIGINT, 130),
        ("long.rhai", libc::SIGTERM, 143),
    ] {
        let mut child = place.start(&["run", script]);
        let mut first = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let asked = Instant::now();
        tell(&child, signal);
        let status = end(&mut child);
        assert_eq!(status.code(), Some(code), "{script} {signal}");
        // 0.2 s where nobody else computes.
        assert!(asked.elapsed() < Duration::from_secs(2), "{script} took {:?}", asked.elapsed());
    }
}

#[test]
fn too_much_memory_is_a_sentence() {
    let cases = [
        "blob(100000000000)",
        "[].pad(100000000000, 1)",
        "let a = []; a.pad(9223372036854775807, 1)",
        "let s = \"cpu\"; s.pad(9223372036854775807, 'x')",
        "let s = \"cpu\"; s.pad(1000000000000, \"xy\")",
        "let s = \"ab\"; loop { s += s; }",
        "let a = [1]; loop { a += a; }",
        "let a = []; loop { a.push(\"some text that is longer than what lies inline\" + a.len); }",
        "slater_jastrow(orbitals::plane_waves(crystal::electron_gas(2, 1.0)), #{ up: 4294967296 })",
        "wilson::reference_spinor(lattice::hypercubic(4, 4, 100000000, 4), 1)",
        "kpm::conductivity(tight_binding(lattice::square(4, 4)), #{ moments: 65536, vectors: 1 })",
        "identity(1000000)",
        "linspace(0.0, 1.0, 100000000000)",
        "load(\"/dev/zero\")",
        "load(\"/dev/zero.csv\")",
    ];
    let place = Place(Folder::new("memory"));
    for (k, case) in cases.iter().enumerate() {
        let file = format!("{k}.rhai");
        std::fs::write(place.0.join(&file), format!("print(1);\n{case};\n")).unwrap();
        // Some hundred megabytes more than the program itself takes.
        let (code, said) = place.shell(&format!("ulimit -v 1500000; $UMKLAPP run -q --threads 1 {file}"));
        assert_eq!(code, 1, "{case}: {said}");
        assert!(said.contains("error: ") && !said.contains("internal error"), "{case}: {said}");
    }
    // A session survives it.
    let input = "let x = 41;\nlet r = 0;\ntry { blob(100000000000); } catch (e) { r = 1; }\nprint(x + 1);\n";
    std::fs::write(place.0.join("input"), input).unwrap();
    let (_, said) = place.shell("ulimit -v 1500000; $UMKLAPP -q --threads 1 < input");
    assert!(!said.contains("Aborted"), "{said}");
}

#[test]
fn deep_values_and_rings_of_files() {
    let place = Place(
        Folder::new("deep")
            .with("self.rhai", "import \"self\" as s;\n")
            .with("ring_a.rhai", "import \"ring_b\" as b;\n")
            .with("ring_b.rhai", "import \"ring_a\" as a;\n"),
    );
    for script in ["self.rhai", "ring_a.rhai"] {
        let (code, said) = place.shell(&format!("$UMKLAPP run {script}"));
        assert!(code == 1 && said.contains("imports itself"), "{code} {said}");
    }
    let nested = "let a = #{}; let b = #{}; for i in 0..2000 { a = #{ x: a }; b = #{ x: b }; }";
    for (name, script, expected) in [
        ("maps", format!("{nested} let c = a; c.x.x = 1; print(a == b); print(`${{c}}`.len > 2000);"), 0),
        ("closures", "let f = || 1; for i in 0..100000 { let g = f; f = || g.call(); } print(1);".into(), 0),
        ("arrays", "let a = []; for i in 0..2000 { a = [a]; } print(a.len);".into(), 0),
        ("calls", "fn down(n) { [1].map(|x| down(n + 1)) } down(0);".into(), 1),
        ("source", format!("print({}1{});", "(".repeat(5000), ")".repeat(5000)), 1),
        ("json", format!("parse_json(\"{}{}\");", "[".repeat(100_000), "]".repeat(100_000)), 1),
    ] {
        std::fs::write(place.0.join("deep.rhai"), script).unwrap();
        let (code, said) = place.shell("$UMKLAPP run deep.rhai");
        assert_eq!(code, expected, "{name}: {}", said.chars().take(500).collect::<String>());
    }
}

#[test]
fn one_run_a_checkpoint() {
    let script = "let h = tight_binding(lattice::square(64, 64));\n\
        print(1);\nkpm::moments(h, #{ moments: 512, vectors: 2000, checkpoint: \"mu.npz\", seed: 1 });\n";
    let place = Place(Folder::new("two").with("a.rhai", script));
    let mut first = place.start(&["run", "a.rhai"]);
    let began = Instant::now();
    while !place.files().contains(&".mu.npz.lock".to_string()) {
        assert!(began.elapsed() < Duration::from_secs(20), "the first run does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    let (code, said) = place.shell("$UMKLAPP run a.rhai");
    assert!(code == 1 && said.contains("belongs to another run (process"), "{code} {said}");
    // The lock dies with its process.
    tell(&first, libc::SIGKILL);
    end(&mut first);
    let mut third = place.start(&["run", "a.rhai"]);
    std::thread::sleep(Duration::from_secs(1));
    assert!(third.try_wait().unwrap().is_none(), "the third run was refused");
    tell(&third, libc::SIGINT);
    end(&mut third);
    assert!(!place.files().iter().any(|name| name.ends_with(".part")), "{:?}", place.files());
}

/// A limit of the size of files stands for a full disk.
#[test]
fn a_full_disk_does_not_end_a_run() {
    let kpm = "let h = tight_binding(lattice::chain(64), #{ disorder: 1.0, seed: 2 });
        kpm::moments(h, #{ moments: 256, vectors: 16, checkpoint: \"mu.npz\", seed: 1, progress: false });
        print(\"end\");";
    let vmc = "let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 1, down: 1 });
        vmc::run(psi, electrons(vmc::trap(1.0), #{ interaction: \"none\" }), #{ walkers: 64, steps: 20, checkpoint: \
        \"walk.json\", seed: 3, progress: false });
        print(\"end\");";
    for script in [kpm, vmc] {
        let place = Place(Folder::new("disk").with("a.rhai", script));
        let (code, said) = place.shell("ulimit -f 1; $UMKLAPP run a.rhai");
        assert_eq!(code, 0, "{said}");
        assert!(
            said.starts_with("end\n") && said.contains("note: the checkpoint was not written: "),
            "{said}"
        );
        assert_eq!(place.files(), ["a.rhai"]);
    }
}

/// What is added to a file is there whole or not at all.
#[test]
fn a_full_disk_takes_no_part_of_a_text() {
    let script = "append_text(\"log.txt\", \"whole\\n\"); let long = \"\"; long.pad(4000, \"x\"); \
    append_text(\"log.txt\", long);";
    let place = Place(Folder::new("append").with("a.rhai", script));
    let (code, said) = place.shell("ulimit -f 1; $UMKLAPP run a.rhai");
    assert!(code == 1 && said.contains("log.txt"), "{code} {said}");
    assert_eq!(std::fs::read_to_string(place.0.join("log.txt")).unwrap(), "whole\n");
}

#[test]
fn a_run_that_is_killed_goes_on() {
    let kpm = "let h = tight_binding(lattice::chain(64), #{ disorder: 1.0, seed: 2 });
        let mu = kpm::moments(h, #{ moments: 64, vectors: 64, checkpoint: \"mu.npz\", seed: 1, progress: false });
        print(mu.values.to_array());";
    let vmc = "let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 1, down: 1 });
        let r = vmc::run(psi, electrons(vmc::trap(1.0), #{ interaction: \"none\" }), #{ walkers: 64, steps: 400, \
        checkpoint: \"walk.json\", seed: 3, progress: false });
        print(r.energy); print(r.error);";
    for (name, script, file) in [("kpm", kpm, "mu.npz"), ("vmc", vmc, "walk.json")] {
        let place = Place(Folder::new(&format!("kill-{name}")).with("a.rhai", script));
        let (code, undisturbed) = place.shell("$UMKLAPP run a.rhai");
        assert_eq!(code, 0, "{undisturbed}");
        std::fs::remove_file(place.0.join(file)).unwrap();
        for pause in [60, 150, 250] {
            let mut child = place.start(&["run", "a.rhai"]);
            std::thread::sleep(Duration::from_millis(pause));
            let _ = child.kill();
            child.wait().unwrap();
        }
        let (code, resumed) = place.shell("$UMKLAPP run a.rhai");
        let resumed = resumed.replace(&format!("note: the run goes on from `{file}`\n"), "");
        assert_eq!((code, resumed), (0, undisturbed), "{name}");
        assert!(!place.files().iter().any(|name| name.ends_with(".part")), "{:?}", place.files());
    }
}

/// The manual's promise: the same bits from any number of threads where the order of sums is fixed, and the same
/// numbers to rounding elsewhere.
#[test]
fn threads_and_parts_give_the_same_numbers() {
    let script = "
        let h = tight_binding(lattice::square(40, 30), #{ disorder: 1.0, seed: 2 });
        let psi = slater_jastrow(orbitals::oscillator(2), #{ up: 1, down: 1 });
        let walk = walkers(psi, #{ count: 40, seed: 5 });
        metropolis(walk, #{ step: 0.5, sweeps: 20 });
        let u = gauge::heatbath(lattice::hypercubic(4, 4, 4, 4), #{ beta: 6.0, sweeps: 2, seed: 1, progress: false });
        let v = random_block(h, 3, #{ seed: 4 });
        print(\"bits\");
        print(v.column(2).to_series().sum());
        print(local_energy(walk, electrons(vmc::trap(1.0), #{ interaction: \"none\" })));
        print(gauge::plaquette(u));
        print(u.link(17, 2));
        print(\"rounding\");
        let mu = kpm::moments(h, #{ moments: 64, vectors: 8, seed: 1, progress: false });
        for n in 0..64 { print(mu.values[n]); }
        for e in davidson(h, #{ count: 3, seed: 1, tol: 1e-10, progress: false }).values { print(e); }
        let c = sites(\"S=1/2\", 12);
        print(dmrg::finite(models::heisenberg(c), c, #{ sector: #{ Sz: 0.0 }, states: 40, sweeps: 6, progress: false \
        }).energy);
        let q = wilson::kernel(gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3), #{ s: 0.4 });
        let x = wilson::reference_spinor(lattice::hypercubic(4, 4, 4, 4), 2);
        print(norm(overlap::sign(q, #{ delta: 1e-8, seed: 1, progress: false }) * x));
    ";
    let place = Place(Folder::new("threads").with("a.rhai", script));
    let run = |options: &str| {
        let (code, said) = place.shell(&format!("$UMKLAPP run -q {options} a.rhai"));
        assert_eq!(code, 0, "{options}: {said}");
        let (bits, rounding) = said.split_once("rounding\n").unwrap();
        let numbers: Vec<f64> = rounding.lines().map(|line| line.parse().unwrap()).collect();
        (bits.to_string(), numbers)
    };
    let one = run("--backend cpu --threads 1");
    assert_eq!(one.1.len(), 69);
    for options in
        ["--backend cpu --threads 2", "--backend cpu --threads 3", "--backend cpu+cpu --weights 1:3"]
    {
        let other = run(options);
        assert_eq!(other.0, one.0, "{options}");
        for (k, (a, b)) in one.1.iter().zip(&other.1).enumerate() {
            // Sums of some thousand terms of size one; searches end at their own tolerances.
            let tolerance = if k < 64 { 1e-12 } else { 1e-8 };
            assert!((a - b).abs() <= tolerance * a.abs().max(1.0), "{options}, number {k}: {a} and {b}");
        }
    }
}
