//! The interactive session: editing, completion, hints, colours, commands. Inputs go to the engine of
//! `script/`, and their values are shown. From a pipe the session reads statements without prompting and stops
//! at the first error.

mod commands;
pub mod complete;
mod helper;
mod input;
mod magic;
mod paint;
mod paste;
pub mod scan;
pub mod session;
mod store;
mod terminal;
mod tour;

use std::cell::RefCell;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustyline::config::BellStyle;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor, EventHandler, KeyCode, KeyEvent, Modifiers};

use crate::error::{Error, ErrorKind, Result};
use crate::output::progress::TerminalBar;
use crate::output::{colours, files, folders, out, tell};
use crate::ranks;
use crate::script::diagnostics::Report;
use crate::script::{Engine, Settings};
use crate::task::signals::{self, SignalRequest};
use crate::task::{Interrupt, Progress};
use helper::{Assistant, Indent};
use session::{AfterInput, ReplSession};
use terminal::Prompt;

/// Runs a session on standard input until its end; the exit code is 0, or that of the error that ended a pipe.
pub fn run(settings: Settings) -> ExitCode {
    // Launchers of ranks bring no terminal.
    let interactive =
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && ranks::world().is_none();
    let prompt = Prompt::new();
    match start(settings, interactive, prompt.clone()) {
        Ok(session) if interactive => talk(session, &prompt),
        Ok(session) => listen(session),
        Err(e) => {
            tell(&Report::plain(&e).render(colours(&std::io::stderr())));
            ExitCode::from(1)
        }
    }
}

/// How long work of a pipe may take to stop.
const GRACE: Duration = Duration::from_millis(140);

fn start(settings: Settings, interactive: bool, prompt: Prompt) -> Result<ReplSession> {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::on(move |request| {
        flag.raise();
        // While a line is edited Ctrl-C is a key for the editor.
        if interactive && request == SignalRequest::Stop {
            return;
        }
        if !prompt.stands() {
            // Work that looks at the flag reports the interruption itself.
            std::thread::sleep(GRACE);
        }
        files::atomic::give_up();
        prompt.restore();
        if !interactive {
            tell("interrupted");
        }
        signals::end_now()
    });
    let quiet = settings.quiet;
    let engine = Engine::with(settings, interrupt)?;
    let bar = TerminalBar::new(quiet);
    engine.session().set_printer(Box::new(out));
    engine.session().set_progress(bar.map(|bar| Arc::new(bar) as Arc<dyn Progress>));
    Ok(ReplSession::new(engine, interactive))
}

/// The next line of standard input, which one rank reads for all; none at its end. Where somebody sits in front of the
/// launcher, a prompt asks for it.
fn line(prompt: Option<&str>) -> Result<Option<String>> {
    let read = || {
        if let Some(prompt) = prompt {
            let _ = write!(std::io::stdout(), "{prompt}").and_then(|()| std::io::stdout().flush());
        }
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) => Ok(None),
            Ok(_) if line.trim_end() == ranks::launch::END_OF_INPUT => Ok(None),
            Ok(_) => Ok(Some(line)),
            Err(e) => Err(Error::file(format!("standard input cannot be read: {e}"))),
        }
    };
    ranks::once(read)
}

/// Reads statements from a pipe or file, or from a terminal through a launcher of ranks.
fn listen(mut session: ReplSession) -> ExitCode {
    let parser = input::parser();
    let mut text = String::new();
    let mut first = 1;
    let mut lines = 0;
    let asks = ranks::world().is_some() && std::env::var_os(ranks::launch::TERMINAL).is_some();
    if asks {
        out(&session.banner(false));
    }
    loop {
        let prompt = asks.then_some(if text.is_empty() { "> " } else { "... " });
        let line = match line(prompt) {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                tell(&Report::plain(&error).render(false));
                return ExitCode::from(1);
            }
        };
        lines += 1;
        if text.is_empty() {
            first = lines;
        }
        text.push_str(line.strip_suffix('\n').map_or(&*line, |line| line.strip_suffix('\r').unwrap_or(line)));
        text.push('\n');
        if !input::incomplete(&parser, &text) {
            match session.take(&std::mem::take(&mut text), first) {
                AfterInput::Next => {}
                AfterInput::Leave(code) => return ExitCode::from(code),
                AfterInput::Failed(kind) if asks && kind != ErrorKind::Interrupted => {}
                AfterInput::Failed(kind) => return code(kind),
            }
        }
    }
    match session.take(&text, first) {
        AfterInput::Failed(kind) => code(kind),
        AfterInput::Leave(code) => ExitCode::from(code),
        AfterInput::Next => ExitCode::SUCCESS,
    }
}

fn code(kind: ErrorKind) -> ExitCode {
    ExitCode::from(if kind == ErrorKind::Interrupted { signals::code() } else { 1 })
}

/// Talks to somebody at a terminal.
fn talk(mut session: ReplSession, prompt: &Prompt) -> ExitCode {
    let colour = colours(&std::io::stdout());
    let mut editor = match editor(session.names.clone(), colour) {
        Ok(editor) => editor,
        Err(e) => {
            tell(&format!("error: the terminal cannot be used: {e}"));
            return ExitCode::from(1);
        }
    };
    let history = match folders::state().map(|folder| folder.join("history")) {
        Ok(path) => {
            if path.exists()
                && let Err(e) = editor.load_history(&path)
            {
                tell(&format!("note: the history `{}` cannot be read: {e}", path.display()));
            }
            Some(path)
        }
        Err(e) => {
            tell(&format!("note: inputs are not remembered: {e}"));
            None
        }
    };
    let mut history = history;
    out(&session.banner(colour));
    session.start_up();
    loop {
        prompt.open();
        let typed = editor.readline("> ");
        prompt.close();
        match typed {
            Ok(line) => {
                if !line.trim().is_empty() && editor.add_history_entry(line.as_str()).unwrap_or(false) {
                    // Saved at once, so that the history is there even if the session is killed.
                    if let Some(path) = &history
                        && let Err(e) = editor.append_history(path)
                    {
                        tell(&format!("note: inputs are not remembered: {e}"));
                        history = None;
                    }
                }
                if let AfterInput::Leave(code) = session.take_block(&line) {
                    return ExitCode::from(code);
                }
            }
            // Ctrl-C clears the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return ExitCode::SUCCESS,
            Err(ReadlineError::Signal(_)) => {}
            Err(e) => {
                tell(&format!("error: the terminal cannot be read: {e}"));
                return ExitCode::from(1);
            }
        }
    }
}

fn editor(
    names: Rc<RefCell<complete::Names>>,
    colour: bool,
) -> rustyline::Result<Editor<Assistant, DefaultHistory>> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .history_ignore_space(true)
        .history_ignore_dups(true)?
        .max_history_size(10_000)?
        .color_mode(if colour { ColorMode::Enabled } else { ColorMode::Disabled })
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.bind_sequence(
        KeyEvent(KeyCode::Enter, Modifiers::NONE),
        EventHandler::Conditional(Box::new(Indent)),
    );
    editor.set_helper(Some(Assistant::new(names, colour)));
    Ok(editor)
}
