//! The progress bar: on standard error, only if that is a terminal, and only for work that takes some time.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::number::format::plain;
use crate::ranks;
use crate::task::Progress;

/// Shorter work shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);
/// Shortest time between two updates of the text; steps may be far shorter.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a bar is shown.
enum ProgressDisplay {
    Terminal(fn() -> ProgressDrawTarget),
    /// Line by line: the number of the work and its line as it is now.
    Lines(Box<dyn Fn(u64, &str) + Send + Sync>),
}

/// The terminal's progress bar: `moments [##########] 1024/1024  4.6 s  1.9 G site-vector-moments/s`.
pub struct TerminalBar {
    screen: ProgressDisplay,
    /// How much work there was.
    count: AtomicU64,
    // A stack, since work may start other work. The innermost is shown.
    open: Mutex<Vec<ProgressTold>>,
}

struct ProgressTold {
    number: u64,
    what: String,
    total: u64,
    began: Instant,
    told: Instant,
    note: String,
    /// Whether it was shown, and the terminal's bar.
    shown: bool,
    bar: Option<ProgressBar>,
}

impl TerminalBar {
    /// A bar on standard error; none if `quiet` or if standard error is no terminal. Of several ranks one shows it.
    pub fn new(quiet: bool) -> Option<TerminalBar> {
        (!quiet && ranks::first() && std::io::stderr().is_terminal())
            .then(|| TerminalBar::on(ProgressDisplay::Terminal(ProgressDrawTarget::stderr)))
    }

    /// A bar that is a line, which `show` puts in place of the last one of the work with that number.
    pub fn lines(show: impl Fn(u64, &str) + Send + Sync + 'static) -> TerminalBar {
        TerminalBar::on(ProgressDisplay::Lines(Box::new(show)))
    }

    fn on(screen: ProgressDisplay) -> TerminalBar {
        TerminalBar { screen, count: AtomicU64::new(0), open: Mutex::new(Vec::new()) }
    }

    fn open(&self) -> MutexGuard<'_, Vec<ProgressTold>> {
        // A thread that panicked while drawing leaves the bar in a usable state.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressTold {
    fn tell(&mut self, screen: &ProgressDisplay, done: u64) {
        self.shown = true;
        let target = match screen {
            ProgressDisplay::Terminal(target) => target,
            ProgressDisplay::Lines(show) => return show(self.number, &self.line(done)),
        };
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target((self.total > 0).then_some(self.total), target());
            // Work of unknown length counts its steps.
            let template = if self.total > 0 {
                "{prefix} [{bar:10}] {pos}/{len}  {msg}"
            } else {
                "{prefix} {pos}  {msg}"
            };
            let style =
                ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("##."));
            bar.set_prefix(self.what.clone());
            bar
        });
        bar.set_message(format!("{}  {}", seconds(self.began.elapsed()), self.note));
        bar.set_position(done);
    }

    /// The bar as a line of text.
    fn line(&self, done: u64) -> String {
        let (what, took, note) = (&self.what, seconds(self.began.elapsed()), &self.note);
        let line = match self.total {
            0 => format!("{what} {done}  {took}  {note}"),
            total => {
                let full = (10 * u128::from(done) / u128::from(total)).min(10) as usize;
                format!("{what} [{:.<10}] {done}/{total}  {took}  {note}", "#".repeat(full))
            }
        };
        line.trim_end().to_string()
    }
}

impl Progress for TerminalBar {
    fn start(&self, what: &str, total: u64) {
        let now = Instant::now();
        let what = plain(what).into_owned();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let note = String::new();
        self.open().push(ProgressTold {
            number,
            what,
            total,
            began: now,
            told: now,
            note,
            shown: false,
            bar: None,
        });
    }

    fn advance(&self, done: u64, note: &str) {
        let mut open = self.open();
        let Some(work) = open.last_mut() else { return };
        let last = done == work.total && work.shown;
        if work.began.elapsed() >= PATIENCE && (last || work.told.elapsed() >= PAUSE) {
            work.told = Instant::now();
            work.note.clear();
            work.note.push_str(&plain(note));
            work.tell(&self.screen, done);
        }
    }

    fn finish(&self) {
        // A bar that was shown stays on the screen, with its time and rate.
        if let Some(bar) = self.open().pop().and_then(|work| work.bar) {
            bar.abandon();
        }
    }
}

/// A time as people read it: `0.3 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn seconds(time: Duration) -> String {
    let s = time.as_secs_f64();
    match s {
        s if s < 1e-3 => format!("{:.0} us", s * 1e6),
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min {:.0} s", (s / 60.0).floor(), (s % 60.0).floor()),
        s => format!("{:.0} h {:.0} min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor()),
    }
}

/// A rate as people read it: `1.9 G site-vector-moments/s`.
pub fn rate(per_second: f64, what: &str) -> String {
    let (scale, unit) = match per_second.abs() {
        r if r >= 1e9 => (1e9, "G "),
        r if r >= 1e6 => (1e6, "M "),
        r if r >= 1e3 => (1e3, "k "),
        _ => (1.0, ""),
    };
    let scaled = per_second / scale;
    let digits = if scaled.abs() < 10.0 { 1 } else { 0 };
    format!("{scaled:.digits$} {unit}{what}/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_read_well() {
        let cases =
            [(0.00002, "20 us"), (0.02, "20.0 ms"), (4.6, "4.6 s"), (75.0, "75 s"), (200.0, "3 min 20 s")];
        for (s, text) in cases {
            assert_eq!(seconds(Duration::from_secs_f64(s)), text);
        }
        assert_eq!(rate(1.9e9, "site-vector-moments"), "1.9 G site-vector-moments/s");
        assert_eq!(rate(12.0, "steps"), "12 steps/s");
    }

    #[test]
    fn short_work_shows_nothing_and_nesting_closes() {
        let bar = TerminalBar::on(ProgressDisplay::Terminal(ProgressDrawTarget::hidden));
        bar.start("outer", 2);
        bar.start("inner", 10);
        bar.advance(10, "");
        assert!(bar.open().iter().all(|work| !work.shown));
        bar.finish();
        bar.finish();
        bar.finish();
        bar.advance(1, "nobody listens");
        assert!(bar.open().is_empty());
    }

    #[test]
    fn a_bar_can_be_a_line() {
        let bar = TerminalBar::lines(|_, _| ());
        bar.start("moments", 1000);
        let work = bar.open().pop().unwrap();
        assert!(work.line(550).starts_with("moments [#####.....] 550/1000  "), "{}", work.line(550));
        assert!(work.line(2000).starts_with("moments [##########] 2000/1000  "));
        bar.start("sweep", 0);
        assert!(
            bar.open().pop().is_some_and(|work| work.number == 1 && work.line(3).starts_with("sweep 3  "))
        );
    }
}
