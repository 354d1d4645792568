//! Reads NPZ archives. Every entry is read to its end, because its checksum is there. An archive holds each name twice;
//! both must agree, so a damaged name cannot hide an entry.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Error as IoError, Read, Result as IoResult, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value};
use zip::result::ZipError;

use super::array::{read_array, read_column};
use crate::error::{Error, Result};
use crate::number::{Column, Series, memory};
use crate::task;

/// The entry that says what the arrays are.
pub(super) const MANIFEST: &str = "manifest.json";

pub(super) struct Archive {
    zip: zip::ZipArchive<BufReader<File>>,
    about: Map<String, Value>,
}

/// A reader that stops at Ctrl-C.
struct PolledReader<R>(R);

impl<R: Read> Read for PolledReader<R> {
    fn read(&mut self, out: &mut [u8]) -> IoResult<usize> {
        task::poll().map_err(IoError::other)?;
        self.0.read(out)
    }
}

fn io(e: IoError) -> Error {
    Error::of_io(&e)
}

fn broken(e: impl std::fmt::Display) -> Error {
    Error::file(format!("not a whole NPZ archive: {e}"))
}

impl Archive {
    /// Opens an archive and reads its manifest.
    ///
    /// # Errors
    /// A file that is missing or no archive, or whose directory does not fit its entries.
    pub fn open(path: &Path) -> Result<Archive> {
        let mut file = memory::open(path).map_err(io)?;
        directory(&mut file)?;
        let zip = zip::ZipArchive::new(BufReader::new(file)).map_err(broken)?;
        let mut archive = Archive { zip, about: Map::new() };
        if let Some(text) = archive.bytes(MANIFEST)? {
            archive.about =
                serde_json::from_slice(&text).map_err(|e| Error::file(format!("its manifest: {e}")))?;
        }
        Ok(archive)
    }

    /// What `manifest.json` says; empty where there is none.
    pub fn about(&self) -> &Map<String, Value> {
        &self.about
    }

    /// The arrays' names, in their order.
    pub fn names(&mut self) -> Vec<String> {
        let mut names: Vec<(u64, String)> = Vec::new();
        for i in 0..self.zip.len() {
            if let Ok(entry) = self.zip.by_index_raw(i)
                && let Some(name) = npyz::npz::array_name_from_file_name(entry.name())
            {
                names.push((entry.central_header_start(), name.to_string()));
            }
        }
        names.sort();
        names.into_iter().map(|(_, name)| name).collect()
    }

    /// Calls `read` with an entry and its size, then reads the rest of the entry.
    fn entry<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&mut dyn Read, u64) -> Result<T>,
    ) -> Result<Option<T>> {
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(e) => return Err(broken(format!("`{name}`: {e}"))),
        };
        let size = entry.size();
        let mut reader = BufReader::with_capacity(1 << 16, PolledReader(entry));
        let result = read(&mut reader, size);
        // The checksum is compared after the last byte. If it is wrong, that is the error to report, whatever a
        // parser found.
        let rest = std::io::copy(&mut reader, &mut std::io::sink());
        let rest = rest.map_err(|e| io(e).context(format_args!("`{name}`")))?;
        let result = result?;
        if rest > 0 {
            return Err(Error::file(format!("`{name}` is longer than its header says")));
        }
        Ok(Some(result))
    }

    /// The bytes of an entry.
    pub fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        self.entry(name, |reader, size| {
            memory::ensure(size.into(), &format!("`{name}`"))?;
            let mut bytes = Vec::new();
            reader.take(size).read_to_end(&mut bytes).map_err(io)?;
            Ok(bytes)
        })
        .map_err(|e| if e.hint_text().is_some() { e } else { e.hint("the file may be damaged") })
    }

    /// The array of a name: its shape, its elements by rows.
    pub fn array(&mut self, name: &str) -> Result<Option<(Vec<u64>, Series)>> {
        self.entry(&npyz::npz::file_name_from_array_name(name), |reader, size| {
            read_array(reader, size).map_err(|e| e.context(format_args!("array `{name}`")))
        })
    }

    /// As [`Archive::array`], of numbers or texts.
    pub fn column(&mut self, name: &str) -> Result<Option<(Vec<u64>, Column)>> {
        self.entry(&npyz::npz::file_name_from_array_name(name), |reader, size| {
            read_column(reader, size).map_err(|e| e.context(format_args!("array `{name}`")))
        })
    }
}

