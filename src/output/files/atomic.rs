//! Files appear whole or not at all: written beside their place, then moved there; or grow by a piece at their end.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// What formats write to.
pub trait Sink: Write + Seek {}
impl<T: Write + Seek> Sink for T {}

/// Why a file could not be written.
fn failed(path: &Path, error: &std::io::Error) -> Error {
    let text = error.to_string();
    let plain = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    let report = Error::file(format!("cannot write `{}`: {plain}", path.display()));
    if error.kind() == std::io::ErrorKind::StorageFull {
        return report.hint("free some space, or write to another disk with `--out`");
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
            report.hint(format!("the folder `{}` does not exist", folder.display()))
        }
        _ => report,
    }
}

/// Adds bytes at the end of a file, in one piece; what it held stays.
pub fn append(path: &Path, content: &[u8]) -> Result<()> {
    let add = || File::options().append(true).create(true).open(path)?.write_all(content);
    add().map_err(|error| failed(path, &error))
}

/// Runs `fill` on a new file that takes the name `path` when all went well. When it did not, the older file of that
/// name is still there. Devices and pipes are written directly.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>) -> Result<()> {
    let failed = |error: std::io::Error| failed(path, &error);
    // A link stays a link: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(&target).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        // Formats that seek, and devices that cannot, meet in memory.
        let mut memory = std::io::Cursor::new(Vec::new());
        fill(&mut memory).map_err(failed)?;
        let mut device = File::options().write(true).open(&target).map_err(failed)?;
        return device.write_all(memory.get_ref()).and_then(|()| device.flush()).map_err(failed);
    }
    if target.is_dir() {
        return Err(Error::file(format!("cannot write `{}`: it is a folder", path.display())));
    }
    let beside = temporary(&target);
    let written = (|| {
        let mut out = BufWriter::new(File::create(&beside)?);
        fill(&mut out)?;
        // Space may run out as late as this, so it must be known before the move.
        out.into_inner()?.sync_all()?;
        fs::rename(&beside, &target)
    })();
    written.map_err(|error| {
        // The half-written file may not exist; there is nothing more to do about it.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// Writes these bytes, atomically.
pub fn bytes(path: &Path, content: &[u8]) -> Result<()> {
    write(path, |out| out.write_all(content))
}

/// Whether a file of that name can be written.
pub fn writable(path: &Path) -> bool {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(&target) {
        Ok(m) if m.is_dir() => false,
        Ok(m) if !m.is_file() => File::options().write(true).open(&target).is_ok(),
        _ => {
            let beside = temporary(&target);
            let made = File::create(&beside).is_ok();
            made && fs::remove_file(&beside).is_ok()
        }
    }
}

/// A hidden name in the same folder, so that the move stays within one file system; unique to the process and the call.
fn temporary(target: &Path) -> PathBuf {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let call = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = target.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.{}-{call}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_the_older_file() {
        let folder = std::env::temp_dir().join(format!("umklapp-atomic-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.csv");
        bytes(&path, b"older").unwrap();
        let error = write(&path, |out| {
            out.write_all(b"half")?;
            Err(std::io::Error::other("no space"))
        })
        .unwrap_err();
        assert!(error.to_string().ends_with("no space"));
        assert_eq!(fs::read(&path).unwrap(), b"older");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        let missing = bytes(&folder.join("none/b.csv"), b"").unwrap_err();
        assert!(missing.hint_text().is_some_and(|h| h.contains("does not exist")));
        assert!(bytes(&folder, b"").is_err());
        assert!(writable(&path) && writable(&folder.join("c.csv")) && writable(Path::new("/dev/null")));
        assert!(!writable(&folder) && !writable(&folder.join("none/b.csv")));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let error = bytes(Path::new("/dev/full"), b"abc").unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
    }
}
