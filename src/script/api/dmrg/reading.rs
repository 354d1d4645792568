//! Files of states, of finite and of infinite chains.

use std::path::Path;
use std::rc::Rc;

use rhai::{Array, Dynamic};

use super::held::one_of;
use super::uniform;
use crate::error::{Error, Result};
use crate::manybody::dmrg::{joined, unsealed};
use crate::number::memory;
use crate::output::files;

/// The state in a file that scripts call `file`, of a finite or an infinite chain.
pub(in crate::script::api) fn load_state(file: &str, path: &Path) -> Result<Dynamic> {
    let bytes = memory::read(path).map_err(|e| {
        Error::of_io(&e)
            .context(format!("`{file}` cannot be read"))
            .hint("states are written by `gs.save(\"name.dmrg\")`")
    })?;
    let states = unsealed(&bytes).map_err(|e| e.context(format!("`{file}`")))?;
    state_of(file, states)
}

/// The state in an NPZ archive, if it is one.
pub(in crate::script::api) fn load_blocks(file: &str, path: &Path) -> Result<Option<Dynamic>> {
    let Some((header, numbers)) = files::load_state(path)? else { return Ok(None) };
    state_of(file, &joined(&header, &numbers)).map(Some)
}

fn state_of(file: &str, states: &[u8]) -> Result<Dynamic> {
    if let Some(infinite) = uniform::from_bytes(states).map_err(|e| e.context(format!("`{file}`")))? {
        return Ok(Dynamic::from(infinite));
    }
    let (mut held, mut rest) = one_of(states).map_err(|e| e.context(format!("`{file}`")))?;
    let mut excited = Array::new();
    while !rest.is_empty() {
        let (other, behind) = one_of(rest).map_err(|e| e.context(format!("`{file}`")))?;
        excited.push(Dynamic::from(other));
        rest = behind;
    }
    if !excited.is_empty() {
        Rc::make_mut(&mut held.about).insert("excited".into(), excited.into());
    }
    Ok(Dynamic::from(held))
}
