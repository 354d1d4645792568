//! Sessions, and handles of what lives in them.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pyo3::exceptions::{PyAttributeError, PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use umklapp::error::ErrorKind;
use umklapp::script::diagnostics::Report;
use umklapp::task::Interrupt;

use crate::convert::{ValueKeeper, entries, from_python, to_python};
use crate::value::Value;
use crate::worker::{self, Job, Order, Said, Trouble, Wishes};

/// The longest time between two looks at the signals of Python.
const PATIENCE: Duration = Duration::from_millis(20);

/// A session as Python's class of this name has it.
#[pyclass(frozen, subclass, module = "umklapp._native")]
#[derive(Clone)]
pub struct Session {
    orders: Sender<Order>,
    interrupt: Interrupt,
    /// The process whose thread it lives on.
    process: u32,
    /// Tells sessions apart.
    number: u64,
}

/// Something that stays in its session: an operator, a lattice, a vector, a state, a function.
///
/// Its properties and methods are those of the language: ``h.dim``, ``h.to_matrix()``. ``numpy.asarray`` copies the
/// numbers of vectors and operators.
#[pyclass(frozen, weakref, module = "umklapp")]
pub struct Handle {
    session: Session,
    number: u64,
    kind: String,
}

fn sessions() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (backend, weights, devices, threads, seed, out, quiet, args, lines))]
    fn new(
        py: Python<'_>,
        backend: String,
        weights: Vec<f64>,
        devices: Vec<u32>,
        threads: usize,
        seed: u64,
        out: Option<PathBuf>,
        quiet: bool,
        args: Option<&Bound<'_, PyDict>>,
        lines: bool,
    ) -> PyResult<Session> {
        need_this_process(crate::process())?;
        // Values of sessions are refused in it: it has none yet.
        let (orders, _) = channel();
        let (interrupt, number) = (Interrupt::default(), sessions());
        let session = Session { orders, interrupt, process: std::process::id(), number };
        let args = args.map_or(Ok(Vec::new()), |args| entries(&session, args))?;
        let wishes = Wishes { backend, weights, devices, threads, seed, out, quiet, args, lines };
        let flag = session.interrupt.clone();
        let orders = py.detach(|| worker::start(wishes, flag)).map_err(|e| raised(py, Trouble::from(e)))?;
        Ok(Session { orders, ..session })
    }

    fn eval<'py>(&self, py: Python<'py>, text: String) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, Job::Eval(text))
    }

    fn run_file<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        args: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = args.map_or(Ok(Vec::new()), |args| entries(self, args))?;
        self.ask(py, Job::Run(path, args))
    }

    #[pyo3(signature = (path, /, *given, **options))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        path: String,
        given: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call_with(py, path, None, given, options)
    }

    /// Asks what runs in this session to stop; from any thread.
    fn interrupt(&self) {
        self.interrupt.raise();
    }

    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, Job::Names)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: String) -> PyResult<Bound<'py, PyAny>> {
        self.ask(py, Job::Get(name))
    }

    fn __setitem__(&self, py: Python<'_>, name: String, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = from_python(self, value)?;
        self.ask(py, Job::Set(name, value)).map(drop)
    }

    fn __delitem__(&self, py: Python<'_>, name: String) -> PyResult<()> {
        self.ask(py, Job::Remove(name)).map(drop)
    }
}

/// Threads do not survive a fork.
fn need_this_process(process: u32) -> PyResult<()> {
    if process == std::process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "sessions stay in the process that has imported umklapp, and this is a fork of it \
         (hint: `multiprocessing.get_context(\"spawn\")` starts processes of their own)",
    ))
}

impl ValueKeeper for Session {
    fn handle<'py>(&self, py: Python<'py>, number: u64, kind: String) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, Handle { session: self.clone(), number, kind })?.into_any())
    }

    fn kept(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        value.cast::<Handle>().ok().map(|handle| handle.get().given_to(self)).transpose()
    }
}

