//! `umklapp cite [FILE]...`: the papers behind the functions that scripts use.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::report;
use crate::output::out;
use crate::script::diagnostics::Report;
use crate::script::{Engine, citations, read_script};

/// Arguments of `umklapp cite`.
#[derive(Args)]
pub(crate) struct Cite {
    /// The scripts; without one, all works are listed
    files: Vec<PathBuf>,
}

impl Cite {
    pub(super) fn execute(self) -> ExitCode {
        match self.works() {
            Ok(works) => {
                out(&citations::program());
                works.iter().for_each(|work| out(&work.bibtex()));
                ExitCode::SUCCESS
            }
            Err(failed) => report(&failed),
        }
    }

    fn works(&self) -> Result<Vec<citations::CitedWork>, Box<Report>> {
        if self.files.is_empty() {
            return Ok(citations::all().collect());
        }
        let engine = Engine::new().map_err(|e| Box::new(Report::plain(&e)))?;
        let mut called = BTreeSet::new();
        for file in &self.files {
            called.extend(engine.called(&read_script(file)?, Some(&file.display().to_string()))?);
        }
        Ok(citations::works(called.iter().map(String::as_str)))
    }
}
