//! `umklapp run FILE`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::{RunOptions, catch_interrupt, ended, report, show};
use crate::output::out;
use crate::output::progress::TerminalBar;
use crate::ranks;
use crate::script::diagnostics::Report;
use crate::script::{Engine, Settings, arguments, read_script};
use crate::task::Progress;

/// Arguments of `umklapp run`.
#[derive(Args)]
pub(crate) struct Run {
    /// The script
    file: PathBuf,
    #[command(flatten)]
    pub(super) shared: RunOptions,
    /// Set `args.key` in the script
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Results as JSON lines
    #[arg(long)]
    json: bool,
    /// Values of `args.rest` in the script
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Run {
    pub(super) fn execute(self) -> ExitCode {
        let text = match read_script(&self.file) {
            Ok(text) => text,
            Err(unreadable) => return report(&unreadable),
        };
        let file = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let alike = ranks::alike(&[
            ("runs another script", &text),
            ("was started with another `--set`", &self.set.join("\0")),
            ("was started with other arguments behind `--`", &self.rest.join("\0")),
            ("was started with another `--json`", &self.json.to_string()),
        ]);
        if let Err(e) = alike {
            let hint = format!("all ranks run the same `{file}` with the same arguments");
            return report(&Report::plain(&e.hint(hint)));
        }
        let mut args = match arguments(self.set.iter().map(String::as_str), &text) {
            Ok(args) => args,
            Err(e) => {
                report(&Report::plain(&e));
                return ExitCode::from(2);
            }
        };
        args.insert(
            "rest".into(),
            self.rest.iter().map(|s| s.clone().into()).collect::<rhai::Array>().into(),
        );
        let settings = Settings { json: self.json, args, ..self.shared.settings() };
        if let Err(e) = self.shared.hold() {
            return report(&Report::plain(&e));
        }
        let mut engine = match Engine::with(settings, catch_interrupt()) {
            Ok(engine) => engine,
            Err(e) => return report(&Report::plain(&e)),
        };
        let bar = TerminalBar::new(self.shared.quiet);
        engine.session().set_progress(bar.map(|bar| Arc::new(bar) as Arc<dyn Progress>));
        engine.session().set_printer(Box::new(out));
        if self.json {
            engine.session().set_recorder(Some(Box::new(|record| out(&record.to_string()))));
        }
        if !self.shared.quiet {
            engine.lint(&text, Some(&self.file.display().to_string())).iter().for_each(show);
        }
        match engine.run_text(&text, &self.file) {
            Ok(_) => engine.session().ended().map_or(ExitCode::SUCCESS, ended),
            Err(failed) => {
                if self.json {
                    out(&json!({ "error": error_record(&failed) }).to_string());
                }
                report(&failed)
            }
        }
    }
}

/// A failure as a record.
fn error_record(failed: &Report) -> serde_json::Value {
    json!({
        "message": failed.message,
        "file": failed.file,
        "line": failed.position.map(|p| p.0),
        "column": failed.position.map(|p| p.1),
        "hint": failed.hint,
    })
}
