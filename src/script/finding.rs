//! What checks of a script find before it runs.

use rhai::Position;

use crate::error::Error;

/// Something found at a place in a script.
pub(super) struct Finding {
    pub position: Position,
    pub error: Error,
}

/// An error with a hint where there is one.
pub(super) fn with_hint(error: Error, hint: Option<String>) -> Error {
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
