//! The token that long work carries: through it, work reports progress and is interrupted.

pub mod batch;
pub mod parallel;
mod place;
pub mod signals;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use self::place::{on_worker, stay_in_place};
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

    /// Ends what runs here if work was asked to stop, for loops that return no `Result`: unwinds with [`Stopped`],
    /// which the engine reports as an interruption. Nothing unwinds where nobody raises the flag (see [`current`]).
    #[inline]
    pub fn heed(&self) {
        if self.raised() {
            resume_unwind(Box::new(Stopped));
        }
    }

    /// Runs work that may ask for this flag by [`current`], on this thread.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _earlier = self.set();
        work()
    }

    /// Makes this the flag of the thread, until what it returns is dropped.
    fn set(&self) -> EarlierFlag {
        EarlierFlag(CURRENT.with(|current| current.borrow_mut().replace(self.clone())))
    }
}

/// Puts back the flag that was there, also after a panic.
struct EarlierFlag(Option<Interrupt>);

impl Drop for EarlierFlag {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = self.0.take());
    }
}

/// What [`Interrupt::heed`] unwinds with.
#[derive(Debug, Clone, Copy)]
pub struct Stopped;

thread_local!(static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) });

/// The flag of the work on this thread, for code that was given no token; where nothing runs, a flag that nobody
/// raises.
pub fn current() -> Interrupt {
    CURRENT.with(|current| current.borrow().clone()).unwrap_or_default()
}

thread_local!(static SHOWN: RefCell<Option<Arc<dyn Progress>>> = const { RefCell::new(None) });

/// The token of the work on this thread, for code that was given none, as products of operators are: the flag of
/// [`current`], and the display of [`Task::showing`] where there is one.
pub fn here() -> Task {
    Task { interrupt: current(), progress: SHOWN.with(|shown| shown.borrow().clone()) }
}

/// Puts back the display that was there, also after a panic.
struct EarlierDisplay(Option<Arc<dyn Progress>>);

impl Drop for EarlierDisplay {
    fn drop(&mut self) {
        SHOWN.with(|shown| *shown.borrow_mut() = self.0.take());
    }
}

/// An error if what runs on this thread was asked to stop.
///
/// # Errors
/// [`crate::error::ErrorKind::Interrupted`].
pub fn poll() -> Result<()> {
    CURRENT.with(|current| current.borrow().as_ref().map_or(Ok(()), Interrupt::check))
}

/// The longest that an interruption waits where nothing polls.
const PATIENCE: Duration = Duration::from_millis(20);

/// Runs work that cannot be interrupted, such as a library call, on a thread of its own. When the user asks to stop,
/// the thread is left behind, and its own flag is raised; nobody uses its result.
///
/// On a worker of a thread pool it runs where it is called: a worker that waits takes no other work, and where all of
/// them wait, work that needs the pool never begins.
///
/// # Errors
/// What the work returns, or [`crate::error::ErrorKind::Interrupted`].
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    if on_worker() {
        return work();
    }
    // The thread, its channel and the wait are compiled once, for work that leaves its result here.
    let slot = Arc::new(Mutex::new(None));
    let result = slot.clone();
    run_apart(Box::new(move || {
        let done = work();
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    }))?;
    let done = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    done.unwrap_or_else(|| Err(Error::internal("a thread is gone")))
}

fn run_apart(work: Box<dyn FnOnce() + Send>) -> Result<()> {
    // Enough for the deep recursion of parsers.
    const STACK: usize = 64 << 20;
    let (ours, theirs) = (current(), Interrupt::default());
    let flag = theirs.clone();
    let (sender, receiver) = channel();
    let job = move || {
        // Nobody waits for a thread that was left behind.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(|| flag.during(work))));
    };
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(job)
        .map_err(|e| Error::backend(format!("a thread cannot be started: {e}")))?;
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(ended) => {
                // Some versions of glibc touch the memory of a thread that ends just while it is let go.
                let _ = thread.join();
                return ended.map_err(|panic| resume_unwind(panic));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(stopped) = ours.check() {
                    theirs.raise();
                    return Err(stopped);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Error::internal("a thread is gone")),
        }
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

    /// Runs work, such as a single product of an operator, whose parts show their progress where this task does
    /// (see [`here`]).
    pub fn showing<T>(&self, work: impl FnOnce() -> T) -> T {
        let _earlier = EarlierDisplay(SHOWN.with(|shown| shown.replace(self.progress.clone())));
        work()
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_loop_without_results_unwinds() {
        let interrupt = Interrupt::default();
        interrupt.heed();
        interrupt.raise();
        let stopped = catch_unwind(AssertUnwindSafe(|| interrupt.heed())).unwrap_err();
        assert!(stopped.is::<Stopped>());
    }

    /// A display that keeps what it is told.
    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Told {
        fn add(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }
    }

    impl Progress for Told {
        fn start(&self, what: &str, total: u64) {
            self.add(format!("{what} of {total}"));
        }

        fn advance(&self, done: u64, _: &str) {
            self.add(done.to_string());
        }

        fn finish(&self) {
            self.add("end".into());
        }
    }

    #[test]
    fn work_without_a_token_shows_its_progress_where_its_caller_does() {
        let told = Arc::new(Told::default());
        let work = |name: &str| here().start(name, 2).advance(1).unwrap();
        work("before");
        Task::new(Interrupt::default(), Some(told.clone())).showing(|| {
            work("inside");
            Task::default().showing(|| work("quiet"));
            work("again");
        });
        work("behind");
        assert_eq!(*told.0.lock().unwrap(), ["inside of 2", "1", "end", "again of 2", "1", "end"]);
        let stop = Interrupt::default();
        stop.raise();
        assert!(stop.during(|| here().check().is_err()) && here().check().is_ok());
    }

    #[test]
    fn work_apart_is_left_behind() {
        assert_eq!(apart(|| Ok(3)).unwrap(), 3);
        let interrupt = Interrupt::default();
        let flag = interrupt.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            flag.raise();
        });
        let began = Instant::now();
        let left = interrupt.during(|| {
            apart(|| {
                std::thread::sleep(Duration::from_secs(20));
                Ok(())
            })
        });
        assert_eq!(left.unwrap_err().kind(), ErrorKind::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(10));
        assert!(interrupt.during(|| poll().is_err()) && poll().is_ok());
    }
}
