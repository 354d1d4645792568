//! The kernel for Jupyter: notebooks, consoles and editors that speak its messaging protocol (version
//! 5.3, <https://jupyter-client.readthedocs.io/en/stable/messaging.html>) run cells in a session of `repl/`. A separate
//! thread holds the five ZeroMQ sockets, so interruptions and heartbeats are answered while a cell runs.

mod about;
mod connection;
mod display;
mod kernel;
mod message;
mod screen;
mod sockets;
pub mod spec;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::error::{Error, Result};
use crate::output::progress::TerminalBar;
use crate::output::{files, tell_to};
use crate::repl::session::ReplSession;
use crate::script::{Engine, Settings};
use crate::task::signals::{self, SignalRequest};
use crate::task::{Interrupt, Progress};
use kernel::NotebookSession;
use screen::{Notebook, NotebookScreen};

pub use connection::Connection;

/// Serves the notebook that a connection leads to until it leaves; gives the exit code.
///
/// # Errors
/// A port that is taken, a backend that does not start.
pub fn run(connection: &Connection, settings: Settings) -> Result<u8> {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::on(move |request| match request {
        SignalRequest::Stop => flag.raise(),
        SignalRequest::End => {
            files::atomic::give_up();
            signals::end_now()
        }
    });
    end_with_parent()?;
    let (asked, requests) = channel();
    let sockets = sockets::open(connection, interrupt.clone(), asked)?;
    let screen = Arc::new(NotebookScreen::new(sockets.voice()));
    let told = screen.clone();
    tell_to(move |line| told.stream("stderr", &format!("{line}\n")));

    let quiet = settings.quiet;
    let engine = Engine::with(settings, interrupt)?;
    let session = engine.session();
    let printed = screen.clone();
    session.set_printer(Box::new(move |text| printed.stream("stdout", &format!("{text}\n"))));
    let canvas = screen.clone();
    session.set_canvas(Box::new(move |plot| {
        canvas.display(&display::of_plot(plot)?);
        Ok(())
    }));
    let shown = screen.clone();
    let bar = (!quiet).then(|| TerminalBar::lines(move |number, line| shown.progress(number, line)));
    session.set_progress(bar.map(|bar| Arc::new(bar) as Arc<dyn Progress>));
    let notebook = Rc::new(Notebook::new(screen.clone()));
    let session = ReplSession::of_notebook(engine, notebook.clone());
    let code = NotebookSession::new(session, screen, notebook, sockets.voice()).serve(&requests);
    sockets.close();
    Ok(code)
}

/// Reads the file with which Jupyter tells its kernel where to listen.
///
/// # Errors
/// A file that cannot be read or that is none.
pub fn connection(path: &Path) -> Result<Connection> {
    Connection::read(path)
}

/// Ends the program with the Jupyter that has started it: a kernel without one would wait for ever.
fn end_with_parent() -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::process::parent_id;
        let parent = parent_id();
        let named = std::env::var("JPY_PARENT_PID").ok().and_then(|id| id.parse::<u32>().ok());
        if named != Some(parent) {
            return Ok(());
        }
        let watch = move || {
            while parent_id() == parent {
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
            files::atomic::give_up();
            signals::end_now();
        };
        std::thread::Builder::new().name("parent".into()).spawn(watch).map_err(no_thread)?;
    }
    Ok(())
}

fn no_thread(e: std::io::Error) -> Error {
    Error::backend(format!("a thread cannot be started: {e}"))
}
