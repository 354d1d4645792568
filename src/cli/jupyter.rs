//! `umklapp jupyter install | uninstall | kernel`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Subcommand};

use super::{Arguments, RunOptions, report};
use crate::error::{Error, Result};
use crate::jupyter::{self, spec};
use crate::output::out;
use crate::ranks;
use crate::script::diagnostics::Report;

/// Arguments of `umklapp jupyter`.
#[derive(Args)]
pub(crate) struct Jupyter {
    #[command(subcommand)]
    pub(super) action: JupyterAction,
}

#[derive(Subcommand)]
pub(crate) enum JupyterAction {
    /// Install the kernel for Jupyter
    Install(Install),
    /// Remove the kernel from Jupyter
    Uninstall(KernelFolder),
    /// Serve a notebook; Jupyter starts this
    Kernel(KernelArgs),
}

/// Where Jupyter looks for kernels.
#[derive(Args)]
pub(crate) struct KernelFolder {
    /// What Jupyter's commands call the kernel
    #[arg(long, default_value = "umklapp")]
    name: String,
    /// The folder that Jupyter is installed in, such as a virtual environment; without it, your own folder
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    place: KernelFolder,
    /// What notebooks call the kernel
    #[arg(long, value_name = "TEXT", default_value = "Umklapp")]
    display_name: String,
    /// Options of the kernel, as `-- --backend cuda --threads 8`
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Args)]
pub(crate) struct KernelArgs {
    /// The file with which Jupyter says where to listen
    #[arg(long, value_name = "FILE")]
    connection_file: PathBuf,
    #[command(flatten)]
    pub(super) shared: RunOptions,
}

impl Jupyter {
    pub(super) fn execute(self) -> ExitCode {
        let done = match self.action {
            JupyterAction::Install(install) => install.execute(),
            JupyterAction::Uninstall(place) => place.uninstall(),
            JupyterAction::Kernel(kernel) => kernel.execute(),
        };
        done.unwrap_or_else(|e| report(&Report::plain(&e)))
    }
}

impl KernelFolder {
    fn folder(&self) -> Result<PathBuf> {
        let data = match &self.prefix {
            Some(prefix) => prefix.join("share/jupyter"),
            None => spec::data_folder()?,
        };
        spec::folder(&data, &self.name)
    }

    fn uninstall(&self) -> Result<ExitCode> {
        let folder = self.folder()?;
        spec::uninstall(&folder)?;
        out(&format!("the kernel `{}` is gone from `{}`", self.name, folder.display()));
        Ok(ExitCode::SUCCESS)
    }
}

impl Install {
    fn execute(&self) -> Result<ExitCode> {
        // What the kernel would not understand is said now.
        let command = ["umklapp"].into_iter().chain(self.options.iter().map(String::as_str));
        let whole = command.chain(["jupyter", "kernel", "--connection-file", "file"]);
        if let Err(e) = Arguments::command().try_get_matches_from(whole) {
            e.exit();
        }
        let program = std::env::current_exe()
            .map_err(|e| Error::file(format!("this program does not find its own file: {e}")))?;
        let folder = self.place.folder()?;
        spec::install(&folder, &self.display_name, &program, &self.options)?;
        out(&format!("the kernel `{}` is in `{}`", self.place.name, folder.display()));
        Ok(ExitCode::SUCCESS)
    }
}

impl KernelArgs {
    fn execute(self) -> Result<ExitCode> {
        if ranks::world().is_some() {
            return Err(Error::input("a notebook has one rank").hint("leave `--ranks` out"));
        }
        // It may lie outside the folder that scripts are kept in.
        let connection = jupyter::connection(&self.connection_file)?;
        self.shared.hold()?;
        jupyter::run(&connection, self.shared.settings()).map(ExitCode::from)
    }
}