impl Session {
    fn call_with<'py>(
        &self,
        py: Python<'py>,
        path: String,
        owner: Option<Value>,
        given: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let method = owner.is_some();
        let mut all: Vec<Value> = owner.into_iter().collect();
        for value in given {
            all.push(from_python(self, &value)?);
        }
        let options = options.map_or(Ok(Vec::new()), |options| entries(self, options))?;
        self.ask(py, Job::Call { path, method, given: all, options })
    }

    /// Sends a job, and shows what is said until it is done. Python goes on meanwhile, and its signals are heard.
    fn ask<'py>(&self, py: Python<'py>, job: Job) -> PyResult<Bound<'py, PyAny>> {
        let done = self.answer(py, job)?.map_err(|trouble| raised(py, trouble))?;
        to_python(py, self, done)
    }

    fn answer(&self, py: Python<'_>, job: Job) -> PyResult<Result<Value, Trouble>> {
        need_this_process(self.process)?;
        let (voice, mut said) = channel();
        let gone = || PyRuntimeError::new_err("the session has ended");
        self.orders.send((job, voice)).map_err(|_| gone())?;
        // What ended the work from this side: a signal, or that nothing can be shown.
        let mut stopped: Option<PyErr> = None;
        loop {
            match py.detach(|| wait(&mut said)) {
                Ok(Said::Done(done)) => return stopped.map_or(Ok(done), Err),
                Ok(other) if stopped.is_none() => stopped = show(py, other).err(),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(stopped.unwrap_or_else(gone)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(signal) = py.check_signals() {
                // A second one does not wait for work that takes long to stop. The next job does.
                if stopped.replace(signal).is_some() {
                    self.interrupt.raise();
                    return Err(stopped.unwrap_or_else(gone));
                }
            }
            if stopped.is_some() {
                self.interrupt.raise();
            }
        }
    }
}

fn wait(said: &mut Receiver<Said>) -> Result<Said, RecvTimeoutError> {
    said.recv_timeout(PATIENCE)
}

/// Shows what a session says, by Python's own means, so that notebooks and tests see it.
fn show(py: Python<'_>, said: Said) -> PyResult<()> {
    let front = py.import("umklapp._front")?;
    match said {
        Said::Line(line) => front.call_method1("line", (line,)),
        Said::Note(line) => front.call_method1("note", (line,)),
        Said::Progress(number, line) => front.call_method1("progress", (number, line)),
        Said::Plot(plot) => front.call_method1("plot", (plot.text, plot.svg, PyBytes::new(py, &plot.png))),
        Said::Done(_) => return Ok(()),
    }
    .map(drop)
}

/// The exception for a trouble.
fn raised(py: Python<'_>, trouble: Trouble) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let errors = py.import("umklapp._errors")?;
        let exception = match trouble {
            Trouble::NoName(name) => return Ok(PyKeyError::new_err(name)),
            Trouble::Exit(code) => errors.call_method1("Exit", (code,))?,
            Trouble::Report(report) => {
                if report.kind == ErrorKind::Interrupted {
                    return Ok(pyo3::exceptions::PyKeyboardInterrupt::new_err(()));
                }
                let Report { message, hint, file, position, kind, .. } = &*report;
                let text = report.render(false);
                let text = text.strip_prefix("error: ").unwrap_or(&text);
                let kind = format!("{kind:?}");
                errors.call_method1("made", (kind, text, message, hint, file, *position))?
            }
        };
        Ok(PyErr::from_value(exception))
    };
    made().unwrap_or_else(|e| e)
}

#[pymethods]
impl Handle {
    /// What it is in scripts, as "Operator".
    #[getter(__kind__)]
    fn kind(&self) -> &str {
        &self.kind
    }

    /// Calls a method of this name, with options as keywords.
    #[pyo3(signature = (name, /, *given, **options))]
    fn _call<'py>(
        &self,
        py: Python<'py>,
        name: String,
        given: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.session.call_with(py, name, Some(self.value()), given, options)
    }

    #[pyo3(signature = (*given, **options))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        given: &Bound<'py, PyTuple>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.kind != "function" {
            return Err(PyTypeError::new_err(format!("{} is no function", self.kind)));
        }
        self.session.call_with(py, "call".into(), Some(self.value()), given, options)
    }

    /// A property of the value, or a method of it that can be called.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: String) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let none = |why: &str| PyAttributeError::new_err(format!("{} has no `{name}`{why}", this.kind));
        // Python asks for names of its own.
        if name.starts_with('_') {
            return Err(none(""));
        }
        let report = match this.session.answer(py, Job::Property(this.number, name.clone()))? {
            Ok(value) => return to_python(py, &this.session, value),
            Err(Trouble::Report(report)) if report.message.contains("has no property") => report,
            Err(other) => return Err(raised(py, other)),
        };
        match report.hint.as_deref() {
            Some(hint) if hint.starts_with("it is a method") => {
                let method = slf.getattr("_call")?;
                py.import("functools")?.call_method1("partial", (method, name))
            }
            Some(hint) => Err(none(&format!(" ({hint})"))),
            None => Err(none("")),
        }
    }

    /// The numbers of a vector or an operator, as `numpy.asarray` asks for them.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err("the numbers of a session are copied to an array"));
        }
        let empty = PyTuple::empty(py);
        let array = self.session.call_with(py, "to_matrix".into(), Some(self.value()), &empty, None)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.session.ask(py, Job::Show(self.number))?.extract()
    }
}

impl Handle {
    fn value(&self) -> Value {
        Value::Kept { number: self.number, kind: self.kind.clone() }
    }

    /// The value on its way to a session, which must be its own.
    fn given_to(&self, session: &Session) -> PyResult<Value> {
        if session.number != self.session.number {
            return Err(PyValueError::new_err(format!("{} lives in another session", self.kind)));
        }
        Ok(self.value())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // A session that has ended keeps nothing.
        let _ = self.session.orders.send((Job::Release(self.number), channel().0));
    }
}
