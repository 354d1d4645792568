//! The thread that a session lives on. Its values are bound to it, scripts need a deep stack,
//! and Python goes on meanwhile.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rhai::Dynamic;
use umklapp::error::{Error, Result};
use umklapp::output::plot::Plot;
use umklapp::output::progress::TerminalBar;
use umklapp::script::diagnostics::Report;
use umklapp::script::lex::KEYWORDS;
use umklapp::script::{Engine, Evaluated, Settings, on_a_deep_stack, read_script};
use umklapp::task::{Interrupt, Progress};

use crate::value::{Shelf, Value};

/// What a session is asked for.
pub enum Job {
    /// Evaluate a text.
    Eval(String),
    /// Run a file, with these `args`.
    Run(PathBuf, Vec<(String, Value)>),
    /// The value of a variable.
    Get(String),
    Set(String, Value),
    Remove(String),
    /// The names of variables.
    Names,
    /// Call a function of this path; of a method the first value given stands in front.
    Call {
        path: String,
        method: bool,
        given: Vec<Value>,
        options: Vec<(String, Value)>,
    },
    /// A property of a kept value.
    Property(u64, String),
    /// How a kept value prints.
    Show(u64),
    /// Let go of a kept value.
    Release(u64),
}

/// What a session says while it works, and at its end.
pub enum Said {
    Line(String),
    Note(String),
    Plot(Box<Picture>),
    /// The progress of a work: its number, its line.
    Progress(u64, String),
    Done(std::result::Result<Value, Trouble>),
}

/// A plot without a file, in the ways that it can be shown.
pub struct Picture {
    pub text: String,
    pub svg: String,
    pub png: Vec<u8>,
}

impl Picture {
    fn of(plot: &Plot) -> Result<Picture> {
        Ok(Picture { text: plot.terminal(80, 22, false)?, svg: plot.svg()?, png: plot.png()? })
    }
}

/// Why a job has failed.
pub enum Trouble {
    Report(Box<Report>),
    /// No variable of this name.
    NoName(String),
    /// The script has ended itself with this exit code.
    Exit(u8),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Report(Box::new(Report::plain(&error)))
    }
}

impl From<Box<Report>> for Trouble {
    fn from(report: Box<Report>) -> Self {
        Trouble::Report(report)
    }
}

type Done = std::result::Result<Value, Trouble>;

/// A job, and who hears of it.
pub type Order = (Job, Sender<Said>);

/// Who hears of the job that runs.
#[derive(Clone, Default)]
struct Voice(Arc<Mutex<Option<Sender<Said>>>>);

impl Voice {
    fn set(&self, to: Option<Sender<Said>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }

    fn say(&self, said: Said) {
        if let Some(to) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // Nobody may listen any more.
            let _ = to.send(said);
        }
    }
}

thread_local! {
    /// The voice of the session that lives on this thread.
    static VOICE: RefCell<Option<Voice>> = const { RefCell::new(None) };
}

/// Sends a line for people to who hears of the session on this thread; of other threads to standard error.
pub fn note(line: &str) {
    match VOICE.with(|voice| voice.borrow().clone()) {
        Some(voice) => voice.say(Said::Note(line.to_string())),
        None => eprintln!("{line}"),
    }
}

/// What a session is made with. Settings are made of it on the session's thread, since they hold its values.
pub struct Wishes {
    pub backend: String,
    pub weights: Vec<f64>,
    pub devices: Vec<u32>,
    pub threads: usize,
    pub seed: u64,
    pub out: Option<PathBuf>,
    pub quiet: bool,
    pub args: Vec<(String, Value)>,
    /// Whether progress is said line by line, and not shown on the terminal.
    pub lines: bool,
}

/// Starts a session; gives the way to it once it is there.
///
/// # Errors
/// A backend that does not start.
pub fn start(wishes: Wishes, interrupt: Interrupt) -> Result<Sender<Order>> {
    let (orders, jobs) = channel::<Order>();
    let (ready, started) = channel();
    let work = move || match Worker::new(wishes, interrupt) {
        Ok(mut worker) => {
            // Who has asked may have gone away.
            let _ = ready.send(Ok(()));
            worker.serve(&jobs);
        }
        Err(e) => drop(ready.send(Err(e))),
    };
    on_a_deep_stack("umklapp", work)
        .map_err(|e| Error::backend(format!("a thread cannot be started: {e}")))?;
    started.recv().map_err(|_| Error::internal("the session ended before it began"))??;
    Ok(orders)
}

