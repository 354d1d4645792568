//! How ranks come about: the signs that a launcher leaves, the library that fits it,
//! and the launcher that `--ranks` starts.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::watch::Watch;
use crate::error::{Error, Result};
use crate::task::signals;

/// The variable that tells ranks of a terminal in front of the launcher that `--ranks` has started.
pub const TERMINAL: &str = "UMKLAPP_TERMINAL";

/// What a launcher has said of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// Whose launcher it was.
    pub by: &'static str,
    /// How many ranks it has started, where it says so.
    pub ranks: Option<usize>,
    /// The number of this one, where it says so.
    pub rank: Option<usize>,
}

/// Launchers, and the variables of their ranks: how many there are, and which one this is.
const SIGNS: [(&str, &str, &str); 6] = [
    ("Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI", "PMI_SIZE", "PMI_RANK"),
    ("PALS", "PALS_NRANKS", "PALS_RANKID"),
    ("MVAPICH", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("PMIx", "PMIX_SIZE", "PMIX_RANK"),
    ("Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// The signs of a launcher, if one has started this program.
pub fn signs() -> Option<Launched> {
    read_signs(&|name| std::env::var(name).ok())
}

fn read_signs(variable: &dyn Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name).and_then(|text| text.parse().ok());
    SIGNS.iter().find_map(|&(by, size, rank)| {
        let (ranks, rank) = (number(size), number(rank));
        let launched = match by {
            // PMIx says here which rank this is. How many there are it tells only the library.
            "PMIx" => rank.is_some(),
            // A Slurm step of one task is often only a shell.
            "Slurm" => ranks.is_some_and(|n: usize| n > 1),
            _ => ranks.is_some(),
        };
        launched.then_some(Launched { by, ranks, rank })
    })
}

/// The names of libraries, those of the launcher's kind first.
pub(super) fn libraries(launcher: &str) -> Vec<String> {
    if let Ok(name) = std::env::var("UMKLAPP_MPI") {
        return vec![name];
    }
    let mac = cfg!(target_os = "macos");
    let open: &[&str] = if mac { &["libmpi.40.dylib"] } else { &["libmpi.so.40"] };
    let others: &[&str] = if mac {
        &["libmpi.12.dylib", "libmpi_abi.0.dylib"]
    } else {
        &["libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12"]
    };
    let (first, then) = if launcher == "Open MPI" { (open, others) } else { (others, open) };
    first.iter().chain(then).map(|name| name.to_string()).collect()
}

/// Whose `mpiexec` it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LauncherKind {
    OpenMpi,
    /// MPICH's, and those made of it.
    Hydra,
    Slurm,
}

/// A program that starts ranks.
#[derive(Debug)]
struct Launcher {
    program: PathBuf,
    kind: LauncherKind,
}

fn on_the_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).is_file().then(|| name.into());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whose launcher it is, by what it says of itself.
fn kind_of(program: &Path) -> LauncherKind {
    if program.file_name().is_some_and(|name| name == "srun") {
        return LauncherKind::Slurm;
    }
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let text = said.map(|said| [said.stdout, said.stderr].concat()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).to_lowercase();
    let open = ["open mpi", "openrte", "open-rte", "prrte", "prte"].iter().any(|word| text.contains(word));
    if open { LauncherKind::OpenMpi } else { LauncherKind::Hydra }
}

fn launcher() -> Result<Launcher> {
    let wanted = std::env::var("UMKLAPP_MPIEXEC").ok();
    let names: Vec<&str> = match &wanted {
        Some(name) => vec![name],
        None if std::env::var_os("SLURM_JOB_ID").is_some() => vec!["mpiexec", "mpirun", "srun"],
        None => vec!["mpiexec", "mpirun"],
    };
    match names.iter().find_map(|name| on_the_path(name)) {
        Some(program) => Ok(Launcher { kind: kind_of(&program), program }),
        None => Err(Error::backend(format!("several ranks need an MPI, and there is no `{}`", names[0])).hint(
            "install one (`apt install mpich`, `apt install openmpi-bin`, `module load openmpi` on a cluster, or \
             `pip install mpich`), or name its launcher in UMKLAPP_MPIEXEC",
        )),
    }
}

