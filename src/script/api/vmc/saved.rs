//! Walkers in files: JSON, with every number to its last digit.

use std::path::Path;

use rhai::plugin::*;
use rhai::{Dynamic, Map};
use serde_json::{Value, json};

use super::walk::{ScriptWalkers, handle, walk};
use super::wavefunction::Psi;
use crate::error::{Error, Result};
use crate::montecarlo::lattice::LatticeWalkers;
use crate::montecarlo::{SavedWalkers, Walkers};
use crate::number::memory;
use crate::output::files;
use crate::script::api::about;
use crate::script::rooms::Rooms;
use crate::script::{Fallible, session};

/// The name of the format, in the files.
pub(in crate::script::api) const KIND: &str = "umklapp walkers";

/// Refuses names that promise another format than that of walkers.
pub(in crate::script::api) fn need_own_name(file: &str) -> Result<()> {
    files::need_extension(Path::new(file), &["json"], "a file of walkers")
}

pub(super) fn register(rooms: &mut Rooms) {
    rooms.room("vmc", exported_module!(saving));
}

#[export_module(root = "crate::script::native")]
mod saving {
    /// Writes walkers to a file, together with the contents of a map (numbers, Series, Tables). After `load` they
    /// continue the same stream of random numbers.
    ///
    /// # Example
    /// ```rhai
    /// let psi = slater_jastrow(orbitals::oscillator(3), #{ up: 3 });
    /// let walk = walkers(psi, #{ count: 2, seed: 1 });
    /// metropolis(walk, #{ step: 1.0, sweeps: 5 });
    /// save_walkers(walk, "walk.json", #{ step: 1.0 });
    /// let back = load("walk.json", #{ wavefunction: psi });
    /// let again = back.walk;
    /// metropolis(walk, #{ step: 1.0 });
    /// metropolis(again, #{ step: back.about.step });
    /// assert((walk.positions(0) - again.positions(0)).norm() == 0.0, "the same walk");
    /// ```
    #[rhai_fn(global, return_raw)]
    pub fn save_walkers(walk: &mut ScriptWalkers, file: &str, about: Map) -> Fallible<()> {
        Ok(save(walk, file, &about)?)
    }
}

fn save(walk: &mut ScriptWalkers, file: &str, about: &Map) -> Result<()> {
    let psi = walk!(&*walk, w => w.psi().describe(), l => l.psi().describe());
    let (seed, sweep, positions) = walk!(mut &*walk, w => parts(w.save()?), l => parts(l.save()?));
    need_own_name(file)?;
    let whole = json!({
        "kind": KIND, "wavefunction": psi, "seed": seed, "sweeps": sweep, "positions": positions,
        "about": about::to_json(about),
    });
    let whole = files::seal(whole.as_object().cloned().unwrap_or_default());
    let session = session()?;
    let path = session.output_path(file);
    files::write_bytes(&path, whole.as_bytes())?;
    session.saved(&path);
    Ok(())
}

fn parts<P: Into<Value>>(saved: SavedWalkers<P>) -> (u64, u64, Value) {
    (saved.seed, saved.sweep, saved.places.into())
}

/// Walkers of that wave function: a map of `walk` and of `about`, what was saved beside them.
pub(in crate::script::api) fn load(psi: &Psi, file: &str) -> Result<Map> {
    let path = session()?.input_path(file)?;
    let bytes = memory::read(&path).map_err(|e| {
        Error::of_io(&e)
            .context(format!("`{file}` cannot be read"))
            .hint("walkers are written by `save_walkers(walk, \"name.json\", #{})`")
    })?;
    let broken = || Error::file(format!("`{file}` holds no walkers")).hint("files of `save_walkers` do");
    let damaged = |e: Error| if e.hint_text().is_some() { e.context(format!("`{file}`")) } else { broken() };
    let (whole, checked) = files::unseal(&bytes).map_err(damaged)?;
    if whole["kind"] != KIND {
        return Err(broken());
    }
    if !checked {
        return Err(Error::file(format!("`{file}` has lost its check")).hint("take another copy of the file"));
    }
    if whole["wavefunction"] != psi.describe() {
        return Err(Error::input(format!("`{file}` holds walkers of another wave function"))
            .hint("name another file, or remove this one"));
    }
    let (seed, sweep) = (whole["seed"].as_u64(), whole["sweeps"].as_u64());
    let (Some(seed), Some(sweep)) = (seed, sweep) else { return Err(broken()) };
    let positions = &whole["positions"];
    let sites = || -> Result<SavedWalkers<[Vec<u32>; 2]>> {
        Ok(SavedWalkers { seed, sweep, places: places_of(positions).ok_or_else(broken)? })
    };
    let saved = || -> Result<SavedWalkers<Vec<[f64; 3]>>> {
        let positions = positions.as_array().ok_or_else(broken)?;
        let one = |walker: &Value| walker.as_array()?.iter().map(point).collect::<Option<Vec<_>>>();
        let places = positions.iter().map(one).collect::<Option<Vec<_>>>().ok_or_else(broken)?;
        Ok(SavedWalkers { seed, sweep, places })
    };
    let walk = match psi {
        Psi::Real(psi) => ScriptWalkers::Real(handle(Walkers::restored(psi.clone(), saved()?)?)),
        Psi::Complex(psi) => ScriptWalkers::Complex(handle(Walkers::restored(psi.clone(), saved()?)?)),
        Psi::LatticeReal(state) => {
            ScriptWalkers::LatticeReal(handle(LatticeWalkers::restored(state.clone(), sites()?)?))
        }
        Psi::LatticeComplex(state) => {
            ScriptWalkers::LatticeComplex(handle(LatticeWalkers::restored(state.clone(), sites()?)?))
        }
    };
    let about = about::from_json(&whole["about"]);
    Ok([("walk".into(), Dynamic::from(walk)), ("about".into(), about.into())].into_iter().collect())
}

fn point(value: &Value) -> Option<[f64; 3]> {
    let x: Vec<f64> = value.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
    x.try_into().ok()
}

/// The sites of both spins, for every walker.
fn places_of(value: &Value) -> Option<Vec<[Vec<u32>; 2]>> {
    let list = |v: &Value| -> Option<Vec<u32>> {
        v.as_array()?.iter().map(|x| x.as_u64().and_then(|x| u32::try_from(x).ok())).collect()
    };
    let one = |v: &Value| -> Option<[Vec<u32>; 2]> { Some([list(v.get(0)?)?, list(v.get(1)?)?]) };
    value.as_array()?.iter().map(one).collect()
}
