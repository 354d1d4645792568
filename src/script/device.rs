//! Which backend a session computes on: its name and weights, as the command line and the session give them.

use std::io::IsTerminal;

use super::Settings;
use crate::backend::Device;
use crate::backend::open::{self, BackendChoice};
use crate::error::{Error, Result};
use crate::output::tell;
use crate::ranks;
use crate::task::{self, Interrupt};

/// The names that complete; more parts may be joined by `+`.
pub(crate) const BACKENDS: [&str; 4] = ["auto", "cpu", "cuda", "cpu+cuda"];

/// The name of a backend, if it is one.
///
/// # Errors
/// As [`open::known`].
pub(crate) fn backend_name(name: &str) -> Result<String> {
    open::known(name).map(|()| name.into())
}

/// The weights of the parts of a backend, from a text like `1:12`.
///
/// # Errors
/// For anything but numbers that are not negative, one of them positive.
pub(crate) fn weights(text: &str) -> Result<Vec<f64>> {
    let wrong = || {
        Error::input(format!("`{text}` are no weights"))
            .hint("give a number for each backend, as in `1:12` for cpu+cuda; one with 0 has no share")
    };
    let weight = |w: &str| w.trim().parse().ok().filter(|w: &f64| w.is_finite() && *w >= 0.0);
    let weights: Option<Vec<f64>> = text.split(':').map(weight).collect();
    weights.filter(|weights| weights.iter().any(|w| *w > 0.0)).ok_or_else(wrong)
}

/// More would be a slip, and bring a machine to a halt.
const MOST_THREADS: usize = 1024;

/// Opens the backend that the settings ask for; what there is to note is said on a terminal,
/// or where work is shared out.
pub(crate) fn open_device(settings: &Settings, interrupt: &Interrupt) -> Result<Device> {
    let threads = threads(settings)?;
    let device = open_with(settings, threads, false, interrupt)?;
    if threads > 0 {
        // Work outside the devices, like that on gauge fields, shares one pool a process: the first session decides.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        if threads == 1 {
            task::stay_in_place();
        }
    }
    Ok(device)
}

/// As [`open_device`], of a backend that serves a part of a script: the pool of the process stays as it is. What lives
/// on several backends there, each rank has whole.
pub(super) fn open_beside(settings: &Settings, interrupt: &Interrupt) -> Result<Device> {
    open_with(settings, threads(settings)?, true, interrupt)
}

/// Worker threads of this process, as many as on every other rank.
fn threads(settings: &Settings) -> Result<usize> {
    if settings.threads > MOST_THREADS {
        return Err(Error::input(format!("{} threads", settings.threads))
            .hint(format!("use as many as there are processors, which 0 does; {MOST_THREADS} at most")));
    }
    ranks::threads(settings.threads)
}

impl Settings {
    /// What they say of the backend.
    pub(crate) fn choice(&self) -> BackendChoice {
        BackendChoice {
            name: self.backend.clone(),
            threads: self.threads,
            weights: self.weights.clone(),
            gpus: self.devices.clone(),
            grid: self.grid.clone(),
            share_from: self.share_from,
            several_a_rank: false,
        }
    }
}

fn open_with(
    settings: &Settings,
    threads: usize,
    several_a_rank: bool,
    interrupt: &Interrupt,
) -> Result<Device> {
    let choice = BackendChoice { threads, several_a_rank, ..settings.choice() };
    let says = !settings.quiet && (settings.backend.contains('+') || std::io::stderr().is_terminal());
    open::open(&choice, interrupt, move |text| {
        if says {
            tell(&format!("note: {text}"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read() {
        assert_eq!(weights("1:12").unwrap(), [1.0, 12.0]);
        assert_eq!(weights("0:1").unwrap(), [0.0, 1.0]);
        assert_eq!(weights("0.5: 2 :1e1").unwrap(), [0.5, 2.0, 10.0]);
        assert!(["", "1:", "1:x", "1:-2", "0:0", "inf:1", "NaN:1"].iter().all(|w| weights(w).is_err()));
    }
}