/// The number of `N` bytes at a place, lowest first.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + N)?;
    Some(bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b)))
}

/// Compares the directory at the end of an archive with the headers of its entries (PKWARE, APPNOTE 6.3.10, sections
/// 4.3.7, 4.3.12 and 4.3.16). Archives with more entries or bytes than 32 bits count have another directory, which is
/// left to the library.
fn directory(file: &mut File) -> Result<()> {
    const END: &[u8] = b"PK\x05\x06";
    let length = file.metadata().map_err(io)?.len();
    let tail = length.min(22 + 0xffff);
    let end = piece(file, length - tail, tail)?;
    let at = end.windows(4).rposition(|w| w == END).ok_or_else(|| broken("its end is missing"))?;
    let field = |offset| number::<4>(&end, at + offset).ok_or_else(|| broken("its end is cut"));
    let (count, size, start) = (field(8)? & 0xffff, field(12)?, field(16)?);
    if count == 0xffff || size == 0xffff_ffff || start == 0xffff_ffff {
        return Ok(());
    }
    if start + size > length {
        return Err(broken("its directory lies behind its end"));
    }
    let directory = piece(file, start, size)?;
    let (mut at, mut found, mut names) = (0, 0, BTreeSet::new());
    while at < directory.len() {
        let cut = || broken("its directory is cut");
        if directory.get(at..at + 4) != Some(b"PK\x01\x02") {
            return Err(broken("its directory is damaged"));
        }
        let short = |offset| number::<2>(&directory, at + offset).map(|n| n as usize).ok_or_else(cut);
        let (named, extra, comment) = (short(28)?, short(30)?, short(32)?);
        let name = directory.get(at + 46..at + 46 + named).ok_or_else(cut)?;
        let header = number::<4>(&directory, at + 42).ok_or_else(cut)?;
        if header != 0xffff_ffff {
            let checksum = number::<4>(&directory, at + 16).ok_or_else(cut)?;
            same(file, header, name, checksum)?;
        }
        let shown = String::from_utf8_lossy(name).into_owned();
        if !names.insert(shown.clone()) {
            return Err(broken(format!("two entries are called `{shown}`")));
        }
        at += 46 + named + extra + comment;
        found += 1;
    }
    if found != count || at as u64 != size {
        return Err(broken(format!("its directory names {found} entries, and its end says {count}")));
    }
    file.seek(SeekFrom::Start(0)).map(drop).map_err(io)
}

/// Checks that the header at a place is that of an entry of this name and checksum.
fn same(file: &mut File, start: u64, name: &[u8], checksum: u64) -> Result<()> {
    let shown = String::from_utf8_lossy(name);
    let wrong = || broken(format!("the header of `{shown}` and the directory do not agree"));
    let head = piece(file, start, 30 + name.len() as u64).map_err(|_| wrong())?;
    let told = number::<4>(&head, 14).unwrap_or(0);
    // Archives that are written to a stream have the checksum behind the entry.
    let later = number::<2>(&head, 6).unwrap_or(0) & 8 != 0;
    let fits = head.starts_with(b"PK\x03\x04") && number::<2>(&head, 26) == Some(name.len() as u64);
    if !fits || &head[30..] != name || !(later || told == checksum) {
        return Err(wrong());
    }
    Ok(())
}

fn piece(file: &mut File, start: u64, length: u64) -> Result<Vec<u8>> {
    memory::ensure(length.into(), "the directory of the archive")?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.seek(SeekFrom::Start(start)).map_err(io)?;
    file.read_exact(&mut bytes).map_err(|_| broken("it is cut"))?;
    Ok(bytes)
}
