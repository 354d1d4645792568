//! A text file read line by line, with errors that name the line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Result};

/// The lines of a file, counted from 1.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    number: usize,
    text: String,
}

impl Lines {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Lines> {
        let failed = |e: std::io::Error| {
            let why = match e.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_string(),
                _ => e.to_string().to_lowercase(),
            };
            Error::file(format!("cannot read `{}`: {why}", path.display()))
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(Error::file(format!("cannot read `{}`: it is a folder", path.display())));
        }
        Ok(Lines { path: path.into(), reader: BufReader::new(file), number: 0, text: String::new() })
    }

    /// The next line, or none at the end of the file.
    pub fn next(&mut self) -> Result<Option<&str>> {
        self.text.clear();
        self.number += 1;
        match self.reader.read_line(&mut self.text) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(self.text.trim_end())),
            Err(_) => Err(self.wrong("is no text")),
        }
    }

    /// The words of the next line, which must be there; `what` says what it holds.
    pub fn words(&mut self, what: &str) -> Result<Vec<String>> {
        match self.next()? {
            Some(line) => Ok(line.split_whitespace().map(str::to_string).collect()),
            None => Err(self.ended(what)),
        }
    }

    /// The error for a file that ends where `what` should follow.
    pub fn ended(&self, what: &str) -> Error {
        Error::file(format!(
            "`{}` ends after line {}, where {what} should follow",
            self.path.display(),
            self.number.saturating_sub(1)
        ))
        .hint("the file may be truncated")
    }

    /// An error about the line read last.
    pub fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::file(format!("line {} of `{}` {what}", self.number, self.path.display()))
    }

    /// A number from a word of the line read last.
    pub fn number<T: FromStr>(&self, word: &str, what: &str) -> Result<T> {
        word.parse().map_err(|_| self.wrong(format!("has `{word}` where {what} should stand")))
    }

    /// A finite real number from a word of the line read last.
    pub fn real(&self, word: &str, what: &str) -> Result<f64> {
        // Fortran writes exponents with a D.
        let x: f64 = self.number(&word.replace(['d', 'D'], "e"), what)?;
        if x.is_finite() { Ok(x) } else { Err(self.wrong(format!("has `{word}`, which is not finite"))) }
    }
}
