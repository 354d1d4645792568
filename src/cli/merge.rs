//! `umklapp merge OUT FILES`: the results of several runs as one file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{catch_interrupt, report};
use crate::output::out;
use crate::script::diagnostics::Report;
use crate::script::{Engine, Settings};

/// Arguments of `umklapp merge`.
#[derive(Args)]
pub(crate) struct Merge {
    /// The file to write
    out: PathBuf,
    /// The files of the runs: tables, or moments
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Append tables in any case
    #[arg(long)]
    append: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// What `load`, `merge` and `save` do in a script.
const WORK: &str = "
    let runs = args.files.map(|file| load(file));
    let whole = merge(runs, #{ names: args.files, append: args.append });
    whole.save(args.out);
    `${whole}`.split(\"\\n\")[0]
";

impl Merge {
    pub(super) fn execute(self) -> ExitCode {
        let plain = |e| report(&Report::plain(&e));
        if self.out.exists() && !self.force {
            // As likely as not the first of the runs.
            return plain(
                crate::error::Error::file(format!("`{}` is there already", self.out.display()))
                    .hint("the first name is that of the file to be written; `--force` writes over it"),
            );
        }
        let text = |path: &PathBuf| rhai::Dynamic::from(path.to_string_lossy().into_owned());
        let mut args = rhai::Map::new();
        args.insert("out".into(), text(&self.out));
        args.insert("files".into(), self.files.iter().map(text).collect::<rhai::Array>().into());
        args.insert("append".into(), self.append.into());
        let settings = Settings { backend: "cpu".into(), args, ..Settings::default() };
        let mut engine = match Engine::with(settings, catch_interrupt()) {
            Ok(engine) => engine,
            Err(e) => return plain(e),
        };
        match engine.eval(WORK) {
            Ok(whole) => {
                out(&format!("{}: {whole}", self.out.display()));
                ExitCode::SUCCESS
            }
            // The user did not write this script, so its lines would tell nothing.
            Err(mut failed) => {
                failed.position = None;
                failed.calls.clear();
                report(&failed)
            }
        }
    }
}
