//! Answers requests, on the thread of the session.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde_json::{Value, json};

use super::about::{about, busy, idle};
use super::message::FrontendRequest;
use super::screen::{Notebook, NotebookScreen, about as about_mistake};
use super::sockets::{KernelTask, MessageSender, To};
use crate::error::ErrorKind;
use crate::repl::scan::{self, Sort};
use crate::repl::session::{AfterInput, Completeness, ReplSession};

/// The session behind a notebook.
pub(super) struct NotebookSession {
    session: ReplSession,
    screen: Arc<NotebookScreen>,
    notebook: Rc<Notebook>,
    voice: MessageSender,
    /// Set when the session is to end, with its exit code.
    leaves: Option<u8>,
}

impl NotebookSession {
    pub fn new(
        session: ReplSession,
        screen: Arc<NotebookScreen>,
        notebook: Rc<Notebook>,
        voice: MessageSender,
    ) -> NotebookSession {
        NotebookSession { session, screen, notebook, voice, leaves: None }
    }

    /// Answers until the notebook leaves; gives the exit code.
    pub fn serve(mut self, requests: &Receiver<KernelTask>) -> u8 {
        let starting = Arc::new(json!({}));
        self.voice.message(To::Everyone, "status", &starting, json!({ "execution_state": "starting" }));
        self.session.start_up();
        self.notebook.mistake.take();
        // What had come when a cell failed.
        let mut waiting: VecDeque<KernelTask> = VecDeque::new();
        loop {
            let (task, behind) = match waiting.pop_front() {
                Some(task) => (task, true),
                None => match requests.recv() {
                    Ok(task) => (task, false),
                    Err(_) => return 0,
                },
            };
            match task {
                KernelTask::Leave => return 0,
                // Cells that wait behind one that failed do not run.
                KernelTask::Answer(request) if behind && request.kind() == "execute_request" => {
                    self.abort(request)
                }
                KernelTask::Answer(request) => self.take(request, || waiting.extend(requests.try_iter())),
            }
            if let Some(code) = self.leaves {
                return code;
            }
        }
    }

    /// Answers a request between a sign that the kernel works and one that it rests. `failed` is called where the cells
    /// behind it are not to run, before anybody hears of it: what is asked for later was asked knowing that.
    fn take(&mut self, request: FrontendRequest, failed: impl FnOnce()) {
        let header = Arc::new(request.header.clone());
        self.screen.begin(&header);
        self.screen.tell("status", busy());
        if let Some((kind, content)) = self.answer(&request) {
            let stops = request.content["stop_on_error"].as_bool().unwrap_or(true);
            if kind == "execute_reply" && content["status"] == "error" && stops {
                failed();
            }
            self.voice.message(To::Shell(request.from), kind, &header, content);
        }
        self.screen.tell("status", idle());
    }

    fn abort(&self, request: FrontendRequest) {
        let header = Arc::new(request.header);
        self.screen.begin(&header);
        self.screen.tell("status", busy());
        let content = json!({ "status": "aborted", "execution_count": self.notebook.count.get() });
        self.voice.message(To::Shell(request.from), "execute_reply", &header, content);
        self.screen.tell("status", idle());
    }

    fn answer(&mut self, request: &FrontendRequest) -> Option<(&'static str, Value)> {
        let asked = &request.content;
        Some(match request.kind() {
            "execute_request" => ("execute_reply", self.execute(asked)),
            "complete_request" => ("complete_reply", self.complete(asked)),
            "inspect_request" => ("inspect_reply", self.inspect(asked)),
            "is_complete_request" => ("is_complete_reply", self.is_complete(asked)),
            "history_request" => ("history_reply", self.history(asked)),
            "kernel_info_request" => ("kernel_info_reply", about()),
            "comm_info_request" => ("comm_info_reply", json!({ "status": "ok", "comms": {} })),
            "shutdown_request" => {
                self.leaves = Some(0);
                let content = json!({ "status": "ok", "restart": asked["restart"] });
                self.screen.tell("shutdown_reply", content.clone());
                ("shutdown_reply", content)
            }
            "comm_open" => {
                // There are no widgets.
                self.screen.tell("comm_close", json!({ "comm_id": asked["comm_id"], "data": {} }));
                return None;
            }
            _ => return None,
        })
    }

    fn execute(&mut self, asked: &Value) -> Value {
        let code = asked["code"].as_str().unwrap_or_default();
        let silent = asked["silent"].as_bool().unwrap_or(false);
        let kept = !silent && asked["store_history"].as_bool().unwrap_or(true) && !code.trim().is_empty();
        let count = self.session.inputs.len() + usize::from(kept);
        self.notebook.count.set(count);
        self.notebook.silent.set(silent);
        self.notebook.mistake.take();
        if !silent {
            self.screen.tell("execute_input", json!({ "code": code, "execution_count": count }));
        }
        let step = self.session.take_cell(code, kept);
        self.notebook.silent.set(false);
        let mut payload = Vec::new();
        match step {
            AfterInput::Leave(code) => {
                self.leaves = Some(code);
                payload.push(json!({ "source": "ask_exit", "keepkernel": false }));
            }
            AfterInput::Failed(kind) => {
                let unknown = || json!({ "ename": format!("{kind:?}"), "evalue": "", "traceback": [] });
                let mut reply = self.notebook.mistake.take().unwrap_or_else(unknown);
                reply["status"] = "error".into();
                reply["execution_count"] = count.into();
                if kind == ErrorKind::Interrupted {
                    reply["evalue"] = "interrupted".into();
                }
                return reply;
            }
            AfterInput::Next => {}
        }
        let expressions = asked["user_expressions"].as_object();
        let glances: serde_json::Map<String, Value> = expressions
            .into_iter()
            .flatten()
            .map(|(name, expression)| (name.clone(), self.glance(expression.as_str().unwrap_or_default())))
            .collect();
        json!({ "status": "ok", "execution_count": count, "payload": payload, "user_expressions": glances })
    }

