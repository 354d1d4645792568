//! The terminal while a line is edited, and how to end a session at SIGTERM or SIGHUP meanwhile.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the prompt stands. Clones share it.
#[derive(Clone)]
pub(super) struct Prompt {
    stands: Arc<AtomicBool>,
    /// The terminal's settings from before the editor changed them.
    #[cfg(unix)]
    settings: Option<Arc<std::sync::Mutex<nix::sys::termios::Termios>>>,
}

impl Prompt {
    /// Notes the settings that the terminal has now.
    pub fn new() -> Prompt {
        Prompt {
            stands: Arc::default(),
            // Input that is no terminal has no settings.
            #[cfg(unix)]
            settings: nix::sys::termios::tcgetattr(std::io::stdin())
                .ok()
                .map(|settings| Arc::new(std::sync::Mutex::new(settings))),
        }
    }

    /// The editor takes over.
    pub fn open(&self) {
        self.stands.store(true, Ordering::SeqCst);
    }

    /// The editor is done.
    pub fn close(&self) {
        self.stands.store(false, Ordering::SeqCst);
    }

    /// Whether the editor waits for keys.
    pub fn stands(&self) -> bool {
        self.stands.load(Ordering::SeqCst)
    }

    /// Gives the terminal its old settings before the program ends. The history has been saved already.
    pub fn restore(&self) {
        if !self.stands() {
            return;
        }
        #[cfg(unix)]
        if let Some(Ok(settings)) = self.settings.as_ref().map(|s| s.lock()) {
            use nix::sys::termios::{SetArg, tcsetattr};
            // Errors are ignored: the terminal may be closed.
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &settings);
        }
        let _ = writeln!(std::io::stdout());
    }
}
