//! Several ranks of one run, under every MPI that is found: the launchers in `UMKLAPP_TEST_MPIEXEC` (a list of files,
//! with a colon between two) and the one on the path. Without any, these tests say so and test nothing; a launcher that
//! is named and not there fails them.

#[cfg(target_os = "linux")]
mod ends;
mod gauge;
mod lattices;
#[cfg(target_os = "linux")]
mod machines;
mod manybody;
mod mixed;
mod resumed;
mod values;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::common::{Folder, Said};

/// The launchers that start ranks here.
fn launchers() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let named = std::env::var_os("UMKLAPP_TEST_MPIEXEC").unwrap_or_default();
        let mut all: Vec<PathBuf> = std::env::split_paths(&named).filter(|p| p != Path::new("")).collect();
        // Who names launchers wants these tests to test something.
        let lost: Vec<&PathBuf> = all.iter().filter(|p| !p.is_file()).collect();
        assert!(lost.is_empty(), "UMKLAPP_TEST_MPIEXEC names what is not there: {lost:?}");
        let path = std::env::var_os("PATH").unwrap_or_default();
        all.extend(std::env::split_paths(&path).map(|folder| folder.join("mpiexec")).find(|p| p.is_file()));
        if all.is_empty() {
            eprintln!("skipped: no MPI is here (no `mpiexec` on the path, none in UMKLAPP_TEST_MPIEXEC)");
        }
        all
    })
}

/// What Open MPI's launcher says where it cannot listen for the ranks that it is about to start, as happens now and
/// then; it starts none.
const NONE_STARTED: &str = "listener thread failed to start";

/// Runs a command that starts ranks, once more where its launcher has started none.
fn started(command: &mut Command) -> Said {
    let said = Said::by(command.stdin(Stdio::null()));
    if said.err.contains(NONE_STARTED) { Said::by(command) } else { said }
}

/// Runs shared out to the MPIs, of which each makes one at least.
fn dealt<T: Copy>(runs: &[T]) -> Vec<(&'static PathBuf, Vec<T>)> {
    let shares = launchers().len().clamp(1, runs.len().max(1));
    let part = |k: usize| runs.iter().copied().skip(k % shares).step_by(shares).collect();
    launchers().iter().enumerate().map(|(k, launcher)| (launcher, part(k))).collect()
}

/// A folder that goes away with the value.
struct Place(Folder);

impl Place {
    fn command(&self, launcher: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_umklapp"));
        command.args(args).current_dir(&self.0).env("NO_COLOR", "1").env("UMKLAPP_MPIEXEC", launcher);
        // The tests may be ranks of somebody else's run.
        for name in ["PMI_SIZE", "PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, launcher: &Path, args: &[&str]) -> Said {
        started(&mut self.command(launcher, args))
    }

    /// What a script prints on so many ranks of one thread.
    #[track_caller]
    fn prints(&self, launcher: &Path, ranks: &str, more: &[&str]) -> String {
        self.prints_on(launcher, ranks, "1", more)
    }

    #[track_caller]
    fn prints_on(&self, launcher: &Path, ranks: &str, threads: &str, more: &[&str]) -> String {
        let args = ["run", "a.rhai", "--threads", threads, "--ranks", ranks, "--share-from", "0"];
        let args = [&args, more].concat();
        let said = self.run(launcher, &args);
        assert_eq!(said.code, 0, "{launcher:?}, {ranks} ranks {more:?}: {said:?}");
        said.out
    }

    /// Asserts that it prints on so many ranks, bit by bit, what it prints on one.
    #[track_caller]
    fn prints_the_same_bits_on(&self, numbers_of_ranks: &[&str]) {
        let Some(first) = launchers().first() else { return };
        let alone = self.prints(first, "1", &[]);
        for (launcher, numbers_of_ranks) in dealt(numbers_of_ranks) {
            for ranks in numbers_of_ranks {
                assert_eq!(alone, self.prints(launcher, ranks, &[]), "{ranks} ranks: the same bits");
            }
        }
    }

    /// Asserts that these golden files pass, run like this.
    #[track_caller]
    fn passes(&self, launcher: &Path, golden: &[&str], how: &[&str]) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let file = |name: &&str| folder.join(format!("{name}.rhai")).display().to_string();
        let files: Vec<String> = golden.iter().map(file).collect();
        let args = ["test", "--threads", "1", "--quiet", "--share-from", "0"];
        let args: Vec<&str> =
            args.iter().chain(how).copied().chain(files.iter().map(String::as_str)).collect();
        let said = self.run(launcher, &args);
        let all = format!("{} passed, 0 failed", golden.len());
        assert!(said.code == 0 && said.out.contains(&all), "{how:?}: {}\n{}", said.out, said.err);
    }
}

/// The numbers of a text.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[track_caller]
fn close(a: &str, b: &str, what: &str) {
    let (x, y) = (numbers(a), numbers(b));
    assert!(x.len() == y.len() && !x.is_empty(), "{what}: {a}\n{b}");
    let largest = x.iter().fold(1.0f64, |most, x| most.max(x.abs()));
    for (x, y) in x.iter().zip(&y) {
        assert!((x - y).abs() <= 1e-12 * largest, "{what}: {x:e} and {y:e}");
    }
}

