//! What a running script shares: the device, the flags of the command line, the task that long work carries.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::json;

use super::declaration::Declared;
use super::device::{open_beside, weights};
use crate::backend::Device;
use crate::error::Result;
use crate::number::format::plain;
use crate::output::plot::Plot;
use crate::output::tell;
use crate::task::{Interrupt, Progress, Task};
use crate::{confine, ranks};

/// What the program was asked for on its command line.
#[derive(Clone, Default)]
pub struct Settings {
    /// "auto", "cpu", "cuda", or several that share the work: "cpu+cuda".
    pub backend: String,
    /// The weights of several backends; none if they are measured.
    pub weights: Vec<f64>,
    /// Which GPUs, counted from 0, in the order that the parts of a backend take them; more than are named follow the
    /// last one, from 0 if none is.
    pub devices: Vec<u32>,
    /// Ranks in each direction of a lattice; none where the program finds them.
    pub grid: Vec<usize>,
    /// Rows from which vectors are shared out to ranks; none where the program decides.
    pub share_from: Option<usize>,
    /// Worker threads; 0 takes as many as the machine offers. What no device does shares a pool of the whole process,
    /// which the first session that names a number sizes.
    pub threads: usize,
    /// The seed of everything random that names none.
    pub seed: u64,
    /// Folder that files named by the script go to.
    pub out: Option<PathBuf>,
    /// No progress, no notes.
    pub quiet: bool,
    /// Results as JSON lines.
    pub json: bool,
    /// What the script sees as `args`.
    pub args: rhai::Map,
}

/// The state behind the native functions of one engine.
pub struct Session {
    device: RefCell<Device>,
    settings: RefCell<Settings>,
    interrupt: Interrupt,
    progress: RefCell<Option<Arc<dyn Progress>>>,
    /// Whether a workflow runs that was asked to show no progress.
    hushed: Cell<bool>,
    seed: Cell<u64>,
    /// How many random numbers the calls without a seed have taken.
    drawn: Cell<u64>,
    script: RefCell<Option<String>>,
    /// Where `print` writes: standard output, or a buffer of a test.
    pub(crate) printer: RefCell<Box<dyn FnMut(&str)>>,
    /// Takes results as records instead, where they are asked for.
    recorder: RefCell<Option<Box<dyn FnMut(serde_json::Value)>>>,
    /// Shows plots without a file, where that is no terminal.
    canvas: RefCell<Option<Box<dyn FnMut(&Plot) -> Result<()>>>>,
    /// What people were told that need not hear it twice.
    noted: RefCell<BTreeSet<String>>,
    /// The seeds that options have named.
    named_seeds: RefCell<Vec<u64>>,
    /// The exit code that a script has asked for.
    ended: Cell<Option<u8>>,
    /// Whether numbers that clocks made are hidden, as golden tests do.
    masked: Cell<bool>,
    /// The backends that blocks of `on` have opened, by name: a pool of threads and a GPU's context are made once.
    opened: RefCell<BTreeMap<(String, usize), Device>>,
    /// The value behind the text that is printed next.
    value: RefCell<Option<serde_json::Value>>,
    /// What functions declare that scripts have asked for by their paths.
    declared: RefCell<BTreeMap<String, Rc<Declared>>>,
}

impl Session {
    pub(super) fn new(device: Device, settings: Settings, interrupt: Interrupt) -> Rc<Session> {
        Rc::new(Session {
            device: RefCell::new(device),
            seed: Cell::new(settings.seed),
            drawn: Cell::new(0),
            settings: RefCell::new(settings),
            interrupt,
            progress: RefCell::new(None),
            hushed: Cell::new(false),
            script: RefCell::new(None),
            recorder: RefCell::new(None),
            canvas: RefCell::new(None),
            noted: RefCell::default(),
            named_seeds: RefCell::default(),
            ended: Cell::new(None),
            masked: Cell::new(false),
            opened: RefCell::default(),
            value: RefCell::new(None),
            declared: RefCell::default(),
            // A reader that has gone away is no reason to fail.
            printer: RefCell::new(Box::new(|text| {
                if ranks::first() {
                    drop(writeln!(std::io::stdout(), "{text}"));
                }
            })),
        })
    }

    /// The device that new operators and vectors live on.
    pub fn device(&self) -> Device {
        self.device.borrow().clone()
    }

    /// Changes the device of what is made from now on.
    pub fn set_device(&self, device: Device) {
        *self.device.borrow_mut() = device;
    }

