//! The checksum at the end of this program's files: CRC-32 (IEEE 802.3) of everything before it.

use std::io::Write;

use serde_json::{Map, Value};

use super::atomic::Sink;
use crate::error::{Error, Result};

/// The check of some bytes, as files spell it.
pub(super) fn of(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

/// The error for a file whose check is wrong.
pub(super) fn wrong(found: &str, said: &str) -> Error {
    Error::file(format!("it is damaged: its check is {found}, and it says {said}"))
        .hint("take another copy; to read a file that was changed on purpose, remove its check")
}

/// The key of the check in a JSON file.
const KEY: &str = "crc32";

/// The text of a JSON object with its check. The check does not depend on blanks, which other programs may change.
pub fn seal(mut object: Map<String, Value>) -> String {
    object.shift_remove(KEY);
    let mut value = Value::Object(object);
    let sum = of(value.to_string().as_bytes());
    if let Value::Object(object) = &mut value {
        object.insert(KEY.into(), sum.into());
    }
    value.to_string()
}

/// A JSON value from its text, and whether it had a check. The check is compared and taken out.
///
/// # Errors
/// What is no JSON, or has a wrong check.
pub fn unseal(text: &[u8]) -> Result<(Value, bool)> {
    // Some programs begin a text with a byte-order mark.
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut value: Value = serde_json::from_slice(text).map_err(|e| Error::file(e.to_string()))?;
    let said = value.as_object_mut().and_then(|object| object.shift_remove(KEY));
    match said {
        None => Ok((value, false)),
        Some(said) => {
            let found = of(value.to_string().as_bytes());
            if said == found.as_str() { Ok((value, true)) } else { Err(wrong(&found, &said.to_string())) }
        }
    }
}

/// A writer that computes the check of what is written through it.
pub(super) struct Summed<'a> {
    out: &'a mut dyn Sink,
    sum: crc32fast::Hasher,
}

impl<'a> Summed<'a> {
    pub fn new(out: &'a mut dyn Sink) -> Self {
        Summed { out, sum: crc32fast::Hasher::new() }
    }

    /// The check so far, and the writer behind.
    pub fn finish(self) -> (String, &'a mut dyn Sink) {
        (format!("{:08x}", self.sum.finalize()), self.out)
    }

    /// The writer behind, for what the check leaves out.
    pub fn beside(&mut self) -> &mut dyn Sink {
        self.out
    }
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
