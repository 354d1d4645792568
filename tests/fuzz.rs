//! Scripts and files that nobody would write: no panic, no abort, no hang, no damaged file that is read as another.
//!
//! What is drawn depends on a seed and a number only. A failure names both, and the script or file; by hand
//! `UMKLAPP_FUZZ_SCRIPTS=5000 UMKLAPP_FUZZ_FILES=3000 UMKLAPP_FUZZ_SEED=7 cargo test --release --test fuzz` draws more,
//! and `UMKLAPP_FUZZ_PATIENCE=50` interrupts each script after so many milliseconds. What was found lies in
//! `tests/fuzz/corpus` and runs first.

#[allow(dead_code)]
mod common;
mod fuzz {
    pub mod files;
    pub mod random;
    pub mod scripts;
}

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use common::Folder;
use fuzz::random::Random;
use umklapp::Engine;
use umklapp::error::ErrorKind;
use umklapp::number::memory::{WatchedAllocator, available, unwind_if_refused};
use umklapp::script::{Evaluated, Settings};
use umklapp::task::Interrupt;

// As the program has it: memory that there is not is an error.
#[global_allocator]
static ALLOCATOR: WatchedAllocator = WatchedAllocator;

#[cfg(unix)]
#[unsafe(no_mangle)]
extern "C-unwind" fn abort() -> ! {
    unwind_if_refused();
    std::process::exit(134)
}

/// How long a script may take to stop when it is asked to. It is noted as slow much earlier; this is for what hangs.
const GRACE: Duration = Duration::from_secs(240);

/// How long a script that is right may take, on a disk that is busy.
const AMPLE: Duration = Duration::from_secs(600);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// An engine on a stack as deep as the program's, whose scripts somebody watches.
struct Watcher {
    engine: Engine,
    begun: std::sync::mpsc::Sender<Option<(String, Duration)>>,
    slow: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Watcher {
    fn new(out: PathBuf) -> Watcher {
        let interrupt = Interrupt::default();
        let settings = Settings { out: Some(out), quiet: true, threads: 2, ..Settings::default() };
        let engine = Engine::with(settings, interrupt.clone()).unwrap();
        engine.session().set_printer(Box::new(|_| {}));
        let slow: std::sync::Arc<std::sync::Mutex<Vec<String>>> = Default::default();
        let told = slow.clone();
        let (begun, heard) = channel::<Option<(String, Duration)>>();
        std::thread::spawn(move || {
            let mut running: Option<(String, Duration, Instant)> = None;
            loop {
                let wait =
                    if running.is_some() { Duration::from_millis(50) } else { Duration::from_secs(3600) };
                match heard.recv_timeout(wait) {
                    Ok(next) => {
                        if let Some((script, patience, since)) = running.take()
                            && since.elapsed() > patience + Duration::from_millis(700)
                        {
                            let late = since.elapsed() - patience;
                            told.lock()
                                .unwrap()
                                .push(format!("stopped {late:.1?} after it was asked to:\n{script}"));
                        }
                        running = next.map(|(script, patience)| (script, patience, Instant::now()));
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        let Some((script, patience, since)) = &running else { continue };
                        if since.elapsed() > *patience {
                            interrupt.raise();
                        }
                        if since.elapsed() > *patience + GRACE {
                            // Not `eprintln`, which the harness keeps until a test ends.
                            let _ = writeln!(std::io::stderr(), "does not stop:\n{script}\n{}", threads());
                            std::process::exit(1);
                        }
                    }
                }
            }
        });
        Watcher { engine, begun, slow }
    }

    /// Runs a script in a fresh scope, and asks it to stop after a while.
    fn run(&mut self, script: &str) -> Evaluated {
        self.run_for(script, Duration::from_millis(number("UMKLAPP_FUZZ_PATIENCE", 500)))
    }

    fn run_for(&mut self, script: &str, patience: Duration) -> Evaluated {
        self.engine.reset();
        self.begun.send(Some((script.to_string(), patience))).unwrap();
        let outcome = self.engine.eval(script);
        // Values are dropped while somebody watches.
        self.engine.reset();
        self.begun.send(None).unwrap();
        outcome
    }

    /// Runs a script that is right.
    fn run_whole(&mut self, script: &str) -> rhai::Dynamic {
        self.run_for(script, AMPLE).unwrap_or_else(|report| panic!("{}", report.render(false)))
    }
}

/// What each thread of this process does, as far as the system says: its name, its state, where in the system it waits.
fn threads() -> String {
    let Ok(all) = std::fs::read_dir("/proc/self/task") else { return String::new() };
    let told = |folder: PathBuf| {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        let state = read("status").lines().find(|l| l.starts_with("State")).unwrap_or_default().to_string();
        format!("{} {state} {}", read("comm").trim(), read("wchan"))
    };
    all.flatten().map(|entry| told(entry.path())).collect::<Vec<_>>().join("\n")
}

/// Runs work as the program runs its own: on a deep stack, with limits known.
fn as_the_program(work: impl FnOnce() + Send + 'static) {
    available();
    // As in `main.rs`: reports of refused memory must not hold the lock of backtraces.
    // SAFETY: the tests here read no variable by the system's functions while this runs.
    unsafe { std::env::set_var("RUST_BACKTRACE", "0") };
    let panics = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // Of the tests, not of the scripts, whose panics are caught.
        if std::thread::current().name() != Some("scripts")
            || info.location().is_some_and(|l| l.file().starts_with("tests"))
        {
            panics(info);
        }
    }));
    let thread = std::thread::Builder::new().name("scripts".into()).stack_size(1 << 30).spawn(work).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap()))
        .collect();
    found.sort();
    found
}

