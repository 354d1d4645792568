//! `umklapp check FILE...`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{report, show};
use crate::output::tell;
use crate::script::diagnostics::Report;
use crate::script::{Engine, Settings, read_script};
use crate::task::Interrupt;

/// Arguments of `umklapp check`.
#[derive(Args)]
pub(crate) struct Check {
    /// The scripts
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
}

impl Check {
    pub(super) fn execute(self) -> ExitCode {
        let mut engine = match Engine::with(Settings::default(), Interrupt::default()) {
            Ok(engine) => engine,
            Err(e) => return report(&Report::plain(&e)),
        };
        let (mut errors, mut warnings) = (0, 0);
        for file in &self.files {
            engine.reset();
            match read_script(file) {
                Ok(text) => {
                    for found in engine.check(&text, Some(&file.display().to_string())) {
                        show(&found);
                        *(if found.warning { &mut warnings } else { &mut errors }) += 1;
                    }
                }
                Err(unreadable) => {
                    show(&unreadable);
                    errors += 1;
                }
            }
        }
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        if errors + warnings > 0 {
            tell(&format!("{}, {}", count(errors, "error"), count(warnings, "warning")));
        }
        let bad = errors > 0 || (self.strict && warnings > 0);
        if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