impl Launcher {
    /// The library that lies beside the launcher, where the system would not find it by its name.
    fn library(&self) -> Option<PathBuf> {
        let program = std::fs::canonicalize(&self.program).ok()?;
        // Wheels keep their launchers and libraries in one folder each. The system finds its own by itself.
        let folders = [self.program.parent()?.parent(), program.parent()?.parent()];
        let names = libraries(if self.kind == LauncherKind::OpenMpi { "Open MPI" } else { "PMI" });
        let candidates = folders.into_iter().flatten().filter(|root| **root != *"/" && **root != *"/usr");
        let mut files = candidates.flat_map(|root| {
            ["lib", "lib64", "lib/release"]
                .map(|folder| root.join(folder))
                .into_iter()
                .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
        });
        files.find(|file| file.is_file())
    }

    fn command(&self, ranks: usize) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-n").arg(ranks.to_string());
        let library = match std::env::var_os("UMKLAPP_MPI") {
            None => self.library(),
            // It is in the environment already.
            Some(_) => None,
        };
        if let Some(library) = &library {
            command.env("UMKLAPP_MPI", library);
        }
        match self.kind {
            LauncherKind::OpenMpi => {
                // Binding each rank to one core would leave its other threads idle. More ranks than cores are allowed.
                command.args(["--bind-to", "none"]);
                command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
                command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
                if library.is_some() || std::env::var_os("UMKLAPP_MPI").is_some() {
                    command.args(["-x", "UMKLAPP_MPI"]);
                }
                // Whoever runs this program as root, as containers do, has decided that already.
                if is_root() {
                    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
                        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
                    }
                }
            }
            LauncherKind::Hydra => {
                command.env("I_MPI_PIN", "0");
            }
            LauncherKind::Slurm => {
                command.arg("--cpu-bind=none");
            }
        }
        command
    }
}

fn is_root() -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
    }
    #[cfg(not(unix))]
    false
}

/// How long a launcher may take to end its ranks when it is asked to, before it is killed.
const GRACE: Duration = Duration::from_millis(400);

/// How long a launcher may last after rank 0: one that cannot reach other machines any more may wait for them for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// The line behind the last one of standard input: not every launcher tells its ranks that there is no more.
pub const END_OF_INPUT: &str = "\u{4}";

/// Hands standard input on to the launcher, line by line.
fn hand_on(mut to: ChildStdin) {
    let mut line = Vec::new();
    let mut from = std::io::stdin().lock();
    while matches!(from.read_until(b'\n', &mut line), Ok(1..)) {
        if to.write_all(&line).and_then(|()| to.flush()).is_err() {
            return;
        }
        line.clear();
    }
    let _ = to.write_all(format!("\n{END_OF_INPUT}\n").as_bytes());
}

/// Starts this program again on so many ranks, with the same arguments, and waits for their end: the exit code. `reads`
/// says whether they read standard input.
///
/// # Errors
/// No launcher, or one that cannot be started; a rank that died; an interruption that no rank has told of.
pub fn start(ranks: usize, reads: bool) -> Result<u8> {
    let launcher = launcher()?;
    let own = std::env::current_exe()
        .map_err(|e| Error::backend(format!("the file of this program is not known: {e}")))?;
    let mut command = launcher.command(ranks);
    command.arg(own).args(std::env::args_os().skip(1));
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        command.env(TERMINAL, "1");
    }
    command.stdin(if reads { Stdio::piped() } else { Stdio::null() });
    let watch = Watch::new();
    if let Some((name, value)) = watch.as_ref().map(Watch::variable) {
        command.env(name, value);
    }
    let mut child = command
        .spawn()
        .map_err(|e| Error::backend(format!("`{}` cannot be started: {e}", launcher.program.display())))?;
    if let Some(input) = child.stdin.take() {
        // It may wait for a line for ever, and ends with the program.
        std::thread::spawn(move || hand_on(input));
    }
    wait(child, watch)
}

/// How long ranks may go unwatched.
const GLANCE: Duration = Duration::from_millis(5);

