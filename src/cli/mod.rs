//! The command line: one file a subcommand. Exit codes: 0 done, 1 a script or a file failed, 2 wrong usage,
//! 130 interrupted, 143 and 129 ended by SIGTERM and SIGHUP. Results go to standard output, everything else to
//! standard error.

mod bench;
mod check;
mod cite;
mod doc;
mod info;
mod junit;
mod jupyter;
mod lsp;
mod merge;
mod run;
mod test;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind as UsageKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::backend::{cuda, open};
use crate::confine;
use crate::error::{Error, ErrorKind};
use crate::number::memory;
use crate::output::{self, colours, end_alone, files, out, tell};
use crate::ranks;
use crate::script::Settings;
use crate::script::device;
use crate::script::diagnostics::Report;
use crate::script::on_a_deep_stack;
use crate::task::{Interrupt, signals};

/// A scripting engine for quantum-lattice workflows.
///
/// Without a command: an interactive session, or statements from standard input.
#[derive(Parser)]
#[command(name = "umklapp", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    shared: RunOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script
    Run(run::Run),
    /// Find mistakes in scripts without running them
    Check(check::Check),
    /// Run scripts and compare their output with the `.out` files beside them
    Test(test::Test),
    /// Explain a function, or write the reference manual
    Doc(doc::Doc),
    /// Measure the core against the memory bandwidth
    Bench(bench::Bench),
    /// Show this program's version and the machine that it computes on
    Info(info::Info),
    /// Combine the results of several runs, such as an array of jobs, in one file
    Merge(merge::Merge),
    /// List the papers behind the functions of a script, as BibTeX
    Cite(cite::Cite),
    /// Serve an editor: the Language Server Protocol over standard input and output
    Lsp,
    /// Work in notebooks: install the Jupyter kernel
    Jupyter(jupyter::Jupyter),
    /// Write completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What every subcommand that runs scripts takes.
#[derive(Args, Clone)]
pub(crate) struct RunOptions {
    /// Number of ranks to start: processes that run the script together and communicate by MPI. The launcher is the
    /// `mpiexec` on the path
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ranks: Option<u16>,
    /// Ranks in each direction of a lattice, like `4x2x2`; by default the boxes have the least surface
    #[arg(long, value_name = "AxB", value_parser = grid)]
    grid: Option<RankGrid>,
    /// Number of rows from which vectors are divided between ranks; every rank holds the whole of smaller vectors
    #[arg(long, value_name = "ROWS")]
    share_from: Option<usize>,
    /// Where to compute: `auto` (a GPU if there is one), `cpu`, `cuda`, or several that share the rows, like
    /// `cpu+cuda`; the ranks of a machine take one each, GPUs first
    #[arg(long, default_value = "auto", value_name = "NAME", value_parser = backend)]
    backend: String,
    /// The weights of several backends, or one weight per rank, like `1:12`; by default they are measured
    #[arg(long, value_name = "A:B", value_parser = shares)]
    weights: Option<Weights>,
    /// Number of the GPU, counted from 0; for `cuda+cuda` all numbers, like `0,2`, or the first of consecutive ones
    #[arg(long, default_value = "0", value_name = "N", value_delimiter = ',')]
    device: Vec<u32>,
    /// Worker threads of each rank (0: all cores)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Seed of all random numbers for which a script gives no seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the files that scripts write
    #[arg(long, value_name = "DIR")]
    out: Option<std::path::PathBuf>,
    /// Keep the files of scripts in this folder: they read and write nothing else
    #[arg(long, value_name = "DIR")]
    confine: Option<std::path::PathBuf>,
    /// Largest memory of each rank, like `4GB`; the first product of larger matrices takes twice the processor's last
    /// cache
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// End after this time, like `90s`, `10m`, `2h`, with exit code 124; checkpoints remain
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// No progress and no notes
    #[arg(long, short)]
    quiet: bool,
}

impl Command {
    /// What it takes with the others; some commands compute nothing and take none of it.
    fn shared(&mut self) -> Option<&mut RunOptions> {
        match self {
            Command::Run(run) => Some(&mut run.shared),
            Command::Test(test) => Some(&mut test.shared),
            Command::Bench(bench) => Some(&mut bench.shared),
            Command::Info(info) => Some(&mut info.shared),
            Command::Jupyter(jupyter::Jupyter { action: jupyter::JupyterAction::Kernel(kernel) }) => {
                Some(&mut kernel.shared)
            }
            Command::Check(_)
            | Command::Merge(_)
            | Command::Doc(_)
            | Command::Cite(_)
            | Command::Lsp
            | Command::Jupyter(_)
            | Command::Completions { .. } => None,
        }
    }
}

