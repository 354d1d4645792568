//! Variables of a session in a folder: a file for each that has a format of its own, and one for all plain values.

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
        let (mut plain, mut count, mut left) = (rhai::Map::new(), 0, Vec::new());
        for (name, value) in self.own_variables() {
            let kind = self.engine.type_of(&value);
            if let Some(ending) = ending(&kind) {
                self.save_variable(&name, &folder.join(format!("{name}.{ending}")))?;
                count += 1;
            } else if about::fits(&value) {
                plain.insert(name.into(), value);
                count += 1;
            } else {
                left.push(format!("{name} ({kind})"));
            }
        }
        files::write_bytes(&folder.join(PLAIN), about::sealed(&plain).as_bytes())?;
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
        let unreadable =
            |e: std::io::Error| Error::file(format!("`{}` cannot be read: {e}", folder.display()));
        let mut found: Vec<(String, Dynamic)> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            let known = path.extension().is_some_and(|e| e == "npz" || e == "dmrg" || e == "lime");
            if path.file_name().is_some_and(|name| name == PLAIN) {
                let text = std::fs::read(&path).map_err(unreadable)?;
                let values =
                    about::unsealed(&text).map_err(|e| e.context(format!("`{}`", path.display())))?;
                found.extend(values.into_iter().map(|(k, v)| (k.to_string(), v)));
            } else if known {
                let value = self.evaluate(&format!("load({:?})", path.to_string_lossy()), 1);
                found.push((stem, value.map_err(|report| Error::file(report.message))?));
            }
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