/// Runs scripts one after the other in one session.
fn run_all(watcher: &mut Watcher, scripts: impl Iterator<Item = (String, String)>) {
    let last = std::env::temp_dir().join("umklapp-fuzz-last.rhai");
    let mut wrong = Vec::new();
    let (mut failed, mut done) = (0, 0);
    for (name, script) in scripts {
        // Of a script that ends the process, this is what is left.
        std::fs::write(&last, &script).unwrap();
        match watcher.run(&script) {
            Err(report) if report.kind == ErrorKind::Internal => {
                wrong.push(format!("{name}: {}\n{script}", report.message));
            }
            // An option that is out of bounds is told as such, not where a sum of it has no place any more.
            Err(report) if name.contains("::") && report.message.contains("overflow") => {
                wrong.push(format!("{name}: {}\n{script}", report.message));
            }
            Err(_) => failed += 1,
            Ok(_) => {}
        }
        done += 1;
        if done % 500 == 0 {
            eprintln!("{done} scripts, {failed} refused, {} wrong", wrong.len());
        }
    }
    let slow = watcher.slow.lock().unwrap().clone();
    eprintln!("{done} scripts, {failed} refused, {} slow to stop", slow.len());
    for script in &slow {
        eprintln!("{script}\n");
    }
    assert!(failed < done, "no script runs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn scripts() {
    as_the_program(|| {
        let folder = Folder::new("scripts");
        let mut watcher = Watcher::new(folder.to_path_buf());
        let material = fuzz::scripts::Material::new(&watcher.engine);
        let (count, seed) = (number("UMKLAPP_FUZZ_SCRIPTS", 250), number("UMKLAPP_FUZZ_SEED", 1));
        let first = number("UMKLAPP_FUZZ_FIRST", 0);
        let drawn = (first..first + count).map(|k| {
            let script = fuzz::scripts::draw(&material, &mut Random::new(seed, k));
            (format!("seed {seed}, number {k}"), script)
        });
        run_all(&mut watcher, corpus().into_iter().chain(drawn));
    });
}

/// Every so many of the examples with one number changed; `UMKLAPP_FUZZ_STEP=1` runs all of them, for an hour or two.
#[test]
fn each_number_in_turn() {
    as_the_program(|| {
        let folder = Folder::new("numbers");
        let mut watcher = Watcher::new(folder.to_path_buf());
        let material = fuzz::scripts::Material::new(&watcher.engine);
        let (first, step) = (number("UMKLAPP_FUZZ_FIRST", 0), number("UMKLAPP_FUZZ_STEP", 500));
        let all = fuzz::scripts::each_number(&material).skip(first as usize).step_by(step.max(1) as usize);
        run_all(&mut watcher, all);
    });
}

/// Every so many of the whole numbers among the options of each function, the largest that there is, zero and one below
/// among their values; `UMKLAPP_FUZZ_STEP=1` runs all of them.
#[test]
fn each_count_in_turn() {
    as_the_program(|| {
        let folder = Folder::new("counts");
        let mut watcher = Watcher::new(folder.to_path_buf());
        let material = fuzz::scripts::Material::new(&watcher.engine);
        let (first, step) = (number("UMKLAPP_FUZZ_FIRST", 0), number("UMKLAPP_FUZZ_STEP", 13));
        let all = fuzz::scripts::each_count(&material).skip(first as usize).step_by(step.max(1) as usize);
        run_all(&mut watcher, all);
    });
}

#[test]
fn damaged_files() {
    as_the_program(|| {
        let folder = Folder::new("files");
        let mut watcher = Watcher::new(folder.to_path_buf());
        let (count, seed) = (number("UMKLAPP_FUZZ_FILES", 400), number("UMKLAPP_FUZZ_SEED", 1));
        let kinds = fuzz::files::kinds();
        let mut wrong = Vec::new();
        let (mut refused, mut same) = (0, 0);
        for kind in &kinds {
            let _ = watcher.run_whole(&kind.make);
            let path = folder.join(kind.file);
            let whole = std::fs::read(&path).unwrap();
            let right = watcher.run_whole(kind.read);
            let right = watcher.engine.show(&right);
            for k in 0..count / kinds.len() as u64 + 1 {
                let random = &mut Random::new(seed ^ 0xf11e, k * 64 + kind.number);
                let (what, bytes) = fuzz::files::damaged(&whole, random);
                std::fs::write(&path, &bytes).unwrap();
                let name = format!("seed {seed}, number {k}, {}: {what}", kind.file);
                match watcher.run(kind.read) {
                    Err(report) if report.kind == ErrorKind::Internal => {
                        wrong.push(format!("{name}: {}", report.message));
                    }
                    Err(_) => refused += 1,
                    Ok(value) => {
                        let found = watcher.engine.show(&value);
                        if found == right {
                            same += 1;
                        } else if !kind.foreign {
                            wrong.push(format!("{name}: read as another:\n{found}\nfor\n{right}"));
                        }
                    }
                }
            }
        }
        eprintln!("{refused} damaged files refused, {same} read as they were");
        assert!(refused > 0);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}
