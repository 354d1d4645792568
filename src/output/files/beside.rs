//! What stands beside a CSV or TSV file: where it came from and what columns cannot express, as `NAME-metadata.json`,
//! the name that the W3C has given to such descriptions (CSV on the Web). Ours is among its `notes`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::check;
use crate::confine;
use crate::error::{Error, Result};
use crate::number::memory;
use crate::output::Manifest;

/// Where the description of a file stands.
fn place(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("{name}-metadata.json"))
}

/// Devices and pipes have nothing beside them.
fn has_none(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| !about.is_file())
}

/// Removes the description of an older file of that name.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    let place = place(path);
    match std::fs::remove_file(&place) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound && place.exists() => {
            Err(std::io::Error::new(e.kind(), format!("`{}` cannot be removed: {e}", place.display())))
        }
        _ => Ok(()),
    }
}

/// Writes the description of a file with that check.
pub(super) fn save(
    path: &Path,
    mut about: Map<String, Value>,
    manifest: Option<&Manifest>,
    sum: &str,
) -> Result<()> {
    if has_none(path) {
        return Ok(());
    }
    if let Some(manifest) = manifest {
        about.insert("manifest".into(), manifest.to_json());
    }
    about.insert("file".into(), json!({ "crc32": sum }));
    let mut whole = Map::new();
    whole.insert("@context".into(), json!("http://www.w3.org/ns/csvw"));
    whole.insert("url".into(), json!(path.file_name().map(|name| name.to_string_lossy())));
    whole.insert("notes".into(), json!([about]));
    super::write_bytes(&place(path), format!("{}\n", check::seal(whole)).as_bytes())
}

/// What the description of a file says, if this program has written one; it has to be of this very file.
pub(super) fn load(path: &Path, bytes: &[u8]) -> Result<Option<Map<String, Value>>> {
    let place = place(path);
    if has_none(path) || confine::check(&place).is_err() || !place.exists() {
        return Ok(None);
    }
    let told = || -> Result<Option<Map<String, Value>>> {
        let text = memory::read(&place).map_err(|e| Error::of_io(&e))?;
        let (whole, _) = check::unseal(&text)?;
        let Some(about) = whole["notes"][0].as_object() else { return Ok(None) };
        let Some(said) = about.get("file").and_then(|file| file["crc32"].as_str()) else { return Ok(None) };
        // Some programs end lines otherwise.
        let unix = || String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let found = check::of(bytes);
        if said != found && said != check::of(unix().as_bytes()) {
            return Err(Error::file(format!("the file's check is {found}, and this says {said}")));
        }
        Ok(Some(about.clone()))
    };
    told().map_err(|e| {
        e.context(format_args!("`{}`, which describes it", place.display())).hint(
            "take other copies of both; to read a file that was changed on purpose, remove its description",
        )
    })
}
