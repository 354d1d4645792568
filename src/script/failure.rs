//! Errors on their way up through Rhai: the numeric layers' error rides inside, and takes the position of the call.

use rhai::{Dynamic, EvalAltResult, NativeCallContext, Position};

use crate::error::{Error, Result};

/// What native functions return when they fail.
pub type Failure = Box<EvalAltResult>;

/// What native functions return that can fail.
pub type Fallible<T> = std::result::Result<T, Failure>;

/// Puts an error where the user wrote the call.
pub trait At<T> {
    /// The same result for Rhai, at the position of the call.
    fn at(self, ctx: &NativeCallContext) -> std::result::Result<T, Failure>;
}

impl<T> At<T> for Result<T> {
    fn at(self, ctx: &NativeCallContext) -> std::result::Result<T, Failure> {
        self.map_err(|e| failure(e, ctx.call_position()))
    }
}

/// An error of a native function on its way up; it takes the position of the call there.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        failure(error, Position::NONE)
    }
}

/// The failure that carries an error at a position.
pub(crate) fn failure(error: Error, position: Position) -> Failure {
    Box::new(EvalAltResult::ErrorRuntime(Dynamic::from(error), position))
}

/// Fails a native function with an error of the caller's input.
pub fn fail<T>(ctx: &NativeCallContext, message: impl Into<String>) -> std::result::Result<T, Failure> {
    Err(failure(Error::input(message), ctx.call_position()))
}
