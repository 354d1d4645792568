//! Gauge fields in files.

use std::path::{Path, PathBuf};

use rhai::plugin::*;
use rhai::{Engine, Map};

use super::single;
use crate::error::{Error, Result};
use crate::gauge::Links;
use crate::gauge::files::{self, Kind};
use crate::number::memory;
use crate::output::files::{need_extension, write_bytes};
use crate::script::{At, Failure, Options, session};
use crate::task;

/// The functions, for the module `gauge`.
pub(super) fn module() -> Module {
    exported_module!(loading)
}

/// Registers what saves.
pub(super) fn register(engine: &mut Engine) {
    engine.register_global_module(exported_module!(saving).into());
}

/// The format of a file, by the option or the end of its name.
fn kind_of(o: &Options, path: &str) -> Result<Kind> {
    let by_name = if path.ends_with(".lime") || path.ends_with(".ildg") { "ildg" } else { "nersc" };
    match o.text_or("format", by_name)?.as_str() {
        "nersc" => Ok(Kind::Nersc { two_rows: false }),
        "nersc-12" => Ok(Kind::Nersc { two_rows: true }),
        "ildg" => Ok(Kind::Ildg),
        other => Err(Error::input(format!("no format `{other}` of gauge fields"))
            .hint("the formats are \"nersc\", \"nersc-12\" and \"ildg\"")),
    }
}

#[export_module]
mod loading {
    /// Loads a gauge field from a NERSC archive or an ILDG or SciDAC (lime) file; checksums are verified, and a note tells
    /// of a lime file without one. Links of 32 bits are projected onto SU(3), links of 64 bits where they need it, with a note;
    /// links that are off by more than 1e-6 are refused.
    ///
    /// # Options
    /// - `reunitarise` (false): project every link, also rough ones that are off by up to 1e-2.
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::reference_field(lattice::hypercubic(4, 4, 4, 4), 0.3);
    /// u.save("field.lime", #{ precision: "single" });
    /// let back = gauge::load("field.lime", #{ reunitarise: true });
    /// assert_close(gauge::plaquette(back), gauge::plaquette(u), 1e-7);
    /// let m = back.link(0, 0);
    /// assert((m * m.dagger() - identity(3)).norm() < 1e-14, "unitary in 64 bits");
    /// ```
    #[rhai_fn(name = "load", return_raw)]
    pub fn load_with(
        ctx: NativeCallContext,
        file: &str,
        options: Map,
    ) -> std::result::Result<Links, Failure> {
        let o = Options::new(&ctx, options);
        let reunitarise = o.flag_or("reunitarise", false).at(&ctx)?;
        o.finish()?;
        let read = || {
            let saved = session(&ctx)?.output_path(file);
            let path: PathBuf = if saved.exists() { saved } else { file.into() };
            let bytes = memory::read(&path).map_err(|e| {
                Error::of_io(&e)
                    .context(format!("cannot read `{file}`"))
                    .hint("paths are relative to the folder that the program was started in")
            })?;
            let loaded = task::apart(move || files::decode(&bytes, reunitarise))
                .map_err(|e| e.context(format!("`{file}`")))?;
            if let Some(note) = loaded.note {
                session(&ctx)?.note(&format!("`{file}`: {note}"));
            }
            Ok(loaded.links)
        };
        read().at(&ctx)
    }

    #[rhai_fn(return_raw)]
    pub fn load(ctx: NativeCallContext, file: &str) -> std::result::Result<Links, Failure> {
        load_with(ctx, file, Map::new())
    }
}

#[export_module]
mod saving {
    /// Saves the field: `.lime` and `.ildg` files are ILDG, all others NERSC archives.
    ///
    /// # Options
    /// - `format` (string, by the name): "nersc", "nersc-12" (two rows of each link) or "ildg".
    /// - `precision` ("double"): or "single".
    ///
    /// # Example
    /// ```rhai
    /// let u = gauge::random(lattice::hypercubic(2, 2, 2, 4), #{ seed: 1 });
    /// u.save("field.nersc", #{ format: "nersc-12" });
    /// assert_close(gauge::plaquette(gauge::load("field.nersc")), gauge::plaquette(u), 1e-13);
    /// ```
    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save_as(
        ctx: NativeCallContext,
        u: &mut Links,
        file: &str,
        options: Map,
    ) -> std::result::Result<(), Failure> {
        let o = Options::new(&ctx, options);
        let (kind, single) = (kind_of(&o, file).at(&ctx)?, single(&o).at(&ctx)?);
        o.finish()?;
        let own: &[&str] = if matches!(kind, Kind::Ildg) { &["lime", "ildg"] } else { &["nersc"] };
        need_extension(Path::new(file), own, "a gauge field").at(&ctx)?;
        let path = session(&ctx).at(&ctx)?.output_path(file);
        let links = u.clone();
        let bytes = task::apart(move || Ok(files::encode(&links, kind, single))).at(&ctx)?;
        write_bytes(&path, &bytes).at(&ctx)
    }

    #[rhai_fn(global, name = "save", pure, return_raw)]
    pub fn save(ctx: NativeCallContext, u: &mut Links, file: &str) -> std::result::Result<(), Failure> {
        save_as(ctx, u, file, Map::new())
    }
}
