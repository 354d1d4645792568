//! The token that long work carries: progress goes out through it, interruption comes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A flag that stops work wherever it is polled. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks all work that polls this flag to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Forgets an earlier request, before new work starts.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether work was asked to stop.
    pub fn raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error if work was asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.raised() { Err(Error::interrupted()) } else { Ok(()) }
    }
}

/// Where progress is shown; the terminal's bar is one implementation (`output::progress`).
pub trait Progress {
    /// Work called `what` begins, of `total` steps.
    fn start(&self, what: &str, total: u64);
    /// `done` steps are finished; `note` is a short rate or residual, possibly empty.
    fn advance(&self, done: u64, note: &str);
    /// The work ended, well or badly.
    fn finish(&self);
}

/// Carried through every algorithm that may run for over a second.
#[derive(Clone, Default)]
pub struct Task {
    interrupt: Interrupt,
    progress: Option<Arc<dyn Progress>>,
}

impl Task {
    /// A task that reports to `progress` (or to nobody) and stops when `interrupt` is raised.
    pub fn new(interrupt: Interrupt, progress: Option<Arc<dyn Progress>>) -> Self {
        Task { interrupt, progress }
    }

    /// The same task without its progress display.
    pub fn quiet(&self) -> Self {
        Task { interrupt: self.interrupt.clone(), progress: None }
    }

    /// The flag that stops this task.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// An error if the user asked to stop.
    pub fn check(&self) -> Result<()> {
        self.interrupt.check()
    }

    /// Where progress is shown, if it is.
    pub fn display(&self) -> Option<&Arc<dyn Progress>> {
        self.progress.as_ref()
    }

    /// Opens a progress display that closes when the returned guard is dropped.
    pub fn start(&self, what: &str, total: usize) -> Steps<'_> {
        if let Some(progress) = &self.progress {
            progress.start(what, total as u64);
        }
        Steps { task: self }
    }
}

/// An open progress display.
pub struct Steps<'a> {
    task: &'a Task,
}

impl Steps<'_> {
    /// Shows that `done` steps are finished, and fails if the user asked to stop.
    pub fn advance(&self, done: usize) -> Result<()> {
        self.advance_with(done, "")
    }

    /// As [`Steps::advance`], with a short note (a rate, a residual) beside the bar.
    pub fn advance_with(&self, done: usize, note: &str) -> Result<()> {
        if let Some(progress) = &self.task.progress {
            progress.advance(done as u64, note);
        }
        self.task.check()
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        if let Some(progress) = &self.task.progress {
            progress.finish();
        }
    }
}