/// One weight a backend.
#[derive(Debug, Clone)]
struct Weights(Vec<f64>);

/// Ranks in each direction.
#[derive(Debug, Clone)]
struct RankGrid(Vec<usize>);

fn grid(text: &str) -> Result<RankGrid, String> {
    let numbers: Option<Vec<usize>> = text
        .split('x')
        .map(|n| n.trim().parse().ok().filter(|n: &usize| (1..=1 << 20).contains(n)))
        .collect();
    numbers
        .map(RankGrid)
        .ok_or_else(|| format!("`{text}` is no grid of ranks (give a number a direction, as 4x2x2)"))
}

/// A number and its unit.
fn measured<T>(text: &str, units: &[(&str, T)]) -> Option<(f64, T)>
where
    T: Copy,
{
    let text = text.trim();
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok().filter(|x: &f64| *x > 0.0 && x.is_finite())?;
    let unit = text[end..].to_ascii_lowercase();
    units.iter().find(|(name, _)| *name == unit).map(|(_, size)| (number, *size))
}

fn size(text: &str) -> Result<u64, String> {
    let units = [
        ("", 1.0),
        ("b", 1.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("tb", 1e12),
        ("k", 1024.0),
        ("kib", 1024.0),
        ("m", 1024f64.powi(2)),
        ("mib", 1024f64.powi(2)),
        ("g", 1024f64.powi(3)),
        ("gib", 1024f64.powi(3)),
        ("tib", 1024f64.powi(4)),
    ];
    let (number, unit) =
        measured(text, &units).ok_or_else(|| format!("`{text}` is no size (like `4GB` or `500MB`)"))?;
    let bytes = number * unit;
    if bytes < 64e6 {
        return Err(format!("{text}: the program itself needs 64MB"));
    }
    Ok(bytes as u64)
}

fn duration(text: &str) -> Result<Duration, String> {
    let units =
        [("", 1.0), ("s", 1.0), ("ms", 1e-3), ("m", 60.0), ("min", 60.0), ("h", 3600.0), ("d", 86400.0)];
    measured(text, &units)
        .and_then(|(number, unit)| Duration::try_from_secs_f64(number * unit).ok())
        .ok_or_else(|| format!("`{text}` is no time (like `90s`, `10m` or `2h`)"))
}

/// An error with its hint, for the command line.
fn with_hint(e: &Error) -> String {
    e.hint_text().map_or(e.to_string(), |hint| format!("{e} ({hint})"))
}

fn backend(text: &str) -> Result<String, String> {
    device::backend_name(text).map_err(|e| with_hint(&e))
}

fn shares(text: &str) -> Result<Weights, String> {
    device::weights(text).map(Weights).map_err(|e| with_hint(&e))
}

impl RunOptions {
    /// Takes over options that stand before the command, unless the command's own say otherwise.
    fn take_over(&mut self, before: RunOptions, told: &ArgMatches) {
        fn keep<T>(own: &mut T, before: T, name: &str, told: &ArgMatches) {
            if told.value_source(name) != Some(ValueSource::CommandLine) {
                *own = before;
            }
        }
        keep(&mut self.ranks, before.ranks, "ranks", told);
        keep(&mut self.grid, before.grid, "grid", told);
        keep(&mut self.share_from, before.share_from, "share_from", told);
        keep(&mut self.backend, before.backend, "backend", told);
        keep(&mut self.weights, before.weights, "weights", told);
        keep(&mut self.device, before.device, "device", told);
        keep(&mut self.threads, before.threads, "threads", told);
        keep(&mut self.seed, before.seed, "seed", told);
        keep(&mut self.out, before.out, "out", told);
        keep(&mut self.confine, before.confine, "confine", told);
        keep(&mut self.memory, before.memory, "memory", told);
        keep(&mut self.time, before.time, "time", told);
        keep(&mut self.quiet, before.quiet, "quiet", told);
    }

    /// Holds the process to its limits from now on, before it starts threads that compute.
    fn hold(&self) -> Result<(), Error> {
        if let Some(bytes) = self.memory {
            memory::restrict(bytes);
        }
        if let Some(folder) = &self.confine {
            // Ranks of a machine talk by files in memory.
            let others: &[&str] = if ranks::world().is_some() { &["/dev/shm", "/tmp"] } else { &[] };
            let kernel = confine::to(folder, others)?;
            if kernel == confine::Landlock::Cannot && !self.quiet {
                tell("note: this system has no Landlock: the program alone keeps scripts in their folder");
            }
            if let Some(out) = &self.out {
                confine::check(out)?;
            }
        }
        if let Some(time) = self.time {
            let words = format!("note: its time of {time:?} is over");
            signals::after(time, move || tell(&words))
                .map_err(|e| Error::backend(format!("a thread cannot be started: {e}")))?;
        }
        Ok(())
    }

    /// Compares with the other ranks what has to be the same on all of them.
    fn alike(&self) -> Result<(), Error> {
        let grid = self.grid.as_ref().map_or(&[][..], |grid| &grid.0);
        ranks::alike(&[
            ("was started with another `--grid`", &format!("{grid:?}")),
            ("was started with another `--share-from`", &format!("{:?}", self.share_from)),
            ("was started with another `--seed`", &self.seed.to_string()),
            ("was started with another `--threads`", &self.threads.to_string()),
            ("was started with another `--weights`", &format!("{:?}", self.weights)),
        ])
        .map_err(|e| {
            e.hint("all ranks take the same `--grid`, `--share-from`, `--seed`, `--threads` and `--weights`")
        })
    }

    /// The same wishes for an engine.
    fn settings(&self) -> Settings {
        Settings {
            backend: self.backend.clone(),
            weights: self.weights.clone().map(|w| w.0).unwrap_or_default(),
            devices: self.device.clone(),
            grid: self.grid.clone().map(|grid| grid.0).unwrap_or_default(),
            share_from: self.share_from,
            threads: self.threads,
            seed: self.seed,
            out: self.out.clone().or_else(|| self.confine.clone()),
            quiet: self.quiet,
            ..Settings::default()
        }
    }
}

fn given() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The script that stands where a command is expected, as in `umklapp script.rhai`.
fn script_of(e: &clap::Error) -> Option<&str> {
    let name = match e.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(name) => name,
        _ => return None,
    };
    (name.ends_with(".rhai") || Path::new(name).is_file()).then_some(name)
}

