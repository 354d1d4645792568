//! Writes NPZ archives.

use std::io::{Result as IoResult, Seek, SeekFrom, Write};

use serde_json::Value;
use zip::ZipWriter;
use zip::write::FileOptions;

use super::archive::MANIFEST;
use super::atomic::Sink;

/// An archive that is being written. What is written to it belongs to the entry that was begun last.
pub(super) struct Packing<'a> {
    zip: ZipWriter<TolerantSink<'a>>,
    options: FileOptions,
}

/// Writes an archive: the entries that `fill` makes, and the manifest. `numbers` is the most that one entry holds.
pub(super) fn pack(
    out: &mut dyn Sink,
    numbers: usize,
    about: &Value,
    fill: impl FnOnce(&mut Packing) -> IoResult<()>,
) -> IoResult<()> {
    // Numbers hardly compress, and without compression other programs can map the file into memory. The fixed
    // date makes equal results equal files.
    let options = FileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(numbers > 1 << 27)
        .last_modified_time(zip::DateTime::default());
    let mut packing = Packing { zip: ZipWriter::new(TolerantSink { out, at: 0, lost: false }), options };
    fill(&mut packing)?;
    packing.begin(MANIFEST)?;
    serde_json::to_writer_pretty(&mut packing, about)?;
    packing.zip.finish()?;
    Ok(())
}

impl Packing<'_> {
    pub fn begin(&mut self, name: impl Into<String>) -> IoResult<()> {
        Ok(self.zip.start_file(name, self.options)?)
    }

    /// As [`Packing::begin`], for an entry that is worth compressing.
    pub fn begin_packed(&mut self, name: impl Into<String>) -> IoResult<()> {
        let options = self.options.compression_method(zip::CompressionMethod::Deflated);
        Ok(self.zip.start_file(name, options)?)
    }
}

impl Write for Packing<'_> {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        self.zip.write(bytes)
    }

    fn flush(&mut self) -> IoResult<()> {
        self.zip.flush()
    }
}

/// A sink that fails once. The writer of archives finishes them when it is dropped, and prints what it could not do:
/// after an error, which is reported already, it may write what it likes to nowhere.
struct TolerantSink<'a> {
    out: &'a mut dyn Sink,
    /// Where the writer stands, or believes to stand after an error.
    at: u64,
    lost: bool,
}

impl TolerantSink<'_> {
    fn ask<T>(&mut self, how: impl FnOnce(&mut dyn Sink) -> IoResult<T>) -> IoResult<T> {
        let done = how(self.out);
        self.lost |= done.is_err();
        done
    }
}

impl Write for TolerantSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let written = if self.lost { bytes.len() } else { self.ask(|out| out.write(bytes))? };
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> IoResult<()> {
        if self.lost { Ok(()) } else { self.ask(|out| out.flush()) }
    }
}

impl Seek for TolerantSink<'_> {
    fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
        self.at = match to {
            to if !self.lost => self.ask(|out| out.seek(to))?,
            SeekFrom::Start(at) => at,
            SeekFrom::Current(by) | SeekFrom::End(by) => self.at.saturating_add_signed(by),
        };
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Error, ErrorKind};

    use super::*;

    /// A disk with room for so many bytes; it counts what it was asked for when it was full already.
    struct Disk {
        file: Cursor<Vec<u8>>,
        room: usize,
        full: bool,
        asked: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
            self.asked += usize::from(self.full);
            if self.file.position() as usize + bytes.len() > self.room {
                self.full = true;
                return Err(Error::from(ErrorKind::StorageFull));
            }
            self.file.write(bytes)
        }

        fn flush(&mut self) -> IoResult<()> {
            Ok(())
        }
    }

    impl Seek for Disk {
        fn seek(&mut self, to: SeekFrom) -> IoResult<u64> {
            self.asked += usize::from(self.full);
            self.file.seek(to)
        }
    }

    #[test]
    fn a_full_disk_is_asked_once() {
        let about = serde_json::json!({ "kind": "test" });
        let made = |room| {
            let mut disk = Disk { file: Cursor::default(), room, full: false, asked: 0 };
            let done = pack(&mut disk, 10, &about, |archive| {
                archive.begin("a.npy")?;
                archive.write_all(&[7; 1000])?;
                archive.begin("b.npy")?;
                archive.write_all(&[8; 1000])
            });
            (done, disk)
        };
        let (done, disk) = made(usize::MAX);
        let whole = disk.file.into_inner().len();
        assert!(done.is_ok() && whole > 2000);
        for room in 0..whole {
            let (done, disk) = made(room);
            let error = done.expect_err("an archive that does not fit");
            assert!(
                error.kind() == ErrorKind::StorageFull || error.to_string().contains("storage"),
                "{room}: {error:?}"
            );
            assert_eq!(disk.asked, 0, "{room}");
        }
    }
}