fn wait(child: Child, mut watch: Option<Watch>) -> Result<u8> {
    let child = Arc::new(Mutex::new(child));
    let asked = Arc::new(AtomicBool::new(false));
    let (heard, to) = (asked.clone(), child.clone());
    signals::on(move |_| {
        heard.store(true, Ordering::SeqCst);
        if let Ok(child) = to.lock() {
            ask_to_end(&child);
        }
    });
    let mut since: Option<Instant> = None;
    loop {
        if let Ok(mut child) = child.lock() {
            let ended = child.try_wait();
            let ended = ended.map_err(|e| Error::backend(format!("the launcher is lost: {e}")))?;
            if let Some(status) = ended {
                if let Some(watch) = &mut watch {
                    watch.look(Duration::ZERO);
                }
                return end(status, asked.load(Ordering::SeqCst), watch.as_ref());
            }
            let alone = watch.as_ref().and_then(Watch::alone).is_some_and(|time| time > PATIENCE);
            if alone && since.is_none() {
                ask_to_end(&child);
            }
            if alone || asked.load(Ordering::SeqCst) {
                let since = *since.get_or_insert_with(Instant::now);
                if since.elapsed() > GRACE {
                    // Ranks end with it.
                    let _ = child.kill();
                }
            }
        }
        match &mut watch {
            Some(watch) => watch.look(GLANCE),
            None => std::thread::sleep(GLANCE),
        }
    }
}

/// How the run has ended; `asked`: because somebody wanted it to.
fn end(status: std::process::ExitStatus, asked: bool, watch: Option<&Watch>) -> Result<u8> {
    match watch {
        Some(watch) if asked && !watch.has_spoken() => return Err(Error::interrupted()),
        Some(watch) if !asked && status.code().is_some_and(|code| code != 0) => {
            if let Some([rank, ranks, process]) = watch.lost() {
                return Err(Error::backend(format!(
                    "rank {rank} of {ranks} has died: its process, {process}, ended without a word, and the others \
                     were ended"
                ))
                .hint(
                    "the system kills a process when memory runs out (`dmesg` says so; under `--memory 4GB` a script \
                     stops \
                     with an error instead), a batch system at the limits of a job",
                ));
            }
        }
        _ => {}
    }
    Ok(if asked { signals::code() } else { code(status) })
}

#[cfg(unix)]
fn ask_to_end(child: &Child) {
    use nix::sys::signal::{Signal, kill};
    if let Ok(number) = i32::try_from(child.id()) {
        let _ = kill(nix::unistd::Pid::from_raw(number), Signal::SIGTERM);
    }
}

#[cfg(not(unix))]
fn ask_to_end(_: &Child) {}

/// What the launcher ended with.
fn code(status: std::process::ExitStatus) -> u8 {
    match status.code() {
        Some(code) => u8::try_from(code).unwrap_or(1),
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs_of(variables: &[(&str, &str)]) -> Option<Launched> {
        read_signs(&|name| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_string()))
    }

    #[test]
    fn launchers_are_known_by_their_signs() {
        assert_eq!(signs_of(&[("PATH", "/bin")]), None);
        let open =
            signs_of(&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3"), ("PMIX_RANK", "3")]);
        assert_eq!(open, Some(Launched { by: "Open MPI", ranks: Some(4), rank: Some(3) }));
        let hydra = signs_of(&[("PMI_SIZE", "2"), ("PMI_RANK", "0"), ("SLURM_STEP_NUM_TASKS", "1")]);
        assert_eq!(hydra, Some(Launched { by: "PMI", ranks: Some(2), rank: Some(0) }));
        let slurm = |n| signs_of(&[("SLURM_STEP_NUM_TASKS", n), ("SLURM_PROCID", "1")]);
        assert_eq!(slurm("1"), None);
        assert_eq!(slurm("8"), Some(Launched { by: "Slurm", ranks: Some(8), rank: Some(1) }));
        let pmix = signs_of(&[("PMIX_RANK", "5"), ("SLURM_STEP_NUM_TASKS", "8")]);
        assert_eq!(pmix, Some(Launched { by: "PMIx", ranks: None, rank: Some(5) }));
    }

    #[test]
    fn the_library_of_the_launcher_comes_first() {
        if std::env::var_os("UMKLAPP_MPI").is_none() {
            assert!(
                libraries("Open MPI")[0].starts_with("libmpi.") && libraries("Open MPI")[0].contains("40")
            );
            assert!(!libraries("PMI")[0].contains("40"));
        }
    }
}
