//! The only error type. It names the operation and the sizes in one sentence, and may carry a hint. It has no Rhai or
//! CUDA types; `script/` adds the position.
//!
//! Style of messages: lower case, no full stop, back-ticks round literals, a hint that names the remedy.

use std::fmt;

/// What went wrong, coarsely: decides the exit code and how the script layer words the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The caller asked for something that cannot be: wrong sizes, names, options, values.
    Input,
    /// More memory was asked for than there is.
    Memory,
    /// A file could not be read, written or understood.
    File,
    /// The mathematics failed: a window left by the spectrum, an iteration that did not converge.
    Numeric,
    /// A backend is missing or its driver failed.
    Backend,
    /// The ranks of one run have gone different ways: nothing can go on, whatever the script would do about it.
    Parted,
    /// The user stopped the work.
    Interrupted,
    /// A broken promise of this program: a bug.
    Internal,
}

/// An error for people: one sentence, and perhaps a hint.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), hint: None }
    }

    /// The caller's input is wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// More memory was asked for than there is.
    pub fn memory(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Memory, message)
    }

    /// A file is missing, unreadable or malformed.
    pub fn file(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::File, message)
    }

    /// The numbers did not come out: no convergence, a spectrum outside its window.
    pub fn numeric(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Numeric, message)
    }

    /// A backend is missing or failed.
    pub fn backend(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Backend, message)
    }

    /// The user stopped the work.
    pub fn interrupted() -> Self {
        Self::new(ErrorKind::Interrupted, "interrupted")
    }

    /// A bug in this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The error of this program that rides in one of input or output, or the system's words, without its number.
    pub fn of_io(error: &std::io::Error) -> Error {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
            Some(ours) => ours.clone(),
            None if error.kind() == std::io::ErrorKind::NotFound => Error::file("there is no such file"),
            None => {
                let text = error.to_string();
                Error::file(text.split(" (os error").next().unwrap_or(&text).to_lowercase())
            }
        }
    }

    /// Adds what the user can do about it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Puts what was being done before the message: `context: message`.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The remedy, where one is known.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The candidate nearest to a misspelt name, if any is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(name, &mut candidates.into_iter())
}

fn nearest_of<'a>(name: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        // Something of the name must be left.
        .filter(|(d, candidate)| {
            let letters = name.chars().count();
            *d <= 1 + letters.max(candidate.chars().count()) / 4 && *d < letters
        })
        // Of two that are as near, the one that begins alike is meant.
        .min_by_key(|(d, candidate)| (*d, candidate.chars().next() != name.chars().next()))
        .map(|(_, candidate)| candidate)
}

/// Edit distance where a swap of neighbours counts once (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let substitute = last[j] + usize::from(a[i] != b[j]);
            row[j + 1] = substitute.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_forgives_a_typo_and_no_more() {
        let names = ["moments", "vectors", "kernel"];
        assert_eq!(nearest("moment", names), Some("moments"));
        assert_eq!(nearest("vecotrs", names), Some("vectors"));
        assert_eq!(nearest("zebra", names), None);
        assert_eq!(nearest("y", ["x", "I"]), None);
    }

    #[test]
    fn context_goes_in_front() {
        let e = Error::input("3 columns given").context("`h * v`").hint("use 4");
        assert_eq!(e.to_string(), "`h * v`: 3 columns given");
        assert_eq!(e.hint_text(), Some("use 4"));
    }
}