/// The arguments, with options that stand before a command given to it.
fn arguments() -> Result<Arguments, clap::Error> {
    let told = Arguments::command().try_get_matches_from(given()).or_else(|e| match script_of(&e) {
        Some(script) => {
            let mut all = given();
            let at = all.iter().position(|arg| *arg == *script).unwrap_or(1);
            all.insert(at, "run".into());
            Arguments::command().try_get_matches_from(all)
        }
        None => Err(e),
    })?;
    let mut arguments = Arguments::from_arg_matches(&told)?;
    let (Some(command), Some((name, inner))) = (&mut arguments.command, told.subcommand()) else {
        return Ok(arguments);
    };
    // If a command has subcommands, the innermost one counts.
    let inner = if name == "jupyter" { inner.subcommand().map_or(inner, |(_, inner)| inner) } else { inner };
    if let Some(shared) = command.shared() {
        shared.take_over(arguments.shared.clone(), inner);
        return Ok(arguments);
    }
    let own = Arguments::command();
    let said = |id: &str| told.value_source(id) == Some(ValueSource::CommandLine);
    match own.get_arguments().map(|arg| arg.get_id().as_str()).find(|id| said(id)) {
        Some(option) => {
            let said = format!("`{name}` computes nothing: it has no use for `--{option}`");
            Err(Arguments::command().error(UsageKind::ArgumentConflict, said))
        }
        None => Ok(arguments),
    }
}

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    if let Err(e) = signals::listen() {
        tell(&format!("warning: Ctrl-C cannot be caught: {e}"));
    }
    memory::watch();
    let code = match on_a_deep_stack("main", work) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| leave(report(&Report::panic(panic.as_ref())))),
        // No thread could be started.
        Err(_) => work(),
    };
    cuda::settle();
    if output::lost() { ExitCode::FAILURE } else { code }
}

/// Leaves the ranks in good order.
fn leave(code: ExitCode) -> ExitCode {
    if let Some(world) = ranks::world() {
        world.finish();
    }
    code
}

