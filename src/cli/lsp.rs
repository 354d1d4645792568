//! `umklapp lsp`: the language server for editors.

use std::process::ExitCode;

use super::report;
use crate::script::diagnostics::Report;

pub(super) fn execute() -> ExitCode {
    match crate::lsp::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => report(&Report::plain(&e)),
    }
}
