//! Where the program keeps what is the user's: the folders of the XDG base directory specification.

use std::path::PathBuf;

use crate::error::{Error, Result};

fn absolute(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folder for settings, whether or not it exists; none where the environment names no home.
pub fn settings() -> Option<PathBuf> {
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("umklapp"))
}

/// The folder for what the program remembers from one run to the next. It exists afterwards, and is the user's alone.
///
/// # Errors
/// Where the environment names no folder, and where it cannot be made.
pub fn state() -> Result<PathBuf> {
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| Error::file("neither XDG_STATE_HOME nor HOME names a folder"))?;
    let folder = state.join("umklapp");
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(&folder)
        .map_err(|e| Error::file(format!("`{}` cannot be made: {e}", folder.display())))?;
    Ok(folder)
}
