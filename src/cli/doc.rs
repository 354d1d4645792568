//! `umklapp doc [NAME] [--all]`.

use std::process::ExitCode;

use clap::Args;

use super::{out, report};
use crate::error::Result;
use crate::script::diagnostics::Report;
use crate::script::{Engine, manual};

/// Arguments of `umklapp doc`.
#[derive(Args)]
pub(crate) struct Doc {
    /// A function, method, property or module; without it, all are listed
    name: Option<String>,
    /// The whole reference manual, as Markdown
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

impl Doc {
    pub(super) fn execute(self) -> ExitCode {
        let text = || -> Result<String> {
            let engine = Engine::new()?;
            match &self.name {
                Some(name) => manual::help(engine.rhai(), name),
                None if self.all => Ok(manual::markdown(engine.rhai())),
                None => Ok(manual::overview(engine.rhai())),
            }
        };
        match text() {
            Ok(text) => {
                out(text.trim_end());
                ExitCode::SUCCESS
            }
            Err(e) => report(&Report::plain(&e)),
        }
    }
}
