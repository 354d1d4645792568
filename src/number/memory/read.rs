//! Files read whole.

use std::fs::File;
use std::io::{Error as IoError, Read, Result as IoResult};
use std::path::Path;

use super::ensure;
use crate::error::Error;
use crate::{confine, task};

/// The bytes of a file. Devices, which may have no end, are refused; the size is asked for before memory is taken, and
/// Ctrl-C is heard on the way. What is not the system's fault is an [`Error`] inside; `Error::of_io` takes it out.
///
/// # Errors
/// What the system says, a device, a file larger than the memory, an interruption.
pub fn read(path: &Path) -> IoResult<Vec<u8>> {
    const PIECE: u64 = 4 << 20;
    let mut file = open(path)?;
    let size = file.metadata()?.len();
    ensure(size.into(), &format!("the file `{}`", path.display())).map_err(IoError::other)?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    loop {
        task::poll().map_err(IoError::other)?;
        let read = file.by_ref().take(PIECE).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(bytes);
        }
    }
}

/// Opens a file to be read, or a pipe, but no device.
///
/// # Errors
/// What the system says, a folder, a device, a place where scripts may not read.
pub fn open(path: &Path) -> IoResult<File> {
    confine::check(path).map_err(IoError::other)?;
    let kind = std::fs::metadata(path)?.file_type();
    #[cfg(unix)]
    let device = {
        use std::os::unix::fs::FileTypeExt;
        kind.is_char_device() || kind.is_block_device()
    };
    #[cfg(not(unix))]
    let device = false;
    if device {
        return Err(IoError::other(Error::file("it is a device, and no file")));
    }
    if kind.is_dir() {
        return Err(IoError::other(Error::file("it is a folder")));
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::task::Interrupt;

    #[test]
    fn files_are_read_and_devices_are_not() {
        let path = std::env::temp_dir().join(format!("umklapp-read-{}", std::process::id()));
        std::fs::write(&path, b"abc").unwrap();
        assert_eq!(read(&path).unwrap(), b"abc");
        let stopped = Interrupt::default();
        stopped.raise();
        let error = stopped.during(|| Error::of_io(&read(&path).unwrap_err()));
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        #[cfg(target_os = "linux")]
        assert!(Error::of_io(&read(Path::new("/dev/zero")).unwrap_err()).message().contains("a device"));
    }
}