    /// Runs work on the backend of that name, with so many threads and such weights of its parts if they are given, and
    /// goes back to what there was, also after errors.
    pub(crate) fn on<T>(
        &self,
        name: &str,
        threads: Option<usize>,
        shares: Option<&str>,
        work: impl FnOnce() -> T,
    ) -> Result<T> {
        struct Back<'a>(&'a Session, Device);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                *self.0.device.borrow_mut() = self.1.clone();
            }
        }
        let outer = self.device();
        let key = (format!("{name} {}", shares.unwrap_or_default()), threads.unwrap_or(0));
        let known = self.opened.borrow().get(&key).cloned();
        // The session's own backend is not opened twice.
        let automatic = name == "auto" && ["", "auto"].contains(&self.settings.borrow().backend.as_str());
        let own = threads.is_none() && shares.is_none() && (automatic || outer.name() == name);
        let device = match known {
            _ if own => outer,
            Some(device) => device,
            None => {
                let weights = shares.map(weights).transpose()?.unwrap_or_default();
                let mut settings = self.settings();
                settings.threads = threads.unwrap_or(settings.threads);
                let settings = Settings { backend: name.to_string(), weights, ..settings };
                let device = open_beside(&settings, &self.interrupt)?;
                self.opened.borrow_mut().insert(key, device.clone());
                device
            }
        };
        let _back = Back(self, self.device.replace(device));
        Ok(work())
    }

    /// The command line's wishes.
    pub fn settings(&self) -> Settings {
        self.settings.borrow().clone()
    }

    /// The flag that stops everything running in this session.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Shows progress through `progress` from now on.
    pub fn set_progress(&self, progress: Option<Arc<dyn Progress>>) {
        *self.progress.borrow_mut() = progress;
    }

    /// The task for one call: quiet if the session or the call asks for it.
    pub fn task(&self, progress: bool) -> Task {
        let shown = progress && !self.hushed.get() && !self.settings.borrow().quiet;
        Task::new(self.interrupt.clone(), self.progress.borrow().clone().filter(|_| shown))
    }

    /// Shows no progress of what the workflow at hand does, up to the end of its `workflow`.
    pub(super) fn hush(&self) {
        self.hushed.set(true);
    }

    /// Runs a workflow; its wish to show no progress ends with it.
    pub(super) fn workflow<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Before<'a>(&'a Cell<bool>, bool);
        impl Drop for Before<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let _before = Before(&self.hushed, self.hushed.get());
        work()
    }

    /// Whether nobody wants to hear more than results and errors.
    pub fn quiet(&self) -> bool {
        self.settings.borrow().quiet
    }

    /// The seed of everything random that names none.
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// Sets that seed, and begins its sequence of random numbers.
    pub fn set_seed(&self, seed: u64) {
        self.seed.set(seed);
        self.drawn.set(0);
    }

    /// Takes `n` numbers from the sequence of that seed: the place of the first one.
    pub(super) fn draw(&self, n: u64) -> u64 {
        self.drawn.replace(self.drawn.get().wrapping_add(n))
    }

    /// The seeds that options have named so far, in the order of their first use.
    pub fn named_seeds(&self) -> Vec<u64> {
        self.named_seeds.borrow().clone()
    }

    /// Keeps a seed that an option names, for the manifests of files; of very many the first.
    pub(super) fn name_seed(&self, seed: u64) {
        const KEPT: usize = 64;
        let mut seeds = self.named_seeds.borrow_mut();
        if seeds.len() < KEPT && !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }

    /// Whether numbers that clocks made are hidden, as golden tests do.
    pub fn masked(&self) -> bool {
        self.masked.get()
    }

    /// Hides numbers that clocks made from now on.
    pub(super) fn mask(&self) {
        self.masked.set(true);
    }

    /// The exit code that a script has ended itself with since this was asked last.
    pub fn ended(&self) -> Option<u8> {
        self.ended.take()
    }

    /// Keeps the exit code that a script ends itself with.
    pub(super) fn end(&self, code: u8) {
        self.ended.set(Some(code));
    }

    /// A hash of the script file that is running, if one is.
    pub fn script_hash(&self) -> Option<String> {
        self.script.borrow().clone()
    }

    pub(super) fn set_script(&self, text: &str) {
        *self.script.borrow_mut() = Some(format!("fnv1a-{:016x}", hash(text)));
    }

    /// Where a file that the script names goes: under `--out`, unless the name is absolute.
    pub fn output_path(&self, name: &str) -> PathBuf {
        match &self.settings.borrow().out {
            Some(folder) => {
                // Made with its first file; if that fails, writing the file says why.
                if confine::check(folder).is_ok() {
                    let _ = std::fs::create_dir_all(folder);
                }
                folder.join(name)
            }
            None => PathBuf::from(name),
        }
    }

    /// The file that a script names to be read: what it saved, it finds again;
    /// everything else is named as the user sees it.
    ///
    /// # Errors
    /// A place where scripts may not read; a file that is another one on some ranks.
    pub fn input_path(&self, name: &str) -> Result<PathBuf> {
        let path = self.place_of(name)?;
        ranks::alike_file(&path, name)?;
        Ok(path)
    }

    /// Whether there is a file for [`Session::input_path`].
    ///
    /// # Errors
    /// A place where scripts may not read.
    pub fn has_file(&self, name: &str) -> Result<bool> {
        ranks::told(self.place_of(name)?.exists())
    }

    fn place_of(&self, name: &str) -> Result<PathBuf> {
        let saved = self.output_path(name);
        let path = if ranks::told(confine::exists(&saved))? { saved } else { PathBuf::from(name) };
        confine::check(&path)?;
        Ok(path)
    }

    /// Tells people something they should know, on standard error.
    pub fn note(&self, text: &str) {
        if !self.settings.borrow().quiet {
            tell(&format!("note: {}", plain(text)));
        }
    }

    /// As [`Session::note`], the first time only.
    pub fn note_once(&self, text: &str) {
        if self.noted.borrow_mut().insert(text.to_string()) {
            self.note(text);
        }
    }

    /// Sends what scripts print to `printer` from now on.
    pub fn set_printer(&self, printer: Box<dyn FnMut(&str)>) {
        *self.printer.borrow_mut() = printer;
    }

    /// Sends results as records to `recorder` from now on: what is printed, and which files are saved.
    pub fn set_recorder(&self, recorder: Option<Box<dyn FnMut(serde_json::Value)>>) {
        *self.recorder.borrow_mut() = recorder;
    }

    /// Shows plots without a file on `canvas` from now on.
    pub fn set_canvas(&self, canvas: Box<dyn FnMut(&Plot) -> Result<()>>) {
        *self.canvas.borrow_mut() = Some(canvas);
    }

    /// Shows a plot on the canvas, if there is one.
    ///
    /// # Errors
    /// A plot that cannot be drawn.
    pub(super) fn show_plot(&self, plot: &Plot) -> Result<bool> {
        self.canvas.borrow_mut().as_mut().map_or(Ok(false), |canvas| canvas(plot).map(|()| true))
    }

    /// Says that a script saved a file.
    pub fn saved(&self, path: &std::path::Path) {
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            recorder(json!({ "saved": path.display().to_string() }));
        }
    }

    /// Remembers the value behind the text that `print` is about to write, for records.
    pub(crate) fn printing(&self, value: impl FnOnce() -> serde_json::Value) {
        if self.recorder.borrow().is_some() {
            *self.value.borrow_mut() = Some(value());
        }
    }

    /// Writes a line where results go.
    pub fn print(&self, text: &str) {
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            return recorder(match self.value.take() {
                Some(value) => json!({ "print": text, "value": value }),
                None => json!({ "print": text }),
            });
        }
        (self.printer.borrow_mut())(text);
    }
}

impl Session {
    /// Runs work of this session: native functions find it by [`session`].
    pub(super) fn during<T>(self: &Rc<Session>, work: impl FnOnce() -> T) -> T {
        /// Puts back what was there, also after a panic.
        struct Back(Option<Rc<Session>>);
        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.with(|current| *current.borrow_mut() = self.0.take());
            }
        }
        let _back = Back(CURRENT.with(|current| current.borrow_mut().replace(self.clone())));
        self.interrupt.during(work)
    }

    /// The options that a function declares, given by its path.
    pub(super) fn declared(&self, path: &str) -> Rc<Declared> {
        let new = || Rc::new(Declared::new(format!("# Options\n- those of `{path}`")));
        self.declared.borrow_mut().entry(path.to_string()).or_insert_with(new).clone()
    }
}

thread_local!(static CURRENT: RefCell<Option<Rc<Session>>> = const { RefCell::new(None) });

/// The session whose script runs on this thread.
///
/// # Errors
/// Where none runs.
pub fn session() -> Result<Rc<Session>> {
    CURRENT
        .with(|current| current.borrow().clone())
        .ok_or_else(|| crate::error::Error::internal("a native function was called outside a session"))
}

/// FNV-1a, which makes a seed of a text.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