/// Joins the ranks that a launcher has started, or starts as many as are wanted and waits for them: then there is
/// nothing more to do but to end with their exit code. `reads` says whether they read standard input.
fn meet_ranks(shared: &RunOptions, reads: bool) -> Result<Option<ExitCode>, Error> {
    let wanted = shared.ranks.map(usize::from);
    let launched = ranks::launch::signs();
    match wanted {
        Some(n) if n > 1 && launched.is_none() => {
            return ranks::launch::start(n, reads).map(|code| Some(ExitCode::from(code)));
        }
        _ => ranks::join(|e| show(&Report::plain(e)))?,
    }
    let size = ranks::world().map_or(1, |world| world.size());
    match wanted.filter(|n| *n != size) {
        None => {
            if let Err(e) = open::check_ranks(&shared.settings().choice()) {
                show(&Report::plain(&e));
                return Ok(Some(leave(ExitCode::from(2))));
            }
            shared.alike().map(|()| None)
        }
        Some(n) => Err(Error::input(format!("`--ranks {n}`, and a launcher has started {size} already"))
            .hint("leave `--ranks` out behind `mpiexec`: it starts the launcher itself")),
    }
}

fn work() -> ExitCode {
    let mut arguments = arguments().unwrap_or_else(|e| e.exit());
    let session = arguments.command.is_none();
    let runs = match &mut arguments.command {
        None => Some(&mut arguments.shared),
        Some(command) => command.shared(),
    };
    if let Some(shared) = runs {
        match meet_ranks(shared, session) {
            Ok(None) => {}
            Ok(Some(code)) => return code,
            Err(e) => {
                // All of them have come here: one tells.
                if ranks::launch::signs().is_none_or(|signs| signs.rank.is_none_or(|rank| rank == 0)) {
                    show(&Report::plain(&e));
                }
                let interrupted = e.kind() == ErrorKind::Interrupted;
                return leave(ExitCode::from(if interrupted { signals::code() } else { 1 }));
            }
        }
    }
    leave(execute(arguments))
}

fn execute(mut arguments: Arguments) -> ExitCode {
    let held = match &mut arguments.command {
        None => arguments.shared.hold(),
        // They read a file first, which may lie elsewhere.
        Some(Command::Run(_) | Command::Jupyter(_)) => Ok(()),
        Some(command) => command.shared().map_or(Ok(()), |shared| shared.hold()),
    };
    if let Err(e) = held {
        return report(&Report::plain(&e));
    }
    let Some(command) = arguments.command else {
        return crate::repl::run(arguments.shared.settings());
    };
    match command {
        Command::Run(run) => run.execute(),
        Command::Check(check) => check.execute(),
        Command::Test(test) => test.execute(),
        Command::Bench(bench) => bench.execute(),
        Command::Doc(doc) => doc.execute(),
        Command::Info(info) => info.execute(),
        Command::Merge(merge) => merge.execute(),
        Command::Cite(cite) => cite.execute(),
        Command::Lsp => lsp::execute(),
        Command::Jupyter(jupyter) => jupyter.execute(),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "umklapp", &mut text);
            out(String::from_utf8_lossy(&text).trim_end());
            ExitCode::SUCCESS
        }
    }
}

/// A flag that Ctrl-C raises. If work does not look at it in time, the program ends.
pub(crate) fn catch_interrupt() -> Interrupt {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::on(move |_| {
        flag.raise();
        std::thread::sleep(GRACE);
        end("error: interrupted");
    });
    interrupt
}

/// How long work may take to stop.
pub(crate) const GRACE: Duration = Duration::from_millis(140);

/// Ends the program with the exit code of the signal that it got, after this message.
pub(crate) fn end(words: &str) -> ! {
    files::atomic::give_up();
    tell(words);
    ranks::farewell();
    signals::end_now()
}

/// Shows a finding on standard error.
pub(crate) fn show(report: &Report) {
    tell(&report.render(colours(&std::io::stderr())));
}

/// The exit code with which a script has ended itself. Where other ranks have not, it ends them:
/// they would wait for this one.
pub(crate) fn ended(code: u8) -> ExitCode {
    if ranks::world().is_some_and(|world| !world.all_end()) {
        end_alone(&format!("`exit({code})` has ended the script here, and other ranks go on with it"));
    }
    ExitCode::from(code)
}

/// Shows a failure and returns its exit code. Where some ranks have failed and others have not, it ends all of them.
pub(crate) fn report(report: &Report) -> ExitCode {
    if let Some(world) = ranks::world() {
        if report.kind == ErrorKind::Interrupted {
            if ranks::is_cut() {
                world.abort(1);
            }
            show(report);
            world.abort(signals::code());
        }
        if !world.all_failed() {
            let text = report.render(false);
            end_alone(text.strip_prefix("error: ").unwrap_or(&text));
        }
    }
    show(report);
    if report.kind == ErrorKind::Interrupted { ExitCode::from(signals::code()) } else { ExitCode::from(1) }
}
