//! Gauge fields in files.

use std::path::Path;

use rhai::Engine;
use rhai::plugin::*;

use super::super::model::single_precision;
use super::region;
use crate::error::{Error, Result};
use crate::gauge::Links;
use crate::gauge::files::{self, EncodedField, FileFormat};
use crate::output::files::{need_extension, write_helped};
use crate::ranks::agreed;
use crate::script::{Fallible, Options, session};
use crate::task;

pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(saving).into());
}

/// The format of a file, by the option or the end of its name.
fn kind_of(o: &Options, path: &str) -> Result<FileFormat> {
    let whole = FileFormat::Nersc { two_rows: false };
    if o.given("format").is_some() {
        let two_rows = FileFormat::Nersc { two_rows: true };
        return o.one_of("format", &[("nersc", whole), ("nersc-12", two_rows), ("ildg", FileFormat::Ildg)]);
    }
    let end = Path::new(path).extension().map(|end| end.to_string_lossy().to_lowercase());
    Ok(if matches!(end.as_deref(), Some("lime" | "ildg")) { FileFormat::Ildg } else { whole })
}

/// The field in a file, as the options say.
pub(in crate::script::api) fn load(path: &Path, file: &str, o: &Options) -> Result<Links> {
    let reunitarise = o.flag("reunitarise")?;
    let source = agreed(files::open(path).map_err(|e| {
        Error::of_io(&e)
            .context(format!("cannot read `{file}`"))
            .hint("paths are relative to the folder that the program was started in")
    }))?;
    let region = region()?;
    let loaded = task::apart(move || files::decode(&*source, &*region, reunitarise))
        .map_err(|e| e.context(format!("`{file}`")))?;
    if let Some(note) = loaded.note {
        session()?.note(&format!("`{file}`: {note}"));
    }
    Ok(loaded.links)
}

#[export_module(root = "crate::script::native")]
mod saving {
    /// Saves the field: `.lime` and `.ildg` files are ILDG, all others NERSC archives. With several ranks, the first
    /// one writes; the others send it their parts piece by piece.
    ///
    /// # Options
    /// - `format` ("nersc" or "nersc-12" or "ildg", by the name): "nersc-12" stores two rows of each link.
    /// - `precision` ("double" or "single"): precision of the numbers.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 2, 2, 4), #{ seed: 1 });
    /// u.save("field.nersc", #{ format: "nersc-12" });
    /// assert_close(gauge::plaquette(load("field.nersc")), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_as(u: &mut Links, file: &str, o: Options) -> Fallible<()> {
        let (kind, single) = (kind_of(&o, file)?, single_precision(&o)?);
        let own: &[&str] = if matches!(kind, FileFormat::Ildg) { &["lime", "ildg"] } else { &["nersc"] };
        need_extension(Path::new(file), own, "a gauge field")?;
        let path = session()?.output_path(file);
        let links = u.clone();
        let encoded = task::apart(move || EncodedField::new(&links, kind, single))?;
        Ok(write_helped(&path, |out| encoded.write(out), || encoded.help(), || encoded.let_go())?)
    }
}
