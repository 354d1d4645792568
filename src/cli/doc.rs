//! `umklapp doc [NAME] [--all] [--book DIR] [--definitions DIR]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::report;
use crate::error::{Error, Result};
use crate::output::files::write_bytes;
use crate::output::{colours, out};
use crate::script::diagnostics::Report;
use crate::script::manual::{self, TextStyle};
use crate::script::search::answer;
use crate::script::{Engine, definitions, reference, registry};

/// Arguments of `umklapp doc`.
#[derive(Args)]
pub(crate) struct Doc {
    /// A function, method, property or module, or words to search for; without it, all names are listed
    #[arg(value_name = "NAME")]
    words: Vec<String>,
    /// The whole reference manual, as Markdown
    #[arg(long, conflicts_with = "words")]
    all: bool,
    /// The reference as pages of the book, into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["words", "all"])]
    book: Option<PathBuf>,
    /// Write definition files (`.d.rhai`) into this folder, for editors with a Rhai language server of their own
    #[arg(long, value_name = "DIR", conflicts_with_all = ["words", "all", "book"])]
    definitions: Option<PathBuf>,
}

impl Doc {
    pub(super) fn execute(self) -> ExitCode {
        let text = || -> Result<String> {
            let engine = Engine::new()?;
            let entries = registry::entries(engine.rhai(), true);
            let terminal = console::Term::stdout();
            let width =
                terminal.size_checked().map_or(100, |(_, columns)| usize::from(columns)).clamp(40, 110);
            let style = TextStyle { colour: colours(&std::io::stdout()), width };
            if let Some(folder) = &self.book {
                let pages = reference::pages(&entries).into_iter().map(|page| (page.file, page.text));
                return write(pages.collect(), folder, "pages");
            }
            if let Some(folder) = &self.definitions {
                let files = definitions::files(&entries).into_iter().map(|file| (file.file, file.text));
                return write(files.collect(), folder, "files of definitions");
            }
            let name = self.words.join(" ");
            match name.as_str() {
                "" if self.all => Ok(reference::markdown(&entries)),
                "" => Ok(manual::index(&entries, style)),
                name => manual::page(&entries, name, style)
                    .or_else(|| answer(&entries, name, style))
                    .ok_or_else(|| Error::input(manual::no_page(&entries, name))),
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

/// Writes files, given by name and text, and says how many there are.
fn write(files: Vec<(String, String)>, folder: &Path, what: &str) -> Result<String> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::file(format!("cannot make the folder `{}`: {e}", folder.display())))?;
    for (name, text) in &files {
        write_bytes(&folder.join(name), text.as_bytes())?;
    }
    Ok(format!("{} {what} in {}", files.len(), folder.display()))
}
