//! `umklapp run FILE`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::{Shared, report};
use crate::output::progress::Bar;
use crate::script::diagnostics::Report;
use crate::script::{Engine, Settings};
use crate::task::{Interrupt, Progress};

/// Arguments of `umklapp run`.
#[derive(Args)]
pub(crate) struct Run {
    /// The script
    file: PathBuf,
    #[command(flatten)]
    shared: Shared,
    /// A value that the script sees as `args.key`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Results as JSON lines
    #[arg(long)]
    json: bool,
    /// What the script sees as `args.rest`
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Run {
    pub(super) fn execute(self) -> ExitCode {
        let mut args = rhai::Map::new();
        for pair in &self.set {
            let Some((key, value)) = pair.split_once('=') else {
                eprintln!("error: `--set {pair}` is not of the form `--set key=value`");
                return ExitCode::from(2);
            };
            args.insert(key.into(), value_of(value));
        }
        args.insert(
            "rest".into(),
            self.rest.iter().map(|s| s.clone().into()).collect::<rhai::Array>().into(),
        );
        let quiet = self.shared.quiet;
        let settings = Settings {
            backend: self.shared.backend,
            threads: self.shared.threads,
            seed: self.shared.seed,
            out: self.shared.out,
            quiet: self.shared.quiet,
            json: self.json,
            args,
        };
        let interrupt = Interrupt::default();
        let flag = interrupt.clone();
        if let Err(e) = ctrlc::set_handler(move || flag.raise()) {
            eprintln!("warning: Ctrl-C cannot be caught: {e}");
        }
        let mut engine = match Engine::with(settings, interrupt) {
            Ok(engine) => engine,
            Err(e) => return report(&Report::plain(&e)),
        };
        let bar = Bar::new(quiet);
        engine.session().set_progress(bar.map(|bar| Arc::new(bar) as Arc<dyn Progress>));
        match engine.run_file(&self.file) {
            Ok(_) => ExitCode::SUCCESS,
            Err(failed) => report(&failed),
        }
    }
}

/// A value from the command line: a number or truth value if it reads as one, else a text.
fn value_of(text: &str) -> rhai::Dynamic {
    if let Ok(i) = text.parse::<rhai::INT>() {
        i.into()
    } else if let Ok(x) = text.parse::<rhai::FLOAT>() {
        x.into()
    } else if let Ok(b) = text.parse::<bool>() {
        b.into()
    } else {
        text.to_string().into()
    }
}