    fn glance(&mut self, expression: &str) -> Value {
        match self.session.glance(expression) {
            Ok(text) => json!({ "status": "ok", "data": { "text/plain": text }, "metadata": {} }),
            Err(report) => {
                let mut mistake = about_mistake(&report);
                mistake["status"] = "error".into();
                mistake
            }
        }
    }

    fn complete(&self, asked: &Value) -> Value {
        let (code, byte) = cursor(asked);
        let (start, found) = self.session.proposals(code, byte);
        let (from, to) = (characters(code, start), characters(code, byte));
        let sorts: Vec<Value> = found
            .iter()
            .map(|(proposal, sort)| {
                json!({ "text": proposal.put, "type": sort.map_or("file", word), "start": from, "end": to })
            })
            .collect();
        json!({
            "status": "ok",
            "matches": found.iter().map(|(proposal, _)| proposal.put.as_str()).collect::<Vec<_>>(),
            "cursor_start": from,
            "cursor_end": to,
            "metadata": { "_jupyter_types_experimental": sorts },
        })
    }

    fn inspect(&self, asked: &Value) -> Value {
        let (code, byte) = cursor(asked);
        let detailed = asked["detail_level"].as_u64().unwrap_or(0) > 0;
        let page = |name: &str| {
            let source = if detailed { self.session.written(name) } else { None };
            source.or_else(|| self.session.page(name))
        };
        // The name under the cursor, or that of the call around it.
        let named = scan::name_at(code, byte).and_then(|(name, _)| page(&name));
        let found = named.or_else(|| page(&scan::call_at(code, byte)?.0));
        let data = found.as_ref().map_or(json!({}), |page| json!({ "text/plain": page }));
        json!({ "status": "ok", "found": found.is_some(), "data": data, "metadata": {} })
    }

    fn is_complete(&self, asked: &Value) -> Value {
        match self.session.completeness(asked["code"].as_str().unwrap_or_default()) {
            Completeness::Whole => json!({ "status": "complete" }),
            Completeness::Wrong => json!({ "status": "invalid" }),
            Completeness::Open(indent) => json!({ "status": "incomplete", "indent": " ".repeat(indent) }),
        }
    }

    fn history(&self, asked: &Value) -> Value {
        let inputs = self.session.inputs.iter().enumerate().map(|(k, text)| (k + 1, text.as_str()));
        let count = |key: &str| asked[key].as_u64().and_then(|n| usize::try_from(n).ok());
        let pattern = asked["pattern"].as_str().unwrap_or("*");
        let mut found: Vec<(usize, &str)> = match asked["hist_access_type"].as_str() {
            Some("range") => {
                let (from, to) = (count("start").unwrap_or(1), count("stop").unwrap_or(usize::MAX));
                inputs.filter(|(number, _)| (from..to).contains(number)).collect()
            }
            Some("search") => inputs.filter(|(_, text)| fits(pattern, text)).collect(),
            _ => inputs.collect(),
        };
        if asked["unique"].as_bool().unwrap_or(false) {
            // The newest of those alike stays.
            let texts: Vec<&str> = found.iter().map(|(_, text)| *text).collect();
            let mut place = 0;
            found.retain(|(_, text)| {
                place += 1;
                !texts[place..].contains(text)
            });
        }
        if let Some(n) = count("n").filter(|_| asked["hist_access_type"] != "range") {
            found.drain(..found.len().saturating_sub(n));
        }
        let with_output = asked["output"].as_bool().unwrap_or(false);
        let line = |(number, text): &(usize, &str)| match with_output {
            true => json!([0, number, [text, self.session.output(*number)]]),
            false => json!([0, number, text]),
        };
        let lines: Vec<Value> = found.iter().map(line).collect();
        json!({ "status": "ok", "history": lines })
    }
}

/// The code of a request, and the byte of the cursor in it.
fn cursor(asked: &Value) -> (&str, usize) {
    let code = asked["code"].as_str().unwrap_or_default();
    let place = asked["cursor_pos"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
    (code, code.char_indices().nth(place).map_or(code.len(), |(byte, _)| byte))
}

/// The characters before a byte.
fn characters(code: &str, byte: usize) -> usize {
    code[..byte].chars().count()
}

/// What frontends call a sort of proposals.
fn word(sort: Sort) -> &'static str {
    match sort {
        Sort::Function => "function",
        Sort::Method => "method",
        Sort::Property => "property",
        Sort::Module => "module",
        Sort::Option => "param",
        Sort::Keyword => "keyword",
        Sort::Variable => "instance",
    }
}

/// Whether a text fits a pattern, in which `*` stands for anything and `?` for one character.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where the last `*` stands, and from where on it was tried.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, text) in
            [("*", ""), ("*dos*", "kpm::dos(h)"), ("a?c", "abc"), ("*a*b", "xaybab"), ("", "")]
        {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("dos", "kpm::dos"), ("a?c", "ac"), ("*a*b", "xaybabc"), ("", "a"), ("?", "")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn cursors_count_characters() {
        let asked = json!({ "code": "let 𝒂 = µ; x", "cursor_pos": 9 });
        let (code, byte) = cursor(&asked);
        assert_eq!((&code[..byte], characters(code, byte)), ("let 𝒂 = µ", 9));
        assert_eq!(cursor(&json!({ "code": "µ", "cursor_pos": 99 })).1, 2);
        assert_eq!(cursor(&json!({})), ("", 0));
    }
}
