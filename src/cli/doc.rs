//! `umklapp doc [NAME] [--all] [--book DIR]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::report;
use crate::error::{Error, Result};
use crate::output::files::write_bytes;
use crate::output::{colours, out};
use crate::script::diagnostics::Report;
use crate::script::manual::{self, Style};
use crate::script::registry::Entry;
use crate::script::{Engine, reference, registry};

/// Arguments of `umklapp doc`.
#[derive(Args)]
pub(crate) struct Doc {
    /// A function, method, property or module; without it, all are listed
    name: Option<String>,
    /// The whole reference manual, as Markdown
    #[arg(long, conflicts_with = "name")]
    all: bool,
    /// The reference as pages of the book, into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "all"])]
    book: Option<PathBuf>,
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
            if let Some(folder) = &self.book {
                return write(&entries, folder);
            }
            match &self.name {
                Some(name) => manual::page(&entries, name, style)
                    .ok_or_else(|| Error::input(manual::no_page(&entries, name))),
                None if self.all => Ok(reference::markdown(&entries)),
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

/// Writes the pages and says how many there are.
fn write(entries: &[Entry], folder: &Path) -> Result<String> {
    let pages = reference::pages(entries);
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::file(format!("cannot make the folder `{}`: {e}", folder.display())))?;
    for page in &pages {
        write_bytes(&folder.join(&page.file), page.text.as_bytes())?;
    }
    Ok(format!("{} pages in {}", pages.len(), folder.display()))
}
