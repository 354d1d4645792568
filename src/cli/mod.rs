//! The command line: one file a subcommand. Exit codes: 0 done, 1 a script or a file failed, 2 wrong usage,
//! 130 interrupted.

mod run;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::error::Kind;
use crate::script::Settings;
use crate::script::diagnostics::Report;

/// A scripting engine for quantum-lattice workflows.
///
/// Without a command: an interactive session, or statements from standard input.
#[derive(Parser)]
#[command(name = "umklapp", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    shared: Shared,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script
    Run(run::Run),
}

/// What every subcommand that runs scripts takes.
#[derive(Args, Clone)]
pub(crate) struct Shared {
    /// Where to compute: `auto` takes a GPU if there is one
    #[arg(long, default_value = "auto", value_parser = ["auto", "cpu", "cuda"])]
    backend: String,
    /// Worker threads (0: all there are)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Seed of everything random that names none
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the files that scripts write
    #[arg(long, value_name = "DIR")]
    out: Option<std::path::PathBuf>,
    /// No progress and no notes
    #[arg(long, short)]
    quiet: bool,
}

impl Shared {
    /// As the engine takes them.
    fn settings(self, json: bool, args: rhai::Map) -> Settings {
        Settings {
            backend: self.backend,
            threads: self.threads,
            seed: self.seed,
            out: self.out,
            quiet: self.quiet,
            json,
            args,
        }
    }
}

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        None => crate::repl::run(arguments.shared.settings(false, rhai::Map::new())),
        Some(Command::Run(run)) => run.execute(),
    }
}

/// Shows a failure and returns its exit code.
pub(crate) fn report(report: &Report) -> ExitCode {
    let colour =
        std::io::IsTerminal::is_terminal(&std::io::stderr()) && std::env::var_os("NO_COLOR").is_none();
    eprintln!("{}", report.render(colour));
    if report.kind == Kind::Interrupted { ExitCode::from(130) } else { ExitCode::from(1) }
}
