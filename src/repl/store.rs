//! Variables of a session in a folder: a file for each that has a format of its own, and one for all plain values,
//! which names the others. Other files of the folder are left alone.

use std::path::Path;

use rhai::Dynamic;

use super::session::{AfterInput, ReplSession};
use crate::error::{Error, Result};
use crate::output::files;
use crate::script::api::about;

/// The file of plain values: numbers, texts, arrays, maps.
const PLAIN: &str = "values.json";

/// The ending of the files of a type; none for types that are not written to files, or not without more.
fn ending(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Series" | "Matrix" | "Table" | "BlockVector" | "Eigen" | "Moments" | "DoubleMoments" => "npz",
        "DmrgState" | "UniformState" => "dmrg",
        "Links" => "lime",
        _ => return None,
    })
}

/// The name of a file that a variable may have, in the folder itself.
fn is_stored(file: &str) -> bool {
    let path = Path::new(file);
    let known = path.extension().is_some_and(|e| e == "npz" || e == "dmrg" || e == "lime");
    known && path.file_name().is_some_and(|name| name == file)
}

fn unreadable(path: &Path, e: &std::io::Error) -> Error {
    Error::file(format!("`{}` cannot be read: {e}", path.display()))
}

/// What a folder's file of plain values holds, and which files it names; nothing where there is no such file.
fn stored(folder: &Path) -> Result<Option<(rhai::Map, Option<Vec<String>>)>> {
    let path = folder.join(PLAIN);
    match std::fs::read(&path) {
        Ok(text) => {
            about::unsealed(&text).map(Some).map_err(|e| e.context(format_args!("`{}`", path.display())))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unreadable(&path, &e)),
    }
}

/// The names of all files in a folder.
fn all_files(folder: &Path) -> Result<Vec<String>> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        Ok(entry.map_err(|e| unreadable(folder, &e))?.file_name().to_string_lossy().into_owned())
    };
    std::fs::read_dir(folder).map_err(|e| unreadable(folder, &e))?.map(name).collect()
}

impl ReplSession {
    /// Writes all variables that a file can hold into a folder, and says which it cannot.
    pub fn store(&mut self, folder: &str) -> AfterInput {
        match self.written_to(Path::new(folder)) {
            Ok(said) => {
                self.say(&said);
                AfterInput::Next
            }
            Err(e) => self.fail(&e),
        }
    }

    fn written_to(&mut self, folder: &Path) -> Result<String> {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::file(format!("the folder `{}` cannot be made: {e}", folder.display())))?;
        let before = stored(folder).ok().flatten().and_then(|(_, beside)| beside).unwrap_or_default();
        let (mut plain, mut beside, mut left) = (rhai::Map::new(), Vec::new(), Vec::new());
        for (name, value) in self.own_variables() {
            let kind = self.engine.type_of(&value);
            if let Some(ending) = ending(&kind) {
                let file = format!("{name}.{ending}");
                self.save_variable(&name, &folder.join(&file))?;
                beside.push(file);
            } else if about::fits(&value) {
                plain.insert(name.into(), value);
            } else {
                left.push(format!("{name} ({kind})"));
            }
        }
        let count = plain.len() + beside.len();
        files::write_bytes(&folder.join(PLAIN), about::sealed(&plain, &beside).as_bytes())?;
        for old in before.iter().filter(|old| is_stored(old) && !beside.contains(old)) {
            // A file that stays is not read any more.
            let _ = std::fs::remove_file(folder.join(old));
        }
        let mut said = format!("{count} variables in `{}`", folder.display());
        if !left.is_empty() {
            said += &format!("; not written: {}", left.join(", "));
        }
        Ok(said)
    }

    fn save_variable(&mut self, name: &str, file: &Path) -> Result<()> {
        let path = file.to_string_lossy();
        let saved = self.evaluate(&format!("{name}.save({path:?})"), 1);
        saved.map(drop).map_err(|report| Error::file(report.message).context(format!("`{name}`")))
    }

    /// Gives variables the values that [`ReplSession::store`] wrote.
    pub fn restore(&mut self, folder: &str) -> AfterInput {
        match self.read_from(Path::new(folder)) {
            Ok(names) => {
                self.say(&format!("{} variables: {}", names.len(), names.join(", ")));
                self.refresh();
                AfterInput::Next
            }
            Err(e) => self.fail(&e),
        }
    }

    fn read_from(&mut self, folder: &Path) -> Result<Vec<String>> {
        let (values, beside) = stored(folder)?.unwrap_or_default();
        let beside = match beside {
            Some(beside) => beside,
            // Older versions did not name the files.
            None => all_files(folder)?,
        };
        let mut found: Vec<(String, Dynamic)> =
            values.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        for file in beside.iter().filter(|file| is_stored(file)) {
            let path = folder.join(file);
            let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            let value = self.evaluate(&format!("load({:?})", path.to_string_lossy()), 1);
            found.push((stem, value.map_err(|report| Error::file(report.message))?));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        let scope = self.engine.scope_mut();
        Ok(found
            .into_iter()
            .map(|(name, value)| {
                scope.set_or_push(name.as_str(), value);
                name
            })
            .collect())
    }
}
