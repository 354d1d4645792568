//! Where the inputs of earlier sessions are kept: the state directory of the XDG base directory specification.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// The file of the history; its folder exists afterwards, and is the user's alone.
pub(super) fn file() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
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
    Ok(folder.join("history"))
}
