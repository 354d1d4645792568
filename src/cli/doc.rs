//! `umklapp doc [NAME] [--all]`.

use std::process::ExitCode;

use clap::Args;

use super::report;
use crate::error::{Error, Result};
use crate::output::{colours, out};
use crate::script::diagnostics::Report;
use crate::script::manual::{self, Style};
use crate::script::{Engine, registry};

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
            let entries = registry::entries(engine.rhai(), true);
            let terminal = console::Term::stdout();
            let width =
                terminal.size_checked().map_or(100, |(_, columns)| usize::from(columns)).clamp(40, 110);
            let style = Style { colour: colours(&std::io::stdout()), width };
            match &self.name {
                Some(name) => manual::page(&entries, name, style)
                    .ok_or_else(|| Error::input(manual::no_page(&entries, name))),
                None if self.all => Ok(manual::markdown(&entries)),
                None => Ok(manual::index(&entries, style)),
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
