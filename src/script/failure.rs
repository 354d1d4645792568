//! Errors on their way up through Rhai: the numeric layers' error rides inside, and takes the position of the call.

use rhai::{Dynamic, EvalAltResult, Position};

use super::phrases::for_scripts;
use crate::error::{Error, ErrorKind};
use crate::output::end_alone;
use crate::ranks;

/// What native functions return when they fail.
pub type Failure = Box<EvalAltResult>;

/// What native functions return that can fail.
pub type Fallible<T> = std::result::Result<T, Failure>;

/// An error of a native function on its way up; it takes the position of the call there.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        failure(error, Position::NONE)
    }
}

/// The failure that carries an error at a position. What a script could catch on some ranks only ends all of them.
pub(crate) fn failure(error: Error, position: Position) -> Failure {
    if matches!(error.kind(), ErrorKind::Memory | ErrorKind::Backend)
        && ranks::world().is_some_and(|world| !world.all_failed())
    {
        end_alone(error.message());
    }
    // `try` does not catch what ends a script.
    let parted = error.kind() == ErrorKind::Parted;
    let error = Dynamic::from(for_scripts(error));
    Box::new(if parted {
        EvalAltResult::ErrorTerminated(error, position)
    } else {
        EvalAltResult::ErrorRuntime(error, position)
    })
}
