//! Files appear whole or not at all: each is written under another name in the same folder, then renamed. Or a
//! file grows by a piece at its end.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::{confine, ranks, task};

/// What formats write to.
pub trait Sink: Write + Seek {}
impl<T: Write + Seek> Sink for T {}

/// Why a file could not be written.
fn failed(path: &Path, error: std::io::Error) -> Error {
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    let why = Error::of_io(&error);
    if why.kind() == ErrorKind::Interrupted {
        return why;
    }
    let report = why.context(format!("cannot write `{}`", path.display()));
    if full {
        return report.hint("free some space, or write to another disk with `--out`");
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
            report.hint(format!("the folder `{}` does not exist", folder.display()))
        }
        _ if path.as_os_str().is_empty() => report.hint("the name is empty"),
        _ => report,
    }
}

/// Adds bytes at the end of a file, all or none; what it held stays.
pub fn append(path: &Path, content: &[u8]) -> Result<()> {
    confine::check(path)?;
    let add = || {
        let mut file = File::options().append(true).create(true).open(path)?;
        let before = file.metadata().ok().filter(|about| about.is_file()).map(|about| about.len());
        file.write_all(content).inspect_err(|_| {
            // A disk that is full takes a part. If that cannot be taken back,
            // there is nothing better to say than why it was full.
            let _ = before.map(|length| file.set_len(length));
        })
    };
    ranks::once(|| add().map_err(|error| failed(path, error)))
}

/// Runs `fill` on a new file that takes the name `path` if all went well. Otherwise the older file of that name
/// is still there. Devices and pipes are written directly. Of several ranks one writes,
/// and `fill` asks nothing of the others.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>) -> Result<()> {
    confine::check(path)?;
    ranks::once(|| write_here(path, Box::new(fill)))
}

/// [`write()`] of what several ranks have: `fill` asks the others, who `help` until they are `let_go`.
pub fn write_helped(
    path: &Path,
    fill: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>,
    help: impl FnOnce() -> Result<()>,
    let_go: impl FnOnce() -> Result<()>,
) -> Result<()> {
    confine::check(path)?;
    ranks::once_helped(|| write_here(path, Box::new(fill)), help, let_go)
}

/// What writes a format. Boxed, so that what surrounds it is compiled once.
type Fill<'a> = Box<dyn FnOnce(&mut dyn Sink) -> std::io::Result<()> + 'a>;

fn write_here(path: &Path, fill: Fill<'_>) -> Result<()> {
    let failed = |error: std::io::Error| failed(path, error);
    // A link stays a link. The file that it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(&target).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        // Some formats seek, and devices cannot, so the file is made in memory.
        let mut memory = std::io::Cursor::new(Vec::new());
        fill(&mut memory).map_err(failed)?;
        let mut device = File::options().write(true).open(&target).map_err(failed)?;
        return device.write_all(memory.get_ref()).and_then(|()| device.flush()).map_err(failed);
    }
    if target.is_dir() {
        return Err(Error::file(format!("cannot write `{}`: it is a folder", path.display())));
    }
    remove_left_behind(&target);
    let (beside, file) = part(&target).map_err(failed)?;
    let open = OpenFile::new(&beside);
    let written = (|| {
        let mut out = BufWriter::new(PolledWriter(file));
        fill(&mut out)?;
        // The disk may turn out to be full as late as this, so errors must be known before the file is renamed. Where
        // much else waits to be written it takes minutes, and nobody has to wait for that after Ctrl-C.
        let file = out.into_inner()?.0;
        task::apart(move || Ok(file.sync_all())).map_err(std::io::Error::other)??;
        fs::rename(&beside, &target)
    })();
    drop(open);
    written.map_err(|error| {
        // The half-written file may not exist; there is nothing more to do about it.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// A file whose writes stop at Ctrl-C.
struct PolledWriter(File);

impl Write for PolledWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        task::poll().map_err(std::io::Error::other)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Seek for PolledWriter {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

/// The half-written files of this process.
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

struct OpenFile<'a>(&'a Path);

impl OpenFile<'_> {
    fn new(path: &Path) -> OpenFile<'_> {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
        OpenFile(path)
    }
}

impl Drop for OpenFile<'_> {
    fn drop(&mut self) {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != self.0);
    }
}

/// Removes the half-written files of this process, which is about to end.
pub fn give_up() {
    if let Ok(open) = OPEN.try_lock() {
        for path in open.iter() {
            let _ = fs::remove_file(path);
        }
    }
}

/// A new file beside the target, locked as long as this process lives, and its name.
fn part(target: &Path) -> std::io::Result<(PathBuf, File)> {
    loop {
        let beside = temporary(target);
        let file = File::create(&beside)?;
        // On a file system without locks no other run can take this file for an abandoned one. Otherwise
        // another run may have removed it between the two calls.
        let locked = file.try_lock();
        if locked.is_err() || beside.exists() {
            return Ok((beside, file));
        }
    }
}

/// Removes parts of this file that killed runs have left: those that no process has locked. Done once for a file.
fn remove_left_behind(target: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if !SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(target.to_path_buf()) {
        return;
    }
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(name) = target.file_name().map(|n| format!(".{}.", n.to_string_lossy())) else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let own = entry.file_name();
        let own = own.to_string_lossy();
        let middle = own.strip_prefix(&name).and_then(|rest| rest.strip_suffix(".part"));
        let ours = middle.is_some_and(|m| m.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
        if ours && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes these bytes, atomically.
pub fn bytes(path: &Path, content: &[u8]) -> Result<()> {
    write(path, |out| out.write_all(content))
}

/// Whether a file of that name can be written.
pub fn writable(path: &Path) -> bool {
    confine::check(path).is_ok() && ranks::once(|| Ok(writable_here(path))).unwrap_or(false)
}

fn writable_here(path: &Path) -> bool {
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

/// A hidden name in the same folder, so that the move stays within one file system; unique to the process and
/// the call.
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
        // One of a run that was killed, one of a run that still writes.
        let (dead, writing) = (folder.join(".d.csv.99999999-0.part"), folder.join(".d.csv.99999998-3.part"));
        fs::write(&dead, b"half").unwrap();
        let held = File::create(&writing).unwrap();
        held.try_lock().unwrap();
        bytes(&folder.join("d.csv"), b"whole").unwrap();
        assert!(!dead.exists() && writing.exists());
        fs::remove_file(writing).unwrap();
        fs::remove_file(folder.join("d.csv")).unwrap();
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
