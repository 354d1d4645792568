//! A text file read line by line, with errors that name the line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::number::memory;

/// The lines of a file, counted from 1.
pub(super) struct FileLines {
    path: PathBuf,
    reader: BufReader<File>,
    number: usize,
    text: String,
    /// CRC-32 of all lines so far, except that of the check.
    sum: crc32fast::Hasher,
    told: Option<String>,
}

/// The comment that holds the check (CRC-32) of all other lines of a Matrix Market file.
pub const CHECK: &str = "% crc32: ";

/// Most bytes of a line.
const LONGEST: u64 = 16 << 20;

impl FileLines {
    pub fn open(path: &Path) -> Result<FileLines> {
        let failed = |e: std::io::Error| {
            let why = match e.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_string(),
                _ => e.to_string().to_lowercase(),
            };
            Error::file(format!("cannot read `{}`: {why}", path.display()))
                .hint("names of files are relative to the folder where the program was started")
        };
        let file = memory::open(path).map_err(failed)?;
        let sum = crc32fast::Hasher::new();
        let reader = BufReader::new(file);
        Ok(FileLines { path: path.into(), reader, number: 0, text: String::new(), sum, told: None })
    }

    /// The next line, or none at the end of the file.
    pub fn next(&mut self) -> Result<Option<&str>> {
        self.text.clear();
        self.number += 1;
        // A longer line means that this is another kind of file.
        match self.reader.by_ref().take(LONGEST).read_line(&mut self.text) {
            Ok(0) => return Ok(None),
            Ok(n) if n as u64 == LONGEST => return Err(self.wrong("does not end")),
            Ok(_) => {}
            Err(_) => return Err(self.wrong("is no text")),
        }
        let line = self.text.trim_end();
        match line.strip_prefix(CHECK) {
            Some(told) => self.told = Some(told.to_string()),
            None => {
                self.sum.update(line.as_bytes());
                self.sum.update(b"\n");
            }
        }
        Ok(Some(line))
    }

    /// At the end of the file: if a line held a check, compares it with that of the other lines.
    pub fn check(&self) -> Result<()> {
        let found = format!("{:08x}", self.sum.clone().finalize());
        match &self.told {
            Some(told) if *told != found => Err(Error::file(format!(
                "`{}` is damaged: its check is {found}, and it says {told}",
                self.path.display()
            ))
            .hint("take another copy; to read a file that was changed on purpose, remove its check")),
            _ => Ok(()),
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
            .hint("the file may be truncated, or of another kind than its name says")
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