struct Worker {
    engine: Engine,
    shelf: Shelf,
    voice: Voice,
}

/// What the session calls a value that it is given for one call.
fn given(at: usize) -> String {
    format!("given_from_outside_{at}")
}

/// A name or a path of names, as scripts write them.
fn is_path(text: &str) -> bool {
    text.split("::").all(|name| {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        !KEYWORDS.contains(&name)
            && name.chars().all(inside)
            && name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
    })
}

fn need_name(name: &str, ok: bool) -> Result<()> {
    match ok {
        true => Ok(()),
        false => {
            Err(Error::input(format!("`{name}` is no name")).hint("like `x` or, of a function, `kpm::dos`"))
        }
    }
}

impl Worker {
    fn new(wishes: Wishes, interrupt: Interrupt) -> Result<Worker> {
        let shelf = Shelf::default();
        let mut settings = Settings {
            backend: wishes.backend,
            weights: wishes.weights,
            devices: wishes.devices,
            threads: wishes.threads,
            seed: wishes.seed,
            out: wishes.out,
            quiet: wishes.quiet,
            ..Settings::default()
        };
        settings.args = args(&shelf, wishes.args)?;
        let engine = Engine::with(settings, interrupt)?;
        let (session, voice) = (engine.session(), Voice::default());
        VOICE.with(|here| *here.borrow_mut() = Some(voice.clone()));
        let printed = voice.clone();
        session.set_printer(Box::new(move |text| printed.say(Said::Line(text.to_string()))));
        let canvas = voice.clone();
        session.set_canvas(Box::new(move |plot| {
            Picture::of(plot).map(|picture| canvas.say(Said::Plot(Box::new(picture))))
        }));
        let shown = voice.clone();
        let bar = match wishes.lines && !wishes.quiet {
            true => Some(TerminalBar::lines(move |number, line| {
                shown.say(Said::Progress(number, line.to_string()))
            })),
            false => TerminalBar::new(wishes.quiet),
        };
        session.set_progress(bar.map(|bar| Arc::new(bar) as Arc<dyn Progress>));
        Ok(Worker { engine, shelf, voice })
    }

    fn serve(&mut self, jobs: &Receiver<Order>) {
        while let Ok((job, to)) = jobs.recv() {
            self.voice.set(Some(to));
            let done = self.work(job);
            self.voice.say(Said::Done(done));
            self.voice.set(None);
        }
    }

    fn work(&mut self, job: Job) -> Done {
        match job {
            Job::Eval(text) => {
                let outcome = self.engine.eval(&text);
                self.result(outcome)
            }
            Job::Run(path, values) => self.run(&path, values),
            Job::Get(name) => match self.engine.scope().get(&name) {
                Some(value) => {
                    let value = value.clone();
                    Ok(self.shelf.out(&self.engine, value)?)
                }
                None => Err(Trouble::NoName(name)),
            },
            Job::Set(name, value) => {
                need_name(&name, is_path(&name) && !name.contains("::"))?;
                let value = self.shelf.received(value)?;
                let scope = self.engine.scope_mut();
                match scope.is_constant(&name) {
                    Some(true) => {
                        return Err(Error::input(format!("`{name}` is a constant of the language"))
                            .hint("take another name")
                            .into());
                    }
                    Some(false) => drop(scope.set_value(name, value)),
                    None => drop(scope.push_dynamic(name, value)),
                }
                Ok(Value::Nothing)
            }
            Job::Remove(name) => match self.engine.scope().is_constant(&name) {
                Some(false) => {
                    // One of the same name may lie below.
                    while self.engine.scope_mut().remove::<Dynamic>(&name).is_some() {}
                    Ok(Value::Nothing)
                }
                Some(true) => Err(Error::input(format!("`{name}` is a constant of the language")).into()),
                None => Err(Trouble::NoName(name)),
            },
            Job::Names => {
                let mut names: Vec<&str> = Vec::new();
                for (name, constant, _) in self.engine.scope().iter() {
                    let own = !constant || !["I", "PI", "args"].contains(&name);
                    if own && !names.contains(&name) {
                        names.push(name);
                    }
                }
                Ok(Value::Array(names.into_iter().map(|name| Value::Text(name.to_string())).collect()))
            }
            Job::Call { path, method, given, options } => self.call(&path, method, given, options),
            Job::Property(number, name) => {
                need_name(&name, is_path(&name))?;
                let value = self.shelf.get(number)?;
                let outcome = self.with(vec![value], |engine| engine.eval(&format!("{}.{name}", given(0)))).0;
                self.result(outcome)
            }
            Job::Show(number) => Ok(Value::Text(self.engine.show(&self.shelf.get(number)?))),
            Job::Release(number) => {
                self.shelf.release(number);
                Ok(Value::Nothing)
            }
        }
    }

