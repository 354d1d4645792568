//! Files that are read in pieces on demand: a rank reads the links of its own sites.

use std::fs::File;
use std::io::{Read, Result as IoResult, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::backend::Region;
use crate::error::{Error, Result};
use crate::number::memory;
use crate::{ranks, task};

/// Bytes of a piece, about.
pub(super) const PIECE: usize = 1 << 20;

/// Bytes that can be read from any place.
pub trait Source {
    /// How many there are.
    fn length(&self) -> u64;
    /// Those from a place on; all of them are there.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, at: u64, into: &mut [u8]) -> IoResult<()>;
}

impl Source for &[u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> IoResult<()> {
        let there = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..into.len()));
        into.copy_from_slice(there.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Source for (Mutex<File>, u64) {
    fn length(&self) -> u64 {
        self.1
    }

    fn read(&self, at: u64, into: &mut [u8]) -> IoResult<()> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)
    }
}

/// A file to be read in pieces. What is no plain file, such as a pipe, is read at once.
///
/// # Errors
/// As for [`memory::open`].
pub fn open(path: &Path) -> IoResult<Box<dyn Source + Send>> {
    let file = memory::open(path)?;
    let about = file.metadata()?;
    if about.is_file() {
        return Ok(Box::new((Mutex::new(file), about.len())));
    }
    drop(file);
    Ok(Box::new(FileInMemory(memory::read(path)?)))
}

struct FileInMemory(Vec<u8>);

impl Source for FileInMemory {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, into: &mut [u8]) -> IoResult<()> {
        (&self.0[..]).read(at, into)
    }
}

/// Bytes as rank 0 reads them: what a file says of itself is the same for all ranks.
pub(super) fn told(source: &dyn Source, at: u64, length: usize) -> Result<Box<[u8]>> {
    ranks::once(|| {
        let mut bytes = vec![0; length].into_boxed_slice();
        source.read(at, &mut bytes).map_err(|e| Error::of_io(&e))?;
        Ok(bytes)
    })
}

/// How long the file is for rank 0.
pub(super) fn length(source: &dyn Source) -> Result<u64> {
    ranks::told(source.length())
}

/// Whether all bytes from a place on are zeros, as tapes write them.
pub(super) fn only_zeros(source: &dyn Source, at: u64) -> Result<bool> {
    ranks::once(|| {
        let (mut at, end) = (at, source.length());
        let mut piece = vec![0; PIECE];
        while at < end {
            task::poll()?;
            let length = (end - at).min(PIECE as u64) as usize;
            source.read(at, &mut piece[..length]).map_err(|e| Error::of_io(&e))?;
            if piece[..length].iter().any(|b| *b != 0) {
                return Ok(false);
            }
            at += length as u64;
        }
        Ok(true)
    })
}

/// Where the data of a field are in a file, and how many bytes a site has.
#[derive(Clone, Copy)]
pub(super) struct FieldExtent {
    pub start: u64,
    pub site_bytes: usize,
}

impl FieldExtent {
    /// The bytes of consecutive sites.
    pub fn read(&self, source: &dyn Source, sites: Range<usize>) -> Result<Vec<u8>> {
        task::poll()?;
        let mut bytes = vec![0; sites.len() * self.site_bytes];
        let at = self.start + sites.start as u64 * self.site_bytes as u64;
        source.read(at, &mut bytes).map_err(|e| Error::of_io(&e))?;
        Ok(bytes)
    }

    /// Goes through the data in pieces: the number of the first site of each, and its bytes. Where sites are shared out
    /// to ranks, each goes through a part.
    ///
    /// # Errors
    /// Those of reading, of any rank.
    pub fn scan(
        &self,
        source: &dyn Source,
        region: &Region,
        mut see: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let sites = region.sites();
        let part = if region.is_shared() { ranks::own_of(sites) } else { 0..sites };
        let together = (PIECE / self.site_bytes).max(1);
        let mut through = || {
            for first in part.clone().step_by(together) {
                see(first, &self.read(source, first..(first + together).min(part.end))?);
            }
            Ok(())
        };
        let done = through();
        region.agreed(done)
    }
}