/// As [`close`], to within this part of each number, or of 1.
#[track_caller]
fn close_within(tolerance: f64, a: &str, b: &str, what: &str) {
    let (x, y) = (numbers(a), numbers(b));
    assert!(x.len() == y.len() && !x.is_empty(), "{what}: {a}\n{b}");
    for (x, y) in x.iter().zip(&y) {
        assert!((x - y).abs() <= tolerance * x.abs().max(1.0), "{what}: {x} and {y}\n{a}\n{b}");
    }
}

#[test]
fn one_rank_speaks() {
    let place = Place(Folder::new("speaks").with(
        "a.rhai",
        "print(`${backend().ranks} ranks, this is ${backend().rank}`);
         write_text(\"note.txt\", \"first\\n\");
         append_text(\"note.txt\", \"second\\n\");
         print(file_exists(\"note.txt\") && !file_exists(\"other.txt\"));
         let h = tight_binding(lattice::chain(20), #{ hopping: 1.0 });
         print(random_block(h, 1, #{ seed: 3 }).to_series().sum());",
    ));
    for launcher in launchers() {
        let alone = place.prints(launcher, "1", &[]);
        for ranks in ["2", "3"] {
            let out = place.prints(launcher, ranks, &[]);
            let rest = out.strip_prefix(&format!("{ranks} ranks, this is 0\n"));
            assert_eq!(rest, alone.strip_prefix("1 ranks, this is 0\n"), "{out}");
            let note = std::fs::read_to_string(place.0.join("note.txt")).unwrap();
            assert_eq!(note, "first\nsecond\n");
        }
    }
}

#[test]
fn standard_input_is_read_for_all() {
    let place = Place(Folder::new("input"));
    for launcher in launchers() {
        let mut command = place.command(launcher, &["--ranks", "2", "--threads", "1", "--quiet"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let text =
            "let n = backend().ranks;\nfn twice(x) {\n  2 * x\n}\nprint(`${twice(n)} words`)\n!echo once\n";
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let said = Said::of(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (0, "4 words\nonce\n"), "{said:?}");
    }
}

#[test]
fn errors_are_told_once_or_name_their_rank() {
    let place = Place(
        Folder::new("errors")
            .with("all.rhai", "let x = 1;\nthrow \"all of us\";")
            .with("one.rhai", "if backend().rank == 1 { throw \"only me\"; }\nsleep(60.0);")
            .with("code.rhai", "exit(3);"),
    );
    for launcher in launchers() {
        let said = place.run(launcher, &["run", "all.rhai", "--ranks", "2", "--threads", "1"]);
        assert_eq!((said.code, said.err.matches("all of us").count()), (1, 2), "{said:?}");
        let said = place.run(launcher, &["run", "one.rhai", "--ranks", "3", "--threads", "1"]);
        assert!(said.code != 0 && said.err.contains("on rank 1 of 3: only me"), "{said:?}");
        let said = place.run(launcher, &["run", "code.rhai", "--ranks", "2", "--threads", "1"]);
        assert_eq!(said.code, 3, "{said:?}");
        let said = place.run(launcher, &["run", "none.rhai", "--ranks", "2"]);
        assert_eq!((said.code, said.err.matches("none.rhai").count()), (1, 1), "{said:?}");
    }
    let said = place.run(Path::new("/no/such/mpiexec"), &["run", "all.rhai", "--ranks", "2"]);
    assert!(said.code == 1 && said.err.contains("no `/no/such/mpiexec`"), "{said:?}");
    assert!(said.err.contains("apt install"), "the hint says how to get one: {said:?}");
}

#[test]
fn measurements_are_made_by_all() {
    let place = Place(Folder::new("bench"));
    for launcher in launchers() {
        for what in [["scale", "--only", "cubic"], ["kpm", "--only", "cubic 64^3 disordered stencil R=1"]] {
            let args = ["--seconds", "0.01", "--ranks", "2", "--threads", "1"];
            let said = place.run(launcher, &[&["bench"], &what[..], &args].concat());
            assert_eq!(said.code, 0, "{said:?}");
            let rows = |name: &str| said.out.matches(name).count();
            if what[0] == "kpm" {
                assert_eq!(rows("| cubic 64^3 disordered stencil R=1 "), 1, "{}", said.out);
            } else {
                let tables = (rows("R=8, strong"), rows("R=8, weak"), rows("| 4096 | "));
                assert_eq!(tables, (1, 1, 2), "{}", said.out);
            }
        }
    }
}

/// Golden files that reach all that is spread over ranks, and something of each field that is not.
const GOLDEN: [&str; 20] = [
    "dmrg_complex",
    "eigen_sectors",
    "exact_sectors",
    "files_of_all_kinds",
    "gauge_fields",
    "kpm_checkpoint",
    "kpm_evolve",
    "kpm_ldos_map",
    "kpm_normalised",
    "kpm_variants",
    "markers_reference",
    "observers",
    "sector_error",
    "tables_texts",
    "transport_reference",
    "unknown_option",
    "vector_values",
    "velocities",
    "vmc_resume",
    "wilson_reference",
];

#[test]
fn golden_files_hold_on_ranks() {
    let place = Place(Folder::new("golden"));
    for (launcher, numbers_of_ranks) in dealt(&["2", "3"]) {
        for ranks in numbers_of_ranks {
            place.passes(launcher, &GOLDEN, &["--ranks", ranks]);
        }
    }
}