    fn run(&mut self, path: &Path, values: Vec<(String, Value)>) -> Done {
        let text = read_script(path)?;
        if !values.is_empty() {
            let values = args(&self.shelf, values)?;
            self.engine.scope_mut().push_constant("args", values);
        }
        if !self.engine.session().quiet() {
            let warnings = self.engine.lint(&text, Some(&path.display().to_string()));
            warnings.iter().for_each(|warning| self.voice.say(Said::Note(warning.render(false))));
        }
        let outcome = self.engine.run_text(&text, path);
        self.result(outcome)
    }

    fn call(&mut self, path: &str, method: bool, values: Vec<Value>, options: Vec<(String, Value)>) -> Done {
        need_name(path, is_path(path))?;
        let owner = match values.first() {
            Some(Value::Kept { number, .. }) if method => Some(*number),
            _ => None,
        };
        let mut all: Vec<Dynamic> =
            values.into_iter().map(|x| self.shelf.received(x)).collect::<Result<_>>()?;
        if !options.is_empty() {
            all.push(self.shelf.received(Value::Map(options))?);
        }
        let names: Vec<String> = (0..all.len()).map(given).collect();
        let text = match names.split_first() {
            Some((first, rest)) if method => format!("{first}.{path}({})", rest.join(", ")),
            _ => format!("{path}({})", names.join(", ")),
        };
        let (outcome, first) = self.with(all, |engine| engine.eval(&text));
        // A method may have changed what it stands behind.
        if let (Some(number), Some(value)) = (owner, first) {
            self.shelf.replace(number, value);
        }
        self.result(outcome)
    }

    /// Evaluates something that names these values; gives the first of them back, as it is then.
    fn with(
        &mut self,
        values: Vec<Dynamic>,
        work: impl FnOnce(&mut Engine) -> Evaluated,
    ) -> (Evaluated, Option<Dynamic>) {
        let before = self.engine.scope().len();
        for (at, value) in values.into_iter().enumerate() {
            self.engine.scope_mut().push_dynamic(given(at), value);
        }
        // The text is ours: its lines tell nobody anything.
        let outcome = work(&mut self.engine).map_err(|mut report| {
            (report.position, report.file) = (None, None);
            report.calls.clear();
            report
        });
        let first = self.engine.scope().get(&given(0)).cloned();
        self.engine.scope_mut().rewind(before);
        (outcome, first)
    }

    fn result(&mut self, outcome: Evaluated) -> Done {
        let ended = self.engine.session().ended();
        let value = outcome?;
        match ended {
            Some(0) => Ok(Value::Nothing),
            Some(code) => Err(Trouble::Exit(code)),
            None => Ok(self.shelf.out(&self.engine, value)?),
        }
    }
}

/// What scripts see as `args`; as of the command line, `args.rest` is always there.
fn args(shelf: &Shelf, values: Vec<(String, Value)>) -> Result<rhai::Map> {
    let given = values.into_iter().map(|(key, value)| Ok((key.into(), shelf.received(value)?)));
    let mut args = given.collect::<Result<rhai::Map>>()?;
    args.entry("rest".into()).or_insert_with(|| rhai::Array::new().into());
    Ok(args)
}
