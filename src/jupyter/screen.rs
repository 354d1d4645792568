//! What a running cell shows: text, values, pictures, progress, mistakes.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::display;
use super::message::unique;
use super::sockets::{MessageSender, OutgoingMessage, To};
use crate::error::ErrorKind;
use crate::output::files::FileData;
use crate::repl::session::SessionFront;
use crate::script::diagnostics::Report;

/// Sends what belongs to the request that is being answered; from any thread.
pub(super) struct NotebookScreen {
    voice: MessageSender,
    now: Mutex<CurrentRequest>,
}

/// The request that is being answered.
struct CurrentRequest {
    header: Arc<Value>,
    /// The displays of its work's progress, by the number of the work.
    progress: HashMap<u64, String>,
}

impl NotebookScreen {
    pub fn new(voice: MessageSender) -> NotebookScreen {
        NotebookScreen {
            voice,
            now: Mutex::new(CurrentRequest { header: Arc::new(json!({})), progress: HashMap::new() }),
        }
    }

    fn now(&self) -> MutexGuard<'_, CurrentRequest> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is shown from now on belongs to the request with this header.
    pub fn begin(&self, header: &Arc<Value>) {
        *self.now() = CurrentRequest { header: header.clone(), progress: HashMap::new() };
    }

    pub fn tell(&self, kind: &'static str, content: Value) {
        let header = self.now().header.clone();
        self.voice.message(To::Everyone, kind, &header, content);
    }

    /// Text on `stdout` or `stderr`.
    pub fn stream(&self, name: &'static str, text: &str) {
        let parent = self.now().header.clone();
        self.voice.say(OutgoingMessage::Stream { name, parent, text: text.to_string() });
    }

    pub fn display(&self, data: &Value) {
        self.tell("display_data", json!({ "data": data, "metadata": {}, "transient": {} }));
    }

    /// The progress of a work, in place of what was shown of it before.
    pub fn progress(&self, number: u64, line: &str) {
        let (known, id) = {
            let mut now = self.now();
            let known = now.progress.contains_key(&number);
            (known, now.progress.entry(number).or_insert_with(unique).clone())
        };
        let kind = if known { "update_display_data" } else { "display_data" };
        let content =
            json!({ "data": { "text/plain": line }, "metadata": {}, "transient": { "display_id": id } });
        self.tell(kind, content);
    }
}

/// The notebook that a session shows its values in.
pub(super) struct Notebook {
    screen: Arc<NotebookScreen>,
    /// The number of the cell.
    pub count: Cell<usize>,
    /// Whether nothing is to be shown.
    pub silent: Cell<bool>,
    /// The mistake that ended the cell, as replies have it.
    pub mistake: RefCell<Option<Value>>,
}

impl Notebook {
    pub fn new(screen: Arc<NotebookScreen>) -> Notebook {
        Notebook { screen, count: Cell::new(0), silent: Cell::new(false), mistake: RefCell::new(None) }
    }
}

impl SessionFront for Notebook {
    fn value(&self, text: &str, data: Option<&FileData>) {
        if !self.silent.get() {
            let bundle = display::of_value(text, data);
            self.screen.tell(
                "execute_result",
                json!({ "execution_count": self.count.get(), "data": bundle, "metadata": {} }),
            );
        }
    }

    fn mistake(&self, report: &Report) {
        let mistake = about(report);
        if !self.silent.get() {
            self.screen.tell("error", mistake.clone());
        }
        *self.mistake.borrow_mut() = Some(mistake);
    }
}

/// A mistake as frontends take it: its kind, its sentence, and the whole report with its caret.
pub(super) fn about(report: &Report) -> Value {
    let name = match report.kind {
        ErrorKind::Interrupted => "Interrupted".to_string(),
        kind => format!("{kind:?}Error"),
    };
    let text = report.render(true);
    json!({ "ename": name, "evalue": report.message, "traceback": text.lines().collect::<Vec<_>>() })
}
