//! Files that belong to one run: a lock that ends with the process, also if it is killed.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::{confine, ranks};

/// A file that is kept as long as this value lives.
#[derive(Debug)]
pub struct HeldFile {
    /// None on file systems without locks.
    lock: Option<File>,
    path: PathBuf,
}

/// Keeps a file for this run. The lock is a file beside it, since the file itself is replaced when it is written.
///
/// # Errors
/// When another run keeps it, or nothing can be written beside it.
pub fn hold(path: &Path) -> Result<HeldFile> {
    let mut held = HeldFile { lock: None, path: PathBuf::new() };
    // Of several ranks one keeps it for all.
    confine::check(path)?;
    ranks::once(|| {
        held = hold_here(path)?;
        Ok(())
    })?;
    Ok(held)
}

fn hold_here(path: &Path) -> Result<HeldFile> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = target.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = target.with_file_name(format!(".{name}.lock"));
    loop {
        let open = File::options().read(true).write(true).create(true).truncate(false).open(&beside);
        let mut lock = open.map_err(|e| {
            Error::of_io(&e)
                .context(format!("`{}` cannot be written", path.display()))
                .hint("name a file in a folder that exists and may be written to")
        })?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = lock.read_to_string(&mut owner);
                let who = if owner.is_empty() { String::new() } else { format!(" (process {owner})") };
                return Err(Error::file(format!("`{}` belongs to another run{who}", path.display()))
                    .hint("wait for its end, or name another file"));
            }
            Err(TryLockError::Error(_)) => return Ok(HeldFile { lock: None, path: beside }),
        }
        if is_there(&lock, &beside) {
            let _ = lock.set_len(0).and_then(|()| write!(lock, "{}", std::process::id()));
            return Ok(HeldFile { lock: Some(lock), path: beside });
        }
    }
}

/// Whether the open file is the one of that name: the run before may have removed it in between.
fn is_there(lock: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let both = lock.metadata().and_then(|a| fs::metadata(path).map(|b| (a, b)));
        both.is_ok_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = lock;
        path.exists()
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // Removed while it is still locked, so that no other run takes a lock that is about to disappear.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_at_a_time() {
        let folder = std::env::temp_dir().join(format!("umklapp-hold-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.npz");
        let first = hold(&path).unwrap();
        let second = hold(&path).unwrap_err();
        let who = format!("belongs to another run (process {})", std::process::id());
        assert!(second.message().ends_with(&who) && second.hint_text().is_some(), "{second}");
        drop(first);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        drop(hold(&path).unwrap());
        assert!(hold(&folder.join("none/a.npz")).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
