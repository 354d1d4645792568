//! `ProgressBar`: progress of loops in scripts.

use std::rc::Rc;
use std::sync::Arc;

use rhai::plugin::*;
use rhai::{Engine, INT};

use crate::script::{Fallible, session};
use crate::task::Progress;

/// An open display; it closes with its last copy.
#[derive(Clone)]
pub(super) struct ScriptProgressBar(Rc<OpenDisplay>);

struct OpenDisplay(Option<Arc<dyn Progress>>);

impl Drop for OpenDisplay {
    fn drop(&mut self) {
        if let Some(display) = &self.0 {
            display.finish();
        }
    }
}

/// Registers the type and its functions.
pub(super) fn register(engine: &mut Engine) {
    engine.register_type_with_name::<ScriptProgressBar>("ProgressBar");
    engine.register_global_module(exported_module!(progress_functions).into());
}

#[export_module(root = "crate::script::native")]
mod progress_functions {
    /// A progress bar for a loop of `total` steps, on standard error if that is a terminal. It closes when its variable
    /// goes out of scope.
    ///
    /// # Example
    /// ```rhai
    /// let bar = progress("sum", 10);
    /// for i in 0..10 { bar.advance(i + 1, `step ${i}`); }
    /// ```
    #[rhai_fn(name = "progress", return_raw)]
    pub fn progress(what: &str, total: INT) -> Fallible<ScriptProgressBar> {
        progress_if(what, total, true)
    }

    #[rhai_fn(name = "progress", return_raw)]
    pub fn progress_if(what: &str, total: INT, shown: bool) -> Fallible<ScriptProgressBar> {
        let task = session()?.task(shown);
        let display = task.display().cloned();
        if let Some(display) = &display {
            display.start(what, u64::try_from(total).unwrap_or(0));
        }
        Ok(ScriptProgressBar(Rc::new(OpenDisplay(display))))
    }

    /// Shows that `done` steps are finished, together with a short note.
    ///
    /// # Example
    /// ```rhai
    /// progress("work", 2).advance(1, "half");
    /// ```
    #[rhai_fn(global, pure)]
    pub fn advance(bar: &mut ScriptProgressBar, done: INT, note: &str) {
        if let Some(display) = &bar.0.0 {
            display.advance(u64::try_from(done).unwrap_or(0), note);
        }
    }

    #[rhai_fn(global, name = "to_string", name = "to_debug", pure)]
    pub fn bar_to_string(bar: &mut ScriptProgressBar) -> String {
        if bar.0.0.is_some() { "ProgressBar".into() } else { "ProgressBar (not shown)".into() }
    }
}
